/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sockets: streams between processes, by the name of a file or a TCP port. Bytes travel in
 * segments, each with the time at which it arrives, in order; a link between two machines has a
 * delay, and may stand still until a moment. There is one network of all machines: a port has
 * one listener, whatever its address.
 */
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "tests/sim/kernel/kernel.h"

#define MAX_RULES 64
#define MAX_PENDING 128
#define CONNECT_ENDS (127 * SIM_S)	/* nothing answers at all */
#define FIRST_EPHEMERAL 40000

/* The last that fits decides; NULL: any. */
struct link_rule {
	struct machine *from, *to;
	int64_t low, high;	/* of delays; 0, 0: says nothing of them */
	int64_t until;		/* nothing arrives before; 0: says nothing of it */
};

static struct link_rule rules[MAX_RULES];
static int n_rules;
/* Who listened on a port last: of a machine that is away it is known that it is. */
static struct machine *last_on_port[65536];
static int next_port = FIRST_EPHEMERAL;

static int fail(int error)
{
	errno = error;
	return -1;
}

/* ---- links ---- */

static struct link_rule *rule_for(const char *from, const char *to, bool delays)
{
	struct machine *f = from ? sim_find_machine(from) : NULL;
	struct machine *t = to ? sim_find_machine(to) : NULL;

	for (int i = 0; i < n_rules; i++) {
		if (rules[i].from == f && rules[i].to == t && (rules[i].high > 0) == delays) {
			return &rules[i];
		}
	}
	if (n_rules == MAX_RULES) {
		abort();
	}
	rules[n_rules] = (struct link_rule){ .from = f, .to = t };
	return &rules[n_rules++];
}

void sim_link_delay(const char *from, const char *to, int64_t low, int64_t high)
{
	struct link_rule *r = rule_for(from, to, true);

	r->low = low;
	r->high = high > low ? high : low + 1;
}

void sim_link_stall(const char *from, const char *to, int64_t until)
{
	rule_for(from, to, false)->until = until;
}

int64_t sim_arrival(struct machine *from, struct machine *to)
{
	int64_t low = 50000, high = 250000, until = 0;

	if (from == to) {
		return sim_time;
	}
	for (int i = 0; i < n_rules; i++) {
		const struct link_rule *r = &rules[i];

		if ((r->from && r->from != from) || (r->to && r->to != to)) {
			continue;
		}
		if (r->high > 0) {
			low = r->low;
			high = r->high;
		}
		until = r->until > until ? r->until : until;
	}
	low = sim_time + sim_between(SIM_NETWORK, low, high);
	return low > until ? low : until + (low - sim_time);
}

/* What is at an object is other than before, or will be at `at`. */
static void news(struct object *o, int64_t at)
{
	o->edges++;
	sim_ask_again(o->owner, at);
}

static struct object *connections;	/* by next_epoll, which sockets do not need */

static void reset(struct object *o)
{
	o->reset = true;
	news(o, sim_time);
}

void sim_link_reset(const char *a, const char *b)
{
	struct machine *x = a ? sim_find_machine(a) : NULL, *y = b ? sim_find_machine(b) : NULL;

	for (struct object *o = connections; o; o = o->next_epoll) {
		if (o->peer && o->machine != o->peer->machine && (!x || o->machine == x) &&
		    (!y || o->peer->machine == y)) {
			reset(o);
			reset(o->peer);
		}
	}
}

/* ---- what is ready ---- */

void sim_count_arrivals(struct object *o)
{
	while (o->coming && sim_due(NULL, o->coming->at)) {
		o->edges++;
		o->coming = o->coming->next;
	}
	if (!o->told_connected && sim_due(NULL, o->connected_at)) {
		o->told_connected = true;
		o->edges++;
	}
	if (!o->told_gone && sim_due(NULL, o->peer_gone_at)) {
		o->told_gone = true;
		o->edges++;
	}
}

