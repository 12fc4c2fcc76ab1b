/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weft-mpi-run: one rank of a schedule that is tried out; `weft schedule run` and `weft
 * testbed run` start it by mpirun.
 *
 *	weft-mpi-run --size BYTES [--repeat K] [--barriers] [--seed S] [--own] [--pause NS] FILE|-
 *
 * The first rank reads the schedule, proves it and sends every rank its own part. Buffers are
 * filled with numbers from the seed, the schedule runs once to warm up and K times
 * more, and after every run each element is compared with what MPI's own
 * collective makes of the same numbers; without --own that does not run, and
 * every rank works out for itself what it has to get: whole ones, so sums are exact in any order.
 *
 * The first rank writes one JSON object on standard output: the result, or the error of the
 * first rank that has one, as {"error": code, "message": text}; then all end with 0.
 * When MPI fails, a rank says so on standard error and all are ended.
 *
 * MPI is called by its PMPI names: with libweft_mpi.so in LD_PRELOAD its "own" collectives would
 * be schedules too.
 */
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/base/alloc.h"
#include "lib/base/file.h"
#include "lib/base/number/rng.h"
#include "lib/base/version.h"
#include "lib/output/writer.h"
#include "runtime/mpi/execute.h"

#define MAX_SCHEDULE ((size_t)1 << 30)	/* bytes of the file */
#define MAX_REPEATS 10000
#define MAX_PAUSE_NS INT64_C(999999999)
#define NS 1e9			/* a second */
#define GARBAGE 0x5b		/* in results before a run */

#ifdef __SANITIZE_ADDRESS__
/* MPI keeps memory until the end. */
__attribute__((visibility("default"))) int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void)
{
	return 1;
}
#endif

struct mpi_options {
	const char *file;
	int64_t size_bytes, seed, repeat;
	bool barriers, own;
	int64_t pause_ns;	/* between a barrier and what is measured */
};

struct mpi_worker {
	struct mpi_options options;
	int rank, ranks;
	MPI_Comm comm;		/* the executor's */
	struct rank_program p;
	struct mpi_executor *x;
	/* The vector, and the own buffers: elements of `width` bytes. */
	int width;
	MPI_Datatype type;
	MPI_Op op;		/* of collectives that sum */
	int64_t total, n_in, n_out;
	char *in, *out, *expected;
	/* Times in seconds: of each repeat, the slowest rank's; of repeat i and step k of
	 * this rank at i * steps + k. */
	double *time_s, *mpi_time_s, *step_s;
	struct mpi_measure measure;
	int64_t wrong;		/* elements of all ranks, in the worst run */
	int64_t planned_bytes;	/* all messages, by the schedule; of the first rank; -1: unknown */
	struct out *result;	/* of the first rank */
};

/* ---- errors ---- */

/* MPI failed: nothing can be agreed on any more. */
static void must(struct mpi_worker *w, int rc, const char *what)
{
	char text[MPI_MAX_ERROR_STRING];
	int len;

	if (rc) {
		PMPI_Error_string(rc, text, &len);
		fprintf(stderr, "weft-mpi-run: rank %d: %s: %.*s\n", w->rank, what, len, text);
		PMPI_Abort(MPI_COMM_WORLD, 1);
	}
}

/* Whether all ranks have rc 0; else every rank gets the error of the first that has not. */
static int agree(struct mpi_worker *w, int rc, struct err *err)
{
	int first = rc ? w->rank : INT_MAX;

	if (rc && w->rank > 0) {
		err_wrap(err, "rank %d", w->rank);
	}
	must(w, PMPI_Allreduce(MPI_IN_PLACE, &first, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD), "agree");
	if (first == INT_MAX) {
		return 0;
	}
	must(w, PMPI_Bcast(err, (int)sizeof(*err), MPI_BYTE, first, MPI_COMM_WORLD), "agree");
	return err->code;
}

static int print(struct out *o)
{
	struct buf b = { 0 };
	int rc;

	out_render(o, &b);
	rc = fwrite(b.data, 1, b.len, stdout) != b.len || fflush(stdout) != 0;
	buf_fini(&b);
	out_free(o);
	return rc;
}

