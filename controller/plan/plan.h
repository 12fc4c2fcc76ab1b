/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Planning: job -> topology -> schedule -> circuits and channels -> device
 * steps. Pure: the same fabric, base and options give the same plan, byte for
 * byte. No clock, no files, no sockets.
 */
#ifndef WEFT_PLAN_PLAN_H
#define WEFT_PLAN_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "collective/make/make.h"
#include "collective/schedule/schedule.h"
#include "controller/model/model.h"
#include "drivers/optics/optics.h"
#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/base/vec.h"
#include "optree/optree.h"

/* Where a figure comes from. */
enum plan_source {
	PLAN_CONFIGURED,	/* the fabric file */
	PLAN_LEARNED,		/* the least that was measured */
	PLAN_FACTORY,		/* the maker measured it */
};

/* "configured", "learned", "factory". */
const char *plan_source_name(enum plan_source s);

/* What a circuit of a device loses when it is connected. */
struct plan_known_loss {
	struct optics_xc xc;
	int32_t mdb;
	enum plan_source source;
};

/* Power that arrives at an input of a device. */
struct plan_known_power {
	int in;
	int32_t mdbm;
};

/* What one device holds (or is meant to hold). Borrowed by plan_make. */
struct plan_light {
	bool known;			/* false: never read; taken as dark */
	int n_xcs;
	const struct optics_xc *xcs;	/* sorted */
	int n_dark;			/* of xcs, sorted: listed, and without
					 * light until they are made again */
	const struct optics_xc *dark;
	int n_no_light;			/* of xcs, sorted: without light by all that is
					 * known; those that are not dark too, to make
					 * again does not help */
	const struct optics_xc *no_light;
	int n_fixed;			/* of xcs, sorted: at a port that is worn,
					 * and is moved no more */
	const struct optics_xc *fixed;
	int n_pending;			/* intent: what open changes may have made, weft's
					 * own light too; sorted */
	const struct optics_xc *pending;
	const struct ring_programs *programs;	/* rings; NULL: none */
	uint64_t memory;		/* of it for programs, 0: unknown */
	int max_programs;		/* 0: unknown */
	bool overlap;			/* ring: as drv_caps.overlap */
	bool reload;			/* ring: light of its programs was lost
					 * that loading them again brings
					 * back */
	int n_bad_in, n_bad_out;	/* failed or disabled ports */
	const int *bad_in, *bad_out;
	int n_held_in, n_held_out;	/* drained ones, bad too where they are dark: what
					 * is lit there stays, and nothing is made */
	const int *held_in, *held_out;
	int n_evacuated_in, n_evacuated_out;	/* likewise, and what is lit moves away where it
						 * can */
	const int *evacuated_in, *evacuated_out;
	int n_dead;			/* ring: parts that failed, sorted */
	const struct ring_fault *dead;
	int n_lost;			/* ring: resonators of its programs that hold no wave */
	const struct ring_fault *lost;
	int n_losses, n_powers;		/* as far as they are known; sorted */
	const struct plan_known_loss *losses;
	const struct plan_known_power *powers;	/* measured recently */
};

/* SAFE: a port held by a circuit that weft did not make is not taken.
 * UPDATE: it is taken, and the plan names the circuit that is displaced. */
enum plan_mode { PLAN_SAFE, PLAN_UPDATE };

#define PLAN_PART_MAX (CONF_MAX_NAME + 16)	/* bytes of HOST.PORT, DEVICE.N */

/* What a plan is made for. */
enum plan_aim {
	PLAN_REPAIR,		/* what was applied, by the fewest circuits */
	PLAN_OPTIMISE,		/* topologies are chosen again, where that pays back within
				 * fabric->changes.pays_back_ns */
};

/* How long things were seen to take to come back, which goes before what the
 * fabric says; 0: not known. */
struct plan_times {
	int n_ports, n_devices;		/* of the fabric, or 0: nothing known */
	const int64_t *port_ns;		/* light to link */
	const int64_t *device_ns;	/* light moving: a batch of a switch, a
					 * move of a panel */
};

