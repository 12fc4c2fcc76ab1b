/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fabric as a picture: a card for each switch, panel and ring.
 *
 * The page's object `picture` has all that is drawn; what weftd says of single
 * circuits (new, missing, unexpected) comes beside it and is matched by device and ports. On a card
 * the hosts of the device stand round a circle, some together where there are many, and what leads
 * to other switches has a place of its own. Circuits between the same two places with the same
 * job and mark are one line, which is thicker the more there are. A job has a colour and a dash, a
 * mark has a sign, so that nothing is lost in grey. On a ring the jobs' programs are bands, from
 * the channel next to the nodes outwards.
 */
#include "controller/cli/fabric/fabric_picture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "lib/base/order.h"
#include "lib/output/canvas.h"

#define MOST_CARDS 12
#define ACROSS 3		/* cards in a row */
#define CARD 356.0
#define CARD_HIGH 364.0
#define RADIUS 106.0
#define CENTRE_Y 206.0		/* in a card */
#define PLACES 64		/* round a circle */
#define NAMED 32		/* of them all have their names, of more some */
#define SOME_NAMED 21
#define MOST_LINES 1500		/* of a card */
#define MOST_JOBS 24		/* in the legend */
#define SIGNS 40		/* of a card */
#define BESIDE 34.0		/* how far lines between the same places bend apart */
#define TRUNK (-2)		/* in lists of ports */
#define NO_JOB (-1)

/* Circuits that are one line. */
struct circuit_line {
	int a, b;		/* places */
	int job;
	enum circuit_mark mark;
	int count;
	int beside;		/* so many others between the two places */
};

struct fabric_card {
	struct svg_canvas *c;
	const struct fabric_picture *p;
	json_t *root, *device;
	int number;			/* of the device */
	const struct marked_device *marks;	/* NULL: none */
	double x, y;
	int n_hosts, each;		/* that have ports there; hosts of a place */
	int max_each;			/* of all cards */
	int *place;			/* of a host of the fabric, -1: none */
	int *hosts;			/* in the order of places */
	int trunks, nowhere;		/* the first place of another switch; the one of no host,
					 * -1 */
	int *trunk_places;		/* of a device, 1 + place; 0: no fibre leads there */
	int *trunk_to[2];		/* of an input, an output: 1 + device */
	int n_places;
	int *host_of_port;
	int n_ports;		/* most of a side of a device */
	int *marked[3];		/* of an input: 1 + place in marks->circuits, 0: none there */
	VEC(struct circuit_line) lines;
	int left_out;		/* circuits of lines that are too many */
	uint64_t *looks;	/* of each device: what its card shows */
	int alike;		/* further devices whose cards show the same */
	bool *jobs;			/* that have circuits, of the fabric's; all cards add */
	bool *ring_jobs;		/* that have programs */
	bool *seen_marks;		/* likewise */
};

/* ---- reading ---- */

static json_t *list(json_t *of, const char *key)
{
	return json_object_get(of, key);
}

static const char *text(json_t *of)
{
	const char *s = json_string_value(of);

	return s ? s : "";
}

static int number(json_t *of, size_t i)
{
	return (int)json_integer_value(json_array_get(of, i));
}

/* Which host a port of the fabric is of; -1: none. */
static int host_of(const struct fabric_card *k, int port)
{
	return port >= 0 && port < (int)json_array_size(list(k->root, "ports"))
		       ? k->host_of_port[port]
		       : -1;
}

/* Takes the hosts' ports apart. WEFT_EINVAL where they are not the fabric's. */
static int read_hosts(struct fabric_card *k, struct err *err)
{
	json_t *hosts = list(k->root, "hosts"), *host;
	size_t i, ports = json_array_size(list(k->root, "ports"));

	json_array_foreach(hosts, i, host) {
		int first = number(host, 1), n = number(host, 2);

		if (first < 0 || n < 0 || (size_t)first + (size_t)n > ports) {
			return err_set(err, WEFT_EINVAL, "the picture has a host %d without ports",
				       (int)i);
		}
		for (int port = first; port < first + n; port++) {
			k->host_of_port[port] = (int)i;
		}
	}
	return 0;
}

/* ---- places ---- */

