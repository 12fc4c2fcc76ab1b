/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plans as bytes. The tables say what a plan owns, field by field, in the order of plan.h: they
 * write and read it, and free it too (plan_value.c), so that a field that is not there
 * leaks, or does not arrive. Numbers that stand for something of the fabric are looked at
 * once all is read.
 */
#include "controller/plan/plan_layout.h"

#include <stdlib.h>
#include <string.h>

#include "collective/flow/flow.h"
#include "controller/plan/private.h"
#include "lib/base/alloc.h"
#include "lib/base/order.h"
#include "lib/output/layout_table.h"
#include "lib/base/number/rat.h"

/* ---- values of other rooms --------------------------------------------------- */

static void write_rational(const void *at, struct buf *out)
{
	char *text = mpq_get_str(NULL, 16, at);

	buf_str(out, text);
	free(text);
}

/* As it is written above, and no longer than any bound of a schedule. */
static int read_rational(void *at, const void *data, size_t len, struct err *err)
{
	char *text = x_ndup(data, len);
	mpq_ptr q = at;
	int bad;

	mpq_init(q);
	bad = len > 4096 || strlen(text) != len || mpq_set_str(q, text, 16) ||
	      mpz_sgn(mpq_denref(q)) <= 0;
	if (bad) {
		mpq_set_ui(q, 0, 1);
	}
	mpq_canonicalize(q);
	free(text);
	return bad ? err_set(err, WEFT_EINVAL, "no fraction") : 0;
}

static void fini_rational(void *at)
{
	mpq_clear((mpq_ptr)at);
}

static void write_schedule(const void *at, struct buf *out)
{
	struct coll_sched *const *s = at;

	if (*s) {
		coll_to_proto(*s, out);
	}
}

static int read_schedule(void *at, const void *data, size_t len, struct err *err)
{
	return len ? coll_from_proto(data, len, at, err) : 0;
}

static void fini_schedule(void *at)
{
	coll_free(*(struct coll_sched **)at);
}

static void write_programs(const void *at, struct buf *out)
{
	uint8_t *bytes;
	size_t len;

	ring_programs_save(at, &bytes, &len);
	buf_add(out, bytes, len);
	free(bytes);
}

static int read_programs(void *at, const void *data, size_t len, struct err *err)
{
	return ring_programs_load(at, data, len, err);
}

static void fini_programs(void *at)
{
	ring_programs_fini(at);
}

static void write_programs_pointer(const void *at, struct buf *out)
{
	const struct ring_programs *const *p = at;

	if (*p) {
		write_programs(*p, out);
	}
}

static int read_programs_pointer(void *at, const void *data, size_t len, struct err *err)
{
	struct ring_programs **p = at;

	if (len == 0) {
		return 0;
	}
	*p = x_new(1, sizeof(**p));
	return ring_programs_load(*p, data, len, err);
}

static void fini_programs_pointer(void *at)
{
	struct ring_programs **p = at;

	if (*p) {
		ring_programs_fini(*p);
	}
	free(*p);
}

/* A name that the program has, which stays where it is. */
static void write_algorithm(const void *at, struct buf *out)
{
	const char *const *name = at;

	buf_str(out, *name ? *name : "");
}

static int read_algorithm(void *at, const void *data, size_t len, struct err *err)
{
	const char **name = at, *known;
	char *text = x_ndup(len ? data : "", len);

	*name = len ? NULL : "";	/* of circuits */
	for (int i = 0; !*name && (known = coll_algorithm_name(i)); i++) {
		*name = strcmp(known, text) == 0 ? known : NULL;
	}
	for (int i = 0; !*name && i <= OPTREE_BY_ONE_STAGE; i++) {
		known = optree_algorithm_name((enum optree_algorithm)i);
		*name = strcmp(known, text) == 0 ? known : NULL;
	}
	free(text);
	return *name ? 0 : err_set(err, WEFT_EINVAL, "no algorithm");
}

static void fini_nothing(void *at)
{
	(void)at;
}

