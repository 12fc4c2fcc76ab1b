/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What only `linux-tc` can show: rules that others add, remove and double
 * behind its back, netdevs that go, a namespace made again, real packets.
 */
#include "tests/unit/drivers/rig.h"
#include "tests/unit/host/bench.h"

#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <poll.h>

#define PORTS 4

struct switch_bench {
	struct rig rig;
	char netns[64];
	struct host_net *net;
};

static struct switch_bench *set_up(const char *switch_ms)
{
	struct switch_bench *b = test_calloc(1, sizeof(*b));

	if (!bench_netns("sw", b->netns)) {
		test_free(b);
		skip();
	}
	b->net = bench_open(b->netns);
	bench_ports(b->net, PORTS, PORTS);
	rig_init(&b->rig, "linux-tc", PORTS, PORTS, false);
	rig_option(&b->rig, "netns", b->netns);
	rig_option(&b->rig, "switch_ms", switch_ms);
	rig_open(&b->rig);
	return b;
}

static void tear_down(struct switch_bench *b)
{
	rig_fini(&b->rig);
	host_close(b->net);
	bench_end(b->netns);
	test_free(b);
}

static int link_of(struct switch_bench *b, const char *name)
{
	return bench_link(b->net, name).ifindex;
}

static void add(struct switch_bench *b, int in, int out)
{
	const struct drv_item item[] = { ADD(in, out) };

	assert_int_equal(rig_submit(&b->rig, DRV_SAFE, 1, item), 0);
}

static void a_rule_removed_by_others_is_seen(void **state)
{
	struct switch_bench *b = set_up("0");
	struct host_redirect *v;
	int n;

	(void)state;
	add(b, 0, 2);
	rig_expect_map(&b->rig, "0-2");
	assert_int_equal(host_redirects(b->net, link_of(b, "in1"), &v, &n,
					NULL), 0);
	assert_int_equal(n, 1);
	assert_int_equal(host_redirect_del(b->net, link_of(b, "in1"), v, NULL),
			 0);
	free(v);
	rig_expect_map(&b->rig, "");
	assert_int_equal(host_redirect_set(b->net, link_of(b, "in4"),
					   link_of(b, "out1"), false, NULL), 0);
	assert_int_equal(host_link_set(b->net, link_of(b, "out1"), true, NULL),
			 0);
	rig_expect_map(&b->rig, "3-0");
	tear_down(b);
}

/* The kernel tells at once; no poll is needed. Our own changes are no event. */
static void changes_by_others_are_told(void **state)
{
	struct switch_bench *b = set_up("0");
	const struct drv_event *ev;
	struct host_redirect *v;
	int n;

	(void)state;
	add(b, 0, 2);
	add(b, 1, 3);
	rig_expect_map(&b->rig, "0-2 1-3");
	for (int i = 0; i < 5; i++) {
		uv_run(&b->rig.loop, UV_RUN_NOWAIT);
	}
	assert_int_equal(b->rig.n_events, 0);
	assert_int_equal(host_redirects(b->net, link_of(b, "in2"), &v, &n,
					NULL), 0);
	assert_int_equal(n, 1);
	assert_int_equal(host_redirect_del(b->net, link_of(b, "in2"), v, NULL),
			 0);
	free(v);
	ev = &rig_wait_event(&b->rig, DRV_EVENT_CHANGED)->ev;
	assert_true(ev->has_port && !ev->is_out);
	assert_int_equal(ev->index, 1);
	b->rig.n_events = 0;
	assert_int_equal(host_link_set(b->net, link_of(b, "out3"), false,
				       NULL), 0);
	ev = &rig_wait_event(&b->rig, DRV_EVENT_CHANGED)->ev;
	assert_true(ev->has_port && ev->is_out);
	assert_int_equal(ev->index, 2);
	tear_down(b);
}

static void a_link_taken_down_is_a_failed_circuit(void **state)
{
	static const struct drv_item again[] = { ADD(1, 1) };
	struct switch_bench *b = set_up("0");

	(void)state;
	add(b, 1, 1);
	assert_int_equal(host_link_set(b->net, link_of(b, "out2"), false, NULL),
			 0);
	assert_int_equal(rig_snapshot(&b->rig), 0);
	assert_int_equal(b->rig.snap.n_xcs, 1);
	assert_int_equal(b->rig.snap.xcs[0].state, DRV_FAILED);
	assert_int_equal(rig_submit(&b->rig, DRV_SAFE, 1, again), 0);
	rig_expect_map(&b->rig, "1-1");
	tear_down(b);
}

static void a_netdev_that_is_gone_is_a_failed_port(void **state)
{
	static const struct drv_item items[] = { ADD(0, 0), ADD(1, PORTS),
						 ADD(2, 1) };
	struct switch_bench *b = set_up("0");

	(void)state;
	assert_int_equal(rig_snapshot(&b->rig), 0);
	assert_int_equal(b->rig.snap.n_ports, 0);
	rig_close(&b->rig);
	b->rig.cfg.n_out = PORTS + 1;	/* the fabric has one more */
	rig_open(&b->rig);
	assert_int_equal(rig_snapshot(&b->rig), 0);
	assert_int_equal(b->rig.snap.n_ports, 1);
	assert_true(b->rig.snap.ports[0].failed && b->rig.snap.ports[0].is_out);
	assert_int_equal(b->rig.snap.ports[0].index, PORTS);
	assert_int_equal(rig_submit(&b->rig, DRV_SAFE, 3, items), WEFT_EDEVICE);
	rig_expect(&b->rig, 0, DRV_DONE);
	rig_expect(&b->rig, 1, DRV_REFUSED);
	assert_int_equal(b->rig.outcomes[1].error, DRV_ERR_STATE);
	rig_expect_map(&b->rig, "0-0");
	tear_down(b);
}

