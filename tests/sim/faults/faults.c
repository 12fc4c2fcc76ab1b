/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/faults/chance.h"
#include "tests/sim/faults/fault_draws.h"

#define FIRST_AT (3 * SIM_S)	/* the first fabric is about to be applied */
#define KINDS_MAX 32

const struct fault_kind *fault_kind(int i)
{
	const struct fault_kind *k = fault_kinds_other;

	for (; k->name && i > 0; k++, i--) {
	}
	if (!k->name) {
		for (k = fault_kinds_etcd; k->name && i > 0; k++, i--) {
		}
	}
	return k->name ? k : NULL;
}

/* By which answers come late, and nothing else is wrong. */
static bool is_delay(const char *kind)
{
	static const char *const delays[] = {
		"stall", "slow", "pause", "disk-slow", "etcd-call", "etcd-slow", "etcd-leases",
	};

	for (size_t i = 0; i < sizeof(delays) / sizeof(*delays); i++) {
		if (strcmp(kind, delays[i]) == 0) {
			return true;
		}
	}
	return false;
}

/* Of those that fit, half: runs of few kinds go deeper than runs of all. */
static int draw_kinds(const struct scenario *s, const struct fault_kind *kinds[KINDS_MAX])
{
	const struct fault_kind *k;
	int n = 0;

	for (int i = 0; (k = fault_kind(i)) && n < KINDS_MAX; i++) {
		const bool taken = sim_random(SIM_FAULTS) % 2;

		if (taken && k->fits(s) && (!s->only_delays || is_delay(k->name))) {
			kinds[n++] = k;
		}
	}
	return n;
}

static int by_time(const void *x, const void *y)
{
	const struct planned_fault *a = x, *b = y;

	return (a->at > b->at) - (a->at < b->at);
}

void faults_draw(const struct scenario *s, struct fault_list *out)
{
	const struct fault_kind *kinds[KINDS_MAX];
	const int n_kinds = draw_kinds(s, kinds);

	out->n = n_kinds > 0 ? (int)sim_between(SIM_FAULTS, 1, FAULTS_MAX / 2 + 1) : 0;
	for (int i = 0; i < out->n; i++) {
		struct planned_fault *f = &out->v[i];

		*f = (struct planned_fault){ .chance = sim_random(SIM_FAULTS) };
		f->kind = kinds[chance_between(&f->chance, 0, n_kinds)];
		f->at = chance_between(&f->chance, FIRST_AT, FIRST_AT + s->load_ns);
		f->kind->draw(s, f);
	}
	qsort(out->v, (size_t)out->n, sizeof(out->v[0]), by_time);
	for (int i = 0; i < out->n; i++) {
		out->v[i].number = i + 1;
	}
}

void faults_leave_out(struct fault_list *list, bool (*is_out)(const char *kind))
{
	int kept = 0;

	for (int i = 0; i < list->n; i++) {
		if (!is_out(list->v[i].kind->name)) {
			list->v[kept++] = list->v[i];
		}
	}
	list->n = kept;
}

void faults_keep(struct fault_list *list, const int *numbers, int n)
{
	int kept = 0;

	for (int i = 0; i < list->n; i++) {
		bool wanted = false;

		for (int k = 0; k < n; k++) {
			wanted |= numbers[k] == list->v[i].number;
		}
		if (wanted) {
			list->v[kept++] = list->v[i];
		}
	}
	list->n = kept;
}

int64_t faults_end(const struct fault_list *list)
{
	int64_t end = 0;

	for (int i = 0; i < list->n; i++) {
		const int64_t over = list->v[i].at + list->v[i].length_ns;

		end = over > end ? over : end;
	}
	return end;
}

void faults_tell(const struct fault_list *list)
{
	for (int i = 0; i < list->n; i++) {
		sim_tell("fault %d at %.3f s: %s", list->v[i].number, (double)list->v[i].at / SIM_S,
			 list->v[i].words);
	}
}

static struct fault_list *met;

/* "fault PLACE-IN-LIST" */
static int meet(int argc, char **argv)
{
	struct planned_fault *f = &met->v[atoi(argv[argc - 1])];

	sim_sleep_until(f->at);
	sim_tell("fault %d: %s", f->number, f->words);
	f->kind->begin(f);
	if (f->kind->end) {
		sim_sleep_until(f->at + f->length_ns);
		sim_tell("fault %d is over", f->number);
		f->kind->end(f);
	}
	return 0;
}

void faults_begin(struct fault_list *list)
{
	char place[16];

	met = list;
	for (int i = 0; i < list->n; i++) {
		snprintf(place, sizeof(place), "%d", i);
		sim_start("faults", meet, (const char *const[]){ "fault", place, NULL });
	}
}
