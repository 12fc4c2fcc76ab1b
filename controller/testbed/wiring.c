/* Wiring as found against wiring as written; see bringup.h. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/testbed/bringup.h"

/* A switch port that a host's fibre ends at; device -1: none. */
struct place {
	int device, port;
	const struct bringup_end *end;
};

/* Both by host port. */
struct places {
	struct place *written, *found;
	bool *crossed;		/* light came in at its transmit fibre */
};

const char *bringup_kind_name(enum bringup_kind kind)
{
	static const char *const names[] = { "swapped", "moved", "missing",
					     "reversed", "lossy",
					     "unwritten", "unlit" };

	return names[kind];
}

/* ---- where fibres are ---- */

static void places_fini(struct places *p)
{
	free(p->written);
	free(p->found);
	free(p->crossed);
}

static void take_device(const struct bringup *b, int device, bool rx,
			struct places *p)
{
	const struct model_device *d = &b->fabric->devices[device];
	const struct bringup_device *dev = &b->devices[device];

	for (int i = 0; i < (rx ? d->n_out : d->n_in); i++) {
		const struct bringup_end *e = rx ? &dev->out[i] : &dev->in[i];

		if (e->port >= 0 && e->crossed) {
			p->crossed[e->port] = true;
		} else if (e->port >= 0) {
			p->found[e->port] = (struct place){ device, i, e };
		}
	}
}

static int find_places(const struct bringup *b, bool rx, struct places *p,
		       struct err *err)
{
	const struct model_fabric *f = b->fabric;
	size_t n = (size_t)f->n_ports + 1;

	p->written = calloc(n, sizeof(*p->written));
	p->found = calloc(n, sizeof(*p->found));
	p->crossed = calloc(n, sizeof(*p->crossed));
	if (!p->written || !p->found || !p->crossed) {
		places_fini(p);
		return err_nomem(err);
	}
	for (int i = 0; i < f->n_ports; i++) {
		const struct model_port *h = &f->ports[i];

		p->written[i] = rx ?
			(struct place){ h->rx_device, h->rx_port, NULL } :
			(struct place){ h->tx_device, h->tx_port, NULL };
		p->found[i].device = -1;
	}
	for (int d = 0; d < f->n_devices; d++) {
		take_device(b, d, rx, p);
	}
	return 0;
}

static bool same(const struct place *a, const struct place *b)
{
	return a->device == b->device &&
	       (a->device < 0 || a->port == b->port);
}

/* ---- what differs ---- */

struct findings {
	struct bringup_finding *v;	/* room for three a port */
	int n;
	const struct places *tx, *rx;
};

static void add(struct findings *fs, enum bringup_kind kind, int port, bool rx,
		int other)
{
	const struct places *p = rx ? fs->rx : fs->tx;
	const struct place *w = &p->written[port], *f = &p->found[port];

	fs->v[fs->n++] = (struct bringup_finding){
		.kind = kind, .fibre = { port, rx }, .other = { other, rx },
		.device = w->device, .written = w->device < 0 ? -1 : w->port,
		.found_device = f->device,
		.found = f->device < 0 ? -1 : f->port,
		.sent = f->end ? f->end->sent : 0,
		.received = f->end ? f->end->received : 0,
	};
}

/* Whose written place this port was found at, or -1. */
static int owner_of(const struct places *p, int n_ports, int port)
{
	for (int i = 0; i < n_ports; i++) {
		if (same(&p->written[i], &p->found[port])) {
			return i;
		}
	}
	return -1;
}

static void compare(struct findings *fs, const struct model_fabric *f,
		    int port, bool rx)
{
	const struct places *p = rx ? fs->rx : fs->tx;
	const struct place *w = &p->written[port], *found = &p->found[port];
	int other;

	if (found->end && found->end->received < found->end->sent) {
		add(fs, BRINGUP_LOSSY, port, rx, -1);
	}
	if (same(w, found)) {
		return;
	}
	if (found->device < 0) {
		/* A reversed pair is told once, for its transmit fibre. */
		if (!fs->tx->crossed[port]) {
			add(fs, BRINGUP_MISSING, port, rx, -1);
		}
		return;
	}
	other = owner_of(p, f->n_ports, port);
	if (w->device < 0) {
		add(fs, BRINGUP_UNWRITTEN, port, rx, -1);
	} else if (other < 0 || !same(&p->found[other], w)) {
		add(fs, BRINGUP_MOVED, port, rx, other);
	} else if (port < other) {
		add(fs, BRINGUP_SWAPPED, port, rx, other);
	}
}

