/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Steps by slots in which chunks are due. They wait at each arc in lists,
 * one for every slot, so that a step touches only what moves in it. What
 * moves is kept, so that the best trial need not run again.
 */
#include "collective/flow/private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"

/* Next number of quanta to try, relative to the last; where there are many
 * hops. */
#define FINER 1.25
#define FINER_MANY 4
#define FINER_COSTLY 2	/* ... and steps cost */
#define MANY_HOPS (1 << 20)
/* Lists of an arc for every hop of the longest path. */
#define LEVELS_A_HOP 32
#define MAX_LEVELS 4096
/* Steps that a hop has, so that chunks wait before all arcs, and long paths are not the last. */
#define HOP_STEPS 6

/* Chunks of one path at one of its hops: the same number as the arc has in
 * paths->arcs. */
struct chunk_hop {
	int32_t ready, sent;	/* arrived at its tail; gone over the arc */
	int32_t next;		/* in its list, -1: last */
	int32_t path, arc;
	uint16_t level;		/* its list at the arc, while in one */
	bool ends;		/* the path's last */
};

struct wait_list {
	int32_t first, last;	/* hops, -1: none */
};

/* What goes over an arc in the present step. */
struct chunk_move {
	int32_t hop, chunks;
};

struct flow_steps {
	const struct topo *t;
	const struct flow_net *net;
	const struct flow_paths *paths;
	struct chunk_hop *hops;
	int32_t *chunk0;	/* a path: its first chunk */
	int longest;		/* path, in arcs */
	int levels;		/* lists an arc */
	bool many;		/* hops: search the steps coarsely */
	double *start, *apart;	/* a path: slots of its first chunk, and from one to the next */
	double pace;		/* ... and from a hop to the next */
	struct wait_list *lists;	/* net.m x levels, the last is urgent */
	uint64_t *full;		/* net.m x words: lists that hold some */
	int words;
	VEC(struct chunk_move) moves;
	struct flow_timetable best, trial;
	double best_sum;	/* of the largest loads of the steps */
	double best_cost;	/* with that of the steps */
	struct arrays arrays;	/* all of these */
};

void flow_steps_free(struct flow_steps *st)
{
	if (!st) {
		return;
	}
	vec_fini(&st->moves);
	flow_timetable_fini(&st->best);
	flow_timetable_fini(&st->trial);
	arrays_fini(&st->arrays);
	free(st);
}

/* Chunks of a pair are numbered path after path. */
static void number_chunks(struct flow_steps *st)
{
	const struct flow_paths *paths = st->paths;
	int32_t pair = -1, chunk = 0;

	for (size_t i = 0; i < paths->v.n; i++) {
		const struct flow_path *q = &paths->v.v[i];

		chunk = q->pair == pair ? chunk : 0;
		pair = q->pair;
		st->chunk0[i] = chunk;
		chunk += q->chunks;
		for (int k = 0; k < q->n_arcs; k++) {
			struct chunk_hop *h = &st->hops[q->first + k];

			h->path = (int32_t)i;
			h->arc = paths->arcs.v[q->first + k];
			h->ends = k == q->n_arcs - 1;
		}
	}
}

static int check_size(const struct flow_paths *paths, int *longest, struct err *err)
{
	int64_t hops = 0;

	*longest = 1;
	for (size_t i = 0; i < paths->v.n; i++) {
		const struct flow_path *q = &paths->v.v[i];

		hops += q->chunks > 0 ? q->n_arcs : 0;
		*longest = q->n_arcs > *longest ? q->n_arcs : *longest;
	}
	if (hops > COLL_MAX_XFERS || paths->arcs.n > INT32_MAX || paths->v.n > INT32_MAX) {
		return err_set(err, WEFT_ELIMIT, "%lld hops of chunks: a "
			       "schedule holds at most %d transfers",
			       (long long)hops, COLL_MAX_XFERS);
	}
	return 0;
}

int flow_steps_new(const struct topo *t, const struct flow_net *net, const struct flow_paths *paths,
		   struct flow_steps **out, struct err *err)
{
	size_t m = (size_t)net->m + 1;
	struct flow_steps *st;
	int longest, levels, rc = check_size(paths, &longest, err);

