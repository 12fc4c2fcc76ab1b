/* SHA-256; section numbers are those of FIPS 180-4. */
#include "lib/digest/sha256.h"

#include <stdio.h>
#include <string.h>

#define BLOCK 64

/* 4.2.2: the cube roots of the first 64 primes. */
static const uint32_t constants[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1,
	0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3,
	0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786,
	0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
	0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147,
	0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13,
	0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
	0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
	0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a,
	0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
	0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

/* 5.3.3: the square roots of the first eight. */
static const uint32_t first_state[8] = {
	0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
	0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
};

static uint32_t rotate(uint32_t x, int n)
{
	return x >> n | x << (32 - n);
}

/* 6.2.2, step 1. */
static void expand(const uint8_t *block, uint32_t w[64])
{
	for (int t = 0; t < 16; t++, block += 4) {
		w[t] = (uint32_t)block[0] << 24 | (uint32_t)block[1] << 16 |
		       (uint32_t)block[2] << 8 | block[3];
	}
	for (int t = 16; t < 64; t++) {
		uint32_t a = w[t - 15], b = w[t - 2];

		w[t] = w[t - 16] + w[t - 7] + (rotate(a, 7) ^ rotate(a, 18) ^ a >> 3) +
		       (rotate(b, 17) ^ rotate(b, 19) ^ b >> 10);
	}
}

/* 6.2.2, steps 2 to 4; v[0] to v[7] are its a to h. */
static void take_block(uint32_t state[8], const uint8_t *block)
{
	uint32_t w[64], v[8];

	expand(block, w);
	memcpy(v, state, sizeof(v));
	for (int t = 0; t < 64; t++) {
		uint32_t s1 = rotate(v[4], 6) ^ rotate(v[4], 11) ^ rotate(v[4], 25);
		uint32_t s0 = rotate(v[0], 2) ^ rotate(v[0], 13) ^ rotate(v[0], 22);
		uint32_t ch = (v[4] & v[5]) ^ (~v[4] & v[6]);
		uint32_t maj = (v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]);
		uint32_t t1 = v[7] + s1 + ch + constants[t] + w[t];

		memmove(v + 1, v, 7 * sizeof(*v));
		v[4] += t1;
		v[0] = t1 + s0 + maj;
	}
	for (int i = 0; i < 8; i++) {
		state[i] += v[i];
	}
}

void sha256_begin(struct sha256 *s)
{
	*s = (struct sha256){ .len = 0 };
	memcpy(s->state, first_state, sizeof(s->state));
}

void sha256_add(struct sha256 *s, const void *data, size_t len)
{
	const uint8_t *p = data;
	size_t held = s->len % BLOCK;

	s->len += len;
	while (len > 0) {
		size_t n = BLOCK - held < len ? BLOCK - held : len;

		memcpy(s->block + held, p, n);
		held += n;
		p += n;
		len -= n;
		if (held == BLOCK) {
			take_block(s->state, s->block);
			held = 0;
		}
	}
}

/* 5.1.1: a bit, zeros, and the length in bits. */
void sha256_finish(struct sha256 *s, uint8_t digest[SHA256_LEN])
{
	static const uint8_t padding[BLOCK] = { 0x80 };
	uint64_t bits = s->len * 8;
	uint8_t length[8];

	sha256_add(s, padding, BLOCK - (s->len + 8) % BLOCK);
	for (int i = 0; i < 8; i++) {
		length[i] = (uint8_t)(bits >> (56 - 8 * i));
	}
	sha256_add(s, length, sizeof(length));
	for (int i = 0; i < SHA256_LEN; i++) {
		digest[i] = (uint8_t)(s->state[i / 4] >> (24 - i % 4 * 8));
	}
	sha256_begin(s);
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
