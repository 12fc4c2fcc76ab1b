/*
 * Bring-up of switches that measure power, where no host can be asked to send:
 * the lasers of all hosts are on. What arrives with no circuit anywhere tells
 * which inputs have a laser. Then each output is lit, alone, from one of those:
 * the output's monitor tells the loss of the path through the switch, and the
 * input that was dark and is lit now is where the fibre leads. A switch
 * without a laser is lit over fibres that were found, through switches before
 * it.
 *
 * Devices that measure nothing, robotic panels above all, are blind: what is
 * joined to one is seen only where light that went through it arrives at a
 * monitor. cabling_power_only.h says which of its circuits are tried; each tells of a fibre
 * to it and of one from it at once, since the moves of a robot take minutes.
 *
 * Power does not tell one host from another, nor what reaches a host.
 */
#ifndef WEFT_TESTBED_CABLING_POWER_H
#define WEFT_TESTBED_CABLING_POWER_H

#include "controller/testbed/bringup.h"
#include "lib/base/vec.h"

#define POWER_DARK_MDBM (-40000)	/* and below */
#define POWER_SLACK_MDB 1000		/* over the loss that is written */
#define POWER_NO_LIGHT INT32_MAX	/* as a loss */
#define POWER_NO_LOSS INT32_MIN		/* a loss that nobody knows */
#define POWER_ANY_MOVES INT64_MAX

/* What was seen when an output was lit. OUTPUT: light came in at another
 * output, so the pair is reversed. */
enum power_way { POWER_UNKNOWN, POWER_NOTHING, POWER_INPUT, POWER_OUTPUT };

struct power_far {
	enum power_way way;
	int device, port;	/* the other end */
	int in;			/* lit from here, -1: never lit */
	int32_t path_mdb;	/* loss from there, or POWER_NO_LIGHT; of a
				 * blind device POWER_NO_LOSS */
	int32_t fibre_mdb;	/* or POWER_NO_LOSS: an end is not measured */
};

/* What is known of the fibre into a blind device's input. */
enum power_seen { POWER_UNSEEN, POWER_DARK, POWER_LIT };

/* One circuit of a blind device, and what was seen. */
struct power_try {
	int device;
	struct optics_xc xc;
	int from_device, from_out;	/* whose light it was, -1: a laser's;
					 * nothing came: -1 */
	enum power_way way;		/* NOTHING, INPUT or OUTPUT */
	int to_device, to_port;		/* where it arrived */
	int32_t loss_mdb, limit_mdb;	/* from the laser, or that output, to
					 * there; or POWER_NO_LOSS */
};

struct power_device {
	int32_t *in, *out;	/* milli-dBm with no circuit anywhere */
	struct power_far *far;	/* [n_out] */
	int source;		/* input that has light or can be lit, or -1 */
	int feed_device, feed_out;	/* lit over this, device -1: a laser */
	int feed_in;		/* of a blind feed_device: from here */
	int *in_trunk, *out_trunk;	/* as written: of fabric->trunks, -1 */

	/* what its driver says */
	bool blind;		/* it does not measure both sides */
	bool robot;		/* its moves take seconds, and wear it out */
	int64_t move_ns;	/* what one usually takes */
	bool *in_bar, *out_bar;	/* ports that are not to be used: out of order,
				 * locked, worn, or in a circuit that is kept */
	enum power_seen *seen;	/* [n_in] of a blind one */
};

struct power_circuit {
	int device;
	struct optics_xc xc;
	bool made;		/* the switch has said so */
	bool going;		/* it is being taken out */
};

struct power_options {
	int64_t max_moves;	/* of robots, in this run */
	bool keep;		/* circuits of others on blind devices stay */
};

/* Before a circuit is made or taken out, and each second that a robot takes. */
struct power_progress {
	int done, total;	/* outputs; of blind devices inputs too */
	int64_t moves, moves_left;	/* of robots, in this run */
	int64_t left_ns;	/* what those take, by those made so far */
	int64_t waiting_ns;	/* it is said again, so long after: a robot
				 * moves; an answer ends nothing */
	const char *text;	/* the circuit */
};

struct power {
	const struct model_fabric *fabric;
	struct power_device *devices;	/* [n_devices] */
	struct power_circuit *lit;	/* ours, in the order of light */
	int n_lit;
	bool has_levels;	/* in and out of the devices were read */
	VEC(struct power_try) tries;
	int64_t moves, moves_ns;	/* of robots, in this run */
};

/* WEFT_EUNSUPPORTED: it has rings, any-to-any switches or multiplexers. */
int power_new(const struct model_fabric *f, struct power **out,
	      struct err *err);
void power_free(struct power *p);
/* How many circuits may be on the record at a time. */
int power_max_lit(const struct model_fabric *f);

/* The state file, as bringup_save() and bringup_load(). */
int power_save(const struct power *p, struct buf *out, struct err *err);
int power_load(struct power *p, const char *data, size_t len,
	       struct err *err);

/* As bringup_step_fn. */
typedef int (*power_step_fn)(const struct power *p,
			     const struct power_progress *now, void *arg,
			     struct err *err);

/* Lights what is not known yet; fn is called before each circuit is made or
 * taken out. WEFT_ESTALE names a circuit that is not ours; WEFT_EUNSUPPORTED:
 * no switch measures both sides; WEFT_ELIMIT: more moves of robots are needed,
 * before any that could not be taken back within the limit. On any return the
 * circuits it made are out, unless a device does not answer: then they are in
 * p->lit, and so are those of robots after an error. */
int power_run(struct power *p, const struct power_options *options,
	      power_step_fn fn, void *arg, struct err *err);

struct power_finding {
	enum bringup_kind kind;
	char fibre[256], with[256], written[256], found[256];	/* or "" */
	int32_t loss_mdb, limit_mdb;	/* lossy */
};

/* What differs from the file. *v: free(). O(ports + trunks^2). */
int power_findings(const struct power *p, struct power_finding **v, int *n,
		   struct err *err);

/* Fibres that nothing measures, as the file calls them: not known, and no
 * differences. *v: free(). O(ports + trunks). */
int power_unseen(const struct power *p, char (**v)[256], int *n,
		 struct err *err);

/* As bringup_yaml(). Fibres to hosts stay as written, unless they are dark;
 * so do those that nothing could light. */
int power_yaml(const struct power *p, struct buf *out, struct err *err);

#endif
