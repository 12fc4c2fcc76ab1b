/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The device side of Glimmerglass' TL1 dialect. Reconstructed: the form of
 * LicensedPortMatrix, the words of denials, the state `initial` of a circuit
 * whose connection timer runs, that sync and async differ in
 * nothing that a client can see here, and that powers of outputs are
 * reported with those of inputs.
 */
#include "drivers/emulators/core/fibre_plant.h"
#include "drivers/emulators/tl1/tl1_device.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "drivers/core/parse.h"
#include "lib/base/clock.h"

/* Port numbers of the dialect: 10001 is the first input, 20001 the first
 * output. */
#define IN_BASE 10000
#define OUT_BASE 20000

static const char *system_info(struct tl1_device *d)
{
	tl1_put_line(d, "GGN:LicensedPortMatrix=%dx%d,SerialNumber=%s,SystemType="
		"System600,ChassisType=Chassis600,SoftwareActiveVersion=7.1",
		d->e->mem.n_in, d->e->mem.n_out, d->e->conf.name);
	return NULL;
}

/* Milli-dBm of the light into an input, and the loss of a path; without a plant
 * by the seed. */
static int power_in(struct tl1_device *d, int in)
{
	return d->e->conf.plant ? plant_port_mdbm(d->e, in) :
	       -(int)(2000 + rng_mix(d->e->conf.seed + (uint64_t)in) % 1000);
}

/* Loss of a path in milli-dB, as its monitors would measure it. */
static int loss(struct tl1_device *d, struct optics_xc xc)
{
	uint64_t pair = ((uint64_t)(uint32_t)xc.in << 32) | (uint32_t)xc.out;

	if (d->e->conf.plant) {
		return power_in(d, xc.in) -
		       plant_port_mdbm(d->e, d->e->mem.n_in + xc.out);
	}
	return (int)(500 + rng_mix(d->e->conf.seed ^ pair) % 1000) +
	       (emu_holds_xc(d->e, FAULT_DIM, xc) ? 3000 : 0);
}

static int power_out(struct tl1_device *d, int out)
{
	const struct xc_map *m = &d->e->mem;
	int in = m->peer[m->n_in + out];

	if (d->e->conf.plant) {
		return plant_port_mdbm(d->e, m->n_in + out);
	}
	return in < 0 ? PLANT_DARK_MDBM :
	       power_in(d, in) - loss(d, (struct optics_xc){ in, out });
}

/* The connection timer of a circuit runs. */
static bool is_initial(struct tl1_device *d, struct optics_xc xc)
{
	int64_t ms, made = d->made_ns[xc.in];

	return made && faults_hold(&d->e->faults, FAULT_COMPLETE, &ms) &&
	       clk_now_ns() < made + ms * 1000000;
}

/* Names that people gave to ports may hold anything but a comma, and that too in
 * quotes. */
static const char *name_of(const struct tl1_device *d, bool out)
{
	if (emu_form_is(d->e, "multicast")) {
		return out ? "\"to rack 7, #4\"" : "from 5530-stack #4";
	}
	return emu_form_is(d->e, "attributes") ? out ? "OUT1" : "IN1" : "";
}

/* An input without a circuit is in the list as well. */
static void put_single(struct tl1_device *d, int in)
{
	tl1_put_line(d, "GGN:IPORTID=%d,IPORTNAME=%s,OPORTID=0,OPORTNAME=,CONNID=0,"
		"CONNSTATE=single,CONNCAUSE=none,INPWR=%.3f,OUTPWR=0.000,"
		"PWRLOSS=0.000,CONNLOCK=0,CONNLOCKUSER=", IN_BASE + 1 + in,
		name_of(d, false), power_in(d, in) / 1000.0);
}

/* One circuit with its state, powers in dBm and loss. A circuit that failed
 * shows -60 dBm at its output, the floor of a monitor. */
