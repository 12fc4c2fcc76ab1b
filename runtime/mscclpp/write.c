/* SPDX-License-Identifier: Apache-2.0 */
/* Execution plans as JSON; see mscclpp.h and docs/lowering.md. */
#include <inttypes.h>

#include "runtime/mscclpp/mscclpp.h"

static const char buffers[] = { 'i', 'o', 's' };

static void write_numbers(struct buf *b, const char *key, int n, const int16_t *v)
{
	buf_printf(b, ", \"%s\": [", key);
	for (int i = 0; i < n; i++) {
		buf_printf(b, "%s%d", i ? ", " : "", v[i]);
	}
	buf_char(b, ']');
}

static void write_refs(struct buf *b, const char *key, int n, const struct mscclpp_ref *v)
{
	if (n == 0) {
		return;
	}
	buf_printf(b, ", \"%s\": [", key);
	for (int i = 0; i < n; i++) {
		buf_str(b, i ? ", {" : "{");
		if (v[i].remote) {
			buf_printf(b, "\"buffer_id\": %d", v[i].buf);
		} else {
			buf_printf(b, "\"type\": \"%c\"", buffers[v[i].buf]);
		}
		buf_printf(b, ", \"index\": %d, \"size\": %d}", v[i].index, v[i].size);
	}
	buf_char(b, ']');
}

static void write_op(struct buf *b, const struct mscclpp_op *op)
{
	bool sems = op->name == MSCCLPP_ACQUIRE || op->name == MSCCLPP_RELEASE;

	buf_printf(b, "{\"name\": \"%s\"", mscclpp_op_name(op->name));
	write_refs(b, "src_buff", op->n_src, op->src);
	write_refs(b, "dst_buff", op->n_dst, op->dst);
	if (op->n_ids > 0) {
		write_numbers(b, sems ? "semaphore_ids" : "channel_ids", op->n_ids, op->ids);
		buf_str(b, sems ? "" : ", \"channel_type\": \"port\"");
	}
	buf_str(b, op->name == MSCCLPP_REDUCE ? ", \"reduce_op\": \"sum\"}" : "}");
}

/* What a threadblock uses, as numbers of the rank. */
static void write_uses(struct buf *b, const char *key, const char *type,
		       const char *ids, int n, const int32_t *v)
{
	buf_printf(b, ", \"%s\": [", key);
	for (int i = 0; i < n; i++) {
		if (i == 0) {
			buf_printf(b, "{\"%s\": \"port\", \"%s\": [", type, ids);
		}
		buf_printf(b, "%s%d", i ? ", " : "", v[i]);
	}
	buf_str(b, n > 0 ? "]}]" : "]");
}

static void write_tb(struct buf *b, size_t id, const struct mscclpp_tb *tb)
{
	buf_printf(b, "%s\n      {\"id\": %zu, \"ops\": [", id ? "," : "", id);
	for (size_t k = 0; k < tb->ops.n; k++) {
		buf_str(b, k ? ",\n        " : "\n        ");
		write_op(b, &tb->ops.v[k]);
	}
	buf_char(b, ']');
	write_uses(b, "channels", "channel_type", "channel_ids", tb->n_chans, tb->chans);
	write_uses(b, "remote_buffer_refs", "access_channel_type",
		   "remote_buffer_ids", tb->n_remotes, tb->remotes);
	buf_char(b, '}');
}

static void write_gpu(struct buf *b, int rank, const struct mscclpp_gpu *g)
{
	buf_printf(b, "%s\n    {\"id\": %d, \"input_chunks\": %d, "
		   "\"output_chunks\": %d, \"scratch_chunks\": %d,\n"
		   "     \"threadblocks\": [", rank ? "," : "", rank,
		   g->chunks[LOWER_IN], g->chunks[LOWER_OUT],
		   g->chunks[LOWER_SCRATCH]);
	for (size_t t = 0; t < g->tbs.n; t++) {
		write_tb(b, t, &g->tbs.v[t]);
	}
	buf_str(b, "],\n     \"channels\": [");
	for (size_t i = 0; i < g->chans.n; i++) {
		buf_printf(b, "%s%d", i ? ", " : "{\"channel_type\": \"port\", "
			   "\"connected_to\": [", g->chans.v[i]);
	}
	buf_str(b, g->chans.n ? "]}]" : "]");
	buf_str(b, ",\n     \"remote_buffers\": [");
	for (size_t i = 0; i < g->remotes.n; i++) {
		buf_printf(b, "%s{\"rank\": %d, \"type\": \"%c\", "
			   "\"access_channel_types\": [\"port\"]}",
			   i ? ", " : "", g->remotes.v[i].rank,
			   buffers[g->remotes.v[i].buf]);
	}
	buf_str(b, "],\n     \"semaphores\": [");
	for (size_t i = 0; i < g->sems.n; i++) {
		buf_printf(b, "%s{\"init_value\": %d}", i ? ", " : "", g->sems.v[i]);
	}
	buf_str(b, "]}");
}

void mscclpp_write(const struct mscclpp *p, struct buf *out)
{
	buf_printf(out, "{\"name\": \"%s\",\n  \"collective\": \"%s\", "
		   "\"protocol\": \"Simple\", \"inplace\": %s", p->name,
		   lower_kind_name(p->kind), p->inplace ? "true" : "false");
	if (p->kind == COLL_BROADCAST) {
		buf_printf(out, ", \"root\": %d", p->root);
	}
	buf_printf(out, ",\n  \"reuse_resources\": false, "
		   "\"use_double_scratch_buffer\": false, "
		   "\"buffer_alignment\": 16,\n  \"num_threads_per_block\": "
		   "1024, \"min_message_size\": 0, \"max_message_size\": "
		   "%" PRIu64 ",\n  \"gpus\": [", p->max_bytes);
	for (int r = 0; r < p->ranks; r++) {
		write_gpu(out, r, &p->gpus[r]);
	}
	buf_str(out, "\n  ]}\n");
}
