/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slices: which cube is where in a torus of cubes, and the circuits that follow from it.
 *
 * All switches of an axis join the faces of cubes alike, so a slice is a permutation of its cubes
 * for each axis: whose minus face is at my plus face. Which cube has which coordinates is free.
 * It is chosen so that the fewest circuits are made, of those that are there or meant to be, after
 * the fewest failed ports; a failed switch is at all cubes, and decides nothing. Candidates are as
 * many as the shape has and those that may stand in: spares of the job, or all that are free.
 *
 * Good arrangements are found by following light from each cube, and made better by exchanging
 * two; up to SMALL cubes all are gone through, as far as that takes MAX_NODES steps. Where no other
 * order makes fewer circuits than the one that is given, it is that one.
 */
#include <stdlib.h>
#include <string.h>

#include "controller/plan/private.h"
#include "lib/base/alloc.h"

#define SMALL 8
#define MAX_NODES 100000	/* of the search through all arrangements */
#define MAX_LOOKS 8000000	/* at pairs of cubes, while light is followed */
#define BAD_COST 100000		/* a failed port against circuits */

struct slice {
	const int *side;	/* of a cube */
	int size[3], k;		/* cubes along each axis, and in all */
	int (*next)[3];		/* [k] the place behind each along each axis */
	int (*prev)[3];
	int full[3];		/* links between two cubes, both ways together */
	int n;			/* candidates */
	const int *cubes;	/* [n] hosts, in the order that is given */
	int *bad;		/* [n] failed ports */
	uint8_t *lit[3];	/* [n * n] links from the plus face of u to the minus face
				 * of v that are there */
	int *most[3];		/* [n] of lit, of each row */
	int *out;		/* [n] all of them */
	int *at;		/* [k] result: candidates by place */
	int64_t cost;		/* of it */
	bool is_exact;		/* there is none of less */
	struct arrays arrays;	/* owns these */
};

/* ---- what there is ------------------------------------------------------- */

static void find_neighbours(struct slice *s, const int twist[3])
{
	for (int p = 0; p < s->k; p++) {
		const int at[3] = { p / s->size[2] / s->size[1], p / s->size[2] % s->size[1],
				    p % s->size[2] };

		for (int axis = 0; axis < 3; axis++) {
			int x[3] = { at[0], at[1], at[2] };
			bool leaves = ++x[axis] == s->size[axis];

			if (leaves && axis == 0) {
				x[1] += twist[0] / s->side[1];
				x[2] += twist[1] / s->side[2];
			} else if (leaves && axis == 1) {
				x[2] += twist[2] / s->side[2];
			}
			for (int i = 0; i < 3; i++) {
				x[i] %= s->size[i];
			}
			s->next[p][axis] = (x[0] * s->size[1] + x[1]) * s->size[2] + x[2];
			s->prev[s->next[p][axis]][axis] = p;
		}
	}
}

/* The port that the light of each reaches over one switch, by what is there and, before that, by
 * what is meant to be; -1: none. */
static int *find_light(const struct model_fabric *f, const struct plan_base *base)
{
	int *reaches = x_alloc((size_t)f->n_ports + 1, sizeof(*reaches));

	memset(reaches, 0xff, (size_t)f->n_ports * sizeof(*reaches));
	for (int d = 0; d < 2 * f->n_devices; d++) {
		const struct model_device *dev = &f->devices[d / 2];
		const struct plan_light *of = d % 2 ? base->intent : base->observed;

		for (int i = 0; of && i < of[d / 2].n_xcs; i++) {
			const struct optics_xc xc = of[d / 2].xcs[i];
			bool on = xc.in >= 0 && xc.in < dev->n_in && xc.out >= 0 &&
				  xc.out < dev->n_out &&
				  (d % 2 || plan_is_lit(&of[d / 2], xc));
			int tx = on ? dev->in_port[xc.in] : -1;
			int rx = !on ? -1 : dev->any_to_any ? dev->in_port[xc.out]
							    : dev->out_port[xc.out];

			if (tx >= 0 && rx >= 0) {
				reaches[tx] = rx;
				reaches[rx] = dev->any_to_any ? tx : reaches[rx];
			}
		}
	}
	return reaches;
}

