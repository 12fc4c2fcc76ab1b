/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A map of cross-connects, or a ring's programs, in memory and in a file.
 *
 * `peer` holds for each flat port the port at the other end, so that every
 * question is O(1), and connecting or releasing always keeps both ends in step.
 * The state file is text: a head with kind, size and start counter, a line a
 * cross-connect, programs with their bytes in hexadecimals, and `end`, so that
 * a file that was cut off is noticed. It is written to a temporary file and
 * renamed.
 */
#include "drivers/core/xc_map.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/buf.h"
#include "lib/base/file.h"

#define STATE_MAX_BYTES ((size_t)512 << 20)
#define STATE_LINE "weft device state 1"
#define HEX "0123456789abcdef"
#define HEX_BYTES 48u

void xc_map_init(struct xc_map *m, enum drv_kind kind, int n_in, int n_out,
		 bool any_to_any)
{
	memset(m, 0, sizeof(*m));
	m->kind = kind;
	m->n_in = n_in;
	m->n_out = any_to_any ? n_in : n_out;
	m->any_to_any = any_to_any;
	m->boots = 1;
	if (kind == DRV_RING) {
		return;
	}
	m->n_ports = any_to_any ? n_in : n_in + n_out;
	m->peer = x_alloc(m->n_ports, sizeof(*m->peer));
	xc_map_clear(m);
}

void xc_map_fini(struct xc_map *m)
{
	free(m->peer);
	ring_programs_fini(&m->programs);
	memset(m, 0, sizeof(*m));
}

int xc_map_flat_in(const struct xc_map *m, int32_t in)
{
	(void)m;
	return in;
}

int xc_map_flat_out(const struct xc_map *m, int32_t out)
{
	return m->any_to_any ? out : m->n_in + out;
}

int xc_map_check(const struct xc_map *m, struct optics_xc xc, struct err *err)
{
	if (xc.in < 0 || xc.in >= m->n_in || xc.out < 0 || xc.out >= m->n_out) {
		return err_set(err, WEFT_EINVAL,
			       "cross-connect %d-%d: the device has %d inputs "
			       "and %d outputs", xc.in, xc.out, m->n_in,
			       m->n_out);
	}
	if (m->any_to_any && xc.in >= xc.out) {
		return err_set(err, WEFT_EINVAL,
			       "cross-connect %d-%d: the lower port comes "
			       "first on an any-to-any switch", xc.in, xc.out);
	}
	return 0;
}

bool xc_map_pair(const struct xc_map *m, int32_t in, int32_t out, struct optics_xc *xc)
{
	int32_t low = in < out ? in : out, high = in < out ? out : in;

	*xc = (struct optics_xc){ low - 1, high - 1 - (m->any_to_any ? 0 : m->n_in) };
	return (m->any_to_any || low == in) && xc_map_check(m, *xc, NULL) == 0;
}

bool xc_map_has(const struct xc_map *m, struct optics_xc xc)
{
	return m->peer[xc_map_flat_in(m, xc.in)] == xc_map_flat_out(m, xc.out);
}

static struct optics_xc xc_at(const struct xc_map *m, int flat)
{
	int a = flat, b = m->peer[flat];
	int low = a < b ? a : b, high = a < b ? b : a;

	return (struct optics_xc){ low, m->any_to_any ? high : high - m->n_in };
}

bool xc_map_of(const struct xc_map *m, int32_t in, struct optics_xc *xc)
{
	if (m->peer[in] < 0) {
		return false;
	}
	*xc = (struct optics_xc){ in, m->peer[in] - (m->any_to_any ? 0 : m->n_in) };
	return true;
}

bool xc_map_conflict(const struct xc_map *m, struct optics_xc xc, struct optics_xc *displaced)
{
	int in = xc_map_flat_in(m, xc.in), out = xc_map_flat_out(m, xc.out);

	if (xc_map_has(m, xc) || (m->peer[in] < 0 && m->peer[out] < 0)) {
		return false;
	}
	*displaced = xc_at(m, m->peer[in] >= 0 ? in : out);
	return true;
}

void xc_map_release(struct xc_map *m, int flat)
{
	if (m->peer[flat] >= 0) {
		m->peer[m->peer[flat]] = -1;
		m->peer[flat] = -1;
	}
}

void xc_map_connect(struct xc_map *m, struct optics_xc xc)
{
	int in = xc_map_flat_in(m, xc.in), out = xc_map_flat_out(m, xc.out);

	xc_map_release(m, in);
	xc_map_release(m, out);
	m->peer[in] = out;
	m->peer[out] = in;
}

bool xc_map_take(struct xc_map *m, struct optics_xc xc)
{
	struct optics_xc other;

	if (xc_map_check(m, xc, NULL) || xc_map_has(m, xc) || xc_map_conflict(m, xc, &other)) {
		return false;
	}
	xc_map_connect(m, xc);
	return true;
}

