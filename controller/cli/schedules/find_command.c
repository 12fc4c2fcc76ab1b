/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weft topology find: the frontier of one size and degree, and its cache on
 * disk.
 *
 * A search may take minutes, and its result depends on the query alone, so
 * frontiers are kept in $XDG_CACHE_HOME/weft. A cache file is text: a line of format version,
 * build and hash, then the bounds and kind of groups, then a point a line. A file of
 * another version or build, with a wrong hash or with an expression that does not have
 * the size asked for is ignored, and written again after the search; a cache
 * that cannot be written does not matter. --no-cache goes around it both
 * ways. Sweeps over several sizes are in find_sweep.c, all-to-all is in
 * find_flow_command.c, what has to be scheduled to be compared in find_ranked.c.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "collective/finder/finder.h"
#include "controller/cli/schedules/find.h"
#include "lib/base/alloc.h"
#include "lib/base/file.h"
#include "lib/base/map.h"
#include "lib/base/number/rat.h"
#include "lib/base/version.h"

/* The first word of a cache file: another version is another word. */
#define CACHE_MAGIC "weft-frontier-9"
/* Bytes of a cache file and of one of its lines, at most. */
#define MAX_CACHE (1 << 20)
#define MAX_LINE 1280

/* ---- the cache ---- */

/* $XDG_CACHE_HOME/weft, or $HOME/.cache/weft, made when absent. False when
 * there is no such place: then nothing is kept. */
static bool cache_folder(char *path, size_t size)
{
	const char *base = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	int len;

	if (base && base[0] == '/') {
		len = snprintf(path, size, "%s", base);
	} else if (home && home[0] == '/') {
		len = snprintf(path, size, "%s/.cache", home);
	} else {
		return false;
	}
	if (len < 0 || (size_t)len + sizeof("/weft") > size) {
		return false;
	}
	if (mkdir(path, 0700) && errno != EEXIST) {
		return false;
	}
	strcat(path, "/weft");
	return mkdir(path, 0700) == 0 || errno == EEXIST;
}

/* The query in the name: nodes, degree, direction, collective. */
static bool cache_path(const struct coll_query *q, char *path, size_t size)
{
	char folder[512];
	int len;

	if (!cache_folder(folder, sizeof(folder))) {
		return false;
	}
	len = snprintf(path, size, "%s/frontier-%d-%d-%s-%s", folder, q->n,
		       q->degree, q->bidirectional ? "both" : "one",
		       coll_kind_name(q->kind));
	return len > 0 && (size_t)len < size;
}

/* "MAGIC BUILD hash", then the text that the hash is of: another build may find what is better. */
static void cache_write(const struct coll_query *q, const struct coll_frontier *f)
{
	struct buf body = { 0 }, all = { 0 };
	char path[768];

	buf_printf(&body, "%d %" PRId64 " %" PRId64 " %d\n", f->steps_bound,
		   f->bound_num, f->bound_den, f->groups);
	for (size_t i = 0; i < f->points.n; i++) {
		const struct coll_point *p = &f->points.v[i];

		buf_printf(&body, "%d %" PRId64 " %" PRId64 " %d %d %s\n", p->steps,
			   p->num, p->den, p->ports, p->exact, p->expr);
	}
	buf_printf(&all, "%s %s %016" PRIx64 "\n%s", CACHE_MAGIC, build_version,
		   hash_bytes(buf_cstr(&body), body.len), buf_cstr(&body));
	/* A cache that cannot be written is no failure of the search. */
	if (cache_path(q, path, sizeof(path))) {
		file_write_atomic(path, all.data, all.len, FILE_PRIVATE, NULL);
	}
	buf_fini(&body);
	buf_fini(&all);
}

/* "steps num den ports exact expression"; the expression is built, so that nothing from a
 * file is believed unseen. */
static bool read_point(const char *line, const struct coll_query *q, struct coll_frontier *f)
{
	struct coll_point p = { 0 };
	struct topo *t = NULL;
	int exact, at = 0;
	bool good;

	if (strlen(line) >= MAX_LINE ||
	    sscanf(line, "%d %" SCNd64 " %" SCNd64 " %d %d %n", &p.steps, &p.num, &p.den, &p.ports,
		   &exact, &at) != 5 ||
	    p.steps < 1 || p.num < 1 || p.den < 1 || topo_parse(line + at, &t, NULL, NULL)) {
		return false;
	}
	good = topo_n(t) == q->n && topo_max_degree(t) == p.ports && p.ports <= q->degree;
	topo_free(t);
	if (!good) {
		return false;
	}
	p.exact = exact;
	p.expr = x_dup(line + at);
	vec_push(&f->points, p);
	return true;
}

