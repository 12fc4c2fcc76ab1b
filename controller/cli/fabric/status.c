/* weft status, diff, verify, history, device list: what weftd knows. */
#include <string.h>

#include "controller/cli/core/private.h"

#define READ_CALL_MS 120000

/* ---- diff and verify ---- */

static int print_diff(struct cli *c, const Weft__V1__DiffResponse *d,
		      struct err *err)
{
	struct out *o = out_new(c->format);

	if (o) {
		wire_out_diff(o, c->format, cli_has(c, "full"), d);
	}
	return cli_print(o, err);
}

/* Names the first device that did not answer. */
static int unreachable(const Weft__V1__DiffResponse *d, struct err *err)
{
	for (size_t i = 0; i < d->n_devices; i++) {
		const Weft__V1__DeviceState *s = d->devices[i];

		if (!s->reachable) {
			return err_set(err, WEFT_EUNAVAIL, "%s: %s", s->name,
				       s->problem[0] ? s->problem
						     : "never read");
		}
	}
	for (size_t i = 0; d->hosts && i < d->hosts->n_hosts; i++) {
		const Weft__V1__HostState *h = d->hosts->hosts[i];

		if (h->problem[0]) {
			return err_set(err, WEFT_EUNAVAIL, "%s: %s", h->name,
				       h->problem);
		}
	}
	return err_set(err, WEFT_EUNAVAIL, "not every device was read");
}

static int compare(struct cli *c, const char *method,
		   const ProtobufCMessage *req, int timeout_ms,
		   struct err *err)
{
	ProtobufCMessage *msg = NULL;
	const Weft__V1__DiffResponse *d;
	int r = cli_unary(c, method, req,
			  &weft__v1__diff_response__descriptor, timeout_ms,
			  &msg, err);

	if (r) {
		return r;
	}
	d = (const Weft__V1__DiffResponse *)msg;
	r = print_diff(c, d, err);
	if (r == 0 && !d->same) {
		r = CLI_PENDING;
	} else if (r == 0 && !d->complete) {
		r = unreachable(d, err);
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

/* ---- history ---- */

int cmd_history(struct cli *c, struct err *err)
{
	Weft__V1__HistoryRequest req = WEFT__V1__HISTORY_REQUEST__INIT;
	const Weft__V1__HistoryResponse *h;
	ProtobufCMessage *msg = NULL;
	int64_t limit = 20;
	struct out *o;
	int r = cli_opt_int(c, "limit", 1, 10000, &limit, err);

	req.limit = (int32_t)limit;
	if (r || (r = cli_unary(c, CLI_METHOD("History"), &req.base,
				&weft__v1__history_response__descriptor,
				CLI_CALL_MS, &msg, err))) {
		return r;
	}
	h = (const Weft__V1__HistoryResponse *)msg;
	o = out_new(c->format);
	if (o) {
		out_array(o, "changes");
		for (size_t i = 0; i < h->n_changes; i++) {
			out_object(o, NULL);
			wire_out_change(o, c->format, h->changes[i]);
			out_end(o);
		}
		out_end(o);
	}
	r = cli_print(o, err);
	rpc_free_message(msg);
	return r;
}

/* ---- status ---- */

static int print_status(struct cli *c, const Weft__V1__StatusResponse *s,
			struct err *err)
{
	struct out *o = out_new(c->format);

	if (o) {
		wire_out_status(o, c->format, cli_has(c, "full"), s);
	}
	return cli_print(o, err);
}

/* circuits_of: a device all of whose circuits are wanted, or "". */
static int get_status(struct cli *c, const char *circuits_of,
		      Weft__V1__StatusResponse **out, struct err *err)
{
	Weft__V1__StatusRequest req = WEFT__V1__STATUS_REQUEST__INIT;
	ProtobufCMessage *msg = NULL;
	int r;

	req.circuits_of = (char *)circuits_of;
	r = cli_unary(c, CLI_METHOD("Status"), &req.base,
		      &weft__v1__status_response__descriptor, CLI_CALL_MS,
		      &msg, err);
	*out = (Weft__V1__StatusResponse *)msg;
	return r;
}

int cmd_status(struct cli *c, struct err *err)
{
	Weft__V1__StatusResponse *s;
	int r = get_status(c, "", &s, err);

	if (r == 0) {
		r = print_status(c, s, err);
		weft__v1__status_response__free_unpacked(s, NULL);
	}
	return r;
}

/* ---- device list ---- */

int cmd_device_list(struct cli *c, struct err *err)
{
	Weft__V1__StatusResponse *s;
	struct out *o;
	int r = get_status(c, "", &s, err);

	if (r) {
		return r;
	}
	o = out_new(c->format);
	if (o) {
		out_array(o, "devices");
		for (size_t i = 0; i < s->n_devices; i++) {
			const Weft__V1__DeviceState *d = s->devices[i];
			char kind[32];

			out_object(o, NULL);
			out_str(o, "name", d->name);
			out_str(o, "kind",
				wire_enum(&weft__v1__device_kind__descriptor,
					 (int)d->kind, kind, sizeof(kind)));
			out_str(o, "driver", d->driver);
			out_str(o, "address", d->address);
			out_bool(o, "reachable", d->reachable);
			out_str(o, "identity", d->identity);
			wire_out_time(o, "read_at", d->read_at_ns);
			out_end(o);
		}
		out_end(o);
	}
	weft__v1__status_response__free_unpacked(s, NULL);
	return cli_print(o, err);
}

/* ---- device show ---- */

static int print_device(struct cli *c, const Weft__V1__DeviceState *d,
			struct err *err)
{
	struct out *o = out_new(c->format);

	if (o) {
		wire_out_device(o, c->format, d);
	}
	return cli_print(o, err);
}

int cmd_device_show(struct cli *c, struct err *err)
{
	Weft__V1__StatusResponse *s;
	int r = get_status(c, c->argv[0], &s, err);

	if (r) {
		return r;
	}
	for (size_t i = 0; i < s->n_devices; i++) {
		if (strcmp(s->devices[i]->name, c->argv[0]) == 0) {
			r = print_device(c, s->devices[i], err);
		}
	}
	weft__v1__status_response__free_unpacked(s, NULL);
	return r;
}
