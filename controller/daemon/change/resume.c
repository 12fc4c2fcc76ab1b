/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The open change that hangs on devices that are away. A change that loses a device in its middle
 * ends stuck, or is found interrupted if weftd ended too: its journal stays open, as what the
 * device did is not known. It is read again once all its devices answer, and then ended as the
 * journal says (apply_resume), if that is within the fabric's `changes: resume-within` of its end.
 *
 * All that decides is in the journal and in the last readings, so a weftd that was started again,
 * or took over, goes on with the same. Devices that are away are asked more and more seldom. A
 * change that cannot be ended though all its devices answer is an operator's: it is tried once.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "controller/daemon/change/private.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"

#define FIRST_MS 1000		/* until a device is asked again; twice as long each time */
#define MOST_MS 30000
#define ASKED_MAX 64		/* devices at a time */
#define NS_PER_MS 1000000

/* ---- what it hangs on ---------------------------------------------------- */

/* What a restart left of its time. As with what waits for its confirmation, no clock that was set
 * makes it longer. */
static void start_clock(struct resume *r, const struct store_change *ch, int64_t within_ns)
{
	int64_t left = ch->ended_ns + within_ns - clk_wall_ns();

	if (r->clock_of != ch->id) {
		r->clock_of = ch->id;
		r->due_ns = clk_now_ns() + (left < within_ns ? left : within_ns);
		r->delay_ms = FIRST_MS;
	}
}

/* The newest open change, if it hangs on a device, or could be ended now. */
static void find_wait(struct changes *c, struct change_wait *out)
{
	const struct store_journal *j = apply_journal(c->env->apply, 0);
	struct resume *r = &c->resume;
	const struct model_fabric *f = apply_fabric(c->env->apply);
	const char *away;
	int64_t within_ns, left;

	*out = (struct change_wait){ 0 };
	if (!j || !f || j->change.verdict == STORE_RUNNING) {
		return;
	}
	within_ns = f->changes.resume_within_ns;
	start_clock(r, &j->change, within_ns);
	left = r->due_ns - clk_now_ns();
	out->change = j->change.id;
	out->by_ns = left > 0 && within_ns > 0 ? clk_wall_ns() + left : 0;
	if (apply_hangs_on(c->env->apply, &away, 1)) {
		snprintf(out->device, sizeof(out->device), "%s", away);
		r->tried = 0;
	} else if (!out->by_ns || r->tried == out->change ||
		   (!j->change.undoing && r->wait.change != out->change)) {
		*out = (struct change_wait){ 0 };
	}
}

const struct change_wait *changes_wait(const struct changes *c)
{
	return &c->resume.wait;
}

const char *change_wait_text(const struct change_wait *w, char *text, size_t size)
{
	char until[32];

	if (w->by_ns) {
		snprintf(text, size, "change %" PRId64 " hangs on %s: once that answers, and no "
			 "move waits there, it is committed if all of it was done, else taken "
			 "back, until %s", w->change,
			 w->device[0] ? w->device : "devices that are back",
			 clk_iso(w->by_ns, until, sizeof(until)));
	} else {
		snprintf(text, size, "change %" PRId64 " hangs on %s, and is not ended by itself "
			 "any more (changes: resume-within): once that answers, \"weft apply\" or "
			 "\"weft rollback\" is", w->change, w->device);
	}
	return text;
}

/* ---- what is told -------------------------------------------------------- */

/* Who asks again for that change gets its end now, which the store has. */
static void forget_result(struct changes *c, int64_t change)
{
	for (int i = 0; i < MAX_FINISHED; i++) {
		if (c->finished[i].res.change == change && c->finished[i].request_id) {
			c->finished[i].request_id[0] = '\0';
		}
	}
}

static void tell_end(struct changes *c, int64_t change)
{
	struct daemon_event ev = { .kind = EVENT_KIND(CHANGE_ENDED), .change = change };
	struct store_change ch;

	if (store_change_get(c->env->store, change, &ch, NULL)) {
		return;
	}
	if (ch.verdict >= STORE_COMMITTED) {
		ev.verdict = msg_verdict(verdict_of(&ch));
		forget_result(c, change);
		log_info("weftd", "change %" PRId64 ": %s: %s", change,
			 store_verdict_name(ch.verdict), ch.summary);
		event_emit(c->env->events, &ev, "change %" PRId64 " of %s: %s: %s", change,
			   ch.order.who, store_verdict_name(ch.verdict), ch.summary);
	} else if (!ch.superseded_by) {
		ev.kind = EVENT_KIND(CHANGE_WAITS);
		event_emit(c->env->events, &ev, "change %" PRId64 " is not ended by itself, though "
			   "its devices answer: %s", change, ch.summary);
	}
	store_change_fini(&ch);
}

static void tell(struct changes *c, const struct change_wait *now)
{
	const struct change_wait *before = &c->resume.wait;
	const struct daemon_event ev = { .kind = EVENT_KIND(CHANGE_WAITS), .change = now->change,
					 .device = now->device };
	char text[320];

	if (before->change && before->change != now->change) {
		tell_end(c, before->change);
	}
	if (now->device[0] && (before->change != now->change ||
			       (before->by_ns && !now->by_ns))) {
		log_warn("weftd", "%s", change_wait_text(now, text, sizeof(text)));
		event_emit(c->env->events, &ev, "%s", text);
	}
}

/* ---- what is done -------------------------------------------------------- */

void changes_resume(struct changes *c)
{
	struct resume *r = &c->resume;
	struct daemon_env *env = c->env;
	struct change_wait now;

	if (env->draining || env->standby || env->read_only || env->reading || env->changing ||
	    apply_busy(env->apply)) {
		return;
	}
	find_wait(c, &now);
	tell(c, &now);
	r->wait = now;
	if (now.by_ns) {
		part_timer_start(r->timer, now.device[0] ? r->delay_ms : 0);
	}
}

void changes_resume_ended(struct changes *c, const struct apply_result *res)
{
	c->resume.tried = res->verdict == APPLY_STUCK ? res->change : c->resume.tried;
}

/* The slot began by reading and ending what is open; changes_resume, at its end, sees what came
 * of it. */
static void on_slot(struct plan_request *slot)
{
	plan_request_free(slot);
}

static void on_read(int rc, const struct err *err, void *arg)
{
	struct changes *c = arg;

	(void)err;
	if (rc != WEFT_ECANCELED) {
		c->resume.reading = false;
		changes_resume(c);
	}
}

/* Asks those that are away, or, once none is, has the change ended. */
void changes_resume_due(void *arg)
{
	struct changes *c = arg;
	struct resume *r = &c->resume;
	const char *names[ASKED_MAX];
	struct err err;
	int n;

	if (c->env->draining || r->reading || !r->wait.by_ns) {
		return;
	}
	n = apply_hangs_on(c->env->apply, names, ASKED_MAX);
	r->delay_ms = r->delay_ms < MOST_MS / 2 ? 2 * r->delay_ms : MOST_MS;
	if (plan_queue_busy(c->queue) || (n == 0 && drain_check_frozen(c->drain, &err))) {
		part_timer_start(r->timer, r->delay_ms);
	} else if (n > 0) {
		r->reading = true;
		apply_reading_for(c->env->apply, STORE_BY_POLL);
		apply_read_some(c->env->apply, names, n, on_read, c);
	} else {
		r->tried = r->wait.change;
		apply_resume(c->env->apply);
		plan_queue_slot(c->queue, on_slot, c);
	}
}
