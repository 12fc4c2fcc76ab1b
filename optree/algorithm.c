/* SPDX-License-Identifier: Apache-2.0 */
/* The algorithms: their names, and what each needs of a ring. */
#include <string.h>

#include "optree/private.h"

static const char *const names[] = {
	[OPTREE_AUTO] = "auto", [OPTREE_COMPOSED] = "composed",
	[OPTREE_GROUPED] = "grouped", [OPTREE_TREE] = "optree", [OPTREE_BY_RING] = "ring",
	[OPTREE_BY_NE] = "ne", [OPTREE_BY_WRHT] = "wrht",
	[OPTREE_BY_ONE_STAGE] = "one-stage",
};

const char *optree_algorithm_name(enum optree_algorithm a)
{
	return names[a];
}

int optree_algorithm_parse(const char *name, enum optree_algorithm *a, struct err *err)
{
	for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++) {
		if (strcmp(name, names[k]) == 0) {
			*a = (enum optree_algorithm)k;
			return 0;
		}
	}
	err_set(err, WEFT_EINVAL, "%s is no algorithm for rings", name);
	err_hint(err, "auto, composed, grouped, optree, ring, ne, wrht, one-stage");
	return WEFT_EINVAL;
}

int part_supports(const struct optree_params *p, enum optree_algorithm how, struct err *err)
{
	if (how == OPTREE_BY_NE && p->line) {
		return err_set(err, WEFT_EUNSUPPORTED,
			       "neighbour exchange on a segment: not supported, "
			       "the nodes at its ends have one neighbour");
	}
	if (how == OPTREE_GROUPED && p->line) {
		return err_set(err, WEFT_EUNSUPPORTED, "grouped on a segment: not supported, what "
			       "groups have goes round the ring");
	}
	if (how != OPTREE_AUTO && how != OPTREE_COMPOSED && how != OPTREE_BY_RING &&
	    (!tree_width(p, RWA_CW) || !tree_width(p, RWA_CCW))) {
		return err_set(err, WEFT_EUNSUPPORTED,
			       "%s with channels in one direction only: not "
			       "supported, it sends both ways round",
			       optree_algorithm_name(how));
	}
	return 0;
}
