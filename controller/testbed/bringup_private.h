/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of bring-up share: the record, and the course of a run.
 *
 * The record (struct bringup) holds what was observed, the tries of pairs, and
 * our circuits; the state file keeps it. Conclusions, such as where a fibre
 * leads or which input can light a switch, are not kept: bringup_settle draws
 * them from the tries again. A run (struct bringup_run) adds the sessions with
 * devices and is gone when bringup_run() returns. Losses are milli-dB, power is
 * milli-dBm; ports count from 0, as in the fabric.
 */
#ifndef WEFT_TESTBED_BRINGUP_PRIVATE_H
#define WEFT_TESTBED_BRINGUP_PRIVATE_H

#include "controller/testbed/bringup.h"
#include "drivers/optics/optics.h"
#include "lib/base/vec.h"

#define DARK_MDBM (-40000)		/* and below: no light */
#define SLACK_MDB 1000			/* over the loss that is written */
#define NO_LIGHT_MDB INT32_MAX		/* as a loss */
#define UNKNOWN_LOSS_MDB INT32_MIN
#define MAX_TRIES 3			/* observations before a fibre is dark */

enum bringup_method { BY_FRAMES, BY_POWER };

/* Where light from an output arrives. AT_OUTPUT: at another output (by frames:
 * at a host's transmit fibre), so the pair is reversed. */
enum bringup_reach { REACH_UNKNOWN, REACH_NOTHING, REACH_INPUT, REACH_OUTPUT };

/* The host at one side's port of a switch, by frames. */
struct bringup_end {
	int port;		/* fabric->ports, -1: not found */
	bool reversed;		/* of an output: at the host's transmit fibre */
	int64_t sent, received;	/* frames over the circuit that showed it */
	bool is_split;		/* of an output: another host receives them too, */
	int split_port;		/* at this port */
};

/* Where an output's fibre to another switch leads. */
struct bringup_far {
	enum bringup_reach reach;
	int device, port;	/* the other end, if it arrives, else -1 */
	bool is_split;		/* it arrives at a second input too, which is this one */
	int split_device, split_port;
	int in;			/* lit from here, -1: never lit */
	int32_t path_mdb;	/* loss from there, or NO_LIGHT_MDB; of a device
				 * without monitors UNKNOWN_LOSS_MDB */
	int32_t fibre_mdb;	/* UNKNOWN_LOSS_MDB: an end is not measured */
	int64_t sent, received;	/* frames, as above */
};

/* What is known of the fibre into the input of a device without monitors. */
enum bringup_input { INPUT_UNSEEN, INPUT_DARK, INPUT_LIT };

/* One circuit of a device without monitors, and what was observed. */
struct bringup_try {
	int device;
	struct optics_xc xc;
	int from_device, from_out;	/* whose light it was; -1: a laser, by
					 * frames that of host port from_out */
	enum bringup_reach reach;	/* never unknown */
	int to_device, to_port;		/* where it arrived; -1: at host port
					 * to_port */
	int32_t loss_mdb, limit_mdb;	/* from the laser, or that output, to
					 * there; or UNKNOWN_LOSS_MDB */
	int64_t sent, received;		/* frames */
	bool is_split;			/* it arrived at a second place too: this */
	int split_device, split_port;	/* one, device and port as above */
};

/* An input or an output of a device. */
struct bringup_port {
	int trunk;		/* as written: of fabric->trunks, -1: none */
	struct bringup_end end;		/* by frames: a host's transmit fibre at
					 * an input, a receive fibre at an output */
	int32_t mdbm;		/* with no circuit anywhere */
	bool blocked;		/* not to be used: out of order, locked, worn */
	bool kept;		/* in a circuit of others that stays */
	enum bringup_input seen;	/* of an input, without monitors */
};

/* What is known of a device, and of how its light can be had. */
struct bringup_device {
	struct bringup_port *in, *out;	/* [n_in], [n_out] */
	struct bringup_far *far;	/* [n_out] */

	int source;		/* input that has light or can be lit, or -1 */
	int feed_device, feed_out;	/* lit over this, device -1: a laser.
					 * Feeds form a forest. */
	int feed_in;		/* of a feed_device without monitors */

	/* as its driver says */
	bool unmonitored;	/* it does not measure both sides; by frames:
				 * every switch, as only hosts observe */
	bool robot;		/* its moves take seconds, and wear it out */
	int64_t move_ns;	/* what one usually takes */
};

/* A circuit of ours, from before it is set up until its removal is confirmed.
 * */
struct bringup_circuit {
	int device;
	struct optics_xc xc;
	bool made;		/* the switch has confirmed it */
	bool removing;		/* a robot was asked to take it out */
};

