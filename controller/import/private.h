/* SPDX-License-Identifier: Apache-2.0 */
/* What the readers of labs share: tables, and the lab that they find. */
#ifndef WEFT_IMPORT_PRIVATE_H
#define WEFT_IMPORT_PRIVATE_H

#include <stdbool.h>

#include "controller/import/import.h"
#include "lib/base/map.h"
#include "lib/base/vec.h"

/* ---- csv.c ---- */

/* Adds a mistake, or what is passed over, with its place (line 0: the whole file). */
int import_say(struct err_list *to, const char *file, int line, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* The value of a key; NULL: there is none, or it is no map. */
struct conf_node;
const struct conf_node *import_value(const struct conf_node *map, const char *key);

/* In a text, from line `line` on; n values from c->fields.v[first] on. */
struct csv_row {
	int line, first, n;
};

/* RFC 4180 with a row of names first; blanks around values and empty lines are passed over. */
struct csv {
	const char *file;
	char *text;		/* owned: values point into it */
	VEC(char *) fields;	/* of all rows */
	VEC(struct csv_row) rows;	/* the first has the names */
};

/* The columns wanted; csv_fini() also after an error, which is WEFT_EINVAL: a quote is not closed,
 * or no text. A text that is not there has no rows. O(len). */
int csv_read(struct csv *c, const struct import_text *in, struct err_list *errs);
void csv_fini(struct csv *c);
/* Index of a column, -1: there is none. */
int csv_column(const struct csv *c, const char *name);
/* The values of row i (from 1) in n columns, "" for those that are -1. False, and reported: the row
 * is too short for one. */
bool csv_values(const struct csv *c, size_t i, const int *columns, int n, const char **values,
		struct err_list *errs);

/* ---- lab.c ---- */

struct lab_device {
	char *text, *name;	/* as written, and as weft names it; owned */
	char *address;		/* owned; NULL: not known */
	bool is_switch;
	int sides;		/* ports of each side of a switch; 0: not known */
	int greatest;		/* port in use */
	int line;
	int first, last;	/* ports of a host, -1: none */
};

/* A port of a host, or a trunk of a switch, with its fibres. */
struct lab_port {
	char *text, *name;	/* as written; as weft names it, NULL: of a trunk; owned */
	int device, at;		/* whose it is, and the switch that it is on */
	int first_lane, lanes;
	int64_t rate_bps;	/* 0: not known */
	int line, next;		/* of the same host, -1: none */
};

struct lab {
	VEC(struct lab_device) devices;
	VEC(struct lab_port) ports;
	VEC(int) numbers;	/* of switch ports, for each lane */
	struct strmap by_text;	/* devices, "device\npart" of ports in use: index + 1 */
	struct strmap by_name;	/* likewise, as weft names them */
	struct import_report *report;
};

void lab_fini(struct lab *l);

/* Index of a device or port, -1: none. */
int lab_find_device(const struct lab *l, const char *text);
int lab_find_port(const struct lab *l, const char *device, const char *port);
/* A new device; -1, and a mistake, when the name is another's. */
int lab_add_device(struct lab *l, const char *file, int line, const char *text, bool is_switch);
/* The port of a device is joined to these of a switch: numbers apart by '|', or by ','. Mistakes
 * are reported. */
void lab_add_cable(struct lab *l, const char *file, int line, int device, const char *port,
		   int at, const char *numbers);
/* Whether a fibre joins two switches. O(ports). */
bool lab_has_trunk(const struct lab *l, int a, int b);
/* Appends the circuit between two ports as lines. */
void lab_put_circuit(const struct lab *l, int a, int b, struct buf *out);
/* Appends the fabric file, unless there are mistakes, as that no host has a cable. O(ports). */
void lab_write(struct lab *l, const struct import_defaults *d, const char *file, struct buf *out);

#endif
