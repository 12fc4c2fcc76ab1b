/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the controller remembers, in one SQLite file: which light is meant to
 * be there (intent), which was last seen (observed), what is being changed
 * (the journal of open changes, with everything needed to undo them), which
 * changes there were (history) and what was said to devices (audit).
 *
 * Every writing call is one transaction: it happened as a whole or not at all,
 * whatever fails and whenever the process ends. It is durable when the call
 * returns, or later (store_defer_syncs). A call that failed leaves the store usable.
 *
 * Errors of all calls, where nothing else is said: WEFT_EIO (the disk is
 * full or failed), WEFT_EDENIED (the store cannot be written),
 * WEFT_EINVAL (the store is damaged).
 *
 * docs/store.md describes the file.
 */
#ifndef WEFT_STORE_STORE_H
#define WEFT_STORE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "controller/model/model.h"
#include "drivers/optics/optics.h"
#include "lib/base/buf.h"
#include "lib/base/err.h"

#define STORE_VERSION 25		/* of the file format (user_version) */
#define STORE_OLDEST 25		/* that is read */
#define STORE_NOTE_MAX 160
#define STORE_AUDIT_TEXT_MAX 240
#define STORE_AUDIT_COMMAND_MAX 16384	/* a map of many circuits in one */
#define STORE_AUDIT_MAX 50000	/* lines kept */
#define STORE_AUDIT_BYTES (64 << 20)	/* and their texts in all */
#define STORE_HISTORY_MAX 10000	/* closed changes kept */
#define STORE_EXTERNAL_MAX 2000	/* of changes by others that are over */
#define STORE_JOBS_MAX 1000	/* jobs kept that are over */

struct store;

/*
 * Opens or creates the store at path (mode 0600), brings an older format up
 * to date, checks it, and takes the lock PATH.lock: one writer at a time.
 * WEFT_ESTALE: another process has it (named). WEFT_EUNSUPPORTED: written
 * by a newer weft, and not to be read by this one (store_newer). WEFT_EINVAL: damaged, or not a
 * store. Nothing is repaired or thrown away. O(size of the file).
 */
int store_open(const char *path, struct store **out, struct err *err);
/* Writes buffered audit lines, closes, gives the lock back. NULL is fine. */
void store_free(struct store *s);

/* ---- its copy -------------------------------------------------------------- */

/*
 * Makes PATH.copy of the store, or replaces it: all but the audit trail and older changes, as
 * one state of it is that is durable by then. Nothing of a store that is shared, or that a newer
 * weft wrote. On any thread, one call at a time, while another uses the store; not while it is
 * closed. WEFT_EINVAL: the store is damaged, and the copy stays as it is. O(size of the file).
 */
int store_copy(struct store *s, struct err *err);

/* What became of a store at its opening. */
struct store_taken {
	char why[ERR_MSG_MAX];		/* its copy was needed; "": it was not */
	char refused[ERR_MSG_MAX];	/* why that was not taken, or "": it was */
	char kept[ERR_FILE_MAX];	/* where the file lies that was there, or "" */
};

typedef int (*store_open_fn)(const char *path, struct store **out, struct err *err);

/*
 * The same as open (store_open, store_open_replica), but a store that is damaged, empty, gone, or
 * that has fewer transactions than its copy has, is put aside and its copy takes its place; what
 * was written after that was made is lost. Without a copy it is as open. WEFT_EINVAL,
 * WEFT_ENOTFOUND: both are damaged; only a store that lacks its last transactions is used then.
 */
int store_open_or_copy(const char *path, store_open_fn open, struct store **out,
		       struct store_taken *taken, struct err *err);

/* ---- durability ------------------------------------------------------------ */

/*
 * From now on what is written is durable only after the next store_sync: whoever rests on it
 * waits for that. For a store that no other process has; else, or where a newer weft wrote it, all
 * stays as it is.
 */
int store_defer_syncs(struct store *s, struct err *err);
/* Makes all that was written before the call durable. On any thread, one call at a time,
 * while another uses the store; not while it is closed. WEFT_EIO: nothing is known of what
 * was deferred. */
