/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The examples under configs: the valid fabrics are accepted, and each broken
 * one gives exactly the errors in the .err file beside it. After a change of
 * messages, run with WEFT_UPDATE_EXPECTED=1 and read the difference.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/model/model.h"
#include "lib/base/buf.h"
#include "lib/base/file.h"

#define LEAST_BROKEN 25

static void render(struct buf *b, const struct err_list *errs)
{
	for (int i = 0; i < errs->n; i++) {
		char line[ERR_MSG_MAX + ERR_FILE_MAX + 32];

		buf_printf(b, "%s\n",
			   err_str(&errs->v[i], line, sizeof(line)));
		if (errs->v[i].hint[0]) {
			buf_printf(b, "hint: %s\n", errs->v[i].hint);
		}
	}
	if (errs->dropped > 0) {
		buf_printf(b, "and %d more\n", errs->dropped);
	}
}

/* Errors of a fabric that must be refused. */
static void errors_of(const char *path, struct buf *b)
{
	struct err_list errs = { 0 };
	struct model_fabric *f = NULL;
	int rc = model_load(path, &f, &errs);

	assert_null(f);
	assert_true(errs.n > 0);
	assert_int_equal(rc, errs.v[0].code);
	render(b, &errs);
	err_list_fini(&errs);
}

/* Returns true when path.err holds what reading path.yaml says. */
static bool check_broken(const char *path)
{
	char expected[256];
	struct buf got = { 0 };
	char *want = NULL;
	size_t len;
	bool same;

	snprintf(expected, sizeof(expected), "%.*s.err",
		 (int)strlen(path) - 5, path);
	errors_of(path, &got);
	if (getenv("WEFT_UPDATE_EXPECTED")) {
		assert_int_equal(0, file_write_atomic(expected, got.data,
						      got.len, FILE_PUBLIC,
						      NULL));
	}
	assert_int_equal(0, file_read(expected, 1 << 20, &want, &len, NULL));
	same = strcmp(want, buf_cstr(&got)) == 0;
	if (!same) {
		print_error("%s: expected\n%s%s: got\n%s", path, want, path,
			    buf_cstr(&got));
	}
	free(want);
	buf_fini(&got);
	return same;
}

static void broken_examples_give_their_errors(void **state)
{
	glob_t g;
	int bad = 0;

	(void)state;
	assert_int_equal(0, glob("configs/broken/*.yaml", 0, NULL, &g));
	assert_true(g.gl_pathc >= LEAST_BROKEN);
	for (size_t i = 0; i < g.gl_pathc; i++) {
		bad += !check_broken(g.gl_pathv[i]);
	}
	globfree(&g);
	assert_int_equal(bad, 0);
}

/* What a first change goes back to: the same fabric, its jobs gone. */
static void jobs_are_dropped(struct model_fabric *f)
{
	struct err_list errs = { 0 };
	struct model_fabric *rest;
	struct model_config c;
	struct err err = { 0 };

	model_config_copy(&c, &f->config);
	assert_int_equal(0, model_config_drop_jobs(&c, &err));
	if (model_parse("rest", c.text, c.len, &rest, &errs)) {
		fail_msg("%s: %s\n%s", f->config.name, errs.v[0].msg, c.text);
	}
	assert_int_equal(rest->n_jobs, 0);
	assert_int_equal(rest->n_devices, f->n_devices);
	assert_int_equal(rest->n_hosts, f->n_hosts);
	model_free(rest);
	model_config_fini(&c);
	err_list_fini(&errs);
}

static void valid_examples_are_accepted(void **state)
{
	glob_t g;

	(void)state;
	assert_int_equal(0, glob("configs/fabrics/*.yaml", 0, NULL, &g));
	assert_true(g.gl_pathc >= 5);
	for (size_t i = 0; i < g.gl_pathc; i++) {
		struct err_list errs = { 0 };
		struct model_fabric *f = NULL;
		struct buf b = { 0 };

		if (model_load(g.gl_pathv[i], &f, &errs)) {
			render(&b, &errs);
			fail_msg("%s", buf_cstr(&b));
		}
		assert_true(f->n_jobs > 0);
		assert_string_equal(f->config.name, g.gl_pathv[i]);
		jobs_are_dropped(f);
		model_free(f);
		err_list_fini(&errs);
	}
	globfree(&g);
}

static void any_style_of_yaml_loses_its_jobs(void **state)
{
#define FIBRES "fibres: [{from: 'h[0-1].p', to: 's.[1-2]'}]"
#define HEAD "weft: 1, fabric: a, hosts: [{name: 'h[0-1]', ports: p, rate: 1Gbps}], " \
	     "switches: [{name: s, size: 2x2, driver: sim}], " FIBRES
	static const char *const texts[] = {
		"{" HEAD ", jobs: []}",
		"{jobs: [{name: x, nodes: all, collective: allgather, size: 1MB}], " HEAD "}",
		"\xef\xbb\xbf{" HEAD "} # \xc3\xa9",
		"\xef\xbb\xbf# \xe2\x82\xac jobs:\nweft: 1\nfabric: a\n\"jobs\":\n"
		"- name: x # of two\n  nodes: all\r\n  collective: allgather\n  size: 1MB\n"
		"# jobs\nhosts:\n  - {name: 'h[0-1]', ports: p, rate: 1Gbps}\n"
		"switches: [{name: s, size: 2x2, driver: sim}]\n" FIBRES "\n",
		"weft: 1\nfabric: a\nhosts:\n  - name: h[0-1]\n    ports: p\n    rate: 1Gbps\n"
		"switches:\n  - {name: s, size: 2x2, driver: sim}\n" FIBRES "\n\njobs:\n"
		"  - name: x\n    nodes: all\n    collective: allgather\n    size: 1MB",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		struct err_list errs = { 0 };
		struct model_fabric *f;

		if (model_parse("text", texts[i], strlen(texts[i]), &f, &errs)) {
			fail_msg("%zu: %s", i, errs.v[0].msg);
		}
		jobs_are_dropped(f);
		model_free(f);
		err_list_fini(&errs);
	}
}

static void missing_files_have_an_error_of_their_own(void **state)
{
	struct err_list errs = { 0 };
	struct model_fabric *f = NULL;

	(void)state;
	assert_int_equal(WEFT_ENOTFOUND,
			 model_load("configs/broken/none", &f, &errs));
	assert_int_equal(errs.n, 1);
	assert_null(f);
	err_list_fini(&errs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(broken_examples_give_their_errors),
		cmocka_unit_test(valid_examples_are_accepted),
		cmocka_unit_test(any_style_of_yaml_loses_its_jobs),
		cmocka_unit_test(missing_files_have_an_error_of_their_own),
	};

	return cmocka_run_group_tests_name("model/examples", tests, NULL,
					   NULL);
}
