/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of algorithms, and what they may be told.
 *
 * A row is a name, the collectives that it is for, what it needs and takes, and the functions that
 * predict its time and make and offer its schedules; "auto" goes through the table from above.
 * What costs more stands further below and looks at the best so far: where that cannot be beaten,
 * or the work would be out of proportion, nothing is made.
 */
#include <string.h>

#include "collective/bfb/bfb.h"
#include "collective/make/private.h"

#define KIND(kind) COLL_KIND_BIT(COLL_##kind)
#define OPTION(number) COLL_OPTION_BIT(COLL_##number)

#define COPIES (KIND(ALLGATHER) | KIND(REDUCE_SCATTER) | KIND(ALLREDUCE))
#define TREES (KIND(BROADCAST) | KIND(REDUCE))
#define PATHS (KIND(GATHER) | KIND(SCATTER))
#define PAIRS KIND(ALLTOALL)

#define FLOW (OPTION(GAP) | OPTION(LOSS) | OPTION(TIME_LIMIT) | OPTION(EXACT))
#define FORM (FLOW | OPTION(DEMANDS) | OPTION(RATE) | OPTION(HOST_BANDWIDTH) | \
	      OPTION(NIC_FORWARDS))

/* The lines of an algorithm on coordinates, and what else is fixed of it. */
#define SPEC(...) &(const struct torus_spec){ __VA_ARGS__ }
#define ON_COORDINATES .vary = COLL_VARY_SIZE, .run = make_by_torus, .predict = make_predict_torus

static const struct coll_algorithm algorithms[] = {
	{ "bfb", COPIES, .options = OPTION(BATCHES) | OPTION(CHUNKS), .run = make_by_bfb,
	  .predict = make_predict_bfb },
	{ "expand", COPIES, .needs_expression = true, .options = OPTION(BATCHES),
	  .run = make_by_expand },
	{ "steady", COPIES, .options = OPTION(BATCHES), .chooses_steps = true,
	  .vary = COLL_VARY_BATCHES, .run = make_by_steady },
	{ "flood", COPIES, .chooses_steps = true, .run = make_by_flood },
	{ "trees", COPIES, .options = OPTION(BATCHES) | OPTION(LEAST_COST), .chooses_steps = true,
	  .vary = COLL_VARY_STEPS_WORTH, .run = make_by_forest },
	{ "late", COPIES, .options = OPTION(BATCHES) | OPTION(EXTRA_STEPS),
	  .vary = COLL_VARY_EXTRA_STEPS, .run = make_by_late },
	{ "hierarchical", COPIES, .options = OPTION(BATCHES), .made_of = COLL_OF_GROUPS },
	{ "one-shot", KIND(ALLREDUCE), .options = OPTION(NO_MERGE) | OPTION(EXTRA_STEPS),
	  .vary = COLL_VARY_EXTRA_STEPS, .run = make_by_one_shot,
	  .predict = make_predict_one_shot },
	{ "trees", TREES, .options = OPTION(ROOT) | OPTION(TREE_BATCHES) | OPTION(LEAST_COST),
	  .chooses_steps = true, .vary = COLL_VARY_TREE_BATCHES, .run = make_by_rooted,
	  .predict = make_predict_trees },
	{ "paths", PATHS, .options = OPTION(ROOT), .run = make_by_rooted },
	{ "trimmed", TREES | PATHS, .options = OPTION(ROOT), .made_of = COLL_OF_WHOLE },
	{ "mixed-radix", COPIES, ON_COORDINATES,
	  .options = OPTION(LEVELS) | OPTION(ROUNDS) | OPTION(PORTS),
	  .torus = SPEC(.lines = TORUS_LEVELS, .rounds = TORUS_ANY_ROUNDS) },
	{ "swing", COPIES | TREES, ON_COORDINATES, .options = OPTION(ROOT) | OPTION(PORTS),
	  .by_name_only = true, .torus = SPEC(.lines = TORUS_SWING, .rounds = -1) },
	{ "swing-latency", KIND(ALLREDUCE), ON_COORDINATES, .options = OPTION(PORTS),
	  .by_name_only = true, .torus = SPEC(.lines = TORUS_SWING) },
	{ "hybrid", KIND(ALLREDUCE), ON_COORDINATES, .options = OPTION(ROUNDS) | OPTION(PORTS),
	  .by_name_only = true, .torus = SPEC(.lines = TORUS_SWING, .rounds = TORUS_ANY_ROUNDS) },
	{ "recursive-doubling", KIND(ALLREDUCE), ON_COORDINATES, .options = OPTION(PORTS),
	  .by_name_only = true, .torus = SPEC(.lines = TORUS_DOUBLING, .one_port = true) },
	{ "rabenseifner", COPIES, ON_COORDINATES, .options = OPTION(PORTS), .by_name_only = true,
	  .torus = SPEC(.lines = TORUS_DOUBLING, .rounds = -1, .one_port = true) },
	{ "bucket", COPIES, ON_COORDINATES, .options = OPTION(PORTS), .by_name_only = true,
	  .torus = SPEC(.lines = TORUS_BUCKET, .rounds = -1, .in_step = true) },
	{ "ring", COPIES, ON_COORDINATES, .options = OPTION(PORTS), .by_name_only = true,
	  .torus = SPEC(.lines = TORUS_RING, .rounds = -1) },
	{ "mcf", PAIRS, .options = FORM, .form = MCF_FORM_FLOW, .run = make_by_flow },
	{ "link-mcf", PAIRS, .options = FORM, .form = MCF_FORM_LINK, .by_name_only = true,
	  .run = make_by_flow },
	{ "grouped", PAIRS, .options = FORM, .form = MCF_FORM_GROUPED, .by_name_only = true,
	  .run = make_by_flow },
	{ "pmcf", PAIRS, .options = FORM, .form = MCF_FORM_PATHS, .by_name_only = true,
	  .run = make_by_flow },
	{ "tsmcf", PAIRS, .options = FLOW | OPTION(STEPS) | OPTION(DEMANDS), .run = make_by_steps },
	{ "single-path", PAIRS, .options = FLOW, .paths = MCF_PATHS_SINGLE,
	  .run = make_by_searched },
	{ "shortest-path", PAIRS, .options = FLOW, .paths = MCF_PATHS_SHORTEST,
	  .run = make_by_shortest },
	{ "disjoint", PAIRS, .options = FLOW, .paths = MCF_PATHS_DISJOINT,
	  .run = make_by_searched },
};

