/* SPDX-License-Identifier: Apache-2.0 */
/* The reader's lexical rules, and files broken in every way. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "runtime/msccl/msccl.h"
#include "tests/unit/msccl/msccl_read.h"
#include "tests/unit/msccl/kernel_sim.h"
#include "tests/unit/msccl/lowered.h"

static struct msccl lowered(enum coll_kind kind, const char *expr)
{
	struct coll_sched *s = bfb(kind, expr);
	struct err err = { 0 };
	struct msccl p;

	must(msccl_lower(s, MSCCL_AZURE, &p, &err), &err);
	coll_free(s);
	return p;
}

static char *text_of(const struct msccl *p)
{
	struct buf b = { 0 };

	msccl_write(p, &b);
	return buf_steal(&b);
}

/* ---- words ---- */

#define HEAD "proto=\"Simple\" nchannels=\"1\" nchunksperloop=\"2\" " \
	"ngpus=\"2\" coll=\"allgather\" inplace=\"0\" outofplace=\"1\" " \
	"minBytes=\"0\" maxBytes=\"0\""
#define STEP "s=\"0\" type=\"cpy\" srcbuf=\"i\" srcoff=\"0\" dstbuf=\"o\" " \
	"dstoff=\"0\" cnt=\"1\" depid=\"-1\" deps=\"-1\" hasdep=\"0\""
#define GPU "<gpu id=\"0\" i_chunks=\"1\" o_chunks=\"2\" s_chunks=\"0\">" \
	"<tb id=\"0\" send=\"-1\" recv=\"-1\" chan=\"0\">"
#define TAIL "</tb></gpu></algo>"

static int read_text(const char *text, enum msccl_dialect dialect,
		     struct err *err)
{
	struct msccl p;
	int rc = msccl_read(text, strlen(text), dialect, &p, err);

	msccl_fini(&p);
	return rc;
}

static void test_accepted(void **state)
{
	static const char *const good[] = {
		"<algo " HEAD "></algo>",
		"<algo " HEAD "/>",
		"<!-- first --><algo " HEAD ">\r\n  <!-- a\nb --></algo> \n",
		"<algo  " HEAD ">" GPU "<step " STEP "/>" TAIL,
		"<algo unknown=\"7\" " HEAD ">" GPU "<step " STEP "/>" TAIL,
		"<algo " HEAD ">" GPU "<step " STEP "/>" TAIL "<!-- end -->",
	};
	struct err err = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		must(read_text(good[i], MSCCL_AZURE, &err), &err);
	}
}

