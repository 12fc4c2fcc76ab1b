/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this room share: lines, and the rounds in which collectives go through them. */
#ifndef WEFT_COLLECTIVE_TORUS_PRIVATE_H
#define WEFT_COLLECTIVE_TORUS_PRIVATE_H

#include "collective/torus/torus.h"
#include "lib/base/vec.h"

struct torus_shape {
	const struct topo *t;		/* that of the fabric, where there is one */
	const struct coll_fabric *fabric;
	bool forwards;
	int n_dims;
	int size[COLL_MAX_DIGITS], unit[COLL_MAX_DIGITS];
	/* A ring of 4 and two rings of 2 are the same in Gray order: a dimension of 4 that is two
	 * digits, or one of 2 that is this bit of a digit of 4. */
	bool is_gray[COLL_MAX_DIGITS];
	int bit[COLL_MAX_DIGITS];
	bool *joins[COLL_MAX_DIGITS];	/* by offset o, where only links count (no forwarding, no
					 * switches): every coordinate x has one to x + o; else NULL
					 * */
	struct torus_net *net[COLL_MAX_DIGITS];	/* of a line of a dimension; net.c */
	int base[COLL_MAX_DIGITS];	/* that one's terminal of coordinate 0 */
	bool has_unlike;	/* lines of a dimension: what one of them tells is a guess */
	/* Plain and mirrored lines of mixed radices that were timed last, for the next that has the
	 * same; NULL: none yet. */
	struct torus_line *kept[2][COLL_MAX_DIGITS];
	struct torus_radices kept_radices[2][COLL_MAX_DIGITS];
};

/* A digit in Gray order, and back. */
static inline int torus_gray(const struct torus_shape *s, int e, int x)
{
	return s->is_gray[e] ? x ^ x >> 1 : x;
}

static inline int torus_value(const struct torus_shape *s, int node, int e)
{
	return node / s->unit[e] % (s->is_gray[e] ? 4 : s->size[e]);
}

static inline int torus_digit(const struct torus_shape *s, int node, int e)
{
	return (torus_gray(s, e, torus_value(s, node, e)) >> s->bit[e]) % s->size[e];
}

/* The node where this coordinate of a node is x. */
static inline int torus_at(const struct torus_shape *s, int node, int e, int x)
{
	int value = torus_value(s, node, e), code = torus_gray(s, e, value);

	code += (x - (code >> s->bit[e]) % s->size[e]) * (1 << s->bit[e]);
	return node + (torus_gray(s, e, code) - value) * s->unit[e];
}

/* A level of a line. As a chain nodes pass on what comes from up to `up` nodes behind and `down`
 * ahead, each so far from the next. */
struct torus_line_level {
	int first, steps;	/* of reduce-scatter */
	bool is_fold;		/* never exchanged */
	bool chain;
	int stride, up, down;
	int radix, left_up, left_down;	/* of uneven levels: multiples of the radix that
					 * there are ahead and behind */
};

/* A partner of a node in a step. */
struct torus_partner {
	int16_t to;
	int16_t blocks;		/* that it sends there in reduce-scatter */
};

/* What every node of a line does in a step of an exchange: it sends `to` nodes ahead its sum, or
 * that which came from the node `of` ahead; of so many blocks, 0: of all that it has. */
struct torus_send {
	int16_t step, to, of, blocks;
};

/* A dimension of an algorithm: an in-tree for each block. */
struct torus_line {
	int d;			/* nodes; the first ones only have */
	int rows, tables;	/* partners, and when they send which block */
	int steps, n_levels;
	struct torus_line_level level[TORUS_MAX_LEVELS + 1];
	int16_t *step, *to;	/* x * d + block: when, and where to, node x sends it; -1: it
				 * stays, as x is its home */
	int32_t *first;		/* x * steps + step: its first partner, of the list */
	VEC(struct torus_partner) partners;
	VEC(struct torus_send) sends;	/* by step; of levels */
	int n_generators;	/* of a group that keeps it and moves nodes freely */
	int order[COLL_MAX_DIGITS];
	int16_t *image;		/* generator * d + x */
	bool is_uneven;		/* the radices of its levels do not multiply to d */
	bool passes_on;		/* its levels have more: it exchanges, and has no trees */
	bool is_alike;		/* all nodes send as many blocks in a step */
	int period;		/* of such a line: what nodes do repeats after so many */
	struct arrays arrays;
};

