/* SPDX-License-Identifier: Apache-2.0 */
/* The journal's own protocol: an entry is one datagram of fields, NAME=value and the end of a
 * line; a value of several lines has its length before it. */
#include <endian.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "controller/daemon/core/core.h"
#include "lib/base/buf.h"

static void put_field(struct buf *b, const char *field)
{
	size_t name = strcspn(field, "=");
	const char *value = field + name + 1;
	uint64_t len = htole64(strlen(value));

	if (strchr(value, '\n')) {
		buf_add(b, field, name);
		buf_char(b, '\n');
		buf_add(b, &len, sizeof(len));
		buf_str(b, value);
	} else {
		buf_str(b, field);
	}
	buf_char(b, '\n');
}

/* Nothing is to be done about an entry that does not get there. */
void journald_send(char *const *fields, int n)
{
	const struct sockaddr_un journal = { AF_UNIX, "/run/systemd/journal/socket" };
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct buf b = { 0 };

	for (int i = 0; i < n; i++) {
		put_field(&b, fields[i]);
	}
	if (fd >= 0) {
		(void)!sendto(fd, b.data, b.len, MSG_NOSIGNAL,
			      (const struct sockaddr *)&journal, sizeof(journal));
		close(fd);
	}
	buf_fini(&b);
}
