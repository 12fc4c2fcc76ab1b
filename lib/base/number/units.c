/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Quantities with units (sizes, rates, times, powers), read from configuration,
 * options and topologies, and written for people. One table has each kind's
 * units. Parsing is decimal integer arithmetic: no value passes through floating
 * point, so that what is written is what is meant, and what the base unit cannot
 * hold exactly is an error rather than a rounded number.
 */
#include "lib/base/number/units.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Where a unit is written: always, only for values that no power of ten divides, or never: it is
 * only read. */
enum unit_use { DECIMAL, BINARY, READ };

struct unit {
	const char *name;
	int64_t factor;		/* base units in one */
	enum unit_use use;
};

struct kind {
	const char *what;
	const char *choice;	/* for messages */
	bool may_be_negative;
	struct unit units[20];	/* ascending within each use, in the order of unit_use;
				 * ends with a NULL name */
};

static const struct kind kinds[] = {
	[UNIT_BYTES] = {
		"size", "B, kB, MB, GB, TB, KiB, MiB, GiB or TiB", false,
		{ { "B", 1, DECIMAL }, { "kB", 1000, DECIMAL },
		  { "MB", 1000000, DECIMAL }, { "GB", 1000000000, DECIMAL },
		  { "TB", 1000000000000, DECIMAL }, { "KiB", 1 << 10, BINARY },
		  { "MiB", 1 << 20, BINARY }, { "GiB", 1 << 30, BINARY },
		  { "TiB", (int64_t)1 << 40, BINARY } } },
	[UNIT_BPS] = {
		"rate", "bps, kbps, Mbps, Gbps, Tbps, or bytes as GB/s or GiB/s", false,
		{ { "bps", 1, DECIMAL }, { "kbps", 1000, DECIMAL },
		  { "Mbps", 1000000, DECIMAL }, { "Gbps", 1000000000, DECIMAL },
		  { "Tbps", 1000000000000, DECIMAL }, { "b/s", 1, READ },
		  { "kb/s", 1000, READ }, { "Mb/s", 1000000, READ },
		  { "Gb/s", 1000000000, READ }, { "Tb/s", 1000000000000, READ },
		  { "B/s", 8, READ }, { "kB/s", 8000, READ }, { "MB/s", 8000000, READ },
		  { "GB/s", 8000000000, READ }, { "TB/s", 8000000000000, READ },
		  { "KiB/s", 8 << 10, READ }, { "MiB/s", 8 << 20, READ },
		  { "GiB/s", (int64_t)8 << 30, READ }, { "TiB/s", (int64_t)8 << 40, READ } } },
	[UNIT_NS] = {
		"time", "ns, us, ms, s, min or h", false,
		{ { "ns", 1, DECIMAL }, { "us", 1000, DECIMAL },
		  { "ms", 1000000, DECIMAL }, { "s", 1000000000, DECIMAL },
		  { "min", 60000000000, DECIMAL },
		  { "h", 3600000000000, DECIMAL } } },
	[UNIT_MDB] = { "loss", "dB", true, { { "dB", 1000, DECIMAL } } },
	[UNIT_MDBM] = { "power", "dBm", true, { { "dBm", 1000, DECIMAL } } },
	[UNIT_PPM] = { "share", "%", false, { { "%", 10000, DECIMAL } } },
};

/* digits * 10^-places, with a sign. */
struct decimal {
	bool negative;
	uint64_t digits;
	int places;
};

/* Reads "12", "1.50", ".5" or "-3" at *text and moves behind it. False when
 * there is no number or it has more digits than 64 bits hold. */
static bool read_decimal(const char **text, struct decimal *d)
{
	const char *p = *text;
	bool point = false, any = false;
	int zeros = 0;	/* fraction zeros not yet known to matter */

	*d = (struct decimal){ .negative = *p == '-' };
	p += *p == '-';
	for (; (*p >= '0' && *p <= '9') || (*p == '.' && !point); p++) {
		if (*p == '.') {
			point = true;
			continue;
		}
		any = true;
		if (point && *p == '0') {
			zeros++;
			continue;
		}
		for (int i = 0; i <= zeros; i++) {
			if (__builtin_mul_overflow(d->digits, 10, &d->digits)) {
				return false;
			}
		}
		d->places += point ? zeros + 1 : 0;
		zeros = 0;
		if (__builtin_add_overflow(d->digits, *p - '0', &d->digits)) {
			return false;
		}
	}
	*text = p;
	return any;
}

/* Same names; "KB" is so widely written for the SI kilobyte that it is read as one. */
static bool is_named(const struct unit *u, const char *name, size_t len)
{
	return strlen(u->name) == len && strncmp(u->name + 1, name + 1, len - 1) == 0 &&
	       (u->name[0] == name[0] || (strncmp(u->name, "kB", 2) == 0 && name[0] == 'K'));
}

