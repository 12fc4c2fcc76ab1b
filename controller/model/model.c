/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading a fabric as a whole.
 *
 * The order is that of what refers to what: hosts, devices, fibres, parts that
 * failed, jobs, requested jobs, changes. All mistakes are collected; a fabric
 * comes out only when there is none. It owns its configuration (text and
 * requests), because plans, the journal and the store quote it.
 */
#include "controller/model/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/model/private.h"
#include "lib/base/alloc.h"
#include "lib/base/file.h"
#include "topology/topology.h"

/* What f is the first member of; f comes from this room. */
static const struct fabric *fabric_of(const struct model_fabric *f)
{
	return (const struct fabric *)f;
}

void model_free(struct model_fabric *pub)
{
	struct fabric *f = (struct fabric *)pub;

	if (!f) {
		return;
	}
	model_config_fini(&f->pub.config);
	free(f->pub.hosts);
	free(f->pub.ports);
	free(f->pub.devices);
	free(f->pub.trunks);
	for (int i = 0; i < f->pub.n_jobs; i++) {
		topo_free(f->pub.jobs[i].topo);
		workload_free(f->pub.jobs[i].workload);
	}
	free(f->pub.jobs);
	strmap_fini(&f->hosts);
	strmap_fini(&f->devices);
	strmap_fini(&f->jobs);
	strmap_fini(&f->labels);
	conf_arena_fini(&f->strings);
	free(f);
}

int model_find_host(const struct model_fabric *f, const char *name)
{
	return build_find(&fabric_of(f)->hosts, name);
}

int model_find_device(const struct model_fabric *f, const char *name)
{
	return build_find(&fabric_of(f)->devices, name);
}

int model_find_job(const struct model_fabric *f, const char *name)
{
	return build_find(&fabric_of(f)->jobs, name);
}

/* The host whose name or label the text up to a dot is; *rest: what follows it. */
static int find_owner(const struct model_fabric *f, const char *name, const char **rest)
{
	char owner[MODEL_MAX_LABEL + 1];

	for (int label = 0; label <= 1; label++) {
		for (const char *dot = strchr(name, '.'); dot; dot = strchr(dot + 1, '.')) {
			size_t len = (size_t)(dot - name);
			int host;

			if (len > MODEL_MAX_LABEL) {
				break;
			}
			memcpy(owner, name, len);
			owner[len] = '\0';
			*rest = dot + 1;
			host = build_find(label ? &fabric_of(f)->labels : &fabric_of(f)->hosts,
					  owner);
			if (host >= 0) {
				return host;
			}
		}
	}
	return -1;
}

/* Whether a port of the host is meant by its own name, that without its lane, or its
 * label. */
static bool is_meant(const struct model_port *p, const char *host, const char *text, int by)
{
	const char *name = p->name + strlen(host) + 1;
	size_t len = (size_t)(strrchr(name, '-') ? strrchr(name, '-') - name : 0);

	return by == 0 ? strcmp(name, text) == 0 :
	       by == 1 ? p->lanes > 1 && strlen(text) == len && strncmp(name, text, len) == 0 :
			 p->label && strcmp(p->label, text) == 0;
}

/* The port of a host that a side of a device, or both ("ocs0.5", "ocs0.in5", "ocs0.out5"), has a
 * fibre to; -1: it has none, or the text names no side of a device. */
static int find_behind(const struct model_fabric *f, const char *name)
{
	const char *dot = strrchr(name, '.'), *digits = dot ? dot + strcspn(dot, "0123456789") : "";
	const bool in = dot && strncmp(dot, ".in", 3) == 0 && digits == dot + 3;
	const bool out = dot && strncmp(dot, ".out", 4) == 0 && digits == dot + 4;
	char device[CONF_MAX_NAME + 1], *end;
	long number = strtol(digits, &end, 10);
	int d;

	if (!dot || dot - name > CONF_MAX_NAME || *end || (!in && !out && digits != dot + 1)) {
		return -1;
	}
	snprintf(device, sizeof(device), "%.*s", (int)(dot - name), name);
	d = model_find_device(f, device);
	for (int i = 0; i < f->n_ports && d >= 0; i++) {
		const struct model_port *p = &f->ports[i];

		if ((out || (p->tx_device == d && p->tx_port == number - 1)) &&
		    (in || (p->rx_device == d && p->rx_port == number - 1))) {
			return i;
		}
	}
	return -1;
}

