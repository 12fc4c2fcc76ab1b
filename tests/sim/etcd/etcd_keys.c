/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of an etcd, as its users can tell: a write is one revision, however many keys it
 * changes; one that changes nothing is none. Texts and codes of refusals are those of etcd 3.4.
 * Keys are texts. An event has the value that its key has now, if that is still its own.
 */
#include "tests/sim/etcd/etcd_keys.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "tests/sim/kernel/sim.h"

#define MAX_REQUEST ((size_t)3 << 19)	/* etcd's default, 1.5 MiB */
#define MAX_OPERATIONS 128
#define MIN_SECONDS 2			/* one and a half times the election time-out, rounded up */
#define MAX_HOOKS 4

struct kept_key {
	char *key;
	uint8_t *value;		/* with a NUL behind it */
	size_t len;
	int64_t created, modified, lease;
};

struct kept_change {
	char *key;
	int64_t revision;
	bool gone;
};

struct kept_lease {
	int64_t id, seconds, until;
};

struct kept {
	struct kept_key *keys;		/* sorted */
	struct kept_change *changes;	/* since the last compaction, in order */
	struct kept_lease *leases;
	int n_keys, n_changes, n_leases;
	int64_t revision, compacted, next_lease;
};

static struct kept now, saved;
static bool full;
static void (*on_change[MAX_HOOKS])(const char *key, const char *value, size_t len);
static void (*on_restore[MAX_HOOKS])(void);
/* Values that an answer may still show. */
static uint8_t **replaced;
static int n_replaced;

/* ---- the whole ---- */

static void kept_fini(struct kept *k)
{
	for (int i = 0; i < k->n_keys; i++) {
		free(k->keys[i].key);
		free(k->keys[i].value);
	}
	for (int i = 0; i < k->n_changes; i++) {
		free(k->changes[i].key);
	}
	free(k->keys);
	free(k->changes);
	free(k->leases);
	*k = (struct kept){ 0 };
}

static uint8_t *copy_value(const void *bytes, size_t len)
{
	uint8_t *copy = x_alloc(len + 1, 1);

	memcpy(copy, len ? bytes : "", len);
	copy[len] = '\0';
	return copy;
}

static struct kept kept_copy(const struct kept *k)
{
	struct kept c = *k;

	c.keys = x_new((size_t)k->n_keys + 1, sizeof(*c.keys));
	c.changes = x_new((size_t)k->n_changes + 1, sizeof(*c.changes));
	c.leases = x_new((size_t)k->n_leases + 1, sizeof(*c.leases));
	for (int i = 0; i < k->n_keys; i++) {
		c.keys[i] = k->keys[i];
		c.keys[i].key = x_dup(k->keys[i].key);
		c.keys[i].value = copy_value(k->keys[i].value, k->keys[i].len);
	}
	for (int i = 0; i < k->n_changes; i++) {
		c.changes[i] = k->changes[i];
		c.changes[i].key = x_dup(k->changes[i].key);
	}
	memcpy(c.leases, k->leases, (size_t)k->n_leases * sizeof(*c.leases));
	return c;
}

void etcd_keys_begin(void)
{
	kept_fini(&now);
	kept_fini(&saved);
	now = (struct kept){
		.keys = x_new(1, sizeof(*now.keys)), .changes = x_new(1, sizeof(*now.changes)),
		.leases = x_new(1, sizeof(*now.leases)), .revision = 1, .next_lease = 7000,
	};
	saved = kept_copy(&now);
	full = false;
	memset(on_change, 0, sizeof(on_change));
	memset(on_restore, 0, sizeof(on_restore));
}

void etcd_keys_save(void)
{
	kept_fini(&saved);
	saved = kept_copy(&now);
}

void etcd_keys_restore(void)
{
	kept_fini(&now);
	now = kept_copy(&saved);
	for (int i = 0; i < MAX_HOOKS && on_restore[i]; i++) {
		on_restore[i]();
	}
}

int64_t etcd_keys_revision(void)
{
	return now.revision;
}

int64_t etcd_keys_compacted(void)
{
	return now.compacted;
}

void etcd_keys_full(bool is)
{
	full = is;
}

