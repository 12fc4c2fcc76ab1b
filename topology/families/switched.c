/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Digraphs with switches and memories: HyperX, HammingMesh, fat trees, servers of
 * GPUs.
 *
 * Terminals come first, in mixed radix: node numbers are digits (row and column, pod
 * and switch and host, server and GPU), so that shifting a digit that the
 * digraph does not tell apart is an automorphism which moves no terminal to
 * itself. Memories and switches follow. Switches only forward.
 */
#include <string.h>

#include "topology/private.h"

/* The size of t terminals and others, of so many links in both directions. */
static struct topo_size switched_size(int64_t terminals, int64_t others, int64_t links)
{
	return (struct topo_size){ terminals + others, 2 * links, 0, false, true };
}

static void set_kind(struct topo_make *mk, int64_t first, int64_t end, enum topo_kind kind)
{
	for (int64_t u = first; u < end; u++) {
		topo_set_node(mk->t, (int)u, kind, topo_usual_flags(kind));
	}
}

static void link_both(struct topo_make *mk, int64_t u, int64_t v, int64_t cap, int64_t cost)
{
	const struct topo_arc arc = { .cap = cap, .cost = cost };

	topo_copy_arc(mk, &arc, u, v);
	topo_copy_arc(mk, &arc, v, u);
}

/* ---- one switch ---- */

static void measure_star(struct topo_make *mk)
{
	mk->size = switched_size(topo_number(mk, 0), 1, topo_number(mk, 0));
	topo_check_nodes(mk, 0, 2);
}

static void build_star(struct topo_make *mk)
{
	int64_t n = topo_number(mk, 0);

	set_kind(mk, n, n + 1, TOPO_SWITCH);
	for (int64_t u = 0; u < n; u++) {
		topo_edge(mk, u, n);
	}
}

/* ---- HyperX ---- */

/* Ahn et al., "HyperX" (SC 2009), with a node in place of a switch: each line of a
 * grid has a switch, and each node two ports to those of its lines. */
static void measure_hyperx(struct topo_make *mk)
{
	int dimensions = mk->call->numbers;
	int64_t n = 1, lines = 0;

	for (int i = 0; i < dimensions && !mk->rc; i++) {
		topo_check_number(mk, i, "dimension", 2, TOPO_MAX_NODES);
		n *= topo_number(mk, i);
		if (n > TOPO_MAX_NODES) {
			topo_refuse(mk, mk->call->number[i].col, "more than %d nodes",
				    TOPO_MAX_NODES);
		}
	}
	for (int i = 0; i < dimensions && !mk->rc; i++) {
		lines += n / topo_number(mk, i);
	}
	mk->size = switched_size(n, lines, 2 * dimensions * n);
}

static void build_hyperx(struct topo_make *mk)
{
	int64_t n = 1, lines = 0, stride;

	for (int i = 0; i < mk->call->numbers; i++) {
		n *= topo_number(mk, i);
	}
	set_kind(mk, n, mk->size.n, TOPO_SWITCH);
	stride = n;
	for (int i = 0; i < mk->call->numbers; i++) {
		int64_t size = topo_number(mk, i);

		stride /= size;
		for (int64_t u = 0; u < n; u++) {
			/* The line: u's other digits. */
			int64_t line = u / (stride * size) * stride + u % stride;

			topo_edge(mk, u, n + lines + line);
			topo_edge(mk, u, n + lines + line);
		}
		lines += n / size;
	}
}

/* ---- HammingMesh ---- */

/* Hoefler et al., "HammingMesh" (SC 2022): x by y boards, each a mesh of b by b
 * nodes of four ports. What leaves a board goes to the switch of its row or
 * column of nodes. */
static void measure_mesh_of_boards(struct topo_make *mk)
{
	int64_t b = topo_number(mk, 0), x = topo_number(mk, 1), y = topo_number(mk, 2);

	for (int i = 0; i < 3; i++) {
		topo_check_number(mk, i, i ? "number of boards" : "side of a board", 1,
				  TOPO_MAX_NODES);
	}
	if (!mk->rc && (x * y > TOPO_MAX_NODES || x * y * b > TOPO_MAX_NODES)) {
		topo_refuse(mk, mk->call->number[1].col, "more than %d nodes", TOPO_MAX_NODES);
	}
	if (!mk->rc) {
		mk->size = switched_size(b * b * x * y, b * (x + y),
					 2 * (b - 1) * b * x * y + 4 * b * x * y);
	}
}