int store_sync(struct store *s, struct err *err);
/* How it went, told on the thread that uses the store: for store_safe, store_use and
 * store_trouble. last: what store_last was before the call. */
void store_sync_ended(struct store *s, int64_t last, int rc, const struct err *err,
		      int64_t took_ns);

/* A number that grows with each transaction but those of what devices were seen to do, which
 * nothing rests on; and up to which of them all is durable, and known to those who have the store
 * too. O(1). */
int64_t store_last(const struct store *s);
int64_t store_safe(const struct store *s);
/* Whether the last store_sync has failed, so that it is not known what is durable. O(1). */
bool store_sync_failed(const struct store *s);
/* fn is called when a store_sync is wanted; NULL: no more. */
void store_on_written(struct store *s, void (*fn)(void *arg), void *arg);
/* fn is called when more is safe, or a sync has failed; NULL: no more. */
void store_on_safe(struct store *s, void (*fn)(void *arg), void *arg);

/* What was made durable since it was opened. */
struct store_use {
	/* transactions that were tried, and those of them that the disk refused
	 * */
	int64_t commits, failed;
	int64_t ns;		/* how long that took in all */
};

/* O(1). */
struct store_use store_use(const struct store *s);

/* Identity of this store: a random UUID from its creation. */
const char *store_uuid(const struct store *s);
/* Counts every change of what is intended; plans name the one they were
 * made from. */
int64_t store_generation(const struct store *s);
/* Grows with every row that this process has written; what was derived from the store at
 * the same number still holds, while no other process leads. O(1). */
uint64_t store_written(const struct store *s);
/* Why the disk did not take the last transaction, or "": a full disk, a
 * failing one, one that is read-only. Nothing is recorded until one is
 * taken. The text lives until the next call. */
const char *store_trouble(const struct store *s);
/* The file's format when a newer weft wrote it and this one can read it, or 0: writing calls
 * fail then with WEFT_EUNAVAIL, but what was read and learned is just not kept. O(1). */
int store_newer(const struct store *s);
/* That error: WEFT_EUNAVAIL, naming both formats and how to go on. */
int store_newer_error(const struct store *s, struct err *err);
/* Grows with every store_open: the epoch of this writer, for devices that
 * can refuse an older one. */
uint64_t store_fence(const struct store *s);

/* ---- as text, between versions -------------------------------------------- */

#define STORE_TEXT_MAX (256 << 20)	/* bytes of a store as text */

struct store_export {
	bool history;	/* also closed changes that no other row needs */
	bool audit;	/* also the audit trail */
};

/*
 * Appends the store at path as text (docs/store.md) to out; it may be open in a weftd.
 * The same store gives the same bytes. WEFT_ENOTFOUND;
 * WEFT_EUNSUPPORTED: of a format that is not known. O(size of the file), in memory.
 */
struct buf;
int store_export(const char *path, const struct store_export *what, struct buf *out,
		 struct err *err);

/* What became of it. */
struct store_import {
	char kept[ERR_FILE_MAX];	/* where the store lies that was there, or "" */
	char left_out[ERR_MSG_MAX];	/* what a newer weft wrote and this one does not
					 * know: names apart by ", ", or "" */
};

/*
 * Makes the store at path from such a text. replace: a store that is there is kept beside it
 * under another name. All or nothing: after an error the files are as they were. name: of the
 * text, in messages. WEFT_EINVAL, WEFT_ELIMIT: the text; WEFT_EUNSUPPORTED: a newer weft
 * wrote it and this one would misread it; WEFT_EUSAGE: there is a store, and not replace;
 * WEFT_ESTALE: a weftd has it. O(len log len).
 */
int store_import(const char *path, const char *name, const char *text, size_t len, bool replace,
		 struct store_import *out, struct err *err);

/* What a file was found to hold. */
struct store_check {
	int64_t transactions;	/* that it has taken */
};

/*
 * Whether the store at path holds what was written, as it is checked at each start; it may be
 * open in a weftd. WEFT_EINVAL: it is damaged;
 * else as store_export. O(size of the file), in memory.
 */