/* Light between equal positions of a plus and a minus face of two candidates. */
static void count_light(struct slice *s, const struct model_fabric *f, const int *reaches)
{
	int *number = x_alloc((size_t)f->n_hosts + 1, sizeof(*number));

	memset(number, 0xff, (size_t)f->n_hosts * sizeof(*number));
	for (int u = 0; u < s->n; u++) {
		number[s->cubes[u]] = u;
	}
	for (int i = 0; i < s->n * f->hosts[s->cubes[0]].n_ports / 2; i++) {
		int u = i % s->n, k = i / s->n, axis = 0, plus, minus;

		while (k >= model_face_ports(s->side, axis)) {
			k -= model_face_ports(s->side, axis++);
		}
		plus = f->hosts[s->cubes[u]].first_port +
		       model_face_port(s->side, axis, false, k);
		for (int v = -1, back = 0; back < 2; back++) {
			minus = f->hosts[s->cubes[u]].first_port +
				model_face_port(s->side, axis, true, k);
			v = reaches[back ? minus : plus];
			v = v < 0 ? -1 : number[f->ports[v].host];
			if (v < 0 || reaches[back ? minus : plus] !=
					     f->hosts[s->cubes[v]].first_port +
						     model_face_port(s->side, axis, !back, k)) {
				continue;
			}
			s->lit[axis][back ? v * s->n + u : u * s->n + v]++;
		}
	}
	for (int i = 0; i < 3 * s->n * s->n; i++) {
		int axis = i / (s->n * s->n), u = i / s->n % s->n;
		int lit = s->lit[axis][i % (s->n * s->n)];

		s->most[axis][u] = lit > s->most[axis][u] ? lit : s->most[axis][u];
		s->out[u] += lit;
	}
	free(number);
}

/* cubes: [n] is borrowed. */
static void slice_init(struct slice *s, const struct model_fabric *f, const int shape[3],
		       const int twist[3], const int *cubes, int n, const int *reaches)
{
	*s = (struct slice){ .side = f->hosts[cubes[0]].side, .n = n, .cubes = cubes, .k = 1 };
	for (int axis = 0; axis < 3; axis++) {
		s->size[axis] = shape[axis] / s->side[axis];
		s->full[axis] = 2 * model_face_ports(s->side, axis);
		s->k *= s->size[axis];
		arrays_add(&s->arrays, s->lit[axis], (size_t)n * (size_t)n);
		arrays_add(&s->arrays, s->most[axis], (size_t)n);
	}
	arrays_add(&s->arrays, s->next, (size_t)s->k);
	arrays_add(&s->arrays, s->prev, (size_t)s->k);
	arrays_add(&s->arrays, s->bad, (size_t)n);
	arrays_add(&s->arrays, s->out, (size_t)n);
	arrays_add(&s->arrays, s->at, (size_t)s->k);
	find_neighbours(s, twist);
	count_light(s, f, reaches);
}

static void slice_fini(struct slice *s)
{
	arrays_fini(&s->arrays);
}

/* ---- arrangements -------------------------------------------------------- */

/* Links that are to be made from u at one place to v behind it. */
static int missing(const struct slice *s, int axis, int u, int v)
{
	return s->full[axis] - s->lit[axis][u * s->n + v];
}

/* Of what is at a place: links to those behind it and before it, of which a loop is one. */
static int64_t cost_around(const struct slice *s, const int *at, int p)
{
	int64_t cost = (int64_t)s->bad[at[p]] * BAD_COST;

	for (int axis = 0; axis < 3; axis++) {
		int before = s->prev[p][axis];

		cost += missing(s, axis, at[p], at[s->next[p][axis]]);
		cost += before == p ? 0 : missing(s, axis, at[before], at[p]);
	}
	return cost;
}

/* Of two places, what joins them once. */
static int64_t cost_of_two(const struct slice *s, const int *at, int p, int q)
{
	int64_t cost = cost_around(s, at, p) + cost_around(s, at, q);

	for (int axis = 0; axis < 3; axis++) {
		cost -= s->next[p][axis] == q ? missing(s, axis, at[p], at[q]) : 0;
		cost -= s->next[q][axis] == p ? missing(s, axis, at[q], at[p]) : 0;
	}
	return cost;
}

