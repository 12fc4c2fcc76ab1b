/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line in a simulation: each command is a process of the machine "room", whose output
 * is kept by process. A story is a process of its own, that waits for them.
 */
#include "tests/sim/stories/tell.h"

#include <getopt.h>
#include <regex.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/cli/core/cli.h"
#include "lib/base/alloc.h"
#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/base/file.h"
#include "lib/base/vec.h"

#define LONGEST (3600 * SIM_S)
#define MAX_WORDS 60
#define START_S 20
#define CONTROL_BYTES (1 << 17)
#define TEXT_BYTES (8 << 20)

struct command {
	struct sim_process *process;
	struct buf out, err;
};

static struct {
	void (*story)(void);
	bool over;
	int weftd;
	VEC(struct command *) commands;
	struct command *last;
	struct buf log;
} t;

/* ---- what commands print ---- */

static struct command *command_of(const struct sim_process *p)
{
	for (size_t i = t.commands.n; i-- > 0;) {
		if (t.commands.v[i]->process == p) {
			return t.commands.v[i];
		}
	}
	return NULL;
}

static void on_output(const char *text, size_t n)
{
	struct command *c = command_of(sim_self());

	if (c) {
		buf_add(&c->out, text, n);
	}
}

static void on_error(const char *text, size_t n)
{
	struct command *c = command_of(sim_self());

	buf_add(c ? &c->err : &t.log, text, n);
}

const char *output_of(const struct command *c)
{
	return buf_cstr(&c->out);
}

const char *errors_of(const struct command *c)
{
	return buf_cstr(&c->err);
}

const char *said(void)
{
	return t.last ? output_of(t.last) : "";
}

const char *said_wrong(void)
{
	return t.last ? errors_of(t.last) : "";
}

const char *weftd_log(void)
{
	return buf_cstr(&t.log);
}

/* ---- checks ---- */

/* The end of what was said, which has what was wrong. */
static const char *tail(const char *text)
{
	const size_t n = strlen(text);

	return n > 400 ? text + n - 400 : text;
}

bool check_of(const char *name, bool ok, const char *words)
{
	char *rule = x_alloc(1, strlen(name) + strlen(words) + 3);

	sprintf(rule, "%s%s%s", name, name[0] ? ": " : "", words);
	sim_tell("%s %s", ok ? "as it is to be:" : "not so:", rule);
	if (!ok) {
		sim_fail(rule, "last said: %s%s%s", tail(said()), said_wrong()[0] ? "; " : "",
			 tail(said_wrong()));
	}
	return ok;
}

bool check(bool ok, const char *words)
{
	return check_of("", ok, words);
}

bool matches(const char *text, const char *pattern)
{
	regex_t re;
	bool found;

	if (regcomp(&re, pattern, REG_EXTENDED | REG_NOSUB | REG_NEWLINE)) {
		sim_fail("pattern", "%s", pattern);
		return false;
	}
	found = regexec(&re, text, 0, NULL, 0) == 0;
	regfree(&re);
	return found;
}

static bool check_match(const char *words, const char *text, const char *pattern)
{
	bool ok = matches(text, pattern);

	if (!ok) {
		sim_tell("no match for: %s", pattern);
	}
	return check(ok, words);
}

bool has(const char *words, const char *pattern)
{
	return check_match(words, said(), pattern);
}

bool has_error(const char *words, const char *pattern)
{
	return check_match(words, said_wrong(), pattern);
}

bool same(const char *a, const char *b)
{
	return strcmp(a, b) == 0;
}

/* ---- commands ---- */

void ask_weftd(int weftd)
{
	t.weftd = weftd;
}

static int weft_main(int argc, char **argv)
{
	optind = 0;
	return cli_main(argc, argv);
}

/* Parts the text, which is changed, into words after those that are there. */
static int split(char *text, const char **words, int n)
{
	while (*(text += strspn(text, " ")) && n < MAX_WORDS) {
		const char quote = *text == '\'' ? '\'' : ' ';

		text += quote == '\'';
		words[n++] = text;
		text = strchrnul(text, quote);
		if (*text) {
			*text++ = '\0';
		}
	}
	return n;
}

