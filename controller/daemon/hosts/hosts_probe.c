/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Probing hosts: links live, and a frame from every port that names it.
 *
 * Between probes the kernel reports each link that comes or goes; an event that was
 * lost is made up for by the next probe, which reads all links. A probe forgets what
 * was received, sends one frame from every port, and looks after LISTEN_MS which port
 * each frame has come to: the only proof that does not rest on what a device says of
 * itself. Frames carry a number of the probe, so that late ones of an earlier probe
 * are not taken for new ones. When a link comes up after its circuit was made, the
 * time between is learned, as what the transceiver needs.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "controller/daemon/hosts/private.h"
#include "lib/base/alloc.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"

#define LISTEN_MS 60	/* a frame needs microseconds, a busy machine more */
#define ROUNDS 3	/* that no frame of the right port comes in, before it is believed */

/* ---- links, live ---- */

/* An event for those who watch. */
static void report_link(struct host_set *h, int port, const char *way, const struct host_link *l)
{
	const struct daemon_event ev = {
		.kind = WEFT__V1__EVENT_KIND__EVENT_KIND_LINK };

	event_emit(h->hosts->env->events, &ev, "%s: %s%s, %u changes of the carrier",
		     h->names[port], l->gone ? "its netdev is gone" :
		     l->carrier ? "link" : "no link", way, l->carrier_changes);
}

/* Whose events are being read. */
struct link_reader {
	struct host_set *h;
	int local;		/* index into h->v */
};

/* Longer than any transceiver takes: what comes then has another cause. */
#define LEARN_WITHIN_NS (INT64_C(600) * 1000000000)

void hosts_learn(struct host_set *h, int port, int64_t up_ns)
{
	struct host_port *v = &h->ports[port];
	int64_t took = up_ns > v->lit_ns ? up_ns - v->lit_ns : 0;

	if (!v->lit_ns || !up_ns) {
		return;
	}
	v->lit_ns = 0;
	if (took <= LEARN_WITHIN_NS) {
		apply_learn(h->hosts->env->apply, STORE_REACTIVATION, h->names[port], took);
	}
}

/* The link of a port has come or gone, seen by an event or a reading. */
static void note_link(struct host_set *h, int port, const struct host_link *l)
{
	struct host_port *v = &h->ports[port];

	v->health.link = l->carrier;
	v->up_ns = l->carrier && !l->gone ? clk_now_ns() : 0;
	hosts_learn(h, port, v->up_ns);
	report_link(h, port, "", l);
}

/* Nothing for a link of another netdev. */
static void take_event(struct host_link *link, const struct host_link *l)
{
	if (link->ifindex == l->ifindex) {
		*link = *l;
		link->ifindex = l->gone ? 0 : l->ifindex;
	}
}

static bool differs(const struct host_link *was, const struct host_link *l)
{
	return was->ifindex == l->ifindex && (was->carrier != l->carrier || l->gone);
}

/* A link event of one host, while its socket is read. */
static void on_link(const struct host_link *l, void *arg)
{
	const struct link_reader *r = arg;

	for (int i = 0; i < r->h->n_ports; i++) {
		struct host_port *v = &r->h->ports[i];

		if (v->local != r->local) {
			continue;
		}
		if (differs(&v->rx, l)) {
			note_link(r->h, i, l);
		} else if (differs(&v->tx, l)) {
			report_link(r->h, i, " to send by", l);
		}
		take_event(&v->rx, l);
		take_event(&v->tx, l);
	}
}

void hosts_on_events(uv_poll_t *poll, int status, int events)
{
	struct host_set *h = poll->data;
	struct err err = { 0 };

	(void)status;
	(void)events;
	for (int i = 0; i < h->n; i++) {
		struct link_reader r = { h, i };

		/* Lost events are made up for by the next probe. */
		if (&h->v[i].events == poll && host_watch_read(h->v[i].net, on_link, &r, &err) &&
		    err.code != WEFT_ELIMIT) {
			log_warn("weftd", "%s", err.msg);
			uv_poll_stop(poll);
		}
	}
	if (h->hosts) {
		hosts_note_silent(h->hosts);
	}
}