static int64_t cost_of(const struct slice *s, const int *at)
{
	int64_t cost = 0;

	for (int p = 0; p < s->k; p++) {
		cost += (int64_t)s->bad[at[p]] * BAD_COST;
		for (int axis = 0; axis < 3; axis++) {
			cost += missing(s, axis, at[p], at[s->next[p][axis]]);
		}
	}
	return cost;
}

static void take_better(struct slice *s, const int *at)
{
	int64_t cost = cost_of(s, at);

	if (cost < s->cost) {
		s->cost = cost;
		memcpy(s->at, at, (size_t)s->k * sizeof(*at));
	}
}

/* Place after place the cube that has most light to those placed, of equal ones the one that has
 * least to others: that may still be of use to another slice. */
static void follow_light(const struct slice *s, int first, int *at, bool *used)
{
	memset(used, 0, (size_t)s->n);
	memset(at, 0xff, (size_t)s->k * sizeof(*at));
	for (int p = 0; p < s->k; p++) {
		int64_t best = INT64_MIN;

		for (int u = 0; u < s->n; u++) {
			int64_t gain = -(int64_t)s->bad[u] * BAD_COST;

			if (used[u] || (p == 0 && u != first)) {
				continue;
			}
			for (int axis = 0; axis < 3; axis++) {
				int v = at[s->next[p][axis]], w = at[s->prev[p][axis]];

				v = s->next[p][axis] == p ? u : v;
				gain += v < 0 ? 0 : s->lit[axis][u * s->n + v];
				gain += w < 0 ? 0 : s->lit[axis][w * s->n + u];
			}
			gain = gain * 4096 - s->out[u];
			if (gain > best) {
				best = gain;
				at[p] = u;
			}
		}
		used[at[p]] = true;
	}
}

/* Exchanges two, or one for another that is not in use, while that gains. */
static void exchange(const struct slice *s, int *at, bool *used)
{
	bool gains = true;

	for (int round = 0; gains && round < 2 * s->k; round++) {
		gains = false;
		for (int i = 0; i < s->k * (s->k + s->n); i++) {
			int p = i / (s->k + s->n), q = i % (s->k + s->n), was = at[p];
			int64_t before, after;

			if (q < p) {
				before = cost_of_two(s, at, p, q);
				at[p] = at[q];
				at[q] = was;
				after = cost_of_two(s, at, p, q);
				if (after < before) {
					gains = true;
				} else {
					at[q] = at[p];
					at[p] = was;
				}
			} else if (q >= s->k && !used[q - s->k]) {
				before = cost_around(s, at, p);
				at[p] = q - s->k;
				after = cost_around(s, at, p);
				used[was] = after >= before;
				used[at[p]] = after < before;
				gains |= after < before;
				at[p] = after < before ? at[p] : was;
			}
		}
	}
}

/* What is missing at least once the first n places are given. */
struct through {
	struct slice *s;
	int *at;
	bool *used;
	int max[3];
	int64_t nodes;
};

/* Links of p's that both ends are known of, with it as the last; of others what could be. */
static int64_t cost_more(const struct through *t, int p)
{
	const struct slice *s = t->s;
	int64_t cost = (int64_t)s->bad[t->at[p]] * BAD_COST;

	for (int axis = 0; axis < 3; axis++) {
		int next = s->next[p][axis], prev = s->prev[p][axis];

		cost += next <= p ? missing(s, axis, t->at[p], t->at[next])
				  : s->full[axis] - s->most[axis][t->at[p]];
		if (prev < p) {
			cost += s->most[axis][t->at[prev]] -
				s->lit[axis][t->at[prev] * s->n + t->at[p]];
		}
	}
	return cost;
}

