/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The format of a fabric file: a table a section, with type, limits, default
 * and hint of every key.
 *
 * What depends on one value alone stands here, so that the reader, the hints
 * and the manual's test (tests/unit/model/test_manual.c) go by one table; what
 * depends on several values is checked where the section is built. Change
 * docs/man/weft.yaml.5 with them.
 */
#include <stddef.h>

#include "controller/model/private.h"

#define NS_PER_HOUR (3600 * INT64_C(1000000000))
#define MAX_DB 100000	/* milli-dB, of anything */

#define SECTION(what, table)                            \
	{                                               \
		.object = (what), .keys = (table),      \
		.n_keys = sizeof(table) / sizeof(*(table)) \
	}

/* enum model_forwards less one. */
static const char *const forwards[] = { "no", "yes", NULL };

/* As in enum model_overlap. */
static const char *const overlaps[] = { "auto", "true", "false", NULL };

#define POWER(key_name, key_help)                                 \
	{ key_name, CONF_QUANTITY, .unit = UNIT_MDBM, .min = -MAX_DB, \
	  .max = MAX_DB, .help = key_help }

static const struct conf_key host_keys[] = {
	[HOST_NAME] = { "name", CONF_NAMES, .required = true,
			.help = "names of hosts, such as gpu[00-15]" },
	[HOST_PORTS] = { "ports", CONF_NAMES,
			 .help = "names of its optical ports, such as p[0-3]" },
	[HOST_RATE] = { "rate", CONF_QUANTITY, .unit = UNIT_BPS, .min = 1, .max = INT64_MAX,
			.help = "bit rate of each port, such as 100Gbps" },
	[HOST_REACTIVATION] = { "reactivation", CONF_QUANTITY, .unit = UNIT_NS, .max = NS_PER_HOUR,
				.def = "5.67s",
				.help = "time until a port's link is up after "
					"its light came back" },
	[HOST_CHANNELS] = { "channels", CONF_TEXT,
			    .help = "wavelengths that its transmitters can "
				    "take, such as 0-39" },
	[HOST_NETNS] = { "netns", CONF_TEXT,
			 .help = "network namespace of this machine that the "
				 "host is, such as weft.lab.%, or self" },
	[HOST_LAUNCH] = POWER("launch", "power that its transmitters send, "
					"such as 1dBm"),
	[HOST_RECEIVE_MIN] = POWER("receive-min", "least power that its "
						  "receivers need"),
	[HOST_RECEIVE_MAX] = POWER("receive-max", "most power that its "
						  "receivers stand"),
	[HOST_INSIDE] = { "inside", CONF_TEXT,
			  .help = "a kind of server, such as dgx-a100, or the "
				  "topology of its ranks, such as Cap(Star(8),300)" },
	[HOST_PORT_AT] = { "port-at", CONF_ANY,
			   .help = "the node of `inside` that has its ports, from 0 on, or a list "
				   "of one for each" },
	[HOST_LANES] = { "lanes", CONF_INT, .min = 1, .max = MODEL_MAX_LANES, .def = "1",
			 .help = "pairs of fibres of each port: port p0 of 4 has p0-1 to "
				 "p0-4" },
	[HOST_LABEL] = { "label", CONF_ANY, .help = "any text for people, or a list of one for "
						    "each host" },
	[HOST_PORT_LABELS] = { "port-labels", CONF_ANY,
			       .help = "any text for each port, such as [Card1/Port1]" },
	[HOST_FORWARDS] = { "forwards", CONF_CHOICE, .choices = forwards,
			    .help = "whether it passes on messages for other hosts; without it "
				    "only where a job's algorithm needs that" },
};

static const struct conf_key cube_keys[] = {
	[CUBE_NAME] = { "name", CONF_NAMES, .required = true,
			.help = "names of cubes, such as cube[00-63]" },
	[CUBE_SIZE] = { "size", CONF_TEXT, .def = "4x4x4",
			.help = "chips along x, y and z, such as 4x4x4" },
	[CUBE_RATE] = { "rate", CONF_QUANTITY, .required = true, .unit = UNIT_BPS, .min = 1,
			.max = INT64_MAX, .help = "bit rate of each link between two chips" },
	[CUBE_SWITCHES] = { "switches", CONF_NAMES,
			    .help = "one for each position on the faces of x, y and z, such as "
				    "ocs-x[00-15],ocs-y[00-15],ocs-z[00-15]; without it `fibres` "
				    "join them" },
	[CUBE_REACTIVATION] = { "reactivation", CONF_QUANTITY, .unit = UNIT_NS, .max = NS_PER_HOUR,
				.def = "5.67s", .help = "as of hosts" },
};

