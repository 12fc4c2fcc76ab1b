/* SPDX-License-Identifier: Apache-2.0 */
/* What happens, as those who watch are told. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/unit/daemon/fixture.h"

#define METHOD(name) "/weft.v1.FabricService/" name
#define KIND(k) WEFT__V1__EVENT_KIND__EVENT_KIND_##k
#define MOST 16384
#define VERY_MANY 2000

struct seen {
	struct fixture *f;
	int64_t after;		/* 0: from now */
	Weft__V1__EventKind until;
	bool until_resync;	/* or until it is told to resync */
	/* at the first event, on a connection of its own */
	void (*begin)(struct fixture *f);
	int n;
	int64_t sequence[MOST], generation[MOST];
	Weft__V1__EventKind kind[MOST];
	Weft__V1__Verdict verdict;
	char device[64];
};

static int on_event(const ProtobufCMessage *msg, void *arg)
{
	const Weft__V1__WatchResponse *ev = (const Weft__V1__WatchResponse *)msg;
	struct seen *s = arg;

	assert_true(s->n < MOST);
	assert_true(ev->text[0] != '\0');
	s->kind[s->n] = ev->kind;
	s->sequence[s->n] = ev->sequence;
	s->generation[s->n++] = ev->generation;
	s->verdict = ev->verdict;
	snprintf(s->device, sizeof(s->device), "%s", ev->device);
	if (s->n == 1 && s->begin) {
		s->begin(s->f);
	}
	return ev->kind == s->until ||
	       (s->until_resync && s->n > 1 && ev->kind == KIND(RESYNC));
}

/* Watches until an event of this kind. */
static void watch(struct seen *s)
{
	Weft__V1__WatchRequest req = WEFT__V1__WATCH_REQUEST__INIT;
	Weft__V1__Number after = WEFT__V1__NUMBER__INIT;
	struct rpc_client *client;
	struct err err;

	after.value = s->after;
	req.after = s->after ? &after : NULL;
	assert_int_equal(rpc_client_open(s->f->socket, 5000, &client, &err),
			 0);
	assert_int_equal(rpc_client_call(client, METHOD("Watch"), &req.base,
					 &weft__v1__watch_response__descriptor,
					 30000, on_event, s, NULL, &err),
			 WEFT_ECANCELED);
	rpc_client_close(client);
}

static int ignore(const ProtobufCMessage *msg, void *arg)
{
	(void)msg, (void)arg;
	return 0;
}

static int apply_text(struct fixture *f, const char *text)
{
	Weft__V1__ApplyRequest req;

	weft__v1__apply_request__init(&req);
	req.source_case = WEFT__V1__APPLY_REQUEST__SOURCE_CONFIG;
	req.config.data = (uint8_t *)text;
	req.config.len = strlen(text);
	return rpc_client_call(f->client, METHOD("Apply"), &req.base,
			       &weft__v1__apply_response__descriptor, 30000,
			       ignore, NULL, NULL, &f->err);
}

static void apply_ring(struct fixture *f)
{
	assert_int_equal(apply_text(f, make_fabric(f, "", "Ring(4)")), 0);
}

static void test_a_change(void **state)
{
	struct fixture *f = *state;
	struct seen s = { .f = f, .until = KIND(CHANGE_ENDED),
			  .begin = apply_ring };
	struct seen again = { .f = f, .until = KIND(CHANGE_ENDED) };

	watch(&s);
	assert_int_equal(s.kind[0], KIND(RESYNC));
	assert_int_equal(s.generation[s.n - 1], s.generation[0] + 1);
	assert_int_equal(s.verdict, WEFT__V1__VERDICT__VERDICT_COMMITTED);
	for (int i = 1; i < s.n; i++) {
		assert_true(s.sequence[i] > s.sequence[i - 1]);
		assert_true(s.kind[i] != KIND(RESYNC));
	}
	/* Going on from the first one tells the same events once more. */
	again.after = s.sequence[0];
	watch(&again);
	assert_int_equal(again.n, s.n - 1);
	assert_memory_equal(again.kind, s.kind + 1,
			    (size_t)again.n * sizeof(s.kind[0]));
}

