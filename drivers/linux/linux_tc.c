/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `linux-tc`: a network namespace as an optical switch. In-port i is the
 * netdev in<i>, out-port j the netdev out<j> (from 1). A circuit is a rule on
 * the ingress of in<i> that redirects all it receives to out<j>; an out-port
 * without a circuit is down, so that whoever is at the other end sees the
 * light go. The map is the kernel's: every snapshot and every batch reads the
 * rules themselves, and finds what others changed.
 *
 * Netlink answers from the kernel of this machine within the call; only the
 * time that light takes to move (option switch_ms) is waited for on the loop.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "drivers/core/driver_base.h"
#include "drivers/core/xc_map.h"
#include "drivers/host/host.h"
#include "lib/base/alloc.h"
#include "lib/base/log.h"

static const struct drv_option_spec options[] = {
	{ "fabric", "the namespace is weft.FABRIC.DEVICE, as `weft testbed "
	  "up` makes it", "" },
	{ "netns", "name of the namespace instead", "" },
	{ "switch_ms", "how long a new circuit stays dark", "0" },
	{ NULL, NULL, NULL },
};

/* A port's netdev; ifindex 0: there is none. */
struct port {
	int ifindex;
	bool up;
};

/* A redirect of the kernel's. */
struct rule {
	struct optics_xc xc;	/* out -1: not to a port of this switch */
	struct host_redirect at;
	bool hidden;		/* one before it takes all */
};

/* Listens to what others do. It outlives the session that it is of until the
 * loop has let go of it. */
struct listener {
	uv_poll_t poll;
	struct tc *t;
};

struct tc {
	struct driver_base h;
	char netns[HOST_NETNS_MAX];
	int64_t switch_ms;
	struct host_net *net;	/* NULL: no session */
	struct listener *listener;
	bool quiet;		/* changes are read and not reported */
	char epoch[DRV_NAME_MAX];
	struct port *in, *out;	/* [n_in], [n_out] */
	int n_rules;
	struct rule *rules;	/* by in, in the kernel's order */
	struct xc_map want;	/* the map after the batch under way */
	int n_walked;		/* items of it that are in `want` */
};

/* ---- life ---------------------------------------------------------------- */

static void on_unheard(uv_handle_t *poll)
{
	free(poll->data);
}

static void end_session(struct tc *t)
{
	if (t->listener) {
		uv_close((uv_handle_t *)&t->listener->poll, on_unheard);
		t->listener = NULL;
	}
	host_close(t->net);
	t->net = NULL;
	free(t->rules);
	t->rules = NULL;
	t->n_rules = 0;
}

static void tc_fini(struct driver_base *h)
{
	struct tc *t = (struct tc *)h;

	end_session(t);
	xc_map_fini(&t->want);
	free(t->in);
	free(t->out);
}

static void tc_stop(struct driver_base *h)
{
	end_session((struct tc *)h);
	base_stopped(h);
}

/* ---- what others do ------------------------------------------------------ */

static void report_change(struct tc *t, bool is_out, int index, const char *what)
{
	char text[64];
	struct drv_event ev = { .kind = DRV_EVENT_CHANGED, .has_port = true,
				.is_out = is_out, .index = index,
				.text = text };

	snprintf(text, sizeof(text), "%s%d: %s", is_out ? "out" : "in", index + 1, what);
	if (!t->quiet) {
		base_event(&t->h, &ev);
	}
}

static void on_link_change(struct tc *t, struct port *p, bool is_out, int index,
			  const struct host_change *c)
{
	bool down = is_out && p->up && !c->up && !c->gone;

	if (down || c->gone) {
		report_change(t, is_out, index, c->gone ? "the netdev is gone" : "taken down");
	}
	p->up = c->up;
}

static void on_change(const struct host_change *c, void *arg)
{
	struct tc *t = arg;

	for (int i = 0; i < t->h.n_in; i++) {
		if (t->in[i].ifindex == c->ifindex && c->rule) {
			report_change(t, false, i, c->gone ? "a rule was removed" :
						    "a rule was added");
		} else if (t->in[i].ifindex == c->ifindex) {
			on_link_change(t, &t->in[i], false, i, c);
		}
	}
	for (int o = 0; o < t->h.n_out && !c->rule; o++) {
		if (t->out[o].ifindex == c->ifindex) {
			on_link_change(t, &t->out[o], true, o, c);
		}
	}
}

/* What we did ourselves, or read just now, is no event. */
static void forget_changes(struct tc *t)
{
	if (t->listener) {
		t->quiet = true;
		host_changes_read(t->net, on_change, t, NULL);
		t->quiet = false;
	}
}

