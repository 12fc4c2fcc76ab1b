/*
 * The gRPC message framing: a flag byte, the length in four bytes, the
 * message. Shared by server and client; private to this room.
 */
#ifndef WEFT_LIB_RPC_FRAME_H
#define WEFT_LIB_RPC_FRAME_H

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"

#define RPC_PREFIX_BYTES 5

/* Appends prefix and packed message to out, which then holds at most `max`
 * bytes more than before. WEFT_ELIMIT or WEFT_ENOMEM leave out as it was. */
int rpc_frame_append(struct buf *out, const ProtobufCMessage *msg, size_t max,
		     struct err *err);

/* Cuts a stream of bytes into messages. Zero it and set `max`. */
struct rpc_deframer {
	size_t max;	/* bytes of one message */
	size_t need;	/* bytes of the message under way */
	size_t n_prefix;
	uint8_t prefix[RPC_PREFIX_BYTES];
	struct buf body;
};

/* Consumes input up to the end of a message. Returns 1 when d->body holds
 * a whole message (call rpc_deframer_next before going on), 0 when all
 * input is consumed without, or WEFT_ELIMIT (longer than max, known before
 * its body arrives), WEFT_EUNSUPPORTED (compressed), WEFT_EINVAL,
 * WEFT_ENOMEM. Memory grows with the bytes that came, not with the length
 * announced. */
int rpc_deframe(struct rpc_deframer *d, const uint8_t **data, size_t *len,
		struct err *err);
void rpc_deframer_next(struct rpc_deframer *d);
/* True in the midst of a message: the stream must not end here. */
bool rpc_deframer_partial(const struct rpc_deframer *d);
void rpc_deframer_fini(struct rpc_deframer *d);

#endif
