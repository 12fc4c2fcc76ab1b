/*
 * Hosts that are of this machine: what arrives at their ports, asked over
 * netlink. A look reads carriers, error counters, ethtool's link state and
 * the modules' powers, and sends one frame from every port that says where it
 * is from; what is heard a moment later is the neighbour. Links are followed
 * live in between. Nothing here ever changes light.
 *
 * What a fabric's hosts need is kept in one piece, made anew when the fabric
 * changes; it lives until the loop has closed its handles.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "controller/daemon/hosts.h"
#include "controller/plan/ways.h"
#include "drivers/host/host.h"
#include "lib/base/clk.h"
#include "lib/base/log.h"

#define LISTEN_MS 60	/* a frame needs microseconds, a busy machine more */

/* A host that can be asked, or why not. */
struct local {
	int host;
	char *netns;		/* "": weftd's own */
	char epoch[64];		/* of it; made anew it is another host */
	struct host_net *net;
	uv_poll_t events, frames;
	int frame_fd;		/* -1: none */
	int n_ways;
	char problem[160];
};

/* A port of such a host. */
struct view {
	int local;
	struct host_link tx, rx;	/* ifindex 0: there is no netdev */
	struct host_health health;
	int from;		/* port whose light is to arrive, -1: none */
	int heard;		/* port whose frame came in, -1: none */
	bool asked;		/* its sender is of this machine as well */
};

struct hosts {
	struct daemon *d;	/* NULL: being closed */
	char hash[65];		/* of the fabric */
	int n_ports, n, n_handles;
	struct local *v;	/* [n] */
	int *local_of;		/* [n_hosts] index into v, or -1 */
	struct view *views;	/* [n_ports] */
	char **names;		/* [n_ports] */
	uv_timer_t timer;
	uint32_t run;
	int64_t looked_at_ns;	/* 0: never */
};

/* ---- who waits for a look ---- */

static void wake(struct daemon *d)
{
	struct host_wait *w = d->host_waits;

	d->host_waits = NULL;
	while (w) {
		struct host_wait *next = w->next;

		w->done(d, w->arg);
		free(w);
		w = next;
	}
}

/* ---- ends ---- */

static void free_hosts(struct hosts *h)
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
	free(h->views);
	free(h);
}

static void on_closed(uv_handle_t *handle)
{
	struct hosts *h = handle->data;

	if (--h->n_handles == 0) {
		free_hosts(h);
	}
}

static void close_hosts(struct hosts *h)
{
	h->d = NULL;
	for (int i = 0; i < h->n; i++) {
		if (h->v[i].frame_fd >= 0) {
			uv_close((uv_handle_t *)&h->v[i].frames, on_closed);
			uv_close((uv_handle_t *)&h->v[i].events, on_closed);
		}
	}
	uv_close((uv_handle_t *)&h->timer, on_closed);
}

void daemon_hosts_fini(struct daemon *d)
{
	if (d->hosts) {
		close_hosts(d->hosts);
		d->hosts = NULL;
	}
	wake(d);
}

/* ---- links, live ---- */

static void say_link(struct hosts *h, int port, const struct host_link *l)
{
	const struct daemon_event ev = {
		.kind = WEFT__V1__EVENT_KIND__EVENT_KIND_LINK };

	daemon_event(h->d, &ev, "%s: %s, %u changes of the carrier",
		     h->names[port], l->gone ? "its netdev is gone" :
		     l->carrier ? "link" : "no link", l->carrier_changes);
}

struct reading {
	struct hosts *h;
	int local;
};

static void on_link(const struct host_link *l, void *arg)
{
	const struct reading *r = arg;

	for (int i = 0; i < r->h->n_ports; i++) {
		struct view *v = &r->h->views[i];

		if (v->local != r->local || v->rx.ifindex != l->ifindex) {
			continue;
		}
		if (v->rx.carrier != l->carrier || l->gone) {
			v->health.link = l->carrier;
			say_link(r->h, i, l);
		}
		v->rx = *l;
		v->rx.ifindex = l->gone ? 0 : l->ifindex;
	}
}

static void on_events(uv_poll_t *poll, int status, int events)
{
	struct hosts *h = poll->data;
	struct err err = { 0 };

	(void)status;
	(void)events;
	for (int i = 0; i < h->n; i++) {
		struct reading r = { h, i };

		/* Lost events are made up for by the next look. */
		if (&h->v[i].events == poll &&
		    host_watch_read(h->v[i].net, on_link, &r, &err) &&
		    err.code != WEFT_ELIMIT) {
			log_warn("weftd", "%s", err.msg);
			uv_poll_stop(poll);
		}
	}
}

