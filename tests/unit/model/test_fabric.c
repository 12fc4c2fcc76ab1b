/* SPDX-License-Identifier: Apache-2.0 */
/* What a fabric holds after reading, and the edges of reading it. That
 * mistakes are found is test_examples' business. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/model/private.h"
#include "lib/base/buf.h"
#include "lib/base/number/rng.h"
#include "tests/unit/model/invariants.h"

/* ---- helpers ---- */

static struct model_fabric *accept_bytes(const char *text, size_t len)
{
	struct err_list errs = { 0 };
	struct model_fabric *f = NULL;

	if (model_parse("t.yaml", text, len, &f, &errs)) {
		fail_msg("%d:%d: %s", errs.v[0].line, errs.v[0].col,
			 errs.v[0].msg);
	}
	assert_int_equal(errs.n, 0);
	err_list_fini(&errs);
	check_invariants(f);
	return f;
}

static struct model_fabric *accept(const char *text)
{
	return accept_bytes(text, strlen(text));
}

static struct model_fabric *load(const char *path)
{
	struct err_list errs = { 0 };
	struct model_fabric *f = NULL;

	assert_int_equal(0, model_load(path, &f, &errs));
	check_invariants(f);
	return f;
}

/* The text is refused with this as its first error. */
static void refuse_at(const char *text, int code, int line, int col,
		      const char *msg)
{
	struct err_list errs = { 0 };
	struct model_fabric *f = NULL;

	assert_int_equal(code, model_parse("t.yaml", text, strlen(text), &f,
					   &errs));
	assert_null(f);
	assert_string_equal(errs.v[0].msg, msg);
	assert_string_equal(errs.v[0].file, "t.yaml");
	assert_int_equal(errs.v[0].line, line);
	assert_int_equal(errs.v[0].col, col);
	err_list_fini(&errs);
}

static const struct model_port *port_of(const struct model_fabric *f,
					const char *name)
{
	for (int i = 0; i < f->n_ports; i++) {
		if (strcmp(f->ports[i].name, name) == 0) {
			return &f->ports[i];
		}
	}
	fail_msg("no port %s", name);
	return NULL;
}

#define HOSTS                                                             \
	"weft: 1\n"                                                       \
	"fabric: t\n"                                                     \
	"hosts:\n"                                                        \
	"  - { name: 'h[0-3]', ports: 'p[0-1]', rate: 1Gbps }\n"

#define SWITCH "switches:\n  - { name: s, size: 8x8, driver: sim }\n"

/* ---- the values of the examples ---- */

static void demo_has_its_ring(void **state)
{
	struct model_fabric *f = load("configs/fabrics/demo.yaml");
	int d = model_find_device(f, "ring0");
	const struct model_device *r = &f->devices[d];

	(void)state;
	assert_true(d >= 0);
	assert_string_equal(model_device_kind_name(r->kind), "ring");
	assert_string_equal(r->driver, "mrr-reg");
	assert_string_equal(r->address, "127.0.0.1:7700");
	assert_string_equal(r->domain, "ring0");
	assert_int_equal(r->ring.n, 64);
	assert_int_equal(r->ring.fibres, 1);
	assert_int_equal(r->ring.channels, 16);
	assert_int_equal(r->channel_bps, 40000000000);
	assert_int_equal(r->retune_ns, 25000);
	assert_int_equal(r->conversion_ns, 0);
	assert_int_equal(r->span_delay_ns, 0);
	assert_int_equal(r->timeout_ms, 0);
	assert_true(r->has_loss);
	assert_int_equal(r->loss.launch_mdbm, 0);
	assert_int_equal(r->loss.sensitivity_mdbm, -17000);
	assert_int_equal(r->loss.margin_mdb, 3000);
	assert_int_equal(r->loss.add_mdb, 500);
	assert_int_equal(r->loss.drop_mdb, 500);
	assert_int_equal(r->loss.pass_mdb, 10);
	assert_int_equal(r->loss.rings_per_node, 0);
	assert_int_equal(r->loss.span_mdb, 100);
	for (int i = 0; i < 64; i++) {
		char name[16];

		snprintf(name, sizeof(name), "node%02d", i);
		assert_int_equal(r->members[i], model_find_host(f, name));
	}
	model_free(f);
}

