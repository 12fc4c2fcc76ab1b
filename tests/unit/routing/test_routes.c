/* SPDX-License-Identifier: Apache-2.0 */
/* Route tables, read back from their JSON and replayed on the digraph. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "collective/bfb/bfb.h"
#include "collective/flow/flow.h"
#include "collective/routing/routes.h"
#include "tests/unit/schedule/common.h"

struct reader {
	const struct topo *t;
	int n, chunks, layers;
	int *sum;		/* n x n: chunks of a pair */
	int64_t hops;		/* of all chunks */
	bool *waits;		/* layers x m x m */
};

static int number(const char **at)
{
	char *end;
	long v = strtol(*at, &end, 10);

	assert_ptr_not_equal(end, *at);
	*at = end + (*end == ',');
	return (int)v;
}

/* One line: walks the ports from the origin to the destination. */
static void read_route(struct reader *r, const char *line)
{
	int origin, dest, chunks, layer, u, last = -1, m = topo_m(r->t), n = 0;
	const char *at;

	assert_int_equal(sscanf(line, "{\"origin\":%d,\"destination\":%d,"
				"\"chunks\":%d,\"layer\":%d,\"ports\":[%n",
				&origin, &dest, &chunks, &layer, &n), 4);
	assert_true(n > 0);
	at = line + n;
	u = origin;
	assert_in_range(layer, 0, r->layers - 1);
	assert_in_range(chunks, 1, r->chunks);
	while (*at != ']') {
		int first, degree = topo_out(r->t, u, &first);
		int port = number(&at), arc = first + port;

		assert_in_range(port, 0, degree - 1);
		if (last >= 0) {
			r->waits[((size_t)layer * m + last) * m + arc] = true;
		}
		last = arc;
		u = topo_arc(r->t, arc)->dst;
		r->hops += chunks;
	}
	assert_int_equal(u, dest);
	r->sum[origin * r->n + dest] += chunks;
}

/* Takes away arcs that wait for no other until none is left. */
static void assert_no_circle(const bool *waits, int m)
{
	bool *gone = calloc((size_t)m, sizeof(*gone));
	int left = m;

	for (bool moved = true; moved;) {
		moved = false;
		for (int a = 0; a < m; a++) {
			bool stays = gone[a];

			for (int b = 0; b < m && !stays; b++) {
				stays = waits[(size_t)a * m + b] && !gone[b];
			}
			if (!stays) {
				gone[a] = moved = true;
				left--;
			}
		}
	}
	assert_int_equal(left, 0);
	free(gone);
}

static void check_json(const struct coll_sched *s, const char *text)
{
	struct reader r = { .t = coll_topo(s), .n = coll_ranks(s) };
	size_t m = (size_t)topo_m(r.t);
	struct coll_report rep;
	struct err err = { 0 };
	int nodes;

	assert_int_equal(sscanf(text, "{\"weft_routes\":1,\"nodes\":%d,"
				"\"chunks\":%d,\"layers\":%d", &nodes,
				&r.chunks, &r.layers), 3);
	assert_int_equal(nodes, r.n);
	assert_int_equal(r.chunks, coll_chunks(s));
	r.sum = calloc((size_t)r.n * r.n, sizeof(*r.sum));
	r.waits = calloc((size_t)r.layers * m * m, sizeof(*r.waits));
	for (const char *line = text; *line; line = strchr(line, '\n') + 1) {
		if (strncmp(line, "{\"origin\"", 9) == 0) {
			read_route(&r, line);
		}
	}
	for (int i = 0; i < r.n * r.n; i++) {
		assert_int_equal(r.sum[i], i % (r.n + 1) ? r.chunks : 0);
	}
	for (int k = 0; k < r.layers; k++) {
		assert_no_circle(r.waits + (size_t)k * m * m, (int)m);
	}
	coll_report_init(&rep);
	must(coll_verify(s, &rep, &err), &err);
	assert_int_equal(r.hops, rep.chunk_hops);
	coll_report_fini(&rep);
	free(r.sum);
	free(r.waits);
}

