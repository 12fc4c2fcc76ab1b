/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jobs of orchestrators: placed, started, queued, timed, pushed out, released, over restarts and
 * switches that are away; none touches the light of another. Eight hosts with two ports each, of
 * which h0 and h1 belong to the operator's own job.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/story.h"
#include "tests/sim/stories/tell.h"

#define SWITCH "ocs0"

static const char fabric[] =
	"weft: 1\nfabric: shared\nhosts:\n"
	"  - { name: 'h[0-7]', ports: 'p[0-1]', rate: 100Gbps, reactivation: 1ms }\n"
	"switches:\n  - { name: ocs0, size: 16x16, driver: polatis-scpi, address: "
	"'127.0.0.1:5000', timeout: 1s, options: { gap_ms: 1, settle_ms: 20 } }\n"
	"fibres:\n  - { from: 'h[0-7].p[0-1]', to: 'ocs0.[1-16]' }\n"
	"jobs:\n  - { name: own, nodes: 'h[0-1]', collective: allreduce, size: 1MB }\n";

static const char *own;		/* the operator's light */

static bool state_is(const char *job, const char *state)
{
	return same(ask("jobs.-1.state", "job list --all %s", job), state);
}

static const char *problem_of(const char *job)
{
	return ask("jobs.-1.problem", "job list --all %s", job);
}

/* All of the light in `map` is there. */
static bool has_light(const char *map)
{
	return same(without(map, map_of(SWITCH)), "");
}

static bool has_only(const char *map)
{
	return same(map_of(SWITCH), map);
}

static void request(const char *arguments)
{
	expect(0, "a job", "job request %s --size 1MB", arguments);
}

static void release(const char *job)
{
	expect(0, "a job is given back", "job release %s", job);
}

/* ---- placed and started ---- */

static void bad_requests(void)
{
	expect(65, "more hosts than there are", "job request --count 9 -c allgather --size 1MB");
	has_error("says how many there are", "there are 8 with enough ports");
	expect(65, "a host that is not there", "job request --nodes h9,h0 -c allgather --size 1MB");
	expect(65, "a name that is taken", "job request own --count 2 -c allgather --size 1MB");
	expect(65, "a collective that is none", "job request --count 2 -c gossip --size 1MB");
	expect(65, "a topology of another size",
	       "job request bad --count 2 -c allgather --size 1MB -t Torus(9,9)");
	has_error("is told both", "Torus.9,9. has 81 nodes, the job has 2 hosts");
	expect(65, "nor so for ports that are in use",
	       "job request bad --count 6 -c allgather --size 1MB -t Ring(5) --no-wait");
	expect(65, "an algorithm of rings",
	       "job request bad --count 2 -c allgather --size 1MB -a composed");
	check(state_is("bad", "failed"), "is a job that failed, when it was planned");
	expect(64, "hosts and a count",
	       "job request --count 2 --nodes h0,h1 -c allgather --size 1MB");
}

static void tell_place(void)
{
	const char *with_a;

	expect(0, "a job of four hosts", "job request a --count 4 -c allreduce --size 1MB "
	       "--format json");
	check(same(value("state"), "running") && same(value("nodes.*"), "h2,h3,h4,h5"),
	      "runs on hosts that are free");
	with_a = map_of(SWITCH);
	check(has_light(own) && lines_of(with_a) == lines_of(own) + 8,
	      "its light is beside that of the others");
	expect(0, "its schedule", "schedule verify --job a");
	check(same(ask("jobs.*.name", "status"), "own,a"),
	      "status shows the operator's and the orchestrator's");
	expect(0, "the operator's configuration again", "apply -f fabric.yaml");
	has("changes nothing", "nothing");
	check(has_only(with_a), "and does not touch the job");
	bad_requests();
}

/* ---- no room: the queue ---- */

static void tell_queue(void)
{
	const char *with_a, *three;
	struct command *waits;

	request("a --count 4 -c allreduce");
	with_a = map_of(SWITCH);
	waits = begin("job request b --count 4 -c allgather --size 1MB");
	await(10, "a job that does not fit waits", state_is("b", "queued"));
	check(same(problem_of("b"), "4 hosts are wanted, and 2 of 8 with enough ports are free"),
	      "and says for what");
	expect(0, "a smaller one passes it",
	       "job request c --count 2 -c allgather --size 1MB --preemptible --priority -1");
	crash_weftd();
	await(10, "after a crash the jobs are what they were",
	      state_is("c", "running") && state_is("b", "queued") && state_is("a", "running"));
	three = map_of(SWITCH);
	check(same(without(with_a, three), ""), "and their light");
	finish(waits);
	release("a");
	await(20, "the one that waited starts", state_is("b", "running"));
	check(has_light(own), "the operator's light was never touched");
}

