/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store as text: what both writing and reading it know.
 *
 * The text is JSON: an object with the number of its form, and for each table an array of
 * rows under a name that stays when a format of the file renames the table or a column.
 */
#ifndef WEFT_STORE_PORTABLE_H
#define WEFT_STORE_PORTABLE_H

#define PORTABLE_FORM 1		/* of the text that is written */
#define PORTABLE_READS_FROM 1	/* the oldest form whose reader understands it */
#define PORTABLE_KEY_FORM "weft_store"
#define PORTABLE_KEY_READS_FROM "readable_from"
#define PORTABLE_KEY_FORMAT "store_format"	/* of the file it was made from */
#define PORTABLE_MAX_COLUMNS 24

enum portable_type {
	PORTABLE_TEXT,		/* a string, or {"hex": ".."} when it is no UTF-8 */
	PORTABLE_BYTES,		/* the same, kept as bytes */
	PORTABLE_NUMBER,	/* 32 bits with a sign */
	PORTABLE_COUNT,		/* times, sizes, ids: 0 to 2^62 */
};

struct portable_column {
	const char *name;	/* in the text and in the file; NULL ends the list */
	enum portable_type type;
};

struct portable_table {
	const char *name;	/* in the text; NULL ends the list */
	const char *table;	/* in the file */
	const char *order;	/* of the rows: none are equal in it */
	struct portable_column columns[PORTABLE_MAX_COLUMNS];
};

/* In the order in which they are written; the audit trail comes last. */
extern const struct portable_table portable_tables[];

#endif
