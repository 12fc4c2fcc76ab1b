/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a topology file: a digraph in order that is written and read
 * again the same, or an error that says something. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "topology/topology.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int good)
{
	if (!good) {
		abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf first = { 0 }, second = { 0 };
	struct err err = { 0 };
	struct topo *t, *again;
	char *name, *name_again;

	if (topo_from_json((const char *)data, size, &t, &name, &err)) {
		check(err.code != 0 && err.msg[0]);
		return 0;
	}
	check(topo_check_order(t, NULL) == 0);
	topo_to_json(t, name, &first);
	check(topo_from_json(first.data, first.len, &again, &name_again, &err) == 0);
	topo_to_json(again, name_again, &second);
	check(strcmp(buf_cstr(&first), buf_cstr(&second)) == 0);
	buf_fini(&first);
	buf_fini(&second);
	free(name);
	free(name_again);
	topo_free(t);
	topo_free(again);
	return 0;
}