/* c has agreed to go, b has not. */
static void tell_pushed_out(void)
{
	request("b --count 4 -c allgather");
	request("c --count 2 -c allgather --preemptible --priority -1");
	expect(0, "an important job pushes out who agreed",
	       "job request d --count 2 -c allgather --size 1MB --priority 5");
	check(state_is("c", "ended") && state_is("b", "running") && state_is("d", "running"),
	      "and no other job");
	check(same(problem_of("c"), "makes room for job d"), "who is told why");
	weft("job request e --count 4 -c allgather --size 1MB --priority 9 --no-wait");
	await(5, "no other job goes, however important", state_is("e", "queued"));
	expect(0, "it is given back while it waits", "job release e");
	check(state_is("e", "ended"), "and is over");
}

/* ---- time, and requests that are remembered ---- */

static void tell_time(void)
{
	expect(0, "a job for a second", "job request f --count 2 -c allgather --size 1MB "
	       "--duration 1s");
	await(20, "ends by itself", state_is("f", "ended"));
	check(same(problem_of("f"), "its time is over"), "and says so");
	expect(0, "a request with an id",
	       "job request g --count 2 -c allgather --size 1MB --request-id r1");
	expect(0, "the same again",
	       "job request g --count 2 -c allgather --size 1MB --request-id r1");
	expect(65, "the same id with other arguments is refused",
	       "job request g --count 3 -c allgather --size 1MB --request-id r1");
	check(same(ask("jobs.*.name", "job list"), "g"), "is one job");
}

/* ---- a switch that is away, or does not what it should ---- */

static void tell_away(void)
{
	struct command *c;

	request("g --nodes h2,h3 -c allgather");
	stop_device(SWITCH);
	c = begin("job release g");
	await(30, "a job whose switch is away says that it cannot end", problem_of("g")[0]);
	continue_device(SWITCH);
	/* Who reads finds it back, and what waited for it goes on at once. */
	weft("verify");
	await(60, "and ends when the switch is back", state_is("g", "ended"));
	finish(c);

	expect(0, "a job for two seconds", "job request t --nodes h6,h7 -c allgather --size 1MB "
	       "--duration 2s");
	stop_device(SWITCH);
	await(30, "its time is over while its switch is away", state_is("t", "ending") &&
	      !same(value("jobs.-1.problem"), "its time is over"));
	continue_device(SWITCH);
	weft("verify");
	await(60, "it ends when the switch is back", state_is("t", "ended"));
	check(has_only(own), "with its light");
}

static void tell_not_made(void)
{
	control(SWITCH, "fault ignore-port=o13");
	expect(65, "a circuit that is silently ignored",
	       "job request m --nodes h6,h7 -c allgather --size 1MB");
	check(state_is("m", "failed") &&
	      matches(problem_of("m"), "was to be made, but the device does not have it"),
	      "fails the job, and says which");
	control(SWITCH, "clear");
	check(has_only(own), "and leaves no light of it");

	/* Given back while it starts: it is over once it has started. */
	control(SWITCH, "fault slow=50");
	weft("job request s --nodes h6,h7 -c allgather --size 1MB --no-wait");
	await(10, "a job on a slow switch is starting", state_is("s", "starting"));
	expect(0, "it is given back meanwhile", "job release s");
	control(SWITCH, "clear");
	check(state_is("s", "ended") && has_only(own), "and is over, without light");
}

/* ---- others do what they do ---- */

static void tell_operator(void)
{
	const char *with_b;

	request("b --nodes h2,h3,h4,h5 -c allgather");
	with_b = map_of(SWITCH);
	write_file("other.yaml", "%s", with(fabric, "collective: allreduce, size: 1MB }",
	      "collective: allreduce, size: 1MB, topology: 'UniRing(1,2)' }"));
	expect(0, "the operator changes his own job", "apply -f other.yaml");
	check(!has_only(with_b) && has_light(without(with_b, own)), "which moves his light only");
	expect(0, "and goes back", "rollback");
	check(has_only(with_b) && state_is("b", "running"), "the job has been left alone");
	expect(0, "the last one", "job release b");
	check(has_only(own), "is gone with its light");
}

