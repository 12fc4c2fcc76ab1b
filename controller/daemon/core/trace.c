/* SPDX-License-Identifier: Apache-2.0 */
/* W3C trace context: the trace id of the header traceparent. */
#include <string.h>

#include "controller/daemon/core/core.h"

/* Lower case, and not all zeros. */
static bool is_id(const char *text, size_t len)
{
	return strspn(text, "0123456789abcdef") >= len && strspn(text, "0") < len;
}

bool trace_parse(const char *header, char id[TRACE_SIZE])
{
	/* version 2, trace id 32, parent id 16, flags 2 digits. A version from
	 * the future may have more behind them. */
	size_t len = strnlen(header, 56);

	id[0] = '\0';
	if (len < 55 || header[2] != '-' || header[35] != '-' ||
	    header[52] != '-' ||
	    strspn(header, "0123456789abcdef") != 2 ||
	    memcmp(header, "ff", 2) == 0 ||
	    (len > 55 && (memcmp(header, "00", 2) == 0 || header[55] != '-')) ||
	    !is_id(header + 3, 32) || !is_id(header + 36, 16) ||
	    strspn(header + 53, "0123456789abcdef") < 2) {
		return false;
	}
	memcpy(id, header + 3, 32);
	id[32] = '\0';
	return true;
}

void trace_of(const struct rpc_call *call, char id[TRACE_SIZE])
{
	const char *header = call ? rpc_call_metadata(call, "traceparent")
				  : NULL;

	id[0] = '\0';
	if (header) {
		trace_parse(header, id);
	}
}
