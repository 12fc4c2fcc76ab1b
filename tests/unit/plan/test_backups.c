/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Backups of light over trunks: whatever link is cut, the plan lights exactly the backups of the
 * lightpaths that it hits, as the plan before named them, and no other circuit is touched.
 */
#include "tests/unit/plan/fixture.h"

#define SITES 5
#define LINKS 7

static const int link_ends[LINKS][2] = { { 0, 1 }, { 1, 2 }, { 2, 3 }, { 3, 4 }, { 0, 4 },
					 { 0, 2 }, { 1, 3 } };

/* The first port of a link at one of its ends. */
static int port_of(int link, int site, int channels)
{
	int port = SITES;

	for (int l = 0; l < link; l++) {
		port += link_ends[l][0] == site || link_ends[l][1] == site ? channels : 0;
	}
	return port;
}

/* A host at each site, light between all pairs; with links cut, both ways or one. "@shared": not
 * the job asks, but the first two links. */
static struct model_fabric *fabric(const char *protect, int channels, int cut, int ways)
{
	bool by_link = protect[0] == '@';
	struct buf b = { 0 };
	struct model_fabric *f;

	buf_printf(&b, "weft: 1\nfabric: f\nhosts:\n  - { name: 'h[0-4]', ports: 'p[0-3]', "
		   "rate: 100Gbps, channels: 0-%d }\nswitches:\n", channels - 1);
	for (int s = 0; s < SITES; s++) {
		buf_printf(&b, "  - { name: s%d, size: 60x60, driver: sim }\n", s);
	}
	buf_str(&b, "fibres:\n");
	for (int s = 0; s < SITES; s++) {
		buf_printf(&b, "  - { from: 'h%d.p[0-3]', to: 's%d.[1-4]' }\n", s, s);
	}
	for (int l = 0; l < LINKS; l++) {
		int x = link_ends[l][0], y = link_ends[l][1];
		int p = port_of(l, x, channels), q = port_of(l, y, channels);

		buf_printf(&b, "  - { from: 's%d.[%d-%d]', to: 's%d.[%d-%d]', "
			   "channels: 0-%d%s%s }\n", x, p, p + channels - 1, y, q, q + channels - 1,
			   channels - 1,
			   by_link && l < 2 ? ", protect: " : "",
			   by_link && l < 2 ? protect + 1 : "");
	}
	for (int w = 0; cut >= 0 && w < ways; w++) {
		int p = port_of(cut, link_ends[cut][w], channels);

		buf_printf(&b, "%s  - { port: 's%d.out[%d-%d]' }\n", w ? "" : "dead:\n",
			   link_ends[cut][w], p, p + channels - 1);
	}
	buf_printf(&b, "jobs:\n  - { name: j, nodes: 'h[0-4]', collective: allgather, size: 1MiB, "
		   "topology: K(5), protect: %s }\n", by_link ? "none" : protect);
	f = fabric_of(buf_cstr(&b));
	buf_fini(&b);
	return f;
}

static bool has(const struct plan_circuit *v, int n, const struct plan_circuit *c, bool by_port)
{
	bool found = false;

	for (int i = 0; i < n; i++) {
		found |= v[i].device == c->device && v[i].xc.in == c->xc.in &&
			 v[i].xc.out == c->xc.out && (!by_port || v[i].tx_port == c->tx_port);
	}
	return found;
}

/* Whether the lightpath of a port passes the link that is cut. */
static bool is_hit(const struct plan_job *pj, int tx_port, int cut, int ways, int channels)
{
	bool hit = false;

	for (int i = 0; i < pj->n_circuits; i++) {
		for (int w = 0; w < ways; w++) {
			const struct plan_circuit *c = &pj->circuits[i];
			int first = port_of(cut, link_ends[cut][w], channels) - 1;

			hit |= c->tx_port == tx_port && c->device == link_ends[cut][w] &&
			       c->xc.out >= first && c->xc.out < first + channels;
		}
	}
	return hit;
}

