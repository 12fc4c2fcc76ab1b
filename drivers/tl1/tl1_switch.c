/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Switches that speak TL1: what is read, and a driver's life.
 *
 * The dialect's table `reads` lists questions in order with the moment when
 * each is needed. A batch reads the map only, and the size once a session:
 * numbers of ports depend on it. If the session was lost and made again while
 * reading, reading begins again, since answers of two sessions may be of two
 * devices.
 */
#include "drivers/core/parse.h"
#include "drivers/tl1/tl1_private.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"

/* ---- for dialects -------------------------------------------------------- */

int tl1_find_circuit(const struct tl1_switch *s, struct optics_xc xc)
{
	for (size_t i = 0; i < s->circuits.n; i++) {
		if (optics_xc_cmp(&s->circuits.v[i].xc, &xc) == 0) {
			return (int)i;
		}
	}
	return -1;
}

int tl1_found_circuit(struct tl1_switch *s, const struct tl1_circuit *c, struct err *err)
{
	if (!xc_map_take(&s->map, c->xc)) {
		return err_set(err, WEFT_EDEVICE,
			       "the map holds %d-%d, which cannot be",
			       c->xc.in, c->xc.out);
	}
	vec_push(&s->circuits, *c);
	return 0;
}

int tl1_note_power(struct tl1_switch *s, const char *line, const char *name,
		   bool is_out, int index, struct err *err)
{
	struct drv_port *port;
	char value[16];
	int32_t mdbm;

	if (s->h.op != BASE_SNAPSHOT || !tl1_value(line, name, value, sizeof(value)) ||
	    !parse_milli(value, &mdbm)) {
		return 0;
	}
	port = base_port(&s->h, is_out, index, err);
	if (!port) {
		return err->code;
	}
	port->has_power = true;
	port->power_mdbm = mdbm;
	return 0;
}

/* ---- reading ------------------------------------------------------------- */

static bool wanted(const struct tl1_switch *s, const struct tl1_read *r)
{
	bool snapshot = s->h.op == BASE_SNAPSHOT;

	switch (r->when) {
	case TL1_IDENTITY:
		return snapshot;
	case TL1_PORTS:
		return snapshot || (s->h.op == BASE_PORT && s->port_was_set);
	case TL1_SIZE:
		/* An operation begins with a question that changes nothing. */
		return s->h.op != BASE_SUBMIT ||
		       !tcp_connected(s->h.session) ||
		       s->checked_session != tcp_sessions(s->h.session);
	case TL1_POWER:
		return snapshot && s->want_power;
	case TL1_MAP:
		break;
	}
	return s->h.op != BASE_PORT;
}

static void next_read(struct tl1_switch *s);

static int end_record(struct tl1_switch *s, const struct tl1_read *r, struct err *err)
{
	int rc = s->record.len ? r->line(s, s->record.data, err) : 0;

	buf_reset(&s->record);
	return rc;
}

/* The attributes of a line behind what it names before a colon. */
static const char *attributes(const char *line)
{
	const char *colon = line + strcspn(line, ":=");

	return *colon == ':' ? colon + 1 : line;
}

/* A line that begins a record ends the one before. */
static int gather(struct tl1_switch *s, const struct tl1_read *r, const char *line, struct err *err)
{
	char value[TL1_PART_MAX];
	int rc;

	if (s->record.len && !(r->record[0] && tl1_value(line, r->record, value, sizeof(value)))) {
		buf_printf(&s->record, ",%s", attributes(line));
		return 0;
	}
	rc = end_record(s, r, err);
	buf_str(&s->record, line);
	return rc;
}

/* What is not quoted is part of the answer if it can be read as such. */
static int take_line(struct tl1_switch *s, const struct tl1_read *r, struct tl1_line line,
		     struct err *err)
{
	char text[DRV_TEXT_MAX];
	int rc = 0;

