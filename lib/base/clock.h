/* Clocks. Only rooms with effects read them; planning never does. */
#ifndef WEFT_LIB_BASE_CLOCK_H
#define WEFT_LIB_BASE_CLOCK_H

#include <stdint.h>

/* Monotonic nanoseconds since an arbitrary start. */
int64_t clk_now_ns(void);
/* The same, and it goes on while the machine sleeps. */
int64_t clk_boot_ns(void);
/* Nanoseconds since 1970. */
int64_t clk_wall_ns(void);
/* "2026-01-31T12:00:00.123Z" into buf (at least 25 bytes). Returns buf. */
const char *clk_iso(int64_t wall_ns, char *buf, int size);

#endif
