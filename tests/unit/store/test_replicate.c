/* SPDX-License-Identifier: Apache-2.0 */
/* A store that others have too: whoever applies what it gives away has the same rows. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <sqlite3.h>

#include "common.h"
#include "fault_vfs.h"
#include "lib/base/buf.h"
#include "lib/base/number/rng.h"

#define MAX_SETS 512

/* A leader, one that follows, and the sets between them. */
struct pair {
	struct place a, b;
	struct store *leader, *other;
	int n;
	struct {
		void *data;
		size_t len;
	} sets[MAX_SETS];
	struct err err;
};

static void keep_set(void *arg, const struct store_entry *e)
{
	struct pair *p = arg;

	assert_int_equal(e->position, p->n + 1);
	assert_in_range(p->n, 0, MAX_SETS - 1);
	p->sets[p->n].data = malloc(e->len);
	memcpy(p->sets[p->n].data, e->changes, e->len);
	p->sets[p->n++].len = e->len;
}

static struct store *open_replica(const struct place *at)
{
	struct store *s = NULL;
	struct err err = { 0 };

	if (store_open_replica(at->path, &s, &err)) {
		fail_msg("%s", err.msg);
	}
	return s;
}

/* The leader begins the log, the other takes all that it has. */
static int setup(void **state)
{
	struct pair *p = calloc(1, sizeof(*p));
	struct buf whole = { 0 };

	fault_clear();
	place_make(&p->a);
	place_make(&p->b);
	p->leader = open_replica(&p->a);
	p->other = open_replica(&p->b);
	assert_int_equal(store_join(p->leader, "log", &p->err), 0);
	assert_int_equal(store_whole(p->leader, &whole, &p->err), 0);
	assert_int_equal(store_restore(p->other, "log", 0, whole.data, whole.len,
				       &p->err), 0);
	buf_fini(&whole);
	store_publish(p->leader, keep_set, p);
	*state = p;
	return 0;
}

static int teardown(void **state)
{
	struct pair *p = *state;

	fault_clear();
	store_free(p->leader);
	store_free(p->other);
	place_remove(&p->a);
	place_remove(&p->b);
	for (int i = 0; i < p->n; i++) {
		free(p->sets[i].data);
	}
	free(p);
	return 0;
}

static void follow(struct pair *p)
{
	char log[STORE_LOG_MAX];

	for (int64_t i = store_position(p->other, log); i < p->n; i++) {
		if (store_follow(p->other, i + 1, p->sets[i].data, p->sets[i].len, &p->err)) {
			fail_msg("set %d: %s", (int)i, p->err.msg);
		}
	}
}

/* All rows of a file that others have too, as one text. */
static char *dump(const struct place *at)
{
	static const char *const tables[] = {
		"state", "config", "program", "change", "change_job", "change_gain", "confirm",
		"journal_device", "journal_step", "intent_device", "intent_circuit", "drain",
		"repair", "job", "external_change", "circuit_loss", "timing",
	};
	struct buf text = { 0 };
	sqlite3 *db;
	sqlite3_stmt *st;
	char sql[96];

	assert_int_equal(sqlite3_open_v2(at->path, &db, SQLITE_OPEN_READONLY, NULL), 0);
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
		snprintf(sql, sizeof(sql), "SELECT * FROM %s ORDER BY 1, 2", tables[i]);
		assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &st, NULL), 0);
		while (sqlite3_step(st) == SQLITE_ROW) {
			buf_printf(&text, "%s", tables[i]);
			for (int c = 0; c < sqlite3_column_count(st); c++) {
				buf_printf(&text, "|%s", sqlite3_column_text(st, c));
			}
			buf_char(&text, '\n');
		}
		sqlite3_finalize(st);
	}
	sqlite3_close(db);
	return buf_steal(&text);
}

static void assert_same(struct pair *p)
{
	char *a = dump(&p->a), *b = dump(&p->b);

	assert_string_equal(a, b);
	free(a);
	free(b);
}

