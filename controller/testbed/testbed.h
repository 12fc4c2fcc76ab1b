/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fabric made of network namespaces on this machine: one for every host
 * and every device, all called weft.FABRIC.NAME, and a pair of veths for
 * every fibre. A host's port p0 has two netdevs, p0.tx and p0.rx, since its
 * two fibres are apart; so has each resonator of a ring at its node. Switches
 * are driven by `linux-tc`, rings by `linux-ring`. docs/testbed.md describes
 * it for users.
 *
 * Everything is found again by name: no state is kept anywhere else, and
 * what a killed process left is taken away by the next `down` or `up`.
 */
#ifndef WEFT_TESTBED_TESTBED_H
#define WEFT_TESTBED_TESTBED_H

#include <stdbool.h>
#include <stdint.h>

#include "controller/model/model.h"
#include "controller/plan/plan.h"
#include "drivers/host/host.h"
#include "lib/base/err.h"

#define TESTBED_NAME_MAX 192

/*
 * Where light leaves and enters a host: at a port, or at a resonator of a
 * ring. Ends count from 0: the ports as in the fabric, then the resonators,
 * ring by ring, in the order of their places (drivers/linux/netns_ring.h).
 */
struct testbed_end {
	int host;
	int ring;		/* device, -1: it is a port */
	size_t place;		/* on the ring */
	struct ring_setting at;	/* that place; mode and step are 0 */
};

/* Their number, and the one of a number below that. O(devices). */
int testbed_n_ends(const struct model_fabric *f);
struct testbed_end testbed_end(const struct model_fabric *f, int end);
/* "gpu0.p1"; of a resonator "mem3.ring0+0.5", host, ring, direction, fibre
 * and channel. */
const char *testbed_end_name(const struct model_fabric *f, int end, char buf[TESTBED_NAME_MAX]);
/* Its netdev without ".tx" or ".rx": "p1"; of a resonator "r2+0.5", where 2
 * is the ring's index among the devices. */
const char *testbed_end_netdev(const struct model_fabric *f, int end, char buf[TESTBED_NAME_MAX]);
/* That the fabric has a fibre for it. */
bool testbed_end_has(const struct model_fabric *f, int end, bool rx);
/* The end of a place of a ring. */
int testbed_end_of(const struct model_fabric *f, int ring, size_t place);
struct ring_geometry testbed_ring(const struct model_device *d);

/* A fibre laid otherwise than the fabric says. */
enum testbed_fault_kind {
	TESTBED_SWAP,		/* a and b end at each other's switch ports */
	TESTBED_DEAD,		/* a is broken */
	TESTBED_REVERSE,	/* the port's two fibres are exchanged */
};

/* A fibre is that of a host port, tx or rx. */
struct testbed_fibre {
	int port;		/* fabric->ports */
	bool rx;
};

struct testbed_fault {
	enum testbed_fault_kind kind;
	struct testbed_fibre a, b;	/* b: of a swap only; of a reversed
					 * port a.rx is false */
};

struct testbed_options {
	int64_t rate_bps;	/* of every link; 0: what the fabric says */
	const struct testbed_fault *faults;	/* [n_faults], laid in order */
	int n_faults;
};

/* "gpu0.p1.tx", or "gpu0.p1" for a whole port (rx false). WEFT_EUSAGE. */
int testbed_find_fibre(const struct model_fabric *f, const char *text,
		       bool whole, struct testbed_fibre *out, struct err *err);

/* That the fabric can be built: every switch is driven by linux-tc and every
 * ring by linux-ring, with the option fabric, and names fit. WEFT_EINVAL, WEFT_EUNSUPPORTED. */
int testbed_check(const struct model_fabric *f, struct err *err);

typedef void (*testbed_progress_fn)(int done, int total, void *arg);

