/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The members: who of them leads, what each answers, and when. A request takes effect in the
 * one state of etcd_keys.c at once or after a time, and its answer goes out then or later; what
 * is between is a debt (struct debt), which is there also when the caller has gone.
 *
 * A member without a leader says so to callers that ask for one ("hasleader"), once it has
 * noticed: an election's time-out after the last sign of life. Until then, and for others, what
 * it is asked ends by its own time-out, 7 s. One that led and is cut off goes on until it has
 * noticed: it answers signs of life of leases, and what it is asked to write is in its log,
 * which takes effect if it leads again before another does, though it was refused.
 */
#include "tests/sim/etcd/etcd_model.h"

#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

#include "lib/base/alloc.h"
#include "tests/sim/etcd/etcd_keys.h"
#include "tests/sim/etcd/etcd_rule.h"
#include "tests/sim/kernel/sim.h"

#define MEMBERS_MAX 3
#define FIRST_PORT 2379
#define TICK_MS 500			/* so often it looks for leases that have run out */
#define AWAY_NS (1600 * SIM_MS)		/* without a tick: it is stopped */
#define ELECTION_NS SIM_S
#define TIMEOUT_NS (7 * SIM_S)		/* of a request */
#define AGAIN_NS (100 * SIM_MS)
#define STREAMS_END_NS (3 * ELECTION_NS)	/* without a leader */
#define MAX_REQUEST_BYTES ((size_t)2 << 20)	/* of gRPC: larger ones are not read */
#define NO_TIME INT64_MAX
#define FAULTS_MAX 64
#define HOLDS_MAX 8

/* A watch, or the stream of a lease. */
struct stream {
	struct stream *next;
	struct rpc_call *call;
	bool needs_leader;
	bool watches;
	char *key, *end;	/* watched */
	int64_t next_revision;	/* to be told of */
	int64_t held_until;
};

/* A request that has not taken effect, or its answer. */
struct debt {
	struct debt *next;
	struct server *server;
	uv_timer_t timer;
	struct rpc_call *call;		/* NULL: no one waits any more */
	enum etcd_call kind;
	ProtobufCMessage *request;	/* own; NULL: it has taken effect */
	bool answers;
	int64_t after_ns;		/* from effect to answer */
	struct etcd_answer answer;
	int64_t began;
};

/* A request in the log of one that had lost the others. */
struct logged {
	enum etcd_call kind;
	ProtobufCMessage *request;
};

/* A process of a member, from its start to its end. */
struct server {
	int member;
	uv_loop_t loop;
	uv_timer_t tick;
	uv_async_t changes;		/* another member has changed the state */
	struct stream *streams;
	struct debt *debts;
};

static struct {
	int n;
	struct {
		struct sim_process *process;
		struct server *server;
		bool cut;
		int64_t alive_at;
		int64_t knows_until;	/* who leads; NO_TIME: as long as it is so */
		struct logged *log;	/* on its disk */
		int n_log;
	} members[MEMBERS_MAX];
	int leader, was_leader;		/* -1: none */
	int terms;
	int64_t elect_at;
	int64_t before_ns, after_ns, leases_late_ns;
	struct etcd_fault faults[FAULTS_MAX];
	int n_faults;
	struct {
		const char *client;
		int64_t until;
	} holds[HOLDS_MAX];
	bool hooked;
} c;

/* ---- who leads ---- */

static bool is_connected(int i)
{
	return c.members[i].process && (c.n == 1 || (!c.members[i].cut &&
	       sim_now() - c.members[i].alive_at < AWAY_NS));
}

/* Of one time-out to the next it differs, so that votes are not split. */
static int64_t election_ns(void)
{
	return ELECTION_NS + c.terms % 8 * AGAIN_NS;
}

static void take_effect(enum etcd_call kind, const ProtobufCMessage *q, struct etcd_answer *out);

static ProtobufCMessage *copy_message(const ProtobufCMessage *m)
{
	size_t len = protobuf_c_message_get_packed_size(m);
	uint8_t *bytes = x_alloc(len + 1, 1);
	ProtobufCMessage *copy;

	protobuf_c_message_pack(m, bytes);
	copy = protobuf_c_message_unpack(m->descriptor, NULL, len, bytes);
	free(bytes);
	return copy;
}