static void demo_has_its_switches(void **state)
{
	struct model_fabric *f = load("configs/fabrics/demo.yaml");
	const struct model_device *s =
		&f->devices[model_find_device(f, "ocs1")];
	const struct model_port *p = port_of(f, "gpu05.p3");

	(void)state;
	assert_int_equal(s->kind, MODEL_SWITCH);
	assert_int_equal(s->n_in, 32);
	assert_int_equal(s->n_out, 32);
	assert_false(s->any_to_any);
	assert_string_equal(s->address, "127.0.0.1:5026");
	assert_int_equal(s->loss_mdb, 1500);
	assert_int_equal(s->switch_ns, 45000000);
	assert_int_equal(s->timeout_ms, 5000);
	assert_int_equal(s->n_options, 1);
	assert_string_equal(s->options[0].key, "gap_ms");
	assert_string_equal(s->options[0].value, "1");
	assert_int_equal(p->rate_bps, 100000000000);
	assert_int_equal(p->tx_device, s - f->devices);
	assert_int_equal(p->tx_port, 11);
	assert_int_equal(p->rx_port, 11);
	assert_int_equal(p->tx_loss_mdb, 200);
	assert_int_equal(p->rx_loss_mdb, 200);
	assert_int_equal(f->hosts[p->host].reactivation_ns, 5670000000);
	model_free(f);
}

static void demo_has_its_jobs(void **state)
{
	struct model_fabric *f = load("configs/fabrics/demo.yaml");
	const struct model_job *g = &f->jobs[model_find_job(f, "gather")];
	const struct model_job *r = &f->jobs[model_find_job(f, "reduce")];

	(void)state;
	assert_int_equal(g->collective, COLL_ALLGATHER);
	assert_int_equal(g->device, model_find_device(f, "ring0"));
	assert_int_equal(g->n_hosts, 64);
	assert_int_equal(g->hosts[63], model_find_host(f, "node63"));
	assert_int_equal(g->size_bytes, 4000000);
	assert_int_equal(g->alpha_ns, -1);
	assert_int_equal(g->depth, 0);
	assert_string_equal(g->algorithm, "auto");
	assert_int_equal(r->collective, COLL_ALLREDUCE);
	assert_int_equal(r->device, -1);
	assert_int_equal(r->n_hosts, 16);
	assert_int_equal(r->hosts[3], model_find_host(f, "gpu03"));
	assert_int_equal(r->size_bytes, 1 << 20);
	assert_int_equal(r->alpha_ns, 10000);
	assert_string_equal(r->topology, "C(16,{1,4})");
	model_free(f);
}

static void simplex_fibres_may_cross(void **state)
{
	struct model_fabric *f = load("configs/fabrics/two-switches.yaml");
	const struct model_port *p = port_of(f, "gpu7.p2");
	const struct model_port *q = port_of(f, "gpu7.p3");

	(void)state;
	assert_int_equal(p->tx_port, 14);
	assert_int_equal(p->rx_port, 15);
	assert_int_equal(q->tx_port, 15);
	assert_int_equal(q->rx_port, 14);
	assert_int_equal(q->tx_loss_mdb, 300);
	assert_int_equal(q->rx_loss_mdb, 400);
	assert_string_equal(f->devices[0].domain, "left");
	assert_string_equal(f->devices[1].domain, "right");
	assert_int_equal(f->jobs[1].n_hosts, 4);
	model_free(f);
}

static void ports_without_sides_carry_both_directions(void **state)
{
	struct model_fabric *f = load("configs/fabrics/any-to-any.yaml");
	const struct model_device *d = &f->devices[0];
	const struct model_port *p = port_of(f, "gpu2.p1");

	(void)state;
	assert_true(d->any_to_any);
	assert_int_equal(d->n_in, 48);
	assert_int_equal(d->n_out, 48);
	assert_int_equal(p->tx_port, 9);
	assert_int_equal(p->rx_port, 9);
	assert_int_equal(d->in_port[40], -1);
	model_free(f);
}

