/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The circuits of a device that are not as they should be, as status lists them. While a
 * change of a large fabric is under way that may be tens of thousands, of which only those
 * of a few devices are others than a moment ago: what was made of a device is kept, and
 * packed, until more is known of it.
 */
#include <stdlib.h>
#include <string.h>

#include "controller/daemon/views/private.h"

typedef VEC(struct optics_xc) xc_list;

/* How the circuits of a device differ from those that are intended, and those without light. */
struct differences {
	xc_list missing, unexpected, pending, dark;
};

static void sort_out(struct differences *to, enum apply_health health, struct optics_xc xc)
{
	switch (health) {
	case APPLY_MISSING: vec_push(&to->missing, xc); break;
	case APPLY_UNEXPECTED: vec_push(&to->unexpected, xc); break;
	case APPLY_PENDING: vec_push(&to->pending, xc); break;
	case APPLY_DARK: vec_push(&to->dark, xc); break;
	default: break;
	}
}

/* O(circuits log circuits), times the steps of open changes for those that are not intended. */
static void find_differences(const struct apply *apply, int device, const struct apply_device *a,
			     struct differences *to)
{
	const struct store_light *want = a->intent;
	int k = 0;

	for (int i = 0; i <= want->n_xcs; i++) {
		for (; k < a->snap.n_xcs && (i == want->n_xcs ||
		       optics_xc_cmp(&a->snap.xcs[k].xc, &want->xcs[i]) < 0); k++) {
			sort_out(to, apply_circuit(apply, device, a->snap.xcs[k].xc).health,
				 a->snap.xcs[k].xc);
		}
		if (i < want->n_xcs) {
			sort_out(to, a->circuits[i].health, want->xcs[i]);
			k += k < a->snap.n_xcs &&
			     optics_xc_cmp(&a->snap.xcs[k].xc, &want->xcs[i]) == 0;
		}
	}
}

/* The user who made a circuit, where the device knows: an operator who sees an
 * unexpected circuit wants to ask him before it goes. */
static void name_owners(struct msg_circuits *c, const struct apply_device *a)
{
	for (size_t i = 0; i < c->n; i++) {
		for (int k = 0; k < a->snap.n_xcs; k++) {
			const struct drv_xc *x = &a->snap.xcs[k];

			if (x->xc.in + 1 == c->v[i]->in && x->xc.out + 1 == c->v[i]->out) {
				c->v[i]->owner = (char *)x->owner;
			}
		}
	}
}

void device_circuits_list(const struct device_circuits *c, Weft__V1__DeviceState *m)
{
	m->n_missing = c->missing.n;
	m->missing = c->missing.v;
	m->n_unexpected = c->unexpected.n;
	m->unexpected = c->unexpected.v;
	m->n_pending = c->pending.n;
	m->pending = c->pending.v;
	m->n_dark = c->dark.n;
	m->dark = c->dark.v;
}

static void pack(struct device_circuits *c)
{
	Weft__V1__DeviceState m = WEFT__V1__DEVICE_STATE__INIT;
	char *to;

	device_circuits_list(c, &m);
	to = buf_extend(&c->packed, protobuf_c_message_get_packed_size(&m.base));
	protobuf_c_message_pack(&m.base, (uint8_t *)to);
}

static void list_circuits(struct msg_circuits *out, const struct apply *apply, int device,
			  const xc_list *xcs)
{
	msg_circuits_init(out, apply_fabric(apply), device, xcs->v, (int)xcs->n);
	for (size_t i = 0; i < out->n; i++) {
		out->v[i]->since_at_ns = apply_circuit(apply, device, xcs->v[i]).since_ns;
	}
}

static void make(struct device_circuits *c, const struct apply *apply, int device,
		 const struct apply_device *a)
{
	struct differences to = { 0 };

	find_differences(apply, device, a, &to);
	list_circuits(&c->missing, apply, device, &to.missing);
	list_circuits(&c->unexpected, apply, device, &to.unexpected);
	list_circuits(&c->pending, apply, device, &to.pending);
	list_circuits(&c->dark, apply, device, &to.dark);
	name_owners(&c->unexpected, a);
	pack(c);
	vec_fini(&to.missing);
	vec_fini(&to.unexpected);
	vec_fini(&to.pending);
	vec_fini(&to.dark);
}

void device_circuits_fini(struct device_circuits *c)
{
	msg_circuits_fini(&c->missing);
	msg_circuits_fini(&c->unexpected);
	msg_circuits_fini(&c->pending);
	msg_circuits_fini(&c->dark);
	buf_fini(&c->packed);
	memset(c, 0, sizeof(*c));
}

void device_circuits_renew(struct device_circuits *c, const struct apply *apply, int device,
			   const struct apply_device *a)
{
	if (c->version != a->version) {
		device_circuits_fini(c);
		make(c, apply, device, a);
		c->version = a->version;
	}
}
