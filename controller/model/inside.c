/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is inside hosts: servers of several ranks.
 *
 * A host without `inside` is one rank with all of its ports. With it, it is a
 * digraph of terminals, memories and switches, of which some nodes have the
 * ports: those that `port-at` says, else the network cards of a kind of server
 * that is known by name, or the terminals of an expression, one after the other.
 */
#include <stdlib.h>
#include <string.h>

#include "controller/model/private.h"
#include "lib/base/alloc.h"

#define MAX_NODES 1024
#define MAX_ARCS 65536

/* Servers known by name. Their last nodes are network cards: the k-th has port k. */
static const struct server {
	const char *name, *expr;
	int cards;
} servers[] = {
	{ "dgx-a100", "DgxA100(1,all)", 8 },
	{ "dgx-a100-nvlink", "DgxA100(1,nvlink)", 8 },
	{ "dgx-a100-pcie", "DgxA100(1,pcie)", 8 },
};
enum { SERVERS = sizeof(servers) / sizeof(servers[0]) };

static const struct server *find_server(const char *name)
{
	for (int i = 0; i < SERVERS; i++) {
		if (strcmp(servers[i].name, name) == 0) {
			return &servers[i];
		}
	}
	return NULL;
}

/* The digraph of a text that is no server's name, at most so large. */
static int parse(const char *text, struct topo **out, struct err *err)
{
	int64_t nodes, arcs;
	struct nearest near;
	int rc;

	if (!strchr(text, '(') && topo_parse_size(text, &nodes, &arcs, NULL)) {
		err_set(err, WEFT_EINVAL, "'%.60s' is no kind of server and no topology", text);
		nearest_init(&near, text);
		for (int i = 0; i < SERVERS; i++) {
			nearest_try(&near, servers[i].name);
		}
		if (err && !nearest_hint(&near, err)) {
			err_hint(err, "such as %s or Cap(Star(8),300)", servers[0].name);
		}
		return WEFT_EINVAL;
	}
	/* Before any arc is made. */
	rc = topo_parse_size(text, &nodes, &arcs, err);
	if (rc) {
		return rc;
	}
	if (nodes > MAX_NODES || arcs > MAX_ARCS) {
		return err_set(err, WEFT_ELIMIT, "%.60s has %lld nodes and %lld arcs, more than "
			       "%d and %d", text, (long long)nodes, (long long)arcs, MAX_NODES,
			       MAX_ARCS);
	}
	return topo_parse(text, out, NULL, err);
}

int model_inside(const char *inside, struct topo **out, struct err *err)
{
	const struct server *server = inside ? find_server(inside) : NULL;

	return !inside ? topo_from_arcs(1, NULL, 0, out, err)
	       : server ? topo_parse(server->expr, out, NULL, err) : parse(inside, out, err);
}

const char *model_inside_expr(const char *inside)
{
	const struct server *server = find_server(inside);

	return server ? server->expr : inside;
}

int model_nearest_ranks(const struct topo *inside, int node, int32_t *near)
{
	int32_t *dist = x_alloc((size_t)topo_n(inside), sizeof(*dist));
	int n = 0;

	topo_bfs(inside, node, dist);
	for (int v = 0; v < topo_ranks(inside); v++) {
		if (dist[v] >= 0 && (n == 0 || dist[v] <= dist[near[0]])) {
			n = n > 0 && dist[v] == dist[near[0]] ? n : 0;
			near[n++] = v;
		}
	}
	near[0] = n > 0 ? near[0] : 0;
	free(dist);
	return n > 0 ? n : 1;
}

/* The nodes that have ports where no key says it: the network cards or the terminals in turn. */
static bool number_ports(struct model_build *b, const char *object, const struct conf_value *v,
			 const struct topo *t, int n, int *node)
{
	const struct server *server = find_server(v->text);
	int places = server ? server->cards : topo_ranks(t);

	if (n > places && server) {
		conf_error(b->r, v->node->at, WEFT_EINVAL,
			   "%s: inside: %s has %d network cards, the host %d ports", object,
			   v->text, places, n);
	} else if (n > places) {
		err_hint(conf_error(b->r, v->node->at, WEFT_EINVAL, "%s: inside: %s has %d "
				    "terminals, the host %d ports", object, v->text, places, n),
			 "port-at: the node of each port, or of all");
	}
	for (int p = 0; p < n; p++) {
		node[p] = server ? topo_n(t) - places + p : p;
	}
	return n <= places;
}

/* The nodes that the key port-at says: one for all ports, or a list of one for each. */
static bool read_port_at(struct model_build *b, const char *object, const struct conf_node *at,
			 const struct topo *t, int n, int *node)
{
	const struct conf_key key = { "port-at", CONF_INT, .max = topo_n(t) - 1,
				      .help = "a node of `inside`, from 0 on" };
	bool list = at->kind == CONF_NODE_LIST;
	const struct conf_node *item = list ? at->first : at;
	struct conf_value v = { 0 };

	if (list && at->n != n) {
		conf_error(b->r, at->at, WEFT_EINVAL, "%s: port-at: %d for %d port%s", object,
			   at->n, n, n == 1 ? "" : "s");
		return false;
	}
	for (int p = 0; p < n; p++) {
		if ((p == 0 || list) && !conf_read_value(b->r, object, &key, item, &v)) {
			return false;
		}
		node[p] = (int)v.num;
		item = list ? item->next : item;
	}
	return true;
}

void build_inside(struct model_build *b, const char *object, const struct conf_value *v,
		  struct host_class *class)
{
	const struct conf_value *inside = &v[HOST_INSIDE], *at = &v[HOST_PORT_AT];
	int lanes = class->names ? class->names->n : 0, n = lanes / class->lanes;
	struct topo *t = NULL;
	struct err err;
	int *node;

	class->ranks = 1;
	if (at->node && !inside->node) {
		conf_error(b->r, at->node->at, WEFT_EINVAL, "%s: port-at without key 'inside'",
			   object);
	}
	if (!inside->node || !inside->ok || class->unsure) {
		return;
	}
	if (n == 0 && at->node) {
		conf_error(b->r, at->node->at, WEFT_EINVAL, "%s: port-at without key 'ports'",
			   object);
		return;
	}
	err_clear(&err);
	if (model_inside(inside->text, &t, &err)) {
		err_hint(conf_error(b->r, inside->node->at, err.code, "%s: inside: %s", object,
				    err.msg), "%s", err.hint);
		return;
	}
	class->ranks = topo_ranks(t);
	if (n == 0) {
		topo_free(t);	/* of a ring, which all ranks are at */
		return;
	}
	node = conf_arena_alloc(&b->r->work, (size_t)n, sizeof(*node));
	class->port_at = conf_arena_alloc(b->r->keep, (size_t)lanes, sizeof(*class->port_at));
	if (at->node ? read_port_at(b, object, at->node, t, n, node)
		     : number_ports(b, object, inside, t, n, node)) {
		for (int p = 0; p < lanes; p++) {
			class->port_at[p] = node[p / class->lanes];
		}
	}
	topo_free(t);
}
