/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `polatis-tl1`: HUBER+SUHNER Polatis switches over TL1 on TCP. Ingress
 * ports are 1..N, egress ports N+1..N+M; any-to-any models have ports 1..N.
 *
 * What RTRV-EQPT says of the size of an any-to-any model is not known, so it is
 * taken from the model's name, as over SCPI. Reconstructed: that the lower
 * port comes first in a patch.
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "drivers/core/parse.h"
#include "drivers/core/driver_base.h"
#include "drivers/scpi/scpi.h"
#include "drivers/tl1/tl1_private.h"

#define PASSWORD "root"
#define TYP_SWITCH_US 42000

static const struct drv_option_spec options[] = {
	TL1_OPTIONS("root", PASSWORD, "0"),
	TL1_VERIFY_OPTIONS,
	{ "power", "read the power monitors: yes or no", "no" },
	MONITOR_OPTIONS,
	{ NULL, NULL, NULL },
};

static int wire_in(struct optics_xc xc)
{
	return xc.in + 1;
}

/* What the numbers of egress ports begin after. */
static int out_base(const struct tl1_switch *s)
{
	return s->h.any_to_any ? 0 : s->h.n_in;
}

static int wire_out(const struct tl1_switch *s, struct optics_xc xc)
{
	return out_base(s) + xc.out + 1;
}

/* `p:` of a line about a port; moves *p behind it. */
static bool take_port(const struct tl1_switch *s, const char **p, bool *is_out, int *index)
{
	int n_in = s->h.n_in;

	if (!parse_number(p, 1, out_base(s) + s->h.n_out, ':', index)) {
		return false;
	}
	*is_out = *index > n_in;
	*index -= *is_out ? n_in + 1 : 1;
	return true;
}

static bool reported_port(const struct tl1_switch *s, const char *text, bool *is_out, int *index)
{
	return take_port(s, &text, is_out, index);
}

/* ---- what is asked -------------------------------------------------------- */

static void ask_type(const struct tl1_switch *s, struct tl1_command *c)
{
	(void)s;
	tl1_command(c, "RTRV-NETYPE", NULL, ":");
}

static void ask_inventory(const struct tl1_switch *s, struct tl1_command *c)
{
	(void)s;
	tl1_command(c, "RTRV-INV", "OCS", ":");
}

static void ask_size(const struct tl1_switch *s, struct tl1_command *c)
{
	if (s->h.any_to_any) {
		ask_type(s, c);
	} else {
		tl1_command(c, "RTRV-EQPT", "SYSTEM", ":::PARAMETER=SIZE");
	}
}

static void ask_map(const struct tl1_switch *s, struct tl1_command *c)
{
	(void)s;
	tl1_command(c, "RTRV-PATCH", NULL, ":");
}

static void ask_about_ports(const struct tl1_switch *s, const char *verb, struct tl1_command *c)
{
	char aid[32];

	snprintf(aid, sizeof(aid), "1&&%d", out_base(s) + s->h.n_out);
	tl1_command(c, verb, aid, ":");
}

static void ask_shutters(const struct tl1_switch *s, struct tl1_command *c)
{
	ask_about_ports(s, "RTRV-PORT-SHUTTER", c);
}

static void ask_powers(const struct tl1_switch *s, struct tl1_command *c)
{
	ask_about_ports(s, "RTRV-PORT-POWER", c);
}

/* ---- what is answered ----------------------------------------------------- */

static int read_inventory(struct tl1_switch *s, char *line, struct err *err)
{
	(void)err;
	base_identify(&s->h, line);
	return 0;
}

/* `Polatis,N-VST-32xCC-LU1-DMHNV,OCS,6.7.3.9`: what the model's name says. */
static int check_model(const struct tl1_switch *s, const char *line, bool must_say, struct err *err)
{
	int n_in, n_out;
	bool any;
	int rc = scpi_parse_identity(line, &n_in, &n_out, &any, err);

	if (rc) {
		return must_say ? rc : 0;
	}
	if (any != s->h.any_to_any) {
		return err_set(err, WEFT_EVERIFY, "the device is %san "
			       "any-to-any model, the fabric says it is%s",
			       any ? "" : "not ", any ? " not" : "");
	}
	return any ? base_check_size(&s->h, n_in, n_in, err) : 0;
}

static int read_type(struct tl1_switch *s, char *line, struct err *err)
{
	base_identify(&s->h, line);
	return check_model(s, line, s->h.any_to_any, err);
}

/* `SYSTEM:SIZE=16x16`. */
static int read_size(struct tl1_switch *s, char *line, struct err *err)
{
	char value[32];
	const char *p = value;
	int n_in, n_out;

	if (s->h.any_to_any) {
		return check_model(s, line, true, err);
	}
	if (!tl1_value(line, "SIZE", value, sizeof(value)) ||
	    !parse_number(&p, 1, 99999, 'x', &n_in) ||
	    !parse_number(&p, 1, 99999, '\0', &n_out) || *p) {
		return parse_unexpected(line, "SYSTEM:SIZE=NxM", err);
	}
	return base_check_size(&s->h, n_in, n_out, err);
}

