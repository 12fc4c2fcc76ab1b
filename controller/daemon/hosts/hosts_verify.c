/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What hosts of this machine report of the circuits that a change has made: their
 * link comes up in the time that it is known to take, frames of the right port
 * arrive, and errors are not counted meanwhile. Asked again every few
 * milliseconds, never longer than the slowest of the ports may need.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/daemon/hosts/private.h"
#include "lib/base/alloc.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/number/units.h"

#define AGAIN_MS 25
#define REPORT_NS INT64_C(1000000000)
#define COUNT_NS INT64_C(300000000)	/* errors are counted for so long */
#define SURE 2		/* rounds that the frames of a wrong
			 * neighbour must arrive in */

/* ---- a question of the engine --------------------------------------------- */

bool verifier_report(struct host_verifier *p, const char *text)
{
	int64_t now = clk_now_ns();

	if (now - p->reported_ns >= REPORT_NS) {
		p->reported_ns = now;
		return p->q->progress(p->q, text);
	}
	return p->q->progress(p->q, NULL);
}

void verifier_answer(struct host_verifier *p)
{
	struct apply_question *q = p->q;

	part_timer_stop(p->timer);
	free(p->paths);
	p->paths = NULL;
	p->q = NULL;
	q->done(q);
}

void verifier_retry(struct host_verifier *p)
{
	part_timer_start(p->timer, AGAIN_MS);
}

/* False: the question was answered, as no host can be asked. */
static bool begin(struct host_verifier *p, struct apply_question *q, bool draining)
{
	hosts_settle(p->hosts);
	p->q = q;
	p->draining = draining;
	p->begun_ns = p->reported_ns = clk_now_ns();
	p->paths = x_new((size_t)q->n + 1, sizeof(*p->paths));
	if (p->hosts->set) {
		hosts_refresh(p->hosts->set, q->plan->fabric);
		return true;
	}
	for (int i = 0; i < q->n; i++) {
		snprintf(q->paths[i].why, sizeof(q->paths[i].why), "no host is of this machine");
	}
	verifier_answer(p);
	return false;
}

/* ---- what can be asked --------------------------------------------------- */

/* Notes in the path why a port cannot be asked. */
static void cannot(struct apply_path *p, const struct host_set *h, int port, const char *why)
{
	snprintf(p->why, sizeof(p->why), "%s: %s", h->names[port], why);
}

/* If not, the path says why. */
static bool can_ask(const struct host_set *h, struct apply_path *p, int port, bool sends)
{
	const struct host_port *v = &h->ports[port];
	const struct host_link *l = sends ? &v->tx : &v->rx;

	if (v->local < 0) {
		cannot(p, h, port, "its host is another machine");
	} else if (h->v[v->local].frame_fd < 0) {
		cannot(p, h, port, h->v[v->local].problem);
	} else if (!l->ifindex) {
		cannot(p, h, port, "it has no netdev");
	} else {
		return true;
	}
	return false;
}

/* Light that came while the devices were still read is learned at once. */
static void expect(struct host_verifier *p, int i)
{
	struct apply_path *path = &p->q->paths[i];
	struct host_set *h = p->hosts->set;
	struct host_port *v = &h->ports[path->arc.rx_port];

	p->paths[i].state = PATH_DONE;
	if (!can_ask(h, path, path->arc.rx_port, false)) {
		return;
	}
	v->lit_ns = p->q->lit_ns;
	if (v->up_ns >= p->q->began_ns && v->rx.carrier) {
		path->up_ns = v->up_ns;
		hosts_learn(h, path->arc.rx_port, v->up_ns);
	}
	if (p->q->want >= APPLY_NEIGHBOUR) {
		p->paths[i].state = PATH_WAITS;
		p->paths[i].by_ns = p->q->lit_ns +
				    hosts_max_wait_ns(p->hosts, p->q->plan->fabric,
						      path->arc.rx_port);
	}
}

/* ---- answers ------------------------------------------------------------- */

/* The path is done, and has failed at this layer; why is there already. */
static void fail(struct host_verifier *p, int i, enum apply_level layer)
{
	p->q->paths[i].level = APPLY_UNVERIFIED;
	p->q->paths[i].failed = layer;
	p->paths[i].state = PATH_DONE;
}

