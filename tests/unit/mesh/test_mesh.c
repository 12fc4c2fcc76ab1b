/* SPDX-License-Identifier: Apache-2.0 */
/* Meshes: readers and their errors, the bound, the search, the checks. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/file.h"
#include "lib/base/number/rng.h"
#include "rwa/mesh/mesh.h"

#define DATA "tests/data/rwa/"

static char *slurp(const char *path)
{
	char *text;
	size_t len;
	struct err err = { 0 };

	assert_int_equal(file_read(path, RWA_MESH_MAX_FILE, &text, &len, &err),
			 0);
	return text;
}

/* The first of a reader's mistakes, 0 when there is none. */
static int first_of(struct err_list *errs, int rc, struct err *err)
{
	if (rc) {
		err_list_sort(errs);
		assert_true(errs->n > 0);
		*err = errs->v[0];
	}
	assert_true(rc || !errs->n);
	err_list_fini(errs);
	return rc;
}

static int read_net(const char *name, const char *text, struct rwa_mesh **m, struct err *err)
{
	struct err_list errs = { 0 };

	return first_of(&errs, rwa_mesh_read_net(name, text, m, &errs), err);
}

static int read_trf(struct rwa_mesh *m, const char *name, const char *text, struct err *err)
{
	struct err_list errs = { 0 };

	return first_of(&errs, rwa_mesh_read_trf(m, name, text, &errs), err);
}

static int read_yaml(const char *name, const char *text, size_t len, struct rwa_mesh **m,
		     struct err *err)
{
	struct err_list errs = { 0 };

	return first_of(&errs, rwa_mesh_read_yaml(name, text, len, m, &errs), err);
}

/* The network, with the demands of trf, or all pairs when that is NULL. */
static struct rwa_mesh *load(const char *net, const char *trf)
{
	struct rwa_mesh *m;
	struct err err = { 0 };
	char *text = slurp(net);

	assert_int_equal(read_net(net, text, &m, &err), 0);
	free(text);
	if (trf) {
		text = slurp(trf);
		assert_int_equal(read_trf(m, trf, text, &err), 0);
		free(text);
	} else {
		assert_int_equal(rwa_mesh_all_to_all(m, &err), 0);
	}
	return m;
}

static struct rwa_mesh *yaml(const char *text)
{
	struct rwa_mesh *m;
	struct err err = { 0 };

	if (read_yaml("t.yaml", text, strlen(text), &m, &err)) {
		fail_msg("%d: %s", err.line, err.msg);
	}
	return m;
}

static void solve(const struct rwa_mesh *m, int channels,
		  struct rwa_mesh_result *res)
{
	struct rwa_mesh_options opt = { .channels = channels, .seed = 3 };
	struct err err = { 0 };

	if (rwa_mesh_solve(m, &opt, res, &err)) {
		fail_msg("%s", err.msg);
	}
}

static void expect_channels(struct rwa_mesh *m, int channels)
{
	struct rwa_mesh_result res;

	solve(m, 0, &res);
	assert_int_equal(res.bound, channels);
	assert_int_equal(res.channels, channels);
	assert_int_equal(res.lightpaths, m->lightpaths);
	rwa_mesh_result_fini(&res);
	rwa_mesh_free(m);
}

static void expect_infeasible(const char *text, const char *part)
{
	struct rwa_mesh *m = yaml(text);
	struct rwa_mesh_options opt = { .seed = 1 };
	struct rwa_mesh_result res;
	struct err err = { 0 };

	assert_int_equal(rwa_mesh_solve(m, &opt, &res, &err),
			 WEFT_EINFEASIBLE);
	if (!strstr(err.msg, part)) {
		fail_msg("\"%s\" is not in \"%s\"", part, err.msg);
	}
	rwa_mesh_free(m);
}

static void breaks(const struct rwa_mesh *m, struct rwa_mesh_result *res,
		   const char *part)
{
	struct err err = { 0 };

	assert_int_equal(rwa_mesh_check(m, &res->assignment, res->channels,
					true, &err), WEFT_EVERIFY);
	if (!strstr(err.msg, part)) {
		fail_msg("\"%s\" is not in \"%s\"", part, err.msg);
	}
}

/* The values of the literature. */
static void published_instances(void **state)
{
	(void)state;
	expect_channels(load(DATA "nsfnet14_21.net", NULL), 13);
	expect_channels(load(DATA "cost239_11_26a.net", NULL), 4);
	expect_channels(load(DATA "NSF.net", DATA "NSF.3.trf"), 22);
}

#define SQUARE "nodes: 4\nlinks:\n" \
	"- {from: 0, to: 1}\n- {from: 1, to: 2}\n" \
	"- {from: 2, to: 3}\n- {from: 3, to: 0}\n"
#define LINE "nodes: 3\nlinks:\n- {from: 0, to: 1}\n- {from: 1, to: 2}\n"

static void small_instances(void **state)
{
	(void)state;
	expect_channels(yaml(SQUARE "demands: all\n"), 2);
	expect_channels(yaml(LINE "demands:\n- {from: 0, to: 2, count: 5}\n"),
			5);
	/* Two fibres halve it. */
	expect_channels(yaml("nodes: 2\nlinks:\n"
			     "- {from: 0, to: 1, fibres: 2}\n"
			     "demands:\n- {from: 0, to: 1, count: 5}\n"), 3);
	expect_channels(yaml(LINE), 0);
}

/* Three lightpaths of two links each on a ring of three links: two of any
 * clash, but with conversion two channels hold all. */
