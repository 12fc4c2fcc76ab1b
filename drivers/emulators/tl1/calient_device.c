/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The device side of CALIENT's TL1 dialect: eight ports a slot, eight slots
 * a shelf, each port with an input and an output. Reconstructed: the state
 * of a circuit that is not active (OS=OOS), INOC and OUTOC of a port that
 * failed, the codes of denials, the `&` in the list of a bulk, what stands
 * around the words of RTRV-SAVERECALL, and that a bulk puts circuits in the
 * group that others are in.
 */
#include "drivers/emulators/core/fibre_plant.h"
#include "drivers/emulators/tl1/tl1_device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/core/parse.h"
#include "lib/base/alloc.h"

#define PAGE_LINES 16

static const char *device(struct tl1_device *d)
{
	tl1_put_line(d, "%s:SERIALNUMBER=%s,SWPACKAGE=6.0-3,STATUS=OK,"
		"CHASSISTYPE=S%d,PLATFORM=VERSION2", d->e->conf.name,
		d->e->conf.name, d->e->mem.n_in);
	return NULL;
}

/* The address of a port: its number; CHASSIS.BLADE.PORT, where a blade has two
 * halves; or SHELF.SLOT.PORT, each from 1. */
static void put_port(const struct emu *e, int index, char *text, size_t size)
{
	if (emu_form_is(e, "flat")) {
		snprintf(text, size, "%d", index + 1);
		return;
	}
	if (emu_form_is(e, "blades")) {
		snprintf(text, size, "10.%d%c.%d", 9 + index / 4, 'a' + index / 2 % 2,
			 index % 2 + 1);
		return;
	}
	snprintf(text, size, "%d.%d.%d", index / 64 + 1, index / 8 % 8 + 1, index % 8 + 1);
}

/* The same back, up to the mark `end`; any port of 64 shelves. */
static bool take_port(const struct emu *e, const char **p, char end, int *index)
{
	int shelf, slot, port;
	char half = 'a';

	if (emu_form_is(e, "flat")) {
		bool is_port = parse_number(p, 1, e->mem.n_in, end, index);

		--*index;
		return is_port;
	}
	if (emu_form_is(e, "blades")) {
		if (!parse_number(p, 10, 10, '.', &shelf) || !parse_number(p, 9, 99, '\0', &slot) ||
		    !(half = **p) || !strchr("ab", half) || *++*p != '.' ||
		    (++*p, !parse_number(p, 1, 2, end, &port))) {
			return false;
		}
		*index = (slot - 9) * 4 + (half == 'b') * 2 + port - 1;
		return true;
	}
	if (!parse_number(p, 1, 64, '.', &shelf) || !parse_number(p, 1, 8, '.', &slot) ||
	    !parse_number(p, 1, 8, end, &port)) {
		return false;
	}
	*index = (shelf - 1) * 64 + (slot - 1) * 8 + port - 1;
	return true;
}

static const char *health(struct tl1_device *d, bool exists, int flat)
{
	return exists && faults_hold_port(&d->e->faults, FAULT_PORT_FAILED, flat) ? "FAIL" : "OK";
}

static const char *admin(struct tl1_device *d, bool exists, int flat)
{
	return exists && faults_hold_port(&d->e->faults, FAULT_PORT_DISABLED,
					  flat) ? "OOS-MA" : "UMA";
}

static const char *ports(struct tl1_device *d)
{
	const struct xc_map *m = &d->e->mem;
	int n = m->n_in > m->n_out ? m->n_in : m->n_out;
	char text[24];

	for (int i = 0; i < n; i++) {
		bool in = i < m->n_in, out = i < m->n_out;
		int egress = m->n_in + i;

		put_port(d->e, i, text, sizeof(text));
		tl1_put_line(d, "%s:WX,NONE,NONE:INAS=%s,INOS=RDY,INOC=%s,INRS=PR,"
			"OUTAS=%s,OUTOS=RDY,OUTOC=%s,OUTRS=PR", text,
			admin(d, in, i), health(d, in, i),
			admin(d, out, egress), health(d, out, egress));
	}
	return NULL;
}