void etcd_keys_on_change(void (*changed)(const char *key, const char *value, size_t len))
{
	for (int i = 0; i < MAX_HOOKS; i++) {
		if (!on_change[i]) {
			on_change[i] = changed;
			return;
		}
	}
}

void etcd_keys_on_restore(void (*restored)(void))
{
	for (int i = 0; i < MAX_HOOKS; i++) {
		if (!on_restore[i]) {
			on_restore[i] = restored;
			return;
		}
	}
}

/* ---- answers ---- */

static void refuse(struct etcd_answer *out, enum rpc_status status, const char *text)
{
	*out = (struct etcd_answer){ .status = status, .text = text };
}

void etcd_answer_pack(struct etcd_answer *out, const ProtobufCMessage *m)
{
	size_t len = protobuf_c_message_get_packed_size(m);

	*out = (struct etcd_answer){ .bytes = x_alloc(len + 1, 1), .len = len };
	protobuf_c_message_pack(m, out->bytes);
}

static ProtobufCBinaryData text_bytes(char *text)
{
	return (ProtobufCBinaryData){ strlen(text), (uint8_t *)text };
}

static void set_pair(Etcd__KeyValue *out, const struct kept_key *k)
{
	etcd__key_value__init(out);
	out->key = text_bytes(k->key);
	out->value = (ProtobufCBinaryData){ k->len, k->value };
	out->create_revision = k->created;
	out->mod_revision = k->modified;
	out->lease = k->lease;
}

/* ---- keys ---- */

/* Where a key is, or would be. */
static int place_of(const char *key)
{
	int low = 0, high = now.n_keys;

	while (low < high) {
		int mid = (low + high) / 2;

		if (strcmp(now.keys[mid].key, key) < 0) {
			low = mid + 1;
		} else {
			high = mid;
		}
	}
	return low;
}

static struct kept_key *find(const char *key)
{
	int i = place_of(key);

	return i < now.n_keys && strcmp(now.keys[i].key, key) == 0 ? &now.keys[i] : NULL;
}

const char *etcd_keys_get(const char *key, size_t *len)
{
	const struct kept_key *k = find(key);

	if (k && len) {
		*len = k->len;
	}
	return k ? (const char *)k->value : NULL;
}

static void note_change(const char *key, int64_t revision, const struct kept_key *k)
{
	now.changes = x_grow(now.changes, (size_t)now.n_changes + 1, sizeof(*now.changes));
	now.changes[now.n_changes++] = (struct kept_change){ x_dup(key), revision, !k };
	for (int i = 0; i < MAX_HOOKS && on_change[i]; i++) {
		on_change[i](key, k ? (const char *)k->value : NULL, k ? k->len : 0);
	}
}

static void replace_value(uint8_t *value)
{
	replaced = x_grow(replaced, (size_t)n_replaced + 1, sizeof(*replaced));
	replaced[n_replaced++] = value;
}

static void forget_replaced(void)
{
	while (n_replaced > 0) {
		free(replaced[--n_replaced]);
	}
}

static void put(const char *key, const void *value, size_t len, int64_t lease, int64_t revision)
{
	int i = place_of(key);
	struct kept_key *k = find(key);

	if (!k) {
		now.keys = x_grow(now.keys, (size_t)now.n_keys + 1, sizeof(*now.keys));
		k = &now.keys[i];
		memmove(k + 1, k, (size_t)(now.n_keys++ - i) * sizeof(*k));
		*k = (struct kept_key){ .key = x_dup(key), .created = revision };
	} else {
		replace_value(k->value);
	}
	k->value = copy_value(value, len);
	k->len = len;
	k->modified = revision;
	k->lease = lease;
	note_change(key, revision, k);
}

static void drop(int i, int64_t revision)
{
	char *key = now.keys[i].key;

	replace_value(now.keys[i].value);
	memmove(&now.keys[i], &now.keys[i + 1],
		(size_t)(--now.n_keys - i) * sizeof(*now.keys));
	note_change(key, revision, NULL);
	replace_value((uint8_t *)key);
}

/* end NULL: the key alone. */
static bool is_within(const char *key, const char *from, const char *end)
{
	return end ? strcmp(key, from) >= 0 && strcmp(key, end) < 0 : strcmp(key, from) == 0;
}

/* ---- transactions ---- */

