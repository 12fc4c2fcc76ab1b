/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Building and removing a testbed of network namespaces.
 *
 * Nothing is recorded outside the kernel: whether a testbed is up is found out by
 * opening all of it, and what is there in part is removed before it is built.
 * Faults are laid as wrong fibres, so the switches and all that is tested behind
 * them know nothing of them. An out-port stays down until a circuit leads to it,
 * as a dark port would.
 */
#include "controller/testbed/testbed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/linux/netns_ring.h"
#include "lib/base/alloc.h"

#define PREFIX "weft."
#define SWITCH_DRIVER "linux-tc"
#define RING_DRIVER "linux-ring"
#define SUFFIX 3	/* letters of ".tx" */

const char *testbed_netns(const struct model_fabric *f, const char *name, char *buf)
{
	snprintf(buf, HOST_NETNS_MAX, PREFIX "%s.%s", f->name, name);
	return buf;
}

/* ---- what is asked for ---- */

static const char *option_of(const struct model_device *d, const char *key)
{
	for (int i = 0; i < d->n_options; i++) {
		if (strcmp(d->options[i].key, key) == 0) {
			return d->options[i].value;
		}
	}
	return "";
}

/* Where in the file a device does not fit a testbed, and what would. */
static int check_device(const struct model_fabric *f, const struct model_device *d, struct err *err)
{
	const char *driver = d->kind == MODEL_RING ? RING_DRIVER : SWITCH_DRIVER;
	int rc = 0;

	if (strcmp(d->driver, driver) != 0) {
		rc = err_set(err, WEFT_EINVAL, "device %s: its driver is %s; in "
			     "a testbed it must be %s", d->name, d->driver,
			     driver);
	} else if (strcmp(option_of(d, "fabric"), f->name) != 0) {
		rc = err_set(err, WEFT_EINVAL, "device %s: the option fabric "
			     "must be %s in a testbed", d->name, f->name);
	} else if (model_find_host(f, d->name) >= 0) {
		rc = err_set(err, WEFT_EINVAL, "device %s: there is a host of "
			     "that name, both would be one namespace",
			     d->name);
	}
	if (rc) {
		err_at(err, f->config.name, d->place.line, d->place.col);
		err_hint(err, "driver: %s, options: { fabric: %s }", driver, f->name);
	}
	return rc;
}

int testbed_check(const struct model_fabric *f, struct err *err)
{
	int rc = 0;

	for (int i = 0; rc == 0 && i < f->n_devices; i++) {
		rc = check_device(f, &f->devices[i], err);
	}
	for (int i = 0; rc == 0 && i < testbed_n_ends(f); i++) {
		char name[TESTBED_NAME_MAX];

		if (strlen(testbed_end_netdev(f, i, name)) + SUFFIX >= HOST_IFNAME_MAX) {
			rc = err_set(err, WEFT_EINVAL, "port %s: a netdev's "
				     "name has room for %d letters of it",
				     testbed_end_name(f, i, name),
				     HOST_IFNAME_MAX - SUFFIX - 1);
		}
	}
	return rc;
}

int testbed_find_fibre(const struct model_fabric *f, const char *text,
		       bool whole, struct testbed_fibre *out, struct err *err)
{
	for (int i = 0; i < f->n_ports; i++) {
		size_t len = strlen(f->ports[i].name);

		if (strncmp(f->ports[i].name, text, len) != 0) {
			continue;
		}
		*out = (struct testbed_fibre){ i, strcmp(text + len, ".rx") ==
						  0 };
		if (whole ? text[len] == '\0' : out->rx || strcmp(text + len, ".tx") == 0) {
			return 0;
		}
	}
	err_set(err, WEFT_EUSAGE, "there is no %s '%.80s'", whole ? "port" : "fibre", text);
	err_hint(err, whole ? "HOST.PORT" : "HOST.PORT.tx or HOST.PORT.rx");
	return WEFT_EUSAGE;
}

/* ---- fibres as they are laid ---- */

/* Where a host's netdev leads. */
struct testbed_fibre_end {
	int device, port;	/* device -1: nowhere */
	bool out;		/* to an out-port of it */
	bool dead;		/* broken: it reaches no port */
};

/* A testbed being built, and how far it is. */
struct testbed_builder {
	const struct model_fabric *f;
	const struct testbed_options *o;
	struct host_net **nets;		/* [n_hosts + n_devices], in this
					 * order; NULL: not made yet */
	struct testbed_fibre_end *tx, *rx;	/* [n_ports] with the faults in them */
	struct host_net *management;	/* NULL: not made yet, or none */
	bool **used;			/* [n_devices][n_in + n_out]: a fibre
					 * leads there */
	testbed_progress_fn fn;
	void *arg;
	int done, total;		/* namespaces and fibres */
};