static unsigned stream_mask(struct sim_process *p, struct object *o)
{
	unsigned mask = 0;

	if (o->reset || (o->error && sim_due(p, o->connected_at))) {
		return POLLIN | POLLOUT | POLLERR | POLLHUP | POLLRDHUP;
	}
	if (!o->connected) {
		return POLLOUT | POLLHUP;
	}
	if (!sim_due(p, o->connected_at)) {
		return 0;
	}
	if (o->first && sim_due(p, o->first->at)) {
		mask |= POLLIN | (o->first->end ? POLLRDHUP : 0);
	}
	if (o->peer_gone_at != NEVER && sim_due(p, o->peer_gone_at)) {
		return mask | POLLIN | POLLOUT | POLLRDHUP | (o->first ? 0 : POLLHUP);
	}
	return mask | (!o->peer || o->peer->bytes < BUFFER_BYTES ? POLLOUT : 0);
}

unsigned sim_mask(struct sim_process *p, struct object *o)
{
	switch (o->kind) {
	case SOCKET:
		if (o->listening) {
			return o->pending && sim_due(p, o->pending->pending_at) ? POLLIN : 0;
		}
		sim_count_arrivals(o);
		return stream_mask(p, o);
	case PIPE_IN:
		return (o->first ? POLLIN : 0) | (o->peer ? 0 : POLLHUP);
	case EVENTS:
		return POLLOUT | (o->count > 0 ? POLLIN : 0);
	case EPOLL:
		return sim_epoll_has(p, o) ? POLLIN : 0;
	case PIPE_OUT:
	case DATAGRAM:
		return POLLOUT;
	}
	return 0;
}

void sim_deliver(struct object *to, struct object *from, const void *bytes, size_t n, bool end)
{
	struct segment *s = malloc(sizeof(*s) + n);
	int64_t at = from->kind == SOCKET ? sim_arrival(from->machine, to->machine) : sim_time;

	at = at > to->last_at ? at : to->last_at;	/* in order */
	to->last_at = at;
	*s = (struct segment){ .at = at, .len = n, .end = end };
	memcpy(s->bytes, bytes, n);
	*to->last = s;
	to->last = &s->next;
	to->coming = to->coming ? to->coming : s;
	to->bytes += n;
	sim_count((uint64_t)at, n);
	sim_ask_again(to->owner, at);
}

/* ---- ends ---- */

static void forget_connection(struct object *o)
{
	struct object **q = &connections;

	while (*q && *q != o) {
		q = &(*q)->next_epoll;
	}
	if (*q) {
		*q = o->next_epoll;
	}
}

static void leave_peer(struct object *o, bool silently)
{
	struct object *peer = o->peer;

	peer->peer = NULL;
	if (silently && peer->machine != o->machine) {
		peer->silent = true;
		return;
	}
	peer->peer_gone_at = o->kind == SOCKET ? sim_arrival(o->machine, peer->machine) : sim_time;
	if (peer->peer_gone_at < peer->last_at) {
		peer->peer_gone_at = peer->last_at;
	}
	sim_ask_again(peer->owner, peer->peer_gone_at);
}

void sim_drop(struct object *o, bool silently)
{
	struct object *pending;
	struct segment *s;

	if (--o->refs > 0) {
		return;
	}
	while ((pending = o->pending)) {
		o->pending = pending->next_pending;
		sim_drop(pending, silently);
	}
	if (o->peer) {
		leave_peer(o, silently);
	}
	while ((s = o->first)) {
		o->first = s->next;
		free(s);
	}
	if (o->kind == EPOLL) {
		sim_epoll_gone(o);
	} else {
		forget_connection(o);
	}
	free(o);
}

int shutdown(int fd, int how)
{
	struct object *o = sim_object(fd);

	if (!o) {
		return fail(EBADF);
	}
	if (how != SHUT_RD && o->peer && !o->sent_end) {
		sim_deliver(o->peer, o, "", 0, true);
		o->sent_end = true;
	}
	return 0;
}

/* ---- making them ---- */

int socket(int domain, int type, int protocol)
{
	struct object *o;

	(void)protocol;
	if (domain == AF_NETLINK || domain == AF_PACKET) {
		return fail(EAFNOSUPPORT);
	}
	o = sim_new_object((type & 15) == SOCK_DGRAM ? DATAGRAM : SOCKET, type & SOCK_NONBLOCK);
	o->domain = domain;
	return sim_put(o);
}

int socketpair(int domain, int type, int protocol, int out[2])
{
	struct object *o[2];

	(void)protocol;
	for (int i = 0; i < 2; i++) {
		o[i] = sim_new_object(SOCKET, type & SOCK_NONBLOCK);
		o[i]->domain = domain;
		o[i]->connected = true;
		out[i] = sim_put(o[i]);
	}
	o[0]->peer = o[1];
	o[1]->peer = o[0];
	return out[1] < 0 ? -1 : 0;
}

