/* weft-emulator: see docs/drivers.md. */
#include "drivers/emulators/emu.h"

int main(int argc, char **argv)
{
	return emulator_main(argc, argv);
}
