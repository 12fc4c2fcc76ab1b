/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A copy of what a plan starts from, and what a process that plans is told and answers. The
 * engine's own base borrows from its last readings, which a reading on the loop replaces while a
 * plan is made; so it is copied, by what it is written in for another process.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "controller/daemon/core/plan_process.h"
#include "controller/daemon/core/plan_queue.h"
#include "controller/plan/plan_layout.h"
#include "lib/base/alloc.h"
#include "lib/output/layout_table.h"

/* ---- tables ------------------------------------------------------------------ */

static const struct layout loss_layout = {
	sizeof(struct plan_known_loss),
	FIELDS(PART(plan_known_loss, xc, &plan_xc_layout), NUMBER(plan_known_loss, mdb),
	       NUMBER(plan_known_loss, source)) };

static const struct layout power_layout = {
	sizeof(struct plan_known_power),
	FIELDS(NUMBER(plan_known_power, in), NUMBER(plan_known_power, mdbm)) };

#define LIGHT_LIST(list, of) LIST(plan_light, list, n_##list, of)

static const struct layout light_layout = {
	sizeof(struct plan_light),
	FIELDS(FLAG(plan_light, known), LIGHT_LIST(xcs, &plan_xc_layout),
	       LIGHT_LIST(dark, &plan_xc_layout),
	       LIGHT_LIST(no_light, &plan_xc_layout), LIGHT_LIST(fixed, &plan_xc_layout),
	       LIGHT_LIST(pending, &plan_xc_layout),
	       OTHER(plan_light, programs, &plan_programs_pointer_bytes),
	       NUMBER(plan_light, memory), NUMBER(plan_light, max_programs),
	       FLAG(plan_light, overlap), FLAG(plan_light, reload),
	       LIGHT_LIST(bad_in, &layout_int), LIGHT_LIST(bad_out, &layout_int),
	       LIGHT_LIST(held_in, &layout_int), LIGHT_LIST(held_out, &layout_int),
	       LIGHT_LIST(evacuated_in, &layout_int), LIGHT_LIST(evacuated_out, &layout_int),
	       LIGHT_LIST(dead, &plan_fault_layout),
	       LIGHT_LIST(lost, &plan_fault_layout), LIGHT_LIST(losses, &loss_layout),
	       LIGHT_LIST(powers, &power_layout)) };

static const struct layout snapshot_layout = {
	sizeof(struct snapshot),
	FIELDS(CHARS(snapshot, base.state_uuid), NUMBER(snapshot, base.generation),
	       NUMBER(snapshot, base.mode), NUMBER(snapshot, base.aim),
	       CHARS(snapshot, base.evacuated), TEXT(snapshot, topologies),
	       FLAG(snapshot, base.no_floor), FLAG(snapshot, base.partial),
	       FLAG(snapshot, base.is_rollback), FLAG(snapshot, base.from_committed),
	       LIST(snapshot, intent, n, &light_layout), ALSO(snapshot, observed, n, &light_layout),
	       LIST(snapshot, port_ns, base.times.n_ports, &layout_int64),
	       LIST(snapshot, device_ns, base.times.n_devices, &layout_int64)) };

struct task_name {
	char *text;
};

static const struct layout name_layout = {
	sizeof(struct task_name), FIELDS(TEXT(task_name, text)) };

static const struct layout restore_layout = {
	sizeof(struct plan_restore),
	FIELDS(NUMBER(plan_restore, device), LIST(plan_restore, xcs, n_xcs, &plan_xc_layout),
	       FLAG(plan_restore, program)) };

static const struct layout request_layout = {
	sizeof(struct model_request),
	FIELDS(TEXT(model_request, name), TEXT(model_request, nodes),
	       TEXT(model_request, collective), TEXT(model_request, topology),
	       TEXT(model_request, algorithm), TEXT(model_request, ring),
	       TEXT(model_request, ports), TEXT(model_request, circuits),
	       NUMBER(model_request, size_bytes), NUMBER(model_request, channels)) };

const struct layout plan_config_layout = {
	sizeof(struct model_config),
	FIELDS(TEXT(model_config, name), BYTES(model_config, text, len),
	       LIST(model_config, requests, n_requests, &request_layout)) };

const struct layout plan_task_layout = {
	sizeof(struct plan_task),
	FIELDS(PART(plan_task, snap, &snapshot_layout), LIST(plan_task, only, n_only, &name_layout),
	       TEXT(plan_task, step), FLAG(plan_task, restores),
	       LIST(plan_task, restore, n_restore, &restore_layout),
	       FLAG(plan_task, degraded), FLAG(plan_task, assess), FLAG(plan_task, ignore_floor),
	       FLAG(plan_task, has_keep), NUMBER(plan_task, keep_ppm)) };

const struct layout plan_answer_layout = {
	sizeof(struct plan_answer),
	FIELDS(PART(plan_answer, err, &layout_err),
	       LIST(plan_answer, errs.v, errs.n, &layout_err), NUMBER(plan_answer, took_ns),
	       BYTES(plan_answer, plan, len)) };

/* ---- snapshots ---------------------------------------------------------------- */

/* What is read has its lists beside the base. */
void daemon_snapshot_settle(struct snapshot *s)
{
	s->base.intent = s->intent;
	s->base.observed = s->observed;
	s->base.topologies = s->topologies;
	s->base.times.port_ns = s->port_ns;
	s->base.times.device_ns = s->device_ns;
}

void daemon_snapshot_init(struct snapshot *s, const struct plan_base *base, int n)
{
	const struct snapshot from = {
		.base = *base, .n = n,
		.intent = (struct plan_light *)base->intent,
		.observed = (struct plan_light *)base->observed,
		.topologies = (char *)(base->topologies ? base->topologies : ""),
		.port_ns = (int64_t *)base->times.port_ns,
		.device_ns = (int64_t *)base->times.device_ns,
	};
	struct buf b = { 0 };
	int rc;

	layout_write(&snapshot_layout, &from, &b);
	rc = layout_read(&snapshot_layout, s, b.data, b.len, NULL);
	assert(rc == 0);
	(void)rc;
	daemon_snapshot_settle(s);
	buf_fini(&b);
}

void daemon_light_fini(struct plan_light *light)
{
	light->programs = NULL;
	layout_fini(&light_layout, light);
}

void daemon_snapshot_replace(struct snapshot *s, bool observed, int device,
			     const struct plan_light *light, struct ring_programs *programs)
{
	struct plan_light *to = &(observed ? s->observed : s->intent)[device];
	struct ring_programs *own;

	layout_fini(&light_layout, to);
	*to = *light;
	to->programs = NULL;
	if (programs) {
		to->programs = own = x_new(1, sizeof(*own));
		*own = *programs;
		memset(programs, 0, sizeof(*programs));
	}
}

void daemon_snapshot_fini(struct snapshot *s)
{
	layout_fini(&snapshot_layout, s);
}
