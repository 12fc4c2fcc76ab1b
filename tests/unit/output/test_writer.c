/* SPDX-License-Identifier: Apache-2.0 */
/* lib/base/out: golden outputs of the three formats; what they promise. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>
#include <yaml.h>

#include "lib/base/number/rng.h"
#include "lib/output/writer.h"

typedef void describe_fn(struct out *o);

static char *render(enum out_format format, describe_fn *describe)
{
	struct out *o = out_new(format);
	struct buf b = { 0 };

	assert_non_null(o);
	describe(o);
	out_render(o, &b);
	out_free(o);
	return buf_steal(&b);
}

static void check(enum out_format format, describe_fn *describe,
		  const char *want)
{
	char *got = render(format, describe);

	assert_string_equal(got, want);
	free(got);
}

static void circuit(struct out *o, const char *device, int in, double loss,
		    const char *state)
{
	out_object(o, NULL);
	out_str(o, "device", device);
	out_int(o, "in_port", in);
	out_real(o, "loss_db", loss);
	if (state) {
		out_str(o, "state", state);
	}
	out_end(o);
}

static void fabric(struct out *o)
{
	out_str(o, "name", "spine");
	out_note(o, "3 circuits on 2 devices");
	out_int(o, "generation", 42);
	out_bool(o, "verified", true);
	out_null(o, "job");
	out_machine_only(o);
	out_str(o, "digest", "00ff");
	out_array(o, "ports");
	out_int(o, NULL, 1);
	out_int(o, NULL, 22);
	out_end(o);
	out_array(o, "circuits");
	circuit(o, "ocs1", 7, 1.5, "up");
	circuit(o, "\xc3\xbc" "ber-ocs", 123, 0.25, NULL);
	circuit(o, "\xe5\x85\x89", 1, 12, "no light");
	out_note(o, "no light means unverified");
	out_end(o);
	out_object(o, "cost");
	out_fmt(o, "bandwidth_factor", "%d/%d", 341, 256);
	out_real(o, "time_s", 1e-7);
	out_end(o);
	out_array(o, "none");
	out_end(o);
}

static void table_golden(void **state)
{
	(void)state;
	check(OUT_TABLE, fabric,
	      "name        spine\n"
	      "3 circuits on 2 devices\n"
	      "generation  42\n"
	      "verified    yes\n"
	      "job         -\n"
	      "ports       1, 22\n"
	      "\n"
	      "circuits:\n"
	      "  DEVICE    IN PORT  LOSS DB  STATE\n"
	      "  ocs1            7      1.5  up\n"
	      "  \xc3\xbc" "ber-ocs      123     0.25  -\n"
	      "  \xe5\x85\x89              1       12  no light\n"
	      "  no light means unverified\n"
	      "\n"
	      "cost:\n"
	      "  bandwidth factor  341/256\n"
	      "  time s            1e-07\n"
	      "\n"
	      "none        -\n");
}

/* Columns that say nothing in any row are left out, but never the first;
 * null is something, and for programs all are there. */
static void blank_columns(struct out *o)
{
	out_array(o, "rows");
	for (int i = 0; i < 2; i++) {
		out_object(o, NULL);
		out_str(o, "name", "");
		out_str(o, "problem", "");
		out_str(o, "comment", i ? "late" : "");
		out_null(o, "end");
		out_end(o);
	}
	out_end(o);
}

static void blank_columns_golden(void **state)
{
	(void)state;
	check(OUT_TABLE, blank_columns,
	      "rows:\n"
	      "  NAME  COMMENT  END\n"
	      "                   -\n"
	      "        late       -\n");
	check(OUT_JSON, blank_columns,
	      "{\n"
	      "  \"rows\": [\n"
	      "    {\n"
	      "      \"name\": \"\",\n"
	      "      \"problem\": \"\",\n"
	      "      \"comment\": \"\",\n"
	      "      \"end\": null\n"
	      "    },\n"
	      "    {\n"
	      "      \"name\": \"\",\n"
	      "      \"problem\": \"\",\n"
	      "      \"comment\": \"late\",\n"
	      "      \"end\": null\n"
	      "    }\n"
	      "  ]\n"
	      "}\n");
}

