/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Errors as values: a code, a message that grows by wrapping, and optionally
 * the place in a user's file. An error is filled where it happens, wrapped on
 * the way up, and printed once at the edge (command line, gRPC status, log).
 */
#ifndef WEFT_LIB_BASE_ERR_H
#define WEFT_LIB_BASE_ERR_H

#include <stdarg.h>
#include <stdbool.h>

/* Every fallible function returns 0 or one of these negative codes. */
enum weft_err {
	WEFT_OK = 0,
	WEFT_EINVAL = -1,	/* bad configuration or data (exit 65) */
	WEFT_EUSAGE = -2,	/* wrong command line (exit 64) */
	/* -3 was for no memory, at which the process ends now: alloc.h */
	WEFT_EIO = -4,		/* file or socket failed */
	WEFT_ENOTFOUND = -5,	/* the named thing does not exist */
	WEFT_ESTALE = -6,	/* made from an older state, or locked (exit 75) */
	WEFT_EDENIED = -7,	/* not permitted (exit 77) */
	WEFT_EUNAVAIL = -8,	/* device or daemon does not answer (exit 69) */
	WEFT_ETIMEOUT = -9,	/* deadline passed (exit 124) */
	WEFT_ECANCELED = -10,	/* stopped on request */
	WEFT_EUNSUPPORTED = -11, /* valid, but weft cannot do it (exit 65) */
	WEFT_EINFEASIBLE = -12,	/* proven to have no solution (exit 65) */
	WEFT_EVERIFY = -13,	/* what was read back or replayed is wrong */
	WEFT_ELIMIT = -14,	/* a size, depth or count limit was hit */
	WEFT_EDEVICE = -15,	/* a device answered with an error */
	WEFT_EINTERNAL = -16,	/* a bug in weft */
	WEFT_EHELD = -17,	/* another has what is asked for (exit 75) */
};

#define ERR_MSG_MAX 512
#define ERR_FILE_MAX 192

struct err {
	int code;		   /* enum weft_err, 0 while unset */
	int line, col;		   /* 1-based, 0 when there is no place */
	char file[ERR_FILE_MAX];   /* "" when there is no place */
	char msg[ERR_MSG_MAX];	   /* "outer: inner", always terminated */
	char hint[ERR_FILE_MAX];   /* what to do about it, or "" */
};

/* Clears err, which may be NULL. */
void err_clear(struct err *err);

/* Sets code and message and forgets place and hint. Over-long messages are
 * cut. err may be NULL. Returns code, so that `return err_set(...)` works. */
int err_set(struct err *err, enum weft_err code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Puts "text: " before the present message. Returns the present code
 * (WEFT_EINTERNAL when err is NULL or unset). */
int err_wrap(struct err *err, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Adds the place in a user's file. file NULL means "<input>". */
void err_at(struct err *err, const char *file, int line, int col);

/* Adds a hint for the user. */
void err_hint(struct err *err, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Sets code with "what: strerror(errnum)"; returns the code. */
int err_errno(struct err *err, enum weft_err code, int errnum,
	      const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* Stable upper-case name of a code, e.g. "EINVAL"; "EUNKNOWN" otherwise. */
const char *err_name(int code);

/* Code of a stable name, or WEFT_EINTERNAL. */
int err_from_name(const char *name);

/* Writes "file:line:col: message" (place only when known) into buf, always
 * terminated. Returns buf. The hint is not part of it. */
const char *err_str(const struct err *err, char *buf, int size);

/* Process exit code of an error, by the table in weft(1). */
int err_exit_code(int code);

/* A growing list of errors: all that is wrong with one input. */
struct err_list {
	struct err *v;
	int n, cap;
	int max;	/* keep at most this many (0: 100); the rest is counted */
	int dropped;
};

/* Appends a copy of err. */
void err_list_add(struct err_list *list, const struct err *err);

/* Sorts by file, line, column (stable). */
void err_list_sort(struct err_list *list);

/* Frees the memory; the list may be used again. */
void err_list_fini(struct err_list *list);

/* ---- what a build leaves out ---- */

/* WEFT_EUNSUPPORTED: what is wanted is not in this build (version.h). */
int build_lacks(const char *what, struct err *err);

/* ---- names that are not known ---- */

/* Finds what the user may have meant: the candidate with the smallest edit
 * distance, if that is small for the word's length. Words that differ from
 * it in digits only are no help and are passed over. */
struct nearest {
	const char *word;
	const char *best;	/* borrowed, NULL: none is near */
	int distance;
};

/* The word must outlive n; then every candidate, which must too. */
void nearest_init(struct nearest *n, const char *word);
void nearest_try(struct nearest *n, const char *candidate);
/* "did you mean 'x'?"; false when there is nothing to say. */
bool nearest_hint(const struct nearest *n, struct err *e);

#endif
