/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Status and diff: what is known, shown without touching a device. Intent comes
 * from the store, what is there from the last readings, and what an open change
 * explains is neither missing nor unexpected but pending. All of it is built
 * into one message whose memory is kept beside it, as the API's messages only
 * point to what they carry; the web page renders the same message.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/daemon/views/private.h"
#include "controller/proto_convert/report.h"
#include "lib/base/alloc.h"
#include "lib/base/vec.h"
#include "lib/base/version.h"

/* ---- devices ------------------------------------------------------------- */

/* One device as a message, and the memory behind it. Everything is zero until it
 * is filled, so that it can be ended at any point. */
struct device_view {
	Weft__V1__DeviceState m;
	Weft__V1__ProgramState program;	/* of m, for a ring */
	const struct device_circuits *circuits;	/* kept */
	/* Parts of a ring that failed or lost their wave; what the configuration
	 * marks dead; ports that the last reading found out of use. */
	struct msg_parts dead, lost, marked, unusable, failed;
	Weft__V1__Timing switching;	/* learned, if anything was */
	Weft__V1__ExternalChange **external;	/* of device_views.external */
};

struct device_views {
	struct problems problems;
	int n;			/* devices that are (being) filled */
	struct device_view *v;
	Weft__V1__DeviceState **list;	/* [n], for a response */
	struct external_view external;	/* changes by others that are open */
};

static void views_fini(struct device_views *s)
{
	for (int i = 0; i < s->n; i++) {
		msg_parts_fini(&s->v[i].dead);
		msg_parts_fini(&s->v[i].lost);
		msg_parts_fini(&s->v[i].marked);
		msg_parts_fini(&s->v[i].unusable);
		msg_parts_fini(&s->v[i].failed);
		free(s->v[i].external);
	}
	free(s->v);
	free(s->list);
	external_view_fini(&s->external);
	problems_fini(&s->problems);
}

#define FAILED_SHOWN 64		/* parts of a ring; their count is exact */

static int cap(int n, int limit)
{
	return n < limit ? n : limit;
}

/* What a ring is to play and plays, and what of it failed. */
static void fill_program(struct device_view *v, const struct model_device *md,
			 const struct apply_device *a)
{
	const struct store_light *intent = a->intent;
	const struct ring_programs *want = &intent->programs;
	const struct ring_programs *has = &a->snap.programs;
	Weft__V1__ProgramState *p = &v->program;

	weft__v1__program_state__init(p);
	p->wanted = intent->has_program && want->n > 0;
	p->loaded = has->n > 0;
	p->wanted_steps = ring_programs_steps(want);
	p->loaded_steps = ring_programs_steps(has);
	p->equal = p->wanted == p->loaded && (!p->wanted || ring_programs_equal(want, has));
	p->unlocked = a->snap.n_unlocked;
	p->lock_detail = (char *)a->snap.lock_detail;
	v->m.program = p;
	p->failed_count = a->snap.n_dead;
	p->lost_count = a->snap.n_lost;
	msg_parts_init(&v->dead, md, a->snap.dead, cap(a->snap.n_dead, FAILED_SHOWN),
		       &p->n_failed, &p->failed);
	msg_parts_init(&v->lost, md, a->snap.lost, cap(a->snap.n_lost, FAILED_SHOWN),
		       &p->n_lost, &p->lost);
}

const char *power_loss_name(const struct apply_device *a)
{
	static const char *const names[] = {
		[DRV_PERSIST_UNKNOWN] = "", [DRV_PERSIST_DARK] = "dark",
		[DRV_PERSIST_RESTORE] = "saved map",
		[DRV_PERSIST_AUTOSAVE] = "last map",
	};

	return names[a->snap.caps.persistence];
}

/* Ports that the last reading found out of use: the first some by name, as
 * "in 3 failed", and how many there are. */
