/* SPDX-License-Identifier: Apache-2.0 */
/* A plan as bytes, on its way from the process that made it. */
#ifndef WEFT_PLAN_PLAN_LAYOUT_H
#define WEFT_PLAN_PLAN_LAYOUT_H

#include "controller/plan/plan.h"

struct layout;
struct layout_other;

/* Of a struct ring_programs, and of a pointer to an own one or NULL. */
extern const struct layout_other plan_programs_bytes, plan_programs_pointer_bytes;
/* Of struct optics_xc and struct ring_fault. */
extern const struct layout plan_xc_layout, plan_fault_layout;

/* Appends all of a plan but what only planning needs: flows, and what a ring's schedule was
 * expanded from. Equal plans have equal bytes. O(bytes). */
void plan_to_bytes(const struct plan *p, struct buf *out);

/*
 * A plan of `fabric` from bytes that may be anybody's: whatever is not refused can be given to all
 * that takes plans. WEFT_EINVAL names the field, or what of the fabric is not there, or else what
 * reading schedules and programs refuses. That the plan is a good one is not looked at. O(bytes).
 */
int plan_from_bytes(const struct model_fabric *fabric, const void *data, size_t len,
		    struct plan **out, struct err *err);

#endif
