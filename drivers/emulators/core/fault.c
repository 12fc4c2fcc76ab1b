/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Faults of emulated devices: one table of what there is, with its value and
 * its help, and questions whether one is in force now.
 *
 * An event fault (`event` in the table) is used up when it strikes; a level
 * fault stays. Both draw from the emulator's seeded generator where they are
 * random, so a run with the same seed and commands meets the same faults.
 */
#include "drivers/emulators/core/fault.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/vec.h"

/* What follows NAME=. COUNT may be left out (1); MS and NUMBER are at most
 * 3600000; PORT and PATH are of switches, PLACE, NODE and FIBRE of rings. All
 * but COUNT count from 0. */
enum value { NONE, COUNT, MS, NUMBER, PORT, PATH, PLACE, NODE, FIBRE };

static const struct {
	const char *name;
	enum value value;
	bool event;
	const char *help;
} kinds[N_FAULTS] = {
	[FAULT_REFUSE] = { "refuse", NONE, false, "connections are refused" },
	[FAULT_SILENCE] = { "silence", NONE, false,
			    "sessions are accepted, nothing is answered" },
	[FAULT_SILENCE_SET] = { "silence-set", COUNT, true,
				"a set command is done but never answered" },
	[FAULT_EAT_SET] = { "eat-set", COUNT, true,
			    "a set command is neither done nor answered" },
	[FAULT_DROP_SET] = { "drop-set", COUNT, true,
			     "a set command is done, then the session ends" },
	[FAULT_DROP_REPLY] = { "drop-reply", COUNT, true,
			       "the session ends in the middle of a reply" },
	[FAULT_GARBAGE] = { "garbage", COUNT, true, "a reply is garbage" },
	[FAULT_DUPLICATE] = { "duplicate", COUNT, true,
			      "a reply is sent twice" },
	[FAULT_LATE] = { "late", MS, true, "one reply comes MS later" },
	[FAULT_SLOW] = { "slow", MS, false, "every reply takes MS" },
	[FAULT_BYTEWISE] = { "bytewise", NONE, false,
			     "replies come in pieces of one byte" },
	[FAULT_IDLE_DEAD] = { "idle-dead", MS, false,
			      "sessions unused for MS answer no more" },
	[FAULT_IDLE_END] = { "idle-end", MS, false,
			     "sessions unused for MS end when used" },
	[FAULT_OVERRATE] = { "overrate", MS, false,
			     "commands less than MS after another are lost" },
	[FAULT_COMPLETE] = { "complete", MS, false,
			     "set commands are done MS after their answer" },
	[FAULT_LOST] = { "lost", MS, true,
			 "MS after a set command the whole map is lost" },
	[FAULT_ENDLESS] = { "endless", NONE, false,
			    "a line without end in place of a reply" },
	[FAULT_LINES] = { "lines", NONE, false,
			  "lines without end in place of a reply" },
	[FAULT_NOISE] = { "noise", NONE, false,
			  "random bytes without end in place of a reply" },
	[FAULT_HUGE] = { "huge", NUMBER, false,
			 "every reply is N MiB longer, and well-formed" },
	[FAULT_DRIP] = { "drip", MS, false,
			 "replies come a byte each MS" },
	[FAULT_AFTER_CLOSE] = { "after-close", NONE, false,
				"replies come when the session was closed" },
	[FAULT_PORT_FAILED] = { "port-failed", PORT, false,
				"the port reports failed and refuses" },
	[FAULT_PORT_DISABLED] = { "port-disabled", PORT, false,
				  "the port reports disabled and refuses" },
	[FAULT_MISROUTED] = { "misrouted", PATH, false,
			   "the input's light leaves by that output, "
			   "whatever the map says" },
	[FAULT_REFUSE_PORT] = { "refuse-port", PORT, false,
				"connecting the port is an error" },
	[FAULT_BUSY] = { "busy", PORT, false,
			 "connecting the port is denied as in use" },
	[FAULT_RACE] = { "race", COUNT, true,
			 "another user makes a circuit just before we do" },
	[FAULT_DIM] = { "dim", PORT, false,
			"light through the port gets 3 dB weaker" },
	[FAULT_IGNORE_PORT] = { "ignore-port", PORT, false,
				"connecting the port does nothing, silently" },
	[FAULT_HALF] = { "half", NUMBER, false,
			 "only the first N pairs of a list are done" },
	[FAULT_CHAIN_STOP] = { "chain-stop", COUNT, true,
			       "a chain ends after its first command" },
	[FAULT_NO_MONITORS] = { "no-monitors", NONE, false,
				"a model that measures no power" },
	[FAULT_OTHERS_ERROR] = { "others-error", COUNT, true,
				 "another session's error comes before a set" },
	[FAULT_TAKEN_ERROR] = { "taken-error", COUNT, true,
				 "another session reads a set's error away" },
	[FAULT_QUEUE_FULL] = { "queue-full", COUNT, true,
			       "before a set command the error queue is full" },
	[FAULT_AUTONOMOUS] = { "autonomous", NONE, false,
			       "TL1: a report comes before every page" },
	[FAULT_LOG_OUT] = { "log-out", COUNT, true,
			    "TL1: the session is logged out, as if idle" },
	[FAULT_TID_REQUIRED] = { "tid-required", NONE, false,
				 "TL1: commands must name the device" },
	[FAULT_WRONG_CTAG] = { "wrong-ctag", COUNT, true,
			       "TL1: an answer has another's tag" },
	[FAULT_PAGE] = { "page", NUMBER, false,
			 "TL1: answers come in pages of N lines" },
	[FAULT_NOT_ACTIVATED] = { "not-activated", PORT, false,
				  "circuits of the port stay inactive" },
	[FAULT_CONN_FAILED] = { "conn-failed", PORT, false,
				"circuits of the port are made, then fail" },
	[FAULT_LOCKED] = { "locked", PORT, false,
			   "circuits of the port are locked by user noc" },
	[FAULT_STATUS] = { "status", NUMBER, true,
			   "RESTCONF: a request is answered with status N" },
	[FAULT_STATUS_SET] = { "status-set", NUMBER, true,
			       "RESTCONF: a set command is, and not done" },
	[FAULT_TUNING] = { "tuning", PORT, false,
			   "circuits of the port never get tuned" },
	[FAULT_STALE] = { "stale", COUNT, true,
			  "what a command deletes stays in the hardware" },
	[FAULT_MOVE] = { "move", MS, false, "every move takes MS" },
	[FAULT_HOMING] = { "homing", COUNT, true,
			   "a move fails, a homing run is needed" },
	[FAULT_NACK] = { "nack", COUNT, true, "a write is answered busy" },
	[FAULT_CORRUPT_SHADOW] = { "corrupt-shadow", COUNT, true,
				   "a bit of the shadow bank flips" },
	[FAULT_CORRUPT_ACTIVE] = { "corrupt-active", COUNT, true,
				   "a bit flips while the bank is swapped" },
	[FAULT_IGNORE_COMMIT] = { "ignore-commit", COUNT, true,
				  "a commit is confirmed but not done" },
	[FAULT_INTERLOCK] = { "interlock", NONE, false,
			      "the laser interlock is open" },
	[FAULT_NO_WAVE] = { "no-wave", PLACE, false,
			    "resonators find no wave" },
	[FAULT_NOT_IN_RANGE] = { "not-in-range", PLACE, false,
				 "the wave is out of the tuning range" },
	[FAULT_DUPLICATE_LOCK] = { "duplicate-lock", PLACE, false,
				   "two resonators lock on one wave" },
	[FAULT_ZERO_LOCK] = { "zero-lock", PLACE, false,
			      "the search ends without a lock" },
	[FAULT_LOL] = { "lol", PLACE, false, "a lock is lost" },
	[FAULT_LANE_ORDER] = { "lane-order", PLACE, false,
			       "resonators lock on another lane's wave" },
	[FAULT_DAC_CLAMP] = { "dac-clamp", PLACE, false,
			      "the tuner is at its limit" },
	[FAULT_DRIFT] = { "drift", MS, false,
			  "each MS another lock is lost until a relock" },
	[FAULT_LOCK_TIME] = { "lock-time", MS, false,
			      "resonators take MS to lock" },
	[FAULT_BUS_NACK] = { "bus-nack", COUNT, true,
			     "the resonators' bus does not answer" },
	[FAULT_PLAIN] = { "plain", NONE, false,
			  "no tables, no events, no relocking" },
	[FAULT_RESET] = { "reset", COUNT, true,
			  "the controller restarts dark, sessions stay" },
	[FAULT_NODE_DEAD] = { "node-dead", NODE, false,
			      "the node's resonators find no wave" },
	[FAULT_CUT] = { "cut", NODE, false,
			"all fibres between NODE and the next are cut" },
	[FAULT_CUT_CW] = { "cut-cw", FIBRE, false,
			   "a clockwise fibre from NODE to the next is cut" },
	[FAULT_CUT_CCW] = { "cut-ccw", FIBRE, false,
			    "a counter-clockwise one to NODE is cut" },
};