int bringup_findings(const struct bringup *b, struct bringup_finding **v,
		     int *n, struct err *err)
{
	const struct model_fabric *f = b->fabric;
	struct places tx = { 0 }, rx = { 0 };
	struct findings fs = { .tx = &tx, .rx = &rx };
	int rc = find_places(b, false, &tx, err);

	*v = NULL;
	*n = 0;
	if (rc == 0) {
		rc = find_places(b, true, &rx, err);
	}
	/* What comes out at a transmit fibre was found on the out side. */
	if (rc == 0) {
		memcpy(tx.crossed, rx.crossed,
		       (size_t)f->n_ports * sizeof(*tx.crossed));
		fs.v = calloc((size_t)f->n_ports * 5 + 1, sizeof(*fs.v));
		rc = fs.v ? 0 : err_nomem(err);
	}
	for (int i = 0; rc == 0 && i < f->n_ports; i++) {
		if (tx.crossed[i]) {
			add(&fs, BRINGUP_REVERSED, i, false, -1);
		}
		compare(&fs, f, i, false);
		compare(&fs, f, i, true);
	}
	places_fini(&tx);
	places_fini(&rx);
	*v = fs.v;
	*n = fs.n;
	return rc;
}

/* ---- between switches ---- */

static const struct bringup_far *far_of(const struct bringup *b, int trunk)
{
	const struct model_trunk *t = &b->fabric->trunks[trunk];

	return &b->devices[t->from_device].far[t->from_port];
}

static bool ends_at(const struct bringup_far *far, const struct model_trunk *t)
{
	return far->device == t->to_device && far->port == t->to_port;
}

/* The trunk whose written end this one was found at, or -1. */
static int trunk_there(const struct bringup *b, const struct bringup_far *far)
{
	for (int i = 0; i < b->fabric->n_trunks; i++) {
		if (ends_at(far, &b->fabric->trunks[i])) {
			return i;
		}
	}
	return -1;
}

static void compare_trunk(const struct bringup *b, int trunk,
			  struct bringup_trunk *v, int *n)
{
	const struct bringup_far *far = far_of(b, trunk);
	const struct model_trunk *t = &b->fabric->trunks[trunk];
	struct bringup_trunk d = { .trunk = trunk, .other = -1, .device = -1,
				   .port = -1, .sent = far->sent,
				   .received = far->received };

	if (far->device < 0) {
		d.kind = far->device == BRINGUP_NONE ? BRINGUP_MISSING :
						       BRINGUP_UNLIT;
		v[(*n)++] = d;
		return;
	}
	d.device = far->device;
	d.port = far->port;
	if (far->received < far->sent) {
		d.kind = BRINGUP_LOSSY;
		v[(*n)++] = d;
	}
	if (ends_at(far, t)) {
		return;
	}
	d.other = trunk_there(b, far);
	d.kind = d.other >= 0 && ends_at(far_of(b, d.other), t) ?
		 BRINGUP_SWAPPED : BRINGUP_MOVED;
	if (d.kind == BRINGUP_MOVED || trunk < d.other) {
		v[(*n)++] = d;	/* an exchange is told once */
	}
}

int bringup_trunks(const struct bringup *b, struct bringup_trunk **v, int *n,
		   struct err *err)
{
	*n = 0;
	*v = calloc(2 * (size_t)b->fabric->n_trunks + 1, sizeof(**v));
	if (!*v) {
		return err_nomem(err);
	}
	for (int i = 0; i < b->fabric->n_trunks; i++) {
		compare_trunk(b, i, *v, n);
	}
	return 0;
}

/* ---- the corrected file ---- */

static void put_db(struct buf *out, const char *key, int32_t mdb)
{
	buf_printf(out, ", %s: %d.%03ddB", key, mdb / 1000, mdb % 1000);
}

void bringup_put_loss(struct buf *out, int32_t mdb, bool amplified)
{
	int32_t gain = !amplified ? 0 : mdb < 0 ? -mdb : 1;

	if (mdb + gain > 0) {
		put_db(out, "loss", mdb + gain);
	}
	if (gain) {
		put_db(out, "gain", gain);
	}
}

static void put_fibre(struct buf *out, const struct bringup *b, int port,
		      bool rx, const struct place *at)
{
	const struct model_port *h = &b->fabric->ports[port];
	int32_t loss = rx ? h->rx_loss_mdb : h->tx_loss_mdb;
	const char *device = b->fabric->devices[at->device].name;

	if (rx) {
		buf_printf(out, "  - { from: \"%s.out%d\", to: \"%s.rx\"",
			   device, at->port + 1, h->name);
	} else {
		buf_printf(out, "  - { from: \"%s.tx\", to: \"%s.in%d\"",
			   h->name, device, at->port + 1);
	}
	bringup_put_loss(out, loss, rx ? h->rx_amplified : h->tx_amplified);
	buf_printf(out, " }\n");
}

