/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of weft: parse, run one command, report, exit code. */
#ifndef WEFT_CLI_CORE_CLI_H
#define WEFT_CLI_CORE_CLI_H

/* Runs `weft` with these arguments and returns its exit code, by the table
 * of weft(1). Data goes to stdout, everything else to stderr. */
int cli_main(int argc, char **argv);

#endif
