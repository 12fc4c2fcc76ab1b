/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hosts that are of this machine: what arrives at their ports, asked over
 * netlink. A probe reads carriers, error counters, ethtool's link state and
 * the modules' powers, and sends one frame from every port that names the port
 * it is from; where it arrives a moment later is the neighbour. Links are
 * followed live in between. Nothing here ever changes a circuit.
 *
 * What a fabric's hosts need is kept in one struct host_set, made again when
 * the fabric changes; it lives until the loop has closed its handles.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "controller/daemon/hosts/private.h"
#include "lib/base/alloc.h"
#include "lib/base/log.h"

/* ---- who waits for a probe ---- */

void hosts_wake(struct hosts *hosts)
{
	struct probe_wait *w = hosts->waits;

	hosts->waits = NULL;
	while (w) {
		struct probe_wait *next = w->next;

		w->done(w->arg);
		free(w);
		w = next;
	}
}

/* ---- ends ---- */

/* When the last handle is closed. */
static void free_hosts(struct host_set *h)
{
	for (int i = 0; i < h->n; i++) {
		if (h->v[i].frame_fd >= 0) {
			close(h->v[i].frame_fd);
		}
		host_close(h->v[i].net);
		free(h->v[i].netns);
	}
	for (int i = 0; h->names && i < h->n_ports; i++) {
		free(h->names[i]);
	}
	free(h->names);
	free(h->v);
	free(h->local_of);
	free(h->ports);
	free(h);
}

static void on_closed(uv_handle_t *handle)
{
	struct host_set *h = handle->data;

	if (--h->n_handles == 0) {
		free_hosts(h);
	}
}

static void close_hosts(struct host_set *h)
{
	h->hosts = NULL;
	for (int i = 0; i < h->n; i++) {
		if (h->v[i].frame_fd >= 0) {
			uv_close((uv_handle_t *)&h->v[i].frames, on_closed);
			uv_close((uv_handle_t *)&h->v[i].events, on_closed);
		}
	}
	uv_close((uv_handle_t *)&h->timer, on_closed);
}

void hosts_free(struct hosts *hosts)
{
	if (!hosts) {
		return;
	}
	if (hosts->set) {
		close_hosts(hosts->set);
		hosts->set = NULL;
	}
	verifier_free(hosts->verifier);
	hosts_wake(hosts);
	free(hosts);
}

struct hosts *hosts_new(struct daemon_env *env, void (*heard)(void *arg), void *arg)
{
	struct hosts *hosts = x_new(1, sizeof(*hosts));

	*hosts = (struct hosts){ .env = env, .heard = heard, .arg = arg };
	verifier_new(hosts);
	return hosts;
}

/* ---- opening ---- */

/* One that cannot be opened keeps the problem, and is tried again later. */
static void open_local(struct host_set *h, struct local_host *l)
{
	struct err err = { 0 };
	int fd = -1;

	if ((l->netns[0] && host_netns_epoch(l->netns, l->epoch, sizeof(l->epoch), &err)) ||
	    host_open(l->netns[0] ? l->netns : NULL, &l->net, &err) ||
	    host_watch(l->net, &fd, &err) ||
	    host_frame_socket(l->net, &l->frame_fd, &err)) {
		l->frame_fd = -1;
		snprintf(l->problem, sizeof(l->problem), "%s", err.msg);
		return;
	}
	uv_poll_init(h->hosts->env->loop, &l->events, fd);
	uv_poll_init(h->hosts->env->loop, &l->frames, l->frame_fd);
	l->events.data = l->frames.data = h;
	h->n_handles += 2;
	uv_poll_start(&l->events, UV_READABLE, hosts_on_events);
	uv_poll_start(&l->frames, UV_READABLE, hosts_on_frames);
}

int hosts_local(const struct model_fabric *f)
{
	int n = 0;

	for (int i = 0; f && i < f->n_hosts; i++) {
		n += f->hosts[i].netns != NULL;
	}
	return n;
}