/* What does not travel, and is freed all the same. */
static void write_nothing(const void *at, struct buf *out)
{
	(void)at, (void)out;
}

static int read_nothing(void *at, const void *data, size_t len, struct err *err)
{
	(void)at, (void)data;
	return len ? err_set(err, WEFT_EINVAL, "not to be there") : 0;
}

static void fini_flow(void *at)
{
	mcf_free(*(struct mcf **)at);
}

static void fini_array(void *at)
{
	free(*(void **)at);
}

static const struct layout_other
	rational = { write_rational, read_rational, fini_rational },
	schedule = { write_schedule, read_schedule, fini_schedule },
	algorithm = { write_algorithm, read_algorithm, fini_nothing },
	flow = { write_nothing, read_nothing, fini_flow },
	array = { write_nothing, read_nothing, fini_array };
const struct layout_other
	plan_programs_bytes = { write_programs, read_programs, fini_programs },
	plan_programs_pointer_bytes = { write_programs_pointer, read_programs_pointer,
					fini_programs_pointer };

/* ---- tables ------------------------------------------------------------------ */

struct owned_text {
	char *text;
};

static const struct layout owned_text_layout = { sizeof(char *), FIELDS(TEXT(owned_text, text)) };

const struct layout plan_xc_layout = {
	sizeof(struct optics_xc), FIELDS(NUMBER(optics_xc, in), NUMBER(optics_xc, out)) };

const struct layout plan_fault_layout = {
	sizeof(struct ring_fault),
	FIELDS(NUMBER(ring_fault, part), NUMBER(ring_fault, dir), NUMBER(ring_fault, fibre),
	       NUMBER(ring_fault, why), NUMBER(ring_fault, node), NUMBER(ring_fault, channel)) };

static const struct layout report_layout = {
	sizeof(struct coll_report),
	FIELDS(NUMBER(coll_report, nodes), NUMBER(coll_report, steps),
	       NUMBER(coll_report, transfers), NUMBER(coll_report, chunk_hops),
	       OTHER(coll_report, shard_times, &rational),
	       OTHER(coll_report, bandwidth_factor, &rational),
	       OTHER(coll_report, bandwidth_bound, &rational),
	       FLAG(coll_report, bandwidth_optimal)) };

static const struct layout topology_layout = {
	sizeof(struct plan_topology),
	FIELDS(TEXT(plan_topology, expr), NUMBER(plan_topology, steps),
	       NUMBER(plan_topology, num), NUMBER(plan_topology, den),
	       NUMBER(plan_topology, ports), NUMBER(plan_topology, time_ns),
	       PART(plan_topology, refused, &layout_err)) };

static const struct layout range_layout = {
	sizeof(struct plan_range),
	FIELDS(TEXT(plan_range, expr), NUMBER(plan_range, from_bytes)) };

static const struct layout choice_layout = {
	sizeof(struct plan_choice),
	FIELDS(NUMBER(plan_choice, ports), FLAG(plan_choice, bidirectional),
	       ITEMS(plan_choice, considered, &topology_layout), NUMBER(plan_choice, steps_bound),
	       ITEMS(plan_choice, ranges, &range_layout)) };

static const struct layout circuit_layout = {
	sizeof(struct plan_circuit),
	FIELDS(NUMBER(plan_circuit, arc), NUMBER(plan_circuit, device),
	       PART(plan_circuit, xc, &plan_xc_layout), NUMBER(plan_circuit, tx_port),
	       NUMBER(plan_circuit, rx_port), NUMBER(plan_circuit, channel),
	       FLAG(plan_circuit, moved),
	       FLAG(plan_circuit, dark)) };

static const struct layout element_layout = {
	sizeof(struct plan_element),
	FIELDS(NUMBER(plan_element, device), PART(plan_element, xc, &plan_xc_layout),
	       NUMBER(plan_element, loss_mdb), NUMBER(plan_element, source)) };

