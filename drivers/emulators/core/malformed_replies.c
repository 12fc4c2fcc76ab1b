/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Malformed replies: floods of bytes in place of an answer, to prove that a
 * driver bounds what it buffers and gives up in time.
 *
 * A flood is written block by block: the next block goes out when the last one
 * was taken, so it is as fast as the other side reads and costs this program
 * one block of memory. It ends with the stream, or, for a reply that is only
 * very long, with the reply's own tail.
 */
#include "drivers/emulators/core/malformed_replies.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"

#define BLOCK (64 << 10)
#define MIB (INT64_C(1) << 20)

/* What is being sent: a head, blocks, and for a reply that ends a tail. Freed
 * by the write that fails or is the last. */
struct flood {
	uv_write_t req;
	uv_stream_t *stream;
	struct rng rng;
	bool noise;		/* every block is another */
	int64_t left;		/* bytes of blocks, INT64_MAX: no end */
	size_t block_len, tail_len;
	uint8_t *tail;
	uint8_t block[BLOCK];
};

static void flood_free(struct flood *f)
{
	free(f->tail);
	free(f);
}

static void next_block(uv_write_t *req, int status);

static void send_bytes(struct flood *f, const uint8_t *bytes, size_t len)
{
	uv_buf_t b = uv_buf_init((char *)bytes, (unsigned)len);

	f->req.data = f;
	if (uv_write(&f->req, f->stream, &b, 1, next_block)) {
		flood_free(f);
	}
}

static void next_block(uv_write_t *req, int status)
{
	struct flood *f = req->data;
	size_t n = f->tail_len;

	if (status < 0 || (f->left <= 0 && n == 0)) {
		flood_free(f);
	} else if (f->left > 0) {
		for (size_t i = 0; f->noise && i < f->block_len; i += 8) {
			uint64_t r = rng_u64(&f->rng);

			memcpy(f->block + i, &r, 8);
		}
		f->left -= f->left == INT64_MAX ? 0 : (int64_t)f->block_len;
		send_bytes(f, f->block, f->block_len);
	} else {
		f->tail_len = 0;
		send_bytes(f, f->tail, n);
	}
}

/* Fills the block with whole copies of the pattern, so that blocks join
 * without a seam. len is at least 1 and at most BLOCK. */
static void fill(struct flood *f, const void *pattern, size_t len)
{
	f->block_len = BLOCK / len * len;
	for (size_t i = 0; i < f->block_len; i += len) {
		memcpy(f->block + i, pattern, len);
	}
}

/* A reply of so many bytes that begins and ends as it should: its middle line,
 * or a piece of a reply of one line, again and again. A driver that trusts the
 * frame of a reply reads all of it. */
static void stretch(struct flood *f, const uint8_t *reply, size_t len, int64_t bytes)
{
	size_t half = len / 2, from = half;

	/* Both halves are copied, the first behind the second: a write may go
	 * on after the caller's reply is gone. */
	f->tail_len = len - half;
	f->tail = x_alloc(len + 1, 1);
	memcpy(f->tail, reply + half, f->tail_len);
	memcpy(f->tail + f->tail_len, reply, half);
	while (from > 0 && from + 256 > half && reply[from - 1] != '\n') {
		from--;
	}
	if (from == half) {
		from -= half > 8 ? 8 : half;
	}
	fill(f, from < half ? reply + from : (const uint8_t *)" ",
	     from < half ? half - from : 1);
	f->left = bytes;
	send_bytes(f, f->tail + f->tail_len, half);
}

bool malformed_reply(uv_stream_t *stream, struct faults *faults, const uint8_t *reply, size_t len)
{
	bool endless = faults_hold(faults, FAULT_ENDLESS, NULL);
	bool lines = faults_hold(faults, FAULT_LINES, NULL);
	bool noise = faults_hold(faults, FAULT_NOISE, NULL);
	int64_t mib = 0;
	bool huge = faults_hold(faults, FAULT_HUGE, &mib);
	struct flood *f;

	if (!endless && !lines && !noise && !huge) {
		return false;
	}
	f = x_new(1, sizeof(*f));
	f->stream = stream;
	f->left = INT64_MAX;
	f->noise = noise;
	rng_seed(&f->rng, rng_u64(&faults->rng));
	if (huge) {
		stretch(f, reply, len, mib * MIB);
		return true;
	}
	fill(f, lines ? "A1 nothing\r\n" : "1,", lines ? 12 : 2);
	send_bytes(f, f->block, f->block_len);
	return true;
}