static void go_through(struct through *t, int p, int64_t cost)
{
	const struct slice *s = t->s;
	int64_t rest = 0;

	for (int axis = 0; axis < 3; axis++) {
		rest += (int64_t)(s->k - p) * (s->full[axis] - t->max[axis]);
	}
	if (cost + rest >= s->cost || t->nodes <= 0) {
		return;
	}
	if (p == s->k) {
		take_better(t->s, t->at);
		return;
	}
	/* A torus looks the same from all places: where all are needed, the first is anywhere. */
	for (int u = 0; u < (p == 0 && s->n == s->k ? 1 : s->n); u++) {
		if (!t->used[u]) {
			t->nodes--;
			t->used[u] = true;
			t->at[p] = u;
			go_through(t, p + 1, cost + cost_more(t, p));
			t->used[u] = false;
		}
	}
}

static void try_all(struct slice *s, int *at, bool *used)
{
	struct through t = { .s = s, .at = at, .used = used, .nodes = MAX_NODES };

	memset(used, 0, (size_t)s->n);
	for (int i = 0; i < 3 * s->n; i++) {
		int most = s->most[i / s->n][i % s->n];

		t.max[i / s->n] = most > t.max[i / s->n] ? most : t.max[i / s->n];
	}
	go_through(&t, 0, 0);
	s->is_exact = t.nodes > 0;
}

/* The place that is reached from q as p is from the first one. */
static int moved_by(const struct slice *s, int q, int p)
{
	const int steps[3] = { p / s->size[2] / s->size[1], p / s->size[2] % s->size[1],
			       p % s->size[2] };

	for (int axis = 0; axis < 3; axis++) {
		for (int i = 0; i < steps[axis]; i++) {
			q = s->next[q][axis];
		}
	}
	return q;
}

/* Of all places that the first may have, that which leaves most cubes where they are listed: so
 * ranks stay what they are. */
static void turn(struct slice *s, int *at)
{
	int best = -1, origin = 0;

	for (int q = 0; q < s->k; q++) {
		int same = 0;

		for (int p = 0; p < s->k; p++) {
			same += s->at[moved_by(s, q, p)] == p;
		}
		if (same > best) {
			best = same;
			origin = q;
		}
	}
	memcpy(at, s->at, (size_t)s->k * sizeof(*at));
	for (int p = 0; p < s->k; p++) {
		s->at[p] = at[moved_by(s, origin, p)];
	}
}

/* Fills s->at. O(MAX_LOOKS + MAX_NODES + rounds x places x candidates). */
static void arrange(struct slice *s)
{
	int *at = x_alloc((size_t)s->k + 1, sizeof(*at));
	bool *used = x_alloc((size_t)s->n + 1, sizeof(*used));
	int64_t looks = MAX_LOOKS;
	bool lit = false;

	s->cost = INT64_MAX;
	for (int p = 0; p < s->k; p++) {
		at[p] = p;
	}
	take_better(s, at);
	for (int u = 0; u < s->n; u++) {
		lit |= s->out[u] > 0;
	}
	for (int u = 0; u < s->n && lit && s->cost > 0 && looks > 0; u++) {
		follow_light(s, u, at, used);
		take_better(s, at);
		looks -= 7 * (int64_t)s->k * s->n;
	}
	memset(used, 0, (size_t)s->n);
	memcpy(at, s->at, (size_t)s->k * sizeof(*at));
	for (int p = 0; p < s->k; p++) {
		used[at[p]] = true;
	}
	if (s->cost > 0) {
		exchange(s, at, used);
		take_better(s, at);
	}
	s->is_exact = s->cost == 0 || !lit;
	if (s->k <= SMALL && !s->is_exact) {
		try_all(s, at, used);
	}
	turn(s, at);
	free(at);
	free(used);
}

/* ---- a job's ------------------------------------------------------------- */

/* Failed ports, and drained ones that have no light to lose. */
static void find_bad(const struct plan_ctx *ctx, struct slice *s, const int *reaches)
{
	const struct model_fabric *f = ctx->fabric;

	for (int i = 0; i < s->n * f->hosts[s->cubes[0]].n_ports; i++) {
		int port = f->hosts[s->cubes[i % s->n]].first_port + i / s->n;
		const struct model_port *p = &f->ports[port];
		const struct plan_light *seen = plan_observed(ctx, p->tx_device);
		bool either = f->devices[p->tx_device].any_to_any;

		s->bad[i % s->n] += !plan_tx_usable(ctx, port) || !plan_rx_usable(ctx, port) ||
				    (reaches[port] < 0 &&
				     (!plan_may_light(seen, either, true, p->tx_port) ||
				      !plan_may_light(seen, either, false, p->rx_port)));
	}
}

