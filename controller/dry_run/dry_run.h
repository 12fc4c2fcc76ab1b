/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a plan means for devices: how they are opened, and what is sent to
 * them, in which batches and in which order. controller/apply sends by these
 * rules and a dry run shows by them. Nothing here waits for a device.
 *
 * Stages come one after the other. Within one, all devices are deleted on,
 * then added on, then loaded; the devices of a phase at the same time.
 */
#ifndef WEFT_DRY_RUN_DRY_RUN_H
#define WEFT_DRY_RUN_DRY_RUN_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "controller/model/model.h"
#include "controller/plan/plan.h"
#include "drivers/core/driver.h"
#include "lib/base/err.h"

/* A handle for fabric->devices[device]; nothing is sent. WEFT_EINVAL with the
 * place in the file for an unknown driver or option, or a driver of another
 * kind of device. */
int dry_run_open(uv_loop_t *loop, const struct model_fabric *fabric, int device, uint64_t fence,
		 struct drv **out, struct err *err);

/* Names of driver and options, and that the driver is for such a device: a model_check_fn. */
void dry_run_check(const struct model_device *d, const char *file, struct err_list *errs);

/* A stage on one switch or panel, as it begins. */
struct batch_stage {
	int n_del, n_add;	/* circuits that it deletes and makes */
	int n_keep;		/* weft's other circuits that stay meanwhile */
	int n_there;		/* all that the device holds */
};

/* Whether one command for the whole map is right: it must save commands and
 * put no circuit at risk that the stage does not move, as a device may cut the
 * command short and the controller may not live to repair it. */
bool batch_replaces_map(const struct drv_caps *caps, const struct batch_stage *s);

/* How many of `n` steps of a kind the next batch holds. */
int batch_size(const struct drv_caps *caps, int n);

enum batch_phase {
	BATCH_DELETE, BATCH_ADD,
	BATCH_MAP,	/* deletes and adds at once */
	BATCH_LOAD,	/* a ring's programs */
};

/* "delete", "add", "map", "load". */
const char *batch_phase_name(enum batch_phase p);

/* A device of the fabric in a dry run. */
struct dry_run_device {
	struct drv *drv;
	const struct drv_snapshot *snap;	/* NULL: never read, so that
						 * its limits are unknown */
};

/* One batch. Lives during the call. */
struct dry_run_batch {
	int stage;		/* plan->stages */
	int device;		/* fabric->devices */
	enum batch_phase phase;
	int n_items;		/* circuits, or programs */
	int n_lines;
	const char *const *lines;	/* commands, as they are sent */
	bool guessed;		/* the device was never read */
};

typedef int (*dry_run_fn)(const struct dry_run_batch *o, void *arg, struct err *err);

/*
 * The batches that carrying the plan out sends, in order, with the commands
 * that its drivers make of each (drv_explain). devices: one per
 * fabric->devices. What a non-zero fn returns ends it and is returned. Not
 * among the lines are log-in, most readings, and what follows from an answer
 * (a refusal, a half-made circuit). O(stages * circuits log circuits).
 */
int dry_run_explain(const struct plan *p, const struct dry_run_device *devices, dry_run_fn fn,
		    void *arg, struct err *err);

#endif
