/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fibre plant between emulators: where light goes from switch to switch,
 * and with what power it arrives.
 *
 * Each emulator is a process of its own, so what they share is files: `wiring`,
 * written by the test, and NAME.map, which each switch writes atomically when
 * its circuits change. A power is found backwards, from the port that measures
 * to the laser, reading wiring and maps again for each hop; plants of tests are
 * small, and nothing has to be kept in step. Losses are made up from the seed,
 * the same for the same path each time.
 */
#include "drivers/emulators/core/fibre_plant.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/file.h"
#include "lib/base/log.h"
#include "lib/base/number/rng.h"

#define MAX_HOPS 64		/* circuits may close a ring without a laser */
#define MAX_FILE (4u << 20)
#define MAX_DB 200.0

/* ---- the wiring ---- */

/* One line of `wiring`. A fibre has a loss of 0 dB or more; a laser's power
 * may be any. False for all else, also for numbers that are not finite. */
static bool parse_fibre_line(const char *line, struct plant_fibre *s)
{
	char rest;
	bool ok;

	*s = (struct plant_fibre){ 0 };
	ok = sscanf(line, "laser %127s %lf %c", s->to, &s->db, &rest) == 2;
	if (!ok) {
		ok = sscanf(line, "fibre %127s %127s %lf %c", s->from, s->to,
			    &s->db, &rest) == 3 && s->db >= 0;
	}
	return ok && isfinite(s->db) && fabs(s->db) <= MAX_DB;
}

int plant_find_fibre(char *text, const char *place, struct plant_fibre *found, struct err *err)
{
	int n = 0;

	*found = (struct plant_fibre){ 0 };
	for (char *line = text, *next; line; line = next) {
		struct plant_fibre s;

		next = strchr(line, '\n');
		if (next) {
			*next++ = '\0';
		}
		n++;
		if (line[strspn(line, " \t\r")] == '\0' || *line == '#') {
			continue;
		}
		if (!parse_fibre_line(line, &s)) {
			return err_set(err, WEFT_EINVAL, "line %d: expected "
				       "laser PLACE DBM or fibre FROM TO DB",
				       n);
		}
		if (strcmp(s.to, place) == 0) {
			*found = s;
		}
	}
	return 0;
}

/* The fibre or laser that ends at a place, from the file as it is now.
 * WEFT_EIO, WEFT_EINVAL. */
static int read_fibre(const char *folder, const char *place,
		       struct plant_fibre *found, struct err *err)
{
	char path[4096], *text;
	size_t len;
	int rc;

	snprintf(path, sizeof(path), "%s/wiring", folder);
	rc = file_read(path, MAX_FILE, &text, &len, err);
	if (rc) {
		return rc;
	}
	rc = plant_find_fibre(text, place, found, err);
	if (rc) {
		err_wrap(err, "%s", path);
	}
	free(text);
	return rc;
}

/* ---- what the switches hold ---- */

/* "ocs0.out3" into name and number. */
static bool split_out(const char *place, char name[PLANT_PLACE_MAX], int *port)
{
	const char *dot = strrchr(place, '.');
	char rest;

	if (!dot || sscanf(dot, ".out%d%c", port, &rest) != 1) {
		return false;
	}
	snprintf(name, PLANT_PLACE_MAX, "%.*s", (int)(dot - place), place);
	return true;
}

/* The input that feeds an output of a switch, and the loss between. False: it
 * is dark, or no switch has that name. */
static bool find_circuit(const char *folder, const char *name, int out, int *in, int32_t *loss_mdb)
{
	char path[4096], *text;
	bool found = false;
	size_t len;
	int to;

	snprintf(path, sizeof(path), "%s/%s.map", folder, name);
	if (file_read(path, MAX_FILE, &text, &len, NULL)) {
		return false;
	}
	for (const char *line = text; line && !found;
	     line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
		found = sscanf(line, "%d %d %d", in, &to, loss_mdb) == 3 && to == out;
	}
	free(text);
	return found;
}

/* Hop by hop backwards: the fibre that ends here, the output it comes from,
 * the input that this output is connected to. No light arrives when the chain
 * breaks, or after MAX_HOPS. */
int plant_arriving_mdbm(const char *folder, const char *place, int32_t *mdbm, struct err *err)
{
	char at[PLANT_PLACE_MAX], name[PLANT_PLACE_MAX];
	int32_t lost = 0, loss;
	int rc, out, in;

	*mdbm = PLANT_DARK_MDBM;
	snprintf(at, sizeof(at), "%s", place);
	for (int hop = 0; hop < MAX_HOPS; hop++) {
		struct plant_fibre s;

		rc = read_fibre(folder, at, &s, err);
		if (rc == 0 && s.to[0] && !s.from[0]) {
			int32_t left = (int32_t)lround(s.db * 1000) - lost;

			*mdbm = left > PLANT_DARK_MDBM ? left : PLANT_DARK_MDBM;
			return 0;
		}
		if (rc || !s.to[0] || !split_out(s.from, name, &out) ||
		    !find_circuit(folder, name, out, &in, &loss)) {
			return rc;
		}
		lost += (int32_t)lround(s.db * 1000) + loss;
		if (snprintf(at, sizeof(at), "%.100s.in%d", name, in) < 0) {
			return 0;
		}
	}
	return 0;
}

