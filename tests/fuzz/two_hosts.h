/* SPDX-License-Identifier: Apache-2.0 */
/* The fabric whose states of bring-up are fuzzed: two hosts, h0 and h1. */
#ifndef WEFT_TESTS_FUZZ_TWO_HOSTS_H
#define WEFT_TESTS_FUZZ_TWO_HOSTS_H

#include <stdlib.h>
#include <string.h>

#include "controller/model/model.h"

/* rest: its devices and fibres. Kept for the next input, not freed. */
static inline const struct model_fabric *two_hosts(const char *rest)
{
	static struct model_fabric *f;
	struct err_list errs = { 0 };
	struct buf text = { 0 };

	if (f) {
		return f;
	}
	buf_printf(&text,
		   "weft: 1\nfabric: t\n"
		   "hosts:\n  - { name: \"h[0-1]\", ports: p0, rate: 1Gbps }\n"
		   "%s", rest);
	if (model_parse("t", text.data, text.len, &f, &errs)) {
		abort();
	}
	/* So that a corpus need not know the hash. */
	strcpy(f->hash, "x");
	buf_fini(&text);
	return f;
}

#endif
