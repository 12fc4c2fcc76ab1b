/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Edge lists that people write; see topo_from_edges() in topology.h.
 *
 * A line is cut into words, of which the first says what it is: arcs begin with
 * a number, everything else with a keyword. What the lines say is collected, as
 * the number of nodes may be known only at the end, and made into a digraph then.
 * Errors have the line.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/map.h"
#include "topology/private.h"

#define MAX_WORDS 16
#define MOST INT64_C(1000000000000)

/* A limit and its arcs, by their place in the list. */
struct topo_edge_limit {
	int64_t cap;
	int line;
	VEC(int32_t) arcs;
};

struct topo_edge_lines {
	const char *at, *end;
	int number;
	char text[256];
	const char *word[MAX_WORDS];
	int words;
	bool both;		/* "undirected" was given */
	bool sized;		/* "nodes N" was given */
	int64_t nodes;
	int64_t largest;	/* node number; -1: none yet */
	bool *has_kind;		/* TOPO_MAX_NODES of these two; NULL: no node */
	struct topo_node *kind;
	VEC(struct topo_arc) arcs;
	VEC(struct topo_edge_limit *) limits;
	struct strmap limit_of;	/* by name */
};

static int fact(struct topo_edge_lines *l, struct err *err, const char *what, const char *word)
{
	err_set(err, WEFT_EINVAL, what, word);
	if (err) {
		err_at(err, NULL, l->number, 0);
	}
	return WEFT_EINVAL;
}

/* Cuts the next line with words; false at the end. A line that is too long,
 * holds a zero byte or has too many words gets the number of words -1. */
