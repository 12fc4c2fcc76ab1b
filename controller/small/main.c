/* SPDX-License-Identifier: Apache-2.0 */
/* weft and weftd in one program, for control boards (MODE=small): nearly all of either is in the
 * other. The name that it is called by says which it is. */
#include <stdlib.h>
#include <string.h>

#include "controller/cli/core/cli.h"
#include "controller/daemon/daemon.h"
#include "lib/base/file.h"

int main(int argc, char **argv)
{
	const char *name = argc > 0 ? argv[0] : "", *slash = strrchr(name, '/');

	if (strcmp(slash ? slash + 1 : name, "weftd") == 0) {
		return daemon_process_main(argc, argv);
	}
	return file_open_standard() ? EXIT_FAILURE : cli_main(argc, argv);
}
