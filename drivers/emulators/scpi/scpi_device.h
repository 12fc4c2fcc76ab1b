/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The device side of the Polatis SCPI dialect, without sockets: for the
 * emulator and its fuzzer. Ports are numbered from 1, outputs behind the
 * inputs.
 */
#ifndef WEFT_DRIVERS_EMULATORS_SCPI_SCPI_H
#define WEFT_DRIVERS_EMULATORS_SCPI_SCPI_H

#include "drivers/emulators/core/emulator.h"

struct scpi_device;

/* A switch over e->mem, which must outlive it. */
struct scpi_device *scpi_device_new(struct emu *e);
void scpi_device_free(struct scpi_device *d);

/* Carries out one line of commands (without terminator; changed in place). The
 * reply, without terminator, is appended to out; a line of set commands leaves
 * it as it is. set is called once for each set command before it is done, and
 * what it returns decides its fate; commands of a chain behind one that is not
 * EMU_DO are not carried out. */
enum emu_fate scpi_device_line(struct scpi_device *d, char *line, struct buf *out,
			       enum emu_fate (*set)(void *arg), void *arg);

#endif