/* enum model_external less one. */
static const char *const external_policies[] = { "report", "restore", NULL };

#define COMMON_KEYS(name_type, name_help)                                     \
	[DEVICE_NAME] = { "name", name_type, .required = true,                \
			  .help = name_help },                                \
	[DEVICE_DRIVER] = { "driver", CONF_NAME, .required = true,             \
			    .help = "the dialect it speaks, such as "         \
				    "polatis-scpi, mrr-reg or sim" },         \
	[DEVICE_ADDRESS] = { "address", CONF_NAMES,                            \
			     .help = "HOST:PORT of its management" },         \
	[DEVICE_OPTIONS] = { "options", CONF_STRINGS,                          \
			     .help = "the driver's options" },                \
	[DEVICE_DOMAIN] = { "domain", CONF_NAME,                               \
			    .help = "failure domain; devices of one domain "  \
				    "are changed together" },                 \
	[DEVICE_TIMEOUT] = { "timeout", CONF_QUANTITY, .unit = UNIT_NS,        \
			     .min = 1000000, .max = NS_PER_HOUR,              \
			     .help = "time it has for one answer" },          \
	[DEVICE_EXTERNAL] = { "external-changes", CONF_CHOICE,                           \
			     .choices = external_policies,                     \
			     .help = "as in changes, for these devices" },     \
	[DEVICE_AT_BOOT] = { "at-boot", CONF_CHOICE,                           \
			     .choices = external_policies,                     \
			     .help = "circuits that are gone when weftd "      \
				     "starts: report or restore" }

#define SPACE_TABLE(loss_def, time_def)                                       \
	COMMON_KEYS(CONF_NAMES, "names of devices, such as ocs[0-1]"),         \
	[SPACE_SIZE] = { "size", CONF_GRID, .min = 1, .max = MODEL_MAX_SIDE,   \
			 .help = "ingress x egress ports, such as 32x32" },   \
	[SPACE_PORTS] = { "ports", CONF_INT, .min = 2, .max = MODEL_MAX_SIDE,  \
			  .help = "number of ports, with any-to-any: true" }, \
	[SPACE_ANY_TO_ANY] = { "any-to-any", CONF_BOOL, .def = "false",        \
			       .help = "ports have no sides; each carries "   \
				       "both directions" },                   \
	[SPACE_LOSS] = { "loss", CONF_QUANTITY, .unit = UNIT_MDB,              \
			 .max = MAX_DB, .def = loss_def,                      \
			 .help = "insertion loss of a connection" },          \
	[SPACE_TIME] = { "switch-time", CONF_QUANTITY, .unit = UNIT_NS,        \
			 .max = 24 * NS_PER_HOUR, .def = time_def,            \
			 .help = "typical time to move light" }

static const struct conf_key switch_keys[] = { SPACE_TABLE("2dB", "45ms") };
static const struct conf_key panel_keys[] = { SPACE_TABLE("1dB", "1min") };

static const struct conf_key loss_keys[] = {
	[LOSS_LAUNCH] = { "launch", CONF_QUANTITY, .unit = UNIT_MDBM, .min = -MAX_DB, .max = MAX_DB,
			  .def = "0dBm", .help = "power put on one channel" },
	[LOSS_SENSITIVITY] = { "sensitivity", CONF_QUANTITY, .unit = UNIT_MDBM, .min = -MAX_DB,
			       .max = MAX_DB, .def = "-17dBm",
			       .help = "least power a receiver needs" },
	[LOSS_MARGIN] = { "margin", CONF_QUANTITY, .unit = UNIT_MDB, .max = MAX_DB, .def = "3dB",
			  .help = "kept in reserve" },
	[LOSS_ADD] = { "add", CONF_QUANTITY, .unit = UNIT_MDB, .max = MAX_DB, .def = "0.5dB",
		       .help = "coupling a channel onto the fibre" },
	[LOSS_DROP] = { "drop", CONF_QUANTITY, .unit = UNIT_MDB, .max = MAX_DB, .def = "0.5dB",
			.help = "coupling a channel off the fibre" },
	[LOSS_PASS] = { "pass-by", CONF_QUANTITY, .unit = UNIT_MDB, .max = MAX_DB, .def = "0.1dB",
			.help = "passing one resonator off resonance" },
	[LOSS_RINGS] = { "rings-per-node", CONF_INT, .max = 65536, .def = "0",
			 .help = "resonators passed at a node; 0: one for "
				 "each channel" },
	[LOSS_SPAN] = { "span", CONF_QUANTITY, .unit = UNIT_MDB, .max = MAX_DB, .def = "0.1dB",
			.help = "fibre and connectors between two nodes" },
};

