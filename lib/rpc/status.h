/*
 * gRPC statuses, errors and the header fields that carry them. Shared by
 * server and client; private to this room.
 */
#ifndef WEFT_LIB_RPC_STATUS_H
#define WEFT_LIB_RPC_STATUS_H

#include <nghttp2/nghttp2.h>

#include "lib/base/err.h"
#include "lib/rpc/rpc.h"

/* The status that fits an error code, and the other way round. The status
 * of WEFT_OK is RPC_INTERNAL: somebody reported an error without having
 * one. The code of RPC_OK is WEFT_OK, of an unlisted status WEFT_EINTERNAL. */
enum rpc_status rpc_status_of_code(int code);
int rpc_code_of_status(int status);

/* The status that gRPC assigns to a plain HTTP answer, and to the error
 * code of RST_STREAM. */
enum rpc_status rpc_status_of_http(int http_status);
enum rpc_status rpc_status_of_reset(uint32_t http2_error);

#define RPC_MAX_HEADERS 12

/* Header fields being put together. Names and plain values must outlive
 * the list; encoded values live in `text`, which has room for the longest
 * struct err. */
struct rpc_headers {
	nghttp2_nv nv[RPC_MAX_HEADERS];
	size_t n;
	size_t used;
	char text[3 * sizeof(struct err)];
};

void rpc_headers_add(struct rpc_headers *h, const char *name,
		     const char *value);

/* Adds the value percent-encoded, as gRPC does with grpc-message. A value
 * that finds no room in `text` is cut between two characters. */
void rpc_headers_add_encoded(struct rpc_headers *h, const char *name,
			     const char *value);

/* Adds grpc-status, and of a failure also grpc-message and, when err has a
 * code, weft-error, weft-place and weft-hint. */
void rpc_headers_add_status(struct rpc_headers *h, enum rpc_status status,
			    const struct err *err);

/* Takes one header field of a response into *status (untouched unless it is
 * grpc-status) and err. */
void rpc_status_read(const char *name, const char *value, size_t value_len,
		     int *status, struct err *err);

/* Undoes percent-encoding into out (at least one byte; always terminated,
 * cut when too small). Bytes that are no valid escape stay as they are. */
void rpc_percent_decode(const char *in, size_t len, char *out, size_t size);

/* Value of a grpc-timeout header in ns (saturating), -1 when malformed. */
int64_t rpc_timeout_parse(const char *text);

/* grpc-timeout text of ms > 0 into buf, at least 16 bytes. Returns buf. */
const char *rpc_timeout_format(int ms, char *buf);

#endif
