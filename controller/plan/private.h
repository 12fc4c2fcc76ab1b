/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the files of the plan room.
 *
 * A plan is made in this order: parts that failed (admin_down.c), shares of
 * rings (rings/ring_partition.c), each job on its ring (rings/ring_job.c,
 * ring_faults.c) or on switches (switches/switch_job.c, with what jobs that are
 * alike share in shared_topologies.c, then circuits.c), light
 * over the fibres between switches for all jobs at once (switches/trunk_light.c),
 * power (power.c), the steps of devices (device_diff.c), stages (stages.c,
 * stage_paths.c), times (outage.c). What all of them read is in plan_value.c.
 */
#ifndef WEFT_PLAN_PRIVATE_H
#define WEFT_PLAN_PRIVATE_H

#include "collective/finder/finder.h"
#include "collective/make/make.h"
#include "controller/plan/plan.h"
#include "rwa/mesh/mesh.h"

#define PLAN_SHARED_CHOICES 8	/* kinds of jobs whose topologies are kept during a plan */

/* What is already spoken for while jobs are planned one after the other. No two
 * jobs have the same port (plan_has_port), so that ports are never in dispute. */
struct plan_ctx {
	const struct model_fabric *fabric;
	const struct plan_base *base;	/* never NULL; arrays may be */
	const struct plan_base *made;	/* as though all that was made were there */
	const struct plan_base *usable;	/* likewise, without what the file marks */
	bool *trunk_taken;		/* [n_trunks] by kept jobs */
	bool *tx_shut, *rx_shut;	/* [n_ports] drained, and their light of now is not what
					 * a plan over trunks would have there */
	const bool *stays;		/* [n_jobs] not all of it can be brought back:
					 * circuit by circuit; of a ring nothing.
					 * NULL: none */
	int failed;			/* the job that there is no plan for, -1 */
	int fixed_device;		/* where a circuit would have to go that is
					 * moved no more, -1: nowhere */
	struct optics_xc fixed;		/* that one */
	/* Jobs with a schedule whose light is to be found over trunks, together. */
	VEC(struct plan_job *) trunk_jobs;
	struct plan_choices *choices[PLAN_SHARED_CHOICES];	/* owned */
	int next_choices;		/* the next of these to be replaced */
};

/* A context in which nothing is taken. plan_value.c */
void plan_ctx_init(struct plan_ctx *ctx, const struct model_fabric *fabric,
		   const struct plan_base *base);
void plan_ctx_fini(struct plan_ctx *ctx);
/* Puts the job before the error, with its place in the file, and remembers it. Returns the
 * error's code. plan_value.c */
int plan_in_job(struct plan_ctx *ctx, const struct plan_job *pj, struct err *err);
/* Frees what a planned job owns. plan_value.c */
void plan_job_fini(struct plan_job *pj);

/* What a plan starts from, with the parts that the fabric marks as dead among
 * those that devices report; of what was made, ports that it has are as they were
 * then. base lives as long as the one given.
 * admin_down.c */
struct plan_admin_down {
	struct plan_base base;
	const struct model_fabric *fabric;
	struct plan_light *seen;	/* NULL: nothing is marked */
};

void plan_admin_down_init(struct plan_admin_down *m, const struct model_fabric *f,
			  const struct plan_base *base);
void plan_admin_down_fini(struct plan_admin_down *m);
bool plan_has_admin_down(const struct model_fabric *f);

/* The observed and intended light of a device; both NULL-safe. */
const struct plan_light *plan_observed(const struct plan_ctx *ctx, int device);
const struct plan_light *plan_intent(const struct plan_ctx *ctx, int device);

/* True when the sorted list holds xc. O(log n). */
bool plan_light_has(const struct plan_light *light, struct optics_xc xc);
/* The same, and not dark. */
bool plan_is_lit(const struct plan_light *light, struct optics_xc xc);

/* Writes p->topologies; a plan without jobs passes on those of its base. plan_value.c */
void plan_put_topologies(const struct plan_base *base, struct plan *p);
/* The topology that was chosen for the job when it was applied, for the same work, with at most
 * *ports ports of each host; the caller's. NULL: not known. O(text). plan_value.c */
