/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What weftd knows: status, diff, verify, history, external changes, devices,
 * and the levels of its log.
 *
 * Each command is one unary call whose answer report.c of proto_convert
 * writes, for people as tables and for programs field by field. diff compares
 * the last readings with the intent and touches no device; verify has every
 * device read first. Both exit with 2 when something differs, and with 69
 * when nothing differs but not all was read.
 */
#include <stdlib.h>
#include <string.h>

#include "controller/cli/core/private.h"
#include "controller/cli/fabric/fabric_picture.h"
#include "lib/base/alloc.h"

#define READ_CALL_MS 120000	/* reads every device */

/* ---- the picture of --svg ---- */

/* What is wrong with a device, but for its circuits, in a few words. */
static void describe_problem(const Weft__V1__DeviceState *s, char *text, size_t size)
{
	const Weft__V1__ProgramState *p = s->program;

	if (!s->reachable && s->driver[0] && !s->elsewhere) {
		snprintf(text, size, "%s", s->problem[0] ? s->problem : "never read");
	} else if (s->unusable_count) {
		snprintf(text, size, "%d ports out of use: %s", s->unusable_count,
			 s->n_unusable ? s->unusable[0] : "");
	} else if (p && p->lost_count) {
		snprintf(text, size, "%d resonators hold no wave: %s", p->lost_count,
			 p->n_lost ? p->lost[0] : "");
	} else if (p && p->failed_count) {
		snprintf(text, size, "%d parts have failed: %s", p->failed_count,
			 p->n_failed ? p->failed[0] : "");
	} else if (p && !p->equal) {
		snprintf(text, size, "its program is not as intended");
	}
}

/* Nothing without --svg. */
static int draw(struct cli *c, const char *title, bool only_marked, Weft__V1__DeviceState **v,
		size_t n,
		struct err *err)
{
	struct marked_device *devices = x_new(n + 1, sizeof(*devices));
	struct fabric_picture p = { .title = title, .only_marked = only_marked, .n_devices = n,
				    .devices = devices };
	size_t missing = 0, unexpected = 0;
	char about[120];
	int r;

	for (size_t i = 0; i < n; i++) {
		struct marked_device *d = &devices[i];

		d->name = v[i]->name;
		describe_problem(v[i], d->problem, sizeof(d->problem));
		d->circuits[0] = (struct marked_circuits){ CIRCUIT_MISSING, v[i]->n_missing,
							   v[i]->missing };
		d->circuits[1] = (struct marked_circuits){ CIRCUIT_UNEXPECTED, v[i]->n_unexpected,
							   v[i]->unexpected };
		d->circuits[2] = (struct marked_circuits){ CIRCUIT_PENDING, v[i]->n_pending,
							   v[i]->pending };
		missing += v[i]->n_missing;
		unexpected += v[i]->n_unexpected;
	}
	snprintf(about, sizeof(about),
		 "%zu devices as last read: %zu circuits missing, %zu unexpected",
		 n, missing, unexpected);
	p.about = about;
	r = fabric_draw_current(c, &p, err);
	free(devices);
	return r;
}

/* ---- status, diff, verify ---- */

/* State, last and open change, holds, repairs, devices, links and jobs. */
static void show_status(const struct cli *c, struct out *o, const void *answer)
{
	msg_out_status(o, c->format, cli_has(c, "full"), answer);
}

/* circuits_of: a device all of whose circuits are wanted, or "" for none: a
 * switch has hundreds, which only "device show" lists. */
static int call_status(struct cli *c, const char *circuits_of, cli_show_fn show, struct err *err)
{
	Weft__V1__StatusRequest req = WEFT__V1__STATUS_REQUEST__INIT;

	req.circuits_of = (char *)circuits_of;
	req.brief = c->format == OUT_TABLE;
	return cli_call(c, CLI_METHOD("Status"), &req.base, &weft__v1__status_response__descriptor,
			CLI_CALL_MS, show, err);
}

