/* SPDX-License-Identifier: Apache-2.0 */
/* The server against peers that break the rules, or stretch them. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/unit/rpc/fixture.h"
#include "tests/unit/rpc/wire.h"

#define EMPTY_MESSAGE "\0\0\0\0"	/* and the terminating zero */
#define WINDOW 65535

/* One call with this request body; expects a line in the answer. */
static void expect(struct fixture *f, const struct buf *more,
		   const void *body, size_t len, const char *text)
{
	struct wire w = wire_open(f->path);

	put_hello(&w.out, WINDOW);
	put_call(&w.out, 1, "/test.T/Echo", more);
	put_data(&w.out, 1, true, body, len);
	wire_send(&w);
	wire_expect(&w, text);
	wire_close(&w);
}

/* The server still serves. */
static void expect_alive(struct fixture *f)
{
	struct rpc_client *c = dial(f);
	struct item request = item_named("alive");
	ProtobufCMessage *reply;
	struct err err;

	assert_int_equal(rpc_client_unary(c, "/test.T/Echo", &request.base,
					  &item_type, 5000, &reply, &err),
			 0);
	rpc_free_message(reply);
	rpc_client_close(c);
}

static void test_plain_call(void **state)
{
	struct fixture *f = start();

	(void)state;
	/* No :authority at all, as some clients do on unix sockets. */
	expect(f, NULL, EMPTY_MESSAGE, 5,
	       "data 1 5\ngrpc-status: 0\nheaders 1 end\n");
	stop(f);
}

static void test_authority_is_a_path(void **state)
{
	struct fixture *f = start();
	struct buf more = { 0 };

	(void)state;
	put_text(&more, ":authority", f->path);
	expect(f, &more, EMPTY_MESSAGE, 5, "grpc-status: 0\n");
	buf_fini(&more);
	stop(f);
}

static void test_garbage(void **state)
{
	struct fixture *f = start();
	struct wire w;

	(void)state;
	w = wire_open(f->path);
	buf_str(&w.out, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
	wire_send(&w);
	wire_expect(&w, "eof\n");
	wire_close(&w);

	w = wire_open(f->path);
	put_hello(&w.out, WINDOW);
	put_frame(&w.out, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, 1,
		  "\xff\xff\xff\xff", 4);
	wire_send(&w);
	wire_expect(&w, "goaway 9\n");
	wire_expect(&w, "eof\n");
	wire_close(&w);
	expect_alive(f);
	stop(f);
}

static void test_not_grpc(void **state)
{
	static const char *const cases[][3] = {
		{ "POST", "application/json", ":status: 415\nheaders 1 end" },
		{ "POST", "application/grpc+json", ":status: 415\n" },
		{ "POST", "application/grpc-web", ":status: 415\n" },
		{ "GET", "application/grpc", ":status: 405\n" },
		{ "POST", "application/grpc+proto", "grpc-status: 0\n" },
		{ "POST", "application/grpc;x=y", "grpc-status: 0\n" },
	};
	struct fixture *f = start();

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct wire w = wire_open(f->path);
		struct buf h = { 0 };

		put_hello(&w.out, WINDOW);
		put_text(&h, ":method", cases[i][0]);
		put_text(&h, ":path", "/test.T/Echo");
		put_text(&h, "content-type", cases[i][1]);
		put_frame(&w.out, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS,
			  1, h.data, h.len);
		put_data(&w.out, 1, true, EMPTY_MESSAGE, 5);
		wire_send(&w);
		wire_expect(&w, cases[i][2]);
		buf_fini(&h);
		wire_close(&w);
	}
	stop(f);
}

static void count_plain_cancel(struct rpc_call *call, void *arg)
{
	struct fixture *f = arg;

	(void)call;
	f->cancelled++;
}

/* "/N" answers with N bytes, "/later" never. */
static void on_get(struct rpc_call *call, void *arg)
{
	static const struct rpc_header headers[] = {
		{ "content-type", "text/plain" }, { NULL, NULL },
	};
	static const char bytes[4096];
	const char *path = rpc_call_path(call);
	struct fixture *f = arg;

	f->started++;
	if (strcmp(path, "/later") == 0) {
		rpc_call_on_cancel(call, count_plain_cancel, f);
		return;
	}
	rpc_answer(call, 200, headers, bytes, (size_t)atoi(path + 1));
}

