/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What has to happen on each device: the circuits and programs that the jobs
 * want against those that were observed.
 *
 * A wanted circuit that is there is kept. One that is there and not wanted is
 * deleted if weft made it or, in update mode, if it holds a port that is wanted
 * (it is displaced); else it is external and left alone. Programs of rings are
 * loaded whole when they differ. Devices come out by failure domain, then in
 * the order of the file, and the digest covers every step, so that equal digests
 * mean equal work.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/plan/private.h"
#include "lib/base/alloc.h"
#include "lib/digest/sha256.h"
#include "lib/base/vec.h"

typedef VEC(struct optics_xc) xc_list;

/* Where in the order of change each device stands: devices of one failure
 * domain together, domains in the order of their first device. */
static void order_devices(const struct model_fabric *f, struct plan *p)
{
	int n = 0;

	for (int i = 0; i < f->n_devices; i++) {
		bool seen = false;

		for (int j = 0; j < i && !seen; j++) {
			seen = strcmp(f->devices[j].domain, f->devices[i].domain) == 0;
		}
		for (int j = i; j < f->n_devices && !seen; j++) {
			if (strcmp(f->devices[j].domain, f->devices[i].domain) == 0) {
				p->devices[n++].device = j;
			}
		}
	}
}

/* A duplex circuit carries two arcs and is wanted once. */
static void sort_once(xc_list *list)
{
	size_t kept = 0;

	if (list->n == 0) {
		return;
	}
	qsort(list->v, list->n, sizeof(*list->v), optics_xc_cmp);
	for (size_t i = 0; i < list->n; i++) {
		if (kept == 0 || optics_xc_cmp(&list->v[i], &list->v[kept - 1]) != 0) {
			list->v[kept++] = list->v[i];
		}
	}
	list->n = kept;
}

/* Circuits of jobs that are kept, or of the others: those that are dark too, or (dark) only
 * those. Of the former those that were made: weft may have planned on ports that have failed
 * since. */
static void collect_planned(const struct plan_ctx *ctx, const struct plan *p,
			    int device, bool kept, bool dark, xc_list *out)
{
	for (int j = 0; j < p->n_jobs; j++) {
		const struct plan_job *pj = &p->jobs[j];

		for (int i = 0; i < pj->n_circuits && pj->kept == kept; i++) {
			const struct plan_circuit *c = &pj->circuits[i];

			if (c->device == device && (c->dark || !dark) &&
			    (!kept || plan_light_has(plan_intent(ctx, device),
						     c->xc))) {
				vec_push(out, c->xc);
			}
		}
	}
}

/* Whether an end of the circuit is at a port whose job is kept. */
static bool at_kept_port(const struct plan *p, int device, struct optics_xc xc)
{
	const struct model_device *dev = &p->fabric->devices[device];
	int tx = xc.in < dev->n_in ? dev->in_port[xc.in] : -1;
	int rx = xc.out >= dev->n_out ? -1
		 : dev->any_to_any ? dev->in_port[xc.out]
				   : dev->out_port[xc.out];
	int sender = tx >= 0 ? p->fabric->ports[tx].tx_job : -1;
	int receiver = rx >= 0 ? p->fabric->ports[rx].rx_job : -1;

	return (sender >= 0 && p->jobs[sender].kept) || (receiver >= 0 && p->jobs[receiver].kept);
}

/* All that was made for jobs that are kept. */
static void collect_kept(const struct plan_ctx *ctx, const struct plan *p, int device, xc_list *out)
{
	const struct plan_light *intent = plan_intent(ctx, device);

	collect_planned(ctx, p, device, true, false, out);
	for (int i = 0; i < intent->n_xcs; i++) {
		if (at_kept_port(p, device, intent->xcs[i])) {
			vec_push(out, intent->xcs[i]);
		}
	}
	sort_once(out);
}

/* Appends to a list which gets room for cap circuits the first time. */
static void push_xc(struct optics_xc **list, int *n, int cap, struct optics_xc xc)
{
	if (!*list) {
		*list = x_alloc(cap, sizeof(**list));
	}
	(*list)[(*n)++] = xc;
}

