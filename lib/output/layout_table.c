/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Structs as bytes: one walk to write, one to read, one to free, each a switch over the kinds of
 * fields. What is read is entered into its struct before the next byte is looked at, so that
 * whatever has been read when an error is found is freed by the same table.
 */
#include "lib/output/layout_table.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"

#define ROOM_PER_BYTE 16
#define MIN_ROOM ((size_t)1 << 20)

struct any_int {
	int v;
};

struct any_int64 {
	int64_t v;
};

const struct layout layout_int = { sizeof(int), FIELDS(NUMBER(any_int, v)) };
const struct layout layout_int64 = { sizeof(int64_t), FIELDS(NUMBER(any_int64, v)) };
const struct layout layout_err = {
	sizeof(struct err),
	FIELDS(NUMBER(err, code), NUMBER(err, line), NUMBER(err, col), CHARS(err, file),
	       CHARS(err, msg), CHARS(err, hint)),
};

/* A VEC of anything. */
struct any_vec {
	char *v;
	size_t n, cap;
};

/* ---- counts and elements --------------------------------------------------- */

static uint64_t get_count(const struct layout_field *f, const void *at)
{
	uint64_t n = 0;

	if (f->kind == LAYOUT_VEC) {
		return ((const struct any_vec *)((const char *)at + f->at))->n;
	}
	memcpy(&n, (const char *)at + f->n_at, f->n_size);
	return n;
}

static void set_count(const struct layout_field *f, void *at, uint64_t n)
{
	if (f->kind == LAYOUT_VEC) {
		((struct any_vec *)((char *)at + f->at))->n = n;
		((struct any_vec *)((char *)at + f->at))->cap = n;
	} else {
		memcpy((char *)at + f->n_at, &n, f->n_size);
	}
}

static char *get_pointer(const struct layout_field *f, const void *at)
{
	char *p;

	memcpy(&p, (const char *)at + f->at, sizeof(p));
	return p;
}

static void set_pointer(const struct layout_field *f, void *at, void *p)
{
	memcpy((char *)at + f->at, &p, sizeof(p));
}

/* ---- writing ----------------------------------------------------------------- */

static void put(struct buf *out, uint64_t n)
{
	buf_add(out, &n, sizeof(n));
}

static void put_bytes(struct buf *out, const char *bytes, size_t len)
{
	put(out, len);
	if (len > 0) {
		buf_add(out, bytes, len);
	}
}

static void write_elements(const struct layout *l, const char *v, uint64_t n, struct buf *out)
{
	put(out, n);
	for (uint64_t i = 0; i < n; i++) {
		layout_write(l, v + i * l->size, out);
	}
}

static void write_other(const struct layout_field *f, const void *at, struct buf *out)
{
	struct buf b = { 0 };

	f->other->write(at, &b);
	put_bytes(out, b.data, b.len);
	buf_fini(&b);
}

static void write_field(const struct layout_field *f, const void *from, struct buf *out)
{
	const char *at = (const char *)from + f->at;
	const char *p = f->kind >= LAYOUT_TEXT ? get_pointer(f, from) : NULL;

	switch (f->kind) {
	case LAYOUT_CHARS:
		put_bytes(out, at, strnlen(at, f->size - 1));
		break;
	case LAYOUT_TEXT:
		put_bytes(out, p, p ? strlen(p) + 1 : 0);
		break;
	case LAYOUT_BYTES:
		put_bytes(out, p, get_count(f, from));
		break;
	case LAYOUT_PART:
		layout_write(f->of, at, out);
		break;
	case LAYOUT_LIST:
	case LAYOUT_ALSO:
	case LAYOUT_VEC:
		write_elements(f->of, p, get_count(f, from), out);
		break;
	case LAYOUT_MAYBE:
		write_elements(f->of, p, p != NULL, out);
		break;
	case LAYOUT_OTHER:
		write_other(f, at, out);
		break;
	default:
		buf_add(out, at, f->size);
	}
}

void layout_write(const struct layout *l, const void *from, struct buf *out)
{
	for (const struct layout_field *f = l->fields; f->kind != LAYOUT_END; f++) {
		write_field(f, from, out);
	}
}

/* ---- reading ----------------------------------------------------------------- */

/* What is left to read. */
struct source {
	const char *at;
	size_t left;
	size_t room;		/* bytes of memory that its elements may still take */
};

static bool take(struct source *s, void *to, size_t n)
{
	if (n > s->left) {
		return false;
	}
	memcpy(to, s->at, n);
	s->at += n;
	s->left -= n;
	return true;
}

/* The count of what takes at least so many bytes each. */
static bool take_count(struct source *s, size_t least, uint64_t *n)
{
	return take(s, n, sizeof(*n)) && *n <= s->left / least && *n <= INT32_MAX;
}

/* The fewest bytes that a struct is written in. */
static size_t min_bytes(const struct layout *l)
{
	size_t n = 0;

	for (const struct layout_field *f = l->fields; f->kind != LAYOUT_END; f++) {
		n += f->kind < LAYOUT_CHARS ? f->size : f->kind == LAYOUT_PART ? min_bytes(f->of)
									       : sizeof(uint64_t);
	}
	return n;
}

static int read_struct(const struct layout *l, void *to, struct source *s, struct err *err);

static int cut(const struct layout_field *f, struct err *err)
{
	return err_set(err, WEFT_EINVAL, "%s: cut off, or of no such length", f->name);
}

