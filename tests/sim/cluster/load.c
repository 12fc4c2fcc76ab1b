/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clients that ask at random. Each draws from a chance of its own, that was seeded from SIM_LOAD,
 * so that what one meets does not shift what another asks. Weights are such that changes, holds
 * and jobs get in each other's way, and that mostly something can still be done: hosts that are
 * drained at random are given back soon.
 */
#include "tests/sim/cluster/load.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/rpc/rpc.h"
#include "tests/sim/faults/chance.h"
#include "tests/sim/cluster/client.h"

#define MAX_CLIENTS 8
#define BEGIN_NS (30 * SIM_S)		/* others wait so long for the base fabric */
#define FOLLOWS_NS (5 * SIM_S)		/* a standby has all of the last change by then */
#define MAX_JOBS 3			/* of a client, that it has not released */
#define JOB_NS (8 * SIM_S)

struct user {
	struct client client;
	char name[16];
	uint64_t chance;
	int n_jobs, n_named;
	char jobs[MAX_JOBS][32];
	int64_t generation;		/* that a change of its own made */
};

static struct {
	struct user users[MAX_CLIENTS];
	struct sim_process *processes[MAX_CLIENTS + 2];
	int n_processes;
	bool based;			/* the base fabric is there */
	int64_t until;
} load;

static int64_t draw(struct user *u, int64_t low, int64_t high)
{
	return chance_between(&u->chance, low, high);
}

static bool is_divided(void)
{
	return cluster_scenario()->domains > 0;
}

/* Those that hosts have ports to. */
static int n_switches(void)
{
	int n = 0;

	for (int i = 0; i < cluster_scenario()->n_devices; i++) {
		n += !cluster_is_ring(i);
	}
	return n;
}

/* How many times as long each pause is. */
static int calm(void)
{
	const int factor = cluster_scenario()->calm;

	return factor > 1 ? factor : 1;
}

/* ---- what a client does ---- */

static void do_apply(struct user *u)
{
	struct client_answer a;

	if (client_apply(&u->client, (int)draw(u, 0, cluster_scenario()->n_fabrics), 0, &a) ==
	    HISTORY_DONE) {
		u->generation = a.generation;
	}
}

/* Kept, left to go back, or taken back at once. */
static void do_confirm(struct user *u)
{
	const int64_t within = draw(u, 1, 6) * SIM_S, wait = draw(u, 1, 2000) * SIM_MS;
	const int variant = (int)draw(u, 0, cluster_scenario()->n_fabrics);
	const int64_t then = draw(u, 0, 10);
	struct client_answer a;

	if (client_apply(&u->client, variant, within, &a) != HISTORY_DONE) {
		return;
	}
	sim_sleep(wait);
	if (then < 5) {
		client_confirm(&u->client, a.change, &a);
	} else if (then < 7) {
		client_cancel(&u->client, &a);
	}
}

static void do_rollback(struct user *u)
{
	struct client_answer a;

	client_rollback(&u->client, draw(u, 0, 2) ? u->generation : 0, &a);
}

static void do_cancel(struct user *u)
{
	struct client_answer a;

	client_cancel(&u->client, &a);
}

static void do_request(struct user *u)
{
	const int hosts = (int)draw(u, 2, 4);
	const int64_t duration = draw(u, 0, 3) ? 0 : JOB_NS;
	const bool wait = draw(u, 0, 2);
	struct client_answer a;
	char *name;

	if (u->n_jobs == MAX_JOBS) {
		return;
	}
	name = u->jobs[u->n_jobs++];
	snprintf(name, sizeof(u->jobs[0]), "%s-job%d", u->name, ++u->n_named);
	if (client_request_job(&u->client, name, hosts, duration, wait, &a) == HISTORY_REFUSED) {
		u->n_jobs--;
	}
}

static void do_release(struct user *u)
{
	struct client_answer a;
	int i;

	if (u->n_jobs == 0) {
		do_request(u);
		return;
	}
	i = (int)draw(u, 0, u->n_jobs);
	if (client_release_job(&u->client, u->jobs[i], &a) != HISTORY_UNKNOWN) {
		memmove(u->jobs[i], u->jobs[--u->n_jobs], sizeof(u->jobs[i]));
	}
}

/* Between ports of one switch, any of which others may have; a group of its own that is set again
 * and again, or a new one. */