static void fill_unusable(struct device_view *v, const struct model_device *md,
			  const struct apply_device *a)
{
	struct msg_parts *w = &v->unusable;
	Weft__V1__DeviceState *m = &v->m;

	w->text = x_new(MSG_PARTS_SHOWN, sizeof(*w->text));
	w->list = x_new(MSG_PARTS_SHOWN, sizeof(*w->list));
	for (int i = 0; i < a->snap.n_ports; i++) {
		const struct drv_port *p = &a->snap.ports[i];
		size_t n = m->n_unusable;

		if (p->enabled && !p->failed) {
			continue;
		}
		m->unusable_count++;
		if (n == MSG_PARTS_SHOWN) {
			continue;
		}
		snprintf(w->text[n], sizeof(w->text[n]), "%s %d %s",
			 md->any_to_any ? "port" : p->is_out ? "out" : "in",
			 p->index + 1, p->failed ? "failed" : "disabled");
		w->list[n] = w->text[n];
		m->n_unusable++;
	}
	m->unusable = w->list;
}

/* Ports that failed and are not marked, the first some by name. */
static void fill_failed(struct device_view *v, const struct model_device *md,
			const struct problem_device *p)
{
	int n = cap(p->n_failed, MSG_PARTS_SHOWN);
	struct msg_parts *w = &v->failed;

	w->text = x_new((size_t)n + 1, sizeof(*w->text));
	w->list = x_new((size_t)n + 1, sizeof(*w->list));
	for (int i = 0; i < n; i++) {
		problem_port_text(md, p->failed.v[i], w->text[i], sizeof(w->text[i]));
		w->list[i] = w->text[i];
	}
	v->m.n_failed_ports = (size_t)n;
	v->m.failed_ports = w->list;
	v->m.failed_port_count = p->n_failed;
}

/* Those of all open changes by others that are the device's. They are asked for once
 * for all devices, as a fabric may have many, and are few. */
static void pick_external(const struct device_views *s, struct device_view *v)
{
	const struct external_view *all = &s->external;

	if (all->n == 0) {
		return;
	}
	v->external = x_new(all->n, sizeof(Weft__V1__ExternalChange *));
	for (size_t i = 0; i < all->n; i++) {
		if (strcmp(all->list[i]->device, v->m.name) == 0) {
			v->external[v->m.n_external_changes++] = all->list[i];
		}
	}
	v->m.external_changes = v->external;
}

/* One device: configuration, last reading, intent, and how they differ. */
static void fill_device(const struct views *d, const struct device_views *s, struct device_view *v,
			const struct model_fabric *f, int device, const struct apply_device *a)
{
	const struct model_device *md = &f->devices[device];
	Weft__V1__DeviceState *m = &v->m;

	weft__v1__device_state__init(m);
	m->name = md->name;
	m->kind = msg_device_kind(md->kind);
	m->driver = md->driver ? md->driver : "";
	m->address = md->address ? md->address : "";
	m->elsewhere = a->elsewhere;
	m->reachable = a->reachable;
	m->ever_read = a->ever_read;
	m->problem = (char *)a->problem;
	m->read_at_ns = a->read_at_ns;
	m->restarted = a->restarted;
	m->proof = msg_proof(a->level);
	m->identity = (char *)a->snap.identity;
	m->circuits = a->intent->n_xcs;
	m->pending_count = a->n_pending;
	device_circuits_list(v->circuits, m);
	m->lossy = a->n_lossy;
	m->switching = env_timing(d->env, STORE_SWITCHING, a->name, &v->switching);
	m->power_loss = (char *)power_loss_name(a);
	m->auto_restore = external_policy(f, md, a) == MODEL_EXTERNAL_RESTORE;
	m->restore_at_boot = md->at_boot == MODEL_EXTERNAL_UNSET
				     ? m->auto_restore : md->at_boot == MODEL_EXTERNAL_RESTORE;
	msg_parts_admin_down(&v->marked, md, &m->n_marked_dead, &m->marked_dead,
			     &m->marked_dead_count);
	fill_unusable(v, md, a);
	fill_failed(v, md, &s->problems.devices[device]);
	pick_external(s, v);
	if (md->kind == MODEL_RING && !a->elsewhere) {
		fill_program(v, md, a);
	}
}

