/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The .net and .trf files that the literature's instances come in: numbers in
 * pairs, one pair a line, after a line that announces how many there are.
 * Blank lines are skipped anywhere. Every mistake is reported with its line, and
 * reading goes on with the next.
 */
#include <stdlib.h>

#include "lib/base/map.h"
#include "rwa/mesh/private.h"

/* Where reading is: `at` in the terminated text of the file, its line from
 * 1. */
struct text {
	const char *name;
	const char *at;
	int line;
	struct err_list *errs;
	int rc;			/* of the first mistake, 0: none */
};

/* Adds file and line to the error. Returns its code. */
static int fail(const struct text *t, struct err *err)
{
	err_at(err, t->name, t->line, 0);
	return err->code;
}

/* Notes what is wrong with a line and goes to its end. */
static void note(struct text *t, const struct err *err)
{
	err_list_add(t->errs, err);
	t->rc = t->rc ? t->rc : err->code;
	while (*t->at && *t->at != '\n') {
		t->at++;
	}
}

/* Within a line. */
static void skip_blanks(struct text *t)
{
	while (*t->at == ' ' || *t->at == '\t' || *t->at == '\r') {
		t->at++;
	}
}

/* To the next line that has something on it. */
static void skip_lines(struct text *t)
{
	for (skip_blanks(t); *t->at == '\n'; skip_blanks(t)) {
		t->at++;
		t->line++;
	}
}

/* A whole number on this line, at most 10^9. */
static int read_number(struct text *t, const char *what, int32_t *out, struct err *err)
{
	int64_t v = 0;

	skip_blanks(t);
	if (*t->at < '0' || *t->at > '9') {
		err_set(err, WEFT_EINVAL, "%s is %s", what,
			*t->at == '\n' || !*t->at ? "missing"
						  : "not a whole number");
		return fail(t, err);
	}
	for (; *t->at >= '0' && *t->at <= '9'; t->at++) {
		v = 10 * v + (*t->at - '0');
		if (v > 1000000000) {
			err_set(err, WEFT_EINVAL, "%s is too large", what);
			return fail(t, err);
		}
	}
	*out = (int32_t)v;
	return 0;
}

/* Nothing may follow on the line, whose end is not passed. */
static int end_line(struct text *t, struct err *err)
{
	skip_blanks(t);
	if (*t->at && *t->at != '\n') {
		err_set(err, WEFT_EINVAL, "more on the line than belongs "
					  "there");
		return fail(t, err);
	}
	return 0;
}

/* A line of two numbers. */
static int read_pair(struct text *t, const char *first, const char *second,
		     int32_t *a, int32_t *b, struct err *err)
{
	int rc = read_number(t, first, a, err);

	if (rc || (rc = read_number(t, second, b, err))) {
		return rc;
	}
	return end_line(t, err);
}

/* The k-th of `total` lines of pairs is next. */
static int expect_more(struct text *t, const char *what, int32_t k, int32_t total, struct err *err)
{
	skip_lines(t);
	if (*t->at) {
		return 0;
	}
	err_set(err, WEFT_EINVAL, "the file ends after %d of %d %s", k, total, what);
	return fail(t, err);
}

/* No more lines may follow than were announced. */
static int expect_end(struct text *t, const char *what, int32_t total, struct err *err)
{
	skip_lines(t);
	if (!*t->at) {
		return 0;
	}
	err_set(err, WEFT_EINVAL, "more than the %d %s announced", total, what);
	return fail(t, err);
}

/* An arc with one fibre; seen: lines of those before, by their ends. */
static int read_arc(struct text *t, struct rwa_mesh *m, struct u64map *seen, struct err *err)
{
	struct rwa_mesh_arc arc = { .fibres = 1 };
	uint64_t key, line;
	int rc = read_pair(t, "where the arc begins", "where the arc ends",
			   &arc.src, &arc.dst, err);

	if (rc) {
		return rc;
	}
	key = (uint64_t)arc.src << 32 | (uint32_t)arc.dst;
	if (u64map_get(seen, key, &line)) {
		err_set(err, WEFT_EINVAL, "arc %d -> %d again: line %d has it",
			arc.src, arc.dst, (int)line);
		return fail(t, err);
	}
	u64map_set(seen, key, (uint64_t)t->line);
	return rwa_mesh_add_arc(m, &arc, err) ? fail(t, err) : 0;
}

/* The lines of arcs, as many as announced. */
static void read_arcs(struct text *t, struct rwa_mesh *m, int32_t arcs)
{
	struct u64map seen = { 0 };
	struct err err;
	int rc = 0;

	for (int32_t k = 0; !rc && k < arcs; k++) {
		if ((rc = expect_more(t, "arcs", k, arcs, &err)) || read_arc(t, m, &seen, &err)) {
			note(t, &err);
		}
	}
	if (!rc && expect_end(t, "arcs", arcs, &err)) {
		note(t, &err);
	}
	u64map_fini(&seen);
}

int rwa_mesh_read_net(const char *name, const char *text, struct rwa_mesh **out,
		      struct err_list *errs)
{
	struct text t = { .name = name, .at = text, .line = 1, .errs = errs };
	struct rwa_mesh *m = NULL;
	int32_t nodes, arcs;
	struct err err;
	int rc;

	skip_lines(&t);
	rc = read_pair(&t, "the number of nodes", "the number of arcs", &nodes, &arcs, &err);
	if (!rc && rwa_mesh_new(nodes, &m, &err)) {
		rc = fail(&t, &err);
	}
	if (rc) {
		note(&t, &err);
	} else {
		read_arcs(&t, m, arcs);
	}
	if (t.rc) {
		rwa_mesh_free(m);
		m = NULL;
	}
	*out = m;
	return t.rc;
}

/* One demand; those of a node to itself are only counted. */
static int read_demand(struct text *t, struct rwa_mesh *m, struct err *err)
{
	struct rwa_mesh_demand d = { .count = 1 };
	int rc = read_pair(t, "the source", "the destination", &d.src, &d.dst, err);

	if (!rc && d.src == d.dst && d.src < (int32_t)m->nodes.n) {
		m->self_demands++;
	} else if (!rc && rwa_mesh_add_demand(m, &d, err)) {
		rc = fail(t, err);
	}
	return rc;
}

int rwa_mesh_read_trf(struct rwa_mesh *m, const char *name, const char *text,
		      struct err_list *errs)
{
	struct text t = { .name = name, .at = text, .line = 1, .errs = errs };
	int32_t total;
	struct err err;
	int rc;

	skip_lines(&t);
	if (read_number(&t, "the number of demands", &total, &err) || end_line(&t, &err)) {
		note(&t, &err);
		return t.rc;
	}
	rc = 0;
	for (int32_t k = 0; !rc && k < total; k++) {
		if ((rc = expect_more(&t, "demands", k, total, &err)) ||
		    read_demand(&t, m, &err)) {
			note(&t, &err);
		}
	}
	if (!rc && expect_end(&t, "demands", total, &err)) {
		note(&t, &err);
	}
	return t.rc;
}
