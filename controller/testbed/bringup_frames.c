/*
 * Bring-up by frames: every host's netdevs send frames that name their sender
 * while one circuit is set up, so what is received tells both ends of it.
 *
 * A fibre between switches is observed over two circuits, from an input that a
 * host is known to send into and to an output that a host is known to receive
 * from. As written comes first; then each output that is still open is tried
 * against every input that no fibre was found at.
 */
#include <stdlib.h>
#include <string.h>

#include "controller/testbed/bringup_private.h"
#include "controller/testbed/testbed.h"

#define FRAMES_MS 10	/* frames each millisecond, for so long */
#define PATIENCE_MS 20
#define DARK_PATIENCE_MS 200	/* before a fibre is called broken */

/* Another user's circuits would be heard as well. Only our own may be there,
 * if a bring-up was killed. */
static int remove_own(struct bringup_run *r, int device, struct err *err)
{
	struct optics_xc *xcs;
	int n, rc = testbed_device_read(r->devices[device], &xcs, &n, NULL, err);

	if (rc) {
		return rc;
	}
	if (n == 1 && bringup_is_lit(r->b, device, xcs[0])) {
		rc = testbed_device_change(r->devices[device], false, xcs[0], err);
	} else if (n) {
		rc = err_set(err, WEFT_ESTALE, "%s holds %d circuits; bring-up "
			     "needs it dark",
			     r->b->fabric->devices[device].name, n);
	}
	free(xcs);
	return rc;
}

static int begin(struct bringup_run *r, struct err *err)
{
	int rc = 0;

	for (int d = 0; rc == 0 && d < r->b->fabric->n_devices; d++) {
		if (r->devices[d]) {
			rc = remove_own(r, d, err);
		}
	}
	if (rc == 0) {
		r->b->n_lit = 0;
	}
	return rc;
}

/* ---- one observation ---- */

/* The pair that most frames came between: there is one, unless other programs
 * send on the same machine. Ends of rings are not ports. */
static void find_strongest(const struct testbed_probe *p, int n_ports, struct testbed_heard *best)
{
	for (int i = 0; i < p->n_heard; i++) {
		if (p->heard[i].from < n_ports && p->heard[i].to < n_ports &&
		    p->heard[i].received > best->received) {
			*best = p->heard[i];
		}
	}
}

/* What is received over the circuits that are lit, as a try's observation. A
 * first loss may be the light just coming on, so it is counted again. */
static int observe(struct bringup_run *r, int max_tries, struct bringup_try *t, struct err *err)
{
	struct testbed_heard best = { 0 };

	for (int tries = 0; tries < max_tries; tries++) {
		struct testbed_heard now = { 0 };
		struct testbed_probe p;
		int rc = testbed_probe(r->prober, FRAMES_MS, 1, tries ?
				       DARK_PATIENCE_MS : PATIENCE_MS, NULL,
				       &p, err);

		if (rc) {
			return rc;
		}
		find_strongest(&p, r->b->fabric->n_ports, &now);
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
	return 0;
}

static int try_pair(struct bringup_run *r, struct bringup_try *t, struct err *err)
{
	int rc;

	if ((rc = bringup_light(r, t->device, t->xc, err)) ||
	    (rc = observe(r, MAX_TRIES, t, err)) ||
	    (rc = bringup_unlight(r, 0, err))) {
		return rc;
	}
	if (vec_push(&r->b->tries, *t)) {
		return err_nomem(err);
	}
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
		if (v[i].end.port >= 0 && !v[i].end.reversed &&
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
	struct bringup_try t = { .reach = REACH_NOTHING };
	int rc;

	if ((rc = bringup_light(r, from, first, err)) || (rc = bringup_light(r, to, second, err)) ||
	    (rc = observe(r, max_tries, &t, err))) {
		return rc;
	}
	if (t.received && t.from_out == b->devices[from].in[first.in].end.port &&
	    t.to_port == b->devices[to].out[second.out].end.port) {
		b->devices[from].far[out] = (struct bringup_far){
			.reach = REACH_INPUT, .device = to, .port = in,
			.in = first.in, .fibre_mdb = UNKNOWN_LOSS_MDB,
			.sent = t.sent, .received = t.received };
	}
	return bringup_unlight(r, 0, err);
}

/* Another fibre is known to end there. */
static bool is_found(const struct bringup *b, int device, int in)
{
	for (int d = 0; d < b->fabric->n_devices; d++) {
		for (int i = 0; i < b->fabric->devices[d].n_out; i++) {
			const struct bringup_far *far = &b->devices[d].far[i];

			if (far->reach == REACH_INPUT && far->device == device && far->port == in) {
				return true;
			}
		}
	}
	return false;
}

/* Every input of other switches that a fibre of the file ends at. */
static int search_inputs(struct bringup_run *r, int from, int out, struct err *err)
{
	const struct model_fabric *f = r->b->fabric;
	const struct bringup_far *far = &r->b->devices[from].far[out];
	int rc = 0;

	for (int i = 0; rc == 0 && far->reach != REACH_INPUT && i < f->n_trunks; i++) {
		int d = f->trunks[i].to_device, in = f->trunks[i].to_port;

		if (d != from && find_good(r->b, d, true) >= 0 && !is_found(r->b, d, in)) {
			rc = try_trunk(r, from, out, d, in, 1, err);
		}
	}
	return rc;
}

/* What no circuit could lead out of stays unknown. */
static int try_written_or_search(struct bringup_run *r, const struct model_trunk *t, bool search,
				 struct err *err)
{
	struct bringup_far *far = &r->b->devices[t->from_device].
				  far[t->from_port];
	bool can_receive = find_good(r->b, t->to_device, true) >= 0;
	int rc = 0;

	if (far->reach != REACH_UNKNOWN || find_good(r->b, t->from_device, false) < 0) {
		return 0;
	}
	if (search) {
		rc = search_inputs(r, t->from_device, t->from_port, err);
	} else if (can_receive) {
		rc = try_trunk(r, t->from_device, t->from_port, t->to_device,
			       t->to_port, MAX_TRIES, err);
	}
	if (rc == 0 && search && can_receive && far->reach == REACH_UNKNOWN) {
		far->reach = REACH_NOTHING;
	}
	return rc;
}

/* Those that are as written are known before others are searched for. */
static int try_trunks(struct bringup_run *r, bool *tried, struct err *err)
{
	const struct model_fabric *f = r->b->fabric;
	int rc = 0;

	*tried = false;
	for (int i = 0; rc == 0 && i < 2 * f->n_trunks; i++) {
		rc = try_written_or_search(r, &f->trunks[i % f->n_trunks], i >= f->n_trunks, err);
	}
	return rc;
}

const struct bringup_observer bringup_frames = {
	.begin = begin, .try_trunks = try_trunks, .try_pair = try_pair,
};
