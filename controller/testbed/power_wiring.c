/* Fibres between switches as found against as written; see power.h. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/testbed/power.h"

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
	return h->tx_device >= 0 &&
	       !has_light(p->devices[h->tx_device].in[h->tx_port]);
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

static void compare_trunk(struct list *l, int index)
{
	const struct model_fabric *f = l->p->fabric;
	const struct model_trunk *t = &f->trunks[index];
	const struct power_far *far = far_of(l->p, t);
	struct power_finding *d;

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
	if (far->way == POWER_UNKNOWN || far->in < 0 ||
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

static void compare_device(struct list *l, int device)
{
	const struct model_device *m = &l->p->fabric->devices[device];

	for (int i = 0; i < m->n_in; i++) {
		if (m->in_port[i] < 0 &&
		    has_light(l->p->devices[device].in[i])) {
			struct power_finding *d = add(l, BRINGUP_UNWRITTEN);

			put_place(l->p, device, "in", i, d->found);
		}
	}
	for (int i = 0; i < m->n_out; i++) {
		compare_output(l, device, i);
	}
}

int power_findings(const struct power *p, struct power_finding **v, int *n,
		   struct err *err)
{
	const struct model_fabric *f = p->fabric;
	struct list l = { .p = p };
	size_t most = 2 * (size_t)f->n_ports + 2 * (size_t)f->n_trunks + 1;

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
	*n = l.n;
	return 0;
}

/* ---- the corrected file ---- */

static void put_fibre(struct buf *out, const char *from, const char *to,
		      int32_t loss_mdb)
{
	buf_printf(out, "  - { from: \"%s\", to: \"%s\"", from, to);
	if (loss_mdb > 0) {
		buf_printf(out, ", loss: %d.%03ddB", loss_mdb / 1000,
			   loss_mdb % 1000);
	}
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
		put_fibre(out, name, place, h->tx_loss_mdb);
	}
	if (h->rx_device >= 0 && !rx_is_gone(p, h)) {
		put_place(p, h->rx_device, "out", h->rx_port, place);
		snprintf(name, sizeof(name), "%.250s.rx", h->name);
		put_fibre(out, place, name, h->rx_loss_mdb);
	}
}

/* The loss that is written where the fibre is, and is within the limit. */
static int32_t loss_to_write(const struct power *p, const struct power_far *far,
			     int device, int port)
{
	int owner = owner_of(p, far);
	const struct model_trunk *t = owner < 0 ? NULL :
					      &p->fabric->trunks[owner];

	return t && t->from_device == device && t->from_port == port &&
	       far->fibre_mdb <= limit_of(t) ? t->loss_mdb : far->fibre_mdb;
}

