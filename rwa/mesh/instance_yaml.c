/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Instances and assignments in YAML (or JSON, which is YAML). lib/conf reads
 * each mapping by a table of its keys, with types, units and limits; this file
 * has the tables, and turns their values into a mesh. What the tables cannot
 * say (names of nodes, links that must exist, lists of channels) is checked
 * here and reported at the same places. Of an instance all mistakes are
 * reported; what follows from one, such as a name that a bad entry did not
 * define, is not. Reading lightpaths ends at the first mistake.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/map.h"
#include "lib/base/order.h"
#include "lib/conf/conf.h"
#include "rwa/mesh/private.h"

#define MAX_MDB 1000000

/* ---- the format: sections and their keys ---- */

#define TEXT(k, h) { k, CONF_TEXT, .help = h }
#define NEED(k, h) { k, CONF_TEXT, .required = true, .help = h }
#define FLAG(k, d, h) { k, CONF_BOOL, .def = d, .help = h }
#define INT(k, lo, hi, d, h) \
	{ k, CONF_INT, .min = lo, .max = hi, .def = d, .help = h }
#define LOSS(k, h)                                                     \
	{ k, CONF_QUANTITY, .unit = UNIT_MDB, .max = MAX_MDB, .help = h }
#define POWER(k, h)                                                    \
	{ k, CONF_QUANTITY, .unit = UNIT_MDBM, .min = -MAX_MDB,         \
	  .max = MAX_MDB, .help = h }
#define SECTION(s) { #s, s##_keys, sizeof(s##_keys) / sizeof(*s##_keys) }

enum { NODE_NAME, NODE_ADD, NODE_DROP, NODE_PASS, NODE_CONVERT, NODE_TUNE };
static const struct conf_key node_keys[] = {
	NEED("name", "what links and demands call the node"),
	INT("add", 0, INT32_MAX, NULL, "lightpaths that may begin here"),
	INT("drop", 0, INT32_MAX, NULL, "lightpaths that may end here"),
	LOSS("pass", "loss of light that passes the node, such as 0.5dB"),
	FLAG("convert", "false", "true: may change a lightpath's channel"),
	TEXT("tune", "channels its transceivers reach, such as 0-7,16-23"),
};
static const struct conf_section node_section = SECTION(node);

/* The first two keys of all that follow. */
enum { ENDS_FROM, ENDS_TO };
#define ENDS NEED("from", "the node where it begins"), \
	     NEED("to", "the node where it ends")

enum { LINK_FIBRES = 2, LINK_LOSS, LINK_DUPLEX, LINK_DOMAIN };
static const struct conf_key link_keys[] = {
	ENDS, INT("fibres", 1, RWA_MESH_MAX_FIBRES, "1", "fibres each way"),
	LOSS("loss", "insertion loss, such as 1.5dB"),
	FLAG("duplex", "true", "false: only in the direction given"),
	TEXT("domain", "name of its failure domain"),
};
static const struct conf_section link_section = SECTION(link);

/* In the order of enum rwa_protect, then other words for the first two. */
static const char *const protections[] = { "none", "1+1", "shared", "false", "true", NULL };

enum { DEMAND_COUNT = 2, DEMAND_PROTECT };
static const struct conf_key demand_keys[] = {
	ENDS, INT("count", 1, RWA_MESH_MAX_LIGHTPATHS, "1", "lightpaths wanted"),
	{ "protect", CONF_CHOICE, .choices = protections, .def = "none",
	  .help = "none; 1+1 (or true): each with a backup on other links; shared: which may "
		  "share its channels" },
};
static const struct conf_section demand_section = SECTION(demand);

enum { BLOCK_FIBRE = 2, BLOCK_CHANNEL };
static const struct conf_key in_use_keys[] = {
	ENDS, INT("fibre", 0, RWA_MESH_MAX_FIBRES, NULL, "all without it"),
	INT("channel", 0, RWA_MESH_MAX_CHANNELS - 1, NULL, "all without it"),
};
static const struct conf_section in_use_section = SECTION(in_use);

enum { BUDGET_LAUNCH, BUDGET_SENSITIVITY, BUDGET_MARGIN, BUDGET_ADD,
       BUDGET_DROP, BUDGET_KEYS };