static void add_host(struct fabric_card *k, int host)
{
	if (host >= 0 && host < (int)json_array_size(list(k->root, "hosts")) &&
	    k->place[host] < 0) {
		k->place[host] = 0;
		k->hosts[k->n_hosts++] = host;
	}
}

static int by_number(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

/* To which devices fibres lead, each a place behind those of hosts. */
static void find_trunks(struct fabric_card *k)
{
	json_t *trunks = list(k->root, "trunks"), *trunk;
	int devices = (int)json_array_size(list(k->root, "devices"));
	size_t i;

	memset(k->trunk_places, 0, (size_t)devices * sizeof(*k->trunk_places));
	for (int side = 0; side < 2; side++) {
		memset(k->trunk_to[side], 0, ((size_t)k->n_ports + 1) * sizeof(**k->trunk_to));
	}
	json_array_foreach(trunks, i, trunk) {
		for (int side = 0; side < 2; side++) {
			/* [from device, out, to device, in, ..] */
			int self = number(trunk, side ? 0 : 2), port = number(trunk, side ? 1 : 3);
			int other = number(trunk, side ? 2 : 0);

			if (self == k->number && other >= 0 && other < devices && port >= 1 &&
			    port <= k->n_ports) {
				k->trunk_to[side][port] = other + 1;
				k->trunk_places[other] = 1;
			}
		}
	}
	for (int d = 0; d < devices; d++) {
		k->trunk_places[d] = k->trunk_places[d] ? ++k->n_places : 0;
	}
}

/* Hosts round the circle: of a ring as they stand on it, else by their number. */
static void find_places(struct fabric_card *k)
{
	static const char *const sides[] = { "in", "out" };
	json_t *members = list(k->device, "members");

	k->n_hosts = 0;
	for (size_t i = 0; i < json_array_size(list(k->root, "hosts")); i++) {
		k->place[i] = -1;
	}
	for (size_t i = 0; i < json_array_size(members); i++) {
		add_host(k, number(members, i));
	}
	for (int s = 0; s < 2; s++) {
		json_t *ports = list(k->device, sides[s]);

		for (size_t i = 0; i < json_array_size(ports); i++) {
			add_host(k, host_of(k, number(ports, i)));
		}
	}
	if (!members) {
		qsort(k->hosts, (size_t)k->n_hosts, sizeof(*k->hosts), by_number);
	}
	k->each = (k->n_hosts + PLACES - 1) / PLACES;
	k->each = k->each ? k->each : 1;
	k->max_each = k->each > k->max_each ? k->each : k->max_each;
	for (int i = 0; i < k->n_hosts; i++) {
		k->place[k->hosts[i]] = i / k->each;
	}
	k->trunks = k->n_places = (k->n_hosts + k->each - 1) / k->each;
	find_trunks(k);
	k->nowhere = -1;
}

/* The place of a port of the device (side 0: an input); one for what leads nowhere is made when
 * it is needed. */
static int place_of(struct fabric_card *k, int side, int port)
{
	json_t *ports = list(k->device, side ? "out" : "in");
	int to = port >= 1 && (size_t)port <= json_array_size(ports)
		? number(ports, (size_t)port - 1)
								     : -1;
	int host = host_of(k, to);

	if (host >= 0) {
		return k->place[host];
	}
	if (to == TRUNK && k->trunk_to[side][port]) {
		return k->trunk_places[k->trunk_to[side][port] - 1] - 1;
	}
	if (k->nowhere < 0) {
		k->nowhere = k->n_places++;
	}
	return k->nowhere;
}

static double angle_of(const struct fabric_card *k, int place)
{
	return 2 * acos(-1) * place / (k->n_places ? k->n_places : 1);
}

static double at_x(const struct fabric_card *k, double angle, double r)
{
	return k->x + CARD / 2 + r * sin(angle);
}

static double at_y(const struct fabric_card *k, double angle, double r)
{
	return k->y + CENTRE_Y - r * cos(angle);
}

/* The device behind a place of trunks. */
static const char *trunk_name(const struct fabric_card *k, int place)
{
	json_t *devices = list(k->root, "devices");
	size_t d = 0;

	while (d < json_array_size(devices) && k->trunk_places[d] != place + 1) {
		d++;
	}
	return text(list(json_array_get(devices, d), "name"));
}

/* The name of a place: of several hosts the first, and how many more. */
static void name_place(const struct fabric_card *k, int place, char *name, size_t size)
{
	json_t *hosts = list(k->root, "hosts");
	int first = place * k->each, last = first + k->each - 1;
	const char *host;

	if (place == k->nowhere) {
		snprintf(name, size, "no host");
		return;
	}
	if (place >= k->trunks) {
		snprintf(name, size, "to %s", trunk_name(k, place));
		return;
	}
	host = text(json_array_get(json_array_get(hosts, (size_t)k->hosts[first]), 0));
	last = last < k->n_hosts ? last : k->n_hosts - 1;
	if (last == first) {
		snprintf(name, size, "%s", host);
	} else {
		snprintf(name, size, "%s +%d", host, last - first);
	}
}

/* Names stand round the circle, beside it where it is upright. */
static void put_places(struct fabric_card *k)
{
	int every = k->n_places <= NAMED ? 1 : (k->n_places + SOME_NAMED - 1) / SOME_NAMED;
	char name[128];

	for (int i = 0; i < k->n_places; i++) {
		double a = angle_of(k, i), x = at_x(k, a, RADIUS + 11),
			y = at_y(k, a, RADIUS + 13) + 3.5;
		char side = sin(a) > 0.2 ? 'b' : sin(a) < -0.2 ? 'e' : 'm';
		double room = side == 'b' ? k->x + CARD - 6 - x : side == 'e' ? x - k->x - 6 : 110;

		svg_circle(k->c, "fill soft", at_x(k, a, RADIUS), at_y(k, a, RADIUS),
			   k->n_places <= NAMED ? 4 : 2.5);
		name_place(k, i, name, sizeof(name));
		if ((i % every == 0 && (every == 1 || i + every / 2 < k->n_places)) ||
		    i >= k->trunks) {
			svg_put(k->c, x, y, side, SVG_SMALL, room, name);
		}
	}
}

/* ---- circuits ---- */

static const char *mark_sign(enum circuit_mark mark)
{
	static const char *const signs[] = { "", "+", "\xc3\x97", "\xe2\x80\xa6", "\xc3\x97", "!" };

	return signs[mark];
}

static const char *mark_style(enum circuit_mark mark)
{
	static const char *const styles[] = { "", "", "bad d5", "soft d7", "bad d2", "warn thick" };

	return styles[mark];
}

/* Finds marks by the input: a list has an input once. */
static void index_marks(struct fabric_card *k)
{
	for (int i = 0; i < 3; i++) {
		const struct marked_circuits *m = k->marks ? &k->marks->circuits[i] : NULL;

		memset(k->marked[i], 0, ((size_t)k->n_ports + 1) * sizeof(*k->marked[i]));
		for (size_t j = 0; m && j < m->n; j++) {
			if (m->v[j]->in >= 1 && m->v[j]->in <= k->n_ports) {
				k->marked[i][m->v[j]->in] = (int)j + 1;
			}
		}
	}
}

static enum circuit_mark mark_of(const struct fabric_card *k, int in, int out)
{
	enum circuit_mark mark = CIRCUIT_KEPT;

	for (int i = 0; in >= 1 && in <= k->n_ports && i < 3; i++) {
		const struct marked_circuits *m = k->marks ? &k->marks->circuits[i] : NULL;
		int j = k->marked[i][in];

		if (j && m->v[j - 1]->out == out && m->mark > mark) {
			mark = m->mark;
		}
	}
	return mark;
}

static void add_line(struct fabric_card *k, int in, int out, int job, enum circuit_mark mark)
{
	int a = place_of(k, 0, in), b = place_of(k, 1, out);
	const struct circuit_line line = { a < b ? a : b, a < b ? b : a, job, mark, 1, 0 };

	k->seen_marks[mark] = true;
	vec_push(&k->lines, line);
}

ORDER_BY(compare_lines, struct circuit_line, mark, a, b, job)

/* Those of the jobs, and what is there or goes without being of one. */
static void find_lines(struct fabric_card *k)
{
	json_t *circuits = list(k->root, "circuits"), *circuit;
	int jobs = (int)json_array_size(list(k->root, "jobs"));
	size_t i, n = 0;

	index_marks(k);
	json_array_foreach(circuits, i, circuit) {
		int in = number(circuit, 1), out = number(circuit, 2), job = number(circuit, 5);

		if (number(circuit, 0) == k->number && job >= 0 && job < jobs) {
			k->jobs[job] = true;
			add_line(k, in, out, job, mark_of(k, in, out));
		}
	}
	for (int m = 0; k->marks && m < 3; m++) {
		const struct marked_circuits *l = &k->marks->circuits[m];
		bool others = l->mark == CIRCUIT_DELETED || l->mark == CIRCUIT_UNEXPECTED ||
			      (l->mark == CIRCUIT_MISSING && !jobs);

		for (size_t j = 0; others && j < l->n; j++) {
			add_line(k, l->v[j]->in, l->v[j]->out, NO_JOB, l->mark);
		}
	}
	if (k->lines.n) {
		qsort(k->lines.v, k->lines.n, sizeof(*k->lines.v), compare_lines);
	}
	for (i = 0; i < k->lines.n; i++) {
		if (n > 0 && compare_lines(&k->lines.v[n - 1], &k->lines.v[i]) == 0) {
			k->lines.v[n - 1].count++;
		} else {
			k->lines.v[n++] = k->lines.v[i];
		}
	}
	k->lines.n = n < MOST_LINES ? n : MOST_LINES;
	k->left_out = 0;
	for (i = 0; i + k->lines.n < n; i++) {
		k->left_out += k->lines.v[i].count;
	}
	/* The marked ones are last, above the others, and the last to be left out. */
	if (k->lines.n < n) {
		memmove(k->lines.v, k->lines.v + (n - k->lines.n),
			k->lines.n * sizeof(*k->lines.v));
	}
	for (i = 0; i < k->lines.n; i++) {
		struct circuit_line *l = &k->lines.v[i];

		for (size_t j = 0; j < i; j++) {
			l->beside += k->lines.v[j].a == l->a && k->lines.v[j].b == l->b;
		}
	}
}

static void line_style(const struct fabric_card *k, const struct circuit_line *l, char *style,
		       size_t size)
{
	const char *own = mark_style(l->mark);
	bool many = k->n_places > NAMED;
	const char *wide = l->count >= 16 && !many ? " broad" : l->count >= 3 && !many ? " thick"
		: "";
	bool back = k->p->only_marked && l->mark == CIRCUIT_KEPT;

	if (*own) {
		snprintf(style, size, "line %s%s", own, wide);
	} else {
		snprintf(style, size, "line %s %s%s%s", svg_colour_class(l->job),
			 svg_dash_class(l->job),
			 wide, back ? " weaker" : "");
	}
}

/* Bent towards the middle, the more the nearer its ends are; one within a place is a loop.
 * Where its middle is. */
static void put_line(struct fabric_card *k, const struct circuit_line *l, double *mid_x,
		     double *mid_y)
{
	double a = angle_of(k, l->a), b = angle_of(k, l->b), turn = fabs(a - b);
	double apart = fmin(turn, 2 * acos(-1) - turn) / acos(-1), pull = 0.6 - 0.45 * apart;
	double ax = at_x(k, a, RADIUS - 6), ay = at_y(k, a, RADIUS - 6);
	double bx = at_x(k, b, RADIUS - 6), by = at_y(k, b, RADIUS - 6);
	double cx = k->x + CARD / 2, cy = k->y + CENTRE_Y;
	char style[64];

	line_style(k, l, style, sizeof(style));
	if (l->a == l->b) {
		svg_path(k->c, style, "M%.1f %.1fC%.1f %.1f %.1f %.1f %.1f %.1f", ax, ay,
			 at_x(k, a - 0.25, RADIUS - 40), at_y(k, a - 0.25, RADIUS - 40),
			 at_x(k, a + 0.25, RADIUS - 40), at_y(k, a + 0.25, RADIUS - 40), ax, ay);
		*mid_x = at_x(k, a, RADIUS - 32);
		*mid_y = at_y(k, a, RADIUS - 32);
		return;
	}
	cx += ((ax + bx) / 2 - cx) * pull;
	cy += ((ay + by) / 2 - cy) * pull;
	cx -= BESIDE * l->beside * (by - ay) / fmax(hypot(bx - ax, by - ay), 1);
	cy += BESIDE * l->beside * (bx - ax) / fmax(hypot(bx - ax, by - ay), 1);
	svg_path(k->c, style, "M%.1f %.1fQ%.1f %.1f %.1f %.1f", ax, ay, cx, cy, bx, by);
	*mid_x = (ax + 2 * cx + bx) / 4;
	*mid_y = (ay + 2 * cy + by) / 4;
}

static void put_sign(struct fabric_card *k, const struct circuit_line *l, double x, double y)
{
	bool bad = l->mark == CIRCUIT_MISSING || l->mark == CIRCUIT_DELETED;

	svg_begin_group(k->c, bad ? "halo bad" : l->mark == CIRCUIT_UNEXPECTED ? "halo warn"
								    : "halo ink", NULL);
	svg_put(k->c, x, y + 4, 'm', SVG_HEAD, 0, mark_sign(l->mark));
	svg_end_group(k->c);
}

static void put_lines(struct fabric_card *k)
{
	/* Where all are new, that needs no sign. */
	bool some_new = k->lines.n && k->lines.v[0].mark == CIRCUIT_KEPT;
	int signs = 0;

	for (size_t i = 0; i < k->lines.n; i++) {
		const struct circuit_line *l = &k->lines.v[i];
		double x, y;

		put_line(k, l, &x, &y);
		if ((l->mark > CIRCUIT_NEW || (l->mark == CIRCUIT_NEW && some_new)) &&
		    signs < SIGNS) {
			put_sign(k, l, x, y);
			signs++;
		}
	}
	/* Signs without room are no names. */
	k->c->dropped = 0;
	if (k->left_out) {
		svg_putf(k->c, k->x + 16, k->y + CARD_HIGH - 12, 'b', SVG_SMALL,
			 "and %d more circuits",
			 k->left_out);
	}
}

/* ---- rings ---- */

/* Part of a ring between two radii, from one angle to another, clockwise. */
static void put_band(struct fabric_card *k, int job, double from, double to, double inner,
		     double outer)
{
	double mid = (from + to) / 2;
	char d[400];

	/* Each arc in two, so that a whole circle has ends that differ. */
	snprintf(d, sizeof(d), "M%.1f %.1fA%.1f %.1f 0 0 1 %.1f %.1fA%.1f %.1f 0 0 1 %.1f %.1f"
		 "L%.1f %.1fA%.1f %.1f 0 0 0 %.1f %.1fA%.1f %.1f 0 0 0 %.1f %.1fz",
		 at_x(k, from, outer), at_y(k, from, outer), outer, outer, at_x(k, mid, outer),
		 at_y(k, mid, outer), outer, outer, at_x(k, to, outer), at_y(k, to, outer),
		 at_x(k, to, inner), at_y(k, to, inner), inner, inner, at_x(k, mid, inner),
		 at_y(k, mid, inner), inner, inner, at_x(k, from, inner), at_y(k, from, inner));
	svg_fill_path(k->c, job, d);
}

static void put_programs(struct fabric_card *k)
{
	json_t *programs = list(k->device, "programs"), *program;
	int channels = (int)json_integer_value(list(k->device, "channels"));
	int jobs = (int)json_array_size(list(k->root, "jobs"));
	double step = 2 * acos(-1) / (k->n_hosts ? k->n_hosts : 1), wide = 52.0;
	size_t i;

	svg_circle(k->c, "line edge", at_x(k, 0, 0), at_y(k, 0, 0), RADIUS);
	json_array_foreach(programs, i, program) {
		int job = (int)json_integer_value(list(program, "job"));
		int first = (int)json_integer_value(list(program, "first_node"));
		int nodes = (int)json_integer_value(list(program, "nodes"));
		int from = (int)json_integer_value(list(program, "first_channel"));
		int n = (int)json_integer_value(list(program, "channels"));
		double outer = RADIUS - 12;

		if (job < 0 || job >= jobs || channels < 1 || nodes < 1) {
			continue;
		}
		k->ring_jobs[job] = true;
		put_band(k, job, step * first, step * (first + (nodes < k->n_hosts ? nodes - 1
								: nodes)),
			 outer - wide * (from + n) / channels, outer - wide * from / channels - 1);
	}
	svg_putf(k->c, at_x(k, 0, 0), at_y(k, 0, 0) + 4, 'm', SVG_SMALL, "%d channels", channels);
}

/* ---- cards ---- */

static int count_marks(const struct marked_device *d, enum circuit_mark mark)
{
	int n = 0;

	for (int i = 0; d && i < 3; i++) {
		n += d->circuits[i].mark == mark ? (int)d->circuits[i].n : 0;
	}
	return n;
}

static bool is_marked(const struct marked_device *d)
{
	int n = 0;

	for (int m = CIRCUIT_NEW; m < CIRCUIT_MARKS; m++) {
		n += count_marks(d, (enum circuit_mark)m);
	}
	return d && (n > 0 || d->problem[0]);
}

/* Of places, hosts and lines; FNV-1a. */
static uint64_t card_hash(const struct fabric_card *k)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < (size_t)k->n_hosts + 5 * k->lines.n; i++) {
		const struct circuit_line *l = &k->lines.v[(i - (size_t)k->n_hosts) / 5];
		size_t field = (i - (size_t)k->n_hosts) % 5;
		int value = i < (size_t)k->n_hosts ? k->hosts[i] : field == 0 ? l->a
			    : field == 1 ? l->b : field == 2 ? l->job
			    : field == 3 ? (int)l->mark : l->count;

		hash = (hash ^ (uint32_t)value) * UINT64_C(0x100000001b3);
	}
	return hash + (uint64_t)k->n_places;
}