/* A key of a request; free()'s. */
static char *text_of(ProtobufCBinaryData d)
{
	return d.len ? x_ndup((const char *)d.data, d.len) : NULL;
}

static bool holds(const Etcd__Compare *c)
{
	char *key = text_of(c->key);
	const struct kept_key *k = key ? find(key) : NULL;
	bool written = c->target == ETCD__COMPARE__TARGET__MOD;
	int64_t have = !k ? 0 : written ? k->modified : k->created;

	free(key);
	return have == (written ? c->mod_revision : c->create_revision);
}

bool etcd_keys_writes(const Etcd__TxnRequest *q)
{
	for (size_t i = 0; i < q->n_success; i++) {
		if (q->success[i]->request_case != ETCD__OPERATION__REQUEST_RANGE) {
			return true;
		}
	}
	return false;
}

static ProtobufCBinaryData key_of(const Etcd__Operation *o)
{
	switch (o->request_case) {
	case ETCD__OPERATION__REQUEST_PUT: return o->put->key;
	case ETCD__OPERATION__REQUEST_DELETE: return o->delete_->key;
	case ETCD__OPERATION__REQUEST_RANGE: return o->range->key;
	default: return (ProtobufCBinaryData){ 0 };
	}
}

static bool puts_twice(const Etcd__TxnRequest *q, size_t i)
{
	ProtobufCBinaryData key = key_of(q->success[i]);

	for (size_t k = 0; k < i; k++) {
		const Etcd__Operation *o = q->success[k];

		if (o->request_case == ETCD__OPERATION__REQUEST_PUT && o->put->key.len == key.len &&
		    memcmp(o->put->key.data, key.data, key.len) == 0) {
			return true;
		}
	}
	return false;
}

/* What a member refuses before it asks the others; *puts: how many keys are put. */
static const char *bad_request(const Etcd__TxnRequest *q, int *puts)
{
	*puts = 0;
	if (q->n_success > MAX_OPERATIONS || q->n_compare > MAX_OPERATIONS) {
		return "etcdserver: too many operations in txn request";
	}
	for (size_t i = 0; i < q->n_success; i++) {
		if (key_of(q->success[i]).len == 0) {
			return "etcdserver: key is not provided";
		}
		if (q->success[i]->request_case == ETCD__OPERATION__REQUEST_PUT) {
			++*puts;
			if (puts_twice(q, i)) {
				return "etcdserver: duplicate key given in txn request";
			}
		}
	}
	if (etcd_keys_writes(q) && protobuf_c_message_get_packed_size(&q->base) > MAX_REQUEST) {
		return "etcdserver: request is too large";
	}
	return NULL;
}

static struct kept_lease *find_lease(int64_t id)
{
	for (int i = 0; i < now.n_leases; i++) {
		if (now.leases[i].id == id) {
			return &now.leases[i];
		}
	}
	return NULL;
}

static bool lacks_lease(const Etcd__TxnRequest *q)
{
	for (size_t i = 0; i < q->n_success; i++) {
		const Etcd__Operation *o = q->success[i];

		if (o->request_case == ETCD__OPERATION__REQUEST_PUT && o->put->lease &&
		    !find_lease(o->put->lease)) {
			return true;
		}
	}
	return false;
}

static void read_range(const Etcd__RangeRequest *q, Etcd__RangeResponse *out)
{
	char *from = text_of(q->key), *end = text_of(q->range_end);
	Etcd__KeyValue *pairs;
	int first = place_of(from), n = 0;

	while (first + n < now.n_keys && is_within(now.keys[first + n].key, from, end) &&
	       (q->limit <= 0 || n < q->limit)) {
		n++;
	}
	pairs = x_new((size_t)n + 1, sizeof(*pairs));
	out->kvs = x_new((size_t)n + 1, sizeof(*out->kvs));
	out->n_kvs = (size_t)n;
	for (int i = 0; i < n; i++) {
		set_pair(&pairs[i], &now.keys[first + i]);
		out->kvs[i] = &pairs[i];
	}
	out->kvs[n] = pairs;	/* for who frees them */
	out->more = first + n < now.n_keys && is_within(now.keys[first + n].key, from, end);
	free(from);
	free(end);
}

