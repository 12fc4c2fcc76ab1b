/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is inside hosts: servers of several ranks.
 *
 * A host without `inside` is one rank with all of its ports. With it, it is a
 * digraph of terminals, memories and switches, of which some nodes have the
 * ports: the network cards of a kind of server that is known by name, else the
 * terminals of an expression, one after the other.
 */
#include <string.h>

#include "controller/model/private.h"

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

int model_inside(const char *inside, int n_ports, struct topo **out, int *port_node,
		 struct err *err)
{
	const struct server *server = inside ? find_server(inside) : NULL;
	int rc;

	if (server && n_ports > server->cards) {
		return err_set(err, WEFT_EINVAL, "%s has %d network cards, the host %d ports",
			       inside, server->cards, n_ports);
	}
	if (inside) {
		rc = server ? topo_parse(server->expr, out, NULL, err) : parse(inside, out, err);
	} else {
		rc = topo_from_arcs(1, NULL, 0, out, err);
	}
	for (int p = 0; p < n_ports && !rc; p++) {
		port_node[p] = server ? topo_n(*out) - server->cards + p : p % topo_ranks(*out);
	}
	return rc;
}

void build_check_inside(struct model_build *b, const char *object, const struct conf_value *v,
			const struct host_class *class)
{
	int n_ports = class->names ? class->names->n : 0;
	struct topo *t = NULL;
	int *port_node;
	struct err err;

	if (!v->node || !v->ok || class->unsure) {
		return;
	}
	if (n_ports == 0) {
		conf_error(b->r, v->node->at, WEFT_EINVAL, "%s: inside without key 'ports'",
			   object);
		return;
	}
	port_node = conf_arena_alloc(&b->r->work, (size_t)n_ports, sizeof(*port_node));
	err_clear(&err);
	if (model_inside(v->text, n_ports, &t, port_node, &err) == 0) {
		topo_free(t);
		return;
	}
	err_hint(conf_error(b->r, v->node->at, err.code, "%s: inside: %s", object, err.msg), "%s",
		 err.hint);
}
