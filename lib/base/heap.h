/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Typed binary heaps (Williams, CACM 7(6), 1964): what comes first is on top.
 *
 *	struct reach { int32_t end, arc; };
 *
 *	static inline bool is_further(struct reach a, struct reach b) ...
 *
 *	HEAP(reach_heap, struct reach);
 *	HEAP_FUNCTIONS(reach_heap, struct reach, is_further)
 *
 * declares struct reach_heap and defines, all with the comparison inlined,
 *
 *	void reach_heap_push(struct reach_heap *h, struct reach item);
 *	void reach_heap_add(struct reach_heap *h, struct reach item);
 *	struct reach reach_heap_pop(struct reach_heap *h);
 *	void reach_heap_replace(struct reach_heap *h, struct reach item);
 *
 * push  puts an item in; amortised O(log n).
 * add   the same where vec_reserve(h, ...) made the room before.
 * pop   takes the top off; the heap must not be empty. O(log n).
 * replace  pop and push at once.
 *
 * Zero it before the first use; h->n items, h->v[0] the top; h->n = 0 empties
 * it, vec_fini(h) frees it. before(a, b) must be a strict weak order. Of items
 * of which neither is before the other, which comes first depends on the
 * calls so far and on nothing else: same calls, same order.
 *
 * HEAP_FUNCTIONS_BY is for an order that is looked up, and for items whose
 * order changes while they are in. `by` is a pointer, given with every call
 * after the heap and passed on last: before(a, b, by), and moved(item, at, by)
 * whenever an item that is in comes to lie at h->v[at]; HEAP_NOT_REPORTED where
 * that is not needed. It defines further
 *
 *	void x_rise(struct x *h, by, size_t at);
 *
 * to be called when the item at h->v[at] comes earlier than it did. O(log n).
 * Popped items are not reported.
 */
#ifndef WEFT_LIB_BASE_HEAP_H
#define WEFT_LIB_BASE_HEAP_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/vec.h"

#define HEAP(name, type)       \
	struct name {          \
		type *v;       \
		size_t n, cap; \
	}

#define HEAP_FUNCTIONS(name, type, before) \
	HEAP_CODE(name, type, , , before, HEAP_NOT_REPORTED)
#define HEAP_FUNCTIONS_BY(name, type, pointer, before, moved)            \
	HEAP_CODE(name, type, HEAP_BY(pointer), HEAP_THE_BY, before, moved)

#define HEAP_NOT_REPORTED(...) ((void)0)

/* ---- used by the macros above ---- */

#define HEAP_BY(pointer) , __attribute__((unused)) pointer by
#define HEAP_THE_BY , by
#define HEAP_INLINE static inline __attribute__((unused))

/* An item is held aside while the hole that it belongs in is moved. */
#define HEAP_CODE(name, type, BY, THE_BY, before, moved)		\
	HEAP_INLINE void name##_fill(type *v BY, size_t at, type item)	\
	{								\
		v[at] = item;						\
		moved(item, at THE_BY);					\
	}								\
									\
	HEAP_INLINE void name##_up(type *v BY, size_t at, type item)	\
	{								\
		while (at > 0 && before(item, v[(at - 1) / 2] THE_BY)) { \
			name##_fill(v THE_BY, at, v[(at - 1) / 2]);	\
			at = (at - 1) / 2;				\
		}							\
		name##_fill(v THE_BY, at, item);			\
	}								\
									\
	HEAP_INLINE void name##_down(type *v, size_t n BY, type item)	\
	{								\
		size_t at = 0, child;					\
									\
		while ((child = 2 * at + 1) < n) {			\
			child += child + 1 < n &&			\
				 before(v[child + 1], v[child] THE_BY);	\
			if (!before(v[child], item THE_BY)) {		\
				break;					\
			}						\
			name##_fill(v THE_BY, at, v[child]);		\
			at = child;					\
		}							\
		name##_fill(v THE_BY, at, item);			\
	}								\
									\
	HEAP_INLINE void name##_rise(struct name *h BY, size_t at)	\
	{								\
		name##_up(h->v THE_BY, at, h->v[at]);			\
	}								\
									\
	HEAP_INLINE void name##_add(struct name *h BY, type item)	\
	{								\
		name##_up(h->v THE_BY, h->n++, item);			\
	}								\
									\
	HEAP_INLINE void name##_push(struct name *h BY, type item)	\
	{								\
		vec_reserve(h, 1);					\
		name##_add(h THE_BY, item);				\
	}								\
									\
	HEAP_INLINE type name##_pop(struct name *h BY)			\
	{								\
		type top = h->v[0];					\
									\
		if (--h->n > 0) {					\
			name##_down(h->v, h->n THE_BY, h->v[h->n]);	\
		}							\
		return top;						\
	}								\
									\
	HEAP_INLINE void name##_replace(struct name *h BY, type item)	\
	{								\
		name##_down(h->v, h->n THE_BY, item);			\
	}

#endif