/* Reads a form back, proves it, and writes the same JSON again. */
static void check_back(const struct topo *t, const struct buf *form,
		       const char *text)
{
	struct coll_routes r;
	struct err err = { 0 };
	struct buf b = { 0 };

	must(coll_routes_read(form->data, form->len, t, &r, &err), &err);
	must(coll_routes_verify(&r, t, &err), &err);
	coll_routes_to_json(&r, t, &b);
	assert_string_equal(buf_cstr(&b), text);
	buf_fini(&b);
	coll_routes_fini(&r);
}

static void check_forms(const struct coll_routes *r, const struct topo *t,
				const char *text)
{
	struct err err = { 0 };
	struct buf b = { 0 };

	coll_routes_to_json(r, t, &b);
	check_back(t, &b, text);
	buf_reset(&b);
	coll_routes_to_proto(r, t, &b);
	must(0, &err);
	check_back(t, &b, text);
	buf_fini(&b);
}

/* As JSON: a line "origin destination chunks layer ports" for each route. */
static void put_table(struct buf *b, const char *rate, const char *routes)
{
	buf_printf(b, "{\"weft_routes\":1,\"nodes\":3,\"chunks\":1,"
		   "\"layers\":2,\"rate\":\"%s\",\"routes\":[", rate);
	for (const char *at = routes; *at; at = strchr(at, '\n') + 1) {
		int origin, dest, chunks, layer;
		char ports[32];

		assert_int_equal(sscanf(at, "%d %d %d %d %31s", &origin, &dest,
					&chunks, &layer, ports), 5);
		buf_printf(b, "%s{\"origin\":%d,\"destination\":%d,"
			   "\"chunks\":%d,\"layer\":%d,\"ports\":[%s]}",
			   at > routes ? "," : "", origin, dest, chunks, layer,
			   ports);
	}
	buf_str(b, "]}");
}

/* What a wrong table is refused for: while reading, or in the proof. */
static void test_wrong(void **state)
{
	static const struct {
		int rc;
		const char *rate, *routes, *says;
	} all[] = {
		{ 0, "1/3", "0 1 1 0 0\n0 2 1 0 0,0\n1 0 1 0 0,0\n"
		  "1 2 1 0 0\n2 0 1 0 0\n2 1 1 1 0,0\n", "" },
		{ WEFT_EINVAL, "1/0", "", "rate" },
		{ WEFT_EINVAL, "1/3", "0 3 1 0 0\n", "destination: 3" },
		{ WEFT_EINVAL, "1/3", "0 1 2 0 0\n", "chunks: 2" },
		{ WEFT_EINVAL, "1/3", "0 1 1 2 0\n", "layer: 2" },
		{ WEFT_EINVAL, "1/3", "0 1 1 0 1\n", "node 0 has no port 1" },
		{ WEFT_EINVAL, "1/3", "-1 1 1 0 0\n", "origin: -1" },
		{ WEFT_EINVAL, "1/3", "0 1 1 0 0,-1\n",
		  "node 1 has no port -1" },
		{ WEFT_EVERIFY, "1/3", "0 1 1 0 0\n", "0 -> 2: routes carry" },
		{ WEFT_EVERIFY, "1/3", "1 0 1 0 0,0\n0 1 1 0 0\n",
		  "0 -> 1: routes carry 0" },
		{ WEFT_EVERIFY, "1/3", "0 1 1 0 0\n0 2 1 0 0\n"
		  "1 0 1 0 0,0\n1 2 1 0 0\n2 0 1 0 0\n2 1 1 1 0,0\n",
		  "route 1: ends at node 1, not 2" },
		{ WEFT_EVERIFY, "1/3", "0 1 1 0 0,0,0,0\n0 2 1 0 0,0\n"
		  "1 0 1 0 0,0\n1 2 1 0 0\n2 0 1 0 0\n2 1 1 1 0,0\n",
		  "uses the arc 0 -> 1 twice" },
		{ WEFT_EVERIFY, "1/2", "0 1 1 0 0\n0 2 1 0 0,0\n"
		  "1 0 1 0 0,0\n1 2 1 0 0\n2 0 1 0 0\n2 1 1 1 0,0\n",
		  "the loads give 1/3" },
		{ WEFT_EVERIFY, "1/3", "0 1 1 0 0\n0 2 1 0 0,0\n"
		  "1 0 1 0 0,0\n1 2 1 0 0\n2 0 1 0 0\n2 1 1 0 0,0\n",
		  "layer 0: 3 arcs wait" },
	};
	static const int ring[][2] = { { 0, 1 }, { 1, 2 }, { 2, 0 } };
	struct topo *t = graph_from(3, 3, ring);

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		struct coll_routes r;
		struct err err = { 0 };
		struct buf b = { 0 };
		int rc;

		put_table(&b, all[i].rate, all[i].routes);
		rc = coll_routes_read(b.data, b.len, t, &r, &err);
		if (rc == 0) {
			rc = coll_routes_verify(&r, t, &err);
		}
		print_message("%s\n", err.msg);
		assert_int_equal(rc, all[i].rc);
		assert_true(!rc || strstr(err.msg, all[i].says));
		coll_routes_fini(&r);
		buf_fini(&b);
	}
	topo_free(t);
}

