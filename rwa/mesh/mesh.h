/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Routing and wavelength assignment on meshes of any shape: which path and which
 * channel every lightpath takes, with a bound that anyone can check.
 *
 * An arc is one direction of a link and holds one or more fibres. A lightpath
 * keeps its channel from end to end, except that it may change it at a node
 * that converts. No two lightpaths share a channel on a fibre.
 */
#ifndef WEFT_RWA_MESH_MESH_H
#define WEFT_RWA_MESH_MESH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/vec.h"

#define RWA_MESH_MAX_NODES 4096
#define RWA_MESH_MAX_ARCS (1 << 20)
#define RWA_MESH_MAX_FIBRES 1024
#define RWA_MESH_MAX_CHANNELS 1000000
#define RWA_MESH_MAX_GUARD 1000
#define RWA_MESH_MAX_LIGHTPATHS (1 << 22)
#define RWA_MESH_MAX_FILE ((size_t)64 << 20)
#define RWA_MESH_NO_LIMIT (-1)
#define RWA_MESH_ALL (-1)
#define RWA_MESH_NO_DOMAIN (-1)

/* Losses are in milli-dB, limits in lightpaths of all channels together. */
struct rwa_mesh_node {
	char *name;		/* owned by the mesh; NULL: its number */
	int32_t add_limit;	/* lightpaths that may begin here, or
				 * RWA_MESH_NO_LIMIT */
	int32_t drop_limit;	/* that may end here */
	int32_t pass_mdb;	/* loss of passing by */
	bool convert;		/* may change a lightpath's channel */
	bool has_place;		/* on a map: x to the right, y upwards */
	double x, y;
};

/* One direction of a link between two different nodes; parallel arcs are
 * allowed here, but not in files, which give a link more fibres instead.
 * 1..RWA_MESH_MAX_FIBRES fibres; loss in milli-dB, not negative, that of
 * every fibre. */
struct rwa_mesh_arc {
	int32_t src, dst;
	int32_t fibres;
	int32_t loss_mdb;
	bool is_single;		/* each of its fibres carries one lightpath, of
				 * whatever channel, and is blocked only as a
				 * whole. Certificates do not count it and stay
				 * true */
};

/* Protected lightpaths are pairs, working and backup, that share no link: neither
 * arc nor the arc back, on whatever fibre. */
enum rwa_protect {
	RWA_UNPROTECTED,
	RWA_DEDICATED,	/* the backup has its slots for itself */
	RWA_SHARED,	/* with backups of others, as long as their working
			 * lightpaths have no link in common */
};

struct rwa_mesh_demand {
	int32_t src, dst;
	int32_t count;		/* lightpaths wanted */
	enum rwa_protect protect;
};

/* Channels that a node's transceivers reach. A node without any reaches
 * them all; one with several reaches their union. */
struct rwa_mesh_tuning {
	int32_t node, first, last;
};

/* Channels that stay unused: `between` any two active ones of a fibre (those in
 * use by others are active), and at the edges of the band. */
struct rwa_mesh_guard {
	int32_t between, below, above;
};

/* What no lightpath may use: a channel in use by others, or (RWA_MESH_ALL) a
 * forbidden port, that is a whole fibre or a whole arc. */
struct rwa_mesh_block {
	int32_t arc, fibre, channel;
	bool filter;	/* the channel is not active: a filter keeps it out, and
			 * no guard channels beside it */
};

/* Fill with the functions below; read freely. */
struct rwa_mesh {
	VEC(struct rwa_mesh_node) nodes;
	VEC(struct rwa_mesh_arc) arcs;
	VEC(struct rwa_mesh_demand) demands;
	VEC(struct rwa_mesh_block) blocks;
	VEC(char *) domains;	/* names of failure domains: a device, a duct */
	VEC(int32_t) arc_domain;	/* of the arcs up to the last one that
					 * has a domain */
	VEC(struct rwa_mesh_tuning) tunings;
	struct rwa_mesh_guard guard;
	int32_t channels;	/* of a fibre; 0: not given */
	int64_t budget_mdb;	/* largest loss of a lightpath, or
				 * RWA_MESH_NO_LIMIT */
	int32_t add_mdb, drop_mdb;
	int64_t lightpaths;	/* sum of the demands' counts, pairs twice */
	int64_t self_demands;	/* of a .trf file, left out */
};

