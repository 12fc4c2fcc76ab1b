/*
 * grpc.health.v1: the process ("") serves as long as it answers and is not
 * about to stop; "weft.v1.Fabric" from the moment all devices were asked
 * for the first time, whether or not each of them answered: a fabric with a
 * dead switch can be planned and looked at, and Status says what is dead.
 */
#include <stdlib.h>
#include <string.h>

#include "controller/daemon/core/private.h"
#include "grpc/health/v1/health.pb-c.h"

typedef Grpc__Health__V1__HealthCheckRequest health_request;
typedef Grpc__Health__V1__HealthCheckResponse health_response;

#define SERVING(s) \
	GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__##s

enum subject { PROCESS, FABRIC, NOBODY };

struct health_watch {
	TAILQ_ENTRY(health_watch) link;
	struct daemon *d;
	struct rpc_call *call;
	enum subject subject;
	int told;		/* the status last sent */
};

static enum subject subject_of(const char *service)
{
	if (service[0] == '\0') {
		return PROCESS;
	}
	return strcmp(service, "weft.v1.Fabric") == 0 ? FABRIC : NOBODY;
}

static int status_of(const struct daemon *d, enum subject s)
{
	if (s == NOBODY) {
		return SERVING(SERVICE_UNKNOWN);
	}
	return !d->draining && (s == PROCESS || d->was_read)
		       ? SERVING(SERVING)
		       : SERVING(NOT_SERVING);
}

static int send_status(struct rpc_call *call, int status, struct err *err)
{
	health_response res = GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__INIT;

	res.status = status;
	return rpc_send(call, &res.base, err);
}

void handle_health_check(struct rpc_call *call, const ProtobufCMessage *req,
			 void *arg)
{
	const char *service = ((const health_request *)req)->service;
	enum subject s = subject_of(service);
	struct err err = { 0 };

	if (s == NOBODY) {
		err_set(&err, WEFT_ENOTFOUND, "no service \"%.100s\"",
			service);
	} else {
		send_status(call, status_of(arg, s), &err);
	}
	if (err.code) {
		rpc_finish_err(call, &err);
	} else {
		rpc_finish(call, RPC_OK, NULL);
	}
}

static void watch_free(struct health_watch *w)
{
	TAILQ_REMOVE(&w->d->watches, w, link);
	free(w);
}

static void on_watch_cancel(struct rpc_call *call, void *arg)
{
	(void)call;
	watch_free(arg);
}

/* Tells one who watches, if there is news; may end and free the watch. */
static void tell(struct health_watch *w)
{
	int status = status_of(w->d, w->subject);
	struct rpc_call *call = w->call;
	struct err err = { 0 };

	if (status != w->told) {
		w->told = status;
		send_status(call, status, &err);
	}
	if (err.code == 0 && w->d->draining) {
		err_set(&err, WEFT_EUNAVAIL, "weftd is stopping");
	}
	if (err.code) {
		watch_free(w);
		rpc_finish_err(call, &err);
	}
}

void handle_health_watch(struct rpc_call *call, const ProtobufCMessage *req,
			 void *arg)
{
	struct health_watch *w = calloc(1, sizeof(*w));
	struct err err = { 0 };

	if (!w) {
		err_nomem(&err);
		rpc_finish_err(call, &err);
		return;
	}
	w->d = arg;
	w->call = call;
	w->subject = subject_of(((const health_request *)req)->service);
	w->told = -1;
	TAILQ_INSERT_TAIL(&w->d->watches, w, link);
	rpc_call_on_cancel(call, on_watch_cancel, w);
	tell(w);
}

void daemon_health_changed(struct daemon *d)
{
	struct health_watch *w = TAILQ_FIRST(&d->watches), *next;

	for (; w; w = next) {
		next = TAILQ_NEXT(w, link);
		tell(w);
	}
}
