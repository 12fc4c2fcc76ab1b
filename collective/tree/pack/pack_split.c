/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arcs through switches become arcs between terminals.
 *
 * A switch forwards and does not copy. So that a packing of trees can be read as one of arcs
 * between terminals, pairs of an arc into a switch and one out of it are split off: u -> w -> v
 * becomes u -> v, with part of their capacity, as long as every terminal still gets a share from
 * every root. Where a switch has as much capacity out as in, or less, this goes on until nothing
 * is left of it (Frank 1989; Jackson 1988; Bang-Jensen, Frank, Jackson 1995); of a switch with
 * more out than in, arcs are trimmed first, which may not be possible at the best rate.
 *
 * How much of a pair may go: all of it is taken, and what the least cut then lacks is given
 * back. Since that is a flow to every terminal for every pair, all switches are first split at
 * one go, each arc spread over as many others as possible, between terminals and switches
 * before others. One least cut says whether that may stand, as it mostly may. Else one switch
 * after the other is tried like this, and then pair by pair.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "collective/tree/pack/pack_private.h"
#include "lib/base/alloc.h"
#include "lib/base/number/rat.h"

/* The work of pairs taken one by one: pairs times terminals times arcs. */
#define MAX_WORK (INT64_C(1) << 30)
/* Where a switch has more pairs than so, arcs are spread over MIN_PARTNERS, and as many more as
 * that makes: all pairs would be hardly shallower, and flows would take longer. */
#define MAX_PAIRS 1024
#define MIN_PARTNERS 3
/* Pairs of a switch: five bytes each. */
#define MAX_LISTED (1 << 27)

/* Pairs in the order in which they are taken: a terminal and a switch; terminals without an arc
 * between them yet, and those with one; switches; a node and itself, which wastes both. */
enum pair_class { PAIR_MIXED, PAIR_NEW, PAIR_JOINED, PAIR_SWITCHES, PAIR_LOOP, PAIR_CLASSES };

/* The two sides of a switch. */
struct pack_ports {
	int node, n_in, n_out;
	int32_t *in, *out;	/* arcs with capacity, by their other node */
	int32_t *made;		/* n_in x n_out: the arc that a pair became, -1 */
	uint8_t *class;		/* likewise: enum pair_class */
};

struct pack_splitter {
	const struct pack_net *net;
	const struct pack_rate *rate;
	struct pack_arcs *arcs;
	struct graph_arc *flat;	/* of the arcs with capacity, and those to the roots */
	size_t max_flat;
	int64_t work;
	int32_t *order;		/* switches, those next to terminals first */
	int n_switches;
	struct pack_ports ports;
	int32_t *joined;	/* n */
	struct arrays arrays;
};

/* ---- cuts ---- */

/* What some terminal lacks of the shares of all roots. */
static int find_lack(struct pack_splitter *s, int64_t *lack, struct err *err)
{
	int64_t least;
	int m = 0, rc;
	size_t need = s->arcs->list.n + (size_t)s->net->n_roots;

	if (need > s->max_flat) {
		struct graph_arc *more = x_grow(s->flat, 2 * need, sizeof(*more));

		s->flat = more;
		s->max_flat = 2 * need;
	}
	for (size_t i = 0; i < s->arcs->list.n; i++) {
		const struct pack_arc *a = &s->arcs->list.v[i];

		if (a->cap > 0) {
			s->flat[m++] = (struct graph_arc){ a->from, a->to, a->cap };
		}
	}
	for (int i = 0; i < s->net->n_roots; i++) {
		s->flat[m++] = s->rate->arcs[s->net->m + i];
	}
	s->work += (int64_t)s->net->ranks * m;
	rc = graph_root_cut(s->net->n + 1, s->flat, m, s->net->n, s->net->ranks, &least, err);
	least = s->rate->share * s->net->n_roots - least;
	*lack = least > 0 ? least : 0;
	return rc;
}

/* ---- ports ---- */

static int other_end(const struct pack_splitter *s, int arc, bool in)
{
	return in ? s->arcs->list.v[arc].from : s->arcs->list.v[arc].to;
}

