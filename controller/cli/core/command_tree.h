/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command tree: one table that drives parsing, help and completion.
 * A node is either a group (sub) or a command (run).
 */
#ifndef WEFT_CLI_CORE_TREE_H
#define WEFT_CLI_CORE_TREE_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/base/number/units.h"
#include "lib/output/writer.h"

#define CLI_MAX_OPTIONS 40
#define CLI_SOCKET "/run/weft/weftd.sock"

/* How much is said on stderr: errors only, warnings and progress, more. */
enum cli_talk { CLI_QUIET, CLI_NORMAL, CLI_VERBOSE, CLI_DEBUG };

struct cli;

/* One option of a table. A command's options and those of cli_globals are
 * looked up by name and letter; a table has at most CLI_MAX_OPTIONS. */
struct cli_option {
	char letter;		/* 0: none */
	const char *name;	/* without dashes; NULL ends a table */
	const char *arg;	/* what its value is called; NULL: a flag */
	const char *help;
	const char *values;	/* for completion: words apart by blanks, or
				 * "@file", "@job", "@device", "@port", "@part", "@algorithm" */
};

/* A group (sub is set, run NULL) or a command (run is set, sub NULL).
 * min_args and max_args count positional arguments, and are checked before
 * run is called. */
struct cli_command {
	const char *name;	/* NULL ends a table */
	const char *alias;	/* another name, or NULL */
	const char *args;	/* of a command: "FABRIC.yaml"; completion knows
				 * DEVICE, JOB, PORT, WHAT and a|b */
	const char *help;	/* one line */
	const struct cli_command *sub;
	const struct cli_option *options;
	int min_args, max_args;
	bool raw;		/* takes its arguments unparsed; not listed */
	/* 0, a positive exit code of its own, or a negative enum weft_err */
	int (*run)(struct cli *c, struct err *err);
};

/* One parsed command line. Strings are borrowed from argv, the environment
 * and the tables. value[i] and set[i] belong to cmd->options[i]; use
 * cli_opt() and cli_has(). The last five are the connection to weftd; server
 * wins over socket. */
struct cli {
	const struct cli_command *cmd;
	char verb[64];		/* "schedule make" */
	const char *value[CLI_MAX_OPTIONS];	/* like cmd->options */
	bool set[CLI_MAX_OPTIONS];
	int argc;		/* positional arguments */
	char **argv;
	bool help;		/* --help was given */
	bool wide;		/* tables as wide as they are */
	enum out_format format;
	enum cli_talk talk;
	const char *colour;	/* auto, always, never */
	const char *socket;
	const char *server;		/* HOST:PORT instead, or NULL */
	const char *tls_cert, *tls_key, *tls_ca;
};

/* The tree of weft (commands.c), and the options that every command takes
 * (help.c). Both end with a row without a name. */
extern const struct cli_command cli_root[];
extern const struct cli_option cli_globals[];

/*
 * Parses argv[1..] against a tree. Options may stand anywhere after the verb
 * they belong to, global ones anywhere; "--" ends them. Positional arguments
 * are gathered in c->argv (freed with cli_fini). WEFT_EUSAGE tells what is
 * wrong and hints at the nearest command or option.
 */
int cli_parse(const struct cli_command *root, int argc, char **argv,
	      struct cli *c, struct err *err);
/* Frees what cli_parse allocated, also after an error. Strings stay
 * argv's. */
void cli_fini(struct cli *c);

/* A group without commands: they are not in this build. */
bool cli_is_absent(const struct cli_command *group);

/* The command of this name (or alias) in a table, or NULL. */
const struct cli_command *cli_find(const struct cli_command *table, const char *name);

/* Value of an option of this command, NULL when absent. The name must be in
 * the command's table. */
const char *cli_opt(const struct cli *c, const char *name);
/* True when the option was given. */
bool cli_has(const struct cli *c, const char *name);
/* Whole numbers and quantities; *value is left as it is when the option is
 * absent. WEFT_EUSAGE names the option. */
int cli_opt_int(const struct cli *c, const char *name, int64_t min,
		int64_t max, int64_t *value, struct err *err);
int cli_opt_unit(const struct cli *c, const char *name, enum unit_kind kind,
		 int64_t *value, struct err *err);
/* WEFT_EUSAGE unless the option was given. */
int cli_need(const struct cli *c, const char *name, struct err *err);
/* WEFT_EUSAGE "--name why" when one of these options (NULL ends) was given,
 * which would otherwise do nothing. */
int cli_refuse(const struct cli *c, const char *const *names, const char *why, struct err *err);

/* Help of a group or command; path is the verb so far, "" at the top. */
void cli_help(const struct cli_command *table, const struct cli_command *cmd,
	      const char *path, struct buf *b);

/* Candidates for the last of n words, one a line; "@file" stands for the
 * names of files, "@device", "@job", "@port" (of the device named before) and
 * "@part" (whatever can be drained) for those. */
void cli_complete(const struct cli_command *root, int n, char **words, struct buf *b);
/* Every verb, one a line: "schedule make". */
void cli_list_verbs(const struct cli_command *root, struct buf *b);

#endif