static void panels_have_their_own_defaults(void **state)
{
	struct model_fabric *f = accept(
		HOSTS SWITCH
		"panels:\n  - { name: p, size: 4x8, driver: sim }\n");

	(void)state;
	assert_int_equal(f->devices[0].kind, MODEL_SWITCH);
	assert_int_equal(f->devices[0].switch_ns, 45000000);
	assert_int_equal(f->devices[0].loss_mdb, 2000);
	assert_int_equal(f->devices[1].kind, MODEL_PANEL);
	assert_int_equal(f->devices[1].switch_ns, 60000000000);
	assert_int_equal(f->devices[1].loss_mdb, 1000);
	assert_int_equal(f->devices[1].n_in, 4);
	assert_int_equal(f->devices[1].n_out, 8);
	assert_string_equal(f->devices[1].address, "");
	model_free(f);
}

static void fibres_join_panels_to_switches(void **state)
{
	struct model_fabric *f = accept(
		HOSTS SWITCH
		"panels:\n  - { name: p, size: 4x8, driver: sim }\n"
		"fibres:\n  - { from: 'p.out8', to: 's.in1', "
		"loss: 0.5dB }\n");
	const struct model_trunk *t = &f->trunks[0];

	(void)state;
	assert_int_equal(f->n_trunks, 1);
	assert_int_equal(f->devices[t->from_device].kind, MODEL_PANEL);
	assert_int_equal(t->from_port, 7);
	assert_int_equal(f->devices[t->to_device].kind, MODEL_SWITCH);
	assert_int_equal(t->loss_mdb, 500);
	assert_int_equal(f->devices[1].out_port[7], MODEL_AT_TRUNK);
	model_free(f);
}

static void jobs_default_to_all_hosts_with_ports(void **state)
{
	struct model_fabric *f = accept(
		HOSTS "  - name: n[0-1]\n" SWITCH
		"rings:\n"
		"  - { name: r, nodes: 'n[1,0]', channels: 2, "
		"channel-rate: 1Gbps, driver: sim-ring }\n"
		"fibres:\n  - { from: 'h[0-3].p[0-1]', to: 's.[1-8]' }\n"
		"jobs:\n"
		"  - { name: a, collective: broadcast, size: 1B }\n"
		"  - { name: b, ring: r, collective: all-to-all, size: 1kB, "
		"depth: 3, alpha: 7us }\n");

	(void)state;
	assert_int_equal(f->jobs[0].n_hosts, 4);
	assert_int_equal(f->jobs[0].hosts[3], 3);
	assert_int_equal(f->jobs[0].alpha_ns, 10000);
	assert_int_equal(f->jobs[1].n_hosts, 2);
	assert_int_equal(f->jobs[1].hosts[0], model_find_host(f, "n1"));
	assert_int_equal(f->jobs[1].depth, 3);
	assert_int_equal(f->jobs[1].alpha_ns, 7000);
	assert_false(f->devices[1].has_loss);
	model_free(f);
}

static void names_are_found_or_not(void **state)
{
	struct model_fabric *f = load("configs/fabrics/demo.yaml");

	(void)state;
	assert_int_equal(model_find_host(f, "ring0"), -1);
	assert_int_equal(model_find_host(f, ""), -1);
	assert_int_equal(model_find_device(f, "gpu00"), -1);
	assert_int_equal(model_find_job(f, "ring0"), -1);
	model_free(f);
	model_free(NULL);
}

/* ---- the text ---- */