static void test_refused(void **state)
{
	static const struct {
		const char *text, *what;
	} bad[] = {
		{ "", "expected an element" },
		{ "<?xml version=\"1.0\"?><algo " HEAD "/>", "name" },
		{ "<!DOCTYPE algo><algo " HEAD "/>", "name" },
		{ "\t<algo " HEAD "/>", "expected an element" },
		{ "<algo " HEAD ">\t</algo>", "expected an element" },
		{ "<algo " HEAD ">text</algo>", "expected an element" },
		{ "<algo " HEAD "></algo>x", "after </algo>" },
		{ "<algo " HEAD "></gpu>", "expected </algo>" },
		{ "<algo " HEAD ">", "expected an element" },
		{ "<algo\n" HEAD "/>", "one blank" },
		{ "<algo proto='Simple'/>", "=\"" },
		{ "<algo proto =\"Simple\"/>", "=\"" },
		{ "<algo proto=\"Sim\nple\"/>", "one line" },
		{ "<algo proto=\"Simple\"nchannels=\"1\"/>", "one blank" },
		{ "<algo proto=\"Simple\"/>", "lacks ngpus" },
		{ "<algo  a=\"\" b=\"\" c=\"\" d=\"\" e=\"\" f=\"\" g=\"\" " HEAD
		  "/>", "at most 16" },
		{ "<gpu " HEAD "/>", "expected <algo>" },
		{ "<algo " HEAD "><!-- no end </algo>", "comment" },
		{ "<algo " HEAD ">" GPU "<step " STEP "></step>" TAIL,
		  "must end in />" },
		{ "<algo " HEAD ">" GPU "<step " STEP "/><step " STEP "/>"
		  TAIL, "s: expected a number in 1..1" },
		{ "<algo " HEAD "><tb id=\"0\"/></algo>", "expected <gpu>" },
		{ "<algo " HEAD "><gpu id=\"2\"/></algo>", "id: expected" },
		{ "<algo " HEAD "><gpu id=\"0x\"/></algo>", "id: expected" },
		{ "<algo " HEAD ">" GPU "</tb></gpu>" GPU TAIL, "gpu 0 twice" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct err err = { 0 };

		assert_int_equal(read_text(bad[i].text, MSCCL_AZURE, &err),
				 WEFT_EINVAL);
		if (!strstr(err.msg, bad[i].what) || err.line < 1) {
			fail_msg("%s: \"%s\" is not in: %s", bad[i].text,
				 bad[i].what, err.msg);
		}
	}
}

/* Values of 256 bytes, which the runtimes write past a buffer. */
static void test_long_value(void **state)
{
	char text[1024];

	(void)state;
	for (int n = 255; n <= 256; n++) {
		struct err err = { 0 };

		snprintf(text, sizeof(text), "<algo name=\"%0*d\" " HEAD "/>",
			 n, 0);
		assert_int_equal(read_text(text, MSCCL_AZURE, &err),
				 n == 255 ? 0 : WEFT_EINVAL);
	}
}

static void test_spelling(void **state)
{
	struct coll_sched *s = bfb(COLL_REDUCE_SCATTER, "Ring(4)");
	struct err err = { 0 };
	struct buf b = { 0 };
	char *at;

	(void)state;
	must(msccl_export(s, MSCCL_AZURE, &b, &err), &err);
	at = strstr(b.data, "coll=\"reducescatter\"");
	assert_non_null(at);
	must(read_text(b.data, MSCCL_RCCL, &err), &err);
	at[strlen("coll=\"reducescatte")] = 'R';
	assert_int_equal(read_text(b.data, MSCCL_AZURE, &err), WEFT_EINVAL);
	assert_non_null(strstr(err.msg, "reducescatteR"));
	buf_fini(&b);
	coll_free(s);
}

/* ---- breaking programs ---- */

/* The check refuses it; the words tell why. */
static void caught(const struct msccl *p, const char *what)
{
	struct err err = { 0 };

	assert_int_not_equal(msccl_check(p, MSCCL_AZURE, &err), 0);
	if (!strstr(err.msg, what)) {
		fail_msg("\"%s\" is not in: %s", what, err.msg);
	}
}

static const char *const exprs[] = {
	"Ring(6)", "Hypercube(3)", "K(3,3)", "GenKautz(2,7)",
};

/* Calls f on every step of some programs; how many of the mutants that f
 * made (it returns true) were caught. */
static void each_step(enum coll_kind kind,
		      bool (*f)(struct msccl *p, struct msccl_tb *tb,
				size_t k), int *made, int *missed)
{
	for (size_t e = 0; e < sizeof(exprs) / sizeof(exprs[0]); e++) {
		struct msccl p = lowered(kind, exprs[e]);

		for (int r = 0; r < p.ranks; r++) {
			for (size_t t = 0; t < p.gpus[r].tbs.n; t++) {
				struct msccl_tb *tb = &p.gpus[r].tbs.v[t];

				for (size_t k = 0; k < tb->steps.n; k++) {
					struct msccl_step was[2] = {
						tb->steps.v[k] };
					bool two = k + 1 < tb->steps.n;
					struct err err;

					if (two) {
						was[1] = tb->steps.v[k + 1];
					}
					if (f(&p, tb, k)) {
						++*made;
						*missed += !msccl_check(
							&p, MSCCL_AZURE, &err);
					}
					tb->steps.v[k] = was[0];
					if (two) {
						tb->steps.v[k + 1] = was[1];
					}
				}
			}
		}
		msccl_fini(&p);
	}
}

static bool drop_dep(struct msccl *p, struct msccl_tb *tb, size_t k)
{
	struct msccl_step *s = &tb->steps.v[k];

	(void)p;
	if (s->dep_tb < 0) {
		return false;
	}
	s->dep_tb = s->dep_step = -1;
	return true;
}

static bool swap_steps(struct msccl *p, struct msccl_tb *tb, size_t k)
{
	struct msccl_step *s = &tb->steps.v[k], x = s[0];

	(void)p;
	/* Local copies may stand in any order. */
	if (k + 1 == tb->steps.n || s->type == MSCCL_COPY) {
		return false;
	}
	s[0] = s[1];
	s[1] = x;
	return true;
}

static bool shift_source(struct msccl *p, struct msccl_tb *tb, size_t k)
{
	(void)p;
	tb->steps.v[k].src ^= 1;
	return msccl_reads(tb->steps.v[k].type);
}

static bool shift_target(struct msccl *p, struct msccl_tb *tb, size_t k)
{
	(void)p;
	tb->steps.v[k].dst ^= 1;
	return msccl_writes(tb->steps.v[k].type);
}

static bool no_reduce(struct msccl *p, struct msccl_tb *tb, size_t k)
{
	struct msccl_step *s = &tb->steps.v[k];

	(void)p;
	if (s->type != MSCCL_RRC && s->type != MSCCL_RRCS) {
		return false;
	}
	s->type = s->type == MSCCL_RRC ? MSCCL_RECV : MSCCL_RCS;
	return true;
}

static bool no_flag(struct msccl *p, struct msccl_tb *tb, size_t k)
{
	bool had = tb->steps.v[k].has_dep;

	(void)p;
	tb->steps.v[k].has_dep = false;
	return had;
}

static bool count_up(struct msccl *p, struct msccl_tb *tb, size_t k)
{
	(void)p;
	tb->steps.v[k].cnt++;
	return tb->steps.v[k].type != MSCCL_NOP;
}

static const enum coll_kind kinds[] = {
	COLL_ALLGATHER, COLL_REDUCE_SCATTER, COLL_ALLREDUCE,
};

/* Every single mutant of these kinds changes order or result. */
static void test_mutants(void **state)
{
	static bool (*const f[])(struct msccl *, struct msccl_tb *, size_t) = {
		shift_source, shift_target, no_reduce, no_flag, count_up,
	};

	(void)state;
	for (size_t i = 0; i < sizeof(f) / sizeof(f[0]); i++) {
		int made = 0, missed = 0;

		for (int k = 0; k < 3; k++) {
			each_step(kinds[k], f[i], &made, &missed);
		}
		print_message("# mutation %zu: %d made, %d missed\n", i, made,
			      missed);
		assert_true(made > 0);
		assert_int_equal(missed, 0);
	}
}

/* A dropped dependency may be implied by way of other ranks, and two sends
 * may be swapped without harm when the receives match by chance: what passes
 * the check must then run right in every order. */
static int passed_wrong;

static bool runs_or_caught(struct msccl *p)
{
	struct err err;
	char *text;
	bool ok = true;

	if (msccl_check(p, MSCCL_AZURE, &err) == 0) {
		text = text_of(p);
		ok = kern_text(text, false);
		passed_wrong += !ok;
		free(text);
	}
	return ok;
}

static bool drop_and_run(struct msccl *p, struct msccl_tb *tb, size_t k)
{
	return drop_dep(p, tb, k) && (runs_or_caught(p), true);
}

static bool swap_and_run(struct msccl *p, struct msccl_tb *tb, size_t k)
{
	return swap_steps(p, tb, k) && (runs_or_caught(p), true);
}

static void test_order(void **state)
{
	static bool (*const f[])(struct msccl *, struct msccl_tb *, size_t) = {
		drop_and_run, swap_and_run,
	};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		int made = 0, missed = 0;

		passed_wrong = 0;
		for (int k = 0; k < 3; k++) {
			each_step(kinds[k], f[i], &made, &missed);
		}
		print_message("# mutation of order %zu: %d made, %d harmless, "
			      "%d passed and wrong\n", i, made, missed,
			      passed_wrong);
		assert_true(missed < made);
		assert_int_equal(passed_wrong, 0);
	}
}

