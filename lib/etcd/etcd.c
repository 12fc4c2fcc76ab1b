/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calls of etcd.h. Three connections, as each has one call at a time: one for what is
 * asked and answered, and two for streams, that of a lease and that of a watch. A connection
 * that fails is closed, and the next member tried. "hasleader" makes a member that is cut off
 * from the others say so at once.
 */
#include "lib/etcd/etcd.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "etcd/etcd.pb-c.h"
#include "lib/base/alloc.h"
#include "lib/base/clock.h"
#include "lib/coroutine/coroutine.h"

#define MAX_MEMBERS 16
#define MAX_MEMBERS_TEXT 2048
#define CONNECT_MS 300		/* to one of several members */
#define TRY_MS 700		/* for its answer */
#define PAUSE_MS 20		/* when all have been tried */
#define NS_PER_MS 1000000

struct member {
	char host[256];
	int port;
	bool tls;
};

/* A connection, and what goes on there. */
struct line {
	struct rpc_client *client;	/* NULL: none */
	struct rpc_stream *stream;
	int member;			/* the one it goes to */
};

struct etcd {
	struct member members[MAX_MEMBERS];
	int n_members;
	struct rpc_tls_files files;
	struct line calls, lease, watch;
	int64_t asked_ns;		/* of the lease, and not yet answered; 0: none */
};

/* ---- members ------------------------------------------------------------- */

static bool is_loopback(const char *host)
{
	return strcmp(host, "localhost") == 0 || strncmp(host, "127.", 4) == 0 ||
	       strcmp(host, "::1") == 0;
}

static int bad_member(const char *text, const char *why, struct err *err)
{
	return err_set(err, WEFT_EINVAL, "etcd member \"%s\": %s", text, why);
}

/* "https://HOST:PORT", "[V6]:PORT" in it. */
static int parse_member(const char *text, struct member *m, struct err *err)
{
	const char *host = strstr(text, "://");
	const char *colon = strrchr(text, ':');
	char *end;
	long port;
	int len;

	m->tls = strncmp(text, "https://", 8) == 0;
	if (!host || (!m->tls && strncmp(text, "http://", 7) != 0)) {
		return bad_member(text, "not https://HOST:PORT", err);
	}
	host += 3;
	len = (int)(colon - host);
	port = colon > host ? strtol(colon + 1, &end, 10) : 0;
	if (len <= 0 || port < 1 || port > 65535 || (*end && strcmp(end, "/") != 0)) {
		return bad_member(text, "not https://HOST:PORT", err);
	}
	if (host[0] == '[' && colon[-1] == ']') {
		host++;
		len -= 2;
	}
	if (len >= (int)sizeof(m->host)) {
		return bad_member(text, "the name is too long", err);
	}
	snprintf(m->host, sizeof(m->host), "%.*s", len, host);
	m->port = (int)port;
	return m->tls || is_loopback(m->host) ? 0 :
	       bad_member(text, "without TLS it must be on a loopback address", err);
}

static int parse_members(struct etcd *e, const char *members, struct err *err)
{
	char text[MAX_MEMBERS_TEXT], *rest = text, *one;
	int r = 0;

	if (snprintf(text, sizeof(text), "%s", members) >= (int)sizeof(text)) {
		return bad_member(members, "too long", err);
	}
	while (r == 0 && (one = strsep(&rest, ","))) {
		if (e->n_members == MAX_MEMBERS) {
			return bad_member(one, "more than 16 of them", err);
		}
		r = parse_member(one, &e->members[e->n_members], err);
		if (r == 0 && e->members[e->n_members].tls != e->members[0].tls) {
			r = bad_member(one, "https and http do not go together", err);
		}
		e->n_members++;
	}
	if (r == 0 && e->members[0].tls && !(e->files.cert && e->files.key && e->files.ca)) {
		r = bad_member(members, "https needs a certificate, its key and an authority", err);
	}
	return r;
}

int etcd_new(const char *members, const struct rpc_tls_files *files, struct etcd **out,
	     struct err *err)
{
	struct etcd *e = x_new(1, sizeof(*e));
	int r;

	*out = NULL;
	e->files = *files;
	r = parse_members(e, members, err);
	if (r) {
		free(e);
		return r;
	}
	*out = e;
	return 0;
}

