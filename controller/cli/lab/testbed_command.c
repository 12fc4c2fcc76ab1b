/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weft testbed: a fabric of network namespaces, and looking at it.
 *
 * "up" builds one namespace a host and links for the fibres, as
 * controller/testbed and the drivers of Linux do it; all other verbs open a
 * testbed that stands (cli_open_testbed) and look at it or change it. They
 * compare what arrives with what the circuits, the programs and the fibres as
 * written promise, and exit with 2 where it differs. Sending and receiving
 * happen in the hosts' namespaces, so most verbs need root. Ends are counted
 * as in testbed.h: first the ports of hosts, then the resonators of rings.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "controller/cli/core/private.h"
#include "controller/testbed/testbed.h"
#include "lib/base/alloc.h"
#include "lib/base/vec.h"

/* How long an answer is waited for after the last frame was sent. */
#define PATIENCE_MS 200
#define NS_PER_MS 1000000

/* ---- up and down ---- */

/* Progress of "up" on a terminal: one line, erased at the end. */
static void draw(int done, int total, void *arg)
{
	(void)arg;
	progress_clock_stop();
	fprintf(stderr, "\r\033[K%d/%d namespaces and fibres", done, total);
	if (done == total) {
		fputs("\r\033[K", stderr);
	}
}

/* Faults of one option: fibres or ports apart by commas, two a fault for
 * swaps. */
static int read_faults(const struct model_fabric *f, const char *text, enum testbed_fault_kind kind,
		       struct testbed_fault *faults, int max, int *n, struct err *err)
{
	bool whole = kind == TESTBED_REVERSE, second = false;
	char **names = NULL;
	int n_names = 0, rc;

	if (!text) {
		return 0;
	}
	rc = model_expand(text, max, &names, &n_names, err);
	if (rc == 0 && kind == TESTBED_SWAP && n_names % 2) {
		rc = err_set(err, WEFT_EUSAGE, "--swap takes pairs of fibres");
	}
	for (int i = 0; rc == 0 && i < n_names; i++) {
		struct testbed_fibre fibre;

		rc = testbed_find_fibre(f, names[i], whole, &fibre, err);
		if (rc) {
			break;
		}
		/* The second fibre of a pair completes the fault begun
		 * before. */
		if (second) {
			faults[*n - 1].b = fibre;
		} else {
			faults[(*n)++] = (struct testbed_fault){ kind, fibre,
								 fibre };
		}
		second = kind == TESTBED_SWAP && !second;
	}
	if (names) {
		model_names_free(names);
	}
	return rc;
}

/* --rate, --swap, --dead and --reverse. o->faults is freed by the caller,
 * also after an error. */
static int read_options(const struct cli *c, const struct model_fabric *f,
			struct testbed_options *o, struct err *err)
{
	int max = 2 * f->n_ports;
	struct testbed_fault *faults = x_new((size_t)max * 3 + 1, sizeof(*faults));
	int rc = cli_opt_unit(c, "rate", UNIT_BPS, &o->rate_bps, err);

	o->faults = faults;
	if (rc == 0 && o->rate_bps > HOST_MAX_RATE_BPS) {
		rc = err_set(err, WEFT_EUSAGE, "--rate: up to %lld bit/s",
			     (long long)HOST_MAX_RATE_BPS);
	}
	if (rc == 0) {
		rc = read_faults(f, cli_opt(c, "swap"), TESTBED_SWAP, faults,
				 max, &o->n_faults, err);
	}
	if (rc == 0) {
		rc = read_faults(f, cli_opt(c, "dead"), TESTBED_DEAD, faults,
				 max, &o->n_faults, err);
	}
	if (rc == 0) {
		rc = read_faults(f, cli_opt(c, "reverse"), TESTBED_REVERSE,
				 faults, max, &o->n_faults, err);
	}
	return rc;
}

/* {fabric, built, hosts, switches, ports, resonators}; built is false when it
 * stood already. */
static int print_up(struct cli *c, const struct model_fabric *f, bool built, struct err *err)
{
	struct out *o = out_new(c->format);

	out_str(o, "fabric", f->name);
	out_bool(o, "built", built);
	out_int(o, "hosts", f->n_hosts);
	out_int(o, "switches", f->n_devices);
	out_int(o, "ports", f->n_ports);
	out_int(o, "resonators", testbed_n_ends(f) - f->n_ports);
	return cli_print(o, err);
}

