/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ring programs packed for a device.
 *
 * A step is packed in up to four ways (as changes against the step before or in
 * full, with places counted by channel or by node), and the shortest is kept.
 * Places of one mode are cut into runs of equal distance, and equal runs at
 * equal distance into one repeated run: rotated copies, which schedules on
 * rings are made of, shrink to a few bytes. The choice depends on the settings
 * alone, so that equal programs have equal bytes.
 */
#include "drivers/optics/optics.h"

#include <stdlib.h>
#include <string.h>

#include "drivers/optics/private.h"
#include "lib/base/alloc.h"
#include "lib/base/vec.h"

bool ring_window_contains(const struct ring_window *w, int ring_nodes, int node, int channel)
{
	int from = (node - w->first_node + ring_nodes) % ring_nodes;

	return from < w->nodes && channel >= w->first_channel &&
	       channel < w->first_channel + w->channels;
}

bool ring_windows_overlap(const struct ring_window *a, const struct ring_window *b, int ring_nodes)
{
	int ab = (b->first_node - a->first_node + ring_nodes) % ring_nodes;
	int ba = (a->first_node - b->first_node + ring_nodes) % ring_nodes;

	return a->first_channel < b->first_channel + b->channels &&
	       b->first_channel < a->first_channel + a->channels &&
	       (ab < a->nodes || ba < b->nodes);
}

/* ---- cells ---- */

/* By place, 11 bits at a time: programs reach millions of settings. */
void ring_cells_sort(struct ring_cells *c, struct ring_cells *spare)
{
	bool sorted = true;

	for (size_t i = 1; i < c->n && sorted; i++) {
		sorted = c->v[i - 1].at <= c->v[i].at;
	}
	if (sorted) {
		return;
	}
	vec_reserve(spare, c->n - (spare->n < c->n ? spare->n : c->n));
	for (int shift = 0; shift < 32; shift += 11) {
		size_t at[2048] = { 0 }, sum = 0;
		struct ring_cells swap;

		for (size_t i = 0; i < c->n; i++) {
			at[c->v[i].at >> shift & 2047]++;
		}
		for (int b = 0; b < 2048; b++) {
			size_t count = at[b];

			at[b] = sum;
			sum += count;
		}
		for (size_t i = 0; i < c->n; i++) {
			spare->v[at[c->v[i].at >> shift & 2047]++] = c->v[i];
		}
		spare->n = c->n;
		swap = *c;
		*c = *spare;
		*spare = swap;
	}
}

uint32_t ring_place_transpose(const struct ring_geometry *g, uint32_t at, bool to_nodes_first)
{
	uint32_t inner = to_nodes_first ? g->nodes : g->channels;
	uint32_t outer = to_nodes_first ? g->channels : g->nodes;
	uint32_t plane = inner * outer, in = at % plane;

	return at - in + in % inner * outer + in / inner;
}

static uint32_t place_of(const struct ring_geometry *g, const struct ring_setting *t)
{
	return (((uint32_t)t->dir * g->fibres + t->fibre) * g->channels +
		t->channel) * g->nodes + t->node;
}

/* ---- runs ---- */

/* `count` places `stride` apart, all of that `times` over, `every` apart. */
struct program_run {
	uint32_t first, count, stride, times, every;
};

struct ring_program_packer {
	struct buf out;
	struct ring_geometry ring;
	struct ring_window window;
	uint32_t steps;
	uint64_t settings;
	struct ring_cells now, before, changes, turned, spare;
	VEC(uint32_t) places;
	VEC(struct program_run) runs;
	struct buf best, trial;
};

void optics_put_number(struct buf *b, uint32_t v)
{
	while (v >= 0x80) {
		buf_char(b, (char)(v | 0x80));
		v >>= 7;
	}
	buf_char(b, (char)v);
}

/* Three or more equally spaced places make a run; two may be the end of one
 * and the begin of the next. */
