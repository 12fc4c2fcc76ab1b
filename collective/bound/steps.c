/* SPDX-License-Identifier: Apache-2.0 */
/*
 * T(K), and the least of them: bound.h says why it is one.
 *
 * Each part is a function of the steps K; "any" stands for so many steps or more, where a part is
 * looked at step by step only up to some number.
 */
#include <math.h>

#include "collective/bound/bound.h"

#define RATES 48	/* values of x in (2) */
#define ROOT_STEPS 4096	/* up to which (5) and (6) are looked at one after the other */
#define SLACK 1e-9	/* by which sums of floating point may be too large */

struct bound_steps {
	const struct bound_net *net;
	const struct bound_cost *c;
	double share;			/* b */
	int near;			/* d */
	int hops;			/* H; 0: not known */
	struct bound_shares shares;	/* of the first steps, where nodes are alike */
	/* x, ln Z, and of a step, and of the first of an all-reduce */
	double rate[RATES], reach[RATES], growth[RATES], first[RATES];
};

/* The most of m exp(-x m message) over whole m. */
static double max_messages(double x, double message)
{
	double m = fmax(1, floor(1 / (x * message)));

	return fmax(m * exp(-x * m * message), (m + 1) * exp(-x * (m + 1) * message));
}

/* The most of m exp(-x (max(m, 1) message + m vector)), of the bytes of a vector on average. */
static double max_vectors(double x, double message, double vector)
{
	double m = fmax(fmin(1, 1 / (x * vector)), 1 / (x * (message + vector)));

	return m * exp(-x * (fmax(m, 1) * message + m * vector));
}

static void set_rate(struct bound_steps *s, int i, double x)
{
	const struct bound_net *net = s->net;
	double far = x * s->c->hop * net->diameter, sum = 0;

	for (int j = 0; j <= net->diameter; j++) {
		double ranks = (double)(net->within[j] - (j > 0 ? net->within[j - 1] : 0));

		sum += ranks * exp(x * s->c->hop * j - far);
	}
	s->rate[i] = x;
	s->reach[i] = far + log(sum);
	s->growth[i] = log(exp(-x * (s->near * s->c->hop + s->c->message)) +
			   net->degree * max_messages(x, s->c->message));
	s->first[i] = !net->sums ? s->growth[i]
		: log(exp(-x * (s->near * s->c->hop + s->c->message)) +
		      net->degree * max_vectors(x, s->c->message, s->c->vector / net->widest));
}

/* (2) */
static double by_messages(const struct bound_steps *s, int steps)
{
	double most = 0;

	for (int i = 0; i < RATES && s->rate[0] > 0; i++) {
		double growth = (steps - 1) * s->growth[i] + s->first[i];

		most = fmax(most, (s->reach[i] - growth) / s->rate[i]);
	}
	return steps * s->c->alpha + most;
}

/* E of (3): parts of b that fall by hop from step to step as far as they are positive, or in so
 * many steps. */
static double path_end(double b, double hop, double steps)
{
	double most = hop > 0 ? floor((1 + sqrt(1 + 8 * b / hop)) / 2) : INFINITY;
	double n = fmin(most, steps);
	double first = (b + hop * n * (n - 1) / 2) / n;
	double squares = n * first * first - hop * hop * (n - 1) * n * (2 * n - 1) / 6;

	if (b <= 0 || isinf(n)) {
		return b / 2;
	}
	return b / 2 + squares / (2 * b);
}

/* What pairs see: their hops, and what they lose beside; any: so many steps or more. */
static double by_paths(const struct bound_steps *s, int steps, bool any)
{
	double ends;

	if (s->hops == 0) {
		return 0;
	}
	ends = s->hops < 2 * s->near ? 0 :
	       2 * path_end(s->near * s->share, s->near * s->c->hop, any ? INFINITY : steps);
	ends = steps <= BOUND_STEPS && !any ? fmax(ends, s->share * s->shares.seen[steps]) : ends;
	return s->hops * s->c->hop + ends;
}

/* (8) of parts of 1 / p: what the first step waits for where each rank has a byte to `copies` in
 * all, and the second. */
static double first_of_two(const struct bound_steps *s, double copies)
{
	double p = s->net->degree, vector = s->c->vector / s->net->widest;

	return s->c->message * fmax(1, (copies - 1) / p) + vector * (copies - 1) / p;
}

static double second_of_two(const struct bound_steps *s, double copies)
{
	double p = s->net->degree, vector = s->c->vector / s->net->widest;
	double more = s->net->ranks / copies;

	return s->c->message * fmax(1, (more - 1) / p) + vector * (1 - 1 / more) / p;
}

#define FINER 1.02	/* copies are looked at so far apart, and the least between is taken */

static double by_copies(const struct bound_steps *s)
{
	double least = INFINITY, ranks = s->net->ranks;

	for (double copies = 1; copies < ranks; copies *= FINER) {
		least = fmin(least, first_of_two(s, copies) +
				    second_of_two(s, fmin(copies * FINER, ranks)));
	}
	return 2 * (s->c->alpha + s->near * s->c->hop) + least;
}