static void add_to_log(int i, enum etcd_call kind, const ProtobufCMessage *request)
{
	int n = c.members[i].n_log++;

	c.members[i].log = x_grow(c.members[i].log, (size_t)n + 1, sizeof(struct logged));
	c.members[i].log[n] = (struct logged){ kind, copy_message(request) };
}

/* What is in a log and nowhere else takes effect, or is forgotten. */
static void end_log(int i, bool takes_effect)
{
	for (int k = 0; k < c.members[i].n_log; k++) {
		const struct logged *l = &c.members[i].log[k];
		struct etcd_answer unheard = { 0 };

		if (takes_effect) {
			sim_tell("etcd: %s that was refused takes effect", etcd_call_name(l->kind));
			take_effect(l->kind, l->request, &unheard);
			free(unheard.bytes);
		}
		protobuf_c_message_free_unpacked(l->request, NULL);
	}
	c.members[i].n_log = 0;
}

/* The one that led, if it can, as no log is longer. */
static void elect(void)
{
	int i = c.was_leader < 0 ? 0 : c.was_leader;

	while (!is_connected(i)) {
		i = (i + 1) % c.n;
	}
	c.leader = c.was_leader = i;
	if (c.terms++ > 0) {
		sim_tell("etcd: %s leads the others", etcd_model_machine(i));
		etcd_keys_extend(ELECTION_NS);
	}
	for (int k = 0; k < c.n; k++) {
		end_log(k, k == i);
	}
}

/* What has become of the members since. */
static void look(void)
{
	int64_t now = sim_now();
	int n = 0;

	for (int i = 0; i < c.n; i++) {
		n += is_connected(i);
	}
	if (c.leader >= 0 && (2 * n <= c.n || !is_connected(c.leader))) {
		sim_tell("etcd: %s has lost the others", etcd_model_machine(c.leader));
		c.leader = -1;
		c.elect_at = now + election_ns();
	}
	if (2 * n <= c.n) {
		c.elect_at = c.terms > 0 ? now + election_ns() : 0;
	} else if (c.leader < 0 && now >= c.elect_at) {
		elect();
	}
	for (int i = 0; i < c.n; i++) {
		if (c.leader >= 0 && is_connected(i)) {
			c.members[i].knows_until = NO_TIME;
		} else if (c.members[i].knows_until == NO_TIME) {
			c.members[i].knows_until = now + election_ns();
		}
	}
}

static bool follows(int i)
{
	return c.leader >= 0 && is_connected(i);
}

/* Or it thinks so. */
static bool knows_leader(int i)
{
	return c.members[i].knows_until > sim_now();
}

/* It led, and has not noticed that it does not. */
static bool was_leading(int i)
{
	return i == c.was_leader && c.leader < 0 && knows_leader(i);
}

/* ---- watching ---- */

static void feed(struct stream *w)
{
	struct etcd_answer changes;
	struct err err;

	if (!w->watches || w->held_until > sim_now() ||
	    !etcd_keys_changes(w->next_revision, w->key, w->end, &changes)) {
		return;
	}
	w->next_revision = etcd_keys_revision() + 1;
	rpc_send_packed(w->call, changes.bytes, changes.len, &err);
	free(changes.bytes);
}

static void feed_all(struct server *s)
{
	if (follows(s->member)) {
		for (struct stream *w = s->streams; w; w = w->next) {
			feed(w);
		}
	}
}

static void on_changes(uv_async_t *changes)
{
	feed_all(changes->data);
}

/* The state has changed: each member tells those who watch there, by its own loop. */
static void spread(void)
{
	for (int i = 0; i < c.n; i++) {
		struct server *s = c.members[i].server;

		if (s && s->streams) {
			uv_async_send(&s->changes);
		}
	}
}

/* ---- what one request meets ---- */

struct course {
	bool takes_effect, answers;
	int64_t before_ns, after_ns;
};

static bool names_key(const struct etcd_fault *f, const ProtobufCMessage *request)
{
	const Etcd__TxnRequest *q = (const Etcd__TxnRequest *)request;

	for (size_t i = 0; q && i < q->n_success; i++) {
		const Etcd__Operation *o = q->success[i];
		ProtobufCBinaryData key = o->request_case == ETCD__OPERATION__REQUEST_PUT ?
			o->put->key : o->request_case == ETCD__OPERATION__REQUEST_DELETE ?
			o->delete_->key : o->range->key;

		if (memmem(key.data, key.len, f->key, strlen(f->key))) {
			return true;
		}
	}
	return false;
}

