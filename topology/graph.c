/* The digraph: arcs in CSR order with an index of arcs in. See topology.h. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/vec.h"
#include "topology/topology.h"

struct topo_node {
	enum topo_kind kind;
	unsigned flags;
};

struct topo {
	int n;
	bool frozen;
	struct topo_node *nodes;
	VEC(struct topo_arc) arcs;
	int32_t *out_first;	/* [n + 1] */
	int32_t *in_first;	/* [n + 1] */
	int32_t *in_arcs;	/* [m] arc numbers by destination */
};

int topo_new(int n, struct topo **out, struct err *err)
{
	struct topo *t;

	if (n < 1 || n > TOPO_MAX_NODES) {
		return err_set(err, WEFT_ELIMIT,
			       "a topology has 1 to %d nodes, not %d",
			       TOPO_MAX_NODES, n);
	}
	t = calloc(1, sizeof(*t));
	if (!t || !(t->nodes = calloc(n, sizeof(*t->nodes)))) {
		free(t);
		return err_nomem(err);
	}
	t->n = n;
	for (int u = 0; u < n; u++) {
		t->nodes[u].flags = TOPO_CAN_COPY | TOPO_CAN_REDUCE |
				    TOPO_CAN_STORE;
	}
	*out = t;
	return 0;
}

void topo_free(struct topo *t)
{
	if (t) {
		free(t->nodes);
		vec_fini(&t->arcs);
		free(t->out_first);
		free(t->in_first);
		free(t->in_arcs);
		free(t);
	}
}

int topo_add_arc(struct topo *t, int src, int dst, int64_t cap,
		 int64_t latency_ns, struct err *err)
{
	assert(!t->frozen);
	if (src < 0 || src >= t->n || dst < 0 || dst >= t->n) {
		return err_set(err, WEFT_EINVAL,
			       "arc %d -> %d: nodes are 0 to %d", src, dst,
			       t->n - 1);
	}
	if (cap < 1 || latency_ns < 0) {
		return err_set(err, WEFT_EINVAL,
			       "arc %d -> %d: capacity %lld, latency %lld ns",
			       src, dst, (long long)cap, (long long)latency_ns);
	}
	if (t->arcs.n >= TOPO_MAX_ARCS) {
		return err_set(err, WEFT_ELIMIT, "more than %d arcs",
			       TOPO_MAX_ARCS);
	}
	if (vec_push(&t->arcs, (struct topo_arc){ .src = src,
						  .dst = dst,
						  .cap = cap,
						  .latency_ns = latency_ns })) {
		return err_nomem(err);
	}
	return 0;
}

void topo_set_node(struct topo *t, int node, enum topo_kind kind,
		   unsigned flags)
{
	assert(!t->frozen && node >= 0 && node < t->n);
	t->nodes[node] = (struct topo_node){ .kind = kind, .flags = flags };
}

/* Counting sort by source, stable. */
static int sort_arcs(struct topo *t)
{
	struct topo_arc *sorted = malloc((t->arcs.n + 1) * sizeof(*sorted));
	int32_t *at = malloc((t->n + 1) * sizeof(*at));

	if (!sorted || !at) {
		free(sorted);
		free(at);
		return WEFT_ENOMEM;
	}
	for (size_t i = 0; i < t->arcs.n; i++) {
		t->out_first[t->arcs.v[i].src + 1]++;
	}
	for (int u = 0; u < t->n; u++) {
		t->out_first[u + 1] += t->out_first[u];
	}
	memcpy(at, t->out_first, (t->n + 1) * sizeof(*at));
	for (size_t i = 0; i < t->arcs.n; i++) {
		sorted[at[t->arcs.v[i].src]++] = t->arcs.v[i];
	}
	free(at);
	free(t->arcs.v);
	t->arcs.v = sorted;
	t->arcs.cap = t->arcs.n + 1;
	return 0;
}

static int index_in(struct topo *t)
{
	int32_t *at = malloc((t->n + 1) * sizeof(*at));

	if (!at) {
		return WEFT_ENOMEM;
	}
	for (size_t i = 0; i < t->arcs.n; i++) {
		t->in_first[t->arcs.v[i].dst + 1]++;
	}
	for (int v = 0; v < t->n; v++) {
		t->in_first[v + 1] += t->in_first[v];
	}
	memcpy(at, t->in_first, (t->n + 1) * sizeof(*at));
	for (size_t i = 0; i < t->arcs.n; i++) {
		t->in_arcs[at[t->arcs.v[i].dst]++] = (int32_t)i;
	}
	free(at);
	return 0;
}

int topo_freeze(struct topo *t, struct err *err)
{
	assert(!t->frozen);
	t->out_first = calloc(t->n + 1, sizeof(*t->out_first));
	t->in_first = calloc(t->n + 1, sizeof(*t->in_first));
	t->in_arcs = malloc((t->arcs.n + 1) * sizeof(*t->in_arcs));
	if (!t->out_first || !t->in_first || !t->in_arcs || sort_arcs(t) ||
	    index_in(t)) {
		return err_nomem(err);
	}
	t->frozen = true;
	return 0;
}

