/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rank programs on MPI: every kind of collective, totals that do not divide, datatypes with
 * holes and odd extents, user operations, in place, results against what they must be.
 *
 * The program starts itself by mpirun on eight ranks, twice: as MPI likes it, and with
 * every message held back until its receive is posted.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "runtime/mpi/execute.h"
#include "runtime/mpi/private.h"
#include "tests/unit/rank/kinds.h"
#include "tests/unit/schedule/chains.h"

/* MPI keeps memory until the end. */
__attribute__((visibility("default"))) int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void)
{
	return 1;
}

static int world_rank;

/* A rank that fails alone would leave the others waiting. */
#define INSIST(condition, ...)                             \
	do {                                               \
		if (!(condition)) {                        \
			fprintf(stderr, "%s:%d: rank %d: ", __FILE__, __LINE__, world_rank); \
			fprintf(stderr, __VA_ARGS__);      \
			fprintf(stderr, "\n");             \
			MPI_Abort(MPI_COMM_WORLD, 1);      \
		}                                          \
	} while (0)

/* The first n ranks; MPI_COMM_NULL on others. */
static MPI_Comm some_ranks(int n)
{
	MPI_Comm comm;

	assert_int_equal(MPI_Comm_split(MPI_COMM_WORLD, world_rank < n ? 0 : MPI_UNDEFINED,
					world_rank, &comm), MPI_SUCCESS);
	return comm;
}

/* ---- elements of several types ---- */

/* How an element of a number lies in memory: the number in so many 32-bit words at
 * `at`, element k at k * extent bytes. */
struct shape {
	const char *name;
	int words;
	int at[2];		/* bytes */
	int extent;
};

static const struct shape shapes[] = {
	{ "word", 1, { 0, 0 }, 4 },
	{ "holes", 2, { 0, 8 }, 16 },
	{ "lower bound", 2, { 8, 12 }, 20 },
	{ "turned round", 2, { 4, 0 }, 8 },
	{ "downwards", 1, { 0, 0 }, -8 },
};

#define SHAPES ((int)(sizeof(shapes) / sizeof(*shapes)))
#define UNTOUCHED 0xa5

static MPI_Datatype type_of(const struct shape *s)
{
	MPI_Datatype plain, type;
	MPI_Aint at[2] = { s->at[0], s->at[1] };

	assert_int_equal(MPI_Type_create_hindexed_block(s->words, 1, at, MPI_UINT32_T, &plain), 0);
	assert_int_equal(MPI_Type_create_resized(plain, 0, s->extent, &type), 0);
	assert_int_equal(MPI_Type_commit(&type), 0);
	MPI_Type_free(&plain);
	return type;
}

/* Adds every word; both words of an element hold the same number. */
static void add_words(void *in, void *inout, int *n, MPI_Datatype *type)
{
	MPI_Aint lb, extent;
	int size;

	MPI_Type_get_extent(*type, &lb, &extent);
	MPI_Type_size(*type, &size);
	for (int s = 0; s < SHAPES; s++) {
		if (shapes[s].extent != extent || shapes[s].words * 4 != size) {
			continue;
		}
		for (int k = 0; k < *n; k++) {
			for (int w = 0; w < shapes[s].words; w++) {
				MPI_Aint at = k * extent + shapes[s].at[w];
				uint32_t *to = (uint32_t *)((char *)inout + at);

				*to += *(uint32_t *)((char *)in + at);
			}
		}
		return;
	}
	MPI_Abort(MPI_COMM_WORLD, 1);
}

struct array {
	const struct shape *s;
	int64_t n;
	unsigned char *memory, *first;
	size_t bytes;
};

static struct array array_of(const struct shape *s, int64_t n)
{
	struct array a = { .s = s, .n = n };

	a.bytes = (size_t)(n + 2) * (size_t)abs(s->extent) + 32;
	a.memory = malloc(a.bytes);
	memset(a.memory, UNTOUCHED, a.bytes);
	a.first = a.memory + (s->extent < 0 ? n * -s->extent : 0);
	return a;
}

