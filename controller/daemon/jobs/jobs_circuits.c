/*
 * Jobs of circuits: which ports they have, who else has them, and how each circuit is.
 *
 * A port has a side that sends and one that receives, each of which is at most one job's: that is
 * all there is to find a place for, as their ports are given. Requests are kept with the names that
 * the fabric has for their ports, whichever labels they came with, so that equal ones are equal.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/daemon/jobs/private.h"
#include "controller/proto_convert/proto_convert.h"
#include "lib/base/alloc.h"
#include "lib/base/clock.h"

/* ---- as text ------------------------------------------------------------- */

char *job_circuits_text(const Weft__V1__RequestJobRequest *q)
{
	struct buf b = { 0 };

	for (size_t i = 0; i < q->n_circuits; i++) {
		const Weft__V1__CircuitEnds *c = q->circuits[i];

		buf_printf(&b, "%s%s %s%s", i ? "\n" : "", c->from, c->to,
			   c->simplex ? " one-way" : "");
	}
	return buf_steal(&b);
}

char *job_ports_text(const Weft__V1__RequestJobRequest *q)
{
	struct buf b = { 0 };

	if (q->port_count > 0) {
		buf_printf(&b, "%d", q->port_count);
	}
	for (size_t i = 0; i < q->n_ports; i++) {
		buf_printf(&b, "%s%s", i ? " " : "", q->ports[i]);
	}
	return buf_steal(&b);
}

/* ---- names --------------------------------------------------------------- */

/* The fabric's name of a port, with all of its lanes; owned by the caller. */
static char *port_name(const struct model_fabric *f, int port, int lanes)
{
	char *name = x_dup(f->ports[port].name);

	if (lanes > 1) {
		*strrchr(name, '-') = '\0';
	}
	return name;
}

static int name_end(const struct model_fabric *f, const char *text, char **name, struct err *err)
{
	int port, lanes;

	if (model_find_port(f, text, &port, &lanes, err)) {
		err_hint(err, "a port is HOST.PORT, by names or labels");
		return err->code = WEFT_EINVAL;
	}
	*name = port_name(f, port, lanes);
	return 0;
}

int named_request_init(struct named_request *n, const struct model_fabric *f,
		       const Weft__V1__RequestJobRequest *q, struct err *err)
{
	const size_t count = q->n_circuits;
	int r = 0;

	*n = (struct named_request){ .q = *q };
	n->ends = x_new(count + 1, sizeof(*n->ends));
	n->q.circuits = x_new(count + 1, sizeof(*n->q.circuits));
	for (size_t i = 0; i < count; i++) {
		n->ends[i] = *q->circuits[i];
		n->ends[i].from = n->ends[i].to = NULL;
		n->q.circuits[i] = &n->ends[i];
	}
	for (size_t i = 0; i < count && r == 0; i++) {
		if ((r = name_end(f, q->circuits[i]->from, &n->ends[i].from, err)) == 0) {
			r = name_end(f, q->circuits[i]->to, &n->ends[i].to, err);
		}
	}
	return r;
}

void named_request_fini(struct named_request *n)
{
	for (size_t i = 0; i < n->q.n_circuits && n->ends; i++) {
		free(n->ends[i].from);
		free(n->ends[i].to);
	}
	free(n->ends);
	free(n->q.circuits);
}

/* ---- equal --------------------------------------------------------------- */

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* A line each, which of two ends comes first only where it matters, sorted; owned. */
static char **sorted_lines(const Weft__V1__RequestJobRequest *q)
{
	char **v = x_new(q->n_circuits + 1, sizeof(*v));

	for (size_t i = 0; i < q->n_circuits; i++) {
		const Weft__V1__CircuitEnds *c = q->circuits[i];
		const bool swap = !c->simplex && strcmp(c->from, c->to) > 0;
		struct buf b = { 0 };

		buf_printf(&b, "%s %s%s", swap ? c->to : c->from, swap ? c->from : c->to,
			   c->simplex ? " one-way" : "");
		v[i] = buf_steal(&b);
	}
	qsort(v, q->n_circuits, sizeof(*v), by_text);
	return v;
}

bool same_circuits(const Weft__V1__RequestJobRequest *a, const Weft__V1__RequestJobRequest *b)
{
	bool same = a->n_circuits == b->n_circuits && a->partial == b->partial;
	char **x, **y;

	if (!same) {
		return false;
	}
	x = sorted_lines(a);
	y = sorted_lines(b);
	for (size_t i = 0; i < a->n_circuits; i++) {
		same = same && strcmp(x[i], y[i]) == 0;
	}
	model_names_free(x);
	model_names_free(y);
	return same;
}

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
	bool *seen;		/* [2 ports] sides of the request so far */
	job_list *holders;
};