/* Memory for all hosts and ports; nothing is opened yet. */
static void fill_hosts(struct host_set *h, const struct model_fabric *f)
{
	h->n_ports = f->n_ports;
	h->v = x_new((size_t)hosts_local(f), sizeof(*h->v));
	h->local_of = x_new((size_t)f->n_hosts, sizeof(*h->local_of));
	h->ports = x_new((size_t)f->n_ports + 1, sizeof(*h->ports));
	h->names = x_new((size_t)f->n_ports + 1, sizeof(*h->names));
	for (int i = 0; i < f->n_hosts; i++) {
		h->local_of[i] = f->hosts[i].netns ? h->n : -1;
		if (f->hosts[i].netns) {
			struct local_host *l = &h->v[h->n++];

			l->host = i;
			l->frame_fd = -1;
			l->netns = x_dup(f->hosts[i].netns);
		}
	}
	for (int i = 0; i < f->n_ports; i++) {
		h->ports[i].local = h->local_of[f->ports[i].host];
		h->ports[i].from = h->ports[i].received = h->ports[i].heard = -1;
		h->names[i] = x_dup(f->ports[i].name);
	}
}

/* Opens all hosts that are of this machine. */
static struct host_set *make_hosts(struct hosts *hosts, const struct model_fabric *f)
{
	struct host_set *h = x_new(1, sizeof(*h));

	fill_hosts(h, f);
	h->hosts = hosts;
	memcpy(h->hash, f->hash, sizeof(h->hash));
	uv_timer_init(hosts->env->loop, &h->timer);
	h->timer.data = h;
	h->n_handles = 1;
	for (int i = 0; i < h->n; i++) {
		open_local(h, &h->v[i]);
	}
	return h;
}

static bool has_netns(const struct model_fabric *f, const char *netns)
{
	for (int i = 0; f && i < f->n_hosts; i++) {
		if (f->hosts[i].netns && strcmp(f->hosts[i].netns, netns) == 0) {
			return true;
		}
	}
	return false;
}

/* Hosts that the fabric has no more lose what they were given. */
static void release(struct host_set *h, const struct model_fabric *f)
{
	for (int i = 0; i < h->n; i++) {
		if (h->v[i].net && !has_netns(f, h->v[i].netns)) {
			host_routes_set(h->v[i].net, NULL, 0, NULL, 0, NULL, NULL);
		}
	}
}

/* The same ports of the same hosts in the same order. */
static bool same_hosts(const struct host_set *h, const struct model_fabric *f)
{
	bool same = f && f->n_ports == h->n_ports;

	for (int i = 0; same && i < h->n_ports; i++) {
		same = strcmp(f->ports[i].name, h->names[i]) == 0;
	}
	return same;
}

/* A namespace that was not there is tried again; one made again is another. */
static bool is_stale(const struct local_host *l)
{
	char now[sizeof(l->epoch)];

	if (l->frame_fd < 0) {
		return true;
	}
	return l->netns[0] &&
	       (host_netns_epoch(l->netns, now, sizeof(now), NULL) != 0 ||
		strcmp(now, l->epoch) != 0);
}

void hosts_settle(struct hosts *hosts)
{
	const struct model_fabric *f = apply_fabric(hosts->env->apply);
	bool renumbered = false;
	bool again = !hosts->set || !f || strcmp(hosts->set->hash, f->hash) != 0;

	for (int i = 0; hosts->set && !again && i < hosts->set->n; i++) {
		again = is_stale(&hosts->set->v[i]);
	}
	if (!again) {
		return;
	}
	if (hosts->set) {
		release(hosts->set, f);
		renumbered = !same_hosts(hosts->set, f);
		close_hosts(hosts->set);
		hosts->set = NULL;
	}
	if (hosts_local(f)) {
		hosts->set = make_hosts(hosts, f);
	}
	if (hosts->set) {
		hosts->set->renumbered = renumbered;
	}
}