/* The circuit that ends at this output, counted from 1. */
static const char *circuit_to(int out)
{
	const char *text = map_of(SWITCH);
	size_t n;

	for (; *text; text += n + 1) {
		n = strcspn(text, "\n");
		if (atoi(strchr(text, ',') + 1) + 1 == out) {
			return without(text, text + n + 1);
		}
	}
	return "";
}

static void tell_dead(void)
{
	const char *gone, *dead;

	request("k --nodes h2,h3,h4 -c allgather -t UniRing(2,3)");
	control(SWITCH, "fault port-failed=o5");
	gone = circuit_to(7);
	control(SWITCH, "unset %.*s", (int)strcspn(gone, "\n"), gone);
	expect(2, "its light dies, one circuit is gone", "verify");
	dead = map_of(SWITCH);
	expect(0, "another starts",
	       "job request l --count 2 -c allgather --size 1MB --format json");
	check(same(value("nodes.*"), "h5,h6"), "beside it");
	check(has_light(dead) && same(without(gone, map_of(SWITCH)), gone),
	      "and neither moves nor mends what is dead");
	expect(0, "the other ends", "job release l");
	check(has_only(dead), "and leaves the rest as it is");
	await(10, "it is still known what is dead",
	      same(ask("jobs.k.health", "status"), "degraded"));
	expect(0, "the dead one is given back", "job release k");
	control(SWITCH, "clear");
	weft("verify");
	check(has_only(own), "whole or not");
}

static void tell_drained(void)
{
	struct command *watch;

	expect(0, "a host is drained", "drain h3");
	expect(0, "a job goes elsewhere", "job request h --count 5 -c allgather --size 1MB "
	       "--format json");
	check(same(value("nodes.*"), "h2,h4,h5,h6,h7"), "to all others that are free");
	expect(0, "and is given back", "job release h");
	weft("job request i --count 6 -c allgather --size 1MB --no-wait");
	check(state_is("i", "queued"), "a job for all waits");
	watch = begin("watch -n 4 --format json");
	await(10, "a client watches", output_of(watch)[0]);
	expect(0, "the host is undrained", "undrain h3");
	await(20, "and it starts then", state_is("i", "running"));
	finish(watch);
	check(matches(output_of(watch), "job i is starting"), "as those who watch hear");
	expect(0, "it is given back", "job release i");
	check(has_only(own), "what is left is the operator's light");
}

/* ---- many in one change ---- */

static struct command *first, *second, *third;

/* While one job starts on a slow switch two others are asked for. */
static void ask_for_three(const char *second_more)
{
	control(SWITCH, "fault slow=100");
	first = begin("job request a --nodes h2,h3 -c allgather --size 1MB");
	await(10, "a job on a slow switch is starting", state_is("a", "starting"));
	second = begin("job request b --nodes h4,h5 -c allgather --size 1MB %s", second_more);
	third = begin("job request c --nodes h6,h7 -c allgather --size 1MB");
	await(10, "two others wait until its change is over",
	      state_is("b", "queued") && state_is("c", "queued") && state_is("a", "starting"));
}

static void tell_together(void)
{
	ask_for_three("");
	check(finish(first) == 0 && finish(second) == 0 && finish(third) == 0, "all of them run");
	check(matches(ask("changes.0.comment", "history -n 1"), "jobs (b, c|c, b) start"),
	      "and those that had to wait came in one change");
	control(SWITCH, "clear");
	expect(0, "their light is there", "verify");

	control(SWITCH, "fault slow=100");
	first = begin("job release a");
	await(10, "one is given back on a slow switch",
	      same(ask("changes.0.outcome", "history -n 1"), "running"));
	second = begin("job release b");
	third = begin("job request d --nodes h2,h3 -c allgather --size 1MB");
	check(finish(first) == 0 && finish(second) == 0 && finish(third) == 0,
	      "meanwhile another is, and a new one asked for on the hosts of the first");
	check(same(ask("changes.0.comment", "history -n 1"), "job d starts; job b ends"),
	      "which go into one change");
	control(SWITCH, "clear");
	expect(0, "their light is there, and no other", "verify");
}

