/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The register protocol of ring controllers, both sides of it: frames with
 * their check sum, registers, windows and places as bytes.
 *
 * The reader of frames trusts nothing but the length that it checked: a wrong
 * magic, length or CRC is reported and the session ended by the caller.
 */
#include "drivers/mrr/mrr_protocol.h"

#include <string.h>

uint16_t mrr_get16(const uint8_t *p)
{
	return (uint16_t)(p[0] | p[1] << 8);
}

uint32_t mrr_get32(const uint8_t *p)
{
	return mrr_get16(p) | (uint32_t)mrr_get16(p + 2) << 16;
}

uint64_t mrr_get64(const uint8_t *p)
{
	return mrr_get32(p) | (uint64_t)mrr_get32(p + 4) << 32;
}

void mrr_put16(uint8_t *p, uint16_t v)
{
	p[0] = (uint8_t)v;
	p[1] = (uint8_t)(v >> 8);
}

void mrr_put32(uint8_t *p, uint32_t v)
{
	mrr_put16(p, (uint16_t)v);
	mrr_put16(p + 2, (uint16_t)(v >> 16));
}

void mrr_put64(uint8_t *p, uint64_t v)
{
	mrr_put32(p, (uint32_t)v);
	mrr_put32(p + 4, (uint32_t)(v >> 32));
}

/* Eight bytes at a time ("slicing"): a program passes through here four
 * times on its way to the device and back. table[k][b] is the CRC of byte b
 * followed by k zero bytes. */
static uint32_t table[8][256];

static void make_table(void)
{
	for (uint32_t b = 0; b < 256; b++) {
		uint32_t c = b;

		for (int i = 0; i < 8; i++) {
			c = c & 1 ? c >> 1 ^ 0xedb88320u : c >> 1;
		}
		table[0][b] = c;
	}
	for (int k = 1; k < 8; k++) {
		for (int b = 0; b < 256; b++) {
			uint32_t c = table[k - 1][b];

			table[k][b] = c >> 8 ^ table[0][c & 0xff];
		}
	}
}

uint32_t mrr_crc32(uint32_t crc, const void *data, size_t len)
{
	const uint8_t *p = data;

	if (!table[0][1]) {
		make_table();
	}
	crc = ~crc;
	for (; len >= 8; len -= 8, p += 8) {
		uint32_t low = crc ^ mrr_get32(p), high = mrr_get32(p + 4);

		crc = table[7][low & 0xff] ^ table[6][low >> 8 & 0xff] ^
		      table[5][low >> 16 & 0xff] ^ table[4][low >> 24] ^
		      table[3][high & 0xff] ^ table[2][high >> 8 & 0xff] ^
		      table[1][high >> 16 & 0xff] ^ table[0][high >> 24];
	}
	for (; len; len--, p++) {
		crc = crc >> 8 ^ table[0][(crc ^ *p) & 0xff];
	}
	return ~crc;
}

int64_t mrr_frame_length(const uint8_t *data, size_t len, size_t from, void *arg)
{
	uint32_t n;

	(void)from;	/* the head has the length */
	(void)arg;
	if ((len >= 1 && data[0] != MRR_MAGIC) || (len >= 2 && data[1] != MRR_VERSION)) {
		return -1;
	}
	if (len < MRR_HEAD) {
		return 0;
	}
	n = mrr_get32(data + 12);
	if (n > MRR_MAX_DATA) {
		return -1;
	}
	return len >= MRR_HEAD + n + 4 ? MRR_HEAD + n + 4 : 0;
}

bool mrr_decode(const uint8_t *data, size_t len, struct mrr_frame *frame)
{
	if (len < MRR_HEAD + 4 || mrr_get32(data + 12) != len - MRR_HEAD - 4 ||
	    mrr_get32(data + len - 4) != mrr_crc32(0, data, len - 4)) {
		return false;
	}
	frame->op = data[2];
	frame->code = data[3];
	frame->seq = mrr_get32(data + 4);
	frame->page = mrr_get16(data + 8);
	frame->offset = mrr_get16(data + 10);
	frame->len = mrr_get32(data + 12);
	frame->data = data + MRR_HEAD;
	return true;
}

