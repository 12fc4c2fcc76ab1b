/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gRPC statuses and their header fields. A status holds less than an error of
 * ours, so the error's code, place and hint travel in fields of their own and
 * other clients see what they know: grpc-status and grpc-message.
 */
#include "lib/rpc/private.h"

#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* In the order of the status numbers; code: what a status means here when
 * the server is not of our kind and sends no weft-error. */
static const struct {
	const char *name;
	int code;
} statuses[] = {
	[RPC_OK] = { "OK", WEFT_OK },
	[RPC_CANCELLED] = { "CANCELLED", WEFT_ECANCELED },
	[RPC_UNKNOWN] = { "UNKNOWN", WEFT_EINTERNAL },
	[RPC_INVALID_ARGUMENT] = { "INVALID_ARGUMENT", WEFT_EINVAL },
	[RPC_DEADLINE_EXCEEDED] = { "DEADLINE_EXCEEDED", WEFT_ETIMEOUT },
	[RPC_NOT_FOUND] = { "NOT_FOUND", WEFT_ENOTFOUND },
	[RPC_ALREADY_EXISTS] = { "ALREADY_EXISTS", WEFT_EINVAL },
	[RPC_PERMISSION_DENIED] = { "PERMISSION_DENIED", WEFT_EDENIED },
	[RPC_RESOURCE_EXHAUSTED] = { "RESOURCE_EXHAUSTED", WEFT_ELIMIT },
	[RPC_FAILED_PRECONDITION] = { "FAILED_PRECONDITION",
				      WEFT_EINFEASIBLE },
	[RPC_ABORTED] = { "ABORTED", WEFT_ESTALE },
	[RPC_OUT_OF_RANGE] = { "OUT_OF_RANGE", WEFT_EINVAL },
	[RPC_UNIMPLEMENTED] = { "UNIMPLEMENTED", WEFT_EUNSUPPORTED },
	[RPC_INTERNAL] = { "INTERNAL", WEFT_EINTERNAL },
	[RPC_UNAVAILABLE] = { "UNAVAILABLE", WEFT_EUNAVAIL },
	[RPC_DATA_LOSS] = { "DATA_LOSS", WEFT_EVERIFY },
	[RPC_UNAUTHENTICATED] = { "UNAUTHENTICATED", WEFT_EDENIED },
};

#define N_STATUSES ((int)(sizeof(statuses) / sizeof(statuses[0])))

const char *rpc_status_name(enum rpc_status s)
{
	bool known = (int)s >= 0 && (int)s < N_STATUSES;

	return statuses[known ? s : RPC_UNKNOWN].name;
}

int rpc_code_of_status(int status)
{
	bool known = status >= 0 && status < N_STATUSES;

	return known ? statuses[status].code : WEFT_EINTERNAL;
}

enum rpc_status rpc_status_of_code(int code)
{
	switch (code) {
	case WEFT_EINVAL:
	case WEFT_EUSAGE:
		return RPC_INVALID_ARGUMENT;
	case WEFT_ELIMIT:
		return RPC_RESOURCE_EXHAUSTED;
	case WEFT_ENOTFOUND:
		return RPC_NOT_FOUND;
	case WEFT_ESTALE:
	case WEFT_EHELD:
		return RPC_ABORTED;
	case WEFT_EDENIED:
		return RPC_PERMISSION_DENIED;
	case WEFT_EUNAVAIL:
		return RPC_UNAVAILABLE;
	case WEFT_ETIMEOUT:
		return RPC_DEADLINE_EXCEEDED;
	case WEFT_ECANCELED:
		return RPC_CANCELLED;
	case WEFT_EUNSUPPORTED:
		return RPC_UNIMPLEMENTED;
	case WEFT_EINFEASIBLE:
		return RPC_FAILED_PRECONDITION;
	case WEFT_EVERIFY:
		return RPC_DATA_LOSS;
	case WEFT_EDEVICE:
		return RPC_UNKNOWN;
	default:
		return RPC_INTERNAL;
	}
}

enum rpc_status rpc_status_of_http(int http_status)
{
	switch (http_status) {
	case 400:
		return RPC_INTERNAL;
	case 401:
		return RPC_UNAUTHENTICATED;
	case 403:
		return RPC_PERMISSION_DENIED;
	case 404:
		return RPC_UNIMPLEMENTED;
	case 429:
	case 502:
	case 503:
	case 504:
		return RPC_UNAVAILABLE;
	default:
		return RPC_UNKNOWN;
	}
}

enum rpc_status rpc_status_of_reset(uint32_t http2_error)
{
	switch (http2_error) {
	case NGHTTP2_REFUSED_STREAM:
		return RPC_UNAVAILABLE;
	case NGHTTP2_CANCEL:
		return RPC_CANCELLED;
	case NGHTTP2_ENHANCE_YOUR_CALM:
		return RPC_RESOURCE_EXHAUSTED;
	case NGHTTP2_INADEQUATE_SECURITY:
		return RPC_PERMISSION_DENIED;
	default:
		return RPC_INTERNAL;
	}
}

void rpc_headers_add(struct rpc_headers *h, const char *name, const char *value)
{
	nghttp2_nv *nv = &h->nv[h->n++];

	assert(h->n <= RPC_MAX_HEADERS);
	/* nghttp2 copies both and never writes to them. */
	*nv = (nghttp2_nv){ .name = (uint8_t *)(uintptr_t)name,
			    .value = (uint8_t *)(uintptr_t)value,
			    .namelen = strlen(name),
			    .valuelen = strlen(value) };
}

