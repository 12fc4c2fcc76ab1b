/* SPDX-License-Identifier: Apache-2.0 */
/* Command lines of mpirun; processes with limits, that leave no others behind. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "runtime/launch/private.h"

/* ---- command lines ---- */

/* A folder with programs of these names that can be run, first in PATH. */
static char folder[128];

static void add_program(const char *name, const char *text)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	f = fopen(path, "w");
	assert_non_null(f);
	fprintf(f, "#!/bin/sh\n%s\n", text);
	fclose(f);
	assert_int_equal(chmod(path, 0755), 0);
}

static int set_up(void **state)
{
	const char *tmp = getenv("TMPDIR");
	char path[256];

	(void)state;
	snprintf(folder, sizeof(folder), "%s/weft-launch-XXXXXX", tmp ? tmp : "/tmp");
	if (!mkdtemp(folder)) {
		return -1;
	}
	snprintf(path, sizeof(path), "/nowhere::%s", folder);
	return setenv("PATH", path, 1);
}

static int tear_down(void **state)
{
	static const char *const names[] = { "mpirun", "weft-mpi-run" };
	char path[256];

	(void)state;
	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
		unlink(path);
	}
	return rmdir(folder) || setenv("PATH", "/usr/bin:/bin", 1);
}

/* The words between both programs, and after. */
static void assert_command(const struct launch_options *o, const char *want)
{
	struct launch_command c;
	struct buf got = { 0 };
	struct err err = { 0 };

	assert_int_equal(launch_command_make(o, &c, &err), 0);
	for (size_t i = 0; i < c.words.n; i++) {
		const char *name = strrchr(c.words.v[i], '/');

		buf_printf(&got, "%s%s", i ? " " : "", name ? name + 1 : c.words.v[i]);
	}
	assert_null(c.words.v[c.words.n]);
	assert_string_equal(buf_cstr(&got), want);
	buf_fini(&got);
	launch_command_fini(&c);
}

static void test_missing(void **state)
{
	struct launch_options o = { .ranks = 2, .repeat = 1 };
	struct launch_command c;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(launch_command_make(&o, &c, &err), WEFT_EUNAVAIL);
	assert_string_equal(err.msg, "mpirun: no such program in PATH");
	assert_non_null(strstr(err.hint, "openmpi-bin"));
	launch_command_fini(&c);
	add_program("mpirun", "");
	assert_int_equal(launch_command_make(&o, &c, &err), WEFT_EUNAVAIL);
	assert_string_equal(err.msg, "weft-mpi-run: no such program in PATH");
	launch_command_fini(&c);
	add_program("weft-mpi-run", "");
	assert_command(&o, "mpirun -n 2 --mca pml ob1 --mca btl self,vader weft-mpi-run --size 0 "
		       "--repeat 1 --seed 0 -");
}

static void test_options(void **state)
{
	const char *mca[] = { "btl", "self,tcp", "mpi_yield_when_idle", "0", NULL };
	struct launch_options o = { .ranks = 12, .size_bytes = 1 << 20, .repeat = 3, .seed = 5,
				    .barriers = true, .share_cores = true };

	(void)state;
	unsetenv("OMPI_MCA_mpi_yield_when_idle");
	add_program("mpirun", "");
	add_program("weft-mpi-run", "");
	assert_command(&o,
		       "mpirun -n 12 --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 "
		       "--mca pml ob1 --mca btl self,vader weft-mpi-run --size 1048576 --repeat 3 "
		       "--seed 5 --barriers -");
	/* What is set wins, here and in the environment. */
	o.mca = mca;
	setenv("OMPI_MCA_pml", "ucx", 1);
	assert_command(&o, "mpirun -n 12 --oversubscribe --bind-to none --mca btl self,tcp "
		       "--mca mpi_yield_when_idle 0 weft-mpi-run --size 1048576 --repeat 3 "
		       "--seed 5 --barriers -");
	unsetenv("OMPI_MCA_pml");
	o = (struct launch_options){
		.ranks = 2, .repeat = 1, .hosts = "hosts", .agent = "agent -x"
	};
	assert_command(&o, "mpirun -n 2 --hostfile hosts --mca plm_rsh_agent agent -x weft-mpi-run "
		       "--size 0 --repeat 1 --seed 0 -");
}

/* ---- processes ---- */

/* Runs a line of shell; what it returns. */
static int shell(const char *line, const struct launch_options *o, struct launch_output *out,
		 struct err *err)
{
	char *argv[] = { (char *)"/bin/sh", (char *)"-c", (char *)line, NULL };

	return launch_process(argv, o, out, err);
}

static void fini(struct launch_output *out)
{
	buf_fini(&out->out);
	buf_fini(&out->errors);
}

static void test_output(void **state)
{
	struct launch_options o = { .schedule = "some input", .schedule_len = 10 };
	struct launch_output out;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(shell("cat; echo oh >&2; exit 3", &o, &out, &err), 0);
	assert_string_equal(buf_cstr(&out.out), "some input");
	assert_string_equal(buf_cstr(&out.errors), "oh\n");
	assert_int_equal(out.status, 3 << 8);
	fini(&out);
	/* Only the last of what is said is kept. */
	assert_int_equal(shell("i=0; while [ $i -lt 3000 ]; do echo line $i >&2; i=$((i+1)); done; "
			       "seq 30000", &o, &out, &err), 0);
	assert_true(out.errors.len <= 16 << 10);
	assert_string_equal(buf_cstr(&out.errors) + out.errors.len - 10, "line 2999\n");
	assert_int_equal(out.out.len, 168894);
	fini(&out);
}

