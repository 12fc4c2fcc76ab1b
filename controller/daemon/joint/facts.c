/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keys of joint changes. Below the fabric's prefix, beside those of the participants'
 * own (../ha/replica.c, below PREFIX/NAME/):
 *
 *	participants/NAME       the failure domains that it leads; stays
 *	joint/open              "UUID ASKED NAME,NAME,..."; the revision that made it is the id
 *	joint/base/NAME         it is in joint-data
 *	joint/at/NAME           "STAGE DIGEST"
 *	joint/decision          "commit", or "undo WHY"; written once
 *	joint/ended/NAME        how its part ended
 *	joint-data/request      what was asked for
 *	joint-data/base/NAME    what its devices hold
 *	joint-closed            the last one that was; stays
 *
 * Whatever a participant writes compares the revision that made its leader's key, so that one
 * that leads no more says nothing, and that of joint/open.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/daemon/joint/private.h"
#include "lib/base/alloc.h"

#define CALL_MS 1000
#define WATCH_MS 50
#define MAX_KEY 384

struct facts {
	struct etcd *etcd;
	const struct election *election;
	char prefix[MAX_KEY / 3];
	char name[JOINT_NAME_MAX];
	int wait_fd;		/* -1: nothing is watched */
	bool closed;		/* no call begins any more */
};

__attribute__((format(printf, 3, 4)))
static const char *key(const struct facts *f, char buf[MAX_KEY], const char *fmt, ...)
{
	int n = snprintf(buf, MAX_KEY, "%s", f->prefix);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(buf + n, (size_t)(MAX_KEY - n), fmt, ap);
	va_end(ap);
	return buf;
}

/* Once the facts are closed nothing but this error is known of their caller's world. */
static int transact(struct facts *f, const struct etcd_guard *guards, int n_guards,
		    const struct etcd_op *ops, int n_ops, bool *done, struct err *err)
{
	int64_t revision;
	int r = f->closed ? 0 : etcd_transact(f->etcd, guards, n_guards, ops, n_ops, CALL_MS, done,
					      &revision, err);

	return f->closed ? err_set(err, WEFT_ECANCELED, "weftd is stopping") : r;
}

static int read_all(struct facts *f, const struct etcd_op *gets, int n, struct err *err)
{
	bool done;

	return transact(f, NULL, 0, gets, n, &done, err);
}

/* ---- reading ------------------------------------------------------------- */

struct joint_said *facts_find(struct joint_facts *of, const char *name)
{
	for (int i = 0; i < of->n; i++) {
		if (strcmp(of->v[i].name, name) == 0) {
			return &of->v[i];
		}
	}
	return NULL;
}

static int parse_open(const struct etcd_pair *p, struct joint_facts *out, struct err *err)
{
	char names[JOINT_MAX * JOINT_NAME_MAX], *rest = names, *one;
	struct joint_said *s;

	_Static_assert(JOINT_NAME_MAX == 64 && JOINT_MAX * JOINT_NAME_MAX == 2048, "sscanf below");
	if (sscanf(p->value, "%39s %63s %2047s", out->uuid, out->asked, names) != 3) {
		return err_set(err, WEFT_EINVAL, "etcd: %s is not weft's", p->key);
	}
	while ((one = strsep(&rest, ","))) {
		s = facts_find(out, one);
		if (!s) {
			return err_set(err, WEFT_EINVAL, "etcd: %s is of %s, which is no "
				       "participant", p->key, one);
		}
		out->n_parts += !s->has_part;
		s->has_part = true;
	}
	out->id = p->created;
	return 0;
}

