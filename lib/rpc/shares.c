/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who has a connection when there is no room for all. Connections count for who
 * made them: the user at the other end of the unix socket, the certificate over TCP,
 * and while TLS is being agreed on the address. While there is room, one may have
 * any number. Then a newcomer takes a place of whoever has most, if that leaves the
 * newcomer with fewer; of the other's connections an idle one goes first. Some places
 * are reserved for those who are privileged, and an idle connection always makes room
 * for them. Whoever is refused is told why; the log is at a limited rate.
 */
#include <stdio.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/rpc/private.h"

#define LOG_EVERY_NS (5 * (int64_t)1000000000)
/* How long calls may go on in a connection that has lost its place. */
#define LEAVE_NS (2 * (int64_t)1000000000)
/* ---- whose they are ---- */

/* FNV-1a, 64 bits. */
static uint64_t mix(uint64_t hash, const void *data, size_t len)
{
	const uint8_t *p = data;

	for (size_t i = 0; i < len; i++) {
		hash = (hash ^ p[i]) * 0x100000001b3;
	}
	return hash;
}

static uint64_t owner_of(const struct rpc_peer *peer)
{
	const uint64_t begin = 0xcbf29ce484222325;

	return peer->remote ? mix(begin + 1, peer->name, strlen(peer->name))
			    : mix(begin, &peer->uid, sizeof(peer->uid));
}

static const char *owner_text(const struct rpc_peer *peer, char *buf, size_t size)
{
	char user[64];

	if (peer->remote) {
		snprintf(buf, size, "certificate %s", peer->name);
	} else {
		snprintf(buf, size, "user %s", rpc_user_name(peer->uid, user, sizeof(user)));
	}
	return buf;
}

static int count_of(const struct rpc_server *s, uint64_t owner)
{
	const struct rpc_conn *c;
	int n = 0;

	TAILQ_FOREACH (c, &s->conns, link) {
		n += c->has_place && c->owner == owner;
	}
	return n;
}

/* ---- who goes ---- */

static bool is_idle(const struct rpc_conn *c)
{
	return TAILQ_EMPTY(&c->calls);
}

/* Idle ones before those with calls; of these the one that was used longest ago. */
static bool goes_before(const struct rpc_conn *a, const struct rpc_conn *b)
{
	return is_idle(a) != is_idle(b) ? is_idle(a) : a->used_ns < b->used_ns;
}

/* Of whoever has most, *most so many: the connection to go first. NULL: none may go.
 * O(connections x owners). */
static struct rpc_conn *find_leaver(struct rpc_server *s, const struct rpc_conn *newcomer,
				    int *most)
{
	struct rpc_conn *c, *best = NULL;
	uint64_t counted = 0;
	int n = 0;

	*most = 0;
	TAILQ_FOREACH (c, &s->conns, link) {
		if (!c->has_place || (c->privileged && !newcomer->privileged)) {
			continue;
		}
		if (n == 0 || c->owner != counted) {
			counted = c->owner;
			n = count_of(s, counted);
		}
		if (!best || n > *most || (n == *most && goes_before(c, best))) {
			best = c;
			*most = n;
		}
	}
	return best;
}

/* Whether the newcomer, who has `mine`, may have the place of that one, of `most`. */
static bool may_take(const struct rpc_conn *newcomer, int mine, const struct rpc_conn *leaver,
		     int most)
{
	if (newcomer->privileged && is_idle(leaver)) {
		return true;
	}
	return leaver->owner != newcomer->owner && most > mine + 1;
}

void rpc_share_leave(struct rpc_conn *conn)
{
	conn->server->n_places -= conn->has_place;
	conn->server->n_greeting -= conn->is_greeting;
	conn->has_place = conn->is_greeting = false;
}

void rpc_share_send_away(struct rpc_conn *conn, const char *why)
{
	rpc_share_leave(conn);
	conn->leaves = true;
	rpc_conn_goaway(conn, NGHTTP2_NO_ERROR, why);
	conn->close_by_ns = clk_now_ns() + LEAVE_NS;
	rpc_server_watch_deadline(conn->server, conn->close_by_ns);
}

