/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fabric files of a scenario: hosts h0 to h7 with a port to each switch or panel (two, where
 * there is only one of them), further nodes of a ring, and jobs. The variants differ in their
 * jobs, which are added, removed, moved to other hosts and given other topologies; some hosts
 * stay free for jobs that clients request. Each switch has four ports more than the fabric uses:
 * those are other people's.
 */
#include "tests/sim/cluster/fabrics.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/base/file.h"
#include "lib/digest/sha256.h"
#include "tests/sim/cluster/cluster.h"

#define FIRST_PORT 5000
#define FREE_PORTS 4
#define RING_NODES 4
#define RING_CHANNELS 4

static struct {
	char *text;
	char digest[SHA256_HEX_LEN];
} variants[CLUSTER_FABRICS];

/* ---- devices ---- */

bool fabrics_is_robot(const char *dialect)
{
	return strcmp(dialect, "rome-cli") == 0 || strcmp(dialect, "telescent-cli") == 0;
}

bool cluster_is_ring(int device)
{
	return strcmp(cluster_scenario()->devices[device].dialect, "mrr-reg") == 0;
}

const char *fabrics_device_name(int device)
{
	static const char *const switches[] = { "ocs0", "ocs1", "ocs2", "ocs3", "ocs4", "ocs5" };
	static const char *const rings[] = { "ring0", "ring1", "ring2", "ring3", "ring4", "ring5" };

	return cluster_is_ring(device) ? rings[device] : switches[device];
}

int fabrics_port(int device)
{
	return FIRST_PORT + device;
}

/* Switches and panels, which hosts have ports to. */
static int n_switches(void)
{
	int n = 0;

	for (int i = 0; i < cluster_scenario()->n_devices; i++) {
		n += !cluster_is_ring(i);
	}
	return n;
}

/* A host's ports to one switch, and to all. */
static int ports_each(void)
{
	return n_switches() == 1 ? 2 : 1;
}

static int host_ports(void)
{
	return ports_each() * n_switches();
}

int cluster_first_free_port(int device)
{
	return cluster_is_ring(device) ? 0 : CLUSTER_HOSTS * ports_each();
}

bool cluster_find_port(const char *name, const char **device, int *port)
{
	int host, p, nth;

	if (sscanf(name, "h%d.p%d", &host, &p) != 2) {
		return false;
	}
	nth = p / ports_each();
	for (int i = 0; i < cluster_scenario()->n_devices; i++) {
		if (!cluster_is_ring(i) && nth-- == 0) {
			*device = fabrics_device_name(i);
			*port = host * ports_each() + p % ports_each();
			return true;
		}
	}
	return false;
}

int cluster_ports(int device)
{
	return cluster_is_ring(device) ? RING_NODES : cluster_first_free_port(device) + FREE_PORTS;
}

void fabrics_size(int device, char *buf, size_t size)
{
	const char *own = cluster_scenario()->devices[device].size;
	int ports = cluster_ports(device);

	if (own) {
		snprintf(buf, size, "%s", own);
		return;
	}
	snprintf(buf, size, "%dx%d", ports, cluster_is_ring(device) ? RING_CHANNELS : ports);
}

/* ---- parts of a file ---- */

static void print_options(struct buf *b, const char *dialect)
{
	static const struct {
		const char *dialect, *options;
	} known[] = {
		{ "polatis-scpi", "gap_ms: 1, settle_ms: 20" },
		{ "polatis-restconf", "gap_ms: 1, settle_ms: 20, events_ms: 5000" },
		{ "sonic-ocs", "gap_ms: 1, settle_ms: 20" },
		{ "rome-cli", "gap_ms: 1, poll_ms: 100" },
		{ "telescent-cli", "gap_ms: 1, poll_ms: 100, move_ms: 5000" },
	};
	const char *options = "gap_ms: 1";

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
		if (strcmp(known[i].dialect, dialect) == 0) {
			options = known[i].options;
		}
	}
	buf_printf(b, "    options: { %s }\n", options);
}

static void print_common(struct buf *b, int device)
{
	const struct scenario *s = cluster_scenario();

	if (s->domains > 0) {
		buf_printf(b, "    domain: row%d\n", s->devices[device].domain);
	}
	buf_printf(b, "    driver: %s\n    address: 127.0.0.1:%d\n    timeout: 2s\n",
		   s->devices[device].dialect, fabrics_port(device));
}

static void print_switches(struct buf *b, bool robots)
{
	const struct scenario *s = cluster_scenario();
	bool begun = false;

	for (int i = 0; i < s->n_devices; i++) {
		char size[32];

		if (cluster_is_ring(i) || fabrics_is_robot(s->devices[i].dialect) != robots) {
			continue;
		}
		if (!begun) {
			buf_str(b, robots ? "panels:\n" : "switches:\n");
			begun = true;
		}
		fabrics_size(i, size, sizeof(size));
		buf_printf(b, "  - name: %s\n    size: %s\n", fabrics_device_name(i), size);
		print_common(b, i);
		print_options(b, s->devices[i].dialect);
	}
}

static void print_rings(struct buf *b)
{
	bool begun = false;

	for (int i = 0; i < cluster_scenario()->n_devices; i++) {
		if (!cluster_is_ring(i)) {
			continue;
		}
		if (!begun) {
			buf_str(b, "rings:\n");
			begun = true;
		}
		buf_printf(b, "  - name: %s\n    nodes: \"r%d-[0-%d]\"\n    channels: %d\n"
			   "    channel-rate: 40Gbps\n    retune: 25us\n",
			   fabrics_device_name(i), i, RING_NODES - 1, RING_CHANNELS);
		print_common(b, i);
	}
}