static void do_circuit(struct user *u)
{
	const int ports = n_switches() > 1 ? n_switches() : 2;
	const int from = (int)draw(u, 0, CLUSTER_HOSTS), to = (int)draw(u, 0, CLUSTER_HOSTS);
	const int port = (int)draw(u, 0, ports);
	const bool again = draw(u, 0, 2), simplex = draw(u, 0, 4) == 0;
	const bool no_queue = draw(u, 0, 2), wait = draw(u, 0, 2), for_good = draw(u, 0, 3);
	char a_end[16], z_end[16], own[32];
	const struct client_circuit q = {
		.from = a_end, .to = z_end, .simplex = simplex || from == to, .replace = again,
		.no_queue = no_queue, .wait = wait, .duration_ns = for_good ? 0 : JOB_NS,
	};
	struct client_answer a;

	snprintf(a_end, sizeof(a_end), "h%d.p%d", from, port);
	snprintf(z_end, sizeof(z_end), "h%d.p%d", to, port);
	snprintf(own, sizeof(own), "%s-bed", u->name);
	if (again) {
		client_request_circuit(&u->client, own, &q, &a);
	} else if (u->n_jobs < MAX_JOBS) {
		snprintf(own, sizeof(own), "%s-bed%d", u->name, ++u->n_named);
		if (client_request_circuit(&u->client, own, &q, &a) != HISTORY_REFUSED) {
			snprintf(u->jobs[u->n_jobs++], sizeof(u->jobs[0]), "%s", own);
		}
	}
}

/* Of the group that is its own, or of another job: for longer, or no longer. */
static void do_lease(struct user *u)
{
	const bool ends = draw(u, 0, 3) == 0;
	const int of = (int)draw(u, 0, u->n_jobs + 1);
	struct client_answer a;
	char own[32];

	snprintf(own, sizeof(own), "%s-bed", u->name);
	if (of < u->n_jobs) {
		client_renew_job(&u->client, u->jobs[of], JOB_NS, &a);
	} else if (ends) {
		client_release_job(&u->client, own, &a);
	} else {
		client_renew_job(&u->client, own, JOB_NS, &a);
	}
}

/* The last hosts at leisure, others for a moment. */
static void do_hold(struct user *u)
{
	const bool leisure = draw(u, 0, 10) < 7;
	const int host = (int)draw(u, leisure ? CLUSTER_HOSTS - 2 : 0, CLUSTER_HOSTS);
	const int domain = (int)draw(u, 0, cluster_domains());
	const bool drain = draw(u, 0, 10) < 5;
	const int64_t pause = draw(u, 100, 2000) * SIM_MS;
	struct client_answer a;
	char name[16];

	snprintf(name, sizeof(name), "h%d", host);
	if (drain) {
		client_drain(&u->client, domain, name, &a);
	}
	if (!leisure) {
		sim_sleep(pause);
	}
	if (!drain || !leisure) {
		client_undrain(&u->client, domain, name, &a);
	}
}

static void do_status(struct user *u)
{
	const int weftd = (int)draw(u, 0, cluster_scenario()->n_weftds);
	Weft__V1__StatusResponse *s = NULL;
	struct err err;

	if (client_status(&u->client, weftd, &s, &err) == 0) {
		rpc_free_message(&s->base);
	}
}

static void do_list(struct user *u)
{
	const int weftd = (int)draw(u, 0, cluster_scenario()->n_weftds);
	Weft__V1__ListJobsResponse *list = NULL;
	struct err err;

	if (client_jobs(&u->client, weftd, true, &list, &err) == 0) {
		rpc_free_message(&list->base);
	}
}

static void do_verify(struct user *u)
{
	const int weftd = (int)draw(u, 0, cluster_scenario()->n_weftds);
	Weft__V1__VerifyResponse *v = NULL;
	struct err err;

	if (client_verify(&u->client, weftd, &v, &err) == 0) {
		rpc_free_message(&v->base);
	}
}

static void do_plan(struct user *u)
{
	struct client_answer a;

	client_plan(&u->client, (int)draw(u, 0, cluster_scenario()->n_fabrics), &a);
}

/* By weight; those marked are not for divided fabrics, or need hosts with ports. */
static const struct action {
	int weight;
	bool undivided, ports;
	void (*run)(struct user *u);
} actions[] = {
	{ 20, false, false, do_apply }, { 5, true, false, do_confirm },
	{ 4, true, false, do_rollback }, { 2, false, false, do_cancel },
	{ 10, true, true, do_request }, { 10, true, true, do_release },
	{ 14, true, true, do_circuit }, { 4, true, true, do_lease },
	{ 20, false, true, do_hold }, { 15, false, false, do_status },
	{ 5, true, true, do_list }, { 2, false, false, do_verify },
	{ 3, false, false, do_plan },
};

