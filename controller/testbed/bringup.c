/* Lighting one circuit after the other; see bringup.h. */
#include "controller/testbed/bringup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FRAMES_MS 10	/* frames each millisecond, for so long */
#define PATIENCE_MS 20
#define DARK_PATIENCE_MS 200	/* before a fibre is called broken */
#define DARK_TRIES 3

struct walk {
	struct bringup *b;
	struct testbed_prober *prober;
	struct testbed_device **devices;
	struct testbed_device *dev;	/* the switch being walked */
	int device;
	bringup_step_fn fn;
	void *arg;
};

/* ---- the record ---- */

int bringup_new(const struct model_fabric *f, struct bringup **out,
		struct err *err)
{
	struct bringup *b = calloc(1, sizeof(*b));

	*out = NULL;
	if (!b) {
		return err_nomem(err);
	}
	b->fabric = f;
	b->lit_device = b->next_device = -1;
	b->devices = calloc((size_t)f->n_devices + 1, sizeof(*b->devices));
	for (int d = 0; b->devices && d < f->n_devices; d++) {
		struct bringup_device *dev = &b->devices[d];
		int n_in = f->devices[d].n_in, n_out = f->devices[d].n_out;

		dev->in = calloc((size_t)n_in + 1, sizeof(*dev->in));
		dev->out = calloc((size_t)n_out + 1, sizeof(*dev->out));
		dev->far = calloc((size_t)n_out + 1, sizeof(*dev->far));
		if (!dev->in || !dev->out || !dev->far) {
			bringup_free(b);
			return err_nomem(err);
		}
		for (int i = 0; i < n_in; i++) {
			dev->in[i].port = BRINGUP_UNKNOWN;
		}
		for (int i = 0; i < n_out; i++) {
			dev->out[i].port = BRINGUP_UNKNOWN;
			dev->far[i].device = BRINGUP_UNKNOWN;
		}
	}
	if (!b->devices) {
		bringup_free(b);
		return err_nomem(err);
	}
	*out = b;
	return 0;
}

void bringup_free(struct bringup *b)
{
	if (!b) {
		return;
	}
	for (int d = 0; b->devices && d < b->fabric->n_devices; d++) {
		free(b->devices[d].in);
		free(b->devices[d].out);
		free(b->devices[d].far);
	}
	free(b->devices);
	free(b);
}

/* Fibres between switches carry no host's frames when lit alone: they come
 * last. */
static bool is_trunk(const struct bringup *b, int device, bool out, int port)
{
	const struct model_device *d = &b->fabric->devices[device];

	return (out ? d->out_port : d->in_port)[port] == MODEL_AT_TRUNK;
}

static bool is_open(const struct bringup *b, int device, bool out, int port)
{
	const struct bringup_device *dev = &b->devices[device];

	return (out ? dev->out : dev->in)[port].port == BRINGUP_UNKNOWN &&
	       !is_trunk(b, device, out, port);
}

static void count(const struct bringup *b, int *done, int *total)
{
	*done = 0;
	*total = 0;
	for (int d = 0; d < b->fabric->n_devices; d++) {
		const struct model_device *m = &b->fabric->devices[d];

		for (int i = 0; i < m->n_in + m->n_out; i++) {
			bool out = i >= m->n_in;
			int port = out ? i - m->n_in : i;

			*total += !is_trunk(b, d, out, port) || out;
			*done += !is_trunk(b, d, out, port) ?
				 !is_open(b, d, out, port) :
				 out && b->devices[d].far[port].device !=
				 BRINGUP_UNKNOWN;
		}
	}
}

/* ---- one circuit ---- */

static int tell(struct walk *w, struct err *err)
{
	struct bringup *b = w->b;
	int done, total, rc, len;
	char text[224];

	count(b, &done, &total);
	len = snprintf(text, sizeof(text), "%s.in%d -> out%d",
		       b->fabric->devices[w->device].name, b->lit.in + 1,
		       b->lit.out + 1);
	if (b->next_device >= 0) {
		snprintf(text + len, sizeof(text) - (size_t)len,
			 ", %s.in%d -> out%d",
			 b->fabric->devices[b->next_device].name,
			 b->next.in + 1, b->next.out + 1);
	}
	rc = w->fn ? w->fn(b, done, total, text, w->arg, err) : 0;
	return rc > 0 ? err_set(err, WEFT_ECANCELED, "stopped at %s", text) :
	       rc;
}