static const struct layout path_layout = {
	sizeof(struct plan_path),
	FIELDS(NUMBER(plan_path, arc), NUMBER(plan_path, tx_port), NUMBER(plan_path, rx_port),
	       LIST(plan_path, elements, n_elements, &element_layout), NUMBER(plan_path, loss_mdb),
	       FLAG(plan_path, amplified), FLAG(plan_path, has_measured),
	       FLAG(plan_path, has_launch), NUMBER(plan_path, measured_mdbm),
	       NUMBER(plan_path, launched_mdbm), FLAG(plan_path, is_dark),
	       FLAG(plan_path, has_power), NUMBER(plan_path, min_mdbm),
	       NUMBER(plan_path, max_mdbm)) };

static const struct layout job_loss_layout = {
	sizeof(struct plan_job_loss),
	FIELDS(NUMBER(plan_job_loss, dead), NUMBER(plan_job_loss, device),
	       PART(plan_job_loss, xc, &plan_xc_layout), CHARS(plan_job_loss, part),
	       NUMBER(plan_job_loss, arcs), NUMBER(plan_job_loss, dead_arcs),
	       OTHER(plan_job_loss, sched, &schedule), PART(plan_job_loss, report, &report_layout),
	       NUMBER(plan_job_loss, time_ns), NUMBER(plan_job_loss, bound_ns),
	       NUMBER(plan_job_loss, rate), PART(plan_job_loss, why, &layout_err)) };

static const struct layout torus_layout = {
	sizeof(struct coll_made_torus),
	FIELDS(FLAG(coll_made_torus, is_made), NUMBER(coll_made_torus, rounds),
	       CHARS(coll_made_torus, levels)) };

static const struct layout ring_layout = {
	sizeof(struct optree_plan),
	FIELDS(NUMBER(optree_plan, depth), NUMBER(optree_plan, closed_form_steps),
	       NUMBER(optree_plan, lightpaths), NUMBER(optree_plan, retune_hidden_ns),
	       NUMBER(optree_plan, worst_loss_mdb)) };

static const struct layout share_layout = {
	sizeof(struct workload_share),
	FIELDS(NUMBER(workload_share, axes), NUMBER(workload_share, shift),
	       FLAG(workload_share, paired), NUMBER(workload_share, ports),
	       TEXT(workload_share, expr), NUMBER(workload_share, steps),
	       NUMBER(workload_share, num), NUMBER(workload_share, den),
	       NUMBER(workload_share, diameter), NUMBER(workload_share, congestion)) };

static const struct layout gap_layout = {
	sizeof(struct workload_gap),
	FIELDS(NUMBER(workload_gap, from), NUMBER(workload_gap, to)) };

static const struct layout light_layout = {
	sizeof(struct workload_light),
	FIELDS(NUMBER(workload_light, units), ITEMS(workload_light, shares, &share_layout),
	       ITEMS(workload_light, gaps, &gap_layout)) };

static const struct layout use_layout = {
	sizeof(struct workload_use),
	FIELDS(NUMBER(workload_use, op), NUMBER(workload_use, light),
	       NUMBER(workload_use, min_bytes), NUMBER(workload_use, max_bytes),
	       NUMBER(workload_use, time_ns), NUMBER(workload_use, bound_ns),
	       OTHER(workload_use, sched, &schedule), FLAG(workload_use, degraded)) };

static const struct layout weight_layout = {
	sizeof(struct workload_weight), FIELDS(NUMBER(workload_weight, y)) };

static const struct layout bound_layout = {
	sizeof(struct workload_bound),
	FIELDS(NUMBER(workload_bound, still_ns), NUMBER(workload_bound, classes_ns),
	       NUMBER(workload_bound, any_ns),
	       ITEMS(workload_bound, weights, &weight_layout)) };

static const struct layout params_layout = {
	sizeof(struct workload_params),
	FIELDS(NUMBER(workload_params, ports), NUMBER(workload_params, link_bps),
	       NUMBER(workload_params, alpha_ns), NUMBER(workload_params, change_ns),
	       NUMBER(workload_params, max_changes), FLAG(workload_params, both)) };

