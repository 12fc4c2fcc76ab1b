/*
 * Broadcast: halving gaps, or a pipeline in both directions; broadcast_make()
 * builds both and keeps the faster. With halving, each new holder takes half of
 * every shard from each side of its gap, all channels for each lightpath; in
 * the pipeline pieces of shards go from neighbour to neighbour, which is for
 * long vectors.
 */
#include <stdio.h>
#include <stdlib.h>

#include "lib/base/vec.h"
#include "optree/private.h"

/* Shards from..to, chunks first..last of each, over one lightpath. */
struct send {
	int32_t step, src, dst, arc;
	int32_t from, to, first, last;
	uint8_t dir;
};

struct sends {
	struct send *v;
	size_t n, cap;
	int n_arcs, steps;
	int chunks;
	int64_t chunk_times;	/* over all steps, on one channel */
	int tunings;		/* of light that was another before */
};

static int64_t channels_of(const struct optree_params *p)
{
	return (int64_t)p->channels * p->fibres;
}

/* With overlap every channel goes on from cut to cut, so its retuning shows;
 * a pipeline keeps its light from the first step to the last. */
static int64_t time_of(const struct optree_params *p, const struct sends *s)
{
	struct optree_sym like = { .chunks = s->chunks, .steps = s->steps,
				   .chunk_times = s->chunk_times };
	int64_t ns = compose_time_ns(p, &like);
	int64_t hidden = s->steps - s->tunings;

	return ns < 0 || !p->overlap
		       ? ns : ns - hidden * (p->alpha_ns - p->convert_ns);
}

/* ---- cutting gaps ---- */

struct gap_cut {
	const struct optree_params *p;
	int root, reach;
	struct sends *out;
	int32_t *at, *next;	/* holders' offsets from the root */
	int n_at, n_next;
	bool whole;		/* someone sends whole shards this round */
};

static int send_to(struct gap_cut *c, int from, int hops, int dir, int half)
{
	int n = c->p->n, p = c->out->chunks;
	int to = dir == RWA_CW ? from + hops : from - hops;
	struct send s = {
		.step = c->out->steps, .src = (from + c->root) % n,
		.dst = (to + c->root) % n, .dir = (uint8_t)dir, .to = n - 1,
		.first = half == 2 ? p / 2 : 0,
		.last = half == 1 ? p / 2 - 1 : p - 1,
	};

	c->whole = c->whole || !half;
	return vec_push(c->out, s) ? WEFT_ENOMEM : 0;
}

/* One round of the gap from x to y. */
static int cut_gap(struct gap_cut *c, int x, int y)
{
	int gap = y - x, left = gap / 2, right = gap - left;

	c->next[c->n_next++] = x;
	if (gap == 1) {
		return 0;
	}
	if (right <= c->reach) {
		c->next[c->n_next++] = x + left;
		return send_to(c, x, left, RWA_CW, 1) || send_to(c, y, right, RWA_CCW, 2)
			       ? WEFT_ENOMEM : 0;
	}
	left = left < c->reach ? left : c->reach;
	right = right < c->reach ? right : c->reach;
	c->next[c->n_next++] = x + left;
	if (x + left == y - right) {
		return send_to(c, x, left, RWA_CW, 0);
	}
	c->next[c->n_next++] = y - right;
	return send_to(c, x, left, RWA_CW, 0) || send_to(c, y, right, RWA_CCW, 0)
		       ? WEFT_ENOMEM : 0;
}

static int cut_round(struct gap_cut *c)
{
	int n = c->p->n, rc = 0;
	int64_t w = channels_of(c->p), chunks = (int64_t)n * c->out->chunks;
	int32_t *swap = c->at;

	c->n_next = 0;
	c->whole = false;
	for (int k = 0; k < c->n_at && !rc; k++) {
		rc = cut_gap(c, c->at[k], k + 1 < c->n_at ? c->at[k + 1] : n);
	}
	chunks = c->whole ? chunks : chunks / 2;
	c->out->chunk_times += (chunks + w - 1) / w;
	c->out->steps++;
	c->out->tunings++;
	c->at = c->next;
	c->n_at = c->n_next;
	c->next = swap;
	return rc;
}

