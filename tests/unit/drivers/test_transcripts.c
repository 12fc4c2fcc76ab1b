/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The answers of public origin in tests/data/transcripts, played to the drivers by
 * a device that knows nothing else.
 *
 *	driver NAME		size N M
 *	map 0-1 1-0		what a snapshot is to show
 *	disabled i1 o0		ports that it is to show so; also `failed`
 *	note TEXT		part of a note that is to be said, once
 *	refused 0-1 TEXT	an add that the device refuses with TEXT
 *	> TEXT			what a command has in it (the longest that fits), and
 *	< LINE			its answer. Those before the first are the greeting.
 *
 * In a line @ is the command's tag, \e \a \r \xHH are bytes, and \c at the end
 * leaves the line end out.
 */
#include "tests/unit/drivers/rig.h"

#include <dirent.h>
#include <netinet/in.h>

#include "lib/base/buf.h"

#define FOLDER "tests/data/transcripts"
#define MAX_ANSWERS 24

struct transcript {
	char path[300];
	char driver[32], map[64], disabled[32], failed[32], notes[4][80], refused[120];
	int n_in, n_out, n_notes, n_answers;
	struct played {
		char command[80];	/* "": the greeting */
		struct buf text;
	} answers[MAX_ANSWERS];
};

/* ---- reading a file -------------------------------------------------------- */

static void add_escape(struct buf *b, const char **s)
{
	static const char names[] = "ear", bytes[] = "\x1b\x07\r";
	const char *name = strchr(names, **s);
	unsigned byte = 0;

	if (**s == 'x') {
		assert_int_equal(sscanf(*s + 1, "%2x", &byte), 1);
		buf_char(b, (char)byte);
		*s += 3;
		return;
	}
	assert_non_null(name);
	buf_char(b, bytes[name - names]);
	++*s;
}

static void add_answer_line(struct transcript *t, const char *line)
{
	struct buf *b = &t->answers[t->n_answers - 1].text;
	size_t n = strlen(line);
	bool open = n >= 2 && strcmp(line + n - 2, "\\c") == 0;
	const char *end = line + n - (open ? 2 : 0);

	while (line < end) {
		if (*line == '\\' && line[1] != '"') {
			line++;
			add_escape(b, &line);
		} else {
			buf_char(b, *line++);
		}
	}
	buf_str(b, open ? "" : "\r\n");
}

static void begin_answer(struct transcript *t, const char *command)
{
	assert_true(t->n_answers < MAX_ANSWERS);
	snprintf(t->answers[t->n_answers++].command, sizeof(t->answers[0].command), "%s", command);
}

static void take_line(struct transcript *t, char *line)
{
	line[strcspn(line, "\n")] = '\0';
	if (line[0] == '>') {
		begin_answer(t, line + 2);
	} else if (line[0] == '<') {
		if (t->n_answers == 0) {
			begin_answer(t, "");
		}
		add_answer_line(t, line[1] ? line + 2 : "");
	} else if (strncmp(line, "note ", 5) == 0) {
		assert_true(t->n_notes < 4);
		snprintf(t->notes[t->n_notes++], sizeof(t->notes[0]), "%s", line + 5);
	} else if (strncmp(line, "map", 3) == 0) {
		snprintf(t->map, sizeof(t->map), "%s", line[3] ? line + 4 : "");
	} else if (line[0] && line[0] != '#') {
		assert_true(sscanf(line, "driver %31s", t->driver) == 1 ||
			    sscanf(line, "size %d %d", &t->n_in, &t->n_out) == 2 ||
			    sscanf(line, "disabled %31[^\n]", t->disabled) == 1 ||
			    sscanf(line, "failed %31[^\n]", t->failed) == 1 ||
			    sscanf(line, "refused %119[^\n]", t->refused) == 1);
	}
}

static void read_transcript(struct transcript *t)
{
	char line[1024];
	FILE *f = fopen(t->path, "r");

	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		take_line(t, line);
	}
	fclose(f);
	assert_true(t->n_answers > 0 && t->n_in > 0 && t->driver[0]);
}

/* ---- the device, in a process of its own ------------------------------------ */

static const struct played *find_answer(const struct transcript *t, const char *command)
{
	const struct played *best = NULL;

	/* Who logs out is answered as who logs in. */
	command = strncmp(command, "CANC-USER", 9) == 0 ? "ACT-USER" : command;
	for (int i = 0; i < t->n_answers; i++) {
		const struct played *a = &t->answers[i];

		if (a->command[0] && strstr(command, a->command) &&
		    (!best || strlen(a->command) > strlen(best->command))) {
			best = a;
		}
	}
	return best;
}

/* The fourth field of TL1, or what a shell is to echo. */
static long tag_of(const char *command)
{
	const char *at = strstr(command, "weft-end:");

	if (at) {
		return atol(at + strlen("weft-end:"));
	}
	for (int i = 0; i < 3 && command; i++) {
		command = strchr(command, ':');
		command += command != NULL;
	}
	return command ? atol(command) : 0;
}

static void play(int fd, const struct buf *text, long tag)
{
	struct buf out = { 0 };

	for (size_t i = 0; i < text->len; i++) {
		bool is_tag = text->data[i] == '@' && i > 0 && strchr(" :", text->data[i - 1]);

		if (is_tag) {
			buf_printf(&out, "%ld", tag);
		} else {
			buf_char(&out, text->data[i]);
		}
	}
	if (out.len) {
		assert_int_equal(write(fd, out.data, out.len), out.len);
	}
	buf_fini(&out);
}