/* The strongest that was heard: there is one, unless others send on the same
 * machine. */
static void strongest(const struct testbed_probe *p, int n_ports,
		      struct testbed_heard *best)
{
	for (int i = 0; i < p->n_heard; i++) {
		/* Rings are not walked: their fibres are not in the file. */
		if (p->heard[i].from < n_ports && p->heard[i].to < n_ports &&
		    p->heard[i].received > best->received) {
			*best = p->heard[i];
		}
	}
}

/* Listens while a circuit is lit. A first loss may be the light just coming
 * on, so that what was heard is counted again. */
static int listen_to(struct walk *w, int most, struct testbed_heard *heard,
		     int64_t *sent, struct err *err)
{
	int rc = 0, tries = 0;

	memset(heard, 0, sizeof(*heard));
	while (rc == 0 && tries < most) {
		struct testbed_heard now = { 0 };
		struct testbed_probe p;

		rc = testbed_probe(w->prober, FRAMES_MS, 1,
				   tries ? DARK_PATIENCE_MS : PATIENCE_MS,
				   NULL, &p, err);
		if (rc) {
			return rc;
		}
		strongest(&p, w->b->fabric->n_ports, &now);
		if (now.received >= heard->received) {
			*heard = now;
			*sent = now.received ? p.sent[now.from] : 0;
		}
		testbed_probe_fini(&p);
		if (heard->received && heard->received == *sent) {
			break;
		}
		tries++;
	}
	return rc;
}

static void note(struct walk *w, struct optics_xc xc,
		 const struct testbed_heard *h, int64_t sent)
{
	struct bringup_device *dev = &w->b->devices[w->device];

	dev->in[xc.in] = (struct bringup_end){ h->from, false, sent,
					       h->received };
	dev->out[xc.out] = (struct bringup_end){ h->to, h->at_tx, sent,
						 h->received };
}

/* Lights one circuit, alone; *any says whether anybody heard anything. */
static int try_circuit(struct walk *w, struct optics_xc xc, bool *any,
		       struct err *err)
{
	struct testbed_heard heard;
	int64_t sent = 0;
	int rc, dark;

	*any = false;
	w->b->lit = xc;
	w->b->lit_device = w->device;
	rc = tell(w, err);	/* kept before there is light to explain */
	if (rc == 0) {
		rc = testbed_device_light(w->dev, &xc, err);
	}
	if (rc == 0) {
		rc = listen_to(w, DARK_TRIES, &heard, &sent, err);
	}
	dark = testbed_device_light(w->dev, NULL, rc ? NULL : err);
	if (dark == 0) {
		w->b->lit_device = -1;
	}
	if (rc == 0 && heard.received) {
		*any = true;
		note(w, xc, &heard, sent);
	}
	return rc ? rc : dark;
}

/* ---- one switch ---- */

static int straight_through(struct walk *w, struct err *err)
{
	const struct model_device *d = &w->b->fabric->devices[w->device];
	int n = d->n_in < d->n_out ? d->n_in : d->n_out, rc = 0;
	bool any;

	for (int k = 0; rc == 0 && k < n; k++) {
		if (is_open(w->b, w->device, false, k) &&
		    is_open(w->b, w->device, true, k)) {
			rc = try_circuit(w, (struct optics_xc){ k, k }, &any,
					 err);
		}
	}
	return rc;
}

/* A port whose fibre carried all that was sent, or -1. */
static int good(const struct walk *w, int device, bool out)
{
	const struct model_device *d = &w->b->fabric->devices[device];
	const struct bringup_device *dev = &w->b->devices[device];
	const struct bringup_end *v = out ? dev->out : dev->in;
	int best = -1;

	for (int i = 0; i < (out ? d->n_out : d->n_in); i++) {
		if (v[i].port >= 0 && !v[i].crossed &&
		    (best < 0 || v[i].received > v[best].received)) {
			best = i;
		}
	}
	return best;
}