/* Into the struct at once, so that whoever frees it after an error finds all. */
static int read_elements(const struct layout_field *f, void *to, struct source *s, struct err *err)
{
	uint64_t n;
	char *v;

	if (!take_count(s, min_bytes(f->of), &n) || (f->kind == LAYOUT_MAYBE && n > 1) ||
	    (f->kind == LAYOUT_ALSO && n != get_count(f, to))) {
		return cut(f, err);
	}
	if (n == 0) {
		return 0;	/* NULL, as it was */
	}
	if (n > s->room / f->of->size) {
		return err_set(err, WEFT_ELIMIT, "%s: too many for so few bytes", f->name);
	}
	s->room -= n * f->of->size;
	v = x_new(n, f->of->size);
	set_pointer(f, to, v);
	if (f->kind != LAYOUT_MAYBE) {
		set_count(f, to, n);
	}
	for (uint64_t i = 0; i < n; i++) {
		int rc = read_struct(f->of, v + i * f->of->size, s, err);

		if (rc) {
			return err_wrap(err, "%s", f->name);
		}
	}
	return 0;
}

/* A string: terminated, and with no NUL before. Bytes: any. */
static int read_text(const struct layout_field *f, void *to, struct source *s, struct err *err)
{
	uint64_t n;
	char *text;

	if (!take_count(s, 1, &n)) {
		return cut(f, err);
	}
	if (n == 0 && f->kind == LAYOUT_TEXT) {
		return 0;
	}
	text = x_alloc(n + 1, 1);
	take(s, text, n);
	text[n] = '\0';
	set_pointer(f, to, text);
	if (f->kind == LAYOUT_BYTES) {
		set_count(f, to, n);
	} else if (strlen(text) + 1 != n) {
		return err_set(err, WEFT_EINVAL, "%s: no text", f->name);
	}
	return 0;
}

static int read_chars(const struct layout_field *f, char *to, struct source *s, struct err *err)
{
	uint64_t n;

	if (!take_count(s, 1, &n) || n >= f->size) {
		return cut(f, err);
	}
	take(s, to, n);
	return strlen(to) == n ? 0 : err_set(err, WEFT_EINVAL, "%s: no text", f->name);
}

static int read_other(const struct layout_field *f, void *to, struct source *s, struct err *err)
{
	uint64_t n;

	if (!take_count(s, 1, &n)) {
		return cut(f, err);
	}
	s->at += n;
	s->left -= n;
	return f->other->read(to, s->at - n, n, err) ? err_wrap(err, "%s", f->name) : 0;
}

static int read_plain(const struct layout_field *f, char *to, struct source *s, struct err *err)
{
	if (f->kind == LAYOUT_FLAG && s->left > 0 && (unsigned char)*s->at > 1) {
		return err_set(err, WEFT_EINVAL, "%s: neither yes nor no", f->name);
	}
	return take(s, to, f->size) ? 0 : cut(f, err);
}

static int read_field(const struct layout_field *f, void *to, struct source *s, struct err *err)
{
	char *at = (char *)to + f->at;

	switch (f->kind) {
	case LAYOUT_CHARS:
		return read_chars(f, at, s, err);
	case LAYOUT_TEXT:
	case LAYOUT_BYTES:
		return read_text(f, to, s, err);
	case LAYOUT_PART:
		return read_struct(f->of, at, s, err);
	case LAYOUT_LIST:
	case LAYOUT_ALSO:
	case LAYOUT_VEC:
	case LAYOUT_MAYBE:
		return read_elements(f, to, s, err);
	case LAYOUT_OTHER:
		return read_other(f, at, s, err);
	default:
		return read_plain(f, at, s, err);
	}
}

static int read_struct(const struct layout *l, void *to, struct source *s, struct err *err)
{
	int rc = 0;

	for (const struct layout_field *f = l->fields; f->kind != LAYOUT_END && rc == 0; f++) {
		rc = read_field(f, to, s, err);
	}
	return rc;
}

int layout_read(const struct layout *l, void *to, const void *data, size_t len, struct err *err)
{
	struct source s = { data, len, ROOM_PER_BYTE * len + MIN_ROOM };
	int rc;

	memset(to, 0, l->size);
	rc = read_struct(l, to, &s, err);
	if (rc == 0 && s.left > 0) {
		rc = err_set(err, WEFT_EINVAL, "%zu bytes follow", s.left);
	}
	if (rc) {
		layout_fini(l, to);
	}
	return rc;
}

/* ---- freeing ----------------------------------------------------------------- */

static void fini_field(const struct layout_field *f, char *at)
{
	uint64_t n = f->kind == LAYOUT_MAYBE ? 1 : 0;
	char *p;

	if (f->kind == LAYOUT_PART) {
		layout_fini(f->of, at + f->at);
	} else if (f->kind == LAYOUT_OTHER) {
		f->other->fini(at + f->at);
	} else if (f->kind >= LAYOUT_TEXT) {
		p = get_pointer(f, at);
		n = f->of && f->kind != LAYOUT_MAYBE ? get_count(f, at) : n;
		for (uint64_t i = 0; p && i < n; i++) {
			layout_fini(f->of, p + i * f->of->size);
		}
		free(p);
	}
}

void layout_fini(const struct layout *l, void *at)
{
	for (const struct layout_field *f = l->fields; f->kind != LAYOUT_END; f++) {
		fini_field(f, at);
	}
	memset(at, 0, l->size);
}
