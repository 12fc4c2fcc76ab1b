/* Edge lists that people write; see topo_from_edges() in topology.h. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topology/private.h"

#define MAX_WORDS 8

struct topo_edge_lines {
	const char *at, *end;
	int number;
	char text[256];
	const char *word[MAX_WORDS];
	int words;
	bool both;		/* "undirected" was given */
	bool sized;		/* "nodes N" was given */
	int64_t nodes;
	int64_t largest;	/* node number */
	VEC(struct topo_arc) arcs;
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

static int number(struct topo_edge_lines *l, const char *what, const char *word,
		  int64_t least, int64_t most, int64_t *out, struct err *err)
{
	char *end;
	long long v;

	errno = 0;
	v = strtoll(word, &end, 10);
	if (*word < '0' || *word > '9' || *end) {
		return fact(l, err, "expected a whole number, found '%s'", word);
	}
	if (errno || v > most || v < least) {
		char text[64];

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

static int read_arc(struct topo_edge_lines *l, struct err *err)
{
	int64_t most = l->sized ? l->nodes - 1 : TOPO_MAX_NODES - 1;
	static const char *const what[] = {
		"source", "target", "capacity", "latency in ns",
	};
	int64_t v[4] = { 0, 0, 1, 0 };
	int rc = 0;

	if (l->words < 2 || l->words > 4) {
		return fact(l, err, "expected SOURCE TARGET [CAPACITY "
			    "[LATENCY_NS]], found '%s ...'", l->word[0]);
	}
	for (int i = 0; i < l->words && rc == 0; i++) {
		rc = number(l, what[i], l->word[i], i == 2,
			    i < 2 ? most : INT64_C(1000000000000), &v[i],
			    err);
	}
	for (int i = 0; i < 2 && rc == 0; i++) {
		l->largest = v[i] > l->largest ? v[i] : l->largest;
	}
	for (int i = 0; i < 1 + l->both && rc == 0; i++) {
		if (l->arcs.n == TOPO_MAX_ARCS) {
			return fact(l, err, "more arcs than a topology may "
				    "have%s", "");
		}
		if (vec_push(&l->arcs, (struct topo_arc){ (int32_t)v[i],
			     (int32_t)v[1 - i], v[2], v[3] })) {
			rc = err_nomem(err);
		}
	}
	return rc;
}

static int read_line(struct topo_edge_lines *l, struct err *err)
{
	if (l->words < 0) {
		return fact(l, err, "expected at most four short words a "
			    "line%s", "");
	}
	if (strcmp(l->word[0], "undirected") == 0 && l->words == 1 && l->arcs.n == 0) {
		l->both = true;
		return 0;
	}
	if (strcmp(l->word[0], "nodes") == 0 && l->words == 2 && l->arcs.n == 0 && !l->sized) {
		l->sized = true;
		return number(l, "nodes", l->word[1], 1, TOPO_MAX_NODES, &l->nodes, err);
	}
	return read_arc(l, err);
}

int topo_from_edges(const char *text, size_t len, struct topo **out, struct err *err)
{
	struct topo_edge_lines l = { .at = text, .end = text + len };
	int rc = 0;

	while (rc == 0 && next_line(&l)) {
		rc = read_line(&l, err);
	}
	if (rc == 0 && l.arcs.n == 0) {
		rc = err_set(err, WEFT_EINVAL, "an edge list without arcs");
	}
	if (rc == 0) {
		rc = topo_from_arcs((int)(l.sized ? l.nodes : l.largest + 1),
				    l.arcs.v, l.arcs.n, out, err);
	}
	vec_fini(&l.arcs);
	return rc;
}
