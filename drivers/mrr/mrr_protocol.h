/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The register protocol of MRR ring controllers: frames, registers, banks.
 * Reconstructed: no vendor's protocol is public; docs/drivers.md describes
 * this one. Numbers are little-endian. Private to drivers and emulators.
 *
 *   0 magic   1 version  2 operation  3 code   4 sequence (4)
 *   8 page (2)          10 offset (2)         12 length of data (4)
 *  16 data ...             then CRC-32 (IEEE) of all before (4)
 */
#ifndef WEFT_DRIVERS_MRR_MRR_PROTOCOL_H
#define WEFT_DRIVERS_MRR_MRR_PROTOCOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "drivers/optics/optics.h"
#include "lib/base/buf.h"

#define MRR_MAGIC 0x57
#define MRR_VERSION 1
#define MRR_HEAD 16
#define MRR_MAX_DATA (32 << 10)
#define MRR_MAX_FRAME (MRR_HEAD + MRR_MAX_DATA + 4)

enum mrr_op {
	MRR_READ = 1,		/* data: length wanted (4) */
	MRR_WRITE = 2,
	MRR_READ_OK = 0x81,
	MRR_WRITE_OK = 0x82,
	MRR_EVENT = 0x83,	/* unasked, sequence 0: struct mrr_event */
	MRR_NACK = 0xff,	/* code, data: detail (4) */
};

enum mrr_code {
	MRR_OK,
	MRR_BAD_FRAME,
	MRR_BAD_ADDRESS,
	MRR_BAD_LENGTH,
	MRR_READ_ONLY,
	MRR_BUSY,
	MRR_BAD_PROGRAM,	/* detail: slot */
	MRR_BAD_CRC,		/* detail: the CRC found */
	MRR_STALE_WRITER,
	MRR_INTERLOCK,
	MRR_CONFLICT,		/* detail: slot that has it already */
	MRR_NO_MEMORY,		/* detail: bytes there are */
	MRR_BUS,		/* the resonators' bus did not answer */
	MRR_N_CODES
};

/* Page 0: registers of the device. */
enum mrr_register {
	MRR_ID = 0x00,			/* "WMRR" */
	MRR_REVISION = 0x04,		/* MRR_REVISION_NOW */
	MRR_NODES = 0x08,
	MRR_CHANNELS = 0x0c,
	MRR_FIBRES = 0x10,		/* per direction */
	MRR_MAX_STEPS = 0x14,
	MRR_MEMORY = 0x18,		/* bytes for all programs together */
	MRR_MAX_WINDOW = 0x1c,		/* longest data of one frame */
	MRR_SERIAL = 0x20,		/* 32 bytes of text, zero padded */
	MRR_BOOTS = 0x40,
	MRR_GENERATION = 0x44,		/* commits since the start */
	MRR_WRITER = 0x48,		/* 8: highest fence that committed */
	MRR_FLAGS = 0x50,		/* latched; writing 1 clears */
	MRR_LAST_CODE = 0x54,		/* enum mrr_last_code */
	MRR_STATUS = 0x58,		/* enum mrr_status */
	MRR_SLOTS = 0x5c,
	MRR_FENCE = 0x60,		/* 8, rw: who is about to commit */
	MRR_MASK = 0x68,		/* 8, rw: slots to commit, a bit each */
	MRR_COMMIT = 0x70,		/* w: MRR_COMMIT_WORD */
	MRR_MEMORY_USED = 0x74,
	MRR_MAX_TUNES = 0x78,		/* settings of a program */
	MRR_FEATURES = 0x7c,		/* enum mrr_feature */
	MRR_USED = 0x80,		/* 8: slots that run a program */
	MRR_REGISTERS = 0x88,		/* bytes of the page that are read */
	/* Only with the feature that they belong to. */
	MRR_RELOCK = 0x88,		/* w: MRR_RELOCK_WORD */
	MRR_EVENTS = 0x8c,		/* w: 1: events come in this session */
};

