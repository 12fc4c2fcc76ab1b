/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chakra traces, one file a rank. Nodes run when those that they depend on have, the lowest id
 * first; of these, collectives, sends and receives are kept. A group of ranks is named by a file
 * ({"1": [0, 2]}), or by a node of the trace that PyTorch writes; without a name it is all ranks.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chakra/chakra.pb-c.h"
#include "controller/import/chakra.h"
#include "lib/base/alloc.h"
#include "lib/base/heap.h"
#include "lib/conf/conf.h"

enum { NODE_METADATA = 1, NODE_SEND = 5, NODE_RECEIVE = 6, NODE_COLLECTIVE = 7 };

struct chakra_node {
	Chakra__Node *pb;
	int waits;		/* for so many others */
	int first, n;		/* that wait for it, in reader.after */
};

struct chakra_reader {
	struct chakra *c;
	const char *file;
	int rank;
	VEC(struct chakra_node) nodes;	/* by id */
	int *after;
	bool skipped;		/* said that a collective without bytes is */
};

__attribute__((format(printf, 3, 4)))
static void refuse(struct chakra_reader *r, const Chakra__Node *n, const char *fmt, ...)
{
	char text[ERR_MSG_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	import_say(&r->c->report->errs, r->file, 0, "node %" PRIu64 ": %s", n->id, text);
}

/* ---- groups -------------------------------------------------------------- */

/* The group of these ranks, each once; takes their list over. */
static int intern(struct chakra *c, struct chakra_group g)
{
	struct buf text = { 0 };
	int known;

	for (size_t i = 0; i < g.ranks.n; i++) {
		buf_printf(&text, i ? " %d" : "ranks %d", g.ranks.v[i]);
	}
	known = (int)(intptr_t)strmap_get(&c->by_name, buf_cstr(&text));
	if (known) {
		vec_fini(&g.ranks);
		buf_fini(&text);
		return known - 1;
	}
	g.text = buf_steal(&text);
	vec_push(&c->groups, g);
	strmap_set(&c->by_name, g.text, (void *)(intptr_t)c->groups.n);
	return (int)c->groups.n - 1;
}

static int all_ranks(struct chakra *c)
{
	struct chakra_group g = { 0 };

	for (size_t i = 0; i < c->ranks.n; i++) {
		vec_push(&g.ranks, (int)i);
	}
	return intern(c, g);
}

/* The ranks of a list, of which none are all of them. */
static void take_group(struct chakra *c, const char *file, int rank, const struct conf_node *name,
		       const struct conf_node *list)
{
	struct chakra_group g = { 0 };
	bool *has = x_new(c->ranks.n, sizeof(*has));
	bool good = list->kind == CONF_NODE_LIST;
	char key[80];
	int group;

	for (const struct conf_node *n = good ? list->first : NULL; n && good; n = n->next) {
		char *end;
		long r = strtol(n->text, &end, 10);

		good = end > n->text && !*end && r >= 0 && (size_t)r < c->ranks.n && !has[r];
		if (good) {
			has[r] = true;
			vec_push(&g.ranks, (int)r);
		}
	}
	free(has);
	if (!good) {
		import_say(&c->report->errs, file, 0, "group '%.40s': expected a list of ranks "
			   "below %zu, each once", name->text, c->ranks.n);
		vec_fini(&g.ranks);
		return;
	}
	group = g.ranks.n > 0 ? intern(c, g) : all_ranks(c);
	snprintf(key, sizeof(key), rank < 0 ? "/%.40s" : "/%.40s/%d", name->text, rank);
	strmap_set(&c->by_name, key, (void *)(intptr_t)(group + 1));
}

/* rank < 0: the file's map of lists; else a trace's list of maps. */
static void read_groups(struct chakra *c, const char *file, const char *text, size_t len, int rank)
{
	struct conf_arena keep = { 0 };
	struct conf_reader y;
	const struct conf_node *root;

	conf_reader_init(&y, file, "groups", &keep, &c->report->errs);
	root = conf_read_yaml(&y, text, len);
	if (root && root->kind != (rank < 0 ? CONF_NODE_MAP : CONF_NODE_LIST)) {
		import_say(&c->report->errs, file, 0, "expected groups of ranks by their names");
	} else if (root) {
		for (const struct conf_node *n = root->first; n; n = n->next) {
			const struct conf_node *name = rank < 0 ? n : import_value(n, "pg_name");
			const struct conf_node *list = rank < 0 ? n->next
							  : import_value(n, "ranks");

			if (name && list) {
				take_group(c, file, rank, name, list);
			}
			n = rank < 0 ? n->next : n;
		}
	}
	conf_reader_fini(&y);
	conf_arena_fini(&keep);
}

/* The group that a name means to this rank; -1, and a mistake: none, or one without the rank. */
static int find_group(struct chakra_reader *r, const Chakra__Node *n, const char *name)
{
	struct chakra *c = r->c;
	char key[80];
	int group;

	snprintf(key, sizeof(key), "/%.40s/%d", name, r->rank);
	group = (int)(intptr_t)strmap_get(&c->by_name, key) - 1;
	if (group < 0) {
		snprintf(key, sizeof(key), "/%.40s", name);
		group = (int)(intptr_t)strmap_get(&c->by_name, key) - 1;
	}
	if (group < 0 && (!name[0] || strcmp(name, "0") == 0)) {
		return all_ranks(c);
	}
	if (group < 0) {
		refuse(r, n, "there is no group '%.40s'", name);
		return -1;
	}
	for (size_t i = 0; i < c->groups.v[group].ranks.n; i++) {
		if (c->groups.v[group].ranks.v[i] == r->rank) {
			return group;
		}
	}
	refuse(r, n, "the rank is not in group '%.40s', %.80s", name, c->groups.v[group].text);
	return -1;
}

/* ---- calls --------------------------------------------------------------- */

struct chakra_attrs {
	int64_t type, size, peer;	/* -1: not told */
	bool host;		/* it is the host's side of a call */
	char group[41];
};

/* Any integer; writers differ. */
static int64_t integer_of(const Chakra__Attribute *a)
{
	switch (a->value_case) {
	case CHAKRA__ATTRIBUTE__VALUE_INT32_VAL: return a->int32_val;
	case CHAKRA__ATTRIBUTE__VALUE_INT64_VAL: return a->int64_val;
	case CHAKRA__ATTRIBUTE__VALUE_UINT32_VAL: return a->uint32_val;
	case CHAKRA__ATTRIBUTE__VALUE_UINT64_VAL: return (int64_t)a->uint64_val;
	case CHAKRA__ATTRIBUTE__VALUE_SINT32_VAL: return a->sint32_val;
	case CHAKRA__ATTRIBUTE__VALUE_SINT64_VAL: return a->sint64_val;
	case CHAKRA__ATTRIBUTE__VALUE_FIXED32_VAL: return a->fixed32_val;
	case CHAKRA__ATTRIBUTE__VALUE_FIXED64_VAL: return (int64_t)a->fixed64_val;
	case CHAKRA__ATTRIBUTE__VALUE_SFIXED32_VAL: return a->sfixed32_val;
	case CHAKRA__ATTRIBUTE__VALUE_SFIXED64_VAL: return a->sfixed64_val;
	case CHAKRA__ATTRIBUTE__VALUE_BOOL_VAL: return a->bool_val;
	default: return -1;
	}
}

static struct chakra_attrs attrs_of(const Chakra__Node *n)
{
	const char *partner = n->type == NODE_SEND ? "comm_dst" : "comm_src";
	struct chakra_attrs v = { .type = -1, .size = -1, .peer = -1 };

	for (size_t i = 0; i < n->n_attr; i++) {
		const Chakra__Attribute *a = n->attr[i];
		const int64_t number = integer_of(a);

		if (strcmp(a->name, "comm_type") == 0) {
			v.type = number;
		} else if (strcmp(a->name, "comm_size") == 0) {
			v.size = number;
		} else if (strcmp(a->name, partner) == 0) {
			v.peer = number;
		} else if (strcmp(a->name, "is_cpu_op") == 0) {
			v.host = number > 0;
		} else if (strcmp(a->name, "pg_name") == 0 || strcmp(a->name, "comm_group") == 0) {
			if (a->value_case == CHAKRA__ATTRIBUTE__VALUE_STRING_VAL) {
				snprintf(v.group, sizeof(v.group), "%s", a->string_val);
			} else {
				snprintf(v.group, sizeof(v.group), "%" PRId64, number);
			}
		}
	}
	return v;
}

/* Fills kind; false: it is passed over, or a mistake. */
static bool kind_of(struct chakra_reader *r, const Chakra__Node *n, const struct chakra_attrs *v,
		    enum coll_kind *kind)
{
	static const char *const names[] = { "allreduce", "reduce", "allgather", "gather",
		"scatter", "broadcast", "all-to-all", "reduce-scatter", "reduce-scatter",
		"barrier" };
	const bool known = v->type >= 0 && v->type < 10;
	struct err err = { 0 };

	if (v->size == 0 || v->type == 9) {
		if (!r->skipped) {
			import_say(&r->c->report->notes, r->file, 0, "node %" PRIu64 ": passed "
				   "over, as others like it: a %s without bytes", n->id,
				   known ? names[v->type] : "collective");
		}
		r->skipped = true;
		return false;
	}
	if (!known) {
		refuse(r, n, "comm_type %" PRId64 " is not known", v->type);
	} else if (v->size < 0) {
		refuse(r, n, "comm_size is missing, or negative");
	} else if (v->type == 1 || (v->type >= 3 && v->type <= 5) ||
		   coll_kind_parse(names[v->type], kind, &err)) {
		refuse(r, n, "a step with a %s is not supported", names[v->type]);
	} else {
		return true;
	}
	return false;
}

static void take_call(struct chakra_reader *r, const Chakra__Node *n)
{
	const struct chakra_attrs v = attrs_of(n);
	struct chakra_call call = { .group = -1, .peer = (int)v.peer, .bytes = v.size,
				    .sends = n->type == NODE_SEND, .node = n->id };
	size_t ranks = r->c->ranks.n;

	if (n->type == NODE_COLLECTIVE) {
		/* Without a type it is the host's side, too. */
		if (v.host || v.type < 0 || !kind_of(r, n, &v, &call.kind)) {
			return;
		}
		call.group = find_group(r, n, v.group);
		ranks = call.group < 0 ? 1 : r->c->groups.v[call.group].ranks.n;
		if (ranks == 1) {
			return;
		}
		r->c->groups.v[call.group].called = true;
	} else if (v.peer < 0 || (size_t)v.peer >= ranks || v.peer == r->rank || v.size <= 0) {
		refuse(r, n, "a send or receive of %" PRId64 " bytes without a partner among "
		       "%zu ranks is not supported", v.size < 0 ? 0 : v.size, ranks);
		return;
	}
	/* Of an all-gather a trace has what one rank brings. */
	if (n->type == NODE_COLLECTIVE && call.kind == COLL_ALLGATHER) {
		call.bytes = v.size > INT64_MAX / (int64_t)ranks ? 0 : v.size * (int64_t)ranks;
	}
	if (call.bytes <= 0 || call.bytes > INT64_C(1) << 50) {
		refuse(r, n, "comm_size %" PRId64 " is too large", v.size);
		return;
	}
	vec_push(&r->c->ranks.v[r->rank].calls, call);
}

/* ---- order --------------------------------------------------------------- */

struct chakra_ready {
	int node;
};

static inline bool is_earlier(struct chakra_ready a, struct chakra_ready b)
{
	return a.node < b.node;
}

HEAP(ready_heap, struct chakra_ready);
HEAP_FUNCTIONS(ready_heap, struct chakra_ready, is_earlier)

static int by_id(const void *a, const void *b)
{
	const uint64_t x = ((const struct chakra_node *)a)->pb->id;
	const uint64_t y = ((const struct chakra_node *)b)->pb->id;

	return x < y ? -1 : x > y;
}

/* The k-th node that this one waits for, of both kinds of dependence; NULL: there is none such. */
static struct chakra_node *wanted_by(struct chakra_reader *r, const Chakra__Node *n, size_t k)
{
	Chakra__Node pb = { .id = k < n->n_data_deps ? n->data_deps[k]
						      : n->ctrl_deps[k - n->n_data_deps] };
	const struct chakra_node key = { .pb = &pb };

	return bsearch(&key, r->nodes.v, r->nodes.n, sizeof(key), by_id);
}

/* Who waits for whom; false, and a mistake: for a node that is not there, or is there twice. */
static bool link_nodes(struct chakra_reader *r)
{
	int n = 0;

	for (int pass = 0; pass < 2; pass++) {
		for (size_t i = 0; i < r->nodes.n; i++) {
			const Chakra__Node *pb = r->nodes.v[i].pb;

			if (i > 0 && pb->id == r->nodes.v[i - 1].pb->id) {
				refuse(r, pb, "the id is another's, too");
				return false;
			}
			for (size_t k = 0; k < pb->n_data_deps + pb->n_ctrl_deps; k++) {
				struct chakra_node *w = wanted_by(r, pb, k);

				if (!w) {
					refuse(r, pb, "it depends on a node that is not there");
					return false;
				}
				if (pass) {
					r->after[w->first + w->n] = (int)i;
					r->nodes.v[i].waits++;
				}
				w->n++;
			}
		}
		for (size_t i = 0; i < r->nodes.n && !pass; i++) {
			r->nodes.v[i].first = n;
			n += r->nodes.v[i].n;
			r->nodes.v[i].n = 0;
		}
		r->after = pass ? r->after : x_new((size_t)n + 1, sizeof(*r->after));
	}
	return true;
}

static void take_calls(struct chakra_reader *r)
{
	struct ready_heap ready = { 0 };
	size_t done = 0;

	for (size_t i = 0; i < r->nodes.n; i++) {
		if (r->nodes.v[i].waits == 0) {
			ready_heap_push(&ready, (struct chakra_ready){ (int)i });
		}
	}
	for (; ready.n > 0; done++) {
		const struct chakra_node *d = &r->nodes.v[ready_heap_pop(&ready).node];

		if (d->pb->type >= NODE_SEND && d->pb->type <= NODE_COLLECTIVE) {
			take_call(r, d->pb);
		}
		for (int k = 0; k < d->n; k++) {
			if (--r->nodes.v[r->after[d->first + k]].waits == 0) {
				ready_heap_push(&ready, (struct chakra_ready){
							r->after[d->first + k] });
			}
		}
	}
	for (size_t i = 0; i < r->nodes.n && done < r->nodes.n; i++) {
		if (r->nodes.v[i].waits > 0) {
			refuse(r, r->nodes.v[i].pb, "it depends on itself, by others");
			break;
		}
	}
	vec_fini(&ready);
}

/* ---- files --------------------------------------------------------------- */

/* What PyTorch writes of groups: a list between two characters at either end. */
static void take_metadata(struct chakra_reader *r, const Chakra__Node *n)
{
	const char *text = n->inputs ? n->inputs->values : "";
	const size_t len = strlen(text);

	if (strstr(n->name, "process_group:init") && len > 4) {
		read_groups(r->c, r->file, text + 2, len - 4, r->rank);
	}
}

/* The length before a message; false: the file ends in it. */
static bool take_length(const uint8_t **p, const uint8_t *end, size_t *len)
{
	uint64_t v = 0;

	for (int shift = 0; *p < end && shift < 35; shift += 7) {
		v |= (uint64_t)(**p & 127) << shift;
		if (*(*p)++ < 128) {
			*len = (size_t)v;
			return v <= (uint64_t)(end - *p);
		}
	}
	return false;
}

static bool take_nodes(struct chakra_reader *r, const struct import_text *in)
{
	const uint8_t *p = (const uint8_t *)in->text, *end = p + in->len;
	size_t len = 0;

	if (in->len > 1 && p[0] == 0x1f && p[1] == 0x8b) {
		import_say(&r->c->report->errs, r->file, 0, "it is compressed: gunzip it first");
		return false;
	}
	for (bool first = true; p < end; first = false, p += len) {
		const uint8_t *at = p;
		const bool whole = take_length(&p, end, &len);
		Chakra__Node *n;

		if (whole && first) {
			continue;	/* the metadata of the file */
		}
		n = whole ? chakra__node__unpack(NULL, len, p) : NULL;
		if (!n) {
			import_say(&r->c->report->errs, r->file, 0, "it is no trace from byte "
				   "%td on", at - (const uint8_t *)in->text);
			return false;
		}
		vec_push(&r->nodes, (struct chakra_node){ .pb = n });
	}
	return true;
}

static void read_rank(struct chakra *c, int rank)
{
	struct chakra_reader r = { .c = c, .rank = rank, .file = c->files[rank].name };

	if (take_nodes(&r, &c->files[rank])) {
		for (size_t i = 0; i < r.nodes.n; i++) {
			if (r.nodes.v[i].pb->type == NODE_METADATA) {
				take_metadata(&r, r.nodes.v[i].pb);
			}
		}
		qsort(r.nodes.v, r.nodes.n, sizeof(*r.nodes.v), by_id);
		if (link_nodes(&r)) {
			take_calls(&r);
		}
	}
	for (size_t i = 0; i < r.nodes.n; i++) {
		chakra__node__free_unpacked(r.nodes.v[i].pb, NULL);
	}
	vec_fini(&r.nodes);
	free(r.after);
}

void chakra_read(struct chakra *c, const struct import_text *files, int n,
		 const struct import_text *groups, struct import_report *report)
{
	*c = (struct chakra){ .files = files, .report = report };
	for (int i = 0; i < n; i++) {
		vec_push(&c->ranks, (struct chakra_rank){ 0 });
	}
	if (groups->text) {
		read_groups(c, groups->name, groups->text, groups->len, -1);
	}
	for (int i = 0; i < n; i++) {
		read_rank(c, i);
	}
}

void chakra_fini(struct chakra *c)
{
	for (size_t i = 0; i < c->ranks.n; i++) {
		vec_fini(&c->ranks.v[i].calls);
	}
	for (size_t i = 0; i < c->groups.n; i++) {
		vec_fini(&c->groups.v[i].ranks);
		vec_fini(&c->groups.v[i].ops);
		free(c->groups.v[i].text);
	}
	vec_fini(&c->ranks);
	vec_fini(&c->groups);
	strmap_fini(&c->by_name);
}
