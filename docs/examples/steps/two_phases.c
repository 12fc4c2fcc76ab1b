/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A training step of two phases whose light is changed between them by the job itself: ranks in
 * rows exchange tokens (all-to-all), then columns sum gradients (all-reduce).
 *
 *	mpicc two_phases.c -o two_phases $(pkg-config --cflags --libs pmix)
 *	two_phases ROWS COLUMNS EXCHANGE_BYTES SUM_BYTES [LIGHT]
 *
 * EXCHANGE_BYTES: what each rank has for its row; SUM_BYTES: what a column sums. LIGHT is a command
 * that makes the light of the collective "exchange" or "sum", its last argument, and has ended when
 * that light is there; without it light stays as it is.
 *
 * Ranks wait for the light in PMIx_Fence, which goes over the network that started them, not over
 * the ports that are dark meanwhile. Rank 0 prints what the phases and the changes took.
 */
#include <mpi.h>
#include <pmix.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STEPS 3

static int rank;

static void fail(const char *what)
{
	fprintf(stderr, "two_phases: rank %d: %s\n", rank, what);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

/* A barrier over the control network. */
static void fence(void)
{
	if (PMIx_Fence(NULL, 0, NULL, 0) != PMIX_SUCCESS) {
		fail("PMIx_Fence");
	}
}

/* All ranks have the light of the collective after this. Returns the seconds that it took. */
static double set_light(const char *command, const char *collective)
{
	double begin;
	char line[4096];

	fence();
	begin = MPI_Wtime();
	if (rank == 0 && command) {
		snprintf(line, sizeof(line), "%s %s >&2", command, collective);
		if (system(line) != 0) {
			fail("the light did not change");
		}
	}
	fence();
	return MPI_Wtime() - begin;
}

/* Each rank of the row sends to the one at i what says from whom and to whom it is. */
static double exchange(MPI_Comm row, int64_t *out, int64_t *in, int words)
{
	int me, n, per;
	double begin;

	MPI_Comm_rank(row, &me);
	MPI_Comm_size(row, &n);
	per = words / n;
	for (int i = 0; i < per * n; i++) {
		out[i] = (int64_t)me << 32 | i / per;
	}
	begin = MPI_Wtime();
	MPI_Alltoall(out, per, MPI_INT64_T, in, per, MPI_INT64_T, row);
	begin = MPI_Wtime() - begin;
	for (int i = 0; i < per * n; i++) {
		if (in[i] != ((int64_t)(i / per) << 32 | me)) {
			fail("the exchange is wrong");
		}
	}
	return begin;
}

static double sum(MPI_Comm column, int64_t *out, int64_t *in, int words)
{
	int me, n;
	double begin;

	MPI_Comm_rank(column, &me);
	MPI_Comm_size(column, &n);
	for (int i = 0; i < words; i++) {
		out[i] = (int64_t)i * (me + 1);
	}
	begin = MPI_Wtime();
	MPI_Allreduce(out, in, words, MPI_INT64_T, MPI_SUM, column);
	begin = MPI_Wtime() - begin;
	for (int i = 0; i < words; i++) {
		if (in[i] != (int64_t)i * n * (n + 1) / 2) {
			fail("the sum is wrong");
		}
	}
	return begin;
}

/* The slowest rank's, for rank 0. */
static double slowest(double mine)
{
	double all;

	MPI_Reduce(&mine, &all, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
	return all;
}

int main(int argc, char **argv)
{
	double phase[2] = { 0 }, change = 0;
	const char *light = argc > 5 ? argv[5] : NULL;
	int ranks, columns, words[2], most;
	int64_t *out, *in;
	MPI_Comm row, column;
	pmix_proc_t self;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (argc < 5 || atoi(argv[1]) * atoi(argv[2]) != ranks ||
	    PMIx_Init(&self, NULL, 0) != PMIX_SUCCESS) {
		fail("expected ROWS COLUMNS, as many as ranks, EXCHANGE_BYTES SUM_BYTES");
	}
	columns = atoi(argv[2]);
	words[0] = atoi(argv[3]) / 8;
	words[1] = atoi(argv[4]) / 8;
	most = words[0] > words[1] ? words[0] : words[1];
	out = calloc((size_t)most + 1, 8);
	in = calloc((size_t)most + 1, 8);
	MPI_Comm_split(MPI_COMM_WORLD, rank / columns, rank, &row);
	MPI_Comm_split(MPI_COMM_WORLD, rank % columns, rank, &column);
	for (int i = 0; i <= STEPS; i++) {
		double took[2], dark = set_light(light, "exchange");

		took[0] = exchange(row, out, in, words[0]);
		dark += set_light(light, "sum");
		took[1] = sum(column, out, in, words[1]);
		/* The first step finds communicators and opens connections. */
		for (int p = 0; p < 2 && i > 0; p++) {
			phase[p] += took[p] / STEPS;
		}
		change += i > 0 ? dark / STEPS : 0;
	}
	set_light(light, "exchange");
	phase[0] = slowest(phase[0]);
	phase[1] = slowest(phase[1]);
	if (rank == 0) {
		printf("exchange %.1f ms, sum %.1f ms, light %.1f ms, right\n", phase[0] * 1e3,
		       phase[1] * 1e3, change * 1e3);
	}
	free(out);
	free(in);
	PMIx_Finalize(NULL, 0);
	MPI_Finalize();
	return 0;
}