int store_check(const char *path, struct store_check *out, struct err *err);

/* ---- one store, several weftd -------------------------------------------- */

#define STORE_HOLDER_MAX 160

/* Who leads. */
struct store_lease {
	uint64_t term;			/* grows with each new leader */
	int64_t since_ns;		/* wall clock: when it began; 0: not known */
	int64_t beat;			/* grows while he lives */
	char holder[STORE_HOLDER_MAX];	/* how to reach him; "": he has gone */
};

/*
 * The same for a store that several open at a time, on one machine or on a
 * disk that both see and whose locks work. It can be read; writing calls fail
 * with WEFT_ESTALE, naming who leads, until store_lead, and again from the
 * moment that another one leads. No process that has the store for itself
 * may be there, nor the other way round. The file is not in WAL mode then.
 */
int store_open_shared(const char *path, struct store **out, struct err *err);
/* Once, for a shared store: from now on the kernel ends this process with SIGKILL
 * when it has had a lock of the file for ns, be it stopped or not: others could
 * neither read nor lead. */
int store_limit_hold(struct store *s, int64_t ns, struct err *err);
/* Who leads at present; the generation is read again with it. */
int store_lease(struct store *s, struct store_lease *out, struct err *err);
/* Begins the next term, as `holder`, if all is still as it was seen.
 * WEFT_ESTALE: it is not. The fence of the store is the term. */
int store_lead(struct store *s, const struct store_lease *seen,
	       const char *holder, struct err *err);
/* Durable proof that the leader lives. WEFT_ESTALE: it leads no more. */
int store_beat(struct store *s, struct err *err);
/* The leader goes, and the next one need not wait. */
int store_yield(struct store *s, struct err *err);

/* ---- a store that others have too: replicate.c --------------------------- */

#define STORE_LOG_MAX 40

/* The same as store_open for a store that is a copy: it counts no start, and is written only by
 * store_follow and store_restore until store_publish. */
int store_open_replica(const char *path, struct store **out, struct err *err);

#define STORE_DIGEST_LEN 32

/* How many transactions of which log it has; log is "" while it belongs to none. */
int64_t store_position(const struct store *s, char log[STORE_LOG_MAX]);
/* The digest of the last of them, which says all before it too; of none, zeros. */
const uint8_t *store_digest(const struct store *s);

/* One transaction of the log, for the others. */
struct store_entry {
	int64_t position;
	const uint8_t *digest;	/* of the log up to here: [STORE_DIGEST_LEN] */
	const void *changes;	/* for store_follow */
	size_t len;
};

/* Takes a copy of a transaction that was just kept here, to give it to the others. */
typedef void (*store_publish_fn)(void *arg, const struct store_entry *entry);
/* From now on the store is written here, and each transaction goes to fn, in their order. */
void store_publish(struct store *s, store_publish_fn fn, void *arg);
/* The others have all transactions up to this one. */
void store_set_published(struct store *s, int64_t position);
/* Up to which transaction they have it; of a store that none else has, the position. After a
 * start it may be further. O(1). */
int64_t store_published(const struct store *s);

/* Applies the changes of the next position. WEFT_EINVAL: it is not the next, or damaged;
 * WEFT_ESTALE: the log before it is not what this store has. Nothing was changed then. */
int store_follow(struct store *s, int64_t position, const void *changes, size_t len,
		 struct err *err);
/* Appends all rows that others have too, as the changes that make them from none. O(rows). */
int store_whole(struct store *s, struct buf *out, struct err *err);
/* Makes it a copy of what store_whole gave, instead of what it has. */
int store_restore(struct store *s, const char *log, int64_t position, const void *changes,
		  size_t len, struct err *err);
/* It begins this log with what it has. */
int store_join(struct store *s, const char *log, struct err *err);
/* No change and no job was ever in it. */
int store_is_fresh(struct store *s, bool *fresh, struct err *err);
/* A writer begins: the fence grows. */
int store_new_term(struct store *s, struct err *err);

/* ---- the applied configuration ------------------------------------------- */

