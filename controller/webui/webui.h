/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The page that weftd serves to look at: its files, which are part of the
 * program, and the picture of a fabric that they draw. What weftd knows
 * beside the picture comes from proto_convert (report.h). docs/page.md
 * describes the page, docs/api.md the JSON.
 */
#ifndef WEFT_WEBUI_WEBUI_H
#define WEFT_WEBUI_WEBUI_H

#include <stddef.h>

#include "controller/model/model.h"
#include "controller/plan/plan.h"
#include "lib/base/buf.h"
#include "lib/base/err.h"

/* One file; "/" is index.html. */
struct page_file {
	const char *path;	/* "/page.css" */
	const char *type;	/* of its content */
	const unsigned char *data;
	size_t len;
};

/* NULL: there is none. O(files). */
const struct page_file *page_find(const char *path);
/* All of them, the last with path NULL. */
extern const struct page_file page_files[];

/* Limits of a picture. */
#define PAGE_MAX_PORTS (1 << 16)	/* host ports that are drawn */
#define PAGE_MAX_CELLS (32 << 20)	/* settings of a ring looked at */
#define PAGE_BINS 128			/* columns and rows of a ring's grid */

/*
 * The picture of a fabric as a JSON object: hosts, ports, devices, trunks and,
 * with a plan (of the same fabric), the circuits of its jobs and how much of
 * each ring's segments and channels their programs light. Pure. Fabrics with
 * more than PAGE_MAX_PORTS have `too_large` and nothing to draw; rings with
 * more than PAGE_BINS segments or rows are told in bins. WEFT_EINVAL
 * for a program that cannot be read. O(fabric + circuits + settings of
 * programs).
 */
int page_picture(const struct model_fabric *f, const struct plan *plan,
		 struct buf *out, struct err *err);

#define PAGE_MAX_FRAMES 128	/* of a job's schedule */
#define PAGE_STEPS_BYTES (2 << 20)	/* of all schedules, about */

/*
 * What each job's schedule does step by step, as a JSON object: which circuits carry, or
 * where there is light on the ring, by the numbers of the picture of the same plan. Long or
 * large schedules have several steps a frame. Pure. Errors of coll_each_step, WEFT_EINVAL for
 * a program that cannot be read. O(transfers + steps * circuits + settings),
 * times the logarithm of the steps.
 */
int page_steps(const struct plan *plan, struct buf *out, struct err *err);

#endif
