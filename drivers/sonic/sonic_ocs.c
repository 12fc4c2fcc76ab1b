/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `sonic-ocs`: optical circuit switches that run SONiC, over their command
 * line: a shell session on a byte stream.
 *
 * The device keeps two tables, what is configured and what its hardware does.
 * A circuit is configured and becomes tuning, then tuned or failed; one may
 * be configured and not in the hardware's table at all (`blocked` here), or
 * left in the hardware after it was taken out of the configuration (`stale`).
 * A stale one cannot be deleted as such: it is added and deleted again.
 *
 * The map is read before a batch and SAFE is kept here as well as by the device,
 * so that the displaced circuit is named; a CLI that is made from YANG keeps no
 * mode. REPLACE is deletes and adds here: the device's `overwrite` is that too, may
 * stop half way, and ends what could stay.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/core/driver_base.h"
#include "drivers/sonic/sonic.h"
#include "lib/base/alloc.h"

#define TYP_SWITCH_US 100000
#define STALE "stale"
/* The table of factory losses is read for switches up to this many pairs. */
#define MAX_LOSSES (384 * 384)

static const struct drv_option_spec options[] = {
	{ "gap_ms", "least time between two commands", "20" },
	{ "chunk", "most circuits in one command", "256" },
	{ "settle_ms", "wait before a read-back", "200" },
	{ "tune_ms", "longest wait for circuits to be tuned", "5000" },
	{ "sudo", "what runs config commands: sudo or nothing", "sudo" },
	{ "factory_loss", "read the table of factory losses: yes or no",
	  "yes" },
	BASE_SSH_OPTIONS,
	{ NULL, NULL, NULL },
};

/* ---- snapshot ------------------------------------------------------------ */

static void fill_snapshot(struct sonic *s)
{
	struct drv_snapshot *snap = &s->h.snap;

	snap->xcs = x_new(s->xcs.n + 1, sizeof(*snap->xcs));
	for (size_t i = 0; i < s->xcs.n; i++) {
		const struct sonic_xc *x = &s->xcs.v[i];
		struct drv_xc *out = &snap->xcs[snap->n_xcs++];
		int32_t loss = s->losses ? s->losses[x->xc.in * s->h.n_out + x->xc.out] : -1;

		out->xc = x->xc;
		out->state = x->state;
		out->has_factory_loss = loss >= 0;
		out->factory_loss_mdb = loss;
		if (!x->configured) {
			snprintf(out->owner, sizeof(out->owner), STALE);
		}
	}
	base_end(&s->h, 0, NULL);
}

static void sonic_snapshot(struct driver_base *h)
{
	struct sonic *s = (struct sonic *)h;

	h->snap.caps = (struct drv_caps){
		.kind = DRV_SPACE,
		.numbering = DRV_SPLIT,
		.n_in = h->n_in,
		.n_out = h->n_out,
		.persistence = DRV_PERSIST_AUTOSAVE,
		.min_gap_us = s->gap_ms * 1000,
		.typ_switch_us = TYP_SWITCH_US,
		.settle_us = s->settle_ms * 1000,
	};
	sonic_start_reads(s, SONIC_READ_ALL, fill_snapshot);
}

/* ---- life ---------------------------------------------------------------- */

static void sonic_fini(struct driver_base *h)
{
	struct sonic *s = (struct sonic *)h;

	xc_map_fini(&s->map);
	vec_fini(&s->xcs);
	free(s->losses);
}

static int parse_options(struct sonic *s, const struct drv_config *cfg, struct err *err)
{
	const struct drv_class *cls = s->h.drv.cls;
	const struct base_number numbers[] = {
		{ "gap_ms", 0, 60000, &s->gap_ms },
		{ "chunk", 1, 512, &s->chunk },
		{ "settle_ms", 1, 60000, &s->settle_ms },
		{ "tune_ms", 0, 600000, &s->tune_ms },
	};
	bool sudo = false;
	int rc = base_option_choice(cls, cfg, "sudo", "sudo", "", &sudo, err);

	if (rc == 0) {
		rc = base_option_choice(cls, cfg, "factory_loss", "yes",
					"no", &s->want_losses, err);
	}
	snprintf(s->sudo, sizeof(s->sudo), "%s", sudo ? "sudo" : "");
	s->want_losses = s->want_losses && (int64_t)cfg->n_in * cfg->n_out <= MAX_LOSSES;
	if (rc) {
		return rc;
	}
	return base_option_ints(cls, cfg, numbers, sizeof(numbers) / sizeof(numbers[0]), err);
}

static int sonic_init(struct driver_base *h, const struct drv_config *cfg,
		      struct tcp_conf *conf, struct err *err)
{
	struct sonic *s = (struct sonic *)h;
	int rc;

	if ((rc = base_two_sides(h->drv.cls, cfg, "A joins B", err)) ||
	    (rc = parse_options(s, cfg, err))) {
		return rc;
	}
	s->batch.h = h;
	s->batch.map = &s->map;
	s->batch.chunk = s->chunk;
	conf->gap_us = s->gap_ms * 1000;
	xc_map_init(&s->map, DRV_SPACE, cfg->n_in, cfg->n_out, false);
	return 0;
}

static const struct base_ops ops = {
	.session = &sonic_session,
	.init = sonic_init,
	.snapshot = sonic_snapshot,
	.submit = sonic_submit,
	.port_set = sonic_port_set,
	.fini = sonic_fini,
};

const struct drv_class drv_sonic_ocs = {
	.name = "sonic-ocs",
	.summary = "SONiC optical circuit switches, command line over TCP or SSH",
	.kind = DRV_SPACE,
	.options = options,
	BASE_CLASS(struct sonic, &ops),
	.explain = sonic_explain,
	.port_set = base_port_set,
	.cancel = base_cancel_submit,
};
