/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bounds of time by steps, hops, messages and volume together, of schedules over routes.
 *
 * The model is that of coll_time (collective/schedule/schedule.h): a step k that moves something
 * takes alpha + w_k, and w_k is at least, for each route that it uses, hop * its links + message *
 * the messages that leave by its first arc + the time of the fullest of its links. With K of them,
 *
 *	T(K) = the largest of (1) to (8)
 *
 * is a lower bound, and the least T(K) one of all schedules. D is the diameter, d the hops between
 * the nearest ranks (more than 2 only where all are alike), N the ranks, p the most arcs out of a
 * node, B the bandwidth bound, and b = N * (time of the vector over an arc of capacity 1) /
 * capacity of all arcs. Where ranks pass on no messages, K is at least the ranks that one comes by.
 *
 * (1) K (alpha + d hop + message) + max(B, V(K) b). The fullest arc of a step is on some route, and
 *     has at least the average load. Both B and V(K) b bound the sum of those over the steps.
 *
 * (2) K alpha + max over x > 0 of (ln Z(x) - K ln G(x)) / x, where
 *	Z(x) = sum over ranks v of exp(x hop distance(u, v)),
 *	G(x) = exp(-x (d hop + message)) + p max over m >= 1 of m exp(-x m message).
 *     What u has comes to v by messages, at most one a step, whose hops add up to the distance or
 *     more. None of m messages that leave by an arc in step k has more than (w_k - m message) / hop
 *     hops. So Z(x) is at most the product over the steps of 1 + p max over m of
 *     m exp(x (w_k - m message)), where 1 is for what stays, and w_k >= d hop + message. Of an
 *     all-reduce what u sends in the first step is of u alone: m of a byte's messages by an arc, on
 *     average over all bytes, load it with m times the vector, and max(m, 1) messages or more.
 *
 * What follows is of all-reduces where a permutation f has H hops or more from each u to f(u);
 * where a group takes any rank to any other, H is D. Each byte that u adds goes some way to f(u):
 * this is a *pair*. In a step it either goes with a message, or waits for all of w_k >= d hop +
 * message + the average load. Balls are the largest of a radius around any rank, by the hops to it
 * or from it: where ranks are unlike, fewer pairs share a message than those would allow.
 *
 * (3) K (alpha + message) + H hop + 2 E, H >= 2 d, where E is the least over F_1 + F_2 + .. = 1 of
 *     d b (1 + sum of F_k^2) / 2 + d hop * sum of (k - 1) F_k. The first messages of pairs are all
 *     different, as they leave different nodes. If those of a part F_k of all pairs are in step k,
 *     they make an average load of F_k d b or more, and see that much on average (Cauchy). Before,
 *     these pairs have waited k - 1 steps. That is E; the last messages are the same backwards in
 *     time. A pair with a single message loads H arcs, which is enough for both.
 *
 * (4) K (alpha + message) + H hop + S(K), and V(K) b in (1). Let c_e pairs share message e of n_e
 *     hops in step k, and, in parts of all pairs, q = sum of c_e, v = sum of n_e and Y = sum of
 *     sqrt(c_e n_e). By Cauchy what they see is at least Y^2 b on average over all pairs. The
 *     others wait for (1 - q) (d hop + v b), and v >= Y^2 / q. Together that is
 *     (1 - q) d hop + Y^2 b / q, or (1 - q) d hop + (2 x Y - x^2 q) b for any x: message e is
 *     charged (2 x sqrt(c_e n_e) - x^2 c_e) b, who waits d hop, and for volume it is n_e. Take
 *     potentials P_k of where a pair is after step k, 0 where it begins and S where it ends, which
 *     rise by no more than that where it waits. If for every message, over its pairs, P_k where it
 *     goes less P_(k-1) where it comes from adds up to at most its charge, then the charges of all
 *     messages add up to S a pair. Pairs of one message come from different u to different f(u):
 *     within j hops of either there are no more of them than nodes. P_k may be F_k(hops from u) in
 *     the first steps and S - F_(K-k)(hops to f(u)) in the last, with F_k and S by averages over
 *     balls: potentials.c.
 *
 * What follows is of broadcasts, and backwards in time of reduces. P is the time of the vector over
 * all arcs out of the root, or into a rank, whichever is less; n_h are the ranks h or more hops
 * away. A byte comes to v by a chain of messages, the first in step i, the last in step j.
 *
 * (5) Between neighbours K (alpha + hop + message) + P C / (C - 1), C = K / (D - 1) rounded up. v
 *     has D hops, or D ranks to come by behind switches, which take D steps, so that of any D - 1
 *     steps in a row a byte has left the root before them or comes to v after them: others have
 *     P or more. So it is with each of the C that make up all steps. Else
 *     K (alpha + d hop + message) + P K / (K - 1 + 1 / (N - 1)): of any one step likewise, but for
 *     bytes that go from the root to v in that step, of which there are so many for one of N - 1
 *     ranks on average.
 *
 * (6) K (alpha + message) + h hop + P (1 + (1 - s)^2 / (K - 1)), s = (2 + h hop / P) / n_h up to 1,
 *     of any h. Let F_k of the bytes to v leave the root in step k, G_k come to it. A byte sees
 *     F_k P on average where it leaves, G_k P where it comes (Cauchy), and F_k P or G_k P of all
 *     steps before, or after. With i < j that is (1 + sum F_k^2) / 2 + (1 + sum G_k^2) / 2 in all;
 *     of those with i = j, a part s_v, half of what they see in their step counts, which leaves
 *     1 + (1 - s_v)^2 / (K - 1). The root sends such to one after the other, n_h s P in all on
 *     average, so that s is at most that, or T larger than (6) anyway.
 *
 * (7) Of all-reduces between neighbours (5) holds for what any rank u adds and any v gets, with the
 *     hops from u to v for D, and for P the time of the vector over all arcs out of u, or into v,
 *     whichever is less. So V(K) b in (1) is P C / (C - 1) or more. In D
 *     steps all of u's vector is on a shortest path to v in every step: one after the other these
 *     take the vector over all arcs that are the first, the second, .. of such paths.
 *
 * (8) Of all-reduces in two steps 2 (alpha + d hop) and, in each, what follows, U being the time of
 *     the vector over the widest arc. If after the first h ranks have a byte of u's, u itself
 *     counted, on average over all u and bytes, the first waits for message max(1, (h - 1) / p)
 *     + U (h - 1) / p: these messages are of u alone. In the second, let z send y messages, a of
 *     them, on average, with any one byte, and have it of g ranks; so w >= (y message + a U) / p.
 *     They bring up to min(g y, N a), where for given w that is (g w p) / (message + g U / N) at
 *     most, which is concave in g. As N - h have to come to a rank on average, and g is h, the
 *     second waits for (N / h - 1) (message + U h / N) / p, and for message + (1 - h / N) U / p.
 *
 * Where steps overlap, each message by its own time, there is only what the first messages of pairs
 * need. Such a message of n hops flows, over all its arcs at once, not before
 * alpha + message + n hop, nor after T - (D - n) hop. So those of up to h hops have R + (h - 1) hop
 * for their sum of n F_n b, where F_n is their part of all pairs and R = T - alpha - message - D
 * hop. Hence b = b sum of F_n is at most R + hop (1/2 + 1/3 + .. + 1/D). Between neighbours, where
 * n = 1 and every hop has alpha and message, T >= D (alpha + message + hop) + b.
 */
