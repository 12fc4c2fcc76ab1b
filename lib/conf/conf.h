/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading a configuration file: YAML to a tree of nodes that know their
 * place, and a mapping to checked values by a table of its keys.
 *
 *   struct conf_reader r;
 *   conf_reader_init(&r, "x.yaml", "fabric", &keep, &errs);
 *   root = conf_read_yaml(&r, text, len);
 *   if (root && conf_read_section(&r, &section, "fabric", root, values)) ...
 *   conf_reader_fini(&r);
 *
 * Mistakes of the user are reported with line and column and reading goes on,
 * so that one run finds all of them. Only what makes going on pointless (a
 * limit on the whole text) sets conf_reader.stop; it is sticky, and whoever
 * reads in a loop looks at it. The room knows nothing of what a file is about:
 * tables and messages' names come from its users.
 */
#ifndef WEFT_LIB_CONF_CONF_H
#define WEFT_LIB_CONF_CONF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/base/number/units.h"

#define CONF_MAX_NAME 63		/* bytes of a name */
#define CONF_MAX_DEPTH 32		/* lists and mappings around a value */
#define CONF_MAX_NODES (1 << 21)	/* keys and values of one file */
#define CONF_MAX_KEYS 24		/* of one section */
#define CONF_MAX_OBJECT 96		/* bytes of an object's name in messages */

/* ---- memory --------------------------------------------------------------- */

struct conf_block;

/* Memory that is given out piece by piece and freed at once. Zero-initialise,
 * use, fini; usable again after fini. */
struct conf_arena {
	struct conf_block *head;
	size_t left;		/* free bytes of the head block */
	char *at;		/* where they begin */
};

/* Zeroed, aligned for anything. Amortised O(bytes). */
void *conf_arena_alloc(struct conf_arena *a, size_t n, size_t size);

/* A terminated copy of len bytes. */
char *conf_arena_strndup(struct conf_arena *a, const char *s, size_t len);

void conf_arena_fini(struct conf_arena *a);

/* ---- the reader ----------------------------------------------------------- */

/* Of a value in the file, line and column from 1; 0: unknown. */
struct conf_place {
	int line, col;
};

struct conf_reader {
	const char *file;	/* borrowed: what errors call it */
	const char *content;	/* borrowed: what it should hold, "fabric" */
	struct err_list *errs;	/* borrowed */
	int n_errors;		/* reported, kept or not */
	struct err unkept;	/* the last one that the list had no room for */
	struct conf_arena *keep;	/* borrowed: lives as long as the result */
	struct conf_arena tree;	/* the nodes, until conf_reader_fini */
	struct conf_arena work;	/* scratch memory that the user frees, such as
				 * after each entry of a list */
	int max_nodes;		/* CONF_MAX_NODES unless the user sets it */
	int stop;		/* 0, or why reading cannot go on */
};

/* A reader of one file; the texts and `keep` must outlive it. */
void conf_reader_init(struct conf_reader *r, const char *file, const char *content,
		      struct conf_arena *keep, struct err_list *errs);

/* Frees the nodes; the list of errors and `keep` stay the caller's. */
void conf_reader_fini(struct conf_reader *r);

/* Adds an error at a place of the file. Returns the one in the list, to hang
 * a hint on; it is valid until the next report. */