static const struct unit *find_unit(const struct kind *k, const char *name)
{
	size_t len = strcspn(name, " \t");

	if (len == 0 || name[len + strspn(name + len, " \t")] != '\0') {
		return NULL;
	}
	for (const struct unit *u = k->units; u->name; u++) {
		if (is_named(u, name, len)) {
			return u;
		}
	}
	return NULL;
}

/* d * factor, when that is a whole number of 63 bits. */
static bool scale(const struct decimal *d, int64_t factor, int64_t *value)
{
	unsigned __int128 product = (unsigned __int128)d->digits *
				    (uint64_t)factor;

	for (int i = 0; i < d->places && product != 0; i++) {
		if (product % 10 != 0) {
			return false;
		}
		product /= 10;
	}
	if (product > INT64_MAX) {
		return false;
	}
	*value = d->negative ? -(int64_t)product : (int64_t)product;
	return true;
}

int unit_parse(enum unit_kind kind, const char *text, int64_t *value, struct err *err)
{
	const struct kind *k = &kinds[kind];
	const char *p = text + strspn(text, " \t");
	const struct unit *u;
	struct decimal d;

	if (!read_decimal(&p, &d)) {
		return err_set(err, WEFT_EINVAL,
			       "'%.40s' is not a %s: expected a number and "
			       "%s", text, k->what, k->choice);
	}
	p += strspn(p, " \t");
	u = find_unit(k, p);
	if (!u) {
		return err_set(err, WEFT_EINVAL,
			       "%s '%.40s' %s: expected %s", k->what, text,
			       *p ? "has an unknown unit" : "has no unit",
			       k->choice);
	}
	if (d.negative && !k->may_be_negative) {
		return err_set(err, WEFT_EINVAL, "%s '%.40s' is negative", k->what, text);
	}
	if (!scale(&d, u->factor, value)) {
		return err_set(err, WEFT_EINVAL,
			       "%s '%.40s' is too large or not a whole number "
			       "of %s", k->what, text,
			       k->may_be_negative ? "thousandths"
						  : k->units[0].name);
	}
	return 0;
}

/* "1.5kB" for magnitude / unit; false when the decimals do not end soon or
 * the number would be below one (unless forced). */
static bool write_in_unit(char *buf, size_t size, uint64_t magnitude,
			  const struct unit *u, bool forced)
{
	uint64_t factor = (uint64_t)u->factor, rest = magnitude % factor;
	int n = snprintf(buf, size, "%" PRIu64, magnitude / factor);

	if (magnitude < factor && !forced) {
		return false;
	}
	for (int i = 0; rest != 0; i++) {
		if (i == 12 || (size_t)n + 2 >= size) {
			return false;
		}
		if (i == 0) {
			buf[n++] = '.';
		}
		rest *= 10;
		buf[n++] = (char)('0' + rest / factor);
		rest %= factor;
	}
	snprintf(buf + n, size - (size_t)n, "%s", u->name);
	return true;
}

const char *unit_str(enum unit_kind kind, int64_t value, char *buf, int size)
{
	const struct kind *k = &kinds[kind];
	uint64_t magnitude = value < 0 ? -(uint64_t)value : (uint64_t)value;
	char best[64] = "", now[64];

	for (const struct unit *u = k->units; u->name && u->use != READ; u++) {
		if (u->use == BINARY && magnitude % 1000 == 0) {
			continue;
		}
		if (write_in_unit(now, sizeof(now), magnitude, u,
				  u == k->units) &&
		    (!best[0] || strlen(now) < strlen(best))) {
			memcpy(best, now, sizeof(best));
		}
	}
	snprintf(buf, (size_t)size, "%s%s", value < 0 ? "-" : "", best);
	return buf;
}

const char *unit_human(enum unit_kind kind, double value, char *buf, int size)
{
	const struct unit *u = kinds[kind].units;
	char number[64];
	double x;

	/* The next unit already when rounding would reach it. */
	while (u[1].name && u[1].use == DECIMAL && fabs(value) >= 0.9995 * (double)u[1].factor) {
		u++;
	}
	x = value / (double)u->factor;
	snprintf(number, sizeof(number), "%.*f", fabs(x) < 9.995 ? 2 : fabs(x) < 99.95 ? 1 : 0, x);
	if (strchr(number, '.')) {
		size_t n = strlen(number);

		while (number[n - 1] == '0') {
			number[--n] = '\0';
		}
		if (number[n - 1] == '.') {
			number[n - 1] = '\0';
		}
	}
	snprintf(buf, (size_t)size, "%s %s", number, u->name);
	return buf;
}
