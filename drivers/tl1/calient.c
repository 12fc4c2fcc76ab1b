/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `calient-tl1`: CALIENT switches over TL1 on TCP. A circuit is entered, then
 * activated; cancelled, then deleted. A port has an input and an output. Its
 * address is a number, SHELF.SLOT.PORT, or of a kind with letters in it: the
 * device lists them all, and index 0 is the first in the order of their numbers.
 * A circuit that was accepted can still show OC=FAIL,
 * so the map is read again after a batch. Several circuits of a batch go in
 * one bulk command, which takes ports over without a word and is done some
 * time after its answer.
 *
 * Reconstructed: the `&` between the circuits of a bulk, that those are put
 * in the group SYSTEM, that the ports RTRV-PORT lists are all there are, OS=OOS
 * of a circuit that is entered but not activated, and OOS-MA of a port taken
 * out of service.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/core/parse.h"
#include "drivers/core/driver_base.h"
#include "drivers/tl1/tl1_private.h"

#define PASSWORD "admin"
#define TYP_SWITCH_US 50000
/* The group of circuits that were entered without one, as those of a bulk
 * are. */
#define DEFAULT_GROUP "SYSTEM"
#define ADDRESS_MAX 24

static const struct drv_option_spec options[] = {
	TL1_OPTIONS("admin", PASSWORD, "0"),
	TL1_VERIFY_OPTIONS,
	{ "group", "the group that our circuits are entered in", "WEFT" },
	TL1_BULK_OPTIONS,
	{ "power", "read the power monitors: yes or no", "yes" },
	MONITOR_OPTIONS,
	{ NULL, NULL, NULL },
};

/* A port as it was listed last. */
struct calient_port {
	char address[ADDRESS_MAX];
	bool disabled[2], failed[2];	/* its input, its output */
};

struct calient {
	struct tl1_switch s;
	VEC(struct calient_port) ports;	/* by address; index is the place in it */
};

/* ---- addresses ------------------------------------------------------------ */

/* Numbers by their value, all else by its letters: 1.2a.3 before 1.10a.1. */
static int compare_addresses(const void *a, const void *b)
{
	const char *x = ((const struct calient_port *)a)->address;
	const char *y = ((const struct calient_port *)b)->address;

	while (*x && *y) {
		if (isdigit((unsigned char)*x) && isdigit((unsigned char)*y)) {
			char *end_x, *end_y;
			unsigned long n = strtoul(x, &end_x, 10), m = strtoul(y, &end_y, 10);

			if (n != m) {
				return n < m ? -1 : 1;
			}
			x = end_x;
			y = end_y;
		} else if (*x != *y) {
			return *x < *y ? -1 : 1;
		} else {
			x++;
			y++;
		}
	}
	return (*x != '\0') - (*y != '\0');
}

/* As a switch of 64 shelves would have it, until the device has listed its
 * ports: only what is explained without a session needs that. */
static void put_port(const struct calient *c, int index, char *text, size_t size)
{
	if ((size_t)index < c->ports.n) {
		snprintf(text, size, "%s", c->ports.v[index].address);
	} else {
		snprintf(text, size, "%d.%d.%d", index / 64 + 1, index / 8 % 8 + 1, index % 8 + 1);
	}
}

/* Copies the address at *p, moving *p behind it. False: there is none. */
static bool take_address(const char **p, struct calient_port *port)
{
	size_t n = 0;

	while (isalnum((unsigned char)(*p)[n]) || (n > 0 && (*p)[n] == '.')) {
		n++;
	}
	if (n == 0 || n >= sizeof(port->address)) {
		return false;
	}
	memcpy(port->address, *p, n);
	port->address[n] = '\0';
	*p += n;
	return true;
}

/* An address as an index from 0, moving *p behind it. O(log ports). */
static bool take_port(const struct calient *c, const char **p, int *index)
{
	struct calient_port port, *found;

	found = c->ports.n && take_address(p, &port) ?
		bsearch(&port, c->ports.v, c->ports.n, sizeof(port), compare_addresses) : NULL;
	*index = found ? (int)(found - c->ports.v) : 0;
	return found;
}

/* An address is that of an input and an output; the report does not name which. */
static bool reported_port(const struct tl1_switch *s, const char *text, bool *is_out, int *index)
{
	*is_out = false;
	return take_port((const struct calient *)s, &text, index) && *text == ':';
}

/* ---- what is asked -------------------------------------------------------- */

static void ask_device(const struct tl1_switch *s, struct tl1_command *c)
{
	(void)s;
	tl1_command(c, "RTRV-NE", NULL, NULL);
}

static void ask_ports(const struct tl1_switch *s, struct tl1_command *c)
{
	(void)s;
	tl1_command(c, "RTRV-PORT", "0", NULL);
}

static void ask_map(const struct tl1_switch *s, struct tl1_command *c)
{
	(void)s;
	tl1_command(c, "RTRV-CRS", NULL, "::ALL");
}

static void ask_powers(const struct tl1_switch *s, struct tl1_command *c)
{
	(void)s;
	tl1_command(c, "RTRV-PORT-SUM", "0", NULL);
}

