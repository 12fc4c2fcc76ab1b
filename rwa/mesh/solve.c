/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rwa_mesh_solve(): bound first, then any assignment of all lightpaths, then the
 * search: up from the bound until everything has a place, then down again one
 * channel at a time. Work is counted in lightpaths placed, passes of the flow
 * and iterations of lp_solve, so that the same seed and budget give the same
 * answer on any machine, with one thread or two. A time limit ends it earlier,
 * but not before there is an answer. Whatever comes out is checked by check.c,
 * which knows nothing of how it was found.
 */
#include <stdlib.h>

#include "lib/base/alloc.h"
#include "rwa/mesh/private.h"

#define NS_PER_S INT64_C(1000000000)
/* The budget when none is given, in lightpaths placed by each search. */
#define WORK_A_LIGHTPATH 50
#define WORK_LEAST 50000
/* Of the time given: the bound's share; of time and budget: that of the search
 * at the bound, and that of each step after it. */
#define BOUND_SHARE 0.2
#define FIRST_SHARE 0.4
#define STEP_SHARE 0.05
#define SECOND_SHARE 0.25	/* for the objective, at least */
/* For a proof by lp_solve, beside the time given; without one the proofs, too,
 * are a fixed amount of work. */
#define PROOF_LIMIT_S 2
#define CONFIG_LIMIT_S 5
/* Lightpaths placed to find a first answer, for each there is and at least. */
#define FIRST_FACTOR 20
#define FIRST_LEAST 6000
#define SEEDS_LEAST 16	/* for so many times that many, from other seeds */
#define SEED_LEAST 1000	/* from each */
/* Protected demands times arcs: 2 GiB for each search. */
#define MAX_PAIR_ARCS ((int64_t)1 << 29)
#define OTHER_SEED UINT64_C(0x9e3779b97f4a7c15)

/* One run of the solver. `res` is filled as it goes: once channels are set,
 * the assignment there is complete for them, so that time may run out
 * anywhere after that. Both searches are of the same mesh and differ in
 * their seeds. */
struct solve {
	const struct rwa_mesh *m;
	const struct rwa_mesh_options *opt;
	struct mesh_search *search;
	struct mesh_search *other;	/* beside it, NULL: none */
	struct mesh_search *best;	/* that served the most */
	struct mesh_routes routes;	/* of the bound's flow */
	int64_t budget;		/* lightpaths that each search may place */
	uint64_t seed;
	struct rwa_mesh_result *res;
	int64_t time_ns;	/* to the deadline, when it began */
	int64_t wanted;		/* lightpaths that the ends can hold */
	bool too_few;		/* channels given, by lp_solve */
};

/* When `share` of all the time given is over, from now on; never without a deadline, but when
 * canceled. */
static struct mesh_stop stop_in(const struct solve *s, double share)
{
	int64_t ns = (int64_t)((double)s->time_ns * share);

	return (struct mesh_stop){ .deadline = deadline_part(&s->opt->deadline, ns),
				   .cancel = s->opt->cancel };
}

/* The same from the beginning on. */
static struct mesh_stop stop_at(const struct solve *s, double share)
{
	struct mesh_stop stop = { .deadline = s->opt->deadline, .cancel = s->opt->cancel };

	stop.deadline.at_ns -= (int64_t)((double)s->time_ns * (1 - share));
	return stop;
}

/* The end of all the time given. */
static struct mesh_stop final_stop(const struct solve *s)
{
	return stop_at(s, 1);
}

/* Lightpaths that each search may still place. */
static int64_t work_left(const struct solve *s)
{
	return s->search ? s->budget - s->search->round : s->budget;
}

/* A share of the budget, no more than what is left of it. */
static int64_t work_share(const struct solve *s, double share)
{
	int64_t work = (int64_t)((double)s->budget * share) + 1, left = work_left(s);

	return work < left ? work : left;
}

