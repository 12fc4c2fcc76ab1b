/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys and passwords in files of their own. Private to drivers.
 */
#ifndef WEFT_DRIVERS_CORE_SECRET_H
#define WEFT_DRIVERS_CORE_SECRET_H

#include <stddef.h>

#include "lib/base/err.h"

#define SECRET_PATH_MAX 256	/* of a file's name, with its end */

/* The text of a file that its owner only may read, of 1 byte to 16 KiB; *len NULL is fine.
 * WEFT_EDENIED, with the path, when it is none or cannot be read. */
int secret_read(const char *path, char **text, size_t *len, struct err *err);

/* The same, of its first line, which is not empty. */
int secret_read_line(const char *path, char **line, struct err *err);

/* Puts `*` in place of what is the secret in a text that a device sent. O(len). */
void secret_hide(char *text, const char *secret);

/* WEFT_EDENIED: what is wrong with the file. */
int secret_unusable(const char *path, const char *why, struct err *err);

/* Wipes what one of these read, which may be NULL, and frees it. */
void secret_free(char *text);

#endif