/* A shell takes several commands in a line. */
static void answer(const struct transcript *t, int fd, char *line)
{
	for (char *next; line; line = next) {
		const struct played *a;

		next = strstr(line, "; { ");
		if (next) {
			*next = '\0';
			next += 2;
		}
		a = find_answer(t, line);
		if (a) {
			play(fd, &a->text, tag_of(line));
		}
	}
}

static void serve(const struct transcript *t, int fd)
{
	char command[8192];
	size_t n = 0;
	char c;

	if (!t->answers[0].command[0]) {
		play(fd, &t->answers[0].text, 0);
	}
	while (read(fd, &c, 1) == 1) {
		if (c == '\xff') {
			/* Telnet's options: two more bytes, none of them text. */
			if (read(fd, command + n, 2) != 2) {
				return;
			}
		} else if (c != '\n' && n < sizeof(command) - 1) {
			command[n++] = c;
		} else if (c == '\n') {
			command[n] = '\0';
			n = 0;
			answer(t, fd, command);
		}
	}
}

static void start_device(struct rig *r, const struct transcript *t)
{
	struct sockaddr_in addr = { .sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(addr);
	int listening = socket(AF_INET, SOCK_STREAM, 0);

	assert_int_equal(bind(listening, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(getsockname(listening, (struct sockaddr *)&addr, &len), 0);
	assert_int_equal(listen(listening, 4), 0);
	snprintf(r->address, sizeof(r->address), "127.0.0.1:%d", ntohs(addr.sin_port));
	fflush(NULL);
	r->emulator = fork();
	assert_true(r->emulator >= 0);
	if (r->emulator == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;) {
			int fd = accept(listening, NULL, NULL);

			if (fd >= 0) {
				serve(t, fd);
				close(fd);
			}
		}
	}
	close(listening);
}

/* ---- what is expected --------------------------------------------------------- */

static void expect_ports(struct rig *r, const char *want, bool failed)
{
	char have[64] = "";

	for (int i = 0; i < r->snap.n_ports; i++) {
		const struct drv_port *p = &r->snap.ports[i];

		if (failed ? p->failed : !p->enabled) {
			size_t n = strlen(have);

			snprintf(have + n, sizeof(have) - n, "%s%c%d", n ? " " : "",
				 p->is_out ? 'o' : 'i', p->index);
		}
	}
	assert_string_equal(have, want);
}

static void expect_notes(const struct rig *r, const struct transcript *t)
{
	for (int i = 0; i < t->n_notes; i++) {
		int n = 0;

		for (int k = 0; k < r->n_events; k++) {
			n += r->events[k].ev.kind == DRV_EVENT_NOTE &&
			     strstr(r->events[k].text, t->notes[i]);
		}
		if (n != 1) {
			fail_msg("note '%s' was said %d times", t->notes[i], n);
		}
	}
	assert_true(r->n_events == 0 || t->n_notes > 0);
}

static void expect_refusal(struct rig *r, const char *refused)
{
	struct drv_item item = { .op = DRV_ADD };
	int used = 0;

	assert_int_equal(sscanf(refused, "%d-%d %n", &item.xc.in, &item.xc.out, &used), 2);
	assert_int_equal(rig_submit(r, DRV_SAFE, 1, &item), WEFT_EDEVICE);
	rig_expect(r, 0, DRV_REFUSED);
	if (!strstr(r->outcomes[0].text, refused + used)) {
		fail_msg("refused with '%s'", r->outcomes[0].text);
	}
}

static void is_understood(void **state)
{
	struct transcript *t = *state;
	struct rig *r = test_calloc(1, sizeof(*r));
	int status;

	read_transcript(t);
	rig_init(r, t->driver, t->n_in, t->n_out, false);
	rig_option(r, "gap_ms", "0");
	rig_option(r, "settle_ms", "1");
	if (strstr(t->driver, "-cli")) {
		r->cfg.n_options = 0;
		rig_option(r, "gap_ms", "0");
		rig_option(r, "poll_ms", "1");
	} else if (strcmp(t->driver, "calient-tl1") == 0) {
		rig_option(r, "bulk", "0");
	}
	start_device(r, t);
	rig_open(r);
	rig_expect_map(r, t->map);
	assert_true(r->snap.identity[0] != '\0');
	rig_expect_map(r, t->map);
	expect_ports(r, t->disabled, false);
	expect_ports(r, t->failed, true);
	expect_notes(r, t);
	if (t->refused[0]) {
		expect_refusal(r, t->refused);
	}
	rig_close(r);
	kill(r->emulator, SIGKILL);
	assert_int_equal(waitpid(r->emulator, &status, 0), r->emulator);
	r->emulator = 0;
	rig_fini(r);
	test_free(r);
	for (int i = 0; i < t->n_answers; i++) {
		buf_fini(&t->answers[i].text);
	}
}

int main(int argc, char **argv)
{
	static struct transcript all[64];
	static struct CMUnitTest tests[64];
	struct dirent **names;
	int n = 0, n_names = scandir(FOLDER, &names, NULL, alphasort);

	assert_true(n_names > 0);
	for (int i = 0; i < n_names; i++) {
		const char *end = strstr(names[i]->d_name, ".txt");

		if (end && n < 64) {
			snprintf(all[n].path, sizeof(all[n].path), FOLDER "/%s", names[i]->d_name);
			tests[n].name = all[n].path;
			tests[n].test_func = is_understood;
			tests[n].initial_state = &all[n];
			n++;
		}
		free(names[i]);
	}
	free(names);
	if (argc > 1) {
		cmocka_set_test_filter(argv[1]);
	}
	return cmocka_run_group_tests_name("drivers/transcripts", tests, NULL, NULL);
}
