/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two weftd that take turns by etcd, and one thing that goes wrong with etcd at a named moment.
 * Each story says what its fault is and when; what must hold then are the rules that every run
 * is judged by (oracle.h), after a minute of quiet.
 */
#include <stdio.h>
#include <string.h>

#include "lib/rpc/rpc.h"
#include "tests/sim/cluster/client.h"
#include "tests/sim/cluster/cluster.h"
#include "tests/sim/disk/disk.h"
#include "tests/sim/etcd/etcd_model.h"
#include "tests/sim/cluster/history.h"
#include "tests/sim/cluster/load.h"
#include "tests/sim/oracle/oracle.h"
#include "tests/sim/story.h"

#define LEASE_S 2
#define LONG_LEASE_S 10

static struct {
	void (*tell)(void);
	struct client client;
	struct client_answer answer;
	int leader, other;	/* who leads when it begins, and who stands by */
	bool ended;
} story;

/* ---- how a story is told ---- */

/* One leads and has the base fabric, the other stands by and has it too. */
static void begin_well(void)
{
	client_init(&story.client, "client");
	if (!client_wait_ready(&story.client, 30 * SIM_S) ||
	    client_apply(&story.client, 0, 0, &story.answer) != HISTORY_DONE) {
		sim_fail("story", "it does not begin: %s", story.answer.err.msg);
	}
	sim_sleep(3 * SIM_S);
	story.leader = client_leader(&story.client, 0, 0);
	story.other = !story.leader;
}

static int tell(int argc, char **argv)
{
	(void)argc, (void)argv;
	begin_well();
	story.tell();
	load_settle(0);
	history_check();
	oracle_settled();
	story.ended = true;
	sim_stop();
	return 0;
}

static void run(int lease_s, int members, void (*words)(void))
{
	struct scenario s;

	scenario_pair(&s, lease_s);
	s.etcd_members = members;
	oracle_begin(&s);
	cluster_begin(&s);
	story.tell = words;
	sim_start("story", tell, (const char *const[]){ "story", NULL });
	sim_run(sim_now() + 1000 * SIM_S);
	if (!story.ended) {
		sim_fail("story", "it does not end");
	}
}

static void run_pair(int lease_s, void (*words)(void))
{
	run(lease_s, 1, words);
}

static void apply(int variant)
{
	client_apply(&story.client, variant, 0, &story.answer);
}

static void drain(const char *host)
{
	client_drain(&story.client, 0, host, &story.answer);
}

static void meet(int weftd, enum etcd_call call, const char *key, enum etcd_trouble what,
		 int64_t ns)
{
	etcd_model_fault(&(struct etcd_fault){
		.client = cluster_machine(weftd), .call = call, .key = key, .what = what,
		.ns = ns,
	});
}

/* ---- no fault, and those that etcd itself makes good ---- */

static void tell_nothing_wrong(void)
{
	apply(1);
	drain("h3");
	cluster_kill(story.leader);
	drain("h4");
	apply(2);
}

static void nothing_wrong(void)
{
	run_pair(LEASE_S, tell_nothing_wrong);
}

/* Each member in turn is cut off from the others, and is away. */
static void tell_members_go(void)
{
	static const char *const hosts[] = { "h1", "h2", "h3" };

	for (int i = 0; i < 3; i++) {
		etcd_model_cut(i, true);
		drain(hosts[i]);
		sim_sleep(5 * SIM_S);
		apply(i + 1);
		etcd_model_cut(i, false);
		sim_sleep(3 * SIM_S);
		cluster_power_off(etcd_model_machine(i));
		client_undrain(&story.client, 0, hosts[i], &story.answer);
		cluster_power_on(etcd_model_machine(i));
		sim_sleep(3 * SIM_S);
	}
}

static void members_go(void)
{
	run(LONG_LEASE_S, 3, tell_members_go);
}

/* ---- an answer to the leader that comes after its lease ---- */

/* The leader's first record of an apply is written, and answered when its lease would be over;
 * signs of life are answered in time. */
static void late_publish(int64_t ns)
{
	meet(story.leader, ETCD_WRITE, "/log/", ETCD_SLOW_DISK, ns);
	apply(1);
}

