/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each node holds parts of shards, as bit sets of whose contributions are in them. A transfer
 * brings what its sender held when the step began, if its light was there.
 */
#include "tests/sim/stories/ring_replay.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/vec.h"

struct schedule {
	json_t *root;
	const char *collective;
	int nodes, steps, chunks, root_rank;
	const json_t *arcs, *transfers, *transfer_columns, *lightpaths, *lightpath_columns;
};

static char wrong[200];

static int number_of(const json_t *object, const char *key)
{
	return (int)json_integer_value(json_object_get(object, key));
}

static void read_schedule(struct schedule *s, const char *text)
{
	s->root = json_loads(text, 0, NULL);
	s->collective = json_string_value(json_object_get(s->root, "collective"));
	s->nodes = number_of(s->root, "nodes");
	s->steps = number_of(s->root, "steps");
	s->chunks = number_of(s->root, "chunks");
	s->root_rank = number_of(s->root, "root");
	s->arcs = json_object_get(s->root, "arcs");
	s->transfers = json_object_get(s->root, "transfers");
	s->transfer_columns = json_object_get(s->root, "transfers_columns");
	s->lightpaths = json_object_get(s->root, "lightpaths");
	s->lightpath_columns = json_object_get(s->root, "lightpaths_columns");
}

/* A row's value in the column of this name; -1: there is none. */
static int cell(const json_t *columns, const json_t *row, const char *name)
{
	for (size_t i = 0; i < json_array_size(columns); i++) {
		if (strcmp(json_string_value(json_array_get(columns, i)), name) == 0) {
			return (int)json_integer_value(json_array_get(row, i));
		}
	}
	return -1;
}

/* src or dst of an arc. */
static int end_of(const struct schedule *s, int arc, int which)
{
	return (int)json_integer_value(json_array_get(json_array_get(s->arcs, (size_t)arc),
						      (size_t)which));
}

/* ---- light ---- */

struct drop {
	int step, to, fibre, channel, from;
	char way[4];
};

static bool read_drop(const char *line, struct drop *d)
{
	return sscanf(line, "drop %d node %d %3s fibre %d channel %d from %d", &d->step, &d->to,
		      d->way, &d->fibre, &d->channel, &d->from) == 6;
}

static const char *next_line(const char *text)
{
	text += strcspn(text, "\n");
	return text + (*text == '\n');
}

/* Lightpaths by step, and the ring's nodes from and to. */
static size_t place(int step, int from, int to)
{
	return ((size_t)step * REPLAY_NODES + (size_t)from) * REPLAY_NODES + (size_t)to;
}

static int *new_light(const struct schedule *s)
{
	return x_new((size_t)s->steps * REPLAY_NODES * REPLAY_NODES, sizeof(int));
}

static bool read_trace(const struct schedule *s, const char *trace, int *seen)
{
	struct drop d;

	for (; *trace; trace = next_line(trace)) {
		if (read_drop(trace, &d) && d.step < s->steps) {
			seen[place(d.step, d.from, d.to)]++;
		} else if (strncmp(trace, "step ", 5) != 0) {
			snprintf(wrong, sizeof(wrong), "light goes wrong: %.*s",
				 (int)strcspn(trace, "\n"), trace);
			return false;
		}
	}
	return true;
}

static bool is_planned(const struct schedule *s, const int *seen, const int *at)
{
	int *want = new_light(s);
	bool ok;

	for (size_t i = 0; i < json_array_size(s->lightpaths); i++) {
		const json_t *row = json_array_get(s->lightpaths, i);
		int arc = cell(s->lightpath_columns, row, "arc");

		want[place(cell(s->lightpath_columns, row, "step"), at[end_of(s, arc, 0)],
			   at[end_of(s, arc, 1)])]++;
	}
	ok = memcmp(want, seen, (size_t)s->steps * REPLAY_NODES * REPLAY_NODES *
		    sizeof(int)) == 0;
	free(want);
	if (!ok) {
		snprintf(wrong, sizeof(wrong), "other lightpaths than planned");
	}
	return ok;
}

/* ---- data ---- */

/* A piece is what a shard's owner has for one rank, in an all-to-all; else there is one, 0. */
static size_t part(const struct schedule *s, int node, int origin, int piece, int chunk)
{
	const size_t n = (size_t)s->nodes;

	return (((size_t)node * n + (size_t)origin) * n + (size_t)piece) * (size_t)s->chunks +
	       (size_t)chunk;
}

static bool is_kind(const struct schedule *s, const char *name)
{
	return strcmp(s->collective, name) == 0;
}

/* Whose contributions a node has in a part, at the start. */
static uint64_t at_start(const struct schedule *s, int node, int origin)
{
	if (is_kind(s, "broadcast")) {
		return node == s->root_rank;
	}
	if (is_kind(s, "allreduce") || is_kind(s, "reduce-scatter")) {
		return UINT64_C(1) << node;
	}
	return node == origin ? UINT64_C(1) << node : 0;
}

