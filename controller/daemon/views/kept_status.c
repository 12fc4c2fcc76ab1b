/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Status is asked for again and again, and seldom changes: the answer is kept packed,
 * and sent again while all that it was made from is as it was. That are the devices as
 * read, the store, and what parts tell by env_changed. While a change or a reading is
 * under way nothing is kept, as then much changes that is counted nowhere; nor is it on
 * a standby, whose store another process writes. All times in it are points in time,
 * so that none grows old; an answer is made again after KEPT_NS all the same.
 * What fills most of it in a large fabric, jobs and circuits, is kept packed on its own,
 * also meanwhile.
 */
#include <stdlib.h>
#include <string.h>

#include "controller/daemon/views/private.h"
#include "lib/base/alloc.h"
#include "lib/base/clock.h"

#define KEPT_NS INT64_C(1000000000)

/* Numbers that grow with what an answer is made from. */
struct status_basis {
	uint64_t changes, devices, written;
	int64_t published;
	bool was_read, applied;
	bool settled;		/* what is shown changes only where it is counted */
};

struct kept_answer {
	bool is_known;
	struct status_basis basis;
	int64_t made_ns;	/* monotonic */
	struct buf bytes;	/* the message, packed */
};

struct kept_status {
	struct kept_answer whole, brief;
	int n_devices;
	struct device_circuits *devices;	/* [n_devices] */
};

/* What is shown changes only where it is counted. */
static bool may_keep(const struct views *views)
{
	const struct daemon_env *env = views->env;

	return !views->standby && !env->changing && !env->reading && !env->draining &&
	       !store_trouble(env->store)[0];
}

static struct status_basis basis_of(const struct views *views)
{
	const struct daemon_env *env = views->env;

	return (struct status_basis){
		.changes = env->changes, .devices = apply_version(env->apply),
		.written = store_written(env->store),
		.published = store_published(env->store), .was_read = env->was_read,
		.applied = env->applied, .settled = may_keep(views),
	};
}

static bool is_same(const struct status_basis *a, const struct status_basis *b)
{
	return a->changes == b->changes && a->devices == b->devices && a->written == b->written &&
	       a->published == b->published && a->was_read == b->was_read &&
	       a->applied == b->applied;
}

/* Whether what is kept is the answer now. */
static bool is_current(const struct kept_answer *k, const struct status_basis *now)
{
	return k->is_known && clk_now_ns() - k->made_ns < KEPT_NS && now->settled &&
	       is_same(now, &k->basis);
}

/* Packs it into k, for this call and others. */
static int make(const struct views *views, struct kept_answer *k, bool brief, struct err *err)
{
	struct daemon_status *s;
	int r = daemon_status_new(views, &s, err);

	k->is_known = false;
	if (r) {
		return r;
	}
	buf_reset(&k->bytes);
	daemon_status_pack(s, brief, &k->bytes);
	daemon_status_free(s);
	/* Making it may have written, and counts then as made before that. */
	k->is_known = k->basis.settled && may_keep(views);
	k->made_ns = clk_now_ns();
	return 0;
}

void answer_kept_status(const struct views *views, struct rpc_call *call, bool brief)
{
	const struct status_basis now = basis_of(views);
	struct kept_answer *k = brief ? &views->kept_status->brief : &views->kept_status->whole;
	struct err err = { 0 };
	int r = 0;

	if (!is_current(k, &now)) {
		k->basis = now;
		r = make(views, k, brief, &err);
	}
	if (r == 0) {
		r = rpc_send_packed(call, k->bytes.data, k->bytes.len, &err);
	}
	call_end(call, r, &err);
}

static void free_devices(struct kept_status *k)
{
	for (int i = 0; i < k->n_devices; i++) {
		device_circuits_fini(&k->devices[i]);
	}
	free(k->devices);
	k->devices = NULL;
	k->n_devices = 0;
}

struct device_circuits *kept_circuits(struct kept_status *k, int n)
{
	if (n != k->n_devices) {
		free_devices(k);
		k->devices = x_new((size_t)n, sizeof(*k->devices));
		k->n_devices = n;
	}
	return k->devices;
}

struct kept_status *kept_status_new(void)
{
	return x_new(1, sizeof(struct kept_status));
}

void kept_status_free(struct kept_status *k)
{
	if (k) {
		buf_fini(&k->whole.bytes);
		buf_fini(&k->brief.bytes);
		free_devices(k);
		free(k);
	}
}