/* One key of joint/, without that. Those of others than the participants mean nothing. */
static void take_fact(const char *name, const char *value, struct joint_facts *out)
{
	struct joint_said *s = facts_find(out, strchr(name, '/') ? strchr(name, '/') + 1 : "");

	if (strcmp(name, "decision") == 0) {
		out->decision = strncmp(value, "undo", 4) == 0 ? JOINT_UNDO : JOINT_COMMIT;
		snprintf(out->why, sizeof(out->why), "%s", out->decision == JOINT_UNDO && value[4]
							   ? value + 5 : "");
	} else if (s && strncmp(name, "base/", 5) == 0) {
		out->n_bases += s->has_part;
	} else if (s && strncmp(name, "at/", 3) == 0) {
		if (sscanf(value, "%d %64s", &s->stage, s->digest) != 2) {
			s->stage = -1;
		}
	} else if (s && strncmp(name, "ended/", 6) == 0) {
		snprintf(s->ended, sizeof(s->ended), "%s", value);
		out->n_ended += s->has_part;
	}
}

static int parse_facts(const struct facts *f, const struct etcd_pairs *pairs,
		       struct joint_facts *out, struct err *err)
{
	size_t skip = strlen(f->prefix) + strlen("joint/");
	int r = 0;

	for (int i = 0; i < pairs->n && r == 0; i++) {
		if (strcmp(pairs->v[i].key + skip, "open") == 0) {
			r = parse_open(&pairs->v[i], out, err);
		}
	}
	for (int i = 0; i < pairs->n && out->id; i++) {
		take_fact(pairs->v[i].key + skip, pairs->v[i].value, out);
	}
	return r;
}

/* All keys of a folder; leaves of them what comes after it. */
static int read_names(struct facts *f, const char *folder, struct etcd_pairs *out, struct err *err)
{
	size_t skip = strlen(f->prefix) + strlen(folder) + 1;
	char from[MAX_KEY], to[MAX_KEY];
	const struct etcd_op get = {
		.kind = ETCD_GET, .key = key(f, from, "%s/", folder),
		.end = key(f, to, "%s0", folder), .got = out,
	};
	int r = read_all(f, &get, 1, err);

	for (int i = 0; i < out->n && r == 0; i++) {
		memmove(out->v[i].key, out->v[i].key + skip, strlen(out->v[i].key + skip) + 1);
	}
	return r;
}

/* Whose weftd leads. "SINCE HOLDER", as ../ha/replica.c writes it. */
static int read_leaders(struct facts *f, struct joint_facts *out, struct err *err)
{
	struct etcd_pairs got[JOINT_MAX] = { { 0, NULL } };
	struct etcd_op ops[JOINT_MAX];
	char (*names)[MAX_KEY] = x_new(JOINT_MAX, sizeof(*names));
	int r;

	for (int i = 0; i < out->n; i++) {
		ops[i] = (struct etcd_op){ .kind = ETCD_GET, .got = &got[i],
			.key = key(f, names[i], "%s/leader", out->v[i].name) };
	}
	r = read_all(f, ops, out->n, err);
	for (int i = 0; i < out->n; i++) {
		const char *holder = got[i].n > 0 ? strchr(got[i].v[0].value, ' ') : NULL;

		snprintf(out->v[i].leader, sizeof(out->v[i].leader), "%s", holder ? holder + 1
			 : "");
		etcd_pairs_fini(&got[i]);
	}
	free(names);
	return r;
}

static int read_participants(struct facts *f, struct joint_facts *out, struct err *err)
{
	struct etcd_pairs all = { 0 };
	int r = read_names(f, "participants", &all, err);

	if (r == 0 && all.n > JOINT_MAX) {
		r = err_set(err, WEFT_ELIMIT, "etcd: %d participants, which may be %d at most",
			    all.n, JOINT_MAX);
	}
	for (int i = 0; i < all.n && r == 0; i++) {
		struct joint_said *s = &out->v[out->n++];

		s->stage = -1;
		snprintf(s->name, sizeof(s->name), "%s", all.v[i].key);
		snprintf(s->domains, sizeof(s->domains), "%s", all.v[i].value);
	}
	etcd_pairs_fini(&all);
	return r || out->n == 0 ? r : read_leaders(f, out, err);
}