static int check_cut(const struct plan *p, const char *protect, int channels, int cut, int ways)
{
	struct plan_light *light = light_after(p);
	struct plan_base base = { .intent = light, .observed = light };
	struct model_fabric *f = fabric(protect, channels, cut, ways);
	const struct plan_job *a = &p->jobs[0], *b;
	struct err err = { 0 };
	struct plan *q = NULL;
	int moved = 0;

	if (plan_make(f, &base, &q, &err)) {
		fail_msg("%s", err.msg);
	}
	b = &q->jobs[0];
	for (int i = 0; i < a->n_circuits; i++) {
		const struct plan_circuit *c = &a->circuits[i];

		assert_true(is_hit(a, c->tx_port, cut, ways, channels) ||
			    has(b->circuits, b->n_circuits, c, true));
	}
	for (int i = 0; i < b->n_circuits; i++) {
		const struct plan_circuit *c = &b->circuits[i];
		bool hit = is_hit(a, c->tx_port, cut, ways, channels);

		assert_true(has(hit ? a->backups : a->circuits, hit ? a->n_backups : a->n_circuits,
				c, true));
		moved += hit && c->device == c->tx_port / 4;
	}
	plan_free(q);
	model_free(f);
	free(light);
	return moved;
}

static void check_kind(const char *protect, int channels)
{
	struct model_fabric *f = fabric(protect, channels, -1, 0);
	struct plan *p = plan_of(f, NULL);
	const struct plan_job *pj = &p->jobs[0];
	int moved = 0;

	assert_int_equal(pj->n_protected, SITES * (SITES - 1));
	assert_int_equal(pj->n_unprotected, 0);
	for (int i = 0; i < pj->n_backups; i++) {
		/* In the way of nothing that is lit but at the ports of its own lightpath. */
		for (int k = 0; k < pj->n_circuits; k++) {
			const struct plan_circuit *x = &pj->backups[i], *y = &pj->circuits[k];

			assert_true(x->device != y->device || x->tx_port == y->tx_port ||
				    (x->xc.in != y->xc.in && x->xc.out != y->xc.out));
		}
	}
	for (int cut = 0; cut < LINKS; cut++) {
		for (int ways = 1; ways <= 2; ways++) {
			moved += check_cut(p, protect, channels, cut, ways);
		}
	}
	print_message("# %s: %d lightpaths moved\n", protect, moved);
	assert_true(moved >= 2 * SITES * (SITES - 1) * 3 / 4);
	plan_free(p);
	model_free(f);
}

static void exactly_backups_are_lit(void **state)
{
	(void)state;
	check_kind("shared", 4);
	check_kind("1+1", 6);
}

/* Lightpaths over links that ask for it have backups, those of other links none. */
static void links_ask_for_backups(void **state)
{
	struct model_fabric *f = fabric("@shared", 5, -1, 0);
	struct plan *p = plan_of(f, NULL);
	const struct plan_job *pj = &p->jobs[0];
	int over = 0, moved = 0;

	(void)state;
	for (int port = 0; port < 4 * SITES; port++) {
		over += is_hit(pj, port, 0, 2, 5) || is_hit(pj, port, 1, 2, 5);
	}
	assert_true(over >= 4 && over < SITES * (SITES - 1));
	assert_int_equal(pj->n_protected, over);
	assert_int_equal(pj->n_unprotected, 0);
	for (int cut = 0; cut < 2; cut++) {
		for (int ways = 1; ways <= 2; ways++) {
			moved += check_cut(p, "@shared", 5, cut, ways);
		}
	}
	assert_true(moved >= over);
	plan_free(p);
	model_free(f);
}

