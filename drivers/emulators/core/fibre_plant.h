/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Light that emulators share: a folder with a file `wiring`, which says what
 * lasers and fibres there are, and a file NAME.map of each switch, which it
 * writes when its circuits change. Power at a port is found by going back from
 * it to the laser that lights it. What a switch writes is where light goes,
 * which faults keep from being what it holds (misrouted, conn-failed, stale).
 * Robots write when a move is over. Private to emulators.
 *
 *     laser ocs0.in1 -3.0              dBm as it arrives there
 *     fibre ocs0.out3 ocs1.in3 0.5     dB
 *
 * Ports count from 1, as in fabrics. A pair that is reversed ends at an output:
 * light that comes in there is seen by the output's monitor, and goes no
 * further. `wiring` is read again for each question, so that a test may pull a
 * fibre.
 */
#ifndef WEFT_DRIVERS_EMULATORS_CORE_FIBRE_PLANT_H
#define WEFT_DRIVERS_EMULATORS_CORE_FIBRE_PLANT_H

#include "drivers/emulators/core/emulator.h"

#define PLANT_DARK_MDBM (-60000)
#define PLANT_PLACE_MAX 128

/* One line of `wiring`. */
struct plant_fibre {
	char from[PLANT_PLACE_MAX];	/* "": a laser */
	char to[PLANT_PLACE_MAX];
	double db;		/* loss; of a laser: dBm */
};

/* What ends at a place by the wiring's text, which is cut into lines;
 * found->to "": nothing does. Every line is parsed, so that an error is
 * reported wherever it is. WEFT_EINVAL names the line. */
int plant_find_fibre(char *text, const char *place, struct plant_fibre *found, struct err *err);

/* Milli-dBm at a flat port of a switch with two sides, for any dialect that
 * measures; PLANT_DARK_MDBM: no light. Without a plant, light
 * enters every connected port at about -3 dBm, by the seed. */
int32_t plant_port_mdbm(struct emu *e, int flat);

/* Writes NAME.map, if there is a plant. WEFT_EIO. */
int plant_publish(struct emu *e, struct err *err);

/* Light that arrives at a place such as "ocs0.in1" by the wiring's text; maps
 * are read from the folder. WEFT_EINVAL names the line that is wrong.
 * O(hops x lines). */
int plant_arriving_mdbm(const char *folder, const char *place, int32_t *mdbm, struct err *err);

#endif
