/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes as fibers, and who goes on. Of all that can go on one is chosen by the seed; when
 * none can, time jumps to the next moment that one waits for. What a process waits for is asked
 * again only when there is news for it, or at the time that the last asking has found.
 */
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/sim/kernel/kernel.h"

#define STACK_BYTES ((size_t)8 << 20)
#define SWITCH_NS 1000
#define FIRST_PID 5000000	/* above the machine's: /proc has none of them */
#define MAX_RUNNABLE 256
#define MAX_HOOKS 8
#define MAX_RULES 64

struct sim_process *sim_current;
struct sim_process *sim_processes;
int64_t sim_time = SIM_S;

static struct {
	ucontext_t context;
	struct machine *machines;
	int n_machines, next_pid;
	char *spare_stacks[64];
	int n_spare;
	uint64_t seeds[SIM_STREAMS];
	void (*on_end[MAX_HOOKS])(struct sim_process *p);
	int n_on_end;
	void (*on_late)(const struct sim_process *p, int64_t ns, const char *call);
	int64_t late_ns;
	bool stopped, traces;
	FILE *out;		/* the real standard output */
	void (*on_output)(const char *text, size_t n);
	void (*on_error)(const char *text, size_t n);
	const char *rules[MAX_RULES];
	int n_rules;
	uint64_t digest;
} k = { .next_pid = FIRST_PID };

/* ---- chance ---- */

/* splitmix64 */
static uint64_t next_random(uint64_t *state)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15u);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

uint64_t sim_random(enum sim_stream stream)
{
	return next_random(&k.seeds[stream]);
}

int64_t sim_between(enum sim_stream stream, int64_t low, int64_t high)
{
	return low + (int64_t)(sim_random(stream) % (uint64_t)(high - low));
}

/* ---- what is told ---- */

void sim_count(uint64_t a, uint64_t b)
{
	k.digest = (k.digest ^ a) * 0x100000001b3u;
	k.digest = (k.digest ^ b) * 0x100000001b3u;
}

static void tell(const char *fmt, va_list ap)
{
	char line[2048];
	int n = snprintf(line, sizeof(line), "%12.6f %-7s ", (double)sim_time / SIM_S,
			 sim_machine(sim_current));

	n += vsnprintf(line + n, sizeof(line) - (size_t)n - 1, fmt, ap);
	n = n < (int)sizeof(line) - 1 ? n : (int)sizeof(line) - 2;
	line[n++] = '\n';
	for (int i = 0; i < n; i++) {
		k.digest = (k.digest ^ (unsigned char)line[i]) * 0x100000001b3u;
	}
	if (k.traces) {
		fwrite(line, 1, (size_t)n, k.out);
		fflush(k.out);
	}
}

void sim_tell(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	tell(fmt, ap);
	va_end(ap);
}

void sim_fail(const char *what, const char *fmt, ...)
{
	char words[1024];
	bool told = false;
	va_list ap;

	for (int i = 0; i < k.n_rules; i++) {
		told |= strcmp(k.rules[i], what) == 0;
	}
	if (told || k.n_rules == MAX_RULES) {
		return;
	}
	k.rules[k.n_rules++] = what;
	va_start(ap, fmt);
	vsnprintf(words, sizeof(words), fmt, ap);
	va_end(ap);
	sim_tell("BROKEN %s: %s", what, words);
	if (!k.traces) {
		fprintf(k.out, "# %.3f s: %s: %s\n", (double)sim_time / SIM_S, what, words);
		fflush(k.out);
	}
}

int sim_failures(void)
{
	return k.n_rules;
}

const char *sim_broken(int i)
{
	return k.rules[i];
}

uint64_t sim_digest(void)
{
	return k.digest;
}

/* Standard error, a line at a time. */
static ssize_t write_error(void *cookie, const char *text, size_t n)
{
	(void)cookie;
	sim_tell("%.*s", (int)(n > 0 && text[n - 1] == '\n' ? n - 1 : n), text);
	if (sim_current && k.on_error) {
		k.on_error(text, n);
	}
	return (ssize_t)n;
}

