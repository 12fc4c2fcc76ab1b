/* weft bringup: how a new fabric is wired, against how it is written. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "controller/cli/private.h"
#include "controller/testbed/bringup.h"
#include "lib/base/clk.h"
#include "lib/base/file.h"

#define BAR_CELLS 24
#define MAX_STATE (64u << 20)
#define PATH_MAX_LEN 4096

struct run {
	struct cli *c;
	const char *state;	/* path */
	bool bar;
	int64_t begun_ns;
	int first;		/* ports known when it began, -1: not begun */
	int told;		/* tenths that a line was printed for */
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

static int save_state(const char *path, const struct bringup *b,
		      struct err *err)
{
	struct buf out = { 0 };
	int rc = bringup_save(b, &out, err);

	if (rc == 0) {
		rc = out.failed ? err_nomem(err) :
		     file_write_atomic(path, out.data, out.len, 0644, err);
	}
	buf_fini(&out);
	return rc;
}

static int load_state(const char *path, bool again, struct bringup *b,
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
		rc = bringup_load(b, data, len, err);
		if (rc) {
			err_wrap(err, "%s", path);
			err_hint(err, "weft bringup --again begins anew");
		}
	}
	free(data);
	return rc;
}

/* ---- progress ---- */

static void draw(struct run *r, int done, int total, const char *text)
{
	char cells[BAR_CELLS + 1], left[32] = "";
	int64_t took = clk_now_ns() - r->begun_ns;
	int fresh = done - r->first;
	int full = total ? done * BAR_CELLS / total : 0;

	memset(cells, '-', BAR_CELLS);
	memset(cells, '#', (size_t)full);
	cells[BAR_CELLS] = '\0';
	if (fresh > 0) {
		unit_human(UNIT_NS, (double)took / fresh * (total - done),
			   left, sizeof(left));
	}
	fprintf(stderr, "\r\033[K[%s] %d/%d %s%s%s", cells, done, total, text,
		left[0] ? ", left: " : "", left);
	fflush(stderr);
}

/* Without a terminal: a line for each tenth, or with -v for each circuit. */
static void say_line(struct run *r, int done, int total, const char *text)
{
	int tenth = total ? done * 10 / total : 0;

	cli_say(r->c, tenth > r->told ? CLI_NORMAL : CLI_VERBOSE,
		"%d/%d %s", done, total, text);
	r->told = tenth > r->told ? tenth : r->told;
}

static int on_step(const struct bringup *b, int done, int total,
		   const char *text, void *arg, struct err *err)
{
	struct run *r = arg;

	if (r->first < 0) {
		r->first = done;
		r->begun_ns = clk_now_ns();
	}
	if (r->bar) {
		draw(r, done, total, text);
	} else {
		say_line(r, done, total, text);
	}
	if (cli_interrupted) {
		return 1;
	}
	return save_state(r->state, b, err);
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

static int print_findings(struct cli *c, const struct bringup *b,
			  const struct bringup_finding *v, int n,
			  const char *corrected, struct err *err)
{
	struct out *o = out_new(c->format);

	if (o) {
		out_str(o, "fabric", b->fabric->name);
		out_int(o, "differences", n);
		out_array(o, "findings");
		for (int i = 0; i < n; i++) {
			out_finding(o, b->fabric, &v[i]);
		}
		out_end(o);
		out_str(o, "corrected", n ? corrected : NULL);
	}
	return cli_print(o, err);
}

static int write_corrected(const struct bringup *b, const char *path,
			   struct err *err)
{
	struct buf out = { 0 };
	int rc = bringup_yaml(b, &out, err);

	if (rc == 0) {
		rc = out.failed ? err_nomem(err) :
		     file_write_atomic(path, out.data, out.len, 0644, err);
	}
	buf_fini(&out);
	return rc;
}

static int finish(struct cli *c, const struct bringup *b, const char *path,
		  struct err *err)
{
	char corrected[PATH_MAX_LEN];
	struct bringup_finding *v = NULL;
	int n = 0, rc = bringup_findings(b, &v, &n, err);

	if (rc == 0) {
		rc = beside(path, ".found.yaml", corrected, err);
	}
	if (rc == 0 && n) {
		rc = write_corrected(b, corrected, err);
	}
	if (rc == 0) {
		rc = print_findings(c, b, v, n, corrected, err);
	}
	free(v);
	return rc ? rc : n ? CLI_PENDING : 0;
}

static int walk(struct cli *c, struct bringup *b, const char *state,
		struct err *err)
{
	struct run r = { .c = c, .state = state, .first = -1,
			 .bar = isatty(STDERR_FILENO) &&
				c->talk == CLI_NORMAL };
	struct testbed *t = NULL;
	struct err own = { 0 };
	int kept, rc = testbed_open(b->fabric, &t, err);

	cli_catch_signals();
	if (rc == 0) {
		rc = bringup_run(b, t, on_step, &r, err);
		kept = save_state(state, b, &own);
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
	testbed_close(t);
	return rc;
}

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
		rc = testbed_check(f, err);
		if (rc) {
			err_wrap(err, "bring-up listens at netdevs, so it is "
				 "of testbeds only");
		}
	}
	if (rc == 0) {
		rc = bringup_new(f, &b, err);
	}
	if (rc == 0) {
		rc = load_state(state, cli_has(c, "again"), b, err);
	}
	if (rc == 0) {
		rc = walk(c, b, state, err);
	}
	if (rc == 0) {
		rc = finish(c, b, c->argv[0], err);
	}
	bringup_free(b);
	model_free(f);
	return rc;
}
