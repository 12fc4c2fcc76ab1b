/* SPDX-License-Identifier: Apache-2.0 */
/* Rational helpers; see rat.h. */
#include "lib/base/number/rat.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/err.h"

static void z_set(mpz_ptr z, int64_t v)
{
	uint64_t mag = v < 0 ? -(uint64_t)v : (uint64_t)v;

	mpz_import(z, 1, 1, sizeof(mag), 0, 0, &mag);
	if (v < 0) {
		mpz_neg(z, z);
	}
}

void rat_set(mpq_t q, int64_t num, int64_t den)
{
	z_set(mpq_numref(q), num);
	z_set(mpq_denref(q), den);
	mpq_canonicalize(q);
}

const char *rat_str(const mpq_t q, char *buf, int size)
{
	char *s = mpq_get_str(NULL, 10, q);
	void (*gmp_free)(void *, size_t);

	snprintf(buf, size, "%s", s ? s : "?");
	mp_get_memory_functions(NULL, NULL, &gmp_free);
	if (s) {
		gmp_free(s, strlen(s) + 1);
	}
	return buf;
}

int rat_parse(mpq_t q, const char *s)
{
	size_t len = strlen(s);

	if (len == 0 || len > 1000 || s[0] == '+' || s[0] == ' ' ||
	    strspn(s, "-0123456789/") != len || mpq_set_str(q, s, 10) != 0 ||
	    mpz_sgn(mpq_denref(q)) <= 0) {
		mpq_set_ui(q, 0, 1);
		return WEFT_EINVAL;
	}
	mpq_canonicalize(q);
	return 0;
}

mpz_t *numbers_new(size_t n)
{
	mpz_t *v = x_alloc(n + 1, sizeof(*v));

	for (size_t i = 0; i < n; i++) {
		mpz_init(v[i]);
	}
	return v;
}

void numbers_free(mpz_t *v, size_t n)
{
	for (size_t i = 0; v && i < n; i++) {
		mpz_clear(v[i]);
	}
	free(v);
}

int64_t rat_gcd(int64_t a, int64_t b)
{
	while (b) {
		int64_t r = a % b;

		a = b;
		b = r;
	}
	return a;
}
