/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every driver with a secret keeps to itself. Each class of the registry is looked at;
 * those whose emulator asks for a password have one that stands nowhere else, and their
 * emulators say it back when they refuse it. integration/ssh.sh has the same for SSH.
 */
#include "tests/unit/drivers/rig.h"

#include "drivers/core/secret.h"
#include "lib/base/log.h"

/* At the end of each password. */
#define WORD "Zq7xK-4kdW"

static char logged[1 << 16];

static void keep_line(enum log_level level, const char *room, const char *line,
		      const struct log_field *fields, int n_fields)
{
	(void)level, (void)room, (void)fields, (void)n_fields;
	strncat(logged, line, sizeof(logged) - strlen(logged) - 1);
}

static bool has_option(const struct drv_class *cls, const char *key)
{
	const struct drv_option_spec *s = cls->options;

	while (s && s->key && strcmp(s->key, key) != 0) {
		s++;
	}
	return s && s->key;
}

static int open_with(const char *driver, const struct drv_option *options, int n, struct err *err)
{
	const struct drv_class *cls = drv_find(driver);
	struct drv_config cfg = { .name = "dut", .address = "127.0.0.1:1", .n_in = 8, .n_out = 8,
				  .ring_fibres = 1, .options = options, .n_options = n };
	struct drv *dev;
	uv_loop_t loop;
	int rc;

	assert_non_null(cls);
	uv_loop_init(&loop);
	rc = drv_open(&loop, driver, &cfg, &dev, err);
	if (rc == 0) {
		drv_close(dev, NULL, NULL);
		uv_run(&loop, UV_RUN_DEFAULT);
	}
	assert_int_equal(uv_loop_close(&loop), 0);
	return rc;
}

/* ---- the classes ----------------------------------------------------------- */

static void secrets_are_named_by_their_files(void **state)
{
	static const char *const words[] = {
		"password", "passwd", "secret", "token", "passphrase",
	};
	int n = 0;

	(void)state;
	for (const struct drv_class *const *c = drv_all(); *c; c++) {
		const struct drv_option given = { "password", WORD };
		struct err err = { 0 };

		for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
			assert_false(has_option(*c, words[i]));
		}
		assert_int_equal(has_option(*c, "user"), has_option(*c, "password_file"));
		assert_int_equal(open_with((*c)->name, &given, 1, &err), WEFT_EINVAL);
		assert_null(strstr(err.msg, WORD));
		assert_null(strstr(err.hint, WORD));
		n += has_option(*c, "password_file");
	}
	assert_int_equal(n, 7);
}

/* weftd has the text of a fabric, and not the folder that it was written in. */
static void their_paths_are_absolute(void **state)
{
	(void)state;
	for (const struct drv_class *const *c = drv_all(); *c; c++) {
		bool ssh = has_option(*c, "ssh");
		struct drv_option options[] = {
			{ "password_file", "/etc/weft/ocs0" }, { "user", "weft" }, { "ssh", "yes" },
		};
		struct err err = { 0 };

		if (!has_option(*c, "password_file")) {
			continue;
		}
		assert_int_equal(open_with((*c)->name, options, ssh ? 3 : 2, &err), 0);
		options[0].value = "ocs0.password";
		assert_int_equal(open_with((*c)->name, options, ssh ? 3 : 2, &err), WEFT_EINVAL);
		assert_non_null(strstr(err.msg, "option password_file: expected an absolute"));
	}
}

static void what_is_said_back_is_hidden(void **state)
{
	static const char *const cases[][2] = {
		{ "", "" }, { WORD, "*" }, { "a " WORD WORD ".", "a **." }, { "Zq7xK", "Zq7xK" },
	};
	char text[64];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		snprintf(text, sizeof(text), "%s", cases[i][0]);
		secret_hide(text, WORD);
		assert_string_equal(text, cases[i][1]);
	}
}

/* ---- their emulators -------------------------------------------------------- */

/* The secret as it is, and as HTTP has it, behind so many bytes modulo 3. */
static void expect_nowhere_in(const char *text)
{
	static const char *const forms[] = { WORD, "WnE3eEstNGtk", "pxN3hLLTRrZF", "acTd4Sy00a2R" };

	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		if (strstr(text, forms[i])) {
			fail_msg("the password is told: %s", text);
		}
	}
}

static void expect_nowhere(const struct rig *r)
{
	for (int i = 0; i < r->n_lines; i++) {
		expect_nowhere_in(r->lines[i]);
	}
	for (int i = 0; i < r->n_outcomes; i++) {
		expect_nowhere_in(r->outcomes[i].text);
	}
	for (int i = 0; i < r->n_events; i++) {
		expect_nowhere_in(r->events[i].text);
	}
	expect_nowhere_in(r->err.msg);
	expect_nowhere_in(r->err.hint);
	expect_nowhere_in(r->snap.identity);
	expect_nowhere_in(r->snap.alarm);
	expect_nowhere_in(logged);
}

struct login {
	const char *driver, *user, *good;
};

static void a_password_is_told_nowhere(void **state)
{
	static const struct drv_item items[] = { ADD(0, 4) };
	const struct login *l = *state;
	struct rig r;

	log_set_sink(keep_line);
	log_set_level(LOG_DEBUG);
	rig_init(&r, l->driver, 8, 8, false);
	rig_option(&r, "user", l->user);
	rig_option(&r, "password_file", r.password);
	rig_option(&r, "gap_ms", "0");
	rig_start_emulator(&r, "8x8", NULL);
	rig_open(&r);
	assert_int_equal(rig_snapshot(&r), WEFT_EDENIED);
	assert_non_null(strstr(r.err.msg, "password_file: /"));
	rig_password(&r, l->good);
	assert_int_equal(rig_submit(&r, DRV_SAFE, 1, items), 0);
	rig_expect_map(&r, "0-4");
	assert_true(r.n_lines > 2);
	expect_nowhere(&r);
	rig_close(&r);
	rig_password(&r, WORD "\n");
	rig_open(&r);
	assert_int_equal(rig_submit(&r, DRV_SAFE, 1, items), WEFT_EDEVICE);
	rig_expect(&r, 0, DRV_SKIPPED);
	assert_non_null(strstr(r.err.msg, "log-in"));
	expect_nowhere(&r);
	rig_fini(&r);
	log_set_sink(NULL);
}

#define CASE(driver, user, good) \
	{ driver, a_password_is_told_nowhere, NULL, NULL, &(struct login){ driver, user, good } }

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(secrets_are_named_by_their_files),
		cmocka_unit_test(their_paths_are_absolute),
		cmocka_unit_test(what_is_said_back_is_hidden),
		CASE("polatis-tl1", "root", "root" WORD "\n"),
		CASE("glimmerglass-tl1", "noc", "noc" WORD "\n"),
		CASE("calient-tl1", "admin", "admin" WORD "\n"),
		CASE("polatis-restconf", "admin", "roo" WORD "\n"),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
