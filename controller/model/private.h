/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the model share: names with ranges (hostlist.c), the
 * sections of a fabric file (fabric_schema.c), and the build, from checked
 * sections to a fabric in the order hosts, devices, fibres, jobs and circuits,
 * the ports of jobs: each part looks up names of those before it.
 *
 * A part that could not be understood leaves a mark (`hosts_unsure`, ...), so
 * that later parts do not complain about names that it would have given.
 */
#ifndef WEFT_MODEL_PRIVATE_H
#define WEFT_MODEL_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "controller/model/model.h"
#include "lib/base/err.h"
#include "lib/base/map.h"
#include "lib/base/vec.h"
#include "lib/conf/conf.h"

/* ---- names ---- */

/*
 * Ranges to names; model_expand is the public face.
 *
 *   text  = term { "," term }
 *   term  = { letters | "[" span { "," span } "]" }
 *   span  = number | number "-" number
 *
 * Brackets that hold a ':' are letters: they enclose an IPv6 address.
 * A term with several brackets counts through the last one fastest. Numbers
 * keep their width: both ends of "[00-15]" have two digits, only numbers
 * without leading zeros may differ in width ("[8-11]").
 */

/* Longest name that a term may expand to. */
#define NAMES_MAX_LEN 255

struct name {
	const char *text;
	struct conf_place at;	/* for users: where the text was given */
};

struct names {
	struct name *v;
	int n;
};

/* Counts the names of text, which must not exceed max. WEFT_EINVAL,
 * WEFT_ELIMIT (nothing was expanded yet); *offset is the byte where it went
 * wrong. O(length). */
int names_count(const char *text, int64_t max, int64_t *n, size_t *offset, struct err *err);

/* Appends the names of a text that names_count accepted to out, which has
 * room for them, all with the same place. O(bytes written). */
void names_expand(const char *text, struct conf_place at, struct conf_arena *arena,
		  struct names *out);

/* ---- the sections of a fabric file ---- */

/* Numbers of their keys. The manual is tested against the same tables. */
enum { FABRIC_WEFT, FABRIC_NAME, FABRIC_HOSTS, FABRIC_SWITCHES, FABRIC_PANELS,
       FABRIC_RINGS, FABRIC_FIBRES, FABRIC_JOBS, FABRIC_CIRCUITS, FABRIC_CHANGES,
       FABRIC_DEAD, FABRIC_CUBES,
       FABRIC_KEYS };
enum { DEAD_PORT, DEAD_RING, DEAD_NODE, DEAD_SPAN, DEAD_CHANNEL, DEAD_DIRECTION,
       DEAD_FIBRE, DEAD_KEYS };
enum { CHANGES_KEEP, CHANGES_KEEP_PAIR, CHANGES_GATE, CHANGES_BELOW,
       CHANGES_VERIFY, CHANGES_DRAIN,
       CHANGES_EXTERNAL, CHANGES_RESTORE_AFTER, CHANGES_RESUME_WITHIN,
       CHANGES_PAYS_BACK, CHANGES_MAX_LEASE,
       CHANGES_KEYS };
enum { HOST_NAME, HOST_PORTS, HOST_RATE, HOST_REACTIVATION,
       HOST_CHANNELS, HOST_NETNS, HOST_LAUNCH, HOST_RECEIVE_MIN, HOST_RECEIVE_MAX,
       HOST_INSIDE, HOST_FORWARDS, HOST_LANES, HOST_LABEL, HOST_PORT_LABELS,
       HOST_PORT_AT,
       HOST_KEYS };
enum { CUBE_NAME, CUBE_SIZE, CUBE_RATE, CUBE_SWITCHES, CUBE_REACTIVATION, CUBE_KEYS };
/* What every device has stands first, in the same order. */
enum { DEVICE_NAME, DEVICE_DRIVER, DEVICE_ADDRESS, DEVICE_OPTIONS,
       DEVICE_DOMAIN, DEVICE_TIMEOUT, DEVICE_EXTERNAL, DEVICE_AT_BOOT, DEVICE_KEYS };
