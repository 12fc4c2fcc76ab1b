/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One TCP session to a device, plain or within it a shell over SSH, requests sent
 * one after the other and replies matched to them. What a request and a reply look like
 * is the dialect's business; this keeps the queue, the pace, the time-outs
 * and the session. Private to drivers.
 *
 * A session is connected when the first request needs it and kept. A name is
 * tried at all its addresses, one after the other in the order of the resolver;
 * only when none of them replies does connecting fail, and the error names what
 * each of them said. They share timeout_ms. Anything
 * out of order (time-out, surplus reply, garbage, end of session) ends it
 * and fails everything that was asked: a reply that comes late must never
 * be taken for the reply to something else. After a failed connect the next
 * attempt waits, from 50 ms up to 2 s, so that callers may ask as often as
 * they like. Where SSH was refused (WEFT_EDENIED: the device's key, the login) what is
 * asked in the next 30 s fails likewise at once: devices lock users out.
 */
#ifndef WEFT_DRIVERS_CORE_TCP_SESSION_H
#define WEFT_DRIVERS_CORE_TCP_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "drivers/core/ssh.h"
#include "drivers/core/terminal.h"
#include "lib/base/err.h"

struct tcp_session;

enum tcp_verdict {
	TCP_REPLY,	/* belongs to the oldest request */
	TCP_IGNORE,	/* is a late one of before, or is an event */
	TCP_NONSENSE,	/* the session cannot be trusted any longer */
};

struct tcp_conf {
	const char *device;	/* for error texts; copied */
	const char *address;	/* "HOST:PORT", "[V6]:PORT"; copied */
	const struct ssh_conf *ssh;	/* copied; NULL: plain TCP */
	int64_t timeout_ms;	/* to connect, and for each reply */
	int64_t gap_us;		/* least time between two requests */
	int64_t idle_ms;	/* a session unused for so long is opened again
				 * for the next request; 0: it is kept */
	int window;		/* requests out at a time, at least 1 */
	size_t max_frame;	/* longest reply */
	enum terminal_kind terminal;	/* what is taken off the bytes first */
	void *arg;		/* for the calls below */

	/* Length of the first whole frame in data, 0 when more bytes are
	 * needed, negative when this can never become one. It was asked
	 * before about the first `from` bytes, and wanted more: a reply
	 * that comes in many pieces is not read through for each of them. */
	int64_t (*frame)(const uint8_t *data, size_t len, size_t from, void *arg);
	/* The same over SSH for what the shell prints before it takes commands: nothing
	 * is sent until then, as a terminal echoes what comes too early. NULL: it is. */
	int64_t (*greeting)(const uint8_t *data, size_t len, size_t from, void *arg);
	/* Whose frame is it? `waiting` is whether a request is out and
	 * `tag` which. NULL: any frame replies the oldest request. */
	enum tcp_verdict (*judge)(const uint8_t *frame, size_t len,
				  bool waiting, uint64_t tag, void *arg);
	/* A reply, from the loop. The frame lives until return. */
	void (*reply)(const uint8_t *frame, size_t len, uint64_t tag, void *arg);
	/* The session ended with requests open; all of them are forgotten.
	 * `sent`: a byte of the oldest may have reached the device. */
	void (*failed)(int rc, const struct err *err, bool sent, void *arg);
	/* Bytes as they go out and whole frames as they come in; or NULL. */
	void (*trace)(const uint8_t *bytes, size_t len, bool is_reply, void *arg);
};

/* Splits "HOST:PORT" or "[V6]:PORT". host holds size bytes. Port 0 only if
 * allowed (to listen). WEFT_EINVAL. */
int tcp_parse_address(const char *text, bool port_0, char *host, int size,
		      int *port, struct err *err);

/* WEFT_EINVAL (the address). */
int tcp_new(uv_loop_t *loop, const struct tcp_conf *conf, struct tcp_session **out,
	    struct err *err);

/* Queues a request (bytes are copied); it is never sent from inside this
 * call. The reply comes to conf.reply with the tag. */
void tcp_ask(struct tcp_session *l, const void *bytes, size_t len, uint64_t tag);

/* The same, for a request that changes nothing. When the session was unused
 * for a while and turns out to be dead (no reply, or its end), the request is
 * asked again in a new one, once, and the caller need not know: devices and what
 * stands between end sessions that are not used, and not all say so. */
void tcp_ask_repeatable(struct tcp_session *l, const void *bytes, size_t len, uint64_t tag);

/* What was asked last, changes nothing and is sent whole is replied to once more, with this tag:
 * a request without bytes, which needs no pause before it and a place in the window. */
void tcp_expect(struct tcp_session *l, uint64_t tag);

/* A request is out: what comes now is, or comes before, its reply. */
bool tcp_waiting(const struct tcp_session *l);

/* Questions queued or out. */
int tcp_open_requests(const struct tcp_session *l);

/* Ends the session and forgets all requests without a call back: for an
 * reply that arrived whole but made no sense. The next request connects. */
void tcp_reset(struct tcp_session *l);

/* How many sessions were established so far: tells whether the reply just
 * given came in the same session as an earlier one. */
uint64_t tcp_sessions(const struct tcp_session *l);

/* A session is up and not known to have ended. */
bool tcp_connected(const struct tcp_session *l);

/* Ends the session; no call back any more but cb, which ends l too. */
void tcp_close(struct tcp_session *l, void (*cb)(void *arg), void *arg);

/* A frame that ends in LF. */
int64_t tcp_frame_text(const uint8_t *data, size_t len, size_t from, void *arg);

#endif
