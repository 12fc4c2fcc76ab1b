/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Networks of SNDlib in its native format (sndlib.zib.de, network files of
 * version 1.0): sections NODES, LINKS and DEMANDS, one entry a line. What a
 * lightpath does not need (costs, capacities) is skipped, coordinates are for maps; what would
 * forbid routes (hop limits, admissible paths) is refused.
 *
 * The format does not say whether links and demands have a direction; that
 * stands in a model file. Here either has one when any two of them join the same
 * nodes there and back, and goes both ways otherwise. Links that join the same
 * nodes are fibres of one. Each mistake is reported with its line, and reading
 * goes on with the next.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/map.h"
#include "rwa/mesh/private.h"

#define HEADER "?SNDlib native format; type: network; version: 1.0"
#define MAX_WORD 128
#define MAX_WORDS 12		/* of a line: more are skipped */

enum section { OUTSIDE, NODES, LINKS, DEMANDS, META, PATHS, SECTIONS };
static const char *const titles[SECTIONS] = {
	"", "NODES", "LINKS", "DEMANDS", "META", "ADMISSIBLE_PATHS",
};

/* A link or demand as it stands in the file. */
struct joined {
	int32_t a, b;
	int32_t count;		/* fibres or lightpaths */
	int line;
};

struct joined_list {
	struct joined *v;
	size_t n, cap;
};

/* The reader: where it is, and what it has read so far. */
struct sndlib {
	const char *name;
	double unit;		/* of demand values a lightpath carries; 0: one
				 * lightpath for each demand */
	struct err_list *errs;
	int rc;			/* of the first mistake, 0: none */
	int line;
	enum section section;
	int depth;		/* of parentheses in PATHS */
	char word[MAX_WORDS][MAX_WORD];	/* of the line; "(" and ")" alone */
	int words;
	VEC(char *) names;	/* owned */
	VEC(struct rwa_mesh_node) places;	/* of the same nodes: on a map, or not */
	struct strmap numbers;	/* of names, to number + 1 */
	struct joined_list links, demands;
};

/* ---- mistakes ---- */

/* Adds a mistake of the present line, or of another. */
static void mistake(struct sndlib *s, int line, const struct err *e)
{
	struct err placed = *e;

	err_at(&placed, s->name, line, 0);
	err_list_add(s->errs, &placed);
	s->rc = s->rc ? s->rc : e->code;
}

#define FAIL(s, ...)                                          \
	do {                                                  \
		struct err fail_err;                          \
		err_set(&fail_err, WEFT_EINVAL, __VA_ARGS__); \
		mistake(s, (s)->line, &fail_err);             \
	} while (0)

/* ---- lines ---- */

/* The words of a line, a parenthesis being one, without the comment. Returns
 * where the next line begins. */
static const char *split_line(struct sndlib *s, const char *at)
{
	s->words = 0;
	while (*at && *at != '\n' && *at != '#') {
		size_t n = *at == '(' || *at == ')' ? 1 : strcspn(at, " \t\r\n()#");

		if (n && s->words < MAX_WORDS) {
			size_t kept = n < MAX_WORD - 1 ? n : MAX_WORD - 1;

			memcpy(s->word[s->words], at, kept);
			s->word[s->words++][kept] = '\0';
		}
		at += n ? n : 1;
	}
	at += strcspn(at, "\n");
	return *at ? at + 1 : at;
}

static bool is_word(const struct sndlib *s, int i, const char *what)
{
	return i < s->words && strcmp(s->word[i], what) == 0;
}

static bool is_paren(const char *word)
{
	return (word[0] == '(' || word[0] == ')') && !word[1];
}

/* "(" a b ")" after the entry's own name; the nodes' numbers. */
static bool read_ends(struct sndlib *s, int32_t *a, int32_t *b)
{
	int32_t *end[2] = { a, b };

	if (s->words < 5 || is_paren(s->word[0]) || !is_word(s, 1, "(") || !is_word(s, 4, ")")) {
		FAIL(s, "'NAME ( NODE NODE )' is expected");
		return false;
	}
	for (int i = 0; i < 2; i++) {
		void *found = strmap_get(&s->numbers, s->word[2 + i]);

		if (!found) {
			FAIL(s, "%.64s: no node is called '%.64s'", s->word[0], s->word[2 + i]);
			return false;
		}
		*end[i] = (int32_t)(intptr_t)found - 1;
	}
	if (*a == *b) {
		FAIL(s, "%.64s leads from '%.64s' to itself", s->word[0], s->word[2]);
		return false;
	}
	return true;
}

