/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bring-up: which circuits of unmonitored devices are tried, and what follows
 * from those that were. No device is talked to here.
 *
 * A circuit from an input to an output tells of the fibres at both, if light is
 * observed behind it: then both are good. If none is, or too little, each is
 * tried again with a partner that is known to be good, and what stays dark then
 * is the fibre's own. N inputs and M outputs whose fibres are good take
 * max(N, M) tries, and each that is not takes one more.
 *
 * By frames every switch is tried like this, input k with output k first, for
 * a host's port mostly has its two fibres at the same number.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "controller/testbed/bringup_private.h"
#include "lib/base/alloc.h"

/* ---- what the file says ---- */

/* That the fibre as written has this end, as far as is known. */
static bool may_be_there(const struct bringup *b, const struct model_trunk *t, bool out)
{
	enum bringup_reach reach = bringup_far_of(b, t)->reach;

	return reach == REACH_UNKNOWN ||
	       (out ? reach != REACH_NOTHING : bringup_is_found(b, t->to_device, t->to_port));
}

/* By frames: at a host's port, one that the file leaves open, or where a fibre
 * between switches is not. By power light
 * comes to an input from a host, or from a switch that measures; from an output
 * it can be seen at such a one. */
bool bringup_is_observable(const struct bringup *b, int device, bool out, int port)
{
	const struct model_trunk *t = bringup_trunk_at(b, device, out, port);

	if (bringup_is_kept(b, device, out, port)) {
		return false;
	}
	if (b->method == BY_FRAMES) {
		return !t || !may_be_there(b, t, out);
	}
	if (bringup_port(b, device, out, port)->blocked) {
		return false;
	}
	if (!t) {
		return !out && b->fabric->devices[device].in_port[port] >= 0;
	}
	return !b->devices[out ? t->to_device : t->from_device].unmonitored;
}

/* ---- what the tries say ---- */

/* One port of an unmonitored device, by the file and all tries. */
struct pair_port {
	bool wanted;	/* something can be known of it */
	bool written;	/* the file has a fibre there */
	bool ready;	/* and light can be had now */
	int n_tries;
	bool clean;	/* enough light went through its fibre */
	bool settled;	/* clean, or tried with a partner that is */
	bool held;	/* in a circuit that feeds a switch */
	int64_t received;	/* frames, when it was found clean */
};

/* All ports of one device. */
struct pair_ports {
	const struct bringup *b;
	int device, n_in, n_out;
	struct pair_port *in, *out;
};

static bool carries_enough(const struct bringup_try *t)
{
	return t->reach != REACH_NOTHING && t->loss_mdb <= t->limit_mdb;
}

static bool is_clean(const struct bringup_try *t)
{
	return t->reach == REACH_INPUT && carries_enough(t);
}

static void mark_clean(struct pair_port *port, const struct bringup_try *t)
{
	if (!port->clean) {
		port->clean = true;
		port->received = t->received;
	}
}

/* Light that arrives at an output came out of a good input, and by a fibre
 * that ends where it should not. */
static void apply_try(const struct bringup_try *t, struct pair_port *in, struct pair_port *out)
{
	if (carries_enough(t)) {
		mark_clean(in, t);
	}
	if (is_clean(t)) {
		mark_clean(out, t);
	}
	in->settled = in->settled || in->clean || out->clean;
	out->settled = out->settled || in->clean || out->clean;
}

static void apply_file(struct pair_ports *s)
{
	const struct bringup *b = s->b;

	for (int i = 0; i < s->n_in; i++) {
		const struct model_trunk *t = bringup_trunk_at(b, s->device, false, i);

		s->in[i].wanted = bringup_is_observable(b, s->device, false, i);
		s->in[i].written = b->fabric->devices[s->device].in_port[i] != -1;
		s->in[i].ready = s->in[i].wanted && (!t || b->method == BY_FRAMES ||
						     b->devices[t->from_device].source >= 0);
	}
	for (int i = 0; i < s->n_out; i++) {
		s->out[i].wanted = bringup_is_observable(b, s->device, true, i);
		s->out[i].written = b->fabric->devices[s->device].out_port[i] != -1;
		s->out[i].ready = s->out[i].wanted;
	}
}

/* Twice: a port may be found clean after its partner was tried in vain. */
static void apply_tries(struct pair_ports *s)
{
	const struct bringup *b = s->b;

	for (int pass = 0; pass < 2; pass++) {
		for (size_t k = 0; k < b->tries.n; k++) {
			const struct bringup_try *t = &b->tries.v[k];

			if (t->device == s->device) {
				s->in[t->xc.in].n_tries += !pass;
				s->out[t->xc.out].n_tries += !pass;
				apply_try(t, &s->in[t->xc.in], &s->out[t->xc.out]);
			}
		}
	}
}

