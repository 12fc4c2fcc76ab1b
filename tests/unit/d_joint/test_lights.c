/* SPDX-License-Identifier: Apache-2.0 */
/* Light of random fabrics from participant to participant, and input that is no light. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/daemon/joint/joint.h"
#include "lib/base/number/rng.h"
#include "lib/base/vec.h"
#include "tests/unit/packed.h"
#include "weft/joint/v1/joint.pb-c.h"

#define N_WORLDS 60
#define N_FLIPS 25		/* a participant of each world */

/* ---- random fabrics ------------------------------------------------------ */

static int below(struct rng *rng, int n)
{
	return (int)rng_below(rng, (uint64_t)n);
}

static bool chance(struct rng *rng, int percent)
{
	return below(rng, 100) < percent;
}

/* Switches that have a port of every host each, some any-to-any, the first two with a fibre
 * between them; rings of other hosts; each device in one of `rows` domains. */
static void write_devices(struct rng *rng, int switches, int rings, int hosts, int rows,
			  struct buf *b)
{
	bool duplex[4], trunk = switches > 1;

	buf_str(b, "switches:\n");
	for (int i = 0; i < switches; i++) {
		duplex[i] = chance(rng, 20);
		trunk = trunk && (i > 1 || !duplex[i]);
		buf_printf(b, duplex[i] ? "  - { name: ocs%d, ports: 12, any-to-any: true" :
			   "  - { name: ocs%d, size: 12x12", i);
		buf_printf(b, ", driver: sim, domain: row%d, loss: 1dB }\n", below(rng, rows));
	}
	buf_str(b, "fibres:\n");
	for (int i = 0; i < switches; i++) {
		buf_printf(b, "  - { from: 'h[0-%d].p%d', to: 'ocs%d.[1-%d]' }\n", hosts - 1, i,
			   i, hosts);
	}
	if (trunk) {
		buf_str(b, "  - { from: ocs0.12, to: ocs1.12 }\n");
	}
	buf_str(b, rings ? "rings:\n" : "");
	for (int i = 0; i < rings; i++) {
		buf_printf(b, "  - { name: r%d, nodes: 'n%d[0-5]', channels: 4, channel-rate: "
			   "40Gbps, retune: 25us, driver: sim-ring, domain: row%d }\n", i, i,
			   below(rng, rows));
	}
}

static struct model_fabric *random_fabric(struct rng *rng, int rows)
{
	int switches = 1 + below(rng, 4), rings = below(rng, 3), hosts = 4 + below(rng, 6);
	struct err_list errs = { .max = 1 };
	struct model_fabric *f = NULL;
	struct buf b = { 0 };

	buf_printf(&b, "weft: 1\nfabric: t\nhosts:\n"
		   "  - { name: 'h[0-%d]', ports: 'p[0-%d]', rate: 100Gbps }\n", hosts - 1,
		   switches - 1);
	for (int i = 0; i < rings; i++) {
		buf_printf(&b, "  - { name: 'n%d[0-5]' }\n", i);
	}
	write_devices(rng, switches, rings, hosts, rows, &b);
	buf_printf(&b, "jobs:\n  - { name: j, nodes: 'h[0-%d]', collective: allgather, size: 1MiB, "
		   "topology: '%s%d)', algorithm: bfb, alpha: 5us }\n", hosts - 1,
		   chance(rng, 50) && switches > 1 ? "Ring(" : "UniRing(1,", hosts);
	for (int i = 0; i < rings; i++) {
		buf_printf(&b, "  - { name: g%d, ring: r%d, nodes: all, collective: allgather, "
			   "size: 1MiB }\n", i, i);
	}
	if (model_parse("t", b.data, b.len, &f, &errs)) {
		fail_msg("%s\n%s", errs.v[0].msg, b.data);
	}
	buf_fini(&b);
	return f;
}

/* ---- random light -------------------------------------------------------- */

#define MAX_ROWS 24		/* of a list */

