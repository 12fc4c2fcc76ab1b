/* JSON files of the room: text to the value at its root. */
#ifndef WEFT_COLLECTIVE_SCHEDULE_JSON_ROOT_H
#define WEFT_COLLECTIVE_SCHEDULE_JSON_ROOT_H

#include <jansson.h>

#include "lib/base/err.h"

/* The value, for json_decref; NULL and WEFT_EINVAL with line and column for
 * what is no JSON or has a key twice. */
static inline json_t *json_root(const char *text, size_t len, struct err *err)
{
	json_error_t at;
	json_t *root = json_loadb(text, len, JSON_REJECT_DUPLICATES, &at);

	if (!root) {
		err_set(err, WEFT_EINVAL, "not valid JSON: %s", at.text);
		err_at(err, NULL, at.line, at.column);
	}
	return root;
}

#endif