static const struct layout step_layout = {
	sizeof(struct workload_plan),
	FIELDS(PART(workload_plan, params, &params_layout),
	       ITEMS(workload_plan, lights, &light_layout),
	       ITEMS(workload_plan, uses, &use_layout), NUMBER(workload_plan, changes),
	       NUMBER(workload_plan, change_ns),
	       NUMBER(workload_plan, time_ns), NUMBER(workload_plan, still_ns),
	       FLAG(workload_plan, exhaustive), PART(workload_plan, bound, &bound_layout)) };

static const struct layout job_layout = {
	sizeof(struct plan_job),
	FIELDS(NUMBER(plan_job, job), OTHER(plan_job, algorithm, &algorithm),
	       PART(plan_job, torus, &torus_layout), TEXT(plan_job, topology),
	       MAYBE(plan_job, choice, &choice_layout), OTHER(plan_job, sched, &schedule),
	       PART(plan_job, report, &report_layout), NUMBER(plan_job, unit_bps),
	       NUMBER(plan_job, time_ns), NUMBER(plan_job, bound_ns), NUMBER(plan_job, gap),
	       FLAG(plan_job, is_ring), FLAG(plan_job, kept), OTHER(plan_job, share.at, &array),
	       PART(plan_job, ring, &ring_layout),
	       LIST(plan_job, without, n_without, &plan_fault_layout),
	       NUMBER(plan_job, fault_free_ns),
	       LIST(plan_job, circuits, n_circuits, &circuit_layout),
	       LIST(plan_job, backups, n_backups, &circuit_layout),
	       NUMBER(plan_job, n_protected), NUMBER(plan_job, n_unprotected),
	       NUMBER(plan_job, n_moves), NUMBER(plan_job, moves_bound),
	       LIST(plan_job, paths, n_paths, &path_layout),
	       MAYBE(plan_job, step, &step_layout), NUMBER(plan_job, light),
	       OTHER(plan_job, flow, &flow),
	       MAYBE(plan_job, loss, &job_loss_layout)) };

#define XCS(list) LIST(plan_device, list, n_##list, &plan_xc_layout)

static const struct layout device_layout = {
	sizeof(struct plan_device),
	FIELDS(NUMBER(plan_device, device), NUMBER(plan_device, n_keep), XCS(del), XCS(add),
	       XCS(external), XCS(displaced), XCS(want), XCS(leave),
	       FLAG(plan_device, has_program), OTHER(plan_device, programs, &plan_programs_bytes),
	       FLAG(plan_device, load_program), FLAG(plan_device, had_program),
	       OTHER(plan_device, old_programs, &plan_programs_bytes),
	       NUMBER(plan_device, switch_ns), NUMBER(plan_device, down_ns),
	       NUMBER(plan_device, downtime_source),
	       ALSO(plan_device, del_stage, n_del, &layout_int),
	       ALSO(plan_device, add_stage, n_add, &layout_int),
	       NUMBER(plan_device, load_stage)) };

/* Its domain is the fabric's text, and an own one on its way. */
static const struct layout stage_layout = {
	sizeof(struct plan_stage),
	FIELDS(TEXT(plan_stage, domain), NUMBER(plan_stage, n_del), NUMBER(plan_stage, n_add),
	       NUMBER(plan_stage, n_loads), NUMBER(plan_stage, host), FLAG(plan_stage, is_rx),
	       NUMBER(plan_stage, bps), NUMBER(plan_stage, of_bps)) };

static const struct layout gain_layout = {
	sizeof(struct plan_gain),
	FIELDS(TEXT(plan_gain, name), NUMBER(plan_gain, job), NUMBER(plan_gain, effect),
	       NUMBER(plan_gain, size_bytes), NUMBER(plan_gain, before_ns),
	       NUMBER(plan_gain, before_whole_ns), NUMBER(plan_gain, after_ns),
	       NUMBER(plan_gain, after_whole_ns), NUMBER(plan_gain, down_ns)) };