/* One error for a list, with all of its names that there is room for. */
static void unknown_names_are_all_named(void **state)
{
	static const char head[] = "weft: 1\nfabric: t\nhosts: [{ name: 'n[0-3]' }]\nrings: "
		"[{ name: r, nodes: 'n[0-3]', channels: 4, channel-rate: 40Gbps, "
		"driver: sim-ring }]\n";
	char text[512];

	(void)state;
	snprintf(text, sizeof(text), "%sjobs:\n  - { name: j, ring: r, nodes: 'n[2-6]', "
		 "collective: allgather, size: 1MiB }\n", head);
	refuse_at(text, WEFT_EINVAL, 6, 32, "job j: there is no host 'n4' (and n5, n6)");
	snprintf(text, sizeof(text), "%sjobs:\n  - { name: j, ring: r, nodes: 'n[0-90]', "
		 "collective: allgather, size: 1MiB }\n", head);
	refuse_at(text, WEFT_EINVAL, 6, 32, "job j: there is no host 'n4' (and "
		  "n5, n6, n7, n8, n9, n10, n11, n12, n13, n14, n15, n16, n17, n18, n19, n20, "
		  "n21, n22, n23, n24, n25, n26, n27, n28, n29, n30, n31, n32, n33, n34, n35, "
		  "n36, and 54 more)");
}

static void text_and_hash_are_kept(void **state)
{
	struct model_fabric *f = accept(HOSTS SWITCH);

	(void)state;
	assert_string_equal(f->name, "t");
	assert_string_equal(f->config.name, "t.yaml");
	assert_int_equal(f->config.len, strlen(HOSTS SWITCH));
	assert_string_equal(f->config.text, HOSTS SWITCH);
	/* sha256sum of the same bytes. */
	assert_string_equal(f->hash, "9cc1d7677e3dcf326e84cbc6a0a9588d"
				     "3713d9fa25307221b61a09aea69c7743");
	model_free(f);
}

static void byte_order_mark_and_line_ends_do_not_matter(void **state)
{
	struct model_fabric *f = accept("\xef\xbb\xbf" HOSTS SWITCH);
	struct buf crlf = { 0 };

	(void)state;
	model_free(f);
	for (const char *p = HOSTS SWITCH; *p; p++) {
		buf_str(&crlf, *p == '\n' ? "\r\n" : (char[]){ *p, 0 });
	}
	f = accept(crlf.data);
	assert_int_equal(f->hosts[0].place.line, 4);
	model_free(f);
	buf_fini(&crlf);
	refuse_at("\xef\xbb\xbfweft: x\n", WEFT_EINVAL, 1, 1,
		  "fabric: key 'fabric' is missing");
	refuse_at("weft: 1\n\xef\xbb\xbf" "fabric: t\n", WEFT_EINVAL, 2, 1,
		  "text: character U+FEFF is not allowed");
}

static void text_must_be_utf8(void **state)
{
	static const char *const bad[] = {
		"\x80", "\xc0\x80", "\xc1\xbf", "\xe0\x80\x80", "\xe2\x82",
		"\xed\xa0\x80", "\xf0\x80\x80\x80", "\xf4\x90\x80\x80",
		"\xf8\x88\x80\x80\x80", "\xff",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		char text[64], msg[64];

		snprintf(text, sizeof(text), "# \xc3\xa9\n# \xc3\xa9 %s\n",
			 bad[i]);
		snprintf(msg, sizeof(msg), "text: byte 0x%02x is not UTF-8",
			 (unsigned char)bad[i][0]);
		/* The column counts characters. */
		refuse_at(text, WEFT_EINVAL, 2, 5, msg);
	}
	model_free(accept("# \xc3\xa9 \xe2\x82\xac \xf0\x9f\x94\xa6\n"
			  HOSTS SWITCH));
}

static void nul_bytes_are_refused(void **state)
{
	static const char text[] = "weft: 1\nfabric: t\0t\n";
	struct err_list errs = { 0 };
	struct model_fabric *f;

	(void)state;
	assert_int_equal(WEFT_EINVAL, model_parse("t", text, sizeof(text) - 1,
						  &f, &errs));
	assert_string_equal(errs.v[0].msg,
			    "text: character U+0000 is not allowed");
	assert_int_equal(errs.v[0].line, 2);
	assert_int_equal(errs.v[0].col, 10);
	err_list_fini(&errs);
}