/* Nodes without arcs or demands, all free to add and drop. WEFT_EINVAL for a
 * number outside 1..RWA_MESH_MAX_NODES. */
int rwa_mesh_new(int nodes, struct rwa_mesh **out, struct err *err);
/* A duplex ring of at least three nodes: arc i leads from node i to the next,
 * arc nodes + i back. Guard channels, tuning ranges, what is in use and pairs
 * can be added as to any mesh, for which rwa/ring/ring.h has no place. */
int rwa_mesh_new_ring(int nodes, int fibres, struct rwa_mesh **out, struct err *err);
void rwa_mesh_free(struct rwa_mesh *m);

/* Adds an arc, a demand, or what may not be used. WEFT_EINVAL for ends that
 * do not exist or are the same, and for numbers out of range; WEFT_ELIMIT. */
int rwa_mesh_add_arc(struct rwa_mesh *m, const struct rwa_mesh_arc *arc, struct err *err);
int rwa_mesh_add_demand(struct rwa_mesh *m, const struct rwa_mesh_demand *d, struct err *err);
int rwa_mesh_add_block(struct rwa_mesh *m, const struct rwa_mesh_block *b, struct err *err);
/* Puts an arc into the failure domain of this name, which is made when it is
 * new. The name is copied. */
int rwa_mesh_set_domain(struct rwa_mesh *m, int32_t arc, const char *name, struct err *err);
/* Failure domain of an arc, or RWA_MESH_NO_DOMAIN. */
int32_t rwa_mesh_domain_of(const struct rwa_mesh *m, int32_t arc);
int rwa_mesh_add_tuning(struct rwa_mesh *m, const struct rwa_mesh_tuning *t, struct err *err);
/* One demand for every ordered pair of nodes. */
int rwa_mesh_all_to_all(struct rwa_mesh *m, struct err *err);

/* Forgets all demands. */
void rwa_mesh_clear_demands(struct rwa_mesh *m);

/* Name of a node for people, into buf when it has none of its own. */
const char *rwa_mesh_node_name(const struct rwa_mesh *m, int node, char *buf, int size);

/*
 * Readers of instances. name: of the file, for messages; text: terminated. All
 * mistakes go to *errs, each with its line; the code of one is returned, and *out
 * is NULL then. O(text).
 */

/* The network of a .net file: "nodes arcs", then "from to" for each arc,
 * 0-based. An arc given twice is a mistake. */
int rwa_mesh_read_net(const char *name, const char *text, struct rwa_mesh **out,
		      struct err_list *errs);
/* Adds the demands of a .trf file: their number, then "from to" for each.
 * Demands of a node to itself are counted in self_demands and left out. */
int rwa_mesh_read_trf(struct rwa_mesh *m, const char *name, const char *text,
		      struct err_list *errs);
/* A whole instance in YAML; docs/rwa.md has the format. */
int rwa_mesh_read_yaml(const char *name, const char *text, size_t len,
		       struct rwa_mesh **out, struct err_list *errs);
/* True for a text that begins as SNDlib's native files do. */
bool rwa_mesh_is_sndlib(const char *text);
/* A network of SNDlib, native format 1.0. unit: of demand values a lightpath
 * carries, each demand rounded up; 0: one lightpath for each demand. */
int rwa_mesh_read_sndlib(const char *name, const char *text, double unit, struct rwa_mesh **out,
			 struct err_list *errs);

/* ---- assignments ---- */

/* A slot in use: arc of the mesh, fibre of the arc, channel of the fibre,
 * all from 0. There is no padding, so that hops are compared as bytes. */
struct rwa_hop {
	int32_t arc, fibre, channel;
};

/* One lightpath of a demand: hops[first .. first + hops - 1]. Those of a
 * protected demand come in pairs, working then backup. */
struct rwa_path {
	int32_t demand;
	int32_t hops;
	int64_t first;
};

/* Lightpaths, in general not all that are wanted. Zeroed it is empty;
 * everything is freed by rwa_assignment_fini(). */
struct rwa_assignment {
	VEC(struct rwa_path) paths;	/* by demand, ascending */
	VEC(struct rwa_hop) hops;
};