static const struct conf_key ring_keys[] = {
	COMMON_KEYS(CONF_NAME, "the ring's name"),
	[RING_NODES] = { "nodes", CONF_NAMES, .required = true,
			 .help = "hosts on the ring, in ring order" },
	[RING_FIBRES] = { "fibres", CONF_INT, .min = 1, .max = MODEL_MAX_FIBRES, .def = "1",
			  .help = "fibres in each direction" },
	[RING_CHANNELS] = { "channels", CONF_INT, .required = true, .min = 1,
			    .max = MODEL_MAX_CHANNELS, .help = "wavelengths on each fibre" },
	[RING_RATE] = { "channel-rate", CONF_QUANTITY, .required = true, .unit = UNIT_BPS, .min = 1,
			.max = INT64_MAX, .help = "bit rate of one channel, such as 40Gbps" },
	[RING_RETUNE] = { "retune", CONF_QUANTITY, .unit = UNIT_NS, .max = NS_PER_HOUR,
			  .def = "25us", .help = "time the resonators take between steps" },
	[RING_CONVERSION] = { "conversion", CONF_QUANTITY, .unit = UNIT_NS, .max = NS_PER_HOUR,
			      .def = "0ns",
			      .help = "optical-electrical-optical conversion, "
				      "added to each step" },
	[RING_SPAN_DELAY] = { "span-delay", CONF_QUANTITY, .unit = UNIT_NS, .max = 1000000000,
			      .def = "0ns",
			      .help = "time light takes from a node to the next: 5ns a "
				      "metre of fibre" },
	[RING_OVERLAP] = { "overlap", CONF_CHOICE, .choices = overlaps, .def = "auto",
			   .help = "channels are retuned while others carry "
				   "data; auto: the device is asked" },
	[RING_MEMORY] = { "program-memory", CONF_QUANTITY, .unit = UNIT_BYTES, .min = 1,
			  .max = UINT32_MAX,
			  .help = "room for packed programs; without it the "
				  "device is asked" },
	[RING_LOSS] = { "loss", CONF_MAP, .section = &section_loss,
			.help = "loss budget; without it reach is not "
				"limited" },
};

/* In the order of enum model_protect. */
static const char *const protections[] = { "none", "1+1", "shared", NULL };

static const struct conf_key fibre_keys[] = {
	[FIBRE_FROM] = { "from", CONF_NAMES, .required = true,
			 .help = "host ports, such as gpu[00-15].p0, or a "
				 "device's .out[n]" },
	[FIBRE_TO] = { "to", CONF_NAMES, .required = true,
		       .help = "device ports, such as ocs0.[1-16], or a "
			       "host port's .rx" },
	[FIBRE_LOSS] = { "loss", CONF_QUANTITY, .unit = UNIT_MDB, .max = MAX_DB, .def = "0dB",
			 .help = "of each fibre with its connectors" },
	[FIBRE_CHANNELS] = { "channels", CONF_TEXT,
			     .help = "between switches: the one wavelength "
				     "that each passes, such as 0-7" },
	[FIBRE_GAIN] = { "gain", CONF_QUANTITY, .unit = UNIT_MDB, .max = MAX_DB, .def = "0dB",
			 .help = "of an amplifier on each fibre" },
	[FIBRE_PROTECT] = { "protect", CONF_CHOICE, .choices = protections, .def = "none",
			    .help = "between switches: backups of lightpaths over these fibres" },
};

