/* What weftd knows, as table, JSON and YAML: devices, jobs, changes. */
#include <stdio.h>
#include <string.h>

#include "controller/proto_convert/report.h"
#include "lib/base/buf.h"
#include "lib/base/clock.h"
#include "lib/base/units.h"

#define SHOWN 20	/* differences of a device in a table, unless full */
#define MARKED_SHOWN 4	/* parts of a device named in tables */

static const char *level_name(Weft__V1__Proof level, char *buf, int size)
{
	return wire_enum(&weft__v1__proof__descriptor, (int)level, buf, size);
}

bool wire_is_same(const Weft__V1__DeviceState *d)
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

static void out_device_row(struct out *o, const Weft__V1__DeviceState *d)
{
	char text[64];

	out_object(o, NULL);
	out_str(o, "device", d->name);
	out_str(o, "driver", d->driver);
	out_str(o, "reachable", d->reachable ? "yes" : "NO");
	out_str(o, "proof", level_name(d->proof, text, sizeof(text)));
	wire_out_age(o, "read", d->read_at_ns);
	out_int(o, "circuits", d->circuits);
	out_int(o, "missing", (int64_t)d->n_missing);
	out_int(o, "unexpected", (int64_t)d->n_unexpected);
	out_int(o, "pending", d->pending_count);
	out_str(o, "program", program_text(d->program, text, sizeof(text)));
	out_str(o, "problem", d->problem);
	out_end(o);
}

void wire_out_strings(struct out *o, const char *name, char *const *v,
		      size_t n)
{
	out_array(o, name);
	for (size_t i = 0; i < n; i++) {
		out_str(o, NULL, v[i]);
	}
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
	wire_out_strings(o, "failed", p->failed, p->n_failed);
	out_int(o, "failed_count", p->failed_count);
	wire_out_strings(o, "lost", p->lost, p->n_lost);
	out_int(o, "lost_count", p->lost_count);
	out_end(o);
}

static void out_device_object(struct out *o, const Weft__V1__DeviceState *d)
{
	char text[64];

	out_object(o, NULL);
	out_str(o, "name", d->name);
	out_str(o, "kind", wire_enum(&weft__v1__device_kind__descriptor,
				    (int)d->kind, text, sizeof(text)));
	out_str(o, "driver", d->driver);
	out_str(o, "address", d->address);
	out_bool(o, "reachable", d->reachable);
	out_bool(o, "ever_read", d->ever_read);
	wire_out_time(o, "read_at", d->read_at_ns);
	out_bool(o, "restarted", d->restarted);
	out_str(o, "identity", d->identity);
	out_str(o, "problem", d->problem);
	out_str(o, "proof", level_name(d->proof, text, sizeof(text)));
	out_int(o, "circuits", d->circuits);
	wire_out_circuits(o, "missing", d->missing, d->n_missing);
	wire_out_circuits(o, "unexpected", d->unexpected, d->n_unexpected);
	wire_out_circuits(o, "pending", d->pending, d->n_pending);
	out_int(o, "pending_count", d->pending_count);
	out_int(o, "lossy", d->lossy);
	wire_out_strings(o, "marked_dead", d->marked_dead, d->n_marked_dead);
	out_int(o, "marked_dead_count", d->marked_dead_count);
	wire_out_strings(o, "unusable", d->unusable, d->n_unusable);
	out_int(o, "unusable_count", d->unusable_count);
	if (d->switching) {
		wire_out_timing(o, "switching", d->switching);
	}
	out_str(o, "power_loss", d->power_loss);
	out_bool(o, "restores", d->auto_restore);
	wire_out_foreign(o, OUT_JSON, "foreign", d->external_changes, d->n_external_changes);
	if (d->program) {
		out_program(o, d->program);
	}
	out_end(o);
}

