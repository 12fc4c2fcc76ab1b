/* SPDX-License-Identifier: Apache-2.0 */
/* TCP with certificates on both sides. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <sys/socket.h>

#include "tests/unit/rpc/fixture.h"

static char dir[] = "/tmp/weft-tls-XXXXXX";

static int make_certificates(void **state)
{
	char command[64];

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(command, sizeof(command), "tests/certs %s", dir);
	return system(command);
}

static int remove_certificates(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", dir);
	return system(command);
}

/* The files of one name; the texts live until the next call but seven. */
static struct rpc_tls_files files(const char *name, const char *ca)
{
	static char text[8][3][64];
	static int at;
	char(*t)[64] = text[at++ % 8];

	snprintf(t[0], 64, "%s/%s.pem", dir, name);
	snprintf(t[1], 64, "%s/%s.key", dir, name);
	snprintf(t[2], 64, "%s/%s.pem", dir, ca);
	return (struct rpc_tls_files){ .cert = t[0], .key = t[1], .ca = t[2] };
}

/* Only the one who is called look may call. */
static int permit_look(struct rpc_call *call, void *arg, struct err *err)
{
	const struct rpc_peer *peer = rpc_call_peer(call);

	(void)arg;
	if (peer->remote && strcmp(peer->name, "CN=look,O=Site") != 0) {
		return err_set(err, WEFT_EDENIED, "%s may not call %s",
			       peer->name, rpc_call_path(call));
	}
	return 0;
}

static struct fixture *serve(const char *name, const char *crl)
{
	struct rpc_server_config cfg = { .tcp_host = "127.0.0.1",
					 .tls = files(name, "ca"),
					 .permit = permit_look };

	cfg.tls.crl = crl;
	return start_as(cfg);
}

static int connect_as(struct fixture *f, const char *name, const char *ca,
		      struct rpc_client **c, struct err *err)
{
	struct rpc_tls_files mine = files(name, ca);

	return rpc_client_open_tcp("localhost", rpc_server_port(f->server),
				   &mine, 60000, c, err);
}

static int echo(struct rpc_client *c, size_t bytes, struct err *err)
{
	struct item request = item_named("here");
	ProtobufCMessage *reply = NULL;
	int r;

	request.data.len = bytes;
	request.data.data = calloc(1, bytes + 1);
	r = rpc_client_unary(c, "/test.T/Echo", &request.base, &item_type,
			     20000, &reply, err);
	if (r == 0) {
		assert_int_equal(((struct item *)reply)->data.len, bytes);
	}
	rpc_free_message(reply);
	free(request.data.data);
	return r;
}

static void test_calls(void **state)
{
	struct fixture *f = serve("server", NULL);
	struct rpc_client *c;
	struct err err = { 0 };

	(void)state;
	if (connect_as(f, "look", "ca", &c, &err)) {
		fail_msg("%s", err.msg);
	}
	/* Records, windows and the socket's buffer are all smaller. */
	for (size_t bytes = 1; bytes < 4000000; bytes *= 37) {
		assert_int_equal(echo(c, bytes, &err), 0);
	}
	rpc_client_close(c);
	/* The unix socket serves as before. */
	c = dial(f);
	assert_int_equal(echo(c, 10, &err), 0);
	rpc_client_close(c);
	stop(f);
}

static void test_not_permitted(void **state)
{
	struct fixture *f = serve("server", NULL);
	struct rpc_client *c;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(connect_as(f, "ops", "ca", &c, &err), 0);
	assert_int_equal(echo(c, 10, &err), WEFT_EDENIED);
	assert_string_equal(err.msg,
			    "CN=ops,O=Site may not call /test.T/Echo");
	rpc_client_close(c);
	stop(f);
}

/* Opens and calls once; the error of whichever failed. */
static int attempt(struct fixture *f, const char *name, const char *ca,
		   struct err *err)
{
	struct rpc_client *c = NULL;
	int r = connect_as(f, name, ca, &c, err);

	if (r == 0) {
		r = echo(c, 1, err);
	}
	rpc_client_close(c);
	return r;
}

