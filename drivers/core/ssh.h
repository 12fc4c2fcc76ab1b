/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An interactive shell over SSH, as a filter of bytes: who owns the
 * connection hands in what comes from it and sends what goes out, so that
 * connecting, time-outs and the end of a session are the same as without
 * SSH. Private to drivers/core.
 *
 * Nothing here waits. Opening is done when ssh_is_open() says so: keys are exchanged, the
 * device's key is one of those that are known for it, the user is logged in,
 * and a shell runs on a terminal that is wide enough for no line to be
 * wrapped. Nothing but public words is sent before the device's key is checked.
 *
 * Secrets are read from their files for each session, and wiped and forgotten
 * when the user is logged in; they are in no message, trace or log.
 */
#ifndef WEFT_DRIVERS_CORE_SSH_H
#define WEFT_DRIVERS_CORE_SSH_H

#include <stdbool.h>
#include <stddef.h>

#include "drivers/core/secret.h"
#include "lib/base/buf.h"
#include "lib/base/err.h"

#define SSH_USER_MAX 64

/* How to log in. At least one of key and password_file is there. */
struct ssh_conf {
	char user[SSH_USER_MAX];
	char key[SECRET_PATH_MAX];			/* private; "": none */
	char password_file[SECRET_PATH_MAX];	/* its first line; "": none */
	char known_hosts[SECRET_PATH_MAX];
};

struct ssh;

/* Sends bytes, or keeps a copy until they are sent. 0 or negative; must not
 * call ssh_. */
typedef int (*ssh_send_fn)(const void *bytes, size_t len, void *arg);

/* Reads the files and begins; fd is the connection's and stays the caller's. conf
 * outlives it. WEFT_EDENIED when a file cannot be used or others may read a
 * secret, and as ssh_take(). */
int ssh_new(const struct ssh_conf *conf, const char *host, int port, int fd,
	    ssh_send_fn send, void *arg, struct ssh **out, struct err *err);

/* Bytes from the connection; what the shell prints is added to text. After an
 * error there is only ssh_free(): WEFT_EDENIED (the device's key, the login),
 * WEFT_EUNAVAIL (the session ended, or is none of SSH). O(len). */
int ssh_take(struct ssh *s, const void *bytes, size_t len, struct buf *text, struct err *err);

/* Whether opening is done. */
bool ssh_is_open(const struct ssh *s);

/* Bytes for the shell; what the device has no room for yet is kept until it
 * has. Only when open. Errors as of ssh_take(). */
int ssh_write(struct ssh *s, const void *bytes, size_t len, struct err *err);

/* What opening is at: "exchanging keys", "logging in", ... */
const char *ssh_stage(const struct ssh *s);

/* Takes leave of the device, as far as send takes it, and frees. NULL is fine. */
void ssh_free(struct ssh *s);

#endif
