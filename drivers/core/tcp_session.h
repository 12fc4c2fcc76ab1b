/*
 * The line core: one TCP session to a device, questions sent one after the
 * other and answers matched to them. What a question and an answer look like
 * is the dialect's business; this keeps the queue, the pace, the time-outs
 * and the session. Private to drivers.
 *
 * A session is connected when the first question needs it and kept. A name is
 * tried at all its addresses, one after the other in the order of the resolver;
 * only when none of them answers does connecting fail, and the error names what
 * each of them said. They share timeout_ms. Anything
 * out of order (time-out, surplus answer, garbage, end of session) ends it
 * and fails everything that was asked: an answer that comes late must never
 * be taken for the answer to something else. After a failed connect the next
 * attempt waits, from 50 ms up to 2 s, so that callers may ask as often as
 * they like.
 */
#ifndef WEFT_DRIVERS_CORE_TCP_SESSION_H
#define WEFT_DRIVERS_CORE_TCP_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "lib/base/err.h"

struct line;

enum line_verdict {
	LINE_ANSWER,	/* belongs to the oldest question */
	LINE_IGNORE,	/* belongs to nobody any more, or is an event */
	LINE_NONSENSE,	/* the session cannot be trusted any longer */
};

struct line_conf {
	const char *device;	/* for error texts; copied */
	const char *address;	/* "HOST:PORT", "[V6]:PORT"; copied */
	int64_t timeout_ms;	/* to connect, and for each answer */
	int64_t gap_us;		/* least time between two questions */
	int64_t idle_ms;	/* a session unused for so long is made anew
				 * for the next question; 0: it is kept */
	int window;		/* questions out at a time, at least 1 */
	size_t max_frame;	/* longest answer */
	void *arg;		/* for the calls below */

	/* Length of the first whole frame in data, 0 when more bytes are
	 * needed, negative when this can never become one. It was asked
	 * before about the first `from` bytes, and wanted more: an answer
	 * that comes in many pieces is not read through for each of them. */
	int64_t (*frame)(const uint8_t *data, size_t len, size_t from,
			 void *arg);
	/* Whose frame is it? `waiting` tells whether a question is out and
	 * `tag` which. NULL: any frame answers the oldest question. */
	enum line_verdict (*judge)(const uint8_t *frame, size_t len,
				   bool waiting, uint64_t tag, void *arg);
	/* An answer, from the loop. The frame lives until return. */
	void (*answer)(const uint8_t *frame, size_t len, uint64_t tag,
		       void *arg);
	/* The session ended with questions open; all of them are forgotten.
	 * `sent`: a byte of the oldest may have reached the device. */
	void (*failed)(int rc, const struct err *err, bool sent, void *arg);
	/* Bytes as they go out and whole frames as they come in; or NULL. */
	void (*trace)(const uint8_t *bytes, size_t len, bool is_reply,
		      void *arg);
};

/* Splits "HOST:PORT" or "[V6]:PORT". host holds size bytes. Port 0 only if
 * allowed (to listen). WEFT_EINVAL. */
int line_parse_address(const char *text, bool port_0, char *host, int size,
		       int *port, struct err *err);

/* WEFT_EINVAL (the address), WEFT_ENOMEM. */
int line_new(uv_loop_t *loop, const struct line_conf *conf, struct line **out,
	     struct err *err);

/* Queues a question (bytes are copied); it is never sent from inside this
 * call. The answer comes to conf.answer with the tag. WEFT_ENOMEM. */
int line_ask(struct line *l, const void *bytes, size_t len, uint64_t tag);

/* The same, for a question that changes nothing. When the session was unused
 * for a while and turns out to be dead (no answer, or its end), the question is
 * asked again in a new one, once, and nobody need know: devices and what
 * stands between end sessions that nobody uses, and not all say so. */
int line_ask_harmless(struct line *l, const void *bytes, size_t len,
		      uint64_t tag);

/* A question is out: what comes now is, or comes before, its answer. */
bool line_waiting(const struct line *l);

/* Questions queued or out. */
int line_open_questions(const struct line *l);

/* Ends the session and forgets all questions without a call back: for an
 * answer that arrived whole but made no sense. The next question connects. */
void line_reset(struct line *l);

/* How many sessions were established so far: tells whether the answer just
 * given came in the same session as an earlier one. */
uint64_t line_sessions(const struct line *l);

/* A session is up and not known to have ended. */
bool line_connected(const struct line *l);

/* Ends the session; no call back any more but cb, which ends l too. */
void line_close(struct line *l, void (*cb)(void *arg), void *arg);

/* A frame that ends in LF. */
int64_t line_frame_text(const uint8_t *data, size_t len, size_t from,
			void *arg);

#endif
