/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plan files: what to apply, from which state, and the digest of the steps
 * that were shown. JSON, so that people can read what they approve.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "controller/plan/plan.h"
#include "lib/output/writer.h"

static void write_list(struct buf *b, const char *key, const struct optics_xc *list, int n)
{
	buf_printf(b, ", \"%s\": [", key);
	for (int i = 0; i < n; i++) {
		buf_printf(b, "%s[%d, %d]", i ? ", " : "", list[i].in + 1, list[i].out + 1);
	}
	buf_char(b, ']');
}

/* The steps, for people to read. Applying plans again and compares digests;
 * this part is not read back. */
static void write_devices(struct buf *b, const struct plan *p)
{
	bool first = true;

	buf_str(b, "  \"devices\": [");
	for (int i = 0; i < p->n_devices; i++) {
		const struct plan_device *d = &p->devices[i];

		if (d->n_del + d->n_add == 0 && !d->load_program) {
			continue;
		}
		buf_str(b, first ? "\n    {\"name\": " : ",\n    {\"name\": ");
		first = false;
		out_json_quote(b, p->fabric->devices[d->device].name);
		write_list(b, "delete", d->del, d->n_del);
		write_list(b, "add", d->add, d->n_add);
		if (d->load_program) {
			buf_printf(b, ", \"program_steps\": %u", ring_programs_steps(&d->programs));
		}
		buf_char(b, '}');
	}
	buf_str(b, first ? "],\n" : "\n  ],\n");
}

/* An optional key: NULL or "" stands for one that was not given. */
static void write_text(struct buf *b, const char *key, const char *text)
{
	if (text && text[0]) {
		buf_printf(b, ", \"%s\": ", key);
		out_json_quote(b, text);
	}
}

void plan_request_json(const struct model_request *r, struct buf *out)
{
	const char *comma = "";

	buf_str(out, "{\"name\": ");
	out_json_quote(out, r->name);
	buf_str(out, ", \"nodes\": [");
	for (const char *p = r->nodes; *p;) {
		int len = (int)strcspn(p, " ");

		/* names need no escapes */
		buf_printf(out, "%s\"%.*s\"", comma, len, p);
		comma = ", ";
		p += len + strspn(p + len, " ");
	}
	buf_char(out, ']');
	write_text(out, "collective", r->collective);
	write_text(out, "topology", r->topology);
	write_text(out, "algorithm", r->algorithm);
	write_text(out, "ring", r->ring);
	write_text(out, "ports", r->ports);
	write_text(out, "circuits", r->circuits);
	buf_printf(out, ", \"size_bytes\": %lld", (long long)r->size_bytes);
	if (r->channels > 0) {
		buf_printf(out, ", \"channels\": %d", r->channels);
	}
	buf_char(out, '}');
}

static void write_requests(struct buf *b, const struct model_config *config)
{
	for (int i = 0; i < config->n_requests; i++) {
		buf_str(b, i ? ",\n    " : "  \"jobs\": [\n    ");
		plan_request_json(&config->requests[i], b);
	}
	if (config->n_requests > 0) {
		buf_str(b, "\n  ],\n");
	}
}

void plan_file_write(const struct plan *p, struct buf *out)
{
	buf_str(out, "{\n  \"format\": \"" PLAN_FORMAT "\",\n");
	buf_printf(out, "  \"state\": \"%s\",\n  \"generation\": %lld,\n",
		   p->state_uuid, (long long)p->generation);
	buf_printf(out, "  \"mode\": \"%s\",\n  \"digest\": \"%s\",\n",
		   p->mode == PLAN_UPDATE ? "update" : "safe", p->digest);
	if (p->aim == PLAN_OPTIMISE) {
		buf_str(out, "  \"optimise\": true,\n");
	}
	if (p->evacuated[0]) {
		buf_str(out, "  \"evacuated\": ");
		out_json_quote(out, p->evacuated);
		buf_str(out, ",\n");
	}
	write_devices(out, p);
	write_requests(out, &p->fabric->config);
	buf_printf(out, "  \"config_sha256\": \"%s\",\n  \"config_name\": ", p->fabric->text_hash);
	out_json_quote(out, p->fabric->config.name);
	buf_str(out, ",\n  \"config\": ");
	out_json_quote(out, p->fabric->config.text);
	buf_str(out, "\n}\n");
}

bool plan_file_is(const void *data, size_t len)
{
	const char *s = data;
	size_t i = 0;

	while (i < len && (s[i] == ' ' || s[i] == '\n' || s[i] == '\t' || s[i] == '\r')) {
		i++;
	}
	return i < len && s[i] == '{' &&
	       memmem(s, len < 256 ? len : 256, PLAN_FORMAT,
		      strlen(PLAN_FORMAT));
}

static const char *text_field(const json_t *root, const char *key, struct err *err)
{
	const char *s = json_string_value(json_object_get(root, key));

	if (!s) {
		err_set(err, WEFT_EINVAL, "plan file: %s: no such text field", key);
	}
	return s;
}

static bool is_hex64(const char *s)
{
	return strlen(s) == 64 && strspn(s, "0123456789abcdef") == 64;
}

/* "a b c" from a list of texts; false when it is none. */
static bool read_nodes(const json_t *list, struct buf *out)
{
	bool ok = json_is_array(list);

	for (size_t i = 0; ok && i < json_array_size(list); i++) {
		const char *name = json_string_value(json_array_get(list, i));

		ok = name && name[0] && !strchr(name, ' ');
		buf_printf(out, "%s%s", i ? " " : "", ok ? name : "");
	}
	return ok;
}