static void assert_denied(struct fixture *f, const char *name, const char *ca,
			  const char *why)
{
	struct err err = { 0 };

	assert_int_equal(attempt(f, name, ca, &err), WEFT_EDENIED);
	if (!strstr(err.msg, why)) {
		fail_msg("no \"%s\" in: %s", why, err.msg);
	}
}

static void test_wrong_certificates(void **state)
{
	char crl[64];
	struct fixture *f;
	struct err err = { 0 };

	(void)state;
	snprintf(crl, sizeof(crl), "%s/crl.pem", dir);
	f = serve("server", crl);
	assert_denied(f, "old", "ca", "expired");
	assert_denied(f, "alien", "ca", "unknown ca");
	assert_denied(f, "gone", "ca", "revoked");
	assert_denied(f, "look", "other", "certificate: ");
	assert_int_equal(attempt(f, "look", "ca", &err), 0);
	stop(f);
	/* A server that is not the one asked for. */
	f = serve("elsewhere", NULL);
	assert_denied(f, "look", "ca", "hostname mismatch");
	stop(f);
}

static void expect_load_error(const char *cert, const char *key,
			      const char *what)
{
	struct rpc_tls_files mine = files(cert, "ca");
	struct rpc_tls_files other = files(key, "ca");
	struct rpc_client *c;
	struct err err = { 0 };

	mine.key = other.key;
	assert_int_equal(rpc_client_open_tcp("localhost", 1, &mine, 1000, &c,
					     &err), WEFT_EINVAL);
	if (!strstr(err.msg, what)) {
		fail_msg("no \"%s\" in: %s", what, err.msg);
	}
}

static void test_bad_files(void **state)
{
	(void)state;
	expect_load_error("nothing", "look", "nothing.pem: certificate: ");
	expect_load_error("look", "nothing", "nothing.key: key: ");
	expect_load_error("look", "ops", "key values mismatch");
}

