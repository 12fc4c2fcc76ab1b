/* SPDX-License-Identifier: Apache-2.0 */
/* The events of a change on stderr: a bar on a terminal, else lines; and for how long a command
 * without events has run. */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "controller/cli/core/private.h"
#include "lib/base/text.h"

/* Characters between the brackets, and the width below which the terminal is
 * not believed. */
#define BAR_CELLS 24
#define MIN_COLUMNS 40

void progress_init(struct progress *p, const struct cli *c)
{
	progress_clock_stop();
	memset(p, 0, sizeof(*p));
	p->c = c;
	p->bar = isatty(STDERR_FILENO) && c->talk == CLI_NORMAL;
}

/* Columns of the terminal behind stderr; 80 where it does not say. */
static int columns(void)
{
	struct winsize w;

	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &w) != 0 || w.ws_col < MIN_COLUMNS) {
		return MIN_COLUMNS * 2;
	}
	return w.ws_col;
}

/* Clears the line of the bar, so that a message can be printed in its
 * place. */
static void erase(struct progress *p)
{
	if (p->drawn) {
		fputs("\r\033[K", stderr);
		p->drawn = false;
	}
}

/* "[######------] 3/12 text", cut to one line: a line that wraps could not be
 * redrawn. */
static void draw_bar(struct progress *p, const Weft__V1__ChangeEvent *ev, const char *text)
{
	char cells[BAR_CELLS + 1], line[512];
	int total = ev->total > 0 ? ev->total : 1;
	int64_t full = (int64_t)ev->done * BAR_CELLS / total;

	/* What comes from weftd may lie outside of 0 to total. */
	full = full < 0 ? 0 : full > BAR_CELLS ? BAR_CELLS : full;
	memset(cells, '-', BAR_CELLS);
	memset(cells, '#', (size_t)full);
	cells[BAR_CELLS] = '\0';
	snprintf(line, sizeof(line), "[%s] %d/%d %s", cells, ev->done, ev->total, text);
	erase(p);
	fprintf(stderr, "%.*s", columns() - 1, line);
	fflush(stderr);
	p->drawn = true;
}

/* The last event of a change carries its result. */
static void take_result(struct progress *p, const Weft__V1__ChangeResult *r)
{
	p->has_result = true;
	p->verdict = r->verdict;
	p->change = r->change;
	p->generation = r->generation;
	p->level = r->proof;
	p->took_ns = r->took_ns;
	p->left = r->left;
}

/* Robots take minutes; seconds to the last digit are noise. */
static void put_eta(int64_t ns, char *text, size_t size)
{
	int64_t s = (ns + 999999999) / 1000000000;

	text[0] = '\0';
	if (s >= 120) {
		snprintf(text, size, ", about %" PRId64 " min left",
			 (s + 30) / 60);
	} else if (s > 0) {
		snprintf(text, size, ", about %" PRId64 " s left", s);
	}
}

/* Problems are always printed, on lines of their own. Other events redraw the
 * bar on a terminal, and are lines elsewhere unless -q. */
void progress_event(struct progress *p, const Weft__V1__ChangeEvent *ev)
{
	char text[384], eta[48];

	if (ev->result) {
		take_result(p, ev->result);
	}
	if (!ev->text[0] && !ev->phase[0]) {
		return;
	}
	put_eta(ev->eta_ns, eta, sizeof(eta));
	snprintf(text, sizeof(text), "%s%s%s%s%s%s", ev->device,
		 ev->device[0] ? ": " : "", ev->phase,
		 ev->phase[0] && ev->text[0] ? ": " : "", ev->text, eta);
	text_clean(text);
	if (ev->is_problem) {
		p->problems++;
		erase(p);
		fprintf(stderr, "weft: %s\n", text);
	} else if (p->bar) {
		draw_bar(p, ev, text);
	} else if (ev->total > 0) {
		cli_say(p->c, CLI_NORMAL, "%s (%d/%d)", text, ev->done, ev->total);
	} else {
		cli_say(p->c, CLI_NORMAL, "%s", text);
	}
}

void progress_end(struct progress *p)
{
	erase(p);
	fflush(stderr);
}

/* ---- for how long ---- */

#define CLOCK_AFTER_S 2

static struct {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	const char *verb;
	bool runs, ends;
} ticking = { .lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER };

/* A line each second; the last is erased. */
static void *tick(void *arg)
{
	struct timespec at;

	(void)arg;
	clock_gettime(CLOCK_REALTIME, &at);
	at.tv_sec += CLOCK_AFTER_S;
	pthread_mutex_lock(&ticking.lock);
	for (int s = CLOCK_AFTER_S; !ticking.ends; s++, at.tv_sec++) {
		while (!ticking.ends &&
		       pthread_cond_timedwait(&ticking.wake, &ticking.lock, &at) == 0) {
		}
		if (!ticking.ends) {
			fprintf(stderr, "\r\033[Kweft %s: %d s", ticking.verb, s);
			fflush(stderr);
		} else if (s > CLOCK_AFTER_S) {
			fputs("\r\033[K", stderr);
		}
	}
	pthread_mutex_unlock(&ticking.lock);
	return NULL;
}

void progress_clock_start(const struct cli *c)
{
	if (ticking.runs || c->talk != CLI_NORMAL || !isatty(STDERR_FILENO)) {
		return;
	}
	ticking.verb = c->verb;
	ticking.ends = false;
	ticking.runs = pthread_create(&ticking.thread, NULL, tick, NULL) == 0;
}

void progress_clock_stop(void)
{
	if (!ticking.runs) {
		return;
	}
	pthread_mutex_lock(&ticking.lock);
	ticking.ends = true;
	pthread_cond_signal(&ticking.wake);
	pthread_mutex_unlock(&ticking.lock);
	pthread_join(ticking.thread, NULL);
	ticking.runs = false;
}