/* ---- what is answered ----------------------------------------------------- */

static int read_device(struct tl1_switch *s, char *line, struct err *err)
{
	static const char *const names[] = { "CHASSISTYPE", "SERIALNUMBER",
					     "SWPACKAGE" };
	char value[32];

	(void)err;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (tl1_value(line, names[i], value, sizeof(value))) {
			base_identify(&s->h, value);
		}
	}
	return 0;
}

static void begin_ports(struct tl1_switch *s)
{
	((struct calient *)s)->ports.n = 0;
}

static void read_side(const char *line, bool is_out, struct calient_port *port)
{
	char as[16], oc[16];

	tl1_value(line, is_out ? "OUTAS" : "INAS", as, sizeof(as));
	tl1_value(line, is_out ? "OUTOC" : "INOC", oc, sizeof(oc));
	port->disabled[is_out] = strcmp(as, "OOS-MA") == 0;
	port->failed[is_out] = strcmp(oc, "FAIL") == 0;
}

/* `1.1.1:WX,NONE,NONE:INAS=OOS-NP,...`. */
static int read_port(struct tl1_switch *s, char *line, struct err *err)
{
	struct calient *c = (struct calient *)s;
	struct calient_port port = { 0 };
	const char *p = line;

	if (!take_address(&p, &port) || *p != ':') {
		return parse_unexpected(line, "PORT:...", err);
	}
	read_side(line, false, &port);
	read_side(line, true, &port);
	vec_push(&c->ports, port);
	return 0;
}

static int enter_port(struct calient *c, size_t i, bool is_out, struct err *err)
{
	const struct calient_port *p = &c->ports.v[i];
	struct drv_port *port;

	if (c->s.h.op != BASE_SNAPSHOT || (!p->disabled[is_out] && !p->failed[is_out])) {
		return 0;
	}
	port = base_port(&c->s.h, is_out, (int)i, err);
	if (!port) {
		return err->code;
	}
	port->enabled = !p->disabled[is_out];
	port->failed = p->failed[is_out];
	return 0;
}

/* All are listed: their order is known. */
static int end_ports(struct tl1_switch *s, size_t n, struct err *err)
{
	struct calient *c = (struct calient *)s;
	int rc = base_check_size(&s->h, (int)c->ports.n, (int)c->ports.n, err);

	(void)n;
	if (rc == 0) {
		qsort(c->ports.v, c->ports.n, sizeof(*c->ports.v), compare_addresses);
	}
	for (size_t i = 0; rc == 0 && i < c->ports.n; i++) {
		rc = enter_port(c, i, false, err);
		if (rc == 0) {
			rc = enter_port(c, i, true, err);
		}
	}
	return rc;
}

static void read_state(const char *line, struct tl1_circuit *c)
{
	char os[16], oc[16];

	tl1_value(line, "OS", os, sizeof(os));
	tl1_value(line, "OC", oc, sizeof(oc));
	c->state = strcmp(os, "OOS") == 0 ? DRV_BLOCKED :
		   strcmp(oc, "FAIL") == 0 ? DRV_FAILED : DRV_TUNED;
	if (c->state == DRV_FAILED) {
		snprintf(c->trouble, sizeof(c->trouble), "OC=FAIL");
	}
}

/* A two-way circuit is two light paths under one name; ending one would end
 * both, so they are not ours to end. */
static int found_bidirectional(struct tl1_switch *s, struct tl1_circuit *c, struct err *err)
{
	struct optics_xc back = { c->xc.out, c->xc.in };
	int rc;

	c->locked = true;
	snprintf(c->owner, sizeof(c->owner), "2WAY %.50s", c->name);
	rc = tl1_found_circuit(s, c, err);
	if (rc == 0 && back.in != back.out) {
		c->xc = back;
		rc = tl1_found_circuit(s, c, err);
	}
	return rc;
}

static int read_circuit(struct tl1_switch *s, char *line, struct err *err)
{
	const struct calient *d = (struct calient *)s;
	struct tl1_circuit c = { 0 };
	char src[ADDRESS_MAX], dst[ADDRESS_MAX], type[8];
	const char *p = src, *q = dst;
	int in, out;

	tl1_value(line, "SRCPORT", src, sizeof(src));
	tl1_value(line, "DSTPORT", dst, sizeof(dst));
	tl1_value(line, "CONNTYPE", type, sizeof(type));
	if (!take_port(d, &p, &in) || *p || !take_port(d, &q, &out) || *q ||
	    !tl1_value(line, "CONNNAME", c.name, sizeof(c.name))) {
		return parse_unexpected(line, "SRCPORT, DSTPORT and CONNNAME", err);
	}
	c.xc = (struct optics_xc){ in, out };
	read_state(line, &c);
	if (strcmp(type, "2WAY") == 0) {
		return found_bidirectional(s, &c, err);
	}
	tl1_value(line, "GRPNAME", c.owner, sizeof(c.owner));
	if (strcmp(c.owner, s->extra) == 0 || strcmp(c.owner, DEFAULT_GROUP) == 0) {
		c.owner[0] = '\0';
	}
	return tl1_found_circuit(s, &c, err);
}

