/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NetBox's cables: the list as CSV ("Device A", "Termination A", ...), rows of its import form
 * (side_a_device, side_a_type, side_a_name, ...), or JSON of /api/dcim/cables/. Of the form and of
 * JSON the kind of a port is known; of the list it is not, and the switches must be named.
 *
 * A port of a switch has the number that its name ends with. One port of a host at several of a
 * switch has as many lanes; the list has them in no order, so that they are taken by number.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "controller/import/private.h"
#include "lib/base/alloc.h"
#include "lib/conf/conf.h"

struct cable_side {
	char *device, *ports;	/* owned; ports apart by ',' */
	bool passive;		/* front or rear ports, as patch panels have */
};

struct cable {
	struct cable_side side[2];
	int line;
};

struct netbox_reader {
	const struct import_text *in;
	const char *switches;
	struct lab lab;
	struct err_list *errs, *notes;
	VEC(struct cable) cables;
};

/* ---- cables -------------------------------------------------------------- */

/* Takes over what the sides own. status: "" where it is not told. */
static void add_cable(struct netbox_reader *r, int line, const char *status, struct cable c)
{
	const bool there = !status[0] || strcasecmp(status, "connected") == 0;
	const bool whole = c.side[0].device && c.side[0].device[0] && c.side[0].ports[0] &&
			   c.side[1].device && c.side[1].device[0] && c.side[1].ports[0];

	if (there && whole) {
		c.line = line;
		vec_push(&r->cables, c);
		return;
	}
	if (there) {
		import_say(r->notes, r->in->name, line, "passed over: the cable has no device and "
			   "port at one of its ends");
	} else {
		import_say(r->notes, r->in->name, line, "passed over: the cable is %.40s", status);
	}
	for (int i = 0; i < 2; i++) {
		free(c.side[i].device);
		free(c.side[i].ports);
	}
}

static bool is_passive(const char *type)
{
	return strstr(type, "frontport") || strstr(type, "rearport");
}

/* One of two sets of columns: the list's, or the form's. */
static void read_csv(struct netbox_reader *r)
{
	static const char *const names[2][7] = {
		{ "Device A", "Termination A", "", "Device B", "Termination B", "", "Status" },
		{ "side_a_device", "side_a_name", "side_a_type", "side_b_device", "side_b_name",
		  "side_b_type", "status" },
	};
	const char *v[7];
	struct csv c;
	int columns[7], form;

	if (csv_read(&c, r->in, r->errs)) {
		csv_fini(&c);
		return;
	}
	form = csv_column(&c, names[1][0]) >= 0;
	for (int k = 0; k < 7; k++) {
		columns[k] = names[form][k][0] ? csv_column(&c, names[form][k]) : -1;
		if (columns[k] < 0 && k != 2 && k != 5 && k != 6) {
			import_say(r->errs, r->in->name, 1, "there is no column \"%s\"",
				   names[form][k]);
		}
	}
	for (size_t i = 1; i < c.rows.n && r->errs->n == 0; i++) {
		if (csv_values(&c, i, columns, 7, v, r->errs)) {
			add_cable(r, c.rows.v[i].line, v[6], (struct cable){ .side = {
				{ x_dup(v[0]), x_dup(v[1]), is_passive(v[2]) },
				{ x_dup(v[3]), x_dup(v[4]), is_passive(v[5]) } } });
		}
	}
	csv_fini(&c);
}

/* The value at a path of keys; NULL: there is none. */
static const struct conf_node *at_path(const struct conf_node *n, const char *const *path)
{
	for (; n && *path; path++) {
		n = import_value(n, *path);
	}
	return n;
}

#define AT(node, ...) at_path(node, (const char *const[]){ __VA_ARGS__, NULL })

static const char *text_of(const struct conf_node *n)
{
	return n ? n->text : "";
}

/* All ends of a side are of one device, else it has none. */
static struct cable_side side_of(const struct conf_node *list)
{
	struct cable_side s = { .device = x_dup("") };
	struct buf ports = { 0 };

	for (const struct conf_node *t = list && list->kind == CONF_NODE_LIST ? list->first : NULL;
	     t; t = t->next) {
		const char *device = text_of(AT(t, "object", "device", "name"));

		if (t != list->first && strcmp(device, s.device) != 0) {
			device = "";
		}
		free(s.device);
		s.device = x_dup(device);
		s.passive = is_passive(text_of(AT(t, "object_type")));
		buf_printf(&ports, "%s%s", ports.len ? "," : "", text_of(AT(t, "object", "name")));
	}
	s.ports = buf_steal(&ports);
	return s;
}