/* ---- connections --------------------------------------------------------- */

static void hang_up(struct line *l)
{
	rpc_stream_close(l->stream);
	rpc_client_close(l->client);
	l->stream = NULL;
	l->client = NULL;
}

void etcd_free(struct etcd *e)
{
	if (e) {
		hang_up(&e->calls);
		hang_up(&e->lease);
		hang_up(&e->watch);
		free(e);
	}
}

static int left_ms(int64_t end_ns)
{
	int64_t ms = (end_ns - clk_now_ns()) / NS_PER_MS;

	return ms < 1 ? 0 : (int)ms;
}

static int min_ms(int ms, int limit)
{
	return ms < limit ? ms : limit;
}

static int connect_line(struct etcd *e, struct line *l, int ms, struct err *err)
{
	const struct member *m = &e->members[l->member];
	int r;

	if (l->client) {
		return 0;
	}
	r = rpc_client_open_tcp(m->host, m->port, m->tls ? &e->files : NULL,
				e->n_members > 1 ? min_ms(ms, CONNECT_MS) : ms, &l->client, err);
	if (r == 0) {
		rpc_client_header(l->client, "hasleader", "true");
	}
	return r;
}

/* Whether another member may do better. */
static bool may_go_on(int r)
{
	return r == WEFT_EUNAVAIL || r == WEFT_ETIMEOUT || r == WEFT_EIO || r == WEFT_ECANCELED ||
	       r == WEFT_EINTERNAL;
}

static void next_member(struct etcd *e, struct line *l)
{
	hang_up(l);
	l->member = (l->member + 1) % e->n_members;
}

/* Asks the members one after the other until one has answered. */
static int ask(struct etcd *e, const char *path, const ProtobufCMessage *request,
	       const ProtobufCMessageDescriptor *type, int timeout_ms,
	       ProtobufCMessage **reply, struct err *err)
{
	int64_t end_ns = clk_now_ns() + (int64_t)timeout_ms * NS_PER_MS;
	struct line *l = &e->calls;
	int r = 0, ms;

	for (int tries = 1; (ms = left_ms(end_ns)) > 0; tries++) {
		r = connect_line(e, l, ms, err);
		if (r == 0) {
			r = rpc_client_unary(l->client, path, request, type,
					     min_ms(ms, TRY_MS), reply, err);
		}
		if (r == 0 || !may_go_on(r)) {
			break;
		}
		next_member(e, l);
		if (tries % e->n_members == 0) {
			co_poll(NULL, PAUSE_MS);
		}
	}
	if (ms == 0 && r == 0) {
		r = err_set(err, WEFT_ETIMEOUT, "no time");
	}
	return r ? err_wrap(err, "etcd") : 0;
}

/* What the answer says besides that it was done is not looked at. */
static int tell(struct etcd *e, const char *path, const ProtobufCMessage *request,
		const ProtobufCMessageDescriptor *type, int timeout_ms, struct err *err)
{
	ProtobufCMessage *reply;
	int r = ask(e, path, request, type, timeout_ms, &reply, err);

	if (r == 0) {
		rpc_free_message(reply);
	}
	return r;
}

/* ---- keys ---------------------------------------------------------------- */

void etcd_pairs_fini(struct etcd_pairs *p)
{
	for (int i = 0; i < p->n; i++) {
		free(p->v[i].key);
		free(p->v[i].value);
	}
	free(p->v);
	*p = (struct etcd_pairs){ 0 };
}

static ProtobufCBinaryData bytes_of(const char *text)
{
	return (ProtobufCBinaryData){ text ? strlen(text) : 0, (uint8_t *)(uintptr_t)text };
}

static void take_pair(const Etcd__KeyValue *kv, struct etcd_pair *p)
{
	p->created = kv->create_revision;
	p->modified = kv->mod_revision;
	p->lease = kv->lease;
	p->len = kv->value.len;
	p->key = x_ndup((const char *)kv->key.data, kv->key.len);
	p->value = x_alloc(kv->value.len + 1, 1);
	memcpy(p->value, kv->value.len ? (const void *)kv->value.data : "", kv->value.len);
	p->value[kv->value.len] = '\0';
}