static void print_hosts(struct buf *b)
{
	buf_str(b, "hosts:\n");
	if (n_switches() > 0) {
		buf_printf(b, "  - { name: \"h[0-%d]\", ports: \"p[0-%d]\", rate: 100Gbps, "
			   "reactivation: 10ms }\n", CLUSTER_HOSTS - 1, host_ports() - 1);
	}
	for (int i = 0; i < cluster_scenario()->n_devices; i++) {
		if (cluster_is_ring(i)) {
			buf_printf(b, "  - { name: \"r%d-[0-%d]\" }\n", i, RING_NODES - 1);
		}
	}
}

static void print_fibres(struct buf *b)
{
	int port = 0;

	for (int i = 0; i < cluster_scenario()->n_devices; i++) {
		if (cluster_is_ring(i)) {
			continue;
		}
		buf_printf(b, "%s  - { from: \"h[0-%d].p[%d-%d]\", to: \"%s.[1-%d]\" }\n",
			   port == 0 ? "fibres:\n" : "", CLUSTER_HOSTS - 1, port,
			   port + ports_each() - 1, fabrics_device_name(i),
			   cluster_first_free_port(i));
		port += ports_each();
	}
}

/* ---- jobs ---- */

/* One of two topologies of n nodes on all ports of a host. */
static void print_topology(struct buf *b, bool other, int n)
{
	int ports = host_ports();

	if (!other || ports == 1 || n < 3) {
		buf_printf(b, "UniRing(%d,%d)", ports, n);
	} else if (ports == 2) {
		buf_printf(b, "Ring(%d)", n);
	} else if (ports < n) {
		buf_printf(b, "DiC(%d,{1", n);
		for (int i = 2; i <= ports; i++) {
			buf_printf(b, ",%d", i);
		}
		buf_str(b, "})");
	} else {
		buf_printf(b, "UniRing(%d,%d)", ports, n);
	}
}

/* Jobs on switches by variant; name NULL ends them. */
static const struct job {
	const char *name, *nodes;
	int n;
	bool other;		/* of the two topologies */
} jobs[CLUSTER_FABRICS][3] = {
	{ { "left", "h[0-3]", 4, false } },
	{ { "left", "h[0-3]", 4, true } },
	{ { "left", "h[0-3]", 4, false }, { "right", "h[4-5]", 2, false } },
	{ { "left", "h[2-5]", 4, false } },
	{ { "wide", "h[0-7]", 8, true } },
	{ { "right", "h[4-7]", 4, true } },
	{ { "left", "h[0-3]", 4, true }, { "right", "h[4-7]", 4, false } },
	{ { "left", "h0,h2,h1", 3, true } },
};

/* A ring's job has another tree, and goes where others are there. */
static void print_ring_jobs(struct buf *b, int variant)
{
	for (int i = 0; i < cluster_scenario()->n_devices; i++) {
		if (cluster_is_ring(i) && (variant != 5 || n_switches() == 0)) {
			buf_printf(b, "  - { name: gather%d, ring: %s, nodes: all, collective: "
				   "allgather, size: 1MiB, depth: %d }\n", i,
				   fabrics_device_name(i), variant % 2);
		}
	}
}

static void print_jobs(struct buf *b, int variant)
{
	buf_str(b, "jobs:\n");
	for (const struct job *j = jobs[variant]; n_switches() > 0 && j->name; j++) {
		buf_printf(b, "  - { name: %s, nodes: \"%s\", collective: allreduce, size: 1MiB, "
			   "topology: \"", j->name, j->nodes);
		print_topology(b, j->other, j->n);
		buf_str(b, "\", alpha: 10us }\n");
	}
	print_ring_jobs(b, variant);
}

/* ---- files ---- */

static const char *make(int variant)
{
	uint8_t digest[SHA256_LEN];
	struct buf b = { 0 };

	buf_str(&b, "weft: 1\nfabric: small\n");
	print_hosts(&b);
	print_switches(&b, false);
	print_switches(&b, true);
	print_rings(&b);
	print_fibres(&b);
	print_jobs(&b, variant);
	if (cluster_scenario()->restores) {
		buf_str(&b, "changes: { external-changes: restore, restore-after: 100ms }\n");
	}
	sha256(b.data, b.len, digest);
	sha256_hex(digest, variants[variant].digest);
	free(variants[variant].text);
	variants[variant].text = buf_steal(&b);
	return variants[variant].text;
}

void fabrics_write(void)
{
	for (int i = 0; i < CLUSTER_FABRICS; i++) {
		const char *text = make(i);
		struct err err = { 0 };
		char path[32];

		snprintf(path, sizeof(path), "fabric%d.yaml", i);
		if (file_write_atomic(path, text, strlen(text), 0666, &err)) {
			sim_fail("folder", "%s", err.msg);
		}
	}
}

const char *cluster_fabric(int variant)
{
	return variants[variant].text;
}

const char *cluster_fabric_digest(int variant)
{
	return variants[variant].digest;
}

int cluster_variant_of(const char *digest)
{
	for (int i = 0; i < CLUSTER_FABRICS; i++) {
		if (strcmp(variants[i].digest, digest) == 0) {
			return i;
		}
	}
	return -1;
}
