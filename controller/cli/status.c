/* weft status, diff, verify, history, device list: what weftd knows. */
#include <stdio.h>
#include <string.h>

#include "controller/cli/private.h"
#include "lib/base/clk.h"

#define NS_PER_S INT64_C(1000000000)
#define READ_CALL_MS 120000
#define SHOWN 20	/* differences of a device in a table, without --full */

static const char *level_name(Weft__V1__Level level, char *buf, int size)
{
	return cli_enum(&weft__v1__level__descriptor, (int)level, buf, size);
}

static bool is_same(const Weft__V1__DeviceState *d)
{
	const Weft__V1__ProgramState *p = d->program;

	return d->n_missing == 0 && d->n_unexpected == 0 &&
	       d->n_pending == 0 && (!p || (p->equal && p->unlocked == 0));
}

/* ---- devices ---- */

static const char *program_text(const Weft__V1__ProgramState *p, char *buf,
				int size)
{
	if (!p || (!p->wanted && !p->loaded)) {
		return "";
	}
	if (p->equal && p->unlocked > 0) {
		snprintf(buf, (size_t)size, "%u steps, %d not locked",
			 p->loaded_steps, p->unlocked);
	} else if (p->equal) {
		snprintf(buf, (size_t)size, "%u steps", p->loaded_steps);
	} else if (!p->wanted) {
		snprintf(buf, (size_t)size, "unexpected");
	} else {
		snprintf(buf, (size_t)size, "%s",
			 p->loaded ? "another one" : "missing");
	}
	return buf;
}

/* How old the last reading is: proof is of then, not of now. */
void cli_out_age(struct out *o, const char *key, int64_t read_at_ns)
{
	int64_t s = (clk_wall_ns() - read_at_ns) / NS_PER_S;

	if (read_at_ns == 0) {
		out_str(o, key, "never");
	} else if (s < 120) {
		out_fmt(o, key, "%lld s ago", (long long)(s > 0 ? s : 0));
	} else if (s < 120 * 60) {
		out_fmt(o, key, "%lld min ago", (long long)(s / 60));
	} else {
		out_fmt(o, key, "%lld h ago", (long long)(s / 3600));
	}
}

static void out_device_row(struct out *o, const Weft__V1__DeviceState *d)
{
	char text[64];

	out_object(o, NULL);
	out_str(o, "device", d->name);
	out_str(o, "driver", d->driver);
	out_str(o, "reachable", d->reachable ? "yes" : "NO");
	out_str(o, "proof", level_name(d->level, text, sizeof(text)));
	cli_out_age(o, "read", d->read_at_ns);
	out_int(o, "circuits", d->circuits);
	out_int(o, "missing", (int64_t)d->n_missing);
	out_int(o, "unexpected", (int64_t)d->n_unexpected);
	out_int(o, "pending", d->pending_count);
	out_str(o, "program", program_text(d->program, text, sizeof(text)));
	out_str(o, "problem", d->problem);
	out_end(o);
}

static void out_program(struct out *o, const Weft__V1__ProgramState *p)
{
	out_object(o, "program");
	out_bool(o, "wanted", p->wanted);
	out_bool(o, "loaded", p->loaded);
	out_bool(o, "equal", p->equal);
	out_int(o, "wanted_steps", p->wanted_steps);
	out_int(o, "loaded_steps", p->loaded_steps);
	out_int(o, "unlocked", p->unlocked);
	out_str(o, "lock_detail", p->lock_detail);
	out_end(o);
}

static void out_device_object(struct out *o, const Weft__V1__DeviceState *d)
{
	char text[64];

	out_object(o, NULL);
	out_str(o, "name", d->name);
	out_str(o, "kind", cli_enum(&weft__v1__device_kind__descriptor,
				    (int)d->kind, text, sizeof(text)));
	out_str(o, "driver", d->driver);
	out_str(o, "address", d->address);
	out_bool(o, "reachable", d->reachable);
	out_bool(o, "ever_read", d->ever_read);
	cli_out_time(o, "read_at", d->read_at_ns);
	out_bool(o, "restarted", d->restarted);
	out_str(o, "identity", d->identity);
	out_str(o, "problem", d->problem);
	out_str(o, "proof", level_name(d->level, text, sizeof(text)));
	out_int(o, "circuits", d->circuits);
	cli_out_circuits(o, "missing", d->missing, d->n_missing);
	cli_out_circuits(o, "unexpected", d->unexpected, d->n_unexpected);
	cli_out_circuits(o, "pending", d->pending, d->n_pending);
	out_int(o, "pending_count", d->pending_count);
	if (d->program) {
		out_program(o, d->program);
	}
	out_end(o);
}

