/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The device side of TL1, without sockets: commands are taken apart, log-in,
 * target names and tags are seen to, answers framed and paged. What a verb
 * does is the vendor's table.
 */
#ifndef WEFT_DRIVERS_EMULATORS_TL1_TL1_H
#define WEFT_DRIVERS_EMULATORS_TL1_TL1_H

#include "drivers/emulators/core/emulator.h"
#include "lib/base/vec.h"

#define TL1_MAX_COMMAND (16 << 10)

struct tl1_device;

/* VERB:TID:AID:CTAG:GENERAL:PAYLOAD; the payload may hold more colons. */
struct tl1_request {
	char *verb, *tid, *aid, *tag, *general, *payload;
};

/* A command of a vendor. One that sets is subject to the faults of set
 * commands. */
struct tl1_verb {
	const char *name;
	bool set;	/* it changes light */
	/* Carries out d->request and appends the lines of the answer. NULL when that
	 * went well, else the code of the denial. */
	const char *(*run)(struct tl1_device *d);
};

struct tl1_vendor {
	const char *prompt;		/* after every answer, or "" */
	int page;			/* lines in a page, 0: all */
	const struct tl1_verb *verbs;	/* ends at a NULL name */
	/* The address of a port in a report. */
	void (*port)(const struct emu *e, int flat, char *text, size_t size);
};

/* An emulated TL1 switch: what all vendors have, and the two-phase circuits
 * that only some use. */
struct tl1_device {
	struct emu *e;
	const struct tl1_vendor *vendor;
	struct tl1_request request;	/* the one being carried out */
	bool *disabled;		/* by command, per flat port */
	struct optics_xc *entered;	/* two-phase: not active yet */
	size_t n_entered;
	int n_failed;		/* of the last bulk */
	int64_t *made_ns;	/* [in], by command; 0: never */
	uint64_t n_reports;
	struct xc_map known;	/* what was reported, or done by command */
	bool *failed;		/* reported, per flat port */
	VEC(char *) lines;	/* of the answer being made */
	char remark[96];	/* of the denial being made */
};

/* One line of the answer, to be quoted. */
void tl1_put_line(struct tl1_device *d, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Sets the remark of a denial and returns its code. */
const char *tl1_deny(struct tl1_device *d, const char *code, const char *remark);
/* Why a circuit cannot be made: a port failed, disabled, refused, or busy.
 * NULL when it can. */
const char *tl1_obstacle(struct tl1_device *d, struct optics_xc xc);
/* Makes a circuit and notes when, unless a fault makes the switch only
 * pretend. Ports in use are released. */
void tl1_connect(struct tl1_device *d, struct optics_xc xc);

/* What the vendors' dialects have alike, for their initialisers. */
#define TL1_DIALECT(vendor) \
	.kind = DRV_SPACE, .max_input = TL1_MAX_COMMAND, .table = (vendor), \
	.open = tl1_emu_open, .close = tl1_emu_close, .input = tl1_emu_input, \
	.refresh = tl1_emu_refresh, .dark = tl1_emu_dark

/* The functions of an emu_dialect; its table is the tl1_vendor. */
void tl1_emu_open(struct emu *e);
void tl1_emu_close(struct emu *e);
int64_t tl1_emu_input(struct emu_client *c, const uint8_t *data, size_t len);
void tl1_emu_refresh(struct emu *e, enum emu_map_event event);
/* A circuit lets no light by: it failed after it was made, or a port of it is
 * closed. */
bool tl1_emu_dark(struct emu *e, struct optics_xc xc);

#endif
