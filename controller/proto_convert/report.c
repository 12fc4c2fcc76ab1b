/* Messages as table, JSON and YAML: what several of them share, and jobs. */
#include "controller/proto_convert/report.h"

#include <ctype.h>
#include <stdio.h>

#include "lib/base/clock.h"
#include "lib/base/units.h"

#define NS_PER_S INT64_C(1000000000)

const char *wire_enum(const ProtobufCEnumDescriptor *type, int value, char *buf,
		     int size)
{
	const ProtobufCEnumValue *v =
		protobuf_c_enum_descriptor_get_value(type, value);
	const char *name;
	size_t skip;

	if (!v) {
		snprintf(buf, (size_t)size, "%d", value);
		return buf;
	}
	/* Values repeat their type: DEVICE_KIND_RING of DeviceKind. */
	skip = 0;
	for (const char *s = type->short_name; *s; s++) {
		skip += 1 + (s != type->short_name && isupper(*s));
	}
	name = v->name + skip + 1;
	snprintf(buf, (size_t)size, "%s", name);
	for (char *s = buf; *s; s++) {
		*s = *s == '_' ? '-' : (char)tolower((unsigned char)*s);
	}
	return buf;
}

void wire_out_circuits(struct out *o, const char *key,
		      Weft__V1__Circuit *const *v, size_t n)
{
	out_array(o, key);
	for (size_t i = 0; i < n; i++) {
		out_object(o, NULL);
		out_int(o, "in", v[i]->in);
		out_int(o, "out", v[i]->out);
		out_str(o, "from", v[i]->from);
		out_str(o, "to", v[i]->to);
		if (v[i]->owner[0]) {
			out_str(o, "owner", v[i]->owner);
		}
		out_end(o);
	}
	out_end(o);
}

void wire_out_time(struct out *o, const char *key, int64_t wall_ns)
{
	char text[32];

	out_str(o, key, wall_ns ? clk_iso(wall_ns, text, sizeof(text)) : NULL);
}

/* How old the last reading is: proof is of then, not of now. */
void wire_out_age(struct out *o, const char *key, int64_t read_at_ns)
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

void wire_out_ns(struct out *o, enum out_format format, const char *key,
		 int64_t ns)
{
	char text[64];

	if (format == OUT_TABLE) {
		out_str(o, key,
			unit_human(UNIT_NS, (double)ns, text, sizeof(text)));
		return;
	}
	snprintf(text, sizeof(text), "%s_ns", key);
	out_int(o, text, ns);
}

void wire_out_holds(struct out *o, Weft__V1__Hold *const *v, size_t n)
{
	out_array(o, "holds");
	for (size_t i = 0; i < n; i++) {
		out_object(o, NULL);
		out_str(o, "what", v[i]->target[0] ? v[i]->target : "*");
		out_str(o, "state", v[i]->target[0] ? "drained" : "frozen");
		wire_out_time(o, "since", v[i]->since_at_ns);
		out_str(o, "who", v[i]->who);
		out_str(o, "reason", v[i]->reason);
		out_end(o);
	}
	out_end(o);
}

void wire_note_hidden(struct out *o, Weft__V1__PlanJob *const *jobs, size_t n)
{
	char text[64];

	for (size_t i = 0; i < n; i++) {
		if (jobs[i]->retune_hidden_ns > 0) {
			out_note(o, "job %s: %s of retuning behind others' "
				 "data", jobs[i]->name,
				 unit_human(UNIT_NS,
					    (double)jobs[i]->retune_hidden_ns,
					    text, sizeof(text)));
		}
	}
}

void wire_out_without(struct out *o, const Weft__V1__PlanJob *j)
{
	if (j->n_failed_parts == 0) {
		return;
	}
	out_array(o, "without");
	for (size_t i = 0; i < j->n_failed_parts; i++) {
		out_str(o, NULL, j->failed_parts[i]);
	}
	out_end(o);
	out_int(o, "whole_time_ns", j->fault_free_time_ns);
}

void wire_note_without(struct out *o, Weft__V1__PlanJob *const *jobs, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const Weft__V1__PlanJob *j = jobs[i];
		char more[32] = "";

		if (j->n_failed_parts == 0) {
			continue;
		}
		if (j->n_failed_parts > 1) {
			snprintf(more, sizeof(more), " and %zu more",
				 j->n_failed_parts - 1);
		}
		out_note(o, "job %s: does without %s%s, which failed: %.1f %% "
			 "of the rate", j->name, j->failed_parts[0], more,
			 j->time_ns > j->fault_free_time_ns
				 ? 100 * (double)j->fault_free_time_ns /
					   (double)j->time_ns : 100.0);
	}
}

void wire_out_request(struct out *o, enum out_format format,
		      const Weft__V1__Job *j)
{
	char text[32];

	out_str(o, format == OUT_TABLE ? "job" : "name", j->name);
	out_str(o, "state", wire_enum(&weft__v1__job_state__descriptor,
				     (int)j->state, text, sizeof(text)));
	if (format == OUT_TABLE) {
		out_int(o, "nodes", (int64_t)j->n_nodes);
	} else {
		out_array(o, "nodes");
		for (size_t i = 0; i < j->n_nodes; i++) {
			out_str(o, NULL, j->nodes[i]);
		}
		out_end(o);
		out_int(o, "id", j->id);
		out_str(o, "spec", j->spec);
		out_bool(o, "preemptible", j->preemptible);
		out_int(o, "duration_ns", j->duration_ns);
		out_str(o, "repair",
			wire_enum(&weft__v1__job_repair__descriptor,
				  (int)j->repair, text, sizeof(text)));
		out_int(o, "repairs", j->repairs);
		out_real(o, "rate", j->rate);
	}
	out_int(o, "position", j->position);
	out_int(o, "priority", j->priority);
	out_str(o, "who", j->who);
	wire_out_time(o, "asked_at", j->requested_at_ns);
	wire_out_time(o, "started_at", j->started_at_ns);
	wire_out_time(o, "ended_at", j->ended_at_ns);
	out_str(o, "problem", j->problem);
}
