/* SPDX-License-Identifier: Apache-2.0 */
/* Open-addressing hash maps; see map.h. Capacity is a power of two and at
 * most three quarters of it are used. */
#include "lib/base/map.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/number/rng.h"

struct strmap_slot {
	char *key;	/* NULL: free */
	void *value;
};

struct u64map_slot {
	uint64_t key, value;
	bool used;
};

uint64_t hash_bytes(const void *data, size_t len)
{
	const unsigned char *p = data;
	uint64_t h = 0xcbf29ce484222325u;

	for (size_t i = 0; i < len; i++) {
		h = (h ^ p[i]) * 0x100000001b3u;
	}
	return h;
}

static struct strmap_slot *str_find(struct strmap_slot *slots, size_t cap, const char *key)
{
	size_t i = hash_bytes(key, strlen(key)) & (cap - 1);

	while (slots[i].key && strcmp(slots[i].key, key) != 0) {
		i = (i + 1) & (cap - 1);
	}
	return &slots[i];
}

static void str_grow(struct strmap *m)
{
	size_t cap = m->cap ? m->cap * 2 : 16;
	struct strmap_slot *slots = x_new(cap, sizeof(*slots));

	for (size_t i = 0; i < m->cap; i++) {
		if (m->slots[i].key) {
			*str_find(slots, cap, m->slots[i].key) = m->slots[i];
		}
	}
	free(m->slots);
	m->slots = slots;
	m->cap = cap;
}

void strmap_set(struct strmap *m, const char *key, void *value)
{
	struct strmap_slot *s;

	if ((m->n + 1) * 4 > m->cap * 3) {
		str_grow(m);
	}
	s = str_find(m->slots, m->cap, key);
	if (!s->key) {
		s->key = x_dup(key);
		m->n++;
	}
	s->value = value;
}

void *strmap_get(const struct strmap *m, const char *key)
{
	if (m->cap == 0) {
		return NULL;
	}
	return str_find(m->slots, m->cap, key)->value;
}

void strmap_fini(struct strmap *m)
{
	for (size_t i = 0; i < m->cap; i++) {
		free(m->slots[i].key);
	}
	free(m->slots);
	memset(m, 0, sizeof(*m));
}

static struct u64map_slot *u64_find(struct u64map_slot *slots, size_t cap, uint64_t key)
{
	size_t i = rng_mix(key) & (cap - 1);

	while (slots[i].used && slots[i].key != key) {
		i = (i + 1) & (cap - 1);
	}
	return &slots[i];
}

static void u64_grow(struct u64map *m)
{
	size_t cap = m->cap ? m->cap * 2 : 16;
	struct u64map_slot *slots = x_new(cap, sizeof(*slots));

	for (size_t i = 0; i < m->cap; i++) {
		if (m->slots[i].used) {
			*u64_find(slots, cap, m->slots[i].key) = m->slots[i];
		}
	}
	free(m->slots);
	m->slots = slots;
	m->cap = cap;
}

void u64map_set(struct u64map *m, uint64_t key, uint64_t value)
{
	struct u64map_slot *s;

	if ((m->n + 1) * 4 > m->cap * 3) {
		u64_grow(m);
	}
	s = u64_find(m->slots, m->cap, key);
	if (!s->used) {
		s->used = true;
		s->key = key;
		m->n++;
	}
	s->value = value;
}

bool u64map_get(const struct u64map *m, uint64_t key, uint64_t *value)
{
	const struct u64map_slot *s;

	if (m->cap == 0) {
		return false;
	}
	s = u64_find(m->slots, m->cap, key);
	if (s->used && value) {
		*value = s->value;
	}
	return s->used;
}

void u64map_fini(struct u64map *m)
{
	free(m->slots);
	memset(m, 0, sizeof(*m));
}
