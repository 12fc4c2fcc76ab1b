/*
 * Instances in YAML. The file is read as a tree of nodes first (libyaml),
 * then keys are taken from it; what nobody took is an error.
 */
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "lib/base/map.h"
#include "lib/base/units.h"
#include "rwa/mesh/private.h"

struct reader {
	const char *name;
	yaml_document_t doc;
	struct rwa_mesh *m;
	struct strmap names;	/* of nodes, to number + 1 */
	struct u64map arcs;	/* (from, to), to number */
	/* lightpaths: */
	struct rwa_assignment *light;
	struct u64map demands;	/* demand_key(), to the first one */
	VEC(int32_t) same;	/* next demand with that key, or -1 */
	VEC(int32_t) room;	/* lightpaths that a demand still takes */
	uint64_t opened;	/* demand_key() of a working lightpath whose
				 * backup comes next, 0: none */
	bool add;		/* and make room where there is none */
	int64_t left_out;
	struct err *err;
};

static int fail(struct reader *r, const yaml_node_t *at)
{
	err_at(r->err, r->name, (int)at->start_mark.line + 1,
	       (int)at->start_mark.column + 1);
	return r->err->code;
}

static yaml_node_t *node(struct reader *r, int index)
{
	return yaml_document_get_node(&r->doc, index);
}

static const char *text_of(const yaml_node_t *n)
{
	return n->type == YAML_SCALAR_NODE
		       ? (const char *)n->data.scalar.value
		       : NULL;
}

static int expect(struct reader *r, const yaml_node_t *n,
		  yaml_node_type_t type, const char *what)
{
	static const char *const names[] = { "nothing", "a scalar", "a list",
					     "a mapping" };

	if (n->type == type) {
		return 0;
	}
	err_set(r->err, WEFT_EINVAL, "%s must be %s", what, names[type]);
	return fail(r, n);
}

/* Every key of a mapping must be one of keys, and only once. */
static int check_keys(struct reader *r, const yaml_node_t *map,
		      const char *const *keys)
{
	for (const yaml_node_pair_t *p = map->data.mapping.pairs.start;
	     p < map->data.mapping.pairs.top; p++) {
		const yaml_node_t *key = node(r, p->key);
		const char *name = text_of(key);
		int k = 0;

		while (keys[k] && name && strcmp(keys[k], name) != 0) {
			k++;
		}
		if (!name || !keys[k]) {
			err_set(r->err, WEFT_EINVAL, "unknown key %s",
				name ? name : "(not a scalar)");
			return fail(r, key);
		}
		for (const yaml_node_pair_t *q = map->data.mapping.pairs.start;
		     q < p; q++) {
			if (strcmp(text_of(node(r, q->key)), name) == 0) {
				err_set(r->err, WEFT_EINVAL, "key %s again",
					name);
				return fail(r, key);
			}
		}
	}
	return 0;
}

/* The value of a key, NULL when absent. */
static yaml_node_t *get(struct reader *r, const yaml_node_t *map,
			const char *name)
{
	for (const yaml_node_pair_t *p = map->data.mapping.pairs.start;
	     p < map->data.mapping.pairs.top; p++) {
		if (strcmp(text_of(node(r, p->key)), name) == 0) {
			return node(r, p->value);
		}
	}
	return NULL;
}

static int as_number(struct reader *r, const yaml_node_t *n, const char *what,
		     int64_t min, int64_t max, int32_t *out)
{
	const char *s = text_of(n);
	char *end;
	long long v;

	if (!s || !*s || strlen(s) > 12) {
		err_set(r->err, WEFT_EINVAL, "%s must be a whole number", what);
		return fail(r, n);
	}
	v = strtoll(s, &end, 10);
	if (*end || v < min || v > max) {
		err_set(r->err, WEFT_EINVAL, "%s: %s is not a whole number of "
			"%lld to %lld", what, s, (long long)min,
			(long long)max);
		return fail(r, n);
	}
	*out = (int32_t)v;
	return 0;
}

static int get_number(struct reader *r, const yaml_node_t *map,
		      const char *name, int64_t min, int64_t max, int32_t *out)
{
	const yaml_node_t *n = get(r, map, name);

	return n ? as_number(r, n, name, min, max, out) : 0;
}

