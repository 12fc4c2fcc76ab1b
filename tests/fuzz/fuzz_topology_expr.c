/* SPDX-License-Identifier: Apache-2.0 */
/* Topology expressions: whatever the text, a graph that keeps its promises
 * or an error that says something. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "topology/topology.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Numbers of 4 to 7 digits may ask for millions of arcs: correct but slow.
 * Longer ones are refused at once. */
static int asks_for_much(const char *s)
{
	while (*s) {
		size_t digits = strspn(s, "0123456789");

		if (digits >= 4 && digits <= 7) {
			return 1;
		}
		s += digits ? digits : 1;
	}
	return 0;
}

static void check(int good)
{
	if (!good) {
		abort();
	}
}

static void check_graph(const struct topo *t, const char *name)
{
	struct topo *again;
	char *same;
	int32_t *dist = malloc((size_t)topo_n(t) * sizeof(*dist));

	check(dist != NULL);
	topo_bfs(t, topo_n(t) - 1, dist);
	check(dist[topo_n(t) - 1] == 0);
	check((int64_t)topo_max_degree(t) * topo_n(t) >= topo_m(t));
	check(topo_parse(name, &again, &same, NULL) == 0);
	check(strcmp(name, same) == 0);
	check(topo_m(again) == topo_m(t));
	check(memcmp(topo_arcs(again), topo_arcs(t),
		     (size_t)topo_m(t) * sizeof(struct topo_arc)) == 0);
	topo_free(again);
	free(same);
	free(dist);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1), *name;
	struct err err = { 0 };
	struct topo *t;

	check(text != NULL);
	if (size) {
		memcpy(text, data, size);
	}
	text[size] = '\0';
	if (!asks_for_much(text)) {
		if (topo_parse(text, &t, &name, &err) == 0) {
			check_graph(t, name);
			topo_free(t);
			free(name);
		} else {
			check(err.code != 0 && err.msg[0]);
		}
	}
	free(text);
	return 0;
}
