/*
 * The format of a file as tables: which keys each section has, of which
 * type, within which limits, with which default. One reader turns a mapping
 * into values by its table and reports everything that does not fit.
 */
#ifndef WEFT_LIB_CONF_SCHEMA_H
#define WEFT_LIB_CONF_SCHEMA_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/units.h"
#include "lib/conf/reader.h"
#include "lib/conf/yaml.h"

enum key_type {
	KEY_NAME,	/* letters, digits, '-' and '_' */
	KEY_NAMES,	/* text with ranges, or a list of such */
	KEY_TEXT,
	KEY_CHOICE,	/* one of key.choices */
	KEY_INT,
	KEY_BOOL,
	KEY_QUANTITY,	/* number and unit */
	KEY_GRID,	/* "32x16" */
	KEY_ENTRIES,	/* list of mappings, each a key.section */
	KEY_MAP,	/* one mapping, a key.section */
	KEY_STRINGS,	/* mapping of free keys to text */
};

struct section;

struct key {
	const char *name;
	enum key_type type;
	bool required;
	enum unit_kind unit;		/* of a QUANTITY */
	int64_t min, max;		/* of INT, QUANTITY and GRID */
	const char *def;		/* written as in a file; NULL: none */
	const char *const *choices;	/* ends with NULL */
	const struct section *section;
	const char *help;		/* "what it is", for hints */
};

struct section {
	const char *object;		/* "switch": what messages call it */
	const struct key *keys;		/* in the order of the enums below */
	int n_keys;
};

/* What a mapping says about one key. */
struct value {
	const struct node *node;	/* NULL when not given */
	bool ok;			/* valid, given or by default */
	int64_t num, num2;		/* INT, BOOL, QUANTITY, GRID, CHOICE */
	const char *text;		/* NAME, TEXT, CHOICE */
};

#define SECTION_MAX_KEYS 16

/* "switch ocs0", or "switch 3" while it has no name: what messages call the
 * n-th (from 1) entry. */
#define OBJECT_MAX 96
void section_object(const struct section *s, const struct node *entry, int nth,
		    char object[OBJECT_MAX]);

/* Reads a mapping into values[s->n_keys] and reports what is wrong with it:
 * not a mapping, unknown, double or missing keys, wrong types and limits.
 * Returns true when nothing was. */
bool section_read(struct reader *r, const struct section *s,
		  const char *object, const struct node *map,
		  struct value *values);

/* Letters, digits, '-' and '_', at most CONF_MAX_NAME. */
bool name_is_valid(const char *text);

#endif
