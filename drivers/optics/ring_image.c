/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All programs of a ring together: sorted by name, checked against each other,
 * compared, digested, and saved as one piece of memory.
 *
 * Packing is canonical, so programs are compared and digested by their bytes.
 * What a plan did without (`without`) is saved with a program but is no part of
 * it: it enters neither digest nor comparison.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/optics/private.h"
#include "lib/base/alloc.h"
#include "lib/digest/sha256.h"

/* A program in a file: name (64), window (8), length (4), bytes; where the top
 * bit of the length is set, the parts that its plan did without: their number
 * (4), then each as part, direction, fibre, why (1 each), node, channel (2). */
#define SAVED_HEAD (RING_PROGRAM_NAME_MAX + 1 + 12)
#define SAVED_WITHOUT 0x80000000u
#define SAVED_DEAD 8

void ring_program_fini(struct ring_program *p)
{
	free(p->bytes);
	free(p->without);
	memset(p, 0, sizeof(*p));
}

void ring_program_set_without(struct ring_program *p, const struct ring_fault *dead, int n)
{
	struct ring_fault *copy = NULL;

	if (n > 0) {
		copy = x_alloc((size_t)n, sizeof(*copy));
		memcpy(copy, dead, (size_t)n * sizeof(*copy));
	}
	free(p->without);
	p->without = copy;
	p->n_without = n;
}

void ring_program_copy(struct ring_program *out, const struct ring_program *from)
{
	uint8_t *bytes = x_alloc(from->len, 1);

	*out = *from;
	out->bytes = bytes;
	out->without = NULL;
	out->n_without = 0;
	ring_program_set_without(out, from->without, from->n_without);
	memcpy(bytes, from->bytes, from->len);
}

static bool same_window(const struct ring_window *a, const struct ring_window *b)
{
	return a->first_node == b->first_node && a->nodes == b->nodes &&
	       a->first_channel == b->first_channel &&
	       a->channels == b->channels;
}

bool ring_program_equal(const struct ring_program *a, const struct ring_program *b)
{
	return strcmp(a->name, b->name) == 0 &&
	       same_window(&a->window, &b->window) && a->len == b->len &&
	       memcmp(a->bytes, b->bytes, a->len) == 0;
}

bool ring_program_plays(const struct ring_program *p, const struct ring_programs *has,
			const struct ring_fault *lost, int n_lost)
{
	const struct ring_program *loaded = has ? ring_programs_find(has, p->name) : NULL;
	bool plays = loaded && ring_program_equal(loaded, p);

	for (int i = 0; plays && i < n_lost; i++) {
		plays = !ring_window_contains(&p->window, p->ring.nodes, lost[i].node,
					      lost[i].channel);
	}
	return plays;
}

int ring_programs_add(struct ring_programs *r, struct ring_program *p, struct err *err)
{
	struct ring_program *v;
	int at = 0;

	while (at < r->n && strcmp(r->v[at].name, p->name) < 0) {
		at++;
	}
	if (at < r->n && strcmp(r->v[at].name, p->name) == 0) {
		err_set(err, WEFT_EINVAL, "two programs '%s' on one ring", p->name);
		ring_program_fini(p);
		return WEFT_EINVAL;
	}
	v = x_grow(r->v, (size_t)r->n + 1, sizeof(*v));
	memmove(v + at + 1, v + at, (size_t)(r->n - at) * sizeof(*v));
	v[at] = *p;
	memset(p, 0, sizeof(*p));
	r->v = v;
	r->n++;
	return 0;
}

const struct ring_program *ring_programs_find(const struct ring_programs *r, const char *name)
{
	for (int i = 0; i < r->n; i++) {
		if (strcmp(r->v[i].name, name) == 0) {
			return &r->v[i];
		}
	}
	return NULL;
}

bool ring_programs_equal(const struct ring_programs *a, const struct ring_programs *b)
{
	for (int i = 0; i < a->n && a->n == b->n; i++) {
		if (!ring_program_equal(&a->v[i], &b->v[i])) {
			return false;
		}
	}
	return a->n == b->n;
}

void ring_programs_copy(struct ring_programs *out, const struct ring_programs *from)
{
	memset(out, 0, sizeof(*out));
	out->v = x_new((size_t)from->n + 1, sizeof(*out->v));
	for (; out->n < from->n; out->n++) {
		ring_program_copy(&out->v[out->n], &from->v[out->n]);
	}
}

