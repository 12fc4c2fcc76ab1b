/* Jobs that share a ring: parts of its light, parts of its nodes, and the
 * proof that they keep out of each other's way. */
#include <stdlib.h>

#include "optree/optree.h"

int optree_links(const struct optree_params *p, int src, int dst, int dir)
{
	int n = p->at && p->ring_nodes ? p->ring_nodes : p->n;
	int from = p->at ? p->at[src] : src, to = p->at ? p->at[dst] : dst;
	int links = dir == RWA_CW ? to - from : from - to;

	return links > 0 ? links : links + n;
}

struct sharing {
	const struct rwa_ring *ring;
	const struct optree_shared *jobs;
	int32_t *taken;		/* by direction, link, fibre, channel: the job
				 * that uses it, counted from 1 */
};

static int claim(struct sharing *s, int job, const struct coll_light *l,
		 int link, struct err *err)
{
	const struct rwa_ring *r = s->ring;
	size_t row = (size_t)l->dir * (size_t)r->n + (size_t)link;
	int32_t *owner = &s->taken[(row * (size_t)r->fibres + l->fibre) *
					   (size_t)r->channels + l->channel];

	if (*owner && *owner != job + 1) {
		return err_set(err, WEFT_EVERIFY,
			       "jobs %s and %s both use channel %d of fibre %d "
			       "%s on link %d", s->jobs[*owner - 1].name,
			       s->jobs[job].name, l->channel, l->fibre,
			       l->dir == RWA_CW ? "clockwise"
						: "counter-clockwise", link);
	}
	*owner = job + 1;
	return 0;
}

static bool on_ring(const struct rwa_ring *r, const struct coll_light *l,
		    int from, int to)
{
	return l->dir <= RWA_CCW && l->fibre < r->fibres &&
	       l->channel < r->channels && from >= 0 && from < r->n &&
	       to >= 0 && to < r->n && from != to;
}

static int claim_light(struct sharing *s, int job, const struct coll_light *l,
		       struct err *err)
{
	const struct optree_shared *j = &s->jobs[job];
	const struct topo_arc *a = topo_arc(coll_topo(j->sched), l->arc);
	int n = s->ring->n, first = j->at ? j->at[0] : 0, rc = 0;
	int from = j->at ? j->at[a->src] : a->src;
	int to = j->at ? j->at[a->dst] : a->dst;
	int begin = l->dir == RWA_CW ? from : to;
	int end = l->dir == RWA_CW ? to : from;

	if (!on_ring(s->ring, l, from, to)) {
		return err_set(err, WEFT_EVERIFY,
			       "job %s: channel %d of fibre %d from position "
			       "%d to %d is not on the ring", j->name,
			       l->channel, l->fibre, from, to);
	}
	if (j->line && (begin - first + n) % n > (end - first + n) % n) {
		return err_set(err, WEFT_EVERIFY,
			       "job %s: light from position %d to %d leaves "
			       "its segment", j->name, from, to);
	}
	for (int link = begin; link != end && !rc; link = (link + 1) % n) {
		rc = claim(s, job, l, link, err);
	}
	return rc;
}

int optree_check_shared(const struct rwa_ring *ring,
			const struct optree_shared *jobs, int n_jobs,
			struct err *err)
{
	size_t slots = 2 * (size_t)ring->n * (size_t)ring->fibres *
		       (size_t)ring->channels;
	struct sharing s = { ring, jobs, calloc(slots, sizeof(*s.taken)) };
	int rc = s.taken ? 0 : err_nomem(err);

	for (int j = 0; j < n_jobs && !rc; j++) {
		int64_t n;
		const struct coll_light *l = coll_lights(jobs[j].sched, &n);

		for (int64_t k = 0; k < n && !rc; k++) {
			rc = claim_light(&s, j, &l[k], err);
		}
	}
	free(s.taken);
	return rc;
}