/* All devices of the present fabric, in its order; views_fini also after an error. */
static int views_init(struct device_views *s, const struct views *d, struct err *err)
{
	const struct store_external_query open = { .open = true };
	const struct model_fabric *f = apply_fabric(d->env->apply);
	struct device_circuits *circuits;
	const struct apply_device *a;
	int n, r;

	memset(s, 0, sizeof(*s));
	a = apply_devices(d->env->apply, &n);
	s->v = x_new((size_t)n + 1, sizeof(*s->v));
	s->list = x_new((size_t)n + 1, sizeof(*s->list));
	problems_init(&s->problems, d);
	r = external_view_init(&s->external, d->env, &open, err);
	if (r) {
		return r;
	}
	circuits = kept_circuits(d->kept_status, n);
	for (; s->n < n; s->n++) {
		struct device_view *v = &s->v[s->n];

		s->list[s->n] = &v->m;
		v->circuits = &circuits[s->n];
		device_circuits_renew(&circuits[s->n], d->env->apply, s->n, &a[s->n]);
		fill_device(d, s, v, f, s->n, &a[s->n]);
	}
	return 0;
}

/* A panel has no driver, and another weftd may lead a device: nothing is read of it, and nothing
 * is missed. */
static bool is_unread(const Weft__V1__DeviceState *m)
{
	return !m->driver[0] || m->elsewhere;
}

/* ---- diff ---------------------------------------------------------------- */

void answer_diff(const struct views *d, struct rpc_call *call)
{
	Weft__V1__Diff m = WEFT__V1__DIFF__INIT;
	struct err err = { 0 };
	struct device_views s;
	int r = views_init(&s, d, &err);
	struct hosts_view *hosts = &s.problems.hosts;

	m.generation = store_generation(d->env->store);
	m.same = m.complete = true;
	for (int i = 0; i < s.n && r == 0; i++) {
		const Weft__V1__DeviceState *v = &s.v[i].m;

		if (v->ever_read) {
			m.same = m.same && msg_is_as_intended(v);
		}
		m.complete = m.complete && (is_unread(v) || (v->ever_read && v->reachable));
	}
	m.n_devices = (size_t)s.n;
	m.devices = s.list;
	m.n_problems = s.problems.n;
	m.problems = s.problems.list;
	m.same = m.same && !s.problems.differs;
	if (hosts->known) {
		m.links = &hosts->m;
		m.complete = m.complete && !hosts->silent;
	}
	call_answer(call, r, &m.base, &err);
	views_fini(&s);
}

void handle_diff(struct rpc_call *call, const ProtobufCMessage *msg, void *arg)
{
	(void)msg;
	answer_diff(arg, call);
}

/* ---- status -------------------------------------------------------------- */

/* The first of these that holds; each hides the ones after it. */
static Weft__V1__State state_of(const struct views *d)
{
	if (d->standby) {
		return WEFT__V1__STATE__STATE_STANDBY;
	}
	if (d->env->reading) {
		return WEFT__V1__STATE__STATE_READING;
	}
	if (d->env->changing) {
		return WEFT__V1__STATE__STATE_CHANGING;
	}
	if (apply_journal(d->env->apply, 0)) {
		return WEFT__V1__STATE__STATE_INTERRUPTED;
	}
	return d->env->applied ? WEFT__V1__STATE__STATE_READY
			  : WEFT__V1__STATE__STATE_EMPTY;
}

/* What is to be advised about, and where the sentence goes. */
struct advice {
	const struct views *parts;
	const struct device_views *devices;
	const Weft__V1__StatusResponse *m;	/* filled but for the advice */
	char *text;		/* "" until there is one */
	size_t size;
};

static void advise_standby(struct advice *a)
{
	if (a->parts->standby && a->parts->election->status.problem[0]) {
		snprintf(a->text, a->size, "this one stands by, and knows nothing new: %s",
			 a->parts->election->status.problem);
	} else if (a->parts->standby) {
		snprintf(a->text, a->size, "%s leads; this one takes over when "
			 "it does not any more",
			 standby_leader(a->parts->standby));
	}
}

