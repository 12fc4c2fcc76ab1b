/* SPDX-License-Identifier: Apache-2.0 */
/* The decode boundary: any bytes are refused with an error or decode into a
 * message that packs and decodes again to the same bytes. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "lib/rpc/rpc.h"
#include "tests/unit/rpc/message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint8_t *pack(const ProtobufCMessage *msg, size_t *len)
{
	uint8_t *bytes;

	*len = protobuf_c_message_get_packed_size(msg);
	bytes = malloc(*len + 1);
	assert(protobuf_c_message_pack(msg, bytes) == *len);
	return bytes;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	ProtobufCMessage *msg, *again;
	uint8_t *once, *twice;
	size_t once_len, twice_len;
	struct err err;
	int r = rpc_decode(&item_type, data, size, 1 << 20, &msg, &err);

	if (r) {
		assert(!msg && err.code == r && err.msg[0] &&
		       (r == WEFT_EINVAL || r == WEFT_ELIMIT));
		return 0;
	}
	once = pack(msg, &once_len);
	r = rpc_decode(&item_type, once, once_len, 0, &again, &err);
	assert(r == 0);
	twice = pack(again, &twice_len);
	assert(once_len == twice_len && memcmp(once, twice, once_len) == 0);
	free(once);
	free(twice);
	rpc_free_message(again);
	rpc_free_message(msg);
	return 0;
}