/* The low 32 bits of value. */
static void set(struct array *a, int64_t k, uint64_t value)
{
	uint32_t word = (uint32_t)value;

	for (int w = 0; w < a->s->words; w++) {
		memcpy(a->first + k * a->s->extent + a->s->at[w], &word, 4);
	}
}

static void assert_element(const struct array *a, int64_t k, uint64_t value)
{
	uint32_t wanted = (uint32_t)value;

	for (int w = 0; w < a->s->words; w++) {
		uint32_t got;

		memcpy(&got, a->first + k * a->s->extent + a->s->at[w], 4);
		INSIST(got == wanted, "%s: element %ld is %u, not %u", a->s->name, (long)k, got,
		       wanted);
	}
}

/* Nothing but the elements' own bytes was written. */
static void assert_holes(struct array *a)
{
	for (int64_t k = 0; k < a->n; k++) {
		for (int w = 0; w < a->s->words; w++) {
			memset(a->first + k * a->s->extent + a->s->at[w], UNTOUCHED, 4);
		}
	}
	for (size_t i = 0; i < a->bytes; i++) {
		INSIST(a->memory[i] == UNTOUCHED, "%s: byte %zu was written", a->s->name, i);
	}
}

/* ---- one run ---- */

struct run {
	struct rank_program p;
	struct mpi_executor *x;
	int64_t total;
	const struct shape *shape;
	MPI_Op op;
	bool in_place;
	int late;		/* this rank begins after the others; -1: none does */
};

/* Where the own input lies in the output buffer when it is in place. */
static int64_t place_in_out(const struct run *r)
{
	return r->p.kind == COLL_ALLGATHER || r->p.kind == COLL_GATHER
	       ? r->p.rank * (r->total / r->p.ranks) : 0;
}

static int64_t size_of(const struct run *r, int b)
{
	return rank_offset(&r->p, r->total, (int64_t)r->p.shards[b] * r->p.chunks);
}

static void run_once(struct run *r)
{
	int64_t n_in = size_of(r, RANK_IN), n_out = size_of(r, RANK_OUT);
	bool in_place = r->in_place && n_in > 0 && n_out >= n_in;
	struct array in = array_of(r->shape, n_in), out = array_of(r->shape, n_out);
	struct array *from = in_place ? &out : &in;
	int64_t at = in_place ? place_in_out(r) : 0;
	MPI_Datatype type = type_of(r->shape);
	int rc;

	for (int64_t k = 0; k < n_in; k++) {
		set(from, at + k, token(r->p.rank, k));
	}
	for (int64_t k = 0; k < n_out && r->p.kind == COLL_BROADCAST && r->p.rank == r->p.root;
	     k++) {
		set(&out, k, token(r->p.rank, k));
	}
	usleep(r->late == world_rank ? 10000 : 0);
	rc = mpi_executor_run(r->x, from->first + at * r->shape->extent, out.first, r->total, type,
			      coll_is_sum(r->p.kind) ? r->op : MPI_OP_NULL);
	INSIST(rc == MPI_SUCCESS, "error %d", rc);
	for (int64_t k = 0; k < n_out; k++) {
		assert_element(&out, k, expected(&r->p, r->total, k));
	}
	for (int64_t k = 0; k < n_in && !in_place; k++) {
		assert_element(&in, k, token(r->p.rank, k));
	}
	assert_holes(&out);
	assert_holes(&in);
	free(in.memory);
	free(out.memory);
	MPI_Type_free(&type);
}

/* With the first so many shapes, in turn in place and not, for these numbers of elements;
 * with one shape each rank is late in turn. */
