/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process that plans. It gives up first whatever it does not need, then reads questions and
 * writes answers on its one descriptor: length, then bytes. It holds no state but the fabric
 * that it was told last, and planning is pure, so that its plans are those that weftd would make.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "controller/daemon/core/plan_process.h"
#include "controller/plan/plan_layout.h"
#include "lib/base/alloc.h"
#include "lib/base/clock.h"
#include "lib/output/layout_table.h"
#include "lib/base/vec.h"

#define EXIT_NO_MEMORY 71	/* alloc.h's own */
#define MIB ((rlim_t)1 << 20)

struct plan_child {
	struct model_fabric *fabric;	/* NULL: none was told */
};

struct plan_child *plan_child_new(void)
{
	return x_new(1, sizeof(struct plan_child));
}

void plan_child_free(struct plan_child *c)
{
	if (c) {
		model_free(c->fabric);
		free(c);
	}
}

/* ---- answers ----------------------------------------------------------------- */

int plan_parse(const struct model_config *config, struct model_fabric **out,
	       struct err_list *errs, struct err *err)
{
	int rc = model_parse_config(config, out, errs);
	int more = errs->n + errs->dropped - 1;

	if (rc && errs->n > 0) {
		*err = errs->v[0];
	} else if (rc) {
		err_set(err, rc, "%s: cannot be read", config->name);
	}
	if (rc && more > 0) {
		err_hint(err, "and %d more: \"weft check\" shows all", more);
	}
	return rc;
}

static int64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int read_config(struct plan_child *c, const void *question, size_t len,
		       struct plan_answer *a)
{
	struct model_config config;
	int64_t begun_ns = cpu_ns();
	int rc = layout_read(&plan_config_layout, &config, question, len, &a->err);

	if (rc == 0) {
		rc = plan_parse(&config, &c->fabric, &a->errs, &a->err);
		layout_fini(&plan_config_layout, &config);
	}
	a->took_ns = cpu_ns() - begun_ns;
	return rc;
}

/* Topologies are chosen again where that is worth it, against what the jobs have now. */
static int optimise(const struct plan_child *c, const struct plan_base *base, struct plan **out,
		    struct err *err)
{
	struct plan *now = NULL;
	int rc;

	if (plan_degraded(c->fabric, base, &now, NULL)) {
		now = NULL;
	}
	rc = plan_optimise(c->fabric, base, now, out, err);
	plan_free(now);
	return rc;
}

/* What the jobs have now, which is not what status knows. */
static void assess(const struct plan_child *c, const struct plan_base *base, struct plan *p)
{
	VEC(struct plan_before) v = { 0 };
	struct plan *now;

	if (plan_degraded(c->fabric, base, &now, NULL)) {
		return;
	}
	for (int i = 0; i < now->n_jobs; i++) {
		vec_push(&v, plan_before_of(now, i));
	}
	plan_gains(p, v.v, (int)v.n);
	plan_free(now);
	vec_fini(&v);
}

static int make(struct plan_child *c, struct plan_task *t, struct plan **out, struct err *err)
{
	struct plan_base *base = &t->snap.base;
	int rc;

	daemon_snapshot_settle(&t->snap);
	base->only = (const char *const *)t->only;
	base->step = t->step;
	base->restore = t->restores ? t->restore : NULL;
	base->n_restore = t->n_restore;
	base->is_rollback = t->ignore_floor;
	if (t->has_keep) {
		c->fabric->changes.keep_ppm = t->keep_ppm;
	}
	if (t->degraded) {
		return plan_degraded(c->fabric, base, out, err);
	}
	if (base->aim == PLAN_OPTIMISE) {
		return optimise(c, base, out, err);
	}
	rc = plan_make(c->fabric, base, out, err);
	if (rc == WEFT_EINFEASIBLE && t->ignore_floor) {
		base->no_floor = true;
		err_clear(err);
		rc = plan_make(c->fabric, base, out, err);
	}
	if (rc == 0 && t->assess) {
		assess(c, base, *out);
	}
	return rc;
}

