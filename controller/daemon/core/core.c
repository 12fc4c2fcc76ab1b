/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The environment of all parts, and what they would all write for themselves:
 * ending a call, lists of messages, and timers that may be freed at any time,
 * which libuv's handles may not.
 */
#include "controller/daemon/core/core.h"

#include <stdalign.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/base/alloc.h"

void env_changed(struct daemon_env *env)
{
	env->changes++;
	if (env->on_changed) {
		env->on_changed(env->on_changed_arg);
	}
}

bool env_may_change(const struct daemon_env *env, struct rpc_call *call)
{
	struct err err = { 0 };

	if (env->draining) {
		err_set(&err, WEFT_EUNAVAIL, "weftd is stopping");
	} else if (env->is_refused && *env->is_refused) {
		err_set(&err, WEFT_EUNAVAIL, "nothing can be recorded: etcd takes no "
			"transactions");
		err_hint(&err, "\"weft status\" says why");
	} else {
		return true;
	}
	rpc_finish_err(call, &err);
	return false;
}

void env_audit_call(const struct daemon_env *env, const struct rpc_call *call,
		    int64_t change, const char *what)
{
	char who[RPC_PEER_TEXT_MAX], text[RPC_PEER_TEXT_MAX + 64];

	snprintf(text, sizeof(text), "%s by %s", what,
		 rpc_peer_text(rpc_call_peer(call), who, sizeof(who)));
	store_audit(env->store, change, "", STORE_EVENT, text);
}

Weft__V1__Timing *env_timing(const struct daemon_env *env, enum store_timing_kind kind,
			     const char *name, Weft__V1__Timing *out)
{
	struct apply_timing t;

	weft__v1__timing__init(out);
	if (!apply_learned(env->apply, kind, name, &t)) {
		return NULL;
	}
	out->count = t.n;
	out->median_ns = t.median_ns;
	out->max_ns = t.max_ns;
	return out;
}

void call_end(struct rpc_call *call, int r, const struct err *err)
{
	if (call && r) {
		rpc_finish_err(call, err);
	} else if (call) {
		rpc_finish(call, RPC_OK, NULL);
	}
}

int call_limit(int32_t limit, int usual, int most, int *out, struct err *err)
{
	if (limit < 0) {
		return err_set(err, WEFT_EINVAL, "limit: %d is not 0 (%d entries) or more", limit,
			       usual);
	}
	*out = limit == 0 ? usual : limit < most ? limit : most;
	return 0;
}

void call_answer(struct rpc_call *call, int r, const ProtobufCMessage *m, struct err *err)
{
	call_end(call, r ? r : rpc_send(call, m, err), err);
}

void call_forget(struct rpc_call *call, void *arg)
{
	(void)call;
	*(struct rpc_call **)arg = NULL;
}

const char *call_user(const struct rpc_call *call, char *text, size_t size)
{
	const struct rpc_peer *peer = call ? rpc_call_peer(call) : NULL;

	if (!peer || peer->remote) {
		return peer ? peer->name : "weftd";
	}
	snprintf(text, size, peer->uid == 0 ? "root" : "uid %u", (unsigned)peer->uid);
	return text;
}

const char *user_name(const char *who, char *text, size_t size)
{
	unsigned uid;
	int end = 0;

	if (sscanf(who, "uid %u%n", &uid, &end) != 1 || who[end]) {
		return who;
	}
	return rpc_user_name((uid_t)uid, text, size);
}

/* To where any type may stand. */
static size_t round_up(size_t n)
{
	size_t to = alignof(max_align_t);

	return (n + to - 1) / to * to;
}

void *message_list(const ProtobufCMessageDescriptor *kind, size_t n)
{
	size_t head = round_up((n + 1) * sizeof(void *));
	size_t size = round_up(kind->sizeof_message);
	char *block = x_new(1, head + n * size);
	void **list = (void **)block;

	for (size_t i = 0; i < n; i++) {
		list[i] = block + head + i * size;
		protobuf_c_message_init(kind, list[i]);
	}
	return list;
}

/* ---- timers -------------------------------------------------------------- */

/* Outlives part_timer_free until the loop has closed its handle. */
struct part_timer {
	uv_timer_t handle;
	void (*fn)(void *arg);
	void *arg;
};

static void on_time(uv_timer_t *handle)
{
	struct part_timer *t = handle->data;

	t->fn(t->arg);
}

static void on_closed(uv_handle_t *handle)
{
	free(handle->data);
}

struct part_timer *part_timer_new(struct daemon_env *env, void (*fn)(void *arg), void *arg)
{
	struct part_timer *t = x_new(1, sizeof(*t));

	t->fn = fn;
	t->arg = arg;
	uv_timer_init(env->loop, &t->handle);
	t->handle.data = t;
	return t;
}

void part_timer_free(struct part_timer *t)
{
	if (t) {
		uv_close((uv_handle_t *)&t->handle, on_closed);
	}
}

void part_timer_start(struct part_timer *t, int64_t ms)
{
	uv_update_time(t->handle.loop);
	uv_timer_start(&t->handle, on_time, ms > 0 ? (uint64_t)ms : 0, 0);
}

void part_timer_stop(struct part_timer *t)
{
	uv_timer_stop(&t->handle);
}

/* ---- descriptors --------------------------------------------------------- */

/* Its copy of the descriptor may be waited for when the other was closed. */
struct part_wait {
	uv_poll_t poll;
	int of, fd;
	struct part_wait **place;	/* that it is in, until it has ended */
	void (*fn)(void *arg);
	void *arg;
};

static void on_wait_closed(uv_handle_t *handle)
{
	struct part_wait *w = handle->data;

	close(w->fd);
	free(w);
}

void part_wait_stop(struct part_wait **w)
{
	if (*w) {
		uv_close((uv_handle_t *)&(*w)->poll, on_wait_closed);
		*w = NULL;
	}
}

/* Once: a connection that was closed stays readable. */
static void on_readable(uv_poll_t *poll, int status, int events)
{
	struct part_wait *w = poll->data;

	(void)status, (void)events;
	part_wait_stop(w->place);
	w->fn(w->arg);
}

void part_wait_start(struct daemon_env *env, int fd, void (*fn)(void *arg), void *arg,
		     struct part_wait **place)
{
	struct part_wait *w;

	if (*place && (*place)->of == fd) {
		return;
	}
	part_wait_stop(place);
	if (fd < 0) {
		return;
	}
	w = x_new(1, sizeof(*w));
	*w = (struct part_wait){ .of = fd, .fd = dup(fd), .place = place, .fn = fn, .arg = arg };
	if (w->fd < 0 || uv_poll_init(env->loop, &w->poll, w->fd)) {
		if (w->fd >= 0) {
			close(w->fd);
		}
		free(w);
		return;
	}
	w->poll.data = w;
	uv_poll_start(&w->poll, UV_READABLE, on_readable);
	*place = w;
}