/* True when time or budget are used up, or it is canceled. */
static bool is_over(const struct solve *s)
{
	struct mesh_stop last = final_stop(s);

	return work_left(s) <= 0 || stop_now(&last);
}

/* Renumbers channels so that none below res->channels is empty, where one is as
 * good as another. */
static void close_gaps(const struct solve *s)
{
	const struct rwa_mesh_guard *g = &s->m->guard;
	struct rwa_mesh_result *res = s->res;
	int32_t *number = x_new((size_t)res->channels + 1, sizeof(*number)), next = 0;

	if (s->m->blocks.n || s->m->tunings.n || g->between || g->below || g->above) {
		free(number);
		return;
	}
	for (size_t h = 0; h < res->assignment.hops.n; h++) {
		number[res->assignment.hops.v[h].channel] = 1;
	}
	for (int32_t c = 0; c < res->channels; c++) {
		next += number[c];
		number[c] = next - 1;
	}
	for (size_t h = 0; h < res->assignment.hops.n; h++) {
		res->assignment.hops.v[h].channel = number[res->assignment.hops.v[h].channel];
	}
	res->channels = next > res->bound ? next : res->bound;
	free(number);
}

/* Takes over the search's best assignment. */
static void keep(struct solve *s, int channels)
{
	rwa_assignment_fini(&s->res->assignment);
	s->res->channels = channels;
	s->res->method = "guided ejection";
	search_best(s->best, &s->res->assignment);
	if (!s->opt->channels) {
		close_gaps(s);
	}
}

/* One search, or two beside each other. */
static int64_t run(struct solve *s, int64_t target, int64_t work, const struct mesh_stop *stop)
{
	struct mesh_search *both[PORTFOLIO] = { s->search, s->other };
	int64_t served;
	int winner = 0;

	if (!s->other) {
		return search_run(s->search, target, work, stop);
	}
	served = portfolio_run(both, s->opt->threads, target, work, stop, &winner);
	s->best = both[winner];
	return served;
}

/* The search at this many channels. *all: every lightpath has a place;
 * then, or when only as many as fit are asked for, the answer is taken
 * over. *missing: lightpaths without a place. */
static int attempt(struct solve *s, int channels, int64_t work, const struct mesh_stop *stop,
		   int64_t *missing, struct err *err)
{
	int64_t served = 0;
	int64_t target = s->opt->channels ? s->res->lightpaths_bound
					  : s->wanted;
	int rc = search_set_channels(s->search, channels, err);

	if (!rc && s->other) {
		rc = search_set_channels(s->other, channels, err);
	}
	if (!rc) {
		served = run(s, target, work, stop);
	}
	*missing = s->wanted - served;
	if (!rc && (!*missing || s->opt->channels)) {
		keep(s, channels);
	}
	return rc;
}

/* With so many channels every lightpath can have one for itself, that of all
 * its nodes' ranges: more of them cannot help. */
static int64_t max_channels(const struct solve *s)
{
	const struct rwa_mesh *m = s->m;
	int64_t last = 0, used = 0, min = s->res->bound;

	for (size_t i = 0; i < m->tunings.n; i++) {
		last = m->tunings.v[i].last > last ? m->tunings.v[i].last
						   : last;
	}
	for (size_t i = 0; i < m->blocks.n; i++) {
		used += m->blocks.v[i].channel != RWA_MESH_ALL;
	}
	last += mesh_band_min_channels(m, m->lightpaths + 1) +
		used * (2 * m->guard.between + 1);
	last = last > min ? last : min;
	return last < RWA_MESH_MAX_CHANNELS ? last : RWA_MESH_MAX_CHANNELS;
}

/* One search, or with threads two, of all demands or of as many as fit, by the
 * prices that say which arcs are short of slots. */
