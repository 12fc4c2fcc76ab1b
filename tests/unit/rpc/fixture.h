/* SPDX-License-Identifier: Apache-2.0 */
/* A server on its own thread and loop, with methods that behave well and
 * badly; and what the tests count about it. */
#ifndef WEFT_TESTS_UNIT_RPC_FIXTURE_H
#define WEFT_TESTS_UNIT_RPC_FIXTURE_H

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/rpc/rpc.h"
#include "tests/unit/rpc/message.h"

struct fixture {
	char dir[64], path[96];
	uv_loop_t loop;
	uv_async_t stop, reload;
	uv_timer_t later;
	pthread_t thread;
	struct rpc_server *server;
	int grace_ms;
	bool stopping;		/* a test has asked it to stop */
	struct rpc_call *kept;	/* of Late, finished by `later` */
	atomic_bool privileged;	/* what is_privileged() of a test says */
	atomic_int started, cancelled, limited, late_sends, done, reloaded;
};

static inline void count_cancel(struct rpc_call *call, void *arg)
{
	struct fixture *f = arg;
	struct item item = item_named("too late");

	assert_int_equal(rpc_send(call, &item.base, NULL), WEFT_ECANCELED);
	f->cancelled++;
}

static inline void on_echo(struct rpc_call *call,
			   const ProtobufCMessage *request, void *arg)
{
	(void)arg;
	rpc_send(call, request, NULL);
	rpc_finish(call, RPC_OK, NULL);
}

/* Answers with the value of the metadata key that `name` names. */
static inline void on_metadata(struct rpc_call *call,
			       const ProtobufCMessage *request, void *arg)
{
	const struct item *in = (const struct item *)request;
	const char *value = rpc_call_metadata(call, in->name);
	struct item item = item_named(value ? value : "(none)");

	(void)arg;
	rpc_send(call, &item.base, NULL);
	rpc_finish(call, RPC_OK, NULL);
}

static inline void on_fail(struct rpc_call *call,
			   const ProtobufCMessage *request, void *arg)
{
	const struct item *in = (const struct item *)request;
	struct err err;

	(void)arg;
	err_set(&err, (enum weft_err)-(int)in->n, "%s", in->name);
	err_at(&err, "configs/a b:c.yaml", 41, 12);
	err_hint(&err, "ports go from 1 to 128, 100 %% of the time");
	rpc_finish_err(call, &err);
}

/* Ends with the plain status n. */
static inline void on_status(struct rpc_call *call,
			     const ProtobufCMessage *request, void *arg)
{
	const struct item *in = (const struct item *)request;

	(void)arg;
	rpc_finish(call, (enum rpc_status)in->n,
		   in->name[0] ? in->name : NULL);
}

static inline void on_count(struct rpc_call *call,
			    const ProtobufCMessage *request, void *arg)
{
	const struct item *in = (const struct item *)request;
	struct item item = item_named("number");
	struct err err;

	(void)arg;
	for (item.n = 0; item.n < in->n; item.n++) {
		if (rpc_send(call, &item.base, &err)) {
			rpc_finish_err(call, &err);
			return;
		}
	}
	rpc_finish(call, RPC_OK, NULL);
}

static inline void on_hang(struct rpc_call *call,
			   const ProtobufCMessage *request, void *arg)
{
	struct fixture *f = arg;

	(void)request;
	rpc_call_on_cancel(call, count_cancel, f);
	f->started++;
}

/* Echoes each message, says how many there were; "stop" ends it early. */
static inline void on_each(struct rpc_call *call,
			   const ProtobufCMessage *request, void *arg)
{
	const struct item *in = (const struct item *)request;
	struct fixture *f = arg;
	struct item total = item_named("total");

	if (in) {
		f->started++;
		rpc_send(call, request, NULL);
		rpc_call_on_cancel(call, count_cancel, f);
	} else {
		total.n = f->started;
		rpc_send(call, &total.base, NULL);
	}
	if (!in || strcmp(in->name, "stop") == 0) {
		rpc_finish(call, RPC_OK, NULL);
	}
}

/* Sends messages of in->n bytes until the queue is full, then hangs. */
static inline void on_flood(struct rpc_call *call,
			    const ProtobufCMessage *request, void *arg)
{
	const struct item *in = (const struct item *)request;
	struct item item = item_named("");
	struct fixture *f = arg;
	struct err err = { 0 };

	item.data.len = in->n;
	item.data.data = calloc(1, in->n);
	while (rpc_send(call, &item.base, &err) == 0) {
		f->started++;
	}
	free(item.data.data);
	f->limited += err.code == WEFT_ELIMIT;
	rpc_finish_err(call, &err);
}

static inline void finish_late(uv_timer_t *timer)
{
	struct fixture *f = timer->data;
	struct item item = item_named("late");

	if (rpc_send(f->kept, &item.base, NULL) == WEFT_ECANCELED) {
		f->late_sends++;
	}
	rpc_finish(f->kept, RPC_OK, NULL);
	f->done++;
}