static int print_error(const struct err *err)
{
	struct out *o = out_new(OUT_JSON_LINE);
	char text[ERR_MSG_MAX + ERR_FILE_MAX];

	out_str(o, "error", err_name(err->code));
	out_str(o, "message", err_str(err, text, sizeof(text)));
	return print(o);
}

/* ---- options ---- */

static int read_number(const char *text, int64_t least, int64_t most, int64_t *out)
{
	char *end;
	long long v = strtoll(text, &end, 10);

	*out = v;
	return *text == '\0' || *end != '\0' || v < least || v > most ? WEFT_EUSAGE : 0;
}

static int read_options(int argc, char **argv, struct mpi_options *o, struct err *err)
{
	static const struct option known[] = {
		{ "size", required_argument, NULL, 's' },
			{ "repeat", required_argument, NULL, 'k' },
		{ "seed", required_argument, NULL, 'r' }, { "barriers", no_argument, NULL, 'b' },
		{ "own", no_argument, NULL, 'o' }, { "pause", required_argument, NULL, 'p' },
		{ NULL, 0, NULL, 0 },
	};
	int c, rc = 0;

	*o = (struct mpi_options){ .size_bytes = -1, .repeat = 1 };
	opterr = 0;
	while ((c = getopt_long(argc, argv, "", known, NULL)) != -1 && !rc) {
		switch (c) {
		case 's':
			rc = read_number(optarg, 0, INT64_MAX / 2, &o->size_bytes);
			break;
		case 'k':
			rc = read_number(optarg, 1, MAX_REPEATS, &o->repeat);
			break;
		case 'r':
			rc = read_number(optarg, 0, INT64_MAX, &o->seed);
			break;
		case 'b':
			o->barriers = true;
			break;
		case 'o':
			o->own = true;
			break;
		case 'p':
			rc = read_number(optarg, 0, MAX_PAUSE_NS, &o->pause_ns);
			break;
		default:
			rc = WEFT_EUSAGE;
		}
	}
	if (rc || o->size_bytes < 0 || optind != argc - 1) {
		return err_set(err, WEFT_EUSAGE, "weft-mpi-run --size BYTES [--repeat K] "
			       "[--barriers] [--seed S] [--own] [--pause NS] FILE: K at most %d",
			       MAX_REPEATS);
	}
	o->file = argv[optind];
	return 0;
}

/* ---- the schedule and its parts ---- */

/* Reads and proves it. */
static int load(struct mpi_worker *w, struct coll_sched **out, struct coll_report *rep,
		struct err *err)
{
	char *data = NULL;
	size_t len;
	int rc = file_read(w->options.file, MAX_SCHEDULE, &data, &len, err);

	if (rc) {
		return rc;
	}
	rc = coll_from_bytes(data, len, out, err);
	free(data);
	if (rc || (rc = coll_verify(*out, rep, err))) {
		return err_wrap(err, "%s", w->options.file);
	}
	if (coll_ranks(*out) != w->ranks) {
		return err_set(err, WEFT_EINVAL, "%s is for %d ranks, not for %d",
			       w->options.file, coll_ranks(*out), w->ranks);
	}
	rc = coll_refuse_light_changes(*out, "messages", err);
	return rc ? rc : coll_refuse_demands(*out, "messages", err);
}

/* A part in bytes, of another rank or (NULL) of none, as one message. */
static void send_part(struct mpi_worker *w, int rank, const struct buf *part)
{
	int64_t len = part && part->len <= INT_MAX ? (int64_t)part->len : -1;

	must(w, PMPI_Send(&len, 1, MPI_INT64_T, rank, 0, MPI_COMM_WORLD), "parts");
	if (len >= 0) {
		must(w, PMPI_Send(part->data, (int)len, MPI_BYTE, rank, 0, MPI_COMM_WORLD),
		     "parts");
	}
}

