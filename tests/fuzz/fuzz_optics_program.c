/* SPDX-License-Identifier: Apache-2.0 */
/* The reader of packed ring programs: whatever it accepts, opened and packed
 * again, is the same program. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "tests/ring_settings.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(struct ring_program *p)
{
	struct ring_settings once, twice;
	struct ring_program again;

	assert(ring_program_unpack(p, &once, NULL) == 0);
	assert(once.steps == p->steps && once.n == p->settings);
	assert(ring_program_pack(&again, "f", &p->window, &p->ring, &once,
				 NULL) == 0);
	assert(ring_program_unpack(&again, &twice, NULL) == 0);
	assert(same_program(&once, &twice));
	ring_settings_fini(&once);
	ring_settings_fini(&twice);
	ring_program_fini(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ring_program p = { .window = { 0, UINT16_MAX, 0, UINT16_MAX } };
	uint8_t *bytes = malloc(size ? size : 1);

	/* A few bytes can mean millions of settings; those are only slow. */
	if (!bytes || (size > 13 && (data[12] || data[13]))) {
		free(bytes);
		return 0;
	}
	if (size) {
		memcpy(bytes, data, size);
	}
	if (ring_program_read(&p, bytes, size, NULL) == 0) {
		check(&p);
		ring_program_fini(&p);
	}
	return 0;
}
