/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `polatis-restconf` beyond the contract: what goes over the wire, what each
 * status means, log-in, HTTPS, events, and the forms of answers.
 */
#include "tests/unit/drivers/rig.h"

#include <fcntl.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/stat.h>

#include "drivers/restconf/restconf.h"

#define CIRCUITS "/api/data/optical-switch:cross-connects"

static struct rig *set_up_form(const char *form, const char *key, const char *value)
{
	struct rig *r = test_calloc(1, sizeof(*r));

	assert_non_null(r);
	rig_init(r, "polatis-restconf", 8, 8, false);
	rig_option(r, "gap_ms", "0");
	rig_option(r, "settle_ms", "1");
	if (key) {
		rig_option(r, key, value);
	}
	r->extra[0] = form ? "--form" : NULL;
	r->extra[1] = form;
	rig_start_emulator(r, "8x8", NULL);
	rig_open(r);
	return r;
}

static struct rig *set_up(void)
{
	return set_up_form(NULL, NULL, NULL);
}

static void tear_down(struct rig *r)
{
	rig_fini(r);
	test_free(r);
}

/* ---- what goes over the wire ------------------------------------------------ */

static void expect_lines(struct rig *r, const char *const *want)
{
	for (int i = 0; want[i]; i++) {
		assert_true(i < r->n_lines);
		assert_string_equal(r->lines[i], want[i]);
	}
}

static void explains_what_it_sends(void **state)
{
	static const struct drv_item items[] = { ADD(0, 4), ADD(1, 5), DEL(0, 4) };
	static const char *const want[] = {
		"> GET " CIRCUITS,
		"> PUT " CIRCUITS "/pair=1 {\"optical-switch:pair\":"
		"[{\"ingress\":1,\"egress\":13}]}",
		"> PUT " CIRCUITS "/pair=2 {\"optical-switch:pair\":"
		"[{\"ingress\":2,\"egress\":14}]}",
		"> DELETE " CIRCUITS "/pair=1",
		NULL };
	struct drv_batch batch = { .mode = DRV_SAFE, .n_items = 3, .items = items };
	struct rig *r = set_up();

	(void)state;
	drv_explain(r->dev, &batch, rig_trace, r);
	assert_int_equal(r->n_lines, 4);
	expect_lines(r, want);
	/* With the size known, and but for the last look at the map, the same. */
	assert_int_equal(rig_snapshot(r), 0);
	r->n_lines = 0;
	r->only_sent = true;
	assert_int_equal(rig_submit(r, DRV_SAFE, 3, items), 0);
	assert_int_equal(r->n_lines, 5);
	expect_lines(r, want);
	assert_string_equal(r->lines[4], "> GET " CIRCUITS);
	tear_down(r);
}

static void replaces_by_one_request(void **state)
{
	static const struct drv_item items[] = { ADD(0, 4), ADD(1, 5) };
	struct rig *r = set_up();

	(void)state;
	assert_int_equal(rig_submit(r, DRV_REPLACE, 2, items), 0);
	assert_int_equal(rig_n_lines(r, '>', "PUT " CIRCUITS " {\"optical-switch:cross-connects\":"
				     "{\"pair\":[{\"ingress\":1,\"egress\":13},"
				     "{\"ingress\":2,\"egress\":14}]}}"), 1);
	assert_int_equal(rig_stat(r, "sets"), 1);
	assert_int_equal(rig_submit(r, DRV_REPLACE, 0, NULL), 0);
	assert_int_equal(rig_n_lines(r, '>', "DELETE " CIRCUITS), 1);
	assert_int_equal(rig_stat(r, "sets"), 2);
	rig_expect_map(r, "");
	tear_down(r);
}

/* A PUT replaces what its ingress had; what else is in the way goes first. */
static void takes_over_by_an_ingress_or_a_delete(void **state)
{
	static const struct drv_item first[] = { ADD(0, 4), ADD(1, 5) };
	static const struct drv_item same[] = { ADD(0, 6) }, steal[] = { ADD(0, 5) };
	struct rig *r = set_up();

	(void)state;
	assert_int_equal(rig_submit(r, DRV_SAFE, 2, first), 0);
	assert_int_equal(rig_submit(r, DRV_UPDATE, 1, same), 0);
	assert_int_equal(rig_n_lines(r, '>', "DELETE"), 0);
	assert_int_equal(rig_submit(r, DRV_UPDATE, 1, steal), 0);
	assert_int_equal(rig_n_lines(r, '>', "DELETE " CIRCUITS "/pair=2"), 1);
	rig_expect_map(r, "0-5");
	tear_down(r);
}

