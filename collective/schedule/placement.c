/* SPDX-License-Identifier: Apache-2.0 */
/* Where nodes and arcs of a schedule are in a fabric: names that a schedule carries along. */
#include <stdlib.h>
#include <string.h>

#include "collective/schedule/private.h"
#include "lib/base/alloc.h"

/* A name is printable ASCII without blanks; none: "" will do. */
static int check_name(const char *column, int64_t row, const char *name, bool none, struct err *err)
{
	size_t n = strlen(name), ok = 0;

	while (name[ok] > ' ' && name[ok] < 0x7f) {
		ok++;
	}
	if (ok == n && n <= COLL_MAX_PLACE && (n > 0 || none)) {
		return 0;
	}
	return err_set(err, WEFT_EINVAL, "%s[%lld]: expected %s to %d letters, digits and signs",
		       column, (long long)row, none ? "none" : "one", COLL_MAX_PLACE);
}

static int check_nodes(const struct coll_placement *p, int n, struct err *err)
{
	int rc = 0;

	for (int u = 0; u < n && !rc; u++) {
		rc = check_name("hosts", u, p->hosts[u], false, err);
		if (!rc && p->netns) {
			rc = check_name("netns", u, p->netns[u], true, err);
		}
		if (!rc && p->ring_nodes &&
		    (p->ring_nodes[u] < 0 || p->ring_nodes[u] >= TOPO_MAX_NODES)) {
			rc = err_set(err, WEFT_EINVAL, "ring_nodes[%d]: %d is not in 0 to %d", u,
				     p->ring_nodes[u], TOPO_MAX_NODES - 1);
		}
	}
	return rc;
}

static int check_arcs(const struct coll_placement *p, int m, struct err *err)
{
	int rc = 0;

	if (!p->tx_ports != !p->rx_ports) {
		return err_set(err, WEFT_EINVAL, "%s: missing", p->tx_ports ? "rx_ports"
			       : "tx_ports");
	}
	for (int a = 0; a < m && p->tx_ports && !rc; a++) {
		if ((rc = check_name("tx_ports", a, p->tx_ports[a], true, err)) ||
		    (rc = check_name("rx_ports", a, p->rx_ports[a], true, err))) {
			return rc;
		}
		if (!p->tx_ports[a][0] != !p->rx_ports[a][0]) {
			rc = err_set(err, WEFT_EINVAL, "arc %d has a port at one end only", a);
		}
	}
	return rc;
}

/* A copy of n names; NULL when v is, or all are "". */
static char **copy_names(char *const *v, int n)
{
	bool any = false;
	char **copy;

	for (int i = 0; v && i < n; i++) {
		any |= v[i][0] != '\0';
	}
	copy = any ? x_new((size_t)n, sizeof(*copy)) : NULL;
	for (int i = 0; copy && i < n; i++) {
		copy[i] = x_dup(v[i]);
	}
	return copy;
}

static void free_names(char **v, int n)
{
	for (int i = 0; v && i < n; i++) {
		free(v[i]);
	}
	free(v);
}

void coll_forget_placement(struct coll_sched *s)
{
	struct coll_placement *p = s->placement;
	int n = topo_n(coll_physical(s)), m = topo_m(coll_physical(s));

	if (p) {
		free_names(p->hosts, n);
		free_names(p->netns, n);
		free_names(p->tx_ports, m);
		free_names(p->rx_ports, m);
		free(p->ring_nodes);
		free(p);
	}
	s->placement = NULL;
}

int coll_set_placement(struct coll_sched *s, const struct coll_placement *p, struct err *err)
{
	int n = topo_n(coll_physical(s)), m = topo_m(coll_physical(s)), rc;
	struct coll_placement *copy;

	if ((rc = check_nodes(p, n, err)) || (rc = check_arcs(p, m, err))) {
		return err_wrap(err, "placement");
	}
	copy = x_new(1, sizeof(*copy));
	coll_forget_placement(s);
	s->placement = copy;
	copy->hosts = copy_names(p->hosts, n);
	copy->netns = copy_names(p->netns, n);
	copy->tx_ports = copy_names(p->tx_ports, m);
	copy->rx_ports = copy_names(p->rx_ports, m);
	if (p->ring_nodes) {
		copy->ring_nodes = x_alloc((size_t)n, sizeof(*copy->ring_nodes));
		memcpy(copy->ring_nodes, p->ring_nodes, (size_t)n * sizeof(*copy->ring_nodes));
	}
	return 0;
}

const struct coll_placement *coll_placement(const struct coll_sched *s)
{
	return s->placement;
}

/* ---- files ---- */

static int check_count(const char *column, size_t have, size_t want, const char *what,
		       struct err *err)
{
	return have == want || (have == 0 && strcmp(column, "hosts") != 0)
		       ? 0 : err_set(err, WEFT_EINVAL, "placement: %s: %zu for %zu %s", column,
				     have,
				     want, what);
}

int format_place(struct format_load *l, const struct format_placement *f, struct err *err)
{
	const struct topo *t = coll_physical(l->sched);
	size_t n = (size_t)topo_n(t), m = (size_t)topo_m(t);
	struct coll_placement p = {
		.hosts = f->hosts.v, .netns = f->netns.n ? f->netns.v : NULL,
		.ring_nodes = f->n_ring_nodes ? f->ring_nodes : NULL,
		.tx_ports = f->tx_ports.n ? f->tx_ports.v : NULL,
		.rx_ports = f->rx_ports.n ? f->rx_ports.v : NULL,
	};
	int rc;

	if (l->head.version < FORMAT_PLACED) {
		return err_set(err, WEFT_EINVAL, "placement: not in version %lld",
			       (long long)l->head.version);
	}
	if ((rc = check_count("hosts", f->hosts.n, n, "nodes", err)) ||
	    (rc = check_count("netns", f->netns.n, n, "nodes", err)) ||
	    (rc = check_count("ring_nodes", f->n_ring_nodes, n, "nodes", err)) ||
	    (rc = check_count("tx_ports", f->tx_ports.n, m, "arcs", err)) ||
	    (rc = check_count("rx_ports", f->rx_ports.n, m, "arcs", err))) {
		return rc;
	}
	return coll_set_placement(l->sched, &p, err);
}
