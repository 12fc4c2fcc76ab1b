/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hash maps: string keys to pointers, and 64-bit keys to 64-bit values.
 * Open addressing, O(1) expected. Keys of strmap are copied.
 */
#ifndef WEFT_LIB_BASE_MAP_H
#define WEFT_LIB_BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct strmap {
	struct strmap_slot *slots;	/* private */
	size_t n, cap;
};

/* Zero-initialise, use, fini. Values are the caller's. */
void strmap_fini(struct strmap *m);
/* Adds or replaces. */
void strmap_set(struct strmap *m, const char *key, void *value);
/* The value, or NULL when the key is absent. */
void *strmap_get(const struct strmap *m, const char *key);

struct u64map {
	struct u64map_slot *slots;	/* private */
	size_t n, cap;
};

void u64map_fini(struct u64map *m);
/* Adds or replaces. */
void u64map_set(struct u64map *m, uint64_t key, uint64_t value);
/* True and *value (when not NULL) if present. */
bool u64map_get(const struct u64map *m, uint64_t key, uint64_t *value);

/* FNV-1a, for tables only. */
uint64_t hash_bytes(const void *data, size_t len);

#endif