/* A value of the wrong type is named by its key and by what it is. */
static void test_json_types(void **state)
{
#define HEAD "{\"weft_routes\": 1, \"nodes\": 3, \"chunks\": 1, " \
	"\"layers\": 1, \"rate\": \"1/3\", "
#define ROW "\"origin\": 0, \"destination\": 1, \"chunks\": 1"
	static const struct {
		const char *json, *says;
	} all[] = {
		{ "{\"nodes\": 3}", "weft_routes: missing" },
		{ "{\"weft_routes\": 1, \"nodes\": \"3\"}",
		  "nodes: expected a whole number, not a string" },
		{ "{\"weft_routes\": 1, \"nodes\": 3, \"chunks\": 1.5}",
		  "chunks: expected a whole number, not a number with a "
		  "fraction" },
		{ "{\"weft_routes\": 1, \"nodes\": 3, \"chunks\": 1, "
		  "\"layers\": null}",
		  "layers: expected a whole number, not null" },
		{ "{\"weft_routes\": 1, \"nodes\": 3, \"chunks\": 1, "
		  "\"layers\": 1, \"rate\": 3}",
		  "rate: expected a string, not a whole number" },
		{ HEAD "\"routes\": {}}",
		  "routes: expected an array, not an object" },
		{ HEAD "\"other\": 1}", "routes: missing" },
		{ HEAD "\"routes\": [[]]}",
		  "route 0: entry: expected an object, not an array" },
		{ HEAD "\"routes\": [{" ROW ", \"layer\": true}]}",
		  "route 0: layer: expected a whole number, not true" },
		{ HEAD "\"routes\": [{" ROW "}]}",
		  "route 0: layer: missing" },
		{ HEAD "\"routes\": [{" ROW ", \"layer\": 0, "
		  "\"ports\": 0}]}",
		  "route 0: ports: expected an array, not a whole number" },
		{ HEAD "\"routes\": [{" ROW ", \"layer\": 0, "
		  "\"ports\": [false]}]}",
		  "route 0: port: expected a whole number, not false" },
	};
	static const int ring[][2] = { { 0, 1 }, { 1, 2 }, { 2, 0 } };
	struct topo *t = graph_from(3, 3, ring);

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		struct coll_routes r;
		struct err err = { 0 };

		assert_int_equal(coll_routes_read(all[i].json,
						  strlen(all[i].json), t, &r,
						  &err), WEFT_EINVAL);
		print_message("%s\n", err.msg);
		assert_non_null(strstr(err.msg, all[i].says));
		coll_routes_fini(&r);
	}
	topo_free(t);
}

