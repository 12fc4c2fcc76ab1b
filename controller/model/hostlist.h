/*
 * Ranges to names. Private to the model; model_expand is the public face.
 *
 *   text  = term { "," term }
 *   term  = { letters | "[" span { "," span } "]" }
 *   span  = number | number "-" number
 *
 * Brackets that hold a ':' are letters: they enclose an IPv6 address.
 * A term with several brackets counts through the last one fastest. Numbers
 * keep their width: both ends of "[00-15]" have two digits, only numbers
 * without leading zeros may differ in width ("[8-11]").
 */
#ifndef WEFT_MODEL_HOSTLIST_H
#define WEFT_MODEL_HOSTLIST_H

#include <stddef.h>
#include <stdint.h>

#include "controller/model/model.h"
#include "lib/base/err.h"
#include "lib/conf/conf.h"

/* Longest name that a term may expand to. */
#define NAMES_MAX_LEN 255

struct name {
	const char *text;
	struct conf_place at;	/* for users: where the text was given */
};

struct names {
	struct name *v;
	int n;
};

/* Counts the names of text, which must not exceed max. WEFT_EINVAL,
 * WEFT_ELIMIT (nothing was expanded yet), WEFT_ENOMEM; *offset is the byte
 * where it went wrong. O(length). */
int names_count(const char *text, int64_t max, int64_t *n, size_t *offset,
		struct err *err);

/* Appends the names of a text that names_count accepted to out, which has
 * room for them, all with the same place. WEFT_ENOMEM. O(bytes written). */
int names_expand(const char *text, struct conf_place at, struct conf_arena *arena,
		 struct names *out, struct err *err);

#endif
