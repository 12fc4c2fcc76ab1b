/* How many commands, and of which kind. */
#include "controller/dry_run/dry_run.h"

bool dispatch_replaces(const struct drv_caps *caps,
		       const struct dispatch_stage *s)
{
	/* All deleted ones are there, so an equal count means that there are
	 * no others. */
	return caps->atomic_replace && s->n_del && s->n_add &&
	       s->n_keep == 0 &&
	       (caps->max_batch == 0 || s->n_add <= caps->max_batch) &&
	       s->n_there == s->n_del;
}

int dispatch_batch(const struct drv_caps *caps, int n)
{
	return caps->max_batch > 0 && caps->max_batch < n ? caps->max_batch :
							    n;
}

const char *dispatch_phase_name(enum dispatch_phase p)
{
	static const char *const names[] = {
		[DISPATCH_DELETE] = "delete", [DISPATCH_ADD] = "add",
		[DISPATCH_MAP] = "map", [DISPATCH_LOAD] = "load",
	};

	return names[p];
}
