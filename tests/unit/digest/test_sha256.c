/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 against the examples of its standard, and against OpenSSL's. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <openssl/sha.h>
#include <string.h>

#include "lib/digest/sha256.h"

static void examples(void **state)
{
	static const struct {
		const char *text, *hex;
	} all[] = {
		{ "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
		{ "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
		{ "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
		  "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		uint8_t digest[SHA256_LEN];
		char hex[SHA256_HEX_LEN];

		sha256(all[i].text, strlen(all[i].text), digest);
		sha256_hex(digest, hex);
		assert_string_equal(hex, all[i].hex);
	}
}

/* Every length around the ends of blocks, in pieces of every size. */
static void as_openssl_has_it(void **state)
{
	uint8_t data[200], ours[SHA256_LEN], theirs[SHA256_DIGEST_LENGTH];
	struct sha256 s;

	(void)state;
	for (size_t i = 0; i < sizeof(data); i++) {
		data[i] = (uint8_t)(i * 167 + 13);
	}
	sha256_begin(&s);
	for (size_t len = 0; len <= sizeof(data); len++) {
		SHA256(data, len, theirs);
		for (size_t piece = 1; piece <= 70; piece++) {
			for (size_t at = 0; at < len; at += piece) {
				sha256_add(&s, data + at, len - at < piece ? len - at : piece);
			}
			sha256_finish(&s, ours);	/* and begins again */
			assert_memory_equal(ours, theirs, SHA256_LEN);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(examples),
		cmocka_unit_test(as_openssl_has_it),
	};

	return cmocka_run_group_tests_name("digest/sha256", tests, NULL, NULL);
}
