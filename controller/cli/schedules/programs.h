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

/* Whether a path is a folder, or is meant to be one: it ends in '/'. step_files.c */
bool cli_is_folder(const char *path);
/* A training step that weftd has applied, as files in a folder, which is made where it is not
 * there; and such a folder checked (workload_check), with the step's figures on stdout.
 * step_files.c */
int cli_export_step(struct cli *c, const char *job, const char *folder, struct err *err);
int cli_verify_step(struct cli *c, const char *folder, struct err *err);

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
