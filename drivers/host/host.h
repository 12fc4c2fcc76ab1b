/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The host side: network namespaces, links, redirects, addresses and probe
 * frames of this machine's kernel, spoken to over netlink (libnl) and never
 * through another program. Every call is a few system calls on a socket to
 * the kernel; none waits for a network.
 *
 * A struct host_net is a netlink session inside one namespace. It stays
 * bound to that namespace whatever the calling thread enters later. Calls
 * that enter a namespace do so for the calling thread alone and come back
 * before they return.
 */
#ifndef WEFT_DRIVERS_HOST_HOST_H
#define WEFT_DRIVERS_HOST_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"

#define HOST_IFNAME_MAX 16	/* bytes of a netdev's name, with the end */
#define HOST_NETNS_DIR "/run/netns"
#define HOST_NETNS_MAX 200	/* bytes of a namespace's name */

/* ---- namespaces by name (as ip-netns(8) keeps them) ---- */

/* WEFT_ESTALE when the name is taken, WEFT_EDENIED without the right,
 * WEFT_EUNSUPPORTED when the kernel has no network namespaces. */
int host_netns_add(const char *name, struct err *err);
/* Takes the name away; the namespace and all netdevs in it end with its last
 * process. A name that is not there is fine. */
int host_netns_del(const char *name, struct err *err);
/* Names that start with prefix, sorted. *names is the caller's: free each and
 * the array, or host_netns_list_free. */
int host_netns_list(const char *prefix, char ***names, int *n, struct err *err);
void host_netns_list_free(char **names, int n);
/* A text that changes when the machine restarts or the namespace is made
 * again. WEFT_EUNAVAIL when there is none of that name. */
int host_netns_epoch(const char *name, char *buf, size_t size, struct err *err);

/* ---- a session in a namespace ---- */

struct host_net;

/* name NULL: the caller's own. WEFT_EUNAVAIL: no such namespace. */
int host_open(const char *name, struct host_net **out, struct err *err);
void host_close(struct host_net *net);	/* NULL is fine */

/* The calling thread enters the session's namespace, and what it starts is in it; *back is
 * for host_leave, which ends the program when there is no way back. WEFT_EDENIED, WEFT_EIO. */
int host_enter(const struct host_net *net, int *back, struct err *err);
void host_leave(int back);

/* A socket of this namespace. */
int host_socket(struct host_net *net, int domain, int type, int protocol, int *fd, struct err *err);
/* Writes a kernel setting of this namespace: "net/ipv4/ip_forward". */
int host_sysctl(struct host_net *net, const char *name, const char *value, struct err *err);

/* ---- links ---- */

struct host_link {
	int ifindex;
	char name[HOST_IFNAME_MAX];
	bool up;		/* wanted up by its owner */
	bool carrier;
	const char *operstate;	/* "up", "lowerlayerdown", ... */
	uint32_t carrier_changes, carrier_ups, carrier_downs;
	uint64_t rx_errors, tx_errors;
	uint64_t tx_frames, tx_bytes;
	uint8_t mac[6];
	bool gone;		/* in an event: it was removed */
};

/* All links but the loopback, by ifindex. *links: free(). */
int host_links(struct host_net *net, struct host_link **links, int *n, struct err *err);
/* Makes a pair of veths for frames of HOST_MTU bytes, one end in each namespace; mac NULL:
 * any. Both are down. */
#define HOST_MTU 9000
int host_veth_add(struct host_net *a, const char *name_a, const uint8_t mac_a[6],
		  struct host_net *b, const char *name_b, const uint8_t mac_b[6], struct err *err);
int host_link_set(struct host_net *net, int ifindex, bool up, struct err *err);
/* A bridge, down. WEFT_ESTALE: there is a link of that name. And a link becomes one of its
 * ports; a bridge has room for 1023. */
int host_bridge_add(struct host_net *net, const char *name, struct err *err);
int host_bridge_join(struct host_net *net, int bridge, int ifindex, struct err *err);
/*
 * Limits what leaves a link (tbf): bps of TCP's payload in frames of HOST_MTU. One
 * frame, or at high rates what the light takes in 100 us, may leave at once; what waits is
 * limited to HOST_QUEUE bytes, more than the windows of the connections over a link.
 * WEFT_EUNSUPPORTED above HOST_MAX_RATE_BPS, which is as far as 32 bits of bytes a second go.
 */
#define HOST_MAX_RATE_BPS 17000000000
#define HOST_QUEUE (256 << 20)
int host_rate_set(struct host_net *net, int ifindex, int64_t bps, struct err *err);
/* Frames that queues of the namespace have dropped since they were made. O(links). */
int host_queue_drops(struct host_net *net, uint64_t *drops, struct err *err);

typedef void (*host_link_fn)(const struct host_link *link, void *arg);

/* From now on link events may be read. fd to poll, or WEFT_E*. */
int host_watch(struct host_net *net, int *fd, struct err *err);
/* Reads the events that wait, one call each; 0 when no more wait. An overrun
 * (events lost) is WEFT_ELIMIT: look at host_links again. */