static int get_unit(struct reader *r, const yaml_node_t *map, const char *name,
		    enum unit_kind kind, int32_t *out)
{
	const yaml_node_t *n = get(r, map, name);
	int64_t v;

	if (!n) {
		return 0;
	}
	if (expect(r, n, YAML_SCALAR_NODE, name)) {
		return r->err->code;
	}
	if (unit_parse(kind, text_of(n), &v, r->err)) {
		err_wrap(r->err, "%s", name);
		return fail(r, n);
	}
	if (v > 1000000 || v < (kind == UNIT_MDBM ? -1000000 : 0)) {
		err_set(r->err, WEFT_EINVAL, "%s is out of range", name);
		return fail(r, n);
	}
	*out = (int32_t)v;
	return 0;
}

static int get_flag(struct reader *r, const yaml_node_t *map, const char *name,
		    bool *out)
{
	const yaml_node_t *n = get(r, map, name);
	const char *s = n ? text_of(n) : NULL;

	if (!n) {
		return 0;
	}
	if (!s || (strcmp(s, "true") != 0 && strcmp(s, "false") != 0)) {
		err_set(r->err, WEFT_EINVAL, "%s must be true or false", name);
		return fail(r, n);
	}
	*out = *s == 't';
	return 0;
}

/* ---- nodes ---- */

/* A range "0-7" or a channel "9"; false when it is neither. */
static bool parse_range(const char **at, struct rwa_mesh_tuning *t)
{
	long first, last;
	char *end;

	if (**at < '0' || **at > '9') {
		return false;
	}
	first = last = strtol(*at, &end, 10);
	if (*end == '-' && end[1] >= '0' && end[1] <= '9') {
		last = strtol(end + 1, &end, 10);
	}
	*at = end;
	t->first = first < INT32_MAX ? (int32_t)first : INT32_MAX;
	t->last = last < INT32_MAX ? (int32_t)last : INT32_MAX;
	return true;
}

/* tune: channels and ranges of them, "0-7,16-23". */
static int read_tuning(struct reader *r, int32_t v, const yaml_node_t *n)
{
	struct rwa_mesh_tuning t = { .node = v };
	const char *at;

	if (!n) {
		return 0;
	}
	if (expect(r, n, YAML_SCALAR_NODE, "tune")) {
		return r->err->code;
	}
	for (at = text_of(n);; at++) {
		at += strspn(at, " ");
		if (!parse_range(&at, &t) || (*at && *at != ',')) {
			err_set(r->err, WEFT_EINVAL, "tune: channels such as "
				"\"0-7,16-23\" are expected");
			return fail(r, n);
		}
		if (rwa_mesh_add_tuning(r->m, &t, r->err)) {
			err_wrap(r->err, "tune");
			return fail(r, n);
		}
		if (!*at) {
			return 0;
		}
	}
}

static int read_node(struct reader *r, int32_t v, const yaml_node_t *n)
{
	static const char *const keys[] = { "name", "add", "drop", "pass",
					    "convert", "tune", NULL };
	struct rwa_mesh_node *node_v = &r->m->nodes.v[v];
	const yaml_node_t *name = n;
	int rc = 0;

	if (n->type != YAML_SCALAR_NODE) {
		rc = expect(r, n, YAML_MAPPING_NODE, "a node");
		rc = rc ? rc : check_keys(r, n, keys);
		if (rc) {
			return rc;
		}
		name = get(r, n, "name");
		(void)((rc = get_number(r, n, "add", 0, INT32_MAX,
					&node_v->add_limit)) ||
		       (rc = get_number(r, n, "drop", 0, INT32_MAX,
					&node_v->drop_limit)) ||
		       (rc = get_unit(r, n, "pass", UNIT_MDB,
				      &node_v->pass_mdb)) ||
		       (rc = get_flag(r, n, "convert", &node_v->convert)) ||
		       (rc = read_tuning(r, v, get(r, n, "tune"))));
	}
	if (!rc && (!name || !text_of(name) || !*text_of(name))) {
		err_set(r->err, WEFT_EINVAL, "a node needs a name");
		return fail(r, n);
	}
	if (!rc && strmap_get(&r->names, text_of(name))) {
		err_set(r->err, WEFT_EINVAL, "node %s again", text_of(name));
		return fail(r, name);
	}
	if (!rc) {
		node_v->name = strdup(text_of(name));
		rc = !node_v->name || strmap_set(&r->names, text_of(name),
						 (void *)(intptr_t)(v + 1))
			     ? err_nomem(r->err)
			     : 0;
	}
	return rc;
}

