/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What weft relies on of an etcd, by lib/etcd alone: cases that run against real members
 * (test_etcd.c) and against the simulation's model of them (tests/sim/stories/etcd_cases.c), so
 * that the model claims nothing that the real one does not do. A case has keys of its own; it
 * stops at the first thing that is wrong.
 */
#ifndef WEFT_TESTS_UNIT_ETCD_CASES_H
#define WEFT_TESTS_UNIT_ETCD_CASES_H

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/etcd/etcd.h"

#define WAIT_MS 30000
#define N_FACTS 20

/* Where the members are, and who can do something to them. */
struct etcd_place {
	const char *urls;
	int members;
	void (*kill)(int member);
	void (*start)(int member);
	void (*sleep)(int ms);
	/* Runs work(a) and work(b), at the same time. */
	void (*both)(void (*work)(void *arg), void *a, void *b);
	/* Until nothing can be put any more. */
	void (*fill)(void);
	void (*wrong)(const char *file, int line, const char *what, const char *error);
};

static const struct etcd_place *place;

/* Of the case that runs. */
static struct {
	struct etcd *e;
	struct err err;
	int64_t revision;	/* of the last transaction */
} now;

#define MUST(condition) do { if (!(condition)) { \
	place->wrong(__FILE__, __LINE__, #condition, now.err.msg); return; } } while (0)

/* ---- what cases are made of ---- */

static int try_all(const struct etcd_guard *g, int n_g, const struct etcd_op *ops, int n_ops,
		   int ms, bool *done)
{
	now.err = (struct err){ 0 };
	return etcd_transact(now.e, g, n_g, ops, n_ops, ms, done, &now.revision, &now.err);
}

/* It was answered, and done. */
static bool transact(const struct etcd_guard *g, int n_g, const struct etcd_op *ops, int n_ops)
{
	bool done;

	return try_all(g, n_g, ops, n_ops, WAIT_MS, &done) == 0 && done;
}

/* It was answered, and not done. */
static bool is_guarded(const struct etcd_guard *g, const struct etcd_op *op)
{
	bool done;

	return try_all(g, 1, op, 1, WAIT_MS, &done) == 0 && !done;
}

static bool put_leased(const char *key, const char *value, int64_t lease)
{
	const struct etcd_op put = { .kind = ETCD_PUT, .key = key, .value = value,
				     .len = strlen(value), .lease = lease };

	return transact(NULL, 0, &put, 1);
}

static bool put(const char *key, const char *value)
{
	return put_leased(key, value, 0);
}

static bool get(const char *key, const char *end, struct etcd_pairs *got)
{
	const struct etcd_op op = { .kind = ETCD_GET, .key = key, .end = end, .got = got };

	return transact(NULL, 0, &op, 1);
}

static bool drop(const char *key, const char *end)
{
	const struct etcd_op op = { .kind = ETCD_DELETE, .key = key, .end = end };

	return transact(NULL, 0, &op, 1);
}

/* How many there are; -1: no answer. */
static int count(const char *key, const char *end)
{
	struct etcd_pairs got = { 0 };
	int n = get(key, end, &got) ? got.n : -1;

	etcd_pairs_fini(&got);
	return n;
}

/* A change is heard of within WAIT_MS. */
static bool hears(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	bool changed = false;

	while (!changed) {
		if (poll(&p, 1, WAIT_MS) != 1 || etcd_watch_take(now.e, &changed, &now.err)) {
			return false;
		}
	}
	return true;
}

/* The keys from key to before end are there no more, within WAIT_MS. */
static bool goes(const char *key, const char *end)
{
	for (int ms = 0; ms < WAIT_MS && count(key, end) > 0; ms += 100) {
		place->sleep(100);
	}
	return count(key, end) == 0;
}

static bool says(const char *text)
{
	return strstr(now.err.msg, text);
}

/* ---- transactions ---- */

static void case_guards(void)
{
	const struct etcd_guard none = { .key = "/a" };
	const struct etcd_op op = { .kind = ETCD_PUT, .key = "/a", .value = "1\0002", .len = 3 };
	struct etcd_pairs got = { 0 };

	MUST(transact(&none, 1, &op, 1));
	MUST(is_guarded(&none, &op));
	MUST(get("/a", NULL, &got));
	MUST(got.n == 1 && strcmp(got.v[0].key, "/a") == 0);
	MUST(got.v[0].len == 3 && memcmp(got.v[0].value, "1\0002", 3) == 0);
	const struct etcd_guard made = { .key = "/a", .revision = got.v[0].created };
	const struct etcd_guard written = { .key = "/a", .written = true,
					    .revision = got.v[0].modified };
	const struct etcd_guard never = { .key = "/a", .written = true };
	etcd_pairs_fini(&got);
	MUST(is_guarded(&never, &op));
	MUST(transact(&made, 1, &op, 1));
	MUST(is_guarded(&written, &op));
	MUST(transact(&made, 1, &op, 1));
	/* Of several all must hold. */
	const struct etcd_guard both[] = { made, none };
	bool done;
	MUST(try_all(both, 2, &op, 1, WAIT_MS, &done) == 0 && !done);
	/* What was taken away and comes back was made again. */
	MUST(drop("/a", NULL) && put("/a", "3"));
	MUST(is_guarded(&made, &op));
}

static void case_revisions(void)
{
	const struct etcd_op two[] = {
		{ .kind = ETCD_PUT, .key = "/r/1" }, { .kind = ETCD_PUT, .key = "/r/2" },
	};
	struct etcd_pairs got = { 0 };
	int64_t first;

	MUST(put("/r/1", "x"));
	first = now.revision;
	MUST(transact(NULL, 0, two, 2) && now.revision == first + 1);
	MUST(get("/r/", "/r0", &got) && now.revision == first + 1);
	MUST(got.n == 2 && got.v[0].created == first && got.v[0].modified == first + 1);
	MUST(got.v[1].created == first + 1 && got.v[1].modified == first + 1);
	MUST(got.v[1].len == 0 && got.v[1].value[0] == '\0');
	etcd_pairs_fini(&got);
	/* What changes nothing is no revision. */
	MUST(drop("/r/3", NULL) && now.revision == first + 1);
	MUST(is_guarded(&(struct etcd_guard){ .key = "/r/1" }, &two[0]));
	MUST(now.revision == first + 1);
	MUST(drop("/r/", "/r0") && now.revision == first + 2);
	MUST(count("/r/", "/r0") == 0);
}

static void case_ranges(void)
{
	static const char *const keys[] = { "/g/b", "/g/a/2", "/g0", "/g/", "/g/a/10", "/g" };
	static const char *const order[] = { "/g/", "/g/a/10", "/g/a/2", "/g/b" };
	struct etcd_pairs got = { 0 };

	for (int i = 0; i < 6; i++) {
		MUST(put(keys[i], keys[i]));
	}
	MUST(get("/g/", "/g0", &got) && got.n == 4);
	for (int i = 0; i < 4; i++) {
		MUST(strcmp(got.v[i].key, order[i]) == 0);
		MUST(strcmp(got.v[i].value, order[i]) == 0);
	}
	etcd_pairs_fini(&got);
	MUST(drop("/g/a/", "/g/a0") && count("/g", "/g1") == 4);
	MUST(count("/g/b", NULL) == 1 && count("/g/c", NULL) == 0);
	MUST(count("/g0", "/g/") == 0);
}

/* One operation sees what those before it did. */
static void case_order(void)
{
	struct etcd_pairs before = { 0 }, after = { 0 };
	const struct etcd_op ops[] = {
		{ .kind = ETCD_GET, .key = "/o", .got = &before },
		{ .kind = ETCD_PUT, .key = "/o", .value = "2", .len = 1 },
		{ .kind = ETCD_GET, .key = "/o", .got = &after },
		{ .kind = ETCD_DELETE, .key = "/o/", .end = "/o0" },
	};

	MUST(put("/o/1", "gone") && put("/o", "1"));
	MUST(transact(NULL, 0, ops, 4));
	MUST(before.n == 1 && before.v[0].value[0] == '1');
	MUST(after.n == 1 && after.v[0].value[0] == '2');
	MUST(after.v[0].modified == now.revision);
	etcd_pairs_fini(&before);
	etcd_pairs_fini(&after);
	MUST(count("/o/", "/o0") == 0);
}

static void case_refused(void)
{
	struct etcd_op ops[129];
	char keys[129][16];
	bool done;

	for (int i = 0; i < 129; i++) {
		snprintf(keys[i], sizeof(keys[i]), "/n/%03d", i);
		ops[i] = (struct etcd_op){ .kind = ETCD_PUT, .key = keys[i] };
	}
	MUST(try_all(NULL, 0, ops, 129, 2000, &done) == WEFT_EINVAL);
	MUST(says("etcdserver: too many operations in txn request"));
	MUST(transact(NULL, 0, ops, 128));
	ops[1].key = ops[0].key;
	MUST(try_all(NULL, 0, ops, 2, 2000, &done) == WEFT_EINVAL);
	MUST(says("etcdserver: duplicate key given in txn request"));
	ops[1].key = "";
	MUST(try_all(NULL, 0, ops, 2, 2000, &done) == WEFT_EINVAL);
	MUST(says("etcdserver: key is not provided"));
}

static void case_too_large(void)
{
	char *big = calloc(1, 4 << 20);
	struct etcd_op op = { .kind = ETCD_PUT, .key = "/big", .value = big, .len = 4 << 20 };
	bool done;
	int r[2];

	r[0] = try_all(NULL, 0, &op, 1, 2000, &done);
	op.len = (3 << 19) + 1;
	r[1] = try_all(NULL, 0, &op, 1, 2000, &done);
	op.len = ETCD_MAX_VALUE;
	free(big);
	MUST(r[0] == WEFT_ELIMIT);
	MUST(r[1] == WEFT_EINVAL && says("etcdserver: request is too large"));
	op.value = big = calloc(1, ETCD_MAX_VALUE);
	done = transact(NULL, 0, &op, 1);
	free(big);
	MUST(done && drop("/big", NULL));
}

static void case_compaction(void)
{
	int64_t first, second;

	MUST(put("/c", "1"));
	first = now.revision;
	MUST(put("/c", "2"));
	second = now.revision;
	MUST(etcd_compact(now.e, second, WAIT_MS, &now.err) == 0);
	MUST(etcd_compact(now.e, second, WAIT_MS, &now.err) == WEFT_EINVAL);
	MUST(says("etcdserver: mvcc: required revision has been compacted"));
	MUST(etcd_compact(now.e, first, WAIT_MS, &now.err) == WEFT_EINVAL);
	MUST(etcd_compact(now.e, second + 100, WAIT_MS, &now.err) == WEFT_EINVAL);
	MUST(says("etcdserver: mvcc: required revision is a future revision"));
	MUST(count("/c", NULL) == 1);
}

/* ---- leases and watches ---- */

/* Some member takes a sign of life. */
static bool keeps(int64_t lease)
{
	int64_t asked_ns = 0;
	int r = 0;

	for (int ms = 0; ms < WAIT_MS && r != WEFT_ESTALE && !asked_ns; ms += 20) {
		r = etcd_lease_keep(now.e, lease, 1000, &asked_ns, &now.err);
		place->sleep(20);
	}
	return asked_ns > 0;
}

/* A key goes with its lease, and whoever watches hears of both. */
static void case_lease_and_watch(void)
{
	struct etcd_pairs got = { 0 };
	int64_t lease, asked_ns;
	int fd;

	MUST(etcd_lease_new(now.e, 2, WAIT_MS, &lease, &now.err) == 0);
	MUST(keeps(lease));
	fd = etcd_watch(now.e, "/w/", 1000, &now.err);
	MUST(fd >= 0 && hears(fd));	/* the first word: it watches */
	MUST(put_leased("/w/1", "", lease));
	MUST(hears(fd));
	MUST(get("/w/1", NULL, &got) && got.n == 1 && got.v[0].lease == lease);
	etcd_pairs_fini(&got);
	MUST(etcd_lease_end(now.e, lease, WAIT_MS, &now.err) == 0);
	MUST(hears(fd) && count("/w/1", NULL) == 0);
	MUST(etcd_lease_keep(now.e, lease, 1000, &asked_ns, &now.err) == WEFT_ESTALE);
	MUST(etcd_lease_end(now.e, lease, WAIT_MS, &now.err) == WEFT_ENOTFOUND);
	MUST(says("etcdserver: requested lease not found"));
}

/* One that is not kept ends, with all its keys at once; one that is kept does not. */
static void case_expiry(void)
{
	struct etcd_pairs got = { 0 };
	int64_t lease, kept, revision, asked_ns;
	int fd;

	MUST(etcd_lease_new(now.e, 2, WAIT_MS, &lease, &now.err) == 0);
	MUST(etcd_lease_new(now.e, 2, WAIT_MS, &kept, &now.err) == 0);
	MUST(put_leased("/x/kept", "", kept) && put_leased("/x/1", "", lease));
	MUST(put_leased("/x/2", "", lease) && put("/x/3", ""));
	MUST(put("/x/2", "has none any more"));
	MUST(put_leased("/x/4", "", lease));
	revision = now.revision;
	fd = etcd_watch(now.e, "/x/", 1000, &now.err);
	MUST(fd >= 0 && hears(fd));
	for (int ms = 0; ms < 3500; ms += 250) {
		MUST(keeps(kept));
		place->sleep(250);
	}
	MUST(hears(fd));
	MUST(get("/x/", "/x0", &got) && got.n == 3 && now.revision == revision + 1);
	MUST(strcmp(got.v[0].key, "/x/2") == 0 && strcmp(got.v[2].key, "/x/kept") == 0);
	etcd_pairs_fini(&got);
	MUST(etcd_lease_keep(now.e, lease, 1000, &asked_ns, &now.err) == WEFT_ESTALE);
	MUST(goes("/x/kept", NULL));
}

static void case_no_lease(void)
{
	const struct etcd_op op = { .kind = ETCD_PUT, .key = "/l", .lease = 4711 };
	const struct etcd_guard never = { .key = "/l", .revision = 1 };
	int64_t asked_ns;
	bool done;

	MUST(etcd_lease_keep(now.e, 4711, 1000, &asked_ns, &now.err) == WEFT_ESTALE);
	MUST(try_all(NULL, 0, &op, 1, 2000, &done) == WEFT_ENOTFOUND);
	MUST(says("etcdserver: requested lease not found"));
	MUST(is_guarded(&never, &op));
}

/* A client of its own that writes its name into each key where there is none. */
struct rival {
	const char *name;
	bool wrote[N_FACTS];
	int failed;
};

static void write_facts(void *arg)
{
	const struct rpc_tls_files none = { 0 };
	struct rival *r = arg;
	struct etcd *e = NULL;
	struct err err;

	r->failed = etcd_new(place->urls, &none, &e, &err);
	for (int i = 0; i < N_FACTS && !r->failed; i++) {
		char key[16];
		const struct etcd_guard absent = { .key = key };
		const struct etcd_op op = { .kind = ETCD_PUT, .key = key, .value = r->name,
					    .len = 1 };
		int64_t revision;

		snprintf(key, sizeof(key), "/f/%02d", i);
		r->failed = etcd_transact(e, &absent, 1, &op, 1, WAIT_MS, &r->wrote[i],
					  &revision, &err);
	}
	etcd_free(e);
}

/* What is guarded by its absence is written once, whoever else tries at the same time; one
 * that watches the keys' beginning hears of it. */
static void case_one_writes(void)
{
	struct rival rivals[2] = { { .name = "a" }, { .name = "b" } };
	struct etcd_pairs got = { 0 };
	int fd = etcd_watch(now.e, "/f/", 1000, &now.err);

	MUST(fd >= 0 && hears(fd));
	place->both(write_facts, &rivals[0], &rivals[1]);
	MUST(rivals[0].failed == 0 && rivals[1].failed == 0);
	MUST(get("/f/", "/f0", &got) && got.n == N_FACTS);
	for (int i = 0; i < N_FACTS; i++) {
		MUST(rivals[0].wrote[i] + rivals[1].wrote[i] == 1);
		MUST(got.v[i].value[0] == (rivals[0].wrote[i] ? 'a' : 'b'));
	}
	etcd_pairs_fini(&got);
	MUST(hears(fd));
}

/* ---- members that go ---- */

/* It dies and comes back: what was written is there, calls go on; streams have ended. */
static void case_restart(void)
{
	int64_t lease, asked_ns, revision;
	bool done, changed;
	int fd, r;

	MUST(etcd_lease_new(now.e, 2, WAIT_MS, &lease, &now.err) == 0);
	MUST(put("/kept", "1") && put_leased("/leased", "2", lease) && keeps(lease));
	revision = now.revision;
	fd = etcd_watch(now.e, "/kept", 1000, &now.err);
	MUST(fd >= 0 && hears(fd));
	place->kill(0);
	r = try_all(NULL, 0, &(struct etcd_op){ .kind = ETCD_DELETE, .key = "/kept" }, 1, 300,
		    &done);
	MUST((r == WEFT_EUNAVAIL || r == WEFT_ETIMEOUT) && says("etcd"));
	MUST(etcd_watch_take(now.e, &changed, &now.err) && changed);
	MUST(etcd_lease_keep(now.e, lease, 300, &asked_ns, &now.err));
	place->start(0);
	MUST(count("/kept", NULL) == 1 && now.revision == revision);
	MUST(count("/leased", NULL) == 1 && goes("/leased", NULL));
}

/* Nothing can be put, and no lease be had; all else goes on. The last case: it stays so. */
static void case_full(void)
{
	const struct etcd_op op = { .kind = ETCD_PUT, .key = "/full/2" };
	const struct etcd_guard never = { .key = "/full/2", .revision = 1 };
	int64_t lease, other;
	bool done;

	MUST(etcd_lease_new(now.e, 60, WAIT_MS, &lease, &now.err) == 0);
	MUST(put_leased("/full/1", "1", lease) && put("/full/3", "3"));
	place->fill();
	MUST(try_all(NULL, 0, &op, 1, 2000, &done) == WEFT_ELIMIT);
	MUST(says("etcdserver: mvcc: database space exceeded"));
	MUST(try_all(&never, 1, &op, 1, 2000, &done) == WEFT_ELIMIT);
	MUST(etcd_lease_new(now.e, 60, 2000, &other, &now.err) == WEFT_ELIMIT);
	MUST(keeps(lease) && count("/full/", "/full0") == 2);
	MUST(drop("/full/3", NULL) && count("/full/", "/full0") == 1);
	MUST(etcd_lease_end(now.e, lease, WAIT_MS, &now.err) == 0);
	MUST(count("/full/", "/full0") == 0);
}

/* ---- three members ---- */

/* Any one may go: leases and what was written stay. */
static void case_one_goes(void)
{
	int64_t lease;
	char key[16];

	MUST(etcd_lease_new(now.e, 5, WAIT_MS, &lease, &now.err) == 0);
	MUST(put_leased("/m/leased", "", lease));
	for (int i = 0; i < 2; i++) {
		place->kill(i);
		snprintf(key, sizeof(key), "/m/%d", i);
		MUST(put(key, key) && keeps(lease));
		place->start(i);
		MUST(count("/m/", "/m0") == i + 2);
	}
	place->sleep(2000);
	MUST(keeps(lease) && count("/m/leased", NULL) == 1);
	MUST(etcd_lease_end(now.e, lease, WAIT_MS, &now.err) == 0);
	MUST(count("/m/leased", NULL) == 0);
}

/* From now on only the first member is asked. */
static bool ask_first(void)
{
	const struct rpc_tls_files none = { 0 };
	char url[64];

	snprintf(url, sizeof(url), "%.*s", (int)strcspn(place->urls, ","), place->urls);
	etcd_free(now.e);
	return etcd_new(url, &none, &now.e, &now.err) == 0;
}

/* It is not done, and after some tries the reason is said. */
static bool lacks_leader(const struct etcd_op *op)
{
	bool done;
	int r;

	for (int i = 0; i < 30; i++) {
		r = try_all(NULL, 0, op, 1, 900, &done);
		if (r == 0 || (r == WEFT_EUNAVAIL && says("etcdserver: no leader"))) {
			return r != 0;
		}
	}
	return false;
}

/* Without two of three nothing can be had, and the third says so, of streams too. */
static void case_two_go(void)
{
	struct etcd_pairs got = { 0 };
	const struct etcd_op op = { .kind = ETCD_PUT, .key = "/no" };
	const struct etcd_op read = { .kind = ETCD_GET, .key = "/two", .got = &got };
	int64_t lease, asked_ns;
	bool changed = false;
	int fd, r = 0;

	MUST(put("/two", "") && ask_first());
	MUST(etcd_lease_new(now.e, 20, WAIT_MS, &lease, &now.err) == 0 && keeps(lease));
	fd = etcd_watch(now.e, "/two", 1000, &now.err);
	MUST(fd >= 0 && hears(fd));
	place->kill(1);
	place->kill(2);
	MUST(lacks_leader(&op) && lacks_leader(&read));
	for (int i = 0; i < 100 && r == 0; i++) {
		r = etcd_watch_take(now.e, &changed, &now.err);
		place->sleep(100);
	}
	MUST(r == WEFT_EUNAVAIL && changed && says("etcdserver: no leader"));
	MUST(etcd_lease_keep(now.e, lease, 1000, &asked_ns, &now.err) != 0);
	place->start(1);
	/* What was refused may come: one that led has it in its log. */
	MUST(count("/two", NULL) == 1 && count("/no", NULL) >= 0 && keeps(lease));
	place->start(2);
}

struct etcd_case {
	const char *name;
	void (*run)(void);
	int members;
};

static const struct etcd_case etcd_cases[] = {
	{ "guards", case_guards, 1 },
	{ "revisions", case_revisions, 1 },
	{ "ranges", case_ranges, 1 },
	{ "order", case_order, 1 },
	{ "refused", case_refused, 1 },
	{ "too-large", case_too_large, 1 },
	{ "compaction", case_compaction, 1 },
	{ "lease-and-watch", case_lease_and_watch, 1 },
	{ "expiry", case_expiry, 1 },
	{ "no-lease", case_no_lease, 1 },
	{ "one-writes", case_one_writes, 1 },
	{ "restart", case_restart, 1 },
	{ "full", case_full, 1 },
	{ "one-goes", case_one_goes, 3 },
	{ "two-go", case_two_go, 3 },
};

#define N_ETCD_CASES ((int)(sizeof(etcd_cases) / sizeof(etcd_cases[0])))

/* With members of as many as it asks for. */
static void run_etcd_case(const struct etcd_case *c, const struct etcd_place *at)
{
	const struct rpc_tls_files none = { 0 };

	place = at;
	now.err = (struct err){ 0 };
	if (etcd_new(at->urls, &none, &now.e, &now.err)) {
		at->wrong(__FILE__, __LINE__, "etcd_new", now.err.msg);
		return;
	}
	c->run();
	etcd_free(now.e);
}

#endif
