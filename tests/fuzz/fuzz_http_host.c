/* SPDX-License-Identifier: Apache-2.0 */
/* Which names are this machine: whatever the field says, a name that is let in
 * is one of the three forms, with nothing but a port behind it. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lib/http/http.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);

	if (!text) {
		return 0;
	}
	memcpy(text, data, size);
	text[size] = '\0';
	if (http_host_is_local(text)) {
		const char *port = strrchr(text, ':');

		assert(strncasecmp(text, "localhost", 9) == 0 ||
		       strncmp(text, "127.", 4) == 0 ||
		       strncmp(text, "[::1]", 5) == 0);
		assert(!strpbrk(text, "/@?# \t\r\n"));
		if (port && strcmp(text, "[::1]") != 0) {
			assert(strspn(port + 1, "0123456789") ==
			       strlen(port + 1));
		}
	}
	free(text);
	return 0;
}