/* Returns the port, 0 of a file's name. */
static int name_of(const struct sockaddr *a, char name[108])
{
	int port;

	if (a->sa_family == AF_UNIX) {
		snprintf(name, 108, "%s", ((const struct sockaddr_un *)(const void *)a)->sun_path);
		return 0;
	}
	port = ntohs(a->sa_family == AF_INET ?
		     ((const struct sockaddr_in *)(const void *)a)->sin_port :
		     ((const struct sockaddr_in6 *)(const void *)a)->sin6_port);
	snprintf(name, 108, "tcp:%d", port);
	return port;
}

static struct object *find_listener(const char *name)
{
	for (int fd = FIRST_FD; fd < FD_LIMIT; fd++) {
		struct object *o = sim_object(fd);

		if (o && o->kind == SOCKET && o->name[0] && strcmp(o->name, name) == 0) {
			return o;
		}
	}
	return NULL;
}

int bind(int fd, const struct sockaddr *a, socklen_t len)
{
	struct object *o = sim_object(fd);
	char name[108];
	int port;

	(void)len;
	if (!o) {
		return fail(EBADF);
	}
	port = name_of(a, name);
	if (a->sa_family != AF_UNIX && port == 0) {
		port = next_port++;
		snprintf(name, sizeof(name), "tcp:%d", port);
	}
	if (port > 0 ? find_listener(name) != NULL :
		       name[0] && mknod(name, S_IFSOCK | 0777, 0) != 0) {
		return fail(EADDRINUSE);
	}
	snprintf(o->name, sizeof(o->name), "%s", name);
	o->port = port;
	last_on_port[port] = o->machine;
	return 0;
}

int listen(int fd, int backlog)
{
	struct object *o = sim_object(fd);

	(void)backlog;
	if (!o) {
		return fail(EBADF);
	}
	o->listening = true;
	return 0;
}

/* In the order in which they arrive: one that a link holds up is in no other's way. */
static void add_pending(struct object *listener, struct object *o)
{
	struct object **q = &listener->pending;

	while (*q && (*q)->pending_at <= o->pending_at) {
		q = &(*q)->next_pending;
	}
	o->next_pending = *q;
	*q = o;
	o->refs = 1;
	listener->n_pending++;
	news(listener, o->pending_at);
}

/* Both ends of a connection, whose other one waits to be accepted. */
static void join(struct object *o, struct object *listener)
{
	struct object *s = sim_new_object(SOCKET, false);

	s->owner = listener->owner;
	s->machine = listener->machine;
	s->domain = o->domain;
	s->port = listener->port;
	s->peer_port = o->port;
	s->connected = true;
	s->peer = o;
	s->peer_machine = o->machine;
	o->peer = s;
	o->peer_machine = listener->machine;
	o->next_epoll = connections;
	connections = o;
	s->pending_at = sim_arrival(o->machine, s->machine);
	add_pending(listener, s);
}

/* No one listens: when that is known, and how. */
static void refuse(struct object *o, int port)
{
	struct machine *m = last_on_port[port];

	if (m && m->off) {
		o->error = ETIMEDOUT;
		o->connected_at = sim_time + CONNECT_ENDS;
	} else {
		o->error = ECONNREFUSED;
		o->connected_at = sim_arrival(m ? m : o->machine, o->machine);
	}
	sim_ask_again(o->owner, o->connected_at);
}

static int connect_file(struct object *o, struct object *listener, const char *name)
{
	struct stat st;

	if (!listener || !listener->listening) {
		return fail(stat(name, &st) ? ENOENT : ECONNREFUSED);
	}
	if (listener->n_pending >= MAX_PENDING) {
		return fail(EAGAIN);
	}
	o->connected = true;
	join(o, listener);
	return 0;
}

static bool is_connected(struct sim_process *p, void *arg)
{
	return sim_due(p, ((struct object *)arg)->connected_at);
}