static int raw_connection(struct fixture *f)
{
	struct sockaddr_in addr = {
		.sin_family = AF_INET,
		.sin_port = htons((uint16_t)rpc_server_port(f->server)),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	assert_int_equal(connect(fd, (struct sockaddr *)&addr, sizeof(addr)),
			 0);
	return fd;
}

/* Bytes that are no handshake, and a peer that says nothing at all. */
static void test_garbage(void **state)
{
	struct fixture *f = serve("server", NULL);
	static const char text[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
	int silent = raw_connection(f), fd;
	struct err err = { 0 };
	char data[256];

	(void)state;
	for (int i = 0; i < 20; i++) {
		ssize_t n;

		fd = raw_connection(f);
		assert_true(send(fd, text + i, sizeof(text) - (size_t)i,
				 MSG_NOSIGNAL) > 0);
		shutdown(fd, SHUT_WR);
		while ((n = recv(fd, data, sizeof(data), 0)) > 0) {
		}
		close(fd);
	}
	assert_int_equal(attempt(f, "look", "ca", &err), 0);
	/* The stop does not wait for those who never said hello. */
	stop(f);
	assert_int_equal(recv(silent, data, sizeof(data), 0), 0);
	close(silent);
}

/* Remote peers cannot keep local ones out. */
static void test_too_many(void **state)
{
	struct rpc_server_config cfg = { .tcp_host = "127.0.0.1",
					 .tls = files("server", "ca"),
					 .limits = { .max_conns = 2 } };
	struct fixture *f = start_as(cfg);
	struct rpc_client *a, *b, *c;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(connect_as(f, "look", "ca", &a, &err), 0);
	assert_int_equal(connect_as(f, "look", "ca", &b, &err), 0);
	assert_int_not_equal(connect_as(f, "look", "ca", &c, &err), 0);
	c = dial(f);
	assert_int_equal(echo(c, 1, &err), 0);
	rpc_client_close(c);
	rpc_client_close(a);
	/* The server hears of it in its own time. */
	while (connect_as(f, "look", "ca", &a, &err)) {
		usleep(1000);
	}
	rpc_client_close(a);
	rpc_client_close(b);
	stop(f);
}

/* Who has most makes room, the connection that was used longest ago first; who would
 * then have as many as he has is refused and told so. */
static void test_shares(void **state)
{
	struct rpc_server_config cfg = { .tcp_host = "127.0.0.1",
					 .tls = files("server", "ca"),
					 .limits = { .max_conns = 4 } };
	struct fixture *f = start_as(cfg);
	struct rpc_client *look[4], *ops, *jobs, *more;
	struct err err = { 0 };

	(void)state;
	for (int i = 0; i < 4; i++) {
		assert_int_equal(connect_as(f, "look", "ca", &look[i], &err), 0);
		assert_int_equal(echo(look[i], i, &err), 0);
	}
	assert_int_equal(echo(look[0], 0, &err), 0);
	assert_int_equal(connect_as(f, "ops", "ca", &ops, &err), 0);
	assert_int_equal(connect_as(f, "jobs", "ca", &jobs, &err), 0);
	assert_int_equal(echo(ops, 1, &err), 0);
	assert_int_equal(echo(jobs, 1, &err), 0);
	assert_int_equal(echo(look[0], 1, &err), 0);
	assert_int_equal(echo(look[1], 1, &err), WEFT_EUNAVAIL);
	assert_non_null(strstr(err.msg, "others needed its place"));
	assert_int_equal(echo(look[2], 1, &err), WEFT_EUNAVAIL);
	assert_int_equal(echo(look[3], 1, &err), 0);
	assert_int_equal(connect_as(f, "ops", "ca", &more, &err), WEFT_EUNAVAIL);
	assert_non_null(strstr(err.msg, "too many connections of certificate "
			       "CN=ops,O=Site (1 of 4)"));
	for (int i = 0; i < 4; i++) {
		rpc_client_close(look[i]);
	}
	rpc_client_close(ops);
	rpc_client_close(jobs);
	stop(f);
}

/* Has the server read its files again, on its own thread. */
static int reload(struct fixture *f)
{
	f->reloaded = 0;
	uv_async_send(&f->reload);
	while (f->reloaded == 0) {
		usleep(1000);
	}
	return f->reloaded;
}

static void copy(const char *from, const char *to)
{
	char command[160];

	snprintf(command, sizeof(command), "cp %s/%s %s/%s", dir, from, dir,
		 to);
	assert_int_equal(system(command), 0);
}

static struct fixture *serve_copy(void)
{
	copy("server.pem", "own.pem");
	copy("server.key", "own.key");
	copy("ca.pem", "trust.pem");
	return start_as((struct rpc_server_config){
		.tcp_host = "127.0.0.1", .tls = files("own", "trust") });
}

/* A connection that is open outlives its certificate's files. */
static void test_reload(void **state)
{
	struct fixture *f = serve_copy();
	struct rpc_client *c;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(connect_as(f, "look", "ca", &c, &err), 0);
	copy("other.pem", "trust.pem");
	assert_int_equal(reload(f), 1);
	assert_int_equal(echo(c, 100, &err), 0);
	rpc_client_close(c);
	assert_denied(f, "look", "ca", "unknown ca");
	assert_int_equal(attempt(f, "alien", "ca", &err), 0);
	stop(f);
}

/* Files that are no good: the old ones stay in use. */
static void test_bad_reload(void **state)
{
	struct fixture *f = serve_copy();
	struct err err = { 0 };

	(void)state;
	copy("ops.key", "own.key");
	assert_int_equal(reload(f), 2);
	assert_int_equal(attempt(f, "look", "ca", &err), 0);
	stop(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_calls),
		cmocka_unit_test(test_not_permitted),
		cmocka_unit_test(test_wrong_certificates),
		cmocka_unit_test(test_bad_files),
		cmocka_unit_test(test_garbage),
		cmocka_unit_test(test_too_many),
		cmocka_unit_test(test_shares),
		cmocka_unit_test(test_reload),
		cmocka_unit_test(test_bad_reload),
	};

	return cmocka_run_group_tests(tests, make_certificates,
				      remove_certificates);
}
