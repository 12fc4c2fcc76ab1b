/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A training step from traces: the mesh whose axes all groups are of, the collectives that differ,
 * and their order, as keys of a job.
 *
 * A group that is a set of axes of a row-major mesh has its ranks at some strides. Where strides
 * begin and end are cuts of 1 .. ranks; if each divides the next, the axes are what is between
 * neighbouring cuts. What no group tells, the least distance of a send does.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/import/chakra.h"
#include "lib/base/alloc.h"

#define FOLD_MAX 4096	/* entries of a loop that is looked for */

struct chakra_cut {
	int at;
	const char *of;		/* the group that has it, or a send */
};

/* Along axis a, from the fastest: ranks cuts[a] apart, below cuts[a + 1]. */
struct chakra_mesh {
	VEC(struct chakra_cut) cuts;
	int n_axes;
};

/* A collective of the step. */
struct chakra_op {
	struct workload_op op;
	int calls, rank;	/* the most of a rank, and which */
	char name[64];
};

struct chakra_step {
	struct chakra c;
	struct chakra_mesh mesh;
	VEC(struct chakra_op) ops;
	const char *file;	/* of messages on all traces */
	int base;		/* rank whose order it is */
};

/* ---- the mesh ------------------------------------------------------------ */

static void cut(struct chakra_mesh *m, int at, const char *of)
{
	size_t i = m->cuts.n;

	for (size_t k = 0; k < m->cuts.n; k++) {
		if (m->cuts.v[k].at == at) {
			return;
		}
	}
	vec_push(&m->cuts, (struct chakra_cut){ at, of });
	for (; i > 0 && m->cuts.v[i - 1].at > at; i--) {
		m->cuts.v[i] = m->cuts.v[i - 1];
	}
	m->cuts.v[i] = (struct chakra_cut){ at, of };
}

/* Cuts of a group's strides; with axes, those of the mesh that it is. False: it is none. */
static bool strides_of(struct chakra_mesh *m, const struct chakra_group *g, uint32_t *axes)
{
	const int *v = g->ranks.v, n = (int)g->ranks.n;

	for (int done = 1, top = 1, k; done < n; done *= k) {
		const int stride = v[done] - v[0];

		for (k = 1; k * done < n && v[k * done] == v[0] + k * stride; k++) {
			for (int i = 0; i < done; i++) {
				if (k * done + i >= n || v[k * done + i] != v[i] + k * stride) {
					return false;
				}
			}
		}
		if (stride < top || n % (k * done) || v[0] / stride % k) {
			return false;
		}
		top = stride * k;
		if (!axes) {
			cut(m, stride, g->text);
			cut(m, top, g->text);
		}
		for (int a = 0; axes && a < m->n_axes; a++) {
			if (m->cuts.v[a].at >= stride && m->cuts.v[a + 1].at <= top) {
				*axes |= UINT32_C(1) << a;
			}
		}
	}
	return true;
}

static int nearest_send(const struct chakra *c)
{
	int least = 0;

	for (size_t r = 0; r < c->ranks.n; r++) {
		for (size_t i = 0; i < c->ranks.v[r].calls.n; i++) {
			const struct chakra_call *k = &c->ranks.v[r].calls.v[i];
			const int distance = k->group < 0 ? abs(k->peer - (int)r) : 0;

			least = distance && (!least || distance < least) ? distance : least;
		}
	}
	return least;
}

