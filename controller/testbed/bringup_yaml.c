/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bring-up: the fabric's text with the fibres as found.
 *
 * Only the lines of the key `fibres` are replaced, so that comments and the
 * order of all else stay the operator's. A fibre that was found somewhere is
 * written with both of its ends; one that is broken or reversed is left out, as
 * planning must not use it; one that could not be tried stays as written.
 */
#include <string.h>

#include "controller/testbed/bringup_private.h"

/* ", KEY: 1.500dB". mdb is not negative. */
static void put_db(struct buf *out, const char *key, int32_t mdb)
{
	buf_printf(out, ", %s: %d.%03ddB", key, mdb / 1000, mdb % 1000);
}

/* Of a fibre with an amplifier a gain too, so that what is left of both is
 * this. Nothing for 0 dB. */
static void put_loss(struct buf *out, int32_t mdb, bool amplified)
{
	int32_t gain = !amplified ? 0 : mdb < 0 ? -mdb : 1;

	if (mdb + gain > 0) {
		put_db(out, "loss", mdb + gain);
	}
	if (gain) {
		put_db(out, "gain", gain);
	}
}

/* channel -1: all of them. */
static void put_fibre(struct buf *out, const char *from, const char *to,
		      int32_t loss_mdb, bool amplified, int channel)
{
	buf_printf(out, "  - { from: \"%s\", to: \"%s\"", from, to);
	put_loss(out, loss_mdb, amplified);
	if (channel >= 0) {
		buf_printf(out, ", channels: %d", channel);
	}
	buf_printf(out, " }\n");
}

/* ---- to hosts ---- */

/* A fibre between a host and where it was found; device -1: nowhere, and the
 * fibre is left out. */
static void put_host(struct buf *out, const struct bringup *b, int port,
		     bool rx, struct bringup_place at)
{
	const struct model_port *h = &b->fabric->ports[port];
	char host[BRINGUP_NAME_MAX], place[BRINGUP_NAME_MAX];

	if (at.device < 0) {
		return;
	}
	bringup_put_host(h, rx, host);
	bringup_put_place(b, at, rx, place);
	put_fibre(out, rx ? place : host, rx ? host : place,
		  rx ? h->rx_loss_mdb : h->tx_loss_mdb,
		  rx ? h->rx_amplified : h->tx_amplified, -1);
}

/* By power they stay as written, unless they are dark. */
static void put_hosts_power(struct buf *out, const struct bringup *b)
{
	for (int i = 0; i < b->fabric->n_ports; i++) {
		const struct model_port *h = &b->fabric->ports[i];

		if (bringup_is_reversed(b, h)) {
			continue;
		}
		if (!bringup_tx_is_dark(b, h)) {
			put_host(out, b, i, false, bringup_written(h, false));
		}
		if (!bringup_rx_is_gone(b, h)) {
			put_host(out, b, i, true, bringup_written(h, true));
		}
	}
}

/* Transmit fibres first, then receive fibres, each where frames showed it,
 * or as written where none could. */
static void put_hosts_frames(struct buf *out, const struct bringup *b)
{
	const struct bringup_end *end;
	int n = b->fabric->n_ports;

	for (int i = 0; i < 2 * n; i++) {
		bool rx = i >= n;

		put_host(out, b, i % n, rx, bringup_host_is_untested(b, i % n, rx) ?
			 bringup_written(&b->fabric->ports[i % n], rx) :
			 bringup_find_host(b, i % n, rx, &end));
	}
}

/* ---- between switches ---- */

/* The trunk as written, but ending at this input. */
static void put_trunk(struct buf *out, const struct bringup *b, const struct model_trunk *t,
		      int device, int port)
{
	struct bringup_place begin = { t->from_device, t->from_port }, end = { device, port };
	char from[BRINGUP_NAME_MAX], to[BRINGUP_NAME_MAX];

	bringup_put_place(b, begin, true, from);
	bringup_put_place(b, end, false, to);
	put_fibre(out, from, to, t->loss_mdb, t->amplified, t->channel);
}

/* What was found, with the loss that is written where the fibre is, if that is
 * within the limit, else as measured. */
static void put_found(struct buf *out, const struct bringup *b, int device, int port)
{
	const struct bringup_far *far = &b->devices[device].far[port];
	int owner = bringup_owner_of(b, far);
	struct model_trunk found = { .from_device = device, .from_port = port,
				     .channel = -1 };

	if (far->fibre_mdb != UNKNOWN_LOSS_MDB) {
		found.loss_mdb = far->fibre_mdb;
		found.amplified = far->fibre_mdb < 0;
	}
	if (owner >= 0) {
		const struct model_trunk *t = &b->fabric->trunks[owner];

		if (t->from_device == device && t->from_port == port &&
		    far->fibre_mdb <= bringup_limit_of(t)) {
			found = *t;
		}
	}
	put_trunk(out, b, &found, far->device, far->port);
}

