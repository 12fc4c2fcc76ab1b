/* Fibres between switches as found against as written; see cabling_power.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/testbed/cabling_power_only.h"

/* ---- words ---- */

static void put_place(const struct power *p, int device, const char *side,
		      int port, char out[256])
{
	snprintf(out, 256, "%.200s.%s%d", p->fabric->devices[device].name,
		 side, port + 1);
}

static bool has_light(int32_t mdbm)
{
	return mdbm > POWER_DARK_MDBM;
}

static const struct power_far *far_of(const struct power *p,
				      const struct model_trunk *t)
{
	return &p->devices[t->from_device].far[t->from_port];
}

static bool leads_to(const struct power_far *far, const struct model_trunk *t)
{
	return far->way == POWER_INPUT && far->device == t->to_device &&
	       far->port == t->to_port;
}

static int32_t limit_of(const struct model_trunk *t)
{
	return t->loss_mdb + POWER_SLACK_MDB;
}

/* ---- what differs ---- */

struct list {
	const struct power *p;
	struct power_finding *v;
	int n;
};

static struct power_finding *add(struct list *l, enum bringup_kind kind)
{
	struct power_finding *d = &l->v[l->n++];

	*d = (struct power_finding){ .kind = kind };
	return d;
}

static bool is_reversed(const struct power *p, const struct model_port *h)
{
	return h->rx_device >= 0 &&
	       has_light(p->devices[h->rx_device].out[h->rx_port]);
}

static bool rx_is_gone(const struct power *p, const struct model_port *h)
{
	return h->rx_device >= 0 && p->devices[h->rx_device].
		far[h->rx_port].way == POWER_INPUT;
}

static bool tx_is_dark(const struct power *p, const struct model_port *h)
{
	const struct power_device *dev = h->tx_device < 0 ? NULL :
					 &p->devices[h->tx_device];

	return dev && (dev->blind ? dev->seen[h->tx_port] == POWER_DARK :
				    !has_light(dev->in[h->tx_port]));
}

/* Light could be seen behind a blind device, and none was that told of the
 * input or output. */
static bool could_tell(const struct power *p, int device, bool out, int port)
{
	const struct model_device *m = &p->fabric->devices[device];
	int n = out ? m->n_in : m->n_out;

	for (int i = 0; i < n && blind_has_way(p, device, out, port); i++) {
		if (blind_has_way(p, device, !out, i)) {
			return true;
		}
	}
	return false;
}

static bool is_unseen(const struct power *p, int device, int in)
{
	return p->devices[device].blind &&
	       p->devices[device].seen[in] == POWER_UNSEEN;
}

static void compare_host(struct list *l, const struct model_port *h)
{
	const struct power *p = l->p;
	bool dark = tx_is_dark(p, h);
	struct power_finding *d;

	if (is_reversed(p, h)) {
		d = add(l, BRINGUP_REVERSED);
		snprintf(d->fibre, sizeof(d->fibre), "%.250s", h->name);
		put_place(p, h->rx_device, "out", h->rx_port, d->found);
	} else if (dark) {
		d = add(l, BRINGUP_MISSING);
		snprintf(d->fibre, sizeof(d->fibre), "%.250s.tx", h->name);
	}
	if (dark) {
		put_place(p, h->tx_device, "in", h->tx_port, d->written);
	}
	if (h->tx_device >= 0 && is_unseen(p, h->tx_device, h->tx_port) &&
	    could_tell(p, h->tx_device, false, h->tx_port)) {
		d = add(l, BRINGUP_UNLIT);
		snprintf(d->fibre, sizeof(d->fibre), "%.250s.tx", h->name);
		put_place(p, h->tx_device, "in", h->tx_port, d->written);
	}
	if (rx_is_gone(p, h)) {
		d = add(l, BRINGUP_MISSING);
		snprintf(d->fibre, sizeof(d->fibre), "%.250s.rx", h->name);
		put_place(p, h->rx_device, "out", h->rx_port, d->written);
	}
}

/* Whose written end this one was found at, or -1. */
static int owner_of(const struct power *p, const struct power_far *far)
{
	for (int i = 0; i < p->fabric->n_trunks; i++) {
		if (leads_to(far, &p->fabric->trunks[i])) {
			return i;
		}
	}
	return -1;
}

static enum bringup_kind kind_of(const struct power *p, const struct power_far *far,
				 const struct model_trunk *t, int owner)
{
	switch (far->way) {
	case POWER_UNKNOWN: return BRINGUP_UNLIT;
	case POWER_NOTHING: return BRINGUP_MISSING;
	case POWER_OUTPUT: return BRINGUP_REVERSED;
	case POWER_INPUT: break;
	}
	return owner >= 0 && leads_to(far_of(p, &p->fabric->trunks[owner]), t) ?
	       BRINGUP_SWAPPED : BRINGUP_MOVED;
}

