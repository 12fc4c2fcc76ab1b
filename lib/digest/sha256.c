/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/digest/sha256.h"

#include <stdio.h>

void sha256_begin(struct sha256 *s)
{
	sha256_init(&s->nettle);
}

void sha256_add(struct sha256 *s, const void *data, size_t len)
{
	sha256_update(&s->nettle, len, data);
}

void sha256_finish(struct sha256 *s, uint8_t digest[SHA256_LEN])
{
	sha256_digest(&s->nettle, SHA256_LEN, digest);
}

void sha256(const void *data, size_t len, uint8_t digest[SHA256_LEN])
{
	struct sha256 s;

	sha256_begin(&s);
	sha256_add(&s, data, len);
	sha256_finish(&s, digest);
}

void sha256_hex(const uint8_t digest[SHA256_LEN], char hex[SHA256_HEX_LEN])
{
	for (int i = 0; i < SHA256_LEN; i++) {
		snprintf(hex + 2 * i, 3, "%02x", digest[i]);
	}
}