char *plan_kept_topology(const struct plan_ctx *ctx, int job, int *ports);

/* A port where a circuit may be, or stay: neither failed nor evacuated. plan_value.c */
bool plan_works(const struct plan_light *seen, bool in, int port);
/* Whether an end of the circuit is at such a port, or at a failed one; either: an
 * input is an output as well. plan_value.c */
bool plan_must_go(const struct plan_light *seen, bool either, struct optics_xc xc);
/* Names the jobs on rings whose light cannot leave the part that is to be emptied.
 * drained_light.c */
void plan_warn_left(struct plan *p);
/* A port where a circuit may be made: neither failed nor drained; either: an input is
 * an output as well. O(ports that are). plan_value.c */
bool plan_may_light(const struct plan_light *seen, bool either, bool in, int port);

/* A circuit that weft means to be there, or was to make in a change that is open. */
bool plan_is_own(const struct plan_ctx *ctx, int device, struct optics_xc xc);
/* A circuit that is observed and not weft's own. */
bool plan_is_external(const struct plan_ctx *ctx, int device, struct optics_xc xc);

/* Gives each job on a ring its positions and channels: asked for by number,
 * or as many as it asks for where it has them already, else the first that
 * are free. WEFT_EINVAL and WEFT_EINFEASIBLE name both jobs that want the
 * same, or all that have the channels. ring_partition.c */
int plan_shares(struct plan_ctx *ctx, struct plan *p, struct err *err);
struct ring_geometry plan_ring_geometry(const struct model_device *dev);

/*
 * Plans a job on a ring: schedule, light, times; where a part that has failed
 * is in its way, without those parts. ring_job.c
 */
int plan_ring_job(struct plan_ctx *ctx, struct plan_job *pj, struct err *err);
/* The same, of what has failed as given, sorted. */
int plan_ring_without(const struct plan_ctx *ctx, struct plan_job *pj,
		      const struct ring_fault *dead, int n_dead, struct err *err);

/*
 * A plan of the job, not yet expanded, that does without the parts given: on
 * the channels that are left, round the ring on the fibres that are whole or on
 * a line that begins behind a break, whichever is fastest.
 * inout: the params of the whole, then of the plan; *fibres is the caller's,
 * params->light. *first: the rank that is the plan's node 0. WEFT_EINFEASIBLE,
 * WEFT_EUNSUPPORTED name what has failed. ring_faults.c
 */
int plan_ring_rest(const struct plan_ctx *ctx, struct plan_job *pj, const struct ring_fault *dead,
		   int n_dead, struct optree_params *inout, struct optree_fibre **fibres,
		   int32_t **at, int *first, struct err *err);

/* How many of the parts (sorted) the light of the job's schedule needs; *which
 * the first of them. O(lights * (log parts + spans)). ring_faults.c */
int plan_ring_needs(const struct plan_ctx *ctx, const struct plan_job *pj,
		    const struct ring_fault *dead, int n_dead, int *which);
/* Where on the ring the light of the job's schedule begins or ends at a node of its digraph: of
 * hosts with ranks inside these nodes are the last (plan_ring_digraph). */
static inline int plan_ring_node(const struct model_job *job, const struct plan_job *pj, int node)
{
	return pj->share.at[node - (topo_n(coll_physical(pj->sched)) - job->n_hosts)];
}

/*
 * Hosts with ranks inside: pj->ring, planned and written out for p as though each host were one
 * rank, becomes that of their ranks, with its time. ring_servers.c has how. WEFT_EUNSUPPORTED,
 * WEFT_ELIMIT: too many transfers; errors of coll_make.
 */
int plan_ring_servers(const struct plan_ctx *ctx, struct plan_job *pj,
		      const struct optree_params *p, struct err *err);

/*
 * The insides of the hosts of a job on a ring, kind by kind; behind them a switch for each host,
 * its node of the ring, to which its ranks are joined, each as wide as so many lights of
 * channel_bps; and an arc for each of outer, in their order, as wide as one. The arcs inside come
 * first at their nodes, in their order, and then those of the ranks in theirs. plan_digraph_free
 * *out, also after an error. job_digraph.c
 */
