/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client as orchestrators are: calls of weftd by gRPC over its socket, asked of one weftd after
 * the other until one answers that leads. Each function blocks its process in virtual time, notes
 * the call in the history where it changes or reads what others rely on, and tells it in a line.
 *
 * What became of a call is one of three: done; refused, as weftd said so itself, or none was
 * reached; unknown, as it was sent and no answer came, or one that leaves it open. Of those
 * unknown, calls with a request id are asked again with the same id when the client is patient.
 */
#ifndef WEFT_TESTS_SIM_CLIENT_H
#define WEFT_TESTS_SIM_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "tests/sim/cluster/cluster.h"
#include "tests/sim/cluster/history.h"
#include "weft/v1/jobs.pb-c.h"
#include "weft/v1/weft.pb-c.h"

struct client {
	const char *name;	/* in lines and in the history */
	int weftd;		/* that is asked first: that answered last */
	int64_t patience_ns;	/* how long it goes on where none leads or none answers */
	int timeout_ms;		/* for one answer; of changes, which take long, ten times that */
	bool asks_again;	/* with the same request id, when the outcome is not known */
	bool silent;		/* notes nothing and tells nothing */
	int n_ids;		/* request ids that were made up */
};

/* What came of a call. */
struct client_answer {
	enum history_outcome outcome;
	int weftd;		/* that answered; -1: none did */
	struct err err;		/* code 0: none */
	Weft__V1__Verdict verdict;	/* of changes; unspecified: none came */
	int64_t change, generation;	/* of changes, 0: not told */
	int64_t begin_ns, end_ns;
};

/* Patient for 30 s, 5 s for an answer, asks again. */
void client_init(struct client *c, const char *name);

/* ---- changes; the outcome is returned, too ---- */

/* A variant of the fabric; confirm_within_ns 0: needs no confirmation. */
enum history_outcome client_apply(struct client *c, int variant, int64_t confirm_within_ns,
				  struct client_answer *a);
/* To a generation, 0: the one before the present. */
enum history_outcome client_rollback(struct client *c, int64_t generation,
				     struct client_answer *a);
/* Whichever waits, change 0. */
enum history_outcome client_confirm(struct client *c, int64_t change, struct client_answer *a);
/* Whatever runs. */
enum history_outcome client_cancel(struct client *c, struct client_answer *a);
/* A host, its port, a device or a port of that, at a domain (0: not divided). */
enum history_outcome client_drain(struct client *c, int domain, const char *target,
				  struct client_answer *a);
enum history_outcome client_undrain(struct client *c, int domain, const char *target,
				    struct client_answer *a);
/* An allreduce of so many hosts; waits for some seconds until it runs, or only until it is queued,
 * which is what is acknowledged. name is new. */
enum history_outcome client_request_job(struct client *c, const char *name, int hosts,
					int64_t duration_ns, bool wait, struct client_answer *a);
/* One circuit as a group; from, to: ports of hosts. replace: the group of the name becomes it. */
struct client_circuit {
	const char *from, *to;
	bool simplex, replace, no_queue, wait;
	int64_t duration_ns;
};

enum history_outcome client_request_circuit(struct client *c, const char *name,
					    const struct client_circuit *q,
					    struct client_answer *a);
/* Is not in the history: its end may come later, which it may anyway. */
enum history_outcome client_renew_job(struct client *c, const char *name, int64_t duration_ns,
				      struct client_answer *a);
enum history_outcome client_release_job(struct client *c, const char *name,
					struct client_answer *a);
/* Fails with the error of planning; changes nothing, and is not in the history. */
enum history_outcome client_plan(struct client *c, int variant, struct client_answer *a);

/* ---- reading ---- */

/* Of one weftd, asked once. 0, or a negative enum weft_err. The caller frees *out by
 * rpc_free_message(&(*out)->base). What a leader says is noted in the history. */
int client_status(struct client *c, int weftd, Weft__V1__StatusResponse **out, struct err *err);
int client_diff(struct client *c, int weftd, Weft__V1__DiffResponse **out, struct err *err);
/* Reads the devices. */
int client_verify(struct client *c, int weftd, Weft__V1__VerifyResponse **out, struct err *err);
int client_history(struct client *c, int weftd, int limit, Weft__V1__HistoryResponse **out,
		   struct err *err);
/* ended: also those that are over. */
int client_jobs(struct client *c, int weftd, bool ended, Weft__V1__ListJobsResponse **out,
		struct err *err);
/* The one that leads a domain and knows its devices, for which it waits at most so long; -1. */
int client_leader(struct client *c, int domain, int64_t wait_ns);
/* Waits until all domains have one, who have no change open. */
bool client_wait_ready(struct client *c, int64_t wait_ns);

/* By name of what a domain keeps: "hold h3", "job j1", "configuration"; other domains than the
 * first add themselves, "hold h3 of domain 1". Returns buf. */
#define CLIENT_TARGET 64
const char *client_target(char buf[CLIENT_TARGET], const char *kind, const char *name, int domain);

/* Watches from `*after` on (0: from now) until `until`, or the connection ends, and notes each
 * event; *after becomes the last one's sequence. */
int client_watch(struct client *c, int weftd, int64_t *after, int64_t until, struct err *err);

#endif
