/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Demands: a matrix of what each terminal sends to each other, read from
 * numbers that people or programs wrote.
 *
 * Numbers are decimal and stay exact: each is kept as its digits and a power of
 * ten until all are there, and then all are brought to whole multiples of one
 * unit, as small as they can be. A word is a number, or a size such as 1MB; the rows are
 * lines, or arrays of a JSON array. Mistakes are told by row and column, counted from 0
 * as ranks are.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "collective/flow/private.h"
#include "lib/base/alloc.h"
#include "lib/base/number/rat.h"
#include "lib/base/number/units.h"

#define MAX_WORD 64
/* Digits that a number may have, and powers of ten up to which numbers may differ. */
#define MAX_DIGITS 18
#define MAX_POWER 400

/* digits x 10^power. */
struct demand_cell {
	int64_t digits;
	int power;
};

struct demand_text {
	const char *at, *end;
	int n;			/* ranks that there are to be */
	int row, column;	/* where the next word is, from 0 */
	bool sized, bare;	/* a size, a number other than 0 was met */
	struct demand_cell *cells;	/* n x n */
};

void flow_demands_fini(struct flow_demands *d)
{
	free(d->size);
	*d = (struct flow_demands){ 0 };
}

void flow_demands_copy(const struct flow_demands *from, struct flow_demands *out)
{
	size_t bytes = (size_t)from->n * from->n * sizeof(*from->size);

	*out = *from;
	out->size = x_alloc(bytes + 1, 1);
	memcpy(out->size, from->size, bytes);
}

/* ---- one word ---- */

static int wrong(const struct demand_text *x, struct err *err, const char *what, const char *word)
{
	return err_set(err, WEFT_EINVAL, "row %d, column %d: %s%s%s", x->row, x->column, what,
		       word ? ": " : "", word ? word : "");
}

/* An exponent, "e-3" or nothing, up to its end. */
static const char *read_power(const char *at, int *power)
{
	char *end;
	long by;

	if (*at != 'e' && *at != 'E') {
		return at;
	}
	if (!isdigit((unsigned char)at[1]) &&
	    !((at[1] == '-' || at[1] == '+') && isdigit((unsigned char)at[2]))) {
		return at;	/* a unit perhaps */
	}
	by = strtol(at + 1, &end, 10);
	*power += by > MAX_POWER ? MAX_POWER : by < -MAX_POWER ? -MAX_POWER : (int)by;
	return end;
}

/* The digits, with a point anywhere, and the exponent. Returns the end; NULL: no number, or
 * too many digits. */
static const char *read_decimal(const char *at, struct demand_cell *out)
{
	int digits = 0, power = 0;
	bool point = false, any = false;
	int64_t v = 0;

	for (; isdigit((unsigned char)*at) || (*at == '.' && !point); at++) {
		if (*at == '.') {
			point = true;
			continue;
		}
		any = true;
		power -= point;
		digits += v > 0 || *at != '0';
		if (digits > MAX_DIGITS) {
			return NULL;
		}
		v = 10 * v + (*at - '0');
	}
	if (!any) {
		return NULL;
	}
	at = read_power(at, &power);
	for (; v > 0 && v % 10 == 0; v /= 10) {
		power++;
	}
	*out = (struct demand_cell){ v, v ? power : 0 };
	return at;
}

/* A size with its unit, in bytes. */
static int read_size(const struct demand_text *x, const char *word, struct demand_cell *out,
		     struct err *err)
{
	struct err why = { 0 };
	int64_t bytes;

	if (unit_parse(UNIT_BYTES, word, &bytes, &why)) {
		return wrong(x, err, "neither a number nor a size such as 1MB", word);
	}
	*out = (struct demand_cell){ bytes, 0 };
	for (; out->digits > 0 && out->digits % 10 == 0; out->digits /= 10) {
		out->power++;
	}
	return 0;
}

