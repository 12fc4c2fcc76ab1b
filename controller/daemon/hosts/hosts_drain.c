/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Traffic leaves circuits before a stage takes them away: the hosts get their
 * routes over what stays, then the ports without a circuit must fall silent.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/daemon/hosts/private.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"

#define SILENT_NS INT64_C(100000000)	/* without a frame: that is silence */
#define WAIT_NS INT64_C(2000000000)	/* for it; then the path has failed */

static bool is_drained(const struct apply_question *q, int tx_port)
{
	for (int i = 0; i < q->n; i++) {
		if (q->paths[i].arc.tx_port == tx_port) {
			return true;
		}
	}
	return false;
}

/* Routes over the circuits that stay. If the hosts have other addresses than
 * before, routes to the new ones would lead to no host yet. */
static void move_routes(struct host_verifier *p)
{
	const struct apply_question *q = p->q;
	struct plan_arc *arcs;
	int n, kept = 0;

	if (p->hosts->set->renumbered) {
		return;
	}
	plan_arcs_after(q->plan, q->stage - 1, &arcs, &n);
	for (int i = 0; i < n; i++) {
		if (!is_drained(q, arcs[i].tx_port)) {
			arcs[kept++] = arcs[i];
		}
	}
	hosts_install(p->hosts->set, q->plan->fabric, arcs, kept);
	p->moved = true;
	free(arcs);
}

/* The port whose signal the circuit of path i carries. */
static const struct host_port *sender(const struct host_verifier *p, int i)
{
	return &p->hosts->set->ports[p->q->paths[i].arc.tx_port];
}

void hosts_drain_begin(struct host_verifier *p)
{
	const struct host_set *h = p->hosts->set;
	int64_t now = clk_now_ns();
	int n = 0;
	char text[96];

	for (int i = 0; i < p->q->n; i++) {
		const struct host_port *v = sender(p, i);
		struct path_watch *w = &p->paths[i];

		w->state = v->local >= 0 && v->tx.ifindex ? PATH_WAITS : PATH_DONE;
		w->counter = v->tx.tx_frames;
		w->still_ns = now;
		n += w->state == PATH_WAITS;
	}
	if (n == 0) {
		verifier_answer(p);
		return;
	}
	move_routes(p);
	snprintf(text, sizeof(text), "%d port%s drained, %s first%s", n,
		 n == 1 ? " is" : "s are",
		 h->names[p->q->paths[0].arc.tx_port],
		 p->moved ? "" : "; hosts have other addresses than before, "
				 "and keep their routes");
	if (p->q->progress(p->q, text)) {
		verifier_answer(p);
		return;
	}
	verifier_retry(p);
}

/* True when it is known to be silent, or will not be. */
static bool watch(struct host_verifier *p, int i, int64_t now)
{
	struct path_watch *w = &p->paths[i];
	const struct host_port *v = sender(p, i);
	struct apply_path *path = &p->q->paths[i];

	if (v->tx.tx_frames != w->counter) {
		w->grown += v->tx.tx_frames - w->counter;
		w->counter = v->tx.tx_frames;
		w->still_ns = now;
	}
	if (!v->tx.ifindex || now - w->still_ns >= SILENT_NS) {
		w->state = PATH_DONE;
	} else if (now - p->begun_ns >= WAIT_NS) {
		path->failed = APPLY_SETTLED;
		snprintf(path->why, sizeof(path->why), "%s still sends to %s: "
			 "%llu frames in %d ms",
			 p->hosts->set->names[path->arc.tx_port],
			 p->hosts->set->names[path->arc.rx_port],
			 (unsigned long long)w->grown,
			 (int)((now - p->begun_ns) / 1000000));
		w->state = PATH_DONE;
	}
	return w->state == PATH_DONE;
}

void hosts_drain_check(struct host_verifier *p)
{
	struct host_set *h = p->hosts->set;
	int64_t now = clk_now_ns();
	int n = 0;
	char text[96];

	if (!h || strcmp(h->hash, p->q->plan->fabric->hash) != 0) {
		verifier_answer(p);
		return;
	}
	hosts_refresh(h, p->q->plan->fabric);
	for (int i = 0; i < p->q->n; i++) {
		n += p->paths[i].state != PATH_DONE && !watch(p, i, now);
	}
	snprintf(text, sizeof(text), "%d port%s not silent yet", n, n == 1 ? " is" : "s are");
	if (n == 0 || verifier_report(p, text)) {
		verifier_answer(p);
		return;
	}
	verifier_retry(p);
}