int xc_map_take_pair(struct xc_map *m, int32_t in, int32_t out, struct optics_xc *xc,
		     bool *again, struct err *err)
{
	bool there = xc_map_pair(m, in, out, xc);

	*again = there && xc_map_has(m, *xc);
	if (!there || (!*again && !xc_map_take(m, *xc))) {
		return err_set(err, WEFT_EDEVICE, "the map holds %d-%d, which cannot be", in, out);
	}
	return 0;
}

void xc_map_clear(struct xc_map *m)
{
	for (int i = 0; i < m->n_ports; i++) {
		m->peer[i] = -1;
	}
	ring_programs_fini(&m->programs);
}

void xc_map_xcs(const struct xc_map *m, struct optics_xc **v, int *n)
{
	*n = 0;
	*v = x_alloc(m->n_in, sizeof(**v));
	for (int i = 0; m->n_ports && i < m->n_in; i++) {
		if (m->peer[i] > i) {
			(*v)[(*n)++] = xc_at(m, i);
		}
	}
}

void xc_map_snapshot(const struct xc_map *m, struct drv_snapshot *snap)
{
	struct optics_xc *v;

	xc_map_xcs(m, &v, &snap->n_xcs);
	snap->xcs = x_new(snap->n_xcs, sizeof(*snap->xcs));
	for (int i = 0; i < snap->n_xcs; i++) {
		snap->xcs[i].xc = v[i];
		snap->xcs[i].state = DRV_TUNED;
	}
	free(v);
}

void xc_map_copy(struct xc_map *dst, const struct xc_map *src)
{
	struct ring_programs programs;

	ring_programs_copy(&programs, &src->programs);
	ring_programs_fini(&dst->programs);
	dst->programs = programs;
	if (src->n_ports) {
		memcpy(dst->peer, src->peer, src->n_ports * sizeof(*dst->peer));
	}
}

void xc_map_changes(const struct xc_map *known, const struct xc_map *now,
		    void (*fn)(struct optics_xc xc, bool made, void *arg), void *arg)
{
	for (int pass = 0; pass < 2; pass++) {
		const struct xc_map *a = pass ? now : known;
		const struct xc_map *b = pass ? known : now;

		for (int i = 0; i < a->n_in; i++) {
			int out = a->any_to_any ? a->peer[i] : a->peer[i] - a->n_in;

			if (a->peer[i] >= 0 && a->peer[i] != b->peer[i] &&
			    !(a->any_to_any && out < i)) {
				fn((struct optics_xc){ i, out }, pass, arg);
			}
		}
	}
}

/* ---- the state file ------------------------------------------------------- */

static void put_head(const struct xc_map *m, struct buf *b)
{
	buf_printf(b, STATE_LINE "\n%s %d %d %d\nboots %" PRIu64 "\n",
		   m->kind == DRV_RING ? "ring" : "space", m->n_in, m->n_out,
		   m->any_to_any, m->boots);
}

/* A program's window and name, then its bytes in lines of hexadecimals. */
static void put_program(const struct ring_program *p, struct buf *b)
{
	const struct ring_window *w = &p->window;
	char line[2 * HEX_BYTES + 1];

	buf_printf(b, "program %u %u %u %u %s\n", w->first_node, w->nodes,
		   w->first_channel, w->channels, p->name);
	for (size_t at = 0; at < p->len; at += HEX_BYTES) {
		size_t n = p->len - at < HEX_BYTES ? p->len - at : HEX_BYTES;

		for (size_t i = 0; i < n; i++) {
			line[2 * i] = HEX[p->bytes[at + i] >> 4];
			line[2 * i + 1] = HEX[p->bytes[at + i] & 15];
		}
		buf_str(b, "x ");
		buf_add(b, line, 2 * n);
		buf_char(b, '\n');
	}
}

int xc_map_save(const struct xc_map *m, const char *path, struct err *err)
{
	struct buf b = { 0 };
	int rc;

	put_head(m, &b);
	for (int i = 0; m->n_ports && i < m->n_in; i++) {
		if (m->peer[i] > i) {
			struct optics_xc xc = xc_at(m, i);

			buf_printf(&b, "xc %d %d\n", xc.in, xc.out);
		}
	}
	for (int i = 0; i < m->programs.n; i++) {
		put_program(&m->programs.v[i], &b);
	}
	buf_str(&b, "end\n");
	rc = file_write_atomic(path, b.data, b.len, FILE_PRIVATE, err);
	buf_fini(&b);
	return rc;
}

/* A cursor over the file's lines. */
struct reader {
	char *next;
	int line;
	bool in_program;
	struct ring_program program;	/* its head, bytes follow */
	struct buf bytes;
};

static char *next_line(struct reader *r)
{
	char *line = r->next, *end = strchr(line, '\n');

	if (!end) {
		return NULL;
	}
	*end = '\0';
	r->next = end + 1;
	r->line++;
	return line;
}

