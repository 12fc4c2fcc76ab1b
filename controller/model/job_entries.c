/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jobs: who takes part, where, and with what.
 *
 * Jobs of the text and jobs that orchestrators request go through the same
 * checks: a request becomes a mapping like one of the file, without a place. A
 * job on a ring takes a window of its channels, and its ranks follow the ring;
 * which ports a job on switches has is known when all have been read
 * (job_ports.c), and what their topologies may be with it. A topology is parsed
 * here, once, and planning reads the digraph: the numbers in it are bounded by
 * ranks and ports first, because building a graph costs what they say.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collective/make/make.h"
#include "controller/model/private.h"
#include "lib/base/alloc.h"
#include "lib/base/buf.h"
#include "topology/topology.h"

/* Where a key stands, or the job itself when the key was not given. */
static struct conf_place place_of(const struct job_entry *e, int key)
{
	return e->v[key].node ? e->v[key].node->at : e->node->at;
}

/* ---- the ring ---- */

/* The ring that a job names. e->ring is set for a name that is unknown too, so
 * that the job is still judged as one on a ring. */
static void find_ring(struct model_build *b, struct job_entry *e)
{
	const struct conf_value *v = &e->v[JOB_RING];
	enum model_device_kind kind;
	struct nearest near;
	struct err *err;

	e->job.device = -1;
	e->ring = v->node != NULL;
	if (!v->ok) {
		return;
	}
	e->job.device = build_find(&b->f->devices, v->text);
	if (e->job.device >= 0) {
		kind = b->devices.v[e->job.device].kind;
		if (kind == MODEL_RING) {
			return;
		}
		conf_error(b->r, v->node->at, WEFT_EINVAL, "%s: ring: %s is a %s", e->object,
			   v->text, model_device_kind_name(kind));
		e->job.device = -1;
		return;
	}
	if (b->devices_unsure) {
		return;
	}
	err = conf_error(b->r, v->node->at, WEFT_EINVAL, "%s: ring: there is no ring '%s'",
			 e->object, v->text);
	nearest_init(&near, v->text);
	for (size_t i = 0; i < b->devices.n; i++) {
		if (b->devices.v[i].kind == MODEL_RING) {
			nearest_try(&near, b->devices.v[i].name);
		}
	}
	nearest_hint(&near, err);
}

/* ---- hosts ---- */

/* "nodes: all", or no such key. */
static bool is_all(const struct conf_value *v)
{
	return v->ok &&
	       (!v->node || (v->node->kind == CONF_NODE_TEXT && strcmp(v->node->text, "all") == 0));
}

/* All nodes of the ring; on switches all hosts that have ports. */
static void take_all(struct model_build *b, struct job_entry *e)
{
	const struct model_device *ring = e->job.device >= 0 ? &b->devices.v[e->job.device] : NULL;
	size_t n = ring ? (size_t)ring->n_members : b->hosts.n;

	if (e->ring && !ring) {
		return;
	}
	if ((int64_t)n > b->names_left) {
		conf_error(b->r, place_of(e, JOB_NODES), WEFT_ELIMIT,
			   "%s: nodes: more than %lld names in the fabric", e->object,
			   (long long)MODEL_MAX_NAMES);
		return;
	}
	b->names_left -= (int64_t)n;
	e->job.hosts = conf_arena_alloc(b->r->keep, n, sizeof(int));
	for (size_t i = 0; i < n; i++) {
		if (ring || b->hosts.v[i].n_ports > 0) {
			e->job.hosts[e->job.n_hosts++] = ring ? ring->members[i] : (int)i;
		}
	}
	e->ok = !b->hosts_unsure && !b->devices_unsure;
}

/* The hosts that the key lists, in the order of ranks. */
static void take_named(struct model_build *b, struct job_entry *e)
{
	const struct names *names;

	names = build_names(b, e->object, "nodes", e->v[JOB_NODES].node,
			    &b->r->work, MODEL_MAX_HOSTS);
	if (!names) {
		return;
	}
	e->job.hosts = conf_arena_alloc(b->r->keep, (size_t)names->n, sizeof(int));
	e->job.n_hosts = build_find_hosts(b, e->object, names, e->job.hosts, &e->ok);
}

