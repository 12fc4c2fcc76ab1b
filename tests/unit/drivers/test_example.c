/* SPDX-License-Identifier: Apache-2.0 */
/* The driver that docs/examples/driver shows to those who write one: it
 * compiles, and does what docs/drivers.md asks of a driver against a switch
 * that speaks its dialect. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "docs/examples/driver/example_ocs.c"

#define SIZE 8

/* The switch: one session, a map from inputs to outputs (0: none). */
struct bench {
	uv_loop_t loop;
	uv_tcp_t listener, *peer;	/* peer: of the session, or NULL */
	bool mute, garbage;
	int map[SIZE + 1];
	char line[256];
	size_t len;
	struct drv *dev;
	bool over;
	int rc, n;
	char text[512];
	struct drv_outcome outcomes[4];
	struct optics_xc xcs[SIZE];
};

static void reply(struct bench *b, const char *text)
{
	uv_buf_t out = uv_buf_init((char *)text, (unsigned)strlen(text));

	assert_int_equal(uv_try_write((uv_stream_t *)b->peer, &out, 1), strlen(text));
}

static void obey(struct bench *b, const char *line)
{
	char text[256] = "MAP";
	int in, out;

	if (b->mute) {
		return;
	}
	if (b->garbage) {
		reply(b, "MAP 1>99\n");
	} else if (strcmp(line, "ID") == 0) {
		reply(b, "ID Example 8x8 serial 17\n");
	} else if (strcmp(line, "MAP") == 0) {
		for (int i = 1; i <= SIZE; i++) {
			size_t len = strlen(text);

			if (b->map[i]) {
				snprintf(text + len, sizeof(text) - len, " %d>%d", i, b->map[i]);
			}
		}
		strcat(text, "\n");
		reply(b, text);
	} else if (sscanf(line, "JOIN %d %d", &in, &out) == 2) {
		for (int i = 1; i <= SIZE; i++) {
			b->map[i] = b->map[i] == out ? 0 : b->map[i];
		}
		b->map[in] = in == 8 ? 0 : out;
		reply(b, in == 8 ? "ERR input 8 is broken\n" : "OK\n");
	} else if (sscanf(line, "CUT %d %d", &in, &out) == 2) {
		assert_int_equal(b->map[in], out);
		b->map[in] = 0;
		reply(b, "OK\n");
	} else {
		fail_msg("the switch got '%s'", line);
	}
}

static void on_alloc(uv_handle_t *h, size_t hint, uv_buf_t *out)
{
	static char bytes[256];

	(void)h;
	(void)hint;
	*out = uv_buf_init(bytes, sizeof(bytes));
}

static void free_peer(uv_handle_t *peer)
{
	free(peer);
}

static void hang_up(struct bench *b)
{
	if (b->peer) {
		uv_close((uv_handle_t *)b->peer, free_peer);
		b->peer = NULL;
	}
}

static void on_read(uv_stream_t *peer, ssize_t n, const uv_buf_t *bytes)
{
	struct bench *b = peer->data;

	if (n < 0) {
		hang_up(b);
	}
	for (ssize_t i = 0; i < n; i++) {
		if (bytes->base[i] == '\n') {
			b->line[b->len] = '\0';
			b->len = 0;
			obey(b, b->line);
		} else {
			assert_true(b->len < sizeof(b->line) - 1);
			b->line[b->len++] = bytes->base[i];
		}
	}
}

static void on_peer(uv_stream_t *listener, int status)
{
	struct bench *b = listener->data;

	assert_int_equal(status, 0);
	hang_up(b);
	b->len = 0;
	b->peer = malloc(sizeof(*b->peer));
	uv_tcp_init(&b->loop, b->peer);
	b->peer->data = b;
	assert_int_equal(uv_accept(listener, (uv_stream_t *)b->peer), 0);
	uv_read_start((uv_stream_t *)b->peer, on_alloc, on_read);
}

static int setup(void **state)
{
	struct bench *b = calloc(1, sizeof(*b));
	struct sockaddr_in any;
	int len = sizeof(any);
	char address[32];
	struct drv_config cfg = { .name = "dut", .address = address,
				  .n_in = SIZE, .n_out = SIZE, .timeout_ms = 300 };

	uv_loop_init(&b->loop);
	uv_tcp_init(&b->loop, &b->listener);
	b->listener.data = b;
	uv_ip4_addr("127.0.0.1", 0, &any);
	assert_int_equal(uv_tcp_bind(&b->listener, (struct sockaddr *)&any, 0), 0);
	assert_int_equal(uv_listen((uv_stream_t *)&b->listener, 4, on_peer), 0);
	uv_tcp_getsockname(&b->listener, (struct sockaddr *)&any, &len);
	snprintf(address, sizeof(address), "127.0.0.1:%d", ntohs(any.sin_port));
	assert_int_equal(base_open(&drv_example_ocs, &b->loop, &cfg, &b->dev, NULL), 0);
	*state = b;
	return 0;
}

static void on_closed(void *arg)
{
	struct bench *b = arg;

	uv_close((uv_handle_t *)&b->listener, NULL);
	hang_up(b);
}

static int teardown(void **state)
{
	struct bench *b = *state;

	drv_close(b->dev, on_closed, b);
	uv_run(&b->loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&b->loop), 0);
	free(b);
	return 0;
}