/* (5) less what steps take, of K steps or, INFINITY, of any number */
static double root_volume(const struct bound_net *net, double port, double steps)
{
	int far = net->routed ? net->steps : net->diameter;
	double parts = steps;

	if (far < 2) {
		return isinf(steps) ? port : port * steps / (steps - 1 + 1.0 / (net->ranks - 1));
	}
	parts = ceil(steps / (far - 1));
	return isinf(steps) ? port : parts > 1 ? port * parts / (parts - 1) : INFINITY;
}

/* (5) and (6) */
static double by_root(const struct bound_steps *s, int steps, bool any)
{
	const struct bound_net *net = s->net;
	const struct bound_cost *c = s->c;
	double port = c->vector / net->port, step = c->alpha + c->message, count, most;
	int stride = net->diameter / BOUND_FAR + 1;

	count = any ? INFINITY : steps;
	most = steps * (step + s->near * c->hop) + root_volume(net, port, count);
	for (int h = 1; port > 0 && steps > 1 && h <= net->diameter; h += stride) {
		double far = (double)(net->within[net->diameter] - net->within[h - 1]);
		double alone = fmin((2 + h * c->hop / port) / far, 1);

		most = fmax(most, steps * step + h * c->hop +
				  port * (1 + (1 - alone) * (1 - alone) / (count - 1)));
	}
	return most;
}

/* (7), of K steps or, INFINITY, of any number */
static double pair_volume(const struct bound_steps *s, double steps)
{
	const struct bound_net *net = s->net;

	if (net->pair <= 0 || net->diameter < 2) {
		return 0;
	}
	return fmax(root_volume(net, s->c->vector / net->pair, steps),
		    steps <= net->diameter ? s->c->vector * net->narrow : 0);
}

static double time_of(const struct bound_steps *s, int steps, bool any)
{
	const struct bound_cost *c = s->c;
	bool few = steps <= BOUND_STEPS && !any;
	double volume = few ? fmax(c->load, s->share * s->shares.volume[steps]) : c->load;
	double time;

	volume = fmax(volume, pair_volume(s, any ? INFINITY : steps));
	time = steps * (c->alpha + s->near * c->hop + c->message) + volume;
	time = fmax(time, steps * (c->alpha + c->message) +
			  fmax(c->hop * s->net->diameter, by_paths(s, steps, any)));
	time = s->net->whole ? fmax(time, by_root(s, steps, any)) : time;
	if (!any && steps == 2 && s->net->sums) {
		time = fmax(time, by_copies(s));
	}
	return any ? time : fmax(time, by_messages(s, steps));
}

/* b */
static double share_of(const struct bound_net *net, const struct bound_cost *c)
{
	return c->vector * net->ranks / net->capacity;
}

static void init(struct bound_steps *s)
{
	const struct bound_net *net = s->net;
	const int64_t *within = net->alike ? net->within : net->pair_within;

	s->share = share_of(net, s->c);
	s->near = net->near > 1 ? net->near : 1;
	s->hops = net->alike ? net->diameter : net->pair_hops;
	while (s->near < s->hops && within[s->near] == 1) {
		s->near++;
	}
	if (s->hops > 0) {
		bound_find_shares(s->hops, within, net->pair > 0,
				  s->share > 0 ? s->near * s->c->hop / s->share : 0, &s->shares);
		for (int j = 1; j <= s->hops; j++) {
			s->shares.volume[1] += (double)j * (double)(within[j] - within[j - 1]);
		}
	}
	for (int i = 0; i < RATES && net->within && !net->gathers && s->c->message > 0; i++) {
		set_rate(s, i, exp2(0.5 * (i - 32)) / s->c->message);
	}
}

double bound_time(const struct bound_net *net, const struct bound_cost *c)
{
	struct bound_steps s = { .net = net, .c = c };
	double step = c->alpha + c->hop + c->message, least;
	int last = net->whole || net->pair > 0 ? ROOT_STEPS : BOUND_STEPS + 2 * net->diameter;

	if (net->diameter < 1 || step <= 0) {
		return 0;
	}
	init(&s);
	least = time_of(&s, last, true);
	for (int k = net->steps > 1 ? net->steps : 1; k < last && k * step < least; k++) {
		least = fmin(least, time_of(&s, k, false));
	}
	return least * (1 - SLACK);
}

double bound_time_overlapped(const struct bound_net *net, const struct bound_cost *c)
{
	double wait = c->alpha + c->message, load = share_of(net, c);

	if (!net->alike || net->diameter < 1) {
		return 0;
	}
	for (int n = 2; n <= net->diameter && net->routed; n++) {
		load -= c->hop / n;
	}
	return ((net->routed ? 1 : net->diameter) * wait + net->diameter * c->hop + fmax(load, 0)) *
	       (1 - SLACK);
}