/* Fills job.hosts. e->ok: all are known and they are enough, so that checks
 * which need them make sense. */
static void find_hosts(struct model_build *b, struct job_entry *e)
{
	if (is_all(&e->v[JOB_NODES])) {
		take_all(b, e);
	} else if (e->v[JOB_NODES].ok) {
		take_named(b, e);
	}
	if (e->ok && e->job.n_hosts < (e->v[JOB_SHAPE].node ? 1 : 2)) {
		conf_error(b->r, place_of(e, JOB_NODES), WEFT_EINVAL,
			   "%s: nodes: a collective needs at least two hosts", e->object);
		e->ok = false;
	}
}

/* ---- jobs on a ring ---- */

/* Reports a key that makes no sense for this job, if it was given. */
static void refuse_key(struct model_build *b, const struct job_entry *e, int key, const char *why)
{
	if (e->v[key].node) {
		conf_error(b->r, e->v[key].node->at, WEFT_EINVAL, "%s: %s: %s", e->object,
			   section_job.keys[key].name, why);
	}
}

/* "16" or "0-15"; the whole ring when not given. */
static void read_channels(struct model_build *b, struct job_entry *e)
{
	const struct model_device *ring = &b->devices.v[e->job.device];
	const struct conf_value *v = &e->v[JOB_CHANNELS];
	int first, last, len = 0;

	e->job.first_channel = 0;
	e->job.n_channels = ring->ring.channels;
	if (!v->node || !v->ok) {
		return;
	}
	if (sscanf(v->text, "%6d-%6d%n", &first, &last, &len) == 2 && !v->text[len]) {
		e->job.first_channel = first;
		e->job.n_channels = last - first + 1;
	} else if (sscanf(v->text, "%6d%n", &e->job.n_channels, &len) == 1 &&
		   !v->text[len]) {
		e->job.first_channel = first = -1;
		last = e->job.n_channels - 1;
	} else {
		conf_error(b->r, v->node->at, WEFT_EINVAL,
			   "%s: channels: expected a number such as 16 or a range such as 0-15, "
			   "found '%.40s'",
			   e->object, v->text);
		e->job.first_channel = 0;
		e->job.n_channels = ring->ring.channels;
		return;
	}
	if (e->job.n_channels < 1 || first < -1 || last >= ring->ring.channels) {
		conf_error(b->r, v->node->at, WEFT_EINVAL,
			   "%s: channels: %.40s: %s has channels 0-%d", e->object, v->text,
			   ring->name, ring->ring.channels - 1);
	}
}

/* Place of a host on the ring, -1: not on it. O(members). */
static int position_on(const struct model_device *ring, int host)
{
	for (int i = 0; i < ring->n_members; i++) {
		if (ring->members[i] == host) {
			return i;
		}
	}
	return -1;
}

/* Ranks go round the ring once, from wherever the first is. */
static void check_order(struct model_build *b, const struct job_entry *e)
{
	const struct model_device *ring = &b->devices.v[e->job.device];
	struct conf_place at = place_of(e, JOB_NODES);
	int first = position_on(ring, e->job.hosts[0]), before = -1;

	/* A ring whose nodes could not be read has none, which is reported. */
	for (int i = 0; i < e->job.n_hosts && ring->n_members > 0; i++) {
		const char *name = b->hosts.v[e->job.hosts[i]].name;
		int p = i ? position_on(ring, e->job.hosts[i]) : first;
		int from = (p - first + ring->n_members) % ring->n_members;

		if (p < 0) {
			conf_error(b->r, at, WEFT_EINVAL, "%s: nodes: host %s is not on %s",
				   e->object, name, ring->name);
			return;
		}
		if (from <= before) {
			err_hint(conf_error(b->r, at, WEFT_EINVAL,
					    "%s: nodes: rank %d, %s, comes before rank %d on %s",
					    e->object, i, name, i - 1, ring->name),
				 "ranks follow the ring's order");
			return;
		}
		before = from;
	}
}

