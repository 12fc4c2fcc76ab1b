/* SPDX-License-Identifier: Apache-2.0 */
/* What a request asks for, as a hash: an id of a request that comes with another is refused. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/daemon/core/core.h"
#include "lib/base/alloc.h"
#include "lib/base/buf.h"
#include "lib/digest/sha256.h"

void arguments_hash(struct rpc_call *call, const ProtobufCMessage *msg, char hash[65])
{
	size_t len = protobuf_c_message_get_packed_size(msg);
	unsigned char digest[SHA256_LEN];
	uint8_t *packed = x_alloc(len + 1, 1);
	struct buf b = { 0 };
	char user[32];

	protobuf_c_message_pack(msg, packed);
	buf_printf(&b, "%s\n%s\n", call_user(call, user, sizeof(user)), rpc_call_path(call));
	buf_add(&b, packed, len);
	free(packed);
	sha256(b.data, b.len, digest);
	buf_fini(&b);
	sha256_hex(digest, hash);
}

int arguments_refused(const char *id, struct err *err)
{
	err_set(err, WEFT_EINVAL, "request_id: \"%.64s\" was used before, with other arguments "
		"or by another user", id);
	err_hint(err, "a new request needs a new id");
	return err->code;
}

int arguments_check(const char *id, const char *before, const char *now, struct err *err)
{
	return before[0] && strcmp(before, now) != 0 ? arguments_refused(id, err) : 0;
}
