/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rings of a testbed: steps of their programs, and whose light is received. The
 * ring's state is in the kernel and has one user at a time, so it is opened for
 * each question, and waited for while the daemon reads it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "controller/testbed/testbed.h"
#include "drivers/linux/netns_ring.h"
#include "lib/base/alloc.h"

#define RETRY_NS 5000000
#define RETRIES 400

/* weftd reads the ring now and then, and has it to itself for that long. */
static int open_ring(const struct model_fabric *f, int ring,
		     struct netns_ring **out, struct err *err)
{
	const struct timespec pause = { .tv_nsec = RETRY_NS };
	struct ring_geometry g = testbed_ring(&f->devices[ring]);
	char netns[HOST_NETNS_MAX];
	int rc, tries = 0;

	testbed_netns(f, f->devices[ring].name, netns);
	while ((rc = netns_ring_open(netns, &g, out, err)) == WEFT_ESTALE && tries++ < RETRIES) {
		nanosleep(&pause, NULL);
	}
	return rc;
}

/* ---- where light goes ---- */

static int lit_ring(const struct model_fabric *f, int ring, int *from, struct err *err)
{
	struct ring_geometry g = testbed_ring(&f->devices[ring]);
	struct netns_ring *r;
	const uint8_t *modes;
	int rc = open_ring(f, ring, &r, err);

	if (rc) {
		return rc;
	}
	modes = netns_ring_modes(r);
	for (size_t k = 0; k < netns_ring_count(&g); k++) {
		int64_t to = modes[k] & RESONATOR_ADD ? netns_ring_follow(&g, modes, k) : -1;

		if (to >= 0) {
			from[testbed_end_of(f, ring, (size_t)to)] = testbed_end_of(f, ring, k);
		}
	}
	netns_ring_close(r);
	return 0;
}

static void lit_ports(const struct model_fabric *f, const struct plan_light *light, int *from)
{
	for (int i = 0; i < f->n_ports; i++) {
		int to = plan_trace(f, light, i);

		if (to >= 0) {
			from[to] = i;
		}
	}
}

int testbed_lit(const struct model_fabric *f, int **from, struct err *err)
{
	size_t n = (size_t)testbed_n_ends(f);
	struct plan_light *light = NULL;
	int rc = testbed_read(f, &light, err);

	*from = NULL;
	if (rc == 0) {
		*from = x_alloc(n + 1, sizeof(**from));
		memset(*from, 0xff, n * sizeof(**from));
		lit_ports(f, light, *from);
	}
	for (int i = 0; rc == 0 && i < f->n_devices; i++) {
		if (f->devices[i].kind == MODEL_RING) {
			rc = lit_ring(f, i, *from, err);
		}
	}
	testbed_light_free(f, light);
	if (rc) {
		free(*from);
		*from = NULL;
	}
	return rc;
}

/* ---- steps ---- */

/* The ring that has a program of this name, open, and its place there. */
static int find_program(const struct model_fabric *f, const char *job, struct netns_ring **r,
			int *ring, int *program, struct err *err)
{
	for (int i = 0; i < f->n_devices; i++) {
		const struct ring_program *p;
		int rc;

		if (f->devices[i].kind != MODEL_RING) {
			continue;
		}
		rc = open_ring(f, i, r, err);
		if (rc) {
			return rc;
		}
		p = ring_programs_find(netns_ring_programs(*r), job);
		if (p) {
			*ring = i;
			*program = (int)(p - netns_ring_programs(*r)->v);
			return 0;
		}
		netns_ring_close(*r);
	}
	err_set(err, WEFT_ENOTFOUND, "no ring has a program of job %.80s", job);
	err_hint(err, "weft apply -f %s", f->config.name);
	return WEFT_ENOTFOUND;
}

int testbed_program(const struct model_fabric *f, const char *job,
		    struct testbed_program *out, struct err *err)
{
	struct netns_ring *r;
	int program, rc = find_program(f, job, &r, &out->ring, &program, err);

	if (rc == 0) {
		out->step = netns_ring_step(r, program);
		out->steps = netns_ring_programs(r)->v[program].steps;
		netns_ring_close(r);
	}
	return rc;
}

int testbed_step(const struct model_fabric *f, const char *job, uint32_t step, struct err *err)
{
	struct netns_ring *r;
	int ring, program, rc = find_program(f, job, &r, &ring, &program, err);

	if (rc) {
		return rc;
	}
	rc = netns_ring_go(r, program, step, err);
	if (rc == 0) {
		rc = netns_ring_activate(r, err);
	}
	netns_ring_close(r);
	return rc;
}