/* ---- who comes ---- */

bool rpc_share_take(struct rpc_conn *conn, char *why, size_t size)
{
	struct rpc_server *s = conn->server;
	const struct rpc_server_config *cfg = &s->cfg;
	struct rpc_conn *leaver;
	char who[RPC_PEER_TEXT_MAX];
	int mine, most, limit = cfg->limits.max_conns;

	rpc_share_leave(conn);
	conn->owner = owner_of(&conn->peer);
	conn->privileged = cfg->privileged && cfg->privileged(&conn->peer, cfg->arg);
	limit += conn->privileged ? cfg->limits.max_reserved : 0;
	if (s->n_places >= limit) {
		mine = count_of(s, conn->owner);
		leaver = find_leaver(s, conn, &most);
		if (!leaver || !may_take(conn, mine, leaver, most)) {
			snprintf(why, size, "too many connections of %s (%d of %d)",
				 owner_text(&conn->peer, who, sizeof(who)), mine, limit);
			return false;
		}
		rpc_share_send_away(leaver, "there are too many connections, and others "
				    "needed its place");
	}
	conn->has_place = true;
	conn->used_ns = clk_now_ns();
	s->n_places++;
	return true;
}

/* Of whichever address has most of those that agree on TLS, the oldest. */
static struct rpc_conn *find_greeting(struct rpc_server *s)
{
	struct rpc_conn *c, *d, *best = NULL;
	int most = 0;

	TAILQ_FOREACH (c, &s->conns, link) {
		int n = 0;

		if (!c->is_greeting) {
			continue;
		}
		TAILQ_FOREACH (d, &s->conns, link) {
			n += d->is_greeting && d->owner == c->owner;
		}
		if (n > most) {
			best = c;
			most = n;
		}
	}
	return best;
}

void rpc_share_greet(struct rpc_conn *conn)
{
	struct rpc_server *s = conn->server;
	struct sockaddr_storage addr = { 0 };
	int len = sizeof(addr);
	struct rpc_conn *leaver;

	uv_tcp_getpeername(&conn->io.tcp, (struct sockaddr *)&addr, &len);
	conn->owner = addr.ss_family == AF_INET6
		? mix(2, &((struct sockaddr_in6 *)&addr)->sin6_addr, sizeof(struct in6_addr))
		: mix(3, &((struct sockaddr_in *)&addr)->sin_addr, sizeof(struct in_addr));
	conn->is_greeting = true;
	s->n_greeting++;
	if (s->n_greeting > s->cfg.limits.max_greeting && (leaver = find_greeting(s))) {
		rpc_share_refused(s, "a connection", "too many that agree on TLS");
		rpc_share_leave(leaver);
		rpc_conn_close(leaver);
	}
}

bool rpc_share_is_flood(const struct rpc_conn *conn)
{
	const struct rpc_server_config *cfg = &conn->server->cfg;
	const struct rpc_limits *l = &cfg->limits;

	return conn->server->n_conns > 2 * l->max_conns + l->max_reserved + l->max_greeting &&
	       (conn->peer.remote || !cfg->privileged ||
		!cfg->privileged(&conn->peer, cfg->arg));
}

/* ---- the log ---- */

void rpc_share_refused(struct rpc_server *s, const char *who, const char *why)
{
	int64_t now = clk_now_ns();

	if (s->n_unsaid == 0 && now >= s->log_at_ns) {
		log_warn("rpc", "%s refused: %s", who, why);
		s->log_at_ns = now + LOG_EVERY_NS;
		return;
	}
	s->n_unsaid++;
	rpc_server_watch_deadline(s, s->log_at_ns);
}

void rpc_share_say_refused(struct rpc_server *s)
{
	log_warn("rpc", "%d more connections were refused in the last %d seconds", s->n_unsaid,
		 (int)(LOG_EVERY_NS / 1000000000));
	s->n_unsaid = 0;
	s->log_at_ns = clk_now_ns() + LOG_EVERY_NS;
}
