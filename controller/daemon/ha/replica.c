/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Taking turns by etcd. There are, below a prefix:
 *
 *	leader               how to reach the one that leads, and since when; goes with its lease
 *	head                 of the log: whose it is, how long, from where on it is kept
 *	log/POSITION/PART    what each transaction of the store changes (store_publish)
 *	snapshot/POSITION/PART  all rows at that position: earlier parts of the log are gone
 *	member/NAME          how far each weftd has come; goes with its lease
 *
 * The revision that made the leader's key is its term. Whatever a leader writes is one
 * transaction of etcd that compares this revision and, where the log grows, the one that wrote
 * the head last: of two that believe to lead, one is refused, and no transaction is lost or
 * comes twice. Transactions are kept in the store and wait in a queue for etcd; no client is told
 * of them, and no command is sent, before it has them (store_published). One that etcd did not
 * answer is asked for again until it is known; when the lease is over before, the process ends,
 * as it must not go on from either outcome. So it does when the head is not what it wrote last:
 * etcd was put back to an older state.
 *
 * Whoever stands by follows the log, so that it has intent, history and the journal of an open
 * change when its turn comes. Head and transactions carry the digest of the log (store_digest): a
 * store that has another one at the same position takes all of it again. A store that has more
 * than the head of its own log had, and that others had, knows what etcd has lost, and writes it
 * there when it leads.
 *
 * All calls of etcd are made by coroutines: one at a time for what the election asks, by `etcd`,
 * and one that writes the log, by `writer`.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "controller/daemon/ha/ha.h"
#include "lib/base/alloc.h"
#include "lib/base/buf.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/digest/sha256.h"
#include "lib/coroutine/coroutine.h"
#include "lib/etcd/etcd.h"

#define NS_PER_MS 1000000
#define CALL_MS 1000		/* for one answer of etcd */
#define KEEP_MS 50		/* for that to a sign of life */
#define POSITIONS_AT_ONCE 8
#define MAX_BATCH 32		/* transactions in one of etcd's */
#define RETRY_MS 250		/* what etcd has refused */
#define IDLE_MS 10		/* between looks whether all is written */
/* A snapshot replaces so much of the log. */
#define MAX_LOG_POSITIONS 1000
#define MAX_LOG_BYTES (16 << 20)
#define MAX_KEY 384

struct head {
	char log[STORE_LOG_MAX];
	int64_t position, snapshot;
	int format;
	char digest[2 * STORE_DIGEST_LEN + 1];	/* in hex */
	int64_t modified;	/* 0: there is none yet */
};

/* A transaction that etcd does not have yet. */
struct unpublished {
	STAILQ_ENTRY(unpublished) link;
	int64_t position;
	uint8_t digest[STORE_DIGEST_LEN];
	size_t len;
	char changes[];
};

struct replica {
	struct election base;	/* first */
	uv_loop_t *loop;
	struct etcd *etcd, *writer;
	struct store *store;
	char prefix[MAX_KEY / 3];
	char self[STORE_HOLDER_MAX];
	int64_t lease_ns;
	int64_t lease;		/* etcd's; 0: none */
	int64_t proven_ns;	/* of the lease */
	int64_t term;		/* what made the leader's key, if that is its own; 0: it is not */
	bool leads;		/* and all that leading begins with is done */
	bool writes;		/* the log: one at a time */
	int64_t unknown_ns;	/* wall clock: since when it is not known what etcd has of
				 * that; 0: it is */
	STAILQ_HEAD(, unpublished) queue;
	struct head head;	/* as last read or written */
	int64_t older_ns;	/* clk_boot_ns: since when another leads, and etcd's log is
				 * shorter than the store's; 0: it is not */
	int64_t log_bytes;	/* written since the last snapshot */
	int64_t told;		/* position in its member key; -1: none */
	int wait_fd;		/* -1: nothing is watched */
};

static struct replica *replica_of(struct election *e)
{
	return (struct replica *)e;
}

/* ---- keys ---------------------------------------------------------------- */

__attribute__((format(printf, 3, 4)))
static const char *key(const struct replica *r, char buf[MAX_KEY], const char *fmt, ...)
{
	int n = snprintf(buf, MAX_KEY, "%s", r->prefix);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(buf + n, (size_t)(MAX_KEY - n), fmt, ap);
	va_end(ap);
	return buf;
}

