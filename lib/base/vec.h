/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Typed growing arrays: declare `VEC(struct thing) things;`, zero it, push.
 * Elements may move when the array grows; indices stay. And arrays of fixed
 * length that are made and freed together.
 */
#ifndef WEFT_LIB_BASE_VEC_H
#define WEFT_LIB_BASE_VEC_H

#include <stddef.h>

#define VEC(type)            \
	struct {             \
		type *v;     \
		size_t n, cap; \
	}

/* Makes room for `extra` more elements. */
#define vec_reserve(vec, extra)                                        \
	vec_grow((void **)&(vec)->v, &(vec)->cap, (vec)->n + (extra), \
		 sizeof(*(vec)->v))

/* Appends one element (a value or a compound literal). */
#define vec_push(vec, ...) \
	(vec_reserve(vec, 1), (void)((vec)->v[(vec)->n++] = (__VA_ARGS__)))

/* Frees the array; the elements' own memory is the caller's business. */
#define vec_fini(vec)                            \
	do {                                     \
		free((vec)->v);                  \
		(vec)->v = NULL;                 \
		(vec)->n = (vec)->cap = 0;       \
	} while (0)

/*
 * Arrays that live and die together, such as the state of a solver:
 *
 *	arrays_add(&s->arrays, s->dist, n);
 *	arrays_add(&s->arrays, s->queue, n + 1);
 *	arrays_fini(&s->arrays);
 */
struct arrays {
	VEC(void *) all;
};

/* Points `pointer` to `count` zeros of its type; of 0 there is memory too. */
#define arrays_add(a, pointer, count) \
	((pointer) = arrays_zero((a), (size_t)(count), sizeof(*(pointer))))

/* Frees them all. */
void arrays_fini(struct arrays *a);

/* Used by the macros: n zeroed elements. */
void *arrays_zero(struct arrays *a, size_t n, size_t size);
/* Used by the macros: at least `need` slots of `size` bytes in *v. */
void vec_grow(void **v, size_t *cap, size_t need, size_t size);

#endif