static void tell_late_publish(void)
{
	late_publish(LEASE_S * SIM_S * 3 / 4);
	drain("h3");
}

static void late_publish_then_drain(void)
{
	run_pair(LEASE_S, tell_late_publish);
}

static void tell_late_publish_long(void)
{
	late_publish(LONG_LEASE_S * SIM_S * 3 / 4);
	drain("h3");
}

static void late_publish_long(void)
{
	run_pair(LONG_LEASE_S, tell_late_publish_long);
}

/* The drain is acknowledged by the one that goes then. */
static void tell_late_publish_failover(void)
{
	late_publish(LEASE_S * SIM_S * 3 / 4);
	drain("h3");
	sim_sleep(5 * SIM_S);
	cluster_power_off(cluster_machine(story.leader));
	sim_sleep(20 * SIM_S);
	cluster_power_on(cluster_machine(story.leader));
}

static void late_publish_failover(void)
{
	run_pair(LEASE_S, tell_late_publish_failover);
}

/* Nothing of etcd's arrives for a moment, at the first record of an apply: signs of life neither.
 * Which moment is long enough follows from when the last one was, so many are tried. */
static void tell_stalled_publish(void)
{
	for (int i = 0; i < 24 && sim_failures() == 0; i++) {
		story.leader = client_leader(&story.client, 0, 30 * SIM_S);
		meet(story.leader < 0 ? 0 : story.leader, ETCD_WRITE, "/log/", ETCD_STALL,
		     (800 + 25 * i) * SIM_MS);
		apply(i % 2 + 1);
		drain("h3");
		sim_sleep(5 * SIM_S);
		client_undrain(&story.client, 0, "h3", &story.answer);
	}
}

static void stalled_publish(void)
{
	run_pair(LEASE_S, tell_stalled_publish);
}

/* ---- an answer to the campaign that comes late ---- */

static void late_campaign(void)
{
	meet(story.other, ETCD_WRITE, "/leader", ETCD_SLOW_DISK, 1200 * SIM_MS);
	cluster_power_off(cluster_machine(story.leader));
	sim_sleep(40 * SIM_S);
	cluster_power_on(cluster_machine(story.leader));
}

static void late_campaign_short(void)
{
	run_pair(LEASE_S, late_campaign);
}

static void late_campaign_long(void)
{
	run_pair(LONG_LEASE_S, late_campaign);
}

/* ---- an answer to a sign of life that comes late ---- */

/* A single one deposes no leader. */
static void tell_late_keep(void)
{
	const int starts = cluster_starts(story.leader);

	for (int i = 0; i < 8; i++) {
		meet(story.leader, ETCD_KEEP, NULL, ETCD_LATE_ANSWER, LEASE_S * SIM_S * 9 / 10);
		sim_sleep((3000 + 70 * i) * SIM_MS);
	}
	if (cluster_starts(story.leader) != starts) {
		sim_fail("story", "an answer that was late once has ended who led");
	}
}

static void late_keep(void)
{
	run_pair(LEASE_S, tell_late_keep);
}

/* ---- a stop at the moment when it is its turn ---- */

/* The one that led ends in order, and the other while etcd makes it the leader: at one of these
 * moments, as it looks every quarter of a second. */
static void tell_stopped(void)
{
	for (int i = 0; i < 5; i++) {
		story.leader = client_leader(&story.client, 0, 30 * SIM_S);
		story.other = !story.leader;
		meet(story.other, ETCD_WRITE, "/leader", ETCD_SLOW_DISK, 400 * SIM_MS);
		cluster_stop(story.leader);
		cluster_wait_stopped(story.leader);
		sim_sleep((20 + 80 * i) * SIM_MS);
		cluster_stop(story.other);
		cluster_wait_stopped(story.other);
		cluster_start(story.leader);
		cluster_start(story.other);
		sim_sleep(10 * SIM_S);
	}
}

static void stopped(void)
{
	run_pair(LEASE_S, tell_stopped);
}

/* ---- a disk that refuses what etcd has already ---- */

