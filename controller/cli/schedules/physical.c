/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weft schedule make --on: what a schedule is embedded in.
 *
 * --topology is then the logical digraph that a schedule is made on, and --on the
 * physical one. Without --on, a topology with switches, memories or shared limits is
 * the physical one itself, and the logical one is what its terminals see.
 */
#include <stdlib.h>
#include <string.h>

#include "collective/embedding/embedding.h"
#include "controller/cli/core/private.h"
#include "lib/base/file.h"

/* As much as a topology file may have. */
#define MAX_ROUTES ((size_t)1 << 30)

void cli_free_fabric(struct coll_fabric *p)
{
	topo_free(p->topo);
	free(p->name);
	free(p->routes);
	*p = (struct coll_fabric){ .topo = NULL };
}

/* --routing: a rule, else a file. */
static int read_routing(const struct cli *c, struct coll_fabric *p, struct err *err)
{
	const char *text = cli_opt(c, "routing");
	int r;

	p->routing = COLL_ROUTING_MINIMAL_SPLIT;
	if (!text || (coll_routing_parse(text, &p->routing, NULL) == 0 &&
		      p->routing != COLL_ROUTING_EXPLICIT)) {
		return 0;
	}
	p->routing = COLL_ROUTING_EXPLICIT;
	r = file_read(text, MAX_ROUTES, &p->routes, &p->routes_len, err);
	if (r) {
		err_wrap(err, "--routing: neither a rule nor a file");
	}
	return r;
}

/* The topology, *t, becomes what its terminals see, and the physical one it. */
static int look_at(struct topo **t, char **name, struct coll_fabric *p, struct err *err)
{
	struct buf seen = { 0 };
	int r;

	p->topo = *t;
	p->name = *name;
	*t = NULL;
	*name = NULL;
	if ((r = coll_terminals_see(p->topo, t, err))) {
		return r;
	}
	buf_printf(&seen, "terminals of %s", p->name);
	*name = buf_steal(&seen);
	return 0;
}

int cli_read_fabric(const struct cli *c, struct topo **t, char **name, struct coll_fabric *p,
		      struct err *err)
{
	static const char *const of_routes[] = { "on", "routing", NULL };
	int r;

	if (cli_has(c, "rate")) {
		return cli_refuse(c, of_routes, "does not go with --rate, which makes no "
				  "schedule", err);
	}
	if (cli_has(c, "on")) {
		r = cli_load_topology(cli_opt(c, "on"), &p->topo, &p->name, err);
	} else if (topo_ranks(*t) < topo_n(*t) || topo_n_limits(*t) > 0) {
		r = look_at(t, name, p, err);
	} else {
		return cli_refuse(c, of_routes, "needs --on, or a topology with switches", err);
	}
	return r ? r : read_routing(c, p, err);
}
