/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What weftd knows, for people and programs: status, differences, devices,
 * jobs, changes, the audit trail.
 *
 * For programs all of it is the messages themselves (printer.c), with few
 * exceptions: a job of a status has its health and proof besides, which follow
 * from its devices, and a line of the audit trail has its change's. Tables are
 * lists of columns; under them stand notes, and the differences that they only
 * count. Unless asked for all of it, a table names the first of many.
 */
#include "controller/proto_convert/report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/clock.h"
#include "lib/base/number/units.h"

#define NS_PER_S INT64_C(1000000000)
#define SHOWN 20	/* differences of a device in a table, unless full */
#define PARTS_SHOWN 4	/* parts of a device named in tables */

/* Circuits, and on rings that the program is the right one and holds its
 * wavelengths. */
bool msg_is_as_intended(const Weft__V1__DeviceState *d)
{
	const Weft__V1__ProgramState *p = d->program;

	return d->n_missing == 0 && d->n_unexpected == 0 && d->n_pending == 0 &&
	       (!p || (p->equal && p->unlocked == 0));
}

/* ---- texts of several tables --------------------------------------------- */

/* Without fractions of a second, and with a blank at which a narrow table
 * divides it. */
static void put_time(int64_t wall_ns, struct buf *b)
{
	char text[32];

	clk_iso(wall_ns, text, sizeof(text));
	buf_printf(b, "%.10s %.8sZ", text, text + 11);
}

static const char *proof_name(Weft__V1__Proof proof, char *buf, int size)
{
	return msg_enum(&weft__v1__proof__descriptor, (int)proof, buf, size);
}

/* How old a reading is: proof is of then, not of now. */
static void age_text(int64_t at_ns, struct buf *b)
{
	int64_t s = (clk_wall_ns() - at_ns) / NS_PER_S;

	if (at_ns == 0) {
		buf_str(b, "never");
	} else if (s < 120) {
		buf_printf(b, "%lld s ago", (long long)(s > 0 ? s : 0));
	} else if (s < 120 * 60) {
		buf_printf(b, "%lld min ago", (long long)(s / 60));
	} else {
		buf_printf(b, "%lld h ago", (long long)(s / 3600));
	}
}

/* An array of texts. */
static void out_strings(struct out *o, const char *key, char *const *v, size_t n)
{
	out_array(o, key);
	for (size_t i = 0; i < n; i++) {
		out_str(o, NULL, v[i]);
	}
	out_end(o);
}

/* ---- devices ------------------------------------------------------------- */

static void device_reachable(const void *m, struct buf *b)
{
	const Weft__V1__DeviceState *d = m;

	buf_str(b, d->elsewhere ? "elsewhere" : d->reachable ? "yes" : "NO");
}

static void device_age(const void *m, struct buf *b)
{
	age_text(((const Weft__V1__DeviceState *)m)->read_at_ns, b);
}

/* How a ring's program stands to the one that is intended. */
static void device_program(const void *m, struct buf *b)
{
	const Weft__V1__ProgramState *p = ((const Weft__V1__DeviceState *)m)->program;

	if (!p || (!p->wanted && !p->loaded)) {
		return;
	}
	if (p->equal) {
		buf_printf(b, "%u steps", p->loaded_steps);
	} else if (!p->wanted) {
		buf_str(b, "unexpected");
	} else {
		buf_str(b, p->loaded ? "another one" : "missing");
	}
	if (p->equal && p->unlocked > 0) {
		buf_printf(b, ", %d not locked", p->unlocked);
	}
}

/* "2 missing, 1 unexpected". */
static void device_differences(const void *m, struct buf *b)
{
	const Weft__V1__DeviceState *d = m;
	const struct { int n; const char *what; } parts[] = {
		{ (int)d->n_missing, "missing" }, { (int)d->n_unexpected, "unexpected" },
		{ d->pending_count, "pending" },
	};

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		if (parts[i].n > 0) {
			buf_printf(b, "%s%d %s", b->len ? ", " : "", parts[i].n, parts[i].what);
		}
	}
}

/* Within 80 columns, as the table of jobs: drivers are in the list of devices. */
static const struct msg_column device_columns[] = {
	{ "device", "name", NULL }, { "reachable", NULL, device_reachable },
	{ "proof", "proof", NULL }, { "read", NULL, device_age },
	{ "circuits", "circuits", NULL }, { "differences", NULL, device_differences },
	{ "program", NULL, device_program }, { NULL, NULL, NULL },
};

