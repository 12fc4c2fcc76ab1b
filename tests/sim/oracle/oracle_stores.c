/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the stores of weftd were told, for rules about what devices do then: changes with the
 * steps of their journals, and the intent of the last commit.
 *
 * The functions of the store are wrapped. A record is taken over when the store has taken it;
 * it is durable when a later store_sync of the same store has returned, or a transaction that
 * syncs by itself. Copies of one store have one uuid and count changes alike, so a change that
 * one weftd began and another ends is one record.
 */
#include <stdlib.h>
#include <string.h>

#include "controller/store/private.h"
#include "lib/base/alloc.h"
#include "lib/base/vec.h"
#include "tests/sim/oracle/oracle_parts.h"
#include "tests/sim/oracle/wraps.h"

/* A step of a journal; marked: by which count it was said to be sent, 0: not yet. */
struct record_step {
	enum store_op op;
	struct optics_xc xc;
	uint64_t marked;
};

/* What a change does on one device. */
struct record {
	char uuid[37];
	int64_t change;
	char *device;
	bool is_ring;
	const struct store *store;	/* that was told last */
	uint64_t begun;			/* by which count */
	int64_t begun_at;
	int64_t over;			/* when it ended; 0: it is open */
	int n;
	struct record_step *steps;
};

/* left: meant to be there, and left alone by the last commit as it found it. */
struct intent {
	char uuid[37];
	char *device;
	int n;
	struct intent_circuit {
		struct optics_xc xc;
		bool left;
	} *circuits;
};

/* A store that a process has open. Durable is what was told up to this count. */
struct open_store {
	const struct store *s;
	struct sim_process *process;
	uint64_t durable;
};

/* The newest term of those who have this store. */
struct term {
	char uuid[37];
	uint64_t fence;
};

static VEC(struct record) records;
static VEC(struct intent) intents;
static VEC(struct open_store) stores;
static VEC(struct term) terms;
static uint64_t count;		/* of all that was told */

/* ---- stores and terms ---------------------------------------------------- */

static struct open_store *find_store(const struct store *s)
{
	for (size_t i = 0; i < stores.n; i++) {
		if (stores.v[i].s == s) {
			return &stores.v[i];
		}
	}
	return NULL;
}

const struct store *oracle_store(void)
{
	for (size_t i = stores.n; i-- > 0;) {
		if (stores.v[i].process == sim_self()) {
			return stores.v[i].s;
		}
	}
	return NULL;
}

int64_t oracle_common_position(void)
{
	int64_t newest = 0;

	for (size_t i = 0; i < stores.n; i++) {
		const struct store *a = stores.v[i].s;

		for (size_t k = 0; k < i && a->log[0] && a->position > newest; k++) {
			const struct store *b = stores.v[k].s;

			if (!sim_ended(stores.v[k].process, NULL) &&
			    !sim_ended(stores.v[i].process, NULL) && a->position == b->position &&
			    strcmp(a->log, b->log) == 0) {
				newest = a->position;
			}
		}
	}
	return newest;
}

static struct term *find_term(const char *uuid)
{
	for (size_t i = 0; i < terms.n; i++) {
		if (strcmp(terms.v[i].uuid, uuid) == 0) {
			return &terms.v[i];
		}
	}
	vec_push(&terms, (struct term){ 0 });
	snprintf(terms.v[terms.n - 1].uuid, sizeof(terms.v[0].uuid), "%s", uuid);
	return &terms.v[terms.n - 1];
}

bool oracle_is_deposed(const struct store *s)
{
	return s->fence < find_term(s->uuid)->fence;
}

static void term_begins(const struct store *s)
{
	struct term *t = find_term(s->uuid);

	t->fence = s->fence > t->fence ? s->fence : t->fence;
}

static void opened(const struct store *s)
{
	struct open_store *known = find_store(s);

	for (size_t i = stores.n; i-- > 0 && !known;) {
		if (sim_ended(stores.v[i].process, NULL)) {
			stores.v[i] = stores.v[--stores.n];
		}
	}
	if (!known) {
		vec_push(&stores, (struct open_store){ .s = s });
		known = &stores.v[stores.n - 1];
	}
	known->process = sim_self();
	known->durable = count;
	oracle_note_file(s->path);
}

static bool is_durable(const struct store *s, uint64_t at)
{
	const struct open_store *known = find_store(s);

	return !s->defers || (known && at <= known->durable);
}

/* ---- changes ------------------------------------------------------------- */

