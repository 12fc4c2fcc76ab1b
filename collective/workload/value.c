/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Meshes, what runs on them, and the order of a step reduced to two tables.
 *
 * A list that runs k times gives k times the pairs of its entries that follow each other, and k - 1
 * times its last and its first unit; the whole step is such a list, round once more, as the next
 * step follows it.
 */
#include <stdlib.h>
#include <string.h>

#include "collective/workload/private.h"
#include "lib/base/alloc.h"
#include "lib/base/buf.h"

void workload_new(struct workload **out)
{
	*out = x_new(1, sizeof(**out));
}

void workload_free(struct workload *w)
{
	if (!w) {
		return;
	}
	for (size_t i = 0; i < w->axes.n; i++) {
		free(w->axes.v[i].name);
	}
	for (size_t i = 0; i < w->ops.n; i++) {
		free(w->ops.v[i].name);
	}
	vec_fini(&w->axes);
	vec_fini(&w->ops);
	vec_fini(&w->units);
	free(w->next);
	topo_free(w->server);
	free(w->server_expr);
	free(w->port_at);
	free(w);
}

int workload_find_axis(const struct workload *w, const char *name)
{
	for (size_t i = 0; i < w->axes.n; i++) {
		if (!strcmp(w->axes.v[i].name, name)) {
			return (int)i;
		}
	}
	return -1;
}

int workload_find_op(const struct workload *w, const char *name)
{
	for (size_t i = 0; i < w->ops.n; i++) {
		if (!strcmp(w->ops.v[i].name, name)) {
			return (int)i;
		}
	}
	return -1;
}

/* FNV-1a of bytes. */
static uint64_t mix(uint64_t hash, const void *data, size_t len)
{
	const unsigned char *p = data;

	while (len-- > 0) {
		hash = (hash ^ *p++) * UINT64_C(0x100000001b3);
	}
	return hash;
}

static uint64_t mix_number(uint64_t hash, int64_t n)
{
	return mix(hash, &n, sizeof(n));
}

uint64_t workload_hash(const struct workload *w)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < w->axes.n; i++) {
		hash = mix_number(hash, w->axes.v[i].size);
	}
	for (size_t i = 0; i < w->ops.n; i++) {
		const struct workload_op *op = &w->ops.v[i];

		hash = mix(hash, op->name, strlen(op->name) + 1);
		hash = mix_number(mix_number(hash, op->kind), op->shift);
		hash = mix_number(mix_number(hash, op->axes), op->bytes);
	}
	for (size_t u = 0; u < w->units.n; u++) {
		hash = mix_number(mix_number(hash, w->units.v[u].ops), w->units.v[u].calls);
	}
	return mix(hash, w->next, w->units.n * w->units.n * sizeof(*w->next));
}

int workload_ranks(const struct workload *w, uint32_t axes)
{
	int n = 1;

	for (size_t i = 0; i < w->axes.n; i++) {
		n *= axes >> i & 1 ? w->axes.v[i].size : 1;
	}
	return n;
}

int workload_add_axis(struct workload *w, const char *name, int size, struct err *err)
{
	if (w->axes.n == WORKLOAD_MAX_AXES) {
		return err_set(err, WEFT_ELIMIT, "more than %d axes", WORKLOAD_MAX_AXES);
	}
	if (size < 1) {
		return err_set(err, WEFT_EINVAL, "axis %s: %d ranks", name, size);
	}
	if (size > WORKLOAD_MAX_RANKS / workload_ranks(w, WORKLOAD_ALL_AXES)) {
		return err_set(err, WEFT_ELIMIT, "axis %s: more than %d ranks in all", name,
			       WORKLOAD_MAX_RANKS);
	}
	if (workload_find_axis(w, name) >= 0) {
		return err_set(err, WEFT_EINVAL, "axis %s: twice", name);
	}
	vec_push(&w->axes, (struct workload_axis){ x_dup(name), size, 1 });
	return 0;
}

