/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Switches, patch panels and rings.
 *
 * One entry may stand for many devices ("ocs[0-7]"): it is read once and
 * copied for each name. Switches and panels have a table of ports that the
 * fibres fill in later; a device whose size could not be read is kept, marked
 * as unsure, so that its fibres and jobs are still checked by name.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/model/private.h"

/* An entry being read: its section, what messages call it, its values. */
struct device_entry {
	const struct conf_node *node;
	const struct conf_section *section;
	char object[CONF_MAX_OBJECT];
	struct conf_value v[CONF_MAX_KEYS];
	const struct names *names;	/* of the devices */
	const struct names *addresses;	/* as many, or NULL */
	struct tally taken;		/* names that others have */
};

/* ---- addresses ---- */

/* HOST:PORT or [V6]:PORT with a port of 1..65535. */
static const char *address_fault(const char *text)
{
	const char *colon = strrchr(text, ':');
	size_t digits;
	long port;

	if (!colon || (text[0] == '[' && colon[-1] != ']')) {
		return "has no port";
	}
	if (colon == text) {
		return "has no host";
	}
	if (text[0] != '[' && memchr(text, ':', (size_t)(colon - text))) {
		return "has several ':', an IPv6 address needs [ ]";
	}
	digits = strspn(colon + 1, "0123456789");
	port = digits < 6 ? strtol(colon + 1, NULL, 10) : 0;
	if (digits == 0 || colon[1 + digits] || port < 1 || port > 65535) {
		return "has no port number of 1 to 65535";
	}
	return NULL;
}

/* One HOST:PORT for each device of the entry, or none at all. False when a
 * mistake was reported. */
static bool read_addresses(struct model_build *b, struct device_entry *e)
{
	const struct conf_value *v = &e->v[DEVICE_ADDRESS];
	const struct names *list;

	if (!v->node || !v->ok) {
		return !v->node;
	}
	list = build_names(b, e->object, "address", v->node, &b->r->work, MODEL_MAX_DEVICES);
	for (int i = 0; list && i < list->n; i++) {
		const char *fault = address_fault(list->v[i].text);

		if (fault) {
			err_hint(conf_error(b->r, list->v[i].at, WEFT_EINVAL,
					    "%s: address: '%.80s' %s", e->object, list->v[i].text,
					    fault), "write HOST:PORT");
			return false;
		}
	}
	if (list && e->names && list->n != e->names->n) {
		err_hint(conf_error(b->r, v->node->at, WEFT_EINVAL,
				    "%s: address: %d for %d devices", e->object, list->n,
				    e->names->n),
			 "give one each, as a list or as HOST:[5025-5026]");
		return false;
	}
	e->addresses = list;
	return list != NULL;
}

/* ---- what all devices have ---- */

/* The text goes into plans, stores, exports and answers: no secret may be in it. */
static bool refuse_password(struct model_build *b, const char *object, const struct conf_node *key)
{
	if (strcmp(key->text, "password") != 0) {
		return false;
	}
	err_hint(conf_error(b->r, key->at, WEFT_EINVAL,
			    "%s: options: a password does not stand in a fabric", object),
		 "write it to a file of mode 0600, and here: password_file: /PATH/OF/THAT/FILE");
	return true;
}

/* Copies the options as they stand: keys and values are the driver's to check, but for what is
 * refused here. */
static void read_options(struct model_build *b, const struct device_entry *e,
			 struct model_device *dev)
{
	const struct conf_value *v = &e->v[DEVICE_OPTIONS];
	const struct conf_node *map = v->node;
	int n = 0;

	if (!v->ok || !map || map->n == 0) {
		return;
	}
	dev->options = conf_arena_alloc(b->r->keep, (size_t)map->n / 2, sizeof(*dev->options));
	for (const struct conf_node *k = map->first; k; k = k->next->next) {
		struct model_option *o;

		if (refuse_password(b, e->object, k)) {
			continue;
		}
		o = &dev->options[n++];
		o->key = conf_arena_strndup(b->r->keep, k->text, strlen(k->text));
		o->value = conf_arena_strndup(b->r->keep, k->next->text, strlen(k->next->text));
	}
	dev->n_options = n;
}