static bool is_transaction(enum etcd_call kind)
{
	return kind == ETCD_READ || kind == ETCD_WRITE;
}

static bool fits(const struct etcd_fault *f, const char *client, enum etcd_call kind,
		 const ProtobufCMessage *request)
{
	return (!f->client || strcmp(f->client, client) == 0) &&
	       (f->call == ETCD_ANY || f->call == kind) &&
	       (!f->key || (is_transaction(kind) && names_key(f, request)));
}

/* Answers to this client, but for signs of life, wait until then. */
static void hold(const char *client, int64_t until)
{
	int i = 0;

	while (i < HOLDS_MAX - 1 && c.holds[i].until > sim_now()) {
		i++;
	}
	c.holds[i].client = client;
	c.holds[i].until = until;
}

static int64_t held_ns(const char *client)
{
	int64_t ns = 0;

	for (int i = 0; i < HOLDS_MAX; i++) {
		const int64_t left = c.holds[i].until - sim_now();

		if (c.holds[i].client && left > ns && strcmp(c.holds[i].client, client) == 0) {
			ns = left;
		}
	}
	return ns;
}

static void happen(const struct etcd_fault *f, const char *client, enum etcd_call kind,
		   struct course *out)
{
	sim_tell("etcd: %s of %s: %s, %.3f s", etcd_call_name(kind), client,
		 etcd_trouble_name(f->what), (double)f->ns / SIM_S);
	switch (f->what) {
	case ETCD_LATE_ANSWER:
		out->after_ns = f->ns;
		break;
	case ETCD_LATE_REQUEST:
		out->before_ns = f->ns;
		break;
	case ETCD_LOST:
		out->takes_effect = out->answers = false;
		break;
	case ETCD_NO_ANSWER:
	case ETCD_RESET:
		out->answers = false;
		break;
	case ETCD_SLOW_DISK:
		hold(client, sim_now() + f->ns);
		break;
	case ETCD_STALL:
		for (int i = 0; i < c.n; i++) {
			sim_link_stall(etcd_model_machine(i), client, sim_now() + f->ns);
		}
		break;
	}
	if (f->happened) {
		f->happened(f->arg);
	}
}

/* The first fault whose turn it is; those that fit count. *reset: it ends connections. */
static struct course course_of(const char *client, enum etcd_call kind,
			       const ProtobufCMessage *request, bool *reset)
{
	/* Signs of life need no disk, nor the other members. */
	struct course out = { true, true, kind == ETCD_KEEP ? 0 : c.before_ns,
			      kind == ETCD_KEEP ? 0 : c.after_ns };
	struct etcd_fault due = { 0 };
	bool any = false;

	for (int i = 0; i < c.n_faults; i++) {
		struct etcd_fault *f = &c.faults[i];

		if (fits(f, client, kind, request) && --f->nth <= 0 && !any) {
			any = true;
			due = *f;
			memmove(f, f + 1, (size_t)(--c.n_faults - i) * sizeof(*f));
			i--;
		}
	}
	if (any) {
		happen(&due, client, kind, &out);
	}
	if (kind != ETCD_KEEP && held_ns(client) > out.after_ns) {
		out.after_ns = held_ns(client);
	}
	*reset = any && due.what == ETCD_RESET;
	return out;
}

void etcd_model_fault(const struct etcd_fault *f)
{
	if (c.n_faults < FAULTS_MAX) {
		c.faults[c.n_faults] = *f;
		c.faults[c.n_faults++].nth += f->nth == 0;
	}
}

int etcd_model_faults_left(void)
{
	return c.n_faults;
}

void etcd_model_forget_faults(void)
{
	c.n_faults = 0;
}

const char *etcd_call_name(enum etcd_call call)
{
	static const char *const names[] = {
		"anything", "a reading", "a write", "a compaction", "a new lease",
		"the end of a lease", "a sign of life", "a watch",
	};

	return names[call];
}

const char *etcd_trouble_name(enum etcd_trouble what)
{
	static const char *const names[] = {
		"done, and answered late", "done, and not answered",
		"done, and connections are reset", "done, and nothing of etcd's arrives",
		"done, and answers come late, but to signs of life", "done late", "lost",
	};

	return names[what];
}

/* ---- requests and answers ---- */