static void conversion_saves_a_channel(void **state)
{
	static const char *const text =
		"nodes:\n- {name: a%s}\n- {name: b%s}\n- {name: c%s}\nlinks:\n"
		"- {from: a, to: b, duplex: false}\n"
		"- {from: b, to: c, duplex: false}\n"
		"- {from: c, to: a, duplex: false}\n"
		"demands:\n- {from: a, to: c}\n- {from: b, to: a}\n"
		"- {from: c, to: b}\n";
	struct rwa_mesh_result res;
	struct rwa_mesh *m;
	char buf[512];

	(void)state;
	snprintf(buf, sizeof(buf), text, "", "", "");
	m = yaml(buf);
	solve(m, 0, &res);
	assert_int_equal(res.certificate.bound, 2);
	assert_int_equal(res.channels, 3);
	assert_int_equal(res.bound, 3);
	assert_string_equal(res.proof, "configurations");
	rwa_mesh_result_fini(&res);
	rwa_mesh_free(m);
	snprintf(buf, sizeof(buf), text, ", convert: true", ", convert: true",
		 ", convert: true");
	expect_channels(yaml(buf), 2);
}

/* Lightpaths of l links from every node of a one-way ring of n, k times each:
 * a channel holds floor(n / l) of them, which the flow does not know. */
static void configurations_close_the_gap(void **state)
{
	static const struct { int n, l, k, flow, channels; } rings[] = {
		{ 5, 2, 10, 20, 25 }, { 7, 3, 8, 24, 28 }, { 7, 2, 9, 18, 21 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rings) / sizeof(*rings); i++) {
		struct rwa_mesh_result res;
		struct rwa_mesh *m;
		int n = rings[i].n;

		assert_int_equal(rwa_mesh_new(n, &m, NULL), 0);
		for (int v = 0; v < n; v++) {
			struct rwa_mesh_arc a = { v, (v + 1) % n, 1, 0, false };
			struct rwa_mesh_demand d = {
				v, (v + rings[i].l) % n, rings[i].k, false,
			};

			assert_int_equal(rwa_mesh_add_arc(m, &a, NULL), 0);
			assert_int_equal(rwa_mesh_add_demand(m, &d, NULL), 0);
		}
		solve(m, 0, &res);
		assert_int_equal(res.certificate.bound, rings[i].flow);
		assert_int_equal(res.channels, rings[i].channels);
		assert_int_equal(res.bound, rings[i].channels);
		assert_string_equal(res.proof, "configurations");
		rwa_mesh_result_fini(&res);
		rwa_mesh_free(m);
	}
}

static void channels_in_use_are_left_alone(void **state)
{
	struct rwa_mesh_result res;
	struct rwa_mesh *m = yaml(
		LINE "in_use:\n- {from: 0, to: 1, channel: 0}\n"
		     "- {from: 1, to: 2, channel: 1}\n"
		     "demands:\n- {from: 0, to: 2}\n");

	(void)state;
	solve(m, 0, &res);
	assert_int_equal(res.channels, 3);
	assert_int_equal(res.assignment.hops.v[0].channel, 2);
	rwa_mesh_result_fini(&res);
	rwa_mesh_free(m);
}

static void a_shut_port_forces_the_long_path(void **state)
{
	struct rwa_mesh_result res;
	struct rwa_mesh *m = yaml(SQUARE "in_use:\n- {from: 0, to: 1}\n"
					 "demands:\n- {from: 0, to: 1}\n");

	(void)state;
	solve(m, 0, &res);
	assert_int_equal(res.assignment.paths.v[0].hops, 3);
	rwa_mesh_result_fini(&res);
	rwa_mesh_free(m);
}

/* The loss budget allows the two short spans and not the long one. */
static void the_loss_budget_chooses_the_path(void **state)
{
	static const char text[] =
		"nodes: 3\nlinks:\n- {from: 0, to: 2, loss: 9dB}\n"
		"- {from: 0, to: 1, loss: 3dB}\n- {from: 1, to: 2, loss: 3dB}\n"
		"demands:\n- {from: 0, to: 2, count: 2}\n"
		"budget: {launch: 0dBm, sensitivity: -10dBm, margin: 1dB, "
		"add: 1dB, drop: 1dB}\n";
	struct rwa_mesh *m = yaml(text);
	struct rwa_mesh_result res;

	(void)state;
	solve(m, 0, &res);
	assert_int_equal(res.channels, 2);
	for (size_t i = 0; i < res.assignment.paths.n; i++) {
		assert_int_equal(res.assignment.paths.v[i].hops, 2);
	}
	rwa_mesh_result_fini(&res);
	rwa_mesh_free(m);
}

/* Two routes of two hops and a third of three: the trap topology, in which the
 * shortest path alone leaves no second one. */
#define TRAP "nodes: [s, a, b, t]\nlinks:\n" \
	"- {from: s, to: a}\n- {from: a, to: b}\n- {from: b, to: t}\n" \
	"- {from: s, to: b, loss: 2dB}\n- {from: a, to: t, loss: 2dB}\n"

static void pairs_share_no_link(void **state)
{
	struct rwa_mesh_result res;
	struct rwa_path *p, backup;
	int k;
	struct rwa_mesh *m = yaml(TRAP "demands:\n- {from: s, to: t, count: 3, "
				       "protect: true}\n");

	(void)state;
	/* Two links leave s: six lightpaths need three channels. */
	solve(m, 0, &res);
	assert_int_equal(m->lightpaths, 6);
	assert_int_equal(res.channels, 3);
	assert_int_equal(res.bound, 3);
	/* The check sees a pair that is none: the first one's working beside
	 * another's lightpath on the same link. */
	p = res.assignment.paths.v;
	k = res.assignment.hops.v[p[2].first].arc ==
			    res.assignment.hops.v[p[0].first].arc ? 2 : 3;
	backup = p[1];
	p[1] = p[k];
	p[k] = backup;
	breaks(m, &res, "shares a link with its backup");
	rwa_mesh_result_fini(&res);
	/* Whole pairs only when not all fit. */
	solve(m, 2, &res);
	assert_int_equal(res.lightpaths, 4);
	assert_int_equal(res.lightpaths_bound, 4);
	rwa_mesh_result_fini(&res);
	rwa_mesh_free(m);
	expect_infeasible(LINE "demands:\n- {from: 0, to: 2, protect: true}\n",
			  "no two paths without a common link lead from 0 to 2");
}

