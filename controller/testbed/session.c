/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sessions with a running testbed: with the namespaces of its hosts and
 * devices, and with the devices' drivers. A driver has a loop of its own here,
 * which runs only until it has answered: what is asked of it are plain calls.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "controller/dry_run/dry_run.h"
#include "controller/testbed/testbed.h"
#include "drivers/core/driver.h"
#include "lib/base/alloc.h"

#define TICK_MS 1000	/* while a device is waited for */

/* A driver with a loop of its own, and what it answered last. */
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
	struct testbed_device *dev = x_new(1, sizeof(*dev));
	int rc;

	*out = NULL;
	uv_loop_init(&dev->loop);
	uv_timer_init(&dev->loop, &dev->tick);
	uv_unref((uv_handle_t *)&dev->tick);
	dev->tick.data = dev;
	rc = dry_run_open(&dev->loop, f, device, 0, &dev->drv, err);
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

/* libuv's, once each second while the loop runs. */
static void on_tick(uv_timer_t *tick)
{
	struct testbed_device *dev = tick->data;

	dev->on_tick(dev->tick_arg);
}

void testbed_device_tick(struct testbed_device *dev, testbed_tick_fn fn, void *arg)
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

/* Takes the snapshot over: what is left in *snap is nothing to be freed. */
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

int testbed_device_snapshot(struct testbed_device *dev, struct drv_snapshot *out, struct err *err)
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
	*xcs = x_new((size_t)snap.n_xcs + 1, sizeof(**xcs));
	for (int i = 0; i < snap.n_xcs; i++) {
		if (snap.xcs[i].state == DRV_TUNED) {
			(*xcs)[(*n)++] = snap.xcs[i].xc;
		}
	}
	if (programs) {
		*programs = snap.programs;
		memset(&snap.programs, 0, sizeof(snap.programs));
	}
	drv_snapshot_fini(&snap);
	return 0;
}

