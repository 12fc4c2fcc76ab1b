/* SPDX-License-Identifier: Apache-2.0 */
/* The wiring that emulators share: refused, or a fibre that is whole. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/emulators/core/fibre_plant.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	char *text = strndup((const char *)data, len);
	struct plant_fibre s;

	if (!text) {
		return 0;
	}
	if (plant_find_fibre(text, "b.in2", &s, NULL) == 0 &&
	    ((s.to[0] && strcmp(s.to, "b.in2") != 0) || !isfinite(s.db) ||
	     (s.from[0] && s.db < 0))) {
		abort();
	}
	free(text);
	return 0;
}
