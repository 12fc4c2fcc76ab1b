/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Training steps: the keys `mesh`, `collectives` and `step` of a job, to the value that planning
 * reads (collective/workload). Without `step` the collectives run one after the other, once each.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collective/workload/groups.h"
#include "controller/model/private.h"
#include "lib/base/alloc.h"

struct step_reader {
	struct model_build *b;
	struct job_entry *e;
	struct workload *w;
	VEC(struct workload_groups) groups;	/* of the collectives that give them */
	size_t next;				/* of these that is read */
	bool ok;
};

__attribute__((format(printf, 4, 5)))
static struct err *refuse(struct step_reader *s, struct conf_place at, enum weft_err code,
			  const char *fmt, ...)
{
	char text[ERR_MSG_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	s->ok = false;
	return conf_error(s->b->r, at, code, "%s: %s", s->e->object, text);
}

static void refuse_as(struct step_reader *s, struct conf_place at, const char *key,
		      const struct err *err)
{
	err_hint(refuse(s, at, err->code, "%s: %s", key, err->msg), "%s", err->hint);
}

/* ---- the mesh ---- */

/* The node that the ports of each rank of a host are at; -1: of a rank without. False: of some they
 * are at several. */
static bool find_ports(const struct model_host *h, const struct topo *t, int *port_at)
{
	int32_t *near = x_alloc((size_t)topo_ranks(t), sizeof(*near));
	bool ok = true;

	memset(port_at, -1, (size_t)topo_ranks(t) * sizeof(*port_at));
	for (int p = 0; p < h->n_ports; p++) {
		int node = h->port_at[p], rank = near[p % model_nearest_ranks(t, node, near)];

		ok = ok && (port_at[rank] < 0 || port_at[rank] == node);
		port_at[rank] = node;
	}
	for (int r = 0; r < topo_ranks(t); r++) {
		ok = ok && port_at[r] >= 0;
	}
	free(near);
	return ok;
}

/* Hosts have equally many ranks, as many together as the mesh, and those inside are servers. */
static void find_server(struct step_reader *s, const struct conf_node *map)
{
	const struct model_job *job = &s->e->job;
	const struct model_host *hosts = s->b->hosts.v, *first = &hosts[job->hosts[0]];
	int n = workload_ranks(s->w, WORKLOAD_ALL_AXES), ranks = first->ranks * job->n_hosts;
	struct topo *t = NULL;
	struct err err = { 0 };
	int *port_at;

	for (int i = 1; i < job->n_hosts; i++) {
		const struct model_host *h = &hosts[job->hosts[i]];

		if (h->ranks != first->ranks || !!h->inside != !!first->inside ||
		    (h->inside && strcmp(h->inside, first->inside) != 0) ||
		    (h->inside && (h->n_ports != first->n_ports ||
				   memcmp(h->port_at, first->port_at,
					  (size_t)h->n_ports * sizeof(*h->port_at)) != 0))) {
			refuse(s, map->at, WEFT_EUNSUPPORTED, "a step of hosts that are not alike "
			       "inside: %s and %s", first->name, h->name);
			return;
		}
	}
	if (n != ranks) {
		refuse(s, map->at, WEFT_EINVAL, "mesh: of %d ranks, the job has %d %s", n, ranks,
		       first->inside ? "of its hosts" : "hosts");
		return;
	}
	if (!first->inside || model_inside(first->inside, &t, &err)) {
		return;
	}
	port_at = x_alloc((size_t)topo_ranks(t), sizeof(*port_at));
	if (!find_ports(first, t, port_at)) {
		refuse(s, map->at, WEFT_EUNSUPPORTED, "a step of hosts whose ranks do not each "
		       "have their ports at one place: %s", first->name);
	} else if (workload_set_server(s->w, model_inside_expr(first->inside), port_at, &err)) {
		refuse_as(s, map->at, "mesh", &err);
	}
	free(port_at);
	topo_free(t);
}

static void read_mesh(struct step_reader *s)
{
	const struct conf_node *map = s->e->v[JOB_MESH].node;
	struct err err;

	for (const struct conf_node *k = map->first; k; k = k->next->next) {
		const char *text = k->next->text;
		bool number = *text && !text[strspn(text, "0123456789")] && strlen(text) < 8;

		err_clear(&err);
		if (!number) {
			refuse(s, k->next->at, WEFT_EINVAL, "mesh: %.40s: expected the ranks along "
			       "it, found '%.40s'", k->text, text);
		} else if (workload_add_axis(s->w, k->text, atoi(text), &err)) {
			refuse_as(s, k->at, "mesh", &err);
		}
	}
}

/* ---- groups in place of a mesh ---- */

/* "blocks of 8": each the next 8 ranks; "stride 8": ranks 0, 8, 16 and so on, 1, 9, ... */
static void fill_alike(struct step_reader *s, const struct conf_node *node, int n, int32_t *of)
{
	int by = 0, len = 0;
	bool blocks = sscanf(node->text, "blocks of %6d%n", &by, &len) == 1;

	if ((!blocks && sscanf(node->text, "stride %6d%n", &by, &len) != 1) || node->text[len] ||
	    by < 1 || n % by) {
		refuse(s, node->at, WEFT_EINVAL, "collectives: groups: expected 'blocks of N', "
		       "'stride N' where N divides %d ranks, or lists of ranks, found '%.40s'", n,
		       node->text);
		return;
	}
	for (int r = 0; r < n; r++) {
		of[r] = blocks ? r / by * by : r % by;
	}
}

/* Lists of all ranks, each in rising order. */
static void fill_lists(struct step_reader *s, const struct conf_node *node, int n, int32_t *of)
{
	const struct conf_key rank = { "groups", CONF_INT, .max = n - 1 };
	struct conf_value v;
	int left = n;

	memset(of, -1, (size_t)n * sizeof(*of));
	for (const struct conf_node *list = node->first; list; list = list->next) {
		int64_t first = -1, last = -1;

		for (const struct conf_node *r = list->first; r; r = r->next) {
			if (!conf_read_value(s->b->r, s->e->object, &rank, r, &v)) {
				s->ok = false;
				return;
			}
			first = first < 0 ? v.num : first;
			if (v.num <= last || of[v.num] >= 0) {
				refuse(s, r->at, WEFT_EINVAL, "collectives: groups: rank %s %s",
				       r->text, v.num > last ? "is in two of them" : "stands "
				       "behind one that is not before it");
				return;
			}
			last = v.num;
			of[last] = (int32_t)first;
			left--;
		}
	}
	for (int r = 0; r < n && left > 0; r++) {
		if (of[r] < 0) {
			refuse(s, node->at, WEFT_EINVAL, "collectives: groups: rank %d of %d is in "
			       "none", r, n);
			return;
		}
	}
}

/* The ranks of the job; without hosts those that groups list. */
static int count_ranks(const struct step_reader *s, const struct conf_node *groups)
{
	const struct model_job *job = &s->e->job;
	int n = 0;

	if (s->e->ok && job->n_hosts) {
		return job->n_hosts * s->b->hosts.v[job->hosts[0]].ranks;
	}
	for (const struct conf_node *list = groups->first; list; list = list->next) {
		n += list->n;
	}
	return job->n_hosts ? job->n_hosts : n;
}

/* The value of a key of a mapping; NULL: it has none. */
static const struct conf_node *value_of(const struct conf_node *map, const char *key)
{
	const struct conf_node *k = map->kind == CONF_NODE_MAP ? map->first : NULL;

	while (k && strcmp(k->text, key) != 0) {
		k = k->next->next;
	}
	return k ? k->next : NULL;
}

/* The mesh that has the groups of all collectives, in the order of those that give them. False:
 * there is none to be had, which is said. */
static bool read_groups(struct step_reader *s, const struct conf_node *ops)
{
	struct err err = { 0 };
	int n = 0;

	for (const struct conf_node *op = ops->first; op; op = op->next) {
		const struct conf_node *node = value_of(op, "groups"), *name = value_of(op, "name");
		struct workload_groups g = { .name = name ? name->text : "" };

		if (!node || s->groups.n == WORKLOAD_MAX_OPS) {
			continue;
		}
		n = n ? n : count_ranks(s, node);
		if (n == 0) {
			refuse(s, node->at, WEFT_EINVAL, "collectives: groups: of how many ranks "
			       "is not known: give 'mesh', or the hosts");
			return false;
		}
		g.of = x_alloc((size_t)n, sizeof(*g.of));
		vec_push(&s->groups, g);
		if (node->kind == CONF_NODE_TEXT) {
			fill_alike(s, node, n, g.of);
		} else {
			fill_lists(s, node, n, g.of);
		}
	}
	if (s->groups.n == 0) {
		refuse(s, s->e->node->at, WEFT_EINVAL, "key 'mesh' is missing");
	} else if (s->ok && workload_add_groups(s->w, n, s->groups.v, s->groups.n, &err)) {
		refuse_as(s, ops->at, "collectives", &err);
	}
	return s->groups.n > 0;
}

/* ---- collectives ---- */

static void add_axis(struct step_reader *s, const struct conf_node *name, uint32_t *axes)
{
	int axis = workload_find_axis(s->w, name->text);
	struct nearest near;
	struct err *err;

	if (axis >= 0) {
		*axes |= UINT32_C(1) << axis;
		return;
	}
	err = refuse(s, name->at, WEFT_EINVAL, "collectives: over: there is no axis '%.40s'",
		     name->text);
	nearest_init(&near, name->text);
	for (size_t i = 0; i < s->w->axes.n; i++) {
		nearest_try(&near, s->w->axes.v[i].name);
	}
	nearest_hint(&near, err);
}

/* A name, or a list of them. */
static uint32_t read_axes(struct step_reader *s, const struct conf_node *node)
{
	uint32_t axes = 0;

	if (node->kind == CONF_NODE_TEXT) {
		add_axis(s, node, &axes);
	}
	for (const struct conf_node *n = node->first; node->kind == CONF_NODE_LIST && n;
	     n = n->next) {
		add_axis(s, n, &axes);
	}
	return axes;
}

/* The axes of a collective's groups; 0: something is wrong, which is said. */
static uint32_t read_places(struct step_reader *s, const struct conf_node *node,
			    const struct conf_value *v)
{
	const struct conf_node *over = v[OP_OVER].node, *groups = v[OP_GROUPS].node;

	if (!over == !groups) {
		err_hint(refuse(s, node->at, WEFT_EINVAL, "%s: %s", v[OP_NAME].text,
				over ? "over and groups: one of them" : "key 'over' is missing"),
			 "over: %s; groups: %s", section_step_collective.keys[OP_OVER].help,
			 section_step_collective.keys[OP_GROUPS].help);
		return 0;
	}
	if (groups && s->e->v[JOB_MESH].node) {
		refuse(s, groups->at, WEFT_EINVAL, "%s: groups: only without a mesh",
		       v[OP_NAME].text);
		return 0;
	}
	return over ? read_axes(s, over)
	       : s->next < s->groups.n ? s->groups.v[s->next++].axes : 0;
}

/* "1MiB", or "1KiB-1MiB". */
static void read_sizes(struct step_reader *s, const struct conf_node *node, struct workload_op *op)
{
	const struct conf_key size = { "size", CONF_QUANTITY, .unit = UNIT_BYTES, .min = 1,
				       .max = INT64_MAX,
				       .help = section_step_collective.keys[OP_SIZE].help };
	size_t len = strcspn(node->text, "-");
	struct conf_node part = *node;
	struct conf_value from, to;
	char text[64];

	if (node->text[len] && len < sizeof(text)) {
		snprintf(text, sizeof(text), "%.*s", (int)len, node->text);
		part.text = text;
		s->ok &= conf_read_value(s->b->r, s->e->object, &size, &part, &from);
		op->min_bytes = from.num;
		part.text = node->text + len + 1;
	}
	s->ok &= conf_read_value(s->b->r, s->e->object, &size, &part, &to);
	op->bytes = to.num;
}

static void read_op(struct step_reader *s, const struct conf_node *node, int nth)
{
	char object[CONF_MAX_OBJECT];
	struct conf_value v[CONF_MAX_KEYS];
	struct workload_op op = { 0 };
	struct err err = { 0 };
	bool sends;

	conf_object_name(&section_step_collective, node, nth, object);
	if (!conf_read_section(s->b->r, &section_step_collective, object, node, v)) {
		s->ok = false;
		return;
	}
	op.name = (char *)v[OP_NAME].text;
	read_sizes(s, v[OP_SIZE].node, &op);
	op.axes = read_places(s, node, v);
	sends = strcmp(v[OP_COLLECTIVE].text, "send") == 0;
	if (sends) {
		op.shift = v[OP_SHIFT].node ? (int)v[OP_SHIFT].num : 1;
	} else if (coll_kind_parse(v[OP_COLLECTIVE].text, &op.kind, &err)) {
		refuse_as(s, v[OP_COLLECTIVE].node->at, op.name, &err);
		return;
	}
	if (v[OP_SHIFT].node && op.shift == 0) {
		refuse(s, v[OP_SHIFT].node->at, WEFT_EINVAL, "%s: shift: %s", op.name,
		       sends ? "0 sends nothing" : "only of sends");
	} else if (s->ok && workload_add_op(s->w, &op, &err)) {
		refuse_as(s, node->at, "collectives", &err);
	}
}

/* ---- the order ---- */

static uint32_t find_op(struct step_reader *s, const struct conf_node *name)
{
	int op = workload_find_op(s->w, name->text);
	struct nearest near;
	struct err *err;

	if (op >= 0) {
		return UINT32_C(1) << op;
	}
	err = refuse(s, name->at, WEFT_EINVAL, "step: there is no collective '%.40s'", name->text);
	nearest_init(&near, name->text);
	for (size_t i = 0; i < s->w->ops.n; i++) {
		nearest_try(&near, s->w->ops.v[i].name);
	}
	nearest_hint(&near, err);
	return 0;
}

static struct workload_step read_step(struct step_reader *s, const struct conf_node *node,
				      int64_t times);

/* { together: [a, b] }, or { repeat: N, do: [...] }. */
static struct workload_step read_part(struct step_reader *s, const struct conf_node *map)
{
	const char *object = "step";
	struct conf_value v[CONF_MAX_KEYS];
	struct workload_step out = { 0 };

	if (!conf_read_section(s->b->r, &section_step_part, object, map, v)) {
		s->ok = false;
	} else if (!!v[PART_TOGETHER].node == !!v[PART_DO].node ||
		   (v[PART_TOGETHER].node && v[PART_REPEAT].node)) {
		refuse(s, map->at, WEFT_EINVAL, "step: expected 'together', or 'repeat' and 'do'");
	} else if (v[PART_DO].node) {
		out = read_step(s, v[PART_DO].node, v[PART_REPEAT].num);
	} else if (v[PART_TOGETHER].node->kind != CONF_NODE_LIST) {
		refuse(s, v[PART_TOGETHER].node->at, WEFT_EINVAL, "step: together: expected a "
		       "list of collectives");
	} else {
		for (const struct conf_node *n = v[PART_TOGETHER].node->first; n; n = n->next) {
			out.ops |= find_op(s, n);
		}
	}
	return out;
}

/* A list that runs so many times, or the name of one collective. */
static struct workload_step read_step(struct step_reader *s, const struct conf_node *node,
				      int64_t times)
{
	struct workload_step out = { .times = times };

	if (node->kind == CONF_NODE_TEXT) {
		vec_push(&out.list, (struct workload_step){ .ops = find_op(s, node) });
	} else if (node->kind == CONF_NODE_MAP) {
		vec_push(&out.list, read_part(s, node));
	}
	for (const struct conf_node *n = node->first; node->kind == CONF_NODE_LIST && n;
	     n = n->next) {
		if (n->kind == CONF_NODE_TEXT) {
			vec_push(&out.list, (struct workload_step){ .ops = find_op(s, n) });
		} else {
			vec_push(&out.list, n->kind == CONF_NODE_MAP ? read_part(s, n)
								     : read_step(s, n, 1));
		}
	}
	return out;
}

static void read_order(struct step_reader *s)
{
	const struct conf_node *node = s->e->v[JOB_STEP].node;
	struct workload_step step = { .times = 1 };
	struct err err = { 0 };

	if (node && s->ok) {
		step = read_step(s, node, 1);
	}
	for (size_t i = 0; !node && i < s->w->ops.n; i++) {
		vec_push(&step.list, (struct workload_step){ .ops = UINT32_C(1) << i });
	}
	if (s->ok && workload_count(s->w, &step, &err)) {
		refuse_as(s, node ? node->at : s->e->node->at, "step", &err);
	}
	workload_step_fini(&step);
}

/* ---- the whole ---- */

/* Keys of one collective, which a step has for each of its own. */
static void refuse_others(struct step_reader *s)
{
	static const int keys[] = { JOB_COLLECTIVE, JOB_SIZE, JOB_TOPOLOGY, JOB_ALGORITHM,
				    JOB_RING };

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		if (s->e->v[keys[i]].node) {
			refuse(s, s->e->v[keys[i]].node->at, WEFT_EINVAL,
			       "%s: only of a job of one collective, this has a step",
			       section_job.keys[keys[i]].name);
		}
	}
}