static const struct layout plan_layout = {
	sizeof(struct plan),
	FIELDS(CHARS(plan, state_uuid), NUMBER(plan, generation), NUMBER(plan, mode),
	       NUMBER(plan, aim), CHARS(plan, evacuated), TEXT(plan, topologies),
	       FLAG(plan, is_rollback), CHARS(plan, digest), LIST(plan, jobs, n_jobs, &job_layout),
	       LIST(plan, devices, n_devices, &device_layout),
	       LIST(plan, stages, n_stages, &stage_layout),
	       NUMBER(plan, n_add), NUMBER(plan, n_del), NUMBER(plan, n_keep),
	       NUMBER(plan, n_loads), NUMBER(plan, down_ns), NUMBER(plan, downtime_source),
	       LIST(plan, warnings, n_warnings, &owned_text_layout), FLAG(plan, gains_known),
	       LIST(plan, gains, n_gains, &gain_layout)) };

/* Times are arrays as long as the fabric says, or not there. */
struct travelling {
	struct plan plan;
	int n_ports, n_devices;
	int64_t *port_ns, *device_ns;
};

static const struct layout travelling_layout = {
	sizeof(struct travelling),
	FIELDS(PART(travelling, plan, &plan_layout),
	       LIST(travelling, port_ns, n_ports, &layout_int64),
	       LIST(travelling, device_ns, n_devices, &layout_int64)) };

void plan_to_bytes(const struct plan *p, struct buf *out)
{
	struct travelling t = {
		.plan = *p, .port_ns = p->port_ns, .device_ns = p->device_ns,
		.n_ports = p->port_ns ? p->fabric->n_ports : 0,
		.n_devices = p->device_ns ? p->fabric->n_devices : 0,
	};

	layout_write(&travelling_layout, &t, out);
}

/* ---- freeing ----------------------------------------------------------------- */

void plan_job_loss_free(struct plan_job_loss *loss)
{
	if (loss) {
		layout_fini(&job_loss_layout, loss);
		free(loss);
	}
}

void plan_paths_free(struct plan_job *pj)
{
	for (int i = 0; i < pj->n_paths; i++) {
		layout_fini(&path_layout, &pj->paths[i]);
	}
	free(pj->paths);
	pj->paths = NULL;
	pj->n_paths = 0;
}

/* The schedule of a ring belongs to its optree plan. */
void plan_job_fini(struct plan_job *pj)
{
	if (pj->is_ring) {
		optree_plan_fini(&pj->ring);
		pj->sched = NULL;
	}
	layout_fini(&job_layout, pj);
}

void plan_free(struct plan *p)
{
	for (int i = 0; p && i < p->n_jobs; i++) {
		plan_job_fini(&p->jobs[i]);
	}
	for (int i = 0; p && i < p->n_stages; i++) {
		p->stages[i].domain = NULL;
	}
	if (p) {
		free(p->port_ns);
		free(p->device_ns);
		layout_fini(&plan_layout, p);
	}
	free(p);
}

/* ---- what numbers stand for -------------------------------------------------- */

static int refuse(struct err *err, const char *what)
{
	return err_set(err, WEFT_EINVAL, "plan: %s that the fabric does not have", what);
}

static bool is_index(int64_t i, int n)
{
	return i >= 0 && i < n;
}

/* On a switch or a panel. */
static bool has_circuit(const struct model_fabric *f, int d, struct optics_xc xc)
{
	return is_index(d, f->n_devices) && f->devices[d].kind != MODEL_RING &&
	       is_index(xc.in, f->devices[d].n_in) && is_index(xc.out, f->devices[d].n_out);
}

static bool has_ports(const struct model_fabric *f, int tx_port, int rx_port)
{
	return is_index(tx_port, f->n_ports) && is_index(rx_port, f->n_ports);
}

