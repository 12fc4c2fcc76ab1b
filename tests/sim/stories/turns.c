/* SPDX-License-Identifier: Apache-2.0 */
/* What stories of several weftd have in common. */
#include "tests/sim/stories/turns.h"

#include <getopt.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "controller/daemon/daemon.h"
#include "lib/base/buf.h"
#include "tests/sim/disk/disk.h"
#include "tests/sim/cluster/load.h"
#include "tests/sim/oracle/oracle.h"

#define LOOK_NS (5 * SIM_MS)
#define COMMAND_S 20		/* until a slow device has had a command */

void tell_by_rules(const struct scenario *s, void (*story)(void))
{
	scenario_tell(s);
	oracle_begin(s);
	tell(s, story);
}

void all_settled(void)
{
	sim_tell("from now on all is quiet");
	sim_sleep(LOAD_SETTLE_NS);
	oracle_settled();
}

/* ---- who leads ---- */

const char *state_of(int weftd)
{
	ask_weftd(weftd);
	return ask("state", "status");
}

bool leads(int weftd)
{
	return matches(state_of(weftd), "^(ready|empty|changing|interrupted)$");
}

bool stands_by(int weftd)
{
	return same(state_of(weftd), "standby");
}

int leader(int domain)
{
	for (int i = domain; i < cluster_scenario()->n_weftds; i += cluster_domains()) {
		if (leads(i)) {
			return i;
		}
	}
	return -1;
}

void await_leader(int seconds, const char *words, int weftd)
{
	await(seconds, words, leads(weftd));
}

void await_standby(int seconds, const char *words, int weftd)
{
	await(seconds, words, stands_by(weftd));
}

bool has_ended(int weftd, int starts, int status)
{
	return (cluster_starts(weftd) > starts || !cluster_weftd(weftd)) &&
	       cluster_last_status(weftd) == status;
}

/* ---- started, killed and frozen ---- */

/* getopt's place in the arguments is the whole program's. */
static int weftd_main(int argc, char **argv)
{
	optind = 0;
	return daemon_main(argc, argv);
}

struct sim_process *start_weftd(const char *machine, const char *const args[])
{
	return sim_start(machine, weftd_main, args);
}

void kill_for_good(int weftd)
{
	struct sim_process *p = cluster_weftd(weftd);

	sim_tell("weftd of %s is killed", cluster_machine(weftd));
	cluster_stop(weftd);
	if (p) {
		sim_signal(p, SIGKILL);
	}
}

/* Of a shared one it has it with each beat and each command, for as long as the disk takes. */
void freeze(int weftd)
{
	const bool shared = cluster_scenario()->turns == CLUSTER_SHARED;
	struct sim_process *p = cluster_weftd(weftd);

	while (p && shared && disk_lock(p)) {
		sim_sleep(SIM_MS / 10);
	}
	sim_tell("weftd of %s is frozen", cluster_machine(weftd));
	if (p) {
		sim_pause(p, sim_now() + 3600 * SIM_S);
	}
}

void thaw(int weftd)
{
	struct sim_process *p = cluster_weftd(weftd);

	sim_tell("weftd of %s goes on", cluster_machine(weftd));
	if (p) {
		sim_pause(p, sim_now());
	}
}

/* ---- changes ---- */

struct command *begin_until(const char *device, int sets, const char *command, ...)
{
	const int64_t end = sim_now() + COMMAND_S * SIM_S;
	const int enough = sets_of(device) + sets;
	struct buf text = { 0 };
	struct command *c;
	va_list ap;

	va_start(ap, command);
	buf_vprintf(&text, command, ap);
	va_end(ap);
	control(device, "fault slow=300");
	c = begin("%s", buf_cstr(&text));
	while (sets_of(device) < enough && sim_now() < end) {
		sim_sleep(LOOK_NS);
	}
	buf_fini(&text);
	return c;
}

bool holds(int variant)
{
	return same(ask("config_sha256", "status"), cluster_fabric_digest(variant)) &&
	       weft("verify") == 0;
}
