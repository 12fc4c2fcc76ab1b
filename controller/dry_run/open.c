/* SPDX-License-Identifier: Apache-2.0 */
/* Devices of a fabric as handles of their drivers. */
#include <stdlib.h>

#include "controller/dry_run/dry_run.h"
#include "lib/base/alloc.h"

static int open_model(uv_loop_t *loop, const struct model_device *m,
		      uint64_t fence, struct drv **out, struct err *err)
{
	bool ring = m->kind == MODEL_RING;
	struct drv_option *options = x_new((size_t)m->n_options + 1, sizeof(*options));
	struct drv_config cfg = {
		.name = m->name,
		.address = m->address,
		.n_in = ring ? m->n_members : m->n_in,
		.n_out = ring ? m->ring.channels : m->n_out,
		.any_to_any = m->any_to_any,
		.ring_fibres = ring ? m->ring.fibres : 0,
		.timeout_ms = m->timeout_ms,
		.fence = fence,
		.options = options,
		.n_options = m->n_options,
	};
	int rc;

	for (int i = 0; i < m->n_options; i++) {
		options[i].key = m->options[i].key;
		options[i].value = m->options[i].value;
	}
	rc = drv_open(loop, m->driver, &cfg, out, err);
	free(options);
	return rc;
}

int dry_run_open(uv_loop_t *loop, const struct model_fabric *fabric, int device, uint64_t fence,
		 struct drv **out, struct err *err)
{
	const struct model_device *m = &fabric->devices[device];
	const struct drv_class *cls = drv_find(m->driver);
	int rc;

	*out = NULL;
	if (cls && (cls->kind == DRV_RING) != (m->kind == MODEL_RING)) {
		rc = err_set(err, WEFT_EINVAL, "device %s: driver %s is not "
			     "for a %s", m->name, m->driver,
			     model_device_kind_name(m->kind));
	} else {
		rc = open_model(loop, m, fence, out, err);
	}
	if (rc == WEFT_ENOTFOUND) {
		rc = WEFT_EINVAL;
		if (err) {
			err->code = rc;
		}
	}
	if (rc) {
		err_at(err, fabric->config.name, m->place.line, m->place.col);
	}
	return rc;
}