/* ---- frames ---- */

void hosts_on_frames(uv_poll_t *poll, int status, int events)
{
	struct host_set *h = poll->data;
	struct host_frame f;
	int ifindex;

	(void)status;
	(void)events;
	for (int i = 0; i < h->n; i++) {
		while (&h->v[i].frames == poll &&
		       host_frame_receive(h->v[i].frame_fd, &ifindex, &f)) {
			for (int p = 0; p < h->n_ports; p++) {
				struct host_port *v = &h->ports[p];

				if (v->local == i && v->rx.ifindex == ifindex && f.run == h->run &&
				    f.from < (uint32_t)h->n_ports) {
					v->received = (int)f.from;
				}
			}
		}
	}
}

/* A netdev of one fibre passes what the other end of a duplex one sends on,
 * so that a host whose port has one netdev gets no frame of its own. */
void hosts_send(struct host_set *h)
{
	h->run = (uint32_t)clk_now_ns() ^ (uint32_t)getpid() << 16;
	for (int i = 0; i < h->n_ports; i++) {
		struct host_port *v = &h->ports[i];

		v->received = -1;
		if (v->local >= 0 && v->tx.ifindex && h->v[v->local].frame_fd >= 0) {
			const struct host_frame f = { h->run, (uint32_t)i };

			host_frame_send(h->v[v->local].frame_fd, &v->tx, &f);
		}
	}
}

/* ---- probing ---- */

/* PORT.tx and PORT.rx are simplex, PORT is both. */
static void take_link(struct host_port *v, const char *port, const struct host_link *l)
{
	size_t len = strlen(port);

	if (strncmp(l->name, port, len) != 0) {
		return;
	}
	if (strcmp(l->name + len, ".tx") == 0) {
		v->tx = *l;
	} else if (strcmp(l->name + len, ".rx") == 0) {
		v->rx = *l;
	} else if (l->name[len] == '\0') {
		v->tx = v->tx.ifindex ? v->tx : *l;
		v->rx = v->rx.ifindex ? v->rx : *l;
	}
}

/* The links of one host, without what a module may be slow to answer. */
static void refresh(struct host_set *h, int local, const struct model_fabric *f)
{
	struct local_host *l = &h->v[local];
	const struct model_host *host = &f->hosts[l->host];
	struct host_link *links;
	struct err err = { 0 };
	int n;

	if (l->frame_fd < 0 || host_links(l->net, &links, &n, &err)) {
		if (err.code) {
			snprintf(l->problem, sizeof(l->problem), "%s", err.msg);
		}
		return;
	}
	for (int p = host->first_port; p < host->first_port + host->n_ports; p++) {
		struct host_port *v = &h->ports[p];
		struct host_link was = v->rx;

		memset(&v->tx, 0, sizeof(v->tx));
		memset(&v->rx, 0, sizeof(v->rx));
		for (int i = 0; i < n; i++) {
			take_link(v, h->names[p] + strlen(host->name) + 1, &links[i]);
		}
		if (was.ifindex && was.ifindex == v->rx.ifindex && was.carrier != v->rx.carrier) {
			note_link(h, p, &v->rx);
		}
	}
	free(links);
}

void hosts_refresh(struct host_set *h, const struct model_fabric *f)
{
	for (int i = 0; i < h->n; i++) {
		refresh(h, i, f);
	}
}