static const struct conf_key step_collective_keys[] = {
	[OP_NAME] = { "name", CONF_NAME, .required = true, .help = "what the step calls it" },
	[OP_COLLECTIVE] = { "collective", CONF_TEXT, .required = true,
			    .help = "allgather, reduce-scatter, allreduce, all-to-all or send" },
	[OP_SIZE] = { "size", CONF_TEXT, .required = true,
		      .help = "the whole vector of one group, of a send what one rank sends; or a "
			      "range, 1KiB-1MiB" },
	[OP_OVER] = { "over", CONF_ANY,
		      .help = "the axis of the mesh that its groups lie along, or a list of "
			      "them" },
	[OP_GROUPS] = { "groups", CONF_ANY,
			.help = "without a mesh: blocks of N, stride N, or lists of ranks" },
	[OP_SHIFT] = { "shift", CONF_INT, .min = -MODEL_MAX_HOSTS, .max = MODEL_MAX_HOSTS,
		       .help = "of a send: so many ranks further along the axis; 1 without it" },
};

static const struct conf_key step_part_keys[] = {
	[PART_REPEAT] = { "repeat", CONF_INT, .min = 1, .max = 1000000000, .def = "1",
			  .help = "how often `do` runs" },
	[PART_DO] = { "do", CONF_ANY, .help = "a list of collectives, and of parts like this" },
	[PART_TOGETHER] = { "together", CONF_ANY,
			    .help = "collectives that run at the same time" },
};

const struct conf_section section_step_collective = SECTION("collective", step_collective_keys);
const struct conf_section section_step_part = SECTION("step", step_part_keys);

/* As in enum model_light. */
static const char *const lights[] = { "still", "by-collective", NULL };

static const struct conf_key job_keys[] = {
	[JOB_NAME] = { "name", CONF_NAME, .required = true, .help = "the job's name" },
	[JOB_NODES] = { "nodes", CONF_NAMES, .def = "all",
			.help = "hosts in the order of ranks, or all" },
	[JOB_RING] = { "ring", CONF_NAME, .help = "the ring it runs on; without it: switches" },
	[JOB_COLLECTIVE] = { "collective", CONF_TEXT,
			     .help = "allgather, reduce-scatter, allreduce, "
				     "all-to-all, broadcast or reduce" },
	[JOB_SIZE] = { "size", CONF_QUANTITY, .unit = UNIT_BYTES, .min = 1,
		       .max = INT64_MAX, .help = "the whole vector, such as 4MB" },
	[JOB_ALGORITHM] = { "algorithm", CONF_TEXT, .def = "auto",
			    .help = "composed, grouped or optree on rings, on switches those "
				    "of weft schedule make" },
	[JOB_TOPOLOGY] = { "topology", CONF_TEXT, .def = "auto",
			   .help = "graph among the ranks, such as "
				   "C(16,{1,4})" },
	[JOB_DEPTH] = { "depth", CONF_INT, .max = MODEL_MAX_DEPTH, .def = "0",
			.help = "depth of the tree; 0: the best" },
	[JOB_ALPHA] = { "alpha", CONF_QUANTITY, .unit = UNIT_NS, .max = NS_PER_HOUR, .def = "10us",
			.help = "fixed cost of a communication step" },
	[JOB_CHANNELS] = { "channels", CONF_TEXT,
			   .help = "how many channels of the ring, such as 16, "
				   "or which, such as 0-15" },
	[JOB_PORTS] = { "ports", CONF_NAMES,
			.help = "ports of each of its hosts, such as p[0-3], or how many; "
				"without it all that no other job has" },
	[JOB_MESH] = { "mesh", CONF_STRINGS,
		       .help = "axes of a training step's ranks and how many are along each, "
			       "such as {pp: 4, dp: 8, tp: 8}; the last is the fastest" },
	[JOB_COLLECTIVES] = { "collectives", CONF_ENTRIES, .section = &section_step_collective,
			      .help = "what a training step runs" },
	[JOB_STEP] = { "step", CONF_ANY, .section = &section_step_part,
		       .help = "their order, with `repeat` and `together`; without it one "
			       "after the other" },
	[JOB_LIGHT] = { "light", CONF_CHOICE, .choices = lights, .def = "still",
			.help = "whether light may change during a step: still or "
				"by-collective" },
	[JOB_MAX_CHANGES] = { "changes-at-most", CONF_INT, .max = INT32_MAX,
			       .help = "changes of light in a step" },
	[JOB_SHAPE] = { "shape", CONF_ANY,
			.help = "chips along x, y and z of a slice of cubes, such as 8x8x16" },
	[JOB_TWIST] = { "twist", CONF_BOOL, .def = "false",
			.help = "a twisted torus, of k x k x 2k or k x 2k x 2k chips" },
	[JOB_SPARES] = { "spares", CONF_INT, .max = MODEL_MAX_HOSTS, .def = "0",
			 .help = "so many of the cubes stand by for those that fail" },
	[JOB_PROTECT] = { "protect", CONF_CHOICE, .choices = protections, .def = "none",
			  .help = "backups of light over fibres between switches: none, 1+1 or "
				  "shared" },
	[JOB_SEGMENT] = { "segment", CONF_BOOL, .def = "false",
			  .help = "light stays between the first and the last "
				  "node" },
};

