/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks. Rooms with effects read them; planning knows but the deadline that it was given. */
#ifndef WEFT_LIB_BASE_CLOCK_H
#define WEFT_LIB_BASE_CLOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Monotonic nanoseconds since an arbitrary start. */
int64_t clk_now_ns(void);
/* The same, and it goes on while the machine sleeps. */
int64_t clk_boot_ns(void);
/* Nanoseconds since 1970. */
int64_t clk_wall_ns(void);
/* "2026-01-31T12:00:00.123Z" into buf (at least 25 bytes). Returns buf. */
const char *clk_iso(int64_t wall_ns, char *buf, int size);

/* When work ends with the best so far: a value of the caller's, zero: never. What met it depends
 * on the machine, and is not found again byte for byte. */
struct deadline {
	int64_t at_ns;		/* of clk_now_ns */
	atomic_bool *met;	/* set where it, or a part of it, ended work; may be NULL */
};

/* limit_ns from now; 0: never. */
struct deadline deadline_in(int64_t limit_ns, atomic_bool *met);
/* A part of d that ends so long from now, perhaps after d; never, if d never ends. */
struct deadline deadline_part(const struct deadline *d, int64_t ns);
/* What is left of d; 0 where that is nothing, or d never ends. */
int64_t deadline_left_ns(const struct deadline *d);
/* Whether work is to end, which *met notes. From any thread. */
bool deadline_passed(const struct deadline *d);

#endif
