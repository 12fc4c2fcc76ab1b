/* SPDX-License-Identifier: Apache-2.0 */
/* Families of digraphs of a size, with their diameters in closed form. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "collective/finder/private.h"

struct finder_list {
	int n, degree;
	struct finder_families *out;
};

static void add(const struct finder_list *l, int ports, int diameter, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* Unless it takes more ports than there are. */
static void add(const struct finder_list *l, int ports, int diameter, const char *fmt, ...)
{
	struct finder_family f = { .ports = ports, .diameter = diameter };
	va_list ap;
	int len;

	va_start(ap, fmt);
	len = vsnprintf(f.expr, sizeof(f.expr), fmt, ap);
	va_end(ap);
	if (ports > l->degree || len >= (int)sizeof(f.expr)) {
		return;
	}
	vec_push(&l->out->list, f);
}

/* All tori whose sides, ascending from `least`, multiply to `left`; text holds the sides so
 * far, which take so many ports and add so much to the diameter. */
static void add_tori(const struct finder_list *l, const char *text, int least, int left,
		     int ports, int diameter)
{
	char more[FINDER_FAMILY_EXPR];

	if (left == 1) {
		/* One side is a ring. */
		if (strchr(text, ',')) {
			add(l, ports, diameter, "Torus(%s)", text);
		}
		return;
	}
	for (int side = least; side <= left; side++) {
		int take = side == 2 ? 1 : 2, len;

		/* Of two sides at least the first is no more than the root. */
		if (side < left && side > left / side) {
			side = left;
			take = side == 2 ? 1 : 2;
		}
		if (left % side || ports + take > l->degree) {
			continue;
		}
		len = snprintf(more, sizeof(more), "%s%s%d", text, *text ? "," : "", side);
		if (len < (int)sizeof(more)) {
			add_tori(l, more, side, left / side, ports + take, diameter + side / 2);
		}
	}
}

/* A power of a prime. */
static bool is_field(int q)
{
	int p = 2;

	while (q % p) {
		p++;
	}
	while (q % p == 0) {
		q /= p;
	}
	return q == 1;
}

int finder_slim_fly(int n, int *ports)
{
	int q = 4;

	while (2 * q * q < n) {
		q++;
	}
	*ports = q % 4 == 3 ? (3 * q + 1) / 2 : 3 * q / 2;
	return 2 * q * q == n && q <= TOPO_MAX_FIELD && is_field(q) ? q : 0;
}

int finder_polarity(int n)
{
	int q = 2;

	while (q * q + q + 1 < n) {
		q++;
	}
	return q * q + q + 1 == n && q <= TOPO_MAX_FIELD && is_field(q) ? q : 0;
}

void finder_list_families(int n, int degree, bool both, struct finder_families *out)
{
	struct finder_list l = { n, degree, out };
	int k = 0, half = n / 2;

	while ((1 << k) < n) {
		k++;
	}
	add(&l, n - 1, 1, "K(%d)", n);
	if (n > 2) {
		add(&l, n - half, half > 1 ? 2 : 1, "K(%d,%d)", half, n - half);
	}
	if (n == 1 << k) {
		add(&l, k, k, "Hypercube(%d)", k);
	}
	if (n > 2) {
		add(&l, 2, n / 2, "Ring(%d)", n);
	}
	if ((k = finder_slim_fly(n, &half))) {
		add(&l, half, 2, "SlimFly(%d)", k);
	}
	if ((k = finder_polarity(n))) {
		add(&l, k + 1, 2, "Polarity(%d)", k);
	}
	if (!both) {
		add(&l, degree, n - 1, "UniRing(%d,%d)", degree, n);
	}
	add_tori(&l, "", 2, n, 0, 0);
}