static bool next_line(struct topo_edge_lines *l)
{
	while (l->at < l->end) {
		const char *stop = memchr(l->at, '\n', (size_t)(l->end - l->at));
		size_t len = (size_t)((stop ? stop : l->end) - l->at);
		const char *from = l->at;
		char *save = NULL;

		l->at = stop ? stop + 1 : l->end;
		l->number++;
		l->words = -1;
		if (len >= sizeof(l->text) || memchr(from, '\0', len)) {
			return true;
		}
		memcpy(l->text, from, len);
		l->text[len] = '\0';
		l->text[strcspn(l->text, "#")] = '\0';
		l->words = 0;
		for (char *w = strtok_r(l->text, " \t\r", &save); w;
		     w = strtok_r(NULL, " \t\r", &save)) {
			if (l->words == MAX_WORDS) {
				l->words = -1;
				return true;
			}
			l->word[l->words++] = w;
		}
		if (l->words > 0) {
			return true;
		}
	}
	return false;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static int number(struct topo_edge_lines *l, const char *what, const char *word,
		  int64_t least, int64_t most, int64_t *out, struct err *err)
{
	char *end;
	long long v;

	errno = 0;
	v = strtoll(word, &end, 10);
	if (!is_digit(*word) || *end) {
		return fact(l, err, "expected a whole number, found '%s'", word);
	}
	if (errno || v > most || v < least) {
		char text[300];

		snprintf(text, sizeof(text), "%s %s", what, word);
		fact(l, err, "%s is out of range", text);
		if (err) {
			err_hint(err, "expected %" PRId64 " to %" PRId64,
				 least, most);
		}
		return WEFT_EINVAL;
	}
	*out = v;
	return 0;
}

static int64_t last_node(const struct topo_edge_lines *l)
{
	return l->sized ? l->nodes - 1 : TOPO_MAX_NODES - 1;
}

static void see_node(struct topo_edge_lines *l, int64_t node)
{
	l->largest = node > l->largest ? node : l->largest;
}

/* ---- nodes ---- */

/* "8" or "8-11". */
static int read_range(struct topo_edge_lines *l, int64_t *first, int64_t *last, struct err *err)
{
	char from[sizeof(l->text)];
	const char *dash = strchr(l->word[1], '-');
	size_t len = dash ? (size_t)(dash - l->word[1]) : strlen(l->word[1]);
	int rc;

	memcpy(from, l->word[1], len);
	from[len] = '\0';
	rc = number(l, "node", from, 0, last_node(l), first, err);
	if (rc) {
		return rc;
	}
	*last = *first;
	return dash ? number(l, "node", dash + 1, *first, last_node(l), last, err) : 0;
}

/* The abilities from word 2 on; without any the usual ones. */
static int read_abilities(struct topo_edge_lines *l, enum topo_kind kind, unsigned *flags,
			  struct err *err)
{
	*flags = l->words > 2 ? 0 : topo_usual_flags(kind);
	if (l->words == 3 && strcmp(l->word[2], "none") == 0) {
		return 0;
	}
	for (int i = 2; i < l->words; i++) {
		unsigned flag = topo_find_ability(l->word[i]);

		if (flag == 0) {
			return fact(l, err, "expected copy, reduce, store, or none alone, "
				    "found '%s'", l->word[i]);
		}
		*flags |= flag;
	}
	return 0;
}

static void make_room_for_kinds(struct topo_edge_lines *l)
{
	if (!l->kind) {
		l->kind = x_new(TOPO_MAX_NODES, sizeof(*l->kind));
		l->has_kind = x_new(TOPO_MAX_NODES, sizeof(*l->has_kind));
	}
}

/* switch 8-11 copy */
static int read_kind(struct topo_edge_lines *l, enum topo_kind kind, struct err *err)
{
	int64_t first, last;
	unsigned flags;
	int rc;

	if (l->words < 2) {
		return fact(l, err, "expected %s NODE or FIRST-LAST, and what it can do",
			    l->word[0]);
	}
	if ((rc = read_range(l, &first, &last, err)) ||
	    (rc = read_abilities(l, kind, &flags, err))) {
		return rc;
	}
	make_room_for_kinds(l);
	for (int64_t u = first; u <= last; u++) {
		if (l->has_kind[u]) {
			return fact(l, err, "%s: a node of these has its kind already", l->word[1]);
		}
		l->has_kind[u] = true;
		l->kind[u] = (struct topo_node){ (uint8_t)kind, (uint8_t)flags };
	}
	see_node(l, last);
	return 0;
}

/* ---- limits ---- */

static bool is_name(const char *word)
{
	return is_letter(*word) &&
	       word[strspn(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				 "0123456789_.-")] == '\0';
}

/* limit memory0 50 */
static int read_limit(struct topo_edge_lines *l, struct err *err)
{
	struct topo_edge_limit *limit;
	int64_t cap;
	int rc;

	if (l->words != 3) {
		return fact(l, err, "expected %s NAME CAPACITY", l->word[0]);
	}
	if (!is_name(l->word[1])) {
		return fact(l, err, "'%s' is no name of a limit: expected a letter, then letters, "
			    "digits, '_', '.' and '-'", l->word[1]);
	}
	if (strmap_get(&l->limit_of, l->word[1])) {
		return fact(l, err, "there is a limit '%s' already", l->word[1]);
	}
	rc = number(l, "capacity", l->word[2], 1, MOST, &cap, err);
	if (rc) {
		return rc;
	}
	limit = x_new(1, sizeof(*limit));
	vec_push(&l->limits, limit);
	limit->cap = cap;
	limit->line = l->number;
	strmap_set(&l->limit_of, l->word[1], limit);
	return 0;
}

/* The last `arcs` arcs come under the limits that words from `first` on name. */
static int read_limits_of_arc(struct topo_edge_lines *l, int first, int arcs, struct err *err)
{
	for (int i = first; i < l->words; i++) {
		struct topo_edge_limit *limit = strmap_get(&l->limit_of, l->word[i]);

		if (!limit) {
			return fact(l, err, "expected a number or the name of a limit above, "
				    "found '%s'", l->word[i]);
		}
		for (int k = arcs; k > 0; k--) {
			vec_push(&limit->arcs, (int32_t)l->arcs.n - k);
		}
	}
	return 0;
}

/* ---- arcs ---- */

/* Words that are numbers, or should be: all but names at the end. */
static int count_numbers(const struct topo_edge_lines *l)
{
	int n = 0;

	while (n < l->words && (n < 2 || !is_letter(*l->word[n]))) {
		n++;
	}
	return n;
}

/* 0 1 4 500 2 memory0 */
static int read_arc(struct topo_edge_lines *l, struct err *err)
{
	static const char *const what[] = {
		"source", "target", "capacity", "latency in ns", "cost",
	};
	int numbers = count_numbers(l), rc = 0;
	int64_t v[5] = { 0, 0, 1, 0, 1 };

	if (numbers < 2 || numbers > 5) {
		return fact(l, err, "expected SOURCE TARGET [CAPACITY "
			    "[LATENCY_NS [COST]]] [LIMIT ...], found '%s ...'", l->word[0]);
	}
	for (int i = 0; i < numbers && rc == 0; i++) {
		rc = number(l, what[i], l->word[i], i == 2,
			    i < 2 ? last_node(l) : i < 4 ? MOST : TOPO_MAX_COST, &v[i], err);
	}
	if (rc) {
		return rc;
	}
	see_node(l, v[0]);
	see_node(l, v[1]);
	for (int i = 0; i < 1 + l->both; i++) {
		if (l->arcs.n == TOPO_MAX_ARCS) {
			return fact(l, err, "more arcs than a topology may "
				    "have%s", "");
		}
		vec_push(&l->arcs, (struct topo_arc){ (int32_t)v[i], (int32_t)v[1 - i],
						      v[2], v[3], v[4] });
	}
	return read_limits_of_arc(l, numbers, 1 + l->both, err);
}

static int read_line(struct topo_edge_lines *l, struct err *err)
{
	int kind = l->words > 0 ? topo_find_kind(l->word[0]) : -1;

	if (l->words < 0) {
		return fact(l, err, "expected a line of a few short words%s", "");
	}
	if (strcmp(l->word[0], "undirected") == 0 && l->words == 1 && l->arcs.n == 0) {
		l->both = true;
		return 0;
	}
	if (strcmp(l->word[0], "nodes") == 0 && l->words == 2 && l->largest < 0 && !l->sized) {
		l->sized = true;
		return number(l, "nodes", l->word[1], 1, TOPO_MAX_NODES, &l->nodes, err);
	}
	if (strcmp(l->word[0], "limit") == 0) {
		return read_limit(l, err);
	}
	return kind >= 0 ? read_kind(l, (enum topo_kind)kind, err) : read_arc(l, err);
}

/* ---- the digraph ---- */

static int add_limits(struct topo_edge_lines *l, struct topo *t, struct err *err)
{
	for (size_t i = 0; i < l->limits.n; i++) {
		const struct topo_edge_limit *limit = l->limits.v[i];
		int rc = topo_add_limit(t, limit->arcs.v, (int)limit->arcs.n, limit->cap, err);

		if (rc) {
			if (err) {
				err_at(err, NULL, limit->line, 0);
			}
			return rc;
		}
	}
	return 0;
}

static int fill_graph(struct topo_edge_lines *l, struct topo *t, struct err *err)
{
	int rc = 0;

	for (int u = 0; l->kind && u < topo_n(t); u++) {
		if (l->has_kind[u]) {
			topo_set_node(t, u, (enum topo_kind)l->kind[u].kind, l->kind[u].flags);
		}
	}
	for (size_t a = 0; a < l->arcs.n && !rc; a++) {
		const struct topo_arc *arc = &l->arcs.v[a];

		rc = topo_add_arc_like(t, arc->src, arc->dst, arc, err);
	}
	if (rc || (rc = add_limits(l, t, err))) {
		return rc;
	}
	topo_freeze(t);
	return topo_check_order(t, err);
}

static int make_graph(struct topo_edge_lines *l, struct topo **out, struct err *err)
{
	struct topo *t = NULL;
	int rc = topo_new((int)(l->sized ? l->nodes : l->largest + 1), &t, err);

	if (rc || (rc = fill_graph(l, t, err))) {
		topo_free(t);
		return rc;
	}
	*out = t;
	return 0;
}

static void free_lines(struct topo_edge_lines *l)
{
	for (size_t i = 0; i < l->limits.n; i++) {
		vec_fini(&l->limits.v[i]->arcs);
		free(l->limits.v[i]);
	}
	vec_fini(&l->limits);
	strmap_fini(&l->limit_of);
	vec_fini(&l->arcs);
	free(l->has_kind);
	free(l->kind);
}

int topo_from_edges(const char *text, size_t len, struct topo **out, struct err *err)
{
	struct topo_edge_lines l = { .at = text, .end = text + len, .largest = -1 };
	int rc = 0;

	while (rc == 0 && next_line(&l)) {
		rc = read_line(&l, err);
	}
	if (rc == 0 && l.arcs.n == 0) {
		rc = err_set(err, WEFT_EINVAL, "an edge list without arcs");
	}
	if (rc == 0) {
		rc = make_graph(&l, out, err);
	}
	free_lines(&l);
	return rc;
}