static void out_devices(const struct cli *c, struct out *o,
			Weft__V1__DeviceState *const *v, size_t n)
{
	out_array(o, "devices");
	for (size_t i = 0; i < n; i++) {
		if (c->format == OUT_TABLE) {
			out_device_row(o, v[i]);
		} else {
			out_device_object(o, v[i]);
		}
	}
	out_end(o);
}

/* Tables name each difference in a list of its own. */
static void out_one_kind(struct out *o, const Weft__V1__DeviceState *d,
			 const char *what, Weft__V1__Circuit *const *v,
			 size_t n, bool full)
{
	size_t shown = full || n <= SHOWN ? n : SHOWN;

	for (size_t i = 0; i < shown; i++) {
		out_object(o, NULL);
		out_str(o, "device", d->name);
		out_str(o, "what", what);
		out_fmt(o, "circuit", "in %d -> out %d", v[i]->in, v[i]->out);
		if (v[i]->from[0] || v[i]->to[0]) {
			out_fmt(o, "ports", "%s -> %s",
				v[i]->from[0] ? v[i]->from : "?",
				v[i]->to[0] ? v[i]->to : "?");
		} else {
			out_str(o, "ports", "");
		}
		out_str(o, "owner", v[i]->owner);
		out_end(o);
	}
	if (shown < n) {
		out_object(o, NULL);
		out_str(o, "device", d->name);
		out_str(o, "what", what);
		out_fmt(o, "circuit", "and %zu more (--full)", n - shown);
		out_str(o, "ports", "");
		out_str(o, "owner", "");
		out_end(o);
	}
}

static void out_differences(const struct cli *c, struct out *o,
			    Weft__V1__DeviceState *const *v, size_t n,
			    bool full)
{
	size_t count = 0;

	for (size_t i = 0; i < n; i++) {
		count += v[i]->n_missing + v[i]->n_unexpected +
			 v[i]->n_pending;
	}
	if (c->format != OUT_TABLE || count == 0) {
		return;
	}
	out_array(o, "differences");
	for (size_t i = 0; i < n; i++) {
		const Weft__V1__DeviceState *d = v[i];

		out_one_kind(o, d, "missing", d->missing, d->n_missing, full);
		out_one_kind(o, d, "unexpected", d->unexpected,
			     d->n_unexpected, full);
		out_one_kind(o, d, "pending", d->pending, d->n_pending, full);
	}
	out_end(o);
}

/* ---- diff and verify ---- */

static int print_diff(struct cli *c, const Weft__V1__DiffResponse *d,
		      struct err *err)
{
	struct out *o = out_new(c->format);

	if (o) {
		out_int(o, "generation", d->generation);
		out_bool(o, "same", d->same);
		out_bool(o, "complete", d->complete);
		out_devices(c, o, d->devices, d->n_devices);
		out_differences(c, o, d->devices, d->n_devices,
				cli_has(c, "full"));
		cli_out_hosts(c, o, d->hosts, cli_has(c, "full"));
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

static void out_change(const struct cli *c, struct out *o,
		       const Weft__V1__Change *ch)
{
	out_int(o, c->format == OUT_TABLE ? "change" : "id", ch->id);
	out_str(o, "outcome", ch->outcome);
	out_int(o, "generation", ch->generation);
	cli_out_time(o, "started_at", ch->started_at_ns);
	cli_out_time(o, "ended_at", ch->ended_at_ns);
	out_str(o, "who", ch->who);
	out_str(o, "config", ch->config_name);
	out_str(o, "comment", ch->comment);
	out_str(o, "summary", ch->summary);
	if (c->format != OUT_TABLE) {
		out_str(o, "config_sha256", ch->config_sha256);
		out_bool(o, "undoing", ch->undoing);
		out_int(o, "superseded_by", ch->superseded_by);
		out_str(o, "trace_id", ch->trace_id);
	}
}

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
			out_change(c, o, h->changes[i]);
			out_end(o);
		}
		out_end(o);
	}
	r = cli_print(o, err);
	rpc_free_message(msg);
	return r;
}