static int new_searches(struct solve *s, bool fit, struct err *err)
{
	const int64_t *prices = fit ? s->res->fit.prices : s->res->certificate.prices;
	const struct mesh_routes *routes = &s->routes;
	int rc;

	s->budget = work_left(s);
	search_free(s->search);
	search_free(s->other);
	s->other = NULL;
	rc = search_new(s->m, prices, routes, s->seed, fit, &s->search, err);
	if (!rc && s->opt->threads) {
		rc = search_new(s->m, prices, routes, s->seed ^ OTHER_SEED, fit, &s->other, err);
	}
	s->best = s->search;
	return rc;
}

/* Where all may have a place, a search that gives up none finds it soon or not at all: from some
 * more seeds, beside the budget and for about as much work in all. */
static int begin_again(struct solve *s, int channels, int64_t *missing, struct err *err)
{
	int64_t each = s->wanted * FIRST_FACTOR + SEED_LEAST, budget = work_left(s);
	int64_t rest = budget + SEEDS_LEAST * FIRST_LEAST;
	struct mesh_stop stop = stop_at(s, FIRST_SHARE);
	int rc = 0;

	for (; *missing && !rc && rest >= each && !stop_now(&stop); rest -= each) {
		s->seed++;
		s->budget = each;
		rc = new_searches(s, false, err);
		if (!rc) {
			rc = attempt(s, channels, each, &stop, missing, err);
		}
	}
	s->seed = s->opt->seed;
	s->budget = budget;
	return rc;
}

/* Names a demand that even as many channels as can help were not enough for. */
static int none_found(const struct solve *s, int channels, struct err *err)
{
	int32_t d = search_waiting(s->search);
	char from[16], to[16];

	return err_set(err, WEFT_EINFEASIBLE, "demand %d: %s -> %s%s: no place for it was found "
		       "in %d channels, and more would not help", d,
		       rwa_mesh_node_name(s->m, s->m->demands.v[d].src, from, sizeof(from)),
		       rwa_mesh_node_name(s->m, s->m->demands.v[d].dst, to, sizeof(to)),
		       s->m->demands.v[d].protect ? ", protected" : "", channels);
}

/* Any assignment of all lightpaths: each has one try to find a free place, and
 * the channels are more until all have found one. When even as many as can
 * help are not enough, some have to give way, for as long as the search is
 * worth. */
static int find_first(struct solve *s, struct err *err)
{
	int64_t max = max_channels(s), missing = s->wanted;
	int channels = s->res->bound;
	struct mesh_stop stop = { .cancel = s->opt->cancel };

	while (missing) {
		int64_t work = channels < max ? missing : s->wanted * FIRST_FACTOR + FIRST_LEAST;
		int rc = attempt(s, channels, work, &stop, &missing, err);

		if (rc || !missing) {
			return rc;
		}
		if (stop_now(&stop)) {
			return err_set(err, WEFT_ECANCELED,
				       "stopped before an assignment was found");
		}
		if (channels >= max) {
			rc = begin_again(s, channels, &missing, err);
			return rc || !missing ? rc : none_found(s, channels, err);
		}
		channels += channels / 16 + 1;
		channels = channels < max ? channels : (int)max;
	}
	return 0;
}

/* From the bound up, in growing steps, as long as that is fewer than the
 * channels of the answer: near the bound each channel counts, far from it any
 * progress is worth more, and going down follows. *failed: the most channels
 * that were too few. */
static int go_up(struct solve *s, int *failed, struct err *err)
{
	int channels = s->res->bound, step = 1, rc = 0;
	int64_t missing = 1;

	*failed = channels - 1;
	while (!rc && missing && channels < s->res->channels && !is_over(s)) {
		double share = channels == s->res->bound ? FIRST_SHARE : STEP_SHARE;
		struct mesh_stop stop = stop_in(s, share);

		rc = attempt(s, channels, work_share(s, share), &stop, &missing, err);
		if (!rc && missing) {
			*failed = channels;
			channels += step;
			/* As many channels as they would fill, halved. */
			if (missing * channels / s->wanted / 2 > step) {
				channels += (int)(missing * channels / s->wanted / 2) - step;
			}
			step += (step + 3) / 4;
		}
	}
	return rc;
}

