/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this room share beside occupancy.h. */
#ifndef WEFT_WEBUI_PRIVATE_H
#define WEFT_WEBUI_PRIVATE_H

#include "controller/plan/plan.h"

/* Index among the plan's jobs, -1 for a program of a job that is gone. O(jobs). */
int page_find_job(const struct plan *p, const char *name);
/* NULL without a plan, or when it leaves the device alone. O(devices). */
const struct plan_device *page_find_device(const struct plan *p, int device);

#endif