/* One that could not be lit stays as it is written, one that is broken is left
 * out. */
static void put_trunks(struct buf *out, const struct bringup *b)
{
	const struct model_fabric *f = b->fabric;

	for (int i = 0; i < f->n_trunks; i++) {
		const struct model_trunk *t = &f->trunks[i];
		const struct bringup_far *far = far_of(b, i);
		bool found = far->device >= 0;

		if (far->device == BRINGUP_NONE) {
			continue;
		}
		buf_printf(out, "  - { from: \"%s.out%d\", to: \"%s.in%d\"",
			   f->devices[t->from_device].name, t->from_port + 1,
			   f->devices[found ? far->device : t->to_device].name,
			   (found ? far->port : t->to_port) + 1);
		bringup_put_loss(out, t->loss_mdb, t->amplified);
		if (t->channel >= 0) {
			buf_printf(out, ", channels: %d", t->channel);
		}
		buf_printf(out, " }\n");
	}
}

static int put_fibres(struct buf *out, const struct bringup *b,
		      struct err *err)
{
	const struct model_fabric *f = b->fabric;
	struct places p[2] = { { 0 }, { 0 } };
	int rc = 0;

	buf_printf(out, "fibres:\n");
	for (int rx = 0; rc == 0 && rx < 2; rx++) {
		rc = find_places(b, rx, &p[rx], err);
		for (int i = 0; rc == 0 && i < f->n_ports; i++) {
			if (p[rx].found[i].device >= 0) {
				put_fibre(out, b, i, rx, &p[rx].found[i]);
			}
		}
		places_fini(&p[rx]);
	}
	put_trunks(out, b);
	return rc;
}

/* The lines of the top-level key `fibres`: from *start to before *end. What
 * is said just before the next key belongs to that. */
static bool find_block(const char *text, const char **start, const char **end)
{
	static const char key[] = "fibres:";
	const char *next;

	*start = NULL;
	*end = NULL;
	for (const char *line = text; *line; line = next) {
		size_t len = strcspn(line, "\n");

		next = line + len + (line[len] == '\n');
		if (!*start && strncmp(line, key, sizeof(key) - 1) == 0) {
			*start = line;
			*end = next;
		} else if (*start && strchr(" \t-]}", *line)) {
			*end = next;	/* goes on */
		} else if (*start && !strchr("\r\n#", *line)) {
			break;
		}
	}
	return *start != NULL;
}

int bringup_rewrite(const struct model_fabric *f, const struct buf *fibres,
		    struct buf *out, struct err *err)
{
	struct model_fabric *again = NULL;
	struct err_list errs = { 0 };
	const char *start, *end;
	int rc;

	if (!find_block(f->text, &start, &end)) {
		return err_set(err, WEFT_EUNSUPPORTED, "%s: no line begins "
			       "with 'fibres:'", f->file);
	}
	buf_add(out, f->text, (size_t)(start - f->text));
	buf_str(out, buf_cstr(fibres));
	buf_add(out, end, strlen(end));
	if (out->failed || fibres->failed) {
		return err_nomem(err);
	}
	rc = model_parse("the fabric as found", out->data, out->len, &again,
			 &errs);
	if (rc && errs.n && err) {
		*err = errs.v[0];
	}
	err_list_fini(&errs);
	model_free(again);
	return rc;
}

int bringup_yaml(const struct bringup *b, struct buf *out, struct err *err)
{
	struct buf fibres = { 0 };
	int rc = put_fibres(&fibres, b, err);

	if (rc == 0) {
		rc = bringup_rewrite(b->fabric, &fibres, out, err);
	}
	buf_fini(&fibres);
	return rc;
}

/* ---- the state file ---- */

static json_t *pack_side(const struct bringup_end *v, int n)
{
	json_t *side = json_array();

	for (int i = 0; side && i < n; i++) {
		json_array_append_new(side, json_pack("[i,b,I,I]", v[i].port,
						      v[i].crossed,
						      (json_int_t)v[i].sent,
						      (json_int_t)
						      v[i].received));
	}
	return side;
}

static json_t *pack_far(const struct bringup_far *v, int n)
{
	json_t *side = json_array();

	for (int i = 0; side && i < n; i++) {
		json_array_append_new(side, json_pack("[i,i,I,I]", v[i].device,
						      v[i].port,
						      (json_int_t)v[i].sent,
						      (json_int_t)
						      v[i].received));
	}
	return side;
}