static void run_shapes(const struct coll_sched *s, int n_shapes, const int64_t *totals,
		       int n_totals)
{
	MPI_Comm comm = some_ranks(coll_ranks(s));
	struct run r = { .op = MPI_OP_NULL, .late = -1 };
	struct err err = { 0 };

	if (comm == MPI_COMM_NULL) {
		return;
	}
	MPI_Op_create(add_words, 1, &r.op);
	must(rank_program_make(s, world_rank, &r.p, &err), &err);
	must(mpi_executor_new(&r.p, comm, &r.x, &err), &err);
	for (int i = 0; i < n_totals * n_shapes; i++) {
		r.total = totals[i / n_shapes];
		r.shape = &shapes[i % n_shapes];
		r.in_place = i % 2;
		r.late = n_shapes == 1 ? i % coll_ranks(s) : -1;
		run_once(&r);
	}
	mpi_executor_free(r.x);
	rank_program_fini(&r.p);
	MPI_Op_free(&r.op);
	MPI_Comm_free(&comm);
}

static void run_all(const struct coll_sched *s, const int64_t *totals, int n_totals)
{
	run_shapes(s, SHAPES, totals, n_totals);
}

/* ---- schedules ---- */

static const char *const graphs[] = {
	"Ring(5)", "UniRing(2,4)", "Hypercube(3)", "Torus(2,3)", "C(8,{1,3})", "K(3)",
	"GenKautz(2,6)",
};

#define GRAPHS ((int)(sizeof(graphs) / sizeof(*graphs)))

/* Every kind on every other graph: eight ranks on two processors take their time. */
static void test_all_kinds(void **state)
{
	(void)state;
	for (int g = 0; g < GRAPHS; g++) {
		for (int kind = g % 2; kind < COLL_KINDS; kind += 2) {
			struct coll_sched *s = schedule_of(kind, graphs[g], g % 3);
			int64_t n = coll_ranks(s);

			run_all(s, (int64_t[]){ 0, n, 7 * n, n * coll_chunks(s), 333 * n }, 5);
			coll_free(s);
		}
	}
}

static void test_vectors_that_do_not_divide(void **state)
{
	static const enum coll_kind kinds[] = { COLL_ALLREDUCE, COLL_BROADCAST, COLL_REDUCE };

	(void)state;
	for (int i = 0; i < GRAPHS * 3; i++) {
		struct coll_sched *s = schedule_of(kinds[i % 3], graphs[i / 3], 1);

		run_all(s, (int64_t[]){ 1, 7, 1001 }, 3);
		coll_free(s);
	}
}

/* Sums of both ends of an arc cross: what is sent is written over in the same step. */
static void test_exchanged_sums(void **state)
{
	struct coll_sched *s = empty(COLL_ALLREDUCE, "Hypercube(3)", 1);

	(void)state;
	for (int step = 0; step < 3; step++) {
		for (int u = 0; u < 8; u++) {
			for (int origin = 0; origin < 8; origin++) {
				send_part(s, step, u, u ^ 1 << step, origin, 0, 0, COLL_OP_REDUCE);
			}
		}
	}
	finish(s);
	run_all(s, (int64_t[]){ 3, 100, 20000 }, 3);
	coll_free(s);
}

/* Sums of others go on from where they are kept, in messages of any length. */
static void test_forwarded_sums(void **state)
{
	static const struct chain_plan ring = { "Ring(5)", 1, { { 1, 5 } } };
	static const struct chain_plan levels = { "C(8,{1,2})", 2, { { 1, 2 }, { 2, 4 } } };
	struct coll_sched *s = chains(&ring);

	(void)state;
	run_all(s, (int64_t[]){ 0, 3, 20000 }, 3);
	run_shapes(s, 1, (int64_t[]){ 5000, 5000, 5000, 5000, 5000 }, 5);
	coll_free(s);
	s = chains(&levels);
	run_all(s, (int64_t[]){ 3, 100, 20000 }, 3);
	coll_free(s);
	s = torus_chains(2, 3);
	run_all(s, (int64_t[]){ 5, 1000 }, 2);
	coll_free(s);
}

/* While one rank has not begun, others send and store what they can: nothing is written
 * over that MPI has yet to read. */