/* Halves the distance to what was too few while it is large, then gives all
 * that is left to one channel fewer. */
static int go_down(struct solve *s, int failed, struct err *err)
{
	int64_t missing = 0;
	bool at_end = false;
	int rc = 0;

	while (!rc && !at_end && s->res->channels > s->res->bound && !is_over(s)) {
		bool wide = s->res->channels - failed > 2;
		struct mesh_stop stop = wide ? stop_in(s, STEP_SHARE)
					     : final_stop(s);
		int channels = wide ? (s->res->channels + failed) / 2
				    : s->res->channels - 1;

		rc = attempt(s, channels, work_share(s, wide ? STEP_SHARE : 1), &stop, &missing,
			     err);
		if (missing) {
			at_end = !wide;
			failed = channels;
		}
	}
	return rc;
}

/* Add and drop limits: an error when all must be served, otherwise fewer
 * lightpaths to look for. */
static int check_ends(struct solve *s, struct err *err)
{
	const struct rwa_mesh *m = s->m;
	size_t n = m->nodes.n;
	int64_t *ends = x_new(2 * n, sizeof(*ends));
	char name[16];
	int rc = 0;

	for (size_t i = 0; i < m->demands.n; i++) {
		const struct rwa_mesh_demand *d = &m->demands.v[i];
		int64_t lightpaths = (int64_t)d->count * (d->protect ? 2 : 1);

		ends[d->src] += lightpaths;
		ends[n + d->dst] += lightpaths;
	}
	for (size_t k = 0; !rc && k < 2 * n; k++) {
		const struct rwa_mesh_node *v = &m->nodes.v[k % n];
		int32_t limit = k < n ? v->add_limit : v->drop_limit;

		if (limit >= 0 && ends[k] > limit && !s->opt->channels) {
			rc = err_set(err, WEFT_EINFEASIBLE,
				     "node %s: %lld lightpaths %s there, its "
				     "limit is %d",
				     rwa_mesh_node_name(m, (int)(k % n), name,
							sizeof(name)),
				     (long long)ends[k],
				     k < n ? "begin" : "end", limit);
		}
	}
	free(ends);
	return rc;
}

/* The larger of the two bounds, and in res->proof which one it was. */
static int find_bound(struct solve *s, struct err *err)
{
	struct rwa_mesh_result *res = s->res;
	struct mesh_stop stop = stop_at(s, BOUND_SHARE);
	char name[16];
	int32_t node;
	int rc = mesh_bound(s->m, &stop, &res->certificate, &s->routes, err);

	if (!rc) {
		mesh_ends_bound(s->m, &res->certificate.ends, &node);
	}
	if (!rc && res->certificate.ends > RWA_MESH_MAX_CHANNELS && !s->opt->channels) {
		return err_set(err, WEFT_EINFEASIBLE,
			       "node %s: its lightpaths do not fit in the "
			       "channels that its transceivers reach",
			       rwa_mesh_node_name(s->m, node, name,
						  sizeof(name)));
	}
	res->bound = res->certificate.bound;
	res->proof = "flow prices";
	if (res->certificate.ends > res->bound) {
		res->bound = res->certificate.ends;
		res->proof = "slots at a node";
	}
	return rc;
}

/* The bound on lightpaths in the channels given, with prices of its own:
 * those that prove many channels need not be those by which few fit. */
static int find_fit(struct solve *s, struct err *err)
{
	struct mesh_stop stop = stop_at(s, 2 * BOUND_SHARE);

	return mesh_fit(s->m, s->opt->channels, &stop, &s->res->fit,
			&s->res->lightpaths_bound, err);
}

/* By what is proven not all fit. */
static bool is_too_much(const struct solve *s)
{
	return s->opt->channels && s->res->lightpaths_bound < s->m->lightpaths;
}