static void json_golden(void **state)
{
	(void)state;
	check(OUT_JSON, fabric,
	      "{\n"
	      "  \"name\": \"spine\",\n"
	      "  \"generation\": 42,\n"
	      "  \"verified\": true,\n"
	      "  \"job\": null,\n"
	      "  \"digest\": \"00ff\",\n"
	      "  \"ports\": [1, 22],\n"
	      "  \"circuits\": [\n"
	      "    {\n"
	      "      \"device\": \"ocs1\",\n"
	      "      \"in_port\": 7,\n"
	      "      \"loss_db\": 1.5,\n"
	      "      \"state\": \"up\"\n"
	      "    },\n"
	      "    {\n"
	      "      \"device\": \"\xc3\xbc" "ber-ocs\",\n"
	      "      \"in_port\": 123,\n"
	      "      \"loss_db\": 0.25\n"
	      "    },\n"
	      "    {\n"
	      "      \"device\": \"\xe5\x85\x89\",\n"
	      "      \"in_port\": 1,\n"
	      "      \"loss_db\": 12.0,\n"
	      "      \"state\": \"no light\"\n"
	      "    }\n"
	      "  ],\n"
	      "  \"cost\": {\n"
	      "    \"bandwidth_factor\": \"341/256\",\n"
	      "    \"time_s\": 1.0e-07\n"
	      "  },\n"
	      "  \"none\": []\n"
	      "}\n");
}

static void yaml_golden(void **state)
{
	(void)state;
	check(OUT_YAML, fabric,
	      "name: spine\n"
	      "generation: 42\n"
	      "verified: true\n"
	      "job: null\n"
	      "digest: \"00ff\"\n"
	      "ports:\n"
	      "  - 1\n"
	      "  - 22\n"
	      "circuits:\n"
	      "  - device: ocs1\n"
	      "    in_port: 7\n"
	      "    loss_db: 1.5\n"
	      "    state: up\n"
	      "  - device: \"\xc3\xbc" "ber-ocs\"\n"
	      "    in_port: 123\n"
	      "    loss_db: 0.25\n"
	      "  - device: \"\xe5\x85\x89\"\n"
	      "    in_port: 1\n"
	      "    loss_db: 12.0\n"
	      "    state: no light\n"
	      "cost:\n"
	      "  bandwidth_factor: \"341/256\"\n"
	      "  time_s: 1.0e-07\n"
	      "none: []\n");
}

static void nested(struct out *o)
{
	out_array(o, "rows");
	out_array(o, NULL);
	out_int(o, NULL, 1);
	out_array(o, NULL);
	out_end(o);
	out_end(o);
	out_object(o, NULL);
	out_object(o, "inner");
	out_bool(o, "deep", false);
	out_end(o);
	out_end(o);
	out_end(o);
	out_str(o, "y", "y");
}

static void nested_golden(void **state)
{
	(void)state;
	check(OUT_YAML, nested,
	      "rows:\n"
	      "  - - 1\n"
	      "    - []\n"
	      "  - inner:\n"
	      "      deep: false\n"
	      "\"y\": \"y\"\n");
	check(OUT_TABLE, nested,
	      "rows:\n"
	      "  1, -\n"
	      "  inner=deep=no\n"
	      "\n"
	      "y  y\n");
	check(OUT_JSON, nested,
	      "{\n"
	      "  \"rows\": [\n"
	      "    [\n"
	      "      1,\n"
	      "      []\n"
	      "    ],\n"
	      "    {\n"
	      "      \"inner\": {\n"
	      "        \"deep\": false\n"
	      "      }\n"
	      "    }\n"
	      "  ],\n"
	      "  \"y\": \"y\"\n"
	      "}\n");
}

static void nothing(struct out *o)
{
	(void)o;
}

static void empty_root(void **state)
{
	(void)state;
	check(OUT_TABLE, nothing, "\n");
	check(OUT_JSON, nothing, "{}\n");
	check(OUT_YAML, nothing, "{}\n");
}