static int find_mesh(struct chakra_step *s)
{
	struct chakra_mesh *m = &s->mesh;
	const int ranks = (int)s->c.ranks.n, nearest = nearest_send(&s->c);
	struct err_list *errs = &s->c.report->errs;

	cut(m, 1, "the first rank");
	cut(m, ranks, "all ranks");
	if (nearest) {
		cut(m, nearest, "the nearest send");
	}
	for (size_t i = 0; i < s->c.groups.n; i++) {
		const struct chakra_group *g = &s->c.groups.v[i];

		if (g->called && !strides_of(m, g, NULL)) {
			return import_say(errs, s->file, 0, "the group of %.200s is not of axes of "
					  "a mesh of ranks in order", g->text);
		}
	}
	m->n_axes = (int)m->cuts.n - 1;
	for (int a = 0; a < m->n_axes; a++) {
		if (m->cuts.v[a + 1].at % m->cuts.v[a].at) {
			return import_say(errs, s->file, 0, "no mesh has axes for both %.150s and "
					  "%.150s", m->cuts.v[a].of, m->cuts.v[a + 1].of);
		}
	}
	if (m->n_axes > WORKLOAD_MAX_AXES) {
		return import_say(errs, s->file, 0, "the groups have %d axes, at most %d are "
				  "supported", m->n_axes, WORKLOAD_MAX_AXES);
	}
	for (size_t i = 0; i < s->c.groups.n; i++) {
		if (s->c.groups.v[i].called) {
			strides_of(m, &s->c.groups.v[i], &s->c.groups.v[i].axes);
		}
	}
	return 0;
}

/* The axis and shift from one rank to another, which is along no other; false: there is none. */
static bool shift_of(const struct chakra_mesh *m, int from, int to, uint32_t *axes, int *shift)
{
	for (int a = 0; a < m->n_axes; a++) {
		const int stride = m->cuts.v[a].at, size = m->cuts.v[a + 1].at / stride;
		const int at = from / stride % size + (to - from) / stride;

		if ((to - from) % stride == 0 && at >= 0 && at < size) {
			*axes = UINT32_C(1) << a;
			*shift = (to - from) / stride;
			return true;
		}
	}
	return false;
}

/* ---- collectives --------------------------------------------------------- */

static int find_op(struct chakra_step *s, const struct workload_op *op)
{
	for (size_t i = 0; i < s->ops.n; i++) {
		const struct workload_op *o = &s->ops.v[i].op;

		if (o->kind == op->kind && o->shift == op->shift && o->axes == op->axes &&
		    o->bytes == op->bytes) {
			return (int)i;
		}
	}
	vec_push(&s->ops, (struct chakra_op){ .op = *op });
	return (int)s->ops.n - 1;
}

/* The op of a call. A receive is that of its sender, and counts where the rank itself, at the end
 * of the axis, sends nothing so far. */
static int op_of(struct chakra_step *s, int rank, const struct chakra_call *k)
{
	struct workload_op op = { .kind = k->kind, .bytes = k->bytes };
	uint32_t axes;
	int shift, next, found;

	if (k->group >= 0) {
		op.axes = s->c.groups.v[k->group].axes;
		return find_op(s, &op);
	}
	if (!shift_of(&s->mesh, k->sends ? rank : k->peer, k->sends ? k->peer : rank, &op.axes,
		      &op.shift)) {
		import_say(&s->c.report->errs, s->c.files[rank].name, 0, "node %" PRIu64 ": ranks "
			   "%d and %d are not on one axis of the mesh", k->node, rank, k->peer);
		return -1;
	}
	found = find_op(s, &op);
	next = rank + (rank - k->peer);
	return k->sends || next < 0 || (size_t)next >= s->c.ranks.n ||
	       !shift_of(&s->mesh, rank, next, &axes, &shift) || axes != op.axes ? found : -1;
}

/* All of a group's ranks call the same on it, in the same order. */
static void check_group(struct chakra_step *s, int rank, const struct chakra_call *k, int *at)
{
	struct chakra_group *g = &s->c.groups.v[k->group];
	const int first = g->ranks.v[0], nth = at[k->group]++;

	if (rank == first) {
		vec_push(&g->ops, k->op);
	} else if (nth >= (int)g->ops.n || g->ops.v[nth] != k->op) {
		import_say(&s->c.report->errs, s->c.files[rank].name, 0, "node %" PRIu64 ": call "
			   "%d on %.200s is another than that of rank %d", k->node, nth + 1,
			   g->text, first);
	}
}