/* Where fibres are too few, whole fabrics are refused; where some have failed, light is made. */
static void too_few(void **state)
{
	struct model_fabric *f = fabric("1+1", 3, -1, 0);
	struct err err = { 0 };
	struct plan *p = NULL;

	(void)state;
	assert_int_equal(plan_make(f, NULL, &p, &err), WEFT_EINFEASIBLE);
	assert_non_null(strstr(err.msg, "of 20 protected lightpaths find no backup"));
	model_free(f);
	f = fabric("1+1", 6, 4, 2);
	p = plan_of(f, NULL);
	assert_int_equal(p->jobs[0].n_protected + p->jobs[0].n_unprotected, 20);
	assert_true(p->jobs[0].n_unprotected >= 2);
	plan_free(p);
	model_free(f);
}

/* One link between two switches; with a second way of too few channels nothing is proven. */
static void only_link_is_proven(void **state)
{
	static const char text[] =
		"weft: 1\nfabric: f\nhosts:\n"
		"  - { name: 'h[0-3]', ports: 'p[0-1]', rate: 100Gbps, channels: 0-3 }\nswitches:\n"
		"  - { name: 's[0-2]', size: 12x12, driver: sim }\nfibres:\n"
		"  - { from: 'h[0-1].p[0-1]', to: 's0.[1-4]' }\n"
		"  - { from: 'h[2-3].p[0-1]', to: 's1.[1-4]' }\n"
		"  - { from: 's0.[5-8]', to: 's1.[5-8]', channels: 0-3 }\n%s"
		"jobs:\n  - { name: j, nodes: 'h[0-3]', collective: allgather, size: 1MiB, "
		"topology: Ring(4), protect: 1+1 }\n";
	static const char *const more[] = {
		"", "  - { from: 's0.9', to: 's2.1', channels: 0-0 }\n"
		    "  - { from: 's2.2', to: 's1.9', channels: 0-0 }\n" };

	(void)state;
	for (int k = 0; k < 2; k++) {
		struct buf b = { 0 };
		struct err err = { 0 };
		struct plan *p = NULL;
		struct model_fabric *f;

		buf_printf(&b, text, more[k]);
		f = fabric_of(buf_cstr(&b));
		assert_int_equal(plan_make(f, NULL, &p, &err), WEFT_EINFEASIBLE);
		assert_non_null(strstr(err.msg, k ? "find no backup" : "no backup of that light"));
		assert_int_equal(strstr(err.msg, "pass the link s0 -> s1") != NULL ||
				 strstr(err.msg, "pass the link s1 -> s0") != NULL, !k);
		model_free(f);
		buf_fini(&b);
	}
}

/* A host's last port is on the next switch, or it sends fewer wavelengths than the others. */
static void refused_by_name(void **state)
{
	static const char *const keys[][3] = {
		{ "'h0.p[0-3]', to: 's0.[1-4]'", "'h0.p[0-3]', to: 's0.[1-3],s1.60'",
		  "protect: h0 is on several switches" },
		{ "name: 'h[0-4]', ports: 'p[0-3]', rate: 100Gbps, channels: 0-3",
		  "name: 'h[1-4]', ports: 'p[0-3]', rate: 100Gbps, channels: 0-3 }\n"
		  "  - { name: h0, ports: 'p[0-3]', rate: 100Gbps, channels: 0-2",
		  "protect: hosts do not all send the same wavelengths" },
	};

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct model_fabric *whole = fabric("shared", 4, -1, 0), *f;
		const char *at = strstr(whole->config.text, keys[i][0]);
		struct buf b = { 0 };
		struct err err = { 0 };
		struct plan *p = NULL;

		assert_non_null(at);
		buf_add(&b, whole->config.text, (size_t)(at - whole->config.text));
		buf_printf(&b, "%s%s", keys[i][1], at + strlen(keys[i][0]));
		f = fabric_of(buf_cstr(&b));
		assert_int_equal(plan_make(f, NULL, &p, &err), WEFT_EUNSUPPORTED);
		assert_non_null(strstr(err.msg, keys[i][2]));
		model_free(f);
		model_free(whole);
		buf_fini(&b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exactly_backups_are_lit),
		cmocka_unit_test(links_ask_for_backups), cmocka_unit_test(too_few),
		cmocka_unit_test(only_link_is_proven),
		cmocka_unit_test(refused_by_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
