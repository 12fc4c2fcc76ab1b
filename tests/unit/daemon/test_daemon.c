/* SPDX-License-Identifier: Apache-2.0 */
/* weftd as its clients see it, on simulated devices. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <sys/wait.h>

#include "collective/schedule/schedule.h"
#include "controller/model/model.h"
#include "lib/base/alloc.h"
#include "tests/unit/daemon/fixture.h"
#include "weft/v1/jobs.pb-c.h"

#define METHOD(name) "/weft.v1.FabricService/" name
#define RING "Ring(4)"
#define OTHER "UniRing(1,4)"

/* ---- calls --------------------------------------------------------------- */

struct outcome {
	bool has_result;
	Weft__V1__Verdict verdict;
	int64_t change, generation;
	Weft__V1__Proof level;
	int events, problems;
};

static int on_event(const ProtobufCMessage *msg, void *arg)
{
	const Weft__V1__ChangeEvent *ev = ((const Weft__V1__ApplyResponse *)msg)->event;
	struct outcome *o = arg;

	o->events++;
	o->problems += ev->is_problem;
	if (ev->result) {
		assert_false(o->has_result);
		o->has_result = true;
		o->verdict = ev->result->verdict;
		o->change = ev->result->change;
		o->generation = ev->result->generation;
		o->level = ev->result->proof;
	}
	return 0;
}

static int call_change(struct fixture *f, const char *method,
		       const ProtobufCMessage *req, struct outcome *o)
{
	memset(o, 0, sizeof(*o));
	return rpc_client_call(f->client, method, req,
			       &weft__v1__apply_response__descriptor, 30000,
			       on_event, o, NULL, &f->err);
}

static void config_request(Weft__V1__ApplyRequest *req, const char *text)
{
	weft__v1__apply_request__init(req);
	req->name = "small.yaml";
	req->source_case = WEFT__V1__APPLY_REQUEST__SOURCE_CONFIG;
	req->config.data = (uint8_t *)text;
	req->config.len = strlen(text);
}

static int apply_text(struct fixture *f, const char *text, struct outcome *o)
{
	Weft__V1__ApplyRequest req;

	config_request(&req, text);
	return call_change(f, METHOD("Apply"), &req.base, o);
}

static void must_commit(struct fixture *f, const char *text)
{
	struct outcome o;

	assert_int_equal(apply_text(f, text, &o), 0);
	assert_true(o.has_result);
	assert_int_equal(o.verdict, WEFT__V1__VERDICT__VERDICT_COMMITTED);
}

static Weft__V1__StatusResponse *get_status(struct fixture *f)
{
	Weft__V1__StatusRequest req = WEFT__V1__STATUS_REQUEST__INIT;
	ProtobufCMessage *msg = NULL;

	assert_int_equal(
		rpc_client_unary(f->client, METHOD("Status"), &req.base,
				 &weft__v1__status_response__descriptor,
				 10000, &msg, &f->err),
		0);
	return (Weft__V1__StatusResponse *)msg;
}

static Weft__V1__DiffResponse *compare(struct fixture *f, const char *method,
				       const ProtobufCMessage *req)
{
	ProtobufCMessage *msg = NULL;

	assert_int_equal(
		rpc_client_unary(f->client, method, req,
				 &weft__v1__diff_response__descriptor, 10000,
				 &msg, &f->err),
		0);
	return (Weft__V1__DiffResponse *)msg;
}

static Weft__V1__DiffResponse *verify(struct fixture *f)
{
	Weft__V1__VerifyRequest req = WEFT__V1__VERIFY_REQUEST__INIT;

	return compare(f, METHOD("Verify"), &req.base);
}

struct planned {
	Weft__V1__PlanSummary summary;	/* numbers only */
	int devices, jobs;
	struct buf file;
};