/* In place. */
static char *without_blanks(char *line)
{
	char *to = line;

	for (const char *s = line; *s; s++) {
		if (*s != ' ' && *s != '\t') {
			*to++ = *s;
		}
	}
	*to = '\0';
	return line;
}

/* `1,17`. An any-to-any switch may list a patch from both its ends. */
static int read_circuit(struct tl1_switch *s, char *line, struct err *err)
{
	struct tl1_circuit c = { .state = DRV_TUNED };
	const char *p = without_blanks(line);
	int in, out, n = out_base(s);
	bool any = s->h.any_to_any;

	if (!parse_number(&p, 1, s->h.n_in, ',', &in) ||
	    !parse_number(&p, n + 1, n + s->h.n_out, '\0', &out) || *p) {
		return parse_unexpected(line, "a pair of ports", err);
	}
	c.xc = any && out < in ? (struct optics_xc){ out - 1, in - 1 } :
				 (struct optics_xc){ in - 1, out - 1 - n };
	return any && xc_map_has(&s->map, c.xc) ? 0 : tl1_found_circuit(s, &c, err);
}

/* `3:OPEN`; the word for a port that failed is reconstructed. */
static int read_shutter(struct tl1_switch *s, char *line, struct err *err)
{
	const char *p = without_blanks(line);
	struct drv_port *port;
	bool is_out, failed;
	int index;

	if (!take_port(s, &p, &is_out, &index)) {
		return parse_unexpected(line, "PORT:OPEN or PORT:CLOSED", err);
	}
	if (strcasecmp(p, "OPEN") == 0) {
		return 0;
	}
	failed = strncasecmp(p, "FAIL", 4) == 0;
	if (!failed && strncasecmp(p, "CLOSE", 5) != 0) {
		return parse_unexpected(line, "PORT:OPEN or PORT:CLOSED", err);
	}
	port = base_port(&s->h, is_out, index, err);
	if (!port) {
		return WEFT_EVERIFY;
	}
	port->failed = failed;
	port->enabled = failed;
	return 0;
}

/* `3:-12.34`. */
static int read_power(struct tl1_switch *s, char *line, struct err *err)
{
	const char *p = without_blanks(line);
	struct drv_port *port;
	int32_t mdbm;
	bool is_out;
	int index;

	if (!take_port(s, &p, &is_out, &index) || !parse_milli(p, &mdbm)) {
		return parse_unexpected(line, "PORT:POWER", err);
	}
	port = base_port(&s->h, is_out, index, err);
	if (!port) {
		return WEFT_EVERIFY;
	}
	port->has_power = true;
	port->power_mdbm = mdbm;
	return 0;
}

static const struct tl1_read reads[] = {
	{ TL1_IDENTITY, ask_type, read_type, NULL, NULL },
	{ TL1_IDENTITY, ask_inventory, read_inventory, NULL, NULL },
	{ TL1_SIZE, ask_size, read_size, NULL, NULL },
	{ TL1_MAP, ask_map, read_circuit, NULL, NULL },
	{ TL1_PORTS, ask_shutters, read_shutter, NULL, NULL },
	{ TL1_POWER, ask_powers, read_power, NULL, NULL },
	{ 0 },
};

/* ---- what is commanded ---------------------------------------------------- */

static bool make_command(const struct tl1_switch *s, enum drv_op op, int step,
			 const struct tl1_circuit *c, struct tl1_command *cmd)
{
	char aid[32];

	if (op == DRV_ADD) {
		snprintf(aid, sizeof(aid), "%d,%d", wire_in(c->xc), wire_out(s, c->xc));
		tl1_command(cmd, "ENT-PATCH", aid, ":");
	} else {
		snprintf(aid, sizeof(aid), "%d", wire_in(c->xc));
		tl1_command(cmd, "DLT-PATCH", aid, ":");
	}
	return step == 0;
}

/* A shutter is operated, which closes it, or released. */
static void port_command(const struct tl1_switch *s, struct drv_port_id port,
			 bool enable, struct tl1_command *cmd)
{
	char aid[32];

	snprintf(aid, sizeof(aid), "%d", port.index + 1 + (port.is_out ? out_base(s) : 0));
	tl1_command(cmd, enable ? "RLS-PORT-SHUTTER" : "OPR-PORT-SHUTTER", aid, ":");
}

static int parse_power(struct tl1_switch *s, const struct drv_config *cfg, struct err *err)
{
	return base_option_choice(s->h.drv.cls, cfg, "power", "yes", "no", &s->want_power, err);
}

static const struct tl1_dialect dialect = {
	.init = parse_power,
	.vendor = "Polatis",
	.password = PASSWORD,
	.any_to_any = true,
	.verify = true,
	.losses_from_power = true,
	.typ_switch_us = TYP_SWITCH_US,
	.reads = reads,
	.command = make_command,
	.port_command = port_command,
	.port = reported_port,
};

const struct drv_class drv_polatis_tl1 = {
	.name = "polatis-tl1",
	.summary = "HUBER+SUHNER Polatis switches, TL1 over TCP",
	.kind = DRV_SPACE,
	.options = options,
	BASE_CLASS(struct tl1_switch, &tl1_ops),
	.dialect = &dialect,
	.explain = tl1_switch_explain,
	.port_set = base_port_set,
};