/* Sorted, no port twice; of any-to-any switches the lower port first. */
static int random_circuits(struct rng *rng, const struct model_device *dev, struct optics_xc *v)
{
	bool in[12] = { false }, out[12] = { false };
	int n = 0;

	for (int k = below(rng, 2 * 12); k > 0 && dev->kind != MODEL_RING; k--) {
		int a = below(rng, 12), b = below(rng, 12);

		if (dev->any_to_any) {
			if (a < b && !in[a] && !in[b]) {
				in[a] = in[b] = true;
				v[n++] = (struct optics_xc){ a, b };
			}
		} else if (!in[a] && !out[b]) {
			in[a] = out[b] = true;
			v[n++] = (struct optics_xc){ a, b };
		}
	}
	qsort(v, (size_t)n, sizeof(*v), optics_xc_cmp);
	return n;
}

static int some_of(struct rng *rng, const struct optics_xc *from, int n, int percent,
		   struct optics_xc *to)
{
	int k = 0;

	for (int i = 0; i < n; i++) {
		if (chance(rng, percent)) {
			to[k++] = from[i];
		}
	}
	return k;
}

static void random_switch(struct rng *rng, struct plan_light *l, const struct model_device *dev,
			  struct arrays *own)
{
	struct optics_xc *xcs, *dark, *no_light, *fixed, *pending;
	struct plan_known_loss *losses;
	struct plan_known_power *powers;
	int *bad;

	arrays_add(own, xcs, MAX_ROWS);
	arrays_add(own, dark, MAX_ROWS);
	arrays_add(own, no_light, MAX_ROWS);
	arrays_add(own, fixed, MAX_ROWS);
	arrays_add(own, pending, MAX_ROWS);
	arrays_add(own, losses, MAX_ROWS);
	arrays_add(own, powers, MAX_ROWS);
	arrays_add(own, bad, 2);
	l->n_xcs = random_circuits(rng, dev, xcs);
	l->n_dark = some_of(rng, xcs, l->n_xcs, 20, dark);
	l->n_no_light = some_of(rng, xcs, l->n_xcs, 20, no_light);
	l->n_fixed = some_of(rng, xcs, l->n_xcs, 5, fixed);
	l->n_pending = random_circuits(rng, dev, pending);
	for (int i = 0; i < l->n_xcs; i++) {
		losses[i] = (struct plan_known_loss){ xcs[i], below(rng, 4000) - 1000,
						      (enum plan_source)below(rng, 3) };
	}
	l->n_losses = below(rng, l->n_xcs + 1);
	for (int i = 0; i < 12; i += 1 + below(rng, 3)) {
		powers[l->n_powers++] = (struct plan_known_power){ i, below(rng, 9000) - 8000 };
	}
	/* Not sorted: what is drained comes last. */
	bad[0] = 11;
	bad[1] = below(rng, 12);
	l->n_bad_in = chance(rng, 10) ? 2 : 0;
	l->n_bad_out = chance(rng, 10);
	l->xcs = xcs;
	l->dark = dark;
	l->no_light = no_light;
	l->fixed = fixed;
	l->pending = pending;
	l->losses = losses;
	l->powers = powers;
	l->bad_in = l->bad_out = bad;
}

static struct ring_fault random_part(struct rng *rng, const struct model_device *dev)
{
	struct ring_fault d = { .part = (uint8_t)(RING_RESONATOR + below(rng, 3)) };

	d.node = (uint16_t)below(rng, dev->ring.n);
	if (d.part != RING_NODE) {
		d.dir = (uint8_t)below(rng, 2);
		d.fibre = (uint8_t)below(rng, dev->ring.fibres);
	}
	if (d.part == RING_RESONATOR) {
		d.channel = (uint16_t)below(rng, dev->ring.channels);
		d.why = (uint8_t)below(rng, RESONATOR_N_LOCKS);
	}
	return d;
}

static int random_parts(struct rng *rng, const struct model_device *dev, struct ring_fault *v)
{
	int n = 0, kept = 0;

	for (int k = below(rng, 5); k > 0; k--) {
		v[n++] = random_part(rng, dev);
	}
	qsort(v, (size_t)n, sizeof(*v), ring_fault_cmp);
	for (int i = 0; i < n; i++) {
		if (kept == 0 || ring_fault_cmp(&v[kept - 1], &v[i])) {
			v[kept++] = v[i];
		}
	}
	return kept;
}

