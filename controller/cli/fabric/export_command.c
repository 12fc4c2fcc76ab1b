/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weft export: the fabric as schedulers of jobs want to see it.
 *
 * Light can join two hosts when their ports reach one switch, or switches that
 * fibres join, so that is the tree: hosts whose ports go to the same devices
 * in the same way are together (they can stand in for each other), and what
 * fibres or common devices join has one switch above it. There is no root over
 * parts that no light joins: no job could run across them.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "controller/cli/core/private.h"
#include "controller/plan/plan.h"
#include "lib/base/alloc.h"
#include "lib/base/vec.h"

/* So that the number of a host's name is an int. */
#define MAX_RANGE_DIGITS 9

/* Hosts that are wired alike. */
struct leaf {
	char name[2 * CONF_MAX_NAME + 16];
	int first;		/* host that stands for the others */
	int part;		/* which of the parts that light joins */
	VEC(int) hosts;
};

/* Devices in disjoint sets by what light joins (part_of leads to the set's
 * smallest device), and hosts in leaves. */
struct tree {
	const struct model_fabric *f;
	VEC(struct leaf) leaves;
	int *part_of;		/* [devices] one of the devices joined to it */
	int *ring_of;		/* [hosts] ring, or -1 */
};

static void tree_fini(struct tree *t)
{
	for (size_t i = 0; i < t->leaves.n; i++) {
		vec_fini(&t->leaves.v[i].hosts);
	}
	vec_fini(&t->leaves);
	free(t->part_of);
	free(t->ring_of);
}

/* ---- what light joins ---------------------------------------------------- */

/* The device that stands for the set of this one. No ranks: sets are small,
 * and the smaller index always wins, so that the result does not depend on
 * the order of fibres. */
static int find(const struct tree *t, int device)
{
	while (t->part_of[device] != device) {
		device = t->part_of[device];
	}
	return device;
}

/* -1 is no device, which joins nothing. */
static void join(struct tree *t, int a, int b)
{
	if (a >= 0 && b >= 0) {
		a = find(t, a);
		b = find(t, b);
		t->part_of[a > b ? a : b] = a > b ? b : a;
	}
}

/* The first device that a host reaches, or -1. */
static int device_of(const struct tree *t, int host)
{
	const struct model_host *h = &t->f->hosts[host];

	for (int p = h->first_port; p < h->first_port + h->n_ports; p++) {
		if (t->f->ports[p].tx_device >= 0) {
			return t->f->ports[p].tx_device;
		}
	}
	return t->ring_of[host];
}

/* Joins devices that a fibre or a host's ports connect. A host on a ring
 * reaches it without a port. */
static void join_all(struct tree *t)
{
	const struct model_fabric *f = t->f;

	for (int d = 0; d < f->n_devices; d++) {
		t->part_of[d] = d;
		for (int i = 0; f->devices[d].kind == MODEL_RING &&
				i < f->devices[d].n_members; i++) {
			t->ring_of[f->devices[d].members[i]] = d;
		}
	}
	for (int i = 0; i < f->n_trunks; i++) {
		join(t, f->trunks[i].from_device, f->trunks[i].to_device);
	}
	for (int p = 0; p < f->n_ports; p++) {
		int first = device_of(t, f->ports[p].host);

		join(t, first, f->ports[p].tx_device);
		join(t, first, f->ports[p].rx_device);
	}
}

/* ---- leaves -------------------------------------------------------------- */

/* Hosts of one ring are alike; on switches place_alike() decides. */
static bool same_leaf(const struct tree *t, int a, int b)
{
	int x = device_of(t, a), y = device_of(t, b);

	if (x < 0 || y < 0 || t->f->devices[x].kind == MODEL_RING) {
		return x == y;
	}
	return place_alike(t->f, a, b);
}

/* The devices that it reaches, "ocs0.ocs1", or "dark" without any. A name
 * that is taken gets a number: hosts may reach the same devices by different
 * ports. */
