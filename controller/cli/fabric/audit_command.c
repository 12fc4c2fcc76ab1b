/* SPDX-License-Identifier: Apache-2.0 */
/* weft audit: what was said to devices to move light. */
#include <stdlib.h>
#include <string.h>

#include "controller/cli/core/private.h"
#include "lib/base/alloc.h"
#include "lib/base/clock.h"
#include "lib/base/vec.h"

#define LINES 200		/* unless told, or of one change */
#define LINES_MOST 50000

/* Answers, newest first; each has its lines oldest first. */
struct pages {
	VEC(ProtobufCMessage *) v;
};

/* One answer of weftd, which pages own from then on; *out borrows it. */
static int get_page(struct cli *c, Weft__V1__AuditRequest *req, struct pages *pages,
		    const Weft__V1__AuditResponse **out, struct err *err)
{
	ProtobufCMessage *msg = NULL;
	int r = cli_unary(c, CLI_METHOD("Audit"), &req->base, &weft__v1__audit_response__descriptor,
			  CLI_CALL_MS, &msg, err);

	if (r == 0) {
		vec_push(&pages->v, msg);
	}
	*out = (const Weft__V1__AuditResponse *)msg;
	return r;
}

/* weftd answers with a page at a time, the newest first: the next call asks
 * for lines before the oldest of this one, until `limit` are here or weftd
 * has no more. */
static int get_all(struct cli *c, Weft__V1__AuditRequest *req, int64_t limit,
		   struct pages *pages, struct err *err)
{
	const Weft__V1__AuditResponse *a;
	int r;

	do {
		req->limit = (int32_t)limit;
		r = get_page(c, req, pages, &a, err);
		if (r == 0 && a->n_lines > 0) {
			req->before = a->lines[0]->id;
			limit -= (int64_t)a->n_lines;
		}
	} while (r == 0 && a->more && limit > 0);
	return r;
}

/* One answer with the lines and changes of all, which stay theirs. */
static void join(const struct pages *pages, Weft__V1__AuditResponse *out)
{
	size_t lines = 0, changes = 0;

	for (size_t i = 0; i < pages->v.n; i++) {
		const Weft__V1__AuditResponse *a = (const Weft__V1__AuditResponse *)pages->v.v[i];

		lines += a->n_lines;
		changes += a->n_changes;
	}
	out->lines = x_new(lines + 1, sizeof(*out->lines));
	out->changes = x_new(changes + 1, sizeof(*out->changes));
	/* The last page has the oldest lines. */
	for (size_t i = pages->v.n; i-- > 0;) {
		const Weft__V1__AuditResponse *a = (const Weft__V1__AuditResponse *)pages->v.v[i];

		for (size_t k = 0; k < a->n_lines; k++) {
			out->lines[out->n_lines++] = a->lines[k];
		}
		for (size_t k = 0; k < a->n_changes; k++) {
			out->changes[out->n_changes++] = a->changes[k];
		}
	}
}

/* *limit: lines to fetch; a change is wanted whole unless --limit says
 * otherwise. */
static int read_options(struct cli *c, Weft__V1__AuditRequest *req, int64_t *limit, struct err *err)
{
	const char *device = cli_opt(c, "device");
	int64_t since_ns = 0;
	int r = cli_opt_int(c, "change", 1, INT64_MAX, &req->change, err);

	*limit = req->change ? LINES_MOST : LINES;
	if (r || (r = cli_opt_unit(c, "since", UNIT_NS, &since_ns, err)) ||
	    (r = cli_opt_int(c, "limit", 1, LINES_MOST, limit, err))) {
		return r;
	}
	req->device = (char *)(device ? device : "");
	req->since_at_ns = since_ns > 0 ? clk_wall_ns() - since_ns : 0;
	return 0;
}

/* "audit": an array with at, change, who, outcome, proof, device, kind, text
 * a line, oldest first. */
int cmd_audit(struct cli *c, struct err *err)
{
	Weft__V1__AuditRequest req = WEFT__V1__AUDIT_REQUEST__INIT;
	Weft__V1__AuditResponse all = WEFT__V1__AUDIT_RESPONSE__INIT;
	struct pages pages = { 0 };
	int64_t limit;
	struct out *o;
	int r;

	if ((r = read_options(c, &req, &limit, err)) ||
	    (r = get_all(c, &req, limit, &pages, err))) {
		goto out;
	}
	join(&pages, &all);
	o = out_new(c->format);
	msg_out_audit(o, c->format, &all);
	r = cli_print(o, err);
out:
	free(all.lines);
	free(all.changes);
	for (size_t i = 0; i < pages.v.n; i++) {
		rpc_free_message(pages.v.v[i]);
	}
	vec_fini(&pages.v);
	return r;
}