int model_find_port(const struct model_fabric *f, const char *name, int *port, int *lanes,
		    struct err *err)
{
	const char *rest;
	int host = find_owner(f, name, &rest);

	if (host < 0 && (*port = find_behind(f, name)) >= 0) {
		*lanes = 1;
		return 0;
	}
	if (host < 0) {
		return err_set(err, WEFT_ENOTFOUND, "there is no host of a port '%.80s'", name);
	}
	for (int by = 0; by < 3; by++) {
		const struct model_host *h = &f->hosts[host];

		for (*port = h->first_port; *port < h->first_port + h->n_ports; ++*port) {
			const struct model_port *p = &f->ports[*port];

			if (is_meant(p, h->name, rest, by)) {
				*lanes = by == 0 ? 1 : p->lanes;
				return 0;
			}
		}
	}
	return err_set(err, WEFT_ENOTFOUND, "host %s has no port '%.80s'", f->hosts[host].name,
		       rest);
}

/* ---- reading ---- */

/* The name of a later format would be wasted on its keys. */
static bool is_our_version(struct conf_reader *r, const struct conf_node *root)
{
	for (const struct conf_node *k = root->first; k; k = k->next->next) {
		const struct conf_node *v = k->next;

		if (strcmp(k->text, "weft") == 0 && v->kind == CONF_NODE_TEXT && v->text[0] &&
		    !v->text[strspn(v->text, "0123456789")] && strcmp(v->text, "1") != 0) {
			conf_error(r, v->at, WEFT_EUNSUPPORTED,
				   "fabric: weft: version %.20s of the format is not supported, "
				   "only 1",
				   v->text);
			return false;
		}
	}
	return true;
}

static void build_changes(struct model_build *b, const struct conf_value *map)
{
	static const struct conf_node none = { .kind = CONF_NODE_MAP };
	const struct conf_node *node = map->node;
	struct conf_value v[CONF_MAX_KEYS];

	if (node && !map->ok) {
		return;
	}
	/* Without the section its defaults hold. */
	conf_read_section(b->r, &section_changes, "changes", node ? node : &none, v);
	b->f->pub.changes = (struct model_changes){
		.keep_ppm = v[CHANGES_KEEP].num,
		.keep_pair_ppm = v[CHANGES_KEEP_PAIR].num,
		.gate_ppm = v[CHANGES_GATE].num,
		.stop = v[CHANGES_BELOW].num,
		.verify = (enum model_verify)v[CHANGES_VERIFY].num,
		.drain = (enum model_drain)v[CHANGES_DRAIN].num,
		.external = (enum model_external)(v[CHANGES_EXTERNAL].num + 1),
		.restore_after_ns = v[CHANGES_RESTORE_AFTER].num,
		.resume_within_ns = v[CHANGES_RESUME_WITHIN].num,
		.pays_back_ns = v[CHANGES_PAYS_BACK].num,
		.max_lease_ns = v[CHANGES_MAX_LEASE].num,
		.place = node ? node->at : (struct conf_place){ 0, 0 },
	};
}

static model_check_fn check_device;

void model_check_devices_by(model_check_fn fn)
{
	check_device = fn;
}

/* Devices of one entry have the same of all that is asked. */
static void check_drivers(struct model_build *b)
{
	struct err_list found = { 0 };

	for (size_t i = 0; i < b->devices.n && check_device; i++) {
		const struct model_device *d = &b->devices.v[i], *before = d - (i > 0);

		/* NULL: what stands there is no name, which is reported. */
		if (d->driver && d->driver[0] && (i == 0 || d->driver != before->driver ||
				     d->options != before->options)) {
			check_device(d, b->f->pub.config.name, &found);
		}
	}
	for (int i = 0; i < found.n; i++) {
		b->r->n_errors++;
		err_list_add(b->r->errs, &found.v[i]);
	}
	err_list_fini(&found);
}

/* The parts in the order of what refers to what. Later ones run even if earlier
 * ones had mistakes, so that one run reports all. */
