/* SPDX-License-Identifier: Apache-2.0 */
/* mpirun's command line. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/launch/private.h"

static void add(struct launch_command *c, struct buf *word)
{
	char *text = buf_steal(word);

	/* Room was made for all. */
	c->words.v[c->words.n++] = text;
	c->words.v[c->words.n] = NULL;
}

static void add_word(struct launch_command *c, const char *text)
{
	struct buf b = { 0 };

	buf_str(&b, text);
	add(c, &b);
}

static void add_number(struct launch_command *c, const char *option, int64_t value)
{
	struct buf b = { 0 };

	add_word(c, option);
	buf_printf(&b, "%" PRId64, value);
	add(c, &b);
}

/* Whether the user has set a parameter of Open MPI, by its name. */
static bool is_set(const struct launch_options *o, const char *name)
{
	struct buf variable = { 0 };
	bool set;

	for (int i = 0; o->mca && o->mca[i]; i += 2) {
		if (strcmp(o->mca[i], name) == 0) {
			return true;
		}
	}
	buf_printf(&variable, "OMPI_MCA_%s", name);
	set = getenv(buf_cstr(&variable)) != NULL;
	buf_fini(&variable);
	return set;
}

static void add_parameter(struct launch_command *c, const char *name, const char *value)
{
	add_word(c, "--mca");
	add_word(c, name);
	add_word(c, value);
}

static void add_default(struct launch_command *c, const struct launch_options *o, const char *name,
			const char *value)
{
	if (!is_set(o, name)) {
		add_parameter(c, name, value);
	}
}

static void add_mpirun(struct launch_command *c, const struct launch_options *o)
{
	add_number(c, "-n", o->ranks);
	if (o->share_cores) {
		add_word(c, "--oversubscribe");
		add_word(c, "--bind-to");
		add_word(c, "none");
		add_default(c, o, "mpi_yield_when_idle", "1");
	}
	if (o->hosts) {
		add_word(c, "--hostfile");
		add_word(c, o->hosts);
	} else {
		add_default(c, o, "pml", "ob1");
		add_default(c, o, "btl", "self,vader");
	}
	if (o->agent) {
		add_parameter(c, "plm_rsh_agent", o->agent);
	}
	for (int i = 0; o->mca && o->mca[i]; i += 2) {
		add_parameter(c, o->mca[i], o->mca[i + 1]);
	}
}

static void add_worker(struct launch_command *c, const struct launch_options *o)
{
	add_number(c, "--size", o->size_bytes);
	add_number(c, "--repeat", o->repeat);
	add_number(c, "--seed", o->seed);
	if (o->barriers) {
		add_word(c, "--barriers");
	}
	if (o->own) {
		add_word(c, "--own");
	}
	if (o->pause_ns > 0) {
		add_number(c, "--pause", o->pause_ns);
	}
	add_word(c, "-");
}

char *launch_find(const char *name)
{
	const char *path = getenv("PATH"), *end;
	struct buf b = { 0 };

	for (; path && *path; path = *end ? end + 1 : end) {
		end = path + strcspn(path, ":");
		buf_reset(&b);
		buf_add(&b, path, (size_t)(end - path));
		buf_printf(&b, "/%s", name);
		if (end > path && access(b.data, X_OK) == 0) {
			return buf_steal(&b);
		}
	}
	buf_fini(&b);
	return NULL;
}

/* Beside this program, where it was built or installed; else in PATH. */
static char *find_worker(void)
{
	struct buf b = { 0 };
	char self[4096];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self));

	while (n > 0 && self[n - 1] != '/') {
		n--;
	}
	buf_add(&b, self, n > 0 ? (size_t)n : 0);
	buf_str(&b, "weft-mpi-run");
	if (n > 0 && access(b.data, X_OK) == 0) {
		return buf_steal(&b);
	}
	buf_fini(&b);
	return launch_find("weft-mpi-run");
}

/* Words that are not options with values: two programs, and a NULL. */
static int count_words(const struct launch_options *o)
{
	int n = 32;

	for (int i = 0; o->program && o->program[i]; i++) {
		n++;
	}
	for (int i = 0; o->mca && o->mca[i]; i += 2) {
		n += 3;
	}
	return n;
}

int launch_command_make(const struct launch_options *o, struct launch_command *out,
			struct err *err)
{
	char *mpirun = launch_find("mpirun"), *worker = find_worker();
	int rc = 0;

	*out = (struct launch_command){ 0 };
	if (!mpirun || !worker) {
		rc = err_set(err, WEFT_EUNAVAIL, "%s: no such program in PATH",
			     mpirun ? "weft-mpi-run" : "mpirun");
		err_hint(err, mpirun ? "it is built beside weft; its package is weft-mpi"
				     : "schedules run by Open MPI: its package is openmpi-bin");
		goto out;
	}
	vec_reserve(&out->words, (size_t)count_words(o));
	add_word(out, mpirun);
	add_mpirun(out, o);
	for (int i = 0; o->program && o->program[i]; i++) {
		add_word(out, o->program[i]);
	}
	if (!o->program) {
		add_word(out, worker);
		add_worker(out, o);
	}
out:
	free(mpirun);
	free(worker);
	return rc;
}

void launch_command_fini(struct launch_command *c)
{
	for (size_t i = 0; i < c->words.n; i++) {
		free(c->words.v[i]);
	}
	vec_fini(&c->words);
}
