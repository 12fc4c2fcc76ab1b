/* Programs as MSCCL XML; see msccl.h and docs/lowering.md. */
#include "runtime/msccl/xml.h"

const char *msccl_kind_name(enum coll_kind kind, enum lower_dialect dialect)
{
	return kind == COLL_REDUCE_SCATTER && dialect == LOWER_MICROSOFT
		       ? "reduce_scatter" : lower_kind_name(kind);
}

static void write_step(struct buf *b, size_t k, const struct lower_step *s)
{
	static const char buffers[] = { 'i', 'o', 's' };

	buf_printf(b, "      <step s=\"%zu\" type=\"%s\" srcbuf=\"%c\" "
		   "srcoff=\"%d\" dstbuf=\"%c\" dstoff=\"%d\" cnt=\"%d\" "
		   "depid=\"%d\" deps=\"%d\" hasdep=\"%d\"/>\n", k,
		   lower_type_name(s->type), buffers[s->src_buf], s->src,
		   buffers[s->dst_buf], s->dst, s->cnt, s->dep_tb,
		   s->dep_step, s->has_dep);
}

static void write_gpu(struct buf *b, int rank, const struct lower_gpu *g)
{
	buf_printf(b, "  <gpu id=\"%d\" i_chunks=\"%d\" o_chunks=\"%d\" "
		   "s_chunks=\"%d\">\n", rank, g->chunks[LOWER_IN],
		   g->chunks[LOWER_OUT], g->chunks[LOWER_SCRATCH]);
	for (size_t t = 0; t < g->tbs.n; t++) {
		const struct lower_tb *tb = &g->tbs.v[t];

		buf_printf(b, "    <tb id=\"%zu\" send=\"%d\" recv=\"%d\" "
			   "chan=\"%d\">\n", t, tb->send, tb->recv, tb->chan);
		for (size_t k = 0; k < tb->steps.n; k++) {
			write_step(b, k, &tb->steps.v[k]);
		}
		buf_str(b, "    </tb>\n");
	}
	buf_str(b, "  </gpu>\n");
}

int msccl_write(const struct lower *p, enum lower_dialect dialect,
		struct buf *out, struct err *err)
{
	/* microsoft/msccl serves just one kind of calls, and reserves scratch
	 * memory for the largest. */
	bool old = dialect == LOWER_MICROSOFT;

	buf_printf(out, "<algo name=\"%s\" proto=\"Simple\" nchannels=\"%d\" "
		   "nchunksperloop=\"%d\" ngpus=\"%d\" coll=\"%s\" "
		   "inplace=\"%d\" outofplace=\"%d\" minBytes=\"0\" "
		   "maxBytes=\"%d\">\n", p->name, p->channels, p->loop,
		   p->ranks, msccl_kind_name(p->kind, dialect), p->inplace,
		   p->outofplace && !(old && p->inplace),
		   old ? MSCCL_OLD_MAX_BYTES : 0);
	for (int r = 0; r < p->ranks; r++) {
		write_gpu(out, r, &p->gpus[r]);
	}
	buf_str(out, "</algo>\n");
	return out->failed ? err_nomem(err) : 0;
}

int msccl_export(const struct coll_sched *s, enum lower_dialect dialect,
		 struct buf *out, struct err *err)
{
	struct lower p = { 0 }, again = { 0 };
	int rc = lower_schedule(s, dialect, &p, err);

	rc = rc ? rc : msccl_write(&p, dialect, out, err);
	if (!rc) {
		rc = msccl_read(buf_cstr(out), out->len, dialect, &again, err);
		rc = rc ? rc : lower_check(&again, dialect, err);
		if (rc) {
			err_wrap(err, "the text that was written");
		}
	}
	lower_fini(&p);
	lower_fini(&again);
	return rc;
}
