/*
 * Hosts behind network interfaces that are slower than their links together
 * (all-to-all-mcf, section 3.2.3 and figure 3).
 */
#ifndef WEFT_COLLECTIVE_FLOW_MCF_NIC_SPLIT_H
#define WEFT_COLLECTIVE_FLOW_MCF_NIC_SPLIT_H

#include "topology/topology.h"

/*
 * The digraph of t with each terminal u split into the host u, which keeps its
 * number and all demand, and two switches: what leaves it goes over n + u,
 * what comes in over 2n + u, each by one arc of host_cap. Links join the
 * switches. nic_forwards: an interface sends on by itself; else everything
 * passes the host. Capacities of links are multiplied by scale, so that
 * host_cap may be a fraction of a link. Switches of t stay as they are.
 * WEFT_EINVAL for a capacity or scale below 1, WEFT_ELIMIT.
 */
int mcf_split_hosts(const struct topo *t, int64_t host_cap, int64_t scale,
		    bool nic_forwards, struct topo **out, struct err *err);

#endif
