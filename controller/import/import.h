/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cabling of a lab in files of others, as a fabric file and as groups of circuits: the files of
 * sonic-mgmt, and NetBox's cables. Pure: texts in, text out.
 *
 * All mistakes are found in one run, each with its file and line. What is no mistake and no light
 * of a switch either is passed over, and said.
 */
#ifndef WEFT_IMPORT_IMPORT_H
#define WEFT_IMPORT_IMPORT_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"

struct import_text {
	const char *name;	/* what errors call it */
	const char *text;	/* NULL: there is no such file */
	size_t len;		/* bytes */
};

/* What the files do not say. */
struct import_defaults {
	const char *fabric;	/* its name */
	const char *driver;	/* of switches */
	int64_t rate_bps;	/* of ports; > 0 */
};

/* What went wrong, and what was passed over; err_list_fini() both. */
struct import_report {
	struct err_list errs, notes;
};

/* Files of sonic-mgmt's ansible/files, and a testbed file. */
struct import_sonic {
	struct import_text devices, links, l1_links, testbeds;
	const char *group;	/* of the inventory: testbeds of others are passed over */
	const char *only;	/* one testbed; NULL: all */
};

/*
 * Appends the fabric, or with in->testbeds a group of circuits for each testbed that has optical
 * switches, as `weft circuit import` reads them. Cross-connects are those of LabGraph
 * (ansible/module_utils/graph_utils.py), where that does not fall silent. WEFT_EINVAL: there are
 * mistakes, and *out is of no use. O(text + testbeds x links).
 */
int import_sonic_mgmt(const struct import_sonic *in, const struct import_defaults *d,
		      struct buf *out, struct import_report *report);

/*
 * Appends the fabric of NetBox's cables: its list exported as CSV (in English), rows of its import
 * form, or JSON of its API. switches: names of devices apart by commas; NULL: those whose ports are
 * front or rear ports. WEFT_EINVAL as above. O(text x switches).
 */
int import_netbox(const struct import_text *in, const char *switches,
		  const struct import_defaults *d, struct buf *out, struct import_report *report);

/*
 * Appends the step that Chakra traces of n ranks hold, n > 0, as keys of a job (`mesh`,
 * `collectives`, `step`): the order is that of the rank that calls most. groups without a text: of
 * none but those that traces tell. What is no mesh of ranks in order is refused. WEFT_EINVAL as
 * above. O(bytes log nodes + calls x entries of a loop).
 */
int import_chakra(const struct import_text *files, int n, const struct import_text *groups,
		  struct buf *out, struct import_report *report);

#endif
