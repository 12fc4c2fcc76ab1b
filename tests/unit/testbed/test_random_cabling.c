/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bring-up of random fabrics whose cabling is not as written, with the engine
 * itself: devices, and frames of hosts, are those of a small world here, in the
 * place of controller/testbed/session.c and probe.c.
 *
 * What has to hold: every fibre that is not as written is named with its true
 * other end, none that is right is, and the findings done one after the other,
 * with at most one fibre loose, give the cabling of the file. Each bring-up is
 * killed on its way, and goes on.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "controller/testbed/bringup_private.h"
#include "controller/testbed/testbed.h"
#include "drivers/core/driver.h"
#include "lib/base/number/rng.h"

#define MAX_DEVICES 4
#define MAX_PORTS 28
#define MAX_CORDS 128
#define FAR_ENDS 2	/* of a cord with a splitter */
#define LASER_MDBM (-3000)
#define SPLIT_MDB 3500
#define SENT 10

enum end_kind { NOWHERE, AT_INPUT, AT_OUTPUT, AT_HOST };

/* Where a cord begins or ends: at a device's port, or at a host's. */
struct cord_end {
	enum end_kind kind;
	int device, port;
};

/* Light goes from the near end, which stays, to the far ones. A host's receive
 * fibre is found by its host: its near end is the device's output, and that is
 * what is mixed up. */
struct cord {
	struct cord_end from, to[FAR_ENDS];	/* as it is */
	struct cord_end was_from, was_to;	/* as the file has it */
};

static struct world {
	struct model_fabric *f;
	struct cord cords[MAX_CORDS];
	int n_cords;
	int circuit[MAX_DEVICES][MAX_PORTS];	/* output of an input, or -1 */
	int n_hosts, n_switches, panel;		/* panel: its device, or -1 */
	bool frames;
	struct rng rng;
} w;

static int draw(int n)
{
	return (int)rng_below(&w.rng, (uint64_t)n);
}

static bool is_same(struct cord_end a, struct cord_end b)
{
	return a.kind == b.kind && (a.kind == AT_HOST || a.device == b.device) && a.port == b.port;
}

/* ---- light ---- */

/* What is lit at each port: frames' sender or -1, and power. */
static struct lit {
	int from[2][MAX_DEVICES][MAX_PORTS];
	int32_t mdbm[2][MAX_DEVICES][MAX_PORTS];
	struct testbed_heard heard[MAX_CORDS];
	int n_heard;
} lit;

static void shine(struct cord_end from, int sender, int32_t mdbm, int depth);

static void arrive(struct cord_end at, int sender, int32_t mdbm, int depth)
{
	if (at.kind == AT_HOST) {
		lit.heard[lit.n_heard++] = (struct testbed_heard){ sender, at.port, false, SENT };
		return;
	}
	if (at.kind == NOWHERE) {
		return;
	}
	lit.mdbm[at.kind == AT_OUTPUT][at.device][at.port] = mdbm;
	if (at.kind == AT_INPUT && w.circuit[at.device][at.port] >= 0 && depth < 12) {
		struct cord_end out = { AT_OUTPUT, at.device, w.circuit[at.device][at.port] };

		lit.mdbm[1][out.device][out.port] = mdbm - 1000;
		shine(out, sender, mdbm - 1000, depth + 1);
	}
}

static void shine(struct cord_end from, int sender, int32_t mdbm, int depth)
{
	for (int i = 0; i < w.n_cords; i++) {
		const struct cord *c = &w.cords[i];

		for (int k = 0; k < FAR_ENDS && is_same(c->from, from); k++) {
			arrive(c->to[k], sender,
			       mdbm - 500 - (c->to[1].kind != NOWHERE ? SPLIT_MDB : 0), depth);
		}
		/* Out of an output into a host's transmit fibre. */
		if (c->from.kind == AT_HOST && is_same(c->to[0], from)) {
			lit.heard[lit.n_heard++] = (struct testbed_heard){
				sender, c->from.port, true, SENT };
		}
	}
}

static void shine_all(void)
{
	lit.n_heard = 0;
	for (int d = 0; d < MAX_DEVICES; d++) {
		for (int i = 0; i < MAX_PORTS; i++) {
			lit.mdbm[0][d][i] = lit.mdbm[1][d][i] = -60000;
		}
	}
	for (int i = 0; i < w.n_hosts; i++) {
		shine((struct cord_end){ AT_HOST, -1, i }, i, LASER_MDBM, 0);
	}
}

