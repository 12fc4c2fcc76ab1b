/*
 * Which circuits of a blind device are tried, and what follows from those that
 * were. No device is talked to here.
 *
 * A circuit from an input to an output tells of the fibres at both, if light is
 * seen behind it: then both are good. If none is, or too little, each is tried
 * again with a partner that is known to be good, and what stays dark then is
 * the fibre's own. N inputs and M outputs whose fibres are good take max(N, M)
 * tries, and each that is not takes one more.
 */
#ifndef WEFT_TESTBED_CABLING_POWER_ONLY_H
#define WEFT_TESTBED_CABLING_POWER_ONLY_H

#include "controller/testbed/cabling_power.h"

/* The next pair to try on any blind device, the same for the same tries;
 * p->lit has circuits that had better stay. False: there is none. Inputs that
 * a switch without light feeds wait until it has a source.
 * O(devices (ports + tries + lit)), times the ports' trunks. */
bool blind_next(const struct power *p, int *device, struct optics_xc *xc);

/* That a circuit on p->lit is what some switch's light comes by. */
bool blind_is_feed(const struct power *p, const struct power_circuit *c);

/* Moves of robots that are still to be made, if all fibres are good. */
int64_t blind_moves_left(const struct power *p);

/* Ports of blind devices of which something can be known, and of which it is. */
void blind_count(const struct power *p, int *done, int *total);

/* Puts what the tries tell into far, seen, and source of the devices. */
void blind_settle(struct power *p);

/* That the file has a fibre there that light can be seen through. */
bool blind_has_way(const struct power *p, int device, bool out, int port);

/* A try that loses too much, and what it tells: nothing (good in another), an
 * input's fibre, an output's, or no more than the path. */
enum blind_fault { BLIND_GOOD, BLIND_AT_IN, BLIND_AT_OUT, BLIND_AT_PATH };
enum blind_fault blind_judge(const struct power *p,
			     const struct power_try *t);

#endif
