/* SPDX-License-Identifier: Apache-2.0 */
/* When each send of a rank may leave. */
#include <stdlib.h>

#include "lib/base/map.h"
#include "lib/base/order.h"
#include "runtime/mpi/private.h"

struct mpi_leaving {
	int64_t leave;
	int32_t send;
};

ORDER_BY(by_leave, struct mpi_leaving, leave, send)

static void count_receives(const struct rank_program *p, int64_t *step_end)
{
	size_t i = 0;

	for (int step = 0; step < p->steps; step++) {
		while (i < p->receives.n && p->receives.v[i].step == step) {
			i++;
		}
		step_end[step] = (int64_t)i;
	}
}

/* Messages of a link keep their order: each leaves no earlier than the one before. */
static void set_leave(const struct rank_program *p, const int64_t *step_end,
		      struct mpi_leaving *leaving)
{
	struct u64map last = { 0 };	/* by arc */

	for (size_t i = 0; i < p->sends.n; i++) {
		const struct rank_message *m = &p->sends.v[i];
		uint64_t leave = (uint64_t)m->after, before = 0;

		if (m->pieces > 1 && m->step >= 2 &&
		    leave < (uint64_t)step_end[m->step - 2]) {
			leave = (uint64_t)step_end[m->step - 2];
		}
		if (u64map_get(&last, (uint64_t)m->arc, &before) && leave < before) {
			leave = before;
		}
		leaving[i] = (struct mpi_leaving){ (int64_t)leave, (int32_t)i };
		u64map_set(&last, (uint64_t)m->arc, leave);
	}
	u64map_fini(&last);
}

void mpi_order_make(const struct rank_program *p, struct mpi_order *o)
{
	struct mpi_leaving *leaving;

	*o = (struct mpi_order){ 0 };
	arrays_add(&o->all, o->step_end, p->steps);
	arrays_add(&o->all, o->send, p->sends.n);
	arrays_add(&o->all, o->leave, p->sends.n);
	arrays_add(&o->all, leaving, p->sends.n);
	count_receives(p, o->step_end);
	set_leave(p, o->step_end, leaving);
	qsort(leaving, p->sends.n, sizeof(*leaving), by_leave);
	for (size_t i = 0; i < p->sends.n; i++) {
		o->send[i] = leaving[i].send;
		o->leave[i] = leaving[i].leave;
	}
}

void mpi_order_fini(struct mpi_order *o)
{
	arrays_fini(&o->all);
}