/* ---- in the place of session.c and probe.c ---- */

struct testbed_device {
	int device;
};

int testbed_device_new(const struct model_fabric *f, int device,
		       struct testbed_device **out, struct err *err)
{
	(void)f;
	(void)err;
	*out = malloc(sizeof(**out));
	(*out)->device = device;
	return 0;
}

void testbed_device_free(struct testbed_device *dev)
{
	free(dev);
}

void testbed_device_tick(struct testbed_device *dev, testbed_tick_fn fn, void *arg)
{
	(void)dev;
	(void)fn;
	(void)arg;
}

int testbed_device_snapshot(struct testbed_device *dev, struct drv_snapshot *out, struct err *err)
{
	const struct model_device *m = &w.f->devices[dev->device];
	int n = m->n_in + m->n_out;

	(void)err;
	shine_all();
	memset(out, 0, sizeof(*out));
	out->caps.power = dev->device == w.panel ? DRV_POWER_NONE : DRV_POWER_BOTH;
	out->caps.typ_switch_us = dev->device == w.panel ? 60000000 : 10000;
	out->xcs = calloc((size_t)m->n_in + 1, sizeof(*out->xcs));
	out->ports = calloc((size_t)n + 1, sizeof(*out->ports));
	for (int i = 0; i < m->n_in; i++) {
		if (w.circuit[dev->device][i] >= 0) {
			out->xcs[out->n_xcs++] = (struct drv_xc){
				.xc = { i, w.circuit[dev->device][i] }, .state = DRV_TUNED };
		}
	}
	for (int i = 0; dev->device != w.panel && i < n; i++) {
		bool is_out = i >= m->n_in;
		int port = is_out ? i - m->n_in : i;

		out->ports[out->n_ports++] = (struct drv_port){
			.is_out = is_out, .index = port, .enabled = true, .has_power = true,
			.power_mdbm = lit.mdbm[is_out][dev->device][port] };
	}
	return 0;
}

int testbed_device_read(struct testbed_device *dev, struct optics_xc **xcs,
			int *n, struct ring_programs *programs, struct err *err)
{
	struct drv_snapshot snap;
	int rc = testbed_device_snapshot(dev, &snap, err);

	(void)programs;
	*xcs = calloc((size_t)snap.n_xcs + 1, sizeof(**xcs));
	*n = snap.n_xcs;
	for (int i = 0; i < snap.n_xcs; i++) {
		(*xcs)[i] = snap.xcs[i].xc;
	}
	drv_snapshot_fini(&snap);
	return rc;
}

int testbed_device_change(struct testbed_device *dev, bool add,
			  struct optics_xc xc, struct err *err)
{
	int *circuit = w.circuit[dev->device];

	(void)err;
	assert_true(circuit[xc.in] == -1 || circuit[xc.in] == xc.out);
	for (int i = 0; add && i < MAX_PORTS; i++) {
		assert_true(i == xc.in || circuit[i] != xc.out);
	}
	circuit[xc.in] = add ? xc.out : -1;
	return 0;
}

int testbed_open(const struct model_fabric *f, struct testbed **out, struct err *err)
{
	(void)f;
	(void)err;
	*out = NULL;
	return 0;
}

void testbed_close(struct testbed *t)
{
	(void)t;
}

int testbed_links(struct testbed *t, struct err *err)
{
	(void)t;
	(void)err;
	return 0;
}

int testbed_prober_new(struct testbed *t, struct testbed_prober **out, struct err *err)
{
	(void)t;
	(void)err;
	*out = NULL;
	return 0;
}

void testbed_prober_free(struct testbed_prober *p)
{
	(void)p;
}

void testbed_probe(struct testbed_prober *p, int64_t duration_ms, int64_t interval_ms,
		   int patience_ms, const volatile bool *stop, struct testbed_probe *out)
{
	(void)p;
	(void)duration_ms;
	(void)interval_ms;
	(void)patience_ms;
	(void)stop;
	shine_all();
	out->sent = calloc((size_t)w.n_hosts + 1, sizeof(*out->sent));
	out->heard = calloc((size_t)lit.n_heard + 1, sizeof(*out->heard));
	out->n_heard = lit.n_heard;
	memcpy(out->heard, lit.heard, (size_t)lit.n_heard * sizeof(*out->heard));
	for (int i = 0; i < w.n_hosts; i++) {
		out->sent[i] = SENT;
	}
}