/* nodes: a number, or a list of names and mappings. */
static int read_nodes(struct reader *r, const yaml_node_t *root)
{
	const yaml_node_t *n = get(r, root, "nodes");
	int32_t count = 0;
	int rc = 0;

	if (!n) {
		err_set(r->err, WEFT_EINVAL, "nodes are missing");
		return fail(r, root);
	}
	if (n->type == YAML_SCALAR_NODE) {
		rc = as_number(r, n, "nodes", 1, RWA_MESH_MAX_NODES, &count);
		return rc ? rc : rwa_mesh_new(count, &r->m, r->err);
	}
	rc = expect(r, n, YAML_SEQUENCE_NODE, "nodes");
	if (!rc) {
		count = (int32_t)(n->data.sequence.items.top -
				  n->data.sequence.items.start);
		rc = rwa_mesh_new(count, &r->m, r->err) ? fail(r, n) : 0;
	}
	for (int32_t v = 0; !rc && v < count; v++) {
		rc = read_node(r, v, node(r, n->data.sequence.items.start[v]));
	}
	return rc;
}

/* A node by name, or by number when nodes have no names. */
static int get_node(struct reader *r, const yaml_node_t *map, const char *key,
		    int32_t *out)
{
	const yaml_node_t *n = get(r, map, key);
	void *found;

	if (!n) {
		err_set(r->err, WEFT_EINVAL, "%s is missing", key);
		return fail(r, map);
	}
	if (!r->m->nodes.v[0].name) {
		return as_number(r, n, key, 0, (int64_t)r->m->nodes.n - 1, out);
	}
	found = text_of(n) ? strmap_get(&r->names, text_of(n)) : NULL;
	if (!found) {
		err_set(r->err, WEFT_EINVAL, "%s: no node is called %s", key,
			text_of(n) ? text_of(n) : "that");
		return fail(r, n);
	}
	*out = (int32_t)(intptr_t)found - 1;
	return 0;
}

/* ---- links, demands, blocks ---- */

static int set_domain(struct reader *r, const yaml_node_t *link, int32_t arc)
{
	const yaml_node_t *n = get(r, link, "domain");

	if (!n) {
		return 0;
	}
	if (!text_of(n) || !*text_of(n)) {
		err_set(r->err, WEFT_EINVAL, "domain must be a name");
		return fail(r, n);
	}
	return rwa_mesh_set_domain(r->m, arc, text_of(n), r->err) ? fail(r, n)
								  : 0;
}

static int add_arc(struct reader *r, const yaml_node_t *n,
		   const struct rwa_mesh_arc *arc)
{
	uint64_t key = (uint64_t)arc->src << 32 | (uint32_t)arc->dst;

	if (u64map_get(&r->arcs, key, NULL)) {
		err_set(r->err, WEFT_EINVAL,
			"this link again: give it more fibres instead");
		return fail(r, n);
	}
	if (u64map_set(&r->arcs, key, r->m->arcs.n)) {
		return err_nomem(r->err);
	}
	return rwa_mesh_add_arc(r->m, arc, r->err)
		       ? fail(r, n)
		       : set_domain(r, n, (int32_t)r->m->arcs.n - 1);
}

static int read_link(struct reader *r, const yaml_node_t *n)
{
	static const char *const keys[] = { "from", "to", "fibres", "loss",
					    "duplex", "domain", NULL };
	struct rwa_mesh_arc arc = { .fibres = 1 }, back;
	bool duplex = true;
	int rc = check_keys(r, n, keys);

	if (rc || (rc = get_node(r, n, "from", &arc.src)) ||
	    (rc = get_node(r, n, "to", &arc.dst)) ||
	    (rc = get_number(r, n, "fibres", 1, RWA_MESH_MAX_FIBRES,
			     &arc.fibres)) ||
	    (rc = get_unit(r, n, "loss", UNIT_MDB, &arc.loss_mdb)) ||
	    (rc = get_flag(r, n, "duplex", &duplex))) {
		return rc;
	}
	back = arc;
	back.src = arc.dst;
	back.dst = arc.src;
	rc = add_arc(r, n, &arc);
	return rc || !duplex ? rc : add_arc(r, n, &back);
}

