/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs of expressions. Include after cmocka.h. */
#ifndef WEFT_TESTS_UNIT_TOPOLOGY_PARSE_H
#define WEFT_TESTS_UNIT_TOPOLOGY_PARSE_H

#include "topology/topology.h"

static inline struct topo *parse(const char *expr)
{
	struct topo *t;
	struct err err = { 0 };

	if (topo_parse(expr, &t, NULL, &err)) {
		fail_msg("%s", err.msg);
	}
	return t;
}

#endif