static const struct conf_key budget_keys[] = {
	POWER("launch", "power put on one channel, such as 0dBm"),
	POWER("sensitivity", "power that a receiver needs, such as -17dBm"),
	LOSS("margin", "kept in reserve, such as 3dB"),
	LOSS("add", "loss where a lightpath begins, such as 1dB"),
	LOSS("drop", "loss where it ends, such as 1dB"),
};
static const struct conf_section budget_section = SECTION(budget);

enum { GUARD_BETWEEN, GUARD_BELOW, GUARD_ABOVE, GUARD_KEYS };
static const struct conf_key guard_keys[] = {
	INT("between", 0, RWA_MESH_MAX_GUARD, "0", "between any two in use"),
	INT("below", 0, RWA_MESH_MAX_GUARD, "0", "at the lower edge"),
	INT("above", 0, RWA_MESH_MAX_GUARD, "0", "at the upper edge"),
};
static const struct conf_section guard_section = SECTION(guard);

enum { ROOT_NODES, ROOT_LINKS, ROOT_DEMANDS, ROOT_IN_USE, ROOT_CHANNELS,
       ROOT_BUDGET, ROOT_GUARD, ROOT_KEYS };
static const struct conf_key instance_keys[] = {
	{ "nodes", CONF_ANY, .required = true, .help = "a number, or names" },
	{ "links", CONF_ENTRIES, .help = "fibres between nodes" },
	{ "demands", CONF_ANY, .help = "lightpaths wanted, or all" },
	{ "in_use", CONF_ENTRIES, .help = "what no lightpath may use" },
	INT("channels", 1, RWA_MESH_MAX_CHANNELS, NULL, "of a fibre"),
	{ "budget", CONF_MAP, .help = "powers and losses of a lightpath" },
	{ "guard", CONF_MAP, .help = "channels that stay dark" },
};
static const struct conf_section instance_section = SECTION(instance);
/* The other types of two of them. */
static const struct conf_key node_count =
	INT("nodes", 1, RWA_MESH_MAX_NODES, NULL, "a number, or names");
static const struct conf_key demand_list =
	{ "demands", CONF_ENTRIES, .help = "lightpaths wanted, or all" };

/* Files of lightpaths may hold more than weft reads. */
enum { HOP_TO, HOP_FIBRE, HOP_CHANNEL };
static const struct conf_key hop_keys[] = {
	NEED("to", "the node that the hop leads to"),
	INT("fibre", 0, RWA_MESH_MAX_FIBRES - 1, "0", "number of the fibre"),
	{ "channel", CONF_INT, .required = true,
	  .max = RWA_MESH_MAX_CHANNELS - 1, .help = "number of the channel" },
	{ .name = "*", .type = CONF_ANY },
};
static const struct conf_section hop_section = SECTION(hop);

enum { ROLE_WORKING, ROLE_BACKUP };
static const char *const roles[] = { "working", "backup", NULL };

enum { PATH_ROLE = 2, PATH_ID, PATH_HOPS };
static const struct conf_key lightpath_keys[] = {
	ENDS, { "role", CONF_CHOICE, .choices = roles, .help = "of a pair" },
	TEXT("id", "what it is called; else its position in the file, from 0"),
	{ "hops", CONF_ENTRIES, .required = true, .help = "link by link" },
	{ .name = "*", .type = CONF_ANY },
};
static const struct conf_section lightpath_section = SECTION(lightpath);
static const struct conf_key file_keys[] = {
	{ "lightpaths", CONF_ENTRIES, .required = true, .help = "with hops" },
	{ .name = "*", .type = CONF_ANY },
};
static const struct conf_section file_section = SECTION(file);

/* ---- values ---- */

/* A lightpath and its id, owned. */
struct named_path {
	struct rwa_path path;
	char *id;
};