/* One byte of a value: itself, or %XX. Returns the length put into out. */
static size_t percent_encode(unsigned char c, char *out)
{
	static const char hex[] = "0123456789ABCDEF";

	if (c >= 0x20 && c <= 0x7e && c != '%') {
		out[0] = (char)c;
		return 1;
	}
	out[0] = '%';
	out[1] = hex[c >> 4];
	out[2] = hex[c & 15];
	return 3;
}

void rpc_headers_add_encoded(struct rpc_headers *h, const char *name, const char *value)
{
	char *start = h->text + h->used;
	size_t room = sizeof(h->text) - h->used;
	size_t n = 0, whole = 0;

	if (room == 0) {
		return;
	}
	for (const char *p = value; *p && n + 3 < room; p++) {
		/* A cut must not leave half a UTF-8 character behind. */
		if (((unsigned char)*p & 0xc0) != 0x80) {
			whole = n;
		}
		n += percent_encode((unsigned char)*p, start + n);
		if (p[1] == '\0') {
			whole = n;
		}
	}
	start[whole] = '\0';
	h->used += whole + 1;
	rpc_headers_add(h, name, start);
}

void rpc_headers_add_status(struct rpc_headers *h, enum rpc_status status, const struct err *err)
{
	static const char number[][3] = {
		"0", "1", "2", "3", "4", "5", "6", "7", "8", "9",
		"10", "11", "12", "13", "14", "15", "16",
	};
	char place[ERR_FILE_MAX + 32];

	rpc_headers_add(h, "grpc-status", number[(int)status < N_STATUSES ? status : RPC_UNKNOWN]);
	if (status == RPC_OK) {
		return;
	}
	if (err->msg[0]) {
		rpc_headers_add_encoded(h, "grpc-message", err->msg);
	}
	if (err->code == WEFT_OK) {
		return;
	}
	rpc_headers_add(h, "weft-error", err_name(err->code));
	if (err->file[0]) {
		snprintf(place, sizeof(place), "%s:%d:%d", err->file, err->line, err->col);
		rpc_headers_add_encoded(h, "weft-place", place);
	}
	if (err->hint[0]) {
		rpc_headers_add_encoded(h, "weft-hint", err->hint);
	}
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9') {
		return c - '0';
	}
	if (c >= 'A' && c <= 'F') {
		return c - 'A' + 10;
	}
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

void rpc_percent_decode(const char *in, size_t len, char *out, size_t size)
{
	size_t n = 0;

	for (size_t i = 0; i < len && n + 1 < size; i++) {
		int hi = i + 2 < len && in[i] == '%' ? hex_digit(in[i + 1])
						     : -1;
		int lo = hi >= 0 ? hex_digit(in[i + 2]) : -1;
		int c = lo >= 0 ? hi << 4 | lo : in[i];

		i += lo >= 0 ? 2 : 0;
		/* A NUL would hide the rest of the text. */
		out[n++] = c ? (char)c : ' ';
	}
	out[n] = '\0';
}

/* Splits "file:line:col" from the right; a file name may hold colons. */
static void read_place(char *place, struct err *err)
{
	char *col = strrchr(place, ':'), *line;
	long l, c;

	if (!col) {
		return;
	}
	*col = '\0';
	line = strrchr(place, ':');
	if (!line) {
		return;
	}
	*line = '\0';
	l = strtol(line + 1, NULL, 10);
	c = strtol(col + 1, NULL, 10);
	if (l >= 0 && l <= INT_MAX && c >= 0 && c <= INT_MAX) {
		err_at(err, place, (int)l, (int)c);
	}
}

void rpc_status_read(const char *name, const char *value, size_t value_len,
		     int *status, struct err *err)
{
	char text[ERR_FILE_MAX + 32];

	if (strcmp(name, "grpc-message") == 0) {
		rpc_percent_decode(value, value_len, err->msg, sizeof(err->msg));
	} else if (strcmp(name, "weft-hint") == 0) {
		rpc_percent_decode(value, value_len, err->hint, sizeof(err->hint));
	} else if (strcmp(name, "weft-place") == 0) {
		rpc_percent_decode(value, value_len, text, sizeof(text));
		read_place(text, err);
	} else if (strcmp(name, "weft-error") == 0) {
		rpc_percent_decode(value, value_len, text, sizeof(text));
		err->code = err_from_name(text);
	} else if (strcmp(name, "grpc-status") == 0) {
		rpc_percent_decode(value, value_len, text, sizeof(text));
		*status = text[0] >= '0' && text[0] <= '9' ? atoi(text)
							   : RPC_UNKNOWN;
	}
}

int64_t rpc_timeout_parse(const char *text)
{
	static const struct {
		char letter;
		int64_t ns;
	} units[] = { { 'n', 1 },	    { 'u', 1000 },
		      { 'm', 1000000 },	    { 'S', 1000000000 },
		      { 'M', 60000000000 }, { 'H', 3600000000000 } };
	int64_t n = 0;
	int digits = 0;

	for (; text[digits] >= '0' && text[digits] <= '9'; digits++) {
		if (digits == 8) {
			return -1;
		}
		n = n * 10 + (text[digits] - '0');
	}
	if (digits == 0 || text[digits] == '\0' || text[digits + 1] != '\0') {
		return -1;
	}
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (units[i].letter == text[digits]) {
			return n > INT64_MAX / 4 / units[i].ns
				       ? INT64_MAX / 4
				       : n * units[i].ns;
		}
	}
	return -1;
}

const char *rpc_timeout_format(int ms, char *buf)
{
	/* The header holds at most eight digits. */
	if (ms > 99999999) {
		snprintf(buf, 16, "%dS", ms / 1000 + 1);
	} else {
		snprintf(buf, 16, "%dm", ms);
	}
	return buf;
}