/* Standard output, in the pieces in which it is printed. */
static ssize_t write_output(void *cookie, const char *text, size_t n)
{
	(void)cookie;
	if (!sim_current) {
		fwrite(text, 1, n, k.out);
		fflush(k.out);
	} else if (k.on_output) {
		k.on_output(text, n);
	}
	return (ssize_t)n;
}

void sim_on_output(void (*output)(const char *text, size_t n))
{
	k.on_output = output;
}

void sim_on_error(void (*error)(const char *text, size_t n))
{
	k.on_error = error;
}

void sim_begin(uint64_t seed, bool trace)
{
	const cookie_io_functions_t functions = { .write = write_error };
	const cookie_io_functions_t output = { .write = write_output };

	for (int i = 0; i < SIM_STREAMS; i++) {
		k.seeds[i] = next_random(&seed);
	}
	k.digest = 0xcbf29ce484222325u;
	k.traces = trace;
	stderr = fopencookie(NULL, "w", functions);
	setvbuf(stderr, NULL, _IOLBF, 4096);
	k.out = stdout;
	stdout = fopencookie(NULL, "w", output);
	setvbuf(stdout, NULL, _IONBF, 0);
	sim_begin_libuv();
}

/* ---- machines ---- */

struct machine *sim_find_machine(const char *name)
{
	struct machine *m;

	for (m = k.machines; m && strcmp(m->name, name) != 0; m = m->next) {
	}
	if (!m) {
		m = calloc(1, sizeof(*m));
		*m = (struct machine){ .next = k.machines, .name = strdup(name),
				       .number = ++k.n_machines };
		k.machines = m;
	}
	return m;
}

const char *sim_machine(const struct sim_process *p)
{
	return p ? p->machine->name : "-";
}

const char *sim_machine_at(const char *address)
{
	int number = 0;

	sscanf(address, "127.1.0.%d", &number);
	for (struct machine *m = k.machines; m; m = m->next) {
		if (m->number == number) {
			return m->name;
		}
	}
	return "-";
}

void sim_shift_clock(const char *machine, int64_t ns)
{
	sim_find_machine(machine)->clock_shift += ns;
}

void sim_power_off(const char *machine)
{
	struct machine *m = sim_find_machine(machine);

	m->off = true;
	for (struct sim_process *p = sim_processes; p; p = p->next) {
		if (p->machine == m && p->leader == p && !p->ended) {
			sim_end(p, 128 + SIGKILL, true);
		}
	}
}

void sim_power_on(const char *machine)
{
	sim_find_machine(machine)->off = false;
}

/* ---- processes ---- */

static void switch_to_kernel(void)
{
	swapcontext(&sim_current->context, &k.context);
}

static void run_fiber(void)
{
	struct sim_process *p = sim_current;
	int n = 0, status;

	if (p->work) {
		p->work(p->work_arg);
		p->ended = true;
		switch_to_kernel();
	}
	while (p->argv[n]) {
		n++;
	}
	status = p->main(n, p->argv);
	p->returned = true;
	sim_end(p, status, false);
}

static struct sim_process *new_process(struct machine *m, int64_t at)
{
	struct sim_process *p = calloc(1, sizeof(*p)), **end = &sim_processes;

	p->machine = m;
	p->leader = p;
	p->look_at = p->wake_at = at;
	p->stack = k.n_spare > 0 ? k.spare_stacks[--k.n_spare] :
		   mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	getcontext(&p->context);
	p->context.uc_stack.ss_sp = p->stack;
	p->context.uc_stack.ss_size = STACK_BYTES;
	makecontext(&p->context, run_fiber, 0);
	while (*end) {
		end = &(*end)->next;
	}
	*end = p;
	return p;
}

struct sim_process *sim_start(const char *machine, sim_main main, const char *const argv[])
{
	struct sim_process *p = new_process(sim_find_machine(machine), sim_time);
	int n = 0;

	while (argv[n]) {
		n++;
	}
	p->main = main;
	p->pid = k.next_pid++;
	p->argv = calloc((size_t)n + 1, sizeof(*p->argv));
	for (int i = 0; i < n; i++) {
		p->argv[i] = strdup(argv[i]);
	}
	return p;
}