static void on_heard(uv_poll_t *poll, int status, int events)
{
	struct tc *t = ((struct listener *)poll->data)->t;
	struct err err = { 0 };
	struct drv_event lost = { .kind = DRV_EVENT_CHANGED,
				  .text = err.msg };

	(void)status;
	(void)events;
	if (t->h.op != BASE_IDLE) {
		forget_changes(t);	/* whoever asked reads anyway */
	} else if (host_changes_read(t->net, on_change, t, &err)) {
		base_event(&t->h, &lost);
	}
}

/* To listen is a service on top; a session goes without when it must. */
static void listen_to_changes(struct tc *t)
{
	struct listener *l = x_new(1, sizeof(*l));
	struct err err = { 0 };
	int fd;

	if (host_changes(t->net, &fd, &err)) {
		log_warn("drivers", "%s: changes by others show only when it "
			 "is read: %s", t->h.drv.name, err.msg);
		free(l);
		return;
	}
	l->t = t;
	l->poll.data = l;
	t->listener = l;
	uv_poll_init(t->h.drv.loop, &l->poll, fd);
	uv_poll_start(&l->poll, UV_READABLE, on_heard);
}

/* ---- reading the kernel's map ---------------------------------------------- */

/* A session with the namespace of now: one of the same name that was made
 * again is another device. */
static int begin_session(struct tc *t, struct err *err)
{
	char epoch[DRV_NAME_MAX];
	int rc = host_netns_epoch(t->netns, epoch, sizeof(epoch), err);

	if (rc == 0 && t->net && strcmp(epoch, t->epoch) == 0) {
		return 0;
	}
	end_session(t);
	if (rc == 0) {
		rc = host_open(t->netns, &t->net, err);
	}
	if (rc == 0) {
		memcpy(t->epoch, epoch, sizeof(epoch));
		listen_to_changes(t);
	}
	return rc;
}

/* The number in "in7" (0-based), or -1. */
static int port_number(const char *name, const char *side)
{
	size_t len = strlen(side);
	char *end;
	long n;

	if (strncmp(name, side, len) != 0 || name[len] < '1' || name[len] > '9') {
		return -1;
	}
	n = strtol(name + len, &end, 10);
	return *end || n > DRV_MAX_PORTS ? -1 : (int)n - 1;
}

static void take_link(struct tc *t, const struct host_link *l, int *n_in, int *n_out)
{
	int i = port_number(l->name, "in"), o = port_number(l->name, "out");

	if (i >= 0) {
		*n_in = i + 1 > *n_in ? i + 1 : *n_in;
		if (i < t->h.n_in) {
			t->in[i] = (struct port){ l->ifindex, l->up };
		}
	} else if (o >= 0) {
		*n_out = o + 1 > *n_out ? o + 1 : *n_out;
		if (o < t->h.n_out) {
			t->out[o] = (struct port){ l->ifindex, l->up };
		}
	}
}

static int read_ports(struct tc *t, struct err *err)
{
	struct host_link *links;
	int n, n_in = 0, n_out = 0, rc;

	memset(t->in, 0, (size_t)t->h.n_in * sizeof(*t->in));
	memset(t->out, 0, (size_t)t->h.n_out * sizeof(*t->out));
	rc = host_links(t->net, &links, &n, err);
	if (rc) {
		return rc;
	}
	for (int i = 0; i < n; i++) {
		take_link(t, &links[i], &n_in, &n_out);
	}
	free(links);
	/* A port may be broken off; one too many is another switch. */
	if (n_in > t->h.n_in || n_out > t->h.n_out || n_in == 0) {
		return err_set(err, WEFT_EVERIFY,
			       "%s: the device is %dx%d, the fabric says %dx%d",
			       t->h.drv.name, n_in, n_out, t->h.n_in,
			       t->h.n_out);
	}
	return 0;
}

static int out_of(const struct tc *t, int ifindex)
{
	for (int o = 0; ifindex && o < t->h.n_out; o++) {
		if (t->out[o].ifindex == ifindex) {
			return o;
		}
	}
	return -1;
}

static int read_rules_of(struct tc *t, int in, struct err *err)
{
	struct host_redirect *v;
	struct rule *more;
	int n, rc = host_redirects(t->net, t->in[in].ifindex, &v, &n, err);

	if (rc || n == 0) {
		return rc;
	}
	more = x_grow(t->rules, (size_t)t->n_rules + (size_t)n, sizeof(*more));
	t->rules = more;
	for (int i = 0; i < n; i++) {
		more[t->n_rules++] = (struct rule){
			.xc = { in, out_of(t, v[i].to) }, .at = v[i],
			.hidden = i > 0,
		};
	}
	free(v);
	return 0;
}