static struct wire ask(struct fixture *f, const char *verb, const char *path,
		       const char *type, bool with_body)
{
	struct wire w = wire_open(f->path);
	struct buf h = { 0 };

	put_hello(&w.out, WINDOW);
	put_text(&h, ":method", verb);
	put_text(&h, ":scheme", "http");
	put_text(&h, ":path", path);
	if (type) {
		put_text(&h, "content-type", type);
	}
	put_frame(&w.out, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS |
		  (with_body ? 0 : NGHTTP2_FLAG_END_STREAM), 1, h.data,
		  h.len);
	if (with_body) {
		put_data(&w.out, 1, true, "body", 4);
	}
	buf_fini(&h);
	wire_send(&w);
	return w;
}

/* What a browser asks. */
static void test_plain_get(void **state)
{
	static const struct {
		const char *verb, *path, *type;
		bool with_body;
		const char *want;
	} cases[] = {
		{ "GET", "/3?x=y", NULL, false,
		  ":status: 200\ncontent-type: text/plain\nheaders 1 more\n"
		  "data 1 3\n" },
		{ "GET", "/0", NULL, false, ":status: 200\n" },
		{ "GET", "/4000", NULL, false, ":status: 503\n" },
		{ "GET", "/5", "text/html", true, "data 1 5\n" },
		{ "GET", "/3", "application/grpc", false, ":status: 405\n" },
		{ "HEAD", "/3", NULL, false, ":status: 405\n" },
		{ "PUT", "/3", NULL, true, ":status: 405\n" },
		{ "POST", "/3", NULL, true, ":status: 415\n" },
	};
	struct fixture *f = start_as((struct rpc_server_config){
		.get = on_get, .limits = { .max_queued = 1000 } });
	struct wire w;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		w = ask(f, cases[i].verb, cases[i].path, cases[i].type,
			cases[i].with_body);
		wire_expect(&w, cases[i].want);
		assert_null(strstr(buf_cstr(&w.log), "grpc-status"));
		wire_close(&w);
	}
	assert_int_equal(f->started, 4);
	w = ask(f, "GET", "/later", NULL, false);
	await(&f->started, 5);
	wire_close(&w);
	await(&f->cancelled, 1);
	expect_alive(f);
	stop(f);
}

static void test_bad_bodies(void **state)
{
	struct fixture *f = start();

	(void)state;
	/* Compressed: refused, and told what is not. */
	expect(f, NULL, "\1\0\0\0\0", 5,
	       "grpc-accept-encoding: identity\ngrpc-status: 13\n");
	expect(f, NULL, "\3\0\0\0\0", 5, "grpc-status: 3\n");
	expect(f, NULL, "", 0, "grpc-status: 12\n");
	expect(f, NULL, "\0\0\0", 3, "grpc-status: 3\n");
	expect(f, NULL, "\0\0\0\0\x7" "abc", 8, "grpc-status: 3\n");
	expect(f, NULL, "\0\0\0\0\0\0\0\0\0\0", 10, "grpc-status: 12\n");
	expect(f, NULL, "\0\0\0\0\1\xff", 6, "grpc-status: 3\n");
	expect(f, NULL, "\0\xff\0\0\0", 5, "grpc-status: 8\n");
	expect_alive(f);
	stop(f);
}

static void test_bad_headers(void **state)
{
	struct fixture *f = start();
	struct buf more = { 0 };
	char *large = calloc(1, 9000);

	(void)state;
	put_text(&more, "grpc-timeout", "soon");
	expect(f, &more, EMPTY_MESSAGE, 5, "grpc-status: 3\n");
	buf_reset(&more);
	put_text(&more, "grpc-encoding", "gzip");
	expect(f, &more, EMPTY_MESSAGE, 5, "grpc-status: 12\n");
	buf_reset(&more);
	put_text(&more, "grpc-encoding", "identity");
	expect(f, &more, EMPTY_MESSAGE, 5, "grpc-status: 0\n");
	buf_reset(&more);
	put_header(&more, "x", "a\0b", 3);
	expect(f, &more, EMPTY_MESSAGE, 5, "grpc-status: 3\n");
	buf_reset(&more);
	memset(large, 'x', 8999);
	put_text(&more, "x", large);
	expect(f, &more, EMPTY_MESSAGE, 5, "grpc-status: 8\n");
	buf_reset(&more);
	for (int i = 0; i < 240; i++) {
		put_text(&more, "x", "y");
	}
	expect(f, &more, EMPTY_MESSAGE, 5, "grpc-status: 8\n");
	buf_fini(&more);
	free(large);
	stop(f);
}