static void test_channels(void **state)
{
	struct msccl p = lowered(COLL_ALLGATHER, "K(4)");
	struct msccl_tb *tb;

	(void)state;
	p.channels = 2;
	for (size_t t = 0; t < p.gpus[1].tbs.n; t++) {
		tb = &p.gpus[1].tbs.v[t];
		if (tb->send >= 0) {
			tb->chan = 1;
			caught(&p, "no matching");
			tb->chan = 2;
			caught(&p, "channel that does not exist");
			tb->chan = 0;
		}
	}
	tb = &p.gpus[0].tbs.v[0];
	for (size_t t = 1; t < p.gpus[0].tbs.n; t++) {
		if (p.gpus[0].tbs.v[t].send >= 0 && tb->send >= 0) {
			tb->send = p.gpus[0].tbs.v[t].send;
			caught(&p, "second threadblock");
			break;
		}
	}
	msccl_fini(&p);
}

/* Two ranks that both send `sends` times before they receive. */
static struct msccl crossing(int sends)
{
	struct msccl p = { .kind = COLL_ALLTOALL, .ranks = 2,
			   .loop = 2 * sends, .channels = 1,
			   .outofplace = true };

	p.gpus = calloc(2, sizeof(*p.gpus));
	for (int r = 0; r < 2; r++) {
		struct msccl_gpu *g = &p.gpus[r];
		struct msccl_tb tb = { .send = 1 - r, .recv = 1 - r };
		struct msccl_step s = { .dst_buf = LOWER_OUT, .cnt = 1,
					.dep_tb = -1, .dep_step = -1 };

		g->chunks[0] = g->chunks[1] = 2 * sends;
		for (int k = 0; k < 3 * sends; k++) {
			int i = k % sends;

			s.type = (uint8_t)(k < sends ? MSCCL_SEND
					   : k < 2 * sends ? MSCCL_RECV
							   : MSCCL_COPY);
			s.src = (k < sends ? 1 - r : r) * sends + i;
			s.dst = (k < 2 * sends ? 1 - r : r) * sends + i;
			vec_push(&tb.steps, s);
		}
		vec_push(&g->tbs, tb);
	}
	return p;
}