static struct command *start(const char *format, va_list ap)
{
	struct command *c = x_new(1, sizeof(*c));
	const char *words[MAX_WORDS + 4] = { "weft" };
	struct buf text = { 0 };
	int n;

	buf_vprintf(&text, format, ap);
	sim_tell("weft %s", buf_cstr(&text));
	n = split(buf_steal(&text), words, 1);
	words[n++] = "--socket";
	words[n] = cluster_socket(t.weftd);
	c->process = sim_start("room", weft_main, words);
	vec_push(&t.commands, c);
	return c;
}

struct command *begin(const char *command, ...)
{
	struct command *c;
	va_list ap;

	va_start(ap, command);
	c = start(command, ap);
	va_end(ap);
	return c;
}

int finish(struct command *c)
{
	t.last = c;
	return sim_wait(c->process);
}

int weft(const char *command, ...)
{
	struct command *c;
	va_list ap;

	va_start(ap, command);
	c = start(command, ap);
	va_end(ap);
	return finish(c);
}

bool expect(int status, const char *words, const char *command, ...)
{
	struct command *c;
	va_list ap;
	int got;

	va_start(ap, command);
	c = start(command, ap);
	va_end(ap);
	got = finish(c);
	if (got != status) {
		sim_tell("exit %d, expected %d", got, status);
	}
	return check(got == status, words);
}

/* ---- devices ---- */

void write_file(const char *path, const char *format, ...)
{
	struct err err = { 0 };
	struct buf b = { 0 };
	va_list ap;

	va_start(ap, format);
	buf_vprintf(&b, format, ap);
	va_end(ap);
	if (file_write_atomic(path, b.data, b.len, 0666, &err)) {
		sim_fail("folder", "%s", err.msg);
	}
	buf_fini(&b);
}

const char *read_text(const char *path)
{
	struct err err = { 0 };
	char *text = NULL;
	size_t len = 0;

	if (file_read(path, TEXT_BYTES, &text, &len, &err)) {
		sim_fail("folder", "%s", err.msg);
		return "";
	}
	return text;
}

void small_scenario(struct scenario *s)
{
	scenario_simple(s);
	s->poll_s = 0;
	s->n_devices = 2;
	s->devices[0].size = "8x8";
	s->devices[1] = (struct cluster_device){ .dialect = "mrr-reg", .size = "8x4" };
}

const char *small_fabric(const char *topology, int depth)
{
	static const char common[] =
		"weft: 1\nfabric: small\nhosts:\n"
		"  - { name: 'h[0-3]', ports: 'p[0-1]', rate: 100Gbps, reactivation: 10ms }\n"
		"  - { name: 'n[0-7]' }\n"
		"switches:\n  - { name: ocs0, size: 8x8, driver: polatis-scpi, address: '127.0.0.1:"
		"5000', options: { gap_ms: 1, settle_ms: 20 }, timeout: 500ms }\n"
		"rings:\n  - { name: ring1, nodes: 'n[0-7]', channels: 4, channel-rate: 40Gbps, "
		"retune: 25us, driver: mrr-reg, address: '127.0.0.1:5001', timeout: 500ms }\n"
		"fibres:\n  - { from: 'h[0-3].p[0-1]', to: 'ocs0.[1-8]' }\njobs:\n";
	struct buf b = { 0 };

	buf_str(&b, common);
	if (topology) {
		buf_printf(&b, "  - { name: reduce, nodes: 'h[0-3]', collective: allreduce, "
			   "size: 1MiB, topology: '%s', alpha: 10us }\n", topology);
	}
	buf_printf(&b, "  - { name: gather, ring: ring1, nodes: all, collective: allgather, "
		   "size: 1MiB, depth: %d }\n", depth);
	return buf_steal(&b);
}

void write_small_fabric(const char *path, const char *topology, int depth)
{
	write_file(path, "%s", small_fabric(topology, depth));
}

const char *with(const char *text, const char *from, const char *to)
{
	struct buf b = { 0 };
	const char *at;

	for (; (at = strstr(text, from)); text = at + strlen(from)) {
		buf_add(&b, text, (size_t)(at - text));
		buf_str(&b, to);
	}
	buf_str(&b, text);
	return buf_steal(&b);
}

