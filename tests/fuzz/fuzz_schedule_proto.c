/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a weft.v1.Schedule: what reads can be verified, turned round
 * and written, and reads the same again. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "collective/schedule/schedule.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct coll_sched *s, *again, *back;
	struct buf first = { 0 }, second = { 0 };
	struct err err;

	if (coll_from_proto(data, size, &s, &err)) {
		return 0;
	}
	coll_verify(s, NULL, &err);
	if (coll_reverse(s, &back, &err) == 0) {
		coll_free(back);
	}
	coll_to_proto(s, &first);
	if (coll_from_proto(first.data, first.len, &again, &err)) {
		abort();
	}
	coll_to_proto(again, &second);
	if (first.len != second.len || memcmp(first.data, second.data, first.len) != 0) {
		abort();
	}
	buf_fini(&first);
	buf_fini(&second);
	coll_free(again);
	coll_free(s);
	return 0;
}
