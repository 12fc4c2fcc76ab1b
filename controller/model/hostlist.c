/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Expansion of ranges, "gpu[00-15].p[0-3]" to names.
 *
 * Two passes: the first parses and counts, and refuses more names than the
 * caller has room for before any memory is spent on them; the second writes
 * the names in the order of an odometer, the last bracket fastest.
 */
#include "controller/model/private.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/vec.h"

#define MAX_DIGITS 9

/* Numbers lo..hi, written with `width` digits (0: as many as they need). */
struct hostlist_span {
	int64_t lo, hi;
	int width;
};

/* Letters, then (when n_spans > 0) one number out of the spans. */
struct hostlist_part {
	const char *letters;
	int n_letters;
	size_t first_span, n_spans;
	int64_t count;		/* numbers in all spans, 1 without */
	size_t span;		/* odometer: the present span and number */
	int64_t number;
};

/* A parsed term. Names in it: the product of its parts' counts, INT64_MAX when
 * that overflows. */
struct term {
	VEC(struct hostlist_part) parts;
	VEC(struct hostlist_span) spans;
	int64_t count;
	size_t longest;		/* name, bytes */
};

/* Text and where in it we are. */
struct scan {
	const char *text, *p;
	struct err *err;
};

static void term_fini(struct term *t)
{
	vec_fini(&t->parts);
	vec_fini(&t->spans);
}

static int wrong(struct scan *s, const char *fact)
{
	return err_set(s->err, WEFT_EINVAL, "%s", fact);
}

static void skip_blanks(struct scan *s)
{
	s->p += strspn(s->p, " ");
}

/* At most MAX_DIGITS digits, so that counts of names stay far from overflow. */
static int read_number(struct scan *s, int64_t *value, int *digits)
{
	*value = 0;
	*digits = 0;
	while (isdigit((unsigned char)s->p[*digits])) {
		*value = *value * 10 + (s->p[*digits] - '0');
		if (++*digits > MAX_DIGITS) {
			return wrong(s, "the number is too long");
		}
	}
	if (*digits == 0) {
		return wrong(s, *s->p ? "expected a number in the range"
				      : "the range's ']' is missing");
	}
	s->p += *digits;
	return 0;
}

/* "7" or "00-15". A leading zero asks for equal widths at both ends; otherwise
 * each number has as many digits as it needs. */
static int read_span(struct scan *s, struct hostlist_span *span)
{
	const char *start = s->p;
	int lo_digits, hi_digits, rc;
	bool padded;

	rc = read_number(s, &span->lo, &lo_digits);
	if (rc) {
		return rc;
	}
	span->hi = span->lo;
	padded = start[0] == '0' && lo_digits > 1;
	span->width = padded ? lo_digits : 0;
	if (*s->p != '-') {
		return 0;
	}
	s->p++;
	rc = read_number(s, &span->hi, &hi_digits);
	if (rc) {
		return rc;
	}
	if (span->hi < span->lo) {
		s->p = start;
		return err_set(s->err, WEFT_EINVAL,
			       "the range %.*s runs backwards",
			       lo_digits + 1 + hi_digits, start);
	}
	if (padded && hi_digits != lo_digits) {
		s->p = start;
		err_set(s->err, WEFT_EINVAL, "the ends of the range %.*s have "
			"different widths", lo_digits + 1 + hi_digits, start);
		lo_digits = hi_digits > lo_digits ? hi_digits : lo_digits;
		err_hint(s->err, "write [%0*" PRId64 "-%0*" PRId64 "]",
			 lo_digits, span->lo, lo_digits, span->hi);
		return WEFT_EINVAL;
	}
	return 0;
}

static int digits_of(int64_t value)
{
	char buf[24];

	return snprintf(buf, sizeof(buf), "%" PRId64, value);
}

/* "[...]", at the '['. */
static int read_spans(struct scan *s, struct term *t, struct hostlist_part *part, size_t *longest)
{
	int rc = 0, digits = 0;

	part->first_span = t->spans.n;
	part->count = 0;
	do {
		struct hostlist_span span;

		s->p++;
		skip_blanks(s);
		rc = read_span(s, &span);
		if (rc) {
			return rc;
		}
		vec_push(&t->spans, span);
		part->count += span.hi - span.lo + 1;
		if (span.width > digits) {
			digits = span.width;
		}
		if (digits_of(span.hi) > digits) {
			digits = digits_of(span.hi);
		}
		skip_blanks(s);
	} while (*s->p == ',');
	if (*s->p != ']') {
		return wrong(s, "the range's ']' is missing");
	}
	s->p++;
	part->n_spans = t->spans.n - part->first_span;
	*longest += digits;
	return 0;
}

/* Length of "[2001:db8::1]" at p, or 0. */
static size_t ipv6_length(const char *p)
{
	size_t n = *p == '[' ? strspn(p + 1, "0123456789abcdefABCDEF:.") : 0;

	return n > 0 && p[n + 1] == ']' && memchr(p + 1, ':', n) ? n + 2 : 0;
}

/* Letters up to the next bracket, and the bracket. A count that overflows
 * becomes INT64_MAX, which is over any caller's limit. */
