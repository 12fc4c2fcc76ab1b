/* Growth of typed arrays; see vec.h. */
#include "lib/base/vec.h"

#include <stdint.h>
#include <stdlib.h>

#include "lib/base/err.h"

int vec_grow(void **v, size_t *cap, size_t need, size_t size)
{
	size_t want = *cap ? *cap : 8;
	void *p;

	if (need <= *cap) {
		return 0;
	}
	while (want < need) {
		if (want > SIZE_MAX / 2) {
			return WEFT_ENOMEM;
		}
		want *= 2;
	}
	if (want > SIZE_MAX / size) {
		return WEFT_ENOMEM;
	}
	p = realloc(*v, want * size);
	if (!p) {
		return WEFT_ENOMEM;
	}
	*v = p;
	*cap = want;
	return 0;
}
