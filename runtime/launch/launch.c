/* SPDX-License-Identifier: Apache-2.0 */
/* One run of weft-mpi-run by mpirun, and what came of it. */
#include <ctype.h>
#include <jansson.h>
#include <string.h>
#include <sys/wait.h>

#include "runtime/launch/private.h"

#define TOLD 400		/* bytes of what mpirun wrote, in a message */

/* The line of a rank that says what failed; NULL: none does. */
static const char *line_of_rank(const char *text)
{
	return strstr(text, "weft-mpi-run: ");
}

/* What mpirun wrote as one line: frames and empty lines left out. */
static void fold(const char *text, struct buf *b)
{
	for (const char *end; *text; text = *end ? end + 1 : end) {
		size_t dashes = strspn(text, "-");

		end = text + strcspn(text, "\n");
		if (end == text || (dashes > 20 && text + dashes == end)) {
			continue;
		}
		if (b->len > 0) {
			buf_char(b, ' ');
		}
		for (; text < end; text++) {
			buf_char(b, isprint((unsigned char)*text) ? *text : ' ');
		}
	}
}

/* mpirun failed: by what a rank said, or else by what came first, of which the rest follows. */
static int failed(const struct launch_output *out, struct err *err)
{
	const char *line = line_of_rank(buf_cstr(&out->errors));
	struct buf b = { 0 };
	int rc;

	if (line) {
		line += strlen("weft-mpi-run: ");
		return err_set(err, WEFT_EIO, "%.*s", (int)strcspn(line, "\n"), line);
	}
	fold(buf_cstr(&out->errors), &b);
	if (WIFSIGNALED(out->status)) {
		rc = err_set(err, WEFT_EIO, "mpirun: killed by signal %d", WTERMSIG(out->status));
	} else {
		rc = err_set(err, WEFT_EIO, "mpirun ended with %d: %.*s%s",
			     WEXITSTATUS(out->status), TOLD, buf_cstr(&b),
			     b.len > TOLD ? "..." : "");
	}
	buf_fini(&b);
	return rc;
}

int launch_read_result(const char *text, size_t len, json_t **result, struct err *err)
{
	json_error_t at;
	json_t *root = json_loadb(text, len, JSON_REJECT_DUPLICATES, &at);
	const char *code = json_string_value(json_object_get(root, "error"));
	const char *message = json_string_value(json_object_get(root, "message"));
	int rc = 0;

	if (!json_is_object(root)) {
		rc = err_set(err, WEFT_EIO, "the ranks ended without a result");
	} else if (code) {
		rc = err_from_name(code);
		rc = err_set(err, rc ? rc : WEFT_EINTERNAL, "%s",
			     message && *message ? message
						 : *code ? code : "an error that has no name");
	}
	*result = NULL;
	if (rc) {
		json_decref(root);
	} else {
		*result = root;
	}
	return rc;
}

/* Whether a rank ended by a signal after it had said all: in MPI_Finalize, as happens once in some
 * thousand runs of Open MPI 4 on a busy machine (its issue 10117). mpirun ends with 128 and the
 * signal. */
static bool ended_late(const struct launch_output *out)
{
	struct err none = { 0 };
	json_t *result;

	if (!WIFEXITED(out->status) || WEXITSTATUS(out->status) <= 128 ||
	    launch_read_result(buf_cstr(&out->out), out->out.len, &result, &none)) {
		return false;
	}
	json_decref(result);
	return true;
}

static bool is_count(const json_t *object, const char *key)
{
	const json_t *v = json_object_get(object, key);

	return json_is_integer(v) && json_integer_value(v) >= 0;
}

int launch_check_result(const json_t *result, int ranks, int n_steps, struct err *err)
{
	const json_t *steps = json_object_get(result, "steps"), *step;
	bool whole = json_array_size(steps) == (size_t)n_steps && json_is_array(steps) &&
		     is_count(result, "wrong_elements") &&
		     is_count(result, "bytes") && is_count(result, "time_ns");
	size_t i;

	json_array_foreach(steps, i, step) {
		whole = whole && is_count(step, "median_ns") && is_count(step, "worst_ns") &&
			is_count(step, "worst_rank") &&
			json_integer_value(json_object_get(step, "worst_rank")) < ranks;
	}
	return whole ? 0 : err_set(err, WEFT_EIO, "what the ranks measured is not complete: is "
				   "weft-mpi-run of another version?");
}

int launch_run(const struct launch_options *o, json_t **result, struct err *err)
{
	struct launch_command c;
	struct launch_output out = { 0 };
	int rc = launch_command_make(o, &c, err);

	*result = NULL;
	if (!rc) {
		rc = launch_resolve(o, err);
	}
	if (!rc) {
		rc = launch_process(c.words.v, o, &out, err);
	}
	if (!rc && out.status != 0 && (o->program || !ended_late(&out))) {
		rc = failed(&out, err);
	}
	if (!rc && o->program) {
		*result = json_stringn_nocheck(buf_cstr(&out.out), out.out.len);
	} else if (!rc) {
		rc = launch_read_result(buf_cstr(&out.out), out.out.len, result, err);
	}
	if (!rc && !o->program && (rc = launch_check_result(*result, o->ranks, o->steps, err))) {
		json_decref(*result);
		*result = NULL;
	}
	buf_fini(&out.out);
	buf_fini(&out.errors);
	launch_command_fini(&c);
	return rc;
}