static struct testbed_fibre_end *end_of(struct testbed_builder *b, struct testbed_fibre fibre)
{
	return fibre.rx ? &b->rx[fibre.port] : &b->tx[fibre.port];
}

static void exchange(struct testbed_fibre_end *x, struct testbed_fibre_end *y)
{
	struct testbed_fibre_end t = *x;

	*x = *y;
	*y = t;
}

/* The fibres of hosts as the file has them, then the faults, one upon the
 * other. */
static void lay_fibres(struct testbed_builder *b)
{
	for (int i = 0; i < b->f->n_ports; i++) {
		const struct model_port *p = &b->f->ports[i];

		b->tx[i] = (struct testbed_fibre_end){ p->tx_device, p->tx_port, false,
					 false };
		b->rx[i] = (struct testbed_fibre_end){ p->rx_device, p->rx_port, true,
					 false };
	}
	for (int i = 0; i < b->o->n_faults; i++) {
		const struct testbed_fault *fault = &b->o->faults[i];

		if (fault->kind == TESTBED_SWAP) {
			exchange(end_of(b, fault->a), end_of(b, fault->b));
		} else if (fault->kind == TESTBED_REVERSE) {
			exchange(&b->tx[fault->a.port], &b->rx[fault->a.port]);
		} else {
			end_of(b, fault->a)->dead = true;
		}
	}
}

/* ---- building ---- */

static struct host_net *device_net(struct testbed_builder *b, int device)
{
	return b->nets[b->f->n_hosts + device];
}

/* A namespace or fibre more is done. */
static void step(struct testbed_builder *b)
{
	b->done++;
	if (b->fn) {
		b->fn(b->done, b->total, b->arg);
	}
}

/* Netdevs of a switch's port, for people and for the driver. */
static void port_name(char name[HOST_IFNAME_MAX], bool out, int port)
{
	snprintf(name, HOST_IFNAME_MAX, "%s%d", out ? "out" : "in", port + 1);
}

/* Turns IPv6 off in a namespace. */
static int quiet(struct host_net *net, struct err *err)
{
	static const char *const all[] = {
		"net/ipv6/conf/all/disable_ipv6",
		"net/ipv6/conf/default/disable_ipv6",
	};

	/* Its neighbour discovery is noise; a kernel without it has none. */
	for (int i = 0; i < 2; i++) {
		host_sysctl(net, all[i], "1", NULL);
	}
	return host_link_set(net, HOST_LOOPBACK, true, err);
}

/* Hosts pass on what is not for them, and take packets from anywhere: the
 * way back differs from the way there. */
static int make_router(struct host_net *net, struct err *err)
{
	static const char *const settings[][2] = {
		{ "net/ipv4/ip_forward", "1" },
		{ "net/ipv4/conf/all/rp_filter", "0" },
		{ "net/ipv4/conf/default/rp_filter", "0" },
		{ "net/ipv4/conf/all/send_redirects", "0" },
		{ "net/ipv4/conf/default/send_redirects", "0" },
		/* Light loses nothing, and a window that has grown stays: the
		 * machine's own choice may send at a pace of its own. */
		{ "net/ipv4/tcp_congestion_control", "reno" },
		{ "net/ipv4/tcp_slow_start_after_idle", "0" },
	};
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < sizeof(settings) / sizeof(settings[0]); i++) {
		rc = host_sysctl(net, settings[i][0], settings[i][1], err);
	}
	return rc;
}

static int make_netns(struct testbed_builder *b, int i, struct err *err)
{
	bool host = i < b->f->n_hosts;
	const char *of = host ? b->f->hosts[i].name : b->f->devices[i - b->f->n_hosts].name;
	char name[HOST_NETNS_MAX];
	int rc;

	if ((rc = host_netns_add(testbed_netns(b->f, of, name), err)) ||
	    (rc = host_open(name, &b->nets[i], err)) ||
	    (rc = quiet(b->nets[i], err))) {
		return rc;
	}
	step(b);
	return host ? make_router(b->nets[i], err) : 0;
}

/* MAC of a host's netdev, the same each time. */
static void mac_of(uint8_t mac[6], int end, bool rx)
{
	const uint8_t v[6] = { 0x02, 0x77, rx, (uint8_t)(end >> 16),
			       (uint8_t)(end >> 8), (uint8_t)end };

	memcpy(mac, v, sizeof(v));
}

