/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fabric as its owner describes it: hosts with optical ports, the devices
 * that move light (ring fabrics, optical switches, patch panels), the fibres
 * between them, and the jobs to be served. Read once from YAML, checked as a
 * whole, never changed afterwards. All arrays and strings belong to the
 * fabric; indices are into the fabric's arrays.
 *
 * docs/fabric.md and weft.yaml(5) describe the format.
 */
#ifndef WEFT_MODEL_MODEL_H
#define WEFT_MODEL_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collective/schedule/schedule.h"
#include "collective/workload/workload.h"
#include "drivers/optics/optics.h"
#include "lib/base/err.h"
#include "lib/conf/conf.h"
#include "rwa/ring/ring.h"

/* A transceiver: one transmit and one receive fibre. On an any-to-any
 * switch both directions share the one switch port. */
struct model_port {
	char *name;		/* "gpu00.p0"; of a lane "gpu00.p0-1" */
	char *label;		/* any text, of one port of its host only; NULL: none */
	int host;		/* hosts[] */
	int lane, lanes;	/* which of how many consecutive ones that are a port
				 * to people; lanes is 1 for most */
	int64_t rate_bps;	/* at least 1 */
	int tx_job, rx_job;	/* jobs[] on switches whose light leaves and
				 * arrives here; -1: none */
	int tx_device, tx_port; /* device and ingress port (0-based) that the
				 * transmit fibre reaches; -1: dark */
	int rx_device, rx_port; /* device and egress port that feeds the
				 * receive fibre; -1: dark */
	int32_t tx_loss_mdb, rx_loss_mdb;	/* of the fibres, less the
						 * gain of amplifiers */
	bool tx_amplified, rx_amplified;
};

/* Whether a host passes on messages for others. */
enum model_forwards {
	MODEL_FORWARDS_UNSAID,	/* only where an algorithm that a job names needs it */
	MODEL_FORWARDS_NO, MODEL_FORWARDS_YES,
};

/* A machine, or an accelerator with transceivers of its own; with `inside` a
 * server of several ranks. */
struct model_host {
	char *name;		/* unique among hosts and devices */
	char *label;		/* any text, of one host only; NULL: none */
	int first_port, n_ports;	/* consecutive in ports[] */
	int64_t reactivation_ns;	/* link up after light came back */
	int n_channels;		/* wavelengths of its transmitters; 0: not
				 * tuned, light that no filter passes */
	int *channels;		/* each once */
	char *netns;		/* namespace of weftd's machine that it is, "":
				 * weftd's own; NULL: a machine of its own */
	char *inside;			/* what model_inside() takes; NULL: the
					 * host is one rank */
	int *port_at;			/* [n_ports] the node of it that has each;
					 * NULL: one rank has all */
	int ranks;			/* terminals inside, 1 without */
	int side[3];			/* chips along x, y and z of a cube; 0: it is none */
	enum model_forwards forwards;
	/* Power of its transmitters, and what its receivers need and stand;
	 * meaningless unless given. */
	bool has_launch, has_receive_min, has_receive_max;
	int32_t launch_mdbm, receive_min_mdbm, receive_max_mdbm;
	struct conf_place place;
};

/* In model_device.in_port and out_port: a fibre of another switch. */
#define MODEL_AT_TRUNK (-2)

/* A ring of nodes that tune resonators, a switch that moves light by itself, a
 * panel whose fibres are moved by hand or robot. */
enum model_device_kind { MODEL_RING, MODEL_SWITCH, MODEL_PANEL };

/* One of the driver's options, as given; the driver checks it. */
struct model_option {
	char *key, *value;
};

enum model_overlap {
	MODEL_OVERLAP_AUTO,	/* the device is asked */
	MODEL_OVERLAP_ON, MODEL_OVERLAP_OFF,
};

/* What weftd does about circuits that were removed from outside. */
enum model_external {
	MODEL_EXTERNAL_UNSET,	/* of a device: as the fabric's */
	MODEL_EXTERNAL_REPORT, MODEL_EXTERNAL_RESTORE,
};

/* One device. Fields of the kinds that it is not are 0. */
struct model_device {
	char *name;			/* unique among hosts and devices */
	enum model_device_kind kind;
	char *driver;			/* "polatis-scpi" */
	char *address;			/* "127.0.0.1:5025", "" when none */
	char *domain;			/* failure domain; own name if unset */
	struct model_option *options;	/* for the driver */
	int n_options;
	int64_t timeout_ms;		/* 0: the driver's default */
	enum model_external external;
	enum model_external at_boot;	/* the same for what went while weftd did not
					 * run; unset: as external */
	struct conf_place place;

