/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that wait before they plan, and requests of a configuration as it is. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "controller/daemon/core/plan_queue.h"
#include "lib/base/log.h"
#include "tests/unit/daemon/plan_program.h"

static const char text[] =
	"weft: 1\nfabric: t\nhosts:\n"
	"  - { name: 'h[0-3]', ports: p0, rate: 100Gbps }\n"
	"switches:\n  - { name: ocs0, size: 4x4, driver: sim }\n"
	"fibres:\n  - { from: 'h[0-3].p0', to: 'ocs0.[1-4]' }\n"
	"jobs:\n  - { name: j, nodes: 'h[0-1]', collective: allgather, size: 1MiB, "
	"topology: 'UniRing(1,2)', algorithm: bfb, alpha: 5us }\n";

struct queue_rig {
	char dir[64];
	uv_loop_t loop;
	struct daemon_env env;
	struct plan_queue *queue;
	int n_added, n_drained;		/* calls of hooks */
	bool freed;
};

/* What became of a request. */
struct outcome {
	bool prepared, done;
	int rc, n_jobs, n_add, n_keep;
	char msg[ERR_MSG_MAX];
	struct plan_request *request;	/* until it is done */
};

/* ---- the rig ---- */

static void add_jobs(struct model_config *config, void *arg)
{
	const struct model_request job = { .name = (char *)"asked", .nodes = (char *)"h2 h3",
					   .collective = (char *)"allgather",
					   .topology = (char *)"UniRing(1,2)",
					   .size_bytes = 1 << 20 };

	((struct queue_rig *)arg)->n_added++;
	model_config_add(config, &job);
}

static void restrict_base(struct plan_request *r, void *arg)
{
	(void)r;
	(void)arg;
}

static bool outdated(const struct plan_request *r, void *arg)
{
	(void)r;
	(void)arg;
	return false;
}

static void planned(struct plan_request *r, void *arg)
{
	(void)r;
	(void)arg;
}

static void ignored(void *arg)
{
	(void)arg;
}

static void drained(void *arg)
{
	((struct queue_rig *)arg)->n_drained++;
}

static int rig_setup(void **state)
{
	struct queue_rig *rig = calloc(1, sizeof(*rig));
	const struct plan_queue_hooks hooks = {
		add_jobs, restrict_base, outdated, planned, ignored, ignored, ignored, drained, rig,
	};

	assert_non_null(rig);
	log_set_level(LOG_ERROR);
	strcpy(rig->dir, "/tmp/weft-queue-XXXXXX");
	assert_non_null(mkdtemp(rig->dir));
	assert_int_equal(uv_loop_init(&rig->loop), 0);
	rig->env.loop = &rig->loop;
	rig->env.plan_time_s = 60;
	strcat(rig->dir, "/s");
	assert_int_equal(store_open(rig->dir, &rig->env.store, NULL), 0);
	assert_int_equal(apply_new(&rig->loop, rig->env.store, &rig->env.apply, NULL), 0);
	rig->queue = plan_queue_new(&rig->env, &hooks);
	*state = rig;
	return 0;
}

static void on_freed(void *arg)
{
	((struct queue_rig *)arg)->freed = true;
}

static int rig_teardown(void **state)
{
	struct queue_rig *rig = *state;
	char command[128];
	int rc;

	plan_queue_stop(rig->queue);
	apply_free(rig->env.apply, on_freed, rig);
	uv_run(&rig->loop, UV_RUN_DEFAULT);
	assert_true(rig->freed);
	assert_int_equal(uv_loop_close(&rig->loop), 0);
	plan_queue_free(rig->queue);
	store_free(rig->env.store);
	rig->dir[strlen(rig->dir) - 2] = '\0';
	snprintf(command, sizeof(command), "rm -rf %s", rig->dir);
	rc = system(command);
	free(rig);
	return rc;
}

static int prepare_wait(struct plan_request *r, struct err *err)
{
	(void)err;
	((struct outcome *)r->arg)->prepared = true;
	r->waits = true;
	return 0;
}

static int prepare_fail(struct plan_request *r, struct err *err)
{
	prepare_wait(r, err);
	return err_set(err, WEFT_ESTALE, "too late");
}

static void on_done(struct plan_request *r)
{
	struct outcome *o = r->arg;

	o->done = true;
	o->rc = r->rc;
	strcpy(o->msg, r->err.msg);
	if (r->plan) {
		o->n_jobs = r->plan->n_jobs;
		o->n_add = r->plan->n_add;
		o->n_keep = r->plan->n_keep;
	}
	o->request = NULL;
	plan_request_free(r);
}

/* Begins a request of the text (config NULL), or of this configuration. */
static void start(struct queue_rig *rig, const struct model_config *config,
		  int (*prepare)(struct plan_request *, struct err *), struct outcome *o)
{
	struct plan_request *r = NULL;

	if (config) {
		r = plan_request_new_config(rig->queue, config);
	} else {
		assert_int_equal(plan_request_new(rig->queue, "t", text, sizeof(text) - 1, &r,
						  NULL), 0);
	}
	r->prepare = prepare;
	r->done = on_done;
	r->arg = o;
	o->request = r;
	plan_request_start(r);
}

