/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names that only a fabric knows, for completion in a shell: devices, jobs, groups of circuits,
 * ports, and what can be drained. They come from the fabric file that the
 * words name, so that `weft testbed step lab.yaml <Tab>` needs no weftd, else
 * from weftd, which is asked for no longer than a person waits for a key.
 * Whatever goes wrong, there are fewer candidates.
 */
#include <stdio.h>
#include <string.h>

#include "controller/cli/core/private.h"

#define ASK_MS 1000

/* What is asked for, and where it goes. */
struct candidates {
	struct cli *c;
	const char *prefix;	/* the word that is being written */
	struct buf *b;
	struct model_fabric *f;	/* once it was needed; NULL: there is none */
	bool loaded;
};

static void add(struct candidates *n, const char *name)
{
	if (strncmp(name, n->prefix, strlen(n->prefix)) == 0) {
		buf_printf(n->b, "%s\n", name);
	}
}

/* "ocs0." with "in" or nothing, and numbers from 1. */
static void add_numbered(struct candidates *n, const char *what, int count)
{
	char name[128];

	for (int i = 1; i <= count; i++) {
		snprintf(name, sizeof(name), "%.100s%d", what, i);
		add(n, name);
	}
}

/* The socket among the words, which are not parsed, as the last is not whole. */
static void take_socket(struct cli *c)
{
	for (int i = 0; i + 1 < c->argc; i++) {
		if (strncmp(c->argv[i], "--socket=", 9) == 0) {
			c->socket = c->argv[i] + 9;
			c->server = NULL;
		} else if (strcmp(c->argv[i], "--socket") == 0) {
			c->socket = c->argv[i + 1];
			c->server = NULL;
		}
	}
}

/* The last of the words before the one that is being written that is a fabric
 * file by its name; NULL without. */
static const char *find_file(const struct cli *c)
{
	for (int i = c->argc - 2; i >= 0; i--) {
		const char *end = strrchr(c->argv[i], '.');

		if (end && (strcmp(end, ".yaml") == 0 || strcmp(end, ".yml") == 0)) {
			return c->argv[i];
		}
	}
	return NULL;
}

/* The fabric of the file, or what is applied. NULL: neither. */
static const struct model_fabric *fabric(struct candidates *n)
{
	const char *path = find_file(n->c);
	struct err_list errs = { 0 };
	struct err err = { 0 };

	if (!n->loaded && path) {
		(void)model_load(path, &n->f, &errs);
	} else if (!n->loaded) {
		(void)cli_fetch_fabric(n->c, ASK_MS, &n->f, &err);
	}
	err_list_fini(&errs);
	n->loaded = true;
	return n->f;
}

/* Devices and jobs of a status, which is cheaper than the fabric. */
static void add_of_status(struct candidates *n, bool devices)
{
	Weft__V1__StatusRequest req = WEFT__V1__STATUS_REQUEST__INIT;
	const Weft__V1__StatusResponse *s;
	ProtobufCMessage *answer = NULL;
	struct err err = { 0 };

	req.brief = true;
	if (cli_unary(n->c, CLI_METHOD("Status"), &req.base,
		      &weft__v1__status_response__descriptor, ASK_MS, &answer, &err)) {
		return;
	}
	s = (const Weft__V1__StatusResponse *)answer;
	for (size_t i = 0; devices && i < s->n_devices; i++) {
		add(n, s->devices[i]->name);
	}
	for (size_t i = 0; !devices && i < s->n_jobs; i++) {
		add(n, s->jobs[i]->name);
	}
	rpc_free_message(answer);
}

static void add_devices(struct candidates *n)
{
	if (!find_file(n->c)) {
		add_of_status(n, true);
		return;
	}
	for (int i = 0; fabric(n) && i < n->f->n_devices; i++) {
		add(n, n->f->devices[i].name);
	}
}

/* Those that orchestrators asked for, or only the groups of circuits, as long as they wait or run,
 * for the commands of such jobs; others have those with light. */