/* Strings that a careless writer gets wrong, and keys like them. */
static const char *const awkward[] = {
	"", " ", "null", "~", "Yes", "off", "1", "-1", "+1", "1.5", ".5", "1e5",
	"0x1f", "0o17", "017", "1_000", "1:30", "12:30:45", "2026-01-31",
	"2026-01-31T12:00:00Z", ".inf", ".nan", "- a", "a: b", "a:", "a #b",
	"#a", "@a", "%a", "&a", "*a", "!a", "|", ">", "'a'", "\"a\"", "[a]",
	"{a}", "a, b", "a\nb", "a\tb", " a", "a ", "?", "? a", "=", "<<", "\x7f",
	"\x01", "\\", "\xc3\xa9", "\xf0\x9f\x98\x80", "\xe2\x80\xa8", "25us",
	"100Gbps", "ocs1:3/4", "1d", "0b1", "K(3,3)", "---", "...", "a\rb",
	"\xef\xbb\xbf" "a",
};

#define N_AWKWARD ((int)(sizeof(awkward) / sizeof(awkward[0])))

static void awkward_strings(struct out *o)
{
	out_array(o, "v");
	for (int i = 0; i < N_AWKWARD; i++) {
		out_str(o, NULL, awkward[i]);
	}
	out_end(o);
	out_object(o, "k");
	for (int i = 0; i < N_AWKWARD; i++) {
		out_int(o, awkward[i], i);
	}
	out_end(o);
}

static void json_round_trip(void **state)
{
	char *text = render(OUT_JSON, awkward_strings);
	json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
	json_t *v, *k;

	(void)state;
	assert_non_null(root);
	v = json_object_get(root, "v");
	k = json_object_get(root, "k");
	assert_int_equal(json_array_size(v), N_AWKWARD);
	for (int i = 0; i < N_AWKWARD; i++) {
		json_t *n = json_object_get(k, awkward[i]);

		assert_string_equal(json_string_value(json_array_get(v, i)),
				    awkward[i]);
		assert_int_equal(json_integer_value(n), i);
	}
	json_decref(root);
	free(text);
}

/* The only awkward strings that no reader mistakes for something else. */
static bool may_be_bare(const char *s)
{
	static const char *const fine[] = {
		"25us", "100Gbps", "ocs1:3/4",
	};

	for (size_t i = 0; i < sizeof(fine) / sizeof(fine[0]); i++) {
		if (strcmp(s, fine[i]) == 0) {
			return true;
		}
	}
	return false;
}

/* A bare YAML scalar must not match what YAML 1.1 or 1.2 resolves to another
 * type; the value must come back in any case. */
static void yaml_round_trip(void **state)
{
	char *text = render(OUT_YAML, awkward_strings);
	yaml_parser_t parser;
	yaml_document_t doc;
	yaml_node_t *root, *v, *k;

	(void)state;
	assert_true(yaml_parser_initialize(&parser));
	yaml_parser_set_input_string(&parser, (unsigned char *)text,
				     strlen(text));
	assert_true(yaml_parser_load(&parser, &doc));
	root = yaml_document_get_root_node(&doc);
	v = yaml_document_get_node(&doc, root->data.mapping.pairs.start[0]
						 .value);
	k = yaml_document_get_node(&doc, root->data.mapping.pairs.start[1]
						 .value);
	assert_int_equal(v->data.sequence.items.top -
			 v->data.sequence.items.start, N_AWKWARD);
	for (int i = 0; i < N_AWKWARD; i++) {
		yaml_node_t *s = yaml_document_get_node(&doc,
			v->data.sequence.items.start[i]);
		yaml_node_t *key = yaml_document_get_node(&doc,
			k->data.mapping.pairs.start[i].key);
		bool bare = s->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;

		assert_string_equal((char *)s->data.scalar.value, awkward[i]);
		assert_string_equal((char *)key->data.scalar.value,
				    awkward[i]);
		assert_int_equal(bare, may_be_bare(awkward[i]));
	}
	yaml_document_delete(&doc);
	yaml_parser_delete(&parser);
	free(text);
}

static void quoting(void **state)
{
	struct buf b = { 0 };

	(void)state;
	out_json_quote(&b, "a\"\\\b\f\n\r\t\x1f\x7f/\xc3\xa9\xff\xc3(\xed\xa0"
			   "\x80\xf5");
	assert_string_equal(buf_cstr(&b),
		"\"a\\\"\\\\\\b\\f\\n\\r\\t\\u001f\\u007f/\xc3\xa9\xef\xbf\xbd"
		"\xef\xbf\xbd(\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"
		"\xef\xbf\xbd\"");
	buf_reset(&b);
	out_json_quote(&b, "\xe2\x80\xae" "a\xe2\x81\xa9\xd8\x9c");
	assert_string_equal(buf_cstr(&b), "\"\\u202ea\\u2069\\u061c\"");
	buf_fini(&b);
}

