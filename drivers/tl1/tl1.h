/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What all TL1 dialects share: the frame of a device's messages, its denial
 * codes, and `NAME=VALUE` lists. Pure text work that trusts nothing; the
 * session that it serves is in tl1_private.h. Private to drivers and emulators.
 *
 * A message, with CR LF between its lines:
 *
 *	   SID 26-11-21 09:30:00
 *	M  17 COMPLD
 *	   "quoted line"
 *	   free text between comment marks
 *	;
 *
 * It ends in a line that holds only `;`, or `>` when another page of the same
 * answer follows, or `<` after an acknowledgement. Whatever stands before
 * the header (an echo, a prompt) is passed over. A quoted text may go on over
 * several lines that end in commas. Some devices leave the quotes out.
 */
#ifndef WEFT_DRIVERS_TL1_TL1_H
#define WEFT_DRIVERS_TL1_TL1_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "drivers/core/driver.h"

/* The longest page, and the longest answer of all its pages. */
#define TL1_MAX_FRAME (1 << 20)
#define TL1_MAX_ANSWER (4 << 20)
#define TL1_SID_MAX 64
#define TL1_CODE_MAX 8

struct tl1_line {
	char *text;		/* without its quotes */
	bool quoted;		/* else it may be anything */
};

enum tl1_kind {
	TL1_RESPONSE,
	TL1_AUTONOMOUS,		/* an alarm or event report */
	TL1_ACK,		/* the answer itself is still to come */
};

struct tl1_message {
	enum tl1_kind kind;
	char sid[TL1_SID_MAX];	/* the name the device gives itself */
	uint64_t tag;		/* of a response; an absent one reads as 0 */
	bool denied;
	bool more;		/* another page follows */
	char code[TL1_CODE_MAX];	/* denied: the four letters, or "" */
	char report[DRV_TEXT_MAX];	/* autonomous: verb and first line */
	char remark[DRV_TEXT_MAX];	/* the free text, on one line */
	size_t n_lines;
	struct tl1_line *lines;	/* comments aside */
	char *text;		/* what they point into */
};

/* Length of the first frame in data: 0 when more bytes are needed, negative
 * when a byte in it can be part of no message. The first
 * `from` bytes were asked about before; arg is not used. O(len - from). */
int64_t tl1_frame(const uint8_t *data, size_t len, size_t from, void *arg);

/* Reads one whole frame. WEFT_EDEVICE; then m is empty. */
int tl1_parse(const uint8_t *frame, size_t len, struct tl1_message *m, struct err *err);
void tl1_message_fini(struct tl1_message *m);

/* What a denial code means: its class, and words for it ("" when it is not
 * in the vendors' tables). */
enum drv_class_of_error tl1_code_class(const char *code);
const char *tl1_code_words(const char *code);

/* Finds NAME=VALUE in text, a list parted by commas with perhaps another
 * field and a colon before it, and copies VALUE, cut to size. Names are the same in
 * either case; a value in quotes loses them and may hold commas. False, with
 * value "", when there is no such name. */
bool tl1_value(const char *text, const char *name, char *value, size_t size);

#endif
