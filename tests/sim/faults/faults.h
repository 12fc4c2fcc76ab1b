/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The faults of a run: drawn before anything runs, each with its moment, and each with chance
 * of its own, so that a run without some of them meets the others as before. That is how a run
 * that fails is made short (shrink.h).
 */
#ifndef WEFT_TESTS_SIM_FAULTS_H
#define WEFT_TESTS_SIM_FAULTS_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/sim/cluster/cluster.h"
#include "tests/sim/etcd/etcd_model.h"

#define FAULTS_MAX 24
#define FAULT_WORDS 160

struct fault_kind;

struct planned_fault {
	int number;		/* in the list as it was drawn, from 1 */
	const struct fault_kind *kind;
	int64_t at, length_ns;	/* 0: it is over at once */
	char words[FAULT_WORDS];
	uint64_t chance;	/* its own, for what it does */

	/* Whom it meets, and how much: as the kind has it. */
	int weftd, device;
	const char *from, *to;	/* machines */
	int64_t amount;
	char spec[40];		/* of a device's own fault */
	struct etcd_fault etcd;
	struct sim_process *met;
};

/* In order of time; what is left of them, that is. */
struct fault_list {
	struct planned_fault v[FAULTS_MAX];
	int n;
};

/* What a run of this scenario meets, from SIM_FAULTS; after cluster_begin. */
void faults_draw(const struct scenario *s, struct fault_list *out);
/* Without those of a kind; the others keep their numbers. */
void faults_leave_out(struct fault_list *list, bool (*is_out)(const char *kind));
/* Leaves those with these numbers. */
void faults_keep(struct fault_list *list, const int *numbers, int n);
/* To be met from now on by sim_run. The list stays until the end. */
void faults_begin(struct fault_list *list);
/* When the last of them is over; 0: there are none. */
int64_t faults_end(const struct fault_list *list);
/* Each with its time and number, in words. */
void faults_tell(const struct fault_list *list);

/* ---- kinds of faults: fault_kinds.c, fault_etcd.c ---- */

struct fault_kind {
	const char *name;
	bool (*fits)(const struct scenario *s);
	/* Whom, how much, for how long, and its words. */
	void (*draw)(const struct scenario *s, struct planned_fault *f);
	/* Both of a process. */
	void (*begin)(struct planned_fault *f);
	void (*end)(struct planned_fault *f);	/* after length_ns; NULL: nothing is to be done */
};

/* The i-th of all; NULL: there are no more. */
const struct fault_kind *fault_kind(int i);

#endif