#define N_ALGORITHMS ((int)(sizeof(algorithms) / sizeof(algorithms[0])))

#define IN(field) offsetof(struct coll_make_query, field)
#define WHOLE(from, to, field) .type = COLL_OPTION_INT, .min = (from), .max = (to), \
	.offset = IN(field)
#define OTHER .type = COLL_OPTION_OTHER, .with_auto = true

const struct coll_option coll_options[COLL_OPTIONS] = {
	[COLL_ROOT] = { "root", TREES | PATHS, .with_auto = true, WHOLE(0, 0, root) },
	[COLL_BATCHES] = { "batches", COPIES, .with_auto = true,
			   WHOLE(1, COLL_MAX_BATCHES, batches) },
	[COLL_TREE_BATCHES] = { "batches", TREES, .with_auto = true,
				WHOLE(1, COLL_TREE_MAX_BATCHES, batches) },
	[COLL_CHUNKS] = { "chunks", COPIES, .selects = true, WHOLE(1, COLL_MAX_CHUNKS, chunks) },
	[COLL_EXTRA_STEPS] = { "extra-steps", COPIES, .with_auto = true,
			       WHOLE(0, COLL_LATE_MAX_EXTRA, extra_steps) },
	[COLL_LEAST_COST] = { "least-cost", COPIES | TREES, COLL_OPTION_FLAG, .selects = true,
			      .offset = IN(min_cost) },
	[COLL_LEVELS] = { "levels", COPIES, COLL_OPTION_TEXT, .offset = IN(torus.levels) },
	[COLL_ROUNDS] = { "rounds", COPIES,
			  WHOLE(0, TORUS_MAX_LEVELS * COLL_MAX_DIGITS, torus.rounds) },
	[COLL_PORTS] = { "ports", COPIES | TREES, COLL_OPTION_WORD, .words = "one all",
			 .offset = IN(torus.ports) },
	[COLL_GAP] = { "gap", PAIRS, COLL_OPTION_SHARE, .with_auto = true,
		       .offset = IN(pairs.flow.gap) },
	[COLL_LOSS] = { "loss", PAIRS, COLL_OPTION_SHARE, .with_auto = true,
			.offset = IN(pairs.loss) },
	[COLL_TIME_LIMIT] = { "time-limit", PAIRS, COLL_OPTION_DEADLINE, .with_auto = true,
			      .offset = IN(pairs.flow.deadline) },
	[COLL_STEPS] = { "steps", PAIRS, WHOLE(1, COLL_MAX_STEPS, pairs.steps) },
	[COLL_EXACT] = { "exact", PAIRS, OTHER },
	[COLL_DEMANDS] = { "demands", PAIRS, OTHER },
	[COLL_RATE] = { "rate", PAIRS, OTHER },
	[COLL_HOST_BANDWIDTH] = { "host-bandwidth", PAIRS, OTHER },
	[COLL_NIC_FORWARDS] = { "nic-forwards", PAIRS, OTHER },
	[COLL_NO_MERGE] = { "no-merge", KIND(ALLREDUCE), COLL_OPTION_FLAG, .with_auto = true,
			    .offset = IN(no_merge) },
};

/* ---- algorithms by name ---- */

const struct coll_algorithm *coll_algorithm(int i)
{
	return i < N_ALGORITHMS ? &algorithms[i] : NULL;
}

