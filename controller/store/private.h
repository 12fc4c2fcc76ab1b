/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the files of the store room. From the ground up: statements (sql.c),
 * transactions (db.c), who takes part in each of them (audit.c, shared.c, replicate.c), what
 * is kept (rows), and store.c, which opens a store and puts these together.
 */
#ifndef WEFT_STORE_PRIVATE_H
#define WEFT_STORE_PRIVATE_H

#include <sqlite3.h>
#include <time.h>

#include "controller/store/store.h"

#define STORE_APPLICATION_ID 2003134068

/* Audit lines that wait for the next transaction. */
#define STORE_AUDIT_BUFFER 4096

/* For how long this process may have a lock of a shared store. hold.c */
struct store_hold {
	sqlite3_io_methods methods;	/* of the open file; the first */
	const sqlite3_io_methods *real;	/* NULL: without a limit */
	timer_t timer;
	int64_t limit_ns;
	bool held;
};

/* The log, of a store that defers syncs. sync.c */
struct store_log {
	sqlite3_io_methods methods;	/* of the open file; the first */
	const sqlite3_io_methods *real;
	sqlite3_file *file;		/* the connection's; NULL: none */
	_Atomic int failures;		/* of syncs, on any thread */
	_Atomic int rewritten;		/* so many of them are made good */
};

/* After the file was closed. */
void store_hold_fini(struct store_hold *h);

/* Whose the file is: this process's; that of several; this process's, a copy of what others
 * have. */
enum store_kind { STORE_ALONE, STORE_SHARED, STORE_REPLICA };

/* A statement that is kept prepared. */
struct store_statement {
	const char *sql;	/* where its text stood: only compared */
	sqlite3_stmt *st;	/* NULL: free */
	bool in_use;
};

#define STORE_STATEMENTS 64

/* What is done with every transaction of a store; NULL: nothing. */
struct store_part {
	int (*begin)(struct store *s, struct err *err);	/* not 0: it does not begin */
	int (*commit)(struct store *s, struct err *err); /* not 0: it is taken back */
	void (*end)(struct store *s, bool kept);	/* however it ended */
};

/* Counts all rows, which the next commit keeps. O(size of the file). digest.c */
int store_content_count(struct store *s, struct err *err);
/* Within a transaction: at its begin, and before its commit. */
int store_content_begin(struct store *s, struct err *err);
int store_content_commit(struct store *s, struct err *err);
/* WEFT_EINVAL: the file has other content than was written. O(size of the file). */
int store_content_check(struct store *s, struct err *err);
/* Runs a text for each table of rows that are counted, with its name in the place of {t} and its
 * columns, as OLD and NEW have them and plain, in those of {old}, {new} and {all}. In any
 * database, content_row(1, '{t}', {all}) of a row counts it in `content`. digest.c */
int store_for_tables(struct store *s, const char *text, struct err *err);
/* From now on each row that this connection writes is counted. */
int store_content_watch(struct store *s, struct err *err);

/* The audit trail, and by the kind of store. audit.c, shared.c, replicate.c */
extern const struct store_part store_audit_part, store_lease_part, store_replica_part;
#define STORE_PARTS 2

struct store {
	sqlite3 *db;
	const struct store_part *parts[STORE_PARTS];	/* NULL: no more */
	struct store_statement statements[STORE_STATEMENTS];
	unsigned int next_statement;	/* whose place the next one takes */
	char *path;
	int lock_fd;		/* -1: none */
	char uuid[37];
	int64_t generation;
	uint64_t fence;
	int newer;		/* its format, if newer than ours: it is only read; or 0 */
	bool may_be_newer;	/* by store_open; else such a file is refused */
	enum store_kind kind;
	bool leads;		/* only if shared */
	bool serves;		/* so is this: it waits for others but for a moment */
	int64_t waited_ns;	/* clk_now_ns: when it last began to; 0: never */
	struct store_hold hold;
	char trouble[ERR_MSG_MAX];	/* "": the last transaction is kept */
	struct store_audit *waiting;
	int n_waiting, n_lost;
	int64_t audit_bytes;	/* of the lines kept; -1: not counted yet */
	struct store_use use;