static struct power_finding *add_trunk(struct list *l, enum bringup_kind kind,
				       const struct model_trunk *t)
{
	const struct power_far *far = far_of(l->p, t);
	struct power_finding *d = add(l, kind);

	put_place(l->p, t->from_device, "out", t->from_port, d->fibre);
	put_place(l->p, t->to_device, "in", t->to_port, d->written);
	if (far->device >= 0 && far->way != POWER_UNKNOWN) {
		put_place(l->p, far->device,
			  far->way == POWER_OUTPUT ? "out" : "in", far->port,
			  d->found);
	}
	return d;
}

/* Nothing that measures can tell of it, but what was seen all the same. */
static bool trunk_is_unseen(const struct power *p, const struct model_trunk *t)
{
	const struct power_far *far = far_of(p, t);

	if (p->devices[t->from_device].blind && far->way == POWER_UNKNOWN) {
		return !could_tell(p, t->from_device, true, t->from_port);
	}
	return far->way <= POWER_NOTHING &&
	       is_unseen(p, t->to_device, t->to_port) &&
	       !could_tell(p, t->to_device, false, t->to_port);
}

/* A fibre into a blind device that was never seen through. */
static bool trunk_is_unlit(const struct power *p, const struct model_trunk *t)
{
	return far_of(p, t)->way == POWER_NOTHING &&
	       is_unseen(p, t->to_device, t->to_port);
}

static void compare_trunk(struct list *l, int index)
{
	const struct model_fabric *f = l->p->fabric;
	const struct model_trunk *t = &f->trunks[index];
	const struct power_far *far = far_of(l->p, t);
	struct power_finding *d;

	if (trunk_is_unseen(l->p, t)) {
		return;
	}
	if (trunk_is_unlit(l->p, t)) {
		add_trunk(l, BRINGUP_UNLIT, t);
		return;
	}

	if (far->way == POWER_INPUT && far->fibre_mdb > limit_of(t)) {
		d = add_trunk(l, BRINGUP_LOSSY, t);
		d->loss_mdb = far->fibre_mdb;
		d->limit_mdb = limit_of(t);
	}
	if (!leads_to(far, t)) {
		int owner = far->way == POWER_INPUT ? owner_of(l->p, far) : -1;
		enum bringup_kind kind = kind_of(l->p, far, t, owner);

		/* An exchange is told once. */
		if (kind == BRINGUP_SWAPPED && owner < index) {
			return;
		}
		d = add_trunk(l, kind, t);
		if (owner >= 0) {
			put_place(l->p, f->trunks[owner].from_device, "out",
				  f->trunks[owner].from_port, d->with);
		}
	}
}

static void compare_output(struct list *l, int device, int port)
{
	const struct power_device *dev = &l->p->devices[device];
	const struct model_device *m = &l->p->fabric->devices[device];
	const struct power_far *far = &dev->far[port];
	bool dark = far->path_mdb == POWER_NO_LIGHT;
	struct power_finding *d;

	if (far->way == POWER_INPUT && m->out_port[port] != MODEL_AT_TRUNK) {
		d = add(l, BRINGUP_UNWRITTEN);
		put_place(l->p, device, "out", port, d->fibre);
		put_place(l->p, far->device, "in", far->port, d->found);
	}
	if (has_light(dev->out[port]) && m->out_port[port] < 0) {
		d = add(l, BRINGUP_UNWRITTEN);
		put_place(l->p, device, "out", port, d->found);
	}
	if (dev->blind || far->way == POWER_UNKNOWN || far->in < 0 ||
	    (!dark && (!m->loss_mdb ||
		       far->path_mdb <= m->loss_mdb + POWER_SLACK_MDB))) {
		return;
	}
	d = add(l, dark ? BRINGUP_MISSING : BRINGUP_LOSSY);
	snprintf(d->fibre, sizeof(d->fibre), "%.200s.in%d -> out%d", m->name,
		 far->in + 1, port + 1);
	d->loss_mdb = far->path_mdb;
	d->limit_mdb = m->loss_mdb + POWER_SLACK_MDB;
}

/* A blind device has a circuit of somebody else to this input. */
static bool is_kept(const struct power *p, int device, int in)
{
	int t = p->devices[device].in_trunk[in];
	const struct model_trunk *trunk = t < 0 ? NULL : &p->fabric->trunks[t];

	return trunk && p->devices[trunk->from_device].blind &&
	       p->devices[trunk->from_device].out_bar[trunk->from_port];
}

