/* SPDX-License-Identifier: Apache-2.0 */
/* Times the five collectives as the usual benchmarks of MPI do: many calls in a row, in several
 * batches of which the fastest counts. Rank 0 prints "KIND BYTES NS" for each size of the
 * vector; bench_mpi.sh runs it with libweft_mpi.so and without. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define BATCHES 7

static int rank, ranks;
static int *in, *out;

static void call(int kind, int n)
{
	switch (kind) {
	case 0:
		MPI_Allreduce(in, out, n, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
		break;
	case 1:
		MPI_Allgather(in, n / ranks, MPI_INT, out, n / ranks, MPI_INT, MPI_COMM_WORLD);
		break;
	case 2:
		MPI_Reduce_scatter_block(in, out, n / ranks, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
		break;
	case 3:
		MPI_Alltoall(in, n / ranks, MPI_INT, out, n / ranks, MPI_INT, MPI_COMM_WORLD);
		break;
	default:
		MPI_Bcast(out, n, MPI_INT, 0, MPI_COMM_WORLD);
	}
}

/* ns of one call. */
static double batch(int kind, int n, int calls)
{
	double begin;

	MPI_Barrier(MPI_COMM_WORLD);
	begin = MPI_Wtime();
	for (int i = 0; i < calls; i++) {
		call(kind, n);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	return (MPI_Wtime() - begin) * 1e9 / calls;
}

static double fastest(int kind, int n)
{
	int calls = n <= 4096 ? 1000 : n <= 65536 ? 100 : 10;
	double best = batch(kind, n, calls);

	for (int i = 1; i < BATCHES; i++) {
		double ns = batch(kind, n, calls);

		best = ns < best ? ns : best;
	}
	return best;
}

int main(int argc, char **argv)
{
	static const char *const kinds[] = { "allreduce", "allgather", "reduce-scatter",
					     "all-to-all", "broadcast" };
	const int max = 1 << 20;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	in = calloc((size_t)max, sizeof(*in));
	out = calloc((size_t)max, sizeof(*out));
	for (int kind = 0; kind < 5; kind++) {
		int least = kind == 0 || kind == 4 ? 1 : ranks;

		for (int n = least; n <= max; n = n < 16 ? 16 : n * 16) {
			double ns = fastest(kind, n);

			if (rank == 0) {
				printf("%s %zu %.0f\n", kinds[kind], n * sizeof(*in), ns);
			}
		}
	}
	free(in);
	free(out);
	MPI_Finalize();
	return 0;
}
