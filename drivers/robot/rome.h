/*
 * Reading what a ROME robot's command line prints. Pure text work that trusts
 * nothing. Private to drivers and emulators.
 *
 * Its prompt is `ROME[OPER]# `.
 */
#ifndef WEFT_DRIVERS_ROBOT_ROME_H
#define WEFT_DRIVERS_ROBOT_ROME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "drivers/core/driver.h"
#include "drivers/robot/robot_cli.h"

#define ROME_PROMPT "ROME["

/* A robot_prompt_fn; arg is not used. */
size_t rome_prompt(const uint8_t *line, size_t len, const void *arg);

/* `E12[1AE12]` and `W7` : side and number from 0. */
bool rome_parse_port(const char *word, bool *is_out, int *index);

/* A row of `port show`; false for any other line. The line is cut. A port
 * that is not connected may still name the one it was connected to. */
bool rome_parse_row(char *line, struct robot_port *port);

/* `connection show pending`: nothing waits and nothing is in process. */
bool rome_is_idle(const char *text);

/* A line about the operation on E-W, said in passing: 1 it succeeded, -1 it
 * failed, 0 something else. */
int rome_said(const char *line, struct optics_xc xc);

/* The same about any operation: circuits have changed, or a move failed. ev
 * gets its kind and the East port. False: it is about none. */
bool rome_news(const char *line, struct drv_event *ev);

#endif
