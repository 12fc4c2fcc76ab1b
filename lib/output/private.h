/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tree that writer.c builds and the formats render, and what they share
 * about characters. A format only reads the tree: any number of them could
 * render the same one.
 */
#ifndef WEFT_LIB_OUTPUT_PRIVATE_H
#define WEFT_LIB_OUTPUT_PRIVATE_H

#include "lib/base/vec.h"
#include "lib/output/writer.h"

enum out_kind {
	OUT_OBJECT, OUT_ARRAY, OUT_STRING, OUT_INT, OUT_REAL, OUT_BOOL,
	OUT_NULL, OUT_NOTE,
};

/*
 * A value or note of the tree. Links are indices into out->nodes, or -1: the
 * vector moves as it grows, pointers into it would not survive out_str. A
 * child's index is larger than its parent's and than its older siblings'.
 */
struct out_node {
	enum out_kind kind;
	char *key;		/* NULL in arrays and for notes; owned */
	/* Of a string or note, as the caller gave it: not escaped, perhaps not
	 * valid UTF-8. Owned; NULL for every other kind. */
	char *text;
	int64_t integer;	/* of an integer or bool */
	double real;
	int parent, first, last, next;
	bool machine_only;	/* with everything below it: not in tables */
};

/* What a format must be able to do. */
struct out_backend {
	const char *name;	/* as --format and out_parse_format take it */
	/* Appends the whole tree to b, ending in a newline. */
	void (*render)(const struct out *o, struct buf *b);
};

extern const struct out_backend out_json, out_json_line, out_yaml, out_table;

/* A writer. Between calls the open nodes are `open` and its ancestors. */
struct out {
	const struct out_backend *backend;
	VEC(struct out_node) nodes;	/* the root is the first */
	int open;			/* innermost open object or array */
	bool machine_next;	/* out_machine_only, for the node to come */
	int width;			/* of tables, 0: any */
};

static inline const struct out_node *out_at(const struct out *o, int i)
{
	return &o->nodes.v[i];
}

/* First child of i, or sibling after i, that is no note; -1 at the end. */
int out_first_value(const struct out *o, int i);
int out_next_value(const struct out *o, int i);

static inline bool out_is_scalar(const struct out_node *n)
{
	return n->kind != OUT_OBJECT && n->kind != OUT_ARRAY;
}

/* Appends a scalar other than a string the way JSON and YAML write it. The
 * shortest decimals that read back as the same double; null for a number
 * that is not finite. */
void out_put_literal(const struct out_node *n, struct buf *b);

/* Bytes of s that stand in a line of `width` columns: up to the last blank or
 * comma that fits, else as much as fits; at least one character. */
size_t out_fit(const char *s, int width);

/* Columns that the text takes in a terminal. */
int out_width(const char *s);

#endif
