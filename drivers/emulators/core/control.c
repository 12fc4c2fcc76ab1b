/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The emulators' control socket: what a second user, a failure or a test does
 * to a device. One command a line; ports are weft's own, from 0 a side.
 *
 * A command is answered with its lines and `ok`, or with `error` and why. It
 * is carried out before its answer goes out, so a test that has read `ok` may
 * look at the device. Changes are logged as another user's (EMU_BY_USER) and
 * reported to sessions as the dialect reports them. A word that is not known
 * here is offered to the dialect (`command`), for what only rings have.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "drivers/emulators/core/emulator.h"
#include "drivers/emulators/core/fibre_plant.h"
#include "lib/base/alloc.h"

/* "IN,OUT" as a circuit that this switch can have; false on rings. */
static bool parse_xc(const struct emu *e, const char *text, struct optics_xc *xc)
{
	char rest;

	return text && e->mem.kind == DRV_SPACE &&
	       sscanf(text, "%d,%d%c", &xc->in, &xc->out, &rest) == 2 &&
	       xc_map_check(&e->mem, *xc, NULL) == 0;
}

/* A fault may refuse connections, fail a port or dim a path: the listener, the
 * dialect and the plant are brought up to date. */
static const char *faults_changed(struct emu *e)
{
	emu_apply_refuse(e);
	e->dialect->refresh(e, EMU_OTHER_USER);
	return plant_publish(e, NULL) ? "the map cannot be written" : NULL;
}

/* The text of an error outlives the call in a static buffer: one command runs
 * at a time. */
static const char *do_fault(struct emu *e, const char *arg)
{
	static char text[ERR_MSG_MAX];
	struct err err = { 0 };

	if (faults_add(&e->faults, arg ? arg : "", &err)) {
		snprintf(text, sizeof(text), "%s", err.msg);
		return text;
	}
	return faults_changed(e);
}

/* Set commands that `complete` has put off are done now; without the fault
 * nothing would make them due. */
static const char *do_clear(struct emu *e)
{
	faults_clear(&e->faults);
	emu_complete_now(e);
	return faults_changed(e);
}

/* Circuits that hold either port are released first, as by a user at the
 * device's own interface. */
static const char *do_set(struct emu *e, const char *arg)
{
	struct optics_xc xc;

	if (!parse_xc(e, arg, &xc)) {
		return "expected set IN,OUT with ports of this switch";
	}
	xc_map_connect(&e->mem, xc);
	e->dialect->refresh(e, EMU_OTHER_USER);
	emu_changed_by(e, EMU_BY_USER);
	return NULL;
}

/* Without ports everything goes. */
static const char *do_unset(struct emu *e, const char *arg)
{
	struct optics_xc xc;

	if (!arg) {
		xc_map_clear(&e->mem);
	} else if (!parse_xc(e, arg, &xc) || !xc_map_has(&e->mem, xc)) {
		return "expected unset [IN,OUT] with a connection of this "
		       "switch";
	} else {
		xc_map_release(&e->mem, xc_map_flat_in(&e->mem, xc.in));
	}
	e->dialect->refresh(e, EMU_OTHER_USER);
	emu_changed_by(e, EMU_BY_USER);
	return NULL;
}

static const char *do_restart(struct emu *e, const char *map, const char *ms)
{
	if (!map || (strcmp(map, "kept") != 0 && strcmp(map, "dark") != 0 &&
		     strcmp(map, "old") != 0)) {
		return "expected restart kept|dark|old [MS]";
	}
	emu_restart(e, map, ms ? strtol(ms, NULL, 10) : 0);
	return NULL;
}

/* What is in effect: circuits, one a line, or a ring's programs with the
 * digest of their bytes. */
static const char *do_map(struct emu *e, struct buf *answer)
{
	struct optics_xc *v;
	int n;

	for (int i = 0; i < e->mem.programs.n; i++) {
		const struct ring_program *p = &e->mem.programs.v[i];
		char digest[65];

		emu_pack_digest(p, digest);
		buf_printf(answer, "program %s steps %" PRIu32 " settings %"
			   PRIu32 " bytes %zu nodes %u+%u channels %u+%u "
			   "sha256 %s\n",
			   p->name, p->steps, p->settings, p->len,
			   p->window.first_node, p->window.nodes,
			   p->window.first_channel, p->window.channels, digest);
	}
	if (e->mem.kind == DRV_RING) {
		return NULL;
	}
	xc_map_xcs(&e->mem, &v, &n);
	for (int i = 0; i < n; i++) {
		buf_printf(answer, "%d,%d\n", v[i].in, v[i].out);
	}
	free(v);
	return NULL;
}

static const char *do_stats(struct emu *e, struct buf *answer)
{
	buf_printf(answer, "commands %" PRIu64 "\nsets %" PRIu64
		   "\nsessions %" PRIu64 "\nboots %" PRIu64
		   "\nfaults %" PRIu64 "\n",
		   e->n_commands, e->n_sets, e->n_sessions, e->mem.boots,
		   e->faults.struck);
	return NULL;
}

static const char *do_help(struct buf *answer)
{
	buf_str(answer, "fault SPEC | clear | map | set IN,OUT | "
		"unset [IN,OUT] | restart kept|dark|old [MS] | form NAME | stats | "
		"log [FROM] | quit\n"
		"rings: slots | light PROGRAM | step PROGRAM | tunings PROGRAM | "
		"flip PROGRAM\n");
	faults_help(answer);
	return NULL;
}

