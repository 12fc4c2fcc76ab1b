/* Shared by the files about joint changes. */
#ifndef WEFT_DAEMON_JOINT_PRIVATE_H
#define WEFT_DAEMON_JOINT_PRIVATE_H

#include "controller/daemon/joint/joint.h"
#include "weft/joint/v1/joint.pb-c.h"

/* Appends a message. WEFT_ENOMEM. */
int joint_pack(const ProtobufCMessage *msg, struct buf *out, struct err *err);
/* rpc_decode() with memory by the length of the input. */
int joint_unpack(const ProtobufCMessageDescriptor *type, const void *data, size_t len,
		 ProtobufCMessage **out, struct err *err);

#endif