static void forget_call(struct server *s, const struct rpc_call *call)
{
	for (struct stream **q = &s->streams, *w; (w = *q);) {
		if (w->call == call) {
			*q = w->next;
			free(w->key);
			free(w->end);
			free(w);
		} else {
			q = &w->next;
		}
	}
	for (struct debt *d = s->debts; d; d = d->next) {
		if (d->call == call) {
			d->call = NULL;
		}
	}
}

static void on_cancel(struct rpc_call *call, void *arg)
{
	forget_call(arg, call);
}

static void finish(struct server *s, struct rpc_call *call, enum rpc_status status,
		   const char *text)
{
	forget_call(s, call);
	rpc_finish(call, status, text);
}

static void refuse(struct etcd_answer *out, const char *text)
{
	*out = (struct etcd_answer){ .status = RPC_UNAVAILABLE, .text = text };
}

/* What it does to the state. */
static void take_effect(enum etcd_call kind, const ProtobufCMessage *q, struct etcd_answer *out)
{
	int64_t revision = etcd_keys_revision();

	switch (kind) {
	case ETCD_COMPACT:
		etcd_keys_compact(((const Etcd__CompactionRequest *)q)->revision, out);
		break;
	case ETCD_GRANT:
		etcd_keys_grant(((const Etcd__LeaseGrantRequest *)q)->ttl, out);
		break;
	case ETCD_REVOKE:
		etcd_keys_revoke(((const Etcd__LeaseRevokeRequest *)q)->id, out);
		break;
	default:
		etcd_keys_transact((const Etcd__TxnRequest *)q, out);
		break;
	}
	if (etcd_keys_revision() != revision) {
		spread();
	}
}

/* A sign of life of a lease; false: it is to be asked again later. */
static bool keep(int member, const Etcd__LeaseKeepAliveRequest *q, struct etcd_answer *out)
{
	Etcd__LeaseKeepAliveResponse reply = ETCD__LEASE_KEEP_ALIVE_RESPONSE__INIT;

	reply.id = q->id;
	if (follows(member)) {
		reply.ttl = etcd_keys_renew(q->id);
	} else if (was_leading(member)) {
		reply.ttl = etcd_keys_seconds(q->id);	/* no other member hears of it */
	} else {
		return false;
	}
	if (reply.ttl >= 0) {
		etcd_answer_pack(out, &reply.base);
	}
	return reply.ttl >= 0;
}

static void send_answer(struct server *s, struct rpc_call *call, enum etcd_call kind,
			struct etcd_answer *a)
{
	struct err err;

	if (call && a->status == RPC_OK) {
		rpc_send_packed(call, a->bytes, a->len, &err);
	}
	if (call && (kind != ETCD_KEEP || a->status != RPC_OK)) {
		finish(s, call, a->status, a->text);
	}
	free(a->bytes);
	a->bytes = NULL;
}

static void on_debt_closed(uv_handle_t *timer)
{
	struct debt *d = timer->data, **q = &d->server->debts;

	while (*q != d) {
		q = &(*q)->next;
	}
	*q = d->next;
	free(d->answer.bytes);
	free(d);
}

static void wait_more(struct debt *d, int64_t ns);

/* Asks the others; *wait: so long until the answer, or until it asks again. */
static bool ask_others(struct debt *d, int64_t *wait)
{
	int member = d->server->member;

	*wait = d->after_ns;
	if (d->kind == ETCD_KEEP) {
		if (keep(member, (const Etcd__LeaseKeepAliveRequest *)d->request, &d->answer)) {
			return true;
		}
		if (sim_now() - d->began < TIMEOUT_NS) {
			*wait = AGAIN_NS;
			return false;
		}
		refuse(&d->answer, "etcdserver: request timed out");
		*wait = 0;
	} else if (follows(member)) {
		take_effect(d->kind, d->request, &d->answer);
	} else {
		if (d->kind != ETCD_READ && was_leading(member)) {
			add_to_log(member, d->kind, d->request);
		}
		refuse(&d->answer, "etcdserver: request timed out");
		*wait = TIMEOUT_NS;
	}
	return true;
}

