/*
 * YAML to a tree of nodes that know their place. Private to the model.
 *
 * The subset that a configuration needs: one document, mappings, lists and
 * text. Anchors, aliases, tags and control characters are refused, depth and
 * number of nodes are bounded.
 */
#ifndef WEFT_LIB_CONF_YAML_H
#define WEFT_LIB_CONF_YAML_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/conf/reader.h"

#define YAML_MAX_DEPTH 32
#define YAML_MAX_NODES (1 << 21)

/* BAD: was refused and reported; whoever meets it keeps quiet. */
enum node_kind { NODE_BAD, NODE_TEXT, NODE_LIST, NODE_MAP };

struct node {
	enum node_kind kind;
	bool quoted;		/* text in quotes or a block */
	bool verbatim;		/* text stands in the file as it is here */
	struct conf_place at;
	int n;			/* children; a map has key, value, key, ... */
	struct node *first, *next;
	const char *text;	/* terminated UTF-8 without control characters,
				 * "" unless kind is TEXT */
};

/* Reads the document into r->tree. NULL when there is none or its syntax is
 * wrong (reported). A root with BAD nodes in it is returned all the same.
 * O(len). */
struct node *yaml_read(struct reader *r, const char *text, size_t len);

/* Place of the byte at offset in a node's text; that of the node when the
 * text does not stand verbatim in the file. */
struct conf_place node_place(const struct node *n, size_t offset);

/* No value at all: "key:", "~" or "null". */
bool node_is_empty(const struct node *n);

/* "a list", for messages. */
const char *node_what(const struct node *n);

#endif
