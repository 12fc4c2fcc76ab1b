/* SPDX-License-Identifier: Apache-2.0 */
/* Schedules of fewer chunks, for runtimes. */
#include "collective/bfb/bfb.h"
#include "collective/schedule/schedule.h"

struct bfb_fit {
	const struct coll_sched *s;
	coll_bfb_try *lower;
	void *arg;
};

/* *out: a schedule in so many chunks (0: as the loads need) that is lowered,
 * or NULL when it exceeds a limit or has no fewer chunks than s. */
static int try_chunks(const struct bfb_fit *f, int chunks, struct coll_sched **out, struct err *err)
{
	struct coll_sched *s = NULL;
	struct topo *copy = NULL;
	int rc = topo_copy(coll_topo(f->s), &copy, err);

	*out = NULL;
	if (!rc) {
		rc = coll_bfb_cut(coll_kind_of(f->s), copy, chunks, &s, err);
	}
	if (rc == 0 && coll_chunks(s) < coll_chunks(f->s)) {
		coll_set_topo_name(s, coll_topo_name(f->s));
		rc = f->lower(s, f->arg, err);
		if (rc == 0) {
			*out = s;
			return 0;
		}
	}
	coll_free(s);
	return rc == WEFT_ELIMIT ? 0 : rc;
}

static bool is_made(const struct coll_sched *s)
{
	enum coll_kind kind = coll_kind_of(s);
	int64_t lights;

	coll_lights(s, &lights);
	return lights == 0 && coll_chunks(s) > 1 &&
	       (kind == COLL_ALLGATHER || kind == COLL_REDUCE_SCATTER ||
		kind == COLL_ALLREDUCE);
}

int coll_bfb_fewer_chunks(const struct coll_sched *s, coll_bfb_try *lower, void *arg,
	      struct coll_sched **out, struct err *err)
{
	struct bfb_fit f = { s, lower, arg };
	struct coll_sched *one = NULL, *best = NULL;
	int rc;

	*out = NULL;
	if (!is_made(s)) {
		return err_set(err, WEFT_EUNSUPPORTED, "fewer chunks for this "
			       "schedule: not supported");
	}
	rc = try_chunks(&f, 1, &one, err);
	if (rc == 0 && !one) {
		return err_set(err, WEFT_ELIMIT, "not even one chunk a shard "
			       "fits");
	}
	if (!rc) {
		rc = try_chunks(&f, 0, &best, err);
	}
	for (int p = coll_chunks(s) / 2; p > 1 && !rc && !best; p /= 2) {
		rc = try_chunks(&f, p, &best, err);
	}
	if (rc == 0) {
		*out = best ? best : one;
		one = best ? one : NULL;
	}
	coll_free(one);
	return rc;
}
