/* Families of graphs; see topo_parse() in topology.h. */
#include <stdlib.h>

#include "topology/topology_private.h"

/* Checks that argument i is within limits; `what` names it. */
static int check_arg(const struct topo_arg *arg, const char *what,
		     int64_t least, int64_t most, struct err *err)
{
	if (arg->value < least) {
		return topo_err_at(err, arg->col, "%s is %lld: expected %lld "
				   "or more", what, (long long)arg->value,
				   (long long)least);
	}
	if (arg->value > most) {
		return topo_err_at(err, arg->col, "%s is %lld: expected at "
				   "most %lld", what, (long long)arg->value,
				   (long long)most);
	}
	return 0;
}

static int check_nodes(const struct topo_arg *arg, int64_t least,
		       struct err *err)
{
	return check_arg(arg, "number of nodes", least, TOPO_MAX_NODES, err);
}

/* A graph of n nodes, unless m arcs are too many. `cayley`: adding a constant
 * to all nodes (in the group that numbers them) will be an automorphism. */
static int start(int64_t n, int64_t m, bool cayley, struct topo **out,
		 struct err *err)
{
	int rc;

	if (m > TOPO_MAX_ARCS) {
		return err_set(err, WEFT_ELIMIT, "%lld arcs, more than %d",
			       (long long)m, TOPO_MAX_ARCS);
	}
	rc = topo_new((int)n, out, err);
	if (rc == 0) {
		(*out)->cayley = cayley;
	}
	return rc;
}

/* Adds n parallel arcs of capacity one. */
static int link_nodes(struct topo *t, int64_t u, int64_t v, int64_t n,
		      struct err *err)
{
	int rc = 0;

	for (int64_t i = 0; i < n && rc == 0; i++) {
		rc = topo_add_arc(t, (int)u, (int)v, 1, 0, err);
	}
	return rc;
}

static int build_complete(const struct topo_args *args, struct topo **out,
			  struct err *err)
{
	int64_t n = args->number[0].value;
	int rc = check_nodes(&args->number[0], 2, err);

	rc = rc ? rc : start(n, n * (n - 1), true, out, err);
	for (int64_t u = 0; u < n && rc == 0; u++) {
		for (int64_t s = 1; s < n && rc == 0; s++) {
			rc = link_nodes(*out, u, (u + s) % n, 1, err);
		}
	}
	return rc;
}

static int build_bipartite(const struct topo_args *args, struct topo **out,
			   struct err *err)
{
	int64_t a = args->number[0].value, b = args->number[1].value;
	int rc = check_nodes(&args->number[0], 1, err);

	rc = rc ? rc : check_nodes(&args->number[1], 1, err);
	rc = rc ? rc : start(a + b, 2 * a * b, a == b, out, err);
	for (int64_t u = 0; u < a && rc == 0; u++) {
		for (int64_t v = a; v < a + b && rc == 0; v++) {
			rc = link_nodes(*out, u, v, 1, err);
			rc = rc ? rc : link_nodes(*out, v, u, 1, err);
		}
	}
	return rc;
}

/* Every node u gets, for each offset s, an arc to u + s, and to u - s when
 * both ways are wanted and differ. */
static int build_circulant(int64_t n, const struct topo_arg *offsets, int k,
			   bool both, struct topo **out, struct err *err)
{
	int rc = start(n, n * k * (both ? 2 : 1), true, out, err);

	for (int64_t u = 0; u < n && rc == 0; u++) {
		for (int i = 0; i < k && rc == 0; i++) {
			int64_t s = offsets[i].value;

			rc = link_nodes(*out, u, (u + s) % n, 1, err);
			if (rc == 0 && both && 2 * s != n) {
				rc = link_nodes(*out, u, (u + n - s) % n, 1,
						err);
			}
		}
	}
	return rc;
}

static int build_ring(const struct topo_args *args, struct topo **out,
		      struct err *err)
{
	const struct topo_arg one = { .value = 1 };
	int rc = check_nodes(&args->number[0], 3, err);

	if (rc && args->number[0].value == 2) {
		err_hint(err, "K(2) joins two nodes");
	}
	return rc ? rc : build_circulant(args->number[0].value, &one, 1, true,
					 out, err);
}

static int build_unidirectional_ring(const struct topo_args *args,
				     struct topo **out, struct err *err)
{
	int64_t d = args->number[0].value, n = args->number[1].value;
	int rc = check_arg(&args->number[0], "number of parallel arcs", 1,
			   TOPO_MAX_ARCS, err);

	rc = rc ? rc : check_nodes(&args->number[1], 2, err);
	rc = rc ? rc : start(n, n * d, true, out, err);
	for (int64_t u = 0; u < n && rc == 0; u++) {
		rc = link_nodes(*out, u, (u + 1) % n, d, err);
	}
	return rc;
}

static int count_torus(const struct topo_args *args, int64_t *n,
		       struct err *err)
{
	*n = 1;
	for (int i = 0; i < args->numbers; i++) {
		int rc = check_arg(&args->number[i], "dimension", 2,
				   TOPO_MAX_NODES, err);

		if (rc) {
			return rc;
		}
		*n *= args->number[i].value;
		if (*n > TOPO_MAX_NODES) {
			return topo_err_at(err, args->number[i].col,
					   "more than %d nodes",
					   TOPO_MAX_NODES);
		}
	}
	return 0;
}

