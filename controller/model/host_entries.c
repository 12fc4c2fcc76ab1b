/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hosts and their ports.
 *
 * An entry names a class of hosts that have the same ports, rate and optics;
 * the names of its ports are kept once for all of them. Hosts without ports
 * are for rings only, which is checked when all devices are known.
 */
#include <stdio.h>
#include <string.h>

#include "controller/model/private.h"

/* Ports of all hosts of an entry, consecutive by host. */
static void add_ports(struct model_build *b, int host, const struct host_class *class,
		      int64_t rate_bps)
{
	char name[3 * (CONF_MAX_NAME + 1)];

	for (int i = 0; class->names && i < class->names->n; i++) {
		struct model_port p = { .host = host, .rate_bps = rate_bps,
					.lane = i % class->lanes, .lanes = class->lanes,
					.tx_job = -1, .rx_job = -1,
					.tx_device = -1, .tx_port = -1,
					.rx_device = -1, .rx_port = -1 };
		int len = snprintf(name, sizeof(name), "%s.%s", b->hosts.v[host].name,
				   class->names->v[i].text);

		p.name = conf_arena_strndup(b->r->keep, name, (size_t)len);
		p.label = class->labels ? class->labels[i / class->lanes] : NULL;
		b->ports.v[b->ports.n++] = p;
	}
}

/* The name with every % replaced by the host's. NULL when it gets too long;
 * "self" is "". */
static char *netns_of(struct model_build *b, const char *pattern, const char *host)
{
	char name[MODEL_MAX_NETNS + 1];
	size_t len = 0;

	if (strcmp(pattern, "self") == 0) {
		pattern = "";
	}
	for (const char *p = pattern; *p && len < sizeof(name); p++) {
		const char *part = *p == '%' ? host : p;
		size_t n = *p == '%' ? strlen(host) : 1;

		if (len + n >= sizeof(name)) {
			return NULL;
		}
		memcpy(name + len, part, n);
		len += n;
	}
	return conf_arena_strndup(b->r->keep, name, len);
}

/* The namespace of one host of an entry; a name with '/' could leave the folder
 * of namespaces and is refused. */
static void set_netns(struct model_build *b, struct model_host *h, const struct conf_value *v)
{
	if (!v->node || !v->ok) {
		return;
	}
	h->netns = strchr(v->text, '/') ? NULL : netns_of(b, v->text, h->name);
	if (!h->netns) {
		conf_error(b->r, v->node->at, WEFT_EINVAL,
			   "host %s: netns: no name of a network namespace", h->name);
	}
}

/* Adds one host of an entry, with its ports behind those of the hosts before
 * it. */
static void add_host(struct model_build *b, const struct name *name, char *label, int class,
		     const struct conf_value *v)
{
	const struct host_class *c = &b->classes.v[class];
	int index = (int)b->hosts.n;
	struct model_host h = {
		.label = label,
		.first_port = (int)b->ports.n,
		.n_ports = c->names ? c->names->n : 0,
		.reactivation_ns = v[HOST_REACTIVATION].num,
		.place = name->at,
		.n_channels = c->n_channels,
		.channels = c->channels,
		.ranks = c->ranks,
		.forwards = v[HOST_FORWARDS].node && v[HOST_FORWARDS].ok
				    ? (enum model_forwards)(v[HOST_FORWARDS].num + 1)
				    : MODEL_FORWARDS_UNSAID,
		.has_launch = v[HOST_LAUNCH].ok,
		.launch_mdbm = (int32_t)v[HOST_LAUNCH].num,
		.has_receive_min = v[HOST_RECEIVE_MIN].ok,
		.receive_min_mdbm = (int32_t)v[HOST_RECEIVE_MIN].num,
		.has_receive_max = v[HOST_RECEIVE_MAX].ok,
		.receive_max_mdbm = (int32_t)v[HOST_RECEIVE_MAX].num,
	};

	h.name = conf_arena_strndup(b->r->keep, name->text, strlen(name->text));
	if (v[HOST_INSIDE].node && v[HOST_INSIDE].ok) {
		h.inside = conf_arena_strndup(b->r->keep, v[HOST_INSIDE].text,
					      strlen(v[HOST_INSIDE].text));
		h.port_at = c->port_at;
	}
	set_netns(b, &h, &v[HOST_NETNS]);
	vec_push(&b->hosts, h);
	vec_push(&b->class_of, class);
	add_ports(b, index, c, v[HOST_RATE].num / c->lanes);
	build_map(&b->f->hosts, h.name, index);
}