static int head_parse(const struct etcd_pair *pair, struct head *h, struct err *err)
{
	int n;

	h->digest[0] = '\0';
	n = sscanf(pair->value, "log %39s position %" SCNd64 " snapshot %" SCNd64 " format %d "
		   "digest %64s", h->log, &h->position, &h->snapshot, &h->format, h->digest);
	if (n < 4 || (n == 4 && h->format == STORE_VERSION) || h->position < h->snapshot ||
	    h->snapshot < 0) {
		return err_set(err, WEFT_EINVAL, "etcd: %s is not weft's", pair->key);
	}
	h->modified = pair->modified;
	return 0;
}

static void head_print(const struct head *h, char *buf, size_t size)
{
	snprintf(buf, size, "log %s position %" PRId64 " snapshot %" PRId64 " format %d "
		 "digest %s\n", h->log, h->position, h->snapshot, h->format, h->digest);
}

static void set_digest(struct head *h, const uint8_t *digest)
{
	sha256_hex(digest, h->digest);
}

/* Of the same log at the same place. */
static bool is_same_head(const struct head *a, const struct head *b)
{
	return strcmp(a->log, b->log) == 0 && strcmp(a->digest, b->digest) == 0 &&
	       a->position == b->position && a->snapshot == b->snapshot;
}

/* "since_ns holder" */
static void leader_parse(const struct etcd_pairs *p, struct store_lease *out)
{
	const char *name;

	out->term = 0;
	out->since_ns = 0;
	out->holder[0] = '\0';
	if (p->n > 0) {
		out->term = (uint64_t)p->v[0].created;
		out->since_ns = strtoll(p->v[0].value, NULL, 10);
		name = strchr(p->v[0].value, ' ');
		snprintf(out->holder, sizeof(out->holder), "%s", name ? name + 1 : "?");
	}
}

/* ---- what all do --------------------------------------------------------- */

/* Keeps the own lease, or gets a new one. */
static int keep_lease(struct replica *r, struct err *err)
{
	int64_t asked_ns = clk_boot_ns();
	int rc;

	if (!r->lease) {
		rc = etcd_lease_new(r->etcd, r->lease_ns / NS_PER_MS / 1000, CALL_MS, &r->lease,
				    err);
		r->told = -1;
	} else {
		rc = etcd_lease_keep(r->etcd, r->lease, KEEP_MS, &asked_ns, err);
	}
	if (rc == 0 && asked_ns) {
		r->proven_ns = asked_ns;
	}
	return rc;
}

/* Who leads and how long the log is, at one moment; standbys as well if they are wanted. The
 * leader's key may be its own also where etcd's answer to that did not come. */
static int read_state(struct replica *r, struct etcd *etcd, struct head *out,
		      struct etcd_pairs *members, struct err *err)
{
	struct etcd_pairs leader = { 0 }, head = { 0 };
	char leader_key[MAX_KEY], head_key[MAX_KEY], from[MAX_KEY], to[MAX_KEY];
	const struct etcd_op ops[] = {
		{ .kind = ETCD_GET, .key = key(r, leader_key, "leader"), .got = &leader },
		{ .kind = ETCD_GET, .key = key(r, head_key, "head"), .got = &head },
		{ .kind = ETCD_GET, .key = key(r, from, "member/"), .end = key(r, to, "member0"),
		  .got = members },
	};
	int64_t revision;
	bool done;
	int rc = etcd_transact(etcd, NULL, 0, ops, members ? 3 : 2, CALL_MS, &done, &revision,
			       err);

	if (rc) {
		return rc;
	}
	leader_parse(&leader, &r->base.status.leader);
	r->base.status.leader.beat++;	/* a lease that is over takes the key away */
	r->term = leader.n > 0 && r->lease && leader.v[0].lease == r->lease ? leader.v[0].created
									    : 0;
	out->modified = 0;
	rc = head.n > 0 ? head_parse(&head.v[0], out, err) : 0;
	etcd_pairs_fini(&leader);
	etcd_pairs_fini(&head);
	return rc;
}

/* The parts of a value, from a key of the first to before `to`. */
static int read_parts(struct replica *r, const char *from, const char *to,
		      struct etcd_pairs *out, struct err *err)
{
	const struct etcd_op get = { .kind = ETCD_GET, .key = from, .end = to, .got = out };
	int64_t revision;
	bool done;