static int read_map(struct tc *t, struct err *err)
{
	int rc = begin_session(t, err);

	t->n_rules = 0;
	if (rc == 0) {
		rc = read_ports(t, err);
	}
	for (int i = 0; rc == 0 && i < t->h.n_in; i++) {
		if (t->in[i].ifindex) {
			rc = read_rules_of(t, i, err);
		}
	}
	if (rc && rc != WEFT_EVERIFY) {
		end_session(t);
	}
	return rc;
}

/* ---- snapshot -------------------------------------------------------------- */

static void fill_xcs(const struct tc *t, struct drv_snapshot *snap)
{
	snap->xcs = x_new((size_t)t->n_rules + 1, sizeof(*snap->xcs));
	for (int i = 0; i < t->n_rules; i++) {
		const struct rule *r = &t->rules[i];

		if (r->xc.out >= 0) {
			struct drv_xc *xc = &snap->xcs[snap->n_xcs++];

			xc->xc = r->xc;
			xc->state = r->hidden ? DRV_BLOCKED :
				    t->out[r->xc.out].up ? DRV_TUNED :
				    DRV_FAILED;
		}
	}
}

static bool has_strange_rule(const struct tc *t, int in)
{
	for (int i = 0; i < t->n_rules; i++) {
		if (t->rules[i].xc.in == in && t->rules[i].xc.out < 0) {
			return true;
		}
	}
	return false;
}

static void add_port(struct drv_snapshot *snap, bool is_out, int index, bool enabled, bool failed)
{
	if (!enabled || failed) {
		snap->ports[snap->n_ports++] = (struct drv_port){
			.is_out = is_out, .index = index, .enabled = enabled,
			.failed = failed };
	}
}

static void fill_ports(const struct tc *t, struct drv_snapshot *snap)
{
	snap->ports = x_new((size_t)(t->h.n_in + t->h.n_out), sizeof(*snap->ports));
	for (int i = 0; i < t->h.n_in; i++) {
		bool there = t->in[i].ifindex != 0;

		add_port(snap, false, i, !there || t->in[i].up, !there || has_strange_rule(t, i));
	}
	for (int o = 0; o < t->h.n_out; o++) {
		add_port(snap, true, o, true, t->out[o].ifindex == 0);
	}
}

static void fill_caps(const struct tc *t, struct drv_caps *caps)
{
	caps->kind = DRV_SPACE;
	caps->numbering = DRV_SPLIT;
	caps->n_in = t->h.n_in;
	caps->n_out = t->h.n_out;
	caps->persistence = DRV_PERSIST_DARK;
	caps->power = DRV_POWER_NONE;
	caps->typ_switch_us = t->switch_ms * 1000;
}

static void on_snapshot(uv_timer_t *work)
{
	struct tc *t = work->data;
	struct drv_snapshot *snap = &t->h.snap;
	struct utsname os = { 0 };
	struct err err = { 0 };
	int rc = read_map(t, &err);

	uname(&os);
	snprintf(snap->identity, sizeof(snap->identity), "Linux,tc,%.60s,%.50s",
		 t->netns, os.release);
	memcpy(snap->epoch, t->epoch, sizeof(snap->epoch));
	fill_caps(t, &snap->caps);
	if (rc == 0) {
		fill_xcs(t, snap);
		fill_ports(t, snap);
	}
	if (rc) {
		err_wrap(&err, "%s", t->h.drv.name);
		drv_snapshot_fini(snap);
	}
	base_snapshot_done(&t->h, rc, &err);
}

static void tc_snapshot(struct driver_base *h)
{
	struct tc *t = (struct tc *)h;

	base_trace(h, "filter dump", false);
	uv_timer_start(&t->h.timer, on_snapshot, 0, 0);
}

/* ---- submit ---------------------------------------------------------------- */

static void refuse(struct tc *t, int i, enum drv_class_of_error c,
		   const char *code, const char *text)
{
	base_mark(&t->h, i, i + 1, DRV_REFUSED, DRV_ACKED, c, code, text);
}

static bool ports_work(struct tc *t, int i, struct optics_xc xc)
{
	char text[DRV_TEXT_MAX];

	if (t->in[xc.in].ifindex && t->out[xc.out].ifindex && !has_strange_rule(t, xc.in)) {
		return true;
	}
	snprintf(text, sizeof(text), "cross-connect %d-%d: %s", xc.in, xc.out,
		 !t->in[xc.in].ifindex ? "no netdev for the in-port" :
		 !t->out[xc.out].ifindex ? "no netdev for the out-port" :
		 "the in-port has a rule that is no circuit");
	refuse(t, i, DRV_ERR_STATE, "failed", text);
	return false;
}

