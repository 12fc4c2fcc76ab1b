/* SPDX-License-Identifier: Apache-2.0 */
/* The service manager's notification protocol: one datagram of text. It may
 * want a sign of life now and then; it comes from the loop, as it is the loop
 * that must not hang. */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "controller/daemon/core/core.h"
#include "lib/base/log.h"

void notify_send(const char *state)
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
	if (fd < 0 || sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&addr,
			     (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len)) < 0) {
		log_warn("weftd", "the service manager did not get \"%s\"", state);
	}
	if (fd >= 0) {
		close(fd);
	}
}

static void on_watchdog(uv_timer_t *timer)
{
	(void)timer;
	notify_send("WATCHDOG=1");
}

bool notify_watchdog_start(uv_loop_t *loop, uv_timer_t *timer)
{
	const char *usec = getenv("WATCHDOG_USEC");
	const char *pid = getenv("WATCHDOG_PID");
	long long ms = usec ? strtoll(usec, NULL, 10) / 2000 : 0;

	if (ms <= 0 || (pid && strtol(pid, NULL, 10) != (long)getpid())) {
		return false;
	}
	uv_timer_init(loop, timer);
	uv_unref((uv_handle_t *)timer);
	uv_timer_start(timer, on_watchdog, 0, (uint64_t)ms);
	return true;
}
