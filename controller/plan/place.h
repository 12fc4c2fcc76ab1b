/*
 * Placement: which hosts a requested job gets. Pure, and deterministic: the
 * same fabric, hosts and demand give the same hosts.
 */
#ifndef WEFT_PLAN_PLACE_H
#define WEFT_PLAN_PLACE_H

#include "controller/model/model.h"

struct place_request {
	int n;			/* ranks */
	int ring;		/* device, or -1: on switches */
	int min_ports;		/* of each host, with fibres both ways */
	const int *hosts;	/* [n] these and no others, or NULL: any */
};

/* True for hosts whose ports go to the same devices, one by one. */
bool place_alike(const struct model_fabric *f, int a, int b);

/*
 * Chooses demand->n hosts among those that are usable[host] (NULL: all) and,
 * on switches, not in `busy` (NULL: none); out[n] in rank order.
 *
 * On switches, hosts whose ports go to the same devices in the same way are a
 * group; the smallest group that is large enough is taken, so that large ones
 * stay whole, and of equal ones the first. When no group is large enough,
 * hosts are taken group by group, the largest first. On a ring they are the
 * stretch of neighbours that leaves the fewest unused nodes between them.
 *
 * WEFT_EINFEASIBLE: too few hosts are free now, and the text says how many;
 * WEFT_EINVAL: never enough, also if all were free. O(hosts log hosts).
 */
int place_job(const struct model_fabric *f, const struct place_request *demand,
	      const bool *usable, const bool *busy, int *out,
	      struct err *err);

/*
 * Hosts for a job whose hosts now[demand->n] are not all usable: each that is
 * stays at its rank, each other gets a free one (usable and not busy) in its
 * place: with its ports to the same devices if there is one, else with at
 * least as many ports; of equal ones the first.
 * WEFT_EINFEASIBLE names the host that has no spare. O(n hosts).
 */
int place_spare(const struct model_fabric *f, const struct place_request *demand,
		const int *now, const bool *usable, const bool *busy, int *out,
		struct err *err);

#endif
