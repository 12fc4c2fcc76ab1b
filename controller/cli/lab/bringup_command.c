/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weft bringup: finds out how a new fabric is cabled, and compares that with
 * its file.
 *
 * Bring-up itself is in controller/testbed; here are its options, its
 * progress and its files. It may take hours where robots move fibres, so what
 * was found is saved beside the fabric at every step (FABRIC.bringup.json)
 * and the same command goes on from there; --restart forgets it. When
 * something differs, a corrected fabric is written as FABRIC.found.yaml, and
 * the exit code is 2. Neither file is more readable than the fabric's.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "controller/cli/core/private.h"
#include "controller/testbed/bringup.h"
#include "lib/base/clock.h"
#include "lib/base/file.h"

#define BAR_CELLS 24
/* Bytes of a state file that are read at most. */
#define MAX_STATE (64u << 20)
#define PATH_MAX_LEN 4096

/* What the callback of bringup_run() needs: where to show progress, and what
 * to save after each step. begun_ns is monotonic. */
struct bringup_view {
	struct cli *c;
	struct bringup *b;
	const char *fabric, *state;	/* paths */
	bool bar;
	int64_t begun_ns;
	int first;		/* ports known when it began, -1: not begun */
	int told;		/* tenths that a line was printed for */
	int64_t moves;		/* that were made when it was */
};

/* "dir/lab.yaml" with another end: "dir/lab.found.yaml". */
static int beside(const char *path, const char *end, char out[PATH_MAX_LEN], struct err *err)
{
	size_t len = strlen(path);

	if (len > 5 && strcmp(path + len - 5, ".yaml") == 0) {
		len -= 5;
	}
	if (strcmp(path, "-") == 0) {
		return err_set(err, WEFT_EUSAGE, "bring-up writes files beside "
			       "the fabric, which must be a file");
	}
	if (len + strlen(end) >= PATH_MAX_LEN) {
		return err_set(err, WEFT_ELIMIT, "the path is too long");
	}
	snprintf(out, PATH_MAX_LEN, "%.*s%s", (int)len, path, end);
	return 0;
}

/* ---- the state file ---- */

/* Writes what fn makes of b to path at once or not at all, with at most the
 * permissions of the fabric file. */
static int write_packed(const struct bringup *b, const char *path, const char *fabric,
			int (*fn)(const struct bringup *b, struct buf *out, struct err *err),
			struct err *err)
{
	struct buf out = { 0 };
	int rc = fn(b, &out, err);

	if (rc == 0) {
		rc = file_write_atomic(path, out.data, out.len, file_ceiling(fabric), err);
	}
	buf_fini(&out);
	return rc;
}

/* Takes up the state of an earlier run, unless there is none or it shall
 * start again. */
static int load_state(const char *path, bool again, struct bringup *b, struct err *err)
{
	char *data = NULL;
	size_t len;
	int rc;

	if (again || access(path, F_OK) != 0) {
		return 0;
	}
	rc = file_read(path, MAX_STATE, &data, &len, err);
	if (rc == 0) {
		rc = bringup_load(b, data, len, err);
		if (rc) {
			err_wrap(err, "%s", path);
			err_hint(err, "weft bringup --restart starts over");
		}
	}
	free(data);
	return rc;
}

/* ---- progress ---- */

/* ", left: 24min", by the moves of robots where there are some, and otherwise
 * by what took how long so far; "" when that is not known. */
static void time_left(const struct bringup_view *r, const struct bringup_progress *now,
		      char text[64])
{
	double took = (double)(clk_now_ns() - r->begun_ns), ns = 0;
	int fresh = now->done - r->first;
	char left[32];

	text[0] = '\0';
	if (now->moves_left > 0) {
		ns = (double)(now->left_ns - now->waiting_ns);
	} else if (fresh > 0) {
		ns = took / fresh * (now->total - now->done);
	}
	if (ns > 0) {
		unit_human(UNIT_NS, ns, left, sizeof(left));
		snprintf(text, 64, ", left: %s", left);
	}
}