static const char *const value_text[] = {
	[NONE] = "", [COUNT] = "[=K]", [MS] = "=MS", [NUMBER] = "=N",
	[PORT] = "=iN|oN", [PATH] = "=iN:oM", [PLACE] = "=NODE:CHANNEL",
	[NODE] = "=NODE", [FIBRE] = "=NODE:FIBRE",
};

void faults_fini(struct faults *f)
{
	vec_fini(f);
}

void faults_clear(struct faults *f)
{
	f->n = 0;
}

/* The names are padded to one column; the longest with its value is shorter
 * than 30 bytes. */
void faults_help(struct buf *b)
{
	for (int k = 0; k < N_FAULTS; k++) {
		buf_printf(b, "  %s%s%*s%s\n", kinds[k].name, value_text[kinds[k].value],
			   (int)(30 - strlen(kinds[k].name) - strlen(value_text[kinds[k].value])),
			   "", kinds[k].help);
	}
}

/* A whole number from 0 to max and nothing behind it. */
static bool whole(const char *s, int64_t max, int64_t *out)
{
	char *end;

	if (*s < '0' || *s > '9') {
		return false;
	}
	*out = strtoll(s, &end, 10);
	return *end == '\0' && *out <= max;
}

/* "i3" or "o5", of either side, to a flat port. */
static bool parse_port(const struct xc_map *m, const char *s, int64_t *flat)
{
	int64_t n;

	if (!whole(s[0] ? s + 1 : s, INT32_MAX, &n)) {
		return false;
	}
	if (s[0] == 'i' && n < m->n_in) {
		*flat = xc_map_flat_in(m, (int32_t)n);
		return true;
	}
	if (s[0] == 'o' && n < m->n_out) {
		*flat = xc_map_flat_out(m, (int32_t)n);
		return true;
	}
	return false;
}

