/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a simulated device remembers: a map of cross-connects or a ring's
 * program, and how often it started. The `sim` drivers and the emulators
 * keep one each; `polatis-scpi` uses one to think a batch through against
 * the map that it read. Private to drivers and emulators.
 *
 * Ports are numbered flat: inputs from 0, outputs from n_in; on an
 * any-to-any switch there is one side and the two coincide.
 */
#ifndef WEFT_DRIVERS_CORE_XC_MAP_H
#define WEFT_DRIVERS_CORE_XC_MAP_H

#include "drivers/core/driver.h"

struct xc_map {
	enum drv_kind kind;
	int n_in, n_out;	/* ring: nodes, channels */
	bool any_to_any;
	int n_ports;		/* flat; 0 for a ring */
	int32_t *peer;		/* the flat port at the other end, or -1 */
	uint64_t boots;
	struct ring_programs programs;
};

/* Without circuits, and without programs. */
void xc_map_init(struct xc_map *m, enum drv_kind kind, int n_in, int n_out,
		 bool any_to_any);
void xc_map_fini(struct xc_map *m);

/* Index into `peer` of an input or output. O(1). */
int xc_map_flat_in(const struct xc_map *m, int32_t in);
int xc_map_flat_out(const struct xc_map *m, int32_t out);

/* Ports in range and, on an any-to-any switch, in < out. WEFT_EINVAL. */
int xc_map_check(const struct xc_map *m, struct optics_xc xc, struct err *err);

/* The cross-connect of two ports by numbers from 1, outputs behind inputs, as
 * Polatis switches have them; on an any-to-any switch in either order. False
 * when there is none such. */
bool xc_map_pair(const struct xc_map *m, int32_t in, int32_t out, struct optics_xc *xc);

/* True when this very cross-connect is made. O(1). */
bool xc_map_has(const struct xc_map *m, struct optics_xc xc);

/* The cross-connect of an input; false when it has none. O(1). */
bool xc_map_of(const struct xc_map *m, int32_t in, struct optics_xc *xc);

/* A cross-connect that stands in the way of adding xc (not xc itself). */
bool xc_map_conflict(const struct xc_map *m, struct optics_xc xc, struct optics_xc *displaced);

/* For a map that is read from a device: its ports exist and are free. The
 * circuit is connected; false when it cannot be. */
bool xc_map_take(struct xc_map *m, struct optics_xc xc);
/* The same by numbers as of xc_map_pair(). An any-to-any switch may list a circuit from both
 * ends: *again when it was there. WEFT_EDEVICE. O(1). */
int xc_map_take_pair(struct xc_map *m, int32_t in, int32_t out, struct optics_xc *xc,
		     bool *again, struct err *err);
/* Connects, and ends whatever held either port. */
void xc_map_connect(struct xc_map *m, struct optics_xc xc);
/* Ends the cross-connect that holds a flat port, if any. */
void xc_map_release(struct xc_map *m, int flat);
/* Forgets map and program. */
void xc_map_clear(struct xc_map *m);

/* All cross-connects sorted by in; *v is the caller's. */
void xc_map_xcs(const struct xc_map *m, struct optics_xc **v, int *n);
/* The same as a snapshot's array, all tuned. */
void xc_map_snapshot(const struct xc_map *m, struct drv_snapshot *snap);

/* Makes dst remember what src does (same kind and size). */
void xc_map_copy(struct xc_map *dst, const struct xc_map *src);

/* What `now` has that `known` has not, after what it has no longer: one call
 * for each circuit. Same kind and size. */
void xc_map_changes(const struct xc_map *known, const struct xc_map *now,
		    void (*fn)(struct optics_xc xc, bool made, void *arg), void *arg);

/* Writes everything to a text file, atomically. WEFT_EIO. */
int xc_map_save(const struct xc_map *m, const char *path, struct err *err);
/* Reads it back into an m of the same kind and size. WEFT_ENOTFOUND when
 * there is no file, WEFT_EINVAL (line named) when it is damaged or another
 * device's; then m is cleared. */
int xc_map_load(struct xc_map *m, const char *path, struct err *err);

#endif
