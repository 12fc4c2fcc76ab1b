/* Chunks and steps; see mcf_sched.h. */
#include "collective/mcf_sched.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "collective/flow_paths.h"

/* Chunks of one path at one of its hops. */
struct hop {
	int64_t path;
	int32_t arc;		/* of the net */
	int32_t ready, sent;	/* arrived at its tail; gone over it */
	int32_t to_go;		/* hops from here on, this one included */
	int32_t moved;		/* in this step */
};

struct stepping {
	const struct flow_net *net;
	const struct flow_paths *paths;
	const struct topo *t;
	struct hop *hops;	/* path after path */
	int64_t n_hops;
	int64_t *order;		/* hops by arc, longest to go first */
	int64_t *active;	/* those of a trial that are not done */
	int64_t *first;		/* net.m + 1: of each arc in order */
	int64_t *left;		/* an arc: its active hops */
	int32_t *chunk0;	/* a path: its first chunk */
	int32_t (*lanes)[2];	/* net arc: topology arcs in lane_arcs */
	int32_t *lane_arcs;
};

static void stepping_fini(struct stepping *st)
{
	free(st->hops);
	free(st->order);
	free(st->active);
	free(st->first);
	free(st->left);
	free(st->chunk0);
	free(st->lanes);
	free(st->lane_arcs);
}

/* The topology's arcs behind each arc of the net. */
static void list_lanes(struct stepping *st)
{
	const struct flow_net *net = st->net;
	int32_t at = 0;

	for (int a = 0; a < net->topo_arcs; a++) {
		if (net->arc_of[a] >= 0) {
			st->lanes[net->arc_of[a]][1]++;
		}
	}
	for (int a = 0; a < net->m; a++) {
		st->lanes[a][0] = at;
		at += st->lanes[a][1];
		st->lanes[a][1] = 0;
	}
	for (int a = 0; a < net->topo_arcs; a++) {
		int b = net->arc_of[a];

		if (b >= 0) {
			st->lane_arcs[st->lanes[b][0] + st->lanes[b][1]++] = a;
		}
	}
}

static void list_hops(struct stepping *st)
{
	int64_t at = 0;
	int32_t pair = -1, chunk = 0;

	for (size_t i = 0; i < st->paths->v.n; i++) {
		const struct flow_path *q = &st->paths->v.v[i];

		chunk = q->pair == pair ? chunk : 0;
		pair = q->pair;
		st->chunk0[i] = chunk;
		chunk += q->chunks;
		for (int k = 0; k < q->n_arcs && q->chunks > 0; k++) {
			st->hops[at++] = (struct hop){
				.path = (int64_t)i,
				.arc = st->paths->arcs.v[q->first + k],
				.to_go = q->n_arcs - k,
			};
		}
	}
	st->n_hops = at;
}

/* Counting sorts: by hops to go, then stably by arc. */
static int sort_hops(struct stepping *st)
{
	int n = st->net->n, m = st->net->m;
	int64_t *by_go = malloc(((size_t)st->n_hops + 1) * sizeof(*by_go));
	int64_t *start = calloc((size_t)n + 2, sizeof(*start));

	if (!by_go || !start) {
		free(by_go);
		free(start);
		return WEFT_ENOMEM;
	}
	for (int64_t i = 0; i < st->n_hops; i++) {
		start[n - st->hops[i].to_go + 1]++;
		st->first[st->hops[i].arc + 1]++;
	}
	for (int k = 0; k < n; k++) {
		start[k + 1] += start[k];
	}
	for (int a = 0; a < m; a++) {
		st->first[a + 1] += st->first[a];
	}
	for (int64_t i = 0; i < st->n_hops; i++) {
		by_go[start[n - st->hops[i].to_go]++] = i;
	}
	memcpy(st->left, st->first, (size_t)m * sizeof(*st->left));
	for (int64_t i = 0; i < st->n_hops; i++) {
		st->order[st->left[st->hops[by_go[i]].arc]++] = by_go[i];
	}
	free(by_go);
	free(start);
	return 0;
}

