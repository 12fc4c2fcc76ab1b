/* SPDX-License-Identifier: Apache-2.0 */
/* What benchmarks are as programs: a table for people, rows for the others. */
#ifndef WEFT_TESTS_BENCH_PROGRAM_H
#define WEFT_TESTS_BENCH_PROGRAM_H

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

/* Processor time of the program so far. */
static inline double cpu_seconds(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

/* run(table, json) gets the table's stream unless JSON goes to standard
 * output, and that of `--json [FILE]`, or NULL; FILE is appended to. */
static inline int bench_main(int argc, char **argv, const char *name,
			     int (*run)(FILE *table, FILE *json))
{
	FILE *json = NULL;
	int status;

	if (argc > 1 && strcmp(argv[1], "--json") == 0) {
		json = argc > 2 ? fopen(argv[2], "a") : stdout;
		if (!json) {
			perror(argv[2]);
			return 1;
		}
	}
	status = run(json == stdout ? NULL : stdout, json);
	if (json && fclose(json) != 0) {
		perror(name);
		return 1;
	}
	return status;
}

#endif
