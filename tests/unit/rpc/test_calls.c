/* SPDX-License-Identifier: Apache-2.0 */
/* The client against the server, over a socket. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <pwd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "tests/unit/rpc/fixture.h"

/* The limit of time is far: `make soak` runs this under valgrind. */
static int unary(struct rpc_client *c, const char *path,
		 const struct item *request, struct item **out,
		 struct err *err)
{
	ProtobufCMessage *m;
	int r = rpc_client_unary(c, path, &request->base, &item_type, 60000,
				 &m, err);

	*out = (struct item *)m;
	return r;
}

static void test_unary(void **state)
{
	struct fixture *f = start();
	struct rpc_client *c = dial(f);
	struct item child = item_named("gr\xc3\xbc\xc3\x9f" "e");
	struct item *children[] = { &child, &child };
	struct item request = item_named("hello"), *reply;
	struct err err = { 0 };

	(void)state;
	request.n = 7;
	request.child = children;
	request.n_child = 2;
	for (int i = 0; i < 100; i++) {
		assert_int_equal(unary(c, "/test.T/Echo", &request, &reply,
				       &err),
				 0);
		assert_string_equal(reply->name, "hello");
		assert_int_equal(reply->n, 7);
		assert_int_equal(reply->n_child, 2);
		assert_string_equal(reply->child[1]->name, child.name);
		protobuf_c_message_free_unpacked(&reply->base, NULL);
	}
	rpc_client_close(c);
	stop(f);
}

static void test_large_messages(void **state)
{
	struct fixture *f = start();
	struct rpc_client *c = dial(f);
	struct item request = item_named("large"), *reply;
	struct err err = { 0 };

	(void)state;
	request.data.len = (4 << 20) - 64;
	request.data.data = malloc(request.data.len);
	for (size_t i = 0; i < request.data.len; i++) {
		request.data.data[i] = (uint8_t)(i * 7 + i / 251);
	}
	assert_int_equal(unary(c, "/test.T/Echo", &request, &reply, &err), 0);
	assert_int_equal(reply->data.len, request.data.len);
	assert_memory_equal(reply->data.data, request.data.data,
			    request.data.len);
	rpc_free_message(&reply->base);
	free(request.data.data);
	rpc_client_close(c);
	stop(f);
}

/* Every code comes back as it was, with message, place and hint. */
static void test_errors_restored(void **state)
{
	static const char text[] = "port 129: \xe2\x86\x92 50% \"off\"\tx";
	struct fixture *f = start();
	struct rpc_client *c = dial(f);
	struct item request = item_named(text), *reply;

	(void)state;
	for (int code = -1; code >= WEFT_EHELD; code--) {
		struct err err = { 0 };

		if (code == WEFT_EUSAGE - 1) {
			continue;	/* none has this number */
		}
		request.n = (uint32_t)-code;
		assert_int_equal(unary(c, "/test.T/Fail", &request, &reply,
				       &err),
				 code);
		assert_null(reply);
		assert_int_equal(err.code, code);
		assert_string_equal(err.msg, text);
		assert_string_equal(err.file, "configs/a b:c.yaml");
		assert_int_equal(err.line, 41);
		assert_int_equal(err.col, 12);
		assert_string_equal(err.hint, "ports go from 1 to 128, "
					      "100 % of the time");
	}
	rpc_client_close(c);
	stop(f);
}