static int stepping_init(struct stepping *st, const struct topo *t,
			 const struct flow_net *net,
			 const struct flow_paths *paths)
{
	size_t hops = paths->arcs.n + 1, m = (size_t)net->m + 1;

	*st = (struct stepping){ .t = t, .net = net, .paths = paths };
	st->hops = malloc(hops * sizeof(*st->hops));
	st->order = malloc(hops * sizeof(*st->order));
	st->active = malloc(hops * sizeof(*st->active));
	st->first = calloc(m, sizeof(*st->first));
	st->left = calloc(m, sizeof(*st->left));
	st->chunk0 = malloc((paths->v.n + 1) * sizeof(*st->chunk0));
	st->lanes = calloc(m, sizeof(*st->lanes));
	st->lane_arcs = malloc(((size_t)net->topo_arcs + 1) *
			       sizeof(*st->lane_arcs));
	if (!st->hops || !st->order || !st->active || !st->first || !st->left ||
	    !st->chunk0 || !st->lanes || !st->lane_arcs) {
		return WEFT_ENOMEM;
	}
	list_lanes(st);
	list_hops(st);
	return sort_hops(st);
}

static void rewind_steps(struct stepping *st)
{
	for (int64_t i = 0; i < st->n_hops; i++) {
		struct hop *h = &st->hops[i];
		bool starts = i == 0 || st->hops[i - 1].path != h->path;

		h->ready = starts ? st->paths->v.v[h->path].chunks : 0;
		h->sent = h->moved = 0;
	}
	memcpy(st->active, st->order,
	       (size_t)st->n_hops * sizeof(*st->active));
	for (int a = 0; a < st->net->m; a++) {
		st->left[a] = st->first[a + 1] - st->first[a];
	}
}

/* The lane of an arc that is being filled, and what it still takes. */
struct lane {
	int32_t arc;		/* of the net */
	int i;
	int64_t room, quota;	/* quota: chunks a unit of capacity */
};

static int lane_arc(const struct stepping *st, const struct lane *lane)
{
	return st->lane_arcs[st->lanes[lane->arc][0] + lane->i];
}

static void open_lane(const struct stepping *st, struct lane *lane)
{
	lane->room = lane->quota * topo_arc(st->t, lane_arc(st, lane))->cap;
}

/* Puts what a hop moves on the lanes. */
static int emit(const struct stepping *st, struct coll_sched *s, int step,
		const struct hop *h, struct lane *lane, struct err *err)
{
	const struct flow_path *q = &st->paths->v.v[h->path];
	int first = st->chunk0[h->path] + h->sent - h->moved;
	int left = h->moved, rc = 0;

	while (left > 0 && rc == 0) {
		int part;

		if (lane->room == 0) {
			lane->i++;
			open_lane(st, lane);
		}
		part = lane->room < left ? (int)lane->room : left;
		rc = coll_add(s, &(struct coll_xfer){
			step, lane_arc(st, lane), q->pair / st->net->n,
			q->pair % st->net->n, first, first + part - 1,
			COLL_COPY }, err);
		first += part;
		left -= part;
		lane->room -= part;
	}
	return rc;
}

/* Parallel arcs share evenly what their bundle carries. */
static int emit_arc(const struct stepping *st, struct coll_sched *s, int step,
		    int a, int64_t used, struct err *err)
{
	struct lane lane = {
		.arc = a,
		.quota = (used + st->net->units[a] - 1) / st->net->units[a],
	};
	int rc = 0;

	open_lane(st, &lane);
	for (int64_t i = 0; i < st->left[a] && rc == 0; i++) {
		const struct hop *h =
			&st->hops[st->active[st->first[a] + i]];

		rc = emit(st, s, step, h, &lane, err);
	}
	return rc;
}

/* One arc in one step; returns what it carried. */
static int64_t step_arc(struct stepping *st, int a, int64_t quantum)
{
	int64_t *order = st->active + st->first[a], kept = 0;
	int64_t room = quantum * st->net->units[a], used = 0;

	for (int64_t i = 0; i < st->left[a]; i++) {
		struct hop *h = &st->hops[order[i]];
		int64_t can = h->ready - h->sent;

		if (h->sent == st->paths->v.v[h->path].chunks) {
			continue;
		}
		/* One that is done now stays until it is delivered. */
		h->moved = (int)(can < room - used ? can : room - used);
		h->sent += h->moved;
		used += h->moved;
		order[kept++] = order[i];
	}
	st->left[a] = kept;
	return used;
}