/* Whose times an expectation is made of. */
enum plan_times_of { PLAN_TIMES_CONFIGURED, PLAN_TIMES_LEARNED,
		     PLAN_TIMES_SOME_LEARNED };

/* "configured", "learned" or "some learned". */
const char *plan_times_name(enum plan_times_of of);

/* What so many moves of a panel take, one after the other; 0 of a device that is none. */
int64_t plan_moves_ns(const struct model_fabric *f, const struct plan_times *known, int device,
		      int n);

/* What of a device's intent is to be brought back. */
struct plan_restore {
	int device;
	int n_xcs;
	const struct optics_xc *xcs;	/* sorted */
	bool program;			/* rings */
};

/* What a plan starts from. Arrays are indexed like fabric->devices. */
struct plan_base {
	char state_uuid[37];		/* of the store, "" when offline */
	int64_t generation;
	enum plan_mode mode;
	enum plan_aim aim;
	char evacuated[PLAN_PART_MAX];	/* what `observed` has such ports of, "": nothing; for
					 * the plan's file */
	const char *topologies;		/* chosen for the jobs as applied, as plan->topologies
					 * said then; NULL: not known */
	const bool *settled;		/* [n_jobs] of PLAN_OPTIMISE: these keep their topology;
					 * NULL: none */
	bool no_floor;			/* fabric->changes' need not be kept */
	bool is_rollback;			/* to what was: receivers that will get
					 * too little do not stand against it */
	const struct plan_light *intent;	/* committed; NULL: nothing */
	const struct plan_light *observed;	/* as read; NULL: all dark */
	/* The only jobs whose light may move, and a NULL behind them: the ports of all
	 * others stay as they are, dead circuits and all. NULL: every job's may. */
	const char *const *only;
	bool partial;		/* and where a part of it cannot be made, the rest is */
	/* What a plan of the step of the first of them said of it, by workload_to_json: used again
	 * where the step and what it rests on are the same. NULL, "": nothing is known. */
	const char *step;
	/* The light is that of `intent`: jobs on rings do without what they
	 * did without when that was made, not what has failed since. */
	bool from_committed;
	struct plan_times times;
	/* Not the fabric's jobs, but this of the intent: circuits that are not
	 * there are made, what holds their ports is taken away as `mode` says,
	 * and nothing else moves. The plan has no jobs. NULL: not. */
	const struct plan_restore *restore;
	int n_restore;
};

/* One lit arc of a job's topology on a switch; an arc over several switches
 * has a circuit on each. */
struct plan_circuit {
	int arc;		/* of the job's digraph, coll_physical() of its
				 * schedule */
	int device;
	struct optics_xc xc;
	int tx_port, rx_port;	/* host ports (fabric->ports) */
	int channel;		/* that tx_port is to send, -1: as it is */
	bool moved;		/* not connected in `observed`, and made */
	bool dark;		/* it has no light, and gets none by the plan */
};

/* A fibre or a circuit that light passes. */
struct plan_element {
	int device;		/* fabric->devices, -1: a fibre */
	struct optics_xc xc;	/* the circuit on it */
	int32_t loss_mdb;	/* under 0: gained */
	enum plan_source source;
};

/* A lightpath with a circuit that the plan makes, and what is to be expected
 * of its power. */
struct plan_path {
	int arc;			/* of the job's digraph */
	int tx_port, rx_port;
	int n_elements;
	struct plan_element *elements;	/* from tx_port on; owned */
	int64_t loss_mdb;		/* of all of them */
	bool amplified;
	/* What arrives at the first switch: as measured, and as the host's
	 * launch and the fibre say. */
	bool has_measured, has_launch;
	int32_t measured_mdbm, launched_mdbm;
	bool is_dark;			/* measured, and no light: that tells
					 * nothing of light to come */
	/* At the receiver, by both: the worst either way. */
	bool has_power;
	int64_t min_mdbm, max_mdbm;
};

/* No light is less than this. */
#define PLAN_DARK_MDBM (-40000)
/* Launch and measurement may differ by as much before it is worth a word. */
#define PLAN_DOUBT_MDB 3000