/* A power in dBm, or NONE where there is no light. */
static const char *power(struct tl1_device *d, bool exists, int flat, char *text, size_t size)
{
	int32_t mdbm = exists ? plant_port_mdbm(d->e, flat) : PLANT_DARK_MDBM;

	if (mdbm <= PLANT_DARK_MDBM) {
		return "NONE";
	}
	snprintf(text, size, "%.3f", mdbm / 1000.0);
	return text;
}

static const char *port_sums(struct tl1_device *d)
{
	const struct xc_map *m = &d->e->mem;
	int n = m->n_in > m->n_out ? m->n_in : m->n_out;
	char text[24], in[16], out[16];

	for (int i = 0; i < n; i++) {
		put_port(d->e, i, text, sizeof(text));
		tl1_put_line(d, "%s:ALIAS=NONE,INPWR=%s,OUTPWR=%s,CONNNAME1=NONE,"
			"CONNSTATE1=NONE,CONNNAME2=NONE,CONNSTATE2=NONE", text,
			power(d, i < m->n_in, i, in, sizeof(in)),
			power(d, i < m->n_out, m->n_in + i, out, sizeof(out)));
	}
	return NULL;
}

/* A circuit is named by its ports, SRC>DST, as the driver names it. One that
 * is entered and not active moves no light. */
static void put_circuit(struct tl1_device *d, struct optics_xc xc, bool active)
{
	bool failed = active && emu_holds_xc(d->e, FAULT_CONN_FAILED, xc);
	char src[24], dst[24];

	put_port(d->e, xc.in, src, sizeof(src));
	put_port(d->e, xc.out, dst, sizeof(dst));
	tl1_put_line(d, "%s>%s:SRCPORT=%s,DSTPORT=%s,GRPNAME=WEFT,CONNNAME=%s>%s,"
		"CONNTYPE=1WAY,AS=%s,OS=%s,OC=%s,PS=UPR,AL=CL%s", src, dst, src,
		dst, src, dst, emu_form_is(d->e, "blades") ? "IS" : "UMA",
		!active ? "OOS" : emu_form_is(d->e, "blades") ? "IS" : "RDY",
		failed ? "FAIL" : "OK", emu_form_is(d->e, "blades") ? ",MATRIXUSED=31.1" : "");
}

static const char *map(struct tl1_device *d)
{
	const struct xc_map *m = &d->e->mem;
	struct optics_xc xc;

	for (int i = 0; i < m->n_in; i++) {
		if (xc_map_of(m, i, &xc)) {
			put_circuit(d, xc, true);
		}
	}
	for (size_t i = 0; i < d->n_entered; i++) {
		/* One that is being cancelled is active until that is done. */
		if (!xc_map_has(m, d->entered[i])) {
			put_circuit(d, d->entered[i], false);
		}
	}
	return NULL;
}

static int find_entered(const struct tl1_device *d, struct optics_xc xc)
{
	for (size_t i = 0; i < d->n_entered; i++) {
		if (optics_xc_cmp(&d->entered[i], &xc) == 0) {
			return (int)i;
		}
	}
	return -1;
}

static void forget_entered(struct tl1_device *d, int at)
{
	d->entered[at] = d->entered[--d->n_entered];
}

static bool take_pair(const struct tl1_device *d, const char *text, char mark, struct optics_xc *xc)
{
	const char *p = text;
	int in, out;

	if (!take_port(d->e, &p, mark, &in) || !take_port(d->e, &p, '\0', &out)) {
		return false;
	}
	*xc = (struct optics_xc){ in, out };
	return (*p == '\0' || *p == ',') && xc_map_check(&d->e->mem, *xc, NULL) == 0;
}

