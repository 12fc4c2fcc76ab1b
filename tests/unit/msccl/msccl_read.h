/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MSCCL XML as the runtimes read it: elements, attributes, comments and
 * nothing else of XML (docs/lowering.md). The reader keeps to the lexical
 * rules of the runtimes, which are narrower than XML; it refuses what they
 * refuse or silently misread, with line and column. Tests read what weft
 * wrote, and prove that again.
 */
#ifndef WEFT_TESTS_UNIT_MSCCL_MSCCL_READ_H
#define WEFT_TESTS_UNIT_MSCCL_MSCCL_READ_H

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/msccl/msccl.h"
#include "lib/base/alloc.h"

#define MAX_ATTRS 16	/* the runtimes drop further ones */
#define MAX_KEY 254
#define MAX_VALUE 255

struct attr {
	const char *key, *value;
	int key_len, value_len;
};

/* An element's opening tag. */
struct element {
	const char *name;
	int name_len, line, col;
	struct attr attrs[MAX_ATTRS];
	int n_attrs;
	bool closed;		/* ends in "/>" */
};

struct lex {
	const char *at, *end, *line_start;
	int line;
	enum msccl_dialect dialect;
	struct err *err;
};

static int lex_fail_at(struct lex *l, int line, int col, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

static int lex_fail_at(struct lex *l, int line, int col, const char *fmt, ...)
{
	char text[ERR_MSG_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	err_set(l->err, WEFT_EINVAL, "%s", text);
	err_at(l->err, NULL, line, col);
	return WEFT_EINVAL;
}

#define lex_fail(l, ...) \
	lex_fail_at(l, (l)->line, (int)((l)->at - (l)->line_start) + 1, \
		__VA_ARGS__)

/* ---- characters ---- */

static bool starts(const struct lex *l, const char *word)
{
	size_t n = strlen(word);

	return (size_t)(l->end - l->at) >= n && memcmp(l->at, word, n) == 0;
}

static void next_char(struct lex *l)
{
	if (*l->at++ == '\n') {
		l->line++;
		l->line_start = l->at;
	}
}

static int skip_comment(struct lex *l)
{
	l->at += 4;
	while (l->at < l->end && !starts(l, "-->")) {
		next_char(l);
	}
	if (l->at == l->end) {
		return lex_fail(l, "the comment does not end");
	}
	l->at += 3;
	return 0;
}

/* Blanks, line ends and comments between elements. */
static int skip_gap(struct lex *l)
{
	int rc = 0;

	while (l->at < l->end && !rc) {
		if (starts(l, "<!--")) {
			rc = skip_comment(l);
		} else if (*l->at == ' ' || *l->at == '\n' || *l->at == '\r') {
			next_char(l);
		} else {
			break;
		}
	}
	return rc;
}

/* ---- tags ---- */

static int read_word(struct lex *l, const char **word, int *len)
{
	*word = l->at;
	while (l->at < l->end &&
	       (isalnum((unsigned char)*l->at) || *l->at == '_')) {
		l->at++;
	}
	*len = (int)(l->at - *word);
	if (*len < 1 || *len > MAX_KEY) {
		return lex_fail(l, "expected a name of 1 to %d letters", MAX_KEY);
	}
	return 0;
}

static int read_value(struct lex *l, struct attr *a)
{
	if (!starts(l, "=\"")) {
		return lex_fail(l, "expected =\" right after the name");
	}
	l->at += 2;
	a->value = l->at;
	while (l->at < l->end && *l->at != '"') {
		if (*l->at == '\n' || *l->at == '\r') {
			return lex_fail(l, "a value must stay on one line");
		}
		if (l->at++ - a->value >= MAX_VALUE) {
			return lex_fail(l, "a value has at most %d bytes",
				    MAX_VALUE);
		}
	}
	if (l->at == l->end) {
		return lex_fail(l, "the value does not end");
	}
	a->value_len = (int)(l->at++ - a->value);
	return 0;
}

/* A blank, and an attribute. A second blank counts as an empty one. */
static int read_attr(struct lex *l, struct element *e)
{
	struct attr *a = &e->attrs[e->n_attrs];
	int rc;

	if (*l->at != ' ') {
		return lex_fail(l, "expected one blank, / or >");
	}
	if (e->n_attrs == MAX_ATTRS) {
		return lex_fail(l, "an element has at most %d attributes",
			    MAX_ATTRS);
	}
	l->at++;
	e->n_attrs++;
	*a = (struct attr){ .key = "", .value = "" };
	if (l->at == l->end || strchr(" />", *l->at)) {
		return 0;
	}
	rc = read_word(l, &a->key, &a->key_len);
	return rc ? rc : read_value(l, a);
}

static int read_open(struct lex *l, struct element *e)
{
	int rc;

	e->line = l->line;
	e->col = (int)(l->at - l->line_start) + 1;
	e->n_attrs = 0;
	if (l->at == l->end || *l->at != '<') {
		return lex_fail(l, "expected an element (there is no text, tab or "
			    "prolog in this format)");
	}
	l->at++;
	rc = read_word(l, &e->name, &e->name_len);
	while (!rc && l->at < l->end && *l->at != '>' && *l->at != '/') {
		rc = read_attr(l, e);
	}
	if (rc) {
		return rc;
	}
	e->closed = starts(l, "/>");
	if (!e->closed && !starts(l, ">")) {
		return lex_fail(l, "the element does not end");
	}
	l->at += e->closed ? 2 : 1;
	return 0;
}

static bool is_element(const struct element *e, const char *name)
{
	return (size_t)e->name_len == strlen(name) &&
	       memcmp(e->name, name, (size_t)e->name_len) == 0;
}

static int expect(struct lex *l, const struct element *e, const char *name)
{
	return is_element(e, name)
		       ? 0 : lex_fail_at(l, e->line, e->col,
				     "expected <%s>, found <%.*s>", name,
				     e->name_len > 32 ? 32 : e->name_len,
				     e->name);
}

/* True at "</name>", which is taken. *rc: the gap before it was bad. */
static bool at_close(struct lex *l, const char *name, int *rc)
{
	size_t n = strlen(name);

	*rc = skip_gap(l);
	if (*rc || !starts(l, "</")) {
		return false;
	}
	l->at += 2;
	if (!starts(l, name) || l->at + n >= l->end || l->at[n] != '>') {
		*rc = lex_fail(l, "expected </%s>", name);
		return false;
	}
	l->at += n + 1;
	return true;
}

/* ---- attributes ---- */

static const struct attr *find(const struct element *e, const char *key)
{
	for (int i = 0; i < e->n_attrs; i++) {
		if ((size_t)e->attrs[i].key_len == strlen(key) &&
		    memcmp(e->attrs[i].key, key, strlen(key)) == 0) {
			return &e->attrs[i];
		}
	}
	return NULL;
}

/* The value as a string of the caller's (MAX_VALUE + 1 bytes). */
static int get_text(struct lex *l, const struct element *e, const char *key,
		    char *out)
{
	const struct attr *a = find(e, key);

	if (!a) {
		return lex_fail_at(l, e->line, e->col, "<%.*s> lacks %s",
			       e->name_len > 32 ? 32 : e->name_len, e->name,
			       key);
	}
	memcpy(out, a->value, (size_t)a->value_len);
	out[a->value_len] = '\0';
	return 0;
}

/* Numbers as strtol of base 0 reads them, without what it would ignore. */
static int get_long(struct lex *l, const struct element *e, const char *key,
		    long long min, long long max, long long *out)
{
	char text[MAX_VALUE + 1], *end;
	int rc = get_text(l, e, key, text);

	if (rc) {
		return rc;
	}
	errno = 0;
	*out = strtoll(text, &end, 0);
	if (errno || end == text || *end || *out < min || *out > max) {
		return lex_fail_at(l, e->line, e->col,
			       "%s: expected a number in %lld..%lld", key,
			       min, max);
	}
	return 0;
}

static int get_int(struct lex *l, const struct element *e, const char *key,
		   int min, int max, int32_t *out)
{
	long long v = 0;
	int rc = get_long(l, e, key, min, max, &v);

	*out = (int32_t)v;
	return rc;
}

static int get_bool(struct lex *l, const struct element *e, const char *key,
		    bool *out)
{
	int32_t v = 0;
	int rc = get_int(l, e, key, 0, 1, &v);

	*out = v;
	return rc;
}

static int get_buf(struct lex *l, const struct element *e, const char *key,
		   uint8_t *out)
{
	static const char *const names[] = { "i", "o", "s" };
	char text[MAX_VALUE + 1];
	int rc = get_text(l, e, key, text);

	for (uint8_t b = 0; b < 3 && !rc; b++) {
		if (strcmp(text, names[b]) == 0) {
			*out = b;
			return 0;
		}
	}
	return rc ? rc : lex_fail_at(l, e->line, e->col,
				 "%s: expected i, o or s", key);
}

/* ---- elements ---- */

static int read_step(struct lex *l, const struct element *e, size_t k,
		     struct msccl_step *s)
{
	char type[MAX_VALUE + 1];
	int32_t number = 0;
	int rc, t;

	if ((rc = expect(l, e, "step")) ||
	    (rc = get_int(l, e, "s", (int)k, (int)k, &number)) ||
	    (rc = get_text(l, e, "type", type)) ||
	    (rc = get_buf(l, e, "srcbuf", &s->src_buf)) ||
	    (rc = get_int(l, e, "srcoff", -1, INT_MAX, &s->src)) ||
	    (rc = get_buf(l, e, "dstbuf", &s->dst_buf)) ||
	    (rc = get_int(l, e, "dstoff", -1, INT_MAX, &s->dst)) ||
	    (rc = get_int(l, e, "cnt", 0, MSCCL_MAX_COUNT, &s->cnt)) ||
	    (rc = get_int(l, e, "depid", -1, MSCCL_MAX_DEP_TB, &s->dep_tb)) ||
	    (rc = get_int(l, e, "deps", -1, INT_MAX, &s->dep_step)) ||
	    (rc = get_bool(l, e, "hasdep", &s->has_dep))) {
		return rc;
	}
	for (t = 0; t < MSCCL_TYPES && strcmp(msccl_type_name(t), type) != 0;) {
		t++;
	}
	if (t == MSCCL_TYPES) {
		return lex_fail_at(l, e->line, e->col, "type: unknown");
	}
	s->type = (uint8_t)t;
	return e->closed ? 0 : lex_fail_at(l, e->line, e->col,
				       "<step> must end in />");
}

static int read_tb(struct lex *l, const struct element *e, struct msccl_gpu *g)
{
	const struct msccl_limits *lim = msccl_limits(l->dialect);
	struct msccl_tb tb = { .chan = 0 };
	struct msccl_tb *at;
	struct element child;
	int32_t id = (int32_t)g->tbs.n;
	int rc;

	if ((rc = expect(l, e, "tb")) ||
	    (rc = get_int(l, e, "id", id, id, &id)) ||
	    (rc = get_int(l, e, "send", -1, MSCCL_MAX_RANKS, &tb.send)) ||
	    (rc = get_int(l, e, "recv", -1, MSCCL_MAX_RANKS, &tb.recv)) ||
	    (rc = get_int(l, e, "chan", 0, lim->channels - 1, &tb.chan))) {
		return rc;
	}
	if (id >= lim->tbs) {
		return lex_fail_at(l, e->line, e->col, "%s takes %d threadblocks",
				   lim->runtime, lim->tbs);
	}
	vec_push(&g->tbs, tb);
	if (e->closed) {
		return 0;
	}
	at = &g->tbs.v[g->tbs.n - 1];
	while (!at_close(l, "tb", &rc) && !rc) {
		struct msccl_step s = { .cnt = 0 };

		if ((rc = read_open(l, &child)) ||
		    (rc = read_step(l, &child, at->steps.n, &s))) {
			return rc;
		}
		if (at->steps.n >= (size_t)lim->steps) {
			return lex_fail_at(l, child.line, child.col,
					   "%s takes %d steps a threadblock",
					   lim->runtime, lim->steps);
		}
		vec_push(&at->steps, s);
	}
	return rc;
}

static int read_gpu(struct lex *l, const struct element *e, struct msccl *p,
		    bool *seen)
{
	struct element child;
	struct msccl_gpu *g;
	int32_t id = 0;
	int rc;

	if ((rc = expect(l, e, "gpu")) ||
	    (rc = get_int(l, e, "id", 0, p->ranks - 1, &id))) {
		return rc;
	}
	if (seen[id]) {
		return lex_fail_at(l, e->line, e->col, "gpu %d twice", id);
	}
	seen[id] = true;
	g = &p->gpus[id];
	if ((rc = get_int(l, e, "i_chunks", 0, LOWER_MAX_CELLS,
			  &g->chunks[LOWER_IN])) ||
	    (rc = get_int(l, e, "o_chunks", 0, LOWER_MAX_CELLS,
			  &g->chunks[LOWER_OUT])) ||
	    (rc = get_int(l, e, "s_chunks", 0, LOWER_MAX_CELLS,
			  &g->chunks[LOWER_SCRATCH]))) {
		return rc;
	}
	while (!e->closed && !at_close(l, "gpu", &rc) && !rc) {
		if ((rc = read_open(l, &child)) ||
		    (rc = read_tb(l, &child, g))) {
			return rc;
		}
	}
	return rc;
}

static int read_kind(struct lex *l, const struct element *e,
		     enum coll_kind *kind)
{
	char text[MAX_VALUE + 1];
	int rc = get_text(l, e, "coll", text);

	for (int k = COLL_ALLGATHER; k <= COLL_BROADCAST && !rc; k++) {
		if (strcmp(text, lower_kind_name((enum coll_kind)k)) == 0) {
			*kind = (enum coll_kind)k;
			return 0;
		}
	}
	return rc ? rc : lex_fail_at(l, e->line, e->col,
				 "coll: \"%.32s\" is not a collective that "
				 "weft knows in this dialect", text);
}

static int read_proto(struct lex *l, const struct element *e, enum msccl_proto *proto)
{
	char text[MAX_VALUE + 1];
	int rc = get_text(l, e, "proto", text);

	for (int k = 0; k < MSCCL_PROTOS && !rc; k++) {
		if (strcmp(text, msccl_proto_name((enum msccl_proto)k)) == 0) {
			*proto = (enum msccl_proto)k;
			return 0;
		}
	}
	return rc ? rc : lex_fail_at(l, e->line, e->col, "proto: expected Simple, LL or LL128");
}

/* Which calls the file serves, and of which size. */
static int read_calls(struct lex *l, const struct element *e, struct msccl *p)
{
	long long min = 0, max = 0;
	int rc;

	if ((rc = get_bool(l, e, "inplace", &p->inplace)) ||
	    (rc = get_bool(l, e, "outofplace", &p->outofplace)) ||
	    (rc = get_long(l, e, "minBytes", 0, LLONG_MAX, &min)) ||
	    (rc = get_long(l, e, "maxBytes", 0, LLONG_MAX, &max))) {
		return rc;
	}
	if (max < min && max != 0) {
		return lex_fail_at(l, e->line, e->col, "maxBytes is below minBytes");
	}
	p->min_bytes = min;
	p->max_bytes = max;
	return 0;
}

static int read_algo(struct lex *l, const struct element *e, struct msccl *p)
{
	const struct msccl_limits *lim = msccl_limits(l->dialect);
	const struct attr *name = find(e, "name");
	int32_t ranks = 0;
	int rc;

	if ((rc = expect(l, e, "algo")) ||
	    (rc = get_int(l, e, "ngpus", 2, MSCCL_MAX_RANKS, &ranks)) ||
	    (rc = get_int(l, e, "nchunksperloop", 1, LOWER_MAX_CELLS, &p->loop)) ||
	    (rc = get_int(l, e, "nchannels", 1, lim->channels, &p->channels)) ||
	    (rc = read_proto(l, e, &p->proto)) ||
	    (rc = read_kind(l, e, &p->kind)) ||
	    (rc = read_calls(l, e, p))) {
		return rc;
	}
	if (name) {
		snprintf(p->name, sizeof(p->name), "%.*s", name->value_len,
			 name->value);
	}
	p->gpus = x_new((size_t)ranks, sizeof(*p->gpus));
	p->ranks = ranks;
	return 0;
}

/* The one rank that never receives, else 0. */
static int find_root(const struct msccl *p)
{
	int root = -1;

	for (int r = 0; r < p->ranks && p->kind == COLL_BROADCAST; r++) {
		const struct msccl_gpu *g = &p->gpus[r];
		bool receives = false;

		for (size_t t = 0; t < g->tbs.n; t++) {
			receives |= g->tbs.v[t].recv >= 0;
		}
		if (!receives) {
			root = root == -1 ? r : 0;
		}
	}
	return root > 0 ? root : 0;
}

static int read_file(struct lex *l, struct msccl *p)
{
	struct element root, child;
	bool seen[MSCCL_MAX_RANKS] = { false };
	int rc;

	if ((rc = skip_gap(l)) || (rc = read_open(l, &root)) ||
	    (rc = read_algo(l, &root, p))) {
		return rc;
	}
	while (!root.closed && !at_close(l, "algo", &rc) && !rc) {
		if ((rc = read_open(l, &child)) ||
		    (rc = read_gpu(l, &child, p, seen))) {
			return rc;
		}
	}
	if (rc || (rc = skip_gap(l))) {
		return rc;
	}
	if (l->at < l->end) {
		return lex_fail(l, "text after </algo>");
	}
	p->root = find_root(p);
	return 0;
}

/* The program of a text; msccl_fini. It does not check what msccl_check does.
 * The root of a broadcast, which the format does not tell, is the one rank
 * that never receives. */
static int msccl_read(const char *text, size_t len, enum msccl_dialect dialect,
		      struct msccl *out, struct err *err)
{
	struct lex l = { .at = text, .end = text + len, .line_start = text,
			 .line = 1, .dialect = dialect, .err = err };
	int rc;

	*out = (struct msccl){ .ranks = 0 };
	rc = read_file(&l, out);
	if (rc) {
		msccl_fini(out);
		out->ranks = 0;
	}
	return rc;
}

#endif