/* The reader of a mesh, and (second part) of an assignment of it. */
struct input {
	struct conf_reader *r;
	struct rwa_mesh *m;
	bool named;		/* nodes have names */
	bool bad_nodes, bad_links;	/* some could not be read */
	bool go_on;		/* after a mistake */
	struct strmap names;	/* of nodes, to number + 1 */
	struct u64map arcs;	/* pair_key(), to number */
	/* lightpaths: */
	struct rwa_assignment *light;
	VEC(struct named_path) paths;	/* in the order of the file */
	struct strmap ids;	/* met so far */
	int64_t position;	/* of the next lightpath */
	struct u64map demands;	/* demand_key(), to the first one */
	VEC(int32_t) same;	/* next demand with that key, or -1 */
	VEC(int32_t) room;	/* lightpaths that a demand still takes */
	uint64_t opened;	/* demand_key() of a working lightpath whose
				 * backup comes next, 0: none */
	int32_t at;		/* node that the hops so far lead to */
	bool add;		/* and make room where there is none */
	bool may_be_dark;	/* lightpaths over what is cut: they are left out */
	bool is_dark;		/* a hop so far is cut */
	struct u64map cut;	/* fibres that are not available, by fibre_key() */
	int64_t dark;		/* of them */
};

/* One mapping that its conf_read_section() found nothing wrong with. */
struct input_entry {
	const char *object;	/* what messages call it */
	const struct conf_node *node;
	const struct conf_value *v;
	int32_t src, dst;	/* where the section has ENDS */
};

static bool fail(const struct input *in, const struct input_entry *e,
		 const struct conf_node *at, const char *what)
{
	conf_error(in->r, at->at, WEFT_EINVAL, "%s: %s", e->object, what);
	return false;
}

/* Reports what a function of mesh.c said of an entry. */
static bool refused(const struct input *in, const struct input_entry *e,
		    const struct conf_node *at, const struct err *err)
{
	conf_error(in->r, at->at, err->code, "%s: %s", e->object, err->msg);
	return false;
}

static uint64_t pair_key(int32_t src, int32_t dst)
{
	return (uint64_t)src << 32 | (uint32_t)dst;
}

/* A node by name, or by number when nodes have no names; one as weft writes
 * it, in quotes. */
static bool get_node(struct input *in, const struct input_entry *e, int key, int32_t *out)
{
	const struct conf_value *v = &e->v[key];
	int nodes = (int)in->m->nodes.n;
	size_t digits = strspn(v->text, "0123456789");
	void *found;

	if (in->named) {
		found = strmap_get(&in->names, v->text);
		if (!found && !in->bad_nodes) {
			conf_error(in->r, v->node->at, WEFT_EINVAL, "%s: no "
				     "node is called '%.64s'", e->object,
				     v->text);
		}
		*out = (int32_t)(intptr_t)found - 1;
		return found;
	}
	if (v->text[digits] || digits > 9 || atoi(v->text) >= nodes) {
		conf_error(in->r, v->node->at, WEFT_EINVAL, "%s: '%.64s' is "
			     "no node, they are 0 to %d", e->object, v->text,
			     nodes - 1);
		return false;
	}
	*out = atoi(v->text);
	return true;
}

/* conf_read_section(), which takes values as good that were refused before, as
 * text: whoever meets those keeps quiet. */
static bool read_section(const struct input *in, const struct conf_section *s, const char *object,
			 const struct conf_node *n, struct conf_value *v)
{
	bool good = conf_read_section(in->r, s, object, n, v);

	for (int k = 0; good && k < s->n_keys; k++) {
		good = !v[k].node || v[k].node->kind != CONF_NODE_BAD;
	}
	return good;
}

/* Reads a list by the table of its entries, up to the first mistake or to the
 * end. */
