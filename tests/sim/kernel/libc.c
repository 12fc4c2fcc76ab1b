/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Time, chance, identity, and threads. What a worker of libuv does is done by a fiber of its
 * own, at a random moment after it was asked for; its end comes to the loop by uv_async_send.
 */
#include <fcntl.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>

#include "tests/sim/kernel/kernel.h"

#define READING_NS 50		/* what a look at the clock takes */
#define WORK_READING_NS 100000	/* a worker's, in the place of what it computes between two */
#define WALL_START ((int64_t)1800000000 * SIM_S)

/* ---- time ---- */

static int64_t wall_time(void)
{
	return WALL_START + sim_time + (sim_current ? sim_current->machine->clock_shift : 0);
}

static void look_at_clock(void)
{
	struct sim_process *p = sim_current;

	sim_time += READING_NS;
	if (p && p->computes) {
		p->owed_ns += WORK_READING_NS;
		if (p->owed_ns >= SIM_MS) {
			sim_sleep(p->owed_ns);
			p->owed_ns = 0;
		}
	}
}

int clock_gettime(clockid_t id, struct timespec *ts)
{
	bool wall = id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE;
	int64_t t;

	look_at_clock();
	t = wall ? wall_time() : sim_time;
	ts->tv_sec = t / SIM_S;
	ts->tv_nsec = t % SIM_S;
	return 0;
}

int gettimeofday(struct timeval *restrict tv, void *restrict zone)
{
	int64_t t = wall_time();

	(void)zone;
	tv->tv_sec = t / SIM_S;
	tv->tv_usec = t % SIM_S / 1000;
	return 0;
}

