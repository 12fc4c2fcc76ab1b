/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A device on the bench: a driver's handle, and for those that speak to one
 * an emulator in a forked process on a port that the kernel chose. Turns the
 * asynchronous calls into plain ones and checks, for each of them, that the
 * call back comes once and never from inside the call.
 */
#ifndef WEFT_TESTS_UNIT_DRIVERS_RIG_H
#define WEFT_TESTS_UNIT_DRIVERS_RIG_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "drivers/core/driver.h"
#include "drivers/emulators/core/emulator.h"
#include "tests/unit/packed.h"

#define RIG_MAX_OPTIONS 8

struct rig {
	uv_loop_t loop;
	struct drv *dev;
	struct drv_config cfg;
	struct drv_option options[RIG_MAX_OPTIONS];
	char dir[64], address[96], control[108], state[108];
	char password[108];	/* a file, from rig_password */
	const char *driver;
	char netns[64];		/* a namespace of its own, or "" */
	const char *extra[2];	/* one more option of the emulator */
	pid_t emulator;		/* 0: none */
	bool inside;		/* a call into the driver is running */
	/* the last answers */
	int n_answers, rc;
	struct err err;
	struct drv_snapshot snap;
	int n_outcomes;
	struct drv_outcome outcomes[4096];
	int n_events;
	struct rig_event {
		struct drv_event ev;	/* text is below */
		char text[256];
	} events[64];
	bool only_sent;		/* of what is traced */
	int n_lines;
	char lines[64][512];	/* traced, "> " sent, "< " received */
};

/* ---- the emulator --------------------------------------------------------- */

static inline void rig_start_emulator(struct rig *r, const char *size,
				      const char *fault)
{
	char line[128] = "";
	int out[2];
	FILE *f;

	assert_int_equal(pipe(out), 0);
	fflush(NULL);
	r->emulator = fork();
	assert_true(r->emulator >= 0);
	if (r->emulator == 0) {
		const char *listen = r->address[0] ? r->address : "127.0.0.1:0";
		char *argv[] = { "weft-emulator", "--driver",
				 (char *)r->driver, "--listen", (char *)listen,
				 "--size", (char *)size, "--control",
				 r->control, "--state", r->state, "--fibres",
				 "2", NULL, NULL, NULL, NULL, NULL };
		int argc = 13;

		/* A test that failed does not stop its emulator. */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(out[1], 1);
		close(out[0]);
		close(out[1]);
		if (fault) {
			argv[argc++] = "--fault";
			argv[argc++] = (char *)fault;
		}
		if (r->extra[0]) {
			argv[argc++] = (char *)r->extra[0];
			argv[argc++] = (char *)r->extra[1];
		}
		_exit(emulator_main(argc, argv));
	}
	close(out[1]);
	f = fdopen(out[0], "r");
	assert_non_null(f);
	assert_non_null(fgets(line, sizeof(line), f));
	fclose(f);
	assert_int_equal(sscanf(line, "listening %90s", r->address), 1);
}

static inline void rig_stop_emulator(struct rig *r)
{
	int status;

	if (r->emulator > 0) {
		kill(r->emulator, SIGTERM);
		assert_int_equal(waitpid(r->emulator, &status, 0), r->emulator);
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), 0);
	}
	r->emulator = 0;
}

/* Says one line on the control socket; the answer, without its last line,
 * goes to text (may be NULL). The last line must be ok. */
static inline void rig_control(struct rig *r, const char *command, char *text,
			       size_t size)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	char line[256];
	size_t len = 0;
	FILE *f;

	memcpy(addr.sun_path, r->control, strlen(r->control) + 1);
	assert_int_equal(connect(fd, (struct sockaddr *)&addr, sizeof(addr)),
			 0);
	f = fdopen(fd, "r+");
	assert_non_null(f);
	fprintf(f, "%s\n", command);
	fflush(f);
	if (text) {
		text[0] = '\0';
	}
	while (fgets(line, sizeof(line), f) && strcmp(line, "ok\n") != 0) {
		if (strncmp(line, "error", 5) == 0) {
			fail_msg("control '%s': %s", command, line);
		}
		if (text) {
			len += (size_t)snprintf(text + len, size - len, "%s",
						line);
		}
	}
	assert_string_equal(line, "ok\n");
	fclose(f);
}

/* One number of the emulator's `stats`. */
static inline int rig_stat(struct rig *r, const char *name)
{
	char text[512], *at;

	rig_control(r, "stats", text, sizeof(text));
	at = strstr(text, name);
	assert_non_null(at);
	return atoi(at + strlen(name));
}

/* ---- the handle ------------------------------------------------------------ */

static inline void rig_option(struct rig *r, const char *key,
			      const char *value)
{
	assert_true(r->cfg.n_options < RIG_MAX_OPTIONS);
	r->options[r->cfg.n_options].key = key;
	r->options[r->cfg.n_options].value = value;
	r->cfg.n_options++;
}

