/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requested jobs of a number of ports: their configuration says which they have, they keep these
 * where they can, and no other of a number takes them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "controller/model/model.h"

/* Three hosts: ports 0 to 3 at one switch, 4 to 7 at the other. MORE: further lines. */
#define HOSTS(PORTS, MORE)                                                            \
	"weft: 1\nfabric: t\nhosts:\n"                                                  \
	"  - { name: 'h[0-2]', ports: 'p[0-" PORTS "]', rate: 1Gbps }\n"               \
	"switches:\n  - { name: 's[0-1]', size: 16x16, driver: sim }\nfibres:\n"        \
	"  - { from: 'h[0-2].p[0-3]', to: 's0.[1-12]' }\n" MORE
#define UPPER "  - { from: 'h[0-2].p[4-7]', to: 's1.[1-12]' }\n"
#define FABRIC(MORE) HOSTS("7", UPPER MORE)

/* Parses the text with these jobs on request, a line "NAME NODES / PORTS" each; the ports that
 * they have, "NAME PORTS" a line, or the error. */
static const char *ports_of(const char *text, const char *lines)
{
	static char out[2048];
	struct err_list errs = { .max = 4 };
	struct model_config config;
	struct model_fabric *f = NULL;
	char name[32], nodes[64], ports[512];
	int at = 0, n = 0;

	model_config_init(&config, "t", text, strlen(text));
	for (const char *p = lines; *p; p += n) {
		assert_int_equal(3, sscanf(p, "%31s %63[^/] / %511[^\n] %n", name, nodes, ports,
					   &n));
		nodes[strlen(nodes) - 1] = '\0';
		model_config_add(&config, &(struct model_request){
			.name = name, .nodes = nodes, .collective = (char *)"allgather",
			.size_bytes = 1, .ports = ports });
	}
	out[0] = '\0';
	if (model_parse_config(&config, &f, &errs)) {
		snprintf(out, sizeof(out), "%s", errs.v[0].msg);
	} else {
		char hash[65];

		for (int i = 0; i < f->config.n_requests; i++) {
			at += snprintf(out + at, sizeof(out) - (size_t)at, "%s%s / %s",
				       i ? "\n" : "", f->config.requests[i].name,
				       f->config.requests[i].ports);
		}
		model_config_hash(&f->config, hash);
		assert_string_equal(f->hash, hash);
	}
	err_list_fini(&errs);
	model_config_fini(&config);
	model_free(f);
	return out;
}

static void they_are_written_behind_the_number(void **state)
{
	(void)state;
	assert_string_equal(ports_of(FABRIC(""), "b h0 h1 / 2\na h0 h1 / 1"),
			    "b / 2 h0.p1 h0.p2 h1.p1 h1.p2\na / 1 h0.p0 h1.p0");
	/* Names are no number. */
	assert_string_equal(ports_of(FABRIC(""), "a h0 h1 / p1 p2"), "a / p1 p2");
}

static void they_are_kept(void **state)
{
	(void)state;
	assert_string_equal(ports_of(FABRIC(""), "b h0 h1 / 1 h0.p5 h1.p5"), "b / 1 h0.p5 h1.p5");
	/* At two switches as well, and whoever comes first. */
	assert_string_equal(ports_of(FABRIC(""), "a h0 h1 / 2\n"
				     "b h0 h1 / 2 h0.p0 h0.p4 h1.p1 h1.p5"),
			    "a / 2 h0.p1 h0.p2 h1.p0 h1.p2\nb / 2 h0.p0 h0.p4 h1.p1 h1.p5");
}

static void a_spare_has_its_own(void **state)
{
	(void)state;
	/* At the switch that the others are on. */
	assert_string_equal(ports_of(FABRIC(""), "b h0 h2 / 2 h0.p5 h0.p6 h1.p5 h1.p6"),
			    "b / 2 h0.p5 h0.p6 h2.p4 h2.p5");
}

static void what_is_not_fit_any_more_is_replaced(void **state)
{
	(void)state;
	/* Dead: another at the same switch, and none of the others is moved. */
	assert_string_equal(ports_of(FABRIC("dead:\n  - { port: h1.p5 }\n"),
				     "b h0 h1 / 2 h0.p5 h0.p6 h1.p5 h1.p6"),
			    "b / 2 h0.p5 h0.p6 h1.p4 h1.p6");
	/* Gone from the file, with their switch's side. */
	assert_string_equal(ports_of(HOSTS("3", ""), "b h0 h1 / 2 h0.p5 h0.p3 h1.p5 h1.p3"),
			    "b / 2 h0.p0 h0.p3 h1.p0 h1.p3");
	/* Named by a job of the file. */
	assert_string_equal(ports_of(FABRIC("jobs:\n  - { name: j, nodes: [h0, h1], ports: p5, "
					    "collective: allgather, size: 1MB }\n"),
				     "b h0 h1 / 1 h0.p5 h1.p5"), "b / 1 h0.p0 h1.p0");
	/* More than the number, twice, of another host, or no such. */
	assert_string_equal(ports_of(FABRIC(""), "b h0 h1 / 1 h0.p5 h0.p5 h0.p6 h1.p6 h2.p0 h1.x "
					    "x.p0 h1."),
			    "b / 1 h0.p5 h1.p6");
}

static void one_without_the_key_takes_what_is_left(void **state)
{
	static const char *const rest = "jobs:\n  - { name: j, nodes: [h0, h1], "
					"collective: allgather, size: 1MB }\n";
	char text[2048];

	(void)state;
	/* Those of the file come before requests, and none is halved. */
	snprintf(text, sizeof(text), "%s%s", FABRIC(""), rest);
	assert_string_equal(ports_of(text, "b h0 h1 / 2 h0.p5 h0.p6 h1.p5 h1.p6"),
			    "job b: ports: 2 of each host, and of h0 there are 0 left "
			    "(and 1 more such)");
	assert_string_equal(ports_of(FABRIC(""), "a h0 h1 / p0\n"
				     "b h0 h1 / 2 h0.p5 h0.p6 h1.p5 h1.p6"),
			    "a / p0\nb / 2 h0.p5 h0.p6 h1.p5 h1.p6");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(they_are_written_behind_the_number),
		cmocka_unit_test(they_are_kept),
		cmocka_unit_test(a_spare_has_its_own),
		cmocka_unit_test(what_is_not_fit_any_more_is_replaced),
		cmocka_unit_test(one_without_the_key_takes_what_is_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