/* Waiting is over: what there is, and what is missing. */
static void give_up(struct host_verifier *p, int i)
{
	struct apply_path *path = &p->q->paths[i];
	const struct host_set *h = p->hosts->set;
	struct host_port *v = &p->hosts->set->ports[path->arc.rx_port];
	struct err err = { 0 };
	char waited[32];

	unit_human(UNIT_NS, (double)(clk_now_ns() - p->q->lit_ns), waited, sizeof(waited));
	if (v->rx.carrier) {
		snprintf(path->why, sizeof(path->why), "%s has link, but no "
			 "frame of %s arrives in %s",
			 h->names[path->arc.rx_port],
			 h->names[path->arc.tx_port], waited);
	} else {
		host_health(h->v[v->local].net, &v->rx, &v->health, &err);
		snprintf(path->why, sizeof(path->why), "%s has no link %s "
			 "after %s was connected to it%s%s",
			 h->names[path->arc.rx_port], waited,
			 h->names[path->arc.tx_port],
			 v->health.ext_state ? ": " : "",
			 v->health.ext_state ? v->health.ext_state : "");
	}
	fail(p, i, APPLY_NEIGHBOUR);
}

/* Bad frames, and code words that forward error correction has lost. */
static uint64_t errors_of(const struct host_verifier *p, int port)
{
	const struct host_set *h = p->hosts->set;
	const struct host_port *v = &h->ports[port];
	uint64_t lost = 0;

	/* What ethtool does not know counts as none. */
	host_fec_lost(h->v[v->local].net, &v->rx, &lost);
	return v->rx.rx_errors + lost;
}

static void on_neighbour(struct host_verifier *p, int i)
{
	struct apply_path *path = &p->q->paths[i];
	struct host_port *v = &p->hosts->set->ports[path->arc.rx_port];
	int64_t now = clk_now_ns();

	/* The frame is the first that was sent, so the link may have been up
	 * for long. */
	path->up_ns = path->up_ns ? path->up_ns : v->up_ns >= p->q->began_ns ? v->up_ns : now;
	v->lit_ns = 0;
	v->from = v->heard = path->arc.tx_port;
	v->asked = true;
	v->mute = false;
	path->level = APPLY_NEIGHBOUR;
	path->why[0] = '\0';
	p->paths[i].state = PATH_DONE;
	if (p->q->want >= APPLY_ERROR_FREE) {
		p->paths[i].state = PATH_COUNTS;
		p->paths[i].by_ns = now + COUNT_NS;
		p->paths[i].counter = errors_of(p, path->arc.rx_port);
	}
}

/* One round of waiting for the frames of the right port. */
static void check_neighbour(struct host_verifier *p, int i)
{
	struct apply_path *path = &p->q->paths[i];
	struct host_set *h = p->hosts->set;
	const struct host_port *v = &h->ports[path->arc.rx_port];
	bool late = clk_now_ns() >= p->paths[i].by_ns;

	if (v->received == path->arc.tx_port) {
		on_neighbour(p, i);
	} else if (v->received >= 0 && ++p->paths[i].wrong >= SURE) {
		snprintf(path->why, sizeof(path->why), "%s receives %s instead of %s",
			 h->names[path->arc.rx_port], h->names[v->received],
			 h->names[path->arc.tx_port]);
		fail(p, i, APPLY_NEIGHBOUR);
	} else if (v->rx.carrier &&
		   !can_ask(h, path, path->arc.tx_port, true)) {
		/* The sender cannot be identified: link is all there is. */
		path->up_ns = v->up_ns >= p->q->began_ns ? v->up_ns : 0;
		p->paths[i].state = late ? PATH_DONE : PATH_WAITS;
	} else if (late) {
		give_up(p, i);
	}
}

/* The link is up: no error may be counted for a moment. */
static void check_errors(struct host_verifier *p, int i)
{
	struct apply_path *path = &p->q->paths[i];
	uint64_t now = errors_of(p, path->arc.rx_port);

	if (now != p->paths[i].counter) {
		snprintf(path->why, sizeof(path->why), "%s counts %llu errors "
			 "in the signal of %s",
			 p->hosts->set->names[path->arc.rx_port],
			 (unsigned long long)(now - p->paths[i].counter),
			 p->hosts->set->names[path->arc.tx_port]);
		fail(p, i, APPLY_ERROR_FREE);
		path->level = APPLY_NEIGHBOUR;
	} else if (clk_now_ns() >= p->paths[i].by_ns) {
		path->level = APPLY_ERROR_FREE;
		p->paths[i].state = PATH_DONE;
	}
}

/* How many are not done, and one of them as text. */
static int waiting(const struct host_verifier *p, char *text, size_t size)
{
	const struct host_set *h = p->hosts->set;
	int n = 0;

	for (int i = 0; i < p->q->n; i++) {
		const struct apply_path *path = &p->q->paths[i];

		if (p->paths[i].state != PATH_DONE && n++ == 0) {
			snprintf(text, size, "%s, %s", h->names[path->arc.rx_port],
				 p->paths[i].state == PATH_COUNTS ?
				 "errors are counted" :
				 h->ports[path->arc.rx_port].rx.carrier ?
				 "no frame yet" : "no link yet");
		}
	}
	return n;
}