int facts_read(struct facts *f, struct joint_facts *out, struct err *err)
{
	struct etcd_pairs pairs = { 0 }, closed = { 0 };
	char from[MAX_KEY], to[MAX_KEY], last[MAX_KEY];
	const struct etcd_op gets[] = {
		{ .kind = ETCD_GET, .key = key(f, from, "joint/"), .end = key(f, to, "joint0"),
		  .got = &pairs },
		{ .kind = ETCD_GET, .key = key(f, last, "joint-closed"), .got = &closed },
	};
	int r;

	*out = (struct joint_facts){ 0 };
	if ((r = read_participants(f, out, err)) == 0 && (r = read_all(f, gets, 2, err)) == 0) {
		out->closed = closed.n ? closed.v[0].modified : 0;
		r = parse_facts(f, &pairs, out, err);
	}
	etcd_pairs_fini(&pairs);
	etcd_pairs_fini(&closed);
	return r;
}

int facts_bases(struct facts *f, struct etcd_pairs *out, struct err *err)
{
	return read_names(f, "joint-data/base", out, err);
}

int facts_request(struct facts *f, struct buf *out, struct err *err)
{
	struct etcd_pairs got = { 0 };
	char name[MAX_KEY];
	const struct etcd_op get = { .kind = ETCD_GET, .key = key(f, name, "joint-data/request"),
				     .got = &got };
	int r = read_all(f, &get, 1, err);

	buf_reset(out);
	if (got.n > 0) {
		buf_add(out, got.v[0].value, got.v[0].len);
	}
	etcd_pairs_fini(&got);
	return r;
}

/* ---- writing ------------------------------------------------------------- */

/* Whatever is said of the joint change id (0: that none is open), if its guards hold. */
static int say(struct facts *f, int64_t id, const struct etcd_guard *more,
	       const struct etcd_op *ops, int n, struct err *err)
{
	char leader[MAX_KEY], open[MAX_KEY];
	const struct etcd_guard guards[] = {
		{ .key = key(f, leader, "%s/leader", f->name),
		  .revision = (int64_t)f->election->status.leader.term },
		{ .key = key(f, open, "joint/open"), .revision = id },
		more ? *more : (struct etcd_guard){ 0 },
	};
	bool done;

	for (int i = 0; i < n; i++) {
		if (ops[i].len > ETCD_MAX_VALUE) {
			return err_set(err, WEFT_ELIMIT,
				       "%zu bytes for all participants, which may "
				       "be %zu at most", ops[i].len, ETCD_MAX_VALUE);
		}
	}
	return transact(f, guards, more ? 3 : 2, ops, n, &done, err);
}

static int put(struct facts *f, int64_t id, const char *name, const char *text, size_t len,
	       struct err *err)
{
	const struct etcd_op op = { .kind = ETCD_PUT, .key = name, .value = text, .len = len };

	return say(f, id, NULL, &op, 1, err);
}

int facts_join(struct facts *f, const char *domains, struct err *err)
{
	char leader[MAX_KEY], name[MAX_KEY];
	const struct etcd_guard guard = {
		.key = key(f, leader, "%s/leader", f->name),
		.revision = (int64_t)f->election->status.leader.term,
	};
	const struct etcd_op op = {
		.kind = ETCD_PUT, .key = key(f, name, "participants/%s", f->name),
		.value = domains, .len = strlen(domains),
	};
	bool done;
	int r = transact(f, &guard, 1, &op, 1, &done, err);

	return r || done ? r : err_set(err, WEFT_ESTALE, "this weftd leads no more");
}

int facts_open(struct facts *f, int64_t closed, const char *uuid, const char *names,
	       const struct buf *request, struct err *err)
{
	char open[MAX_KEY], data[MAX_KEY], last[MAX_KEY], text[JOINT_MAX * JOINT_NAME_MAX + 160];
	const struct etcd_guard none_since = { .key = key(f, last, "joint-closed"),
					       .written = true, .revision = closed };
	const struct etcd_op ops[] = {
		{ .kind = ETCD_PUT, .key = key(f, open, "joint/open"), .value = text,
		  .len = (size_t)snprintf(text, sizeof(text), "%s %s %s", uuid, f->name, names) },
		{ .kind = ETCD_PUT, .key = key(f, data, "joint-data/request"),
		  .value = request->data, .len = request->len },
	};

	return say(f, 0, &none_since, ops, 2, err);
}

