/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls, and what was read, held against each other. Each target is a register: its writes and
 * reads are kept in the order in which they ended, and judged at the end, when all that may have
 * happened is known. What is wrong at once (two configurations of one generation, a generation
 * that was newer before) fails at once, so that it stands in the trace where it happened.
 */
#include "tests/sim/cluster/history.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/vec.h"
#include "tests/sim/kernel/sim.h"

#define NAME 64
#define VALUE 72		/* a digest in hex fits */
#define MAX_DOMAINS 8

struct op {
	char client[NAME], value[VALUE];
	bool is_read;
	bool certain;		/* the value was there between begin and end */
	bool refused;
	int64_t begin, end;	/* of a write that is not certain: it takes effect before this */
};

struct target {
	char name[NAME];
	VEC(struct op) ops;
};

/* A call that is a write: where it is. */
struct call {
	size_t target, op;
	enum history_outcome outcome;
};

struct sighting {
	int64_t end, newest;	/* generation, of this and of all before */
};

struct generations {
	VEC(struct { int64_t generation; char digest[VALUE]; }) known;
	VEC(struct sighting) seen;
};

static struct {
	VEC(struct target) targets;
	VEC(struct call) calls;
	struct generations domains[MAX_DOMAINS];
	int count[HISTORY_UNKNOWN + 1];
} h;

const char *history_outcome_name(enum history_outcome outcome)
{
	static const char *const names[] = { "open", "done", "refused", "unknown" };

	return names[outcome];
}

/* ---- notes ---- */

static size_t find_target(const char *name)
{
	size_t i;

	for (i = 0; i < h.targets.n && strcmp(h.targets.v[i].name, name) != 0; i++) {
	}
	if (i == h.targets.n) {
		struct target t = { 0 };

		snprintf(t.name, sizeof(t.name), "%s", name);
		vec_push(&h.targets, t);
	}
	return i;
}

static struct op *note(const char *client, const char *target, const char *value)
{
	size_t i = find_target(target);		/* which may move them */
	struct target *t = &h.targets.v[i];
	struct op o = { .begin = sim_now(), .end = INT64_MAX };

	snprintf(o.client, sizeof(o.client), "%s", client);
	snprintf(o.value, sizeof(o.value), "%s", value);
	vec_push(&t->ops, o);
	return &t->ops.v[t->ops.n - 1];
}

int history_begin(const char *client, const char *target, const char *value)
{
	struct call c = { .target = find_target(target) };

	note(client, target, value);
	c.op = h.targets.v[c.target].ops.n - 1;
	vec_push(&h.calls, c);
	h.count[HISTORY_OPEN]++;
	return (int)h.calls.n - 1;
}

void history_end(int call, enum history_outcome outcome, const char *value)
{
	struct call *c = &h.calls.v[call];
	struct op *o = &h.targets.v[c->target].ops.v[c->op];

	h.count[c->outcome]--;
	h.count[outcome]++;
	c->outcome = outcome;
	o->refused = outcome == HISTORY_REFUSED;
	o->certain = outcome == HISTORY_DONE;
	o->end = o->certain ? sim_now() : INT64_MAX;
	if (value) {
		snprintf(o->value, sizeof(o->value), "%s", value);
	}
}

void history_read(const char *client, const char *target, const char *value, int64_t begin_ns)
{
	struct op *o = note(client, target, value);

	o->is_read = o->certain = true;
	o->begin = begin_ns;
	o->end = sim_now();
}

int history_by_itself(const char *target, const char *value, int64_t from_ns, int64_t to_ns)
{
	int call = history_begin("weftd", target, value);
	const struct call *c = &h.calls.v[call];
	struct op *o = &h.targets.v[c->target].ops.v[c->op];

	h.count[HISTORY_OPEN]--;	/* no client's call */
	o->begin = from_ns;
	o->end = to_ns;
	return call;
}

void history_end_by_itself(int number, int64_t to_ns)
{
	const struct call *c = &h.calls.v[number];

	h.targets.v[c->target].ops.v[c->op].end = to_ns;
}

void history_initial(const char *target, const char *value)
{
	size_t i = find_target(target);
	struct op *o;

	if (h.targets.v[i].ops.n == 0) {
		o = note("-", target, value);
		o->certain = true;
		o->begin = o->end = -1;
	}
}

const char *history_target(size_t i)
{
	return i < h.targets.n ? h.targets.v[i].name : NULL;
}

void history_count(int *done, int *refused, int *unknown)
{
	*done = h.count[HISTORY_DONE];
	*refused = h.count[HISTORY_REFUSED];
	*unknown = h.count[HISTORY_UNKNOWN] + h.count[HISTORY_OPEN];
}

/* ---- generations ---- */

const char *history_configuration(int domain, int64_t generation)
{
	const struct generations *g = &h.domains[domain];

	for (size_t i = g->known.n; i-- > 0;) {
		if (g->known.v[i].generation == generation) {
			return g->known.v[i].digest;
		}
	}
	return "";
}