static void sets_ports_by_the_modules_own_call(void **state)
{
	struct rig *r = set_up();

	(void)state;
	assert_int_equal(rig_port(r, true, 2, false), 0);
	rig_expect(r, 0, DRV_DONE);
	assert_int_equal(r->outcomes[0].evidence, DRV_READ_BACK);
	assert_int_equal(rig_n_lines(r, '>', "POST /api/operations/optical-switch:port-set-state "
				     "{\"optical-switch:input\":{\"port-disab\":[11]}}"), 1);
	assert_int_equal(rig_snapshot(r), 0);
	assert_int_equal(r->snap.n_ports, 1);
	assert_false(r->snap.ports[0].enabled);
	rig_control(r, "fault status-set=403", NULL, 0);
	assert_int_equal(rig_port(r, true, 2, true), WEFT_EDEVICE);
	rig_expect(r, 0, DRV_REFUSED);
	assert_string_equal(r->outcomes[0].code, "403");
	assert_int_equal(rig_port(r, true, 2, true), 0);
	tear_down(r);
}

static void reads_powers_and_what_is_left_after_a_power_loss(void **state)
{
	static const struct drv_item items[] = { ADD(0, 4) };
	struct rig *r = set_up_form(NULL, "power", "both");

	(void)state;
	assert_int_equal(rig_submit(r, DRV_SAFE, 1, items), 0);
	assert_int_equal(rig_snapshot(r), 0);
	assert_int_equal(r->snap.n_ports, 16);
	assert_true(r->snap.ports[0].has_power);
	assert_true(r->snap.xcs[0].has_loss);
	assert_int_equal(r->snap.caps.persistence, DRV_PERSIST_AUTOSAVE);
	rig_control(r, "fault no-monitors", NULL, 0);
	assert_int_equal(rig_snapshot(r), WEFT_EDEVICE);
	assert_non_null(strstr(r->err.msg, "option power"));
	tear_down(r);
}

/* ---- statuses ---------------------------------------------------------------- */

static void every_status_has_its_meaning(void **state)
{
	static const struct {
		const char *status;
		int read_rc;
		enum drv_class_of_error set;
		const char *text;
	} cases[] = {
		{ "302", WEFT_EDEVICE, DRV_ERR_CONFIGURATION, "not followed" },
		{ "400", WEFT_EDEVICE, DRV_ERR_CONFIGURATION, "operation-failed: as the fault" },
		{ "401", WEFT_EDEVICE, DRV_ERR_CONFIGURATION, "log-in" },
		{ "403", WEFT_EDEVICE, DRV_ERR_STATE, "operation-failed" },
		{ "409", WEFT_EDEVICE, DRV_ERR_STATE, "operation-failed" },
		{ "500", WEFT_EDEVICE, DRV_ERR_STATE, "operation-failed" },
		{ "502", WEFT_EUNAVAIL, DRV_ERR_STATE, "operation-failed" },
	};
	static const struct drv_item items[] = { ADD(0, 4), ADD(1, 5) };
	struct rig *r = set_up();
	char fault[48];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		snprintf(fault, sizeof(fault), "fault status=%s", cases[i].status);
		rig_control(r, fault, NULL, 0);
		assert_int_equal(rig_snapshot(r), cases[i].read_rc);
		assert_non_null(strstr(r->err.msg, cases[i].status));
		snprintf(fault, sizeof(fault), "fault status-set=%s", cases[i].status);
		rig_control(r, fault, NULL, 0);
		assert_int_equal(rig_submit(r, DRV_SAFE, 2, items), WEFT_EDEVICE);
		rig_expect(r, 0, DRV_REFUSED);
		rig_expect(r, 1, DRV_SKIPPED);
		assert_int_equal(r->outcomes[0].error, cases[i].set);
		assert_string_equal(r->outcomes[0].code, cases[i].status);
		assert_non_null(strstr(r->outcomes[0].text, cases[i].text));
		rig_expect_map(r, "");
	}
	tear_down(r);
}

/* 503 with Retry-After is waited for, and asked once more. */
static void waits_as_it_is_told(void **state)
{
	static const struct drv_item items[] = { ADD(0, 4) };
	struct rig *r = set_up();

	(void)state;
	rig_control(r, "fault status-set=503", NULL, 0);
	assert_int_equal(rig_submit(r, DRV_SAFE, 1, items), 0);
	assert_int_equal(rig_stat(r, "sets"), 2);
	rig_expect_map(r, "0-4");
	tear_down(r);
}

