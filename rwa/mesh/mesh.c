/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The model of an instance: nodes, arcs, demands, blocks, failure domains and
 * tuning ranges, added one at a time. Every number is checked against its
 * limit where it comes in, so that the rest of the room can rely on it: sums
 * of losses and prices fit 64 bits.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/map.h"
#include "rwa/mesh/private.h"

int rwa_mesh_new(int nodes, struct rwa_mesh **out, struct err *err)
{
	struct rwa_mesh *m;

	*out = NULL;
	if (nodes < 1 || nodes > RWA_MESH_MAX_NODES) {
		return err_set(err, WEFT_EINVAL,
			       "a network of %d nodes: 1 to %d are supported",
			       nodes, RWA_MESH_MAX_NODES);
	}
	m = x_new(1, sizeof(*m));
	vec_reserve(&m->nodes, (size_t)nodes);
	m->budget_mdb = RWA_MESH_NO_LIMIT;
	for (int v = 0; v < nodes; v++) {
		m->nodes.v[m->nodes.n++] = (struct rwa_mesh_node){
			.add_limit = RWA_MESH_NO_LIMIT,
			.drop_limit = RWA_MESH_NO_LIMIT,
		};
	}
	*out = m;
	return 0;
}

void rwa_mesh_free(struct rwa_mesh *m)
{
	if (!m) {
		return;
	}
	for (size_t v = 0; v < m->nodes.n; v++) {
		free(m->nodes.v[v].name);
	}
	vec_fini(&m->nodes);
	vec_fini(&m->arcs);
	vec_fini(&m->demands);
	vec_fini(&m->blocks);
	for (size_t k = 0; k < m->domains.n; k++) {
		free(m->domains.v[k]);
	}
	vec_fini(&m->domains);
	vec_fini(&m->arc_domain);
	vec_fini(&m->tunings);
	free(m);
}

/* Ends of an arc or demand: two nodes of the mesh that are not the same. */
static int check_ends(const struct rwa_mesh *m, const char *what, int32_t src,
		      int32_t dst, struct err *err)
{
	int32_t n = (int32_t)m->nodes.n;

	if (src < 0 || src >= n || dst < 0 || dst >= n) {
		return err_set(err, WEFT_EINVAL,
			       "%s %d -> %d: nodes are 0 to %d", what, src, dst,
			       n - 1);
	}
	return src == dst ? err_set(err, WEFT_EINVAL, "%s of node %d to itself", what, src)
			  : 0;
}

int rwa_mesh_add_arc(struct rwa_mesh *m, const struct rwa_mesh_arc *arc, struct err *err)
{
	int rc = check_ends(m, "arc", arc->src, arc->dst, err);

	if (rc) {
		return rc;
	}
	if (arc->fibres < 1 || arc->fibres > RWA_MESH_MAX_FIBRES) {
		return err_set(err, WEFT_EINVAL,
			       "%d fibres: 1 to %d are supported", arc->fibres,
			       RWA_MESH_MAX_FIBRES);
	}
	if (arc->loss_mdb < 0) {
		return err_set(err, WEFT_EINVAL, "a loss below 0 dB");
	}
	if (m->arcs.n >= RWA_MESH_MAX_ARCS) {
		return err_set(err, WEFT_ELIMIT, "more than %d arcs", RWA_MESH_MAX_ARCS);
	}
	vec_push(&m->arcs, *arc);
	return 0;
}

int rwa_mesh_add_demand(struct rwa_mesh *m, const struct rwa_mesh_demand *d, struct err *err)
{
	int rc = check_ends(m, "demand", d->src, d->dst, err);
	int64_t lightpaths = (int64_t)d->count * (d->protect ? 2 : 1);

	if (rc) {
		return rc;
	}
	if (d->count < 1) {
		return err_set(err, WEFT_EINVAL, "demand of %d lightpaths", d->count);
	}
	if (m->lightpaths + lightpaths > RWA_MESH_MAX_LIGHTPATHS) {
		return err_set(err, WEFT_ELIMIT, "more than %d lightpaths",
			       RWA_MESH_MAX_LIGHTPATHS);
	}
	vec_push(&m->demands, *d);
	m->lightpaths += lightpaths;
	return 0;
}