static void check_truth(const char *client, int domain, int64_t generation, const char *digest)
{
	struct generations *g = &h.domains[domain];

	for (size_t i = g->known.n; i-- > 0;) {
		if (g->known.v[i].generation != generation) {
			continue;
		}
		if (strcmp(g->known.v[i].digest, digest) != 0) {
			sim_fail("two truths", "generation %" PRId64 " of domain %d was %.12s, "
				 "and %s hears that it is %.12s", generation, domain,
				 g->known.v[i].digest, client, digest);
		}
		return;
	}
	vec_reserve(&g->known, 1);
	g->known.v[g->known.n].generation = generation;
	snprintf(g->known.v[g->known.n++].digest, VALUE, "%s", digest);
}

void history_generation(const char *client, int domain, int64_t generation, const char *digest,
			int64_t begin_ns)
{
	struct generations *g = &h.domains[domain];
	int64_t newest = g->seen.n > 0 ? g->seen.v[g->seen.n - 1].newest : 0;
	size_t i;

	if (digest) {
		check_truth(client, domain, generation, digest);
	}
	for (i = g->seen.n; i > 0 && g->seen.v[i - 1].end >= begin_ns; i--) {
	}
	if (i > 0 && g->seen.v[i - 1].newest > generation) {
		sim_fail("lost generation", "%s hears of generation %" PRId64 " of domain %d after "
			 "%" PRId64 " was told", client, generation, domain,
			 g->seen.v[i - 1].newest);
	}
	newest = newest > generation ? newest : generation;
	vec_push(&g->seen, (struct sighting){ sim_now(), newest });
}

/* ---- judgement ---- */

static bool same(const struct op *write, const char *value)
{
	return strcmp(write->value, value) == 0 || strcmp(write->value, HISTORY_ANY) == 0;
}

/* The latest begin of what is known to have been there, other than the value and over before
 * the read began: a write that explains the read is no older. NULL: none. */
static const struct op *last_other(const struct target *t, const struct op *read)
{
	const struct op *last = NULL;

	for (size_t i = 0; i < t->ops.n; i++) {
		const struct op *o = &t->ops.v[i];

		if (o->certain && o->end < read->begin && !same(o, read->value) &&
		    (!last || o->begin > last->begin)) {
			last = o;
		}
	}
	return last;
}

/* The rule that is broken, by what was lost. */
static const char *rule_of(const struct target *t)
{
	static const char *const rules[][2] = {
		{ "hold", "lost hold" }, { "job", "lost job" },
		{ "configuration", "lost configuration" },
	};

	for (size_t i = 0; i < sizeof(rules) / sizeof(*rules); i++) {
		if (strncmp(t->name, rules[i][0], strlen(rules[i][0])) == 0) {
			return rules[i][1];
		}
	}
	return "lost";
}

static bool is_explained(const struct target *t, const struct op *read, const struct op *other)
{
	for (size_t i = 0; i < t->ops.n; i++) {
		const struct op *o = &t->ops.v[i];

		if (!o->is_read && !o->refused && same(o, read->value) && o->begin <= read->end &&
		    (!other || o->end >= other->begin)) {
			return true;
		}
	}
	return false;
}

bool history_is_explained(const char *target)
{
	size_t i = find_target(target);
	const struct target *t = &h.targets.v[i];
	bool all = true;

	for (size_t k = 0; k < t->ops.n; k++) {
		const struct op *o = &t->ops.v[k];

		all = all && (!o->is_read || is_explained(t, o, last_other(t, o)));
	}
	return all;
}

static void check_read(const struct target *t, const struct op *read)
{
	const struct op *other = last_other(t, read);

	if (is_explained(t, read, other)) {
		return;
	}
	sim_fail(rule_of(t), "%s: %s read \"%.12s\" at %.6f to %.6f s, but at %.6f to %.6f s %s %s "
		 "\"%.12s\", and nothing has changed it since", t->name, read->client, read->value,
		 (double)read->begin / SIM_S, (double)read->end / SIM_S,
		 other ? (double)other->begin / SIM_S : 0, other ? (double)other->end / SIM_S : 0,
		 other ? other->client : "no client", other && other->is_read ? "read" : "wrote",
		 other ? other->value : "");
}

void history_check(void)
{
	for (size_t i = 0; i < h.targets.n; i++) {
		const struct target *t = &h.targets.v[i];

		for (size_t k = 0; k < t->ops.n; k++) {
			if (t->ops.v[k].is_read) {
				check_read(t, &t->ops.v[k]);
			}
		}
	}
	history_check_events();
}

void history_clear(void)
{
	for (size_t i = 0; i < h.targets.n; i++) {
		vec_fini(&h.targets.v[i].ops);
	}
	vec_fini(&h.targets);
	vec_fini(&h.calls);
	for (int i = 0; i < MAX_DOMAINS; i++) {
		vec_fini(&h.domains[i].known);
		vec_fini(&h.domains[i].seen);
	}
	memset(&h, 0, sizeof(h));
	history_clear_events();
}