static void compare_device(struct list *l, int device)
{
	const struct model_device *m = &l->p->fabric->devices[device];

	for (int i = 0; i < m->n_in; i++) {
		if (m->in_port[i] < 0 && !l->p->devices[device].blind &&
		    !is_kept(l->p, device, i) && has_light(l->p->devices[device].in[i])) {
			struct power_finding *d = add(l, BRINGUP_UNWRITTEN);

			put_place(l->p, device, "in", i, d->found);
		}
	}
	for (int i = 0; i < m->n_out; i++) {
		compare_output(l, device, i);
	}
}

/* The fibre into a blind device's input, as the file has it. */
static void put_feeder(const struct power *p, const struct power_try *t,
		       char out[256])
{
	const struct model_device *m = &p->fabric->devices[t->device];
	int host = m->in_port[t->xc.in];

	if (t->from_device >= 0) {
		put_place(p, t->from_device, "out", t->from_out, out);
	} else if (host >= 0) {
		snprintf(out, 256, "%.250s.tx", p->fabric->ports[host].name);
	} else {
		put_place(p, t->device, "in", t->xc.in, out);
	}
}

/* An earlier try told it. */
static bool is_told(const struct power *p, size_t k, enum blind_fault fault)
{
	const struct power_try *t = &p->tries.v[k];

	for (size_t i = 0; i < k; i++) {
		const struct power_try *e = &p->tries.v[i];

		if (e->device == t->device && fault != BLIND_AT_PATH &&
		    (fault == BLIND_AT_IN ? e->xc.in == t->xc.in :
					    e->xc.out == t->xc.out) &&
		    blind_judge(p, e) == fault) {
			return true;
		}
	}
	return false;
}

/* What loses too much on a way through a blind device. */
static void compare_try(struct list *l, size_t k)
{
	const struct power_try *t = &l->p->tries.v[k];
	enum blind_fault fault = blind_judge(l->p, t);
	struct power_finding *d;

	if (fault == BLIND_GOOD || is_told(l->p, k, fault)) {
		return;
	}
	d = add(l, BRINGUP_LOSSY);
	d->loss_mdb = t->loss_mdb;
	d->limit_mdb = t->limit_mdb;
	if (fault == BLIND_AT_IN) {
		put_feeder(l->p, t, d->fibre);
		put_place(l->p, t->device, "in", t->xc.in, d->found);
	} else if (fault == BLIND_AT_OUT) {
		put_place(l->p, t->device, "out", t->xc.out, d->fibre);
		put_place(l->p, t->to_device, "in", t->to_port, d->found);
	} else {
		snprintf(d->fibre, sizeof(d->fibre), "%.200s.in%d -> out%d",
			 l->p->fabric->devices[t->device].name, t->xc.in + 1,
			 t->xc.out + 1);
	}
}

int power_findings(const struct power *p, struct power_finding **v, int *n,
		   struct err *err)
{
	const struct model_fabric *f = p->fabric;
	struct list l = { .p = p };
	size_t most = 3 * (size_t)f->n_ports + 2 * (size_t)f->n_trunks +
		      p->tries.n + 1;

	for (int d = 0; d < f->n_devices; d++) {
		most += (size_t)f->devices[d].n_in +
			3 * (size_t)f->devices[d].n_out;
	}
	l.v = calloc(most, sizeof(*l.v));
	*v = l.v;
	*n = 0;
	if (!l.v) {
		return err_nomem(err);
	}
	for (int i = 0; i < f->n_ports; i++) {
		compare_host(&l, &f->ports[i]);
	}
	for (int i = 0; i < f->n_trunks; i++) {
		compare_trunk(&l, i);
	}
	for (int d = 0; d < f->n_devices; d++) {
		compare_device(&l, d);
	}
	for (size_t k = 0; k < p->tries.n; k++) {
		compare_try(&l, k);
	}
	*n = l.n;
	return 0;
}

/* ---- what nobody can see ---- */

static void add_unseen_host(const struct power *p, const struct model_port *h,
			    char (*v)[256], int *n)
{
	if (h->tx_device >= 0 && is_unseen(p, h->tx_device, h->tx_port) &&
	    !could_tell(p, h->tx_device, false, h->tx_port)) {
		snprintf(v[(*n)++], sizeof(*v), "%.250s.tx", h->name);
	}
	if (h->rx_device >= 0 && p->devices[h->rx_device].blind) {
		snprintf(v[(*n)++], sizeof(*v), "%.250s.rx", h->name);
	}
}

