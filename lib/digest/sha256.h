/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SHA-256 (FIPS 180-4): names of texts and programs, and what shows that bytes are as they were. By
 * nettle, which is there also where OpenSSL is left out.
 */
#ifndef WEFT_LIB_DIGEST_SHA256_H
#define WEFT_LIB_DIGEST_SHA256_H

#include <nettle/sha2.h>
#include <stddef.h>
#include <stdint.h>

#define SHA256_LEN SHA256_DIGEST_SIZE
#define SHA256_HEX_LEN (2 * SHA256_LEN + 1)	/* with its terminator */

struct sha256 {
	struct sha256_ctx nettle;
};

/* Bytes are added in pieces; finish leaves s as it was begun. O(len). */
void sha256_begin(struct sha256 *s);
void sha256_add(struct sha256 *s, const void *data, size_t len);
void sha256_finish(struct sha256 *s, uint8_t digest[SHA256_LEN]);

/* All at once. */
void sha256(const void *data, size_t len, uint8_t digest[SHA256_LEN]);

/* In lower-case hexadecimal digits. */
void sha256_hex(const uint8_t digest[SHA256_LEN], char hex[SHA256_HEX_LEN]);

#endif
