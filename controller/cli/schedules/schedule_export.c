/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weft schedule export: schedules in the formats of others, and files of
 * schedules in general.
 *
 * JSON and protobuf hold any schedule. Route tables hold all-to-alls whose
 * pairs keep to one route. Runtimes (MSCCL, RCCL, MSCCL++) take programs
 * within limits of their own, of ranks, steps or thread blocks: a schedule
 * that exceeds one is lowered again with fewer chunks a shard, and either
 * that is written (--fit) or the error says what it would cost. Nothing is
 * written that was not replayed first.
 */
#include <stdlib.h>
#include <string.h>

#include "collective/bfb/bfb.h"
#include "controller/cli/core/private.h"
#include "controller/cli/schedules/programs.h"
#include "lib/base/alloc.h"
#include "lib/base/number/rat.h"
#include "runtime/lower/chakra.h"
#include "runtime/mscclpp/mscclpp.h"

#define FRACTION 256

/* What runs schedules, with limits of its own. */
struct runtime {
	const char *to;
	int dialect;		/* of MSCCL, or -1: MSCCL++ */
};

static const struct runtime runtimes[] = {
	{ "msccl-xml", MSCCL_AZURE },
	{ "rccl-xml", MSCCL_RCCL },
	{ "mscclpp-json", -1 },
};

/* NULL: no runtime but a format of our own. */
static const struct runtime *runtime_of(const char *to)
{
	for (size_t i = 0; i < sizeof(runtimes) / sizeof(runtimes[0]); i++) {
		if (strcmp(runtimes[i].to, to) == 0) {
			return &runtimes[i];
		}
	}
	return NULL;
}

/* ---- what runs on a runtime ---- */

struct lowering {
	const struct runtime *r;
	bool out_of_place;	/* of MSCCL++: for calls out of place */
	struct buf *out;	/* of MSCCL++: what the last try wrote */
	struct cli_programs *programs;	/* of MSCCL */
};

/* A coll_bfb_try: lowers s, replacing what the last try made. WEFT_ELIMIT
 * means that fewer chunks may fit. */
static int lower_one(const struct coll_sched *s, void *arg, struct err *err)
{
	const struct lowering *l = arg;
	/* A plan of MSCCL++ serves calls in place, or out of place. */
	bool inplace = !l->out_of_place && coll_kind_of(s) != COLL_ALLTOALL;

	if (l->r->dialect >= 0) {
		return cli_programs_make(l->programs, s, err);
	}
	buf_fini(l->out);
	return mscclpp_export(s, inplace, l->out, err);
}

/* "2 chunks a shard, T_B 2 instead of 63/32": s is what fits, old what did
 * not. */
static int describe_fit(const struct coll_sched *s, const struct coll_sched *old, char *text,
			size_t size, struct err *err)
{
	char mine[FRACTION], his[FRACTION];
	struct coll_report a, b;
	int rc;

	coll_report_init(&a);
	coll_report_init(&b);
	if ((rc = coll_verify(s, &a, err)) || (rc = coll_verify(old, &b, err))) {
		goto out;
	}
	snprintf(text, size, "%d chunk%s a shard, in %d steps and %.16s M/B "
		 "instead of %d and %.16s", coll_chunks(s),
		 coll_chunks(s) == 1 ? "" : "s", a.steps,
		 rat_str(a.bandwidth_factor, mine, sizeof(mine)), b.steps,
		 rat_str(b.bandwidth_factor, his, sizeof(his)));
out:
	coll_report_fini(&a);
	coll_report_fini(&b);
	return rc;
}

