/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files of sonic-mgmt: devices, the cables to optical switches (l1_links), the links that are
 * wanted as though these were glass (links), and testbeds: which devices are used together.
 *
 * A cross-connect is wanted where both devices of a link are of the testbed, and both ports are
 * joined to one switch of it. A tester's port may be in links of many testbeds, in one each.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "controller/import/private.h"
#include "lib/base/alloc.h"
#include "lib/conf/conf.h"

#define MBPS 1000000

/* A row of links of which both ports are joined to switches. */
struct lab_link {
	int a, b;		/* ports of the lab */
	int line;
};

struct sonic_reader {
	const struct import_sonic *in;
	struct lab lab;
	struct err_list *errs, *notes;
	VEC(struct lab_link) links;
	int *used;		/* [port] 1 + the link of the testbed that has it, 0: none */
};

/* ---- tables -------------------------------------------------------------- */

/* What to do with a row: its values as the names of columns have them. */
typedef void (*row_fn)(struct sonic_reader *r, const struct csv *c, int line, const char **v);

/* Columns whose name begins with '?' need not be there. */
static void each_row(struct sonic_reader *r, const struct import_text *in,
		     const char *const *names, int n, row_fn fn)
{
	const char *values[8];
	struct csv c;
	int columns[8], missing = 0;

	if (csv_read(&c, in, r->errs)) {
		csv_fini(&c);
		return;
	}
	for (int k = 0; k < n; k++) {
		const bool optional = names[k][0] == '?';

		columns[k] = csv_column(&c, names[k] + optional);
		if (columns[k] < 0 && !optional) {
			import_say(r->errs, in->name, 1, "there is no column %s", names[k]);
			missing++;
		}
	}
	for (size_t i = 1; i < c.rows.n && !missing; i++) {
		if (csv_values(&c, i, columns, n, values, r->errs)) {
			fn(r, &c, c.rows.v[i].line, values);
		}
	}
	csv_fini(&c);
}

/* Ports of a side by names such as Coherent-DLXA64B64-OCS, which has 64 of each; 0: it does not
 * say. */
static int sides_of(const char *sku)
{
	for (const char *p = strchr(sku, 'A'); p; p = strchr(p + 1, 'A')) {
		char *end;
		long a = strtol(p + 1, &end, 10), b;

		if (end > p + 1 && *end == 'B') {
			b = strtol(end + 1, NULL, 10);
			return a == b && a > 0 && a <= 4096 ? (int)a : 0;
		}
	}
	return 0;
}

enum { HOSTNAME, MANAGEMENT_IP, HW_SKU, TYPE };
static const char *const device_columns[] = { "Hostname", "ManagementIp", "HwSku", "Type" };

static void take_device(struct sonic_reader *r, const struct csv *c, int line, const char **v)
{
	const bool is_switch = strcasecmp(v[TYPE], "FanoutL1Sonic") == 0;
	int other = lab_find_device(&r->lab, v[HOSTNAME]), index;
	size_t len = strspn(v[MANAGEMENT_IP], "0123456789abcdefABCDEF.:");
	struct buf address = { 0 };
	bool v6;

	if (other >= 0) {
		import_say(r->errs, c->file, line, "%.64s is already on line %d", v[HOSTNAME],
			   r->lab.devices.v[other].line);
		return;
	}
	index = lab_add_device(&r->lab, c->file, line, v[HOSTNAME], is_switch);
	if (index < 0 || !is_switch) {
		return;
	}
	r->lab.devices.v[index].sides = sides_of(v[HW_SKU]);
	if (len > 0) {
		v6 = memchr(v[MANAGEMENT_IP], ':', len) != NULL;
		buf_printf(&address, v6 ? "[%.*s]:22" : "%.*s:22", (int)len, v[MANAGEMENT_IP]);
		r->lab.devices.v[index].address = buf_steal(&address);
	}
}

enum { START, START_PORT, END, END_PORT, BAND_WIDTH };
static const char *const link_columns[] = { "StartDevice", "StartPort", "EndDevice", "EndPort",
					    "?BandWidth" };

/* The devices of a row; false, and a mistake: one is none. */
static bool find_devices(struct sonic_reader *r, const struct csv *c, int line, const char **v,
			 int *start, int *end)
{
	*start = lab_find_device(&r->lab, v[START]);
	*end = lab_find_device(&r->lab, v[END]);
	if (*start < 0 || *end < 0) {
		import_say(r->errs, c->file, line, "there is no device '%.64s' in %s",
			   v[*start < 0 ? START : END], r->in->devices.name);
	}
	return *start >= 0 && *end >= 0;
}