/* "4 of 24 moves, ", of robots. */
static void moves_made(const struct bringup_progress *now, char text[64])
{
	text[0] = '\0';
	if (now->moves_left > 0) {
		snprintf(text, 64, "%lld of %lld moves, ", (long long)now->moves,
			 (long long)(now->moves + now->moves_left));
	}
}

/* One line on a terminal, redrawn in place. */
static void draw(struct bringup_view *r, const struct bringup_progress *now)
{
	char cells[BAR_CELLS + 1], left[64], moves[64];
	int full = now->total ? now->done * BAR_CELLS / now->total : 0;

	memset(cells, '-', BAR_CELLS);
	memset(cells, '#', (size_t)full);
	cells[BAR_CELLS] = '\0';
	moves_made(now, moves);
	time_left(r, now, left);
	progress_clock_stop();
	fprintf(stderr, "\r\033[K[%s] %d/%d %s%s%s", cells, now->done,
		now->total, moves, now->text, left);
	fflush(stderr);
}

/* Without a terminal: a line for each tenth, or for each circuit with -v and
 * where robots move. */
static void say_line(struct bringup_view *r, const struct bringup_progress *now)
{
	int tenth = now->total ? now->done * 10 / now->total : 0;
	bool tell = tenth > r->told || now->moves != r->moves;
	char left[64], moves[64];

	moves_made(now, moves);
	time_left(r, now, left);
	cli_say(r->c, tell ? CLI_NORMAL : CLI_VERBOSE, "%d/%d %s%s%s",
		now->done, now->total, moves, now->text, left);
	r->told = tenth > r->told ? tenth : r->told;
	r->moves = now->moves;
}

/* Before each question to a device, when the state is saved; also called
 * while a robot is waited for, when there is nothing new to save. Non-zero
 * stops bring-up, which then returns WEFT_ECANCELED. */
static int on_step(const struct bringup_progress *now, void *arg, struct err *err)
{
	struct bringup_view *r = arg;

	if (r->first < 0) {
		r->first = now->done;
		r->begun_ns = clk_now_ns();
	}
	if (r->bar) {
		draw(r, now);
	} else if (!now->waiting_ns) {
		say_line(r, now);
	}
	if (now->waiting_ns) {
		return 0;
	}
	if (cli_interrupted) {
		return 1;
	}
	return write_packed(r->b, r->state, r->fabric, bringup_save, err);
}

/* ---- what was found ---- */

/* "" is printed as absent. */
static void out_text(struct out *o, const char *key, const char *text)
{
	out_str(o, key, text[0] ? text : NULL);
}

/* {kind, fibre, with, written, found} and, of a lossy fibre, what was
 * measured: frames where there are frames, else dB. */
static void out_finding(struct out *o, const struct bringup_finding *d)
{
	out_object(o, NULL);
	out_str(o, "kind", bringup_kind_name(d->kind));
	out_text(o, "fibre", d->fibre);
	out_text(o, "with", d->with);
	out_text(o, "written", d->written);
	out_text(o, "found", d->found);
	if (d->kind == BRINGUP_LOSSY && d->sent) {
		out_int(o, "sent", d->sent);
		out_int(o, "received", d->received);
	} else if (d->kind == BRINGUP_LOSSY) {
		out_real(o, "loss_db", d->loss_mdb / 1000.0);
		out_real(o, "limit_db", d->limit_mdb / 1000.0);
	}
	out_end(o);
}

/* "unseen": fibres that no measurement reaches, left out when there are none;
 * "moves": what robots had to do. */
static void out_unseen(struct out *o, const struct bringup *b)
{
	char (*v)[BRINGUP_NAME_MAX];
	int n;

	bringup_unseen(b, &v, &n);
	if (n) {
		out_array(o, "unseen");
		for (int i = 0; i < n; i++) {
			out_str(o, NULL, v[i]);
		}
		out_end(o);
	}
	if (bringup_moves(b)) {
		out_int(o, "moves", bringup_moves(b));
	}
	free(v);
}

