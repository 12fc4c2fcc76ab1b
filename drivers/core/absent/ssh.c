/* SPDX-License-Identifier: Apache-2.0 */
/* Without SSH: devices behind it cannot be reached. */
#include "drivers/core/ssh.h"

int ssh_new(const struct ssh_conf *conf, const char *host, int port, int fd,
	    ssh_send_fn send, void *arg, struct ssh **out, struct err *err)
{
	*out = NULL;
	return build_lacks("SSH", err);
}

void ssh_free(struct ssh *s)
{
}

/* The others are of sessions that were made. */
int ssh_take(struct ssh *s, const void *bytes, size_t len, struct buf *text, struct err *err)
{
	return build_lacks("SSH", err);
}

bool ssh_is_open(const struct ssh *s)
{
	return false;
}

int ssh_write(struct ssh *s, const void *bytes, size_t len, struct err *err)
{
	return build_lacks("SSH", err);
}

const char *ssh_stage(const struct ssh *s)
{
	return "connecting";
}
