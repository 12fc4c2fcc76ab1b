/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stories: a fault at a named moment, and what has to come of it. Each is a run of its own, from
 * a fixed seed. A file of stories has a table of them, ended by a name of NULL, which main.c
 * knows; those that are known to fail are listed in tests/sim/known.
 */
#ifndef WEFT_TESTS_SIM_STORY_H
#define WEFT_TESTS_SIM_STORY_H

struct story {
	const char *name;
	const char *words;	/* what happens, for --list */
	/* Of no process, after sim_begin and disk_begin, in a folder of its own: starts what is
	 * to run, and runs it. What is wrong says sim_fail. */
	void (*run)(void);
};

extern const struct story disk_stories[], history_stories[], etcd_cases_stories[], etcd_stories[];
extern const struct story turns_stories[], confirm_stories[], divided_stories[];
extern const struct story failover_stories[];
extern const struct story external_stories[], full_disk_stories[], job_stories[];
extern const struct story device_stories[], stage_stories[], report_stories[];
extern const struct story oracle_stories[];
extern const struct story maintenance_stories[], ring_stories[], broken_ring_stories[];
extern const struct story found_stories[], resume_stories[], queue_stories[], slice_stories[];

#endif