/* Two events each, and no device is touched. */
static void refused(struct fixture *f, int n)
{
	for (int i = 0; i < n; i++) {
		assert_int_equal(apply_text(f, "weft: 1\n"), WEFT_EINVAL);
	}
}

static void very_many(struct fixture *f)
{
	refused(f, VERY_MANY);
}

static void test_too_old(void **state)
{
	struct fixture *f = *state;
	struct seen s = { .f = f, .until = KIND(CHANGE_ENDED),
			  .begin = apply_ring };
	struct seen old = { .f = f, .until = KIND(RESYNC) };

	watch(&s);
	refused(f, 700);
	old.after = s.sequence[0];	/* no longer kept */
	watch(&old);
	assert_int_equal(old.n, 1);
	assert_true(old.sequence[0] >= s.sequence[0] + 1400);
	old.n = 0;
	old.after = INT64_MAX;		/* of another clock */
	watch(&old);
	assert_int_equal(old.n, 1);
}

/* One that does not read while more happens than is kept, and than lies in
 * the sockets: it has what was sent, then it is told to resync, and the
 * events after that; never a gap that it is not told of. */
static void test_one_that_sleeps(void **state)
{
	struct fixture *f = *state;
	static struct seen s;
	int resyncs = 0;

	s = (struct seen){ .f = f, .until = KIND(DRIFT_RESOLVED),
			   .begin = very_many, .until_resync = true };
	watch(&s);
	for (int i = 1; i < s.n; i++) {
		resyncs += s.kind[i] == KIND(RESYNC);
		assert_true(s.kind[i] == KIND(RESYNC) ||
			    s.sequence[i] == s.sequence[i - 1] + 1);
	}
	assert_int_equal(resyncs, 1);
	assert_true(s.sequence[s.n - 1] >= s.sequence[0] + 2 * VERY_MANY);
	assert_true(s.n < 2 * VERY_MANY);
}

/* Until what the job has left is known, which is told as an event. */
static void wait_for_jobs(struct fixture *f)
{
	Weft__V1__StatusRequest req = WEFT__V1__STATUS_REQUEST__INIT;
	bool known = false;

	while (!known) {
		ProtobufCMessage *res;
		const Weft__V1__StatusResponse *s;

		assert_int_equal(rpc_client_unary(f->client, METHOD("Status"), &req.base,
						  &weft__v1__status_response__descriptor,
						  30000, &res, &f->err), 0);
		s = (const Weft__V1__StatusResponse *)res;
		known = s->n_jobs > 0 && s->jobs[0]->degradation;
		protobuf_c_message_free_unpacked(res, NULL);
	}
}

/* The switch's light is gone, and comes back. */
static void lose_light(struct fixture *f)
{
	Weft__V1__VerifyRequest req = WEFT__V1__VERIFY_REQUEST__INIT;
	ProtobufCMessage *res;
	char path[128];

	snprintf(path, sizeof(path), "%s/ocs0.map", f->dir);
	daemon_down(f);
	unlink(path);
	daemon_up(f);
	assert_int_equal(rpc_client_unary(f->client, METHOD("Verify"),
					  &req.base,
					  &weft__v1__diff_response__descriptor,
					  30000, &res, &f->err),
			 0);
	protobuf_c_message_free_unpacked(res, NULL);
	wait_for_jobs(f);
}

static void test_drift(void **state)
{
	struct fixture *f = *state;
	struct seen s = { .f = f, .until = KIND(CHANGE_ENDED),
			  .begin = apply_ring };
	struct seen drift = { .f = f, .until = KIND(DRIFT_FOUND) };
	struct seen gone = { .f = f, .until = KIND(DRIFT_RESOLVED),
			     .begin = apply_ring };

	watch(&s);
	lose_light(f);
	watch(&gone);
	assert_string_equal(gone.device, "ocs0");
	/* This weftd's first words: what it found, that all were asked, and what
	 * the job has left. */
	drift.after = gone.sequence[0] - 3;
	watch(&drift);
	assert_string_equal(drift.device, "ocs0");
	assert_true(gone.sequence[0] > s.sequence[s.n - 1]);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_a_change),
		T(test_too_old),
		T(test_one_that_sleeps),
		T(test_drift),
	};

	return cmocka_run_group_tests_name("daemon/event_stream", tests, NULL, NULL);
}