/* As many as fit in the channels given. Where all may, they are looked for first
 * by the search that gives up none. */
static int fill(struct solve *s, struct err *err)
{
	int64_t max = max_channels(s);
	struct mesh_stop first = stop_at(s, FIRST_SHARE), stop = final_stop(s);
	int64_t missing;
	int rc;

	max = max < s->opt->channels ? max : s->opt->channels;
	if (s->wanted < s->res->lightpaths_bound) {
		s->res->lightpaths_bound = s->wanted;
	}
	if (!s->search->fit) {
		rc = attempt(s, (int)max, work_share(s, FIRST_SHARE), &first, &missing, err);
		if (!rc && missing) {
			rc = begin_again(s, (int)max, &missing, err);
		}
		if (rc || !missing || (rc = new_searches(s, true, err))) {
			return rc;
		}
	}
	return attempt(s, (int)max, work_left(s), &stop, &missing, err);
}

/* One channel fewer may be impossible, or to serve all in those given. */
static int prove_too_few(struct solve *s, struct err *err)
{
	struct deadline end = deadline_part(&s->opt->deadline, PROOF_LIMIT_S * NS_PER_S);
	bool fill = s->opt->channels, proven;
	int rc = mesh_prove_too_few(s->m, fill ? s->opt->channels : s->res->channels - 1, &end,
				    &proven, err);

	if (!rc && proven) {
		s->res->bound = fill ? s->opt->channels + 1 : s->res->channels;
		s->res->lightpaths_bound -= fill;
		s->too_few = fill;
		s->res->proof = "lp_solve";
	}
	return rc;
}

/* The search once more, from a rounded solution of the configurations. */
static int search_from(struct solve *s, const struct rwa_assignment *start, struct err *err)
{
	struct mesh_stop stop = stop_in(s, FIRST_SHARE);
	int32_t *penalties = x_new(start->paths.n + 1, sizeof(*penalties));
	int64_t served = 0;
	int rc;

	for (size_t i = 0; i < start->paths.n; i++) {
		penalties[i] = 1;
	}
	rc = search_begin(s->search, s->res->bound, start, penalties, err);
	if (!rc) {
		served = search_run(s->search, s->wanted, work_share(s, FIRST_SHARE), &stop);
	}
	s->best = s->search;
	if (!rc && served == s->wanted) {
		keep(s, s->res->bound);
		s->res->method = "configurations";
	}
	free(penalties);
	return rc;
}

/* Where bound and answer differ on a small instance, the configurations of a
 * channel may prove more, or lead to a better answer. */
static int try_configurations(struct solve *s, struct err *err)
{
	struct deadline end = deadline_part(&s->opt->deadline, CONFIG_LIMIT_S * NS_PER_S);
	struct rwa_assignment start;
	int bound;
	int rc = mesh_configurations(s->m, s->opt->seed, &end, s->opt->cancel, &bound, &start,
				     err);

	if (rc) {
		return rc;
	}
	if (bound > s->res->bound) {
		s->res->bound = bound < s->res->channels ? bound
							 : s->res->channels;
		s->res->proof = "configurations";
	}
	if (bound && s->res->channels > s->res->bound) {
		rc = search_from(s, &start, err);
	}
	rwa_assignment_fini(&start);
	return rc;
}

/* Programs that only small instances can afford, while bound and answer
 * differ. */
static int raise_bound(struct solve *s, struct err *err)
{
	int rc = 0;

	if (s->res->channels > s->res->bound) {
		rc = try_configurations(s, err);
	}
	if (!rc && s->res->channels > s->res->bound) {
		rc = prove_too_few(s, err);
	}
	return rc;
}

/* What is wanted beside the channels, with a share of time and budget of its
 * own. */