	/* what the file marks as dead; sorted, none twice */
	int n_dead_in, n_dead_out;	/* switches and panels: ports */
	int *dead_in, *dead_out;
	int n_dead;			/* rings: parts */
	struct ring_fault *dead;

	/* switches and panels */
	int n_in, n_out;	/* any_to_any: n_out == n_in, one side */
	bool any_to_any;
	int32_t loss_mdb;	/* insertion loss of a connection */
	int64_t switch_ns;	/* typical time to move light */
	int *in_port;		/* [n_in] host port whose tx arrives, -1: none,
				 * MODEL_AT_TRUNK: light of another switch */
	int *out_port;		/* [n_out] host port whose rx is fed; as above */

	/* rings */
	struct rwa_ring ring;	/* n = n_members */
	int n_members;
	int *members;		/* [n_members] hosts in ring order */
	const char **nodes;	/* [n_members] their names */
	int64_t channel_bps;	/* of one wavelength, at least 1 */
	int64_t retune_ns;	/* of the resonators */
	int64_t conversion_ns;	/* O/E/O, added to each step */
	int64_t span_delay_ns;	/* of light from a node to the next */
	enum model_overlap overlap;	/* retuning while others carry data */
	uint64_t program_memory;	/* bytes for programs, 0: unknown */
	bool has_loss;		/* false: reach is not limited */
	struct rwa_loss loss;
};

/* What lightpaths over fibres between switches have beside them, as enum rwa_protect. */
enum model_protect {
	MODEL_UNPROTECTED,
	MODEL_DEDICATED,	/* each a backup with fibres and channels of its own */
	MODEL_SHARED,		/* that backups of others may share */
};

/* A fibre from an output of one switch or panel to an input of another. */
struct model_trunk {
	int from_device, from_port;	/* egress, 0-based */
	int to_device, to_port;		/* ingress */
	char *from_name, *to_name;	/* "ocs0.9", counted from 1 */
	int32_t loss_mdb;	/* less the gain of its amplifier */
	bool amplified;
	int channel;		/* the one wavelength that its multiplexers
				 * pass, -1: whatever there is */
	enum model_protect protect;	/* of lightpaths over it whose jobs say nothing */
};

enum model_job_kind {
	MODEL_COLLECTIVE,	/* that its hosts repeat, on a digraph */
	MODEL_CIRCUITS,		/* light from port to port, whatever it carries */
	MODEL_STEP,		/* several collectives, in groups of its hosts */
};

/* Whether light may change during a step. */
enum model_light {
	MODEL_LIGHT_STILL,
	MODEL_LIGHT_BY_COLLECTIVE,	/* where that gains, by the times that devices take */
};

/* Light that a job of circuits wants, of one lane and one direction. */
struct model_link {
	int tx_port, rx_port;	/* ports[], of one host or of two */
	char *name;		/* of the circuit, "": none */
	bool is_back;		/* the way back of the link before it */
};

/* What hosts want light for, and where that may be. */
struct model_job {
	char *name;		/* unique among jobs */
	bool requested;		/* by an orchestrator, not in the text */
	enum model_job_kind kind;
	int n_ports;
	int *ports;		/* ascending: those that name it (model_port.tx_job,
				 * rx_job), so that no other job has them; none on
				 * a ring */
	int n_links;
	struct model_link *links;	/* circuits only */
	enum coll_kind collective;	/* from here on meaningless for circuits,
					 * but for hosts (of its ports, each
					 * once, ascending) and place */
	int n_hosts;
	int *hosts;		/* rank r runs on hosts[r]; where hosts have an
				 * inside, node r of `topology` is hosts[r] */
	int shape[3];		/* of a slice: chips along x, y and z; 0: it is none. Its topology
				 * is the torus of its chips, ranks in the order of coordinates,
				 * and its hosts are cubes, of which the plan says where each is */
	int twist[3];		/* chips: leaving x moves y and z, leaving y moves z */
	int spares;		/* of the hosts: so many are in use only for others that fail */
	int device;		/* the ring it runs on, or -1: on switches */
	int64_t size_bytes;	/* M, the whole vector */
	char *algorithm;	/* as it was said: "auto", of a ring "composed", "grouped",
				 * "optree", on switches one of collective/make */
	const struct coll_algorithm *made_by;	/* on switches; NULL: auto */
	char *topology;		/* its expression as topo_parse() writes it, or "auto";
				 * switches only */
	struct topo *topo;	/* of it, which the fabric owns; NULL: "auto", or on
				 * a ring */
	struct workload *workload;	/* of a step, which the fabric owns; else NULL.
					 * Collective, size and topology mean nothing then */
	enum model_protect protect;	/* of its lightpaths over fibres between switches */
	enum model_light light;
	int64_t max_changes;	/* of light in a step; -1: any number */
	int depth;		/* OpTree's k, 0: best; rings only */
	int64_t alpha_ns;	/* per step; rings: -1 = retune + conversion */
	/* on a ring: */
	int n_channels;		/* of each fibre that it is to have */
	int first_channel;	/* the lowest of them; -1: any that are free */
	bool segment;		/* its light stays between its first and its
				 * last host */
	struct conf_place place;
};

