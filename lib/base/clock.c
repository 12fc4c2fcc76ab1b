/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks; see clock.h. */
#include "lib/base/clock.h"

#include <stdio.h>
#include <time.h>

static int64_t read_clock(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

int64_t clk_now_ns(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

int64_t clk_boot_ns(void)
{
	return read_clock(CLOCK_BOOTTIME);
}

int64_t clk_wall_ns(void)
{
	return read_clock(CLOCK_REALTIME);
}

const char *clk_iso(int64_t wall_ns, char *buf, int size)
{
	time_t t = wall_ns / 1000000000;
	int ms = (int)(wall_ns / 1000000 % 1000);
	struct tm tm;
	char day[32];

	gmtime_r(&t, &tm);
	strftime(day, sizeof(day), "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(buf, size, "%s.%03dZ", day, ms);
	return buf;
}

struct deadline deadline_in(int64_t limit_ns, atomic_bool *met)
{
	int64_t now = limit_ns ? clk_now_ns() : 0;
	struct deadline d = { .met = met };

	if (limit_ns) {
		d.at_ns = limit_ns < INT64_MAX - now ? now + limit_ns : INT64_MAX;
	}
	return d;
}

struct deadline deadline_part(const struct deadline *d, int64_t ns)
{
	return d->at_ns ? deadline_in(ns > 0 ? ns : 1, d->met) : *d;
}

int64_t deadline_left_ns(const struct deadline *d)
{
	int64_t left = d->at_ns ? d->at_ns - clk_now_ns() : 0;

	return left > 0 ? left : 0;
}

bool deadline_passed(const struct deadline *d)
{
	if (!d->at_ns || clk_now_ns() < d->at_ns) {
		return false;
	}
	if (d->met) {
		atomic_store(d->met, true);
	}
	return true;
}