/* A frontier has at least one point. */
static bool read_body(char *body, const struct coll_query *q, struct coll_frontier *f)
{
	char *save = NULL, *line = strtok_r(body, "\n", &save);
	int groups;

	if (!line || sscanf(line, "%d %" SCNd64 " %" SCNd64 " %d", &f->steps_bound, &f->bound_num,
			    &f->bound_den, &groups) != 4 || f->bound_den < 1 ||
	    groups < COLL_GROUPS_ALL || groups > COLL_GROUPS_CYCLIC) {
		return false;
	}
	f->groups = (enum coll_groups)groups;
	while ((line = strtok_r(NULL, "\n", &save))) {
		if (!read_point(line, q, f)) {
			return false;
		}
	}
	return f->points.n > 0;
}

/* False when there is none, or it is of another version or damaged. */
static bool cache_read(const struct coll_query *q, struct coll_frontier *f)
{
	char path[768], build[64], *data = NULL, *body;
	uint64_t hash;
	size_t len;
	bool good;

	memset(f, 0, sizeof(*f));
	if (!cache_path(q, path, sizeof(path)) || file_read(path, MAX_CACHE, &data, &len, NULL)) {
		return false;
	}
	body = memchr(data, '\n', len);
	good = body && sscanf(data, CACHE_MAGIC " %63s %" SCNx64, build, &hash) == 2 &&
	       strcmp(build, build_version) == 0 &&
	       hash == hash_bytes(body + 1, len - (size_t)(body + 1 - data)) &&
	       read_body(body + 1, q, f);
	free(data);
	if (!good) {
		coll_frontier_fini(f);
	}
	return good;
}

/* ---- the verb ---- */

static int read_query(const struct cli *c, struct coll_query *q, struct err *err)
{
	int64_t n = 0, degree = 0, sets = 0;
	int r;

	*q = (struct coll_query){ .kind = COLL_ALLREDUCE,
				  .bidirectional = cli_has(c, "bidirectional") };
	if ((r = cli_need(c, "nodes", err)) ||
	    (r = cli_need(c, "degree", err)) ||
	    (r = cli_opt_int(c, "nodes", 2, COLL_FINDER_MAX_NODES, &n, err)) ||
	    (r = cli_opt_int(c, "degree", 1, COLL_FINDER_MAX_NODES - 1, &degree, err)) ||
	    (r = cli_opt_int(c, "sets", 1, INT_MAX, &sets, err))) {
		return r;
	}
	q->n = (int)n;
	q->degree = (int)degree;
	q->sets = (int)sets;
	return cli_opt_kind(c, &q->kind, err);
}

/* A time, when a cost was given. */
static void out_time(const struct cli *c, struct out *o, const struct find_price *p,
		     const char *key, int steps, int64_t num, int64_t den)
{
	if (p->asked) {
		cli_out_ns(c, o, key, find_time(p, 0, steps, num, den));
	}
}

/* {best, best_algorithm, best_steps, best_time_ns}: the schedule that a job would get, with
 * batches where they gain. */
static void out_best(const struct cli *c, struct out *o, const struct coll_choice *best)
{
	out_str(o, "best", best->expr);
	out_str(o, "best_algorithm", best->algorithm);
	out_int(o, "best_steps", best->steps);
	cli_out_ns(c, o, "best_time", best->time_ns);
}

/* fastest: [{from_bytes, topology}]: for people with units. */
static void out_ranges(const struct cli *c, struct out *o, const struct coll_query *q,
		       const struct coll_frontier *f, const struct find_price *p)
{
	struct coll_range *ranges = x_new(f->points.n + 1, sizeof(*ranges));
	struct coll_cost cost = find_cost(p, 0, q);
	char text[32];
	size_t n;

	n = coll_ranges(f, NULL, &cost, q->degree, ranges);
	out_array(o, "fastest");
	for (size_t i = 0; i < n; i++) {
		out_object(o, NULL);
		if (c->format == OUT_TABLE) {
			out_str(o, "from", unit_human(UNIT_BYTES, (double)ranges[i].from_bytes,
						      text, sizeof(text)));
		} else {
			out_int(o, "from_bytes", ranges[i].from_bytes);
		}
		out_str(o, "topology", f->points.v[ranges[i].point].expr);
		out_end(o);
	}
	out_end(o);
	free(ranges);
}

