/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What all switches that speak TL1 do alike: log in and learn the device's
 * name, ask and match answers of several pages, hand reports on, read the
 * map, and carry a batch out item by item. A vendor's dialect is a table:
 * what to ask, how to read a line, which commands make and end a circuit.
 * Private to drivers.
 *
 * A batch begins with a read of the map, so SAFE mode and the locks of other
 * users are kept here whatever the device would do. UPDATE ends the circuits
 * in the way by commands of their own, and REPLACE is deletes, then adds: no
 * TL1 dialect here replaces a map at once.
 *
 * An item whose first command was confirmed and whose second was denied is
 * UNKNOWN with the device's code: it is not as before, and a read shows what
 * it is.
 */
#ifndef WEFT_DRIVERS_TL1_TL1_PRIVATE_H
#define WEFT_DRIVERS_TL1_TL1_PRIVATE_H

#include "drivers/core/driver_base.h"
#include "drivers/core/power_monitors.h"
#include "drivers/core/tcp_session.h"
#include "drivers/core/xc_map.h"
#include "drivers/tl1/tl1.h"
#include "lib/base/vec.h"

struct tl1_switch;

#define TL1_PART_MAX 192

/* VERB:TID:AID:CTAG TAIL; the session supplies TID and CTAG. */
struct tl1_command {
	char verb[32];
	char aid[TL1_PART_MAX];
	const char *list;	/* in place of aid where that has no room;
				 * lives until the answer. NULL: aid */
	char tail[TL1_PART_MAX];	/* with its leading colons */
};

/* A circuit as a line of the device's map has it. */
struct tl1_circuit {
	struct optics_xc xc;
	enum drv_state state;	/* DRV_BLOCKED: entered, not activated */
	char owner[DRV_NAME_MAX];
	bool locked;		/* by its owner, who is not us */
	bool has_loss;
	int32_t loss_mdb;
	char name[TL1_PART_MAX];	/* where commands go by names, or "" */
	char trouble[48];	/* as text when failed */
};

enum tl1_when {
	TL1_IDENTITY,		/* asked before all else in a snapshot */
	TL1_SIZE,		/* also once in a session, before a batch */
	TL1_MAP,		/* the one that fills the circuits */
	TL1_PORTS,		/* after the map, in a snapshot */
	TL1_POWER,		/* the same, if powers are wanted */
};

/* One question and how to read its answer. */
struct tl1_read {
	enum tl1_when when;
	/* Makes the question. */
	void (*ask)(const struct tl1_switch *s, struct tl1_command *c);
	/* Takes one line of the answer, which it may change. WEFT_EDEVICE
	 * when it cannot be, WEFT_EVERIFY for another size. */
	int (*line)(struct tl1_switch *s, char *line, struct err *err);
	/* After the last of n lines; or NULL. */
	int (*end)(struct tl1_switch *s, size_t n, struct err *err);
	/* Attributes may come one a line: a record begins with this one; "": all
	 * lines are one. NULL: each line is one. */
	const char *record;
};

/* How the last command about many circuits goes. */
enum tl1_progress { TL1_UNDER_WAY, TL1_COMPLETED, TL1_FAILED, TL1_NO_WORD };

/* Commands about many circuits at a time. What they did is read from the map
 * afterwards, whatever the device says of them. */
struct tl1_bulk {
	const char *enter, *end;	/* verbs; a list of names follows */
	char between;			/* two names */
	/* The name of a circuit in such a list. */
	void (*name)(const struct tl1_switch *s, const struct tl1_circuit *c,
		     char *text, size_t size);
	const char *end_all;		/* verb; ends every circuit there is */
	const char *ask;		/* verb; how far is it? */
	enum tl1_progress (*progress)(const char *line);
};

