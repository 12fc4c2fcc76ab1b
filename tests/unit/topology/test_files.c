/* SPDX-License-Identifier: Apache-2.0 */
/* topology: kinds and limits in edge lists and JSON, each refused word and key,
 * and files that are read as they were written. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/number/rng.h"
#include "tests/unit/topology/parse.h"

/* Reads text as JSON when it begins with '{', else as an edge list. */
static int read_text(const char *text, struct topo **t, struct err *err)
{
	char *name;
	int rc;

	err_clear(err);
	if (*text != '{') {
		return topo_from_edges(text, strlen(text), t, err);
	}
	rc = topo_from_json(text, strlen(text), t, &name, err);
	if (rc == 0) {
		free(name);
	}
	return rc;
}

/* Two GPUs with a memory whose reads and writes share 50, and a switch that
 * copies: the same in both formats. */
static const char list[] =
	"memory 2\n"
	"limit dram 50   # reads and writes\n"
	"limit nic 25\n"
	"switch 3-4 copy\n"
	"undirected\n"
	"0 2 32 dram\n"
	"1 2 32 0 dram nic\n"
	"0 3 25 500 nic\n"
	"1 4\n"
	"3 4 7 1\n";
static const char json[] =
	"{\"topology\": \"two\", \"nodes\": 5, \"kinds\": [\n"
	"  {\"kind\": \"memory\", \"nodes\": [2]},\n"
	"  {\"kind\": \"switch\", \"nodes\": [3, 4], \"can\": [\"copy\"]}\n"
	"], \"arcs\": [\n"
	"  [0, 2, 32, 0],\n  [0, 3, 25, 500],\n  [1, 2, 32, 0],\n  [1, 4, 1, 0],\n"
	"  [2, 0, 32, 0],\n  [2, 1, 32, 0],\n  [3, 0, 25, 500],\n  [3, 4, 7, 1],\n"
	"  [4, 1, 1, 0],\n  [4, 3, 7, 1]\n"
	"], \"limits\": [\n"
	"  {\"capacity\": 50, \"arcs\": [0, 2, 4, 5]},\n"
	"  {\"capacity\": 25, \"arcs\": [1, 2, 5, 6]}\n"
	"]}\n";

static char *written(const struct topo *t, const char *name)
{
	struct buf b = { 0 };

	topo_to_json(t, name, &b);
	return buf_steal(&b);
}

static void both_formats(void **state)
{
	const char *const texts[] = { list, json };
	struct err err;

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct topo *t;
		char *text;

		assert_int_equal(read_text(texts[i], &t, &err), 0);
		assert_int_equal(topo_ranks(t), 2);
		assert_int_equal(topo_holders(t), 3);
		assert_int_equal(topo_node_flags(t, 2), TOPO_CAN_COPY | TOPO_CAN_STORE);
		assert_int_equal(topo_node_flags(t, 4), TOPO_CAN_COPY);
		assert_true(topo_is_symmetric(t));
		text = written(t, "two");
		assert_string_equal(text, json);
		free(text);
		topo_free(t);
	}
}

/* What a plain digraph is written as has not changed. */
static void plain_file(void **state)
{
	struct topo *t = parse("UniRing(1,2)");
	char *text = written(t, "UniRing(1,2)");

	(void)state;
	assert_string_equal(text, "{\"topology\": \"UniRing(1,2)\", \"nodes\": 2, \"arcs\": [\n"
				  "  [0, 1, 1, 0],\n  [1, 0, 1, 0]\n]}\n");
	free(text);
	topo_free(t);
}

static void abilities(void **state)
{
	struct topo *t;
	struct err err;

	(void)state;
	assert_int_equal(read_text("terminal 0 copy store\nterminal 1 none\nmemory 3 store\n"
				   "0 1\n2 3\nswitch 4 reduce copy store\n", &t, &err), 0);
	assert_int_equal(topo_n(t), 5);
	assert_int_equal(topo_node_flags(t, 0), TOPO_CAN_COPY | TOPO_CAN_STORE);
	assert_int_equal(topo_node_flags(t, 1), 0);
	assert_int_equal(topo_node_flags(t, 2), topo_usual_flags(TOPO_TERMINAL));
	assert_int_equal(topo_node_flags(t, 3), TOPO_CAN_STORE);
	assert_int_equal(topo_node_flags(t, 4), topo_usual_flags(TOPO_TERMINAL));
	assert_int_equal(topo_node_kind(t, 4), TOPO_SWITCH);
	topo_free(t);
}