/* What no table of collectives knows of an op. */
static int check_sends(const struct workload *w, const struct workload_op *op, struct err *err)
{
	int n = workload_ranks(w, op->axes), far = abs(op->shift);

	if (op->axes & (op->axes - 1)) {
		return err_set(err, WEFT_EINVAL, "%s: sends go along one axis", op->name);
	}
	if (ranks_inside(w, op->axes) > 1) {
		return err_set(err, WEFT_EUNSUPPORTED, "%s: sends along an axis within servers",
			       op->name);
	}
	if (far >= n) {
		return err_set(err, WEFT_EINVAL, "%s: a shift of %d along %d ranks", op->name,
			       op->shift, n);
	}
	return 0;
}

int workload_add_op(struct workload *w, const struct workload_op *op, struct err *err)
{
	struct workload_op own = *op;
	int rc = 0;

	if (w->ops.n == WORKLOAD_MAX_OPS) {
		return err_set(err, WEFT_ELIMIT, "more than %d collectives", WORKLOAD_MAX_OPS);
	}
	if (workload_find_op(w, op->name) >= 0) {
		return err_set(err, WEFT_EINVAL, "%s: twice", op->name);
	}
	if (!op->axes || op->axes >> w->axes.n) {
		return err_set(err, WEFT_EINVAL, "%s: over no axis of the mesh", op->name);
	}
	if (op->bytes < 1) {
		return err_set(err, WEFT_EINVAL, "%s: no bytes", op->name);
	}
	if (op->min_bytes < 0 || op->min_bytes > op->bytes) {
		return err_set(err, WEFT_EINVAL, "%s: sizes from a larger one to a smaller",
			       op->name);
	}
	own.min_bytes = op->min_bytes ? op->min_bytes : op->bytes;
	if (op->shift) {
		rc = check_sends(w, op, err);
	} else if (!((GATHERS | COLL_KIND_BIT(COLL_ALLTOALL)) >> op->kind & 1)) {
		rc = err_set(err, WEFT_EUNSUPPORTED, "%s: a step has no %s", op->name,
			     coll_kind_name(op->kind));
	}
	if (!rc) {
		own.name = x_dup(op->name);
		vec_push(&w->ops, own);
	}
	return rc;
}

/* The ranks that differ from r along these axes, by whole servers or all of them. */
static int members(const struct workload *w, uint32_t axes, int r, bool by_servers, int *out)
{
	int first = r, at = 0, n = 1, stride = 1;

	for (size_t i = w->axes.n; i-- > 0; stride *= w->axes.v[i].size) {
		int inside = by_servers ? w->axes.v[i].inside : 1;
		int size = w->axes.v[i].size / inside;

		if (axes >> i & 1) {
			int digit = r / (stride * inside) % size;

			first -= digit * stride * inside;
			at += digit * n;
			n *= size;
		}
	}
	for (int k = 0; k < n; k++) {
		int left = k;

		out[k] = first;
		stride = 1;
		for (size_t i = w->axes.n; i-- > 0; stride *= w->axes.v[i].size) {
			int inside = by_servers ? w->axes.v[i].inside : 1;
			int size = w->axes.v[i].size / inside;

			if (axes >> i & 1) {
				out[k] += left % size * stride * inside;
				left /= size;
			}
		}
	}
	return at;
}

int workload_group(const struct workload *w, uint32_t axes, int r, int *out)
{
	return members(w, axes, r, false, out);
}

int workload_rail(const struct workload *w, uint32_t axes, int r, int *out)
{
	return members(w, axes, r, true, out);
}

void workload_share_name(const struct workload *w, const struct workload_share *s, struct buf *out)
{
	const char *between = "";

	for (size_t i = 0; i < w->axes.n; i++) {
		if (s->axes >> i & 1) {
			buf_printf(out, "%s%s", between, w->axes.v[i].name);
			between = "*";
		}
	}
	if (s->shift) {
		buf_printf(out, "%+d", s->shift);
	}
}

int workload_use_number(const struct workload_plan *plan, size_t use)
{
	int number = 1, n = 0;

	for (size_t i = 0; i < plan->uses.n; i++) {
		n += plan->uses.v[i].op == plan->uses.v[use].op;
		number += i < use && plan->uses.v[i].op == plan->uses.v[use].op;
	}
	return n > 1 ? number : 0;
}