struct tl1_dialect {
	int (*init)(struct tl1_switch *s, const struct drv_config *cfg,
		    struct err *err);	/* reads its options */
	/* Frees what the dialect's own struct has; NULL: nothing. */
	void (*fini)(struct tl1_switch *s);
	/* Before the size is asked for; NULL: nothing. */
	void (*begin_size)(struct tl1_switch *s);
	const char *vendor;		/* begins the identity */
	const char *password;		/* of its devices as they are sold */
	bool verify;	/* what is confirmed is read back */
	bool settles;	/* some time later: it may still fail */
	bool any_to_any;	/* knows such models */
	bool losses_from_power;	/* losses come from powers; has MONITOR_OPTIONS */
	const struct tl1_bulk *bulk;	/* NULL: knows none. Has the options
					 * of TL1_BULK_OPTIONS */
	int64_t typ_switch_us;
	const struct tl1_read *reads;	/* in order of `when`; ends at a NULL
					 * ask */
	/* The step-th command, from 0, that makes (ADD) or ends (DEL) a
	 * circuit; false behind the last. A circuit that is entered but not
	 * activated begins at step 1. */
	bool (*command)(const struct tl1_switch *s, enum drv_op op, int step,
			const struct tl1_circuit *c, struct tl1_command *cmd);
	/* The command that enables or disables a port; NULL: none is known,
	 * and the class has no port_set. */
	void (*port_command)(const struct tl1_switch *s, struct drv_port_id port, bool enable,
			     struct tl1_command *cmd);
	/* The port that a report is about: its address at the head of text,
	 * before a colon. False when that is none. */
	bool (*port)(const struct tl1_switch *s, const char *text, bool *is_out, int *index);
};

/* What every TL1 class has among its options; password is its dialect's. */
#define TL1_OPTIONS(user, password, idle)                                    \
	{ "user", "who logs in; empty: no log-in", user },                   \
	{ "password_file", "file whose first line is the password; empty: "  \
	  "it is the maker's, " password, "" },                              \
	{ "tid", "target name in commands; learned when empty", "" },        \
	{ "gap_ms", "least time between two commands", "20" },               \
	{ "settle_ms", "wait before a read-back", "50" },                    \
	{ "idle_s", "close a session idle for so long; 0: never", idle }

/* What those that verify have as well. */
#define TL1_VERIFY_OPTIONS                                                    \
	{ "complete_ms", "longest wait until what was confirmed shows",       \
	  "2000" }

#define TL1_BULK_OPTIONS                                                      \
	{ "bulk", "most circuits in one command; 0: one by one", "128" },     \
	{ "bulk_ms", "longest wait for such a command to be done", "25000" }

enum tl1_phase { TL1_ASKING, TL1_LOGGING_IN, TL1_LOGGING_OUT };

typedef VEC(struct tl1_circuit) tl1_circuits;

struct tl1_switch {
	struct driver_base h;
	const struct tl1_dialect *dialect;
	int64_t gap_ms, settle_ms, complete_ms, idle_s;
	bool want_power;
	struct power_monitors monitors;	/* where losses come from powers */
	char user[DRV_NAME_MAX];
	char password_file[SECRET_PATH_MAX];
	char *password;			/* from there, while it logs in; or NULL */
	char extra[DRV_NAME_MAX];	/* an option of the dialect */

	/* the session */
	char tid[TL1_SID_MAX];
	bool use_tid;
	uint64_t tag;			/* the last one used */
	uint64_t logged_session, checked_session;
	enum tl1_phase phase;
	bool retried;			/* after a log-out or a wrong name */
	bool partly_done;		/* this item's earlier step is done */
	struct tl1_command cmd;		/* the question that is out */
	void (*next)(struct tl1_switch *s, const struct tl1_message *m);
	struct tl1_line *lines;		/* of the pages before the last */
	size_t n_lines, page_bytes;

	/* what was read */
	struct xc_map map;
	tl1_circuits circuits;
	int at_read;			/* dialect->reads[at_read] is out */
	struct buf record;		/* lines of its answer that belong together */
	void (*after_reads)(struct tl1_switch *s);

	/* the batch */
	int item, step;
	struct tl1_circuit now;		/* what the command that is out is
					 * about */
	enum drv_op now_op;
	bool any_done;			/* something may need verification */
	bool port_was_set;		/* now its state is read back */
	int64_t until_ns;		/* of the wait for what was confirmed */

	/* commands about many circuits */
	int64_t bulk, bulk_ms;
	bool no_bulk;			/* it was denied: one by one */
	int bulk_end;			/* the items item..bulk_end-1 that are
					 * UNKNOWN are in the command */
	bool bulk_cutting;		/* it ends what is in their way */
	bool bulk_cut;			/* that is done */
	size_t bulk_left;		/* of a REPLACE: what was in the way
					 * before it */
	char bulk_text[DRV_TEXT_MAX];	/* what the device said of it */
	struct buf bulk_list;
};

