/* weftd: see weftd(8). */
#include "controller/daemon/daemon.h"

int main(int argc, char **argv)
{
	return daemon_main(argc, argv);
}
