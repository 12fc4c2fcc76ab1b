/* A driver in plain calls; see testbed.h. */
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "controller/dry_run/dry_run.h"
#include "controller/testbed/testbed.h"
#include "drivers/core/driver.h"

#define TICK_MS 1000

struct testbed_device {
	uv_loop_t loop;
	struct drv *drv;
	uv_timer_t tick;
	testbed_tick_fn on_tick;	/* or NULL */
	void *tick_arg;
	/* the last answer */
	int rc;
	struct drv_snapshot snap;
	struct err err;
};

/* Once nothing else keeps it alive. */
static void end_loop(struct testbed_device *dev)
{
	uv_close((uv_handle_t *)&dev->tick, NULL);
	uv_run(&dev->loop, UV_RUN_DEFAULT);
	uv_loop_close(&dev->loop);
}

int testbed_device_new(const struct model_fabric *f, int device,
		       struct testbed_device **out, struct err *err)
{
	struct testbed_device *dev = calloc(1, sizeof(*dev));
	int rc;

	*out = NULL;
	if (!dev) {
		return err_nomem(err);
	}
	uv_loop_init(&dev->loop);
	uv_timer_init(&dev->loop, &dev->tick);
	uv_unref((uv_handle_t *)&dev->tick);
	dev->tick.data = dev;
	rc = dispatch_open(&dev->loop, f, device, 0, &dev->drv, err);
	if (rc) {
		end_loop(dev);
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
		end_loop(dev);
		free(dev);
	}
}

static void on_tick(uv_timer_t *tick)
{
	struct testbed_device *dev = tick->data;

	dev->on_tick(dev->tick_arg);
}

void testbed_device_tick(struct testbed_device *dev, testbed_tick_fn fn,
			 void *arg)
{
	dev->on_tick = fn;
	dev->tick_arg = arg;
	if (fn) {
		uv_timer_start(&dev->tick, on_tick, TICK_MS, TICK_MS);
	} else {
		uv_timer_stop(&dev->tick);
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
	if (rc == 0) {
		dev->snap = *snap;
		memset(snap, 0, sizeof(*snap));
	}
}

int testbed_device_snapshot(struct testbed_device *dev,
			    struct drv_snapshot *out, struct err *err)
{
	int rc;

	memset(&dev->snap, 0, sizeof(dev->snap));
	drv_snapshot(dev->drv, on_snapshot, dev);
	rc = answer(dev, err);
	*out = dev->snap;
	return rc;
}

int testbed_device_read(struct testbed_device *dev, struct optics_xc **xcs,
			int *n, struct ring_programs *programs, struct err *err)
{
	struct drv_snapshot snap;
	int rc = testbed_device_snapshot(dev, &snap, err);

	*xcs = NULL;
	*n = 0;
	if (programs) {
		memset(programs, 0, sizeof(*programs));
	}
	if (rc) {
		return rc;
	}
	*xcs = calloc((size_t)snap.n_xcs + 1, sizeof(**xcs));
	for (int i = 0; *xcs && i < snap.n_xcs; i++) {
		if (snap.xcs[i].state == DRV_TUNED) {
			(*xcs)[(*n)++] = snap.xcs[i].xc;
		}
	}
	if (*xcs && programs) {
		*programs = snap.programs;
		memset(&snap.programs, 0, sizeof(snap.programs));
	}
	rc = *xcs ? 0 : err_nomem(err);
	drv_snapshot_fini(&snap);
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

static int submit(struct testbed_device *dev, enum drv_mode mode,
		  const struct drv_item *items, int n, struct err *err)
{
	struct drv_batch batch = { .mode = mode, .n_items = n,
				   .items = items };

	drv_submit(dev->drv, &batch, on_submit, dev);
	return answer(dev, err);
}

int testbed_device_light(struct testbed_device *dev,
			 const struct optics_xc *xc, struct err *err)
{
	struct drv_item item = { .op = DRV_ADD };

	if (xc) {
		item.xc = *xc;
	}
	return submit(dev, DRV_REPLACE, &item, xc ? 1 : 0, err);
}

int testbed_device_change(struct testbed_device *dev, bool add,
			  struct optics_xc xc, struct err *err)
{
	struct drv_item item = { .op = add ? DRV_ADD : DRV_DEL, .xc = xc };

	return submit(dev, DRV_SAFE, &item, 1, err);
}
