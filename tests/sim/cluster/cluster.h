/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a run is made of: machines with a weftd each under a service manager, an etcd, and
 * devices, which are the real emulators behind their wire. All of it follows from one
 * description, a scenario, that is drawn by the seed or written down by a story.
 *
 * Names, in the run's folder: weftd 0 is machine "a", with the socket a.sock and its state in
 * a/state (several that share a store: shared/state); device 0 is machine "ocs0" ("ring0",
 * "rome0", ...), with the control socket ocs0.ctl; fabric files are fabric0.yaml and so on.
 */
#ifndef WEFT_TESTS_SIM_CLUSTER_H
#define WEFT_TESTS_SIM_CLUSTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/sim/kernel/sim.h"

#define CLUSTER_WEFTDS 6
#define CLUSTER_DEVICES 6
#define CLUSTER_FABRICS 8
#define CLUSTER_ETCDS 3
#define CLUSTER_HOSTS 8		/* h0 to h7, with a port to each switch */

/* How those who lead are found. */
enum cluster_turns {
	CLUSTER_ALONE,		/* one weftd, whose store is its own */
	CLUSTER_ETCD,
	CLUSTER_SHARED,		/* one store for all of them */
};

struct cluster_device {
	const char *dialect;	/* as --driver of weft-emulator says it */
	int domain;		/* of several failure domains, from 0 */
	const char *faults[4];	/* in force from the start, as --fault says them; NULL ends them */
	bool forgets;		/* its map is gone when its power was */
	/* Of stories that have fabric files of their own; NULL: as cluster_fabric has it. */
	const char *size, *option;	/* as --size, and one more of its options */
};

struct scenario {
	enum cluster_turns turns;
	int n_weftds;		/* in all: n-th leads, or stands by for, domain n % domains */
	int domains;		/* 0: not divided; else at least 2, with CLUSTER_ETCD only */
	int lease_s;
	int etcd_members;	/* 1 or 3, with CLUSTER_ETCD only */
	int poll_s;		/* regular readings of devices, 0: none */
	int n_devices;
	struct cluster_device devices[CLUSTER_DEVICES];
	int n_fabrics;		/* variants of the fabric, the first is the base */
	int n_clients;
	bool other_hand;	/* another user has free ports of the switches */
	bool restores;		/* weftd brings back what others take away */
	int64_t load_ns;	/* how long clients ask */
	int calm;		/* their pauses are so many times as long; 0: 1 */
	bool only_delays;	/* of faults, those that make something late */
	const char *weftd_options[4];	/* more of them; NULL ends them */
};

/* One weftd, one polatis-scpi switch, no clients: what a story begins with, and changes. */
void scenario_simple(struct scenario *s);
/* Two weftd by an etcd of one member, one switch, lease in seconds. */
void scenario_pair(struct scenario *s, int lease_s);
/* By chance, from SIM_FAULTS; does not depend on anything drawn later. */
void scenario_draw(struct scenario *s);
/* What was drawn, by an etcd with a lease in seconds, and only late answers go wrong. */
void scenario_delay(struct scenario *s, int lease_s);
/* One line that says what it is. */
void scenario_tell(const struct scenario *s);

/* ---- the run ---- */

/* Writes the fabric files and starts everything, each weftd and emulator under its manager, to
 * be run by sim_run. The scenario is copied. Once a run. */
void cluster_begin(const struct scenario *s);
const struct scenario *cluster_scenario(void);

/* Text of a variant of the fabric and its SHA-256 in hex, as weftd's status tells it. */
const char *cluster_fabric(int variant);
const char *cluster_fabric_digest(int variant);
/* -1: of none. */
int cluster_variant_of(const char *digest);

/* ---- weftd ---- */

/* "a", "b", ...: machines, which are those of sim.h's network too. */
const char *cluster_machine(int weftd);
const char *cluster_socket(int weftd);
/* Folder of its state, that has weft.db. */
const char *cluster_state(int weftd);
/* 0 where the fabric is not divided. */
int cluster_domain_of(int weftd);
/* At least 1. */
int cluster_domains(void);
/* The process that runs now, NULL: none (it has ended, and waits for its manager or was told to
 * stop, or its machine is away). */
struct sim_process *cluster_weftd(int weftd);
/* How often one was started, and what the last one ended with (-1: none has). */
int cluster_starts(int weftd);
int cluster_last_status(int weftd);

/* SIGKILL; the manager starts it again after 500 ms, as the shipped unit says. */
void cluster_kill(int weftd);
/* The orderly end by SIGTERM, which the manager does not start again; false: it was not there.
 * Of a process: cluster_wait_stopped waits for it and returns its status. */
bool cluster_stop(int weftd);
int cluster_wait_stopped(int weftd);
/* Its manager starts it unless it runs: of one that still stops, when it has ended; on a machine
 * that is off, when that has power. */
void cluster_start(int weftd);
/* A machine with all that runs there, of any sort: "a", "ocs0", "etcd1". What its disk had not
 * synced goes with the power. */
void cluster_power_off(const char *machine);
void cluster_power_on(const char *machine);
bool cluster_is_on(const char *machine);

/* ---- devices ---- */

const char *cluster_device_name(int device);	/* machine and name in the fabric */
/* -1: none has this name. */
int cluster_device_of(const char *name);
bool cluster_is_ring(int device);
/* The process that runs now, NULL: none does. */
struct sim_process *cluster_device(int device);
/* Ports a side; those from the first free one on have no fibres of the fabric. */
int cluster_ports(int device);
int cluster_first_free_port(int device);
/* Where "h3.p1" is: the device's name and its port, from 0. False: no port of a host. */
bool cluster_find_port(const char *name, const char **device, int *port);
/* Of a process: one line to the device's control socket, as docs/drivers.md has them. answer
 * (may be NULL) gets what it said without the "ok". 0, or a negative enum weft_err: it does not
 * answer, or said "error". */
int cluster_control(int device, const char *line, char *answer, size_t size);
/* The emulator's process ends and is started again after so long, by its manager: like power()
 * above, with or without its map (--state, `forgets`). */
void cluster_reboot(int device, int64_t away_ns);

#endif
