/* SPDX-License-Identifier: Apache-2.0 */
/* google.rpc.Status: what a failure is about, for programs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "google/rpc/status.pb-c.h"
#include "lib/base/alloc.h"
#include "lib/rpc/private.h"

/* Room for one of the texts: longer ones find no place in the trailer. */
#define TEXT_MAX (RPC_MAX_DETAILS + 1)
#define TYPE "type.googleapis.com/google.rpc."

/* A copy up to what is not UTF-8: it may come from a device, or be cut. */
static char *clean(const char *text, char out[TEXT_MAX])
{
	const uint8_t *p = (const uint8_t *)text, *end = p + strlen(text);
	int n;

	while (p < end && (n = rpc_utf8_length(p, end)) > 0 &&
	       p + n < (const uint8_t *)text + TEXT_MAX) {
		p += n;
	}
	snprintf(out, TEXT_MAX, "%.*s", (int)((const char *)p - text), text);
	return out;
}

static void pack(const ProtobufCMessage *msg, struct buf *out)
{
	size_t len = protobuf_c_message_get_packed_size(msg);
	uint8_t *bytes = x_alloc(len + 1, 1);

	buf_add(out, bytes, protobuf_c_message_pack(msg, bytes));
	free(bytes);
}

/* Appends status with one detail. Messages that stand one after the other are
 * read as one, with the details of all. */
static void pack_status(Google__Rpc__Status *status, char *type,
			const ProtobufCMessage *detail, struct buf *out)
{
	Google__Protobuf__Any any = GOOGLE__PROTOBUF__ANY__INIT;
	Google__Protobuf__Any *all[] = { &any };
	struct buf value = { 0 };

	if (detail) {
		pack(detail, &value);
	}
	any.type_url = type;
	any.value.data = (uint8_t *)value.data;
	any.value.len = value.len;
	status->n_details = detail ? 1 : 0;
	status->details = all;
	pack(&status->base, out);
	buf_fini(&value);
}

bool rpc_detail_add(struct buf *details, const char *type, const char *name,
		    const char *description)
{
	char text[3][TEXT_MAX];
	Google__Rpc__Status status = GOOGLE__RPC__STATUS__INIT;
	Google__Rpc__ResourceInfo resource = GOOGLE__RPC__RESOURCE_INFO__INIT;
	size_t before = details->len;

	resource.resource_type = clean(type, text[0]);
	resource.resource_name = clean(name, text[1]);
	resource.description = clean(description, text[2]);
	pack_status(&status, TYPE "ResourceInfo", &resource.base, details);
	if (details->len > RPC_MAX_DETAILS) {
		details->len = before;
		return false;
	}
	return true;
}

/* The status, and err as ErrorInfo when it has a code. */
static void pack_error(enum rpc_status code, const struct err *err, struct buf *out)
{
	char place[TEXT_MAX], hint[TEXT_MAX], msg[TEXT_MAX];
	char where[ERR_FILE_MAX + 32] = "";
	Google__Rpc__Status status = GOOGLE__RPC__STATUS__INIT;
	Google__Rpc__ErrorInfo info = GOOGLE__RPC__ERROR_INFO__INIT;
	Google__Rpc__ErrorInfo__MetadataEntry
		of_place = GOOGLE__RPC__ERROR_INFO__METADATA_ENTRY__INIT,
		of_hint = GOOGLE__RPC__ERROR_INFO__METADATA_ENTRY__INIT,
		*metadata[2];

	if (err->file[0]) {
		snprintf(where, sizeof(where), "%s:%d:%d", err->file, err->line, err->col);
	}
	of_place.key = "place";
	of_place.value = clean(where, place);
	of_hint.key = "hint";
	of_hint.value = clean(err->hint, hint);
	if (place[0]) {
		metadata[info.n_metadata++] = &of_place;
	}
	if (hint[0]) {
		metadata[info.n_metadata++] = &of_hint;
	}
	info.metadata = metadata;
	info.reason = (char *)(uintptr_t)err_name(err->code);
	info.domain = "weft";
	status.code = (int32_t)code;
	status.message = clean(err->msg, msg);
	pack_status(&status, TYPE "ErrorInfo", err->code == WEFT_OK ? NULL : &info.base, out);
}

/* Without padding, as gRPC prefers. */
static void put_base64(struct buf *out, const struct buf *in)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				     "abcdefghijklmnopqrstuvwxyz0123456789+/";

	for (size_t i = 0; i < in->len; i += 3) {
		uint32_t v = 0;
		size_t n = in->len - i < 3 ? in->len - i : 3;

		for (size_t k = 0; k < 3; k++) {
			v = v << 8 | (k < n ? (uint8_t)in->data[i + k] : 0);
		}
		for (size_t k = 0; k <= n; k++) {
			buf_char(out, digits[v >> (18 - 6 * k) & 63]);
		}
	}
}

void rpc_detail_encode(enum rpc_status status, const struct err *err,
		       const struct buf *details, struct buf *out)
{
	struct buf b = { 0 };

	if (status == RPC_OK || (err->code == WEFT_OK && details->len == 0)) {
		return;
	}
	pack_error(status, err, &b);
	buf_add(&b, details->data, details->len);
	put_base64(out, &b);
	buf_fini(&b);
}