/* A cable to an optical switch, which is the end. */
static void take_cable(struct sonic_reader *r, const struct csv *c, int line, const char **v)
{
	int start, end;

	if (!find_devices(r, c, line, v, &start, &end)) {
		return;
	}
	if (!r->lab.devices.v[end].is_switch) {
		import_say(r->errs, c->file, line, "EndDevice %.64s is of another type than "
			   "FanoutL1Sonic", v[END]);
		return;
	}
	lab_add_cable(&r->lab, c->file, line, start, v[START_PORT], end, v[END_PORT]);
}

static void take_rate(struct sonic_reader *r, const struct csv *c, int line, const char *text,
		      int port)
{
	char *end;
	long mbps = strtol(text, &end, 10);

	if (text[0] && (*end || mbps <= 0 || mbps > INT32_MAX)) {
		import_say(r->errs, c->file, line, "BandWidth: '%.40s' are no Mbit/s", text);
	} else if (text[0]) {
		r->lab.ports.v[port].rate_bps = mbps * MBPS;
	}
}

/* A link, of which both ports are joined to one switch, or to two that are joined. */
static void check_link(struct sonic_reader *r, const struct csv *c, int line, int a, int b)
{
	const struct lab_port *p = &r->lab.ports.v[a], *q = &r->lab.ports.v[b];
	const struct lab_device *d = r->lab.devices.v;

	if (p->lanes != q->lanes) {
		import_say(r->errs, c->file, line, "%.64s %.64s has %d fibre%s, %.64s %.64s %d",
			   d[p->device].text, p->text, p->lanes, p->lanes == 1 ? "" : "s",
			   d[q->device].text, q->text, q->lanes);
	} else if (p->at != q->at && !lab_has_trunk(&r->lab, p->at, q->at)) {
		import_say(r->errs, c->file, line, "%.64s %.64s is on %.64s and %.64s %.64s on "
			   "%.64s, and no fibre joins these", d[p->device].text, p->text,
			   d[p->at].text, d[q->device].text, q->text, d[q->at].text);
	} else if (a == b) {
		import_say(r->errs, c->file, line, "%.64s %.64s is linked to itself",
			   d[p->device].text, p->text);
	} else {
		vec_push(&r->links, (struct lab_link){ a, b, line });
	}
}

static void take_link(struct sonic_reader *r, const struct csv *c, int line, const char **v)
{
	int start, end, a, b;

	if (!find_devices(r, c, line, v, &start, &end)) {
		return;
	}
	a = lab_find_port(&r->lab, v[START], v[START_PORT]);
	b = lab_find_port(&r->lab, v[END], v[END_PORT]);
	if (a >= 0 && b >= 0) {
		take_rate(r, c, line, v[BAND_WIDTH], a);
		take_rate(r, c, line, v[BAND_WIDTH], b);
		check_link(r, c, line, a, b);
	} else if (a >= 0 || b >= 0) {
		import_say(r->notes, c->file, line, "passed over: %.64s %.64s is on no optical "
			   "switch", v[a < 0 ? START : END], v[a < 0 ? START_PORT : END_PORT]);
	}
}

/* ---- testbeds ------------------------------------------------------------ */

/* The devices of a list, or of one name, become the testbed's. */
static void mark_devices(struct sonic_reader *r, const struct conf_node *names, bool *is_of)
{
	const struct conf_node *n = names && names->kind == CONF_NODE_LIST ? names->first : names;

	for (; n && n->text[0]; n = n == names ? NULL : n->next) {
		int d = lab_find_device(&r->lab, n->text);

		if (d < 0) {
			import_say(r->errs, r->in->testbeds.name, n->at.line, "there is no device "
				   "'%.64s' in %s", n->text, r->in->devices.name);
		} else {
			is_of[d] = true;
		}
	}
}

/* A port of the link is the testbed's: false, and a mistake, when it is already. */
static bool use_port(struct sonic_reader *r, int port, size_t link, const char *name)
{
	const struct lab_port *p = &r->lab.ports.v[port];
	int other = r->used[port];

	r->used[port] = (int)link + 1;
	if (other) {
		import_say(r->errs, r->in->links.name, r->links.v[link].line, "testbed %.64s: "
			   "%.64s %.64s is in the link of line %d already", name,
			   r->lab.devices.v[p->device].text, p->text, r->links.v[other - 1].line);
	}
	return !other;
}