/* `1.1.1:ALIAS=NONE,INPWR=-3.210,OUTPWR=NONE,CONNNAME1=...`. */
static int read_power(struct tl1_switch *s, char *line, struct err *err)
{
	const char *p = line;
	int index, rc;

	if (!take_port((struct calient *)s, &p, &index) || *p != ':') {
		return parse_unexpected(line, "PORT:...,INPWR=,OUTPWR=", err);
	}
	rc = tl1_note_power(s, line, "INPWR", false, index, err);
	if (rc) {
		return rc;
	}
	return tl1_note_power(s, line, "OUTPWR", true, index, err);
}

static const struct tl1_read reads[] = {
	{ TL1_IDENTITY, ask_device, read_device, NULL, NULL },
	{ TL1_SIZE, ask_ports, read_port, end_ports, NULL },
	{ TL1_MAP, ask_map, read_circuit, NULL, NULL },
	{ TL1_POWER, ask_powers, read_power, NULL, NULL },
	{ 0 },
};

/* ---- what is commanded ---------------------------------------------------- */

static void add_command(const struct calient *d, int step, const char *src, const char *dst,
			const char *name, struct tl1_command *cmd)
{
	char aid[64], tail[TL1_PART_MAX];

	snprintf(aid, sizeof(aid), "%s,%s", src, dst);
	if (step == 0) {
		snprintf(tail, sizeof(tail), "::%s,1WAY", d->s.extra);
		tl1_command(cmd, "ENT-CRS", aid, tail);
	} else {
		snprintf(tail, sizeof(tail), "::%.100s,%s", name, d->s.extra);
		tl1_command(cmd, "ACT-CRS", aid, tail);
	}
}

/* The name that it has, or will get. */
static void put_name(const struct tl1_switch *s, const struct tl1_circuit *c,
		     char *text, size_t size)
{
	const struct calient *d = (const struct calient *)s;
	char src[ADDRESS_MAX], dst[ADDRESS_MAX];

	put_port(d, c->xc.in, src, sizeof(src));
	put_port(d, c->xc.out, dst, sizeof(dst));
	if (c->name[0]) {
		snprintf(text, size, "%s", c->name);
	} else {
		snprintf(text, size, "%s>%s", src, dst);
	}
}

static bool make_command(const struct tl1_switch *s, enum drv_op op, int step,
			 const struct tl1_circuit *c, struct tl1_command *cmd)
{
	const struct calient *d = (const struct calient *)s;
	char src[ADDRESS_MAX], dst[ADDRESS_MAX], name[TL1_PART_MAX], tail[TL1_PART_MAX + 2];

	put_port(d, c->xc.in, src, sizeof(src));
	put_port(d, c->xc.out, dst, sizeof(dst));
	put_name(s, c, name, sizeof(name));
	if (op == DRV_ADD) {
		add_command(d, step, src, dst, name, cmd);
	} else {
		snprintf(tail, sizeof(tail), "::%s", name);
		tl1_command(cmd, step == 0 ? "CANC-CRS" : "DLT-CRS", NULL, tail);
	}
	return step < 2;
}

static enum tl1_progress progress(const char *line)
{
	if (strstr(line, "progress")) {
		return TL1_UNDER_WAY;
	}
	if (strstr(line, "Completed")) {
		return TL1_COMPLETED;
	}
	return strstr(line, "ailed") ? TL1_FAILED : TL1_NO_WORD;
}

static const struct tl1_bulk bulk = {
	.enter = "ENT-CRS-BULK",
	.end = "DLT-CRS-BULK",
	.between = '&',
	.name = put_name,
	.end_all = "DLT-CRS-ALL",
	.ask = "RTRV-SAVERECALL",
	.progress = progress,
};

static int parse_options(struct tl1_switch *s, const struct drv_config *cfg, struct err *err)
{
	const struct drv_class *cls = s->h.drv.cls;
	int rc = tl1_text_option(cls, cfg, "group", s->extra, sizeof(s->extra), err);

	if (rc) {
		return rc;
	}
	return base_option_choice(cls, cfg, "power", "yes", "no", &s->want_power, err);
}

static void forget_ports(struct tl1_switch *s)
{
	vec_fini(&((struct calient *)s)->ports);
}

static const struct tl1_dialect dialect = {
	.init = parse_options,
	.fini = forget_ports,
	.begin_size = begin_ports,
	.vendor = "CALIENT",
	.password = PASSWORD,
	.verify = true,
	.settles = true,
	.losses_from_power = true,
	.bulk = &bulk,
	.typ_switch_us = TYP_SWITCH_US,
	.reads = reads,
	.command = make_command,
	.port = reported_port,
};

const struct drv_class drv_calient_tl1 = {
	.name = "calient-tl1",
	.summary = "CALIENT switches, TL1 over TCP",
	.kind = DRV_SPACE,
	.options = options,
	BASE_CLASS(struct calient, &tl1_ops),
	.dialect = &dialect,
	.explain = tl1_switch_explain,
};