struct err *conf_error(struct conf_reader *r, struct conf_place at,
		       enum weft_err code, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* True when e was kept, so that searching for a hint is worth the time. */
bool conf_error_kept(const struct conf_reader *r, const struct err *e);

/* ---- nodes ---------------------------------------------------------------- */

/* BAD: was refused and reported; whoever meets it keeps quiet. */
enum conf_node_kind {
	CONF_NODE_BAD, CONF_NODE_TEXT, CONF_NODE_LIST, CONF_NODE_MAP
};

struct conf_node {
	enum conf_node_kind kind;
	bool quoted;		/* text in quotes or a block */
	bool verbatim;		/* text stands in the file as it is here */
	struct conf_place at;
	int n;			/* children; a map has key, value, key, ... */
	struct conf_node *first, *next;
	const char *text;	/* terminated UTF-8 without control characters,
				 * "" unless kind is TEXT */
};

/* Reads the one document of text into r->tree: the subset of YAML that a
 * configuration needs, mappings, lists and text, thus JSON as well. Anchors,
 * aliases, tags and control characters are refused, depth and number of nodes
 * are bounded. NULL when there is none or its syntax is wrong (reported). A
 * root with BAD nodes in it is returned all the same. O(len). */
struct conf_node *conf_read_yaml(struct conf_reader *r, const char *text, size_t len);

/* Appends the text with "key: value" in place of that key's pair in the outermost mapping; all
 * of it where there is none. Neither key nor value needs quotes. text was read without errors
 * before. WEFT_EINVAL: it is no YAML. O(len). */
int conf_replace(const char *text, size_t len, const char *key, const char *value,
		 struct buf *out, struct err *err);

/* Gives the value that stands for one; what it appends to out is UTF-8 on one line. 0; 1: the pair
 * stays as it is; negative: ends the renaming. */
typedef int (*conf_value_fn)(const char *value, struct buf *out, void *arg, struct err *err);

/* Appends the text with `new_key: "value"` in place of each pair `key: text` of a mapping,
 * wherever that stands; all else stays as it is. Returns how many were renamed; WEFT_EINVAL: it is
 * no YAML; what fn returned, with line and column of the value if its error has none: out is of no
 * use. O(len x pairs). */
int conf_rename(const char *text, size_t len, const char *key, const char *new_key,
		conf_value_fn fn, void *arg, struct buf *out, struct err *err);

/* Place of the byte at offset in a node's text; that of the node when the
 * text does not stand verbatim in the file. */
struct conf_place conf_node_place(const struct conf_node *n, size_t offset);

/* ---- sections ------------------------------------------------------------- */

enum conf_type {
	CONF_NAME,	/* letters, digits, '-' and '_' */
	CONF_NAMES,	/* a text, or a list of such; expanded by the user */
	CONF_TEXT,
	CONF_CHOICE,	/* one of conf_key.choices */
	CONF_INT,	/* a whole number of at most 18 digits, below 0 where min is */
	CONF_BOOL,
	CONF_QUANTITY,	/* number and unit */
	CONF_GRID,	/* "32x16" */
	CONF_ENTRIES,	/* list of mappings, each a conf_key.section */
	CONF_MAP,	/* one mapping, a conf_key.section */
	CONF_STRINGS,	/* mapping of free keys to text */
	CONF_ANY,	/* whatever it is; the user checks the node */
};

/* One key of a section, a row of its table. */
struct conf_key {
	const char *name;
	enum conf_type type;
	bool required;
	enum unit_kind unit;		/* of a QUANTITY */
	int64_t min, max;		/* of INT, QUANTITY and GRID, inclusive;
					 * max INT64_MAX: no limit */
	const char *def;		/* written as in a file; NULL: none */
	const char *const *choices;	/* ends with NULL */
	const struct conf_section *section;	/* of ENTRIES and MAP */
	const char *help;		/* "what it is", for hints */
};

struct conf_section {
	const char *object;		/* "switch": what messages call it */
	const struct conf_key *keys;	/* numbered by an enum of the user */
	int n_keys;			/* at most CONF_MAX_KEYS; the last one
					 * called "*": unknown keys are
					 * skipped, not refused */
};

/* What a mapping has for one key. */
struct conf_value {
	const struct conf_node *node;	/* NULL when not given */
	bool ok;			/* valid, given or by default */
	int64_t num, num2;		/* INT, BOOL, QUANTITY, GRID; the index
					 * of a CHOICE */
	const char *text;		/* NAME, TEXT, CHOICE; as long as the
					 * nodes */
};

/* Reads a mapping into values[s->n_keys] and reports what is wrong with it:
 * not a mapping, unknown, double or missing keys, wrong types and limits.
 * object is for messages. Returns true when nothing was. */
bool conf_read_section(struct conf_reader *r, const struct conf_section *s, const char *object,
		       const struct conf_node *map, struct conf_value *values);

/* Reads one node as the value of a key, as conf_read_section does: for
 * entries of lists. *v may hold anything before. */
bool conf_read_value(struct conf_reader *r, const char *object, const struct conf_key *key,
		     const struct conf_node *node, struct conf_value *v);

/* "switch ocs0", or "switch 3" while it has no name: what messages call the
 * n-th (from 1) entry of a list. */
void conf_object_name(const struct conf_section *s, const struct conf_node *entry, int nth,
		      char object[CONF_MAX_OBJECT]);

/* Letters, digits, '-' and '_', the first a letter or digit, at most
 * CONF_MAX_NAME. */
bool conf_is_name(const char *text);

/* A hint for what is none: format and argument of err_hint(). */
#define CONF_NAME_HINT                                                    \
	"a name has up to %d letters, digits, '-' and '_' and starts with " \
	"a letter or digit", CONF_MAX_NAME

#endif