/* One of the things that weftd writes. */
static int write_something(struct store *s, struct rng *rng, int64_t *open, struct err *err)
{
	struct store_journal j;
	struct store_job job = { .who = (char *)"me", .name = (char *)"j", .request_id = (char *)"",
				 .spec = (char *)"00", .nodes = (char *)"",
				 .problem = (char *)"" };
	struct store_observed o = { .device = (char *)"sw", .epoch = (char *)"",
				    .identity = (char *)"" };
	int64_t id = *open;
	int r;

	switch (rng_below(rng, 6)) {
	case 0:
		return store_drain(s, rng_below(rng, 2) ? "h1" : "h2", "me", "why", err);
	case 1:
		r = store_undrain(s, "h1", err);
		return r == WEFT_ENOTFOUND ? 0 : r;
	case 2:
		return store_jobs_put(s, (struct store_job *[]){ &job }, 1, err);
	case 3:
		return store_observed_put(s, &o, 1, err);
	default:
		break;
	}
	if (*open) {
		r = rng_below(rng, 2) ? store_commit(s, id, "done", 2, err)
				      : store_end(s, id, STORE_ABORTED, "", err);
		*open = r ? *open : 0;
		return r;
	}
	j = journal_of((int)rng_below(rng, 5), -1, 7);
	r = begin(s, &j, rng_below(rng, 2) ? "aa" : "bb", err);
	*open = r ? 0 : j.change.id;
	store_journal_fini(&j);
	return r;
}

static void test_random(void **state)
{
	struct pair *p = *state;
	struct rng rng = { 0 };
	int64_t open = 0;

	rng_seed(&rng, 7);
	for (int i = 0; i < 300; i++) {
		assert_int_equal(write_something(p->leader, &rng, &open, &p->err), 0);
		if (i % 16 == 0) {
			follow(p);
			assert_same(p);
		}
	}
	follow(p);
	assert_same(p);
	assert_true(p->n > 100);
}

/* The one that follows takes over, and the leader follows it. */
static void test_takeover(void **state)
{
	struct pair *p = *state;
	struct rng rng = { 0 };
	struct store *was = p->leader;
	struct place place = p->a;
	int64_t open = 0;

	rng_seed(&rng, 3);
	for (int i = 0; i < 40; i++) {
		assert_int_equal(write_something(p->leader, &rng, &open, &p->err), 0);
	}
	follow(p);
	store_free(was);
	p->leader = p->other;
	p->other = open_replica(&p->a);
	p->a = p->b;
	p->b = place;
	assert_int_equal(store_new_term(p->leader, &p->err), WEFT_ESTALE);
	assert_non_null(strstr(p->err.msg, "another weftd leads"));
	store_publish(p->leader, keep_set, p);
	uint64_t fence = store_fence(p->leader);
	assert_int_equal(store_new_term(p->leader, &p->err), 0);
	assert_int_equal(store_fence(p->leader), fence + 1);
	for (int i = 0; i < 40; i++) {
		assert_int_equal(write_something(p->leader, &rng, &open, &p->err), 0);
	}
	follow(p);
	assert_same(p);
	assert_int_equal(store_fence(p->other), store_fence(p->leader));
}

static void test_wrong_sets(void **state)
{
	struct pair *p = *state;
	char *before, *after;

	assert_int_equal(store_drain(p->leader, "h1", "me", "why", &p->err), 0);
	assert_int_equal(store_undrain(p->leader, "h1", &p->err), 0);
	before = dump(&p->b);
	assert_int_equal(store_follow(p->other, 2, p->sets[1].data, p->sets[1].len, &p->err),
			 WEFT_EINVAL);
	assert_non_null(strstr(p->err.msg, "after 0 comes 2"));
	/* The second as the first: it has another one before it. */
	assert_int_equal(store_follow(p->other, 1, p->sets[1].data, p->sets[1].len, &p->err),
			 WEFT_ESTALE);
	assert_non_null(strstr(p->err.msg, "has other transactions than the others up to 0"));
	/* Cut short, and no set at all. */
	assert_int_equal(store_follow(p->other, 1, p->sets[0].data, p->sets[0].len / 2, &p->err),
			 WEFT_EINVAL);
	assert_non_null(strstr(p->err.msg, "is damaged"));
	assert_int_equal(store_follow(p->other, 1, "T nonsense", 10, &p->err), WEFT_EINVAL);
	after = dump(&p->b);
	assert_string_equal(after, before);
	free(before);
	free(after);
	follow(p);
	assert_same(p);
}

