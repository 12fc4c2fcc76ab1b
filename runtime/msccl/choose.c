/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which protocol serves which sizes, and in how many copies; see msccl.h.
 *
 * LL and LL128 save a round of flags behind the data, and pay for it in
 * bandwidth: their flags travel with it. So small calls are LL's, large
 * ones Simple's. The figures are what NCCL 2.23 chooses its own algorithms by
 * (src/graph/tuning.cc: baseLat and hwLat of rings over a network, the factors of
 * bandwidth in ncclTopoTuneModel, perChMaxRingLL128Bws for a channel).
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "runtime/msccl/msccl.h"

static const struct {
	double base_ns, hop_ns, share;
} figures[MSCCL_PROTOS] = {
	[MSCCL_LL] = { 6600, 2700, 0.5 },
	[MSCCL_LL128] = { 14000, 4000, 0.92 },
	[MSCCL_SIMPLE] = { 8400, 14000, 1 },
};

#define CHANNEL_BPS 160000000000LL	/* that one threadblock moves */
#define LARGE (1LL << 30)	/* a call whose time is all bandwidth */

/* The time of a call of M bytes: at + M * slope, in ns. */
struct msccl_line {
	double at, slope;
};

/* A link is no faster than the channels that p has on it. */
static int line_of(const struct coll_sched *s, const struct msccl_request *w, const struct msccl *p,
		   struct msccl_line *out, struct err *err)
{
	int64_t channels = p->beside * CHANNEL_BPS;
	struct coll_cost cost = { .size_bytes = LARGE,
				  .link_bps = channels < w->link_bps ? channels : w->link_bps };
	struct coll_report report;
	int64_t time_ns = 0;
	int rc;

	coll_report_init(&report);
	rc = coll_verify(s, &report, err);
	if (!rc) {
		rc = coll_time(s, &report, &cost, &time_ns, NULL, err);
	}
	out->at = figures[p->proto].base_ns + report.steps * figures[p->proto].hop_ns;
	out->slope = (double)time_ns / LARGE / figures[p->proto].share;
	coll_report_fini(&report);
	return rc;
}

/* ---- one protocol ---- */

/* Copies that bring channels which move `beside` at a time to the rate of a link. */
static int copies_for(const struct msccl_request *w, int beside)
{
	double channels = ceil((double)w->link_bps / (double)CHANNEL_BPS);

	return channels > beside ? (int)ceil(channels / beside) : 1;
}

/* More copies of what c holds, as many as fit. */
static void add_copies(const struct coll_sched *s, const struct msccl_request *w,
		       struct msccl_options o, struct msccl_choice *c)
{
	int want = copies_for(w, c->p.beside), tbs = msccl_extent(&c->p).tbs;
	int rc = WEFT_ELIMIT;
	struct err why = { 0 };
	struct msccl more;

	o.tbs = o.tbs ? o.tbs : tbs > MSCCL_WIDE ? tbs : MSCCL_WIDE;
	for (o.instances = want; o.instances > 1 && rc == WEFT_ELIMIT; o.instances--) {
		rc = msccl_lower_as(s, &o, &more, &why);
		if (rc == 0 && more.max_bytes != 0 && c->p.max_bytes == 0) {
			msccl_fini(&more);
			rc = WEFT_ELIMIT;
		}
		if (rc == 0) {
			msccl_fini(&c->p);
			c->p = more;
			c->instances = o.instances;
		}
	}
	snprintf(c->why, sizeof(c->why),
		 "%d channel%s at a time for links of %.4g Gbit/s, at 160 each%s", c->p.beside,
			 c->p.beside == 1 ? "" : "s",
		 (double)w->link_bps / 1e9,
		 c->instances < want ? "; limits allow no more" : "");
}

static int choose_one(const struct coll_sched *s, const struct msccl_request *w,
		      enum msccl_proto proto, struct msccl_choice *c, struct err *err)
{
	struct msccl_options o = { .dialect = w->dialect, .proto = proto, .tbs = w->tbs,
				   .instances = w->instances ? w->instances : 1 };
	int rc = msccl_lower_as(s, &o, &c->p, err);

