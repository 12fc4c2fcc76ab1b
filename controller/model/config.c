/* SPDX-License-Identifier: Apache-2.0 */
/* Configurations: an operator's text and the jobs requested on it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/model/model.h"
#include "lib/base/alloc.h"
#include "lib/base/buf.h"
#include "lib/digest/sha256.h"
#include "lib/conf/conf.h"

void model_config_init(struct model_config *out, const char *name, const void *text, size_t len)
{
	*out = (struct model_config){
		.name = x_dup(name), .text = x_alloc(len + 1, 1), .len = len,
	};
	if (len) {
		memcpy(out->text, text, len);
	}
	out->text[len] = '\0';
}

void model_config_copy(struct model_config *out, const struct model_config *from)
{
	model_config_init(out, from->name, from->text, from->len);
	for (int i = 0; i < from->n_requests; i++) {
		model_config_add(out, &from->requests[i]);
	}
}

static void request_fini(struct model_request *r)
{
	free(r->name);
	free(r->nodes);
	free(r->collective);
	free(r->topology);
	free(r->algorithm);
	free(r->ring);
	free(r->ports);
	free(r->circuits);
}

void model_config_fini(struct model_config *config)
{
	free(config->name);
	free(config->text);
	for (int i = 0; i < config->n_requests; i++) {
		request_fini(&config->requests[i]);
	}
	free(config->requests);
	memset(config, 0, sizeof(*config));
}

int model_config_drop_jobs(struct model_config *config, struct err *err)
{
	struct model_config rest;
	struct buf text = { 0 }, jobs = { 0 };
	int r = conf_replace(config->text, config->len, "jobs", "[]", &jobs, err);

	if (r == 0) {
		r = conf_replace(buf_cstr(&jobs), jobs.len, "circuits", "[]", &text, err);
	}
	buf_fini(&jobs);
	if (r == 0) {
		model_config_init(&rest, config->name, buf_cstr(&text), text.len);
		model_config_fini(config);
		*config = rest;
	}
	buf_fini(&text);
	return r;
}

static char *copy_text(const char *text)
{
	return x_dup(text ? text : "");
}

void model_config_add(struct model_config *config, const struct model_request *r)
{
	size_t n = (size_t)config->n_requests;
	struct model_request copy = {
		.name = copy_text(r->name),
		.nodes = copy_text(r->nodes),
		.collective = copy_text(r->collective),
		.topology = copy_text(r->topology),
		.algorithm = copy_text(r->algorithm),
		.ring = copy_text(r->ring),
		.ports = copy_text(r->ports),
		.circuits = copy_text(r->circuits),
		.size_bytes = r->size_bytes,
		.channels = r->channels,
	};

	config->requests = x_grow(config->requests, n + 1, sizeof(*config->requests));
	config->requests[config->n_requests++] = copy;
}

/* No text holds a zero byte, so that these bytes stand for one list only. */
static void put_request(struct buf *b, const struct model_request *r)
{
	const char *const texts[] = { r->name,     r->nodes,     r->collective,
				      r->topology, r->algorithm, r->ring };

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		buf_add(b, texts[i], strlen(texts[i]) + 1);
	}
	buf_printf(b, "%lld %d", (long long)r->size_bytes, r->channels);
	buf_char(b, '\0');
	/* The hash of a request of before there were such is what it was. */
	if (r->ports[0] || r->circuits[0]) {
		buf_add(b, r->ports, strlen(r->ports) + 1);
		buf_add(b, r->circuits, strlen(r->circuits) + 1);
	}
}

void model_config_hash(const struct model_config *config, char hash[65])
{
	unsigned char digest[SHA256_LEN];
	struct buf b = { 0 };

	if (config->n_requests > 0) {
		buf_add(&b, config->text, config->len + 1);
	}
	for (int i = 0; i < config->n_requests; i++) {
		put_request(&b, &config->requests[i]);
	}
	sha256(b.len ? b.data : config->text, b.len ? b.len : config->len, digest);
	buf_fini(&b);
	sha256_hex(digest, hash);
}
