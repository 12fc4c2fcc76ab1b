/* Hosts that are namespaces of this machine, for the files of the daemon. */
#ifndef WEFT_DAEMON_HOSTS_HOSTS_H
#define WEFT_DAEMON_HOSTS_HOSTS_H

#include "controller/daemon/core/private.h"

/* Somebody who waits for a look. */
struct host_wait {
	struct host_wait *next;
	void (*done)(struct daemon *d, void *arg);
	void *arg;
};

/* Looks at all hosts that the present fabric says are of this machine, then
 * done, at once when there are none; it is always called. */
void daemon_hosts_look(struct daemon *d,
		       void (*done)(struct daemon *d, void *arg), void *arg);
/* The arcs of a plan, kept until it is the present one. */
struct host_routes;
/* NULL: there is no memory for it, which is logged. */
struct host_routes *host_routes_of(const struct plan *p);
void host_routes_free(struct host_routes *r);	/* NULL is fine */
/* Gives those hosts the ways of the jobs of a plan, which is of the present
 * configuration as applied, and takes away those of jobs that are gone; looks
 * at them as well. r (NULL is fine) is taken over. */
void daemon_hosts_route(struct daemon *d, struct host_routes *r);
void daemon_hosts_fini(struct daemon *d);

/* True when all light through this circuit, which is intended, was heard where
 * it leads in the last look. O(ports x hops). */
bool daemon_hosts_hear(struct daemon *d, int device, struct optics_xc xc);

/* Answers what the engine asks of hosts during changes. */
int daemon_prover_init(struct daemon *d, struct err *err);
void daemon_prover_fini(struct daemon *d);
/* A change has begun: its hosts are those that are asked, and links are
 * followed from here on. */
void daemon_prover_begin(struct daemon *d);
/* The change has moved ways of hosts, which are to go back if it does. */
bool daemon_prover_moved(const struct daemon *d);

struct port_row {
	Weft__V1__PortState m;
	Weft__V1__Timing reactivation;
	char problem[160];
};

/* What the last look has shown, as a message and the memory behind it; valid
 * until the loop runs. */
struct hosts_view {
	bool known;		/* there are such hosts, and they were asked */
	bool wrong;		/* something is not as intended */
	bool silent;		/* a host cannot be asked */
	Weft__V1__HostsState m;
	struct port_row *ports;
	Weft__V1__HostState *hosts;
	Weft__V1__PortState **port_list;
	Weft__V1__HostState **host_list;
};

int daemon_hosts_view(struct daemon *d, struct hosts_view *out,
		      struct err *err);
void hosts_view_fini(struct hosts_view *v);

#endif