static void run(struct bench *b)
{
	for (b->over = false; !b->over;) {
		uv_run(&b->loop, UV_RUN_ONCE);
	}
}

static void on_snapshot(struct drv *dev, int rc, struct drv_snapshot *snap,
			const struct err *err, void *arg)
{
	struct bench *b = arg;

	(void)dev;
	b->over = true;
	b->rc = rc;
	b->n = rc ? 0 : snap->n_xcs;
	snprintf(b->text, sizeof(b->text), "%s", rc ? err->msg : snap->identity);
	for (int i = 0; i < b->n; i++) {
		b->xcs[i] = snap->xcs[i].xc;
	}
}

static void snapshot(struct bench *b)
{
	drv_snapshot(b->dev, on_snapshot, b);
	run(b);
}

static void on_submit(struct drv *dev, int rc, int n, const struct drv_outcome *outcomes,
		      const struct err *err, void *arg)
{
	struct bench *b = arg;

	(void)dev;
	b->over = true;
	b->rc = rc;
	b->n = n;
	snprintf(b->text, sizeof(b->text), "%s", rc ? err->msg : "");
	memcpy(b->outcomes, outcomes, (size_t)n * sizeof(*outcomes));
}

static void submit(struct bench *b, enum drv_mode mode, const struct drv_item *items, int n)
{
	const struct drv_batch batch = { .mode = mode, .n_items = n, .items = items };

	drv_submit(b->dev, &batch, on_submit, b);
	run(b);
}

static void the_map_is_read(void **state)
{
	struct bench *b = *state;

	b->map[1] = 3;
	b->map[2] = 4;
	snapshot(b);
	assert_int_equal(b->rc, 0);
	assert_string_equal(b->text, "Example 8x8 serial 17");
	assert_int_equal(b->n, 2);
	assert_int_equal(b->xcs[1].in, 1);
	assert_int_equal(b->xcs[1].out, 3);
}

static void circuits_are_made_and_removed(void **state)
{
	struct bench *b = *state;
	const struct drv_item items[] = { { DRV_DEL, { 0, 2 } }, { DRV_ADD, { 0, 5 } } };

	b->map[1] = 3;
	submit(b, DRV_SAFE, items, 2);
	assert_int_equal(b->rc, 0);
	assert_int_equal(b->outcomes[0].result, DRV_DONE);
	assert_int_equal(b->outcomes[1].evidence, DRV_ACKED);
	assert_int_equal(b->map[1], 6);
}

static void a_busy_port_is_not_taken_in_safe_mode(void **state)
{
	struct bench *b = *state;
	const struct drv_item item = { DRV_ADD, { 0, 5 } };

	b->map[7] = 6;
	submit(b, DRV_SAFE, &item, 1);
	assert_int_equal(b->outcomes[0].result, DRV_REFUSED);
	assert_int_equal(b->map[1], 0);
	submit(b, DRV_UPDATE, &item, 1);
	assert_int_equal(b->outcomes[0].result, DRV_DONE);
	assert_int_equal(b->map[1], 6);
	assert_int_equal(b->map[7], 0);
}

static void what_comes_after_a_refusal_is_skipped(void **state)
{
	struct bench *b = *state;
	const struct drv_item items[] = { { DRV_ADD, { 7, 0 } }, { DRV_ADD, { 0, 1 } } };

	submit(b, DRV_SAFE, items, 2);
	assert_int_equal(b->rc, WEFT_EDEVICE);
	assert_int_equal(b->outcomes[0].result, DRV_REFUSED);
	assert_non_null(strstr(b->outcomes[0].text, "input 8 is broken"));
	assert_int_equal(b->outcomes[1].result, DRV_SKIPPED);
}

static void silence_and_nonsense_end_the_operation(void **state)
{
	struct bench *b = *state;

	b->mute = true;
	snapshot(b);
	assert_int_equal(b->rc, WEFT_ETIMEOUT);
	b->mute = false;
	b->garbage = true;
	snapshot(b);
	assert_int_equal(b->rc, WEFT_EDEVICE);
	b->garbage = false;
	snapshot(b);
	assert_int_equal(b->rc, 0);
}

static void on_line(const char *device, const char *line, bool is_reply, void *arg)
{
	assert_string_equal(device, "dut");
	assert_false(is_reply);
	strcat(strcat(arg, line), ";");
}

static void a_dry_run_shows_the_commands(void **state)
{
	struct bench *b = *state;
	const struct drv_item item = { DRV_ADD, { 0, 5 } };
	const struct drv_batch batch = { .n_items = 1, .items = &item };
	char lines[64] = "";

	drv_explain(b->dev, &batch, on_line, lines);
	assert_string_equal(lines, "MAP;JOIN 1 6;");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_map_is_read, setup, teardown),
		cmocka_unit_test_setup_teardown(circuits_are_made_and_removed, setup, teardown),
		cmocka_unit_test_setup_teardown(a_busy_port_is_not_taken_in_safe_mode, setup,
						teardown),
		cmocka_unit_test_setup_teardown(what_comes_after_a_refusal_is_skipped, setup,
						teardown),
		cmocka_unit_test_setup_teardown(silence_and_nonsense_end_the_operation, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_dry_run_shows_the_commands, setup, teardown),
	};

	return cmocka_run_group_tests_name("drivers/example", tests, NULL, NULL);
}