/* ---- frames ---- */

static void on_frames(uv_poll_t *poll, int status, int events)
{
	struct hosts *h = poll->data;
	struct host_frame f;
	int ifindex;

	(void)status;
	(void)events;
	for (int i = 0; i < h->n; i++) {
		while (&h->v[i].frames == poll &&
		       host_frame_receive(h->v[i].frame_fd, &ifindex, &f)) {
			for (int p = 0; p < h->n_ports; p++) {
				struct view *v = &h->views[p];

				if (v->local == i && v->rx.ifindex == ifindex &&
				    f.run == h->run &&
				    f.from < (uint32_t)h->n_ports) {
					v->heard = (int)f.from;
				}
			}
		}
	}
}

/* A netdev of one fibre passes what the other end of a duplex one sends on,
 * so that a host whose port has one netdev hears no frame of its own. */
static void send_frames(struct hosts *h)
{
	h->run = (uint32_t)clk_now_ns() ^ (uint32_t)getpid() << 16;
	for (int i = 0; i < h->n_ports; i++) {
		struct view *v = &h->views[i];

		v->heard = -1;
		if (v->local >= 0 && v->tx.ifindex &&
		    h->v[v->local].frame_fd >= 0) {
			const struct host_frame f = { h->run, (uint32_t)i };

			host_frame_send(h->v[v->local].frame_fd, &v->tx, &f);
		}
	}
}

/* ---- opening ---- */

static void complain(struct local *l, const struct err *err)
{
	snprintf(l->problem, sizeof(l->problem), "%s", err->msg);
}

static void open_local(struct hosts *h, struct local *l)
{
	struct err err = { 0 };
	int fd = -1, rc = 0;

	if (l->netns[0]) {
		rc = host_netns_epoch(l->netns, l->epoch, sizeof(l->epoch),
				      &err);
	}
	if (rc == 0) {
		rc = host_open(l->netns[0] ? l->netns : NULL, &l->net, &err);
	}
	if (rc == 0) {
		rc = host_watch(l->net, &fd, &err);
	}
	if (rc == 0) {
		rc = host_frame_socket(l->net, &l->frame_fd, &err);
	}
	if (rc) {
		l->frame_fd = -1;
		complain(l, &err);
		return;
	}
	uv_poll_init(h->d->loop, &l->events, fd);
	uv_poll_init(h->d->loop, &l->frames, l->frame_fd);
	l->events.data = l->frames.data = h;
	h->n_handles += 2;
	uv_poll_start(&l->events, UV_READABLE, on_events);
	uv_poll_start(&l->frames, UV_READABLE, on_frames);
}

static int count_local(const struct model_fabric *f)
{
	int n = 0;

	for (int i = 0; f && i < f->n_hosts; i++) {
		n += f->hosts[i].netns != NULL;
	}
	return n;
}

static int fill_hosts(struct hosts *h, const struct model_fabric *f)
{
	h->n_ports = f->n_ports;
	h->v = calloc((size_t)count_local(f), sizeof(*h->v));
	h->local_of = calloc((size_t)f->n_hosts, sizeof(*h->local_of));
	h->views = calloc((size_t)f->n_ports + 1, sizeof(*h->views));
	h->names = calloc((size_t)f->n_ports + 1, sizeof(*h->names));
	if (!h->v || !h->local_of || !h->views || !h->names) {
		return WEFT_ENOMEM;
	}
	for (int i = 0; i < f->n_hosts; i++) {
		h->local_of[i] = f->hosts[i].netns ? h->n : -1;
		if (f->hosts[i].netns) {
			struct local *l = &h->v[h->n++];

			l->host = i;
			l->frame_fd = -1;
			l->netns = strdup(f->hosts[i].netns);
			if (!l->netns) {
				return WEFT_ENOMEM;
			}
		}
	}
	for (int i = 0; i < f->n_ports; i++) {
		h->views[i].local = h->local_of[f->ports[i].host];
		h->views[i].from = h->views[i].heard = -1;
		h->names[i] = strdup(f->ports[i].name);
		if (!h->names[i]) {
			return WEFT_ENOMEM;
		}
	}
	return 0;
}

static struct hosts *make_hosts(struct daemon *d, const struct model_fabric *f)
{
	struct hosts *h = calloc(1, sizeof(*h));

	if (!h || fill_hosts(h, f)) {
		log_warn("weftd", "hosts: out of memory");
		if (h) {
			free_hosts(h);
		}
		return NULL;
	}
	h->d = d;
	memcpy(h->hash, f->hash, sizeof(h->hash));
	uv_timer_init(d->loop, &h->timer);
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
		if (f->hosts[i].netns &&
		    strcmp(f->hosts[i].netns, netns) == 0) {
			return true;
		}
	}
	return false;
}

