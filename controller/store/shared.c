/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A store that several weftd share. One of them leads: it counts a beat, and
 * every transaction of its begins by looking whether its term is still the
 * present one. Taking over is one transaction that begins the next term, so
 * that of two who try one fails, and whoever led before writes nothing more.
 *
 * A lock that another has is waited for by the thread that serves all requests. A transaction
 * takes milliseconds, so a moment is enough; who has the lock for longer, as a backup may, is
 * not waited for again and again, and calls fail meanwhile.
 */
#include <stdio.h>

#include "controller/store/private.h"
#include "lib/base/clock.h"

#define NS_PER_MS 1000000
#define OPEN_WAIT_NS (2000 * (int64_t)NS_PER_MS)	/* at the start: no client is served */
#define WAIT_NS (30 * (int64_t)NS_PER_MS)
#define WAIT_AGAIN_NS (250 * (int64_t)NS_PER_MS)	/* from when it last began to wait */

int store_wait_for_others(void *store, int tries)
{
	struct store *s = store;
	const int64_t now_ns = clk_now_ns();

	if (tries == 0 && (!s->waited_ns || now_ns - s->waited_ns > WAIT_AGAIN_NS)) {
		s->waited_ns = now_ns;
	}
	if (now_ns - s->waited_ns > (s->serves ? WAIT_NS : OPEN_WAIT_NS)) {
		return 0;
	}
	sqlite3_sleep(1);
	return 1;
}

int store_lease(struct store *s, struct store_lease *out, struct err *err)
{
	sqlite3_stmt *st;
	int rc = db_prepare(s, err, &st, "SELECT fence, generation, holder, "
			    "beat, since_ns FROM state, lease", "");

	if (rc) {
		return rc;
	}
	rc = db_step(s, err, st);
	if (rc == 1) {
		out->term = (uint64_t)sqlite3_column_int64(st, 0);
		s->generation = sqlite3_column_int64(st, 1);
		db_text_into(st, 2, out->holder, sizeof(out->holder));
		out->beat = sqlite3_column_int64(st, 3);
		out->since_ns = sqlite3_column_int64(st, 4);
	}
	db_release(s, st);
	return rc == 1 ? 0 : rc ? rc : db_damaged(s, err, "it has no lease");
}

/* WEFT_ESTALE unless this process leads. */
static int check_term(struct store *s, struct err *err)
{
	struct store_lease now;
	int rc = store_lease(s, &now, err);

	if (rc) {
		return rc;
	}
	if (s->leads && now.term == s->fence) {
		return 0;
	}
	err_set(err, WEFT_ESTALE, "store %s: %s leads now (term %llu)",
		s->path, now.holder[0] ? now.holder : "another weftd",
		(unsigned long long)now.term);
	return WEFT_ESTALE;
}

const struct store_part store_lease_part = { .begin = check_term };

/* Begins the next term if nothing has moved since `seen`; the transaction makes
 * one of two who try fail. */
static int take(struct store *s, const struct store_lease *seen,
		const char *holder, struct err *err)
{
	struct store_lease now;
	int rc = store_lease(s, &now, err);

	if (rc == 0 && (now.term != seen->term || now.beat != seen->beat)) {
		return err_set(err, WEFT_ESTALE, "store %s: %s was faster", s->path, now.holder);
	}
	if (rc || (rc = db_run(s, err, "UPDATE state SET fence = fence + 1", ""))) {
		return rc;
	}
	return db_run(s, err, "UPDATE lease SET holder = ?, beat = beat + 1, since_ns = ?", "si",
		      holder, clk_wall_ns());
}

int store_lead(struct store *s, const struct store_lease *seen, const char *holder, struct err *err)
{
	int rc = db_run(s, err, "BEGIN IMMEDIATE", "");

	if (rc) {
		return rc;
	}
	rc = store_content_begin(s, err);
	rc = db_end(s, rc ? rc : take(s, seen, holder, err), err);
	if (rc == 0) {
		rc = store_refresh(s, err);
	}
	s->leads = rc == 0;
	return rc;
}

static int end_with(struct store *s, const char *sql, struct err *err)
{
	int rc = db_begin(s, err);

	if (rc) {
		return rc;
	}
	return db_end(s, db_run(s, err, sql, ""), err);
}

int store_beat(struct store *s, struct err *err)
{
	return end_with(s, "UPDATE lease SET beat = beat + 1", err);
}

int store_yield(struct store *s, struct err *err)
{
	int rc = end_with(s, "UPDATE lease SET holder = '', beat = beat + 1", err);

	s->leads = s->leads && rc != 0;
	return rc;
}

int store_new_term(struct store *s, struct err *err)
{
	int rc = s->newer ? store_refresh(s, err) : db_begin(s, err);

	if (rc || s->newer) {
		return rc;
	}
	rc = db_end(s, db_run(s, err, "UPDATE state SET fence = fence + 1", ""), err);
	return rc ? rc : store_refresh(s, err);
}