struct job_digraph;
int plan_ring_digraph(const struct model_fabric *f, const struct plan_job *pj,
		      const struct topo *outer, int64_t channel_bps, int lights,
		      struct job_digraph **out, struct err *err);
void plan_digraph_free(struct job_digraph *d);
/* It, and what of a rate its capacities count. */
const struct topo *plan_digraph_topo(const struct job_digraph *d, int64_t *unit_bps);
/* What is inside the i-th host of the job, and the number of a node of it, or (-1) of its switch on
 * the ring. */
const struct topo *plan_digraph_inside(const struct job_digraph *d, int i);
int plan_digraph_node(const struct job_digraph *d, int i, int node);
/* Names a schedule, and where it is embedded, for people. job_digraph.c */
void plan_name_schedule(struct coll_sched *s, const char *job, const char *fabric);

/* The device program of a planned ring job (owned by the caller). */
int plan_ring_program(const struct plan_ctx *ctx, const struct plan_job *pj,
		      struct ring_program *out, struct err *err);

/* Plans a job on switches: topology, schedule, times, circuits; those over trunks
 * are left to plan_trunk_light. switch_job.c */
int plan_switched_job(struct plan_ctx *ctx, struct plan_job *pj, struct err *err);
/* Topology, schedule and circuits where the job leaves the topology to us; of hosts, whatever is
 * inside. As plan_switched_job. switch_job.c */
int plan_choose_topology(struct plan_ctx *ctx, struct plan_job *pj, struct err *err);

/* The topologies for a want as coll_choices has them, found once for jobs that want the same;
 * until that of another want, or plan_ctx_fini. Errors of coll_choices_new. shared_topologies.c */
struct plan_choices;
int plan_choices_of(struct plan_ctx *ctx, const struct coll_want *w, struct plan_choices **out,
		    struct err *err);
struct coll_choices *plan_choices_all(const struct plan_choices *c);
/* The k-th, 0 to how many were given. As coll_choices_next. */
int plan_choices_get(struct plan_choices *c, size_t k, struct coll_choice *out, struct err *err);
/* A schedule of that, the caller's, also after an error. As coll_choices_make. */
int plan_choices_make(struct plan_choices *c, size_t k, struct coll_made *out, struct err *err);
void plan_choices_fini(struct plan_ctx *ctx);

/* Circuits for the arcs of pj->sched's digraph, switch by switch; where fibres
 * join the job's switches it is added to ctx->trunk_jobs. switch_job.c */
int plan_find_circuits(struct plan_ctx *ctx, struct plan_job *pj, struct err *err);
/* The best schedule of the job on what its ranks see of what is inside its hosts, embedded there,
 * or made there; groups: of each rank the number of its host. All stay the caller's.
 * switch_job.c */
struct coll_fabric;
int plan_make_inside(const struct model_fabric *f, const struct plan_job *pj,
		     const struct topo *seen, const int32_t *groups,
		     const struct coll_fabric *inside,
		     struct coll_sched **out, const char **algorithm, struct err *err);
/* Verifies pj->sched and fills in its times and the gap between them. switch_job.c */
int plan_time_job(const struct plan_ctx *ctx, struct plan_job *pj, struct err *err);
/* Plans a job with ranks inside its hosts: circuits first, then, once all have
 * theirs, their digraph and a schedule embedded in it. job_digraph.c */
int plan_server_circuits(struct plan_ctx *ctx, struct plan_job *pj, struct err *err);
int plan_server_schedule(struct plan_ctx *ctx, struct plan_job *pj, struct err *err);
/* A schedule of such a job, without the arcs dropped (NULL: none) of its ranks'
 * digraph, which the circuits of pj are of. Not verified. job_digraph.c */
int plan_embed(const struct model_fabric *f, const struct plan_job *pj, const struct topo *whole,
	       const bool *dropped, struct coll_sched **out, const char **algorithm,
	       struct err *err);