int facts_put_base(struct facts *f, int64_t id, const struct buf *base, struct err *err)
{
	char name[MAX_KEY], data[MAX_KEY];
	const struct etcd_op ops[] = {
		{ .kind = ETCD_PUT, .key = key(f, name, "joint/base/%s", f->name), .value = "" },
		{ .kind = ETCD_PUT, .key = key(f, data, "joint-data/base/%s", f->name),
		  .value = base->data, .len = base->len },
	};

	return say(f, id, NULL, ops, 2, err);
}

int facts_put_stage(struct facts *f, int64_t id, int stage, const char *digest, struct err *err)
{
	char name[MAX_KEY], text[96];
	int n = snprintf(text, sizeof(text), "%d %s", stage, digest);

	return put(f, id, key(f, name, "joint/at/%s", f->name), text, (size_t)n, err);
}

int facts_put_ended(struct facts *f, int64_t id, const char *how, struct err *err)
{
	char name[MAX_KEY];

	return put(f, id, key(f, name, "joint/ended/%s", f->name), how, strlen(how), err);
}

int facts_decide(struct facts *f, int64_t id, enum joint_decision decision, const char *why,
		 struct err *err)
{
	char name[MAX_KEY], text[JOINT_TEXT_MAX + 8];
	const struct etcd_guard none = { .key = key(f, name, "joint/decision") };
	struct etcd_op op = { .kind = ETCD_PUT, .key = name, .value = text };

	if (decision == JOINT_COMMIT) {
		snprintf(text, sizeof(text), "commit");
	} else {
		snprintf(text, sizeof(text), "undo %s", why);
	}
	op.len = strlen(text);
	return say(f, id, &none, &op, 1, err);
}

int facts_close(struct facts *f, int64_t id, struct err *err)
{
	char from[MAX_KEY], to[MAX_KEY], data[MAX_KEY], data_to[MAX_KEY], last[MAX_KEY], text[24];
	const struct etcd_op ops[] = {
		{ .kind = ETCD_DELETE, .key = key(f, from, "joint/"), .end = key(f, to, "joint0") },
		{ .kind = ETCD_DELETE, .key = key(f, data, "joint-data/"),
		  .end = key(f, data_to, "joint-data0") },
		{ .kind = ETCD_PUT, .key = key(f, last, "joint-closed"), .value = text,
		  .len = (size_t)snprintf(text, sizeof(text), "%" PRId64, id) },
	};

	return say(f, id, NULL, ops, 3, err);
}

int facts_wait_fd(struct facts *f)
{
	struct err err = { 0 };
	char from[MAX_KEY];
	bool changed;

	if (f->closed) {
		return -1;
	}
	if (f->wait_fd >= 0 && etcd_watch_take(f->etcd, &changed, &err)) {
		f->wait_fd = -1;
	}
	if (f->wait_fd < 0) {
		f->wait_fd = etcd_watch(f->etcd, key(f, from, "joint"), WATCH_MS, &err);
	}
	return f->wait_fd;
}

/* ---- life ---------------------------------------------------------------- */

int facts_new(const struct joint_config *cfg, const struct election *election,
	      struct facts **out, struct err *err)
{
	struct facts *f = x_new(1, sizeof(*f));
	int r;

	*out = NULL;
	f->election = election;
	f->wait_fd = -1;
	r = joint_name(cfg->domains, f->name, err);
	if (r == 0 && snprintf(f->prefix, sizeof(f->prefix), "%s", cfg->prefix) >=
		      (int)sizeof(f->prefix)) {
		r = err_set(err, WEFT_EINVAL, "--etcd-prefix: too long");
	}
	if (r == 0) {
		r = etcd_new(cfg->members, &cfg->tls, &f->etcd, err);
	}
	if (r) {
		free(f);
		return r;
	}
	*out = f;
	return 0;
}

void facts_stop(struct facts *f)
{
	f->closed = true;
}

void facts_free(struct facts *f)
{
	if (f) {
		etcd_free(f->etcd);
		free(f);
	}
}
