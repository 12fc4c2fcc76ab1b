/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lab: hosts, optical switches, and the fibres from ports to ports. Texts of others become names
 * of weft, and stay as labels.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/import/private.h"
#include "controller/model/model.h"
#include "lib/base/alloc.h"
#include "lib/conf/conf.h"
#include "lib/output/writer.h"

#define SIDES_STEP 64	/* switches of which only ports are known have a multiple of so many */
#define KEY_MAX (2 * (MODEL_MAX_LABEL + 1))

void lab_fini(struct lab *l)
{
	for (size_t i = 0; i < l->devices.n; i++) {
		free(l->devices.v[i].text);
		free(l->devices.v[i].name);
		free(l->devices.v[i].address);
	}
	for (size_t i = 0; i < l->ports.n; i++) {
		free(l->ports.v[i].text);
		free(l->ports.v[i].name);
	}
	vec_fini(&l->devices);
	vec_fini(&l->ports);
	vec_fini(&l->numbers);
	strmap_fini(&l->by_text);
	strmap_fini(&l->by_name);
}

/* ---- names --------------------------------------------------------------- */

static const char *key_of(const char *device, const char *part, char key[KEY_MAX])
{
	snprintf(key, KEY_MAX, "%.*s\n%.*s", MODEL_MAX_LABEL, device, MODEL_MAX_LABEL, part);
	return key;
}

static int find(const struct strmap *m, const char *key)
{
	return (int)(intptr_t)strmap_get(m, key) - 1;
}

static void enter(struct strmap *m, const char *key, size_t index)
{
	strmap_set(m, key, (void *)(intptr_t)(index + 1));
}

int lab_find_device(const struct lab *l, const char *text)
{
	return find(&l->by_text, text);
}

int lab_find_port(const struct lab *l, const char *device, const char *port)
{
	char key[KEY_MAX];

	return find(&l->by_text, key_of(device, port, key));
}

/* What weft calls it; NULL, and a mistake: nothing comes near, or it is too long a label. */
static char *name_of(struct lab *l, const char *file, int line, const char *text)
{
	char *name = x_dup(text);

	for (char *p = name; *p; p++) {
		*p = isalnum((unsigned char)*p) || *p == '-' || *p == '_' ? *p : '_';
	}
	if (conf_is_name(name)) {
		return name;
	}
	if (text[0]) {
		import_say(&l->report->errs, file, line, "'%.80s' begins with no letter or digit, "
			   "or has more than %d bytes", text, CONF_MAX_NAME);
	} else {
		import_say(&l->report->errs, file, line, "a name is missing");
	}
	free(name);
	return NULL;
}

int lab_add_device(struct lab *l, const char *file, int line, const char *text, bool is_switch)
{
	char *name = name_of(l, file, line, text);
	int other = name ? find(&l->by_name, name) : -1;

	if (!name || other >= 0) {
		if (name) {
			import_say(&l->report->errs, file, line, "'%.80s' would have the name of "
				   "'%.80s' on line %d", text, l->devices.v[other].text,
				   l->devices.v[other].line);
		}
		free(name);
		return -1;
	}
	enter(&l->by_text, text, l->devices.n);
	enter(&l->by_name, name, l->devices.n);
	vec_push(&l->devices, (struct lab_device){ .text = x_dup(text), .name = name, .line = line,
						   .is_switch = is_switch, .first = -1,
						   .last = -1 });
	return (int)l->devices.n - 1;
}

/* ---- cables -------------------------------------------------------------- */

/* The number of a switch's port becomes a lane of the last port, unless it is another's. */
static bool take_number(struct lab *l, const char *file, int line, int at, const char *text)
{
	struct lab_device *d = &l->devices.v[at];
	char key[KEY_MAX], *end;
	long number = strtol(text, &end, 10);
	int other;

	if (*end || !isdigit((unsigned char)*text) || number < 1 || number > MODEL_MAX_SIDE ||
	    (d->sides && number > d->sides)) {
		import_say(&l->report->errs, file, line, "'%.40s' is no port of %.64s, 1 to %d",
			   text, d->text, d->sides ? d->sides : MODEL_MAX_SIDE);
		return false;
	}
	snprintf(key, sizeof(key), "%.*s\n#%ld", MODEL_MAX_LABEL, d->text, number);
	other = find(&l->by_text, key);
	if (other >= 0) {
		import_say(&l->report->errs, file, line, "port %ld of %.64s is already joined to "
			   "%.64s %.64s on line %d", number, d->text,
			   l->devices.v[l->ports.v[other].device].text, l->ports.v[other].text,
			   l->ports.v[other].line);
		return false;
	}
	enter(&l->by_text, key, l->ports.n - 1);
	vec_push(&l->numbers, (int)number);
	d->greatest = number > d->greatest ? (int)number : d->greatest;
	return true;
}

