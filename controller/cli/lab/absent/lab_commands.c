/* SPDX-License-Identifier: Apache-2.0 */
/* Without what a lab needs: emulated devices, bringup, testbeds. */
#include <stddef.h>

#include "controller/cli/core/options.h"

const struct cli_command testbed_commands[] = { GROUP_END };
const struct cli_command import_commands[] = { GROUP_END };

int cmd_emulate(struct cli *c, struct err *err)
{
	return build_lacks("weft emulate", err);
}

int cmd_bringup(struct cli *c, struct err *err)
{
	return build_lacks("weft bringup", err);
}