	c->instances = o.instances;
	snprintf(c->why, sizeof(c->why), "%s", w->instances > 1 ? "instances as asked for"
		 : w->instances ? "one instance" : "one instance, as it is for small calls");
	if (rc || w->instances || proto == MSCCL_LL) {
		return rc;
	}
	add_copies(s, w, o, c);
	return 0;
}

/* ---- sizes ---- */

/* From which size on b is faster than a; -1: never. */
static double crossing(const struct msccl_line *a, const struct msccl_line *b)
{
	if (a->slope <= b->slope) {
		return -1;
	}
	return b->at <= a->at ? 0 : (b->at - a->at) / (a->slope - b->slope);
}

static void swap(struct msccl_choice *c, struct msccl_line *l, int i, int k)
{
	struct msccl_choice x = c[i];
	struct msccl_line y = l[i];

	c[i] = c[k];
	c[k] = x;
	l[i] = l[k];
	l[k] = y;
}

/* Brings forward, to place i, the program that is best for calls of `from`
 * bytes; the place of the one that takes over first, and when, or -1. */
static int take(struct msccl_choice *c, struct msccl_line *l, int i, int n, double from,
		double *until)
{
	int best = i, next = -1;

	for (int k = i + 1; k < n; k++) {
		double a = l[k].at + from * l[k].slope, b = l[best].at + from * l[best].slope;

		best = a < b || (a == b && l[k].slope < l[best].slope) ? k : best;
	}
	swap(c, l, i, best);
	for (int k = i + 1; k < n; k++) {
		double x = crossing(&l[i], &l[k]);

		if (x >= from && (next < 0 || x < *until)) {
			next = k;
			*until = x;
		}
	}
	return next;
}

/* Gives program i its sizes from `from` on; where the next one's begin, 0: there
 * is none. A layout that holds for small calls only ends where it must. */
static int64_t give_sizes(struct msccl_choices *c, struct msccl_line *l, int i, int64_t from)
{
	double until = 0;
	int next = take(c->v, l, i, c->n, (double)from, &until);
	struct msccl *p = &c->v[i].p;

	p->min_bytes = from;
	if (next >= 0 && (p->max_bytes == 0 || (double)p->max_bytes > until)) {
		p->max_bytes = (int64_t)until > from ? (int64_t)until : from + 1;
	}
	return p->max_bytes == 0 ? 0 : p->max_bytes + 1;
}

/* Takes away program i, and what is after it with `rest`. */
static void drop(struct msccl_choices *c, struct msccl_line *l, int i, bool rest)
{
	do {
		swap(c->v, l, i, --c->n);
		msccl_fini(&c->v[c->n].p);
	} while (rest && c->n > i);
}

/* Those that are nowhere best, or end before they begin, go. */
static void share_sizes(struct msccl_choices *c, struct msccl_line *l)
{
	int64_t from = 0;

	for (int i = 0; i < c->n;) {
		int64_t to = give_sizes(c, l, i, from);

		if (to != 0 && to <= from) {
			drop(c, l, i, false);
			continue;
		}
		from = to;
		i++;
		if (to == 0 && i < c->n) {
			drop(c, l, i, true);
		}
	}
}

void msccl_choices_fini(struct msccl_choices *c)
{
	while (c->n > 0) {
		msccl_fini(&c->v[--c->n].p);
	}
}

int msccl_choose(const struct coll_sched *s, const struct msccl_request *w,
		 struct msccl_choices *out,
		 struct err *err)
{
	static const enum msccl_proto order[] = { MSCCL_LL, MSCCL_LL128, MSCCL_SIMPLE };
	struct msccl_line lines[MSCCL_PROTOS];
	struct err why = { 0 };
	int rc = 0;

	*out = (struct msccl_choices){ .n = 0 };
	for (int k = 0; k < MSCCL_PROTOS; k++) {
		if (!w->protos[order[k]]) {
			continue;
		}
		rc = choose_one(s, w, order[k], &out->v[out->n], &why);
		if (!rc) {
			rc = line_of(s, w, &out->v[out->n].p, &lines[out->n], &why);
			out->n++;
		} else {
			snprintf(out->left_out, sizeof(out->left_out), "%s is left out: %.180s",
				 msccl_proto_name(order[k]), why.msg);
		}
	}
	if (out->n == 0) {
		msccl_choices_fini(out);
		*err = why;
		return rc;
	}
	share_sizes(out, lines);
	return 0;
}