static void put_trunks(struct buf *out, const struct power *p)
{
	const struct model_fabric *f = p->fabric;
	char from[256], to[256];

	for (int d = 0; d < f->n_devices; d++) {
		for (int i = 0; i < f->devices[d].n_out; i++) {
			const struct power_far *far = &p->devices[d].far[i];

			if (far->way == POWER_INPUT) {
				put_place(p, d, "out", i, from);
				put_place(p, far->device, "in", far->port, to);
				put_fibre(out, from, to,
					  loss_to_write(p, far, d, i));
			}
		}
	}
	for (int i = 0; i < f->n_trunks; i++) {
		const struct model_trunk *t = &f->trunks[i];

		if (far_of(p, t)->way == POWER_UNKNOWN) {
			put_place(p, t->from_device, "out", t->from_port,
				  from);
			put_place(p, t->to_device, "in", t->to_port, to);
			put_fibre(out, from, to, t->loss_mdb);
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

/* ---- the state file ---- */

static json_t *pack_device(const struct power_far *far, int n)
{
	json_t *v = json_array();

	for (int i = 0; v && i < n; i++) {
		json_array_append_new(v, json_pack("[i,i,i,i,i,i]",
			(int)far[i].way, far[i].device, far[i].port, far[i].in,
			far[i].path_mdb, far[i].fibre_mdb));
	}
	return v;
}

int power_save(const struct power *p, struct buf *out, struct err *err)
{
	json_t *devices = json_array(), *lit = json_array(), *root;
	char *text;

	for (int d = 0; d < p->fabric->n_devices; d++) {
		json_array_append_new(devices, pack_device(p->devices[d].far,
					p->fabric->devices[d].n_out));
	}
	for (int i = 0; i < p->n_lit; i++) {
		json_array_append_new(lit, json_pack("[i,i,i]",
			p->lit[i].device, p->lit[i].xc.in, p->lit[i].xc.out));
	}
	root = json_pack("{s:s,s:s,s:o,s:o}", "weft", "bringup power",
			 "fabric", p->fabric->hash, "lit", lit, "devices",
			 devices);
	text = root ? json_dumps(root, JSON_INDENT(1) | JSON_COMPACT) : NULL;
	json_decref(root);
	if (!text) {
		return err_nomem(err);
	}
	buf_printf(out, "%s\n", text);
	free(text);
	return 0;
}

static bool is_port(const struct model_fabric *f, int device, bool out,
		    int port)
{
	return device >= 0 && device < f->n_devices && port >= 0 &&
	       port < (out ? f->devices[device].n_out :
			     f->devices[device].n_in);
}

static bool load_far(const struct model_fabric *f, int device, json_t *item,
		     struct power_far *far)
{
	int way;

	if (json_unpack(item, "[i,i,i,i,i,i!]", &way, &far->device, &far->port,
			&far->in, &far->path_mdb, &far->fibre_mdb) != 0 ||
	    way < POWER_UNKNOWN || way > POWER_OUTPUT ||
	    (way >= POWER_NOTHING && far->in != -1 &&
	     !is_port(f, device, false, far->in))) {
		return false;
	}
	far->way = (enum power_way)way;
	return way < POWER_INPUT ||
	       is_port(f, far->device, way == POWER_OUTPUT, far->port);
}

static bool load_devices(struct power *p, json_t *devices)
{
	const struct model_fabric *f = p->fabric;
	bool ok = json_array_size(devices) == (size_t)f->n_devices;

	for (int d = 0; ok && d < f->n_devices; d++) {
		json_t *v = json_array_get(devices, (size_t)d);
		size_t n = (size_t)f->devices[d].n_out;

		ok = json_array_size(v) == n;
		for (size_t i = 0; ok && i < n; i++) {
			ok = load_far(f, d, json_array_get(v, i),
				      &p->devices[d].far[i]);
		}
	}
	return ok;
}

static bool load_lit(struct power *p, json_t *lit)
{
	size_t n = json_array_size(lit);
	bool ok = n <= (size_t)p->fabric->n_devices;

	for (size_t i = 0; ok && i < n; i++) {
		struct power_circuit *c = &p->lit[i];

		ok = json_unpack(json_array_get(lit, i), "[i,i,i!]",
				 &c->device, &c->xc.in, &c->xc.out) == 0 &&
		     is_port(p->fabric, c->device, false, c->xc.in) &&
		     is_port(p->fabric, c->device, true, c->xc.out);
	}
	p->n_lit = ok ? (int)n : 0;
	return ok;
}

int power_load(struct power *p, const char *data, size_t len,
	       struct err *err)
{
	json_error_t where;
	json_t *root = json_loadb(data, len, JSON_REJECT_DUPLICATES, &where);
	const char *what = NULL, *hash = NULL;
	json_t *devices = NULL, *lit = NULL;
	int rc = 0;

	if (!root) {
		return err_set(err, WEFT_EINVAL, "line %d: %s", where.line,
			       where.text);
	}
	if (json_unpack(root, "{s:s,s:s,s:o,s:o}", "weft", &what, "fabric",
			&hash, "lit", &lit, "devices", &devices) != 0 ||
	    strcmp(what, "bringup power") != 0) {
		rc = err_set(err, WEFT_EINVAL, "no state of a bring-up with "
			     "power");
	} else if (strcmp(hash, p->fabric->hash) != 0) {
		rc = err_set(err, WEFT_ESTALE, "it is of another text of the "
			     "fabric");
	} else if (!load_devices(p, devices) || !load_lit(p, lit)) {
		rc = err_set(err, WEFT_EINVAL, "its ports are not those of "
			     "the fabric");
	}
	json_decref(root);
	return rc;
}