static void transceivers_reach_their_channels(void **state)
{
	static const char text[] =
		"nodes:\n- {name: a, tune: \"5, 8-9\"}\n- b\n- {name: c, tune: "
		"8-20}\nlinks:\n- {from: a, to: b}\n- {from: b, to: c}\n"
		"demands:\n- {from: a, to: c, count: %d}\n";
	struct rwa_mesh_result res;
	struct rwa_mesh *m;
	char buf[256];

	(void)state;
	snprintf(buf, sizeof(buf), text, 2);
	m = yaml(buf);
	solve(m, 0, &res);
	assert_int_equal(res.channels, 10);
	assert_int_equal(res.bound, 10);
	assert_int_equal(res.certificate.ends, 10);
	assert_string_equal(res.proof, "slots at a node");
	res.assignment.hops.v[0].channel = 1;
	res.assignment.hops.v[1].channel = 1;
	breaks(m, &res, "do not reach");
	rwa_mesh_result_fini(&res);
	rwa_mesh_free(m);
	snprintf(buf, sizeof(buf), text, 3);
	expect_infeasible(buf, "node a: its lightpaths do not fit");
}

static void guard_channels_stay_dark(void **state)
{
	static const char text[] =
		LINE "guard: {between: 2, below: 1, above: 3}\n"
		     "demands:\n- {from: 0, to: 2, count: 3}\n%s";
	struct rwa_mesh_result res;
	struct rwa_mesh *m;
	char buf[512];

	(void)state;
	/* 1, 4 and 7, then three dark ones. */
	snprintf(buf, sizeof(buf), text, "");
	expect_channels(yaml(buf), 11);
	/* With more than enough for that given, all are served. */
	m = yaml(buf);
	solve(m, 16, &res);
	assert_int_equal(res.lightpaths, 3);
	rwa_mesh_result_fini(&res);
	rwa_mesh_free(m);
	/* In use is active: what is near stays dark, 2 to 6 on one fibre. */
	snprintf(buf, sizeof(buf), text,
		 "in_use:\n- {from: 0, to: 1, channel: 4}\n");
	m = yaml(buf);
	solve(m, 0, &res);
	assert_int_equal(res.channels, 14);
	res.assignment.hops.v[0].channel = 5;
	breaks(m, &res, "must not be used");
	rwa_mesh_result_fini(&res);
	rwa_mesh_free(m);
}

/* The short way is beyond the budget: two channels of the other are needed,
 * and the prices know it. */
static void the_bound_knows_the_budget(void **state)
{
	(void)state;
	expect_channels(yaml(
		"nodes: 4\nlinks:\n- {from: 0, to: 3, loss: 9dB}\n"
		"- {from: 0, to: 1, loss: 3dB}\n- {from: 1, to: 3, loss: 3dB}\n"
		"- {from: 0, to: 2, loss: 6dB}\n- {from: 2, to: 3, loss: 6dB}\n"
		"demands:\n- {from: 0, to: 3, count: 6}\n"
		"budget: {launch: 0dBm, sensitivity: -10dBm, margin: 1dB, "
		"add: 1dB, drop: 1dB}\n"), 6);
}

/* What is in use counts in the bound: of channels 0 to 3 only one is left. */
static void the_bound_knows_what_is_in_use(void **state)
{
	(void)state;
	expect_channels(yaml(
		"nodes: 3\nlinks:\n- {from: 0, to: 1}\n- {from: 1, to: 2}\n"
		"in_use:\n- {from: 0, to: 1, channel: 0}\n"
		"- {from: 0, to: 1, channel: 0}\n"
		"- {from: 0, to: 1, fibre: 0, channel: 2}\n"
		"- {from: 0, to: 1, channel: 3}\n"
		"demands:\n- {from: 0, to: 2, count: 2}\n"), 5);
}

static void given_channels_serve_what_fits(void **state)
{
	struct rwa_mesh *m = load(DATA "nsfnet14_21.net", NULL);
	struct rwa_mesh_result res;

	(void)state;
	solve(m, 6, &res);
	assert_true(res.lightpaths < m->lightpaths);
	assert_int_equal(res.lightpaths_bound, 128);
	assert_true(res.lightpaths <= 128);
	if (res.lightpaths < 124) {
		fail_msg("%d of 128", (int)res.lightpaths);
	}
	rwa_mesh_result_fini(&res);
	solve(m, 13, &res);
	assert_int_equal(res.lightpaths, m->lightpaths);
	rwa_mesh_result_fini(&res);
	rwa_mesh_free(m);
}

/* What fits is found from seeds whose first search does not find it. */
static void what_fits_is_served(void **state)
{
	static const struct {
		const char *file;
		int channels;
	} all[] = { { "tests/data/rwa/tight.yaml", 3 }, { "tests/data/rwa/chords.yaml", 6 } };

	(void)state;
	for (int k = 0; k < 8; k++) {
		struct rwa_mesh_options opt = { .channels = k & 2 ? all[k / 4].channels : 0,
						.seed = 1 + (k & 1) };
		char *text = slurp(all[k / 4].file);
		struct rwa_mesh *m = yaml(text);
		struct rwa_mesh_result res;
		struct err err = { 0 };

		assert_int_equal(rwa_mesh_solve(m, &opt, &res, &err), 0);
		assert_int_equal(res.lightpaths, m->lightpaths);
		assert_int_equal(res.channels, all[k / 4].channels);
		rwa_mesh_result_fini(&res);
		rwa_mesh_free(m);
		free(text);
	}
}