/* The parts of all other ranks; after an error (rc) they get none. */
static int send_parts(struct mpi_worker *w, const struct coll_sched *s, int rc, struct err *err)
{
	for (int rank = 1; rank < w->ranks; rank++) {
		struct coll_sched *part = NULL;
		struct buf bytes = { 0 };

		if (!rc && !(rc = coll_part_of(s, rank, &part, err))) {
			coll_to_proto(part, &bytes);
		}
		if (!rc && bytes.len > INT_MAX) {
			rc = err_set(err, WEFT_ELIMIT, "the part of rank %d has more than %d bytes",
				     rank, INT_MAX);
		}
		send_part(w, rank, rc ? NULL : &bytes);
		buf_fini(&bytes);
		coll_free(part);
	}
	return rc;
}

/* The own part; *out stays NULL when the first rank has none to send. */
static int receive_part(struct mpi_worker *w, struct coll_sched **out, struct err *err)
{
	int64_t len;
	char *data;
	int rc;

	must(w, PMPI_Recv(&len, 1, MPI_INT64_T, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE), "parts");
	if (len < 0) {
		return 0;
	}
	data = x_alloc((size_t)len + 1, 1);
	must(w, PMPI_Recv(data, (int)len, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE),
	     "parts");
	rc = coll_from_proto(data, (size_t)len, out, err);
	free(data);
	return rc;
}

/* The bytes of all messages by the schedule, where its chunks are alike; else -1, and for
 * a vector that make_buffers() will refuse. */
static int64_t planned_bytes(const struct mpi_worker *w, const struct coll_sched *s,
			     const struct coll_report *rep)
{
	int64_t chunks = (int64_t)coll_ranks(s) * coll_chunks(s);

	if (w->total > INT_MAX || w->total % chunks != 0) {
		return -1;
	}
	return rep->chunk_hops * (w->total / chunks) * w->width;
}

static void size_vector(struct mpi_worker *w, enum coll_kind kind);

/* The own program, on all ranks or on none. A part ends with its own last step: all are
 * given the steps of the whole. */
static int get_program(struct mpi_worker *w, struct err *err)
{
	struct coll_sched *s = NULL;
	struct coll_report rep;
	int rc, steps;

	coll_report_init(&rep);
	if (w->rank == 0) {
		rc = load(w, &s, &rep, err);
		rc = send_parts(w, s, rc, err);
	} else {
		rc = receive_part(w, &s, err);
	}
	steps = rep.steps;
	must(w, PMPI_Bcast(&steps, 1, MPI_INT, 0, MPI_COMM_WORLD), "parts");
	if (!rc && s) {
		rc = rank_program_make(s, w->rank, &w->p, err);
		w->p.steps = steps;
		size_vector(w, coll_kind_of(s));
		w->planned_bytes = w->rank == 0 ? planned_bytes(w, s, &rep) : -1;
	}
	coll_report_fini(&rep);
	coll_free(s);
	return agree(w, rc, err);
}

/* ---- the vector ---- */

/* Elements of four bytes where they divide the size, else bytes. Bytes are not added: some
 * builds of Open MPI 4.1 saturate sums of small integers, in parts of a vector. Where every rank
 * gives or gets a shard of its own, MPI has them equal: the vector is then whole shards. */
static void size_vector(struct mpi_worker *w, enum coll_kind kind)
{
	bool whole = kind == COLL_ALLREDUCE || kind == COLL_BROADCAST || kind == COLL_REDUCE;

	w->width = w->options.size_bytes % 4 == 0 ? 4 : 1;
	w->type = w->width == 4 ? MPI_UINT32_T : MPI_UINT8_T;
	w->op = w->width == 4 ? MPI_SUM : MPI_BXOR;
	w->total = w->options.size_bytes / w->width;
	if (!whole && w->total % w->ranks != 0) {
		w->total += w->ranks - w->total % w->ranks;
	}
}

static int make_buffers(struct mpi_worker *w, struct err *err)
{
	const struct rank_program *p = &w->p;

	if (w->total > INT_MAX) {
		return err_set(err, WEFT_ELIMIT, "%ld bytes are more than %d elements, what MPI's "
			       "own collectives take", (long)w->options.size_bytes, INT_MAX);
	}
	w->n_in = rank_offset(p, w->total, (int64_t)p->shards[RANK_IN] * p->chunks);
	w->n_out = rank_offset(p, w->total, (int64_t)p->shards[RANK_OUT] * p->chunks);
	w->in = x_alloc((size_t)(w->n_in * w->width) + 1, 1);
	w->out = x_alloc((size_t)(w->n_out * w->width) + 1, 1);
	w->expected = x_alloc((size_t)(w->n_out * w->width) + 1, 1);
	w->time_s = x_new((size_t)w->options.repeat, sizeof(double));
	w->mpi_time_s = x_new((size_t)w->options.repeat, sizeof(double));
	w->step_s = x_new((size_t)w->options.repeat * (size_t)p->steps + 1, sizeof(double));
	return 0;
}