/* Links, and what the modules report of themselves. */
static void probe_host(struct host_set *h, int local, const struct model_fabric *f)
{
	struct local_host *l = &h->v[local];
	const struct model_host *host = &f->hosts[l->host];
	struct err err = { 0 };

	refresh(h, local, f);
	for (int p = host->first_port; l->frame_fd >= 0 &&
	     p < host->first_port + host->n_ports; p++) {
		struct host_port *v = &h->ports[p];

		memset(&v->health, 0, sizeof(v->health));
		if (v->rx.ifindex && host_health(l->net, &v->rx, &v->health, &err)) {
			v->health.source = HOST_BY_CARRIER;
			v->health.link = v->rx.carrier;
			snprintf(v->health.why, sizeof(v->health.why), "%.95s", err.msg);
		}
	}
}

/* By what is intended, as the file has the fibres. What the last probe has shown of a port
 * holds until this one ends, unless another sends to it now. */
static void find_senders(struct host_set *h, const struct model_fabric *f)
{
	int *from = x_alloc((size_t)h->n_ports + 1, sizeof(*from));
	struct plan_base base;

	apply_plan_base(h->hosts->env->apply, f, PLAN_SAFE, &base);
	memset(from, -1, (size_t)h->n_ports * sizeof(*from));
	for (int i = 0; i < h->n_ports; i++) {
		int to = plan_trace(f, base.intent, i);

		if (to >= 0) {
			from[to] = i;
		}
	}
	for (int i = 0; i < h->n_ports; i++) {
		struct host_port *v = &h->ports[i];

		if (v->from != from[i]) {
			v->from = from[i];
			v->heard = -1;
			v->asked = v->mute = false;
		}
	}
	free(from);
}

static bool is_asked(const struct host_set *h, int port)
{
	const int from = h->ports[port].from;

	return from >= 0 && h->ports[from].local >= 0 && h->ports[from].tx.ifindex;
}

/* Both ends have their carrier, and no frame of the right port has come so far. */
static bool is_mute(const struct host_set *h, int port)
{
	const struct host_port *v = &h->ports[port];

	return is_asked(h, port) && v->rx.carrier && h->ports[v->from].tx.carrier &&
	       v->received != v->from;
}

static bool any_mute(const struct host_set *h)
{
	bool any = false;

	for (int i = 0; i < h->n_ports && !any; i++) {
		any = is_mute(h, i);
	}
	return any;
}

/* What has arrived by now counts; what has not is sent again first. */
static void on_window_over(uv_timer_t *timer)
{
	struct host_set *h = timer->data;
	struct hosts *hosts = h->hosts;

	if (any_mute(h) && ++h->rounds < ROUNDS) {
		hosts_send(h);
		uv_timer_start(&h->timer, on_window_over, LISTEN_MS, 0);
		return;
	}
	for (int i = 0; i < h->n_ports; i++) {
		h->ports[i].asked = is_asked(h, i);
		h->ports[i].mute = is_mute(h, i);
		h->ports[i].heard = h->ports[i].received;
	}
	h->probed_at_ns = clk_wall_ns();
	hosts_note_silent(hosts);
	env_changed(hosts->env);
	hosts_wake(hosts);
}

/* Asks every host, and sends; without hosts the probe is over at once. */
static void start_probe(struct hosts *hosts)
{
	const struct model_fabric *f = apply_fabric(hosts->env->apply);
	struct host_set *h;

	hosts_settle(hosts);
	h = hosts->set;
	if (!h) {
		hosts_note_silent(hosts);
		hosts_wake(hosts);
		return;
	}
	for (int i = 0; i < h->n; i++) {
		probe_host(h, i, f);
	}
	find_senders(h, f);
	h->rounds = 0;
	hosts_send(h);
	uv_timer_start(&h->timer, on_window_over, LISTEN_MS, 0);
}

void hosts_probe(struct hosts *hosts, void (*done)(void *arg), void *arg)
{
	struct probe_wait *w = x_new(1, sizeof(*w));

	*w = (struct probe_wait){ .next = hosts->waits, .done = done,
				 .arg = arg };
	hosts->waits = w;
	/* One that is under way begins again: it may have asked too early. */
	start_probe(hosts);
}
