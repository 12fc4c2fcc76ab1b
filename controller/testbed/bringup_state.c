/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bring-up: the state file. A state is lists of records, each an array of whole
 * numbers in the order of its fields. Every index is checked against the fabric
 * before it is used, as the file may have been edited.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "controller/testbed/bringup_private.h"

static const char *method_name(const struct bringup *b)
{
	return b->method == BY_POWER ? "bringup power" : "bringup";
}

/* ---- writing ---- */

static json_t *pack_far(const struct bringup_far *far, int n)
{
	json_t *v = json_array();

	for (int i = 0; i < n; i++) {
		json_array_append_new(v, json_pack("[i,i,i,b,i,i,i,i,i,I,I]",
			(int)far[i].reach, far[i].device, far[i].port,
			far[i].is_split, far[i].split_device, far[i].split_port,
			far[i].in, far[i].path_mdb, far[i].fibre_mdb,
			(json_int_t)far[i].sent, (json_int_t)far[i].received));
	}
	return v;
}

static json_t *pack_levels(const struct bringup_port *ports, int n)
{
	json_t *v = json_array();

	for (int i = 0; i < n; i++) {
		json_array_append_new(v, json_integer(ports[i].mdbm));
	}
	return v;
}

static json_t *pack_tries(const struct bringup *b)
{
	json_t *v = json_array();

	for (size_t k = 0; k < b->tries.n; k++) {
		const struct bringup_try *t = &b->tries.v[k];

		json_array_append_new(v, json_pack("[i,i,i,i,i,i,i,i,i,i,I,I,b,i,i]",
			t->device, t->xc.in, t->xc.out, t->from_device,
			t->from_out, (int)t->reach, t->to_device, t->to_port,
			t->loss_mdb, t->limit_mdb, (json_int_t)t->sent,
			(json_int_t)t->received, t->is_split, t->split_device,
			t->split_port));
	}
	return v;
}

/* Which of them are being taken out too: robots go on alone. */
static json_t *pack_lit(const struct bringup *b)
{
	json_t *v = json_array();

	for (int i = 0; i < b->n_lit; i++) {
		json_array_append_new(v, json_pack("[i,i,i,b]", b->lit[i].device, b->lit[i].xc.in,
						   b->lit[i].xc.out, b->lit[i].removing));
	}
	return v;
}

int bringup_save(const struct bringup *b, struct buf *out, struct err *err)
{
	json_t *devices = json_array(), *levels = json_array(), *root;
	char *text;

	(void)err;
	for (int d = 0; d < b->fabric->n_devices; d++) {
		const struct model_device *m = &b->fabric->devices[d];
		const struct bringup_device *dev = &b->devices[d];

		json_array_append_new(devices, pack_far(dev->far, m->n_out));
		json_array_append_new(levels, pack_levels(dev->in, m->n_in));
		json_array_append_new(levels, pack_levels(dev->out, m->n_out));
	}
	root = json_pack("{s:s,s:s,s:o,s:o,s:o,s:o}", "weft", method_name(b),
			 "fabric", b->fabric->hash, "lit", pack_lit(b),
			 "tries", pack_tries(b), "devices", devices, "levels",
			 b->has_levels ? json_incref(levels) : json_null());
	json_decref(levels);
	text = json_dumps(root, JSON_INDENT(1) | JSON_COMPACT);
	json_decref(root);
	buf_printf(out, "%s\n", text);
	free(text);
	return 0;
}

/* ---- reading ---- */

static bool is_port(const struct model_fabric *f, int device, bool out, int port)
{
	return device >= 0 && device < f->n_devices && port >= 0 &&
	       port < (out ? f->devices[device].n_out :
			     f->devices[device].n_in);
}

static bool load_far(const struct model_fabric *f, int device, json_t *item,
		     struct bringup_far *far)
{
	json_int_t sent, received;
	int reach, is_split;

	if (json_unpack(item, "[i,i,i,b,i,i,i,i,i,I,I!]", &reach, &far->device,
			&far->port, &is_split, &far->split_device, &far->split_port,
			&far->in, &far->path_mdb, &far->fibre_mdb,
			&sent, &received) != 0 ||
	    reach < REACH_UNKNOWN || reach > REACH_OUTPUT ||
	    (is_split &&
	     !is_port(f, far->split_device, false, far->split_port)) ||
	    (reach >= REACH_NOTHING && far->in != -1 &&
	     !is_port(f, device, false, far->in))) {
		return false;
	}
	far->is_split = is_split;
	far->reach = (enum bringup_reach)reach;
	far->sent = sent;
	far->received = received;
	return reach < REACH_INPUT || is_port(f, far->device, reach == REACH_OUTPUT, far->port);
}

static bool load_devices(struct bringup *b, json_t *devices)
{
	const struct model_fabric *f = b->fabric;
	bool ok = json_array_size(devices) == (size_t)f->n_devices;

	for (int d = 0; ok && d < f->n_devices; d++) {
		json_t *v = json_array_get(devices, (size_t)d);
		size_t n = (size_t)f->devices[d].n_out;

		ok = json_array_size(v) == n;
		for (size_t i = 0; ok && i < n; i++) {
			ok = load_far(f, d, json_array_get(v, i), &b->devices[d].far[i]);
		}
	}
	return ok;
}