void sim_start_worker(void (*work)(void *arg), void *arg, int64_t at)
{
	struct sim_process *p = new_process(sim_current->machine, at);

	p->leader = sim_current->leader;
	p->pid = p->leader->pid;
	p->work = work;
	p->work_arg = arg;
}

struct sim_process *sim_self(void)
{
	return sim_current ? sim_current->leader : NULL;
}

int sim_pid(void)
{
	return sim_current ? sim_current->pid : 1;
}

const char *sim_machine_of(int pid)
{
	for (const struct sim_process *p = sim_processes; p; p = p->next) {
		if (p->pid == pid) {
			return p->machine->name;
		}
	}
	return "-";
}

bool sim_ended(const struct sim_process *p, int *status)
{
	if (p->ended && status) {
		*status = p->status;
	}
	return p->ended;
}

int64_t sim_calls(const struct sim_process *p)
{
	return p->calls;
}

void sim_on_end(void (*ended)(struct sim_process *p))
{
	if (k.n_on_end < MAX_HOOKS) {
		k.on_end[k.n_on_end++] = ended;
	}
}

/* A process, in any way; does not return when it is the one that runs. */
void sim_end(struct sim_process *p, int status, bool killed)
{
	bool mine = sim_current && sim_current->leader == p;

	p->ended = true;
	p->killed = killed;
	p->status = status;
	p->left_open = sim_open_count(p);
	for (struct sim_process *w = sim_processes; w; w = w->next) {
		if (w->leader == p) {
			w->ended = true;
			w->killed = killed;
		}
	}
	sim_ask_all();	/* who waits for its end */
	for (int i = 0; i < k.n_on_end; i++) {
		k.on_end[i](p);
	}
	sim_close_all(p, p->machine->off);
	if (mine) {
		switch_to_kernel();
	}
}

void sim_kill_at(struct sim_process *p, int64_t n)
{
	p->kill_at = n > 0 ? p->calls + n : 0;
}

void sim_pause(struct sim_process *p, int64_t until)
{
	p->paused_until = until;
	p->awake_since = 0;	/* not its own fault */
	for (struct sim_process *f = sim_processes; f; f = f->next) {
		if (f->leader == p) {
			sim_ask_again(f, until);	/* it may be sooner than before */
		}
	}
}

void sim_call(void)
{
	struct sim_process *p = sim_self();

	if (p && ++p->calls == p->kill_at) {
		sim_tell("killed in its call %lld", (long long)p->calls);
		sim_end(p, 128 + SIGKILL, true);
	}
}

/* ---- waiting ---- */

bool sim_due(struct sim_process *p, int64_t at)
{
	if (at <= sim_time) {
		return true;
	}
	if (p && at < p->look_at) {
		p->look_at = at;
	}
	return false;
}

void sim_ask_again(struct sim_process *p, int64_t at)
{
	if (p && at < p->look_at) {
		p->look_at = at;
	}
}

void sim_ask_all(void)
{
	for (struct sim_process *p = sim_processes; p; p = p->next) {
		sim_ask_again(p, sim_time);
	}
}

void sim_watch_loops(int64_t ns, void (*late)(const struct sim_process *p, int64_t ns,
					      const char *call))
{
	k.late_ns = ns;
	k.on_late = late;
}

/* A loop that begins to wait has been away from it since it last woke. */
static void note_loop(struct sim_process *p, const char *call, bool loop)
{
	if (loop && p->awake_since && k.on_late && sim_time - p->awake_since > k.late_ns) {
		k.on_late(p, sim_time - p->awake_since,
			  p->longest_in ? p->longest_in : call);
	}
	if (loop) {
		p->longest_ns = 0;
		p->longest_in = NULL;
	}
}