static void tell_together_killed(void)
{
	const char *with_a;

	ask_for_three("");
	check(finish(first) == 0, "the first one runs");
	with_a = map_of(SWITCH);
	await(10, "the others start", state_is("b", "starting") && state_is("c", "starting"));
	crash_weftd();
	control(SWITCH, "clear");
	await(60, "after a crash meanwhile they do all the same",
	      state_is("a", "running") && state_is("b", "running") && state_is("c", "running"));
	finish(second);
	finish(third);
	check(has_light(with_a), "and none has lost its light");
	expect(0, "nor made any other", "verify");
}

static void tell_together_impossible(void)
{
	ask_for_three("-a composed");
	check(finish(first) == 0 && finish(third) == 0, "who can run does");
	check(finish(second) == 65 &&
	      matches(errors_of(second), "job b: algorithm: composed is for"),
	      "the impossible one is told so, and why");
	check(state_is("b", "failed") && state_is("c", "running"), "and no other");
	control(SWITCH, "clear");
	expect(0, "the light is that of those who run", "verify");
	release("a");
	release("c");

	control(SWITCH, "fault ignore-port=o13");
	ask_for_three("");
	check(finish(first) == 0 && finish(second) == 0, "a circuit that is silently ignored");
	check(finish(third) == 65 && matches(errors_of(third), "was to be made, but the device"),
	      "is the trouble of its own job only");
	control(SWITCH, "clear");
	expect(0, "whose light is gone", "verify");
}

static void tell_together_cancelled(void)
{
	ask_for_three("");
	await(10, "the others start", state_is("b", "starting") && state_is("c", "starting"));
	expect(0, "one is given back meanwhile", "job release b");
	check(finish(third) == 0 && state_is("c", "running") && state_is("b", "ended"),
	      "which is over, and the other runs");
	finish(first);
	finish(second);
	release("c");
	second = begin("job request b --nodes h4,h5 -c allgather --size 1MB");
	third = begin("job request c --nodes h6,h7 -c allgather --size 1MB");
	await(10, "two start", state_is("b", "starting") || state_is("c", "starting"));
	weft("cancel");
	await(30, "a change that is cancelled is begun again",
	      state_is("b", "running") && state_is("c", "running"));
	check(finish(second) == 0 && finish(third) == 0, "for all that it was for");
	control(SWITCH, "clear");
	expect(0, "the light is that of those who run", "verify");
}

static bool lasts(const char *job, const char *ns)
{
	return same(ask("jobs.-1.duration_ns", "job list --all %s", job), ns);
}

/* None has more time than the fabric allows, unless it renews. */
static void tell_limit(void)
{
	expect(0, "one without a limit", "job request old -c allgather --size 1MB --nodes h6,h7");
	write_file("limit.yaml", "%schanges: { max-lease: 60s }\n", fabric);
	expect(0, "leases have one", "apply -f limit.yaml");
	expect(65, "a longer one", "job request a --duration 61s -c allgather --size 1MB "
	       "--nodes h4,h5");
	has_error("says what it is", "longer than 1 min, the fabric's max-lease");
	expect(0, "one without a duration", "job request a -c allgather --size 1MB --nodes h4,h5");
	expect(0, "and circuits", "circuit add h2.p0 h3.p0 --name bed");
	check(lasts("a", "60000000000") && lasts("bed", "60000000000"), "have an end");
	check(lasts("old", "0"), "who was there has none");
	sim_sleep(50 * SIM_S);
	expect(65, "a longer renewal", "job renew a 61s");
	expect(0, "a renewal", "job renew a 60s");
	expect(0, "asking again", "circuit add h2.p0 h3.p0 --name bed");
	sim_sleep(30 * SIM_S);
	check(state_is("a", "running") && state_is("bed", "running"), "keep them");
	await(60, "for so long", state_is("a", "ended") && state_is("bed", "ended"));
	check(state_is("old", "running"), "and no other ends");
}

/* ---- circuits ---- */

