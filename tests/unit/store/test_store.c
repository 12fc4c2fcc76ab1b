/* SPDX-License-Identifier: Apache-2.0 */
/* The store when all goes well, and what it says to bad files. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include "common.h"
#include "controller/store/private.h"
#include "fault_vfs.h"
#include "lib/base/clock.h"
#include "lib/base/file.h"

static struct err err;

#define OK(call) must_be_ok((call), #call)

static void must_be_ok(int rc, const char *what)
{
	if (rc) {
		fail_msg("%s: %s", what, err.msg);
	}
}

static int setup(void **state)
{
	struct place *p = calloc(1, sizeof(*p));

	fault_clear();
	err_clear(&err);
	place_make(p);
	*state = p;
	return 0;
}

static int teardown(void **state)
{
	fault_clear();
	place_remove(*state);
	free(*state);
	return 0;
}

static void test_new_store(void **state)
{
	struct store *s = must_open(*state);
	struct store_config c;
	struct stat st;
	char uuid[37];

	assert_int_equal(store_generation(s), 1);
	assert_int_equal(store_fence(s), 1);
	strcpy(uuid, store_uuid(s));
	assert_int_equal(strlen(uuid), 36);
	assert_int_equal(store_config(s, &c, &err), WEFT_ENOTFOUND);
	assert_int_equal(stat(((struct place *)*state)->path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	store_free(s);

	s = must_open(*state);
	assert_string_equal(store_uuid(s), uuid);
	assert_int_equal(store_fence(s), 2);
	store_free(s);
	store_free(NULL);
}

/* Kept over a restart; the next commit forgets them. */
static void test_repairs(void **state)
{
	struct store *s = must_open(*state);
	struct store_journal j = journal_of(3, -1, 7);
	struct store_repair r = { .device = "sw", .xc = { 1, 3 }, .change = 1,
				  .why = "refused" }, *v;
	int n;

	OK(begin(s, &j, "aa", &err));
	OK(store_repairs_put(s, &r, 1, &err));
	OK(store_commit(s, 1, "done", 0, &err));
	store_free(s);
	s = must_open(*state);
	OK(store_repairs(s, &v, &n, &err));
	assert_int_equal(n, 1);
	assert_string_equal(v[0].device, "sw");
	assert_string_equal(v[0].why, "refused");
	assert_int_equal(v[0].xc.out, 3);
	assert_true(v[0].since_ns > 0);
	store_repairs_free(v, n);
	store_journal_fini(&j);
	j = journal_of(3, -1, 7);
	OK(begin(s, &j, "aa", &err));
	OK(store_commit(s, 2, "done", 0, &err));
	OK(store_repairs(s, &v, &n, &err));
	assert_int_equal(n, 0);
	store_repairs_free(v, n);
	store_journal_fini(&j);
	store_free(s);
}

static void assert_proof(struct store *s, struct optics_xc xc, int proof)
{
	struct store_light l;
	const struct optics_xc *at;

	OK(store_intent(s, "sw", &l, &err));
	at = bsearch(&xc, l.xcs, (size_t)l.n_xcs, sizeof(xc), optics_xc_cmp);
	assert_non_null(at);
	assert_int_equal(l.proofs[at - l.xcs], proof);
	store_light_fini(&l);
}

/* How far a circuit was proven is known as long as it is intended (checklist
 * 7); what was made and failed a layer stays on the list as long as well. */
static void test_proofs(void **state)
{
	struct store *s = must_open(*state);
	struct store_journal j = journal_of(3, -1, 7);
	struct store_repair r = { .device = "sw", .change = 1, .layer = 5,
				  .why = "not the neighbour" }, *repairs;
	struct store_change ch;
	int n, at;

	for (at = 0; j.works[0].steps[at].op != STORE_ADD; at++) {
	}
	r.xc = j.works[0].steps[at].xc;
	j.works[0].steps[at].proof = 5;
	j.change.expected_down_ns = 40;
	OK(begin(s, &j, "aa", &err));
	OK(store_repairs_put(s, &r, 1, &err));
	j.change.down_ns = 77;
	j.change.downtime_source = 3;
	OK(store_commit_proven(s, &j, "done", 3, &err));
	store_journal_fini(&j);
	store_free(s);
	s = must_open(*state);
	assert_proof(s, r.xc, 5);
	OK(store_change_get(s, 1, &ch, &err));
	assert_int_equal(ch.expected_down_ns, 40);
	assert_int_equal(ch.down_ns, 77);
	assert_int_equal(ch.downtime_source, 3);
	store_change_fini(&ch);

	j = journal_of(3, -1, 7);
	j.works[0].steps[at].op = STORE_KEEP;
	OK(begin(s, &j, "aa", &err));
	OK(store_commit_proven(s, &j, "done", 3, &err));
	assert_proof(s, r.xc, 5);
	OK(store_repairs(s, &repairs, &n, &err));
	assert_int_equal(n, 1);
	assert_int_equal(repairs[0].layer, 5);
	store_repairs_free(repairs, n);
	store_journal_fini(&j);
	store_free(s);
}

/* The last times of each are kept, by kind and name (checklist 26). */
static void test_timings(void **state)
{
	struct store *s = must_open(*state);
	struct store_timing a = { "h0.p0", 2, { 30, 10 } };
	struct store_timing b = { "ocs0", 1, { 5 } }, *v;
	int n;

	OK(store_timings_put(s, STORE_REACTIVATION, &a, 1, &err));
	OK(store_timings_put(s, STORE_SWITCHING, &b, 1, &err));
	a.n = 3;
	a.ns[2] = 20;
	OK(store_timings_put(s, STORE_REACTIVATION, &a, 1, &err));
	store_free(s);
	s = must_open(*state);
	OK(store_timings(s, STORE_REACTIVATION, &v, &n, &err));
	assert_int_equal(n, 1);
	assert_string_equal(v[0].name, "h0.p0");
	assert_int_equal(v[0].n, 3);
	assert_int_equal(v[0].ns[0], 30);
	assert_int_equal(v[0].ns[2], 20);
	store_timings_free(v, n);
	store_free(s);
}