static bool is_hidden(const struct tc *t, struct optics_xc xc)
{
	for (int i = 0; i < t->n_rules; i++) {
		if (t->rules[i].hidden && optics_xc_cmp(&t->rules[i].xc, &xc) == 0) {
			return !xc_map_has(&t->want, xc);
		}
	}
	return false;
}

/* Puts an item into the map to be; false when it is refused. */
static bool walk_item(struct tc *t, int i, const struct drv_item *item, enum drv_mode mode)
{
	struct optics_xc displaced;
	struct err err = { 0 };
	char text[DRV_TEXT_MAX];

	if (xc_map_check(&t->want, item->xc, &err)) {
		refuse(t, i, DRV_ERR_CONFIGURATION, "range", err.msg);
		return false;
	}
	if (item->op == DRV_ADD && !ports_work(t, i, item->xc)) {
		return false;
	}
	if (item->op == DRV_DEL && is_hidden(t, item->xc)) {
		return true;	/* goes, and the circuit before it stays */
	}
	if (xc_map_conflict(&t->want, item->xc, &displaced) &&
	    (item->op == DRV_DEL || mode == DRV_SAFE)) {
		snprintf(text, sizeof(text),
			 "cross-connect %d-%d: %s %d-%d is there", item->xc.in,
			 item->xc.out, item->op == DRV_ADD ? "busy," :
			 "not connected,", displaced.in, displaced.out);
		refuse(t, i, DRV_ERR_STATE, "busy", text);
		return false;
	}
	if (item->op == DRV_ADD) {
		xc_map_connect(&t->want, item->xc);
	} else {
		xc_map_release(&t->want, xc_map_flat_in(&t->want, item->xc.in));
	}
	return true;
}

static void walk_items(struct tc *t)
{
	const struct drv_batch *b = t->h.batch;

	xc_map_clear(&t->want);
	for (int i = 0; b->mode != DRV_REPLACE && i < t->n_rules; i++) {
		if (!t->rules[i].hidden && t->rules[i].xc.out >= 0) {
			xc_map_connect(&t->want, t->rules[i].xc);
		}
	}
	t->n_walked = 0;
	while (t->n_walked < b->n_items &&
	       walk_item(t, t->n_walked, &b->items[t->n_walked], b->mode)) {
		t->n_walked++;
	}
}

static bool named(const struct drv_batch *b, struct optics_xc xc)
{
	for (int i = 0; i < b->n_items; i++) {
		if (optics_xc_cmp(&b->items[i].xc, &xc) == 0) {
			return true;
		}
	}
	return false;
}

/* A rule goes when its circuit shall not be; a hidden one only when the
 * batch names it or takes its port, as it moves no light. */
static bool must_go(const struct tc *t, const struct rule *r)
{
	if (r->xc.out < 0) {
		return false;
	}
	return r->hidden ? named(t->h.batch, r->xc) ||
			   t->h.batch->mode == DRV_REPLACE :
	       !xc_map_has(&t->want, r->xc);
}

/* Ends circuits that are not wanted. The out-port goes down first: the far end
 * loses its signal before it could see another sender's. */
static int darken(struct tc *t, bool *changes, struct err *err)
{
	int rc = 0;

	for (int i = 0; rc == 0 && i < t->n_rules; i++) {
		struct rule *r = &t->rules[i];

		if (!must_go(t, r)) {
			continue;
		}
		*changes = true;
		if (!r->hidden) {
			rc = host_link_set(t->net, t->out[r->xc.out].ifindex, false, err);
			t->out[r->xc.out].up = false;
		}
		if (rc == 0) {
			rc = host_redirect_del(t->net, t->in[r->xc.in].ifindex, &r->at, err);
			rc = rc == WEFT_ENOTFOUND ? 0 : rc;
		}
		r->xc.out = rc ? r->xc.out : -1;
	}
	return rc;
}

static bool has_signal(const struct tc *t, struct optics_xc xc)
{
	for (int i = 0; i < t->n_rules; i++) {
		if (!t->rules[i].hidden && optics_xc_cmp(&t->rules[i].xc, &xc) == 0) {
			return t->out[xc.out].up;
		}
	}
	return false;
}