/* What is to be restored on the device, or NULL. */
static const struct plan_restore *find_restore(const struct plan_ctx *ctx, int device)
{
	for (int i = 0; i < ctx->base->n_restore; i++) {
		if (ctx->base->restore[i].device == device) {
			return &ctx->base->restore[i];
		}
	}
	return NULL;
}

/* All of the intent; what is dead is left but for what is to be restored. */
static void want_intent(const struct plan_ctx *ctx, struct plan_device *d)
{
	const struct plan_light *intent = plan_intent(ctx, d->device);
	const struct plan_light *seen = plan_observed(ctx, d->device);
	const struct plan_restore *r = find_restore(ctx, d->device);
	const struct plan_light back = { .n_xcs = r ? r->n_xcs : 0,
					 .xcs = r ? r->xcs : NULL };

	for (int i = 0; i < intent->n_xcs; i++) {
		struct optics_xc xc = intent->xcs[i];

		push_xc(&d->want, &d->n_want, intent->n_xcs, xc);
		if (plan_has_died(seen, xc) && !plan_light_has(&back, xc)) {
			push_xc(&d->leave, &d->n_leave, intent->n_xcs, xc);
		}
	}
}

/* When circuits are restored: the ring is to hold the programs of the intent.
 * */
static void want_intended_programs(const struct plan_ctx *ctx, struct plan_device *d)
{
	const struct ring_programs *want = plan_intent(ctx, d->device)->programs;

	d->has_program = want && want->n > 0;
	if (d->has_program) {
		ring_programs_copy(&d->programs, want);
	}
}

/* Two circuits that cannot be there together. */
static bool share_port(const struct model_device *dev, struct optics_xc a, struct optics_xc b)
{
	return a.in == b.in || a.out == b.out ||
	       (dev->any_to_any && (a.in == b.out || a.out == b.in));
}

/* The wanted circuit that needs a port of xc, or NULL. What is in `leave` is
 * not made and needs none. */
static const struct optics_xc *find_displacing(const struct model_device *dev,
					       const struct plan_device *d, struct optics_xc xc)
{
	const struct plan_light leave = { .n_xcs = d->n_leave,
					  .xcs = d->leave };

	for (int i = 0; i < d->n_want; i++) {
		if (share_port(dev, d->want[i], xc) && !plan_light_has(&leave, d->want[i])) {
			return &d->want[i];
		}
	}
	return NULL;
}

/* Light between cubes that have no job stays until its ports are wanted: another slice may need
 * it as it is. */
static void collect_idle(const struct plan_ctx *ctx, const struct plan_device *d, xc_list *want)
{
	const struct model_fabric *f = ctx->fabric;
	const struct model_device *dev = &f->devices[d->device];
	const struct plan_light *intent = plan_intent(ctx, d->device);
	const struct plan_light *seen = plan_observed(ctx, d->device);

	for (int i = 0; i < intent->n_xcs; i++) {
		const struct optics_xc xc = intent->xcs[i];
		int tx = xc.in < dev->n_in ? dev->in_port[xc.in] : -1;
		int rx = xc.out >= dev->n_out ? -1
			 : dev->any_to_any ? dev->in_port[xc.out] : dev->out_port[xc.out];

		if (tx >= 0 && rx >= 0 && f->hosts[f->ports[tx].host].side[0] &&
		    f->hosts[f->ports[rx].host].side[0] && f->ports[tx].tx_job < 0 &&
		    f->ports[rx].rx_job < 0 && !plan_has_died(seen, xc) &&
		    !plan_must_go(seen, dev->any_to_any, xc) && !find_displacing(dev, d, xc)) {
			vec_push(want, xc);
		}
	}
}

/* What the device is to hold: circuits of kept jobs as they were made, and of the jobs that
 * were planned; of the former those that died in `leave`, of the others the dark ones. */
