/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fewest channels on a small ring, by column generation on lp_solve.
 *
 * A column is a set of arcs that share no link: what one channel can carry.
 * The program takes as few columns as cover every arc; equal arcs share a
 * row. Columns have no order, so the symmetry between channels that spoils a
 * program with one variable per arc and channel does not arise. A column is
 * priced by the most expensive set of disjoint arcs under the row prices, a dynamic
 * programme once the ring is cut open. The optimum of the relaxation, rounded
 * up, is a bound on channels (the fractional chromatic number of the arcs);
 * a dive that fixes columns and solves again finds a colouring that meets it,
 * going back a little where it fails.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/vec.h"
#include "lib/lp/lp.h"
#include "rwa/ring/private.h"

#define SMALL_NODES 64
#define SMALL_ARCS 128
#define EPS 1e-6
#define BRANCHES 3	/* columns tried at each node of the dive */
#define MAX_NODES 400	/* of the dive, for one number of channels */
#define MAX_SOLVES 3000	/* of the relaxation, in all */

/* Equal arcs: one row. */
struct arc_class {
	struct ring_span span;
	int32_t demand, left;	/* arcs; those not yet in a fixed column */
};

struct ring_column {
	int first, n;		/* classes: members.v[first .. first+n-1] */
};

struct column_choice {
	int column, copies;
};

struct colour_program {
	struct colouring *job;
	struct lp *lp;
	struct arrays arrays;	/* owns classes, class_of and those per class */
	struct arc_class *classes;
	int n_classes;
	int32_t *class_of;	/* per span of the job */
	VEC(struct ring_column) columns;
	VEC(int) members;
	VEC(struct column_choice) fixed;
	int n_fixed;		/* copies in `fixed` */
	int target, nodes, solves;
	double *price;		/* per class */
	double *best;		/* n + 1: of the dynamic programme */
	int *from;		/* n + 1: class that ends here, or -1 */
	int *picked;		/* n_classes */
};

bool rwa_lp_is_small(const struct colouring *this)
{
	return this->n <= SMALL_NODES && this->count <= SMALL_ARCS;
}

static void program_fini(struct colour_program *p)
{
	lp_free(p->lp);
	arrays_fini(&p->arrays);
	vec_fini(&p->columns);
	vec_fini(&p->members);
	vec_fini(&p->fixed);
}

static void find_classes(struct colour_program *p)
{
	const struct colouring *job = p->job;

	for (int32_t i = 0; i < job->count; i++) {
		int c = 0;

		while (c < p->n_classes && (p->classes[c].span.lo != job->spans[i].lo ||
					    p->classes[c].span.len != job->spans[i].len)) {
			c++;
		}
		if (c == p->n_classes) {
			p->classes[p->n_classes++] = (struct arc_class){
				.span = job->spans[i] };
		}
		p->classes[c].demand++;
		p->classes[c].left++;
		p->class_of[i] = c;
	}
}

static int add_column(struct colour_program *p, const int *classes, int n, struct err *err)
{
	double ones[SMALL_ARCS];
	int first = (int)p->members.n;

	for (int k = 0; k < n; k++) {
		ones[k] = 1;
		vec_push(&p->members, classes[k]);
	}
	vec_push(&p->columns, (struct ring_column){ first, n });
	return lp_add_col(p->lp, 1, 0, LP_INF, false, n, classes, ones, NULL, err);
}

/* Rows, and a column for each class alone: always feasible. */
static int program_init(struct colour_program *p, struct colouring *job, struct err *err)
{
	size_t count = (size_t)job->count, n = (size_t)job->n + 1;
	int rc = 0;

	*p = (struct colour_program){ .job = job };
	arrays_add(&p->arrays, p->classes, count);
	arrays_add(&p->arrays, p->class_of, count);
	arrays_add(&p->arrays, p->price, count);
	arrays_add(&p->arrays, p->best, n);
	arrays_add(&p->arrays, p->from, n);
	arrays_add(&p->arrays, p->picked, count);
	find_classes(p);
	p->lp = lp_new();
	for (int c = 0; !rc && c < p->n_classes; c++) {
		rc = lp_add_row(p->lp, LP_GE, p->classes[c].demand, NULL, err);
	}
	for (int c = 0; !rc && c < p->n_classes; c++) {
		rc = add_column(p, &c, 1, err);
	}
	return rc;
}

