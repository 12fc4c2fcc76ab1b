/* SPDX-License-Identifier: Apache-2.0 */
/* The devices of one fabric. */
#include <stdlib.h>
#include <string.h>

#include "controller/apply/private.h"
#include "lib/base/alloc.h"

struct device *device_set_find(const struct device_set *s, const char *name)
{
	for (int i = 0; s && i < s->n; i++) {
		if (strcmp(s->v[i]->name, name) == 0) {
			return s->v[i];
		}
	}
	return NULL;
}

static int add_device(struct apply *a, const struct model_fabric *f, int i,
		      const struct device_set *from, struct device_set *s, struct err *err)
{
	struct device *same = device_set_find(from, f->devices[i].name);
	int rc = 0;

	if (same && device_is_same(same, &f->devices[i])) {
		s->v[s->n] = device_ref(same);
	} else {
		rc = device_open(a, f, i, &s->v[s->n], err);
	}
	s->n += rc == 0;
	return rc;
}

int device_set_new(struct apply *a, struct model_fabric *fabric, const struct device_set *from,
		   struct device_set **out, struct err *err)
{
	struct device_set *s = x_new(1, sizeof(*s));
	int rc = 0;

	s->v = x_new(fabric->n_devices + 1, sizeof(*s->v));
	s->view = x_new(fabric->n_devices + 1, sizeof(*s->view));
	for (int i = 0; i < fabric->n_devices && rc == 0; i++) {
		rc = add_device(a, fabric, i, from, s, err);
	}
	if (rc) {
		device_set_free(s);
		return rc;
	}
	s->fabric = fabric;
	*out = s;
	return 0;
}

void device_set_free(struct device_set *s)
{
	if (!s) {
		return;
	}
	for (int i = 0; i < s->n; i++) {
		if (s->fabric && s->v[i]->file == &s->fabric->devices[i]) {
			s->v[i]->file = NULL;
		}
		device_unref(s->v[i]);
	}
	free(s->v);
	free(s->view);
	model_free(s->fabric);
	free(s);
}
