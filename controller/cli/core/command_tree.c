/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parsing a command line against the tree of commands.
 *
 * Words are taken one after the other. A word without a dash goes down the
 * tree until a command is reached, and is an argument from then on. A word
 * with a dash is looked up among the options of the command found so far and
 * then among the global ones, so that options of a command stand after its
 * verb and global ones anywhere. Values are kept as text, by the option's
 * place in the table; cli_opt_int() and cli_opt_unit() check them where the
 * command uses them. Every error is WEFT_EUSAGE with a hint at the nearest
 * name, or at the --help that lists what there is.
 */
#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/cli/core/command_tree.h"
#include "lib/base/alloc.h"
#include "lib/base/err.h"


/* at: the next word of argv. */
struct parser {
	struct cli *c;
	int argc, at;
	char **argv;
};

const struct cli_command *cli_find(const struct cli_command *table, const char *name)
{
	for (; table && table->name; table++) {
		if (strcmp(table->name, name) == 0 ||
		    (table->alias && strcmp(table->alias, name) == 0)) {
			return table;
		}
	}
	return NULL;
}

/* Offers the names of a table as candidates for a hint. */
static void try_options(struct nearest *near, const struct cli_option *table)
{
	for (; table && table->name; table++) {
		nearest_try(near, table->name);
	}
}

/* c->verb is the group in which the word was looked up. */
static int unknown_command(const struct cli *c, const struct cli_command *table, const char *word,
			   struct err *err)
{
	const char *gap = c->verb[0] ? " " : "";
	struct nearest near;

	nearest_init(&near, word);
	for (; table->name; table++) {
		if (!table->raw) {
			nearest_try(&near, table->name);
		}
	}
	err_set(err, WEFT_EUSAGE, "%s%s%s: no such command", c->verb, gap, word);
	if (near.best) {
		err_hint(err, "did you mean \"weft %s%s%s\"?", c->verb, gap, near.best);
	} else {
		err_hint(err, "\"weft %s%s--help\" lists the commands", c->verb, gap);
	}
	return err->code;
}

/* The option's place in a table, or -1. */
static int find_option(const struct cli_option *table, const char *name, size_t len, char letter)
{
	for (int i = 0; table && table[i].name; i++) {
		if (name ? strlen(table[i].name) == len &&
				   memcmp(table[i].name, name, len) == 0
			 : table[i].letter == letter) {
			return i;
		}
	}
	return -1;
}

/* Letters have no near names, so only long options get a suggestion. */
static int unknown_option(const struct cli *c, const char *word, struct err *err)
{
	struct nearest near = { 0 };

	if (strncmp(word, "--", 2) == 0) {
		nearest_init(&near, word + 2);
		try_options(&near, c->cmd ? c->cmd->options : NULL);
		try_options(&near, cli_globals);
	}
	err_set(err, WEFT_EUSAGE, "%s: no such option%s%s", word,
		c->verb[0] ? " of weft " : "", c->verb);
	if (near.best) {
		err_hint(err, "did you mean --%s?", near.best);
	} else {
		err_hint(err, "\"weft %s%s--help\" lists the options",
			 c->verb, c->verb[0] ? " " : "");
	}
	return err->code;
}

/* Keeps a global option; the last one wins, unlike those of commands. What is
 * none of the others is --color. */
static int set_global(struct cli *c, const char *name, const char *value, struct err *err)
{
	if (strcmp(name, "help") == 0) {
		c->help = true;
	} else if (strcmp(name, "wide") == 0) {
		c->wide = true;
	} else if (strcmp(name, "quiet") == 0) {
		c->talk = CLI_QUIET;
	} else if (strcmp(name, "verbose") == 0) {
		c->talk = CLI_VERBOSE;
	} else if (strcmp(name, "debug") == 0) {
		c->talk = CLI_DEBUG;
	} else if (strcmp(name, "socket") == 0) {
		c->socket = value;
		/* The command line wins over WEFT_SERVER. */
		c->server = NULL;
	} else if (strcmp(name, "server") == 0) {
		c->server = value;
	} else if (strcmp(name, "tls-cert") == 0) {
		c->tls_cert = value;
	} else if (strcmp(name, "tls-key") == 0) {
		c->tls_key = value;
	} else if (strcmp(name, "tls-ca") == 0) {
		c->tls_ca = value;
	} else if (strcmp(name, "format") == 0) {
		return out_parse_format(value, &c->format, err);
	} else if (strcmp(value, "auto") && strcmp(value, "always") &&
		   strcmp(value, "never")) {
		return err_set(err, WEFT_EUSAGE,
			       "--color: \"%s\" is not auto, always or never",
			       value);
	} else {
		c->colour = value;
	}
	return 0;
}