/* Random digraphs with kinds in order, abilities and limits come back as they
 * were. */
static struct topo *random_graph(struct rng *rng)
{
	int n = 2 + (int)rng_below(rng, 8), m = 1 + (int)rng_below(rng, 30), u = 1;
	struct topo *t;

	assert_int_equal(topo_new(n, &t, NULL), 0);
	for (enum topo_kind kind = TOPO_TERMINAL; u < n; u++) {
		if (kind == TOPO_TERMINAL && rng_below(rng, 3) == 0) {
			kind = TOPO_MEMORY;
		} else if (kind == TOPO_MEMORY && rng_below(rng, 3) == 0) {
			kind = TOPO_SWITCH;
		}
		topo_set_node(t, u, kind, (unsigned)rng_below(rng, 8));
	}
	for (int a = 0; a < m; a++) {
		assert_int_equal(topo_add_arc(t, (int)rng_below(rng, (uint64_t)n),
					      (int)rng_below(rng, (uint64_t)n),
					      1 + (int64_t)rng_below(rng, 3),
					      (int64_t)rng_below(rng, 3), NULL), 0);
	}
	for (int k = (int)rng_below(rng, 4); k > 0; k--) {
		int32_t arcs[30];
		int count = 0;

		for (int a = 0; a < m; a++) {
			if (a == m - 1 || rng_below(rng, 3) == 0) {
				arcs[count++] = a;
			}
		}
		assert_int_equal(topo_add_limit(t, arcs, count, 1 + (int64_t)rng_below(rng, 9),
						NULL), 0);
	}
	topo_freeze(t);
	return t;
}

static void files_come_back(void **state)
{
	struct rng rng;

	(void)state;
	rng_seed(&rng, 8);
	for (int round = 0; round < 300; round++) {
		struct topo *t = random_graph(&rng), *again;
		char *text = written(t, "a \"quoted\" name"), *second;
		struct err err;

		assert_int_equal(read_text(text, &again, &err), 0);
		second = written(again, "a \"quoted\" name");
		assert_string_equal(text, second);
		assert_int_equal(topo_m(again), topo_m(t));
		assert_memory_equal(topo_arcs(again), topo_arcs(t),
				    (size_t)topo_m(t) * sizeof(struct topo_arc));
		for (int u = 0; u < topo_n(t); u++) {
			assert_int_equal(topo_node_kind(again, u), topo_node_kind(t, u));
			assert_int_equal(topo_node_flags(again, u), topo_node_flags(t, u));
		}
		free(text);
		free(second);
		topo_free(t);
		topo_free(again);
	}
}

/* Limits name arcs by their place in the file, also where they are not sorted. */
static void unsorted_arcs(void **state)
{
	struct topo *t;
	struct err err;

	(void)state;
	assert_int_equal(read_text("{\"nodes\": 2, \"arcs\": [[1, 0, 5], [0, 1, 6]], "
				   "\"limits\": [{\"capacity\": 9, \"arcs\": [0]}]}", &t, &err),
			 0);
	assert_int_equal(topo_limit(t, 0)->n, 1);
	assert_int_equal(topo_arc(t, topo_limit(t, 0)->arcs[0])->cap, 5);
	topo_free(t);
}

#define GRAPH(more) "{\"nodes\": 3, \"arcs\": [[0, 1], [1, 2]]" more "}"
#define KIND(kind) GRAPH(", \"kinds\": [" kind "]")
#define LIMIT(limit) GRAPH(", \"limits\": [" limit "]")