int rwa_mesh_add_block(struct rwa_mesh *m, const struct rwa_mesh_block *b, struct err *err)
{
	if (b->arc < 0 || (size_t)b->arc >= m->arcs.n) {
		return err_set(err, WEFT_EINVAL, "arc %d does not exist", b->arc);
	}
	if (b->fibre < RWA_MESH_ALL || b->fibre >= m->arcs.v[b->arc].fibres) {
		return err_set(err, WEFT_EINVAL, "fibre %d: the link has %d",
			       b->fibre, m->arcs.v[b->arc].fibres);
	}
	if (b->channel < RWA_MESH_ALL || b->channel >= RWA_MESH_MAX_CHANNELS) {
		return err_set(err, WEFT_EINVAL,
			       "channel %d: 0 to %d are supported", b->channel,
			       RWA_MESH_MAX_CHANNELS - 1);
	}
	if (m->arcs.v[b->arc].is_single && b->channel != RWA_MESH_ALL) {
		return err_set(err, WEFT_EINVAL, "arc %d: a fibre for one lightpath is blocked as "
			       "a whole", b->arc);
	}
	vec_push(&m->blocks, *b);
	return 0;
}

/* Number of the domain of this name, made if need be. */
static int32_t find_domain(struct rwa_mesh *m, const char *name)
{
	for (size_t k = 0; k < m->domains.n; k++) {
		if (strcmp(m->domains.v[k], name) == 0) {
			return (int32_t)k;
		}
	}
	vec_push(&m->domains, x_dup(name));
	return (int32_t)m->domains.n - 1;
}

int rwa_mesh_set_domain(struct rwa_mesh *m, int32_t arc, const char *name, struct err *err)
{
	int32_t domain;

	if (arc < 0 || (size_t)arc >= m->arcs.n || !*name) {
		return err_set(err, WEFT_EINVAL, "arc %d cannot belong to domain '%s'", arc, name);
	}
	domain = find_domain(m, name);
	while (m->arc_domain.n <= (size_t)arc) {
		vec_push(&m->arc_domain, RWA_MESH_NO_DOMAIN);
	}
	m->arc_domain.v[arc] = domain;
	return 0;
}

int32_t rwa_mesh_domain_of(const struct rwa_mesh *m, int32_t arc)
{
	return (size_t)arc < m->arc_domain.n ? m->arc_domain.v[arc]
					     : RWA_MESH_NO_DOMAIN;
}

int rwa_mesh_add_tuning(struct rwa_mesh *m, const struct rwa_mesh_tuning *t, struct err *err)
{
	if (t->node < 0 || (size_t)t->node >= m->nodes.n) {
		return err_set(err, WEFT_EINVAL, "node %d does not exist", t->node);
	}
	if (t->first < 0 || t->last < t->first || t->last >= RWA_MESH_MAX_CHANNELS) {
		return err_set(err, WEFT_EINVAL,
			       "channels %d-%d: ascending within 0 to %d are "
			       "supported", t->first, t->last,
			       RWA_MESH_MAX_CHANNELS - 1);
	}
	vec_push(&m->tunings, *t);
	return 0;
}

int rwa_mesh_all_to_all(struct rwa_mesh *m, struct err *err)
{
	int32_t n = (int32_t)m->nodes.n;
	int rc = 0;

	for (int32_t s = 0; !rc && s < n; s++) {
		for (int32_t t = 0; !rc && t < n; t++) {
			struct rwa_mesh_demand d = { s, t, 1, false };

			rc = s == t ? 0 : rwa_mesh_add_demand(m, &d, err);
		}
	}
	return rc;
}

void rwa_mesh_clear_demands(struct rwa_mesh *m)
{
	m->demands.n = 0;
	m->lightpaths = 0;
	m->self_demands = 0;
}