int64_t sim_real_s(void)
{
	struct timespec ts;

	LIBC(clock_gettime)(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec;
}

time_t time(time_t *out)
{
	time_t t = wall_time() / SIM_S;

	if (out) {
		*out = t;
	}
	return t;
}

int nanosleep(const struct timespec *t, struct timespec *left)
{
	(void)left;
	sim_sleep(t->tv_sec * SIM_S + t->tv_nsec);
	return 0;
}

int usleep(useconds_t us)
{
	sim_sleep((int64_t)us * 1000);
	return 0;
}

unsigned int sleep(unsigned int seconds)
{
	sim_sleep(seconds * SIM_S);
	return 0;
}

/* ---- chance, and who one is ---- */

ssize_t getrandom(void *bytes, size_t n, unsigned int flags)
{
	(void)flags;
	for (size_t i = 0; i < n; i++) {
		((unsigned char *)bytes)[i] = (unsigned char)sim_random(SIM_BYTES);
	}
	return (ssize_t)n;
}

int getentropy(void *bytes, size_t n)
{
	getrandom(bytes, n, 0);
	return 0;
}

pid_t getpid(void)
{
	return sim_current ? sim_current->pid : LIBC(getpid)();
}

int gethostname(char *name, size_t n)
{
	snprintf(name, n, "%s", sim_machine(sim_current));
	return 0;
}

/* ---- the end ---- */

void _exit(int status)
{
	if (sim_current) {
		sim_end(sim_current->leader, status, false);
	}
	LIBC(_exit)(status);
	__builtin_unreachable();
}

void exit(int status)
{
	if (sim_current) {
		sim_end(sim_current->leader, status, false);
	}
	LIBC(exit)(status);
	__builtin_unreachable();
}

/* ---- signals: by the handles of libuv, to one process ---- */

struct handle {
	struct handle *next;
	struct sim_process *owner;
	uv_signal_t *signal;
	int number;
};

static struct handle *handles;

static void forget_handle(const uv_handle_t *h)
{
	for (struct handle **q = &handles, *x; (x = *q);) {
		if ((const uv_handle_t *)x->signal == h) {
			*q = x->next;
			free(x);
		} else {
			q = &x->next;
		}
	}
}

int uv_signal_start(uv_signal_t *h, uv_signal_cb cb, int number)
{
	struct handle *x = calloc(1, sizeof(*x));

	forget_handle((uv_handle_t *)h);
	*x = (struct handle){ handles, sim_self(), h, number };
	handles = x;
	return LIBC(uv_signal_start)(h, cb, number);
}

int uv_signal_stop(uv_signal_t *h)
{
	forget_handle((uv_handle_t *)h);
	return LIBC(uv_signal_stop)(h);
}

void uv_close(uv_handle_t *h, uv_close_cb cb)
{
	if (h->type == UV_SIGNAL) {
		forget_handle(h);
	}
	LIBC(uv_close)(h, cb);
}

void sim_signal(struct sim_process *p, int number)
{
	struct sim_process *caller = sim_current;
	bool caught = false;

	if (p->ended) {
		return;
	}
	if (number == SIGKILL) {
		sim_end(p, 128 + SIGKILL, true);
		return;
	}
	for (struct handle *x = handles; x; x = x->next) {
		/* What libuv's own handler writes to the loop. */
		struct {
			uv_signal_t *handle;
			int number;
		} message;

		if (x->owner != p || x->number != number) {
			continue;
		}
		memset(&message, 0, sizeof(message));
		message.handle = x->signal;
		message.number = number;
		x->signal->caught_signals++;
		sim_current = NULL;
		(void)!write(x->signal->loop->signal_pipefd[1], &message, sizeof(message));
		sim_current = caller;
		caught = true;
	}
	if (!caught && number == SIGTERM) {
		sim_end(p, 128 + SIGTERM, true);	/* it has only begun */
	}
}

int sigaction(int number, const struct sigaction *new, struct sigaction *old)
{
	if (number == SIGSEGV || number == SIGABRT || number == SIGBUS || number == SIGFPE ||
	    number == SIGILL || number == SIGXCPU) {
		return LIBC(sigaction)(number, new, old);
	}
	if (old) {
		memset(old, 0, sizeof(*old));
	}
	return 0;
}

unsigned int alarm(unsigned int seconds)
{
	(void)seconds;
	return 0;
}

/* ---- timers that end the process ---- */

int timer_create(clockid_t clock, struct sigevent *restrict event, timer_t *restrict out)
{
	struct sim_process *p = sim_self();

	(void)clock;
	if (!event || event->sigev_signo != SIGKILL) {
		errno = ENOTSUP;
		return -1;
	}
	for (int i = 0; i < MAX_TIMERS; i++) {
		if (!p->timers[i]) {
			p->timers[i] = NEVER;
			*out = &p->timers[i];
			return 0;
		}
	}
	errno = EAGAIN;
	return -1;
}

int timer_settime(timer_t timer, int flags, const struct itimerspec *new,
		  struct itimerspec *restrict old)
{
	int64_t *at = timer, ns = new->it_value.tv_sec * SIM_S + new->it_value.tv_nsec;

	(void)flags, (void)old;
	*at = ns > 0 ? sim_time + ns : NEVER;
	sim_ask_again(sim_self(), *at);
	return 0;
}

int timer_delete(timer_t timer)
{
	*(int64_t *)timer = 0;
	return 0;
}

/* ---- threads: fibers of the process ---- */

/* What libuv makes once, for all its loops, belongs to none of the processes. */
void sim_begin_libuv(void)
{
	uv_loop_t loop;

	uv_loop_init(&loop);
	uv_loop_close(&loop);
}

struct thread {
	void *(*run)(void *arg);
	void *arg, *result;
	bool over;
};

static void run_thread(void *arg)
{
	struct thread *t = arg;

	t->result = t->run(t->arg);
	t->over = true;
	sim_ask_all();
}

int pthread_create(pthread_t *restrict out, const pthread_attr_t *restrict attributes,
		   void *(*run)(void *), void *restrict arg)
{
	struct thread *t;

	if (!sim_current) {
		return LIBC(pthread_create)(out, attributes, run, arg);
	}
	t = calloc(1, sizeof(*t));
	*t = (struct thread){ .run = run, .arg = arg };
	*out = (pthread_t)t;
	sim_start_worker(run_thread, t, sim_time);
	return 0;
}

static bool is_over(struct sim_process *p, void *arg)
{
	(void)p;
	return ((struct thread *)arg)->over;
}

int pthread_join(pthread_t thread, void **result)
{
	struct thread *t = (struct thread *)thread;

	if (!sim_current) {
		return LIBC(pthread_join)(thread, result);
	}
	sim_wait_for(is_over, t, NEVER, "join");
	if (result) {
		*result = t->result;
	}
	free(t);
	return 0;
}

/* In the place of libc's barrier. */
struct barrier {
	unsigned want, here, round;
};

_Static_assert(sizeof(struct barrier) <= sizeof(pthread_barrier_t), "in its place");

struct at_barrier {
	const struct barrier *barrier;
	unsigned round;
};

int pthread_barrier_init(pthread_barrier_t *restrict b,
			 const pthread_barrierattr_t *restrict attributes, unsigned int want)
{
	(void)attributes;
	*(struct barrier *)(void *)b = (struct barrier){ .want = want };
	return 0;
}

static bool is_passed(struct sim_process *p, void *arg)
{
	const struct at_barrier *at = arg;

	(void)p;
	return at->barrier->round != at->round;
}

int pthread_barrier_wait(pthread_barrier_t *barrier)
{
	struct barrier *b = (struct barrier *)(void *)barrier;
	struct at_barrier at = { b, b->round };

	if (++b->here == b->want) {
		b->here = 0;
		b->round++;
		sim_ask_all();
		return PTHREAD_BARRIER_SERIAL_THREAD;
	}
	sim_wait_for(is_passed, &at, NEVER, "barrier");
	return 0;
}

int pthread_barrier_destroy(pthread_barrier_t *b)
{
	(void)b;
	return 0;
}

/* The same on every machine: plans are divided by it. */
long sysconf(int name)
{
	return name == _SC_NPROCESSORS_ONLN ? 2 : LIBC(sysconf)(name);
}

/* ---- workers of libuv ---- */

struct job {
	uv_async_t done;
	uv_work_t *request;
	uv_work_cb work;
	uv_after_work_cb after;
};

static void run_job(void *arg)
{
	struct job *j = arg;

	sim_current->computes = true;
	j->work(j->request);
	sim_sleep(sim_between(SIM_SCHEDULE, 1000, SIM_MS));
	uv_async_send(&j->done);
}

static void free_job(uv_handle_t *h)
{
	free(h->data);
}

static void end_job(uv_async_t *h)
{
	struct job *j = h->data;
	uv_work_t *request = j->request;
	uv_after_work_cb after = j->after;

	uv_close((uv_handle_t *)h, free_job);
	if (after) {
		after(request, 0);
	}
}

/* Mostly soon, at times long after. */
static int64_t work_begins(void)
{
	int64_t longest = sim_random(SIM_SCHEDULE) % 64 == 0 ? 50 * SIM_MS : SIM_MS;

	return sim_time + sim_between(SIM_SCHEDULE, 1000, longest);
}

int uv_queue_work(uv_loop_t *loop, uv_work_t *request, uv_work_cb work, uv_after_work_cb after)
{
	struct job *j = calloc(1, sizeof(*j));
	int r = uv_async_init(loop, &j->done, end_job);

	if (r) {
		free(j);
		return r;
	}
	j->done.data = j;
	j->request = request;
	j->work = work;
	j->after = after;
	request->type = UV_WORK;
	request->loop = loop;
	sim_start_worker(run_job, j, work_begins());
	return 0;
}

/* Names need a network of names. */
int uv_getaddrinfo(uv_loop_t *loop, uv_getaddrinfo_t *request, uv_getaddrinfo_cb cb,
		   const char *node, const char *service, const struct addrinfo *hints)
{
	(void)loop, (void)request, (void)cb, (void)node, (void)service, (void)hints;
	return UV_EAI_NONAME;
}