enum { SPACE_SIZE = DEVICE_KEYS, SPACE_PORTS, SPACE_ANY_TO_ANY, SPACE_LOSS,
       SPACE_TIME, SPACE_KEYS };
enum { RING_NODES = DEVICE_KEYS, RING_FIBRES, RING_CHANNELS, RING_RATE,
       RING_RETUNE, RING_CONVERSION, RING_SPAN_DELAY, RING_OVERLAP,
       RING_MEMORY, RING_LOSS, RING_KEYS };
enum { LOSS_LAUNCH, LOSS_SENSITIVITY, LOSS_MARGIN, LOSS_ADD, LOSS_DROP,
       LOSS_PASS, LOSS_RINGS, LOSS_SPAN, LOSS_KEYS };
enum { FIBRE_FROM, FIBRE_TO, FIBRE_LOSS, FIBRE_CHANNELS, FIBRE_GAIN,
       FIBRE_PROTECT, FIBRE_KEYS };
enum { JOB_NAME, JOB_NODES, JOB_RING, JOB_COLLECTIVE, JOB_SIZE, JOB_ALGORITHM,
       JOB_TOPOLOGY, JOB_DEPTH, JOB_ALPHA, JOB_CHANNELS, JOB_SEGMENT, JOB_PORTS,
       JOB_MESH, JOB_COLLECTIVES, JOB_STEP, JOB_LIGHT, JOB_MAX_CHANGES,
       JOB_SHAPE, JOB_TWIST, JOB_SPARES, JOB_PROTECT,
       JOB_KEYS };
enum { OP_NAME, OP_COLLECTIVE, OP_SIZE, OP_OVER, OP_GROUPS, OP_SHIFT, OP_KEYS };
enum { PART_REPEAT, PART_DO, PART_TOGETHER, PART_KEYS };
enum { CIRCUIT_NAME, CIRCUIT_FROM, CIRCUIT_TO, CIRCUIT_DIRECTION, CIRCUIT_GROUP,
       CIRCUIT_KEYS };

extern const struct conf_section section_fabric, section_host, section_cube, section_switch,
	section_panel, section_ring, section_loss, section_fibre, section_job,
	section_circuit, section_changes, section_dead, section_step_collective,
	section_step_part;

/* All of them, NULL-terminated: for tests of the documentation. */
extern const struct conf_section *const schema_sections[];

/* ---- the build ---- */

/* Names that ranges of one fabric may expand to, counted each time one is
 * written, before memory is spent on them. */
#define MODEL_MAX_NAMES ((int64_t)1 << 22)

/* What model_parse hands out: the public fabric and what finds its names.
 * Map values are index + 1. */
struct fabric {
	struct model_fabric pub;	/* first: the two are cast */
	struct conf_arena strings;
	struct strmap hosts, devices, jobs;
	struct strmap labels;		/* of hosts */
};

/* Hosts of one entry share their port names. */
struct host_class {
	struct strmap ports;	/* number within the host + 1 */
	struct strmap laned;	/* ports of several lanes: that of the first */
	int lanes;		/* of each port; each is one in `names` */
	const struct names *names;
	char **labels;		/* of each port, or NULL */
	bool unsure;		/* the ports could not be read */
	int n_channels, *channels;	/* as in model_host */
	int ranks, *port_at;	/* as there */
};

/* A part that the file marks as dead. */
struct mark {
	int device;
	bool is_out;		/* of a port */
	int index;
	struct ring_fault part;	/* rings */
};

/* A port by its name: of a host, or of a device on one side or both. */
struct port_end {
	int port;		/* of the fabric, or -1 */
	int lanes;		/* of a host's that was named whole: more follow */
	bool tx, rx;		/* its fibres; a device's input and output */
	int device, index;
};