/* The circuits of the links between its devices; how many. */
static int put_links(struct sonic_reader *r, const bool *is_of, const char *name, struct buf *out)
{
	const struct lab_device *d = r->lab.devices.v;
	int n = 0;

	memset(r->used, 0, r->lab.ports.n * sizeof(*r->used));
	for (size_t i = 0; i < r->links.n; i++) {
		const struct lab_link *k = &r->links.v[i];
		const struct lab_port *p = &r->lab.ports.v[k->a], *q = &r->lab.ports.v[k->b];

		if (!is_of[p->device] || !is_of[q->device]) {
			continue;
		}
		if (!is_of[p->at] || !is_of[q->at]) {
			import_say(r->errs, r->in->links.name, k->line, "testbed %.64s: the link "
				   "is over %.64s, which is none of its l1s", name,
				   d[is_of[p->at] ? q->at : p->at].text);
		} else if (use_port(r, k->a, i, name) && use_port(r, k->b, i, name)) {
			lab_put_circuit(&r->lab, k->a, k->b, out);
			n++;
		}
	}
	return n;
}

/* One with optical switches, of the group. True: it is one that was asked for. */
static bool take_testbed(struct sonic_reader *r, const struct conf_node *t, struct buf *out)
{
	static const char *const keys[] = { "dut", "duts", "tgs", "l1s" };
	const struct conf_node *name = import_value(t, "name");
	const struct conf_node *group = import_value(t, "inv_name");
	const struct conf_node *l1s = import_value(t, "l1s");
	struct buf circuits = { 0 };
	bool *is_of;

	name = name ? name : import_value(t, "conf-name");
	if (!name || (r->in->only && strcmp(name->text, r->in->only) != 0) ||
	    (group && strcmp(group->text, r->in->group) != 0) || !l1s || !l1s->first) {
		return false;
	}
	if (!conf_is_name(name->text)) {
		import_say(r->errs, r->in->testbeds.name, name->at.line, "'%.80s' is no name of a "
			   "group of circuits", name->text);
		return true;
	}
	is_of = x_new(r->lab.devices.n + 1, sizeof(*is_of));
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		mark_devices(r, import_value(t, keys[i]), is_of);
	}
	if (put_links(r, is_of, name->text, &circuits) > 0) {
		buf_printf(out, "group %s\n%s", name->text, buf_cstr(&circuits));
	} else {
		import_say(r->notes, r->in->testbeds.name, name->at.line, "testbed %s has no link "
			   "over an optical switch", name->text);
	}
	buf_fini(&circuits);
	free(is_of);
	return true;
}

static void take_testbeds(struct sonic_reader *r, struct buf *out)
{
	const struct import_text *in = &r->in->testbeds;
	struct conf_arena keep = { 0 };
	struct conf_reader y;
	const struct conf_node *root;
	int n = 0;

	r->used = x_new(r->lab.ports.n + 1, sizeof(*r->used));
	conf_reader_init(&y, in->name, "testbed", &keep, r->errs);
	root = conf_read_yaml(&y, in->text, in->len);
	for (const struct conf_node *t = root && root->kind == CONF_NODE_LIST ? root->first : NULL;
	     t; t = t->next) {
		n += take_testbed(r, t, out);
	}
	if (n == 0 && r->errs->n == 0) {
		import_say(r->errs, in->name, 0, "there is no testbed %.64s%sof group %.64s that "
			   "has l1s", r->in->only ? r->in->only : "", r->in->only ? " " : "",
			   r->in->group);
	}
	conf_reader_fini(&y);
	conf_arena_fini(&keep);
	free(r->used);
}

int import_sonic_mgmt(const struct import_sonic *in, const struct import_defaults *d,
		      struct buf *out, struct import_report *report)
{
	struct sonic_reader r = { .in = in, .lab = { .report = report }, .errs = &report->errs,
			    .notes = &report->notes };

	each_row(&r, &in->devices, device_columns, 4, take_device);
	each_row(&r, &in->l1_links, link_columns, 4, take_cable);
	/* Of ports whose fibres are not known nothing can be said. */
	if (report->errs.n == 0) {
		each_row(&r, &in->links, link_columns, 5, take_link);
	}
	if (in->testbeds.text) {
		take_testbeds(&r, out);
	} else {
		lab_write(&r.lab, d, in->devices.name, out);
	}
	vec_fini(&r.links);
	lab_fini(&r.lab);
	err_list_sort(&report->errs);
	return report->errs.n > 0 ? WEFT_EINVAL : 0;
}