static bool is_possible(const struct action *a)
{
	return !(a->undivided && is_divided()) && !(a->ports && n_switches() == 0);
}

static void act(struct user *u)
{
	int64_t all = 0, at;

	for (size_t i = 0; i < sizeof(actions) / sizeof(*actions); i++) {
		all += is_possible(&actions[i]) ? actions[i].weight : 0;
	}
	at = draw(u, 0, all);
	for (size_t i = 0; i < sizeof(actions) / sizeof(*actions); i++) {
		at -= is_possible(&actions[i]) ? actions[i].weight : 0;
		if (at < 0) {
			actions[i].run(u);
			return;
		}
	}
}

/* ---- processes ---- */

static void wait_for_base(void)
{
	const int64_t late = sim_now() + BEGIN_NS;

	while (!load.based && sim_now() < late) {
		sim_sleep(100 * SIM_MS);
	}
}

/* "client N" */
static int run_client(int argc, char **argv)
{
	int i = atoi(argv[argc - 1]);
	struct user *u = &load.users[i];
	struct client_answer a;

	if (i == 0) {
		client_wait_ready(&u->client, BEGIN_NS);
		client_apply(&u->client, 0, 0, &a);
		load.based = true;
	}
	wait_for_base();
	while (sim_now() < load.until) {
		sim_sleep(draw(u, 10, 1000) * SIM_MS * calm());
		act(u);
	}
	return 0;
}

/* Watches whoever leads, for a while, and goes on after the last event that it saw. */
static int run_watcher(int argc, char **argv)
{
	uint64_t chance = strtoull(argv[argc - 1], NULL, 10);
	struct client c;
	int64_t after = 0;
	int weftd = 0;

	client_init(&c, "watcher");
	while (sim_now() < load.until) {
		const int64_t until = sim_now() + chance_between(&chance, 500, 15000) * SIM_MS;
		struct err err;

		if (client_watch(&c, weftd, &after, until < load.until ? until : load.until,
				 &err)) {
			weftd = (weftd + 1) % cluster_scenario()->n_weftds;
		}
		sim_sleep(chance_between(&chance, 1, 2000) * SIM_MS * calm());
	}
	return 0;
}

/* Another user, with light on the ports that the fabric does not use. */
static void use_other_hand(uint64_t *chance)
{
	const int device = (int)chance_between(chance, 0, cluster_scenario()->n_devices);
	const int first = cluster_first_free_port(device);
	const int port = first + (int)chance_between(chance, 0, 4);
	char line[32];
	bool remove;

	if (cluster_is_ring(device)) {
		return;
	}
	remove = history_others(device, port, port) == HISTORY_OTHERS;
	history_others_set(device, port, port, HISTORY_MAYBE_OTHERS);
	snprintf(line, sizeof(line), "%s %d,%d", remove ? "unset" : "set", port, port);
	if (cluster_control(device, line, NULL, 0) == 0) {
		history_others_set(device, port, port,
				   remove ? HISTORY_NOT_OTHERS : HISTORY_OTHERS);
		sim_tell("another user: %s %s", cluster_device_name(device), line);
	}
}

static int run_other_hand(int argc, char **argv)
{
	uint64_t chance = strtoull(argv[argc - 1], NULL, 10);

	wait_for_base();
	while (sim_now() < load.until) {
		sim_sleep(chance_between(&chance, 100, 4000) * SIM_MS * calm());
		use_other_hand(&chance);
	}
	return 0;
}

static void start(const char *machine, sim_main main, uint64_t number)
{
	char text[32];

	snprintf(text, sizeof(text), "%" PRIu64, number);
	load.processes[load.n_processes++] =
		sim_start(machine, main, (const char *const[]){ machine, text, NULL });
}

void load_begin(void)
{
	const struct scenario *s = cluster_scenario();
	const uint64_t others = sim_random(SIM_LOAD), watching = sim_random(SIM_LOAD);

	memset(&load, 0, sizeof(load));
	load.until = sim_now() + s->load_ns;
	for (int i = 0; i < s->n_clients && i < MAX_CLIENTS; i++) {
		struct user *u = &load.users[i];

		snprintf(u->name, sizeof(u->name), "c%d", i);
		client_init(&u->client, u->name);
		u->chance = sim_random(SIM_LOAD);
		start(u->name, run_client, (uint64_t)i);
	}
	if (s->n_clients > 0) {
		start("watcher", run_watcher, watching);
	}
	if (s->other_hand) {
		start("other", run_other_hand, others);
	}
}