static int take_word(struct demand_text *x, const char *word, struct err *err)
{
	struct demand_cell cell;
	const char *rest;
	int rc;

	if (x->row >= x->n) {
		return err_set(err, WEFT_EINVAL, "row %d: there are only %d ranks, so as many rows",
			       x->row, x->n);
	}
	if (x->column >= x->n) {
		return wrong(x, err, "the row is too long: there are only so many ranks as rows",
			     NULL);
	}
	if (word[0] == '-' && (isdigit((unsigned char)word[1]) || word[1] == '.')) {
		return wrong(x, err, "negative", word);
	}
	rest = read_decimal(word, &cell);
	if (!rest && isdigit((unsigned char)word[0])) {
		return wrong(x, err, "more than 18 digits", word);
	}
	if (!rest || *rest) {
		rc = rest ? read_size(x, word, &cell, err)
			  : wrong(x, err, "neither a number nor a size such as 1MB", word);
		if (rc) {
			return rc;
		}
		x->sized |= cell.digits > 0;
	} else {
		x->bare |= cell.digits > 0;
	}
	if (x->sized && x->bare) {
		return wrong(x, err, "sizes with and without a unit in one matrix", word);
	}
	if (x->row == x->column && cell.digits > 0) {
		return wrong(x, err, "what a rank sends to itself is not sent: expected 0", word);
	}
	x->cells[(size_t)x->row * x->n + x->column++] = cell;
	return 0;
}

/* ---- the text ---- */

/* A word up to one of the characters in `stop` or blanks; false: none begins here. */
static int next_word(struct demand_text *x, const char *stop, char *word, struct err *err)
{
	size_t len = 0;

	while (x->at + len < x->end && !strchr(stop, x->at[len])) {
		len++;
		if (len >= MAX_WORD) {
			return wrong(x, err, "a word of more than 63 bytes", NULL);
		}
	}
	memcpy(word, x->at, len);
	word[len] = '\0';
	x->at += len;
	return 0;
}