/* A job that was read, until its ports and its topology are known. */
struct job_entry {
	const struct conf_node *node;
	char object[CONF_MAX_OBJECT];
	struct conf_value v[CONF_MAX_KEYS];
	bool ok;	/* its hosts are known */
	bool ring;	/* it wants one, known or not */
	struct model_job job;	/* until it is in the build's list */
	int index;		/* there, once it is */
	int n_ports;		/* `ports: N`; 0: not a number */
	const struct names *ports;	/* `ports: NAMES`, or NULL */
	struct model_request *request;	/* that it is of, or NULL */
};

/* Cubes of an entry whose fibres are to be joined. */
struct cube_entry {
	int first, n;		/* hosts */
	const struct conf_node *switches;
};

/* A link and the job of circuits that it is of. */
struct build_link {
	int job;
	struct model_link link;
};

struct model_build {
	struct conf_reader *r;
	int64_t names_left;		/* of MODEL_MAX_NAMES */
	struct fabric *f;
	VEC(struct model_host) hosts;
	VEC(struct model_port) ports;
	VEC(struct model_device) devices;
	VEC(struct cube_entry) cubes;
	VEC(struct model_trunk) trunks;
	VEC(struct model_job) jobs;
	VEC(struct job_entry *) entries;	/* on switches, in the tree; those
						 * before n_settled have ports */
	size_t n_settled;
	VEC(struct build_link) links;
	struct strmap circuits;		/* by name: line of the file */
	int request_job;		/* circuits of the request at hand, -1: none yet */
	VEC(struct host_class) classes;
	VEC(int) class_of;		/* [hosts] */
	struct strmap addresses;	/* of devices, to their numbers */
	VEC(bool) device_unsure;	/* [devices] its size is not known */
	struct conf_place *tx_at, *rx_at;	/* [ports] the fibre's entry */
	bool requested;			/* jobs being read are not in the text */
	int64_t device_ports;
	bool hosts_unsure, devices_unsure, fibres_unsure;
	VEC(struct mark) marks;
};

/* Each reads its part of the root mapping's values. */
void build_hosts(struct model_build *b, const struct conf_value *root);
void build_devices(struct model_build *b, const struct conf_value *root);
void build_fibres(struct model_build *b, const struct conf_value *root);
void build_jobs(struct model_build *b, const struct conf_value *root);
/* After jobs: each group of circuits is one. */
void build_circuits(struct model_build *b, const struct conf_value *root);
/* Circuits of a mapping of the section, of requests too. */
void build_circuit(struct model_build *b, const struct conf_node *entry, int nth);
/* After jobs and circuits, and again after requests: the ports of those that were
 * read since, and then their topologies. */
void build_ports(struct model_build *b);
/* False, and reported, when there are as many jobs as may be. */
bool build_has_room(struct model_build *b, const struct conf_node *node, const char *object);
/* As `ports` of a job how many, not their names: digits, and in a request the ports that it has
 * behind them. Returns how many digits; 0: it is no number. */
int build_number_len(const char *text);
/* A mapping of the section of hosts. */
void build_host(struct model_build *b, const struct conf_node *entry, int nth);
/* Before the other hosts; and after the fibres, those that cubes name no entry of fibres for.
 * cube_entries.c */
void build_cubes(struct model_build *b, const struct conf_value *root);
void build_cube_fibres(struct model_build *b);
/* Fibres from names to as many others, as an entry of fibres has them. cabling.c */
void build_join(struct model_build *b, const char *object, const struct names *from,
		const struct names *to);
/* Reads the keys of a slice, or refuses them where the job is none; its topology is the fabric's
 * from here on. And, once its ports are known, whether they are where they can be joined.
 * cube_entries.c */
void build_slice(struct model_build *b, struct job_entry *e);
void build_slice_fibres(struct model_build *b, struct job_entry *e);
/* A node as the reader makes it, until the tree goes; a child behind those of a list or mapping.
 * request_entries.c */
struct conf_node *build_node(struct model_build *b, enum conf_node_kind kind, const char *text,
			     struct conf_place at);
void build_append(struct conf_node *parent, struct conf_node ***last, struct conf_node *child);
/* A mapping of the section of jobs. */
void build_job(struct model_build *b, const struct conf_node *entry, int nth);
/* Reads the keys of a training step, or refuses them where the job is of one collective. The step
 * goes with the fabric from here on. step_entries.c */