/* A class of these has a tl1_dialect. */
extern const struct base_ops tl1_ops;
void tl1_switch_explain(struct drv *dev, const struct drv_batch *batch, drv_trace_fn fn, void *arg);

/* For the line functions of dialects. */

/* Enters a circuit into the map. WEFT_EDEVICE when its ports do not exist or
 * are in use already. */
int tl1_found_circuit(struct tl1_switch *s, const struct tl1_circuit *c, struct err *err);
/* Notes the power of a port, in a snapshot, if NAME=VALUE of the line is a
 * number (a monitor without light says another word).
 * WEFT_EVERIFY as base_port(). */
int tl1_note_power(struct tl1_switch *s, const char *line, const char *name,
		   bool is_out, int index, struct err *err);
/* Whether it may stand in commands, in size bytes with its end. */
bool tl1_is_text(const char *text, size_t size);
/* Copies an option's text into out (size bytes) if it may stand in commands.
 * WEFT_EINVAL. */
int tl1_text_option(const struct drv_class *cls, const struct drv_config *cfg,
		    const char *key, char *out, size_t size, struct err *err);
/* Fills a command; NULL parts are empty. */
void tl1_command(struct tl1_command *c, const char *verb, const char *aid, const char *tail);

/*
 * What the files of the TL1 switches have of each other: tl1_session.c talks,
 * tl1_switch.c reads, tl1_batch.c and tl1_ports.c change. For them alone; dialects see
 * tl1_switch.h.
 */

/* ---- tl1_session.c ------------------------------------------------------- */

extern const struct tcp_conf tl1_session;

/* Appends VERB:TID:AID:CTAG TAIL; to b. */
void tl1_put_command(struct buf *b, const struct tl1_command *c, const char *tid, uint64_t tag);
/* Asks, after a log-in if one is due; the whole answer goes to next, which
 * must not keep it. A denial that a log-in or the device's name cures never
 * gets there. */
void tl1_ask(struct tl1_switch *s, const struct tl1_command *c,
	     void (*next)(struct tl1_switch *, const struct tl1_message *));
/* What a denial means and the device's remark, cut to size. */
void tl1_denied_text(const struct tl1_message *m, char *text, size_t size);
/* Ends the operation: `what` was denied. */
void tl1_fail_denied(struct tl1_switch *s, const char *what, const struct tl1_message *m);
/* Frees the pages of an answer that is not whole. */
void tl1_forget_pages(struct tl1_switch *s);
/* Wipes the password, if it is there. */
void tl1_forget_password(struct tl1_switch *s);
void tl1_stop(struct driver_base *h);

/* ---- tl1_switch.c -------------------------------------------------------- */

/* Asks what is wanted now (all for a snapshot; map, and size if this session
 * was not asked for it yet, for a batch), then calls after. */
void tl1_start_reads(struct tl1_switch *s, void (*after)(struct tl1_switch *s));
/* Place of a circuit in s->circuits, or -1. O(circuits). */
int tl1_find_circuit(const struct tl1_switch *s, struct optics_xc xc);

/* ---- tl1_ports.c --------------------------------------------------------- */

void tl1_port_set(struct driver_base *h);

/* ---- tl1_batch.c --------------------------------------------------------- */

void tl1_submit(struct driver_base *h);
/* Goes on with s->item, or with what is in the way of a REPLACE (-1). */
void tl1_next_item(struct tl1_switch *s);
/* Reads again what was confirmed, where that is due, and ends the batch. */
void tl1_end_batch(struct tl1_switch *s);
/* O(items). */
bool tl1_is_asked_for(const struct drv_batch *batch, struct optics_xc xc);

/* ---- tl1_multi_connect.c ---------------------------------------------------------- */

/* Sends one command for as many as it may of what is next. False: there is no
 * such command, or fewer than two fit into it; then nothing was done. */
bool tl1_bulk_begin(struct tl1_switch *s);
/* The commands for a run of items from `first`, and where it ends: `first`
 * when they go one by one. c lives until the next call. */
int tl1_bulk_explain(struct tl1_switch *s, const struct drv_batch *b,
		     int first, struct tl1_command c[2]);

#endif