/* What was found at outputs, in their order; unwritten: only where the file has no fibre. */
static void put_all_found(struct buf *out, const struct bringup *b, bool unwritten)
{
	for (int d = 0; d < b->fabric->n_devices; d++) {
		for (int i = 0; i < b->fabric->devices[d].n_out; i++) {
			const struct bringup_far *far = &b->devices[d].far[i];

			if (far->reach == REACH_INPUT && !bringup_is_looped(far, d) &&
			    !(unwritten && bringup_trunk_at(b, d, true, i))) {
				put_found(out, b, d, i);
			}
		}
	}
}

/* One that could not be tried stays as it is written, unless another one was
 * found at its end; one that is broken is left out. */
static void put_trunks_frames(struct buf *out, const struct bringup *b)
{
	const struct model_fabric *f = b->fabric;

	for (int i = 0; i < f->n_trunks; i++) {
		const struct model_trunk *t = &f->trunks[i];
		const struct bringup_far *far = bringup_far_of(b, t);
		bool found = far->reach == REACH_INPUT && !bringup_is_looped(far, t->from_device);

		if (found || (far->reach == REACH_UNKNOWN &&
			      !bringup_is_found(b, t->to_device, t->to_port))) {
			put_trunk(out, b, t, found ? far->device : t->to_device,
				  found ? far->port : t->to_port);
		}
	}
	put_all_found(out, b, true);
}

/* What was found, in the order of outputs, then what could not be tried and
 * whose place no other fibre has. */
static void put_trunks_power(struct buf *out, const struct bringup *b)
{
	const struct model_fabric *f = b->fabric;

	put_all_found(out, b, false);
	for (int i = 0; i < f->n_trunks; i++) {
		const struct model_trunk *t = &f->trunks[i];

		if (bringup_far_of(b, t)->reach == REACH_UNKNOWN ||
		    (bringup_is_untested(b, t) &&
		     !bringup_is_found(b, t->to_device, t->to_port))) {
			put_trunk(out, b, t, t->to_device, t->to_port);
		}
	}
}

/* ---- the file ---- */

/* The lines of the top-level key `fibres`: from *start to before *end. What
 * is said just before the next key belongs to that. */
static bool find_block(const char *text, const char **start, const char **end)
{
	static const char key[] = "fibres:";
	const char *next;

	*start = NULL;
	*end = NULL;
	for (const char *line = text; *line; line = next) {
		size_t len = strcspn(line, "\n");

		next = line + len + (line[len] == '\n');
		if (!*start && strncmp(line, key, sizeof(key) - 1) == 0) {
			*start = line;
			*end = next;
		} else if (*start && strchr(" \t-]}", *line)) {
			*end = next;	/* goes on */
		} else if (*start && !strchr("\r\n#", *line)) {
			break;
		}
	}
	return *start != NULL;
}

/* The text with the lines of its fibres replaced; it is parsed, so that no file
 * is handed out that weft would refuse. */
static int rewrite(const struct model_fabric *f, const struct buf *fibres,
		   struct buf *out, struct err *err)
{
	struct model_fabric *again = NULL;
	struct err_list errs = { 0 };
	const char *start, *end;
	int rc;

	if (!find_block(f->config.text, &start, &end)) {
		return err_set(err, WEFT_EUNSUPPORTED, "%s: no line begins "
			       "with 'fibres:'", f->config.name);
	}
	buf_add(out, f->config.text, (size_t)(start - f->config.text));
	buf_str(out, buf_cstr(fibres));
	buf_add(out, end, strlen(end));
	rc = model_parse("the fabric as found", out->data, out->len, &again, &errs);
	if (rc && errs.n && err) {
		*err = errs.v[0];
	}
	err_list_fini(&errs);
	model_free(again);
	return rc;
}

int bringup_yaml(const struct bringup *b, struct buf *out, struct err *err)
{
	struct buf fibres = { 0 };
	int rc;

	buf_printf(&fibres, "fibres:\n");
	if (b->method == BY_FRAMES) {
		put_hosts_frames(&fibres, b);
		put_trunks_frames(&fibres, b);
	} else {
		put_hosts_power(&fibres, b);
		put_trunks_power(&fibres, b);
	}
	rc = rewrite(b->fabric, &fibres, out, err);
	buf_fini(&fibres);
	return rc;
}
