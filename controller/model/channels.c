/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of wavelengths: "0-7,16", in this order. */
#include <stdio.h>

#include "controller/model/private.h"

/* One number, or two with a dash between; *end: what comes after. */
static bool parse_range(const char *text, const char **end, int *first, int *last)
{
	int len = 0;

	*first = *last = -1;
	if (sscanf(text, "%4d%n", first, &len) != 1 || *first < 0) {
		return false;
	}
	*last = *first;
	*end = text + len;
	if (**end == '-') {
		if (sscanf(*end + 1, "%4d%n", last, &len) != 1 || *last < 0) {
			return false;
		}
		*end += 1 + len;
	}
	return true;
}

/* Appends first..last, downwards when last is smaller. False for what is out
 * of range or there already. */
static bool add_range(bool *seen, int *list, int *n, int first, int last)
{
	int step = first <= last ? 1 : -1;

	if (first >= MODEL_MAX_WAVELENGTHS || last >= MODEL_MAX_WAVELENGTHS) {
		return false;
	}
	for (int c = first; c != last + step; c += step) {
		if (seen[c]) {
			return false;
		}
		seen[c] = true;
		list[(*n)++] = c;
	}
	return true;
}

bool build_channels(struct model_build *b, const char *object, const struct conf_value *v,
		    int **list,
		    int *n)
{
	bool seen[MODEL_MAX_WAVELENGTHS] = { false }, good = true;
	const char *at = v->text;

	*n = 0;
	*list = conf_arena_alloc(b->r->keep, MODEL_MAX_WAVELENGTHS, sizeof(**list));
	for (bool more = true; good && more; at += more) {
		int first, last;

		good = parse_range(at, &at, &first, &last) &&
		       add_range(seen, *list, n, first, last);
		more = good && *at == ',';
		good &= more || !*at;
	}
	if (!good) {
		conf_error(b->r, v->node->at, WEFT_EINVAL,
			   "%s: channels: '%.40s' is not a list such as "
			   "0-7,16 of numbers below %d, each once",
			   object, v->text, MODEL_MAX_WAVELENGTHS);
	}
	return good;
}
