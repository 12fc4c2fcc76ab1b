/* SPDX-License-Identifier: Apache-2.0 */
/* The host side against the kernel of this machine. */
#include <stdlib.h>
#include <string.h>

#include <arpa/inet.h>
#include <poll.h>

#include "tests/unit/host/bench.h"

#include <linux/rtnetlink.h>
#include <netlink/msg.h>

#include "drivers/host/private.h"

static void a_namespace_comes_and_goes(void **state)
{
	char name[64], **names, epoch[2][64];
	int n;

	(void)state;
	if (!bench_netns("a", name)) {
		skip();
	}
	assert_int_equal(host_netns_add(name, NULL), WEFT_ESTALE);
	assert_int_equal(host_netns_epoch(name, epoch[0], 64, NULL), 0);
	assert_int_equal(host_netns_list(name, &names, &n, NULL), 0);
	assert_int_equal(n, 1);
	assert_string_equal(names[0], name);
	host_netns_list_free(names, n);
	bench_end(name);
	bench_end(name);	/* again is fine */
	assert_int_equal(host_netns_list(name, &names, &n, NULL), 0);
	assert_int_equal(n, 0);
	assert_int_equal(host_netns_epoch(name, epoch[1], 64, NULL),
			 WEFT_EUNAVAIL);
	assert_int_equal(host_netns_add(name, NULL), 0);
	assert_int_equal(host_netns_epoch(name, epoch[1], 64, NULL), 0);
	assert_string_not_equal(epoch[0], epoch[1]);
	bench_end(name);
}

static void bad_names_are_refused(void **state)
{
	struct host_net *net;

	(void)state;
	assert_int_equal(host_netns_add("", NULL), WEFT_EINVAL);
	assert_int_equal(host_netns_add("a/b", NULL), WEFT_EINVAL);
	assert_int_equal(host_open("weft-no-such", &net, NULL), WEFT_EUNAVAIL);
	assert_null(net);
}

static void links_tell_carrier_and_its_changes(void **state)
{
	struct host_health health;
	struct host_link l;
	struct host_net *net;
	char name[64];

	(void)state;
	if (!bench_netns("b", name)) {
		skip();
	}
	net = bench_open(name);
	bench_ports(net, 1, 1);
	l = bench_link(net, "in1");
	assert_true(l.up && l.carrier);
	assert_int_equal(host_health(net, &l, &health, NULL), 0);
	assert_true(health.link);
	assert_int_not_equal(health.source, HOST_BY_NONE);
	/* No module in a veth: told openly. */
	assert_false(health.has_power);
	assert_true(health.why[0] != '\0');
	l = bench_link(net, "fout1");
	assert_true(l.up && !l.carrier);
	assert_int_equal(host_link_set(net, bench_link(net, "out1").ifindex,
				       true, NULL), 0);
	assert_true(bench_link(net, "fout1").carrier);
	assert_true(bench_link(net, "fout1").carrier_changes >
		    l.carrier_changes);
	host_close(net);
	bench_end(name);
}

static void count_event(const struct host_link *link, void *arg)
{
	if (strcmp(link->name, "fout1") == 0 && link->carrier) {
		++*(int *)arg;
	}
}

static void events_are_followed_live(void **state)
{
	struct pollfd p = { .events = POLLIN };
	struct host_net *net;
	int seen = 0;
	char name[64];

	(void)state;
	if (!bench_netns("c", name)) {
		skip();
	}
	net = bench_open(name);
	bench_ports(net, 1, 1);
	assert_int_equal(host_watch(net, &p.fd, NULL), 0);
	assert_int_equal(host_link_set(net, bench_link(net, "out1").ifindex,
				       true, NULL), 0);
	while (seen == 0) {
		assert_int_equal(poll(&p, 1, 10000), 1);
		assert_int_equal(host_watch_read(net, count_event, &seen, NULL),
				 0);
	}
	host_close(net);
	bench_end(name);
}