/* `:GROUP,..` or `:NAME,..`: the name of a circuit is made of its ports. */
static bool take_name(const struct tl1_device *d, struct optics_xc *xc)
{
	return take_pair(d, d->request.payload, '>', xc);
}

/* First phase: the circuit holds its ports, and no mirror moves. */
static const char *enter(struct tl1_device *d)
{
	struct optics_xc xc;
	const char *code;

	if (!take_pair(d, d->request.aid, ',', &xc)) {
		return tl1_deny(d, "IIAC", "");
	}
	code = tl1_obstacle(d, xc);
	for (size_t i = 0; !code && i < d->n_entered; i++) {
		if (d->entered[i].in == xc.in || d->entered[i].out == xc.out) {
			code = tl1_deny(d, "SARB", "port is in use");
		}
	}
	if (!code && d->n_entered == (size_t)d->e->mem.n_ports) {
		code = tl1_deny(d, "SSRE", "");
	}
	if (!code) {
		d->entered[d->n_entered++] = xc;
	}
	return code;
}

/* Second phase: the mirrors move. A fault may accept the command and leave the
 * circuit as it is. */
static const char *activate(struct tl1_device *d)
{
	struct optics_xc xc;
	const char *code;
	int at;

	if (!take_name(d, &xc)) {
		return tl1_deny(d, "IIAC", "");
	}
	at = find_entered(d, xc);
	if (at < 0) {
		return tl1_deny(d, "SNVS", "no such connection");
	}
	code = tl1_obstacle(d, xc);
	if (!code && !emu_holds_xc(d->e, FAULT_NOT_ACTIVATED, xc)) {
		forget_entered(d, at);
		tl1_connect(d, xc);
	}
	return code;
}

/* Back to the first phase: light ends, the ports stay held until the circuit
 * is deleted. */
static const char *cancel(struct tl1_device *d)
{
	struct xc_map *m = &d->e->mem;
	struct optics_xc xc;

	if (!take_name(d, &xc)) {
		return tl1_deny(d, "IIAC", "");
	}
	if (!xc_map_has(m, xc)) {
		return tl1_deny(d, "SROU", "not active");
	}
	if (d->n_entered == (size_t)m->n_ports) {
		return tl1_deny(d, "SSRE", "");
	}
	xc_map_release(m, xc_map_flat_in(m, xc.in));
	d->entered[d->n_entered++] = xc;
	emu_changed(d->e);
	return NULL;
}

/* An active circuit must be cancelled first. */
static const char *delete(struct tl1_device *d)
{
	struct optics_xc xc;
	int at;

	if (!take_name(d, &xc)) {
		return tl1_deny(d, "IIAC", "");
	}
	at = find_entered(d, xc);
	if (at < 0 && xc_map_has(&d->e->mem, xc)) {
		return tl1_deny(d, "SNVS", "connection is active");
	}
	if (at < 0) {
		return tl1_deny(d, "SROU", "no such connection");
	}
	forget_entered(d, at);
	return NULL;
}

/* ---- many circuits at a time ---------------------------------------------- */

/* One circuit of a bulk: it takes its ports over. False: not made. */
static bool enter_of_bulk(struct tl1_device *d, struct optics_xc xc)
{
	struct xc_map *m = &d->e->mem;
	int at = find_entered(d, xc);

	if (!xc_map_has(m, xc)) {
		xc_map_release(m, xc_map_flat_in(m, xc.in));
		xc_map_release(m, xc_map_flat_out(m, xc.out));
	}
	if (xc_map_has(m, xc)) {
		return true;
	}
	if (tl1_obstacle(d, xc)) {
		return false;
	}
	if (at >= 0) {
		forget_entered(d, at);
	}
	if (!emu_holds_xc(d->e, FAULT_NOT_ACTIVATED, xc)) {
		tl1_connect(d, xc);
	} else if (d->n_entered < (size_t)m->n_ports) {
		d->entered[d->n_entered++] = xc;
	}
	return true;
}