/* And each once, in their order. */
static bool has_circuits(const struct model_fabric *f, int d, const struct optics_xc *v, int n)
{
	bool all = true;

	for (int i = 0; i < n; i++) {
		all = all && has_circuit(f, d, v[i]) &&
		      (i == 0 || optics_xc_cmp(&v[i - 1], &v[i]) < 0);
	}
	return all;
}

/* What is made is wanted. Both are in order. */
static bool wants_adds(const struct plan_device *d)
{
	int i = 0;

	for (int k = 0; k < d->n_want && i < d->n_add; k++) {
		i += optics_xc_cmp(&d->add[i], &d->want[k]) == 0;
	}
	return i == d->n_add;
}

ORDER_BY(by_in, struct optics_xc, in)

ORDER_BY(by_out, struct optics_xc, out)

/* No port has two. */
static bool is_matching(const struct optics_xc *v, int n)
{
	struct optics_xc *own = x_alloc((size_t)n + 1, sizeof(*own));
	bool once = true;

	if (n > 0) {
		memcpy(own, v, (size_t)n * sizeof(*own));
	}
	for (int by = 0; by < 2; by++) {
		qsort(own, (size_t)n, sizeof(*own), by ? by_out : by_in);
		for (int i = 1; i < n; i++) {
			once = once && (by ? by_out : by_in)(&own[i - 1], &own[i]) != 0;
		}
	}
	free(own);
	return once;
}

/* What goes is not wanted, and what others lose goes. All are in order. */
static bool removes_rightly(const struct plan_device *d)
{
	int i = 0, k = 0;
	bool apart = true;

	for (int w = 0; w < d->n_del; w++) {
		while (i < d->n_want && optics_xc_cmp(&d->want[i], &d->del[w]) < 0) {
			i++;
		}
		apart = apart && (i == d->n_want || optics_xc_cmp(&d->want[i], &d->del[w]) != 0);
		k += k < d->n_displaced && optics_xc_cmp(&d->displaced[k], &d->del[w]) == 0;
	}
	return apart && k == d->n_displaced;
}

static bool has_stages(const struct plan *p, const int *v, int n)
{
	bool all = true;

	for (int i = 0; i < n; i++) {
		all = all && is_index(v[i], p->n_stages);
	}
	return all;
}

static int check_programs(const struct model_device *md, const struct ring_programs *programs,
			  struct err *err)
{
	const struct ring_geometry geometry = plan_ring_geometry(md);

	return programs->n ? ring_programs_check(programs, &geometry, err) : 0;
}

/* seen: [n_devices] those that were there before. */
static int check_device(const struct plan *p, const struct plan_device *d, bool *seen,
			struct err *err)
{
	const struct model_fabric *f = p->fabric;
	const struct model_device *md = &f->devices[d->device];
	int rc;

	if (!is_index(d->device, f->n_devices) || seen[d->device]) {
		return refuse(err, "a device");
	}
	seen[d->device] = true;
	if (!has_circuits(f, d->device, d->del, d->n_del) ||
	    !has_circuits(f, d->device, d->add, d->n_add) ||
	    !has_circuits(f, d->device, d->external, d->n_external) ||
	    !has_circuits(f, d->device, d->displaced, d->n_displaced) ||
	    !has_circuits(f, d->device, d->want, d->n_want) ||
	    !has_circuits(f, d->device, d->leave, d->n_leave) || !wants_adds(d)) {
		return refuse(err, "a circuit");
	}
	if (!is_matching(d->want, d->n_want) || !removes_rightly(d)) {
		return err_set(err, WEFT_EINVAL, "plan: circuits of %s that cannot be together",
			       md->name);
	}
	if (!has_stages(p, d->del_stage, d->n_del) || !has_stages(p, d->add_stage, d->n_add) ||
	    (d->load_program && !is_index(d->load_stage, p->n_stages))) {
		return refuse(err, "a stage");
	}
	if (md->kind != MODEL_RING && (d->has_program || d->had_program || d->load_program ||
				       d->programs.n || d->old_programs.n)) {
		return refuse(err, "a ring");
	}
	if (!is_index(d->downtime_source, PLAN_TIMES_SOME_LEARNED + 1)) {
		return refuse(err, "a source of times");
	}
	rc = check_programs(md, &d->programs, err);
	return rc ? rc : check_programs(md, &d->old_programs, err);
}