/* Builds it. *built is false when all of it was there already (then nothing
 * is touched); what is there in part, or when faults are asked for, is taken
 * down first. On failure nothing is left. WEFT_EDENIED: not root. fn (may be
 * NULL) is called inside this call after each namespace and each fibre. */
int testbed_up(const struct model_fabric *f, const struct testbed_options *o,
	       testbed_progress_fn fn, void *arg, bool *built, struct err *err);
/* Takes away every namespace of this fabric name; *n: how many. */
int testbed_down(const char *fabric, int *n, struct err *err);

/* Namespace of a host or device. buf: HOST_NETNS_MAX. */
const char *testbed_netns(const struct model_fabric *f, const char *name, char *buf);

/* Beside the light every host has a netdev on a management network, with a namespace of its
 * own in which programs on hosts are started; a name that no host has. Fabrics of more than
 * 1000 hosts have none, as it is one bridge. */
#define TESTBED_MANAGEMENT "+mgmt"
#define TESTBED_MANAGEMENT_DEV "mgmt"	/* of a host; ports have ".tx" in their names */
bool testbed_has_management(const struct model_fabric *f);
/* Address there, network byte order; host -1: of that namespace. 10.118.0.0/16. */
uint32_t testbed_management_address(int host);

/* A running testbed: sessions with all its namespaces. */
struct testbed {
	const struct model_fabric *fabric;
	struct host_net **hosts;	/* [n_hosts] */
	struct host_net **devices;	/* [n_devices] */
	int n_ends;
	struct host_link *tx, *rx;	/* [n_ends], of hosts; ifindex 0:
					 * no netdev. As of testbed_links() */
};

/* WEFT_EUNAVAIL when a namespace or netdev is missing (is it up?). */
int testbed_open(const struct model_fabric *f, struct testbed **out, struct err *err);
void testbed_close(struct testbed *t);
/* Reads tx and rx again. */
int testbed_links(struct testbed *t, struct err *err);

/* A device's driver, in plain calls that return when it has answered; nothing
 * is sent before the first. Errors as of dry_run_open(). The fabric is not
 * kept. */
struct testbed_device;
int testbed_device_new(const struct model_fabric *f, int device,
		       struct testbed_device **out, struct err *err);
void testbed_device_free(struct testbed_device *dev);
/* fn is called each second while the device is waited for; NULL: no more. */
typedef void (*testbed_tick_fn)(void *arg);
void testbed_device_tick(struct testbed_device *dev, testbed_tick_fn fn, void *arg);
/* *xcs: the circuits that carry light, sorted; free(). programs of a ring,
 * the caller's; may be NULL. */
int testbed_device_read(struct testbed_device *dev, struct optics_xc **xcs,
			int *n, struct ring_programs *programs, struct err *err);
/* All that the device says; *out: drv_snapshot_fini(), also on error. */
struct drv_snapshot;
int testbed_device_snapshot(struct testbed_device *dev, struct drv_snapshot *out, struct err *err);
/* One circuit more or less. One more fails if a port of it is in use. */
int testbed_device_change(struct testbed_device *dev, bool add,
			  struct optics_xc xc, struct err *err);
/* What the devices hold, as their driver reads it. One a device. */
int testbed_read(const struct model_fabric *f, struct plan_light **light, struct err *err);
void testbed_light_free(const struct model_fabric *f, struct plan_light *light);
/* Whose light each end is to receive, by the circuits, the programs' present
 * steps and the fibres as written; -1: none. *from: [n_ends], free(). */
int testbed_lit(const struct model_fabric *f, int **from, struct err *err);

/* ---- programs of rings ---- */

struct testbed_program {
	int ring;		/* device */
	uint32_t step, steps;
};

/* The program of a job and the step that it is at. WEFT_ENOTFOUND: no ring
 * has one of that name. */
int testbed_program(const struct model_fabric *f, const char *job,
		    struct testbed_program *out, struct err *err);
/* Takes it to another step, lit when this returns. WEFT_EINVAL: it has none
 * such. */
