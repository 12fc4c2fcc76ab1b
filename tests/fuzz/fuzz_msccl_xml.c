/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as MSCCL XML: what reads can be checked and written, and reads
 * the same again. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/msccl/msccl.h"
#include "tests/unit/msccl/msccl_read.h"

#define SMALL 65536

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The text of a program is read back to the same text. */
static void round_trip(const struct msccl *p, enum msccl_dialect dialect)
{
	struct buf first = { 0 }, second = { 0 };
	struct msccl again;
	struct err err;

	msccl_write(p, &first);
	if (msccl_read(first.data, first.len, dialect, &again, &err)) {
		abort();
	}
	msccl_write(&again, &second);
	if (strcmp(first.data, second.data) != 0) {
		abort();
	}
	msccl_fini(&again);
	buf_fini(&first);
	buf_fini(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	enum msccl_dialect dialect;
	struct msccl p;
	struct err err;
	int64_t cells = 0;

	if (size < 1) {
		return 0;
	}
	dialect = (enum msccl_dialect)(data[0] % 2);
	if (msccl_read((const char *)data + 1, size - 1, dialect, &p, &err)) {
		return 0;
	}
	for (int r = 0; r < p.ranks; r++) {
		cells += msccl_cells(&p, r);
	}
	if (cells < SMALL && msccl_check(&p, dialect, &err) == 0) {
		round_trip(&p, dialect);
	}
	msccl_fini(&p);
	return 0;
}
