/* A driver in plain calls; see testbed.h. */
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "controller/testbed/testbed.h"
#include "drivers/driver.h"

#define MAX_OPTIONS 16

struct testbed_device {
	uv_loop_t loop;
	struct drv *drv;
	/* the last answer */
	int rc, n;
	struct light_xc *xcs;
	struct light_ring programs;
	struct err err;
};

int testbed_device_new(const struct model_device *d,
		       struct testbed_device **out, struct err *err)
{
	bool ring = d->kind == MODEL_RING;
	struct drv_option options[MAX_OPTIONS];
	struct drv_config cfg = {
		.name = d->name, .address = d->address,
		.n_in = ring ? d->n_members : d->n_in,
		.n_out = ring ? d->ring.channels : d->n_out,
		.ring_fibres = ring ? d->ring.fibres : 0,
		.any_to_any = d->any_to_any, .timeout_ms = d->timeout_ms,
		.options = options,
	};
	struct testbed_device *dev = calloc(1, sizeof(*dev));
	int rc;

	*out = NULL;
	if (!dev) {
		return err_nomem(err);
	}
	for (int i = 0; i < d->n_options && i < MAX_OPTIONS; i++) {
		options[cfg.n_options++] = (struct drv_option){
			d->options[i].key, d->options[i].value };
	}
	uv_loop_init(&dev->loop);
	rc = drv_open(&dev->loop, d->driver, &cfg, &dev->drv, err);
	if (rc) {
		uv_loop_close(&dev->loop);
		free(dev);
		return rc;
	}
	*out = dev;
	return 0;
}

void testbed_device_free(struct testbed_device *dev)
{
	if (dev) {
		drv_close(dev->drv, NULL, NULL);
		uv_run(&dev->loop, UV_RUN_DEFAULT);
		uv_loop_close(&dev->loop);
		free(dev);
	}
}

/* Until it has answered: a driver that listens keeps the loop alive. */
static int answer(struct testbed_device *dev, struct err *err)
{
	uv_run(&dev->loop, UV_RUN_DEFAULT);
	if (dev->rc && err) {
		*err = dev->err;
	}
	return dev->rc;
}

static void on_snapshot(struct drv *drv, int rc, struct drv_snapshot *snap,
			const struct err *err, void *arg)
{
	struct testbed_device *dev = arg;

	(void)drv;
	uv_stop(&dev->loop);
	dev->rc = rc;
	dev->err = *err;
	if (rc) {
		return;
	}
	dev->xcs = calloc((size_t)snap->n_xcs + 1, sizeof(*dev->xcs));
	if (!dev->xcs) {
		dev->rc = err_nomem(&dev->err);
		return;
	}
	for (int i = 0; i < snap->n_xcs; i++) {
		if (snap->xcs[i].state == DRV_TUNED) {
			dev->xcs[dev->n++] = snap->xcs[i].xc;
		}
	}
	dev->programs = snap->programs;
	memset(&snap->programs, 0, sizeof(snap->programs));
}

int testbed_device_read(struct testbed_device *dev, struct light_xc **xcs,
			int *n, struct light_ring *programs, struct err *err)
{
	int rc;

	memset(&dev->programs, 0, sizeof(dev->programs));
	dev->xcs = NULL;
	dev->n = 0;
	drv_snapshot(dev->drv, on_snapshot, dev);
	rc = answer(dev, err);
	*xcs = dev->xcs;
	*n = dev->n;
	if (programs) {
		*programs = dev->programs;
	} else {
		light_ring_fini(&dev->programs);
	}
	return rc;
}

static void on_submit(struct drv *drv, int rc, int n,
		      const struct drv_outcome *outcomes,
		      const struct err *err, void *arg)
{
	struct testbed_device *dev = arg;

	(void)drv;
	(void)n;
	(void)outcomes;
	uv_stop(&dev->loop);
	dev->rc = rc;
	dev->err = *err;
}

int testbed_device_light(struct testbed_device *dev,
			 const struct light_xc *xc, struct err *err)
{
	struct drv_item item = { .op = DRV_ADD };
	struct drv_batch batch = { .mode = DRV_REPLACE,
				   .n_items = xc ? 1 : 0, .items = &item };

	if (xc) {
		item.xc = *xc;
	}
	drv_submit(dev->drv, &batch, on_submit, dev);
	return answer(dev, err);
}