static void advise_store(struct advice *a)
{
	const char *trouble = store_trouble(a->parts->env->store);
	struct err err = { 0 };

	if (a->parts->env->read_only) {
		store_newer_error(a->parts->env->store, &err);
		snprintf(a->text, a->size, "%s", err.msg);
	} else if (trouble[0]) {
		snprintf(a->text, a->size, "nothing can be recorded (%s), so "
			 "no change begins: check the disk of the state folder "
			 "and its free space", trouble);
	}
}

static void advise_leader(struct advice *a)
{
	const struct election *e = a->parts->standby ? NULL : a->parts->election;

	if (e && e->status.problem[0]) {
		snprintf(a->text, a->size, "nothing can be recorded where others have it, so no "
			 "change begins: %s", e->status.problem);
	}
}

/* The change did not end well, or weftd ended before it did. */
static void advise_interrupted(struct advice *a)
{
	const struct change_wait *w = changes_wait(a->parts->changes);
	const struct store_change *c;

	if (a->m->state == WEFT__V1__STATE__STATE_INTERRUPTED && w->change) {
		change_wait_text(w, a->text, a->size);
	} else if (a->m->state == WEFT__V1__STATE__STATE_INTERRUPTED) {
		c = &apply_journal(a->parts->env->apply, 0)->change;
		snprintf(a->text, a->size, "change %lld is open (%s): its "
			 "circuits are listed as pending; \"weft apply\" "
			 "carries a configuration through, \"weft rollback\" "
			 "goes back", (long long)c->id,
			 outcome_name(c->verdict));
	}
}

static void advise_frozen(struct advice *a)
{
	struct err frozen;

	if (drain_check_frozen(a->parts->drain, &frozen)) {
		snprintf(a->text, a->size, "%s: %s", frozen.msg, frozen.hint);
	}
}

static void advise_empty(struct advice *a)
{
	if (a->m->state == WEFT__V1__STATE__STATE_EMPTY) {
		snprintf(a->text, a->size, "nothing was ever applied: weft "
					   "apply -f FABRIC.yaml");
	}
}

/* A change that waits is not urgent while another state is. */
static void advise_confirm(struct advice *a)
{
	int64_t change = changes_confirm(a->parts->changes)->change;

	if (change && a->m->state == WEFT__V1__STATE__STATE_READY) {
		snprintf(a->text, a->size, "change %lld goes back unless it is "
			 "confirmed: \"weft confirm\", or \"weft cancel\" "
			 "to go back now", (long long)change);
	}
}

/* One sentence for a device: most urgent is what weftd has given up on. */
static void advise_device(struct advice *a, const Weft__V1__DeviceState *m)
{
	if (m->n_external_changes && m->external_changes[0]->given_up) {
		snprintf(a->text, a->size, "%s is changed by another user "
			 "again and again and is not restored any more: "
			 "\"weft external-changes %s\" lists what", m->name,
			 m->name);
	} else if (a->m->state != WEFT__V1__STATE__STATE_READING &&
		   !m->reachable && m->problem[0] && !is_unread(m)) {
		snprintf(a->text, a->size, "%s does not answer: its circuits "
			 "are as they were, but not verified", m->name);
	} else if (m->ever_read && !msg_is_as_intended(m) &&
		   a->m->state == WEFT__V1__STATE__STATE_READY) {
		snprintf(a->text, a->size, "%s is not as intended: \"weft "
			 "plan\" shows what \"weft apply\" would do", m->name);
	}
}

/* The first device that needs some. */
static void advise_devices(struct advice *a)
{
	for (int i = 0; i < a->devices->n && !a->text[0]; i++) {
		advise_device(a, &a->devices->v[i].m);
	}
}

/* The first job that has lost circuits. */
static void advise_jobs(struct advice *a)
{
	for (size_t i = 0; i < a->m->n_jobs && !a->text[0] &&
	     a->m->state == WEFT__V1__STATE__STATE_READY; i++) {
		if (a->m->jobs[i]->degradation) {
			msg_degradation_text(a->m->jobs[i], a->text, a->size);
		}
	}
}

/* What no other adviser has a word for: a port that failed and that nothing needs. */
static void advise_problems(struct advice *a)
{
	const struct problems *p = &a->devices->problems;

	if (a->m->state == WEFT__V1__STATE__STATE_READY && p->n > 0) {
		snprintf(a->text, a->size, "%s", p->list[0]->text);
	}
}

