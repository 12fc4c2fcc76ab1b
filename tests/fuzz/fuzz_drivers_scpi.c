/* SPDX-License-Identifier: Apache-2.0 */
/* The reply parsers of polatis-scpi: the first byte picks one, the rest is
 * the reply. What is accepted must keep the parser's promises. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/scpi/scpi.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_pairs(const char *line)
{
	struct scpi_pairs p;

	if (scpi_parse_pairs(line, &p, NULL)) {
		return;
	}
	for (int i = 0; i < p.n; i++) {
		assert(p.in[i] >= 1 && p.in[i] <= SCPI_MAX_PORT);
		assert(p.out[i] >= 1 && p.out[i] <= SCPI_MAX_PORT);
	}
	scpi_pairs_fini(&p);
}

static void check_error(const char *line)
{
	char text[24];
	int code;

	if (scpi_parse_error(line, &code, text, sizeof(text), NULL) == 0) {
		assert(strlen(text) < sizeof(text));
		assert(code >= -99999 && code <= 99999);
	}
}

static void check_sizes(const char *line)
{
	int n, m;
	bool any;

	if (scpi_parse_size(line, &n, &m, NULL) == 0 ||
	    scpi_parse_identity(line, &n, &m, &any, NULL) == 0) {
		assert(n >= 0 && n <= SCPI_MAX_PORT);
		assert(m >= 0 && m <= SCPI_MAX_PORT);
	}
}

static void check_ports(const char *line)
{
	int32_t mdbm[4];
	char states[4];

	if (scpi_parse_powers(line, 4, mdbm, NULL) == 0) {
		for (int i = 0; i < 4; i++) {
			assert(mdbm[i] > -1000000 && mdbm[i] < 1000000);
		}
	}
	if (scpi_parse_states(line, 4, states, NULL) == 0) {
		for (int i = 0; i < 4; i++) {
			assert(strchr("DEF", states[i]));
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const checks[])(const char *) = {
		check_pairs, check_error, check_sizes, check_ports };
	char *line = size ? strndup((const char *)data + 1, size - 1) : NULL;

	if (line) {
		checks[data[0] % 4](line);
	}
	free(line);
	return 0;
}