	*out = NULL;
	if (rc) {
		return rc;
	}
	levels = longest < MAX_LEVELS / LEVELS_A_HOP ? LEVELS_A_HOP * longest
						     : MAX_LEVELS;
	st = x_new(1, sizeof(*st));
	*st = (struct flow_steps){
		.t = t, .net = net, .paths = paths, .longest = longest,
		.levels = levels, .many = paths->arcs.n > MANY_HOPS,
		.words = (levels + 63) / 64,
	};
	arrays_add(&st->arrays, st->hops, paths->arcs.n);
	arrays_add(&st->arrays, st->chunk0, paths->v.n);
	arrays_add(&st->arrays, st->start, paths->v.n);
	arrays_add(&st->arrays, st->apart, paths->v.n);
	arrays_add(&st->arrays, st->lists, m * (size_t)levels);
	arrays_add(&st->arrays, st->full, m * (size_t)st->words);
	number_chunks(st);
	*out = st;
	return 0;
}

/* ---- waiting ---- */

/*
 * Which chunks go first. LONGEST_FIRST is best where the arcs' loads are alike at
 * every distance, as on symmetric digraphs; among equals the sources go
 * in turn, in their order. Elsewhere arcs would wait for what others hold back: EVEN has every
 * path send at an even pace from the first slot to the last, so that what a full arc needs is
 * there in each step, however unlike demands and capacities are.
 */
enum order { LONGEST_FIRST, EVEN };

/* When the next chunk at hop i is due; 0 is the first. */
static double slot_of(const struct flow_steps *st, int32_t i)
{
	const struct chunk_hop *h = &st->hops[i];
	int hop = i - (int32_t)st->paths->v.v[h->path].first;

	return st->start[h->path] + hop * st->pace + h->sent * st->apart[h->path];
}

static void set_level(struct flow_steps *st, int32_t i)
{
	double slot = slot_of(st, i);
	int top = st->levels - 1;

	st->hops[i].level = (uint16_t)(slot < top ? top - (int)slot : 0);
}

/* Before anything moves. quanta: of the full arcs. */
static void set_order(struct flow_steps *st, enum order order, double quanta)
{
	int a_hop = st->levels / st->longest;
	double n = (double)st->paths->v.n, top = st->levels - 1;

	st->pace = order == EVEN ? fmin(HOP_STEPS * st->levels / quanta, top / st->longest) : a_hop;
	for (size_t i = 0; i < st->paths->v.n; i++) {
		const struct flow_path *q = &st->paths->v.v[i];
		/* Multiples of the golden ratio fill an interval evenly. */
		uint32_t golden = (uint32_t)i * UINT32_C(2654435769);

		if (order == EVEN) {
			st->apart[i] = (top - (q->n_arcs - 1) * st->pace) / fmax(1, q->chunks);
			st->start[i] = golden / 0x1p32 * st->apart[i];
		} else {
			st->apart[i] = 0;
			st->start[i] = (st->longest - q->n_arcs) * a_hop + (double)i * a_hop / n;
		}
		for (int k = 0; k < q->n_arcs; k++) {
			set_level(st, (int32_t)q->first + k);
		}
	}
}

/* How many of so many chunks that wait at hop i are in the slot of the next. */
static int64_t alike(const struct flow_steps *st, int32_t i, int64_t waiting)
{
	double apart = st->apart[st->hops[i].path], slot;

	if (waiting == 1 || apart == 0) {
		return waiting;
	}
	slot = slot_of(st, i);
	return (int64_t)fmin((double)waiting, 1 + (floor(slot) + 1 - slot) / apart);
}

static void enqueue(struct flow_steps *st, int32_t i)
{
	struct chunk_hop *h = &st->hops[i];
	struct wait_list *l;

	if (h->sent > 0) {
		set_level(st, i);
	}
	h->next = -1;
	l = &st->lists[(size_t)h->arc * st->levels + h->level];
	if (l->first < 0) {
		l->first = i;
		st->full[(size_t)h->arc * st->words + h->level / 64] |=
			UINT64_C(1) << (h->level % 64);
	} else {
		st->hops[l->last].next = i;
	}
	l->last = i;
}

