/* SPDX-License-Identifier: Apache-2.0 */
/* Programs of MSCCL for schedule export: options, files, what was chosen. */
#ifndef WEFT_CLI_SCHEDULES_PROGRAMS_H
#define WEFT_CLI_SCHEDULES_PROGRAMS_H

#include "controller/cli/core/private.h"
#include "runtime/msccl/msccl.h"

struct cli_programs {
	struct msccl_request request;
	bool folder;		/* one file for each protocol */
	struct msccl_choices made;
};

/* --protocol, --instances, --threadblocks and --link-bandwidth for programs of
 * this dialect, which go to `path`: a folder, when it is one or ends in '/'.
 * WEFT_EUSAGE. */
int cli_programs_read(const struct cli *c, const char *path, enum msccl_dialect dialect,
		      struct cli_programs *out, struct err *err);

/* Fills p->made, replacing what it held; errors of msccl_choose. */
int cli_programs_make(struct cli_programs *p, const struct coll_sched *s, struct err *err);

/* Writes p->made: into a file and a line about it on stderr, or one file each
 * and a table on stdout. WEFT_EIO; WEFT_EINVAL when the folder holds a file of
 * an earlier export that would serve the same calls. */
int cli_programs_write(const struct cli *c, const struct cli_programs *p, const char *path,
		       struct err *err);

#endif
