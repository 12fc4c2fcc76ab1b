/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weftd: one loop that owns store, devices and socket. Calls are answered
 * from it; planning runs in processes of its own, over copies. Whatever concerns devices
 * goes through one queue, so that one thing happens to the circuits at a time.
 *
 * The parts stand in rooms of their own (core, hosts, ha, change, jobs, views);
 * daemon.c makes them, connects them, and stops them.
 */
#ifndef WEFT_DAEMON_DAEMON_H
#define WEFT_DAEMON_DAEMON_H

#include <stdbool.h>
#include <uv.h>

#include "lib/base/err.h"
#include "lib/rpc/rpc.h"

#define DAEMON_SOCKET "/run/weft/weftd.sock"
#define DAEMON_STATE_DIR "/var/lib/weft"
#define DAEMON_SOCKET_MODE 0660

struct daemon;

struct daemon_config {
	const char *socket;
	int socket_mode;	/* of the socket file, 0 to 0777: who may connect */
	int socket_fd;		/* it listens already, see inherited_socket(); 0: no */
	const char *state_dir;	/* holds the store; made when missing */
	const char *fabric;	/* shown and planned while nothing was ever
				 * applied; NULL: none */
	uid_t owner;		/* may change things, like root */
	const char *access;	/* file that grants roles, NULL: none */
	const char *listen_host; /* address for TCP, NULL: no TCP */
	int listen_port;	/* 0: any */
	struct rpc_tls_files tls; /* of TCP */
	const char *metrics_host; /* loopback address, NULL: no metrics */
	int metrics_port;	/* 0: any */
	const char *page_host;	/* likewise, for the page */
	int page_port;
	int64_t lease_ms;	/* others stand by: how long a leader that
				 * is silent stays one; 0: it is not */
	const char *etcd;	/* members of an etcd that keeps the store's copies
				 * alike, with lease_ms; NULL: the file is shared */
	const char *etcd_prefix; /* of its keys */
	struct rpc_tls_files etcd_tls;
	const char *domains;	/* failure domains that it leads, with etcd: "row1,row2";
				 * NULL: all */
	struct store *led;	/* a store that this process leads, taken over; NULL:
				 * opened from state_dir */
	struct election *election; /* with led */
	int64_t plan_memory_mib;	/* of a process that plans; 0: no limit */
	int64_t plan_time_s;	/* of a plan, at least 1 */
	int64_t poll_ms;	/* between regular readings; 0: none */
};

/*
 * Locks and opens the store, opens the devices of the applied configuration,
 * listens, and begins to read the devices in the background: calls are
 * served from the moment this returns, with state "reading" until that is
 * done. Changes no circuit. The strings of cfg must outlive it. WEFT_ESTALE when
 * another weftd has the store, and the errors of store_open, rpc_server_new.
 */
int daemon_new(uv_loop_t *loop, const struct daemon_config *cfg,
	       struct daemon **out, struct err *err);

/* Looks on while another weftd leads, and answers what the store knows, until
 * this process leads: cfg->led and cfg->election are set. WEFT_ECANCELED: stopped by a
 * signal. Runs the loop. */
int daemon_standby(uv_loop_t *loop, struct daemon_config *cfg, struct err *err);
/* Instead of daemon_new, after daemon_standby: stopped meanwhile, it does not lead. The next one
 * need not wait. */
void daemon_give_up(struct daemon_config *cfg);

/* Reads the certificates and the access file again. What is wrong with them
 * is logged, and the old ones stay in use. */
void daemon_reload(struct daemon *d);

/* The TCP port listened on, 0 without one. */
int daemon_port(const struct daemon *d);

/* The port that metrics are served on, 0 without one. */
int daemon_metrics_port(const struct daemon *d);

/* The port that the page is served on over plain HTTP, 0 without one. */
int daemon_page_port(const struct daemon *d);

/* Drains: refuses new changes, lets a running one end, closes socket,
 * devices (circuits stay) and store, frees, then calls done. Call once. */
void daemon_stop(struct daemon *d, void (*done)(void *arg), void *arg);

/* The program: options, signals, notification of the service manager. */
int daemon_main(int argc, char **argv);
/* The same as a process that nothing was opened in yet: what it inherited is closed first, see
 * inherited_close_others(). */
int daemon_process_main(int argc, char **argv);

#endif