static int on_part(const ProtobufCMessage *msg, void *arg)
{
	const Weft__V1__PlanResponse *part = (const Weft__V1__PlanResponse *)msg;
	struct planned *p = arg;

	if (part->part_case == WEFT__V1__PLAN_RESPONSE__PART_SUMMARY) {
		p->summary = *part->summary;
	} else if (part->part_case == WEFT__V1__PLAN_RESPONSE__PART_FILE) {
		buf_add(&p->file, part->file.data, part->file.len);
	}
	p->devices += part->part_case == WEFT__V1__PLAN_RESPONSE__PART_DEVICE;
	p->jobs += part->part_case == WEFT__V1__PLAN_RESPONSE__PART_JOB;
	return 0;
}

static int make_plan(struct fixture *f, const char *text, struct planned *p)
{
	Weft__V1__PlanRequest req = WEFT__V1__PLAN_REQUEST__INIT;

	memset(p, 0, sizeof(*p));
	req.name = "small.yaml";
	req.config.data = (uint8_t *)text;
	req.config.len = strlen(text);
	req.want_file = true;
	return rpc_client_call(f->client, METHOD("Plan"), &req.base,
			       &weft__v1__plan_response__descriptor, 30000,
			       on_part, p, NULL, &f->err);
}

static int apply_file(struct fixture *f, const struct buf *file,
		      struct outcome *o)
{
	Weft__V1__ApplyRequest req;

	weft__v1__apply_request__init(&req);
	req.source_case = WEFT__V1__APPLY_REQUEST__SOURCE_PLAN_FILE;
	req.plan_file.data = (uint8_t *)file->data;
	req.plan_file.len = file->len;
	return call_change(f, METHOD("Apply"), &req.base, o);
}

static int rollback_to(struct fixture *f, const int64_t *generation,
		       struct outcome *o)
{
	Weft__V1__RollbackRequest req = WEFT__V1__ROLLBACK_REQUEST__INIT;
	Weft__V1__Number to = WEFT__V1__NUMBER__INIT;

	if (generation) {
		to.value = *generation;
		req.to = &to;
	}
	return call_change(f, METHOD("Rollback"), &req.base, o);
}

/* ---- tests --------------------------------------------------------------- */

static void test_empty(void **state)
{
	struct fixture *f = *state;
	Weft__V1__PlanRequest req = WEFT__V1__PLAN_REQUEST__INIT;
	Weft__V1__StatusResponse *s = get_status(f);
	struct planned p = { .devices = 0 };
	struct outcome o;

	assert_true(s->state == WEFT__V1__STATE__STATE_EMPTY ||
		    s->state == WEFT__V1__STATE__STATE_READING);
	assert_int_equal(s->n_devices, 0);
	assert_null(s->last_change);
	weft__v1__status_response__free_unpacked(s, NULL);
	assert_int_equal(rpc_client_call(f->client, METHOD("Plan"), &req.base,
					 &weft__v1__plan_response__descriptor,
					 10000, on_part, &p, NULL, &f->err),
			 WEFT_ENOTFOUND);
	assert_int_equal(rollback_to(f, NULL, &o), WEFT_ENOTFOUND);
	assert_false(o.has_result);
}

static void test_plan_changes_nothing(void **state)
{
	struct fixture *f = *state;
	const char *text = make_fabric(f, "", RING);
	Weft__V1__StatusResponse *s;
	struct planned p;

	assert_int_equal(make_plan(f, text, &p), 0);
	assert_int_equal(p.summary.add, 8);
	assert_int_equal(p.summary.delete_, 0);
	assert_false(p.summary.nothing_to_do);
	assert_true(p.summary.new_config);
	assert_int_equal(p.summary.unread, 0);
	assert_int_equal(p.devices, 1);
	assert_int_equal(p.jobs, 1);
	buf_fini(&p.file);
	s = get_status(f);
	assert_int_equal(s->state, WEFT__V1__STATE__STATE_EMPTY);
	assert_int_equal(s->devices[0]->circuits, 0);
	weft__v1__status_response__free_unpacked(s, NULL);
}

