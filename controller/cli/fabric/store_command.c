/* SPDX-License-Identifier: Apache-2.0 */
/* weft store: what weftd remembers, as text between versions of weft. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "controller/cli/core/private.h"
#include "controller/store/store.h"
#include "lib/base/file.h"

#define STATE_DIR "/var/lib/weft"	/* of weftd, unless told */
#define STORE_FILE "weft.db"

static int store_path(const struct cli *c, char *path, size_t size, struct err *err)
{
	const char *dir = cli_opt(c, "state-dir");

	if (snprintf(path, size, "%s/" STORE_FILE, dir ? dir : STATE_DIR) >= (int)size) {
		return err_set(err, WEFT_EUSAGE, "--state-dir: too long");
	}
	return 0;
}

int cmd_store_export(struct cli *c, struct err *err)
{
	const struct store_export what = { .history = !cli_has(c, "no-history"),
					   .audit = cli_has(c, "audit") };
	const char *file = cli_opt(c, "output");
	struct buf b = { 0 };
	char path[512];
	int r = store_path(c, path, sizeof(path), err);

	if (r == 0) {
		r = store_export(path, &what, &b, err);
	}
	/* It has the fabric, and what users did. */
	if (r == 0) {
		r = file ? file_write_atomic(file, b.data, b.len, FILE_PRIVATE, err)
			 : cli_write_data(NULL, &b, err);
	}
	buf_fini(&b);
	return r;
}

int cmd_store_import(struct cli *c, struct err *err)
{
	struct store_import done = { .kept = "" };
	char path[512], *text = NULL;
	size_t len = 0;
	struct out *o;
	int r = store_path(c, path, sizeof(path), err);

	if (r || (r = file_read(c->argv[0], STORE_TEXT_MAX, &text, &len, err))) {
		return r;
	}
	r = store_import(path, c->argv[0], text, len, cli_has(c, "replace"), &done, err);
	free(text);
	if (r) {
		return r;
	}
	if (done.left_out[0]) {
		cli_say(c, CLI_NORMAL, "a newer weft wrote it; not known here and left out: %s",
			done.left_out);
	}
	o = out_new(c->format);
	out_str(o, "store", path);
	out_str(o, "replaced", done.kept);
	out_str(o, "left_out", done.left_out);
	return cli_print(o, err);
}

int cmd_store_check(struct cli *c, struct err *err)
{
	struct store_check found = { 0 };
	char path[512];
	struct out *o;
	int r = store_path(c, path, sizeof(path), err);

	if (r || (r = store_check(path, &found, err))) {
		return r;
	}
	o = out_new(c->format);
	out_str(o, "store", path);
	out_int(o, "format", STORE_VERSION);
	out_int(o, "transactions", found.transactions);
	return cli_print(o, err);
}
