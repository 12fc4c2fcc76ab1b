/* SPDX-License-Identifier: Apache-2.0 */
/*
 * As few lightpaths moved as possible, at a number of channels that is known.
 *
 * Every unit of the search that serves a lightpath of before has a home, the
 * place where that lightpath was. The search begins with all of them at home, and
 * those that are new waiting. Who is at home is expensive to eject, and who
 * waits goes home as soon as nothing is in the way. Then lightpaths that had to
 * move are put back where they were, one after the other, with whoever is in the
 * way ejected, and what comes out is kept when it is no worse.
 *
 * Where that does not find a place for all, the answer of the search for
 * channels is where putting back begins, its channels renamed so that most stay.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/graph/graph.h"
#include "rwa/mesh/private.h"

/* What a lightpath at home costs beside its penalty. */
#define BONUS_HOME 64
#define PENALTY_BACK 256
#define EFFORT_LEAST 4000	/* lightpaths placed */
#define EFFORT_BACK 400		/* lightpaths placed until all have a place again */
#define EFFORT_BACK_MORE 4	/* then for each there is */
#define BACKS_MOST 2000		/* times that one is put back */
#define CHANNELS_MORE 40	/* one more for so many, where it cannot begin */
#define START_PART 3		/* of the time that is left, for each of them */

static const char from_previous[] = "previous lightpaths";

/* The state. `fits` and `stays` go by the paths of `before`, of which `staying`
 * stay; `res` holds a complete answer at any time, so that the work may stop
 * anywhere. */
struct target {
	const struct rwa_mesh *m;
	struct mesh_search *search;
	struct rwa_mesh_result *res;
	struct mesh_stop stop;
	struct rwa_assignment before;	/* what of it can be matched */
	int channels;
	int64_t size;		/* lightpaths to be served */
	bool *fits;		/* path of `before`: could stay by itself */
	bool *stays;		/* path of `before`: does, in res */
	int64_t staying;
	struct rng rng;
};

/* Appends a copy of path i and its hops. */
static void add_path(struct rwa_assignment *out, const struct rwa_assignment *a, size_t i)
{
	struct rwa_path p = a->paths.v[i];
	const struct rwa_hop *hop = a->hops.v + p.first;

	p.first = (int64_t)out->hops.n;
	vec_reserve(&out->hops, (size_t)p.hops);
	memcpy(out->hops.v + out->hops.n, hop, (size_t)p.hops * sizeof(*hop));
	out->hops.n += (size_t)p.hops;
	vec_push(&out->paths, p);
}

/* ---- what may stay ---- */

/* Is path i of a protected demand, so that i + 1 is its partner? */
static bool is_pair(const struct target *t, const struct rwa_assignment *a, size_t i)
{
	return t->m->demands.v[a->paths.v[i].demand].protect;
}

static bool share_link(const struct rwa_mesh *m, const struct rwa_assignment *a, size_t i, size_t k)
{
	const struct rwa_path *p = &a->paths.v[i], *q = &a->paths.v[k];

	for (int32_t x = 0; x < p->hops; x++) {
		for (int32_t y = 0; y < q->hops; y++) {
			if (mesh_same_link(m, a->hops.v[p->first + x].arc,
					   a->hops.v[q->first + y].arc)) {
				return true;
			}
		}
	}
	return false;
}

/* Copies `before`; of protected demands only pairs without a common link, next
 * to each other, as others cannot stay together. */
static void copy_before(struct target *t, const struct rwa_assignment *before)
{
	for (size_t i = 0; i < before->paths.n; i++) {
		if (!is_pair(t, before, i)) {
			add_path(&t->before, before, i);
			continue;
		}
		if (i + 1 == before->paths.n ||
		    before->paths.v[i + 1].demand != before->paths.v[i].demand) {
			continue;
		}
		if (!share_link(t->m, before, i, i + 1)) {
			add_path(&t->before, before, i);
			add_path(&t->before, before, i + 1);
		}
		i++;
	}
}

/* The mesh with halves of pairs as lightpaths of their own. Borrows all but
 * the demands. */
static struct rwa_mesh without_pairs(const struct rwa_mesh *m)
{
	struct rwa_mesh loose = *m;
	size_t n = m->demands.n;

