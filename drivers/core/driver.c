/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of driver.h that callers use on an open device: each checks
 * what the class cannot, then calls it; and the words for results, states and
 * events, which are part of the public interface and never change.
 */
#include "drivers/core/driver.h"

#include <stdlib.h>
#include <string.h>

#include "drivers/core/driver_base.h"

void drv_close(struct drv *dev, drv_close_cb cb, void *arg)
{
	dev->cls->close(dev, cb, arg);
}

void drv_snapshot(struct drv *dev, drv_snapshot_cb cb, void *arg)
{
	dev->cls->snapshot(dev, cb, arg);
}

void drv_submit(struct drv *dev, const struct drv_batch *batch, drv_submit_cb cb, void *arg)
{
	dev->cls->submit(dev, batch, cb, arg);
}

int drv_port_set(struct drv *dev, struct drv_port_id port, bool enable,
		 drv_submit_cb cb, void *arg, struct err *err)
{
	const struct driver_base *h = (const struct driver_base *)dev;

	if (!dev->cls->port_set) {
		return err_set(err, WEFT_EUNSUPPORTED, "%s: driver %s knows no "
			       "way to enable or disable ports", dev->name,
			       dev->cls->name);
	}
	if (port.index < 0 || port.index >= (port.is_out ? h->n_out : h->n_in)) {
		return err_set(err, WEFT_EINVAL, "%s: there is no port %s %d",
			       dev->name, port.is_out ? "out" : "in",
			       port.index + 1);
	}
	dev->cls->port_set(dev, port, enable, cb, arg);
	return 0;
}

int drv_recover(struct drv *dev, enum drv_recovery what, drv_submit_cb cb,
		void *arg, struct err *err)
{
	if (!(dev->cls->recoveries & what)) {
		return err_set(err, WEFT_EUNSUPPORTED, "%s: driver %s knows no "
			       "%s", dev->name, dev->cls->name,
			       drv_recovery_name(what));
	}
	dev->cls->recover(dev, what, cb, arg);
	return 0;
}

void drv_cancel(struct drv *dev)
{
	if (dev->busy && dev->cls->cancel) {
		dev->cls->cancel(dev);
	}
}

void drv_explain(struct drv *dev, const struct drv_batch *batch, drv_trace_fn fn, void *arg)
{
	dev->cls->explain(dev, batch, fn, arg);
}

void drv_set_trace(struct drv *dev, drv_trace_fn fn, void *arg)
{
	dev->trace = fn;
	dev->trace_arg = arg;
}

void drv_set_events(struct drv *dev, drv_event_fn fn, void *arg)
{
	dev->event = fn;
	dev->event_arg = arg;
}

void drv_snapshot_fini(struct drv_snapshot *s)
{
	free(s->xcs);
	free(s->ports);
	free(s->dead);
	free(s->lost);
	ring_programs_fini(&s->programs);
	memset(s, 0, sizeof(*s));
}

const char *drv_result_name(enum drv_result r)
{
	static const char *const names[] = { "done", "refused", "unknown",
					     "skipped" };

	return names[r];
}

const char *drv_evidence_name(enum drv_evidence e)
{
	static const char *const names[] = { "sent", "acked", "read-back",
					     "measured" };

	return names[e];
}

const char *drv_state_name(enum drv_state s)
{
	static const char *const names[] = { "blocked", "tuning", "tuned",
					     "failed" };

	return names[s];
}

const char *drv_event_name(enum drv_event_kind k)
{
	static const char *const names[] = { "note", "changed", "alarm",
					     "progress" };

	return names[k];
}

const char *drv_recovery_name(enum drv_recovery r)
{
	if (r == DRV_HOMING) {
		return "homing";
	}
	return r == DRV_RELOCK ? "relock" : "clear";
}
