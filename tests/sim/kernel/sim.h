/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes, time, network and chance of a simulation, in one real process: a kernel whose
 * functions have libc's names and stand before libc's in the program. Each simulated process is
 * a fiber that runs a main function as it is; it gives way where libc would wait. Time is a
 * number: it jumps to the next moment when no process can go on. Nothing else decides what happens:
 * the same seed gives the same run.
 *
 * One run a real process: sim_begin, then sim_start of what is to run, then sim_run.
 */
#ifndef WEFT_TESTS_SIM_SIM_H
#define WEFT_TESTS_SIM_SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SIM_MS ((int64_t)1000000)	/* in ns, as all times here */
#define SIM_S ((int64_t)1000000000)

struct sim_process;

/* ---- chance: streams that do not shift each other ---- */

enum sim_stream {
	SIM_SCHEDULE,		/* who goes on, how long a worker takes */
	SIM_NETWORK,		/* delays */
	SIM_FAULTS,		/* what the list of faults is drawn from, and what faults do */
	SIM_LOAD,		/* what clients ask */
	SIM_BYTES,		/* random bytes that programs ask for */
	SIM_STREAMS,
};

/* Before all else; trace: each line that is told goes to standard output at once. */
void sim_begin(uint64_t seed, bool trace);
uint64_t sim_random(enum sim_stream stream);
/* low <= x < high. */
int64_t sim_between(enum sim_stream stream, int64_t low, int64_t high);

/* ---- time ---- */

/* ns since sim_begin. */
int64_t sim_now(void);
/* Seconds of the real clock, which only what stands outside of all runs may ask for. */
int64_t sim_real_s(void);
/* Of a process: it goes on after so long. */
void sim_sleep(int64_t ns);
#define SIM_SYNC "sync"
#define SIM_SYNC_IN_COMMIT "sync in a commit"	/* which SQLite cannot do without */
void sim_sleep_in(const char *call, int64_t ns);	/* as sim_watch_loops says it */
void sim_sleep_until(int64_t at);
/* Runs until `until`, or until sim_stop, or until all have ended. */
void sim_run(int64_t until);
void sim_stop(void);

/* ---- processes ---- */

typedef int (*sim_main)(int argc, char **argv);

/* A process that runs main(argc, argv) from now on, on a machine (a name of the network; the
 * same for all that fall together). argv ends with NULL and is copied. Valid until the end. */
struct sim_process *sim_start(const char *machine, sim_main main, const char *const argv[]);
/* The one that runs; NULL: none does. */
struct sim_process *sim_self(void);
const char *sim_machine(const struct sim_process *p);	/* of NULL: "-" */
/* The machine behind the address that a peer of a connection shows, 127.1.0.N. */
const char *sim_machine_at(const char *address);
int sim_pid(void);
/* Who the other end of a connection is, when it is asked from now on; root at first. */
void sim_set_user(unsigned uid);
const char *sim_machine_of(int pid);	/* "-" when it has ended */
bool sim_ended(const struct sim_process *p, int *status);
/* Of a process: waits for the end of another. Its status: what main returned or _exit took, 128
 * and the signal's number when it was killed. */
int sim_wait(struct sim_process *p);

/* SIGKILL at once, also of itself; its sockets and locks go. Other signals: to the uv_signal_t
 * that it has started for it; without one SIGTERM ends it and others do nothing. */
void sim_signal(struct sim_process *p, int signal);
/* SIGKILL in the n-th call from now on of this kernel, or of the disk: 1 is the next. */
void sim_kill_at(struct sim_process *p, int64_t n);
int64_t sim_calls(const struct sim_process *p);
/* Like a machine that is stopped: it does not go on before `until`; a later call says another
 * time, or that it goes on now. */
void sim_pause(struct sim_process *p, int64_t until);
/* The machine is away at once: no word to its peers, whose connections are silent until it is
 * started again and answers what it does not know with a reset. All its processes end. */
void sim_power_off(const char *machine);
void sim_power_on(const char *machine);
/* Adds to what CLOCK_REALTIME says on a machine. */
void sim_shift_clock(const char *machine, int64_t ns);

/* One call of a kernel, for those of the disk: counts, and may end the process. */
void sim_call(void);
/* Called when a process has ended, in any way: what of it is outside the kernel goes. */
void sim_on_end(void (*ended)(struct sim_process *p));
/* What is open in a process, or was when it ended: sockets, pipes and the like. */
int sim_open_count(const struct sim_process *p);

/* Called for each turn of a loop (from the end of one epoll wait to the next) that takes longer
 * than ns, with the call in which most of it was waited. */
void sim_watch_loops(int64_t ns, void (*late)(const struct sim_process *p, int64_t ns,
					      const char *call));

/* ---- network: between machines; NULL is any ---- */

/* There and back takes two of these; each way a random time of this range. */
void sim_link_delay(const char *from, const char *to, int64_t low, int64_t high);
/* Nothing arrives from one at the other before `until`; it comes then, in order. */
void sim_link_stall(const char *from, const char *to, int64_t until);
/* Connections between the two end with a reset, now. */
void sim_link_reset(const char *a, const char *b);

/* ---- what is told ---- */

/* A line of the trace, with the time and the machine of the process that runs. */
void sim_tell(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* The same, and the run has failed: `what` names the rule that was broken, a word or two. Once a
 * rule; the run goes on to its end. */
void sim_fail(const char *what, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* How many rules were broken; a digest of all that was told, calls and bytes, to compare runs. */
int sim_failures(void);
const char *sim_broken(int i);
uint64_t sim_digest(void);
/* Standard error of programs becomes lines of the trace. Their standard output comes here, of
 * the process that runs, as it is printed; without that it is dropped. */
void sim_on_output(void (*output)(const char *text, size_t n));
/* Their standard error comes here as well, a line at a time. */
void sim_on_error(void (*error)(const char *text, size_t n));

#endif
