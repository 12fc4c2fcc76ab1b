/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What only `linux-ring` can show: frames that go where a step's settings
 * send them and nowhere else, steps kept over processes, rules that others
 * remove.
 */
#include "tests/unit/drivers/rig.h"
#include "tests/unit/drivers/ring_bench.h"

#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <poll.h>

#define NODES 5
#define CHANNELS 2
#define FIBRES 2
#define TYPE 0x88b5

static const struct ring_geometry geometry = { NODES, CHANNELS, FIBRES };

struct ring_bench {
	struct rig rig;
	char netns[64];
	struct host_net *net;
};

/* Step 0: 1 to 4 clockwise over 2 and 3, and 4 to 1 over the seam, on the
 * same channel; 3 to 2 the other way round. Step 1: one round all but. */
static struct ring_setting tunes[] = {
	{ 0, 1, 1, OPTICS_CW, 0, RESONATOR_ADD_DROP },
	{ 0, 4, 1, OPTICS_CW, 0, RESONATOR_ADD_DROP },
	{ 0, 2, 0, OPTICS_CCW, 1, RESONATOR_DROP },
	{ 0, 3, 0, OPTICS_CCW, 1, RESONATOR_ADD },
	{ 1, 2, 1, OPTICS_CW, 0, RESONATOR_ADD },
	{ 1, 1, 1, OPTICS_CW, 0, RESONATOR_DROP },
};
static const struct ring_settings program = { 2, 6, tunes };

static struct ring_bench *set_up(void)
{
	struct ring_bench *b = test_calloc(1, sizeof(*b));

	if (!bench_netns("ring", b->netns)) {
		test_free(b);
		skip();
	}
	b->net = bench_open(b->netns);
	bench_ring(b->net, &geometry);
	rig_init(&b->rig, "linux-ring", NODES, CHANNELS, false);
	rig_option(&b->rig, "netns", b->netns);
	rig_open(&b->rig);
	return b;
}

static void tear_down(struct ring_bench *b)
{
	rig_fini(&b->rig);
	host_close(b->net);
	bench_end(b->netns);
	assert_int_equal(netns_ring_forget(b->netns, NULL), 0);
	test_free(b);
}

static void go(struct ring_bench *b, uint32_t step)
{
	struct netns_ring *r;

	assert_int_equal(netns_ring_open(b->netns, &geometry, &r, NULL), 0);
	assert_int_equal(netns_ring_go(r, 0, step, NULL), 0);
	assert_int_equal(netns_ring_activate(r, NULL), 0);
	netns_ring_close(r);
}

/* ---- frames ---- */

#define N (2 * FIBRES * CHANNELS * NODES)

/* ifindex of each place's far end of t or r. */
static void find_far(struct ring_bench *b, const char *what, int index[N])
{
	struct host_link *v;
	int n;

	assert_int_equal(host_links(b->net, &v, &n, NULL), 0);
	for (size_t k = 0; k < N; k++) {
		struct ring_setting at = netns_ring_at(&geometry, k);
		char name[24];

		netns_ring_name(name, what, &at);
		index[k] = 0;
		for (int i = 0; i < n; i++) {
			index[k] = strcmp(v[i].name, name) ? index[k] :
				   v[i].ifindex;
		}
		assert_int_not_equal(index[k], 0);
	}
	free(v);
}

/* Every transmitter sends one frame with its place; from[k] is whose frame
 * receiver k got, -1: none. Two are a failure. */
static void exchange(struct ring_bench *b, int from[N])
{
	struct sockaddr_ll at = { .sll_family = AF_PACKET,
				  .sll_protocol = htons(TYPE) };
	struct pollfd p = { .events = POLLIN };
	int tx[N], rx[N];

	find_far(b, "ft", tx);
	find_far(b, "fr", rx);
	assert_int_equal(host_socket(b->net, AF_PACKET,
				     SOCK_RAW | SOCK_NONBLOCK, 0, &p.fd, NULL),
			 0);
	assert_int_equal(bind(p.fd, (struct sockaddr *)&at, sizeof(at)), 0);
	for (int k = 0; k < N; k++) {
		uint8_t frame[60] = { 255, 255, 255, 255, 255, 255, 2, 0, 0, 0,
				      0, 1, TYPE >> 8, TYPE & 255, (uint8_t)k };

		from[k] = -1;
		at.sll_ifindex = tx[k];
		assert_int_equal(sendto(p.fd, frame, sizeof(frame), 0,
					(struct sockaddr *)&at, sizeof(at)),
				 sizeof(frame));
	}
	while (poll(&p, 1, 100) > 0) {
		socklen_t len = sizeof(at);
		uint8_t frame[60];

		assert_true(recvfrom(p.fd, frame, sizeof(frame), 0,
				     (struct sockaddr *)&at, &len) > 0);
		for (int k = 0; k < N; k++) {
			if (rx[k] == at.sll_ifindex) {
				assert_int_equal(from[k], -1);
				from[k] = frame[14];
			}
		}
	}
	close(p.fd);
}

