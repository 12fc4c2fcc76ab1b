/* What carrying out a plan would send. */
#include <stdlib.h>

#include "controller/apply/private.h"

/* The limits of a device are known once this process has read it. */
static bool was_read(const struct device *d)
{
	return d->now.ever_read && d->now.snap.caps.n_in > 0;
}

int apply_explain(struct apply *a, const struct plan *p, dispatch_fn fn,
		  void *arg, struct err *err)
{
	const struct model_fabric *f = p->fabric;
	size_t n = (size_t)f->n_devices + 1;
	struct dispatch_device *v = calloc(n, sizeof(*v));
	struct drv **opened = calloc(n, sizeof(struct drv *));
	int rc = v && opened ? 0 : err_nomem(err);

	for (int i = 0; i < f->n_devices && rc == 0; i++) {
		const struct device *d = plan_input_device(a, &f->devices[i]);

		if (d) {
			v[i].drv = d->drv;
			v[i].snap = was_read(d) ? &d->now.snap : NULL;
			continue;
		}
		rc = dispatch_open(a->loop, f, i, store_fence(a->store),
				   &opened[i], err);
		v[i].drv = opened[i];
	}
	rc = rc ? rc : dispatch_explain(p, v, fn, arg, err);
	for (int i = 0; opened && i < f->n_devices; i++) {
		if (opened[i]) {
			drv_close(opened[i], NULL, NULL);
		}
	}
	free(v);
	free(opened);
	return rc;
}