/* What of its ring a job has. */
struct plan_share {
	struct ring_window window;
	int32_t *at;		/* [ranks] position on the ring; owned */
};

/* What is left of a job when some of its light is dead. */
struct plan_job_loss {
	int dead;			/* 0: of a ring nothing failed, and the job's program does
					 * not play. Circuits: gone from their device, or
					 * at a failed or disabled port; of a
					 * ring its parts that the job needs */
	int device;			/* of the first of them */
	struct optics_xc xc;
	/* Rings: the first of them in words, "" on switches. The schedule has
	 * light only when its program is loaded: plan_make gives it. */
	char part[RING_FAULT_TEXT];
	int arcs, dead_arcs;		/* of the job's digraph; without light */
	struct coll_sched *sched;	/* on the arcs that have light,
					 * verified; NULL: there is none, as
					 * of circuits */
	struct coll_report report;
	int64_t time_ns, bound_ns;
	double rate;			/* part of the rate that is left: load
					 * of the fullest arcs before over
					 * now, on rings time before over now;
					 * 0 without a schedule. Of circuits the
					 * part that has light */
	struct err why;			/* there is none */
};

/* A topology that `topology: auto` looked at. */
struct plan_topology {
	char *expr;		/* owned */
	int steps;
	int64_t num, den;	/* T_B in M/B of all ports that ranks have */
	int ports;		/* that it uses */
	int64_t time_ns;
	struct err refused;	/* why the switches cannot be wired so; no code: not
				 * known */
};

/* A topology that is the fastest for sizes from this one on. */
struct plan_range {
	char *expr;		/* owned */
	int64_t from_bytes;
};

/* Why a topology was taken. */
struct plan_choice {
	int ports;		/* of a rank, the fewest */
	bool bidirectional;	/* every arc needs its reverse */
	/* By time: those refused, the one taken, and the next best where
	 * there is one. */
	VEC(struct plan_topology) considered;
	int steps_bound;	/* coll_min_hops; 0: not known */
	VEC(struct plan_range) ranges;	/* ascending; empty: not known */
};

struct mcf;

struct plan_job {
	int job;			/* fabric->jobs */
	const char *algorithm;		/* of rings "composed", "grouped", "optree",
					 * else one of coll_algorithm() */
	struct coll_made_torus torus;	/* of these */
	char *topology;			/* expression used, "" on rings */
	struct plan_choice *choice;	/* NULL: it was given */
	struct coll_sched *sched;	/* verified */
	struct coll_report report;
	int64_t unit_bps;		/* of its digraph's capacities, with
					 * ranks inside hosts: sched is embedded
					 * then; 0: the slowest port's rate */
	int64_t time_ns, bound_ns;
	double gap;			/* time / bound - 1 */
	bool is_ring;
	bool kept;			/* not of base->only; or, on a ring, it
					 * cannot be repaired */
	struct plan_share share;	/* rings */
	struct optree_plan ring;	/* ring.sched == sched (not owned) */
	int n_without;			/* parts of the ring that have failed
					 * and that it does without; owned */
	struct ring_fault *without;
	int64_t fault_free_ns;		/* what it would take with them; 0: it
					 * has all */
	int n_circuits;
	struct plan_circuit *circuits;	/* switches; sorted by device, in */
	int n_backups;
	struct plan_circuit *backups;	/* to be made where trunks fail, lightpath by
					 * lightpath; nothing else is in their way */
	int n_protected, n_unprotected;	/* lightpaths over trunks, where the job asks for backups */
	int n_moves;			/* of the circuits: not there yet */
	int moves_bound;		/* with this topology on these ranks no
					 * plan moves fewer; -1: not known, as
					 * over fibres between switches */
	int n_paths;
	struct plan_path *paths;	/* switches: those that are new, by arc */
	struct workload_plan *step;	/* of a training step, whose schedule above has
					 * no transfers; NULL: one collective */
	int light;			/* of step, that the circuits are of */
	struct mcf *flow;		/* of an all-to-all, to go on from;
					 * NULL: none */
	struct plan_job_loss *loss;		/* by its dark circuits, or of a ring by
					 * plan_degraded; NULL: all its light is there */
};

