/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replies of a faulty or hostile device, or of something that is no device at
 * all: bytes without end, as fast as the other side takes them. Private to
 * emulators.
 */
#ifndef WEFT_DRIVERS_EMULATORS_CORE_MALFORMED_REPLIES_H
#define WEFT_DRIVERS_EMULATORS_CORE_MALFORMED_REPLIES_H

#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "drivers/emulators/core/fault.h"

/* Sends in place of `reply` what a fault of f says that holds; false when none
 * does, and nothing is sent. It ends with the stream. */
bool malformed_reply(uv_stream_t *stream, struct faults *f, const uint8_t *reply, size_t len);

#endif
