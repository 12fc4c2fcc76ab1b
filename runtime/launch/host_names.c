/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the name service answers for the hosts of a hostfile: mpirun and ssh ask it for each of
 * them in turn, and say nothing while it does not. What it answers is theirs to judge: a name that
 * it does not know may be one of ssh's own. */
#include <netdb.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/clock.h"
#include "lib/base/file.h"
#include "lib/base/vec.h"
#include "runtime/launch/private.h"

#define HOSTS_MAX_BYTES (16 << 20)
#define LIMIT_NS INT64_C(5000000000)
#define LOOK_NS 100000000	/* for stop */

struct lookups {
	struct gaicb **v;
	size_t n, cap;
};

/* The first word of each line but for remarks. */
static void list_names(char *text, struct lookups *v)
{
	char *rest = NULL;

	for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		struct gaicb *g;

		line += strspn(line, " \t");
		line[strcspn(line, " \t\r#")] = '\0';
		if (*line) {
			g = x_new(1, sizeof(*g));
			g->ar_name = line;
			vec_push(v, g);
		}
	}
}

/* The first name that is still asked for, or NULL. */
static const char *unanswered(const struct lookups *v)
{
	for (size_t i = 0; i < v->n; i++) {
		if (gai_error(v->v[i]) == EAI_INPROGRESS) {
			return v->v[i]->ar_name;
		}
	}
	return NULL;
}

static int wait_for_all(struct lookups *v, const struct launch_options *o, struct err *err)
{
	const int64_t until_ns = clk_now_ns() + LIMIT_NS;
	const char *name;

	while ((name = unanswered(v)) && clk_now_ns() < until_ns) {
		const struct timespec look = { .tv_nsec = LOOK_NS };

		if (o->stop && *o->stop) {
			return err_set(err, WEFT_ECANCELED, "stopped");
		}
		gai_suspend((const struct gaicb *const *)v->v, (int)v->n, &look);
	}
	if (!name) {
		return 0;
	}
	err_set(err, WEFT_EUNAVAIL, "%s: host %s: the name service did not answer in %d s",
		o->hosts, name, (int)(LIMIT_NS / 1000000000));
	err_hint(err, "addresses need none; or see /etc/resolv.conf");
	return WEFT_EUNAVAIL;
}

int launch_resolve(const struct launch_options *o, struct err *err)
{
	struct lookups v = { 0 };
	char *text = NULL;
	size_t len;
	int rc = 0;

	/* mpirun says what is wrong with the file, and an agent may need no names. */
	if (!o->hosts || o->agent || file_read(o->hosts, HOSTS_MAX_BYTES, &text, &len, NULL)) {
		return 0;
	}
	list_names(text, &v);
	if (v.n > 0 && getaddrinfo_a(GAI_NOWAIT, v.v, (int)v.n, NULL) == 0) {
		rc = wait_for_all(&v, o, err);
	}
	if (rc) {
		return rc;	/* threads have them; the program ends */
	}
	for (size_t i = 0; i < v.n; i++) {
		if (v.v[i]->ar_result) {
			freeaddrinfo(v.v[i]->ar_result);
		}
		free(v.v[i]);
	}
	vec_fini(&v);
	free(text);
	return 0;
}