static bool delete_of_bulk(struct tl1_device *d, struct optics_xc xc)
{
	struct xc_map *m = &d->e->mem;
	int at = find_entered(d, xc);

	if (xc_map_has(m, xc)) {
		xc_map_release(m, xc_map_flat_in(m, xc.in));
	} else if (at >= 0) {
		forget_entered(d, at);
	}
	return true;
}

/* `1.1.1>1.1.2&1.1.3>1.1.4`. A list that cannot be read changes nothing. */
static const char *run_bulk(struct tl1_device *d, char *list,
			    bool (*run)(struct tl1_device *, struct optics_xc))
{
	int64_t most = INT64_MAX;
	char *rest = NULL, *copy = x_dup(list);
	struct optics_xc xc;
	bool good = list[0];

	for (char *name = good ? strtok_r(copy, "&", &rest) : NULL;
	     name && good; name = strtok_r(NULL, "&", &rest)) {
		good = take_pair(d, name, '>', &xc);
	}
	free(copy);
	if (!good) {
		return tl1_deny(d, "IIAC", "");
	}
	faults_hold(&d->e->faults, FAULT_HALF, &most);
	d->n_failed = 0;
	for (char *name = strtok_r(list, "&", &rest); name; name = strtok_r(NULL, "&", &rest)) {
		take_pair(d, name, '>', &xc);
		d->n_failed += most-- <= 0 || !run(d, xc);
	}
	emu_changed(d->e);
	return NULL;
}

static const char *enter_bulk(struct tl1_device *d)
{
	return run_bulk(d, d->request.aid, enter_of_bulk);
}

static const char *delete_bulk(struct tl1_device *d)
{
	return run_bulk(d, d->request.aid, delete_of_bulk);
}

static const char *delete_all(struct tl1_device *d)
{
	for (int i = 0; i < d->e->mem.n_in; i++) {
		xc_map_release(&d->e->mem, i);
	}
	d->n_entered = 0;
	d->n_failed = 0;
	emu_changed(d->e);
	return NULL;
}

/* The state of the last bulk command; in progress while its mirrors move. */
static const char *save_recall(struct tl1_device *d)
{
	if (emu_is_completing(d->e)) {
		tl1_put_line(d, "SAVERECALL:STATUS=In progress");
	} else if (d->n_failed) {
		tl1_put_line(d, "SAVERECALL:STATUS=%d connections failed", d->n_failed);
	} else {
		tl1_put_line(d, "SAVERECALL:STATUS=Completed");
	}
	return NULL;
}

/* Entering and deleting move no light. */
static const struct tl1_verb verbs[] = {
	{ "RTRV-NE", false, device },
	{ "RTRV-PORT", false, ports },
	{ "RTRV-CRS", false, map },
	{ "ENT-CRS", false, enter },
	{ "ACT-CRS", true, activate },
	{ "CANC-CRS", true, cancel },
	{ "DLT-CRS", false, delete },
	{ "ENT-CRS-BULK", true, enter_bulk },
	{ "DLT-CRS-BULK", true, delete_bulk },
	{ "DLT-CRS-ALL", true, delete_all },
	{ "RTRV-SAVERECALL", false, save_recall },
	{ "RTRV-PORT-SUM", false, port_sums },
	{ 0 },
};

static void put_address(const struct emu *e, int flat, char *text, size_t size)
{
	put_port(e, flat % e->mem.n_in, text, size);
}

static const struct tl1_vendor vendor = { .prompt = "agent> ",
					  .port = put_address,
					  .page = PAGE_LINES,
					  .verbs = verbs };

static const struct emu_form forms[] = {
	{ .name = "slots" },
	{ .name = "flat" },
	{ .name = "blades", .echo = true },
	{ 0 },
};

const struct emu_dialect emu_calient_tl1 = {
	.name = "calient-tl1",
	.forms = forms,
	TL1_DIALECT(&vendor),
};
