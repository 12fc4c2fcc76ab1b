/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What devices are meant to hold and do hold, as bytes (weft.joint.v1.JointLights): each
 * participant of a joint change writes that of its own devices, and all of them make the base
 * of their plans of the bytes of all, so that it is the same everywhere.
 *
 * The arrays of struct plan_light become lists of numbers, row after row, by one table of their
 * columns. What a column may hold depends on the device in the fabric file; the table is what
 * input from outside is checked by, too: a row that passes can be planned with.
 */
#include <stdlib.h>
#include <string.h>

#include "controller/daemon/joint/private.h"
#include "lib/base/alloc.h"

typedef Weft__Joint__V1__JointLights pb_lights;
typedef Weft__Joint__V1__Device pb_device;
typedef Weft__Joint__V1__Light pb_light;

/* Powers and losses are less than this, either way. */
#define MAX_MDB 1000000
#define MAX_LEARNED_NS (INT64_C(366) * 86400 * 1000000000)

/* ---- lists --------------------------------------------------------------- */

enum number_kind { N_IN, N_OUT, N_MDB, N_SOURCE, N_PART, N_NODE, N_DIR, N_FIBRE, N_CHANNEL, N_WHY };

struct number_column {
	size_t offset, size;	/* in an element; 1, 2 or 4 bytes */
	enum number_kind kind;
};

#define COLUMN(type, member, kind) { offsetof(type, member), sizeof(((type *)NULL)->member), kind }

static const struct number_column in_columns[] = { { 0, sizeof(int), N_IN } };
static const struct number_column out_columns[] = { { 0, sizeof(int), N_OUT } };
static const struct number_column xc_columns[] = {
	COLUMN(struct optics_xc, in, N_IN), COLUMN(struct optics_xc, out, N_OUT),
};
static const struct number_column loss_columns[] = {
	COLUMN(struct plan_known_loss, xc.in, N_IN), COLUMN(struct plan_known_loss, xc.out, N_OUT),
	COLUMN(struct plan_known_loss, mdb, N_MDB),
	COLUMN(struct plan_known_loss, source, N_SOURCE),
};
static const struct number_column power_columns[] = {
	COLUMN(struct plan_known_power, in, N_IN), COLUMN(struct plan_known_power, mdbm, N_MDB),
};
/* In ring_fault_cmp()'s order. */
static const struct number_column dead_columns[] = {
	COLUMN(struct ring_fault, part, N_PART), COLUMN(struct ring_fault, node, N_NODE),
	COLUMN(struct ring_fault, dir, N_DIR), COLUMN(struct ring_fault, fibre, N_FIBRE),
	COLUMN(struct ring_fault, channel, N_CHANNEL), COLUMN(struct ring_fault, why, N_WHY),
};

#define MAX_COLUMNS 6

/* One of the arrays. */
struct light_list {
	const char *name;
	size_t n, v;		/* in struct plan_light */
	size_t pb_n, pb_v;	/* in the message */
	size_t size;		/* of an element */
	const struct number_column *columns;
	int n_columns;
	int n_key;		/* rows are sorted by so many columns; 0: not at all */
	bool once;		/* and no two are the same in these */
	bool of_circuits;	/* each is one of the circuits */
};

