/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of a client share: one call to one weftd. */
#ifndef WEFT_TESTS_SIM_CLIENT_PARTS_H
#define WEFT_TESTS_SIM_CLIENT_PARTS_H

#include "lib/rpc/rpc.h"
#include "tests/sim/cluster/client.h"

struct request {
	const char *path;
	const ProtobufCMessage *message;
	const ProtobufCMessageDescriptor *response;
	int timeout_ms;
	rpc_on_message on_message;	/* NULL: what comes is not looked at */
	void *arg;
	const bool *acknowledged;	/* becomes true by a message; NULL: by the end only */
};

enum try {
	TRY_ANSWERED,		/* err says what */
	TRY_ELSEWHERE,		/* it stands by, or stops: another is to be asked */
	TRY_NOT_SENT,		/* no connection */
	TRY_LOST,		/* no answer */
};

/* Asks one weftd once. */
enum try client_try(struct client *c, int weftd, const struct request *q, struct err *err);

#endif