static void tell_circuits(void)
{
	const char *bed;

	expect(0, "two circuits", "circuit add h2.p0 h3.p0 h2.p1 h4.p0 --name bed --lease 1h");
	bed = map_of(SWITCH);
	check(has_light(own) && lines_of(bed) == lines_of(own) + 4, "have light both ways");
	expect(0, "the same again", "circuit add h3.p0 h2.p0 h2.p1 h4.p0");
	has_error("is there already", "nothing changed: group bed");
	expect(75, "a port that another group has", "circuit add h3.p0 h5.p0 --format json");
	check(same(value("reason"), "held") && same(value("group"), "bed"), "is refused at once");
	expect(75, "so is one of the fabric file", "circuit add h0.p0 h5.p0");
	expect(65, "a port that is not there", "circuit add h2.p9 h5.p0");
	expect(65, "a lease of nothing", "circuit add h5.p0 h6.p0 --lease 0s");
	expect(65, "a port twice", "circuit add h5.p0 h6.p0 h5.p0 h7.p0");
	expect(65, "it has no schedule", "schedule verify --job bed");
	check(has_only(bed), "and nothing was made");

	write_file("bed", "h2.p0 h3.p0\nh5.p0 h6.p0 one-way\n");
	expect(0, "the group becomes another", "circuit set bed bed");
	check(lines_of(without(bed, map_of(SWITCH))) == 2 &&
	      lines_of(map_of(SWITCH)) == lines_of(own) + 3, "in which what is in both stays");
	expect(0, "twice", "circuit set bed bed");
	has_error("changes nothing", "nothing changed");
	bed = map_of(SWITCH);
	crash_weftd();
	check(has_only(bed), "a crash takes nothing away");
	await(10, "and the group is known", same(ask("jobs.*.name", "job list"), "bed"));
	expect(0, "it is removed by a port", "circuit remove h3.p0");
	check(has_only(own), "whole");
}

/* Lines, YAML, and from one lab to another. */
static void tell_circuit_files(void)
{
	const char *all;

	write_file("bed.yaml", "# of a fabric\n- { from: 'h2.p[0-1]', to: 'h3.p[0-1]' }\n"
		   "- { from: h4.p0, to: h5.p0, direction: one-way, name: bed }\n");
	expect(65, "a file of two groups is no group", "circuit set bed bed.yaml");
	write_file("bed.yaml", "circuits:\n  - { from: 'h2.p[0-1]', to: 'h3.p[0-1]', group: bed }\n"
		   "  - { from: h4.p0, to: h5.p0, direction: one-way, name: bed }\n");
	expect(65, "nor is one of another", "circuit set cot bed.yaml");
	has_error("which is named", "has circuits of group bed, not of cot");
	expect(0, "entries of a fabric file", "circuit set bed bed.yaml");
	check(lines_of(map_of(SWITCH)) == lines_of(own) + 5, "are made");
	expect(0, "another group", "circuit add h6.p0 h7.p0 --name cot");
	all = map_of(SWITCH);
	expect(0, "all of them", "circuit export -o all");
	check(same(read_text("all"), "group bed\nh2.p0 h3.p0\nh2.p1 h3.p1\nh4.p0 h5.p0 one-way\n"
		   "group cot\nh6.p0 h7.p0\n"), "are lines");
	expect(0, "are gone", "circuit remove bed");
	expect(0, "and made again", "circuit import all");
	check(has_only(all), "as they were");
	expect(0, "twice", "circuit import all");
	check(has_only(all), "is once");
	write_file("all", "%s", with(read_text("all"), "cot\nh6", "tot\nh6"));
	expect(75, "of one whose port another has", "circuit import all");
	has_error("it is said which", "group tot, the 1 before it are there: h6.p0 is held");
	write_file("all", "h2.p0 h3.p0\n");
	expect(65, "a file without groups", "circuit import all");
	write_file("all", "group x\nh2.p0\n");
	expect(65, "a line that is none", "circuit import all");
	has_error("has its place", "all:2:1: expected two ports");
	write_file("all", "- { from: h2.p0 }\n");
	expect(65, "an entry that is none", "circuit set bed all");
	has_error("too", "all:1:3: circuit 1: key 'to' is missing");
	check(has_only(all = map_of(SWITCH)), "nothing was made");
}

