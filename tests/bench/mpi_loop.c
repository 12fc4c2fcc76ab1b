/* SPDX-License-Identifier: Apache-2.0 */
/* Times the five collectives as the usual benchmarks of MPI do, in short batches of calls of which
 * the fastest counts: by turns as the program calls them, which libweft_mpi.so takes where it is
 * preloaded, and by MPI alone, so that what else the machine does meets both alike. Rank 0 prints
 * "KIND BYTES NS NS" for each size of the vector: MPI alone first. bench_mpi.sh runs it. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define BATCHES 100

/* MPI alone, or what stands before it. */
#define CALL(alone, f, ...) ((alone) ? P##f(__VA_ARGS__) : f(__VA_ARGS__))

static int rank, ranks;
static int *in, *out;

static void call(int kind, int n, int alone)
{
	int shard = n / ranks;

	switch (kind) {
	case 0:
		CALL(alone, MPI_Allreduce, in, out, n, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
		break;
	case 1:
		CALL(alone, MPI_Allgather, in, shard, MPI_INT, out, shard, MPI_INT, MPI_COMM_WORLD);
		break;
	case 2:
		CALL(alone, MPI_Reduce_scatter_block, in, out, shard, MPI_INT, MPI_SUM,
		     MPI_COMM_WORLD);
		break;
	case 3:
		CALL(alone, MPI_Alltoall, in, shard, MPI_INT, out, shard, MPI_INT, MPI_COMM_WORLD);
		break;
	default:
		CALL(alone, MPI_Bcast, out, n, MPI_INT, 0, MPI_COMM_WORLD);
	}
}

/* ns of one call. */
static double batch(int kind, int n, int calls, int alone)
{
	double begin;

	PMPI_Barrier(MPI_COMM_WORLD);
	begin = MPI_Wtime();
	for (int i = 0; i < calls; i++) {
		call(kind, n, alone);
	}
	PMPI_Barrier(MPI_COMM_WORLD);
	return (MPI_Wtime() - begin) * 1e9 / calls;
}

static void fastest(int kind, int n, double best[2])
{
	int calls = n <= 1024 ? 200 : n <= 65536 ? 10 : 1;

	best[0] = best[1] = 1e18;
	for (int i = 0; i < 2 * BATCHES; i++) {
		double ns = batch(kind, n, calls, i % 2 == 0);

		best[i % 2] = ns < best[i % 2] ? ns : best[i % 2];
	}
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
			double ns[2];

			fastest(kind, n, ns);
			if (rank == 0) {
				printf("%s %zu %.0f %.0f\n", kinds[kind], n * sizeof(*in), ns[0],
				       ns[1]);
			}
		}
	}
	free(in);
	free(out);
	MPI_Finalize();
	return 0;
}
