/* The reader of packed ring programs: whatever it accepts, opened and packed
 * again, is the same program. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "tests/light_program.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(struct light_pack *p)
{
	struct light_program once, twice;
	struct light_pack again;

	assert(light_pack_open(p, &once, NULL) == 0);
	assert(once.steps == p->steps && once.n == p->settings);
	assert(light_pack_make(&again, "f", &p->window, &p->ring, &once,
			       NULL) == 0);
	assert(light_pack_open(&again, &twice, NULL) == 0);
	assert(same_program(&once, &twice));
	light_program_fini(&once);
	light_program_fini(&twice);
	light_pack_fini(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct light_pack p = { .window = { 0, UINT16_MAX, 0, UINT16_MAX } };
	uint8_t *bytes = malloc(size ? size : 1);

	/* A few bytes can mean millions of settings; those are only slow. */
	if (!bytes || (size > 13 && (data[12] || data[13]))) {
		free(bytes);
		return 0;
	}
	if (size) {
		memcpy(bytes, data, size);
	}
	if (light_pack_read(&p, bytes, size, NULL) == 0) {
		check(&p);
		light_pack_fini(&p);
	}
	return 0;
}