/* A pair of veths from an end's netdev to a device's. */
static int lay_fibre(struct testbed_builder *b, int end, bool rx, int device,
		     const char *far, struct err *err)
{
	struct testbed_end e = testbed_end(b->f, end);
	char near[TESTBED_NAME_MAX + 4], name[TESTBED_NAME_MAX];
	uint8_t mac[6];

	snprintf(near, sizeof(near), "%s.%s",
		 testbed_end_netdev(b->f, end, name), rx ? "rx" : "tx");
	mac_of(mac, end, rx);
	step(b);
	return host_veth_add(b->nets[e.host], near, mac, device_net(b, device), far, NULL, err);
}

/* One fibre of a host's port. A broken one ends in the switch's namespace as
 * well, on a netdev that the switch knows nothing of. */
static int lay(struct testbed_builder *b, int port, bool rx, const struct testbed_fibre_end *e,
	       struct err *err)
{
	char far[HOST_IFNAME_MAX];

	if (e->device < 0) {
		return 0;
	}
	if (e->dead) {
		snprintf(far, sizeof(far), "cut%d%s", port, rx ? "r" : "t");
	} else {
		const struct model_device *d = &b->f->devices[e->device];

		port_name(far, e->out, e->port);
		b->used[e->device][(e->out ? d->n_in : 0) + e->port] = true;
	}
	return lay_fibre(b, port, rx, e->device, far, err);
}

/* The nodes' transmitters and receivers, and the fibres round the ring. */
static int lay_ring(struct testbed_builder *b, int device, struct err *err)
{
	struct ring_geometry g = testbed_ring(&b->f->devices[device]);
	int rc = netns_ring_wire(device_net(b, device), &g, err);

	for (size_t k = 0; rc == 0 && k < netns_ring_count(&g); k++) {
		struct ring_setting at = netns_ring_at(&g, k);
		int end = testbed_end_of(b->f, device, k);
		char far[HOST_IFNAME_MAX + 8];

		netns_ring_name(far, "t", &at);
		rc = lay_fibre(b, end, false, device, far, err);
		if (rc == 0) {
			netns_ring_name(far, "r", &at);
			rc = lay_fibre(b, end, true, device, far, err);
		}
	}
	return rc;
}

static int lay_trunk(struct testbed_builder *b, const struct model_trunk *t, struct err *err)
{
	char from[HOST_IFNAME_MAX], to[HOST_IFNAME_MAX];
	const struct model_device *d = &b->f->devices[t->from_device];

	port_name(from, true, t->from_port);
	port_name(to, false, t->to_port);
	b->used[t->from_device][d->n_in + t->from_port] = true;
	b->used[t->to_device][t->to_port] = true;
	step(b);
	return host_veth_add(device_net(b, t->from_device), from, NULL,
			     device_net(b, t->to_device), to, NULL, err);
}

/* Ports that no fibre reaches are there all the same. */
static int lay_open(struct testbed_builder *b, int device, struct err *err)
{
	const struct model_device *d = &b->f->devices[device];
	struct host_net *net = device_net(b, device);
	char near[HOST_IFNAME_MAX], far[HOST_IFNAME_MAX + 1];
	int rc = 0;

	for (int i = 0; rc == 0 && i < d->n_in + d->n_out; i++) {
		if (!b->used[device][i]) {
			port_name(near, i >= d->n_in, i < d->n_in ? i : i - d->n_in);
			snprintf(far, sizeof(far), "-%s", near);
			rc = host_veth_add(net, near, NULL, net, far, NULL, err);
		}
	}
	return rc;
}

static int lay_all(struct testbed_builder *b, struct err *err)
{
	int rc = 0;

	for (int i = 0; rc == 0 && i < b->f->n_ports; i++) {
		rc = lay(b, i, false, &b->tx[i], err);
		if (rc == 0) {
			rc = lay(b, i, true, &b->rx[i], err);
		}
	}
	for (int i = 0; rc == 0 && i < b->f->n_trunks; i++) {
		rc = lay_trunk(b, &b->f->trunks[i], err);
	}
	for (int i = 0; rc == 0 && i < b->f->n_devices; i++) {
		rc = b->f->devices[i].kind == MODEL_RING ?
		     lay_ring(b, i, err) : lay_open(b, i, err);
	}
	return rc;
}