/* The most urgent advice: each adviser writes a sentence or leaves the text empty,
 * and the first sentence counts. */
static void advise(struct advice *a)
{
	static void (*const advisers[])(struct advice *a) = {
		advise_standby, advise_leader, advise_store, advise_interrupted,
		advise_frozen, advise_empty, advise_confirm, advise_devices,
		advise_jobs, advise_problems,
	};

	for (size_t i = 0; i < sizeof(advisers) / sizeof(*advisers) && !a->text[0]; i++) {
		advisers[i](a);
	}
}

/* The newest change that has ended, among the newest eight. *v, which m borrows
 * from, is owned by the caller, also on error. */
static int last_change(const struct views *d, struct store_change **v, int *n,
		       Weft__V1__Change *m, bool *found, struct err *err)
{
	int r = store_history(d->env->store, 0, 8, v, n, err);

	*found = false;
	for (int i = 0; r == 0 && i < *n && !*found; i++) {
		if ((*v)[i].verdict >= STORE_COMMITTED) {
			fill_change(m, &(*v)[i]);
			*found = true;
		}
	}
	return r;
}

/* Its name, state and jobs; without a fabric there are no jobs, which is known. While a
 * change runs, and while another configuration is looked at, the jobs are as they were. */
static void fill_fabric(const struct views *d, const struct progress_view *now,
			Weft__V1__StatusResponse *m)
{
	const struct model_fabric *f = apply_fabric(d->env->apply);
	const struct job_rows *rows = shown_jobs(d);

	m->version = (char *)build_version;
	m->store_format = STORE_VERSION;
	m->state_uuid = (char *)store_uuid(d->env->store);
	m->generation = store_generation(d->env->store);
	if (!f) {
		m->jobs_known = true;
		return;
	}
	m->fabric = f->name ? f->name : "";
	m->config_sha256 = (char *)f->text_hash;
	m->jobs_known = !d->env->applied || rows;
	if (m->jobs_known) {
		m->n_jobs = now->n_jobs;
		m->jobs = now->jobs;
	} else {
		m->jobs_problem = (char *)job_status_rows(d->job_status)->err.msg;
	}
}

/* The circuits of one device; out is to be ended by the caller. WEFT_ENOTFOUND. */
static int add_circuits(const struct views *d, struct device_views *s, const char *name,
		     struct circuit_view *out, struct err *err)
{
	const struct apply_device *a;
	int n;

	a = apply_devices(d->env->apply, &n);
	for (int i = 0; i < n; i++) {
		if (strcmp(a[i].name, name) == 0) {
			circuit_view_init(out, d->env, i, &a[i]);
			s->v[i].m.n_read = out->circuits.n;
			s->v[i].m.read = out->circuits.v;
			return 0;
		}
	}
	return err_set(err, WEFT_ENOTFOUND, "there is no device \"%s\"", name);
}

/* The message, and the memory that it points to. */
struct daemon_status {
	Weft__V1__StatusResponse m;
	Weft__V1__Confirm confirm;	/* of m, if a change waits */
	Weft__V1__Change last, open;	/* of m, if there are any */
	Weft__V1__Leadership leadership; /* of m, if several take turns */
	Weft__V1__Standby standbys[HA_MAX_STANDBYS], *standby_list[HA_MAX_STANDBYS];
	struct joint_participant said[JOINT_MAX];
	Weft__V1__Participant participants[JOINT_MAX], *participant_list[JOINT_MAX];
	struct store_change *history;	/* that last is of; the newest changes */
	int n_history;
	char advice[ERR_MSG_MAX];	/* "": there is nothing to do */
	struct repairs_view repairs;
	struct progress_view progress;
	struct device_views views;
};

void daemon_status_free(struct daemon_status *s)
{
	if (s) {
		free(s->m.holds);
		store_history_free(s->history, s->n_history);
		repairs_view_fini(&s->repairs);
		progress_view_fini(&s->progress);
		views_fini(&s->views);
		free(s);
	}
}

