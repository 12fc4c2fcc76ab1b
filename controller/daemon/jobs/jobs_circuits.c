/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jobs of circuits: which ports they have, and who else has them. A port has a side that sends and
 * one that receives, each of which is at most one job's: that is all there is to find a place for,
 * as their ports are given.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/daemon/jobs/private.h"
#include "controller/proto_convert/proto_convert.h"
#include "lib/base/alloc.h"
#include "lib/base/clock.h"

/* ---- sides of ports ------------------------------------------------------ */

int job_each_side(const struct model_fabric *f, const Weft__V1__RequestJobRequest *q,
		  int (*fn)(int port, bool tx, void *arg, struct err *err), void *arg,
		  struct err *err)
{
	int r = 0;

	for (size_t i = 0; i < q->n_circuits && r == 0; i++) {
		const Weft__V1__CircuitEnds *c = q->circuits[i];
		int a, z, lanes, more;

		if ((r = model_find_port(f, c->from, &a, &lanes, err)) ||
		    (r = model_find_port(f, c->to, &z, &more, err))) {
			return err ? err->code = WEFT_EINVAL : r;
		}
		lanes = lanes < more ? lanes : more;
		for (int l = 0; l < lanes && r == 0; l++) {
			if ((r = fn(a + l, true, arg, err)) || (r = fn(z + l, false, arg, err))) {
				return r;
			}
			if (!c->simplex && (r = fn(z + l, true, arg, err)) == 0) {
				r = fn(a + l, false, arg, err);
			}
		}
	}
	return r;
}

/* What looks for one: the view, and the job or its name. */
struct side_search {
	struct job_view *v;
	const struct jobs *jobs;
	const char *name;
	const Weft__V1__RequestJobRequest *q;
	bool *seen;		/* [2 ports] sides of the request so far */
	job_list *holders;
};

static int mark_side(int port, bool tx, void *arg, struct err *err)
{
	const struct side_search *s = arg;

	(void)err;
	job_view_mark_side(s->v, port, tx, s->name);
	return 0;
}

void job_mark_circuits(struct job_view *v, const struct job *j)
{
	struct side_search s = { .v = v, .name = j->s.name };

	job_each_side(v->f, j->req, mark_side, &s, NULL);
}

/* WEFT_EHELD: who has the port, and until when. */
static int refuse_held(const struct jobs *jobs, const char *port, const char *holder,
		       struct err *err)
{
	const struct job *o = jobs_find(jobs, holder);
	char who[64], until[32];

	if (!o) {
		return err_set(err, WEFT_EHELD, "%s is held by %s of the fabric file", port,
			       holder);
	}
	err_set(err, WEFT_EHELD, "%s is held by %s (job %s) until %s", port,
		user_name(o->s.who, who, sizeof(who)), holder,
		job_ends_ns(o) ? clk_iso(job_ends_ns(o), until, sizeof(until)) : "it is released");
	err_hint(err, "--wait waits for it; \"weft circuit find %s\"", port);
	return err->code;
}

int circuits_held(const struct jobs *jobs, int port, int lanes, struct err *err)
{
	struct job_view v;
	int r = 0;

	job_view_init(&v, jobs);
	job_view_mark(&v, jobs, NULL, 0);
	job_view_mark_queued(&v, jobs);
	for (int p = port; p < port + lanes && r == 0; p++) {
		const char *holder = v.tx[p] ? v.tx[p] : v.rx[p];

		r = holder ? refuse_held(jobs, v.f->ports[p].name, holder, err) : 0;
	}
	job_view_fini(&v);
	return r;
}

static int check_side(int port, bool tx, void *arg, struct err *err)
{
	const struct side_search *s = arg;
	const char *holder = tx ? s->v->tx[port] : s->v->rx[port];
	const char *name = s->v->f->ports[port].name;
	bool *seen = &s->seen[2 * port + tx];

	if (*seen) {
		return err_set(err, WEFT_EINVAL, "circuits: %s %s light of two of them", name,
			       tx ? "sends" : "receives");
	}
	*seen = true;
	if (holder && strcmp(holder, s->name) != 0 && !replaces_job(s->q, s->name, holder)) {
		return refuse_held(s->jobs, name, holder, err);
	}
	return drain_check_port(s->jobs->drain, s->v->f, port, err) ? err->code = WEFT_EINFEASIBLE
								    : 0;
}

/* Whether the fabric has what they want. WEFT_EINVAL. */
static int check_possible(const struct model_fabric *f, const Weft__V1__RequestJobRequest *q,
			  struct err *err)
{
	int r = 0;

	for (size_t i = 0; i < q->n_circuits && r == 0; i++) {
		const Weft__V1__CircuitEnds *c = q->circuits[i];
		struct model_end a = { .name = c->from }, z = { .name = c->to };

		if ((r = model_find_port(f, c->from, &a.port, &a.lanes, err)) == 0 &&
		    (r = model_find_port(f, c->to, &z.port, &z.lanes, err)) == 0) {
			r = model_check_circuit(f, &a, &z, c->simplex, err);
		}
	}
	if (r) {
		err_wrap(err, "circuits");
		err->code = WEFT_EINVAL;
	}
	return r ? err->code : 0;
}

int circuits_check(struct job_view *v, const struct jobs *jobs, const char *name,
		   const Weft__V1__RequestJobRequest *q, struct err *err)
{
	struct side_search s = { .v = v, .jobs = jobs, .name = name, .q = q };
	int r = check_possible(v->f, q, err);

	if (r) {
		return r;
	}
	s.seen = x_new(2 * (size_t)v->f->n_ports + 1, 1);
	r = job_each_side(v->f, q, check_side, &s, err);
	free(s.seen);
	return r;
}

static int collect_holder(int port, bool tx, void *arg, struct err *err)
{
	const struct side_search *s = arg;
	const char *name = tx ? s->v->tx[port] : s->v->rx[port];
	struct job *o = name && strcmp(name, s->name) != 0 ? jobs_find(s->jobs, name) : NULL;

	(void)err;
	if (o && o->s.state == STORE_JOB_RUNNING) {
		vec_push(s->holders, o);
	}
	return 0;
}

bool circuits_take_ports(struct job_view *v, const struct job *j)
{
	char why[CONF_MAX_NAME + 48];
	job_list holders = { 0 };
	struct side_search s = { .v = v, .jobs = j->jobs, .name = j->s.name,
				 .holders = &holders };
	bool any;

	job_each_side(v->f, j->req, collect_holder, &s, NULL);
	snprintf(why, sizeof(why), "its ports are taken for job %s", j->s.name);
	for (size_t i = 0; i < holders.n; i++) {
		job_move(holders.v[i], STORE_JOB_ENDING, why);
	}
	any = holders.n > 0;
	vec_fini(&holders);
	return any;
}

static int mark_host(int port, bool tx, void *arg, struct err *err)
{
	const struct side_search *s = arg;

	(void)tx, (void)err;
	s->seen[s->v->f->ports[port].host] = true;
	return 0;
}

char *circuits_hosts(struct job_view *v, const struct job *j)
{
	struct side_search s = { .v = v };
	int *hosts = x_new((size_t)v->f->n_hosts + 1, sizeof(*hosts)), n = 0;
	char *names;

	s.seen = x_new((size_t)v->f->n_hosts + 1, 1);
	job_each_side(v->f, j->req, mark_host, &s, NULL);
	for (int h = 0; h < v->f->n_hosts; h++) {
		if (s.seen[h]) {
			hosts[n++] = h;
		}
	}
	names = job_node_names(v->f, hosts, n);
	free(s.seen);
	free(hosts);
	return names;
}