/* What happens on one device. Deletes before adds. */
struct plan_device {
	int device;			/* fabric->devices */
	int n_del, n_add, n_keep, n_external, n_displaced;
	struct optics_xc *del;		/* sorted */
	struct optics_xc *add;
	struct optics_xc *external;	/* there, not ours, left alone */
	struct optics_xc *displaced;	/* external ones that are in del */
	int n_want;
	struct optics_xc *want;		/* intent after this plan */
	int n_leave;
	struct optics_xc *leave;		/* of want, dead or gone, and of kept
					 * jobs: neither made nor looked at */
	bool has_program;		/* rings: programs are wanted */
	struct ring_programs programs;	/* wanted, one a job */
	bool load_program;		/* they differ from what is loaded */
	bool had_program;
	struct ring_programs old_programs;	/* for undo */
	int64_t switch_ns;		/* expected time of light moving */
	int64_t down_ns;		/* plus transceivers coming back */
	enum plan_times_of downtime_source;
	int *del_stage, *add_stage;	/* [n_del], [n_add] plan->stages */
	int load_stage;			/* of load_program */
};

/* A part of the plan that is carried out and verified as a whole before the
 * next one begins. */
struct plan_stage {
	const char *domain;		/* failure domain; fabric's */
	int n_del, n_add, n_loads;
	/* Of the hosts that the stage takes light from, the one that is left
	 * with the least of its capacity, one way, until the adds are made:
	 * `bps` of the `of_bps` that it has before and after the plan. -1:
	 * none. */
	int host;
	bool is_rx;
	int64_t bps, of_bps;
};

struct plan {
	const struct model_fabric *fabric;	/* borrowed: outlives */
	char state_uuid[37];
	int64_t generation;		/* made from this generation */
	enum plan_mode mode;
	enum plan_aim aim;
	char evacuated[PLAN_PART_MAX];
	char *topologies;		/* of `topology: auto`, a line each: what is applied
					 * stays, also when other ports work */
	bool is_rollback;			/* as in its base */
	char digest[65];		/* SHA-256 hex over every device's
					 * steps: equal digests, equal work */
	int n_jobs;
	struct plan_job *jobs;
	int n_devices;			/* every device of the fabric, in the
					 * order of change: by domain, then as
					 * in the file */
	struct plan_device *devices;
	int n_stages;
	struct plan_stage *stages;	/* in the order of change: one a domain
					 * with something to do, or more where
					 * fabric->changes has a floor */
	int n_add, n_del, n_keep, n_loads;	/* totals */
	int64_t down_ns;		/* longest expected outage of a port */
	enum plan_times_of downtime_source;
	int64_t *port_ns, *device_ns;	/* times that were expected, of ports
					 * and devices of the fabric; NULL: as
					 * it says */
	int n_warnings;
	char **warnings;		/* sentences for the operator */
	bool gains_known;		/* plan_gains() was asked */
	int n_gains;
	struct plan_gain *gains;	/* of all jobs, then of those that end */
};

/* How the record of a job's light begins in plan->topologies, up to which light it is, for free();
 * NULL: its light stays still. */
char *plan_light_record(const struct plan *p, int job);
/* Makes the light of a step's collective the one that its job has, in plan_base.topologies, which
 * is replaced. WEFT_ENOTFOUND: no such job or collective; WEFT_EINVAL: its light stays still.
 * O(text). */
int plan_set_light(const struct model_fabric *f, const char *job, const char *collective,
		   char **topologies, struct err *err);

/* What stays lit at the part that is to be emptied (base->evacuated): circuits of weft's, and
 * jobs on rings, whose light has no other way. `base` is what the plan was made from; 0
 * without such a part. O(circuits * ports of the part). */
int plan_count_left(const struct plan *p, const struct plan_base *base);

/* The collective by name, or "circuits". */
const char *plan_collective_name(const struct model_job *job);

/* Whether a port (fabric->ports), or one side of it, is the job's. Every loop over the
 * ports of a host asks this: others may be another job's. O(1). */
bool plan_has_port(const struct model_fabric *f, const struct model_job *job, int port);

