/* SPDX-License-Identifier: Apache-2.0 */
/* What stays lit at a part of the fabric that is to be emptied. */
#include <string.h>

#include "controller/plan/private.h"

/* Circuits of weft's on a switch that stay lit there. */
static int count_circuits(const struct plan_device *d, const struct plan_light *seen, bool either)
{
	struct plan_light part = *seen;
	int n = 0;

	part.n_bad_in = part.n_bad_out = 0;	/* only what is to be emptied */
	for (int i = 0; i < d->n_want; i++) {
		n += plan_is_lit(seen, d->want[i]) && plan_must_go(&part, either, d->want[i]);
	}
	return n;
}

/* Whether the part is the job's ring, or a host of it, or a port of one on the ring. */
static bool uses(const struct model_fabric *f, const struct model_job *job, const char *part)
{
	if (strcmp(f->devices[job->device].name, part) == 0) {
		return true;
	}
	for (int i = 0; i < job->n_hosts; i++) {
		const struct model_host *h = &f->hosts[job->hosts[i]];

		if (strcmp(h->name, part) == 0) {
			return true;
		}
		for (int p = h->first_port; p < h->first_port + h->n_ports; p++) {
			if (f->ports[p].tx_device == job->device &&
			    strcmp(f->ports[p].name, part) == 0) {
				return true;
			}
		}
	}
	return false;
}

/* Whether the job was on its ring before, and stays: what is new there drain refuses. */
static bool stays_on_ring(const struct plan *p, const struct plan_device *d,
			  const struct plan_job *pj)
{
	const struct model_job *job = &p->fabric->jobs[pj->job];

	return pj->is_ring && job->device == d->device && uses(p->fabric, job, p->evacuated) &&
	       ring_programs_find(&d->old_programs, job->name);
}

void plan_warn_left(struct plan *p)
{
	for (int i = 0; i < p->n_devices && p->evacuated[0]; i++) {
		for (int j = 0; j < p->n_jobs; j++) {
			if (stays_on_ring(p, &p->devices[i], &p->jobs[j])) {
				plan_warn(p, "job %s: its light cannot move away from %s: it stays "
					  "on its ring until it ends",
					  p->fabric->jobs[p->jobs[j].job].name, p->evacuated);
			}
		}
	}
}

int plan_count_left(const struct plan *p, const struct plan_base *base)
{
	int n = 0;

	for (int i = 0; i < p->n_devices && p->evacuated[0]; i++) {
		const struct plan_device *d = &p->devices[i];

		for (int j = 0; j < p->n_jobs; j++) {
			n += stays_on_ring(p, d, &p->jobs[j]);
		}
		if (base && base->observed) {
			n += count_circuits(d, &base->observed[d->device],
					    p->fabric->devices[d->device].any_to_any);
		}
	}
	return n;
}
