/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `sim` and `sim-ring`: devices that live in the controller's own process.
 * For tests and planners: no socket, every kind of trouble by option, and
 * the same trouble again for the same seed.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/core/driver_base.h"
#include "drivers/core/xc_map.h"
#include "lib/base/alloc.h"
#include "lib/base/log.h"
#include "lib/base/number/rng.h"

static const struct drv_option_spec options[] = {
	{ "state", "file that keeps the map over restarts of the controller",
	  "" },
	{ "seed", "seed of everything random", "1" },
	{ "delay_ms", "time every operation takes", "0" },
	{ "fail_port", "port (i3, o5) that reports failed and refuses", "" },
	{ "refuse", "port (i3, o5) that refuses with an error", "" },
	{ "lie", "port (i3, o5) whose adds are confirmed but not done", "" },
	{ "half", "carry out only this many items of a batch, confirm all",
	  "-1" },
	{ "drop", "lose the session right after the n-th item was done", "0" },
	{ "hang", "never answer the n-th item, nor do it", "0" },
	{ "restart", "restart after the n-th operation", "0" },
	{ "restart_map", "what a restart leaves: kept or dark", "dark" },
	{ "external", "another user changes the map after the n-th operation",
	  "0" },
	{ "unavailable", "do not answer the first n operations", "0" },
	{ "chaos", "permille of items struck by a random fault", "0" },
	{ "log", "file that gets a line for each move of light and each fault "
	  "of chaos", "" },
	{ "unlocked", "ring: settings that do not lock", "0" },
	{ NULL, NULL, NULL },
};

struct sim {
	struct driver_base h;
	struct xc_map mem;	/* the device itself */
	struct xc_map noted;	/* as it was in the log's last line */
	struct rng rng;
	char *state_path;	/* NULL: it forgets when closed */
	FILE *log;		/* NULL: none */
	/* Options of these names; -1 (half) or 0 is never. drop, hang count
	 * items, restart, external, unavailable operations, from the open on. */
	int64_t delay_ms, half, drop, hang, restart, external, unavailable;
	int64_t chaos;		/* permille */
	int64_t unlocked;	/* ring: settings */
	int fail_port, refuse_port, lie_port;	/* flat, or -1 */
	bool restart_kept;
	int64_t n_operations, n_items;	/* so far */
};

/* ---- options ------------------------------------------------------------- */

static int parse_port(const struct drv_class *cls, const struct sim *s,
		      const struct drv_config *cfg, const char *key, int *flat, struct err *err)
{
	const char *text = base_option(cls, cfg, key);
	char *end = NULL;
	long n = text[0] ? strtol(text + 1, &end, 10) : 0;

	*flat = -1;
	if (!text[0]) {
		return 0;
	}
	if (*end == '\0' && end != text + 1 && n >= 0) {
		if (text[0] == 'i' && n < s->mem.n_in) {
			*flat = xc_map_flat_in(&s->mem, n);
		} else if (text[0] == 'o' && n < s->mem.n_out) {
			*flat = xc_map_flat_out(&s->mem, n);
		}
	}
	return *flat >= 0 ? 0 :
	       err_set(err, WEFT_EINVAL, "option %s=%s: expected a port such "
		       "as i0 or o%d", key, text, s->mem.n_out - 1);
}

static int parse_ports(const struct drv_class *cls, struct sim *s,
		       const struct drv_config *cfg, struct err *err)
{
	int rc = parse_port(cls, s, cfg, "fail_port", &s->fail_port, err);

	if (rc == 0) {
		rc = parse_port(cls, s, cfg, "refuse", &s->refuse_port, err);
	}
	if (rc == 0) {
		rc = parse_port(cls, s, cfg, "lie", &s->lie_port, err);
	}
	return rc;
}

static int parse_options(const struct drv_class *cls, struct sim *s,
			 const struct drv_config *cfg, struct err *err)
{
	int64_t seed = 0;
	const struct base_number numbers[] = {
		{ "seed", 0, INT64_MAX, &seed },
		{ "delay_ms", 0, 3600000, &s->delay_ms },
		{ "half", -1, INT32_MAX, &s->half },
		{ "drop", 0, INT32_MAX, &s->drop },
		{ "hang", 0, INT32_MAX, &s->hang },
		{ "restart", 0, INT32_MAX, &s->restart },
		{ "external", 0, INT32_MAX, &s->external },
		{ "unavailable", 0, INT32_MAX, &s->unavailable },
		{ "chaos", 0, 1000, &s->chaos },
		{ "unlocked", 0, INT32_MAX, &s->unlocked },
	};
	int rc = base_option_ints(cls, cfg, numbers, sizeof(numbers) / sizeof(numbers[0]), err);

	rng_seed(&s->rng, (uint64_t)seed);
	if (rc == 0) {
		rc = base_option_choice(cls, cfg, "restart_map", "kept",
					"dark", &s->restart_kept, err);
	}
	if (rc) {
		return rc;
	}
	return parse_ports(cls, s, cfg, err);
}