/* {fabric, differences, findings, unseen, moves, corrected}: corrected is the
 * file that was written, null without differences. */
static int print_findings(struct cli *c, const struct bringup *b, const struct model_fabric *f,
			  const struct bringup_finding *v, int n, const char *corrected,
			  struct err *err)
{
	struct out *o = out_new(c->format);

	out_str(o, "fabric", f->name);
	out_int(o, "differences", n);
	out_array(o, "findings");
	for (int i = 0; i < n; i++) {
		out_finding(o, &v[i]);
	}
	out_end(o);
	out_unseen(o, b);
	out_str(o, "corrected", n ? corrected : NULL);
	return cli_print(o, err);
}

/* Compares, writes the corrected fabric and prints. CLI_PENDING when
 * something differs. */
static int finish(struct cli *c, const struct model_fabric *f,
		  const struct bringup *b, const char *path, struct err *err)
{
	char corrected[PATH_MAX_LEN];
	struct bringup_finding *v;
	int n, rc = beside(path, ".found.yaml", corrected, err);
	bool is_fabric = true;

	bringup_findings(b, &v, &n);
	if (rc == 0 && n) {
		rc = write_packed(b, corrected, path, bringup_yaml, err);
		/* What is found can be no fabric: then it is listed all the same. */
		is_fabric = rc != WEFT_EINVAL && rc != WEFT_EUNSUPPORTED;
		if (!is_fabric) {
			cli_say(c, CLI_NORMAL, "no corrected file: %s", err->msg);
			rc = 0;
		}
	}
	if (rc == 0) {
		rc = print_findings(c, b, f, v, n, is_fabric ? corrected : NULL, err);
	}
	free(v);
	if (rc == 0 && n) {
		rc = CLI_PENDING;
	}
	return rc;
}

static int read_options(struct cli *c, struct bringup_options *options, struct err *err)
{
	*options = (struct bringup_options){
		.around = cli_has(c, "around") };
	return cli_opt_int(c, "moves", 0, INT32_MAX, &options->max_moves, err);
}

/* The state is saved also after a failure, once something was found: an
 * error of the run is worth more than one of saving, which counts only by
 * itself. */
static int run_bringup(struct cli *c, struct bringup *b, const char *state, struct err *err)
{
	struct bringup_options options;
	struct bringup_view r = { .c = c, .b = b, .fabric = c->argv[0],
			 .state = state, .first = -1,
			 .bar = isatty(STDERR_FILENO) &&
				c->talk == CLI_NORMAL };
	struct err own = { 0 };
	int kept, rc = read_options(c, &options, err);

	if (rc) {
		return rc;
	}
	cli_catch_signals();
	rc = bringup_run(b, &options, on_step, &r, err);
	if (r.first >= 0 || rc == 0) {
		kept = write_packed(b, state, r.fabric, bringup_save, &own);
		if (rc == 0 && kept) {
			rc = kept;
			*err = own;
		}
	}
	if (r.bar && r.first >= 0) {
		fputs("\r\033[K", stderr);
	}
	if (rc == WEFT_ECANCELED) {
		err_hint(err, "the same command goes on from here");
	}
	return rc;
}

/* Exit code 0: cabled as written; 2: differences were found. */
int cmd_bringup(struct cli *c, struct err *err)
{
	char state[PATH_MAX_LEN];
	struct model_fabric *f = NULL;
	struct bringup *b = NULL;
	int rc = beside(c->argv[0], ".bringup.json", state, err);

	if (rc == 0) {
		rc = cli_load_fabric(c->argv[0], &f, err);
	}
	if (rc == 0) {
		rc = bringup_new(f, &b, err);
	}
	if (rc == 0) {
		rc = load_state(state, cli_has(c, "restart"), b, err);
	}
	if (rc == 0) {
		rc = run_bringup(c, b, state, err);
	}
	if (rc == 0) {
		rc = finish(c, f, b, c->argv[0], err);
	}
	bringup_free(b);
	model_free(f);
	return rc;
}