void ring_programs_fini(struct ring_programs *r)
{
	for (int i = 0; i < r->n; i++) {
		ring_program_fini(&r->v[i]);
	}
	free(r->v);
	memset(r, 0, sizeof(*r));
}

static bool window_fits(const struct ring_window *w, const struct ring_geometry *g)
{
	return w->first_node < g->nodes && w->nodes >= 1 &&
	       w->nodes <= g->nodes && w->channels >= 1 &&
	       w->first_channel + w->channels <= g->channels;
}

static int check_one(const struct ring_program *p, const struct ring_geometry *g, struct err *err)
{
	if (p->ring.nodes != g->nodes || p->ring.channels != g->channels ||
	    p->ring.fibres != g->fibres) {
		return err_set(err, WEFT_EINVAL, "program %s is for a ring of "
			       "%u nodes, %u channels, %u fibres per "
			       "direction, not %u, %u, %u", p->name,
			       p->ring.nodes, p->ring.channels, p->ring.fibres,
			       g->nodes, g->channels, g->fibres);
	}
	if (!window_fits(&p->window, g)) {
		return err_set(err, WEFT_EINVAL, "program %s: its part of the "
			       "ring is outside the ring", p->name);
	}
	return 0;
}

int ring_programs_check(const struct ring_programs *r,
			const struct ring_geometry *g, struct err *err)
{
	for (int i = 0; i < r->n; i++) {
		if (check_one(&r->v[i], g, err)) {
			return WEFT_EINVAL;
		}
		for (int k = 0; k < i; k++) {
			const struct ring_window *a = &r->v[k].window;
			const struct ring_window *b = &r->v[i].window;

			if (ring_windows_overlap(a, b, g->nodes)) {
				return err_set(err, WEFT_EINVAL, "programs %s "
					       "and %s share channels and "
					       "nodes of the ring",
					       r->v[k].name, r->v[i].name);
			}
		}
	}
	return 0;
}

size_t ring_programs_bytes(const struct ring_programs *r)
{
	size_t sum = 0;

	for (int i = 0; i < r->n; i++) {
		sum += r->v[i].len;
	}
	return sum;
}

uint64_t ring_programs_settings(const struct ring_programs *r)
{
	uint64_t sum = 0;

	for (int i = 0; i < r->n; i++) {
		sum += r->v[i].settings;
	}
	return sum;
}

uint32_t ring_programs_steps(const struct ring_programs *r)
{
	uint32_t most = 0;

	for (int i = 0; i < r->n; i++) {
		most = r->v[i].steps > most ? r->v[i].steps : most;
	}
	return most;
}

/* ---- in one piece ---- */

static void put_saved_head(const struct ring_program *p, uint32_t flags, uint8_t *to)
{
	memset(to, 0, SAVED_HEAD);
	memcpy(to, p->name, strlen(p->name));
	to += RING_PROGRAM_NAME_MAX + 1;
	optics_put_le(to, p->window.first_node, 2);
	optics_put_le(to + 2, p->window.nodes, 2);
	optics_put_le(to + 4, p->window.first_channel, 2);
	optics_put_le(to + 6, p->window.channels, 2);
	optics_put_le(to + 8, p->len | flags, 4);
}

static uint8_t *put_without(const struct ring_program *p, uint8_t *to)
{
	if (p->n_without) {
		optics_put_le(to, (uint64_t)p->n_without, 4);
		to += 4;
	}
	for (int i = 0; i < p->n_without; i++, to += SAVED_DEAD) {
		const struct ring_fault *d = &p->without[i];

		to[0] = d->part;
		to[1] = d->dir;
		to[2] = d->fibre;
		to[3] = d->why;
		optics_put_le(to + 4, d->node, 2);
		optics_put_le(to + 6, d->channel, 2);
	}
	return to;
}

void ring_programs_save(const struct ring_programs *r, uint8_t **bytes, size_t *len)
{
	uint8_t *to;

	*len = (size_t)r->n * SAVED_HEAD + ring_programs_bytes(r);
	for (int i = 0; i < r->n; i++) {
		*len += r->v[i].n_without ?
			4 + (size_t)r->v[i].n_without * SAVED_DEAD : 0;
	}
	*bytes = to = x_alloc(*len, 1);
	for (int i = 0; i < r->n; i++) {
		const struct ring_program *p = &r->v[i];

		put_saved_head(p, p->n_without ? SAVED_WITHOUT : 0, to);
		memcpy(to + SAVED_HEAD, p->bytes, p->len);
		to = put_without(p, to + SAVED_HEAD + p->len);
	}
}