/* Light on a ring is planned for hosts that are alike. */
static void check_ranks(struct model_build *b, const struct job_entry *e)
{
	const struct model_host *first = &b->hosts.v[e->job.hosts[0]];

	for (int i = 1; i < e->job.n_hosts; i++) {
		const struct model_host *h = &b->hosts.v[e->job.hosts[i]];

		if (h->ranks != first->ranks) {
			conf_error(b->r, place_of(e, JOB_NODES), WEFT_EUNSUPPORTED,
				   "%s: nodes: hosts %s and %s have %d and %d ranks inside: not "
				   "supported on rings", e->object, first->name, h->name,
				   first->ranks, h->ranks);
			return;
		}
	}
}

static void check_ring_job(struct model_build *b, struct job_entry *e)
{
	read_channels(b, e);
	e->job.segment = e->v[JOB_SEGMENT].num;
	if (e->ok) {
		check_order(b, e);
		check_ranks(b, e);
	}
}

/* ---- topologies ---- */

/* The n-th number (from 0) of an expression may be as large as this. */
static long number_limit(const char *family, int nth, long hosts, long ports)
{
	static const char *const degree_first[] = {
		"BiRing", "DBJMod", "DeBruijn", "GenKautz", "Kautz", "UniRing",
	};
	size_t len = strcspn(family, " (");

	if (len == 1 && family[0] == 'K') {
		return ports + 1 < hosts ? ports + 1 : hosts;
	}
	for (size_t i = 0; nth == 0 && i < sizeof(degree_first) / sizeof(degree_first[0]); i++) {
		if (strlen(degree_first[i]) == len && strncmp(family, degree_first[i], len) == 0) {
			return ports;
		}
	}
	/* Its last number is that of parallel arcs. */
	if (len == 5 && strncmp(family, "Multi", len) == 0 && ports > hosts) {
		return ports;
	}
	return hosts;
}

/* Numbers in an expression are sizes, offsets or degrees. No size exceeds
 * the number of ranks, no degree that of a host's ports: looking at this
 * first bounds what building any graph may cost. */
static bool check_numbers(struct model_build *b, const struct job_entry *e,
			  const struct conf_node *node)
{
	const char *family = node->text + strspn(node->text, " ");
	long ports = 0;
	int nth = 0;

	for (int i = 0; i < e->job.n_hosts; i++) {
		const struct model_host *h = &b->hosts.v[e->job.hosts[i]];
		long n = 0;

		for (int p = h->first_port; p < h->first_port + h->n_ports; p++) {
			n += b->ports.v[p].tx_job == e->index;
		}
		ports = n > ports ? n : ports;
	}
	for (const char *p = node->text; *p;) {
		long n, limit;
		char *end;

		if (*p < '0' || *p > '9') {
			p++;
			continue;
		}
		n = strtol(p, &end, 10);
		limit = number_limit(family, nth++, e->job.n_hosts, ports);
		if (n > limit) {
			conf_error(b->r, conf_node_place(node, p - node->text), WEFT_EINVAL,
				   "%s: topology: %.*s is too "
				   "large for %d hosts with %ld ports",
				   e->object, (int)(end - p > 20 ? 20 : end - p), p, e->job.n_hosts,
				   ports);
			return false;
		}
		p = end;
	}
	return true;
}

/* "...: column N: fact": the column becomes the place. */
static struct err *report_expression(struct model_build *b, const struct job_entry *e,
				     const struct conf_node *node, const struct err *err)
{
	const char *fact = err->msg;
	int column = 1;

	/* The last one: the expression may be quoted before it. */
	for (const char *at = fact; (at = strstr(at, "column ")); at++) {
		int number, len = 0;

		if (sscanf(at, "column %4d: %n", &number, &len) == 1 && len > 0 && number > 0 &&
		    (size_t)number <= strlen(node->text) + 1) {
			fact = at + len;
			column = number;
		}
	}
	return conf_error(b->r, conf_node_place(node, (size_t)column - 1), err->code,
			  "%s: topology: %s", e->object, fact);
}

