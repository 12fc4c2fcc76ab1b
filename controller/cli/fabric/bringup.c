/* weft bringup: how a new fabric is wired, against how it is written. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "controller/cli/core/private.h"
#include "controller/testbed/cabling_power.h"
#include "lib/base/clock.h"
#include "lib/base/file.h"

#define BAR_CELLS 24
#define MAX_STATE (64u << 20)
#define PATH_MAX_LEN 4096

struct walker;

struct run {
	struct cli *c;
	const struct walker *walker;
	const char *fabric, *state;	/* paths */
	bool bar;
	int64_t begun_ns;
	int first;		/* ports known when it began, -1: not begun */
	int told;		/* tenths that a line was printed for */
	int64_t moves;		/* that were made when it was */
};

/* "dir/lab.yaml" with another end: "dir/lab.found.yaml". */
static int beside(const char *path, const char *end, char out[PATH_MAX_LEN],
		  struct err *err)
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

/* Either walk: over netdevs, or with the switches' power monitors. */
struct walker {
	struct bringup *frames;
	struct power *power;	/* one of them is NULL */
};

static int pack(const struct walker *w, struct buf *out, struct err *err)
{
	return w->power ? power_save(w->power, out, err) :
			  bringup_save(w->frames, out, err);
}

static int pack_corrected(const struct walker *w, struct buf *out,
			  struct err *err)
{
	return w->power ? power_yaml(w->power, out, err) :
			  bringup_yaml(w->frames, out, err);
}

/* Both files hold what the fabric's file does: they are for its readers. */
static int write_packed(const struct walker *w, const char *path,
			const char *fabric,
			int (*fn)(const struct walker *w, struct buf *out,
				  struct err *err), struct err *err)
{
	struct buf out = { 0 };
	int rc = fn(w, &out, err);

	if (rc == 0) {
		rc = out.failed ? err_nomem(err) :
		     file_write_atomic(path, out.data, out.len,
				       file_ceiling(fabric), err);
	}
	buf_fini(&out);
	return rc;
}

static int load_state(const char *path, bool again, const struct walker *w,
		      struct err *err)
{
	char *data = NULL;
	size_t len;
	int rc;

	if (again || access(path, F_OK) != 0) {
		return 0;
	}
	rc = file_read(path, MAX_STATE, &data, &len, err);
	if (rc == 0) {
		rc = w->power ? power_load(w->power, data, len, err) :
				bringup_load(w->frames, data, len, err);
		if (rc) {
			err_wrap(err, "%s", path);
			err_hint(err, "weft bringup --restart begins anew");
		}
	}
	free(data);
	return rc;
}

/* ---- progress ---- */

/* ", left: 24min", by the moves of robots where there are some, and otherwise
 * by what took how long so far; "" when nobody knows. */