int cmd_testbed_up(struct cli *c, struct err *err)
{
	bool bar = isatty(STDERR_FILENO) && c->talk == CLI_NORMAL;
	struct testbed_options o = { 0 };
	struct model_fabric *f = NULL;
	bool built = false;
	int rc = cli_load_fabric(c->argv[0], &f, err);

	if (rc == 0) {
		rc = read_options(c, f, &o, err);
	}
	if (rc == 0) {
		rc = testbed_up(f, &o, bar ? draw : NULL, NULL, &built, err);
	}
	if (rc == 0) {
		rc = print_up(c, f, built, err);
	}
	free((void *)o.faults);
	model_free(f);
	return rc;
}

/* {fabric, removed}: how many namespaces. Works also on the rest of a testbed
 * that was half removed. */
int cmd_testbed_down(struct cli *c, struct err *err)
{
	struct model_fabric *f = NULL;
	struct out *o;
	int n = 0, rc = cli_load_fabric(c->argv[0], &f, err);

	if (rc == 0) {
		rc = testbed_down(f->name, &n, err);
	}
	if (rc == 0) {
		o = out_new(c->format);
		out_str(o, "fabric", f->name);
		out_int(o, "removed", n);
		rc = cli_print(o, err);
	}
	model_free(f);
	return rc;
}

/* ---- what all others begin with ---- */

int cli_open_testbed(const char *path, struct model_fabric **f, struct testbed **t, struct err *err)
{
	int rc = cli_load_fabric(path, f, err);

	if (rc == 0) {
		rc = testbed_check(*f, err);
	}
	if (rc) {
		return rc;
	}
	return testbed_open(*f, t, err);
}

void cli_close_testbed(struct model_fabric *f, struct testbed *t)
{
	testbed_close(t);
	model_free(f);
}

/* An end by its name, null for -1. */
static void out_end_name(struct out *o, const char *key, const struct model_fabric *f, int end)
{
	char name[TESTBED_NAME_MAX];

	out_str(o, key, end < 0 ? NULL : testbed_end_name(f, end, name));
}

static void out_pair(struct out *o, const struct model_fabric *f, int from, int to)
{
	char a[TESTBED_NAME_MAX], b[TESTBED_NAME_MAX];

	out_fmt(o, NULL, "%s -> %s", testbed_end_name(f, from, a), testbed_end_name(f, to, b));
}

/* ---- status ---- */

/* {port, link, known_by, rx_dbm, tx_dbm, carrier_changes, light_from}, and
 * for programs why a better source of the link's state is not there. */
static int out_port(struct out *o, struct testbed *t, int end, int from, struct err *err)
{
	const struct model_fabric *f = t->fabric;
	const struct host_link *l = &t->rx[end];
	struct host_health health;
	int rc = host_health(t->hosts[testbed_end(f, end).host], l, &health, err);

	if (rc) {
		return rc;
	}
	out_object(o, NULL);
	out_end_name(o, "port", f, end);
	out_bool(o, "link", health.link);
	out_str(o, "known_by", host_source_name(health.source));
	out_machine_only(o);
	out_str(o, "not_by", health.why[0] ? health.why : NULL);
	out_machine_only(o);
	out_str(o, "reason", health.ext_state);
	if (health.has_power) {
		out_real(o, "rx_dbm", health.rx_mdbm / 1000.0);
		out_real(o, "tx_dbm", health.tx_mdbm / 1000.0);
	}
	out_int(o, "carrier_changes", l->carrier_changes);
	out_machine_only(o);
	out_int(o, "carrier_ups", l->carrier_ups);
	out_machine_only(o);
	out_int(o, "carrier_downs", l->carrier_downs);
	out_end_name(o, "light_from", f, from);
	out_end(o);
	return 0;
}

/* {fabric, ports: [...]}: ports with a receiving link, each with the end
 * whose signal it is to receive. */
static int print_status(struct cli *c, struct testbed *t, struct err *err)
{
	struct out *o = out_new(c->format);
	int *from = NULL, rc = testbed_lit(t->fabric, &from, err);

	if (rc == 0) {
		out_str(o, "fabric", t->fabric->name);
		out_array(o, "ports");
		for (int i = 0; rc == 0 && i < t->n_ends; i++) {
			if (t->rx[i].ifindex) {
				rc = out_port(o, t, i, from[i], err);
			}
		}
		out_end(o);
	}
	free(from);
	return cli_print_unless(rc, o, err);
}

/* A link event, if it is of a receive fibre. */
static void say_event(const struct host_link *l, void *arg)
{
	size_t len = strlen(l->name);

	if (len > 3 && strcmp(l->name + len - 3, ".rx") == 0) {
		printf("%s.%.*s %s, %u changes\n", (const char *)arg,
		       (int)len - 3, l->name, l->gone ? "gone" :
		       l->carrier ? "up" : "down", l->carrier_changes);
		fflush(stdout);
	}
}