static void redirects_are_read_back(void **state)
{
	struct host_redirect *v;
	struct host_net *net;
	int from, to, other, n;
	char name[64];

	(void)state;
	if (!bench_netns("d", name)) {
		skip();
	}
	net = bench_open(name);
	bench_ports(net, 1, 2);
	from = bench_link(net, "in1").ifindex;
	to = bench_link(net, "out1").ifindex;
	other = bench_link(net, "out2").ifindex;
	assert_int_equal(host_ingress_add(net, from, NULL), 0);
	assert_int_equal(host_redirects(net, from, &v, &n, NULL), 0);
	assert_int_equal(n, 0);
	assert_int_equal(host_redirect_set(net, from, to, false, NULL), 0);
	assert_int_equal(host_redirect_set(net, from, other, false, NULL),
			 WEFT_ESTALE);
	assert_int_equal(host_redirects(net, from, &v, &n, NULL), 0);
	assert_int_equal(n, 1);
	assert_int_equal(v[0].to, to);
	free(v);
	assert_int_equal(host_redirect_set(net, from, other, true, NULL), 0);
	assert_int_equal(host_redirects(net, from, &v, &n, NULL), 0);
	assert_int_equal(n, 1);
	assert_int_equal(v[0].to, other);
	assert_int_equal(host_redirect_del(net, from, &v[0], NULL), 0);
	assert_int_equal(host_redirect_del(net, from, &v[0], NULL),
			 WEFT_ENOTFOUND);
	free(v);
	host_close(net);
	bench_end(name);
}

static void bridges_take_ports(void **state)
{
	struct host_net *net;
	char name[64];

	(void)state;
	if (!bench_netns("b", name)) {
		skip();
	}
	net = bench_open(name);
	bench_ports(net, 1, 0);
	assert_int_equal(host_bridge_add(net, "br", NULL), 0);
	assert_int_equal(host_bridge_add(net, "br", NULL), WEFT_ESTALE);
	assert_int_equal(host_bridge_join(net, bench_link(net, "br").ifindex,
					  bench_link(net, "in1").ifindex, NULL), 0);
	host_close(net);
	bench_end(name);
}

static void rates_and_addresses_are_taken(void **state)
{
	struct host_net *net;
	uint64_t drops;
	char name[64];
	int ifindex;

	(void)state;
	if (!bench_netns("e", name)) {
		skip();
	}
	net = bench_open(name);
	bench_ports(net, 1, 0);
	ifindex = bench_link(net, "in1").ifindex;
	assert_int_equal(host_rate_set(net, ifindex, 1000000000, NULL), 0);
	assert_int_equal(host_rate_set(net, ifindex, 100000000000, NULL),
			 WEFT_EUNSUPPORTED);
	assert_int_equal(host_queue_drops(net, &drops, NULL), 0);
	assert_int_equal(drops, 0);
	assert_int_equal(host_sysctl(net, "net/ipv4/ip_forward", "1", NULL), 0);
	for (int again = 0; again < 2; again++) {
		assert_int_equal(host_addr_add(net, ifindex, htonl(0x0a4d0001),
					       32, NULL), 0);
	}
	host_close(net);
	bench_end(name);
}

/* How many of the kernel's lines hold a word. */
static int lines_with(struct host_net *net, const char *file, const char *word)
{
	char line[512], path[64];
	int n = 0, back;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/thread-self/net/%s", file);
	assert_int_equal(host_enter(net, &back, NULL), 0);
	f = fopen(path, "r");
	host_leave(back);
	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		n += strstr(line, word) != NULL;
	}
	fclose(f);
	return n;
}

/* Something that is not weft's, made by another name of the same call. */
static void add_external_route(struct host_net *net, int ifindex, uint32_t dst)
{
	struct rtmsg rt = { .rtm_family = AF_INET, .rtm_dst_len = 32,
			    .rtm_table = RT_TABLE_MAIN,
			    .rtm_protocol = RTPROT_STATIC,
			    .rtm_type = RTN_UNICAST,
			    .rtm_scope = RT_SCOPE_LINK };
	struct nl_msg *msg = nlmsg_alloc_simple(RTM_NEWROUTE, NLM_F_CREATE);

	assert_int_equal(nlmsg_append(msg, &rt, sizeof(rt), NLMSG_ALIGNTO), 0);
	nla_put(msg, RTA_DST, sizeof(dst), &dst);
	nla_put_u32(msg, RTA_OIF, (uint32_t)ifindex);
	assert_true(nl_send_auto(net->sock, msg) >= 0);
	assert_int_equal(nl_wait_for_ack(net->sock), 0);
	nlmsg_free(msg);
}