/* ---- what happens behind the controller's back --------------------------- */

static void save(struct sim *s)
{
	struct err err = { 0 };

	if (s->state_path && xc_map_save(&s->mem, s->state_path, &err)) {
		log_error("drivers", "%s: %s", s->h.drv.name, err.msg);
	}
}

static void on_move(struct optics_xc xc, bool made, void *arg)
{
	struct sim *s = arg;

	fprintf(s->log, "%s %d,%d\n", made ? "made" : "gone", xc.in, xc.out);
}

/* Each item by itself, so that what goes away and comes back is seen. */
static void note_moves(struct sim *s)
{
	if (!s->log || s->mem.kind == DRV_RING) {
		return;
	}
	xc_map_changes(&s->noted, &s->mem, on_move, s);
	xc_map_copy(&s->noted, &s->mem);
	fflush(s->log);
}

static void note_fault(struct sim *s)
{
	if (s->log) {
		fprintf(s->log, "fault\n");
		fflush(s->log);
	}
}

static void external_change(struct sim *s)
{
	struct optics_xc xc;

	if (s->mem.kind == DRV_RING) {
		xc_map_clear(&s->mem);
		return;
	}
	xc.in = (int32_t)rng_below(&s->rng, s->mem.n_in);
	xc.out = (int32_t)rng_below(&s->rng, s->mem.n_out);
	if (xc_map_has(&s->mem, xc) || xc_map_check(&s->mem, xc, NULL)) {
		xc_map_release(&s->mem, xc_map_flat_in(&s->mem, xc.in));
	} else {
		xc_map_connect(&s->mem, xc);
	}
}

static void after_operation(struct sim *s)
{
	if (s->n_operations == s->restart) {
		s->mem.boots++;
		if (!s->restart_kept) {
			xc_map_clear(&s->mem);
		}
	}
	if (s->n_operations == s->external) {
		external_change(s);
	}
	note_moves(s);
	save(s);
}

/* Counts an operation; false when the device does not answer this one. */
static bool answers(struct sim *s, struct err *err)
{
	if (++s->n_operations > s->unavailable) {
		return true;
	}
	err_set(err, WEFT_EUNAVAIL, "%s: the device does not answer", s->h.drv.name);
	return false;
}

/* ---- snapshot ------------------------------------------------------------ */

static void fill_caps(const struct sim *s, struct drv_caps *caps)
{
	caps->kind = s->mem.kind;
	caps->numbering = s->mem.any_to_any ? DRV_ANY_TO_ANY : DRV_SPLIT;
	caps->n_in = s->mem.n_in;
	caps->n_out = s->mem.n_out;
	caps->atomic_replace = true;
	caps->persistence = s->state_path ? DRV_PERSIST_AUTOSAVE : DRV_PERSIST_DARK;
	caps->power = DRV_POWER_NONE;
	if (s->mem.kind == DRV_RING) {
		caps->max_steps = UINT16_MAX;
		caps->max_tunes = RING_MAX_SETTINGS;
	}
}

static void fill_failed_port(struct sim *s, struct drv_snapshot *snap)
{
	bool is_out = !s->mem.any_to_any && s->fail_port >= s->mem.n_in;

	if (s->fail_port < 0) {
		return;
	}
	snap->ports = x_new(1, sizeof(*snap->ports));
	snap->n_ports = 1;
	snap->ports[0].is_out = is_out;
	snap->ports[0].index = s->fail_port - (is_out ? s->mem.n_in : 0);
	snap->ports[0].enabled = true;
	snap->ports[0].failed = true;
}

