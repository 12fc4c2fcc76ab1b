/* SPDX-License-Identifier: Apache-2.0 */
/* What weft-mpi-run writes: a result, or an error with a code and a text. */
#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>

#include "runtime/launch/private.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct err err = { 0 };
	json_t *result;
	int rc = launch_read_result((const char *)data, len, &result, &err);

	if (rc != err.code || (rc == 0) != json_is_object(result) || (rc && !err.msg[0])) {
		abort();
	}
	json_decref(result);
	return 0;
}