static void fill_leadership(const struct election *e, const struct store *store,
			    struct daemon_status *s)
{
	char log[STORE_LOG_MAX];
	const struct ha_status *from = &e->status;
	Weft__V1__Leadership *m = &s->leadership;

	weft__v1__leadership__init(m);
	m->leader = (char *)from->leader.holder;
	m->since_at_ns = from->leader.since_ns;
	m->term = from->leader.term;
	m->behind = from->behind;
	m->unconfirmed = store_position(store, log) - store_published(store);
	m->problem = (char *)from->problem;
	m->n_standbys = (size_t)from->n_standbys;
	m->standbys = s->standby_list;
	for (int i = 0; i < from->n_standbys; i++) {
		weft__v1__standby__init(&s->standbys[i]);
		s->standbys[i].name = (char *)from->standbys[i].name;
		s->standbys[i].behind = from->standbys[i].behind;
		s->standby_list[i] = &s->standbys[i];
	}
	s->m.leadership = m;
}

static void fill_participants(const struct joint *j, struct daemon_status *s)
{
	int n = joint_participants(j, s->said);

	for (int i = 0; i < n; i++) {
		Weft__V1__Participant *m = &s->participants[i];

		weft__v1__participant__init(m);
		m->name = (char *)s->said[i].name;
		m->domains = (char *)s->said[i].domains;
		m->leader = (char *)s->said[i].leader;
		m->state = s->said[i].state;
		s->participant_list[i] = m;
	}
	s->m.participants = s->participant_list;
	s->m.n_participants = (size_t)n;
}

/* The change that waits, the last one (if found), and the one that is open. */
static void fill_changes(const struct views *d, struct daemon_status *s, bool found)
{
	if (changes_confirm(d->changes)->change) {
		weft__v1__confirm__init(&s->confirm);
		s->confirm.change = changes_confirm(d->changes)->change;
		s->confirm.deadline_at_ns = changes_confirm(d->changes)->by_ns;
		s->confirm.rollback_to = changes_confirm(d->changes)->back_to;
		s->m.confirm = &s->confirm;
	}
	if (found) {
		s->m.last_change = &s->last;
	}
	if (apply_journal(d->env->apply, 0)) {
		fill_change(&s->open, &apply_journal(d->env->apply, 0)->change);
		s->m.open_change = &s->open;
	}
}

/* While another file is looked at, the one in force is still that of the newest commit; NULL: of
 * the newest changes none was committed. */
static char *hash_in_force(const struct daemon_status *s)
{
	for (int i = 0; i < s->n_history; i++) {
		if (s->history[i].verdict == STORE_COMMITTED) {
			return s->history[i].config_hash;
		}
	}
	return NULL;
}

int daemon_status_new(const struct views *d, struct daemon_status **out, struct err *err)
{
	static const struct job_rows none;
	const struct job_rows *rows = d->env->applied ? job_status_rows(d->job_status) : &none;
	struct daemon_status *s = x_new(1, sizeof(*s));
	bool found = false;
	int r;

	/* On a standby another process writes the store. */
	if ((d->standby && ((r = drain_load(d->drain, err)) ||
			    (r = apply_refresh(d->env->apply, err)))) ||
	    (r = views_init(&s->views, d, err)) ||
	    (r = last_change(d, &s->history, &s->n_history, &s->last, &found, err))) {
		daemon_status_free(s);
		return r;
	}
	weft__v1__status_response__init(&s->m);
	s->m.holds = drain_messages(d->drain, &s->m.n_holds);
	r = repairs_view_init(&s->repairs, d->env, d->hosts, err);
	if (r) {
		daemon_status_free(s);
		return r;
	}
	job_status_prove(d->job_status);
	progress_view_init(&s->progress, d->changes, rows);
	s->m.repairs = s->repairs.list;
	s->m.n_repairs = s->repairs.n;
	s->m.links = s->views.problems.hosts.known ? &s->views.problems.hosts.m : NULL;
	s->m.problems = s->views.problems.list;
	s->m.n_problems = s->views.problems.n;
	s->m.progress = s->progress.running ? &s->progress.m : NULL;
	fill_fabric(d, &s->progress, &s->m);
	s->m.state = state_of(d);
	if (s->m.state == WEFT__V1__STATE__STATE_READY && hash_in_force(s)) {
		s->m.config_sha256 = hash_in_force(s);
	}
	advise(&(struct advice){ .parts = d, .devices = &s->views, .m = &s->m,
				 .text = s->advice,
				 .size = sizeof(s->advice) });
	s->m.advice = s->advice;
	s->m.n_devices = (size_t)s->views.n;
	s->m.devices = s->views.list;
	fill_changes(d, s, found);
	if (d->election) {
		fill_leadership(d->election, d->env->store, s);
	}
	if (d->joint) {
		fill_participants(d->joint, s);
	}
	*out = s;
	return 0;
}