bool model_is_arcs(const char *text)
{
	const char *word = text + strspn(text, " ");

	return (*word >= '0' && *word <= '9') || strncmp(word, "undirected", 10) == 0 ||
	       strncmp(word, "nodes ", 6) == 0;
}

int build_check_arcs(const struct topo *t, struct err *err)
{
	for (int a = 0; a < topo_m(t); a++) {
		const struct topo_arc *x = topo_arc(t, a);

		if (x->cap != 1 || x->latency_ns || x->cost != 1) {
			return err_set(err, WEFT_EUNSUPPORTED, "arc %d %d has a capacity, latency "
				       "or cost: not supported, only which ranks it joins", x->src,
				       x->dst);
		}
	}
	return 0;
}

int model_topology(const char *text, struct topo **out, char **name, struct err *err)
{
	struct buf b = { 0 };
	char *lines;
	int rc;

	if (!model_is_arcs(text)) {
		return topo_parse(text, out, name, err);
	}
	lines = x_dup(text);
	for (char *c = lines; (c = strchr(c, ',')); c++) {
		*c = '\n';
	}
	rc = topo_from_edges(lines, strlen(lines), out, err);
	free(lines);
	if (rc == 0 && (rc = build_check_arcs(*out, err))) {
		topo_free(*out);
		*out = NULL;
	}
	if (rc == 0 && name) {
		buf_printf(&b, "%d nodes, %d arcs", topo_n(*out), topo_m(*out));
		*name = buf_steal(&b);
	}
	return rc;
}

/* Where the arc of this number, from 1, is written. */
static struct conf_place place_of_arc(const struct conf_node *node, int arc)
{
	const char *at = node->text;

	for (; arc > 1 && strchr(at, ','); arc--) {
		at = strchr(at, ',') + 1;
	}
	return conf_node_place(node, (size_t)(at - node->text) + strspn(at, " "));
}

static void report_topology(struct model_build *b, const struct job_entry *e, struct err *err)
{
	const struct conf_value *v = &e->v[JOB_TOPOLOGY];

	if (model_is_arcs(v->text)) {
		err_hint(conf_error(b->r, place_of_arc(v->node, err->line), err->code,
				    "%s: topology: %s", e->object, err->msg),
			 err->hint[0] ? "%s" : "such as 0 1, 1 2, 2 0", err->hint);
		return;
	}
	err_hint(report_expression(b, e, v->node, err),
		 err->hint[0] ? "%s" : "such as C(16,{1,4}), "
		 "Torus(4,4) or auto", err->hint);
}

void build_topology(struct model_build *b, struct job_entry *e)
{
	const struct conf_value *v = &e->v[JOB_TOPOLOGY];
	struct model_job *job = &b->jobs.v[e->index];
	struct err err = { 0 };
	char *name = NULL;

	if (!v->node || !v->ok || strcmp(v->text, "auto") == 0 ||
	    (!model_is_arcs(v->text) && !check_numbers(b, e, v->node))) {
		return;
	}
	if (model_topology(v->text, &job->topo, &name, &err)) {
		report_topology(b, e, &err);
		return;
	}
	job->topology = conf_arena_strndup(b->r->keep, name, strlen(name));
	free(name);
	if (topo_check_plain(job->topo, "its nodes are the job's hosts", &err)) {
		conf_error(b->r, v->node->at, err.code, "%s: topology: %.80s: %s", e->object,
			   v->text, err.msg);
	} else if (topo_n(job->topo) != job->n_hosts) {
		conf_error(b->r, v->node->at, WEFT_EINVAL,
			   "%s: topology: %.80s has %d nodes, the job has %d hosts", e->object,
			   v->text, topo_n(job->topo), job->n_hosts);
	}
}

/* ---- the whole ---- */

static void read_collective(struct model_build *b, struct job_entry *e)
{
	const struct conf_value *v = &e->v[JOB_COLLECTIVE];
	struct nearest near;
	struct err err, *rep;

	if (!v->ok || !v->node || coll_kind_parse(v->text, &e->job.collective, &err) == 0) {
		return;
	}
	rep = conf_error(b->r, v->node->at, err.code, "%s: collective: %s", e->object, err.msg);
	nearest_init(&near, v->text);
	for (int k = 0; k < COLL_KINDS; k++) {
		nearest_try(&near, coll_kind_name(k));
	}
	nearest_hint(&near, rep);
}

