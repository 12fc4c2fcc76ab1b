/* SPDX-License-Identifier: Apache-2.0 */
/* A whole daemon on a loop in a thread of its own, with simulated devices
 * whose maps outlive it in files, and a client beside it. */
#ifndef WEFT_TESTS_UNIT_DAEMON_FIXTURE_H
#define WEFT_TESTS_UNIT_DAEMON_FIXTURE_H

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uv.h>

#include "controller/daemon/daemon.h"
#include "lib/base/err.h"
#include "lib/base/log.h"
#include "lib/rpc/rpc.h"
#include "tests/unit/daemon/plan_program.h"
#include "weft/v1/weft.pb-c.h"

#ifdef __SANITIZE_THREAD__
/* TSan does not see openat(): that a file has the number of a socket that was closed is no race. */
__attribute__((visibility("default"))) const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void)
{
	return "race:file_write_atomic\n";
}
#endif

struct fixture {
	char dir[64], socket[96], state[96];
	pthread_t thread;
	uv_loop_t loop;
	uv_async_t stop;
	struct daemon *daemon;
	struct rpc_client *client;
	struct err err;		/* of the last call */
};

static void on_stopped(void *arg)
{
	struct fixture *f = arg;

	uv_close((uv_handle_t *)&f->stop, NULL);
}

static void on_stop(uv_async_t *h)
{
	struct fixture *f = h->data;

	daemon_stop(f->daemon, on_stopped, f);
}

static void *run_loop(void *arg)
{
	struct fixture *f = arg;

	uv_run(&f->loop, UV_RUN_DEFAULT);
	return NULL;
}

static void daemon_up(struct fixture *f)
{
	struct daemon_config cfg = {
		.socket = f->socket, .socket_mode = 0666,
		.state_dir = f->state, .owner = geteuid(),
		.plan_time_s = 60,
	};

	assert_int_equal(uv_loop_init(&f->loop), 0);
	assert_int_equal(daemon_new(&f->loop, &cfg, &f->daemon, &f->err), 0);
	uv_async_init(&f->loop, &f->stop, on_stop);
	f->stop.data = f;
	assert_int_equal(pthread_create(&f->thread, NULL, run_loop, f), 0);
	assert_int_equal(rpc_client_open(f->socket, 5000, &f->client, &f->err),
			 0);
}

static void daemon_down(struct fixture *f)
{
	rpc_client_close(f->client);
	f->client = NULL;
	uv_async_send(&f->stop);
	pthread_join(f->thread, NULL);
	assert_int_equal(uv_loop_close(&f->loop), 0);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	log_set_level(LOG_ERROR);
	strcpy(f->dir, "/tmp/weft-daemon-XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	chmod(f->dir, 0755);
	snprintf(f->socket, sizeof(f->socket), "%s/sock", f->dir);
	snprintf(f->state, sizeof(f->state), "%s/state", f->dir);
	daemon_up(f);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	char command[128];
	int r;

	daemon_down(f);
	snprintf(command, sizeof(command), "rm -rf %s", f->dir);
	r = system(command);
	free(f);
	return r;
}

/* Four hosts of two ports on a simulated switch; options for the driver. */
static const char *make_fabric(const struct fixture *f, const char *options,
			       const char *topology)
{
	static char text[1024];

	snprintf(text, sizeof(text),
		 "weft: 1\n"
		 "fabric: small\n"
		 "hosts:\n"
		 "  - { name: \"gpu[0-3]\", ports: \"p[0-1]\", rate: 100Gbps }\n"
		 "switches:\n"
		 "  - name: ocs0\n"
		 "    size: 8x8\n"
		 "    driver: sim\n"
		 "    options: { state: \"%s/ocs0.map\"%s%s }\n"
		 "    loss: 1dB\n"
		 "fibres:\n"
		 "  - { from: \"gpu[0-3].p[0-1]\", to: \"ocs0.[1-8]\" }\n"
		 "jobs:\n"
		 "  - name: reduce\n"
		 "    nodes: gpu[0-3]\n"
		 "    collective: allreduce\n"
		 "    size: 1MiB\n"
		 "    topology: \"%s\"\n"
		 "    alpha: 10us\n",
		 f->dir, *options ? ", " : "", options, topology);
	return text;
}

#endif