static void delete_range(const Etcd__DeleteRequest *q, int64_t revision)
{
	char *from = text_of(q->key), *end = text_of(q->range_end);
	int i = place_of(from);

	while (i < now.n_keys && is_within(now.keys[i].key, from, end)) {
		drop(i, revision);
	}
	free(from);
	free(end);
}

static void operate(const Etcd__Operation *o, int64_t revision, Etcd__Result *result,
		    Etcd__RangeResponse *range)
{
	char *key;

	etcd__result__init(result);
	etcd__range_response__init(range);
	switch (o->request_case) {
	case ETCD__OPERATION__REQUEST_PUT:
		key = text_of(o->put->key);
		put(key, o->put->value.data, o->put->value.len, o->put->lease, revision);
		free(key);
		return;
	case ETCD__OPERATION__REQUEST_DELETE:
		delete_range(o->delete_, revision);
		return;
	default:
		read_range(o->range, range);
		result->response_case = ETCD__RESULT__RESPONSE_RANGE;
		result->range = range;
		return;
	}
}

/* All operations, as one revision. */
static void execute(const Etcd__TxnRequest *q, Etcd__TxnResponse *reply, struct etcd_answer *out)
{
	Etcd__Result results[MAX_OPERATIONS], *list[MAX_OPERATIONS];
	Etcd__RangeResponse ranges[MAX_OPERATIONS];
	int had = now.n_changes;

	for (size_t i = 0; i < q->n_success; i++) {
		operate(q->success[i], now.revision + 1, &results[i], &ranges[i]);
		list[i] = &results[i];
	}
	now.revision += now.n_changes > had;
	reply->header->revision = now.revision;
	reply->n_responses = q->n_success;
	reply->responses = list;
	etcd_answer_pack(out, &reply->base);
	for (size_t i = 0; i < q->n_success; i++) {
		if (ranges[i].kvs) {
			free(ranges[i].kvs[ranges[i].n_kvs]);
			free(ranges[i].kvs);
		}
	}
	forget_replaced();
}

void etcd_keys_transact(const Etcd__TxnRequest *q, struct etcd_answer *out)
{
	Etcd__TxnResponse reply = ETCD__TXN_RESPONSE__INIT;
	Etcd__Header header = ETCD__HEADER__INIT;
	int puts;
	const char *bad = bad_request(q, &puts);

	if (bad) {
		refuse(out, RPC_INVALID_ARGUMENT, bad);
		return;
	}
	if (full && puts > 0) {
		refuse(out, RPC_RESOURCE_EXHAUSTED, "etcdserver: mvcc: database space exceeded");
		return;
	}
	reply.header = &header;
	header.revision = now.revision;
	reply.succeeded = true;
	for (size_t i = 0; i < q->n_compare; i++) {
		reply.succeeded &= holds(q->compare[i]);
	}
	if (!reply.succeeded) {
		etcd_answer_pack(out, &reply.base);
	} else if (lacks_lease(q)) {
		refuse(out, RPC_NOT_FOUND, "etcdserver: requested lease not found");
	} else {
		execute(q, &reply, out);
	}
}

void etcd_keys_compact(int64_t revision, struct etcd_answer *out)
{
	Etcd__CompactionResponse reply = ETCD__COMPACTION_RESPONSE__INIT;
	Etcd__Header header = ETCD__HEADER__INIT;
	int n = 0;

	if (revision <= now.compacted) {
		refuse(out, RPC_OUT_OF_RANGE,
		       "etcdserver: mvcc: required revision has been compacted");
		return;
	}
	if (revision > now.revision) {
		refuse(out, RPC_OUT_OF_RANGE,
		       "etcdserver: mvcc: required revision is a future revision");
		return;
	}
	now.compacted = revision;
	while (n < now.n_changes && now.changes[n].revision < revision) {
		free(now.changes[n++].key);
	}
	now.n_changes -= n;
	memmove(now.changes, now.changes + n, (size_t)now.n_changes * sizeof(*now.changes));
	header.revision = now.revision;
	reply.header = &header;
	etcd_answer_pack(out, &reply.base);
}

/* ---- leases ---- */