/* What does not fit in the channels given is proven not to, where prices let it: two lightpaths
 * of two links on a ring of three share one, whichever they are. */
static void what_does_not_fit_is_proven(void **state)
{
	struct rwa_mesh *m = yaml("nodes: 3\nlinks:\n- {from: 0, to: 1, duplex: false}\n"
				  "- {from: 1, to: 2, duplex: false}\n"
				  "- {from: 2, to: 0, duplex: false}\ndemands:\n"
				  "- {from: 0, to: 2}\n- {from: 1, to: 0}\n- {from: 2, to: 1}\n");
	struct rwa_mesh_options opt = { .channels = 2, .seed = 1 };
	struct rwa_mesh_result res;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(rwa_mesh_solve(m, &opt, &res, &err), 0);
	assert_int_equal(res.lightpaths, 2);
	assert_int_equal(res.lightpaths_bound, 2);
	assert_int_equal(res.bound, 3);
	assert_string_equal(res.proof, "lp_solve");
	rwa_mesh_result_fini(&res);
	rwa_mesh_free(m);
}

static void a_million_channels(void **state)
{
	struct rwa_mesh *m = yaml(LINE "channels: 1000000\n"
				  "in_use:\n- {from: 0, to: 1, channel: 999999}\n"
				  "demands:\n- {from: 0, to: 2, count: 9}\n");
	struct rwa_mesh_result res;

	(void)state;
	solve(m, m->channels, &res);
	assert_int_equal(res.lightpaths, 9);
	assert_int_equal(res.lightpaths_bound, 9);
	rwa_mesh_result_fini(&res);
	rwa_mesh_free(m);
}

static void same_seed_same_answer(void **state)
{
	struct rwa_mesh *m = load(DATA "nsfnet14_21.net", NULL);
	struct rwa_mesh_result a, b;

	(void)state;
	solve(m, 0, &a);
	solve(m, 0, &b);
	assert_int_equal(a.assignment.hops.n, b.assignment.hops.n);
	assert_memory_equal(a.assignment.hops.v, b.assignment.hops.v,
			    a.assignment.hops.n * sizeof(struct rwa_hop));
	rwa_mesh_result_fini(&a);
	rwa_mesh_result_fini(&b);
	rwa_mesh_free(m);
}

static void what_cannot_be_is_named(void **state)
{
	(void)state;
	expect_infeasible("nodes: 3\nlinks:\n- {from: 0, to: 1}\n"
			  "demands:\n- {from: 0, to: 2}\n",
			  "no path leads from 0 to 2");
	expect_infeasible("nodes: 2\nlinks:\n- {from: 0, to: 1, loss: 5dB}\n"
			  "demands:\n- {from: 0, to: 1}\n"
			  "budget: {launch: 0dBm, sensitivity: -4dBm}\n",
			  "within the loss budget");
	expect_infeasible("nodes:\n- {name: a, add: 1}\n- b\nlinks:\n"
			  "- {from: a, to: b}\n"
			  "demands:\n- {from: a, to: b, count: 2}\n",
			  "node a: 2 lightpaths begin there");
}

/* ---- the checks ---- */

static void the_check_finds_faults(void **state)
{
	struct rwa_mesh *m = yaml(LINE "demands:\n- {from: 0, to: 2, "
				       "count: 2}\n");
	struct rwa_mesh_result res;
	struct rwa_hop *hop;

	(void)state;
	solve(m, 0, &res);
	hop = res.assignment.hops.v;
	hop[0].channel ^= 1;
	breaks(m, &res, "does not convert");
	hop[1].channel ^= 1;
	breaks(m, &res, "is lightpath");
	hop[0].channel = 7;
	breaks(m, &res, "does not exist");
	hop[0].channel = hop[1].channel ^= 1;
	hop[0].arc = hop[1].arc;
	breaks(m, &res, "does not begin");
	res.assignment.paths.n = 1;
	hop[0].arc = 0;
	breaks(m, &res, "1 lightpaths for 2");
	res.certificate.prices[0]++;
	assert_int_equal(rwa_certificate_check(m, &res.certificate, NULL),
			 WEFT_EVERIFY);
	rwa_mesh_result_fini(&res);
	rwa_mesh_free(m);
}

/* ---- reading ---- */

struct bad {
	const char *text;
	int line;
	const char *part;
};

