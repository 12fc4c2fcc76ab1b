/* Looking at a running testbed; see testbed.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "controller/testbed/testbed.h"
#include "drivers/driver.h"

/* ---- sessions and netdevs ---- */

static int open_netns(const struct model_fabric *f, const char *name,
		      struct host_net **out, struct err *err)
{
	char netns[HOST_NETNS_MAX];
	int rc = host_open(testbed_netns(f, name, netns), out, err);

	if (rc == WEFT_EUNAVAIL) {
		err_hint(err, "weft testbed up %s", f->file);
	}
	return rc;
}

static int find_link(const struct host_link *v, int n, const char *port,
		     const char *side, struct host_link *out, struct err *err)
{
	char name[HOST_IFNAME_MAX + 8];

	snprintf(name, sizeof(name), "%s.%s", port, side);
	for (int i = 0; i < n; i++) {
		if (strcmp(v[i].name, name) == 0) {
			*out = v[i];
			return 0;
		}
	}
	return err_set(err, WEFT_EUNAVAIL, "there is no netdev %s", name);
}

static int host_ports(struct testbed *t, int host, struct err *err)
{
	const struct model_fabric *f = t->fabric;
	const struct model_host *h = &f->hosts[host];
	struct host_link *v;
	int n, rc = host_links(t->hosts[host], &v, &n, err);

	for (int i = h->first_port; rc == 0 && i < h->first_port + h->n_ports;
	     i++) {
		const char *name = f->ports[i].name + strlen(h->name) + 1;

		if (f->ports[i].tx_device >= 0) {
			rc = find_link(v, n, name, "tx", &t->tx[i], err);
		}
		if (rc == 0 && f->ports[i].rx_device >= 0) {
			rc = find_link(v, n, name, "rx", &t->rx[i], err);
		}
		if (rc) {
			err_wrap(err, "host %s", h->name);
		}
	}
	free(v);
	return rc;
}

int testbed_links(struct testbed *t, struct err *err)
{
	int rc = 0;

	for (int i = 0; rc == 0 && i < t->fabric->n_hosts; i++) {
		rc = host_ports(t, i, err);
	}
	return rc;
}

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
	return rc ? rc : testbed_links(t, err);
}

int testbed_open(const struct model_fabric *f, struct testbed **out,
		 struct err *err)
{
	struct testbed *t = calloc(1, sizeof(*t));
	int rc;

	*out = NULL;
	if (!t) {
		return err_nomem(err);
	}
	t->fabric = f;
	t->hosts = calloc((size_t)f->n_hosts + 1, sizeof(*t->hosts));
	t->devices = calloc((size_t)f->n_devices + 1, sizeof(*t->devices));
	t->tx = calloc((size_t)f->n_ports + 1, sizeof(*t->tx));
	t->rx = calloc((size_t)f->n_ports + 1, sizeof(*t->rx));
	rc = t->hosts && t->devices && t->tx && t->rx ? open_all(t, err) :
	     err_nomem(err);
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

struct reading {
	struct plan_light *light;
	int rc;
	struct err err;
};

static int take(struct plan_light *l, const struct drv_snapshot *snap,
		struct err *err)
{
	struct light_xc *xcs = calloc((size_t)snap->n_xcs + 1, sizeof(*xcs));

	if (!xcs) {
		return err_nomem(err);
	}
	l->known = true;
	l->xcs = xcs;
	for (int i = 0; i < snap->n_xcs; i++) {
		if (snap->xcs[i].state == DRV_TUNED) {
			xcs[l->n_xcs++] = snap->xcs[i].xc;
		}
	}
	return 0;
}

static void on_snapshot(struct drv *dev, int rc, struct drv_snapshot *snap,
			const struct err *err, void *arg)
{
	struct reading *r = arg;

	r->rc = rc;
	r->err = *err;
	if (rc == 0) {
		r->rc = take(r->light, snap, &r->err);
	}
	drv_close(dev, NULL, NULL);
}

static int read_device(uv_loop_t *loop, const struct model_device *d,
		       struct plan_light *light, struct err *err)
{
	struct drv_option options[16];
	struct drv_config cfg = {
		.name = d->name, .address = d->address, .n_in = d->n_in,
		.n_out = d->n_out, .any_to_any = d->any_to_any,
		.timeout_ms = d->timeout_ms / 1000000, .options = options,
	};
	struct reading r = { .light = light };
	struct drv *dev;
	int rc;

	for (; cfg.n_options < d->n_options && cfg.n_options < 16;
	     cfg.n_options++) {
		options[cfg.n_options] = (struct drv_option){
			d->options[cfg.n_options].key,
			d->options[cfg.n_options].value };
	}
	rc = drv_open(loop, d->driver, &cfg, &dev, err);
	if (rc) {
		return rc;
	}
	drv_snapshot(dev, on_snapshot, &r);
	uv_run(loop, UV_RUN_DEFAULT);
	if (r.rc && err) {
		*err = r.err;
	}
	return r.rc;
}

int testbed_read(const struct model_fabric *f, struct plan_light **light,
		 struct err *err)
{
	uv_loop_t loop;
	int rc = 0;

	*light = calloc((size_t)f->n_devices + 1, sizeof(**light));
	if (!*light) {
		return err_nomem(err);
	}
	uv_loop_init(&loop);
	for (int i = 0; rc == 0 && i < f->n_devices; i++) {
		rc = read_device(&loop, &f->devices[i], &(*light)[i], err);
	}
	uv_loop_close(&loop);
	if (rc) {
		testbed_light_free(f, *light);
		*light = NULL;
	}
	return rc;
}

void testbed_light_free(const struct model_fabric *f,
			struct plan_light *light)
{
	for (int i = 0; light && i < f->n_devices; i++) {
		free((void *)light[i].xcs);
	}
	free(light);
}

static int out_of(const struct plan_light *l, int in)
{
	for (int i = 0; i < l->n_xcs; i++) {
		if (l->xcs[i].in == in) {
			return l->xcs[i].out;
		}
	}
	return -1;
}

/* Where a fibre from this out-port leads: a host port, or the next switch. */
static int follow(const struct model_fabric *f, int *device, int *port)
{
	int host_port = f->devices[*device].out_port[*port];

	if (host_port != MODEL_AT_TRUNK) {
		return host_port;
	}
	for (int i = 0; i < f->n_trunks; i++) {
		const struct model_trunk *t = &f->trunks[i];

		if (t->from_device == *device && t->from_port == *port) {
			*device = t->to_device;
			*port = t->to_port;
			return MODEL_AT_TRUNK;
		}
	}
	return -1;
}

int testbed_trace(const struct model_fabric *f,
		  const struct plan_light *light, int tx_port)
{
	int device = f->ports[tx_port].tx_device;
	int port = f->ports[tx_port].tx_port;
	int found = device < 0 ? -1 : MODEL_AT_TRUNK;

	/* Circuits may run in a circle; no way is longer than all trunks. */
	for (int hops = 0; found == MODEL_AT_TRUNK && hops <= f->n_trunks;
	     hops++) {
		port = out_of(&light[device], port);
		found = port < 0 ? -1 : follow(f, &device, &port);
	}
	return found < 0 ? -1 : found;
}