/* An option that was found: takes its value from `attached` or the next
 * word. */
static int take_option(struct parser *p, const struct cli_option *table,
		       int i, const char *attached, struct err *err)
{
	const struct cli_option *o = &table[i];
	const char *value = attached;

	if (o->arg && !value) {
		if (p->at >= p->argc) {
			return err_set(err, WEFT_EUSAGE, "--%s needs %s", o->name, o->arg);
		}
		value = p->argv[p->at++];
	} else if (!o->arg && attached) {
		return err_set(err, WEFT_EUSAGE, "--%s takes no value", o->name);
	}
	if (table == cli_globals) {
		return set_global(p->c, o->name, value, err);
	}
	if (p->c->set[i]) {
		return err_set(err, WEFT_EUSAGE, "--%s is given twice", o->name);
	}
	p->c->set[i] = true;
	p->c->value[i] = value;
	return 0;
}

/* The table that has an option, by name or (name NULL) by letter, with its
 * place in *i: the command's own table first. NULL: neither has it. */
static const struct cli_option *option_table(const struct cli *c, const char *name, size_t len,
					     char letter, int *i)
{
	const struct cli_option *own = c->cmd ? c->cmd->options : NULL;

	*i = find_option(own, name, len, letter);
	if (*i >= 0) {
		return own;
	}
	*i = find_option(cli_globals, name, len, letter);
	return *i >= 0 ? cli_globals : NULL;
}

/* "--name value" or "--name=value". */
static int long_option(struct parser *p, const char *word, struct err *err)
{
	const char *name = word + 2, *eq = strchr(name, '=');
	size_t len = eq ? (size_t)(eq - name) : strlen(name);
	const struct cli_option *table;
	int i;

	table = option_table(p->c, name, len, 0, &i);
	if (!table) {
		return unknown_option(p->c, word, err);
	}
	return take_option(p, table, i, eq ? eq + 1 : NULL, err);
}

/* "-n 4", "-n4", or flags in one word: "-qv". */
static int short_options(struct parser *p, const char *word, struct err *err)
{
	for (const char *s = word + 1; *s; s++) {
		const struct cli_option *table;
		const char *attached = NULL;
		int i, r;

		table = option_table(p->c, NULL, 0, *s, &i);
		if (!table) {
			return unknown_option(p->c, word, err);
		}
		if (table[i].arg && s[1]) {
			attached = s + 1;
		}
		r = take_option(p, table, i, attached, err);
		if (r || attached) {
			return r;
		}
	}
	return 0;
}

bool cli_is_absent(const struct cli_command *group)
{
	return group->sub && !group->sub->name;
}

/* Either the next step down the tree or an argument of the command, of which
 * it takes at most max_args. */
static int positional(struct parser *p, const struct cli_command **table,
		      char *word, struct err *err)
{
	struct cli *c = p->c;
	const struct cli_command *found;
	size_t used = strlen(c->verb);

	if (c->cmd && !c->cmd->sub) {
		if (c->cmd->max_args == 0) {
			err_set(err, WEFT_EUSAGE, "%s: weft %s takes options "
				"only", word, c->verb);
			err_hint(err, "\"weft %s --help\" shows all options", c->verb);
			return err->code;
		}
		if (c->argc == c->cmd->max_args) {
			err_set(err, WEFT_EUSAGE, "%s: one argument too many", word);
			err_hint(err, "weft %s %s", c->verb, c->cmd->args);
			return err->code;
		}
		c->argv[c->argc++] = word;
		return 0;
	}
	found = cli_find(*table, word);
	if (!found) {
		return unknown_command(c, *table, word, err);
	}
	c->cmd = found;
	*table = found->sub;
	snprintf(c->verb + used, sizeof(c->verb) - used, "%s%s",
		 used ? " " : "", found->name);
	if (cli_is_absent(found)) {
		char what[80];

		snprintf(what, sizeof(what), "weft %s", c->verb);
		return build_lacks(what, err);
	}
	return 0;
}

/* --help needs neither a command nor its arguments. */
static int check_complete(const struct cli *c, struct err *err)
{
	if (c->help) {
		return 0;
	}
	if (!c->cmd || c->cmd->sub) {
		err_set(err, WEFT_EUSAGE, "weft%s%s: a command is missing",
			c->verb[0] ? " " : "", c->verb);
		err_hint(err, "\"weft %s%s--help\" lists the commands",
			 c->verb, c->verb[0] ? " " : "");
		return err->code;
	}
	if (c->argc < c->cmd->min_args) {
		err_set(err, WEFT_EUSAGE, "weft %s: an argument is missing", c->verb);
		err_hint(err, "weft %s %s", c->verb, c->cmd->args);
		return err->code;
	}
	return 0;
}

