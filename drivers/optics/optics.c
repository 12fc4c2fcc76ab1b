/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values that describe light: cross-connects, settings of resonators and their
 * faults, in order and as text. Contracts are in optics.h.
 */
#include "drivers/optics/optics.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"

/* Step, node, dir, fibre and channel fill 64 bits exactly, so the order of
 * tunes is the order of these numbers. */
static uint64_t tune_key(const struct ring_setting *t)
{
	return (uint64_t)t->step << 48 | (uint64_t)t->node << 32 |
	       (uint64_t)t->dir << 24 | (uint64_t)t->fibre << 16 | t->channel;
}

int ring_setting_cmp(const struct ring_setting *a, const struct ring_setting *b)
{
	uint64_t ka = tune_key(a), kb = tune_key(b);

	return (ka > kb) - (ka < kb);
}

static bool is_sorted(const struct ring_settings *p)
{
	for (size_t i = 1; i < p->n; i++) {
		if (tune_key(&p->v[i - 1]) > tune_key(&p->v[i])) {
			return false;
		}
	}
	return true;
}

/* One stable counting pass over byte `shift / 8` of the keys. False, with
 * dst untouched, when all keys agree there. */
static bool radix_pass(const struct ring_setting *src, struct ring_setting *dst,
		       size_t n, int shift)
{
	size_t at[256] = { 0 }, sum = 0;

	for (size_t i = 0; i < n; i++) {
		at[tune_key(&src[i]) >> shift & 0xff]++;
	}
	if (at[tune_key(&src[0]) >> shift & 0xff] == n) {
		return false;
	}
	for (int b = 0; b < 256; b++) {
		size_t count = at[b];

		at[b] = sum;
		sum += count;
	}
	for (size_t i = 0; i < n; i++) {
		dst[at[tune_key(&src[i]) >> shift & 0xff]++] = src[i];
	}
	return true;
}

/* Programs reach millions of settings; a radix sort keeps that linear. */
static void sort_tunes(struct ring_settings *p)
{
	struct ring_setting *spare, *swap;

	if (is_sorted(p)) {
		return;
	}
	spare = x_alloc(p->n, sizeof(*spare));
	for (int shift = 0; shift < 64; shift += 8) {
		if (radix_pass(p->v, spare, p->n, shift)) {
			swap = p->v;
			p->v = spare;
			spare = swap;
		}
	}
	free(spare);
}

static int check_tune(const struct ring_settings *p, const struct ring_setting *t, struct err *err)
{
	if (t->step >= p->steps) {
		return err_set(err, WEFT_EINVAL,
			       "step %u node %u channel %u: the program has "
			       "%u steps", t->step, t->node, t->channel,
			       p->steps);
	}
	if (t->dir > OPTICS_CCW || t->mode < RESONATOR_ADD || t->mode > RESONATOR_ADD_DROP) {
		return err_set(err, WEFT_EINVAL,
			       "step %u node %u channel %u: direction %u and "
			       "mode %u mean nothing", t->step, t->node,
			       t->channel, t->dir, t->mode);
	}
	return 0;
}

int ring_settings_normalise(struct ring_settings *p, struct err *err)
{
	size_t kept = 0;

	for (size_t i = 0; i < p->n; i++) {
		int rc = check_tune(p, &p->v[i], err);

		if (rc) {
			return rc;
		}
	}
	sort_tunes(p);
	for (size_t i = 0; i < p->n; i++) {
		struct ring_setting *t = &p->v[i];
		struct ring_setting *last = kept ? &p->v[kept - 1] : NULL;

		if (!last || ring_setting_cmp(last, t) != 0) {
			p->v[kept++] = *t;
		} else if (last->mode & t->mode) {
			return err_set(err, WEFT_EINVAL,
				       "step %u node %u channel %u is %s twice",
				       t->step, t->node, t->channel,
				       t->mode & last->mode & RESONATOR_ADD ?
				       "added" : "dropped");
		} else {
			last->mode |= t->mode;
		}
	}
	p->n = kept;
	return 0;
}

void ring_settings_fini(struct ring_settings *p)
{
	free(p->v);
	memset(p, 0, sizeof(*p));
}

int optics_xc_cmp(const void *a, const void *b)
{
	const struct optics_xc *x = a, *y = b;

	if (x->in != y->in) {
		return x->in < y->in ? -1 : 1;
	}
	return (x->out > y->out) - (x->out < y->out);
}

int ring_fault_cmp(const void *a, const void *b)
{
	const struct ring_fault *x = a, *y = b;

	if (x->part != y->part) {
		return x->part - y->part;
	}
	if (x->node != y->node) {
		return x->node - y->node;
	}
	if (x->dir != y->dir) {
		return x->dir - y->dir;
	}
	return x->fibre != y->fibre ? x->fibre - y->fibre
				    : x->channel - y->channel;
}

const char *resonator_lock_text(unsigned lock)
{
	static const char *const texts[RESONATOR_N_LOCKS] = {
		"locked", "lock not started", "no wave found",
		"wave not in tuning range", "duplicate lock", "zero lock",
		"wave of another lane", "tuner at its limit", "lock lost",
	};

	return lock < RESONATOR_N_LOCKS ? texts[lock] : "unknown lock state";
}

static void node_text(unsigned node, const char *const *names, char text[64])
{
	if (names) {
		snprintf(text, 64, "%s", names[node]);
	} else {
		snprintf(text, 64, "node %u", node);
	}
}

void ring_fault_text(const struct ring_fault *d, int nodes, const char *const *names,
		     char text[RING_FAULT_TEXT])
{
	const char *dir = d->dir == OPTICS_CW ? "cw" : "ccw";
	char node[64], next[64];

	node_text(d->node, names, node);
	switch (d->part) {
	case RING_NODE:
		snprintf(text, RING_FAULT_TEXT, "%s", node);
		break;
	case RING_SPAN:
		node_text((d->node + 1u) % (unsigned)nodes, names, next);
		snprintf(text, RING_FAULT_TEXT, "%s fibre %u between %s and %s", dir, d->fibre,
			 node, next);
		break;
	default:
		snprintf(text, RING_FAULT_TEXT, "%s %s fibre %u channel %u%s%s", node, dir,
			 d->fibre, d->channel, d->why ? ": " : "",
			 d->why ? resonator_lock_text(d->why) : "");
	}
}
