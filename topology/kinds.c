/* SPDX-License-Identifier: Apache-2.0 */
/* Kinds of nodes: their names, what they can do, and their order; see topology.h. */
#include <assert.h>
#include <string.h>

#include "topology/private.h"

static const char *const kind_names[TOPO_KINDS] = {
	[TOPO_TERMINAL] = "terminal", [TOPO_SWITCH] = "switch", [TOPO_MEMORY] = "memory",
};

/* The bit of each is 1 << its place. */
static const char *const ability_names[TOPO_ABILITIES] = { "copy", "reduce", "store" };

const char *topo_kind_name(enum topo_kind kind)
{
	return kind_names[kind];
}

const char *topo_ability_name(int i)
{
	return ability_names[i];
}

int topo_find_kind(const char *name)
{
	for (int k = 0; k < TOPO_KINDS; k++) {
		if (strcmp(name, kind_names[k]) == 0) {
			return k;
		}
	}
	return -1;
}

unsigned topo_find_ability(const char *name)
{
	for (int i = 0; i < TOPO_ABILITIES; i++) {
		if (strcmp(name, ability_names[i]) == 0) {
			return 1U << i;
		}
	}
	return 0;
}

unsigned topo_usual_flags(enum topo_kind kind)
{
	switch (kind) {
	case TOPO_TERMINAL:
		return TOPO_CAN_COPY | TOPO_CAN_REDUCE | TOPO_CAN_STORE;
	case TOPO_MEMORY:
		return TOPO_CAN_COPY | TOPO_CAN_STORE;
	default:
		return 0;
	}
}

void topo_count_kinds(struct topo *t)
{
	t->plain = t->limits.n == 0;
	for (int u = 0; u < t->n; u++) {
		t->ranks += t->nodes[u].kind == TOPO_TERMINAL;
		t->holders += t->nodes[u].kind != TOPO_SWITCH;
		t->plain &= t->nodes[u].kind == TOPO_TERMINAL &&
			    t->nodes[u].flags == topo_usual_flags(TOPO_TERMINAL);
	}
}

int topo_ranks(const struct topo *t)
{
	assert(t->frozen);
	return t->ranks;
}

int topo_holders(const struct topo *t)
{
	assert(t->frozen);
	return t->holders;
}

bool topo_is_plain(const struct topo *t)
{
	assert(t->frozen);
	return t->plain;
}

int topo_check_unlimited(const struct topo *t, const char *what, struct err *err)
{
	if (t->limits.n > 0) {
		return err_set(err, WEFT_EUNSUPPORTED, "%s: shared limits (the topology has %zu): "
			       "not supported", what, t->limits.n);
	}
	return 0;
}

int topo_check_plain(const struct topo *t, const char *what, struct err *err)
{
	for (int u = 0; u < t->n && !topo_is_plain(t); u++) {
		enum topo_kind kind = topo_node_kind(t, u);
		unsigned missing = topo_usual_flags(TOPO_TERMINAL) & ~topo_node_flags(t, u);

		if (kind != TOPO_TERMINAL) {
			return err_set(err, WEFT_EUNSUPPORTED, "%s: node %d is a %s: not supported",
				       what, u, kind_names[kind]);
		}
		for (int i = 0; i < TOPO_ABILITIES; i++) {
			if (missing & 1U << i) {
				return err_set(err, WEFT_EUNSUPPORTED, "%s: node %d cannot %s: not "
					       "supported", what, u, ability_names[i]);
			}
		}
	}
	return topo_check_unlimited(t, what, err);
}

int topo_check_order(const struct topo *t, struct err *err)
{
	if (topo_ranks(t) == 0) {
		return err_set(err, WEFT_EINVAL, "no node is a terminal: none takes part");
	}
	for (int u = 0; u < t->n; u++) {
		enum topo_kind want = u < t->ranks ? TOPO_TERMINAL
				      : u < t->holders ? TOPO_MEMORY : TOPO_SWITCH;

		if (topo_node_kind(t, u) != want) {
			return err_set(err, WEFT_EINVAL, "node %d is a %s where a %s is expected: "
				       "terminals come first, then memories, then switches", u,
				       kind_names[topo_node_kind(t, u)], kind_names[want]);
		}
	}
	return 0;
}