static void turned(struct out *o)
{
	out_str(o, "name", "\xe2\x80\xae" "lmay\xe2\x81\xa6.\xe2\x80\x8f\x1b[2J");
}

/* No name turns the writing around in a terminal, so that it looks like
 * another. */
static void marks_of_direction_become_blanks(void **state)
{
	char *text = render(OUT_TABLE, turned);

	(void)state;
	assert_string_equal(text, "name   lmay .  [2J\n");
	free(text);
}

/* Every double comes back as the same double; not-a-number is null. */
static void reals_round_trip(void **state)
{
	struct rng rng;

	(void)state;
	rng_seed(&rng, 1);
	for (int i = 0; i < 2000; i++) {
		union { uint64_t bits; double x; } u = {
			.bits = rng_u64(&rng) };
		struct out *o = out_new(OUT_JSON);
		struct buf b = { 0 };
		json_t *root, *v;

		out_real(o, "v", u.x);
		out_render(o, &b);
		root = json_loads(b.data, 0, NULL);
		assert_non_null(root);
		v = json_object_get(root, "v");
		if (isfinite(u.x)) {
			assert_true(json_is_real(v));
			assert_true(json_real_value(v) == u.x);
		} else {
			assert_true(json_is_null(v));
		}
		json_decref(root);
		out_free(o);
		buf_fini(&b);
	}
}

/* Random trees: JSON that jansson reads, YAML that libyaml reads, tables
 * without trailing blanks or control characters. */
static void random_value(struct out *o, const char *key, struct rng *rng,
			 int depth)
{
	switch (rng_below(rng, depth < 4 ? 8 : 6)) {
	case 0:
		out_str(o, key, awkward[rng_below(rng, N_AWKWARD)]);
		break;
	case 1:
		out_int(o, key, (int64_t)rng_u64(rng));
		break;
	case 2:
		out_real(o, key, (double)rng_below(rng, 1000) / 8);
		break;
	case 3:
		out_bool(o, key, rng_below(rng, 2));
		break;
	case 4:
		out_str(o, key, NULL);
		break;
	case 5:
		out_note(o, "note %d", depth);
		out_machine_only(o);
		out_null(o, key);
		break;
	case 6:
		out_object(o, key);
		for (int i = (int)rng_below(rng, 5); i > 0; i--) {
			random_value(o, awkward[i * 7], rng, depth + 1);
		}
		out_end(o);
		break;
	default:
		out_array(o, key);
		for (int i = (int)rng_below(rng, 5); i > 0; i--) {
			random_value(o, NULL, rng, depth + 1);
		}
		out_end(o);
	}
}

static bool yaml_reads(const char *text)
{
	yaml_parser_t parser;
	yaml_document_t doc;
	bool good;

	yaml_parser_initialize(&parser);
	yaml_parser_set_input_string(&parser, (const unsigned char *)text,
				     strlen(text));
	good = yaml_parser_load(&parser, &doc);
	if (good) {
		good = yaml_document_get_root_node(&doc)->type ==
		       YAML_MAPPING_NODE;
		yaml_document_delete(&doc);
	}
	yaml_parser_delete(&parser);
	return good;
}

static void random_trees(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 300; seed++) {
		for (int f = OUT_TABLE; f <= OUT_YAML; f++) {
			struct out *o = out_new((enum out_format)f);
			struct buf b = { 0 };
			struct rng rng;
			json_t *root;

			rng_seed(&rng, seed);
			for (int i = 0; i < 6; i++) {
				random_value(o, awkward[i * 9], &rng, 0);
			}
			out_render(o, &b);
			if (f == OUT_JSON) {
				root = json_loads(b.data, 0, NULL);
				assert_non_null(root);
				json_decref(root);
			} else if (f == OUT_YAML) {
				assert_true(yaml_reads(b.data));
			} else {
				assert_null(strstr(b.data, " \n"));
				assert_null(strchr(b.data, '\t'));
				assert_null(strchr(b.data, '\x01'));
			}
			assert_true(b.data[b.len - 1] == '\n');
			out_free(o);
			buf_fini(&b);
		}
	}
}