/*
 * The digraph of a job's ranks: what is inside its hosts (model_inside()), and an
 * arc from port to port for every circuit of its topology, as planned with all
 * switches dark and no other job. Terminals are the ranks, host by host;
 * memories and switches follow, host by host. Capacities are bits a second over
 * *unit_bps, the largest unit that makes all of them whole. topo_free() *out.
 * plan_make() embeds the job's schedule in it, where hosts have ranks inside.
 * WEFT_EUNSUPPORTED for jobs on rings and `topology: auto` of hosts with ranks
 * inside, else errors of plan_make.
 */
int plan_job_topo(const struct model_fabric *fabric, int job, struct topo **out,
		  int64_t *unit_bps, struct err *err);

/*
 * Plans all jobs of the fabric from `base` (NULL: offline, all dark).
 * WEFT_EINVAL / WEFT_EINFEASIBLE name the job (with its place in the file)
 * and the fact: too few ports, ports on the wrong switches, reach, a busy
 * port, a failed port, or the jobs that have no light together over fibres
 * between switches and what proves it. Moves few circuits for the topology and ranks given, and
 * says how far that is from the fewest (moves_bound): none for one switch or
 * two; for more by an integer program where it is small enough.
 *
 * A job as it was applied keeps its topology and its ranks, whatever works now. Where not all
 * of its light can be brought back that is made which can be, at spare ports too, and the rest
 * stays wanted and dark (repair.c); a warning says why. On rings it then stays as it is, when
 * there is something to do for others.
 *
 * Stages keep the floor of fabric->changes (stages.c); WEFT_EINFEASIBLE names
 * the host or pair for which that cannot be done.
 */
int plan_make(const struct model_fabric *fabric, const struct plan_base *base,
	      struct plan **out, struct err *err);
void plan_free(struct plan *p);
/* The schedule of a job, that on what remains if it has a loss; the caller's from now
 * on, for coll_free, and the plan is without. NULL: there is none. O(1). */
struct coll_sched *plan_take_schedule(struct plan_job *pj);

/*
 * The plan of a fabric as it was applied (its light is that of `base`'s
 * intent), and for every job whose light is partly dead by what
 * was observed the schedule on what remains: all-to-all by the flow that goes
 * on from that of the whole digraph (mcf_without), the others breadth first.
 * On a ring that is the plan that does without what has failed: plan_make
 * gives the same, and its program is to be loaded.
 * Devices that were never read, and circuits that were never made, count as
 * alive. Where the intent is of another configuration nothing is lost. A job
 * that is cut off has a loss without a schedule, and is no error. The errors
 * of plan_make.
 */
int plan_degraded(const struct model_fabric *fabric, const struct plan_base *base,
		  struct plan **out, struct err *err);

/* True when a circuit that was made is there no more, or has no light by what is known of it
 * (plan_light.no_light). O(log circuits). */
bool plan_has_died(const struct plan_light *seen, struct optics_xc xc);

/* A number that tells one set of dead circuits of weft's from another, in
 * plan_degraded' sense; 0: all are alive. base has both arrays. */
uint64_t plan_failed_circuits(const struct model_fabric *fabric, const struct plan_base *base);
/* How much of a job's program on a ring has light, a rough share: 1 when all that it needs works or
 * nothing is known, 0 when it is not loaded. O(faults). */
double plan_program_share(const struct model_device *ring, const struct plan_light *intent,
			  const struct plan_light *seen, const char *job);
/* And one set of failed or disabled ports from another; 0: there are none. */
uint64_t plan_failed_ports(const struct model_fabric *fabric, const struct plan_base *base);

/* Light from port to port that a stage takes away. */
struct plan_outage {
	int stage;
	int tx_port, rx_port;
	int back_stage;		/* once it is done the receiver has light
				 * again, of whatever sender; -1: not by this
				 * plan */
	int64_t since_ns;	/* the first stage began; expected */
	int64_t down_ns;	/* of the receiver: switching, and coming back;
				 * -1: until another plan */
};