/* By insertion: arcs of one node come nearly in this order. */
static void sort_ports(const struct pack_splitter *s, int32_t *list, int n, bool in)
{
	for (int i = 1; i < n; i++) {
		int32_t arc = list[i];
		int k = i;

		for (; k > 0 && other_end(s, list[k - 1], in) > other_end(s, arc, in); k--) {
			list[k] = list[k - 1];
		}
		list[k] = arc;
	}
}

static void free_ports(struct pack_ports *p)
{
	free(p->in);
	free(p->out);
	free(p->made);
	free(p->class);
}

/* Node u has an arc of the list to the nodes with joined[v] == u. */
static void find_joined(const struct pack_splitter *s, int u, int32_t *joined)
{
	for (size_t i = 0; i < s->arcs->list.n; i++) {
		const struct pack_arc *a = &s->arcs->list.v[i];

		if (a->from == u && a->cap > 0) {
			joined[a->to] = u;
		}
	}
}

static void class_pairs(struct pack_splitter *s)
{
	struct pack_ports *p = &s->ports;
	size_t pairs = (size_t)p->n_in * (size_t)p->n_out;
	int ranks = s->net->ranks;

	p->made = x_alloc(pairs + 1, sizeof(*p->made));
	p->class = x_alloc(pairs + 1, 1);
	memset(p->made, -1, pairs * sizeof(*p->made));
	memset(s->joined, -1, (size_t)s->net->n * sizeof(*s->joined));
	for (int i = 0; i < p->n_in; i++) {
		int from = other_end(s, p->in[i], true);

		find_joined(s, from, s->joined);
		for (int j = 0; j < p->n_out; j++) {
			int to = other_end(s, p->out[j], false),
				ends = (from < ranks) + (to < ranks);

			p->class[i * p->n_out + j] = (uint8_t)(
				from == to ? PAIR_LOOP : ends == 1 ? PAIR_MIXED
				: ends == 0 ? PAIR_SWITCHES
				: s->joined[to] == from ? PAIR_JOINED : PAIR_NEW);
		}
	}
}

/* WEFT_ELIMIT for a switch of more pairs than are listed. */
static int find_ports(struct pack_splitter *s, int node, struct err *err)
{
	struct pack_ports *p = &s->ports;
	size_t n = s->arcs->list.n + 1;

	free_ports(p);
	*p = (struct pack_ports){ .node = node };
	p->in = x_alloc(n, sizeof(*p->in));
	p->out = x_alloc(n, sizeof(*p->out));
	for (size_t i = 0; i < s->arcs->list.n; i++) {
		const struct pack_arc *a = &s->arcs->list.v[i];

		if (a->cap > 0 && a->to == node) {
			p->in[p->n_in++] = (int32_t)i;
		} else if (a->cap > 0 && a->from == node) {
			p->out[p->n_out++] = (int32_t)i;
		}
	}
	if ((int64_t)p->n_in * p->n_out > MAX_LISTED) {
		return err_set(err, WEFT_ELIMIT, "a switch with %d arcs in and %d out: at most "
			       "%d pairs are split", p->n_in, p->n_out, MAX_LISTED);
	}
	sort_ports(s, p->in, p->n_in, true);
	sort_ports(s, p->out, p->n_out, false);
	class_pairs(s);
	return 0;
}

static int64_t sum_of(const struct pack_splitter *s, const int32_t *list, int n)
{
	int64_t sum = 0;

	for (int i = 0; i < n; i++) {
		sum += s->arcs->list.v[list[i]].cap;
	}
	return sum;
}

/* Arcs i and j of the ports lose `amount`, negative or not, and one that joins them gets it. */
static void split_pair(struct pack_splitter *s, int i, int j, int64_t amount)
{
	int in = s->ports.in[i], out = s->ports.out[j];
	struct pack_arc *a = &s->arcs->list.v[in], *b = &s->arcs->list.v[out];
	struct pack_arc both = { a->from, b->to, amount, in, out };
	int32_t *made = &s->ports.made[i * s->ports.n_out + j];

	a->cap -= amount;
	b->cap -= amount;
	if (both.from == both.to) {
		return;
	}
	if (*made >= 0) {
		s->arcs->list.v[*made].cap += amount;
		return;
	}
	*made = (int32_t)s->arcs->list.n;
	vec_push(&s->arcs->list, both);
}