/* An answer that nothing is there is an empty map; any other 404 is none. */
static void circuits_do_not_vanish_by_an_unknown_path(void **state)
{
	static const struct drv_item items[] = { ADD(0, 4) };
	struct rig *r = set_up_form("pairs", "list", "pairs");

	(void)state;
	rig_expect_map(r, "");
	rig_control(r, "fault status=404", NULL, 0);
	assert_int_equal(rig_submit(r, DRV_SAFE, 1, items), WEFT_EDEVICE);
	rig_expect(r, 0, DRV_SKIPPED);
	tear_down(r);
}

/* ---- log-in and HTTPS ----------------------------------------------------------- */

static void logs_in_and_keeps_the_password_to_itself(void **state)
{
	struct rig *r = set_up();

	(void)state;
	rig_close(r);
	rig_option(r, "user", "admin");
	rig_option(r, "password_file", r->password);
	rig_open(r);
	assert_int_equal(rig_snapshot(r), WEFT_EDENIED);
	assert_non_null(strstr(r->err.msg, "password_file"));
	rig_password(r, "secret\n");
	assert_int_equal(chmod(r->password, 0640), 0);
	assert_int_equal(rig_snapshot(r), WEFT_EDENIED);
	assert_non_null(strstr(r->err.msg, "others may read it"));
	assert_int_equal(chmod(r->password, 0600), 0);
	assert_int_equal(rig_snapshot(r), WEFT_EDEVICE);
	assert_non_null(strstr(r->err.msg, "401"));
	rig_close(r);
	rig_password(r, "root\r\nmore\n");
	rig_open(r);
	assert_int_equal(rig_snapshot(r), 0);
	assert_int_equal(rig_n_lines(r, '>', "secret") + rig_n_lines(r, '>', "uthorization") +
			 rig_n_lines(r, '>', "Basic"), 0);
	tear_down(r);
}

static void refuses_options_that_contradict(void **state)
{
	static const struct drv_option bad[][2] = {
		{ { "tls", "maybe" }, { "gap_ms", "0" } },
		{ { "tls_ca", "/ca.pem" }, { "gap_ms", "0" } },
		{ { "tls_verify", "no" }, { "tls", "no" } },
		{ { "tls", "yes" }, { "tls_cert", "/c.pem" } },
		{ { "user", "admin" }, { "gap_ms", "0" } },
		{ { "list", "circuits" }, { "gap_ms", "0" } },
		{ { "power", "some" }, { "gap_ms", "0" } },
	};
	struct drv *dev;
	uv_loop_t loop;

	(void)state;
	uv_loop_init(&loop);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct drv_config cfg = { .name = "dut", .address = "127.0.0.1:1", .n_in = 4,
					  .n_out = 4, .options = bad[i], .n_options = 2 };
		struct err err = { 0 };

		assert_int_equal(drv_open(&loop, "polatis-restconf", &cfg, &dev, &err),
				 WEFT_EINVAL);
		assert_non_null(strstr(err.msg, "option"));
	}
	assert_int_equal(uv_loop_close(&loop), 0);
}

static void must(const char *command)
{
	if (system(command)) {
		fail_msg("%s", command);
	}
}

/* Copies bytes between a client's TLS and the emulator until one of them ends. */
static void forward(SSL *ssl, int client, int device)
{
	struct pollfd fds[] = { { client, POLLIN, 0 }, { device, POLLIN, 0 } };
	char bytes[4096];
	int n = 1;

	while (n > 0) {
		if (SSL_pending(ssl) == 0) {
			poll(fds, 2, -1);
		}
		if (SSL_pending(ssl) || fds[0].revents) {
			n = SSL_read(ssl, bytes, sizeof(bytes));
			n = n > 0 ? (int)write(device, bytes, (size_t)n) : n;
		} else if (fds[1].revents) {
			n = (int)read(device, bytes, sizeof(bytes));
			n = n > 0 ? SSL_write(ssl, bytes, n) : n;
		}
	}
}

static void serve_tls(const struct rig *r, int listener, const struct sockaddr_in *device)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
	char path[96];

	signal(SIGPIPE, SIG_IGN);
	snprintf(path, sizeof(path), "%s/cert.pem", r->dir);
	SSL_CTX_use_certificate_chain_file(ctx, path);
	snprintf(path, sizeof(path), "%s/key.pem", r->dir);
	SSL_CTX_use_PrivateKey_file(ctx, path, SSL_FILETYPE_PEM);
	for (;;) {
		int fd = accept(listener, NULL, NULL), to = socket(AF_INET, SOCK_STREAM, 0);
		SSL *ssl = SSL_new(ctx);

		SSL_set_fd(ssl, fd);
		if (connect(to, (const struct sockaddr *)device, sizeof(*device)) == 0 &&
		    SSL_accept(ssl) == 1) {
			forward(ssl, fd, to);
		}
		SSL_free(ssl);
		close(fd);
		close(to);
	}
}