static int make_plan(struct plan_child *c, const void *question, size_t len, struct plan_answer *a)
{
	struct plan_task t;
	struct plan *p = NULL;
	struct buf bytes = { 0 };
	int64_t begun_ns = clk_now_ns();
	int rc = layout_read(&plan_task_layout, &t, question, len, &a->err);

	if (rc == 0) {
		rc = make(c, &t, &p, &a->err);
		layout_fini(&plan_task_layout, &t);
	}
	if (rc == 0) {
		plan_to_bytes(p, &bytes);
		a->len = bytes.len;
		a->plan = buf_steal(&bytes);
	}
	plan_free(p);
	a->took_ns = clk_now_ns() - begun_ns;
	return rc;
}

void plan_child_answer(struct plan_child *c, const void *question, size_t len, struct buf *answer)
{
	struct plan_answer a = { .len = 0 };

	if (c->fabric) {
		make_plan(c, question, len, &a);
		model_free(c->fabric);
		c->fabric = NULL;
	} else {
		read_config(c, question, len, &a);
	}
	layout_write(&plan_answer_layout, &a, answer);
	layout_fini(&plan_answer_layout, &a);
}

/* ---- the process ------------------------------------------------------------- */

static void limit(int what, rlim_t soft, rlim_t hard)
{
	const struct rlimit l = { soft, hard };

	setrlimit(what, &l);
}

/* Whoever is stopped by the service manager stops weftd, which ends what it began. The kernel
 * takes this process first where memory ends, and all of it with weftd. What a service manager
 * does not allow is not needed. */
static void give_up(rlim_t memory, rlim_t seconds, int nice)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (fd >= 0) {
		(void)!write(fd, "1000", 4);
		close(fd);
	}
	close_range(3, ~0U, 0);
	signal(SIGTERM, SIG_IGN);
	signal(SIGINT, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	setpriority(PRIO_PROCESS, 0, nice);
	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	privileges_give_up();
	limit(RLIMIT_CORE, 0, 0);
	limit(RLIMIT_NOFILE, 0, 0);
	limit(RLIMIT_CPU, seconds, seconds + 1);
	/* Sanitizers reserve terabytes. */
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	if (memory > 0) {
		limit(RLIMIT_AS, memory, memory);
	}
#else
	(void)memory;
#endif
}

/* All n bytes; false at the end, and on an error. */
static bool read_all(char *to, size_t n)
{
	ssize_t got;

	for (; n > 0; to += got, n -= (size_t)got) {
		got = read(0, to, n);
		if (got < 0 && errno == EINTR) {
			got = 0;
		} else if (got <= 0) {
			return false;
		}
	}
	return true;
}

static bool write_all(const char *from, size_t n)
{
	ssize_t put;

	for (; n > 0; from += put, n -= (size_t)put) {
		put = write(0, from, n);
		if (put < 0 && errno == EINTR) {
			put = 0;
		} else if (put < 0) {
			return false;
		}
	}
	return true;
}

static void say_nothing(const char *line)
{
	(void)line;	/* weftd says it, to those whom it concerns */
}

int plan_process_main(int argc, char **argv)
{
	struct plan_child *c = plan_child_new();
	struct buf answer = { 0 };
	char *question;
	uint64_t n;

	if (argc != 5) {
		return EXIT_FAILURE;
	}
	alloc_on_end("weftd", EXIT_NO_MEMORY, say_nothing);
	give_up(strtoul(argv[2], NULL, 10) * MIB, strtoul(argv[3], NULL, 10), atoi(argv[4]));
	while (read_all((char *)&n, sizeof(n))) {
		question = x_alloc(n, 1);
		if (!read_all(question, n)) {
			break;
		}
		buf_reset(&answer);
		plan_child_answer(c, question, n, &answer);
		free(question);
		n = answer.len;
		if (!write_all((char *)&n, sizeof(n)) || !write_all(answer.data, answer.len)) {
			break;
		}
	}
	_exit(0);	/* at once: nothing is left to do but to free */
}