/* Its time has come: it takes effect, or is answered. */
static void go_on(struct debt *d)
{
	int64_t wait = 0;

	if (d->request) {
		look();
		if (ask_others(d, &wait)) {
			protobuf_c_message_free_unpacked(d->request, NULL);
			d->request = NULL;
		}
	}
	if (wait > 0) {
		wait_more(d, wait);
		return;
	}
	if (d->answers) {
		send_answer(d->server, d->call, d->kind, &d->answer);
	}
	uv_close((uv_handle_t *)&d->timer, on_debt_closed);
}

static void on_time(uv_timer_t *timer)
{
	go_on(timer->data);
}

static void wait_more(struct debt *d, int64_t ns)
{
	uv_timer_start(&d->timer, on_time, (uint64_t)((ns + SIM_MS - 1) / SIM_MS), 0);
}

/* Makes it a debt, whose first moment is now or later. */
static void owe(struct server *s, struct rpc_call *call, enum etcd_call kind,
		const ProtobufCMessage *request, const struct course *way)
{
	struct debt *d = x_new(1, sizeof(*d));

	*d = (struct debt){
		.next = s->debts, .server = s, .call = call, .kind = kind,
		.request = copy_message(request), .answers = way->answers,
		.after_ns = way->after_ns, .began = sim_now(),
	};
	s->debts = d;
	uv_timer_init(&s->loop, &d->timer);
	d->timer.data = d;
	rpc_call_on_cancel(call, on_cancel, s);
	if (way->before_ns > 0) {
		wait_more(d, way->before_ns);
	} else {
		go_on(d);
	}
}

static bool asks_for_leader(const struct rpc_call *call)
{
	const char *wants = rpc_call_metadata(call, "hasleader");

	return wants && strcmp(wants, "true") == 0;
}

static bool lacks_leader(const struct server *s, const struct rpc_call *call)
{
	look();
	c.members[s->member].alive_at = sim_now();
	return !knows_leader(s->member) && asks_for_leader(call);
}

/* Any request that is answered. */
static void serve(struct server *s, struct rpc_call *call, enum etcd_call kind,
		  const ProtobufCMessage *request)
{
	const char *client = sim_machine_of(rpc_call_peer(call)->pid);
	struct course way;
	bool reset;

	if (lacks_leader(s, call)) {
		finish(s, call, RPC_UNAVAILABLE, "etcdserver: no leader");
		return;
	}
	way = course_of(client, kind, request, &reset);
	rpc_call_on_cancel(call, on_cancel, s);
	if (way.takes_effect) {
		owe(s, call, kind, request, &way);
	}
	if (reset) {
		sim_link_reset(etcd_model_machine(s->member), client);
	}
}

static void on_transaction(struct rpc_call *call, const ProtobufCMessage *m, void *arg)
{
	serve(arg, call, etcd_keys_writes((const Etcd__TxnRequest *)m) ? ETCD_WRITE : ETCD_READ, m);
}

static void on_compact(struct rpc_call *call, const ProtobufCMessage *m, void *arg)
{
	serve(arg, call, ETCD_COMPACT, m);
}

static void on_grant(struct rpc_call *call, const ProtobufCMessage *m, void *arg)
{
	serve(arg, call, ETCD_GRANT, m);
}

static void on_revoke(struct rpc_call *call, const ProtobufCMessage *m, void *arg)
{
	serve(arg, call, ETCD_REVOKE, m);
}

/* ---- streams ---- */

static struct stream *add_stream(struct server *s, struct rpc_call *call)
{
	struct stream *w = x_new(1, sizeof(*w));

	*w = (struct stream){ .next = s->streams, .call = call,
			      .needs_leader = asks_for_leader(call) };
	s->streams = w;
	rpc_call_on_cancel(call, on_cancel, s);
	return w;
}

static void on_keep(struct rpc_call *call, const ProtobufCMessage *m, void *arg)
{
	struct server *s = arg;
	struct stream *w = s->streams;

	if (!m) {
		finish(s, call, RPC_OK, NULL);
		return;
	}
	while (w && w->call != call) {
		w = w->next;
	}
	if (!w) {
		add_stream(s, call);
	}
	serve(s, call, ETCD_KEEP, m);
}

static void send_created(struct rpc_call *call, bool canceled)
{
	Etcd__WatchResponse reply = ETCD__WATCH_RESPONSE__INIT;
	Etcd__Header header = ETCD__HEADER__INIT;
	struct err err;

	header.revision = etcd_keys_revision();
	reply.header = &header;
	reply.created = !canceled;
	reply.canceled = canceled;
	rpc_send(call, &reply.base, &err);
}