/* The most urgent list that holds some, or -1. */
static int top_level(const struct flow_steps *st, int a)
{
	const uint64_t *full = st->full + (size_t)a * st->words;

	for (int w = st->words - 1; w >= 0; w--) {
		if (full[w]) {
			return w * 64 + 63 - __builtin_clzll(full[w]);
		}
	}
	return -1;
}

static void dequeue(struct flow_steps *st, int a, int level)
{
	struct wait_list *l = &st->lists[(size_t)a * st->levels + level];

	l->first = st->hops[l->first].next;
	if (l->first < 0) {
		st->full[(size_t)a * st->words + level / 64] &= ~(UINT64_C(1) << (level % 64));
	}
}

static void rewind_steps(struct flow_steps *st, enum order order, double quanta)
{
	const struct flow_paths *paths = st->paths;
	size_t lists = (size_t)st->net->m * (size_t)st->levels;

	memset(st->full, 0, (size_t)st->net->m * (size_t)st->words * sizeof(*st->full));
	for (size_t i = 0; i < lists; i++) {
		st->lists[i] = (struct wait_list){ -1, -1 };
	}
	for (size_t i = 0; i < paths->arcs.n; i++) {
		st->hops[i].ready = st->hops[i].sent = 0;
	}
	set_order(st, order, quanta);
	for (size_t i = 0; i < paths->v.n; i++) {
		const struct flow_path *q = &paths->v.v[i];

		if (q->chunks > 0) {
			st->hops[q->first].ready = q->chunks;
			enqueue(st, (int32_t)q->first);
		}
	}
}

/* Largest use of a lane when the arc carries this much. */
static double use_of_lanes(const struct flow_steps *st, int a, int64_t used)
{
	double use = (double)used / (double)st->net->units[a];

	return st->net->first_lane[a + 1] - st->net->first_lane[a] > 1
		       ? ceil(use) : use;
}

/* ---- steps ---- */

/* Chunks at hop i cross its arc. */
static void move_chunks(struct flow_steps *st, int32_t i, int32_t chunks)
{
	struct chunk_hop *h = &st->hops[i];

	if (st->moves.n > 0 && st->moves.v[st->moves.n - 1].hop == i) {
		st->moves.v[st->moves.n - 1].chunks += chunks;
		st->trial.v.v[st->trial.v.n - 1].chunks += chunks;
	} else {
		vec_push(&st->moves, (struct chunk_move){ i, chunks });
		vec_push(&st->trial.v, (struct flow_sent){
			    h->path, i - (int32_t)st->paths->v.v[h->path].first,
			    st->chunk0[h->path] + h->sent, chunks });
	}
	h->sent += chunks;
}

/* The moves of one arc in one step; *used: their chunks. */
static void step_arc(struct flow_steps *st, int a, int64_t quantum, int64_t *used)
{
	int64_t room = quantum * st->net->units[a];
	int level;

	*used = 0;
	while (*used < room && (level = top_level(st, a)) >= 0) {
		int32_t i = st->lists[(size_t)a * st->levels + level].first;
		int64_t waiting = st->hops[i].ready - st->hops[i].sent;
		int64_t can = alike(st, i, waiting), left = room - *used;
		int64_t now = can < left ? can : left;

		move_chunks(st, i, (int32_t)now);
		*used += now;
		if (now == can) {
			dequeue(st, a, level);
		}
		if (now == can && now < waiting) {
			enqueue(st, i);
		}
	}
}

/* What moved arrives, and waits at the next arc. */
static void deliver(struct flow_steps *st)
{
	for (size_t i = 0; i < st->moves.n; i++) {
		struct chunk_move mv = st->moves.v[i];
		struct chunk_hop *h = &st->hops[mv.hop];

		if (h->ends) {
			continue;
		}
		h++;
		h->ready += mv.chunks;
		if (h->ready - h->sent == mv.chunks) {
			enqueue(st, mv.hop + 1);
		}
	}
	st->moves.n = 0;
}

/* One step; *largest: use of an arc in it, 0 when all has arrived. */
static void run_step(struct flow_steps *st, int64_t quantum, double *largest)
{
	*largest = 0;
	for (int a = 0; a < st->net->m; a++) {
		int64_t used;

		step_arc(st, a, quantum, &used);
		*largest = fmax(*largest, use_of_lanes(st, a, used));
	}
	deliver(st);
	if (*largest > 0) {
		vec_push(&st->trial.end, st->trial.v.n);
	}
}

