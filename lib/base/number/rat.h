/* SPDX-License-Identifier: Apache-2.0 */
/* Exact numbers: thin helpers over GMP's mpq_t and mpz_t. */
#ifndef WEFT_LIB_BASE_NUMBER_RAT_H
#define WEFT_LIB_BASE_NUMBER_RAT_H

#include <gmp.h>
#include <stdint.h>

/* q = num/den, canonical. den != 0. Any int64_t. */
void rat_set(mpq_t q, int64_t num, int64_t den);

/* "341/256", or "2" when the denominator is one, into buf (always
 * terminated; cut when too small). Returns buf. */
const char *rat_str(const mpq_t q, char *buf, int size);

/* Parses "a/b" or "a" (decimal, optional minus, at most 1000 characters).
 * 0, or WEFT_EINVAL and q is 0. */
int rat_parse(mpq_t q, const char *s);

/* Of non-negative numbers; gcd(0, b) = b. */
int64_t rat_gcd(int64_t a, int64_t b);

/* n integers, all zero, for numbers_free. */
mpz_t *numbers_new(size_t n);
/* NULL is fine; n as in numbers_new. */
void numbers_free(mpz_t *v, size_t n);

#endif
