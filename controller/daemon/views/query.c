/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plan and verify: questions that take a while. A plan is made from the devices as
 * they are read for it and is streamed in parts; verify reads the devices and probes
 * the hosts before it compares. A client that goes away is forgotten, and the work
 * for it ends by itself.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/daemon/views/private.h"
#include "controller/webui/webui.h"
#include "lib/base/alloc.h"
#include "lib/base/log.h"
#include "lib/base/number/units.h"

/* ---- plan ---------------------------------------------------------------- */

/* A call of Plan while its plan is made. */
struct plan_call {
	const struct views *views;
	struct rpc_call *call;	/* NULL: gone */
	bool want_file;		/* as bytes that "apply" takes */
	bool want_picture;
	bool want_commands;	/* as devices would be sent them */
	bool want_light;	/* its lightpaths */
	/* While a worker packs the plan: what only weftd knows, and what it has come to. */
	uv_work_t req;
	struct plan_request *plan;
	bool planned;		/* it is done */
	int n_devices;
	struct plan_call_device *devices;	/* as apply_devices() has them */
	bool new_config;
	VEC(struct buf) parts;
	int rc;
};

struct plan_call_device {
	char name[CONF_MAX_NAME + 1];
	bool is_silent;
	const char *power_loss;
};

/* Another configuration than the one on record; also when there is none. */
static bool is_new_config(struct store *store, const struct model_fabric *f)
{
	struct store_config cfg;
	bool same;

	if (store_config(store, &cfg, NULL)) {
		return true;
	}
	same = strcmp(cfg.hash, f->hash) == 0;
	store_config_fini(&cfg);
	return !same;
}

static void keep_part(struct plan_call *p, const Weft__V1__PlanResponse *part)
{
	struct buf b = { 0 };
	char *to = buf_extend(&b, protobuf_c_message_get_packed_size(&part->base));

	protobuf_c_message_pack(&part->base, (uint8_t *)to);
	vec_push(&p->parts, b);
}

/* The plan does not know who answered, and what was applied before; the
 * summary must say: an operator applies no plan that rests on old readings without
 * knowing it. */
static void keep_summary(struct plan_call *p, const Weft__V1__PlanResponse *part)
{
	Weft__V1__PlanSummary s = *part->summary;
	Weft__V1__PlanResponse m = *part;

	s.unreachable = x_new((size_t)p->n_devices + 1, sizeof(*s.unreachable));
	for (int i = 0; i < p->n_devices; i++) {
		if (p->devices[i].is_silent) {
			s.unreachable[s.n_unreachable++] = p->devices[i].name;
		}
	}
	s.new_config = p->new_config;
	m.summary = &s;
	keep_part(p, &m);
	free(s.unreachable);
}

/* Nor does it know what a device forgets. */
static void keep_device(struct plan_call *p, const Weft__V1__PlanResponse *part)
{
	Weft__V1__PlanDevice d = *part->device;
	Weft__V1__PlanResponse m = *part;

	for (int i = 0; i < p->n_devices; i++) {
		if (strcmp(p->devices[i].name, d.name) == 0) {
			d.power_loss = (char *)p->devices[i].power_loss;
		}
	}
	m.device = &d;
	keep_part(p, &m);
}

/* Called for each part in the order of the stream; two of them lack what only
 * weftd knows. */
static int take_part(const Weft__V1__PlanResponse *part, void *arg, struct err *err)
{
	(void)err;
	switch (part->part_case) {
	case WEFT__V1__PLAN_RESPONSE__PART_SUMMARY:
		keep_summary(arg, part);
		break;
	case WEFT__V1__PLAN_RESPONSE__PART_DEVICE:
		keep_device(arg, part);
		break;
	default:
		keep_part(arg, part);
		break;
	}
	return 0;
}

/* On a worker: a plan of tens of thousands of circuits takes a while. */
static void run_pack(uv_work_t *req)
{
	struct plan_call *p = req->data;
	struct plan_request *w = p->plan;

	p->rc = msg_send_plan(w->plan, &w->snap.base, p->want_file, take_part, p, &w->err);
	if (p->rc == 0 && p->want_light) {
		p->rc = msg_send_lightpaths(w->plan, take_part, p, &w->err);
	}
}

static int send_part(const Weft__V1__PlanResponse *part, void *arg, struct err *err)
{
	const struct plan_call *p = arg;

	return rpc_send(p->call, &part->base, err);
}

/* Commands that would be sent to devices, as dry runs of their drivers give them. */
static int send_batch(const struct dry_run_batch *o, void *arg, struct err *err)
{
	const struct plan_request *w = arg;

	return msg_send_batch(w->fabric, o, send_part, w->arg, err);
}

static int no_picture(const char *why, struct err *err)
{
	return page_find("/") ? err_set(err, WEFT_EUNAVAIL, "%s", why)
			      : build_lacks("pictures", err);
}