void etcd_keys_grant(int64_t seconds, struct etcd_answer *out)
{
	Etcd__LeaseGrantResponse reply = ETCD__LEASE_GRANT_RESPONSE__INIT;
	struct kept_lease *l;

	if (full) {
		refuse(out, RPC_RESOURCE_EXHAUSTED, "etcdserver: mvcc: database space exceeded");
		return;
	}
	now.leases = x_grow(now.leases, (size_t)now.n_leases + 1, sizeof(*now.leases));
	l = &now.leases[now.n_leases++];
	l->id = now.next_lease++;
	l->seconds = seconds > MIN_SECONDS ? seconds : MIN_SECONDS;
	l->until = sim_now() + l->seconds * SIM_S;
	reply.id = l->id;
	reply.ttl = l->seconds;
	etcd_answer_pack(out, &reply.base);
}

static void end_lease(struct kept_lease *l)
{
	int64_t id = l->id;
	int had = now.n_changes;

	*l = now.leases[--now.n_leases];
	for (int i = 0; i < now.n_keys;) {
		if (now.keys[i].lease == id) {
			drop(i, now.revision + 1);
		} else {
			i++;
		}
	}
	now.revision += now.n_changes > had;
	forget_replaced();
}

void etcd_keys_revoke(int64_t lease, struct etcd_answer *out)
{
	Etcd__LeaseRevokeResponse reply = ETCD__LEASE_REVOKE_RESPONSE__INIT;
	Etcd__Header header = ETCD__HEADER__INIT;
	struct kept_lease *l = find_lease(lease);

	if (!l) {
		refuse(out, RPC_NOT_FOUND, "etcdserver: requested lease not found");
		return;
	}
	end_lease(l);
	header.revision = now.revision;
	reply.header = &header;
	etcd_answer_pack(out, &reply.base);
}

int64_t etcd_keys_seconds(int64_t lease)
{
	const struct kept_lease *l = find_lease(lease);

	return l ? l->seconds : 0;
}

int64_t etcd_keys_renew(int64_t lease)
{
	struct kept_lease *l = find_lease(lease);

	if (!l) {
		return 0;
	}
	if (l->until <= sim_now()) {
		return -1;
	}
	l->until = sim_now() + l->seconds * SIM_S;
	return l->seconds;
}

void etcd_keys_expire(int64_t at)
{
	for (int i = 0; i < now.n_leases;) {
		if (now.leases[i].until <= at) {
			sim_tell("etcd: lease %lld has run out", (long long)now.leases[i].id);
			end_lease(&now.leases[i]);
		} else {
			i++;
		}
	}
}

void etcd_keys_extend(int64_t ns)
{
	for (int i = 0; i < now.n_leases; i++) {
		now.leases[i].until = sim_now() + now.leases[i].seconds * SIM_S + ns;
	}
}

/* ---- watching ---- */

static int first_change(int64_t from)
{
	int i = now.n_changes;

	while (i > 0 && now.changes[i - 1].revision >= from) {
		i--;
	}
	return i;
}

bool etcd_keys_changes(int64_t from, const char *key, const char *end, struct etcd_answer *out)
{
	Etcd__WatchResponse reply = ETCD__WATCH_RESPONSE__INIT;
	Etcd__Header header = ETCD__HEADER__INIT;
	int first = first_change(from), n_all = now.n_changes - first;
	Etcd__Event *events = x_new((size_t)n_all, sizeof(*events));
	Etcd__KeyValue *pairs = x_new((size_t)n_all, sizeof(*pairs));

	reply.events = x_new((size_t)n_all, sizeof(*reply.events));
	for (int i = first; i < now.n_changes; i++) {
		const struct kept_change *c = &now.changes[i];
		const struct kept_key *k = find(c->key);
		size_t n = reply.n_events;

		if (!is_within(c->key, key, end)) {
			continue;
		}
		etcd__event__init(&events[n]);
		etcd__key_value__init(&pairs[n]);
		if (!c->gone && k && k->modified == c->revision) {
			set_pair(&pairs[n], k);
		}
		pairs[n].key = text_bytes(c->key);
		pairs[n].mod_revision = c->revision;
		events[n].kv = &pairs[n];
		reply.events[reply.n_events++] = &events[n];
	}
	header.revision = now.revision;
	reply.header = &header;
	if (reply.n_events > 0) {
		etcd_answer_pack(out, &reply.base);
	}
	free(events);
	free(pairs);
	free(reply.events);
	return reply.n_events > 0;
}
