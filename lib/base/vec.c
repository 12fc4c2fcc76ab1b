/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of typed arrays. */
#include "lib/base/vec.h"

#include <stdint.h>
#include <stdlib.h>

#include "lib/base/alloc.h"

void vec_grow(void **v, size_t *cap, size_t need, size_t size)
{
	size_t want = *cap ? *cap : 8;

	if (need <= *cap) {
		return;
	}
	while (want < need) {
		want = want > SIZE_MAX / 2 ? SIZE_MAX : want * 2;
	}
	*v = x_grow(*v, want, size);
	*cap = want;
}

void *arrays_zero(struct arrays *a, size_t n, size_t size)
{
	void *p = x_new(n, size);

	vec_push(&a->all, p);
	return p;
}

void arrays_fini(struct arrays *a)
{
	for (size_t i = 0; i < a->all.n; i++) {
		free(a->all.v[i]);
	}
	vec_fini(&a->all);
}
