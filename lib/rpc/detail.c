/* google.rpc.Status, written by hand; see detail.h. */
#include "lib/rpc/decode.h"
#include "lib/rpc/detail.h"

#include <stdio.h>
#include <string.h>

#define TYPE "type.googleapis.com/google.rpc."

/* Numbers of fields. */
enum { STATUS_CODE = 1, STATUS_MESSAGE = 2, STATUS_DETAILS = 3 };
enum { ANY_TYPE = 1, ANY_VALUE = 2 };
enum { INFO_REASON = 1, INFO_DOMAIN = 2, INFO_METADATA = 3 };
enum { ENTRY_KEY = 1, ENTRY_VALUE = 2 };
enum { RESOURCE_TYPE = 1, RESOURCE_NAME = 2, RESOURCE_DESCRIPTION = 4 };

/* ---- protobuf ------------------------------------------------------------ */

static void put_varint(struct buf *b, uint64_t v)
{
	for (; v >= 128; v >>= 7) {
		buf_char(b, (char)(v | 128));
	}
	buf_char(b, (char)v);
}

static void put_bytes(struct buf *b, int field, const void *data, size_t len)
{
	put_varint(b, (uint64_t)field << 3 | 2);
	put_varint(b, len);
	buf_add(b, data, len);
}

/* Only what is UTF-8: a text may come from a device, or be cut. */
static void put_text(struct buf *b, int field, const char *text)
{
	const uint8_t *p = (const uint8_t *)text, *end = p + strlen(text);
	int n;

	while (p < end && (n = rpc_utf8_length(p, end)) > 0) {
		p += n;
	}
	if (p > (const uint8_t *)text) {
		put_bytes(b, field, text, (size_t)(p - (const uint8_t *)text));
	}
}

static void put_any(struct buf *b, const char *type, struct buf *value)
{
	struct buf any = { 0 };

	put_text(&any, ANY_TYPE, type);
	put_bytes(&any, ANY_VALUE, value->data, value->len);
	put_bytes(b, STATUS_DETAILS, any.data, any.len);
	b->failed |= any.failed || value->failed;
	buf_fini(&any);
	buf_fini(value);
}

static void put_entry(struct buf *info, const char *key, const char *value)
{
	struct buf entry = { 0 };

	if (value[0]) {
		put_text(&entry, ENTRY_KEY, key);
		put_text(&entry, ENTRY_VALUE, value);
		put_bytes(info, INFO_METADATA, entry.data, entry.len);
		info->failed |= entry.failed;
	}
	buf_fini(&entry);
}

static void put_info(struct buf *b, const struct err *err)
{
	char place[ERR_FILE_MAX + 32] = "";
	struct buf info = { 0 };

	if (err->file[0]) {
		snprintf(place, sizeof(place), "%s:%d:%d", err->file,
			 err->line, err->col);
	}
	put_text(&info, INFO_REASON, err_name(err->code));
	put_text(&info, INFO_DOMAIN, "weft");
	put_entry(&info, "place", place);
	put_entry(&info, "hint", err->hint);
	put_any(b, TYPE "ErrorInfo", &info);
}

bool rpc_detail_add(struct buf *details, const char *type, const char *name,
		    const char *description)
{
	size_t before = details->len;
	struct buf resource = { 0 };

	put_text(&resource, RESOURCE_TYPE, type);
	put_text(&resource, RESOURCE_NAME, name);
	put_text(&resource, RESOURCE_DESCRIPTION, description);
	put_any(details, TYPE "ResourceInfo", &resource);
	if (details->len > RPC_MAX_DETAILS) {
		details->len = before;
		return false;
	}
	return !details->failed;
}

/* ---- base64 -------------------------------------------------------------- */

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
	put_varint(&b, STATUS_CODE << 3);
	put_varint(&b, (uint64_t)status);
	put_text(&b, STATUS_MESSAGE, err->msg);
	if (err->code != WEFT_OK) {
		put_info(&b, err);
	}
	buf_add(&b, details->data, details->len);
	if (!b.failed) {
		put_base64(out, &b);
	}
	buf_fini(&b);
}
