/* SPDX-License-Identifier: Apache-2.0 */
/* What parameters are refused: numbers out of range, and light or nodes that the ring does not
 * have. */
#include "optree/private.h"

static int check_fibre(const struct optree_params *p, int k, struct err *err)
{
	const struct optree_fibre *f = &p->light[k];

	if (f->dir > RWA_CCW || f->fibre >= p->fibres || f->first < 0 ||
	    f->channels < 1 || f->channels > p->channels - f->first) {
		return err_set(err, WEFT_EINVAL,
			       "%d channels from channel %d of fibre %d: the "
			       "ring has %d channels on %d fibres",
			       f->channels, f->first, f->fibre, p->channels,
			       p->fibres);
	}
	for (int j = 0; j < k; j++) {
		const struct optree_fibre *g = &p->light[j];

		if (g->dir == f->dir && g->fibre == f->fibre && g->first < f->first + f->channels &&
		    f->first < g->first + g->channels) {
			return err_set(err, WEFT_EINVAL,
				       "channels of fibre %d are given twice",
				       f->fibre);
		}
	}
	return 0;
}

/* Once around: the paths from each to the next add up to the whole ring. */
static int check_places(const struct optree_params *p, struct err *err)
{
	int n = p->ring_nodes ? p->ring_nodes : p->n;
	int64_t links = 0;

	for (int r = 0; r < p->n; r++) {
		if (p->at[r] < 0 || p->at[r] >= n) {
			return err_set(err, WEFT_EINVAL,
				       "rank %d at position %d of a ring of "
				       "%d nodes", r, p->at[r], n);
		}
	}
	for (int r = 0; r < p->n; r++) {
		links += optree_links(p, r, (r + 1) % p->n, RWA_CW);
		if (links > n) {
			return err_set(err, WEFT_EINVAL,
				       "rank %d at position %d is not in the "
				       "ring's order", r, p->at[r]);
		}
	}
	return 0;
}

static int check_part(const struct optree_params *p, struct err *err)
{
	int rc = 0;

	for (int k = 0; k < p->n_light && !rc; k++) {
		rc = check_fibre(p, k, err);
	}
	if (!rc && p->line && (!tree_width(p, 0) || !tree_width(p, 1))) {
		rc = err_set(err, WEFT_EINVAL, "a segment needs channels in both directions");
	}
	if (rc || !p->at) {
		return rc;
	}
	return check_places(p, err);
}

int tree_check_params(const struct optree_params *p, struct err *err)
{
	if (p->n < 2 || p->n > OPTREE_MAX_NODES) {
		return err_set(err, WEFT_ELIMIT,
			       "a ring of %d nodes: 2 to %d are supported",
			       p->n, OPTREE_MAX_NODES);
	}
	if (p->channels < 1 || p->channels > UINT16_MAX + 1 ||
	    p->fibres < 1 || p->fibres > UINT8_MAX + 1) {
		return err_set(err, WEFT_EINVAL,
			       "%d channels on %d fibres: 1 to %d channels on "
			       "1 to %d fibres are supported",
			       p->channels, p->fibres, UINT16_MAX + 1,
			       UINT8_MAX + 1);
	}
	if (p->depth < 0 || p->depth > OPTREE_MAX_DEPTH) {
		return err_set(err, WEFT_EINVAL,
			       "a tree of depth %d: 0 (best) to %d", p->depth,
			       OPTREE_MAX_DEPTH);
	}
	if (p->shard_bytes < 1 || p->channel_bps < 1 || p->alpha_ns < 0) {
		return err_set(err, WEFT_EINVAL,
			       "%lld bytes a node at %lld bit/s, %lld ns a "
			       "step: sizes and rates are positive",
			       (long long)p->shard_bytes,
			       (long long)p->channel_bps,
			       (long long)p->alpha_ns);
	}
	if (p->span_delay_ns < 0 || p->span_delay_ns > OPTREE_MAX_SPAN_DELAY_NS) {
		return err_set(err, WEFT_EINVAL,
			       "%lld ns of delay a link: 0 to %lld are supported",
			       (long long)p->span_delay_ns,
			       (long long)OPTREE_MAX_SPAN_DELAY_NS);
	}
	if (p->overlap && (p->convert_ns < 0 || p->convert_ns > p->alpha_ns)) {
		return err_set(err, WEFT_EINVAL,
			       "%lld ns of conversion in a step of %lld ns",
			       (long long)p->convert_ns,
			       (long long)p->alpha_ns);
	}
	return check_part(p, err);
}