#ifndef WEFT_COLLECTIVE_BOUND_BOUND_H
#define WEFT_COLLECTIVE_BOUND_BOUND_H

#include <stdbool.h>
#include <stdint.h>

/* A digraph, and a collective on it. */
struct bound_net {
	int ranks;
	int diameter;		/* hops from a source of data to the farthest rank that wants it */
	int steps;		/* the fewest that there can be, 0: 1 */
	int near;		/* d, the fewest hops of a message that ends at a rank, 0: 1 */
	const int64_t *within;	/* [0 .. diameter] ranks within so many hops of that source, itself
				 * counted, if it has something for all ranks; else NULL */
	bool gathers;		/* it is where a reduce ends, to which those are the hops: (2) is
				 * not for it */
	int degree;		/* most arcs out of a node that sends */
	double capacity;	/* of all arcs */
	double widest;		/* of an arc out of a node that sends, the most */
	bool sums;		/* an all-reduce, of which only ranks keep data */
	bool whole;		/* a broadcast or a reduce */
	bool routed;		/* messages go over routes, else over one arc */
	double port;		/* of the arcs out of the root, or into a rank, the most */
	double pair;		/* an all-reduce between neighbours: likewise of two ranks, from one
				 * to the other of which it is `diameter` hops; else 0 */
	double narrow;		/* with it: the sum over these hops, of two such ranks, of 1 / the
				 * capacity of all arcs that are it on a shortest path */
	bool alike;		/* an all-reduce, and a group of automorphisms takes any rank to any
				 * other, and only ranks keep data */
	int pair_hops;		/* otherwise: H (0: not known), where only ranks keep data, */
	const int64_t *pair_within;	/* and [0 .. H] the most ranks within so many hops of one,
					 * or from which it is so many, the last all ranks */
};

/* In ns, >= 0. */
struct bound_cost {
	double alpha, hop, message;
	double vector;		/* of the vector over an arc of capacity 1 */
	double load;		/* the least sum over the steps of the fullest arc's, B */
};

/* The least T(K) in ns, rounded down; 0 where steps cost nothing. (4) is of up to BOUND_STEPS
 * steps, and takes distances beyond BOUND_FAR as that; (3) of many steps is that of any number.
 * O(diameter + BOUND_STEPS BOUND_FAR^2), of (6) only BOUND_FAR h are looked at. */
double bound_time(const struct bound_net *net, const struct bound_cost *c);

#define BOUND_STEPS 9
#define BOUND_FAR 64

/* The same where steps overlap, 0 unless nodes are alike. O(diameter). */
double bound_time_overlapped(const struct bound_net *net, const struct bound_cost *c);

/* V and S of 2 to BOUND_STEPS steps, in crossings of an arc by a pair's data. */
struct bound_shares {
	double volume[BOUND_STEPS + 1], seen[BOUND_STEPS + 1];
};

/* within as in bound_net, of a digraph whose nodes are all alike; diameter >= 1. near: messages
 * have one hop, so that less steps than the diameter have INFINITY. wait: d hop / b, what a step
 * costs where a pair waits. O(BOUND_STEPS BOUND_FAR^2). */
void bound_find_shares(int diameter, const int64_t *within, bool near, double wait,
		       struct bound_shares *out);

#endif