static void places_point_into_the_text(void **state)
{
	(void)state;
	refuse_at(HOSTS SWITCH "fibres:\n"
		  "  - { from: 'h[0-3].p[1-0]', to: 's.[1-8]' }\n",
		  WEFT_EINVAL, 8, 23,
		  "fibre 1: from: the range 1-0 runs backwards");
	refuse_at(HOSTS SWITCH "fibres:\n"
		  "  - from: h[0-3].p[1-0]\n    to: s.1\n",
		  WEFT_EINVAL, 8, 20,
		  "fibre 1: from: the range 1-0 runs backwards");
	/* An escape moves what follows: only the text's start is sure. */
	refuse_at(HOSTS SWITCH "fibres:\n"
		  "  - { from: \"\\x68[0-3].p[1-0]\", to: 's.[1-8]' }\n",
		  WEFT_EINVAL, 8, 13,
		  "fibre 1: from: the range 1-0 runs backwards");
}

static void no_value_turns_the_direction_of_writing(void **state)
{
	(void)state;
	refuse_at(HOSTS SWITCH "fibres:\n"
		  "  - { from: 'h[0-3].p\xe2\x80\xae[0-1]', to: 's.[1-8]' }\n",
		  WEFT_EINVAL, 8, 13, "text: a mark of writing direction inside a value");
}

/* ---- limits ---- */

static void a_text_that_is_too_long_is_not_read(void **state)
{
	size_t len = MODEL_MAX_TEXT + 1;
	char *text = malloc(len);
	struct err_list errs = { 0 };
	struct model_fabric *f;

	(void)state;
	assert_non_null(text);
	memset(text, '#', len);
	assert_int_equal(WEFT_ELIMIT, model_parse("t", text, len, &f, &errs));
	assert_string_equal(errs.v[0].msg,
			    "text: 16777217 bytes, at most 16777216 are read");
	err_list_fini(&errs);
	free(text);
}

static void errors_beyond_the_most_are_counted(void **state)
{
	struct err_list errs = { .max = 3 };
	struct model_fabric *f;
	const char *text = "a: 1\nb: 1\nc: 1\nd: 1\ne: 1\n";

	(void)state;
	/* Five unknown keys, three missing ones. */
	assert_int_equal(WEFT_EINVAL,
			 model_parse("t", text, strlen(text), &f, &errs));
	assert_int_equal(errs.n, 3);
	assert_int_equal(errs.dropped, 5);
	err_list_fini(&errs);
}

/* All ranges of a fabric draw on one budget, before memory is spent. */
static void ranges_share_a_budget(void **state)
{
	struct conf_node text = { .kind = CONF_NODE_TEXT, .text = "a[0-3]" };
	struct err_list errs = { 0 };
	struct conf_arena keep = { 0 };
	struct fabric fabric = { 0 };
	struct conf_reader r;
	struct model_build b = { .r = &r, .f = &fabric };

	(void)state;
	conf_reader_init(&r, "t", "fabric", &keep, &errs);
	b.names_left = 7;
	assert_non_null(build_names(&b, "x", "y", &text, &keep, 100));
	assert_int_equal(b.names_left, 3);
	assert_null(build_names(&b, "x", "y", &text, &keep, 100));
	assert_int_equal(errs.n, 1);
	assert_int_equal(errs.v[0].code, WEFT_ELIMIT);
	assert_string_equal(errs.v[0].msg, "x: y: more than 3 names");
	conf_reader_fini(&r);
	conf_arena_fini(&keep);
	err_list_fini(&errs);
}

static void many_devices_may_not_eat_memory(void **state)
{
	(void)state;
	refuse_at(HOSTS "switches:\n"
		  "  - { name: 's[0-99]', size: 65536x65536, driver: sim }\n",
		  WEFT_ELIMIT, 6, 5,
		  "switch s[0-99]: more than 2097152 device ports in all");
}

#define WIRED                                                             \
	HOSTS SWITCH "fibres:\n"                                          \
	"  - { from: 'h[0-3].p[0-1]', to: 's.[1-8]' }\n"                  \
	"jobs:\n"                                                         \
	"  - { name: j, collective: allreduce, size: 1B, topology: "

