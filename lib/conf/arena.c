/* Block allocation; see arena.h. */
#include "lib/conf/arena.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifndef __has_feature
#define __has_feature(x) 0
#endif

/* Under the address sanitiser every piece is a block of its own, so that it
 * sees an overrun of any of them. */
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#define BLOCK_SIZE ((size_t)1)
#else
#define BLOCK_SIZE ((size_t)64 << 10)
#endif

struct arena_block {
	struct arena_block *next;
	alignas(max_align_t) char data[];
};

static int add_block(struct arena *a, size_t need)
{
	size_t size = need > BLOCK_SIZE ? need : BLOCK_SIZE;
	struct arena_block *b = calloc(1, sizeof(*b) + size);

	if (!b) {
		return -1;
	}
	b->next = a->head;
	a->head = b;
	a->at = b->data;
	a->left = size;
	return 0;
}

void *arena_alloc(struct arena *a, size_t n, size_t size)
{
	const size_t align = alignof(max_align_t);
	size_t need;
	void *p;

	if (__builtin_mul_overflow(n, size, &need) || need > SIZE_MAX / 2) {
		return NULL;
	}
	need = need ? (need + align - 1) / align * align : align;
	if (need > a->left && add_block(a, need)) {
		return NULL;
	}
	p = a->at;
	a->at += need;
	a->left -= need;
	return p;
}

char *arena_strndup(struct arena *a, const char *s, size_t len)
{
	char *copy = arena_alloc(a, len + 1, 1);

	if (copy) {
		memcpy(copy, s, len);
	}
	return copy;
}

void arena_fini(struct arena *a)
{
	while (a->head) {
		struct arena_block *b = a->head;

		a->head = b->next;
		free(b);
	}
	memset(a, 0, sizeof(*a));
}