static void put_heading(struct fabric_card *k, bool ring)
{
	static const char *const words[] = { "", "new", "to delete", "pending", "missing",
					     "unexpected" };
	char name[CONF_MAX_NAME + 32], more[32] = "";
	int n = 0;
	struct buf b = { 0 };

	if (k->alike) {
		snprintf(more, sizeof(more), " and %d alike", k->alike);
	}
	snprintf(name, sizeof(name), "%.63s%s", text(list(k->device, "name")), more);
	for (size_t i = 0; i < k->lines.n; i++) {
		n += k->lines.v[i].job != NO_JOB ? k->lines.v[i].count : 0;
	}
	if (ring) {
		buf_printf(&b, "%d nodes", k->n_hosts);
	} else {
		buf_printf(&b, "%d circuit%s of jobs", n, n == 1 ? "" : "s");
	}
	for (int m = CIRCUIT_NEW; m < CIRCUIT_MARKS; m++) {
		n = count_marks(k->marks, (enum circuit_mark)m);
		if (n) {
			buf_printf(&b, ", %d %s", n, words[m]);
		}
	}
	svg_put(k->c, k->x + 16, k->y + 26, 'b', SVG_HEAD, CARD - 100, name);
	svg_put(k->c, k->x + CARD - 16, k->y + 26, 'e', SVG_SOFT, 0, text(list(k->device, "kind")));
	svg_put(k->c, k->x + 16, k->y + 46, 'b', SVG_SOFT, CARD - 32, buf_cstr(&b));
	if (k->marks && k->marks->problem[0]) {
		svg_begin_group(k->c, "bad", NULL);
		svg_put(k->c, k->x + 16, k->y + 64, 'b', SVG_TEXT, CARD - 32, k->marks->problem);
		svg_end_group(k->c);
	}
	buf_fini(&b);
}