static int fill_programs(struct sim *s, struct drv_snapshot *snap, struct err *err)
{
	struct ring_programs *mem = &s->mem.programs;
	struct ring_program_reader r;
	int rc = 0;

	if (mem->n && s->unlocked && mem->v[0].settings) {
		rc = ring_program_reader_init(&r, mem->v[0].bytes, mem->v[0].len, err);
		while (rc == 0 && r.cells.n == 0) {
			rc = ring_program_reader_next(&r, err);
		}
		if (rc == 0) {
			struct ring_setting t = ring_cell_setting(&r, r.cells.v);

			snap->n_unlocked = (int)s->unlocked;
			snprintf(snap->lock_detail, sizeof(snap->lock_detail),
				 "step %u node %u channel %u: no wave found",
				 t.step, t.node, t.channel);
		}
		ring_program_reader_fini(&r);
	}
	if (rc < 0) {
		return rc;
	}
	ring_programs_copy(&snap->programs, mem);
	return 0;
}

static int fill_snapshot(struct sim *s, struct err *err)
{
	struct drv_snapshot *snap = &s->h.snap;

	snprintf(snap->identity, sizeof(snap->identity), "weft,%s,%s,1",
		 s->h.drv.cls->name, s->h.drv.name);
	snprintf(snap->epoch, sizeof(snap->epoch), "boot-%" PRIu64,
		 s->mem.boots);
	fill_caps(s, &snap->caps);
	if (s->mem.kind == DRV_RING) {
		return fill_programs(s, snap, err);
	}
	xc_map_snapshot(&s->mem, snap);
	fill_failed_port(s, snap);
	return 0;
}

static void on_snapshot(uv_timer_t *work)
{
	struct sim *s = work->data;
	struct err err = { 0 };
	int rc = WEFT_EUNAVAIL;

	if (answers(s, &err)) {
		rc = fill_snapshot(s, &err);
	}
	after_operation(s);
	if (rc) {
		drv_snapshot_fini(&s->h.snap);
	}
	base_snapshot_done(&s->h, rc, &err);
}

static void sim_snapshot(struct driver_base *h)
{
	struct sim *s = (struct sim *)h;

	base_trace(h, "map?", false);
	uv_timer_start(&s->h.timer, on_snapshot, (uint64_t)s->delay_ms, 0);
}

/* ---- submit -------------------------------------------------------------- */

enum fate { DO_IT, LIE, REFUSE, FAILED_PORT, DROP, HANG };

static bool touches(const struct sim *s, struct optics_xc xc, int flat)
{
	return flat >= 0 && (xc_map_flat_in(&s->mem, xc.in) == flat ||
			     xc_map_flat_out(&s->mem, xc.out) == flat);
}

static enum fate chaos(struct sim *s)
{
	static const enum fate any[] = { LIE, REFUSE, DROP, HANG };

	if (!s->chaos || (int64_t)rng_below(&s->rng, 1000) >= s->chaos) {
		return DO_IT;
	}
	note_fault(s);
	return any[rng_below(&s->rng, 4)];
}

static enum fate counted_fate(struct sim *s)
{
	s->n_items++;
	if (s->n_items == s->hang) {
		return HANG;
	}
	return s->n_items == s->drop ? DROP : DO_IT;
}

/* What the options have in store for the i-th item of a batch. */
static enum fate fate_of(struct sim *s, const struct drv_item *item, int i)
{
	bool add = item->op == DRV_ADD;
	enum fate counted = counted_fate(s);

	if (counted != DO_IT) {
		return counted;
	}
	if (add && touches(s, item->xc, s->fail_port)) {
		return FAILED_PORT;
	}
	if (add && touches(s, item->xc, s->refuse_port)) {
		return REFUSE;
	}
	if ((add && touches(s, item->xc, s->lie_port)) || (s->half >= 0 && i >= s->half)) {
		return LIE;
	}
	return chaos(s);
}

static void refuse(struct sim *s, int i, enum drv_class_of_error c,
		   const char *code, const char *text)
{
	base_mark(&s->h, i, i + 1, DRV_REFUSED, DRV_ACKED, c, code, text);
}

/* Refuses what no option asks to refuse: bad ports, busy ports in SAFE mode,
 * deletes of what is not there. True when the item may go on. */
static bool admissible(struct sim *s, int i, const struct drv_item *item, enum drv_mode mode)
{
	struct optics_xc displaced;
	struct err err = { 0 };
	char text[DRV_TEXT_MAX];

	if (xc_map_check(&s->mem, item->xc, &err)) {
		refuse(s, i, DRV_ERR_CONFIGURATION, "range", err.msg);
		return false;
	}
	if (!xc_map_conflict(&s->mem, item->xc, &displaced)) {
		return true;
	}
	if (item->op == DRV_ADD && mode != DRV_SAFE) {
		return true;
	}
	snprintf(text, sizeof(text), "cross-connect %d-%d: %s %d-%d is there",
		 item->xc.in, item->xc.out,
		 item->op == DRV_ADD ? "busy," : "not connected,", displaced.in,
		 displaced.out);
	refuse(s, i, DRV_ERR_STATE, "busy", text);
	return false;
}