static bool has_path(const struct model_fabric *f, const struct plan_path *path)
{
	bool all = has_ports(f, path->tx_port, path->rx_port);

	for (int i = 0; i < path->n_elements; i++) {
		const struct plan_element *e = &path->elements[i];

		all = all && (e->device == -1 || has_circuit(f, e->device, e->xc)) &&
		      is_index(e->source, PLAN_FACTORY + 1);
	}
	return all;
}

/* Its ranks have hosts. */
static bool is_placed(const struct coll_sched *s)
{
	return !s || (coll_placement(s) && coll_placement(s)->hosts);
}

/* Its lights and uses are those of the job's step. */
static bool has_step(const struct model_job *job, const struct workload_plan *step)
{
	const struct workload *w = job->workload;
	bool all = !w == !step && (!step || (step->lights.n > 0 &&
					     step->bound.weights.n == w->ops.n));

	for (size_t i = 0; all && step && i < step->uses.n; i++) {
		all = is_index(step->uses.v[i].op, (int)w->ops.n) &&
		      is_index(step->uses.v[i].light, (int)step->lights.n);
	}
	for (size_t i = 0; all && step && i < step->lights.n; i++) {
		for (size_t k = 0; k < step->lights.v[i].shares.n; k++) {
			const struct workload_share *s = &step->lights.v[i].shares.v[k];

			all = all && !(s->axes >> w->axes.n) && (s->expr || s->shift);
		}
		for (size_t k = 0; k < step->lights.v[i].gaps.n; k++) {
			const struct workload_gap *g = &step->lights.v[i].gaps.v[k];
			int n = workload_ranks(w, WORKLOAD_ALL_AXES);

			all = all && is_index(g->from, n) && is_index(g->to, n);
		}
	}
	return all;
}

static int check_job(const struct plan *p, int i, struct err *err)
{
	const struct model_fabric *f = p->fabric;
	const struct plan_job *pj = &p->jobs[i];
	int n_arcs = pj->sched ? topo_m(coll_physical(pj->sched)) : 0;
	bool circuits = true, paths = true;

	if (pj->job != i || pj->is_ring != (f->jobs[i].device >= 0) || !pj->sched ||
	    !pj->algorithm || !is_placed(pj->sched) || (pj->loss && !is_placed(pj->loss->sched))) {
		return refuse(err, "a job");
	}
	if (!has_step(&f->jobs[i], pj->step) ||
	    (pj->step && !is_index(pj->light, (int)pj->step->lights.n))) {
		return refuse(err, "a step");
	}
	for (int k = 0; k < pj->n_circuits + pj->n_backups; k++) {
		const struct plan_circuit *c = k < pj->n_circuits
			? &pj->circuits[k] : &pj->backups[k - pj->n_circuits];

		circuits = circuits && has_circuit(f, c->device, c->xc) &&
			   has_ports(f, c->tx_port, c->rx_port) && is_index(c->arc, n_arcs);
	}
	for (int k = 0; k < pj->n_paths; k++) {
		paths = paths && has_path(f, &pj->paths[k]) &&
			is_index(pj->paths[k].arc, n_arcs);
	}
	if (!circuits || !paths || (pj->loss && !is_index(pj->loss->device, f->n_devices))) {
		return refuse(err, circuits ? "a path" : "a circuit");
	}
	if ((pj->is_ring && pj->n_circuits) || (!pj->is_ring && pj->n_without) ||
	    (pj->fault_free_ns && !pj->n_without)) {
		return refuse(err, "a circuit, or a failed part,");
	}
	return 0;
}