static int print_status(const struct cli *c, const void *answer, struct err *err)
{
	struct out *o = out_new(c->format);

	show_status(c, o, answer);
	return cli_print(o, err);
}

int cmd_status(struct cli *c, struct err *err)
{
	Weft__V1__StatusRequest req = WEFT__V1__STATUS_REQUEST__INIT;
	ProtobufCMessage *msg = NULL;
	const Weft__V1__StatusResponse *s;
	int r = cli_check_svg(cli_opt(c, "svg"), err);

	req.brief = c->format == OUT_TABLE && !cli_has(c, "full") && !cli_opt(c, "svg");
	if (r || (r = cli_unary(c, CLI_METHOD("Status"), &req.base,
				&weft__v1__status_response__descriptor, CLI_CALL_MS, &msg, err))) {
		return r;
	}
	s = (const Weft__V1__StatusResponse *)msg;
	r = print_status(c, s, err);
	if (r == 0) {
		r = draw(c, "Status of", false, s->devices, s->n_devices, err);
	}
	rpc_free_message(msg);
	return r;
}

/* Names the first device or host that did not answer; called when the answer
 * is not complete, and always returns an error. */
static int find_unreachable(const Weft__V1__Diff *d, struct err *err)
{
	for (size_t i = 0; i < d->n_devices; i++) {
		const Weft__V1__DeviceState *s = d->devices[i];

		if (!s->reachable && !s->elsewhere) {
			return err_set(err, WEFT_EUNAVAIL, "%s: %s", s->name,
				       s->problem[0] ? s->problem : "never read");
		}
	}
	for (size_t i = 0; d->links && i < d->links->n_hosts; i++) {
		const Weft__V1__HostState *h = d->links->hosts[i];

		if (h->problem[0]) {
			return err_set(err, WEFT_EUNAVAIL, "%s: %s", h->name, h->problem);
		}
	}
	return err_set(err, WEFT_EUNAVAIL, "not every device was read");
}

static int print_diff(struct cli *c, const Weft__V1__Diff *d, struct err *err)
{
	struct out *o = out_new(c->format);

	msg_out_diff(o, c->format, cli_has(c, "full"), d);
	return cli_print(o, err);
}

/* Of Diff and Verify, whose responses are alike. Prints first and judges then: also what is
 * incomplete is worth seeing. */
static int compare(struct cli *c, const char *method, const ProtobufCMessage *req,
		   int timeout_ms, struct err *err)
{
	ProtobufCMessage *msg = NULL;
	const Weft__V1__Diff *d;
	int r = cli_check_svg(cli_opt(c, "svg"), err);

	if (r || (r = cli_unary(c, method, req, &weft__v1__diff_response__descriptor, timeout_ms,
				&msg,
				err))) {
		return r;
	}
	d = ((const Weft__V1__DiffResponse *)msg)->diff;
	r = print_diff(c, d, err);
	if (r == 0) {
		r = draw(c, "Differences of", true, d->devices, d->n_devices, err);
	}
	if (r == 0 && !d->same) {
		r = CLI_PENDING;
	} else if (r == 0 && !d->complete) {
		r = find_unreachable(d, err);
	}
	rpc_free_message(msg);
	return r;
}

int cmd_diff(struct cli *c, struct err *err)
{
	Weft__V1__DiffRequest req = WEFT__V1__DIFF_REQUEST__INIT;

	return compare(c, CLI_METHOD("Diff"), &req.base, CLI_CALL_MS, err);
}

int cmd_verify(struct cli *c, struct err *err)
{
	Weft__V1__VerifyRequest req = WEFT__V1__VERIFY_REQUEST__INIT;

	return compare(c, CLI_METHOD("Verify"), &req.base, READ_CALL_MS, err);
}

/* ---- history, external changes ---- */

/* "changes", newest first: id, outcome, generation, began, who, proof,
 * downtime, what; below them what each was to do to jobs. */
