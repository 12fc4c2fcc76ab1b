/* The journal of systemd. A file of its own, as its header's names for
 * priorities are those of our levels. */

/* Lines are one event each; which C line wrote them is of no use. */
#define SD_JOURNAL_SUPPRESS_LOCATION
#include <systemd/sd-journal.h>

#include <string.h>

#include "controller/daemon/core/core.h"

#define MAX_FIELDS 16

void journald_send(char *const *fields, int n)
{
	struct iovec v[MAX_FIELDS];
	int k;

	for (k = 0; k < n && k < MAX_FIELDS; k++) {
		v[k] = (struct iovec){ fields[k], strlen(fields[k]) };
	}
	sd_journal_sendv(v, k);
}
