/* SPDX-License-Identifier: Apache-2.0 */
/* What the process that plans answers is anybody's bytes: a plan that is not refused can be told,
 * drawn and followed, and reads the same again. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "controller/plan/plan_layout.h"
#include "controller/proto_convert/proto_convert.h"
#include "controller/webui/webui.h"
#include "tests/fuzz/two_hosts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define HOLDS(x)                 \
	do {                     \
		if (!(x)) {      \
			abort(); \
		}                \
	} while (0)

/* As large as the corpus knows it. */
static const char rest[] =
	"  - { name: \"n[0-3]\" }\n"
	"switches:\n"
	"  - { name: ocs0, size: 4x4, driver: sim }\n"
	"fibres:\n  - { from: \"h[0-1].p0\", to: \"ocs0.[1-2]\" }\n"
	"rings:\n"
	"  - { name: r0, nodes: \"n[0-3]\", channels: 4, channel-rate: 40Gbps, retune: 25us,"
	" driver: sim-ring }\n"
	"jobs:\n"
	"  - { name: j, nodes: \"h[0-1]\", collective: allgather, size: 1MiB,"
	" topology: \"UniRing(1,2)\", alpha: 5us }\n"
	"  - { name: g, ring: r0, nodes: all, collective: allgather, size: 1MiB }\n";

static int take_part(const Weft__V1__PlanResponse *part, void *arg, struct err *err)
{
	struct buf *b = arg;
	size_t n = protobuf_c_message_get_packed_size(&part->base);

	(void)err;
	protobuf_c_message_pack(&part->base, (uint8_t *)buf_extend(b, n));
	return 0;
}

static void follow_stages(struct plan *p)
{
	struct plan_outages outages;
	struct plan_arc *arcs;
	int n;

	plan_outages(p, &outages);
	plan_outages_fini(&outages);
	plan_arcs(p, &arcs, &n);
	free(arcs);
	for (int i = 0; i < p->n_stages && i < 8; i++) {
		plan_stage_removes(p, i, &arcs, &n);
		free(arcs);
		plan_stage_adds(p, i, &arcs, &n);
		free(arcs);
		plan_arcs_after(p, i, &arcs, &n);
		free(arcs);
	}
}

static void use(struct plan *p)
{
	struct buf b = { 0 };
	char text[PLAN_DOUBT_TEXT];

	msg_send_plan(p, NULL, true, take_part, &b, NULL);
	msg_send_lightpaths(p, take_part, &b, NULL);
	buf_reset(&b);
	page_picture(p->fabric, p, &b, NULL);
	buf_reset(&b);
	page_steps(p, &b, NULL);
	buf_fini(&b);
	follow_stages(p);
	for (int i = 0; i < p->n_jobs; i++) {
		for (int k = 0; k < p->jobs[i].n_paths; k++) {
			plan_power_doubt(p->fabric, &p->jobs[i].paths[k], text, sizeof(text));
		}
		plan_before_of(p, i);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct model_fabric *f = two_hosts(rest);
	struct buf first = { 0 }, second = { 0 };
	struct err err = { 0 };
	struct plan *p, *again;

	if (plan_from_bytes(f, data, size, &p, &err)) {
		HOLDS(err.code < 0 && err.msg[0]);
		return 0;
	}
	use(p);
	plan_to_bytes(p, &first);
	HOLDS(plan_from_bytes(f, first.data, first.len, &again, &err) == 0);
	plan_to_bytes(again, &second);
	HOLDS(first.len == second.len && memcmp(first.data, second.data, first.len) == 0);
	buf_fini(&first);
	buf_fini(&second);
	plan_free(p);
	plan_free(again);
	return 0;
}
