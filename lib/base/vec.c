/* Memory of typed arrays. */
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

void *arrays_zero(struct arrays *a, size_t n, size_t size)
{
	void *p = calloc(n ? n : 1, size);

	if (!p || vec_push(&a->all, p)) {
		free(p);
		a->failed = true;
		return NULL;
	}
	return p;
}

void arrays_fini(struct arrays *a)
{
	for (size_t i = 0; i < a->all.n; i++) {
		free(a->all.v[i]);
	}
	vec_fini(&a->all);
	a->failed = false;
}
