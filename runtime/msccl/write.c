/* SPDX-License-Identifier: Apache-2.0 */
/* Programs as MSCCL XML; docs/lowering.md describes it. */
#include "runtime/msccl/msccl.h"

static void write_step(struct buf *b, size_t k, const struct msccl_step *s)
{
	static const char buffers[] = { 'i', 'o', 's' };

	buf_printf(b, "      <step s=\"%zu\" type=\"%s\" srcbuf=\"%c\" "
		   "srcoff=\"%d\" dstbuf=\"%c\" dstoff=\"%d\" cnt=\"%d\" "
		   "depid=\"%d\" deps=\"%d\" hasdep=\"%d\"/>\n", k,
		   msccl_type_name(s->type), buffers[s->src_buf], s->src,
		   buffers[s->dst_buf], s->dst, s->cnt, s->dep_tb,
		   s->dep_step, s->has_dep);
}

static void write_gpu(struct buf *b, int rank, const struct msccl_gpu *g)
{
	buf_printf(b, "  <gpu id=\"%d\" i_chunks=\"%d\" o_chunks=\"%d\" "
		   "s_chunks=\"%d\">\n", rank, g->chunks[LOWER_IN],
		   g->chunks[LOWER_OUT], g->chunks[LOWER_SCRATCH]);
	for (size_t t = 0; t < g->tbs.n; t++) {
		const struct msccl_tb *tb = &g->tbs.v[t];

		buf_printf(b, "    <tb id=\"%zu\" send=\"%d\" recv=\"%d\" "
			   "chan=\"%d\">\n", t, tb->send, tb->recv, tb->chan);
		for (size_t k = 0; k < tb->steps.n; k++) {
			write_step(b, k, &tb->steps.v[k]);
		}
		buf_str(b, "    </tb>\n");
	}
	buf_str(b, "  </gpu>\n");
}

void msccl_write(const struct msccl *p, struct buf *out)
{
	buf_printf(out, "<algo name=\"%s\" proto=\"%s\" nchannels=\"%d\" "
		   "nchunksperloop=\"%d\" ngpus=\"%d\" coll=\"%s\" "
		   "inplace=\"%d\" outofplace=\"%d\" minBytes=\"%lld\" "
		   "maxBytes=\"%lld\">\n", p->name, msccl_proto_name(p->proto),
		   p->channels, p->loop, p->ranks, lower_kind_name(p->kind),
		   p->inplace, p->outofplace, (long long)p->min_bytes,
		   (long long)p->max_bytes);
	for (int r = 0; r < p->ranks; r++) {
		write_gpu(out, r, &p->gpus[r]);
	}
	buf_str(out, "</algo>\n");
}