/* Largest use of a lane when the arc carries this much. */
static double use_of_lanes(const struct stepping *st, int a, int64_t used)
{
	double use = (double)used / (double)st->net->units[a];

	return st->lanes[a][1] > 1 ? ceil(use) : use;
}

/* What moved arrives. Returns chunks that moved. */
static int64_t deliver(struct stepping *st)
{
	int64_t moved = 0;

	for (int a = 0; a < st->net->m; a++) {
		const int64_t *order = st->active + st->first[a];

		for (int64_t i = 0; i < st->left[a]; i++) {
			struct hop *h = &st->hops[order[i]];

			if (h->moved && h->to_go > 1) {
				h[1].ready += h->moved;
			}
			moved += h->moved;
			h->moved = 0;
		}
	}
	return moved;
}

/* Steps in which an arc carries at most quantum chunks a unit of capacity.
 * *sum: of the largest uses. At most `most` steps: then *steps is above. */
static int run_steps(struct stepping *st, struct coll_sched *s,
		     int64_t quantum, int most, int *steps, double *sum,
		     struct err *err)
{
	rewind_steps(st);
	*sum = 0;
	for (*steps = 0; *steps <= most; (*steps)++) {
		double largest = 0;

		for (int a = 0; a < st->net->m; a++) {
			int64_t used = step_arc(st, a, quantum);
			int rc = s && used > 0 ? emit_arc(st, s, *steps, a,
							  used, err) : 0;

			if (rc) {
				return rc;
			}
			largest = fmax(largest, use_of_lanes(st, a, used));
		}
		if (deliver(st) == 0) {
			return 0;
		}
		*sum += largest;
	}
	return 0;
}

/* The largest amount a step within the loss; *best: the amount. */
static int choose_quantum(struct stepping *st, double use, double loss,
			  int most, int64_t *best, double *sum_of_best,
			  struct err *err)
{
	double least = HUGE_VAL;
	int64_t last = 0;

	for (double slots = 1; slots <= most; slots *= 1.25) {
		int64_t quantum = (int64_t)ceil(use / slots);
		int steps, rc;
		double sum;

		if (quantum == last) {
			continue;
		}
		last = quantum;
		rc = run_steps(st, NULL, quantum, most, &steps, &sum, err);
		if (rc) {
			return rc;
		}
		if (steps <= most && sum < least * (1 - 1e-9)) {
			least = sum;
			*best = quantum;
		}
		if (least <= use * (1 + loss) || quantum == 1) {
			break;
		}
	}
	*sum_of_best = least;
	return least < HUGE_VAL ? 0 : err_set(err, WEFT_ELIMIT, "all-to-all "
					      "takes more than %d steps",
					      most);
}

/* ---- the whole ---- */

static int copy_topo(const struct topo *t, struct topo **out, struct err *err)
{
	int rc = topo_new(topo_n(t), out, err);

	for (int a = 0; a < topo_m(t) && rc == 0; a++) {
		const struct topo_arc *arc = topo_arc(t, a);

		rc = topo_add_arc(*out, arc->src, arc->dst, arc->cap,
				  arc->latency_ns, err);
	}
	rc = rc ? rc : topo_freeze(*out, err);
	if (rc) {
		topo_free(*out);
		*out = NULL;
	}
	return rc;
}

/* Smallest P within the loss, else the best. Returns its use, negative on
 * an error. */
static double choose_chunks(const struct flow_net *net,
			    struct flow_paths *paths, double congestion,
			    double loss, int most, int *chunks)
{
	double least = HUGE_VAL, use = 0;

	for (int p = 1; p <= most; p += 1 + p / 8) {
		use = flow_paths_round(net, paths, p);
		if (use < 0) {
			return use;
		}
		if (use / p < least * (1 - 1e-9)) {
			least = use / p;
			*chunks = p;
		}
		if (least <= congestion * (1 + loss)) {
			return use;
		}
	}
	return flow_paths_round(net, paths, *chunks);
}

