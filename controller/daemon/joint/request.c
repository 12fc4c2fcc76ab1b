/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests of joint changes as bytes (weft.joint.v1.JointRequest). They carry the configuration
 * with all jobs that orchestrators asked for, in their order: its hash is the same at every
 * participant. What is decoded comes from outside, and every field is checked but the text,
 * which the parser of fabrics reads.
 */
#include <stdlib.h>
#include <string.h>

#include "controller/daemon/joint/private.h"

typedef Weft__Joint__V1__JointRequest pb_request;
typedef Weft__Joint__V1__Job pb_job;

/* Bytes of heap that decoding may take for each byte of message: a job without a name is two
 * bytes, and a struct of some hundred. */
#define HEAP_PER_BYTE 128
#define HEAP_BASE ((size_t)1 << 20)

void joint_pack(const ProtobufCMessage *msg, struct buf *out)
{
	char *to = buf_extend(out, protobuf_c_message_get_packed_size(msg));

	protobuf_c_message_pack(msg, (uint8_t *)to);
}

int joint_unpack(const ProtobufCMessageDescriptor *type, const void *data, size_t len,
		 ProtobufCMessage **out, struct err *err)
{
	return rpc_decode(type, data, len, HEAP_BASE + len * HEAP_PER_BYTE, out, err);
}

void joint_request_fini(struct joint_request *r)
{
	store_order_fini(&r->order);
	model_config_fini(&r->config);
	memset(r, 0, sizeof(*r));
}

/* ---- to bytes ------------------------------------------------------------ */

static pb_job **job_messages(const struct model_config *config)
{
	size_t n = (size_t)config->n_requests;
	pb_job **v = message_list(&weft__joint__v1__job__descriptor, n);

	for (size_t i = 0; i < n; i++) {
		const struct model_request *from = &config->requests[i];

		v[i]->name = from->name;
		v[i]->nodes = from->nodes;
		v[i]->collective = from->collective;
		v[i]->topology = from->topology;
		v[i]->algorithm = from->algorithm;
		v[i]->ring = from->ring;
		v[i]->size_bytes = from->size_bytes;
		v[i]->channels = from->channels;
		v[i]->ports = from->ports;
		v[i]->circuits = from->circuits;
	}
	return v;
}

void joint_request_encode(const struct joint_request *r, struct buf *out)
{
	pb_request m = WEFT__JOINT__V1__JOINT_REQUEST__INIT;

	m.request_id = (char *)r->order.request_id;
	m.name = r->config.name;
	m.text = (ProtobufCBinaryData){ r->config.len, (uint8_t *)r->config.text };
	m.n_jobs = (size_t)r->config.n_requests;
	m.jobs = job_messages(&r->config);
	m.mode = r->mode == PLAN_UPDATE ? WEFT__V1__MODE__MODE_UPDATE : WEFT__V1__MODE__MODE_SAFE;
	m.ignore_floor = r->ignore_floor;
	m.digest = (char *)r->digest;
	m.who = (char *)r->order.who;
	m.comment = (char *)r->order.comment;
	m.arguments = (char *)r->order.arguments;
	m.trace = (char *)r->order.trace;
	joint_pack(&m.base, out);
	free(m.jobs);
}

/* ---- and back ------------------------------------------------------------ */

/* Nothing, or as many hexadecimal digits as there is room for. */
static int take_hex(const char *what, const char *from, char *to, size_t size, struct err *err)
{
	size_t n = strlen(from);

	if (n && (n != size - 1 || strspn(from, "0123456789abcdef") != n)) {
		return err_set(err, WEFT_EINVAL, "%s: not %zu hexadecimal digits", what, size - 1);
	}
	memcpy(to, from, n + 1);
	return 0;
}

static int take_config(const pb_request *m, struct model_config *out, struct err *err)
{
	if (m->text.len > MODEL_MAX_TEXT || m->n_jobs > MODEL_MAX_JOBS) {
		return err_set(err, WEFT_ELIMIT, "%s: more than %u bytes or %d jobs", m->name,
			       MODEL_MAX_TEXT, MODEL_MAX_JOBS);
	}
	model_config_init(out, m->name, m->text.data, m->text.len);
	for (size_t i = 0; i < m->n_jobs; i++) {
		const pb_job *job = m->jobs[i];

		model_config_add(out, &(struct model_request){
			.name = job->name, .nodes = job->nodes, .collective = job->collective,
			.topology = job->topology, .algorithm = job->algorithm,
			.ring = job->ring, .size_bytes = job->size_bytes,
			.channels = job->channels, .ports = job->ports,
			.circuits = job->circuits });
	}
	return 0;
}

static int take_order(const pb_request *m, struct change_order *out, struct err *err)
{
	const struct change_order texts = { .request_id = m->request_id, .who = m->who,
					    .comment = m->comment };
	int rc;

	store_order_copy(&texts, out);
	rc = take_hex("arguments", m->arguments, out->arguments, sizeof(out->arguments), err);
	if (rc) {
		return rc;
	}
	return take_hex("trace", m->trace, out->trace, sizeof(out->trace), err);
}

static int take_request(const pb_request *m, struct joint_request *out, struct err *err)
{
	int rc;

	if (m->mode != WEFT__V1__MODE__MODE_SAFE && m->mode != WEFT__V1__MODE__MODE_UPDATE) {
		return err_set(err, WEFT_EINVAL, "mode %d is none", (int)m->mode);
	}
	out->mode = m->mode == WEFT__V1__MODE__MODE_UPDATE ? PLAN_UPDATE : PLAN_SAFE;
	out->ignore_floor = m->ignore_floor;
	if ((rc = take_hex("digest", m->digest, out->digest, sizeof(out->digest), err)) ||
	    (rc = take_order(m, &out->order, err))) {
		return rc;
	}
	return take_config(m, &out->config, err);
}

int joint_request_decode(const void *data, size_t len, struct joint_request *out,
			 struct err *err)
{
	ProtobufCMessage *msg = NULL;
	int rc;

	memset(out, 0, sizeof(*out));
	rc = joint_unpack(&weft__joint__v1__joint_request__descriptor, data, len, &msg, err);
	if (rc == 0) {
		rc = take_request((pb_request *)msg, out, err);
		rpc_free_message(msg);
	}
	if (rc) {
		joint_request_fini(out);
		return err_wrap(err, "request of a joint change");
	}
	return 0;
}
