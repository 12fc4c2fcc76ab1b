/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a table of schedules, and as a list: refused with errors that have text, or accepted
 * and then in order. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/preload/table.h"
#include "tests/unit/model/invariants.h"

#define MAX_BYTES 65536

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_entry(const struct preload_entry *e)
{
	const char *mark = strchr(e->file, '%');
	struct err err = { 0 };
	char name[PRELOAD_MAX_FILE];

	HOLDS(e->file[0] && memchr(e->file, 0, sizeof(e->file)));
	HOLDS(e->min_bytes >= 0 && e->min_bytes <= e->max_bytes);
	HOLDS(e->kind == -1 || preload_takes((enum coll_kind)e->kind));
	HOLDS(e->ranks == -1 || e->ranks >= 2);
	HOLDS(e->root >= -1 && !e->usable && e->digest == 0 && e->unused == 0);
	HOLDS((mark != NULL) == (e->per_rank != 0));
	HOLDS(!mark || (mark[1] == 'r' && !strchr(mark + 1, '%')));
	if (preload_file_name(e, 12345, name, &err) == 0) {
		HOLDS(strlen(name) == strlen(e->file) + (mark ? 3 : 0) && !strchr(name, '%'));
	} else {
		HOLDS(err.msg[0]);
	}
}

static void check(int rc, struct preload_table *t, struct err_list *errs)
{
	HOLDS((rc == 0) == (errs->n == 0));
	HOLDS((rc == 0) == (t->entries.n > 0));
	for (int i = 0; i < errs->n; i++) {
		HOLDS(errs->v[i].code < 0 && errs->v[i].msg[0]);
	}
	for (size_t i = 0; i < t->entries.n; i++) {
		check_entry(&t->entries.v[i]);
	}
	preload_table_fini(t);
	err_list_fini(errs);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err_list errs = { 0 };
	struct preload_table t;
	char *text;

	if (size > MAX_BYTES || !(text = strndup((const char *)data, size))) {
		return 0;
	}
	check(preload_table_parse("d/t.yaml", (const char *)data, size, &t, &errs), &t, &errs);
	check(preload_table_from_list("LIST", text, &t, &errs), &t, &errs);
	free(text);
	return 0;
}
