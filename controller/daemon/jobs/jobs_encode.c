/*
 * Jobs for the store, and as values for the model. The store keeps a request as the
 * protobuf that the client sent, so that a later weftd reads it with all fields that
 * it knows; the model takes the few that shape a fabric's jobs.
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
		.collective = q->collective,
		.topology = q->topology,
		.algorithm = q->algorithm,
		.ring = q->ring,
		.ports = j->ports,
		.circuits = j->circuits,
		.size_bytes = q->size_bytes,
		.channels = q->channels,
	};
}

void jobs_add_requests(const struct jobs *jobs, struct model_config *config)
{
	for (size_t i = 0; i < jobs->v.n; i++) {
		const struct job *j = jobs->v.v[i];
		const struct model_request q = job_value(j);
		const struct job *next = job_replacement(j);

		if (job_has_circuits(j) && !(next && job_has_circuits(next))) {
			model_config_add(config, &q);
		}
	}
}
