/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preloaded into a program of another machine that qemu runs: what it starts is run by qemu, too.
 * /proc/self/exe is this machine's qemu to the kernel, and the program itself to readlink().
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_ARGS 64

int execvp(const char *file, char *const argv[])
{
	const char *qemu = getenv("WEFT_QEMU");
	char *v[MAX_ARGS + 1], program[PATH_MAX] = "";
	int n = 0;

	if (!qemu || readlink(file, program, sizeof(program) - 1) < 0) {
		strncpy(program, file, sizeof(program) - 1);
	}
	unsetenv("LD_PRELOAD");	/* nor does what was started start anything */
	v[n++] = (char *)qemu;
	v[n++] = "-0";
	v[n++] = argv[0];
	v[n++] = program;
	for (int i = 1; argv[i] && n < MAX_ARGS; i++) {
		v[n++] = argv[i];
	}
	v[n] = NULL;
	return execv(qemu, v);
}