static void name_leaf(const struct tree *t, struct leaf *l)
{
	const struct model_host *h = &t->f->hosts[l->first];
	int last = -1, n = 0;
	size_t at = 0;

	snprintf(l->name, sizeof(l->name), "%s", l->part < 0 ? "dark" :
		 t->f->devices[device_of(t, l->first)].name);
	for (int p = h->first_port; p < h->first_port + h->n_ports && at < sizeof(l->name); p++) {
		int d = t->f->ports[p].tx_device;

		if (d >= 0 && d != last) {
			at += (size_t)snprintf(l->name + at,
					       sizeof(l->name) - at, "%s%s",
					       at ? "." : "",
					       t->f->devices[d].name);
			last = d;
		}
	}
	at = strlen(l->name);
	for (size_t i = 0; i + 1 < t->leaves.n; i++) {
		const char *other = t->leaves.v[i].name;

		n += strncmp(other, l->name, at) == 0 && (!other[at] || other[at] == '-');
	}
	if (n > 0 && at < sizeof(l->name) - 8) {
		snprintf(l->name + at, sizeof(l->name) - at, "-%d", n + 1);
	}
}

/* O(leaves x ports of a host). */
static void add_host(struct tree *t, int host)
{
	struct leaf fresh = { .first = host };
	int d = device_of(t, host);
	size_t i = 0;

	while (i < t->leaves.n && !same_leaf(t, t->leaves.v[i].first, host)) {
		i++;
	}
	if (i == t->leaves.n) {
		fresh.part = d < 0 ? -1 : find(t, d);
		vec_push(&t->leaves, fresh);
		name_leaf(t, &t->leaves.v[i]);
	}
	vec_push(&t->leaves.v[i].hosts, host);
}

/* tree_fini() it. */
static void tree_init(struct tree *t, const struct model_fabric *f)
{
	*t = (struct tree){ .f = f };
	t->part_of = x_new((size_t)f->n_devices + 1, sizeof(int));
	t->ring_of = x_alloc((size_t)f->n_hosts + 1, sizeof(int));
	for (int h = 0; h < f->n_hosts; h++) {
		t->ring_of[h] = -1;
	}
	join_all(t);
	for (int h = 0; h < f->n_hosts; h++) {
		add_host(t, h);
	}
}

/* How many leaves this part has, and the number of the part among those that
 * have several. */
static int leaves_of(const struct tree *t, int part)
{
	int n = 0;

	for (size_t i = 0; i < t->leaves.n && part >= 0; i++) {
		n += t->leaves.v[i].part == part;
	}
	return n;
}

/* True for the first leaf of a part that needs a switch above it. */
static bool opens_part(const struct tree *t, size_t leaf)
{
	int part = t->leaves.v[leaf].part;

	for (size_t i = 0; i < leaf; i++) {
		if (t->leaves.v[i].part == part) {
			return false;
		}
	}
	return leaves_of(t, part) > 1;
}

/* ---- text ---------------------------------------------------------------- */

/* Names of the leaves of a part, with `between` between them. */
static void put_leaf_names(const struct tree *t, int part, const char *between, struct buf *b)
{
	const char *comma = "";

	for (size_t i = 0; i < t->leaves.n; i++) {
		if (t->leaves.v[i].part == part) {
			buf_printf(b, "%s%s", comma, t->leaves.v[i].name);
			comma = between;
		}
	}
}

static void put_hosts(const struct tree *t, const struct leaf *l,
		      const char *between, struct buf *b)
{
	for (size_t i = 0; i < l->hosts.n; i++) {
		buf_printf(b, "%s%s", i ? between : "", t->f->hosts[l->hosts.v[i]].name);
	}
}

static void put_head(const struct tree *t, struct buf *b)
{
	buf_printf(b, "# The fabric %s, written by weft export.\n", t->f->name ? t->f->name : "");
}

/* topology.yaml of Slurm's topology/tree plugin: leaves as switches with
 * nodes, and a switch with children above those that are joined. */