/* ---- status ---- */

static const Weft__V1__DeviceState *
find_device(const Weft__V1__StatusResponse *s, const char *name)
{
	for (size_t i = 0; i < s->n_devices; i++) {
		if (strcmp(s->devices[i]->name, name) == 0) {
			return s->devices[i];
		}
	}
	return NULL;
}

/* A job's light is as good as that of its worst device, and unverified when
 * one does not answer or differs from what is intended. */
static Weft__V1__Level job_level(const Weft__V1__StatusResponse *s,
				 const Weft__V1__PlanJob *j)
{
	Weft__V1__Level least = WEFT__V1__LEVEL__LEVEL_MEASURED;

	for (size_t i = 0; i < j->n_devices; i++) {
		const Weft__V1__DeviceState *d = find_device(s, j->devices[i]);

		if (!d || !d->reachable || !is_same(d)) {
			return WEFT__V1__LEVEL__LEVEL_UNVERIFIED;
		}
		least = d->level < least ? d->level : least;
	}
	return j->n_devices ? least : WEFT__V1__LEVEL__LEVEL_UNVERIFIED;
}

static const char *light_name(const Weft__V1__PlanJob *j,
			      Weft__V1__Level level)
{
	if (j->loss) {
		return j->loss->rate > 0 ? "degraded" : "cut off";
	}
	return level >= WEFT__V1__LEVEL__LEVEL_READ_BACK ? "up" : "unverified";
}

/* What is left of a job, and what was: its own row is of the whole. */
static void out_loss(const struct cli *c, struct out *o,
		     const Weft__V1__JobLoss *l)
{
	out_object(o, "loss");
	out_int(o, "dead_circuits", l->dead);
	out_str(o, "device", l->device);
	out_int(o, "in", l->in);
	out_int(o, "out", l->out);
	out_int(o, "dead_arcs", l->dead_arcs);
	out_int(o, "arcs", l->arcs);
	out_real(o, "rate", l->rate);
	if (l->rate > 0) {
		out_int(o, "steps", l->steps);
		out_str(o, "bandwidth_factor", l->bandwidth_factor);
		cli_out_ns(c, o, "time", l->time_ns);
		cli_out_ns(c, o, "bound", l->bound_ns);
	} else {
		out_str(o, "problem", l->problem);
	}
	out_end(o);
}

static void out_job(const struct cli *c, struct out *o,
		    const Weft__V1__StatusResponse *s,
		    const Weft__V1__PlanJob *j)
{
	Weft__V1__Level level = job_level(s, j);
	char text[32];

	out_object(o, NULL);
	out_str(o, c->format == OUT_TABLE ? "job" : "name", j->name);
	out_str(o, "light", light_name(j, level));
	out_str(o, "proof", level_name(level, text, sizeof(text)));
	out_str(o, "collective", j->collective);
	out_str(o, "algorithm", j->algorithm);
	out_str(o, "topology",
		!j->topology[0] && j->n_devices == 1 ? j->devices[0]
						     : j->topology);
	out_int(o, "nodes", j->nodes);
	if (c->format == OUT_TABLE) {
		out_fmt(o, "rate", "%.1f %%",
			j->loss ? 100 * j->loss->rate : 100.0);
	}
	out_int(o, "steps", j->steps);
	cli_out_ns(c, o, "time", j->time_ns);
	cli_out_ns(c, o, "bound", j->bound_ns);
	if (c->format != OUT_TABLE && j->loss) {
		out_loss(c, o, j->loss);
	}
	if (c->format != OUT_TABLE) {
		out_real(o, "gap", j->gap);
		out_int(o, "retune_hidden_ns", j->retune_hidden_ns);
		out_fmt(o, "schedule", "weft schedule export --job %s",
			j->name);
	}
	out_end(o);
}

