/* SPDX-License-Identifier: Apache-2.0 */
/* A known_hosts file: the first line is a host's name, the rest the file. Whatever the lines
 * are, they are taken or passed over, and types of keys are chosen for the name. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/core/known_hosts.h"
#include "lib/base/alloc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	LIBSSH2_SESSION *session = libssh2_session_init();
	char *text = x_ndup((const char *)data, size), *rest;
	struct known_hosts *k;
	struct err err = { 0 };

	if (!session) {
		abort();
	}
	rest = text + strcspn(text, "\n");
	if (*rest) {
		*rest++ = '\0';
	}
	k = known_hosts_parse(session, rest);
	assert(known_hosts_prefer(k, session, text, &err) == 0);
	assert(known_hosts_check(k, session, "host", 22, "file", &err) == WEFT_EDENIED);
	known_hosts_free(k);
	libssh2_session_free(session);
	free(text);
	return 0;
}