/* proven: of what no topology of so many nodes and ports has less. */
static void out_proven(struct out *o, const struct coll_query *q, const struct coll_frontier *f,
		       const struct coll_point *x)
{
	bool steps, bandwidth;

	coll_point_proven(q, f, x, &steps, &bandwidth);
	out_str(o, "proven", steps && bandwidth ? "both" : steps ? "steps" :
			     bandwidth ? "bandwidth" : "neither");
}

static void out_points(const struct cli *c, struct out *o, const struct coll_query *q,
		       const struct coll_frontier *f, const struct find_price *p)
{
	out_array(o, "points");
	for (size_t i = 0; i < f->points.n; i++) {
		const struct coll_point *x = &f->points.v[i];

		out_object(o, NULL);
		out_int(o, "steps", x->steps);
		find_out_ratio(o, "bandwidth_factor", x->num, x->den);
		out_bool(o, "bandwidth_optimal",
			 (__int128)x->num * f->bound_den == (__int128)f->bound_num * x->den);
		out_time(c, o, p, "time", x->steps, x->num, x->den);
		out_proven(o, q, f, x);
		out_int(o, "ports", x->ports);
		if (c->format != OUT_TABLE) {
			out_bool(o, "computed", x->exact);
		}
		out_str(o, "topology", x->expr);
		out_end(o);
	}
	out_end(o);
}

/* What is believed as it stands in the table: for people. */
static void note_believed(const struct cli *c, struct out *o, const struct coll_frontier *f)
{
	for (size_t i = 0; i < f->points.n; i++) {
		if (!f->points.v[i].exact && c->format == OUT_TABLE) {
			out_note(o, "%s: steps and T_B are the table's, not computed again",
				 f->points.v[i].expr);
		}
	}
}

/* The ranges know breadth-first broadcasts alone. */
static void note_other(const struct cli *c, struct out *o, const struct coll_choice *best)
{
	if (c->format == OUT_TABLE && strcmp(best->algorithm, "bfb") != 0) {
		out_note(o, "these sizes are those of bfb in one batch; %s on %s is faster at the "
			 "size asked for, and may be at others", best->algorithm, best->expr);
	}
}

/* Why ports stay dark. */
static void note_dark(struct out *o, const struct coll_query *q, const struct coll_frontier *f)
{
	for (size_t i = 0; i < f->points.n; i++) {
		const struct coll_point *x = &f->points.v[i];
		bool odd = q->bidirectional && q->n % 2 && q->degree % 2;

		if (x->ports < q->degree) {
			out_note(o, "%s: %d of %d ports stay dark: %s", x->expr,
				 q->degree - x->ports, q->degree,
				 odd ? "the ports of all nodes are odd in number"
				     : "too few for its arcs once more");
		} else if (strncmp(x->expr, "Polarity(", strlen("Polarity(")) == 0) {
			out_note(o, "%s: %d nodes leave a port dark: points on their own line",
				 x->expr, x->ports);
		}
	}
}

/* Which hops beyond Moore's bound are proven to be needed, and which the fastest point takes
 * without a proof. */
static void out_hops(const struct cli *c, struct out *o, const struct coll_query *q,
		     const struct coll_frontier *f)
{
	int moore = coll_moore_steps(q->n, q->degree, q->bidirectional);
	int hops = f->points.n ? f->points.v[0].steps / (q->kind == COLL_ALLREDUCE ? 2 : 1) : 0;

	if (c->format != OUT_TABLE) {
		out_int(o, "moore_steps", moore);
		return;
	}
	if (f->steps_bound > moore) {
		out_note(o, "hops: %d by Moore's bound, but no topology of %d nodes of %d ports "
			 "has so few: %d are proven to be needed", moore, q->n, q->degree,
			 f->steps_bound);
	}
	if (hops > f->steps_bound) {
		out_note(o, "hops: %d are proven to be needed, %d are known to do: whether fewer "
			 "than %d would is open", f->steps_bound, hops, hops);
	}
}

