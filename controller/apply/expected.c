/* SPDX-License-Identifier: Apache-2.0 */
/* What weft itself wants of a device's light, or is about to do to it. */
#include <stdlib.h>
#include <string.h>

#include "controller/apply/private.h"

bool device_intends(const struct device *d, struct optics_xc xc)
{
	return d->intent.n_xcs && bsearch(&xc, d->intent.xcs, d->intent.n_xcs,
					  sizeof(xc), optics_xc_cmp);
}

const struct store_work *device_next_work(const struct device *d, struct work_cursor *at)
{
	while ((at->journal = apply_journal(d->a, at->k))) {
		while (at->w < at->journal->n_works) {
			const struct store_work *w = &at->journal->works[at->w++];

			if (strcmp(w->device, d->name) == 0) {
				return w;
			}
		}
		at->k++;
		at->w = 0;
	}
	return NULL;
}

bool maintenance_explains(const struct device *d, struct optics_xc xc)
{
	const struct maintenance *c = d->a->maintenance;

	return c && c->d == d && !c->what.recovery &&
	       c->what.port.index == (c->what.port.is_out ? xc.out : xc.in);
}
