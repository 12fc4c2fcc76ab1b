/* SPDX-License-Identifier: Apache-2.0 */
/* Execution plans: names and memory; see mscclpp.h. */
#include <stdlib.h>

#include "runtime/mscclpp/mscclpp.h"

static const char *const names[MSCCLPP_NAMES] = {
	[MSCCLPP_NOP] = "nop", [MSCCLPP_PUT] = "put", [MSCCLPP_PWS] = "pws",
	[MSCCLPP_SIGNAL] = "signal", [MSCCLPP_WAIT] = "wait",
	[MSCCLPP_FLUSH] = "flush", [MSCCLPP_COPY] = "copy",
	[MSCCLPP_REDUCE] = "re", [MSCCLPP_ACQUIRE] = "sem_acquire",
	[MSCCLPP_RELEASE] = "sem_release",
};

const char *mscclpp_op_name(enum mscclpp_name name)
{
	return names[name];
}

void mscclpp_fini(struct mscclpp *p)
{
	for (int r = 0; p->gpus && r < p->ranks; r++) {
		struct mscclpp_gpu *g = &p->gpus[r];

		for (size_t t = 0; t < g->tbs.n; t++) {
			vec_fini(&g->tbs.v[t].ops);
		}
		vec_fini(&g->tbs);
		vec_fini(&g->chans);
		vec_fini(&g->remotes);
		vec_fini(&g->sems);
	}
	free(p->gpus);
	p->gpus = NULL;
}

int mscclpp_export(const struct coll_sched *s, bool inplace, struct buf *out, struct err *err)
{
	struct mscclpp p;
	int rc = mscclpp_lower(s, inplace, &p, err);

	if (rc) {
		return rc;
	}
	mscclpp_write(&p, out);
	mscclpp_fini(&p);
	return 0;
}