/* ---- spreading ---- */

static int class_of(const struct pack_splitter *s, int i, int j)
{
	return s->ports.class[i * s->ports.n_out + j];
}

static int64_t smaller(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* What arcs i and j have left. */
static int64_t left_of(const struct pack_splitter *s, int i, int j)
{
	return smaller(s->arcs->list.v[s->ports.in[i]].cap, s->arcs->list.v[s->ports.out[j]].cap);
}

/* Where there are few, each pair of the class gets its part of both arcs, in proportion to
 * capacity, rounded down. */
static void spread_evenly(struct pack_splitter *s, int class)
{
	const struct pack_ports *p = &s->ports;
	int64_t *ins, *outs, *part;

	if (p->n_in * p->n_out > MAX_PAIRS) {
		return;
	}
	ins = x_new((size_t)p->n_in + (size_t)p->n_out + 1, sizeof(*ins));
	outs = ins + p->n_in;
	part = x_new((size_t)p->n_in * (size_t)p->n_out + 1, sizeof(*part));
	for (int k = 0; k < p->n_in * p->n_out; k++) {
		int i = k / p->n_out, j = k % p->n_out;

		if (class_of(s, i, j) == class) {
			ins[i] += s->arcs->list.v[p->out[j]].cap;
			outs[j] += s->arcs->list.v[p->in[i]].cap;
		}
	}
	for (int k = 0; k < p->n_in * p->n_out; k++) {
		int i = k / p->n_out, j = k % p->n_out;
		int64_t whole = ins[i] > ins[p->n_in + j] ? ins[i] : ins[p->n_in + j];

		if (class_of(s, i, j) == class && whole > 0) {
			part[k] = (int64_t)((__int128)s->arcs->list.v[p->in[i]].cap *
					    s->arcs->list.v[p->out[j]].cap / whole);
		}
	}
	for (int k = 0; k < p->n_in * p->n_out; k++) {
		if (part[k] > 0) {
			split_pair(s, k / p->n_out, k % p->n_out, part[k]);
		}
	}
	free(ins);
	free(part);
}

/* Each arc i gets at most `most` of arc i + distance. */
static void spread_to(struct pack_splitter *s, int class, int distance, int64_t most)
{
	const struct pack_ports *p = &s->ports;

	for (int i = 0; i < p->n_in; i++) {
		int j = (i + distance) % p->n_out;
		int64_t amount = smaller(left_of(s, i, j), most);

		if (amount > 0 && class_of(s, i, j) == class) {
			split_pair(s, i, j, amount);
		}
	}
}

/* The most that a pair of the class has left. */
static int64_t max_left(const struct pack_splitter *s, int class)
{
	const struct pack_ports *p = &s->ports;
	int64_t most = 0;

	for (int i = 0; i < p->n_in; i++) {
		for (int j = 0; j < p->n_out; j++) {
			int64_t left = class_of(s, i, j) == class ? left_of(s, i, j) : 0;

			most = left > most ? left : most;
		}
	}
	return most;
}

/* What is left, to k nodes at distances 1, r, r^2, .., so that few arcs lead far; then one unit to
 * all distances, and then whatever is left. */
static void spread_rest(struct pack_splitter *s, int class)
{
	int n = s->ports.n_out, last = 0;
	int64_t units = max_left(s, class);
	int64_t parts = smaller(smaller(units, n - 1), MAX_PAIRS / (n + 1) + MIN_PARTNERS);

	for (int k = 0; k < parts; k++) {
		int distance = (int)pow(n, k / (double)parts);

		distance = distance > last ? distance : last + 1;
		spread_to(s, class, distance, (units + parts - 1) / parts);
		last = distance;
	}
	for (int pass = 0; pass < 2 && units > 0; pass++) {
		for (int d = 0; d < n; d++) {
			spread_to(s, class, d, pass == 0 ? 1 : INT64_MAX);
		}
	}
}

/* Arcs i and j, of the same node, join others' pairs with what they have left: i' and j' make
 * room for them. */
static void exchange(struct pack_splitter *s, int i, int j)
{
	const struct pack_ports *p = &s->ports;
	int node = other_end(s, p->in[i], true);

	for (int k = 0; k < p->n_in * p->n_out; k++) {
		int x = k / p->n_out, y = k % p->n_out, made = p->made[k];
		int64_t amount = left_of(s, i, j);

		if (amount == 0 || made < 0 || other_end(s, p->in[x], true) == node ||
		    other_end(s, p->out[y], false) == node) {
			continue;
		}
		amount = smaller(amount, s->arcs->list.v[made].cap);
		split_pair(s, x, y, -amount);
		split_pair(s, i, y, amount);
		split_pair(s, x, j, amount);
	}
}

static void exchange_rest(struct pack_splitter *s)
{
	const struct pack_ports *p = &s->ports;

	for (int i = 0; i < p->n_in; i++) {
		for (int j = 0; j < p->n_out; j++) {
			if (left_of(s, i, j) > 0) {
				exchange(s, i, j);
			}
		}
	}
}

/* Splits the switch at one go, as far as nothing goes back to where it is from; *all: that left
 * nothing. */
static int spread(struct pack_splitter *s, int node, bool *all, struct err *err)
{
	int rc = find_ports(s, node, err);

	if (rc) {
		return rc;
	}
	for (int class = 0; class < PAIR_LOOP && s->ports.n_in > 0 && s->ports.n_out > 0;
	     class++) {
		spread_evenly(s, class);
		spread_rest(s, class);
	}
	exchange_rest(s);
	*all = sum_of(s, s->ports.out, s->ports.n_out) == 0;
	return 0;
}

/* ---- one by one ---- */

static int check_work(const struct pack_splitter *s, struct err *err)
{
	return s->work > MAX_WORK
		       ? err_set(err, WEFT_ELIMIT, "too many pairs of arcs at switches to be "
				 "tried one by one")
		       : 0;
}

/* As much of the pair as the cuts allow. */
static int try_pair(struct pack_splitter *s, int i, int j, struct err *err)
{
	int64_t amount = left_of(s, i, j), lack;
	int rc;

	if (amount == 0) {
		return 0;
	}
	split_pair(s, i, j, amount);
	if ((rc = find_lack(s, &lack, err)) || (rc = check_work(s, err))) {
		return rc;
	}
	split_pair(s, i, j, -lack);
	return 0;
}

/* All pairs, by class and distance. What a set of nodes cannot miss once it never can. */
static int split_slowly(struct pack_splitter *s, int node, struct err *err)
{
	const struct pack_ports *p = &s->ports;
	int rc = find_ports(s, node, err);

	for (int class = 0; class < PAIR_CLASSES && rc == 0; class++) {
		for (int k = 0; k < p->n_in * p->n_out && rc == 0; k++) {
			int i = k % p->n_in, j = (i + k / p->n_in + 1) % p->n_out;

			if (class_of(s, i, j) == class) {
				rc = try_pair(s, i, j, err);
			}
		}
	}
	return rc;
}

/* ---- more out than in ---- */

/* Takes from arcs out of the switch what they have more than arcs into it, in proportion, then
 * where it can be; *surplus: what is left of that, *trimmed: anything was taken. */
static int trim(struct pack_splitter *s, int node, int64_t *surplus, bool *trimmed,
		struct err *err)
{
	const struct pack_ports *p = &s->ports;
	int64_t out, all;
	int rc = find_ports(s, node, err);

	if (rc) {
		return rc;
	}
	out = sum_of(s, p->out, p->n_out);
	all = *surplus = out - sum_of(s, p->in, p->n_in);
	for (int k = 0; k < 2 * p->n_out && *surplus > 0; k++) {
		int64_t *cap = &s->arcs->list.v[p->out[k % p->n_out]].cap, lack;
		int64_t part = (int64_t)((__int128)*cap * all / out) + 1;
		int64_t amount = smaller(smaller(*cap, *surplus), k < p->n_out ? part : *surplus);

		*cap -= amount;
		if ((rc = find_lack(s, &lack, err)) || (rc = check_work(s, err))) {
			return rc;
		}
		*cap += lack;
		*surplus -= amount - lack;
		*trimmed |= amount > lack;
	}
	return 0;
}

/* All switches, again while others get less for it. */
static int trim_all(struct pack_splitter *s, bool *attained, struct err *err)
{
	bool trimmed = true;

	*attained = true;
	while (trimmed && *attained) {
		trimmed = false;
		for (int i = 0; i < s->n_switches && *attained; i++) {
			int64_t surplus;
			int rc = trim(s, s->order[i], &surplus, &trimmed, err);

			if (rc) {
				return rc;
			}
			*attained = surplus <= 0;
		}
	}
	return 0;
}

/* By node: capacity out (of switches), and in. */
static void add_up(const struct pack_net *net, int64_t *out, int64_t *in)
{
	memset(out, 0, (size_t)net->n * sizeof(*out));
	memset(in, 0, (size_t)net->n * sizeof(*in));
	for (int a = 0; a < net->m; a++) {
		out[net->arcs[a].from] += net->arcs[a].cap;
		in[net->arcs[a].to] += net->arcs[a].cap;
	}
}

/* What all capacities are multiplied by, so that parts of them are mostly whole numbers. */
static int64_t find_scale(const struct pack_net *net, const int64_t *out, const int64_t *in)
{
	int64_t scale = 1, sum = 1;

	for (int v = 0; v < net->n; v++) {
		sum += out[v];
	}
	for (int v = net->ranks; v < net->n; v++) {
		int64_t need = out[v] > in[v] ? out[v] / rat_gcd(out[v], in[v]) : 1;

		need /= rat_gcd(need, scale);
		if (need > PACK_MAX_CAP / sum / scale) {
			break;
		}
		scale *= need;
	}
	return scale < 1024 && PACK_MAX_CAP / sum / scale > 1024 ? scale * 1024 : scale;
}

/* Arcs out of a switch with more out than in get parts of that; false: there is none. */
static bool scale_down(struct pack_net *net, int64_t *out, int64_t *in)
{
	bool any = false;

	add_up(net, out, in);
	for (int a = 0; a < net->m; a++) {
		struct graph_arc *arc = &net->arcs[a];
		int u = arc->from;

		if (u >= net->ranks && out[u] > in[u]) {
			arc->cap = (int64_t)((__int128)arc->cap * in[u] / out[u]);
			any = true;
		}
	}
	return any;
}

void pack_balance(struct pack_net *net)
{
	int64_t *out = x_new((size_t)net->n, sizeof(*out));
	int64_t *in = x_new((size_t)net->n, sizeof(*in)), scale, unit = 0;

	add_up(net, out, in);
	scale = find_scale(net, out, in);
	for (int a = 0; a < net->m; a++) {
		net->arcs[a].cap *= scale;
	}
	while (scale_down(net, out, in)) {
	}
	for (int a = 0; a < net->m; a++) {
		unit = rat_gcd(unit, net->arcs[a].cap);
	}
	for (int a = 0; a < net->m && unit > 1; a++) {
		net->arcs[a].cap /= unit;
	}
	free(out);
	free(in);
}

/* ---- all switches ---- */

/* Switches with terminals beside them first, then those beside these, .. */
static void order_switches(struct pack_splitter *s, bool *seen)
{
	const struct pack_net *net = s->net;
	int next = 0;

	for (int v = 0; v < net->n; v++) {
		seen[v] = v < net->ranks;
	}
	while (next < s->n_switches) {
		int from = next;

		for (int a = 0; a < net->m; a++) {
			int u = net->arcs[a].from, v = net->arcs[a].to;

			if (seen[u] && !seen[v]) {
				s->order[next++] = v;
				seen[v] = true;
			} else if (seen[v] && !seen[u]) {
				s->order[next++] = u;
				seen[u] = true;
			}
		}
		for (int v = 0; v < net->n && next == from; v++) {
			if (!seen[v]) {
				s->order[next++] = v;
				seen[v] = true;
			}
		}
	}
}

static void start(struct pack_splitter *s)
{
	const struct pack_net *net = s->net;
	bool *seen;

	arrays_add(&s->arrays, s->order, s->n_switches);
	arrays_add(&s->arrays, s->joined, net->n);
	arrays_add(&s->arrays, seen, net->n);
	vec_reserve(&s->arcs->list, (size_t)net->m);
	for (int a = 0; a < net->m; a++) {
		const struct graph_arc *arc = &s->rate->arcs[a];

		s->arcs->list.v[s->arcs->list.n++] = (struct pack_arc){
			arc->from, arc->to, arc->cap, -1, -1 };
	}
	order_switches(s, seen);
}

/* The arcs as they were when there were so many, of which these had these capacities. */
static void restore(struct pack_splitter *s, const int64_t *caps, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		s->arcs->list.v[i].cap = caps[i];
	}
	s->arcs->list.n = n;
}