#define SHARE(key_name, key_def, key_help)                              \
	{ key_name, CONF_QUANTITY, .unit = UNIT_PPM, .max = MODEL_PPM,   \
	  .def = (key_def), .help = (key_help) }

/* false and true of model_changes.stop. */
static const char *const below_gates[] = { "roll-back", "stop", NULL };

static const char *const verify_levels[] = { "settled", "measured", "neighbour",
					     "error-free", NULL };
static const char *const drains[] = { "require", "try", "off", NULL };

static const struct conf_key changes_keys[] = {
	[CHANGES_KEEP] = SHARE("keep", "0%",
			       "share of each host's capacity that stays in "
			       "service during a change, such as 75%"),
	[CHANGES_KEEP_PAIR] = SHARE("keep-pair", "0%", "the same for each pair of hosts"),
	[CHANGES_GATE] = SHARE("gate", "90%",
			       "share of a stage's new circuits that must be "
			       "verified for the change to go on"),
	[CHANGES_BELOW] = { "below-gate", CONF_CHOICE, .choices = below_gates, .def = "roll-back",
			    .help = "what becomes of a change under the gate: "
				    "roll-back or stop" },
	[CHANGES_VERIFY] = { "verify", CONF_CHOICE, .choices = verify_levels, .def = "settled",
			     .help = "how far new light must be proven, where "
				     "that can be asked: settled, measured, "
				     "neighbour or error-free" },
	[CHANGES_DRAIN] = { "drain", CONF_CHOICE, .choices = drains, .def = "require",
			    .help = "traffic on light that goes: require (it "
				    "must stop first), try or off" },
	[CHANGES_EXTERNAL] = { "external-changes", CONF_CHOICE, .choices = external_policies,
			      .def = "report",
			      .help = "circuits removed from outside: "
				      "report or restore" },
	[CHANGES_RESTORE_AFTER] = { "restore-after", CONF_QUANTITY, .unit = UNIT_NS,
				    .min = 10000000, .max = NS_PER_HOUR, .def = "1s",
				    .help = "time before light is restored; ten "
					    "times that before the next" },
	[CHANGES_RESUME_WITHIN] = { "resume-within", CONF_QUANTITY, .unit = UNIT_NS,
				    .max = 168 * NS_PER_HOUR, .def = "1h",
				    .help = "how long a change that lost a device waits for it, "
					    "to be ended by itself; 0s: not at all" },
	[CHANGES_PAYS_BACK] = { "pays-back-within", CONF_QUANTITY, .unit = UNIT_NS,
				.max = 100000 * NS_PER_HOUR, .def = "1h",
				.help = "time in which weft apply --optimise must have earned "
					"the outage of another topology" },
	[CHANGES_MAX_LEASE] = { "max-lease", CONF_QUANTITY, .unit = UNIT_NS,
				.max = 100000 * NS_PER_HOUR, .def = "0s",
				.help = "longest duration of jobs and circuits on request, and of "
					"a renewal; 0s: any, and none" },
};

/* false and true of one-way. */
static const char *const circuit_directions[] = { "both", "one-way", NULL };

static const struct conf_key circuit_keys[] = {
	[CIRCUIT_NAME] = { "name", CONF_NAMES,
			   .help = "names of circuits, such as snake[0-15]" },
	[CIRCUIT_FROM] = { "from", CONF_NAMES, .required = true,
			   .help = "ports of hosts, such as dut.Ethernet[0-15]" },
	[CIRCUIT_TO] = { "to", CONF_NAMES, .required = true,
			 .help = "as many ports of hosts" },
	[CIRCUIT_DIRECTION] = { "direction", CONF_CHOICE, .choices = circuit_directions,
				.def = "both",
				.help = "both, or one-way: from sends, to receives" },
	[CIRCUIT_GROUP] = { "group", CONF_NAME,
			    .help = "what is made and released together; without it each "
				    "circuit is on its own" },
};

