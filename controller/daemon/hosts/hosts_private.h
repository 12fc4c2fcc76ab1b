/*
 * Shared by the files about hosts of this machine.
 *
 *   hosts.c        their life with the fabric
 *   hosts_probe.c   what arrives: links, counters, frames
 *   hosts_routes.c   what they are given: addresses, neighbours, routes
 *   hosts_verify.c  what they say of a change's light
 *   hosts_drain.c  traffic that leaves light before it goes
 *   hosts_report.c   status
 */
#ifndef WEFT_DAEMON_HOSTS_HOSTS_PRIVATE_H
#define WEFT_DAEMON_HOSTS_HOSTS_PRIVATE_H

#include "controller/daemon/hosts/hosts.h"
#include "controller/plan/host_paths.h"
#include "drivers/host/host.h"

/* A host that can be asked, or why not. */
struct local {
	int host;
	char *netns;		/* "": weftd's own */
	char epoch[64];		/* of it; made anew it is another host */
	struct host_net *net;
	uv_poll_t events, frames;
	int frame_fd;		/* -1: none */
	int n_ways;
	char problem[160];
};

/* A port of such a host. */
struct view {
	int local;
	struct host_link tx, rx;	/* ifindex 0: there is no netdev */
	struct host_health health;
	int from;		/* port whose light is to arrive, -1: none */
	int heard;		/* port whose frame came in, -1: none */
	bool asked;		/* its sender is of this machine as well */
	int64_t up_ns;		/* clk_now_ns when its link came up, 0: it was
				 * not seen to */
	int64_t lit_ns;		/* light was made for it, and no link has been
				 * seen since; 0: no such thing */
};

struct hosts {
	struct daemon *d;	/* NULL: being closed */
	char hash[65];		/* of the fabric */
	int n_ports, n, n_handles;
	struct local *v;	/* [n] */
	int *local_of;		/* [n_hosts] index into v, or -1 */
	struct view *views;	/* [n_ports] */
	char **names;		/* [n_ports] */
	uv_timer_t timer;
	uint32_t run;
	int64_t looked_at_ns;	/* 0: never */
	bool renumbered;	/* hosts were others before: so are addresses */
};

/* ---- hosts.c ---- */

/* Hosts of the present fabric: d->hosts, NULL when there are none. */
void hosts_settle(struct daemon *d);
/* How many hosts of a fabric (NULL: none) are of this machine. */
int hosts_local(const struct model_fabric *f);
/* Answers all who wait for a look. */
void hosts_wake(struct daemon *d);

/* ---- hosts_probe.c ---- */

void hosts_on_events(uv_poll_t *poll, int status, int events);
void hosts_on_frames(uv_poll_t *poll, int status, int events);
/* The links of all hosts anew. */
void hosts_refresh(struct hosts *h, const struct model_fabric *f);
/* A frame from every port; whoever was heard before is forgotten. */
void hosts_send(struct hosts *h);
/* A port's link has come back: the time that took since it was lit is learned,
 * once. */
void hosts_learn(struct hosts *h, int port, int64_t up_ns);

/* ---- hosts_routes.c ---- */

/* Gives the hosts their ways over these arcs. */
void hosts_install(struct hosts *h, const struct model_fabric *f,
		   const struct plan_arc *arcs, int n);

/* ---- hosts_verify.c, hosts_drain.c ---- */

/* What the engine asks of hosts during a change. */
struct prover;

void hosts_drain_begin(struct prover *p);
void hosts_drain_tick(struct prover *p);

/* What has become of a path that is asked about. */
enum path_state { PATH_WAITS, PATH_COUNTS, PATH_DONE };

struct path_watch {
	enum path_state state;
	int wrong;		/* rounds that another neighbour was heard in */
	int64_t by_ns;		/* when waiting ends; PATH_COUNTS: the window */
	uint64_t counter;	/* errors when counting began; draining: frames
				 * sent */
	int64_t still_ns;	/* draining: since when it has not grown */
	uint64_t grown;
};

struct prover {
	struct daemon *d;
	struct apply_question *q;	/* NULL: nothing is asked */
	bool draining;
	uv_timer_t timer;
	struct path_watch *paths;	/* [q->n] */
	int64_t begun_ns, told_ns;
	bool moved;			/* ways were changed for this change */
	bool remade;			/* its hosts are others: those that are
					 * gone have lost their ways */
};

/* In the middle of a question, tells how far it is, now and then; true: to be
 * ended. */
bool prover_tell(struct prover *p, const char *text);
/* Answers the question. */
void prover_answer(struct prover *p);
/* Looks again a little later. */
void prover_again(struct prover *p);

#endif