bool bringup_is_feed(const struct bringup *b, const struct bringup_circuit *c)
{
	for (int d = 0; d < b->fabric->n_devices; d++) {
		const struct bringup_device *dev = &b->devices[d];

		if (b->devices[c->device].unmonitored && dev->feed_device == c->device &&
		    dev->feed_in == c->xc.in && dev->feed_out == c->xc.out) {
			return true;
		}
	}
	return false;
}

static void apply_lit(struct pair_ports *s)
{
	for (int i = 0; i < s->b->n_lit; i++) {
		const struct bringup_circuit *c = &s->b->lit[i];

		if (c->device == s->device && bringup_is_feed(s->b, c)) {
			s->in[c->xc.in].held = true;
			s->out[c->xc.out].held = true;
		}
	}
}

static void ports_fini(struct pair_ports *s)
{
	free(s->in);
	free(s->out);
}

static void ports_init(struct pair_ports *s, const struct bringup *b, int device)
{
	const struct model_device *m = &b->fabric->devices[device];

	*s = (struct pair_ports){ b, device, m->n_in, m->n_out, NULL, NULL };
	s->in = x_new((size_t)m->n_in + 1, sizeof(*s->in));
	s->out = x_new((size_t)m->n_out + 1, sizeof(*s->out));
	apply_file(s);
	apply_tries(s);
	apply_lit(s);
}

bool bringup_was_tried(const struct bringup *b, int device, struct optics_xc xc)
{
	for (size_t k = 0; k < b->tries.n; k++) {
		const struct bringup_try *t = &b->tries.v[k];

		if (t->device == device && optics_xc_cmp(&t->xc, &xc) == 0) {
			return true;
		}
	}
	return false;
}

/* ---- what is next ---- */

/* Which ports of a side may be in the next pair. */
enum candidate { FRESH, OPEN, CLEAN };

static bool fits(const struct pair_port *v, enum candidate which, bool held)
{
	if (v->held && !held) {
		return false;
	}
	return which == CLEAN ? v->clean : v->ready && !v->settled &&
		(which == OPEN || !v->n_tries);
}

/* The clean port that lost least: what a partner is judged by. */
static int find_best(const struct pair_port *v, int n, bool held)
{
	int best = -1;

	for (int i = 0; i < n; i++) {
		if (fits(&v[i], CLEAN, held) && (best < 0 || v[i].received > v[best].received)) {
			best = i;
		}
	}
	return best;
}

/* The output of the first such pair with this input that was not tried. */
static bool find_output(const struct pair_ports *s, int in, enum candidate which, bool straight,
			bool held, struct optics_xc *xc)
{
	int best = which == CLEAN ? find_best(s->out, s->n_out, held) : -1;

	for (int o = 0; o < s->n_out; o++) {
		*xc = (struct optics_xc){ in, o };
		if ((!straight || o == in) && (best < 0 || o == best) &&
		    fits(&s->out[o], which, held) &&
		    !bringup_was_tried(s->b, s->device, *xc)) {
			return true;
		}
	}
	return false;
}

/* The first pair of such ports that was not tried; lasers before switches. */
static bool find_pair(const struct pair_ports *s, enum candidate in,
		      enum candidate out, bool held, struct optics_xc *xc)
{
	bool straight = in == FRESH && s->b->method == BY_FRAMES;
	int best = in == CLEAN ? find_best(s->in, s->n_in, held) : -1;

	for (int pass = 0; pass < 2; pass++) {
		for (int i = 0; i < s->n_in; i++) {
			bool laser = !bringup_trunk_at(s->b, s->device, false, i);

			if (laser != pass && (best < 0 || i == best) && fits(&s->in[i], in, held) &&
			    find_output(s, i, out, straight, held, xc)) {
				return true;
			}
		}
	}
	return false;
}

static int count_tried(const struct pair_ports *s)
{
	int n = 0;

	for (size_t k = 0; k < s->b->tries.n; k++) {
		n += s->b->tries.v[k].device == s->device;
	}
	return n;
}

static int count_wanted(const struct pair_port *v, int n)
{
	int wanted = 0;

	for (int i = 0; i < n; i++) {
		wanted += v[i].wanted;
	}
	return wanted;
}

/* How little a pair of open ports promises: what the file has nothing at, and
 * what was tried often. */
static int count_against(const struct pair_ports *s, struct optics_xc xc)
{
	const struct pair_port *in = &s->in[xc.in], *out = &s->out[xc.out];
	int most = s->n_in + s->n_out;

	return in->n_tries + out->n_tries + most * (!in->written + !out->written);
}