/* Without collectives: the keys that need them, and those that a collective needs. */
static void check_single(struct step_reader *s)
{
	static const int of_steps[] = { JOB_MESH, JOB_STEP, JOB_LIGHT, JOB_MAX_CHANGES };
	static const int needed[] = { JOB_COLLECTIVE, JOB_SIZE };

	for (size_t i = 0; i < sizeof(of_steps) / sizeof(of_steps[0]); i++) {
		const struct conf_node *node = s->e->v[of_steps[i]].node;

		if (node) {
			refuse(s, node->at, WEFT_EINVAL, "%s: only of a job with 'collectives'",
			       section_job.keys[of_steps[i]].name);
		}
	}
	for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++) {
		const struct conf_key *key = &section_job.keys[needed[i]];

		if (!s->e->v[needed[i]].node) {
			err_hint(refuse(s, s->e->node->at, WEFT_EINVAL, "key '%s' is missing",
					key->name), "%s: %s", key->name, key->help);
			s->e->v[needed[i]].ok = false;
		}
	}
}

void build_step(struct model_build *b, struct job_entry *e)
{
	const struct conf_value *list = &e->v[JOB_COLLECTIVES];
	struct step_reader s = { .b = b, .e = e, .ok = true };
	int nth = 0;

	if (!list->node) {
		check_single(&s);
		return;
	}
	e->job.kind = MODEL_STEP;
	e->job.light = (enum model_light)e->v[JOB_LIGHT].num;
	e->job.max_changes = e->v[JOB_MAX_CHANGES].node ? e->v[JOB_MAX_CHANGES].num : -1;
	refuse_others(&s);
	if (!list->ok || (e->v[JOB_MESH].node && !e->v[JOB_MESH].ok)) {
		return;
	}
	workload_new(&s.w);
	if (e->v[JOB_MESH].node) {
		read_mesh(&s);
	} else if (!read_groups(&s, list->node)) {
		workload_free(s.w);
		return;
	}
	if (s.ok && e->ok) {
		find_server(&s, e->v[JOB_MESH].node ? e->v[JOB_MESH].node : list->node);
	}
	for (const struct conf_node *n = list->node->first; n && !b->r->stop; n = n->next) {
		read_op(&s, n, ++nth);
	}
	read_order(&s);
	for (size_t i = 0; i < s.groups.n; i++) {
		free(s.groups.v[i].of);
	}
	vec_fini(&s.groups);
	e->ok &= s.ok;
	e->job.workload = s.w;
}