#define LIST(member, type, cols, ...)                                                     \
	{ #member, offsetof(struct plan_light, n_##member), offsetof(struct plan_light, member), \
	  offsetof(pb_light, n_##member), offsetof(pb_light, member), sizeof(type), cols,      \
	  (int)(sizeof(cols) / sizeof((cols)[0])), __VA_ARGS__ }

/* xcs first, as others are of them. Those that are not `once` may be twice in what the engine
 * has: circuits that two open changes make. */
static const struct light_list lists[] = {
	LIST(xcs, struct optics_xc, xc_columns, .n_key = 2),
	LIST(dark, struct optics_xc, xc_columns, .n_key = 2, .of_circuits = true),
	LIST(no_light, struct optics_xc, xc_columns, .n_key = 2, .of_circuits = true),
	LIST(fixed, struct optics_xc, xc_columns, .n_key = 2, .of_circuits = true),
	LIST(pending, struct optics_xc, xc_columns, .n_key = 2),
	LIST(bad_in, int, in_columns, .n_key = 0),
	LIST(bad_out, int, out_columns, .n_key = 0),
	LIST(dead, struct ring_fault, dead_columns, .n_key = 5, .once = true),
	LIST(lost, struct ring_fault, dead_columns, .n_key = 5, .once = true),
	LIST(losses, struct plan_known_loss, loss_columns, .n_key = 2, .once = true),
	LIST(powers, struct plan_known_power, power_columns, .n_key = 1),
};
#define N_LISTS (sizeof(lists) / sizeof(lists[0]))

static int32_t get_number(const char *element, const struct number_column *c)
{
	uint8_t byte;
	uint16_t half;
	int32_t word;

	switch (c->size) {
	case sizeof(byte): memcpy(&byte, element + c->offset, c->size); return byte;
	case sizeof(half): memcpy(&half, element + c->offset, c->size); return half;
	default: memcpy(&word, element + c->offset, c->size); return word;
	}
}

/* It is in range. */
static void put_number(char *element, const struct number_column *c, int32_t x)
{
	uint8_t byte = (uint8_t)x;
	uint16_t half = (uint16_t)x;

	switch (c->size) {
	case sizeof(byte): memcpy(element + c->offset, &byte, c->size); return;
	case sizeof(half): memcpy(element + c->offset, &half, c->size); return;
	default: memcpy(element + c->offset, &x, c->size);
	}
}

static bool in_range(const struct model_device *dev, enum number_kind kind, int32_t x)
{
	switch (kind) {
	case N_IN: return x >= 0 && x < dev->n_in;
	case N_OUT: return x >= 0 && x < dev->n_out;
	case N_MDB: return x >= -MAX_MDB && x <= MAX_MDB;
	case N_SOURCE: return x >= PLAN_CONFIGURED && x <= PLAN_FACTORY;
	case N_PART: return x >= RING_RESONATOR && x <= RING_NODE;
	case N_NODE: return x >= 0 && x < dev->ring.n;
	case N_DIR: return x == OPTICS_CW || x == OPTICS_CCW;
	case N_FIBRE: return x >= 0 && x < dev->ring.fibres;
	case N_CHANNEL: return x >= 0 && x < dev->ring.channels;
	default: return x >= 0 && x < RESONATOR_N_LOCKS;
	}
}

static bool row_fits(const struct light_list *list, const struct model_device *dev,
		     const int32_t *row)
{
	for (int k = 0; k < list->n_columns; k++) {
		if (!in_range(dev, list->columns[k].kind, row[k])) {
			return false;
		}
	}
	return true;
}

static int compare_rows(const int32_t *a, const int32_t *b, int n)
{
	int k = 0;

	while (k < n && a[k] == b[k]) {
		k++;
	}
	return k == n ? 0 : a[k] < b[k] ? -1 : 1;
}

static int by_circuit(const void *a, const void *b)
{
	return compare_rows(a, b, 2);
}

/* ---- to bytes ------------------------------------------------------------ */

static void put_list(const struct light_list *list, const struct plan_light *l,
		     const struct model_device *dev, pb_light *out, struct arrays *own)
{
	int n = *(const int *)(const void *)((const char *)l + list->n);
	size_t *n_out = (size_t *)(void *)((char *)out + list->pb_n);
	const char *from = *(const char *const *)(const void *)((const char *)l + list->v);
	int32_t *to;

	arrays_add(own, to, (size_t)n * (size_t)list->n_columns);
	memcpy((char *)out + list->pb_v, &to, sizeof(to));
	for (int i = 0; i < n; i++, from += list->size) {
		for (int k = 0; k < list->n_columns; k++) {
			to[k] = get_number(from, &list->columns[k]);
		}
		if (row_fits(list, dev, to)) {
			to += list->n_columns;
			*n_out += (size_t)list->n_columns;
		}
	}
}

static void put_programs(const struct ring_programs *programs, pb_light *out, struct arrays *own)
{
	ring_programs_save(programs, &out->programs.data, &out->programs.len);
	out->has_programs = true;
	vec_push(&own->all, out->programs.data);
}

static void put_light(const struct plan_light *l, const struct model_device *dev, pb_light *out,
		      struct arrays *own)
{
	out->known = l->known;
	out->memory = l->memory;
	out->max_programs = l->max_programs;
	out->overlap = l->overlap;
	out->reload = l->reload;
	for (size_t k = 0; k < N_LISTS; k++) {
		put_list(&lists[k], l, dev, out, own);
	}
	if (l->programs) {
		put_programs(l->programs, out, own);
	}
}

/* Of the transceivers whose light comes from this device. */
static void put_times(const struct snapshot *s, const struct model_device *dev, int device,
		      pb_device *out, struct arrays *own)
{
	const struct plan_times *t = &s->base.times;

	out->switching_ns = t->n_devices ? t->device_ns[device] : 0;
	arrays_add(own, out->reactivation_ns, 2 * (size_t)dev->n_out);
	for (int i = 0; t->n_ports && i < dev->n_out; i++) {
		int port = dev->out_port[i];

		if (port >= 0 && t->port_ns[port]) {
			out->reactivation_ns[out->n_reactivation_ns++] = i;
			out->reactivation_ns[out->n_reactivation_ns++] = t->port_ns[port];
		}
	}
}

void joint_lights_encode(const struct snapshot *s, const struct model_fabric *f,
			 bool (*own)(const struct model_device *, void *), void *arg,
			 struct buf *out)
{
	pb_lights m = WEFT__JOINT__V1__JOINT_LIGHTS__INIT;
	size_t n = (size_t)f->n_devices;
	pb_light **lights = message_list(&weft__joint__v1__light__descriptor, 2 * n);
	struct arrays arrays = { 0 };

	m.devices = message_list(&weft__joint__v1__device__descriptor, n);
	for (int i = 0; i < f->n_devices; i++) {
		const struct model_device *dev = &f->devices[i];
		pb_device *to = m.devices[m.n_devices];

		if (!own(dev, arg)) {
			continue;
		}
		to->name = dev->name;
		to->intent = lights[2 * m.n_devices];
		to->observed = lights[2 * m.n_devices + 1];
		m.n_devices++;
		put_times(s, dev, i, to, &arrays);
		put_light(&s->base.intent[i], dev, to->intent, &arrays);
		put_light(&s->base.observed[i], dev, to->observed, &arrays);
	}
	joint_pack(&m.base, out);
	arrays_fini(&arrays);
	free(m.devices);
	free(lights);
}

/* ---- and back ------------------------------------------------------------ */

static int check_order(const struct light_list *list, const int32_t *v, size_t n, struct err *err)
{
	const size_t k = (size_t)list->n_columns;

	for (size_t i = 1; list->n_key && i < n; i++) {
		int c = compare_rows(v + (i - 1) * k, v + i * k, list->n_key);

		if (c > 0 || (c == 0 && list->once)) {
			return err_set(err, WEFT_EINVAL, "%s: not in order", list->name);
		}
	}
	return 0;
}

/* n rows, which are sorted and of the device. */
static int check_list(const struct light_list *list, const pb_light *m,
		      const struct model_device *dev, const int32_t *v, size_t n, struct err *err)
{
	for (size_t i = 0; i < n; i++) {
		const int32_t *row = v + i * (size_t)list->n_columns;

		if (!row_fits(list, dev, row)) {
			return err_set(err, WEFT_EINVAL, "%s: the device has no %d, %d",
				       list->name, (int)row[0],
				       list->n_columns > 1 ? (int)row[1] : 0);
		}
		if (list->of_circuits &&
		    !(m->n_xcs && bsearch(row, m->xcs, m->n_xcs / 2, 2 * sizeof(*row),
					  by_circuit))) {
			return err_set(err, WEFT_EINVAL, "%s: %d to %d is no circuit of it",
				       list->name, (int)row[0], (int)row[1]);
		}
	}
	return check_order(list, v, n, err);
}

static int take_list(const struct light_list *list, const pb_light *m,
		     const struct model_device *dev, struct plan_light *out, struct err *err)
{
	size_t k = (size_t)list->n_columns;
	size_t n = *(const size_t *)(const void *)((const char *)m + list->pb_n);
	const int32_t *v = *(int32_t *const *)(const void *)((const char *)m + list->pb_v);
	char *to;

	if (n % k || n / k > INT32_MAX) {
		return err_set(err, WEFT_EINVAL, "%s: %zu numbers", list->name, n);
	}
	to = x_new(n / k, list->size);
	memcpy((char *)out + list->v, &to, sizeof(to));
	for (size_t i = 0; i < n; i++) {
		put_number(to + i / k * list->size, &list->columns[i % k], v[i]);
	}
	*(int *)(void *)((char *)out + list->n) = (int)(n / k);
	return check_list(list, m, dev, v, n / k, err);
}

/* What a device holds was checked by its driver; what it is meant to hold may be of before,
 * when the ring was another. */
static int take_programs(const pb_light *m, const struct model_device *dev, bool observed,
			 struct ring_programs *out, struct err *err)
{
	const struct ring_geometry ring = { (uint16_t)dev->ring.n, (uint16_t)dev->ring.channels,
					    (uint8_t)dev->ring.fibres };
	int rc;

	if (!m->has_programs) {
		return 0;
	}
	if (dev->kind != MODEL_RING) {
		return err_set(err, WEFT_EINVAL, "programs, of what is no ring");
	}
	rc = ring_programs_load(out, m->programs.data, m->programs.len, err);
	if (rc || !observed) {
		return rc;
	}
	return ring_programs_check(out, &ring, err);
}

static int take_light(const pb_light *m, const struct model_device *dev, bool observed,
		      struct plan_light *out, struct ring_programs *programs, struct err *err)
{
	int rc = 0;

	if (m->max_programs < 0) {
		return err_set(err, WEFT_EINVAL, "%d programs at most", m->max_programs);
	}
	out->known = m->known;
	out->memory = m->memory;
	out->max_programs = m->max_programs;
	out->overlap = m->overlap;
	out->reload = m->reload;
	for (size_t k = 0; k < N_LISTS && rc == 0; k++) {
		rc = take_list(&lists[k], m, dev, out, err);
	}
	if (rc) {
		return rc;
	}
	return take_programs(m, dev, observed, programs, err);
}

/* Into its place in the snapshot. */
static int replace_light(struct snapshot *s, const struct model_fabric *f, int device,
			 const pb_light *m, bool observed, struct err *err)
{
	static const pb_light nothing = WEFT__JOINT__V1__LIGHT__INIT;
	struct plan_light light = { 0 };
	struct ring_programs programs = { 0 };
	int rc;

	m = m ? m : &nothing;
	rc = take_light(m, &f->devices[device], observed, &light, &programs, err);
	if (rc) {
		daemon_light_fini(&light);
		ring_programs_fini(&programs);
		return err_wrap(err, observed ? "observed" : "intent");
	}
	daemon_snapshot_replace(s, observed, device, &light, m->has_programs ? &programs : NULL);
	return 0;
}

static bool is_learned(int64_t ns)
{
	return ns >= 0 && ns <= MAX_LEARNED_NS;
}

/* Those that are not given are not known. */
static int replace_times(struct snapshot *s, const struct model_device *dev, int device,
			 const pb_device *m, struct err *err)
{
	const struct plan_times *t = &s->base.times;

	if (m->n_reactivation_ns % 2 || !is_learned(m->switching_ns)) {
		return err_set(err, WEFT_EINVAL, "learned times: %lld ns",
			       (long long)m->switching_ns);
	}
	if (t->n_devices) {
		s->device_ns[device] = m->switching_ns;
	}
	for (int i = 0; t->n_ports && i < dev->n_out; i++) {
		if (dev->out_port[i] >= 0) {
			s->port_ns[dev->out_port[i]] = 0;
		}
	}
	for (size_t i = 0; i < m->n_reactivation_ns; i += 2) {
		int64_t port = m->reactivation_ns[i], ns = m->reactivation_ns[i + 1];

		if (port < 0 || port >= dev->n_out || dev->out_port[port] < 0 || !is_learned(ns)) {
			return err_set(err, WEFT_EINVAL, "learned times: output %lld, %lld ns",
				       (long long)port, (long long)ns);
		}
		if (t->n_ports) {
			s->port_ns[dev->out_port[port]] = ns;
		}
	}
	return 0;
}

/* seen: [devices] the earlier ones. */
static int replace_device(struct snapshot *s, const struct model_fabric *f, const pb_device *m,
			  bool *seen, struct err *err)
{
	int i = model_find_device(f, m->name), rc;

	if (i < 0) {
		return err_set(err, WEFT_EINVAL, "the fabric has no device '%s'", m->name);
	}
	if (seen[i]) {
		return err_set(err, WEFT_EINVAL, "device %s is there twice", m->name);
	}
	seen[i] = true;
	if ((rc = replace_light(s, f, i, m->intent, false, err)) ||
	    (rc = replace_light(s, f, i, m->observed, true, err)) ||
	    (rc = replace_times(s, &f->devices[i], i, m, err))) {
		return err_wrap(err, "device %s", m->name);
	}
	return 0;
}

int joint_lights_decode(struct snapshot *s, const struct model_fabric *f, const void *data,
			size_t len, const char *from, struct err *err)
{
	ProtobufCMessage *msg = NULL;
	bool *seen = x_new((size_t)f->n_devices + 1, sizeof(*seen));
	int rc = joint_unpack(&weft__joint__v1__joint_lights__descriptor, data, len, &msg, err);
	const pb_lights *m = (const pb_lights *)msg;

	for (size_t i = 0; rc == 0 && i < m->n_devices; i++) {
		rc = replace_device(s, f, m->devices[i], seen, err);
	}
	rpc_free_message(msg);
	free(seen);
	return rc ? err_wrap(err, "participant %s", from) : 0;
}