/* The node next to u along a dimension, or the line's switch. */
static int64_t next_or_switch(int64_t u, int64_t at, int step, int64_t stride, int64_t side,
			      int64_t line_switch)
{
	int64_t in_board = at % side + step;

	return in_board < 0 || in_board == side ? line_switch : u + step * stride;
}

static void build_mesh_of_boards(struct topo_make *mk)
{
	int64_t b = topo_number(mk, 0), rows = b * topo_number(mk, 1);
	int64_t columns = b * topo_number(mk, 2), n = rows * columns;

	set_kind(mk, n, mk->size.n, TOPO_SWITCH);
	for (int64_t u = 0; u < n; u++) {
		int64_t row = u / columns, column = u % columns;

		for (int step = 1; step >= -1; step -= 2) {
			topo_link(mk, u, next_or_switch(u, row, step, columns, b, n + column));
		}
		for (int step = 1; step >= -1; step -= 2) {
			topo_link(mk, u, next_or_switch(u, column, step, 1, b,
							n + columns + row));
		}
	}
	/* And back from the switches. */
	for (int64_t u = 0; u < n; u++) {
		int64_t row = u / columns, column = u % columns;

		for (int edge = (row % b == 0) + (row % b == b - 1); edge > 0; edge--) {
			topo_link(mk, n + column, u);
		}
		for (int edge = (column % b == 0) + (column % b == b - 1); edge > 0; edge--) {
			topo_link(mk, n + columns + row, u);
		}
	}
}

/* ---- fat trees ---- */

/* Al-Fares et al., "A scalable, commodity data center network architecture"
 * (SIGCOMM 2008), section 3: k pods of k/2 edge and k/2 aggregation switches, and
 * (k/2)^2 core switches, all of k ports. */
static void measure_fat_tree(struct topo_make *mk)
{
	int64_t k = topo_number(mk, 0), hosts;

	topo_check_number(mk, 0, "number of ports", 2, 4096);
	if (k % 2) {
		topo_refuse(mk, mk->call->number[0].col, "number of ports is %lld: expected an "
			    "even one", (long long)k);
	}
	hosts = mk->rc ? 0 : k * k * k / 4;
	mk->size = switched_size(hosts, k * k + k * k / 4, 3 * hosts);
}

static void build_fat_tree(struct topo_make *mk)
{
	int64_t k = topo_number(mk, 0), half = k / 2, hosts = k * k * k / 4;
	int64_t edge = hosts, aggregation = edge + k * half, core = aggregation + k * half;

	set_kind(mk, hosts, mk->size.n, TOPO_SWITCH);
	for (int64_t u = 0; u < hosts; u++) {
		topo_edge(mk, u, edge + u / half);
	}
	for (int64_t e = 0; e < k * half; e++) {
		for (int64_t i = 0; i < half; i++) {
			topo_edge(mk, edge + e, aggregation + e / half * half + i);
		}
	}
	for (int64_t a = 0; a < k * half; a++) {
		for (int64_t i = 0; i < half; i++) {
			topo_edge(mk, aggregation + a, core + a % half * half + i);
		}
	}
}

/* ---- servers ---- */

/* k servers of g GPUs, each with a switch inside; GPU i of all servers are on
 * rail switch i. */
static void measure_rails(struct topo_make *mk)
{
	int64_t k = topo_number(mk, 0), g = topo_number(mk, 1);

	topo_check_nodes(mk, 0, 1);
	topo_check_nodes(mk, 1, 1);
	mk->size = switched_size(k * g, k + g, 2 * k * g);
}

static void build_rails(struct topo_make *mk)
{
	int64_t k = topo_number(mk, 0), g = topo_number(mk, 1), n = k * g;

	set_kind(mk, n, mk->size.n, TOPO_SWITCH);
	for (int64_t u = 0; u < n; u++) {
		topo_edge(mk, u, n + u / g);
		topo_edge(mk, u, n + k + u % g);
	}
}