static void only_own_ways_are_touched(void **state)
{
	const struct host_address self = { htonl(0x0a770001), HOST_LOOPBACK };
	const uint32_t b = htonl(0x0a770002), c = htonl(0x0a770003), d = htonl(0x0a770004);
	struct host_route routes[] = {
		{ b, 0, 0, { 2, 0, 0, 0, 0, 7 } },
		{ c, b, 0, { 0 } },
	};
	struct host_net *net;
	struct err err = { 0 };
	char name[64];
	int ifindex, changed;

	(void)state;
	if (!bench_netns("w", name)) {
		skip();
	}
	net = bench_open(name);
	bench_ports(net, 1, 0);
	ifindex = bench_link(net, "in1").ifindex;
	assert_int_equal(host_link_set(net, 1, true, NULL), 0);
	routes[0].ifindex = routes[1].ifindex = ifindex;
	add_external_route(net, ifindex, d);
	assert_int_equal(host_routes_set(net, &self, 1, routes, 2, &changed, NULL), 0);
	assert_int_equal(changed, 4);
	assert_int_equal(lines_with(net, "arp", "02:00:00:00:00:07"), 1);
	assert_int_equal(lines_with(net, "route", "in1"), 3);
	assert_int_equal(host_routes_set(net, &self, 1, routes, 2, &changed, NULL), 0);
	assert_int_equal(changed, 0);
	/* One changes, one goes. */
	routes[0].mac[5] = 8;
	assert_int_equal(host_routes_set(net, &self, 1, routes, 1, &changed, NULL), 0);
	assert_int_equal(changed, 2);
	assert_int_equal(lines_with(net, "arp", "02:00:00:00:00:08"), 1);
	assert_int_equal(lines_with(net, "route", "in1"), 2);
	/* What is in the way of a third is another user's. */
	routes[1] = (struct host_route){ d, b, ifindex, { 0 } };
	assert_int_equal(host_routes_set(net, &self, 1, routes, 2, &changed, &err),
			 WEFT_ESTALE);
	assert_non_null(strstr(err.msg, "route for 10.119.0.4"));
	assert_int_equal(changed, 0);
	assert_int_equal(host_routes_set(net, NULL, 0, NULL, 0, &changed, NULL), 0);
	assert_int_equal(changed, 3);
	assert_int_equal(lines_with(net, "route", "in1"), 1);
	assert_int_equal(lines_with(net, "arp", "in1"), 0);
	/* An address of others is as good, and is left. */
	assert_int_equal(host_addr_add(net, 1, self.addr, 32, NULL), 0);
	assert_int_equal(host_routes_set(net, &self, 1, NULL, 0, &changed, NULL), 0);
	assert_int_equal(host_routes_set(net, NULL, 0, NULL, 0, &changed, NULL), 0);
	assert_int_equal(changed, 0);
	host_close(net);
	bench_end(name);
}

static void frames_say_who_sent_them(void **state)
{
	const struct host_frame sent = { 77, 5 };
	struct host_frame got;
	struct host_net *net;
	struct host_link near;
	char name[64];
	int fd, at = 0;

	(void)state;
	if (!bench_netns("p", name)) {
		skip();
	}
	net = bench_open(name);
	bench_ports(net, 1, 0);
	near = bench_link(net, "fin1");
	assert_int_equal(host_frame_socket(net, &fd, NULL), 0);
	assert_false(host_frame_receive(fd, &at, &got));
	/* The kernel takes its time to bring a new link up, and drops what is
	 * sent before. */
	for (int i = 0; i < 1000 && !host_frame_receive(fd, &at, &got); i++) {
		assert_true(host_frame_send(fd, &near, &sent));
		usleep(1000);
	}
	assert_int_equal(at, bench_link(net, "in1").ifindex);
	assert_int_equal(got.run, 77);
	assert_int_equal(got.from, 5);
	close(fd);
	host_close(net);
	bench_end(name);
}

/* A case that failed leaves its namespace; the program does not. */
static int clean_up(void **state)
{
	char prefix[64], **names;
	int n;

	(void)state;
	snprintf(prefix, sizeof(prefix), "weft-test.%d.", (int)getpid());
	if (host_netns_list(prefix, &names, &n, NULL) == 0) {
		for (int i = 0; i < n; i++) {
			host_netns_del(names[i], NULL);
		}
		host_netns_list_free(names, n);
	}
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_namespace_comes_and_goes),
		cmocka_unit_test(bad_names_are_refused),
		cmocka_unit_test(links_tell_carrier_and_its_changes),
		cmocka_unit_test(events_are_followed_live),
		cmocka_unit_test(redirects_are_read_back),
		cmocka_unit_test(rates_and_addresses_are_taken),
		cmocka_unit_test(bridges_take_ports),
		cmocka_unit_test(only_own_ways_are_touched),
		cmocka_unit_test(frames_say_who_sent_them),
	};

	return cmocka_run_group_tests(tests, NULL, clean_up);
}