static void show_history(const struct cli *c, struct out *o, const void *answer)
{
	const Weft__V1__HistoryResponse *h = answer;

	if (c->format == OUT_TABLE) {
		msg_out_table(o, "changes", msg_change_columns, (void *const *)h->changes,
			      h->n_changes);
		for (size_t i = 0; i < h->n_changes; i++) {
			msg_note_change(o, h->changes[i]);
		}
	} else {
		msg_out_fields(o, h, NULL);
	}
}

int cmd_history(struct cli *c, struct err *err)
{
	Weft__V1__HistoryRequest req = WEFT__V1__HISTORY_REQUEST__INIT;
	int64_t limit = 20;
	int r = cli_opt_int(c, "limit", 1, 10000, &limit, err);

	req.limit = (int32_t)limit;
	if (r) {
		return r;
	}
	return cli_call(c, CLI_METHOD("History"), &req.base,
			&weft__v1__history_response__descriptor, CLI_CALL_MS,
			show_history, err);
}

static void show_external_changes(const struct cli *c, struct out *o, const void *answer)
{
	const Weft__V1__ExternalChangesResponse *e = answer;

	msg_out_external_changes(o, c->format, "changes", e->changes, e->n_changes);
}

/* "changes", newest first: of one device, or of all. */
int cmd_external_changes(struct cli *c, struct err *err)
{
	Weft__V1__ExternalChangesRequest req = WEFT__V1__EXTERNAL_CHANGES_REQUEST__INIT;
	int64_t limit = 100;
	int r = cli_opt_int(c, "limit", 1, 5000, &limit, err);

	req.limit = (int32_t)limit;
	req.device = c->argc ? c->argv[0] : (char *)"";
	req.open = cli_has(c, "open");
	if (r) {
		return r;
	}
	return cli_call(c, CLI_METHOD("ExternalChanges"), &req.base,
			&weft__v1__external_changes_response__descriptor, CLI_CALL_MS,
			show_external_changes, err);
}

/* ---- device list, device show ---- */

static const struct msg_column device_columns[] = {
	{ "name", "name", NULL }, { "kind", "kind", NULL }, { "driver", "driver", NULL },
	{ "address", "address", NULL }, { "reachable", "reachable", NULL },
	{ "identity", "identity", NULL }, { "read_at", "read_at_ns", NULL },
	{ NULL, NULL, NULL },
};

/* Without circuits, which "device show" has. */
static void show_devices(const struct cli *c, struct out *o, const void *answer)
{
	const Weft__V1__StatusResponse *s = answer;

	if (c->format == OUT_TABLE) {
		msg_out_table(o, "devices", device_columns, (void *const *)s->devices,
			      s->n_devices);
	} else {
		msg_out_list(o, "devices", (void *const *)s->devices, s->n_devices);
	}
}

int cmd_device_list(struct cli *c, struct err *err)
{
	return call_status(c, "", show_devices, err);
}

static void show_device(const struct cli *c, struct out *o, const void *answer)
{
	const Weft__V1__StatusResponse *s = answer;

	for (size_t i = 0; i < s->n_devices; i++) {
		if (strcmp(s->devices[i]->name, c->argv[0]) == 0) {
			msg_out_device(o, c->format, s->devices[i]);
		}
	}
}

/* The status of all devices with the circuits of this one; weftd answers
 * WEFT_ENOTFOUND for a name that it does not know. */
int cmd_device_show(struct cli *c, struct err *err)
{
	return call_status(c, c->argv[0], show_device, err);
}

/* ---- log ---- */

static void show_fields(const struct cli *c, struct out *o, const void *answer)
{
	(void)c;
	msg_out_fields(o, answer, NULL);
}

/* The levels in force, after they were set when there is an argument. */
int cmd_log(struct cli *c, struct err *err)
{
	Weft__V1__LogRequest req = WEFT__V1__LOG_REQUEST__INIT;

	if (c->argc > 0) {
		req.levels = c->argv[0];
	}
	return cli_call(c, CLI_METHOD("Log"), &req.base, &weft__v1__log_response__descriptor,
			CLI_CALL_MS, show_fields, err);
}
