/* SPDX-License-Identifier: Apache-2.0 */
/* Roles: the file that grants them, and what they allow. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "controller/daemon/core/core.h"
#include "lib/base/log.h"

#define OWNER 900
#define STATUS "/weft.v1.FabricService/Status"
#define APPLY "/weft.v1.FabricService/Apply"
#define HEALTH "/grpc.health.v1.Health/Check"

static const char grants[] =
	"# the site's\n"
	"\n"
	"operator     group 50   # network people\n"
	"operator\tcertificate CN=ops,O=Site\n"
	"orchestrator user 1000\r\n"
	"viewer       user *\n"
	"viewer       certificate CN=look, with blanks,O=Site";

static struct access *parsed(const char *text)
{
	struct access *a = NULL;
	struct err err = { 0 };

	if (access_parse("access", text, strlen(text), OWNER, &a, &err)) {
		fail_msg("%s", err.msg);
	}
	return a;
}

static struct rpc_peer user(uid_t uid, gid_t gid, gid_t also)
{
	return (struct rpc_peer){ .uid = uid, .gid = gid, .n_groups = 1,
				  .groups = { also } };
}

static struct rpc_peer certificate(const char *name)
{
	struct rpc_peer p = { .remote = true };

	strcpy(p.name, name);
	return p;
}

/* What a peer may: "", or some of "health status apply". */
static void assert_may(const struct access *a, struct rpc_peer peer,
		       const char *what)
{
	struct err err = { 0 };

	assert_int_equal(access_permit(a, &peer, HEALTH, &err), 0);
	assert_int_equal(access_permit(a, &peer, STATUS, &err),
			 strstr(what, "status") ? 0 : WEFT_EDENIED);
	assert_int_equal(access_permit(a, &peer, APPLY, &err),
			 strstr(what, "apply") ? 0 : WEFT_EDENIED);
	/* What no table knows, and what begins like something harmless. */
	assert_int_equal(access_permit(a, &peer, "/weft.v1.FabricService/StatusX",
				       &err),
			 strstr(what, "apply") ? 0 : WEFT_EDENIED);
}

static void test_roles(void **state)
{
	struct access *a = parsed(grants);

	(void)state;
	assert_may(a, user(0, 0, 0), "status apply");
	assert_may(a, user(OWNER, 1, 1), "status apply");
	assert_may(a, user(7, 50, 1), "status apply");
	assert_may(a, user(7, 1, 50), "status apply");
	assert_may(a, user(1000, 1, 1), "status");
	assert_may(a, user(7, 1, 1), "status");
	assert_may(a, certificate("CN=ops,O=Site"), "status apply");
	assert_may(a, certificate("CN=look, with blanks,O=Site"), "status");
	assert_may(a, certificate("CN=ops"), "");
	assert_may(a, certificate(""), "");
	access_free(a);
}

/* A remote peer has no user, whatever its members hold. */
static void test_remote_is_no_user(void **state)
{
	struct access *a = parsed("operator user *\noperator group *");
	struct rpc_peer p = certificate("CN=x");

	(void)state;
	p.uid = 0;
	assert_may(a, p, "");
	access_free(a);
	a = parsed("operator certificate *");
	assert_may(a, user(7, 1, 1), "");
	assert_may(a, p, "status apply");
	access_free(a);
}

static void test_without_file(void **state)
{
	struct access *a;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(access_new(NULL, OWNER, &a, &err), 0);
	assert_may(a, user(0, 0, 0), "status apply");
	assert_may(a, user(OWNER, 1, 1), "status apply");
	assert_may(a, user(7, 1, 1), "status");
	assert_may(a, certificate("CN=ops"), "");
	access_free(a);
}

static void test_refused_files(void **state)
{
	static const struct {
		const char *text, *says;
		int line;
	} cases[] = {
		{ "none user 1", "\"none\" is not viewer, orchestrator", 1 },
		{ "\n\nroot", "\"root\" is not viewer", 3 },
		{ "viewer", "\"\" is not user, group or", 1 },
		{ "viewer uid 3", "\"uid\" is not user, group or", 1 },
		{ "viewer user", "which user?", 1 },
		{ "viewer user 1\nviewer group no-such-group",
		  "there is no group \"no-such-group\"", 2 },
		{ "viewer user -1", "there is no user \"-1\"", 1 },
		{ "viewer user 99999999999", "there is no user", 1 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct access *a;
		struct err err = { 0 };

		assert_int_equal(access_parse("access", cases[i].text,
					      strlen(cases[i].text), OWNER, &a,
					      &err), WEFT_EINVAL);
		assert_null(a);
		assert_int_equal(err.line, cases[i].line);
		assert_non_null(strstr(err.msg, cases[i].says));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_roles),
		cmocka_unit_test(test_remote_is_no_user),
		cmocka_unit_test(test_without_file),
		cmocka_unit_test(test_refused_files),
	};

	log_set_level(LOG_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
