/*
 * Reading what a Telescent robot's command line prints. Pure text work that
 * trusts nothing. Private to drivers and emulators.
 *
 * Ports have an input and an output each and are numbered from 0: row * 12 +
 * column of the table that `switchstate` prints. A row is
 * `R3#O  A123 U456 ...`: the cell of an output names the input whose fibre is
 * in it, allocated (A) or only left there (U). Reconstructed: the letters L
 * (locked) and F (failed) behind these, and all words said in passing.
 */
#ifndef WEFT_DRIVERS_ROBOT_TELESCENT_H
#define WEFT_DRIVERS_ROBOT_TELESCENT_H

#include "drivers/core/driver.h"
#include "drivers/robot/robot_cli.h"

#define TELESCENT_COLUMNS 12

/* A row of `switchstate`: its cells, as output ports. Returns how many there
 * are, 0 for any other line. O(line). */
int telescent_parse_row(const char *line,
			struct robot_port cells[TELESCENT_COLUMNS]);

/* What an answer says is wrong, NULL when nothing is. */
const char *telescent_error(const char *text);

/* Whether an answer to `switchstate input N` says that the port is not in
 * use and locked all the same. */
bool telescent_is_reserved(const char *text);

/* A line about connecting xc, or about ending what its input is in, said in
 * passing: 1 it succeeded, -1 it failed, 0 something else. */
int telescent_said(const char *line, struct optics_xc xc, bool connect);

/* The same about any move: circuits have changed, or it failed. ev gets its
 * kind and the input. False: it is about none. */
bool telescent_news(const char *line, struct drv_event *ev);

#endif