/* The ports of one side that were dark, each with a partner that works. */
static int with_partner(struct walk *w, bool out, struct err *err)
{
	const struct model_device *d = &w->b->fabric->devices[w->device];
	struct bringup_device *dev = &w->b->devices[w->device];
	struct bringup_end *v = out ? dev->out : dev->in;
	int rc = 0;

	for (int i = 0; rc == 0 && i < (out ? d->n_out : d->n_in); i++) {
		int partner = good(w, w->device, !out);
		struct bringup_end kept;
		bool any = false;

		if (!is_open(w->b, w->device, out, i)) {
			continue;
		}
		if (partner >= 0) {
			struct optics_xc xc = { out ? partner : i,
					       out ? i : partner };
			struct bringup_end *p = out ? &dev->in[partner] :
						&dev->out[partner];

			kept = *p;
			rc = try_circuit(w, xc, &any, err);
			*p = kept;
		}
		if (rc == 0 && !any) {
			v[i].port = BRINGUP_NONE;
		}
	}
	return rc;
}

/* ---- between switches ---- */

/* Another fibre is known to end there. */
static bool is_found(const struct bringup *b, int device, int in)
{
	for (int d = 0; d < b->fabric->n_devices; d++) {
		for (int i = 0; i < b->fabric->devices[d].n_out; i++) {
			if (b->devices[d].far[i].device == device &&
			    b->devices[d].far[i].port == in) {
				return true;
			}
		}
	}
	return false;
}

static int make_both_dark(struct walk *w, struct err *err)
{
	struct bringup *b = w->b;
	int rc = testbed_device_light(w->devices[b->next_device], NULL, err);

	if (rc == 0) {
		b->next_device = -1;
		rc = testbed_device_light(w->devices[w->device], NULL, err);
	}
	if (rc == 0) {
		b->lit_device = -1;
	}
	return rc;
}

/* Lights a way from a host over out and another switch's in to a host. */
static int try_way(struct walk *w, int out, int device, int in, int most,
		   struct err *err)
{
	struct bringup *b = w->b;
	struct bringup_far *far = &b->devices[w->device].far[out];
	struct testbed_heard heard = { 0 };
	struct err own = { 0 };
	int64_t sent = 0;
	int rc, dark;

	b->lit = (struct optics_xc){ good(w, w->device, false), out };
	b->next = (struct optics_xc){ in, good(w, device, true) };
	b->lit_device = w->device;
	b->next_device = device;
	rc = tell(w, err);
	if (rc == 0) {
		rc = testbed_device_light(w->devices[w->device], &b->lit, err);
	}
	if (rc == 0) {
		rc = testbed_device_light(w->devices[device], &b->next, err);
	}
	if (rc == 0) {
		rc = listen_to(w, most, &heard, &sent, err);
	}
	if (rc == 0 && heard.received &&
	    heard.from == b->devices[w->device].in[b->lit.in].port &&
	    heard.to == b->devices[device].out[b->next.out].port) {
		*far = (struct bringup_far){ device, in, sent, heard.received };
	}
	dark = make_both_dark(w, rc ? &own : err);
	return rc ? rc : dark;
}

/* Every input of other switches that a fibre of the file ends at. */
static int search_far(struct walk *w, int out, struct err *err)
{
	const struct model_fabric *f = w->b->fabric;
	const struct bringup_far *far = &w->b->devices[w->device].far[out];
	int rc = 0;

	for (int t = 0; rc == 0 && far->device < 0 && t < f->n_trunks; t++) {
		int d = f->trunks[t].to_device, in = f->trunks[t].to_port;

		if (d != w->device && good(w, d, true) >= 0 &&
		    !is_found(w->b, d, in)) {
			rc = try_way(w, out, d, in, 1, err);
		}
	}
	return rc;
}