void testbed_probe_fini(struct testbed_probe *p)
{
	free(p->sent);
	free(p->heard);
	memset(p, 0, sizeof(*p));
}

/* Nothing here takes its time. */
int usleep(useconds_t us)
{
	(void)us;
	return 0;
}

/* ---- the fabric, as written ---- */

static void add_cord(struct cord_end from, struct cord_end to)
{
	assert_true(w.n_cords < MAX_CORDS);
	w.cords[w.n_cords++] = (struct cord){ from, { to }, from, to };
}

static struct cord_end at_input(int device, int port)
{
	return (struct cord_end){ AT_INPUT, device, port };
}

static struct cord_end at_output(int device, int port)
{
	return (struct cord_end){ AT_OUTPUT, device, port };
}

static struct cord_end at_host(int port)
{
	return (struct cord_end){ AT_HOST, -1, port };
}

/* The next free port of a side of each device, and those that stay free. */
static int next_in[MAX_DEVICES], next_out[MAX_DEVICES];

static void lay_hosts(void)
{
	for (int i = 0; i < w.n_hosts; i++) {
		int s = i % w.n_switches;

		if (w.panel >= 0) {
			int port = next_in[w.panel]++;

			add_cord(at_host(i), at_input(w.panel, port));
			add_cord(at_output(w.panel, next_out[w.panel]++),
				 at_input(s, next_in[s]++));
		} else {
			add_cord(at_host(i), at_input(s, next_in[s]++));
		}
		add_cord(at_output(s, next_out[s]++), at_host(i));
	}
}

/* Some over the panel, where there is one. */
static void lay_trunk(int a, int b)
{
	if (w.panel >= 0 && draw(2)) {
		add_cord(at_output(a, next_out[a]++), at_input(w.panel, next_in[w.panel]++));
		a = w.panel;
	}
	add_cord(at_output(a, next_out[a]++), at_input(b, next_in[b]++));
}

static void lay_trunks(void)
{
	for (int a = 0; a < w.n_switches; a++) {
		for (int b = 0; b < w.n_switches; b++) {
			for (int n = a == b ? 0 : 1 + draw(3); n > 0; n--) {
				lay_trunk(a, b);
			}
		}
	}
}

static void put_end(struct buf *out, struct cord_end e, bool from)
{
	if (e.kind == AT_HOST) {
		buf_printf(out, "h%d.p0.%s", e.port, from ? "tx" : "rx");
	} else {
		buf_printf(out, "%s%d.%s%d", e.device == w.panel ? "p" : "s", e.device,
			   e.kind == AT_OUTPUT ? "out" : "in", e.port + 1);
	}
}

/* As the file names it; of a host's receive fibre the host. */
static const char *name_of(struct cord_end e, bool from)
{
	static char text[4][64];
	static int turn;
	struct buf out = { 0 };

	put_end(&out, e, from);
	turn = (turn + 1) % 4;
	snprintf(text[turn], sizeof(text[0]), "%s", buf_cstr(&out));
	buf_fini(&out);
	return text[turn];
}

static void write_file(struct buf *out)
{
	const char *driver = w.frames ? "linux-tc, options: { fabric: t }" : "sim";

	buf_printf(out, "weft: 1\nfabric: t\nhosts:\n"
		   "  - { name: \"h[0-%d]\", ports: p0, rate: 1Gbps, launch: -3dBm }\n"
		   "switches:\n  - { name: \"s[0-%d]\", size: %dx%d, driver: %s }\n",
		   w.n_hosts - 1, w.n_switches - 1, MAX_PORTS, MAX_PORTS, driver);
	if (w.panel >= 0) {
		buf_printf(out, "panels:\n  - { name: p%d, size: %dx%d, driver: sim }\n", w.panel,
			   MAX_PORTS, MAX_PORTS);
	}
	buf_printf(out, "fibres:\n");
	for (int i = 0; i < w.n_cords; i++) {
		buf_printf(out, "  - { from: \"");
		put_end(out, w.cords[i].from, true);
		buf_printf(out, "\", to: \"");
		put_end(out, w.cords[i].to[0], false);
		buf_printf(out, "\", loss: 0.5dB }\n");
	}
	buf_printf(out, "jobs: []\n");
}