/* ---- order ---- */

void workload_step_fini(struct workload_step *s)
{
	for (size_t i = 0; i < s->list.n; i++) {
		workload_step_fini(&s->list.v[i]);
	}
	vec_fini(&s->list);
}

/* Ops of one unit run at once, so no two of them may want the same axis; sends opposite ways do
 * not. */
static int check_unit(const struct workload *w, uint32_t ops, struct err *err)
{
	for (size_t i = 0; i < w->ops.n; i++) {
		for (size_t k = 0; k < i; k++) {
			const struct workload_op *a = &w->ops.v[k], *b = &w->ops.v[i];

			if ((ops >> i & ops >> k & 1) && (a->axes & b->axes) &&
			    !(a->shift && b->shift && a->shift == -b->shift)) {
				return err_set(err, WEFT_EINVAL,
					       "%s and %s share an axis and cannot run together",
					       a->name, b->name);
			}
		}
	}
	return 0;
}

/* All units of the tree, each once. */
static int list_units(struct workload *w, const struct workload_step *s, struct err *err)
{
	int rc;

	if (s->ops) {
		for (size_t i = 0; i < w->units.n; i++) {
			if (w->units.v[i].ops == s->ops) {
				return 0;
			}
		}
		if (w->units.n == WORKLOAD_MAX_OPS) {
			return err_set(err, WEFT_ELIMIT, "more than %d units", WORKLOAD_MAX_OPS);
		}
		vec_push(&w->units, (struct workload_unit){ .ops = s->ops });
		return check_unit(w, s->ops, err);
	}
	if (s->list.n == 0 || s->times < 1) {
		return err_set(err, WEFT_EINVAL, s->list.n ? "it runs no times" : "nothing runs");
	}
	for (size_t i = 0; i < s->list.n; i++) {
		rc = list_units(w, &s->list.v[i], err);
		if (rc) {
			return rc;
		}
	}
	return 0;
}

/* The first and the last unit of a part of the step. */
struct step_ends {
	int first, last;
};

/* Counts a part that runs `times`. *calls: of all units so far, for the limit. */
static int count(struct workload *w, const struct workload_step *s, int64_t times, int64_t *calls,
		 struct step_ends *out, struct err *err)
{
	size_t n = w->units.n;
	struct step_ends e;
	int rc;

	if (s->ops) {
		for (out->first = 0; w->units.v[out->first].ops != s->ops; out->first++) {
		}
		out->last = out->first;
		w->units.v[out->first].calls += times;
		*calls += times;
		return *calls <= WORKLOAD_MAX_CALLS ? 0 : err_set(err, WEFT_ELIMIT,
								   "more than 2^40 calls");
	}
	if (s->times > WORKLOAD_MAX_CALLS / times) {
		return err_set(err, WEFT_ELIMIT, "more than 2^40 calls");
	}
	for (size_t i = 0; i < s->list.n; i++) {
		rc = count(w, &s->list.v[i], times * s->times, calls, &e, err);
		if (rc) {
			return rc;
		}
		if (i > 0) {
			w->next[(size_t)out->last * n + (size_t)e.first] += times * s->times;
		} else {
			out->first = e.first;
		}
		out->last = e.last;
	}
	w->next[(size_t)out->last * n + (size_t)out->first] += times * (s->times - 1);
	return 0;
}

int workload_count(struct workload *w, const struct workload_step *s, struct err *err)
{
	int64_t calls = 0;
	struct step_ends whole;
	int rc;

	w->units.n = 0;
	rc = list_units(w, s, err);
	if (rc) {
		return rc;
	}
	free(w->next);
	w->next = x_new(w->units.n * w->units.n, sizeof(*w->next));
	rc = count(w, s, 1, &calls, &whole, err);
	if (!rc) {
		w->next[(size_t)whole.last * w->units.n + (size_t)whole.first]++;
	}
	return rc;
}
