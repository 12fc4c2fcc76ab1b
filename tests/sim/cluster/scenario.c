/* SPDX-License-Identifier: Apache-2.0 */
/* Scenarios: what a story begins with, and those that are drawn. */
#include <stdio.h>
#include <string.h>

#include "tests/sim/cluster/cluster.h"

#define N(v) ((int64_t)(sizeof(v) / sizeof(*(v))))

void scenario_simple(struct scenario *s)
{
	*s = (struct scenario){
		.turns = CLUSTER_ALONE, .n_weftds = 1, .lease_s = 2, .poll_s = 60,
		.n_devices = 1, .devices = { { .dialect = "polatis-scpi" } },
		.n_fabrics = CLUSTER_FABRICS,
	};
}

void scenario_pair(struct scenario *s, int lease_s)
{
	scenario_simple(s);
	s->turns = CLUSTER_ETCD;
	s->n_weftds = 2;
	s->lease_s = lease_s;
	s->etcd_members = 1;
}

static bool chance(int percent)
{
	return sim_between(SIM_FAULTS, 0, 100) < percent;
}

static void draw_turns(struct scenario *s)
{
	static const int leases[] = { 2, 3, 5, 10 };
	int64_t kind = sim_between(SIM_FAULTS, 0, 100);
	bool third = chance(25), divided = chance(25), one = chance(50), three = chance(30);

	s->turns = kind < 20 ? CLUSTER_ALONE : kind < 80 ? CLUSTER_ETCD : CLUSTER_SHARED;
	s->lease_s = leases[sim_between(SIM_FAULTS, 0, N(leases))];
	s->n_weftds = s->turns == CLUSTER_ALONE ? 1 : third ? 3 : 2;
	s->etcd_members = s->turns != CLUSTER_ETCD ? 0 : one ? 1 : CLUSTER_ETCDS;
	if (s->turns == CLUSTER_ETCD && divided) {
		s->domains = three ? 3 : 2;
		s->n_weftds = s->domains * (one ? 1 : 2);	/* alone, or with a standby */
	}
}

static void draw_devices(struct scenario *s)
{
	static const char *const dialects[] = {
		"polatis-scpi", "polatis-scpi", "polatis-tl1", "calient-tl1", "glimmerglass-tl1",
		"polatis-restconf", "sonic-ocs", "rome-cli", "telescent-cli",
	};
	bool ring = chance(30);

	s->n_devices = (int)sim_between(SIM_FAULTS, s->domains > 0 ? s->domains : 1, 5);
	for (int i = 0; i < s->n_devices; i++) {
		s->devices[i].dialect = dialects[sim_between(SIM_FAULTS, 0, N(dialects))];
		s->devices[i].domain = s->domains > 0 ? i % s->domains : 0;
		s->devices[i].forgets = chance(30);
	}
	if (ring && s->n_devices > (s->domains > 0 ? s->domains : 1)) {
		s->devices[s->n_devices - 1].dialect = "mrr-reg";
	}
}

void scenario_draw(struct scenario *s)
{
	static const int polls[] = { 0, 5, 20, 60 };

	memset(s, 0, sizeof(*s));
	draw_turns(s);
	draw_devices(s);
	s->poll_s = polls[sim_between(SIM_FAULTS, 0, N(polls))];
	s->n_fabrics = (int)sim_between(SIM_FAULTS, 2, CLUSTER_FABRICS + 1);
	s->n_clients = (int)sim_between(SIM_FAULTS, 2, 6);
	s->other_hand = chance(50);
	s->restores = chance(30);
	s->load_ns = sim_between(SIM_FAULTS, 30, 91) * SIM_S;
}

void scenario_delay(struct scenario *s, int lease_s)
{
	if (s->turns != CLUSTER_ETCD) {
		s->turns = CLUSTER_ETCD;
		s->n_weftds = 2;
		s->etcd_members = s->poll_s > 0 ? 1 : CLUSTER_ETCDS;
	}
	s->lease_s = lease_s;
	s->only_delays = true;
}

void scenario_tell(const struct scenario *s)
{
	static const char *const turns[] = { "alone", "by etcd", "by a shared store" };
	char devices[200] = "";
	size_t len = 0;

	for (int i = 0; i < s->n_devices; i++) {
		int n = snprintf(devices + len, sizeof(devices) - len, "%s%s%s",
				 i > 0 ? ", " : "", s->devices[i].dialect,
				 s->devices[i].forgets ? " (forgets)" : "");

		len += n > 0 && len + (size_t)n < sizeof(devices) ? (size_t)n : 0;
	}
	sim_tell("%d weftd %s (%d domains, %d members, lease %d s, poll %d s); %s; %d fabrics, "
		 "%d clients for %.0f s%s%s", s->n_weftds, turns[s->turns], s->domains,
		 s->etcd_members, s->lease_s, s->poll_s, devices, s->n_fabrics, s->n_clients,
		 (double)s->load_ns / SIM_S, s->other_hand ? ", and another's hand" : "",
		 s->restores ? ", whose light is restored" : "");
}