/* Hosts that the fabric has no more lose what they were given. */
static void release(struct hosts *h, const struct model_fabric *f)
{
	for (int i = 0; i < h->n; i++) {
		if (h->v[i].net && !has_netns(f, h->v[i].netns)) {
			host_ways_set(h->v[i].net, 0, NULL, 0, NULL, NULL);
		}
	}
}

/* A namespace that was not there is tried again; one made anew is another. */
static bool is_stale(const struct local *l)
{
	char now[sizeof(l->epoch)];

	if (l->frame_fd < 0) {
		return true;
	}
	return l->netns[0] &&
	       (host_netns_epoch(l->netns, now, sizeof(now), NULL) != 0 ||
		strcmp(now, l->epoch) != 0);
}

/* Hosts of the present fabric. */
static void settle(struct daemon *d)
{
	const struct model_fabric *f = apply_fabric(d->apply);
	bool again = !d->hosts || !f || strcmp(d->hosts->hash, f->hash) != 0;

	for (int i = 0; d->hosts && !again && i < d->hosts->n; i++) {
		again = is_stale(&d->hosts->v[i]);
	}
	if (!again) {
		return;
	}
	if (d->hosts) {
		release(d->hosts, f);
		close_hosts(d->hosts);
		d->hosts = NULL;
	}
	if (count_local(f)) {
		d->hosts = make_hosts(d, f);
	}
}

/* ---- looking ---- */

static void take_link(struct view *v, const char *port,
		      const struct host_link *l)
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

static void look_at(struct hosts *h, int local, const struct model_fabric *f)
{
	struct local *l = &h->v[local];
	const struct model_host *host = &f->hosts[l->host];
	struct host_link *links;
	struct err err = { 0 };
	int n;

	if (l->frame_fd < 0 || host_links(l->net, &links, &n, &err)) {
		if (err.code) {
			complain(l, &err);
		}
		return;
	}
	for (int p = host->first_port; p < host->first_port + host->n_ports;
	     p++) {
		struct view *v = &h->views[p];

		memset(&v->tx, 0, sizeof(v->tx));
		memset(&v->rx, 0, sizeof(v->rx));
		memset(&v->health, 0, sizeof(v->health));
		for (int i = 0; i < n; i++) {
			take_link(v, h->names[p] + strlen(host->name) + 1,
				  &links[i]);
		}
		if (v->rx.ifindex &&
		    host_health(l->net, &v->rx, &v->health, &err)) {
			v->health.source = HOST_BY_CARRIER;
			v->health.link = v->rx.carrier;
			snprintf(v->health.why, sizeof(v->health.why), "%.95s",
				 err.msg);
		}
	}
	free(links);
}

/* By what is intended, as the file has the fibres. */
static void find_senders(struct hosts *h, const struct model_fabric *f)
{
	struct plan_base base;
	struct err err = { 0 };
	int rc = apply_plan_base(h->d->apply, f, PLAN_SAFE, &base, &err);

	for (int i = 0; i < h->n_ports; i++) {
		h->views[i].from = -1;
		h->views[i].asked = false;
	}
	for (int i = 0; rc == 0 && i < h->n_ports; i++) {
		int to = plan_trace(f, base.intent, i);

		if (to >= 0) {
			h->views[to].from = i;
			h->views[to].asked = h->views[i].local >= 0 &&
					     h->views[i].tx.ifindex;
		}
	}
	if (rc) {
		log_warn("weftd", "hosts: %s", err.msg);
	}
}

static void on_heard(uv_timer_t *timer)
{
	struct hosts *h = timer->data;
	struct daemon *d = h->d;

	h->looked_at_ns = clk_wall_ns();
	daemon_page_changed(d);
	wake(d);
}

static void start_look(struct daemon *d)
{
	const struct model_fabric *f = apply_fabric(d->apply);
	struct hosts *h;

	settle(d);
	h = d->hosts;
	if (!h) {
		wake(d);
		return;
	}
	for (int i = 0; i < h->n; i++) {
		look_at(h, i, f);
	}
	find_senders(h, f);
	send_frames(h);
	uv_timer_start(&h->timer, on_heard, LISTEN_MS, 0);
}

