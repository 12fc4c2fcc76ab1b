/* What is tried on devices that measure nothing; see cabling_power_only.h. */
#include "controller/testbed/cabling_power_only.h"

#include <stdlib.h>
#include <string.h>

/* ---- what the file says ---- */

static bool sees(const struct power *p, int device)
{
	return !p->devices[device].blind;
}

static const struct model_trunk *trunk_at(const struct power *p, int device,
					  bool out, int port)
{
	const struct power_device *dev = &p->devices[device];
	int t = (out ? dev->out_trunk : dev->in_trunk)[port];

	return t < 0 ? NULL : &p->fabric->trunks[t];
}

/* Light comes to an input from a host, or from a switch that measures; from an
 * output it can be seen at such a one. */
bool blind_has_way(const struct power *p, int device, bool out, int port)
{
	const struct power_device *dev = &p->devices[device];
	const struct model_trunk *t = trunk_at(p, device, out, port);

	if ((out ? dev->out_bar : dev->in_bar)[port]) {
		return false;
	}
	if (!t) {
		return !out && p->fabric->devices[device].in_port[port] >= 0;
	}
	return sees(p, out ? t->to_device : t->from_device);
}

/* ---- what the tries say ---- */

struct port {
	bool wanted, ready, tried, clean, settled, held;
};

/* Of one device. */
struct stock {
	const struct power *p;
	int device, n_in, n_out;
	struct port *in, *out;
};

static bool is_lit_well(const struct power_try *t)
{
	return t->way != POWER_NOTHING && t->loss_mdb <= t->limit_mdb;
}

static bool is_clean(const struct power_try *t)
{
	return t->way == POWER_INPUT && is_lit_well(t);
}

/* Light that arrives at an output came out of a good input, and by a fibre
 * that ends where it should not. */
static void take_try(const struct power_try *t, struct port *in,
		     struct port *out)
{
	in->tried = out->tried = true;
	in->clean = in->clean || is_lit_well(t);
	out->clean = out->clean || is_clean(t);
	in->settled = in->settled || in->clean || out->clean;
	out->settled = out->settled || in->clean || out->clean;
}

static void take_file(struct stock *s)
{
	for (int i = 0; i < s->n_in; i++) {
		const struct model_trunk *t = trunk_at(s->p, s->device, false,
						       i);

		s->in[i].wanted = blind_has_way(s->p, s->device, false, i);
		s->in[i].ready = s->in[i].wanted &&
			(!t || s->p->devices[t->from_device].source >= 0);
	}
	for (int i = 0; i < s->n_out; i++) {
		s->out[i].wanted = blind_has_way(s->p, s->device, true, i);
		s->out[i].ready = s->out[i].wanted;
	}
}

static void take_tries(struct stock *s)
{
	const struct power *p = s->p;

	for (int pass = 0; pass < 2; pass++) {
		for (size_t k = 0; k < p->tries.n; k++) {
			const struct power_try *t = &p->tries.v[k];

			if (t->device == s->device) {
				take_try(t, &s->in[t->xc.in],
					 &s->out[t->xc.out]);
			}
		}
	}
}

bool blind_is_feed(const struct power *p, const struct power_circuit *c)
{
	for (int d = 0; d < p->fabric->n_devices; d++) {
		const struct power_device *dev = &p->devices[d];

		if (dev->feed_device == c->device && p->devices[c->device].
		    blind && dev->feed_in == c->xc.in &&
		    dev->feed_out == c->xc.out) {
			return true;
		}
	}
	return false;
}

static void take_lit(struct stock *s)
{
	for (int i = 0; i < s->p->n_lit; i++) {
		const struct power_circuit *c = &s->p->lit[i];

		if (c->device == s->device && blind_is_feed(s->p, c)) {
			s->in[c->xc.in].held = true;
			s->out[c->xc.out].held = true;
		}
	}
}

static void stock_fini(struct stock *s)
{
	free(s->in);
	free(s->out);
}

/* False: there is no memory, and nothing to be freed. */
static bool stock_take(struct stock *s, const struct power *p, int device)
{
	const struct model_device *m = &p->fabric->devices[device];

	*s = (struct stock){ p, device, m->n_in, m->n_out, NULL, NULL };
	s->in = calloc((size_t)m->n_in + 1, sizeof(*s->in));
	s->out = calloc((size_t)m->n_out + 1, sizeof(*s->out));
	if (!s->in || !s->out) {
		stock_fini(s);
		return false;
	}
	take_file(s);
	take_tries(s);
	take_lit(s);
	return true;
}

