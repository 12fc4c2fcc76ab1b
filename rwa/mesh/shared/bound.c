/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What no assignment with shared backups beats. When a link is cut, all that is protected has a
 * route without it, in the same channels; so what the prices prove of each network without one
 * of its links holds.
 */
#include <stdlib.h>
#include <string.h>

#include "rwa/mesh/shared/shared.h"

#define MAX_BOUND_WORK (1 << 16)	/* links times lightpaths, to look at each cut */

/* The mesh with its protected demands as single lightpaths, and (link >= 0) without that link and
 * without what is not protected. Borrows all but demands and blocks. */
static struct rwa_mesh scenario(const struct rwa_mesh *m, const int32_t *link_of, int32_t link)
{
	struct rwa_mesh out = *m;
	const struct rwa_mesh_demand *v = m->demands.v;

	memset(&out.demands, 0, sizeof(out.demands));
	memset(&out.blocks, 0, sizeof(out.blocks));
	for (size_t d = 0; d < m->demands.n; d++) {
		struct rwa_mesh_demand x = v[d];

		x.protect = x.protect == RWA_DEDICATED && link < 0 ? x.protect : RWA_UNPROTECTED;
		if (link < 0 || v[d].protect != RWA_UNPROTECTED) {
			vec_push(&out.demands, x);
		}
	}
	for (size_t b = 0; b < m->blocks.n; b++) {
		vec_push(&out.blocks, m->blocks.v[b]);
	}
	for (int32_t e = 0; e < (int32_t)m->arcs.n; e++) {
		struct rwa_mesh_block b = { e, RWA_MESH_ALL, RWA_MESH_ALL, false };

		if (link_of[e] == link) {
			vec_push(&out.blocks, b);
		}
	}
	return out;
}

/* What the prices of one scenario prove, with their check. */
static int bound_of(const struct rwa_mesh *m, int32_t link, const int32_t *link_of,
		    const struct mesh_stop *stop, struct rwa_certificate *c, struct err *err)
{
	struct rwa_mesh one = scenario(m, link_of, link);
	struct mesh_routes routes = { 0 };
	int rc = one.demands.n ? mesh_bound(&one, stop, c, &routes, err) : 0;

	if (rc == 0 && one.demands.n) {
		int32_t node;

		mesh_ends_bound(&one, &c->ends, &node);
		rc = rwa_certificate_check(&one, c, err);
		c->bound = c->ends > c->bound ? c->ends : c->bound;
	}
	mesh_routes_fini(&routes);
	vec_fini(&one.demands);
	vec_fini(&one.blocks);
	return rc;
}

int shared_bound(const struct rwa_mesh *m, const int32_t *link_of, int32_t links,
		      const struct mesh_stop *stop, struct rwa_mesh_result *res, struct err *err)
{
	int rc = bound_of(m, -1, link_of, stop, &res->certificate, err);

	res->bound = res->certificate.bound;
	res->proof = "flow prices";
	for (int32_t l = 0; l < links && rc == 0 &&
	     (int64_t)links * m->lightpaths <= MAX_BOUND_WORK; l++) {
		struct rwa_certificate c = { 0 };

		if ((rc = bound_of(m, l, link_of, stop, &c, err))) {
			err_wrap(err, "protected, with a link cut");
		} else if (c.bound > res->bound) {
			res->bound = c.bound;
			res->proof = "flow prices with a link cut";
		}
		rwa_certificate_fini(&c);
	}
	return rc;
}