/* The picture that the worker made of the plan, in pieces. */
static int send_picture(const struct plan_request *w, struct err *err)
{
	Weft__V1__PlanResponse part = WEFT__V1__PLAN_RESPONSE__INIT;
	const struct plan_call *p = w->arg;
	int r = w->picture.len ? 0 : no_picture("there is no picture of the plan", err);

	part.part_case = WEFT__V1__PLAN_RESPONSE__PART_PICTURE;
	for (size_t at = 0; r == 0 && at < w->picture.len; at += part.picture.len) {
		part.picture.data = (uint8_t *)w->picture.data + at;
		part.picture.len = w->picture.len - at < MSG_PIECE ? w->picture.len - at
			: MSG_PIECE;
		r = rpc_send(p->call, &part.base, err);
	}
	return r;
}

/* The error of the call is the first of several; each gets its place and words. */
static void add_mistakes(struct rpc_call *call, const struct err_list *errs)
{
	char place[ERR_FILE_MAX + 24];

	for (int i = 0; errs->n > 1 && i < errs->n; i++) {
		snprintf(place, sizeof(place), "%s:%d:%d", errs->v[i].file, errs->v[i].line,
			 errs->v[i].col);
		rpc_call_add_resource(call, "mistake", place, errs->v[i].msg);
	}
}

/* Sends what there is and ends the call; a client that is gone gets nothing. */
static void end_plan(struct plan_call *p, int r)
{
	struct plan_request *w = p->plan;

	for (size_t i = 0; i < p->parts.n; i++) {
		if (p->call && r == 0) {
			r = rpc_send_packed(p->call, p->parts.v[i].data, p->parts.v[i].len,
					    &w->err);
		}
		buf_fini(&p->parts.v[i]);
	}
	if (p->call && r == 0 && p->want_commands) {
		r = apply_explain(p->views->env->apply, w->plan, send_batch, w, &w->err);
	}
	if (p->call && r == 0 && p->want_picture) {
		r = send_picture(w, &w->err);
	}
	if (p->call && r) {
		add_mistakes(p->call, &w->errs);
	}
	call_end(p->call, r, &w->err);
	vec_fini(&p->parts);
	free(p->devices);
	free(p);
	plan_request_free(w);
}

static void after_pack(uv_work_t *req, int status)
{
	struct plan_call *p = req->data;

	(void)status;
	end_plan(p, p->rc);
}

/* What only weftd knows, for the worker, while the devices are those of the plan. */
static int copy_facts(struct plan_request *w, struct err *err)
{
	struct plan_call *p = w->arg;
	const struct apply_device *a = apply_devices(p->views->env->apply, &p->n_devices);

	(void)err;
	p->new_config = is_new_config(p->views->env->store, w->fabric);
	p->devices = x_new((size_t)p->n_devices + 1, sizeof(*p->devices));
	for (int i = 0; i < p->n_devices; i++) {
		struct plan_call_device *d = &p->devices[i];

		snprintf(d->name, sizeof(d->name), "%s", a[i].name);
		d->is_silent = !a[i].reachable && apply_is_read(&a[i]);
		d->power_loss = power_loss_name(&a[i]);
	}
	return 0;
}

static void on_planned(struct plan_request *w)
{
	struct plan_call *p = w->arg;
	int r = w->rc;

	p->planned = true;
	if (r || !p->call) {
		end_plan(p, r);
		return;
	}
	p->req.data = p;
	uv_queue_work(p->views->env->loop, &p->req, run_pack, after_pack);
}

/* A floor of capacity that is only asked about, in place of the configuration's.
 * WEFT_EINVAL, also with a plan file, which is made again from its configuration
 * when it is applied. */
static int read_keep(const Weft__V1__PlanRequest *req, struct plan_request *w, struct err *err)
{
	if (!req->keep[0]) {
		return 0;
	}
	if (req->want_file) {
		return err_set(err, WEFT_EINVAL, "keep: a plan file follows "
			       "the configuration");
	}
	w->has_keep = true;
	if (unit_parse(UNIT_PPM, req->keep, &w->keep_ppm, err)) {
		return err_wrap(err, "keep");
	}
	return w->keep_ppm >= 0 && w->keep_ppm <= MODEL_PPM ? 0 :
		err_set(err, WEFT_EINVAL, "keep: %s is not between 0%% and "
			"100%%", req->keep);
}

/* What is to be left of the light that there is. */
static int read_aim(const struct views *views, const Weft__V1__PlanRequest *req,
		    struct plan_request *w, struct err *err)
{
	w->aim = req->optimise ? PLAN_OPTIMISE : PLAN_REPAIR;
	snprintf(w->evacuated, sizeof(w->evacuated), "%s", req->evacuate);
	if (plan_request_check_aim(w, err)) {
		return err->code;
	}
	return w->evacuated[0] ? drain_check_name(views->drain, req->evacuate, err) : 0;
}