/* Frames need as many free ports as they like; by power panels are there. */
static void make_fabric(bool frames)
{
	struct err_list errs = { 0 };
	struct buf out = { 0 };

	w.frames = frames;
	w.n_cords = 0;
	w.n_hosts = 4 + draw(13);
	w.n_switches = 1 + draw(3);
	w.panel = !frames && draw(3) == 0 ? w.n_switches : -1;
	memset(next_in, 0, sizeof(next_in));
	memset(next_out, 0, sizeof(next_out));
	memset(w.circuit, 0xff, sizeof(w.circuit));
	lay_hosts();
	lay_trunks();
	write_file(&out);
	if (model_parse("t", out.data, out.len, &w.f, &errs)) {
		fail_msg("%s\n%s", errs.v[0].msg, out.data);
	}
	buf_fini(&out);
}

/* ---- mixed up ---- */

static bool is_mixed(const struct cord *c)
{
	return !is_same(c->from, c->was_from) || !is_same(c->to[0], c->was_to) ||
	       c->to[1].kind != NOWHERE;
}

/* A host's receive fibre, whose end at the device is mixed up. */
static bool is_receive(const struct cord *c)
{
	return c->was_to.kind == AT_HOST;
}

static bool is_trunk(const struct cord *c)
{
	return c->was_from.kind == AT_OUTPUT && c->was_to.kind == AT_INPUT;
}

/* Cords that may be mixed up with each other: none goes from a panel into itself,
 * for that is not told from a dead one. */
enum which { RECEIVE, INTO_SWITCH, FROM_SWITCH };

/* What each method can tell: of the ports of hosts power tells but whether
 * there is light. */
static bool can_mix(const struct cord *c, enum which which)
{
	return !is_mixed(c) && is_receive(c) == (which == RECEIVE) && (w.frames || is_trunk(c)) &&
	       (which == INTO_SWITCH ? c->was_to.device != w.panel :
		which == RECEIVE || c->was_from.device != w.panel);
}

static int draw_cord(enum which which)
{
	for (int k = 0; k < 50; k++) {
		int i = draw(w.n_cords);

		if (can_mix(&w.cords[i], which)) {
			return i;
		}
	}
	return -1;
}

/* A circle of so many, or fewer: each gets the end of the one before, the first
 * one that of the last. */
static void mix_circle(int n, enum which which)
{
	struct cord_end *first = NULL, hand = { 0 };

	for (; n > 0; n--) {
		int i = draw_cord(which);
		struct cord_end *end = i < 0 ? NULL
				       : which == RECEIVE ? &w.cords[i].from : &w.cords[i].to[0];
		struct cord_end mine = end ? *end : hand;

		if (end && first) {
			*end = hand;
		} else if (end) {
			end->kind = NOWHERE;	/* it is not drawn again */
			first = end;
		}
		hand = mine;
	}
	if (first) {
		*first = hand;
	}
}

static void mix_dead(void)
{
	int i = draw_cord(w.frames && draw(2) ? RECEIVE : draw(2) ? INTO_SWITCH : FROM_SWITCH);

	if (i >= 0) {
		w.cords[i].to[0].kind = NOWHERE;
	}
}

/* By power a laser is dark too. */
static void mix_laser(void)
{
	int i = draw(w.n_cords);

	if (!w.frames && w.cords[i].from.kind == AT_HOST) {
		w.cords[i].to[0].kind = NOWHERE;
	}
}

static struct cord *find_host_cord(int host, bool receive)
{
	for (int i = 0; i < w.n_cords; i++) {
		const struct cord_end *end = receive ? &w.cords[i].was_to : &w.cords[i].was_from;

		if (end->kind == AT_HOST && end->port == host) {
			return &w.cords[i];
		}
	}
	return NULL;
}

/* The two fibres of a host at a switch. */
static void mix_reverse(void)
{
	int host = draw(w.n_hosts);
	struct cord *tx = find_host_cord(host, false), *rx = find_host_cord(host, true);

	if (w.panel < 0 && !is_mixed(tx) && !is_mixed(rx)) {
		tx->to[0] = rx->was_from;
		rx->from = tx->was_to;
	}
}

