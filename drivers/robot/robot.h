/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text of a robot's command line, whoever made the robot. Pure text work
 * that trusts nothing. Private to drivers and emulators.
 *
 * An answer is the echo of its command, lines of text and a prompt. What the
 * robot prints unasked comes between all of these, also between a
 * prompt and the next echo.
 */
#ifndef WEFT_DRIVERS_ROBOT_ROBOT_H
#define WEFT_DRIVERS_ROBOT_ROBOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "drivers/core/batch.h"
#include "drivers/core/driver.h"
#include "drivers/core/driver_base.h"
#include "drivers/core/tcp_session.h"
#include "drivers/core/xc_map.h"
#include "lib/base/vec.h"

#define ROBOT_MAX_FRAME (1 << 20)
#define ROBOT_MAX_PORT 4096

/* A port as the robot's table has it. */
struct robot_port {
	bool is_out;
	int index;
	bool locked, disabled, connected;
	int64_t moves;		/* counter of its wear, -1: unknown */
	int peer;		/* on the other side, -1: none named */
};

/* The length of the prompt at the head of a line, 0 when there is none. */
typedef size_t (*robot_prompt_fn)(const uint8_t *line, size_t len, const void *arg);

/* Length of the first frame, up to and with its prompt: 0 when more bytes
 * are needed, negative at a byte that no command line prints. The first
 * `from` bytes were looked at before and held no prompt.
 * O(len - from + the line that `from` is in). */
int64_t robot_frame(const uint8_t *data, size_t len, size_t from,
		    robot_prompt_fn prompt, const void *arg);

/* Where in a frame the text after the echo of the command begins; NULL when
 * the command is not echoed there, so that it is no answer to it. Blanks may
 * stand before the echo and behind it. */
const char *robot_answer(const char *frame, const char *command);

/*
 * Reading what a ROME robot's command line prints. Pure text work that trusts
 * nothing. Private to drivers and emulators.
 *
 * Its prompt is its name, the state that it is in, and a mark: `ROME[OPER]# `,
 * `s53[TECH]#`. An AFM, its elder sister, has the same words and prints numbers
 * where a ROME prints `Locked` or `Connected`.
 */

/* A robot_prompt_fn; arg is not used. */
size_t rome_prompt(const uint8_t *line, size_t len, const void *arg);

/* `E12[1AE12]` and `W7` : side and number from 0. */
bool rome_parse_port(const char *word, bool *is_out, int *index);

/* A row of `port show` of either kind; false for any other line. The line is
 * cut. A port that is not connected may still name the one it was connected
 * to. */
bool rome_parse_row(char *line, struct robot_port *port);

/* `connection show pending`: nothing waits and nothing is in process. */
bool rome_is_idle(const char *text);

/* An unasked line about the operation on E-W: 1 it succeeded, -1 it failed, 0
 * something else. */
int rome_move_report(const char *line, struct optics_xc xc);

/* The same about any operation: circuits have changed, or a move failed. ev
 * gets its kind and the East port. False: it is about none. */
bool rome_event(const char *line, struct drv_event *ev);

/*
 * Reading what a Telescent robot's command line prints. Pure text work that
 * trusts nothing. Private to drivers and emulators.
 *
 * Ports have an input and an output each and are numbered from 0: row * 12 +
 * column of the table that `switchstate` prints. A row is
 * `R3#O  A123 U456 ...`: the cell of an output names the input whose fibre is
 * in it, allocated (A) or only left there (U). Reconstructed: the letters L
 * (locked) and F (failed) behind these, and all unasked lines.
 */

#define TELESCENT_COLUMNS 12

/* A row of `switchstate`: its cells, as output ports. Returns how many there
 * are, 0 for any other line. O(line). */
int telescent_parse_row(const char *line, struct robot_port cells[TELESCENT_COLUMNS]);

/* A robot_prompt_fn: one word of letters, digits, `@`, `.`, `-` or `_`, and
 * `>`, perhaps with a blank; arg is not used. */
size_t telescent_prompt(const uint8_t *line, size_t len, const void *arg);

/* The error text in an answer, NULL when there is none. */
const char *telescent_error(const char *text);

/* Whether an answer to `switchstate input N` says that the port is not in
 * use and locked all the same. */
bool telescent_is_reserved(const char *text);

/* An unasked line about connecting xc, or about ending what its input is in: 1
 * it succeeded, -1 it failed, 0 something else. */
int telescent_move_report(const char *line, struct optics_xc xc, bool connect);

/* The same about any move: circuits have changed, or it failed. ev gets its
 * kind and the input. False: it is about none. */
bool telescent_event(const char *line, struct drv_event *ev);

