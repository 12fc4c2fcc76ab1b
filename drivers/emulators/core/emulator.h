/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The common part of the emulators: sessions, replies with their faults, the
 * control socket, the kept state. A dialect only reads commands and answers.
 * Private to emulators.
 */
#ifndef WEFT_DRIVERS_EMULATORS_CORE_EMULATOR_H
#define WEFT_DRIVERS_EMULATORS_CORE_EMULATOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <uv.h>

#include "drivers/core/xc_map.h"
#include "drivers/emulators/core/fault.h"
#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/base/vec.h"

struct emu;
struct emu_client;

/* What becomes of a command: done and answered, done and never answered,
 * neither, or done and the session ended. */
enum emu_fate { EMU_DO, EMU_DO_SILENTLY, EMU_EAT, EMU_DO_AND_DROP };

/* Why e->mem is another than the dialect left it: the device restarted; the
 * control socket's user changed a circuit or the faults; or it was changed
 * without a report (a loss of the map, a set command that completes late). */
enum emu_map_event { EMU_RESTARTED, EMU_OTHER_USER, EMU_LOST_SILENTLY };

/* How some devices of a family answer, where they are not all alike; each is
 * known from public sources, which tests/data/transcripts names. */
struct emu_form {
	const char *name;
	const char *greeting;	/* what a session begins with; NULL: nothing */
	const char *prompt;	/* instead of the dialect's; NULL: as that */
	bool telnet;		/* clients may answer its options */
	bool echo;		/* of commands taken by emu_take_command() */
};

/* One driver's device side. Everything a dialect does, it does from these
 * functions, on the loop's thread; it keeps its own state in e->device and the
 * circuits in e->mem, and sends nothing but by emu_reply() and
 * emu_send_event(). */
struct emu_dialect {
	const char *name;	/* of the driver on the other side */
	enum drv_kind kind;
	size_t max_input;	/* longest command */
	bool completes;		/* the fault `complete` is its own business */
	/* The first is what it is without being told; ends at a NULL name. NULL:
	 * all its devices answer alike. */
	const struct emu_form *forms;

	const void *table;	/* what is the dialect's own, or NULL */
	/* Makes e->device from e->mem. */
	void (*open)(struct emu *e);
	void (*close)(struct emu *e);
	/* Takes whole commands off data and answers them. Returns the bytes
	 * taken, or a negative number to end the session. */
	int64_t (*input)(struct emu_client *c, const uint8_t *data, size_t len);
	/* e->mem is another. */
	void (*refresh)(struct emu *e, enum emu_map_event event);
	/* That a circuit of e->mem lets no light by; NULL: all do. */
	bool (*dark)(struct emu *e, struct optics_xc xc);
	/* The i-th circuit that light takes and e->mem has not, false: there
	 * are no more; NULL: there are none. */
	bool (*stale)(const struct emu *e, size_t i, struct optics_xc *xc);
	/* A word on the control socket that only this device knows; NULL: it
	 * knows none. Returns what is wrong, NULL when nothing is. */
	const char *(*command)(struct emu *e, const char *verb,
			       const char *arg, struct buf *answer);
};

/* The command line as parsed; strings are borrowed from argv. Sizes are ports
 * a side; of a ring, nodes and channels. */
struct emu_conf {
	const char *driver, *listen, *name, *control, *state, *address_file;
	int n_in, n_out, fibres;
	bool any_to_any;
	uint64_t seed;
	int64_t memory;		/* rings: bytes of programs */
	int slots;		/* rings: programs at a time */
	bool overlap;		/* rings: retune while others carry data */
	const char *plant;	/* folder of light that is shared; NULL: none */
	const char *form;	/* name of one; NULL: the first */
};

/* Who moved light: a session of the device, the control socket's second user,
 * a fault that strikes by itself, a restart. */
enum emu_by { EMU_BY_SESSION, EMU_BY_USER, EMU_BY_FAULT, EMU_BY_RESTART };

/* One entry of the change log: a circuit (xc, from 0) or, on rings, a program
 * that began (made) or ended. at_ns is monotonic. */
struct emu_move {
	enum emu_by by;
	bool made;
	int64_t at_ns;
	struct optics_xc xc;
	char program[RING_PROGRAM_NAME_MAX + 1];	/* rings, else "" */
	char digest[65];
};

/* The last changes, oldest first. The numbers of entries never repeat in one
 * run of the program, so a test that remembers how far it has read misses
 * nothing. */
struct emu_change_log {
	struct xc_map noted;	/* as it was at the last of them */
	enum emu_by by;		/* of those that are added */
	VEC(struct emu_move) list;
	uint64_t first;		/* the number of list.v[0] */
};

/* An emulated device. e->mem is the truth about its circuits; all else that a
 * dialect knows is in e->device. */
struct emu {
	struct emu_conf conf;
	const struct emu_dialect *dialect;
	const struct emu_form *form;	/* never NULL */
	void *device;
	uv_loop_t loop;
	struct xc_map mem;	/* the map that is in effect */
	struct emu_change_log moves;
	struct xc_map old;	/* the map at the start of the program */
	struct faults faults;
	/* Since the start of the program, for `stats`. */
	uint64_t n_commands, n_sets, n_sessions;
	char speaker[46];	/* the address that the last set command came from */
	/* the rest is emulator.c's */
	struct sockaddr_storage addr;
	uv_tcp_t *server;
	uv_pipe_t control;
	/* One-shot: the end of a restart's outage, the loss of the map, the
	 * end of the program, the first change that was put off. */
	uv_timer_t down, lost, stop, completion;
	struct emu_later *later;	/* changes to come, by time */
	bool holding;		/* a change is about to be put off */
	uv_signal_t sigterm, sigint;
	struct emu_client *clients;
};