static int64_t *keep_caps(const struct pack_splitter *s)
{
	int64_t *caps = x_alloc(s->arcs->list.n + 1, sizeof(*caps));

	for (size_t i = 0; i < s->arcs->list.n; i++) {
		caps[i] = s->arcs->list.v[i].cap;
	}
	return caps;
}

static bool is_memory(const struct pack_net *net, int v)
{
	return v >= net->ranks && v < net->holders;
}

/* Spreads so many switches from the first on; *ok false, and nothing done, when cuts lack
 * something then, or a switch keeps something. */
static int try_spread(struct pack_splitter *s, const int32_t *switches, int n, bool *ok,
		      struct err *err)
{
	int64_t *caps = keep_caps(s), lack = 0;
	size_t before = s->arcs->list.n;
	int rc = 0;

	*ok = true;
	for (int i = 0; i < n && *ok && rc == 0; i++) {
		bool all = false;

		rc = spread(s, switches[i], &all, err);
		*ok = all || n == 1;
	}
	if (*ok && rc == 0) {
		rc = find_lack(s, &lack, err);
		*ok = lack == 0;
	}
	if (rc == 0 && !*ok) {
		restore(s, caps, before);
	}
	free(caps);
	return rc;
}

/* Memories are mostly not needed: without them there are fewer arcs, and shorter paths. */
static int drop_memories(struct pack_splitter *s, struct err *err)
{
	int64_t *caps = keep_caps(s), lack;
	size_t n = s->arcs->list.n;
	int rc;

	for (size_t i = 0; i < n; i++) {
		struct pack_arc *a = &s->arcs->list.v[i];

		a->cap = is_memory(s->net, a->from) || is_memory(s->net, a->to) ? 0 : a->cap;
	}
	rc = find_lack(s, &lack, err);
	if (rc == 0 && lack > 0) {
		restore(s, caps, n);
	}
	free(caps);
	return rc;
}

static int split_all(struct pack_splitter *s, struct err *err)
{
	bool ok = false;
	int rc = s->net->holders > s->net->ranks ? drop_memories(s, err) : 0;

	if (rc == 0) {
		rc = try_spread(s, s->order, s->n_switches, &ok, err);
	}

	for (int i = 0; i < s->n_switches && rc == 0 && !ok; i++) {
		bool spread_ok;

		(void)((rc = try_spread(s, &s->order[i], 1, &spread_ok, err)) ||
		       (rc = split_slowly(s, s->order[i], err)));
	}
	return rc;
}

int pack_split(const struct pack_net *net, const struct pack_rate *rate, struct pack_arcs *arcs,
	       bool *attained, struct err *err)
{
	struct pack_splitter s = {
		.net = net, .rate = rate, .arcs = arcs, .n_switches = net->n - net->ranks,
	};
	int rc;

	start(&s);
	if ((rc = trim_all(&s, attained, err)) == 0 && *attained) {
		rc = split_all(&s, err);
	}
	free(s.flat);
	free_ports(&s.ports);
	arrays_fini(&s.arrays);
	return rc;
}