/* The longest error there can be, all of it escaped, survives. */
static void test_longest_error(void **state)
{
	struct fixture *f = start();
	struct rpc_client *c = dial(f);
	char text[ERR_MSG_MAX];
	struct item request = item_named(text), *reply;
	struct err err = { 0 };

	(void)state;
	memset(text, '%', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	request.n = (uint32_t)-WEFT_EINVAL;
	assert_int_equal(unary(c, "/test.T/Fail", &request, &reply, &err),
			 WEFT_EINVAL);
	assert_string_equal(err.msg, text);
	assert_int_equal(err.line, 41);
	rpc_client_close(c);
	stop(f);
}

static void test_plain_statuses(void **state)
{
	struct fixture *f = start();
	struct rpc_client *c = dial(f);
	struct item request = item_named(""), *reply;
	struct err err = { 0 };

	(void)state;
	request.n = RPC_NOT_FOUND;
	assert_int_equal(unary(c, "/test.T/Status", &request, &reply, &err),
			 WEFT_ENOTFOUND);
	assert_string_equal(err.msg, "NOT_FOUND");
	request.n = RPC_UNAVAILABLE;
	request.name = "later";
	assert_int_equal(unary(c, "/test.T/Status", &request, &reply, &err),
			 WEFT_EUNAVAIL);
	assert_string_equal(err.msg, "later");
	request.n = RPC_OK;
	assert_int_equal(unary(c, "/test.T/Status", &request, &reply, &err),
			 WEFT_EINTERNAL);
	assert_int_equal(unary(c, "/test.T/Nothing", &request, &reply, &err),
			 WEFT_EUNSUPPORTED);
	assert_string_equal(err.msg, "unknown method /test.T/Nothing");
	rpc_client_close(c);
	stop(f);
}

struct counted {
	uint32_t n, stop_at;
};

static int on_number(const ProtobufCMessage *msg, void *arg)
{
	const struct item *item = (const struct item *)msg;
	struct counted *counted = arg;

	assert_int_equal(item->n, counted->n);
	counted->n++;
	return counted->n == counted->stop_at;
}

static void test_stream(void **state)
{
	struct fixture *f = start();
	struct rpc_client *c = dial(f);
	struct item request = item_named("");
	struct counted counted = { 0 };
	struct err err = { 0 };

	(void)state;
	request.n = 10000;
	assert_int_equal(rpc_client_call(c, "/test.T/Count", &request.base,
					 &item_type, 0, on_number, &counted,
					 NULL, &err),
			 0);
	assert_int_equal(counted.n, 10000);
	request.n = 0;
	counted.n = 0;
	assert_int_equal(rpc_client_call(c, "/test.T/Count", &request.base,
					 &item_type, 0, on_number, &counted,
					 NULL, &err),
			 0);
	assert_int_equal(counted.n, 0);
	rpc_client_close(c);
	stop(f);
}

/* A callback that has seen enough ends the call, not the connection. */
static void test_stream_stopped_by_reader(void **state)
{
	struct fixture *f = start();
	struct rpc_client *c = dial(f);
	struct item request = item_named("again"), *reply;
	struct counted counted = { .stop_at = 3 };
	struct err err = { 0 };

	(void)state;
	request.n = 10000;
	assert_int_equal(rpc_client_call(c, "/test.T/Count", &request.base,
					 &item_type, 0, on_number, &counted,
					 NULL, &err),
			 WEFT_ECANCELED);
	assert_int_equal(counted.n, 3);
	assert_int_equal(unary(c, "/test.T/Echo", &request, &reply, &err), 0);
	rpc_free_message(&reply->base);
	rpc_client_close(c);
	stop(f);
}

struct canceller {
	struct fixture *f;
	volatile bool flag;
};

static void *set_flag_when_started(void *arg)
{
	struct canceller *canceller = arg;

	while (canceller->f->started == 0) {
		poll(NULL, 0, 1);
	}
	__atomic_store_n(&canceller->flag, true, __ATOMIC_RELAXED);
	return NULL;
}

static void test_cancel(void **state)
{
	struct fixture *f = start();
	struct rpc_client *c = dial(f);
	struct canceller canceller = { .f = f };
	struct item request = item_named("after"), *reply;
	struct err err = { 0 };
	pthread_t thread;

	(void)state;
	pthread_create(&thread, NULL, set_flag_when_started, &canceller);
	assert_int_equal(rpc_client_call(c, "/test.T/Hang", &request.base,
					 &item_type, 0, NULL, NULL,
					 &canceller.flag, &err),
			 WEFT_ECANCELED);
	pthread_join(thread, NULL);
	await(&f->cancelled, 1);
	assert_int_equal(unary(c, "/test.T/Echo", &request, &reply, &err), 0);
	rpc_free_message(&reply->base);
	rpc_client_close(c);
	stop(f);
}

static void test_deadline(void **state)
{
	struct fixture *f = start();
	struct rpc_client *c = dial(f);
	struct item request = item_named("");
	struct err err = { 0 };

	(void)state;
	assert_int_equal(rpc_client_call(c, "/test.T/Hang", &request.base,
					 &item_type, 50, NULL, NULL, NULL,
					 &err),
			 WEFT_ETIMEOUT);
	rpc_client_close(c);
	await(&f->cancelled, 1);
	stop(f);
}

/* A handler that does not listen for cancellation may finish later. */
static void test_late_handler(void **state)
{
	struct fixture *f = start();
	struct rpc_client *c = dial(f);
	struct item request = item_named("");
	struct err err = { 0 };

	(void)state;
	assert_int_equal(rpc_client_call(c, "/test.T/Late", &request.base,
					 &item_type, 20, NULL, NULL, NULL,
					 &err),
			 WEFT_ETIMEOUT);
	rpc_client_close(c);
	await(&f->done, 1);
	assert_int_equal(f->late_sends, 1);
	stop(f);
}

static void test_late_handler_awaited(void **state)
{
	struct fixture *f = start();
	struct rpc_client *c = dial(f);
	struct item request = item_named(""), *reply;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(unary(c, "/test.T/Late", &request, &reply, &err), 0);
	assert_string_equal(reply->name, "late");
	rpc_free_message(&reply->base);
	rpc_client_close(c);
	stop(f);
}

static void test_bad_requests(void **state)
{
	struct fixture *f = start();
	struct rpc_client *c = dial(f);
	struct item deep[40], request = item_named("\xff"), *reply;
	struct item empty = item_named("");
	const size_t many = 2000000;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(unary(c, "/test.T/Echo", &request, &reply, &err),
			 WEFT_EINVAL);
	assert_string_equal(err.msg,
			    "test.Item.name: not valid UTF-8 at byte 0");

	for (int i = 0; i < 40; i++) {
		deep[i] = item_named("");
		deep[i].one = i ? &deep[i - 1] : NULL;
	}
	assert_int_equal(unary(c, "/test.T/Echo", &deep[39], &reply, &err),
			 WEFT_EINVAL);
	assert_string_equal(err.msg, "test.Item.one: nested deeper than 32 "
				     "messages");
	assert_int_equal(unary(c, "/test.T/Echo", &deep[31], &reply, &err),
			 0);
	rpc_free_message(&reply->base);

	request = item_named("");
	request.n_child = many;
	request.child = malloc(many * sizeof(request.child[0]));
	for (size_t i = 0; i < many; i++) {
		request.child[i] = &empty;
	}
	assert_int_equal(unary(c, "/test.T/Echo", &request, &reply, &err),
			 WEFT_ELIMIT);
	assert_non_null(strstr(err.msg, "bytes of memory"));
	free(request.child);

	request = item_named("");
	request.data.len = 5 << 20;
	request.data.data = calloc(1, request.data.len);
	assert_int_equal(unary(c, "/test.T/Echo", &request, &reply, &err),
			 WEFT_ELIMIT);
	assert_non_null(strstr(err.msg, "at most 4194304 are allowed"));
	free(request.data.data);

	request = item_named("fine");
	assert_int_equal(unary(c, "/test.T/Echo", &request, &reply, &err), 0);
	rpc_free_message(&reply->base);
	rpc_client_close(c);
	stop(f);
}

/* What is queued arrives; what does not fit is refused to the handler. */
static void test_queue_bound(void **state)
{
	const struct rpc_limits limits = { .max_queued = 100000 };
	struct fixture *f = start_with(&limits, NULL);
	struct rpc_client *c = dial(f);
	struct item request = item_named("");
	struct err err = { 0 };

	(void)state;
	request.n = 1000;
	assert_int_equal(rpc_client_call(c, "/test.T/Flood", &request.base,
					 &item_type, 0, NULL, NULL, NULL,
					 &err),
			 WEFT_ELIMIT);
	assert_int_equal(f->limited, 1);
	/* 5 bytes of prefix, 3 of tag and length. */
	assert_int_equal(f->started, 100000 / 1008);
	rpc_client_close(c);
	stop(f);
}

/* Sends one message of a stream and expects its echo. */
static void say(struct rpc_stream *s, const char *name)
{
	struct item item = item_named(name);
	ProtobufCMessage *reply;
	struct err err = { 0 };

	assert_int_equal(rpc_stream_send(s, &item.base, &err), 0);
	assert_int_equal(rpc_stream_receive(s, 20000, &reply, &err), 0);
	assert_non_null(reply);
	assert_string_equal(((struct item *)reply)->name, name);
	rpc_free_message(reply);
}

static void test_stream_of_two_sides(void **state)
{
	struct fixture *f = start();
	struct rpc_client *c = dial(f);
	struct item item = item_named("stop"), many = item_named("a");
	struct rpc_stream *s;
	ProtobufCMessage *reply;
	struct err err = { 0 };
	char name[16];

	(void)state;
	assert_int_equal(rpc_stream_open(c, "/test.T/Each", &item_type, &s, &err), 0);
	assert_int_equal(rpc_stream_receive(s, 0, &reply, &err), 0);
	assert_null(reply);
	for (int i = 0; i < 100; i++) {
		snprintf(name, sizeof(name), "n%d", i);
		say(s, name);
	}
	/* Several on their way at a time, and one that the stream is closed before. */
	for (int i = 0; i < 50; i++) {
		assert_int_equal(rpc_stream_send(s, &many.base, &err), 0);
	}
	for (int i = 0; i < 40; i++) {
		assert_int_equal(rpc_stream_receive(s, 20000, &reply, &err), 0);
		assert_non_null(reply);
		rpc_free_message(reply);
	}
	rpc_stream_close(s);
	/* The connection takes another call, and the server may end it. */
	assert_int_equal(rpc_stream_open(c, "/test.T/Each", &item_type, &s, &err), 0);
	say(s, "b");
	assert_int_equal(rpc_stream_send(s, &item.base, &err), 0);
	assert_int_equal(rpc_stream_receive(s, 20000, &reply, &err), 0);
	rpc_free_message(reply);
	assert_int_equal(rpc_stream_receive(s, 20000, &reply, &err), WEFT_EUNAVAIL);
	assert_null(reply);
	assert_int_equal(rpc_stream_send(s, &item.base, &err), WEFT_EUNAVAIL);
	rpc_stream_close(s);
	assert_int_equal(rpc_stream_open(c, "/test.T/None", &item_type, &s, &err), 0);
	assert_int_equal(rpc_stream_receive(s, 20000, &reply, &err), WEFT_EUNSUPPORTED);
	rpc_stream_close(s);
	rpc_client_close(c);
	stop(f);
}

static bool refuse_all(const struct rpc_peer *peer, void *arg)
{
	struct fixture *f = arg;

	f->started += peer->uid == getuid() && peer->gid == getgid() &&
		      peer->pid == getpid();
	return false;
}

static void test_authorise(void **state)
{
	struct fixture *f = start_with(NULL, refuse_all);
	struct rpc_client *c;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(rpc_client_open(f->path, 5000, &c, &err),
			 WEFT_EDENIED);
	assert_null(c);
	assert_non_null(strstr(err.msg, "this user may not connect"));
	assert_int_equal(f->started, 1);
	stop(f);
}

/* A user without a name is told by number, and no process writes what it likes
 * into a line of a log by what it calls itself. */
static void test_names(void **state)
{
	const struct rpc_peer me = { .uid = getuid(), .pid = getpid() };
	const struct rpc_peer gone = { .uid = 3999999999u };
	const struct passwd *pw = getpwuid(getuid());
	char text[RPC_PEER_TEXT_MAX], want[RPC_PEER_TEXT_MAX];

	(void)state;
	assert_int_equal(prctl(PR_SET_NAME, "a b(\x1b)"), 0);
	snprintf(want, sizeof(want), "%s (a_b___, process %d)", pw ? pw->pw_name : "",
		 (int)getpid());
	if (pw) {
		assert_string_equal(rpc_peer_text(&me, text, sizeof(text)), want);
	}
	assert_string_equal(rpc_peer_text(&gone, text, sizeof(text)), "uid 3999999999 (process 0)");
	assert_string_equal(rpc_user_name(3999999999u, text, sizeof(text)), "uid 3999999999");
}

static void test_too_many_connections(void **state)
{
	const struct rpc_limits limits = { .max_conns = 2 };
	struct fixture *f = start_with(&limits, NULL);
	struct rpc_client *a = dial(f), *b = dial(f), *c;
	struct err err = { 0 };
	int r = -1;

	(void)state;
	assert_int_equal(rpc_client_open(f->path, 5000, &c, &err),
			 WEFT_EUNAVAIL);
	assert_non_null(strstr(err.msg, "too many connections of user "));
	assert_non_null(strstr(err.msg, "(2 of 2)"));
	assert_string_not_equal(err.hint, "");
	rpc_client_close(a);
	/* The server hears of the close in its own time. */
	for (int i = 0; i < 1000 && r; i++) {
		r = rpc_client_open(f->path, 5000, &c, &err);
		poll(NULL, 0, r ? 10 : 0);
	}
	assert_int_equal(r, 0);
	rpc_client_close(b);
	rpc_client_close(c);
	stop(f);
}

/* The mark before what is held back, then that itself. */
static void release(uv_timer_t *later)
{
	struct fixture *f = later->data;

	rpc_server_release(f->server, 6);
	f->limited++;
	rpc_server_release(f->server, 7);
}

static int64_t hold(struct rpc_call *call, void *arg)
{
	struct fixture *f = arg;

	if (strcmp(rpc_call_path(call), "/test.T/Status") == 0) {
		return 0;
	}
	uv_timer_start(&f->later, release, 20, 0);
	return 7;
}

/* Messages and ends are held back until their mark, and not those of other calls. */
static void test_hold(void **state)
{
	struct fixture *f = start_as((struct rpc_server_config){ .hold = hold });
	struct rpc_client *c = dial(f);
	struct item request = item_named("x"), *reply;
	struct err err = { 0 };

	(void)state;
	request.n = RPC_NOT_FOUND;
	assert_int_equal(unary(c, "/test.T/Status", &request, &reply, &err), WEFT_ENOTFOUND);
	assert_int_equal(f->limited, 0);
	request.n = 1;
	assert_int_equal(unary(c, "/test.T/Echo", &request, &reply, &err), 0);
	rpc_free_message(&reply->base);
	assert_int_equal(f->limited, 1);
	request.n = -WEFT_EDENIED;
	assert_int_equal(unary(c, "/test.T/Fail", &request, &reply, &err), WEFT_EDENIED);
	assert_int_equal(f->limited, 2);
	rpc_client_close(c);
	stop(f);
}

static bool is_privileged(const struct rpc_peer *peer, void *arg)
{
	struct fixture *f = arg;

	return f->privileged && peer->uid == getuid();
}

/* Those who are privileged have places of their own, and when these are full too, the
 * place of an idle connection. */
static void test_reserve(void **state)
{
	struct fixture *f = start_as((struct rpc_server_config){
		.limits = { .max_conns = 2, .max_reserved = 1 }, .privileged = is_privileged });
	struct rpc_client *a = dial(f), *b = dial(f), *c, *d;
	struct item request = item_named(""), *reply;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(rpc_client_open(f->path, 5000, &c, &err), WEFT_EUNAVAIL);
	f->privileged = true;
	c = dial(f);
	d = dial(f);
	assert_int_equal(unary(c, "/test.T/Echo", &request, &reply, &err), 0);
	rpc_free_message(&reply->base);
	assert_int_equal(unary(d, "/test.T/Echo", &request, &reply, &err), 0);
	rpc_free_message(&reply->base);
	assert_int_equal(unary(a, "/test.T/Echo", &request, &reply, &err), WEFT_EUNAVAIL);
	assert_int_equal(unary(b, "/test.T/Echo", &request, &reply, &err), 0);
	rpc_free_message(&reply->base);
	rpc_client_close(a);
	rpc_client_close(b);
	rpc_client_close(c);
	rpc_client_close(d);
	stop(f);
}

/* Reads to the end, at most 10 s: whether it came. */
static bool is_ended(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char data[256];

	while (poll(&p, 1, 10000) == 1) {
		if (recv(fd, data, sizeof(data), 0) <= 0) {
			return true;
		}
	}
	return false;
}

/* Without a word, or without a call, no connection stays. */
static void test_first_call(void **state)
{
	static const char hello[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0";
	const struct rpc_limits limits = { .greet_ms = 50, .first_call_ms = 100 };
	struct fixture *f = start_with(&limits, NULL);
	struct item request = item_named(""), *reply;
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	struct rpc_client *c = NULL;
	struct err err = { 0 };
	int fd[2];

	(void)state;
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", f->path);
	/* A machine under load may take longer than these times: again then. */
	while (rpc_client_open(f->path, 5000, &c, &err) ||
	       unary(c, "/test.T/Echo", &request, &reply, &err)) {
		rpc_client_close(c);
	}
	rpc_free_message(&reply->base);
	for (int i = 0; i < 2; i++) {
		fd[i] = socket(AF_UNIX, SOCK_STREAM, 0);
		assert_int_equal(connect(fd[i], (struct sockaddr *)&addr, sizeof(addr)), 0);
		assert_int_equal(send(fd[i], hello, i * sizeof(hello), 0), i * sizeof(hello));
	}
	assert_true(is_ended(fd[0]));
	assert_true(is_ended(fd[1]));
	close(fd[0]);
	close(fd[1]);
	assert_int_equal(unary(c, "/test.T/Echo", &request, &reply, &err), 0);
	rpc_free_message(&reply->base);
	rpc_client_close(c);
	stop(f);
}

static void test_nobody_listens(void **state)
{
	struct fixture *f = start();
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	char path[sizeof(f->path)], want[200];
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	struct rpc_client *c;
	struct err err = { 0 };

	(void)state;
	snprintf(path, sizeof(path), "%s", f->path);
	stop(f);
	snprintf(want, sizeof(want), "no weftd listens at %s", path);
	assert_int_equal(rpc_client_open(path, 1000, &c, &err),
			 WEFT_EUNAVAIL);
	assert_string_equal(err.msg, want);

	/* A socket file without a process behind it. */
	snprintf(path, sizeof(path), "/tmp/weft-rpc-%d", (int)getpid());
	memcpy(addr.sun_path, path, sizeof(path));
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	close(fd);
	assert_int_equal(rpc_client_open(path, 1000, &c, &err),
			 WEFT_EUNAVAIL);
	unlink(path);
}

/* Somebody listens, but never says a word. */
static void test_silent_server(void **state)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	struct rpc_client *c;
	struct err err = { 0 };

	(void)state;
	snprintf(addr.sun_path, sizeof(addr.sun_path), "/tmp/weft-rpc-%d",
		 (int)getpid());
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(listen(fd, 1), 0);
	assert_int_equal(rpc_client_open(addr.sun_path, 150, &c, &err),
			 WEFT_EUNAVAIL);
	assert_non_null(strstr(err.msg, "does not answer"));
	close(fd);
	unlink(addr.sun_path);
}

static void test_socket_file(void **state)
{
	struct fixture *f = start();
	struct rpc_server_config cfg = { .methods = methods, .mode = 0600 };
	uv_loop_t loop;
	struct rpc_server *s;
	struct stat st;
	struct err err = { 0 };
	char path[200];

	(void)state;
	assert_int_equal(stat(f->path, &st), 0);
	assert_true(S_ISSOCK(st.st_mode));
	assert_int_equal(st.st_mode & 0777, 0600);
	uv_loop_init(&loop);

	/* Files that are no sockets stay. */
	cfg.unix_path = f->dir;
	assert_int_equal(rpc_server_new(&loop, &cfg, &s, &err), WEFT_EINVAL);
	memset(path, 'x', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	cfg.unix_path = path;
	assert_int_equal(rpc_server_new(&loop, &cfg, &s, &err), WEFT_EINVAL);
	cfg.unix_path = "/nonexistent/sock";
	assert_int_equal(rpc_server_new(&loop, &cfg, &s, &err), WEFT_EIO);
	assert_int_equal(uv_loop_close(&loop), 0);
	stop(f);
}

static void *call_until_done(void *arg)
{
	struct fixture *f = arg;
	struct rpc_client *c = dial(f);
	struct item request = item_named("");
	struct err err = { 0 };
	long code;

	code = rpc_client_call(c, "/test.T/Hang", &request.base, &item_type, 0,
			       NULL, NULL, NULL, &err);
	rpc_client_close(c);
	return (void *)code;
}

/* Past the grace the call is cancelled and its client told. */
static void test_stop_with_call_running(void **state)
{
	struct fixture *f = start();
	pthread_t thread;
	void *code;

	(void)state;
	pthread_create(&thread, NULL, call_until_done, f);
	await(&f->started, 1);
	f->grace_ms = 50;
	uv_async_send(&f->stop);
	pthread_join(thread, &code);
	assert_int_equal((long)code, WEFT_EUNAVAIL);
	f->stopping = true;
	await(&f->cancelled, 1);
	stop(f);
}

/* Within the grace a call still gets its answer, new ones are refused. */
static void test_stop_lets_calls_end(void **state)
{
	struct fixture *f = start();
	struct rpc_client *c = dial(f), *other = dial(f), *late;
	struct item request = item_named("bye"), *reply;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(unary(c, "/test.T/Stop", &request, &reply, &err), 0);
	assert_string_equal(reply->name, "bye");
	rpc_free_message(&reply->base);
	assert_int_equal(unary(c, "/test.T/Echo", &request, &reply, &err),
			 WEFT_EUNAVAIL);
	assert_int_equal(unary(other, "/test.T/Echo", &request, &reply, &err),
			 WEFT_EUNAVAIL);
	assert_int_equal(rpc_client_open(f->path, 1000, &late, &err),
			 WEFT_EUNAVAIL);
	rpc_client_close(c);
	rpc_client_close(other);
	stop(f);
}

static void *echo_some(void *arg)
{
	struct fixture *f = arg;
	struct rpc_client *c = dial(f);
	struct item request = item_named("one of many"), *reply;
	struct err err = { 0 };
	long ok = 0;

	for (uint32_t i = 0; i < 20; i++) {
		request.n = i;
		if (unary(c, "/test.T/Echo", &request, &reply, &err) == 0) {
			ok += reply->n == i;
			rpc_free_message(&reply->base);
		}
	}
	rpc_client_close(c);
	return (void *)ok;
}

static void test_parallel_connections(void **state)
{
	const struct rpc_limits limits = { .max_conns = 100 };
	struct fixture *f = start_with(&limits, NULL);
	pthread_t thread[100];
	long ok = 0;

	(void)state;
	for (int i = 0; i < 100; i++) {
		assert_int_equal(pthread_create(&thread[i], NULL, echo_some,
						f),
				 0);
	}
	for (int i = 0; i < 100; i++) {
		void *n;

		pthread_join(thread[i], &n);
		ok += (long)n;
	}
	assert_int_equal(ok, 2000);
	stop(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_unary),
		cmocka_unit_test(test_large_messages),
		cmocka_unit_test(test_errors_restored),
		cmocka_unit_test(test_longest_error),
		cmocka_unit_test(test_plain_statuses),
		cmocka_unit_test(test_stream),
		cmocka_unit_test(test_stream_stopped_by_reader),
		cmocka_unit_test(test_cancel),
		cmocka_unit_test(test_deadline),
		cmocka_unit_test(test_late_handler),
		cmocka_unit_test(test_late_handler_awaited),
		cmocka_unit_test(test_bad_requests),
		cmocka_unit_test(test_queue_bound),
		cmocka_unit_test(test_stream_of_two_sides),
		cmocka_unit_test(test_authorise),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_too_many_connections),
		cmocka_unit_test(test_hold),
		cmocka_unit_test(test_reserve),
		cmocka_unit_test(test_first_call),
		cmocka_unit_test(test_nobody_listens),
		cmocka_unit_test(test_silent_server),
		cmocka_unit_test(test_socket_file),
		cmocka_unit_test(test_stop_with_call_running),
		cmocka_unit_test(test_stop_lets_calls_end),
		cmocka_unit_test(test_parallel_connections),
	};

	return cmocka_run_group_tests_name("rpc/calls", tests, NULL, NULL);
}
