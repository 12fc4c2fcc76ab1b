/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory. Allocation does not fail in view of a caller: where there is none left, the process
 * ends with one line (alloc_on_end), so none of these returns NULL and no caller asks. Counts that
 * come from outside are bounded before they get here. Whoever serves for long (weftd) may end at
 * any moment without loss, and is started again.
 *
 * What comes back is free()'s.
 */
#ifndef WEFT_LIB_BASE_ALLOC_H
#define WEFT_LIB_BASE_ALLOC_H

#include <stdbool.h>
#include <stddef.h>

#define ALLOC_RETURNS __attribute__((returns_nonnull, warn_unused_result))

/* n zeroed elements of `size` bytes; of n = 0 there is memory too. */
void *x_new(size_t n, size_t size) ALLOC_RETURNS;
/* The same, with whatever was there. */
void *x_alloc(size_t n, size_t size) ALLOC_RETURNS;
/* p, NULL or of these, with room for n elements; p itself is gone. */
void *x_grow(void *p, size_t n, size_t size) ALLOC_RETURNS;
/* Copies of strings; of x_ndup at most `max` bytes and a NUL. */
char *x_dup(const char *s) ALLOC_RETURNS;
char *x_ndup(const char *s, size_t max) ALLOC_RETURNS;
/* p, which a library made that knows no allocator of ours: where it found no memory, so do we. */
void *x_have(void *p) ALLOC_RETURNS;

/* malloc and realloc for libraries that let their users choose: as above, and as they say of a
 * size of 0. For calloc there is x_new. */
void *x_malloc(size_t size) ALLOC_RETURNS;
void *x_realloc(void *p, size_t size) ALLOC_RETURNS;

/*
 * How a process ends that has no memory, said before it starts other threads: tell is called with
 * one line without a newline, and may neither allocate nor take a lock (NULL: the line goes to
 * standard error, behind the program's name); then it ends with the exit code, and no handler of
 * exit() runs. Default: "weft", 71.
 */
void alloc_on_end(const char *program, int exit_code, void (*tell)(const char *line));

/* Ends the process as above; `bytes` (0: not known) is what was asked for. */
void alloc_end(size_t bytes) __attribute__((noreturn));

/* Calls fn; false where it found no memory. Then it was left where it stood, and what it held is
 * lost: for libraries in other people's programs, and for work that takes no locks. Of this
 * thread only; calls do not nest. */
bool alloc_try(void (*fn)(void *arg), void *arg);

#endif
