/* SPDX-License-Identifier: Apache-2.0 */
/* weft plan: what would change, by weftd's knowledge of the devices or, without it, against
 * dark ones; as a view, as a file for weft apply, and as a picture. */
#include <stdlib.h>
#include <string.h>

#include "controller/cli/core/private.h"
#include "controller/cli/fabric/fabric_picture.h"
#include "controller/proto_convert/proto_convert.h"
#include "controller/webui/webui.h"
#include "lib/base/alloc.h"
#include "lib/base/file.h"

int cli_read_mode(const struct cli *c, Weft__V1__Mode *mode, struct err *err)
{
	const char *name = cli_opt(c, "mode");

	*mode = WEFT__V1__MODE__MODE_SAFE;
	if (name && strcmp(name, "update") == 0) {
		*mode = WEFT__V1__MODE__MODE_UPDATE;
	} else if (name && strcmp(name, "safe") != 0) {
		return err_set(err, WEFT_EUSAGE, "--mode: \"%s\" is not safe or update", name);
	}
	return 0;
}

/* A plan made here goes to its view in the same parts in which weftd sends
 * one. */
static int take_part(const Weft__V1__PlanResponse *part, void *arg, struct err *err)
{
	return plan_view_add(arg, part, err);
}

/* Without weftd nothing is known of the devices: all are taken as empty, so
 * that everything is new. */
static int plan_offline(const struct cli *c, const struct model_fabric *f, Weft__V1__Mode mode,
			struct plan_view *v, struct err *err)
{
	struct plan_base base = {
		.mode = mode == WEFT__V1__MODE__MODE_UPDATE ? PLAN_UPDATE
							    : PLAN_SAFE,
	};
	struct plan *p = NULL;
	int r = plan_make(f, &base, &p, err);

	if (r == 0) {
		r = msg_send_plan(p, &base, true, take_part, v, err);
	}
	if (r == 0 && plan_light_wanted(c)) {
		r = msg_send_lightpaths(p, take_part, v, err);
	}
	if (r == 0 && cli_has(c, "commands")) {
		r = plan_commands(p, take_part, v, err);
	}
	if (r == 0 && cli_has(c, "svg")) {
		r = page_picture(f, p, &v->picture, err);
	}
	plan_free(p);
	return r;
}

/* What on_part() needs: a callback of the connection has no err of its
 * own. */
struct reception {
	struct plan_view *view;
	struct err err;
};

static int on_part(const ProtobufCMessage *msg, void *arg)
{
	struct reception *rec = arg;

	return plan_view_add(rec->view, (const Weft__V1__PlanResponse *)msg, &rec->err);
}

/* weftd plans against what it knows of the devices; f NULL: the configuration
 * in force. The parts arrive in v while the call runs. */
static int ask(struct rpc_client *client, const struct model_fabric *f, Weft__V1__PlanRequest *req,
	       struct plan_view *v, struct err *err)
{
	struct reception rec = { .view = v };
	int r;

	if (f) {
		req->name = f->config.name;
		req->config.data = (uint8_t *)f->config.text;
		req->config.len = f->config.len;
	}
	r = rpc_client_call(client, CLI_METHOD("Plan"), &req->base,
			    &weft__v1__plan_response__descriptor,
			    0, on_part, &rec, NULL, err);
	/* The callback ended the call: its error is the cause. */
	if (r == WEFT_ECANCELED && rec.err.code) {
		*err = rec.err;
		r = rec.err.code;
	}
	return r;
}

/* As the options of weft plan say. */
static int plan_online(const struct cli *c, struct rpc_client *client, const struct model_fabric *f,
		       Weft__V1__Mode mode, struct plan_view *v, struct err *err)
{
	Weft__V1__PlanRequest req = WEFT__V1__PLAN_REQUEST__INIT;

	req.mode = mode;
	/* A plan file quotes the fabric and can be large: it is sent only
	 * when it is to be written. */
	req.want_file = cli_has(c, "output");
	req.optimise = cli_has(c, "optimise");
	req.want_commands = cli_has(c, "commands");
	req.want_lightpaths = plan_light_wanted(c);
	req.want_picture = cli_has(c, "svg");
	if (cli_has(c, "keep")) {
		req.keep = (char *)cli_opt(c, "keep");
	}
	return ask(client, f, &req, v, err);
}

int cli_plan(struct cli *c, const struct model_fabric *f, Weft__V1__PlanRequest *req,
	     struct plan_view *v, struct err *err)
{
	struct rpc_client *client = NULL;
	int r = cli_connect(c, &client, err);

	if (r == 0) {
		r = ask(client, f, req, v, err);
	}
	rpc_client_close(client);
	return r;
}

void cli_warn_plan(const struct cli *c, const struct plan_view *v)
{
	for (size_t i = 0; v->summary && i < v->summary->n_unreachable; i++) {
		cli_say(c, CLI_NORMAL, "%s does not answer: planned from its last reading",
			v->summary->unreachable[i]);
	}
	for (size_t i = 0; v->summary && i < v->summary->n_warnings; i++) {
		cli_say(c, CLI_NORMAL, "warning: %s", v->summary->warnings[i]);
	}
}