/* An answer that comes before the request is complete ends the stream for
 * both sides. */
static void test_early_answer(void **state)
{
	struct fixture *f = start();
	struct wire w = wire_open(f->path);

	(void)state;
	put_hello(&w.out, WINDOW);
	put_call(&w.out, 1, "/test.T/Nothing", NULL);
	wire_send(&w);
	wire_expect(&w, "grpc-status: 12\n");
	wire_expect(&w, "headers 1 end\nreset 1 0\n");
	/* What was under way is ignored. */
	put_data(&w.out, 1, true, EMPTY_MESSAGE, 5);
	put_call(&w.out, 3, "/test.T/Echo", NULL);
	put_data(&w.out, 3, true, EMPTY_MESSAGE, 5);
	wire_send(&w);
	wire_expect(&w, "grpc-status: 0\nheaders 3 end\n");
	wire_close(&w);
	stop(f);
}

#define STOP "\0\0\0\0\6\12\4stop"

/* Each message is answered when it has come, not at the end. */
static void test_many_requests(void **state)
{
	struct fixture *f = start();
	struct wire w = wire_open(f->path);

	(void)state;
	put_hello(&w.out, WINDOW);
	put_call(&w.out, 1, "/test.T/Each", NULL);
	put_data(&w.out, 1, false, EMPTY_MESSAGE "\0\0", 7);
	wire_send(&w);
	wire_expect(&w, "data 1 5\n");
	put_data(&w.out, 1, false, "\0\0", 3);
	wire_send(&w);
	wire_expect(&w, "data 1 5\ndata 1 5\n");
	put_data(&w.out, 1, true, "", 0);
	wire_send(&w);
	wire_expect(&w, "data 1 14\ngrpc-status: 0\nheaders 1 end\n");
	/* No message at all; then one that has the handler end the call. */
	put_call(&w.out, 3, "/test.T/Each", NULL);
	put_data(&w.out, 3, true, "", 0);
	put_call(&w.out, 5, "/test.T/Each", NULL);
	put_data(&w.out, 5, false, STOP EMPTY_MESSAGE, 16);
	wire_send(&w);
	wire_expect(&w, "data 3 14\ngrpc-status: 0\nheaders 3 end\n");
	wire_expect(&w, "data 5 11\ngrpc-status: 0\nheaders 5 end\n");
	wire_expect(&w, "reset 5 0\n");
	assert_int_equal(f->cancelled, 0);
	wire_close(&w);
	stop(f);
}

/* The stream is reset, or its deadline passes, between two messages. */
static void test_many_requests_cut(void **state)
{
	const uint8_t cancel[4] = { 0, 0, 0, NGHTTP2_CANCEL };
	struct fixture *f = start();
	struct wire w = wire_open(f->path);
	struct buf more = { 0 };

	(void)state;
	put_text(&more, "grpc-timeout", "50m");
	put_hello(&w.out, WINDOW);
	put_call(&w.out, 1, "/test.T/Each", NULL);
	put_data(&w.out, 1, false, EMPTY_MESSAGE, 5);
	put_frame(&w.out, NGHTTP2_RST_STREAM, 0, 1, cancel, 4);
	put_call(&w.out, 3, "/test.T/Each", &more);
	put_data(&w.out, 3, false, EMPTY_MESSAGE, 5);
	put_call(&w.out, 5, "/test.T/Each", NULL);
	put_data(&w.out, 5, false, EMPTY_MESSAGE "\0" "\0\0\0\0\1\xff", 11);
	wire_send(&w);
	wire_expect(&w, "grpc-status: 3\n");
	wire_expect(&w, "grpc-status: 4\n");
	buf_fini(&more);
	wire_close(&w);
	expect_alive(f);
	assert_int_equal(f->started, 3);
	assert_int_equal(f->cancelled, 3);
	stop(f);
}

static void test_ping(void **state)
{
	struct fixture *f = start();
	struct wire w = wire_open(f->path);

	(void)state;
	put_hello(&w.out, WINDOW);
	put_frame(&w.out, NGHTTP2_PING, 0, 0, "12345678", 8);
	wire_send(&w);
	wire_expect(&w, "ping ack\n");
	wire_close(&w);
	stop(f);
}

