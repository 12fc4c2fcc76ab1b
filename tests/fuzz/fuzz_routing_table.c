/* Any bytes as a route table on a digraph: what reads can be verified and
 * written in every form, and each reads the same again. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "collective/routing/routes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_back(const struct topo *t, const struct buf *form,
		       const struct buf *text)
{
	struct coll_routes r;
	struct buf again = { 0 };
	struct err err;

	if (coll_routes_read(form->data, form->len, t, &r, &err)) {
		abort();
	}
	coll_routes_to_text(&r, t, &again);
	if (again.len != text->len ||
	    memcmp(again.data, text->data, again.len) != 0) {
		abort();
	}
	buf_fini(&again);
	coll_routes_fini(&r);
}

/* A route without ports has no text. */
static int has_ports(const struct coll_routes *r)
{
	for (int64_t i = 0; i < r->table.n; i++) {
		if (r->first[i] == r->first[i + 1]) {
			return 0;
		}
	}
	return 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf text = { 0 }, other = { 0 };
	struct topo *t = NULL;
	char *name = NULL;
	struct coll_routes r;
	struct err err;

	if (topo_parse("BiRing(2,4)", &t, &name, &err)) {
		abort();
	}
	if (coll_routes_read(data, size, t, &r, &err) == 0 && has_ports(&r)) {
		coll_routes_verify(&r, t, &err);
		coll_routes_to_text(&r, t, &text);
		check_back(t, &text, &text);
		coll_routes_to_json(&r, t, &other);
		check_back(t, &other, &text);
		buf_reset(&other);
		if (coll_routes_to_proto(&r, t, &other, &err)) {
			abort();
		}
		check_back(t, &other, &text);
	}
	coll_routes_fini(&r);
	buf_fini(&text);
	buf_fini(&other);
	topo_free(t);
	free(name);
	return 0;
}