/* Link events as lines until Ctrl-C; nothing is asked in between. */
static int watch(struct testbed *t, struct err *err)
{
	const struct model_fabric *f = t->fabric;
	struct pollfd *polls = x_new((size_t)f->n_hosts + 1, sizeof(*polls));
	int rc = 0;

	for (int i = 0; rc == 0 && i < f->n_hosts; i++) {
		polls[i].events = POLLIN;
		rc = host_watch(t->hosts[i], &polls[i].fd, err);
	}
	cli_catch_signals();
	while (rc == 0 && !cli_interrupted) {
		/* Looks at the flag each second: a signal may come before
		 * poll(). */
		if (poll(polls, (nfds_t)f->n_hosts, 1000) <= 0) {
			continue;
		}
		for (int i = 0; rc == 0 && i < f->n_hosts; i++) {
			if (polls[i].revents) {
				rc = host_watch_read(t->hosts[i], say_event, f->hosts[i].name, err);
			}
		}
	}
	free(polls);
	return rc;
}

int cmd_testbed_status(struct cli *c, struct err *err)
{
	struct model_fabric *f = NULL;
	struct testbed *t = NULL;
	int rc = cli_open_testbed(c->argv[0], &f, &t, err);

	if (rc == 0) {
		rc = cli_has(c, "watch") ? watch(t, err) : print_status(c, t, err);
	}
	cli_close_testbed(f, t);
	return rc;
}

/* ---- routes and pings ---- */

/* The arcs of the applied jobs, as light on the testbed has them now. *arcs:
 * free(). */
static int get_arcs(const struct model_fabric *f, struct plan_arc **arcs, int *n, struct err *err)
{
	struct plan *p = NULL;
	int rc = testbed_plan(f, &p, err);

	if (rc == 0) {
		plan_arcs(p, arcs, n);
	}
	plan_free(p);
	return rc;
}

/* {arcs, routes}: a host route for each neighbour over the port that sends to
 * it. */
int cmd_testbed_route(struct cli *c, struct err *err)
{
	struct model_fabric *f = NULL;
	struct testbed *t = NULL;
	struct plan_arc *arcs = NULL;
	struct out *o;
	int n = 0, routes = 0, rc = cli_open_testbed(c->argv[0], &f, &t, err);

	if (rc == 0) {
		rc = get_arcs(f, &arcs, &n, err);
	}
	if (rc == 0) {
		rc = testbed_route(t, arcs, n, &routes, err);
	}
	if (rc == 0) {
		o = out_new(c->format);
		out_int(o, "arcs", n);
		out_int(o, "routes", routes);
		rc = cli_print(o, err);
	}
	free(arcs);
	cli_close_testbed(f, t);
	return rc;
}

/* True when light leads from one host to the other. */
static bool has_arc(const struct model_fabric *f,
		    const struct plan_arc *arcs, int n, int from, int to)
{
	for (int i = 0; i < n; i++) {
		if (f->ports[arcs[i].tx_port].host == from &&
		    f->ports[arcs[i].rx_port].host == to) {
			return true;
		}
	}
	return false;
}

/* Pairs of hosts that have an arc and did not answer, or the reverse. */
static int out_wrong(struct out *o, const struct model_fabric *f, const struct plan_arc *arcs,
		     int n, const bool *answered, bool want, const char *key)
{
	int count = 0;

	out_array(o, key);
	for (int i = 0; i < f->n_hosts * f->n_hosts; i++) {
		int from = i / f->n_hosts, to = i % f->n_hosts;

		if (from != to && has_arc(f, arcs, n, from, to) == want && answered[i] != want) {
			out_object(o, NULL);
			out_str(o, "from", f->hosts[from].name);
			out_str(o, "to", f->hosts[to].name);
			out_end(o);
			count++;
		}
	}
	out_end(o);
	return count;
}

/* {neighbours, answered, silent: [{from, to}], unexpected: [...]}. The last
 * two are what differs from the arcs, and decide the exit code. */
static int print_ping(struct cli *c, const struct model_fabric *f, const struct plan_arc *arcs,
		      int n, const bool *answered, struct err *err)
{
	struct out *o = out_new(c->format);
	int pairs = 0, answers = 0, wrong = 0, rc;

	for (int i = 0; i < f->n_hosts * f->n_hosts; i++) {
		pairs += has_arc(f, arcs, n, i / f->n_hosts, i % f->n_hosts);
		answers += answered[i];
	}
	out_int(o, "neighbours", pairs);
	out_int(o, "answered", answers);
	wrong = out_wrong(o, f, arcs, n, answered, true, "silent");
	wrong += out_wrong(o, f, arcs, n, answered, false, "unexpected");
	rc = cli_print(o, err);
	if (rc) {
		return rc;
	}
	return wrong ? CLI_PENDING : 0;
}