/* The host, of the fabric's, of each node of a job with ranks inside its hosts; host has
 * room for all of them. Errors of plan_job_topo. job_digraph.c */
int plan_node_hosts(const struct model_fabric *f, int job, int *host, struct err *err);
/* Gives s, a schedule of pj on its digraph without the dead arcs (NULL: all of it),
 * its placement: hosts by node, and ports by arc or, on a ring, nodes of it by rank.
 * O(nodes + arcs + circuits). job_digraph.c */
int plan_place_job(const struct model_fabric *f, const struct plan_job *pj, const bool *dead,
		   struct coll_sched *s, struct err *err);
/* The digraph without the dead arcs (NULL: a copy): the same nodes, the others in
 * their order, and limits as far as they have arcs. job_digraph.c */
int plan_copy_alive(const struct topo *t, const bool *dead, struct topo **out, struct err *err);
/* Nodes of a step's digraph in each host: the ranks inside; 1 of other jobs. job_digraph.c */
int plan_ranks_each(const struct model_job *job);
/* The place in its host of the rank of a step that a port is at; 0 of other jobs. job_digraph.c */
int plan_port_rank(const struct model_fabric *f, const struct model_job *job, int port);
/* The first host of the job that has ranks inside, or NULL. job_digraph.c */
const struct model_host *plan_host_with_ranks(const struct model_fabric *f,
					      const struct model_job *job);

/* Verifies sched, of the job of pj, and says what it takes: where its light
 * changes between steps, with plan_light_change_ns for each change. switch_job.c */
int plan_time(const struct plan_ctx *ctx, const struct plan_job *pj,
	      const struct coll_sched *sched, struct coll_report *report,
	      int64_t *time_ns, int64_t *bound_ns, struct err *err);
/* A schedule of the job, by the algorithm in pj, on what is left of the
 * digraph of pj->sched without the arcs dropped. switch_job.c */
int plan_reschedule(const struct plan_ctx *ctx, const struct plan_job *pj, const bool *dropped,
		    struct coll_sched **out, struct err *err);

/* Plans a job of circuits: its digraph has a node for each of its ports, by number, and an
 * arc for each link; the schedule on it is empty. Circuits on one switch are those that the
 * ports say; a job with one over trunks waits in ctx->trunk_jobs. WEFT_EINFEASIBLE: a port
 * has failed or is drained. O(links log links). pinned_circuits.c */
int plan_pinned_circuits(struct plan_ctx *ctx, struct plan_job *pj, struct err *err);
/* The circuit of a link whose ports are on one switch; that of an any-to-any switch has its lower
 * port first, as everywhere. WEFT_EINFEASIBLE: one of them does not work, and no other will do. And
 * the order of a job's circuits. pinned_circuits.c */
struct plan_circuit plan_link_circuit(const struct plan_ctx *ctx, const struct model_link *l);
int plan_check_link(const struct plan_ctx *ctx, const struct model_link *l, struct err *err);
void plan_sort_circuits(struct plan_job *pj);
/* Circuits of a slice, whose schedule is made, with its cubes where the fewest are to be made.
 * WEFT_EINFEASIBLE as above. O(cubes^2 x ports) and searches of bounded time. slices.c */
int plan_slice_circuits(struct plan_ctx *ctx, struct plan_job *pj, struct err *err);
/* The cube of each rank of a slice that has its circuits. slices.c */
void plan_slice_hosts(const struct model_fabric *f, const struct plan_job *pj, int *host);
/* The plan of a training step, and circuits for its first light. step_job.c */
int plan_step_circuits(struct plan_ctx *ctx, struct plan_job *pj, struct err *err);

/* Of a job that was planned as it was made: what is dead is `moved` where it can be made again,
 * maybe to a spare port, else `dark`. False where it has circuits that are not of the intent:
 * another job. O(circuits^2). repair.c */
bool plan_keep_circuits(const struct plan_ctx *ctx, struct plan_job *pj);
/* What the job has without its dark circuits: pj->loss, where it has any. degraded.c */
void plan_assess(const struct plan_ctx *ctx, struct plan_job *pj);

/* Gives every arc of the job's digraph (self-loops aside) a device and two
 * ports, keeping as many present circuits as can be. circuits.c */
