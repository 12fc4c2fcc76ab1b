/* The fabric whose states of bring-up are fuzzed: two hosts on a switch. */
#ifndef WEFT_TESTS_FUZZ_TWO_HOSTS_H
#define WEFT_TESTS_FUZZ_TWO_HOSTS_H

#include <stdlib.h>
#include <string.h>

#include "controller/model/model.h"

/* driver: the rest of the switch. Kept for the next input, not freed. */
static inline const struct model_fabric *two_hosts(const char *driver)
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
		   "switches:\n  - { name: s, size: 2x2, driver: %s }\n"
		   "fibres:\n  - { from: \"h[0-1].p0\", to: \"s.[1-2]\" }\n",
		   driver);
	if (model_parse("t", text.data, text.len, &f, &errs)) {
		abort();
	}
	/* So that a corpus need not know the hash. */
	strcpy(f->hash, "x");
	buf_fini(&text);
	return f;
}

#endif