/* Element k of what a rank begins with. */
static uint32_t value_of(const struct mpi_worker *w, int rank, int64_t k)
{
	uint64_t seed = rng_mix((uint64_t)w->options.seed + 1) + (uint64_t)rank;

	return (uint32_t)(rng_mix((seed << 32) ^ (uint64_t)k) >> 32);
}

static void fill(const struct mpi_worker *w, char *buffer, int64_t n)
{
	for (int64_t k = 0; k < n; k++) {
		uint32_t value = value_of(w, w->rank, k);

		memcpy(buffer + k * w->width, &value, (size_t)w->width);
	}
}

/* What a collective begins with: the root's vector of a broadcast, else nothing of use. */
static void clear(const struct mpi_worker *w, char *buffer)
{
	if (w->p.kind == COLL_BROADCAST && w->rank == w->p.root) {
		fill(w, buffer, w->n_out);
	} else {
		memset(buffer, GARBAGE, (size_t)(w->n_out * w->width));
	}
}

static int64_t count_wrong(const struct mpi_worker *w)
{
	int64_t wrong = 0;

	for (int64_t k = 0; k < w->n_out; k++) {
		wrong += memcmp(w->out + k * w->width, w->expected + k * w->width,
				(size_t)w->width) != 0;
	}
	return wrong;
}

/* Element k of all ranks by the operation. */
static uint32_t combined(const struct mpi_worker *w, int64_t k)
{
	uint32_t value = 0;

	for (int r = 0; r < w->ranks; r++) {
		uint32_t one = value_of(w, r, k);

		value = w->op == MPI_SUM ? value + one : value ^ one;
	}
	return value;
}

/* Element k of the result of this rank, where it has one. */
static uint32_t expected_at(const struct mpi_worker *w, int64_t k)
{
	int64_t shard = w->total / w->ranks, own = shard * w->rank;

	switch (w->p.kind) {
	case COLL_ALLGATHER:
	case COLL_GATHER:
		return value_of(w, (int)(k / shard), k % shard);
	case COLL_REDUCE_SCATTER:
		return combined(w, own + k);
	case COLL_ALLREDUCE:
	case COLL_REDUCE:
		return combined(w, k);
	case COLL_ALLTOALL:
		return value_of(w, (int)(k / shard), own + k % shard);
	case COLL_BROADCAST:
		return value_of(w, w->p.root, k);
	case COLL_SCATTER:
		return value_of(w, w->p.root, own + k);
	}
	return 0;
}

/* MPI's own collective of the same kind. */
static int run_mpi(struct mpi_worker *w)
{
	int n = (int)w->total, shard = n / w->ranks, root = w->p.root;
	MPI_Datatype t = w->type;
	MPI_Comm c = w->comm;

	switch (w->p.kind) {
	case COLL_ALLGATHER:
		return PMPI_Allgather(w->in, shard, t, w->expected, shard, t, c);
	case COLL_REDUCE_SCATTER:
		return PMPI_Reduce_scatter_block(w->in, w->expected, shard, t, w->op, c);
	case COLL_ALLREDUCE:
		return PMPI_Allreduce(w->in, w->expected, n, t, w->op, c);
	case COLL_ALLTOALL:
		return PMPI_Alltoall(w->in, shard, t, w->expected, shard, t, c);
	case COLL_BROADCAST:
		return PMPI_Bcast(w->expected, n, t, root, c);
	case COLL_REDUCE:
		return PMPI_Reduce(w->in, w->expected, n, t, w->op, root, c);
	case COLL_GATHER:
		return PMPI_Gather(w->in, shard, t, w->expected, shard, t, root, c);
	case COLL_SCATTER:
		return PMPI_Scatter(w->in, shard, t, w->expected, shard, t, root, c);
	}
	return MPI_ERR_ARG;
}