static void wrong_files(void **state)
{
	static const struct {
		const char *text;
		int line;
		const char *says;
	} bad[] = {
		{ "switch\n0 1\n", 1, "expected switch NODE" },
		{ "0 1\nswitch x\n", 2, "found 'x'" },
		{ "0 1\nswitch 1-\n", 2, "found ''" },
		{ "0 1\nswitch 3-2\n", 2, "node 2 is out of range" },
		{ "0 1\nswitch 65536\n", 2, "node 65536 is out of range" },
		{ "nodes 2\n0 1\nswitch 1-2\n", 3, "node 2 is out of range" },
		{ "0 1\nswitch 1\nmemory 0-1\n", 3, "0-1: a node of these has its kind" },
		{ "0 1\nswitch 1 fly\n", 2, "found 'fly'" },
		{ "0 1\nswitch 1 copy none\n", 2, "found 'none'" },
		{ "0 1\nlimit a\n", 2, "expected limit NAME CAPACITY" },
		{ "limit 5 5\n0 1\n", 1, "'5' is no name" },
		{ "limit a/b 5\n0 1\n", 1, "'a/b' is no name" },
		{ "limit a 0\n0 1\n", 1, "capacity 0 is out of range" },
		{ "limit a 1\nlimit a 2\n", 2, "a limit 'a' already" },
		{ "0 1\nlimit a 1\n", 2, "a limit of 0 arcs" },
		{ "limit a 1\n0 1 1 0 b\n", 2, "found 'b'" },
		{ "limit a 1\n\n0 1 a a\n", 1, "names arc 0 twice" },
		{ "limit a 1\n0 1 1 a 5\n", 2, "found '5'" },
		{ "0 1\n1 2\nswitch 1\n", 0, "node 1 is a switch where a terminal" },
		{ "0 1\nswitch 0-1\n", 0, "no node is a terminal" },
		{ "nodes 3\nswitch 2\nnodes 4\n0 1", 3, "found 'nodes'" },
		{ GRAPH(", \"switches\": [2]"), 0, "unknown key 'switches'" },
		{ GRAPH(", \"topology\": 7"), 0, "\"topology\": text" },
		{ GRAPH(", \"kinds\": 7"), 0, "\"kinds\": a list" },
		{ GRAPH(", \"limits\": {}"), 0, "\"limits\": a list" },
		{ KIND("7"), 0, "kind 0: \"kind\": \"terminal\"" },
		{ KIND("{\"kind\": \"host\", \"nodes\": [2]}"), 0, "kind 0: \"kind\":" },
		{ KIND("{\"kind\": \"switch\", \"nodes\": 2}"), 0, "\"nodes\", a list" },
		{ KIND("{\"kind\": \"switch\", \"nodes\": [3]}"), 0, "none of the nodes 0 to 2" },
		{ KIND("{\"kind\": \"switch\", \"nodes\": [2, -1]}"), 0, "its node 1 is none" },
		{ KIND("{\"kind\": \"switch\", \"nodes\": [2, 2]}"), 0, "node 2 has its kind" },
		{ KIND("{\"kind\": \"switch\", \"nodes\": [1]}"), 0, "node 1 is a switch where" },
		{ KIND("{\"kind\": \"switch\", \"nodes\": [2], \"can\": 1}"), 0,
		  "\"can\", a list" },
		{ KIND("{\"kind\": \"switch\", \"nodes\": [2], \"can\": [\"fly\"]}"), 0,
		  "in \"can\"" },
		{ KIND("{\"kind\": \"switch\", \"nodes\": [2], \"cam\": []}"), 0,
		  "kind 0: unknown key 'cam'" },
		{ LIMIT("{\"arcs\": [0]}"), 0, "limit 0: \"capacity\"" },
		{ LIMIT("{\"capacity\": 0, \"arcs\": [0]}"), 0, "limit 0: a limit of 1 arcs" },
		{ LIMIT("{\"capacity\": 5, \"arcs\": []}"), 0, "limit 0: a limit of 0 arcs" },
		{ LIMIT("{\"capacity\": 5, \"arcs\": [2]}"), 0, "none of the arcs 0 to 1" },
		{ LIMIT("{\"capacity\": 5, \"arcs\": [0, 1, 0]}"), 0, "3 arcs of 2" },
		{ LIMIT("{\"capacity\": 5, \"arcs\": [1, 1]}"), 0, "names arc 1 twice" },
		{ LIMIT("{\"capacity\": 5, \"arcs\": [1], \"cap\": 5}"), 0, "unknown key 'cap'" },
		{ "{\n\"nodes\": }", 2, "not a topology" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct err err;
		struct topo *t;

		assert_int_equal(read_text(bad[i].text, &t, &err), WEFT_EINVAL);
		if (err.line != bad[i].line || !strstr(err.msg, bad[i].says)) {
			fail_msg("%s: line %d: %s", bad[i].text, err.line, err.msg);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_formats),
		cmocka_unit_test(plain_file),
		cmocka_unit_test(abilities),
		cmocka_unit_test(files_come_back),
		cmocka_unit_test(unsorted_arcs),
		cmocka_unit_test(wrong_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
