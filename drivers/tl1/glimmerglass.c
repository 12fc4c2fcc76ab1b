/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `glimmerglass-tl1`: Glimmerglass switches over TL1 on TCP. Inputs are
 * 10001.., outputs 20001... The device knows locks of circuits with their
 * owners, and measures the loss of each. Its attributes come on one line or one
 * a line. Ports beyond the licensed matrix, such as those of multicast (PORTCAT=ref),
 * are not the fabric's.
 *
 * Reconstructed: how the size is written (LicensedPortMatrix=NxM), that
 * CONNSTATE values other than steady and fault mean work in progress, and that
 * powers of outputs are reported with those of inputs.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "drivers/core/parse.h"
#include "drivers/core/driver_base.h"
#include "drivers/tl1/tl1_private.h"

#define PASSWORD "admin"
#define TYP_SWITCH_US 25000
#define IN_BASE 10000
#define OUT_BASE 20000

static const struct drv_option_spec options[] = {
	TL1_OPTIONS("admin", PASSWORD, "80"),
	TL1_VERIFY_OPTIONS,
	{ "opmode", "when a connect is answered: sync or async", "sync" },
	{ "power", "read the power of ports without a circuit too: yes or no",
	  "no" },
	{ NULL, NULL, NULL },
};

/* ---- what is asked -------------------------------------------------------- */

static void ask_system(const struct tl1_switch *s, struct tl1_command *c)
{
	(void)s;
	tl1_command(c, "rtrv-system-info", NULL, NULL);
}

static void ask_map(const struct tl1_switch *s, struct tl1_command *c)
{
	(void)s;
	tl1_command(c, "rtrv-crs-fiber", "all", NULL);
}

static void ask_ports(const struct tl1_switch *s, struct tl1_command *c)
{
	(void)s;
	tl1_command(c, "rtrv-cfg-fiber", "all", NULL);
}

static void ask_powers(const struct tl1_switch *s, struct tl1_command *c)
{
	(void)s;
	tl1_command(c, "rtrv-port-power", "all", NULL);
}

static bool reported_port(const struct tl1_switch *s, const char *text, bool *is_out, int *index)
{
	int base = IN_BASE;

	*is_out = false;
	if (!parse_number(&text, IN_BASE + 1, IN_BASE + s->h.n_in, ':', index)) {
		*is_out = true;
		base = OUT_BASE;
		if (!parse_number(&text, OUT_BASE + 1, OUT_BASE + s->h.n_out, ':', index)) {
			return false;
		}
	}
	*index -= base + 1;
	return true;
}

/* ---- what is answered ----------------------------------------------------- */

/* What NAME=10003 of a line is about. */
enum port_place { PORT_UNREAD, PORT_NONE, PORT_INSIDE, PORT_BEYOND };

/* Inside the matrix index is its number from 0, beyond it the device's. */
static enum port_place port_value(const char *line, const char *name, int base, int n, int *index)
{
	char value[16];
	const char *p = value;

	if (!tl1_value(line, name, value, sizeof(value)) ||
	    !parse_number(&p, 0, 99999, '\0', index) || *p) {
		return PORT_UNREAD;
	}
	if (*index == 0) {
		return PORT_NONE;
	}
	if (*index <= base || *index > base + n) {
		return PORT_BEYOND;
	}
	*index -= base + 1;
	return PORT_INSIDE;
}

/* A port that the device has and a user may not connect. */
static int disable(struct tl1_switch *s, bool is_out, int index, struct err *err)
{
	struct drv_port *port = s->h.op == BASE_SNAPSHOT ? base_port(&s->h, is_out, index, err)
		: NULL;

	if (!port) {
		return s->h.op == BASE_SNAPSHOT ? err->code : 0;
	}
	port->enabled = false;
	return 0;
}

static void note_port(struct tl1_switch *s, int number)
{
	base_note(&s->h, "port %d is beyond the licensed matrix and is passed over", number);
}

static void identify(struct tl1_switch *s, const char *line)
{
	static const char *const names[] = { "SystemType", "ChassisType",
					     "SerialNumber",
					     "SoftwareActiveVersion" };
	char value[48];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (tl1_value(line, names[i], value, sizeof(value))) {
			base_identify(&s->h, value);
		}
	}
}