static void put_circuit(struct tl1_device *d, struct optics_xc xc, int id)
{
	bool initial = is_initial(d, xc);
	bool failed = !initial && emu_holds_xc(d->e, FAULT_CONN_FAILED, xc);
	bool locked = emu_holds_xc(d->e, FAULT_LOCKED, xc);
	double in = power_in(d, xc.in) / 1000.0, lost = loss(d, xc) / 1000.0;

	tl1_put_line(d, "GGN:IPORTID=%d,IPORTNAME=%s,OPORTID=%d,OPORTNAME=%s,CONNID=%d,"
		"CONNSTATE=%s,CONNCAUSE=%s,INPWR=%.3f,OUTPWR=%.3f,"
		"PWRLOSS=%.3f,CONNLOCK=%d,CONNLOCKUSER=%s",
		IN_BASE + 1 + xc.in, name_of(d, false), OUT_BASE + 1 + xc.out, name_of(d, true), id,
		initial ? "initial" : failed ? "fault" : "steady",
		failed ? "initial_connection_timer_expired" : "none", in,
		failed ? -60.0 : in - lost, failed ? 60.0 + in : lost, locked,
		locked ? "noc" : "");
}

static const char *map(struct tl1_device *d)
{
	const struct xc_map *m = &d->e->mem;
	struct optics_xc xc;

	for (int i = 0; i < m->n_in; i++) {
		if (xc_map_of(m, i, &xc)) {
			put_circuit(d, xc, i);
		} else {
			put_single(d, i);
		}
	}
	if (emu_form_is(d->e, "multicast")) {
		/* An output without a circuit; a circuit between multicast ports. */
		tl1_put_line(d, "GGN:IPORTID=0,IPORTNAME=,OPORTID=%d,OPORTNAME=,CONNID=0,"
			"CONNSTATE=single,CONNCAUSE=none", OUT_BASE + m->n_out);
		tl1_put_line(d, "GGN:IPORTID=%d,IPORTNAME=MC-1-1,OPORTID=%d,OPORTNAME=MC-1,"
			"CONNID=99,CONNSTATE=steady,CONNCAUSE=none", IN_BASE + m->n_in + 3,
			OUT_BASE + m->n_out + 3);
	}
	return NULL;
}

static const char *enter(struct tl1_device *d)
{
	const char *p = d->request.aid, *code;
	struct optics_xc xc;
	int in, out;

	if (!parse_number(&p, IN_BASE + 1, IN_BASE + d->e->mem.n_in, ',', &in) ||
	    !parse_number(&p, OUT_BASE + 1, OUT_BASE + d->e->mem.n_out, '\0',
			  &out) || *p) {
		return tl1_deny(d, "IIAC", "");
	}
	xc = (struct optics_xc){ in - IN_BASE - 1, out - OUT_BASE - 1 };
	code = tl1_obstacle(d, xc);
	if (!code) {
		tl1_connect(d, xc);
	}
	return code;
}

static const char *delete_one(struct tl1_device *d, int in)
{
	struct xc_map *m = &d->e->mem;
	struct optics_xc xc = { in, m->peer[in] - m->n_in };

	if (m->peer[in] < 0) {
		return tl1_deny(d, "SROU", "not connected");
	}
	if (emu_holds_xc(d->e, FAULT_LOCKED, xc)) {
		return tl1_deny(d, "SNVS", "connection is locked by noc");
	}
	xc_map_release(m, in);
	return NULL;
}

/* `all` stops at the first circuit that is locked by another user; those
 * before it have ended. */
static const char *delete(struct tl1_device *d)
{
	const struct xc_map *m = &d->e->mem;
	const char *p = d->request.aid, *code = NULL;
	int in;

	if (strcasecmp(p, "all") == 0) {
		for (int i = 0; !code && i < m->n_in; i++) {
			code = m->peer[i] < 0 ? NULL : delete_one(d, i);
		}
	} else if (!parse_number(&p, IN_BASE + 1, IN_BASE + m->n_in, '\0', &in) ||
		   *p) {
		return tl1_deny(d, "IIAC", "");
	} else {
		code = delete_one(d, in - IN_BASE - 1);
	}
	emu_changed(d->e);
	return code;
}