static void carry_out(struct sim *s, const struct drv_item *item)
{
	if (item->op == DRV_ADD) {
		xc_map_connect(&s->mem, item->xc);
	} else {
		xc_map_release(&s->mem, xc_map_flat_in(&s->mem, item->xc.in));
	}
	note_moves(s);
}

static int leave_unknown(struct sim *s, int i, enum fate fate, struct err *err)
{
	bool drop = fate == DROP;
	int rc = err_set(err, drop ? WEFT_EUNAVAIL : WEFT_ETIMEOUT, "%s: %s",
			 s->h.drv.name, drop ? "the session was lost" :
			 "no answer in time");

	base_mark(&s->h, i, i + 1, DRV_UNKNOWN, DRV_SENT, DRV_ERR_TRANSPORT, NULL, err->msg);
	return rc;
}

/* One item; false when the batch stops there. *rc is set when the session is
 * at fault. */
static bool do_item(struct sim *s, int i, const struct drv_batch *batch, int *rc, struct err *err)
{
	const struct drv_item *item = &batch->items[i];
	enum fate fate;

	if (!admissible(s, i, item, batch->mode)) {
		return false;
	}
	fate = fate_of(s, item, i);
	switch (fate) {
	case REFUSE:
		refuse(s, i, DRV_ERR_STATE, "-200", "execution error");
		return false;
	case FAILED_PORT:
		refuse(s, i, DRV_ERR_STATE, "-241", "port failed");
		return false;
	case HANG:
	case DROP:
		if (fate == DROP) {
			carry_out(s, item);
		}
		*rc = leave_unknown(s, i, fate, err);
		return false;
	case DO_IT:
		carry_out(s, item);
		break;
	case LIE:
		break;
	}
	base_mark(&s->h, i, i + 1, DRV_DONE, DRV_ACKED, DRV_ERR_NONE, NULL, NULL);
	return true;
}

static int do_items(struct sim *s, struct err *err)
{
	const struct drv_batch *batch = s->h.batch;
	int rc = 0;

	if (batch->mode == DRV_REPLACE) {
		xc_map_clear(&s->mem);
	}
	for (int i = 0; i < batch->n_items; i++) {
		if (!do_item(s, i, batch, &rc, err)) {
			break;
		}
	}
	return rc;
}

static void put_programs(struct sim *s)
{
	struct ring_programs copy;

	ring_programs_copy(&copy, s->h.batch->programs);
	ring_programs_fini(&s->mem.programs);
	s->mem.programs = copy;
}

static int do_programs(struct sim *s, struct err *err)
{
	const struct ring_geometry ring = {
		.nodes = (uint16_t)s->mem.n_in,
		.channels = (uint16_t)s->mem.n_out,
		.fibres = (uint8_t)s->h.ring_fibres };
	struct err own = { 0 };
	enum fate fate = counted_fate(s);

	fate = fate == DO_IT ? chaos(s) : fate;
	if (ring_programs_check(s->h.batch->programs, &ring, &own)) {
		refuse(s, 0, DRV_ERR_CONFIGURATION, "range", own.msg);
		return 0;
	}
	if (fate == REFUSE) {
		refuse(s, 0, DRV_ERR_STATE, "-200", "execution error");
		return 0;
	}
	if (fate == DO_IT || fate == DROP) {
		put_programs(s);
	}
	if (fate == HANG || fate == DROP) {
		return leave_unknown(s, 0, fate, err);
	}
	base_mark(&s->h, 0, 1, DRV_DONE, DRV_ACKED, DRV_ERR_NONE, NULL, NULL);
	return 0;
}

static void on_submit(uv_timer_t *work)
{
	struct sim *s = work->data;
	struct err err = { 0 };
	int rc = WEFT_EUNAVAIL;

	base_mark(&s->h, 0, s->h.n_outcomes, DRV_SKIPPED, DRV_SENT, DRV_ERR_NONE, NULL, "not sent");
	if (answers(s, &err)) {
		rc = s->mem.kind == DRV_RING ? do_programs(s, &err) : do_items(s, &err);
	}
	after_operation(s);
	base_submit_done(&s->h, rc, &err);
}