static bool was_tried(const struct stock *s, int in, int out)
{
	for (size_t k = 0; k < s->p->tries.n; k++) {
		const struct power_try *t = &s->p->tries.v[k];

		if (t->device == s->device && t->xc.in == in &&
		    t->xc.out == out) {
			return true;
		}
	}
	return false;
}

/* ---- what is next ---- */

/* Which ports of a side may be in the next pair. */
enum wish { FRESH, OPEN, CLEAN };

static bool fits(const struct port *v, enum wish wish, bool held)
{
	if (v->held && !held) {
		return false;
	}
	return wish == CLEAN ? v->clean :
	       v->ready && !v->settled && (wish == OPEN || !v->tried);
}

/* The first pair of such ports that was not tried; lasers before switches. */
static bool find_pair(const struct stock *s, enum wish in, enum wish out,
		      bool held, struct optics_xc *xc)
{
	for (int pass = 0; pass < 2; pass++) {
		for (int i = 0; i < s->n_in; i++) {
			bool laser = !trunk_at(s->p, s->device, false, i);

			if (laser == pass || !fits(&s->in[i], in, held)) {
				continue;
			}
			for (int o = 0; o < s->n_out; o++) {
				if (fits(&s->out[o], out, held) &&
				    !was_tried(s, i, o)) {
					*xc = (struct optics_xc){ i, o };
					return true;
				}
			}
		}
	}
	return false;
}

static int n_tried(const struct stock *s)
{
	int n = 0;

	for (size_t k = 0; k < s->p->tries.n; k++) {
		n += s->p->tries.v[k].device == s->device;
	}
	return n;
}

static int n_wanted(const struct port *v, int n)
{
	int wanted = 0;

	for (int i = 0; i < n; i++) {
		wanted += v[i].wanted;
	}
	return wanted;
}

/* Without a good pair nobody can tell which fibre is at fault: some more are
 * tried, as many as there are ports, before that is given up. */
static bool find_any(const struct stock *s, struct optics_xc *xc)
{
	int most = n_wanted(s->in, s->n_in) + n_wanted(s->out, s->n_out);

	for (int i = 0; i < s->n_in; i++) {
		if (s->in[i].clean) {
			return false;
		}
	}
	return n_tried(s) < most && find_pair(s, OPEN, OPEN, true, xc);
}

static bool next_of(const struct stock *s, struct optics_xc *xc)
{
	for (int held = 0; held < 2; held++) {
		if (find_pair(s, FRESH, FRESH, held, xc) ||
		    find_pair(s, OPEN, CLEAN, held, xc) ||
		    find_pair(s, CLEAN, OPEN, held, xc)) {
			return true;
		}
	}
	return find_any(s, xc);
}

/* A pair whose circuit was made already, before a bring-up was killed. */
static bool begun(const struct power *p, int *device, struct optics_xc *xc)
{
	for (int i = 0; i < p->n_lit; i++) {
		const struct power_circuit *c = &p->lit[i];
		struct stock s = { .p = p, .device = c->device };

		if (p->devices[c->device].blind && c->made && !c->going &&
		    !blind_is_feed(p, c) &&
		    !was_tried(&s, c->xc.in, c->xc.out)) {
			*device = c->device;
			*xc = c->xc;
			return true;
		}
	}
	return false;
}

bool blind_next(const struct power *p, int *device, struct optics_xc *xc)
{
	bool found = begun(p, device, xc);

	for (int d = 0; !found && d < p->fabric->n_devices; d++) {
		struct stock s;

		if (p->devices[d].blind && stock_take(&s, p, d)) {
			found = next_of(&s, xc);
			*device = d;
			stock_fini(&s);
		}
	}
	return found;
}

/* ---- how much is left ---- */

/* Ports that are wanted and not settled: never tried, and tried in vain. */
static void open_ports(const struct port *v, int n, int *fresh, int *vain)
{
	*fresh = *vain = 0;
	for (int i = 0; i < n; i++) {
		*fresh += v[i].wanted && !v[i].settled && !v[i].tried;
		*vain += v[i].wanted && !v[i].settled && v[i].tried;
	}
}

