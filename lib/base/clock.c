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