static void find_runs(struct ring_program_packer *p)
{
	const uint32_t *v = p->places.v;

	p->runs.n = 0;
	for (size_t i = 0; i < p->places.n;) {
		size_t end = i + 1;
		uint32_t stride = 1;

		if (end < p->places.n) {
			stride = v[end] - v[i];
			while (end < p->places.n && v[end] - v[end - 1] == stride) {
				end++;
			}
		}
		if (end - i < 3) {
			end = i + 1;
		}
		vec_push(&p->runs, (struct program_run){ .first = v[i],
							.count = (uint32_t)(end - i),
							 .stride = stride, .times = 1 });
		i = end;
	}
}

static bool alike(const struct program_run *a, const struct program_run *b)
{
	return a->count == b->count && (a->count == 1 || a->stride == b->stride);
}

/* Joins runs of one shape at equal distances. */
static void join_runs(struct ring_program_packer *p)
{
	struct program_run *v = p->runs.v;
	size_t kept = 0;

	for (size_t i = 0; i < p->runs.n;) {
		struct program_run r = v[i];
		size_t end = i + 1;

		if (end < p->runs.n && alike(&r, &v[end])) {
			r.every = v[end].first - r.first;
			while (end < p->runs.n && alike(&r, &v[end]) &&
			       v[end].first - v[end - 1].first == r.every) {
				end++;
			}
		}
		r.times = (uint32_t)(end - i);
		v[kept++] = r;
		i = end;
	}
	p->runs.n = kept;
}

static void put_runs(const struct ring_program_packer *p, struct buf *b)
{
	uint32_t end = 0;

	optics_put_number(b, (uint32_t)p->runs.n);
	for (size_t i = 0; i < p->runs.n; i++) {
		const struct program_run *r = &p->runs.v[i];

		optics_put_number(b, r->first - end);
		optics_put_number(b, (r->count - 1) << 1 | (r->times > 1));
		if (r->count > 1) {
			optics_put_number(b, r->stride);
		}
		if (r->times > 1) {
			optics_put_number(b, r->times - 1);
			optics_put_number(b, r->every);
		}
		end = r->first + (r->times - 1) * r->every +
		      (r->count - 1) * (r->count > 1 ? r->stride : 0) + 1;
	}
}

/* ---- a step ---- */

static void put_cells(struct ring_program_packer *p, const struct ring_cells *c,
		      uint8_t flags, struct buf *b)
{
	uint8_t present = 0;

	for (size_t i = 0; i < c->n; i++) {
		present |= (uint8_t)(1u << c->v[i].mode);
	}
	buf_reset(b);
	buf_char(b, (char)(flags | present << 2));
	for (int mode = 0; mode <= RESONATOR_ADD_DROP; mode++) {
		if (!(present & 1u << mode)) {
			continue;
		}
		p->places.n = 0;
		for (size_t i = 0; i < c->n; i++) {
			if (c->v[i].mode == mode) {
				vec_push(&p->places, c->v[i].at);
			}
		}
		find_runs(p);
		join_runs(p);
		put_runs(p, b);
	}
}

/* Tries one list of cells both ways round, keeps what is shorter. */
static void try_cells(struct ring_program_packer *p, const struct ring_cells *c, uint8_t flags)
{
	struct ring_cells *t = &p->turned;
	struct buf swap;

	for (int turn = 0; turn < 2; turn++) {
		if (turn) {
			t->n = 0;
			vec_reserve(t, c->n);
			for (size_t i = 0; i < c->n; i++) {
				t->v[t->n++] = (struct ring_cell){
					ring_place_transpose(&p->ring, c->v[i].at, true),
					c->v[i].mode };
			}
			ring_cells_sort(t, &p->spare);
			c = t;
			flags |= RING_STEP_TRANSPOSED;
		}
		put_cells(p, c, flags, &p->trial);
		if (!p->best.len || p->trial.len < p->best.len) {
			swap = p->best;
			p->best = p->trial;
			p->trial = swap;
		}
	}
}