/* What a step's settings say, followed by hand: node by node. */
static void expect_light(struct ring_bench *b, const struct ring_settings *p,
			 unsigned int step)
{
	int from[N];
	int want[N];
	uint8_t mode[N] = { 0 };

	memset(want, 0xff, sizeof(want));
	for (size_t i = 0; p && i < p->n; i++) {
		const struct ring_setting *t = &p->v[i];

		if (t->step == step) {
			mode[((t->dir * FIBRES + t->fibre) * CHANNELS +
			      t->channel) * NODES + t->node] = t->mode;
		}
	}
	for (int k = 0; k < N; k++) {
		int row = k - k % NODES, turn = row < N / 2 ? 1 : -1;
		int at = k;

		for (int hop = 0; mode[k] & RESONATOR_ADD && hop < NODES; hop++) {
			at = row + (at % NODES + turn + NODES) % NODES;
			if (mode[at] & RESONATOR_DROP) {
				want[at] = k;
			}
			if (mode[at]) {
				break;
			}
		}
	}
	exchange(b, from);
	for (int k = 0; k < N; k++) {
		assert_int_equal(from[k], want[k]);
	}
}

static void load(struct ring_bench *b, const struct ring_settings *p)
{
	assert_int_equal(rig_program(&b->rig, p), 0);
	rig_expect(&b->rig, 0, DRV_DONE);
	assert_int_equal(b->rig.outcomes[0].error, DRV_ERR_NONE);
}

static void light_goes_as_the_step_says(void **state)
{
	struct ring_bench *b = set_up();

	(void)state;
	expect_light(b, NULL, 0);
	load(b, &program);
	rig_expect_program(&b->rig, &program);
	expect_light(b, &program, 0);
	go(b, 1);
	expect_light(b, &program, 1);
	assert_int_equal(rig_snapshot(&b->rig), 0);
	assert_int_equal(b->rig.snap.n_unlocked, 0);
	go(b, 0);
	expect_light(b, &program, 0);
	tear_down(b);
}

static void any_program_in_any_step(void **state)
{
	struct ring_bench *b = set_up();
	uint32_t seed = 7;

	(void)state;
	for (int round = 0; round < 4; round++) {
		struct ring_settings p = { 3, 0, calloc(3 * N,
							sizeof(*p.v)) };

		for (size_t k = 0; k < 3 * N; k++) {
			struct ring_setting t = netns_ring_at(&geometry, k % N);

			seed = seed * 1664525 + 1013904223;
			t.step = (uint16_t)(k / N);
			t.mode = (uint8_t)(seed >> 28 & 3);
			/* Some channels are left alone. */
			if (t.mode && (k % N / NODES + (size_t)round) % 3) {
				p.v[p.n++] = t;
			}
		}
		assert_int_equal(ring_settings_normalise(&p, NULL), 0);
		load(b, &p);
		for (uint32_t step = 0; step < 3; step++) {
			go(b, step);
			expect_light(b, &p, step);
		}
		ring_settings_fini(&p);
	}
	tear_down(b);
}

static void a_program_that_stays_goes_on(void **state)
{
	struct ring_bench *b = set_up();
	static struct ring_setting one[] = {
		{ 0, 0, 0, OPTICS_CW, 0, RESONATOR_ADD },
		{ 0, 1, 0, OPTICS_CW, 0, RESONATOR_DROP },
	};
	static const struct ring_settings other = { 1, 2, one };

	(void)state;
	load(b, &program);
	go(b, 1);
	load(b, &program);
	expect_light(b, &program, 1);
	rig_close(&b->rig);
	rig_open(&b->rig);
	rig_expect_program(&b->rig, &program);
	expect_light(b, &program, 1);
	load(b, &other);
	expect_light(b, &other, 0);
	tear_down(b);
}