static void test_commit_moves_intent(void **state)
{
	struct store *s = must_open(*state);
	struct store_journal j = journal_of(3, -1, 7);
	struct store_light l;
	struct store_config c;
	struct ring_programs want = program_of(4, 7);

	OK(begin(s, &j, "aa", &err));
	assert_int_equal(j.change.id, 1);
	OK(store_intent(s, "sw", &l, &err));
	assert_int_equal(l.n_xcs, 0);		/* only at commit */
	OK(store_commit(s, 1, "done", 3, &err));
	assert_int_equal(store_generation(s), 2);
	store_free(s);

	s = must_open(*state);
	OK(store_intent(s, "sw", &l, &err));
	assert_int_equal(l.n_xcs, 4);		/* three adds, one keep */
	assert_int_equal(l.xcs[0].in, 1);
	assert_int_equal(l.xcs[0].out, 3);
	assert_false(l.has_program);
	store_light_fini(&l);
	OK(store_intent(s, "ring", &l, &err));
	assert_true(l.has_program);
	assert_true(ring_programs_equal(&l.programs, &want));
	store_light_fini(&l);
	OK(store_config(s, &c, &err));
	assert_string_equal(c.config.text, "aa");
	assert_string_equal(c.config.name, "fabric.yaml");
	assert_int_equal(c.change, 1);
	store_config_fini(&c);
	ring_programs_fini(&want);
	store_journal_fini(&j);
	store_free(s);
}

static void test_journal_comes_back(void **state)
{
	struct store *s = must_open(*state);
	struct store_journal j = journal_of(2, 5, 6), *v;
	int n;

	OK(begin(s, &j, "aa", &err));
	j.works[0].steps[0].state = STORE_DONE;
	j.works[0].steps[1].state = STORE_DENIED;
	store_set_note(&j.works[0].steps[1], "-200 execution error");
	OK(store_mark(s, &j, 0, &err));
	OK(store_undoing(s, 1, &err));
	assert_int_equal(begin(s, &j, "aa", &err), WEFT_ESTALE);
	store_free(s);

	s = must_open(*state);
	OK(store_open_changes(s, &v, &n, &err));
	assert_int_equal(n, 1);
	assert_int_equal(v[0].change.verdict, STORE_RUNNING);
	assert_true(v[0].change.undoing);
	assert_string_equal(v[0].change.order.who, "alice");
	assert_int_equal(v[0].n_works, 2);
	assert_string_equal(v[0].works[0].device, "sw");
	assert_int_equal(v[0].works[0].n_steps, 4);
	assert_int_equal(v[0].works[0].steps[0].state, STORE_DONE);
	assert_int_equal(v[0].works[0].steps[1].state, STORE_DENIED);
	assert_string_equal(v[0].works[0].steps[1].note,
			    "-200 execution error");
	assert_int_equal(v[0].works[0].steps[3].op, STORE_KEEP);
	assert_true(v[0].works[1].is_ring);
	assert_true(ring_programs_equal(&v[0].works[1].old_programs,
					&j.works[1].old_programs));
	assert_true(ring_programs_equal(&v[0].works[1].new_programs,
					&j.works[1].new_programs));
	store_journals_free(v, n);
	store_journal_fini(&j);
	store_free(s);
}

/* Of an interrupted change every kind of step is read again; weftd could not
 * start on its store otherwise. */
static void test_every_operation_comes_back(void **state)
{
	static const enum store_op ops[] = { STORE_DEL, STORE_ADD, STORE_KEEP,
					     STORE_LEAVE };
	struct store *s = must_open(*state);
	struct store_journal j = journal_of(2, 5, 6), *v;
	int n;

	for (int i = 0; i < 4; i++) {
		j.works[0].steps[i].op = ops[i];
	}
	OK(begin(s, &j, "aa", &err));
	store_free(s);
	s = must_open(*state);
	OK(store_open_changes(s, &v, &n, &err));
	assert_int_equal(n, 1);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(v[0].works[0].steps[i].op, ops[i]);
	}
	assert_int_equal(v[0].works[1].steps[0].op, STORE_LOAD);
	store_journals_free(v, n);
	store_journal_fini(&j);
	store_free(s);
}

/* A change left half done stays explained until one is committed over it. */
static void test_open_changes_are_superseded(void **state)
{
	struct store *s = must_open(*state);
	struct store_journal a = journal_of(1, -1, 1), b = journal_of(2, 1, 2);
	struct store_journal *v;
	struct store_change c;
	struct ring_programs p;
	uint8_t digest[RING_DIGEST_LEN];
	int n;

	OK(begin(s, &a, "aa", &err));
	OK(store_end(s, 1, STORE_INTERRUPTED, "half", &err));
	assert_int_equal(store_generation(s), 2);
	OK(begin(s, &b, "bb", &err));
	OK(store_open_changes(s, &v, &n, &err));
	assert_int_equal(n, 2);
	assert_int_equal(v[0].change.id, 2);
	store_journals_free(v, n);
	ring_programs_digest(&a.works[1].new_programs, digest);
	OK(store_program(s, digest, &p, &err));
	ring_programs_fini(&p);
	OK(store_commit(s, 2, "all", 3, &err));
	OK(store_open_changes(s, &v, &n, &err));
	assert_int_equal(n, 0);
	store_journals_free(v, n);
	OK(store_change_get(s, 1, &c, &err));
	assert_int_equal(c.superseded_by, 2);
	store_change_fini(&c);
	assert_int_equal(store_end(s, 1, STORE_ABORTED, "", &err),
			 WEFT_ENOTFOUND);
	ring_programs_digest(&b.works[1].old_programs, digest);
	assert_int_equal(store_program(s, digest, &p, &err), WEFT_ENOTFOUND);
	store_journal_fini(&a);
	store_journal_fini(&b);
	store_free(s);
}

static void test_end_keeps_intent(void **state)
{
	static const enum store_verdict closed[] = {
		STORE_REFUSED, STORE_ROLLED_BACK, STORE_ABORTED,
	};
	struct store *s = must_open(*state);
	struct store_light l;

	for (int i = 0; i < 3; i++) {
		struct store_journal j = journal_of(1, -1, 1), *v;
		int n;

		OK(begin(s, &j, "aa", &err));
		OK(store_end(s, i + 1, closed[i], "no", &err));
		OK(store_open_changes(s, &v, &n, &err));
		assert_int_equal(n, 0);
		store_journals_free(v, n);
		store_journal_fini(&j);
	}
	assert_int_equal(store_generation(s), 1);
	OK(store_intent(s, "sw", &l, &err));
	assert_int_equal(l.n_xcs, 0);
	store_light_fini(&l);
	store_free(s);
}