static int read_demand(struct reader *r, const yaml_node_t *n)
{
	static const char *const keys[] = { "from", "to", "count", "protect",
					    NULL };
	struct rwa_mesh_demand d = { .count = 1 };
	int rc = check_keys(r, n, keys);

	if (rc || (rc = get_node(r, n, "from", &d.src)) ||
	    (rc = get_node(r, n, "to", &d.dst)) ||
	    (rc = get_number(r, n, "count", 1, RWA_MESH_MAX_LIGHTPATHS,
			     &d.count)) ||
	    (rc = get_flag(r, n, "protect", &d.protect))) {
		return rc;
	}
	return rwa_mesh_add_demand(r->m, &d, r->err) ? fail(r, n) : 0;
}

static int read_block(struct reader *r, const yaml_node_t *n)
{
	static const char *const keys[] = { "from", "to", "fibre", "channel",
					    NULL };
	struct rwa_mesh_block b = { .fibre = RWA_MESH_ALL,
				    .channel = RWA_MESH_ALL };
	int32_t src, dst;
	uint64_t arc;
	int rc = check_keys(r, n, keys);

	if (rc || (rc = get_node(r, n, "from", &src)) ||
	    (rc = get_node(r, n, "to", &dst)) ||
	    (rc = get_number(r, n, "fibre", 0, RWA_MESH_MAX_FIBRES, &b.fibre)) ||
	    (rc = get_number(r, n, "channel", 0, RWA_MESH_MAX_CHANNELS - 1,
			     &b.channel))) {
		return rc;
	}
	if (!u64map_get(&r->arcs, (uint64_t)src << 32 | (uint32_t)dst, &arc)) {
		err_set(r->err, WEFT_EINVAL, "no link leads there");
		return fail(r, n);
	}
	b.arc = (int32_t)arc;
	return rwa_mesh_add_block(r->m, &b, r->err) ? fail(r, n) : 0;
}

static int read_list(struct reader *r, const yaml_node_t *root,
		     const char *name,
		     int (*read)(struct reader *, const yaml_node_t *))
{
	const yaml_node_t *n = get(r, root, name);
	int rc = n ? expect(r, n, YAML_SEQUENCE_NODE, name) : 0;

	if (!n || rc) {
		return rc;
	}
	for (const yaml_node_item_t *i = n->data.sequence.items.start;
	     !rc && i < n->data.sequence.items.top; i++) {
		const yaml_node_t *item = node(r, *i);

		rc = expect(r, item, YAML_MAPPING_NODE, "an entry");
		rc = rc ? rc : read(r, item);
	}
	return rc;
}

static int read_demands(struct reader *r, const yaml_node_t *root)
{
	const yaml_node_t *n = get(r, root, "demands");

	if (n && text_of(n) && strcmp(text_of(n), "all") == 0) {
		return rwa_mesh_all_to_all(r->m, r->err) ? fail(r, n) : 0;
	}
	return read_list(r, root, "demands", read_demand);
}

static int read_budget(struct reader *r, const yaml_node_t *root)
{
	static const char *const keys[] = { "launch", "sensitivity", "margin",
					    "add", "drop", NULL };
	const yaml_node_t *n = get(r, root, "budget");
	int32_t launch = 0, sensitivity = 0, margin = 0;
	int rc;

	if (!n) {
		return 0;
	}
	rc = expect(r, n, YAML_MAPPING_NODE, "budget");
	if (rc || (rc = check_keys(r, n, keys)) ||
	    (rc = get_unit(r, n, "launch", UNIT_MDBM, &launch)) ||
	    (rc = get_unit(r, n, "sensitivity", UNIT_MDBM, &sensitivity)) ||
	    (rc = get_unit(r, n, "margin", UNIT_MDB, &margin)) ||
	    (rc = get_unit(r, n, "add", UNIT_MDB, &r->m->add_mdb)) ||
	    (rc = get_unit(r, n, "drop", UNIT_MDB, &r->m->drop_mdb))) {
		return rc;
	}
	r->m->budget_mdb = (int64_t)launch - sensitivity - margin;
	if (r->m->budget_mdb < 0) {
		err_set(r->err, WEFT_EINVAL, "budget: less light is launched "
			"than a receiver needs");
		return fail(r, n);
	}
	return 0;
}