	/* What tells content that weft did not write; digest.c. */
	bool counts;
	uint64_t content;	/* of all rows, in the transaction that is under way */
	uint64_t fixed;		/* of schema and format; 0: not known yet */
	int64_t written;	/* transactions */

	struct store_hook {
		void (*fn)(void *arg);	/* or NULL */
		void *arg;
	} on_written, on_safe;

	/* Syncs that are left to store_sync; sync.c. */
	bool defers;
	bool deferred;			/* nothing rests on the last transaction */
	int64_t last, synced;		/* of those that something rests on; but of a copy by
					 * position */
	bool sync_failed;		/* the last one of store_sync; so says trouble */
	struct store_log log_file;	/* if it defers */
	_Atomic int log_pages;
	sqlite3 *merging;		/* of store_sync, or NULL */

	/* Of a store that others have too; replicate.c. */
	int64_t position;
	char log[STORE_LOG_MAX];
	uint8_t digest[STORE_DIGEST_LEN];	/* at the position */
	int64_t published;	/* others have it up to here, at least */
	store_publish_fn publish;	/* NULL: nothing is given away */
	void *publish_arg;
	bool follows;			/* what is written came from the others */
	struct sqlite3_session *session; /* records the transaction; NULL: none */
	struct buf entry;	/* what the transaction changes, sealed; empty: nothing */
};

/* Closes the connection. */
void db_close(struct store *s);
/* Sets err from the connection's last error: "store PATH: what: why". */
int db_fail(struct store *s, struct err *err, const char *what);
/* The same from a code, where the connection does not know of the error. */
int db_refused(struct store *s, struct err *err, const char *what, int sqlite_code);
/* WEFT_EINVAL: a stored value that no weft ever wrote. */
int db_damaged(struct store *s, struct err *err, const char *what);

/*
 * Prepares sql and binds its parameters. One letter each: i int64_t,
 * s text (NULL: null), b blob (const void *, int length; NULL: null).
 * Texts and blobs must live until db_release, which ends every statement; it is
 * kept for the next call with the same text.
 */
int db_prepare(struct store *s, struct err *err, sqlite3_stmt **st,
	       const char *sql, const char *types, ...);
/* NULL is fine. */
void db_release(struct store *s, sqlite3_stmt *st);
/* Binds again, for the next round of a loop. */
int db_bind(struct store *s, struct err *err, sqlite3_stmt *st, const char *types, ...);
/* 1: a row, 0: no more (the statement is reset), negative: failed. */
int db_step(struct store *s, struct err *err, sqlite3_stmt *st);
/* The same for statements that give no rows: 0 or negative. */
int db_finish(struct store *s, struct err *err, sqlite3_stmt *st);
/* Prepare, bind, finish. */
int db_run(struct store *s, struct err *err, const char *sql, const char *types, ...);

/* The one number that a query gives, 0 when it gives none. */
int db_number(struct store *s, struct err *err, int64_t *out, const char *sql, const char *types,
	      ...);

/* What a row becomes: of so many bytes, zeroed before. An error leaves what fini frees
 * (NULL: nothing is owned). */
struct db_row {
	size_t size;
	int (*read)(struct store *s, sqlite3_stmt *st, void *row, struct err *err);
	void (*fini)(void *row);
};

/* All rows of a query, one array: n of v, the caller's; none when it failed. */
struct db_rows {
	void *v;
	int n;
};

int db_read_rows(struct store *s, struct err *err, const struct db_row *kind,
		 struct db_rows *out, const char *sql, const char *types, ...);

int db_begin(struct store *s, struct err *err);
/* The same for a transaction that nothing rests on before the next store_sync, which may be
 * late. */
int db_begin_deferred(struct store *s, struct err *err);
void store_call(const struct store_hook *h);
/* Merges the log into the file, on a connection that has it by this name; on any thread. A sync
 * that fails there is the loop's to make good, as any; not a disk that is full, or another
 * thread that merges. SQLite's code. */