/* Without a good pair it is not known which fibre is at fault: some more are
 * tried, as many as there are ports, each with another partner every time,
 * before that is given up. */
static bool find_any(const struct pair_ports *s, struct optics_xc *xc)
{
	int limit = count_wanted(s->in, s->n_in) + count_wanted(s->out, s->n_out), best = INT_MAX;

	if (find_best(s->in, s->n_in, true) >= 0 || count_tried(s) >= limit) {
		return false;
	}
	for (int i = 0; i < s->n_in; i++) {
		for (int o = 0; o < s->n_out && fits(&s->in[i], OPEN, true); o++) {
			struct optics_xc pair = { i, o };

			if (fits(&s->out[o], OPEN, true) && count_against(s, pair) < best &&
			    !bringup_was_tried(s->b, s->device, pair)) {
				best = count_against(s, pair);
				*xc = pair;
			}
		}
	}
	return best < INT_MAX;
}

static bool find_next(const struct pair_ports *s, struct optics_xc *xc)
{
	for (int held = 0; held < 2; held++) {
		if (find_pair(s, FRESH, FRESH, held, xc) || find_pair(s, OPEN, CLEAN, held, xc) ||
		    find_pair(s, CLEAN, OPEN, held, xc)) {
			return true;
		}
	}
	return find_any(s, xc);
}

/* A pair whose circuit was made already, before a bring-up was killed. */
static bool find_begun(const struct bringup *b, int *device, struct optics_xc *xc)
{
	for (int i = 0; i < b->n_lit; i++) {
		const struct bringup_circuit *c = &b->lit[i];

		if (b->devices[c->device].unmonitored && c->made && !c->removing &&
		    !bringup_is_feed(b, c) && !bringup_was_tried(b, c->device, c->xc)) {
			*device = c->device;
			*xc = c->xc;
			return true;
		}
	}
	return false;
}

bool bringup_next_pair(const struct bringup *b, int *device, struct optics_xc *xc)
{
	bool found = find_begun(b, device, xc);

	for (int d = 0; !found && d < b->fabric->n_devices; d++) {
		struct pair_ports s;

		if (b->devices[d].unmonitored) {
			ports_init(&s, b, d);
			found = find_next(&s, xc);
			*device = d;
			ports_fini(&s);
		}
	}
	return found;
}

/* ---- how much is left ---- */

/* Ports that are wanted and not settled: never tried, and tried in vain. */
static void open_ports(const struct pair_port *v, int n, int *fresh, int *vain)
{
	*fresh = *vain = 0;
	for (int i = 0; i < n; i++) {
		*fresh += v[i].wanted && !v[i].settled && !v[i].n_tries;
		*vain += v[i].wanted && !v[i].settled && v[i].n_tries;
	}
}

static int tries_left(const struct pair_ports *s)
{
	int fresh_in, fresh_out, vain_in, vain_out;

	if (!count_wanted(s->in, s->n_in) || !count_wanted(s->out, s->n_out)) {
		return 0;
	}
	open_ports(s->in, s->n_in, &fresh_in, &vain_in);
	open_ports(s->out, s->n_out, &fresh_out, &vain_out);
	return (fresh_in > fresh_out ? fresh_in : fresh_out) + vain_in +
	       vain_out;
}

int64_t bringup_moves_left(const struct bringup *b)
{
	int64_t left = 0;
	struct optics_xc xc;
	int device;

	for (int d = 0; d < b->fabric->n_devices; d++) {
		struct pair_ports s;

		if (b->devices[d].unmonitored && b->devices[d].robot) {
			ports_init(&s, b, d);
			left += 2 * tries_left(&s);
			ports_fini(&s);
		}
	}
	for (int i = 0; i < b->n_lit; i++) {
		left += b->lit[i].made && b->devices[b->lit[i].device].robot;
	}
	/* Of the one that is made already one move is left, not three. */
	return left - (find_begun(b, &device, &xc) && b->devices[device].robot ? 2 : 0);
}

void bringup_count_pairs(const struct bringup *b, int *done, int *total)
{
	for (int d = 0; d < b->fabric->n_devices; d++) {
		struct pair_ports s;

		if (!b->devices[d].unmonitored) {
			continue;
		}
		ports_init(&s, b, d);
		for (int i = 0; i < s.n_in + s.n_out; i++) {
			const struct pair_port *v = i < s.n_in ? &s.in[i] : &s.out[i - s.n_in];

			*total += v->wanted;
			*done += v->wanted && v->settled;
		}
		ports_fini(&s);
	}
}

/* ---- what follows ---- */