static void test_history(void **state)
{
	struct store *s = must_open(*state);
	struct store_change *v;
	struct store_config c;
	int n;

	for (int i = 1; i <= 3; i++) {
		struct store_journal j = journal_of(i, -1, 1);
		char hash[16];

		snprintf(hash, sizeof(hash), "h%d", i);
		OK(begin(s, &j, hash, &err));
		OK(store_commit(s, i, "done", 3, &err));
		store_journal_fini(&j);
	}
	OK(store_history(s, 0, 2, &v, &n, &err));
	assert_int_equal(n, 2);
	assert_int_equal(v[0].id, 3);
	assert_int_equal(v[0].generation, 4);
	assert_int_equal(v[1].id, 2);
	assert_string_equal(v[1].summary, "done");
	assert_true(v[1].ended_ns >= v[1].started_ns);
	store_history_free(v, n);
	OK(store_history(s, 2, 10, &v, &n, &err));
	assert_int_equal(n, 1);
	store_history_free(v, n);
	OK(store_change_config(s, 1, &c, &err));
	assert_string_equal(c.config.text, "h1");
	store_config_fini(&c);
	assert_int_equal(store_change_config(s, 9, &c, &err), WEFT_ENOTFOUND);
	store_free(s);
}

static void test_devices_leave_intent(void **state)
{
	struct store *s = must_open(*state);
	struct store_journal a = journal_of(1, -1, 1), b = journal_of(1, -1, 1);
	char **names;
	int n;

	OK(begin(s, &a, "aa", &err));
	OK(store_commit(s, 1, "", 3, &err));
	OK(store_intent_devices(s, &names, &n, &err));
	assert_int_equal(n, 2);
	assert_string_equal(names[0], "ring");
	assert_string_equal(names[1], "sw");
	assert_null(names[2]);
	free(names[0]);
	free(names[1]);
	free(names);
	b.n_works = 1;
	OK(begin(s, &b, "bb", &err));
	OK(store_commit(s, 2, "", 3, &err));
	OK(store_intent_devices(s, &names, &n, &err));
	assert_int_equal(n, 1);
	free(names[0]);
	free(names);
	b.n_works = 2;
	store_journal_fini(&a);
	store_journal_fini(&b);
	store_free(s);
}

static void test_observed(void **state)
{
	struct store *s = must_open(*state);
	struct optics_xc xcs[] = { { 1, 2 }, { 3, 4 } };
	struct store_observed o = { .device = (char *)"sw", .read_at_ns = 99,
				    .epoch = (char *)"boot-1",
				    .identity = (char *)"weft,sim",
				    .n_xcs = 2, .xcs = xcs };
	struct store_observed got;

	assert_int_equal(store_observed_get(s, "sw", &got, &err),
			 WEFT_ENOTFOUND);
	OK(store_observed_put(s, &o, 1, &err));
	o.n_xcs = 1;
	o.has_program = true;
	memset(o.program_digest, 7, sizeof(o.program_digest));
	OK(store_observed_put(s, &o, 1, &err));
	OK(store_observed_get(s, "sw", &got, &err));
	assert_int_equal(got.read_at_ns, 99);
	assert_string_equal(got.epoch, "boot-1");
	assert_string_equal(got.identity, "weft,sim");
	assert_int_equal(got.n_xcs, 1);
	assert_int_equal(got.xcs[0].out, 2);
	assert_true(got.has_program);
	assert_int_equal(got.program_digest[31], 7);
	store_observed_fini(&got);
	store_free(s);
}

/* Rows are written only where a reading differs; whatever comes after what, the
 * last one is what is read. */
static void test_observed_again(void **state)
{
	static const struct optics_xc maps[][3] = {
		{ { 1, 2 }, { 3, 4 } }, { { 1, 2 }, { 3, 4 } },
		{ { 1, 2 }, { 3, 5 } }, { { 1, 2 } }, { { 0, 0 } },
		{ { 1, 2 }, { 3, 4 }, { 5, 6 } }, { { 2, 2 }, { 3, 4 } },
	};
	static const int n[] = { 2, 2, 2, 1, 0, 3, 2 };
	struct store *s = must_open(*state);
	struct store_observed o = { .device = (char *)"sw" }, got;

	for (int i = 0; i < 7; i++) {
		for (int k = 0; k < 7; k++) {
			o.xcs = (struct optics_xc *)maps[k == 0 ? i : k];
			o.n_xcs = n[k == 0 ? i : k];
			o.read_at_ns = 10 * i + k;
			OK(store_observed_put(s, &o, 1, &err));
			OK(store_observed_get(s, "sw", &got, &err));
			assert_int_equal(got.read_at_ns, 10 * i + k);
			assert_int_equal(got.n_xcs, o.n_xcs);
			for (int c = 0; c < o.n_xcs; c++) {
				assert_int_equal(got.xcs[c].in, o.xcs[c].in);
				assert_int_equal(got.xcs[c].out, o.xcs[c].out);
			}
			store_observed_fini(&got);
		}
	}
	store_free(s);
}

static void test_losses(void **state)
{
	const struct store_insertion_loss two[] = { { { 1, 2 }, 900 },
					  { { 3, 4 }, 1250 } };
	struct store *s = must_open(*state);
	struct store_insertion_loss *got = NULL;
	int n = 9;

	OK(store_insertion_losses(s, "sw", &got, &n, &err));
	assert_int_equal(n, 0);
	OK(store_insertion_losses_put(s, "sw", two, 2, &err));
	OK(store_insertion_losses_put(s, "other", two, 1, &err));
	OK(store_insertion_losses(s, "sw", &got, &n, &err));
	assert_int_equal(n, 2);
	assert_memory_equal(got, two, sizeof(two));
	free(got);
	OK(store_insertion_losses_put(s, "sw", two + 1, 1, &err));
	OK(store_insertion_losses(s, "sw", &got, &n, &err));
	assert_int_equal(n, 1);
	assert_int_equal(got[0].xc.in, 3);
	free(got);
	store_free(s);
}