static bool is_for(const struct coll_algorithm *a, enum coll_kind kind)
{
	return a->kinds & COLL_KIND_BIT(kind);
}

const struct coll_algorithm *coll_algorithm_find(const char *name, enum coll_kind kind)
{
	for (int i = 0; i < N_ALGORITHMS; i++) {
		if (is_for(&algorithms[i], kind) && strcmp(algorithms[i].name, name) == 0) {
			return &algorithms[i];
		}
	}
	return NULL;
}

/* The first row of a name; NULL: none. */
static const struct coll_algorithm *first_called(const char *name)
{
	for (int i = 0; i < N_ALGORITHMS; i++) {
		if (strcmp(algorithms[i].name, name) == 0) {
			return &algorithms[i];
		}
	}
	return NULL;
}

const char *coll_algorithm_name(int i)
{
	for (int row = 0; row < N_ALGORITHMS; row++) {
		const struct coll_algorithm *a = &algorithms[row];

		if (first_called(a->name) == a && i-- == 0) {
			return a->name;
		}
	}
	return NULL;
}

bool coll_algorithm_exists(const char *name)
{
	return first_called(name) != NULL;
}

/* ---- options ---- */

/* Whether it is the option of this name, and means something for the collective. */
static bool is_called(const struct coll_option *o, const char *name, enum coll_kind kind)
{
	return strcmp(o->name, name) == 0 && (o->kinds & COLL_KIND_BIT(kind));
}

static bool takes(const struct coll_algorithm *a, const char *name, enum coll_kind kind)
{
	for (int o = 0; is_for(a, kind) && o < COLL_OPTIONS; o++) {
		if ((a->options & COLL_OPTION_BIT(o)) && is_called(&coll_options[o], name, kind)) {
			return true;
		}
	}
	return false;
}

static bool is_taken(const char *name, enum coll_kind kind)
{
	for (int i = 0; i < N_ALGORITHMS; i++) {
		if (takes(&algorithms[i], name, kind)) {
			return true;
		}
	}
	return false;
}

const struct coll_option *coll_option_taken(const char *name, enum coll_kind kind,
					    const struct coll_algorithm *algorithm)
{
	for (int o = 0; o < COLL_OPTIONS; o++) {
		const struct coll_option *option = &coll_options[o];

		if (is_called(option, name, kind) &&
		    (algorithm ? takes(algorithm, name, kind) : option->with_auto)) {
			return option;
		}
	}
	return NULL;
}

const struct coll_algorithm *coll_option_owner(const char *name, enum coll_kind kind)
{
	const struct coll_algorithm *owner = NULL;

	for (int i = 0; i < N_ALGORITHMS; i++) {
		if (takes(&algorithms[i], name, kind)) {
			if (owner) {
				return NULL;
			}
			owner = &algorithms[i];
		}
	}
	return owner;
}

/* ", ", or " and " before the last of n. */
static const char *before(int i, int n)
{
	return i == 0 ? "" : i == n - 1 ? " and " : ", ";
}

static void print_kinds(unsigned kinds, struct buf *out)
{
	int n = __builtin_popcount(kinds), i = 0;

	for (int kind = 0; kind < COLL_KINDS; kind++) {
		if (kinds & COLL_KIND_BIT(kind)) {
			buf_printf(out, "%s%s", before(i++, n),
				   coll_kind_name((enum coll_kind)kind));
		}
	}
}

/* The collectives that an option is for, or where these are most, those like this one that it is
 * not for. */
static void explain_kinds(const char *name, enum coll_kind kind, struct buf *out)
{
	unsigned taken = 0;

	for (int k = 0; k < COLL_KINDS; k++) {
		taken |= is_taken(name, (enum coll_kind)k) ? COLL_KIND_BIT(k) : 0;
	}
	if (__builtin_popcount(taken) * 2 <= COLL_KINDS) {
		buf_str(out, "is for ");
		print_kinds(taken, out);
		return;
	}
	buf_str(out, "is not for ");
	for (int i = 0; i < N_ALGORITHMS; i++) {
		if (is_for(&algorithms[i], kind)) {
			print_kinds(algorithms[i].kinds & ~taken, out);
			return;
		}
	}
}

void coll_option_explain(const char *name, enum coll_kind kind, struct buf *out)
{
	bool with_auto = coll_option_taken(name, kind, NULL);
	int n = with_auto, at = 0;

	if (!is_taken(name, kind)) {
		explain_kinds(name, kind, out);
		return;
	}
	for (int i = 0; i < N_ALGORITHMS; i++) {
		n += takes(&algorithms[i], name, kind);
	}
	buf_str(out, "is for --algorithm ");
	for (int i = 0; i < N_ALGORITHMS; i++) {
		if (takes(&algorithms[i], name, kind)) {
			buf_printf(out, "%s%s", before(at++, n), algorithms[i].name);
		}
	}
	buf_printf(out, "%s", with_auto ? " and auto" : "");
}