const Weft__V1__StatusResponse *
daemon_status_message(const struct daemon_status *s)
{
	return &s->m;
}

/* ---- packed ---------------------------------------------------------------- */

static void put_number(struct buf *b, uint64_t n)
{
	for (; n > 127; n >>= 7) {
		buf_char(b, (char)(n | 128));
	}
	buf_char(b, (char)n);
}

static void put_message(struct buf *b, const ProtobufCMessage *m, size_t size)
{
	char *to = buf_extend(b, size);

	protobuf_c_message_pack(m, (uint8_t *)to);
}

/* One message of a repeated field, of which a part is packed already. */
static void put_part(struct buf *b, unsigned int field, const ProtobufCMessage *m,
		     const struct buf *packed)
{
	size_t size = protobuf_c_message_get_packed_size(m);

	put_number(b, field << 3 | 2);
	put_number(b, size + packed->len);
	put_message(b, m, size);
	buf_add(b, packed->data, packed->len);
}

#define BRIEF_PENDING 32

static void put_device(struct buf *b, const struct device_view *v, bool brief)
{
	static const struct buf none;
	Weft__V1__DeviceState m = v->m;

	if (brief && m.n_pending > BRIEF_PENDING) {
		m.n_pending = BRIEF_PENDING;
		put_part(b, 8, &m.base, &none);
		return;
	}
	m.n_missing = m.n_unexpected = m.n_pending = m.n_dark = 0;
	put_part(b, 8, &m.base, &v->circuits->packed);
}

static void put_job(struct buf *b, const Weft__V1__PlanJob *job, const struct buf *packed,
		    bool brief)
{
	static const struct buf none;
	Weft__V1__PlanJob m = WEFT__V1__PLAN_JOB__INIT;

	if (brief) {
		m = *job;
		m.n_ranks = m.n_arcs = 0;
	}
	m.gain = job->gain;
	m.proof = job->proof;
	m.advice = job->advice;
	m.apply_time_ns = job->apply_time_ns;
	put_part(b, 9, &m.base, brief ? &none : packed);
}

void daemon_status_pack(const struct daemon_status *s, bool brief, struct buf *out)
{
	Weft__V1__StatusResponse m = s->m;

	m.n_devices = m.n_jobs = 0;
	put_message(out, &m.base, protobuf_c_message_get_packed_size(&m.base));
	for (int i = 0; i < s->views.n; i++) {
		put_device(out, &s->views.v[i], brief);
	}
	for (size_t i = 0; i < s->m.n_jobs; i++) {
		put_job(out, s->m.jobs[i], s->progress.packed[i], brief);
	}
}

/* All, and the circuits of one device. */
static void answer_with_circuits(const struct views *d, struct rpc_call *call, const char *device)
{
	struct daemon_status *s = NULL;
	struct circuit_view circuits = { 0 };
	struct err err = { 0 };
	int r = daemon_status_new(d, &s, &err);

	if (r == 0) {
		r = add_circuits(d, &s->views, device, &circuits, &err);
	}
	call_answer(call, r, s ? &s->m.base : NULL, &err);
	daemon_status_free(s);
	circuit_view_fini(&circuits);
}

void handle_status(struct rpc_call *call, const ProtobufCMessage *msg, void *arg)
{
	const Weft__V1__StatusRequest *req = (const void *)msg;

	if (req->circuits_of[0]) {
		answer_with_circuits(arg, call, req->circuits_of);
	} else {
		answer_kept_status(arg, call, req->brief);
	}
}