static void read_json(struct netbox_reader *r)
{
	struct conf_arena keep = { 0 };
	struct conf_reader y;
	const struct conf_node *list;

	conf_reader_init(&y, r->in->name, "cables", &keep, r->errs);
	list = conf_read_yaml(&y, r->in->text, r->in->len);
	if (list && list->kind == CONF_NODE_MAP) {
		const char *next = text_of(AT(list, "next"));

		if (next[0] && strcmp(next, "null") != 0) {
			import_say(r->errs, r->in->name, 1, "it is one page of several: ask for "
				   "all of them with ?limit=0");
		}
		list = AT(list, "results");
	}
	if (list && list->kind == CONF_NODE_LIST) {
		for (const struct conf_node *n = list->first; n; n = n->next) {
			const struct conf_node *status = AT(n, "status", "value");

			add_cable(r, n->at.line, text_of(status ? status : AT(n, "status")),
				  (struct cable){ .side = { side_of(AT(n, "a_terminations")),
							    side_of(AT(n, "b_terminations")) } });
		}
	} else if (r->errs->n == 0) {
		import_say(r->errs, r->in->name, 1, "there is no list of cables");
	}
	conf_reader_fini(&y);
	conf_arena_fini(&keep);
}

/* ---- the lab ------------------------------------------------------------- */

static bool is_listed(const char *list, const char *name)
{
	const size_t len = strlen(name);

	for (const char *p = list; *p; p += strcspn(p, ","), p += *p == ',') {
		if (strcspn(p, ",") == len && strncmp(p, name, len) == 0) {
			return true;
		}
	}
	return false;
}

static int by_number(const void *a, const void *b)
{
	const int x = *(const int *)a, y = *(const int *)b;

	return x < y ? -1 : x > y;
}

/* The numbers of a switch's ports, apart by ',', in order; "": one has none. Owned. */
static char *numbers_of(const char *ports)
{
	struct buf out = { 0 };
	VEC(int) v = { 0 };

	while (*ports) {
		size_t len = strcspn(ports, ","), digits = 0;

		while (digits < len && isdigit((unsigned char)ports[len - digits - 1])) {
			digits++;
		}
		vec_push(&v, digits > 0 && digits < 9 ? atoi(ports + len - digits) : -1);
		ports += len + (ports[len] == ',');
	}
	qsort(v.v, v.n, sizeof(*v.v), by_number);
	for (size_t i = 0; i < v.n && v.v[0] >= 0; i++) {
		buf_printf(&out, i ? ",%d" : "%d", v.v[i]);
	}
	vec_fini(&v);
	return buf_steal(&out);
}

/* The device of a side, a new one where it is not known; -1, and a mistake. */
static int device_of(struct netbox_reader *r, const struct cable *c, int side)
{
	const struct cable_side *s = &c->side[side];
	int d = lab_find_device(&r->lab, s->device);

	return d >= 0 ? d : lab_add_device(&r->lab, r->in->name, c->line, s->device,
					   r->switches ? is_listed(r->switches, s->device)
						       : s->passive);
}

static void join(struct netbox_reader *r, const struct cable *c)
{
	const int d[2] = { device_of(r, c, 0), device_of(r, c, 1) };
	const struct lab_device *v = r->lab.devices.v;
	int host;
	char *numbers, *own;

	if (d[0] < 0 || d[1] < 0) {
		return;
	}
	host = v[d[0]].is_switch ? 1 : 0;
	if (!v[d[!host]].is_switch) {
		import_say(r->notes, r->in->name, c->line, "passed over: neither %.64s nor %.64s "
			   "is an optical switch", c->side[0].device, c->side[1].device);
		return;
	}
	numbers = numbers_of(c->side[!host].ports);
	own = v[d[host]].is_switch ? numbers_of(c->side[host].ports) : x_dup(c->side[host].ports);
	if (!numbers[0] || !own[0]) {
		import_say(r->errs, r->in->name, c->line, "the name of a port of %.64s ends with "
			   "no number", c->side[numbers[0] ? host : !host].device);
	} else if (!v[d[host]].is_switch && strchr(own, ',')) {
		import_say(r->errs, r->in->name, c->line, "several ports of %.64s at one cable are "
			   "not supported", c->side[host].device);
	} else {
		lab_add_cable(&r->lab, r->in->name, c->line, d[host], own, d[!host], numbers);
	}
	free(numbers);
	free(own);
}

int import_netbox(const struct import_text *in, const char *switches,
		  const struct import_defaults *d, struct buf *out, struct import_report *report)
{
	struct netbox_reader r = { .in = in, .switches = switches, .lab = { .report = report },
			    .errs = &report->errs, .notes = &report->notes };
	const char *first = in->text + strspn(in->text, " \t\r\n");

	if (*first == '[' || *first == '{') {
		read_json(&r);
	} else {
		read_csv(&r);
	}
	for (size_t i = 0; i < r.cables.n; i++) {
		join(&r, &r.cables.v[i]);
		for (int k = 0; k < 2; k++) {
			free(r.cables.v[i].side[k].device);
			free(r.cables.v[i].side[k].ports);
		}
	}
	vec_fini(&r.cables);
	if (report->errs.n == 0 && r.lab.ports.n == 0 && !switches) {
		import_say(r.errs, in->name, 0, "no device has front or rear ports: name the "
			   "switches by --switches");
	}
	lab_write(&r.lab, d, in->name, out);
	lab_fini(&r.lab);
	err_list_sort(&report->errs);
	return report->errs.n > 0 ? WEFT_EINVAL : 0;
}