static void create_watch(struct server *s, struct rpc_call *call,
			 const Etcd__WatchCreateRequest *q, int64_t held_until)
{
	struct stream *w;

	send_created(call, false);
	if (q->start_revision > 0 && q->start_revision < etcd_keys_compacted()) {
		send_created(call, true);
		return;
	}
	w = add_stream(s, call);
	w->watches = true;
	w->key = x_ndup((const char *)q->key.data, q->key.len);
	w->end = q->range_end.len ? x_ndup((const char *)q->range_end.data, q->range_end.len)
				  : NULL;
	w->next_revision = q->start_revision > 0 ? q->start_revision : etcd_keys_revision() + 1;
	w->held_until = held_until;
	feed(w);
}

/* Of troubles only those that end it, or hold back what it would tell. */
static void on_watch(struct rpc_call *call, const ProtobufCMessage *m, void *arg)
{
	const Etcd__WatchRequest *q = (const Etcd__WatchRequest *)m;
	struct server *s = arg;
	struct course way;
	const char *client;
	bool reset;

	if (!m || lacks_leader(s, call)) {
		finish(s, call, m ? RPC_UNAVAILABLE : RPC_OK, m ? "etcdserver: no leader" : NULL);
		return;
	}
	if (q->request_case != ETCD__WATCH_REQUEST__REQUEST_CREATE_REQUEST) {
		return;
	}
	client = sim_machine_of(rpc_call_peer(call)->pid);
	way = course_of(client, ETCD_WATCH, m, &reset);
	rpc_call_on_cancel(call, on_cancel, s);
	if (way.takes_effect) {
		create_watch(s, call, q->create_request,
			     sim_now() + way.before_ns + way.after_ns);
	}
	if (reset) {
		sim_link_reset(etcd_model_machine(s->member), client);
	}
}

/* A member that has had no leader for long ends the streams that need one. */
static void end_streams(struct server *s)
{
	for (struct stream *w = s->streams, *next; w; w = next) {
		next = w->next;
		if (w->needs_leader) {
			finish(s, w->call, RPC_UNAVAILABLE, "etcdserver: no leader");
			next = s->streams;	/* several may go with one call */
		}
	}
}

/* ---- members ---- */

static void on_tick(uv_timer_t *tick)
{
	struct server *s = tick->data;
	int64_t revision = etcd_keys_revision();

	look();
	c.members[s->member].alive_at = sim_now();
	if (c.leader == s->member) {
		etcd_keys_expire(sim_now() - c.leases_late_ns);
	}
	if (etcd_keys_revision() != revision) {
		spread();
	}
	if (!follows(s->member) &&
	    sim_now() - c.members[s->member].knows_until > STREAMS_END_NS) {
		end_streams(s);
	}
	feed_all(s);	/* what was held back */
}

static const struct rpc_method methods[] = {
	{ "/etcdserverpb.KV/Txn", &etcd__txn_request__descriptor, &etcd__txn_response__descriptor,
	  RPC_UNARY, on_transaction },
	{ "/etcdserverpb.KV/Compact", &etcd__compaction_request__descriptor,
	  &etcd__compaction_response__descriptor, RPC_UNARY, on_compact },
	{ "/etcdserverpb.Lease/LeaseGrant", &etcd__lease_grant_request__descriptor,
	  &etcd__lease_grant_response__descriptor, RPC_UNARY, on_grant },
	{ "/etcdserverpb.Lease/LeaseRevoke", &etcd__lease_revoke_request__descriptor,
	  &etcd__lease_revoke_response__descriptor, RPC_UNARY, on_revoke },
	{ "/etcdserverpb.Lease/LeaseKeepAlive", &etcd__lease_keep_alive_request__descriptor,
	  &etcd__lease_keep_alive_response__descriptor, RPC_BIDI_STREAMING, on_keep },
	{ "/etcdserverpb.Watch/Watch", &etcd__watch_request__descriptor,
	  &etcd__watch_response__descriptor, RPC_BIDI_STREAMING, on_watch },
	{ 0 },
};

static int listen_on(int port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof(a)) || listen(fd, 100)) {
		sim_fail("the model of etcd", "port %d cannot be had", port);
	}
	return fd;
}