static void take_pairs(const Etcd__RangeResponse *range, struct etcd_pairs *out)
{
	*out = (struct etcd_pairs){ (int)range->n_kvs, x_new(range->n_kvs, sizeof(*out->v)) };
	for (size_t i = 0; i < range->n_kvs; i++) {
		take_pair(range->kvs[i], &out->v[i]);
	}
}

/* The messages of one transaction. */
struct txn {
	Etcd__TxnRequest request;
	Etcd__Compare *compares, **compare_list;
	Etcd__Operation *operations, **operation_list;
	union {
		Etcd__RangeRequest range;
		Etcd__PutRequest put;
		Etcd__DeleteRequest del;
	} *requests;
};

static void txn_fini(struct txn *t)
{
	free(t->compares);
	free(t->compare_list);
	free(t->operations);
	free(t->operation_list);
	free(t->requests);
}

static void set_guard(Etcd__Compare *c, const struct etcd_guard *g)
{
	etcd__compare__init(c);
	c->key = bytes_of(g->key);
	if (g->written) {
		c->target = ETCD__COMPARE__TARGET__MOD;
		c->value_case = ETCD__COMPARE__VALUE_MOD_REVISION;
		c->mod_revision = g->revision;
	} else {
		c->target = ETCD__COMPARE__TARGET__CREATE;
		c->value_case = ETCD__COMPARE__VALUE_CREATE_REVISION;
		c->create_revision = g->revision;
	}
}

static void set_op(struct txn *t, int i, const struct etcd_op *op)
{
	Etcd__Operation *o = &t->operations[i];

	etcd__operation__init(o);
	switch (op->kind) {
	case ETCD_PUT:
		etcd__put_request__init(&t->requests[i].put);
		t->requests[i].put.key = bytes_of(op->key);
		t->requests[i].put.value.data = (uint8_t *)(uintptr_t)op->value;
		t->requests[i].put.value.len = op->len;
		t->requests[i].put.lease = op->lease;
		o->request_case = ETCD__OPERATION__REQUEST_PUT;
		o->put = &t->requests[i].put;
		return;
	case ETCD_DELETE:
		etcd__delete_request__init(&t->requests[i].del);
		t->requests[i].del.key = bytes_of(op->key);
		t->requests[i].del.range_end = bytes_of(op->end);
		o->request_case = ETCD__OPERATION__REQUEST_DELETE;
		o->delete_ = &t->requests[i].del;
		return;
	case ETCD_GET:
		etcd__range_request__init(&t->requests[i].range);
		t->requests[i].range.key = bytes_of(op->key);
		t->requests[i].range.range_end = bytes_of(op->end);
		o->request_case = ETCD__OPERATION__REQUEST_RANGE;
		o->range = &t->requests[i].range;
		return;
	}
}

static void txn_init(struct txn *t, const struct etcd_guard *guards, int n_guards,
		     const struct etcd_op *ops, int n_ops)
{
	*t = (struct txn){
		.compares = x_new((size_t)n_guards + 1, sizeof(*t->compares)),
		.compare_list = x_new((size_t)n_guards + 1, sizeof(*t->compare_list)),
		.operations = x_new((size_t)n_ops + 1, sizeof(*t->operations)),
		.operation_list = x_new((size_t)n_ops + 1, sizeof(*t->operation_list)),
		.requests = x_new((size_t)n_ops + 1, sizeof(*t->requests)),
	};
	etcd__txn_request__init(&t->request);
	for (int i = 0; i < n_guards; i++) {
		set_guard(&t->compares[i], &guards[i]);
		t->compare_list[i] = &t->compares[i];
	}
	for (int i = 0; i < n_ops; i++) {
		set_op(t, i, &ops[i]);
		t->operation_list[i] = &t->operations[i];
	}
	t->request.n_compare = (size_t)n_guards;
	t->request.compare = t->compare_list;
	t->request.n_success = (size_t)n_ops;
	t->request.success = t->operation_list;
}

/* What was read, into the places that the operations name. */
static int take_results(const Etcd__TxnResponse *reply, const struct etcd_op *ops, int n_ops,
			struct err *err)
{
	int r = 0, i = 0;