static void put_card(struct fabric_card *k)
{
	bool ring = strcmp(text(list(k->device, "kind")), "ring") == 0;

	find_places(k);
	k->lines.n = 0;
	find_lines(k);
	svg_card(k->c, k->x, k->y, CARD, CARD_HIGH);
	put_heading(k, ring);
	if (ring) {
		put_programs(k);
	}
	put_lines(k);
	put_places(k);
}

static const struct marked_device *marks_of(const struct fabric_picture *p, const char *name)
{
	for (size_t i = 0; i < p->n_devices; i++) {
		if (strcmp(p->devices[i].name, name) == 0) {
			return &p->devices[i];
		}
	}
	return NULL;
}

/* Where there are more devices than cards: what each card would show. Rings and what has a problem
 * are like no other. */
static void compare_cards(struct fabric_card *k)
{
	json_t *devices = list(k->root, "devices");
	size_t i;

	json_array_foreach(devices, i, k->device) {
		k->marks = marks_of(k->p, text(list(k->device, "name")));
		k->number = (int)i;
		k->looks[i] = i + 1;
		if (json_array_size(devices) > MOST_CARDS && !list(k->device, "members") &&
		    !(k->marks && k->marks->problem[0])) {
			find_places(k);
			k->lines.n = 0;
			find_lines(k);
			k->looks[i] = card_hash(k);
		}
	}
}