static int second(struct solve *s, struct err *err)
{
	struct mesh_stop stop = final_stop(s);
	struct mesh_stop min = stop_in(s, SECOND_SHARE);
	int64_t least = s->search->round + (int64_t)((double)s->budget * SECOND_SHARE) + 1;

	if (stop.deadline.at_ns < min.deadline.at_ns) {
		stop.deadline = min.deadline;
	}
	stop.rounds = &s->search->round;
	stop.at_round = s->budget > least ? s->budget : least;
	switch (s->opt->objective) {
	case RWA_MIN_MOVED:
		return s->opt->before
			       ? mesh_min_moved(s->m, s->search, s->opt->before, &stop, s->res, err)
			       : 0;
	case RWA_MIN_MAX_LOSS:
		return mesh_min_max_loss(s->m, s->opt, &stop, s->res, err);
	case RWA_ANY:
		break;
	}
	return 0;
}

/* The fit by its prices, unless the ends allow even fewer. */
static int check_fit(const struct solve *s, struct err *err)
{
	int64_t fit = 0;
	int rc;

	if (!s->opt->channels) {
		return 0;
	}
	rc = rwa_certificate_fit(s->m, &s->res->fit, s->opt->channels, &fit, err);
	fit = (fit < s->wanted ? fit : s->wanted) - s->too_few;
	if (!rc && s->res->lightpaths_bound != fit) {
		rc = err_set(err, WEFT_EVERIFY, "the prices let %lld lightpaths fit, not %lld",
			     (long long)fit, (long long)s->res->lightpaths_bound);
	}
	return rc;
}

/* Nothing is handed out that the independent checks do not confirm. */
static int check_answer(const struct solve *s, struct err *err)
{
	const struct rwa_mesh_result *res = s->res;
	int rc = rwa_mesh_check(s->m, &res->assignment, res->channels, !s->opt->channels, err);

	if (!rc && !(rc = rwa_certificate_check(s->m, &res->certificate, err))) {
		rc = check_fit(s, err);
	}
	return rc ? err_wrap(err, "the answer fails its check") : 0;
}

/* The ring's bound as prices, if it is better than those of the flow. */
static int price_pair(struct solve *s, const int32_t *pair, struct err *err)
{
	struct rwa_certificate *c = &s->res->certificate;
	size_t n = s->m->arcs.n;
	struct rwa_certificate ring = *c;
	int rc;

	ring.prices = x_new(n + 1, sizeof(*ring.prices));
	ring.prices[pair[0]] = ring.prices[pair[1]] = 1;
	rc = certificate_sum(s->m, &ring, err);
	if (!rc && ring.bound > c->bound) {
		int64_t *prices = c->prices;

		*c = ring;
		ring.prices = prices;
		if (c->bound > s->res->bound) {
			s->res->bound = c->bound;
			s->res->proof = "prices of two links";
		}
	}
	rwa_certificate_fini(&ring);
	return rc;
}

/* The assignment of a plain ring, if it is one and its channels are not more
 * than those given; no work for the search above them. */
static int start_ring(struct solve *s, struct err *err)
{
	struct rwa_assignment a;
	int32_t pair[2];
	int channels;
	int rc = mesh_ring_start(s->m, &a, &channels, pair, err);

	if (!rc && channels) {
		rc = price_pair(s, pair, err);
	}
	if (!rc && channels && s->wanted == s->m->lightpaths &&
	    (!s->opt->channels || channels <= s->opt->channels)) {
		s->res->assignment = a;
		s->res->channels = channels;
		s->res->method = "ring";
		return 0;
	}
	rwa_assignment_fini(&a);
	return rc;
}

/* What was there before, with all else around it, if that is the aim. */
static int start_previous(struct solve *s, struct err *err)
{
	struct mesh_stop stop = stop_in(s, FIRST_SHARE);

	stop.rounds = &s->search->round;
	stop.at_round = s->search->round + (int64_t)((double)s->budget * FIRST_SHARE) + 1;
	if (s->opt->objective != RWA_MIN_MOVED || !s->opt->before) {
		return 0;
	}
	return mesh_start_previous(s->m, s->search, s->opt->before, s->opt->channels, &stop,
				   s->res, err);
}

