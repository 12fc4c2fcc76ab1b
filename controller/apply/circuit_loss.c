/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What circuits lose, where devices measure it: learned while all is well, and
 * compared with the fabric's figure and with what was learned. The lowest value
 * is kept, not a mean: a connector that gets dirty slowly would drag a mean with
 * it and never be noticed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/apply/private.h"
#include "lib/base/alloc.h"

/* SONiC calls a circuit tuned while it is within this of its target. */
#define TOLERANCE_MDB 500

static struct store_insertion_loss *find(const struct device *d, struct optics_xc xc)
{
	/* store_loss begins with its optics_xc, which is all the order needs. */
	return d->n_losses ? bsearch(&xc, d->losses, (size_t)d->n_losses,
				     sizeof(*d->losses), optics_xc_cmp) : NULL;
}

/* Of a circuit, by the file; 0: none. */
static int32_t limit_of(const struct device *d)
{
	return d->file ? d->file->loss_mdb : 0;
}

/* What is measured with an error is only too much when it would be so at its
 * least. */
static bool over_limit(const struct device *d, const struct drv_xc *x)
{
	int32_t limit = limit_of(d);

	return x->has_loss && limit > 0 && x->loss_mdb - x->loss_error_mdb > limit;
}

static void learn(struct device *d, const struct drv_xc *x)
{
	struct store_insertion_loss *l = find(d, x->xc);

	if (l && x->loss_mdb < l->mdb) {
		l->mdb = x->loss_mdb;
		d->losses_unsaved = true;
	}
	if (l) {
		return;
	}
	d->losses = x_grow(d->losses, (size_t)d->n_losses + 1, sizeof(*d->losses));
	d->losses[d->n_losses++] = (struct store_insertion_loss){ x->xc, x->loss_mdb };
	qsort(d->losses, (size_t)d->n_losses, sizeof(*d->losses), optics_xc_cmp);
	d->losses_unsaved = true;
}

void loss_learn(struct device *d)
{
	const struct drv_snapshot *s = &d->now.snap;

	for (int i = 0; i < s->n_xcs; i++) {
		const struct drv_xc *x = &s->xcs[i];

		/* What is too much, or still moving, teaches nothing. */
		if (x->has_loss && x->state == DRV_TUNED && x->loss_mdb >= 0 && !over_limit(d, x)) {
			learn(d, x);
		}
	}
}

void loss_judge(const struct device *d, const struct drv_xc *x, struct apply_loss *out)
{
	const struct store_insertion_loss *l = find(d, x->xc);

	*out = (struct apply_loss){ .limit_mdb = limit_of(d),
				    .has_good = l, .good_mdb = l ? l->mdb : 0 };
	if (x->has_loss) {
		out->over = over_limit(d, x);
		out->worse = l && x->loss_mdb - x->loss_error_mdb >
				  l->mdb + TOLERANCE_MDB;
	}
}

void loss_text(const struct drv_xc *x, const struct apply_loss *l, char *text, int size)
{
	int32_t than = l->over ? l->limit_mdb : l->good_mdb;
	char xc[48];

	snprintf(text, (size_t)size, "%s loses %d.%02d dB, %s %d.%02d dB",
		 xc_text(x->xc, xc, sizeof(xc)), x->loss_mdb / 1000,
		 x->loss_mdb % 1000 / 10,
		 l->over ? "the fabric says" : "was", than / 1000,
		 than % 1000 / 10);
}

int loss_load(struct device *d, struct err *err)
{
	return store_insertion_losses(d->a->store, d->name, &d->losses, &d->n_losses, err);
}

int loss_save(struct device *d, struct err *err)
{
	int rc = d->losses_unsaved ?
		 store_insertion_losses_put(d->a->store, d->name, d->losses,
				  d->n_losses, err) : 0;

	d->losses_unsaved = d->losses_unsaved && rc;
	return rc;
}