/* Those that are as written are known before others are searched for. */
static int walk_trunks(struct walk *w, bool search, struct err *err)
{
	struct bringup *b = w->b;
	const struct model_fabric *f = b->fabric;
	int rc = 0;

	for (int t = 0; rc == 0 && t < f->n_trunks; t++) {
		const struct model_trunk *trunk = &f->trunks[t];
		struct bringup_far *far = &b->devices[trunk->from_device].
					  far[trunk->from_port];
		bool known = far->device != BRINGUP_UNKNOWN;

		w->device = trunk->from_device;
		if (known || good(w, w->device, false) < 0) {
			continue;
		}
		if (search) {
			rc = search_far(w, trunk->from_port, err);
		} else if (good(w, trunk->to_device, true) >= 0) {
			rc = try_way(w, trunk->from_port, trunk->to_device,
				     trunk->to_port, DARK_TRIES, err);
		}
		if (rc == 0 && search && far->device < 0 &&
		    good(w, trunk->to_device, true) >= 0) {
			far->device = BRINGUP_NONE;
		}
	}
	return rc;
}

/* ---- the whole ---- */

static bool is_ours(const struct bringup *b, int device, struct optics_xc xc)
{
	return (b->lit_device == device && optics_xc_cmp(&b->lit, &xc) == 0) ||
	       (b->next_device == device && optics_xc_cmp(&b->next, &xc) == 0);
}

/* Only our own circuits may be there, if a bring-up was killed. */
static int make_dark(struct walk *w, struct err *err)
{
	const struct bringup *b = w->b;
	struct optics_xc *xcs;
	int n, rc = testbed_device_read(w->dev, &xcs, &n, NULL, err);
	bool ours = rc == 0 && n == 1 && is_ours(b, w->device, xcs[0]);

	free(xcs);
	if (rc == 0 && n && !ours) {
		rc = err_set(err, WEFT_ESTALE, "%s holds %d circuits; bring-up "
			     "needs it dark", b->fabric->devices[w->device].name,
			     n);
	} else if (rc == 0 && n) {
		rc = testbed_device_light(w->dev, NULL, err);
	}
	return rc;
}

static int walk_device(struct walk *w, struct err *err)
{
	int rc = straight_through(w, err);

	if (rc == 0) {
		rc = with_partner(w, false, err);
	}
	return rc ? rc : with_partner(w, true, err);
}

/* All switches must be dark before the first circuit: light of another one
 * would be heard as well. */
static int each_device(struct walk *w, bool walk, struct err *err)
{
	int rc = 0;

	for (int d = 0; rc == 0 && d < w->b->fabric->n_devices; d++) {
		w->device = d;
		w->dev = w->devices[d];
		if (w->dev) {
			rc = walk ? walk_device(w, err) : make_dark(w, err);
		}
	}
	return rc;
}

/* Rings are not walked. */
static int open_devices(struct walk *w, struct err *err)
{
	const struct model_fabric *f = w->b->fabric;
	int rc;

	w->devices = calloc((size_t)f->n_devices + 1, sizeof(*w->devices));
	rc = w->devices ? 0 : err_nomem(err);
	for (int d = 0; rc == 0 && d < f->n_devices; d++) {
		if (f->devices[d].kind != MODEL_RING) {
			rc = testbed_device_new(f, d, &w->devices[d], err);
		}
	}
	return rc;
}

static void close_devices(struct walk *w)
{
	for (int d = 0; w->devices && d < w->b->fabric->n_devices; d++) {
		testbed_device_free(w->devices[d]);
	}
	free(w->devices);
}

int bringup_run(struct bringup *b, struct testbed *t, bringup_step_fn fn,
		void *arg, struct err *err)
{
	struct walk w = { .b = b, .fn = fn, .arg = arg };
	int rc = testbed_prober_new(t, &w.prober, err);

	if (rc == 0) {
		rc = open_devices(&w, err);
	}
	if (rc == 0) {
		rc = each_device(&w, false, err);
	}
	if (rc == 0) {
		b->lit_device = b->next_device = -1;
		rc = each_device(&w, true, err);
	}
	for (int search = 0; rc == 0 && search < 2; search++) {
		rc = walk_trunks(&w, search, err);
	}
	close_devices(&w);
	testbed_prober_free(w.prober);
	return rc;
}
