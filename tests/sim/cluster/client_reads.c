/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading: what one weftd says, asked once. Of those that lead, what they say of targets that the
 * history knows is held against it; those that stand by may be behind.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "tests/sim/cluster/client_parts.h"

#define LOOK_NS (200 * SIM_MS)
#define FABRIC(method) "/weft.v1.FabricService/" method
#define JOBS(method) "/weft.v1.JobsService/" method

/* ---- one message ---- */

/* Takes a copy, as what comes is gone afterwards. */
static int on_message(const ProtobufCMessage *msg, void *arg)
{
	ProtobufCMessage **out = arg;
	size_t len = protobuf_c_message_get_packed_size(msg);
	uint8_t *bytes = x_alloc(len + 1, 1);

	protobuf_c_message_pack(msg, bytes);
	rpc_free_message(*out);
	*out = protobuf_c_message_unpack(msg->descriptor, NULL, len, bytes);
	free(bytes);
	return 0;
}

static int read_one(struct client *c, int weftd, const char *path, const ProtobufCMessage *message,
		    const ProtobufCMessageDescriptor *response, ProtobufCMessage **out,
		    struct err *err)
{
	const int first = c->weftd;
	const struct request q = {
		.path = path, .message = message, .response = response, .arg = out,
		.on_message = on_message, .timeout_ms = c->timeout_ms,
	};

	*out = NULL;
	client_try(c, weftd, &q, err);
	c->weftd = first;	/* who is read is not who leads */
	if (err->code == 0 && !*out) {
		err_set(err, WEFT_EINTERNAL, "%s: no answer", path);
	}
	if (err->code) {
		rpc_free_message(*out);
		*out = NULL;
	}
	return err->code;
}

/* ---- status ---- */

static bool leads(const Weft__V1__StatusResponse *s)
{
	return s->state != WEFT__V1__STATE__STATE_STANDBY;
}

/* Nothing is under way or open. */
static bool is_settled(const Weft__V1__StatusResponse *s)
{
	return (s->state == WEFT__V1__STATE__STATE_READY ||
		s->state == WEFT__V1__STATE__STATE_EMPTY) && !s->open_change && !s->progress;
}

static bool holds(const Weft__V1__StatusResponse *s, const char *name)
{
	for (size_t i = 0; i < s->n_holds; i++) {
		if (strcmp(s->holds[i]->target, name) == 0) {
			return true;
		}
	}
	return false;
}

/* Each target of a domain that is held or not. */
static void note_holds(const struct client *c, int domain, const Weft__V1__StatusResponse *s,
		       int64_t begin_ns)
{
	const char *target;

	for (size_t i = 0; (target = history_target(i)); i++) {
		char name[CLIENT_TARGET], again[CLIENT_TARGET];

		if (sscanf(target, "hold %63s", name) == 1 &&
		    strcmp(client_target(again, "hold", name, domain), target) == 0) {
			history_read(c->name, target, holds(s, name) ? "yes" : "no", begin_ns);
		}
	}
}

static void note_status(const struct client *c, int weftd, const Weft__V1__StatusResponse *s,
			int64_t begin_ns)
{
	const int domain = cluster_domain_of(weftd);
	/* Meanwhile it tells the configuration that a change is to make; also some time after that
	 * was taken back. */
	const bool settled = is_settled(s) && (!s->last_change ||
					       strcmp(s->last_change->outcome, "committed") == 0);
	/* Where none was ever applied, it tells one that was refused. */
	const bool none = s->state == WEFT__V1__STATE__STATE_EMPTY;
	const char *digest = none ? "" : s->config_sha256;
	char target[CLIENT_TARGET];

	/* What it says that others do not have yet may go with it, and no client was told of it. */
	if (c->silent || !leads(s) || (s->leadership && s->leadership->unconfirmed)) {
		return;
	}
	if (settled) {
		client_target(target, "configuration", "", domain);
		history_initial(target, "");
		history_read(c->name, target, digest, begin_ns);
	}
	history_generation(c->name, domain, s->generation, settled ? digest : NULL, begin_ns);
	note_holds(c, domain, s, begin_ns);
}