struct store_config {
	struct model_config config;	/* its requests: those that had light, of
					 * changes that are applied or open */
	char hash[65];		/* model_fabric.hash of it */
	int64_t change;		/* the change that brought it */
};

/* The configuration of the last committed change. WEFT_ENOTFOUND when there
 * was none yet; WEFT_EINVAL: its text is not the one that was applied. */
int store_config(struct store *s, struct store_config *out, struct err *err);
void store_config_fini(struct store_config *c);

/* ---- intent and observed ------------------------------------------------- */

/* The light of one device. Owned arrays. */
struct store_light {
	int n_xcs;
	struct optics_xc *xcs;		/* sorted */
	int *proofs;			/* [n_xcs] how far each was proven when it was
					 * made, as given */
	bool has_program;
	struct ring_programs programs;
};

void store_light_fini(struct store_light *l);

/* The committed intent of a device; empty when there is none. */
int store_intent(struct store *s, const char *device, struct store_light *out, struct err *err);

/* Names of all devices that have an intent, sorted; also those that the
 * present configuration no longer has. Free with model_names_free. */
int store_intent_devices(struct store *s, char ***names, int *n, struct err *err);

/* How an intended circuit was, as a number of the caller's, and since when (wall clock). */
struct store_age {
	struct optics_xc xc;
	int health;
	int64_t since_ns;
};

/* The last reading of a device. */
struct store_observed {
	char *device;
	int64_t read_at_ns;		/* wall clock */
	char *epoch, *identity;
	int n_xcs;
	struct optics_xc *xcs;
	bool has_program;
	uint8_t program_digest[RING_DIGEST_LEN];	/* if has_program */
	int n_ages;			/* put only; borrowed */
	const struct store_age *ages;
};

void store_observed_fini(struct store_observed *o);

/* Replaces the last readings of these devices, in one transaction. */
int store_observed_put(struct store *s, const struct store_observed *v, int n, struct err *err);
/* WEFT_ENOTFOUND: never read. */
int store_observed_get(struct store *s, const char *device,
		       struct store_observed *out, struct err *err);
/* The ages that were put with it; *v is the caller's. */
int store_ages(struct store *s, const char *device, struct store_age **v, int *n,
	       struct err *err);

/* What a circuit was seen to lose while it was well. */
struct store_insertion_loss {
	struct optics_xc xc;
	int32_t mdb;
};

/* Those of a device, by xc; *v is the caller's. */
int store_insertion_losses(struct store *s, const char *device, struct store_insertion_loss **v,
		 int *n, struct err *err);
/* Replaces them, in one transaction. */
int store_insertion_losses_put(struct store *s, const char *device,
		     const struct store_insertion_loss *v, int n, struct err *err);

/* How long things took recently. */
enum store_timing_kind {
	STORE_REACTIVATION,	/* of a host port: light to link */
	STORE_SWITCHING,	/* of a device: command to map */
};

#define STORE_TIMINGS_MAX 9	/* times kept of each */

struct store_timing {
	char *name;
	int n;
	int64_t ns[STORE_TIMINGS_MAX];	/* the oldest first */
};

/* Those of a kind, by name. Free with store_timings_free. */
int store_timings(struct store *s, enum store_timing_kind kind,
		  struct store_timing **v, int *n, struct err *err);
void store_timings_free(struct store_timing *v, int n);
/* Replaces what is known of these names, in one transaction. */
int store_timings_put(struct store *s, enum store_timing_kind kind,
		      const struct store_timing *v, int n, struct err *err);

/* The programs known by their digest. WEFT_ENOTFOUND when neither an intent nor an
 * open change holds it. */
int store_program(struct store *s, const uint8_t digest[RING_DIGEST_LEN],
		  struct ring_programs *out, struct err *err);

/* ---- changes ------------------------------------------------------------- */

/* A change is open in the first three states (unless a later one was
 * committed over it) and closed in the others. */
enum store_verdict {
	STORE_RUNNING,		/* under way, or the process ended in it */
	STORE_INTERRUPTED,	/* found half done after a restart */
	STORE_STUCK,		/* could not be rolled back as a whole */
	STORE_COMMITTED,
	STORE_REFUSED,		/* nothing had been sent */
	STORE_ROLLED_BACK,
	STORE_ABORTED,		/* found undone after a restart */
};