static int read_part(struct scan *s, struct term *t)
{
	struct hostlist_part part = { .letters = s->p, .count = 1 };
	const char *start;
	int rc = 0;

	s->p += ipv6_length(s->p);
	s->p += strcspn(s->p, "[], ");
	part.n_letters = (int)(s->p - part.letters);
	t->longest += part.n_letters;
	start = s->p;
	if (*s->p == '[') {
		rc = read_spans(s, t, &part, &t->longest);
	}
	if (rc) {
		return rc;
	}
	if (t->longest > NAMES_MAX_LEN) {
		s->p = start;
		return wrong(s, "the name is too long");
	}
	if (__builtin_mul_overflow(t->count, part.count, &t->count)) {
		t->count = INT64_MAX;
	}
	vec_push(&t->parts, part);
	return 0;
}

/* One term at s->p, up to its ',' or the end. t is emptied first. */
static int read_term(struct scan *s, struct term *t)
{
	int rc;

	t->parts.n = t->spans.n = 0;
	t->count = 1;
	t->longest = 0;
	skip_blanks(s);
	if (!*s->p || *s->p == ',') {
		return wrong(s, "expected a name");
	}
	while (*s->p && !strchr(", ]", *s->p)) {
		rc = read_part(s, t);
		if (rc) {
			return rc;
		}
	}
	skip_blanks(s);
	if (*s->p == ']') {
		return wrong(s, "a ']' without '['");
	}
	if (*s->p && *s->p != ',') {
		return wrong(s, "a blank inside a name");
	}
	return 0;
}

int names_count(const char *text, int64_t max, int64_t *n, size_t *offset, struct err *err)
{
	struct scan s = { .text = text, .p = text, .err = err };
	struct term t = { 0 };
	int rc;

	*n = 0;
	for (;;) {
		const char *start = s.p;

		rc = read_term(&s, &t);
		if (rc) {
			break;
		}
		if (t.count > max - *n) {
			s.p = start;
			rc = err_set(err, WEFT_ELIMIT, "more than %" PRId64
				     " names", max);
			break;
		}
		*n += t.count;
		if (*s.p != ',') {
			break;
		}
		s.p++;
	}
	*offset = (size_t)(s.p - text);
	term_fini(&t);
	return rc;
}

/* ---- writing ---- */

/* Back to the part's first number. */
static void rewind_part(struct hostlist_part *p, const struct hostlist_span *spans)
{
	p->span = p->first_span;
	p->number = p->n_spans ? spans[p->first_span].lo : 0;
}

/* The next name of the odometer: the last number counts fastest. */
static void advance(struct term *t)
{
	for (size_t i = t->parts.n; i-- > 0;) {
		struct hostlist_part *p = &t->parts.v[i];

		if (p->n_spans == 0) {
			continue;
		}
		if (p->number < t->spans.v[p->span].hi) {
			p->number++;
			return;
		}
		if (p->span + 1 < p->first_span + p->n_spans) {
			p->number = t->spans.v[++p->span].lo;
			return;
		}
		rewind_part(p, t->spans.v);
	}
}

/* Writes the odometer's present name and returns its length. read_part has seen
 * to it that NAMES_MAX_LEN bytes are enough. */
static size_t write_name(const struct term *t, char *buf)
{
	char *out = buf;

	for (size_t i = 0; i < t->parts.n; i++) {
		const struct hostlist_part *p = &t->parts.v[i];

		memcpy(out, p->letters, p->n_letters);
		out += p->n_letters;
		if (p->n_spans) {
			out += sprintf(out, "%0*" PRId64,
				       t->spans.v[p->span].width, p->number);
		}
	}
	*out = '\0';
	return (size_t)(out - buf);
}

void names_expand(const char *text, struct conf_place at, struct conf_arena *arena,
		  struct names *out)
{
	struct scan s = { .text = text, .p = text };
	struct term t = { 0 };
	char buf[NAMES_MAX_LEN + 1];

	for (; read_term(&s, &t) == 0; s.p++) {
		for (size_t i = 0; i < t.parts.n; i++) {
			rewind_part(&t.parts.v[i], t.spans.v);
		}
		for (int64_t i = 0; i < t.count; i++) {
			size_t len = write_name(&t, buf);

			out->v[out->n++] = (struct name){ conf_arena_strndup(arena, buf, len), at };
			advance(&t);
		}
		if (*s.p != ',') {
			break;
		}
	}
	term_fini(&t);
}

/* ---- the public face ---- */

int model_expand(const char *text, int max, char ***names, int *n, struct err *err)
{
	struct conf_arena arena = { 0 };
	struct names list = { 0 };
	int64_t count;
	size_t offset;
	int rc;

	*names = NULL;
	*n = 0;
	rc = names_count(text, max, &count, &offset, err);
	if (rc) {
		return rc == WEFT_EINVAL ? err_wrap(err, "column %zu", offset + 1) : rc;
	}
	list.v = conf_arena_alloc(&arena, (size_t)count, sizeof(*list.v));
	*names = x_new((size_t)count + 1, sizeof(**names));
	names_expand(text, (struct conf_place){ 0 }, &arena, &list);
	for (int i = 0; i < list.n; i++) {
		(*names)[i] = x_dup(list.v[i].text);
	}
	*n = list.n;
	conf_arena_fini(&arena);
	return 0;
}

void model_names_free(char **names)
{
	for (char **p = names; p && *p; p++) {
		free(*p);
	}
	free(names);
}
