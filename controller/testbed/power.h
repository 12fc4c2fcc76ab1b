/*
 * Bring-up of switches that measure power, where no host can be asked to send:
 * the lasers of all hosts are on. What arrives with no circuit anywhere tells
 * which inputs have a laser. Then each output is lit, alone, from one of those:
 * the output's monitor tells the loss of the path through the switch, and the
 * input that was dark and is lit now is where the fibre leads. A switch
 * without a laser is lit over fibres that were found, through switches before
 * it.
 *
 * Power does not tell one host from another, nor what reaches a host.
 */
#ifndef WEFT_TESTBED_POWER_H
#define WEFT_TESTBED_POWER_H

#include "controller/testbed/bringup.h"

#define POWER_DARK_MDBM (-40000)	/* and below */
#define POWER_SLACK_MDB 1000		/* over the loss that is written */
#define POWER_NO_LIGHT INT32_MAX	/* as a loss */

/* What was seen when an output was lit. OUTPUT: light came in at another
 * output, so the pair is reversed. */
enum power_way { POWER_UNKNOWN, POWER_NOTHING, POWER_INPUT, POWER_OUTPUT };

struct power_far {
	enum power_way way;
	int device, port;	/* the other end */
	int in;			/* lit from here, -1: never lit */
	int32_t path_mdb;	/* loss from there, or POWER_NO_LIGHT */
	int32_t fibre_mdb;
};

struct power_device {
	int32_t *in, *out;	/* milli-dBm with no circuit anywhere */
	struct power_far *far;	/* [n_out] */
	int source;		/* input that has light or can be lit, or -1 */
	int feed_device, feed_out;	/* lit over this, device -1: a laser */
};

struct power_circuit {
	int device;
	struct light_xc xc;
	bool made;		/* the switch has said so */
};

struct power {
	const struct model_fabric *fabric;
	struct power_device *devices;	/* [n_devices] */
	struct power_circuit *lit;	/* ours, in the order of light */
	int n_lit;
};

/* WEFT_EUNSUPPORTED: it has rings, any-to-any switches or multiplexers. */
int power_new(const struct model_fabric *f, struct power **out,
	      struct err *err);
void power_free(struct power *p);

/* The state file, as bringup_save() and bringup_load(). */
int power_save(const struct power *p, struct buf *out, struct err *err);
int power_load(struct power *p, const char *data, size_t len,
	       struct err *err);

/* As bringup_step_fn; done and total count outputs. */
typedef int (*power_step_fn)(const struct power *p, int done, int total,
			     const char *text, void *arg, struct err *err);

/* Lights what is not known yet; fn is called before each circuit is made.
 * WEFT_ESTALE names a circuit that is not ours; WEFT_EUNSUPPORTED a switch
 * that does not measure both sides. On any return the circuits it made are
 * out, unless a switch does not answer: then they are in p->lit. */
int power_run(struct power *p, power_step_fn fn, void *arg, struct err *err);

struct power_finding {
	enum bringup_kind kind;
	char fibre[256], with[256], written[256], found[256];	/* or "" */
	int32_t loss_mdb, limit_mdb;	/* lossy */
};

/* What differs from the file. *v: free(). O(ports + trunks^2). */
int power_findings(const struct power *p, struct power_finding **v, int *n,
		   struct err *err);

/* As bringup_yaml(). Fibres to hosts stay as written, unless they are dark;
 * so do those that nothing could light. */
int power_yaml(const struct power *p, struct buf *out, struct err *err);

#endif