/* All that the first rank of a group calls on it this one, if it is another, has called. */
static void check_calls(struct chakra_step *s, int rank, const struct chakra_group *g, int calls)
{
	for (size_t i = 0; i < g->ranks.n; i++) {
		if (g->ranks.v[i] == rank && calls != (int)g->ops.n) {
			import_say(&s->c.report->errs, s->c.files[rank].name, 0, "%d calls on "
				   "%.200s, of rank %d %zu", calls, g->text, g->ranks.v[0],
				   g->ops.n);
		}
	}
}

static void find_ops(struct chakra_step *s)
{
	const size_t n_groups = s->c.groups.n;
	struct err_list *errs = &s->c.report->errs;

	for (size_t r = 0; r < s->c.ranks.n && errs->n == 0; r++) {
		struct chakra_rank *rank = &s->c.ranks.v[r];
		int *at = x_new(n_groups + 1, sizeof(*at)), calls[WORKLOAD_MAX_OPS] = { 0 };

		for (size_t i = 0; i < rank->calls.n && errs->n == 0; i++) {
			struct chakra_call *k = &rank->calls.v[i];

			k->op = op_of(s, (int)r, k);
			if (s->ops.n > WORKLOAD_MAX_OPS) {
				import_say(errs, s->file, 0, "more than %d collectives differ",
					   WORKLOAD_MAX_OPS);
			} else if (k->op >= 0 && ++calls[k->op] > s->ops.v[k->op].calls) {
				s->ops.v[k->op].calls = calls[k->op];
				s->ops.v[k->op].rank = (int)r;
			}
			if (k->group >= 0 && errs->n == 0) {
				check_group(s, (int)r, k, at);
			}
		}
		for (size_t g = 0; g < n_groups && errs->n == 0; g++) {
			check_calls(s, (int)r, &s->c.groups.v[g], at[g]);
		}
		free(at);
	}
}

/* ---- out ----------------------------------------------------------------- */

/* a, b, ... from the slowest axis on. */
static char axis_name(const struct chakra_mesh *m, int axis)
{
	return (char)('a' + m->n_axes - 1 - axis);
}

static void put_axes(const struct chakra_mesh *m, uint32_t axes, const char *apart, struct buf *out)
{
	const char *before = "";

	for (int a = m->n_axes - 1; a >= 0; a--) {
		if (axes & UINT32_C(1) << a) {
			buf_printf(out, "%s%c", before, axis_name(m, a));
			before = apart;
		}
	}
}

static const char *kind_name(const struct workload_op *op)
{
	return op->shift ? "send" : coll_kind_name(op->kind);
}

/* Names by kind and axes, and a number where sizes differ. */
static void name_ops(struct chakra_step *s)
{
	for (size_t i = 0; i < s->ops.n; i++) {
		const struct workload_op *o = &s->ops.v[i].op;
		struct buf name = { 0 };
		int others = 0;

		for (size_t k = 0; k < i; k++) {
			const struct workload_op *p = &s->ops.v[k].op;

			others += p->axes == o->axes && p->shift == o->shift && p->kind == o->kind;
		}
		buf_printf(&name, "%s-", kind_name(o));
		put_axes(&s->mesh, o->axes, "", &name);
		if (o->shift) {
			buf_printf(&name, "%s%d", o->shift > 0 ? "-up" : "-down", abs(o->shift));
		}
		if (others) {
			buf_printf(&name, "-%d", others + 1);
		}
		snprintf(s->ops.v[i].name, sizeof(s->ops.v[i].name), "%s", buf_cstr(&name));
		buf_fini(&name);
	}
}

