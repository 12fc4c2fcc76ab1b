/*
 * Quantities with units (sizes, rates, times, powers), read from configuration,
 * options and topologies, and written for people. One table has each kind's
 * units. Parsing is decimal integer arithmetic: no value passes through floating
 * point, so that what is written is what is meant, and what the base unit cannot
 * hold exactly is an error rather than a rounded number.
 */
#include "lib/base/units.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

struct unit {
	const char *name;
	int64_t factor;		/* base units in one */
	bool binary;
};

struct kind {
	const char *what;
	const char *choice;	/* for messages */
	bool may_be_negative;
	struct unit units[10];	/* ascending within decimal and binary ones;
				 * ends with a NULL name */
};

static const struct kind kinds[] = {
	[UNIT_BYTES] = {
		"size", "B, kB, MB, GB, TB, KiB, MiB, GiB or TiB", false,
		{ { "B", 1, false }, { "kB", 1000, false },
		  { "MB", 1000000, false }, { "GB", 1000000000, false },
		  { "TB", 1000000000000, false }, { "KiB", 1 << 10, true },
		  { "MiB", 1 << 20, true }, { "GiB", 1 << 30, true },
		  { "TiB", (int64_t)1 << 40, true } } },
	[UNIT_BPS] = {
		"rate", "bps, kbps, Mbps, Gbps or Tbps", false,
		{ { "bps", 1, false }, { "kbps", 1000, false },
		  { "Mbps", 1000000, false }, { "Gbps", 1000000000, false },
		  { "Tbps", 1000000000000, false } } },
	[UNIT_NS] = {
		"time", "ns, us, ms, s, min or h", false,
		{ { "ns", 1, false }, { "us", 1000, false },
		  { "ms", 1000000, false }, { "s", 1000000000, false },
		  { "min", 60000000000, false },
		  { "h", 3600000000000, false } } },
	[UNIT_MDB] = { "loss", "dB", true, { { "dB", 1000, false } } },
	[UNIT_MDBM] = { "power", "dBm", true, { { "dBm", 1000, false } } },
	[UNIT_PPM] = { "share", "%", false, { { "%", 10000, false } } },
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

/* "KB" is so widely written for the SI kilobyte that it is read as one. */
static const struct unit *find_unit(const struct kind *k, const char *name)
{
	size_t len = strcspn(name, " \t");

	if (len == 2 && strncmp(name, "KB", 2) == 0) {
		return find_unit(k, "kB");
	}
	if (name[len + strspn(name + len, " \t")] != '\0') {
		return NULL;
	}
	for (const struct unit *u = k->units; u->name; u++) {
		if (strlen(u->name) == len && strncmp(u->name, name, len) == 0) {
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

	for (const struct unit *u = k->units; u->name; u++) {
		if (u->binary && magnitude % 1000 == 0) {
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
	while (u[1].name && !u[1].binary && fabs(value) >= 0.9995 * (double)u[1].factor) {
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