/* Ignores cancellation and answers 150 ms later. */
static inline void on_late(struct rpc_call *call,
			   const ProtobufCMessage *request, void *arg)
{
	struct fixture *f = arg;

	(void)request;
	f->kept = call;
	f->started++;
	uv_timer_start(&f->later, finish_late, 150, 0);
}

static inline void on_server_done(void *arg)
{
	struct fixture *f = arg;

	uv_close((uv_handle_t *)&f->stop, NULL);
	uv_close((uv_handle_t *)&f->reload, NULL);
	uv_close((uv_handle_t *)&f->later, NULL);
}

/* A call that stops the server it runs on. */
static inline void on_stop_call(struct rpc_call *call,
				const ProtobufCMessage *request, void *arg)
{
	struct fixture *f = arg;

	f->stopping = true;
	rpc_server_stop(f->server, 5000, on_server_done, f);
	rpc_send(call, request, NULL);
	rpc_finish(call, RPC_OK, NULL);
}

static const struct rpc_method methods[] = {
	{ "/test.T/Echo", &item_type, &item_type,
	  RPC_UNARY, on_echo },
	{ "/test.T/Metadata", &item_type, &item_type,
	  RPC_UNARY, on_metadata },
	{ "/test.T/Fail", &item_type, &item_type,
	  RPC_UNARY, on_fail },
	{ "/test.T/Status", &item_type, &item_type,
	  RPC_UNARY, on_status },
	{ "/test.T/Count", &item_type, &item_type,
	  RPC_SERVER_STREAMING, on_count },
	{ "/test.T/Hang", &item_type, &item_type,
	  RPC_SERVER_STREAMING, on_hang },
	{ "/test.T/Flood", &item_type, &item_type,
	  RPC_SERVER_STREAMING, on_flood },
	{ "/test.T/Each", &item_type, &item_type,
	  RPC_BIDI_STREAMING, on_each },
	{ "/test.T/Late", &item_type, &item_type,
	  RPC_UNARY, on_late },
	{ "/test.T/Stop", &item_type, &item_type,
	  RPC_UNARY, on_stop_call },
	{ 0 },
};

static inline void on_stop(uv_async_t *async)
{
	struct fixture *f = async->data;

	rpc_server_stop(f->server, f->grace_ms, on_server_done, f);
}

/* Reads the certificates again: reloaded is 1 or, when that failed, 2. */
static inline void on_reload(uv_async_t *async)
{
	struct fixture *f = async->data;
	struct err err;

	f->reloaded = rpc_server_reload_tls(f->server, &err) ? 2 : 1;
}

static inline void *run_loop(void *arg)
{
	struct fixture *f = arg;

	uv_run(&f->loop, UV_RUN_DEFAULT);
	return NULL;
}

/* Starts a server with these limits (NULL: defaults). */
/* cfg: what is not the fixture's own business. */
static inline struct fixture *start_as(struct rpc_server_config cfg)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct err err = { 0 };

	cfg.mode = 0600;
	cfg.methods = methods;
	cfg.arg = f;

	log_set_level(LOG_ERROR);
	snprintf(f->dir, sizeof(f->dir), "/tmp/weft-rpc-XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	snprintf(f->path, sizeof(f->path), "%s/sock", f->dir);
	cfg.unix_path = f->path;
	f->grace_ms = 5000;
	uv_loop_init(&f->loop);
	uv_async_init(&f->loop, &f->stop, on_stop);
	uv_async_init(&f->loop, &f->reload, on_reload);
	uv_timer_init(&f->loop, &f->later);
	f->stop.data = f->reload.data = f->later.data = f;
	if (rpc_server_new(&f->loop, &cfg, &f->server, &err)) {
		fail_msg("%s", err.msg);
	}
	pthread_create(&f->thread, NULL, run_loop, f);
	return f;
}

static inline struct fixture *start_with(const struct rpc_limits *limits,
					 bool (*authorise)(
						 const struct rpc_peer *,
						 void *))
{
	struct rpc_server_config cfg = { .authorise = authorise };

	if (limits) {
		cfg.limits = *limits;
	}
	return start_as(cfg);
}

static inline struct fixture *start(void)
{
	return start_with(NULL, NULL);
}

/* Stops, waits, and checks that nothing is left behind. */
static inline void stop(struct fixture *f)
{
	if (!f->stopping) {
		uv_async_send(&f->stop);
	}
	pthread_join(f->thread, NULL);
	assert_int_equal(uv_loop_close(&f->loop), 0);
	assert_int_not_equal(access(f->path, F_OK), 0);
	assert_int_equal(rmdir(f->dir), 0);
	free(f);
}

static inline struct rpc_client *dial(struct fixture *f)
{
	struct rpc_client *c;
	struct err err = { 0 };

	if (rpc_client_open(f->path, 60000, &c, &err)) {
		fail_msg("%s", err.msg);
	}
	return c;
}

/* Waits until a counter reaches a value; fails after ten seconds. */
static inline void await(atomic_int *counter, int want)
{
	for (int i = 0; i < 1000 && *counter < want; i++) {
		poll(NULL, 0, 10);
	}
	assert_int_equal(*counter, want);
}

#endif