/* The first parts of a list that has `count` in all; nothing without any. */
static void note_parts(struct out *o, const char *device, const char *what,
		       char *const *parts, size_t n, int count)
{
	struct buf b = { 0 };
	int shown = 0;

	for (size_t i = 0; i < n && i < MARKED_SHOWN; i++) {
		buf_printf(&b, "%s%s", i ? ", " : "", parts[i]);
		shown++;
	}
	if (shown < count) {
		buf_printf(&b, " and %d more", count - shown);
	}
	if (shown) {
		out_note(o, "%s: %s: %s", device, what, buf_cstr(&b));
	}
	buf_fini(&b);
}

static void note_ports(struct out *o, const Weft__V1__DeviceState *d)
{
	note_parts(o, d->name, "marked as dead", d->marked_dead, d->n_marked_dead,
		   d->marked_dead_count);
	note_parts(o, d->name, "out of use", d->unusable, d->n_unusable,
		   d->unusable_count);
}

static void out_devices(struct out *o, enum out_format format,
			Weft__V1__DeviceState *const *v, size_t n)
{
	out_array(o, "devices");
	for (size_t i = 0; i < n; i++) {
		if (format == OUT_TABLE) {
			out_device_row(o, v[i]);
		} else {
			out_device_object(o, v[i]);
		}
	}
	out_end(o);
	for (size_t i = 0; i < n && format == OUT_TABLE; i++) {
		note_ports(o, v[i]);
	}
}

static size_t n_lost(const Weft__V1__DeviceState *d)
{
	return d->program ? d->program->n_lost : 0;
}

static void out_lost_row(struct out *o, const Weft__V1__DeviceState *d,
			 const char *text)
{
	out_object(o, NULL);
	out_str(o, "device", d->name);
	out_str(o, "what", "not locked");
	out_str(o, "circuit", text);
	out_str(o, "ports", "");
	out_str(o, "owner", "");
	out_end(o);
}

