/* SPDX-License-Identifier: Apache-2.0 */
/* weftd: see weftd(8). */
#include <stdlib.h>

#include "controller/daemon/daemon.h"
#include "lib/base/file.h"

int main(int argc, char **argv)
{
	return file_open_standard() ? EXIT_FAILURE : daemon_main(argc, argv);
}