/* A peer that does not read cannot make the server pile up answers. */
static void test_ping_flood(void **state)
{
	struct fixture *f = start();
	struct wire w = wire_open(f->path);

	(void)state;
	put_hello(&w.out, WINDOW);
	for (int i = 0; i < 100000; i++) {
		put_frame(&w.out, NGHTTP2_PING, 0, 0, "12345678", 8);
	}
	wire_send(&w);
	wire_expect(&w, "eof\n");
	wire_close(&w);
	expect_alive(f);
	stop(f);
}

static void test_rapid_reset(void **state)
{
	struct fixture *f = start();
	struct wire w = wire_open(f->path);

	(void)state;
	put_hello(&w.out, WINDOW);
	for (int i = 1; i < 6000; i += 2) {
		put_call(&w.out, i, "/test.T/Hang", NULL);
		put_data(&w.out, i, true, EMPTY_MESSAGE, 5);
		put_frame(&w.out, NGHTTP2_RST_STREAM, 0, i, "\0\0\0\x8", 4);
	}
	wire_send(&w);
	wire_expect(&w, "eof\n");
	assert_int_equal(f->started, f->cancelled);
	assert_true(f->started < 1500);
	wire_close(&w);
	expect_alive(f);
	stop(f);
}

/* Header fields without end, each too small to be refused by itself. */
static void test_header_flood(void **state)
{
	struct fixture *f = start();
	struct wire w = wire_open(f->path);
	struct buf field = { 0 };
	char value[200];

	(void)state;
	memset(value, 'v', sizeof(value));
	put_header(&field, "x", value, sizeof(value));
	put_hello(&w.out, WINDOW);
	put_frame(&w.out, NGHTTP2_HEADERS, 0, 1, field.data, field.len);
	for (int i = 0; i < 20000; i++) {
		put_frame(&w.out, NGHTTP2_CONTINUATION, 0, 1, field.data,
			  field.len);
	}
	wire_send(&w);
	wire_expect(&w, "eof\n");
	assert_int_equal(f->started, 0);
	wire_close(&w);
	buf_fini(&field);
	expect_alive(f);
	stop(f);
}

static void put_flood(struct wire *w, int stream, const struct buf *more)
{
	put_call(&w->out, stream, "/test.T/Flood", more);
	/* n = 1000: each answer is 1008 bytes with its prefix. */
	put_data(&w->out, stream, true, "\0\0\0\0\3\x18\xe8\x07", 8);
}

/* The reader opens no window: the bounds of the call and of the connection
 * hold, and the rest of the server does not notice. */
static void test_slow_reader(void **state)
{
	const struct rpc_limits limits = { .max_queued = 60000,
					   .max_conn_queued = 100000 };
	struct fixture *f = start_with(&limits, NULL);
	struct wire w = wire_open(f->path);

	(void)state;
	put_hello(&w.out, 0);
	put_flood(&w, 1, NULL);
	put_flood(&w, 3, NULL);
	wire_send(&w);
	await(&f->limited, 2);
	assert_int_equal(f->started, 60000 / 1008 + (100000 - 60000 / 1008 *
						     1008) / 1008);
	/* A third call finds no room at all and is told so. */
	put_flood(&w, 5, NULL);
	wire_send(&w);
	wire_expect(&w, "grpc-status: 8\n");
	expect_alive(f);
	/* Once it reads it gets everything, then the status. */
	put_frame(&w.out, NGHTTP2_WINDOW_UPDATE, 0, 1, "\0\1\0\0", 4);
	wire_send(&w);
	wire_expect(&w, "grpc-message: /test.T/Flood: response queue: no room "
			"for a message of 1003 bytes\nweft-error: ELIMIT\n");
	wire_expect(&w, "headers 1 end\n");
	wire_close(&w);
	stop(f);
}

/* Past its deadline a slow reader's queue is dropped. */
static void test_slow_reader_deadline(void **state)
{
	const struct rpc_limits limits = { .max_queued = 60000 };
	struct fixture *f = start_with(&limits, NULL);
	struct wire w = wire_open(f->path);
	struct buf more = { 0 };

	(void)state;
	put_text(&more, "grpc-timeout", "30m");
	put_hello(&w.out, 0);
	put_flood(&w, 1, &more);
	wire_send(&w);
	wire_expect(&w, "reset 1 8\n");
	buf_fini(&more);
	wire_close(&w);
	stop(f);
}