/* A trunk to its own switch. */
static void mix_loop(void)
{
	int i = draw_cord(FROM_SWITCH);

	if (i >= 0 && is_trunk(&w.cords[i])) {
		w.cords[i].to[0] = at_input(w.cords[i].from.device,
					    next_in[w.cords[i].from.device]++);
	}
}

/* By frames between a host and a switch, by power between switches. */
static void mix_split(void)
{
	int i = draw_cord(draw(2) ? INTO_SWITCH : FROM_SWITCH), s = draw(w.n_switches);

	if (i >= 0 && is_trunk(&w.cords[i]) != w.frames) {
		w.cords[i].to[1] = at_input(s, next_in[s]++);
	}
}

static void mix_up(void)
{
	mix_circle(draw(6), draw(2) ? INTO_SWITCH : FROM_SWITCH);
	mix_circle(w.frames ? draw(5) : 0, RECEIVE);
	for (int n = draw(3); n > 0; n--) {
		mix_dead();
		mix_laser();
	}
	for (int n = draw(2); n > 0; n--) {
		mix_loop();
		mix_reverse();
	}
	for (int n = draw(2); n > 0; n--) {
		mix_split();
	}
}

/* ---- what is found ---- */

static bool is_reversed(const struct cord *c)
{
	return is_receive(c) ? c->from.kind == AT_INPUT :
	       c->was_from.kind == AT_HOST && c->to[0].kind == AT_OUTPUT;
}

/* The fibre that a finding is of: of a reversed pair its port, else by its host, or
 * by the output of its trunk. */
static const char *fibre_of(const struct cord *c)
{
	static char port[2][32];
	static int turn;

	if (is_reversed(c)) {
		turn = !turn;
		snprintf(port[turn], sizeof(port[0]), "h%d.p0",
			 is_receive(c) ? c->was_to.port : c->was_from.port);
		return port[turn];
	}
	return name_of(is_receive(c) ? c->was_to : c->was_from, !is_receive(c));
}

static void find_name(struct cord *c, char text[64])
{
	snprintf(text, 64, "%s", is_receive(c) ? name_of(c->from, true) : name_of(c->to[0], false));
}

static void show(const struct bringup_finding *v, int n)
{
	for (int i = 0; i < w.n_cords; i++) {
		struct cord *c = &w.cords[i];

		if (is_mixed(c)) {
			print_message("cord %s: %s -> %s and %s\n", fibre_of(c),
				      name_of(c->from, true),
				      c->to[0].kind ? name_of(c->to[0], false) : "nowhere",
				      c->to[1].kind ? name_of(c->to[1], false) : "nowhere");
		}
	}
	for (int i = 0; i < n; i++) {
		print_message("%s %s with %s written %s found %s\n", bringup_kind_name(v[i].kind),
			      v[i].fibre, v[i].with, v[i].written, v[i].found);
	}
}

static bool names(const struct bringup_finding *d, const struct cord *c)
{
	const char *fibre = fibre_of(c);

	return strcmp(d->fibre, fibre) == 0 ||
	       (d->kind == BRINGUP_SWAPPED && strcmp(d->with, fibre) == 0);
}

/* A finding of this cord says where it is. */
static bool is_told(const struct bringup_finding *v, int n, struct cord *c)
{
	char at[64], second[64];

	find_name(c, at);
	snprintf(second, sizeof(second), "%s", name_of(c->to[1], false));
	for (int i = 0; i < n; i++) {
		const struct bringup_finding *d = &v[i];

		if (!names(d, c) || d->kind == BRINGUP_LOSSY) {
			continue;
		}
		if (c->to[1].kind != NOWHERE) {
			return d->kind == BRINGUP_SPLIT && strcmp(d->with, at) == 0 &&
			       strcmp(d->found, second) == 0;
		}
		if (c->to[0].kind == NOWHERE) {
			return d->kind == BRINGUP_MISSING && !*d->found;
		}
		if (is_reversed(c)) {
			return d->kind == BRINGUP_REVERSED;
		}
		return strcmp(strcmp(d->fibre, fibre_of(c)) == 0 ? d->found : d->written, at) == 0;
	}
	return false;
}