	for (; r == 0 && i < n_ops; i++) {
		const Etcd__Result *one = (size_t)i < reply->n_responses ? reply->responses[i]
									 : NULL;

		if (ops[i].kind != ETCD_GET) {
			continue;
		}
		if (one && one->response_case == ETCD__RESULT__RESPONSE_RANGE) {
			take_pairs(one->range, ops[i].got);
		} else {
			r = err_set(err, WEFT_EINTERNAL, "etcd: an answer lacks a part");
		}
	}
	for (int k = 0; r && k < i - 1; k++) {
		if (ops[k].kind == ETCD_GET) {
			etcd_pairs_fini(ops[k].got);
		}
	}
	return r;
}

int etcd_transact(struct etcd *e, const struct etcd_guard *guards, int n_guards,
		  const struct etcd_op *ops, int n_ops, int timeout_ms,
		  bool *done, int64_t *revision, struct err *err)
{
	ProtobufCMessage *msg = NULL;
	const Etcd__TxnResponse *reply;
	struct txn t;
	int r;

	txn_init(&t, guards, n_guards, ops, n_ops);
	*done = false;
	r = ask(e, "/etcdserverpb.KV/Txn", &t.request.base, &etcd__txn_response__descriptor,
		timeout_ms, &msg, err);
	txn_fini(&t);
	if (r) {
		return r;
	}
	reply = (const Etcd__TxnResponse *)msg;
	*revision = reply->header ? reply->header->revision : 0;
	if (reply->succeeded) {
		r = take_results(reply, ops, n_ops, err);
		*done = r == 0;
	}
	rpc_free_message(msg);
	return r;
}

int etcd_compact(struct etcd *e, int64_t revision, int timeout_ms, struct err *err)
{
	Etcd__CompactionRequest request = ETCD__COMPACTION_REQUEST__INIT;

	request.revision = revision;
	return tell(e, "/etcdserverpb.KV/Compact", &request.base,
		    &etcd__compaction_response__descriptor, timeout_ms, err);
}

/* ---- leases -------------------------------------------------------------- */

int etcd_lease_new(struct etcd *e, int64_t seconds, int timeout_ms, int64_t *lease,
		   struct err *err)
{
	Etcd__LeaseGrantRequest request = ETCD__LEASE_GRANT_REQUEST__INIT;
	ProtobufCMessage *reply;
	int r;

	request.ttl = seconds;
	r = ask(e, "/etcdserverpb.Lease/LeaseGrant", &request.base,
		&etcd__lease_grant_response__descriptor, timeout_ms, &reply, err);
	if (r == 0) {
		*lease = ((Etcd__LeaseGrantResponse *)reply)->id;
		rpc_free_message(reply);
	}
	return r;
}

int etcd_lease_end(struct etcd *e, int64_t lease, int timeout_ms, struct err *err)
{
	Etcd__LeaseRevokeRequest request = ETCD__LEASE_REVOKE_REQUEST__INIT;

	request.id = lease;
	return tell(e, "/etcdserverpb.Lease/LeaseRevoke", &request.base,
		    &etcd__lease_revoke_response__descriptor, timeout_ms, err);
}

/* A stream to some member. */
static int open_stream(struct etcd *e, struct line *l, const char *path,
		       const ProtobufCMessageDescriptor *type, int timeout_ms, struct err *err)
{
	int r;

	if (l->stream) {
		return 0;
	}
	r = connect_line(e, l, timeout_ms, err);
	if (r == 0) {
		r = rpc_stream_open(l->client, path, type, &l->stream, err);
	}
	if (r) {
		next_member(e, l);
	}
	return r;
}

static int send_keep(struct etcd *e, int64_t lease, struct err *err)
{
	Etcd__LeaseKeepAliveRequest request = ETCD__LEASE_KEEP_ALIVE_REQUEST__INIT;

	request.id = lease;
	e->asked_ns = clk_boot_ns();
	return rpc_stream_send(e->lease.stream, &request.base, err);
}

