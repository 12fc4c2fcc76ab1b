/* SPDX-License-Identifier: Apache-2.0 */
/* Without linear programs: no node takes a shard late. */
#include "collective/bfb/bfb.h"

int coll_late(enum coll_kind kind, struct topo *topo, int extra, const struct coll_late_aim *aim,
	      struct coll_sched **out, struct err *err)
{
	topo_free(topo);
	build_lacks("late takers, which \"auto\" tries on this topology", err);
	err_hint(err, "give the job an algorithm, such as bfb");
	return WEFT_EUNSUPPORTED;
}
