/* SPDX-License-Identifier: Apache-2.0 */
/* weft: see weft(1). */
#include <stdlib.h>

#include "controller/cli/core/cli.h"
#include "lib/base/file.h"

int main(int argc, char **argv)
{
	return file_open_standard() ? EXIT_FAILURE : cli_main(argc, argv);
}
