/* Shared by the files of bring-up with power. */
#ifndef WEFT_TESTBED_CABLING_POWER_PRIVATE_H
#define WEFT_TESTBED_CABLING_POWER_PRIVATE_H

#include "controller/testbed/cabling_power.h"

#define POWER_PATIENCE_US 200000	/* before a fibre is called dark */
#define POWER_TRIES 3

/* What one switch measures. */
struct level {
	int32_t *in, *out;
	int64_t settle_us;
};

struct walk {
	struct power *p;
	struct power_options options;
	struct testbed_device **devices;
	struct level *base;	/* with the circuits that feed the switch at
				 * hand */
	struct level *now;
	power_step_fn fn;
	void *arg;
	struct power_progress said;	/* last, and its text */
	char text[160];
	int64_t move_began_ns;
};

/* ---- cabling_power_circuits.c ---- */

/* Reads all levels, or those of one device. WEFT_ESTALE: a circuit there is
 * not ours. */
int power_look(struct walk *w, struct level *levels, struct err *err);
int power_look_at(struct walk *w, int device, struct level *l,
		  struct err *err);

/* Makes a circuit, unless it is made; it goes on the record first. */
int power_light(struct walk *w, int device, struct optics_xc xc,
		struct err *err);
/* Lights a switch's source over the devices before it. */
int power_light_source(struct walk *w, int device, struct err *err);
/* Takes out what was made last, down to so many; it leaves the record then. */
int power_unlight(struct walk *w, int down_to, struct err *err);
/* Circuits at the bottom that feed switches over blind devices. */
int power_n_kept(const struct power *p);
bool power_is_lit(const struct power *p, int device, struct optics_xc xc);
/* After a start: ours that an earlier run left. Those of switches go, those of
 * blind devices are there when this returns, or gone. */
int power_recover(struct walk *w, struct err *err);

/* ---- cabling_power_search.c ---- */

/* What was dark in base and is lit now: where light from the output, or of a
 * laser (device -1), leads. */
void power_find_far(const struct walk *w, int device, int out,
		    struct power_far *far);
/* Lights the outputs of a switch that are not known, one by one. */
int power_walk_device(struct walk *w, int device, struct err *err);

/* ---- cabling_power_meter.c ---- */

/* Tries one circuit of a blind device, and adds what was seen to the tries. */
int power_try_pair(struct walk *w, int device, struct optics_xc xc,
		   struct err *err);

#endif
