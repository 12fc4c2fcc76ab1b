/* SPDX-License-Identifier: Apache-2.0 */
/* Algorithms as people write them. */
#include <stdlib.h>
#include <string.h>

#include "collective/torus/private.h"

/* One list of levels: returns where it ends, NULL for what is none. */
static const char *parse_list(const char *text, struct torus_radices *r)
{
	for (*r = (struct torus_radices){ 0 }; r->n < TORUS_MAX_LEVELS; text++) {
		char *end;
		long radix = *text >= '0' && *text <= '9' ? strtol(text, &end, 10) : 0;

		if (radix < 2 || radix > TORUS_MAX_SIZE) {
			return NULL;
		}
		r->level[r->n] = (struct torus_level){ (int)radix, *end == 'c', 0 };
		text = end + (*end == 'c');
		if (*text == '+') {
			bool number = text[1] >= '1' && text[1] <= '9';
			long more = number ? strtol(text + 1, &end, 10) : 0;

			if (more < 1 || more > TORUS_MAX_SIZE) {
				return NULL;
			}
			r->level[r->n].more = (int)more;
			text = end;
		}
		r->n++;
		if (*text != 'x') {
			return text;
		}
	}
	return NULL;
}

int torus_parse_radices(const struct torus_shape *s, const char *text, struct torus_spec *spec,
			struct err *err)
{
	const char *at = text;

	for (int e = 0; e < s->n_dims; e++, at++) {
		struct torus_radices r;
		const char *end = parse_list(at, &r);

		if (end && *end == '\0' && e == 0) {
			for (int i = 0; i < s->n_dims; i++) {
				spec->radices[i] = r;
			}
			return 0;
		}
		if (!end || *end != (e < s->n_dims - 1 ? ',' : '\0')) {
			return err_set(err, WEFT_EINVAL, "levels \"%.64s\": expected numbers from "
				       "2 with x between them, such as 4x16, 8cx8c or 5x6+1, for "
				       "one dimension and all, or for %d with commas", text,
				       s->n_dims);
		}
		spec->radices[e] = r;
		at = end;
	}
	return 0;
}

const char *torus_name(const struct torus_spec *spec)
{
	static const char *const names[TORUS_LINES] = {
		"swing", "rabenseifner", "mixed-radix", "bucket", "ring",
	};

	if (spec->lines == TORUS_SWING && spec->rounds >= 0) {
		return spec->rounds > 0 ? "hybrid" : "swing-latency";
	}
	return spec->lines == TORUS_DOUBLING && spec->rounds == 0 ? "recursive-doubling"
								  : names[spec->lines];
}

static void print_radices(const struct torus_radices *r, struct buf *out)
{
	for (int i = 0; i < r->n; i++) {
		buf_printf(out, "%s%d%s", i ? "x" : "", r->level[i].radix,
			   r->level[i].chain ? "c" : "");
		if (r->level[i].more > 0) {
			buf_printf(out, "+%d", r->level[i].more);
		}
	}
}

void torus_print_radices(const struct torus_shape *s, const struct torus_spec *spec,
			 struct buf *out)
{
	for (int e = 0; e < s->n_dims && spec->lines == TORUS_LEVELS; e++) {
		buf_printf(out, "%s", e ? "," : "");
		print_radices(&spec->radices[e], out);
	}
}
