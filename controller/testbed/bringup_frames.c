/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bring-up by frames: every host's netdevs send frames that name their sender
 * while one circuit is set up, so what is received tells both ends of it.
 *
 * A fibre between switches is observed over two circuits, from an input that a
 * host is known to send into and to an output that a host is known to receive
 * from. As written comes first; then each output that the file has a fibre at,
 * and of which nothing is known, is tried against every input that nothing was
 * found at, of its own switch too. Where such a fibre is not as written, a
 * host's may be in its place: those ports are tried as those of hosts then.
 *
 * Frames of a host's port that two others receive tell a splitter. What is
 * received with no circuit at all, over a fibre from a host to itself, tells
 * nothing of switches, and is left out of all that is observed.
 */
#include <stdlib.h>
#include <string.h>

#include "controller/testbed/bringup_private.h"
#include "controller/testbed/testbed.h"

#define FRAMES_MS 10	/* frames each millisecond, for so long */
#define PATIENCE_MS 20
#define DARK_PATIENCE_MS 200	/* before a fibre is called broken */

/* Of another user's circuit: it stays, or ends the run. */
static int keep(struct bringup_run *r, int device, struct optics_xc xc, struct err *err)
{
	struct bringup_device *dev = &r->b->devices[device];

	if (r->options.around) {
		dev->in[xc.in].kept = dev->out[xc.out].kept = true;
		return 0;
	}
	err_set(err, WEFT_ESTALE, "%s holds in%d -> out%d, which is not of this bring-up",
		r->b->fabric->devices[device].name, xc.in + 1, xc.out + 1);
	err_hint(err, "--around leaves it, and its ports, as they are");
	return err->code;
}

/* Our own, if a bring-up was killed. */
static int remove_own(struct bringup_run *r, int device, struct err *err)
{
	struct optics_xc *xcs;
	int n, rc = testbed_device_read(r->devices[device], &xcs, &n, NULL, err);

	if (rc) {
		return rc;
	}
	for (int i = 0; rc == 0 && i < n; i++) {
		rc = bringup_is_lit(r->b, device, xcs[i]) ?
		     testbed_device_change(r->devices[device], false, xcs[i], err) :
		     keep(r, device, xcs[i], err);
	}
	free(xcs);
	return rc;
}

static int begin(struct bringup_run *r, struct err *err)
{
	struct testbed_probe p;
	int rc = 0;

	for (int d = 0; rc == 0 && d < r->b->fabric->n_devices; d++) {
		if (r->devices[d]) {
			rc = remove_own(r, d, err);
		}
	}
	if (rc) {
		return rc;
	}
	r->b->n_lit = 0;
	testbed_probe(r->prober, FRAMES_MS, 1, PATIENCE_MS, NULL, &p);
	r->dark = p.heard;
	r->n_dark = p.n_heard;
	p.heard = NULL;
	testbed_probe_fini(&p);
	return 0;
}

/* ---- one observation ---- */

static bool is_heard_dark(const struct bringup_run *r, const struct testbed_heard *h)
{
	for (int i = 0; i < r->n_dark; i++) {
		if (r->dark[i].from == h->from && r->dark[i].to == h->to &&
		    r->dark[i].at_tx == h->at_tx) {
			return true;
		}
	}
	return false;
}

/* Another port that receives frames of the same one, by its receive fibre. */
static void find_split(const struct bringup_run *r, const struct testbed_probe *p,
		       const struct testbed_heard *best, struct bringup_try *t)
{
	t->is_split = false;
	for (int i = 0; i < p->n_heard && !t->is_split; i++) {
		const struct testbed_heard *h = &p->heard[i];

		t->is_split = h->from == best->from && h->to != best->to && !h->at_tx &&
			      h->to < r->b->fabric->n_ports && !is_heard_dark(r, h);
		t->split_device = -1;
		t->split_port = h->to;
	}
}