int connect(int fd, const struct sockaddr *a, socklen_t len)
{
	struct object *o = sim_object(fd), *listener;
	char name[108];
	int port;

	(void)len;
	if (!o || o->kind == DATAGRAM) {
		return fail(o ? ECONNREFUSED : EBADF);
	}
	sim_call();
	port = name_of(a, name);
	listener = find_listener(name);
	if (a->sa_family == AF_UNIX) {
		return connect_file(o, listener, name);
	}
	o->connected = true;
	o->port = next_port < 65000 ? next_port++ : (next_port = FIRST_EPHEMERAL);
	o->peer_port = port;
	if (listener && listener->listening && listener->n_pending < MAX_PENDING) {
		join(o, listener);
		o->connected_at = o->peer->pending_at;
		o->connected_at += sim_arrival(o->peer->machine, o->machine) - sim_time;
		sim_ask_again(o->owner, o->connected_at);
	} else {
		refuse(o, port);
	}
	if (o->nonblocking) {
		return fail(EINPROGRESS);
	}
	sim_wait_for(is_connected, o, NEVER, "connect");
	return o->error ? fail(o->error) : 0;
}

static void fill_address(const struct machine *m, int domain, int port, struct sockaddr *a,
			 socklen_t *len)
{
	struct sockaddr_in in = {
		.sin_family = AF_INET, .sin_port = htons((uint16_t)port),
		.sin_addr.s_addr = htonl(0x7f010000u + (m ? (unsigned)m->number : 0)),
	};
	struct sockaddr file = { .sa_family = AF_UNIX };
	socklen_t want = domain == AF_UNIX ? sizeof(file.sa_family) : sizeof(in);

	memset(a, 0, *len);
	memcpy(a, domain == AF_UNIX ? (void *)&file : (void *)&in, want < *len ? want : *len);
	*len = want;
}

int accept4(int fd, struct sockaddr *a, socklen_t *restrict len, int flags)
{
	struct object *l = sim_object(fd), *o;
	int got;

	if (!l || !l->listening) {
		return fail(EINVAL);
	}
	sim_call();
	o = l->pending;
	if (!o || !sim_due(NULL, o->pending_at)) {
		return fail(EAGAIN);
	}
	l->pending = o->next_pending;
	l->n_pending--;
	o->nonblocking = flags & SOCK_NONBLOCK;
	if (a && len) {
		fill_address(o->peer_machine, o->domain, o->peer_port, a, len);
	}
	got = sim_put(o);
	o->refs--;
	return got;
}

int accept(int fd, struct sockaddr *a, socklen_t *restrict len)
{
	return accept4(fd, a, len, 0);
}

/* ---- questions ---- */

static unsigned user;

void sim_set_user(unsigned uid)
{
	user = uid;
}

int getsockopt(int fd, int level, int name, void *restrict value, socklen_t *restrict len)
{
	struct object *o = sim_object(fd);
	struct {
		int pid;
		unsigned uid, gid;
	} peer = { 1, user, user };

	if (!o) {
		return LIBC(getsockopt)(fd, level, name, value, len);
	}
	if (level == SOL_SOCKET && name == SO_PEERCRED) {
		if (o->peer && o->peer->owner) {
			peer.pid = o->peer->owner->pid;
		}
		memcpy(value, &peer, *len < sizeof(peer) ? *len : sizeof(peer));
		return 0;
	}
	if (level == SOL_SOCKET && name == SO_PEERGROUPS) {
		*len = 0;
		return 0;
	}
	if (*len >= sizeof(int)) {
		*(int *)value = level != SOL_SOCKET ? 0 : name == SO_ERROR ? o->error :
				name == SO_TYPE ? SOCK_STREAM : name == SO_DOMAIN ? o->domain : 0;
	}
	return 0;
}

int setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
	return sim_object(fd) ? 0 : LIBC(setsockopt)(fd, level, name, value, len);
}

int getsockname(int fd, struct sockaddr *restrict a, socklen_t *restrict len)
{
	struct object *o = sim_object(fd);

	if (!o) {
		return LIBC(getsockname)(fd, a, len);
	}
	fill_address(o->machine, o->domain, o->port, a, len);
	return 0;
}

int getpeername(int fd, struct sockaddr *restrict a, socklen_t *restrict len)
{
	struct object *o = sim_object(fd);

	if (!o) {
		return LIBC(getpeername)(fd, a, len);
	}
	if (!o->connected || o->error) {
		return fail(ENOTCONN);
	}
	fill_address(o->peer_machine, o->domain, o->peer_port, a, len);
	return 0;
}