/* Dearest disjoint classes within the `links` links from node `at` on, into
 * picked[]. Returns how many. O(links * classes). */
static int max_price_on_line(struct colour_program *p, int at, int links, double *value)
{
	int n = p->job->n, k = 0;

	p->best[0] = 0;
	for (int x = 1; x <= links; x++) {
		p->best[x] = p->best[x - 1];
		p->from[x] = -1;
		for (int c = 0; c < p->n_classes; c++) {
			struct ring_span s = p->classes[c].span;
			int lo = (s.lo - at + n) % n;

			if (lo + s.len == x && p->price[c] > EPS &&
			    p->best[lo] + p->price[c] > p->best[x]) {
				p->best[x] = p->best[lo] + p->price[c];
				p->from[x] = c;
			}
		}
	}
	*value = p->best[links];
	for (int x = links; x > 0;) {
		int c = p->from[x];

		if (c >= 0) {
			p->picked[k++] = c;
			x -= p->classes[c].span.len;
		} else {
			x--;
		}
	}
	return k;
}

static bool covers(const struct colour_program *p, int c, int link)
{
	struct ring_span s = p->classes[c].span;

	return (link - s.lo + p->job->n) % p->job->n < s.len;
}

/* The link with the fewest classes that are worth something over it. */
static int thinnest_link(const struct colour_program *p)
{
	int best = 0, min = p->n_classes + 1;

	for (int e = 0; e < p->job->n; e++) {
		int over = 0;

		for (int c = 0; c < p->n_classes; c++) {
			over += p->price[c] > EPS && covers(p, c, e);
		}
		if (over < min) {
			min = over;
			best = e;
		}
	}
	return best;
}

/* Adds the most expensive column without a class over the thinnest link, and the
 * most expensive with each class over it, as far as they are worth more than one
 * channel. *top: worth of the most expensive of all. */
static int price_columns(struct colour_program *p, double *top, int *added, struct err *err)
{
	int n = p->job->n, e = thinnest_link(p), rc = 0;

	*added = 0;
	*top = 0;
	for (int a = -1; !rc && a < p->n_classes; a++) {
		int at = (e + 1) % n, links = n - 1, k;
		double own = 0, value;

		if (a >= 0 && (p->price[a] <= EPS || !covers(p, a, e))) {
			continue;
		}
		if (a >= 0) {
			at = (p->classes[a].span.lo + p->classes[a].span.len) %
			     n;
			links = n - p->classes[a].span.len;
			own = p->price[a];
		}
		k = max_price_on_line(p, at, links, &value);
		value += own;
		*top = value > *top ? value : *top;
		if (value <= 1 + EPS) {
			continue;
		}
		if (a >= 0) {
			p->picked[k++] = a;
		}
		rc = add_column(p, p->picked, k, err);
		(*added)++;
	}
	return rc;
}

/* Optimum of the relaxation for the arcs left, as far as its rounding needs
 * it: *least is the least whole number of columns. */
static int relax(struct colour_program *p, int *min, struct err *err)
{
	int floor_bound = p->job->bound - p->n_fixed;

	while (p->solves++ < MAX_SOLVES) {
		struct lp_result res;
		double top, lower;
		int added, rc = lp_run(p->lp, NULL, &res, err);

		if (rc) {
			return rc;
		}
		if (res.outcome != LP_OPTIMAL) {
			return err_set(err, WEFT_EINTERNAL,
				       "ring channels: the program over "
				       "columns has no optimum");
		}
		*min = (int)ceil(res.objective - EPS);
		if (*min <= floor_bound) {
			return 0;
		}
		for (int c = 0; c < p->n_classes; c++) {
			p->price[c] = lp_settled(lp_dual(p->lp, c));
		}
		rc = price_columns(p, &top, &added, err);
		/* Prices scaled down by the most expensive column are feasible for
		 * the dual, so the objective scaled down is a bound. */
		lower = res.objective / (top > 1 ? top : 1);
		if (rc || !added || ceil(lower - EPS) >= *min) {
			return rc;
		}
	}
	*min = floor_bound;	/* stopped early: claims nothing */
	return 0;
}