static void test_apply_then_nothing_to_do(void **state)
{
	struct fixture *f = *state;
	const char *text = make_fabric(f, "", RING);
	Weft__V1__StatusResponse *s;
	struct planned p;
	struct outcome o;

	assert_int_equal(apply_text(f, text, &o), 0);
	assert_int_equal(o.verdict, WEFT__V1__VERDICT__VERDICT_COMMITTED);
	assert_true(o.events > 1);
	assert_int_equal(o.problems, 0);
	assert_true(o.level >= WEFT__V1__PROOF__PROOF_READ_BACK);
	s = get_status(f);
	assert_int_equal(s->state, WEFT__V1__STATE__STATE_READY);
	assert_int_equal(s->generation, o.generation);
	assert_int_equal(s->n_devices, 1);
	assert_int_equal(s->devices[0]->circuits, 8);
	assert_int_equal(s->devices[0]->n_missing, 0);
	assert_true(s->jobs_known);
	assert_int_equal(s->n_jobs, 1);
	assert_string_equal(s->jobs[0]->name, "reduce");
	assert_string_equal(s->jobs[0]->devices[0], "ocs0");
	assert_string_equal(s->last_change->outcome, "committed");
	weft__v1__status_response__free_unpacked(s, NULL);

	assert_int_equal(make_plan(f, text, &p), 0);
	assert_true(p.summary.nothing_to_do);
	assert_false(p.summary.new_config);
	assert_int_equal(p.summary.keep, 8);
	buf_fini(&p.file);
	assert_int_equal(apply_text(f, text, &o), 0);
	assert_int_equal(o.verdict, WEFT__V1__VERDICT__VERDICT_NOTHING_TO_DO);
}

static void test_plan_file_grows_stale(void **state)
{
	struct fixture *f = *state;
	struct planned p, old;
	struct outcome o;

	assert_int_equal(make_plan(f, make_fabric(f, "", OTHER), &old), 0);
	assert_int_equal(make_plan(f, make_fabric(f, "", RING), &p), 0);
	assert_int_equal(apply_file(f, &p.file, &o), 0);
	assert_int_equal(o.verdict, WEFT__V1__VERDICT__VERDICT_COMMITTED);
	assert_int_equal(apply_file(f, &p.file, &o), WEFT_ESTALE);
	assert_int_equal(apply_file(f, &old.file, &o), WEFT_ESTALE);
	assert_false(o.has_result);
	buf_fini(&p.file);
	buf_fini(&old.file);
}

/* The state is the same, but the devices have lost their light meanwhile:
 * what was approved is not what would happen. */
static void test_plan_file_of_other_devices(void **state)
{
	struct fixture *f = *state;
	struct planned p;
	struct outcome o;
	char path[96];

	must_commit(f, make_fabric(f, "", RING));
	assert_int_equal(make_plan(f, make_fabric(f, "", OTHER), &p), 0);
	assert_true(p.summary.delete_ > 0);
	daemon_down(f);
	snprintf(path, sizeof(path), "%s/ocs0.map", f->dir);
	assert_int_equal(unlink(path), 0);
	daemon_up(f);
	assert_int_equal(apply_file(f, &p.file, &o), WEFT_ESTALE);
	assert_non_null(strstr(f->err.msg, "devices"));
	buf_fini(&p.file);
}

static void test_expected_generation(void **state)
{
	struct fixture *f = *state;
	Weft__V1__Number n = WEFT__V1__NUMBER__INIT;
	Weft__V1__ApplyRequest req;
	struct outcome o;

	config_request(&req, make_fabric(f, "", RING));
	n.value = 4711;
	req.expected_generation = &n;
	assert_int_equal(call_change(f, METHOD("Apply"), &req.base, &o),
			 WEFT_ESTALE);
	assert_non_null(strstr(f->err.msg, "4711"));
	must_commit(f, make_fabric(f, "", RING));
}