/* ---- its algorithm ---- */

static const char *const ring_algorithms[] = { "composed", "grouped", "optree", NULL };

static bool is_on_rings(const char *name)
{
	int i = 0;

	while (ring_algorithms[i] && strcmp(ring_algorithms[i], name) != 0) {
		i++;
	}
	return ring_algorithms[i] != NULL;
}

static void list_algorithm(struct buf *all, struct nearest *near, const char *name)
{
	buf_printf(all, ", %s", name);
	nearest_try(near, name);
}

static void report_unknown_algorithm(struct model_build *b, const struct job_entry *e)
{
	const struct conf_value *v = &e->v[JOB_ALGORITHM];
	struct buf all = { 0 };
	struct nearest near;
	const char *name;

	nearest_init(&near, v->text);
	nearest_try(&near, "auto");
	for (int i = 0; ring_algorithms[i]; i++) {
		list_algorithm(&all, &near, ring_algorithms[i]);
	}
	for (int i = 0; (name = coll_algorithm_name(i)); i++) {
		if (!is_on_rings(name)) {
			list_algorithm(&all, &near, name);
		}
	}
	nearest_hint(&near, conf_error(b->r, v->node->at, WEFT_EINVAL,
				       "%s: algorithm: '%.40s' is none of auto%s", e->object,
				       v->text, buf_cstr(&all)));
	buf_fini(&all);
}

/* One of rings on a ring; on switches one of the table that is for the collective. */
static void check_algorithm(struct model_build *b, struct job_entry *e)
{
	const struct conf_value *v = &e->v[JOB_ALGORITHM];
	enum coll_kind kind = e->job.collective;
	bool on_rings, on_switches;

	if (!v->ok || strcmp(v->text, "auto") == 0) {
		return;
	}
	on_rings = is_on_rings(v->text);
	on_switches = coll_algorithm_exists(v->text);
	if (!on_rings && !on_switches) {
		report_unknown_algorithm(b, e);
	} else if (e->ring ? !on_rings : !on_switches) {
		conf_error(b->r, v->node->at, WEFT_EINVAL, "%s: algorithm: %s is for jobs on %s",
			   e->object, v->text, e->ring ? "switches" : "a ring");
	} else if (!e->ring && e->v[JOB_COLLECTIVE].ok) {
		e->job.made_by = coll_algorithm_find(v->text, kind);
		if (!e->job.made_by) {
			conf_error(b->r, v->node->at, WEFT_EINVAL,
				   "%s: algorithm: %s is not for %s",
				   e->object, v->text, coll_kind_name(kind));
		}
	}
}

int build_number_len(const char *text)
{
	const int len = (int)strspn(text, "0123456789");
	const char *word = text + len + (text[len] == ' ');
	const bool has_kept = word > text + len && memchr(word, '.', strcspn(word, " "));

	return !text[len] || has_kept ? len : 0;
}

/* A number, or names that live until all jobs have their ports. */
static void read_ports(struct model_build *b, struct job_entry *e)
{
	const struct conf_value *v = &e->v[JOB_PORTS];

	if (!v->node || !v->ok) {
		return;
	}
	if (v->node->kind == CONF_NODE_TEXT && v->node->text[0] &&
	    !v->node->text[strspn(v->node->text, "0123456789")]) {
		e->n_ports = strlen(v->node->text) < 8 ? atoi(v->node->text) : INT_MAX;
		e->ok &= e->n_ports > 0;
		if (e->n_ports == 0) {
			conf_error(b->r, v->node->at, WEFT_EINVAL, "%s: ports: 0 of each host",
				   e->object);
		}
		return;
	}
	e->ports = build_names(b, e->object, "ports", v->node, &b->r->tree, MODEL_MAX_PORTS);
	e->ok &= e->ports != NULL;
}