/* In-ports listen; out-ports stay down: no circuit, no light. */
static int start_switch(struct host_net *net, struct err *err)
{
	struct host_link *v;
	int n, rc = host_links(net, &v, &n, err);

	for (int i = 0; rc == 0 && i < n; i++) {
		if (strncmp(v[i].name, "in", 2) != 0) {
			continue;
		}
		rc = host_ingress_add(net, v[i].ifindex, err);
		if (rc == 0) {
			rc = host_link_set(net, v[i].ifindex, true, err);
		}
	}
	free(v);
	return rc;
}

/* ---- the management network ---- */

#define MANAGEMENT_BRIDGE "hosts"
#define MANAGEMENT_PREFIX 16

bool testbed_has_management(const struct model_fabric *f)
{
	return f->n_hosts > 0 && f->n_hosts <= 1000;
}

/* A namespace with a bridge, and a pair of veths from it to each host: beside the light, so that
 * what starts and ends programs does not wait behind what they send. */
static int lay_management(struct testbed_builder *b, struct err *err)
{
	char name[HOST_NETNS_MAX], port[HOST_IFNAME_MAX];
	int rc;

	if (!testbed_has_management(b->f)) {
		return 0;
	}
	if ((rc = host_netns_add(testbed_netns(b->f, TESTBED_MANAGEMENT, name), err)) ||
	    (rc = host_open(name, &b->management, err)) || (rc = quiet(b->management, err)) ||
	    (rc = host_bridge_add(b->management, MANAGEMENT_BRIDGE, err))) {
		return rc;
	}
	for (int i = 0; i < b->f->n_hosts && rc == 0; i++) {
		snprintf(port, sizeof(port), "%d", i);
		rc = host_veth_add(b->nets[i], TESTBED_MANAGEMENT_DEV, NULL, b->management, port,
				   NULL, err);
	}
	return rc;
}

static int start_management(struct host_net *net, struct err *err)
{
	struct host_link *v;
	int n, bridge = 0, rc = host_links(net, &v, &n, err);

	for (int i = 0; rc == 0 && i < n; i++) {
		if (strcmp(v[i].name, MANAGEMENT_BRIDGE) == 0) {
			bridge = v[i].ifindex;
		}
	}
	for (int i = 0; rc == 0 && i < n; i++) {
		rc = v[i].ifindex == bridge ? 0 : host_bridge_join(net, bridge, v[i].ifindex, err);
		if (rc == 0) {
			rc = host_link_set(net, v[i].ifindex, true, err);
		}
	}
	free(v);
	if (rc) {
		return rc;
	}
	return host_addr_add(net, bridge, testbed_management_address(-1), MANAGEMENT_PREFIX, err);
}

uint32_t testbed_management_address(int host)
{
	return plan_host_address(host < 0 ? 0xfffd : host, -1);
}

/* ---- starting ---- */

/* The rate of the end that a netdev is of, or 0 for no limit. */
static int64_t rate_of(const struct testbed_builder *b, int host, const char *netdev)
{
	const struct model_host *h = &b->f->hosts[host];
	size_t len = strlen(netdev);
	int64_t rate = 0;
	int ring;

	if (len <= SUFFIX || strcmp(netdev + len - SUFFIX, ".tx") != 0) {
		return 0;
	}
	if (b->o->rate_bps) {
		return b->o->rate_bps;
	}
	if (sscanf(netdev, "r%d%*[+-]", &ring) == 1 && ring >= 0 && ring < b->f->n_devices) {
		rate = b->f->devices[ring].channel_bps;
	}
	for (int i = h->first_port; i < h->first_port + h->n_ports; i++) {
		const char *name = testbed_end_netdev(b->f, i, NULL);

		if (strlen(name) == len - SUFFIX && strncmp(name, netdev, len - SUFFIX) == 0) {
			rate = b->f->ports[i].rate_bps;
		}
	}
	return rate <= HOST_MAX_RATE_BPS ? rate : 0;
}

/* Whether a netdev is the one of the host's first port that sends. */
static bool is_first(const struct testbed_builder *b, int host, const char *netdev)
{
	const struct model_host *h = &b->f->hosts[host];
	char want[TESTBED_NAME_MAX + 4];

	if (h->n_ports == 0) {
		return false;
	}
	snprintf(want, sizeof(want), "%s.tx", testbed_end_netdev(b->f, h->first_port, NULL));
	return strcmp(netdev, want) == 0;
}

