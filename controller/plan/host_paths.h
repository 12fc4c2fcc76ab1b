/*
 * The paths of hosts over the light of a plan: its arcs from port to port, and
 * over them the path from each host to every other. Pure, as all of planning.
 */
#ifndef WEFT_PLAN_HOST_PATHS_H
#define WEFT_PLAN_HOST_PATHS_H

#include "controller/plan/plan.h"

/* A job arc from one host port to another. */
struct plan_arc {
	int tx_port, rx_port;
};

/* The arcs of all jobs on switches, sorted, none twice. *arcs: free(). */
int plan_arcs(const struct plan *p, struct plan_arc **arcs, int *n,
	      struct err *err);

/* The path to one host: out by tx_port, which rx_port receives. */
struct plan_host_path {
	int to;
	int via;		/* the host of rx_port */
	int tx_port, rx_port;
};

/* The paths of one host to all that it reaches: the fewest arcs, then the
 * lowest ports; by host. *paths: free(). O(hosts x arcs). */
int plan_host_paths(const struct model_fabric *f, const struct plan_arc *arcs,
	      int n_arcs, int host, struct plan_host_path **paths, int *n,
	      struct err *err);

/* The port that a port's light reaches through these circuits (one
 * plan_light a device) and the fibres as written, or -1. O(log circuits +
 * trunks) a switch on the path, O(circuits) for any-to-any ones. */
int plan_trace(const struct model_fabric *f, const struct plan_light *light,
	       int tx_port);

/* A circuit that light goes through. */
struct plan_hop {
	int device;
	struct optics_xc xc;
};

/* The same with the circuits on the path, in order, put behind the n of *hops,
 * which grows (realloc; the caller's, also on error). WEFT_ENOTFOUND: the
 * light reaches no port. */
int plan_trace_hops(const struct model_fabric *f,
		    const struct plan_light *light, int tx_port,
		    struct plan_hop **hops, int *n, int *rx_port,
		    struct err *err);

/*
 * Light from port to port that a stage of the plan takes away before it makes
 * its own: what is sent from these ports must take another path, or wait, from
 * the stage's first delete on. Sorted. By the circuits that the plan goes by;
 * programs of rings carry no traffic of ports. *arcs: free().
 * O(circuits + ports x hops x log circuits), on any-to-any switches without
 * the logarithm.
 */
int plan_stage_removes(const struct plan *p, int stage, struct plan_arc **arcs,
		 int *n, struct err *err);
/* Light that is there once the stage is done, and was not before: all its
 * circuits are there then, whatever stage made the others. The same
 * otherwise. */
int plan_stage_adds(const struct plan *p, int stage, struct plan_arc **arcs, int *n,
	     struct err *err);
/* The circuits of each of these arcs, which are there once the stage is done:
 * those of arc i are (*hops)[(*first)[i]] to before (*first)[i + 1]. *hops,
 * *first: free(). */
int plan_arc_hops(const struct plan *p, int stage,
		  const struct plan_arc *arcs, int n_arcs,
		  struct plan_hop **hops, int **first, struct err *err);
/* All light from port to port that is there once stages up to and with this
 * one are done; -1: before the first. The same otherwise. */
int plan_arcs_after(const struct plan *p, int stage, struct plan_arc **arcs,
		     int *n, struct err *err);

/* Address of a host, network byte order: 10.119.0.1 is the first's. */
uint32_t plan_host_address(int host);

#endif