int store_merge(struct store *s, sqlite3 *db, const char *name);
/* No store_sync is under way. */
void store_sync_fini(struct store *s);
/* Commits if rc is 0 and all parts agree, takes everything back otherwise. Returns rc or
 * the error of committing. */
int db_end(struct store *s, int rc, struct err *err);

/* A copy of a text column, "" for null. */
char *db_text(sqlite3_stmt *st, int col);
/* Copies a text column, cut to size, into buf. */
void db_text_into(sqlite3_stmt *st, int col, char *buf, int size);

/* ---- replicate.c ---- */

/*
 * Circuits of a device as text, "[[1,2],[3,4]]"; with proofs, where these are not NULL,
 * "[[1,2,6],[3,4,5]]". Reading wants them sorted, and what is read is the caller's.
 * WEFT_EINVAL: a damaged store.
 */
void store_put_circuit(struct buf *b, struct optics_xc xc, const int *proof);
void store_end_list(struct buf *b);
int store_read_circuits(struct store *s, const char *text, struct optics_xc **xcs,
			int **proofs, int *n, struct err *err);
/* The parts of such a text: false where it goes on otherwise. */
bool store_take_char(const char **at, char c);
bool store_take_number(const char **at, int *out);
/* Adds a whole number that is not negative. */
void store_put_number(struct buf *b, int n);

/* The journal of a change that begins (within a transaction), and as it is kept. rows/journals.c */
int store_works_put(struct store *s, const struct store_journal *j, int64_t change,
		    struct err *err);
int store_works_read(struct store *s, struct store_journal *j, struct err *err);

/* sqlite3_busy_handler of a shared store. shared.c */
int store_wait_for_others(void *store, int tries);
/* Reads where the store is. */
int store_replica_begin(struct store *s, struct err *err);
/* What makes the tables of the oldest format, and of each the next. tables.c */
extern const char *const store_formats[STORE_VERSION - STORE_OLDEST + 1];
/* For rows of single circuits and steps: temporary tables by the names of the views, and what
 * makes of them the values that are kept, and drops them. */
extern const char store_row_tables[], store_pack_rows[];
/* Brings the file to STORE_VERSION, or refuses it. format.c */
int store_bring_up(struct store *s, struct err *err);
#define STORE_NEWER_HINT "use the newer weft, or \"weft store export\" by it and " \
	"\"weft store import\" here"

/* Keeps a program under its digest (within a transaction). */
int store_program_put(struct store *s, const struct ring_programs *p,
		      uint8_t digest[RING_DIGEST_LEN], struct err *err);
/* Forgets closed changes but for the newest `keep`, and none that others refer to.
 * rows/changes.c */
int store_history_prune(struct store *s, int64_t keep, struct err *err);
/* WEFT_EINVAL: pages are damaged. O(size of the file). store.c */
int store_check_pages(struct store *s, struct err *err);
/* Keeps the file at path under the first free name as well, which is told. import.c */
int store_keep_old(const char *path, char kept[ERR_FILE_MAX], struct err *err);
/* Another store takes this one's place: its copy is kept beside it. copy.c */
int store_copy_replaced(const char *path, struct err *err);
/* Drops what nothing refers to any more (within a transaction). */
int store_sweep(struct store *s, struct err *err);
/* Reads the generation again after a transaction changed it. */
int store_refresh(struct store *s, struct err *err);
/* Keeps the requests of a change's configuration (within a transaction). */
int store_requests_put(struct store *s, int64_t change,
		       const struct model_config *config, struct err *err);
/* Forgets the lines that wait. audit.c */
void store_audit_drop(struct store *s);

/* Entries of an array. */
#define COUNT(v) ((int)(sizeof(v) / sizeof((v)[0])))

/* An index into names by its text, or -1. */
int store_name_index(const char *const *names, int n, const unsigned char *t);

/* Within a commit: forgets repairs of earlier changes. rows/repairs.c */
int store_repairs_prune(struct store *s, int64_t change, struct err *err);

/* Writes the gains of a change, within a transaction. rows/gains.c */
int store_gains_put(struct store *s, const struct store_journal *j, int64_t change,
		    struct err *err);

#endif
