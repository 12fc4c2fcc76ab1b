/* SPDX-License-Identifier: Apache-2.0 */
/* A store from text: any bytes are refused with a message, or become a store. */
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "controller/store/store.h"

static char dir[] = "/dev/shm/weft-fuzz-XXXXXX", path[64];

static void clean(void)
{
	static const char *const ends[] = { "", ".lock", "-wal", "-shm" };

	for (int i = 0; i < 4; i++) {
		char name[80];

		snprintf(name, sizeof(name), "%s%s", path, ends[i]);
		unlink(name);
	}
}

static void end(void)
{
	clean();
	rmdir(dir);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct store_import done;
	struct err err = { 0 };
	struct store *s = NULL;
	int rc;

	if (!path[0]) {
		if (!mkdtemp(dir)) {
			abort();
		}
		snprintf(path, sizeof(path), "%s/s", dir);
		atexit(end);
	}
	rc = store_import(path, "fuzz", (const char *)data, size, false, &done, &err);
	assert(rc == 0 || err.msg[0]);
	assert((access(path, F_OK) == 0) == (rc == 0));
	if (rc == 0) {
		assert(store_open(path, &s, &err) == 0);
		store_free(s);
	}
	clean();
	return 0;
}