/* A copy that lives as long as the fabric. */
static char *keep_text(struct model_build *b, const char *text)
{
	return conf_arena_strndup(b->r->keep, text, strlen(text));
}

/* Fills what devices of an entry have in common. */
static void read_common(struct model_build *b, const struct device_entry *e,
			enum model_device_kind kind, struct model_device *dev)
{
	const struct conf_value *timeout = &e->v[DEVICE_TIMEOUT];

	dev->kind = kind;
	if (e->v[DEVICE_DRIVER].ok) {
		dev->driver = keep_text(b, e->v[DEVICE_DRIVER].text);
	}
	if (e->v[DEVICE_DOMAIN].ok) {
		dev->domain = keep_text(b, e->v[DEVICE_DOMAIN].text);
	}
	if (e->v[DEVICE_EXTERNAL].ok) {
		dev->external = (enum model_external)(e->v[DEVICE_EXTERNAL].num + 1);
	}
	if (e->v[DEVICE_AT_BOOT].ok) {
		dev->at_boot = (enum model_external)(e->v[DEVICE_AT_BOOT].num + 1);
	}
	read_options(b, e, dev);
	if (timeout->ok) {
		dev->timeout_ms = timeout->num / 1000000;
		if (timeout->num % 1000000 != 0) {
			conf_error(b->r, timeout->node->at, WEFT_EINVAL,
				   "%s: timeout: %.40s is not a whole number "
				   "of milliseconds",
				   e->object, timeout->node->text);
		}
	}
}

/* Two handles of one device would each undo what the other does. */
static void check_address(struct model_build *b, const struct device_entry *e, int i,
			  const struct model_device *dev, int index)
{
	int other = dev->address[0] ? build_find(&b->addresses, dev->address) : -1;

	if (other >= 0) {
		conf_error(b->r, e->addresses->v[i].at, WEFT_EINVAL,
			   "%s: address: %.80s is that of %s", dev->name, dev->address,
			   b->devices.v[other].name);
	} else if (dev->address[0]) {
		build_map(&b->addresses, dev->address, index);
	}
}

/* Adds the i-th device of an entry, made after a common pattern. */
static void add_device(struct model_build *b, struct device_entry *e, int i,
		       const struct model_device *pattern, bool unsure)
{
	const struct name *name = &e->names->v[i];
	struct model_device dev = *pattern;
	int index = (int)b->devices.n;

	if (build_is_taken(b, name->text)) {
		tally_add(&e->taken, name);
		return;
	}
	if (index >= MODEL_MAX_DEVICES) {
		conf_error(b->r, name->at, WEFT_ELIMIT, "%s: more than %d devices", e->object,
			   MODEL_MAX_DEVICES);
		b->r->stop = WEFT_ELIMIT;
		return;
	}
	dev.name = keep_text(b, name->text);
	dev.domain = dev.domain ? dev.domain : dev.name;
	dev.address = keep_text(b, e->addresses ? e->addresses->v[i].text : "");
	dev.place = name->at;
	check_address(b, e, i, &dev, index);
	vec_push(&b->devices, dev);
	vec_push(&b->device_unsure, unsure);
	build_map(&b->f->devices, dev.name, index);
}

/* Reads the mapping and its names. False when there is nothing to add. */
static bool open_entry(struct model_build *b, struct device_entry *e, const struct conf_node *node,
		       int nth)
{
	const struct conf_value *name = &e->v[DEVICE_NAME];

	e->node = node;
	conf_object_name(e->section, node, nth, e->object);
	conf_read_section(b->r, e->section, e->object, node, e->v);
	if (name->ok) {
		e->names = build_plain_names(b, e->object, "name", name->node,
					     &b->r->work, MODEL_MAX_DEVICES);
	}
	if (node->kind == CONF_NODE_MAP) {
		read_addresses(b, e);
	}
	if (!e->names) {
		b->devices_unsure = true;
	}
	return e->names != NULL;
}