	snprintf(text, sizeof(text), "%s", line.text);
	if (!r->record) {
		rc = r->line(s, line.text, err);
	} else if (line.quoted || strchr(line.text, '=')) {
		return gather(s, r, line.text, err);
	}
	if (!line.quoted && (rc == WEFT_EDEVICE || r->record)) {
		base_note(&s->h, "%s: passed over '%s'", s->cmd.verb, text);
		err->code = rc = 0;
	}
	return rc;
}

static void on_read(struct tl1_switch *s, const struct tl1_message *m)
{
	const struct tl1_read *r = &s->dialect->reads[s->at_read];
	struct err err = { 0 };
	int rc = 0;

	if (m->denied) {
		tl1_fail_denied(s, s->cmd.verb, m);
		return;
	}
	if (r->when == TL1_SIZE && m->n_lines == 0) {
		rc = parse_unexpected("", "its size", &err);
	}
	for (size_t i = 0; rc == 0 && i < m->n_lines; i++) {
		rc = take_line(s, r, m->lines[i], &err);
	}
	if (rc == 0) {
		rc = end_record(s, r, &err);
	}
	buf_reset(&s->record);
	if (rc == 0 && r->end) {
		rc = r->end(s, m->n_lines, &err);
	}
	if (rc) {
		base_misunderstood(&s->h, rc, &err);
		return;
	}
	if (r->when == TL1_SIZE) {
		s->checked_session = tcp_sessions(s->h.session);
	}
	s->at_read++;
	next_read(s);
}

static void next_read(struct tl1_switch *s)
{
	const struct tl1_read *reads = s->dialect->reads;
	struct tl1_command c;

	while (reads[s->at_read].ask && !wanted(s, &reads[s->at_read])) {
		s->at_read++;
	}
	if (!reads[s->at_read].ask && s->h.op == BASE_SUBMIT &&
	    s->checked_session != tcp_sessions(s->h.session)) {
		/* The session is another than it was when they began. */
		s->at_read = 0;
		next_read(s);
		return;
	}
	if (!reads[s->at_read].ask) {
		s->after_reads(s);
		return;
	}
	if (reads[s->at_read].when == TL1_MAP) {
		xc_map_clear(&s->map);
		s->circuits.n = 0;
	}
	if (reads[s->at_read].when == TL1_SIZE && s->dialect->begin_size) {
		s->dialect->begin_size(s);
	}
	reads[s->at_read].ask(s, &c);
	tl1_ask(s, &c, on_read);
}

void tl1_start_reads(struct tl1_switch *s, void (*after)(struct tl1_switch *s))
{
	s->at_read = 0;
	s->after_reads = after;
	next_read(s);
}

/* ---- snapshot ------------------------------------------------------------ */

static void fill_snapshot(struct tl1_switch *s)
{
	struct drv_snapshot *snap = &s->h.snap;

	snap->xcs = x_new(s->circuits.n + 1, sizeof(*snap->xcs));
	for (size_t i = 0; i < s->circuits.n; i++) {
		const struct tl1_circuit *c = &s->circuits.v[i];
		struct drv_xc *x = &snap->xcs[snap->n_xcs++];

		x->xc = c->xc;
		x->state = c->state;
		x->has_loss = c->has_loss;
		x->loss_mdb = c->loss_mdb;
		memcpy(x->owner, c->owner, sizeof(x->owner));
	}
	if (s->want_power && s->dialect->losses_from_power) {
		power_monitors_losses(&s->monitors, &s->h);
	}
	base_end(&s->h, 0, NULL);
}

static void tl1_snapshot(struct driver_base *h)
{
	struct tl1_switch *s = (struct tl1_switch *)h;

	h->snap.caps = (struct drv_caps){
		.kind = DRV_SPACE,
		.numbering = h->any_to_any ? DRV_ANY_TO_ANY : DRV_SPLIT,
		.n_in = h->n_in,
		.n_out = h->n_out,
		.power = s->want_power ? DRV_POWER_BOTH : DRV_POWER_NONE,
		.min_gap_us = s->gap_ms * 1000,
		.typ_switch_us = s->dialect->typ_switch_us,
		.settle_us = s->settle_ms * 1000,
	};
	s->partly_done = false;
	base_identify(&s->h, s->dialect->vendor);
	tl1_start_reads(s, fill_snapshot);
}

