/* SPDX-License-Identifier: Apache-2.0 */
/* The commands of testbeds and labs. */
#include <limits.h>
#include <stddef.h>

#include "controller/cli/core/options.h"

static const struct cli_option testbed_up_options[] = {
	{ 0, "rate", "RATE", "of every link (default: as the fabric says, up "
	  "to 17Gbps)", NULL },
	{ 0, "swap", "FIBRE,FIBRE", "swap two fibres, e.g. "
	  "gpu0.p0.tx,gpu1.p0.tx", NULL },
	{ 0, "dead", "FIBRES", "break fibres", NULL },
	{ 0, "reverse", "PORTS", "swap transmit and receive fibres of ports", NULL },
	END,
};

static const struct cli_option testbed_status_options[] = {
	{ 0, "watch", NULL, "print link events until Ctrl-C", NULL }, END,
};

static const struct cli_option testbed_probe_options[] = {
	{ 0, "duration", "TIME", "keep sending, e.g. 10s (default: one frame a "
	  "port)", NULL },
	{ 0, "interval", "TIME", "between frames (default: 10ms)", NULL },
	END,
};

static const struct cli_option testbed_run_options[] = {
	{ 0, "job", "NAME", "the job (default: the only one)", "@job" },
	{ 0, "size", "BYTES", "of the vector (default: the job's)", NULL },
	{ 0, "repeat", "K", "measure so many runs (default: 5)", NULL },
	{ 0, "barriers", NULL, "all ranks end a step before any begins the next", NULL },
	{ 0, "compare", NULL, "also run MPI's own collective over the same light", NULL },
	{ 0, "time-limit", "TIME", "then all ranks are ended (default: 10min)", NULL },
	END,
};

static const struct cli_option testbed_step_options[] = {
	{ 0, "to", "STEP", "step number from 0 (default: the next, cyclic)",
	  NULL },
	{ 0, "all", NULL, "every step, probing all ports in each",
	  NULL },
	END,
};

const struct cli_command testbed_commands[] = {
	{ "up", NULL, "FABRIC", "Build a fabric of network namespaces", NULL,
	  testbed_up_options, 1, 1, false, cmd_testbed_up },
	{ "down", NULL, "FABRIC", "Remove it", NULL, NULL, 1, 1,
	  false, cmd_testbed_down },
	{ "status", NULL, "FABRIC", "Show the links of the hosts, and whose signal "
	  "they receive", NULL, testbed_status_options, 1, 1, false,
	  cmd_testbed_status },
	{ "route", NULL, "FABRIC", "Install the routes of the applied jobs in hosts",
	  NULL, NULL, 1, 1, false, cmd_testbed_route },
	{ "run", NULL, "FABRIC [PROGRAM...]", "Run the schedule of an applied job, or a "
	  "program on its hosts, by Open MPI", NULL, testbed_run_options, 1, INT_MAX, false,
	  cmd_testbed_run },
	{ "ping", NULL, "FABRIC", "Ping between all hosts over one hop",
	  NULL, NULL, 1, 1, false, cmd_testbed_ping },
	{ "probe", NULL, "FABRIC", "Send frames from every port and report "
	  "where they arrive", NULL, testbed_probe_options, 1, 1, false,
	  cmd_testbed_probe },
	{ "step", NULL, "FABRIC JOB", "Set a job's ring to another step",
	  NULL, testbed_step_options, 2, 2, false, cmd_testbed_step },
	GROUP_END,
};

#define IMPORT_OPTIONS \
	OUTPUT("default: standard output"), \
	{ 0, "rate", "RATE", "of ports of which no file tells it (default: 100Gbps)", NULL }

static const struct cli_option import_sonic_options[] = {
	IMPORT_OPTIONS,
	{ 0, "files", "DIR", "the folder of the files, ansible/files", "@file" },
	{ 0, "group", "GROUP", "of the inventory: sonic_GROUP_devices.csv and so on", NULL },
	{ 0, "testbed", "FILE", "write circuits of its testbeds instead of the fabric, a group "
	  "each", "@file" },
	{ 0, "driver", "NAME", "of the switches (default: sonic-ocs)", NULL },
	END,
};

static const struct cli_option import_netbox_options[] = {
	IMPORT_OPTIONS,
	{ 0, "switches", "NAMES", "devices that are switches, apart by commas (default: those with "
	  "front or rear ports)", NULL },
	{ 0, "driver", "NAME", "of the switches (default: sim)", NULL },
	END,
};

static const struct cli_option import_chakra_options[] = {
	OUTPUT("default: standard output"),
	{ 0, "groups", "FILE", "groups of ranks by name, JSON (default: PREFIX.json, if there is "
	  "one)", "@file" },
	END,
};

const struct cli_command import_commands[] = {
	{ "sonic-mgmt", NULL, "[TESTBED]", "Files of sonic-mgmt, as a fabric file or as circuits",
	  NULL, import_sonic_options, 0, 1, false, cmd_import_sonic_mgmt },
	{ "netbox", NULL, "FILE", "NetBox's cables, CSV or JSON, as a fabric file", NULL,
	  import_netbox_options, 1, 1, false, cmd_import_netbox },
	{ "chakra", NULL, "PREFIX", "Chakra traces PREFIX.0.et, PREFIX.1.et, ..., as the step of a "
	  "job", NULL, import_chakra_options, 1, 1, false, cmd_import_chakra },
	GROUP_END,
};
