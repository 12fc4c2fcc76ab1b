/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bring-up: finding out how a new fabric is cabled, against how its file says
 * it is. Circuits are set up one at a time where nothing else carries light,
 * and what is observed behind each tells where the fibres at its ends lead.
 *
 * One engine chooses what is tried next, sets it up, keeps the state file, and
 * draws the conclusions. What is observed comes from one of two methods:
 *
 * - by frames, where the switches are network namespaces of this machine: every
 *   host sends frames that name their sender. A circuit tells both the host
 *   that sends into its input and the hosts that its output leads to. Fibres
 *   between switches are tried last, with a circuit at either end.
 * - by optical power, where no host can be asked to send: the lasers of all
 *   hosts are on, and switches measure. An output is lit from an input with
 *   light; the input elsewhere that was dark and is lit now is where its fibre
 *   leads. Power tells neither one host from another nor what reaches a host.
 *   Devices that measure nothing, robotic panels above all, are judged by what
 *   arrives at the monitors behind them, with as few moves as possible.
 */
#ifndef WEFT_TESTBED_BRINGUP_H
#define WEFT_TESTBED_BRINGUP_H

#include <stdbool.h>
#include <stdint.h>

#include "controller/model/model.h"
#include "lib/base/buf.h"
#include "lib/base/err.h"

#define BRINGUP_NAME_MAX 256

/* The record of one bring-up; see bringup_private.h. */
struct bringup;

/* By frames if a device's driver is one of network namespaces, else by power.
 * WEFT_EUNSUPPORTED: power, and the fabric has any-to-any switches or
 * multiplexers; otherwise as testbed_check(). f must outlive *out. */
int bringup_new(const struct model_fabric *f, struct bringup **out, struct err *err);
void bringup_free(struct bringup *b);

/* The state file: what is known so far, for this very fabric text. Reading
 * WEFT_ESTALE: it is of another text; WEFT_EINVAL: it is damaged, or of the
 * other method. */
int bringup_save(const struct bringup *b, struct buf *out, struct err *err);
int bringup_load(struct bringup *b, const char *data, size_t len, struct err *err);

struct bringup_options {
	int64_t max_moves;	/* of robots, in this run */
	bool around;		/* circuits of others stay, and their ports are as written */
};

/* What a run reports before it sets up a circuit or takes a robot's one out,
 * and again each second while a robot moves. */
struct bringup_progress {
	int done, total;	/* ports of which something can be known */
	int64_t moves, moves_left;	/* of robots, in this run */
	int64_t left_ns;	/* what those left take, by those made so far */
	int64_t waiting_ns;	/* > 0: reported again, so long after */
	const char *text;	/* the circuit; valid during the call */
};

/* Called by bringup_run() in its own thread of control. With waiting_ns == 0
 * the state is to be saved: the device is asked only after this returns. Then a
 * positive answer stops the run with WEFT_ECANCELED, a negative one with that
 * code and err; answers while a robot moves are ignored, and err is NULL. */
typedef int (*bringup_step_fn)(const struct bringup_progress *now, void *arg, struct err *err);

/* Tries what is not known yet. WEFT_ESTALE: there is a circuit, or light, that
 * is not of this bring-up; WEFT_EUNSUPPORTED: no switch measures both sides;
 * WEFT_ELIMIT: robots need more moves, before any that could not be taken back
 * within the limit. On any return its circuits are out, unless a device does
 * not answer; after an error those of robots stay on the record for the next
 * run, which then need not make them again. */
int bringup_run(struct bringup *b, const struct bringup_options *options,
		bringup_step_fn fn, void *arg, struct err *err);

/* Moves of robots in the last run. */
int64_t bringup_moves(const struct bringup *b);

enum bringup_kind { BRINGUP_SWAPPED, BRINGUP_MOVED, BRINGUP_MISSING,
		    BRINGUP_REVERSED, BRINGUP_LOSSY, BRINGUP_UNWRITTEN,
		    BRINGUP_UNTESTED, BRINGUP_LOOPED, BRINGUP_SPLIT };

/* One difference. Names are those of the file: of a host's fibre
 * "HOST.PORT.tx" (reversed: "HOST.PORT"), of one between switches its output,
 * "SWITCH.outN", of a path through a switch "SWITCH.inM -> outN"; "": none. */
struct bringup_finding {
	enum bringup_kind kind;
	char fibre[BRINGUP_NAME_MAX];
	char with[BRINGUP_NAME_MAX];	/* swapped or moved to its place */
	char written[BRINGUP_NAME_MAX], found[BRINGUP_NAME_MAX]; /* far ends */
	int64_t sent, received;		/* lossy, by frames; else sent is 0 */
	int32_t loss_mdb, limit_mdb;	/* lossy, by power */
};

/* What differs from the file: hosts' fibres, those between switches, then
 * switches; but what is to be laid elsewhere after what is in its place, so
 * that they can be mended one after the other. In a circle of them the last one
 * has to be taken out first. *v: free(). O(ports^2 + trunks^2). */
void bringup_findings(const struct bringup *b, struct bringup_finding **v, int *n);
const char *bringup_kind_name(enum bringup_kind kind);

/* Names of fibres that nothing can observe, and of rings, which are not tried:
 * neither known nor differences. *v: free(). O(ports + trunks). */
void bringup_unseen(const struct bringup *b, char (**v)[BRINGUP_NAME_MAX], int *n);

/* The fabric's text with the fibres as found; broken and reversed ones are
 * left out, as are those that end at their own switch, what could not be tried
 * stays as written. It is parsed again before it is given away. WEFT_EUNSUPPORTED: no line begins
 * with `fibres:`. */
int bringup_yaml(const struct bringup *b, struct buf *out, struct err *err);

#endif
