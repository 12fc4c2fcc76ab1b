/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bring-up: fibres as entries of a fabric's file, those whose names and ports follow one another as
 * one with ranges.
 *
 * A name is its letters and its numbers. The ranges of two entries are joined where one number
 * goes on and all others are the same; those before it, which count slower, must be no ranges.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/testbed/bringup_private.h"

#define MAX_DIGITS 9		/* of a number in a range */
#define NUMBER '\1'		/* stands for one among the letters */

static void read_name(const char *text, struct bringup_range *r)
{
	size_t len = 0;

	*r = (struct bringup_range){ 0 };
	while (*text) {
		size_t digits = strspn(text, "0123456789"), n = digits ? digits : 1;

		if (digits && digits <= MAX_DIGITS && r->n < BRINGUP_RANGES_MAX) {
			long value = strtol(text, NULL, 10);

			r->v[r->n++] = (struct bringup_span){ value, value, (int)digits,
							      digits > 1 && *text == '0' };
			r->form[len++] = NUMBER;
		} else {
			memcpy(r->form + len, text, n);
			len += n;
		}
		text += n;
	}
}

static bool goes_on(const struct bringup_span *a, const struct bringup_span *b)
{
	return b->lo == a->hi + 1 && (a->digits == b->digits || (!a->padded && !b->padded));
}

static bool is_same(const struct bringup_span *a, const struct bringup_span *b)
{
	return a->lo == b->lo && a->hi == b->hi && a->digits == b->digits;
}

/* Whether the names of b are those that come behind the ones of a. */
static bool follows(const struct bringup_range *a, const struct bringup_range *b)
{
	int at = 0;

	if (strcmp(a->form, b->form) != 0) {
		return false;
	}
	while (at < a->n && a->v[at].lo == a->v[at].hi && is_same(&a->v[at], &b->v[at])) {
		at++;
	}
	if (at == a->n || !goes_on(&a->v[at], &b->v[at])) {
		return false;
	}
	while (++at < a->n) {
		if (!is_same(&a->v[at], &b->v[at])) {
			return false;
		}
	}
	return true;
}

static void join(struct bringup_range *a, const struct bringup_range *b)
{
	for (int i = 0; i < a->n; i++) {
		a->v[i].hi = b->v[i].hi;
	}
}

static void put_range(struct buf *out, const struct bringup_range *r)
{
	const struct bringup_span *s = r->v;

	for (const char *c = r->form; *c; c++) {
		if (*c != NUMBER) {
			buf_add(out, c, 1);
			continue;
		}
		if (s->lo == s->hi) {
			buf_printf(out, "%0*ld", s->digits, s->lo);
		} else {
			buf_printf(out, "[%0*ld-%0*ld]", s->digits, s->lo, s->digits, s->hi);
		}
		s++;
	}
}

void bringup_fibres_add(struct bringup_fibres *list, const char *from, const char *to,
			const char *more, bool alone)
{
	struct bringup_fibre f = { .alone = alone }, *last;

	read_name(from, &f.from);
	read_name(to, &f.to);
	snprintf(f.more, sizeof(f.more), "%s", more);
	vec_push(list, f);
	for (; list->n > 1; list->n--) {
		last = &list->v[list->n - 1];
		if (last->alone || last[-1].alone || strcmp(last->more, last[-1].more) != 0 ||
		    !follows(&last[-1].from, &last->from) || !follows(&last[-1].to, &last->to)) {
			break;
		}
		join(&last[-1].from, &last->from);
		join(&last[-1].to, &last->to);
	}
}

void bringup_fibres_put(const struct bringup_fibres *list, struct buf *out)
{
	for (size_t i = 0; i < list->n; i++) {
		buf_str(out, "  - { from: \"");
		put_range(out, &list->v[i].from);
		buf_str(out, "\", to: \"");
		put_range(out, &list->v[i].to);
		buf_printf(out, "\"%s }\n", list->v[i].more);
	}
}
