/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Weftd's side of a process that plans: it is started, asked, waited for and ended on the loop,
 * which never waits for it. An answer is there when all of its bytes are; a process that ends
 * before has met a limit, or died of what it was told, and both are the asker's to hear.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/daemon/core/plan_process.h"
#include "lib/base/alloc.h"

#define MAX_ANSWER ((uint64_t)256 << 20)	/* bytes of a plan */
#define EXIT_NO_MEMORY 71			/* of the process: alloc.h */
#define CHUNK 65536
#define REST_MS 10000		/* for another question */
#define MAX_QUESTIONS 256	/* then another process takes over: CPU is limited in all */

struct plan_process {
	uv_process_t process;
	uv_pipe_t pipe;
	uv_timer_t timer;
	uv_write_t write;
	int n_open;		/* of these handles */
	struct plan_limits limits;
	uint64_t question_len;
	struct buf question;
	struct buf answer;	/* as far as it has come: its length, then its bytes */
	plan_answered *answered;	/* NULL: nothing was asked */
	void *arg;
	int n_questions;
	struct plan_process **place;	/* where it rests, or NULL */
	bool late, large;	/* why weftd has killed it */
	bool freed, exited, at_end;	/* at_end: its descriptor was closed */
	int64_t status;
	int signal;
	char chunk[CHUNK];
};

static void on_closed(uv_handle_t *h)
{
	struct plan_process *p = h->data;

	if (--p->n_open == 0) {
		buf_fini(&p->question);
		buf_fini(&p->answer);
		free(p);
	}
}

/* Whether the loop runs for it. */
static void hold(struct plan_process *p, void (*ref)(uv_handle_t *h))
{
	if (!p->exited) {
		ref((uv_handle_t *)&p->process);
	}
	ref((uv_handle_t *)&p->pipe);
	ref((uv_handle_t *)&p->timer);
}

static void end(struct plan_process *p)
{
	if (!p->exited) {
		uv_process_kill(&p->process, SIGKILL);
	}
}

/* ---- answers ----------------------------------------------------------------- */

static void deliver(struct plan_process *p, const struct buf *answer, const struct err *err)
{
	plan_answered *answered = p->answered;

	p->answered = NULL;
	uv_timer_stop(&p->timer);
	hold(p, uv_unref);
	answered(err->code, answer, err, p->arg);
}

/* How it ended, for whoever waits for its answer. */
static void describe_end(const struct plan_process *p, struct err *err)
{
	if (p->late || p->signal == SIGXCPU) {
		err_set(err, WEFT_ETIMEOUT, "planning took more than %lld s",
			(long long)p->limits.time_s);
		err_hint(err, "\"weftd --plan-time\" allows more");
	} else if (p->large) {
		err_set(err, WEFT_ELIMIT, "the plan has more than %llu MiB",
			(unsigned long long)(MAX_ANSWER >> 20));
	} else if (p->signal == 0 && p->status == EXIT_NO_MEMORY) {
		err_set(err, WEFT_ELIMIT, "planning needs more than %lld MiB of memory",
			(long long)p->limits.memory_mib);
		err_hint(err, "\"weftd --plan-memory\" allows more");
	} else if (p->signal == SIGKILL) {
		err_set(err, WEFT_EUNAVAIL, "planning was killed, as where the machine has no "
			"more memory");
	} else if (p->signal) {
		err_set(err, WEFT_EINTERNAL, "planning crashed: %s", strsignal(p->signal));
	} else {
		err_set(err, WEFT_EINTERNAL, "planning ended with exit status %lld",
			(long long)p->status);
	}
}

/* Bytes may still come after it has exited. */
static void check_end(struct plan_process *p)
{
	struct err err = { 0 };

	if (p->place && (p->exited || p->at_end)) {
		plan_process_free(p);
	} else if (p->exited && p->at_end && p->answered) {
		describe_end(p, &err);
		deliver(p, NULL, &err);
	}
}

/* All of an answer, and nothing that was not asked for. */
static void check_answer(struct plan_process *p)
{
	struct buf body;
	uint64_t n;

	if (p->answer.len < sizeof(n)) {
		return;
	}
	memcpy(&n, p->answer.data, sizeof(n));
	if (n > MAX_ANSWER || p->answer.len > sizeof(n) + n || !p->answered) {
		p->large = true;
		end(p);
	} else if (p->answer.len == sizeof(n) + n) {
		body = p->answer;
		p->answer = (struct buf){ 0 };
		deliver(p, &(struct buf){ .data = body.data + sizeof(n), .len = n },
			&(struct err){ 0 });
		buf_fini(&body);
	}
}

static void on_alloc(uv_handle_t *h, size_t size, uv_buf_t *out)
{
	struct plan_process *p = h->data;

	(void)size;
	*out = uv_buf_init(p->chunk, sizeof(p->chunk));
}