/* Without a name of its own a node goes by its number. */
const char *rwa_mesh_node_name(const struct rwa_mesh *m, int node, char *buf, int size)
{
	if (m->nodes.v[node].name) {
		return m->nodes.v[node].name;
	}
	snprintf(buf, (size_t)size, "%d", node);
	return buf;
}

void rwa_ids_fini(struct rwa_ids *ids)
{
	for (size_t i = 0; i < ids->v.n; i++) {
		free(ids->v.v[i]);
	}
	vec_fini(&ids->v);
}

void rwa_assignment_fini(struct rwa_assignment *a)
{
	vec_fini(&a->paths);
	vec_fini(&a->hops);
}

void rwa_certificate_fini(struct rwa_certificate *c)
{
	free(c->prices);
	c->prices = NULL;
}

void rwa_mesh_result_fini(struct rwa_mesh_result *res)
{
	rwa_certificate_fini(&res->certificate);
	rwa_certificate_fini(&res->fit);
	rwa_assignment_fini(&res->assignment);
}

/* Adding and dropping, each arc, and each node passed between two arcs. */
int64_t rwa_mesh_loss_mdb(const struct rwa_mesh *m, const struct rwa_hop *hops, int n)
{
	int64_t loss = (int64_t)m->add_mdb + m->drop_mdb;

	for (int i = 0; i < n; i++) {
		const struct rwa_mesh_arc *arc = &m->arcs.v[hops[i].arc];

		loss += arc->loss_mdb;
		loss += i ? m->nodes.v[arc->src].pass_mdb : 0;
	}
	return loss;
}

/* A counting sort: first[] is filled two places further on, and moves back
 * by one as arcs are put in. */
void adjacency_init(struct mesh_adjacency *a, const struct rwa_mesh *m, bool reversed)
{
	size_t n = m->nodes.n;

	a->first = x_new(n + 2, sizeof(*a->first));
	a->arc = x_new(m->arcs.n + 1, sizeof(*a->arc));
	for (size_t e = 0; e < m->arcs.n; e++) {
		const struct rwa_mesh_arc *arc = &m->arcs.v[e];

		a->first[(reversed ? arc->dst : arc->src) + 2]++;
	}
	for (size_t v = 2; v < n + 2; v++) {
		a->first[v] += a->first[v - 1];
	}
	for (size_t e = 0; e < m->arcs.n; e++) {
		const struct rwa_mesh_arc *arc = &m->arcs.v[e];
		int32_t at = reversed ? arc->dst : arc->src;

		a->arc[a->first[at + 1]++] = (int32_t)e;
	}
}

void adjacency_fini(struct mesh_adjacency *a)
{
	free(a->first);
	free(a->arc);
	*a = (struct mesh_adjacency){ 0 };
}

/* Shuts one fibre; a second block of the same fibre changes nothing. */
static void shut_fibre(struct u64map *shut, int32_t *fibres, int32_t arc, int32_t fibre)
{
	uint64_t key = (uint64_t)arc << 32 | (uint32_t)fibre;

	if (u64map_get(shut, key, NULL)) {
		return;
	}
	fibres[arc]--;
	u64map_set(shut, key, 1);
}

void mesh_open_fibres(const struct rwa_mesh *m, int32_t *fibres)
{
	struct u64map shut = { 0 };

	for (size_t e = 0; e < m->arcs.n; e++) {
		fibres[e] = m->arcs.v[e].fibres;
	}
	for (size_t i = 0; i < m->blocks.n; i++) {
		const struct rwa_mesh_block *b = &m->blocks.v[i];
		int32_t from = b->fibre == RWA_MESH_ALL ? 0 : b->fibre;
		int32_t to = b->fibre == RWA_MESH_ALL
				     ? m->arcs.v[b->arc].fibres
				     : b->fibre + 1;

		for (int32_t f = from; b->channel == RWA_MESH_ALL && f < to; f++) {
			shut_fibre(&shut, fibres, b->arc, f);
		}
	}
	u64map_fini(&shut);
}

bool stop_now(const struct mesh_stop *s)
{
	return (s->cancel && *s->cancel) || (s->rounds && *s->rounds >= s->at_round) ||
	       deadline_passed(&s->deadline);
}