	loose.demands.v = x_new(n + 1, sizeof(*loose.demands.v));
	for (size_t d = 0; d < n; d++) {
		loose.demands.v[d] = m->demands.v[d];
		loose.demands.v[d].protect = RWA_UNPROTECTED;
		loose.demands.v[d].count = (int32_t)mesh_wanted(&m->demands.v[d]);
	}
	return loose;
}

/* Which lightpaths could stay if they were alone. When all of them together
 * pass the check, as is usual, each does by itself; only otherwise is the
 * check run for each. Halves of pairs are looked at one by one. */
static void find_fitting(struct target *t)
{
	struct rwa_mesh loose = without_pairs(t->m);
	bool all = !rwa_mesh_check(&loose, &t->before, t->channels, false, NULL);

	for (size_t i = 0; i < t->before.paths.n; i++) {
		struct rwa_assignment one = { 0 };

		if (!all) {
			add_path(&one, &t->before, i);
		}
		t->fits[i] = all || !rwa_mesh_check(&loose, &one, t->channels, false, NULL);
		rwa_assignment_fini(&one);
	}
	free(loose.demands.v);
}

/* Which paths of `before` stay in `a`, as rwa_mesh_match() has them: pairs as
 * pairs. *n: how many. */
static void find_staying(const struct target *t, const struct rwa_assignment *a, bool *stays,
			 int64_t *n)
{
	struct rwa_matching match;

	rwa_mesh_match(t->m, &t->before, a, &match);
	*n = 0;
	for (size_t i = 0; i < match.n; i++) {
		if (match.v[i].old_path >= 0) {
			stays[match.v[i].old_path] = match.v[i].kept;
			*n += match.v[i].kept;
		}
	}
	vec_fini(&match);
}

/* True when the assignment keeps all rules. */
static bool passes(const struct target *t, const struct rwa_assignment *a)
{
	return rwa_mesh_check(t->m, a, t->channels, false, NULL) == 0;
}


/* ---- channels ---- */

/* Weight of calling channel c of the answer c': lightpaths that then stay.
 * Only pairs that have any are edges. */
static void channel_weights(const struct target *t, struct u64map *weights)
{
	const struct rwa_assignment *b = &t->before, *a = &t->res->assignment;
	size_t k = 0;

	for (size_t i = 0; i < b->paths.n; i++) {
		const struct rwa_path *p = &b->paths.v[i];

		while (k < a->paths.n && a->paths.v[k].demand < p->demand) {
			k++;
		}
		for (size_t j = k;
		     t->fits[i] && j < a->paths.n && a->paths.v[j].demand == p->demand; j++) {
			const struct rwa_path *q = &a->paths.v[j];
			const struct rwa_hop *x = b->hops.v + p->first;
			const struct rwa_hop *y = a->hops.v + q->first;
			uint64_t key = (uint64_t)y->channel << 32 |
				       (uint64_t)x->channel, w = 0;
			bool same = p->hops == q->hops;

			for (int32_t h = 0; same && h < p->hops; h++) {
				same = x[h].arc == y[h].arc && x[h].fibre == y[h].fibre &&
					x[h].channel == x->channel && y[h].channel == y->channel;
			}
			if (same) {
				u64map_get(weights, key, &w);
				u64map_set(weights, key, w + 1);
			}
		}
	}
}

/* Channel `from` of the answer could be called `to`; number: of the arc in
 * the flow network, to ask for its flow. */
struct channel_edge {
	int from, to, number;
};

/* A matching of the answer's channels and names with the largest weight, as
 * a minimum-cost flow: source 2n, channels 0..n-1, names n..2n-1, sink
 * 2n+1. name[c] stays -1 where the matching says nothing. */