static void test_late_ranks(void **state)
{
	static const char *const rings[] = { "UniRing(1,6)", "Ring(5)" };
	static const enum coll_kind kinds[] = { COLL_ALLTOALL, COLL_GATHER, COLL_SCATTER,
						COLL_ALLREDUCE };

	(void)state;
	for (int i = 0; i < 8; i++) {
		struct coll_sched *s = schedule_of(kinds[i % 4], rings[i / 4], 0);
		int64_t n = coll_ranks(s), total = 5000 * n;

		run_shapes(s, 1, (int64_t[]){ total, total, total, total, total, total }, (int)n);
		coll_free(s);
	}
}

/* More than is kept for later steps, and for packed copies of earlier ones. */
static void test_large(void **state)
{
	struct coll_sched *s = schedule_of(COLL_ALLTOALL, "UniRing(1,4)", 0);

	(void)state;
	run_shapes(s, 1, (int64_t[]){ 4 * 900000 }, 1);
	coll_free(s);
	s = schedule_of(COLL_ALLREDUCE, "UniRing(1,4)", 0);
	run_shapes(s, 1, (int64_t[]){ 700001, 500001 }, 2);	/* the second in place */
	coll_free(s);
}

/* ---- measuring ---- */

/* Messages and elements as the program has them, with barriers and without. */
static void test_measure(void **state)
{
	struct coll_sched *s = schedule_of(COLL_ALLREDUCE, "C(8,{1,3})", 0);
	MPI_Comm comm = some_ranks(8);
	double step_s[64];
	struct mpi_measure m = { .step_s = step_s };
	struct run r = { .shape = &shapes[0], .total = 8 * 1000, .late = -1 };
	int64_t elements = 0;
	struct err err = { 0 };

	(void)state;
	must(rank_program_make(s, world_rank, &r.p, &err), &err);
	must(mpi_executor_new(&r.p, comm, &r.x, &err), &err);
	mpi_executor_measure(r.x, &m);
	MPI_Op_create(add_words, 1, &r.op);
	for (size_t i = 0; i < r.p.sends.n; i++) {
		elements += elements_of(&r.p, &r.p.sends.v[i], r.total);
	}
	for (int i = 0; i < 6; i++) {
		m.barriers = i % 2;
		for (int step = 0; step < r.p.steps; step++) {
			step_s[step] = -1;
		}
		run_once(&r);
		assert_int_equal(m.messages, r.p.sends.n);
		assert_int_equal(m.elements, elements);
		for (int step = 0; step < r.p.steps; step++) {
			assert_true(step_s[step] >= 0);
		}
	}
	mpi_executor_free(r.x);
	rank_program_fini(&r.p);
	coll_free(s);
	MPI_Op_free(&r.op);
	MPI_Comm_free(&comm);
}

/* ---- what it is made of ---- */

/* Long rows are one element of a made type: the same bytes. */
static void test_long_runs(void **state)
{
	(void)state;
	for (int i = 0; i < SHAPES; i++) {
		MPI_Datatype type = type_of(&shapes[i]), run;
		struct array from = array_of(&shapes[i], 50), to = array_of(&shapes[i], 50);
		struct mpi_elements e;
		int count;

		assert_int_equal(mpi_elements_of(MPI_COMM_SELF, 0, type, MPI_OP_NULL, &e), 0);
		for (int64_t n = 1; n <= 50; n += 7) {
			assert_int_equal(mpi_elements_run(&e, n, 10, &run, &count), 0);
			assert_int_equal(count, n > 10 ? 1 : n);
			for (int64_t k = 0; k < n; k++) {
				set(&from, k, token(3, n + k));
			}
			assert_int_equal(MPI_Sendrecv(from.first, count, run, 0, 0, to.first,
						      (int)n, type, 0, 0, MPI_COMM_SELF,
						      MPI_STATUS_IGNORE), 0);
			for (int64_t k = 0; k < n; k++) {
				assert_element(&to, k, token(3, n + k));
			}
			if (run != type) {
				MPI_Type_free(&run);
			}
		}
		assert_holes(&to);
		free(from.memory);
		free(to.memory);
		MPI_Type_free(&type);
	}
}