static int read_system(struct tl1_switch *s, char *line, struct err *err)
{
	char value[32];
	const char *p = value;
	int n_in, n_out;

	if (s->h.op == BASE_SNAPSHOT) {
		identify(s, line);
	}
	if (!tl1_value(line, "LicensedPortMatrix", value, sizeof(value)) ||
	    !parse_number(&p, 1, 9999, 'x', &n_in) ||
	    !parse_number(&p, 1, 9999, '\0', &n_out) || *p) {
		return parse_unexpected(line, "LicensedPortMatrix=NxM", err);
	}
	return base_check_size(&s->h, n_in, n_out, err);
}

static void read_lock(const struct tl1_switch *s, const char *line, struct tl1_circuit *c)
{
	char value[8];

	tl1_value(line, "CONNLOCKUSER", c->owner, sizeof(c->owner));
	c->locked = tl1_value(line, "CONNLOCK", value, sizeof(value)) &&
		    strcmp(value, "1") == 0 && strcmp(c->owner, s->user) != 0;
	if (c->locked && !c->owner[0]) {
		snprintf(c->owner, sizeof(c->owner), "an unnamed user");
	}
}

static void read_state(const char *line, struct tl1_circuit *c)
{
	char state[16], cause[40], loss[16];

	tl1_value(line, "CONNSTATE", state, sizeof(state));
	tl1_value(line, "CONNCAUSE", cause, sizeof(cause));
	c->state = strcmp(state, "steady") == 0 ? DRV_TUNED :
		   strcmp(state, "fault") == 0 ? DRV_FAILED : DRV_TUNING;
	if (c->state == DRV_FAILED) {
		snprintf(c->trouble, sizeof(c->trouble), "fault: %s", cause);
	}
	c->has_loss = tl1_value(line, "PWRLOSS", loss, sizeof(loss)) &&
		      parse_milli(loss, &c->loss_mdb);
}

/* A circuit with one end at a port that is not the fabric's: the other end is in
 * use all the same. */
static int pass_over(struct tl1_switch *s, enum port_place from, int in, enum port_place to,
		     int out,
		     struct err *err)
{
	base_note(&s->h,
		  "the circuit %d-%d has an end beyond the licensed matrix and is passed over",
		  from == PORT_INSIDE ? IN_BASE + 1 + in : in,
		  to == PORT_INSIDE ? OUT_BASE + 1 + out : out);
	if (from == PORT_INSIDE) {
		return disable(s, false, in, err);
	}
	return to == PORT_INSIDE ? disable(s, true, out, err) : 0;
}

/* Ports without a circuit have lines as well. */
static int read_circuit(struct tl1_switch *s, char *line, struct err *err)
{
	struct tl1_circuit c = { 0 };
	int in, out, rc;
	enum port_place from = port_value(line, "IPORTID", IN_BASE, s->h.n_in, &in);
	enum port_place to = port_value(line, "OPORTID", OUT_BASE, s->h.n_out, &out);

	if (from == PORT_UNREAD || to == PORT_UNREAD) {
		return parse_unexpected(line, "IPORTID and OPORTID", err);
	}
	if (from == PORT_NONE || to == PORT_NONE) {
		return 0;
	}
	if (from == PORT_BEYOND || to == PORT_BEYOND) {
		return pass_over(s, from, in, to, out, err);
	}
	c.xc = (struct optics_xc){ in, out };
	read_lock(s, line, &c);
	read_state(line, &c);
	rc = tl1_note_power(s, line, "INPWR", false, in, err);
	if (rc == 0) {
		rc = tl1_note_power(s, line, "OUTPWR", true, out, err);
	}
	if (rc) {
		return rc;
	}
	return tl1_found_circuit(s, &c, err);
}

static enum port_place any_port(const struct tl1_switch *s, const char *line, bool *is_out,
				int *index)
{
	enum port_place place = port_value(line, "PORTID", IN_BASE, s->h.n_in, index);

	*is_out = place == PORT_BEYOND && *index > OUT_BASE;
	return *is_out ? port_value(line, "PORTID", OUT_BASE, s->h.n_out, index) : place;
}

