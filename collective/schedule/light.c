/* SPDX-License-Identifier: Apache-2.0 */
/* Light that changes between the steps of a schedule. */
#include <stdlib.h>
#include <string.h>

#include "collective/schedule/private.h"
#include "lib/base/alloc.h"

/* A lightpath as one number. */
static uint64_t light_key(const struct coll_sched *s, const struct coll_light *l)
{
	const struct topo_arc *a = topo_arc(coll_physical(s), l->arc);

	return (uint64_t)a->src << 41 | (uint64_t)a->dst << 25 | (uint64_t)l->dir << 24 |
	       (uint64_t)l->fibre << 16 | l->channel;
}

static int cmp_key(const void *pa, const void *pb)
{
	uint64_t a = *(const uint64_t *)pa, b = *(const uint64_t *)pb;

	return a < b ? -1 : a > b;
}

/* The lightpaths of the step of lights.v[from] as sorted numbers; returns where those
 * of the next step begin. */
static size_t step_keys(const struct coll_sched *s, size_t from, uint64_t *keys, size_t *n)
{
	size_t i = from;

	for (; i < s->lights.n && s->lights.v[i].step == s->lights.v[from].step; i++) {
		keys[i - from] = light_key(s, &s->lights.v[i]);
	}
	*n = i - from;
	qsort(keys, *n, sizeof(*keys), cmp_key);
	return i;
}

static size_t lights_of_fullest_step(const struct coll_sched *s)
{
	size_t most = 0, from = 0;

	for (size_t i = 0; i < s->lights.n; i++) {
		from = s->lights.v[i].step == s->lights.v[from].step ? from : i;
		most = i + 1 - from > most ? i + 1 - from : most;
	}
	return most;
}

void coll_light_changes_at(const struct coll_sched *s, bool *changes, struct coll_light_change *out)
{
	size_t most = lights_of_fullest_step(s), n_old = 0, n_new, next;
	uint64_t *keys = x_alloc(2 * most + 1, sizeof(*keys)), *old = keys, *new = keys + most;

	*out = (struct coll_light_change){ 0 };
	/* Light after the last transfer carries nothing. */
	for (size_t i = 0; i < s->lights.n && s->lights.v[i].step < s->steps; i = next) {
		uint64_t *swap = old;

		next = step_keys(s, i, new, &n_new);
		if (i > 0 && (n_new != n_old || memcmp(old, new, n_new * sizeof(*new)) != 0)) {
			if (out->steps++ == 0) {
				out->first = s->lights.v[i].step;
				out->before = s->lights.v[i - 1].step;
			}
			if (changes) {
				changes[s->lights.v[i].step] = true;
			}
		}
		n_old = n_new;
		old = new;
		new = swap;
	}
	free(keys);
}

void coll_light_changes(const struct coll_sched *s, struct coll_light_change *out)
{
	coll_light_changes_at(s, NULL, out);
}

int coll_refuse_light_changes(const struct coll_sched *s, const char *output, struct err *err)
{
	struct coll_light_change light;

	coll_light_changes(s, &light);
	if (light.steps == 0) {
		return 0;
	}
	return err_set(err, WEFT_EUNSUPPORTED, "%s of a schedule whose light changes: not "
		       "supported: step %d needs other light than step %d, and an engine cannot "
		       "wait for it", output, light.first, light.before);
}
