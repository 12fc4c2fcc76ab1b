/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a route table on a digraph: what reads can be verified and
 * written in both forms, and each reads the same again. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "collective/routing/routes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_back(const struct topo *t, const struct buf *form,
		       const struct buf *json)
{
	struct coll_routes r;
	struct buf again = { 0 };
	struct err err;

	if (coll_routes_read(form->data, form->len, t, &r, &err)) {
		abort();
	}
	coll_routes_to_json(&r, t, &again);
	if (again.len != json->len ||
	    memcmp(again.data, json->data, again.len) != 0) {
		abort();
	}
	buf_fini(&again);
	coll_routes_fini(&r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf json = { 0 }, proto = { 0 };
	struct topo *t = NULL;
	char *name = NULL;
	struct coll_routes r;
	struct err err;

	if (topo_parse("BiRing(2,4)", &t, &name, &err)) {
		abort();
	}
	if (coll_routes_read(data, size, t, &r, &err) == 0) {
		coll_routes_verify(&r, t, &err);
		coll_routes_to_json(&r, t, &json);
		check_back(t, &json, &json);
		coll_routes_to_proto(&r, t, &proto);
		check_back(t, &proto, &json);
	}
	coll_routes_fini(&r);
	buf_fini(&json);
	buf_fini(&proto);
	topo_free(t);
	free(name);
	return 0;
}