static void collect_want(const struct plan_ctx *ctx, const struct plan *p, struct plan_device *d)
{
	const struct plan_light *seen = plan_observed(ctx, d->device);
	xc_list want = { 0 }, left = { 0 }, idle = { 0 };

	collect_kept(ctx, p, d->device, &left);
	for (size_t i = 0; i < left.n; i++) {
		vec_push(&want, left.v[i]);
	}
	collect_planned(ctx, p, d->device, false, true, &left);
	sort_once(&left);
	for (size_t i = 0; i < left.n; i++) {
		if (plan_has_died(seen, left.v[i])) {
			push_xc(&d->leave, &d->n_leave, (int)left.n, left.v[i]);
		}
	}
	vec_fini(&left);
	collect_planned(ctx, p, d->device, false, false, &want);
	d->want = want.v;
	d->n_want = (int)want.n;
	collect_idle(ctx, d, &idle);
	for (size_t i = 0; i < idle.n; i++) {
		vec_push(&want, idle.v[i]);
	}
	vec_fini(&idle);
	sort_once(&want);
	d->want = want.v;
	d->n_want = (int)want.n;
}

static bool is_fixed(const struct plan_ctx *ctx, int device, struct optics_xc xc)
{
	const struct plan_light *seen = plan_observed(ctx, device);
	const struct plan_light fixed = { .n_xcs = seen->n_fixed, .xcs = seen->fixed };

	return plan_light_has(&fixed, xc);
}

/* What stands against a plan: it may have another way (plan_make). */
static int refuse_fixed(struct plan_ctx *ctx, int device, struct optics_xc xc, struct err *err)
{
	ctx->fixed_device = device;
	ctx->fixed = xc;
	return err_set(err, WEFT_EINFEASIBLE, "%s: in %d -> out %d would have to be moved, and a "
		       "port of it is worn", ctx->fabric->devices[device].name, xc.in + 1,
		       xc.out + 1);
}

/* Sorts one observed circuit that is not wanted into delete or external. */
static int place_unwanted(struct plan_ctx *ctx, struct plan_device *d,
			  struct optics_xc xc, int cap, struct err *err)
{
	const struct model_device *dev = &ctx->fabric->devices[d->device];
	const struct optics_xc *wanted = find_displacing(dev, d, xc);

	if (is_fixed(ctx, d->device, xc)) {
		if (wanted) {
			return refuse_fixed(ctx, d->device, xc, err);
		}
		push_xc(&d->external, &d->n_external, cap, xc);
		return 0;
	}
	if (plan_is_own(ctx, d->device, xc)) {
		push_xc(&d->del, &d->n_del, cap, xc);
		return 0;
	}
	if (!wanted) {
		push_xc(&d->external, &d->n_external, cap, xc);
		return 0;
	}
	if (ctx->base->mode == PLAN_SAFE) {
		err_set(err, WEFT_EINVAL,
			"%s: circuit in %d -> out %d was not made by weft and "
			"is in the way of in %d -> out %d", dev->name,
			xc.in + 1, xc.out + 1, wanted->in + 1,
			wanted->out + 1);
		err_hint(err, "mode update takes its ports over");
		return WEFT_EINVAL;
	}
	push_xc(&d->displaced, &d->n_displaced, cap, xc);
	push_xc(&d->del, &d->n_del, cap, xc);
	return 0;
}

/* Keeps, deletes and adds of a switch or panel. The lists are sorted, as what
 * they are made from is. */
static int diff_space(struct plan_ctx *ctx, struct plan_device *d, struct err *err)
{
	const struct plan_light *seen = plan_observed(ctx, d->device);
	struct plan_light want = { .n_xcs = d->n_want, .xcs = d->want };
	struct plan_light leave = { .n_xcs = d->n_leave, .xcs = d->leave };
	int rc = 0;

	for (int i = 0; i < seen->n_xcs && rc == 0; i++) {
		if (plan_light_has(&want, seen->xcs[i])) {
			d->n_keep += plan_is_lit(seen, seen->xcs[i]);
		} else {
			rc = place_unwanted(ctx, d, seen->xcs[i], seen->n_xcs, err);
		}
	}
	for (int i = 0; i < d->n_want && rc == 0; i++) {
		if (!plan_is_lit(seen, d->want[i]) && !plan_light_has(&leave, d->want[i])) {
			if (is_fixed(ctx, d->device, d->want[i])) {
				return refuse_fixed(ctx, d->device, d->want[i], err);
			}
			push_xc(&d->add, &d->n_add, d->n_want, d->want[i]);
		}
	}
	return rc;
}

/* A program that is loaded, and that weft did not load. */
static bool is_external_program(const struct plan_ctx *ctx, const struct plan_device *d)
{
	const struct plan_light *intent = plan_intent(ctx, d->device);

	return d->had_program &&
	       !(intent->programs &&
		 ring_programs_equal(intent->programs, &d->old_programs));
}

