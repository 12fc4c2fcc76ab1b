/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A namespace of a test's own, or a reason why there cannot be one: those
 * who may not make namespaces skip what needs them.
 */
#ifndef WEFT_TESTS_UNIT_HOST_BENCH_H
#define WEFT_TESTS_UNIT_HOST_BENCH_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <unistd.h>

#include "drivers/host/host.h"

/* Makes weft-test.PID.TAG; false (said once) when this machine does not
 * allow it. */
static inline bool bench_netns(const char *tag, char name[64])
{
	struct err err = { 0 };

	snprintf(name, 64, "weft-test.%d.%s", (int)getpid(), tag);
	if (host_netns_add(name, &err) == 0) {
		return true;
	}
	if (err.code != WEFT_EDENIED && err.code != WEFT_EUNSUPPORTED) {
		fail_msg("%s", err.msg);
	}
	print_message("# network namespaces are not available: %s\n", err.msg);
	return false;
}

static inline void bench_end(const char *name)
{
	assert_int_equal(host_netns_del(name, NULL), 0);
}

static inline struct host_net *bench_open(const char *name)
{
	struct host_net *net = NULL;
	struct err err = { 0 };

	if (host_open(name, &net, &err)) {
		fail_msg("%s", err.msg);
	}
	return net;
}

/* ifindex of a link that must be there. */
static inline struct host_link bench_link(struct host_net *net,
					  const char *name)
{
	struct host_link *v, found = { 0 };
	int n;

	assert_int_equal(host_links(net, &v, &n, NULL), 0);
	for (int i = 0; i < n; i++) {
		if (strcmp(v[i].name, name) == 0) {
			found = v[i];
		}
	}
	free(v);
	if (!found.ifindex) {
		fail_msg("no link %s", name);
	}
	return found;
}

/* in1..inN and out1..outM of a switch, each with its far end fin1, fout1 in
 * the same namespace. */
static inline void bench_ports(struct host_net *net, int n_in, int n_out)
{
	for (int i = 0; i < n_in + n_out; i++) {
		const char *side = i < n_in ? "in" : "out";
		char near[16], far[16];
		int k = i < n_in ? i + 1 : i - n_in + 1;

		snprintf(near, sizeof(near), "%s%d", side, k);
		snprintf(far, sizeof(far), "f%s%d", side, k);
		assert_int_equal(host_veth_add(net, near, NULL, net, far, NULL,
					       NULL), 0);
		assert_int_equal(host_link_set(net, bench_link(net, far).ifindex,
					       true, NULL), 0);
		if (i < n_in) {
			int ifindex = bench_link(net, near).ifindex;

			assert_int_equal(host_link_set(net, ifindex, true,
						       NULL), 0);
			assert_int_equal(host_ingress_add(net, ifindex, NULL),
					 0);
		}
	}
}

#endif
