/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a fabric: refused with errors that have text, or accepted and
 * then in order. The same bytes as ranges. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lib/conf/conf.h"
#include "tests/unit/model/invariants.h"

#define MAX_BYTES 65536
#define MAX_NAMES 10000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_errors(const struct err_list *errs, int rc)
{
	HOLDS(errs->n > 0 && rc == errs->v[0].code);
	for (int i = 0; i < errs->n; i++) {
		HOLDS(errs->v[i].code < 0 && errs->v[i].msg[0]);
		HOLDS(i == 0 || errs->v[i].line >= errs->v[i - 1].line);
	}
}

static void try_fabric(const char *text, size_t len)
{
	struct err_list errs = { .max = 20 };
	struct model_fabric *f = NULL;
	int rc = model_parse("fuzz.yaml", text, len, &f, &errs);

	HOLDS((rc == 0) == (f != NULL));
	if (f) {
		HOLDS(errs.n == 0 && errs.dropped == 0);
		HOLDS(f->config.len == len && memcmp(f->config.text, text, len) == 0);
		check_invariants(f);
	} else {
		check_errors(&errs, rc);
	}
	model_free(f);
	err_list_fini(&errs);
}

static int keep(const char *value, struct buf *out, void *arg, struct err *err)
{
	(void)arg;
	(void)err;
	HOLDS(strlen(value) <= MAX_BYTES);
	buf_str(out, "/\"\\");
	return 0;
}

/* What is renamed once is there no more, and all else stays. */
static void try_rename(const char *text, size_t len)
{
	struct buf once = { 0 }, twice = { 0 };
	int n = conf_rename(text, len, "password", "p", keep, NULL, &once, NULL);

	if (n >= 0) {
		n = conf_rename(buf_cstr(&once), once.len, "password", "p", keep, NULL, &twice,
				NULL);
		HOLDS(n <= 0);
		HOLDS(n < 0 || (twice.len == once.len &&
				memcmp(buf_cstr(&twice), buf_cstr(&once), once.len) == 0));
	}
	buf_fini(&once);
	buf_fini(&twice);
}

static void try_range(const uint8_t *data, size_t size)
{
	char *text = strndup((const char *)data, size);
	struct err err = { 0 };
	char **names;
	int n;

	HOLDS(text);
	if (model_expand(text, MAX_NAMES, &names, &n, &err) == 0) {
		HOLDS(n > 0 && n <= MAX_NAMES && names[n] == NULL);
		for (int i = 0; i < n; i++) {
			HOLDS(names[i][0]);
		}
		model_names_free(names);
	} else {
		HOLDS(err.msg[0]);
	}
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size <= MAX_BYTES) {
		try_fabric((const char *)data, size);
		try_rename((const char *)data, size);
		try_range(data, size);
	}
	return 0;
}
