/* Memory that is given out piece by piece and freed at once. */
#ifndef WEFT_LIB_CONF_ARENA_H
#define WEFT_LIB_CONF_ARENA_H

#include <stddef.h>

struct arena_block;

/* Zero-initialise, use, fini; usable again after fini. */
struct arena {
	struct arena_block *head;
	size_t left;		/* free bytes of the head block */
	char *at;		/* where they begin */
};

/* Zeroed, aligned for anything; NULL when out of memory or when n * size
 * does not fit. Amortised O(bytes). */
void *arena_alloc(struct arena *a, size_t n, size_t size);

/* A terminated copy of len bytes, or NULL. */
char *arena_strndup(struct arena *a, const char *s, size_t len);

void arena_fini(struct arena *a);

#endif