/* ---- switches and panels ---- */

/* Ports from `size`, or from `ports` with any-to-any. */
static bool read_size(struct model_build *b, const struct device_entry *e, struct model_device *dev)
{
	const struct conf_value *size = &e->v[SPACE_SIZE];
	const struct conf_value *ports = &e->v[SPACE_PORTS];
	const struct conf_value *any = &e->v[SPACE_ANY_TO_ANY];
	const struct conf_value *used;
	struct err *err;

	if ((size->node && !size->ok) || (ports->node && !ports->ok) || !any->ok) {
		return false;
	}
	dev->any_to_any = any->num;
	used = dev->any_to_any ? ports : size;
	if (used->node && !(size->node && ports->node)) {
		dev->n_in = (int)used->num;
		dev->n_out = dev->any_to_any ? dev->n_in : (int)used->num2;
		return true;
	}
	if (size->node && ports->node) {
		err = conf_error(b->r, ports->node->at, WEFT_EINVAL,
				 "%s: both size and ports are given", e->object);
	} else if (dev->any_to_any && size->node) {
		err = conf_error(b->r, size->node->at, WEFT_EINVAL,
				 "%s: size with any-to-any: it has no sides", e->object);
	} else if (ports->node) {
		err = conf_error(b->r, ports->node->at, WEFT_EINVAL,
				 "%s: ports without any-to-any: true", e->object);
	} else {
		err = conf_error(b->r, e->node->at, WEFT_EINVAL,
				 "%s: neither size nor ports is given", e->object);
	}
	err_hint(err, "size: 32x32 for two sides, or ports: 64 with "
		 "any-to-any: true");
	return false;
}

/* Memory for the devices' port maps, all dark; within the limit. */
static bool add_port_maps(struct model_build *b, const struct device_entry *e,
			  struct model_device *dev)
{
	int n = dev->n_in + dev->n_out;

	b->device_ports += n;
	if (b->device_ports > MODEL_MAX_DEVICE_PORTS) {
		conf_error(b->r, e->node->at, WEFT_ELIMIT, "%s: more than %d device ports in all",
			   e->object, MODEL_MAX_DEVICE_PORTS);
		b->r->stop = WEFT_ELIMIT;
		return false;
	}
	dev->in_port = conf_arena_alloc(b->r->keep, (size_t)n, sizeof(int));
	for (int i = 0; i < n; i++) {
		dev->in_port[i] = -1;
	}
	dev->out_port = dev->in_port + dev->n_in;
	return true;
}

/* An entry of switches or panels. Each device has a port map of its own;
 * everything else is copied. */
static void add_space(struct model_build *b, struct device_entry *e, enum model_device_kind kind,
		      const struct conf_node *node, int nth)
{
	struct model_device dev = { 0 };
	bool sized = false;

	if (!open_entry(b, e, node, nth)) {
		return;
	}
	read_common(b, e, kind, &dev);
	dev.loss_mdb = (int32_t)e->v[SPACE_LOSS].num;
	dev.switch_ns = e->v[SPACE_TIME].num;
	sized = read_size(b, e, &dev);
	for (int i = 0; i < e->names->n && !b->r->stop; i++) {
		if (add_port_maps(b, e, &dev)) {
			add_device(b, e, i, &dev, !sized);
		}
	}
	build_report_taken(b, e->object, &e->taken);
}

static void add_switch(struct model_build *b, const struct conf_node *node, int nth)
{
	struct device_entry e = { .section = &section_switch };

	add_space(b, &e, MODEL_SWITCH, node, nth);
}

static void add_panel(struct model_build *b, const struct conf_node *node, int nth)
{
	struct device_entry e = { .section = &section_panel };

	add_space(b, &e, MODEL_PANEL, node, nth);
}

/* ---- rings ---- */

/* The hosts of a ring in its order. Unknown ones are reported and left out; a
 * list that cannot be read sets devices_unsure. */
