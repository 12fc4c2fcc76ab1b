/* Did you mean ...? */
#ifndef WEFT_LIB_BASE_SUGGEST_H
#define WEFT_LIB_BASE_SUGGEST_H

#include <stdbool.h>

#include "lib/base/err.h"

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