static void put_slurm_tree(const struct tree *t, struct buf *b)
{
	buf_str(b, "- topology: optical\n  cluster_default: true\n"
		   "  tree:\n    switches:\n");
	for (size_t i = 0; i < t->leaves.n; i++) {
		const struct leaf *l = &t->leaves.v[i];

		if (opens_part(t, i)) {
			buf_printf(b, "      - switch: \"joined.%s\"\n"
				   "        children: \"", l->name);
			put_leaf_names(t, l->part, ",", b);
			buf_str(b, "\"\n");
		}
		buf_printf(b, "      - switch: \"%s\"\n        nodes: \"", l->name);
		put_hosts(t, l, ",", b);
		buf_str(b, "\"\n");
	}
}

/* How many hosts of the leaf from the i-th on count up from its number, and the digits
 * of that: 3 and 2 for gpu08, gpu09, gpu10. */
static size_t count_run(const struct tree *t, const struct leaf *l, size_t i, size_t *width)
{
	const char *name = t->f->hosts[l->hosts.v[i]].name;
	size_t letters = strlen(name), n = 1;
	char next[CONF_MAX_NAME + 16];

	for (*width = 0; *width < MAX_RANGE_DIGITS && letters > 0 &&
			isdigit(name[letters - 1]); ++*width) {
		letters--;
	}
	for (; *width && i + n < l->hosts.n; n++) {
		snprintf(next, sizeof(next), "%.*s%0*d", (int)letters, name, (int)*width,
			 atoi(name + letters) + (int)n);
		if (strcmp(next, t->f->hosts[l->hosts.v[i + n]].name) != 0) {
			break;
		}
	}
	return n;
}

/* Hosts with runs of numbers as ranges, "gpu[00-15],login", which Slurm's
 * hostlists expand to the same names: a line is all hosts of a switch. */
static void put_ranges(const struct tree *t, const struct leaf *l, struct buf *b)
{
	for (size_t i = 0, n, width; i < l->hosts.n; i += n) {
		const char *name = t->f->hosts[l->hosts.v[i]].name;
		const char *digits;

		n = count_run(t, l, i, &width);
		digits = name + strlen(name) - width;
		buf_printf(b, "%s%.*s", i ? "," : "", (int)(digits - name), name);
		if (n > 1) {
			buf_printf(b, "[%s-%0*d]", digits, (int)width, atoi(digits) + (int)n - 1);
		} else {
			buf_str(b, digits);
		}
	}
}

/* topology.conf of TopologyPlugin=topology/tree, as Slurm before 25.05 reads it. */
static void put_slurm_conf(const struct tree *t, struct buf *b)
{
	for (size_t i = 0; i < t->leaves.n; i++) {
		const struct leaf *l = &t->leaves.v[i];

		buf_printf(b, "SwitchName=%s Nodes=", l->name);
		put_ranges(t, l, b);
		buf_str(b, "\n");
		if (opens_part(t, i)) {
			buf_printf(b, "SwitchName=joined.%s Switches=", l->name);
			put_leaf_names(t, l->part, ",", b);
			buf_str(b, "\n");
		}
	}
}

/* The same of topology/block: block_sizes is the size of the smallest leaf,
 * so that no block is smaller. */
static void put_slurm_block(const struct tree *t, struct buf *b)
{
	size_t least = 0;

	for (size_t i = 0; i < t->leaves.n; i++) {
		size_t n = t->leaves.v[i].hosts.n;

		least = least == 0 || n < least ? n : least;
	}
	buf_printf(b, "- topology: optical\n  cluster_default: true\n"
		   "  block:\n    block_sizes:\n      - %zu\n    blocks:\n",
		   least);
	for (size_t i = 0; i < t->leaves.n; i++) {
		buf_printf(b, "      - block: \"%s\"\n        nodes: \"", t->leaves.v[i].name);
		put_hosts(t, &t->leaves.v[i], ",", b);
		buf_str(b, "\"\n");
	}
}