static void test_replay(void **state)
{
	static const struct {
		const char *expr;
		int max_chunks;
	} all[] = {
		{ "Torus(3,3,3)", 1 }, { "GenKautz(4,64)", 1 },
		{ "GenKautz(4,16)", 0 }, { "Torus(3,3)", 0 },
		{ "UniRing(2,5)", 0 }, { "K(2)", 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		struct mcf_sched_options opt = {
			.flow.gap = 1e-3, .loss = 0.02,
			.max_chunks = all[i].max_chunks,
		};
		struct topo *t = graph_of(all[i].expr);
		struct coll_routes routes;
		struct coll_sched *s;
		struct err err = { 0 };
		struct buf b = { 0 };
		int64_t objects = 0;

		must(mcf_schedule(t, &opt, &s, NULL, &err), &err);
		must(coll_routes_of(s, 0, &routes, &err), &err);
		print_message("%s: %lld routes, %d layers\n", all[i].expr,
			      (long long)routes.table.n, routes.n_layers);
		must(coll_routes_verify(&routes, coll_topo(s), &err), &err);
		coll_routes_to_json(&routes, coll_topo(s), &b);
		check_json(s, buf_cstr(&b));
		check_forms(&routes, coll_topo(s), buf_cstr(&b));
		for (const char *at = buf_cstr(&b);
		     (at = strstr(at, "\"origin\":")); at++) {
			objects++;
		}
		assert_int_equal(objects, routes.table.n);
		buf_fini(&b);
		coll_routes_fini(&routes);
		coll_free(s);
		topo_free(t);
	}
}

static void test_refused(void **state)
{
	static const struct coll_xfer branch[] = {
		{ 0, 0, 0, 1, 0, 0, COLL_OP_COPY, 0 },
		{ 1, 1, 0, 1, 0, 0, COLL_OP_COPY, 0 },
	};
	static const int ring[][2] = { { 0, 1 }, { 1, 0 } };
	struct coll_routes routes;
	struct coll_sched *s;
	struct err err = { 0 };

	(void)state;
	must(coll_bfb(COLL_ALLGATHER, graph_of("K(4)"), &s, &err), &err);
	assert_int_equal(coll_routes_of(s, 0, &routes, &err), WEFT_EUNSUPPORTED);
	coll_routes_fini(&routes);
	coll_free(s);
	must(coll_new(COLL_ALLTOALL, graph_from(2, 2, ring), 1, 0, 0, &s,
		      &err), &err);
	for (int i = 0; i < 2; i++) {
		must(coll_add(s, &branch[i], &err), &err);
	}
	must(coll_finish(s, &err), &err);
	assert_int_equal(coll_routes_of(s, 0, &routes, &err), WEFT_EUNSUPPORTED);
	coll_routes_fini(&routes);
	coll_free(s);
}

/* A table of routes has no steps between which light could change. */
static void test_light(void **state)
{
	struct coll_sched *s = empty(COLL_ALLTOALL, "UniRing(1,3)", 1);
	struct coll_routes routes;
	struct err err = { 0 };

	(void)state;
	for (int u = 0; u < 3; u++) {
		send_to(s, 0, u, (u + 1) % 3, u, (u + 1) % 3);
		send_to(s, 0, u, (u + 1) % 3, u, (u + 2) % 3);
		send_to(s, 1, (u + 1) % 3, (u + 2) % 3, u, (u + 2) % 3);
	}
	for (int i = 0; i < 6; i++) {
		struct coll_light l = { .step = i / 3, .arc = i % 3, .channel = 4 };

		must(coll_add_light(s, &l, &err), &err);
	}
	finish(s);
	must(coll_routes_of(s, 0, &routes, &err), &err);
	assert_int_equal(routes.table.n, 6);
	coll_routes_fini(&routes);
	must(coll_add_light(s, &(struct coll_light){ .step = 1, .arc = 2 }, &err), &err);
	finish(s);
	assert_int_equal(coll_routes_of(s, 0, &routes, &err), WEFT_EUNSUPPORTED);
	assert_non_null(strstr(err.msg, "step 1 needs other light than step 0"));
	coll_routes_fini(&routes);
	coll_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_replay),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_light),
		cmocka_unit_test(test_wrong),
		cmocka_unit_test(test_json_types),
	};

	return cmocka_run_group_tests_name("routing/routes", tests, NULL,
					   NULL);
}
