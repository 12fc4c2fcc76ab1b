/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A network namespace as a ring of resonators, for `linux-ring` and for the
 * testbed that is built around it; private to them.
 *
 * Each resonator (node, direction, fibre, channel) has four netdevs, named by
 * its place, clockwise "3+0.5" and counter-clockwise "3-0.5" for node 3,
 * fibre 0 and channel 5:
 *
 *	t3+0.5	what the node's transmitter sends arrives here
 *	r3+0.5	what it receives leaves here; up while it drops, else down
 *	i3+0.5	light from the node before
 *	o3+0.5	light to the next node, where it is i4+0.5
 *
 * Adding is a rule that redirects t to o, dropping one from i to r, passing
 * one from i to o. A channel of a fibre that has no add or drop has
 * no rules.
 *
 * The programs, and the step that each is at, are in a file beside: packed
 * programs do not fit into a kernel's rules. It is of one namespace; when
 * that is made again the file is void.
 */
#ifndef WEFT_DRIVERS_LINUX_NETNS_RING_H
#define WEFT_DRIVERS_LINUX_NETNS_RING_H

#include "drivers/host/host.h"
#include "drivers/optics/optics.h"

#define NETNS_RING_DIR "/run/weft-testbed"

/* Files of a namespace: DIR/NETNS.ring and DIR/NETNS.lock. */
#define NETNS_RING_STATE ".ring"
#define NETNS_RING_LOCK ".lock"

/* Resonators of a ring; their places count from 0 as struct ring_cell's do:
 * ((dir * fibres + fibre) * channels + channel) * nodes + node. */
size_t netns_ring_count(const struct ring_geometry *g);
struct ring_setting netns_ring_at(const struct ring_geometry *g, size_t place);
/* "t3+0.5"; what is one of "t", "r", "i", "o". */
void netns_ring_name(char buf[HOST_IFNAME_MAX + 8], const char *what,
		     const struct ring_setting *at);
/* Where light goes from a resonator that lets it out. O(1). */
size_t netns_ring_next(const struct ring_geometry *g, size_t place);

/* Lays the fibres between the nodes, o to i, in a namespace that has none; t
 * and r are the caller's to lay. Then start makes rules possible and sets up
 * what is up in the dark. */
int netns_ring_wire(struct host_net *net, const struct ring_geometry *g, struct err *err);
int netns_ring_start(struct host_net *net, struct err *err);

/* A session, with the lock held: no other process looks or changes meanwhile. */
struct netns_ring;
/* WEFT_ESTALE: another user holds the lock, in a moment no more;
 * WEFT_EUNAVAIL: there is no such namespace; WEFT_EVERIFY: it is a ring of
 * another size. Reads programs, steps and all rules. O(resonators) requests
 * to the kernel. */
int netns_ring_open(const char *netns, const struct ring_geometry *g,
		    struct netns_ring **out, struct err *err);
void netns_ring_close(struct netns_ring *r);

/* What the ring holds now; borrowed, until netns_ring_close. */
const char *netns_ring_epoch(const struct netns_ring *r);
const struct ring_programs *netns_ring_programs(const struct netns_ring *r);
/* Step of the i-th program. */
uint32_t netns_ring_step(const struct netns_ring *r, int program);
/* Modes by place as the programs' present steps want them; 0: passes. */
const uint8_t *netns_ring_modes(const struct netns_ring *r);
/* How many resonators are not as the programs want them, and the first of
 * them as text (""). */
int netns_ring_wrong(const struct netns_ring *r, char *text, size_t size);

/* Makes these the programs: those that stay as they are go on where they
 * are, others begin with their first step. Kept at once, then what is to end
 * is dark; netns_ring_activate is the second half. The programs are checked
 * before anything: WEFT_EINVAL. */
int netns_ring_load(struct netns_ring *r, const struct ring_programs *programs, struct err *err);
/* Takes a program to a step. WEFT_EINVAL when it has no such. Likewise the
 * first half. */
int netns_ring_go(struct netns_ring *r, int program, uint32_t step, struct err *err);
int netns_ring_activate(struct netns_ring *r, struct err *err);

/* The resonator at which light ends that a resonator adds, by the programs'
 * present steps, or -1: no resonator drops it. O(nodes). */
int64_t netns_ring_follow(const struct ring_geometry *g, const uint8_t *modes, size_t place);

/* Takes away the files of all namespaces whose name starts so. */
int netns_ring_forget(const char *prefix, struct err *err);

#endif