/* A process that puts TLS before the emulator; r->address is its own then. */
static pid_t start_tls(struct rig *r)
{
	struct sockaddr_in own = { .sin_family = AF_INET }, device;
	socklen_t len = sizeof(own);
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	char command[512];
	pid_t pid;

	snprintf(command, sizeof(command),
		 "cd %s && openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem "
		 "-days 2 -subj /CN=127.0.0.1 -addext subjectAltName=IP:127.0.0.1 2>/dev/null",
		 r->dir);
	must(command);
	assert_int_equal(uv_ip4_addr("127.0.0.1", atoi(strchr(r->address, ':') + 1), &device), 0);
	own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(bind(listener, (struct sockaddr *)&own, sizeof(own)), 0);
	assert_int_equal(listen(listener, 8), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&own, &len), 0);
	fflush(NULL);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		serve_tls(r, listener, &device);
	}
	close(listener);
	snprintf(r->address, sizeof(r->address), "127.0.0.1:%d", ntohs(own.sin_port));
	return pid;
}

static int snapshot_with(struct rig *r, int n_options)
{
	int rc;

	r->cfg.n_options = n_options;
	rig_open(r);
	rc = rig_snapshot(r);
	rig_close(r);
	return rc;
}

static void checks_certificates(void **state)
{
	struct rig *r = test_calloc(1, sizeof(*r));
	char path[96], command[128];
	pid_t server;
	int status;

	(void)state;
	assert_non_null(r);
	rig_init(r, "polatis-restconf", 8, 8, false);
	rig_start_emulator(r, "8x8", NULL);
	server = start_tls(r);
	snprintf(path, sizeof(path), "%s/cert.pem", r->dir);
	rig_option(r, "events_ms", "0");
	rig_option(r, "tls", "yes");
	/* No authority that we know has signed it. */
	assert_int_equal(snapshot_with(r, 2), WEFT_EUNAVAIL);
	assert_non_null(strstr(r->err.msg, "certificate"));
	rig_option(r, "tls_ca", path);
	if (snapshot_with(r, 3)) {
		fail_msg("%s", r->err.msg);
	}
	r->options[2].key = "tls_verify";
	r->options[2].value = "no";
	assert_int_equal(snapshot_with(r, 3), 0);
	kill(server, SIGKILL);
	assert_int_equal(waitpid(server, &status, 0), server);
	snprintf(command, sizeof(command), "rm -f %s/*.pem", r->dir);
	must(command);
	tear_down(r);
}

/* ---- events ----------------------------------------------------------------------- */

/* Something is there to be told of, again and again until it is told: when the
 * driver begins to listen is its own business. */
static void expect_events(struct rig *r)
{
	const struct rig_event *e;

	assert_int_equal(rig_snapshot(r), 0);
	for (int i = 0; i < 400 && r->n_events == 0; i++) {
		rig_control(r, i % 2 ? "unset 2,6" : "set 2,6", NULL, 0);
		rig_be_idle(r, 50);
	}
	e = rig_wait_event(r, DRV_EVENT_CHANGED);
	assert_true(e->ev.has_port);
	assert_false(e->ev.is_out);
	assert_int_equal(e->ev.index, 2);
	assert_non_null(strstr(e->text, "activity-log-notification"));
	r->n_events = 0;
	rig_control(r, "fault port-failed=o3", NULL, 0);
	e = rig_wait_event(r, DRV_EVENT_ALARM);
	assert_true(e->ev.is_out);
	assert_int_equal(e->ev.index, 3);
}

static void hears_of_events_by_a_stream(void **state)
{
	struct rig *r = set_up_form(NULL, "events_ms", "20");

	(void)state;
	expect_events(r);
	assert_int_equal(rig_n_lines(r, '>', "notification-log"), 0);
	tear_down(r);
}

static void hears_of_events_by_the_log(void **state)
{
	struct rig *r = set_up_form("bare", "events_ms", "20");

	(void)state;
	expect_events(r);
	tear_down(r);
}

/* ---- forms of answers --------------------------------------------------------------- */