static int read_guard(struct reader *r, const yaml_node_t *root)
{
	static const char *const keys[] = { "between", "below", "above", NULL };
	const yaml_node_t *n = get(r, root, "guard");
	struct rwa_mesh_guard *g = &r->m->guard;
	int rc;

	if (!n) {
		return 0;
	}
	rc = expect(r, n, YAML_MAPPING_NODE, "guard");
	if (rc || (rc = check_keys(r, n, keys)) ||
	    (rc = get_number(r, n, "between", 0, RWA_MESH_MAX_GUARD,
			     &g->between)) ||
	    (rc = get_number(r, n, "below", 0, RWA_MESH_MAX_GUARD,
			     &g->below))) {
		return rc;
	}
	return get_number(r, n, "above", 0, RWA_MESH_MAX_GUARD, &g->above);
}

static int read_root(struct reader *r, const yaml_node_t *root)
{
	static const char *const keys[] = { "nodes", "links", "demands",
					    "in_use", "channels", "budget",
					    "guard", NULL };
	int rc = expect(r, root, YAML_MAPPING_NODE, "an instance");

	rc = rc ? rc : check_keys(r, root, keys);
	rc = rc ? rc : read_nodes(r, root);
	rc = rc ? rc : read_list(r, root, "links", read_link);
	rc = rc ? rc : read_list(r, root, "in_use", read_block);
	rc = rc ? rc : read_demands(r, root);
	rc = rc ? rc : read_budget(r, root);
	rc = rc ? rc : read_guard(r, root);
	return rc ? rc : get_number(r, root, "channels", 1,
				    RWA_MESH_MAX_CHANNELS, &r->m->channels);
}

/* Parses the text into r->doc; its root goes to *root. */
static int load(struct reader *r, const char *text, size_t len,
		const yaml_node_t **root)
{
	yaml_parser_t parser;
	int rc = 0;

	*root = NULL;
	if (!yaml_parser_initialize(&parser)) {
		return err_nomem(r->err);
	}
	yaml_parser_set_input_string(&parser, (const unsigned char *)text, len);
	if (!yaml_parser_load(&parser, &r->doc)) {
		rc = err_set(r->err, WEFT_EINVAL, "%s",
			     parser.problem ? parser.problem : "not YAML");
		err_at(r->err, r->name, (int)parser.problem_mark.line + 1,
		       (int)parser.problem_mark.column + 1);
		yaml_parser_delete(&parser);
		return rc;
	}
	yaml_parser_delete(&parser);
	*root = yaml_document_get_root_node(&r->doc);
	if (!*root) {
		rc = err_set(r->err, WEFT_EINVAL, "the file is empty");
		err_at(r->err, r->name, 1, 0);
		yaml_document_delete(&r->doc);
	}
	return rc;
}

static void reader_fini(struct reader *r)
{
	yaml_document_delete(&r->doc);
	strmap_fini(&r->names);
	u64map_fini(&r->arcs);
	u64map_fini(&r->demands);
	vec_fini(&r->same);
	vec_fini(&r->room);
}

int rwa_mesh_read_yaml(const char *name, const char *text, size_t len,
		       struct rwa_mesh **out, struct err *err)
{
	struct reader r = { .name = name, .err = err };
	const yaml_node_t *root;
	int rc = load(&r, text, len, &root);

	*out = NULL;
	if (rc) {
		return rc;
	}
	rc = read_root(&r, root);
	reader_fini(&r);
	if (rc) {
		rwa_mesh_free(r.m);
		r.m = NULL;
	}
	*out = r.m;
	return rc;
}

/* ---- lightpaths ---- */

static uint64_t pair_key(int32_t src, int32_t dst)
{
	return (uint64_t)src << 32 | (uint32_t)dst;
}

/* Ends, and whether in pairs. */
static uint64_t demand_key(const struct rwa_mesh_demand *d)
{
	return pair_key(d->src, d->dst) | (uint64_t)d->protect << 63;
}