int client_status(struct client *c, int weftd, Weft__V1__StatusResponse **out, struct err *err)
{
	Weft__V1__StatusRequest req = WEFT__V1__STATUS_REQUEST__INIT;
	const int64_t begin_ns = sim_now();
	int r = read_one(c, weftd, FABRIC("Status"), &req.base,
			 &weft__v1__status_response__descriptor, (ProtobufCMessage **)out, err);

	if (r == 0) {
		note_status(c, weftd, *out, begin_ns);
	}
	return r;
}

int client_diff(struct client *c, int weftd, Weft__V1__DiffResponse **out, struct err *err)
{
	Weft__V1__DiffRequest req = WEFT__V1__DIFF_REQUEST__INIT;

	return read_one(c, weftd, FABRIC("Diff"), &req.base, &weft__v1__diff_response__descriptor,
			(ProtobufCMessage **)out, err);
}

int client_verify(struct client *c, int weftd, Weft__V1__VerifyResponse **out, struct err *err)
{
	Weft__V1__VerifyRequest req = WEFT__V1__VERIFY_REQUEST__INIT;

	return read_one(c, weftd, FABRIC("Verify"), &req.base,
			&weft__v1__verify_response__descriptor, (ProtobufCMessage **)out, err);
}

int client_history(struct client *c, int weftd, int limit, Weft__V1__HistoryResponse **out,
		   struct err *err)
{
	Weft__V1__HistoryRequest req = WEFT__V1__HISTORY_REQUEST__INIT;

	req.limit = limit;
	return read_one(c, weftd, FABRIC("History"), &req.base,
			&weft__v1__history_response__descriptor, (ProtobufCMessage **)out, err);
}

/* ---- jobs ---- */

/* NULL: it is not known as weftd is on its way, which says nothing. */
static const char *value_of(const Weft__V1__Job *j)
{
	switch (j->state) {
	case WEFT__V1__JOB_STATE__JOB_STATE_QUEUED:
	case WEFT__V1__JOB_STATE__JOB_STATE_STARTING:
	case WEFT__V1__JOB_STATE__JOB_STATE_RUNNING:
		return "there";
	case WEFT__V1__JOB_STATE__JOB_STATE_ENDING:
		return NULL;
	default:
		return "gone";
	}
}

static void note_job(const struct client *c, const char *target, const Weft__V1__Job *j,
		     int64_t begin_ns)
{
	const char *value = j ? value_of(j) : "gone";

	if (j && j->state == WEFT__V1__JOB_STATE__JOB_STATE_FAILED) {
		/* By itself, as it says with a reason. */
		history_by_itself(target, "gone", 0, sim_now());
	}
	if (value) {
		history_read(c->name, target, value, begin_ns);
	}
}

static bool is_over(const Weft__V1__Job *j)
{
	return j->state == WEFT__V1__JOB_STATE__JOB_STATE_ENDED ||
	       j->state == WEFT__V1__JOB_STATE__JOB_STATE_FAILED;
}

/* The newest of the name; one that lives before those that were to replace it and are over. */
static const Weft__V1__Job *find_job(const Weft__V1__ListJobsResponse *list, const char *name)
{
	const Weft__V1__Job *found = NULL;

	for (size_t i = 0; i < list->n_jobs; i++) {
		if (strcmp(list->jobs[i]->name, name) == 0 &&
		    (!found || is_over(found) || !is_over(list->jobs[i]))) {
			found = list->jobs[i];
		}
	}
	return found;
}

/* A list comes from those that stand by, too: only a leader's is held against the history. */
static bool is_led(struct client *c, int weftd)
{
	struct client quiet = *c;
	Weft__V1__StatusResponse *s = NULL;
	struct err err = { 0 };
	bool yes;

	quiet.silent = true;
	yes = client_status(&quiet, weftd, &s, &err) == 0 && leads(s);
	if (s) {
		rpc_free_message(&s->base);
	}
	return yes;
}

int client_jobs(struct client *c, int weftd, bool ended, Weft__V1__ListJobsResponse **out,
		struct err *err)
{
	Weft__V1__ListJobsRequest req = WEFT__V1__LIST_JOBS_REQUEST__INIT;
	bool noted = !c->silent && ended && is_led(c, weftd);
	const int64_t begin_ns = sim_now();
	const char *target;
	int r;