/* The pair that most frames came between: there is one, unless a splitter is in
 * the way, and then it is the one at which the file has the receiver, or other
 * programs send on the same machine. Ends of rings are not ports. */
static void find_strongest(const struct bringup_run *r, const struct testbed_probe *p,
			   struct bringup_try *t, struct testbed_heard *best)
{
	int n_ports = r->b->fabric->n_ports;
	int written = r->b->fabric->devices[t->device].out_port[t->xc.out];

	for (int i = 0; i < p->n_heard; i++) {
		const struct testbed_heard *h = &p->heard[i];
		bool wins = best->received && h->from == best->from && best->to != written ?
			    h->to == written : h->received > best->received;

		if (h->from < n_ports && h->to < n_ports && wins && !is_heard_dark(r, h)) {
			*best = *h;
		}
	}
	if (best->received) {
		find_split(r, p, best, t);
	}
}

/* What is received over the circuits that are lit, as a try's observation. A
 * first loss may be the light just coming on, so it is counted again. */
static void observe(struct bringup_run *r, int max_tries, struct bringup_try *t)
{
	struct testbed_heard best = { 0 };

	for (int tries = 0; tries < max_tries; tries++) {
		struct testbed_heard now = { 0 };
		struct testbed_probe p;

		testbed_probe(r->prober, FRAMES_MS, 1, tries ? DARK_PATIENCE_MS : PATIENCE_MS,
			      NULL, &p);
		find_strongest(r, &p, t, &now);
		if (now.received >= best.received) {
			best = now;
			t->sent = now.received ? p.sent[now.from] : 0;
		}
		testbed_probe_fini(&p);
		if (best.received && best.received == t->sent) {
			break;
		}
	}
	t->received = best.received;
	if (best.received) {
		t->reach = best.at_tx ? REACH_OUTPUT : REACH_INPUT;
		t->from_out = best.from;
		t->to_port = best.to;
	}
}

static int try_pair(struct bringup_run *r, struct bringup_try *t, struct err *err)
{
	int rc;

	if ((rc = bringup_light(r, t->device, t->xc, err))) {
		return rc;
	}
	observe(r, MAX_TRIES, t);
	if ((rc = bringup_unlight(r, 0, err))) {
		return rc;
	}
	vec_push(&r->b->tries, *t);
	bringup_settle(r->b);
	return 0;
}

/* ---- between switches ---- */

/* The port of a side whose fibre carried most, or -1. */
static int find_good(const struct bringup *b, int device, bool out)
{
	const struct model_device *d = &b->fabric->devices[device];
	const struct bringup_device *dev = &b->devices[device];
	const struct bringup_port *v = out ? dev->out : dev->in;
	int best = -1;

	for (int i = 0; i < (out ? d->n_out : d->n_in); i++) {
		if (v[i].end.port >= 0 && !v[i].end.reversed && !v[i].kept &&
		    (best < 0 || v[i].end.received > v[best].end.received)) {
			best = i;
		}
	}
	return best;
}

/* From a host over an output and another switch's input to a host. */
static int try_trunk(struct bringup_run *r, int from, int out, int to, int in,
		     int max_tries, struct err *err)
{
	struct bringup *b = r->b;
	struct optics_xc first = { find_good(b, from, false), out };
	struct optics_xc second = { in, find_good(b, to, true) };
	struct bringup_try t = { .device = to, .xc = second, .reach = REACH_NOTHING };
	int rc;

	if ((rc = bringup_light(r, from, first, err)) ||
	    (rc = bringup_light(r, to, second, err))) {
		return rc;
	}
	observe(r, max_tries, &t);
	if (t.received && t.from_out == b->devices[from].in[first.in].end.port &&
	    t.to_port == b->devices[to].out[second.out].end.port) {
		b->devices[from].far[out] = (struct bringup_far){
			.reach = REACH_INPUT, .device = to, .port = in,
			.in = first.in, .fibre_mdb = UNKNOWN_LOSS_MDB,
			.sent = t.sent, .received = t.received };
	}
	return bringup_unlight(r, 0, err);
}