/* ---- measuring ---- */

/* Seconds that the slowest rank took since `begin`. */
static double slowest(struct mpi_worker *w, double begin)
{
	double took = PMPI_Wtime() - begin;

	must(w, PMPI_Allreduce(MPI_IN_PLACE, &took, 1, MPI_DOUBLE, MPI_MAX, w->comm), "times");
	return took;
}

/* What is to come out, made by this rank alone. O(elements x ranks). */
static void make_expected(struct mpi_worker *w)
{
	bool at_root = w->p.kind == COLL_REDUCE || w->p.kind == COLL_GATHER;

	clear(w, w->expected);
	for (int64_t k = 0; k < w->n_out && (!at_root || w->rank == w->p.root); k++) {
		uint32_t value = expected_at(w, k);

		memcpy(w->expected + k * w->width, &value, (size_t)w->width);
	}
}

/* All begin together. What a barrier leaves on its way through hosts between would wait behind
 * the data of those that have begun. */
static double begin_all(struct mpi_worker *w)
{
	const struct timespec pause = { .tv_nsec = w->options.pause_ns };

	must(w, PMPI_Barrier(w->comm), "barrier");
	if (pause.tv_nsec > 0) {
		nanosleep(&pause, NULL);
	}
	return PMPI_Wtime();
}

/* One run of the schedule, its result compared; seconds of the slowest rank. */
static double run_schedule(struct mpi_worker *w, double *step_s)
{
	MPI_Op op = coll_is_sum(w->p.kind) ? w->op : MPI_OP_NULL;
	int64_t wrong;
	double begin, took;

	clear(w, w->out);
	w->measure.step_s = step_s;
	begin = begin_all(w);
	must(w, mpi_executor_run(w->x, w->in, w->out, w->total, w->type, op), "the schedule");
	took = slowest(w, begin);
	wrong = count_wrong(w);
	must(w, PMPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT64_T, MPI_SUM, w->comm), "results");
	w->wrong = wrong > w->wrong ? wrong : w->wrong;
	return took;
}

static double run_own(struct mpi_worker *w)
{
	double begin;

	clear(w, w->expected);
	begin = begin_all(w);
	must(w, run_mpi(w), "MPI's own collective");
	return slowest(w, begin);
}

static void run_all(struct mpi_worker *w)
{
	fill(w, w->in, w->n_in);
	w->measure.barriers = w->options.barriers;
	mpi_executor_measure(w->x, &w->measure);
	if (w->options.own) {
		run_own(w);
	} else {
		make_expected(w);
	}
	run_schedule(w, w->step_s);
	for (int64_t i = 0; i < w->options.repeat; i++) {
		if (w->options.own) {
			w->mpi_time_s[i] = run_own(w);
		}
		w->time_s[i] = run_schedule(w, w->step_s + i * w->p.steps);
	}
}

/* ---- the result ---- */

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The middle one, of an even number the lower. Sorts them. */
static double median(double *v, int64_t n)
{
	qsort(v, (size_t)n, sizeof(*v), by_size);
	return v[(n - 1) / 2];
}

static void out_seconds(struct out *o, const char *key, double s)
{
	out_int(o, key, (int64_t)(s * NS + 0.5));
}

/* A step: each rank's median over the repeats; of these the median and the largest. Writes
 * where o is not NULL. */
static void out_step(struct mpi_worker *w, int step, double *repeats, double *ranks, struct out *o)
{
	double own, most = -1;
	int worst = 0;

	for (int64_t i = 0; i < w->options.repeat; i++) {
		repeats[i] = w->step_s[i * w->p.steps + step];
	}
	own = median(repeats, w->options.repeat);
	must(w, PMPI_Gather(&own, 1, MPI_DOUBLE, ranks, 1, MPI_DOUBLE, 0, w->comm), "times");
	if (!o) {
		return;
	}
	for (int r = 0; r < w->ranks; r++) {
		if (ranks[r] > most) {
			most = ranks[r];
			worst = r;
		}
	}
	out_object(o, NULL);
	out_seconds(o, "median_ns", median(ranks, w->ranks));
	out_seconds(o, "worst_ns", most);
	out_int(o, "worst_rank", worst);
	out_end(o);
}