/* Cards of the devices with marks, or of the others; *shown: devices. */
static void put_cards(struct fabric_card *k, bool marked, int *cards, int *shown)
{
	json_t *devices = list(k->root, "devices");
	size_t i;

	json_array_foreach(devices, i, k->device) {
		k->marks = marks_of(k->p, text(list(k->device, "name")));
		if (is_marked(k->marks) != marked || *cards >= MOST_CARDS || !k->looks[i]) {
			continue;
		}
		k->alike = 0;
		for (size_t j = i + 1; j < json_array_size(devices); j++) {
			k->alike += k->looks[j] == k->looks[i];
			k->looks[j] = k->looks[j] == k->looks[i] ? 0 : k->looks[j];
		}
		*shown += 1 + k->alike;
		k->number = (int)i;
		k->x = SVG_MARGIN + (*cards % ACROSS) * (CARD + 12);
		k->y = svg_top() + (*cards / ACROSS) * (CARD_HIGH + 12);
		put_card(k);
		++*cards;
	}
}

/* ---- legend ---- */

static double put_jobs(struct fabric_card *k, double y, double width)
{
	json_t *jobs = list(k->root, "jobs");
	struct svg_key keys[MOST_JOBS];
	char styles[MOST_JOBS][24];
	int n = 0, more = 0;

	for (size_t i = 0; i < json_array_size(jobs); i++) {
		const char *name = text(list(json_array_get(jobs, i), "name"));

		if (!k->jobs[i] && !k->ring_jobs[i]) {
			continue;
		}
		if (n == MOST_JOBS) {
			more++;
			continue;
		}
		snprintf(styles[n], sizeof(styles[n]), "thick %s %s", svg_colour_class((int64_t)i),
			 svg_dash_class((int64_t)i));
		keys[n] = (struct svg_key){ k->jobs[i] ? SVG_KEY_LINE : SVG_KEY_FILL, styles[n],
					    (int64_t)i, NULL, name };
		n++;
	}
	y = svg_legend(k->c, SVG_MARGIN, y, width, keys, n);
	if (more) {
		svg_putf(k->c, SVG_MARGIN, y + 12, 'b', SVG_SOFT, "and %d more jobs", more);
		y += 22;
	}
	return y;
}