/* Whose circuits they are: two orchestrators and root. */
static void tell_circuits_of_others(void)
{
	const char *bed;

	sim_set_user(4001);
	expect(0, "a user's circuits", "circuit add h2.p0 h3.p0 --name bed --lease 1h");
	bed = map_of(SWITCH);
	sim_set_user(4002);
	expect(75, "another may not have their ports", "circuit add h3.p0 h4.p0");
	has_error("and hears whose they are", "h3.p0 is held by uid 4001 \\(job bed\\) until 2");
	expect(75, "the same circuits are not his", "circuit add h2.p0 h3.p0");
	write_file("bed", "h4.p0 h5.p0\n");
	expect(77, "nor can he make them others", "circuit set bed bed");
	expect(77, "remove them", "circuit remove bed");
	expect(77, "keep them longer", "circuit renew bed 9h");
	expect(77, "or take them", "circuit add h3.p0 h4.p0 --name his --mode update");
	check(has_only(bed) && state_is("bed", "running"), "they are as they were");
	sim_set_user(4001);
	expect(0, "who asked for them keeps them longer", "circuit renew bed 2h");
	sim_set_user(0);
	expect(75, "an operator does not take them by chance", "circuit add h3.p0 h4.p0");
	expect(0, "but if he says so", "circuit add h3.p0 h4.p0 --name his --mode update");
	check(state_is("bed", "ended") &&
	      same(problem_of("bed"), "its ports are taken for job his"), "they end as a whole");
	check(has_light(own) && lines_of(map_of(SWITCH)) == lines_of(own) + 2, "and are gone");
	expect(75, "but not those of the fabric file",
	       "circuit add h0.p0 h5.p0 --name more --mode update");
	sim_set_user(4002);
	expect(77, "an operator's are no other's", "circuit remove his");
	sim_set_user(0);
	expect(0, "they are removed", "circuit remove his");
	check(has_only(own), "whole");
}

/* Ports of several lanes, by labels, and on two switches that fibres join. */
static void tell_circuits_over(void)
{
	write_file("lab.yaml",
		   "weft: 1\nfabric: lab\nhosts:\n"
		   "  - { name: dut, ports: 'p[0-1]', rate: 100Gbps, reactivation: 1ms, "
		   "label: Chassis, port-labels: [Card1/Port1, Karte1/Tür2] }\n"
		   "  - { name: 'l[0-1]', ports: p0, lanes: 2, rate: 100Gbps, reactivation: 1ms }\n"
		   "  - { name: far, ports: 'p[0-1]', rate: 100Gbps, reactivation: 1ms }\n"
		   "switches:\n%s0, address: '127.0.0.1:5000'%s%s1, address: '127.0.0.1:5001'%s"
		   "fibres:\n  - { from: 'dut.p[0-1]', to: 'ocs0.[1-2]' }\n"
		   "  - { from: 'l0.p0-[1-2]', to: 'ocs0.[3-4]' }\n"
		   "  - { from: 'l1.p0-[1-2]', to: 'ocs0.[5-6]' }\n"
		   "  - { from: 'far.p[0-1]', to: 'ocs1.[1-2]' }\n"
		   "  - { from: 'ocs0.[7-8]', to: 'ocs1.[7-8]' }\n",
		   "  - { name: ocs", ", size: 16x16, driver: polatis-scpi, timeout: 1s, options: "
		   "{ gap_ms: 1, settle_ms: 20 } }\n", "  - { name: ocs", ", size: 16x16, driver: "
		   "polatis-scpi, timeout: 1s, options: { gap_ms: 1, settle_ms: 20 } }\n");
	expect(0, "two switches", "apply -f lab.yaml");
	expect(0, "a circuit over both, by labels",
	       "circuit add Chassis.Card1/Port1 far.p0 --name over");
	check(lines_of(map_of("ocs0")) == 2 && lines_of(map_of("ocs1")) == 2, "is there");
	check(same(ask("jobs.0.circuits.0.from", "job list"), "dut.p0"), "by its ports' names");
	expect(0, "by names", "circuit add far.p0 dut.p0");
	has_error("it is the same", "nothing changed: group over");
	expect(65, "lanes that differ", "circuit add dut.p1 l0.p0 --name bad");
	expect(0, "as many of them", "circuit add l0.p0 l1.p0 --name wide");
	check(lines_of(map_of("ocs0")) == 6, "are joined, one by one");
	expect(75, "a lane of it is held", "circuit add dut.p1 l1.p0-2 --name bad");
	expect(0, "the other fibre", "circuit add 'dut.Karte1/Tür2' far.p1 --name second");
	check(lines_of(map_of("ocs1")) == 4, "has room");
	expect(0, "one of them ends", "circuit remove far.p0");
	check(lines_of(map_of("ocs0")) == 6 && lines_of(map_of("ocs1")) == 2,
	      "and its light on either switch");
	expect(0, "the others are there, and no more", "verify");
}