static void run_until(struct queue_rig *rig, const bool *flag)
{
	while (!*flag && uv_run(&rig->loop, UV_RUN_ONCE)) {
	}
	assert_true(*flag);
}

/* ---- the tests ---- */

/* It keeps the slot meanwhile; what it starts from is what the snapshot holds when it goes
 * on: the job's circuits as weft's own, which stay. */
static void test_waits(void **state)
{
	struct queue_rig *rig = *state;
	struct outcome first = { 0 }, second = { 0 };
	struct plan_request *r;

	start(rig, NULL, prepare_wait, &first);
	run_until(rig, &first.prepared);
	start(rig, NULL, NULL, &second);
	/* Nothing is left to do but what waits. */
	uv_run(&rig->loop, UV_RUN_DEFAULT);
	assert_false(first.done || second.done);
	assert_true(plan_queue_busy(rig->queue) && !plan_queue_drained(rig->queue));
	r = first.request;
	for (int observed = 0; observed < 2; observed++) {
		struct optics_xc *xcs = calloc(2, sizeof(*xcs));
		struct plan_light light = { .known = true, .n_xcs = 2, .xcs = xcs };

		assert_non_null(xcs);
		xcs[0] = (struct optics_xc){ 0, 1 };
		xcs[1] = (struct optics_xc){ 1, 0 };
		daemon_snapshot_replace(&r->snap, observed, 0, &light, NULL);
	}
	plan_request_go_on(r, 0, NULL);
	run_until(rig, &second.done);
	assert_true(first.done && first.rc == 0 && second.rc == 0);
	assert_int_equal(first.n_keep, 2);
	assert_int_equal(first.n_add, 2);
	assert_int_equal(second.n_keep, 0);
	assert_int_equal(second.n_add, 4);
	uv_run(&rig->loop, UV_RUN_DEFAULT);	/* until all is freed */
	assert_true(plan_queue_drained(rig->queue));
}

static void test_ends_waiting(void **state)
{
	struct queue_rig *rig = *state;
	struct outcome first = { 0 }, second = { 0 };
	struct err err = { 0 };

	start(rig, NULL, prepare_wait, &first);
	start(rig, NULL, NULL, &second);
	run_until(rig, &first.prepared);
	err_set(&err, WEFT_EUNAVAIL, "row2 is away");
	plan_request_go_on(first.request, err.code, &err);
	assert_true(first.done && first.rc == WEFT_EUNAVAIL && first.n_jobs == 0);
	assert_string_equal(first.msg, "row2 is away");
	run_until(rig, &second.done);
	assert_int_equal(second.rc, 0);
	assert_int_equal(second.n_jobs, 2);
}

/* An error of prepare is the end, whatever it says besides. */
static void test_prepare_fails(void **state)
{
	struct queue_rig *rig = *state;
	struct outcome o = { 0 };

	start(rig, NULL, prepare_fail, &o);
	run_until(rig, &o.done);
	assert_int_equal(o.rc, WEFT_ESTALE);
	uv_run(&rig->loop, UV_RUN_DEFAULT);
	assert_true(plan_queue_drained(rig->queue));
}

/* weftd stops once what waits has gone on. */
static void test_stops_after_waiting(void **state)
{
	struct queue_rig *rig = *state;
	struct outcome o = { 0 };
	struct err err = { 0 };

	start(rig, NULL, prepare_wait, &o);
	run_until(rig, &o.prepared);
	rig->env.draining = true;
	uv_run(&rig->loop, UV_RUN_DEFAULT);
	assert_int_equal(rig->n_drained, 0);
	err_set(&err, WEFT_ECANCELED, "weftd stops");
	plan_request_go_on(o.request, err.code, &err);
	assert_int_equal(o.rc, WEFT_ECANCELED);
	uv_run(&rig->loop, UV_RUN_DEFAULT);
	assert_int_equal(rig->n_drained, 1);
}

/* The jobs of others come with the configuration; those of this weftd do not. */
static void test_config_as_it_is(void **state)
{
	struct queue_rig *rig = *state;
	struct outcome all = { 0 }, none = { 0 };
	struct model_config config;

	model_config_init(&config, "t", text, sizeof(text) - 1);
	start(rig, &config, NULL, &none);
	run_until(rig, &none.done);
	add_jobs(&config, rig);
	start(rig, &config, NULL, &all);
	model_config_fini(&config);
	run_until(rig, &all.done);
	assert_int_equal(none.n_jobs, 1);
	assert_int_equal(all.n_jobs, 2);
	assert_int_equal(rig->n_added, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_waits),
		TEST(test_ends_waiting),
		TEST(test_prepare_fails),
		TEST(test_stops_after_waiting),
		TEST(test_config_as_it_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
