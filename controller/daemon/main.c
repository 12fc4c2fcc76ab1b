/* SPDX-License-Identifier: Apache-2.0 */
/* weftd: see weftd(8). */
#include "controller/daemon/daemon.h"

int main(int argc, char **argv)
{
	return daemon_process_main(argc, argv);
}
