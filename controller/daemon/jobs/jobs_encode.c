/* Jobs as text: for the store, and as YAML; see jobs.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/daemon/jobs/private.h"
#include "lib/base/units.h"

int job_pack(const Weft__V1__RequestJobRequest *req, char **out,
	     struct err *err)
{
	size_t len = weft__v1__request_job_request__get_packed_size(req);
	uint8_t *data = malloc(len + 1);
	char *text = malloc(2 * len + 1);

	*out = NULL;
	if (!data || !text) {
		free(data);
		free(text);
		return err_nomem(err);
	}
	weft__v1__request_job_request__pack(req, data);
	text[0] = '\0';
	for (size_t i = 0; i < len; i++) {
		snprintf(text + 2 * i, 3, "%02x", data[i]);
	}
	free(data);
	*out = text;
	return 0;
}

int job_unpack(const char *text, Weft__V1__RequestJobRequest **out,
	       struct err *err)
{
	size_t len = strlen(text) / 2;
	uint8_t *data = malloc(len + 1);
	ProtobufCMessage *msg = NULL;
	int r = data ? 0 : err_nomem(err);

	*out = NULL;
	for (size_t i = 0; i < len && r == 0; i++) {
		unsigned byte;

		if (sscanf(text + 2 * i, "%2x", &byte) != 1) {
			r = err_set(err, WEFT_EINVAL,
				    "a job in the store cannot be read");
		} else {
			data[i] = (uint8_t)byte;
		}
	}
	if (r == 0) {
		r = rpc_decode(&weft__v1__request_job_request__descriptor,
			       data, len, 0, &msg, err);
	}
	free(data);
	*out = (Weft__V1__RequestJobRequest *)msg;
	return r;
}

/* ---- YAML ---------------------------------------------------------------- */

/* In double quotes. Nothing in a job needs more than what is printed. */
static int put_quoted(struct buf *b, const char *key, const char *text,
		      struct err *err)
{
	buf_char(b, '"');
	for (const char *p = text; *p; p++) {
		if (*p < 0x20 || *p > 0x7e) {
			return err_set(err, WEFT_EINVAL, "%s: \"%.40s\" holds "
				       "a character that is not allowed", key,
				       text);
		}
		if (*p == '"' || *p == '\\') {
			buf_char(b, '\\');
		}
		buf_char(b, *p);
	}
	buf_char(b, '"');
	return 0;
}

static int put_key(struct buf *b, const char *key, const char *text,
		   struct err *err)
{
	if (!text[0]) {
		return 0;
	}
	buf_printf(b, ", %s: ", key);
	return put_quoted(b, key, text, err);
}

/* "a b c" as a list. */
static int put_nodes(struct buf *b, const char *nodes, struct err *err)
{
	char *copy = strdup(nodes), *rest = copy, *name;
	const char *comma = "";
	int r = copy ? 0 : err_nomem(err);

	buf_str(b, ", nodes: [");
	while (r == 0 && (name = strsep(&rest, " ")) != NULL) {
		buf_str(b, comma);
		comma = ", ";
		r = put_quoted(b, "nodes", name, err);
	}
	buf_char(b, ']');
	free(copy);
	return r;
}

int job_entry(const struct job *j, struct buf *out, struct err *err)
{
	const Weft__V1__RequestJobRequest *q = j->req;
	const char *nodes = j->moving ? j->moving : j->s.nodes;
	char size[64];
	int r;

	buf_str(out, "{ name: ");
	if ((r = put_quoted(out, "name", j->s.name, err)) ||
	    (nodes[0] && (r = put_nodes(out, nodes, err))) ||
	    (r = put_key(out, "collective", q->collective, err)) ||
	    (r = put_key(out, "topology", q->topology, err)) ||
	    (r = put_key(out, "algorithm", q->algorithm, err)) ||
	    (r = put_key(out, "ring", q->ring, err))) {
		return r;
	}
	buf_printf(out, ", size: %s",
		   unit_str(UNIT_BYTES, q->size_bytes, size, sizeof(size)));
	if (q->channels > 0) {
		buf_printf(out, ", channels: %d", q->channels);
	}
	buf_str(out, " }");
	return out->failed ? err_nomem(err) : 0;
}

int jobs_compose(const struct jobs *jobs, const char *text, size_t len,
		 struct buf *out, struct err *err)
{
	bool first = true;
	int r = 0;

	len = model_without_requests(text, len);
	buf_add(out, text, len);
	for (size_t i = 0; i < jobs->v.n && r == 0; i++) {
		if (!job_has_light(jobs->v.v[i])) {
			continue;
		}
		if (first) {
			buf_printf(out, "%s" MODEL_REQUESTS_MARK "requests:\n",
				   len && text[len - 1] != '\n' ? "\n" : "");
			first = false;
		}
		buf_str(out, "  - ");
		r = job_entry(jobs->v.v[i], out, err);
		buf_char(out, '\n');
	}
	return r ? r : out->failed ? err_nomem(err) : 0;
}
