/* SPDX-License-Identifier: Apache-2.0 */
/* Memory for messages on their way, kept from run to run: the C library gives large blocks back
 * to the system at once, and to get their pages again takes longer than to fill them. */
#include <stdlib.h>

#include "runtime/mpi/private.h"

#define KEPT_FROM (INT64_C(64) << 10)	/* smaller blocks are the C library's business */
#define KEPT_BYTES (INT64_C(64) << 20)	/* of all that are kept */

/* Before each block; a multiple of what malloc aligns to. */
struct mpi_block_head {
	int64_t bytes;
	char gap[56];
};

static struct mpi_block_head *head_of(char *block)
{
	return (struct mpi_block_head *)(void *)block - 1;
}

char *mpi_memory_take(struct mpi_memory *m, int64_t bytes)
{
	struct mpi_block_head *head;
	int best = -1;

	for (int i = 0; i < m->n && bytes >= KEPT_FROM; i++) {
		int64_t has = head_of(m->kept[i])->bytes;

		if (has >= bytes && (best < 0 || has < head_of(m->kept[best])->bytes)) {
			best = i;
		}
	}
	if (best >= 0) {
		char *block = m->kept[best];

		m->bytes -= head_of(block)->bytes;
		m->kept[best] = m->kept[--m->n];
		return block;
	}
	/* Of the caller's size, in the caller's process: what finds none is told (private.h). */
	head = malloc(sizeof(*head) + (size_t)bytes);
	if (!head) {
		return NULL;
	}
	head->bytes = bytes;
	return (char *)(head + 1);
}

void mpi_memory_give(struct mpi_memory *m, char *block)
{
	int64_t bytes;

	if (!block) {
		return;
	}
	bytes = head_of(block)->bytes;
	if (bytes < KEPT_FROM || m->n == MPI_MEMORY_BLOCKS || m->bytes + bytes > KEPT_BYTES) {
		free(head_of(block));
		return;
	}
	m->kept[m->n++] = block;
	m->bytes += bytes;
}

void mpi_memory_fini(struct mpi_memory *m)
{
	for (int i = 0; i < m->n; i++) {
		free(head_of(m->kept[i]));
	}
	m->n = 0;
	m->bytes = 0;
}
