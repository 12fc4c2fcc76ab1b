/* SPDX-License-Identifier: Apache-2.0 */
/* Parts that the fabric file marks as dead, beside what devices report. */
#include <stdlib.h>
#include <string.h>

#include "controller/plan/private.h"
#include "lib/base/alloc.h"

/* Both lists in one; *out is the caller's. */
static void join_ports(const int *a, int n_a, const int *b, int n_b, const int **out, int *n)
{
	int *v = x_alloc((size_t)n_a + n_b + 1, sizeof(*v));

	for (int i = 0; i < n_a; i++) {
		v[i] = a[i];
	}
	for (int i = 0; i < n_b; i++) {
		v[n_a + i] = b[i];
	}
	*out = v;
	*n = n_a + n_b;
}

/* What has no light by what is known, and what the file's marks take away. */
static void join_dark(const struct plan_light *seen, const struct model_device *dev,
		      struct plan_light *out)
{
	const struct plan_light known = { .n_xcs = seen->n_no_light, .xcs = seen->no_light };
	struct optics_xc *v = x_alloc((size_t)seen->n_xcs + 1, sizeof(*v));

	out->no_light = v;
	out->n_no_light = 0;
	for (int i = 0; i < seen->n_xcs; i++) {
		const struct optics_xc xc = seen->xcs[i];

		if (plan_light_has(&known, xc) || model_port_is_dead(dev, false, xc.in) ||
		    model_port_is_dead(dev, true, xc.out)) {
			v[out->n_no_light++] = xc;
		}
	}
}

static void join_marked_ports(const struct plan_light *seen, const struct model_device *dev,
			      struct plan_light *out)
{
	join_ports(seen->bad_in, seen->n_bad_in, dev->dead_in, dev->n_dead_in, &out->bad_in,
		   &out->n_bad_in);
	join_ports(seen->bad_out, seen->n_bad_out, dev->dead_out, dev->n_dead_out, &out->bad_out,
		   &out->n_bad_out);
	join_dark(seen, dev, out);
}

/* Merged by their order; a part in both is told as the device tells it. */
static void join_parts(const struct plan_light *seen, const struct model_device *dev,
		       struct plan_light *out)
{
	int n_a = seen->n_dead, n_b = dev->n_dead, a = 0, b = 0, n = 0;
	struct ring_fault *v = x_alloc((size_t)n_a + n_b + 1, sizeof(*v));

	while (a < n_a || b < n_b) {
		int c = a == n_a ? 1 : b == n_b ? -1 :
			ring_fault_cmp(&seen->dead[a], &dev->dead[b]);

		v[n++] = c <= 0 ? seen->dead[a] : dev->dead[b];
		a += c <= 0;
		b += c >= 0;
	}
	out->dead = v;
	out->n_dead = n;
}

static bool is_marked(const struct model_device *dev)
{
	return dev->n_dead || dev->n_dead_in || dev->n_dead_out;
}

bool plan_has_admin_down(const struct model_fabric *f)
{
	for (int i = 0; i < f->n_devices; i++) {
		if (is_marked(&f->devices[i])) {
			return true;
		}
	}
	return false;
}

void plan_admin_down_init(struct plan_admin_down *m, const struct model_fabric *f,
			  const struct plan_base *base)
{
	*m = (struct plan_admin_down){ .base = *base, .fabric = f };
	if (!plan_has_admin_down(f)) {
		return;
	}
	m->seen = x_new((size_t)f->n_devices + 1, sizeof(*m->seen));
	for (int i = 0; i < f->n_devices; i++) {
		const struct model_device *dev = &f->devices[i];
		struct plan_light was = { 0 };
		struct plan_light *l = &m->seen[i];

		if (base->observed) {
			was = *l = base->observed[i];
		}
		if (!is_marked(dev)) {
			continue;
		}
		if (!base->from_committed) {
			join_marked_ports(&was, dev, l);
		}
		join_parts(&was, dev, l);
	}
	m->base.observed = m->seen;
}

void plan_admin_down_fini(struct plan_admin_down *m)
{
	for (int i = 0; m->seen && i < m->fabric->n_devices; i++) {
		if (is_marked(&m->fabric->devices[i])) {
			free((void *)m->seen[i].dead);
			if (!m->base.from_committed) {
				free((void *)m->seen[i].bad_in);
				free((void *)m->seen[i].bad_out);
				free((void *)m->seen[i].no_light);
			}
		}
	}
	free(m->seen);
	m->seen = NULL;
}