/* What it must have at the end; 0: nothing was promised. */
static uint64_t at_end(const struct schedule *s, int node, int origin, int piece)
{
	const uint64_t all = (UINT64_C(1) << s->nodes) - 1;

	if (is_kind(s, "all-to-all")) {
		return piece == node && origin != node ? UINT64_C(1) << origin : 0;
	}
	if (piece > 0) {
		return 0;
	}
	if (is_kind(s, "allgather")) {
		return UINT64_C(1) << origin;
	}
	if (is_kind(s, "broadcast")) {
		return 1;
	}
	return is_kind(s, "allreduce") || origin == node ? all : 0;
}

static void move(const struct schedule *s, const json_t *row, const int *seen, const int *at,
		 const uint64_t *before, uint64_t *holds)
{
	const json_t *columns = s->transfer_columns;
	const int arc = cell(columns, row, "arc"), step = cell(columns, row, "step");
	const int from = end_of(s, arc, 0), to = end_of(s, arc, 1);
	const int piece = cell(columns, row, "dest"), origin = cell(columns, row, "origin");

	if (seen[place(step, at[from], at[to])] == 0) {
		return;		/* no light, nothing arrives */
	}
	for (int c = cell(columns, row, "first"); c <= cell(columns, row, "last"); c++) {
		holds[part(s, to, origin, piece < 0 ? 0 : piece, c)] |=
			before[part(s, from, origin, piece < 0 ? 0 : piece, c)];
	}
}

static void move_all(const struct schedule *s, const int *seen, const int *at, uint64_t *holds,
		     uint64_t *before)
{
	const size_t bytes = part(s, s->nodes, 0, 0, 0) * sizeof(*holds);

	for (int step = 0; step < s->steps; step++) {
		memcpy(before, holds, bytes);
		for (size_t i = 0; i < json_array_size(s->transfers); i++) {
			const json_t *row = json_array_get(s->transfers, i);

			if (cell(s->transfer_columns, row, "step") == step) {
				move(s, row, seen, at, before, holds);
			}
		}
	}
}

/* Calls at() for each part of each node. */
static bool each_part(const struct schedule *s, uint64_t *holds, bool begins)
{
	for (int i = 0; i < s->nodes * s->nodes * s->nodes * s->chunks; i++) {
		const int piece = i / s->chunks % s->nodes;
		const int origin = i / s->chunks / s->nodes % s->nodes;
		const int node = i / s->chunks / s->nodes / s->nodes;
		const uint64_t full = at_end(s, node, origin, piece);

		if (begins) {
			holds[i] = at_start(s, node, origin);
		} else if (full && holds[i] != full) {
			snprintf(wrong, sizeof(wrong), "rank %d lacks part %d of shard %d", node,
				 i % s->chunks, origin);
			return false;
		}
	}
	return true;
}

static bool is_delivered(const struct schedule *s, const int *seen, const int *at)
{
	const size_t n = part(s, s->nodes, 0, 0, 0);
	uint64_t *holds = x_new(n, sizeof(*holds)), *before = x_new(n, sizeof(*before));
	bool ok;

	each_part(s, holds, true);
	move_all(s, seen, at, holds, before);
	ok = each_part(s, holds, false);
	free(holds);
	free(before);
	return ok;
}

const char *ring_replay(const char *schedule, const char *trace, const int *at)
{
	struct schedule s;
	bool ok = false;
	int *seen;

	read_schedule(&s, schedule);
	if (!s.root || s.nodes < 1 || s.nodes > REPLAY_NODES || s.steps < 1) {
		return "no schedule";
	}
	seen = new_light(&s);
	ok = read_trace(&s, trace, seen) && is_delivered(&s, seen, at) && is_planned(&s, seen, at);
	free(seen);
	json_decref(s.root);
	return ok ? NULL : wrong;
}

/* ---- tunings ---- */

struct resonator {
	int node, fibre, channel;
	bool cw, drops;		/* else: adds */
	int on;			/* -1: it was never set */
	int lit;		/* the last step with light on it, -1: none was */
};

struct tuned {
	VEC(struct resonator) all;
};

static struct resonator *resonator(struct tuned *t, int node, bool cw, int fibre, int channel,
				   bool drops)
{
	for (size_t i = 0; i < t->all.n; i++) {
		struct resonator *r = &t->all.v[i];

		if (r->node == node && r->cw == cw && r->fibre == fibre &&
		    r->channel == channel && r->drops == drops) {
			return r;
		}
	}
	vec_push(&t->all, (struct resonator){ node, fibre, channel, cw, drops, -1, -1 });
	return &t->all.v[t->all.n - 1];
}

/* Those of a step: when the last of them is ready, -1: one was set under light. */
static double tune(struct tuned *t, const char *tunings, int step, const double *ends,
		   const struct ring_times *times)
{
	double begin = step > 0 ? ends[step - 1] : 0;

	for (; *tunings; tunings = next_line(tunings)) {
		int at, node, fibre, channel, after;
		char way[4], kind[5], on[4];
		struct resonator *r;
		double ready;

		if (sscanf(tunings, "tune %d node %d %3s fibre %d channel %d %4s %3s after %d", &at,
			   &node, way, &fibre, &channel, kind, on, &after) != 8 || at != step) {
			continue;
		}
		r = resonator(t, node, strcmp(way, "cw") == 0, fibre, channel,
			      strcmp(kind, "drop") == 0);
		if (after < r->lit || after >= step) {
			return -1;
		}
		ready = (after >= 0 ? ends[after] : 0) + (double)times->retune;
		begin = ready > begin ? ready : begin;
		r->on = strcmp(on, "on") == 0;
	}
	return begin;
}