int plan_circuits(struct plan_ctx *ctx, struct plan_job *pj, struct err *err);

/*
 * Arcs that are to be spread over switches. Tables of demands (all arcs from
 * one rank to another) and of ranks by sites.
 */
struct plan_assignment {
	int n_ranks, n_demands, n_sites;
	const int (*ends)[2];	/* [n_demands] ranks */
	const int *open;	/* [n_demands] circuits to be given */
	const int *have, *lost;	/* [n_demands * n_sites] there now; intended and
				 * not there */
	const int *tx, *rx;	/* [n_ranks * n_sites] ports */
};

/* Circuits that stay when the sites are given so many. O(cells). circuits.c */
int plan_assignment_kept(const struct plan_assignment *s, const int *give);
/* Puts a spread into give, [n_demands * n_sites], that keeps more than the one
 * that is there (given), and the least bound that it finds into *most; both
 * are left as they are when there is none, or the program is too large.
 * switch_assignment.c */
int plan_assignment_exact(const struct plan_assignment *s, bool given, int *give,
		      int *most, struct err *err);
/* A spread, into give, in which all that is there stays as far as there are ports, found by a
 * maximum flow a site; false: it does not come out so, and give is zeros. O(sites x cells
 * sqrt(ranks)). switch_assignment.c */
bool plan_assignment_direct(const struct plan_assignment *s, int *give);
/* The most that can stay of each demand by itself. O(cells). circuits.c */
int plan_assignment_bound(const struct plan_assignment *s);
/* A spread that keeps as many circuits as the one that is there, or more: sites exchange theirs,
 * until most is reached or for a number of moves: O(2^25). exchange.c */
void plan_assignment_improve(const struct plan_assignment *s, int *give, int most);

/* Every lightpath that is to be connected, with the power that will reach its
 * receiver, and what its receiver needs and stands: by what is measured at the
 * first switch and by what is launched, whichever is worse. Light of an
 * amplifier only where both ends are known. WEFT_EINFEASIBLE: the ports and
 * the numbers. O(circuits * (log circuits + trunks)). power.c */
int plan_check_power(const struct plan_ctx *ctx, struct plan_job *pj, struct err *err);
/* Forgets what plan_check_power found. plan_value.c */
void plan_paths_free(struct plan_job *pj);
/* A warning for each port of the plan's new lightpaths whose measured power is
 * not as its launch says. power.c */