/* Writes the file that the option password_file names. */
static inline void rig_password(const struct rig *r, const char *text)
{
	FILE *f = fopen(r->password, "w");

	assert_non_null(f);
	assert_int_equal(fchmod(fileno(f), 0600), 0);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

static inline void rig_init(struct rig *r, const char *driver, int n_in,
			    int n_out, bool any_to_any)
{
	memset(r, 0, sizeof(*r));
	r->driver = driver;
	snprintf(r->dir, sizeof(r->dir), "/tmp/weft-rig-XXXXXX");
	assert_non_null(mkdtemp(r->dir));
	snprintf(r->control, sizeof(r->control), "%s/control", r->dir);
	snprintf(r->state, sizeof(r->state), "%s/state", r->dir);
	snprintf(r->password, sizeof(r->password), "%s/password", r->dir);
	r->cfg = (struct drv_config){
		.name = "dut", .address = r->address, .n_in = n_in,
		.n_out = n_out, .any_to_any = any_to_any, .ring_fibres = 2,
		.timeout_ms = 10000, .options = r->options };
	uv_loop_init(&r->loop);
}

static inline void rig_trace(const char *device, const char *line,
			     bool is_reply, void *arg)
{
	struct rig *r = arg;

	assert_string_equal(device, "dut");
	if (r->n_lines < 64 && !(is_reply && r->only_sent)) {
		snprintf(r->lines[r->n_lines++], sizeof(r->lines[0]), "%s %s",
			 is_reply ? "<" : ">", line);
	}
}

/* Lines sent ('>') or received ('<') that hold this text. */
static inline int rig_n_lines(const struct rig *r, char direction,
			      const char *text)
{
	int n = 0;

	for (int i = 0; i < r->n_lines; i++) {
		n += r->lines[i][0] == direction && strstr(r->lines[i], text);
	}
	return n;
}

static inline void rig_on_event(struct drv *dev, const struct drv_event *ev,
				void *arg)
{
	struct rig *r = arg;

	assert_ptr_equal(dev, r->dev);
	assert_false(r->inside);
	if (r->n_events < 64) {
		struct rig_event *e = &r->events[r->n_events++];

		e->ev = *ev;
		snprintf(e->text, sizeof(e->text), "%s", ev->text);
	}
}

static inline void rig_open(struct rig *r)
{
	struct err err = { 0 };

	if (drv_open(&r->loop, r->driver, &r->cfg, &r->dev, &err)) {
		fail_msg("%s", err.msg);
	}
	drv_set_trace(r->dev, rig_trace, r);
	drv_set_events(r->dev, rig_on_event, r);
}

static inline void rig_closed(void *arg)
{
	struct rig *r = arg;

	assert_false(r->inside);
	assert_non_null(r->dev);
	r->dev = NULL;
}

static inline void rig_close(struct rig *r)
{
	if (r->dev) {
		r->inside = true;
		drv_close(r->dev, rig_closed, r);
		r->inside = false;
		while (uv_run(&r->loop, UV_RUN_DEFAULT)) {
			/* stopped by an answer */
		}
		assert_null(r->dev);
	}
}

static inline void rig_fini(struct rig *r)
{
	rig_close(r);
	rig_stop_emulator(r);
	drv_snapshot_fini(&r->snap);
	assert_int_equal(uv_loop_close(&r->loop), 0);
	unlink(r->state);
	unlink(r->password);
	unlink(r->control);
	rmdir(r->dir);
}

static inline void rig_answered(struct rig *r, int rc, const struct err *err)
{
	assert_false(r->inside);
	r->n_answers++;
	/* A turn of the loop ends with it, whatever else there is to wait
	 * for. */
	uv_stop(&r->loop);
	r->rc = rc;
	r->err = *err;
	assert_int_equal(err->code, rc);
}

static inline void rig_on_snapshot(struct drv *dev, int rc,
				   struct drv_snapshot *snap,
				   const struct err *err, void *arg)
{
	struct rig *r = arg;

	assert_ptr_equal(dev, r->dev);
	assert_false(dev->busy);
	rig_answered(r, rc, err);
	drv_snapshot_fini(&r->snap);
	if (rc == 0) {
		r->snap = *snap;
		memset(snap, 0, sizeof(*snap));
	} else {
		assert_null(snap);
	}
}

static inline void rig_on_submit(struct drv *dev, int rc, int n,
				 const struct drv_outcome *outcomes,
				 const struct err *err, void *arg)
{
	struct rig *r = arg;

	assert_ptr_equal(dev, r->dev);
	assert_false(dev->busy);
	rig_answered(r, rc, err);
	r->n_outcomes = n;
	assert_true(n <= 4096);
	if (n) {
		memcpy(r->outcomes, outcomes, (size_t)n * sizeof(*outcomes));
	}
}

static inline void rig_wait(struct rig *r)
{
	while (r->n_answers == 0) {
		int alive = uv_run(&r->loop, UV_RUN_ONCE);

		assert_true(alive || r->n_answers);
	}
	/* A second answer would come in the next turns. */
	for (int i = 0; i < 3; i++) {
		uv_run(&r->loop, UV_RUN_NOWAIT);
	}
	assert_int_equal(r->n_answers, 1);
}

static inline void rig_begin_snapshot(struct rig *r)
{
	r->n_answers = 0;
	r->inside = true;
	drv_snapshot(r->dev, rig_on_snapshot, r);
	r->inside = false;
}

static inline int rig_snapshot(struct rig *r)
{
	rig_begin_snapshot(r);
	rig_wait(r);
	return r->rc;
}

static inline void rig_begin_submit(struct rig *r,
				    const struct drv_batch *batch)
{
	r->n_answers = 0;
	r->inside = true;
	drv_submit(r->dev, batch, rig_on_submit, r);
	r->inside = false;
}

static inline int rig_submit(struct rig *r, enum drv_mode mode, int n,
			     const struct drv_item *items)
{
	struct drv_batch batch = { .mode = mode, .n_items = n,
				   .items = items };

	rig_begin_submit(r, &batch);
	rig_wait(r);
	assert_int_equal(r->n_outcomes, n);
	return r->rc;
}

static inline int rig_programs(struct rig *r, const struct ring_programs *p)
{
	struct drv_batch batch = { .mode = DRV_REPLACE, .programs = p };

	rig_begin_submit(r, &batch);
	rig_wait(r);
	assert_int_equal(r->n_outcomes, 1);
	return r->rc;
}

/* One program for the whole ring; without steps: none. */
static inline int rig_program(struct rig *r, const struct ring_settings *p)
{
	struct ring_programs one = packed(r->cfg.n_in, r->cfg.n_out,
					  r->cfg.ring_fibres, p);
	int rc = rig_programs(r, &one);

	ring_programs_fini(&one);
	return rc;
}

/* What a snapshot says is what was packed; NULL: nothing. */
static inline void rig_expect_program(struct rig *r,
				      const struct ring_settings *want)
{
	static const struct ring_settings none;
	struct ring_programs one = packed(r->cfg.n_in, r->cfg.n_out,
					  r->cfg.ring_fibres,
					  want ? want : &none);

	if (rig_snapshot(r)) {
		fail_msg("snapshot: %s", r->err.msg);
	}
	assert_true(ring_programs_equal(&r->snap.programs, &one));
	ring_programs_fini(&one);
}

/* drv_port_set and drv_recover; WEFT_EUNSUPPORTED and WEFT_EINVAL are answered
 * at once. */
static inline int rig_port(struct rig *r, bool is_out, int index, bool enable)
{
	const struct drv_port_id port = { is_out, index };
	int rc;

	r->n_answers = 0;
	r->inside = true;
	rc = drv_port_set(r->dev, port, enable, rig_on_submit, r, &r->err);
	r->inside = false;
	if (rc == 0) {
		rig_wait(r);
		assert_int_equal(r->n_outcomes, 1);
	}
	return rc ? rc : r->rc;
}

static inline int rig_recover(struct rig *r, enum drv_recovery what)
{
	int rc;

	r->n_answers = 0;
	r->inside = true;
	rc = drv_recover(r->dev, what, rig_on_submit, r, &r->err);
	r->inside = false;
	if (rc == 0) {
		rig_wait(r);
		assert_int_equal(r->n_outcomes, 1);
	}
	return rc ? rc : r->rc;
}

static inline void rig_be_idle(struct rig *r, int ms)
{
	uint64_t until = uv_hrtime() + (uint64_t)ms * UINT64_C(1000000);

	while (uv_hrtime() < until) {
		uv_run(&r->loop, UV_RUN_NOWAIT);
		usleep(5000);
	}
}

/* Lets the loop run until an event of this kind has come. */
static inline const struct rig_event *rig_wait_event(struct rig *r,
						     enum drv_event_kind kind)
{
	for (int i = 0;; i++) {
		while (i >= r->n_events) {
			assert_true(uv_run(&r->loop, UV_RUN_ONCE));
		}
		if (r->events[i].ev.kind == kind) {
			return &r->events[i];
		}
		assert_true(i < 63);
	}
}

#define ADD(i, o) { DRV_ADD, { i, o } }
#define DEL(i, o) { DRV_DEL, { i, o } }

/* Takes a snapshot and compares its map with "0-5 1-7" (sorted). */
static inline void rig_expect_map(struct rig *r, const char *want)
{
	char have[4096] = "";
	size_t len = 0;

	if (rig_snapshot(r)) {
		fail_msg("snapshot: %s", r->err.msg);
	}
	for (int i = 0; i < r->snap.n_xcs; i++) {
		len += (size_t)snprintf(have + len, sizeof(have) - len,
					"%s%d-%d", i ? " " : "",
					r->snap.xcs[i].xc.in,
					r->snap.xcs[i].xc.out);
		assert_int_equal(r->snap.xcs[i].state, DRV_TUNED);
	}
	assert_string_equal(have, want);
}

static inline void rig_expect(struct rig *r, int i, enum drv_result result)
{
	if (r->outcomes[i].result != result) {
		fail_msg("item %d is %s (%s), expected %s", i,
			 drv_result_name(r->outcomes[i].result),
			 r->outcomes[i].text, drv_result_name(result));
	}
}

#endif