void sim_wait_for(bool (*ready)(struct sim_process *p, void *arg), void *arg, int64_t wake_at,
		  const char *call)
{
	struct sim_process *p = sim_current;
	bool loop = strcmp(call, "epoll_wait") == 0;
	int64_t began = sim_time;

	if (!p) {
		fprintf(k.out, "# %s waits outside a process\n", call);
		abort();
	}
	note_loop(p, call, loop);
	p->ready = ready;
	p->ready_arg = arg;
	p->wake_at = wake_at;
	p->look_at = 0;
	switch_to_kernel();
	p->ready = NULL;
	if (loop) {
		p->awake_since = sim_time;
	} else if (sim_time - began > p->longest_ns) {
		p->longest_ns = sim_time - began;
		p->longest_in = call;
	}
}

static bool has_ended(struct sim_process *p, void *arg)
{
	(void)p;
	return ((struct sim_process *)arg)->ended;
}

int sim_wait(struct sim_process *p)
{
	if (!p->ended) {
		sim_wait_for(has_ended, p, NEVER, "wait");
	}
	return p->status;
}

void sim_sleep_until(int64_t at)
{
	sim_wait_for(NULL, NULL, at, "sleep");
}

void sim_sleep_in(const char *call, int64_t ns)
{
	sim_wait_for(NULL, NULL, sim_time + ns, call);
}

void sim_sleep(int64_t ns)
{
	sim_sleep_until(sim_time + ns);
}

int64_t sim_now(void)
{
	return sim_time;
}

/* ---- who goes on ---- */

/* A timer of its own that has run out ends a process, stopped or not. */
static bool is_timed_out(struct sim_process *p)
{
	for (int i = 0; i < MAX_TIMERS; i++) {
		if (p->timers[i] && p->timers[i] != NEVER && sim_due(p, p->timers[i])) {
			return true;
		}
	}
	return false;
}

static bool can_go_on(struct sim_process *p)
{
	bool can;

	if (p->look_at > sim_time) {
		return false;
	}
	p->look_at = NEVER;
	if (is_timed_out(p)) {
		sim_tell("%s: ended by its timer", p->machine->name);
		sim_end(p, 128 + SIGKILL, true);
		return false;
	}
	if (!sim_due(p, p->leader->paused_until)) {
		return false;
	}
	can = (p->wake_at != NEVER && sim_due(p, p->wake_at)) ||
	      (p->ready && p->ready(p, p->ready_arg));
	if (can) {
		p->look_at = 0;		/* as long as it has not been chosen */
	}
	return can;
}

/* Takes those that have ended off the list. Stacks of those that were killed, or left by
 * _exit(), are not used again: libuv knows what is on them. */
static void forget_ended(void)
{
	for (struct sim_process **q = &sim_processes, *p; (p = *q);) {
		if (!p->ended) {
			q = &p->next;
			continue;
		}
		*q = p->next;
		if (!p->killed && (p->returned || p->leader != p) && k.n_spare < 64) {
			k.spare_stacks[k.n_spare++] = p->stack;
		}
		if (p->leader != p) {
			free(p);	/* none but this kernel knows of a worker */
		}
	}
}

static void resume(struct sim_process *p)
{
	sim_current = p;
	sim_count((uint64_t)sim_time, (uint64_t)p->pid);
	swapcontext(&k.context, &p->context);
	sim_current = NULL;
	sim_time += SWITCH_NS;
}

void sim_run(int64_t until)
{
	struct sim_process *can[MAX_RUNNABLE];

	k.stopped = false;
	while (sim_time < until && !k.stopped) {
		int64_t next = NEVER;
		int n = 0;

		forget_ended();
		for (struct sim_process *p = sim_processes; p; p = p->next) {
			if (!p->ended && n < MAX_RUNNABLE && can_go_on(p)) {
				can[n++] = p;
			} else if (!p->ended && p->look_at < next) {
				next = p->look_at;
			}
		}
		if (n > 0) {
			resume(can[n == 1 ? 0 : sim_random(SIM_SCHEDULE) % (unsigned)n]);
		} else if (next == NEVER) {
			return;
		} else {
			sim_time = next > sim_time ? next : sim_time + 1;
		}
	}
}

void sim_stop(void)
{
	k.stopped = true;
}