int load_calls(void)
{
	int done, refused, unknown;

	history_count(&done, &refused, &unknown);
	return done + refused + unknown;
}

/* ---- the end ---- */

/* Reads all targets at those who lead. */
static void read_all(struct client *c)
{
	for (int d = 0; d < cluster_domains(); d++) {
		int weftd = client_leader(c, d, 0);
		Weft__V1__ListJobsResponse *list = NULL;
		struct err err;

		if (weftd < 0) {
			sim_fail("no leader", "domain %d, half a minute after the last fault", d);
		} else if (client_jobs(c, weftd, true, &list, &err) == 0) {
			rpc_free_message(&list->base);
		}
	}
}

/* All domains have the base fabric, once it was applied. */
static void check_base(struct client *c)
{
	for (int d = 0; d < cluster_domains(); d++) {
		int weftd = client_leader(c, d, 0);
		Weft__V1__StatusResponse *s = NULL;
		struct err err;

		if (weftd < 0 || client_status(c, weftd, &s, &err)) {
			continue;	/* others say so */
		}
		if (strcmp(s->config_sha256, cluster_fabric_digest(0)) != 0) {
			sim_fail("not settled", "the base fabric was applied, and domain %d has "
				 "configuration %.12s", d, s->config_sha256);
		}
		rpc_free_message(&s->base);
	}
}

/* What is half done holds up jobs until it is finished: here by going back. */
static void finish(struct client *c, int weftd)
{
	Weft__V1__StatusResponse *s = NULL;
	struct client_answer a;
	struct err err;

	if (weftd >= 0 && client_status(c, weftd, &s, &err) == 0) {
		if (s->state == WEFT__V1__STATE__STATE_INTERRUPTED && !is_divided()) {
			client_rollback(c, 0, &a);
		}
		rpc_free_message(&s->base);
	}
}

/* All that clients have left behind in one domain is given back. */
static void give_back(struct client *c, int domain)
{
	const int weftd = client_leader(c, domain, 0);
	Weft__V1__StatusResponse *s = NULL;
	Weft__V1__ListJobsResponse *list = NULL;
	struct client_answer a;
	struct err err;

	if (weftd >= 0 && client_status(c, weftd, &s, &err) == 0) {
		for (size_t i = 0; i < s->n_holds; i++) {
			client_undrain(c, domain, s->holds[i]->target, &a);
		}
		rpc_free_message(&s->base);
	}
	if (weftd >= 0 && !is_divided() && client_jobs(c, weftd, false, &list, &err) == 0) {
		for (size_t i = 0; i < list->n_jobs; i++) {
			client_release_job(c, list->jobs[i]->name, &a);
		}
		rpc_free_message(&list->base);
	}
}

/* The operator puts things right, which has to succeed now; whether it did. */
static bool put_right(struct client *c)
{
	struct client_answer a;

	for (int d = 0; d < cluster_domains(); d++) {
		finish(c, client_leader(c, d, 0));
		give_back(c, d);
	}
	if (!is_divided()) {
		/* What could not go back, as hosts were drained, waits longer than we do. */
		client_confirm(c, 0, &a);
	}
	client_wait_ready(c, 10 * SIM_S);
	if (client_apply(c, 0, 0, &a) != HISTORY_DONE) {
		sim_fail("not settled", "half a minute after the last fault the base fabric is not "
			 "applied: %s", a.err.code ? a.err.msg : history_outcome_name(a.outcome));
		return false;
	}
	return true;
}

void load_settle(int64_t last_fault)
{
	int done, refused, unknown;
	struct client c;
	int64_t end;
	bool right;

	for (int i = 0; i < load.n_processes; i++) {
		sim_wait(load.processes[i]);
	}
	end = (sim_now() > last_fault ? sim_now() : last_fault) + LOAD_SETTLE_NS;
	client_init(&c, "operator");
	sim_sleep_until(end - LOAD_SETTLE_NS / 2);
	sim_tell("half a minute of quiet is over");
	read_all(&c);
	right = put_right(&c);
	sim_sleep_until(end > sim_now() + FOLLOWS_NS ? end : sim_now() + FOLLOWS_NS);
	sim_tell("a minute of quiet is over");
	read_all(&c);
	if (right) {
		check_base(&c);
	}
	history_count(&done, &refused, &unknown);
	sim_tell("calls: %d done, %d refused, %d unknown", done, refused, unknown);
}
