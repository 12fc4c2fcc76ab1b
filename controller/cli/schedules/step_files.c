/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A training step as a folder, for those who run it:
 *
 *	step.json	the step, its plan and its bounds
 *	light-1.json	circuits of all ranks under a light, a digraph
 *	NAME.json	schedule of a collective, of one group
 *	groups.json	ranks of all groups of each
 *	table.yaml	which calls of MPI take which schedule, for libweft_mpi.so
 *
 * What is written was checked as "weft schedule verify FOLDER" does, which needs no fabric.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "collective/workload/workload.h"
#include "controller/cli/schedules/programs.h"
#include "lib/base/alloc.h"
#include "lib/base/file.h"

/* One folder's; lights as digraphs. */
struct step_files {
	const char *folder;
	struct workload *w;
	struct workload_plan *plan;
	VEC(struct topo *) lights;
};

static void step_files_fini(struct step_files *s)
{
	for (size_t i = 0; i < s->lights.n; i++) {
		topo_free(s->lights.v[i]);
	}
	vec_fini(&s->lights);
	workload_plan_free(s->plan);
	workload_free(s->w);
}

/* The collective of a use, and *number: which of its schedules, 0 for the only one. */
static const char *name_of(const struct step_files *s, size_t use, size_t *number)
{
	*number = (size_t)workload_use_number(s->plan, use);
	return s->w->ops.v[s->plan->uses.v[use].op].name;
}

/* "FOLDER/NAME.json", "FOLDER/light-2.json"; free(). */
static char *path_of(const struct step_files *s, const char *name, size_t number)
{
	struct buf b = { 0 };

	buf_printf(&b, "%s/%s", s->folder, name);
	if (number) {
		buf_printf(&b, "-%zu", number);
	}
	buf_str(&b, strchr(name, '.') ? "" : ".json");
	return buf_steal(&b);
}

static int write_file(const struct step_files *s, const char *name, size_t number,
		      const struct buf *b, struct err *err)
{
	char *path = path_of(s, name, number);
	int r = cli_write_data(path, b, err);

	free(path);
	return r;
}

static int parse(const char *name, const char *text, size_t len, struct step_files *s,
		 struct err *err)
{
	struct err_list errs = { 0 };
	int r = workload_from_json(name, text, len, &s->w, &s->plan, &errs);

	if (r) {
		cli_report_list(&errs, err);
	}
	err_list_fini(&errs);
	return r;
}

static bool has_schedule(const struct step_files *s, const struct workload_use *use)
{
	const struct workload_op *op = &s->w->ops.v[use->op];

	return !op->shift && workload_ranks(s->w, op->axes) > 1;
}

/* ---- out ---- */

/* Files have names of collectives: none may be that of another file. */
static int check_names(const struct step_files *s, struct err *err)
{
	int r = 0;

	for (size_t i = 0; i < s->plan->uses.n && !r; i++) {
		size_t number;
		const char *name = name_of(s, i, &number);
		char *path = path_of(s, name, number), *other;

		if (strcmp(name, "step") == 0 || strcmp(name, "groups") == 0 ||
		    strncmp(name, "light-", 6) == 0) {
			r = err_set(err, WEFT_EUNSUPPORTED, "a collective called %s: %s.json is "
				    "another file of the folder", name, name);
		}
		for (size_t k = 0; k < i && !r; k++) {
			name = name_of(s, k, &number);
			other = path_of(s, name, number);
			if (strcmp(path, other) == 0) {
				r = err_set(err, WEFT_EUNSUPPORTED, "two schedules would be in "
					    "%s: give %s another name", path, name);
			}
			free(other);
		}
		free(path);
	}
	return r;
}

static int fetch(struct cli *c, const char *job, struct step_files *s, struct err *err)
{
	struct buf b = { 0 };
	struct topo *t;
	char *name;
	int r;

	buf_printf(&b, "%s/", job);
	name = buf_steal(&b);
	r = cli_fetch_schedule(c, name, &b, err);
	if (r == 0) {
		r = parse("step.json", b.data, b.len, s, err);
	}
	free(name);
	buf_fini(&b);
	if (r || (r = check_names(s, err))) {
		return r;
	}
	for (size_t i = 0; i < s->plan->lights.n && !r; i++) {
		r = workload_light_topo(s->w, &s->plan->lights.v[i], &t, err);
		if (r == 0) {
			vec_push(&s->lights, t);
		}
	}
	for (size_t i = 0; i < s->plan->uses.n && !r; i++) {
		struct workload_use *use = &s->plan->uses.v[i];

		if (has_schedule(s, use)) {
			size_t number;
			const char *op = name_of(s, i, &number);

			buf_printf(&b, number ? "%s/%s/%zu" : "%s/%s", job, op, number);
			name = buf_steal(&b);
			r = cli_load_job_schedule(c, name, &use->sched, err);
			free(name);
		}
	}
	return r;
}