static double put_marks(struct fabric_card *k, double y, double width)
{
	static const char *const names[] = { "as intended", "new", "goes away", "under way",
					     "missing", "unexpected" };
	struct svg_key keys[CIRCUIT_MARKS + 2];
	char hosts[48];
	int n = 0;

	if (k->seen_marks[CIRCUIT_NEW] && k->seen_marks[CIRCUIT_KEPT]) {
		keys[n++] = (struct svg_key){ SVG_KEY_SIGN, "ink", -1, "+", names[CIRCUIT_NEW] };
	}
	for (int m = CIRCUIT_DELETED; m < CIRCUIT_MARKS; m++) {
		if (k->seen_marks[m]) {
			keys[n++] = (struct svg_key){ SVG_KEY_LINE,
						     mark_style((enum circuit_mark)m), -1,
						      NULL, names[m] };
		}
	}
	if (k->p->only_marked && k->seen_marks[CIRCUIT_KEPT]) {
		keys[n++] = (struct svg_key){ SVG_KEY_LINE, "soft weaker", -1, NULL,
					      names[CIRCUIT_KEPT] };
	}
	if (k->max_each > 1) {
		snprintf(hosts, sizeof(hosts), "up to %d hosts at one place", k->max_each);
		keys[n++] = (struct svg_key){ SVG_KEY_DOT, "soft", -1, NULL, hosts };
	}
	return svg_legend(k->c, SVG_MARGIN, y, width, keys, n);
}

