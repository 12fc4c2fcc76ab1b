/* SPDX-License-Identifier: Apache-2.0 */
/* Circuits as files have them: groups of "A B" lines, or of YAML. */
#ifndef WEFT_CLI_CIRCUIT_FILE_H
#define WEFT_CLI_CIRCUIT_FILE_H

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/base/vec.h"
#include "weft/v1/jobs.pb-c.h"

/* Zero-initialise; all of it is owned. */
struct circuit_group {
	char *name;		/* NULL: the file gave none */
	VEC(Weft__V1__CircuitEnds) v;
};

struct circuit_file {
	VEC(struct circuit_group) groups;	/* none is empty; no name twice */
};

void circuit_group_fini(struct circuit_group *g);
/* The circuits from one port, or several ("dut.p[0-3]"), to as many others. WEFT_EINVAL. */
int circuit_group_add(struct circuit_group *g, const char *from, const char *to, bool simplex,
		      struct err *err);

/* Reads all of it ("-": standard input). WEFT_EINVAL with its place, the errors of file_read;
 * fini also then. O(circuits x groups). */
int circuit_file_read(const char *path, struct circuit_file *out, struct err *err);
void circuit_file_fini(struct circuit_file *f);
/* Appends the circuits of a job as such a file has them. O(circuits). */
void circuit_file_put(const Weft__V1__Job *j, struct buf *out);

#endif