/* The assignment: that of a ring, or else by search; when all are to be
 * served, then with fewer channels, and a better bound where that ends. */
static int search_all(struct solve *s, struct err *err)
{
	int rc = start_ring(s, err), failed = s->res->bound - 1;

	if (!s->opt->channels) {
		s->res->lightpaths_bound = s->m->lightpaths;
	}
	if (!rc) {
		rc = start_previous(s, err);
	}
	if (!rc && s->opt->channels) {
		rc = s->res->channels ? 0 : fill(s, err);
		return rc || (int64_t)s->res->assignment.paths.n == s->m->lightpaths ||
		       is_too_much(s) ? rc : prove_too_few(s, err);
	}
	if (!rc && !s->res->channels && !(rc = find_first(s, err))) {
		rc = go_up(s, &failed, err);
	}
	if (!rc && !(rc = go_down(s, failed, err))) {
		rc = raise_bound(s, err);
	}
	return rc;
}

/* The search counts for each protected demand how often each link was in the way. */
static int check_pairs(const struct rwa_mesh *m, struct err *err)
{
	int64_t pairs = 0;

	for (size_t i = 0; i < m->demands.n; i++) {
		pairs += m->demands.v[i].protect != RWA_UNPROTECTED;
	}
	if (pairs * (int64_t)m->arcs.n > MAX_PAIR_ARCS) {
		return err_set(err, WEFT_ELIMIT,
			       "%lld protected demands on %zu arcs: too large to search",
			       (long long)pairs, m->arcs.n);
	}
	return 0;
}

static bool has_shared(const struct rwa_mesh *m)
{
	bool any = false;

	for (size_t d = 0; d < m->demands.n; d++) {
		any |= m->demands.v[d].protect == RWA_SHARED;
	}
	return any;
}

int rwa_mesh_solve(const struct rwa_mesh *m, const struct rwa_mesh_options *opt,
		   struct rwa_mesh_result *res, struct err *err)
{
	struct solve s = { .m = m, .opt = opt, .res = res, .seed = opt->seed,
			   .time_ns = deadline_left_ns(&opt->deadline) };
	int rc;

	*res = (struct rwa_mesh_result){ .method = "guided ejection" };
	s.budget = opt->work > 0 ? opt->work
		   : opt->deadline.at_ns ? INT64_MAX / 2
		   : m->lightpaths * WORK_A_LIGHTPATH + WORK_LEAST;
	if (opt->channels < 0 || opt->channels > RWA_MESH_MAX_CHANNELS ||
	    opt->work < 0 || opt->threads < 0 || opt->threads > PORTFOLIO) {
		return err_set(err, WEFT_EINVAL, "channels: 1 to %d, work: not negative, "
			       "threads: up to %d", RWA_MESH_MAX_CHANNELS, PORTFOLIO);
	}
	if (opt->pinned || has_shared(m)) {
		rc = mesh_solve_shared(m, opt, res, err);
		goto out;
	}
	if (!(rc = check_pairs(m, err)) && !(rc = check_ends(&s, err))) {
		rc = find_bound(&s, err);
	}
	if (!rc && opt->channels) {
		rc = find_fit(&s, err);
	}
	if (!rc && !(rc = new_searches(&s, is_too_much(&s), err))) {
		s.wanted = search_units(s.search);
		rc = search_all(&s, err);
	}
	if (!rc && !(rc = second(&s, err))) {
		rc = check_answer(&s, err);
	}
	res->lightpaths = (int64_t)res->assignment.paths.n;
	search_free(s.search);
	search_free(s.other);
	mesh_routes_fini(&s.routes);
out:
	if (rc) {
		rwa_mesh_result_fini(res);
	}
	return rc;
}