/* The first that it would write as leader. When there is room it leads, as it is alone. */
static void tell_full_disk(void)
{
	disk_full(cluster_machine(story.other), true);
	cluster_power_off(cluster_machine(story.leader));
	sim_sleep(20 * SIM_S);
	disk_full(cluster_machine(story.other), false);
	drain("h3");
	cluster_power_on(cluster_machine(story.leader));
}

static void full_disk(void)
{
	run_pair(LEASE_S, tell_full_disk);
}

/* ---- what users see of an etcd that is away or full ---- */

static void tell_frozen(void)
{
	Weft__V1__StatusResponse *s = NULL;
	struct err err;

	sim_pause(etcd_model_process(0), sim_now() + 10 * SIM_S);
	for (int i = 0; i < 10; i++) {
		for (int k = 0; k < 2; k++) {
			if (client_status(&story.client, k, &s, &err) == 0) {
				rpc_free_message(&s->base);
			}
		}
		sim_sleep(SIM_S / 2);
	}
}

/* That loops do not wait is its rule. */
static void frozen(void)
{
	run(LONG_LEASE_S, 1, tell_frozen);
}

/* Each says that something is wrong. */
static void need_problem(int weftd, const char *why)
{
	Weft__V1__StatusResponse *s = NULL;
	struct err err = { 0 };

	if (client_status(&story.client, weftd, &s, &err)) {
		sim_fail("said", "%s has no status: %s", cluster_machine(weftd), err.msg);
		return;
	}
	if (s->n_problems == 0 && !(s->leadership && s->leadership->problem[0])) {
		sim_fail("said", "%s, and the status of %s has no problem", why,
			 cluster_machine(weftd));
	}
	rpc_free_message(&s->base);
}

static void tell_full(void)
{
	struct client_answer refused;

	etcd_model_full(true);
	story.client.patience_ns = 5 * SIM_S;
	client_apply(&story.client, 1, 0, &refused);
	sim_sleep(5 * SIM_S);
	need_problem(client_leader(&story.client, 0, 30 * SIM_S) < 0 ? story.leader :
		     client_leader(&story.client, 0, 0), "etcd is out of space");
	etcd_model_full(false);
	client_init(&story.client, "client");
	apply(1);
}

static void full(void)
{
	run_pair(LONG_LEASE_S, tell_full);
}

/* etcd is put back to what it was before changes that were acknowledged, while the standby that
 * has them not is away; both are there then. */
static void tell_restored(void)
{
	cluster_power_off(cluster_machine(story.other));
	etcd_model_save();
	apply(1);
	drain("h3");
	etcd_model_restore();
	sim_sleep(20 * SIM_S);
	drain("h4");
	cluster_power_on(cluster_machine(story.other));
}

static void restored(void)
{
	run_pair(LONG_LEASE_S, tell_restored);
}

const struct story etcd_stories[] = {
	{ "etcd-well", "by etcd, and only a weftd that is killed", nothing_wrong },
	{ "etcd-members", "each member of etcd is cut off, then away", members_go },
	{ "etcd-late-publish", "the answer to an apply's first record comes after the lease; then "
	  "a drain", late_publish_then_drain },
	{ "etcd-late-publish-long", "the same with a lease of 10 s", late_publish_long },
	{ "etcd-late-publish-failover", "the same, and the one that led goes",
	  late_publish_failover },
	{ "etcd-stalled-publish", "nothing of etcd's arrives for 0.8 to 1.4 s at an apply's first "
	  "record",
	  stalled_publish },
	{ "etcd-late-campaign", "the answer to the campaign comes 1.2 s late",
	  late_campaign_short },
	{ "etcd-late-campaign-long", "the same with a lease of 10 s", late_campaign_long },
	{ "etcd-late-keep", "an answer to a sign of life comes 1.8 s late, at a lease of 2 s",
	  late_keep },
	{ "etcd-stopped", "a stop of the one that is to take over, at that moment", stopped },
	{ "etcd-full-disk", "the disk of the one that is to take over is full for a while",
	  full_disk },
	{ "etcd-frozen", "etcd is frozen for 10 s, and status is asked for", frozen },
	{ "etcd-full", "etcd is out of space", full },
	{ "etcd-restored", "etcd is restored to an older state, and the standby is as old",
	  restored },
	{ 0 },
};