void ring_cells_diff(const struct ring_cells *from,
		     const struct ring_cells *to, struct ring_cells *out)
{
	size_t i = 0, k = 0;

	out->n = 0;
	vec_reserve(out, from->n + to->n);
	while (i < from->n || k < to->n) {
		if (k == to->n || (i < from->n && from->v[i].at < to->v[k].at)) {
			out->v[out->n++] = (struct ring_cell){
				from->v[i++].at, 0 };
		} else if (i == from->n || to->v[k].at < from->v[i].at) {
			out->v[out->n++] = to->v[k++];
		} else {
			if (from->v[i].mode != to->v[k].mode) {
				out->v[out->n++] = to->v[k];
			}
			i++;
			k++;
		}
	}
}

/* ---- the whole ---- */

void ring_program_packer_free(struct ring_program_packer *p)
{
	if (!p) {
		return;
	}
	buf_fini(&p->out);
	buf_fini(&p->best);
	buf_fini(&p->trial);
	vec_fini(&p->now);
	vec_fini(&p->before);
	vec_fini(&p->changes);
	vec_fini(&p->turned);
	vec_fini(&p->spare);
	vec_fini(&p->places);
	vec_fini(&p->runs);
	free(p);
}

int ring_program_packer_new(const struct ring_window *window, const struct ring_geometry *ring,
			    struct ring_program_packer **out, struct err *err)
{
	static const uint8_t head[RING_PROGRAM_HEAD];
	struct ring_program_packer *p;

	*out = NULL;
	if (2ull * ring->nodes * ring->channels * ring->fibres > UINT32_MAX) {
		return err_set(err, WEFT_ELIMIT, "%d nodes, %d channels and %d "
			       "fibres are too many resonators for a program",
			       ring->nodes, ring->channels, ring->fibres);
	}
	p = x_new(1, sizeof(*p));
	p->ring = *ring;
	p->window = *window;
	buf_add(&p->out, head, sizeof(head));
	*out = p;
	return 0;
}

static int check_tune(const struct ring_program_packer *p, const struct ring_setting *t,
		      struct err *err)
{
	const struct ring_geometry *g = &p->ring;

	if (t->node >= g->nodes || t->channel >= g->channels ||
	    t->fibre >= g->fibres || t->dir > OPTICS_CCW ||
	    t->step != p->steps ||
	    !ring_window_contains(&p->window, g->nodes, t->node, t->channel)) {
		return err_set(err, WEFT_EINVAL, "step %u node %u fibre %u "
			       "channel %u is outside the %s", t->step,
			       t->node, t->fibre, t->channel,
			       t->node < g->nodes &&
			       t->channel < g->channels &&
			       t->fibre < g->fibres ? "program's part of the "
			       "ring" : "ring");
	}
	return 0;
}

/* One cell for a resonator that adds and drops. */
static int merge_cells(struct ring_program_packer *p, struct err *err)
{
	struct ring_cell *v = p->now.v;
	size_t kept = 0;

	for (size_t i = 0; i < p->now.n; i++) {
		if (!kept || v[kept - 1].at != v[i].at) {
			v[kept++] = v[i];
		} else if (v[kept - 1].mode & v[i].mode) {
			return err_set(err, WEFT_EINVAL, "step %u node %u "
				       "channel %u is %s twice", p->steps,
				       v[i].at % p->ring.nodes,
				       v[i].at / p->ring.nodes %
				       p->ring.channels,
				       v[kept - 1].mode & v[i].mode &
				       RESONATOR_ADD ? "added" : "dropped");
		} else {
			v[kept - 1].mode |= v[i].mode;
		}
	}
	p->now.n = kept;
	return 0;
}

