/* SPDX-License-Identifier: Apache-2.0 */
/* How many commands, and of which kind. */
#include "controller/dry_run/dry_run.h"

bool batch_replaces_map(const struct drv_caps *caps, const struct batch_stage *s)
{
	/* All deleted ones are there, so an equal count means that there are
	 * no others. */
	return caps->atomic_replace && s->n_del && s->n_add &&
	       s->n_keep == 0 &&
	       (caps->max_batch == 0 || s->n_add <= caps->max_batch) &&
	       s->n_there == s->n_del;
}

int batch_size(const struct drv_caps *caps, int n)
{
	return caps->max_batch > 0 && caps->max_batch < n ? caps->max_batch : n;
}

const char *batch_phase_name(enum batch_phase p)
{
	static const char *const names[] = {
		[BATCH_DELETE] = "delete", [BATCH_ADD] = "add",
		[BATCH_MAP] = "map", [BATCH_LOAD] = "load",
	};

	return names[p];
}