static void time_left(const struct run *r, const struct power_progress *now,
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
static void moves_made(const struct power_progress *now, char text[64])
{
	text[0] = '\0';
	if (now->moves_left > 0) {
		snprintf(text, 64, "%lld of %lld moves, ",
			 (long long)now->moves,
			 (long long)(now->moves + now->moves_left));
	}
}

static void draw(struct run *r, const struct power_progress *now)
{
	char cells[BAR_CELLS + 1], left[64], moves[64];
	int full = now->total ? now->done * BAR_CELLS / now->total : 0;

	memset(cells, '-', BAR_CELLS);
	memset(cells, '#', (size_t)full);
	cells[BAR_CELLS] = '\0';
	moves_made(now, moves);
	time_left(r, now, left);
	fprintf(stderr, "\r\033[K[%s] %d/%d %s%s%s", cells, now->done,
		now->total, moves, now->text, left);
	fflush(stderr);
}

/* Without a terminal: a line for each tenth, or for each circuit with -v and
 * where robots move. */
static void say_line(struct run *r, const struct power_progress *now)
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

static int step(struct run *r, const struct power_progress *now,
		struct err *err)
{
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
	return write_packed(r->walker, r->state, r->fabric, pack, err);
}

static int on_step(const struct bringup *b, int done, int total,
		   const char *text, void *arg, struct err *err)
{
	const struct power_progress now = { .done = done, .total = total,
					    .text = text };

	(void)b;
	return step(arg, &now, err);
}

static int on_power_step(const struct power *p,
			 const struct power_progress *now, void *arg,
			 struct err *err)
{
	(void)p;
	return step(arg, now, err);
}

/* ---- what was found ---- */

/* "ocs0.in3", or NULL. */
static const char *place(const struct model_fabric *f, int device, bool rx,
			 int port, char buf[128])
{
	if (device < 0 || port < 0) {
		return NULL;
	}
	snprintf(buf, 128, "%s.%s%d", f->devices[device].name,
		 rx ? "out" : "in", port + 1);
	return buf;
}

static void out_fibre(struct out *o, const char *key,
		      const struct model_fabric *f, struct testbed_fibre fibre,
		      bool whole)
{
	if (fibre.port < 0) {
		out_null(o, key);
	} else if (whole) {
		out_str(o, key, f->ports[fibre.port].name);
	} else {
		out_fmt(o, key, "%s.%s", f->ports[fibre.port].name,
			fibre.rx ? "rx" : "tx");
	}
}

static void out_finding(struct out *o, const struct model_fabric *f,
			const struct bringup_finding *d)
{
	char written[128], found[128];

	out_object(o, NULL);
	out_str(o, "kind", bringup_kind_name(d->kind));
	out_fibre(o, "fibre", f, d->fibre, d->kind == BRINGUP_REVERSED);
	out_fibre(o, "with", f, d->other, false);
	out_str(o, "written", place(f, d->device, d->fibre.rx, d->written,
				    written));
	out_str(o, "found", place(f, d->found_device, d->fibre.rx, d->found,
				  found));
	if (d->kind == BRINGUP_LOSSY) {
		out_int(o, "sent", d->sent);
		out_int(o, "received", d->received);
	}
	out_end(o);
}

/* "ocs0.out25" */
static void out_trunk(struct out *o, const char *key,
		      const struct model_fabric *f, int trunk)
{
	const struct model_trunk *t = trunk < 0 ? NULL : &f->trunks[trunk];
	char text[128];

	out_str(o, key, t ? place(f, t->from_device, true, t->from_port,
				  text) : NULL);
}

static void out_trunk_finding(struct out *o, const struct model_fabric *f,
			      const struct bringup_trunk *d)
{
	const struct model_trunk *t = &f->trunks[d->trunk];
	char text[128];

	out_object(o, NULL);
	out_str(o, "kind", bringup_kind_name(d->kind));
	out_trunk(o, "fibre", f, d->trunk);
	out_trunk(o, "with", f, d->other);
	out_str(o, "written", place(f, t->to_device, false, t->to_port, text));
	out_str(o, "found", place(f, d->device, false, d->port, text));
	if (d->kind == BRINGUP_LOSSY) {
		out_int(o, "sent", d->sent);
		out_int(o, "received", d->received);
	}
	out_end(o);
}

static void out_text(struct out *o, const char *key, const char *text)
{
	out_str(o, key, text[0] ? text : NULL);
}

static void out_power_finding(struct out *o, const struct power_finding *d)
{
	out_object(o, NULL);
	out_str(o, "kind", bringup_kind_name(d->kind));
	out_text(o, "fibre", d->fibre);
	out_text(o, "with", d->with);
	out_text(o, "written", d->written);
	out_text(o, "found", d->found);
	if (d->kind == BRINGUP_LOSSY) {
		out_real(o, "loss_db", d->loss_mdb / 1000.0);
		out_real(o, "limit_db", d->limit_mdb / 1000.0);
	}
	out_end(o);
}

/* Fibres that nothing measures, and what robots had to do. */
static int out_power(struct out *o, const struct power *p, struct err *err)
{
	char (*v)[256];
	int n, rc = power_unseen(p, &v, &n, err);

	if (rc == 0 && n) {
		out_array(o, "unseen");
		for (int i = 0; i < n; i++) {
			out_str(o, NULL, v[i]);
		}
		out_end(o);
	}
	if (rc == 0 && p->moves) {
		out_int(o, "moves", p->moves);
	}
	free(v);
	return rc;
}

/* Rings are not walked. */
static void out_rings(struct out *o, const struct model_fabric *f)
{
	bool any = false;

	for (int d = 0; d < f->n_devices; d++) {
		if (f->devices[d].kind == MODEL_RING && !any) {
			out_array(o, "unseen");
			any = true;
		}
		if (f->devices[d].kind == MODEL_RING) {
			out_str(o, NULL, f->devices[d].name);
		}
	}
	if (any) {
		out_end(o);
	}
}

/* What differs, of either walk. */
struct found {
	struct bringup_finding *v;
	struct bringup_trunk *trunks;
	struct power_finding *power;
	int n, n_trunks, n_power;
};

static int find(const struct walker *w, struct found *d, struct err *err)
{
	int rc;

	if (w->power) {
		return power_findings(w->power, &d->power, &d->n_power, err);
	}
	rc = bringup_findings(w->frames, &d->v, &d->n, err);
	return rc ? rc : bringup_trunks(w->frames, &d->trunks, &d->n_trunks,
					err);
}

static void found_fini(struct found *d)
{
	free(d->v);
	free(d->trunks);
	free(d->power);
}

static int print_findings(struct cli *c, const struct walker *w,
			  const struct model_fabric *f, const struct found *d,
			  const char *corrected, struct err *err)
{
	int n = d->n + d->n_trunks + d->n_power, rc = 0;
	struct out *o = out_new(c->format);

	if (o) {
		out_str(o, "fabric", f->name);
		out_int(o, "differences", n);
		out_array(o, "findings");
		for (int i = 0; i < d->n; i++) {
			out_finding(o, f, &d->v[i]);
		}
		for (int i = 0; i < d->n_trunks; i++) {
			out_trunk_finding(o, f, &d->trunks[i]);
		}
		for (int i = 0; i < d->n_power; i++) {
			out_power_finding(o, &d->power[i]);
		}
		out_end(o);
		if (w->power) {
			rc = out_power(o, w->power, err);
		} else {
			out_rings(o, f);
		}
		out_str(o, "corrected", n ? corrected : NULL);
	}
	return rc ? rc : cli_print(o, err);
}

static int finish(struct cli *c, const struct model_fabric *f,
		  const struct walker *w, const char *path, struct err *err)
{
	char corrected[PATH_MAX_LEN];
	struct found d = { 0 };
	int rc = find(w, &d, err), n = d.n + d.n_trunks + d.n_power;

	if (rc == 0) {
		rc = beside(path, ".found.yaml", corrected, err);
	}
	if (rc == 0 && n) {
		rc = write_packed(w, corrected, path, pack_corrected, err);
	}
	if (rc == 0) {
		rc = print_findings(c, w, f, &d, corrected, err);
	}
	found_fini(&d);
	return rc ? rc : n ? CLI_PENDING : 0;
}

static int run_frames(struct run *r, struct err *err)
{
	struct bringup *b = r->walker->frames;
	struct testbed *t = NULL;
	int rc = testbed_open(b->fabric, &t, err);

	if (rc == 0) {
		rc = bringup_run(b, t, on_step, r, err);
	}
	testbed_close(t);
	return rc;
}

static int read_options(struct cli *c, struct power_options *options,
			struct err *err)
{
	*options = (struct power_options){ .keep = cli_has(c,
							   "keep-circuits") };
	return cli_opt_int(c, "moves", 0, INT32_MAX, &options->max_moves, err);
}

static int walk(struct cli *c, const struct walker *w, const char *state,
		struct err *err)
{
	struct power_options options;
	struct run r = { .c = c, .walker = w, .fabric = c->argv[0],
			 .state = state, .first = -1,
			 .bar = isatty(STDERR_FILENO) &&
				c->talk == CLI_NORMAL };
	struct err own = { 0 };
	int kept, rc = read_options(c, &options, err);

	if (rc) {
		return rc;
	}
	cli_catch_signals();
	rc = w->power ? power_run(w->power, &options, on_power_step, &r, err) :
			run_frames(&r, err);
	if (r.first >= 0 || rc == 0) {
		kept = write_packed(w, state, r.fabric, pack, &own);
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

/* Over netdevs where the switches are network namespaces. */
static int new_walker(const struct model_fabric *f, struct walker *w,
		      struct err *err)
{
	bool netns = false;
	int rc;

	for (int d = 0; d < f->n_devices; d++) {
		netns |= strncmp(f->devices[d].driver, "linux-", 6) == 0;
	}
	if (!netns) {
		return power_new(f, &w->power, err);
	}
	rc = testbed_check(f, err);
	return rc ? rc : bringup_new(f, &w->frames, err);
}

int cmd_bringup(struct cli *c, struct err *err)
{
	char state[PATH_MAX_LEN];
	struct model_fabric *f = NULL;
	struct walker w = { 0 };
	int rc = beside(c->argv[0], ".bringup.json", state, err);

	if (rc == 0) {
		rc = cli_load_fabric(c->argv[0], &f, err);
	}
	if (rc == 0) {
		rc = new_walker(f, &w, err);
	}
	if (rc == 0) {
		rc = load_state(state, cli_has(c, "restart"), &w, err);
	}
	if (rc == 0) {
		rc = walk(c, &w, state, err);
	}
	if (rc == 0) {
		rc = finish(c, f, &w, c->argv[0], err);
	}
	bringup_free(w.frames);
	power_free(w.power);
	model_free(f);
	return rc;
}
