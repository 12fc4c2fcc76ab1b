/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long things take to come back: the last times are kept, their median for
 * what is expected, which one slow start does not move, and the longest for how
 * long to wait.
 */
#include <stdlib.h>
#include <string.h>

#include "controller/apply/private.h"
#include "lib/base/alloc.h"
#include "lib/base/log.h"

struct timings {
	struct store_timing *v;		/* by name */
	int n;
	bool *unsaved;			/* [n] */
};

static int by_name(const void *a, const void *b)
{
	const struct store_timing *x = a, *y = b;

	return strcmp(x->name, y->name);
}

static struct store_timing *find(const struct timings *t, const char *name)
{
	const struct store_timing key = { .name = (char *)name };

	return t->n ? bsearch(&key, t->v, (size_t)t->n, sizeof(key), by_name) : NULL;
}

int timings_load(struct apply *a, struct err *err)
{
	int rc = 0;

	for (int kind = 0; kind < TIMING_KINDS && rc == 0; kind++) {
		struct timings *t = x_new(1, sizeof(*t));

		a->timings[kind] = t;
		rc = store_timings(a->store, (enum store_timing_kind)kind, &t->v, &t->n, err);
		if (rc == 0) {
			t->unsaved = x_new((size_t)t->n + 1, sizeof(*t->unsaved));
		}
	}
	return rc;
}

void timings_free(struct apply *a)
{
	for (int kind = 0; kind < TIMING_KINDS; kind++) {
		struct timings *t = a->timings[kind];

		if (t) {
			store_timings_free(t->v, t->n);
			free(t->unsaved);
			free(t);
		}
	}
}

/* A new name, in its place. */
static struct store_timing *insert(struct timings *t, const char *name)
{
	size_t n = (size_t)t->n;
	struct store_timing *v = x_grow(t->v, n + 1, sizeof(*v));
	bool *unsaved = x_grow(t->unsaved, n + 2, sizeof(*unsaved));
	int at = t->n;

	t->v = v;
	t->unsaved = unsaved;
	while (at > 0 && strcmp(v[at - 1].name, name) > 0) {
		v[at] = v[at - 1];
		unsaved[at] = unsaved[at - 1];
		at--;
	}
	v[at] = (struct store_timing){ .name = x_dup(name) };
	t->n++;
	return &v[at];
}

void apply_learn(struct apply *a, enum store_timing_kind kind, const char *name, int64_t ns)
{
	struct timings *t = a->timings[kind];
	struct store_timing *one = find(t, name);

	one = one ? one : insert(t, name);
	if (one->n == STORE_TIMINGS_MAX) {
		memmove(one->ns, one->ns + 1, (STORE_TIMINGS_MAX - 1) * sizeof(one->ns[0]));
		one->n--;
	}
	one->ns[one->n++] = ns;
	t->unsaved[one - t->v] = true;
}

static int by_size(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

bool apply_learned(const struct apply *a, enum store_timing_kind kind,
		   const char *name, struct apply_timing *out)
{
	const struct store_timing *one = find(a->timings[kind], name);
	int64_t v[STORE_TIMINGS_MAX];

	*out = (struct apply_timing){ 0 };
	if (!one || one->n == 0) {
		return false;
	}
	memcpy(v, one->ns, sizeof(v));
	qsort(v, (size_t)one->n, sizeof(v[0]), by_size);
	*out = (struct apply_timing){ .n = one->n, .median_ns = v[one->n / 2],
				      .max_ns = v[one->n - 1] };
	return true;
}

void timings_save(struct apply *a)
{
	struct err err = { 0 };

	for (int kind = 0; kind < TIMING_KINDS; kind++) {
		struct timings *t = a->timings[kind];

		for (int i = 0; i < t->n; i++) {
			int last = i;

			if (!t->unsaved[i]) {
				continue;
			}
			while (last < t->n && t->unsaved[last]) {
				last++;
			}
			if (store_timings_put(a->store, (enum store_timing_kind)kind, &t->v[i],
					      last - i, &err)) {
				log_error("apply", "times are not saved: %s", err.msg);
				return;
			}
			memset(&t->unsaved[i], 0, (size_t)(last - i));
			i = last;
		}
	}
}