/*
 * What the drivers of robotic patch panels share: a session of a command
 * line, a queue of moves that take minutes, text that comes unasked, and a
 * table of ports that shows what is true. A maker's dialect is a table of
 * words; see rome.c and telescent.c. Private to drivers.
 *
 * A move takes minutes. What a command is answered with is a place in the
 * robot's queue; later, at any place in the session, a line says how the move
 * ended, and the table of ports shows it. So every batch ends in waiting until
 * the robot is done and reading the table. A move that was not confirmed is never
 * sent again, and goes on a homing run only when people ask for
 * one.
 *
 * A move joins one fibre of a pair. When one half of a duplex link fails the
 * caller takes the other back, as it does with any change.
 */

#define ROBOT_COMMAND_MAX 64

/* Why nothing is connected to a port. */
enum robot_bar { ROBOT_FREE, ROBOT_LOCKED, ROBOT_DISABLED };

struct robot_move {
	struct optics_xc xc;
	bool connect;
	int item;		/* -1: only clears the way */
	int result;		/* as reported: 1 done, -1 failed, 0 none yet */
	bool shown;		/* by the table, since */
};

struct robot;

/* Takes a row of the table. WEFT_EDEVICE. */
int robot_take_port(struct robot *r, const struct robot_port *row, struct err *err);

struct robot_dialect {
	const char *in_letter, *out_letter;	/* before a port's number */
	int first_port;				/* the device's number of 0 */
	size_t (*prompt)(const uint8_t *line, size_t len, const void *robot);

	/* Asks for the identity; NULL: the banner before the first prompt
	 * has it, and nothing lists the queue: moves of a session that was lost
	 * may be made for as long as one may take. */
	const char *ask_identity;
	void (*identity)(char *text, char *identity, size_t size);

	/* All ports and what they are connected to. Each row of an answer
	 * goes to robot_take_port(). */
	const char *ask_table;
	int (*table)(struct robot *r, char *text, struct err *err);

	/* The k-th command for a move; false behind the last. Only the last
	 * moves something. */
	bool (*command)(const struct robot_move *m, int k, char *text, size_t size);
	/* Why a command was refused; NULL: it was not. */
	const char *(*refusal)(const struct robot_move *m, const char *text);

	/* Whether anything is still to be done is seen in what this answers;
	 * asked every poll_ms. */
	const char *ask_pending;
	bool (*idle)(struct robot *r, char *text);
	/* What keeps it, as text for an error, from an answer to the same;
	 * NULL: its moves take long. */
	const char *(*obstacle)(const char *text);

	/* What sends it on a homing run, what it prints when that is over, and
	 * what lets it move again then; NULL: none is known. */
	const char *homing, *homed, *enable;

	/* An unasked line about a move: 1 it succeeded, -1 it failed, 0
	 * something else. */
	int (*move_result)(const char *line, const struct robot_move *m);
	/* The event in an unasked line that is not about our moves: its kind
	 * and port. False: none. */
	bool (*event_of)(const char *line, struct drv_event *ev);
};

struct robot {
	struct driver_base h;
	const struct robot_dialect *dialect;
	int64_t gap_ms, poll_ms, move_ms, wear_limit, idle_s;
	char prompt[32];	/* by option, where a dialect has that, or "" */
	char banner[DRV_TEXT_MAX];
	uint64_t tag;
	char command[ROBOT_COMMAND_MAX];	/* the one that is out */
	void (*next)(struct robot *r, char *text);
	struct xc_map map;
	int64_t *moves;		/* [flat port] wear, -1: unknown */
	enum robot_bar *bars;	/* [flat port] */
	int n_in, n_out;	/* while reading the table */
	void (*after_table)(struct robot *r);
	struct batch batch;
	VEC(struct robot_move) queue;	/* of the command run */
	size_t at_move;
	int at_command;		/* of that move */
	int64_t until_ns, began_ns;	/* of the wait for the moves */
	int64_t move_ns;	/* what a move takes, as seen; 0: none seen */
	int over;		/* moves of the run, when they were looked at last, */
	int64_t over_ns;	/* and since when it is so many */
	int64_t reported_ns;	/* when progress was reported last */
	int reported;		/* and how many items were over then */
	int64_t late_ns;	/* until then moves of a session that was lost may be made */
	int64_t blocked_ns;	/* since when it waits for people, or 0 */
	bool homed;		/* recover: it reported its end */
	char failed[DRV_TEXT_MAX];	/* its last line about a failed move */
};

/* Marks the moves that show in r->map, as read just now. O(moves). */
void robot_mark_shown(struct robot *r);
/* Each of the queued moves shows in a table, or its end was reported.
 * O(moves). */
bool robot_all_over(const struct robot *r);
/* Reads a table into r->map: begin, rows, end. WEFT_EVERIFY when the size
 * is another. */
int robot_read_table(struct robot *r, char *text, struct err *err);

/* A class of these has a robot_dialect; its options are some of gap_ms, queue,
 * poll_ms, move_ms, wear_limit, idle_s and prompt. */
extern const struct base_ops robot_ops;
void robot_explain(struct drv *dev, const struct drv_batch *batch, drv_trace_fn fn, void *arg);

#endif