/* ---- this switch ---- */

/* From 0.5 to 1 dB, by the path: mirror switches differ from path to path, and
 * stay as they are. 3 dB more where a port is dim. */
static int32_t loss_of(struct emu *e, int in, int out)
{
	uint64_t pair = ((uint64_t)(uint32_t)in << 32) | (uint32_t)out;
	bool dim = faults_hold_port(&e->faults, FAULT_DIM, in) ||
		   faults_hold_port(&e->faults, FAULT_DIM, out);

	return (int32_t)(500 + rng_mix(e->conf.seed ^ pair) % 500) +
	       (dim ? 3000 : 0);
}

/* The flat output that the light of an input leaves by, or -1: the circuit
 * lets no light by, or there is none. A stale circuit still carries light that
 * the map does not show. */
static int leaves_by(struct emu *e, int in)
{
	struct optics_xc xc = { in, e->mem.peer[in] - e->mem.n_in };
	bool active = e->mem.peer[in] >= 0 && !(e->dialect->dark && e->dialect->dark(e, xc));
	int misrouted;

	for (size_t k = 0; !active && e->dialect->stale && e->dialect->stale(e, k, &xc); k++) {
		active = xc.in == in;
	}
	if (!active) {
		return -1;
	}
	misrouted = faults_hold_path(&e->faults, FAULT_MISROUTED, in);
	return e->mem.n_in + (misrouted >= 0 ? misrouted : xc.out);
}

/* One line a circuit: input and output from 1, and the loss in milli-dB. Other
 * switches may read the file at any moment, so it is replaced atomically. */
int plant_publish(struct emu *e, struct err *err)
{
	struct buf text = { 0 };
	char path[4096];
	int rc;

	if (!e->conf.plant) {
		return 0;
	}
	for (int i = 0; i < e->mem.n_in; i++) {
		int out = leaves_by(e, i);

		if (out >= 0) {
			buf_printf(&text, "%d %d %d\n", i + 1, out - e->mem.n_in + 1,
				   (int)loss_of(e, i, out));
		}
	}
	snprintf(path, sizeof(path), "%s/%s.map", e->conf.plant, e->conf.name);
	rc = file_write_atomic(path, buf_cstr(&text), text.len, FILE_PUBLIC, err);
	buf_fini(&text);
	return rc;
}

/* The first input whose light leaves by an output, or -1. The circuit of the
 * map is tried first: only with faults is it another. */
static int input_of(struct emu *e, int out)
{
	int in = e->mem.peer[out];

	if (in >= 0 && leaves_by(e, in) == out) {
		return in;
	}
	in = 0;
	while (in < e->mem.n_in && leaves_by(e, in) != out) {
		in++;
	}
	return in < e->mem.n_in ? in : -1;
}

/* Power without a plant, in milli-dBm: light enters each connected input at -3
 * to -4 dBm, and an output has what its circuit leaves of it. */
static int32_t by_seed(struct emu *e, int flat)
{
	bool is_out = flat >= e->mem.n_in && !e->mem.any_to_any;
	int from = is_out ? input_of(e, flat) : flat;
	int32_t mdbm;

	if (from < 0 || (!is_out && e->mem.peer[flat] < 0)) {
		return PLANT_DARK_MDBM;
	}
	mdbm = -3000 - (int32_t)(rng_mix(e->conf.seed + (uint64_t)from) % 100) * 10;
	return is_out ? mdbm - loss_of(e, from, flat) : mdbm;
}

int32_t plant_port_mdbm(struct emu *e, int flat)
{
	const struct xc_map *m = &e->mem;
	bool is_out = flat >= m->n_in;
	int in;
	struct err err = { 0 };
	char place[PLANT_PLACE_MAX];
	int32_t mdbm;

	if (!e->conf.plant) {
		return by_seed(e, flat);
	}
	in = is_out ? input_of(e, flat) : flat;
	snprintf(place, sizeof(place), "%.100s.%s%d", e->conf.name,
		 in < 0 ? "out" : "in", in < 0 ? flat - m->n_in + 1 : in + 1);
	if (plant_arriving_mdbm(e->conf.plant, place, &mdbm, &err)) {
		log_error("emulators", "%s: %s", e->conf.name, err.msg);
	}
	if (is_out && in >= 0 && mdbm > PLANT_DARK_MDBM) {
		mdbm -= loss_of(e, in, flat);
	}
	return mdbm > PLANT_DARK_MDBM ? mdbm : PLANT_DARK_MDBM;
}