static void out_jobs(const struct cli *c, struct out *o,
		     const Weft__V1__StatusResponse *s)
{
	if (!s->jobs_known && s->jobs_problem[0]) {
		out_str(o, "jobs_problem", s->jobs_problem);
	} else if (!s->jobs_known && s->fabric[0]) {
		out_note(o, "jobs: still being planned");
	}
	out_array(o, "jobs");
	for (size_t i = 0; i < s->n_jobs; i++) {
		out_job(c, o, s, s->jobs[i]);
	}
	out_end(o);
	cli_note_hidden(o, s->jobs, s->n_jobs);
	if (s->n_jobs > 0) {
		out_note(o, "schedules: weft schedule export --job NAME -o "
			    "FILE");
	}
}

static void out_head(struct out *o, const Weft__V1__StatusResponse *s)
{
	char text[32];

	out_str(o, "state", cli_enum(&weft__v1__state__descriptor,
				     (int)s->state, text, sizeof(text)));
	if (s->advice[0]) {
		out_str(o, "advice", s->advice);
	}
	out_str(o, "fabric", s->fabric);
	out_int(o, "generation", s->generation);
	out_machine_only(o);
	out_str(o, "state_uuid", s->state_uuid);
	out_machine_only(o);
	out_str(o, "config_sha256", s->config_sha256);
	out_machine_only(o);
	out_str(o, "version", s->version);
}

static void out_named_change(const struct cli *c, struct out *o,
			     const char *key, const Weft__V1__Change *ch)
{
	if (!ch) {
		return;
	}
	if (c->format == OUT_TABLE) {
		char when[32];

		out_fmt(o, key, "%lld %s at %s by %s%s%s%s%s",
			(long long)ch->id, ch->outcome,
			clk_iso(ch->started_at_ns, when, sizeof(when)),
			ch->who, ch->comment[0] ? ": " : "", ch->comment,
			ch->summary[0] ? "; " : "", ch->summary);
		return;
	}
	out_object(o, key);
	out_change(c, o, ch);
	out_end(o);
}

static void out_confirm(struct out *o, const Weft__V1__Confirm *m)
{
	if (m) {
		out_object(o, "confirm");
		out_int(o, "change", m->change);
		cli_out_time(o, "by", m->by_at_ns);
		out_int(o, "back_to", m->back_to);
		out_end(o);
	}
}

static int print_status(struct cli *c, const Weft__V1__StatusResponse *s,
			struct err *err)
{
	struct out *o = out_new(c->format);

	if (o) {
		out_head(o, s);
		out_named_change(c, o, "last_change", s->last);
		out_named_change(c, o, "open_change", s->open);
		out_confirm(o, s->confirm);
		if (s->n_holds > 0) {
			cli_out_holds(o, s->holds, s->n_holds);
		}
		out_devices(c, o, s->devices, s->n_devices);
		out_differences(c, o, s->devices, s->n_devices,
				cli_has(c, "full"));
		cli_out_hosts(c, o, s->hosts, cli_has(c, "full"));
		out_jobs(c, o, s);
	}
	return cli_print(o, err);
}

static int get_status(struct cli *c, Weft__V1__StatusResponse **out,
		      struct err *err)
{
	Weft__V1__StatusRequest req = WEFT__V1__STATUS_REQUEST__INIT;
	ProtobufCMessage *msg = NULL;
	int r = cli_unary(c, CLI_METHOD("Status"), &req.base,
			  &weft__v1__status_response__descriptor, CLI_CALL_MS,
			  &msg, err);

	*out = (Weft__V1__StatusResponse *)msg;
	return r;
}

int cmd_status(struct cli *c, struct err *err)
{
	Weft__V1__StatusResponse *s;
	int r = get_status(c, &s, err);

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
	int r = get_status(c, &s, err);

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
				cli_enum(&weft__v1__device_kind__descriptor,
					 (int)d->kind, kind, sizeof(kind)));
			out_str(o, "driver", d->driver);
			out_str(o, "address", d->address);
			out_bool(o, "reachable", d->reachable);
			out_str(o, "identity", d->identity);
			cli_out_time(o, "read_at", d->read_at_ns);
			out_end(o);
		}
		out_end(o);
	}
	weft__v1__status_response__free_unpacked(s, NULL);
	return cli_print(o, err);
}