static const char *const directions[] = { "cw", "ccw", NULL };

static const struct conf_key dead_keys[] = {
	[DEAD_PORT] = { "port", CONF_NAMES,
			.help = "ports of hosts, switches and panels, such as "
				"gpu03.p1 or ocs0.in[5-8]" },
	[DEAD_RING] = { "ring", CONF_NAME, .help = "the ring that the part is of" },
	[DEAD_NODE] = { "node", CONF_INT, .max = UINT16_MAX, .help = "position of a node, from 0" },
	[DEAD_SPAN] = { "span", CONF_INT, .max = UINT16_MAX,
			.help = "the fibres between this node and the next "
				"one clockwise" },
	[DEAD_CHANNEL] = { "channel", CONF_INT, .max = MODEL_MAX_CHANNELS - 1,
			   .help = "a wavelength, at one node or all" },
	[DEAD_DIRECTION] = { "direction", CONF_CHOICE, .choices = directions,
			     .help = "cw or ccw; both unless given" },
	[DEAD_FIBRE] = { "fibre", CONF_INT, .max = MODEL_MAX_FIBRES - 1,
			 .help = "one fibre of a direction; all unless "
				 "given" },
};

static const struct conf_key fabric_keys[] = {
	[FABRIC_WEFT] = { "weft", CONF_INT, .required = true, .min = MODEL_FORMAT_VERSION,
			  .max = MODEL_FORMAT_VERSION, .help = "version of this format: 1" },
	[FABRIC_NAME] = { "fabric", CONF_NAME, .required = true, .help = "the fabric's name" },
	[FABRIC_HOSTS] = { "hosts", CONF_ENTRIES, .section = &section_host,
			   .help = "machines with optical ports" },
	[FABRIC_CUBES] = { "cubes", CONF_ENTRIES, .section = &section_cube,
			   .help = "hosts that are cubes of chips, with ports on six faces" },
	[FABRIC_SWITCHES] = { "switches", CONF_ENTRIES, .section = &section_switch,
			      .help = "optical circuit switches" },
	[FABRIC_PANELS] = { "panels", CONF_ENTRIES, .section = &section_panel,
			    .help = "patch panels" },
	[FABRIC_RINGS] = { "rings", CONF_ENTRIES, .section = &section_ring,
			   .help = "rings of micro-ring resonators" },
	[FABRIC_FIBRES] = { "fibres", CONF_ENTRIES, .section = &section_fibre,
			    .help = "fibres between ports and devices" },
	[FABRIC_JOBS] = { "jobs", CONF_ENTRIES, .section = &section_job,
			  .help = "collectives to serve" },
	[FABRIC_CIRCUITS] = { "circuits", CONF_ENTRIES, .section = &section_circuit,
			      .help = "light from port to port" },
	[FABRIC_CHANGES] = { "changes", CONF_MAP, .section = &section_changes,
			     .help = "how changes are carried out" },
	[FABRIC_DEAD] = { "dead", CONF_ENTRIES, .section = &section_dead,
			  .help = "parts that carry no light" },
};

const struct conf_section section_fabric = SECTION("fabric", fabric_keys);
const struct conf_section section_host = SECTION("host", host_keys);
const struct conf_section section_cube = SECTION("cubes", cube_keys);
const struct conf_section section_switch = SECTION("switch", switch_keys);
const struct conf_section section_panel = SECTION("panel", panel_keys);
const struct conf_section section_ring = SECTION("ring", ring_keys);
const struct conf_section section_loss = SECTION("loss", loss_keys);
const struct conf_section section_fibre = SECTION("fibre", fibre_keys);
const struct conf_section section_job = SECTION("job", job_keys);
const struct conf_section section_circuit = SECTION("circuit", circuit_keys);
const struct conf_section section_changes = SECTION("changes", changes_keys);
const struct conf_section section_dead = SECTION("dead part", dead_keys);

const struct conf_section *const schema_sections[] = {
	&section_fabric, &section_host, &section_cube, &section_switch,
	&section_panel,  &section_ring, &section_loss,
	&section_fibre,  &section_job,  &section_step_collective,
	&section_step_part, &section_circuit,
	&section_changes, &section_dead, NULL,
};

const char *model_device_kind_name(enum model_device_kind kind)
{
	static const char *const names[] = { "ring", "switch", "panel" };

	return names[kind];
}