void mrr_encode(struct buf *b, const struct mrr_frame *frame)
{
	uint8_t head[MRR_HEAD] = { MRR_MAGIC, MRR_VERSION, frame->op,
				   frame->code };
	uint8_t crc[4];
	size_t from = b->len;

	mrr_put32(head + 4, frame->seq);
	mrr_put16(head + 8, frame->page);
	mrr_put16(head + 10, frame->offset);
	mrr_put32(head + 12, frame->len);
	buf_add(b, head, sizeof(head));
	buf_add(b, frame->data, frame->len);
	mrr_put32(crc, mrr_crc32(0, b->data + from, b->len - from));
	buf_add(b, crc, sizeof(crc));
}

void mrr_put_tune(uint8_t *p, const struct ring_setting *t)
{
	mrr_put16(p, t->step);
	mrr_put16(p + 2, t->node);
	mrr_put16(p + 4, t->channel);
	p[6] = (uint8_t)(t->dir << 7 | t->mode);
	p[7] = t->fibre;
}

void mrr_get_tune(const uint8_t *p, struct ring_setting *t)
{
	t->step = mrr_get16(p);
	t->node = mrr_get16(p + 2);
	t->channel = mrr_get16(p + 4);
	t->dir = p[6] >> 7;
	t->mode = p[6] & 0x7f;
	t->fibre = p[7];
}

void mrr_put_dead(uint8_t *p, const struct ring_fault *d)
{
	p[0] = d->part;
	p[1] = d->dir;
	p[2] = d->fibre;
	p[3] = d->why;
	mrr_put16(p + 4, d->node);
	mrr_put16(p + 6, d->channel);
}

void mrr_get_dead(const uint8_t *p, struct ring_fault *d)
{
	*d = (struct ring_fault){
		.part = p[0], .dir = p[1], .fibre = p[2], .why = p[3],
		.node = mrr_get16(p + 4), .channel = mrr_get16(p + 6) };
}

uint32_t mrr_put_event(uint8_t p[MRR_EVENT_BYTES + MRR_FAILURE_BYTES], const struct mrr_event *n)
{
	mrr_put32(p, n->flags);
	mrr_put32(p + 4, n->code);
	mrr_put32(p + 8, n->boots);
	if (!n->has_place) {
		return MRR_EVENT_BYTES;
	}
	mrr_put_dead(p + MRR_EVENT_BYTES, &n->place);
	return MRR_EVENT_BYTES + MRR_FAILURE_BYTES;
}

bool mrr_get_event(const struct mrr_frame *f, struct mrr_event *n)
{
	*n = (struct mrr_event){ .has_place = f->len > MRR_EVENT_BYTES };
	if (f->op != MRR_EVENT || (f->len != MRR_EVENT_BYTES &&
	    f->len != MRR_EVENT_BYTES + MRR_FAILURE_BYTES)) {
		return false;
	}
	n->flags = mrr_get32(f->data);
	n->code = mrr_get32(f->data + 4);
	n->boots = mrr_get32(f->data + 8);
	if (n->has_place) {
		mrr_get_dead(f->data + MRR_EVENT_BYTES, &n->place);
	}
	return true;
}

void mrr_put_window(uint8_t *p, const struct ring_window *w)
{
	mrr_put16(p, w->first_node);
	mrr_put16(p + 2, w->nodes);
	mrr_put16(p + 4, w->first_channel);
	mrr_put16(p + 6, w->channels);
}

void mrr_get_window(const uint8_t *p, struct ring_window *w)
{
	w->first_node = mrr_get16(p);
	w->nodes = mrr_get16(p + 2);
	w->first_channel = mrr_get16(p + 4);
	w->channels = mrr_get16(p + 6);
}

bool mrr_is_text(const uint8_t *p, size_t size)
{
	size_t n = strnlen((const char *)p, size);

	for (size_t i = n; i < size; i++) {
		if (p[i]) {
			return false;
		}
	}
	return n > 0 && n < size;
}

const char *mrr_code_text(uint8_t code)
{
	static const char *const texts[MRR_N_CODES] = {
		"no error", "bad frame", "bad address", "bad length",
		"register is read-only", "busy", "bad program", "CRC differs",
		"a newer writer has committed", "interlock is open",
		"another program has that part of the ring",
		"not enough program memory",
		"no answer from the resonators' bus",
	};

	return code < MRR_N_CODES ? texts[code] : "unknown code";
}

const char *mrr_last_code_text(uint32_t code)
{
	switch (code) {
	case MRR_CODE_NONE:
		return "nothing";
	case MRR_CODE_OUT_OF_RANGE:
		return "out of range";
	case MRR_CODE_BUS:
		return "bus error";
	case MRR_CODE_INTERLOCK:
		return "interlock";
	case MRR_CODE_POWERED_UP:
		return "powered up";
	}
	return "unknown code";
}
