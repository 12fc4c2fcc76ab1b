/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting for descriptors: epoll, by level and by edge, and poll. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/kernel/kernel.h"

static struct object *epolls;

int epoll_create1(int flags)
{
	struct object *e = sim_new_object(EPOLL, flags);

	e->next_epoll = epolls;
	epolls = e;
	return sim_put(e);
}

int epoll_create(int size)
{
	(void)size;
	return epoll_create1(0);
}

void sim_epoll_gone(struct object *epoll)
{
	struct object **q = &epolls;

	while (*q != epoll) {
		q = &(*q)->next_epoll;
	}
	*q = epoll->next_epoll;
	free(epoll->watches);
}

void sim_epoll_forget(int fd)
{
	for (struct object *e = epolls; e; e = e->next_epoll) {
		for (int i = 0; i < e->n_watches; i++) {
			if (e->watches[i].fd == fd) {
				memmove(e->watches + i, e->watches + i + 1,
					sizeof(*e->watches) * (size_t)(--e->n_watches - i));
				break;
			}
		}
	}
}

static int find_watch(const struct object *e, int fd)
{
	for (int i = 0; i < e->n_watches; i++) {
		if (e->watches[i].fd == fd) {
			return i;
		}
	}
	return -1;
}

static void add_watch(struct object *e, int fd, const struct epoll_event *event)
{
	if (e->n_watches == e->cap) {
		e->cap = e->cap ? e->cap * 2 : 16;
		e->watches = realloc(e->watches, sizeof(*e->watches) * (size_t)e->cap);
	}
	e->watches[e->n_watches++] = (struct watch){ .fd = fd, .event = *event };
}

static int fail(int error)
{
	errno = error;
	return -1;
}

int epoll_ctl(int ep, int op, int fd, struct epoll_event *event)
{
	struct object *e = sim_object(ep);
	int i;

	if (!e || e->kind != EPOLL) {
		return fail(EBADF);
	}
	if (!sim_object(fd)) {
		return fail(fd < FIRST_FD ? EPERM : EBADF);
	}
	i = find_watch(e, fd);
	sim_ask_again(e->owner, sim_time);
	if (op == EPOLL_CTL_ADD) {
		if (i >= 0) {
			return fail(EEXIST);
		}
		add_watch(e, fd, event);
	} else if (i < 0) {
		return fail(ENOENT);
	} else if (op == EPOLL_CTL_MOD) {
		e->watches[i] = (struct watch){ .fd = fd, .event = *event };
	} else {
		sim_epoll_forget(fd);
	}
	return 0;
}

/* What a watch has to report now. An edge is news since the last report. */
static unsigned what_of(struct sim_process *p, const struct watch *w)
{
	struct object *o = sim_object(w->fd);
	unsigned mask;

	if (!o || w->off) {
		return 0;
	}
	mask = sim_mask(p, o) & (w->event.events | EPOLLERR | EPOLLHUP);
	return w->event.events & EPOLLET && w->seen == o->edges + 1 ? 0 : mask;
}

bool sim_epoll_has(struct sim_process *p, struct object *epoll)
{
	bool has = false;

	/* All of them: what comes later has to be known of each. */
	for (int i = 0; i < epoll->n_watches; i++) {
		has |= what_of(p, &epoll->watches[i]) != 0;
	}
	return has;
}

static int collect(struct object *e, struct epoll_event *out, int max)
{
	int n = 0;

	for (int i = 0; i < e->n_watches && n < max; i++) {
		struct watch *w = &e->watches[i];
		unsigned what = what_of(NULL, w);

		if (what) {
			out[n] = w->event;
			out[n++].events = what;
			w->seen = sim_object(w->fd)->edges + 1;
			w->off = w->event.events & EPOLLONESHOT;
		}
	}
	return n;
}

static bool epoll_is_ready(struct sim_process *p, void *arg)
{
	return sim_epoll_has(p, arg);
}

static int64_t end_of(int ms)
{
	return ms < 0 ? NEVER : sim_time + ms * SIM_MS;
}

int epoll_pwait(int ep, struct epoll_event *out, int max, int ms, const sigset_t *signals)
{
	struct object *e = sim_object(ep);
	int n;

	(void)signals;
	if (!e || e->kind != EPOLL) {
		return fail(EBADF);
	}
	sim_call();
	n = collect(e, out, max);
	if (n > 0 || ms == 0) {
		sim_time += 200;	/* who looks all the time does not stop it */
		return n;
	}
	sim_wait_for(epoll_is_ready, e, end_of(ms), "epoll_wait");
	return collect(e, out, max);
}

int epoll_wait(int ep, struct epoll_event *out, int max, int ms)
{
	return epoll_pwait(ep, out, max, ms, NULL);
}

struct poll_set {
	struct pollfd *v;
	nfds_t n;
};

static int poll_now(struct sim_process *p, const struct poll_set *s)
{
	int n = 0;

	for (nfds_t i = 0; i < s->n; i++) {
		struct pollfd *f = &s->v[i];
		struct object *o = sim_object(f->fd);

		f->revents = 0;
		if (o) {
			f->revents = (short)(sim_mask(p, o) &
					     ((unsigned)f->events | POLLERR | POLLHUP));
		} else if (f->fd >= 0) {
			f->revents = f->events;		/* a file is always ready */
		}
		n += f->revents != 0;
	}
	return n;
}

static bool poll_is_ready(struct sim_process *p, void *arg)
{
	return poll_now(p, arg) > 0;
}

int poll(struct pollfd *v, nfds_t n, int ms)
{
	struct poll_set s = { v, n };
	int now;

	if (!sim_current) {
		return LIBC(poll)(v, n, ms);
	}
	sim_call();
	now = poll_now(NULL, &s);
	if (now > 0 || ms == 0) {
		sim_time += 200;
		return now;
	}
	sim_wait_for(poll_is_ready, &s, end_of(ms), "poll");
	return poll_now(NULL, &s);
}

int __poll_chk(struct pollfd *v, nfds_t n, int ms, size_t room);
int __poll_chk(struct pollfd *v, nfds_t n, int ms, size_t room)
{
	(void)room;
	return poll(v, n, ms);
}
