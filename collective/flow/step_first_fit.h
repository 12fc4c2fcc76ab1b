/* When every chunk crosses every arc of its path. */
#ifndef WEFT_COLLECTIVE_FLOW_STEP_FIRST_FIT_H
#define WEFT_COLLECTIVE_FLOW_STEP_FIRST_FIT_H

#include "collective/flow/paths.h"

/* Chunks first.. of a path that go over an arc. */
struct flow_sent {
	int32_t path, arc, first, chunks;
};

/* By step, then arc: those of one step and arc are beside each other. */
struct flow_timetable {
	VEC(struct flow_sent) v;
	VEC(size_t) end;	/* of each step, in v */
};

void flow_timetable_fini(struct flow_timetable *tt);

/*
 * First fit, quick and a few per cent from the best: the paths' chunks, one
 * after the other in random order, take for every hop the first step after
 * their last in which the arc carries less than `quantum` chunks a unit of
 * capacity. chunk0[path]: number of its first chunk. Replaces what tt holds;
 * *fits false, and tt empty, when that takes more than `width` steps.
 * Deterministic. WEFT_ENOMEM. Time: nearly O(hops of all chunks); memory:
 * 12 bytes an arc and step, 20 a hop.
 */
int flow_fit(const struct flow_net *net, const struct flow_paths *paths,
	     const int32_t *chunk0, int64_t quantum, int width,
	     struct flow_timetable *tt, bool *fits);

#endif
