/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hosts that are network namespaces of this machine: what arrives at their
 * ports, what they report of a change's circuits, and the routes they are
 * given. A fabric without such hosts has a struct hosts that does nothing.
 */
#ifndef WEFT_DAEMON_HOSTS_HOSTS_H
#define WEFT_DAEMON_HOSTS_HOSTS_H

#include "controller/daemon/core/core.h"
#include "controller/plan/plan.h"

struct hosts;

/* From here on it answers what the engine asks of hosts during changes, and tells it which
 * circuits are silent; heard(arg): these are others now, by a probe or by a link that came or
 * went. */
struct hosts *hosts_new(struct daemon_env *env, void (*heard)(void *arg), void *arg);
/* Calls all who wait for a probe. NULL is fine. */
void hosts_free(struct hosts *hosts);

/* Probes all hosts that the present fabric says are of this machine, then calls
 * done, at once when there are none; it is always called. */
void hosts_probe(struct hosts *hosts, void (*done)(void *arg), void *arg);

/* The arcs of a plan's logical digraph, kept until it is the present one. */
struct host_routes;

/* The caller's until hosts_route. O(circuits log circuits). */
struct host_routes *host_routes_of(const struct plan *p);
void host_routes_free(struct host_routes *r);	/* NULL is fine */
/* Gives those hosts the routes of the jobs of a plan, which is of the present
 * configuration as applied, and takes away those of jobs that are gone; probes
 * them as well. r (NULL is fine) is taken over. */
void hosts_route(struct hosts *hosts, struct host_routes *r);

/* True when the frames of all ports whose signal passes this circuit, which is
 * intended, arrived where it leads in the last probe. O(ports x hops). */
bool hosts_receive(const struct hosts *hosts, int device, struct optics_xc xc);

/* A change has begun: its hosts are those that are asked, and links are
 * followed from here on. */
void hosts_begin_change(struct hosts *hosts);
/* The change has moved routes of hosts, which are to go back if it does. */
bool hosts_moved_routes(const struct hosts *hosts);

/* A port of a host as a message, and what it points to. */
struct host_port_row {
	Weft__V1__PortState m;
	Weft__V1__Timing reactivation;
	Weft__V1__Number rx, tx;	/* of m, when the module tells */
	char problem[160];
};

/* What the last probe has shown, as a message and the memory behind it; valid
 * until the loop runs. */
struct hosts_view {
	bool known;		/* there are such hosts, and they were asked */
	bool wrong;		/* something is not as intended */
	bool silent;		/* a host cannot be asked */
	Weft__V1__HostsState m;		/* filled only when known */
	struct host_port_row *ports;	/* [m.n_ports] */
	Weft__V1__PortState **port_list;	/* each of them */
	Weft__V1__HostState **host_list;	/* [m.n_hosts] */
};

/* Fills out, to be ended by hosts_view_fini. O(ports). */
void hosts_view_init(struct hosts_view *out, const struct hosts *hosts);
void hosts_view_fini(struct hosts_view *v);

#endif
