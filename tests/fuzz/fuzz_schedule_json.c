/* Any bytes as a JSON schedule: what reads can be verified and written, and
 * reads the same again. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "collective/schedule/schedule.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct coll_sched *s, *again;
	struct buf first = { 0 }, second = { 0 };
	struct err err;

	if (coll_from_json((const char *)data, size, &s, &err)) {
		return 0;
	}
	coll_verify(s, NULL, &err);
	if (coll_to_json(s, &first, &err) ||
	    coll_from_json(first.data, first.len, &again, &err) ||
	    coll_to_json(again, &second, &err) ||
	    strcmp(first.data, second.data) != 0) {
		abort();
	}
	buf_fini(&first);
	buf_fini(&second);
	coll_free(again);
	coll_free(s);
	return 0;
}