/* n non-negative numbers, each after one space. The rest, or NULL. */
static const char *some_numbers(const char *s, int n, uint64_t *v)
{
	for (int i = 0; i < n; i++) {
		int digits = 0;

		if (*s++ != ' ') {
			return NULL;
		}
		for (v[i] = 0; *s >= '0' && *s <= '9' && digits < 18; s++) {
			v[i] = v[i] * 10 + (uint64_t)(*s - '0');
			digits++;
		}
		if (digits == 0) {
			return NULL;
		}
	}
	return s;
}

/* Exactly n. */
static bool numbers(const char *s, int n, uint64_t *v)
{
	s = some_numbers(s, n, v);
	return s && *s == '\0';
}

static bool read_head(struct xc_map *m, struct reader *r)
{
	const char *kind = m->kind == DRV_RING ? "ring" : "space";
	char *line = next_line(r);
	uint64_t v[3];

	if (!line || strcmp(line, STATE_LINE) != 0) {
		return false;
	}
	line = next_line(r);
	if (!line || strncmp(line, kind, strlen(kind)) != 0 ||
	    !numbers(line + strlen(kind), 3, v) || v[0] != (uint64_t)m->n_in ||
	    v[1] != (uint64_t)m->n_out || v[2] != (uint64_t)m->any_to_any) {
		return false;
	}
	line = next_line(r);
	if (!line || strncmp(line, "boots", 5) != 0 || !numbers(line + 5, 1, v)) {
		return false;
	}
	m->boots = v[0];
	return true;
}

static bool read_xc(struct xc_map *m, const char *text)
{
	uint64_t v[2];

	if (m->kind != DRV_SPACE || !numbers(text, 2, v) || v[0] > INT32_MAX || v[1] > INT32_MAX) {
		return false;
	}
	return xc_map_take(m, (struct optics_xc){ (int32_t)v[0], (int32_t)v[1] });
}

/* The bytes of a program are all there: is it one? */
static bool end_program(struct xc_map *m, struct reader *r)
{
	size_t len = r->bytes.len;
	uint8_t *bytes;

	if (!r->in_program) {
		return true;
	}
	r->in_program = false;
	buf_char(&r->bytes, '\0');	/* so that there is memory */
	bytes = (uint8_t *)buf_steal(&r->bytes);
	return ring_program_read(&r->program, bytes, len, NULL) == 0 &&
	       ring_programs_add(&m->programs, &r->program, NULL) == 0;
}

static bool begin_program(struct xc_map *m, struct reader *r, const char *text)
{
	uint64_t v[4];
	struct ring_window *w = &r->program.window;

	if (m->kind != DRV_RING || !end_program(m, r)) {
		return false;
	}
	text = some_numbers(text, 4, v);
	if (!text || *text++ != ' ' || !*text || strlen(text) > RING_PROGRAM_NAME_MAX ||
	    v[0] >= (uint64_t)m->n_in || v[1] > (uint64_t)m->n_in ||
	    v[2] >= (uint64_t)m->n_out || v[3] > (uint64_t)m->n_out) {
		return false;
	}
	memset(&r->program, 0, sizeof(r->program));
	strcpy(r->program.name, text);
	*w = (struct ring_window){ (uint16_t)v[0], (uint16_t)v[1],
				    (uint16_t)v[2], (uint16_t)v[3] };
	r->in_program = true;
	return true;
}

static bool read_bytes(struct reader *r, const char *text)
{
	if (!r->in_program || *text++ != ' ') {
		return false;
	}
	for (; text[0] && text[1]; text += 2) {
		const char *high = strchr(HEX, text[0]);
		const char *low = strchr(HEX, text[1]);

		if (!high || !low) {
			return false;
		}
		buf_char(&r->bytes, (char)((high - HEX) << 4 | (low - HEX)));
	}
	return !text[0];
}

static bool read_body(struct xc_map *m, struct reader *r)
{
	char *line;

	while ((line = next_line(r))) {
		bool ok = false;

		if (strcmp(line, "end") == 0) {
			return *r->next == '\0' && end_program(m, r);
		} else if (line[0] == 'x' && line[1] == ' ') {
			ok = read_bytes(r, line + 1);
		} else if (strncmp(line, "xc", 2) == 0) {
			ok = read_xc(m, line + 2);
		} else if (strncmp(line, "program", 7) == 0) {
			ok = begin_program(m, r, line + 7);
		}
		if (!ok) {
			return false;
		}
	}
	return false;
}

int xc_map_load(struct xc_map *m, const char *path, struct err *err)
{
	struct reader r = { 0 };
	char *data;
	size_t len;
	int rc = file_read(path, STATE_MAX_BYTES, &data, &len, err);

	if (rc) {
		return rc;
	}
	r.next = data;
	xc_map_clear(m);
	if (!read_head(m, &r) || !read_body(m, &r)) {
		rc = err_set(err, WEFT_EINVAL, "%s:%d: not the state of this device", path, r.line);
	}
	if (rc) {
		xc_map_clear(m);
	}
	buf_fini(&r.bytes);
	free(data);
	return rc;
}