/* Why is the limit that s exceeds; adds what would fit. */
static void advise(const struct lowering *l, const struct coll_sched *s,
		   const struct coll_sched *fit, int found, struct err *why)
{
	char text[ERR_FILE_MAX], old[ERR_FILE_MAX];
	struct err err = { 0 };

	snprintf(old, sizeof(old), "%s", why->hint);
	if (found == 0 && describe_fit(fit, s, text, sizeof(text), &err) == 0) {
		err_hint(why, "fits: %s (--fit)", text);
	} else if (found == WEFT_ELIMIT) {
		err_hint(why, "%s; not even one chunk a shard does, so take "
			 "fewer ranks%s", old, l->r->dialect < 0 ? "" :
			 " or --to mscclpp-json");
	} else {
		err_hint(why, "%s; take fewer ranks%s", old,
			 l->r->dialect < 0 ? "" : " or --to mscclpp-json");
	}
}

/* Fewer chunks when s exceeds a limit: with --fit they are what is written,
 * else what the error advises. */
static int lower_or_advise(const struct cli *c, const struct coll_sched *s,
			   struct lowering *l, struct err *err)
{
	char text[ERR_FILE_MAX];
	struct coll_sched *fit = NULL;
	struct err why = { 0 };
	int found, rc = lower_one(s, l, err);

	if (rc != WEFT_ELIMIT || coll_ranks(s) > MSCCL_MAX_RANKS) {
		return rc;
	}
	found = coll_bfb_fewer_chunks(s, lower_one, l, &fit, &why);
	if (found == 0 && cli_has(c, "fit")) {
		/* The last try is not the one that is taken. */
		rc = lower_one(fit, l, err);
		if (rc == 0) {
			rc = describe_fit(fit, s, text, sizeof(text), err);
		}
		if (rc == 0) {
			cli_say(c, CLI_NORMAL, "exported in %s", text);
		}
	} else {
		advise(l, s, fit, found, err);
	}
	coll_free(fit);
	return rc;
}

/* ---- formats ---- */

/* Formats and what each is for. */
static const struct {
	const char *name, *what;
} formats[] = {
	{ "json", "any schedule" }, { "proto", "any schedule" },
	{ "msccl-xml", "MSCCL" }, { "rccl-xml", "MSCCL within RCCL" },
	{ "mscclpp-json", "MSCCL++" }, { "chakra", "ASTRA-sim" },
	{ "routes-json", "routes of an all-to-all" }, { "routes-proto", "routes of an all-to-all" },
};

#define N_FORMATS (sizeof(formats) / sizeof(formats[0]))

/* Formats that have the word in their name or what they are for, or begin it: "a (what), b (what)".
 * */
static void list_formats(const char *word, bool routes, char *text, size_t size)
{
	size_t n = 0;

	text[0] = '\0';
	for (size_t i = 0; i < N_FORMATS; i++) {
		bool near = strcasestr(formats[i].name, word) ||
			strcasestr(formats[i].what, word) ||
			    strncasecmp(word, formats[i].name, strlen(formats[i].name)) == 0;

		if (near && (!routes || cli_is_route_table(formats[i].name)) && n < size) {
			n += (size_t)snprintf(text + n, size - n, "%s%s (%s)", n ? ", " : "",
					      formats[i].name, formats[i].what);
		}
	}
}

int cli_check_format(const char *to, bool routes, struct err *err)
{
	char meant[ERR_FILE_MAX];
	struct nearest near;
	bool other_verb = false;

	nearest_init(&near, to);
	for (size_t i = 0; i < N_FORMATS; i++) {
		bool taken = !routes || cli_is_route_table(formats[i].name);

		if (taken && strcmp(formats[i].name, to) == 0) {
			return 0;
		}
		other_verb |= strcmp(formats[i].name, to) == 0;
		if (taken) {
			nearest_try(&near, formats[i].name);
		}
	}
	err_set(err, WEFT_EUSAGE, "--to %s: no such format", to);
	list_formats(to, routes, meant, sizeof(meant));
	if (other_verb) {
		err_hint(err, "that is one of \"weft schedule export\"; routes-json and "
			 "routes-proto are of this");
	} else if (to[0] && meant[0]) {
		err_hint(err, "did you mean %s?", meant);
	} else if (!nearest_hint(&near, err)) {
		err_hint(err, "expected %sroutes-json or routes-proto", routes ? "" :
			 "json, proto, msccl-xml, rccl-xml, mscclpp-json, chakra, ");
	}
	return err->code;
}