/* What is being read. */
struct saved {
	const uint8_t *at;
	size_t left;
};

static const uint8_t *take(struct saved *s, size_t n)
{
	const uint8_t *at = s->at;

	if (n > s->left) {
		return NULL;
	}
	s->at += n;
	s->left -= n;
	return at;
}

static int load_without(struct ring_program *p, struct saved *s, struct err *err)
{
	const uint8_t *head = take(s, 4), *from;
	size_t n = head ? optics_get_le(head, 4) : 0;

	from = n <= s->left / SAVED_DEAD ? take(s, n * SAVED_DEAD) : NULL;
	if (n == 0 || n > INT_MAX || !from) {
		return err_set(err, WEFT_EINVAL, "a ring program that is cut");
	}
	p->without = x_new(n, sizeof(*p->without));
	for (size_t i = 0; i < n; i++, from += SAVED_DEAD) {
		p->without[i] = (struct ring_fault){
			.part = from[0], .dir = from[1], .fibre = from[2],
			.why = from[3],
			.node = (uint16_t)optics_get_le(from + 4, 2),
			.channel = (uint16_t)optics_get_le(from + 6, 2),
		};
		if (i && ring_fault_cmp(&p->without[i - 1], &p->without[i]) >= 0) {
			return err_set(err, WEFT_EINVAL, "program %s: failed "
				       "parts out of order", p->name);
		}
	}
	p->n_without = (int)n;
	return 0;
}

/* Name, window and bytes. *more: what it did without follows. */
static int load_program(struct ring_program *p, struct saved *s, bool *more, struct err *err)
{
	const uint8_t *head = take(s, SAVED_HEAD), *from = NULL, *w;
	uint8_t *bytes;
	size_t len = 0;

	if (head) {
		len = optics_get_le(head + SAVED_HEAD - 4, 4);
		*more = len & SAVED_WITHOUT;
		len &= ~(size_t)SAVED_WITHOUT;
		from = take(s, len);
	}
	if (!from) {
		return err_set(err, WEFT_EINVAL, "a ring program that is cut");
	}
	bytes = x_alloc(len, 1);
	memcpy(p->name, head, RING_PROGRAM_NAME_MAX);
	w = head + RING_PROGRAM_NAME_MAX + 1;
	p->window = (struct ring_window){
		.first_node = (uint16_t)optics_get_le(w, 2),
		.nodes = (uint16_t)optics_get_le(w + 2, 2),
		.first_channel = (uint16_t)optics_get_le(w + 4, 2),
		.channels = (uint16_t)optics_get_le(w + 6, 2),
	};
	memcpy(bytes, from, len);
	return ring_program_read(p, bytes, len, err);
}

static int load_one(struct ring_programs *out, struct saved *s, struct err *err)
{
	struct ring_program p = { 0 };
	bool more = false;
	int rc = load_program(&p, s, &more, err);

	if (rc == 0 && more) {
		rc = load_without(&p, s, err);
	}
	if (rc == 0 && out->n && strcmp(out->v[out->n - 1].name, p.name) >= 0) {
		rc = err_set(err, WEFT_EINVAL, "programs out of order");
	}
	if (rc) {
		ring_program_fini(&p);
		return rc;
	}
	return ring_programs_add(out, &p, err);
}

int ring_programs_load(struct ring_programs *out, const uint8_t *bytes, size_t len, struct err *err)
{
	struct saved s = { bytes, len };
	int rc = 0;

	memset(out, 0, sizeof(*out));
	while (s.left > 0 && rc == 0) {
		rc = load_one(out, &s, err);
	}
	if (rc) {
		ring_programs_fini(out);
	}
	return rc;
}

void ring_programs_digest(const struct ring_programs *r, uint8_t digest[RING_DIGEST_LEN])
{
	struct sha256 s;

	sha256_begin(&s);
	for (int i = 0; i < r->n; i++) {
		uint8_t head[SAVED_HEAD];

		put_saved_head(&r->v[i], 0, head);
		sha256_add(&s, head, sizeof(head));
		sha256_add(&s, r->v[i].bytes, r->v[i].len);
	}
	sha256_finish(&s, digest);
}