/* DGX A100 servers, as "Optimal collectives" (thesis) has them in chapter 6: eight GPUs,
 * two on each of four PCIe switches, of which each has a memory port and two
 * network cards; card i of switch p leads to rail switch (p,i). In GB/s a direction. What is
 * moved between a GPU, a switch and a card costs one each; PCIe to memory nothing. */
enum { GPUS = 8, PCIES = 4, PER_PCIE = 2, NVLINK = 300, PCIE = 32, NIC = 25 };

struct dgx {
	bool nvlink, pcie;	/* which links there are */
};

static struct dgx links_of(struct topo_make *mk)
{
	const char *word = mk->call->word;
	bool all = strcmp(word, "all") == 0;
	struct dgx d = { all || strcmp(word, "nvlink") == 0, all || strcmp(word, "pcie") == 0 };

	if (!d.nvlink && !d.pcie) {
		topo_refuse(mk, mk->call->word_col, "expected nvlink, pcie or all, found '%s'",
			    word);
	}
	return d;
}

static void measure_dgx(struct topo_make *mk)
{
	struct dgx d = links_of(mk);
	int64_t k = topo_number(mk, 0), others = GPUS;

	topo_check_number(mk, 0, "number of servers", 1, TOPO_MAX_NODES / GPUS);
	/* Memories and PCIe switches, NVSwitches, rails. */
	others += (d.pcie ? (1 + PCIES) * k : 0) + (d.nvlink ? k : 0);
	mk->size = switched_size(GPUS * k, others, k * ((d.nvlink ? GPUS : 0) + GPUS +
							 (d.pcie ? GPUS + PCIES : 0)));
}

static void build_dgx(struct topo_make *mk)
{
	struct dgx d = links_of(mk);
	int64_t k = topo_number(mk, 0), n = GPUS * k, memory = n, nvswitch, pcie, rail;

	nvswitch = memory + (d.pcie ? k : 0);
	pcie = nvswitch + (d.nvlink ? k : 0);
	rail = pcie + (d.pcie ? PCIES * k : 0);
	set_kind(mk, memory, nvswitch, TOPO_MEMORY);
	set_kind(mk, nvswitch, mk->size.n, TOPO_SWITCH);
	for (int64_t u = 0; u < n; u++) {
		if (d.nvlink) {
			link_both(mk, u, nvswitch + u / GPUS, NVLINK, 1);
		}
		if (d.pcie) {
			link_both(mk, u, pcie + u / PER_PCIE, PCIE, 1);
		}
		/* The card is behind the PCIe switch, or the GPU's own: then to it is another. */
		link_both(mk, d.pcie ? pcie + u / PER_PCIE : u, rail + u % GPUS, NIC,
			  d.pcie ? 1 : 2);
	}
	for (int64_t p = 0; d.pcie && p < PCIES * k; p++) {
		link_both(mk, pcie + p, memory + p / PCIES, PCIE, 0);
	}
}

const struct topo_family topo_switched[] = {
	{ "Star", "n", "Star(n)", "n terminals on one switch, 1 port", measure_star, build_star },
	{ "HyperX", "n+", "HyperX(a,b,...)", "a grid with a switch for each line, 2 ports "
	  "a dimension", measure_hyperx, build_hyperx },
	{ "HammingMesh", "nnn", "HammingMesh(b,x,y)", "x by y boards, meshes of b by b; a "
	  "switch for each row and column of nodes, 4 ports", measure_mesh_of_boards,
	  build_mesh_of_boards },
	{ "FatTree", "n", "FatTree(k)", "three levels of switches of k ports, k^3/4 hosts, "
	  "1 port", measure_fat_tree, build_fat_tree },
	{ "Rails", "nn", "Rails(k,g)", "k servers of g terminals on a switch; a rail switch "
	  "for each g: 2 ports", measure_rails, build_rails },
	{ "DgxA100", "nw", "DgxA100(k,nvlink|pcie|all)", "k servers of 8 GPUs by NVLink, PCIe "
	  "and memory, or both, and 8 rails; GB/s", measure_dgx, build_dgx },
	{ NULL, NULL, NULL, NULL, NULL, NULL },
};