/* Deadlines of many calls expire in their order, each once. */
static void test_deadlines(void **state)
{
	static const char *const times[] = { "90m", "30m", "0n", "60m",
					     "10000u", "30m" };
	struct fixture *f = start();
	struct wire w = wire_open(f->path);

	(void)state;
	put_hello(&w.out, WINDOW);
	for (int i = 0; i < 6; i++) {
		struct buf more = { 0 };

		put_text(&more, "grpc-timeout", times[i]);
		put_call(&w.out, 2 * i + 1, "/test.T/Hang", &more);
		put_data(&w.out, 2 * i + 1, true, EMPTY_MESSAGE, 5);
		buf_fini(&more);
	}
	wire_send(&w);
	wire_expect(&w, "headers 1 end\n");
	for (int i = 0; i < 6; i++) {
		char line[32];

		snprintf(line, sizeof(line), "headers %d end\n", 2 * i + 1);
		wire_expect(&w, line);
	}
	assert_null(strstr(w.log.data, "grpc-status: 0"));
	assert_non_null(strstr(w.log.data, "grpc-status: 4\ngrpc-message: "
					   "deadline passed\n"));
	assert_int_equal(f->started, 6);
	assert_int_equal(f->cancelled, 6);
	wire_close(&w);
	stop(f);
}

/* A deadline also ends a request that never becomes complete. */
static void test_deadline_before_request(void **state)
{
	struct fixture *f = start();
	struct wire w = wire_open(f->path);
	struct buf more = { 0 };

	(void)state;
	put_text(&more, "grpc-timeout", "20m");
	put_hello(&w.out, WINDOW);
	put_call(&w.out, 1, "/test.T/Echo", &more);
	put_data(&w.out, 1, false, "\0\0\0", 3);
	wire_send(&w);
	wire_expect(&w, "grpc-status: 4\n");
	wire_expect(&w, "reset 1 0\n");
	buf_fini(&more);
	wire_close(&w);
	stop(f);
}

/* Requests that are begun and not ended count together. */
static void test_held_bound(void **state)
{
	const struct rpc_limits limits = { .max_conn_held = 40000 };
	struct fixture *f = start_with(&limits, NULL);
	struct wire w = wire_open(f->path);
	char body[15000] = { 0, 0, 1, 0, 0 };

	(void)state;
	put_hello(&w.out, WINDOW);
	for (int i = 1; i <= 5; i += 2) {
		put_call(&w.out, i, "/test.T/Echo", NULL);
		put_data(&w.out, i, false, body, sizeof(body));
	}
	wire_send(&w);
	wire_expect(&w, "grpc-status: 8\n");
	wire_expect(&w, "headers 5 end\nreset 5 0\n");
	/* The refused one gave its part back. */
	put_call(&w.out, 7, "/test.T/Echo", NULL);
	put_data(&w.out, 7, true, EMPTY_MESSAGE, 5);
	wire_send(&w);
	wire_expect(&w, "grpc-status: 0\nheaders 7 end\n");
	wire_close(&w);
	stop(f);
}

static void test_too_many_calls(void **state)
{
	const struct rpc_limits limits = { .max_calls = 2 };
	struct fixture *f = start_with(&limits, NULL);
	struct wire w = wire_open(f->path);

	(void)state;
	put_hello(&w.out, WINDOW);
	for (int i = 1; i <= 5; i += 2) {
		put_call(&w.out, i, "/test.T/Hang", NULL);
		put_data(&w.out, i, true, EMPTY_MESSAGE, 5);
	}
	wire_send(&w);
	wire_expect(&w, "reset 5 7\n");
	assert_int_equal(f->started, 2);
	wire_close(&w);
	await(&f->cancelled, 2);
	stop(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plain_call),
		cmocka_unit_test(test_authority_is_a_path),
		cmocka_unit_test(test_garbage),
		cmocka_unit_test(test_not_grpc),
		cmocka_unit_test(test_plain_get),
		cmocka_unit_test(test_bad_bodies),
		cmocka_unit_test(test_bad_headers),
		cmocka_unit_test(test_early_answer),
		cmocka_unit_test(test_many_requests),
		cmocka_unit_test(test_many_requests_cut),
		cmocka_unit_test(test_ping),
		cmocka_unit_test(test_ping_flood),
		cmocka_unit_test(test_rapid_reset),
		cmocka_unit_test(test_header_flood),
		cmocka_unit_test(test_slow_reader),
		cmocka_unit_test(test_slow_reader_deadline),
		cmocka_unit_test(test_deadlines),
		cmocka_unit_test(test_deadline_before_request),
		cmocka_unit_test(test_held_bound),
		cmocka_unit_test(test_too_many_calls),
	};

	return cmocka_run_group_tests_name("rpc/wire", tests, NULL, NULL);
}