/* The first parts of a list that has `count` in all; nothing without any. */
static void note_parts(struct out *o, const char *device, const char *what,
		       char *const *parts, size_t n, int count)
{
	struct buf b = { 0 };
	int shown = 0;

	for (size_t i = 0; i < n && i < PARTS_SHOWN; i++) {
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

/* One difference of a device, as a row. */
static void out_difference(struct out *o, const char *device, const char *what,
			   const char *circuit, const char *ports, const char *owner,
			   int64_t since_ns)
{
	char since[32] = "";

	if (since_ns) {
		clk_iso(since_ns, since, sizeof(since));
	}
	out_object(o, NULL);
	out_str(o, "device", device);
	out_str(o, "what", what);
	out_str(o, "circuit", circuit);
	out_str(o, "ports", ports);
	out_str(o, "owner", owner);
	out_str(o, "since", since);
	out_end(o);
}

/* A row for n differences that are not listed one by one. */
static void out_rest(struct out *o, const char *device, const char *what, size_t n,
		     const char *hint)
{
	char text[64];

	if (n > 0) {
		snprintf(text, sizeof(text), "and %zu more%s", n, hint);
		out_difference(o, device, what, text, "", "", 0);
	}
}

/* Differences of one kind, folded to SHOWN unless full; the message may have only n of them,
 * the first. */
static void out_circuits(struct out *o, const char *device, const char *what,
			 Weft__V1__Circuit *const *v, size_t n, size_t count, bool full)
{
	size_t shown = full || n <= SHOWN ? n : SHOWN;
	struct buf circuit = { 0 }, ports = { 0 };

	for (size_t i = 0; i < shown; i++) {
		buf_reset(&circuit);
		buf_reset(&ports);
		buf_printf(&circuit, "in %d -> out %d", v[i]->in, v[i]->out);
		if (v[i]->from[0] || v[i]->to[0]) {
			buf_printf(&ports, "%s -> %s", v[i]->from[0] ? v[i]->from : "?",
				   v[i]->to[0] ? v[i]->to : "?");
		}
		out_difference(o, device, what, buf_cstr(&circuit), buf_cstr(&ports), v[i]->owner,
			       v[i]->since_at_ns);
	}
	out_rest(o, device, what, count - shown, " (--full)");
	buf_fini(&circuit);
	buf_fini(&ports);
}

/* Resonators that are not locked; the message has the first of them. */
static void out_unlocked(struct out *o, const Weft__V1__DeviceState *d, bool full)
{
	const Weft__V1__ProgramState *p = d->program;
	size_t shown = full || p->n_lost <= SHOWN ? p->n_lost : SHOWN;

	for (size_t i = 0; i < shown; i++) {
		out_difference(o, d->name, "not locked", p->lost[i], "", "", 0);
	}
	if (p->n_lost > 0) {
		out_rest(o, d->name, "not locked", (size_t)p->lost_count - shown, "");
	}
}

/* Ports that failed; the message has the first of them. */
static void out_failed_ports(struct out *o, const Weft__V1__DeviceState *d, bool full)
{
	size_t n = d->n_failed_ports, shown = full || n <= SHOWN ? n : SHOWN;

	for (size_t i = 0; i < shown; i++) {
		out_difference(o, d->name, "failed", d->failed_ports[i], "", "", 0);
	}
	out_rest(o, d->name, "failed", (size_t)d->failed_port_count - shown, "");
}

/* "differences" of all devices in one table; nothing when there are none. */
static void out_differences(struct out *o, Weft__V1__DeviceState *const *v, size_t n, bool full)
{
	size_t count = 0;

	for (size_t i = 0; i < n; i++) {
		count += v[i]->n_missing + v[i]->n_unexpected + v[i]->n_pending + v[i]->n_dark +
			 v[i]->n_failed_ports + (v[i]->program ? v[i]->program->n_lost : 0);
	}
	if (count == 0) {
		return;
	}
	out_array(o, "differences");
	for (size_t i = 0; i < n; i++) {
		const Weft__V1__DeviceState *d = v[i];

		out_circuits(o, d->name, "missing", d->missing, d->n_missing, d->n_missing, full);
		out_circuits(o, d->name, "dark", d->dark, d->n_dark, d->n_dark, full);
		out_circuits(o, d->name, "unexpected", d->unexpected, d->n_unexpected,
			     d->n_unexpected, full);
		out_circuits(o, d->name, "pending", d->pending, d->n_pending,
			     d->n_pending < (size_t)d->pending_count ? (size_t)d->pending_count
								     : d->n_pending, full);
		out_failed_ports(o, d, full);
		if (d->program) {
			out_unlocked(o, d, full);
		}
	}
	out_end(o);
}

/* One row a device, notes of parts that are out of use, then the
 * differences. */
static void out_devices(struct out *o, Weft__V1__DeviceState *const *v, size_t n, bool full)
{
	msg_out_table(o, "devices", device_columns, (void *const *)v, n);
	for (size_t i = 0; i < n; i++) {
		note_parts(o, v[i]->name, "marked as dead", v[i]->marked_dead, v[i]->n_marked_dead,
			   v[i]->marked_dead_count);
		note_parts(o, v[i]->name, "out of use", v[i]->unusable, v[i]->n_unusable,
			   v[i]->unusable_count);
		/* Why one does not answer is in the list of problems. */
		if (v[i]->reachable && v[i]->problem[0]) {
			out_note(o, "%s: %s", v[i]->name, v[i]->problem);
		}
	}
	out_differences(o, v, n, full);
}

const char *msg_power_loss_text(const char *power_loss)
{
	if (strcmp(power_loss, "dark") == 0) {
		return "forgets its map when it loses power";
	}
	if (strcmp(power_loss, "saved map") == 0) {
		return "goes back to a map that was saved when it loses power";
	}
	return NULL;
}

/* Digits at the end of name, at most nine. */
static size_t count_digits(const char *name)
{
	size_t n = strlen(name), digits = 0;

	while (digits < n && digits < 9 && name[n - 1 - digits] >= '0' &&
	       name[n - 1 - digits] <= '9') {
		digits++;
	}
	return digits;
}

/* Whether b is a with the next number: "p9", "p10" or "p09", "p10". */
static bool is_next(const char *a, const char *b)
{
	size_t na = count_digits(a), nb = count_digits(b), prefix = strlen(a) - na;

	return na > 0 && prefix == strlen(b) - nb && strncmp(a, b, prefix) == 0 &&
	       (na == nb || (a[prefix] != '0' && b[prefix] != '0')) &&
	       atol(a + prefix) + 1 == atol(b + prefix);
}

static void put_names(struct buf *b, const char *const *names, size_t n)
{
	for (size_t i = 0, end; i < n; i = end) {
		size_t prefix = strlen(names[i]) - count_digits(names[i]);

		for (end = i + 1; end < n && is_next(names[end - 1], names[end]); end++) {
		}
		buf_printf(b, "%s%.*s", i ? "," : "", (int)prefix, names[i]);
		if (end - i == 1) {
			buf_str(b, names[i] + prefix);
		} else {
			buf_printf(b, "[%s-%s]", names[i] + prefix, names[end - 1] + prefix);
		}
	}
}

bool msg_alike(const struct msg_saying *v, size_t n, size_t i, struct buf *names)
{
	const char **alike = x_alloc(n, sizeof(*alike));
	bool is_first = v[i].text[0];
	size_t k = 0;

	for (size_t j = 0; j < n && is_first; j++) {
		if (strcmp(v[j].text, v[i].text) == 0) {
			is_first = j >= i;
			alike[k++] = v[j].name;
		}
	}
	if (is_first) {
		buf_reset(names);
		put_names(names, alike, k);
		buf_str(names, k > 1 ? ": each" : "");
	}
	free(alike);
	return is_first;
}

/* What is to be done after a power failure, for devices that would lose
 * circuits. */
static void note_power_loss(struct out *o, Weft__V1__DeviceState *const *v, size_t n)
{
	struct msg_saying *says = x_new(n, sizeof(*says));
	struct buf names = { 0 };

	for (size_t i = 0; i < n; i++) {
		const char *text = msg_power_loss_text(v[i]->power_loss);

		says[i].name = v[i]->name;
		if (text && v[i]->circuits > 0) {
			snprintf(says[i].text, sizeof(says[i].text), "%s: %s", text,
				 v[i]->auto_restore ? "weftd restores it" :
				 v[i]->restore_at_boot
					 ? "weftd restores it when it starts, "
					   "\"weft apply\" at any time"
					 : "\"weft apply\" restores it");
		}
	}
	for (size_t i = 0; i < n; i++) {
		if (msg_alike(says, n, i, &names)) {
			out_note(o, "%s %s", buf_cstr(&names), says[i].text);
		}
	}
	buf_fini(&names);
	free(says);
}

/* ---- what is wrong ------------------------------------------------------- */

static const struct msg_column problem_columns[] = {
	{ "problem", "kind", NULL }, { "count", "count", NULL }, { "what", "text", NULL },
	{ NULL, NULL, NULL },
};

/* Nothing when there is none; the first of many unless full. */
static void out_problems(struct out *o, Weft__V1__Problem *const *v, size_t n, bool full)
{
	size_t shown = full || n <= SHOWN ? n : SHOWN;

	if (n == 0) {
		return;
	}
	msg_out_table(o, "problems", problem_columns, (void *const *)v, shown);
	if (shown < n) {
		out_note(o, "problems: and %zu more (--full)", n - shown);
	}
}

/* ---- one device, with its circuits --------------------------------------- */

/* Insertion loss above its limit, or risen above its baseline. */
static void circuit_note(const void *m, struct buf *b)
{
	const Weft__V1__Signal *s = ((const Weft__V1__Circuit *)m)->signal;

	if (s && s->over_limit) {
		buf_str(b, "OVER LIMIT");
	} else if (s && s->degraded) {
		buf_str(b, "DEGRADED");
	}
}

static const struct msg_column circuit_columns[] = {
	{ "in", "in", NULL }, { "out", "out", NULL }, { "from", "from", NULL },
	{ "to", "to", NULL }, { "owner", "owner", NULL }, { "health", "signal.health", NULL },
	{ "since", "since_at_ns", NULL }, { "proof", "signal.proof", NULL },
	{ "state", "signal.state", NULL },
	{ "loss", "signal.loss_mdb", NULL }, { "limit", "signal.limit_mdb", NULL },
	{ "baseline", "signal.baseline_loss_mdb", NULL },
	{ "factory", "signal.factory_loss_mdb", NULL }, { "note", NULL, circuit_note },
	{ NULL, NULL, NULL },
};

/* Tables: the fields that matter to people, then external changes and
 * circuits. */
void msg_out_device(struct out *o, enum out_format format, const Weft__V1__DeviceState *d)
{
	char text[64];

	if (format != OUT_TABLE) {
		msg_out_fields(o, d, NULL);
		return;
	}
	out_str(o, "name", d->name);
	out_str(o, "driver", d->driver);
	out_str(o, "address", d->address);
	out_str(o, "identity", d->identity);
	out_bool(o, "reachable", d->reachable);
	msg_out_time(o, "read_at", d->read_at_ns);
	out_str(o, "proof", proof_name(d->proof, text, sizeof(text)));
	out_str(o, "problem", d->problem);
	out_int(o, "lossy", d->lossy);
	out_strings(o, "unusable", d->unusable, d->n_unusable);
	if (d->switching) {
		out_object(o, "switching");
		out_int(o, "seen", d->switching->count);
		out_str(o, "usually", unit_human(UNIT_NS, (double)d->switching->median_ns, text,
						 sizeof(text)));
		out_str(o, "at most", unit_human(UNIT_NS, (double)d->switching->max_ns, text,
						 sizeof(text)));
		out_end(o);
	}
	out_str(o, "power_loss", d->power_loss[0] ? d->power_loss : "unknown");
	out_str(o, "external changes are", d->auto_restore ? "restored" : "reported");
	out_str(o, "at boot they are", d->restore_at_boot ? "restored" : "reported");
	msg_out_external_changes(o, format, "external_changes", d->external_changes,
				 d->n_external_changes);
	msg_out_table(o, "circuits", circuit_columns, (void *const *)d->read, d->n_read);
}

/* ---- external changes ---------------------------------------------------- */

/* "made: in 3 -> out 12"; one port only, where the other is not known. */
static void external_what(const void *m, struct buf *b)
{
	const Weft__V1__ExternalChange *e = m;

	buf_str(b, e->kind);
	if (e->in && e->out) {
		buf_printf(b, ": in %d -> out %d", e->in, e->out);
	} else if (e->in || e->out) {
		buf_printf(b, ": %s %d", e->in ? "in" : "out", e->in + e->out);
	}
}

/* When it happened, as far as readings tell. */
static void external_when(const void *m, struct buf *b)
{
	const Weft__V1__ExternalChange *e = m;
	char from[32] = "?", to[32];

	if (e->last_good_at_ns) {
		clk_iso(e->last_good_at_ns, from, sizeof(from));
	}
	buf_printf(b, "%.19s to %.19s", from, clk_iso(e->detected_at_ns, to, sizeof(to)));
}

static void external_outcome(const void *m, struct buf *b)
{
	const Weft__V1__ExternalChange *e = m;

	if (e->change) {
		buf_printf(b, "%s by change %lld", e->outcome, (long long)e->change);
	} else {
		buf_str(b, e->given_up ? "open, given up" : e->outcome);
	}
}

static const struct msg_column external_columns[] = {
	{ "device", "device", NULL }, { "change", NULL, external_what },
	{ "happened", NULL, external_when }, { "detected by", "detected_by", NULL },
	{ "made by", "who", NULL }, { "outcome", NULL, external_outcome },
	{ NULL, NULL, NULL },
};

void msg_out_external_changes(struct out *o, enum out_format format, const char *key,
			      Weft__V1__ExternalChange *const *v, size_t n)
{
	if (format == OUT_TABLE) {
		msg_out_table(o, key, external_columns, (void *const *)v, n);
	} else {
		msg_out_list(o, key, (void *const *)v, n);
	}
}

/* Those of all devices that are still open; nothing when there are none. */
static void out_open_external_changes(struct out *o, Weft__V1__DeviceState *const *v, size_t n,
				      bool full)
{
	size_t count = 0;

	for (size_t i = 0; i < n; i++) {
		count += v[i]->n_external_changes;
	}
	if (count == 0) {
		return;
	}
	out_array(o, "external changes");
	for (size_t i = 0; i < n; i++) {
		for (size_t k = 0; k < v[i]->n_external_changes && (full || k < SHOWN); k++) {
			msg_out_row(o, external_columns, v[i]->external_changes[k]);
		}
	}
	out_end(o);
}

/* ---- what hosts receive -------------------------------------------------- */

static const struct msg_column host_columns[] = {
	{ "host", "name", NULL }, { "netns", "netns", NULL }, { "routes", "routes", NULL },
	{ "problem", "problem", NULL }, { NULL, NULL, NULL },
};

static const struct msg_column port_columns[] = {
	{ "port", "name", NULL }, { "link", "link", NULL }, { "layer", "layer", NULL },
	{ "from", "from", NULL }, { "neighbour", "neighbour", NULL },
	{ "carrier_changes", "carrier_changes", NULL }, { "rx_errors", "rx_errors", NULL },
	{ "tx_errors", "tx_errors", NULL }, { "problem", "problem", NULL }, { NULL, NULL, NULL },
};

/* Hosts that have a problem, and ports: those with a problem, or all. */
static void out_links(struct out *o, const Weft__V1__HostsState *h, bool full)
{
	size_t bad_hosts = 0, bad_ports = 0;
	struct buf b = { 0 };

	for (size_t i = 0; i < h->n_hosts; i++) {
		bad_hosts += h->hosts[i]->problem[0] != '\0';
	}
	for (size_t i = 0; i < h->n_ports; i++) {
		bad_ports += h->ports[i]->problem[0] != '\0';
	}
	out_object(o, "links");
	out_str(o, "layer", h->layer);
	out_int(o, "expected", h->expected);
	out_int(o, "good", h->good);
	age_text(h->probed_at_ns, &b);
	out_str(o, "probed", buf_cstr(&b));
	buf_fini(&b);
	if (bad_hosts) {
		out_array(o, "hosts");
		for (size_t i = 0; i < h->n_hosts; i++) {
			if (h->hosts[i]->problem[0]) {
				msg_out_row(o, host_columns, h->hosts[i]);
			}
		}
		out_end(o);
	}
	if (full || bad_ports) {
		out_array(o, "ports");
		for (size_t i = 0; i < h->n_ports; i++) {
			if (full || h->ports[i]->problem[0]) {
				msg_out_row(o, port_columns, h->ports[i]);
			}
		}
		out_end(o);
	}
	out_end(o);
}

/* ---- changes ------------------------------------------------------------- */

static void change_began(const void *m, struct buf *b)
{
	put_time(((const Weft__V1__Change *)m)->started_at_ns, b);
}

/* What was proven is known of changes that were committed. */
static void change_proof(const void *m, struct buf *b)
{
	const Weft__V1__Change *ch = m;
	char text[32];

	if (strcmp(ch->outcome, "committed") == 0) {
		buf_str(b, proof_name(ch->proof, text, sizeof(text)));
	}
}

/* How long circuits were down, and were expected to be. */
static void change_downtime(const void *m, struct buf *b)
{
	const Weft__V1__Change *ch = m;
	char is[32], expected[32];

	if (ch->down_ns) {
		buf_printf(b, "%s of %s", unit_human(UNIT_NS, (double)ch->down_ns, is, sizeof(is)),
			   unit_human(UNIT_NS, (double)ch->expected_down_ns, expected,
				      sizeof(expected)));
	}
}

/* The operator's comment, then what weftd did. */
static void change_what(const void *m, struct buf *b)
{
	const Weft__V1__Change *ch = m;

	buf_printf(b, "%s%s%s", ch->comment, ch->comment[0] && ch->summary[0] ? ": " : "",
		   ch->summary);
}

const struct msg_column msg_change_columns[] = {
	{ "change", "id", NULL }, { "outcome", "outcome", NULL }, { "gen", "generation", NULL },
	{ "began", NULL, change_began }, { "who", "who", NULL }, { "proof", NULL, change_proof },
	{ "down", NULL, change_downtime }, { "what", NULL, change_what }, { NULL, NULL, NULL },
};

static const Weft__V1__Change *find_change(const Weft__V1__AuditResponse *a, int64_t id)
{
	for (size_t i = 0; i < a->n_changes; i++) {
		if (a->changes[i]->id == id) {
			return a->changes[i];
		}
	}
	return NULL;
}

/* The change of each line is searched for: O(lines x changes), both few. */
void msg_out_audit(struct out *o, enum out_format format, const Weft__V1__AuditResponse *a)
{
	struct buf proof = { 0 };

	out_array(o, "audit");
	for (size_t i = 0; i < a->n_lines; i++) {
		const Weft__V1__AuditLine *l = a->lines[i];
		const Weft__V1__Change *ch = find_change(a, l->change);

		buf_reset(&proof);
		if (ch) {
			change_proof(ch, &proof);
		}
		out_object(o, NULL);
		if (format != OUT_TABLE) {
			out_int(o, "id", l->id);
		}
		msg_out_time(o, "at", l->at_ns);
		out_int(o, "change", l->change);
		out_str(o, "who", ch ? ch->who : "");
		out_str(o, "outcome", ch ? ch->outcome : "");
		out_str(o, "proof", buf_cstr(&proof));
		out_str(o, "device", l->device);
		out_str(o, "kind", l->kind);
		out_str(o, "text", l->text);
		out_end(o);
	}
	out_end(o);
	buf_fini(&proof);
}

/* A change on one line, under a key of its own, with when it ended or, of one
 * that has not, began. */
static void out_change_line(struct out *o, const char *key, const Weft__V1__Change *ch)
{
	char when[32];

	if (ch) {
		out_fmt(o, key, "%lld %s %s %s by %s%s%s%s%s", (long long)ch->id, ch->outcome,
			ch->ended_at_ns ? "at" : "since",
			clk_iso(ch->ended_at_ns ? ch->ended_at_ns : ch->started_at_ns, when,
				sizeof(when)), ch->who,
			ch->comment[0] ? ": " : "", ch->comment, ch->summary[0] ? "; " : "",
			ch->summary);
	}
}

/* ---- jobs ---------------------------------------------------------------- */

/* While a change concerns the job that is said; "down" and "degraded" come from failed
 * circuits; without any, a job is "up" when its circuits were read back. */
static const char *job_health(const Weft__V1__PlanJob *j)
{
	if (j->gain) {
		return j->gain->effect == WEFT__V1__JOB_EFFECT__JOB_EFFECT_BEGINS ? "beginning" :
		       j->gain->effect == WEFT__V1__JOB_EFFECT__JOB_EFFECT_ENDS ? "ending" :
										 "changing";
	}
	if (j->degradation) {
		return j->degradation->rate > 0 ? "degraded" : "down";
	}
	return j->proof >= WEFT__V1__PROOF__PROOF_READ_BACK ? "up" : "unverified";
}

/* Without a collective, and times. */
static bool is_circuits(const Weft__V1__PlanJob *j)
{
	return strcmp(j->collective, "circuits") == 0;
}

/* On rings a part has failed, and apply loads a program that does without; on
 * switches circuits have, and the schedule changes by itself. */
void msg_degradation_text(const Weft__V1__PlanJob *j, char *text, size_t size)
{
	const Weft__V1__JobDegradation *l = j->degradation;
	char what[256], more[32] = "", uneven[64] = "";

	if (l->failed == 0) {
		snprintf(text, size, "job %s: %s: %s", j->name, l->device, l->problem);
		return;
	}
	if (l->failed > 1) {
		snprintf(more, sizeof(more), " and %d more", l->failed - 1);
	}
	if (l->part[0]) {
		snprintf(what, sizeof(what), "%s: %s%s failed", l->device, l->part, more);
	} else {
		snprintf(what, sizeof(what), "%d of %d circuits failed (%s, in %d -> out %d ...)",
			 l->failed, j->circuits, l->device, l->in, l->out);
	}
	if (l->uneven_loss > 0) {
		snprintf(uneven, sizeof(uneven), " (uneven links lose %.1f %%, whatever the "
			 "schedule)", 100 * l->uneven_loss);
	}
	if (is_circuits(j)) {
		snprintf(text, size, "job %s: %s, and are dark until they are repaired", j->name,
			 what);
	} else if (l->rate <= 0) {
		snprintf(text, size, "job %s: %s%s and no schedule on what remains: %s", j->name,
			 what, l->part[0] ? "" : ",", l->problem);
	} else if (l->part[0]) {
		snprintf(text, size, "job %s: %s: \"weft apply\" does without, at %.1f %% of the "
			 "rate", j->name, what, 100 * l->rate);
	} else {
		snprintf(text, size, "job %s: %s: its schedule is now the one on what remains, at "
			 "%.1f %% of the rate%s", j->name, what, 100 * l->rate, uneven);
	}
}

void msg_without_text(const Weft__V1__PlanJob *j, char *text, size_t size)
{
	char more[32] = "";

	if (j->n_failed_parts > 1) {
		snprintf(more, sizeof(more), " and %zu more", j->n_failed_parts - 1);
	}
	snprintf(text, size, "job %s: does without %s%s, which failed: %.1f %% of the rate",
		 j->name, j->failed_parts[0], more, 100 * j->rate);
}

/* A ring's job without a topology is named by its ring. */
static void job_topology(const void *m, struct buf *b)
{
	const Weft__V1__PlanJob *j = m;

	buf_str(b, !j->topology[0] && j->n_devices == 1 ? j->devices[0] : j->topology);
}

static void job_gap(const void *m, struct buf *b)
{
	buf_printf(b, "%.1f %%", 100 * ((const Weft__V1__PlanJob *)m)->gap);
}

/* A step has them for each collective. */
static void job_steps(const void *m, struct buf *b)
{
	const Weft__V1__PlanJob *j = m;

	buf_printf(b, j->step ? "-" : "%d", j->steps);
}

static void job_factor(const void *m, struct buf *b)
{
	const Weft__V1__PlanJob *j = m;

	buf_str(b, j->step ? "-" : j->bandwidth_factor);
}

static const struct msg_column planned_job_columns[] = {
	{ "job", "name", NULL }, { "collective", "collective", NULL },
	{ "algorithm", "algorithm", NULL }, { "topology", NULL, job_topology },
	{ "steps", NULL, job_steps }, { "M/B", NULL, job_factor },
	{ "time", "time_ns", NULL }, { "gap", NULL, job_gap }, { NULL, NULL, NULL },
};

static void job_devices(const void *m, struct buf *b)
{
	const Weft__V1__PlanJob *j = m;

	for (size_t i = 0; i < j->n_devices; i++) {
		buf_printf(b, "%s%s", i ? ", " : "", j->devices[i]);
	}
}

static const struct msg_column planned_circuit_columns[] = {
	{ "group", "name", NULL }, { "circuits", "circuits", NULL }, { "hosts", "nodes", NULL },
	{ "switches", NULL, job_devices }, { NULL, NULL, NULL },
};

/* The one that was taken. NULL: none. */
static const Weft__V1__PlanTopology *taken_topology(const Weft__V1__PlanJob *j)
{
	for (size_t i = 0; i < j->n_considered; i++) {
		if (!j->considered[i]->refused[0]) {
			return j->considered[i];
		}
	}
	return NULL;
}

/* "2 steps fewer, 18.0 % slower" than the one that was taken. */
static void compare_text(const Weft__V1__PlanTopology *taken, const Weft__V1__PlanTopology *t,
			 struct buf *b)
{
	int more = t->steps - taken->steps;
	double share = 100 * ((double)t->time_ns / (double)taken->time_ns - 1);

	if (more) {
		buf_printf(b, "%d step%s %s", abs(more), abs(more) == 1 ? "" : "s",
			   more < 0 ? "fewer" : "more");
	} else {
		buf_str(b, "as many steps");
	}
	buf_printf(b, ", %.1f %% %s", fabs(share), share < 0 ? "faster" : "slower");
}

/* Those that the switches stand against, and the next best. */
static void note_considered(struct out *o, const Weft__V1__PlanJob *j)
{
	const Weft__V1__PlanTopology *taken = taken_topology(j);

	for (size_t i = 0; i < j->n_considered && taken; i++) {
		const Weft__V1__PlanTopology *t = j->considered[i];
		struct buf b = { 0 };

		compare_text(taken, t, &b);
		if (t->refused[0]) {
			out_note(o, "job %s: not %s (%s), which the switches cannot be wired for: "
				 "%s", j->name, t->topology, buf_cstr(&b), t->refused);
		} else if (t != taken) {
			out_note(o, "job %s: next best is %s: %s", j->name, t->topology,
				 buf_cstr(&b));
		}
		buf_fini(&b);
	}
}

/* Sizes at which it would be another than the one that was taken. */
static void note_fastest(struct out *o, const Weft__V1__PlanJob *j)
{
	Weft__V1__PlanRange *const *r = j->fastest;
	size_t next = 0;
	char text[32];

	while (next < j->n_fastest && r[next]->from_bytes <= j->size_bytes) {
		next++;
	}
	if (next > 1 && strcmp(r[next - 2]->topology, j->topology) != 0) {
		out_note(o, "job %s: for less than %s %s would be faster", j->name,
			 unit_human(UNIT_BYTES, (double)r[next - 1]->from_bytes, text,
				    sizeof(text)), r[next - 2]->topology);
	}
	if (next < j->n_fastest && strcmp(r[next]->topology, j->topology) != 0) {
		out_note(o, "job %s: from %s on %s would be faster", j->name,
			 unit_human(UNIT_BYTES, (double)r[next]->from_bytes, text, sizeof(text)),
			 r[next]->topology);
	}
}

/* Why a topology was taken that was not given. */
static void note_choice(struct out *o, const Weft__V1__PlanJob *j)
{
	const Weft__V1__PlanTopology *taken = taken_topology(j);

	if (j->n_considered == 0) {
		return;
	}
	if (taken && taken->ports > 0 && taken->ports < j->ports) {
		out_note(o, "job %s: %d of %d ports a host stay dark: none that is known is "
			 "faster with them", j->name, j->ports - taken->ports, j->ports);
	}
	if (j->steps_bound > 0 && taken) {
		const char *bound = j->bandwidth_bound;

		out_note(o, "job %s: chosen for %d %s ports a host: %d step%s%s (at least %d), "
			 "%s M/B%s%s%s", j->name, j->ports, j->bidirectional ? "duplex"
				 : "one-way", taken->steps, taken->steps == 1 ? "" : "s",
			 bound[0] ? "" : " between hosts", j->steps_bound,
			 taken->bandwidth_factor, bound[0] ? " (bound " : "", bound,
			 bound[0] ? ")" : "");
	}
	note_considered(o, j);
	note_fastest(o, j);
}

/* What an algorithm on coordinates is made of. */
static void note_algorithm(struct out *o, const Weft__V1__PlanJob *j)
{
	struct buf b = { 0 };

	if (j->levels[0]) {
		buf_printf(&b, " in levels of %s", j->levels);
	}
	if (j->rounds && j->rounds->value == 0) {
		buf_printf(&b, "%s exchanges only", j->levels[0] ? "," : "");
	} else if (j->rounds) {
		buf_printf(&b, "%s exchanges after %lld round%s of reduce-scatter",
			   j->levels[0] ? "," : "", (long long)j->rounds->value,
			   j->rounds->value == 1 ? "" : "s");
	}
	if (b.len > 0) {
		out_note(o, "job %s: %s%s", j->name, j->algorithm, buf_cstr(&b));
	}
	buf_fini(&b);
}

/* "1.53 ms (whole 1.2 ms)", or what there is instead of a time. */
static void put_times(struct buf *b, const Weft__V1__Number *ns, const Weft__V1__Number *whole_ns,
		      const char *none)
{
	char text[32];

	if (!ns) {
		buf_str(b, none);
		return;
	}
	buf_str(b, unit_human(UNIT_NS, (double)ns->value, text, sizeof(text)));
	if (whole_ns && whole_ns->value != ns->value) {
		buf_printf(b, " (%s with nothing lost)",
			   unit_human(UNIT_NS, (double)whole_ns->value, text, sizeof(text)));
	}
}

/* When the outage of a job that changes is paid back, after a comma. */
static void put_payback(struct buf *b, const Weft__V1__JobGain *g)
{
	char down[32], size[32];

	if (g->down_ns == 0) {
		buf_str(b, ", without an outage");
		return;
	}
	unit_human(UNIT_NS, (double)g->down_ns, down, sizeof(down));
	unit_human(UNIT_BYTES, (double)g->size_bytes, size, sizeof(size));
	buf_printf(b, ", an outage of %s", down);
	if (!g->payback) {
		buf_str(b, g->size_bytes ? ", which is never paid back" : "");
	} else if (g->payback->value > 0) {
		buf_printf(b, ", paid back after %lld %s%s%s%s", (long long)g->payback->value,
			   g->size_bytes ? "collective" : "step",
			   g->payback->value == 1 ? "" : "s", g->size_bytes ? " of " : "",
			   g->size_bytes ? size : "");
	}
}

/* Of circuits, which have no times, and of steps, which have no size. */
static void put_circuits_gain(const Weft__V1__JobGain *g, struct buf *b)
{
	bool changes = g->effect == WEFT__V1__JOB_EFFECT__JOB_EFFECT_CHANGES;

	buf_str(b, g->effect == WEFT__V1__JOB_EFFECT__JOB_EFFECT_BEGINS ? "begins" :
		   changes ? "changes" : "ends");
	if (changes) {
		put_payback(b, g);
	}
}

void msg_gain_text(const Weft__V1__JobGain *g, struct buf *b)
{
	if (g->size_bytes == 0) {
		put_circuits_gain(g, b);
		return;
	}
	switch (g->effect) {
	case WEFT__V1__JOB_EFFECT__JOB_EFFECT_BEGINS:
		buf_str(b, "begins: ");
		put_times(b, g->after_ns, g->after_whole_ns, "-");
		buf_str(b, " a collective");
		return;
	case WEFT__V1__JOB_EFFECT__JOB_EFFECT_ENDS:
		buf_str(b, "ends: ");
		put_times(b, g->before_ns, g->before_whole_ns, "it cannot run");
		buf_str(b, g->before_ns ? " a collective" : "");
		return;
	default:
		put_times(b, g->before_ns, g->before_whole_ns, "cannot run");
		buf_str(b, " before, ");
		put_times(b, g->after_ns, g->after_whole_ns, "-");
		buf_str(b, " after");
		put_payback(b, g);
	}
}

void msg_note_gains(struct out *o, Weft__V1__JobGain *const *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct buf b = { 0 };

		if (v[i] && v[i]->effect != WEFT__V1__JOB_EFFECT__JOB_EFFECT_STAYS) {
			msg_gain_text(v[i], &b);
			out_note(o, "job %s: %s", v[i]->job, buf_cstr(&b));
		}
		buf_fini(&b);
	}
}

void msg_note_change(struct out *o, const Weft__V1__Change *c)
{
	for (size_t i = 0; i < c->n_jobs; i++) {
		struct buf b = { 0 };

		msg_gain_text(c->jobs[i], &b);
		out_note(o, "change %lld, job %s: %s", (long long)c->id, c->jobs[i]->job,
			 buf_cstr(&b));
		buf_fini(&b);
	}
}

/* What tables do not show: algorithms, how topologies were chosen, and of jobs on rings. */
/* Of a status: which light of a step is lit. */
static void note_light(struct out *o, const Weft__V1__PlanJob *j)
{
	char since[64];

	if (j->step && j->step->lit_at_ns) {
		out_note(o, "job %s: light %d of %zu is lit, since %s, asked for by %s", j->name,
			 j->step->lit, j->step->n_lights,
			 clk_iso(j->step->lit_at_ns, since, sizeof(since)), j->step->lit_by);
	}
}

#define LOST_SHOWN 6

/* Which lightpaths went, and how many have a backup. */
static void note_lightpaths(struct out *o, const Weft__V1__PlanJob *j)
{
	const Weft__V1__JobDegradation *l = j->degradation;
	struct buf b = { 0 };

	for (size_t i = 0; l && i < l->n_lost && i < LOST_SHOWN; i++) {
		buf_printf(&b, "%s%s -> %s", i ? ", " : "", l->lost[i]->from, l->lost[i]->to);
	}
	if (b.len && l->n_lost > LOST_SHOWN) {
		buf_printf(&b, " and %zu more", l->n_lost - LOST_SHOWN);
	}
	if (b.len) {
		out_note(o, "job %s: dark: %s", j->name, buf_cstr(&b));
	}
	if (j->protected_lightpaths + j->unprotected_lightpaths > 0) {
		out_note(o, "job %s: %d of %d lightpaths between switches have a backup", j->name,
			 j->protected_lightpaths,
			 j->protected_lightpaths + j->unprotected_lightpaths);
	}
	buf_fini(&b);
}

static void note_jobs(struct out *o, Weft__V1__PlanJob *const *jobs, size_t n)
{
	char text[512];

	for (size_t i = 0; i < n; i++) {
		const Weft__V1__PlanJob *j = jobs[i];

		msg_note_gains(o, &j->gain, j->gain != NULL);
		note_algorithm(o, j);
		note_choice(o, j);
		note_light(o, j);
		note_lightpaths(o, j);
		if (j->retune_hidden_ns > 0) {
			out_note(o, "job %s: %s of retuning behind others' data", j->name,
				 unit_human(UNIT_NS, (double)j->retune_hidden_ns, text,
					    sizeof(text)));
		}
		if (j->n_failed_parts > 0) {
			msg_without_text(j, text, sizeof(text));
			out_note(o, "%s", text);
		}
		if (j->advice[0]) {
			out_note(o, "%s", j->advice);
		}
	}
}

void msg_out_planned_jobs(struct out *o, enum out_format format, Weft__V1__PlanJob *const *jobs,
			  size_t n)
{
	Weft__V1__PlanJob **v;
	size_t k = 0, collectives = 0;

	if (format != OUT_TABLE) {
		msg_out_list(o, "jobs", (void *const *)jobs, n);
		return;
	}
	v = x_new(n + 1, sizeof(Weft__V1__PlanJob *));
	for (int circuits = 0; circuits <= 1; circuits++) {
		collectives = circuits ? k : 0;
		for (size_t i = 0; i < n; i++) {
			if (is_circuits(jobs[i]) == (circuits == 1)) {
				v[k++] = jobs[i];
			}
		}
	}
	msg_out_table(o, "jobs", planned_job_columns, (void *const *)v, collectives);
	if (k > collectives) {
		msg_out_table(o, "circuits", planned_circuit_columns,
			      (void *const *)(v + collectives), k - collectives);
	}
	for (size_t i = 0; i < n; i++) {
		if (jobs[i]->step) {
			msg_out_step(o, jobs[i]);
		}
	}
	note_jobs(o, jobs, n);
	free(v);
}

/* A job of a status, for people. */
static void out_job_row(struct out *o, const Weft__V1__PlanJob *j)
{
	struct buf topology = { 0 };
	char text[64];

	job_topology(j, &topology);
	out_str(o, "job", j->name);
	out_str(o, "health", job_health(j));
	out_str(o, "proof", proof_name(j->proof, text, sizeof(text)));
	out_fmt(o, "rate", "%.4g %%", 100 * j->rate);
	out_str(o, "time", j->expected_time_ns > 0 ?
		unit_human(UNIT_NS, (double)j->expected_time_ns, text, sizeof(text)) : "-");
	out_str(o, "fault-free", j->whole_time_ns > 0 ?
		unit_human(UNIT_NS, (double)j->whole_time_ns, text, sizeof(text)) : "-");
	out_str(o, "collective", j->collective);
	out_str(o, "topology", buf_cstr(&topology));
	buf_fini(&topology);
}

/* Health follows the message's fields for programs. */
static void out_jobs(struct out *o, enum out_format format, const Weft__V1__StatusResponse *s)
{
	out_array(o, "jobs");
	for (size_t i = 0; i < s->n_jobs; i++) {
		const Weft__V1__PlanJob *j = s->jobs[i];

		out_object(o, NULL);
		if (format == OUT_TABLE) {
			out_job_row(o, j);
		} else {
			msg_out_fields(o, j, NULL);
			out_str(o, "health", job_health(j));
		}
		out_end(o);
	}
	out_end(o);
}

static void request_position(const void *m, struct buf *b)
{
	const Weft__V1__Job *j = m;

	if (j->position > 0) {
		buf_printf(b, "%d", j->position);
	}
}

static void request_made(const void *m, struct buf *b)
{
	put_time(((const Weft__V1__Job *)m)->requested_at_ns, b);
}

/* Of one that waits when it should start, as far as is known. */
static void request_start(const void *m, struct buf *b)
{
	const Weft__V1__Job *j = m;

	if (j->started_at_ns > 0) {
		put_time(j->started_at_ns, b);
	} else if (j->estimated_start_at_ns > 0) {
		buf_str(b, "by ");
		put_time(j->estimated_start_at_ns, b);
	}
}

static void request_end(const void *m, struct buf *b)
{
	const Weft__V1__Job *j = m;

	if (j->ended_at_ns > 0) {
		put_time(j->ended_at_ns, b);
	}
}

static const struct msg_column request_columns[] = {
	{ "job", "name", NULL }, { "state", "state", NULL }, { "queue", NULL, request_position },
	{ "nodes", "nodes", NULL }, { "priority", "priority", NULL }, { "who", "who", NULL },
	{ "requested", NULL, request_made }, { "start", NULL, request_start },
	{ "end", NULL, request_end }, { "problem", "problem", NULL }, { NULL, NULL, NULL },
};

void msg_out_requests(struct out *o, enum out_format format, Weft__V1__Job *const *v, size_t n)
{
	if (format == OUT_TABLE) {
		msg_out_table(o, "jobs", request_columns, (void *const *)v, n);
	} else {
		msg_out_list(o, "jobs", (void *const *)v, n);
	}
}

void msg_out_event(struct out *o, const Weft__V1__WatchResponse *ev)
{
	bool has_ended = ev->kind == WEFT__V1__EVENT_KIND__EVENT_KIND_CHANGE_ENDED;

	msg_out_fields(o, ev, has_ended ? NULL : "verdict");
}

/* ---- drained and frozen parts -------------------------------------------- */

static void hold_target(const void *m, struct buf *b)
{
	const Weft__V1__Hold *h = m;

	buf_str(b, h->target[0] ? h->target : "*");
}

static void hold_state(const void *m, struct buf *b)
{
	buf_str(b, ((const Weft__V1__Hold *)m)->target[0] ? "drained" : "frozen");
}

const struct msg_column msg_hold_columns[] = {
	{ "target", NULL, hold_target }, { "state", NULL, hold_state },
	{ "since", "since_at_ns", NULL }, { "who", "who", NULL }, { "reason", "reason", NULL },
	{ NULL, NULL, NULL },
};

/* ---- whole answers ------------------------------------------------------- */

static void repair_circuit(const void *m, struct buf *b)
{
	const Weft__V1__PendingRepair *r = m;

	buf_printf(b, "in %d -> out %d", r->in, r->out);
}

static const struct msg_column repair_columns[] = {
	{ "device", "device", NULL }, { "circuit", NULL, repair_circuit },
	{ "change", "change", NULL }, { "since", "since_at_ns", NULL }, { "why", "why", NULL },
	{ NULL, NULL, NULL },
};

/* "add: ocs0: 3 of 8 moves are over (3/8), about 2 min left". */
static void out_progress(struct out *o, const Weft__V1__ChangeProgress *p)
{
	char left[48] = "", text[32];

	if (p->eta_ns > 0) {
		snprintf(left, sizeof(left), ", about %s left",
			 unit_human(UNIT_NS, (double)p->eta_ns, text, sizeof(text)));
	}
	out_fmt(o, "changing", "%s%s%s%s%s (%d/%d)%s", p->phase, p->device[0] ? ": " : "",
		p->device, p->text[0] ? ": " : "", p->text, p->done, p->total, left);
}

static const struct msg_column participant_columns[] = {
	{ "name", "name", NULL }, { "domains", "domains", NULL }, { "leader", "leader", NULL },
	{ "state", "state", NULL }, { NULL, NULL, NULL },
};

/* What concerns the fabric as a whole: state, generation, changes, holds and
 * repairs. */
static void out_head(struct out *o, const Weft__V1__StatusResponse *s)
{
	char text[32];

	out_str(o, "state", msg_enum(&weft__v1__state__descriptor, (int)s->state, text,
				     sizeof(text)));
	if (s->advice[0]) {
		out_str(o, "advice", s->advice);
	}
	if (s->leadership) {
		out_object(o, "leadership");
		msg_out_fields(o, s->leadership, NULL);
		out_end(o);
	}
	if (s->n_participants > 0) {
		msg_out_table(o, "participants", participant_columns,
			      (void *const *)s->participants, s->n_participants);
	}
	out_str(o, "fabric", s->fabric);
	out_int(o, "generation", s->generation);
	out_change_line(o, "last_change", s->last_change);
	out_change_line(o, "open_change", s->open_change);
	if (s->progress) {
		out_progress(o, s->progress);
	}
	if (s->confirm) {
		out_object(o, "confirm");
		msg_out_fields(o, s->confirm, NULL);
		out_end(o);
	}
	if (s->n_holds > 0) {
		msg_out_table(o, "holds", msg_hold_columns, (void *const *)s->holds, s->n_holds);
	}
	if (s->n_repairs > 0) {
		msg_out_table(o, "repairs", repair_columns, (void *const *)s->repairs,
			      s->n_repairs);
	}
}

/* The whole status for people, in the order in which one looks at it. */
static void out_status_table(struct out *o, bool full, const Weft__V1__StatusResponse *s)
{
	out_head(o, s);
	out_problems(o, s->problems, s->n_problems, full);
	out_devices(o, s->devices, s->n_devices, full);
	out_open_external_changes(o, s->devices, s->n_devices, full);
	note_power_loss(o, s->devices, s->n_devices);
	if (s->links) {
		out_links(o, s->links, full);
	}
	/* Jobs are planned in the background after each change. */
	if (!s->jobs_known && s->jobs_problem[0]) {
		out_str(o, "jobs_problem", s->jobs_problem);
	} else if (!s->jobs_known && s->fabric[0]) {
		out_note(o, "jobs: still being planned");
	}
	out_jobs(o, OUT_TABLE, s);
	note_jobs(o, s->jobs, s->n_jobs);
	if (s->n_jobs > 0) {
		out_note(o, "schedules: weft schedule export --job NAME -o FILE");
	}
}

void msg_out_status(struct out *o, enum out_format format, bool full,
		    const Weft__V1__StatusResponse *s)
{
	if (format == OUT_TABLE) {
		out_status_table(o, full, s);
	} else {
		msg_out_fields(o, s, "jobs");
		out_jobs(o, format, s);
	}
}

void msg_out_diff(struct out *o, enum out_format format, bool full, const Weft__V1__Diff *d)
{
	if (format != OUT_TABLE) {
		msg_out_fields(o, d, NULL);
		return;
	}
	out_int(o, "generation", d->generation);
	out_bool(o, "same", d->same);
	out_bool(o, "complete", d->complete);
	out_problems(o, d->problems, d->n_problems, full);
	out_devices(o, d->devices, d->n_devices, full);
	out_open_external_changes(o, d->devices, d->n_devices, full);
	if (d->links) {
		out_links(o, d->links, full);
	}
}
