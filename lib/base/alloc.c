/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that is there, or the end of the process; see alloc.h. */
#include "lib/base/alloc.h"

#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXIT_NO_MEMORY 71	/* EX_OSERR */

static struct {
	const char *program;
	int exit_code;
	void (*tell)(const char *line);
} at_end = { "weft", EXIT_NO_MEMORY, NULL };

static _Thread_local jmp_buf *trying;	/* alloc_try's, while it calls */

void alloc_on_end(const char *program, int exit_code, void (*tell)(const char *line))
{
	at_end.program = program;
	at_end.exit_code = exit_code;
	at_end.tell = tell;
}

/* Not by stdio, which may be locked or ask for memory. */
static void tell_stderr(const char *line)
{
	char text[160];
	int n = snprintf(text, sizeof(text), "%s: %s\n", at_end.program, line);
	ssize_t written = write(STDERR_FILENO, text, (size_t)n);

	(void)written;
}

void alloc_end(size_t bytes)
{
	char line[96] = "out of memory";

	if (trying) {
		longjmp(*trying, 1);
	}
	if (bytes) {
		snprintf(line, sizeof(line), "out of memory: %zu bytes more were asked for", bytes);
	}
	(at_end.tell ? at_end.tell : tell_stderr)(line);
	_exit(at_end.exit_code);
}

bool alloc_try(void (*fn)(void *arg), void *arg)
{
	jmp_buf here;

	if (setjmp(here)) {
		trying = NULL;
		return false;
	}
	trying = &here;
	fn(arg);
	trying = NULL;
	return true;
}

/* Of nothing there is a byte, so that NULL always means that there is no memory. */
static size_t bytes_of(size_t n, size_t size)
{
	size_t bytes;

	if (__builtin_mul_overflow(n, size, &bytes)) {
		alloc_end(SIZE_MAX);
	}
	return bytes ? bytes : 1;
}

static void *there(void *p, size_t bytes)
{
	if (!p) {
		alloc_end(bytes);
	}
	return p;
}

void *x_new(size_t n, size_t size)
{
	size_t bytes = bytes_of(n, size);

	return there(calloc(1, bytes), bytes);
}

void *x_alloc(size_t n, size_t size)
{
	size_t bytes = bytes_of(n, size);

	return there(malloc(bytes), bytes);
}

void *x_grow(void *p, size_t n, size_t size)
{
	size_t bytes = bytes_of(n, size);

	return there(realloc(p, bytes), bytes);
}

void *x_malloc(size_t size)
{
	return x_alloc(size, 1);
}

void *x_realloc(void *p, size_t size)
{
	return x_grow(p, size, 1);
}

void *x_have(void *p)
{
	return there(p, 0);
}

char *x_dup(const char *s)
{
	return x_ndup(s, SIZE_MAX);
}

char *x_ndup(const char *s, size_t max)
{
	size_t n = strnlen(s, max);
	char *copy = x_alloc(n + 1, 1);

	memcpy(copy, s, n);
	copy[n] = '\0';
	return copy;
}