static void a_namespace_made_anew_is_a_restart(void **state)
{
	struct switch_bench *b = set_up("0");
	char epoch[DRV_NAME_MAX];

	(void)state;
	add(b, 0, 3);
	rig_expect_map(&b->rig, "0-3");
	memcpy(epoch, b->rig.snap.epoch, sizeof(epoch));
	host_close(b->net);
	bench_end(b->netns);
	assert_int_equal(rig_snapshot(&b->rig), WEFT_EUNAVAIL);
	assert_int_equal(host_netns_add(b->netns, NULL), 0);
	b->net = bench_open(b->netns);
	bench_ports(b->net, PORTS, PORTS);
	rig_expect_map(&b->rig, "");
	assert_string_not_equal(epoch, b->rig.snap.epoch);
	tear_down(b);
}

static void another_size_is_refused(void **state)
{
	struct switch_bench *b = set_up("0");

	(void)state;
	rig_close(&b->rig);
	b->rig.cfg.n_in = PORTS - 1;
	rig_open(&b->rig);
	assert_int_equal(rig_snapshot(&b->rig), WEFT_EVERIFY);
	assert_non_null(strstr(b->rig.err.msg, "4x4"));
	tear_down(b);
}

/* ---- packets ---- */

static int packet_socket(struct switch_bench *b, const char *dev)
{
	struct sockaddr_ll at = { .sll_family = AF_PACKET,
				  .sll_protocol = htons(ETH_P_ALL),
				  .sll_ifindex = link_of(b, dev) };
	int fd;

	assert_int_equal(host_socket(b->net, AF_PACKET, SOCK_RAW,
				     htons(ETH_P_ALL), &fd, NULL), 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	return fd;
}

static const uint8_t frame[60] = { 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88,
				   0xb5, 't', 'e', 's', 't' };

/* True when the frame arrives at fd. */
static bool arrives(int fd, int patience_ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	uint8_t got[2048];

	while (poll(&p, 1, patience_ms) == 1) {
		ssize_t n = recv(fd, got, sizeof(got), 0);

		if (n >= 18 && memcmp(got, frame, 18) == 0) {
			return true;
		}
	}
	return false;
}

static void light_goes_where_the_circuit_leads_and_back_never(void **state)
{
	struct switch_bench *b = set_up("0");
	int from, to, other;

	(void)state;
	add(b, 0, 2);
	from = packet_socket(b, "fin1");
	to = packet_socket(b, "fout3");
	other = packet_socket(b, "fin2");
	assert_int_equal(send(from, frame, sizeof(frame), 0), sizeof(frame));
	assert_true(arrives(to, 5000));
	assert_false(arrives(other, 0));
	close(from);
	from = packet_socket(b, "fin1");
	assert_int_equal(send(to, frame, sizeof(frame), 0), sizeof(frame));
	assert_false(arrives(from, 50));
	close(from);
	close(to);
	close(other);
	tear_down(b);
}

/* A circuit that stays keeps its carrier while others move. */
static void only_what_moves_goes_dark(void **state)
{
	static const struct drv_item before[] = { ADD(0, 0), ADD(1, 1) };
	static const struct drv_item after[] = { ADD(0, 0), ADD(1, 2) };
	struct switch_bench *b = set_up("20");
	uint32_t stays, goes;

	(void)state;
	assert_int_equal(rig_submit(&b->rig, DRV_REPLACE, 2, before), 0);
	stays = bench_link(b->net, "fout1").carrier_changes;
	goes = bench_link(b->net, "fout2").carrier_changes;
	assert_int_equal(rig_submit(&b->rig, DRV_REPLACE, 2, after), 0);
	rig_expect_map(&b->rig, "0-0 1-2");
	assert_int_equal(bench_link(b->net, "fout1").carrier_changes, stays);
	assert_true(bench_link(b->net, "fout2").carrier_changes > goes);
	assert_false(bench_link(b->net, "fout2").carrier);
	assert_true(bench_link(b->net, "fout3").carrier);
	tear_down(b);
}

/* ---- options ---- */

static void refused(const struct drv_option *options, int n, bool any_to_any,
		    int code)
{
	struct drv_config cfg = { .name = "d", .n_in = 4, .n_out = 4,
				  .any_to_any = any_to_any,
				  .options = options, .n_options = n };
	struct err err = { 0 };
	struct drv *dev;
	uv_loop_t loop;

	uv_loop_init(&loop);
	assert_int_equal(drv_open(&loop, "linux-tc", &cfg, &dev, &err), code);
	assert_non_null(strstr(err.msg, "d"));
	assert_int_equal(uv_loop_close(&loop), 0);
}

static void needs_a_namespace_and_two_sides(void **state)
{
	static const struct drv_option both[] = { { "fabric", "f" },
						  { "netns", "n" } };
	static const struct drv_option path[] = { { "netns", "../x" } };

	(void)state;
	refused(NULL, 0, false, WEFT_EINVAL);
	refused(both, 2, false, WEFT_EINVAL);
	refused(path, 1, false, WEFT_EINVAL);
	refused(both, 1, true, WEFT_EUNSUPPORTED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_rule_removed_by_others_is_seen),
		cmocka_unit_test(changes_by_others_are_told),
		cmocka_unit_test(a_link_taken_down_is_a_failed_circuit),
		cmocka_unit_test(a_netdev_that_is_gone_is_a_failed_port),
		cmocka_unit_test(a_namespace_made_anew_is_a_restart),
		cmocka_unit_test(another_size_is_refused),
		cmocka_unit_test(
			light_goes_where_the_circuit_leads_and_back_never),
		cmocka_unit_test(only_what_moves_goes_dark),
		cmocka_unit_test(needs_a_namespace_and_two_sides),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