/* "4 x [8] x 2": the mesh, with the axes of a group in brackets. */
static void put_members(const struct workload *w, uint32_t axes, struct buf *b)
{
	for (size_t i = 0; i < w->axes.n; i++) {
		const char *form = axes >> i & 1 ? "%s[%d]" : "%s%d";

		buf_printf(b, form, i ? " x " : "", w->axes.v[i].size);
	}
}

/* Whether no use of the kind in these groups is for larger vectors: it gets all of them. */
static bool is_largest(const struct step_files *s, const struct workload_use *use)
{
	const struct workload_op *op = &s->w->ops.v[use->op];

	for (size_t i = 0; i < s->plan->uses.n; i++) {
		const struct workload_use *other = &s->plan->uses.v[i];
		const struct workload_op *o = &s->w->ops.v[other->op];

		if (!o->shift && o->kind == op->kind && o->axes == op->axes &&
		    other->max_bytes > use->max_bytes) {
			return false;
		}
	}
	return true;
}

/* A call does not say which light is lit. */
static bool has_lights(const struct step_files *s, const struct workload_use *use)
{
	for (size_t i = 0; i < s->plan->uses.n; i++) {
		if (s->plan->uses.v[i].op == use->op && s->plan->uses.v[i].light != use->light) {
			return true;
		}
	}
	return false;
}

static int by_bytes(const void *a, const void *b)
{
	const struct workload_use *x = *(const struct workload_use *const *)a;
	const struct workload_use *y = *(const struct workload_use *const *)b;

	return (x->max_bytes > y->max_bytes) - (x->max_bytes < y->max_bytes);
}

static void put_entry(const struct step_files *s, const struct workload_use *use, struct buf *b)
{
	const struct workload_op *op = &s->w->ops.v[use->op];
	size_t number;
	const char *name = name_of(s, (size_t)(use - s->plan->uses.v), &number);

	buf_str(b, "  ");
	if (has_lights(s, use)) {
		buf_printf(b, "# light %d: ", use->light + 1);
	}
	buf_printf(b, number ? "- { file: %s-%zu.json" : "- { file: %s.json", name, number);
	buf_printf(b, ", collective: %s, members: \"", coll_kind_name(op->kind));
	put_members(s->w, op->axes, b);
	buf_str(b, "\"");
	if (use->min_bytes > op->min_bytes) {
		buf_printf(b, ", min-bytes: %lldB", (long long)use->min_bytes);
	}
	if (!is_largest(s, use)) {
		buf_printf(b, ", max-bytes: %lldB", (long long)use->max_bytes);
	}
	buf_str(b, " }\n");
}

static int write_table(const struct step_files *s, struct err *err)
{
	const struct workload_use **uses = x_new(s->plan->uses.n + 1, sizeof(*uses));
	struct buf b = { 0 };
	size_t n = 0;
	int r;

	for (size_t i = 0; i < s->plan->uses.n; i++) {
		if (has_schedule(s, &s->plan->uses.v[i])) {
			uses[n++] = &s->plan->uses.v[i];
		}
	}
	qsort(uses, n, sizeof(*uses), by_bytes);
	buf_str(&b, "schedules:\n");
	for (size_t i = 0; i < n; i++) {
		put_entry(s, uses[i], &b);
	}
	r = n ? write_file(s, "table.yaml", 0, &b, err) : 0;
	free(uses);
	buf_fini(&b);
	return r;
}

static int write_groups(const struct step_files *s, struct err *err)
{
	int n = workload_ranks(s->w, WORKLOAD_ALL_AXES), r;
	int *ranks = x_new((size_t)n, sizeof(*ranks));
	struct out *o = out_new(OUT_JSON);
	struct buf b = { 0 };

	for (size_t i = 0; i < s->w->ops.n; i++) {
		const struct workload_op *op = &s->w->ops.v[i];

		out_array(o, op->name);
		for (int first = 0; first < n; first++) {
			if (workload_group(s->w, op->axes, first, ranks) != 0) {
				continue;
			}
			out_array(o, NULL);
			for (int k = 0; k < workload_ranks(s->w, op->axes); k++) {
				out_int(o, NULL, ranks[k]);
			}
			out_end(o);
		}
		out_end(o);
	}
	out_render(o, &b);
	out_free(o);
	r = write_file(s, "groups.json", 0, &b, err);
	buf_fini(&b);
	free(ranks);
	return r;
}

