/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Help and shell completion, both out of the command tree.
 *
 * Help of a group lists its commands, help of a command its own options and
 * then the global ones; help of the whole program ends with the exit codes.
 * Completion replays the words before the last one to find the command and
 * whether an option still waits for its value, and prints the candidates one
 * a line. It connects to nothing and reads no files: what only a fabric knows
 * stays a word that begins with "@", for complete.c.
 */
#include <stdio.h>
#include <string.h>

#include "collective/make/make.h"
#include "controller/cli/core/command_tree.h"
#include "lib/base/version.h"

/* Column, from 0, in which the right side of a row begins. */
#define COLUMN 26

const struct cli_option cli_globals[] = {
	{ 0, "format", "F", "table, json or yaml (default: table)",
	  "table json yaml" },
	{ 0, "wide", NULL, "tables wider than the terminal", NULL },
	{ 'q', "quiet", NULL, "print only errors, no tables", NULL },
	{ 'v', "verbose", NULL, "print more", NULL },
	{ 0, "debug", NULL, "print debug messages", NULL },
	{ 0, "color", "WHEN", "auto, always or never", "auto always never" },
	{ 0, "socket", "PATH",
	  "socket of weftd (default: $WEFT_SOCKET or " CLI_SOCKET ")", "@file" },
	{ 0, "server", "HOST:PORT", "weftd over TCP ($WEFT_SERVER)", NULL },
	{ 0, "tls-cert", "FILE", "client certificate ($WEFT_TLS_CERT)", "@file" },
	{ 0, "tls-key", "FILE", "its key ($WEFT_TLS_KEY)", "@file" },
	{ 0, "tls-ca", "FILE", "CA certificates for weftd ($WEFT_TLS_CA)",
	  "@file" },
	{ 'h', "help", NULL, "show this help", NULL },
	{ 0, NULL, NULL, NULL, NULL },
};

/* "  left        right", on two lines when left is long. */
static void add_row(struct buf *b, const char *left, const char *right)
{
	if (strlen(left) < COLUMN - 3) {
		buf_printf(b, "  %-*s %s\n", COLUMN - 3, left, right);
	} else {
		buf_printf(b, "  %s\n%*s%s\n", left, COLUMN, "", right);
	}
}

/* The help of an option, with the algorithms where it takes one. */
static void print_option_help(const struct cli_option *o, struct buf *out)
{
	bool algorithms = o->values && strstr(o->values, "@algorithm");
	const char *name;

	buf_str(out, o->help);
	for (int i = 0; algorithms && (name = coll_algorithm_name(i)); i++) {
		buf_printf(out, "%s%s", i ? ", " : "; ", name);
	}
}

/* " -c, --collective NAME text" for each option, under a title; nothing for a
 * command without any. */
static void help_options(struct buf *b, const char *title, const struct cli_option *table)
{
	struct buf right = { 0 };
	char left[96];

	if (!table || !table->name) {
		return;
	}
	buf_printf(b, "\n%s:\n", title);
	for (; table->name; table++) {
		if (table->letter) {
			snprintf(left, sizeof(left), "-%c, --%s%s%s",
				 table->letter, table->name,
				 table->arg ? " " : "",
				 table->arg ? table->arg : "");
		} else {
			snprintf(left, sizeof(left), "    --%s%s%s",
				 table->name, table->arg ? " " : "",
				 table->arg ? table->arg : "");
		}
		print_option_help(table, &right);
		add_row(b, left, buf_cstr(&right));
		buf_fini(&right);
	}
}

/* The commands of a group; "..." marks groups within it. */
static void help_group(struct buf *b, const struct cli_command *table, const char *path)
{
	char left[96];

	buf_str(b, "\nCommands:\n");
	for (; table->name; table++) {
		if (table->raw || cli_is_absent(table)) {
			continue;
		}
		snprintf(left, sizeof(left), "%s%s%s%s", table->name,
			 table->alias ? ", " : "",
			 table->alias ? table->alias : "",
			 table->sub ? " ..." : "");
		add_row(b, left, table->help);
	}
	buf_printf(b, "\n\"weft %s%sCOMMAND --help\" shows its options.\n", path,
		   *path ? " " : "");
}

/* cmd is NULL for the whole program, and then table is its tree. */
void cli_help(const struct cli_command *table, const struct cli_command *cmd,
	      const char *path, struct buf *b)
{
	if (cmd && !cmd->sub) {
		buf_printf(b, "Usage: weft %s%s%s%s\n\n%s.\n", path,
			   cmd->options ? " [OPTIONS]" : "",
			   *cmd->args ? " " : "", cmd->args, cmd->help);
		help_options(b, "Options", cmd->options);
		help_options(b, "Global options", cli_globals);
		return;
	}
	buf_printf(b, "Usage: weft %s%sCOMMAND [OPTIONS] [ARGUMENTS]\n\n%s.\n",
		   path, *path ? " " : "",
		   cmd ? cmd->help
		       : "weft controls optical fabrics: it plans circuits "
			 "and the collective\nschedules that match them, applies "
			 "them to devices and verifies the result");
	help_group(b, cmd ? cmd->sub : table, path);
	if (!cmd) {
		help_options(b, "Global options", cli_globals);
		if (build_without[0]) {
			buf_printf(b, "\nNot in this build: %s.\n", build_without);
		}
		buf_str(b, "\nExit codes: 0 done or nothing to do, 1 failed "
			   "(fabric unchanged), 2 differences or\nchanges "
			   "pending, 3 failed (rolled back), 4 failed (not "
			   "fully rolled back), 64 usage,\n65 bad data, 69 "
			   "unavailable, 75 stale or locked, 77 denied, 78 "
			   "not revertable,\n124 timed out. See weft(1).\n");
	}
}