static void drop_record(size_t i)
{
	free(records.v[i].device);
	free(records.v[i].steps);
	records.v[i] = records.v[--records.n];
}

static void drop_old_records(void)
{
	for (size_t i = records.n; i-- > 0;) {
		if (records.v[i].over && sim_now() - records.v[i].over > ORACLE_GRACE) {
			drop_record(i);
		}
	}
}

static struct record *find_record(const struct store *s, int64_t change, const char *device)
{
	for (size_t i = 0; i < records.n; i++) {
		struct record *r = &records.v[i];

		if (r->change == change && strcmp(r->device, device) == 0 &&
		    strcmp(r->uuid, s->uuid) == 0) {
			return r;
		}
	}
	return NULL;
}

static void mark_steps(struct record *r, const struct store_work *w)
{
	for (int i = 0; i < r->n && i < w->n_steps; i++) {
		if (w->steps[i].state != STORE_PLANNED && !r->steps[i].marked) {
			r->steps[i].marked = count;
		}
	}
}

/* The steps in the order in which they are now. */
static void take_work(const struct store *s, int64_t change, const struct store_work *w)
{
	struct record *r = find_record(s, change, w->device);

	if (!r) {
		vec_push(&records, (struct record){ .change = change, .begun = count,
						    .begun_at = sim_now(),
						    .device = x_dup(w->device),
						    .is_ring = w->is_ring });
		r = &records.v[records.n - 1];
		memcpy(r->uuid, s->uuid, sizeof(r->uuid));
	}
	if (r->n != w->n_steps || !r->steps) {
		free(r->steps);
		r->n = w->n_steps;
		r->steps = x_new((size_t)w->n_steps + 1, sizeof(*r->steps));
		for (int i = 0; i < r->n; i++) {
			r->steps[i] = (struct record_step){ w->steps[i].op, w->steps[i].xc, 0 };
		}
	}
	r->store = s;
	r->over = 0;
	mark_steps(r, w);
}

/* The same number may have been that of a change which was taken back. */
static void forget_change(const struct store *s, int64_t change)
{
	for (size_t i = records.n; i-- > 0;) {
		if (records.v[i].change == change && strcmp(records.v[i].uuid, s->uuid) == 0) {
			drop_record(i);
		}
	}
}

static void take_journal(const struct store *s, const struct store_journal *j)
{
	drop_old_records();
	forget_change(s, j->change.id);
	count++;
	for (int i = 0; i < j->n_works; i++) {
		take_work(s, j->change.id, &j->works[i]);
	}
}

/* Those up to this one: a commit covers what was open before it. */
static void change_over(const struct store *s, int64_t change, bool older_too)
{
	for (size_t i = 0; i < records.n; i++) {
		struct record *r = &records.v[i];

		if (strcmp(r->uuid, s->uuid) == 0 && !r->over &&
		    (r->change == change || (older_too && r->change < change))) {
			r->over = sim_now();
		}
	}
}

/* ---- intent -------------------------------------------------------------- */

static struct intent *find_intent(const struct store *s, const char *device)
{
	for (size_t i = 0; i < intents.n; i++) {
		if (strcmp(intents.v[i].device, device) == 0 &&
		    strcmp(intents.v[i].uuid, s->uuid) == 0) {
			return &intents.v[i];
		}
	}
	vec_push(&intents, (struct intent){ .device = x_dup(device) });
	memcpy(intents.v[intents.n - 1].uuid, s->uuid, sizeof(intents.v[0].uuid));
	return &intents.v[intents.n - 1];
}

static void drop_intent(size_t i)
{
	free(intents.v[i].device);
	free(intents.v[i].circuits);
	intents.v[i] = intents.v[--intents.n];
}

/* A port has one circuit: to intend two is to lose one of them. */
static void check_ports(const struct intent *in)
{
	for (int i = 1; i < in->n; i++) {
		const struct optics_xc a = in->circuits[i].xc;

		for (int k = 0; k < i; k++) {
			const struct optics_xc b = in->circuits[k].xc;

			if (a.in == b.in || a.out == b.out) {
				sim_fail("port twice", "%s: %d,%d and %d,%d are both intended, "
					 "and share a port", in->device, a.in, a.out, b.in,
					 b.out);
				return;
			}
		}
	}
}