/* Of a job in the fabric file, and of a request. */
static void tell_edge_list(void)
{
	write_file("edges.txt", "# three in a ring\n0 1\n1 2\n2 0\n");
	write_file("edges.yaml", "%s%s", fabric, "  - { name: ring, nodes: 'h[2-4]', collective: "
		   "allgather, size: 1MB, topology: edges.txt }\n");
	expect(0, "a fabric whose topology is a file", "apply -f edges.yaml");
	check(lines_of(map_of(SWITCH)) == lines_of(own) + 3, "has its arcs");
	expect(2, "as planned without weftd", "plan --offline -f edges.yaml");
	expect(0, "a request, too", "job request pair --nodes h5,h6,h7 -c allgather --size 1MB "
	       "-t edges.txt");
	check(lines_of(map_of(SWITCH)) == lines_of(own) + 6, "has them");
	write_file("edges.txt", "0 1\n1 x\n");
	expect(65, "a line that is no arc", "apply -f edges.yaml");
	has_error("has its place", "edges.txt:2: ");
	write_file("edges.txt", "0 1 2\n1 2\n2 0\n");
	expect(65, "capacities", "job request c --nodes h5,h6,h7 -c allgather --size 1MB "
	       "-t edges.txt");
	has_error("are not supported", "edges.txt: arc 0 1 has a capacity, latency or cost: not");
	write_file("edges.yaml", "%s%s", fabric, "  - { name: ring, nodes: 'h[2-4]', collective: "
		   "allgather, size: 1MB, topology: none.txt }\n");
	expect(65, "a file that is not there", "check edges.yaml");
	has_error("is told at its name", "edges.yaml:11:80: topology: none.txt: No such file");
}

static void tell_circuits_killed(void)
{
	struct command *c;

	control(SWITCH, "fault slow=100");
	expect(0, "a group", "circuit add h2.p0 h3.p0 --name bed");
	write_file("bed", "h4.p0 h5.p0\n");
	c = begin("circuit set bed bed");
	await(10, "becomes another on a slow switch",
	      same(ask("changes.0.outcome", "history -n 1"), "running"));
	crash_weftd();
	control(SWITCH, "clear");
	finish(c);
	await(60, "of which one is left after a crash",
	      same(ask("jobs.*.state", "job list"), "running"));
	expect(0, "and its light is there, and no other", "verify");
	expect(0, "it is removed", "circuit remove bed");
	check(has_only(own), "whole");
}

/* A change that ends one group and makes another is left half done. */
static void tell_circuits_half(void)
{
	const int n = lines_of(own);
	struct command *c, *later;

	expect(0, "a group", "circuit add h2.p0 h3.p0 --name old");
	control(SWITCH, "fault slow=200");
	c = begin("circuit add h4.p0 h5.p0 --name other");
	await(10, "a change is under way", state_is("other", "starting"));
	begin("circuit remove old");
	later = begin("circuit add h2.p1 h4.p1 --name new --request-id n");
	finish(c);
	await(20, "old light goes in the next one",
	      state_is("new", "starting") && lines_of(map_of(SWITCH)) == n + 2);
	crash_weftd();
	check(lines_of(map_of(SWITCH)) == n + 2, "and weftd, before there is new light");
	finish(later);
	control(SWITCH, "clear");
	expect(0, "a third group goes its own way", "circuit add h6.p0 h7.p0 --name third");
	expect(0, "it is made after all", "circuit add h2.p1 h4.p1 --name new --request-id n");
	check(lines_of(map_of(SWITCH)) == n + 6, "and there");
	expect(0, "as all that should be, and no more", "verify");
}

/* What is meant for a group whose change is open is what was committed, not that with what was to
 * be: a port would have two circuits then. */
static void tell_circuits_stuck(void)
{
	const char *bed;

	expect(0, "a group", "circuit add h2.p0 h3.p0 h4.p0 h5.p0 --name bed");
	bed = map_of(SWITCH);
	write_file("bed", "h2.p0 h6.p0\nh4.p0 h7.p0\n");
	control(SWITCH, "fault refuse-port=i8");
	expect(65, "it becomes another, and can go neither on nor back", "circuit set bed bed");
	check(!has_light(bed), "half of it is dark");
	expect(0, "another group goes its own way", "circuit add h3.p1 h5.p1 --name other");
	control(SWITCH, "clear");
	expect(2, "the first is what it was", "verify");
	has("but for what is dark", "missing +in 9 -> out 11 ");
	expect(0, "which is repaired", "apply -f fabric.yaml");
	expect(0, "and then all is there", "verify");
	check(has_light(bed) && lines_of(map_of(SWITCH)) == lines_of(bed) + 2, "and no more");
}