static int write_schedules(const struct step_files *s, struct err *err)
{
	struct buf b = { 0 };
	int r = 0;

	for (size_t i = 0; i < s->lights.n && !r; i++) {
		buf_reset(&b);
		topo_to_json(s->lights.v[i], "light", &b);
		r = write_file(s, "light", i + 1, &b, err);
	}
	for (size_t i = 0; i < s->plan->uses.n && !r; i++) {
		const struct workload_use *use = &s->plan->uses.v[i];

		if (use->sched) {
			size_t number;
			const char *name = name_of(s, i, &number);

			buf_reset(&b);
			coll_to_json(use->sched, &b);
			r = write_file(s, name, number, &b, err);
		}
	}
	buf_reset(&b);
	workload_to_json(s->w, s->plan, &b);
	if (r == 0) {
		r = write_file(s, "step.json", 0, &b, err);
	}
	buf_fini(&b);
	return r;
}

static int print_step(const struct cli *c, const struct step_files *s, struct err *err)
{
	struct out *o = out_new(c->format);
	int64_t n = 0;

	for (size_t i = 0; i < s->plan->uses.n; i++) {
		n += has_schedule(s, &s->plan->uses.v[i]);
	}
	out_bool(o, "valid", true);
	out_int(o, "ranks", workload_ranks(s->w, WORKLOAD_ALL_AXES));
	out_int(o, "lights", (int64_t)s->lights.n);
	out_int(o, "schedules", n);
	cli_out_ns(c, o, "time", s->plan->time_ns);
	cli_out_ns(c, o, "bound_still", s->plan->bound.still_ns);
	cli_out_ns(c, o, "bound_any", s->plan->bound.any_ns);
	return cli_print(o, err);
}

bool cli_is_folder(const char *path)
{
	size_t n = path ? strlen(path) : 0;
	struct stat st;

	return path && ((n > 0 && path[n - 1] == '/') ||
			(stat(path, &st) == 0 && S_ISDIR(st.st_mode)));
}

int cli_export_step(struct cli *c, const char *job, const char *folder, struct err *err)
{
	struct step_files s = { .folder = folder };
	int r = fetch(c, job, &s, err);

	if (r == 0) {
		r = workload_check(s.w, s.plan, s.lights.v, err);
	}
	if (r == 0 && mkdir(folder, FILE_PUBLIC) && errno != EEXIST) {
		r = err_set(err, WEFT_EIO, "%s: %s", folder, strerror(errno));
	}
	(void)(r || (r = write_schedules(&s, err)) || (r = write_groups(&s, err)) ||
	       (r = write_table(&s, err)) || (r = print_step(c, &s, err)));
	step_files_fini(&s);
	return r;
}

/* ---- in ---- */

static int read_lights(struct step_files *s, struct err *err)
{
	int r = 0;

	for (size_t i = 0; i < s->plan->lights.n && !r; i++) {
		char *path = path_of(s, "light", i + 1), *name = NULL;
		struct topo *t;

		r = cli_load_topology(path, &t, &name, err);
		if (r == 0) {
			vec_push(&s->lights, t);
		}
		free(name);
		free(path);
	}
	return r;
}

static int read_schedules(struct step_files *s, struct err *err)
{
	int r = 0;

	for (size_t i = 0; i < s->plan->uses.n && !r; i++) {
		struct workload_use *use = &s->plan->uses.v[i];

		if (has_schedule(s, use)) {
			size_t number;
			const char *name = name_of(s, i, &number);
			char *path = path_of(s, name, number);

			r = cli_load_schedule_file(path, &use->sched, err);
			free(path);
		}
	}
	return r;
}

int cli_verify_step(struct cli *c, const char *folder, struct err *err)
{
	struct step_files s = { .folder = folder };
	char *path = path_of(&s, "step.json", 0), *text = NULL;
	size_t len;
	int r = file_read(path, CLI_MAX_SCHEDULE, &text, &len, err);

	if (r == 0) {
		r = parse(path, text, len, &s, err);
	}
	free(text);
	free(path);
	(void)(r || (r = read_lights(&s, err)) || (r = read_schedules(&s, err)) ||
	       (r = workload_check(s.w, s.plan, s.lights.v, err)) || (r = print_step(c, &s, err)));
	step_files_fini(&s);
	return r;
}