const char *control(const char *device, const char *line, ...)
{
	char *answer = x_alloc(1, CONTROL_BYTES), *kept;
	struct buf b = { 0 };
	va_list ap;

	va_start(ap, line);
	buf_vprintf(&b, line, ap);
	va_end(ap);
	if (cluster_control(cluster_device_of(device), buf_cstr(&b), answer,
			    CONTROL_BYTES)) {
		answer[0] = '\0';
		sim_fail("device answers", "%s: %s", device, buf_cstr(&b));
	}
	buf_fini(&b);
	kept = x_dup(answer);
	free(answer);
	return kept;
}

static int compare_lines(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Those lines that have a comma: others tell of power and restarts. */
const char *map_of(const char *device)
{
	char *text = x_dup(control(device, "map")), *rest = NULL;
	VEC(char *) lines = { 0 };
	struct buf b = { 0 };

	for (char *l = strtok_r(text, "\n", &rest); l; l = strtok_r(NULL, "\n", &rest)) {
		if (strchr(l, ',')) {
			vec_push(&lines, l);
		}
	}
	if (lines.n > 0) {
		qsort(lines.v, lines.n, sizeof(*lines.v), compare_lines);
	}
	for (size_t i = 0; i < lines.n; i++) {
		buf_printf(&b, "%s\n", lines.v[i]);
	}
	vec_fini(&lines);
	return lines.n > 0 || b.len > 0 ? buf_steal(&b) : "";
}

const char *first_circuit(const char *device)
{
	const char *text = control(device, "map");

	return x_ndup(text, strcspn(text, "\n"));
}

static bool has_line(const char *text, const char *line, size_t n)
{
	for (; *text; text += strcspn(text, "\n"), text += *text == '\n') {
		if (strcspn(text, "\n") == n && strncmp(text, line, n) == 0) {
			return true;
		}
	}
	return false;
}

const char *without(const char *a, const char *b)
{
	struct buf out = { 0 };
	size_t n;

	for (; *a; a += n + (a[n] == '\n')) {
		n = strcspn(a, "\n");
		if (!has_line(b, a, n)) {
			buf_printf(&out, "%.*s\n", (int)n, a);
		}
	}
	return out.len > 0 ? buf_steal(&out) : "";
}

int lines_of(const char *text)
{
	int n = 0;

	for (; *text; text++) {
		n += *text == '\n';
	}
	return n;
}

int sets_of(const char *device)
{
	const char *at = strstr(control(device, "stats"), "sets ");

	return at ? atoi(at + strlen("sets ")) : -1;
}

void silence(const char *device, int64_t ns)
{
	sim_link_stall(device, NULL, sim_now() + ns);
	sim_link_stall(NULL, device, sim_now() + ns);
}

void stop_device(const char *device)
{
	sim_tell("%s is stopped", device);
	sim_pause(cluster_device(cluster_device_of(device)), sim_now() + LONGEST);
}

void continue_device(const char *device)
{
	sim_tell("%s goes on", device);
	sim_pause(cluster_device(cluster_device_of(device)), sim_now());
}

/* ---- weftd ---- */

static void await_weftd(void)
{
	await(START_S, "weftd answers", weft("status") == 0);
}

void restart_weftd(void)
{
	cluster_stop(t.weftd);
	check(cluster_wait_stopped(t.weftd) == 0, "weftd ends well");
	cluster_start(t.weftd);
	await_weftd();
}

void crash_weftd(void)
{
	cluster_kill(t.weftd);
	await_weftd();
}

/* ---- the whole ---- */

static int tell_main(int argc, char **argv)
{
	(void)argc, (void)argv;
	await_weftd();
	t.story();
	t.over = true;
	sim_stop();
	return 0;
}

void tell(const struct scenario *s, void (*story)(void))
{
	memset(&t, 0, sizeof(t));
	t.story = story;
	sim_on_output(on_output);
	sim_on_error(on_error);
	cluster_begin(s);
	sim_start("room", tell_main, (const char *const[]){ "story", NULL });
	sim_run(LONGEST);
	if (!t.over) {
		sim_fail("story ends", "it still waits; last said: %s", tail(said()));
	}
}