int topo_n(const struct topo *t)
{
	return t->n;
}

int topo_m(const struct topo *t)
{
	return (int)t->arcs.n;
}

const struct topo_arc *topo_arc(const struct topo *t, int arc)
{
	return &t->arcs.v[arc];
}

const struct topo_arc *topo_arcs(const struct topo *t)
{
	return t->arcs.v;
}

int topo_out(const struct topo *t, int u, int *first)
{
	*first = t->out_first[u];
	return t->out_first[u + 1] - t->out_first[u];
}

int topo_in(const struct topo *t, int v, const int32_t **arcs)
{
	*arcs = t->in_arcs + t->in_first[v];
	return t->in_first[v + 1] - t->in_first[v];
}

enum topo_kind topo_node_kind(const struct topo *t, int u)
{
	return t->nodes[u].kind;
}

int topo_find_arc(const struct topo *t, int u, int v)
{
	for (int a = t->out_first[u]; a < t->out_first[u + 1]; a++) {
		if (t->arcs.v[a].dst == v) {
			return a;
		}
	}
	return -1;
}

int topo_max_degree(const struct topo *t)
{
	int most = 0;

	for (int u = 0; u < t->n; u++) {
		int out = t->out_first[u + 1] - t->out_first[u];
		int in = t->in_first[u + 1] - t->in_first[u];

		most = out > most ? out : most;
		most = in > most ? in : most;
	}
	return most;
}

int topo_regular_degree(const struct topo *t)
{
	int d = t->out_first[1];

	for (int u = 0; u < t->n; u++) {
		if (t->out_first[u + 1] - t->out_first[u] != d ||
		    t->in_first[u + 1] - t->in_first[u] != d) {
			return 0;
		}
	}
	return d;
}

void topo_bfs(const struct topo *t, int src, int32_t *dist)
{
	int32_t *queue = malloc(t->n * sizeof(*queue));
	int head = 0, tail = 0;

	for (int v = 0; v < t->n; v++) {
		dist[v] = -1;
	}
	dist[src] = 0;
	if (!queue) {
		return;
	}
	queue[tail++] = src;
	while (head < tail) {
		int u = queue[head++];

		for (int a = t->out_first[u]; a < t->out_first[u + 1]; a++) {
			int v = t->arcs.v[a].dst;

			if (dist[v] < 0) {
				dist[v] = dist[u] + 1;
				queue[tail++] = v;
			}
		}
	}
	free(queue);
}

int topo_diameter(const struct topo *t)
{
	int32_t *dist = malloc(t->n * sizeof(*dist));
	int most = dist ? 0 : -1;

	for (int s = 0; s < t->n && most >= 0; s++) {
		topo_bfs(t, s, dist);
		for (int v = 0; v < t->n && most >= 0; v++) {
			most = dist[v] < 0 ? -1
			       : dist[v] > most ? dist[v] : most;
		}
	}
	free(dist);
	return most;
}

static int by_ends(const void *a, const void *b)
{
	const struct topo_arc *x = a, *y = b;

	if (x->src != y->src) {
		return x->src - y->src;
	}
	if (x->dst != y->dst) {
		return x->dst - y->dst;
	}
	return (x->cap > y->cap) - (x->cap < y->cap);
}

bool topo_is_symmetric(const struct topo *t)
{
	size_t m = t->arcs.n;
	struct topo_arc *fwd = malloc((m + 1) * sizeof(*fwd));
	struct topo_arc *rev = malloc((m + 1) * sizeof(*rev));
	bool same = fwd && rev;

	for (size_t i = 0; i < m && same; i++) {
		fwd[i] = rev[i] = t->arcs.v[i];
		rev[i].src = fwd[i].dst;
		rev[i].dst = fwd[i].src;
	}
	if (same) {
		qsort(fwd, m, sizeof(*fwd), by_ends);
		qsort(rev, m, sizeof(*rev), by_ends);
	}
	for (size_t i = 0; i < m && same; i++) {
		same = by_ends(&fwd[i], &rev[i]) == 0;
	}
	free(fwd);
	free(rev);
	return same;
}

/* The arcs of the transpose in its order: for each node the arcs into it. */
int topo_transpose(const struct topo *t, struct topo **out, int32_t *back,
		   struct err *err)
{
	struct topo *r = NULL;
	int rc = topo_new(t->n, &r, err), m = (int)t->arcs.n;

	for (int i = 0; i < m && rc == 0; i++) {
		const struct topo_arc *a = &t->arcs.v[t->in_arcs[i]];

		rc = topo_add_arc(r, a->dst, a->src, a->cap, a->latency_ns,
				  err);
		if (back) {
			back[i] = t->in_arcs[i];
		}
	}
	if (rc == 0) {
		memcpy(r->nodes, t->nodes, t->n * sizeof(*r->nodes));
		rc = topo_freeze(r, err);
	}
	if (rc) {
		topo_free(r);
		return rc;
	}
	*out = r;
	return 0;
}