	return etcd_transact(r->etcd, NULL, 0, &get, 1, 10 * CALL_MS, &done, &revision, err);
}

static void join_parts(const struct etcd_pairs *parts, int from, int to, struct buf *out)
{
	buf_reset(out);
	for (int i = from; i < to; i++) {
		buf_add(out, parts->v[i].value, parts->v[i].len);
	}
}

/* ---- following ----------------------------------------------------------- */

/* Takes all rows at the position of the newest snapshot. */
static int take_snapshot(struct replica *r, struct err *err)
{
	struct etcd_pairs parts = { 0 };
	struct buf all = { 0 };
	char from[MAX_KEY], to[MAX_KEY];
	int rc = read_parts(r, key(r, from, "snapshot/%016" PRIx64 "/", r->head.snapshot),
			    key(r, to, "snapshot/%016" PRIx64 "0", r->head.snapshot), &parts, err);

	if (rc == 0 && parts.n == 0) {
		rc = err_set(err, WEFT_EUNAVAIL, "etcd: %s is gone meanwhile", from);
	}
	if (rc == 0) {
		join_parts(&parts, 0, parts.n, &all);
		rc = store_restore(r->store, r->head.log, r->head.snapshot, all.data, all.len, err);
	}
	if (rc == 0) {
		log_info("weftd", "has all of the leader's store up to transaction %" PRId64,
			 r->head.snapshot);
	}
	buf_fini(&all);
	etcd_pairs_fini(&parts);
	return rc;
}

/* The position in the key of a part of the log. */
static int64_t position_of(const struct replica *r, const char *text)
{
	return (int64_t)strtoull(text + strlen(r->prefix) + strlen("log/"), NULL, 16);
}

/* The next few transactions after this position. */
static int follow_some(struct replica *r, int64_t at, struct err *err)
{
	int64_t last = at + POSITIONS_AT_ONCE < r->head.position ? at + POSITIONS_AT_ONCE
								 : r->head.position;
	struct etcd_pairs parts = { 0 };
	struct buf all = { 0 };
	char from[MAX_KEY], to[MAX_KEY];
	int rc = read_parts(r, key(r, from, "log/%016" PRIx64 "/", at + 1),
			    key(r, to, "log/%016" PRIx64 "0", last), &parts, err);
	int i = 0, end;

	for (int64_t p = at + 1; rc == 0 && p <= last; p++, i = end) {
		for (end = i; end < parts.n && position_of(r, parts.v[end].key) == p; end++) {
		}
		if (end == i) {
			rc = err_set(err, WEFT_EUNAVAIL, "etcd: transaction %" PRId64 " is gone "
				     "meanwhile", p);
			break;
		}
		join_parts(&parts, i, end, &all);
		rc = store_follow(r->store, p, all.data, all.len, err);
	}
	buf_fini(&all);
	etcd_pairs_fini(&parts);
	return rc;
}

/* A log of another format is not followed. One of an older format ends with this store where that
 * had all of it before it was brought up to date: whoever leads then writes a snapshot. */
static int check_format(struct replica *r, const char *log, int64_t at, struct err *err)
{
	const struct head *h = &r->head;

	if (h->format == STORE_VERSION || (h->format < STORE_VERSION && at == h->position &&
					   strcmp(log, h->log) == 0)) {
		return 0;
	}
	err_set(err, WEFT_EUNSUPPORTED, "etcd has a log of format %d, this weftd writes %d: all of "
		"them must be of one version", h->format, STORE_VERSION);
	if (h->format < STORE_VERSION) {
		err_hint(err, "one that had all of the log leads first, and writes it in its own");
	}
	return err->code;
}

/* May this store follow the log? *whole: only as a whole. */
static int check_log(struct replica *r, bool *whole, struct err *err)
{
	char log[STORE_LOG_MAX];
	int64_t at = store_position(r->store, log);
	bool fresh;
	int rc;

	rc = check_format(r, log, at, err);
	if (rc) {
		return rc;
	}
	if (strcmp(log, r->head.log) == 0) {
		*whole = at < r->head.snapshot;
		return 0;
	}
	*whole = true;
	rc = store_is_fresh(r->store, &fresh, err);
	if (rc || fresh) {
		return rc;
	}
	err_set(err, WEFT_EINVAL, "the store has changes of its own, which etcd's log %s does not "
		"have", r->head.log);
	err_hint(err, "move it out of --state-dir: what the others have is fetched then");
	return err->code;
}