void plan_warn_power(struct plan *p);
void plan_warn(struct plan *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* True when a port may be given out: attached, not failed, not taken.
 * circuits.c */
bool plan_tx_usable(const struct plan_ctx *ctx, int port);
bool plan_rx_usable(const struct plan_ctx *ctx, int port);

/* What enters the first switch from a port, by launch and measurement the lesser,
 * and what must leave the last one for the receiver of a port; false: that is not
 * known. power.c */
bool plan_power_in(const struct plan_ctx *ctx, int port, int32_t *mdbm);
bool plan_power_needed(const struct plan_ctx *ctx, int port, int32_t *mdbm);

/* ---- light over trunks ---- */

/* A fibre of the mesh: a trunk, or a port of a host that is a node of its own. */
struct trunk_fibre {
	int id;			/* fabric->trunks, or fabric->ports */
	bool is_port;
	int from, to;		/* nodes of the mesh */
	int32_t loss_mdb;
	int channel;		/* of the mesh, that it passes; -1: any, of one
				 * lightpath */
	int arc, fibre;		/* of the mesh */
};

/* A lightpath that is wanted, and what it has. */
struct trunk_lightpath {
	struct plan_job *pj;
	int arc;		/* of its digraph */
	int from, to;		/* ends: trunk_network.end_of */
	int src, dst;		/* nodes of the mesh */
	int demand;		/* of the mesh; -1: its ends are on one switch */
	int tx, rx;		/* ports, -1: not known yet */
	struct rwa_path lit;	/* in trunk_network.lit, as it is now; no hops:
				 * dark, or on one switch */
	const struct rwa_hop *route;	/* borrowed, [hops]; NULL: on one switch */
	int hops;
	const struct rwa_hop *backup;	/* likewise, [n_backup]; NULL: none */
	int n_backup;
	enum rwa_protect protect;	/* of its job, else of the trunks on its route */
};

/* The mesh of several jobs. First what it is made from, then what
 * trunk_network_init() makes and trunk_network_fini() frees; the arrays are by
 * number in the fabric. */
struct trunk_network {
	struct plan_ctx *ctx;
	const struct model_fabric *fabric;
	struct plan_job **jobs;
	int n_jobs;
	bool *taken;		/* [n_trunks] by others */
	bool as_whole;		/* trunks that do not work are there */
	bool by_power;		/* every host is a node, losses count, and the
				 * budget is: */
	int32_t max_mdbm, min_mdbm;

	bool is_filtered;	/* some trunk of the fabric passes one wavelength */
	int channels;		/* of the mesh */
	int *wave;		/* [channels] wavelength of each, ascending; -1: light
				 * that is not tuned, or any where nothing filters */
	struct arrays arrays;	/* owns those up to the mesh */
	struct plan_job **job_of;	/* [n_jobs of the fabric] NULL: not of these */
	/* [n_ports] the first port that the job has on the host, which stands for its
	 * end there; of circuits each port is an end of its own. -1: not of these jobs */
	int *end_of;
	int *send_node, *receive_node;	/* [n_ports] of ends; -1: no port is open */
	bool *tx_open, *rx_open;	/* [n_ports] of these jobs */
	bool *tx_used, *rx_used;	/* [n_ports] by lightpaths */
	bool **in_shut, **out_shut;	/* [n_devices] ports under circuits of others */
	int *of_tx, *of_rx, *of_trunk;	/* number in fibres and 1; 0: none */
	struct rwa_mesh *mesh;
	VEC(struct trunk_fibre) fibres;	/* by arc, channel, fibre */
	VEC(struct trunk_lightpath) paths;	/* by nodes, then hosts, then arc */

	int **trunk_at;		/* plan_map_trunks */
	struct rwa_assignment lit;	/* what is there and wanted, by demand */
};

/* The host of an end. */
static inline int trunk_host(const struct trunk_network *w, int end)
{
	return w->fabric->ports[end].host;
}
/*
 * The mesh of w's jobs, w zeroed but for its first part. WEFT_EINFEASIBLE: a host
 * has too few ports. WEFT_ELIMIT, WEFT_EINVAL: larger than rwa can. fini also
 * after an error. O((trunks + ports + arcs) log). trunks.c
 */
int trunk_network_init(struct trunk_network *w, struct err *err);
void trunk_network_fini(struct trunk_network *w);
/* The channel of the mesh that is a wavelength, -1: none; and whether a host's
 * transmitters send a channel. trunks.c */
int trunk_channel(const struct trunk_network *w, int wave);
bool trunk_sends(const struct trunk_network *w, int host, int channel);
/* What carries a hop. O(log fibres). trunks.c */
const struct trunk_fibre *trunk_fibre_of(const struct trunk_network *w, const struct rwa_hop *h);
/* True when neither port of a trunk has failed or is evacuated. trunks.c */
bool trunk_works(const struct trunk_network *w, int trunk);
/* Order of lightpaths, those between the same two ends equal. trunks.c */
int trunk_by_ends(const struct trunk_lightpath *x, const struct trunk_lightpath *y);
/* WEFT_EINFEASIBLE with what proves that not all fit, or that nothing does. res: of
 * rwa, NULL: it said that there is no path; least: with as few channels as it finds.
 * O(nodes^3). trunk_refusal.c */
int trunk_refuse(const struct trunk_network *w, const struct rwa_mesh_result *res,
		 const struct rwa_mesh_result *least, struct err *err);
/*
 * Backups for the lightpaths of jobs that ask for them, all having routes; *out, that the caller
 * frees, lives as long as routes and backups. WEFT_EINFEASIBLE: not all find one, and no trunk has
 * failed; WEFT_EUNSUPPORTED: hosts are nodes. trunk_backup.c
 */
int trunk_protect(struct trunk_network *w, struct rwa_mesh_result *out, struct err *err);
/* Of a network as_whole: routes of all as they are lit, and of those that lead over trunks which do
 * not work the backups that they had. False: some are not lit, nothing is hit, or there is no
 * backup that works. *out as above. trunk_backup.c */
bool trunk_switch_over(struct trunk_network *w, struct rwa_mesh_result *out);
/*
 * Circuits for all of ctx->trunk_jobs, in place of those that they have, with as
 * few lightpaths moved as rwa finds; power is checked. Whether they are found, and
 * which, does not depend on the order of the jobs. WEFT_EINFEASIBLE: trunk_refuse,
 * or power that does not reach; else errors of trunk_network_init and
 * rwa_mesh_solve. trunk_light.c
 */
int plan_trunk_light(struct plan_ctx *ctx, struct err *err);

/* Usable transmit and receive ports of a job's rank: attached, not failed,
 * not taken. In SAFE mode ports under an external circuit count as well, since
 * that circuit may be the one wanted. circuits.c */
void plan_usable_ports(const struct plan_ctx *ctx, const struct model_job *job,
		       int rank, int *n_tx, int *n_rx);

/* Directs the m edges ends[e] of a multigraph on n nodes without self-loops
 * so that at every node out- and in-degree differ by at most one: flip[e]
 * says that e goes from ends[e][1] to ends[e][0]. O(n + m). orient.c */
void plan_orient(int n, int m, const int (*ends)[2], bool *flip);

/* NULL is fine. plan_value.c */
void plan_job_loss_free(struct plan_job_loss *loss);

/* Turns jobs into per-device steps. device_diff.c */
int plan_steps(struct plan_ctx *ctx, struct plan *p, struct err *err);
/*
 * Cuts the steps into stages, so that in none of them capacity falls under
 * the floor of fabric->changes while its deletes are made and its adds not
 * yet: for every host, each way, keep_ppm of what it has both before and
 * after the plan; for every pair of hosts with light before and after,
 * keep_pair_ppm. Capacity is that of weft's own lightpaths whose circuits are
 * all there; a program of a ring that is replaced has none.
 *
 * A domain is completed before the next one begins: the first in the order
 * of the file whose stages keep the floor. Within a domain what moves falls
 * into groups that share ports or lightpaths; a stage takes all groups that
 * fit, those that gain light first, and when none fits as a whole one is
 * taken piece by piece. Deterministic. The number of stages is not proven
 * least, and WEFT_EINFEASIBLE (the floor, the host or pair, the numbers) means
 * that this order finds no way. O(stages * (hosts + moves)). stages.c
 */
int plan_stages(struct plan_ctx *ctx, struct plan *p, struct err *err);

/* Expected time in which light moves: two batches of a switch, all moves of a
 * panel. outage.c */
int64_t plan_switching_ns(const struct plan *p, int device, int n_del, int n_add);
/* Light to link at a host port. outage.c */
int64_t plan_reactivation_ns(const struct plan *p, int port);
/* What a job on switches waits for when its light moves between two steps: the
 * slowest switch that its hosts are on, which deletes and then adds, and the slowest of their
 * transceivers. O(ports of the job). outage.c */
int64_t plan_light_change_ns(const struct plan_ctx *ctx, const struct model_job *job);
/* What is expected to take how long: as seen, else as configured. outage.c */
void plan_take_times(struct plan *p, const struct plan_times *known);

/* The fibre between switches at each egress: of each device NULL or by port,
 * numbers in fabric->trunks (of other ports: 0). Freed by plan_trunks_free.
 * host_paths.c */
int **plan_map_trunks(const struct model_fabric *f);
void plan_trunks_free(const struct model_fabric *f, int **at);
/* plan_trace with such a map, so that a switch on the way takes O(log
 * circuits). host_paths.c */
int plan_trace_by(const struct model_fabric *f, int *const *trunk_at,
		  const struct plan_light *light, int tx_port);

/* SHA-256 over all steps. device_diff.c */
void plan_digest(const struct plan *p, char hex[65]);

#endif