/* Runs one line, which is cut into words. An empty one has no answer. */
static void run(struct emu *e, char *line, struct buf *answer)
{
	char *save = NULL, *verb = strtok_r(line, " \t\r", &save);
	char *arg = strtok_r(NULL, " \t\r", &save);
	char *more = strtok_r(NULL, " \t\r", &save);
	const char *wrong = "unknown command, try help";

	if (!verb) {
		return;
	}
	if (strcmp(verb, "fault") == 0) {
		wrong = do_fault(e, arg);
	} else if (strcmp(verb, "clear") == 0) {
		wrong = do_clear(e);
	} else if (strcmp(verb, "map") == 0) {
		wrong = do_map(e, answer);
	} else if (strcmp(verb, "set") == 0) {
		wrong = do_set(e, arg);
	} else if (strcmp(verb, "unset") == 0) {
		wrong = do_unset(e, arg);
	} else if (strcmp(verb, "restart") == 0) {
		wrong = do_restart(e, arg, more);
	} else if (strcmp(verb, "form") == 0) {
		wrong = emu_set_form(e, arg);
	} else if (strcmp(verb, "stats") == 0) {
		wrong = do_stats(e, answer);
	} else if (strcmp(verb, "log") == 0) {
		wrong = emu_report_changes(e, arg ? strtoull(arg, NULL, 10) : 0, answer);
	} else if (strcmp(verb, "help") == 0) {
		wrong = do_help(answer);
	} else if (strcmp(verb, "quit") == 0) {
		wrong = NULL;
		emu_stop(e);
	} else if (e->dialect->command) {
		wrong = e->dialect->command(e, verb, arg, answer);
	}
	if (wrong) {
		buf_printf(answer, "error %s\n", wrong);
	} else {
		buf_str(answer, "ok\n");
	}
}

/* ---- the socket ---------------------------------------------------------- */

/* A connection of the control socket; freed when its pipe is closed. */
struct control {
	struct emu *e;
	uv_pipe_t pipe;
	struct buf in;
	char bytes[512];
};

/* An answer on its way; freed when it is written. */
struct control_write {
	uv_write_t req;
	struct buf text;
};

static void on_control_closed(uv_handle_t *h)
{
	struct control *c = h->data;

	buf_fini(&c->in);
	free(c);
}

void emu_control_end(uv_handle_t *pipe)
{
	uv_close(pipe, on_control_closed);
}

static void on_control_written(uv_write_t *req, int status)
{
	struct control_write *w = req->data;

	(void)status;
	buf_fini(&w->text);
	free(w);
}

static void answer_control(struct control *c, char *line)
{
	struct control_write *w = x_new(1, sizeof(*w));
	uv_buf_t b;

	run(c->e, line, &w->text);
	w->req.data = w;
	b = uv_buf_init(w->text.data, (unsigned)w->text.len);
	if (uv_write(&w->req, (uv_stream_t *)&c->pipe, &b, 1, on_control_written)) {
		on_control_written(&w->req, 0);
	}
}

static void on_control_alloc(uv_handle_t *h, size_t hint, uv_buf_t *out)
{
	struct control *c = h->data;

	(void)hint;
	*out = uv_buf_init(c->bytes, sizeof(c->bytes));
}

/* Lines are answered as they become whole; a client that sends 4 KiB without a
 * line end is cut off. */
static void on_control_read(uv_stream_t *s, ssize_t n, const uv_buf_t *bytes)
{
	struct control *c = s->data;
	char *lf;

	if (n > 0) {
		buf_add(&c->in, bytes->base, (size_t)n);
	}
	while (n > 0 && c->in.len && (lf = memchr(c->in.data, '\n', c->in.len))) {
		*lf = '\0';
		answer_control(c, c->in.data);
		buf_consume(&c->in, (size_t)(lf + 1 - c->in.data));
	}
	if (n < 0 || c->in.len > 4096) {
		uv_close((uv_handle_t *)s, on_control_closed);
	}
}

static void on_control_accept(uv_stream_t *server, int status)
{
	struct emu *e = server->data;
	struct control *c = status < 0 ? NULL : x_new(1, sizeof(*c));

	if (!c) {
		return;
	}
	c->e = e;
	uv_pipe_init(&e->loop, &c->pipe, 0);
	c->pipe.data = c;
	if (uv_accept(server, (uv_stream_t *)&c->pipe)) {
		uv_close((uv_handle_t *)&c->pipe, on_control_closed);
		return;
	}
	uv_read_start((uv_stream_t *)&c->pipe, on_control_alloc, on_control_read);
}

/* The umask is changed around bind() alone: the socket must never be open to
 * others, not even until a chmod(). */
int emu_control_start(struct emu *e, struct err *err)
{
	mode_t mask;
	int rc;

	if (!e->conf.control) {
		return 0;
	}
	unlink(e->conf.control);
	mask = umask(0177);
	rc = uv_pipe_bind(&e->control, e->conf.control);
	umask(mask);
	if (rc == 0) {
		rc = uv_listen((uv_stream_t *)&e->control, 4, on_control_accept);
	}
	return rc == 0 ? 0 : err_set(err, WEFT_EUNAVAIL, "control %s: %s",
				     e->conf.control, uv_strerror(rc));
}
