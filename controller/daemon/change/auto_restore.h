/* Bringing back light that somebody else took away. */
#ifndef WEFT_DAEMON_CHANGE_AUTO_RESTORE_H
#define WEFT_DAEMON_CHANGE_AUTO_RESTORE_H

#include "controller/daemon/core/private.h"

#define RESTORE_FIGHT 3		/* restores of a device ... */
#define RESTORE_WINDOW_NS (INT64_C(600) * 1000000000)	/* ... in this time */
#define RESTORE_MOST_NS (INT64_C(600) * 1000000000)	/* longest back-off */

enum restore_verdict {
	RESTORE_NOTHING,	/* there is nothing that may be */
	RESTORE_WAIT,		/* at *at_ns */
	RESTORE_NOW,
	RESTORE_FIGHT_ON,	/* somebody undoes each: no more */
};

/*
 * What is due for one device whose policy is to restore. v: its records, open
 * and over, any order; after_ns: as the fabric says; tries: restores that
 * failed one after the other, the last at last_try_ns; all wall clock. The
 * first restore waits after_ns, the next ten times that, then twice as long
 * each, and after RESTORE_FIGHT of them within RESTORE_WINDOW_NS, with no
 * change of an operator's between, it is a fight. Pure. O(n).
 */
enum restore_verdict restore_decide(const struct store_foreign *v, int n,
				    int64_t after_ns, int tries,
				    int64_t last_try_ns, int64_t now_ns,
				    int64_t *at_ns);

#endif
