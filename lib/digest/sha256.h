/* SHA-256 (FIPS 180-4): names of texts and programs, and what shows that bytes are as they were. */
#ifndef WEFT_LIB_DIGEST_SHA256_H
#define WEFT_LIB_DIGEST_SHA256_H

#include <stddef.h>
#include <stdint.h>

#define SHA256_LEN 32
#define SHA256_HEX_LEN 65	/* with its terminator */

struct sha256 {
	uint32_t state[8];
	uint64_t len;		/* bytes so far */
	uint8_t block[64];	/* the last len % 64 of them */
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