/* What the executor's freedom from lock-up rests on. */
static void test_order(void **state)
{
	(void)state;
	for (int i = 0; i < GRAPHS * COLL_KINDS; i++) {
		struct coll_sched *s = schedule_of(i % COLL_KINDS, graphs[i / COLL_KINDS], 0);
		struct rank_program p;
		struct mpi_order o;
		struct err err = { 0 };
		int step;

		must(rank_program_make(s, world_rank % coll_ranks(s), &p, &err), &err);
		mpi_order_make(&p, &o);
		for (size_t k = 0; k < p.sends.n; k++) {
			const struct rank_message *m = &p.sends.v[o.send[k]];

			step = m->step;
			assert_true(o.leave[k] >= m->after &&
				    (k == 0 || o.leave[k] >= o.leave[k - 1]));
			assert_true(o.leave[k] <= (step > 0 ? o.step_end[step - 1] : 0));
			assert_true(m->pieces == 1 || step < 2 ||
				    o.leave[k] >= o.step_end[step - 2]);
			for (size_t j = 0; j < k; j++) {
				assert_true(p.sends.v[o.send[j]].arc != m->arc ||
					    p.sends.v[o.send[j]].step < step);
			}
		}
		mpi_order_fini(&o);
		rank_program_fini(&p);
		coll_free(s);
	}
}

static void test_refused(void **state)
{
	struct coll_sched *s = schedule_of(COLL_ALLGATHER, "Ring(5)", 0);
	struct rank_program p;
	struct mpi_executor *x;
	struct err err = { 0 };

	(void)state;
	must(rank_program_make(s, 0, &p, &err), &err);
	assert_int_equal(mpi_executor_new(&p, MPI_COMM_WORLD, &x, &err), WEFT_EINVAL);
	assert_null(x);
	assert_non_null(strstr(err.msg, "of 5 does not run on"));
	mpi_executor_free(x);
	rank_program_fini(&p);
	coll_free(s);
}

/* ---- starting ---- */

static int all_tests(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_kinds),
		cmocka_unit_test(test_vectors_that_do_not_divide),
		cmocka_unit_test(test_exchanged_sums),
		cmocka_unit_test(test_forwarded_sums),
		cmocka_unit_test(test_late_ranks),
		cmocka_unit_test(test_large),
		cmocka_unit_test(test_measure),
		cmocka_unit_test(test_long_runs),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_refused),
	};
	int failed;

	MPI_Init(NULL, NULL);
	MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
	if (world_rank > 0 && !freopen("/dev/null", "w", stdout)) {
		return 1;
	}
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	if (failed > 0) {
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	MPI_Finalize();
	return failed;
}

/* Eight ranks of this program; other ways to carry messages by the environment. */
static int launch(char *program)
{
	pid_t pid = fork();
	int status = 1;

	if (pid == 0) {
		execlp("mpirun", "mpirun", "--oversubscribe", "--bind-to", "none", "--timeout",
		       "500", "-n", "8", program, "rank", (char *)NULL);
		perror("mpirun");
		_exit(127);
	}
	return pid < 0 || waitpid(pid, &status, 0) < 0 || status != 0;
}

int main(int argc, char **argv)
{
	int failed;

	if (argc > 1) {
		return all_tests();
	}
	setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
	setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
	setenv("OMPI_MCA_mpi_yield_when_idle", "1", 1);
	failed = launch(argv[0]);
	setenv("OMPI_MCA_pml", "ob1", 1);
	setenv("OMPI_MCA_btl", "self,vader", 1);
	setenv("OMPI_MCA_btl_vader_eager_limit", "64", 1);
	return failed + launch(argv[0]);
}