/* Rounds to P chunks and tries steps; *sum a unit of demand. */
static int try_steps(const struct topo *t, const struct mcf *p,
		     struct flow_paths *paths, int chunks,
		     const struct mcf_sched_options *opt, double *use,
		     int64_t *quantum, double *sum, struct err *err)
{
	int most = opt->max_steps ? opt->max_steps : MCF_SCHED_STEPS;
	struct stepping st = { 0 };
	int rc;

	*sum = HUGE_VAL;
	*use = flow_paths_round(&p->net, paths, chunks);
	rc = *use < 0 || stepping_init(&st, t, &p->net, paths)
		     ? err_nomem(err)
		     : choose_quantum(&st, *use, opt->loss, most, quantum, sum,
				      err);
	*sum /= chunks;
	stepping_fini(&st);
	return rc;
}

/* Multiples of P chunks, as long as steps lose more than they may: smaller
 * chunks fill the arcs sooner. Leaves the paths rounded to the best. */
static int choose_multiple(const struct topo *t, const struct mcf *p,
			   struct flow_paths *paths,
			   const struct mcf_sched_options *opt, int most,
			   int64_t *quantum, struct mcf_sched_info *info,
			   struct err *err)
{
	double least = HUGE_VAL, use;
	int best = info->chunks, rc = 0;

	for (int k = 1; k * info->chunks <= most && rc == 0; k *= 2) {
		int64_t q = 1;
		double sum;

		rc = try_steps(t, p, paths, k * info->chunks, opt, &use, &q,
			       &sum, err);
		if (rc == 0 && sum < least * (1 - 1e-9)) {
			least = sum;
			best = k * info->chunks;
			*quantum = q;
		}
		if (least <= info->flow.congestion * (1 + 2 * opt->loss)) {
			break;
		}
	}
	info->chunks = best;
	use = rc ? 0 : flow_paths_round(&p->net, paths, best);
	info->chunked = use / best;
	return use < 0 ? err_nomem(err) : rc;
}

static int make_steps(const struct topo *t, const struct mcf *p,
		      const struct flow_paths *paths, int64_t quantum,
		      struct mcf_sched_info *info, struct coll_sched **out,
		      struct err *err)
{
	struct stepping st;
	struct topo *copy = NULL;
	int rc = stepping_init(&st, t, &p->net, paths);

	if (rc) {
		rc = err_nomem(err);
		goto out;
	}
	if ((rc = copy_topo(t, &copy, err)) ||
	    (rc = coll_new(COLL_ALLTOALL, copy, info->chunks, 0, 0, out,
			   err)) ||
	    (rc = run_steps(&st, *out, quantum, COLL_MAX_STEPS - 1,
			    &info->steps, &info->stepped, err)) ||
	    (rc = coll_finish(*out, err))) {
		goto out;
	}
	info->stepped /= info->chunks;
	rc = coll_verify(*out, NULL, err);
out:
	stepping_fini(&st);
	return rc;
}

int mcf_schedule(const struct topo *t, const struct mcf_sched_options *opt,
		 struct coll_sched **out, struct mcf_sched_info *info,
		 struct err *err)
{
	int most = opt->max_chunks ? opt->max_chunks : MCF_SCHED_CHUNKS;
	struct mcf_sched_info mine = { 0 };
	struct flow_paths paths = { 0 };
	struct mcf *p = NULL;
	int64_t quantum = 1;
	int rc;

	*out = NULL;
	if ((rc = mcf_new(t, false, &p, err)) ||
	    (rc = mcf_run(p, &opt->flow, &mine.flow, err)) ||
	    (rc = flow_paths_cut(p, &paths, err))) {
		goto out;
	}
	mine.paths = (int64_t)paths.v.n;
	if (choose_chunks(&p->net, &paths, mine.flow.congestion, opt->loss,
			  most, &mine.chunks) < 0) {
		rc = err_nomem(err);
		goto out;
	}
	rc = choose_multiple(t, p, &paths, opt, most, &quantum, &mine, err);
	rc = rc ? rc : make_steps(t, p, &paths, quantum, &mine, out, err);
out:
	if (rc) {
		coll_free(*out);
		*out = NULL;
	} else if (info) {
		*info = mine;
	}
	flow_paths_fini(&paths);
	mcf_free(p);
	return rc;
}
