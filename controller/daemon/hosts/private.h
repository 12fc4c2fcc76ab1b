/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the files about hosts of this machine.
 *
 *   hosts.c          their life with the fabric
 *   hosts_probe.c    what arrives: links, counters, frames
 *   hosts_routes.c   what they are given: addresses, neighbours, routes
 *   hosts_verify.c   what they report of a change's circuits
 *   hosts_drain.c    traffic that leaves circuits before they go
 *   hosts_silent.c   circuits of which nothing arrives
 *   hosts_report.c   status
 */
#ifndef WEFT_DAEMON_HOSTS_PRIVATE_H
#define WEFT_DAEMON_HOSTS_PRIVATE_H

#include "controller/daemon/hosts/hosts.h"
#include "controller/plan/plan.h"
#include "drivers/host/host.h"

/* A host that can be asked, or why not. */
struct local_host {
	int host;		/* of the fabric */
	char *netns;		/* "": weftd's own */
	char epoch[64];		/* of the namespace; another one when it was
				 * made again under the same name */
	struct host_net *net;
	uv_poll_t events, frames;
	int frame_fd;		/* -1: none */
	int n_routes;		/* installed */
	char problem[160];
};

/* A port of such a host. */
struct host_port {
	int local;		/* index into host_set.v, -1: other machine */
	struct host_link tx, rx;	/* ifindex 0: there is no netdev */
	struct host_health health;
	int from;		/* port whose signal is to arrive, -1: none */
	int received;		/* port whose frame has come in since they were last sent,
				 * -1: none */
	/* Of the last probe that has ended, as long as `from` is the same: */
	int heard;		/* port whose frame came in, -1: none */
	bool asked;		/* one was sent to it: its sender is of this machine as well */
	bool mute;		/* it was not that of `from`, though both ends had their carrier */
	int64_t up_ns;		/* clk_now_ns when its link came up, 0: it was
				 * not seen to */
	int64_t lit_ns;		/* a circuit was made for it, and no link has
				 * been seen since; 0: no such thing */
};

/* What one fabric's hosts need; made again when the fabric changes, and lives
 * until the loop has closed its handles. */
struct host_set {
	struct hosts *hosts;	/* NULL: being closed */
	char hash[65];		/* of the fabric */
	int n_ports, n, n_handles;
	struct local_host *v;	/* [n] */
	int *local_of;		/* [n_hosts] index into v, or -1 */
	struct host_port *ports;	/* [n_ports] */
	char **names;		/* [n_ports] */
	uv_timer_t timer;
	uint32_t run;		/* of the probe that its frames carry */
	int64_t probed_at_ns;	/* wall clock; 0: never */
	int rounds;		/* of frames that this probe has sent */
	bool renumbered;	/* hosts were others before: so are addresses */
};

/* Who waits for a probe. */
struct probe_wait {
	struct probe_wait *next;
	void (*done)(void *arg);
	void *arg;
};

/* What has become of a path that is asked about. */
enum path_state { PATH_WAITS, PATH_COUNTS, PATH_DONE };

struct path_watch {
	enum path_state state;
	int wrong;		/* rounds that another neighbour was received in */
	int64_t by_ns;		/* when waiting ends; PATH_COUNTS: the window */
	uint64_t counter;	/* errors when counting began; draining: frames
				 * sent */
	int64_t still_ns;	/* draining: since when it has not grown */
	uint64_t grown;
};

/* What the engine asks of hosts during a change. */
struct host_verifier {
	struct hosts *hosts;
	struct apply_question *q;	/* NULL: nothing is asked */
	bool draining;
	struct part_timer *timer;	/* to come back to the question */
	struct path_watch *paths;	/* [q->n] */
	int64_t begun_ns, reported_ns;	/* monotonic */
	bool moved;		/* routes were changed for this change */
	bool remade;		/* its hosts are others: those that are gone
				 * have lost their routes */
};

struct hosts {
	struct daemon_env *env;
	struct host_set *set;		/* of the present fabric; NULL: none */
	struct host_verifier *verifier;
	struct probe_wait *waits;
	void (*heard)(void *arg);	/* silent circuits are others */
	void *arg;
};

/* ---- hosts.c ---- */

/* Makes hosts->set that of the present fabric, NULL when it has none. */
void hosts_settle(struct hosts *hosts);
/* How many hosts of a fabric (NULL: none) are of this machine. */
int hosts_local(const struct model_fabric *f);
/* Calls all who wait for a probe. */
void hosts_wake(struct hosts *hosts);

/* ---- hosts_probe.c ---- */

void hosts_on_events(uv_poll_t *poll, int status, int events);
void hosts_on_frames(uv_poll_t *poll, int status, int events);
/* Reads the links of all hosts again. */
void hosts_refresh(struct host_set *h, const struct model_fabric *f);
/* Sends a frame from every port; what was received before is forgotten. */
void hosts_send(struct host_set *h);
/* A port's link has come back: the time that took since its circuit was made is
 * learned, once. */
void hosts_learn(struct host_set *h, int port, int64_t up_ns);

/* ---- hosts_routes.c ---- */

/* Gives the hosts their routes over these arcs. */
void hosts_install(struct host_set *h, const struct model_fabric *f,
		   const struct plan_arc *arcs, int n);

/* ---- hosts_silent.c ---- */

/* Tells the engine of which circuits nothing arrives by what is known of the hosts. */
void hosts_note_silent(struct hosts *hosts);
/* The port sends nothing, as its netdev has no carrier. */
bool hosts_cannot_send(const struct host_set *h, int port);
/* How long a port's link may take to come up after its light. */
int64_t hosts_max_wait_ns(const struct hosts *hosts, const struct model_fabric *f, int port);

/* ---- hosts_verify.c, hosts_drain.c ---- */

void verifier_new(struct hosts *hosts);
void verifier_free(struct host_verifier *p);
/* Reports now and then how far a question is; true: it is to be ended. */
bool verifier_report(struct host_verifier *p, const char *text);
/* Answers the question. */
void verifier_answer(struct host_verifier *p);
/* Comes back to the question a little later. */
void verifier_retry(struct host_verifier *p);
/* The question is to drain the paths: begins, and comes back to it. */
void hosts_drain_begin(struct host_verifier *p);
void hosts_drain_check(struct host_verifier *p);

#endif