/* One of the two lines of a dimension; rows: partners of so many nodes, of all where they
 * do not do the same; 0: of all, and when they send which block.
 * The group is one of both. WEFT_EINVAL: radices that do
 * not multiply to d; WEFT_EUNSUPPORTED: beyond TORUS_MAX_SIZE. O(d^2 log d). */
int torus_line_make(const struct torus_spec *spec, int dimension, int d, bool mirrored,
		    int rows, struct torus_line **out, struct err *err);
void torus_line_free(struct torus_line *l);

/* ---- the rounds of a collective ---- */

/* A level of a dimension, in time. */
struct torus_round {
	int dimension, level;
	bool exchange;
	int begin, steps;
};

/* When a collective does what. The all-gather is the part before `reduced` backwards, at the end.
 * */
struct torus_collective {
	const struct torus_line *line[COLL_MAX_DIGITS];
	int n_rounds;
	struct torus_round *round;
	int32_t *when[COLL_MAX_DIGITS];	/* by step of a line of reduce-scatter; -1: not sent */
	int reduced, steps;	/* steps of reduce-scatter; with exchanges */
};

/* All that an algorithm does on a shape. */
struct torus_work {
	struct torus_shape *shape;
	const struct torus_spec *spec;
	int n_collectives;
	struct torus_line *line[2][COLL_MAX_DIGITS];	/* plain, mirrored; NULL: not used; its own
							 * or those that the shape keeps */
	struct torus_collective *collective;
	struct arrays arrays;
};

/* WEFT_EUNSUPPORTED, WEFT_EINVAL as torus_make; torus_work_end also after an error.
 * rows: as torus_line_make, by dimension, and the shape keeps lines of mixed radices; NULL: all. */
int torus_work_begin(struct torus_work *w, struct torus_shape *s, const struct torus_spec *spec,
		     enum coll_kind kind, const int *rows, struct err *err);
void torus_work_end(struct torus_work *w);

/* Levels: which path a message takes whose receiver is so far ahead, one after the other, of all
 * offsets that the algorithm has in a dimension. turn: of its size. */
void torus_work_turns(const struct torus_work *w, int dimension, int16_t *turn);

/* torus_time by the line that stands for all, or any time that is not below the last where it takes
 * as long. */
int torus_time_below(struct torus_shape *s, const struct torus_spec *spec, enum coll_kind kind,
		     const struct coll_cost *cost, double below_ns, double *time_ns,
		     struct err *err);

/* ---- schedules being made ---- */

/* The logical digraph of a schedule, and the schedule. */
struct torus_builder {
	const struct torus_shape *shape;
	enum coll_kind kind;
	bool is_direct;			/* all arcs are links: it needs no embedding */
	enum torus_paths paths;
	int parts;			/* that links divide a chunk into, when they are parallel */
	struct topo *logical;		/* the schedule's, once it is there */
	struct coll_sched *sched;	/* owned */
	int16_t *arc[COLL_MAX_DIGITS];	/* x * size + to: 0, or one more than its number among the
					 * arcs of x in this dimension */
	int16_t *n_arcs[COLL_MAX_DIGITS];	/* by x */
	struct arrays arrays;
};

void torus_builder_init(struct torus_builder *b, const struct torus_shape *s, enum coll_kind kind);
/* Coordinate x of a dimension sends to coordinate `to`, both in any order. Before
 * torus_builder_begin. */
void torus_builder_join(struct torus_builder *b, int dimension, int x, int to);
/* An empty schedule of so many chunks on all arcs; g is taken over. */
int torus_builder_begin(struct torus_builder *b, int chunks, int root, struct topo_group *g,
			struct err *err);
/* Node x sends a chunk to where its coordinate is `to`. dest: whose sum is forwarded, or
 * COLL_NO_DEST. */
int torus_builder_add(struct torus_builder *b, int x, int dimension, int to,
		      const struct coll_xfer *like, struct err *err);
/* Finishes and embeds it. */
int torus_builder_end(struct torus_builder *b, struct coll_sched **out, struct err *err);
void torus_builder_fini(struct torus_builder *b);

/* Hamiltonian rings of two dimensions (section 2.3.1); which dimension is that of their rows.
 * WEFT_EUNSUPPORTED: the shape has none. */
int torus_rings_exist(const struct torus_shape *s, int *rows, struct err *err);
int torus_rings(const struct torus_shape *s, bool one_port, enum coll_kind kind,
		struct coll_sched **out, struct err *err);

#endif