/* Has it transactions of this log that others had, and etcd has no more? */
static bool knows_more(const struct replica *r)
{
	char log[STORE_LOG_MAX];

	store_position(r->store, log);
	return store_published(r->store) > r->head.position && strcmp(log, r->head.log) == 0;
}

/* An etcd that was put back to an older state: who leads next writes what the store knows more,
 * and a key of one who led then is gone within a lease. *over: another leads without it. */
static int wait_to_lead(struct replica *r, bool *over, struct err *err)
{
	int64_t now = clk_boot_ns();

	*over = false;
	if (r->term || !r->base.status.leader.holder[0]) {
		return 0;
	}
	r->older_ns = r->older_ns ? r->older_ns : now;
	*over = now - r->older_ns > 2 * r->lease_ns;
	return *over ? 0 : err_set(err, WEFT_EUNAVAIL, "etcd is older than it was: its log ends "
				   "with transaction %" PRId64, r->head.position);
}

/* Up to the head, from the snapshot if whole. WEFT_ESTALE: the store has something else there. */
static int follow(struct replica *r, bool whole, struct err *err)
{
	struct head mine = r->head;
	char log[STORE_LOG_MAX];
	int rc = whole ? take_snapshot(r, err) : 0;

	while (rc == 0 && (mine.position = store_position(r->store, log)) < r->head.position) {
		rc = follow_some(r, mine.position, err);
	}
	set_digest(&mine, store_digest(r->store));
	if (rc == 0 && is_same_head(&mine, &r->head)) {
		store_set_published(r->store, mine.position);
		return 0;
	}
	return rc ? rc : err_set(err, WEFT_ESTALE, "the store has other transactions up to %" PRId64
		       " than etcd up to %" PRId64, mine.position, r->head.position);
}

static int catch_up(struct replica *r, struct err *err)
{
	bool whole = false, over;
	int rc;

	if (!r->head.modified) {
		return 0;
	}
	if (knows_more(r) && ((rc = wait_to_lead(r, &over, err)) || !over)) {
		return rc;
	}
	r->older_ns = 0;
	rc = check_log(r, &whole, err);
	if (rc || r->head.format != STORE_VERSION) {
		return rc;	/* it has all of a log of before */
	}
	if ((rc = follow(r, whole, err)) == WEFT_ESTALE) {
		log_warn("weftd", "%s: all of it is fetched again", err->msg);
		rc = follow(r, true, err);
	}
	return rc;
}

/* Tells the others how far it has come. */
static int tell_position(struct replica *r, struct err *err)
{
	char log[STORE_LOG_MAX], name[MAX_KEY], text[32];
	int64_t at = store_position(r->store, log), revision;
	const struct etcd_op put = {
		.kind = ETCD_PUT, .key = key(r, name, "member/%s", r->self), .value = text,
		.len = (size_t)snprintf(text, sizeof(text), "%" PRId64, at), .lease = r->lease,
	};
	bool done;
	int rc;

	if (r->told == at) {
		return 0;
	}
	rc = etcd_transact(r->etcd, NULL, 0, &put, 1, CALL_MS, &done, &revision, err);
	r->told = rc ? -1 : at;
	return rc;
}

static int look(struct election *e, struct err *err)
{
	struct replica *r = replica_of(e);
	char log[STORE_LOG_MAX];
	int rc = keep_lease(r, err);

	if (rc == WEFT_ESTALE) {
		r->lease = 0;		/* it was away for long */
		rc = keep_lease(r, err);
	}
	if (rc == 0) {
		rc = read_state(r, r->etcd, &r->head, NULL, err);
	}
	if (rc == 0) {
		rc = catch_up(r, err);
		if (r->term) {
			/* Its own, from a campaign whose answer did not come. */
			e->status.leader.holder[0] = '\0';
		}
		e->status.behind = r->head.modified ? r->head.position -
						      store_position(r->store, log) : 0;
	}
	return rc ? rc : tell_position(r, err);
}

