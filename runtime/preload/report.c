/* SPDX-License-Identifier: Apache-2.0 */
/* Which calls were taken, and why the others were not: with WEFT_MPI_REPORT, at the end. */
#include "runtime/preload/private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/file.h"

static const char *const reasons[PRELOAD_FATES] = {
	[PRELOAD_NO_SCHEDULE] = "no schedule of it for so many ranks",
	[PRELOAD_NO_SIZE] = "no schedule for so many bytes",
	[PRELOAD_ROOT] = "no schedule for this root",
	[PRELOAD_EMPTY] = "nothing to move",
	[PRELOAD_OP] = "operation not commutative",
	[PRELOAD_TOO_LARGE] = "too large",
	[PRELOAD_INTER] = "intercommunicator",
	[PRELOAD_MIXED] = "ranks of several MPI_COMM_WORLD",
	[PRELOAD_ARGUMENTS] = "wrong arguments",
	[PRELOAD_REFUSED] = "schedule could not be used",
};

/* "allreduce: 12 taken, 3 handed to MPI (1 nothing to move, 2 ..)" */
static void put_line(struct buf *out, const char *name, const int64_t calls[PRELOAD_FATES])
{
	int64_t handed = 0;
	const char *before = " (";

	for (int f = PRELOAD_TAKEN + 1; f < PRELOAD_FATES; f++) {
		handed += calls[f];
	}
	buf_printf(out, "weft: %s: %lld taken, %lld handed to MPI", name,
		   (long long)calls[PRELOAD_TAKEN], (long long)handed);
	for (int f = PRELOAD_TAKEN + 1; f < PRELOAD_FATES; f++) {
		if (calls[f]) {
			buf_printf(out, "%s%lld %s", before, (long long)calls[f], reasons[f]);
			before = ", ";
		}
	}
	buf_str(out, handed ? ")\n" : "\n");
}

static void write_out(const struct buf *out)
{
	struct err err;

	if (strcmp(preload.report, "1") == 0) {
		fputs(buf_cstr(out), stderr);
	} else if (file_write_atomic(preload.report, out->data, out->len, FILE_PUBLIC, &err)) {
		preload_say("%s", err.msg);
	}
}

void preload_report(void)
{
	int64_t mine[COLL_KINDS][PRELOAD_FATES], all[COLL_KINDS][PRELOAD_FATES];
	struct buf out = { 0 };
	int rank, size;

	PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
	PMPI_Comm_size(MPI_COMM_WORLD, &size);
	for (int k = 0; k < COLL_KINDS; k++) {
		for (int f = 0; f < PRELOAD_FATES; f++) {
			mine[k][f] = atomic_load(&preload.calls[k][f]);
		}
	}
	if (PMPI_Reduce(mine, all, COLL_KINDS * PRELOAD_FATES, MPI_INT64_T, MPI_SUM, 0,
			MPI_COMM_WORLD) || rank != 0) {
		return;
	}
	buf_printf(&out, "weft: calls of all %d ranks\n", size);
	for (int k = 0; k < COLL_KINDS; k++) {
		if (preload_takes((enum coll_kind)k)) {
			put_line(&out, coll_kind_name((enum coll_kind)k), all[k]);
		}
	}
	write_out(&out);
	buf_fini(&out);
}
