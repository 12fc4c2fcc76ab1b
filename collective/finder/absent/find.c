/* SPDX-License-Identifier: Apache-2.0 */
/* Without the finder: which topology is the best for a job is not known. */
#include "collective/finder/finder.h"

int coll_choices_new(const struct coll_want *w, const struct coll_frontier *known,
		     struct coll_choices **out, struct err *err)
{
	*out = NULL;
	build_lacks("topology: auto", err);
	err_hint(err, "give the job a topology");
	return WEFT_EUNSUPPORTED;
}

void coll_choices_free(struct coll_choices *c)
{
}

/* The others are of choices that were made. */
int coll_choices_next(struct coll_choices *c, struct coll_choice *out, struct err *err)
{
	return WEFT_ENOTFOUND;
}

bool coll_choices_timed(struct coll_choices *c, struct coll_choice *out)
{
	return false;
}

int coll_choices_make(struct coll_choices *c, const char *expr, struct coll_made *out,
		      struct err *err)
{
	return build_lacks("topology: auto", err);
}

const struct coll_frontier *coll_choices_frontier(const struct coll_choices *c)
{
	return NULL;
}

size_t coll_ranges(const struct coll_frontier *f, const bool *skip, const struct coll_cost *cost,
		   int ports, struct coll_range *out)
{
	return 0;
}