/* Halves that divide evenly over all channels, when that is possible. */
static int even_chunks(const struct optree_params *p)
{
	int64_t w = channels_of(p), a = w, b = p->n;

	while (b) {
		int64_t t = a % b;

		a = b;
		b = t;
	}
	w = 2 * (w / a);
	return w < compose_max_chunks(p) ? (int)w
					 : compose_max_chunks(p) / 2 * 2;
}

static int cut_all(const struct optree_params *p, int root, int reach,
		   struct sends *out, struct err *err)
{
	size_t bytes = ((size_t)p->n + 1) * sizeof(int32_t);
	struct gap_cut c = { .p = p, .root = root, .reach = reach, .out = out,
			 .at = calloc(1, bytes), .next = malloc(bytes),
			 .n_at = 1 };
	int rc = c.at && c.next ? 0 : WEFT_ENOMEM;

	*out = (struct sends){ .chunks = even_chunks(p) };
	while (!rc && c.n_at < p->n) {
		rc = cut_round(&c);
	}
	free(c.at);
	free(c.next);
	return rc ? err_nomem(err) : 0;
}

/* ---- the pipeline ---- */

static int64_t piece_chunks(const struct optree_params *p, int pieces)
{
	int64_t max = (p->n + pieces - 1) / pieces, w = channels_of(p);

	return (max * even_chunks(p) + w - 1) / w;
}

/* Counts of a pipeline of so many pieces. */
static struct sends pipeline(const struct optree_params *p, int pieces)
{
	struct sends s = { .chunks = even_chunks(p),
			   .steps = pieces + p->n / 2 - 1,
			   .tunings = 1 };

	s.chunk_times = s.steps * piece_chunks(p, pieces);
	return s;
}

static int best_pieces(const struct optree_params *p)
{
	int best = 1;
	int64_t best_ns = -1;

	for (int k = 1; k <= p->n; k++) {
		struct sends s = pipeline(p, k);
		int64_t ns = time_of(p, &s);

		if (ns >= 0 && (best_ns < 0 || ns < best_ns)) {
			best_ns = ns;
			best = k;
		}
	}
	return best;
}

static int pipe_all(const struct optree_params *p, int root, int pieces,
		    struct sends *s, struct err *err)
{
	int n = p->n;

	for (int j = 1; j < n; j++) {
		int dir = j <= n / 2 ? RWA_CW : RWA_CCW;
		int hop = dir == RWA_CW ? j : n - j;
		int before = dir == RWA_CW ? j - 1 : (j + 1) % n;

		for (int k = 0; k < pieces; k++) {
			struct send x = {
				.step = hop - 1 + k, .dir = (uint8_t)dir,
				.src = (root + before) % n,
				.dst = (root + j) % n,
				.from = (int)((int64_t)k * n / pieces),
				.to = (int)((k + 1) * (int64_t)n / pieces) - 1,
				.last = s->chunks - 1,
			};

			if (vec_push(s, x)) {
				return err_nomem(err);
			}
		}
	}
	return 0;
}

/* ---- the schedule ---- */

static int by_arc(const void *a, const void *b)
{
	const struct send *x = a, *y = b;

	if (x->src != y->src) {
		return x->src < y->src ? -1 : 1;
	}
	return x->dst != y->dst ? (x->dst < y->dst ? -1 : 1)
				: (int)x->dir - (int)y->dir;
}

static int make_topo(const struct optree_params *p, struct sends *s,
		     struct topo **out, struct err *err)
{
	int rc = topo_new(p->n, out, err);

