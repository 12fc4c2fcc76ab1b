/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/sim/shrink.h"

#include <string.h>

#define RUNS_MAX 80
#define SHORTEST_LOAD SIM_S

struct shrinking {
	struct run *run;
	char failure[64];
	int runs;
};

/* Another rule may be broken first, or a rule that is known: that is not the same. */
static bool fails(struct shrinking *s, const struct run *r)
{
	struct run_child c;
	const char *failure;
	bool same = false;

	if (s->runs >= RUNS_MAX) {
		return false;
	}
	s->runs++;
	run_whole(&c, r);
	failure = run_failure(&c, NULL);
	for (int i = 0; i < c.result->n_broken && c.status == 0; i++) {
		same |= strcmp(c.result->broken[i], s->failure) == 0;
	}
	same |= failure && strcmp(failure, s->failure) == 0;
	run_free(&c);
	return same;
}

/* Without `n` of the numbers from `from` on. */
static struct run without(const struct run *r, int from, int n)
{
	struct run less = *r;

	less.n_numbers = 0;
	for (int i = 0; i < r->n_numbers; i++) {
		if (i < from || i >= from + n) {
			less.numbers[less.n_numbers++] = r->numbers[i];
		}
	}
	return less;
}

/* Leaves out pieces of this size, one after the other. */
static bool leave_out(struct shrinking *s, int size)
{
	bool any = false;

	for (int from = 0; from < s->run->n_numbers;) {
		const struct run less = without(s->run, from, size);

		if (fails(s, &less)) {
			*s->run = less;
			any = true;
		} else {
			from += size;
		}
	}
	return any;
}

/* First all, as some fail without any; then halves, quarters, and so on. */
static void shrink_faults(struct shrinking *s)
{
	for (int size = s->run->n_numbers; size >= 1 && s->run->n_numbers > 0;) {
		const bool any = leave_out(s, size);

		if (!any || size > 1) {
			size = size > 1 ? (size + 1) / 2 : 0;
		}
	}
}

static void shrink_load(struct shrinking *s, int64_t load_ns)
{
	struct run less = *s->run;

	while (load_ns / 2 >= SHORTEST_LOAD) {
		load_ns = load_ns / 2 / SIM_S * SIM_S;
		less.load_ns = load_ns;
		if (!fails(s, &less)) {
			return;
		}
		*s->run = less;
	}
}

int shrink_run(struct run *r, const char *failure, const struct run_result *met)
{
	struct shrinking s = { .run = r };

	strncpy(s.failure, failure, sizeof(s.failure) - 1);
	r->trace = false;
	r->only = true;
	r->n_numbers = met->faults.n;
	for (int i = 0; i < met->faults.n; i++) {
		r->numbers[i] = met->faults.v[i].number;
	}
	shrink_faults(&s);
	shrink_load(&s, met->load_ns);
	return s.runs;
}