static void random_programs(struct rng *rng, const struct model_device *dev, const char *name,
			    struct ring_programs *out)
{
	struct ring_settings p = { .steps = 1 + (uint32_t)below(rng, 4),
				   .v = calloc(8, sizeof(*p.v)) };
	struct ring_fault without[MAX_ROWS];
	struct ring_window half = { .nodes = (uint16_t)dev->ring.n, .channels = 2 };

	assert_non_null(p.v);
	for (int i = 0; i < 8; i++) {
		struct ring_setting t = { (uint16_t)below(rng, (int)p.steps),
					  (uint16_t)below(rng, dev->ring.n),
					  (uint16_t)below(rng, 2), (uint8_t)below(rng, 2),
					  0, (uint8_t)(1 + below(rng, 3)) };
		bool met = false;

		for (size_t k = 0; k < p.n; k++) {
			met = met || ring_setting_cmp(&p.v[k], &t) == 0;
		}
		if (!met) {
			p.v[p.n++] = t;
		}
	}
	assert_int_equal(ring_settings_normalise(&p, NULL), 0);
	pack_into(out, name, dev->ring.n, dev->ring.channels, dev->ring.fibres, half, &p);
	half.first_channel = 2;
	for (size_t i = 0; i < p.n; i++) {
		p.v[i].channel += 2;
	}
	if (chance(rng, 50)) {
		pack_into(out, "zz", dev->ring.n, dev->ring.channels, dev->ring.fibres, half, &p);
	}
	ring_settings_fini(&p);
	ring_program_set_without(&out->v[0], without, random_parts(rng, dev, without));
}

static void random_ring(struct rng *rng, struct plan_light *l, const struct model_device *dev,
			struct ring_programs *programs, struct arrays *own)
{
	struct ring_fault *dead, *lost;

	arrays_add(own, dead, MAX_ROWS);
	arrays_add(own, lost, MAX_ROWS);
	assert_non_null(dead);
	assert_non_null(lost);
	l->n_dead = chance(rng, 40) ? random_parts(rng, dev, dead) : 0;
	l->dead = dead;
	l->n_lost = chance(rng, 40) ? random_parts(rng, dev, lost) : 0;
	l->lost = lost;
	l->memory = chance(rng, 50) ? rng_u64(rng) : 0;
	l->max_programs = chance(rng, 20) ? 2 : 0;
	l->overlap = chance(rng, 50);
	l->reload = chance(rng, 20);
	if (chance(rng, 70)) {
		if (chance(rng, 80)) {
			random_programs(rng, dev, chance(rng, 50) ? "g0" : "a", programs);
		}
		l->programs = programs;
	}
}

/* A base with all of a fabric's light, copied. */
static void random_snapshot(struct rng *rng, const struct model_fabric *f, struct snapshot *s)
{
	struct arrays own = { 0 };
	size_t n = (size_t)f->n_devices;
	struct plan_light *v;
	struct ring_programs *programs;
	int64_t *times;
	struct plan_base base = { .mode = chance(rng, 70) ? PLAN_UPDATE : PLAN_SAFE };

	arrays_add(&own, v, 2 * n);
	arrays_add(&own, programs, 2 * n);
	arrays_add(&own, times, n + (size_t)f->n_ports);
	for (size_t i = 0; i < 2 * n; i++) {
		const struct model_device *dev = &f->devices[i % n];

		if (chance(rng, 90)) {
			v[i].known = true;
			if (dev->kind == MODEL_RING) {
				random_ring(rng, &v[i], dev, &programs[i], &own);
			} else {
				random_switch(rng, &v[i], dev, &own);
			}
		}
	}
	for (int i = 0; i < f->n_ports + f->n_devices; i++) {
		times[i] = chance(rng, 50) ? 1 + below(rng, 1000000) : 0;
	}
	base.intent = v;
	base.observed = v + n;
	base.times = (struct plan_times){ f->n_ports, f->n_devices, times, times + f->n_ports };
	daemon_snapshot_init(s, &base, f->n_devices);
	for (size_t i = 0; i < 2 * n; i++) {
		ring_programs_fini(&programs[i]);
	}
	arrays_fini(&own);
}

/* ---- comparing ----------------------------------------------------------- */