/* Takes `copies` of a column (or gives them back: sign -1). */
static void fix(struct colour_program *p, struct column_choice ch, int sign)
{
	struct ring_column col = p->columns.v[ch.column];

	p->n_fixed += sign * ch.copies;
	for (int k = 0; k < col.n; k++) {
		int c = p->members.v[col.first + k];

		p->classes[c].left -= sign * ch.copies;
		lp_set_rhs(p->lp, c, p->classes[c].left > 0 ? p->classes[c].left : 0);
	}
}

static bool all_covered(const struct colour_program *p)
{
	for (int c = 0; c < p->n_classes; c++) {
		if (p->classes[c].left > 0) {
			return false;
		}
	}
	return true;
}

/* The columns with the largest values, at most BRANCHES, largest first; a
 * column at one or more is certain, and then the only choice. */
static int branches(const struct colour_program *p, struct column_choice out[BRANCHES + 1])
{
	double value[BRANCHES + 1];
	int n = 0;

	for (int col = 0; col < (int)p->columns.n; col++) {
		double x = lp_settled(lp_value(p->lp, col));
		int k = n;

		if (x <= EPS) {
			continue;
		}
		for (; k > 0 && value[k - 1] < x; k--) {
			value[k] = value[k - 1];
			out[k] = out[k - 1];
		}
		value[k] = x;
		out[k] = (struct column_choice){ col, x < 1 ? 1 : (int)(x + EPS) };
		n = n < BRANCHES ? n + 1 : BRANCHES;
	}
	return n && value[0] >= 1 - EPS ? 1 : n;
}

/* 1: all arcs covered by `fixed`, within target. 0: not found. */
static int dive(struct colour_program *p, struct err *err)
{
	struct column_choice tries[BRANCHES + 1];
	int n, min, rc;

	if (all_covered(p)) {
		return 1;
	}
	if (p->nodes++ >= MAX_NODES || p->solves >= MAX_SOLVES) {
		return 0;
	}
	rc = relax(p, &min, err);
	if (rc || p->n_fixed + min > p->target) {
		return rc;
	}
	n = branches(p, tries);
	for (int k = 0; k < n; k++) {
		vec_push(&p->fixed, tries[k]);
		fix(p, tries[k], 1);
		rc = dive(p, err);
		if (rc) {
			return rc;
		}
		fix(p, tries[k], -1);
		p->fixed.n--;
	}
	return 0;
}

/* Colours from the fixed columns; arcs of a class take them in order. */
static void read_colours(struct colour_program *p)
{
	struct colouring *job = p->job;
	int colour = 0;

	memset(job->colour, 0xff, (size_t)job->count * sizeof(*job->colour));
	for (size_t f = 0; f < p->fixed.n; f++) {
		struct ring_column col = p->columns.v[p->fixed.v[f].column];

		for (int copy = 0; copy < p->fixed.v[f].copies; copy++) {
			for (int k = 0; k < col.n; k++) {
				int c = p->members.v[col.first + k];
				int32_t i = 0;

				while (i < job->count && (p->class_of[i] != c ||
							  job->colour[i] >= 0)) {
					i++;
				}
				if (i < job->count) {
					job->colour[i] = colour;
				}
			}
			colour++;
		}
	}
	job->colours = colour;
	job->method = "lp_solve";
}

int rwa_colour_lp(struct colouring *this, struct err *err)
{
	struct colour_program p;
	int min = 0, rc = program_init(&p, this, err);

	if (!rc) {
		rc = relax(&p, &min, err);
	}
	if (rc) {
		goto out;
	}
	this->bound = min > this->bound ? min : this->bound;
	for (p.target = this->bound; p.target < this->colours; p.target++) {
		p.nodes = 0;
		rc = dive(&p, err);
		if (rc > 0) {
			read_colours(&p);
			rc = 0;
			break;
		}
		if (rc) {
			break;
		}
	}
out:
	program_fini(&p);
	return rc ? err_wrap(err, "ring channels") : 0;
}