/* Why there may be no fewer steps: for people only where there is a reason. */
static void out_groups(const struct cli *c, struct out *o, const struct coll_query *q,
		       const struct coll_frontier *f)
{
	static const char *const names[] = { "all", "abelian", "cyclic" };

	if (c->format != OUT_TABLE) {
		out_str(o, "groups", names[f->groups]);
	} else if (f->groups == COLL_GROUPS_CYCLIC) {
		out_note(o, "%d nodes: no group but the cyclic one is known; circulants are "
			 "searched", q->n);
	} else if (f->groups == COLL_GROUPS_ABELIAN) {
		out_note(o, "%d nodes: all groups that are known commute, and such graphs have "
			 "long distances", q->n);
	}
}

/* {nodes, degree, bidirectional, collective, source, steps_bound, bandwidth_bound, moore_steps,
 * groups, bound_ns, best, points: [{steps, bandwidth_factor, bandwidth_optimal,
 * time_ns, proven, ports, computed, topology}], fastest}; times, best and fastest only with a
 * cost. */
static void out_frontier(const struct cli *c, struct out *o, const struct coll_query *q,
			 const struct coll_frontier *f, const struct find_price *p,
			 const struct coll_choice *best)
{
	out_int(o, "nodes", q->n);
	out_int(o, "degree", q->degree);
	out_bool(o, "bidirectional", q->bidirectional);
	out_str(o, "collective", coll_kind_name(q->kind));
	out_str(o, "source", q->sets == 0 && coll_table_has(q) ? "table" : "search");
	find_out_forward(o, p);
	out_int(o, "steps_bound", f->steps_bound);
	find_out_ratio(o, "bandwidth_bound", f->bound_num, f->bound_den);
	out_hops(c, o, q, f);
	out_groups(c, o, q, f);
	out_time(c, o, p, "bound", f->steps_bound, f->bound_num, f->bound_den);
	if (p->asked) {
		out_best(c, o, best);
	}
	out_points(c, o, q, f, p);
	note_dark(o, q, f);
	note_believed(c, o, f);
	if (p->asked) {
		out_ranges(c, o, q, f, p);
		note_other(c, o, best);
	}
}

static int print_frontier(const struct cli *c, const struct coll_query *q,
			  const struct coll_frontier *f, const struct find_price *p,
			  struct err *err)
{
	struct coll_choices *all = NULL;
	struct coll_choice best = { 0 };
	struct out *o = NULL;
	int r = 0;

	if (p->asked) {
		(void)((r = find_choices(p, 0, q, f, &all, err)) ||
		       (r = coll_choices_next(all, &best, err)));
	}
	if (r == 0) {
		o = out_new(c->format);
		out_frontier(c, o, q, f, p, &best);
	}
	r = cli_print_unless(r, o, err);
	coll_choices_free(all);
	return r;
}

/* The frontier of one query, from the cache where it is there. */
static int find_one(const struct cli *c, const struct find_price *p, struct err *err)
{
	struct coll_frontier f = { 0 };
	struct coll_query q;
	bool cached;
	int r = read_query(c, &q, err);

	if (r) {
		return r;
	}
	/* The cache has what a search of the usual length found. */
	cached = !cli_has(c, "no-cache") && q.sets == 0 && !coll_table_has(&q);
	if (!cached || !cache_read(&q, &f)) {
		r = coll_find(&q, true, &f, err);
		if (r == 0 && cached) {
			cache_write(&q, &f);
		}
	}
	if (r == 0) {
		r = print_frontier(c, &q, &f, p, err);
	}
	coll_frontier_fini(&f);
	return r;
}

int cmd_topology_find(struct cli *c, struct err *err)
{
	enum coll_kind kind = COLL_ALLREDUCE;
	struct find_price price;
	int r;

	(void)((r = cli_opt_kind(c, &kind, err)) || (r = find_price_read(c, &price, err)));
	if (r) {
		return r;
	}
	if (cli_has(c, "joint") && (price.asked || find_is_sweep(c) || cli_has(c, "collective"))) {
		vec_fini(&price.sizes);
		return err_set(err, WEFT_EUSAGE, "--joint is of one size, an all-reduce and an "
			       "all-to-all, without a cost");
	}
	if (cli_has(c, "joint") || (kind == COLL_ALLTOALL && !price.asked)) {
		return find_flow(c, &price, err);
	}
	r = kind == COLL_ALLTOALL || coll_has_root(kind) ? find_ranked(c, &price, err)
	    : price.sizes.n > 1 || find_is_sweep(c)	 ? find_sweep(c, &price, err)
							 : find_one(c, &price, err);
	vec_fini(&price.sizes);
	return r;
}