#define MODEL_PPM 1000000

/* What a change must reach where it can be asked. */
enum model_verify {
	MODEL_VERIFY_SETTLED,		/* maps are read twice */
	MODEL_VERIFY_MEASURED,		/* loss is as it should be */
	MODEL_VERIFY_NEIGHBOUR,		/* receivers hear the right port */
	MODEL_VERIFY_ERROR_FREE,	/* and count no errors */
};

/* What becomes of traffic on light that a stage takes away. */
enum model_drain {
	MODEL_DRAIN_REQUIRE,		/* it must stop first */
	MODEL_DRAIN_TRY,		/* it is sent another way */
	MODEL_DRAIN_OFF,		/* it is not looked at */
};

/* How changes are carried out. Shares in parts per million. */
struct model_changes {
	int64_t keep_ppm;	/* of each host's capacity, each way, that is
				 * there before and after: what stays in
				 * service at any time */
	int64_t keep_pair_ppm;	/* the same for each pair of hosts */
	int64_t gate_ppm;	/* of a stage's new circuits: verified, for the
				 * change to go on */
	bool stop;		/* under the gate: not rolled back, but left as
				 * it is */
	enum model_verify verify;
	enum model_drain drain;
	enum model_external external;
	/* before a circuit removed from outside is restored; ten times that
	 * before the next one */
	int64_t restore_after_ns;
	/* after its end, a change that lost a device is ended as its journal says when the
	 * device answers again; 0: never by itself */
	int64_t resume_within_ns;
	/* of a job's collectives as they are now, one after the other: another topology must
	 * have earned its outage by then */
	int64_t pays_back_ns;
	/* that a job on request has what it has at most, from its start or a renewal; 0: any */
	int64_t max_lease_ns;
	struct conf_place place;
};

/* A job that an orchestrator has asked for, as it enters a fabric beside the
 * operator's own jobs. Owned texts, none NULL; "" stands for the default of
 * the key of the same name. */
struct model_request {
	char *name;
	char *nodes;		/* hosts in the order of ranks, "a b c" */
	char *collective;	/* its name; of a training step its keys as in a job of the
				 * text, as YAML (model_check_step) */
	char *topology, *algorithm;	/* topology of a slice: "shape 8x8x16", " twist", and
				 * " 1" for a spare; "protect shared " before any */
	char *ring;		/* "": on switches */
	char *ports;		/* of each host: names, "p0 p1", in front of digits
				 * a space, " 2", or a number and those
				 * that it has, "2 h0.p0 h0.p1 h1.p2 h1.p3", none
				 * before its fabric was made; a job of circuits has
				 * none of these keys but */
	char *circuits;		/* one a line: "HOST.PORT HOST.PORT", and " one-way" where
				 * it is */
	int64_t size_bytes;
	int channels;		/* of the ring, wherever free; 0: all */
};

/* What a fabric is made from: the text as its operator wrote it, in any form
 * that YAML has, and the jobs that are requested on it. All owned. */
struct model_config {
	char *name;		/* what errors call the text */
	char *text;		/* terminated */
	size_t len;
	int n_requests;
	struct model_request *requests;
};

struct model_fabric {
	char *name;
	struct model_config config;	/* what it was made from; requests of a
					 * number of ports have them now */
	char text_hash[65];	/* SHA-256 of the text, hex */
	char hash[65];		/* of text and requests: fabrics are the same
				 * if and only if it is; without requests that
				 * of the text */
	int n_hosts;
	struct model_host *hosts;
	int n_ports;
	struct model_port *ports;
	int n_devices;
	struct model_device *devices;
	int n_trunks;
	struct model_trunk *trunks;	/* as in the file; none at devices
					 * that are any-to-any */
	int n_jobs;
	struct model_job *jobs;
	struct model_changes changes;
};