	req.include_ended = ended;
	r = read_one(c, weftd, JOBS("ListJobs"), &req.base,
		     &weft__v1__list_jobs_response__descriptor, (ProtobufCMessage **)out, err);
	noted = noted && r == 0 && is_led(c, weftd);
	for (size_t i = 0; noted && (target = history_target(i)); i++) {
		if (strncmp(target, "job ", 4) == 0) {
			note_job(c, target, find_job(*out, target + 4), begin_ns);
		}
	}
	return r;
}

/* ---- who leads ---- */

static bool knows_devices(const Weft__V1__StatusResponse *s)
{
	return leads(s) && s->state != WEFT__V1__STATE__STATE_READING;
}

int client_leader(struct client *c, int domain, int64_t wait_ns)
{
	const int64_t end = sim_now() + wait_ns;

	for (;;) {
		for (int i = 0; i < cluster_scenario()->n_weftds; i++) {
			Weft__V1__StatusResponse *s = NULL;
			struct err err = { 0 };
			bool yes;

			if (cluster_domain_of(i) != domain) {
				continue;
			}
			yes = client_status(c, i, &s, &err) == 0 && knows_devices(s);
			if (s) {
				rpc_free_message(&s->base);
			}
			if (yes) {
				return i;
			}
		}
		if (sim_now() >= end) {
			return -1;
		}
		sim_sleep(LOOK_NS);
	}
}

/* It leads, has no change open, and has heard that all others are so. */
static bool is_quiet(const Weft__V1__StatusResponse *s)
{
	bool quiet = is_settled(s);

	for (size_t i = 0; i < s->n_participants; i++) {
		quiet = quiet && s->participants[i]->leader[0] && !s->participants[i]->state[0];
	}
	return quiet;
}

bool client_wait_ready(struct client *c, int64_t wait_ns)
{
	const int64_t end = sim_now() + wait_ns;
	int n_ready;

	do {
		n_ready = 0;
		for (int i = 0; i < cluster_scenario()->n_weftds; i++) {
			Weft__V1__StatusResponse *s = NULL;
			struct err err = { 0 };

			if (client_status(c, i, &s, &err) == 0) {
				n_ready += leads(s) && is_quiet(s);
				rpc_free_message(&s->base);
			}
		}
		if (n_ready == cluster_domains()) {
			return true;
		}
		sim_sleep(LOOK_NS);
	} while (sim_now() < end);
	return false;
}

/* ---- watching ---- */

struct watching {
	const struct client *c;
	int weftd;
	int64_t *after;
};

static int on_watched(const ProtobufCMessage *msg, void *arg)
{
	const Weft__V1__WatchResponse *ev = (const Weft__V1__WatchResponse *)msg;
	const struct watching *w = arg;
	bool ended = ev->kind == WEFT__V1__EVENT_KIND__EVENT_KIND_CHANGE_ENDED;

	if (!w->c->silent) {
		history_event(w->c->name, w->weftd, ev->sequence,
			      ev->kind == WEFT__V1__EVENT_KIND__EVENT_KIND_RESYNC,
			      ended ? ev->change : 0, ev->text);
	}
	*w->after = ev->sequence;
	return 0;
}

int client_watch(struct client *c, int weftd, int64_t *after, int64_t until, struct err *err)
{
	Weft__V1__WatchRequest req = WEFT__V1__WATCH_REQUEST__INIT;
	Weft__V1__Number last = WEFT__V1__NUMBER__INIT;
	struct watching w = { c, weftd, after };
	const struct request q = {
		.path = FABRIC("Watch"), .message = &req.base, .on_message = on_watched,
		.arg = &w, .response = &weft__v1__watch_response__descriptor,
		.timeout_ms = (int)((until - sim_now()) / SIM_MS) + 1,
	};

	if (*after) {
		last.value = *after;
		req.after = &last;
	}
	if (!c->silent) {
		history_watch_begin(c->name, weftd, *after);
	}
	client_try(c, weftd, &q, err);
	if (!c->silent) {
		history_watch_end(c->name);
	}
	if (err->code == WEFT_ETIMEOUT && sim_now() + SIM_MS >= until) {
		err_clear(err);
	}
	return err->code;
}
