/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of bits; see bits.h. */
#include "lib/base/bits.h"

#include <endian.h>
#include <string.h>

/* clang's clones need another spelling, and it is the tests that it builds.
 * Clones are chosen before the thread sanitizer is ready for their chooser. */
#if defined(__x86_64__) && defined(__gnu_linux__) && !defined(__clang__) && \
	!defined(__SANITIZE_THREAD__)
#define FOR_EACH_PROCESSOR __attribute__((target_clones("avx2", \
	"default"), optimize("O3")))
#else
#define FOR_EACH_PROCESSOR
#endif

FOR_EACH_PROCESSOR
int64_t bits_count(const uint64_t *a, int words)
{
	int64_t sum = 0;

	for (int i = 0; i < words; i++) {
		sum += __builtin_popcountll(a[i]);
	}
	return sum;
}

FOR_EACH_PROCESSOR
int64_t bits_count_and(const uint64_t *a, const uint64_t *b, int words)
{
	int64_t sum = 0;

	for (int i = 0; i < words; i++) {
		sum += __builtin_popcountll(a[i] & b[i]);
	}
	return sum;
}

FOR_EACH_PROCESSOR
int64_t bits_take(uint64_t *from, const uint64_t *in, const uint64_t *out, int64_t max, int words)
{
	int64_t left = max;

	for (int i = 0; i < words && left > 0; i++) {
		uint64_t set = from[i] & in[i] & (out ? ~out[i] : ~UINT64_C(0));
		int64_t n = __builtin_popcountll(set);

		from[i] &= ~set;
		for (; n > left; n--) {
			uint64_t greatest = UINT64_C(1)
					    << (63 - __builtin_clzll(set));

			from[i] |= greatest;
			set &= ~greatest;
		}
		left -= n;
	}
	return max - left;
}

FOR_EACH_PROCESSOR
void bits_or(uint64_t *restrict to, const uint64_t *restrict from, int words)
{
	for (int i = 0; i < words; i++) {
		to[i] |= from[i];
	}
}

FOR_EACH_PROCESSOR
void bits_twice(uint64_t *restrict once_to, uint64_t *restrict twice_to, const uint64_t *once,
		const uint64_t *twice, const uint64_t *a, int words)
{
	for (int i = 0; i < words; i++) {
		once_to[i] = once[i] | a[i];
		twice_to[i] = twice[i] | (once[i] & a[i]);
	}
}

/* Eight rows of eight bits, a byte each, turned: swaps ever larger squares
 * across the diagonal. */
static inline uint64_t turn_square(uint64_t x)
{
	uint64_t y = (x ^ x >> 7) & UINT64_C(0x00aa00aa00aa00aa);

	x ^= y ^ y << 7;
	y = (x ^ x >> 14) & UINT64_C(0x0000cccc0000cccc);
	x ^= y ^ y << 14;
	y = (x ^ x >> 28) & UINT64_C(0x00000000f0f0f0f0);
	return x ^ y ^ y << 28;
}

FOR_EACH_PROCESSOR
void bits_turn(const uint64_t *restrict rows, int n, uint64_t *restrict columns)
{
	uint64_t square[8];
	uint8_t bytes[64];

	memset(columns, 0, 64 * sizeof(*columns));
	for (int k = 0; k < n; k += 8) {
		memset(square, 0, sizeof(square));
		for (int i = 0; i < 8 && k + i < n; i++) {
			for (int v = 0; v < 8; v++) {
				square[v] |= (rows[k + i] >> 8 * v & 255)
					     << 8 * i;
			}
		}
		for (int v = 0; v < 8; v++) {
			square[v] = htole64(turn_square(square[v]));
		}
		memcpy(bytes, square, sizeof(bytes));
		for (int v = 0; v < 64; v++) {
			columns[v] |= (uint64_t)bytes[v] << k;
		}
	}
}