/* "i3:o5": of a switch with two sides, the input as a flat port and the output
 * from 0. */
static bool parse_path(const struct xc_map *m, char *s, struct fault *f)
{
	char *colon = strchr(s, ':');

	if (!colon || m->any_to_any) {
		return false;
	}
	*colon = '\0';
	if (s[0] != 'i' || colon[1] != 'o' ||
	    !parse_port(m, s, &f->value) ||
	    !parse_port(m, colon + 1, &f->channel)) {
		return false;
	}
	f->channel -= m->n_in;
	return true;
}

/* "NODE:CHANNEL". */
static bool parse_place(const struct xc_map *m, char *s, struct fault *f)
{
	char *colon = strchr(s, ':');

	if (!colon) {
		return false;
	}
	*colon = '\0';
	return whole(s, m->n_in - 1, &f->value) && whole(colon + 1, m->n_out - 1, &f->channel);
}

/* "NODE:FIBRE"; whether the ring has that fibre is not known here, and a fault
 * of one that it has not meets nothing. */
static bool parse_fibre(const struct xc_map *m, char *s, struct fault *f)
{
	char *colon = strchr(s, ':');

	if (!colon) {
		return false;
	}
	*colon = '\0';
	return whole(s, m->n_in - 1, &f->value) && whole(colon + 1, UINT8_MAX, &f->channel);
}

/* Reads VALUE (NULL: none was given) as the kind wants it, and as the device's
 * kind allows. */
static bool parse_value(const struct xc_map *m, char *s, struct fault *f)
{
	switch (kinds[f->kind].value) {
	case NONE:
		return !s;
	case COUNT:
		f->value = 1;
		return !s || (whole(s, INT32_MAX, &f->value) && f->value > 0);
	case MS:
	case NUMBER:
		return s && whole(s, 3600000, &f->value);
	case PORT:
		return s && m->kind == DRV_SPACE && parse_port(m, s, &f->value);
	case PATH:
		return s && m->kind == DRV_SPACE && parse_path(m, s, f);
	case PLACE:
		return s && m->kind == DRV_RING && parse_place(m, s, f);
	case NODE:
		return s && m->kind == DRV_RING && whole(s, m->n_in - 1, &f->value);
	case FIBRE:
		return s && m->kind == DRV_RING && parse_fibre(m, s, f);
	}
	return false;
}