#define MODEL_FORMAT_VERSION 1		/* of a fabric file: its key weft */
/* Limits on input, checked before memory is spent. */
#define MODEL_MAX_TEXT (16u << 20)
#define MODEL_MAX_WAVELENGTHS 512	/* wavelengths between switches */
#define MODEL_MAX_HOSTS 65536
#define MODEL_MAX_PORTS (1 << 20)	/* of all hosts */
#define MODEL_MAX_DEVICES 4096
#define MODEL_MAX_SIDE 65536		/* ports on a side of a device */
#define MODEL_MAX_DEVICE_PORTS (1 << 21) /* sides of all devices */
#define MODEL_MAX_JOBS 4096
#define MODEL_MAX_CUBES 4096		/* of a slice, with its spares */
#define MODEL_MAX_FIBRES 64		/* of a ring, per direction */
#define MODEL_MAX_CHANNELS 4096		/* of a ring, per fibre */
#define MODEL_MAX_DEAD 65536		/* parts that are marked as dead */
#define MODEL_MAX_DEPTH 32		/* of a job's tree */
#define MODEL_MAX_LANES 64		/* of a port */
#define MODEL_MAX_LABEL 255		/* bytes */
#define MODEL_MAX_NETNS 180		/* bytes of a namespace's name */

/* What only drivers know of a device, whose file that is: adds what is wrong to errs. */
typedef void (*model_check_fn)(const struct model_device *d, const char *file,
			       struct err_list *errs);
/* From now on it is asked of each entry with a driver, also where there are other mistakes, so
 * that one run tells all. For the start of a program; NULL, as at first: nothing is asked. */
void model_check_devices_by(model_check_fn fn);

/* Reads and checks a fabric. On failure returns the first error's code,
 * leaves *out NULL and puts all errors found into errs (empty before; at most
 * errs->max, the rest is counted), sorted by place, each "object: fact" with
 * a hint where one helps. name is what errors call the text. Nothing else is
 * read: one document, no includes. Devices come in the order switches,
 * panels, rings, each as in the file. O(text + names), beside hints. */
int model_parse(const char *name, const char *text, size_t len,
		struct model_fabric **out, struct err_list *errs);

/* The same with requested jobs, which come behind those of the text and are
 * checked as they are; errors about them have no place. */
int model_parse_config(const struct model_config *config,
		       struct model_fabric **out, struct err_list *errs);

/* The same from a file ("-": standard input), with what model_splice does; also WEFT_ENOTFOUND,
 * WEFT_EIO. */
int model_load(const char *path, struct model_fabric **out, struct err_list *errs);

void model_free(struct model_fabric *f);

/* Whether a topology is the name of a file: such an expression there is none. */
bool model_is_file(const char *topology);
/* Appends the arcs of an edge list in that file, as a topology has them. Capacities, latencies and
 * nodes that are no ranks are WEFT_EUNSUPPORTED; WEFT_EINVAL, with its place; WEFT_ENOTFOUND. */
int model_edge_list(const char *path, struct buf *out, struct err *err);
/* In the text of the fabric file at path, which is replaced: arcs in place of each `topology` that
 * names a file, from the folder of the fabric. Who reads the text then needs no other file. What
 * is no YAML stays. The errors of model_edge_list, at the line that names it. */
int model_splice(const char *path, char **text, size_t *len, struct err *err);

/* Makes *out a configuration of its own without requests; the text may hold
 * any bytes. */
void model_config_init(struct model_config *out, const char *name, const void *text, size_t len);
void model_config_copy(struct model_config *out, const struct model_config *from);
/* Frees what it owns; empty afterwards. */
void model_config_fini(struct model_config *config);
/* The same fabric without jobs: neither those of the text, nor requests. On error config is as it
 * was. WEFT_EINVAL for what is no YAML. */
int model_config_drop_jobs(struct model_config *config, struct err *err);
/* Appends a copy; texts of r that are NULL become "". O(n) beside the texts. */
void model_config_add(struct model_config *config, const struct model_request *r);

/* Reads the keys of a training step that is requested, as YAML: mesh, collectives, step, light,
 * changes-at-most; *ranks: those of its mesh; before: those of a job whose groups have none, 0 if
 * that is not known. WEFT_EINVAL, with line and column of the text. O(len). */
int model_check_step(const char *text, int *ranks, struct err *err);