/* Of ports without a circuit too. */
static int read_power(struct tl1_switch *s, char *line, struct err *err)
{
	bool is_out;
	int index;
	enum port_place place = any_port(s, line, &is_out, &index);

	if (place == PORT_BEYOND) {
		note_port(s, index);
		return 0;
	}
	return place == PORT_INSIDE ? tl1_note_power(s, line, "PORTPOWER", is_out, index, err) :
	       parse_unexpected(line, "PORTID", err);
}

/* Not for circuits: privileges of no user, or reserved for the switch's own use. */
static bool is_unusable(const char *line)
{
	char value[16], *end;

	if (tl1_value(line, "PORTCAT", value, sizeof(value)) && strcasecmp(value, "ref") == 0) {
		return true;
	}
	return tl1_value(line, "PORTPRIV", value, sizeof(value)) &&
	       strtoul(value, &end, 0) == 0 && end > value && *end == '\0';
}

static int read_port(struct tl1_switch *s, char *line, struct err *err)
{
	char health[8];
	struct drv_port *port;
	bool is_out;
	int index, rc;
	enum port_place place = any_port(s, line, &is_out, &index);

	if (place == PORT_BEYOND) {
		note_port(s, index);
		return 0;
	}
	if (place != PORT_INSIDE) {
		return parse_unexpected(line, "PORTID", err);
	}
	if (is_unusable(line)) {
		rc = disable(s, is_out, index, err);
		if (rc) {
			return rc;
		}
	}
	if (!tl1_value(line, "PORTHEALTH", health, sizeof(health)) ||
	    strcasecmp(health, "bad") != 0) {
		return 0;
	}
	port = base_port(&s->h, is_out, index, err);
	if (!port) {
		return WEFT_EVERIFY;
	}
	port->failed = true;
	return 0;
}

static const struct tl1_read reads[] = {
	{ TL1_SIZE, ask_system, read_system, NULL, "" },
	{ TL1_MAP, ask_map, read_circuit, NULL, "IPORTID" },
	{ TL1_PORTS, ask_ports, read_port, NULL, "PORTID" },
	{ TL1_POWER, ask_powers, read_power, NULL, "PORTID" },
	{ 0 },
};

/* ---- what is commanded ---------------------------------------------------- */

static bool make_command(const struct tl1_switch *s, enum drv_op op, int step,
			 const struct tl1_circuit *c, struct tl1_command *cmd)
{
	char aid[32], tail[DRV_NAME_MAX + 16];

	if (op == DRV_ADD) {
		snprintf(aid, sizeof(aid), "%d,%d", IN_BASE + 1 + c->xc.in,
			 OUT_BASE + 1 + c->xc.out);
		snprintf(tail, sizeof(tail), ":::opmode=%s", s->extra);
		tl1_command(cmd, "ent-crs-fiber", aid, tail);
	} else {
		snprintf(aid, sizeof(aid), "%d", IN_BASE + 1 + c->xc.in);
		tl1_command(cmd, "dlt-crs-fiber", aid, NULL);
	}
	return step == 0;
}

static int parse_options(struct tl1_switch *s, const struct drv_config *cfg, struct err *err)
{
	bool sync;
	int rc = base_option_choice(s->h.drv.cls, cfg, "opmode", "sync", "async", &sync, err);

	snprintf(s->extra, sizeof(s->extra), "%s", sync ? "sync" : "async");
	if (rc) {
		return rc;
	}
	return base_option_choice(s->h.drv.cls, cfg, "power", "yes", "no", &s->want_power, err);
}

static const struct tl1_dialect dialect = {
	.init = parse_options,
	.vendor = "Glimmerglass",
	.password = PASSWORD,
	.verify = true,
	.settles = true,
	.typ_switch_us = TYP_SWITCH_US,
	.reads = reads,
	.command = make_command,
	.port = reported_port,
};

const struct drv_class drv_glimmerglass_tl1 = {
	.name = "glimmerglass-tl1",
	.summary = "Glimmerglass switches, TL1 over TCP",
	.kind = DRV_SPACE,
	.options = options,
	BASE_CLASS(struct tl1_switch, &tl1_ops),
	.dialect = &dialect,
	.explain = tl1_switch_explain,
};
