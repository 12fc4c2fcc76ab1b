/* Bytes between the client and the server: with poll(), in slices short enough
 * that a cancel flag is seen soon. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "lib/base/clock.h"
#include "lib/rpc/client.h"

#define SLICE_MS 100
#define NS_PER_MS 1000000
#define OUT_BYTES ((size_t)64 << 10)

int client_lose(struct rpc_client *c, enum weft_err code, const char *why)
{
	if (c->lost.code == 0) {
		err_set(&c->lost, code, "%s: %s", c->path, why);
	}
	return c->lost.code;
}

int client_lose_to_server(struct rpc_client *c)
{
	if (!c->leaving) {
		return client_lose(c, WEFT_EUNAVAIL,
				   "the server closed the connection");
	}
	return client_lose(c,
			   c->leave_code == NGHTTP2_INADEQUATE_SECURITY
				   ? WEFT_EDENIED : WEFT_EUNAVAIL,
			   c->leave_text[0] ? c->leave_text
					    : "the server is shutting down");
}

/* One piece of frames into c->out, encrypted or not. */
static int put(struct rpc_client *c, const uint8_t *data, size_t len)
{
	struct err err;

	if (!c->tls) {
		buf_add(&c->out, data, len);
		return 0;
	}
	if (len > 0 && rpc_tls_write(c->tls, data, len, &err)) {
		return client_lose(c, err.code, err.msg);
	}
	rpc_tls_output(c->tls, &c->out);
	return 0;
}

bool client_send_out(struct rpc_client *c)
{
	ssize_t n = send(c->fd, c->out.data + c->out_sent,
			 c->out.len - c->out_sent, MSG_NOSIGNAL);

	if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
		return false;
	}
	/* What the server said before it closed is still to be read, and says
	 * more than EPIPE. */
	c->deaf = n < 0;
	c->out_sent += n > 0 ? (size_t)n : 0;
	if (c->out_sent == c->out.len) {
		buf_reset(&c->out);
		c->out_sent = 0;
	}
	return true;
}

int client_send_frames(struct rpc_client *c)
{
	const uint8_t *data;
	ssize_t n;

	while (!c->deaf) {
		do {
			n = nghttp2_session_mem_send(c->session, &data);
			if (n < 0) {
				return client_lose(c, WEFT_EIO,
						   nghttp2_strerror((int)n));
			}
			if (put(c, data, (size_t)n)) {
				return c->lost.code;
			}
		} while (n > 0 && c->out.len < OUT_BYTES);
		if (c->out.failed) {
			return client_lose(c, WEFT_ENOMEM, "out of memory");
		}
		if (c->out.len == 0) {
			return 0;
		}
		if (!client_send_out(c)) {
			return 0;
		}
	}
	return 0;
}

static int take_plain(struct rpc_client *c, const uint8_t *data, size_t len)
{
	ssize_t n = nghttp2_session_mem_recv(c->session, data, len);

	return n < 0 ? client_lose(c, WEFT_EIO, nghttp2_strerror((int)n)) : 0;
}

/* Before the session begins, bytes are of the handshake only. */
int client_take_encrypted(struct rpc_client *c, const uint8_t *data,
			  size_t len)
{
	uint8_t plain[16 << 10];
	struct err err;
	bool closed = false;
	int n = 0, r = 0;

	if (rpc_tls_input(c->tls, data, len, &err)) {
		return client_lose(c, err.code, err.msg);
	}
	while (r == 0 && c->session &&
	       (n = rpc_tls_read(c->tls, plain, sizeof(plain), &closed,
				 &err)) > 0) {
		r = take_plain(c, plain, (size_t)n);
	}
	/* A certificate that the server refuses is told after the handshake
	 * in TLS 1.3. */
	if (r == 0 && n < 0) {
		r = client_lose(c, c->greeted ? WEFT_EIO : WEFT_EDENIED, err.msg);
	}
	return r == 0 && closed ? client_lose_to_server(c) : r;
}

int client_receive(struct rpc_client *c)
{
	uint8_t data[64 << 10];
	ssize_t n = recv(c->fd, data, sizeof(data), 0);

	if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
		return 0;
	}
	if (n <= 0) {
		return client_lose_to_server(c);
	}
	return c->tls ? client_take_encrypted(c, data, (size_t)n)
		      : take_plain(c, data, (size_t)n);
}

int client_step(struct rpc_client *c, int wait_ms)
{
	struct pollfd p = { .fd = c->fd, .events = POLLIN };
	int r = client_send_frames(c);

	if (r) {
		return r;
	}
	if (c->out.len > 0 && !c->deaf) {
		p.events |= POLLOUT;
	}
	r = poll(&p, 1, wait_ms);
	if (r < 0 && errno != EINTR) {
		return client_lose(c, WEFT_EIO, strerror(errno));
	}
	return r > 0 && (p.revents & ~POLLOUT) ? client_receive(c) : 0;
}

int client_slice_ms(int64_t end_ns)
{
	int64_t left;

	if (end_ns == 0) {
		return SLICE_MS;
	}
	left = (end_ns - clk_now_ns() + NS_PER_MS - 1) / NS_PER_MS;
	return left <= 0 ? 0 : left < SLICE_MS ? (int)left : SLICE_MS;
}

int64_t client_end_of(int timeout_ms)
{
	return timeout_ms > 0 ? clk_now_ns() + (int64_t)timeout_ms * NS_PER_MS
			      : 0;
}