void rwa_assignment_fini(struct rwa_assignment *a);

/* What a file calls its lightpaths: v[k] is the id of path k of the assignment
 * that was read with it. The texts are owned; zeroed there are none. */
struct rwa_ids {
	VEC(char *) v;
};

void rwa_ids_fini(struct rwa_ids *ids);

/* Lightpaths as `weft rwa solve -o` writes them, YAML or JSON: each becomes a
 * path of the first demand with its ends that has not enough yet. Those that
 * no demand wants are left out, or (add) the demand is added to the mesh.
 * Only that the hops are fibres which lead from one end to the other is
 * checked. ids (NULL: not asked for): the `id` of each, without one its
 * position in the file, from 0; WEFT_EINVAL when two are the same. dark: NULL, or how
 * many are over fibres that are not there, or not available as a whole; they are left out, and
 * one of a pair is WEFT_EINVAL. Errors have their line. */
int rwa_mesh_read_lightpaths(struct rwa_mesh *m, const char *name, const char *text, size_t len,
			     bool add, struct rwa_assignment *out, struct rwa_ids *ids,
			     int64_t *dark, struct err *err);

/* Loss of hops that follow each other. O(hops). */
int64_t rwa_mesh_loss_mdb(const struct rwa_mesh *m, const struct rwa_hop *hops, int n);

/*
 * Checks an assignment against the mesh alone: every path leads from its
 * demand's source to its destination, keeps its channel but at nodes that
 * convert, uses nothing that is blocked or taken, channels are below
 * `channels`, tuning ranges, guard channels, loss and add/drop limits are
 * kept, pairs share no link, and no demand has more lightpaths than it wants
 * (all: exactly as many). WEFT_EVERIFY names the
 * first fault. O(hops + fibres).
 */
int rwa_mesh_check(const struct rwa_mesh *m, const struct rwa_assignment *a,
		   int channels, bool all, struct err *err);

/* A lightpath of an old assignment, a new one, or both. */
struct rwa_changed {
	int32_t old_path, new_path;	/* -1: not in that assignment */
	int32_t partner;		/* the other one of a pair, -1: none */
	bool kept;			/* same hops in both */
};

/* Every path of either is in exactly one; freed by vec_fini(). */
struct rwa_matching {
	struct rwa_changed *v;
	size_t n, cap;
};

/*
 * Which lightpath of `from` becomes which of `to`, two assignments whose routes
 * are valid, paths by demand: within a demand, as many as possible keep their
 * hops, and others their channel; a pair of a protected demand goes with a pair,
 * or with none.
 * O(lightpaths * those of their demand * hops).
 */
void rwa_mesh_match(const struct rwa_mesh *m, const struct rwa_assignment *from,
		    const struct rwa_assignment *to, struct rwa_matching *out);

/* ---- bound ---- */

/*
 * A price for each arc, small integers: no assignment of all demands pays
 * less than sum(count * cheapest path), and W channels hold no more than
 * sum(price * slots of the arc). The cheapest path is within the loss budget,
 * that of a protected demand a pair without common link. Slots of an arc are
 * those of its open fibres: less what is in use when no guard channels are
 * kept, otherwise as many as guards let be active.
 */
struct rwa_certificate {
	int64_t *prices;	/* as many as arcs */
	int64_t numerator;	/* sum(count * cheapest path) */
	int64_t denominator;	/* sum(price * open fibres) */
	int bound;		/* fewest channels that hold the numerator, at
				 * least 1 if there is a demand */
	int ends;		/* fewest channels in which the slots that
				 * leave and enter each node, within its tuning
				 * range, are enough for its lightpaths */
	double flow;		/* congestion of the best fractional flow: no
				 * prices prove more than this, rounded up */
};

void rwa_certificate_fini(struct rwa_certificate *c);

/*
 * Checks a certificate by shortest paths in integers: both sums, and both
 * bounds. WEFT_EVERIFY. O(nodes * arcs) by Bellman-Ford with a queue; with
 * protected demands that for each of them.
 */
int rwa_certificate_check(const struct rwa_mesh *m,
			  const struct rwa_certificate *c, struct err *err);

/* No more than this many lightpaths fit in `channels`, by the same prices:
 * the cheapest paths first. */
