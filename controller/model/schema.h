/*
 * The format of a fabric as tables: which keys each section has, of which
 * type, within which limits, with which default. One reader turns a mapping
 * into values by its table and reports everything that does not fit; the
 * manual is tested against the same tables. Private to the model.
 */
#ifndef WEFT_MODEL_SCHEMA_H
#define WEFT_MODEL_SCHEMA_H

#include <stdbool.h>
#include <stdint.h>

#include "controller/model/reader.h"
#include "controller/model/yaml.h"
#include "lib/base/units.h"

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

enum { FABRIC_WEFT, FABRIC_NAME, FABRIC_HOSTS, FABRIC_SWITCHES, FABRIC_PANELS,
       FABRIC_RINGS, FABRIC_FIBRES, FABRIC_JOBS,
       FABRIC_REQUESTS, FABRIC_CHANGES, FABRIC_DEAD, FABRIC_KEYS };
enum { DEAD_PORT, DEAD_RING, DEAD_NODE, DEAD_SPAN, DEAD_CHANNEL, DEAD_DIRECTION,
       DEAD_FIBRE, DEAD_KEYS };
enum { CHANGES_KEEP, CHANGES_KEEP_PAIR, CHANGES_GATE, CHANGES_BELOW,
       CHANGES_VERIFY, CHANGES_DRAIN,
       CHANGES_FOREIGN, CHANGES_RESTORE_AFTER,
       CHANGES_KEYS };
enum { HOST_NAME, HOST_PORTS, HOST_RATE, HOST_REACTIVATION,
       HOST_CHANNELS, HOST_NETNS, HOST_LAUNCH, HOST_RECEIVE_MIN, HOST_RECEIVE_MAX,
       HOST_KEYS };
/* What every device has stands first, in the same order. */
enum { DEVICE_NAME, DEVICE_DRIVER, DEVICE_ADDRESS, DEVICE_OPTIONS,
       DEVICE_DOMAIN, DEVICE_TIMEOUT, DEVICE_FOREIGN, DEVICE_KEYS };
enum { SPACE_SIZE = DEVICE_KEYS, SPACE_PORTS, SPACE_ANY_TO_ANY, SPACE_LOSS,
       SPACE_TIME, SPACE_KEYS };
enum { RING_NODES = DEVICE_KEYS, RING_FIBRES, RING_CHANNELS, RING_RATE,
       RING_RETUNE, RING_CONVERSION, RING_OVERLAP,
       RING_MEMORY, RING_LOSS, RING_KEYS };
enum { LOSS_LAUNCH, LOSS_SENSITIVITY, LOSS_MARGIN, LOSS_ADD, LOSS_DROP,
       LOSS_PASS, LOSS_RINGS, LOSS_SPAN, LOSS_KEYS };
enum { FIBRE_FROM, FIBRE_TO, FIBRE_LOSS, FIBRE_CHANNELS, FIBRE_GAIN,
       FIBRE_KEYS };
enum { JOB_NAME, JOB_NODES, JOB_RING, JOB_COLLECTIVE, JOB_SIZE, JOB_ALGORITHM,
       JOB_TOPOLOGY, JOB_DEPTH, JOB_ALPHA, JOB_CHANNELS, JOB_SEGMENT,
       JOB_KEYS };

extern const struct section section_fabric, section_host, section_switch,
	section_panel, section_ring, section_loss, section_fibre, section_job,
	section_changes, section_dead;

/* All of them, NULL-terminated: for tests of the documentation. */
extern const struct section *const schema_sections[];

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

/* Letters, digits, '-' and '_', at most MODEL_MAX_NAME. */
bool name_is_valid(const char *text);

#endif
