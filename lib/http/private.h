/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of HTTP share. */
#ifndef WEFT_LIB_HTTP_PRIVATE_H
#define WEFT_LIB_HTTP_PRIVATE_H

#include "lib/http/http.h"

/* A mark of who is at the other end of an accepted TCP connection: the user, if that is a process
 * of this network namespace and the kernel tells by NETLINK_SOCK_DIAG; else the address. O(1). */
uint64_t http_owner(int fd);

#endif