/* answered is a matrix, [from * hosts + to]. */
int cmd_testbed_ping(struct cli *c, struct err *err)
{
	struct model_fabric *f = NULL;
	struct testbed *t = NULL;
	struct plan_arc *arcs = NULL;
	bool *answered = NULL;
	int n = 0, rc = cli_open_testbed(c->argv[0], &f, &t, err);

	if (rc == 0) {
		rc = get_arcs(f, &arcs, &n, err);
	}
	if (rc == 0) {
		answered = x_new((size_t)f->n_hosts * (size_t)f->n_hosts, 1);
		rc = testbed_ping(t, PATIENCE_MS, answered, err);
	}
	if (rc == 0) {
		rc = print_ping(c, f, arcs, n, answered, err);
	}
	free(answered);
	free(arcs);
	cli_close_testbed(f, t);
	return rc;
}

/* ---- probes ---- */

/* "heard": which end's frames arrived where, and how many were lost. */
static void out_heard(struct out *o, const struct model_fabric *f, const struct testbed_probe *p)
{
	out_array(o, "heard");
	for (int i = 0; i < p->n_heard; i++) {
		const struct testbed_heard *h = &p->heard[i];

		out_object(o, NULL);
		out_end_name(o, "from", f, h->from);
		out_end_name(o, "to", f, h->to);
		out_str(o, "at", h->at_tx ? "tx" : "rx");
		out_int(o, "sent", p->sent[h->from]);
		out_int(o, "received", h->received);
		out_int(o, "lost", p->sent[h->from] - h->received);
		out_end(o);
	}
	out_end(o);
}

static bool was_heard(const struct testbed_probe *p, int from, int to)
{
	for (int i = 0; i < p->n_heard; i++) {
		if (p->heard[i].from == from && p->heard[i].to == to && !p->heard[i].at_tx) {
			return true;
		}
	}
	return false;
}

/* Where light as promised does not arrive ("missing"), and where other light
 * does ("unexpected"), among which is what came in by a fibre for sending.
 * Returns their number. */
static int out_differences(struct out *o, const struct model_fabric *f,
			   const int *from, const struct testbed_probe *p)
{
	int n = 0;

	out_array(o, "missing");
	for (int i = 0; i < testbed_n_ends(f); i++) {
		if (from[i] >= 0 && !was_heard(p, from[i], i)) {
			out_pair(o, f, from[i], i);
			n++;
		}
	}
	out_end(o);
	out_array(o, "unexpected");
	for (int i = 0; i < p->n_heard; i++) {
		const struct testbed_heard *h = &p->heard[i];

		if (h->at_tx || from[h->to] != h->from) {
			out_pair(o, f, h->from, h->to);
			n++;
		}
	}
	out_end(o);
	return n;
}

/* With a duration the light may change meanwhile: no verdict then. */
static int print_probe(struct cli *c, const struct model_fabric *f, bool verdict,
		       const struct testbed_probe *p, struct err *err)
{
	struct out *o = out_new(c->format);
	int *from = NULL, wrong = 0, rc = 0;

	if (verdict) {
		rc = testbed_lit(f, &from, err);
	}
	if (rc == 0) {
		out_heard(o, f, p);
	}
	if (rc == 0 && verdict) {
		wrong = out_differences(o, f, from, p);
	}
	free(from);
	rc = cli_print_unless(rc, o, err);
	return rc ? rc : wrong ? CLI_PENDING : 0;
}

/* {heard, missing, unexpected}; with --duration only heard, and exit code
 * 0. */
int cmd_testbed_probe(struct cli *c, struct err *err)
{
	int64_t duration = 0, interval = 10 * NS_PER_MS;
	struct testbed_prober *prober = NULL;
	struct testbed_probe p = { 0 };
	struct model_fabric *f = NULL;
	struct testbed *t = NULL;
	int rc = cli_opt_unit(c, "duration", UNIT_NS, &duration, err);

	if (rc == 0) {
		rc = cli_opt_unit(c, "interval", UNIT_NS, &interval, err);
	}
	if (rc == 0 && (interval < NS_PER_MS || duration < 0)) {
		rc = err_set(err, WEFT_EUSAGE, "--interval: at least 1ms");
	}
	if (rc == 0) {
		rc = cli_open_testbed(c->argv[0], &f, &t, err);
	}
	if (rc == 0) {
		rc = testbed_prober_new(t, &prober, err);
	}
	if (rc == 0) {
		cli_catch_signals();
		testbed_probe(prober, duration / NS_PER_MS, interval / NS_PER_MS, PATIENCE_MS,
			      &cli_interrupted, &p);
		rc = print_probe(c, f, duration == 0, &p, err);
	}
	testbed_probe_fini(&p);
	testbed_prober_free(prober);
	cli_close_testbed(f, t);
	return rc;
}