static int member_main(int argc, char **argv)
{
	struct server *s = x_new(1, sizeof(*s));
	struct rpc_server_config cfg = {
		.unix_path = argv[0], .methods = methods, .arg = s,
		.limits = { .max_request = MAX_REQUEST_BYTES, .max_decoded = 64 << 20 },
	};
	struct rpc_server *server;
	struct err err;

	(void)argc;
	s->member = atoi(argv[1]);
	cfg.unix_fd = listen_on(FIRST_PORT + 2 * s->member);
	uv_loop_init(&s->loop);
	if (rpc_server_new(&s->loop, &cfg, &server, &err)) {
		sim_fail("the model of etcd", "%s", err.msg);
		return 1;
	}
	close(cfg.unix_fd);
	uv_async_init(&s->loop, &s->changes, on_changes);
	uv_timer_init(&s->loop, &s->tick);
	s->changes.data = s->tick.data = s;
	uv_timer_start(&s->tick, on_tick, TICK_MS, TICK_MS);
	c.members[s->member].server = s;
	uv_run(&s->loop, UV_RUN_DEFAULT);
	return 0;
}

/* What a member had in memory goes with its process. */
static void on_end(struct sim_process *p)
{
	for (int i = 0; i < c.n; i++) {
		if (c.members[i].process == p) {
			c.members[i].process = NULL;
			c.members[i].server = NULL;
			look();
		}
	}
}

void etcd_model_begin(int members)
{
	bool hooked = c.hooked;

	memset(&c, 0, sizeof(c));
	c.n = members < MEMBERS_MAX ? members : MEMBERS_MAX;
	c.leader = c.was_leader = -1;
	c.hooked = true;
	etcd_keys_begin();
	etcd_rule_begin();
	if (!hooked) {
		sim_on_end(on_end);
	}
}

void etcd_model_start(int member)
{
	char number[8];

	if (member < c.n && !c.members[member].process) {
		snprintf(number, sizeof(number), "%d", member);
		c.members[member].process =
			sim_start(etcd_model_machine(member), member_main,
				  (const char *const[]){ "etcd", number, NULL });
		c.members[member].alive_at = sim_now();
		c.members[member].knows_until = 0;
		look();
	}
}

struct sim_process *etcd_model_process(int member)
{
	return c.members[member].process;
}

const char *etcd_model_machine(int member)
{
	static const char *const names[MEMBERS_MAX] = { "etcd0", "etcd1", "etcd2" };

	return names[member];
}

const char *etcd_model_urls(void)
{
	return c.n == 1 ? "http://127.0.0.1:2379" :
	       "http://127.0.0.1:2379,http://127.0.0.1:2381,http://127.0.0.1:2383";
}

void etcd_model_cut(int member, bool cut)
{
	if (member < c.n && c.members[member].cut != cut) {
		sim_tell("etcd: %s is %s", etcd_model_machine(member),
			 cut ? "cut off from the others" : "with the others again");
		c.members[member].cut = cut;
		look();
		spread();
	}
}

void etcd_model_slow(int64_t before_ns, int64_t after_ns)
{
	c.before_ns = before_ns;
	c.after_ns = after_ns;
}

void etcd_model_leases_late(int64_t ns)
{
	c.leases_late_ns = ns;
}

void etcd_model_full(bool full)
{
	etcd_keys_full(full);
}

void etcd_model_compact(void)
{
	struct etcd_answer ignored = { 0 };

	etcd_keys_compact(etcd_keys_revision(), &ignored);
	free(ignored.bytes);
}

void etcd_model_save(void)
{
	etcd_keys_save();
}

void etcd_model_restore(void)
{
	bool ran[MEMBERS_MAX] = { false };

	for (int i = 0; i < c.n; i++) {
		ran[i] = c.members[i].process;
		if (ran[i]) {
			sim_signal(c.members[i].process, SIGKILL);
		}
	}
	etcd_keys_restore();
	etcd_keys_extend(ELECTION_NS);
	for (int i = 0; i < c.n; i++) {
		if (ran[i]) {
			etcd_model_start(i);
		}
	}
}

const char *etcd_model_get(const char *key)
{
	return etcd_keys_get(key, NULL);
}

void etcd_model_on_change(void (*changed)(const char *key, const char *value, size_t len))
{
	etcd_keys_on_change(changed);
}

int64_t etcd_model_revision(void)
{
	return etcd_keys_revision();
}
