/* weftd: see weftd(8). */
#include <stdlib.h>
#include <string.h>

#include "controller/daemon/core/plan_process.h"
#include "controller/daemon/daemon.h"
#include "lib/base/file.h"

int main(int argc, char **argv)
{
	if (file_open_standard()) {
		return EXIT_FAILURE;
	}
	return argc > 1 && strcmp(argv[1], PLAN_PROCESS_MODE) == 0 ? plan_process_main(argc, argv)
								   : daemon_main(argc, argv);
}
