/* SPDX-License-Identifier: Apache-2.0 */
/* The list of jobs: what is forgotten of it. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "controller/daemon/jobs/private.h"
#include "lib/base/alloc.h"

static struct job *add(struct jobs *jobs, int64_t id, enum store_job_state state)
{
	struct store_job s = { .id = id, .name = x_dup("j"), .who = x_dup(""),
			       .request_id = x_dup(""), .spec = x_dup(""), .nodes = x_dup(""),
			       .problem = x_dup(""), .state = state };
	struct job *j;
	struct err err;

	assert_int_equal(jobs_add(jobs, &s, &j, &err), 0);
	return j;
}

/* As many as the store keeps, the newest; all that live, and what it does not have yet. */
static void test_over(void **state)
{
	struct jobs jobs = { 0 };
	struct job *told;

	(void)state;
	add(&jobs, 1, STORE_JOB_RUNNING);
	add(&jobs, 2, STORE_JOB_FAILED);
	told = add(&jobs, 3, STORE_JOB_STARTING);
	for (int i = 4; i < STORE_JOBS_MAX + 4; i++) {
		add(&jobs, i, STORE_JOB_ENDED);
	}
	job_move(told, STORE_JOB_ENDED, "");
	jobs_forget_over(&jobs);
	assert_int_equal(jobs.v.n, STORE_JOBS_MAX + 1);
	assert_int_equal(jobs.v.v[0]->s.id, 1);
	assert_ptr_equal(jobs.v.v[1], told);
	assert_int_equal(jobs.v.v[2]->s.id, 5);
	told->moved = false;
	add(&jobs, STORE_JOBS_MAX + 4, STORE_JOB_FAILED);
	jobs_forget_over(&jobs);
	assert_int_equal(jobs.v.n, STORE_JOBS_MAX + 1);
	assert_int_equal(jobs.v.v[1]->s.id, 5);
	jobs_forget_all(&jobs);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_over) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
