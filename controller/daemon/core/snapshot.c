/*
 * A copy of what a plan starts from. The engine's own base borrows from its last
 * readings, which a reading on the loop replaces while a worker plans; every
 * array that it points to is copied, names aside, which live as long as the
 * fabric that the request holds.
 */
#include <stdlib.h>
#include <string.h>

#include "controller/daemon/core/plan_queue.h"
#include "lib/base/alloc.h"

static void *copy_array(const void *from, int n, size_t size)
{
	void *to = x_alloc((size_t)n * size + 1, 1);

	if (n > 0) {
		memcpy(to, from, (size_t)n * size);
	}
	return to;
}

/* program: where a copy of the program goes, if there is one. */
static void copy_light(struct plan_light *to, const struct plan_light *from,
		       struct ring_programs *program)
{
	*to = *from;
	to->programs = NULL;
	to->xcs = copy_array(from->xcs, from->n_xcs, sizeof(*from->xcs));
	to->dark = copy_array(from->dark, from->n_dark, sizeof(*from->dark));
	to->fixed = copy_array(from->fixed, from->n_fixed, sizeof(*from->fixed));
	to->bad_in = copy_array(from->bad_in, from->n_bad_in, sizeof(*from->bad_in));
	to->bad_out = copy_array(from->bad_out, from->n_bad_out, sizeof(*from->bad_out));
	to->dead = copy_array(from->dead, from->n_dead, sizeof(*from->dead));
	to->losses = copy_array(from->losses, from->n_losses, sizeof(*from->losses));
	to->powers = copy_array(from->powers, from->n_powers, sizeof(*from->powers));
	if (from->programs) {
		to->programs = program;
		ring_programs_copy(program, from->programs);
	}
}

/* NULL where there are none. */
static struct plan_light *copy_lights(const struct plan_light *from, int n,
				      struct ring_programs *programs)
{
	struct plan_light *to;

	if (!from) {
		return NULL;
	}
	to = x_new((size_t)n, sizeof(*to));
	for (int i = 0; i < n; i++) {
		copy_light(&to[i], &from[i], &programs[i]);
	}
	return to;
}

void daemon_snapshot_init(struct snapshot *s, const struct plan_base *base, int n)
{
	memset(s, 0, sizeof(*s));
	s->base = *base;
	s->n = n;
	s->programs = x_new(2 * (size_t)n, sizeof(*s->programs));
	s->intent = copy_lights(base->intent, n, s->programs);
	s->observed = copy_lights(base->observed, n, s->programs + n);
	s->base.intent = s->intent;
	s->base.observed = s->observed;
	s->port_ns = copy_array(base->times.port_ns, base->times.n_ports, sizeof(*s->port_ns));
	s->device_ns = copy_array(base->times.device_ns, base->times.n_devices,
				  sizeof(*s->device_ns));
	s->base.times.port_ns = s->port_ns;
	s->base.times.device_ns = s->device_ns;
}

void daemon_light_fini(struct plan_light *light)
{
	free((void *)light->xcs);
	free((void *)light->dark);
	free((void *)light->fixed);
	free((void *)light->bad_in);
	free((void *)light->bad_out);
	free((void *)light->dead);
	free((void *)light->losses);
	free((void *)light->powers);
	memset(light, 0, sizeof(*light));
}

void daemon_snapshot_replace(struct snapshot *s, bool observed, int device,
			     const struct plan_light *light, struct ring_programs *programs)
{
	struct plan_light *to = &(observed ? s->observed : s->intent)[device];
	struct ring_programs *own = &s->programs[observed ? s->n + device : device];

	daemon_light_fini(to);
	ring_programs_fini(own);
	*to = *light;
	to->programs = NULL;
	if (programs) {
		*own = *programs;
		memset(programs, 0, sizeof(*programs));
		to->programs = own;
	}
}

static void free_lights(struct plan_light *v, int n)
{
	for (int i = 0; v && i < n; i++) {
		daemon_light_fini(&v[i]);
	}
	free(v);
}

void daemon_snapshot_fini(struct snapshot *s)
{
	free_lights(s->intent, s->n);
	free_lights(s->observed, s->n);
	for (int i = 0; s->programs && i < 2 * s->n; i++) {
		ring_programs_fini(&s->programs[i]);
	}
	free(s->programs);
	free(s->port_ns);
	free(s->device_ns);
	memset(s, 0, sizeof(*s));
}