static void test_full_queue(void **state)
{
	struct err err = { 0 };
	struct msccl p = crossing(msccl_slots(MSCCL_SIMPLE));
	char *text;

	(void)state;
	must(msccl_check(&p, MSCCL_AZURE, &err), &err);
	msccl_fini(&p);
	p = crossing(msccl_slots(MSCCL_SIMPLE) + 1);
	caught(&p, "deadlock");
	text = text_of(&p);
	assert_false(kern_text(text, false));
	free(text);
	msccl_fini(&p);
}

static void test_rules(void **state)
{
	struct msccl p = crossing(2);
	struct msccl_step *s = p.gpus[0].tbs.v[0].steps.v;

	(void)state;
	s[0].cnt = 72;
	caught(&p, "1..71");
	s[0].cnt = 1;
	s[1].dep_tb = 3;
	s[1].dep_step = 0;
	caught(&p, "does not exist");
	s[1].dep_tb = 128;
	caught(&p, "above 127");
	s[1].dep_tb = 0;
	caught(&p, "its own threadblock");
	s[1].dep_tb = s[1].dep_step = -1;
	s[0].src = 4;
	caught(&p, "outside the buffer");
	s[0].src = 2;
	p.inplace = true;
	caught(&p, "in place");
	p.inplace = false;
	p.gpus[0].tbs.v[0].send = 0;
	caught(&p, "its own peer");
	msccl_fini(&p);
}

/* ---- what does not fit ---- */

static void does_not_fit(struct coll_sched *s, enum msccl_dialect dialect,
			 const char *limit)
{
	struct err err = { 0 };
	struct buf b = { 0 };

	assert_int_equal(msccl_export(s, dialect, &b, &err), WEFT_ELIMIT);
	if (!strstr(err.msg, limit) || !strstr(err.hint, "fits: ")) {
		fail_msg("%s (%s)", err.msg, err.hint);
	}
	buf_fini(&b);
	coll_free(s);
}

static void test_limits(void **state)
{
	struct msccl p = lowered(COLL_ALLGATHER, "K(33)");
	struct coll_sched *s;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(msccl_check(&p, MSCCL_RCCL, &err), WEFT_ELIMIT);
	assert_non_null(strstr(err.msg, "threadblocks: 65, RCCL takes 64"));
	msccl_fini(&p);
	s = empty(COLL_ALLGATHER, "UniRing(1,1025)", 1);
	finish(s);
	does_not_fit(s, MSCCL_AZURE, "1025 ranks");
	does_not_fit(bfb(COLL_ALLGATHER, "K(66)"), MSCCL_RCCL,
		     "threadblocks: 66, RCCL takes 64");
	does_not_fit(bfb(COLL_ALLREDUCE, "K(131)"), MSCCL_AZURE,
		     "others wait for 130 threadblocks");
	p = crossing(1);
	for (int k = 0; k < 70 * 60; k++) {
		struct msccl_gpu *g = &p.gpus[1];
		struct msccl_tb tb = { .send = -1, .recv = -1 };

		if (k % 60 == 0) {
			vec_push(&g->tbs, tb);
		}
		vec_push(&g->tbs.v[g->tbs.n - 1].steps, (struct msccl_step){ .cnt = 0 });
	}
	caught(&p, "at least 4277 elements");
	msccl_fini(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_accepted),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_long_value),
		cmocka_unit_test(test_spelling),
		cmocka_unit_test(test_mutants),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_channels),
		cmocka_unit_test(test_full_queue),
		cmocka_unit_test(test_rules),
		cmocka_unit_test(test_limits),
	};

	return cmocka_run_group_tests_name("msccl/msccl", tests, NULL,
					   NULL);
}
