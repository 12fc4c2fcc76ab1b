/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Structs as bytes, by tables of their fields: for another process of the same program, so
 * numbers are as this machine has them. What comes back is bytes of others: a count is bounded by
 * the bytes that are left, and what is read owns all that it points to. Whether numbers make
 * sense is the reader's to see.
 */
#ifndef WEFT_OUTPUT_LAYOUT_TABLE_H
#define WEFT_OUTPUT_LAYOUT_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"

enum layout_kind {
	LAYOUT_END, LAYOUT_NUMBER, LAYOUT_FLAG, LAYOUT_CHARS, LAYOUT_PART, LAYOUT_OTHER,
	/* pointers: */
	LAYOUT_TEXT, LAYOUT_BYTES, LAYOUT_LIST, LAYOUT_ALSO, LAYOUT_VEC, LAYOUT_MAYBE,
};

/* A field of a kind of its own, at `at`. read: into zeroed memory; what it has made there is
 * freed by fini, also after an error. */
struct layout_other {
	void (*write)(const void *at, struct buf *out);
	int (*read)(void *at, const void *data, size_t len, struct err *err);
	void (*fini)(void *at);
};

struct layout_field {
	enum layout_kind kind;
	const char *name;
	size_t at, size;		/* in the struct; of it, in bytes */
	size_t n_at, n_size;		/* of lists and bytes: where its count is */
	const struct layout *of;	/* parts and elements */
	const struct layout_other *other;
};

struct layout {
	size_t size;			/* of the struct */
	const struct layout_field *fields;	/* up to LAYOUT_END */
};

#define LAYOUT_AT(s, f) #f, offsetof(struct s, f), sizeof(((struct s *)0)->f)
#define LAYOUT_N(s, f) offsetof(struct s, f), sizeof(((struct s *)0)->f)
/* Rows of a table of struct s: a number or an enumeration; a bool; a char array with its NUL; an
 * owned string or NULL; owned bytes, `n` of them and a NUL; a struct within it; a pointer to as
 * many as the int `n` says; another one, with the count of a row before; a VEC; a pointer to one,
 * or NULL. */
#define NUMBER(s, f) { LAYOUT_NUMBER, LAYOUT_AT(s, f), 0, 0, NULL, NULL }
#define FLAG(s, f) { LAYOUT_FLAG, LAYOUT_AT(s, f), 0, 0, NULL, NULL }
#define CHARS(s, f) { LAYOUT_CHARS, LAYOUT_AT(s, f), 0, 0, NULL, NULL }
#define TEXT(s, f) { LAYOUT_TEXT, LAYOUT_AT(s, f), 0, 0, NULL, NULL }
#define BYTES(s, f, n) { LAYOUT_BYTES, LAYOUT_AT(s, f), LAYOUT_N(s, n), NULL, NULL }
#define PART(s, f, of) { LAYOUT_PART, LAYOUT_AT(s, f), 0, 0, of, NULL }
#define LIST(s, f, n, of) { LAYOUT_LIST, LAYOUT_AT(s, f), LAYOUT_N(s, n), of, NULL }
#define ALSO(s, f, n, of) { LAYOUT_ALSO, LAYOUT_AT(s, f), LAYOUT_N(s, n), of, NULL }
#define ITEMS(s, f, of) { LAYOUT_VEC, LAYOUT_AT(s, f), 0, 0, of, NULL }
#define MAYBE(s, f, of) { LAYOUT_MAYBE, LAYOUT_AT(s, f), 0, 0, of, NULL }
#define OTHER(s, f, other) { LAYOUT_OTHER, LAYOUT_AT(s, f), 0, 0, NULL, other }
#define FIELDS(...) (const struct layout_field[]) { \
	__VA_ARGS__, { LAYOUT_END, NULL, 0, 0, 0, 0, NULL, NULL } }

/* A struct that is an int, or an int64_t. */
extern const struct layout layout_int, layout_int64;
/* struct err. */
extern const struct layout layout_err;

/* Appends the struct at `from`. O(bytes). */
void layout_write(const struct layout *l, const void *from, struct buf *out);
/* Reads all of data into *to, which is zeroed first; lists of none are NULL. WEFT_EINVAL names the
 * field and leaves it zeroed. WEFT_ELIMIT: more memory than 16 times the bytes. O(len). */
int layout_read(const struct layout *l, void *to, const void *data, size_t len, struct err *err);
/* Frees what it owns, and zeroes it. */
void layout_fini(const struct layout *l, void *at);

#endif
