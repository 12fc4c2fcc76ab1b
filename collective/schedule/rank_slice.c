/* What one rank of a schedule has to know. */
#include "collective/schedule/private.h"

#include <string.h>

static bool is_of(const struct coll_sched *s, int arc, int rank)
{
	const struct topo_arc *a = topo_arc(s->topo, arc);

	return a->src == rank || a->dst == rank;
}

static int copy_rows(const struct coll_sched *s, int rank,
		     struct coll_sched *part, struct err *err)
{
	int rc = 0;

	for (size_t i = 0; i < s->xfers.n && rc == 0; i++) {
		if (is_of(s, s->xfers.v[i].arc, rank)) {
			rc = coll_add(part, &s->xfers.v[i], err);
		}
	}
	for (size_t i = 0; i < s->lights.n && rc == 0; i++) {
		if (is_of(s, s->lights.v[i].arc, rank)) {
			rc = coll_add_light(part, &s->lights.v[i], err);
		}
	}
	return rc;
}

int coll_part_of(const struct coll_sched *s, int rank,
		 struct coll_sched **out, struct err *err)
{
	struct coll_sched *part = NULL;
	struct topo *graph = NULL;
	int rc;

	*out = NULL;
	if (rank < 0 || rank >= s->ranks) {
		return err_set(err, WEFT_EINVAL, "rank %d: there are 0 to %d",
			       rank, s->ranks - 1);
	}
	if ((rc = topo_copy(s->topo, &graph, err)) ||
	    (rc = coll_new(s->kind, graph, s->chunks, s->ports, s->root, &part,
			   err)) || (rc = copy_rows(s, rank, part, err)) ||
	    (rc = coll_finish(part, err))) {
		coll_free(part);
		return rc;
	}
	coll_set_topo_name(part, coll_topo_name(s));
	part->part = rank + 1;
	*out = part;
	return 0;
}

int coll_part(const struct coll_sched *s)
{
	return s->part - 1;
}