int bringup_save(const struct bringup *b, struct buf *out, struct err *err)
{
	const struct model_fabric *f = b->fabric;
	json_t *devices = json_array(), *root;
	char *text;

	for (int d = 0; d < f->n_devices; d++) {
		json_array_append_new(devices, json_pack("{s:o,s:o,s:o}",
			"far", pack_far(b->devices[d].far,
					f->devices[d].n_out),
			"in", pack_side(b->devices[d].in, f->devices[d].n_in),
			"out", pack_side(b->devices[d].out,
					 f->devices[d].n_out)));
	}
	root = json_pack("{s:s,s:s,s:[i,i,i],s:[i,i,i],s:o}", "weft",
			 "bringup", "fabric", f->hash, "lit", b->lit_device,
			 b->lit.in, b->lit.out, "next", b->next_device,
			 b->next.in, b->next.out, "devices", devices);
	text = root ? json_dumps(root, JSON_INDENT(1) | JSON_COMPACT) : NULL;
	json_decref(root);
	if (!text) {
		return err_nomem(err);
	}
	buf_printf(out, "%s\n", text);
	free(text);
	return 0;
}

static bool load_side(const struct model_fabric *f, json_t *side,
		      struct bringup_end *v, int n)
{
	if (json_array_size(side) != (size_t)n) {
		return false;
	}
	for (int i = 0; i < n; i++) {
		json_int_t sent, received;
		int port, crossed;

		if (json_unpack(json_array_get(side, (size_t)i), "[i,b,I,I]",
				&port, &crossed, &sent, &received) != 0 ||
		    port < BRINGUP_UNKNOWN || port >= f->n_ports) {
			return false;
		}
		v[i] = (struct bringup_end){ port, crossed, sent, received };
	}
	return true;
}

static bool load_far(const struct model_fabric *f, json_t *side,
		     struct bringup_far *v, int n)
{
	bool ok = json_array_size(side) == (size_t)n;

	for (int i = 0; ok && i < n; i++) {
		json_int_t sent, received;
		int d, port;

		ok = json_unpack(json_array_get(side, (size_t)i),
				 "[i,i,I,I!]", &d, &port, &sent,
				 &received) == 0 &&
		     d >= BRINGUP_UNKNOWN && d < f->n_devices &&
		     (d < 0 || (port >= 0 && port < f->devices[d].n_in));
		if (ok) {
			v[i] = (struct bringup_far){ d, port, sent, received };
		}
	}
	return ok;
}

static bool load_devices(struct bringup *b, json_t *devices)
{
	const struct model_fabric *f = b->fabric;
	bool ok = json_array_size(devices) == (size_t)f->n_devices;

	for (int d = 0; ok && d < f->n_devices; d++) {
		json_t *dev = json_array_get(devices, (size_t)d);

		ok = load_side(f, json_object_get(dev, "in"), b->devices[d].in,
			       f->devices[d].n_in) &&
		     load_side(f, json_object_get(dev, "out"),
			       b->devices[d].out, f->devices[d].n_out) &&
		     load_far(f, json_object_get(dev, "far"),
			      b->devices[d].far, f->devices[d].n_out);
	}
	return ok;
}

int bringup_load(struct bringup *b, const char *data, size_t len,
		 struct err *err)
{
	json_error_t where;
	json_t *root = json_loadb(data, len, JSON_REJECT_DUPLICATES, &where);
	const char *what = NULL, *hash = NULL;
	json_t *devices = NULL;
	int rc = 0;

	if (!root) {
		return err_set(err, WEFT_EINVAL, "line %d: %s", where.line,
			       where.text);
	}
	if (json_unpack(root, "{s:s,s:s,s:[i,i,i],s:[i,i,i],s:o}", "weft",
			&what, "fabric", &hash, "lit", &b->lit_device,
			&b->lit.in, &b->lit.out, "next", &b->next_device,
			&b->next.in, &b->next.out, "devices", &devices) != 0 ||
	    strcmp(what, "bringup") != 0) {
		rc = err_set(err, WEFT_EINVAL, "no state of a bring-up");
	} else if (strcmp(hash, b->fabric->hash) != 0) {
		rc = err_set(err, WEFT_ESTALE, "it is of another text of the "
			     "fabric");
	} else if (!load_devices(b, devices)) {
		rc = err_set(err, WEFT_EINVAL, "its ports are not those of "
			     "the fabric");
	}
	json_decref(root);
	return rc;
}
