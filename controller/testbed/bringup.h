/*
 * Bring-up: finding out how a new fabric is wired. One circuit at a time is
 * lit while every host sends frames that say where they come from: who is
 * heard tells which transmit fibre ends at the in-port, and who hears it,
 * which receive fibre begins at the out-port.
 *
 * An in-port k is lit to out-port k first, which tells of both; what was
 * dark then is tried again with a partner that works, so that a broken fibre
 * is told from its partner's. N circuits for N healthy ports, one more for
 * each port that is not.
 *
 * Then fibres between switches: one that hosts are known to send to and one
 * that hosts are known to hear are lit from end to end, over the fibre that the
 * file says, or over each other one that is not known.
 */
#ifndef WEFT_TESTBED_BRINGUP_H
#define WEFT_TESTBED_BRINGUP_H

#include "controller/testbed/testbed.h"
#include "lib/base/buf.h"

#define BRINGUP_UNKNOWN (-2)	/* not lit yet */
#define BRINGUP_NONE (-1)	/* lit, and nothing came */

/* What one side's port of a switch was found to be fibred to. */
struct bringup_end {
	int port;		/* of a host, or as above */
	bool crossed;		/* out-ports: light came in at its transmit
				 * fibre */
	int64_t sent, received;	/* frames over the circuit that told */
};

/* Where an output's fibre to another switch leads. */
struct bringup_far {
	int device, port;	/* its input; device may be as above */
	int64_t sent, received;
};

struct bringup_device {
	struct bringup_end *in, *out;	/* [n_in], [n_out] */
	struct bringup_far *far;	/* [n_out] */
};

struct bringup {
	const struct model_fabric *fabric;
	struct bringup_device *devices;		/* [n_devices] */
	int lit_device;		/* whose circuit is lit, -1: none */
	struct optics_xc lit;
	int next_device;	/* the same of a switch behind it */
	struct optics_xc next;
};

int bringup_new(const struct model_fabric *f, struct bringup **out,
		struct err *err);
void bringup_free(struct bringup *b);

/* The state file: what is known so far, for this very fabric text. Reading
 * WEFT_ESTALE: it is of another text; WEFT_EINVAL: it is damaged. */
int bringup_save(const struct bringup *b, struct buf *out, struct err *err);
int bringup_load(struct bringup *b, const char *data, size_t len,
		 struct err *err);

/* done of total ports are known; text: the circuit that was lit. A non-zero
 * answer stops with WEFT_ECANCELED, or that code if it is negative. */
typedef int (*bringup_step_fn)(const struct bringup *b, int done, int total,
			       const char *text, void *arg, struct err *err);

/* Lights what is not known yet. fn is called before a circuit is lit, so that
 * the state can be kept with it. WEFT_ESTALE when a
 * switch holds circuits that are not ours: bring-up needs the dark. On any
 * return the circuit that it lit is out, unless the switch does not answer. */
int bringup_run(struct bringup *b, struct testbed *t, bringup_step_fn fn,
		void *arg, struct err *err);

enum bringup_kind { BRINGUP_SWAPPED, BRINGUP_MOVED, BRINGUP_MISSING,
		    BRINGUP_REVERSED, BRINGUP_LOSSY, BRINGUP_UNWRITTEN,
		    BRINGUP_UNLIT };

struct bringup_finding {
	enum bringup_kind kind;
	struct testbed_fibre fibre;	/* reversed: the port, rx false */
	struct testbed_fibre other;	/* swapped: the other one */
	int device, written, found;	/* ports of their sides, -1: none */
	int found_device;
	int64_t sent, received;		/* lossy */
};

/* The same of a fibre between switches. */
struct bringup_trunk {
	enum bringup_kind kind;
	int trunk, other;	/* fabric->trunks; other: swapped or moved to
				 * its place, -1: none */
	int device, port;	/* the input where it was found, -1: none */
	int64_t sent, received;	/* lossy */
};

/* What differs between switches. *v: free(). O(trunks^2). */
int bringup_trunks(const struct bringup *b, struct bringup_trunk **v, int *n,
		   struct err *err);

/* What differs from the file, by host port. *v: free(). O(ports). */
int bringup_findings(const struct bringup *b, struct bringup_finding **v,
		     int *n, struct err *err);
const char *bringup_kind_name(enum bringup_kind kind);

/* The fabric's text with the fibres as found; broken and reversed ones are
 * left out. It is read again before it is given away. */
int bringup_yaml(const struct bringup *b, struct buf *out, struct err *err);

/* ", loss: 0.500dB" of a fibre; of one with an amplifier a gain too, so that
 * what is left of both is this. Nothing for 0 dB. */
void bringup_put_loss(struct buf *out, int32_t mdb, bool amplified);

/* The same with these lines, from `fibres:` on, in place of its own. */
int bringup_rewrite(const struct model_fabric *f, const struct buf *fibres,
		    struct buf *out, struct err *err);

#endif
