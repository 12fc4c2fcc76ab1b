/* SPDX-License-Identifier: Apache-2.0 */
/* Paths between hosts over random light: followed hop by hop, and over each of parallel arcs. */
#include "tests/unit/plan/fixture.h"

#include "lib/base/number/rng.h"

#define FABRICS 200

struct paths_case {
	struct model_fabric *f;
	struct plan_arc arcs[64];
	int n, addresses;
	struct plan_host_path *paths[8];
	int n_paths[8];
};

static int host_of(const struct paths_case *c, int port)
{
	return c->f->ports[port].host;
}

/* Some of the ports send to others, none twice; often several to the same host. */
static void make_arcs(struct paths_case *c, struct rng *r)
{
	bool taken[64] = { false };
	int near = 1 + (int)rng_below(r, 8);

	c->n = 0;
	for (int tx = 0; tx < c->f->n_ports; tx++) {
		int rx = (tx / 4 * 4 + 4 * (int)rng_below(r, (uint64_t)near) +
			  (int)rng_below(r, 4)) % c->f->n_ports;

		if (!taken[rx] && rng_below(r, 8)) {
			taken[rx] = true;
			c->arcs[c->n++] = (struct plan_arc){ tx, rx };
		}
	}
	c->addresses = plan_host_addresses(c->f, c->arcs, c->n);
}

static int parallel(const struct paths_case *c, int from, int to)
{
	int n = 0;

	for (int i = 0; i < c->n; i++) {
		n += host_of(c, c->arcs[i].tx_port) == from && host_of(c, c->arcs[i].rx_port) == to;
	}
	return n;
}

static const struct plan_host_path *path_at(const struct paths_case *c, int from, int to,
					    int address)
{
	for (int i = 0; i < c->n_paths[from]; i++) {
		const struct plan_host_path *p = &c->paths[from][i];

		if (p->to == to && p->to_address == address) {
			return p;
		}
	}
	return NULL;
}

/* By light that there is, to a neighbour that is known by this address on this port, until
 * it is there. */
static void follow(const struct paths_case *c, int from, const struct plan_host_path *p)
{
	int to = p->to, address = p->to_address, hops = 0;

	while (from != to) {
		const struct plan_host_path *direct;
		bool lit = false;

		assert_non_null(p);
		assert_true(++hops < 8);
		for (int i = 0; i < c->n; i++) {
			lit = lit || (c->arcs[i].tx_port == p->tx_port &&
				      c->arcs[i].rx_port == p->rx_port);
		}
		assert_true(lit);
		assert_int_equal(host_of(c, p->tx_port), from);
		assert_int_equal(host_of(c, p->rx_port), p->via);
		direct = path_at(c, from, p->via, p->via_address);
		assert_non_null(direct);
		assert_int_equal(direct->via, p->via);
		assert_int_equal(direct->tx_port, p->tx_port);
		from = p->via;
		p = path_at(c, from, to, address);
	}
}

/* Neighbours: by the even addresses each arc, by the odd ones too. */
static void check_parallel(const struct paths_case *c, int from, int to)
{
	int m = parallel(c, from, to);

	for (int odd = 0; odd < 2 && m > 1; odd++) {
		uint64_t ports = 0;

		for (int a = odd; a < c->addresses; a += 2) {
			ports |= UINT64_C(1) << path_at(c, from, to, a)->tx_port;
		}
		assert_int_equal(__builtin_popcountll(ports), m);
	}
}

static int max_parallel(const struct paths_case *c)
{
	int most = 1;

	for (int i = 0; i < 64; i++) {
		int n = i / 8 == i % 8 ? 0 : parallel(c, i / 8, i % 8);

		most = n > most ? n : most;
	}
	return most;
}

static void each_path_leads_there(void **state)
{
	struct paths_case c = { .f = fabric_of(HOSTS_1) };
	struct rng r;
	int several = 0;

	(void)state;
	rng_seed(&r, 16);
	for (int k = 0; k < FABRICS; k++) {
		make_arcs(&c, &r);
		assert_int_equal(c.addresses, max_parallel(&c) == 1 ? 1 : 2 * max_parallel(&c));
		several += c.addresses > 1;
		for (int h = 0; h < 8; h++) {
			plan_host_paths(c.f, c.arcs, c.n, h, &c.paths[h], &c.n_paths[h]);
		}
		for (int h = 0; h < 8; h++) {
			for (int i = 0; i < c.n_paths[h]; i++) {
				follow(&c, h, &c.paths[h][i]);
			}
			for (int to = 0; to < 8; to++) {
				assert_false(to != h && parallel(&c, h, to) &&
					     !path_at(&c, h, to, 0));
				if (to != h) {
					check_parallel(&c, h, to);
				}
			}
		}
		for (int h = 0; h < 8; h++) {
			free(c.paths[h]);
		}
	}
	assert_true(several > 10);
	model_free(c.f);
}

static void addresses_are_apart(void **state)
{
	const uint8_t want[] = { 10, 120, 0, 2 };
	uint32_t address = plan_host_address(1, 1);

	(void)state;
	assert_memory_equal(&address, want, sizeof(want));
	assert_int_not_equal(plan_host_address(0, 0), plan_host_address(0, 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_path_leads_there),
		cmocka_unit_test(addresses_are_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
