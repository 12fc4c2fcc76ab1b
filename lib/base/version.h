/* SPDX-License-Identifier: Apache-2.0 */
/* Which build of weft this is, and what it was made without. */
#ifndef WEFT_LIB_BASE_VERSION_H
#define WEFT_LIB_BASE_VERSION_H

/* "0.1.0+1103.gb44c89d5": the release, its commits, the last one's hash. Programs are linked with
 * that of the tree; what is linked without (tests, libraries) has the release alone. */
extern const char build_version[];

/* `make small` leaves features out (the Makefile's FEATURES): of each, files in folders absent/
 * beside those that are left out have the functions that others call, and answer by
 * build_lacks() (err.h). The names of those that are there and of those that are not, apart by
 * blanks; without "": all are there. */
extern const char build_features[];
extern const char build_without[];

/* What every program prints when it is asked by --version: a line, "weftd VERSION without ...",
 * the last two words where something is left out. */
void version_print(const char *program);

#endif