static void take_intent(const struct store *s, const struct record *r)
{
	struct intent *in = find_intent(s, r->device);

	free(in->circuits);
	in->circuits = x_new((size_t)r->n + 1, sizeof(*in->circuits));
	in->n = 0;
	for (int i = 0; i < r->n; i++) {
		const struct record_step *st = &r->steps[i];

		if (st->op == STORE_ADD || st->op == STORE_KEEP || st->op == STORE_LEAVE) {
			in->circuits[in->n++] = (struct intent_circuit){
				.xc = st->xc, .left = st->op == STORE_LEAVE };
		}
	}
	check_ports(in);
}

static void committed(const struct store *s, int64_t change)
{
	for (size_t i = intents.n; i-- > 0;) {
		if (strcmp(intents.v[i].uuid, s->uuid) == 0 &&
		    !find_record(s, change, intents.v[i].device)) {
			oracle_forget_device(intents.v[i].device);
			drop_intent(i);
		}
	}
	for (size_t i = 0; i < records.n; i++) {
		if (records.v[i].change == change && strcmp(records.v[i].uuid, s->uuid) == 0) {
			take_intent(s, &records.v[i]);
		}
	}
	change_over(s, change, true);
}

/* What was made and read back is there, unless another user has been at the device. */
static void check_lit(const struct store *s, const struct store_journal *j)
{
	for (int i = 0; i < j->n_works; i++) {
		const struct store_work *w = &j->works[i];
		const struct record *r = find_record(s, j->change.id, w->device);

		for (int k = 0; r && k < w->n_steps; k++) {
			const struct store_step *st = &w->steps[k];

			if (st->op == STORE_ADD && !st->is_straggler &&
			    !oracle_device_has(w->device, st->xc) &&
			    !oracle_is_disturbed(w->device, r->begun_at)) {
				sim_fail("committed dark", "%s: change %lld is committed, and "
					 "circuit %d,%d of it is not there", w->device,
					 (long long)j->change.id, st->xc.in, st->xc.out);
			}
		}
	}
}

/* ---- what rules ask ------------------------------------------------------ */

/* Forwards it does what the step says, and undoing it the other way round; what was to be kept
 * may have been lost by a restart, and what was listed as failed is deleted to be made again. */
static bool step_allows(const struct record_step *st, struct optics_xc xc, bool made)
{
	return optics_xc_cmp(&st->xc, &xc) == 0 && st->op != STORE_LOAD &&
	       (st->op != STORE_KEEP || made);
}

bool oracle_is_on_record(const char *device, struct optics_xc xc, bool made)
{
	for (size_t i = 0; i < records.n; i++) {
		const struct record *r = &records.v[i];

		if (strcmp(r->device, device) != 0 ||
		    (r->over && sim_now() - r->over > ORACLE_GRACE)) {
			continue;
		}
		for (int k = 0; k < r->n; k++) {
			if (step_allows(&r->steps[k], xc, made)) {
				return true;
			}
		}
	}
	return false;
}

bool oracle_is_load_on_record(const char *device)
{
	for (size_t i = 0; i < records.n; i++) {
		const struct record *r = &records.v[i];

		if (r->is_ring && strcmp(r->device, device) == 0 &&
		    (!r->over || sim_now() - r->over <= ORACLE_GRACE)) {
			return true;
		}
	}
	return false;
}

/* What another store was told before is durable there, or this one would not know it. */
static bool is_step_marked(const struct store *s, const struct record *r,
			   const struct record_step *st)
{
	return st->marked && (r->store != s || is_durable(s, st->marked));
}

static bool is_begun(const struct store *s, const struct record *r)
{
	return r->store != s || is_durable(s, r->begun);
}

/* Undoing makes what was to be deleted or kept, and of that no more is said before it is sent. */
bool oracle_is_marked(const struct store *s, const char *device, struct optics_xc xc,
		      enum drv_op op)
{
	for (size_t i = 0; i < records.n; i++) {
		const struct record *r = &records.v[i];

		if (r->over || strcmp(r->device, device) != 0 ||
		    strcmp(r->uuid, s->uuid) != 0 || !is_begun(s, r)) {
			continue;
		}
		for (int k = 0; k < r->n; k++) {
			const struct record_step *st = &r->steps[k];
			bool back = op == DRV_ADD && (st->op == STORE_DEL || st->op == STORE_KEEP);

			if (step_allows(st, xc, op == DRV_ADD) &&
			    (back || is_step_marked(s, r, st))) {
				return true;
			}
		}
	}
	return false;
}

bool oracle_is_load_marked(const struct store *s, const char *device)
{
	for (size_t i = 0; i < records.n; i++) {
		const struct record *r = &records.v[i];

		for (int k = 0; k < r->n && !r->over; k++) {
			if (r->steps[k].op == STORE_LOAD && strcmp(r->device, device) == 0 &&
			    strcmp(r->uuid, s->uuid) == 0 && is_step_marked(s, r, &r->steps[k])) {
				return true;
			}
		}
	}
	return false;
}