static int put_all(struct fabric_card *k, struct err *err)
{
	int cards = 0, shown = 0, devices = (int)json_array_size(list(k->root, "devices"));
	double y, width;

	if (json_is_true(list(k->root, "too_large"))) {
		return err_set(err, WEFT_ELIMIT, "the fabric has too many ports to be drawn");
	}
	if (read_hosts(k, err)) {
		return err->code;
	}
	compare_cards(k);
	put_cards(k, true, &cards, &shown);
	put_cards(k, false, &cards, &shown);
	y = svg_top() + (cards + ACROSS - 1) / ACROSS * (CARD_HIGH + 12) + 4;
	width = (cards < ACROSS ? cards > 1 ? cards : 2 : ACROSS) * (CARD + 12);
	y = put_jobs(k, y, width);
	y = put_marks(k, y, width);
	if (devices > shown) {
		svg_putf(k->c, SVG_MARGIN, y + 12, 'b', SVG_SOFT, "and %d more devices",
			 devices - shown);
		y += 22;
	}
	svg_tell_dropped(k->c, SVG_MARGIN, y + 12, "names");
	return 0;
}

int fabric_draw(const struct fabric_picture *p, struct buf *svg, struct err *err)
{
	json_t *root = json_loadb(buf_cstr(p->json), p->json->len, 0, NULL);
	struct svg_canvas c = { 0 };
	struct fabric_card k = { .c = &c, .p = p, .root = root };
	struct arrays a = { 0 };
	json_t *device;
	char title[200];
	size_t i;
	int r;

	if (!json_is_object(root)) {
		json_decref(root);
		return err_set(err, WEFT_EINVAL, "the picture of the fabric is not JSON");
	}
	json_array_foreach(list(root, "devices"), i, device) {
		int in = (int)json_array_size(list(device, "in"));
		int out = (int)json_array_size(list(device, "out"));

		k.n_ports = in > k.n_ports ? in : k.n_ports;
		k.n_ports = out > k.n_ports ? out : k.n_ports;
	}
	arrays_add(&a, k.place, json_array_size(list(root, "hosts")));
	arrays_add(&a, k.hosts, json_array_size(list(root, "hosts")));
	arrays_add(&a, k.host_of_port, json_array_size(list(root, "ports")));
	arrays_add(&a, k.jobs, json_array_size(list(root, "jobs")));
	arrays_add(&a, k.looks, json_array_size(list(root, "devices")));
	arrays_add(&a, k.ring_jobs, json_array_size(list(root, "jobs")));
	arrays_add(&a, k.trunk_places, json_array_size(list(root, "devices")));
	for (i = 0; i < 2; i++) {
		arrays_add(&a, k.trunk_to[i], k.n_ports + 1);
	}
	arrays_add(&a, k.seen_marks, CIRCUIT_MARKS);
	for (i = 0; i < 3; i++) {
		arrays_add(&a, k.marked[i], k.n_ports + 1);
	}
	snprintf(title, sizeof(title), "%s %s", p->title, text(list(root, "fabric")));
	svg_open(&c, title, p->about);
	r = put_all(&k, err);
	svg_close(&c, svg);
	vec_fini(&k.lines);
	arrays_fini(&a);
	json_decref(root);
	return r;
}