static void sim_submit(struct driver_base *h)
{
	struct sim *s = (struct sim *)h;

	base_trace_batch(h);
	/* The outcome is not known until the delay is over. */
	base_mark(h, 0, h->n_outcomes, DRV_UNKNOWN, DRV_SENT,
		  DRV_ERR_TRANSPORT, NULL, "not answered");
	uv_timer_start(&s->h.timer, on_submit, (uint64_t)s->delay_ms, 0);
}

static void sim_explain_programs(struct drv *dev, const struct ring_programs *r,
				 drv_trace_fn fn, void *arg)
{
	char line[192];

	fn(dev->name, "programs", false, arg);
	for (int i = 0; i < r->n; i++) {
		snprintf(line, sizeof(line), "program %s %" PRIu32 " steps, %"
			 PRIu32 " settings, %zu bytes", r->v[i].name,
			 r->v[i].steps, r->v[i].settings, r->v[i].len);
		fn(dev->name, line, false, arg);
	}
}

static void sim_explain(struct drv *dev, const struct drv_batch *batch, drv_trace_fn fn, void *arg)
{
	static const char *const modes[] = { "safe", "update", "replace" };
	char line[96];

	if (batch->programs) {
		sim_explain_programs(dev, batch->programs, fn, arg);
		return;
	}
	if (batch->mode == DRV_REPLACE) {
		fn(dev->name, "clear", false, arg);
	}
	for (int i = 0; i < batch->n_items; i++) {
		const struct drv_item *item = &batch->items[i];

		snprintf(line, sizeof(line), "%s %d-%d %s",
			 item->op == DRV_ADD ? "add" : "del", item->xc.in,
			 item->xc.out, modes[batch->mode]);
		fn(dev->name, line, false, arg);
	}
}

/* ---- life ---------------------------------------------------------------- */

static void sim_fini(struct driver_base *h)
{
	struct sim *s = (struct sim *)h;

	xc_map_fini(&s->mem);
	xc_map_fini(&s->noted);
	free(s->state_path);
	if (s->log) {
		fclose(s->log);
	}
}

static int load_state(const struct drv_class *cls, struct sim *s,
		      const struct drv_config *cfg, struct err *err)
{
	const char *path = base_option(cls, cfg, "state");
	int rc;

	if (!path[0]) {
		return 0;
	}
	s->state_path = x_dup(path);
	rc = xc_map_load(&s->mem, path, err);
	return rc == WEFT_ENOTFOUND ? 0 : rc;
}

static int open_log(const struct drv_class *cls, struct sim *s,
		    const struct drv_config *cfg, struct err *err)
{
	const char *path = base_option(cls, cfg, "log");

	if (!path[0]) {
		return 0;
	}
	s->log = fopen(path, "a");
	if (!s->log) {
		return err_set(err, WEFT_EINVAL, "option log=%s: %s", path, strerror(errno));
	}
	xc_map_copy(&s->noted, &s->mem);
	return 0;
}

static int sim_init(struct driver_base *h, const struct drv_config *cfg,
		    struct tcp_conf *conf, struct err *err)
{
	struct sim *s = (struct sim *)h;
	const struct drv_class *cls = h->drv.cls;
	int n_in = cfg->n_in, n_out = cfg->n_out, rc;

	(void)conf;
	xc_map_init(&s->mem, cls->kind, n_in, n_out, cfg->any_to_any);
	xc_map_init(&s->noted, cls->kind, n_in, n_out, cfg->any_to_any);
	if ((rc = parse_options(cls, s, cfg, err)) || (rc = load_state(cls, s, cfg, err))) {
		return rc;
	}
	return open_log(cls, s, cfg, err);
}

static const struct base_ops ops = {
	.init = sim_init,
	.snapshot = sim_snapshot,
	.submit = sim_submit,
	.fini = sim_fini,
};

const struct drv_class drv_sim = {
	.name = "sim",
	.summary = "optical switch inside the controller's process",
	.kind = DRV_SPACE,
	.options = options,
	BASE_CLASS(struct sim, &ops),
	.explain = sim_explain,
};

const struct drv_class drv_sim_ring = {
	.name = "sim-ring",
	.summary = "ring of resonators inside the controller's process",
	.kind = DRV_RING,
	.options = options,
	BASE_CLASS(struct sim, &ops),
	.explain = sim_explain,
};
