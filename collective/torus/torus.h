/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collectives on tori and their relatives: Swing, recursive doubling, mixed radices, rings,
 * buckets.
 *
 * The numbers of the terminals are read as digits (coll_digits): the coordinates of tori, meshes,
 * products, HyperX and HammingMesh, as expressions have them: the lowest digit last. In a dimension
 * of size d a *line* says, for every coordinate and every block of the line, in which step the node
 * there sends its sum of the block, and to which coordinate. Steps of a line are grouped in levels.
 * The vector is cut into collectives, two a dimension, the second half of them mirrored; collective
 * c goes through the levels of dimensions c, c + 1, ... in turn, until no dimension has one left.
 * So every dimension is busy in both directions all the time where all are of one size.
 *
 * The first rounds of levels are a reduce-scatter. An all-reduce may go over to exchanges for the
 * rest: partners send each other all that they hold. Then the all-gather is the reduce-scatter
 * backwards. With no exchange that is the least volume, with nothing else the fewest steps.
 *
 * Schedules are made on logical arcs between partners and embedded by shortest paths that share
 * equally, or by fewer, where each that begins is a message that costs something; they are
 * compact by what moves a line onto itself.
 *
 * Sources: De Sensi et al., "Swing" (NSDI 2024), sections 2.3, 3 and 4; Rabenseifner (2004); Sack
 * and Gropp (2015) for recursive doubling by dimension; Jain and Sabharwal (2010) for buckets.
 */
#ifndef WEFT_COLLECTIVE_TORUS_TORUS_H
#define WEFT_COLLECTIVE_TORUS_TORUS_H

#include "collective/embedding/embedding.h"
#include "collective/schedule/schedule.h"

enum torus_lines {
	TORUS_SWING,	/* any size; with exchanges powers of two, others by a fold */
	TORUS_DOUBLING,	/* recursive: powers of two, others by a fold */
	TORUS_LEVELS,	/* mixed radices, direct or chained: any size */
	TORUS_BUCKET,	/* a ring a dimension, one direction a collective */
	TORUS_RING,	/* Hamiltonian rings: one dimension, or two where both have one that use
			 * other links */
};

#define TORUS_LINES (TORUS_RING + 1)
#define TORUS_MAX_LEVELS 16	/* of a dimension */
#define TORUS_MAX_SIZE 2048	/* of a dimension but for Hamiltonian rings of two */

/* So many nodes at equal distances join; direct: each sends to each of them at once; as a chain:
 * from neighbour to neighbour. more: of exchanges, sums of the level before that are passed on
 * beside: with n nodes joined before it and m before those, the level joins radix * n + more * m.
 * */
struct torus_level {
	int radix;
	bool chain;
	int more;
};

struct torus_radices {
	int n;		/* levels, whose radices multiply to the size of the dimension; or, without
			 * exchanges, any but for the last, which has the rest; or levels with more,
			 * of exchanges alone, which join the size of the dimension */
	struct torus_level level[TORUS_MAX_LEVELS];
};

enum torus_paths { TORUS_SPLIT, TORUS_PARALLEL, TORUS_SINGLE };

/* An algorithm. */
struct torus_spec {
	enum torus_lines lines;
	int rounds;	/* of reduce-scatter, before exchanges; below 0: all, and no exchange */
	bool one_port;	/* a single collective */
	enum torus_paths paths;	/* all shortest ones (minimal-split), as many as links lead on
				 * (minimal-parallel), or one (minimal-single) */
	bool in_step;	/* all collectives begin a level together: those that are done wait */
	struct torus_radices radices[COLL_MAX_DIGITS];	/* of TORUS_LEVELS, by dimension */
};

/* A digraph with coordinates, and what its lines look like. */
struct torus_shape;

/* What the dimensions are: the digits; each two of 2 that follow one another as a ring of 4; each
 * ring of 4 as two of 2. */
enum torus_digits { TORUS_PLAIN, TORUS_FOURS, TORUS_TWOS };

/* t and f stay the caller's, and must outlive it; f: where t is what terminals see of it, else
 * NULL. forwards: terminals pass on what is for others, so that torus_time and torus_choose know of
 * algorithms whose partners are no neighbours. WEFT_EUNSUPPORTED: a single rank, or no digits to
 * take otherwise than as they are. O(m divisors). */
int torus_shape_new(const struct topo *t, const struct coll_fabric *f, enum torus_digits digits,
		    bool forwards, struct torus_shape **out, struct err *err);
void torus_shape_free(struct torus_shape *s);

/*
 * The schedule of an algorithm: finished and not verified, and embedded unless all partners are
 * joined by a link. Reduce-scatter, all-gather,
 * all-reduce, broadcast and reduce; with exchanges all-reduces only. WEFT_EUNSUPPORTED says what
 * the algorithm does not have for a shape or a collective; WEFT_EINVAL: radices that do not
 * multiply to the size of their dimension, a root that is no rank; WEFT_ELIMIT beyond
 * COLL_MAX_XFERS transfers. O(transfers that are kept log transfers).
 */
int torus_make(struct torus_shape *s, const struct torus_spec *spec, enum coll_kind kind, int root,
	       struct coll_sched **out, struct err *err);

/*
 * What coll_time says of that schedule, but for rounding: by what a line puts on its arcs in every
 * step, without making it, where all lines of a dimension are alike; else it is made.
 * WEFT_EUNSUPPORTED where nodes of a line send unlike parts (Swing on odd sizes, folds) or the
 * algorithm does not exist; WEFT_ELIMIT where all shortest paths are too many.
 * O(steps x moves of a line), or as torus_make.
 */
int torus_time(struct torus_shape *s, const struct torus_spec *spec, enum coll_kind kind,
	       const struct coll_cost *cost, double *time_ns, struct err *err);

/*
 * The algorithm of the least time by torus_time of all that exist for the shape (where lines are
 * unlike, of those that the most common ones say are among the fastest few); of the lines and
 * the rounds that are fixed only, where `fixed` is given (rounds TORUS_ANY_ROUNDS: any).
 * WEFT_EUNSUPPORTED: none. Deterministic.
 */
#define TORUS_ANY_ROUNDS (-2)
int torus_choose(struct torus_shape *s, enum coll_kind kind, const struct coll_cost *cost,
		 const struct torus_spec *fixed, struct torus_spec *out, struct err *err);

/* "4cx16,5x6+1": the levels of every dimension, a chain by "c", what is passed on beside by "+";
 * one list alone is for all. WEFT_EINVAL. */
int torus_parse_radices(const struct torus_shape *s, const char *text, struct torus_spec *spec,
			struct err *err);
/* "swing", "swing-latency" (exchanges only), "hybrid" (Swing with both), "mixed-radix", "bucket",
 * "ring", "recursive-doubling" (exchanges only), "rabenseifner". Constant. */
const char *torus_name(const struct torus_spec *spec);
/* The levels as torus_parse_radices has them, of all dimensions; nothing for lines without.
 * Appended. */
void torus_print_radices(const struct torus_shape *s, const struct torus_spec *spec,
			 struct buf *out);

#endif