static void read_members(struct model_build *b, const struct device_entry *e,
			 struct model_device *dev)
{
	const struct conf_value *v = &e->v[RING_NODES];
	struct names *names;
	bool clean;

	names = v->ok ? build_names(b, e->object, "nodes", v->node, &b->r->work, MODEL_MAX_HOSTS)
		      : NULL;
	if (!names) {
		b->devices_unsure = true;
		return;
	}
	dev->members = conf_arena_alloc(b->r->keep, (size_t)names->n, sizeof(int));
	dev->n_members = build_find_hosts(b, e->object, names, dev->members, &clean);
	dev->nodes = conf_arena_alloc(b->r->keep, (size_t)names->n, sizeof(*dev->nodes));
	for (int i = 0; i < dev->n_members; i++) {
		dev->nodes[i] = b->hosts.v[dev->members[i]].name;
	}
	if (clean && dev->n_members < 2) {
		conf_error(b->r, v->node->at, WEFT_EINVAL, "%s: nodes: a ring needs at least two",
			   e->object);
	}
}

/* The loss budget, a section within that of the ring. Without it reach has no
 * limit. */
static void read_loss(struct model_build *b, const struct device_entry *e, struct model_device *dev)
{
	struct conf_value v[CONF_MAX_KEYS];
	char object[CONF_MAX_OBJECT + 8];

	if (!e->v[RING_LOSS].ok) {
		return;
	}
	snprintf(object, sizeof(object), "%s: loss", e->object);
	conf_read_section(b->r, &section_loss, object, e->v[RING_LOSS].node, v);
	dev->has_loss = true;
	dev->loss = (struct rwa_loss){
		.launch_mdbm = (int32_t)v[LOSS_LAUNCH].num,
		.sensitivity_mdbm = (int32_t)v[LOSS_SENSITIVITY].num,
		.margin_mdb = (int32_t)v[LOSS_MARGIN].num,
		.add_mdb = (int32_t)v[LOSS_ADD].num,
		.drop_mdb = (int32_t)v[LOSS_DROP].num,
		.pass_mdb = (int32_t)v[LOSS_PASS].num,
		.rings_per_node = (int32_t)v[LOSS_RINGS].num,
		.span_mdb = (int32_t)v[LOSS_SPAN].num,
	};
}

/* An entry of rings is one device, unlike those of switches and panels. */
static void add_ring(struct model_build *b, const struct conf_node *node, int nth)
{
	struct device_entry e = { .section = &section_ring };
	struct model_device dev = { 0 };

	if (!open_entry(b, &e, node, nth)) {
		return;
	}
	read_common(b, &e, MODEL_RING, &dev);
	read_members(b, &e, &dev);
	read_loss(b, &e, &dev);
	dev.ring = (struct rwa_ring){
		.n = dev.n_members,
		.fibres = (int)e.v[RING_FIBRES].num,
		.channels = (int)e.v[RING_CHANNELS].num,
	};
	dev.channel_bps = e.v[RING_RATE].num;
	dev.retune_ns = e.v[RING_RETUNE].num;
	dev.conversion_ns = e.v[RING_CONVERSION].num;
	dev.span_delay_ns = e.v[RING_SPAN_DELAY].num;
	dev.overlap = (enum model_overlap)e.v[RING_OVERLAP].num;
	dev.program_memory = (uint64_t)e.v[RING_MEMORY].num;
	if (!b->r->stop) {
		add_device(b, &e, 0, &dev, false);
	}
	build_report_taken(b, e.object, &e.taken);
}

void build_devices(struct model_build *b, const struct conf_value *root)
{
	static void (*const add[])(struct model_build *, const struct conf_node *,
				   int) = { add_switch, add_panel, add_ring };
	static const int keys[] = { FABRIC_SWITCHES, FABRIC_PANELS,
				    FABRIC_RINGS };

	for (int i = 0; i < 3; i++) {
		const struct conf_value *list = &root[keys[i]];

		if (list->node && !list->ok) {
			b->devices_unsure = true;
		}
		build_each(b, list, add[i]);
	}
}
