/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/2 spoken by hand: what no proper client would send. */
#ifndef WEFT_TESTS_UNIT_RPC_WIRE_H
#define WEFT_TESTS_UNIT_RPC_WIRE_H

#include <nghttp2/nghttp2.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/base/buf.h"

#define H2_PREFACE "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

static inline void put_frame(struct buf *b, int type, int flags, int stream,
			     const void *payload, size_t len)
{
	const uint8_t head[9] = { (uint8_t)(len >> 16), (uint8_t)(len >> 8),
				  (uint8_t)len,		(uint8_t)type,
				  (uint8_t)flags,	(uint8_t)(stream >> 24),
				  (uint8_t)(stream >> 16),
				  (uint8_t)(stream >> 8), (uint8_t)stream };

	buf_add(b, head, sizeof(head));
	buf_add(b, payload, len);
}

/* Preface and SETTINGS with this stream window. */
static inline void put_hello(struct buf *b, uint32_t window)
{
	const uint8_t settings[6] = { 0, NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE,
				      (uint8_t)(window >> 24),
				      (uint8_t)(window >> 16),
				      (uint8_t)(window >> 8), (uint8_t)window };

	buf_str(b, H2_PREFACE);
	put_frame(b, NGHTTP2_SETTINGS, 0, 0, settings, sizeof(settings));
}

/* A literal header field that is not indexed. */
static inline void put_header(struct buf *b, const char *name,
			      const void *value, size_t len)
{
	size_t rest = len - 127;

	buf_char(b, 0);
	buf_char(b, (char)strlen(name));
	buf_str(b, name);
	if (len < 127) {
		buf_char(b, (char)len);
	} else {
		buf_char(b, 127);
		for (; rest >= 128; rest /= 128) {
			buf_char(b, (char)(rest % 128 + 128));
		}
		buf_char(b, (char)rest);
	}
	buf_add(b, value, len);
}

static inline void put_text(struct buf *b, const char *name,
			    const char *value)
{
	put_header(b, name, value, strlen(value));
}

/* The HEADERS of a gRPC call; `more` header fields are put behind. */
static inline void put_call(struct buf *b, int stream, const char *path,
			    const struct buf *more)
{
	struct buf h = { 0 };

	put_text(&h, ":method", "POST");
	put_text(&h, ":scheme", "http");
	put_text(&h, ":path", path);
	put_text(&h, "content-type", "application/grpc");
	if (more) {
		buf_add(&h, more->data, more->len);
	}
	put_frame(b, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, stream, h.data,
		  h.len);
	buf_fini(&h);
}

static inline void put_data(struct buf *b, int stream, bool last,
			    const void *data, size_t len)
{
	put_frame(b, NGHTTP2_DATA, last ? NGHTTP2_FLAG_END_STREAM : 0, stream,
		  data, len);
}

/* A connection read frame by frame; what came is noted as lines of text. */
struct wire {
	int fd;
	nghttp2_hd_inflater *inflater;
	struct buf in, out, log;
};

static inline struct wire wire_open(const char *path)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	struct timeval limit = { .tv_sec = 10 };
	struct wire w = { .fd = socket(AF_UNIX, SOCK_STREAM, 0) };

	memcpy(addr.sun_path, path, strlen(path));
	assert_int_equal(connect(w.fd, (struct sockaddr *)&addr, sizeof(addr)),
			 0);
	setsockopt(w.fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	assert_int_equal(nghttp2_hd_inflate_new(&w.inflater), 0);
	return w;
}

static inline void wire_close(struct wire *w)
{
	close(w->fd);
	nghttp2_hd_inflate_del(w->inflater);
	buf_fini(&w->in);
	buf_fini(&w->out);
	buf_fini(&w->log);
}

/* Sends what has been put into w->out. The server may hang up meanwhile. */
static inline void wire_send(struct wire *w)
{
	for (size_t sent = 0; sent < w->out.len;) {
		ssize_t n = send(w->fd, w->out.data + sent, w->out.len - sent,
				 MSG_NOSIGNAL);

		if (n < 0) {
			break;
		}
		sent += (size_t)n;
	}
	buf_reset(&w->out);
}

/* Reads until `len` bytes are there; false at the end of the stream. */
static inline bool wire_fill(struct wire *w, size_t len)
{
	char data[4096];

	while (w->in.len < len) {
		ssize_t n = recv(w->fd, data, sizeof(data), 0);

		if (n <= 0) {
			return false;
		}
		buf_add(&w->in, data, (size_t)n);
	}
	return true;
}

static inline void log_headers(struct wire *w, const uint8_t *p, size_t len)
{
	int flags = 0;
	nghttp2_nv nv;

	while (!(flags & NGHTTP2_HD_INFLATE_FINAL)) {
		ssize_t n = nghttp2_hd_inflate_hd2(w->inflater, &nv, &flags, p,
						   len, 1);

		assert_true(n >= 0);
		p += n;
		len -= (size_t)n;
		if (flags & NGHTTP2_HD_INFLATE_EMIT) {
			buf_printf(&w->log, "%s: %s\n", (char *)nv.name,
				   (char *)nv.value);
		}
	}
	nghttp2_hd_inflate_end_headers(w->inflater);
}

static inline uint32_t get_u32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 |
	       (uint32_t)p[2] << 8 | p[3];
}

/* Reads and logs one frame; false (and "eof") when there is none. */
static inline bool wire_frame(struct wire *w)
{
	const uint8_t *p;
	size_t len;

	if (!wire_fill(w, 9)) {
		buf_str(&w->log, "eof\n");
		return false;
	}
	len = get_u32((uint8_t *)w->in.data) >> 8;
	if (!wire_fill(w, 9 + len)) {
		buf_str(&w->log, "eof\n");
		return false;
	}
	p = (uint8_t *)w->in.data;
	switch (p[3]) {
	case NGHTTP2_HEADERS:
		log_headers(w, p + 9, len);
		buf_printf(&w->log, "headers %u %s\n", get_u32(p + 5),
			   p[4] & NGHTTP2_FLAG_END_STREAM ? "end" : "more");
		break;
	case NGHTTP2_DATA:
		buf_printf(&w->log, "data %u %zu\n", get_u32(p + 5), len);
		break;
	case NGHTTP2_RST_STREAM:
		buf_printf(&w->log, "reset %u %u\n", get_u32(p + 5),
			   get_u32(p + 9));
		break;
	case NGHTTP2_GOAWAY:
		buf_printf(&w->log, "goaway %u\n", get_u32(p + 13));
		break;
	case NGHTTP2_PING:
		buf_printf(&w->log, "ping %s\n",
			   p[4] & NGHTTP2_FLAG_ACK ? "ack" : "");
		break;
	default:
		break;
	}
	buf_consume(&w->in, 9 + len);
	return true;
}

/* Reads until the log holds `text`; fails when the stream ends before. */
static inline void wire_expect(struct wire *w, const char *text)
{
	while (!strstr(buf_cstr(&w->log), text)) {
		if (!wire_frame(w) && !strstr(buf_cstr(&w->log), text)) {
			fail_msg("no \"%s\" in: %s", text,
				 buf_cstr(&w->log));
		}
	}
}

#endif