/* ---- steps of rings ---- */

/* The step that is asked for: by number, else the next one round. */
static int wanted_step(const struct cli *c, const struct testbed_program *p,
		       uint32_t *step, struct err *err)
{
	int64_t to = (p->step + 1) % p->steps;
	int rc = cli_opt_int(c, "to", 0, UINT16_MAX, &to, err);

	*step = (uint32_t)to;
	return rc;
}

/* {job, ring, step, steps}, read back from the testbed. */
static int print_step(struct cli *c, const struct model_fabric *f, const char *job, struct err *err)
{
	struct testbed_program p;
	struct out *o;
	int rc = testbed_program(f, job, &p, err);

	if (rc) {
		return rc;
	}
	o = out_new(c->format);
	out_str(o, "job", job);
	out_str(o, "ring", f->devices[p.ring].name);
	out_int(o, "step", p.step);
	out_int(o, "steps", p.steps);
	return cli_print(o, err);
}

/* One step, lit and probed: what is heard, and what differs from the light
 * that the step is to have; *wrong counts those. */
static int out_step(struct out *o, const struct model_fabric *f, const char *job, uint32_t step,
		    struct testbed_prober *prober, int *wrong, struct err *err)
{
	struct testbed_probe p = { 0 };
	int *from = NULL, rc = testbed_step(f, job, step, err);

	if (rc == 0) {
		rc = testbed_lit(f, &from, err);
	}
	if (rc == 0) {
		testbed_probe(prober, 0, 1, PATIENCE_MS, NULL, &p);
		out_object(o, NULL);
		out_int(o, "step", step);
		out_int(o, "lightpaths", p.n_heard);
		out_machine_only(o);
		out_heard(o, f, &p);
		*wrong += out_differences(o, f, from, &p);
		out_end(o);
	}
	free(from);
	testbed_probe_fini(&p);
	return rc;
}

/* All steps from the first, and back to it. */
static int walk_steps(struct cli *c, const struct model_fabric *f, const char *job,
		      struct testbed_prober *prober, struct err *err)
{
	struct out *o = out_new(c->format);
	struct testbed_program p = { 0 };
	int wrong = 0, rc = testbed_program(f, job, &p, err);

	if (rc == 0) {
		out_str(o, "job", job);
		out_str(o, "ring", f->devices[p.ring].name);
		out_array(o, "steps");
		for (uint32_t k = 0; rc == 0 && k < p.steps; k++) {
			rc = cli_interrupted ?
			     err_set(err, WEFT_ECANCELED, "stopped at step %u",
				     k) :
			     out_step(o, f, job, k, prober, &wrong, err);
		}
		out_end(o);
	}
	if (rc == 0) {
		rc = testbed_step(f, job, 0, err);
	}
	rc = cli_print_unless(rc, o, err);
	return rc ? rc : wrong ? CLI_PENDING : 0;
}

/* Sets one step, or with --all goes through every step and probes all ports
 * in each: {job, ring, steps: [{step, lightpaths, missing, unexpected}]}. The
 * ring is left at step 0 then. */
int cmd_testbed_step(struct cli *c, struct err *err)
{
	struct testbed_prober *prober = NULL;
	struct testbed_program p = { 0 };
	struct model_fabric *f = NULL;
	const char *job = c->argv[1];
	struct testbed *t = NULL;
	uint32_t step = 0;
	int rc = cli_open_testbed(c->argv[0], &f, &t, err);

	if (rc == 0) {
		rc = testbed_program(f, job, &p, err);
	}
	if (rc == 0 && cli_has(c, "all")) {
		cli_catch_signals();
		rc = testbed_prober_new(t, &prober, err);
		if (rc == 0) {
			rc = walk_steps(c, f, job, prober, err);
		}
	} else if (rc == 0) {
		rc = wanted_step(c, &p, &step, err);
		if (rc == 0) {
			rc = testbed_step(f, job, step, err);
		}
		if (rc == 0) {
			rc = print_step(c, f, job, err);
		}
	}
	testbed_prober_free(prober);
	cli_close_testbed(f, t);
	return rc;
}
