/* SPDX-License-Identifier: Apache-2.0 */
/* weft import: the cabling of a lab, or a training step, from files of others. Without weftd. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collective/workload/workload.h"
#include "controller/cli/core/private.h"
#include "controller/import/import.h"
#include "lib/base/file.h"
#include "lib/base/alloc.h"
#include "lib/conf/conf.h"

#define MAX_FILE (256u << 20)

/* The names that messages have are those that were given. *to is owned by the caller. */
static int read_text(char *path, struct import_text *to, struct err *err)
{
	char *text = NULL;
	int r = file_read(path, MAX_FILE, &text, &to->len, err);

	to->name = path;
	to->text = text;
	return r;
}

static void free_text(struct import_text *t)
{
	free((char *)t->name);
	free((char *)t->text);
}

/* What files do not say. */
static int read_defaults(const struct cli *c, const char *driver, struct import_defaults *d,
			 struct err *err)
{
	d->driver = cli_opt(c, "driver") ? cli_opt(c, "driver") : driver;
	d->rate_bps = INT64_C(100000000000);
	if (!conf_is_name(d->driver)) {
		return err_set(err, WEFT_EUSAGE, "--driver: \"%s\" is no name of a driver",
			       d->driver);
	}
	return cli_opt_unit(c, "rate", UNIT_BPS, &d->rate_bps, err);
}

/* Warnings, and what r is: all mistakes but the last, which is left to the edge, or the output. */
static int finish(struct cli *c, int r, struct import_report *report, const struct buf *out,
		  struct err *err)
{
	char text[ERR_MSG_MAX + ERR_FILE_MAX];

	for (int i = 0; i < report->notes.n; i++) {
		cli_say(c, CLI_NORMAL, "%s", err_str(&report->notes.v[i], text, sizeof(text)));
	}
	if (report->notes.dropped > 0) {
		cli_say(c, CLI_NORMAL, "and %d more", report->notes.dropped);
	}
	if (r == WEFT_EINVAL && report->errs.n > 0) {
		cli_report_list(&report->errs, err);
	}
	err_list_fini(&report->errs);
	err_list_fini(&report->notes);
	return r ? r : cli_write_data(cli_opt(c, "output"), out, err);
}

/* sonic_GROUP_WHAT.csv of a folder. */
static int read_part(const char *dir, const char *group, const char *what, struct import_text *to,
		     struct err *err)
{
	struct buf path = { 0 };

	buf_printf(&path, "%s/sonic_%s_%s.csv", dir, group, what);
	return read_text(buf_steal(&path), to, err);
}

int cmd_import_sonic_mgmt(struct cli *c, struct err *err)
{
	const char *dir = cli_opt(c, "files"), *testbeds = cli_opt(c, "testbed");
	struct import_sonic in = { .group = cli_opt(c, "group") };
	struct import_defaults d = { .fabric = in.group };
	struct import_report report = { 0 };
	struct buf out = { 0 };
	int r;

	if ((r = cli_need(c, "files", err)) || (r = cli_need(c, "group", err)) ||
	    (r = read_defaults(c, "sonic-ocs", &d, err))) {
		return r;
	}
	if (!conf_is_name(in.group)) {
		return err_set(err, WEFT_EUSAGE, "--group: \"%s\" is no name", in.group);
	}
	if (c->argc > 0 && !testbeds) {
		return err_set(err, WEFT_EUSAGE, "TESTBED is one of --testbed FILE");
	}
	in.only = c->argc > 0 ? c->argv[0] : NULL;
	if ((r = read_part(dir, in.group, "devices", &in.devices, err)) == 0 &&
	    (r = read_part(dir, in.group, "links", &in.links, err)) == 0 &&
	    (r = read_part(dir, in.group, "l1_links", &in.l1_links, err)) == 0 &&
	    (!testbeds || (r = read_text(x_dup(testbeds), &in.testbeds, err)) == 0)) {
		r = import_sonic_mgmt(&in, &d, &out, &report);
	}
	r = finish(c, r, &report, &out, err);
	buf_fini(&out);
	free_text(&in.devices);
	free_text(&in.links);
	free_text(&in.l1_links);
	free_text(&in.testbeds);
	return r;
}

int cmd_import_netbox(struct cli *c, struct err *err)
{
	struct import_defaults d = { .fabric = "netbox" };
	struct import_report report = { 0 };
	struct import_text in = { 0 };
	struct buf out = { 0 };
	int r = read_defaults(c, "sim", &d, err);

	if (r == 0 && (r = read_text(x_dup(c->argv[0]), &in, err)) == 0) {
		r = import_netbox(&in, cli_opt(c, "switches"), &d, &out, &report);
	}
	r = finish(c, r, &report, &out, err);
	buf_fini(&out);
	free_text(&in);
	return r;
}

/* PREFIX.0.et and on, while there are files. */
static int read_traces(const char *prefix, struct import_text **files, int *n, struct err *err)
{
	VEC(struct import_text) v = { 0 };
	int r = 0;

	for (;;) {
		struct import_text t = { 0 };
		struct buf path = { 0 };

		buf_printf(&path, "%s.%zu.et", prefix, v.n);
		if ((v.n > 0 && access(buf_cstr(&path), F_OK) != 0) ||
		    v.n >= WORKLOAD_MAX_RANKS) {
			buf_fini(&path);
			break;
		}
		r = read_text(buf_steal(&path), &t, err);
		vec_push(&v, t);
		if (r) {
			break;
		}
	}
	*files = v.v;
	*n = (int)v.n;
	return r;
}

int cmd_import_chakra(struct cli *c, struct err *err)
{
	struct import_text *files = NULL, groups = { 0 };
	struct import_report report = { 0 };
	struct buf out = { 0 }, path = { 0 };
	const char *given = cli_opt(c, "groups");
	int n = 0, r = read_traces(c->argv[0], &files, &n, err);

	buf_printf(&path, "%s.json", c->argv[0]);
	if (r == 0 && (given || access(buf_cstr(&path), F_OK) == 0)) {
		r = read_text(x_dup(given ? given : buf_cstr(&path)), &groups, err);
	}
	if (r == 0) {
		r = import_chakra(files, n, &groups, &out, &report);
	}
	r = finish(c, r, &report, &out, err);
	for (int i = 0; i < n; i++) {
		free_text(&files[i]);
	}
	free(files);
	free_text(&groups);
	buf_fini(&path);
	buf_fini(&out);
	return r;
}