static bool load_lit(struct bringup *b, json_t *lit)
{
	size_t n = json_array_size(lit);
	bool ok = json_is_array(lit) && n <= (size_t)bringup_max_lit(b->fabric);

	for (size_t i = 0; ok && i < n; i++) {
		struct bringup_circuit *c = &b->lit[i];
		int removing;

		ok = json_unpack(json_array_get(lit, i), "[i,i,i,b!]", &c->device, &c->xc.in,
				 &c->xc.out, &removing) == 0 && is_port(b->fabric, c->device, false,
									c->xc.in) &&
			is_port(b->fabric, c->device, true, c->xc.out);
		c->removing = removing;
	}
	b->n_lit = ok ? (int)n : 0;
	return ok;
}

static bool load_side(json_t *v, struct bringup_port *ports, int n)
{
	bool ok = json_array_size(v) == (size_t)n;

	for (int i = 0; ok && i < n; i++) {
		json_t *item = json_array_get(v, (size_t)i);

		ok = json_is_integer(item) && json_integer_value(item) >= INT32_MIN &&
			json_integer_value(item) <= INT32_MAX;
		ports[i].mdbm = ok ? (int32_t)json_integer_value(item) : 0;
	}
	return ok;
}

static bool load_levels(struct bringup *b, json_t *levels)
{
	const struct model_fabric *f = b->fabric;
	bool ok = json_is_null(levels) || json_array_size(levels) == 2 * (size_t)f->n_devices;

	b->has_levels = json_is_array(levels);
	for (int d = 0; ok && b->has_levels && d < f->n_devices; d++) {
		ok = load_side(json_array_get(levels, 2 * (size_t)d),
			       b->devices[d].in, f->devices[d].n_in) &&
		     load_side(json_array_get(levels, 2 * (size_t)d + 1),
			       b->devices[d].out, f->devices[d].n_out);
	}
	return ok;
}

/* By frames both ends are ports of hosts, by power ports of devices. */
static bool is_try(const struct bringup *b, const struct bringup_try *t)
{
	const struct model_fabric *f = b->fabric;

	if (!is_port(f, t->device, false, t->xc.in) || !is_port(f, t->device, true, t->xc.out) ||
	    t->reach < REACH_NOTHING || t->reach > REACH_OUTPUT) {
		return false;
	}
	if (b->method == BY_FRAMES) {
		return t->reach == REACH_NOTHING ||
		       (t->from_device == -1 && t->to_device == -1 &&
			t->from_out >= 0 && t->from_out < f->n_ports &&
			t->to_port >= 0 && t->to_port < f->n_ports &&
			(!t->is_split || (t->split_port >= 0 && t->split_port < f->n_ports)));
	}
	return (t->from_device == -1 ||
		is_port(f, t->from_device, true, t->from_out)) &&
	       (!t->is_split || is_port(f, t->split_device, false, t->split_port)) &&
	       (t->reach == REACH_NOTHING ||
		is_port(f, t->to_device, t->reach == REACH_OUTPUT, t->to_port));
}

static bool load_try(struct bringup *b, json_t *item)
{
	struct bringup_try t;
	json_int_t sent, received;
	int reach, is_split;

	if (json_unpack(item, "[i,i,i,i,i,i,i,i,i,i,I,I,b,i,i!]", &t.device, &t.xc.in, &t.xc.out,
			&t.from_device, &t.from_out, &reach, &t.to_device, &t.to_port, &t.loss_mdb,
			&t.limit_mdb, &sent, &received, &is_split, &t.split_device,
			&t.split_port) != 0) {
		return false;
	}
	t.reach = (enum bringup_reach)reach;
	t.sent = sent;
	t.received = received;
	t.is_split = is_split;
	if (!is_try(b, &t)) {
		return false;
	}
	vec_push(&b->tries, t);
	return true;
}

static bool load_tries(struct bringup *b, json_t *tries)
{
	bool ok = json_is_array(tries);

	b->tries.n = 0;
	for (size_t k = 0; ok && k < json_array_size(tries); k++) {
		ok = load_try(b, json_array_get(tries, k));
	}
	return ok;
}

static int load_root(struct bringup *b, json_t *root, struct err *err)
{
	const char *what = NULL, *hash = NULL;
	json_t *devices = NULL, *lit = NULL, *levels = NULL, *tries = NULL;

	if (json_unpack(root, "{s:s,s:s,s:o,s:o,s:o,s:o}", "weft", &what, "fabric", &hash, "lit",
			&lit, "devices", &devices, "levels", &levels, "tries", &tries) != 0 ||
	    strcmp(what, method_name(b)) != 0) {
		return err_set(err, WEFT_EINVAL, "it is not the state of such "
			       "a bring-up");
	}
	if (strcmp(hash, b->fabric->hash) != 0) {
		return err_set(err, WEFT_ESTALE, "it is of another version of "
			       "the fabric file");
	}
	if (!load_devices(b, devices) || !load_lit(b, lit) ||
	    !load_levels(b, levels) || !load_tries(b, tries)) {
		return err_set(err, WEFT_EINVAL, "its ports are not those of "
			       "the fabric");
	}
	return 0;
}

int bringup_load(struct bringup *b, const char *data, size_t len, struct err *err)
{
	json_error_t where;
	json_t *root = json_loadb(data, len, JSON_REJECT_DUPLICATES, &where);
	int rc;

	if (!root) {
		return err_set(err, WEFT_EINVAL, "line %d: %s", where.line, where.text);
	}
	rc = load_root(b, root, err);
	json_decref(root);
	if (rc == 0 && b->method == BY_FRAMES) {
		bringup_settle(b);
	}
	return rc;
}