static int refuse_program(const struct plan_ctx *ctx, const struct plan_device *d, struct err *err)
{
	err_set(err, WEFT_EINVAL, "%s: holds a program of %u steps that weft did not load",
		ctx->fabric->devices[d->device].name, ring_programs_steps(&d->old_programs));
	err_hint(err, "mode update replaces it");
	return WEFT_EINVAL;
}

/* What the device is known to hold must be enough. */
static int check_memory(const struct plan_ctx *ctx, const struct plan_device *d, struct err *err)
{
	const struct plan_light *seen = plan_observed(ctx, d->device);
	const struct model_device *dev = &ctx->fabric->devices[d->device];
	size_t bytes = ring_programs_bytes(&d->programs);
	uint64_t memory = dev->program_memory;

	if (seen->memory && (!memory || seen->memory < memory)) {
		memory = seen->memory;
	}
	if (memory && bytes > memory) {
		err_set(err, WEFT_ELIMIT, "%s: the programs of its jobs have "
			"%zu bytes, its program memory holds %llu", dev->name,
			bytes, (unsigned long long)memory);
		err_hint(err, "algorithm composed has shorter programs than "
			 "optree");
		return WEFT_ELIMIT;
	}
	if (seen->max_programs && d->programs.n > seen->max_programs) {
		return err_set(err, WEFT_ELIMIT, "%s: %d jobs, it runs at most "
			       "%d programs", dev->name, d->programs.n,
			       seen->max_programs);
	}
	return 0;
}

/* A program for each job on the ring, in the order of the jobs. */
static int want_programs(const struct plan_ctx *ctx, const struct plan *p,
			 struct plan_device *d, struct err *err)
{
	int rc = 0;

	for (int j = 0; j < p->n_jobs && rc == 0; j++) {
		struct ring_program pack;

		if (p->jobs[j].is_ring && ctx->fabric->jobs[p->jobs[j].job].device == d->device) {
			d->has_program = true;
			rc = plan_ring_program(ctx, &p->jobs[j], &pack, err);
			if (rc == 0) {
				rc = ring_programs_add(&d->programs, &pack, err);
			}
		}
	}
	if (rc) {
		return rc;
	}
	return check_memory(ctx, d, err);
}

static bool restores_program(const struct plan_ctx *ctx, int device)
{
	const struct plan_restore *r = find_restore(ctx, device);

	return r && r->program;
}

/* A ring's programs: loaded when they differ, emptied when no job wants the
 * ring any more but what there is is weft's own. */
static int diff_ring(struct plan_ctx *ctx, const struct plan *p,
		     struct plan_device *d, struct err *err)
{
	const struct plan_light *seen = plan_observed(ctx, d->device);
	int rc = 0;

	if (ctx->base->restore) {
		want_intended_programs(ctx, d);
	} else {
		rc = want_programs(ctx, p, d, err);
	}
	if (rc == 0 && seen->programs && seen->programs->n > 0) {
		d->had_program = true;
		ring_programs_copy(&d->old_programs, seen->programs);
	}
	if (rc) {
		return rc;
	}
	if (ctx->base->restore && !restores_program(ctx, d->device)) {
		return 0;
	}
	if (!d->has_program) {
		d->load_program = d->had_program && !is_external_program(ctx, d);
		return 0;
	}
	d->load_program = !d->had_program || seen->reload ||
			  !ring_programs_equal(&d->programs, &d->old_programs);
	if (d->load_program && is_external_program(ctx, d) && ctx->base->mode == PLAN_SAFE) {
		return refuse_program(ctx, d, err);
	}
	return 0;
}

/* The slowest transceiver among the ports whose light moves; *port: it. */
static int64_t reactivation_ns(const struct plan *p, const struct model_device *dev,
			       const struct optics_xc *list, int n, int *port)
{
	int64_t most = 0;

	*port = -1;
	for (int i = 0; i < n; i++) {
		int in = list[i].in, out = list[i].out;
		int ends[2] = {
			in >= 0 && in < dev->n_in ? dev->in_port[in] : -1,
			out >= 0 && out < dev->n_out ? dev->out_port[out] : -1,
		};

		for (int k = 0; k < 2; k++) {
			int64_t t = ends[k] < 0 ? 0 : plan_reactivation_ns(p, ends[k]);

			*port = t > most ? ends[k] : *port;
			most = t > most ? t : most;
		}
	}
	return most;
}