/* ---- from weftd ---- */

static int on_piece(const ProtobufCMessage *msg, void *arg)
{
	const Weft__V1__GetPictureResponse *piece = (const Weft__V1__GetPictureResponse *)msg;
	struct buf *b = arg;

	buf_add(b, piece->data.data, piece->data.len);
	return 0;
}

int fabric_draw_current(struct cli *c, struct fabric_picture *p, struct err *err)
{
	Weft__V1__GetPictureRequest req = WEFT__V1__GET_PICTURE_REQUEST__INIT;
	struct rpc_client *client = NULL;
	struct buf json = { 0 }, svg = { 0 };
	int r;

	if (!cli_has(c, "svg")) {
		return 0;
	}
	(void)((r = cli_connect(c, &client, err)) ||
	       (r = rpc_client_call(client, CLI_METHOD("GetPicture"), &req.base,
				    &weft__v1__get_picture_response__descriptor, CLI_CALL_MS,
					    on_piece,
				    &json, NULL, err)));
	if (!r) {
		p->json = &json;
		r = fabric_draw(p, &svg, err);
	}
	if (!r) {
		r = cli_write_svg(cli_opt(c, "svg"), &svg, err);
	}
	rpc_client_close(client);
	buf_fini(&json);
	buf_fini(&svg);
	return r;
}