/* The names of all lanes in place of those of the ports, "p0-1" to "p0-4" for p0. */
static struct names *split_lanes(struct model_build *b, const char *object,
				 const struct names *ports, struct host_class *class)
{
	struct names *out = conf_arena_alloc(&b->r->tree, 1, sizeof(*out));
	int64_t n = (int64_t)ports->n * class->lanes;
	char text[2 * (CONF_MAX_NAME + 1)];

	if (n > MODEL_MAX_PORTS || n > b->names_left) {
		conf_error(b->r, ports->v[0].at, WEFT_ELIMIT, "%s: more than %d ports in all",
			   object, MODEL_MAX_PORTS);
		return NULL;
	}
	b->names_left -= n;
	out->v = conf_arena_alloc(&b->r->tree, (size_t)n, sizeof(*out->v));
	for (; out->n < n; out->n++) {
		const struct name *port = &ports->v[out->n / class->lanes];
		int len = snprintf(text, sizeof(text), "%s-%d", port->text,
				   out->n % class->lanes + 1);

		out->v[out->n] = (struct name){
			conf_arena_strndup(&b->r->tree, text, (size_t)len), port->at };
		if (out->n % class->lanes == 0) {
			build_map(&class->laned, port->text, out->n);
		}
	}
	return out;
}

/* Labels are of one port of the host each, and no port's name. */
static void read_port_labels(struct model_build *b, const char *object,
			     const struct conf_value *v, struct host_class *class)
{
	int n = class->names ? class->names->n / class->lanes : 0;
	struct strmap seen = { 0 };

	if (!v->node || class->unsure) {
		return;
	}
	class->labels = conf_arena_alloc(b->r->keep, (size_t)n + 1, sizeof(*class->labels));
	if (!build_labels(b, object, "port-labels", v->node, n, class->labels)) {
		n = 0;
	}
	for (int i = 0; i < n; i++) {
		const char *label = class->labels[i];
		int named = build_find(&class->laned, label);

		named = named < 0 ? build_find(&class->ports, label) : named;
		if (build_find(&seen, label) >= 0 || (named >= 0 && named / class->lanes != i)) {
			conf_error(b->r, v->node->at, WEFT_EINVAL, "%s: port-labels: '%.80s' is "
				   "another port's name or label", object, label);
		}
		build_map(&seen, label, i);
	}
	strmap_fini(&seen);
}

/* Port names of an entry, into class. They live as long as the tree. */
static void read_ports(struct model_build *b, const char *object, const struct conf_value *v,
		       struct host_class *class)
{
	const struct conf_value *ports = &v[HOST_PORTS];
	struct tally twice = { 0 };

	class->unsure = ports->node && !ports->ok;
	if (!ports->node || !ports->ok) {
		return;
	}
	class->names = build_plain_names(b, object, "ports", ports->node,
					 &b->r->tree, MODEL_MAX_PORTS);
	if (class->names && class->lanes > 1) {
		class->names = split_lanes(b, object, class->names, class);
	}
	class->unsure = !class->names;
	for (int i = 0; class->names && i < class->names->n; i++) {
		const struct name *name = &class->names->v[i];

		if (build_find(&class->ports, name->text) >= 0 ||
		    build_find(&class->laned, name->text) >= 0) {
			tally_add(&twice, name);
			class->unsure = true;
		} else if (strcmp(name->text, "tx") == 0 ||
			   strcmp(name->text, "rx") == 0) {
			conf_error(b->r, name->at, WEFT_EINVAL,
				   "%s: ports: '%s' means a side of a port and cannot be its name",
				   object, name->text);
		}
		build_map(&class->ports, name->text, i);
	}
	if (twice.n > 0) {
		conf_error(b->r, twice.first->at, WEFT_EINVAL, "%s: ports: '%s' is listed twice%s",
			   object, twice.first->text, tally_others(&twice));
	}
	if (!v[HOST_RATE].node) {
		conf_error(b->r, ports->node->at, WEFT_EINVAL, "%s: ports without key 'rate'",
			   object);
	}
}

/* Room for n more hosts with their ports, within the limits. */
static bool reserve(struct model_build *b, const char *object, const struct conf_node *entry,
		    const struct host_class *class, int n)
{
	int64_t ports = class->names ? class->names->n : 0;

	if ((int64_t)b->hosts.n + n > MODEL_MAX_HOSTS) {
		conf_error(b->r, entry->at, WEFT_ELIMIT, "%s: more than %d hosts in all", object,
			   MODEL_MAX_HOSTS);
		return false;
	}
	if ((int64_t)b->ports.n + ports * n > MODEL_MAX_PORTS) {
		conf_error(b->r, entry->at, WEFT_ELIMIT, "%s: more than %d ports in all", object,
			   MODEL_MAX_PORTS);
		return false;
	}
	vec_reserve(&b->ports, (size_t)ports * (size_t)n);
	return true;
}

/* Labels of n hosts, each of one host only, or NULL. */
static char **read_labels(struct model_build *b, const char *object, const struct conf_value *v,
			  int n)
{
	char **labels;

	if (!v->node) {
		return NULL;
	}
	labels = conf_arena_alloc(b->r->keep, (size_t)n + 1, sizeof(*labels));
	if (!build_labels(b, object, "label", v->node, n, labels)) {
		return NULL;
	}
	for (int i = 0; i < n; i++) {
		if (build_find(&b->f->labels, labels[i]) >= 0) {
			conf_error(b->r, v->node->at, WEFT_EINVAL, "%s: label: '%.80s' is already "
				   "another host's", object, labels[i]);
		}
		build_map(&b->f->labels, labels[i], (int)b->hosts.n + i);
	}
	return labels;
}