static int wait_fd(struct election *e)
{
	struct replica *r = replica_of(e);
	struct err err = { 0 };
	bool changed;

	if (r->wait_fd >= 0 && etcd_watch_take(r->etcd, &changed, &err)) {
		r->wait_fd = -1;
	}
	if (r->wait_fd < 0) {
		r->wait_fd = etcd_watch(r->etcd, r->prefix, KEEP_MS, &err);
	}
	return r->wait_fd;
}

/* ---- leading ------------------------------------------------------------- */

/* Does it lead still, and is the head what it wrote last, or wanted to write (next)? Only this
 * process moves the head while the leader's key is its own. With members: who stands by, and the
 * head may be moving meanwhile. */
static int settle(struct replica *r, const struct head *next, struct etcd_pairs *members,
		  struct err *err)
{
	const struct store_lease *leader = &r->base.status.leader;
	const int64_t term = r->term, was = r->head.modified;
	const bool moves = members && r->writes;
	struct head now;
	int rc = read_state(r, members ? r->etcd : r->writer, &now, members, err);

	if (rc) {
		return rc;
	}
	if (r->term != term) {
		return err_set(err, WEFT_ESTALE, "%s leads",
			       leader->holder[0] ? leader->holder : "this weftd no more");
	}
	if (moves || (members && r->writes) || r->head.modified != was) {
		return 0;	/* of what it writes meanwhile that finds out */
	}
	if (now.modified != was) {
		if (!next || !now.modified || !is_same_head(&now, next)) {
			return err_set(err, WEFT_ESTALE, "etcd's log is not as it was "
				       "written: etcd is older than it was");
		}
		r->head = now;
	}
	return 0;
}

/* Milliseconds for which it leads for sure. */
static int left_ms(const struct replica *r)
{
	int64_t left = (r->proven_ns + r->lease_ns / 3 * 2 - clk_boot_ns()) / NS_PER_MS;

	return left < 0 ? 0 : left < CALL_MS ? (int)left : CALL_MS;
}

/* What is asked of one who leads no more, or does not know what it has written, ends it. */
static int give_up(struct replica *r, const struct err *err)
{
	if (r->leads) {
		lease_end_process(&r->base, err->msg);
	}
	return err->code;
}

static bool is_unknown(int rc)
{
	return rc == WEFT_EUNAVAIL || rc == WEFT_ETIMEOUT;
}

/* Of what it writes, or of a beat while it writes nothing. */
static void note_problem(struct replica *r, int rc, const struct err *err)
{
	struct ha_status *s = &r->base.status;
	const bool had = s->problem[0] != '\0';
	char since[32];

	s->is_refused = rc && !is_unknown(rc);
	if (!is_unknown(rc) || !r->writes) {
		r->unknown_ns = 0;
		snprintf(s->problem, sizeof(s->problem), "%s", rc ? err->msg : "");
	} else {
		r->unknown_ns = r->unknown_ns ? r->unknown_ns : clk_wall_ns();
		snprintf(s->problem, sizeof(s->problem), "outcome unknown since %s: %s",
			 clk_iso(r->unknown_ns, since, sizeof(since)), err->msg);
	}
	if (r->base.on_problem && had != (s->problem[0] != '\0')) {
		r->base.on_problem(r->base.on_problem_arg);
	}
}

/* Does all of ops if this process leads and, with next, the head is as it left it; the head
 * becomes next then, which ops must write. Until its lease is over. An error but WEFT_ESTALE:
 * etcd has refused it. */
static int transact(struct replica *r, const struct etcd_op *ops, int n_ops,
		    const struct head *next, struct err *err)
{
	char leader[MAX_KEY], head[MAX_KEY];
	const struct etcd_guard guards[] = {
		{ .key = key(r, leader, "leader"), .revision = r->term },
		{ .key = key(r, head, "head"), .written = true, .revision = r->head.modified },
	};
	const int64_t was = r->head.modified;
	int64_t revision;
	bool done;
	int rc;

	do {
		if (left_ms(r) == 0) {
			err_set(err, WEFT_ESTALE,
				"etcd did not say while the lease ran what it has");
			return give_up(r, err);
		}
		rc = etcd_transact(r->writer, guards, next ? 2 : 1, ops, n_ops, left_ms(r), &done,
				   &revision, err);
		if (rc == 0 && done) {
			r->head = next ? *next : r->head;
			r->head.modified = next ? revision : was;
		} else if (rc == 0) {
			/* Another leads, or it has happened when no answer came. */
			rc = settle(r, next, NULL, err);
			done = rc == 0 && r->head.modified != was;
			rc = rc || done ? rc : err_set(err, WEFT_EUNAVAIL,
						       "etcd has not done it yet");
		}
		note_problem(r, rc, err);
	} while (is_unknown(rc));
	return rc == WEFT_ESTALE ? give_up(r, err) : rc;
}