/* Resonators that hold no wave; the message has the first of them. */
static void out_lost(struct out *o, const Weft__V1__DeviceState *d, bool full)
{
	size_t n = n_lost(d), shown = full || n <= SHOWN ? n : SHOWN;
	char more[48];

	for (size_t i = 0; i < shown; i++) {
		out_lost_row(o, d, d->program->lost[i]);
	}
	if (n > 0 && shown < (size_t)d->program->lost_count) {
		snprintf(more, sizeof(more), "and %zu more",
			 (size_t)d->program->lost_count - shown);
		out_lost_row(o, d, more);
	}
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

static void out_differences(struct out *o, enum out_format format,
			    Weft__V1__DeviceState *const *v, size_t n,
			    bool full)
{
	size_t count = 0;

	for (size_t i = 0; i < n; i++) {
		count += v[i]->n_missing + v[i]->n_unexpected +
			 v[i]->n_pending + n_lost(v[i]);
	}
	if (format != OUT_TABLE || count == 0) {
		return;
	}
	out_array(o, "differences");
	for (size_t i = 0; i < n; i++) {
		const Weft__V1__DeviceState *d = v[i];

		out_one_kind(o, d, "missing", d->missing, d->n_missing, full);
		out_one_kind(o, d, "unexpected", d->unexpected,
			     d->n_unexpected, full);
		out_one_kind(o, d, "pending", d->pending, d->n_pending, full);
		out_lost(o, d, full);
	}
	out_end(o);
}

/* ---- changes ---- */

/* What was proven is known of changes that were committed. */
static const char *change_proof(const Weft__V1__Change *ch, char *buf, int size)
{
	return strcmp(ch->outcome, "committed") == 0
		       ? level_name(ch->proof, buf, size) : "";
}

/* How long light was away, and was expected to be. */
static const char *dark_text(const Weft__V1__Change *ch, char *buf, int size)
{
	char is[32], was[32];

	if (!ch->down_ns) {
		return "";
	}
	snprintf(buf, (size_t)size, "%s of %s",
		 unit_human(UNIT_NS, (double)ch->down_ns, is, sizeof(is)),
		 unit_human(UNIT_NS, (double)ch->expected_down_ns, was,
			    sizeof(was)));
	return buf;
}

static const Weft__V1__Change *find_change(const Weft__V1__AuditResponse *a,
					   int64_t id)
{
	for (size_t i = 0; i < a->n_changes; i++) {
		if (a->changes[i]->id == id) {
			return a->changes[i];
		}
	}
	return NULL;
}

void wire_out_audit(struct out *o, enum out_format format,
		    const Weft__V1__AuditResponse *a)
{
	char text[32];

	out_array(o, "audit");
	for (size_t i = 0; i < a->n_lines; i++) {
		const Weft__V1__AuditLine *l = a->lines[i];
		const Weft__V1__Change *ch = find_change(a, l->change);

		out_object(o, NULL);
		if (format != OUT_TABLE) {
			out_int(o, "id", l->id);
		}
		wire_out_time(o, "at", l->at_ns);
		out_int(o, "change", l->change);
		out_str(o, "who", ch ? ch->who : "");
		out_str(o, "outcome", ch ? ch->outcome : "");
		out_str(o, "proof", ch ? change_proof(ch, text, sizeof(text))
				       : "");
		out_str(o, "device", l->device);
		out_str(o, "kind", l->kind);
		out_str(o, "text", l->text);
		out_end(o);
	}
	out_end(o);
}

/* A line of a list of changes; their times to the second. */
static void out_change_row(struct out *o, const Weft__V1__Change *ch)
{
	bool both = ch->comment[0] && ch->summary[0];
	char text[80];

	out_int(o, "change", ch->id);
	out_str(o, "outcome", ch->outcome);
	out_int(o, "gen", ch->generation);
	clk_iso(ch->started_at_ns, text, sizeof(text));
	out_fmt(o, "began", "%.19sZ", text);
	out_str(o, "who", ch->who);
	out_str(o, "proof", change_proof(ch, text, sizeof(text)));
	out_str(o, "dark", dark_text(ch, text, sizeof(text)));
	out_fmt(o, "what", "%s%s%s", ch->comment, both ? ": " : "",
		ch->summary);
}

void wire_out_change(struct out *o, enum out_format format,
		     const Weft__V1__Change *ch)
{
	char text[80];

	if (format == OUT_TABLE) {
		out_change_row(o, ch);
		return;
	}
	out_int(o, "id", ch->id);
	out_str(o, "outcome", ch->outcome);
	out_int(o, "generation", ch->generation);
	wire_out_time(o, "started_at", ch->started_at_ns);
	wire_out_time(o, "ended_at", ch->ended_at_ns);
	out_str(o, "who", ch->who);
	out_str(o, "proof", change_proof(ch, text, sizeof(text)));
	out_str(o, "config", ch->config_name);
	out_str(o, "comment", ch->comment);
	out_str(o, "summary", ch->summary);
	out_str(o, "config_sha256", ch->config_sha256);
	out_bool(o, "undoing", ch->rolling_back);
	out_int(o, "superseded_by", ch->superseded_by);
	out_str(o, "trace_id", ch->trace_id);
	out_int(o, "expected_down_ns", ch->expected_down_ns);
	out_int(o, "down_ns", ch->down_ns);
	out_str(o, "down_by", ch->down_ns ?
		level_name(ch->down_source, text, sizeof(text)) : NULL);
}

/* ---- jobs ---- */

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
static Weft__V1__Proof job_level(const Weft__V1__StatusResponse *s,
				 const Weft__V1__PlanJob *j)
{
	Weft__V1__Proof least = WEFT__V1__PROOF__PROOF_ERROR_FREE;

	for (size_t i = 0; i < j->n_devices; i++) {
		const Weft__V1__DeviceState *d = find_device(s, j->devices[i]);

		if (!d || !d->reachable || !wire_is_same(d)) {
			return WEFT__V1__PROOF__PROOF_UNVERIFIED;
		}
		least = d->proof < least ? d->proof : least;
	}
	return j->n_devices ? least : WEFT__V1__PROOF__PROOF_UNVERIFIED;
}

static const char *light_name(const Weft__V1__PlanJob *j,
			      Weft__V1__Proof level)
{
	if (j->degradation) {
		return j->degradation->rate > 0 ? "degraded" : "cut off";
	}
	return level >= WEFT__V1__PROOF__PROOF_READ_BACK ? "up" : "unverified";
}

void wire_loss_text(const Weft__V1__PlanJob *j, char *text, size_t size)
{
	const Weft__V1__JobDegradation *l = j->degradation;
	char what[256], more[32] = "";

	if (l->failed > 1) {
		snprintf(more, sizeof(more), " and %d more", l->failed - 1);
	}
	if (l->part[0]) {
		snprintf(what, sizeof(what), "%s: %s%s failed", l->device,
			 l->part, more);
	} else {
		snprintf(what, sizeof(what), "%d of %d circuits dead (%s, in "
			 "%d -> out %d ...)", l->failed, j->circuits, l->device,
			 l->in, l->out);
	}
	if (l->rate <= 0) {
		snprintf(text, size, "job %s: %s%s and no schedule on what "
			 "remains: %s", j->name, what, l->part[0] ? "" : ",",
			 l->problem);
	} else if (l->part[0]) {
		snprintf(text, size, "job %s: %s: \"weft apply\" does without, "
			 "at %.1f %% of the rate", j->name, what,
			 100 * l->rate);
	} else {
		snprintf(text, size, "job %s: %s: its schedule is now the one "
			 "on what remains, at %.1f %% of the rate", j->name,
			 what, 100 * l->rate);
	}
}

static double rate_of(const Weft__V1__PlanJob *j)
{
	if (j->degradation) {
		return j->degradation->rate;
	}
	return j->fault_free_time_ns > 0 && j->time_ns > j->fault_free_time_ns
		       ? (double)j->fault_free_time_ns / (double)j->time_ns : 1;
}

/* What is left of a job, and what was: its own row is of the whole. */
static void out_loss(struct out *o, enum out_format format,
		     const Weft__V1__JobDegradation *l)
{
	out_object(o, "loss");
	out_int(o, l->part[0] ? "failed_parts" : "dead_circuits", l->failed);
	out_str(o, "device", l->device);
	if (l->part[0]) {
		out_str(o, "part", l->part);
	} else {
		out_int(o, "in", l->in);
		out_int(o, "out", l->out);
		out_int(o, "dead_arcs", l->failed_arcs);
		out_int(o, "arcs", l->arcs);
	}
	out_real(o, "rate", l->rate);
	if (l->rate > 0) {
		out_int(o, "steps", l->steps);
		out_str(o, "bandwidth_factor", l->bandwidth_factor);
		wire_out_ns(o, format, "time", l->time_ns);
		wire_out_ns(o, format, "bound", l->bound_ns);
	} else {
		out_str(o, "problem", l->problem);
	}
	out_end(o);
}

static void out_job(struct out *o, enum out_format format,
		    const Weft__V1__StatusResponse *s,
		    const Weft__V1__PlanJob *j)
{
	Weft__V1__Proof level = job_level(s, j);
	char text[32];

	out_object(o, NULL);
	out_str(o, format == OUT_TABLE ? "job" : "name", j->name);
	out_str(o, "light", light_name(j, level));
	out_str(o, "proof", level_name(level, text, sizeof(text)));
	out_str(o, "collective", j->collective);
	out_str(o, "algorithm", j->algorithm);
	out_str(o, "topology",
		!j->topology[0] && j->n_devices == 1 ? j->devices[0]
						     : j->topology);
	out_int(o, "nodes", j->nodes);
	if (format == OUT_TABLE) {
		out_fmt(o, "rate", "%.4g %%", 100 * rate_of(j));
	}
	out_int(o, "steps", j->steps);
	wire_out_ns(o, format, "time", j->time_ns);
	wire_out_ns(o, format, "bound", j->bound_ns);
	if (format != OUT_TABLE && j->degradation) {
		out_loss(o, format, j->degradation);
	}
	if (format != OUT_TABLE) {
		wire_out_without(o, j);
		out_real(o, "gap", j->gap);
		out_int(o, "retune_hidden_ns", j->retune_hidden_ns);
		out_fmt(o, "schedule", "weft schedule export --job %s",
			j->name);
	}
	out_end(o);
}

static void out_jobs(struct out *o, enum out_format format,
		     const Weft__V1__StatusResponse *s)
{
	if (!s->jobs_known && s->jobs_problem[0]) {
		out_str(o, "jobs_problem", s->jobs_problem);
	} else if (!s->jobs_known && s->fabric[0]) {
		out_note(o, "jobs: still being planned");
	}
	out_array(o, "jobs");
	for (size_t i = 0; i < s->n_jobs; i++) {
		out_job(o, format, s, s->jobs[i]);
	}
	out_end(o);
	wire_note_hidden(o, s->jobs, s->n_jobs);
	wire_note_without(o, s->jobs, s->n_jobs);
	if (s->n_jobs > 0) {
		out_note(o, "schedules: weft schedule export --job NAME -o "
			    "FILE");
	}
}

static void out_head(struct out *o, const Weft__V1__StatusResponse *s)
{
	char text[32];

	out_str(o, "state", wire_enum(&weft__v1__state__descriptor,
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

static void out_named_change(struct out *o, enum out_format format,
			     const char *key, const Weft__V1__Change *ch)
{
	if (!ch) {
		return;
	}
	if (format == OUT_TABLE) {
		char when[32];

		out_fmt(o, key, "%lld %s at %s by %s%s%s%s%s",
			(long long)ch->id, ch->outcome,
			clk_iso(ch->started_at_ns, when, sizeof(when)),
			ch->who, ch->comment[0] ? ": " : "", ch->comment,
			ch->summary[0] ? "; " : "", ch->summary);
		return;
	}
	out_object(o, key);
	wire_out_change(o, format, ch);
	out_end(o);
}

static void out_confirm(struct out *o, const Weft__V1__Confirm *m)
{
	if (m) {
		out_object(o, "confirm");
		out_int(o, "change", m->change);
		wire_out_time(o, "by", m->deadline_at_ns);
		out_int(o, "back_to", m->rollback_to);
		out_end(o);
	}
}

/* ---- all of it ---- */

void wire_out_diff(struct out *o, enum out_format format, bool full,
		   const Weft__V1__DiffResponse *d)
{
	out_int(o, "generation", d->generation);
	out_bool(o, "same", d->same);
	out_bool(o, "complete", d->complete);
	out_devices(o, format, d->devices, d->n_devices);
	out_differences(o, format, d->devices, d->n_devices, full);
	if (format == OUT_TABLE) {
		wire_note_foreign(o, d->devices, d->n_devices, full);
	}
	wire_out_hosts(o, format, d->hosts, full);
}

static void out_repairs(struct out *o, const Weft__V1__StatusResponse *s)
{
	char circuit[64];

	if (!s->n_repairs) {
		return;
	}
	out_array(o, "repairs");
	for (size_t i = 0; i < s->n_repairs; i++) {
		const Weft__V1__PendingRepair *r = s->repairs[i];

		snprintf(circuit, sizeof(circuit), "in %d -> out %d", r->in,
			 r->out);
		out_object(o, NULL);
		out_str(o, "device", r->device);
		out_str(o, "circuit", circuit);
		out_int(o, "change", r->change);
		wire_out_time(o, "since", r->since_at_ns);
		out_str(o, "why", r->why);
		out_end(o);
	}
	out_end(o);
}

void wire_out_status(struct out *o, enum out_format format, bool full,
		     const Weft__V1__StatusResponse *s)
{
	out_head(o, s);
	out_named_change(o, format, "last_change", s->last);
	out_named_change(o, format, "open_change", s->open);
	out_confirm(o, s->confirm);
	if (s->n_holds > 0) {
		wire_out_holds(o, s->holds, s->n_holds);
	}
	out_repairs(o, s);
	out_devices(o, format, s->devices, s->n_devices);
	out_differences(o, format, s->devices, s->n_devices, full);
	if (format == OUT_TABLE) {
		wire_note_foreign(o, s->devices, s->n_devices, full);
		wire_note_power_loss(o, s->devices, s->n_devices);
	}
	wire_out_hosts(o, format, s->hosts, full);
	out_jobs(o, format, s);
}