static int light_up(struct tc *t, struct err *err)
{
	struct optics_xc *v;
	int n, rc = 0;

	xc_map_xcs(&t->want, &v, &n);
	for (int i = 0; rc == 0 && i < n; i++) {
		if (has_signal(t, v[i])) {
			continue;
		}
		rc = host_redirect_set(t->net, t->in[v[i].in].ifindex,
				       t->out[v[i].out].ifindex, true, err);
		if (rc == 0) {
			rc = host_link_set(t->net, t->out[v[i].out].ifindex, true, err);
		}
	}
	free(v);
	return rc;
}

/* Ends the batch; rc is the kernel's result. What is in effect then, the next
 * snapshot shows. */
static void finish(struct tc *t, int rc, const struct err *err)
{
	if (rc) {
		base_mark(&t->h, 0, t->n_walked, DRV_UNKNOWN, DRV_SENT,
			  DRV_ERR_TRANSPORT, NULL, err->msg);
	} else {
		base_mark(&t->h, 0, t->n_walked, DRV_DONE, DRV_ACKED, DRV_ERR_NONE, NULL, NULL);
	}
	forget_changes(t);
	base_submit_done(&t->h, rc, err);
}

static void on_switched(uv_timer_t *work)
{
	struct tc *t = work->data;
	struct err err = { 0 };
	int rc = light_up(t, &err);

	finish(t, rc, &err);
}

static bool any_dark(struct tc *t)
{
	for (int i = 0; i < t->n_walked; i++) {
		const struct drv_item *item = &t->h.batch->items[i];

		if (item->op == DRV_ADD && xc_map_has(&t->want, item->xc) &&
		    !has_signal(t, item->xc)) {
			return true;
		}
	}
	return false;
}

static void on_submit(uv_timer_t *work)
{
	struct tc *t = work->data;
	struct err err = { 0 };
	bool changes = false;
	int rc = read_map(t, &err);

	if (rc) {
		t->n_walked = 0;
		finish(t, rc, &err);
		return;
	}
	walk_items(t);
	base_mark(&t->h, 0, t->n_walked, DRV_UNKNOWN, DRV_SENT,
		  DRV_ERR_TRANSPORT, NULL, "the light is moving");
	rc = darken(t, &changes, &err);
	if (rc) {
		finish(t, rc, &err);
	} else if (changes || any_dark(t)) {
		uv_timer_start(&t->h.timer, on_switched, (uint64_t)t->switch_ms, 0);
	} else {
		finish(t, 0, NULL);
	}
}

static void tc_explain(struct drv *dev, const struct drv_batch *batch, drv_trace_fn fn, void *arg)
{
	char line[DRV_TEXT_MAX];

	if (batch->mode == DRV_REPLACE) {
		fn(dev->name, "filter del of every circuit not named", false, arg);
	}
	for (int i = 0; i < batch->n_items; i++) {
		const struct drv_item *item = &batch->items[i];

		snprintf(line, sizeof(line), item->op == DRV_ADD ?
			 "filter add dev in%d ingress u32 match all action "
			 "mirred egress redirect dev out%d" :
			 "filter del dev in%d ingress (to out%d)",
			 item->xc.in + 1, item->xc.out + 1);
		fn(dev->name, line, false, arg);
	}
}

static void tc_submit(struct driver_base *h)
{
	struct tc *t = (struct tc *)h;

	base_trace_batch(h);
	uv_timer_start(&t->h.timer, on_submit, 0, 0);
}

static int tc_init(struct driver_base *h, const struct drv_config *cfg,
		   struct tcp_conf *conf, struct err *err)
{
	struct tc *t = (struct tc *)h;
	const struct drv_class *cls = h->drv.cls;
	int rc;

	(void)conf;
	if ((rc = base_netns(cls, cfg, t->netns, sizeof(t->netns), err)) ||
	    (rc = base_two_sides(cls, cfg, "in-ports lead to out-ports", err)) ||
	    (rc = base_option_int(cls, cfg, "switch_ms", 0, 600000, &t->switch_ms, err))) {
		return rc;
	}
	t->in = x_new((size_t)cfg->n_in, sizeof(*t->in));
	t->out = x_new((size_t)cfg->n_out, sizeof(*t->out));
	xc_map_init(&t->want, DRV_SPACE, cfg->n_in, cfg->n_out, false);
	return 0;
}

static const struct base_ops ops = {
	.init = tc_init,
	.snapshot = tc_snapshot,
	.submit = tc_submit,
	.stop = tc_stop,
	.fini = tc_fini,
};

const struct drv_class drv_linux_tc = {
	.name = "linux-tc",
	.summary = "a network namespace as a switch: real packets, no light",
	.kind = DRV_SPACE,
	.options = options,
	BASE_CLASS(struct tc, &ops),
	.explain = tc_explain,
};