static void test_wrong_configuration(void **state)
{
	struct fixture *f = *state;
	struct planned p;
	struct outcome o;

	assert_int_equal(make_plan(f, "weft: 1\nfabric: x\nhots: []\n", &p),
			 WEFT_EINVAL);
	assert_string_equal(f->err.file, "small.yaml");
	assert_int_equal(f->err.line, 1);	/* "hosts" is missing, before "hots" */
	assert_int_equal(apply_text(f, "", &o), WEFT_EINVAL);
	assert_int_equal(
		make_plan(f, make_fabric(f, "colour: red", RING), &p),
		WEFT_EINVAL);
	assert_non_null(strstr(f->err.msg, "colour"));
	/* and the daemon is none the worse */
	must_commit(f, make_fabric(f, "", RING));
}

static void test_refused_circuit_is_rolled_back(void **state)
{
	struct fixture *f = *state;
	Weft__V1__DiffResponse *d;
	struct outcome o;

	assert_true(apply_text(f, make_fabric(f, "refuse: o5", RING), &o) <
		    0);
	assert_true(o.has_result);
	assert_int_equal(o.verdict, WEFT__V1__VERDICT__VERDICT_ROLLED_BACK);
	assert_true(o.problems > 0);
	assert_non_null(strstr(f->err.msg, "ocs0"));
	d = verify(f);
	assert_true(d->diff->same);
	weft__v1__diff_response__free_unpacked(d, NULL);
}

static void test_rollback(void **state)
{
	struct fixture *f = *state;
	struct outcome first, o;
	int64_t nowhere = 999;

	assert_int_equal(apply_text(f, make_fabric(f, "", RING), &first), 0);
	assert_int_equal(rollback_to(f, NULL, &o), WEFT_ENOTFOUND);
	must_commit(f, make_fabric(f, "", OTHER));
	assert_int_equal(rollback_to(f, NULL, &o), 0);
	assert_int_equal(o.verdict, WEFT__V1__VERDICT__VERDICT_COMMITTED);
	assert_int_equal(rollback_to(f, &first.generation, &o), 0);
	assert_int_equal(o.verdict, WEFT__V1__VERDICT__VERDICT_NOTHING_TO_DO);
	assert_int_equal(rollback_to(f, &nowhere, &o), WEFT_ENOTFOUND);
	assert_non_null(strstr(f->err.msg, "999"));
}

static size_t count_history(struct fixture *f)
{
	Weft__V1__HistoryRequest req = WEFT__V1__HISTORY_REQUEST__INIT;
	ProtobufCMessage *msg = NULL;
	size_t n;

	assert_int_equal(
		rpc_client_unary(f->client, METHOD("History"), &req.base,
				 &weft__v1__history_response__descriptor,
				 10000, &msg, &f->err),
		0);
	n = ((Weft__V1__HistoryResponse *)msg)->n_changes;
	rpc_free_message(msg);
	return n;
}

static void test_same_request_runs_once(void **state)
{
	struct fixture *f = *state;
	Weft__V1__ApplyRequest req;
	struct outcome first, second;

	config_request(&req, make_fabric(f, "", RING));
	req.request_id = "seventeen";
	req.comment = "only once";
	assert_int_equal(call_change(f, METHOD("Apply"), &req.base, &first),
			 0);
	assert_int_equal(call_change(f, METHOD("Apply"), &req.base, &second),
			 0);
	assert_int_equal(second.verdict, first.verdict);
	assert_int_equal(second.change, first.change);
	assert_int_equal(count_history(f), 1);
	req.comment = "another time";
	assert_int_equal(call_change(f, METHOD("Apply"), &req.base, &second), WEFT_EINVAL);
	assert_int_equal(count_history(f), 1);
}

