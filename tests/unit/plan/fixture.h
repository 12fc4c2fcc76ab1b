/* SPDX-License-Identifier: Apache-2.0 */
/* Fabrics of the tests of planning, and plans of them. */
#ifndef TESTS_UNIT_PLAN_FIXTURE_H
#define TESTS_UNIT_PLAN_FIXTURE_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "controller/plan/plan.h"

#define HOSTS_1                                                         \
	"weft: 1\n"                                                     \
	"fabric: t\n"                                                   \
	"hosts:\n"                                                      \
	"  - { name: 'h[0-7]', ports: 'p[0-3]', rate: 100Gbps }\n"      \
	"switches:\n"                                                   \
	"  - { name: ocs0, size: 32x32, driver: sim }\n"                \
	"fibres:\n"                                                     \
	"  - { from: 'h[0-7].p[0-3]', to: 'ocs0.[1-32]' }\n"

#define ALL_TO_ALL(topology, algorithm)                                 \
	HOSTS_1 "jobs:\n"                                               \
	"  - { name: j, nodes: 'h[0-7]', collective: all-to-all, "      \
	"size: 1MiB, topology: '" topology "', algorithm: " algorithm   \
	", alpha: 10us }\n"

#define RING                                                            \
	"weft: 1\n"                                                     \
	"fabric: t\n"                                                   \
	"hosts:\n"                                                      \
	"  - { name: 'n[0-7]' }\n"                                      \
	"rings:\n"                                                      \
	"  - { name: r0, nodes: 'n[0-7]', channels: 4, "                \
	"channel-rate: 40Gbps, retune: 25us, driver: sim-ring }\n"

#define RING_JOB                                                        \
	"jobs:\n"                                                       \
	"  - { name: g, ring: r0, nodes: all, collective: allgather, "  \
	"size: 1MiB }\n"

static inline struct model_fabric *fabric_of(const char *text)
{
	struct err_list errs = { 0 };
	struct model_fabric *f = NULL;
	char line[1024];

	if (model_parse("t.yaml", text, strlen(text), &f, &errs)) {
		for (int i = 0; i < errs.n; i++) {
			print_error("%s\n", err_str(&errs.v[i], line,
						    sizeof(line)));
		}
		fail();
	}
	err_list_fini(&errs);
	return f;
}

static inline struct plan *plan_of(const struct model_fabric *f,
			    const struct plan_base *base)
{
	struct plan *p = NULL;
	struct err err = { 0 };
	char line[1024];

	if (plan_make(f, base, &p, &err)) {
		print_error("%s\n", err_str(&err, line, sizeof(line)));
		fail();
	}
	return p;
}

/* Ports of a device that fail, with the light there; dark has room for all circuits. */
static inline void ports_fail(struct plan_light *seen, struct optics_xc *dark, int n_in,
			      const int *in, int n_out, const int *out)
{
	seen->bad_in = in;
	seen->n_bad_in = n_in;
	seen->bad_out = out;
	seen->n_bad_out = n_out;
	seen->no_light = dark;
	seen->n_no_light = 0;
	for (int i = 0; i < seen->n_xcs; i++) {
		bool fails = false;

		for (int k = 0; k < n_in; k++) {
			fails |= in[k] == seen->xcs[i].in;
		}
		for (int k = 0; k < n_out; k++) {
			fails |= out[k] == seen->xcs[i].out;
		}
		if (fails) {
			dark[seen->n_no_light++] = seen->xcs[i];
		}
	}
}

/* The light that a plan wants, by device, as borrowed plan_light. */
static inline struct plan_light *light_after(const struct plan *p)
{
	struct plan_light *l = calloc(p->n_devices + 1, sizeof(*l));

	for (int i = 0; i < p->n_devices; i++) {
		const struct plan_device *d = &p->devices[i];

		l[d->device] = (struct plan_light){
			.known = true,
			.n_xcs = d->n_want,
			.xcs = d->want,
			.programs = d->has_program ? &d->programs : NULL,
		};
	}
	return l;
}

#endif