/* "committed", "rolled back", ...: as they are stored and shown. */
const char *store_verdict_name(enum store_verdict v);

/* What a change is asked for with, from the request to the journal. Texts are borrowed, or
 * what store_order_copy() has made of them; NULL is as good as "". */
struct change_order {
	const char *who, *comment;
	const char *request_id;	/* chosen by who asks */
	char arguments[65];	/* a hash of what is asked for with it */
	char trace[33];		/* of who asks, hex */
	int64_t confirm_within_ns; /* to be confirmed after its commit, or 0 */
};

/* *to owns its texts, of which none is NULL. */
void store_order_copy(const struct change_order *from, struct change_order *to);
/* Of a copy. */
void store_order_fini(struct change_order *o);

struct store_change {
	int64_t id;
	int64_t generation;	/* while running: made from; then: after */
	int64_t started_ns, ended_ns;	/* wall clock; 0: not ended */
	struct change_order order;
	char *config_name;
	char config_hash[65];	/* SHA-256 of the text, hex */
	enum store_verdict verdict;
	bool undoing;		/* rolling back had begun */
	char *summary;		/* one line */
	int64_t superseded_by;	/* the change committed over it, or 0 */
	int proof;		/* how well its light was proven, as given */
	int64_t expected_down_ns;	/* of the plan, as given */
	int64_t down_ns;	/* longest outage of a stage, 0: not known */
	int downtime_source;		/* the level that its end was seen by */
};

void store_change_fini(struct store_change *c);

/* The newest `limit` changes with an id below `before` (0: from the
 * newest), newest first. Free with store_history_free. */
int store_history(struct store *s, int64_t before, int limit,
		  struct store_change **v, int *n, struct err *err);
void store_history_free(struct store_change *v, int n);

/* What a change was to do to a job; times of one collective, as planned. */
struct store_gain {
	int64_t change;
	char *job;
	enum store_effect { STORE_CHANGES, STORE_BEGINS, STORE_ENDS } effect;
	int64_t size_bytes;
	int64_t before_ns, before_whole_ns;	/* 0: not there, or it could not run */
	int64_t after_ns, after_whole_ns;	/* 0: not there */
	int64_t down_ns;			/* without light, expected */
};

/* Those of the changes with these ids and between, the newest change first, jobs in
 * the order given. Free with store_gains_free. rows/gains.c */
int store_gains(struct store *s, int64_t from, int64_t to, struct store_gain **v, int *n,
		struct err *err);
void store_gains_free(struct store_gain *v, int n);

/* The newest change that was asked for with this id. WEFT_ENOTFOUND. */
int store_change_by_request(struct store *s, const char *request_id,
			    struct store_change *out, struct err *err);

/* WEFT_ENOTFOUND. */
int store_change_get(struct store *s, int64_t id, struct store_change *out, struct err *err);
/* The configuration a change brought or meant to bring. WEFT_ENOTFOUND. */
int store_change_config(struct store *s, int64_t id, struct store_config *out, struct err *err);

/* The topologies that a change has chosen (0: that of the present configuration), as its journal
 * had them; "" where they are not known. *out is the caller's. */
int store_topologies(struct store *s, int64_t change, char **out, struct err *err);

/* Who made the oldest of the last committed changes whose topologies all have a line that begins
 * so, and when it ended; 0 and NULL: the last has none. *who is the caller's. O(changes). */
int store_light_since(struct store *s, const char *begins, int64_t *since_ns, char **who,
		      struct err *err);

/* ---- the journal --------------------------------------------------------- */

/* KEEP: there before and meant to stay; never sent on its own. LEAVE: meant
 * to be there, dead before, and none of this change's business. */
enum store_op { STORE_DEL, STORE_ADD, STORE_KEEP, STORE_LOAD, STORE_LEAVE };