int power_unseen(const struct power *p, char (**v)[256], int *n,
		 struct err *err)
{
	const struct model_fabric *f = p->fabric;

	*n = 0;
	*v = calloc(2 * (size_t)f->n_ports + (size_t)f->n_trunks + 1,
		    sizeof(**v));
	if (!*v) {
		return err_nomem(err);
	}
	for (int i = 0; i < f->n_ports; i++) {
		add_unseen_host(p, &f->ports[i], *v, n);
	}
	for (int i = 0; i < f->n_trunks; i++) {
		if (trunk_is_unseen(p, &f->trunks[i])) {
			put_place(p, f->trunks[i].from_device, "out",
				  f->trunks[i].from_port, (*v)[(*n)++]);
		}
	}
	return 0;
}

/* ---- the corrected file ---- */

static void put_fibre(struct buf *out, const char *from, const char *to,
		      int32_t loss_mdb, bool amplified)
{
	buf_printf(out, "  - { from: \"%s\", to: \"%s\"", from, to);
	bringup_put_loss(out, loss_mdb, amplified);
	buf_printf(out, " }\n");
}

static void put_host(struct buf *out, const struct power *p,
		     const struct model_port *h)
{
	char place[256], name[300];

	if (is_reversed(p, h)) {
		return;
	}
	if (h->tx_device >= 0 && !tx_is_dark(p, h)) {
		put_place(p, h->tx_device, "in", h->tx_port, place);
		snprintf(name, sizeof(name), "%.250s.tx", h->name);
		put_fibre(out, name, place, h->tx_loss_mdb, h->tx_amplified);
	}
	if (h->rx_device >= 0 && !rx_is_gone(p, h)) {
		put_place(p, h->rx_device, "out", h->rx_port, place);
		snprintf(name, sizeof(name), "%.250s.rx", h->name);
		put_fibre(out, place, name, h->rx_loss_mdb, h->rx_amplified);
	}
}

/* The loss that is written where the fibre is, and is within the limit. */
static int32_t loss_to_write(const struct power *p, const struct power_far *far,
			     int device, int port, bool *amplified)
{
	int owner = owner_of(p, far);
	const struct model_trunk *t = owner < 0 ? NULL :
					      &p->fabric->trunks[owner];

	if (t && t->from_device == device && t->from_port == port &&
	    far->fibre_mdb <= limit_of(t)) {
		*amplified = t->amplified;
		return t->loss_mdb;
	}
	*amplified = far->fibre_mdb < 0 && far->fibre_mdb != POWER_NO_LOSS;
	return far->fibre_mdb == POWER_NO_LOSS ? 0 : far->fibre_mdb;
}

/* Another fibre was found at its end. */
static bool is_taken(const struct power *p, const struct model_trunk *t)
{
	for (int d = 0; d < p->fabric->n_devices; d++) {
		for (int i = 0; i < p->fabric->devices[d].n_out; i++) {
			if (leads_to(&p->devices[d].far[i], t)) {
				return true;
			}
		}
	}
	return false;
}

static void put_trunks(struct buf *out, const struct power *p)
{
	const struct model_fabric *f = p->fabric;
	char from[256], to[256];
	bool amplified;
	int32_t loss;

	for (int d = 0; d < f->n_devices; d++) {
		for (int i = 0; i < f->devices[d].n_out; i++) {
			const struct power_far *far = &p->devices[d].far[i];

			if (far->way == POWER_INPUT) {
				put_place(p, d, "out", i, from);
				put_place(p, far->device, "in", far->port, to);
				loss = loss_to_write(p, far, d, i, &amplified);
				put_fibre(out, from, to, loss, amplified);
			}
		}
	}
	for (int i = 0; i < f->n_trunks; i++) {
		const struct model_trunk *t = &f->trunks[i];

		if (far_of(p, t)->way == POWER_UNKNOWN ||
		    (trunk_is_unlit(p, t) && !is_taken(p, t))) {
			put_place(p, t->from_device, "out", t->from_port,
				  from);
			put_place(p, t->to_device, "in", t->to_port, to);
			put_fibre(out, from, to, t->loss_mdb, t->amplified);
		}
	}
}

int power_yaml(const struct power *p, struct buf *out, struct err *err)
{
	struct buf fibres = { 0 };
	int rc;

	buf_printf(&fibres, "fibres:\n");
	for (int i = 0; i < p->fabric->n_ports; i++) {
		put_host(&fibres, p, &p->fabric->ports[i]);
	}
	put_trunks(&fibres, p);
	rc = bringup_rewrite(p->fabric, &fibres, out, err);
	buf_fini(&fibres);
	return rc;
}