/* Writes a value of any size under a folder of parts; the last one together with the head,
 * and with what goes away then. */
static int write_parts(struct replica *r, const char *folder, int64_t position, const void *data,
		       size_t len, const struct head *next, const struct etcd_op *drops,
		       int n_drops, struct err *err)
{
	char name[MAX_KEY], head[MAX_KEY], text[160];
	struct etcd_op ops[4];
	size_t at = 0, n;
	int rc = 0;

	head_print(next, text, sizeof(text));
	for (int part = 0; rc == 0 && (at < len || part == 0); part++, at += n) {
		bool last = len - at <= ETCD_MAX_VALUE;

		n = last ? len - at : ETCD_MAX_VALUE;
		ops[0] = (struct etcd_op){
			.kind = ETCD_PUT, .value = (const char *)data + at, .len = n,
			.key = key(r, name, "%s/%016" PRIx64 "/%04x", folder, position, part),
		};
		ops[1] = (struct etcd_op){
			.kind = ETCD_PUT, .key = key(r, head, "head"), .value = text,
			.len = strlen(text),
		};
		for (int i = 0; i < n_drops; i++) {
			ops[2 + i] = drops[i];
		}
		rc = transact(r, ops, last ? 2 + n_drops : 1, last ? next : NULL, err);
	}
	return rc;
}

/* The first few of the queue, as one transaction of etcd's; or one that is too large for that. */
static int publish_some(struct replica *r, struct err *err)
{
	char names[MAX_BATCH][MAX_KEY], name[MAX_KEY], text[256];
	struct etcd_op ops[MAX_BATCH + 1];
	struct unpublished *u = STAILQ_FIRST(&r->queue);
	struct head next = r->head;
	size_t bytes = 0;
	int n = 0;

	if (u->len > ETCD_MAX_VALUE) {
		next.position = u->position;
		set_digest(&next, u->digest);
		return write_parts(r, "log", u->position, u->changes, u->len, &next, NULL, 0, err);
	}
	for (; u && n < MAX_BATCH && bytes + u->len <= ETCD_MAX_VALUE; u = STAILQ_NEXT(u, link)) {
		ops[n] = (struct etcd_op){
			.kind = ETCD_PUT, .value = u->changes, .len = u->len,
			.key = key(r, names[n], "log/%016" PRIx64 "/%04x", u->position, 0),
		};
		bytes += u->len;
		next.position = u->position;
		set_digest(&next, u->digest);
		n++;
	}
	head_print(&next, text, sizeof(text));
	ops[n++] = (struct etcd_op){ .kind = ETCD_PUT, .key = key(r, name, "head"), .value = text,
				     .len = strlen(text) };
	return transact(r, ops, n, &next, err);
}

/* All of the queue is in etcd, or why it is not. */
static int publish_all(struct replica *r, struct err *err)
{
	struct unpublished *u;
	int rc = 0;

	while (rc == 0 && !STAILQ_EMPTY(&r->queue)) {
		rc = publish_some(r, err);
		while (rc == 0 && (u = STAILQ_FIRST(&r->queue)) &&
		       u->position <= r->head.position) {
			r->log_bytes += (int64_t)u->len;
			STAILQ_REMOVE_HEAD(&r->queue, link);
			free(u);
		}
		if (rc == 0) {
			store_set_published(r->store, r->head.position);
		}
	}
	return rc;
}