static const struct intent_circuit *find_intended(const char *device, struct optics_xc xc)
{
	for (size_t i = 0; i < intents.n; i++) {
		for (int k = 0; k < intents.v[i].n; k++) {
			if (strcmp(intents.v[i].device, device) == 0 &&
			    optics_xc_cmp(&intents.v[i].circuits[k].xc, &xc) == 0) {
				return &intents.v[i].circuits[k];
			}
		}
	}
	return NULL;
}

bool oracle_is_intended(const char *device, struct optics_xc xc)
{
	return find_intended(device, xc);
}

bool oracle_is_left(const char *device, struct optics_xc xc)
{
	const struct intent_circuit *c = find_intended(device, xc);

	return c && c->left;
}

/* ---- what is wrapped ----------------------------------------------------- */

WRAP(int, store_open, const char *path, struct store **out, struct err *err)
{
	int rc = __real_store_open(path, out, err);

	if (rc == 0) {
		opened(*out);
		term_begins(*out);
	}
	return rc;
}

WRAP(int, store_open_replica, const char *path, struct store **out, struct err *err)
{
	int rc = __real_store_open_replica(path, out, err);

	if (rc == 0) {
		opened(*out);
	}
	return rc;
}

WRAP(int, store_open_shared, const char *path, struct store **out, struct err *err)
{
	int rc = __real_store_open_shared(path, out, err);

	if (rc == 0) {
		opened(*out);
	}
	return rc;
}

WRAP(void, store_free, struct store *s)
{
	for (size_t i = stores.n; i-- > 0;) {
		if (stores.v[i].s == s) {
			stores.v[i] = stores.v[--stores.n];
		}
	}
	/* Its number may become another's. */
	for (size_t i = 0; i < records.n; i++) {
		records.v[i].store = records.v[i].store == s ? NULL : records.v[i].store;
	}
	__real_store_free(s);
}

WRAP(int, store_lead, struct store *s, const struct store_lease *seen, const char *holder,
     struct err *err)
{
	int rc = __real_store_lead(s, seen, holder, err);

	if (rc == 0) {
		term_begins(s);
	}
	return rc;
}

WRAP(int, store_new_term, struct store *s, struct err *err)
{
	int rc = __real_store_new_term(s, err);

	if (rc == 0) {
		term_begins(s);
	}
	return rc;
}

WRAP(int, store_begin, struct store *s, struct store_journal *j,
     const struct model_config *config, struct err *err)
{
	int rc = __real_store_begin(s, j, config, err);

	if (rc == 0) {
		take_journal(s, j);
	}
	return rc;
}

int __real_store_mark(struct store *s, const struct store_journal *j, int work, struct err *err);
int watched_store_mark(struct store *s, const struct store_journal *j, int work, struct err *err)
{
	int rc = __real_store_mark(s, j, work, err);

	if (rc == 0) {
		count++;
		take_work(s, j->change.id, &j->works[work]);
	}
	return rc;
}

/* On a worker, while the loop may write more. */
int __real_store_sync(struct store *s, struct err *err);
int watched_store_sync(struct store *s, struct err *err)
{
	uint64_t before = count;
	int rc = __real_store_sync(s, err);
	struct open_store *known = find_store(s);

	if (rc == 0 && known && known->durable < before) {
		known->durable = before;
	}
	return rc;
}

WRAP(int, store_commit, struct store *s, int64_t change, const char *summary, int proof,
     struct err *err)
{
	int rc = __real_store_commit(s, change, summary, proof, err);

	if (rc == 0) {
		committed(s, change);
	}
	return rc;
}

WRAP(int, store_commit_proven, struct store *s, const struct store_journal *j,
     const char *summary, int proof, struct err *err)
{
	int rc = __real_store_commit_proven(s, j, summary, proof, err);

	if (rc == 0) {
		count++;
		check_lit(s, j);
		committed(s, j->change.id);
	}
	return rc;
}

WRAP(int, store_end, struct store *s, int64_t change, enum store_verdict verdict,
     const char *summary, struct err *err)
{
	int rc = __real_store_end(s, change, verdict, summary, err);

	if (rc == 0) {
		if (verdict != STORE_INTERRUPTED && verdict != STORE_STUCK) {
			change_over(s, change, false);
		}
	}
	return rc;
}