int rwa_certificate_fit(const struct rwa_mesh *m, const struct rwa_certificate *c, int channels,
			int64_t *fit, struct err *err);

/* ---- solver ---- */

/* What is aimed for once the number of channels is found, or as many
 * lightpaths as fit are served. */
enum rwa_objective {
	RWA_ANY,
	RWA_MIN_MOVED,	/* lightpaths of `before` that do not stay */
	RWA_MIN_MAX_LOSS,
};

struct rwa_mesh_options {
	enum rwa_objective objective;
	const struct rwa_assignment *before;	/* of the same mesh, paths by
						 * demand; NULL unless they
						 * shall stay */
	bool pinned;		/* those are working lightpaths alone; none of
				 * them moves, and backups are found for all,
				 * or as many as can be. Nothing is proven */
	int channels;		/* serve as many lightpaths as fit in these; 0:
				 * all, with as few channels as possible */
	int64_t work;		/* lightpaths that a search may place, found
				 * again with the same seed; 0: a number that
				 * goes with the size, none beside a limit */
	struct deadline deadline;	/* ends the search once there is an answer */
	uint64_t seed;
	int threads;		/* 0: one search; 1, 2: two searches beside
				 * each other, on so many threads. Unless
				 * time ends them, 1 and 2 give the same
				 * answer */
	const volatile bool *cancel;
};

/* Filled by rwa_mesh_solve() and freed by rwa_mesh_result_fini(); strings
 * are static. bound <= channels when all were served. */
struct rwa_mesh_result {
	int channels;		/* used */
	int bound;		/* no assignment of all demands needs fewer */
	int64_t lightpaths;	/* served */
	int64_t lightpaths_bound;	/* no assignment in the channels
					 * given serves more */
	const char *method;	/* of the assignment */
	const char *proof;	/* of the bound */
	int64_t moved;		/* lightpaths of both assignments that change
				 * their path or channel (RWA_MIN_MOVED) */
	int64_t moved_bound;	/* no assignment of as many lightpaths in so
				 * many channels moves fewer */
	int64_t working_slots;	/* with shared backups, or pinned: what working lightpaths
				 * take, and all do together */
	int64_t slots;
	int64_t loss_mdb;	/* longest (RWA_MIN_MAX_LOSS) */
	int64_t loss_bound_mdb;	/* of the demand whose least loss is longest */
	struct rwa_certificate certificate;
	struct rwa_certificate fit;	/* of lightpaths_bound, when channels
					 * are given: prices only */
	struct rwa_assignment assignment;
};

/*
 * The bound is the minimum-congestion flow (augmented Lagrangian on paths),
 * certified by integer prices; assignments come from a guided ejection
 * search at a fixed number of channels; on a mesh that is a plain duplex ring,
 * rwa_ring_route() gives the first one. Where they differ on a small
 * instance, the program over what one channel can carry may prove more or be
 * rounded to better, or lp_solve that one channel fewer is not enough.
 * An objective is looked for after
 * that, at the same channels and with as many lightpaths, for a quarter of
 * the time more at least; the certificate is not touched.
 * Where backups are shared, pairs are placed by a search of their own, with as few
 * channels and then slots as it finds, and the bound is the largest of the networks without one
 * link each; WEFT_EUNSUPPORTED with guard channels, conversion, limits or objectives.
 * WEFT_EINFEASIBLE names the first
 * demand that no lightpath can serve (no path, or none within the loss
 * budget) or the node whose add or drop limit is too low. WEFT_ELIMIT when
 * the search would need too much memory. The answer has passed
 * rwa_mesh_check() and rwa_certificate_check().
 */
int rwa_mesh_solve(const struct rwa_mesh *m, const struct rwa_mesh_options *opt,
		   struct rwa_mesh_result *res, struct err *err);
void rwa_mesh_result_fini(struct rwa_mesh_result *res);

/* The occupancy as a picture (SVG): a map of the network with the load of its links, by the
 * nodes' places or as distances have it, and one row for each fibre of an arc, one column for each
 * channel; of many the fullest. A mesh that is one ring as circles. */
void rwa_mesh_draw(const struct rwa_mesh *m, const struct rwa_assignment *a, int channels,
		   struct buf *svg);

#endif
