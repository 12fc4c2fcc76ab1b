/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose keys the machines that devices answer from must show: OpenSSH's
 * known_hosts files. Private to drivers/core.
 *
 * Names stand in the file as ssh writes them, "HOST" for port 22 and
 * "[HOST]:PORT" for others, plain or hashed, several to a line. Patterns are not
 * matched and lines of certificate authorities are not used; a key that is
 * marked as revoked is refused, whoever shows it.
 */
#ifndef WEFT_DRIVERS_CORE_KNOWN_HOSTS_H
#define WEFT_DRIVERS_CORE_KNOWN_HOSTS_H

#include <libssh2.h>

#include "lib/base/err.h"

#define KNOWN_HOSTS_NAME_MAX 272

struct known_hosts;

/* Takes the lines of a file's text, which it cuts up; those that cannot be read are
 * passed over, as ssh does. O(len). */
struct known_hosts *known_hosts_parse(LIBSSH2_SESSION *session, char *text);
void known_hosts_free(struct known_hosts *k);

/* The host as the file names it, into KNOWN_HOSTS_NAME_MAX bytes. */
void known_hosts_name(const char *host, int port, char *name);

/* Makes the session ask for a key of a type that the file has for this name,
 * if the device has one; the types that it may ask for at all come behind.
 * WEFT_EUNAVAIL where libssh2 knows none of them. O(types x lines). */
int known_hosts_prefer(struct known_hosts *k, LIBSSH2_SESSION *session, const char *name,
		       struct err *err);

/* Whether the key that the device showed is one of the file's for this name.
 * WEFT_EDENIED says which key it is, and how one is added; path is the file, host
 * and port are for that. O(types x lines). */
int known_hosts_check(struct known_hosts *k, LIBSSH2_SESSION *session, const char *host,
		      int port, const char *path, struct err *err);

#endif