/* Outages at the ports of one host, or of the receivers of one job. */
struct plan_downtime {
	int links;		/* outages that concern it */
	int64_t down_ns;	/* the longest of those that end */
	int64_t stalled_ns;	/* of a job: how long any of its receivers is
				 * dark, over all stages, and then until it has all
				 * its new light */
	bool ends;		/* some do not */
};

/* All outages of a plan, and what they mean for hosts and jobs. Owned. */
struct plan_outages {
	int n;
	struct plan_outage *v;		/* in the order of change */
	struct plan_downtime *hosts;	/* [fabric->n_hosts] at either end */
	struct plan_downtime *jobs;	/* [plan->n_jobs] whose receivers they
					 * are; of a ring's, whether its program
					 * is replaced */
};

/* What goes dark while the plan is carried out, and how long, as far as the
 * times of devices and transceivers are known. *out is to be freed by
 * plan_outages_fini (zeroed is fine). O(stages * (circuits + ports * hops * log
 * circuits)). outage.c */
void plan_outages(const struct plan *p, struct plan_outages *out);
void plan_outages_fini(struct plan_outages *o);

/* A job as it is before a plan. Borrowed. */
struct plan_before {
	const char *name, *collective;
	int nodes;
	int64_t size_bytes;
	int64_t time_ns;	/* of a collective with what is lost now; 0: it
				 * cannot run */
	int64_t whole_ns;	/* with nothing lost */
};

enum plan_effect {
	PLAN_STAYS,		/* its light and its schedule */
	PLAN_CHANGES,
	PLAN_BEGINS,		/* or another work under the same name */
	PLAN_ENDS,
};

/* What a plan means for one job. Times are of one collective. */
struct plan_gain {
	char *name;			/* owned */
	int job;			/* plan->jobs, -1: it ends */
	enum plan_effect effect;
	int64_t size_bytes;
	int64_t before_ns, before_whole_ns;	/* as in plan_before; 0: not there,
						 * or it cannot run */
	int64_t after_ns, after_whole_ns;	/* 0: ends */
	int64_t down_ns;		/* plan_downtime.stalled_ns */
};

/* A job of plan_degraded's, as what it is now. O(1). */
struct plan_before plan_before_of(const struct plan *now, int job);
/*
 * Compares each job with what it was before, by name: p->gains. Jobs that are
 * the same work (collective, ranks, size) change when their circuits, program,
 * schedule or times do; others begin or end. Warns of the jobs that are
 * interrupted and take no less time afterwards, when no job begins, ends or
 * gets faster by the plan: it is not worth its downtime. Once a plan; a plan
 * that brings circuits back (plan_base.restore) has no jobs, and no gains.
 * O(plan_outages + jobs^2). gains.c
 */
void plan_gains(struct plan *p, const struct plan_before *before, int n);
/*
 * After how many collectives the time that each of them saves has paid for the
 * outage: the least k with k * (before - after) >= down. 0: nothing is to be
 * paid back, as there is no outage, or nothing ran before. -1: never, or there
 * is nothing to compare. Exact. O(1).
 */
int64_t plan_payback(const struct plan_gain *g);
/*
 * plan_make for PLAN_OPTIMISE, with its gains: a job whose outage is not paid back in time by the
 * collectives that it runs now keeps its topology, and the others are planned again. now: the
 * plan of what was applied (plan_degraded), or NULL: nothing to compare with, and all are chosen
 * again. The errors of plan_make. gains.c
 */
int plan_optimise(const struct model_fabric *fabric, const struct plan_base *base,
		  const struct plan *now, struct plan **out, struct err *err);

/* Checks the power of the plan's new lightpaths once more, by what is known of
 * the devices now (base->observed); their figures become those of now.
 * WEFT_EINFEASIBLE as in plan_make. power.c */
int plan_recheck_power(struct plan *p, const struct plan_base *base, struct err *err);
/* Whether what is measured of a lightpath is far from what its launch says, in
 * a sentence. power.c */
#define PLAN_DOUBT_TEXT 320
bool plan_power_doubt(const struct model_fabric *f, const struct plan_path *p,
		      char *text, size_t size);

/* True when no device has anything to do. */
bool plan_is_empty(const struct plan *p);

