/* SPDX-License-Identifier: Apache-2.0 */
/* What participants of a joint change read of each other: the first byte picks lights or a
 * request, the rest is the message. What is accepted is written, and reads the same again. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "controller/daemon/joint/joint.h"
#include "tests/fuzz/two_hosts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define HOLDS(x)                 \
	do {                     \
		if (!(x)) {      \
			abort(); \
		}                \
	} while (0)

/* As large as the corpus knows it. */
static const char devices[] =
	"  - { name: \"n[0-3]\" }\n"
	"switches:\n"
	"  - { name: ocs0, size: 8x8, driver: sim }\n"
	"  - { name: ocs1, ports: 8, any-to-any: true, driver: sim }\n"
	"fibres:\n  - { from: \"h[0-1].p0\", to: \"ocs0.[1-2]\" }\n"
	"rings:\n"
	"  - { name: r0, nodes: \"n[0-3]\", channels: 4, channel-rate: 40Gbps, retune: 25us,"
	" driver: sim-ring }\n";

static bool is_any(const struct model_device *dev, void *arg)
{
	(void)dev;
	(void)arg;
	return true;
}

static void make_dark(struct snapshot *s, const struct model_fabric *f)
{
	static const struct plan_light dark[3];
	static const int64_t ns[3];
	const struct plan_base base = { .intent = dark, .observed = dark,
					.times = { f->n_ports, f->n_devices, ns, ns } };

	HOLDS(f->n_devices == 3 && f->n_ports == 2);
	daemon_snapshot_init(s, &base, f->n_devices);
}

static void try_lights(const uint8_t *data, size_t size)
{
	const struct model_fabric *f = two_hosts(devices);
	struct buf first = { 0 }, second = { 0 };
	struct snapshot s, again;
	struct err err = { 0 };

	make_dark(&s, f);
	make_dark(&again, f);
	if (joint_lights_decode(&s, f, data, size, "x", &err)) {
		HOLDS(err.code < 0 && err.msg[0]);
	} else {
		joint_lights_encode(&s, f, is_any, NULL, &first);
		HOLDS(joint_lights_decode(&again, f, first.data, first.len, "x", NULL) == 0);
		joint_lights_encode(&again, f, is_any, NULL, &second);
		HOLDS(first.len == second.len && memcmp(first.data, second.data, first.len) == 0);
	}
	buf_fini(&first);
	buf_fini(&second);
	daemon_snapshot_fini(&s);
	daemon_snapshot_fini(&again);
}

static void try_request(const uint8_t *data, size_t size)
{
	struct buf first = { 0 }, second = { 0 };
	struct joint_request r, again;
	struct err err = { 0 };

	if (joint_request_decode(data, size, &r, &err)) {
		HOLDS(err.code < 0 && err.msg[0]);
		return;
	}
	joint_request_encode(&r, &first);
	HOLDS(joint_request_decode(first.data, first.len, &again, NULL) == 0);
	joint_request_encode(&again, &second);
	HOLDS(first.len == second.len && memcmp(first.data, second.data, first.len) == 0);
	buf_fini(&first);
	buf_fini(&second);
	joint_request_fini(&r);
	joint_request_fini(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size) {
		(data[0] % 2 ? try_request : try_lights)(data + 1, size - 1);
	}
	return 0;
}