/* Whether learned times were used: the device's, and the port's if there is
 * one. */
static enum plan_times_of times_of(const struct plan_times *t, int device, int port)
{
	bool of_device = t->n_devices && t->device_ns[device];
	bool of_port = port >= 0 && t->n_ports && t->port_ns[port];

	return of_device && (of_port || port < 0) ? PLAN_TIMES_LEARNED :
	       of_device || of_port ? PLAN_TIMES_SOME_LEARNED : PLAN_TIMES_CONFIGURED;
}

/* Until light has moved and the slowest transceiver is back. Where nothing is
 * added, nothing comes back that could be waited for. */
static void expect_downtime(const struct plan_ctx *ctx, const struct plan *p, struct plan_device *d)
{
	const struct model_device *dev = &p->fabric->devices[d->device];
	int port = -1;

	if (dev->kind == MODEL_RING) {
		d->switch_ns = d->load_program ? dev->retune_ns : 0;
		d->down_ns = d->switch_ns;
		return;
	}
	d->switch_ns = plan_switching_ns(p, d->device, d->n_del, d->n_add);
	d->down_ns = d->switch_ns;
	if (d->n_add > 0) {
		d->down_ns += reactivation_ns(p, dev, d->add, d->n_add, &port);
	}
	d->downtime_source = times_of(&ctx->base->times, d->device, port);
}

int plan_steps(struct plan_ctx *ctx, struct plan *p, struct err *err)
{
	int rc = 0;

	plan_take_times(p, &ctx->base->times);
	order_devices(ctx->fabric, p);
	for (int i = 0; i < p->n_devices && rc == 0; i++) {
		struct plan_device *d = &p->devices[i];

		if (ctx->fabric->devices[d->device].kind == MODEL_RING) {
			rc = diff_ring(ctx, p, d, err);
		} else {
			if (ctx->base->restore) {
				want_intent(ctx, d);
			} else {
				collect_want(ctx, p, d);
			}
			rc = diff_space(ctx, d, err);
		}
		expect_downtime(ctx, p, d);
		p->n_add += d->n_add;
		p->n_del += d->n_del;
		p->n_keep += d->n_keep;
		p->n_loads += d->load_program;
		if (d->down_ns > p->down_ns) {
			p->down_ns = d->down_ns;
			p->downtime_source = d->downtime_source;
		}
	}
	if (rc) {
		return rc;
	}
	return plan_stages(ctx, p, err);
}

/* stage: [n], or NULL */
static void digest_list(struct sha256 *md, const char *what,
			const struct optics_xc *list, int n, const int *stage)
{
	char line[64];

	for (int i = 0; i < n; i++) {
		int len = snprintf(line, sizeof(line), "%s %d %d %d\n", what,
				   list[i].in, list[i].out,
				   stage ? stage[i] : 0);

		sha256_add(md, line, len);
	}
}

/* The name goes in with its terminator, so that no name runs into the first
 * step. */
static void digest_device(struct sha256 *md, const struct plan *p, const struct plan_device *d)
{
	const char *name = p->fabric->devices[d->device].name;
	uint8_t program[RING_DIGEST_LEN];

	sha256_add(md, name, strlen(name) + 1);
	digest_list(md, "del", d->del, d->n_del, d->del_stage);
	digest_list(md, "add", d->add, d->n_add, d->add_stage);
	digest_list(md, "want", d->want, d->n_want, NULL);
	digest_list(md, "leave", d->leave, d->n_leave, NULL);
	if (d->load_program) {
		ring_programs_digest(&d->programs, program);
		sha256_add(md, "load", 4);
		sha256_add(md, program, sizeof(program));
	}
}

void plan_digest(const struct plan *p, char hex[65])
{
	uint8_t raw[SHA256_LEN];
	struct sha256 md;

	sha256_begin(&md);
	for (int i = 0; i < p->n_devices; i++) {
		digest_device(&md, p, &p->devices[i]);
	}
	sha256_finish(&md, raw);
	sha256_hex(raw, hex);
}