static void add_requested(struct candidates *n, bool groups)
{
	Weft__V1__ListJobsRequest req = WEFT__V1__LIST_JOBS_REQUEST__INIT;
	const Weft__V1__ListJobsResponse *l;
	ProtobufCMessage *answer = NULL;
	struct err err = { 0 };

	if (cli_unary(n->c, "/weft.v1.JobsService/ListJobs", &req.base,
		      &weft__v1__list_jobs_response__descriptor, ASK_MS, &answer, &err)) {
		return;
	}
	l = (const Weft__V1__ListJobsResponse *)answer;
	for (size_t i = 0; i < l->n_jobs; i++) {
		if (!groups || l->jobs[i]->n_circuits > 0) {
			add(n, l->jobs[i]->name);
		}
	}
	rpc_free_message(answer);
}

static void add_groups(struct candidates *n)
{
	add_requested(n, true);
}

static void add_jobs(struct candidates *n)
{
	if (strcmp(n->c->argv[0], "job") == 0) {
		add_requested(n, false);
	} else if (!find_file(n->c)) {
		add_of_status(n, false);
	} else {
		for (int i = 0; fabric(n) && i < n->f->n_jobs; i++) {
			add(n, n->f->jobs[i].name);
		}
	}
}

/* Sides and numbers of the device that is named before. */
static void add_ports(struct candidates *n)
{
	const char *device = n->c->argc > 1 ? n->c->argv[n->c->argc - 2] : "";

	for (int i = 0; fabric(n) && i < n->f->n_devices; i++) {
		const struct model_device *d = &n->f->devices[i];

		if (strcmp(d->name, device) == 0) {
			add_numbered(n, "in", d->n_in);
			add_numbered(n, "out", d->n_out);
		}
	}
}

/* Hosts and devices; their ports once there is a dot. */
static void add_parts(struct candidates *n)
{
	bool ports = strchr(n->prefix, '.') != NULL;
	char name[128];

	for (int i = 0; fabric(n) && i < n->f->n_hosts && !ports; i++) {
		add(n, n->f->hosts[i].name);
	}
	for (int i = 0; n->f && i < n->f->n_ports && ports; i++) {
		add(n, n->f->ports[i].name);
	}
	for (int i = 0; n->f && i < n->f->n_devices; i++) {
		const struct model_device *d = &n->f->devices[i];

		snprintf(name, sizeof(name), "%.100s.", d->name);
		if (!ports) {
			add(n, d->name);
		} else if (strncmp(n->prefix, name, strlen(name)) == 0) {
			add_numbered(n, name, d->n_in > d->n_out ? d->n_in : d->n_out);
		}
	}
}

/* Ports of hosts, each with all of its lanes. */
static void add_ends(struct candidates *n)
{
	char name[128];

	for (int i = 0; fabric(n) && i < n->f->n_ports; i++) {
		const struct model_port *p = &n->f->ports[i];

		snprintf(name, sizeof(name), "%s", p->name);
		if (p->lanes > 1) {
			*strrchr(name, '-') = '\0';
		}
		if (p->lane == 0) {
			add(n, name);
		}
	}
}

static void add_algorithms(struct candidates *n)
{
	const char *name;

	for (int i = 0; (name = coll_algorithm_name(i)); i++) {
		add(n, name);
	}
}

void cli_complete_names(struct cli *c, const char *candidates, struct buf *b)
{
	static const struct {
		const char *word;
		void (*add)(struct candidates *n);
	} kinds[] = {
		{ "@device", add_devices }, { "@job", add_jobs },
		{ "@port", add_ports }, { "@part", add_parts }, { "@algorithm", add_algorithms },
		{ "@group", add_groups }, { "@end", add_ends },
	};
	struct candidates n = { .c = c, .prefix = c->argc > 0 ? c->argv[c->argc - 1] : "", .b = b };

	take_socket(c);
	while (*candidates) {
		size_t len = strcspn(candidates, "\n");
		bool known = false;

		for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
			if (strlen(kinds[i].word) == len &&
			    memcmp(kinds[i].word, candidates, len) == 0) {
				kinds[i].add(&n);
				known = true;
			}
		}
		if (!known) {
			buf_add(b, candidates, len);
			buf_char(b, '\n');
		}
		candidates += len + (candidates[len] == '\n');
	}
	model_free(n.f);
}
