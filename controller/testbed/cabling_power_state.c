/* The state file of a bring-up with power; see cabling_power.h. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "controller/testbed/cabling_power.h"

/* ---- writing ---- */

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

static json_t *pack_levels(const int32_t *mdbm, int n)
{
	json_t *v = json_array();

	for (int i = 0; v && i < n; i++) {
		json_array_append_new(v, json_integer(mdbm[i]));
	}
	return v;
}

static json_t *pack_tries(const struct power *p)
{
	json_t *v = json_array();

	for (size_t k = 0; v && k < p->tries.n; k++) {
		const struct power_try *t = &p->tries.v[k];

		json_array_append_new(v, json_pack("[i,i,i,i,i,i,i,i,i,i]",
			t->device, t->xc.in, t->xc.out, t->from_device,
			t->from_out, (int)t->way, t->to_device, t->to_port,
			t->loss_mdb, t->limit_mdb));
	}
	return v;
}

/* Which of them are being taken out is told too: robots go on alone. */
static json_t *pack_lit(const struct power *p)
{
	json_t *v = json_array();

	for (int i = 0; v && i < p->n_lit; i++) {
		json_array_append_new(v, json_pack("[i,i,i,b]",
			p->lit[i].device, p->lit[i].xc.in, p->lit[i].xc.out,
			p->lit[i].going));
	}
	return v;
}

int power_save(const struct power *p, struct buf *out, struct err *err)
{
	json_t *devices = json_array(), *levels = json_array(), *root;
	char *text;

	for (int d = 0; d < p->fabric->n_devices; d++) {
		const struct model_device *m = &p->fabric->devices[d];
		const struct power_device *dev = &p->devices[d];

		json_array_append_new(devices, pack_device(dev->far,
							   m->n_out));
		json_array_append_new(levels, pack_levels(dev->in, m->n_in));
		json_array_append_new(levels, pack_levels(dev->out, m->n_out));
	}
	root = json_pack("{s:s,s:s,s:o,s:o,s:o,s:o}", "weft", "bringup power",
			 "fabric", p->fabric->hash, "lit", pack_lit(p),
			 "tries", pack_tries(p), "devices", devices, "levels",
			 p->has_levels ? json_incref(levels) : json_null());
	json_decref(levels);
	text = root ? json_dumps(root, JSON_INDENT(1) | JSON_COMPACT) : NULL;
	json_decref(root);
	if (!text) {
		return err_nomem(err);
	}
	buf_printf(out, "%s\n", text);
	free(text);
	return 0;
}

/* ---- reading ---- */

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
	bool ok = json_is_array(lit) && n <= (size_t)power_max_lit(p->fabric);

	for (size_t i = 0; ok && i < n; i++) {
		struct power_circuit *c = &p->lit[i];
		int going;

		ok = json_unpack(json_array_get(lit, i), "[i,i,i,b!]",
				 &c->device, &c->xc.in, &c->xc.out,
				 &going) == 0 &&
		     is_port(p->fabric, c->device, false, c->xc.in) &&
		     is_port(p->fabric, c->device, true, c->xc.out);
		c->going = going;
	}
	p->n_lit = ok ? (int)n : 0;
	return ok;
}

static bool load_side(json_t *v, int32_t *mdbm, int n)
{
	bool ok = json_array_size(v) == (size_t)n;

	for (int i = 0; ok && i < n; i++) {
		json_t *item = json_array_get(v, (size_t)i);

		ok = json_is_integer(item) &&
		     json_integer_value(item) >= INT32_MIN &&
		     json_integer_value(item) <= INT32_MAX;
		mdbm[i] = ok ? (int32_t)json_integer_value(item) : 0;
	}
	return ok;
}

static bool load_levels(struct power *p, json_t *levels)
{
	const struct model_fabric *f = p->fabric;
	bool ok = json_is_null(levels) ||
		  json_array_size(levels) == 2 * (size_t)f->n_devices;

	p->has_levels = json_is_array(levels);
	for (int d = 0; ok && p->has_levels && d < f->n_devices; d++) {
		ok = load_side(json_array_get(levels, 2 * (size_t)d),
			       p->devices[d].in, f->devices[d].n_in) &&
		     load_side(json_array_get(levels, 2 * (size_t)d + 1),
			       p->devices[d].out, f->devices[d].n_out);
	}
	return ok;
}

static bool is_try(const struct model_fabric *f, const struct power_try *t)
{
	return is_port(f, t->device, false, t->xc.in) &&
	       is_port(f, t->device, true, t->xc.out) &&
	       (t->from_device == -1 ||
		is_port(f, t->from_device, true, t->from_out)) &&
	       t->way >= POWER_NOTHING && t->way <= POWER_OUTPUT &&
	       (t->way == POWER_NOTHING ||
		is_port(f, t->to_device, t->way == POWER_OUTPUT, t->to_port));
}

static bool load_tries(struct power *p, json_t *tries)
{
	bool ok = json_is_array(tries);

	p->tries.n = 0;
	for (size_t k = 0; ok && k < json_array_size(tries); k++) {
		struct power_try t;
		int way;

		ok = json_unpack(json_array_get(tries, k),
				 "[i,i,i,i,i,i,i,i,i,i!]", &t.device,
				 &t.xc.in, &t.xc.out, &t.from_device,
				 &t.from_out, &way, &t.to_device, &t.to_port,
				 &t.loss_mdb, &t.limit_mdb) == 0;
		t.way = ok ? (enum power_way)way : POWER_UNKNOWN;
		ok = ok && is_try(p->fabric, &t) &&
		     vec_push(&p->tries, t) == 0;
	}
	return ok;
}

int power_load(struct power *p, const char *data, size_t len,
	       struct err *err)
{
	json_error_t where;
	json_t *root = json_loadb(data, len, JSON_REJECT_DUPLICATES, &where);
	const char *what = NULL, *hash = NULL;
	json_t *devices = NULL, *lit = NULL, *levels = NULL, *tries = NULL;
	int rc = 0;

	if (!root) {
		return err_set(err, WEFT_EINVAL, "line %d: %s", where.line,
			       where.text);
	}
	if (json_unpack(root, "{s:s,s:s,s:o,s:o,s:o,s:o}", "weft", &what,
			"fabric", &hash, "lit", &lit, "devices", &devices,
			"levels", &levels, "tries", &tries) != 0 ||
	    strcmp(what, "bringup power") != 0) {
		rc = err_set(err, WEFT_EINVAL, "no state of a bring-up with "
			     "power");
	} else if (strcmp(hash, p->fabric->hash) != 0) {
		rc = err_set(err, WEFT_ESTALE, "it is of another text of the "
			     "fabric");
	} else if (!load_devices(p, devices) || !load_lit(p, lit) ||
		   !load_levels(p, levels) || !load_tries(p, tries)) {
		rc = err_set(err, WEFT_EINVAL, "its ports are not those of "
			     "the fabric");
	}
	json_decref(root);
	return rc;
}