static int mark_side(int port, bool tx, void *arg, struct err *err)
{
	const struct side_search *s = arg;

	(void)err;
	*(tx ? &s->v->tx[port] : &s->v->rx[port]) = s->name;
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
	if (holder && strcmp(holder, s->name) != 0) {
		return refuse_held(s->jobs, name, holder, err);
	}
	return drain_check_port(s->jobs->drain, s->v->f, port, err) ? err->code = WEFT_EINFEASIBLE
								    : 0;
}

int circuits_check(struct job_view *v, const struct jobs *jobs, const char *name,
		   const Weft__V1__RequestJobRequest *q, struct err *err)
{
	struct side_search s = { .v = v, .jobs = jobs, .name = name };
	int r;

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

/* ---- how they are -------------------------------------------------------- */

static int by_circuit(const void *a, const void *b)
{
	return optics_xc_cmp(a, &((const struct drv_xc *)b)->xc);
}

/* The light from one port to the other as its device lists it. NULL: it does not, or there is
 * none in it, and why. */
static const struct drv_xc *find_light(const struct model_fabric *f, const struct apply_device *a,
				       int tx, int rx, const char **why)
{
	const struct model_device *d = &f->devices[f->ports[tx].tx_device];
	const int in = f->ports[tx].tx_port, out = f->ports[rx].rx_port;
	const bool swap = d->any_to_any && in > out;
	const struct optics_xc xc = { swap ? out : in, swap ? in : out };
	const struct drv_xc *x = a->snap.n_xcs == 0 ? NULL :
		bsearch(&xc, a->snap.xcs, (size_t)a->snap.n_xcs, sizeof(*x), by_circuit);

	if (!x || x->state == DRV_BLOCKED) {
		*why = "is not there";
		return NULL;
	}
	if (apply_is_dark(a, d->any_to_any, x)) {
		*why = "is listed, and has no light";
		return NULL;
	}
	return x;
}

/* One lane, on one device. False: it is not all there. */
static bool read_lane(const struct job *j, const struct model_fabric *f, int a, int z,
		      struct circuit_row *row)
{
	const int device = f->ports[a].tx_device;
	const struct apply_device *d = apply_devices(j->jobs->env->apply, &(int){ 0 }) + device;
	const char *why = NULL;
	const struct drv_xc *x = find_light(f, d, a, z, &why);

	if (x && !row->m.simplex) {
		x = find_light(f, d, z, a, &why) ? x : NULL;
	}
	row->m.device = f->devices[device].name;
	row->m.in = f->ports[a].tx_port + 1;
	row->m.out = f->ports[z].rx_port + 1;
	row->m.proof = x ? msg_proof(d->level) : WEFT__V1__PROOF__PROOF_UNVERIFIED;
	row->m.problem = (char *)(why ? why : "");
	if (x && x->has_loss) {
		weft__v1__number__init(&row->loss);
		row->loss.value = x->loss_mdb;
		row->m.loss_mdb = &row->loss;
	}
	return x != NULL;
}

/* Over fibres between switches what is known is known of the job as a whole. */
static void read_crossing(const struct job *j, struct circuit_row *row)
{
	row->m.proof = j->rate >= 1 ? WEFT__V1__PROOF__PROOF_READ_BACK
				    : WEFT__V1__PROOF__PROOF_UNVERIFIED;
	row->m.problem = (char *)(j->rate >= 1 ? "" : "its job has lost light");
}

bool circuit_row_init(struct circuit_row *row, const struct job *j, size_t nth)
{
	const Weft__V1__CircuitEnds *c = j->req->circuits[nth];
	const struct model_fabric *f = apply_fabric(j->jobs->env->apply);
	int a, z, lanes, more;
	bool good = true;

	weft__v1__circuit_state__init(&row->m);
	row->m.from = c->from;
	row->m.to = c->to;
	row->m.simplex = c->simplex;
	if (j->s.state != STORE_JOB_RUNNING || model_find_port(f, c->from, &a, &lanes, NULL) ||
	    model_find_port(f, c->to, &z, &more, NULL)) {
		return true;
	}
	if (f->ports[a].tx_device != f->ports[z].rx_device) {
		read_crossing(j, row);
		return j->rate >= 1;
	}
	for (int l = 0; l < lanes && l < more && good; l++) {
		good = read_lane(j, f, a + l, z + l, row);
	}
	return good;
}
