/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Quantities as people write them, to integers and back.
 *
 * Sizes take B, kB/MB/GB/TB (10^3; KB is read as kB) and KiB/MiB/GiB/TiB
 * (2^10); rates take bps, kbps, Mbps, Gbps, Tbps, the same as b/s, and bytes a second:
 * B/s to TB/s and KiB/s to TiB/s (times 8 bits); they are written in bps; times ns, us, ms, s, min,
 * h; losses dB and powers dBm (to milli-dB); shares % (to ppm). "1.5MB", "25 us" and "100Gbps" are
 * all right; a bare number, an unknown unit, a negative size or a value that is not a
 * whole number of the base unit is refused with the list of units.
 */
#ifndef WEFT_LIB_BASE_NUMBER_UNITS_H
#define WEFT_LIB_BASE_NUMBER_UNITS_H

#include <stdint.h>

#include "lib/base/err.h"

enum unit_kind { UNIT_BYTES, UNIT_BPS, UNIT_NS, UNIT_MDB, UNIT_MDBM,
		 UNIT_PPM };

/* Parses text as a quantity of this kind, exactly (decimal arithmetic).
 * WEFT_EINVAL with the allowed units in the message. */
int unit_parse(enum unit_kind kind, const char *text, int64_t *value, struct err *err);

/* Shortest exact text ("25us", "1MiB" only when value is not a decimal
 * multiple) into buf. Returns buf. */
const char *unit_str(enum unit_kind kind, int64_t value, char *buf, int size);

/* About three significant digits for people: "13.2 ms", "4.19 MB". */
const char *unit_human(enum unit_kind kind, double value, char *buf, int size);

#endif
