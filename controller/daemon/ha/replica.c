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
 * comes twice. A transaction that etcd did not answer is asked for again until it is known,
 * or until the lease is over.
 *
 * Whoever stands by follows the log, so that it has intent, history and the journal of an open
 * change when its turn comes.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/daemon/ha/ha.h"
#include "lib/base/alloc.h"
#include "lib/base/buf.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/etcd/etcd.h"

#define NS_PER_MS 1000000
#define CALL_MS 1000		/* for one answer of etcd */
#define KEEP_MS 50		/* for that to a sign of life */
#define POSITIONS_AT_ONCE 8
/* A snapshot replaces so much of the log. */
#define MAX_LOG_POSITIONS 1000
#define MAX_LOG_BYTES (16 << 20)
#define MAX_KEY 384

struct head {
	char log[STORE_LOG_MAX];
	int64_t position, snapshot;
	int format;
	int64_t modified;	/* 0: there is none yet */
};

struct replica {
	struct election base;	/* first */
	struct etcd *etcd;
	struct store *store;
	char prefix[MAX_KEY / 3];
	char self[STORE_HOLDER_MAX];
	int64_t lease_ns;
	int64_t lease;		/* etcd's; 0: none */
	int64_t proven_ns;	/* of the lease */
	int64_t term;		/* while it leads: what made the leader's key */
	struct head head;	/* as last read or written */
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
	if (sscanf(pair->value, "log %39s position %" SCNd64 " snapshot %" SCNd64 " format %d",
		   h->log, &h->position, &h->snapshot, &h->format) != 4 ||
	    h->position < h->snapshot || h->snapshot < 0) {
		return err_set(err, WEFT_EINVAL, "etcd: %s is not weft's", pair->key);
	}
	h->modified = pair->modified;
	return 0;
}

