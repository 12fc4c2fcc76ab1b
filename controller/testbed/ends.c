/* SPDX-License-Identifier: Apache-2.0 */
/* Where light leaves and enters hosts; see testbed.h. */
#include <stdio.h>
#include <string.h>

#include "controller/testbed/testbed.h"
#include "drivers/linux/netns_ring.h"

struct ring_geometry testbed_ring(const struct model_device *d)
{
	return (struct ring_geometry){
		.nodes = (uint16_t)d->n_members,
		.channels = (uint16_t)d->ring.channels,
		.fibres = (uint8_t)d->ring.fibres,
	};
}

static int n_places(const struct model_device *d)
{
	struct ring_geometry g = testbed_ring(d);

	return d->kind == MODEL_RING ? (int)netns_ring_count(&g) : 0;
}

int testbed_n_ends(const struct model_fabric *f)
{
	int n = f->n_ports;

	for (int i = 0; i < f->n_devices; i++) {
		n += n_places(&f->devices[i]);
	}
	return n;
}

int testbed_end_of(const struct model_fabric *f, int ring, size_t place)
{
	int end = f->n_ports + (int)place;

	for (int i = 0; i < ring; i++) {
		end += n_places(&f->devices[i]);
	}
	return end;
}

struct testbed_end testbed_end(const struct model_fabric *f, int end)
{
	struct testbed_end out = { .ring = -1 };
	struct ring_geometry g;
	int at = end - f->n_ports, ring = 0;

	if (at < 0) {
		out.host = f->ports[end].host;
		return out;
	}
	while (at >= n_places(&f->devices[ring])) {
		at -= n_places(&f->devices[ring]);
		ring++;
	}
	g = testbed_ring(&f->devices[ring]);
	out.ring = ring;
	out.place = (size_t)at;
	out.at = netns_ring_at(&g, out.place);
	out.host = f->devices[ring].members[out.at.node];
	return out;
}

static char sign(const struct ring_setting *at)
{
	return at->dir == OPTICS_CW ? '+' : '-';
}

const char *testbed_end_name(const struct model_fabric *f, int end, char buf[TESTBED_NAME_MAX])
{
	struct testbed_end e = testbed_end(f, end);

	if (e.ring < 0) {
		return f->ports[end].name;
	}
	snprintf(buf, TESTBED_NAME_MAX, "%s.%s%c%u.%u", f->hosts[e.host].name,
		 f->devices[e.ring].name, sign(&e.at), e.at.fibre, e.at.channel);
	return buf;
}

const char *testbed_end_netdev(const struct model_fabric *f, int end, char buf[TESTBED_NAME_MAX])
{
	struct testbed_end e = testbed_end(f, end);

	if (e.ring < 0) {
		return f->ports[end].name + strlen(f->hosts[e.host].name) + 1;
	}
	snprintf(buf, TESTBED_NAME_MAX, "r%d%c%u.%u", e.ring, sign(&e.at),
		 e.at.fibre, e.at.channel);
	return buf;
}

bool testbed_end_has(const struct model_fabric *f, int end, bool rx)
{
	if (end >= f->n_ports) {
		return true;
	}
	return (rx ? f->ports[end].rx_device : f->ports[end].tx_device) >= 0;
}