static struct cord *find_cord(const char *fibre)
{
	for (int i = 0; i < w.n_cords; i++) {
		if (strcmp(fibre_of(&w.cords[i]), fibre) == 0) {
			return &w.cords[i];
		}
	}
	return NULL;
}

/* ---- mended ---- */

static struct cord *loose;	/* one that hangs */

/* The end that was mixed up goes to where the file has it; what is there is
 * taken out, if nothing hangs yet. */
static bool lay(struct cord *c)
{
	struct cord_end *end = is_receive(c) ? &c->from : &c->to[0];
	struct cord_end place = is_receive(c) ? c->was_from : c->was_to;

	for (int i = 0; i < w.n_cords; i++) {
		struct cord *there = &w.cords[i];
		struct cord_end *its = is_receive(c) ? &there->from : &there->to[0];

		if (there != c && is_same(*its, place)) {
			if (loose && loose != c) {
				return false;
			}
			its->kind = NOWHERE;
			loose = there;
		}
	}
	if (loose == c) {
		loose = NULL;
	}
	*end = place;
	return true;
}

static bool exchange(struct cord *a, struct cord *b)
{
	struct cord_end *x = is_receive(a) ? &a->from : &a->to[0];
	struct cord_end *y = is_receive(b) ? &b->from : &b->to[0], z = *x;

	*x = *y;
	*y = z;
	return !loose;
}

static bool mend(const struct bringup_finding *d)
{
	struct cord *c = find_cord(d->fibre), *other;

	switch (d->kind) {
	case BRINGUP_SWAPPED:
		return c && find_cord(d->with) && exchange(c, find_cord(d->with));
	case BRINGUP_MOVED:
	case BRINGUP_LOOPED:
		return c && lay(c);
	case BRINGUP_SPLIT:
		c->to[1].kind = NOWHERE;
		return true;
	case BRINGUP_MISSING:
		c->to[0] = c->was_to;
		return true;
	case BRINGUP_REVERSED:
		other = find_host_cord(c->was_from.port, true);
		c->to[0] = c->was_to;
		other->from = other->was_from;
		return !is_receive(c);
	case BRINGUP_LOSSY:
		return true;	/* by its splitter */
	default:
		return false;
	}
}

/* ---- the property ---- */

/* Of a device nothing can be told without a host's fibre into it and one out of
 * it; those that are right serve. */
static bool can_be_told(void)
{
	bool ok = true;

	for (int s = 0; s < w.n_switches; s++) {
		bool in = false, out = false;

		for (int i = 0; i < w.n_cords; i++) {
			const struct cord *c = &w.cords[i];

			in = in || (!is_mixed(c) && c->from.kind == AT_HOST &&
				    c->was_to.device == s);
			out = out || (!is_mixed(c) && is_receive(c) && c->from.device == s);
		}
		ok = ok && in && out;
	}
	return ok || !w.frames;
}

/* A fibre that is right is not reported; untested is no word against it. */
static void check_right(int round, const struct bringup_finding *v, int n)
{
	for (int i = 0; i < n; i++) {
		if (v[i].kind != BRINGUP_UNTESTED &&
		    (!find_cord(v[i].fibre) || !is_mixed(find_cord(v[i].fibre)))) {
			show(v, n);
			fail_msg("round %d: %s is right", round, v[i].fibre);
		}
	}
}

static void check_told(int round, const struct bringup_finding *v, int n)
{
	for (int i = 0; i < w.n_cords; i++) {
		if (is_mixed(&w.cords[i]) && !is_told(v, n, &w.cords[i])) {
			show(v, n);
			fail_msg("round %d: %s", round, fibre_of(&w.cords[i]));
		}
	}
}

static void check_mended(int round, const struct bringup_finding *v, int n)
{
	bool ok = true;

	loose = NULL;
	for (int i = 0; i < n; i++) {
		ok = ok && mend(&v[i]);
	}
	for (int i = 0; i < w.n_cords; i++) {
		ok = ok && !is_mixed(&w.cords[i]);
	}
	if (!ok || loose) {
		show(v, n);
		fail_msg("round %d: no order to mend it in", round);
	}
}

/* A bring-up that is killed: its state file is that of one step, the circuits are
 * those of that step or of the next. */