#define PLAN_FORMAT "weft-plan-1"	/* of plan files, at their beginning */
/* A plan file: JSON with state, generation, configuration (the whole text, its
 * hash, and the jobs requested on it) and the digest of its steps. Applying it
 * plans again from the configuration and refuses unless the digest is the
 * same. */
struct plan_file {
	char state_uuid[37];	/* of the store, "" without one */
	int64_t generation;	/* of the store, that it was made from */
	enum plan_mode mode;
	enum plan_aim aim;
	char evacuated[PLAN_PART_MAX];
	char digest[65];	/* plan.digest */
	struct model_config config;
};

/* Appends. O(text of the configuration). */
void plan_file_write(const struct plan *p, struct buf *out);
/* WEFT_EINVAL names the field (or line and column of broken JSON). */
int plan_file_read(const void *data, size_t len, struct plan_file *out, struct err *err);
void plan_file_fini(struct plan_file *f);
/* Appends a requested job as a JSON object on one line; keys without a value
 * are left out. */
void plan_request_json(const struct model_request *r, struct buf *out);
/* Plan files start like this; YAML never does. */
bool plan_file_is(const void *data, size_t len);

/* ---- placement (place.c) ---- */

/* Which hosts a requested job gets. Deterministic: the same fabric, hosts and
 * demand give the same hosts. */
struct place_request {
	int n;			/* hosts; 0: of `ranks` */
	int ranks;		/* of all hosts together, which have equally many; 0: any */
	int ring;		/* device, or -1: on switches */
	int min_ports;		/* of each host, with fibres both ways */
	const char *topology;	/* that hosts must have the ports for; NULL, "" or "auto": any */
	const int *hosts;	/* [n] these and no others, or NULL: any */
	/* Of a slice, as in model_job; shape[0] 0: none. n and ranks mean nothing then. */
	int shape[3], spares;
	bool is_twisted;
	const struct plan_base *base;	/* light that is there and may be of use; NULL: none */
};

/* True for hosts of as many ranks whose ports go to the same devices, one by one. */
bool place_alike(const struct model_fabric *f, int a, int b);

/*
 * Chooses demand->n hosts among those that are usable[host] (NULL: all) and,
 * on switches, not in `busy` (NULL: none); out[*n] in rank order, free().
 *
 * Of a slice they are cubes where the fewest circuits are to be made, in the order of places,
 * and its spares.
 *
 * On switches they have equally many ranks inside: as few as there are ever enough hosts of,
 * where hosts are counted, and as many, where ranks are. Of these, hosts whose ports go to the same
 * devices in the same way are a group; the smallest group that is large enough is taken, so that
 * large ones stay whole, and of equal ones the first. When no group is large enough,
 * hosts are taken group by group, the largest first. On a ring they are the
 * stretch of neighbours that leaves the fewest unused nodes between them.
 *
 * WEFT_EINFEASIBLE: too few hosts are free now, and the text says how many;
 * WEFT_EINVAL: never enough, also if all were free. O(hosts log hosts).
 */
int place_job(const struct model_fabric *f, const struct place_request *demand, const bool *usable,
	      const bool *busy, int **out, int *n, struct err *err);

/* The cubes of a slice among n that may be had: those of its shape in the order of places, so that
 * the fewest circuits are to be made, and its spares; out: all of them. Costs as of
 * plan_make. slices.c */
void place_slice(const struct model_fabric *f, const struct place_request *demand,
		 const int twist[3], const int *cubes, int n, int *out);

/*
 * Hosts for a job whose hosts now[demand->n] are not all usable: each that is
 * stays at its rank, each other gets a free one (usable and not busy) in its
 * place: with its ports to the same devices if there is one, else with at
 * least as many ports; of equal ones the first.
 * WEFT_EINFEASIBLE names the host that has no spare. O(n hosts).
 */
int place_spare(const struct model_fabric *f, const struct place_request *demand, const int *now,
		const bool *usable, const bool *busy, int *out, struct err *err);

/* ---- paths of hosts over the light of a plan (host_paths.c, stage_paths.c) ---- */