#define SAME_LIST(member)                                                            \
	do {                                                                         \
		assert_int_equal(a->n_##member, b->n_##member);                      \
		assert_true(a->n_##member == 0 ||                                    \
			    memcmp(a->member, b->member,                             \
				   (size_t)a->n_##member * sizeof(*a->member)) == 0); \
	} while (0)

static void same_programs(const struct ring_programs *a, const struct ring_programs *b)
{
	assert_int_equal(a != NULL, b != NULL);
	assert_true(!a || ring_programs_equal(a, b));
	for (int i = 0; a && i < a->n; i++) {
		const struct ring_program *p = &a->v[i], *q = &b->v[i];

		assert_int_equal(p->n_without, q->n_without);
		assert_true(p->n_without == 0 ||
			    memcmp(p->without, q->without,
				   (size_t)p->n_without * sizeof(*p->without)) == 0);
	}
}

static void same_light(const struct plan_light *a, const struct plan_light *b)
{
	assert_int_equal(a->known, b->known);
	SAME_LIST(xcs);
	SAME_LIST(dark);
	SAME_LIST(no_light);
	SAME_LIST(fixed);
	SAME_LIST(pending);
	SAME_LIST(bad_in);
	SAME_LIST(bad_out);
	SAME_LIST(dead);
	SAME_LIST(lost);
	SAME_LIST(losses);
	SAME_LIST(powers);
	same_programs(a->programs, b->programs);
	assert_true(a->memory == b->memory);
	assert_int_equal(a->max_programs, b->max_programs);
	assert_int_equal(a->overlap, b->overlap);
	assert_int_equal(a->reload, b->reload);
}

static void same_snapshot(const struct snapshot *a, const struct snapshot *b,
			  const struct model_fabric *f)
{
	for (int i = 0; i < f->n_devices; i++) {
		same_light(&a->base.intent[i], &b->base.intent[i]);
		same_light(&a->base.observed[i], &b->base.observed[i]);
		assert_true(a->base.times.device_ns[i] == b->base.times.device_ns[i]);
	}
	for (int i = 0; i < f->n_ports; i++) {
		assert_true(a->base.times.port_ns[i] == b->base.times.port_ns[i]);
	}
}

/* Whether there is a plan. */
static bool same_plan(const struct snapshot *a, const struct snapshot *b,
		      const struct model_fabric *f)
{
	struct err err = { 0 }, other = { 0 };
	struct plan *p = NULL, *q = NULL;
	int rc = plan_make(f, &a->base, &p, &err);

	assert_int_equal(plan_make(f, &b->base, &q, &other), rc);
	assert_string_equal(err.msg, other.msg);
	if (rc == 0) {
		assert_string_equal(p->digest, q->digest);
		assert_true(p->down_ns == q->down_ns);
		assert_int_equal(p->n_warnings, q->n_warnings);
	}
	plan_free(p);
	plan_free(q);
	return rc == 0;
}

/* ---- the tests ----------------------------------------------------------- */

static bool is_of_row(const struct model_device *dev, void *arg)
{
	return strcmp(dev->domain, arg) == 0;
}

static void encode_row(const struct snapshot *s, const struct model_fabric *f, int row,
		       struct buf *out)
{
	char name[16];

	snprintf(name, sizeof(name), "row%d", row);
	joint_lights_encode(s, f, is_of_row, name, out);
}

static void decode_row(struct snapshot *s, const struct model_fabric *f, const struct buf *b)
{
	struct err err = { 0 };

	if (joint_lights_decode(s, f, b->data, b->len, "x", &err)) {
		fail_msg("%s", err.msg);
	}
}

/* What one participant knew of the devices of others does not matter. */
static void test_all_have_the_same(void **state)
{
	int planned = 0;

	(void)state;
	for (int seed = 0; seed < N_WORLDS; seed++) {
		struct rng rng = { (uint64_t)seed };
		int rows = 1 + below(&rng, 4);
		struct model_fabric *f = random_fabric(&rng, rows);
		struct snapshot truth, s;

		random_snapshot(&rng, f, &truth);
		random_snapshot(&rng, f, &s);
		s.base.mode = truth.base.mode;
		for (int row = rows - 1; row >= 0; row--) {
			struct buf b = { 0 };

			encode_row(&truth, f, row, &b);
			decode_row(&s, f, &b);
			buf_fini(&b);
		}
		same_snapshot(&truth, &s, f);
		planned += same_plan(&truth, &s, f);
		daemon_snapshot_fini(&truth);
		daemon_snapshot_fini(&s);
		model_free(f);
	}
	print_message("# %d of %d can be planned\n", planned, N_WORLDS);
	assert_in_range(planned, N_WORLDS / 4, N_WORLDS);
}

/* A byte is another: refused with the participant's name, or light of this fabric. Its
 * encoding is read again. */
static bool flip_once(struct rng *rng, const struct snapshot *truth,
		      const struct model_fabric *f, const struct buf *b)
{
	char *bytes = malloc(b->len);
	struct snapshot s;
	struct err err = { 0 };
	int rc;

	assert_non_null(bytes);
	memcpy(bytes, b->data, b->len);
	bytes[below(rng, (int)b->len)] ^= (char)(1 << below(rng, 8));
	daemon_snapshot_init(&s, &truth->base, f->n_devices);
	rc = joint_lights_decode(&s, f, bytes, b->len, "row7", &err);
	if (rc) {
		assert_true(strncmp(err.msg, "participant row7: ", 18) == 0 && err.code == rc);
	} else {
		struct buf again = { 0 };
		struct snapshot t;

		daemon_snapshot_init(&t, &truth->base, f->n_devices);
		for (int row = 0; row < 4; row++) {
			buf_reset(&again);
			encode_row(&s, f, row, &again);
			decode_row(&t, f, &again);
		}
		same_snapshot(&s, &t, f);
		if (chance(rng, 10)) {
			same_plan(&s, &t, f);
		}
		daemon_snapshot_fini(&t);
		buf_fini(&again);
	}
	daemon_snapshot_fini(&s);
	free(bytes);
	return rc == 0;
}

static void test_other_bytes(void **state)
{
	int taken = 0, flips = 0;

	(void)state;
	for (int seed = 0; seed < N_WORLDS / 4; seed++) {
		struct rng rng = { 1000 + (uint64_t)seed };
		struct model_fabric *f = random_fabric(&rng, 2);
		struct snapshot truth;

		random_snapshot(&rng, f, &truth);
		for (int row = 0; row < 2; row++) {
			struct buf b = { 0 };

			encode_row(&truth, f, row, &b);
			for (int i = 0; b.len && i < N_FLIPS; i++) {
				taken += flip_once(&rng, &truth, f, &b);
				flips++;
			}
			buf_fini(&b);
		}
		daemon_snapshot_fini(&truth);
		model_free(f);
	}
	assert_in_range(taken, 1, flips - 1);
}

/* ---- one field at a time ------------------------------------------------- */

static struct model_fabric *small_fabric(void)
{
	static const char text[] =
		"weft: 1\nfabric: t\nhosts:\n"
		"  - { name: 'h[0-3]', ports: p0, rate: 100Gbps }\n  - { name: 'n[0-3]' }\n"
		"switches:\n  - { name: ocs0, size: 8x8, driver: sim }\n"
		"fibres:\n  - { from: 'h[0-3].p0', to: 'ocs0.[1-4]' }\n"
		"rings:\n  - { name: r0, nodes: 'n[0-3]', channels: 4, channel-rate: 40Gbps, "
		"retune: 25us, driver: sim-ring }\n";
	struct err_list errs = { .max = 1 };
	struct model_fabric *f = NULL;

	if (model_parse("t", text, sizeof(text) - 1, &f, &errs)) {
		fail_msg("%s", errs.v[0].msg);
	}
	return f;
}

/* Two devices without light, and what is to be found in the error. */
struct wrong_case {
	const char *expected;
	void (*spoil)(Weft__Joint__V1__Device *ocs, Weft__Joint__V1__Device *ring);
};

static int32_t row[8];

#define CASE(name, device, side, list, count, ...)                                       \
	static void name(Weft__Joint__V1__Device *ocs, Weft__Joint__V1__Device *ring)    \
	{                                                                                \
		static const int32_t v[] = { __VA_ARGS__ };                              \
		(void)ocs;                                                               \
		(void)ring;                                                              \
		memcpy(row, v, sizeof(v));                                               \
		device->side->list = row;                                                \
		device->side->n_##list = count;                                          \
	}

CASE(port_too_high, ocs, observed, xcs, 2, 0, 8)
CASE(port_negative, ocs, intent, xcs, 2, -1, 0)
CASE(xcs_unsorted, ocs, observed, xcs, 4, 1, 0, 0, 1)
CASE(half_a_row, ocs, observed, xcs, 3, 0, 1, 2)
CASE(dark_of_none, ocs, observed, dark, 2, 0, 1)
CASE(fixed_of_none, ocs, observed, fixed, 2, 0, 1)
CASE(bad_port, ocs, observed, bad_out, 1, 8)
CASE(loss_twice, ocs, observed, losses, 8, 0, 1, 5, 1, 0, 1, 6, 1)
CASE(loss_of_no_source, ocs, observed, losses, 4, 0, 1, 5, 3)
CASE(loss_too_large, ocs, observed, losses, 4, 0, 1, 1000001, 1)
CASE(powers_unsorted, ocs, observed, powers, 4, 1, 5, 0, 5)
CASE(circuit_of_ring, ring, observed, xcs, 2, 0, 0)
CASE(part_of_switch, ocs, observed, dead, 6, RING_NODE, 0, 0, 0, 0, 0)
CASE(part_unknown, ring, observed, dead, 6, 4, 0, 0, 0, 0, 0)
CASE(node_too_high, ring, observed, dead, 6, RING_NODE, 4, 0, 0, 0, 0)
CASE(channel_too_high, ring, observed, dead, 6, RING_RESONATOR, 0, 0, 0, 4, 0)
CASE(lock_unknown, ring, observed, dead, 6, RING_RESONATOR, 0, 0, 0, 0, RESONATOR_N_LOCKS)

static void programs_of_switch(Weft__Joint__V1__Device *ocs, Weft__Joint__V1__Device *ring)
{
	(void)ring;
	ocs->observed->has_programs = true;
}

static void programs_cut(Weft__Joint__V1__Device *ocs, Weft__Joint__V1__Device *ring)
{
	(void)ocs;
	ring->observed->has_programs = true;
	ring->observed->programs = (ProtobufCBinaryData){ 3, (uint8_t *)row };
}

static void programs_negative(Weft__Joint__V1__Device *ocs, Weft__Joint__V1__Device *ring)
{
	(void)ocs;
	ring->observed->max_programs = -1;
}

static void no_device(Weft__Joint__V1__Device *ocs, Weft__Joint__V1__Device *ring)
{
	(void)ring;
	ocs->name = (char *)"ocs9";
}

static void device_twice(Weft__Joint__V1__Device *ocs, Weft__Joint__V1__Device *ring)
{
	ring->name = ocs->name;
}

static void time_negative(Weft__Joint__V1__Device *ocs, Weft__Joint__V1__Device *ring)
{
	(void)ring;
	ocs->switching_ns = -1;
}

static void time_of_no_port(Weft__Joint__V1__Device *ocs, Weft__Joint__V1__Device *ring)
{
	static int64_t v[] = { 4, 5 };

	(void)ring;
	ocs->reactivation_ns = v;
	ocs->n_reactivation_ns = 2;
}

static const struct wrong_case wrong[] = {
	{ "device ocs0: observed: xcs: the device has no 0, 8", port_too_high },
	{ "device ocs0: intent: xcs: the device has no -1, 0", port_negative },
	{ "device ocs0: observed: xcs: not in order", xcs_unsorted },
	{ "device ocs0: observed: xcs: 3 numbers", half_a_row },
	{ "device ocs0: observed: dark: 0 to 1 is no circuit", dark_of_none },
	{ "device ocs0: observed: fixed: 0 to 1 is no circuit", fixed_of_none },
	{ "device ocs0: observed: bad_out: the device has no 8", bad_port },
	{ "device ocs0: observed: losses: not in order", loss_twice },
	{ "device ocs0: observed: losses: the device has no", loss_of_no_source },
	{ "device ocs0: observed: losses: the device has no", loss_too_large },
	{ "device ocs0: observed: powers: not in order", powers_unsorted },
	{ "device r0: observed: xcs: the device has no 0, 0", circuit_of_ring },
	{ "device ocs0: observed: dead: the device has no 3, 0", part_of_switch },
	{ "device r0: observed: dead: the device has no 4, 0", part_unknown },
	{ "device r0: observed: dead: the device has no 3, 4", node_too_high },
	{ "device r0: observed: dead: the device has no 1, 0", channel_too_high },
	{ "device r0: observed: dead: the device has no 1, 0", lock_unknown },
	{ "device ocs0: observed: programs, of what is no ring", programs_of_switch },
	{ "device r0: observed: a ring program that is cut", programs_cut },
	{ "device r0: observed: -1 programs at most", programs_negative },
	{ "the fabric has no device 'ocs9'", no_device },
	{ "device ocs0 is there twice", device_twice },
	{ "device ocs0: learned times: -1 ns", time_negative },
	{ "device ocs0: learned times: output 4, 5 ns", time_of_no_port },
};

/* Decodes a message as one case has it. */
static int decode_case(struct snapshot *s, const struct model_fabric *f,
		       const struct wrong_case *c, struct err *err)
{
	Weft__Joint__V1__Light lights[4];
	Weft__Joint__V1__Device d[2], *list[2] = { &d[0], &d[1] };
	Weft__Joint__V1__JointLights m = WEFT__JOINT__V1__JOINT_LIGHTS__INIT;
	uint8_t bytes[512];

	for (int i = 0; i < 2; i++) {
		weft__joint__v1__device__init(&d[i]);
		weft__joint__v1__light__init(&lights[2 * i]);
		weft__joint__v1__light__init(&lights[2 * i + 1]);
		d[i].name = (char *)(i ? "r0" : "ocs0");
		d[i].intent = &lights[2 * i];
		d[i].observed = &lights[2 * i + 1];
	}
	if (c) {
		c->spoil(&d[0], &d[1]);
	}
	m.n_devices = 2;
	m.devices = list;
	assert_in_range(protobuf_c_message_get_packed_size(&m.base), 1, sizeof(bytes));
	return joint_lights_decode(s, f, bytes, protobuf_c_message_pack(&m.base, bytes), "east",
				   err);
}

static void test_wrong_fields(void **state)
{
	struct model_fabric *f = small_fabric();
	struct rng rng = { 7 };
	struct snapshot s;

	(void)state;
	random_snapshot(&rng, f, &s);
	assert_int_equal(decode_case(&s, f, NULL, NULL), 0);
	assert_false(s.base.observed[0].known || s.base.intent[1].programs);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct err err = { 0 };

		assert_int_equal(decode_case(&s, f, &wrong[i], &err), WEFT_EINVAL);
		if (strncmp(err.msg, "participant east: ", 18) != 0 ||
		    !strstr(err.msg, wrong[i].expected)) {
			fail_msg("%s, not %s", err.msg, wrong[i].expected);
		}
	}
	daemon_snapshot_fini(&s);
	model_free(f);
}

/* A switch became smaller: what it was meant to hold before is no circuit of it. */
static void test_intent_of_before(void **state)
{
	static const struct optics_xc xcs[] = { { 0, 1 }, { 2, 9 }, { 3, 2 }, { 9, 0 } };
	struct model_fabric *f = small_fabric();
	struct plan_light intent[2] = { { .known = true, .n_xcs = 4, .xcs = xcs } };
	const struct plan_light observed[2] = { 0 };
	const struct plan_base base = { .intent = intent, .observed = observed };
	struct snapshot s;
	struct buf b = { 0 };
	char name[] = "ocs0";

	(void)state;
	daemon_snapshot_init(&s, &base, f->n_devices);
	joint_lights_encode(&s, f, is_of_row, name, &b);
	decode_row(&s, f, &b);
	assert_int_equal(s.base.intent[0].n_xcs, 2);
	assert_int_equal(s.base.intent[0].xcs[1].in, 3);
	buf_fini(&b);
	daemon_snapshot_fini(&s);
	model_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_have_the_same),
		cmocka_unit_test(test_other_bytes),
		cmocka_unit_test(test_wrong_fields),
		cmocka_unit_test(test_intent_of_before),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
