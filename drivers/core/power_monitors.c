/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Losses of circuits from power monitors: what enters minus what leaves; one whose monitor at
 * either end sees no light has no signal. Each
 * monitor has an error of its own, so a loss has twice that; a loss below 0 dB
 * within it is taken as 0, and one further below is no measurement. Contracts
 * are in power_monitors.h.
 */
#include "drivers/core/power_monitors.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"

int power_monitors_init(struct power_monitors *m, const struct drv_class *cls,
			const struct drv_config *cfg, struct err *err)
{
	const struct base_number numbers[] = {
		{ "dark_dbm", -100, 30, &m->dark_dbm },
		{ "power_error_mdb", 0, 10000, &m->error_mdb },
	};

	return base_option_ints(cls, cfg, numbers, sizeof(numbers) / sizeof(numbers[0]), err);
}

int power_monitors_sides(enum drv_power *sides, const struct drv_class *cls,
			 const struct drv_config *cfg, struct err *err)
{
	static const char *const names[] = {
		[DRV_POWER_NONE] = "none", [DRV_POWER_IN] = "in",
		[DRV_POWER_OUT] = "out", [DRV_POWER_BOTH] = "both" };
	const char *text = base_option(cls, cfg, "power");

	for (int i = 0; i < 4; i++) {
		if (strcmp(text, names[i]) == 0) {
			*sides = (enum drv_power)i;
			return 0;
		}
	}
	return err_set(err, WEFT_EINVAL, "option power=%s: expected none, in, out or both", text);
}

bool power_monitors_at(enum drv_power sides, const struct xc_map *m, int flat)
{
	enum drv_power side = m->any_to_any || flat < m->n_in ? DRV_POWER_IN : DRV_POWER_OUT;

	return sides == DRV_POWER_BOTH || sides == side;
}

static bool has_signal(const struct power_monitors *m, const struct drv_port *p)
{
	return p && p->has_power && p->power_mdbm >= m->dark_dbm * 1000;
}

static bool is_dark(const struct power_monitors *m, const struct drv_port *p)
{
	return p && p->has_power && p->power_mdbm < m->dark_dbm * 1000;
}

static void judge_circuit(const struct power_monitors *m, struct drv_xc *x,
		   const struct drv_port *in, const struct drv_port *out)
{
	int32_t error = (int32_t)(2 * m->error_mdb), loss;

	x->no_signal = x->state == DRV_TUNED && (is_dark(m, in) || is_dark(m, out));
	if (x->has_loss || x->state != DRV_TUNED || !has_signal(m, in) || !has_signal(m, out)) {
		return;
	}
	loss = in->power_mdbm - out->power_mdbm;
	if (loss >= -error) {
		x->has_loss = true;
		x->loss_mdb = loss > 0 ? loss : 0;
		x->loss_error_mdb = error;
	}
}

void power_monitors_losses(const struct power_monitors *m, struct driver_base *h)
{
	struct drv_snapshot *snap = &h->snap;
	const struct drv_port **at;

	if (h->any_to_any) {
		return;
	}
	at = x_new((size_t)h->n_in + (size_t)h->n_out, sizeof(*at));
	for (int i = 0; i < snap->n_ports; i++) {
		const struct drv_port *p = &snap->ports[i];

		at[p->is_out ? h->n_in + p->index : p->index] = p;
	}
	for (int i = 0; i < snap->n_xcs; i++) {
		struct drv_xc *x = &snap->xcs[i];

		judge_circuit(m, x, at[x->xc.in], at[h->n_in + x->xc.out]);
	}
	free(at);
}