/* Whether a process is there, dead or alive. */
static bool is_there(const char *text)
{
	pid_t pid = (pid_t)atoi(text);

	assert_true(pid > 1);
	return kill(pid, 0) == 0;
}

/* Children in process groups of their own, as mpirun has them, that ignore SIGTERM. */
#define STUBBORN "trap '' TERM; set -m; sleep 1000 & echo $!; "

static void test_limit(void **state)
{
	struct launch_options o = { .limit_ns = 200000000 };
	struct launch_output out;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(shell(STUBBORN "sleep 1000", &o, &out, &err), WEFT_ETIMEOUT);
	assert_non_null(strstr(err.msg, "not done after 0.2 s"));
	assert_false(is_there(buf_cstr(&out.out)));
	fini(&out);
}

static void test_left_behind(void **state)
{
	struct launch_options o = { 0 };
	struct launch_output out;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(shell(STUBBORN "exit 0", &o, &out, &err), 0);
	assert_int_equal(out.status, 0);
	assert_false(is_there(buf_cstr(&out.out)));
	fini(&out);
}

static volatile bool stopped;

static void on_alarm(int signal)
{
	(void)signal;
	stopped = true;
}

static void test_stop(void **state)
{
	struct launch_options o = { .stop = &stopped };
	struct launch_output out;
	struct err err = { 0 };

	(void)state;
	signal(SIGALRM, on_alarm);
	alarm(1);
	assert_int_equal(shell("echo $$; exec sleep 1000", &o, &out, &err), WEFT_ECANCELED);
	assert_false(is_there(buf_cstr(&out.out)));
	fini(&out);
}

static void test_no_such_program(void **state)
{
	struct launch_options o = { 0 };
	struct launch_output out;
	char *argv[] = { (char *)"/nowhere/mpirun", NULL };
	struct err err = { 0 };

	(void)state;
	assert_int_equal(launch_process(argv, &o, &out, &err), 0);
	assert_int_equal(out.status, 127 << 8);
	assert_non_null(strstr(buf_cstr(&out.errors), "/nowhere/mpirun: No such file"));
	fini(&out);
}

/* Results that lack what callers go by, as of another version of weft-mpi-run, are none. */
static void test_result_is_whole(void **state)
{
	static const char whole[] = "{\"wrong_elements\":0,\"bytes\":8,\"time_ns\":5,\"steps\":"
		"[{\"median_ns\":1,\"worst_ns\":2,\"worst_rank\":3}]}";
	static const char *const keys[] = { "wrong_elements", "bytes", "time_ns", "steps",
					    "median_ns", "worst_ns", "worst_rank" };
	struct err err = { 0 };
	json_t *result;

	(void)state;
	assert_int_equal(launch_read_result(whole, strlen(whole), &result, &err), 0);
	assert_int_equal(launch_check_result(result, 4, 1, &err), 0);
	assert_int_equal(launch_check_result(result, 3, 1, &err), WEFT_EIO);
	assert_int_equal(launch_check_result(result, 4, 2, &err), WEFT_EIO);
	json_decref(result);
	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
		char text[sizeof(whole)];

		memcpy(text, whole, sizeof(whole));
		*strstr(text, keys[i]) = 'X';
		assert_int_equal(launch_read_result(text, strlen(text), &result, &err), 0);
		assert_int_equal(launch_check_result(result, 4, 1, &err), WEFT_EIO);
		assert_non_null(strstr(err.msg, "another version"));
		json_decref(result);
	}
}

/* A rank that ends by a signal when all is said has done its work; before that, it has not. */
static void test_late_signal(void **state)
{
	static const char whole[] = "echo '{\"wrong_elements\":0,\"bytes\":8,\"time_ns\":5,"
		"\"steps\":[{\"median_ns\":1,\"worst_ns\":2,\"worst_rank\":3}]}'; exit ";
	struct launch_options o = { .ranks = 4, .repeat = 1, .steps = 1 };
	char program[sizeof(whole) + 8];
	struct err err = { 0 };
	json_t *result;

	(void)state;
	add_program("weft-mpi-run", "");
	snprintf(program, sizeof(program), "%s139", whole);
	add_program("mpirun", program);
	assert_int_equal(launch_run(&o, &result, &err), 0);
	json_decref(result);
	snprintf(program, sizeof(program), "%s1", whole);
	add_program("mpirun", program);
	assert_int_equal(launch_run(&o, &result, &err), WEFT_EIO);
	assert_string_equal(err.msg, "mpirun ended with 1: ");
	add_program("mpirun", "echo '{\"wrong_elements\":'; exit 139");
	assert_int_equal(launch_run(&o, &result, &err), WEFT_EIO);
	assert_string_equal(err.msg, "mpirun ended with 139: ");
	add_program("mpirun", "echo '{\"error\":\"EIO\"}'; exit 139");
	assert_int_equal(launch_run(&o, &result, &err), WEFT_EIO);
	assert_string_equal(err.msg, "mpirun ended with 139: ");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_missing, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_options, set_up, tear_down),
		cmocka_unit_test(test_output),
		cmocka_unit_test(test_limit),
		cmocka_unit_test(test_left_behind),
		cmocka_unit_test(test_stop),
		cmocka_unit_test(test_no_such_program),
		cmocka_unit_test(test_result_is_whole),
		cmocka_unit_test_setup_teardown(test_late_signal, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