/* "--" makes all that follow arguments; a lone "-" is one (standard
 * input). */
static int parse_words(struct parser *p, const struct cli_command *table, struct err *err)
{
	bool only_args = false;
	int r = 0;

	while (p->at < p->argc && r == 0) {
		char *word = p->argv[p->at++];

		if (p->c->cmd && p->c->cmd->raw) {
			p->c->argv[p->c->argc++] = word;
		} else if (only_args || word[0] != '-' || !word[1]) {
			r = positional(p, &table, word, err);
		} else if (strcmp(word, "--") == 0) {
			only_args = true;
		} else if (word[1] == '-') {
			r = long_option(p, word, err);
		} else {
			r = short_options(p, word, err);
		}
	}
	return r;
}

/* An empty variable is as good as none. */
static const char *from_environment(const char *name, const char *otherwise)
{
	const char *value = getenv(name);

	return value && *value ? value : otherwise;
}

int cli_parse(const struct cli_command *root, int argc, char **argv, struct cli *c, struct err *err)
{
	struct parser p = { .c = c, .argc = argc, .at = 1, .argv = argv };
	int r;

	memset(c, 0, sizeof(*c));
	c->talk = CLI_NORMAL;
	c->colour = "auto";
	c->socket = from_environment("WEFT_SOCKET", CLI_SOCKET);
	c->server = from_environment("WEFT_SERVER", NULL);
	c->tls_cert = from_environment("WEFT_TLS_CERT", NULL);
	c->tls_key = from_environment("WEFT_TLS_KEY", NULL);
	c->tls_ca = from_environment("WEFT_TLS_CA", NULL);
	c->argv = x_new((size_t)argc + 1, sizeof(*c->argv));
	r = parse_words(&p, root, err);
	if (r) {
		return r;
	}
	return check_complete(c, err);
}

void cli_fini(struct cli *c)
{
	free(c->argv);
	c->argv = NULL;
}

/* ---- values ---- */

/* A name that is not in the table is a mistake of the program, not of the
 * user. */
static int option_index(const struct cli *c, const char *name)
{
	int i = find_option(c->cmd->options, name, strlen(name), 0);

	assert(i >= 0 && i < CLI_MAX_OPTIONS);
	return i;
}

const char *cli_opt(const struct cli *c, const char *name)
{
	return c->value[option_index(c, name)];
}

bool cli_has(const struct cli *c, const char *name)
{
	return c->set[option_index(c, name)];
}

int cli_need(const struct cli *c, const char *name, struct err *err)
{
	const struct cli_option *o = &c->cmd->options[option_index(c, name)];

	if (cli_has(c, name)) {
		return 0;
	}
	err_set(err, WEFT_EUSAGE, "weft %s: --%s %s is missing", c->verb, o->name, o->arg);
	err_hint(err, "\"weft %s --help\" shows all options", c->verb);
	return err->code;
}

int cli_refuse(const struct cli *c, const char *const *names, const char *why, struct err *err)
{
	for (; *names; names++) {
		if (cli_has(c, *names)) {
			return err_set(err, WEFT_EUSAGE, "weft %s: --%s %s", c->verb, *names, why);
		}
	}
	return 0;
}

int cli_opt_int(const struct cli *c, const char *name, int64_t min,
		int64_t max, int64_t *value, struct err *err)
{
	const char *text = cli_opt(c, name);
	char *end;
	long long v;

	if (!text) {
		return 0;
	}
	errno = 0;
	v = strtoll(text, &end, 10);
	if (end == text || *end || errno || v < min || v > max) {
		return err_set(err, WEFT_EUSAGE,
			       "--%s: \"%s\" is not a whole number from %lld "
			       "to %lld", name, text, (long long)min,
			       (long long)max);
	}
	*value = v;
	return 0;
}

int cli_opt_unit(const struct cli *c, const char *name, enum unit_kind kind,
		 int64_t *value, struct err *err)
{
	const char *text = cli_opt(c, name);

	if (!text) {
		return 0;
	}
	if (unit_parse(kind, text, value, err)) {
		err_wrap(err, "--%s", name);
		err->code = WEFT_EUSAGE;
		return WEFT_EUSAGE;
	}
	return 0;
}