int testbed_step(const struct model_fabric *f, const char *job, uint32_t step, struct err *err);

/* The plan of the fabric's jobs that the devices hold. WEFT_ESTALE when
 * they hold another. *out: plan_free. */
int testbed_plan(const struct model_fabric *f, struct plan **out, struct err *err);

/* Gives each host its addresses, on its first ports, and its routes along these arcs: fixed
 * neighbours where an arc leads, and the shortest path (fewest arcs, lowest ports) to
 * all others, each of parallel arcs to another address; what was routed before and is
 * not wanted any more is taken away. *routes counts those wanted. WEFT_ESTALE: another
 * user's is in the way. */
int testbed_route(struct testbed *t, const struct plan_arc *arcs, int n,
		  int *routes, struct err *err);

/* ---- runs ---- */

struct json_t;

struct testbed_run_options {
	int64_t size_bytes;	/* of the whole vector */
	int64_t repeat;		/* >= 1 */
	bool barriers;		/* between steps */
	bool compare;		/* with MPI's own collective */
	/* In place of the schedule, on the ranks of the job; NULL behind its arguments. NULL: the
	 * schedule. */
	const char *const *program;
	int64_t limit_ns;	/* of each of the two; 0: none */
	const volatile bool *stop;	/* ends it; or NULL */
};

/* What left by the port of an arc of the job while its schedule ran, the first time too: frames'
 * bytes, with acknowledgements of what came by other arcs. */
struct testbed_run_arc {
	int tx_port, rx_port;
	uint64_t bytes;
};

struct testbed_run {
	struct json_t *result;		/* of launch_run(); of a program a text */
	struct json_t *compared;	/* the same with mpi_time_ns; NULL: not asked */
	struct testbed_run_arc *arcs;	/* sorted by tx_port */
	int n_arcs;
	uint64_t drops;			/* frames, of the queues of all hosts */
};

/*
 * Runs the schedule of a job of the plan that the devices hold (testbed_plan) by Open MPI, a
 * rank on the host that it is placed on, after testbed_route(). Waits for its end; the
 * calling thread is in another namespace meanwhile, and TMPDIR another. WEFT_EUNSUPPORTED:
 * a job on a ring, ranks of a host that are not in a row, too many hosts; errors of
 * launch_run(). out: testbed_run_fini(), also after an error.
 */
int testbed_run(struct testbed *t, const struct plan *p, const struct plan_job *job,
		const struct testbed_run_options *o, struct testbed_run *out, struct err *err);
void testbed_run_fini(struct testbed_run *r);

/* ---- probes ---- */

/* Frames that one end sent and another received. */
struct testbed_heard {
	int from, to;
	bool at_tx;		/* it came in by the fibre for sending */
	int64_t received;
};

struct testbed_probe {
	int64_t *sent;			/* [n_ends] frames */
	struct testbed_heard *heard;	/* sorted by from, to */
	int n_heard;
};

/* A socket in every host. t must outlive it. */
struct testbed_prober;
int testbed_prober_new(struct testbed *t, struct testbed_prober **out, struct err *err);
void testbed_prober_free(struct testbed_prober *p);

/* Every end that has a transmit fibre sends a frame each interval, for as
 * long as given; then what is under way is waited for, until nothing came for
 * patience_ms. stop (may be NULL) ends it early. At least one frame is
 * sent. */
void testbed_probe(struct testbed_prober *p, int64_t duration_ms, int64_t interval_ms,
		   int patience_ms, const volatile bool *stop, struct testbed_probe *out);
void testbed_probe_fini(struct testbed_probe *p);

/* Echo requests that may take one hop, from every host to every other, three
 * of them at most, each waited for until nothing came for patience_ms.
 * answered: [n_hosts * n_hosts], from * n_hosts + to; false on the diagonal. */
int testbed_ping(struct testbed *t, int patience_ms, bool *answered, struct err *err);

#endif