/* An unknown value and a string without end never reach a handler. */
static void test_values_are_bounded(void **state)
{
	struct fixture *f = *state;
	Weft__V1__DrainRequest drain = WEFT__V1__DRAIN_REQUEST__INIT;
	Weft__V1__ApplyRequest req;
	ProtobufCMessage *msg = NULL;
	struct outcome o;
	char reason[5000];

	config_request(&req, make_fabric(f, "", RING));
	req.mode = (Weft__V1__Mode)7;
	assert_int_equal(call_change(f, METHOD("Apply"), &req.base, &o), WEFT_EINVAL);
	assert_non_null(strstr(f->err.msg, "weft.v1.ApplyRequest.mode: 7 is no Mode"));
	memset(reason, 'x', sizeof(reason) - 1);
	reason[sizeof(reason) - 1] = '\0';
	drain.target = "ocs0";
	drain.reason = reason;
	assert_int_equal(rpc_client_unary(f->client, METHOD("Drain"), &drain.base,
					  &weft__v1__drain_response__descriptor, 10000, &msg,
					  &f->err), WEFT_EINVAL);
	assert_non_null(strstr(f->err.msg, "weft.v1.DrainRequest.reason: 4999 bytes long"));
}

/* ---- two at a time ------------------------------------------------------- */

struct slow_change {
	struct fixture *f;
	struct rpc_client *client;
	const char *text;
	volatile bool leave;
	struct outcome o;
	int rc;
};

static void *run_slow(void *arg)
{
	struct slow_change *s = arg;
	Weft__V1__ApplyRequest req;
	struct err err = { 0 };

	config_request(&req, s->text);
	req.request_id = "slow";
	s->rc = rpc_client_call(s->client, METHOD("Apply"), &req.base,
				&weft__v1__apply_response__descriptor, 30000,
				on_event, &s->o, &s->leave, &err);
	return NULL;
}

static void start_slow(struct slow_change *s, struct fixture *f,
		       pthread_t *thread)
{
	static char text[1024];

	memset(s, 0, sizeof(*s));
	strcpy(text, make_fabric(f, "delay_ms: 150", RING));
	s->f = f;
	s->text = text;
	assert_int_equal(rpc_client_open(f->socket, 5000, &s->client,
					 &f->err), 0);
	pthread_create(thread, NULL, run_slow, s);
	for (;;) {
		Weft__V1__StatusResponse *st = get_status(f);
		bool changing =
			st->state == WEFT__V1__STATE__STATE_CHANGING;

		weft__v1__status_response__free_unpacked(st, NULL);
		if (changing) {
			return;
		}
		usleep(2000);
	}
}

static void test_one_change_at_a_time(void **state)
{
	struct fixture *f = *state;
	struct slow_change s;
	struct outcome o;
	pthread_t thread;

	start_slow(&s, f, &thread);
	assert_int_equal(apply_text(f, make_fabric(f, "", OTHER), &o),
			 WEFT_ESTALE);
	pthread_join(thread, NULL);
	rpc_client_close(s.client);
	assert_int_equal(s.rc, 0);
	assert_int_equal(s.o.verdict, WEFT__V1__VERDICT__VERDICT_COMMITTED);
}

static void test_cancel(void **state)
{
	struct fixture *f = *state;
	Weft__V1__CancelRequest req = WEFT__V1__CANCEL_REQUEST__INIT;
	struct slow_change s;
	struct outcome o;
	Weft__V1__DiffResponse *d;
	pthread_t thread;

	assert_int_equal(call_change(f, METHOD("Cancel"), &req.base, &o),
			 WEFT_ENOTFOUND);
	start_slow(&s, f, &thread);
	req.request_id = "slow";
	assert_int_equal(call_change(f, METHOD("Cancel"), &req.base, &o),
			 WEFT_ECANCELED);
	pthread_join(thread, NULL);
	rpc_client_close(s.client);
	assert_true(o.has_result && s.o.has_result);
	assert_int_equal(o.verdict, s.o.verdict);
	assert_true(o.verdict == WEFT__V1__VERDICT__VERDICT_REFUSED ||
		    o.verdict == WEFT__V1__VERDICT__VERDICT_ROLLED_BACK);
	d = verify(f);
	assert_true(d->diff->same);
	weft__v1__diff_response__free_unpacked(d, NULL);
	/* asking late gets the same answer */
	assert_int_equal(call_change(f, METHOD("Cancel"), &req.base, &o),
			 WEFT_ECANCELED);
	assert_int_equal(o.verdict, s.o.verdict);
}