/* As many as the text has, apart by '|' or ','; 0: one is wrong. */
static int take_numbers(struct lab *l, const char *file, int line, int at, const char *numbers)
{
	char *text = x_dup(numbers), *rest = text, *number;
	int n = 0;

	while ((number = strsep(&rest, "|,"))) {
		number += strspn(number, " ");
		number[strcspn(number, " ")] = '\0';
		if (!take_number(l, file, line, at, number)) {
			n = 0;
			break;
		}
		n++;
	}
	free(text);
	if (n > MODEL_MAX_LANES) {
		import_say(&l->report->errs, file, line, "%d fibres are more than %d", n,
			   MODEL_MAX_LANES);
	}
	return n;
}

/* Puts a port behind the others of its host; false, and a mistake: it is there, or its name is. */
static bool enter_port(struct lab *l, const char *file, struct lab_port *p)
{
	struct lab_device *d = &l->devices.v[p->device];
	char key[KEY_MAX];
	int other = lab_find_port(l, d->text, p->text);

	if (other < 0 && !d->is_switch) {
		p->name = name_of(l, file, p->line, p->text);
		other = p->name ? find(&l->by_name, key_of(d->name, p->name, key)) : -1;
	}
	if (other >= 0) {
		import_say(&l->report->errs, file, p->line, p->name ? "%.64s %.64s would have the "
			   "name of the port on line %d" : "%.64s %.64s has a cable on line %d "
			   "already", d->text, p->text, l->ports.v[other].line);
		return false;
	}
	if (!p->name && !d->is_switch) {
		return false;
	}
	enter(&l->by_text, key_of(d->text, p->text, key), l->ports.n);
	if (p->name) {
		enter(&l->by_name, key_of(d->name, p->name, key), l->ports.n);
		*(d->last < 0 ? &d->first : &l->ports.v[d->last].next) = (int)l->ports.n;
		d->last = (int)l->ports.n;
	}
	return true;
}

void lab_add_cable(struct lab *l, const char *file, int line, int device, const char *port,
		   int at, const char *numbers)
{
	struct lab_port p = { .text = x_dup(port), .device = device, .at = at, .line = line,
			      .first_lane = (int)l->numbers.n, .next = -1 };
	int n, index = (int)l->ports.n;

	if (!enter_port(l, file, &p)) {
		free(p.text);
		free(p.name);
		return;
	}
	vec_push(&l->ports, p);
	l->ports.v[index].lanes = take_numbers(l, file, line, at, numbers);
	if (l->devices.v[device].is_switch && l->ports.v[index].lanes) {
		n = take_numbers(l, file, line, device, port);
		if (n && n != l->ports.v[index].lanes) {
			import_say(&l->report->errs, file, line, "%d fibres on one end, %d on the "
				   "other", n, l->ports.v[index].lanes);
		}
	}
}

bool lab_has_trunk(const struct lab *l, int a, int b)
{
	for (size_t i = 0; i < l->ports.n; i++) {
		const struct lab_port *p = &l->ports.v[i];

		if (!p->name && ((p->device == a && p->at == b) ||
				 (p->device == b && p->at == a))) {
			return true;
		}
	}
	return false;
}

/* ---- out ----------------------------------------------------------------- */

/* The lanes of all ports of a host, 0: they differ, and each is a port of its own. */
static int lanes_of(const struct lab *l, const struct lab_device *d)
{
	const int lanes = l->ports.v[d->first].lanes;

	for (int i = d->first; i >= 0; i = l->ports.v[i].next) {
		if (l->ports.v[i].lanes != lanes) {
			return 0;
		}
	}
	return lanes;
}

void lab_put_circuit(const struct lab *l, int a, int b, struct buf *out)
{
	const struct lab_port *p = &l->ports.v[a], *q = &l->ports.v[b];
	const struct lab_device *d = &l->devices.v[p->device], *e = &l->devices.v[q->device];
	const bool whole = p->lanes == 1 || (lanes_of(l, d) && lanes_of(l, e));

	for (int i = 1; i <= (whole ? 1 : p->lanes); i++) {
		char lane[16] = "";

		if (!whole) {
			snprintf(lane, sizeof(lane), "-%d", i);
		}
		buf_printf(out, "%s.%s%s %s.%s%s\n", d->name, p->name, lane, e->name, q->name,
			   lane);
	}
}

/* ports and port-labels, with a lane behind each where they are ports of their own. */
static void put_ports(const struct lab *l, const struct lab_device *d, bool labels, int lanes,
		      struct buf *out)
{
	struct buf text = { 0 };

