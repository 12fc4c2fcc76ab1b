/* SPDX-License-Identifier: Apache-2.0 */
/* Orders of structs by their members, for qsort and bsearch. */
#ifndef WEFT_LIB_BASE_ORDER_H
#define WEFT_LIB_BASE_ORDER_H

/* ORDER_BY(by_ends, struct link, src, dst): a static by_ends(const void *, const void *) that has
 * the lower src first, then the lower dst. One to seven members, of types that < compares. */
#define ORDER_BY(name, type, ...)                                                              \
	static int name(const void *left, const void *right)                                   \
	{                                                                                      \
		const type *a = left, *b = right;                                              \
                                                                                               \
		return ORDER_PICK(__VA_ARGS__, ORDER_7, ORDER_6, ORDER_5, ORDER_4, ORDER_3,    \
				  ORDER_2, ORDER_1, )(__VA_ARGS__);                            \
	}
#define ORDER_PICK(_1, _2, _3, _4, _5, _6, _7, order, ...) order
#define ORDER_1(m) ((a->m > b->m) - (a->m < b->m))
#define ORDER_2(m, ...) (a->m != b->m ? ORDER_1(m) : ORDER_1(__VA_ARGS__))
#define ORDER_3(m, ...) (a->m != b->m ? ORDER_1(m) : ORDER_2(__VA_ARGS__))
#define ORDER_4(m, ...) (a->m != b->m ? ORDER_1(m) : ORDER_3(__VA_ARGS__))
#define ORDER_5(m, ...) (a->m != b->m ? ORDER_1(m) : ORDER_4(__VA_ARGS__))
#define ORDER_6(m, ...) (a->m != b->m ? ORDER_1(m) : ORDER_5(__VA_ARGS__))
#define ORDER_7(m, ...) (a->m != b->m ? ORDER_1(m) : ORDER_6(__VA_ARGS__))

#endif