/* The last dimension varies fastest. */
static int build_torus(const struct topo_args *args, struct topo **out,
		       struct err *err)
{
	int64_t n;
	int rc = count_torus(args, &n, err);

	rc = rc ? rc : start(n, 2 * n * args->numbers, true, out, err);
	for (int64_t u = 0; u < n && rc == 0; u++) {
		int64_t stride = n;

		for (int i = 0; i < args->numbers && rc == 0; i++) {
			int64_t size = args->number[i].value, x, rest;

			stride /= size;
			x = u / stride % size;
			rest = u - x * stride;
			rc = link_nodes(*out, u,
					rest + (x + 1) % size * stride, 1,
					err);
			if (rc == 0 && size > 2) {
				rc = link_nodes(*out, u, rest +
						(x + size - 1) % size * stride,
						1, err);
			}
		}
	}
	return rc;
}

static int build_hypercube(const struct topo_args *args, struct topo **out,
			   struct err *err)
{
	int64_t k = args->number[0].value, n;
	int rc = check_arg(&args->number[0], "dimension", 1, 16, err);

	n = rc ? 0 : (int64_t)1 << k;
	rc = rc ? rc : start(n, n * k, true, out, err);
	for (int64_t u = 0; u < n && rc == 0; u++) {
		for (int64_t bit = 1; bit < n && rc == 0; bit *= 2) {
			rc = link_nodes(*out, u, u ^ bit, 1, err);
		}
	}
	return rc;
}

/* Offsets are ascending: equal ones are neighbours. */
static int check_offsets(const struct topo_args *args, int64_t most,
			 struct err *err)
{
	for (int i = 0; i < args->members; i++) {
		int rc = check_arg(&args->set[i], "offset", 1, most, err);

		if (rc) {
			return rc;
		}
		if (i > 0 && args->set[i].value == args->set[i - 1].value) {
			return topo_err_at(err, args->set[i].col,
					   "offset %lld stands there twice",
					   (long long)args->set[i].value);
		}
	}
	return 0;
}

static int build_bidirectional_circulant(const struct topo_args *args,
					 struct topo **out, struct err *err)
{
	int64_t n = args->number[0].value;
	int rc = check_nodes(&args->number[0], 2, err);

	rc = rc ? rc : check_offsets(args, n / 2, err);
	return rc ? rc : build_circulant(n, args->set, args->members, true,
					 out, err);
}

static int build_directed_circulant(const struct topo_args *args,
				    struct topo **out, struct err *err)
{
	int64_t n = args->number[0].value;
	int rc = check_nodes(&args->number[0], 2, err);

	rc = rc ? rc : check_offsets(args, n - 1, err);
	return rc ? rc : build_circulant(n, args->set, args->members, false,
					 out, err);
}

/* Definition 16 in appendix E.2 of the direct-connect topologies paper. */
static int build_kautz(const struct topo_args *args, struct topo **out,
		       struct err *err)
{
	int64_t d = args->number[0].value, n = args->number[1].value;
	int rc = check_arg(&args->number[0], "degree", 1, TOPO_MAX_NODES - 1,
			   err);

	rc = rc ? rc : check_nodes(&args->number[1], d + 1, err);
	rc = rc ? rc : start(n, n * d, false, out, err);
	for (int64_t u = 0; u < n && rc == 0; u++) {
		for (int64_t a = 1; a <= d && rc == 0; a++) {
			int64_t v = (d * u + a) % n;

			rc = link_nodes(*out, u, (n - v) % n, 1, err);
		}
	}
	return rc;
}

const struct topo_family topo_family_list[] = {
	{ "K", "n", "K(n)", build_complete },
	{ "K", "nn", "K(a,b)", build_bipartite },
	{ "Ring", "n", "Ring(n)", build_ring },
	{ "UniRing", "nn", "UniRing(d,n)", build_unidirectional_ring },
	{ "Torus", "n+", "Torus(a,b,...)", build_torus },
	{ "Hypercube", "n", "Hypercube(k)", build_hypercube },
	{ "C", "ns", "C(n,{s,...})", build_bidirectional_circulant },
	{ "DiC", "ns", "DiC(n,{s,...})", build_directed_circulant },
	{ "GenKautz", "nn", "GenKautz(d,n)", build_kautz },
};

const int topo_n_families = sizeof(topo_family_list) /
			    sizeof(topo_family_list[0]);

const char *const *topo_families(void)
{
	static const char *const lines[] = {
		"K(n)            complete digraph, n-1 ports a node",
		"K(a,b)          complete bipartite, b and a ports",
		"Ring(n)         bidirectional ring, 2 ports",
		"UniRing(d,n)    one-way ring of d parallel arcs, d ports",
		"Torus(a,b,...)  2 ports a dimension, 1 when it is 2",
		"Hypercube(k)    2^k nodes, k ports",
		"C(n,{s,...})    bidirectional circulant, 2 ports an offset, "
		"1 for n/2",
		"DiC(n,{s,...})  directed circulant, 1 port an offset",
		"GenKautz(d,n)   generalized Kautz, least diameter, d ports",
		NULL,
	};

	return lines;
}
