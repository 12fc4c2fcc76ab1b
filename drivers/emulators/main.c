/* SPDX-License-Identifier: Apache-2.0 */
/* weft-emulator: see docs/drivers.md. */
#include <stdlib.h>

#include "drivers/emulators/core/emulator.h"
#include "lib/base/file.h"

int main(int argc, char **argv)
{
	return file_open_standard() ? EXIT_FAILURE : emulator_main(argc, argv);
}