int host_watch_read(struct host_net *net, host_link_fn fn, void *arg, struct err *err);

/* Something was done to a link or to the rules on it, by whoever. */
struct host_change {
	int ifindex;
	bool rule;		/* a redirect or another filter; else the link */
	bool gone;
	bool up;		/* of a link: wanted up by its owner */
};

typedef void (*host_change_fn)(const struct host_change *c, void *arg);

/* As host_watch and host_watch_read, for rules and links together. */
int host_changes(struct host_net *net, int *fd, struct err *err);
int host_changes_read(struct host_net *net, host_change_fn fn, void *arg, struct err *err);

/* How well a link's state is known: what answered. */
enum host_source { HOST_BY_NONE, HOST_BY_CARRIER, HOST_BY_ETHTOOL,
		   HOST_BY_MODULE };

struct host_health {
	enum host_source source;	/* the best that answered */
	bool link;
	const char *ext_state;		/* ethtool's reason, or NULL */
	bool has_power;
	int32_t rx_mdbm, tx_mdbm;	/* SFF-8472/8636 diagnostics, lane 1 */
	char why[96];			/* what the next better one answered */
};

/* Asks the module, then ethtool, then the carrier, and returns which of them
 * answered. WEFT_EIO when not even the carrier can be read. */
int host_health(struct host_net *net, const struct host_link *link,
		struct host_health *out, struct err *err);
/* Blocks that forward error correction could not repair, since the link's
 * driver counts. WEFT_EUNSUPPORTED where ethtool does not know. */
int host_fec_lost(struct host_net *net, const struct host_link *link, uint64_t *lost);
const char *host_source_name(enum host_source s);

/* ---- probe frames: who is at the other end ---- */

/* What a frame carries: `run` distinguishes rounds, `from` is the
 * sender's number among those who take part. */
struct host_frame {
	uint32_t run, from;
};

/* A socket for probe frames over all links of the namespace; never waits. */
int host_frame_socket(struct host_net *net, int *fd, struct err *err);
/* False when the link takes no frame now. */
bool host_frame_send(int fd, const struct host_link *by, const struct host_frame *f);
/* The next frame that waits, and the link that it came in by; false when none
 * waits. What else comes in with this type of frame is passed over. */
bool host_frame_receive(int fd, int *ifindex, struct host_frame *f);

/* ---- redirects: what a link receives leaves by another ---- */

struct host_redirect {
	uint32_t handle;
	uint16_t prio;
	int to;		/* ifindex, 0: the rule does something else */
};

/* Makes a link ready to be redirected; again is fine. */
int host_ingress_add(struct host_net *net, int ifindex, struct err *err);
/* Everything that arrives at `from` leaves by `to`. WEFT_ESTALE when there is
 * such a rule already (replace false); else it is re-targeted at once. */
int host_redirect_set(struct host_net *net, int from, int to, bool replace, struct err *err);
/* The rules of a link in the order in which the kernel tries them. *v:
 * free(). */
int host_redirects(struct host_net *net, int from, struct host_redirect **v,
		   int *n, struct err *err);
/* WEFT_ENOTFOUND when it is gone already. */
int host_redirect_del(struct host_net *net, int from,
		      const struct host_redirect *r, struct err *err);

/* ---- addresses, neighbours, routes (IPv4, network byte order) ---- */

/* Marks what weft made (the entry's protocol), so that nothing else is ever
 * taken away. */
#define HOST_PROTOCOL 119

#define HOST_LOOPBACK 1	/* its ifindex in every namespace */

/* An address of a namespace and the link that it is on. */
struct host_address {
	uint32_t addr;
	int ifindex;
};

/* Gives a link the address, again too; prefix in bits. WEFT_EDENIED,
 * WEFT_ENOTFOUND (the link), WEFT_EDEVICE. */
int host_addr_add(struct host_net *net, int ifindex, uint32_t addr, int prefix, struct err *err);
/* Adds or removes a route to all addresses of the prefix on the link itself; host_routes_set leaves
 * it, and its routes come first. The same errors. */
int host_link_route(struct host_net *net, int ifindex, uint32_t dst, int prefix, bool add,
		    struct err *err);

/* One route from a host: dst is reached by this link. via 0: dst itself is at
 * the other end of it, at this MAC; else via is, which must be the dst of
 * such a route. */
struct host_route {
	uint32_t dst, via;
	int ifindex;
	uint8_t mac[6];
};

/*
 * Makes these the routes of the namespace, and `own` its addresses (/32), of which
 * packets get the first where their sender does not choose: what is there stays, what
 * is missing is added, what weft added before and is in the way or not wanted any more
 * goes. What others made stays, even where it says otherwise: then WEFT_ESTALE names it,
 * and the rest is done. *changed (may be NULL) counts. O(n log n).
 */
int host_routes_set(struct host_net *net, const struct host_address *own, int n_own,
		    const struct host_route *routes, int n, int *changed, struct err *err);

#endif
