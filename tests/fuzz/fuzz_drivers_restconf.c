/* SPDX-License-Identifier: Apache-2.0 */
/* The readers of polatis-restconf's answers: the first byte picks one, the rest
 * is the body. What is accepted must keep the reader's promises. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/restconf/restconf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_pairs(const char *body)
{
	struct restconf_pair *pairs;
	int n;

	if (restconf_parse_pairs(body, &pairs, &n, NULL)) {
		return;
	}
	for (int i = 0; i < n; i++) {
		assert(pairs[i].ingress >= 1 && pairs[i].ingress <= RESTCONF_MAX_PORT);
		assert(pairs[i].egress >= 1 && pairs[i].egress <= RESTCONF_MAX_PORT);
	}
	free(pairs);
}

static void check_texts(const char *body)
{
	char tag[8], text[24];

	restconf_parse_error(body, tag, sizeof(tag), text, sizeof(text));
	assert(strlen(tag) < sizeof(tag) && strlen(text) < sizeof(text));
	if (restconf_parse_product(body, text, sizeof(text), NULL) == 0 ||
	    restconf_parse_text(body, "startup-mode", text, sizeof(text), NULL) == 0) {
		assert(strlen(text) < sizeof(text));
	}
	if (restconf_parse_stream(body, text, sizeof(text))) {
		assert(text[0] == '/' && strlen(text) < sizeof(text));
	}
}

static int take_state(int32_t port, enum restconf_status s, void *arg, struct err *err)
{
	(void)arg;
	(void)err;
	assert(port >= 1 && port <= RESTCONF_MAX_PORT && s <= RESTCONF_FAILED);
	return 0;
}

static int take_power(int32_t port, int32_t mdbm, void *arg, struct err *err)
{
	(void)arg;
	(void)err;
	assert(port >= 1 && port <= RESTCONF_MAX_PORT);
	assert(mdbm >= -1000000 && mdbm <= 1000000);
	return 0;
}

static void check_ports(const char *body)
{
	restconf_parse_states(body, take_state, NULL, NULL);
	restconf_parse_powers(body, take_power, NULL, NULL);
}

static void check_note(const struct restconf_note *note, void *arg)
{
	(void)arg;
	assert(note->port >= 0 && note->port <= RESTCONF_MAX_PORT);
	assert(strlen(note->text) < sizeof(note->text));
}

static void check_notes(const char *body)
{
	struct restconf_note note;
	int64_t last;

	if (restconf_parse_note(body, &note, NULL) == 0) {
		check_note(&note, NULL);
	}
	restconf_parse_log(body, 0, check_note, NULL, &last, NULL);
	assert(last >= 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const checks[])(const char *) = { check_pairs, check_texts, check_ports,
							check_notes };
	char *body = size ? strndup((const char *)data + 1, size - 1) : NULL;

	if (body) {
		checks[data[0] % 4](body);
	}
	free(body);
	return 0;
}
