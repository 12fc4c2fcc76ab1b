/*
 * Leading others. The leader proves that it lives every quarter of the lease, and
 * believes to lead for two thirds of it after the beginning of the last beat that
 * was taken; another takes over no earlier than a whole lease after that. Both measure
 * intervals by their own clocks only.
 *
 * A leader that was stopped, or cut off from the others, ends on the spot when
 * it finds out: at its next beat, and before its next command to a device. It
 * leaves the circuits as they are, and whoever leads then reads the devices before
 * anything else.
 */
#include <stdlib.h>
#include <unistd.h>

#include "controller/daemon/ha/ha.h"
#include "lib/base/alloc.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"

#define NS_PER_MS 1000000
#define EXIT_DEPOSED 75

/* Lives until the loop has closed its timer. */
struct lease {
	uv_timer_t timer;
	struct election *election;
	int64_t lease_ns;
	int64_t until_ns;	/* clk_boot_ns: it leads for sure */
	bool silent;		/* the last beat failed, as the log says */
};

/* Nothing is cleaned up: the circuits and the store are another leader's. */
void lease_end_process(const char *why)
{
	log_error("weftd", "leads no more, and ends: %s", why);
	_exit(EXIT_DEPOSED);
}

static void before_command(void *arg)
{
	const struct lease *l = arg;

	if (clk_boot_ns() > l->until_ns) {
		lease_end_process("its lease ran out before a command to a device");
	}
}

static int beat(struct lease *l, struct err *err)
{
	int64_t proven_ns;
	int r = l->election->beat(l->election, &proven_ns, err);

	if (proven_ns) {
		l->until_ns = proven_ns + l->lease_ns / 3 * 2;
	}
	return r;
}

static void on_beat(uv_timer_t *timer)
{
	struct lease *l = timer->data;
	struct err err = { 0 };
	int r = beat(l, &err);

	if (r == WEFT_ESTALE) {
		lease_end_process(err.msg);
	}
	if (r && !l->silent) {
		log_warn("weftd", "%s", err.msg);
	}
	l->silent = r != 0;
	if (clk_boot_ns() > l->until_ns) {
		lease_end_process("its lease ran out");
	}
}

static void on_closed(uv_handle_t *handle)
{
	free(handle->data);
}

int lease_new(struct daemon_env *env, struct election *election, int64_t lease_ms,
	      struct lease **out, struct err *err)
{
	struct lease *l = x_new(1, sizeof(*l));
	int r;

	l->election = election;
	l->lease_ns = lease_ms * NS_PER_MS;
	r = beat(l, err);
	if (r == WEFT_ESTALE || !l->until_ns) {
		free(l);
		return r;
	}
	uv_timer_init(env->loop, &l->timer);
	l->timer.data = l;
	uv_timer_start(&l->timer, on_beat, (uint64_t)lease_ms / 4, (uint64_t)lease_ms / 4);
	apply_before_command(env->apply, before_command, l);
	*out = l;
	return 0;
}

void lease_free(struct lease *l)
{
	struct err err = { 0 };

	if (!l) {
		return;
	}
	if (l->election->yield(l->election, &err)) {
		log_warn("weftd", "%s", err.msg);
	}
	uv_close((uv_handle_t *)&l->timer, on_closed);
}