/* Its client is gone: no other wants the plan. */
static void on_plan_cancelled(struct rpc_call *call, void *arg)
{
	struct plan_call *p = arg;

	(void)call;
	p->call = NULL;
	if (!p->planned) {
		plan_request_cancel(p->plan);
	}
}

/* Whose share it is. */
static void set_user(struct plan_request *w, const struct daemon_env *env,
		     const struct rpc_call *call)
{
	char text[RPC_PEER_TEXT_MAX];

	w->by = access_is_operator(env->access, rpc_call_peer(call)) ? PLAN_BY_OPERATOR
								  : PLAN_BY_OTHER;
	snprintf(w->user, sizeof(w->user), "%s", call_user(call, text, sizeof(text)));
}

void handle_plan(struct rpc_call *call, const ProtobufCMessage *msg, void *arg)
{
	const Weft__V1__PlanRequest *req = (const void *)msg;
	const struct views *views = arg;
	struct plan_call *p = x_new(1, sizeof(*p));
	struct err err = { 0 };
	struct plan_request *w;
	int r = plan_request_new(views->queue, req->name,
				 req->config.len ? req->config.data : NULL,
				 req->config.len, &w, &err);

	if (r == 0 && ((r = read_keep(req, w, &err)) || (r = read_aim(views, req, w, &err)))) {
		plan_request_free(w);
	}
	if (r) {
		free(p);
		rpc_finish_err(call, &err);
		return;
	}
	p->views = views;
	p->call = call;
	p->plan = w;
	p->want_file = req->want_file;
	p->want_picture = w->with_picture = req->want_picture;
	p->want_commands = req->want_commands;
	p->want_light = req->want_lightpaths;
	rpc_call_on_cancel(call, on_plan_cancelled, p);
	w->mode = req->mode == WEFT__V1__MODE__MODE_UPDATE ? PLAN_UPDATE
							   : PLAN_SAFE;
	set_user(w, views->env, call);
	/* Commands are those of sessions that are open. */
	w->brief = !req->want_commands;
	w->arg = p;
	w->prepare = copy_facts;
	w->done = on_planned;
	plan_request_start(w);
}

/* ---- verify -------------------------------------------------------------- */

/* A call of Verify while devices are read and hosts probed. */
struct verify_call {
	const struct views *views;
	struct rpc_call *call;	/* NULL: gone */
	struct plan_request *slot;	/* NULL: waits for it */
};

/* Also for a client that is gone: jobs may go on after the reading. */
static void after_probe(void *arg)
{
	struct verify_call *v = arg;
	const struct views *views = v->views;
	struct plan_request *slot = v->slot;

	if (v->call) {
		answer_diff(views, v->call);
	}
	free(v);
	plan_request_free(slot);
	jobs_devices_read(views->jobs);
}

/* Devices that do not answer are in the answer, as not reachable. */
static void after_read(int rc, const struct err *err, void *arg)
{
	struct verify_call *v = arg;

	if (rc) {
		log_info("weftd", "verify: %s", err->msg);
	}
	hosts_probe(v->views->hosts, after_probe, v);
}

/* Has the slot, and keeps it until the hosts were probed. */
static void read_now(struct plan_request *slot)
{
	struct verify_call *v = slot->arg;
	struct apply *apply = v->views->env->apply;

	v->slot = slot;
	apply_reading_for(apply, STORE_BY_VERIFY);
	apply_read(apply, after_read, v);
}

void handle_verify(struct rpc_call *call, const ProtobufCMessage *msg, void *arg)
{
	const struct views *views = arg;
	struct verify_call *v = x_new(1, sizeof(*v));

	(void)msg;
	v->views = views;
	v->call = call;
	rpc_call_on_cancel(call, call_forget, &v->call);
	plan_queue_slot(views->queue, read_now, v);
}

/* ---- the picture --------------------------------------------------------- */

void handle_picture(struct rpc_call *call, const ProtobufCMessage *msg, void *arg)
{
	const struct views *views = arg;
	const struct job_rows *rows = job_status_rows(views->job_status);
	Weft__V1__GetPictureResponse m = WEFT__V1__GET_PICTURE_RESPONSE__INIT;
	struct err err = { 0 };
	const char *why = views->env->applied
				  ? "there is no picture yet: jobs are still being planned"
				  : "there is no picture yet: nothing was applied";
	int r = rows->picture ? 0 : no_picture(why, &err);

	(void)msg;
	m.total_bytes = (int64_t)rows->picture_len;
	for (size_t at = 0; r == 0 && at < rows->picture_len; at += m.data.len) {
		m.data.data = (uint8_t *)rows->picture + at;
		m.data.len = rows->picture_len - at < MSG_PIECE ? rows->picture_len - at
			: MSG_PIECE;
		r = rpc_send(call, &m.base, &err);
	}
	call_end(call, r, &err);
}
