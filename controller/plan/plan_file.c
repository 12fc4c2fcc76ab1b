/*
 * Plan files: what to apply, from which state, and the digest of the steps
 * that were shown. JSON, so that people can read what they approve.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "controller/plan/plan.h"
#include "lib/output/writer.h"

#define PLAN_FORMAT "weft-plan-1"

static void write_list(struct buf *b, const char *key,
		       const struct optics_xc *list, int n)
{
	buf_printf(b, ", \"%s\": [", key);
	for (int i = 0; i < n; i++) {
		buf_printf(b, "%s[%d, %d]", i ? ", " : "", list[i].in + 1,
			   list[i].out + 1);
	}
	buf_char(b, ']');
}

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
			buf_printf(b, ", \"program_steps\": %u",
				   ring_programs_steps(&d->programs));
		}
		buf_char(b, '}');
	}
	buf_str(b, first ? "],\n" : "\n  ],\n");
}

int plan_file_write(const struct plan *p, struct buf *out, struct err *err)
{
	buf_str(out, "{\n  \"format\": \"" PLAN_FORMAT "\",\n");
	buf_printf(out, "  \"state\": \"%s\",\n  \"generation\": %lld,\n",
		   p->state_uuid, (long long)p->generation);
	buf_printf(out, "  \"mode\": \"%s\",\n  \"digest\": \"%s\",\n",
		   p->mode == PLAN_UPDATE ? "update" : "safe", p->digest);
	write_devices(out, p);
	buf_printf(out, "  \"config_sha256\": \"%s\",\n  \"config_name\": ",
		   p->fabric->hash);
	out_json_quote(out, p->fabric->file);
	buf_str(out, ",\n  \"config\": ");
	out_json_quote(out, p->fabric->text);
	buf_str(out, "\n}\n");
	return out->failed ? err_nomem(err) : 0;
}

bool plan_file_is(const void *data, size_t len)
{
	const char *s = data;
	size_t i = 0;

	while (i < len && (s[i] == ' ' || s[i] == '\n' || s[i] == '\t' ||
			   s[i] == '\r')) {
		i++;
	}
	return i < len && s[i] == '{' &&
	       memmem(s, len < 256 ? len : 256, PLAN_FORMAT,
		      strlen(PLAN_FORMAT));
}

static const char *text_field(const json_t *root, const char *key,
			      struct err *err)
{
	const char *s = json_string_value(json_object_get(root, key));

	if (!s) {
		err_set(err, WEFT_EINVAL, "plan file: %s: no such text field",
			key);
	}
	return s;
}

static bool is_hex64(const char *s)
{
	return strlen(s) == 64 && strspn(s, "0123456789abcdef") == 64;
}

static int read_fields(const json_t *root, struct plan_file *out,
		       struct err *err)
{
	const char *format = text_field(root, "format", err), *state, *mode;
	const char *digest, *name, *config;
	const json_t *generation = json_object_get(root, "generation");

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
	if (!json_is_integer(generation) ||
	    json_integer_value(generation) < 0) {
		return err_set(err, WEFT_EINVAL,
			       "plan file: generation: not a count");
	}
	if (!is_hex64(digest)) {
		return err_set(err, WEFT_EINVAL,
			       "plan file: digest: not a SHA-256");
	}
	if (strcmp(mode, "safe") != 0 && strcmp(mode, "update") != 0) {
		return err_set(err, WEFT_EINVAL, "plan file: mode: \"%.40s\" "
			       "is not safe or update", mode);
	}
	strcpy(out->state_uuid, state);
	strcpy(out->digest, digest);
	out->generation = json_integer_value(generation);
	out->mode = strcmp(mode, "update") == 0 ? PLAN_UPDATE : PLAN_SAFE;
	out->config_name = strdup(name);
	out->config = strdup(config);
	out->config_len = strlen(config);
	return out->config_name && out->config ? 0 : err_nomem(err);
}

int plan_file_read(const void *data, size_t len, struct plan_file *out,
		   struct err *err)
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
	free(f->config_name);
	free(f->config);
	memset(f, 0, sizeof(*f));
}