static void check_where(struct model_build *b, struct job_entry *e)
{
	check_algorithm(b, e);
	if (e->ring) {
		refuse_key(b, e, JOB_TOPOLOGY, "only for jobs on switches, a ring has its own");
		refuse_key(b, e, JOB_PORTS, "only for jobs on switches");
		refuse_key(b, e, JOB_PROTECT, "only for jobs on switches");
		if (e->job.device >= 0) {
			check_ring_job(b, e);
		}
		return;
	}
	refuse_key(b, e, JOB_DEPTH, "only for jobs on a ring");
	refuse_key(b, e, JOB_CHANNELS, "only for jobs on a ring");
	refuse_key(b, e, JOB_SEGMENT, "only for jobs on a ring");
	read_ports(b, e);
}

/* A name of its own, and the job into the list. */
static void add_job(struct model_build *b, struct job_entry *e)
{
	const struct conf_value *name = &e->v[JOB_NAME];
	char line[LINE_TEXT_MAX];
	int other;

	if (!name->ok) {
		return;
	}
	other = build_find(&b->f->jobs, name->text);
	if (other >= 0) {
		conf_error(b->r, name->node->at, WEFT_EINVAL, "%s: name '%s' is already a job%s",
			   e->object, name->text, build_line("on", b->jobs.v[other].place, line));
		return;
	}
	e->job.place = name->node->at;
	e->job.name = conf_arena_strndup(b->r->keep, name->text, strlen(name->text));
	build_map(&b->f->jobs, name->text, (int)b->jobs.n);
}

/* What needs no other part of the file. alpha_ns -1 asks planning for the
 * ring's own cost of a step. */
static void read_rest(struct model_build *b, struct job_entry *e)
{
	const char *algorithm = e->v[JOB_ALGORITHM].text;
	const char *topology = e->v[JOB_TOPOLOGY].text;
	struct model_job *job = &e->job;

	job->size_bytes = e->v[JOB_SIZE].num;
	job->depth = (int)e->v[JOB_DEPTH].num;
	job->protect = (enum model_protect)e->v[JOB_PROTECT].num;
	job->alpha_ns = e->ring && !e->v[JOB_ALPHA].node
				? -1 : e->v[JOB_ALPHA].num;
	algorithm = algorithm ? algorithm : "";
	topology = topology && job->kind != MODEL_STEP ? topology : "";
	job->algorithm = conf_arena_strndup(b->r->keep, algorithm, strlen(algorithm));
	job->topology = conf_arena_strndup(b->r->keep, topology, strlen(topology));
}

bool build_has_room(struct model_build *b, const struct conf_node *node, const char *object)
{
	if (b->jobs.n >= MODEL_MAX_JOBS) {
		conf_error(b->r, node->at, WEFT_ELIMIT, "%s: more than %d jobs", object,
			   MODEL_MAX_JOBS);
		b->r->stop = WEFT_ELIMIT;
	}
	return !b->r->stop;
}

/* One job. Those of the text and those that were requested come through here.
 * */
void build_job(struct model_build *b, const struct conf_node *node, int nth)
{
	struct job_entry *e = conf_arena_alloc(&b->r->tree, 1, sizeof(*e));

	e->node = node;
	e->job.requested = b->requested;
	conf_object_name(&section_job, node, nth, e->object);
	conf_read_section(b->r, &section_job, e->object, node, e->v);
	if (node->kind != CONF_NODE_MAP || !build_has_room(b, node, e->object)) {
		return;
	}
	find_ring(b, e);
	find_hosts(b, e);
	build_step(b, e);
	read_collective(b, e);
	read_rest(b, e);
	check_where(b, e);
	build_slice(b, e);
	add_job(b, e);
	/* A job without a good name still holds its hosts and ring. */
	if (!e->job.name) {
		e->job.name = conf_arena_strndup(b->r->keep, e->object, strlen(e->object));
		e->job.place = node->at;
	}
	e->index = (int)b->jobs.n;
	vec_push(&b->jobs, e->job);
	if (e->ok && !e->ring) {
		vec_push(&b->entries, e);
	}
}

void build_jobs(struct model_build *b, const struct conf_value *root)
{
	if (b->r->stop) {
		return;
	}
	build_each(b, &root[FABRIC_JOBS], build_job);
}
