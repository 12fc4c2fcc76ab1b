/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Coroutines by ucontext. Which one runs is known by the stack that its code is on, so there is
 * nothing that a switch to another must set.
 */
#include "lib/coroutine/coroutine.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/queue.h>
#include <ucontext.h>

#include "lib/base/alloc.h"

#define STACK_BYTES ((size_t)256 << 10)
#define GUARD_BYTES ((size_t)4 << 10)	/* below it: an overflow ends the process */

struct coroutine {
	LIST_ENTRY(coroutine) link;
	ucontext_t own, resumed_from;
	uv_loop_t *loop;
	void (*fn)(void *arg), (*done)(void *arg);
	void *arg;
	char *stack;
	bool ended;
};

static LIST_HEAD(, coroutine) all = LIST_HEAD_INITIALIZER(all);

/* The one that this code runs in, or NULL. */
static struct coroutine *running(void)
{
	const char *here = __builtin_frame_address(0);
	struct coroutine *c;

	LIST_FOREACH(c, &all, link) {
		if (here > c->stack && here <= c->stack + GUARD_BYTES + STACK_BYTES) {
			return c;
		}
	}
	return NULL;
}

/* ---- going on ------------------------------------------------------------ */

static void *new_stack(void)
{
	void *stack = mmap(NULL, GUARD_BYTES + STACK_BYTES, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);

	if (stack == MAP_FAILED) {
		alloc_end(STACK_BYTES);
	}
	mprotect(stack, GUARD_BYTES, PROT_NONE);
	return stack;
}

/* Until its next wait, or its end. */
static void resume(struct coroutine *c)
{
	swapcontext(&c->resumed_from, &c->own);
	if (c->ended) {
		void (*done)(void *arg) = c->done;
		void *arg = c->arg;

		LIST_REMOVE(c, link);
		munmap(c->stack, GUARD_BYTES + STACK_BYTES);
		free(c);
		done(arg);
	}
}

static void suspend(struct coroutine *c)
{
	swapcontext(&c->own, &c->resumed_from);
}

/* makecontext() hands over ints: a pointer in two. */
static void begin(unsigned int high, unsigned int low)
{
	struct coroutine *c = (void *)((uintptr_t)high << 32 | low);

	c->fn(c->arg);
	c->ended = true;
	suspend(c);
}

void co_start(uv_loop_t *loop, void (*fn)(void *arg), void (*done)(void *arg), void *arg)
{
	struct coroutine *c = x_new(1, sizeof(*c));
	const uint64_t at = (uintptr_t)c;

	c->loop = loop;
	c->fn = fn;
	c->done = done;
	c->arg = arg;
	c->stack = new_stack();
	getcontext(&c->own);
	c->own.uc_stack.ss_sp = c->stack + GUARD_BYTES;
	c->own.uc_stack.ss_size = STACK_BYTES;
	makecontext(&c->own, (void (*)(void))begin, 2, (unsigned int)(at >> 32),
		    (unsigned int)at);
	LIST_INSERT_HEAD(&all, c, link);
	resume(c);
}

/* ---- waiting ------------------------------------------------------------- */

/* Lives until the loop has closed its handles. */
struct co_wait {
	struct coroutine *c;
	uv_poll_t poll;
	uv_timer_t timer;
	int n_handles;
};

static void on_closed(uv_handle_t *handle)
{
	struct co_wait *w = handle->data;

	if (--w->n_handles == 0) {
		free(w);
	}
}

static void on_event(uv_poll_t *handle, int status, int events)
{
	(void)status, (void)events;
	resume(((struct co_wait *)handle->data)->c);
}

static void on_time(uv_timer_t *handle)
{
	resume(((struct co_wait *)handle->data)->c);
}

/* Until one of these events, or an error, is there for fd, or ms are over. */
static void wait_for(struct coroutine *c, const struct pollfd *p, int ms)
{
	struct co_wait *w = x_new(1, sizeof(*w));

	w->c = c;
	w->n_handles = 1;
	w->timer.data = w->poll.data = w;
	uv_timer_init(c->loop, &w->timer);
	if (ms >= 0) {
		uv_timer_start(&w->timer, on_time, (uint64_t)ms, 0);
	}
	if (p && uv_poll_init(c->loop, &w->poll, p->fd) == 0) {
		w->n_handles = 2;
		uv_poll_start(&w->poll, (p->events & POLLIN ? UV_READABLE : 0) |
			      (p->events & POLLOUT ? UV_WRITABLE : 0), on_event);
	}
	suspend(c);
	uv_close((uv_handle_t *)&w->timer, on_closed);
	if (w->n_handles == 2) {
		uv_close((uv_handle_t *)&w->poll, on_closed);
	}
}

int co_poll(struct pollfd *p, int ms)
{
	struct coroutine *c = running();
	int n;

	if (!c || ms == 0) {
		return poll(p, p ? 1 : 0, ms);
	}
	n = p ? poll(p, 1, 0) : 0;
	if (n == 0) {
		wait_for(c, p, ms);
		n = p ? poll(p, 1, 0) : 0;
	}
	return n;
}

/* ---- names --------------------------------------------------------------- */

struct lookup {
	struct coroutine *c;
	int status;
	struct addrinfo *list;
};

static void on_list(uv_getaddrinfo_t *req, int status, struct addrinfo *list)
{
	struct lookup *l = req->data;

	l->status = status;
	l->list = list;
	resume(l->c);
}

/* libuv's errors of this kind are those of getaddrinfo() under other numbers. */
static int error_of(int status)
{
	return status == 0 ? 0 : status == UV_EAI_AGAIN ? EAI_AGAIN
	     : status == UV_EAI_MEMORY ? EAI_MEMORY : status == UV_EAI_NONAME ? EAI_NONAME
									      : EAI_FAIL;
}

int co_getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
		   struct addrinfo **out)
{
	struct lookup l = { .c = running() };
	struct addrinfo numbers = *hints;
	uv_getaddrinfo_t req = { .data = &l };

	numbers.ai_flags |= AI_NUMERICHOST;
	if (!l.c) {
		return getaddrinfo(host, service, hints, out);
	}
	if (getaddrinfo(host, service, &numbers, out) == 0) {
		return 0;	/* there is nothing to wait for */
	}
	l.status = uv_getaddrinfo(l.c->loop, &req, on_list, host, service, hints);
	if (l.status == 0) {
		suspend(l.c);
	}
	*out = l.list;
	return error_of(l.status);
}
