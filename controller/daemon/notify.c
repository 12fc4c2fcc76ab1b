/* The service manager's notification protocol: one datagram of text. */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "controller/daemon/private.h"
#include "lib/base/log.h"

void daemon_notify(const char *state)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	size_t len = path ? strlen(path) : 0;
	int fd;

	if (len == 0 || len >= sizeof(addr.sun_path)) {
		return;
	}
	memcpy(addr.sun_path, path, len);
	if (addr.sun_path[0] == '@') {	/* an abstract name */
		addr.sun_path[0] = '\0';
	}
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 ||
	    sendto(fd, state, strlen(state), MSG_NOSIGNAL,
		   (struct sockaddr *)&addr,
		   (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len)) <
		    0) {
		log_warn("weftd", "the service manager cannot be told \"%s\"",
			 state);
	}
	if (fd >= 0) {
		close(fd);
	}
}