static void put_ops(const struct chakra_step *s, struct buf *out)
{
	const struct chakra_mesh *m = &s->mesh;

	buf_str(out, "mesh: {");
	for (int a = m->n_axes - 1; a >= 0; a--) {
		buf_printf(out, "%s %c: %d", a == m->n_axes - 1 ? "" : ",", axis_name(m, a),
			   m->cuts.v[a + 1].at / m->cuts.v[a].at);
	}
	buf_str(out, " }\ncollectives:\n");
	for (size_t i = 0; i < s->ops.n; i++) {
		const struct workload_op *o = &s->ops.v[i].op;

		buf_printf(out, "  - { name: %s, collective: %s, size: %" PRId64 "B, over: [",
			   s->ops.v[i].name, kind_name(o), o->bytes);
		put_axes(m, o->axes, ", ", out);
		buf_str(out, "]");
		if (o->shift) {
			buf_printf(out, ", shift: %d", o->shift);
		}
		buf_str(out, " }\n");
	}
}

/* The loop at the begin of v that covers most: its entries; *times 1: there is none. */
static int find_loop(const int *v, int n, int *times)
{
	int best = 1, most = 1;

	for (int p = 1; p <= n / 2 && p <= FOLD_MAX && most < n; p++) {
		int same = 0;

		while (same + p < n && v[same] == v[same + p]) {
			same++;
		}
		if (same >= p && (same / p + 1) * p > most) {
			best = p;
			most = (same / p + 1) * p;
		}
	}
	*times = most / best;
	return best;
}

static void put_order(const struct chakra_step *s, const int *v, int n, int depth, struct buf *out)
{
	for (int i = 0, times; i < n; ) {
		const int len = find_loop(v + i, n - i, &times);

		if (times == 1) {
			buf_printf(out, "%*s- %s\n", depth, "", s->ops.v[v[i]].name);
		} else {
			buf_printf(out, "%*s- repeat: %d\n%*s  do:\n", depth, "", times, depth, "");
			put_order(s, v + i, len, depth + 4, out);
		}
		i += len * times;
	}
}

/* The order of the rank that calls most, then what that rank never calls. */
static void put_step(struct chakra_step *s, struct buf *out)
{
	int *calls = x_new(s->ops.n + 1, sizeof(*calls));
	VEC(int) order = { 0 };

	for (size_t i = 0; i < s->c.ranks.v[s->base].calls.n; i++) {
		const int op = s->c.ranks.v[s->base].calls.v[i].op;

		if (op >= 0) {
			vec_push(&order, op);
			calls[op]++;
		}
	}
	for (size_t i = 0; i < s->ops.n; i++) {
		const struct chakra_op *o = &s->ops.v[i];

		if (calls[i] < o->calls) {
			import_say(&s->c.report->notes, s->file, 0, "%s: rank %d, whose order it "
				   "is, calls it %d times, rank %d %d times%s", o->name, s->base,
				   calls[i], o->rank, o->calls, calls[i] ? "" : "; put at the end");
		}
		for (int k = 0; k < o->calls && calls[i] == 0; k++) {
			vec_push(&order, (int)i);
		}
	}
	buf_str(out, "step:\n");
	put_order(s, order.v, (int)order.n, 2, out);
	vec_fini(&order);
	free(calls);
}

int import_chakra(const struct import_text *files, int n, const struct import_text *groups,
		  struct buf *out, struct import_report *report)
{
	struct chakra_step s = { .file = files[0].name };
	size_t most = 0;

	chakra_read(&s.c, files, n, groups, report);
	for (int i = 0; i < n; i++) {
		if (s.c.ranks.v[i].calls.n > most) {
			most = s.c.ranks.v[i].calls.n;
			s.base = i;
		}
	}
	if (report->errs.n == 0 && most == 0) {
		import_say(&report->errs, s.file, 0, "no rank calls another one");
	}
	if (report->errs.n == 0 && find_mesh(&s) == 0) {
		find_ops(&s);
	}
	if (report->errs.n == 0) {
		name_ops(&s);
		put_ops(&s, out);
		put_step(&s, out);
	}
	vec_fini(&s.ops);
	vec_fini(&s.mesh.cuts);
	chakra_fini(&s.c);
	err_list_sort(&report->errs);
	return report->errs.n > 0 ? WEFT_EINVAL : 0;
}