/* What is no program of MSCCL. c is NULL when a file is written for another command,
 * which never asks for a runtime. */
static int serialize(const struct cli *c, const struct coll_sched *s, const char *to,
		     int max_layers, struct buf *b, struct err *err)
{
	struct lowering l = { .r = runtime_of(to), .out = b,
				.out_of_place = c && cli_has(c, "out-of-place") };

	if (l.r) {
		return lower_or_advise(c, s, &l, err);
	}
	if (strcmp(to, "json") == 0) {
		coll_to_json(s, b);
		return 0;
	}
	if (strcmp(to, "proto") == 0) {
		coll_to_proto(s, b);
		return 0;
	}
	return cli_write_routes(s, to, max_layers, b, err);
}

/* The format that a file name asks for: JSON when it ends so, or is "-" or NULL. */
static const char *format_of(const char *path)
{
	size_t n = path ? strlen(path) : 0;

	return !path || strcmp(path, "-") == 0 || (n > 5 && strcmp(path + n - 5, ".json") == 0)
		       ? "json"
		       : "proto";
}

static int write_programs(const struct cli *c, const struct coll_sched *s,
			  const struct runtime *to, const char *path, struct err *err)
{
	struct cli_programs programs;
	struct lowering l = { .r = to, .programs = &programs };
	int r = cli_programs_read(c, path, (enum msccl_dialect)to->dialect, &programs, err);

	if (r == 0) {
		r = lower_or_advise(c, s, &l, err);
	}
	if (r == 0) {
		r = cli_programs_write(c, &programs, path, err);
	}
	msccl_choices_fini(&programs.made);
	return r;
}

/* PATH.0.et and on, a file for each rank. */
static int write_chakra(const struct cli *c, const struct coll_sched *s, const char *path,
			struct err *err)
{
	struct buf *files = x_new((size_t)coll_ranks(s), sizeof(*files));
	int64_t bytes = 0;
	int r;

	(void)((r = cli_need(c, "output", err)) || (r = cli_need(c, "size", err)) ||
	       (r = cli_opt_unit(c, "size", UNIT_BYTES, &bytes, err)) ||
	       (r = lower_chakra(s, bytes, files, err)));
	for (int i = 0; i < coll_ranks(s); i++) {
		struct buf name = { 0 };

		buf_printf(&name, "%s.%d.et", path, i);
		if (r == 0) {
			r = cli_write_data(buf_cstr(&name), &files[i], err);
		}
		buf_fini(&name);
		buf_fini(&files[i]);
	}
	free(files);
	return r;
}

/* path: -o, or NULL. max_layers is for route tables; 0: as many as it takes. */
static int write_as(const struct cli *c, const struct coll_sched *s, const char *to, int max_layers,
		    const char *path, struct err *err)
{
	const struct runtime *runtime = runtime_of(to);
	struct buf b = { 0 };
	int r;

	if (runtime && runtime->dialect >= 0) {
		return write_programs(c, s, runtime, path, err);
	}
	if (strcmp(to, "chakra") == 0) {
		return write_chakra(c, s, path, err);
	}
	r = serialize(c, s, to, max_layers, &b, err);
	if (r == 0) {
		r = cli_write_data(path, &b, err);
	}
	buf_fini(&b);
	return r;
}

int cli_write_schedule(const struct coll_sched *s, const char *path, struct err *err)
{
	return write_as(NULL, s, format_of(path), 0, path, err);
}