/* Puts demand d before the others with its ends. */
static int list_demand(struct reader *r, size_t d)
{
	const struct rwa_mesh_demand *v = &r->m->demands.v[d];
	uint64_t key = demand_key(v), next;

	r->same.v[d] = u64map_get(&r->demands, key, &next) ? (int32_t)next
							   : -1;
	r->room.v[d] = v->count * (v->protect ? 2 : 1);
	return u64map_set(&r->demands, key, d);
}

/* Lists the mesh's names, arcs, and demands by their ends. */
static int list_mesh(struct reader *r)
{
	const struct rwa_mesh *m = r->m;
	size_t n = m->demands.n;
	int rc = 0;

	rc = vec_reserve(&r->same, n) || vec_reserve(&r->room, n) ? WEFT_ENOMEM
								  : 0;
	r->same.n = r->room.n = n;
	for (size_t v = 0; !rc && v < m->nodes.n && m->nodes.v[0].name; v++) {
		rc = strmap_set(&r->names, m->nodes.v[v].name,
				(void *)(intptr_t)(v + 1));
	}
	for (size_t e = m->arcs.n; !rc && e-- > 0;) {
		rc = u64map_set(&r->arcs, pair_key(m->arcs.v[e].src,
						   m->arcs.v[e].dst), e);
	}
	for (size_t d = n; !rc && d-- > 0;) {
		rc = list_demand(r, d);
	}
	return rc ? err_nomem(r->err) : 0;
}

/* A demand more, or one more of the first that is alike; *d: which. One of a
 * pair leaves room for the other. */
static int make_room(struct reader *r, const struct rwa_mesh_demand *one,
		     int32_t *d)
{
	uint64_t first;

	if (u64map_get(&r->demands, demand_key(one), &first)) {
		*d = (int32_t)first;
		r->m->demands.v[first].count++;
		r->m->lightpaths += one->protect ? 2 : 1;
		r->room.v[first] += one->protect;
		return 0;
	}
	*d = (int32_t)r->m->demands.n;
	if (rwa_mesh_add_demand(r->m, one, r->err)) {
		return r->err->code;
	}
	if (vec_push(&r->same, -1) || vec_push(&r->room, 0) ||
	    list_demand(r, (size_t)*d)) {
		return err_nomem(r->err);
	}
	r->room.v[*d] = one->protect;
	return 0;
}

/* The first demand like this that has room, -1: none. */
static int32_t find_demand(const struct reader *r,
			   const struct rwa_mesh_demand *one)
{
	uint64_t first;
	int32_t d = u64map_get(&r->demands, demand_key(one), &first)
			    ? (int32_t)first : -1;

	while (d >= 0 && !r->room.v[d]) {
		d = r->same.v[d];
	}
	return d;
}

/* The demand of a lightpath: one that is alike, or else another with its
 * ends; -1: none. */
static int take_demand(struct reader *r, struct rwa_mesh_demand *one,
		       int32_t *d)
{
	*d = find_demand(r, one);
	if (*d < 0 && r->add) {
		return make_room(r, one, d);
	}
	if (*d < 0) {
		one->protect = !one->protect;
		*d = find_demand(r, one);
	}
	if (*d >= 0) {
		r->room.v[*d]--;
	}
	return 0;
}

/* Working and backup follow each other. */
static int read_role(struct reader *r, const yaml_node_t *n,
		     struct rwa_mesh_demand *d)
{
	const yaml_node_t *role = get(r, n, "role");
	const char *s = role && text_of(role) ? text_of(role) : "";
	uint64_t opened = r->opened;
	bool backup = strcmp(s, "backup") == 0;

	d->protect = role != NULL;
	if (role && !backup && strcmp(s, "working") != 0) {
		err_set(r->err, WEFT_EINVAL, "role: working or backup");
		return fail(r, role);
	}
	r->opened = d->protect && !backup ? demand_key(d) : 0;
	if (opened != (backup ? demand_key(d) : 0)) {
		err_set(r->err, WEFT_EINVAL, backup
			? "a backup without its working lightpath before it"
			: "the working lightpath before has no backup");
		return fail(r, n);
	}
	return 0;
}