static int match_channels(struct u64map *weights, int n, int32_t *name, struct err *err)
{
	VEC(struct channel_edge) edges = { 0 };
	struct graph_flow *f = graph_flow_new(2 * n + 2);
	int rc = 0;

	for (int c = 0; !rc && c < n; c++) {
		if (!(rc = graph_flow_add(f, 2 * n, c, 1, 0, NULL, err))) {
			rc = graph_flow_add(f, n + c, 2 * n + 1, 1, 0, NULL, err);
		}
	}
	for (int c = 0; !rc && c < n; c++) {
		for (int d = 0; !rc && d < n; d++) {
			struct channel_edge e = { c, d, 0 };
			uint64_t w;

			if (!u64map_get(weights, (uint64_t)c << 32 | (uint64_t)d, &w)) {
				continue;
			}
			rc = graph_flow_add(f, c, n + d, 1, -(int64_t)w, &e.number, err);
			if (!rc) {
				vec_push(&edges, e);
			}
		}
	}
	if (!rc) {
		graph_flow_run(f, 2 * n, 2 * n + 1, 0, NULL, NULL);
	}
	for (size_t k = 0; !rc && k < edges.n; k++) {
		if (graph_flow_on(f, edges.v[k].number)) {
			name[edges.v[k].from] = edges.v[k].to;
		}
	}
	vec_fini(&edges);
	graph_flow_free(f);
	return rc;
}

/* Channels without a partner take the names that are left, in order. */
static void name_rest(int n, int32_t *name)
{
	bool *taken = x_new((size_t)n + 1, sizeof(*taken));
	int next = 0;

	for (int c = 0; c < n; c++) {
		if (name[c] >= 0) {
			taken[name[c]] = true;
		}
	}
	for (int c = 0; c < n; c++) {
		while (name[c] < 0 && taken[next]) {
			next++;
		}
		name[c] = name[c] < 0 ? next++ : name[c];
	}
	free(taken);
}

/* Gives the answer's channels the names with which most lightpaths stay.
 * The search has no reason to use the numbers of `before`, so that this
 * alone keeps many in place. Where blocks or tuning ranges make channels
 * differ the result may break a rule, and then is taken back. */
static int rename_channels(struct target *t, struct err *err)
{
	struct rwa_assignment *a = &t->res->assignment;
	int n = t->channels, rc;
	int32_t *name = x_alloc((size_t)n + 1, sizeof(*name));
	int32_t *was = x_alloc(a->hops.n + 1, sizeof(*was));
	struct u64map weights = { 0 };

	channel_weights(t, &weights);
	for (int c = 0; c < n; c++) {
		name[c] = -1;
	}
	rc = match_channels(&weights, n, name, err);
	if (!rc) {
		name_rest(n, name);
	}
	for (size_t h = 0; !rc && h < a->hops.n; h++) {
		was[h] = a->hops.v[h].channel;
		a->hops.v[h].channel = name[was[h]];
	}
	if (!rc && !passes(t, a)) {
		for (size_t h = 0; h < a->hops.n; h++) {
			a->hops.v[h].channel = was[h];
		}
	}
	u64map_fini(&weights);
	free(name);
	free(was);
	return rc;
}

/* ---- search ---- */

/* Takes over an answer in which so many stay. */
static void take_answer(struct target *t, struct rwa_assignment *now, const bool *stays,
			int64_t staying)
{
	rwa_assignment_fini(&t->res->assignment);
	t->res->assignment = *now;
	*now = (struct rwa_assignment){ 0 };
	t->res->channels = t->channels;
	memcpy(t->stays, stays, t->before.paths.n * sizeof(*stays));
	t->staying = staying;
}

/* Runs the search from a partial assignment without clashes. When all are served
 * and no fewer stay than before, the answer is taken over; *better: more do. */
static int search_from(struct target *t, const struct rwa_assignment *begin,
		       const int32_t *penalties, int32_t bonus, int64_t effort,
		       const struct mesh_stop *stop, bool *better, struct err *err)
{
	struct rwa_assignment now = { 0 };
	int64_t served = 0, staying = -1;
	bool *stays = x_new(t->before.paths.n + 1, sizeof(*stays));
	int rc = search_begin(t->search, t->channels, begin, penalties, err);

	*better = false;
	if (!rc) {
		search_set_homes(t->search, &t->before, t->fits, bonus);
		served = search_run(t->search, t->size, effort, stop);
	}
	search_forget_homes(t->search);
	if (rc || served < t->size) {
		goto out;
	}
	search_best(t->search, &now);
	find_staying(t, &now, stays, &staying);
	if (staying >= t->staying && passes(t, &now)) {
		*better = staying > t->staying;
		take_answer(t, &now, stays, staying);
	}
out:
	rwa_assignment_fini(&now);
	free(stays);
	return rc;
}

