/* SPDX-License-Identifier: Apache-2.0 */
/* Traces of a training step, as read: what each rank calls, in its order. */
#ifndef WEFT_IMPORT_CHAKRA_H
#define WEFT_IMPORT_CHAKRA_H

#include "collective/workload/workload.h"
#include "controller/import/private.h"

struct chakra_call {
	enum coll_kind kind;	/* of a group */
	int group;		/* -1: to a peer, or from one */
	int peer;
	bool sends;
	int64_t bytes;		/* as weft counts them: the whole vector */
	uint64_t node;		/* id in the trace */
	int op;			/* of the step; -1: of none, as its sender's counts */
};

struct chakra_rank {
	VEC(struct chakra_call) calls;
};

struct chakra_group {
	VEC(int) ranks;		/* in their order */
	char *text;		/* the same, for messages; owned */
	VEC(int) ops;		/* that its first rank calls */
	uint32_t axes;
	bool called;
};

struct chakra {
	VEC(struct chakra_rank) ranks;
	VEC(struct chakra_group) groups;	/* each once */
	struct strmap by_name;	/* "/name" of the file, "/name/rank" of traces, "ranks 0 1";
				 * index + 1 */
	const struct import_text *files;	/* of ranks */
	struct import_report *report;
};

/* Reads the traces of n ranks, and the file of groups if it has text. Mistakes are reported.
 * O(bytes log nodes). */
void chakra_read(struct chakra *c, const struct import_text *files, int n,
		 const struct import_text *groups, struct import_report *report);
void chakra_fini(struct chakra *c);

#endif