static void take_rule(struct ring_bench *b, const char *link)
{
	int at = bench_link(b->net, link).ifindex, n;
	struct host_redirect *v;

	assert_int_equal(host_redirects(b->net, at, &v, &n, NULL), 0);
	assert_int_equal(n, 1);
	assert_int_equal(host_redirect_del(b->net, at, v, NULL), 0);
	free(v);
}

static void a_rule_that_is_gone_is_not_locked(void **state)
{
	struct ring_bench *b = set_up();

	(void)state;
	load(b, &program);
	take_rule(b, "i2+0.1");
	assert_int_equal(rig_snapshot(&b->rig), 0);
	assert_int_equal(b->rig.snap.n_unlocked, 1);
	assert_string_equal(b->rig.snap.lock_detail, "node 2 cw fibre 0 "
			    "channel 1: its rules are not those of its step");
	load(b, &program);
	assert_int_equal(rig_snapshot(&b->rig), 0);
	assert_int_equal(b->rig.snap.n_unlocked, 0);
	expect_light(b, &program, 0);
	tear_down(b);
}

/* The step stays, and so do those that hold theirs. */
static void relocking_brings_back_what_is_gone(void **state)
{
	struct ring_bench *b = set_up();

	(void)state;
	load(b, &program);
	go(b, 1);
	assert_int_equal(rig_recover(&b->rig, DRV_RELOCK), 0);
	rig_expect(&b->rig, 0, DRV_DONE);
	expect_light(b, &program, 1);
	go(b, 0);
	take_rule(b, "i2+0.1");
	assert_int_equal(rig_snapshot(&b->rig), 0);
	assert_int_equal(b->rig.snap.n_unlocked, 1);
	assert_true(b->rig.snap.caps.reloads);
	assert_int_equal(rig_recover(&b->rig, DRV_RELOCK), 0);
	assert_int_equal(b->rig.outcomes[0].error, DRV_ERR_NONE);
	assert_int_equal(rig_snapshot(&b->rig), 0);
	assert_int_equal(b->rig.snap.n_unlocked, 0);
	expect_light(b, &program, 0);
	tear_down(b);
}

static void a_namespace_made_anew_is_dark(void **state)
{
	struct ring_bench *b = set_up();
	char epoch[DRV_NAME_MAX];

	(void)state;
	load(b, &program);
	assert_int_equal(rig_snapshot(&b->rig), 0);
	memcpy(epoch, b->rig.snap.epoch, sizeof(epoch));
	host_close(b->net);
	bench_end(b->netns);
	assert_int_equal(rig_snapshot(&b->rig), WEFT_EUNAVAIL);
	assert_int_equal(host_netns_add(b->netns, NULL), 0);
	b->net = bench_open(b->netns);
	bench_ring(b->net, &geometry);
	assert_int_equal(rig_snapshot(&b->rig), 0);
	assert_int_equal(b->rig.snap.programs.n, 0);
	assert_string_not_equal(epoch, b->rig.snap.epoch);
	tear_down(b);
}

static void a_damaged_file_is_told(void **state)
{
	struct ring_bench *b = set_up();
	char path[160];
	FILE *f;

	(void)state;
	load(b, &program);
	snprintf(path, sizeof(path), NETNS_RING_DIR "/%s" NETNS_RING_STATE,
		 b->netns);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs("weft ring 1\n", f);
	fclose(f);
	assert_int_equal(rig_snapshot(&b->rig), WEFT_EINVAL);
	assert_non_null(strstr(b->rig.err.msg, "these are no programs"));
	tear_down(b);
}

static void another_size_is_refused(void **state)
{
	struct ring_bench *b = set_up();

	(void)state;
	rig_close(&b->rig);
	b->rig.cfg.n_out = CHANNELS + 1;
	rig_open(&b->rig);
	assert_int_equal(rig_snapshot(&b->rig), WEFT_EVERIFY);
	rig_close(&b->rig);
	b->rig.cfg.n_out = CHANNELS;
	b->rig.cfg.n_in = NODES - 1;
	rig_open(&b->rig);
	assert_int_equal(rig_snapshot(&b->rig), WEFT_EVERIFY);
	tear_down(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(light_goes_as_the_step_says),
		cmocka_unit_test(any_program_in_any_step),
		cmocka_unit_test(a_program_that_stays_goes_on),
		cmocka_unit_test(a_rule_that_is_gone_is_not_locked),
		cmocka_unit_test(relocking_brings_back_what_is_gone),
		cmocka_unit_test(a_namespace_made_anew_is_dark),
		cmocka_unit_test(a_damaged_file_is_told),
		cmocka_unit_test(another_size_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
