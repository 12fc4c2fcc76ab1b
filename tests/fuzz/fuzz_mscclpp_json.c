/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as an execution plan: what reads can be checked and written, and
 * reads the same again. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/mscclpp/mscclpp.h"
#include "tests/unit/mscclpp/mscclpp_read.h"

#define SMALL 65536

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void round_trip(const struct mscclpp *p)
{
	struct buf first = { 0 }, second = { 0 };
	struct mscclpp again;
	struct err err;

	mscclpp_write(p, &first);
	if (mscclpp_read(first.data, first.len, &again, &err)) {
		abort();
	}
	mscclpp_write(&again, &second);
	if (strcmp(first.data, second.data) != 0) {
		abort();
	}
	mscclpp_fini(&again);
	buf_fini(&first);
	buf_fini(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mscclpp p;
	struct err err;
	int64_t cells = 0;

	if (mscclpp_read((const char *)data, size, &p, &err)) {
		return 0;
	}
	round_trip(&p);
	for (int r = 0; r < p.ranks; r++) {
		for (int i = 0; i < 3; i++) {
			cells += p.gpus[r].chunks[i];
		}
	}
	if (cells < SMALL) {
		(void)mscclpp_check(&p, &err);
	}
	mscclpp_fini(&p);
	return 0;
}