static int end_row(struct demand_text *x, struct err *err)
{
	if (x->column < x->n) {
		return err_set(err, WEFT_EINVAL, "row %d: it has %d of %d columns", x->row,
			       x->column, x->n);
	}
	x->row++;
	x->column = 0;
	return 0;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

/* Words with blanks, commas or semicolons between them; a separator must follow a word. */
static int read_line(struct demand_text *x, struct err *err)
{
	char word[MAX_WORD], separator = 0;
	int rc;

	for (;; x->at++) {
		char c = x->at < x->end ? *x->at : '\n';

		if (is_blank(c)) {
			continue;
		}
		if (c == '\n' || c == '#') {
			break;
		}
		if (c == ',' || c == ';') {
			if (separator != 'w') {
				return wrong(x, err, "empty", NULL);
			}
			separator = c;
			continue;
		}
		if ((rc = next_word(x, " \t\r\n,;#", word, err)) ||
		    (rc = take_word(x, word, err))) {
			return rc;
		}
		separator = 'w';
		x->at--;
	}
	while (x->at < x->end && *x->at != '\n') {
		x->at++;
	}
	x->at += x->at < x->end;
	/* A line without words, or with nothing but a comment, is none. */
	return x->column == 0 ? 0 : end_row(x, err);
}

static int read_lines(struct demand_text *x, struct err *err)
{
	int rc = 0;

	while (x->at < x->end && rc == 0) {
		rc = read_line(x, err);
	}
	return rc;
}

/* The next character that is no blank, 0 at the end. */
static char peek(struct demand_text *x)
{
	while (x->at < x->end && (is_blank(*x->at) || *x->at == '\n')) {
		x->at++;
	}
	return x->at < x->end ? *x->at : '\0';
}

static int expect(struct demand_text *x, char c, struct err *err)
{
	char found = peek(x), what[] = "expected ' '";

	if (found != c) {
		what[10] = c;
		return wrong(x, err, what, NULL);
	}
	x->at++;
	return 0;
}

/* A JSON number, or a string with a size. */
static int read_value(struct demand_text *x, struct err *err)
{
	bool quoted = peek(x) == '"';
	char word[MAX_WORD];
	int rc;

	x->at += quoted;
	rc = next_word(x, quoted ? "\"\n" : " \t\r\n,[]", word, err);
	if (rc == 0 && quoted) {
		rc = expect(x, '"', err);
	}
	return rc ? rc : take_word(x, word, err);
}

/* Array of arrays; x->at is at its bracket. */
static int read_arrays(struct demand_text *x, struct err *err)
{
	int rc = expect(x, '[', err);

	for (bool more = rc == 0; more; x->at += more) {
		if ((rc = expect(x, '[', err))) {
			return rc;
		}
		for (bool next = true; next; x->at += next) {
			if ((rc = read_value(x, err))) {
				return rc;
			}
			next = peek(x) == ',';
		}
		if ((rc = expect(x, ']', err)) || (rc = end_row(x, err))) {
			return rc;
		}
		more = peek(x) == ',';
	}
	if (rc || (rc = expect(x, ']', err))) {
		return rc;
	}
	return peek(x) ? err_set(err, WEFT_EINVAL, "something follows the matrix") : 0;
}

/* ---- whole units ---- */

/* digits x 10^by; negative: too large. */
static int64_t scaled(int64_t digits, int by)
{
	for (; by > 0 && digits > 0; by--) {
		if (digits > INT64_MAX / 10) {
			return -1;
		}
		digits *= 10;
	}
	return digits;
}

/* All cells as multiples of the largest unit that they are multiples of. */
static int make_whole(struct demand_text *x, struct flow_demands *d, struct err *err)
{
	size_t all = (size_t)x->n * x->n;
	int64_t gcd = 0;
	int least = INT32_MAX;

	for (size_t i = 0; i < all; i++) {
		if (x->cells[i].digits && x->cells[i].power < least) {
			least = x->cells[i].power;
		}
	}
	if (least == INT32_MAX) {
		return err_set(err, WEFT_EINVAL, "all demands are 0: nothing is to be sent");
	}
	for (size_t i = 0; i < all; i++) {
		d->size[i] = scaled(x->cells[i].digits, x->cells[i].power - least);
		if (d->size[i] < 0) {
			break;
		}
		gcd = rat_gcd(d->size[i], gcd);
	}
	gcd = gcd ? gcd : 1;
	for (size_t i = 0; i < all; i++) {
		x->row = (int)(i / (size_t)x->n);
		x->column = (int)(i % (size_t)x->n);
		if (d->size[i] < 0 || d->size[i] / gcd > FLOW_MAX_DEMAND) {
			return wrong(x, err, "too large beside the smallest part of the others",
				     NULL);
		}
		d->size[i] /= gcd;
		d->largest = d->size[i] > d->largest ? d->size[i] : d->largest;
	}
	if (!x->sized) {
		return 0;
	}
	d->bytes = scaled(gcd, least);
	return d->bytes >= 0 && d->bytes <= INT64_MAX / d->largest / x->n
		       ? 0 : err_set(err, WEFT_ELIMIT, "the sizes do not fit 64 bits");
}

int flow_demands_parse(const char *text, size_t len, int n, struct flow_demands *out,
		       struct err *err)
{
	struct demand_text x = { .at = text, .end = text + len, .n = n };
	size_t all = (size_t)n * n;
	int rc;

	*out = (struct flow_demands){ .n = n };
	if (n < 2 || n > FLOW_MAX_DEMAND_RANKS) {
		return err_set(err, WEFT_ELIMIT, "demands are for 2 to %d ranks, not %d",
			       FLOW_MAX_DEMAND_RANKS, n);
	}
	if (memchr(text, '\0', len)) {
		return err_set(err, WEFT_EINVAL, "a zero byte: this is no text");
	}
	x.cells = x_new(all, sizeof(*x.cells));
	out->size = x_new(all, sizeof(*out->size));
	rc = peek(&x) == '[' ? read_arrays(&x, err) : read_lines(&x, err);
	if (rc == 0 && x.row < n) {
		rc = err_set(err, WEFT_EINVAL, "%d rows for %d ranks", x.row, n);
	}
	if (rc == 0) {
		rc = make_whole(&x, out, err);
	}
	free(x.cells);
	if (rc) {
		flow_demands_fini(out);
	}
	return rc;
}

bool flow_demands_kept(const struct flow_demands *d, const int32_t *image)
{
	for (int u = 0; d && u < d->n; u++) {
		for (int v = 0; v < d->n; v++) {
			if (flow_demand(d, u, v) != flow_demand(d, image[u], image[v])) {
				return false;
			}
		}
	}
	return true;
}