	for (int i = d->first; i >= 0; i = l->ports.v[i].next) {
		const struct lab_port *p = &l->ports.v[i];

		for (int lane = 1; lane <= (lanes ? 1 : p->lanes); lane++) {
			buf_reset(&text);
			buf_str(&text, labels ? p->text : p->name);
			if (!lanes && p->lanes > 1) {
				buf_printf(&text, "-%d", lane);
			}
			buf_str(out, i == d->first && lane == 1 ? "[" : ", ");
			out_json_quote(out, buf_cstr(&text));
		}
	}
	buf_str(out, "]");
	buf_fini(&text);
}

/* One rate a host: that of its slowest port. */
static int64_t rate_of(const struct lab *l, const struct lab_device *d, int64_t unknown)
{
	int64_t rate = 0;

	for (int i = d->first; i >= 0; i = l->ports.v[i].next) {
		const struct lab_port *p = &l->ports.v[i];

		if (p->rate_bps && rate && p->rate_bps != rate) {
			import_say(&l->report->notes, NULL, 0, "host %.64s: ports of several rates "
				   "have the lowest", d->text);
		}
		rate = p->rate_bps && (!rate || p->rate_bps < rate) ? p->rate_bps : rate;
	}
	return rate ? rate : unknown;
}

static void put_host(const struct lab *l, const struct lab_device *d, int64_t unknown,
		     struct buf *out)
{
	const int lanes = lanes_of(l, d);
	char rate[32];

	unit_str(UNIT_BPS, rate_of(l, d, unknown), rate, sizeof(rate));
	buf_printf(out, "  - name: %s\n    label: ", d->name);
	out_json_quote(out, d->text);
	buf_str(out, "\n    ports: ");
	put_ports(l, d, false, lanes, out);
	buf_str(out, "\n    port-labels: ");
	put_ports(l, d, true, lanes, out);
	buf_printf(out, "\n    lanes: %d\n    rate: %s\n", lanes ? lanes : 1, rate);
}

static void put_switch(struct lab *l, const struct lab_device *d, const char *file,
		       const struct import_defaults *defaults, struct buf *out)
{
	const int sides = d->sides ? d->sides
				   : (d->greatest + SIDES_STEP - 1) / SIDES_STEP * SIDES_STEP;

	buf_printf(out, "  - { name: %s, size: %dx%d, driver: %s%s%s%s }\n", d->name, sides, sides,
		   defaults->driver, d->address ? ", address: \"" : "",
		   d->address ? d->address : "", d->address ? "\"" : "");
	if (strcmp(d->name, d->text) != 0) {
		import_say(&l->report->notes, file, d->line, "switch %.64s is called %s", d->text,
			   d->name);
	}
}

static void put_fibres(const struct lab *l, const struct lab_port *p, struct buf *out)
{
	const struct lab_device *d = &l->devices.v[p->device];
	const bool split = p->lanes > 1;

	for (int i = 0; i < p->lanes; i++) {
		const int *number = &l->numbers.v[p->first_lane + i];

		buf_printf(out, "  - { from: \"%s.", d->name);
		if (p->name) {
			buf_printf(out, split ? "%s-%d" : "%s", p->name, i + 1);
		} else {
			buf_printf(out, "%d", number[p->lanes]);
		}
		buf_printf(out, "\", to: \"%s.%d\" }\n", l->devices.v[p->at].name, *number);
	}
}

static bool has_host(const struct lab *l)
{
	bool has = false;

	for (size_t i = 0; i < l->devices.n; i++) {
		has = has || l->devices.v[i].first >= 0;
	}
	return has;
}

void lab_write(struct lab *l, const struct import_defaults *d, const char *file, struct buf *out)
{
	if (l->report->errs.n > 0 || !has_host(l)) {
		if (l->report->errs.n == 0) {
			import_say(&l->report->errs, file, 0, "there is no cable from a host to an "
				   "optical switch");
		}
		return;
	}
	buf_printf(out, "weft: 1\nfabric: %s\nhosts:\n", d->fabric);
	for (size_t i = 0; i < l->devices.n; i++) {
		if (l->devices.v[i].first >= 0) {
			put_host(l, &l->devices.v[i], d->rate_bps, out);
		}
	}
	buf_str(out, "switches:\n");
	for (size_t i = 0; i < l->devices.n; i++) {
		if (l->devices.v[i].greatest > 0) {
			put_switch(l, &l->devices.v[i], file, d, out);
		}
	}
	buf_str(out, "fibres:\n");
	for (size_t i = 0; i < l->ports.n; i++) {
		put_fibres(l, &l->ports.v[i], out);
	}
}