/* model_fabric.hash of the fabric that the configuration makes. */
void model_config_hash(const struct model_config *config, char hash[65]);

/*
 * The digraph inside a host: of the key `inside`, a kind of server ("dgx-a100", "-nvlink",
 * "-pcie": DgxA100 of one server) or an expression; NULL: one terminal. Capacities are GB/s a
 * direction. topo_free() *out. WEFT_EINVAL: neither; WEFT_ELIMIT: more than 1024
 * nodes or 65536 arcs; with topo_parse()'s column. O(nodes + arcs).
 */
int model_inside(const char *inside, struct topo **out, struct err *err);
/* It as an expression. */
const char *model_inside_expr(const char *inside);
/* The ranks that are nearest to a node inside a host, into near, which has room for all of them;
 * itself where it is one. Of port k that is there the k-th is meant, from the first again after the
 * last, unless all share it. Returns how many, at least 1. O(nodes + arcs). */
int model_nearest_ranks(const struct topo *inside, int node, int32_t *near);
/* Cubes: their ports are those of the faces +x, -x, +y, -y, +z, -z, of each by its two other
 * coordinates. Ports of a face of an axis; of a port there the number within its host, and the
 * chip that has it. O(1). */
int model_face_ports(const int side[3], int axis);
int model_face_port(const int side[3], int axis, bool minus, int position);
void model_face_chip(const int side[3], int axis, bool minus, int position, int at[3]);
/* The twist of a shape of k x k x 2k or k x 2k x 2k chips, as in model_job. WEFT_EINVAL: it is none
 * such, or no twist by whole cubes. */
int model_twist(const int shape[3], const int side[3], int twist[3], struct err *err);
/* GB/s in bits. */
#define MODEL_INSIDE_BPS INT64_C(8000000000)

/*
 * The digraph of a job's topology: an expression of topo_parse(), or arcs between ranks, the
 * lines of an edge list (topo_from_edges) with commas between them, "0 1, 1 2, 2 0". *name,
 * unless NULL: the expression's canonical text, or "3 nodes, 3 arcs"; free(). Errors of these
 * two; WEFT_EUNSUPPORTED: an arc that is not of capacity 1 or has a latency or a cost.
 */
int model_topology(const char *text, struct topo **out, char **name, struct err *err);
/* Whether the text, or a name of model_topology(), is of arcs and no expression. */
bool model_is_arcs(const char *text);

/* Index by name, or -1. O(1). f comes from model_parse or model_load. */
int model_find_host(const struct model_fabric *f, const char *name);
int model_find_device(const struct model_fabric *f, const char *name);
int model_find_job(const struct model_fabric *f, const char *name);
/*
 * The first lane of a host's port by its name or label: "HOST.PORT", of either part its
 * name or, if there is none of that name, its label; or by the port of a device that its fibres
 * lead to: "ocs0.5", and "ocs0.in5" or "ocs0.out5" by one of them. *lanes: how many follow each
 * other, 1 unless the port has more and was named whole. WEFT_ENOTFOUND names what there is not.
 * O(ports of the host + dots in the text), by a device O(ports).
 */
int model_find_port(const struct model_fabric *f, const char *name, int *port, int *lanes,
		    struct err *err);

/* An end of a circuit, as model_find_port finds it, and what errors call it. */
struct model_end {
	const char *name;
	int port, lanes;
};

/*
 * Whether there can be a circuit from a port to another, and back unless simplex: the file's own
 * checks, but for who has the ports. WEFT_ENOTFOUND: a side has no fibre; WEFT_EINVAL: it is marked
 * as dead, lanes differ, one-way at a switch that is any-to-any, a port to itself both ways, no
 * fibre between their devices. O(lanes x dead ports).
 */
int model_check_circuit(const struct model_fabric *f, const struct model_end *a,
			const struct model_end *z, bool simplex, struct err *err);

/* Whether the file marks a side of a switch's port as dead; an any-to-any switch has one for
 * both. O(log marks). */
bool model_port_is_dead(const struct model_device *d, bool out, int port);

/* "ring", "switch" or "panel". */
const char *model_device_kind_name(enum model_device_kind kind);

/* "gpu[00-15].p[0-3]" and comma lists to names, in order; for the command
 * line too. names: a NULL-terminated array (free with model_names_free).
 * WEFT_EINVAL names the column; WEFT_ELIMIT over max names, before any is
 * made. O(bytes of the names). */
int model_expand(const char *text, int max, char ***names, int *n, struct err *err);
void model_names_free(char **names);

#endif