void daemon_hosts_look(struct daemon *d,
		       void (*done)(struct daemon *d, void *arg), void *arg)
{
	struct host_wait *w = calloc(1, sizeof(*w));

	if (!w) {
		done(d, arg);
		return;
	}
	*w = (struct host_wait){ .next = d->host_waits, .done = done,
				 .arg = arg };
	d->host_waits = w;
	/* One that is under way begins anew: it may have looked too early. */
	start_look(d);
}

/* ---- ways ---- */

static void set_ways(struct hosts *h, struct local *l,
		     const struct model_fabric *f,
		     const struct plan_arc *arcs, int n_arcs)
{
	struct plan_way *ways = NULL;
	struct host_way *v = NULL;
	struct err err = { 0 };
	int n = 0, k = 0, rc = plan_ways(f, arcs, n_arcs, l->host, &ways, &n,
					 &err);

	if (rc == 0) {
		v = calloc((size_t)n + 1, sizeof(*v));
		rc = v ? 0 : err_nomem(&err);
	}
	/* Where a neighbour is another machine nobody here knows its address
	 * on the wire. */
	for (int i = 0; rc == 0 && i < n; i++) {
		const struct plan_way *w = &ways[i];
		const struct view *tx = &h->views[w->tx_port];
		const struct view *rx = &h->views[w->rx_port];

		if (!tx->tx.ifindex || !rx->rx.ifindex) {
			continue;
		}
		v[k] = (struct host_way){
			.dst = plan_host_address(w->to),
			.via = w->via == w->to ? 0 :
			       plan_host_address(w->via),
			.ifindex = tx->tx.ifindex };
		memcpy(v[k++].mac, rx->rx.mac, sizeof(v->mac));
	}
	if (rc == 0) {
		rc = host_ways_set(l->net, k ? plan_host_address(l->host) : 0,
				   v, k, NULL, &err);
		l->n_ways = k;
	}
	l->problem[0] = '\0';
	if (rc) {
		complain(l, &err);
		log_warn("weftd", "%s: %s", f->hosts[l->host].name, err.msg);
	}
	free(v);
	free(ways);
}

/* Called with a look that is no older than the plan. */
static void install(struct daemon *d, const struct model_fabric *f,
		    const struct plan_arc *arcs, int n)
{
	for (int i = 0; d->hosts && i < d->hosts->n; i++) {
		if (d->hosts->v[i].frame_fd >= 0) {
			set_ways(d->hosts, &d->hosts->v[i], f, arcs, n);
		}
	}
}

struct host_routes {
	char hash[65];
	struct plan_arc *arcs;
	int n;
};

struct host_routes *host_routes_of(const struct plan *p)
{
	struct host_routes *r = calloc(1, sizeof(*r));

	if (!r || plan_arcs(p, &r->arcs, &r->n, NULL)) {
		log_warn("weftd", "hosts: out of memory");
		free(r);
		return NULL;
	}
	memcpy(r->hash, p->fabric->hash, sizeof(r->hash));
	return r;
}

void host_routes_free(struct host_routes *r)
{
	if (r) {
		free(r->arcs);
		free(r);
	}
}

static void on_looked(struct daemon *d, void *arg)
{
	const struct model_fabric *f = NULL;
	struct host_routes *r = arg;

	if (d->hosts) {		/* weftd is not ending */
		f = apply_fabric(d->apply);
	}
	if (f && strcmp(f->hash, r->hash) == 0) {
		install(d, f, r->arcs, r->n);
	}
	host_routes_free(r);
}

void daemon_hosts_route(struct daemon *d, struct host_routes *r)
{
	const struct model_fabric *f = apply_fabric(d->apply);

	/* Another fabric is open for a question: the next planning of the
	 * jobs is of the present one. */
	if (!r || !f || strcmp(f->hash, r->hash) != 0 ||
	    (!d->hosts && count_local(f) == 0)) {
		host_routes_free(r);
	} else {
		daemon_hosts_look(d, on_looked, r);
	}
}

/* ---- telling ---- */

static const char *layer_name(const struct view *v)
{
	if (v->asked && v->heard == v->from) {
		return "neighbour";
	}
	return host_source_name(v->rx.ifindex ? v->health.source :
				HOST_BY_NONE);
}

static int layer_rank(const struct view *v)
{
	return v->asked && v->heard == v->from ? HOST_BY_MODULE + 1 :
	       v->rx.ifindex ? (int)v->health.source : HOST_BY_NONE;
}

static const char *name_or(const struct hosts *h, int port)
{
	return port < 0 ? "" : h->names[port];
}