/* ---- life ---------------------------------------------------------------- */

static void tl1_fini(struct driver_base *h)
{
	struct tl1_switch *s = (struct tl1_switch *)h;

	if (s->dialect && s->dialect->fini) {
		s->dialect->fini(s);
	}
	tl1_forget_password(s);
	tl1_forget_pages(s);
	buf_fini(&s->bulk_list);
	buf_fini(&s->record);
	vec_fini(&s->circuits);
	xc_map_fini(&s->map);
}

bool tl1_is_text(const char *text, size_t size)
{
	const char *p = text;

	while (isgraph((unsigned char)*p) && !strchr(":;,\"", *p)) {
		p++;
	}
	return !*p && strlen(text) < size;
}

int tl1_text_option(const struct drv_class *cls, const struct drv_config *cfg,
		    const char *key, char *out, size_t size, struct err *err)
{
	const char *text = base_option(cls, cfg, key);

	if (!tl1_is_text(text, size)) {
		return err_set(err, WEFT_EINVAL, "option %s: expected at most %d characters, and "
			       "no blank, colon, semicolon, comma or quote", key, (int)size - 1);
	}
	memcpy(out, text, strlen(text) + 1);
	return 0;
}

static int parse_options(struct tl1_switch *s, const struct drv_config *cfg, struct err *err)
{
	const struct drv_class *cls = s->h.drv.cls;
	const struct base_number numbers[] = {
		{ "gap_ms", 0, 60000, &s->gap_ms },
		{ "settle_ms", 0, 60000, &s->settle_ms },
		{ "idle_s", 0, 86400, &s->idle_s },
		{ "complete_ms", 0, 600000, &s->complete_ms },
		{ "bulk", 0, 512, &s->bulk },
		{ "bulk_ms", 1, 600000, &s->bulk_ms },
	};
	int rc;

	if ((rc = base_option_ints(cls, cfg, numbers, sizeof(numbers) / sizeof(numbers[0]), err)) ||
	    (rc = tl1_text_option(cls, cfg, "user", s->user, sizeof(s->user), err)) ||
	    (rc = base_option_path(cls, cfg, "password_file", s->password_file, err)) ||
	    (rc = tl1_text_option(cls, cfg, "tid", s->tid, sizeof(s->tid), err))) {
		return rc;
	}
	s->use_tid = s->tid[0] != '\0';
	return 0;
}

static int tl1_init(struct driver_base *h, const struct drv_config *cfg,
		    struct tcp_conf *conf, struct err *err)
{
	struct tl1_switch *s = (struct tl1_switch *)h;
	int rc;

	s->dialect = h->drv.cls->dialect;
	if ((!s->dialect->any_to_any && (rc = base_two_sides(h->drv.cls, cfg, "", err))) ||
	    (rc = parse_options(s, cfg, err)) ||
	    (s->dialect->losses_from_power &&
	     (rc = power_monitors_init(&s->monitors, h->drv.cls, cfg, err))) ||
	    (rc = s->dialect->init(s, cfg, err))) {
		return rc;
	}
	conf->gap_us = s->gap_ms * 1000;
	conf->idle_ms = s->idle_s * 1000;
	xc_map_init(&s->map, DRV_SPACE, cfg->n_in, cfg->n_out, cfg->any_to_any);
	return 0;
}

const struct base_ops tl1_ops = {
	.session = &tl1_session,
	.init = tl1_init,
	.snapshot = tl1_snapshot,
	.submit = tl1_submit,
	.port_set = tl1_port_set,
	.stop = tl1_stop,
	.fini = tl1_fini,
};