static void a_graph_is_not_built_when_it_cannot_fit(void **state)
{
	(void)state;
	refuse_at(WIRED "'Torus(4,70000,99999999999999999999)' }\n",
		  WEFT_EINVAL, 10, 68, "job j: topology: 70000 is too large "
		  "for 4 hosts with 2 ports");
	refuse_at(WIRED "'K(4)' }\n", WEFT_EINVAL, 10, 62,
		  "job j: topology: 4 is too large for 4 hosts with 2 ports");
	refuse_at(WIRED "'UniRing(3,4)' }\n", WEFT_EINVAL, 10, 68,
		  "job j: topology: 3 is too large for 4 hosts with 2 ports");
	model_free(accept(WIRED "'UniRing(2,4)' }\n"));
	model_free(accept(WIRED "'K(2,2)' }\n"));
	model_free(accept(WIRED "' C ( 4 , { 1 } ) ' }\n"));
}

/* Three servers of Diamond's eight ranks have more ports than hosts. */
#define SERVERS                                                                            \
	"weft: 1\nfabric: f\nhosts:\n"                                                     \
	"  - { name: 'h[0-2]', ports: 'p[0-7]', rate: 200Gbps, inside: Diamond }\n"          \
	"switches:\n  - { name: s, size: 24x24, driver: sim }\nfibres:\n"                   \
	"  - { from: 'h[0-2].p[0-7]', to: 's.[1-24]' }\njobs:\n"                             \
	"  - { name: j, collective: allreduce, size: 1B, nodes: 'h[0-2]', topology: "

static void a_degree_may_exceed_the_hosts(void **state)
{
	(void)state;
	model_free(accept(SERVERS "'UniRing(8,3)' }\n"));
	model_free(accept(SERVERS "'BiRing(8,3)' }\n"));
	model_free(accept(SERVERS "'Multi(K(3),4)' }\n"));
	refuse_at(SERVERS "'BiRing(10,3)' }\n", WEFT_EINVAL, 10, 84,
		  "job j: topology: 10 is too large for 3 hosts with 8 ports");
}

/* ---- size ---- */

static void a_large_fabric_is_read_exactly(void **state)
{
	struct model_fabric *f = accept(
		"weft: 1\n"
		"fabric: large\n"
		"hosts:\n"
		"  - { name: 'h[00000-16383]', ports: 'p[0-3]', "
		"rate: 400Gbps }\n"
		"switches:\n"
		"  - { name: 's[0-63]', size: 1024x1024, driver: sim }\n"
		"fibres:\n"
		"  - { from: 'h[00000-16383].p[0-3]', "
		"to: 's[0-63].[1-1024]' }\n");
	const struct model_port *p;

	(void)state;
	assert_int_equal(f->n_ports, 65536);
	p = &f->ports[f->hosts[model_find_host(f, "h12345")].first_port + 2];
	assert_string_equal(p->name, "h12345.p2");
	assert_int_equal(p->tx_device, (4 * 12345 + 2) / 1024);
	assert_int_equal(p->tx_port, (4 * 12345 + 2) % 1024);
	model_free(f);
}

/* Single entries in random order join what one range joins. */
static void order_and_ranges_do_not_matter(void **state)
{
	struct rng rng;

	(void)state;
	rng_seed(&rng, 5);
	for (int round = 0; round < 20; round++) {
		struct buf text = { 0 };
		struct model_fabric *f;
		int order[8];

		for (int i = 0; i < 8; i++) {
			int j = (int)rng_below(&rng, (uint64_t)i + 1);

			order[i] = order[j];
			order[j] = i;
		}
		buf_str(&text, HOSTS SWITCH "fibres:\n");
		for (int i = 0; i < 8; i++) {
			buf_printf(&text, "  - { from: h%d.p%d, to: s.%d }\n",
				   order[i] / 2, order[i] % 2, order[i] + 1);
		}
		f = accept(text.data);
		for (int i = 0; i < 8; i++) {
			assert_int_equal(f->devices[0].in_port[i], i);
			assert_int_equal(f->devices[0].out_port[i], i);
		}
		model_free(f);
		buf_fini(&text);
	}
}