/* Cuts what follows the mark off s; NULL when there is none. */
static char *cut(char *s, char mark)
{
	char *at = strchr(s, mark);

	if (at) {
		*at++ = '\0';
	}
	return at;
}

/* The word is copied, as it is cut at its marks: first ~PERMILLE, then =VALUE,
 * which may hold neither. */
int faults_add(struct faults *f, const char *spec, struct err *err)
{
	struct fault fault = { .permille = -1 };
	char text[96], *permille, *value;
	int64_t n = 0;
	int k = 0;

	if (strlen(spec) >= sizeof(text)) {
		return err_set(err, WEFT_EINVAL, "fault is too long");
	}
	memcpy(text, spec, strlen(spec) + 1);
	permille = cut(text, '~');
	value = cut(text, '=');
	while (k < N_FAULTS && strcmp(kinds[k].name, text) != 0) {
		k++;
	}
	if (k == N_FAULTS) {
		return err_set(err, WEFT_EINVAL, "no fault '%s'", text);
	}
	fault.kind = (enum fault_kind)k;
	if (!parse_value(f->mem, value, &fault) || (permille && !whole(permille, 1000, &n))) {
		return err_set(err, WEFT_EINVAL,
			       "fault '%s': expected %s%s[~PERMILLE]", spec,
			       kinds[k].name, value_text[kinds[k].value]);
	}
	fault.permille = permille ? (int)n : -1;
	vec_push(f, fault);
	return 0;
}

static bool by_chance(struct faults *f, const struct fault *fault)
{
	return fault->permille < 0 || (int)rng_below(&f->rng, 1000) < fault->permille;
}

/* Each fault of the kind counts the event until one strikes. The K-th event
 * from now is counted in `seen`; a fault with ~PERMILLE stays and is drawn for
 * at each event. */
bool faults_strike(struct faults *f, enum fault_kind kind, int64_t *value)
{
	for (size_t i = 0; i < f->n; i++) {
		struct fault *fault = &f->v[i];
		int64_t at = kinds[kind].value == COUNT ? fault->value : 1;

		if (fault->kind != kind) {
			continue;
		}
		if (fault->permille >= 0 ? !by_chance(f, fault) : ++fault->seen < at) {
			continue;
		}
		if (value) {
			*value = fault->value;
		}
		f->struck++;
		if (fault->permille < 0) {
			memmove(fault, fault + 1, (--f->n - i) * sizeof(*fault));
		}
		return true;
	}
	return false;
}

/* `struck` counts each fault that was met once, however often it is asked for:
 * a test sees that its fault was reached at all. */
static bool holds(struct faults *f, struct fault *fault)
{
	bool does = by_chance(f, fault);

	f->struck += does && !fault->met;
	fault->met = fault->met || does;
	return does;
}

bool faults_hold(struct faults *f, enum fault_kind kind, int64_t *value)
{
	for (size_t i = 0; i < f->n; i++) {
		if (f->v[i].kind == kind && holds(f, &f->v[i])) {
			if (value) {
				*value = f->v[i].value;
			}
			return true;
		}
	}
	return false;
}

bool faults_hold_port(struct faults *f, enum fault_kind kind, int flat)
{
	for (size_t i = 0; i < f->n; i++) {
		if (f->v[i].kind == kind && f->v[i].value == flat && holds(f, &f->v[i])) {
			return true;
		}
	}
	return false;
}

int faults_hold_path(struct faults *f, enum fault_kind kind, int in)
{
	for (size_t i = 0; i < f->n; i++) {
		if (f->v[i].kind == kind && f->v[i].value == in && holds(f, &f->v[i])) {
			return (int)f->v[i].channel;
		}
	}
	return -1;
}

bool faults_hold_place(struct faults *f, enum fault_kind kind, int node, int channel)
{
	for (size_t i = 0; i < f->n; i++) {
		if (f->v[i].kind == kind && f->v[i].value == node &&
		    f->v[i].channel == channel && holds(f, &f->v[i])) {
			return true;
		}
	}
	return false;
}