static void on_read(uv_stream_t *s, ssize_t n, const uv_buf_t *from)
{
	struct plan_process *p = s->data;

	if (n < 0) {
		p->at_end = true;
		uv_read_stop(s);
		check_end(p);
	} else if (!p->large && n > 0) {
		buf_add(&p->answer, from->base, (size_t)n);
		check_answer(p);
	}
}

static void on_exit_of(uv_process_t *process, int64_t status, int number)
{
	struct plan_process *p = process->data;

	p->exited = true;
	p->status = status;
	p->signal = number;
	uv_close((uv_handle_t *)process, on_closed);
	if (!p->freed) {
		check_end(p);
	}
}

static void on_time(uv_timer_t *timer)
{
	struct plan_process *p = timer->data;

	if (p->place) {
		plan_process_free(p);
		return;
	}
	p->late = !p->exited;
	end(p);
	check_end(p);
}

/* ---- questions ---------------------------------------------------------------- */

static void on_written(uv_write_t *write, int status)
{
	struct plan_process *p = write->data;

	(void)status;	/* its end says more */
	buf_fini(&p->question);
}

void plan_process_ask(struct plan_process *p, struct buf *question, plan_answered *answered,
		      void *arg)
{
	uv_buf_t parts[2];

	p->question = *question;
	p->question_len = question->len;
	*question = (struct buf){ 0 };
	p->answered = answered;
	p->arg = arg;
	p->n_questions++;
	hold(p, uv_ref);
	parts[0] = uv_buf_init((char *)&p->question_len, sizeof(p->question_len));
	parts[1] = uv_buf_init(p->question.data, (unsigned)p->question.len);
	p->write.data = p;
	if (p->exited || uv_write(&p->write, (uv_stream_t *)&p->pipe, parts, 2, on_written)) {
		buf_fini(&p->question);
	}
	uv_update_time(p->timer.loop);
	uv_timer_start(&p->timer, on_time, p->exited ? 0 : (uint64_t)p->limits.time_s * 1000, 0);
}

/* ---- life -------------------------------------------------------------------- */

/* Whatever file it was started from: a package may have replaced that. */
static int spawn(struct plan_process *p, uv_loop_t *loop)
{
	char memory[24], seconds[24], nice[24];
	char *argv[] = { (char *)"weftd", (char *)PLAN_PROCESS_MODE, memory, seconds, nice, NULL };
	uv_stdio_container_t stdio[] = {
		{ .flags = UV_CREATE_PIPE | UV_READABLE_PIPE | UV_WRITABLE_PIPE,
		  .data.stream = (uv_stream_t *)&p->pipe },
		{ .flags = UV_IGNORE },
		{ .flags = UV_INHERIT_FD, .data.fd = 2 },
	};
	const uv_process_options_t options = {
		.exit_cb = on_exit_of, .file = "/proc/self/exe", .args = argv,
		.stdio = stdio, .stdio_count = 3,
	};

	snprintf(memory, sizeof(memory), "%lld", (long long)p->limits.memory_mib);
	snprintf(seconds, sizeof(seconds), "%lld", (long long)p->limits.time_s);
	snprintf(nice, sizeof(nice), "%d", p->limits.nice);
	return uv_spawn(loop, &p->process, &options);
}

int plan_process_new(uv_loop_t *loop, const struct plan_limits *limits, struct plan_process **out,
		     struct err *err)
{
	struct plan_process *p = x_new(1, sizeof(*p));
	int r;

	p->limits = *limits;
	p->n_open = 3;
	p->process.data = p->pipe.data = p->timer.data = p;
	uv_pipe_init(loop, &p->pipe, 0);
	uv_timer_init(loop, &p->timer);
	r = spawn(p, loop);
	if (r) {
		p->exited = true;
		uv_close((uv_handle_t *)&p->process, on_closed);
		plan_process_free(p);
		return err_set(err, WEFT_EUNAVAIL, "no process to plan in: %s", uv_strerror(r));
	}
	uv_read_start((uv_stream_t *)&p->pipe, on_alloc, on_read);
	hold(p, uv_unref);
	*out = p;
	return 0;
}

void plan_process_free(struct plan_process *p)
{
	if (p) {
		plan_process_wake(p->place);
		p->freed = true;
		p->answered = NULL;
		hold(p, uv_ref);
		end(p);
		uv_close((uv_handle_t *)&p->pipe, on_closed);
		uv_close((uv_handle_t *)&p->timer, on_closed);
	}
}

void plan_process_rest(struct plan_process *p, struct plan_process **place)
{
	plan_process_free(*place);
	if (p->exited || p->at_end || p->n_questions >= MAX_QUESTIONS) {
		plan_process_free(p);
		return;
	}
	p->place = place;
	*place = p;
	uv_timer_start(&p->timer, on_time, REST_MS, 0);
}

struct plan_process *plan_process_wake(struct plan_process **place)
{
	struct plan_process *p = place ? *place : NULL;

	if (p) {
		p->place = NULL;
		*place = NULL;
		uv_timer_stop(&p->timer);
	}
	return p;
}