/* The model file that NVIDIA topograph reads: switches with
 * switches, then blocks with nodes. */
static void put_topograph(const struct tree *t, struct buf *b)
{
	bool any = false;

	for (size_t i = 0; i < t->leaves.n; i++) {
		if (opens_part(t, i)) {
			buf_printf(b, "%s  \"joined.%s\":\n    switches: [\"",
				   any ? "" : "switches:\n",
				   t->leaves.v[i].name);
			put_leaf_names(t, t->leaves.v[i].part, "\", \"", b);
			buf_str(b, "\"]\n");
			any = true;
		}
	}
	buf_str(b, any ? "blocks:\n" : "switches: {}\nblocks:\n");
	for (size_t i = 0; i < t->leaves.n; i++) {
		buf_printf(b, "  - switch: \"%s\"\n    nodes: [\"", t->leaves.v[i].name);
		put_hosts(t, &t->leaves.v[i], "\", \"", b);
		buf_str(b, "\"]\n");
	}
}

/* ---- where the fabric comes from ----------------------------------------- */

/* For those who look after nodes: weftd gives these no new light. */
static int put_drained(struct cli *c, const struct model_fabric *f, struct buf *b, struct err *err)
{
	Weft__V1__StatusRequest req = WEFT__V1__STATUS_REQUEST__INIT;
	const Weft__V1__StatusResponse *s;
	ProtobufCMessage *msg = NULL;
	int r = cli_unary(c, CLI_METHOD("Status"), &req.base,
			  &weft__v1__status_response__descriptor, CLI_CALL_MS, &msg, err);

	if (r) {
		return r;
	}
	s = (const Weft__V1__StatusResponse *)msg;
	buf_printf(b, "# Generation %lld.\n", (long long)s->generation);
	for (size_t i = 0; i < s->n_holds; i++) {
		if (model_find_host(f, s->holds[i]->target) >= 0) {
			buf_printf(b, "# %s is drained in weft.\n", s->holds[i]->target);
		}
	}
	rpc_free_message(msg);
	return 0;
}

/* From a fabric file, or from weftd with its generation and drained hosts as
 * comments. To --output at once or not at all, else to stdout. */
static int export_as(struct cli *c, void (*put)(const struct tree *t, struct buf *b),
		     struct err *err)
{
	const char *output = cli_opt(c, "output");
	struct model_fabric *f = NULL;
	struct tree t = { 0 };
	struct buf b = { 0 };
	int r = c->argc ? cli_load_fabric(c->argv[0], &f, err)
			: cli_fetch_fabric(c, 0, &f, err);

	if (r == 0) {
		tree_init(&t, f);
		put_head(&t, &b);
		r = c->argc ? 0 : put_drained(c, f, &b, err);
	}
	if (r == 0) {
		put(&t, &b);
		r = cli_write_data(output, &b, err);
	}
	buf_fini(&b);
	tree_fini(&t);
	model_free(f);
	return r;
}

int cmd_export_slurm(struct cli *c, struct err *err)
{
	const char *plugin = cli_opt(c, "plugin");
	const char *to = cli_opt(c, "to");
	bool block = plugin && strcmp(plugin, "block") == 0;
	bool conf = to && strcmp(to, "conf") == 0;

	if (plugin && !block && strcmp(plugin, "tree") != 0) {
		return err_set(err, WEFT_EUSAGE, "--plugin: \"%s\" is not tree "
			       "or block", plugin);
	}
	if (to && !conf && strcmp(to, "yaml") != 0) {
		return err_set(err, WEFT_EUSAGE, "--to: \"%s\" is not conf or yaml", to);
	}
	if (conf && block) {
		return err_set(err, WEFT_EUSAGE, "--to conf is for --plugin tree: blocks are "
			       "not supported in topology.conf");
	}
	return export_as(c, conf ? put_slurm_conf : block ? put_slurm_block : put_slurm_tree,
			 err);
}

int cmd_export_topograph(struct cli *c, struct err *err)
{
	return export_as(c, put_topograph, err);
}
