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

/* A step that may have made (ADD) or taken away (DEL) its circuit: one that
 * was to be kept may be gone when the device restarted meanwhile. */
static bool may_have(const struct store_step *step, enum store_op op)
{
	return step->op == op || (op == STORE_DEL && step->op == STORE_KEEP &&
				  step->state != STORE_PLANNED);
}

/* True when an open change made (ADD) or deleted (DEL) this circuit, or may have.
 * Asked only of circuits that differ, which are few. O(steps of open changes). */
static bool explained(const struct open_changes *open, const char *device,
		      enum store_op op, struct optics_xc xc)
{
	for (size_t i = 0; i < open->v.n; i++) {
		const struct store_journal *j = open->v.v[i];

		for (int k = 0; k < j->n_works; k++) {
			const struct store_work *w = &j->works[k];

			if (strcmp(w->device, device) != 0) {
				continue;
			}
			for (int x = 0; x < w->n_steps; x++) {
				if (may_have(&w->steps[x], op) &&
				    optics_xc_cmp(&w->steps[x].xc, &xc) == 0) {
					return true;
				}
			}
		}
	}
	return false;
}

/* A circuit that differs: to `pending` if an open change explains it, else to
 * `odd`. */
static void sort_out(const struct open_changes *open, const char *device, enum store_op op,
		     struct optics_xc xc, xc_list *odd, xc_list *pending)
{
	xc_list *to = explained(open, device, op, xc) ? pending : odd;

	vec_push(to, xc);
}

/* How the circuits of a device differ from those that are intended. */
struct map_differences {
	xc_list missing, unexpected, pending;
	xc_list dark;		/* listed, and without light */
};

/* Walks both sorted maps once: intended and not there is missing, there and not
 * intended is unexpected. O(circuits), times the steps of open changes for those
 * that differ. */
static void compare_maps(const struct open_changes *open, bool any_to_any,
			 const struct apply_device *a, const struct store_light *intent,
			 struct map_differences *to)
{
	int i = 0, k = 0;

	/* A circuit that is listed and blocked is missing all the same. */
	while (i < intent->n_xcs || k < a->snap.n_xcs) {
		int order;

		if (i == intent->n_xcs || k == a->snap.n_xcs) {
			order = i == intent->n_xcs ? 1 : -1;
		} else {
			order = optics_xc_cmp(&intent->xcs[i], &a->snap.xcs[k].xc);
		}
		if (order < 0 || (order == 0 && a->snap.xcs[k].state == DRV_BLOCKED)) {
			sort_out(open, a->name, STORE_DEL, intent->xcs[i], &to->missing,
				 &to->pending);
		} else if (order > 0) {
			sort_out(open, a->name, STORE_ADD, a->snap.xcs[k].xc, &to->unexpected,
				 &to->pending);
		} else if (apply_is_dark(a, any_to_any, &a->snap.xcs[k])) {
			vec_push(&to->dark, intent->xcs[i]);
		}
		i += order <= 0;
		k += order >= 0;
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

static void list_circuits(struct msg_circuits *out, const struct model_fabric *f, int device,
			  const xc_list *xcs)
{
	msg_circuits_init(out, f, device, xcs->v, (int)xcs->n);
}

/* Nothing differs while the device was never read. */
static void make(struct device_circuits *c, const struct open_changes *open,
		 const struct model_fabric *f, int device, const struct apply_device *a)
{
	struct map_differences to = { 0 };

	if (a->ever_read) {
		compare_maps(open, f->devices[device].any_to_any, a, &c->intent, &to);
	}
	list_circuits(&c->missing, f, device, &to.missing);
	list_circuits(&c->unexpected, f, device, &to.unexpected);
	list_circuits(&c->pending, f, device, &to.pending);
	list_circuits(&c->dark, f, device, &to.dark);
	name_owners(&c->unexpected, a);
	pack(c);
	vec_fini(&to.missing);
	vec_fini(&to.unexpected);
	vec_fini(&to.pending);
	vec_fini(&to.dark);
}

void device_circuits_fini(struct device_circuits *c)
{
	store_light_fini(&c->intent);
	msg_circuits_fini(&c->missing);
	msg_circuits_fini(&c->unexpected);
	msg_circuits_fini(&c->pending);
	msg_circuits_fini(&c->dark);
	buf_fini(&c->packed);
	memset(c, 0, sizeof(*c));
}

int device_circuits_renew(struct device_circuits *c, const struct views *views,
			  const struct open_changes *open, int device,
			  const struct apply_device *a, struct err *err)
{
	int r;

	/* A standby reads what another process has written. */
	if (c->version == a->version && !views->standby) {
		return 0;
	}
	device_circuits_fini(c);
	r = store_intent(views->env->store, a->name, &c->intent, err);
	if (r) {
		device_circuits_fini(c);
		return r;
	}
	make(c, open, apply_fabric(views->env->apply), device, a);
	c->version = a->version;
	return 0;
}

int open_changes_init(struct open_changes *o, const struct views *views, struct err *err)
{
	const struct store_journal *j;
	int r = 0;

	memset(o, 0, sizeof(*o));
	if (views->standby) {
		r = store_open_changes(views->env->store, &o->stored, &o->n_stored, err);
	}
	for (int i = 0; i < o->n_stored && r == 0; i++) {
		vec_push(&o->v, &o->stored[i]);
	}
	for (int i = 0; r == 0 && !views->standby && (j = apply_journal(views->env->apply, i));
	     i++) {
		vec_push(&o->v, j);
	}
	return r;
}

void open_changes_fini(struct open_changes *o)
{
	vec_fini(&o->v);
	store_journals_free(o->stored, o->n_stored);
}