/* The trial becomes the best. */
static void keep_trial(struct flow_steps *st, double sum, const struct flow_steps_options *opt)
{
	struct flow_timetable old = st->best;

	st->best = st->trial;
	st->trial = old;
	st->best_sum = sum;
	st->best_cost = sum + (double)st->best.end.n * opt->step_cost;
}

/* Steps until all has arrived; kept when they are at most opt->max_steps and
 * better than the best. */
static void run_steps(struct flow_steps *st, enum order order, int64_t quantum, double quanta,
		      const struct flow_steps_options *opt)
{
	double sum = 0, largest;

	rewind_steps(st, order, quanta);
	st->moves.n = st->trial.v.n = st->trial.end.n = 0;
	for (int k = 0; k <= opt->max_steps && sum + k * opt->step_cost < st->best_cost; k++) {
		if (flow_limit_over(&opt->limit)) {
			break;
		}
		run_step(st, quantum, &largest);
		if (largest == 0) {
			if (sum + k * opt->step_cost < st->best_cost * (1 - 1e-9)) {
				keep_trial(st, sum, opt);
			}
			break;
		}
		sum += largest;
	}
}

/* Quanta that together make `use` and let the filling of the pipeline be
 * within the loss. */
static double guess_slots(const struct flow_steps *st, const struct flow_steps_options *opt)
{
	double slots = st->longest / fmax(opt->loss, 1e-3);

	return fmax(1, fmin(slots, opt->max_steps / 2 - st->longest));
}

/* Both orders with one quantum, of which the full arcs have some. */
static void try_quantum(struct flow_steps *st, int64_t quantum, double quanta, double enough,
			const struct flow_steps_options *opt)
{
	/* On a large digraph, both would take twice the time for little. */
	int order = st->many ? EVEN : LONGEST_FIRST;

	for (; order <= EVEN && st->best_cost > enough; order++) {
		run_steps(st, order, quantum, quanta, opt);
	}
}

/* Largest loads of the steps of the trial. */
static double sum_trial(const struct flow_steps *st)
{
	const struct flow_timetable *tt = &st->trial;
	double sum = 0;

	for (size_t k = 0, i = 0; k < tt->end.n; k++) {
		double most = 0;

		while (i < tt->end.v[k]) {
			int a = flow_sent_arc(st->paths, &tt->v.v[i]);
			int64_t used = 0;

			for (; i < tt->end.v[k] && flow_sent_arc(st->paths, &tt->v.v[i]) == a;
			     i++) {
				used += tt->v.v[i].chunks;
			}
			most = fmax(most, use_of_lanes(st, a, used));
		}
		sum += most;
	}
	return sum;
}

/* Something quick to return whenever time is over; at last all that an arc
 * ever carries in one step, so that hops alone count. */
static void fit_quickly(struct flow_steps *st, double use, const struct flow_steps_options *opt)
{
	double slots = fmax(1, guess_slots(st, opt) / FINER_MANY);
	bool fits = false;

	for (int i = 0; i < 2 && !fits; i++, slots = 1) {
		flow_fit(st->net, st->paths, st->chunk0, (int64_t)ceil(use / slots - 1e-9),
			     opt->max_steps, &st->trial, &fits);
	}
	if (fits) {
		keep_trial(st, sum_trial(st), opt);
	}
}

/* The first number of quanta to try: where steps cost, half of that at which filling the pipeline
 * and the steps take equally long, so that their sum is near its least. */
static double first_slots(const struct flow_steps *st, double use,
			  const struct flow_steps_options *opt)
{
	double slots = guess_slots(st, opt) / FINER_MANY;

	if (opt->step_cost > 0) {
		slots = fmin(slots, sqrt(use * st->longest / opt->step_cost) / 2);
	}
	return st->many ? fmax(1, slots) : 1;
}