static void reads_every_form_of_a_list(void **state)
{
	/* As pqn-stack, UFABC_REDES, polatis2, Polartis' clients take them. */
	static const char *const good[] = {
		"{\"optical-switch:cross-connects\":{\"pair\":[{\"ingress\":1,\"egress\":13}]}}",
		"{\"cross-connects\":{\"pair\":{\"ingress\":1,\"egress\":13}}}",
		"{\"optical-switch:pair\":[{\"ingress\":\"1\",\"egress\":\"13\"}]}",
		"{\"pair\":{\"egress\":13,\"ingress\":1,\"label\":\"x\"}}",
		"{\"cross-connects\":{\"pairs\":[{\"ingress\":1,\"egress\":13}]}}",
	};
	static const char *const empty[] = { "", " \r\n", "{}", "{\"cross-connects\":{}}",
					     "{\"optical-switch:cross-connects\":{\"pair\":[]}}" };
	static const char *const bad[] = {
		"[]", "null", "{\"errors\":[]}", "<cross-connects/>", "{\"pair\":7}",
		"{\"pair\":[{\"ingress\":1}]}", "{\"pair\":[{\"ingress\":0,\"egress\":13}]}",
		"{\"pair\":[{\"ingress\":1.5,\"egress\":13}]}",
		"{\"pair\":[{\"ingress\":\"1x\",\"egress\":13}]}",
		"{\"pair\":[{\"ingress\":1,\"egress\":9000}]}", "{\"pair\":[",
	};
	struct restconf_pair *pairs;
	int n;

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_int_equal(restconf_parse_pairs(good[i], &pairs, &n, NULL), 0);
		assert_int_equal(n, 1);
		assert_int_equal(pairs[0].ingress, 1);
		assert_int_equal(pairs[0].egress, 13);
		free(pairs);
	}
	for (size_t i = 0; i < sizeof(empty) / sizeof(empty[0]); i++) {
		assert_int_equal(restconf_parse_pairs(empty[i], &pairs, &n, NULL), 0);
		assert_int_equal(n, 0);
		free(pairs);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(restconf_parse_pairs(bad[i], &pairs, &n, NULL), WEFT_EDEVICE);
	}
}

static void reads_errors_in_every_form(void **state)
{
	static const struct {
		const char *body, *tag, *text;
	} cases[] = {
		{ "{\"ietf-restconf:errors\":{\"error\":[{\"error-tag\":\"in-use\","
		  "\"error-message\":\"port 5\"}]}}", "in-use", "port 5" },
		{ "{\"errors\":{\"error\":{\"error-tag\":\"data-missing\"}}}", "data-missing", "" },
		{ "\r\nconflict\x01 here\nand more", "", "conflict? here" },
		{ "", "", "" }, { "[]", "", "" },
	};
	char tag[40], text[40];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		restconf_parse_error(cases[i].body, tag, sizeof(tag), text, sizeof(text));
		assert_string_equal(tag, cases[i].tag);
		assert_string_equal(text, cases[i].text);
	}
}

static void takes_the_first_stream_of_json(void **state)
{
	static const char body[] =
		"{\"ietf-restconf-monitoring:streams\":{\"stream\":["
		"{\"access\":[{\"encoding\":\"xml\",\"location\":\"/xml\"},"
		"{\"encoding\":\"json\",\"location\":\"https://h/first\"}]},"
		"{\"access\":[{\"encoding\":\"json\",\"location\":\"/second\"}]},"
		"{\"access\":[{\"encoding\":\"json\",\"location\":\"none\"}]}]}}";
	char path[64];

	(void)state;
	assert_true(restconf_parse_stream(body, path, sizeof(path)));
	assert_string_equal(path, "/first");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(explains_what_it_sends),
		cmocka_unit_test(replaces_by_one_request),
		cmocka_unit_test(takes_over_by_an_ingress_or_a_delete),
		cmocka_unit_test(sets_ports_by_the_modules_own_call),
		cmocka_unit_test(reads_powers_and_what_is_left_after_a_power_loss),
		cmocka_unit_test(every_status_has_its_meaning),
		cmocka_unit_test(waits_as_it_is_told),
		cmocka_unit_test(circuits_do_not_vanish_by_an_unknown_path),
		cmocka_unit_test(logs_in_and_keeps_the_password_to_itself),
		cmocka_unit_test(refuses_options_that_contradict),
		cmocka_unit_test(checks_certificates),
		cmocka_unit_test(hears_of_events_by_a_stream),
		cmocka_unit_test(hears_of_events_by_the_log),
		cmocka_unit_test(reads_every_form_of_a_list),
		cmocka_unit_test(reads_errors_in_every_form),
		cmocka_unit_test(takes_the_first_stream_of_json),
	};

	return cmocka_run_group_tests_name("drivers/restconf", tests, NULL, NULL);
}