/* ---- circuits and ports ---- */

static void check_port(const struct model_fabric *f, const char *text, const char *name, int lanes)
{
	struct err err = { 0 };
	int port, n;

	assert_int_equal(model_find_port(f, text, &port, &n, &err), 0);
	assert_string_equal(f->ports[port].name, name);
	assert_int_equal(n, lanes);
}

static void ports_are_found_by_name_lane_and_label(void **state)
{
	struct model_fabric *f = load("configs/fabrics/circuits.yaml");
	struct err err = { 0 };
	int port, n;

	(void)state;
	check_port(f, "dut.Ethernet3", "dut.Ethernet3", 1);
	check_port(f, "switch-t0-1, rack 7.Ethernet3", "dut.Ethernet3", 1);
	check_port(f, "chassis1.q1-3", "chassis1.q1-3", 1);
	check_port(f, "chassis1.q1", "chassis1.q1-1", 4);
	check_port(f, "chassis0.Card1/Port2", "chassis0.q1-1", 4);
	assert_int_equal(f->ports[f->hosts[2].first_port].rate_bps, INT64_C(100000000000));
	assert_int_equal(model_find_port(f, "dut.Ethernet", &port, &n, &err), WEFT_ENOTFOUND);
	assert_int_equal(model_find_port(f, "dut", &port, &n, &err), WEFT_ENOTFOUND);
	model_free(f);
}

/* Reads the fabric of circuits with one request more. */
static int with_request(const struct model_request *r, struct model_fabric **out, struct err *why)
{
	struct model_fabric *base = load("configs/fabrics/circuits.yaml");
	struct err_list errs = { 0 };
	struct model_config config;
	int rc;

	model_config_copy(&config, &base->config);
	model_config_add(&config, r);
	rc = model_parse_config(&config, out, &errs);
	if (rc) {
		*why = errs.v[0];
	} else {
		check_invariants(*out);
	}
	err_list_fini(&errs);
	model_config_fini(&config);
	model_free(base);
	return rc;
}

static void requests_have_circuits_and_ports(void **state)
{
	struct model_request r = {
		.name = (char *)"mine",
		.circuits = (char *)"dut.Ethernet13 tg.p13\ndut.Ethernet14 tg.p14 one-way",
	};
	struct model_fabric *f = NULL;
	struct err why;
	int job;

	(void)state;
	assert_int_equal(with_request(&r, &f, &why), 0);
	job = model_find_job(f, "mine");
	assert_true(f->jobs[job].requested && f->jobs[job].kind == MODEL_CIRCUITS);
	assert_int_equal(f->jobs[job].n_links, 3);
	assert_int_equal(f->jobs[job].n_hosts, 2);
	model_free(f);

	r.circuits = (char *)"dut.Ethernet0 tg.p13";
	assert_int_equal(with_request(&r, &f, &why), WEFT_EINVAL);
	assert_string_equal(why.msg, "group mine: dut.Ethernet0 already sends light of up0 from "
			    "line 19");
	r.name = (char *)"bed-1";
	r.circuits = (char *)"dut.Ethernet13 tg.p13";
	assert_int_equal(with_request(&r, &f, &why), WEFT_EINVAL);
	assert_string_equal(why.msg, "group bed-1: name 'bed-1' is already a job on line 24");

	/* What a job of the text chose stays its own. */
	r = (struct model_request){ .name = (char *)"mine", .nodes = (char *)"chassis0 chassis1",
				    .collective = (char *)"allgather", .size_bytes = 1000,
				    .ports = (char *)"q1" };
	assert_int_equal(with_request(&r, &f, &why), 0);
	assert_int_equal(f->jobs[model_find_job(f, "mine")].n_ports, 8);
	model_free(f);
	r.ports = (char *)"3";
	assert_int_equal(with_request(&r, &f, &why), 0);
	assert_int_equal(f->jobs[model_find_job(f, "mine")].n_ports, 6);
	model_free(f);
	for (int k = 0; k < 2; k++) {
		r.topology = (char *)(k ? "protect 1+1 K(2)" : "protect shared ");
		assert_int_equal(with_request(&r, &f, &why), 0);
		job = model_find_job(f, "mine");
		assert_int_equal(f->jobs[job].protect, k ? MODEL_DEDICATED : MODEL_SHARED);
		assert_string_equal(f->jobs[job].topology, k ? "K(2)" : "auto");
		model_free(f);
	}
	r.ports = (char *)"q0";
	assert_int_equal(with_request(&r, &f, &why), WEFT_EINVAL);
	assert_non_null(strstr(why.msg, "already a port of wide"));
}

