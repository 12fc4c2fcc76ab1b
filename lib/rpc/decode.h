/* The decode boundary with its costs told; private to this room. */
#ifndef WEFT_LIB_RPC_DECODE_H
#define WEFT_LIB_RPC_DECODE_H

#include "lib/rpc/rpc.h"

#define RPC_DEFAULT_BUDGET ((size_t)32 << 20)

/* rpc_decode, telling in *used the heap bytes that *out occupies. */
int rpc_decode_counted(const ProtobufCMessageDescriptor *type,
		       const void *data, size_t len, size_t budget,
		       ProtobufCMessage **out, size_t *used, struct err *err);

/* Length of the UTF-8 character at p (RFC 3629: shortest form, no
 * surrogates, up to U+10FFFF), 0 when there is none. */
int rpc_utf8_length(const uint8_t *p, const uint8_t *end);

#endif