/* Page MRR_SLOT + s: registers of slot s, which runs one program. */
enum mrr_slot_register {
	MRR_SLOT_STATUS = 0x00,		/* enum mrr_status */
	MRR_SLOT_GENERATION = 0x04,	/* commits that named it */
	MRR_SLOT_WRITES = 0x08,		/* to its registers and bank */
	MRR_SLOT_BYTES = 0x0c,
	MRR_SLOT_CRC = 0x10,
	MRR_SLOT_STEPS = 0x14,
	MRR_SLOT_WINDOW = 0x18,		/* 8: first node, nodes, first channel,
					 * channels */
	MRR_SLOT_NAME = 0x20,		/* 64 bytes of text, zero padded */
	MRR_LOCK_TOTAL = 0x60,
	MRR_LOCK_FAILED = 0x64,
	MRR_LOCK_TUNE = 0x68,		/* 8: the first that failed */
	MRR_LOCK_STATE = 0x70,		/* enum resonator_lock */
	MRR_STEP = 0x78,		/* step in effect */
	MRR_STEP_CONTROL = 0x7c,	/* rw: MRR_AUTOSTEP, MRR_TRIGGER */
	MRR_STAGE = 0x80,		/* rw: enum mrr_stage */
	MRR_STAGE_BYTES = 0x84,		/* rw */
	MRR_STAGE_CRC = 0x88,		/* rw: as the writer computes it */
	MRR_STAGE_CRC_FOUND = 0x8c,	/* as the device finds it */
	MRR_STAGE_WINDOW = 0x90,	/* 8, rw */
	MRR_STAGE_NAME = 0x98,		/* 64, rw */
	MRR_SLOT_REGISTERS = 0xd8,
};

#define MRR_REVISION_NOW 2
#define MRR_COMMIT_WORD 0x54494d43u	/* "CMIT" */
#define MRR_RELOCK_WORD 0x4b434c52u	/* "RLCK" */

/* What the controller met last. */
enum mrr_last_code {
	MRR_CODE_NONE = 0,
	MRR_CODE_OUT_OF_RANGE = 1,	/* a tuner is at its limit */
	MRR_CODE_BUS = 19,
	MRR_CODE_INTERLOCK = 20,
	MRR_CODE_POWERED_UP = 90,	/* without a command */
};

enum mrr_flag {
	MRR_FLAG_LOL = 1,		/* a lock was lost */
	MRR_FLAG_INTERLOCK = 2,
	MRR_FLAG_POWERED_UP = 4,
	MRR_FLAG_LIMIT = 8,		/* a tuner came to its limit */
	MRR_FLAG_BUS = 16,		/* the resonators' bus was silent */
};

/* OVERLAP: resonators are set for a later step while others carry data, none
 * while light is on it. */
/* FAILURES: page MRR_FAILURE_TABLE says what has failed, whether a program uses
 * it or not. */
/* LOCKS: page MRR_LOCK_TABLE says which resonators that programs use hold no
 * wave. EVENTS: what happens is reported at once, in sessions that asked for it.
 * RELOCKS: resonators that hold no wave search again without a commit. */
enum mrr_feature {
	MRR_OVERLAP = 1,
	MRR_FAILURES = 2,
	MRR_LOCKS = 4,
	MRR_SENDS_EVENTS = 8,
	MRR_RELOCKS = 16,
};

enum mrr_status { MRR_HAS_PROGRAM = 1, MRR_LOCKING = 2, MRR_INTERLOCKED = 4 };
enum mrr_step_control { MRR_AUTOSTEP = 1, MRR_TRIGGER = 2 };
/* What a commit makes of a slot. */
enum mrr_stage { MRR_STAGE_NOTHING, MRR_STAGE_LOAD, MRR_STAGE_CLEAR };

/* Each slot has two banks for packed programs (drivers/optics/optics.h), seen
 * through pages of 32 KiB: byte b of slot s is at offset b % 32 KiB of page
 * bank + s * MRR_SLOT_PAGES + b / 32 KiB. */