static void head_print(const struct head *h, char *buf, size_t size)
{
	snprintf(buf, size, "log %s position %" PRId64 " snapshot %" PRId64 " format %d\n",
		 h->log, h->position, h->snapshot, h->format);
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

/* Who leads and how long the log is, at one moment; standbys as well if they are wanted. */
static int read_state(struct replica *r, struct etcd_pairs *members, struct err *err)
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
	int rc = etcd_transact(r->etcd, NULL, 0, ops, members ? 3 : 2, CALL_MS, &done, &revision,
			       err);

	if (rc) {
		return rc;
	}
	leader_parse(&leader, &r->base.status.leader);
	r->base.status.leader.beat++;	/* a lease that is over takes the key away */
	r->head.modified = 0;
	rc = head.n > 0 ? head_parse(&head.v[0], &r->head, err) : 0;
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

/* May this store follow the log? *whole: only as a whole. */
static int check_log(struct replica *r, bool *whole, struct err *err)
{
	char log[STORE_LOG_MAX];
	int64_t at = store_position(r->store, log);
	bool fresh;
	int rc;

	if (r->head.format != STORE_VERSION) {
		return err_set(err, WEFT_EUNSUPPORTED, "etcd has a log of format %d, this weftd "
			       "writes %d: all of them must be of one version", r->head.format,
			       STORE_VERSION);
	}
	if (strcmp(log, r->head.log) == 0) {
		*whole = at < r->head.snapshot;
		return at <= r->head.position ? 0 :
		       err_set(err, WEFT_EINVAL, "the store has %" PRId64 " transactions and etcd "
			       "only %" PRId64 ": etcd is older than it was", at, r->head.position);
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

static int catch_up(struct replica *r, struct err *err)
{
	char log[STORE_LOG_MAX];
	bool whole = false;
	int64_t at;
	int rc;

	if (!r->head.modified) {
		return 0;
	}
	rc = check_log(r, &whole, err);
	if (rc == 0 && whole) {
		rc = take_snapshot(r, err);
	}
	while (rc == 0 && (at = store_position(r->store, log)) < r->head.position) {
		rc = follow_some(r, at, err);
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
		rc = read_state(r, NULL, err);
	}
	if (rc == 0) {
		rc = catch_up(r, err);
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

/* Has the transaction that was not answered happened? Only this process moves the head while
 * the leader's key is its own. */
static int settle(struct replica *r, struct err *err)
{
	struct head mine = r->head;
	int rc = read_state(r, NULL, err);

	if (rc) {
		r->head = mine;
		return rc;
	}
	if (r->base.status.leader.term != (uint64_t)r->term) {
		return err_set(err, WEFT_ESTALE, "%s leads",
			       r->base.status.leader.holder[0] ? r->base.status.leader.holder
							       : "this weftd no more");
	}
	return 0;
}

/* Milliseconds for which it leads for sure. */
static int left_ms(const struct replica *r)
{
	int64_t left = (r->proven_ns + r->lease_ns / 3 * 2 - clk_boot_ns()) / NS_PER_MS;

	return left < 0 ? 0 : left < CALL_MS ? (int)left : CALL_MS;
}

/* Does all of ops if this process leads and, with next, the head is as it left it; the head
 * becomes next then, which ops must write. Until its lease is over. */
static int transact(struct replica *r, const struct etcd_op *ops, int n_ops,
		    const struct head *next, struct err *err)
{
	char leader[MAX_KEY], head[MAX_KEY];
	const struct etcd_guard guards[] = {
		{ .key = key(r, leader, "leader"), .revision = r->term },
		{ .key = key(r, head, "head"), .written = true, .revision = r->head.modified },
	};
	int64_t revision, was = r->head.modified;
	bool done;
	int rc;

	do {
		if (left_ms(r) == 0) {
			return err_set(err, WEFT_ESTALE, "etcd did not answer while the lease ran");
		}
		rc = etcd_transact(r->etcd, guards, next ? 2 : 1, ops, n_ops, left_ms(r), &done,
				   &revision, err);
		if (rc == 0 && done) {
			r->head = next ? *next : r->head;
			r->head.modified = next ? revision : r->head.modified;
			return 0;
		}
		if (rc == 0) {
			/* Another leads, or it has happened when no answer came. */
			rc = settle(r, err);
			if (rc == 0 && next && r->head.modified != was) {
				return 0;
			}
			if (rc == 0) {
				rc = err_set(err, WEFT_ESTALE,
					     "etcd: the leader's key has changed");
			}
		}
	} while (rc == WEFT_EUNAVAIL || rc == WEFT_ETIMEOUT);
	return rc;
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

static int publish(void *arg, int64_t position, const void *changes, size_t len, struct err *err)
{
	struct replica *r = arg;
	struct head next = r->head;
	int rc;

	next.position = position;
	rc = write_parts(r, "log", position, changes, len, &next, NULL, 0, err);
	if (rc == 0) {
		r->log_bytes += (int64_t)len;
	}
	return rc ? err_wrap(err, "the change is not recorded") : 0;
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
		rc = write_parts(r, "snapshot", at, all.data, all.len, &next, drops, 2, err);
	}
	buf_fini(&all);
	if (rc == 0) {
		r->log_bytes = 0;
		/* Only memory of etcd's is lost when it fails. */
		etcd_compact(r->etcd, r->head.modified, CALL_MS, NULL);
	}
	return rc;
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
	int rc = store_join(r->store, store_uuid(r->store), 0, err);

	return rc ? rc : write_snapshot(r, err);
}

/* From now on the store's transactions go to the others. */
static int begin_term(struct replica *r, struct err *err)
{
	int rc = read_state(r, NULL, err);

	if (rc == 0) {
		rc = catch_up(r, err);
	}
	if (rc == 0) {
		rc = r->head.modified ? drop_leftovers(r, err) : begin_log(r, err);
	}
	if (rc == 0) {
		store_publish(r->store, publish, r);
		rc = store_new_term(r->store, err);
	}
	return rc;
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
	int rc = etcd_transact(r->etcd, &none, 1, &put, 1, CALL_MS, &done, &r->term, err);

	return rc || done ? rc : err_set(err, WEFT_ESTALE, "another weftd was faster");
}

static int lead(struct election *e, const struct store_lease *seen, struct err *err)
{
	struct replica *r = replica_of(e);
	int rc = take_leader_key(r, err);

	(void)seen;	/* etcd knows better */
	if (rc) {
		return rc;
	}
	rc = begin_term(r, err);
	if (rc) {
		store_publish(r->store, NULL, NULL);
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

static int beat(struct election *e, int64_t *proven_ns, struct err *err)
{
	struct replica *r = replica_of(e);
	struct etcd_pairs members = { 0 };
	int rc;

	*proven_ns = r->proven_ns;
	if (store_is_behind(r->store)) {
		return err_set(err, WEFT_ESTALE, "the disk refused what others have already");
	}
	rc = keep_lease(r, err);
	if (rc) {
		return rc;
	}
	*proven_ns = r->proven_ns;
	rc = read_state(r, &members, err);
	if (rc == 0 && e->status.leader.term != (uint64_t)r->term) {
		rc = err_set(err, WEFT_ESTALE, "%s leads", e->status.leader.holder);
	} else if (rc == 0) {
		take_members(r, &members);
	}
	etcd_pairs_fini(&members);
	if (rc == 0 && (r->log_bytes > MAX_LOG_BYTES ||
			r->head.position - r->head.snapshot > MAX_LOG_POSITIONS)) {
		rc = write_snapshot(r, err);
	}
	return rc;
}

static int yield(struct election *e, struct err *err)
{
	struct replica *r = replica_of(e);

	store_publish(r->store, NULL, NULL);
	return r->lease ? etcd_lease_end(r->etcd, r->lease, CALL_MS, err) : 0;
}

/* ---- life ---------------------------------------------------------------- */

static void free_replica(struct election *e)
{
	struct replica *r = replica_of(e);

	etcd_free(r->etcd);
	free(r);
}

int replica_election(struct store *store, const struct replica_config *cfg,
		     struct election **out, struct err *err)
{
	struct replica *r = x_new(1, sizeof(*r));
	int rc;

	*out = NULL;
	r->base = (struct election){
		.look = look, .lead = lead, .beat = beat, .yield = yield, .wait_fd = wait_fd,
		.free = free_replica,
	};
	r->store = store;
	r->lease_ns = cfg->lease_ms * NS_PER_MS;
	r->told = -1;
	r->wait_fd = -1;
	snprintf(r->self, sizeof(r->self), "%s", cfg->self);
	if (snprintf(r->prefix, sizeof(r->prefix), "%s", cfg->prefix) >= (int)sizeof(r->prefix)) {
		free(r);
		return err_set(err, WEFT_EINVAL, "--etcd-prefix: too long");
	}
	rc = etcd_new(cfg->members, &cfg->tls, &r->etcd, err);
	if (rc) {
		free(r);
		return rc;
	}
	*out = &r->base;
	return 0;
}
