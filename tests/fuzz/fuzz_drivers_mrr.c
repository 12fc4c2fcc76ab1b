/* SPDX-License-Identifier: Apache-2.0 */
/* The frame parser of mrr-reg, fed as a byte stream: what decodes must
 * encode to the same bytes. The CRC is repaired first, or nearly nothing
 * would get past it. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/mrr/mrr_protocol.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_event(const struct mrr_frame *f)
{
	uint8_t again[MRR_EVENT_BYTES + MRR_FAILURE_BYTES];
	struct mrr_event n;

	if (mrr_get_event(f, &n)) {
		assert(mrr_put_event(again, &n) == f->len);
		assert(memcmp(again, f->data, f->len) == 0);
		assert(mrr_last_code_text(n.code)[0]);
	}
}

static void check_frame(uint8_t *bytes, size_t len)
{
	struct mrr_frame f;
	struct buf b = { 0 };

	mrr_put32(bytes + len - 4, mrr_crc32(0, bytes, len - 4));
	assert(mrr_decode(bytes, len, &f));
	assert(f.len == len - MRR_HEAD - 4);
	mrr_encode(&b, &f);
	assert(b.len == len && memcmp(b.data, bytes, len) == 0);
	buf_fini(&b);
	assert(mrr_code_text(f.code)[0]);
	check_event(&f);
	for (uint32_t i = 0; i + MRR_TUNE_BYTES <= f.len;
	     i += MRR_TUNE_BYTES) {
		uint8_t again[MRR_TUNE_BYTES];
		struct ring_setting t;

		mrr_get_tune(f.data + i, &t);
		mrr_put_tune(again, &t);
		assert(memcmp(again, f.data + i, sizeof(again)) == 0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *bytes = malloc(size ? size : 1);
	size_t at = 0;

	if (!bytes) {
		return 0;
	}
	if (size) {
		memcpy(bytes, data, size);
	}
	while (at < size) {
		int64_t n = mrr_frame_length(bytes + at, size - at, 0, NULL);

		if (n <= 0) {
			break;
		}
		assert((size_t)n <= size - at && n <= MRR_MAX_FRAME);
		check_frame(bytes + at, (size_t)n);
		at += (size_t)n;
	}
	free(bytes);
	return 0;
}
