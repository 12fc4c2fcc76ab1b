/*
 * Status is asked for again and again, and seldom changes: the answer is kept packed,
 * and sent again while all that it was made from is as it was. That are the devices as
 * read, the store, and what parts tell by env_changed. While a change or a reading is
 * under way nothing is kept, as then much changes that is counted nowhere; nor is it on
 * a standby, whose store another process writes. All times in it are points in time,
 * so that none grows old; an answer is made again after KEPT_NS all the same.
 *
 * In a large fabric the answer itself takes the time that a change needs. One that took
 * longer than SLOW_NS is sent again while a change is under way, for as long as leaves
 * nine tenths of the loop to the change.
 */
#include <stdlib.h>
#include <string.h>

#include "controller/daemon/views/private.h"
#include "lib/base/clock.h"

#define KEPT_NS INT64_C(1000000000)
#define SLOW_NS INT64_C(10000000)
#define SHARE 10		/* one part of the loop's time in so many, at most */

/* Numbers that grow with what an answer is made from. */
struct status_basis {
	uint64_t changes, devices, written;
	bool was_read, applied;
	bool settled;		/* what is shown changes only where it is counted */
};

struct kept_status {
	bool is_known;
	struct status_basis basis;
	int64_t made_ns;	/* monotonic */
	int64_t took_ns;	/* to make */
	struct buf bytes;	/* the message, packed */
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
		.written = store_written(env->store), .was_read = env->was_read,
		.applied = env->applied, .settled = may_keep(views),
	};
}

static bool is_same(const struct status_basis *a, const struct status_basis *b)
{
	return a->changes == b->changes && a->devices == b->devices && a->written == b->written &&
	       a->was_read == b->was_read && a->applied == b->applied;
}

/* Whether what is kept is the answer now. */
static bool is_current(const struct views *views, const struct kept_status *k,
		       const struct status_basis *now)
{
	const int64_t age_ns = clk_now_ns() - k->made_ns;

	if (!k->is_known || age_ns >= KEPT_NS || now->settled != k->basis.settled) {
		return false;
	}
	if (now->settled) {
		return is_same(now, &k->basis);
	}
	return views->env->changing && !views->standby && k->took_ns > SLOW_NS &&
	       age_ns < (SHARE - 1) * k->took_ns;
}

/* Packs it into k, for this call and others. */
static int make(const struct views *views, struct kept_status *k, struct err *err)
{
	struct daemon_status *s;
	const ProtobufCMessage *m;
	char *to;
	const int64_t begun_ns = clk_now_ns();
	int r = daemon_status_new(views, &s, err);

	k->is_known = false;
	if (r) {
		return r;
	}
	m = &daemon_status_message(s)->base;
	buf_reset(&k->bytes);
	to = buf_extend(&k->bytes, protobuf_c_message_get_packed_size(m));
	if (to) {
		protobuf_c_message_pack(m, (uint8_t *)to);
	}
	daemon_status_free(s);
	if (!to) {
		return err_nomem(err);
	}
	/* Making it may have written, and counts then as made before that. */
	k->is_known = k->basis.settled == may_keep(views);
	k->made_ns = clk_now_ns();
	k->took_ns = k->made_ns - begun_ns;
	return 0;
}

void answer_kept_status(const struct views *views, struct rpc_call *call)
{
	const struct status_basis now = basis_of(views);
	struct kept_status *k = views->kept_status;
	struct err err = { 0 };
	int r = 0;

	if (!is_current(views, k, &now)) {
		k->basis = now;
		r = make(views, k, &err);
	}
	if (r == 0) {
		r = rpc_send_packed(call, k->bytes.data, k->bytes.len, &err);
	}
	call_end(call, r, &err);
}

int kept_status_new(struct kept_status **out, struct err *err)
{
	*out = calloc(1, sizeof(**out));
	return *out ? 0 : err_nomem(err);
}

void kept_status_free(struct kept_status *k)
{
	if (k) {
		buf_fini(&k->bytes);
		free(k);
	}
}