static void format_names(void **state)
{
	enum out_format f;
	struct err err;

	(void)state;
	assert_int_equal(out_parse_format("yaml", &f, NULL), 0);
	assert_int_equal(f, OUT_YAML);
	assert_int_equal(out_parse_format("json", &f, NULL), 0);
	assert_int_equal(f, OUT_JSON);
	assert_int_equal(out_parse_format("table", &f, NULL), 0);
	assert_int_equal(f, OUT_TABLE);
	assert_int_equal(out_parse_format("xml", &f, &err), WEFT_EUSAGE);
	assert_non_null(strstr(err.msg, "table, json or yaml"));
}

/* Long texts go on in their column; numbers and short ones stay. */
static void tables_fit_the_width_that_they_have(void **state)
{
	static const char *const want =
		"verdict  all is well and\n"
		"         nothing is left to do\n"
		"\n"
		"changes:\n"
		"  N  WHAT              WHY\n"
		"  7  0 deleted, 64     planned\n"
		"     made, 1 program\n"
		"     loaded\n"
		"  8  averyveryverylon  -\n"
		"     gword\n"
		"  two changes, of which one\n"
		"    is done\n";
	struct out *o = out_new(OUT_TABLE);
	struct buf b = { 0 };

	(void)state;
	out_set_width(o, 30);
	out_str(o, "verdict", "all is well and nothing is left to do");
	out_array(o, "changes");
	out_object(o, NULL);
	out_int(o, "n", 7);
	out_str(o, "what", "0 deleted, 64 made, 1 program loaded");
	out_str(o, "why", "planned");
	out_end(o);
	out_object(o, NULL);
	out_int(o, "n", 8);
	out_str(o, "what", "averyveryverylongword");
	out_str(o, "why", "-");
	out_end(o);
	out_note(o, "two changes, of which one is done");
	out_end(o);
	out_render(o, &b);
	assert_string_equal(buf_cstr(&b), want);
	buf_fini(&b);
	out_free(o);
}

/* Where no column can be narrower, they are one blank apart. */
static void tables_of_many_columns_fit(void **state)
{
	static const char *const cells[][2] = {
		{ "job", "train" }, { "health", "degraded" }, { "proof", "unverified" },
		{ "rate", "88.47 %" }, { "time", "11.6 ms" }, { "fault_free", "9.88 ms" },
		{ "collective", "allreduce" }, { "topology", "C(12,{2,3})" },
	};
	struct out *o = out_new(OUT_TABLE);
	struct buf b = { 0 };

	(void)state;
	out_set_width(o, 80);
	out_array(o, "jobs");
	out_object(o, NULL);
	for (size_t i = 0; i < sizeof(cells) / sizeof(cells[0]); i++) {
		out_str(o, cells[i][0], cells[i][1]);
	}
	out_end(o);
	out_end(o);
	out_render(o, &b);
	assert_string_equal(buf_cstr(&b), "jobs:\n"
		"  JOB   HEALTH   PROOF      RATE    TIME    FAULT FREE COLLECTIVE TOPOLOGY\n"
		"  train degraded unverified 88.47 % 11.6 ms 9.88 ms    allreduce  C(12,{2,3})\n");
	buf_fini(&b);
	out_free(o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(table_golden),
		cmocka_unit_test(json_golden),
		cmocka_unit_test(yaml_golden),
		cmocka_unit_test(nested_golden),
		cmocka_unit_test(blank_columns_golden),
		cmocka_unit_test(empty_root),
		cmocka_unit_test(json_round_trip),
		cmocka_unit_test(yaml_round_trip),
		cmocka_unit_test(quoting),
		cmocka_unit_test(marks_of_direction_become_blanks),
		cmocka_unit_test(reals_round_trip),
		cmocka_unit_test(random_trees),
		cmocka_unit_test(format_names),
		cmocka_unit_test(tables_fit_the_width_that_they_have),
		cmocka_unit_test(tables_of_many_columns_fit),
	};

	return cmocka_run_group_tests_name("output/writer", tests, NULL, NULL);
}
