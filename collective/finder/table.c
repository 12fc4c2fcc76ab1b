/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of frontiers that weft has in it, and texts like it.
 *
 * A search for Cayley graphs takes a second or two, and longer searches find
 * more, so what long ones found is in frontiers.txt, which the assembler puts into the
 * program as it is. A line is found by halving the text. Its figures are computed again
 * as it is read, where that takes a moment only: of digraphs that are small, or most of whose
 * nodes a group makes alike. So a table that is wrong may lose a point, but not promise one.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collective/finder/private.h"
#include "lib/base/alloc.h"

/* Effort up to which figures are computed again: a millisecond. */
#define QUICK 300000

extern const char finder_table_text[], finder_table_end[];

__asm__(".pushsection .rodata\n"
	"finder_table_text:\n"
	".incbin \"collective/finder/frontiers.txt\"\n"
	"finder_table_end:\n"
	".popsection\n");

const char *finder_table_shipped(size_t *len)
{
	*len = (size_t)(finder_table_end - finder_table_text);
	return finder_table_text;
}

static int64_t key_of(int n, int d, bool both)
{
	return (int64_t)n << 32 | (int64_t)d << 1 | both;
}

/* The key of a line that begins at `at`; -1 for a line that has none. */
static int64_t read_key(const char *at, const char *end)
{
	char head[40] = { 0 }, way[5];
	int n, d;

	memcpy(head, at, end - at < 39 ? (size_t)(end - at) : 39);
	if (sscanf(head, "%d %d %4s", &n, &d, way) != 3) {
		return -1;
	}
	return key_of(n, d, strcmp(way, "both") == 0);
}

/* The line of a key, without its end; NULL when there is none. */
static const char *find_line(const char *text, size_t len, int64_t key, size_t *line_len)
{
	const char *from = text, *end = text + len;

	while (from < end) {
		const char *line = from + (end - from) / 2, *next;
		int64_t there;

		while (line > from && line[-1] != '\n') {
			line--;
		}
		next = memchr(line, '\n', (size_t)(end - line));
		next = next ? next : end;
		there = read_key(line, next);
		if (there == key) {
			*line_len = (size_t)(next - line);
			return line;
		}
		if (there < key) {
			from = next < end ? next + 1 : end;
		} else {
			end = line;
		}
	}
	return NULL;
}

bool coll_table_has(const struct coll_query *q)
{
	size_t len, line_len;
	const char *text = finder_table_shipped(&len);

	return find_line(text, len, key_of(q->n, q->degree, q->bidirectional), &line_len);
}

/* "3", "337/250", "." for the bound or "=" for what stands before. */
static bool read_ratio(const char *word, int n, struct bfb_ratio before, struct bfb_ratio *out)
{
	int end = 0;

	*out = (struct bfb_ratio){ n - 1, n };
	if (strcmp(word, ".") == 0) {
		return true;
	}
	*out = before;
	if (strcmp(word, "=") == 0) {
		return before.den > 0;
	}
	out->den = 1;
	return sscanf(word, "%" SCNd64 "%n/%" SCNd64 "%n", &out->num, &end, &out->den, &end) >= 1 &&
	       word[end] == '\0' && out->num > 0 && out->den > 0;
}

/* Whether a digraph has the size and the figures that a line says; a large one is believed them. */
static bool holds(struct coll_finder *f, struct finder_candidate *c, int n, int d, bool both)
{
	struct finder_candidate real = *c;
	struct topo *t = NULL;
	bool good, quick;

	if (topo_parse(c->expr, &t, NULL, NULL)) {
		return false;
	}
	good = topo_n(t) == n && topo_max_degree(t) == d && (!both || topo_is_symmetric(t));
	quick = good && finder_effort(t) <= QUICK;
	topo_free(t);
	c->believed = !quick;
	return good && (!quick || (finder_compute(f, &real) == 0 && real.steps == c->steps &&
				   bfb_ratio_cmp(real.gather, c->gather) == 0 &&
				   bfb_ratio_cmp(real.scatter, c->scatter) == 0));
}

/* The next four words; false at the end (*bad false) and for what is no point. */
static bool read_point(char **save, int n, struct finder_candidate *c, bool *bad)
{
	const char *word[4];

	*bad = false;
	for (int i = 0; i < 4; i++) {
		word[i] = strtok_r(NULL, " ", save);
		if (!word[i]) {
			*bad = i > 0;
			return false;
		}
	}
	*c = (struct finder_candidate){ .steps = atoi(word[0]), .exact = true };
	*bad = c->steps < 1 || !read_ratio(word[1], n, (struct bfb_ratio){ 0 }, &c->gather) ||
	       !read_ratio(word[2], n, c->gather, &c->scatter) || !finder_name(c, "%s", word[3]);
	return !*bad;
}

bool finder_table_read(struct coll_finder *f, int n, int d, bool both,
		       struct finder_candidates *set)
{
	struct finder_candidates read = { 0 };
	struct finder_candidate c;
	char *text, *save = NULL;
	bool bad = false;
	size_t len;
	const char *line = find_line(f->table, f->table_len, key_of(n, d, both), &len);

	if (!line) {
		return false;
	}
	text = x_ndup(line, len);
	for (int i = 0; i < 3; i++) {
		strtok_r(i ? NULL : text, " ", &save);
	}
	while (!bad && read_point(&save, n, &c, &bad)) {
		bad = !holds(f, &c, n, d, both);
		if (!bad) {
			finder_keep(f, &read, &c);
		}
	}
	bad |= read.list.n == 0;
	for (size_t i = 0; i < read.list.n && !bad; i++) {
		finder_keep(f, set, &read.list.v[i]);
	}
	free(text);
	vec_fini(&read.list);
	return !bad;
}

static void write_ratio(struct bfb_ratio r, struct buf *out)
{
	buf_printf(out, r.den == 1 ? "%" PRId64 : "%" PRId64 "/%" PRId64, r.num, r.den);
}

void finder_table_write(int n, int d, bool both, const struct finder_candidates *set,
			struct buf *out)
{
	struct bfb_ratio bound = { n - 1, n };

	buf_printf(out, "%d %d %s", n, d, both ? "both" : "one");
	for (size_t i = 0; i < set->list.n; i++) {
		const struct finder_candidate *c = &set->list.v[i];

		buf_printf(out, " %d ", c->steps);
		if (bfb_ratio_cmp(c->gather, bound) == 0) {
			buf_char(out, '.');
		} else {
			write_ratio(c->gather, out);
		}
		buf_char(out, ' ');
		if (bfb_ratio_cmp(c->gather, c->scatter) == 0) {
			buf_char(out, '=');
		} else {
			write_ratio(c->scatter, out);
		}
		buf_printf(out, " %s", c->expr);
	}
	buf_char(out, '\n');
}