/* Asks weftd when it listens; else, with a file, plans here. */
static int make_plan(struct cli *c, const struct model_fabric *f,
		     struct plan_view *v, struct err *err)
{
	struct rpc_client *client = NULL;
	Weft__V1__Mode mode;
	int r = cli_read_mode(c, &mode, err);

	if (r || (f && cli_has(c, "offline"))) {
		if (r) {
			return r;
		}
		return plan_offline(c, f, mode, v, err);
	}
	r = cli_connect(c, &client, err);
	if (r == WEFT_EUNAVAIL && f && !cli_has(c, "keep") && !cli_has(c, "optimise")) {
		cli_say(c, CLI_NORMAL, "%s: planning against dark devices", err->msg);
		err_clear(err);
		return plan_offline(c, f, mode, v, err);
	}
	if (r == 0) {
		r = plan_online(c, client, f, mode, v, err);
	}
	rpc_client_close(client);
	return r;
}

/* The fabric file, from -f or as the argument; *f stays NULL without one.
 * Refuses options that contradict each other. */
static int load(struct cli *c, struct model_fabric **f, struct err *err)
{
	const char *path = cli_opt(c, "file");

	if (path && c->argc > 0) {
		return err_set(err, WEFT_EUSAGE,
			       "weft plan: two files: %s and %s", path,
			       c->argv[0]);
	}
	if (!path && c->argc > 0) {
		path = c->argv[0];
	}
	if (cli_has(c, "optimise") && cli_has(c, "offline")) {
		return err_set(err, WEFT_EUSAGE, "weft plan: --optimise is against what weftd has "
			       "applied: no --offline");
	}
	if (cli_has(c, "keep") && (cli_has(c, "output") || cli_has(c, "offline"))) {
		return err_set(err, WEFT_EUSAGE, "weft plan: --keep asks weftd "
			       "what if: no --output, no --offline");
	}
	if (!path && cli_has(c, "offline")) {
		return err_set(err, WEFT_EUSAGE, "weft plan: --offline needs -f FABRIC.yaml");
	}
	return path ? cli_load_fabric(path, f, err) : 0;
}

/* --svg: the fabric with the plan's circuits, what is new and what goes away. */
static int draw_plan(const struct cli *c, const struct plan_view *v, struct err *err)
{
	struct marked_device *devices = x_new(v->devices.n + 1, sizeof(*devices));
	struct fabric_picture p = { .json = &v->picture, .title = "Plan of",
				    .n_devices = v->devices.n, .devices = devices };
	struct buf svg = { 0 };
	char about[160];
	int r;

	snprintf(about, sizeof(about),
		 "circuits to make: %d, to delete: %d, that stay: %d; programs of "
		 "rings to load: %d", v->summary->add, v->summary->delete_, v->summary->keep,
			 v->summary->loads);
	p.about = about;
	for (size_t i = 0; i < v->devices.n; i++) {
		const Weft__V1__PlanDevice *d = v->devices.v[i];

		devices[i].name = d->name;
		devices[i].circuits[0] = (struct marked_circuits){ CIRCUIT_NEW, d->n_add, d->add };
		devices[i].circuits[1] = (struct marked_circuits){ CIRCUIT_DELETED, d->n_delete_,
								   d->delete_ };
	}
	r = fabric_draw(&p, &svg, err);
	if (!r) {
		r = cli_write_svg(cli_opt(c, "svg"), &svg, err);
	}
	buf_fini(&svg);
	free(devices);
	return r;
}

/* Exit code 0: nothing to do; 2: changes are pending. Warnings and devices
 * that were not reached go to stderr; --output - replaces the summary. */
int cmd_plan(struct cli *c, struct err *err)
{
	const char *output = cli_opt(c, "output");
	struct model_fabric *f = NULL;
	struct plan_view v = { .full = cli_has(c, "full"), .commands = cli_has(c, "commands") };
	int r = cli_check_svg(cli_opt(c, "svg"), err);

	if (r || (r = load(c, &f, err)) || (r = make_plan(c, f, &v, err))) {
		goto out;
	}
	cli_warn_plan(c, &v);
	if (output) {
		/* It quotes the fabric, and says what devices hold. */
		r = file_write_atomic(output, buf_cstr(&v.file), v.file.len, FILE_PRIVATE, err);
	}
	if (r == 0 && cli_has(c, "svg") && v.summary) {
		r = draw_plan(c, &v, err);
	}
	if (r == 0 && !(output && strcmp(output, "-") == 0)) {
		r = plan_view_print(c, &v, err);
	}
	if (r == 0) {
		r = v.summary->nothing_to_do ? 0 : CLI_PENDING;
	}
out:
	plan_view_fini(&v);
	model_free(f);
	return r;
}