/* ---- completion ---- */

/* Adds dash and word as a candidate when prefix begins it. The word need not
 * end with NUL. */
static void add_if_prefix(struct buf *b, const char *prefix, const char *dash,
			  const char *word, size_t len)
{
	size_t nd = strlen(dash), np = strlen(prefix);

	if (np <= nd ? strncmp(prefix, dash, np) == 0
		     : strncmp(prefix, dash, nd) == 0 && np - nd <= len &&
			       memcmp(prefix + nd, word, np - nd) == 0) {
		buf_str(b, dash);
		buf_add(b, word, len);
		buf_char(b, '\n');
	}
}

static void complete_options(struct buf *b, const struct cli_option *table, const char *prefix)
{
	for (; table && table->name; table++) {
		add_if_prefix(b, prefix, "--", table->name, strlen(table->name));
	}
}

/* Words of `values`, apart by blanks; those with "@" are passed on: names of
 * files the shell completes itself. */
static void complete_values(struct buf *b, const char *values, const char *prefix)
{
	while (values && *values) {
		size_t len = strcspn(values, " ");

		if (*values == '@') {
			buf_add(b, values, len);
			buf_char(b, '\n');
		} else {
			add_if_prefix(b, prefix, "", values, len);
		}
		values += len + (values[len] == ' ');
	}
}

/* The option that `word` names in either table and that wants a value. */
static const struct cli_option *awaits(const struct cli_command *cmd, const char *word)
{
	const struct cli_option *tables[] = { cmd ? cmd->options : NULL,
					      cli_globals };

	for (int t = 0; t < 2; t++) {
		for (const struct cli_option *o = tables[t]; o && o->name; o++) {
			bool named = word[0] == '-' && word[1] == '-'
					     ? strcmp(word + 2, o->name) == 0
					     : word[0] == '-' && word[1] && word[1] == o->letter &&
						     !word[2];

			if (named && o->arg) {
				return o;
			}
		}
	}
	return NULL;
}

/* The k-th argument of a command, by what its help calls it. */
static void complete_argument(struct buf *b, const struct cli_command *cmd, int k,
			      const char *prefix)
{
	static const char *const kinds[][2] = {
		{ "DEVICE", "@device" }, { "JOB", "@job" }, { "PORT", "@port" },
		{ "WHAT", "@part" }, { "GROUP", "@group" }, { "GROUP|A", "@group @end" },
		{ "A", "@end" }, { "B", "@end" },
	};
	char words[64], *rest = words, *word = NULL;
	const char *values = "@file";

	snprintf(words, sizeof(words), "%s", cmd->args);
	for (int i = 0; i <= k && rest; i++) {
		word = strsep(&rest, " ");
	}
	word += *word == '[';
	word[strcspn(word, "].")] = '\0';
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		if (strcmp(word, kinds[i][0]) == 0) {
			values = kinds[i][1];
		}
	}
	if (strchr(word, '|') && !strpbrk(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZ")) {
		for (char *s = word; *s; s++) {
			*s = *s == '|' ? ' ' : *s;
		}
		values = word;
	}
	complete_values(b, values, prefix);
}

void cli_complete(const struct cli_command *root, int n, char **words, struct buf *b)
{
	const struct cli_command *table = root, *cmd = NULL;
	const struct cli_option *open = NULL;
	const char *last = n > 0 ? words[n - 1] : "";
	int n_args = 0;

	for (int i = 0; i + 1 < n; i++) {
		const struct cli_command *found;

		if (open) {
			open = NULL;
			continue;
		}
		open = awaits(cmd, words[i]);
		found = words[i][0] == '-' ? NULL : cli_find(table, words[i]);
		if (found) {
			cmd = found;
			table = found->sub;
		} else {
			n_args += words[i][0] != '-';
		}
	}
	if (open) {
		complete_values(b, open->values, last);
	} else if (last[0] == '-') {
		complete_options(b, cmd ? cmd->options : NULL, last);
		complete_options(b, cli_globals, last);
	} else if (table) {
		for (; table->name; table++) {
			if (!table->raw && !cli_is_absent(table)) {
				add_if_prefix(b, last, "", table->name, strlen(table->name));
			}
		}
	} else if (cmd && n_args < cmd->max_args) {
		complete_argument(b, cmd, n_args, last);
	}
}

/* Depth first, in the order of the tree. */
static void list_verbs(const struct cli_command *table, const char *path, struct buf *b)
{
	for (; table && table->name; table++) {
		char verb[64];

		if (table->raw) {
			continue;
		}
		snprintf(verb, sizeof(verb), "%s%s%s", path, *path ? " " : "",
			 table->name);
		if (table->sub) {
			list_verbs(table->sub, verb, b);
		} else {
			buf_printf(b, "%s\n", verb);
		}
	}
}

void cli_list_verbs(const struct cli_command *root, struct buf *b)
{
	list_verbs(root, "", b);
}