/* WEFT_EUSAGE: an option that only programs of MSCCL can follow. */
static int refuse_programs(const struct cli *c, const char *to, struct err *err)
{
	static const char *const names[] = { "protocol", "instances", "threadblocks",
					     "link-bandwidth", NULL };
	const struct runtime *runtime = runtime_of(to);

	return runtime && runtime->dialect >= 0
		       ? 0 : cli_refuse(c, names, "is for --to msccl-xml and rccl-xml", err);
}

/* What --to, --layers, --fit, --out-of-place and --rank ask for; an option
 * that the format cannot follow is refused, rather than ignored. */
static int read_format(const struct cli *c, const char *path,
		       const char **to, int *max_layers, struct err *err)
{
	int64_t layers = 0;
	int r = cli_opt_int(c, "layers", 1, CLI_MAX_LAYERS, &layers, err);

	*to = cli_opt(c, "to") ? cli_opt(c, "to") : format_of(path);
	*max_layers = (int)layers;
	if (r == 0) {
		r = cli_check_format(*to, false, err);
	}
	if (r == 0 && layers && !cli_is_route_table(*to)) {
		r = err_set(err, WEFT_EUSAGE, "--layers is for --to "
			    "routes-json and routes-proto");
	}
	if (r == 0 && cli_has(c, "fit") && !runtime_of(*to)) {
		r = err_set(err, WEFT_EUSAGE, "--fit is for --to of a runtime "
			    "with limits, such as msccl-xml");
	}
	if (r == 0 && cli_has(c, "size") && strcmp(*to, "chakra") != 0) {
		r = err_set(err, WEFT_EUSAGE, "--size is for --to chakra");
	}
	if (r == 0 && cli_has(c, "out-of-place") && strcmp(*to, "mscclpp-json") != 0) {
		r = err_set(err, WEFT_EUSAGE, "--out-of-place is for --to mscclpp-json");
	}
	if (r == 0 && (cli_has(c, "rank") || cli_has(c, "flat")) && strcmp(*to, "json") != 0 &&
	    strcmp(*to, "proto") != 0) {
		r = err_set(err, WEFT_EUSAGE, "--%s is for --to json and proto",
			    cli_has(c, "rank") ? "rank" : "flat");
	}
	if (r == 0) {
		r = refuse_programs(c, *to, err);
	}
	if (r == 0 && cli_has(c, "rank") && cli_has(c, "flat")) {
		r = err_set(err, WEFT_EUSAGE, "--rank and --flat: only one of them, as a part is "
			    "written out anyway");
	}
	return r;
}

/* Leaves of a whole schedule, which is proven, the part of --rank; and of what
 * is compact every transfer with --flat. */
static int keep_rank(const struct cli *c, struct coll_sched **s, struct err *err)
{
	struct coll_sched *other = NULL;
	int64_t rank = 0;
	int r = cli_opt_int(c, "rank", 0, coll_ranks(*s) - 1, &rank, err);

	if (r == 0 && cli_has(c, "rank")) {
		r = coll_part_of(*s, (int)rank, &other, err);
	} else if (r == 0 && cli_has(c, "flat")) {
		r = coll_unfold(*s, &other, err);
	}
	if (other) {
		coll_free(*s);
		*s = other;
	}
	return r;
}

/* Prints nothing but the schedule itself, when it goes to stdout. */
int cmd_schedule_export(struct cli *c, struct err *err)
{
	const char *path = cli_opt(c, "output"), *job = cli_opt(c, "job"), *to;
	struct coll_sched *s = NULL;
	int max_layers;
	int r;

	if (job && !strchr(job, '/') && !cli_has(c, "to") && cli_is_folder(path)) {
		return cli_export_step(c, job, path, err);
	}
	/* What leaves weft was replayed, wherever it came from. */
	(void)((r = read_format(c, path, &to, &max_layers, err)) ||
	       (r = cli_load_schedule(c, &s, err)) ||
	       (r = coll_verify(s, NULL, err)) ||
	       (r = keep_rank(c, &s, err)) ||
	       (r = write_as(c, s, to, max_layers, path, err)));
	coll_free(s);
	return r;
}
