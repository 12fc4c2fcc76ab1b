/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bring-up: the fabric's text with the fibres as found.
 *
 * Only the lines of the key `fibres` are replaced, so that comments and the
 * order of all else stay the operator's. A fibre that was found somewhere is
 * written with both of its ends, several that follow one another as one entry;
 * one that is broken or reversed is left out, as planning must not use it; one
 * that could not be tried stays as written.
 */
#include <stdlib.h>
#include <string.h>

#include "controller/testbed/bringup_private.h"
#include "lib/base/alloc.h"
#include "lib/base/order.h"

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
static void put_fibre(struct bringup_fibres *out, const char *from, const char *to,
		      int32_t loss_mdb, bool amplified, int channel)
{
	struct buf more = { 0 };

	put_loss(&more, loss_mdb, amplified);
	if (channel >= 0) {
		buf_printf(&more, ", channels: %d", channel);
	}
	bringup_fibres_add(out, from, to, buf_cstr(&more), channel >= 0);
	buf_fini(&more);
}

/* ---- to hosts ---- */

/* A fibre between a host and where it was found; device -1: nowhere, and the
 * fibre is left out. */
struct host_fibre {
	int port;
	bool rx;
	struct bringup_place at;
};

static void put_host(struct bringup_fibres *out, const struct bringup *b,
		     const struct host_fibre *h)
{
	const struct model_port *p = &b->fabric->ports[h->port];
	char host[BRINGUP_NAME_MAX], place[BRINGUP_NAME_MAX];

	if (h->at.device < 0) {
		return;
	}
	bringup_put_host(p, h->rx, host);
	bringup_put_place(b, h->at, h->rx, place);
	put_fibre(out, h->rx ? place : host, h->rx ? host : place,
		  h->rx ? p->rx_loss_mdb : p->tx_loss_mdb,
		  h->rx ? p->rx_amplified : p->tx_amplified, -1);
}

/* Where frames showed it, or as written where none could; by power as written, unless it is
 * dark. */
static struct bringup_place place_of(const struct bringup *b, int port, bool rx)
{
	const struct model_port *h = &b->fabric->ports[port];
	const struct bringup_end *end;

	if (b->method == BY_FRAMES) {
		return bringup_host_is_untested(b, port, rx) ? bringup_written(h, rx) :
			bringup_find_host(b, port, rx, &end);
	}
	if (bringup_is_reversed(b, h) ||
	    (rx ? bringup_rx_is_gone(b, h) : bringup_tx_is_dark(b, h))) {
		return (struct bringup_place){ .device = -1 };
	}
	return bringup_written(h, rx);
}

ORDER_BY(by_place, struct host_fibre, rx, at.device, at.port, port)

/* Transmit fibres first, then receive fibres, each in the order of the devices' ports: so they
 * follow one another however hosts are spread over switches. */
static void put_hosts(struct bringup_fibres *out, const struct bringup *b)
{
	int n = b->fabric->n_ports;
	struct host_fibre *v = x_new(2 * (size_t)n + 1, sizeof(*v));

	for (int i = 0; i < 2 * n; i++) {
		v[i] = (struct host_fibre){ i % n, i >= n, place_of(b, i % n, i >= n) };
	}
	qsort(v, 2 * (size_t)n, sizeof(*v), by_place);
	for (int i = 0; i < 2 * n; i++) {
		put_host(out, b, &v[i]);
	}
	free(v);
}

/* ---- between switches ---- */

/* The trunk as written, but ending at this input. */
static void put_trunk(struct bringup_fibres *out, const struct bringup *b,
		      const struct model_trunk *t, int device, int port)
{
	struct bringup_place begin = { t->from_device, t->from_port }, end = { device, port };
	char from[BRINGUP_NAME_MAX], to[BRINGUP_NAME_MAX];

	bringup_put_place(b, begin, true, from);
	bringup_put_place(b, end, false, to);
	put_fibre(out, from, to, t->loss_mdb, t->amplified, t->channel);
}

/* What was found, with the loss that is written where the fibre is, if that is
 * within the limit, else as measured. */
static void put_found(struct bringup_fibres *out, const struct bringup *b, int device, int port)
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
static void put_all_found(struct bringup_fibres *out, const struct bringup *b, bool unwritten)
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
static void put_trunks_frames(struct bringup_fibres *out, const struct bringup *b)
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
static void put_trunks_power(struct bringup_fibres *out, const struct bringup *b)
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
	struct bringup_fibres found = { 0 };
	struct buf fibres = { 0 };
	int rc;

	put_hosts(&found, b);
	if (b->method == BY_FRAMES) {
		put_trunks_frames(&found, b);
	} else {
		put_trunks_power(&found, b);
	}
	buf_printf(&fibres, "fibres:\n");
	bringup_fibres_put(&found, &fibres);
	rc = rewrite(b->fabric, &fibres, out, err);
	buf_fini(&fibres);
	vec_fini(&found);
	return rc;
}
