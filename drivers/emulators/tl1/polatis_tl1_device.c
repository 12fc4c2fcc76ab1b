/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The device side of Polatis' TL1 dialect. Reconstructed: the word for a
 * port that failed, and the codes of denials.
 */
#include "drivers/emulators/core/fibre_plant.h"
#include "drivers/emulators/tl1/tl1_device.h"

#include <stdlib.h>
#include <string.h>

#include "drivers/core/parse.h"

static const char *net_type(struct tl1_device *d)
{
	const struct xc_map *m = &d->e->mem;

	if (m->any_to_any) {
		tl1_put_line(d, "Polatis,N-VST-%dxCC-LU1-DMHNV,OCS,6.7.3.9", m->n_in);
	} else {
		tl1_put_line(d, "Polatis,N-OST-%dx%d-LU1-DMHNV,OCS,6.7.3.9", m->n_in, m->n_out);
	}
	return NULL;
}

static const char *inventory(struct tl1_device *d)
{
	tl1_put_line(d, "SN=%s", d->e->conf.name);
	return NULL;
}

static const char *equipment(struct tl1_device *d)
{
	if (strcmp(d->request.payload, ":PARAMETER=SIZE") != 0) {
		return tl1_deny(d, "IPNV", "");
	}
	tl1_put_line(d, "SYSTEM:SIZE=%dx%d", d->e->mem.n_in, d->e->mem.n_out);
	return NULL;
}

/* Patches as pairs of port numbers; outputs count behind the inputs. */
static const char *map(struct tl1_device *d)
{
	const struct xc_map *m = &d->e->mem;

	for (int i = 0; i < m->n_in; i++) {
		/* An any-to-any switch lists a patch by its lower port. */
		if (m->peer[i] > i) {
			tl1_put_line(d, emu_form_is(d->e, "unquoted") ? "%d , %d" : "%d,%d", i + 1,
				     (int)m->peer[i] + 1);
		}
	}
	return NULL;
}

static const char *enter(struct tl1_device *d)
{
	const struct xc_map *m = &d->e->mem;
	const char *p = d->request.aid, *code;
	struct optics_xc xc;
	int in, out;

	if (!parse_number(&p, 1, m->n_ports, ',', &in) ||
	    !parse_number(&p, 1, m->n_ports, '\0', &out) || *p) {
		return tl1_deny(d, "IIAC", "");
	}
	xc = (struct optics_xc){ in - 1,
				out - 1 - (m->any_to_any ? 0 : m->n_in) };
	code = tl1_obstacle(d, xc);
	if (!code) {
		tl1_connect(d, xc);
	}
	return code;
}

/* `ALL`, or the patch at a port of either side. */
static const char *delete(struct tl1_device *d)
{
	struct xc_map *m = &d->e->mem;
	const char *p = d->request.aid;
	int port;

	if (strcasecmp(p, "ALL") == 0) {
		xc_map_clear(m);
	} else if (!parse_number(&p, 1, m->n_ports, '\0', &port) || *p) {
		return tl1_deny(d, "IIAC", "");
	} else if (m->peer[port - 1] < 0) {
		return tl1_deny(d, "SROU", "not connected");
	} else {
		xc_map_release(m, port - 1);
	}
	emu_changed(d->e);
	return NULL;
}

/* `3`, or `1&&16`; numbers from 1. */
static bool take_range(const struct tl1_device *d, const char *aid, int *first, int *last)
{
	const char *p = aid;

	if (!parse_number(&p, 1, d->e->mem.n_ports, '\0', first)) {
		return false;
	}
	*last = *first;
	if (strncmp(p, "&&", 2) == 0) {
		p += 2;
		return parse_number(&p, 1, d->e->mem.n_ports, '\0', last) && !*p;
	}
	return *p == '\0';
}

/* A shutter is closed by command or by a fault; OPEN lets light by. */
static const char *shutter_word(struct tl1_device *d, int flat)
{
	struct faults *f = &d->e->faults;

	if (faults_hold_port(f, FAULT_PORT_FAILED, flat)) {
		return "FAILED";
	}
	return d->disabled[flat] ||
	       faults_hold_port(f, FAULT_PORT_DISABLED, flat) ? "CLOSED" :
								"OPEN";
}

/* Does something to each port of the address, flat. */
static const char *each_port(struct tl1_device *d, void (*fn)(struct tl1_device *d, int flat))
{
	int first, last;

	if (!take_range(d, d->request.aid, &first, &last)) {
		return tl1_deny(d, "IIAC", "");
	}
	for (int i = first; i <= last; i++) {
		fn(d, i - 1);
	}
	return NULL;
}

static void put_shutter(struct tl1_device *d, int flat)
{
	tl1_put_line(d, "%d:%s", flat + 1, shutter_word(d, flat));
}

static void put_power(struct tl1_device *d, int flat)
{
	tl1_put_line(d, "%d:%.2f", flat + 1, plant_port_mdbm(d->e, flat) / 1000.0);
}

static void close_shutter(struct tl1_device *d, int flat)
{
	d->disabled[flat] = true;
	emu_changed(d->e);
}

static void open_shutter(struct tl1_device *d, int flat)
{
	d->disabled[flat] = false;
	emu_changed(d->e);
}

static const char *shutters(struct tl1_device *d)
{
	return each_port(d, put_shutter);
}

static const char *powers(struct tl1_device *d)
{
	return each_port(d, put_power);
}

static const char *close_shutters(struct tl1_device *d)
{
	return each_port(d, close_shutter);
}

static const char *open_shutters(struct tl1_device *d)
{
	return each_port(d, open_shutter);
}

static const struct tl1_verb verbs[] = {
	{ "RTRV-NETYPE", false, net_type },
	{ "RTRV-INV", false, inventory },
	{ "RTRV-EQPT", false, equipment },
	{ "RTRV-PATCH", false, map },
	{ "ENT-PATCH", true, enter },
	{ "DLT-PATCH", true, delete },
	{ "RTRV-PORT-SHUTTER", false, shutters },
	{ "OPR-PORT-SHUTTER", true, close_shutters },
	{ "RLS-PORT-SHUTTER", true, open_shutters },
	{ "RTRV-PORT-POWER", false, powers },
	{ 0 },
};

static void put_port(const struct emu *e, int flat, char *text, size_t size)
{
	(void)e;
	snprintf(text, size, "%d", flat + 1);
}

static const struct tl1_vendor vendor = { .prompt = "", .verbs = verbs,
					  .port = put_port };

static const struct emu_form forms[] = {
	{ .name = "quoted" },
	{ .name = "unnamed", .greeting = "\xff\xfb\x01\xff\xfb\x03\xff\xfd\x1f",
	  .telnet = true, .echo = true },
	{ .name = "unquoted" },
	{ 0 },
};

const struct emu_dialect emu_polatis_tl1 = {
	.name = "polatis-tl1",
	.forms = forms,
	TL1_DIALECT(&vendor),
};