void build_step(struct model_build *b, struct job_entry *e);
/* Reads the topology of a job whose ports are known: the digraph of the expression, with
 * which the fabric goes from here on, and its canonical text; the size is compared with the
 * job's. */
void build_topology(struct model_build *b, struct job_entry *e);
/* After circuits: those that are requested, of the configuration. */
void build_requests(struct model_build *b);
/* After all jobs: the lists of their ports and links. */
void build_port_lists(struct model_build *b);
/* After fibres. */
void build_dead(struct model_build *b, const struct conf_value *root);
/* After devices: hosts that nothing can reach. */
void build_check_hosts(struct model_build *b);

/* Calls add for each entry of a list of mappings, until the reader stops.
 * nth counts from 1. Frees the work memory after each. */
void build_each(struct model_build *b, const struct conf_value *list,
		void (*add)(struct model_build *b, const struct conf_node *entry, int nth));

/* Expands a NAMES value into the arena and counts the names against the
 * budget; reports what is wrong. object and key are for messages. NULL on
 * failure. */
struct names *build_names(struct model_build *b, const char *object, const char *key,
			  const struct conf_node *node, struct conf_arena *arena, int max);

/* The texts of `label` and the like, as they are, one for each of n, into out, which live
 * as long as the fabric. False, and reported, when they are no labels. */
bool build_labels(struct model_build *b, const char *object, const char *key,
		  const struct conf_node *node, int n, char **out);

/* The same, and every name must be fit for a host or device. */
struct names *build_plain_names(struct model_build *b, const char *object, const char *key,
				const struct conf_node *node, struct conf_arena *arena, int max);

/* Reads a list of channels such as "0-7,16", each once, which lives as long
 * as the fabric; reports what is wrong and returns false. */
bool build_channels(struct model_build *b, const char *object, const struct conf_value *v,
		    int **list, int *n);

/* Reads the keys `inside` and `port-at` of an entry of hosts into the class. inside.c */
void build_inside(struct model_build *b, const char *object, const struct conf_value *v,
		  struct host_class *class);

/* " on line 7"; "" for what no line has. Returns buf. */
#define LINE_TEXT_MAX 32
const char *build_line(const char *word, struct conf_place at, char buf[LINE_TEXT_MAX]);

/* Whether one side of a port with a fibre is marked as dead. circuit_entries.c */
/* Circuits are all alike: WEFT_EUNSUPPORTED for arcs with more than two ends. */
int build_check_arcs(const struct topo *t, struct err *err);
bool build_is_dead(const struct model_build *b, int port, bool tx);

/* Finds the port of this name, or reports why there is none. cabling.c */
bool build_find_port(struct model_build *b, const char *object,
		     const struct name *name, struct port_end *out);

#define MORE_MAX 40

/* The same fault in many names of one list is one error, which names those that it has room for. */
struct tally {
	int n, n_named;			/* n_named: in others */
	const struct name *first;	/* borrowed */
	char others[200];
};

void tally_add(struct tally *t, const struct name *name);
/* "", or " (and h5, h6, and 20 more)", once all are added; in t. */
const char *tally_others(struct tally *t);
/* "", or " (and 3 more such)" for n = 4. Returns buf. */
const char *tally_more(int n, char buf[MORE_MAX]);

/* True when a host or device has this name already. */
bool build_is_taken(const struct model_build *b, const char *name);
void build_report_taken(struct model_build *b, const char *object, struct tally *taken);

/* Index in one of the fabric's maps, or -1. */
int build_find(const struct strmap *map, const char *name);

/* Maps name to index. */
void build_map(struct strmap *map, const char *name, int index);

/* Indices of the named hosts into hosts[names->n], in order and each once;
 * returns how many. Unknown names and doubles are reported (unknown ones not
 * when hosts could not be read completely) and clear *clean. */
int build_find_hosts(struct model_build *b, const char *object,
		     const struct names *names, int *hosts, bool *clean);

#endif
