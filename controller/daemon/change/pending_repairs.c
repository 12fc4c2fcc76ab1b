/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Circuits that changes were committed without (a policy may tolerate some), while
 * they are not there, or not what they should be. The store keeps them until a
 * later commit; whether they still need repair is decided each time by the last
 * readings, as an operator may have repaired one at the device.
 */
#include <stdlib.h>
#include <string.h>

#include "controller/daemon/change/change.h"

/* It carries light, and passes the layer that it had failed, as far as the last readings and the
 * last probe of hosts show. */
static bool is_repaired(const struct daemon_env *env, const struct hosts *hosts,
			const struct store_repair *r)
{
	int n;
	const struct apply_device *v = apply_devices(env->apply, &n);

	for (int i = 0; i < n; i++) {
		if (strcmp(v[i].name, r->device) == 0) {
			enum apply_health health = apply_circuit(env->apply, i, r->xc).health;

			return r->layer >= APPLY_NEIGHBOUR
				       ? health >= APPLY_LOSSY && hosts_receive(hosts, i, r->xc)
				       : health >= (r->layer ? APPLY_LIT : APPLY_LOSSY);
		}
	}
	return false;
}

void repairs_view_fini(struct repairs_view *r)
{
	store_repairs_free(r->stored, r->n_stored);
	free(r->list);
	*r = (struct repairs_view){ 0 };
}

int repairs_view_init(struct repairs_view *r, const struct daemon_env *env,
		      const struct hosts *hosts, struct err *err)
{
	int rc;

	*r = (struct repairs_view){ 0 };
	rc = store_repairs(env->store, &r->stored, &r->n_stored, err);
	if (rc) {
		return rc;
	}
	r->list = message_list(&weft__v1__pending_repair__descriptor, (size_t)r->n_stored);
	for (int i = 0; i < r->n_stored; i++) {
		const struct store_repair *s = &r->stored[i];
		Weft__V1__PendingRepair *m = r->list[r->n];

		if (is_repaired(env, hosts, s)) {
			continue;
		}
		m->device = s->device;
		m->in = s->xc.in + 1;
		m->out = s->xc.out + 1;
		m->change = s->change;
		m->since_at_ns = s->since_ns;
		m->why = s->why;
		r->n++;
	}
	return 0;
}
