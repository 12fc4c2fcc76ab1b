/* SPDX-License-Identifier: Apache-2.0 */
/* A fabric with its circuits as a picture, for plan, status and diff. */
#ifndef WEFT_CLI_FABRIC_FABRIC_PICTURE_H
#define WEFT_CLI_FABRIC_FABRIC_PICTURE_H

#include "controller/cli/core/private.h"

/* What is to be said of a circuit; each hides the ones before it. */
enum circuit_mark { CIRCUIT_KEPT, CIRCUIT_NEW, CIRCUIT_DELETED, CIRCUIT_PENDING, CIRCUIT_MISSING,
		    CIRCUIT_UNEXPECTED, CIRCUIT_MARKS };

/* Circuits of a device that have a mark. */
struct marked_circuits {
	enum circuit_mark mark;
	size_t n;
	Weft__V1__Circuit *const *v;
};

/* What is known of a device besides the fabric's picture. */
struct marked_device {
	const char *name;
	char problem[96];		/* "" or a few words */
	struct marked_circuits circuits[3];
};

/* All borrowed. */
struct fabric_picture {
	const struct buf *json;		/* `picture` of docs/api.md */
	const char *title;		/* put before the fabric's name */
	const char *about;
	bool only_marked;		/* circuits without a mark stand back */
	size_t n_devices;
	const struct marked_device *devices;	/* those of the fabric, in any order, or some */
};

/* Appends the picture: a card for each device, those with marks first, at most 12. Of many hosts
 * some share a place on the circle of a switch or ring. WEFT_EINVAL: the JSON is not that of a
 * picture; WEFT_ELIMIT: of a fabric too large to draw.
 * O((circuits + ports) log circuits). */
int fabric_draw(const struct fabric_picture *p, struct buf *svg, struct err *err);

/* Fetches weftd's picture, draws it and writes it to --svg, where that is given. */
int fabric_draw_current(struct cli *c, struct fabric_picture *p, struct err *err);

#endif