static bool is_as_wanted(struct tuned *t, const struct drop *d, int node, bool drops, bool on,
			 int nodes)
{
	struct resonator *r = resonator(t, (node + nodes) % nodes, strcmp(d->way, "cw") == 0,
					d->fibre, d->channel, drops);

	r->lit = d->step;
	return r->on == on;
}

/* All resonators on the way of the light of a step. */
static bool light_is_as_wanted(struct tuned *t, const char *trace, int step, int nodes)
{
	struct drop d;

	for (; *trace; trace = next_line(trace)) {
		int by, node;
		bool ok;

		if (!read_drop(trace, &d) || d.step != step) {
			continue;
		}
		by = strcmp(d.way, "cw") == 0 ? 1 : -1;
		ok = is_as_wanted(t, &d, d.from, false, true, nodes);
		for (node = (d.from + by + nodes) % nodes; node != d.to && ok;
		     node = (node + by + nodes) % nodes) {
			ok = is_as_wanted(t, &d, node, true, false, nodes) &&
			     is_as_wanted(t, &d, node, false, false, nodes);
		}
		if (!ok || !is_as_wanted(t, &d, d.to, true, true, nodes)) {
			return false;
		}
	}
	return true;
}

/* How much there is of an arc in a step: chunks, or lightpaths; and their way round. */
static int chunks_of(const struct schedule *s, int step, int arc)
{
	int n = 0;

	for (size_t i = 0; i < json_array_size(s->transfers); i++) {
		const json_t *row = json_array_get(s->transfers, i), *c = s->transfer_columns;

		if (cell(c, row, "step") == step && cell(c, row, "arc") == arc) {
			n += cell(c, row, "last") - cell(c, row, "first") + 1;
		}
	}
	return n;
}

static int lights_of(const struct schedule *s, int step, int arc, int nodes, int *links)
{
	int n = 0;

	for (size_t i = 0; i < json_array_size(s->lightpaths); i++) {
		const json_t *row = json_array_get(s->lightpaths, i), *c = s->lightpath_columns;
		const int hops = end_of(s, arc, 1) - end_of(s, arc, 0);

		if (cell(c, row, "step") == step && cell(c, row, "arc") == arc) {
			*links = ((cell(c, row, "dir") ? -hops : hops) + nodes) % nodes;
			n++;
		}
	}
	return n;
}

/* Until the data of a step has arrived. */
static double data_ns(const struct schedule *s, int step, const struct ring_times *t)
{
	const int64_t shard = (t->size_bytes + s->nodes - 1) / s->nodes;
	double most = 0;

	for (int arc = 0; arc < (int)json_array_size(s->arcs); arc++) {
		const int chunks = chunks_of(s, step, arc);
		int links = 0, lights = lights_of(s, step, arc, t->nodes, &links);
		double ns;

		if (chunks == 0 || lights == 0) {
			continue;
		}
		ns = (double)((chunks + lights - 1) / lights) * 8 * (double)shard /
		     t->bits_per_ns / s->chunks + (double)(links * t->span_delay);
		most = ns > most ? ns : most;
	}
	return most;
}

static const char *judge(const struct schedule *s, const char *trace, const char *tunings,
			 const struct ring_times *t, double *ends)
{
	struct tuned tuned = { 0 };
	const char *what = NULL;
	double plain = 0;

	for (int step = 0; step < s->steps && !what; step++) {
		const double begin = tune(&tuned, tunings, step, ends, t);
		const double data = data_ns(s, step, t);

		ends[step] = begin + data + (double)t->conversion;
		plain += data + (double)(t->retune + t->conversion);
		what = begin < 0 ? "a resonator is set under light" :
		       light_is_as_wanted(&tuned, trace, step, t->nodes) ? NULL :
		       "a resonator is not as light wants it";
	}
	vec_fini(&tuned.all);
	if (what) {
		return what;
	}
	/* Planned times are whole numbers, rounded up. */
	return ends[s->steps - 1] > (double)t->time_ns + 1e-6 ? "it takes longer than planned" :
	       ends[s->steps - 1] >= plain ? "nothing was hidden" : NULL;
}

const char *ring_overlap(const char *schedule, const char *trace, const char *tunings,
			 const struct ring_times *t)
{
	struct schedule s;
	const char *what;
	double *ends;

	read_schedule(&s, schedule);
	if (!s.root || s.steps < 1) {
		return "no schedule";
	}
	ends = x_new((size_t)s.steps, sizeof(*ends));
	what = judge(&s, trace, tunings, t, ends);
	free(ends);
	json_decref(s.root);
	return what;
}
