/* SPDX-License-Identifier: Apache-2.0 */
/* What a client may say to the server: the input is sent over a socket,
 * behind a proper preface unless it brings its own, and the connection is
 * closed. Whatever it said, the server gives back every call and every
 * byte, and is there for the next. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/log.h"
#include "lib/rpc/private.h"
#include "tests/unit/rpc/message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char hello[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
			    "\0\0\0\4\0\0\0\0";	/* SETTINGS; +1 zero */

static uv_loop_t loop;
static struct rpc_server *server;
static struct sockaddr_un addr = { .sun_family = AF_UNIX };
static int running;

static void on_echo(struct rpc_call *call, const ProtobufCMessage *request,
		    void *arg)
{
	(void)arg;
	rpc_send(call, request, NULL);
	rpc_finish(call, RPC_OK, NULL);
}

static void on_cancel(struct rpc_call *call, void *arg)
{
	(void)call, (void)arg;
	running--;
}

/* Sends what fits and stays until the client goes. */
static void on_flood(struct rpc_call *call, const ProtobufCMessage *request,
		     void *arg)
{
	(void)arg;
	running++;
	rpc_call_on_cancel(call, on_cancel, NULL);
	while (rpc_send(call, request, NULL) == 0) {
	}
}

static void on_fail(struct rpc_call *call, const ProtobufCMessage *request,
		    void *arg)
{
	const struct item *item = (const struct item *)request;
	struct err err;

	(void)arg;
	err_set(&err, WEFT_EINVAL, "%s", item->name);
	err_at(&err, item->name, (int)(item->n & 0xffff), 1);
	rpc_finish_err(call, &err);
}

/* Answers at once, or never. */
static void on_get(struct rpc_call *call, void *arg)
{
	const char *path = rpc_call_path(call);

	(void)arg;
	if (strcmp(path, "/later") == 0) {
		running++;
		rpc_call_on_cancel(call, on_cancel, NULL);
	} else {
		rpc_answer(call, 200, NULL, path, strlen(path));
	}
}

static const struct rpc_method methods[] = {
	{ "/t/Echo", &item_type, &item_type, false, on_echo },
	{ "/t/Flood", &item_type, &item_type, true, on_flood },
	{ "/t/Fail", &item_type, &item_type, false, on_fail },
	{ 0 },
};

static void remove_folder(void)
{
	char dir[sizeof(addr.sun_path)];

	unlink(addr.sun_path);
	memcpy(dir, addr.sun_path, sizeof(dir));
	*strrchr(dir, '/') = '\0';
	rmdir(dir);
}

static void start_server(void)
{
	struct rpc_server_config cfg = { .mode = 0600, .methods = methods,
					 .get = on_get };
	char dir[] = "/tmp/weft-fuzz-XXXXXX";

	cfg.limits.max_request = 1 << 16;
	cfg.limits.max_queued = 1 << 16;
	cfg.limits.max_conn_queued = 1 << 17;
	cfg.limits.max_conn_held = 1 << 18;
	if (!mkdtemp(dir)) {
		abort();
	}
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/sock", dir);
	cfg.unix_path = addr.sun_path;
	log_set_level(LOG_ERROR);
	uv_loop_init(&loop);
	if (rpc_server_new(&loop, &cfg, &server, NULL)) {
		abort();
	}
	atexit(remove_folder);
}

/* Lets the server work and reads, but never waits for, its answers. */
static void exchange(int fd)
{
	char answer[1 << 16];
	ssize_t n = 1;

	for (int i = 0; i < 20 && n > 0; i++) {
		uv_run(&loop, UV_RUN_NOWAIT);
		n = recv(fd, answer, sizeof(answer), MSG_DONTWAIT);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	bool own_preface = size >= 3 && memcmp(data, "PRI", 3) == 0;
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	if (!server) {
		start_server();
	}
	if (fd < 0 ||
	    connect(fd, (struct sockaddr *)&addr, sizeof(addr)) != 0) {
		abort();
	}
	if (!own_preface) {
		(void)!send(fd, hello, sizeof(hello), MSG_DONTWAIT);
	}
	(void)!send(fd, data, size, MSG_DONTWAIT | MSG_NOSIGNAL);
	exchange(fd);
	close(fd);
	for (int i = 0; i < 100 && server->n_conns > 0; i++) {
		uv_run(&loop, UV_RUN_NOWAIT);
	}
	assert(server->n_conns == 0);
	assert(running == 0);
	return 0;
}