enum store_step_state {
	STORE_PLANNED,		/* never sent */
	STORE_SENT,		/* in flight, or the process ended then */
	STORE_DONE,		/* the device said so */
	STORE_DENIED,		/* the device refused */
	STORE_UNKNOWN,		/* no answer; to be read */
	STORE_AS_BEFORE,	/* read: as before the change */
	STORE_AS_PLANNED,	/* read: as the change wanted it */
};

/* "add", ... and "as before", ...: as they are stored and shown. */
const char *store_op_name(enum store_op op);
const char *store_step_state_name(enum store_step_state st);

struct store_step {
	enum store_op op;
	struct optics_xc xc;		/* not for LOAD */
	enum store_step_state state;
	char *note;			/* the device's words; NULL: none. Set by
					 * store_set_note */
	int proof;			/* how far an ADD or KEEP was proven,
					 * as given; in the file once committed */
	int stage;			/* of the change; not in the file */
	bool is_straggler;		/* an ADD that the change goes on
					 * without; not in the file */
	int layer;			/* of such a one: store_repair.layer */
};

/* Cut to STORE_NOTE_MAX; "": none. */
void store_set_note(struct store_step *st, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* What a change does on one device; undo is the same read backwards. The
 * light after it is KEEP, LEAVE and ADD, or new_programs. */
struct store_work {
	char *device;
	bool is_ring;
	int n_steps;
	struct store_step *steps;	/* in order; at most one LOAD */
	bool has_old, has_new;		/* ring: programs before, after */
	struct ring_programs old_programs, new_programs;
};

/* A change with its journal; all owned. */
struct store_journal {
	struct store_change change;
	int n_works;
	struct store_work *works;	/* in the order of change */
	int n_gains;
	struct store_gain *gains;	/* of jobs; only written, by store_begin */
	char *topologies;		/* plan->topologies; likewise; NULL: none */
	char *empties;		/* a part that is drained with the commit; likewise */
};

void store_journal_fini(struct store_journal *j);

/*
 * Makes a change durable before anything is sent: its order and all steps of j
 * (states PLANNED), with the configuration. Sets j->change.id, .verdict
 * RUNNING, .generation and .started_ns. WEFT_ESTALE when a change is RUNNING.
 */
int store_begin(struct store *s, struct store_journal *j,
		const struct model_config *config, struct err *err);

/* Makes states and notes of all steps of j->works[work] durable. O(steps). */
int store_mark(struct store *s, const struct store_journal *j, int work, struct err *err);

/* Notes, before the first undo command, that rolling back has begun. */
int store_undoing(struct store *s, int64_t change, struct err *err);

/*
 * The change happened: intent becomes the journal's light (devices that it
 * does not name lose theirs), its configuration the applied one, the
 * generation grows, older open changes are superseded, and what waited for
 * its confirmation waits no more. If the change is to be confirmed, that is
 * noted with the change applied before it, if there is one. All at once.
 */
int store_commit(struct store *s, int64_t change, const char *summary, int proof, struct err *err);

/* The same, and remembers of each circuit that was made or kept how far it was
 * proven (of one kept no less than before), and from change.down_ns and .downtime_source how long
 * light was away. */
int store_commit_proven(struct store *s, const struct store_journal *j,
			const char *summary, int proof, struct err *err);

/* Ends a change without it having happened. Intent stays. INTERRUPTED and
 * STUCK keep the journal and let the generation grow, as older plans do not
 * know of the light that was left. Never RUNNING or COMMITTED. */
int store_end(struct store *s, int64_t change, enum store_verdict verdict,
	      const char *summary, struct err *err);

/* A committed change that goes back unless it is confirmed. */
struct store_confirm {
	int64_t change;		/* 0: none waits */
	int64_t by_ns;		/* wall clock */
	int64_t within_ns;	/* as asked for: by_ns is no later than that
				 * after its commit */
	int64_t back_to;	/* the change to return to; 0: it is the first */
};

/* out->change 0 when nothing waits. WEFT_EIO. */
int store_confirming(struct store *s, struct store_confirm *out, struct err *err);
/* Nothing waits any more. */
int store_confirm(struct store *s, struct err *err);

/* All open changes with their journals, newest first. */
int store_open_changes(struct store *s, struct store_journal **v, int *n, struct err *err);
void store_journals_free(struct store_journal *v, int n);

/* ---- jobs ---------------------------------------------------------------- */

/* What became of a job that was asked for. The last two are its end. */
enum store_job_state {
	STORE_JOB_QUEUED, STORE_JOB_STARTING, STORE_JOB_RUNNING,
	STORE_JOB_ENDING, STORE_JOB_ENDED, STORE_JOB_FAILED,
};

/* "queued", "running", ...: as they are stored and shown. */
const char *store_job_state_name(enum store_job_state st);

struct store_job {
	int64_t id;		/* 0: not stored yet */
	char *name, *who, *request_id;
	char *spec;		/* what was asked for, as its owner writes it */
	char *nodes;		/* hosts in rank order, "a b c"; "": none yet */
	enum store_job_state state;
	char *problem;		/* why it waits or failed, or "" */
	int priority;
	bool preemptible;
	int64_t duration_ns;	/* 0: until it is released */
	int64_t asked_ns, started_ns, ended_ns;	/* wall clock; 0: not yet */
	int repairs;		/* tries recently to repair its light */
	int64_t repair_ns;	/* wall clock of the last one, 0: never */
	int64_t told_ns;	/* wall clock: it starts by then; 0: nothing was told */
	int64_t preempt_ns;	/* wall clock: it makes room then; 0: it need not */
};

void store_job_fini(struct store_job *j);

/* All that live and the newest of those that are over, oldest first. Free
 * with store_jobs_free. */
int store_jobs(struct store *s, struct store_job **v, int *n, struct err *err);
void store_jobs_free(struct store_job *v, int n);

/* Makes n jobs durable, all or none; new ones (id 0) get their ids. Name, who, request_id
 * and spec stay as they were first given. One transaction. O(n) beside it. */
int store_jobs_put(struct store *s, struct store_job *const *v, int n, struct err *err);

/* ---- repairs ------------------------------------------------------------- */

/* A circuit that is intended, and that its change was committed without: it
 * was not made, or not proven. */
struct store_repair {
	char *device;
	struct optics_xc xc;
	int64_t change;			/* the one that went on without it */
	int64_t since_ns;		/* wall clock; set by the store */
	int layer;			/* the level that it failed to reach, as
					 * given; 0: it was not made */
	char *why;
};

/* Remembers circuits of a change before its commit, in one transaction;
 * since_ns is set by the store. A commit forgets those of earlier changes,
 * but what it leaves alone, and what was made, not proven and stays. */
int store_repairs_put(struct store *s, const struct store_repair *v, int n, struct err *err);
/* All, in order of device and circuit. Free with store_repairs_free. */
int store_repairs(struct store *s, struct store_repair **v, int *n, struct err *err);
void store_repairs_free(struct store_repair *v, int n);

/* ---- changes by others --------------------------------------------------- */

/* What became of light that weft had made or left alone, without weft. */
enum store_external_kind {
	STORE_EXTERNAL_GONE,	/* a circuit of intent */
	STORE_EXTERNAL_APPEARED,	/* one that is in no intent */
	STORE_EXTERNAL_DARK,	/* a circuit of intent: listed, not in effect */
	STORE_EXTERNAL_DISABLED,	/* a port; the other index is -1 */
	STORE_EXTERNAL_PROGRAM,	/* a ring's: another, or none; no circuit */
};

/* By which reading it was noticed. */
enum store_external_how {
	STORE_BY_POLL, STORE_BY_EVENT, STORE_BY_VERIFY, STORE_BY_PLAN,
	STORE_BY_CHANGE, STORE_BY_START,
};

enum store_external_outcome {
	STORE_EXTERNAL_OPEN,
	STORE_EXTERNAL_RESTORED,	/* by a change that weftd made for it */
	STORE_EXTERNAL_REPAIRED,	/* by another user's change */
	STORE_EXTERNAL_ACCEPTED,	/* a change made it the intent */
	STORE_EXTERNAL_BY_ITSELF,	/* or by whoever had done it */
};

/* "gone", "appeared", ...: the words of the file and of the API. */
const char *store_external_kind_name(enum store_external_kind k);
/* "poll", "before a change", ... */
const char *store_external_how_name(enum store_external_how h);
/* "open", "by itself", ... */
const char *store_external_outcome_name(enum store_external_outcome o);

struct store_external_change {
	int64_t id;		/* 0: not stored yet */
	char device[CONF_MAX_NAME + 1];
	enum store_external_kind kind;
	struct optics_xc xc;
	/* It happened between these two (wall clock). */
	int64_t right_ns, noticed_ns;
	enum store_external_how how;
	char who[STORE_NOTE_MAX];	/* as the device tells, or "unknown" */
	enum store_external_outcome outcome;
	int64_t resolved_ns;	/* 0: it is still so */
	int64_t change;		/* of the outcome, or 0 */
	bool given_up;		/* restoring it again and again was a fight */
};

/* "gone: in 1 -> out 7", ports counted from 1, into buf; returns it. */
const char *store_external_text(const struct store_external_change *f, char *buf, int size);
/* Makes them durable, in one transaction. New ones (id 0) get their ids; of
 * others only outcome, resolved_ns, change and given_up. Of those that are over
 * the newest STORE_EXTERNAL_MAX are kept. */
int store_external_changes_put(struct store *s, struct store_external_change *v, int n,
		      struct err *err);

struct store_external_query {
	const char *device;	/* NULL or "": all */
	bool open;		/* only those that are still so */
	int64_t before;		/* only ids below; 0: from the newest */
	int limit;		/* 0: none */
};

/* Newest first; *v is the caller's. */
int store_external_changes(struct store *s, const struct store_external_query *q,
		  struct store_external_change **v, int *n, struct err *err);

/* ---- holds --------------------------------------------------------------- */

/* A part of the fabric that gets no new light ("ocs0", "ocs0.3", "h2",
 * "h2.p0"), or all of it (""). */
struct store_drain {
	char *what, *who, *reason;
	int64_t since_ns;	/* wall clock */
};

/* Holding what is held already changes nothing. */
int store_drain(struct store *s, const char *what, const char *who,
	       const char *reason, struct err *err);
/* WEFT_ENOTFOUND: not held. */
int store_undrain(struct store *s, const char *what, struct err *err);
/* All, in order of name. Free with store_drains_free. O(holds). */
int store_drains(struct store *s, struct store_drain **v, int *n, struct err *err);
void store_drains_free(struct store_drain *v, int n);

/* ---- audit --------------------------------------------------------------- */

enum store_audit_kind { STORE_COMMAND, STORE_REPLY, STORE_EVENT };

struct store_audit {
	/* at_ns: wall clock */
	int64_t id, at_ns, change;	/* change 0: outside of one */
	char *device;			/* "" for the change as a whole */
	enum store_audit_kind kind;
	char *text;
};

/* Remembers one line (cut at STORE_AUDIT_COMMAND_MAX if it is a command, else
 * at STORE_AUDIT_TEXT_MAX); written with the next transaction, or by
 * store_free. Not within a transaction: when many wait it is one itself.
 * Never fails: lines that do not fit in memory while the disk takes none are
 * counted and the count is written. */
void store_audit(struct store *s, int64_t change, const char *device,
		 enum store_audit_kind kind, const char *text);

struct store_audit_query {
	int64_t change;		/* only of this one; 0: of all, and what
				 * belongs to none */
	const char *device;	/* only about it; NULL or "": about all */
	int64_t since_ns;	/* not before this, wall clock; 0: any time */
	int64_t before;		/* only ids below; 0: from the newest */
	int limit;		/* the newest so many of those */
	size_t max_bytes;	/* of texts, then no more; 0: no limit */
};

/* Lines, oldest first; buffered ones are written first. Free with
 * store_audit_free. O(lines kept). */
int store_audit_read(struct store *s, const struct store_audit_query *q,
		     struct store_audit **v, int *n, struct err *err);
void store_audit_free(struct store_audit *v, int n);

/* Before any store is opened, where no other thread is: where memory ends, the process does
 * (alloc_on_end), in SQLite as well. */
void store_set_allocators(void);

#endif
