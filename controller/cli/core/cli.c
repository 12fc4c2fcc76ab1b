/* SPDX-License-Identifier: Apache-2.0 */
/* One command line from start to exit code; see cli.h. */
#include "controller/cli/core/cli.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "controller/cli/core/private.h"
#include "controller/dry_run/dry_run.h"
#include "controller/store/store.h"
#include "lib/base/alloc.h"
#include "lib/base/log.h"
#include "lib/base/version.h"
#include "lib/rpc/rpc.h"

/* The rooms below log by themselves; how much of it reaches stderr follows
 * -q, -v and --debug. */
static void set_log_level(enum cli_talk talk)
{
	static const enum log_level levels[] = {
		[CLI_QUIET] = LOG_ERROR, [CLI_NORMAL] = LOG_WARN,
		[CLI_VERBOSE] = LOG_INFO, [CLI_DEBUG] = LOG_DEBUG,
	};

	log_set_level(levels[talk]);
}

/* Not every command has --full. */
static bool wants_full(const struct cli *c)
{
	const struct cli_option *o = c->cmd ? c->cmd->options : NULL;

	while (o && o->name && strcmp(o->name, "full") != 0) {
		o++;
	}
	return c->wide || (o && o->name && cli_has(c, "full"));
}

/* Help goes to stdout, as it was asked for; errors of usage go to stderr. */
static int print_help(const struct cli *c, struct err *err)
{
	struct buf b = { 0 };
	int r;

	cli_help(cli_root, c->cmd, c->verb, &b);
	r = cli_print_bytes(buf_cstr(&b), b.len, err);
	buf_fini(&b);
	return r;
}

/* The one place where an error is printed: everything below returns it. */
int cli_main(int argc, char **argv)
{
	static char version[] = "version";
	struct err err = { 0 };
	struct cli c;
	int r;

	/* Every program is asked this way; with more words the command has a second name. */
	if (argc > 1 && strcmp(argv[1], "--version") == 0) {
		if (argc == 2) {
			version_print("weft");
			return 0;
		}
		argv[1] = version;
	}
	uv_replace_allocator(x_malloc, x_realloc, x_new, free);
	json_set_alloc_funcs(x_malloc, free);
	model_check_devices_by(dry_run_check);
	rpc_set_allocators();
	store_set_allocators();
	r = cli_parse(cli_root, argc, argv, &c, &err);
	if (r == 0) {
		set_log_level(c.talk);
		if (wants_full(&c)) {
			cli_any_width();
		}
		if (c.talk == CLI_QUIET && c.format == OUT_TABLE && !c.help) {
			cli_no_tables();
		}
		progress_clock_start(&c);
		r = c.help ? print_help(&c, &err) : c.cmd->run(&c, &err);
		progress_clock_stop();
	}
	cli_fini(&c);
	if (r < 0) {
		cli_report(&err);
	}
	return cli_exit_code(r);
}