static int read_hop(struct reader *r, const yaml_node_t *n, int32_t *at)
{
	struct rwa_hop hop = { 0, 0, 0 };
	uint64_t arc;
	int32_t to;
	int rc = expect(r, n, YAML_MAPPING_NODE, "a hop");

	if (rc || (rc = get_node(r, n, "to", &to)) ||
	    (rc = get_number(r, n, "fibre", 0, RWA_MESH_MAX_FIBRES - 1,
			     &hop.fibre)) ||
	    (rc = get_number(r, n, "channel", 0, RWA_MESH_MAX_CHANNELS - 1,
			     &hop.channel))) {
		return rc;
	}
	if (!get(r, n, "channel") ||
	    !u64map_get(&r->arcs, pair_key(*at, to), &arc) ||
	    hop.fibre >= r->m->arcs.v[arc].fibres) {
		err_set(r->err, WEFT_EINVAL,
			get(r, n, "channel") ? "no such fibre leads there"
					     : "channel is missing");
		return fail(r, n);
	}
	hop.arc = (int32_t)arc;
	*at = to;
	return vec_push(&r->light->hops, hop) ? err_nomem(r->err) : 0;
}

static int read_lightpath(struct reader *r, const yaml_node_t *n)
{
	struct rwa_path p = { .first = (int64_t)r->light->hops.n };
	const yaml_node_t *hops = get(r, n, "hops");
	struct rwa_mesh_demand d = { .count = 1 };
	int32_t at;
	int rc = get_node(r, n, "from", &d.src);

	rc = rc ? rc : get_node(r, n, "to", &d.dst);
	rc = rc ? rc : read_role(r, n, &d);
	if (!rc && !hops) {
		err_set(r->err, WEFT_EINVAL, "hops are missing");
		return fail(r, n);
	}
	rc = rc ? rc : expect(r, hops, YAML_SEQUENCE_NODE, "hops");
	if (rc) {
		return rc;
	}
	at = d.src;
	for (const yaml_node_item_t *i = hops->data.sequence.items.start;
	     !rc && i < hops->data.sequence.items.top; i++) {
		rc = read_hop(r, node(r, *i), &at);
	}
	if (!rc && (at != d.dst || d.src == d.dst)) {
		err_set(r->err, WEFT_EINVAL,
			"the hops do not lead from one end to the other");
		return fail(r, n);
	}
	p.hops = (int32_t)((int64_t)r->light->hops.n - p.first);
	rc = rc ? rc : take_demand(r, &d, &p.demand);
	if (!rc && p.demand < 0) {
		r->left_out++;
		r->light->hops.n = (size_t)p.first;
		return 0;
	}
	return rc || !vec_push(&r->light->paths, p) ? rc : err_nomem(r->err);
}

static int by_demand(const void *a, const void *b)
{
	const struct rwa_path *x = a, *y = b;

	if (x->demand != y->demand) {
		return x->demand < y->demand ? -1 : 1;
	}
	return x->first < y->first ? -1 : x->first > y->first;
}

int rwa_mesh_read_lightpaths(struct rwa_mesh *m, const char *name,
			     const char *text, size_t len, bool add,
			     struct rwa_assignment *out, int64_t *left_out,
			     struct err *err)
{
	struct reader r = { .name = name, .err = err, .m = m, .light = out,
			    .add = add };
	const yaml_node_t *root;
	int rc;

	*out = (struct rwa_assignment){ 0 };
	rc = load(&r, text, len, &root);
	if (rc) {
		return rc;
	}
	rc = expect(&r, root, YAML_MAPPING_NODE, "lightpaths");
	if (!rc && !get(&r, root, "lightpaths")) {
		err_set(err, WEFT_EINVAL, "lightpaths are missing");
		rc = fail(&r, root);
	}
	rc = rc ? rc : list_mesh(&r);
	rc = rc ? rc : read_list(&r, root, "lightpaths", read_lightpath);
	if (!rc && r.opened) {
		err_set(err, WEFT_EINVAL,
			"the last working lightpath has no backup");
		rc = fail(&r, root);
	}
	if (!rc && out->paths.n) {
		qsort(out->paths.v, out->paths.n, sizeof(*out->paths.v),
		      by_demand);
	}
	*left_out = r.left_out;
	reader_fini(&r);
	if (rc) {
		rwa_assignment_fini(out);
	}
	return rc;
}