static void the_hash_of_a_request_without_them_is_what_it_was(void **state)
{
	const struct model_request old = { .name = (char *)"a", .nodes = (char *)"h0 h1",
					   .collective = (char *)"allgather", .size_bytes = 5 };
	struct model_request new = old;
	struct model_config config;
	char was[65], now[65];

	(void)state;
	model_config_init(&config, "t", "x", 1);
	model_config_add(&config, &old);
	model_config_hash(&config, was);
	model_config_fini(&config);
	assert_string_equal(was, "d1f3e0a8045322d2374188bd5ae942dc"
			    "4c450a2b3bbb900bbd0e82affc88058f");
	new.ports = (char *)"p0";
	model_config_init(&config, "t", "x", 1);
	model_config_add(&config, &new);
	model_config_hash(&config, now);
	model_config_fini(&config);
	assert_string_not_equal(was, now);
}

static void labels_have_at_most_255_bytes(void **state)
{
	char text[1024], label[258];

	(void)state;
	memset(label, 'x', sizeof(label));
	memcpy(label, "\xc3\xbc", 2);
	for (size_t n = 255; n <= 256; n++) {
		label[n] = '\0';
		snprintf(text, sizeof(text), "weft: 1\nfabric: t\nhosts:\n  - { name: h, ports: p, "
			 "rate: 1Gbps, label: '%s' }\n", label);
		if (n == 255) {
			model_free(accept(text));
		} else {
			refuse_at(text, WEFT_EINVAL, 4, 46,
				  "host h: label: not a text of 1 to 255 bytes");
		}
		label[n] = 'x';
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(demo_has_its_ring),
		cmocka_unit_test(demo_has_its_switches),
		cmocka_unit_test(demo_has_its_jobs),
		cmocka_unit_test(simplex_fibres_may_cross),
		cmocka_unit_test(ports_without_sides_carry_both_directions),
		cmocka_unit_test(panels_have_their_own_defaults),
		cmocka_unit_test(fibres_join_panels_to_switches),
		cmocka_unit_test(jobs_default_to_all_hosts_with_ports),
		cmocka_unit_test(names_are_found_or_not),
		cmocka_unit_test(unknown_names_are_all_named),
		cmocka_unit_test(text_and_hash_are_kept),
		cmocka_unit_test(byte_order_mark_and_line_ends_do_not_matter),
		cmocka_unit_test(text_must_be_utf8),
		cmocka_unit_test(nul_bytes_are_refused),
		cmocka_unit_test(places_point_into_the_text),
		cmocka_unit_test(no_value_turns_the_direction_of_writing),
		cmocka_unit_test(a_text_that_is_too_long_is_not_read),
		cmocka_unit_test(errors_beyond_the_most_are_counted),
		cmocka_unit_test(ranges_share_a_budget),
		cmocka_unit_test(many_devices_may_not_eat_memory),
		cmocka_unit_test(a_graph_is_not_built_when_it_cannot_fit),
		cmocka_unit_test(a_degree_may_exceed_the_hosts),
		cmocka_unit_test(a_large_fabric_is_read_exactly),
		cmocka_unit_test(order_and_ranges_do_not_matter),
		cmocka_unit_test(ports_are_found_by_name_lane_and_label),
		cmocka_unit_test(requests_have_circuits_and_ports),
		cmocka_unit_test(the_hash_of_a_request_without_them_is_what_it_was),
		cmocka_unit_test(labels_have_at_most_255_bytes),
	};

	return cmocka_run_group_tests_name("model/fabric", tests, NULL, NULL);
}
