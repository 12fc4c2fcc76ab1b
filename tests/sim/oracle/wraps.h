/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that objects call in each other, and that are ours when the program is linked with
 * --wrap of them: each has to be in SIM_WRAPS of the Makefile. Calls within one object do not
 * come by. */
#ifndef WEFT_TESTS_SIM_WRAPS_H
#define WEFT_TESTS_SIM_WRAPS_H

/* WRAP(int, store_sync, struct store *s, struct err *err): declares the function as it was,
 * __real_store_sync, and begins the definition of what is called instead. */
#define WRAP(type, name, ...)            \
	type __real_##name(__VA_ARGS__); \
	type __wrap_##name(__VA_ARGS__); \
	type __wrap_##name(__VA_ARGS__)

#endif