/* Gains are those of its jobs, then of others that end. */
static int check_gains(const struct plan *p, struct err *err)
{
	bool all = p->n_gains == 0 || p->n_gains >= p->n_jobs;

	for (int i = 0; i < p->n_gains; i++) {
		all = all && p->gains[i].name && p->gains[i].job == (i < p->n_jobs ? i : -1) &&
		      is_index(p->gains[i].effect, PLAN_ENDS + 1);
	}
	for (int i = 0; i < p->n_warnings; i++) {
		all = all && p->warnings[i];
	}
	return all ? 0 : refuse(err, "a gain");
}

static int check_all(const struct plan *p, struct err *err)
{
	const struct model_fabric *f = p->fabric;
	bool *seen = x_new((size_t)f->n_devices + 1, sizeof(*seen));
	int rc = 0;

	if (p->n_devices != f->n_devices || (p->n_jobs && p->n_jobs != f->n_jobs) ||
	    !is_index(p->mode, PLAN_UPDATE + 1) || !is_index(p->aim, PLAN_OPTIMISE + 1) ||
	    !is_index(p->downtime_source, PLAN_TIMES_SOME_LEARNED + 1)) {
		rc = refuse(err, "as many devices or jobs, or a mode");
	}
	for (int i = 0; i < p->n_stages && rc == 0; i++) {
		if (p->stages[i].host != -1 && !is_index(p->stages[i].host, f->n_hosts)) {
			rc = refuse(err, "a host");
		}
	}
	for (int i = 0; i < p->n_devices && rc == 0; i++) {
		rc = check_device(p, &p->devices[i], seen, err);
	}
	for (int i = 0; i < p->n_jobs && rc == 0; i++) {
		rc = check_job(p, i, err);
	}
	free(seen);
	return rc ? rc : check_gains(p, err);
}

/* ---- reading ----------------------------------------------------------------- */

/* The fabric's text for it; NULL: there is no such domain. */
static const char *find_domain(const struct model_fabric *f, const char *domain)
{
	for (int i = 0; domain && i < f->n_devices; i++) {
		if (strcmp(f->devices[i].domain, domain) == 0) {
			return f->devices[i].domain;
		}
	}
	return NULL;
}

/* What is borrowed becomes so: of the fabric, and of a ring's plan. */
static int settle(struct plan *p, const struct model_fabric *f, struct err *err)
{
	int rc = 0;

	p->fabric = f;
	for (int i = 0; i < p->n_stages; i++) {
		char *own = (char *)p->stages[i].domain;

		p->stages[i].domain = find_domain(f, own);
		free(own);
		rc = p->stages[i].domain ? rc : refuse(err, "a domain");
	}
	for (int i = 0; i < p->n_jobs; i++) {
		if (p->jobs[i].is_ring) {
			p->jobs[i].ring.sched = p->jobs[i].sched;
		}
	}
	return rc;
}

/* An array of the fabric's length, or none. */
static int take_times(int64_t **times, int n, int of, int64_t **out, struct err *err)
{
	if (n != 0 && n != of) {
		return refuse(err, "as many times");
	}
	if (n == of) {
		*out = *times;
		*times = NULL;
	}
	return 0;
}

int plan_from_bytes(const struct model_fabric *fabric, const void *data, size_t len,
		    struct plan **out, struct err *err)
{
	struct travelling t;
	struct plan *p;
	int rc = layout_read(&travelling_layout, &t, data, len, err);

	if (rc) {
		return err_wrap(err, "plan");
	}
	p = x_new(1, sizeof(*p));
	*p = t.plan;
	rc = settle(p, fabric, err);
	if (rc == 0 && (rc = take_times(&t.port_ns, t.n_ports, fabric->n_ports, &p->port_ns,
					err)) == 0) {
		rc = take_times(&t.device_ns, t.n_devices, fabric->n_devices, &p->device_ns, err);
	}
	free(t.port_ns);
	free(t.device_ns);
	if (rc || (rc = check_all(p, err))) {
		plan_free(p);
		return rc;
	}
	*out = p;
	return 0;
}