/* Part of the time and of the work that is left. */
static struct mesh_stop stop_within(const struct mesh_stop *all, int part)
{
	struct mesh_stop stop = *all;

	stop.deadline = deadline_part(&stop.deadline, deadline_left_ns(&stop.deadline) / part);
	if (stop.rounds && stop.at_round > *stop.rounds) {
		stop.at_round = *stop.rounds + (stop.at_round - *stop.rounds) / part;
	}
	return stop;
}

/* One attempt to serve all from home. */
struct home_level {
	int32_t bonus;
	int effort;	/* lightpaths placed, for each there is */
	int part;	/* one so-manieth of the time that is left */
};

/* Everything at home that fits, pairs only whole, and the rest waiting. More of a
 * demand than it wants now, or they clash: the search takes what it can. */
static int begin_at_home(struct target *t, const struct home_level *level, bool *better,
			 struct err *err)
{
	struct mesh_stop stop = stop_within(&t->stop, level->part);
	struct rwa_assignment begin = { 0 };
	int32_t *penalties = x_new(t->before.paths.n + 1, sizeof(*penalties));
	int64_t effort = t->m->lightpaths * level->effort;
	int rc;

	*better = false;
	for (size_t i = 0; i < t->before.paths.n; i++) {
		size_t last = i + is_pair(t, &t->before, i);
		bool fits = t->fits[i] && t->fits[last];

		for (; fits && i <= last; i++) {
			penalties[begin.paths.n] = 1;
			add_path(&begin, &t->before, i);
		}
		i = last;
	}
	rc = search_from(t, &begin, penalties, level->bonus,
			 effort < EFFORT_LEAST ? EFFORT_LEAST : effort, &stop, better,
			 err);
	rwa_assignment_fini(&begin);
	free(penalties);
	return rc;
}

/* With a high bonus what is in place stays there, but the search may find no
 * room for the rest; then it may eject more easily. */
static int begin_all(struct target *t, struct err *err)
{
	static const struct home_level levels[] = {
		{ BONUS_HOME, 10, 4 }, { BONUS_HOME / 8, 10, 4 }, { 1, 20, 1 },
	};
	bool better = false;
	int rc = 0;

	for (size_t k = 0; !rc && !better && k < sizeof(levels) / sizeof(levels[0]) &&
			   !stop_now(&t->stop); k++) {
		rc = begin_at_home(t, &levels[k], &better, err);
	}
	return rc;
}

/* Appends those of a matching that stay, or those that do not; both of a pair
 * stay when one does. But not what is matched with path `back`, and its
 * partner. */
static void add_matched(const struct target *t, const struct rwa_matching *match, size_t back,
			bool kept, int32_t *penalties, struct rwa_assignment *begin)
{
	for (size_t i = 0; i < match->n; i++) {
		const struct rwa_changed *c = &match->v[i];
		const struct rwa_changed *p = c->partner < 0 ? c : &match->v[c->partner];

		if (c->new_path < 0 || (c->kept || p->kept) != kept ||
		    c->old_path == (int32_t)back || p->old_path == (int32_t)back) {
			continue;
		}
		penalties[begin->paths.n] = 1;
		add_path(begin, &t->res->assignment, (size_t)c->new_path);
	}
}

/* The answer with path `back` of `before` first, so that whatever clashes with
 * it is left out; of a pair, both. */
static int put_back(struct target *t, size_t back, int64_t effort, bool *better, struct err *err)
{
	struct rwa_assignment begin = { 0 };
	struct rwa_matching match;
	int32_t *penalties = x_new(t->res->assignment.paths.n + 3, sizeof(*penalties));
	size_t last = back + is_pair(t, &t->before, back);
	int rc;

	rwa_mesh_match(t->m, &t->before, &t->res->assignment, &match);
	for (size_t i = back; i <= last; i++) {
		penalties[begin.paths.n] = PENALTY_BACK;
		add_path(&begin, &t->before, i);
	}
	add_matched(t, &match, back, true, penalties, &begin);
	add_matched(t, &match, back, false, penalties, &begin);
	rc = search_from(t, &begin, penalties, BONUS_HOME, effort, &t->stop, better, err);
	vec_fini(&match);
	rwa_assignment_fini(&begin);
	free(penalties);
	return rc;
}

/* Puts back one after the other, until a whole round brought nothing or `most`
 * stay. */