#define MRR_MAX_SLOTS 64
#define MRR_SLOT 0x0100
#define MRR_PAGE_BYTES (32u << 10)
#define MRR_SLOT_PAGES 0x0100u
#define MRR_SLOT_MEMORY (MRR_SLOT_PAGES * MRR_PAGE_BYTES)
enum mrr_bank { MRR_SHADOW = 0x4000, MRR_ACTIVE = 0x8000 };

/* The table of failures: how many there are (4), then the first of them, as
 * many as fit into one frame; each a part (1, enum ring_part), direction (1), fibre (1),
 * why (1, enum resonator_lock), node (2), channel (2). */
#define MRR_FAILURE_TABLE 0x0200
/* Of the same form: resonators that programs use and that hold no wave. Not
 * those that have not begun to search, as while the interlock is open. */
#define MRR_LOCK_TABLE 0x0201
#define MRR_FAILURE_BYTES 8
#define MRR_MAX_FAILURES ((MRR_MAX_DATA - 4) / MRR_FAILURE_BYTES)

/* One setting in a lock register: step (2), node (2), channel (2),
 * direction << 7 | mode (1), fibre (1). */
#define MRR_TUNE_BYTES 8

/* The data of an event: FLAGS (4), LAST_CODE (4), BOOTS (4), then, if it is about
 * a resonator, that as in a table (8). */
struct mrr_event {
	uint32_t flags, code, boots;
	bool has_place;
	struct ring_fault place;
};
#define MRR_EVENT_BYTES 12

struct mrr_frame {
	uint8_t op, code;
	uint32_t seq;
	uint16_t page, offset;
	uint32_t len;
	const uint8_t *data;	/* into the bytes that were decoded */
};

/* Little-endian, at any alignment. */
uint16_t mrr_get16(const uint8_t *p);
uint32_t mrr_get32(const uint8_t *p);
uint64_t mrr_get64(const uint8_t *p);
void mrr_put16(uint8_t *p, uint16_t v);
void mrr_put32(uint8_t *p, uint32_t v);
void mrr_put64(uint8_t *p, uint64_t v);

/* CRC-32 (IEEE 802.3) of data, continuing from crc (0 to begin). */
uint32_t mrr_crc32(uint32_t crc, const void *data, size_t len);

/* Length of the frame that data begins with, 0 when that is not known yet or
 * it is not whole, negative when it can be none. */
int64_t mrr_frame_length(const uint8_t *data, size_t len, size_t from, void *arg);
/* Takes a whole frame apart. False when the CRC is wrong. */
bool mrr_decode(const uint8_t *data, size_t len, struct mrr_frame *frame);
/* Appends a whole frame. */
void mrr_encode(struct buf *b, const struct mrr_frame *frame);

/* MRR_TUNE_BYTES of a setting, MRR_FAILURE_BYTES of a part that failed. */
void mrr_put_tune(uint8_t *p, const struct ring_setting *t);
void mrr_get_tune(const uint8_t *p, struct ring_setting *t);
void mrr_put_dead(uint8_t *p, const struct ring_fault *d);
void mrr_get_dead(const uint8_t *p, struct ring_fault *d);
/* Its length. */
uint32_t mrr_put_event(uint8_t p[MRR_EVENT_BYTES + MRR_FAILURE_BYTES], const struct mrr_event *n);
/* False when it is no event's data. */
bool mrr_get_event(const struct mrr_frame *f, struct mrr_event *n);
void mrr_put_window(uint8_t *p, const struct ring_window *w);
void mrr_get_window(const uint8_t *p, struct ring_window *w);
/* Text of `size` bytes with at least one zero, all zero from the first on. */
bool mrr_is_text(const uint8_t *p, size_t size);

/* Of a reply's code: "busy". */
const char *mrr_code_text(uint8_t code);
/* "powered up" */
const char *mrr_last_code_text(uint32_t code);

#endif