/* The rank of the chip at a place of a cube's face. */
static int rank_at(const struct model_job *job, const struct slice *s, int p, int axis, bool minus,
		   int position)
{
	const int cube[3] = { p / s->size[2] / s->size[1], p / s->size[2] % s->size[1],
			      p % s->size[2] };
	int at[3], rank = 0;

	model_face_chip(s->side, axis, minus, position, at);
	for (int i = 0; i < 3; i++) {
		rank = rank * job->shape[i] + cube[i] * s->side[i] + at[i];
	}
	return rank;
}

/* Light from a port to another, for the arc between two ranks. */
static int add_link(const struct plan_ctx *ctx, struct plan_job *pj, int tx, int rx, int from,
		    int to, struct err *err)
{
	const struct model_link l = { .tx_port = tx, .rx_port = rx };
	struct plan_circuit *c = &pj->circuits[pj->n_circuits];

	*c = plan_link_circuit(ctx, &l);
	c->arc = topo_find_arc(coll_physical(pj->sched), from, to);
	pj->n_circuits++;
	return plan_check_link(ctx, &l, err);
}

static int make_circuits(const struct plan_ctx *ctx, struct plan_job *pj, const struct slice *s,
			 struct err *err)
{
	const struct model_fabric *f = ctx->fabric;
	const struct model_job *job = &f->jobs[pj->job];
	int rc = 0;

	pj->circuits = x_new((size_t)s->k * (size_t)f->hosts[s->cubes[0]].n_ports,
			     sizeof(*pj->circuits));
	for (int i = 0; i < 3 * s->k && rc == 0; i++) {
		int p = i / 3, axis = i % 3, q = s->next[p][axis];
		const int *side = s->side;

		for (int k = 0; k < model_face_ports(side, axis) && rc == 0; k++) {
			int plus = f->hosts[s->cubes[s->at[p]]].first_port +
				   model_face_port(side, axis, false, k);
			int minus = f->hosts[s->cubes[s->at[q]]].first_port +
				    model_face_port(side, axis, true, k);
			int from = rank_at(job, s, p, axis, false, k);
			int to = rank_at(job, s, q, axis, true, k);

			if ((rc = add_link(ctx, pj, plus, minus, from, to, err)) == 0) {
				rc = add_link(ctx, pj, minus, plus, to, from, err);
			}
		}
	}
	plan_sort_circuits(pj);
	return rc;
}

/* The most links of an axis that can stay, by each of the best cubes alone. */
static int stay_by_cube(const struct slice *s, int axis)
{
	int left = s->k, kept = 0;

	for (int lit = s->full[axis]; lit > 0 && left > 0; lit--) {
		for (int u = 0; u < s->n && left > 0; u++) {
			kept += s->most[axis][u] == lit ? lit : 0;
			left -= s->most[axis][u] == lit;
		}
	}
	return kept;
}

/* The same by rings: what is l cubes long has no more than l less the pieces of m cubes that it is
 * cut into, unless it is a ring of m. pred: scratch. Where links are there only in part, all. */
static int stay_by_ring(const struct slice *s, int axis, int *next, int *pred)
{
	int m = 1, kept = 0;

	for (int p = s->next[0][axis]; p != 0; p = s->next[p][axis]) {
		m++;
	}
	memset(next, 0xff, (size_t)s->n * sizeof(*next));
	memset(pred, 0xff, (size_t)s->n * sizeof(*pred));
	for (int i = 0; i < s->n * s->n; i++) {
		if (s->lit[axis][i] == s->full[axis]) {
			next[i / s->n] = i % s->n;
			pred[i % s->n] = i / s->n;
		} else if (s->lit[axis][i]) {
			return s->k * s->full[axis];
		}
	}
	/* Chains from their first cube, then what is left: rings. */
	for (int i = 0; i < 2 * s->n; i++) {
		bool ring = i >= s->n;
		int l = 0;

		for (int u = i % s->n, v; u >= 0 && pred[u] != -2 && (ring || l || pred[u] == -1);
		     u = v) {
			v = next[u];
			pred[u] = -2;
			l++;
		}
		kept += l == 0 || (ring && l == m) ? l : l - (l + m - 1) / m;
	}
	return kept * s->full[axis];
}

