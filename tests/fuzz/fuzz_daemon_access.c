/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as an access file: refused with a line, or roles that hold. */
#include <stdint.h>
#include <stdlib.h>

#include "controller/daemon/core/core.h"
#include "lib/base/log.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct rpc_peer peer = { .uid = 1, .gid = 2 };
	const struct rpc_peer root = { .uid = 0 };
	struct access *a = NULL;
	struct err err = { 0 };

	log_set_level(LOG_ERROR);
	if (access_parse("fuzz", (const char *)data, size, 7, &a, &err)) {
		if (a || err.code >= 0 || !err.msg[0]) {
			abort();
		}
		return 0;
	}
	access_permit(a, &peer, "/weft.v1.FabricService/Apply", &err);
	if (access_permit(a, &root, "/weft.v1.FabricService/Apply", &err)) {
		abort();
	}
	access_free(a);
	return 0;
}