/* Replaces the log so far by all that it made. */
static int write_snapshot(struct replica *r, struct err *err)
{
	char log_from[MAX_KEY], log_to[MAX_KEY], from[MAX_KEY], to[MAX_KEY];
	struct head next = r->head;
	int64_t at = store_position(r->store, next.log);
	const struct etcd_op drops[] = {
		{ .kind = ETCD_DELETE, .key = key(r, log_from, "log/"),
		  .end = key(r, log_to, "log/%016" PRIx64 "0", at) },
		{ .kind = ETCD_DELETE, .key = key(r, from, "snapshot/"),
		  .end = key(r, to, "snapshot/%016" PRIx64 "/", at) },
	};
	struct buf all = { 0 };
	int rc = store_whole(r->store, &all, err);

	if (rc == 0) {
		next.position = next.snapshot = at;
		next.format = STORE_VERSION;
		set_digest(&next, store_digest(r->store));
		rc = write_parts(r, "snapshot", at, all.data, all.len, &next, drops, 2, err);
	}
	buf_fini(&all);
	if (rc == 0) {
		r->log_bytes = 0;
		/* Only memory of etcd's is lost when it fails. */
		etcd_compact(r->writer, r->head.modified, CALL_MS, NULL);
	}
	return rc;
}

/* Writes until all is written: what etcd refuses is kept here, and cannot be taken back. */
static void write_log(void *arg)
{
	struct replica *r = arg;
	struct err err = { 0 };

	while (!STAILQ_EMPTY(&r->queue) || r->log_bytes > MAX_LOG_BYTES ||
	       r->head.position - r->head.snapshot > MAX_LOG_POSITIONS) {
		if (STAILQ_EMPTY(&r->queue) ? write_snapshot(r, &err) : publish_all(r, &err)) {
			co_poll(NULL, RETRY_MS);
		}
	}
}

static void log_is_written(void *arg)
{
	((struct replica *)arg)->writes = false;
}

static void publish(void *arg, const struct store_entry *e)
{
	struct replica *r = arg;
	struct unpublished *u = x_alloc(1, sizeof(*u) + e->len);

	u->position = e->position;
	memcpy(u->digest, e->digest, sizeof(u->digest));
	memcpy(u->changes, e->changes, e->len);
	u->len = e->len;
	STAILQ_INSERT_TAIL(&r->queue, u, link);
	if (!r->writes) {
		r->writes = true;
		co_start(r->loop, write_log, log_is_written, r);
	}
}

static void drop_queue(struct replica *r)
{
	struct unpublished *u;

	while ((u = STAILQ_FIRST(&r->queue))) {
		STAILQ_REMOVE_HEAD(&r->queue, link);
		free(u);
	}
}

/* What one who led before has left behind the head. */
static int drop_leftovers(struct replica *r, struct err *err)
{
	char from[MAX_KEY], to[MAX_KEY];
	const struct etcd_op drop = {
		.kind = ETCD_DELETE, .key = key(r, from, "log/%016" PRIx64 "/",
						r->head.position + 1),
		.end = key(r, to, "log0"),
	};

	return transact(r, &drop, 1, NULL, err);
}

/* What the store has is the first that all have. */
static int begin_log(struct replica *r, struct err *err)
{
	int rc = store_join(r->store, store_uuid(r->store), err);

	return rc ? rc : write_snapshot(r, err);
}

/* From now on the store's transactions go to the others. */
static int begin_term(struct replica *r, struct err *err)
{
	int rc = read_state(r, r->etcd, &r->head, NULL, err);

	if (rc == 0 && !r->term) {
		rc = err_set(err, WEFT_ESTALE, "etcd has ended the lease already");
	}
	if (rc == 0) {
		rc = catch_up(r, err);
	}
	if (rc == 0 && r->head.modified) {
		rc = drop_leftovers(r, err);
		if (rc == 0 && knows_more(r)) {
			log_warn("weftd", "etcd is older than it was: it gets what it has lost");
			rc = write_snapshot(r, err);
		} else if (rc == 0 && r->head.format != STORE_VERSION) {
			rc = write_snapshot(r, err);	/* what was before it goes */
		}
	} else if (rc == 0) {
		rc = begin_log(r, err);
	}
	if (rc == 0) {
		store_publish(r->store, publish, r);
		rc = store_new_term(r->store, err);
	}
	return rc ? rc : publish_all(r, err);
}

static int take_leader_key(struct replica *r, struct err *err)
{
	char name[MAX_KEY], text[STORE_HOLDER_MAX + 32];
	const struct etcd_guard none = { .key = key(r, name, "leader") };
	const struct etcd_op put = {
		.kind = ETCD_PUT, .key = name, .value = text, .lease = r->lease,
		.len = (size_t)snprintf(text, sizeof(text), "%" PRId64 " %s", clk_wall_ns(),
					r->self),
	};
	bool done;
	int64_t revision;
	int rc = etcd_transact(r->etcd, &none, 1, &put, 1, CALL_MS, &done, &revision, err);

	r->term = rc == 0 && done ? revision : 0;
	return rc || done ? rc : err_set(err, WEFT_ESTALE, "another weftd was faster");
}