/* Exact where all arrangements were gone through. O(cubes^2). */
static int bound_of(const struct slice *s)
{
	int *next = x_new((size_t)s->n, sizeof(*next)), *pred = x_new((size_t)s->n, sizeof(*pred));
	int64_t bad = 0, made = 0;

	for (int p = 0; p < s->k; p++) {
		bad += s->bad[s->at[p]];
	}
	for (int axis = 0; axis < 3; axis++) {
		int by_cube = stay_by_cube(s, axis), by_ring = stay_by_ring(s, axis, next, pred);

		made += (int64_t)s->k * s->full[axis] - (by_cube < by_ring ? by_cube : by_ring);
	}
	free(next);
	free(pred);
	return (int)(s->is_exact && bad == 0 ? s->cost : made);
}

int plan_slice_circuits(struct plan_ctx *ctx, struct plan_job *pj, struct err *err)
{
	const struct model_fabric *f = ctx->fabric;
	const struct model_job *job = &f->jobs[pj->job];
	int *reaches = find_light(f, ctx->base), rc;
	struct slice s;

	slice_init(&s, f, job->shape, job->twist, job->hosts, job->n_hosts, reaches);
	find_bad(ctx, &s, reaches);
	arrange(&s);
	rc = make_circuits(ctx, pj, &s, err);
	pj->moves_bound = bound_of(&s);
	slice_fini(&s);
	free(reaches);
	return rc;
}

void plan_slice_hosts(const struct model_fabric *f, const struct plan_job *pj, int *host)
{
	const struct model_job *job = &f->jobs[pj->job];
	const int *side = f->hosts[job->hosts[0]].side, *shape = job->shape;
	const int y = shape[1] / side[1], z = shape[2] / side[2];
	int *of = x_new((size_t)job->n_hosts, sizeof(*of));
	const struct topo *t = coll_physical(pj->sched);

	for (int rank = -1, i = -pj->n_circuits; i < topo_n(t); i++) {
		int at[3];

		rank = i < 0 ? topo_arc(t, pj->circuits[i + pj->n_circuits].arc)->src : i;
		at[0] = rank / shape[2] / shape[1] / side[0];
		at[1] = rank / shape[2] % shape[1] / side[1];
		at[2] = rank % shape[2] / side[2];
		if (i < 0) {
			of[(at[0] * y + at[1]) * z + at[2]] =
				f->ports[pj->circuits[i + pj->n_circuits].tx_port].host;
		} else {
			host[rank] = of[(at[0] * y + at[1]) * z + at[2]];
		}
	}
	free(of);
}

/* ---- placement ----------------------------------------------------------- */

/* Free cubes behind those in use, those with the least light first. */
static void add_spares(const struct slice *s, int spares, int *out)
{
	bool *used = x_new((size_t)s->n, sizeof(*used));

	for (int p = 0; p < s->k; p++) {
		out[p] = s->cubes[s->at[p]];
		used[s->at[p]] = true;
	}
	for (int i = 0; i < spares; i++) {
		int best = -1;

		for (int u = 0; u < s->n; u++) {
			if (!used[u] && (best < 0 || s->out[u] < s->out[best])) {
				best = u;
			}
		}
		used[best] = true;
		out[s->k + i] = s->cubes[best];
	}
	free(used);
}

void place_slice(const struct model_fabric *f, const struct place_request *w,
		 const int twist[3], const int *cubes, int n, int *out)
{
	static const struct plan_base dark;
	int *reaches = find_light(f, w->base ? w->base : &dark);
	struct slice s;

	slice_init(&s, f, w->shape, twist, cubes, n, reaches);
	arrange(&s);
	add_spares(&s, w->spares, out);
	slice_fini(&s);
	free(reaches);
}