/* Who asks again after a crash waits until the devices were asked. */
static void tell_circuits_unread(void)
{
	static const char ask_again[] = "circuit add h2.p0 h3.p0 --name bed --request-id r1";

	expect(0, "a group", "%s", ask_again);
	control(SWITCH, "fault slow=500");
	crash_weftd();
	check(same(ask("jobs.0.circuits.0.problem", "job list"),
		   "is not known, as its device does not answer"), "not known after a crash");
	expect(0, "asked for again", "%s", ask_again);
	has("it is told when it was read", " read-back ");
	control(SWITCH, "clear");
	control(SWITCH, "fault silence");
	crash_weftd();
	expect(2, "a device does not answer: no success", "%s", ask_again);
	has("but its state", " running +unverified ");
	control(SWITCH, "clear");
}

/* ---- the table ---- */

static void (*words)(void);

static void with_fabric(void)
{
	write_file("fabric.yaml", "%s", fabric);
	expect(65, "nothing was ever applied", "job request --count 2 -c allgather --size 1MB");
	expect(0, "the operator's configuration", "apply -f fabric.yaml");
	own = map_of(SWITCH);
	words();
}

static void begin_story(void (*story)(void))
{
	struct scenario s;

	scenario_simple(&s);
	s.devices[0].size = "16x16";
	s.weftd_options[0] = "--access";
	s.weftd_options[1] = "access";
	write_file("access", "operator user 0\norchestrator user *\n");
	words = story;
	tell(&s, with_fabric);
}

static void run_circuits_over(void)
{
	struct scenario s;

	scenario_simple(&s);
	s.n_devices = 2;
	s.devices[0].size = "16x16";
	s.devices[1] = s.devices[0];
	tell(&s, tell_circuits_over);
}

#define STORY(name)                              \
	static void run_##name(void)             \
	{                                        \
		begin_story(tell_##name);        \
	}

STORY(place)
STORY(queue)
STORY(pushed_out)
STORY(time)
STORY(limit)
STORY(away)
STORY(not_made)
STORY(operator)
STORY(dead)
STORY(drained)
STORY(circuits)
STORY(circuits_killed)
STORY(circuits_unread)
STORY(circuits_stuck)
STORY(circuits_half)
STORY(circuit_files)
STORY(edge_list)
STORY(circuits_of_others)
STORY(together)
STORY(together_killed)
STORY(together_impossible)
STORY(together_cancelled)

const struct story job_stories[] = {
	{ "job-place", "a job on free hosts, and requests that cannot be", run_place },
	{ "job-queue", "jobs that wait for room, over a crash", run_queue },
	{ "job-pushed-out", "a more important job", run_pushed_out },
	{ "job-time", "a job that ends by itself, and one asked for twice", run_time },
	{ "job-limit", "leases that are no longer than the fabric allows", run_limit },
	{ "job-away", "a switch that goes away while jobs end", run_away },
	{ "job-not-made", "a switch that does not make what it should, or slowly", run_not_made },
	{ "job-operator", "the operator changes his own job", run_operator },
	{ "job-dead", "light that has died under one job", run_dead },
	{ "job-drained", "drained hosts get no new job", run_drained },
	{ "job-circuits", "circuits from port to port, and who may not have them", run_circuits },
	{ "job-circuits-killed", "weftd ends while a group becomes another", run_circuits_killed },
	{ "job-circuits-half", "a change of groups that is left half done", run_circuits_half },
	{ "job-circuits-unread", "circuits whose devices are not read yet", run_circuits_unread },
	{ "job-circuits-stuck", "a change of a group that can go neither on nor back",
	  run_circuits_stuck },
	{ "job-circuit-files", "groups of circuits in files, out and in", run_circuit_files },
	{ "job-circuits-of-others", "who may change, keep and take circuits",
	  run_circuits_of_others },
	{ "job-circuits-over", "lanes, labels and fibres between switches", run_circuits_over },
	{ "job-edge-list", "topologies in files of their own", run_edge_list },
	{ "job-together", "requests that wait go into one change", run_together },
	{ "job-together-killed", "weftd ends in a change of several jobs", run_together_killed },
	{ "job-together-impossible", "one job of a change cannot be", run_together_impossible },
	{ "job-together-cancelled", "one job of a change is given back, and a change taken back",
	  run_together_cancelled },
	{ 0 },
};