static void find_problem(const struct hosts *h, const struct view *v,
			 char *text, size_t size)
{
	text[0] = '\0';
	if (h->v[v->local].frame_fd < 0) {
		return;		/* the host's problem, told there */
	}
	if (v->from >= 0 && !v->rx.ifindex) {
		snprintf(text, size, "it has no netdev");
	} else if (v->from >= 0 && !v->health.link) {
		snprintf(text, size, "no link, light of %s is to arrive",
			 h->names[v->from]);
	} else if (v->asked && v->heard < 0) {
		snprintf(text, size, "no frame of %s arrives",
			 h->names[v->from]);
	} else if (v->heard >= 0 && v->heard != v->from) {
		snprintf(text, size, "frames of %s arrive, %s%s",
			 h->names[v->heard], v->from < 0 ?
			 "and no light is to" : "not of ",
			 name_or(h, v->from));
	}
}

static void fill_port(const struct hosts *h, int port, struct port_row *row)
{
	const struct view *v = &h->views[port];
	Weft__V1__PortState *m = &row->m;

	weft__v1__port_state__init(m);
	find_problem(h, v, row->problem, sizeof(row->problem));
	m->name = h->names[port];
	m->from = (char *)name_or(h, v->from);
	m->link = v->health.link;
	m->layer = (char *)layer_name(v);
	m->instead = (char *)v->health.why;
	m->reason = v->health.ext_state ? (char *)v->health.ext_state : "";
	m->has_power = v->health.has_power;
	m->rx_mdbm = v->health.rx_mdbm;
	m->tx_mdbm = v->health.tx_mdbm;
	m->carrier_changes = v->rx.carrier_changes;
	m->carrier_ups = v->rx.carrier_ups;
	m->carrier_downs = v->rx.carrier_downs;
	m->rx_errors = v->rx.rx_errors;
	m->tx_errors = v->tx.tx_errors;
	m->heard = (char *)name_or(h, v->heard);
	m->problem = row->problem;
}

static void fill_host(const struct model_fabric *f, const struct local *l,
		      Weft__V1__HostState *m)
{
	weft__v1__host_state__init(m);
	m->name = f->hosts[l->host].name;
	m->netns = l->netns;
	m->problem = (char *)l->problem;
	m->ways = l->n_ways;
}

static int allocate(const struct hosts *h, struct hosts_view *out,
		    struct err *err)
{
	out->ports = calloc((size_t)h->n_ports + 1, sizeof(*out->ports));
	out->hosts = calloc((size_t)h->n + 1, sizeof(*out->hosts));
	out->port_list = calloc((size_t)h->n_ports + 1,
				sizeof(*out->port_list));
	out->host_list = calloc((size_t)h->n + 1, sizeof(*out->host_list));
	return out->ports && out->hosts && out->port_list && out->host_list ?
	       0 : err_nomem(err);
}

int daemon_hosts_view(struct daemon *d, struct hosts_view *out,
		      struct err *err)
{
	const struct model_fabric *f = apply_fabric(d->apply);
	const struct hosts *h = d->hosts;
	int rc, least = HOST_BY_MODULE + 1;
	const char *layer = "none";

	memset(out, 0, sizeof(*out));
	if (!h || !f || strcmp(h->hash, f->hash) != 0 || !h->looked_at_ns) {
		return 0;
	}
	rc = allocate(h, out, err);
	if (rc) {
		hosts_view_fini(out);
		return rc;
	}
	weft__v1__hosts_state__init(&out->m);
	for (int i = 0; i < h->n_ports; i++) {
		const struct view *v = &h->views[i];
		struct port_row *row = &out->ports[out->m.n_ports];

		if (v->local < 0) {
			continue;
		}
		fill_port(h, i, row);
		out->port_list[out->m.n_ports++] = &row->m;
		out->m.lit += v->from >= 0;
		out->m.good += v->from >= 0 && v->health.link &&
			       !row->problem[0];
		out->wrong = out->wrong || row->problem[0];
		if (v->from >= 0 && layer_rank(v) <= least) {
			least = layer_rank(v);
			layer = layer_name(v);
		}
	}
	for (int i = 0; i < h->n; i++) {
		fill_host(f, &h->v[i], &out->hosts[i]);
		out->host_list[out->m.n_hosts++] = &out->hosts[i];
		out->silent = out->silent || h->v[i].frame_fd < 0;
	}
	out->m.layer = (char *)layer;
	out->m.looked_at_ns = h->looked_at_ns;
	out->m.ports = out->port_list;
	out->m.hosts = out->host_list;
	out->known = true;
	return 0;
}

void hosts_view_fini(struct hosts_view *v)
{
	free(v->ports);
	free(v->hosts);
	free(v->port_list);
	free(v->host_list);
	memset(v, 0, sizeof(*v));
}