static int put_all_back(struct target *t, int64_t effort, int64_t most, struct err *err)
{
	size_t n = t->before.paths.n, calm = 0;
	size_t at = n ? rng_below(&t->rng, n) : 0;
	int rc = 0;

	for (int k = 0; !rc && calm < n && k < BACKS_MOST && t->staying < most &&
			!stop_now(&t->stop);) {
		size_t last = at;
		bool better = false;

		/* The second of a pair goes with the first, an even number from the demand's
		 * first path. */
		if (is_pair(t, &t->before, at)) {
			while (at && t->before.paths.v[at - 1].demand ==
					     t->before.paths.v[at].demand) {
				at--;
			}
			at += (last - at) / 2 * 2;
			last = at + 1;
		}
		if (t->fits[at] && t->fits[last] && !(t->stays[at] && t->stays[last])) {
			rc = put_back(t, at, effort, &better, err);
			k++;
		}
		calm = better ? 0 : calm + 1 + last - at;
		at = (last + 1) % n;
	}
	return rc;
}

/* ---- the whole ---- */

static void target_init(struct target *t, const struct rwa_assignment *before)
{
	size_t n = before->paths.n + 1;

	t->staying = -1;
	t->fits = x_new(n, sizeof(*t->fits));
	t->stays = x_new(n, sizeof(*t->stays));
	rng_seed(&t->rng, (uint64_t)before->paths.n);
	copy_before(t, before);
	find_fitting(t);
}

static void target_fini(struct target *t)
{
	rwa_assignment_fini(&t->before);
	free(t->fits);
	free(t->stays);
}

/* Channels of an assignment, guards at the edge among them. */
static int channels_of(const struct rwa_mesh *m, const struct rwa_assignment *a)
{
	int channels = 0;

	for (size_t h = 0; h < a->hops.n; h++) {
		int to = a->hops.v[h].channel + 1 + m->guard.above;

		channels = to > channels ? to : channels;
	}
	return channels;
}

/* At the channels given, or at those of before, then at more and more, as some
 * place to begin at is better than none. */
int mesh_start_previous(const struct rwa_mesh *m, struct mesh_search *search,
			const struct rwa_assignment *before, int channels,
			const struct mesh_stop *stop, struct rwa_mesh_result *res,
			struct err *err)
{
	struct target t = { .m = m, .search = search, .res = res, .size = res->lightpaths_bound,
			    .channels = channels_of(m, before) };
	int most = channels ? channels : res->channels ? res->channels : 2 * res->bound, rc = 0;

	t.channels = channels		       ? channels
		     : t.channels > res->bound ? t.channels
					       : res->bound;
	if (t.channels > most) {
		return 0;
	}
	target_init(&t, before);
	for (; !rc && t.staying < 0 && t.channels <= most && !stop_now(stop);
	     t.channels += 1 + t.channels / CHANNELS_MORE) {
		t.stop = stop_within(stop, START_PART);
		rc = begin_all(&t, err);
	}
	if (!rc && t.staying >= 0) {
		res->method = from_previous;
	}
	target_fini(&t);
	return rc;
}

int mesh_min_moved(const struct rwa_mesh *m, struct mesh_search *search,
		   const struct rwa_assignment *before, const struct mesh_stop *stop,
		   struct rwa_mesh_result *res, struct err *err)
{
	struct target t = { .m = m, .search = search, .res = res, .stop = *stop,
			    .size = (int64_t)res->assignment.paths.n,
			    .channels = res->channels };
	int64_t common;
	int rc = 0;

	target_init(&t, before);
	mesh_bound_moved(m, &t.before, t.fits, res, &common);
	if (res->method != from_previous) {
		rc = rename_channels(&t, err);
	}
	if (!rc) {
		find_staying(&t, &res->assignment, t.stays, &t.staying);
	}
	if (!rc && res->method != from_previous) {
		rc = begin_all(&t, err);
	}
	for (int more = 0; !rc && more < 2; more++) {
		int64_t effort = more * EFFORT_BACK_MORE * m->lightpaths;

		rc = put_all_back(&t, effort > EFFORT_BACK ? effort : EFFORT_BACK,
				  common - res->moved_bound, err);
	}
	res->moved = common - t.staying;
	target_fini(&t);
	return rc;
}