static int tries_left(const struct stock *s)
{
	int fresh_in, fresh_out, vain_in, vain_out;

	if (!n_wanted(s->in, s->n_in) || !n_wanted(s->out, s->n_out)) {
		return 0;
	}
	open_ports(s->in, s->n_in, &fresh_in, &vain_in);
	open_ports(s->out, s->n_out, &fresh_out, &vain_out);
	return (fresh_in > fresh_out ? fresh_in : fresh_out) + vain_in +
	       vain_out;
}

int64_t blind_moves_left(const struct power *p)
{
	int64_t left = 0;
	struct optics_xc xc;
	int device;

	for (int d = 0; d < p->fabric->n_devices; d++) {
		struct stock s;

		if (p->devices[d].blind && p->devices[d].robot &&
		    stock_take(&s, p, d)) {
			left += 2 * tries_left(&s);
			stock_fini(&s);
		}
	}
	for (int i = 0; i < p->n_lit; i++) {
		left += p->lit[i].made && p->devices[p->lit[i].device].robot;
	}
	/* Of the one that is made already one move is left, not three. */
	return left - (begun(p, &device, &xc) && p->devices[device].robot ?
		       2 : 0);
}

void blind_count(const struct power *p, int *done, int *total)
{
	for (int d = 0; d < p->fabric->n_devices; d++) {
		struct stock s;

		if (!p->devices[d].blind || !stock_take(&s, p, d)) {
			continue;
		}
		for (int i = 0; i < s.n_in + s.n_out; i++) {
			const struct port *v = i < s.n_in ? &s.in[i] :
						&s.out[i - s.n_in];

			*total += v->wanted;
			*done += v->wanted && v->settled;
		}
		stock_fini(&s);
	}
}

/* ---- what follows ---- */

static void settle_dark(struct power *p, const struct stock *s)
{
	struct power_device *dev = &p->devices[s->device];

	for (int i = 0; i < s->n_in; i++) {
		dev->seen[i] = s->in[i].wanted && s->in[i].settled ?
			       POWER_DARK : POWER_UNSEEN;
	}
	for (int i = 0; i < s->n_out; i++) {
		bool dark = s->out[i].wanted && s->out[i].settled;

		dev->far[i] = (struct power_far){
			.way = dark ? POWER_NOTHING : POWER_UNKNOWN,
			.device = -1, .port = -1, .in = -1,
			.path_mdb = POWER_NO_LOSS, .fibre_mdb = POWER_NO_LOSS };
	}
}

static void settle_lit(struct power *p, const struct power_try *t)
{
	struct power_device *dev = &p->devices[t->device];
	struct power_device *to;

	if (t->way == POWER_NOTHING) {
		return;
	}
	dev->seen[t->xc.in] = POWER_LIT;
	dev->far[t->xc.out] = (struct power_far){
		t->way, t->to_device, t->to_port, t->xc.in, POWER_NO_LOSS,
		POWER_NO_LOSS };
	if (t->from_device >= 0) {
		struct power_far *far = &p->devices[t->from_device].
					far[t->from_out];

		far->way = POWER_INPUT;
		far->device = t->device;
		far->port = t->xc.in;
		far->fibre_mdb = POWER_NO_LOSS;
	}
	to = &p->devices[t->to_device];
	if (t->way == POWER_INPUT && to->source < 0) {
		to->source = t->to_port;
		to->feed_device = t->device;
		to->feed_in = t->xc.in;
		to->feed_out = t->xc.out;
	}
}

void blind_settle(struct power *p)
{
	for (int d = 0; d < p->fabric->n_devices; d++) {
		struct stock s;

		if (p->devices[d].blind && stock_take(&s, p, d)) {
			settle_dark(p, &s);
			stock_fini(&s);
		}
	}
	for (size_t k = 0; k < p->tries.n; k++) {
		settle_lit(p, &p->tries.v[k]);
	}
}

enum blind_fault blind_judge(const struct power *p, const struct power_try *t)
{
	enum blind_fault fault = BLIND_AT_PATH;
	struct stock s;

	if (t->way != POWER_INPUT || is_clean(t)) {
		return BLIND_GOOD;
	}
	if (stock_take(&s, p, t->device)) {
		bool in = s.in[t->xc.in].clean, out = s.out[t->xc.out].clean;

		fault = in && !out ? BLIND_AT_OUT :
			out && !in ? BLIND_AT_IN : BLIND_AT_PATH;
		/* Told by the try with the good partner. */
		if (!in && !out && s.in[t->xc.in].settled &&
		    s.out[t->xc.out].settled) {
			fault = BLIND_GOOD;
		}
		stock_fini(&s);
	}
	return fault;
}