static bool read_list(struct input *in, const struct conf_section *s, const struct conf_value *list,
		      bool (*read)(struct input *, const struct input_entry *))
{
	struct conf_value v[CONF_MAX_KEYS];
	char object[CONF_MAX_OBJECT];
	const struct conf_node *n = list->node && list->ok ? list->node->first : NULL;
	bool good = true;

	for (int nth = 1; n; n = n->next, nth++) {
		struct input_entry e = { .object = object, .node = n, .v = v };

		conf_object_name(s, n, nth, object);
		if (!read_section(in, s, object, n, v) ||
		    (strcmp(s->keys[0].name, "from") == 0 &&
		     (!get_node(in, &e, ENDS_FROM, &e.src) ||
		      !get_node(in, &e, ENDS_TO, &e.dst))) ||
		    !read(in, &e)) {
			good = false;
			if (!in->go_on || in->r->stop) {
				break;
			}
		}
	}
	return good;
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
static bool read_tuning(struct input *in, const struct input_entry *e, int32_t node)
{
	struct rwa_mesh_tuning t = { .node = node };
	const struct conf_value *v = &e->v[NODE_TUNE];
	struct err err;

	if (!v->node) {
		return true;
	}
	for (const char *at = v->text;; at++) {
		at += strspn(at, " ");
		if (!parse_range(&at, &t) || (*at && *at != ',')) {
			return fail(in, e, v->node, "tune: channels such as "
				    "\"0-7,16-23\" are expected");
		}
		if (rwa_mesh_add_tuning(in->m, &t, &err)) {
			err_wrap(&err, "tune");
			return refused(in, e, v->node, &err);
		}
		if (!*at) {
			return true;
		}
	}
}

static bool set_name(struct input *in, const struct input_entry *e, int32_t node,
		     const struct conf_node *name)
{
	if (!name->text[0]) {
		return fail(in, e, name, "a node needs a name");
	}
	if (strmap_get(&in->names, name->text)) {
		return fail(in, e, name, "two nodes have this name");
	}
	in->m->nodes.v[node].name = x_dup(name->text);
	strmap_set(&in->names, name->text, (void *)(intptr_t)(node + 1));
	return true;
}

/* A name, or a mapping with all that is special about the node. */
static bool read_node(struct input *in, const struct conf_node *n, int32_t node)
{
	struct rwa_mesh_node *to = &in->m->nodes.v[node];
	struct conf_value v[CONF_MAX_KEYS];
	char object[CONF_MAX_OBJECT];
	struct input_entry e = { .object = object, .node = n, .v = v };

	conf_object_name(&node_section, n, node + 1, object);
	if (n->kind == CONF_NODE_TEXT) {
		return set_name(in, &e, node, n);
	}
	if (!read_section(in, &node_section, object, n, v)) {
		/* Its name may be good nevertheless. */
		if (n->kind == CONF_NODE_MAP && v[NODE_NAME].node && v[NODE_NAME].ok &&
		    v[NODE_NAME].node->kind == CONF_NODE_TEXT) {
			set_name(in, &e, node, v[NODE_NAME].node);
		} else {
			in->bad_nodes = true;
		}
		return false;
	}
	if (v[NODE_ADD].node) {
		to->add_limit = (int32_t)v[NODE_ADD].num;
	}
	if (v[NODE_DROP].node) {
		to->drop_limit = (int32_t)v[NODE_DROP].num;
	}
	to->pass_mdb = (int32_t)v[NODE_PASS].num;
	to->convert = v[NODE_CONVERT].num;
	return set_name(in, &e, node, v[NODE_NAME].node) && read_tuning(in, &e, node);
}

/* nodes: a number, or a list of names and mappings. */
static bool read_nodes(struct input *in, const struct input_entry *e)
{
	const struct conf_node *n = e->v[ROOT_NODES].node;
	struct conf_value count;
	struct err err;
	int32_t node = 0;
	bool good = true;

	if (n->kind != CONF_NODE_LIST) {
		return conf_read_value(in->r, e->object, &node_count, n,
					  &count) &&
	       (!rwa_mesh_new((int)count.num, &in->m, &err) ||
		refused(in, e, n, &err));
	}
	if (rwa_mesh_new(n->n, &in->m, &err)) {
		return refused(in, e, n, &err);
	}
	in->named = true;
	for (n = n->first; n && !in->r->stop; n = n->next) {
		good &= read_node(in, n, node++);
	}
	return good;
}

/* ---- links, demands, blocks ---- */

static bool add_arc(struct input *in, const struct input_entry *e, const struct rwa_mesh_arc *arc)
{
	const struct conf_value *domain = &e->v[LINK_DOMAIN];
	uint64_t key = pair_key(arc->src, arc->dst);
	int32_t number = (int32_t)in->m->arcs.n;
	struct err err;

	if (u64map_get(&in->arcs, key, NULL)) {
		return fail(in, e, e->node, "this link again: give it more fibres instead");
	}
	u64map_set(&in->arcs, key, (uint64_t)number);
	if (rwa_mesh_add_arc(in->m, arc, &err) ||
	    (domain->node &&
	     rwa_mesh_set_domain(in->m, number, domain->text, &err))) {
		return refused(in, e, e->node, &err);
	}
	return true;
}

static bool read_link(struct input *in, const struct input_entry *e)
{
	struct rwa_mesh_arc arc = { .src = e->src, .dst = e->dst,
				    .fibres = (int32_t)e->v[LINK_FIBRES].num,
				    .loss_mdb = (int32_t)e->v[LINK_LOSS].num };
	struct rwa_mesh_arc back = arc;

	back.src = arc.dst;
	back.dst = arc.src;
	return add_arc(in, e, &arc) && (!e->v[LINK_DUPLEX].num || add_arc(in, e, &back));
}

static bool read_demand(struct input *in, const struct input_entry *e)
{
	struct rwa_mesh_demand d = { .src = e->src, .dst = e->dst,
				     .count = (int32_t)e->v[DEMAND_COUNT].num,
				     .protect = (enum rwa_protect)(e->v[DEMAND_PROTECT].num % 3) };
	struct err err;

	return !rwa_mesh_add_demand(in->m, &d, &err) || refused(in, e, e->node, &err);
}

static bool read_block(struct input *in, const struct input_entry *e)
{
	const struct conf_value *fibre = &e->v[BLOCK_FIBRE];
	const struct conf_value *channel = &e->v[BLOCK_CHANNEL];
	struct rwa_mesh_block b = {
		.fibre = fibre->node ? (int32_t)fibre->num : RWA_MESH_ALL,
		.channel = channel->node ? (int32_t)channel->num : RWA_MESH_ALL,
	};
	uint64_t arc;
	struct err err;

	if (!u64map_get(&in->arcs, pair_key(e->src, e->dst), &arc)) {
		return !in->bad_links && fail(in, e, e->node, "no link leads there");
	}
	b.arc = (int32_t)arc;
	return !rwa_mesh_add_block(in->m, &b, &err) || refused(in, e, e->node, &err);
}

static bool read_demands(struct input *in, const struct input_entry *e)
{
	const struct conf_node *n = e->v[ROOT_DEMANDS].node;
	struct conf_value list;
	struct err err;

	if (!n) {
		return true;
	}
	if (n->kind == CONF_NODE_TEXT && strcmp(n->text, "all") == 0) {
		return !rwa_mesh_all_to_all(in->m, &err) || refused(in, e, n, &err);
	}
	return conf_read_value(in->r, e->object, &demand_list, n, &list) &&
	       read_list(in, &demand_section, &list, read_demand);
}

static bool read_budget(struct input *in, const struct conf_node *n)
{
	struct conf_value v[BUDGET_KEYS];
	struct input_entry e = { .object = "budget", .node = n, .v = v };
	struct rwa_mesh *m = in->m;

	if (!n) {
		return true;
	}
	if (!read_section(in, &budget_section, e.object, n, v)) {
		return false;
	}
	m->add_mdb = (int32_t)v[BUDGET_ADD].num;
	m->drop_mdb = (int32_t)v[BUDGET_DROP].num;
	m->budget_mdb = v[BUDGET_LAUNCH].num - v[BUDGET_SENSITIVITY].num -
			v[BUDGET_MARGIN].num;
	return m->budget_mdb >= 0 ||
	       fail(in, &e, n, "the launch power is less than a receiver "
		    "needs");
}

static bool read_guard(struct input *in, const struct conf_node *n)
{
	struct conf_value v[GUARD_KEYS];

	if (!n) {
		return true;
	}
	if (!read_section(in, &guard_section, "guard", n, v)) {
		return false;
	}
	in->m->guard = (struct rwa_mesh_guard){
		.between = (int32_t)v[GUARD_BETWEEN].num,
		.below = (int32_t)v[GUARD_BELOW].num,
		.above = (int32_t)v[GUARD_ABOVE].num,
	};
	return true;
}

/* Links, what is in use, and demands, of nodes that are known. */
static bool read_lists(struct input *in, const struct input_entry *e)
{
	const struct conf_value *v = e->v;
	bool good;

	in->bad_links = (v[ROOT_LINKS].node && !v[ROOT_LINKS].ok) ||
			!read_list(in, &link_section, &v[ROOT_LINKS], read_link);
	good = !in->bad_links;
	good &= read_list(in, &in_use_section, &v[ROOT_IN_USE], read_block);
	return good & read_demands(in, e);
}

static bool read_instance(struct input *in, const struct conf_node *root)
{
	struct conf_value v[ROOT_KEYS];
	struct input_entry e = { .object = "instance", .node = root, .v = v };
	bool good;

	good = conf_read_section(in->r, &instance_section, e.object, root, v);
	if (root->kind != CONF_NODE_MAP) {
		return false;
	}
	good &= v[ROOT_NODES].node && v[ROOT_NODES].node->kind != CONF_NODE_BAD &&
		read_nodes(in, &e);
	/* Without nodes nothing else can be said but of powers and channels. */
	if (in->m) {
		good &= read_lists(in, &e);
	} else {
		rwa_mesh_new(1, &in->m, NULL);
	}
	good &= read_budget(in, v[ROOT_BUDGET].node);
	good &= read_guard(in, v[ROOT_GUARD].node);
	in->m->channels = (int32_t)v[ROOT_CHANNELS].num;
	return good;
}

/* Parses the text and reads it; mistakes go to errs. Returns the code of one. */
static int read_text(struct input *in, const char *name, const char *content, const char *text,
		     size_t len, bool (*read)(struct input *, const struct conf_node *),
		     struct err_list *errs)
{
	const struct conf_node *root;
	struct conf_reader r;
	int rc = 0;

	conf_reader_init(&r, name, content, NULL, errs);
	/* The size of the file is the limit (RWA_MESH_MAX_FILE). */
	r.max_nodes = INT_MAX;
	in->r = &r;
	root = conf_read_yaml(&r, text, len);
	if (root && (!r.n_errors || in->go_on)) {
		read(in, root);
	}
	if (r.n_errors) {
		rc = errs->n ? errs->v[0].code : r.unkept.code;
	}
	conf_reader_fini(&r);
	strmap_fini(&in->names);
	u64map_fini(&in->arcs);
	u64map_fini(&in->demands);
	vec_fini(&in->same);
	vec_fini(&in->room);
	strmap_fini(&in->ids);
	return rc;
}

int rwa_mesh_read_yaml(const char *name, const char *text, size_t len,
		       struct rwa_mesh **out, struct err_list *errs)
{
	struct input in = { .go_on = true };
	int rc = read_text(&in, name, "network", text, len, read_instance, errs);

	if (rc) {
		rwa_mesh_free(in.m);
		in.m = NULL;
	}
	*out = in.m;
	return rc;
}

/* ---- lightpaths ---- */

/* Ends, and whether in pairs. */
static uint64_t demand_key(const struct rwa_mesh_demand *d)
{
	return pair_key(d->src, d->dst) | (uint64_t)(d->protect != RWA_UNPROTECTED) << 63;
}

/* Puts demand d before the others with its ends. */
static void list_demand(struct input *in, size_t d)
{
	const struct rwa_mesh_demand *v = &in->m->demands.v[d];
	uint64_t key = demand_key(v), next;

	in->same.v[d] = u64map_get(&in->demands, key, &next) ? (int32_t)next
							     : -1;
	in->room.v[d] = v->count * (v->protect ? 2 : 1);
	u64map_set(&in->demands, key, d);
}

/* Lists the mesh's names, arcs, and demands by their ends. */
static void list_mesh(struct input *in)
{
	const struct rwa_mesh *m = in->m;
	size_t n = m->demands.n;

	in->named = m->nodes.v[0].name;
	vec_reserve(&in->same, n);
	vec_reserve(&in->room, n);
	in->same.n = in->room.n = n;
	for (size_t v = 0; v < m->nodes.n && m->nodes.v[0].name; v++) {
		strmap_set(&in->names, m->nodes.v[v].name, (void *)(intptr_t)(v + 1));
	}
	for (size_t e = m->arcs.n; e-- > 0;) {
		u64map_set(&in->arcs, pair_key(m->arcs.v[e].src, m->arcs.v[e].dst), e);
	}
	for (size_t d = n; d-- > 0;) {
		list_demand(in, d);
	}
}

/* A demand more, or one more of the first that is alike; *d: which. One of a
 * pair leaves room for the other. */
static bool make_room(struct input *in, const struct input_entry *e,
		      const struct rwa_mesh_demand *one, int32_t *d)
{
	uint64_t first;
	struct err err;

	if (u64map_get(&in->demands, demand_key(one), &first)) {
		*d = (int32_t)first;
		in->m->demands.v[first].count++;
		in->m->lightpaths += one->protect ? 2 : 1;
		in->room.v[first] += one->protect != RWA_UNPROTECTED;
		return true;
	}
	*d = (int32_t)in->m->demands.n;
	if (rwa_mesh_add_demand(in->m, one, &err)) {
		return refused(in, e, e->node, &err);
	}
	vec_push(&in->same, -1);
	vec_push(&in->room, 0);
	list_demand(in, (size_t)*d);
	in->room.v[*d] = one->protect != RWA_UNPROTECTED;
	return true;
}

/* The first demand like this that has room, -1: none. */
static int32_t find_demand(const struct input *in, const struct rwa_mesh_demand *one)
{
	uint64_t first;
	int32_t d = u64map_get(&in->demands, demand_key(one), &first)
			    ? (int32_t)first : -1;

	while (d >= 0 && !in->room.v[d]) {
		d = in->same.v[d];
	}
	return d;
}

/* The demand of a lightpath: one that is alike, or else another with its
 * ends; -1: none. */
static bool take_demand(struct input *in, const struct input_entry *e,
			struct rwa_mesh_demand *one, int32_t *d)
{
	*d = find_demand(in, one);
	if (*d < 0 && in->add) {
		return make_room(in, e, one, d);
	}
	if (*d < 0) {
		one->protect = one->protect ? RWA_UNPROTECTED : RWA_DEDICATED;
		*d = find_demand(in, one);
	}
	if (*d >= 0) {
		in->room.v[*d]--;
	}
	return true;
}

/* Working and backup follow each other. */
static bool read_role(struct input *in, const struct input_entry *e, struct rwa_mesh_demand *d)
{
	uint64_t opened = in->opened;
	bool backup = e->v[PATH_ROLE].num == ROLE_BACKUP;

	d->protect = e->v[PATH_ROLE].node ? RWA_DEDICATED : RWA_UNPROTECTED;
	in->opened = d->protect && !backup ? demand_key(d) : 0;
	if (backup && opened != demand_key(d)) {
		return fail(in, e, e->node, "a backup without its working "
			    "lightpath before it");
	}
	if (!backup && opened) {
		return fail(in, e, e->node, "the working lightpath before "
			    "has no backup");
	}
	return true;
}

static uint64_t fibre_key(int32_t arc, int32_t fibre)
{
	return (uint64_t)arc * RWA_MESH_MAX_FIBRES + (uint64_t)fibre;
}

/* Fibres that are in use as a whole. */
static void list_cuts(struct input *in)
{
	for (size_t i = 0; i < in->m->blocks.n; i++) {
		const struct rwa_mesh_block *b = &in->m->blocks.v[i];

		for (int32_t f = 0; f < in->m->arcs.v[b->arc].fibres; f++) {
			if (b->channel == RWA_MESH_ALL &&
			    (b->fibre == f || b->fibre == RWA_MESH_ALL)) {
				u64map_set(&in->cut, fibre_key(b->arc, f), 1);
			}
		}
	}
}

static bool read_hop(struct input *in, const struct input_entry *e)
{
	struct rwa_hop hop = { .fibre = (int32_t)e->v[HOP_FIBRE].num,
			       .channel = (int32_t)e->v[HOP_CHANNEL].num };
	uint64_t arc;
	int32_t to;

	if (!get_node(in, e, HOP_TO, &to)) {
		return false;
	}
	if (!u64map_get(&in->arcs, pair_key(in->at, to), &arc) ||
	    hop.fibre >= in->m->arcs.v[arc].fibres) {
		in->is_dark = true;
		in->at = to;
		return in->may_be_dark || fail(in, e, e->node, "no such fibre leads there");
	}
	in->is_dark |= u64map_get(&in->cut, fibre_key((int32_t)arc, hop.fibre), NULL);
	hop.arc = (int32_t)arc;
	in->at = to;
	vec_push(&in->light->hops, hop);
	return true;
}

/* Its id, or its position; of the caller. False when it is known already. */
static bool read_id(struct input *in, const struct input_entry *e, char **id)
{
	const struct conf_value *v = &e->v[PATH_ID];
	char position[24];

	snprintf(position, sizeof(position), "%lld", (long long)in->position++);
	*id = x_dup(v->node ? v->text : position);
	if (strmap_get(&in->ids, *id)) {
		conf_error(in->r, (v->node ? v->node : e->node)->at, WEFT_EINVAL,
			   "%s: the id '%.64s' is another lightpath's", e->object, *id);
		return false;
	}
	strmap_set(&in->ids, *id, in);
	return true;
}

/* The lightpath's demand and hops; demand -1: no one wants it. */
static bool read_route(struct input *in, const struct input_entry *e, struct rwa_path *p)
{
	struct rwa_mesh_demand d = { .src = e->src, .dst = e->dst, .count = 1 };

	p->first = (int64_t)in->light->hops.n;
	in->at = d.src;
	in->is_dark = false;
	if (!read_role(in, e, &d) || !read_list(in, &hop_section, &e->v[PATH_HOPS], read_hop)) {
		return false;
	}
	if (in->at != d.dst || d.src == d.dst) {
		return fail(in, e, e->node, "the hops do not lead from one end "
			    "to the other");
	}
	if (in->is_dark && in->may_be_dark) {
		in->dark++;
		p->demand = -1;
		return !d.protect || fail(in, e, e->node, "one of a pair over a fibre that is cut: "
					  "not supported");
	}
	p->hops = (int32_t)((int64_t)in->light->hops.n - p->first);
	return take_demand(in, e, &d, &p->demand);
}

static bool read_lightpath(struct input *in, const struct input_entry *e)
{
	struct named_path p = { 0 };
	bool good = read_route(in, e, &p.path) && read_id(in, e, &p.id);

	if (good && p.path.demand < 0) {
		in->light->hops.n = (size_t)p.path.first;
	} else if (good) {
		vec_push(&in->paths, p);
		return true;
	}
	free(p.id);
	return good;
}

/* Those of one demand as in the file. */
ORDER_BY(by_demand, struct named_path, path.demand, path.first)

static bool read_assignment(struct input *in, const struct conf_node *root)
{
	struct conf_value v[2];
	struct input_entry e = { .object = "file", .node = root, .v = v };

	if (!conf_read_section(in->r, &file_section, e.object, root, v)) {
		return false;
	}
	list_mesh(in);
	if (in->may_be_dark) {
		list_cuts(in);
	}
	if (!read_list(in, &lightpath_section, &v[0], read_lightpath)) {
		return false;
	}
	return !in->opened || fail(in, &e, root, "the last working lightpath "
				   "has no backup");
}

/* Parts the paths, by demand, from their ids, which go to the caller. */
static void hand_out(struct input *in, struct rwa_assignment *out, struct rwa_ids *ids)
{
	size_t n = in->paths.n;

	vec_reserve(&out->paths, n);
	vec_reserve(&ids->v, n);
	if (n) {
		qsort(in->paths.v, n, sizeof(*in->paths.v), by_demand);
	}
	for (size_t k = 0; k < n; k++) {
		out->paths.v[out->paths.n++] = in->paths.v[k].path;
		ids->v.v[ids->v.n++] = in->paths.v[k].id;
		in->paths.v[k].id = NULL;
	}
}

int rwa_mesh_read_lightpaths(struct rwa_mesh *m, const char *name, const char *text, size_t len,
			     bool add, struct rwa_assignment *out, struct rwa_ids *ids,
			     int64_t *dark, struct err *err)
{
	struct input in = { .m = m, .light = out, .add = add, .may_be_dark = dark };
	struct rwa_ids found = { 0 };
	struct err_list errs = { .max = 1 };
	int rc;

	*out = (struct rwa_assignment){ 0 };
	rc = read_text(&in, name, "lightpath", text, len, read_assignment, &errs);
	if (rc) {
		*err = errs.v[0];
	}
	err_list_fini(&errs);
	if (!rc) {
		hand_out(&in, out, &found);
	}
	for (size_t k = 0; k < in.paths.n; k++) {
		free(in.paths.v[k].id);
	}
	vec_fini(&in.paths);
	u64map_fini(&in.cut);
	if (dark) {
		*dark = in.dark;
	}
	if (rc) {
		rwa_assignment_fini(out);
	}
	if (!rc && ids) {
		*ids = found;
	} else {
		rwa_ids_fini(&found);
	}
	return rc;
}