struct kill {
	const struct bringup *b;
	int left;		/* steps until then */
	bool later;		/* after what is announced was done */
	struct buf state;
	int circuit[MAX_DEVICES][MAX_PORTS];
};

static int on_step(const struct bringup_progress *now, void *arg, struct err *err)
{
	struct kill *k = arg;

	(void)now;
	(void)err;
	if (k->left-- == 0) {
		assert_int_equal(bringup_save(k->b, &k->state, NULL), 0);
	}
	if (k->left < -(int)k->later) {
		memcpy(k->circuit, w.circuit, sizeof(w.circuit));
		return 1;
	}
	return 0;
}

/* Until it is killed, and on from there by another one. */
static struct bringup *run(int round)
{
	struct bringup_options options = { .max_moves = 100000 };
	struct kill k = { .left = draw(60), .later = draw(2) };
	struct bringup *b;
	struct err err = { 0 };
	int rc;

	assert_int_equal(bringup_new(w.f, &b, &err), 0);
	k.b = b;
	rc = bringup_run(b, &options, on_step, &k, &err);
	if (rc == WEFT_ECANCELED) {
		bringup_free(b);
		memcpy(w.circuit, k.circuit, sizeof(w.circuit));
		assert_int_equal(bringup_new(w.f, &b, &err), 0);
		assert_int_equal(bringup_load(b, k.state.data, k.state.len, &err), 0);
		rc = bringup_run(b, &options, NULL, NULL, &err);
	}
	buf_fini(&k.state);
	if (rc) {
		show(NULL, 0);
		fail_msg("round %d: %s", round, err.msg);
	}
	return b;
}

/* The file of what was found is a fabric, and that is what is there, but for what
 * cannot be in one. */
static void check_file(int round, const struct bringup *b)
{
	struct bringup_options options = { .max_moves = 100000 };
	struct model_fabric *f = NULL;
	struct bringup_finding *v;
	struct err_list errs = { 0 };
	struct bringup *again;
	struct buf out = { 0 };
	struct err err = { 0 };
	int n;

	if (bringup_yaml(b, &out, &err)) {
		show(NULL, 0);
		fail_msg("round %d: the file: %s", round, err.msg);
	}
	assert_int_equal(model_parse("found", out.data, out.len, &f, &errs), 0);
	assert_int_equal(bringup_new(f, &again, &err), 0);
	assert_int_equal(bringup_run(again, &options, NULL, NULL, &err), 0);
	bringup_findings(again, &v, &n);
	for (int i = 0; i < n; i++) {
		if (v[i].kind == BRINGUP_SWAPPED || v[i].kind == BRINGUP_MOVED ||
		    v[i].kind == BRINGUP_MISSING) {
			show(v, n);
			fail_msg("round %d: not as in its own file", round);
		}
	}
	free(v);
	bringup_free(again);
	model_free(f);
	buf_fini(&out);
}

/* Returns whether all of it could be told. */
static bool check(int round)
{
	struct bringup *b = run(round);
	struct bringup_finding *v;
	bool all = can_be_told();
	int n;

	bringup_findings(b, &v, &n);
	check_right(round, v, n);
	check_file(round, b);
	for (int i = 0; !w.frames && i < n; i++) {
		all = all && v[i].kind != BRINGUP_UNTESTED;	/* light gets not there */
	}
	if (all) {
		check_told(round, v, n);
		check_mended(round, v, n);
	}
	for (int d = 0; d < MAX_DEVICES; d++) {
		for (int i = 0; i < MAX_PORTS; i++) {
			assert_int_equal(w.circuit[d][i], -1);
		}
	}
	free(v);
	bringup_free(b);
	return all;
}

static void check_many(bool frames, int rounds)
{
	int n = 0;

	for (int round = 0; round < rounds; round++) {
		rng_seed(&w.rng, (uint64_t)round);
		make_fabric(frames);
		mix_up();
		n += check(round);
		model_free(w.f);
	}
	assert_true(n > rounds * 2 / 3);
}

static void by_power_any_cabling_is_found_and_mended(void **state)
{
	(void)state;
	check_many(false, 80);
}

static void by_frames_any_cabling_is_found_and_mended(void **state)
{
	(void)state;
	check_many(true, 80);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(by_power_any_cabling_is_found_and_mended),
		cmocka_unit_test(by_frames_any_cabling_is_found_and_mended),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
