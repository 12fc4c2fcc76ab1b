/* SPDX-License-Identifier: Apache-2.0 */
/* gRPC message framing: a prefix of five bytes before each message. */
#include "lib/rpc/private.h"

#include <string.h>

struct buf_writer {
	ProtobufCBuffer base;
	struct buf *out;
};

static void write_chunk(ProtobufCBuffer *base, size_t len, const uint8_t *data)
{
	struct buf_writer *w = (struct buf_writer *)base;

	buf_add(w->out, data, len);
}

/* The prefix of a message of so many bytes, if there is room for both. */
static int add_prefix(struct buf *out, size_t len, size_t max, struct err *err)
{
	uint8_t prefix[RPC_PREFIX_BYTES] = { 0, (uint8_t)(len >> 24),
					     (uint8_t)(len >> 16),
					     (uint8_t)(len >> 8),
					     (uint8_t)len };

	if (len > UINT32_MAX || len + sizeof(prefix) > max) {
		return err_set(err, WEFT_ELIMIT, "no room for a message of %zu bytes", len);
	}
	buf_add(out, prefix, sizeof(prefix));
	return 0;
}

int rpc_frame_append(struct buf *out, const ProtobufCMessage *msg, size_t max, struct err *err)
{
	struct buf_writer writer = { { write_chunk }, out };
	int r = add_prefix(out, protobuf_c_message_get_packed_size(msg), max, err);

	if (r) {
		return r;
	}
	protobuf_c_message_pack_to_buffer(msg, &writer.base);
	return 0;
}

int rpc_frame_append_packed(struct buf *out, const void *data, size_t len, size_t max,
			    struct err *err)
{
	int r = add_prefix(out, len, max, err);

	if (r) {
		return r;
	}
	buf_add(out, data, len);
	return 0;
}

static size_t take(size_t want, const uint8_t **data, size_t *len)
{
	size_t n = want < *len ? want : *len;

	*data += n;
	*len -= n;
	return n;
}

/* The five bytes are there: may the message come? */
static int check_prefix(struct rpc_deframer *d, struct err *err)
{
	const uint8_t *p = d->prefix;

	if (p[0] == 1) {
		return err_set(err, WEFT_EINTERNAL,
			       "a compressed message, and no grpc-encoding that says how");
	}
	if (p[0] != 0) {
		return err_set(err, WEFT_EINVAL, "message flag byte is %u, must be 0", p[0]);
	}
	d->need = (size_t)p[1] << 24 | (size_t)p[2] << 16 | (size_t)p[3] << 8 |
		  p[4];
	if (d->need > d->max) {
		return err_set(err, WEFT_ELIMIT,
			       "message of %zu bytes, at most %zu are allowed",
			       d->need, d->max);
	}
	return 0;
}

int rpc_deframe(struct rpc_deframer *d, const uint8_t **data, size_t *len, struct err *err)
{
	const uint8_t *from = *data;
	size_t n;
	int r;

	if (d->n_prefix < RPC_PREFIX_BYTES) {
		n = take(RPC_PREFIX_BYTES - d->n_prefix, data, len);
		memcpy(d->prefix + d->n_prefix, from, n);
		d->n_prefix += n;
		if (d->n_prefix < RPC_PREFIX_BYTES) {
			return 0;
		}
		r = check_prefix(d, err);
		if (r) {
			return r;
		}
		from = *data;
	}
	n = take(d->need - d->body.len, data, len);
	buf_add(&d->body, from, n);
	return d->body.len == d->need;
}

void rpc_deframer_next(struct rpc_deframer *d)
{
	buf_reset(&d->body);
	d->n_prefix = d->need = 0;
}

bool rpc_deframer_partial(const struct rpc_deframer *d)
{
	return d->n_prefix > 0;
}

void rpc_deframer_fini(struct rpc_deframer *d)
{
	buf_fini(&d->body);
	rpc_deframer_next(d);
}