/* The fabric's hosts are others now, or gone: the answer is what is known. */
static bool is_lost(const struct host_verifier *p)
{
	return !p->hosts->set || strcmp(p->hosts->set->hash, p->q->plan->fabric->hash) != 0;
}

/* One round over all paths of the question; the last one answers it. Frames are sent
 * again each time, as the first may have come before the link was up. */
static void tick(struct host_verifier *p)
{
	char one[128], text[192];
	int n;

	if (is_lost(p)) {
		verifier_answer(p);
		return;
	}
	hosts_refresh(p->hosts->set, p->q->plan->fabric);
	for (int i = 0; i < p->q->n; i++) {
		if (p->paths[i].state == PATH_WAITS) {
			check_neighbour(p, i);
		} else if (p->paths[i].state == PATH_COUNTS) {
			check_errors(p, i);
		}
	}
	n = waiting(p, one, sizeof(one));
	snprintf(text, sizeof(text), "%d of %d lightpaths are waited for: %s",
		 n, p->q->n, n ? one : "");
	if (n == 0 || verifier_report(p, text)) {
		verifier_answer(p);
		return;
	}
	hosts_send(p->hosts->set);
	verifier_retry(p);
}

static void on_time(void *arg)
{
	struct host_verifier *p = arg;

	if (p->q && p->draining) {
		hosts_drain_check(p);
	} else if (p->q) {
		tick(p);
	}
}

/* The engine asks how far the circuits of a stage are proven. */
static void verify(struct apply_question *q, void *arg)
{
	struct host_verifier *p = arg;

	if (!begin(p, q, false)) {
		return;
	}
	for (int i = 0; i < q->n; i++) {
		expect(p, i);
	}
	if (q->want < APPLY_NEIGHBOUR) {
		verifier_answer(p);
		return;
	}
	hosts_send(p->hosts->set);
	verifier_retry(p);
}

/* ---- draining, and back -------------------------------------------------- */

/* The engine wants the traffic off circuits that it is about to take away. */
static void drain(struct apply_question *q, void *arg)
{
	struct host_verifier *p = arg;

	if (begin(p, q, true)) {
		hosts_drain_begin(p);
	}
}

/* The circuits of the stage carry traffic again, except those that failed. */
static void verified(const struct apply_question *q, void *arg)
{
	struct host_verifier *p = arg;
	struct plan_arc *arcs;
	int n, kept = 0;

	if (!p->moved || !p->hosts->set) {
		return;
	}
	plan_arcs_after(q->plan, q->stage, &arcs, &n);
	for (int i = 0; i < n; i++) {
		bool failed = false;

		for (int k = 0; k < q->n; k++) {
			failed |= q->paths[k].failed && q->paths[k].arc.tx_port == arcs[i].tx_port;
		}
		if (!failed) {
			arcs[kept++] = arcs[i];
		}
	}
	hosts_install(p->hosts->set, q->plan->fabric, arcs, kept);
	free(arcs);
}

/* The engine no longer wants the answer. */
static void withdraw(void *arg)
{
	struct host_verifier *p = arg;

	if (p->q) {
		part_timer_stop(p->timer);
		free(p->paths);
		p->paths = NULL;
		p->q = NULL;
	}
}

/* ---- life ---------------------------------------------------------------- */

void verifier_new(struct hosts *hosts)
{
	struct host_verifier *p = x_new(1, sizeof(*p));
	const struct apply_hosts asked = { verify, drain, verified, withdraw, p };

	p->timer = part_timer_new(hosts->env, on_time, p);
	p->hosts = hosts;
	hosts->verifier = p;
	apply_set_hosts(hosts->env->apply, &asked);
}

void hosts_begin_change(struct hosts *hosts)
{
	const struct model_fabric *f = apply_fabric(hosts->env->apply);
	const struct host_set *before = hosts->set;

	hosts_settle(hosts);
	hosts->verifier->moved = false;
	hosts->verifier->remade = hosts->set != before;
	if (hosts->set) {
		hosts->set->renumbered &= hosts->verifier->remade;
		hosts_refresh(hosts->set, f);
	}
}

bool hosts_moved_routes(const struct hosts *hosts)
{
	return hosts->verifier->moved || hosts->verifier->remade;
}

void verifier_free(struct host_verifier *p)
{
	withdraw(p);
	part_timer_free(p->timer);
	free(p);
}