/* Every input that nothing was found at: first those that a fibre of the file
 * ends at. */
static int search_inputs(struct bringup_run *r, int from, int out, struct err *err)
{
	const struct bringup *b = r->b;
	const struct bringup_far *far = &b->devices[from].far[out];
	int rc = 0;

	for (int k = 0; rc == 0 && k < 2 * b->fabric->n_devices; k++) {
		int d = k % b->fabric->n_devices, n = b->fabric->devices[d].n_in;

		for (int in = 0; rc == 0 && far->reach != REACH_INPUT && in < n &&
		     find_good(b, d, true) >= 0; in++) {
			bool is_open = b->fabric->devices[d].in_port[in] == -1;

			if (is_open == (k >= b->fabric->n_devices) &&
			    b->devices[d].in[in].end.port < 0 && !bringup_is_found(b, d, in) &&
			    !bringup_is_kept(b, d, false, in)) {
				rc = try_trunk(r, from, out, d, in, 1, err);
			}
		}
	}
	return rc;
}

/* The receiver of a host that the file has there was not found there. */
static bool is_vacant(const struct bringup *b, int device, int out)
{
	return b->fabric->devices[device].out_port[out] >= 0 &&
	       b->devices[device].out[out].end.port < 0;
}

/* An output at which the file has a fibre, and nothing was found: what no
 * circuit could lead out of stays unknown. */
static int search_output(struct bringup_run *r, int device, int out, struct err *err)
{
	const struct model_trunk *t = bringup_trunk_at(r->b, device, true, out);
	struct bringup_far *far = &r->b->devices[device].far[out];
	int rc;

	if (far->reach != REACH_UNKNOWN || find_good(r->b, device, false) < 0 ||
	    bringup_is_kept(r->b, device, true, out) || (!t && !is_vacant(r->b, device, out))) {
		return 0;
	}
	rc = search_inputs(r, device, out, err);
	if (rc == 0 && far->reach == REACH_UNKNOWN &&
	    (!t || find_good(r->b, t->to_device, true) >= 0)) {
		far->reach = REACH_NOTHING;
	}
	return rc;
}

static int try_written(struct bringup_run *r, const struct model_trunk *t, struct err *err)
{
	if (bringup_far_of(r->b, t)->reach != REACH_UNKNOWN ||
	    bringup_is_kept(r->b, t->from_device, true, t->from_port) ||
	    find_good(r->b, t->from_device, false) < 0 || find_good(r->b, t->to_device, true) < 0) {
		return 0;
	}
	return try_trunk(r, t->from_device, t->from_port, t->to_device, t->to_port, MAX_TRIES,
			 err);
}

static int count_known(const struct bringup *b)
{
	int n = 0;

	for (int d = 0; d < b->fabric->n_devices; d++) {
		for (int i = 0; i < b->fabric->devices[d].n_out; i++) {
			n += b->devices[d].far[i].reach != REACH_UNKNOWN;
		}
	}
	return n;
}

/* Those that are as written are known before others are searched for. */
static int try_trunks(struct bringup_run *r, bool *tried, struct err *err)
{
	const struct model_fabric *f = r->b->fabric;
	int before = count_known(r->b), rc = 0;

	for (int i = 0; rc == 0 && i < f->n_trunks; i++) {
		rc = try_written(r, &f->trunks[i], err);
	}
	for (int d = 0; rc == 0 && d < f->n_devices; d++) {
		for (int i = 0; rc == 0 && i < f->devices[d].n_out; i++) {
			rc = search_output(r, d, i, err);
		}
	}
	*tried = count_known(r->b) > before;
	return rc;
}

const struct bringup_observer bringup_frames = {
	.begin = begin, .try_trunks = try_trunks, .try_pair = try_pair,
};