static void test_second_caller_watches(void **state)
{
	struct fixture *f = *state;
	Weft__V1__ApplyRequest req;
	struct slow_change s;
	struct outcome o;
	pthread_t thread;

	start_slow(&s, f, &thread);
	config_request(&req, s.text);
	req.request_id = "slow";
	assert_int_equal(call_change(f, METHOD("Apply"), &req.base, &o), 0);
	pthread_join(thread, NULL);
	rpc_client_close(s.client);
	assert_int_equal(o.verdict, WEFT__V1__VERDICT__VERDICT_COMMITTED);
	assert_int_equal(o.change, s.o.change);
	assert_int_equal(count_history(f), 1);
}

/* A client that goes away does not stop what it began. */
static void test_client_goes_away(void **state)
{
	struct fixture *f = *state;
	Weft__V1__StatusResponse *st;
	struct slow_change s;
	pthread_t thread;
	Weft__V1__State now;

	start_slow(&s, f, &thread);
	__atomic_store_n(&s.leave, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	rpc_client_close(s.client);
	assert_int_equal(s.rc, WEFT_ECANCELED);
	do {
		st = get_status(f);
		now = st->state;
		weft__v1__status_response__free_unpacked(st, NULL);
		usleep(2000);
	} while (now == WEFT__V1__STATE__STATE_CHANGING);
	st = get_status(f);
	assert_string_equal(st->last_change->outcome, "committed");
	weft__v1__status_response__free_unpacked(st, NULL);
}

/* ---- the rest ------------------------------------------------------------ */

static int on_piece(const ProtobufCMessage *msg, void *arg)
{
	const Weft__V1__GetScheduleResponse *p =
		(const Weft__V1__GetScheduleResponse *)msg;

	buf_add(arg, p->data.data, p->data.len);
	return 0;
}

/* rank -1: all of it. */
static int get_part(struct fixture *f, char *job, int rank, struct buf *b)
{
	Weft__V1__GetScheduleRequest req =
		WEFT__V1__GET_SCHEDULE_REQUEST__INIT;
	Weft__V1__Number number = WEFT__V1__NUMBER__INIT;

	number.value = rank;
	req.job = job;
	req.rank = rank < 0 ? NULL : &number;
	return rpc_client_call(f->client, METHOD("GetSchedule"), &req.base,
			       &weft__v1__get_schedule_response__descriptor, 30000,
			       on_piece, b, NULL, &f->err);
}

static int get_schedule(struct fixture *f, char *job, struct buf *b)
{
	return get_part(f, job, -1, b);
}

/* A rank is given what one who has the whole schedule cuts out for it. */
static void must_give_parts(struct fixture *f, char *job, const struct coll_sched *s)
{
	struct buf got = { 0 }, want = { 0 };
	struct coll_sched *part;

	for (int rank = 0; rank < coll_ranks(s); rank++) {
		buf_reset(&got);
		buf_reset(&want);
		assert_int_equal(get_part(f, job, rank, &got), 0);
		assert_int_equal(coll_part_of(s, rank, &part, &f->err), 0);
		coll_to_proto(part, &want);
		coll_free(part);
		assert_int_equal(got.len, want.len);
		assert_memory_equal(got.data, want.data, want.len);
	}
	assert_int_equal(get_part(f, job, coll_ranks(s), &got), WEFT_EINVAL);
	buf_fini(&got);
	buf_fini(&want);
}

static void test_schedule(void **state)
{
	struct fixture *f = *state;
	struct coll_sched *s = NULL;
	struct buf b = { 0 };

	assert_int_equal(get_schedule(f, "reduce", &b), WEFT_ENOTFOUND);
	must_commit(f, make_fabric(f, "", RING));
	assert_int_equal(get_schedule(f, "nosuch", &b), WEFT_ENOTFOUND);
	assert_int_equal(b.len, 0);
	assert_int_equal(get_schedule(f, "reduce", &b), 0);
	assert_int_equal(coll_from_bytes(b.data, b.len, &s, &f->err), 0);
	assert_int_equal(coll_verify(s, NULL, &f->err), 0);
	assert_int_equal(coll_ranks(s), 4);
	must_give_parts(f, "reduce", s);
	coll_free(s);
	buf_fini(&b);
}

static void test_restart_keeps_everything(void **state)
{
	struct fixture *f = *state;
	Weft__V1__StatusResponse *s;
	Weft__V1__DiffResponse *d;
	char uuid[64];

	must_commit(f, make_fabric(f, "", RING));
	s = get_status(f);
	snprintf(uuid, sizeof(uuid), "%s", s->state_uuid);
	weft__v1__status_response__free_unpacked(s, NULL);
	daemon_down(f);
	daemon_up(f);
	d = verify(f);
	assert_true(d->diff->same && d->diff->complete);
	assert_int_equal(d->diff->devices[0]->circuits, 8);
	weft__v1__diff_response__free_unpacked(d, NULL);
	s = get_status(f);
	assert_string_equal(s->state_uuid, uuid);
	assert_string_equal(s->fabric, "small");
	assert_string_equal(s->last_change->outcome, "committed");
	weft__v1__status_response__free_unpacked(s, NULL);
}

static void test_lost_light_is_named(void **state)
{
	struct fixture *f = *state;
	Weft__V1__DiffResponse *d;
	char path[96];

	must_commit(f, make_fabric(f, "", RING));
	daemon_down(f);
	snprintf(path, sizeof(path), "%s/ocs0.map", f->dir);
	assert_int_equal(unlink(path), 0);
	daemon_up(f);
	d = verify(f);
	assert_false(d->diff->same);
	assert_int_equal(d->diff->devices[0]->n_missing, 8);
	assert_int_equal(d->diff->devices[0]->proof,
			 WEFT__V1__PROOF__PROOF_UNVERIFIED);
	assert_string_equal(d->diff->devices[0]->missing[0]->from, "gpu0.p0");
	assert_int_equal(d->diff->devices[0]->missing[0]->in, 1);
	weft__v1__diff_response__free_unpacked(d, NULL);
}

/* Planning for other devices closes those of the present fabric for a
 * moment; they are read again by themselves. */
static void test_plan_for_other_devices(void **state)
{
	struct fixture *f = *state;
	Weft__V1__StatusResponse *s;
	Weft__V1__State now;
	struct planned p;

	must_commit(f, make_fabric(f, "", RING));
	assert_int_equal(make_plan(f, make_fabric(f, "seed: 2", RING), &p),
			 0);
	buf_fini(&p.file);
	do {
		s = get_status(f);
		now = s->state;
		weft__v1__status_response__free_unpacked(s, NULL);
		usleep(2000);
	} while (now == WEFT__V1__STATE__STATE_READING);
	assert_int_equal(now, WEFT__V1__STATE__STATE_READY);
	s = get_status(f);
	assert_true(s->devices[0]->reachable);
	assert_int_equal(s->devices[0]->n_missing, 0);
	assert_true(s->jobs_known);
	weft__v1__status_response__free_unpacked(s, NULL);
}

/* A socket that cannot be made leaves nothing behind. */
static void test_no_socket(void **state)
{
	struct fixture *f = *state;
	struct daemon_config cfg = {
		.socket = "/nonexistent/sock", .socket_mode = 0600,
	};
	struct daemon *second = NULL;
	char dir[96];
	uv_loop_t loop;

	snprintf(dir, sizeof(dir), "%s/second", f->dir);
	cfg.state_dir = dir;
	assert_int_equal(uv_loop_init(&loop), 0);
	assert_true(daemon_new(&loop, &cfg, &second, &f->err) < 0);
	assert_null(second);
	assert_int_equal(uv_loop_close(&loop), 0);
}

static void test_store_is_locked(void **state)
{
	struct fixture *f = *state;
	struct daemon_config cfg = {
		.socket = "/nonexistent/sock", .state_dir = f->state,
	};
	struct daemon *second = NULL;
	uv_loop_t loop;

	assert_int_equal(uv_loop_init(&loop), 0);
	assert_int_equal(daemon_new(&loop, &cfg, &second, &f->err),
			 WEFT_ESTALE);
	assert_null(second);
	assert_int_equal(uv_loop_close(&loop), 0);
}

/* As another user: may look, may not change. Returns an exit code. */
static int try_as_nobody(const char *socket)
{
	struct fixture f = { .client = NULL };
	Weft__V1__StatusRequest req = WEFT__V1__STATUS_REQUEST__INIT;
	ProtobufCMessage *msg = NULL;
	struct outcome o;

	if (setuid(65534) || rpc_client_open(socket, 5000, &f.client, &f.err)) {
		return 1;
	}
	if (rpc_client_unary(f.client, METHOD("Status"), &req.base,
			     &weft__v1__status_response__descriptor, 10000,
			     &msg, &f.err)) {
		return 2;
	}
	rpc_free_message(msg);
	if (rollback_to(&f, NULL, &o) != WEFT_EDENIED || o.has_result) {
		return 3;
	}
	rpc_client_close(f.client);
	return 0;
}

static void test_others_may_only_look(void **state)
{
	struct fixture *f = *state;
	int status;
	pid_t pid;

	if (geteuid() != 0) {
		skip();
	}
	pid = fork();
	if (pid == 0) {
		_exit(try_as_nobody(f->socket));
	}
	waitpid(pid, &status, 0);
	assert_int_equal(WEXITSTATUS(status), 0);
}

static int on_job(const ProtobufCMessage *msg, void *arg)
{
	(void)msg;
	(void)arg;
	fail();
	return 0;
}

/* More than any fabric has is refused before it is looked for. */
static void refuse_many(struct fixture *f, size_t n_nodes, size_t n_ports, const char *why)
{
	Weft__V1__RequestJobRequest req = WEFT__V1__REQUEST_JOB_REQUEST__INIT;

	req.collective = "allgather";
	req.size_bytes = 1 << 20;
	req.n_nodes = n_nodes;
	req.n_ports = n_ports;
	req.nodes = x_new(n_nodes + n_ports, sizeof(*req.nodes));
	req.ports = req.nodes + n_nodes;
	for (size_t i = 0; i < n_nodes + n_ports; i++) {
		req.nodes[i] = "h";
	}
	assert_int_equal(rpc_client_call(f->client, "/weft.v1.JobsService/RequestJob", &req.base,
					 &weft__v1__request_job_response__descriptor, 10000,
					 on_job, NULL, NULL, &f->err), WEFT_ELIMIT);
	assert_non_null(strstr(f->err.msg, why));
	free(req.nodes);
}

static void test_too_many_nodes(void **state)
{
	refuse_many(*state, MODEL_MAX_HOSTS + 1, 0, "nodes: 65537");
	refuse_many(*state, 1024, MODEL_MAX_PORTS / 1024 + 1, "ports: 1025 of each of 1024 nodes");
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_empty),
		T(test_plan_changes_nothing),
		T(test_apply_then_nothing_to_do),
		T(test_plan_file_grows_stale),
		T(test_plan_file_of_other_devices),
		T(test_expected_generation),
		T(test_wrong_configuration),
		T(test_refused_circuit_is_rolled_back),
		T(test_rollback),
		T(test_same_request_runs_once),
		T(test_values_are_bounded),
		T(test_too_many_nodes),
		T(test_one_change_at_a_time),
		T(test_cancel),
		T(test_second_caller_watches),
		T(test_client_goes_away),
		T(test_schedule),
		T(test_restart_keeps_everything),
		T(test_lost_light_is_named),
		T(test_plan_for_other_devices),
		T(test_no_socket),
		T(test_store_is_locked),
		T(test_others_may_only_look),
	};

	return cmocka_run_group_tests_name("daemon/daemon", tests, NULL, NULL);
}