/* An entry of hosts: one class, and as many hosts as its names expand to. If
 * names cannot be read or do not fit, hosts_unsure keeps later parts from
 * calling them unknown. */
void build_host(struct model_build *b, const struct conf_node *entry, int nth)
{
	struct conf_value v[CONF_MAX_KEYS];
	struct host_class class = { 0 };
	const struct names *names = NULL;
	struct tally taken = { 0 };
	char object[CONF_MAX_OBJECT], **labels;

	conf_object_name(&section_host, entry, nth, object);
	conf_read_section(b->r, &section_host, object, entry, v);
	if (v[HOST_NAME].ok) {
		names = build_plain_names(b, object, "name", v[HOST_NAME].node,
					  &b->r->work, MODEL_MAX_HOSTS);
	}
	class.lanes = v[HOST_LANES].ok ? (int)v[HOST_LANES].num : 1;
	if (entry->kind == CONF_NODE_MAP) {
		read_ports(b, object, v, &class);
		read_port_labels(b, object, &v[HOST_PORT_LABELS], &class);
	}
	if (v[HOST_CHANNELS].ok && v[HOST_CHANNELS].node) {
		build_channels(b, object, &v[HOST_CHANNELS], &class.channels, &class.n_channels);
	}
	if (v[HOST_RATE].node && !v[HOST_PORTS].node) {
		conf_error(b->r, v[HOST_RATE].node->at, WEFT_EINVAL, "%s: rate without key 'ports'",
			   object);
	}
	build_inside(b, object, v, &class);
	if (v[HOST_FORWARDS].node && v[HOST_INSIDE].node) {
		conf_error(b->r, v[HOST_FORWARDS].node->at, WEFT_EINVAL,
			   "%s: forwards: only for hosts of one rank, without 'inside'", object);
	}
	/* The class is kept even if unused: it owns a map. */
	vec_push(&b->classes, class);
	if (!names || !reserve(b, object, entry, &class, names->n)) {
		b->hosts_unsure = true;
		return;
	}
	labels = read_labels(b, object, &v[HOST_LABEL], names->n);
	for (int i = 0; i < names->n; i++) {
		if (build_is_taken(b, names->v[i].text)) {
			tally_add(&taken, &names->v[i]);
		} else {
			add_host(b, &names->v[i], labels ? labels[i] : NULL,
				 (int)b->classes.n - 1, v);
		}
	}
	build_report_taken(b, object, &taken);
}

/* Names are looked up before labels, so that one that is another's name would be of no use. */
static void check_labels(struct model_build *b)
{
	for (size_t h = 0; h < b->hosts.n; h++) {
		const struct model_host *host = &b->hosts.v[h];
		int named = host->label ? build_find(&b->f->hosts, host->label) : -1;

		if (named >= 0 && named != (int)h) {
			conf_error(b->r, host->place, WEFT_EINVAL, "host %s: label: '%.80s' is "
				   "another host's name", host->name, host->label);
		}
	}
}

void build_hosts(struct model_build *b, const struct conf_value *root)
{
	const struct conf_value *list = &root[FABRIC_HOSTS];

	if (list->node && !list->ok) {
		b->hosts_unsure = true;
		return;
	}
	build_cubes(b, root);
	if (!list->node && !root[FABRIC_CUBES].node) {
		err_hint(conf_error(b->r, (struct conf_place){ 1, 1 }, WEFT_EINVAL,
				    "fabric: key 'hosts' is missing"), "hosts: %s",
			 section_fabric.keys[FABRIC_HOSTS].help);
		b->hosts_unsure = true;
	} else if (list->node && list->node->n == 0) {
		conf_error(b->r, list->node->at, WEFT_EINVAL, "fabric: hosts: the list is empty");
		b->hosts_unsure = true;
	}
	build_each(b, list, build_host);
	check_labels(b);
	b->tx_at = conf_arena_alloc(&b->r->tree, b->ports.n, sizeof(*b->tx_at));
	b->rx_at = conf_arena_alloc(&b->r->tree, b->ports.n, sizeof(*b->rx_at));
}

void build_check_hosts(struct model_build *b)
{
	bool *on_ring;
	int first = -1, n = 0;

	if (b->r->stop || b->devices_unsure) {
		return;
	}
	on_ring = conf_arena_alloc(&b->r->work, b->hosts.n, sizeof(*on_ring));
	for (size_t d = 0; d < b->devices.n; d++) {
		for (int i = 0; i < b->devices.v[d].n_members; i++) {
			on_ring[b->devices.v[d].members[i]] = true;
		}
	}
	for (size_t h = 0; h < b->hosts.n; h++) {
		if (b->hosts.v[h].n_ports == 0 && !on_ring[h] &&
		    !b->classes.v[b->class_of.v[h]].unsure) {
			first = first < 0 ? (int)h : first;
			n++;
		}
	}
	if (n > 0) {
		char more[MORE_MAX];

		conf_error(b->r, b->hosts.v[first].place, WEFT_EINVAL,
			   "host %s: without ports and on no ring%s", b->hosts.v[first].name,
			   tally_more(n, more));
	}
	conf_arena_fini(&b->r->work);
}