/* A number that is not negative. */
static bool read_value(struct sndlib *s, int i, const char *what, double *value)
{
	char *end = NULL;

	*value = i < s->words ? strtod(s->word[i], &end) : 0;
	if (i >= s->words || !*s->word[i] || *end || !(*value >= 0) || *value > 1e15) {
		FAIL(s, "%.64s: %s is %s", s->word[0], what,
		     i >= s->words ? "missing" : "not a number");
		return false;
	}
	return true;
}

/* "( LONGITUDE LATITUDE )" behind the name of a node, where that is so. */
static struct rwa_mesh_node read_place(const struct sndlib *s)
{
	struct rwa_mesh_node place = { .has_place = false };
	char *end_x, *end_y;

	if (s->words == 5 && is_word(s, 1, "(") && is_word(s, 4, ")")) {
		place.x = strtod(s->word[2], &end_x);
		place.y = strtod(s->word[3], &end_y);
		place.has_place = !*end_x && !*end_y && fabs(place.x) < 1e9 && fabs(place.y) < 1e9;
	}
	return place;
}

static void read_node(struct sndlib *s)
{
	char *name;

	if (is_paren(s->word[0])) {
		FAIL(s, "the name of a node is expected");
		return;
	}
	if (strmap_get(&s->numbers, s->word[0])) {
		FAIL(s, "two nodes are called '%.64s'", s->word[0]);
		return;
	}
	name = x_dup(s->word[0]);
	vec_push(&s->names, name);
	vec_push(&s->places, read_place(s));
	strmap_set(&s->numbers, name, (void *)(intptr_t)s->names.n);
}

static void keep(struct sndlib *s, struct joined_list *list, struct joined j)
{
	j.line = s->line;
	vec_push(list, j);
}

/* Everything after the ends is about capacities and costs. */
static void read_link(struct sndlib *s)
{
	struct joined j = { .count = 1 };

	if (read_ends(s, &j.a, &j.b)) {
		keep(s, &s->links, j);
	}
}

/* NAME ( NODE NODE ) routing_unit demand_value max_path_length */
static void read_demand(struct sndlib *s)
{
	struct joined j = { .count = 1 };
	double unit, value, lightpaths;

	if (!read_ends(s, &j.a, &j.b) || !read_value(s, 5, "the routing unit", &unit) ||
	    !read_value(s, 6, "the demand value", &value)) {
		return;
	}
	if (s->words > 7 && !is_word(s, 7, "UNLIMITED")) {
		FAIL(s, "%.64s: a limit on the length of paths is not supported", s->word[0]);
		return;
	}
	/* Sums of decimal fractions that should be whole are. */
	lightpaths = s->unit > 0 ? ceil(unit * value / s->unit * (1 - 1e-12)) : unit * value > 0;
	if (lightpaths > RWA_MESH_MAX_LIGHTPATHS) {
		FAIL(s, "%.64s: %g lightpaths, at most %d are supported", s->word[0], lightpaths,
		     RWA_MESH_MAX_LIGHTPATHS);
		return;
	}
	j.count = (int32_t)lightpaths;
	if (j.count) {
		keep(s, &s->demands, j);
	}
}

/* "NODES (" and its like. */
static void open_section(struct sndlib *s)
{
	for (int i = 1; i < SECTIONS; i++) {
		if (is_word(s, 0, titles[i]) && is_word(s, 1, "(")) {
			s->section = is_word(s, 2, ")") ? OUTSIDE : (enum section)i;
			s->depth = 1;
			if (s->words > (s->section ? 2 : 3)) {
				FAIL(s, "entries of %s begin on the next line", titles[i]);
			}
			return;
		}
	}
	FAIL(s, "'%.64s' is no section: NODES, LINKS, DEMANDS, ADMISSIBLE_PATHS or META and '(' "
	     "are expected", s->word[0]);
}

/* A list of admissible paths may be there, but must be empty. */
static void read_paths(struct sndlib *s)
{
	bool told = s->depth > 1;

	for (int i = 0; i < s->words; i++) {
		s->depth += is_word(s, i, "(") - is_word(s, i, ")");
		if (!is_paren(s->word[i]) && !told) {
			FAIL(s, "admissible paths are not supported");
			told = true;
		}
	}
	s->section = s->depth > 0 ? PATHS : OUTSIDE;
}

