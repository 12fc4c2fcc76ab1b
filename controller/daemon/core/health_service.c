/* SPDX-License-Identifier: Apache-2.0 */
/*
 * grpc.health.v1: the process ("") serves as long as it answers and is not
 * about to stop; "weft.v1.FabricService" from the moment all devices were asked
 * for the first time, whether or not each of them answered: a fabric with a
 * dead switch can be planned and looked at, and Status says what is dead.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "controller/daemon/core/core.h"
#include "grpc/health/v1/health.pb-c.h"
#include "lib/base/alloc.h"

typedef Grpc__Health__V1__HealthCheckRequest health_request;
typedef Grpc__Health__V1__HealthCheckResponse health_response;

#define SERVING(s) \
	GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__##s

enum subject { PROCESS, FABRIC, UNKNOWN };

/* A call of Watch; freed with its call. */
struct health_watch {
	TAILQ_ENTRY(health_watch) link;
	struct health *health;
	struct rpc_call *call;
	enum subject subject;
	int sent;		/* the status last sent */
};

struct health {
	const struct daemon_env *env;
	TAILQ_HEAD(, health_watch) watches;	/* all that are open */
};

struct health *health_new(const struct daemon_env *env)
{
	struct health *h = x_new(1, sizeof(*h));

	h->env = env;
	TAILQ_INIT(&h->watches);
	return h;
}

void health_free(struct health *h)
{
	free(h);
}

static enum subject subject_of(const char *service)
{
	if (service[0] == '\0') {
		return PROCESS;
	}
	return strcmp(service, "weft.v1.FabricService") == 0 ? FABRIC : UNKNOWN;
}

/* As the protocol counts. A call of Watch for an unknown service is answered
 * with that status, one of Check with an error: so the protocol wants it. */
static int status_of(const struct health *h, enum subject s)
{
	if (s == UNKNOWN) {
		return SERVING(SERVICE_UNKNOWN);
	}
	return !h->env->draining && (s == PROCESS || h->env->was_read)
		       ? SERVING(SERVING)
		       : SERVING(NOT_SERVING);
}

static int send_status(struct rpc_call *call, int status, struct err *err)
{
	health_response res = GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__INIT;

	res.status = status;
	return rpc_send(call, &res.base, err);
}

void handle_health_check(struct rpc_call *call, const ProtobufCMessage *req, void *arg)
{
	const char *service = ((const health_request *)req)->service;
	enum subject s = subject_of(service);
	struct err err = { 0 };

	if (s == UNKNOWN) {
		err_set(&err, WEFT_ENOTFOUND, "no service \"%.100s\"", service);
	} else {
		send_status(call, status_of(arg, s), &err);
	}
	call_end(call, err.code, &err);
}

static void watch_free(struct health_watch *w)
{
	TAILQ_REMOVE(&w->health->watches, w, link);
	free(w);
}

static void on_watch_cancel(struct rpc_call *call, void *arg)
{
	(void)call;
	watch_free(arg);
}

/* Sends the status if it has changed; may end and free the watch. */
static void update_watch(struct health_watch *w)
{
	int status = status_of(w->health, w->subject);
	struct rpc_call *call = w->call;
	struct err err = { 0 };

	if (status != w->sent) {
		w->sent = status;
		send_status(call, status, &err);
	}
	if (err.code == 0 && w->health->env->draining) {
		err_set(&err, WEFT_EUNAVAIL, "weftd is stopping");
	}
	if (err.code) {
		watch_free(w);
		rpc_finish_err(call, &err);
	}
}

void handle_health_watch(struct rpc_call *call, const ProtobufCMessage *req, void *arg)
{
	struct health_watch *w = x_new(1, sizeof(*w));

	w->health = arg;
	w->call = call;
	w->subject = subject_of(((const health_request *)req)->service);
	w->sent = -1;
	TAILQ_INSERT_TAIL(&w->health->watches, w, link);
	rpc_call_on_cancel(call, on_watch_cancel, w);
	update_watch(w);
}

void health_changed(struct health *h)
{
	struct health_watch *w = TAILQ_FIRST(&h->watches), *next;

	for (; w; w = next) {
		next = TAILQ_NEXT(w, link);
		update_watch(w);
	}
}
