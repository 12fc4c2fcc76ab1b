/* Jobs on a part of a ring: some of its channels, some of its nodes, or a
 * segment. */
#include "optree/private.h"

int optree_links(const struct optree_params *p, int src, int dst, int dir)
{
	int n = p->at && p->ring_nodes ? p->ring_nodes : p->n;
	int from = p->at ? p->at[src] : src, to = p->at ? p->at[dst] : dst;
	int links = dir == RWA_CW ? to - from : from - to;

	return links > 0 ? links : links + n;
}

int64_t tree_width(const struct optree_params *p, int dir)
{
	int64_t sum = 0;

	for (int k = 0; k < p->n_light; k++) {
		sum += p->light[k].dir == dir ? p->light[k].channels : 0;
	}
	return p->n_light ? sum : (int64_t)p->channels * p->fibres;
}

struct rwa_ring tree_ring(const struct optree_params *p)
{
	struct rwa_ring ring = { p->n, p->fibres, p->channels };
	int64_t cw = tree_width(p, RWA_CW), ccw = tree_width(p, RWA_CCW);
	int64_t min = cw < ccw ? cw : ccw;

	if (p->n_light) {
		ring.fibres = 1;
		ring.channels = min > UINT16_MAX + 1 ? UINT16_MAX + 1 : (int)min;
	}
	return ring;
}

int part_supports(const struct optree_params *p, enum optree_algorithm how, struct err *err)
{
	if (how == OPTREE_BY_NE && p->line) {
		return err_set(err, WEFT_EUNSUPPORTED,
			       "neighbour exchange on a segment: not supported, "
			       "the nodes at its ends have one neighbour");
	}
	if (how == OPTREE_GROUPED && p->line) {
		return err_set(err, WEFT_EUNSUPPORTED, "grouped on a segment: not supported, what "
			       "groups have goes round the ring");
	}
	if (how != OPTREE_AUTO && how != OPTREE_COMPOSED && how != OPTREE_BY_RING &&
	    (!tree_width(p, RWA_CW) || !tree_width(p, RWA_CCW))) {
		return err_set(err, WEFT_EUNSUPPORTED,
			       "%s with channels in one direction only: not "
			       "supported, it sends both ways round",
			       optree_algorithm_name(how));
	}
	return 0;
}

void part_colour(const struct optree_fibre *light, size_t n_light, int channels, int dir,
		 int32_t colour, uint8_t *fibre, uint16_t *channel)
{
	*fibre = (uint8_t)(colour / channels);
	*channel = (uint16_t)(colour % channels);
	for (size_t k = 0; k < n_light; k++) {
		if (light[k].dir != dir) {
			continue;
		}
		if (colour < light[k].channels) {
			*fibre = light[k].fibre;
			*channel = (uint16_t)(light[k].first + colour);
			return;
		}
		colour -= light[k].channels;
	}
}

int tree_span(const struct optree_params *p, int len)
{
	int max = len;

	for (int v = 0; p->at && v < p->n - (p->line ? len : 0); v++) {
		int links = optree_links(p, v, (v + len) % p->n, RWA_CW);

		max = links > max ? links : max;
	}
	return max;
}

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

int part_check(const struct optree_params *p, struct err *err)
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