static int start_host(struct testbed_builder *b, int host, struct err *err)
{
	struct host_net *net = b->nets[host];
	struct host_link *v;
	int n, own = HOST_LOOPBACK, rc = host_links(net, &v, &n, err);

	for (int i = 0; rc == 0 && i < n; i++) {
		int64_t rate = rate_of(b, host, v[i].name);

		own = is_first(b, host, v[i].name) ? v[i].ifindex : own;
		rc = host_link_set(net, v[i].ifindex, true, err);
		if (rc == 0 && strcmp(v[i].name, TESTBED_MANAGEMENT_DEV) == 0) {
			rc = host_addr_add(net, v[i].ifindex, testbed_management_address(host),
					   MANAGEMENT_PREFIX, err);
		}
		if (rc == 0 && rate) {
			rc = host_rate_set(net, v[i].ifindex, rate, err);
		}
	}
	free(v);
	if (rc) {
		return rc;
	}
	return host_addr_add(net, own, plan_host_address(host, 0), 32, err);
}

static int build(struct testbed_builder *b, struct err *err)
{
	int n = b->f->n_hosts + b->f->n_devices, rc = 0;

	b->total = n + 2 * testbed_n_ends(b->f) + b->f->n_trunks;
	lay_fibres(b);
	for (int i = 0; rc == 0 && i < n; i++) {
		rc = make_netns(b, i, err);
	}
	if (rc == 0) {
		rc = lay_management(b, err);
	}
	if (rc == 0) {
		rc = lay_all(b, err);
	}
	for (int i = 0; rc == 0 && i < b->f->n_devices; i++) {
		rc = b->f->devices[i].kind == MODEL_RING ?
		     netns_ring_start(device_net(b, i), err) :
		     start_switch(device_net(b, i), err);
	}
	for (int i = 0; rc == 0 && i < b->f->n_hosts; i++) {
		rc = start_host(b, i, err);
	}
	if (rc == 0 && b->management) {
		rc = start_management(b->management, err);
	}
	return rc;
}

static void builder_init(struct testbed_builder *b)
{
	const struct model_fabric *f = b->f;

	b->nets = x_new((size_t)(f->n_hosts + f->n_devices), sizeof(*b->nets));
	b->tx = x_new((size_t)f->n_ports + 1, sizeof(*b->tx));
	b->rx = x_new((size_t)f->n_ports + 1, sizeof(*b->rx));
	b->used = x_new((size_t)f->n_devices + 1, sizeof(*b->used));
	for (int i = 0; i < f->n_devices; i++) {
		b->used[i] = x_new((size_t)(f->devices[i].n_in + f->devices[i].n_out), 1);
	}
}

static void builder_fini(struct testbed_builder *b)
{
	for (int i = 0; b->nets && i < b->f->n_hosts + b->f->n_devices; i++) {
		host_close(b->nets[i]);
	}
	for (int i = 0; b->used && i < b->f->n_devices; i++) {
		free(b->used[i]);
	}
	host_close(b->management);
	free(b->nets);
	free(b->tx);
	free(b->rx);
	free(b->used);
}

static bool is_whole(const struct model_fabric *f)
{
	struct testbed *t = NULL;
	bool whole = testbed_open(f, &t, NULL) == 0;

	testbed_close(t);
	return whole;
}

int testbed_up(const struct model_fabric *f, const struct testbed_options *o,
	       testbed_progress_fn fn, void *arg, bool *built, struct err *err)
{
	struct testbed_builder b = { .f = f, .o = o, .fn = fn, .arg = arg };
	int removed, rc = testbed_check(f, err);

	*built = false;
	if (rc || (o->n_faults == 0 && is_whole(f))) {
		return rc;
	}
	rc = testbed_down(f->name, &removed, err);
	if (rc == 0) {
		builder_init(&b);
		*built = true;
		rc = build(&b, err);
	}
	builder_fini(&b);
	if (rc) {
		testbed_down(f->name, &removed, NULL);
	}
	return rc;
}

int testbed_down(const char *fabric, int *n, struct err *err)
{
	char prefix[HOST_NETNS_MAX], **names;
	int rc, n_names;

	*n = 0;
	snprintf(prefix, sizeof(prefix), PREFIX "%s.", fabric);
	rc = host_netns_list(prefix, &names, &n_names, err);
	for (int i = 0; rc == 0 && i < n_names; i++) {
		rc = host_netns_del(names[i], err);
		*n += rc == 0;
	}
	host_netns_list_free(names, n_names);
	if (rc) {
		return rc;
	}
	return netns_ring_forget(prefix, err);
}