/* One item was sent, so that rc says all there is to know. */
static void on_submit(struct drv *drv, int rc, int n, const struct drv_outcome *outcomes,
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

int testbed_device_change(struct testbed_device *dev, bool add,
			  struct optics_xc xc, struct err *err)
{
	const struct drv_item item = { .op = add ? DRV_ADD : DRV_DEL,
				       .xc = xc };
	const struct drv_batch batch = { .mode = DRV_SAFE, .n_items = 1,
					 .items = &item };

	drv_submit(dev->drv, &batch, on_submit, dev);
	return answer(dev, err);
}

/* ---- namespaces and netdevs ---- */

/* A namespace that is missing means that the testbed is not up. */
static int open_netns(const struct model_fabric *f, const char *name,
		      struct host_net **out, struct err *err)
{
	char netns[HOST_NETNS_MAX];
	int rc = host_open(testbed_netns(f, name, netns), out, err);

	if (rc == WEFT_EUNAVAIL) {
		err_hint(err, "weft testbed up %s", f->config.name);
	}
	return rc;
}

/* Of all links of a host, the one of this end. A netdev that the fabric has
 * no fibre for may be there or not. */
static int find_link(const struct model_fabric *f, int end, bool rx, const struct host_link *v,
		     int n, struct host_link *out, struct err *err)
{
	char name[TESTBED_NAME_MAX + 4], buf[TESTBED_NAME_MAX];

	snprintf(name, sizeof(name), "%s.%s", testbed_end_netdev(f, end, buf), rx ? "rx" : "tx");
	for (int i = 0; i < n; i++) {
		if (strcmp(v[i].name, name) == 0) {
			*out = v[i];
			return 0;
		}
	}
	return testbed_end_has(f, end, rx) ?
	       err_set(err, WEFT_EUNAVAIL, "there is no netdev %s", name) : 0;
}

/* Fills the netdevs of all ends of one host. O(ends * links). */
static int host_ends(struct testbed *t, int host, struct err *err)
{
	struct host_link *v;
	int n, rc = host_links(t->hosts[host], &v, &n, err);

	for (int i = 0; rc == 0 && i < t->n_ends; i++) {
		if (testbed_end(t->fabric, i).host != host) {
			continue;
		}
		rc = find_link(t->fabric, i, false, v, n, &t->tx[i], err);
		if (rc == 0) {
			rc = find_link(t->fabric, i, true, v, n, &t->rx[i], err);
		}
	}
	if (rc) {
		err_wrap(err, "host %s", t->fabric->hosts[host].name);
	}
	free(v);
	return rc;
}

int testbed_links(struct testbed *t, struct err *err)
{
	int rc = 0;

	for (int i = 0; rc == 0 && i < t->fabric->n_hosts; i++) {
		rc = host_ends(t, i, err);
	}
	return rc;
}

/* Every namespace of the fabric; testbed_close closes those that were opened
 * before an error. */
static int open_all(struct testbed *t, struct err *err)
{
	const struct model_fabric *f = t->fabric;
	int rc = 0;

	for (int i = 0; rc == 0 && i < f->n_hosts; i++) {
		rc = open_netns(f, f->hosts[i].name, &t->hosts[i], err);
	}
	for (int i = 0; rc == 0 && i < f->n_devices; i++) {
		rc = open_netns(f, f->devices[i].name, &t->devices[i], err);
	}
	if (rc) {
		return rc;
	}
	return testbed_links(t, err);
}

int testbed_open(const struct model_fabric *f, struct testbed **out, struct err *err)
{
	struct testbed *t = x_new(1, sizeof(*t));
	int rc;

	*out = NULL;
	t->fabric = f;
	t->hosts = x_new((size_t)f->n_hosts + 1, sizeof(*t->hosts));
	t->devices = x_new((size_t)f->n_devices + 1, sizeof(*t->devices));
	t->n_ends = testbed_n_ends(f);
	t->tx = x_new((size_t)t->n_ends + 1, sizeof(*t->tx));
	t->rx = x_new((size_t)t->n_ends + 1, sizeof(*t->rx));
	rc = open_all(t, err);
	if (rc) {
		testbed_close(t);
		return rc;
	}
	*out = t;
	return 0;
}

void testbed_close(struct testbed *t)
{
	if (!t) {
		return;
	}
	for (int i = 0; t->hosts && i < t->fabric->n_hosts; i++) {
		host_close(t->hosts[i]);
	}
	for (int i = 0; t->devices && i < t->fabric->n_devices; i++) {
		host_close(t->devices[i]);
	}
	free(t->hosts);
	free(t->devices);
	free(t->tx);
	free(t->rx);
	free(t);
}

/* ---- what the switches hold ---- */

/* What one device holds; *light owns it, also after an error. */
static int read_device(const struct model_fabric *f, int device,
		       struct plan_light *light, struct err *err)
{
	struct testbed_device *dev;
	struct ring_programs *programs = x_new(1, sizeof(*programs));
	struct optics_xc *xcs = NULL;
	int rc = testbed_device_new(f, device, &dev, err);

	if (rc == 0) {
		rc = testbed_device_read(dev, &xcs, &light->n_xcs, programs, err);
		testbed_device_free(dev);
	}
	light->xcs = xcs;
	light->programs = programs;
	light->known = rc == 0;
	return rc;
}

int testbed_read(const struct model_fabric *f, struct plan_light **light, struct err *err)
{
	int rc = 0;

	*light = x_new((size_t)f->n_devices + 1, sizeof(**light));
	for (int i = 0; rc == 0 && i < f->n_devices; i++) {
		rc = read_device(f, i, &(*light)[i], err);
	}
	if (rc) {
		testbed_light_free(f, *light);
		*light = NULL;
	}
	return rc;
}

void testbed_light_free(const struct model_fabric *f, struct plan_light *light)
{
	for (int i = 0; light && i < f->n_devices; i++) {
		free((void *)light[i].xcs);
		if (light[i].programs) {
			ring_programs_fini((struct ring_programs *)light[i].programs);
			free((void *)light[i].programs);
		}
	}
	free(light);
}