static void put_health(struct tl1_device *d, int flat, int id)
{
	bool bad = faults_hold_port(&d->e->faults, FAULT_PORT_FAILED, flat);

	if (emu_form_is(d->e, "multicast")) {
		tl1_put_line(d, "GGN:PORTID=%d,PORTNAME=%s,PORTDIR=%s,PORTHEALTH=%s,PORTCAT=nor,"
			"PORTPRIV=0x1", id, name_of(d, id > OUT_BASE),
			id > OUT_BASE ? "output" : "input", bad ? "bad" : "good");
		return;
	}
	tl1_put_line(d, "GGN:PORTID=%d,PORTNAME=%s,PORTHEALTH=%s", id, name_of(d, id > OUT_BASE),
		bad ? "bad" : "good");
}

/* Ports beyond the licensed matrix: two that no user may connect, and one for
 * multicast. */
static void put_other_ports(struct tl1_device *d, int first, const char *direction,
			    const char *name)
{
	for (int i = 0; i < 3; i++) {
		tl1_put_line(d, "GGN:PORTID=%d,PORTNAME=%s,PORTDIR=%s,PORTHEALTH=good,PORTCAT=%s,"
			"PORTPRIV=0x%d", first + i, i == 2 ? name : "", direction,
			i == 2 ? "ref" : "nor", i == 2);
	}
}

static const char *ports(struct tl1_device *d)
{
	const struct xc_map *m = &d->e->mem;

	for (int i = 0; i < m->n_in; i++) {
		put_health(d, i, IN_BASE + 1 + i);
	}
	for (int i = 0; i < m->n_out; i++) {
		put_health(d, m->n_in + i, OUT_BASE + 1 + i);
	}
	if (emu_form_is(d->e, "multicast")) {
		put_other_ports(d, IN_BASE + 1 + m->n_in, "input", "MC-1-1");
		put_other_ports(d, OUT_BASE + 1 + m->n_out, "output", "MC-1");
	}
	return NULL;
}

static const char *powers(struct tl1_device *d)
{
	for (int i = 0; i < d->e->mem.n_in; i++) {
		tl1_put_line(d, "GGN:PORTID=%d,PORTPOWER=%.3f", IN_BASE + 1 + i,
			power_in(d, i) / 1000.0);
	}
	for (int i = 0; i < d->e->mem.n_out; i++) {
		tl1_put_line(d, "GGN:PORTID=%d,PORTPOWER=%.3f", OUT_BASE + 1 + i,
			power_out(d, i) / 1000.0);
	}
	return NULL;
}

static const struct tl1_verb verbs[] = {
	{ "rtrv-system-info", false, system_info },
	{ "rtrv-crs-fiber", false, map },
	{ "ent-crs-fiber", true, enter },
	{ "dlt-crs-fiber", true, delete },
	{ "rtrv-cfg-fiber", false, ports },
	{ "rtrv-port-power", false, powers },
	{ 0 },
};

static void put_port(const struct emu *e, int flat, char *text, size_t size)
{
	int n = e->mem.n_in;

	snprintf(text, size, "%d", flat < n ? IN_BASE + 1 + flat : OUT_BASE + 1 + flat - n);
}

static const struct tl1_vendor vendor = { .prompt = "", .verbs = verbs,
					  .port = put_port };

/* The settings are what one of them sends to every terminal. */
static const struct emu_form forms[] = {
	{ .name = "lines" },
	{ .name = "attributes", .prompt = "<" },
	{ .name = "multicast", .prompt = "<", .echo = true,
	  .greeting = "\x1b[62;1\"p\x1b[?4l\x1b[?5l\x1b[?7h\x1b[?8h\x1b[1;50r\x1b[50;0H\x1b[4l" },
	{ 0 },
};

const struct emu_dialect emu_glimmerglass_tl1 = {
	.name = "glimmerglass-tl1",
	.forms = forms,
	.completes = true,
	TL1_DIALECT(&vendor),
};