/* The record: all that the state file keeps, and what follows from it. */
struct bringup {
	const struct model_fabric *fabric;
	enum bringup_method method;
	struct bringup_device *devices;		/* [n_devices] */
	struct bringup_circuit *lit;	/* ours, in the order of set-up */
	int n_lit;			/* <= bringup_max_lit() */
	bool has_levels;		/* the ports' mdbm were read */
	VEC(struct bringup_try) tries;
	int64_t moves, moves_ns;	/* of robots, in this run */
};

/* How many circuits may be on the record at a time: b->lit has room for them. */
int bringup_max_lit(const struct model_fabric *f);

struct bringup_port *bringup_port(const struct bringup *b, int device, bool out, int port);
/* Where a fibre as written begins or ends, NULL: at a host or nowhere. */
const struct model_trunk *bringup_trunk_at(const struct bringup *b, int device, bool out, int port);
/* It is in a circuit of others that stays, or by the file its fibre leads to one that is: it is
 * not tried, and is as written. device -1: false. */
bool bringup_is_kept(const struct bringup *b, int device, bool out, int port);

/* ---- bringup_pairs.c: which circuits of unmonitored devices are tried ---- */

/* The next pair to try, the same for the same tries; b->lit has circuits that
 * had better stay. False: there is none. Inputs that a switch without light
 * feeds wait until it has a source. O(devices * ports * (ports + tries)). */
bool bringup_next_pair(const struct bringup *b, int *device, struct optics_xc *xc);
/* That a circuit on b->lit is what some switch's light comes by. */
bool bringup_is_feed(const struct bringup *b, const struct bringup_circuit *c);
bool bringup_was_tried(const struct bringup *b, int device, struct optics_xc xc);
/* Moves of robots that are still to be made, if all fibres are good. */
int64_t bringup_moves_left(const struct bringup *b);
/* Ports of unmonitored devices of which something can be known, and of which
 * it is; added to both. */
void bringup_count_pairs(const struct bringup *b, int *done, int *total);
/* Puts what the tries tell into ends, far, seen and source of the devices. */
void bringup_settle(struct bringup *b);
/* That the file has a fibre there that light can be observed through. */
bool bringup_is_observable(const struct bringup *b, int device, bool out, int port);

/* A try that loses too much, and what is at fault: nothing (good in another),
 * an input's fibre, an output's, or the path, no more is known. */
enum bringup_fault { FAULT_NONE, FAULT_INPUT, FAULT_OUTPUT, FAULT_PATH };
enum bringup_fault bringup_judge(const struct bringup *b, const struct bringup_try *t);

/* ---- bringup_findings.c: what the file of corrections shows too ---- */

/* An input or an output of a device; device -1: none. */
struct bringup_place {
	int device, port;
};

void bringup_put_place(const struct bringup *b, struct bringup_place at,
		       bool out, char text[BRINGUP_NAME_MAX]);
void bringup_put_host(const struct model_port *h, bool rx, char text[BRINGUP_NAME_MAX]);
/* Where a fibre of a host's port ends: by the file, and by frames. *end: the
 * observation, or NULL. */
struct bringup_place bringup_written(const struct model_port *h, bool rx);
struct bringup_place bringup_find_host(const struct bringup *b, int port,
				       bool rx, const struct bringup_end **end);
/* By frames: no host was found at the other side of its switch, so that nothing
 * could be sent over it, or received. */
bool bringup_host_is_untested(const struct bringup *b, int port, bool rx);
/* By power: of a host's port. */
bool bringup_is_reversed(const struct bringup *b, const struct model_port *h);
bool bringup_tx_is_dark(const struct bringup *b, const struct model_port *h);
bool bringup_rx_is_gone(const struct bringup *b, const struct model_port *h);
/* What was found at a written fibre's output; whether it ends where that does;
 * the written fibre that ends where it was found, or -1; what one may lose. */
const struct bringup_far *bringup_far_of(const struct bringup *b, const struct model_trunk *t);
/* That some output's fibre was found to end at this input. */
bool bringup_is_found(const struct bringup *b, int device, int in);
bool bringup_leads_to(const struct bringup_far *far, const struct model_trunk *t);
bool bringup_is_looped(const struct bringup_far *far, int device);
int bringup_owner_of(const struct bringup *b, const struct bringup_far *far);
int32_t bringup_limit_of(const struct model_trunk *t);
/* A fibre into an unmonitored device that no light was seen through. */
bool bringup_is_untested(const struct bringup *b, const struct model_trunk *t);

/* Sorts findings so that each fibre's place is free when it is laid there, in
 * their order; of a circle the last one has to be taken out first. Else they
 * stay as they were. O(n^2). */
void bringup_order(struct bringup_finding *v, int n);

/* ---- the course of a run ---- */

struct testbed_device;
struct testbed;
struct testbed_prober;
struct testbed_heard;
struct bringup_run;

/* What one switch measures, in milli-dBm. */
struct bringup_levels {
	int32_t *in, *out;
	int64_t settle_us;	/* after a change, as the driver says */
};