static struct store_audit *read_audit(struct store *s, int64_t change,
				      int limit, int *n)
{
	const struct store_audit_query q = { .change = change, .limit = limit };
	struct store_audit *v = NULL;

	OK(store_audit_read(s, &q, &v, n, &err));
	return v;
}

static void test_audit_is_bounded(void **state)
{
	struct store *s = must_open(*state);
	struct store_audit *v;
	char longest[STORE_AUDIT_COMMAND_MAX + 100];
	int n;

	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	store_audit(s, 3, "sw", STORE_COMMAND, longest);
	store_audit(s, 3, "sw", STORE_REPLY, longest);
	store_audit(s, 4, "", STORE_EVENT, "other");
	v = read_audit(s, 3, 10, &n);
	assert_int_equal(n, 2);
	assert_int_equal(v[0].kind, STORE_COMMAND);
	assert_int_equal(strlen(v[0].text), STORE_AUDIT_COMMAND_MAX);
	assert_int_equal(strlen(v[1].text), STORE_AUDIT_TEXT_MAX);
	store_audit_free(v, n);
	/* More than wait at a time, and none is lost. */
	for (int i = 0; i < 9000; i++) {
		store_audit(s, 5, "sw", STORE_COMMAND, "flood");
	}
	v = read_audit(s, 5, 10000, &n);
	assert_int_equal(n, 9000);
	store_audit_free(v, n);
	store_audit(s, 6, "sw", STORE_EVENT, "last words");
	store_free(s);

	s = must_open(*state);
	v = read_audit(s, 6, 10, &n);
	assert_int_equal(n, 1);
	store_audit_free(v, n);
	store_free(s);
}

/* Long commands go when they are too much in all, the newest last. */
static void test_audit_bytes_are_bounded(void **state)
{
	const int lines = STORE_AUDIT_BYTES / STORE_AUDIT_COMMAND_MAX + 100;
	struct store *s = must_open(*state);
	static char longest[STORE_AUDIT_COMMAND_MAX + 1];
	struct store_audit *v;
	int n;

	memset(longest, 'x', sizeof(longest) - 1);
	for (int i = 0; i < lines; i++) {
		store_audit(s, 1, "sw", STORE_COMMAND, longest);
	}
	v = read_audit(s, 0, STORE_AUDIT_MAX, &n);
	assert_in_range(n, lines / 3, lines - 100);
	assert_int_equal(v[n - 1].id, lines);
	store_audit_free(v, n);
	store_free(s);
}

static void test_audit_is_asked(void **state)
{
	struct store *s = must_open(*state);
	struct store_audit_query q = { .limit = 10, .device = "b" };
	struct store_audit *v;
	int n;

	for (int i = 1; i <= 6; i++) {
		store_audit(s, i % 3, i % 2 ? "a" : "b", STORE_EVENT, "text");
	}
	OK(store_audit_read(s, &q, &v, &n, &err));
	assert_int_equal(n, 3);
	assert_int_equal(v[0].id, 2);
	assert_int_equal(v[2].id, 6);
	q.since_ns = v[0].at_ns;
	store_audit_free(v, n);
	q.before = 6;
	q.change = 1;
	OK(store_audit_read(s, &q, &v, &n, &err));
	assert_int_equal(n, 1);
	assert_int_equal(v[0].id, 4);
	store_audit_free(v, n);
	q = (struct store_audit_query){ .limit = 10, .max_bytes = 5 };
	OK(store_audit_read(s, &q, &v, &n, &err));
	assert_int_equal(n, 2);
	assert_int_equal(v[1].id, 6);
	store_audit_free(v, n);
	q = (struct store_audit_query){ .limit = 10, .since_ns = INT64_MAX };
	OK(store_audit_read(s, &q, &v, &n, &err));
	assert_int_equal(n, 0);
	store_audit_free(v, n);
	store_free(s);
}

static void test_external_changes_are_bounded(void **state)
{
	struct store *s = must_open(*state);
	struct store_external_change f = { .device = "a", .kind = STORE_EXTERNAL_GONE,
				   .xc = { 1, 2 }, .noticed_ns = 7,
				   .how = STORE_BY_EVENT, .who = "noc" };
	struct store_external_query q = { .device = "a", .open = true };
	struct store_external_change open = f, *v;
	int n;

	OK(store_external_changes_put(s, &open, 1, &err));
	assert_int_equal(open.id, 1);
	/* The same thing does not happen twice before it is over. */
	assert_true(store_external_changes_put(s, &f, 1, &err) < 0);
	for (int i = 0; i < STORE_EXTERNAL_MAX + 50; i++) {
		f = (struct store_external_change){ .device = "b", .xc = { i, 1 } };
		OK(store_external_changes_put(s, &f, 1, &err));
		f.outcome = STORE_EXTERNAL_RESTORED;
		f.resolved_ns = i + 1;
		f.change = i;
		OK(store_external_changes_put(s, &f, 1, &err));
	}
	OK(store_external_changes(s, &q, &v, &n, &err));
	assert_int_equal(n, 1);
	assert_int_equal(v->id, 1);
	assert_int_equal(v->how, STORE_BY_EVENT);
	assert_string_equal(v->who, "noc");
	free(v);
	q = (struct store_external_query){ .device = "b" };
	OK(store_external_changes(s, &q, &v, &n, &err));
	assert_in_range(n, STORE_EXTERNAL_MAX - 1, STORE_EXTERNAL_MAX);
	assert_int_equal(v[0].outcome, STORE_EXTERNAL_RESTORED);
	assert_int_equal(v[0].change, STORE_EXTERNAL_MAX + 49);
	q.before = v[0].id;
	free(v);
	q.limit = 3;
	OK(store_external_changes(s, &q, &v, &n, &err));
	assert_int_equal(n, 3);
	assert_true(v[0].id < q.before && v[0].id > v[1].id);
	free(v);
	store_free(s);
}

/* ---- files that are not right -------------------------------------------- */