int flow_steps_choose(struct flow_steps *st, double use, const struct flow_steps_options *opt,
		      double *sum, struct err *err)
{
	double enough = (use + st->longest * opt->step_cost) * (1 + opt->loss);
	double slots = first_slots(st, use, opt);
	double finer = !st->many ? FINER : opt->step_cost > 0 ? FINER_COSTLY : FINER_MANY;
	int64_t last = 0;

	st->best_sum = st->best_cost = HUGE_VAL;
	if (flow_limit_is_set(&opt->limit)) {
		fit_quickly(st, use, opt);
	}
	/* The fullest arc needs as many steps as it has quanta. */
	for (; slots <= opt->max_steps && last != 1 &&
	       st->best_cost > enough && use + slots * opt->step_cost < st->best_cost &&
	       !flow_limit_over(&opt->limit);
	     slots *= finer) {
		int64_t quantum = (int64_t)ceil(use / slots - 1e-9);

		if (quantum != last) {
			try_quantum(st, quantum, use / (double)quantum, enough, opt);
		}
		last = quantum;
	}
	*sum = st->best_cost;
	return st->best_cost < HUGE_VAL
		       ? 0 : err_set(err, WEFT_ELIMIT, "all-to-all takes more than %d steps",
				     opt->max_steps);
}

/* ---- transfers ---- */

/* The lane of an arc that is being filled, and what it still takes. */
struct lane {
	const struct flow_quotient *q;
	const struct flow_net *net;	/* of the topology */
	int32_t arc;		/* of the paths' net */
	int i;
	int64_t room, quota;	/* quota: chunks a unit of capacity */
};

static int lane_arc(const struct flow_steps *st, const struct lane *lane)
{
	return st->net->lanes[st->net->first_lane[lane->arc] + lane->i];
}

static void open_lane(const struct flow_steps *st, struct lane *lane)
{
	lane->room = lane->quota * topo_arc(st->t, lane_arc(st, lane))->cap;
}

/* Puts what goes over an arc on its lanes. */
static int emit(const struct flow_steps *st, struct coll_sched *s, int step,
		struct flow_sent x, struct lane *lane, struct err *err)
{
	int32_t pair = st->paths->v.v[x.path].pair;
	int64_t at = st->paths->v.v[x.path].first + x.hop;
	int rc = 0;

	while (x.chunks > 0 && rc == 0) {
		int part;

		if (lane->room == 0) {
			lane->i++;
			open_lane(st, lane);
		}
		part = lane->room < x.chunks ? (int)lane->room : x.chunks;
		rc = coll_add(s, &(struct coll_xfer){
			step, flow_quotient_lane(lane->q, lane->net, at,
						 lane_arc(st, lane)),
			pair / st->net->n, pair % st->net->n, x.first, x.first + part - 1,
			COLL_OP_COPY, 0 }, err);
		x.first += part;
		x.chunks -= part;
		lane->room -= part;
	}
	return rc;
}

/* What goes over one arc in one step. Parallel arcs share evenly what their
 * bundle carries. */
static int emit_arc(const struct flow_steps *st, struct lane lane, struct coll_sched *s,
		    int step, const struct flow_sent *v, size_t n, struct err *err)
{
	int64_t units = st->net->units[lane.arc], used = 0;
	int rc = 0;

	for (size_t i = 0; i < n; i++) {
		used += v[i].chunks;
	}
	lane.quota = (used + units - 1) / units;
	open_lane(st, &lane);
	for (size_t i = 0; i < n && rc == 0; i++) {
		rc = emit(st, s, step, v[i], &lane, err);
	}
	return rc;
}

int flow_steps_emit(const struct flow_steps *st, const struct flow_quotient *q,
		    const struct flow_net *net, struct coll_sched *s,
		    int *steps, double *sum, struct err *err)
{
	const struct flow_timetable *tt = &st->best;
	size_t from = 0, to;
	int rc = 0;

	for (size_t k = 0; k < tt->end.n; k++) {
		for (; from < tt->end.v[k] && rc == 0; from = to) {
			const struct flow_sent *v = &tt->v.v[from];

			int a = flow_sent_arc(st->paths, v);

			for (to = from; to < tt->end.v[k] &&
					flow_sent_arc(st->paths, &tt->v.v[to]) == a; to++) {
			}
			rc = emit_arc(st, (struct lane){ .q = q, .net = net, .arc = a }, s, (int)k,
				      v, to - from, err);
		}
	}
	*steps = (int)tt->end.n;
	*sum = st->best_cost;
	return rc;
}