	qsort(s->v, s->n, sizeof(*s->v), by_arc);
	for (size_t k = 0; k < s->n && !rc; k++) {
		if (k == 0 || by_arc(&s->v[k], &s->v[k - 1]) != 0) {
			s->n_arcs++;
			rc = topo_add_arc(*out, s->v[k].src, s->v[k].dst, 1, 0, err);
		}
		s->v[k].arc = s->n_arcs - 1;
	}
	if (rc) {
		return rc;
	}
	return topo_freeze(*out, err);
}

static int add_lights(const struct optree_params *p, const struct send *x,
		      struct coll_sched *out, struct err *err)
{
	struct rwa_ring ring = { p->n, p->fibres, p->channels };
	int hops = ((x->dir == RWA_CW ? x->dst - x->src : x->src - x->dst) + p->n) % p->n;
	int64_t lost = p->loss ? rwa_path_loss_mdb(&ring, p->loss, hops) : 0;
	int rc = 0;

	for (int64_t c = 0; c < channels_of(p) && !rc; c++) {
		rc = coll_add_light(out, &(struct coll_light){
			.step = x->step, .arc = x->arc, .dir = x->dir,
			.fibre = (uint8_t)(c / p->channels),
			.channel = (uint16_t)(c % p->channels),
			.loss_mdb = (int32_t)lost }, err);
	}
	return rc;
}

static int fill(const struct optree_params *p, const struct sends *s,
		struct coll_sched *out, struct err *err)
{
	int rc = 0;

	for (size_t k = 0; k < s->n && !rc; k++) {
		const struct send *x = &s->v[k];

		rc = add_lights(p, x, out, err);
		for (int o = x->from; o <= x->to && !rc; o++) {
			rc = coll_add(out, &(struct coll_xfer){
				.step = x->step, .arc = x->arc, .origin = o,
				.dest = COLL_NO_DEST, .first = x->first,
				.last = x->last, .op = COLL_OP_COPY }, err);
		}
	}
	if (rc || (rc = coll_finish(out, err))) {
		return rc;
	}
	return coll_verify(out, NULL, err);
}

static int write_out(const struct optree_params *p, int root, struct sends *s,
		     struct coll_sched **out, struct err *err)
{
	struct topo *topo = NULL;
	char name[64];
	int rc = make_topo(p, s, &topo, err);

	if (rc) {
		topo_free(topo);
		return rc;
	}
	if ((rc = coll_new(COLL_BROADCAST, topo, s->chunks, (int)(2 * channels_of(p)), root, out,
			   err)) || (rc = fill(p, s, *out, err))) {
		coll_free(*out);
		*out = NULL;
		return rc;
	}
	snprintf(name, sizeof(name), "WDM ring of %d nodes", p->n);
	coll_set_topo_name(*out, name);
	return 0;
}

int broadcast_make(const struct optree_params *p, int root, int reach,
		   struct optree_plan *out, struct err *err)
{
	int pieces = best_pieces(p);
	struct sends cut, pipe = pipeline(p, pieces), *s = &cut;
	int64_t cut_ns, pipe_ns = time_of(p, &pipe);
	int rc = cut_all(p, root, reach, &cut, err);

	if (rc) {
		goto out;
	}
	cut_ns = time_of(p, &cut);
	if (pipe_ns >= 0 && (cut_ns < 0 || pipe_ns < cut_ns)) {
		s = &pipe;
		rc = pipe_all(p, root, pieces, s, err);
	}
	if (!rc && cut_ns < 0 && pipe_ns < 0) {
		rc = err_set(err, WEFT_ELIMIT, "it lasts longer than 292 years");
	}
	if (!rc) {
		rc = write_out(p, root, s, &out->sched, err);
	}
	out->time_ns = time_of(p, s);
	out->retune_hidden_ns = p->overlap ? (s->steps - s->tunings) *
				(p->alpha_ns - p->convert_ns) : 0;
	out->steps = out->rounds = s->steps;
	out->chunks = s->chunks;
	out->lightpaths = (int64_t)s->n * channels_of(p);
out:
	vec_fini(&cut);
	vec_fini(&pipe);
	return rc;
}