/* Without an answer to its campaign the next look finds whether the key is its own. One who
 * cannot lead then lets its lease end, and with it the key. */
static int lead(struct election *e, const struct store_lease *seen, struct err *err)
{
	struct replica *r = replica_of(e);
	int rc = r->term ? 0 : take_leader_key(r, err);

	(void)seen;	/* etcd knows better */
	if (rc) {
		return rc;
	}
	r->writes = true;
	rc = begin_term(r, err);
	r->writes = false;
	r->leads = rc == 0;
	e->proven_ns = r->proven_ns;
	if (rc) {
		store_publish(r->store, NULL, NULL);
		drop_queue(r);
		etcd_lease_end(r->etcd, r->lease, CALL_MS, NULL);
		r->lease = 0;
	}
	return rc;
}

/* Those that stand by, as they say themselves. */
static void take_members(struct replica *r, const struct etcd_pairs *members)
{
	struct ha_status *s = &r->base.status;
	size_t skip = strlen(r->prefix) + strlen("member/");

	s->n_standbys = 0;
	for (int i = 0; i < members->n && s->n_standbys < HA_MAX_STANDBYS; i++) {
		struct ha_standby *one = &s->standbys[s->n_standbys];

		if (strcmp(members->v[i].key + skip, r->self) != 0) {
			snprintf(one->name, sizeof(one->name), "%s", members->v[i].key + skip);
			one->behind = r->head.position - strtoll(members->v[i].value, NULL, 10);
			s->n_standbys++;
		}
	}
}

/* While it writes, that says what is wrong. */
static void note_beat(struct replica *r, int rc, const struct err *err)
{
	if (!r->writes) {
		note_problem(r, rc, err);
	}
}

static int beat(struct election *e, struct err *err)
{
	struct replica *r = replica_of(e);
	struct etcd_pairs members = { 0 };
	int rc;

	rc = keep_lease(r, err);
	e->proven_ns = r->proven_ns;
	if (rc) {
		note_beat(r, rc, err);
		return rc;
	}
	rc = settle(r, NULL, &members, err);
	if (rc == 0) {
		take_members(r, &members);
	}
	etcd_pairs_fini(&members);
	note_beat(r, rc, err);
	return rc;
}

static int yield(struct election *e, struct err *err)
{
	struct replica *r = replica_of(e);

	while (r->writes) {
		co_poll(NULL, IDLE_MS);
	}
	store_publish(r->store, NULL, NULL);
	return r->lease ? etcd_lease_end(r->etcd, r->lease, CALL_MS, err) : 0;
}

/* ---- life ---------------------------------------------------------------- */

static void free_replica(struct election *e)
{
	struct replica *r = replica_of(e);

	drop_queue(r);
	etcd_free(r->etcd);
	etcd_free(r->writer);
	free(r);
}

int replica_election(uv_loop_t *loop, struct store *store, const struct replica_config *cfg,
		     struct election **out, struct err *err)
{
	struct replica *r = x_new(1, sizeof(*r));
	int rc;

	*out = NULL;
	r->base = (struct election){
		.look = look, .lead = lead, .beat = beat, .yield = yield, .wait_fd = wait_fd,
		.free = free_replica,
	};
	r->loop = loop;
	r->store = store;
	STAILQ_INIT(&r->queue);
	r->lease_ns = cfg->lease_ms * NS_PER_MS;
	r->told = -1;
	r->wait_fd = -1;
	snprintf(r->self, sizeof(r->self), "%s", cfg->self);
	if (snprintf(r->prefix, sizeof(r->prefix), "%s", cfg->prefix) >= (int)sizeof(r->prefix)) {
		free(r);
		return err_set(err, WEFT_EINVAL, "--etcd-prefix: too long");
	}
	if ((rc = etcd_new(cfg->members, &cfg->tls, &r->etcd, err)) ||
	    (rc = etcd_new(cfg->members, &cfg->tls, &r->writer, err))) {
		etcd_free(r->etcd);
		free(r);
		return rc;
	}
	*out = &r->base;
	return 0;
}