/* Nothing is known of ports that no try tells of. */
static void settle_dark(struct bringup *b, const struct pair_ports *s)
{
	struct bringup_device *dev = &b->devices[s->device];

	for (int i = 0; i < s->n_in; i++) {
		dev->in[i].seen = s->in[i].wanted && s->in[i].settled ? INPUT_DARK : INPUT_UNSEEN;
	}
	for (int i = 0; i < s->n_out; i++) {
		bool dark = s->out[i].wanted && s->out[i].settled;

		dev->far[i] = (struct bringup_far){
			.reach = dark ? REACH_NOTHING : REACH_UNKNOWN,
			.device = -1, .port = -1, .in = -1,
			.path_mdb = UNKNOWN_LOSS_MDB,
			.fibre_mdb = UNKNOWN_LOSS_MDB };
	}
}

static void settle_lit(struct bringup *b, const struct bringup_try *t)
{
	struct bringup_device *dev = &b->devices[t->device];
	struct bringup_device *to;

	if (t->reach == REACH_NOTHING) {
		return;
	}
	dev->in[t->xc.in].seen = INPUT_LIT;
	dev->far[t->xc.out] = (struct bringup_far){
		.reach = t->reach, .device = t->to_device, .port = t->to_port,
		.is_split = t->is_split, .split_device = t->split_device,
		.split_port = t->split_port,
		.in = t->xc.in, .path_mdb = UNKNOWN_LOSS_MDB,
		.fibre_mdb = UNKNOWN_LOSS_MDB };
	if (t->from_device >= 0) {
		struct bringup_far *far = &b->devices[t->from_device].
					far[t->from_out];

		/* It was seen elsewhere too: a splitter before this device. */
		if (far->reach == REACH_INPUT &&
		    (far->device != t->device || far->port != t->xc.in)) {
			far->is_split = true;
			far->split_device = far->device;
			far->split_port = far->port;
		}
		far->reach = REACH_INPUT;
		far->device = t->device;
		far->port = t->xc.in;
		far->fibre_mdb = UNKNOWN_LOSS_MDB;
	}
	to = &b->devices[t->to_device];
	if (t->reach == REACH_INPUT && to->source < 0) {
		to->source = t->to_port;
		to->feed_device = t->device;
		to->feed_in = t->xc.in;
		to->feed_out = t->xc.out;
	}
}

/* The first try that anything arrived in tells of a port: later ones use it as
 * a partner. */
static void settle_ends(struct bringup *b)
{
	const struct model_fabric *f = b->fabric;

	for (int d = 0; d < f->n_devices; d++) {
		for (int i = 0; i < f->devices[d].n_in; i++) {
			b->devices[d].in[i].end.port = -1;
		}
		for (int i = 0; i < f->devices[d].n_out; i++) {
			b->devices[d].out[i].end.port = -1;
		}
	}
	for (size_t k = 0; k < b->tries.n; k++) {
		const struct bringup_try *t = &b->tries.v[k];
		struct bringup_end *in, *out;

		in = &b->devices[t->device].in[t->xc.in].end;
		out = &b->devices[t->device].out[t->xc.out].end;
		if (t->reach != REACH_NOTHING && in->port < 0) {
			*in = (struct bringup_end){ .port = t->from_out, .sent = t->sent,
						    .received = t->received };
		}
		if (t->reach != REACH_NOTHING && out->port < 0) {
			*out = (struct bringup_end){
				t->to_port, t->reach == REACH_OUTPUT, t->sent,
				t->received, t->is_split, t->split_port };
		}
	}
}

void bringup_settle(struct bringup *b)
{
	if (b->method == BY_FRAMES) {
		settle_ends(b);
		return;
	}
	for (int d = 0; d < b->fabric->n_devices; d++) {
		struct pair_ports s;

		if (b->devices[d].unmonitored) {
			ports_init(&s, b, d);
			settle_dark(b, &s);
			ports_fini(&s);
		}
	}
	for (size_t k = 0; k < b->tries.n; k++) {
		settle_lit(b, &b->tries.v[k]);
	}
}

static enum bringup_fault find_fault(const struct pair_port *in, const struct pair_port *out)
{
	if (in->clean != out->clean) {
		return in->clean ? FAULT_OUTPUT : FAULT_INPUT;
	}
	/* The try with the good partner told it. */
	return !in->clean && in->settled && out->settled ? FAULT_NONE : FAULT_PATH;
}

enum bringup_fault bringup_judge(const struct bringup *b, const struct bringup_try *t)
{
	enum bringup_fault fault;
	struct pair_ports s;

	if (t->reach != REACH_INPUT || is_clean(t)) {
		return FAULT_NONE;
	}
	ports_init(&s, b, t->device);
	fault = find_fault(&s.in[t->xc.in], &s.out[t->xc.out]);
	ports_fini(&s);
	return fault;
}