/* A method. All return 0 or an error, with which the run ends. */
struct bringup_observer {
	/* Once, before the first circuit: takes over what an earlier run left,
	 * and makes sure that nothing else carries light. */
	int (*begin)(struct bringup_run *r, struct err *err);
	/* Tries fibres between switches; *tried: whether any is known now that
	 * was not. Called so often, before pairs or once they are known. */
	int (*try_trunks)(struct bringup_run *r, bool *tried, struct err *err);
	bool before_pairs;
	/* Tries one circuit of an unmonitored device: *t has device and xc, and
	 * is to have what was observed. Circuits that feed others may stay. */
	int (*try_pair)(struct bringup_run *r, struct bringup_try *t, struct err *err);
	/* Once, when all is known and no circuit is left. May be NULL. */
	int (*end)(struct bringup_run *r, struct err *err);
};

extern const struct bringup_observer bringup_frames, bringup_power;

/* One run of bringup_run() on a record. Ends with it. */
struct bringup_run {
	struct bringup *b;
	struct bringup_options options;
	const struct bringup_observer *observer;
	struct testbed_device **devices;	/* [n_devices], NULL: a ring */
	bringup_step_fn fn;
	void *arg;
	struct bringup_progress reported;	/* last, and its text */
	char text[160];
	int64_t move_began_ns;
	/* by frames */
	struct testbed *testbed;
	struct testbed_prober *prober;
	struct testbed_heard *dark;	/* [n_dark], with no circuit */
	int n_dark;
	/* by power, [n_devices] */
	struct bringup_levels *base;	/* with the circuits that feed the
					 * switch at hand */
	struct bringup_levels *now;
};

/* ---- bringup_circuits.c ---- */

/* Sets a circuit up, unless it is; it goes on the record, and is reported, first.
 * WEFT_ELIMIT, WEFT_ECANCELED: before anything was sent, and it is off the record
 * again. After another error it may be there, and stays on it. */
int bringup_light(struct bringup_run *r, int device, struct optics_xc xc, struct err *err);
/* Takes out what was set up last, down to so many; a circuit leaves the record
 * when its device has confirmed that. */
int bringup_unlight(struct bringup_run *r, int down_to, struct err *err);
bool bringup_is_lit(const struct bringup *b, int device, struct optics_xc xc);

/* ---- entries of a fabric's file: bringup_fibres.c ---- */

#define BRINGUP_RANGES_MAX 8	/* of a name; more numbers stay as they are */

struct bringup_span {
	long lo, hi;
	int digits;		/* of lo, as written */
	bool padded;		/* lo begins with a 0 */
};

/* "gpu[0-3].p0": its text with a mark for each number, and those. */
struct bringup_range {
	char form[BRINGUP_NAME_MAX];
	int n;
	struct bringup_span v[BRINGUP_RANGES_MAX];
};

struct bringup_fibre {
	struct bringup_range from, to;
	char more[96];		/* ", KEY: VALUE" of all of them */
	bool alone;
};

struct bringup_fibres {
	struct bringup_fibre *v;
	size_t n, cap;
};

/* Adds a fibre between two names (each below BRINGUP_NAME_MAX bytes), to the last entry if it
 * follows on that and neither is to stay alone. The caller frees the list. */
void bringup_fibres_add(struct bringup_fibres *list, const char *from, const char *to,
			const char *more, bool alone);
/* A line for each entry. */
void bringup_fibres_put(const struct bringup_fibres *list, struct buf *out);

/* ---- by power: bringup_power.c, bringup_power_pairs.c ---- */

#define POWER_PATIENCE_US 200000	/* before a fibre is called dark */

/* Reads the levels of one device, or of all; those without monitors only until
 * b->has_levels, for they have nothing new to tell. WEFT_ESTALE: a circuit
 * there is not ours. */
int bringup_read_levels(struct bringup_run *r, int device,
			struct bringup_levels *l, struct err *err);
int bringup_read_all(struct bringup_run *r, struct bringup_levels *levels, struct err *err);
/* Of the input, or the output, where light arrived. */
int32_t bringup_level(const struct bringup_levels *v, enum bringup_reach reach,
		      int device, int port);
/* What was dark in base and is lit now: where light from the output, or of a
 * laser (device -1), leads. Of two inputs the one that written ends at, if any,
 * is the first; NULL: the file has no fibre. */
void bringup_find_far(const struct bringup_run *r, int device, int out,
		      const struct model_trunk *written, struct bringup_far *far);
/* Lights a switch's source over the devices before it. */
int bringup_light_source(struct bringup_run *r, int device, struct err *err);
/* Circuits at the bottom of the record that feed switches over unmonitored
 * devices. */
int bringup_count_feeds(const struct bringup *b);

int bringup_power_try_pair(struct bringup_run *r, struct bringup_try *t, struct err *err);

#endif
