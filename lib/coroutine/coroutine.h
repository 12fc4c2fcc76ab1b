/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions that wait without their loop waiting: each has a stack of its own, and goes on from
 * the loop when what it waits for has come. So what takes several answers of another process
 * stands as one function, and everything else goes on meanwhile: what it has read before a wait
 * may be another after it. For the thread that runs the loop.
 */
#ifndef WEFT_LIB_COROUTINE_COROUTINE_H
#define WEFT_LIB_COROUTINE_COROUTINE_H

#include <netdb.h>
#include <poll.h>
#include <uv.h>

/*
 * Runs fn(arg) as a coroutine, until its first wait at once; then done(arg), on the stack of
 * whoever runs the loop (or of the caller, if fn did not wait). fn has 256 KiB of stack. While it
 * waits, the loop is kept alive.
 */
void co_start(uv_loop_t *loop, void (*fn)(void *arg), void (*done)(void *arg), void *arg);

/* poll() for one descriptor (NULL: for none, only time goes by), ms < 0: without end. In a
 * coroutine the loop goes on meanwhile; anywhere else it is poll(). */
int co_poll(struct pollfd *p, int ms);

/* getaddrinfo(), likewise: free the list with freeaddrinfo(). */
int co_getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
		   struct addrinfo **out);

#endif
