/* What the files of this room share and nobody else sees. */
#ifndef WEFT_COLLECTIVE_SCHEDULE_PRIVATE_H
#define WEFT_COLLECTIVE_SCHEDULE_PRIVATE_H

#include "collective/schedule/schedule.h"
#include "lib/base/vec.h"

struct coll_sched {
	enum coll_kind kind;
	struct topo *topo;	/* owned */
	int ranks, chunks, ports, root;
	int part;		/* of this rank + 1 only; 0: all of it */
	int steps;		/* largest step + 1, set by coll_finish */
	bool finished;
	bool proven;		/* replayed as it is now */
	char *topo_name;	/* owned, NULL: unknown */
	VEC(struct coll_xfer) xfers;
	VEC(struct coll_light) lights;
};

/* Of non-negative numbers; gcd(0, b) = b. */
int64_t coll_gcd(int64_t a, int64_t b);

/* A copy of t, its arcs numbered alike: schedules own their digraph. */
int coll_copy_graph(const struct topo *t, struct topo **out, struct err *err);

/* Transfers, or lights, of one arc in one step: v[first .. first + n - 1]. */
struct coll_run {
	int64_t first, n;
};

/* The run of transfers that starts at `from` (< number of transfers). */
struct coll_run coll_xfer_run(const struct coll_sched *s, int64_t from);

/* The lights of (step, arc), searched from light number `from` on, which
 * must not lie behind them; n is 0 when the arc is dark. */
struct coll_run coll_light_run(const struct coll_sched *s, int64_t from,
			       int step, int arc);

/* coll_verify for those who make schedules: notes that s was replayed, so
 * that until it changes coll_verify only measures it. */
int coll_prove(struct coll_sched *s, struct coll_report *report,
	       struct err *err);

/* Fills the loads of a report and refuses a node that drives or receives
 * more than its ports, or an arc that carries without light; light must be
 * free of repetitions. */
int coll_measure(const struct coll_sched *s, struct coll_report *r,
		 struct err *err);

#endif