/* Messages and bytes of all ranks, and the bytes of the rank that sent most. */
static void out_counts(struct mpi_worker *w, struct out *o)
{
	int64_t sum[2] = { w->measure.messages, w->measure.elements * w->width };
	int64_t most = sum[1];

	must(w, PMPI_Allreduce(MPI_IN_PLACE, sum, 2, MPI_INT64_T, MPI_SUM, w->comm), "counts");
	must(w, PMPI_Allreduce(MPI_IN_PLACE, &most, 1, MPI_INT64_T, MPI_MAX, w->comm), "counts");
	if (!o) {
		return;
	}
	out_int(o, "messages", sum[0]);
	out_int(o, "bytes", sum[1]);
	out_int(o, "rank_bytes", most);
	if (w->planned_bytes >= 0) {
		out_int(o, "planned_bytes", w->planned_bytes);
	}
}

/* All ranks take part; the first has o. */
static void out_result(struct mpi_worker *w, double *repeats, double *ranks, struct out *o)
{
	int64_t n = w->options.repeat;

	if (o) {
		out_int(o, "ranks", w->ranks);
		out_int(o, "size_bytes", w->total * w->width);
		out_int(o, "element_bytes", w->width);
		out_int(o, "repeats", n);
		out_bool(o, "barriers", w->options.barriers);
		out_int(o, "wrong_elements", w->wrong);
		out_seconds(o, "time_ns", median(w->time_s, n));
		out_seconds(o, "min_time_ns", w->time_s[0]);
		if (w->options.own) {
			out_seconds(o, "mpi_time_ns", median(w->mpi_time_s, n));
		}
	}
	out_counts(w, o);
	if (o) {
		out_array(o, "steps");
	}
	for (int step = 0; step < w->p.steps; step++) {
		out_step(w, step, repeats, ranks, o);
	}
	if (o) {
		out_end(o);
	}
}

static void report(struct mpi_worker *w)
{
	double *repeats = x_new((size_t)w->options.repeat, sizeof(double));
	double *ranks = x_new((size_t)w->ranks, sizeof(double));

	w->result = w->rank == 0 ? out_new(OUT_JSON_LINE) : NULL;
	out_result(w, repeats, ranks, w->result);
	free(repeats);
	free(ranks);
}

static int work(struct mpi_worker *w, struct err *err)
{
	int rc = get_program(w, err);

	if (rc) {
		return rc;
	}
	rc = make_buffers(w, err);
	if (!rc) {
		rc = mpi_executor_new(&w->p, w->comm, &w->x, err);
	}
	rc = agree(w, rc, err);
	if (rc) {
		return rc;
	}
	run_all(w);
	report(w);
	return 0;
}

/* The result, when no rank has anything to do any more but to leave MPI: who reads it knows that
 * what happens to one afterwards, happened there. 1 when it cannot be written. */
static int end(struct mpi_worker *w)
{
	PMPI_Barrier(w->comm);
	if (w->result && print(w->result)) {
		fprintf(stderr, "weft-mpi-run: the result could not be written\n");
		return 1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct mpi_worker w = { 0 };
	struct err err = { 0 };
	int rc;

	if (argc == 2 && strcmp(argv[1], "--version") == 0) {
		version_print("weft-mpi-run");
		return 0;
	}
	PMPI_Init(&argc, &argv);
	PMPI_Comm_rank(MPI_COMM_WORLD, &w.rank);
	PMPI_Comm_size(MPI_COMM_WORLD, &w.ranks);
	PMPI_Comm_dup(MPI_COMM_WORLD, &w.comm);
	rc = read_options(argc, argv, &w.options, &err);
	if (!rc) {
		rc = work(&w, &err);
	}
	if (rc && w.rank == 0) {
		print_error(&err);
	}
	mpi_executor_free(w.x);
	rank_program_fini(&w.p);
	free(w.in);
	free(w.out);
	free(w.expected);
	free(w.time_s);
	free(w.mpi_time_s);
	free(w.step_s);
	rc = end(&w);
	PMPI_Comm_free(&w.comm);
	PMPI_Finalize();
	return rc;
}
