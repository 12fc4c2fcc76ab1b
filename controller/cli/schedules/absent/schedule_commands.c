/* SPDX-License-Identifier: Apache-2.0 */
/* Without the commands about schedules. */
#include <stddef.h>

#include "controller/cli/core/options.h"

const struct cli_command schedule_commands[] = { GROUP_END };
const struct cli_command routes_commands[] = { GROUP_END };
const struct cli_command topology_commands[] = { GROUP_END };
const struct cli_command ring_commands[] = { GROUP_END };
const struct cli_command rwa_commands[] = { GROUP_END };