/* What the times of a job on switches go by, but for changes of light: an arc of capacity 1 has
 * the rate of the slowest port, and ranks forward where all hosts say so. O(ports). */
struct coll_cost plan_job_cost(const struct model_fabric *f, const struct plan_job *pj);

/* A job arc from one host port to another. */
struct plan_arc {
	int tx_port, rx_port;
};

/* The arcs of all jobs on switches, sorted, none twice. *arcs: free(). */
void plan_arcs(const struct plan *p, struct plan_arc **arcs, int *n);

/* The path to an address of a host: out by tx_port, which rx_port receives. */
struct plan_host_path {
	int to, to_address;
	int via, via_address;	/* the host of rx_port, by an address of its that leaves by
				 * tx_port as well */
	int tx_port, rx_port;
};

/*
 * Addresses of hosts that traffic should go to: 1, or with up to m > 1 parallel arcs from
 * one host to another 2 m of them, at most PLAN_MAX_ADDRESSES; where jobs share a host at
 * least those of the first port of each. A host has two for each of
 * its first ports, 2 k and 2 k + 1, and to these leads the k-th of parallel arcs. Two, for
 * Open MPI takes its connections to a host in turn and passes over every second one (of 4.1,
 * pml_ob1_isend.c: mca_pml_ob1_send_inline). O(arcs x degree).
 */
#define PLAN_MAX_ADDRESSES 16
int plan_host_addresses(const struct model_fabric *f, const struct plan_arc *arcs, int n_arcs);

/* The paths of one host to all addresses that it reaches: the fewest arcs, then the
 * lowest ports, of parallel arcs each in turn; by address, then host. Where jobs share a host
 * paths keep to arcs of the job that the address's port is of. None lead over circuits.
 * *paths: free(). O(jobs of the host x hosts x arcs). */
void plan_host_paths(const struct model_fabric *f, const struct plan_arc *arcs, int n_arcs,
		     int host, struct plan_host_path **paths, int *n);

/* The port that a port's light reaches through these circuits (one
 * plan_light a device) and the fibres as written, or -1. O(log circuits +
 * trunks) a switch on the path, O(circuits) for any-to-any ones. */
int plan_trace(const struct model_fabric *f, const struct plan_light *light, int tx_port);

/* A circuit that light goes through. */
struct plan_hop {
	int device;
	struct optics_xc xc;
};

/* The same with the circuits on the path, in order, put behind the n of *hops,
 * which grows (realloc; the caller's, also on error). WEFT_ENOTFOUND: the
 * light reaches no port. */
int plan_trace_hops(const struct model_fabric *f, const struct plan_light *light, int tx_port,
		    struct plan_hop **hops, int *n, int *rx_port, struct err *err);

/*
 * Light from port to port that a stage of the plan takes away before it makes
 * its own: what is sent from these ports must take another path, or wait, from
 * the stage's first delete on. Sorted. By the circuits that the plan goes by;
 * programs of rings carry no traffic of ports. *arcs: free().
 * O(circuits + ports x hops x log circuits), on any-to-any switches without
 * the logarithm.
 */
void plan_stage_removes(const struct plan *p, int stage, struct plan_arc **arcs, int *n);
/* Light that is there once the stage is done, and was not before: all its
 * circuits are there then, whatever stage made the others. The same
 * otherwise. */
void plan_stage_adds(const struct plan *p, int stage, struct plan_arc **arcs, int *n);
/* The circuits of each of these arcs, which are there once the stage is done:
 * those of arc i are (*hops)[(*first)[i]] to before (*first)[i + 1]. *hops,
 * *first: free(). */
int plan_arc_hops(const struct plan *p, int stage, const struct plan_arc *arcs, int n_arcs,
		  struct plan_hop **hops, int **first, struct err *err);
/* All light from port to port that is there once stages up to and with this
 * one are done; -1: before the first. The same otherwise. */
void plan_arcs_after(const struct plan *p, int stage, struct plan_arc **arcs, int *n);

/* An address of a host, network byte order: of the first host 10.119.0.1, its next
 * 10.120.0.1. */
uint32_t plan_host_address(int host, int which);

#endif