static void sql(const struct place *p, const char *text)
{
	sqlite3 *db;

	assert_int_equal(sqlite3_open(p->path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, text, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
}

/* As if weft had done it: what the store counts is right afterwards. */
static void sql_counted(const struct place *p, const char *text)
{
	struct store s = { .path = (char *)p->path, .lock_fd = -1 };

	sql(p, text);
	assert_int_equal(sqlite3_open(p->path, &s.db), SQLITE_OK);
	OK(store_content_count(&s, &err));
	OK(store_content_commit(&s, &err));
	db_close(&s);
}

static void refused(const struct place *p, int code, const char *words)
{
	struct store *s = NULL;

	assert_int_equal(store_open(p->path, &s, &err), code);
	assert_null(s);
	if (!strstr(err.msg, words)) {
		fail_msg("\"%s\" is not in \"%s\"", words, err.msg);
	}
	assert_non_null(strstr(err.msg, "state"));
}

/* Figures and topologies of jobs stay with their change, and go with it. */
static void test_gains(void **state)
{
	static const struct store_gain two[] = {
		{ 0, "a", STORE_CHANGES, 1000, 5, 4, 4, 4, 77 },
		{ 0, "b", STORE_ENDS, 10, 0, 9, 0, 0, 0 },
	};
	struct store *s = must_open(*state);
	struct store_gain *v;
	char *text;
	int n;

	for (int k = 2; k > 0; k--) {
		struct store_journal j = journal_of(3, -1, 7);

		j.gains = calloc((size_t)k, sizeof(*j.gains));
		for (j.n_gains = 0; j.n_gains < k; j.n_gains++) {
			j.gains[j.n_gains] = two[j.n_gains];
			j.gains[j.n_gains].job = strdup(two[j.n_gains].job);
		}
		j.topologies = strdup(k == 2 ? "a\tK(2)\n" : "a\tRing(4)\n");
		OK(begin(s, &j, "aa", &err));
		OK(store_commit(s, j.change.id, "done", 0, &err));
		store_journal_fini(&j);
	}
	store_free(s);
	s = must_open(*state);
	OK(store_topologies(s, 0, &text, &err));
	assert_string_equal(text, "a\tRing(4)\n");
	free(text);
	OK(store_topologies(s, 1, &text, &err));
	assert_string_equal(text, "a\tK(2)\n");
	free(text);
	OK(store_gains(s, 1, 2, &v, &n, &err));
	assert_int_equal(n, 3);
	assert_int_equal(v[0].change, 2);
	assert_string_equal(v[2].job, "b");
	assert_int_equal(v[2].effect, STORE_ENDS);
	assert_int_equal(v[2].before_whole_ns, 9);
	assert_int_equal(v[1].down_ns, 77);
	assert_int_equal(v[1].before_ns, 5);
	store_gains_free(v, n);
	store_free(s);
	sql_counted(*state, "PRAGMA foreign_keys = ON; DELETE FROM change WHERE id = 1");
	s = must_open(*state);
	OK(store_gains(s, 1, 2, &v, &n, &err));
	assert_int_equal(n, 1);
	store_gains_free(v, n);
	store_free(s);
}

/* Two that share a store: whoever has led before writes nothing more. */
static void test_lease(void **state)
{
	const struct place *p = *state;
	struct store *a, *b, *c = NULL;
	struct store_lease seen, late;
	struct store_journal j = journal_of(1, -1, 7);
	uint64_t term;

	OK(store_open_shared(p->path, &a, &err));
	OK(store_open_shared(p->path, &b, &err));
	/* Without a leader no replica writes, and none has it for itself. */
	assert_int_equal(store_drain(a, "h0", "me", "", &err), WEFT_ESTALE);
	assert_int_equal(store_open(p->path, &c, &err), WEFT_ESTALE);
	OK(store_lease(a, &seen, &err));
	OK(store_lease(b, &late, &err));
	assert_string_equal(seen.holder, "");
	OK(store_lead(a, &seen, "a", &err));
	term = store_fence(a);
	/* Of two who saw the same only one leads. */
	assert_int_equal(store_lead(b, &late, "b", &err), WEFT_ESTALE);
	assert_non_null(strstr(err.msg, "a was faster"));
	OK(begin(a, &j, "aa", &err));
	assert_int_equal(store_drain(b, "h0", "me", "", &err), WEFT_ESTALE);
	assert_non_null(strstr(err.msg, "a leads now"));
	/* A beat in between is seen as well. */
	OK(store_lease(b, &late, &err));
	OK(store_beat(a, &err));
	assert_int_equal(store_lead(b, &late, "b", &err), WEFT_ESTALE);
	OK(store_lease(b, &late, &err));
	OK(store_lead(b, &late, "b", &err));
	assert_true(store_fence(b) > term);
	/* Every writing call of the old one fails, and changes nothing. */
	assert_int_equal(store_beat(a, &err), WEFT_ESTALE);
	assert_non_null(strstr(err.msg, "b leads now"));
	assert_int_equal(store_mark(a, &j, 0, &err), WEFT_ESTALE);
	assert_int_equal(store_commit(a, 1, "", 3, &err), WEFT_ESTALE);
	assert_int_equal(store_end(a, 1, STORE_ABORTED, "", &err),
			 WEFT_ESTALE);
	assert_int_equal(store_yield(a, &err), WEFT_ESTALE);
	store_free(a);
	/* The new one goes on with what the old one has begun. */
	OK(store_commit(b, 1, "done", 3, &err));
	OK(store_yield(b, &err));
	assert_int_equal(store_beat(b, &err), WEFT_ESTALE);
	OK(store_lease(b, &seen, &err));
	assert_string_equal(seen.holder, "");
	store_free(b);
	c = must_open(p);
	assert_int_equal(store_generation(c), 2);
	store_free(c);
	store_journal_fini(&j);
}

/* What a change leaves alone, dead as it is, stays in the intent. */
static void test_left_alone(void **state)
{
	struct store *s = must_open(*state);
	struct store_light l[2];

	for (int k = 0; k < 2; k++) {
		struct store_journal j = journal_of(1, -1, 7);
		struct store_step *last = &j.works[0].steps[j.works[0].n_steps - 1];

		assert_int_equal(last->op, STORE_KEEP);
		last->op = k ? STORE_LEAVE : STORE_KEEP;
		OK(begin(s, &j, k ? "bb" : "aa", &err));
		OK(store_commit(s, k + 1, "done", 3, &err));
		OK(store_intent(s, j.works[0].device, &l[k], &err));
		store_journal_fini(&j);
	}
	assert_int_equal(l[0].n_xcs, l[1].n_xcs);
	store_light_fini(&l[0]);
	store_light_fini(&l[1]);
	store_free(s);
}

/* A list that weft did not write is damage, and no circuit of it is taken. */
static void test_damaged_lists(void **state)
{
	static const char *const lists[] = {
		"", "[", "[[1,2,3]", "[[1,2]]", "[[1,2,3],]", "[[1,2,3][4,5,6]]", "[[1,-2,3]]",
		"[[3,4,0],[1,2,0]]", "[[1,2,3]] ", "[[1,2,3],[1,2,3]]", "[[1111111111,2,3]]",
	};
	struct store *s = must_open(*state);
	struct store_journal j = journal_of(1, -1, 7), *v;
	struct store_light l;
	char text[160];
	int n;

	OK(begin(s, &j, "aa", &err));
	OK(store_commit(s, 1, "done", 3, &err));
	OK(begin(s, &j, "aa", &err));
	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		snprintf(text, sizeof(text), "UPDATE intent_device SET circuits = '%s'", lists[i]);
		sql(*state, text);
		assert_int_equal(store_intent(s, "sw", &l, &err), WEFT_EINVAL);
	}
	sql(*state, "UPDATE journal_device SET states = states || 'p'");
	assert_int_equal(store_open_changes(s, &v, &n, &err), WEFT_EINVAL);
	sql(*state, "UPDATE journal_device SET states = 'x' || substr(states, 3)");
	assert_int_equal(store_open_changes(s, &v, &n, &err), WEFT_EINVAL);
	store_journal_fini(&j);
	store_free(s);
}

static void commit_waiting(struct store *s, int64_t id, const char *request,
			   int64_t within_ns)
{
	struct store_journal j = journal_of((int)id, -1, 7);

	j.change.order.request_id = strdup(request);
	j.change.order.confirm_within_ns = within_ns;
	OK(begin(s, &j, "aa", &err));
	assert_int_equal(j.change.id, id);
	OK(store_commit(s, id, "done", 3, &err));
	store_journal_fini(&j);
}

static void test_confirm(void **state)
{
	struct store *s = must_open(*state);
	int64_t before_ns = clk_wall_ns();
	struct store_confirm c;

	/* The first one has no other to go back to. */
	commit_waiting(s, 1, "", 5000);
	OK(store_confirming(s, &c, &err));
	assert_int_equal(c.change, 1);
	assert_int_equal(c.back_to, 0);
	commit_waiting(s, 2, "", 3600000000000);
	store_free(s);

	s = must_open(*state);
	OK(store_confirming(s, &c, &err));
	assert_int_equal(c.change, 2);
	assert_int_equal(c.back_to, 1);
	assert_true(c.by_ns >= before_ns + 3600000000000);
	assert_true(c.within_ns == 3600000000000);
	OK(store_confirm(s, &err));
	OK(store_confirming(s, &c, &err));
	assert_int_equal(c.change, 0);
	/* The next commit, going back too, ends the waiting. */
	commit_waiting(s, 3, "", 1);
	OK(store_confirming(s, &c, &err));
	assert_int_equal(c.back_to, 2);
	commit_waiting(s, 4, "", 0);
	OK(store_confirming(s, &c, &err));
	assert_int_equal(c.change, 0);
	store_free(s);
}

static void test_request_ids(void **state)
{
	struct store *s = must_open(*state);
	struct store_change ch;

	commit_waiting(s, 1, "one", 0);
	commit_waiting(s, 2, "", 0);
	commit_waiting(s, 3, "one", 0);
	store_free(s);
	s = must_open(*state);
	OK(store_change_by_request(s, "one", &ch, &err));
	assert_int_equal(ch.id, 3);
	assert_int_equal(ch.proof, 3);
	assert_string_equal(ch.order.request_id, "one");
	store_change_fini(&ch);
	assert_int_equal(store_change_by_request(s, "two", &ch, &err),
			 WEFT_ENOTFOUND);
	assert_int_equal(store_change_by_request(s, "", &ch, &err),
			 WEFT_ENOTFOUND);
	store_free(s);
}

static struct store_job job_named(const char *name)
{
	return (struct store_job){
		.name = strdup(name), .who = strdup("alice"),
		.request_id = strdup("r"), .spec = strdup("x: 1"),
		.nodes = strdup(""), .problem = strdup(""),
	};
}

static int put_job(struct store *s, struct store_job *j)
{
	return store_jobs_put(s, &j, 1, &err);
}

static void test_jobs(void **state)
{
	struct store *s = must_open(*state);
	struct store_job a = job_named("a"), b = job_named("b"), *v;
	int n;

	a.priority = -3;
	a.preemptible = true;
	OK(store_jobs_put(s, (struct store_job *[]){ &a, &b }, 2, &err));
	assert_true(a.id && b.id > a.id);
	free(a.nodes);
	a.nodes = strdup("h0 h1");
	a.state = STORE_JOB_RUNNING;
	a.started_ns = 77;
	OK(put_job(s, &a));
	store_free(s);

	s = must_open(*state);
	OK(store_jobs(s, &v, &n, &err));
	assert_int_equal(n, 2);
	assert_string_equal(v[0].name, "a");
	assert_string_equal(v[0].nodes, "h0 h1");
	assert_string_equal(v[0].spec, "x: 1");
	assert_int_equal(v[0].state, STORE_JOB_RUNNING);
	assert_int_equal(v[0].priority, -3);
	assert_true(v[0].preemptible && v[0].started_ns == 77);
	assert_int_equal(v[1].state, STORE_JOB_QUEUED);
	store_jobs_free(v, n);
	store_job_fini(&a);
	store_job_fini(&b);
	store_free(s);
}

/* What a change empties is drained with its commit, also when a restart settles it. */
static void test_emptied(void **state)
{
	static const char *const parts[] = { "h1", "h2", "" };
	struct store *s = must_open(*state);
	struct store_drain *v;
	int n;

	for (int i = 0; i < 3; i++) {
		struct store_journal j = journal_of(2, -1, 7);

		j.empties = strdup(parts[i]);
		OK(begin(s, &j, "aa", &err));
		OK(i == 0 ? store_end(s, j.change.id, STORE_ROLLED_BACK, "", &err) :
			    store_commit(s, j.change.id, "done", 0, &err));
		store_journal_fini(&j);
	}
	OK(store_drains(s, &v, &n, &err));
	assert_int_equal(n, 1);
	assert_string_equal(v[0].what, "h2");
	assert_string_equal(v[0].reason, "why");
	store_drains_free(v, n);
	store_free(s);
}

/* Those that are over are forgotten, those that live never. */
static void test_holds(void **state)
{
	struct store *s = must_open(*state);
	struct store_drain *v;
	int n;

	OK(store_drain(s, "ocs0.3", "root", "dirty", &err));
	OK(store_drain(s, "ocs0.3", "me", "again", &err));
	OK(store_drain(s, "", "root", "", &err));
	store_free(s);
	s = must_open(*state);
	OK(store_drains(s, &v, &n, &err));
	assert_int_equal(n, 2);
	assert_string_equal(v[0].what, "");
	assert_string_equal(v[1].what, "ocs0.3");
	assert_string_equal(v[1].who, "root");
	assert_string_equal(v[1].reason, "dirty");
	assert_true(v[1].since_ns > 0);
	store_drains_free(v, n);
	OK(store_undrain(s, "", &err));
	assert_int_equal(store_undrain(s, "", &err), WEFT_ENOTFOUND);
	OK(store_drains(s, &v, &n, &err));
	assert_int_equal(n, 1);
	store_drains_free(v, n);
	store_free(s);
}

static void test_jobs_are_bounded(void **state)
{
	struct store *s = must_open(*state);
	struct store_job first = job_named("first"), last = job_named("last");
	struct store_job *v;
	int n;

	OK(put_job(s, &first));
	store_free(s);
	sql_counted(*state, "WITH RECURSIVE c (i) AS (SELECT 1 UNION ALL "
		    "SELECT i + 1 FROM c WHERE i < 1005) "
		    "INSERT INTO job (name, who, request, spec, state) "
		    "SELECT 'j', '', '', '', "
		    "iif(i % 2, 'ended', 'failed') FROM c");
	s = must_open(*state);
	OK(put_job(s, &last));
	OK(store_jobs(s, &v, &n, &err));
	assert_int_equal(n, STORE_JOBS_MAX + 2);
	assert_string_equal(v[0].name, "first");
	assert_int_equal(v[1].id, first.id + 6);
	assert_string_equal(v[n - 1].name, "last");
	store_jobs_free(v, n);
	store_job_fini(&first);
	store_job_fini(&last);
	store_free(s);
}

static void test_newer_format(void **state)
{
	store_free(must_open(*state));
	sql(*state, "PRAGMA user_version = 99; ALTER TABLE job ADD COLUMN hue TEXT");
	{
		struct store *s = must_open(*state), *shared = NULL;
		uint64_t fence = store_fence(s);
		struct store_observed seen = { .device = (char *)"a", .epoch = (char *)"",
					       .identity = (char *)"" };

		assert_int_equal(store_newer(s), 99);
		assert_int_equal(store_drain(s, "h", "w", "r", &err), WEFT_EUNAVAIL);
		assert_non_null(strstr(err.msg, "format 99"));
		/* What is read is not kept, and that is no error. */
		OK(store_observed_put(s, &seen, 1, &err));
		assert_int_equal(store_observed_get(s, "a", &seen, &err), WEFT_ENOTFOUND);
		store_audit(s, 0, "a", STORE_COMMAND, "x");
		store_free(s);
		s = must_open(*state);
		assert_int_equal(store_fence(s), fence);
		store_free(s);
		assert_int_equal(store_open_shared(((struct place *)*state)->path, &shared, &err),
				 WEFT_EUNSUPPORTED);
	}
	sql(*state, "ALTER TABLE job RENAME COLUMN nodes TO hosts");
	refused(*state, WEFT_EUNSUPPORTED, "format 99");
}

/* And is as it was. */
static void test_older_format(void **state)
{
	store_free(must_open(*state));
	sql(*state, "PRAGMA user_version = 24");
	refused(*state, WEFT_EUNSUPPORTED, "format 24, this weft reads 25");
	assert_non_null(strstr(err.hint, "weft store export"));
	sql(*state, "PRAGMA user_version = 25");
	store_free(must_open(*state));
}

static void test_not_a_store(void **state)
{
	sql(*state, "CREATE TABLE t (a)");
	refused(*state, WEFT_EINVAL, "not a store");
}

static void test_not_a_database(void **state)
{
	struct place *p = *state;
	FILE *f = fopen(p->path, "w");

	fputs("this is some text that is long enough to be looked at", f);
	for (int i = 0; i < 100; i++) {
		fputs("and more and more of it\n", f);
	}
	fclose(f);
	refused(p, WEFT_EINVAL, "not a database");
}

static void assert_whole(struct store *s)
{
	struct store_light l;

	OK(store_intent(s, "sw", &l, &err));
	assert_int_equal(l.n_xcs, 201);
	store_light_fini(&l);
	OK(store_intent(s, "ring", &l, &err));
	assert_true(l.has_program);
	store_light_fini(&l);
}

/* Every page overwritten once: the store is refused, or still whole. */
static void test_damaged_pages(void **state)
{
	struct place *p = *state;
	struct store *s = must_open(p);
	struct store_journal j = journal_of(200, -1, 7);
	char page[4096], junk[4096];
	int refusals = 0, n_pages, fd;
	struct stat st;

	OK(begin(s, &j, "aa", &err));
	OK(store_commit(s, 1, "", 3, &err));
	store_journal_fini(&j);
	store_free(s);
	assert_int_equal(stat(p->path, &st), 0);
	n_pages = (int)(st.st_size / 4096);
	memset(junk, 0xa5, sizeof(junk));
	for (int i = 0; i < n_pages; i++) {
		fd = open(p->path, O_RDWR);
		assert_int_equal(pread(fd, page, 4096, i * 4096), 4096);
		assert_int_equal(pwrite(fd, junk, 4096, i * 4096), 4096);
		close(fd);
		s = NULL;
		if (store_open(p->path, &s, &err)) {
			assert_int_equal(err.code, WEFT_EINVAL);
			refusals++;
		} else {
			assert_whole(s);
		}
		store_free(s);
		fd = open(p->path, O_RDWR);
		assert_int_equal(pwrite(fd, page, 4096, i * 4096), 4096);
		close(fd);
	}
	/* All but a page or two that are free. */
	assert_true(n_pages >= 10 && refusals >= n_pages - 2);
	store_free(must_open(p));
}

static void assert_same_text(const struct place *p, const struct buf *before, int64_t flip)
{
	static const struct store_export all = { .history = true, .audit = true };
	struct buf b = { 0 };

	OK(store_export(p->path, &all, &b, &err));
	if (b.len != before->len || memcmp(b.data, before->data, b.len) != 0) {
		fail_msg("bit %lld: ready with other content", (long long)flip);
	}
	buf_fini(&b);
}

/* A bit of a byte that is in use: what no page uses is zeros, numbers begin with some. */
static int64_t bit_in_use(const char *bytes, size_t len, uint64_t *chance)
{
	int64_t bit;

	do {
		*chance = *chance * UINT64_C(6364136223846793005) + 1442695040888963407u;
		bit = (int64_t)(*chance >> 20) % ((int64_t)len * 8);
	} while (!bytes[bit / 8] && !bytes[((size_t)bit / 8 + 1) % len]);
	return bit;
}

/* One bit flipped that is in use, anywhere in the file: the store is refused, or holds what it
 * did. With WEFT_FLIPS=10000 in the environment so many bits. */
static void test_flipped_bits(void **state)
{
	static const struct store_export all = { .history = true, .audit = true };
	const int flips = getenv("WEFT_FLIPS") ? atoi(getenv("WEFT_FLIPS")) : 300;
	struct place *p = *state;
	struct store *s = must_open(p);
	struct store_journal j = journal_of(200, -1, 7);
	struct buf before = { 0 };
	uint64_t chance = 42;
	char *bytes;
	size_t len;
	int refusals = 0;

	OK(begin(s, &j, "rate: 100Gbps", &err));
	store_audit(s, 1, "sw", STORE_COMMAND, "set 1,2");
	OK(store_commit(s, 1, "", 3, &err));
	OK(store_drain(s, "h2", "uid 1", "why", &err));
	store_journal_fini(&j);
	store_free(s);
	OK(store_export(p->path, &all, &before, &err));
	OK(file_read(p->path, 1 << 24, &bytes, &len, &err));
	for (int i = 0; i < flips; i++) {
		const int64_t bit = bit_in_use(bytes, len, &chance);

		bytes[bit / 8] = (char)(bytes[bit / 8] ^ 1 << bit % 8);
		OK(file_write_atomic(p->path, bytes, len, FILE_PRIVATE, &err));
		bytes[bit / 8] = (char)(bytes[bit / 8] ^ 1 << bit % 8);
		if (store_open_replica(p->path, &s, &err)) {
			refusals++;
			continue;
		}
		if (!store_newer(s)) {
			assert_same_text(p, &before, bit);
		}
		store_free(s);
	}
	assert_true(refusals > 0);
	printf("# %d of %d flips refused, none is other content\n", refusals, flips);
	free(bytes);
	buf_fini(&before);
}

static void test_damaged_program(void **state)
{
	struct place *p = *state;
	struct store *s = must_open(p);
	struct store_journal j = journal_of(1, -1, 7);
	struct store_light l;

	OK(begin(s, &j, "aa", &err));
	OK(store_commit(s, 1, "", 3, &err));
	store_journal_fini(&j);
	store_free(s);
	sql_counted(p, "UPDATE program SET data = zeroblob(length(data))");
	s = must_open(p);
	assert_int_equal(store_intent(s, "ring", &l, &err), WEFT_EINVAL);
	assert_non_null(strstr(err.msg, "damaged"));
	store_free(s);
}

static void test_damaged_config(void **state)
{
	struct place *p = *state;
	struct store *s = must_open(p);
	struct store_journal j = journal_of(1, -1, 7);
	struct store_config c;

	OK(begin(s, &j, "rate: 100Gbps", &err));
	OK(store_commit(s, 1, "", 3, &err));
	store_journal_fini(&j);
	OK(store_config(s, &c, &err));
	assert_string_equal(c.config.text, "rate: 100Gbps");
	store_config_fini(&c);
	store_free(s);
	sql(p, "UPDATE config SET text = CAST('rate: 900Gbps' AS BLOB)");
	refused(p, WEFT_EINVAL, "does not hold what was written");
	sql_counted(p, "");
	s = must_open(p);
	assert_int_equal(store_config(s, &c, &err), WEFT_EINVAL);
	assert_non_null(strstr(err.msg, "a configuration is not what its hash says"));
	store_free(s);
}

static void test_read_only(void **state)
{
	store_free(must_open(*state));
	fault.read_only = true;
	refused(*state, WEFT_EDENIED, "read-only");
}

static void test_no_folder(void **state)
{
	struct store *s = NULL;

	(void)state;
	assert_int_equal(store_open("/nonexistent/weft/state", &s, &err),
			 WEFT_EIO);
	assert_non_null(strstr(err.msg, "/nonexistent/weft/state"));
}

static void test_one_writer(void **state)
{
	struct store *s = must_open(*state), *second = NULL;

	assert_int_equal(store_open(((struct place *)*state)->path, &second,
				    &err), WEFT_ESTALE);
	store_free(s);
	store_free(must_open(*state));
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_new_store), T(test_older_format),
		T(test_commit_moves_intent),
		T(test_journal_comes_back),
		T(test_every_operation_comes_back),
		T(test_open_changes_are_superseded), T(test_end_keeps_intent),
		T(test_history), T(test_devices_leave_intent),
		T(test_observed), T(test_observed_again), T(test_losses),
		T(test_audit_is_bounded), T(test_audit_bytes_are_bounded),
		T(test_audit_is_asked), T(test_external_changes_are_bounded),
		T(test_jobs), T(test_holds), T(test_emptied), T(test_repairs), T(test_proofs),
		T(test_gains),
		T(test_timings), T(test_jobs_are_bounded),
		T(test_left_alone), T(test_lease), T(test_confirm),
		T(test_request_ids),
		T(test_damaged_lists),
		T(test_newer_format), T(test_not_a_store),
		T(test_not_a_database), T(test_damaged_pages),
		T(test_flipped_bits),
		T(test_damaged_program), T(test_damaged_config), T(test_read_only),
		T(test_no_folder),
		T(test_one_writer),
	};

	fault_install();
	return cmocka_run_group_tests_name("store/store", tests, NULL, NULL);
}
