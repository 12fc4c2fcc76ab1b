/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the simulated kernel share: processes, and what a descriptor stands for. */
#ifndef WEFT_TESTS_SIM_KERNEL_H
#define WEFT_TESTS_SIM_KERNEL_H

#include <dlfcn.h>
#include <errno.h>
#include <sys/epoll.h>
#include <ucontext.h>

#include "tests/sim/kernel/sim.h"

#define NEVER INT64_MAX
#define FIRST_FD 512		/* descriptors below are real ones, and libc's */
#define FD_LIMIT 8192
#define MAX_TIMERS 4		/* of a process */
#define BUFFER_BYTES ((size_t)256 << 10)	/* of one way of a connection */

/* libc's own function behind one of ours. */
#define LIBC(name) ({ static __typeof__(&name) f_; \
	if (!f_) { f_ = (__typeof__(&name))dlsym(RTLD_NEXT, #name); } f_; })

struct machine {
	struct machine *next;
	const char *name;
	int number;		/* its address is 127.1.0.number */
	bool off;
	int64_t clock_shift;
};

struct sim_process {
	struct sim_process *next;
	struct machine *machine;
	struct sim_process *leader;	/* of a worker: whose it is; else itself */
	int pid;
	sim_main main;
	char **argv;
	void (*work)(void *arg);	/* a worker's, instead */
	void *work_arg;

	ucontext_t context;
	char *stack;
	bool ended, killed;
	bool returned;		/* from its main: libuv knows nothing of it any more */
	int status, left_open;

	/* While it waits: until ready says so, or until wake_at. look_at: when to ask again. */
	bool (*ready)(struct sim_process *p, void *arg);
	void *ready_arg;
	int64_t wake_at, look_at, paused_until;

	int64_t calls, kill_at;		/* in calls; 0: not */
	int64_t timers[MAX_TIMERS];	/* SIGKILL then; 0: free, NEVER: not set */
	int64_t awake_since;		/* of its loop; 0: it waits */
	int64_t longest_ns;		/* of its waits since then, and in what */
	const char *longest_in;
	bool computes;			/* on a worker of libuv */
	int64_t owed_ns;		/* for its readings of the clock then */
};

enum object_kind { SOCKET, PIPE_IN, PIPE_OUT, EVENTS, EPOLL, DATAGRAM };

struct segment {
	struct segment *next;
	int64_t at;		/* when it arrives */
	size_t len, taken;
	bool end;		/* of the stream */
	char bytes[];
};

struct watch {
	int fd;
	struct epoll_event event;
	uint64_t seen;		/* edges, when it was last reported */
	bool off;		/* EPOLLONESHOT, and reported */
};

struct object {
	enum object_kind kind;
	struct sim_process *owner;	/* a leader; NULL: of the kernel */
	struct machine *machine;
	int refs;		/* descriptors, and being in a backlog */
	bool nonblocking;
	uint64_t edges;		/* counts news */

	/* sockets and pipes */
	struct object *peer;	/* NULL: none, or gone */
	int domain, port, peer_port;
	struct machine *peer_machine;
	char name[108];		/* of a listener */
	bool listening, connected, sent_end, reset, silent;
	int error;		/* of a connect that failed */
	int64_t connected_at;	/* when its maker knows the outcome */
	int64_t peer_gone_at;	/* NEVER: it is there */
	struct segment *first, **last, *coming;	/* coming: the first that is no news yet */
	bool told_connected, told_gone;
	size_t bytes;
	int64_t last_at;
	struct object *pending, *next_pending;	/* a backlog; the next in one */
	int n_pending;
	int64_t pending_at;

	uint64_t count;		/* EVENTS */
	struct watch *watches;	/* EPOLL */
	int n_watches, cap;
	struct object *next_epoll;
};

/* ---- process.c ---- */

extern struct sim_process *sim_current;
extern struct sim_process *sim_processes;
extern int64_t sim_time;

/* At `at` or before it is now; else the running look of the process is asked again then. */
bool sim_due(struct sim_process *p, int64_t at);
/* Waits in `call` until ready(p, arg) or wake_at (NEVER). */
void sim_wait_for(bool (*ready)(struct sim_process *p, void *arg), void *arg, int64_t wake_at,
		  const char *call);
/* Something that p may wait for is so at `at`. NULL is fine. */
void sim_ask_again(struct sim_process *p, int64_t at);
void sim_ask_all(void);
struct machine *sim_find_machine(const char *name);
/* A fiber of the same process. */
void sim_start_worker(void (*work)(void *arg), void *arg, int64_t at);
void sim_end(struct sim_process *p, int status, bool killed);
void sim_count(uint64_t a, uint64_t b);		/* into the digest */

/* ---- libc.c ---- */

void sim_begin_libuv(void);

/* ---- descriptors.c ---- */

struct object *sim_object(int fd);
struct object *sim_new_object(enum object_kind kind, bool nonblocking);
int sim_put(struct object *o);		/* a descriptor, or -1 with errno */
/* Those of a process, real ones too. */
void sim_close_all(struct sim_process *p, bool silently);

/* ---- sockets.c ---- */

/* What has arrived since is news. */
void sim_count_arrivals(struct object *o);
/* What poll would say of it; of what comes later, sim_due hears. */
unsigned sim_mask(struct sim_process *p, struct object *o);
void sim_deliver(struct object *to, struct object *from, const void *bytes, size_t n, bool end);
/* The object goes; its peer hears of it. */
void sim_drop(struct object *o, bool silently);
int64_t sim_arrival(struct machine *from, struct machine *to);

/* ---- wait.c ---- */

bool sim_epoll_has(struct sim_process *p, struct object *epoll);
/* A descriptor is closed: no epoll knows it any more. */
void sim_epoll_forget(int fd);
void sim_epoll_gone(struct object *epoll);

#endif