static void read_line(struct sndlib *s)
{
	static void (*const entry[SECTIONS])(struct sndlib *) = {
		[NODES] = read_node, [LINKS] = read_link, [DEMANDS] = read_demand,
	};

	if (s->section == OUTSIDE) {
		open_section(s);
	} else if (s->section == PATHS) {
		read_paths(s);
	} else if (is_word(s, 0, ")")) {
		s->section = OUTSIDE;
	} else if (entry[s->section]) {
		entry[s->section](s);
	}
}

/* ---- the mesh ---- */

static uint64_t ends_key(int32_t a, int32_t b)
{
	return (uint64_t)a << 32 | (uint32_t)b;
}

/* Adds up what joins the same nodes. *directed: some go there and back, so
 * that they are as they stand; else each goes both ways. */
static void merge(struct joined_list *list, bool *directed)
{
	struct u64map seen = { 0 };
	size_t kept = 0;

	*directed = false;
	for (size_t i = 0; i < list->n; i++) {
		struct joined j = list->v[i];
		uint64_t at;

		*directed |= u64map_get(&seen, ends_key(j.b, j.a), NULL);
		if (u64map_get(&seen, ends_key(j.a, j.b), &at)) {
			list->v[at].count += j.count;
		} else {
			u64map_set(&seen, ends_key(j.a, j.b), kept);
			list->v[kept++] = j;
		}
	}
	list->n = kept;
	u64map_fini(&seen);
}

/* One way of a link or demand. */
static int add_joined(struct rwa_mesh *m, bool link, int32_t a, int32_t b, int32_t count,
		      struct err *err)
{
	struct rwa_mesh_arc arc = { .src = a, .dst = b, .fibres = count };
	struct rwa_mesh_demand demand = { .src = a, .dst = b, .count = count };

	return link ? rwa_mesh_add_arc(m, &arc, err) : rwa_mesh_add_demand(m, &demand, err);
}

static void add_all(struct sndlib *s, struct rwa_mesh *m, struct joined_list *list, bool link)
{
	bool directed;

	merge(list, &directed);
	for (size_t i = 0; i < list->n; i++) {
		const struct joined *j = &list->v[i];
		struct err err;
		int rc = add_joined(m, link, j->a, j->b, j->count, &err);

		if (!rc && !directed) {
			rc = add_joined(m, link, j->b, j->a, j->count, &err);
		}
		if (rc) {
			mistake(s, j->line, &err);
		}
	}
}

/* The network of what was read without a mistake. */
static struct rwa_mesh *build(struct sndlib *s)
{
	struct rwa_mesh *m;
	struct err err;

	if (rwa_mesh_new((int)s->names.n, &m, &err)) {
		mistake(s, s->line, &err);
		return NULL;
	}
	for (size_t v = 0; v < s->names.n; v++) {
		m->nodes.v[v].name = s->names.v[v];
		s->names.v[v] = NULL;
		m->nodes.v[v].has_place = s->places.v[v].has_place;
		m->nodes.v[v].x = s->places.v[v].x;
		m->nodes.v[v].y = s->places.v[v].y;
	}
	add_all(s, m, &s->links, true);
	add_all(s, m, &s->demands, false);
	return m;
}

bool rwa_mesh_is_sndlib(const char *text)
{
	return strncmp(text, HEADER, strlen("?SNDlib")) == 0;
}

static void read_text(struct sndlib *s, const char *text)
{
	size_t header = strlen(HEADER);

	if (strncmp(text, HEADER, header) || (text[header] && !strchr(" \t\r\n", text[header]))) {
		s->line = 1;
		FAIL(s, "the first line must be '%s'", HEADER);
		return;
	}
	text += strcspn(text, "\n");
	text += *text == '\n';
	for (s->line = 2; *text; s->line++) {
		text = split_line(s, text);
		if (s->words) {
			read_line(s);
		}
	}
	if (s->section != OUTSIDE) {
		FAIL(s, "the file ends in section %s", titles[s->section]);
	}
}

int rwa_mesh_read_sndlib(const char *name, const char *text, double unit, struct rwa_mesh **out,
			 struct err_list *errs)
{
	struct sndlib s = { .name = name, .unit = unit, .errs = errs };

	*out = NULL;
	read_text(&s, text);
	if (!s.rc) {
		*out = build(&s);
	}
	if (s.rc) {
		rwa_mesh_free(*out);
		*out = NULL;
	}
	for (size_t v = 0; v < s.names.n; v++) {
		free(s.names.v[v]);
	}
	vec_fini(&s.names);
	vec_fini(&s.places);
	vec_fini(&s.links);
	vec_fini(&s.demands);
	strmap_fini(&s.numbers);
	return s.rc;
}
