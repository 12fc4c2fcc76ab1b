/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jobs for the store, and as values for the model. The store keeps a request as the
 * protobuf that the client sent, so that a later weftd reads it with all fields that
 * it knows; the model takes the few that shape a fabric's jobs. Requests are kept with the
 * names that the fabric has for their ports, whichever labels they came with, so that equal ones
 * are equal.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/daemon/jobs/private.h"
#include "lib/base/alloc.h"

char *job_pack(const Weft__V1__RequestJobRequest *req)
{
	size_t len = weft__v1__request_job_request__get_packed_size(req);
	uint8_t *data = x_alloc(len + 1, 1);
	char *text = x_alloc(2 * len + 1, 1);

	weft__v1__request_job_request__pack(req, data);
	text[0] = '\0';
	for (size_t i = 0; i < len; i++) {
		snprintf(text + 2 * i, 3, "%02x", data[i]);
	}
	free(data);
	return text;
}

int job_unpack(const char *text, Weft__V1__RequestJobRequest **out, struct err *err)
{
	size_t len = strlen(text) / 2;
	uint8_t *data = x_alloc(len + 1, 1);
	ProtobufCMessage *msg = NULL;
	int r = 0;

	*out = NULL;
	for (size_t i = 0; i < len && r == 0; i++) {
		unsigned byte;

		if (sscanf(text + 2 * i, "%2x", &byte) != 1) {
			r = err_set(err, WEFT_EINVAL, "a job in the store cannot be read");
		} else {
			data[i] = (uint8_t)byte;
		}
	}
	if (r == 0) {
		r = rpc_decode(&weft__v1__request_job_request__descriptor, data, len, 0, &msg, err);
	}
	free(data);
	*out = (Weft__V1__RequestJobRequest *)msg;
	return r;
}

/* ---- values -------------------------------------------------------------- */

struct model_request job_value(const struct job *j)
{
	const Weft__V1__RequestJobRequest *q = j->req;

	return (struct model_request){
		.name = j->s.name,
		.nodes = q->n_circuits ? (char *)"" : j->moving ? j->moving : j->s.nodes,
		.collective = q->step[0] ? q->step : q->collective,
		.topology = j->topology,
		.algorithm = q->algorithm,
		.ring = q->ring,
		.ports = j->ports,
		.circuits = j->circuits,
		.size_bytes = q->size_bytes,
		.channels = q->channels,
	};
}

char *job_node_names(const struct model_fabric *f, const int *hosts, int n)
{
	struct buf b = { 0 };

	for (int i = 0; i < n; i++) {
		buf_printf(&b, "%s%s", i ? " " : "", f->hosts[hosts[i]].name);
	}
	return buf_steal(&b);
}

char *job_circuits_text(const Weft__V1__RequestJobRequest *q)
{
	struct buf b = { 0 };

	for (size_t i = 0; i < q->n_circuits; i++) {
		const Weft__V1__CircuitEnds *c = q->circuits[i];

		buf_printf(&b, "%s%s %s%s", i ? "\n" : "", c->from, c->to,
			   c->simplex ? " one-way" : "");
	}
	return buf_steal(&b);
}

char *job_topology_text(const Weft__V1__RequestJobRequest *q)
{
	struct buf b = { 0 };

	if (q->protect[0] && strcmp(q->protect, "none") != 0) {
		buf_printf(&b, "protect %s ", q->protect);
	}
	if (q->n_shape != 3) {
		buf_str(&b, q->topology);
		return buf_steal(&b);
	}
	buf_printf(&b, "shape %dx%dx%d%s", q->shape[0], q->shape[1], q->shape[2],
		   q->twist ? " twist" : "");
	if (q->spares > 0) {
		buf_printf(&b, " %d", q->spares);
	}
	return buf_steal(&b);
}

char *job_ports_text(const Weft__V1__RequestJobRequest *q)
{
	struct buf b = { 0 };

	if (q->port_count > 0) {
		buf_printf(&b, "%d", q->port_count);
	}
	for (size_t i = 0; i < q->n_ports; i++) {
		const bool is_digits = !q->ports[i][strspn(q->ports[i], "0123456789")];

		buf_printf(&b, "%s%s", i || is_digits ? " " : "", q->ports[i]);
	}
	return buf_steal(&b);
}

/* ---- names --------------------------------------------------------------- */

/* The fabric's name of a port, with all of its lanes; owned by the caller. */
static char *port_name(const struct model_fabric *f, int port, int lanes)
{
	char *name = x_dup(f->ports[port].name);

	if (lanes > 1) {
		*strrchr(name, '-') = '\0';
	}
	return name;
}

int port_by_names(const struct model_fabric *f, const char *text, char **name, int *port,
		  int *lanes, struct err *err)
{
	if (model_find_port(f, text, port, lanes, err)) {
		err_hint(err, "a port is HOST.PORT, by names or labels");
		return err->code = WEFT_EINVAL;
	}
	*name = port_name(f, *port, *lanes);
	return 0;
}

int named_request_init(struct named_request *n, const struct model_fabric *f,
		       const Weft__V1__RequestJobRequest *q, struct err *err)
{
	const size_t count = q->n_circuits;
	int port, lanes, r = 0;

	*n = (struct named_request){ .q = *q };
	n->ends = x_new(count + 1, sizeof(*n->ends));
	n->q.circuits = x_new(count + 1, sizeof(*n->q.circuits));
	for (size_t i = 0; i < count; i++) {
		n->ends[i] = *q->circuits[i];
		n->ends[i].from = n->ends[i].to = NULL;
		n->q.circuits[i] = &n->ends[i];
	}
	for (size_t i = 0; i < count && r == 0; i++) {
		r = port_by_names(f, q->circuits[i]->from, &n->ends[i].from, &port, &lanes, err);
		if (r == 0) {
			r = port_by_names(f, q->circuits[i]->to, &n->ends[i].to, &port, &lanes,
					  err);
		}
	}
	return r;
}

void named_request_fini(struct named_request *n)
{
	for (size_t i = 0; i < n->q.n_circuits && n->ends; i++) {
		free(n->ends[i].from);
		free(n->ends[i].to);
	}
	free(n->ends);
	free(n->q.circuits);
}

/* ---- equal --------------------------------------------------------------- */

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* A line each, which of two ends comes first only where it matters, sorted; owned. */
static char **sorted_lines(const Weft__V1__RequestJobRequest *q)
{
	char **v = x_new(q->n_circuits + 1, sizeof(*v));

	for (size_t i = 0; i < q->n_circuits; i++) {
		const Weft__V1__CircuitEnds *c = q->circuits[i];
		const bool swap = !c->simplex && strcmp(c->from, c->to) > 0;
		struct buf b = { 0 };

		buf_printf(&b, "%s %s%s", swap ? c->to : c->from, swap ? c->from : c->to,
			   c->simplex ? " one-way" : "");
		v[i] = buf_steal(&b);
	}
	qsort(v, q->n_circuits, sizeof(*v), by_text);
	return v;
}

bool same_circuits(const Weft__V1__RequestJobRequest *a, const Weft__V1__RequestJobRequest *b)
{
	bool same = a->n_circuits == b->n_circuits && a->partial == b->partial;
	char **x, **y;

	if (!same) {
		return false;
	}
	x = sorted_lines(a);
	y = sorted_lines(b);
	for (size_t i = 0; i < a->n_circuits; i++) {
		same = same && strcmp(x[i], y[i]) == 0;
	}
	model_names_free(x);
	model_names_free(y);
	return same;
}
