/*
 * What a failure is about, for programs: google.rpc.Status with ErrorInfo and
 * ResourceInfo, as the trailer grpc-status-details-bin. Private to this room.
 */
#ifndef WEFT_LIB_RPC_DETAIL_H
#define WEFT_LIB_RPC_DETAIL_H

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/rpc/rpc.h"

/* Clients take 8 KiB of trailers or so in all. */
#define RPC_MAX_DETAILS 2000

/* Appends one ResourceInfo to what a call will say. False, and nothing done,
 * when there is no room left. */
bool rpc_detail_add(struct buf *details, const char *type, const char *name,
		    const char *description);

/* The trailer's value in base64: the status, err as ErrorInfo (reason: its
 * name, domain "weft", metadata place and hint) if it has a code, and details.
 * Empty for success and for what says no more than the plain status. */
void rpc_detail_encode(enum rpc_status status, const struct err *err,
		       const struct buf *details, struct buf *out);

#endif
