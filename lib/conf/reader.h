/*
 * What all parts of reading a fabric share: the list of errors, memory, and
 * the budget of names. Private to the model.
 *
 * Mistakes of the user are reported and reading goes on, so that one run
 * finds all of them. Only what makes going on pointless (out of memory, a
 * limit on the whole text) sets `stop`; it is sticky, and whoever allocates
 * in a loop looks at it.
 */
#ifndef WEFT_LIB_CONF_READER_H
#define WEFT_LIB_CONF_READER_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/base/suggest.h"
#include "lib/conf/arena.h"

/* Names that ranges of one fabric may expand to, counted each time one is
 * written, before memory is spent on them. */
#define READER_MAX_NAMES ((int64_t)1 << 22)

#define CONF_MAX_NAME 63	/* bytes of a name */

/* Of a value in the file, from 1; 0: unknown. */
struct conf_place {
	int line, col;
};

struct reader {
	const char *file;
	struct err_list *errs;
	int n_errors;		/* reported, kept or not */
	struct err unkept;	/* the last one that the list had no room for */
	struct arena *keep;	/* lives as long as the fabric */
	struct arena tree;	/* the YAML's nodes, until reading ends */
	struct arena work;	/* freed after each entry of a list */
	int64_t names_left;
	int stop;		/* 0, or why reading cannot go on */
};

void reader_init(struct reader *r, const char *file, struct arena *keep,
		 struct err_list *errs);
void reader_fini(struct reader *r);

/* Adds an error at a place of the file. Returns the one in the list, to hang
 * a hint on; it is valid until the next report. */
struct err *reader_error(struct reader *r, struct conf_place at,
			 enum weft_err code, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* True when e was kept, so that searching for a hint is worth the time. */
bool reader_kept(const struct reader *r, const struct err *e);

/* arena_alloc and arena_strndup that set `stop` when they return NULL. */
void *reader_alloc(struct reader *r, struct arena *a, size_t n, size_t size);
char *reader_copy(struct reader *r, struct arena *a, const char *s,
		  size_t len);
/* The same for anything else that failed to get memory. */
void reader_nomem(struct reader *r);

#endif