static void bad_net_files(void **state)
{
	static const struct bad bad[] = {
		{ "", 1, "number of nodes is missing" },
		{ "0 0\n", 1, "0 nodes" },
		{ "x 3\n", 1, "not a whole number" },
		{ "3 2\n0 1\n", 3, "ends after 1 of 2" },
		{ "3 2\n0 1\n0 1\n", 3, "line 2 has it" },
		{ "3 1\n0 3\n", 2, "nodes are 0 to 2" },
		{ "3 1\n1 1\n", 2, "to itself" },
		{ "3 1\n0 1 5\n", 2, "more on the line" },
		{ "3 1\n0 1\n1 0\n", 3, "more than the 1" },
		{ "99999999999 1\n", 1, "too large" },
		{ "3 1\n0\n", 2, "where the arc ends is missing" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct err err = { 0 };
		struct rwa_mesh *m;

		assert_int_not_equal(read_net("a.net", bad[i].text, &m,
						       &err), 0);
		assert_null(m);
		if (err.line != bad[i].line || !strstr(err.msg, bad[i].part)) {
			fail_msg("%zu: %d: %s", i, err.line, err.msg);
		}
	}
}

static void bad_yaml_files(void **state)
{
	static const struct bad bad[] = {
		{ "", 1, "empty" },
		{ "[1", 2, "" },
		{ "nodes: 0\n", 1, "1 to 4096" },
		{ "links: []\n", 1, "key 'nodes' is missing" },
		{ "nodes: 2\nnodes: 3\n", 2, "twice" },
		{ "nodes: 2\nwhat: 3\n", 2, "unknown key 'what'" },
		{ "nodes: [a, a]\n", 1, "two nodes have this name" },
		{ "nodes: [a, b]\nlinks:\n- {from: a, to: c}\n", 3,
		  "no node is called 'c'" },
		{ LINE "- {from: 1, to: 0}\n", 5, "this link again" },
		{ LINE "demands:\n- {from: 1, to: 1}\n", 6, "to itself" },
		{ LINE "demands:\n- {from: 1, to: 0, count: 0}\n", 6, "count" },
		{ LINE "channels: 0\n", 5, "channels" },
		{ LINE "channels: 1000001\n", 5, "channels" },
		{ LINE "budget: {launch: 3}\n", 5, "launch" },
		{ LINE "in_use:\n- {from: 0, to: 2}\n", 6, "no link" },
		{ LINE "in_use:\n- {from: 0, to: 1, fibre: 1}\n", 6, "fibre" },
		{ "nodes:\n- {name: a, tune: 3-}\n", 2, "channels such as" },
		{ "nodes:\n- {name: a, tune: 3-1}\n", 2, "3-1" },
		{ "nodes:\n- {name: a, tune: 0-1000000}\n", 2, "999999" },
		{ LINE "guard: {between: -1}\n", 5, "between" },
		{ LINE "guard: 3\n", 5, "expected a mapping" },
		{ LINE "demands:\n- {from: 0, to: 1, protect: 2}\n", 6,
		  "is none of none, 1+1, shared" },
		/* Cut in the middle. */
		{ "nodes: 3\nlinks:\n- {from: 0, to: 1}\n- {from: 1, t", 5, "" },
		{ "nodes: 3\nlinks:\n- {from: 0, to: 1}\n- {from: 1}\n", 4,
		  "key 'to' is missing" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct err err = { 0 };
		struct rwa_mesh *m;

		assert_int_not_equal(read_yaml("a.yaml", bad[i].text,
							strlen(bad[i].text), &m,
							&err), 0);
		assert_null(m);
		if (err.line != bad[i].line || !strstr(err.msg, bad[i].part)) {
			fail_msg("%zu: %d: %s", i, err.line, err.msg);
		}
	}
}

/* All mistakes of a text, "line:part" each, by line. */
static void expect_mistakes(int rc, struct err_list *errs, const struct bad *bad, int n)
{
	assert_int_not_equal(rc, 0);
	err_list_sort(errs);
	for (int i = 0; i < errs->n; i++) {
		if (i >= n || errs->v[i].line != bad[i].line ||
		    !strstr(errs->v[i].msg, bad[i].part)) {
			fail_msg("%d: %d: %s", i, errs->v[i].line, errs->v[i].msg);
		}
	}
	assert_int_equal(errs->n, n);
	err_list_fini(errs);
}

static void all_mistakes(void **state)
{
	static const char net[] = "4 5\n0 1\n1 x\n0 9\n0 1\n";
	static const char trf[] = "4\n0 7\n1\n0 1\n1 0 0\n2 1\n";
	static const char yaml_text[] =
		"nodes:\n- a\n- {name: b, add: many}\n- {nmae: c}\n- a\n"	/* 3, 4, 5 */
		"links:\n- {from: a, to: b}\n- {from: a, to: b}\n- {from: a}\n"	/* 8, 9 */
		"- {from: a, to: c}\n"		/* c is in a bad entry */
		"in_use:\n- {from: b, to: a, channel: x}\n"	/* 12 */
		"demands:\n- {from: a, to: a}\n- {from: a, to: b, count: 0}\n"	/* 14, 15 */
		"guard: {between: -1}\nwhat: 3\n";	/* 16, 17 */
	static const struct bad of_net[] = {
		{ "", 3, "where the arc ends" }, { "", 4, "nodes are 0 to 3" },
		{ "", 5, "line 2 has it" }, { "", 6, "ends after 4 of 5" },
	}, of_trf[] = {
		{ "", 2, "nodes are" }, { "", 3, "destination is missing" },
		{ "", 5, "more on the line" }, { "", 6, "more than the 4" },
	}, of_yaml[] = {
		{ "", 3, "add" }, { "", 4, "'name' is missing" }, { "", 4, "unknown key 'nmae'" },
		{ "", 5, "two nodes have this name" }, { "", 8, "this link again" },
		{ "", 9, "'to' is missing" }, { "", 12, "channel" }, { "", 14, "to itself" },
		{ "", 15, "count" }, { "", 16, "between" }, { "", 17, "unknown key 'what'" },
	};
	struct err_list errs = { 0 };
	struct rwa_mesh *m;

	(void)state;
	expect_mistakes(rwa_mesh_read_net("n", net, &m, &errs), &errs, of_net, 4);
	assert_null(m);
	assert_int_equal(rwa_mesh_new(3, &m, NULL), 0);
	expect_mistakes(rwa_mesh_read_trf(m, "t", trf, &errs), &errs, of_trf, 4);
	rwa_mesh_free(m);
	expect_mistakes(rwa_mesh_read_yaml("y", yaml_text, strlen(yaml_text), &m, &errs), &errs,
			of_yaml, 11);
	assert_null(m);
}

#define SNDLIB "?SNDlib native format; type: network; version: 1.0\n"

/* Links without direction and two of them one, demands both ways, by unit. */
static void sndlib_files(void **state)
{
	static const char text[] = SNDLIB
		"# a comment\n\nMETA (\n  unit = MBITPERSEC\n)\n"
		"NODES (\n  N1 ( 1.0 2.0 )\n  N2 (-1.00 -2.0 ) # here\n  N3 ( 1 1 ) () ()\n)\n"
		"LINKS (\n  L1 ( N1 N2 ) 0.0 0.0 0.0 1.0 ( 40.0 1.0 160.0 2.0 )\n"
		"  L2 ( N2 N3 ) 0 0 0 0 ( )\n  L3 ( N2 N1 ) 0 0 0 0 ( )\n)\n"
		"DEMANDS (\n  D1 ( N1 N2 ) 1 42.00 UNLIMITED\n  D2 ( N1 N3 ) 2 20.0 UNLIMITED\n"
		"  D3 ( N2 N3 ) 1 0.0 UNLIMITED\n)\nADMISSIBLE_PATHS (\n)\n";
	struct err_list errs = { 0 };
	struct rwa_mesh *m;

	(void)state;
	assert_true(rwa_mesh_is_sndlib(text));
	assert_int_equal(rwa_mesh_read_sndlib("s", text, 0, &m, &errs), 0);
	/* L1 and L3 lead there and back, so that links are as they stand. */
	assert_int_equal(m->arcs.n, 3);
	assert_int_equal(m->demands.n, 4);
	assert_int_equal(m->lightpaths, 4);
	assert_string_equal(m->nodes.v[2].name, "N3");
	rwa_mesh_free(m);
	assert_int_equal(rwa_mesh_read_sndlib("s", text, 10, &m, &errs), 0);
	assert_int_equal(m->demands.v[0].count, 5);
	assert_int_equal(m->demands.v[2].count, 4);
	assert_int_equal(m->lightpaths, 18);
	rwa_mesh_free(m);
}

static void sndlib_links(void **state)
{
	static const char text[] = SNDLIB
		"NODES (\na\nb\nc\n)\nLINKS (\n1 ( a b )\n2 ( a b )\n3 ( b c )\n)\n"
		"DEMANDS (\nx ( a c ) 1 1 UNLIMITED\ny ( c a ) 1 1 UNLIMITED\nz ( b a ) 1 1\n)\n";
	struct err_list errs = { 0 };
	struct rwa_mesh *m;

	(void)state;
	assert_int_equal(rwa_mesh_read_sndlib("s", text, 0, &m, &errs), 0);
	assert_int_equal(m->arcs.n, 4);
	assert_int_equal(m->arcs.v[0].fibres, 2);
	assert_int_equal(m->arcs.v[1].fibres, 2);
	assert_int_equal(m->arcs.v[3].dst, 1);
	assert_int_equal(m->lightpaths, 3);
	expect_channels(m, 1);
}

static void sndlib_mistakes(void **state)
{
	static const char text[] = SNDLIB
		"NODES (\n a\n b\n a\n)\nWHAT ( a\n"		/* 5, 7 */
		"LINKS (\n l ( a c )\n l a b\n l ( a a )\n)\n"	/* 9, 10, 11 */
		"DEMANDS (\n d ( a b ) 1\n d ( a b ) 1 -3\n d ( a b ) 1 2 3\n"	/* 14 - 16 */
		" d ( a b ) 1 1e14\n)\n"	/* 17 */
		"ADMISSIBLE_PATHS (\n d ( P ( l ) )\n d ( P ( l ) )\n";	/* 20, end 22 */
	static const struct bad of_text[] = {
		{ "", 5, "two nodes are called 'a'" }, { "", 7, "'WHAT' is no section" },
		{ "", 9, "no node is called 'c'" }, { "", 10, "NAME ( NODE NODE )" },
		{ "", 11, "to itself" }, { "", 14, "demand value is missing" },
		{ "", 15, "not a number" }, { "", 16, "length of paths" },
		{ "", 17, "are supported" }, { "", 20, "admissible paths" },
		{ "", 21, "admissible paths" }, { "", 22, "ends in section ADMISSIBLE_PATHS" },
	};
	struct err_list errs = { 0 };
	struct rwa_mesh *m;

	(void)state;
	expect_mistakes(rwa_mesh_read_sndlib("s", text, 1, &m, &errs), &errs, of_text, 12);
	assert_null(m);
	expect_mistakes(rwa_mesh_read_sndlib("s", SNDLIB "NODES ( a\n)\n", 1, &m, &errs), &errs,
			&(struct bad){ "", 2, "begin on the next line" }, 1);
	expect_mistakes(rwa_mesh_read_sndlib("s", "?SNDlib native format; type: model\n", 1, &m,
					     &errs), &errs,
			&(struct bad){ "", 1, "the first line must be" }, 1);
}

static void self_demands_are_counted(void **state)
{
	struct rwa_mesh *m;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(read_net("a", "2 2\n0 1\n1 0\n", &m, &err),
			 0);
	assert_int_equal(read_trf(m, "b", "3\n0 1\n1 1\n0 1\n", &err),
			 0);
	assert_int_equal(m->self_demands, 1);
	assert_int_equal(m->lightpaths, 2);
	assert_int_not_equal(read_trf(m, "b", "1\n0 2\n", &err), 0);
	assert_int_equal(err.line, 2);
	rwa_mesh_free(m);
}

/* Tuning ranges that leave room, guards, and a budget that hardly binds. */
static void random_limits(struct rwa_mesh *m, struct rng *rng)
{
	struct rwa_mesh_tuning t = { 0, 2, 999 };

	m->guard.between = (int32_t)rng_below(rng, 3);
	m->guard.below = (int32_t)rng_below(rng, 2);
	m->guard.above = (int32_t)rng_below(rng, 2);
	m->budget_mdb = 3000 + 1000 * (int64_t)m->nodes.n;
	if (rng_below(rng, 2)) {
		t.node = (int32_t)rng_below(rng, m->nodes.n);
		assert_int_equal(rwa_mesh_add_tuning(m, &t, NULL), 0);
	}
}

/* Random connected meshes with everything at once: the solver checks its own
 * answers, so that only an error fails. */
static void random_meshes(void **state)
{
	struct rng rng;

	(void)state;
	rng_seed(&rng, 11);
	for (int k = 0; k < 6; k++) {
		int n = 3 + (int)rng_below(&rng, 9);
		struct rwa_mesh_result res;
		struct rwa_mesh *m;
		struct err err = { 0 };

		assert_int_equal(rwa_mesh_new(n, &m, &err), 0);
		for (int v = 0; v < 2 * n; v++) {
			struct rwa_mesh_arc a = {
				v % n, (v + 1 + v / n) % n,
				1 + (int)rng_below(&rng, 2), 0, false,
			};

			m->nodes.v[v % n].convert = rng_below(&rng, 3) == 0;
			a.loss_mdb = (int32_t)rng_below(&rng, 1000);
			assert_int_equal(rwa_mesh_add_arc(m, &a, &err), 0);
		}
		for (int d = 0; d < 3 * n; d++) {
			int32_t s = (int32_t)rng_below(&rng, (uint64_t)n);
			struct rwa_mesh_demand x = {
				s, (s + 1 + (int32_t)rng_below(
					&rng, (uint64_t)n - 1)) % n, 1,
				rng_below(&rng, 4) == 0,
			};
			struct rwa_mesh_block b = {
				(int)rng_below(&rng, (uint64_t)n), 0,
				(int)rng_below(&rng, 4), k % 5 == 4,
			};

			assert_int_equal(rwa_mesh_add_demand(m, &x, &err), 0);
			assert_int_equal(rwa_mesh_add_block(m, &b, &err), 0);
		}
		random_limits(m, &rng);
		solve(m, 0, &res);
		assert_true(res.channels >= res.bound);
		rwa_mesh_result_fini(&res);
		solve(m, 3 + k % 4, &res);
		assert_true(res.lightpaths <= res.lightpaths_bound);
		rwa_mesh_result_fini(&res);
		rwa_mesh_free(m);
	}
}

/* Fibres for one lightpath each hold as many in four channels as in one, and no
 * two of different channels. */
static void fibres_for_one_lightpath(void **state)
{
	struct rng rng;

	(void)state;
	rng_seed(&rng, 5);
	for (int k = 0; k < 6; k++) {
		struct rwa_mesh *m[2];
		struct rwa_mesh_result res[2];

		for (int i = 0; i < 2; i++) {
			assert_int_equal(rwa_mesh_new(5, &m[i], NULL), 0);
		}
		for (int v = 0; v < 15; v++) {
			struct rwa_mesh_arc a = {
				v % 5, (v % 5 + 1 + v / 5) % 5,
				1 + (int)rng_below(&rng, 2), 0, false,
			};
			struct rwa_mesh_demand d = { (v + 3) % 5, (v + 3 + 1 + v / 5) % 5,
						     1 + (int)rng_below(&rng, 4), false };

			for (int i = 0; i < 2; i++) {
				a.is_single = i == 1;
				assert_int_equal(rwa_mesh_add_arc(m[i], &a, NULL), 0);
				assert_int_equal(rwa_mesh_add_demand(m[i], &d, NULL), 0);
			}
		}
		solve(m[0], 1, &res[0]);
		solve(m[1], 4, &res[1]);
		assert_true(res[1].lightpaths <= res[0].lightpaths_bound);
		assert_true(res[1].lightpaths + 1 >= res[0].lightpaths);
		assert_true(res[0].lightpaths < m[0]->lightpaths);
		/* As they are, but all on one fibre. */
		for (size_t h = 0; h < res[1].assignment.hops.n; h++) {
			res[1].assignment.hops.v[h].fibre = 0;
		}
		assert_int_not_equal(rwa_mesh_check(m[1], &res[1].assignment, 4, false, NULL), 0);
		for (int i = 0; i < 2; i++) {
			rwa_mesh_result_fini(&res[i]);
			rwa_mesh_free(m[i]);
		}
	}
}

static void drawings(void **state)
{
	struct rwa_mesh *m = yaml(SQUARE "demands: all\n");
	struct rwa_mesh_result res;
	struct buf svg = { 0 };

	(void)state;
	solve(m, 0, &res);
	rwa_mesh_draw(m, &res.assignment, res.channels, &svg);
	assert_non_null(strstr(svg.data, "<path"));
	rwa_mesh_result_fini(&res);
	rwa_mesh_free(m);
	m = yaml("nodes: [\"<a>\", b]\nlinks:\n- {from: \"<a>\", to: b}\n"
		 "demands: all\n");
	buf_reset(&svg);
	solve(m, 0, &res);
	rwa_mesh_draw(m, &res.assignment, res.channels, &svg);
	assert_non_null(strstr(svg.data, "&lt;a&gt;"));
	rwa_mesh_result_fini(&res);
	rwa_mesh_free(m);
	buf_fini(&svg);
}

/* What would need more memory than there may be is refused before anything is looked for. */
static void too_many_pairs_are_refused(void **state)
{
	struct rwa_mesh_arc arc = { .src = 0, .dst = 1, .fibres = 1 };
	struct rwa_mesh_demand pair = { .src = 0, .dst = 1, .count = 1, .protect = true };
	struct rwa_mesh_options opt = { .work = 1 };
	struct rwa_mesh_result res;
	struct rwa_mesh *m;
	struct err err;

	(void)state;
	assert_int_equal(rwa_mesh_new(2, &m, NULL), 0);
	for (int i = 0; i < RWA_MESH_MAX_ARCS; i++) {
		assert_int_equal(rwa_mesh_add_arc(m, &arc, NULL), 0);
	}
	for (int i = 0; i < 513; i++) {
		assert_int_equal(rwa_mesh_add_demand(m, &pair, NULL), 0);
	}
	assert_int_equal(rwa_mesh_solve(m, &opt, &res, &err), WEFT_ELIMIT);
	rwa_mesh_free(m);
}

/* Both of a pair end at the node, and no pair without two ways is served. */
static void pairs_that_cannot_be(void **state)
{
	static const char triangle[] =
		"links:\n- {from: a, to: b}\n- {from: b, to: c}\n- {from: c, to: a}\n"
		"- {from: c, to: d}\ndemands:\n";
	static const char *const ends[] = {
		"- {from: a, to: c, protect: true}\n", "- {from: a, to: c}\n",
		"- {from: a, to: d, protect: true}\n",
	};
	char text[512];
	struct rwa_mesh_result res;
	struct rwa_mesh *m;

	(void)state;
	snprintf(text, sizeof(text), "nodes: [a, b, {name: c, drop: 1}, d]\n%s%s", triangle,
		 ends[0]);
	expect_infeasible(text, "node c: 2 lightpaths end there, its limit is 1");
	m = yaml(text);
	solve(m, 2, &res);
	assert_int_equal(res.lightpaths, 0);
	assert_int_equal(res.lightpaths_bound, 0);
	rwa_mesh_result_fini(&res);
	rwa_mesh_free(m);
	snprintf(text, sizeof(text), "nodes: [{name: a, add: 2}, b, c, d]\n%s%s%s", triangle,
		 ends[0], ends[1]);
	expect_infeasible(text, "node a: 3 lightpaths begin there, its limit is 2");
	snprintf(text, sizeof(text), "nodes: [a, b, c, d]\n%s%s%s", triangle, ends[0], ends[2]);
	expect_infeasible(text, "demand 1: no two paths without a common link lead from a to d");
	/* Each way is within the budget by itself, and only one of them. */
	expect_infeasible("nodes: [a, b, c]\nlinks:\n- {from: a, to: b, loss: 3dB}\n"
			  "- {from: b, to: c, loss: 3dB}\n- {from: a, to: c, loss: 3dB}\n"
			  "budget: {launch: 0dBm, sensitivity: -5dBm}\n"
			  "demands:\n- {from: b, to: c}\n- {from: a, to: c, protect: true}\n",
			  "demand 1: a -> c");
}

/* All-to-all on a tree fits where the busiest link has room: what it
 * separates, times the rest. */
static void trees(void **state)
{
	enum { N = 24 };
	struct rng rng;

	(void)state;
	rng_seed(&rng, 31);
	for (int k = 0; k < 6; k++) {
		struct rwa_mesh *m;
		int parent[N], below[N], load = 0;

		assert_int_equal(rwa_mesh_new(N, &m, NULL), 0);
		for (int v = 1; v < N; v++) {
			struct rwa_mesh_arc down = { .dst = v, .fibres = 1 }, up;

			parent[v] = k == 0 ? v - 1 : (int)rng_below(&rng, (uint64_t)v);
			down.src = parent[v];
			up = (struct rwa_mesh_arc){ .src = v, .dst = parent[v], .fibres = 1 };
			assert_int_equal(rwa_mesh_add_arc(m, &down, NULL), 0);
			assert_int_equal(rwa_mesh_add_arc(m, &up, NULL), 0);
			below[v] = 1;
		}
		for (int v = N - 1; v > 0; v--) {
			load = below[v] * (N - below[v]) > load ? below[v] * (N - below[v]) : load;
			below[parent[v]] += parent[v] ? below[v] : 0;
		}
		assert_int_equal(rwa_mesh_all_to_all(m, NULL), 0);
		expect_channels(m, load);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(published_instances),
		cmocka_unit_test(small_instances),
		cmocka_unit_test(trees),
		cmocka_unit_test(too_many_pairs_are_refused),
		cmocka_unit_test(pairs_that_cannot_be),
		cmocka_unit_test(conversion_saves_a_channel),
		cmocka_unit_test(configurations_close_the_gap),
		cmocka_unit_test(channels_in_use_are_left_alone),
		cmocka_unit_test(a_shut_port_forces_the_long_path),
		cmocka_unit_test(the_loss_budget_chooses_the_path),
		cmocka_unit_test(pairs_share_no_link),
		cmocka_unit_test(transceivers_reach_their_channels),
		cmocka_unit_test(guard_channels_stay_dark),
		cmocka_unit_test(the_bound_knows_the_budget),
		cmocka_unit_test(the_bound_knows_what_is_in_use),
		cmocka_unit_test(given_channels_serve_what_fits),
		cmocka_unit_test(what_fits_is_served),
		cmocka_unit_test(what_does_not_fit_is_proven),
		cmocka_unit_test(a_million_channels),
		cmocka_unit_test(same_seed_same_answer),
		cmocka_unit_test(what_cannot_be_is_named),
		cmocka_unit_test(the_check_finds_faults),
		cmocka_unit_test(bad_net_files),
		cmocka_unit_test(bad_yaml_files),
		cmocka_unit_test(self_demands_are_counted),
		cmocka_unit_test(all_mistakes),
		cmocka_unit_test(sndlib_files),
		cmocka_unit_test(sndlib_links),
		cmocka_unit_test(sndlib_mistakes),
		cmocka_unit_test(random_meshes),
		cmocka_unit_test(fibres_for_one_lightpath),
		cmocka_unit_test(drawings),
	};

	return cmocka_run_group_tests_name("mesh/mesh", tests, NULL, NULL);
}