extern const struct emu_dialect emu_calient_tl1;
extern const struct emu_dialect emu_glimmerglass_tl1;
extern const struct emu_dialect emu_mrr;
extern const struct emu_dialect emu_polatis_tl1;
extern const struct emu_dialect emu_restconf;
extern const struct emu_dialect emu_rome;
extern const struct emu_dialect emu_scpi;
extern const struct emu_dialect emu_sonic;
extern const struct emu_dialect emu_telescent;

/* The emulator that a session belongs to. */
struct emu *emu_of(struct emu_client *c);

/* Answers in another form from now on, greetings aside. Returns what is wrong,
 * NULL when nothing is. */
const char *emu_set_form(struct emu *e, const char *name);
bool emu_form_is(const struct emu *e, const char *name);
/* The prompt of the form, or the one that is the dialect's. */
const char *emu_prompt(const struct emu *e, const char *own);

/* For a dialect's input: takes one command that ends in a byte of `ends` off
 * data and gives it, as text without that byte, to run, which may change it.
 * Returns the bytes taken: 0 when it is not whole yet. */
int64_t emu_take_command(struct emu_client *c, const uint8_t *data, size_t len, const char *ends,
			 void (*run)(struct emu_client *c, char *command));
/* What a command's fate leaves to do: the reply goes out, or the session ends.
 * Frees out. */
void emu_finish_command(struct emu_client *c, enum emu_fate fate, struct buf *out);
/* Whether a fault holds at either port of xc. */
bool emu_holds_xc(struct emu *e, enum fault_kind kind, struct optics_xc xc);
/* A number for each session that is the dialect's own, 0 at first: whether its
 * user is logged in, was greeted, or subscribed to events. Valid as long as
 * the session. */
int64_t *emu_client_mark(struct emu_client *c);

/* Sends a reply, subject to the faults: it may come late, in pieces, twice, as
 * garbage or not at all. A session that is ending gets nothing. */
void emu_reply(struct emu_client *c, const void *bytes, size_t len);

/* Sends an autonomous message, in one session or in all, behind the replies
 * that wait there. Of the faults only `silence` applies: a test of late or
 * broken replies must know which message is hit. */
void emu_send_event_to(struct emu_client *c, const void *bytes, size_t len);
void emu_send_event(struct emu *e, const void *bytes, size_t len);
/* The same in the sessions with this mark. */
void emu_send_event_marked(struct emu *e, int64_t mark, const void *bytes, size_t len);

/* What is to become of a set command; counts it. To be called once for each
 * command that changes the device, before it is carried out: event faults are
 * used up by it. */
enum emu_fate emu_set_command(struct emu_client *c);

/* After a change of e->mem: saves it, logs it, publishes it to the plant, and
 * lets `lost` take its course. Does nothing while the fault `complete` holds
 * changes back; they are saved when they take effect. */
void emu_changed(struct emu *e);
/* The same where it was not a session's doing. */
void emu_changed_by(struct emu *e, enum emu_by by);

/* change_log.c. To be called when e->mem has its size and its first circuits,
 * which are no changes. */
void emu_change_log_init(struct emu *e);
void emu_change_log_fini(struct emu *e);
/* Adds what has moved since it was last called. */
void emu_log_changes(struct emu *e, enum emu_by by);
/* From this number on, a line each. Returns what is wrong, or NULL. */
const char *emu_report_changes(const struct emu *e, uint64_t from, struct buf *answer);
/* SHA-256 over a program's name, window and bytes. */
void emu_pack_digest(const struct ring_program *p, char hex[65]);

/* complete.c: takes commands as the dialect does; what they change is put off
 * as the fault `complete` says, unless the dialect sees to that fault itself.
 * Returns as dialect->input(). */
int64_t emu_input(struct emu_client *c, const uint8_t *data, size_t len);
/* Whether a change waits to take effect. */
bool emu_is_completing(const struct emu *e);
/* All changes that wait take effect at once, in order: the fault was
 * cleared. */
void emu_complete_now(struct emu *e);
/* Changes that wait are dropped: the device restarted before it made them. */
void emu_forget_later(struct emu *e);

/* Ends the session once its replies so far are out. */
void emu_drop(struct emu_client *c);

/* The device restarts: sessions end, its start counter rises, and its map is
 * `kept`, empty (`dark`) or as at the start of the program (`old`). It does
 * not listen for down_ms. */
void emu_restart(struct emu *e, const char *map, int64_t down_ms);
/* Starts or stops to listen, as the fault `refuse` says. */
void emu_apply_refuse(struct emu *e);
/* Ends the program's loop, a moment later: a reply under way still goes out. */
void emu_stop(struct emu *e);

/* control.c: listens on the control socket, if one is wanted. Only the owner
 * may connect (mode 0600). WEFT_EUNAVAIL. */
int emu_control_start(struct emu *e, struct err *err);
/* Ends one session of it. */
void emu_control_end(uv_handle_t *pipe);

/* The command line. The faults wait until the size of the device is known. */
struct emu_args {
	struct emu_conf conf;
	const char **faults;
	int n_faults;
	bool help, version;
};

/* args->faults is the caller's to free, also on error. WEFT_EUSAGE. */
int emu_args_parse(struct emu_args *args, int argc, char **argv, struct err *err);
/* Prints the help of --help, with the list of faults. */
void emu_usage(FILE *to);

/* The whole program: parses, listens, serves until a signal or `quit`. Returns
 * the exit status. */
int emulator_main(int argc, char **argv);

#endif