/* Into p->now, what was there goes into p->before. */
static int take_step(struct ring_program_packer *p, const struct ring_setting *v,
		     size_t n, struct err *err)
{
	struct ring_cells swap = p->before;
	int rc;

	p->before = p->now;
	p->now = swap;
	p->now.n = 0;
	vec_reserve(&p->now, n);
	for (size_t i = 0; i < n; i++) {
		rc = check_tune(p, &v[i], err);
		if (rc) {
			return rc;
		}
		p->now.v[p->now.n++] = (struct ring_cell){
			place_of(&p->ring, &v[i]), v[i].mode };
	}
	ring_cells_sort(&p->now, &p->spare);
	return merge_cells(p, err);
}

static int check_size(const struct ring_program_packer *p, struct err *err)
{
	if (p->steps < RING_MAX_STEPS && p->now.n <= RING_MAX_CELLS &&
	    p->settings + p->now.n <= RING_MAX_SETTINGS) {
		return 0;
	}
	return err_set(err, WEFT_ELIMIT, "%u steps and %llu settings, %zu in "
		       "a step: a ring program holds at most %d, %u and %u",
		       p->steps + 1,
		       (unsigned long long)p->settings + p->now.n, p->now.n,
		       RING_MAX_STEPS, RING_MAX_SETTINGS, RING_MAX_CELLS);
}

int ring_program_packer_step(struct ring_program_packer *p, const struct ring_setting *v,
			     size_t n, struct err *err)
{
	int rc;

	if ((rc = take_step(p, v, n, err)) || (rc = check_size(p, err))) {
		return rc;
	}
	ring_cells_diff(&p->before, &p->now, &p->changes);
	buf_reset(&p->best);
	try_cells(p, &p->changes, 0);
	if (p->changes.n) {
		try_cells(p, &p->now, RING_STEP_FULL);
	}
	buf_add(&p->out, p->best.data, p->best.len);
	p->steps++;
	p->settings += p->now.n;
	return 0;
}

int ring_program_packer_end(struct ring_program_packer *p, const char *name,
			    struct ring_program *out, struct err *err)
{
	uint8_t *head = (uint8_t *)p->out.data;

	memset(out, 0, sizeof(*out));
	if (strlen(name) > RING_PROGRAM_NAME_MAX) {
		return err_set(err, WEFT_ELIMIT, "%s: a program's name has at "
			       "most %d bytes", name, RING_PROGRAM_NAME_MAX);
	}
	head[0] = RING_PROGRAM_VERSION;
	head[1] = p->ring.fibres;
	optics_put_le(head + 2, p->ring.nodes, 2);
	optics_put_le(head + 4, p->ring.channels, 2);
	optics_put_le(head + 6, p->steps, 4);
	optics_put_le(head + 10, p->settings, 4);
	strcpy(out->name, name);
	out->window = p->window;
	out->ring = p->ring;
	out->steps = p->steps;
	out->settings = (uint32_t)p->settings;
	out->len = p->out.len;
	out->bytes = (uint8_t *)buf_steal(&p->out);
	return 0;
}

int ring_program_pack(struct ring_program *out, const char *name, const struct ring_window *window,
		      const struct ring_geometry *ring, const struct ring_settings *prog,
		      struct err *err)
{
	struct ring_program_packer *p;
	size_t i = 0;
	int rc = ring_program_packer_new(window, ring, &p, err);

	memset(out, 0, sizeof(*out));
	for (uint32_t step = 0; step < prog->steps && rc == 0; step++) {
		size_t from = i;

		while (i < prog->n && prog->v[i].step == step) {
			i++;
		}
		rc = ring_program_packer_step(p, prog->v + from, i - from, err);
	}
	if (rc == 0 && i < prog->n) {
		rc = err_set(err, WEFT_EINVAL, "step %u: the program has %u",
			     prog->v[i].step, prog->steps);
	}
	if (rc == 0) {
		rc = ring_program_packer_end(p, name, out, err);
	}
	ring_program_packer_free(p);
	return rc;
}