/* A store that went another way says so, and takes all of the leader's instead. */
static void test_differs(void **state)
{
	struct pair *p = *state;
	struct buf whole = { 0 };
	struct store *was = p->leader;
	int refused = 0;

	assert_int_equal(store_drain(p->leader, "h1", "me", "why", &p->err), 0);
	follow(p);
	assert_memory_equal(store_digest(p->other), store_digest(p->leader), STORE_DIGEST_LEN);
	/* Both lead for a moment: the other's transaction is not in the log. */
	store_publish(p->other, keep_set, p);
	assert_int_equal(store_drain(p->other, "h9", "me", "why", &p->err), 0);
	store_publish(p->other, NULL, NULL);
	free(p->sets[--p->n].data);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(store_drain(p->leader, i % 2 ? "h2" : "h3", "me", "why", &p->err),
				 0);
	}
	for (int i = 2; i < p->n; i++) {
		refused += store_follow(p->other, i + 1, p->sets[i].data, p->sets[i].len,
					&p->err) == WEFT_ESTALE;
	}
	assert_true(refused > 0);
	assert_int_equal(store_whole(was, &whole, &p->err), 0);
	assert_int_equal(store_restore(p->other, "log", p->n, whole.data, whole.len, &p->err), 0);
	buf_fini(&whole);
	assert_same(p);
	assert_memory_equal(store_digest(p->other), store_digest(p->leader), STORE_DIGEST_LEN);
	/* And follows. */
	assert_int_equal(store_drain(p->leader, "h4", "me", "why", &p->err), 0);
	follow(p);
	assert_same(p);
}

/* What the disk refuses is not given away, and the next one is as though it had not been. */
static void test_disk_refuses(void **state)
{
	struct pair *p = *state;
	char log[STORE_LOG_MAX];

	fault_arm(FAULT_IOERR, 1, true);
	assert_int_equal(store_drain(p->leader, "h1", "me", "why", &p->err), WEFT_EIO);
	fault_clear();
	assert_int_equal(p->n, 0);
	assert_int_equal(store_position(p->leader, log), 0);
	assert_int_equal(store_drain(p->leader, "h2", "me", "why", &p->err), 0);
	follow(p);
	assert_same(p);
}

static void count_calls(void *arg)
{
	++*(int *)arg;
}

/* What others are said to have is kept with the next transaction; who follows knows it. */
static void test_published(void **state)
{
	struct pair *p = *state;
	int calls = 0;

	store_on_safe(p->leader, count_calls, &calls);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(store_drain(p->leader, i == 0 ? "h1" : i == 1 ? "h2" : "h3", "me",
					     "why", &p->err), 0);
	}
	assert_int_equal(store_published(p->leader), 0);
	store_set_published(p->leader, 2);
	assert_int_equal(store_published(p->leader), 2);
	assert_int_equal(calls, 1);
	assert_int_equal(store_drain(p->leader, "h4", "me", "why", &p->err), 0);
	follow(p);
	assert_int_equal(store_published(p->other), 4);
	store_free(p->leader);
	p->leader = open_replica(&p->a);
	assert_int_equal(store_published(p->leader), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_random, setup, teardown),
		cmocka_unit_test_setup_teardown(test_takeover, setup, teardown),
		cmocka_unit_test_setup_teardown(test_wrong_sets, setup, teardown),
		cmocka_unit_test_setup_teardown(test_differs, setup, teardown),
		cmocka_unit_test_setup_teardown(test_disk_refuses, setup, teardown),
		cmocka_unit_test_setup_teardown(test_published, setup, teardown),
	};

	fault_install();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
