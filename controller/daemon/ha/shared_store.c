/* SPDX-License-Identifier: Apache-2.0 */
/* Taking turns by a store that all open, on one machine or on a disk that several see. */
#include <stdio.h>
#include <stdlib.h>

#include "controller/daemon/ha/ha.h"
#include "lib/base/alloc.h"
#include "lib/base/clock.h"

struct shared_store {
	struct election base;	/* first */
	struct store *store;
	char self[STORE_HOLDER_MAX];
};

static struct shared_store *shared_of(struct election *e)
{
	return (struct shared_store *)e;
}

static int look(struct election *e, struct err *err)
{
	return store_lease(shared_of(e)->store, &e->status.leader, err);
}

static int lead(struct election *e, const struct store_lease *seen, struct err *err)
{
	e->proven_ns = clk_boot_ns();
	return store_lead(shared_of(e)->store, seen, shared_of(e)->self, err);
}

static int beat(struct election *e, struct err *err)
{
	struct store *store = shared_of(e)->store;
	int64_t began = clk_boot_ns();
	int r = store_beat(store, err);

	e->proven_ns = r ? e->proven_ns : began;
	if (store_lease(store, &e->status.leader, NULL) ||
	    e->status.leader.term != store_fence(store)) {
		return r ? WEFT_ESTALE : err_set(err, WEFT_ESTALE, "another leads");
	}
	/* A lock that is in the way goes, or the lease runs out. */
	return r ? WEFT_EUNAVAIL : 0;
}

static int yield(struct election *e, struct err *err)
{
	return store_yield(shared_of(e)->store, err);
}

static void free_shared(struct election *e)
{
	free(shared_of(e));
}

struct election *shared_store_election(struct store *store, const char *self)
{
	struct shared_store *s = x_new(1, sizeof(*s));

	s->base = (struct election){
		.is_local = true, .look = look, .lead = lead, .beat = beat, .yield = yield,
		.free = free_shared,
	};
	s->store = store;
	snprintf(s->self, sizeof(s->self), "%s", self);
	return &s->base;
}
