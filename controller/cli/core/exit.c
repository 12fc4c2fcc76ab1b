/* SPDX-License-Identifier: Apache-2.0 */
/* Exit codes: the one place where results become numbers. */
#include <stddef.h>

#include "controller/cli/core/private.h"

/* In the order of weft(1) and of the table in docs; scripts rely on these
 * numbers. */
const struct cli_exit cli_exits[] = {
	{ 0, "ok", "done, or nothing to do", "" },
	{ 1, "failed", "failed; the fabric is as it was",
	  "The message on stderr names the cause. Repeat the command when it "
	  "is gone." },
	{ 2, "pending", "there are differences, or changes pending",
	  "From plan, diff and verify. \"weft plan\" shows what would change, "
	  "\"weft apply\" does it." },
	{ 3, "rolled-back", "failed; the fabric was rolled back",
	  "Every device was read back and is as before. \"weft history\" and "
	  "the message name the device that failed." },
	{ 4, "stuck", "failed, and not fully rolled back",
	  "Look at it: \"weft status\" names every circuit that is "
	  "not as it should be. Repair the device, then \"weft rollback\" or "
	  "\"weft apply\"." },
	{ 64, "usage", "the command line is wrong",
	  "\"weft COMMAND --help\" shows the right form." },
	{ 65, "data", "a configuration, plan, schedule or name is wrong",
	  "The message tells file, line and column where there is one. \"weft "
	  "check\" finds all mistakes of a fabric file in one run." },
	{ 69, "unavailable", "weftd or a device does not answer",
	  "Is weftd running (\"systemctl status weftd\")? Is the address of "
	  "the device right, and can it be reached?" },
	{ 71, "no-memory", "weft found no memory, and ended where it stood",
	  "Nothing was said of the outcome: where a change was asked for, \"weft status\" knows. "
	  "A larger limit (\"ulimit -v\"), or a smaller question." },
	{ 75, "stale", "made from an older state, another change runs, or another job has the "
	  "port",
	  "Plan again, look at it, apply again. While a change runs, wait for "
	  "it or \"weft cancel\" it. A port that is held: \"weft explain held\"." },
	{ 77, "denied", "not permitted",
	  "Changes are for root and for the user that runs weftd; reading is "
	  "for everybody whom the mode of the socket lets in." },
	{ 78, "not-revertable", "there is nothing to go back to",
	  "The configuration of that generation is not on record. \"weft "
	  "history\" lists those that are." },
	{ 124, "timed-out", "a deadline passed",
	  "The outcome may be unknown: \"weft verify\" reads the devices." },
	{ 0, NULL, NULL, NULL },
};

int cli_exit_code(int rc)
{
	return rc >= 0 ? rc : err_exit_code(rc);
}

/* A verdict says more than the error that came with it: what became of the
 * devices. */
int cli_exit_verdict(Weft__V1__Verdict verdict, int rc)
{
	switch (verdict) {
	case WEFT__V1__VERDICT__VERDICT_NOTHING_TO_DO:
	case WEFT__V1__VERDICT__VERDICT_COMMITTED:
		return rc < 0 ? err_exit_code(rc) : 0;
	case WEFT__V1__VERDICT__VERDICT_ROLLED_BACK:
		return 3;
	case WEFT__V1__VERDICT__VERDICT_STUCK:
		return 4;
	default:
		return rc < 0 ? err_exit_code(rc) : 1;
	}
}