/* The optional text of a job; NULL, and *ok false, when it is no text. */
static char *job_text(const json_t *job, const char *key, bool *ok)
{
	const json_t *value = json_object_get(job, key);

	*ok = *ok && (!value || json_is_string(value));
	return (char *)json_string_value(value);
}

/* Checks types and ranges alone; whether the job makes sense is checked when
 * the fabric is made, as for jobs of the text. */
static int read_request(const json_t *job, struct model_config *config, struct err *err)
{
	const json_t *size = json_object_get(job, "size_bytes");
	const json_t *channels = json_object_get(job, "channels");
	struct buf nodes = { 0 };
	bool ok = json_is_object(job) && read_nodes(json_object_get(job, "nodes"), &nodes) &&
		  json_is_integer(size) && (!channels || json_is_integer(channels));
	const struct model_request r = {
		.name = job_text(job, "name", &ok),
		.nodes = (char *)buf_cstr(&nodes),
		.collective = job_text(job, "collective", &ok),
		.topology = job_text(job, "topology", &ok),
		.algorithm = job_text(job, "algorithm", &ok),
		.ring = job_text(job, "ring", &ok),
		.ports = job_text(job, "ports", &ok),
		.circuits = job_text(job, "circuits", &ok),
		.size_bytes = json_integer_value(size),
		.channels = (int)(json_integer_value(channels) & INT16_MAX),
	};
	int rc = 0, least = r.circuits ? 0 : 1;

	if (!ok || r.size_bytes < least || r.channels != json_integer_value(channels)) {
		rc = err_set(err, WEFT_EINVAL, "plan file: jobs: not a job");
	} else {
		model_config_add(config, &r);
	}
	buf_fini(&nodes);
	return rc;
}

static int read_requests(const json_t *list, struct model_config *out, struct err *err)
{
	int rc = 0;

	if (list && (!json_is_array(list) || json_array_size(list) > MODEL_MAX_JOBS)) {
		return err_set(err, WEFT_EINVAL, "plan file: jobs: not a list of jobs");
	}
	for (size_t i = 0; i < json_array_size(list) && rc == 0; i++) {
		rc = read_request(json_array_get(list, i), out, err);
	}
	return rc;
}

/* All keys but those for people; the first one that is wrong is named. */
static int read_fields(const json_t *root, struct plan_file *out, struct err *err)
{
	const char *format = text_field(root, "format", err), *state, *mode;
	const char *digest, *name, *config;
	const json_t *generation = json_object_get(root, "generation");
	const json_t *evacuated = json_object_get(root, "evacuated");

	if (!format || !(state = text_field(root, "state", err)) ||
	    !(mode = text_field(root, "mode", err)) ||
	    !(digest = text_field(root, "digest", err)) ||
	    !(name = text_field(root, "config_name", err)) ||
	    !(config = text_field(root, "config", err))) {
		return WEFT_EINVAL;
	}
	if (strcmp(format, PLAN_FORMAT) != 0) {
		return err_set(err, WEFT_EINVAL, "plan file: format: \"%.40s\""
			       ", this weft reads " PLAN_FORMAT, format);
	}
	if (strlen(state) >= sizeof(out->state_uuid)) {
		return err_set(err, WEFT_EINVAL, "plan file: state: too long");
	}
	if (!json_is_integer(generation) || json_integer_value(generation) < 0) {
		return err_set(err, WEFT_EINVAL, "plan file: generation: not a count");
	}
	if (!is_hex64(digest)) {
		return err_set(err, WEFT_EINVAL, "plan file: digest: not a SHA-256");
	}
	if (strcmp(mode, "safe") != 0 && strcmp(mode, "update") != 0) {
		return err_set(err, WEFT_EINVAL, "plan file: mode: \"%.40s\" "
			       "is not safe or update", mode);
	}
	if (evacuated && (!json_is_string(evacuated) ||
			  json_string_length(evacuated) >= sizeof(out->evacuated))) {
		return err_set(err, WEFT_EINVAL, "plan file: evacuated: not a name");
	}
	snprintf(out->evacuated, sizeof(out->evacuated), "%s",
		 evacuated ? json_string_value(evacuated) : "");
	out->aim = json_is_true(json_object_get(root, "optimise")) ? PLAN_OPTIMISE : PLAN_REPAIR;
	strcpy(out->state_uuid, state);
	strcpy(out->digest, digest);
	out->generation = json_integer_value(generation);
	out->mode = strcmp(mode, "update") == 0 ? PLAN_UPDATE : PLAN_SAFE;
	model_config_init(&out->config, name, config, strlen(config));
	return read_requests(json_object_get(root, "jobs"), &out->config, err);
}

int plan_file_read(const void *data, size_t len, struct plan_file *out, struct err *err)
{
	json_error_t why;
	json_t *root;
	int rc;

	memset(out, 0, sizeof(*out));
	if (len > 2 * (size_t)MODEL_MAX_TEXT) {
		return err_set(err, WEFT_ELIMIT, "plan file: %zu bytes, more "
			       "than any plan has", len);
	}
	root = json_loadb(data, len, JSON_REJECT_DUPLICATES, &why);
	if (!root) {
		return err_set(err, WEFT_EINVAL, "plan file:%d:%d: %s",
			       why.line, why.column, why.text);
	}
	rc = read_fields(root, out, err);
	json_decref(root);
	if (rc) {
		plan_file_fini(out);
	}
	return rc;
}

void plan_file_fini(struct plan_file *f)
{
	model_config_fini(&f->config);
	memset(f, 0, sizeof(*f));
}