static void build_all(struct model_build *b, const struct conf_node *root)
{
	struct conf_value v[CONF_MAX_KEYS];

	if (root->kind == CONF_NODE_MAP && !is_our_version(b->r, root)) {
		return;
	}
	conf_read_section(b->r, &section_fabric, "fabric", root, v);
	if (root->kind != CONF_NODE_MAP) {
		return;
	}
	if (v[FABRIC_NAME].ok) {
		b->f->pub.name = conf_arena_strndup(b->r->keep, v[FABRIC_NAME].text,
						    strlen(v[FABRIC_NAME].text));
	}
	build_hosts(b, v);
	build_devices(b, v);
	check_drivers(b);
	build_check_hosts(b);
	build_fibres(b, v);
	build_cube_fibres(b);
	build_dead(b, v);
	build_jobs(b, v);
	build_circuits(b, v);
	build_ports(b);
	build_requests(b);
	build_ports(b);
	build_port_lists(b);
	build_changes(b, &v[FABRIC_CHANGES]);
}

/* Hands the arrays to the fabric, or frees what is not its own. */
static void build_fini(struct model_build *b)
{
	struct model_fabric *f = &b->f->pub;

	f->hosts = b->hosts.v;
	f->n_hosts = (int)b->hosts.n;
	f->ports = b->ports.v;
	f->n_ports = (int)b->ports.n;
	f->devices = b->devices.v;
	f->n_devices = (int)b->devices.n;
	f->trunks = b->trunks.v;
	f->n_trunks = (int)b->trunks.n;
	f->jobs = b->jobs.v;
	f->n_jobs = (int)b->jobs.n;
	for (size_t i = 0; i < b->classes.n; i++) {
		strmap_fini(&b->classes.v[i].ports);
		strmap_fini(&b->classes.v[i].laned);
	}
	strmap_fini(&b->circuits);
	vec_fini(&b->cubes);
	vec_fini(&b->entries);
	vec_fini(&b->links);
	vec_fini(&b->marks);
	vec_fini(&b->classes);
	vec_fini(&b->class_of);
	vec_fini(&b->device_unsure);
	strmap_fini(&b->addresses);
}

static void read_fabric(struct conf_reader *r, struct fabric *f)
{
	const struct model_config *config = &f->pub.config;
	struct model_build b = { .r = r, .names_left = MODEL_MAX_NAMES, .f = f };
	const struct conf_node *root;

	if (config->len > MODEL_MAX_TEXT) {
		conf_error(r, (struct conf_place){ 0, 0 }, WEFT_ELIMIT,
			   "text: %zu bytes, at most %u are read", config->len, MODEL_MAX_TEXT);
		return;
	}
	root = conf_read_yaml(r, config->text, config->len);
	if (root) {
		build_all(&b, root);
	}
	build_fini(&b);
}

/* Of the configuration as it is when its requests have their ports. */
static void hash_config(struct model_fabric *f)
{
	struct model_config text = { .text = f->config.text, .len = f->config.len };

	model_config_hash(&text, f->text_hash);
	model_config_hash(&f->config, f->hash);
}

int model_parse_config(const struct model_config *config, struct model_fabric **out,
		       struct err_list *errs)
{
	struct fabric *f = x_new(1, sizeof(*f));
	struct conf_reader r;
	int rc = 0;

	*out = NULL;
	model_config_copy(&f->pub.config, config);
	conf_reader_init(&r, f->pub.config.name, "fabric", &f->strings, errs);
	read_fabric(&r, f);
	if (r.n_errors > 0) {
		err_list_sort(errs);
		rc = errs->n > 0 ? errs->v[0].code : r.unkept.code;
		model_free(&f->pub);
	} else {
		hash_config(&f->pub);
		*out = &f->pub;
	}
	conf_reader_fini(&r);
	return rc;
}

int model_parse(const char *name, const char *text, size_t len, struct model_fabric **out,
		struct err_list *errs)
{
	struct model_config config;
	int rc;

	model_config_init(&config, name, text, len);
	rc = model_parse_config(&config, out, errs);
	model_config_fini(&config);
	return rc;
}

int model_load(const char *path, struct model_fabric **out, struct err_list *errs)
{
	char *text = NULL;
	size_t len = 0;
	struct err err;
	int rc;

	*out = NULL;
	rc = file_read(path, MODEL_MAX_TEXT, &text, &len, &err);
	if (rc || (rc = model_splice(path, &text, &len, &err))) {
		err_list_add(errs, &err);
		free(text);
		return rc;
	}
	rc = model_parse(strcmp(path, "-") == 0 ? "<stdin>" : path, text, len, out, errs);
	free(text);
	return rc;
}