/* Takes the answer to what was asked last, if it comes in time. */
static int take_keep(struct etcd *e, int timeout_ms, int64_t *asked_ns, struct err *err)
{
	ProtobufCMessage *reply;
	int64_t ttl;
	int r = rpc_stream_receive(e->lease.stream, timeout_ms, &reply, err);

	if (r || !reply) {
		return r;
	}
	ttl = ((Etcd__LeaseKeepAliveResponse *)reply)->ttl;
	rpc_free_message(reply);
	if (ttl <= 0) {
		return err_set(err, WEFT_ESTALE, "the lease has run out");
	}
	*asked_ns = e->asked_ns;
	e->asked_ns = 0;
	return 0;
}

/* Takes the answer to what an earlier call asked. *late: it has not come, though it has had the
 * whole time between two calls, so that another connection is better. */
static int take_earlier(struct etcd *e, bool *late, int64_t *asked_ns, struct err *err)
{
	int r = e->lease.stream && e->asked_ns ? take_keep(e, 1, asked_ns, err) : 0;

	*late = r || e->asked_ns;
	if (*late) {
		next_member(e, &e->lease);
		e->asked_ns = 0;
	}
	return r == WEFT_ESTALE ? r : 0;
}

int etcd_lease_keep(struct etcd *e, int64_t lease, int timeout_ms, int64_t *asked_ns,
		    struct err *err)
{
	struct line *l = &e->lease;
	bool late;
	int r;

	*asked_ns = 0;
	r = take_earlier(e, &late, asked_ns, err);
	if (r == 0) {
		r = open_stream(e, l, "/etcdserverpb.Lease/LeaseKeepAlive",
				&etcd__lease_keep_alive_response__descriptor, timeout_ms, err);
	}
	if (r == 0) {
		r = send_keep(e, lease, err);
	}
	if (r == 0) {
		r = take_keep(e, timeout_ms, asked_ns, err);
	}
	if (r == 0 && late && e->asked_ns) {
		r = err_set(err, WEFT_ETIMEOUT, "no answer in time");
	}
	if (r) {
		next_member(e, l);
		e->asked_ns = 0;
	}
	return r ? err_wrap(err, "etcd") : 0;
}

/* ---- watching ------------------------------------------------------------ */

/* What comes after all keys that begin with prefix: its last byte plus one. */
static void end_of_prefix(const char *prefix, char *end, size_t size)
{
	size_t n = strlen(prefix);

	snprintf(end, size, "%s", prefix);
	if (n > 0 && n < size) {
		end[n - 1]++;
	}
}

int etcd_watch(struct etcd *e, const char *prefix, int timeout_ms, struct err *err)
{
	Etcd__WatchRequest request = ETCD__WATCH_REQUEST__INIT;
	Etcd__WatchCreateRequest create = ETCD__WATCH_CREATE_REQUEST__INIT;
	struct line *l = &e->watch;
	char end[256];
	int r = open_stream(e, l, "/etcdserverpb.Watch/Watch", &etcd__watch_response__descriptor,
			    timeout_ms, err);

	if (r == 0) {
		end_of_prefix(prefix, end, sizeof(end));
		create.key = bytes_of(prefix);
		create.range_end = bytes_of(end);
		request.request_case = ETCD__WATCH_REQUEST__REQUEST_CREATE_REQUEST;
		request.create_request = &create;
		r = rpc_stream_send(l->stream, &request.base, err);
	}
	if (r) {
		next_member(e, l);
		err_wrap(err, "etcd");
		return -1;
	}
	return rpc_client_fd(l->client);
}

int etcd_watch_take(struct etcd *e, bool *changed, struct err *err)
{
	struct line *l = &e->watch;
	ProtobufCMessage *msg = NULL;
	int r;

	*changed = false;
	do {
		r = rpc_stream_receive(l->stream, 0, &msg, err);
		if (r == 0 && msg) {
			const Etcd__WatchResponse *w = (const Etcd__WatchResponse *)msg;

			/* What was before the watch began is to be looked for as well. */
			*changed |= w->created || w->n_events > 0;
			r = w->canceled ? err_set(err, WEFT_EUNAVAIL, "the watch was ended") : 0;
			rpc_free_message(msg);
		}
	} while (r == 0 && msg);
	if (r) {
		next_member(e, l);
		*changed = true;
	}
	return r ? err_wrap(err, "etcd") : 0;
}
