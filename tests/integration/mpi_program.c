/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program of MPI that knows nothing of weft: it calls the five collectives on many
 * communicators, in many datatypes and sizes, and compares every element with what it works out
 * by itself. mpi_library.sh runs it with libweft_mpi.so and without.
 *
 *	mpi_program check MAX N   collectives of up to MAX bytes a rank, and on N more communicators
 *	mpi_program errors        what wrong calls return
 *	mpi_program threads       two communicators at a time, in two threads
 *	mpi_program spawn         with ranks of another MPI_COMM_WORLD
 *	mpi_program one KIND      one call of 4 KiB: allreduce, ..
 *	mpi_program floats        sums that depend on their order: prints their bits
 *
 * Rank 0 prints "wrong N", and for each collective "calls NAME N fit N": the calls of all ranks,
 * and how many of them a schedule for all ranks of MPI_COMM_WORLD, any size and root 0 fits.
 */
#include <mpi.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALLREDUCE, ALLGATHER, REDUCE_SCATTER, ALLTOALL, BROADCAST, KINDS };
static const char *const names[KINDS] = { "allreduce", "allgather", "reduce-scatter", "all-to-all",
					  "broadcast" };

static int world_size, world_rank;
static uint64_t wrong;
static uint64_t calls[KINDS], fit[KINDS];

static uint32_t value(int from, int to, size_t i)
{
	uint64_t z = ((uint64_t)(from + 1) << 48) ^ ((uint64_t)(to + 1) << 32) ^ i;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return (uint32_t)(z ^ (z >> 31));
}

static void count_call(int kind, MPI_Comm comm, bool fits)
{
	int size;

	MPI_Comm_size(comm, &size);
	__atomic_fetch_add(&calls[kind], 1, __ATOMIC_RELAXED);
	if (fits && size == world_size && size > 1) {
		__atomic_fetch_add(&fit[kind], 1, __ATOMIC_RELAXED);
	}
}

static void expect(bool right)
{
	if (!right) {
		__atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
	}
}

/* ---- datatypes of 32-bit words ---- */

#define GAP 0xa5
#define TYPES 5

/* Elements of some words at these bytes, in MPI's order, each `extent` bytes from the next. */
struct shape {
	int words, at[2], extent;
	MPI_Datatype type;
};

static struct shape shapes[TYPES] = {
	{ 1, { 0 }, 4, MPI_DATATYPE_NULL },
	{ 2, { 0, 8 }, 16, MPI_DATATYPE_NULL },		/* gaps */
	{ 2, { 4, 0 }, 8, MPI_DATATYPE_NULL },		/* no gaps, but the other order */
	{ 2, { 4, 12 }, 16, MPI_DATATYPE_NULL },	/* a gap in front */
	{ 2, { 0, 4 }, 8, MPI_DATATYPE_NULL },		/* contiguous */
};

static void make_types(void)
{
	for (int t = 0; t < TYPES; t++) {
		int lengths[2] = { 1, 1 };
		MPI_Aint at[2] = { shapes[t].at[0], shapes[t].at[1] };
		MPI_Datatype plain;

		if (shapes[t].words == 1) {
			shapes[t].type = MPI_UINT32_T;
			continue;
		}
		MPI_Type_create_hindexed(2, lengths, at, MPI_UINT32_T, &plain);
		MPI_Type_create_resized(plain, 0, shapes[t].extent, &shapes[t].type);
		MPI_Type_commit(&shapes[t].type);
		MPI_Type_free(&plain);
	}
}

static void free_types(void)
{
	for (int t = 1; t < TYPES; t++) {
		MPI_Type_free(&shapes[t].type);
	}
}

static uint32_t *word(const struct shape *s, void *buf, size_t i)
{
	return (uint32_t *)((char *)buf + i / s->words * s->extent + s->at[i % s->words]);
}

static size_t bytes_of(const struct shape *s, size_t words)
{
	return words / s->words * s->extent;
}

static void *new_buffer(const struct shape *s, size_t words)
{
	char *p = malloc(bytes_of(s, words) + 64);

	memset(p, GAP, bytes_of(s, words) + 64);
	return p;
}

/* No byte was written beside the words, and frees it. */
static void end_buffer(const struct shape *s, char *p, size_t words)
{
	for (size_t i = 0; i < words; i++) {
		memset(word(s, p, i), GAP, 4);
	}
	for (size_t i = 0; i < bytes_of(s, words) + 64; i++) {
		expect((unsigned char)p[i] == GAP);
	}
	free(p);
}

/* ---- copies ---- */

/* A case: words of a shard, the types of this rank, whether in place. */
struct copying {
	MPI_Comm comm;
	int rank, size;
	size_t words;
	const struct shape *in, *out;
	bool in_place;
};

static void allgather(const struct copying *c)
{
	size_t all = c->words * c->size;
	char *in = new_buffer(c->in, c->words), *out = new_buffer(c->out, all);

	for (size_t i = 0; i < c->words; i++) {
		*word(c->in, in, i) = value(c->rank, 0, i);
		if (c->in_place) {
			*word(c->out, out, c->words * c->rank + i) = value(c->rank, 0, i);
		}
	}
	count_call(ALLGATHER, c->comm, c->words > 0);
	MPI_Allgather(c->in_place ? MPI_IN_PLACE : in, (int)(c->words / c->in->words), c->in->type,
		      out, (int)(c->words / c->out->words), c->out->type, c->comm);
	for (size_t i = 0; i < all; i++) {
		expect(*word(c->out, out, i) == value((int)(i / c->words), 0, i % c->words));
	}
	end_buffer(c->in, in, c->words);
	end_buffer(c->out, out, all);
}

static void alltoall(const struct copying *c)
{
	size_t all = c->words * c->size;
	const struct shape *from = c->in_place ? c->out : c->in;
	char *in = new_buffer(c->in, all), *out = new_buffer(c->out, all);

	for (size_t i = 0; i < all; i++) {
		*word(from, c->in_place ? out : in, i) =
			value(c->rank, (int)(i / c->words), i % c->words);
	}
	count_call(ALLTOALL, c->comm, c->words > 0);
	MPI_Alltoall(c->in_place ? MPI_IN_PLACE : in, (int)(c->words / c->in->words), c->in->type,
		     out, (int)(c->words / c->out->words), c->out->type, c->comm);
	for (size_t i = 0; i < all; i++) {
		expect(*word(c->out, out, i) ==
		       value((int)(i / c->words), c->rank, i % c->words));
	}
	end_buffer(c->in, in, all);
	end_buffer(c->out, out, all);
}

static void broadcast(const struct copying *c, int root)
{
	char *p = new_buffer(c->out, c->words);

	for (size_t i = 0; i < c->words && c->rank == root; i++) {
		*word(c->out, p, i) = value(root, 0, i);
	}
	count_call(BROADCAST, c->comm, c->words > 0 && root == 0);
	MPI_Bcast(p, (int)(c->words / c->out->words), c->out->type, root, c->comm);
	for (size_t i = 0; i < c->words; i++) {
		expect(*word(c->out, p, i) == value(root, 0, i));
	}
	end_buffer(c->out, p, c->words);
}

/* The root has one element of many words, the others many elements. */
static void broadcast_alike(MPI_Comm comm)
{
	uint32_t p[100] = { 0 };
	MPI_Datatype all;
	int rank;

	MPI_Comm_rank(comm, &rank);
	MPI_Type_contiguous(100, MPI_UINT32_T, &all);
	MPI_Type_commit(&all);
	for (int i = 0; i < 100 && rank == 0; i++) {
		p[i] = value(0, 0, i);
	}
	count_call(BROADCAST, comm, true);
	if (rank == 0) {
		MPI_Bcast(p, 1, all, 0, comm);
	} else {
		MPI_Bcast(p, 100, MPI_UINT32_T, 0, comm);
	}
	for (int i = 0; i < 100; i++) {
		expect(p[i] == value(0, 0, i));
	}
	MPI_Type_free(&all);
}

/* Types of absolute addresses, from MPI_BOTTOM on. */
static void broadcast_bottom(MPI_Comm comm)
{
	uint32_t a[3], b[5];
	int lengths[2] = { 3, 5 }, rank;
	MPI_Datatype type;
	MPI_Aint at[2];

	MPI_Comm_rank(comm, &rank);
	for (int i = 0; i < 5; i++) {
		a[i % 3] = rank ? 0 : 10 + i % 3;
		b[i] = rank ? 0 : 20 + i;
	}
	MPI_Get_address(a, &at[0]);
	MPI_Get_address(b, &at[1]);
	MPI_Type_create_hindexed(2, lengths, at, MPI_UINT32_T, &type);
	MPI_Type_commit(&type);
	count_call(BROADCAST, comm, true);
	MPI_Bcast(MPI_BOTTOM, 1, type, 0, comm);
	for (uint32_t i = 0; i < 5; i++) {
		expect(a[i % 3] == 10 + i % 3 && b[i] == 20 + i);
	}
	MPI_Type_free(&type);
}

static void copies(MPI_Comm comm)
{
	static const size_t sizes[] = { 0, 2, 14, 2002 };
	struct copying c = { .comm = comm };

	MPI_Comm_rank(comm, &c.rank);
	MPI_Comm_size(comm, &c.size);
	for (int variant = 0; variant < 4 * TYPES; variant++) {
		c.words = sizes[variant % 4];
		c.in = &shapes[(variant + c.rank) % TYPES];
		c.out = &shapes[(variant / 2 + 3 * c.rank) % TYPES];
		for (int place = 0; place < 2; place++) {
			c.in_place = place;
			allgather(&c);
			alltoall(&c);
		}
		broadcast(&c, 0);
		broadcast(&c, variant % c.size);
	}
	broadcast_alike(comm);
	broadcast_bottom(comm);
}

/* ---- sums ---- */

static uint32_t sum_of(int size, size_t i)
{
	uint32_t sum = 0;

	for (int r = 0; r < size; r++) {
		sum += value(r, 0, i);
	}
	return sum;
}

static void allreduce_words(MPI_Comm comm, size_t n, bool in_place)
{
	uint32_t *in = malloc(n * 4 + 4), *out = malloc(n * 4 + 4);
	int rank, size;

	MPI_Comm_rank(comm, &rank);
	MPI_Comm_size(comm, &size);
	for (size_t i = 0; i < n; i++) {
		in[i] = value(rank, 0, i);
	}
	memcpy(out, in, n * 4);
	out[n] = 4711;
	count_call(ALLREDUCE, comm, n > 0);
	MPI_Allreduce(in_place ? MPI_IN_PLACE : in, out, (int)n, MPI_UINT32_T, MPI_SUM, comm);
	for (size_t i = 0; i < n; i++) {
		expect(out[i] == sum_of(size, i) && in[i] == value(rank, 0, i));
	}
	expect(out[n] == 4711);
	free(in);
	free(out);
}

static void reduce_scatter_words(MPI_Comm comm, size_t n, bool in_place)
{
	int rank, size;
	uint32_t *in, *out;

	MPI_Comm_rank(comm, &rank);
	MPI_Comm_size(comm, &size);
	in = malloc(n * size * 4 + 4);
	out = in_place ? in : malloc(n * 4 + 4);
	for (size_t i = 0; i < n * size; i++) {
		in[i] = value(rank, 0, i);
	}
	out[in_place ? n * size : n] = 4711;
	count_call(REDUCE_SCATTER, comm, n > 0);
	MPI_Reduce_scatter_block(in_place ? MPI_IN_PLACE : in, out, (int)n, MPI_UINT32_T, MPI_SUM,
				 comm);
	for (size_t i = 0; i < n; i++) {
		expect(out[i] == sum_of(size, n * rank + i));
	}
	expect(out[in_place ? n * size : n] == 4711);
	free(in);
	if (!in_place) {
		free(out);
	}
}

/* MPI's own types and operations; numbers that doubles hold. */
static void allreduce_kinds(MPI_Comm comm)
{
	struct { int value, at; } low, least;
	double in[7], sum[7];
	uint8_t bits, all;
	int rank, size;

	MPI_Comm_rank(comm, &rank);
	MPI_Comm_size(comm, &size);
	for (int i = 0; i < 7; i++) {
		in[i] = rank + i;
	}
	low.value = 100 - rank;
	low.at = rank;
	bits = (uint8_t)(1 << rank % 8);
	for (int k = 0; k < 3; k++) {
		count_call(ALLREDUCE, comm, true);
	}
	MPI_Allreduce(in, sum, 7, MPI_DOUBLE, MPI_SUM, comm);
	MPI_Allreduce(&low, &least, 1, MPI_2INT, MPI_MINLOC, comm);
	MPI_Allreduce(&bits, &all, 1, MPI_BYTE, MPI_BOR, comm);
	for (int i = 0; i < 7; i++) {
		expect(sum[i] == size * i + size * (size - 1) / 2.0);
	}
	expect(least.value == 101 - size && least.at == size - 1);
	expect(all == (size < 8 ? (1 << size) - 1 : 255));
}

/* The operation of the program's own, on elements of the shape at hand. */
static const struct shape *shape_at_hand;

static void add_and_xor(void *in, void *inout, int *n, MPI_Datatype *type)
{
	(void)type;
	for (int i = 0; i < *n * 2; i++) {
		uint32_t x = *word(shape_at_hand, in, i), *y = word(shape_at_hand, inout, i);

		*y = i % 2 ? *y ^ x : *y + x;
	}
}

/* x -> a x + b, one after the other: the order matters. */
static void compose(void *in, void *inout, int *n, MPI_Datatype *type)
{
	(void)type;
	for (int i = 0; i < *n; i++) {
		const uint32_t *a = word(shape_at_hand, in, 2 * i);
		const uint32_t *b = word(shape_at_hand, in, 2 * i + 1);
		uint32_t *c = word(shape_at_hand, inout, 2 * i);
		uint32_t *d = word(shape_at_hand, inout, 2 * i + 1);

		*d += *c * *b;
		*c *= *a;
	}
}

static void expect_own(const struct shape *s, void *out, size_t n, size_t from, int size,
		       bool commutes)
{
	for (size_t i = 0; i < n; i++) {
		size_t at = 2 * (from + i);
		uint32_t a = value(0, 0, at), b = value(0, 0, at + 1);

		for (int r = 1; r < size; r++) {
			uint32_t c = value(r, 0, at), d = value(r, 0, at + 1);

			b = commutes ? b ^ d : d + c * b;
			a = commutes ? a + c : a * c;
		}
		expect(*word(s, out, 2 * i) == a && *word(s, out, 2 * i + 1) == b);
	}
}

static void own_operation(MPI_Comm comm, MPI_Op op, bool commutes, size_t n, const struct shape *s)
{
	int rank, size;
	char *in, *out;

	shape_at_hand = s;
	MPI_Comm_rank(comm, &rank);
	MPI_Comm_size(comm, &size);
	in = new_buffer(s, 2 * n * size);
	out = new_buffer(s, 2 * n * size);
	for (size_t i = 0; i < 2 * n * size; i++) {
		*word(s, in, i) = value(rank, 0, i);
	}
	count_call(ALLREDUCE, comm, n > 0 && commutes);
	MPI_Allreduce(in, out, (int)n, s->type, op, comm);
	expect_own(s, out, n, 0, size, commutes);
	count_call(REDUCE_SCATTER, comm, n > 0 && commutes);
	MPI_Reduce_scatter_block(in, out, (int)n, s->type, op, comm);
	expect_own(s, out, n, n * rank, size, commutes);
	end_buffer(s, in, 2 * n * size);
	end_buffer(s, out, 2 * n * size);
}

static void own_operations(MPI_Comm comm)
{
	static const size_t counts[] = { 0, 1, 7, 501 };
	MPI_Op commuting, ordered;

	MPI_Op_create(add_and_xor, 1, &commuting);
	MPI_Op_create(compose, 0, &ordered);
	for (int t = 1; t < TYPES; t++) {
		for (int k = 0; k < 4; k++) {
			own_operation(comm, commuting, true, counts[k], &shapes[t]);
			own_operation(comm, ordered, false, counts[k], &shapes[t]);
		}
	}
	MPI_Op_free(&commuting);
	MPI_Op_free(&ordered);
}

static void sums(MPI_Comm comm)
{
	static const size_t counts[] = { 0, 1, 7, 1000 };

	for (int k = 0; k < 8; k++) {
		allreduce_words(comm, counts[k / 2], k % 2);
		reduce_scatter_words(comm, counts[k / 2], k % 2);
	}
	allreduce_kinds(comm);
	own_operations(comm);
}

/* From 4 bytes to MAX of the vector, each power of 16 and the last. */
static void sizes(MPI_Comm comm, size_t max)
{
	struct copying c = { .comm = comm, .in = &shapes[0], .out = &shapes[0] };

	MPI_Comm_rank(comm, &c.rank);
	MPI_Comm_size(comm, &c.size);
	for (size_t n = 1; n <= max / 4; n = n == max / 4 || n * 16 <= max / 4 ? n * 16 : max / 4) {
		allreduce_words(comm, n, false);
		c.words = n;
		broadcast(&c, 0);
		c.words = n / c.size;
		reduce_scatter_words(comm, c.words, false);
		allgather(&c);
		alltoall(&c);
	}
}

/* ---- communicators ---- */

static int copied;

static int count_copy(MPI_Comm comm, int keyval, void *extra, void *in, void *out, int *flag)
{
	(void)comm;
	(void)keyval;
	(void)extra;
	(void)in;
	(void)out;
	copied++;
	*flag = 0;
	return MPI_SUCCESS;
}

static void both(MPI_Comm comm)
{
	sums(comm);
	copies(comm);
}

static void communicators(long more)
{
	MPI_Comm comm;
	int keyval;

	MPI_Comm_create_keyval(count_copy, MPI_COMM_NULL_DELETE_FN, &keyval, NULL);
	MPI_Comm_set_attr(MPI_COMM_WORLD, keyval, NULL);
	both(MPI_COMM_WORLD);
	expect(copied == 0);
	MPI_Comm_delete_attr(MPI_COMM_WORLD, keyval);
	MPI_Comm_free_keyval(&keyval);
	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	both(comm);
	MPI_Comm_free(&comm);
	/* The same ranks in the other order, then halves of them, each alone, and some. */
	MPI_Comm_split(MPI_COMM_WORLD, 0, -world_rank, &comm);
	both(comm);
	MPI_Comm_free(&comm);
	MPI_Comm_split(MPI_COMM_WORLD, world_rank % 2, 0, &comm);
	both(comm);
	MPI_Comm_free(&comm);
	both(MPI_COMM_SELF);
	for (long i = 0; i < more; i++) {
		MPI_Comm_dup(MPI_COMM_WORLD, &comm);
		allreduce_words(comm, 10, false);
		MPI_Comm_free(&comm);
	}
}

/* A mesh of 2 x 2 x ..., and in the groups along each axis sums of so many words. */
static void mesh(void)
{
	for (int stride = 1; stride < world_size; stride *= 2) {
		MPI_Comm group;

		MPI_Comm_split(MPI_COMM_WORLD, world_rank - world_rank / stride % 2 * stride,
			       world_rank, &group);
		for (int i = 0; i < 5; i++) {
			allreduce_words(group, 100 * stride, true);
		}
		MPI_Comm_free(&group);
	}
}

/* Between two groups every rank gets the sum of the other group. */
static void intercommunicator(void)
{
	int color = world_rank % 2, one = 1 + color, sum = 0, others;
	MPI_Comm half, inter;

	if (world_size < 2) {
		return;
	}
	MPI_Comm_split(MPI_COMM_WORLD, color, 0, &half);
	MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - color, 1, &inter);
	MPI_Comm_remote_size(inter, &others);
	__atomic_fetch_add(&calls[ALLREDUCE], 1, __ATOMIC_RELAXED);
	MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, inter);
	expect(sum == others * (2 - color));
	MPI_Comm_free(&inter);
	MPI_Comm_free(&half);
}

/* ---- errors ---- */

static int handled;

static void handle(MPI_Comm *comm, int *code, ...)
{
	(void)comm;
	(void)code;
	handled++;
}

static void print_class(const char *what, int code)
{
	int class;

	MPI_Error_class(code, &class);
	if (world_rank == 0) {
		printf("%s: class %d, handler called %d\n", what, class, handled);
	}
	handled = 0;
}

/* All ranks do the same wrong: each finds it by itself. */
static void errors(void)
{
	uint32_t in[64] = { 0 }, out[64] = { 0 };
	MPI_Errhandler handler;
	MPI_Datatype raw;
	MPI_Comm comm;

	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	MPI_Comm_create_errhandler(handle, &handler);
	MPI_Comm_set_errhandler(comm, handler);
	MPI_Type_contiguous(2, MPI_UINT32_T, &raw);
	print_class("no operation", MPI_Allreduce(in, out, 4, MPI_UINT32_T, MPI_OP_NULL, comm));
	print_class("no type", MPI_Allreduce(in, out, 4, MPI_DATATYPE_NULL, MPI_SUM, comm));
	print_class("negative count", MPI_Allreduce(in, out, -1, MPI_UINT32_T, MPI_SUM, comm));
	print_class("bits of floats", MPI_Allreduce(in, out, 4, MPI_FLOAT, MPI_BOR, comm));
	print_class("sum of an own type", MPI_Allreduce(in, out, 2, raw, MPI_SUM, comm));
	print_class("type not committed", MPI_Bcast(in, 2, raw, 0, comm));
	print_class("no such root", MPI_Bcast(in, 4, MPI_UINT32_T, world_size, comm));
	print_class("in place at a root", MPI_Bcast(MPI_IN_PLACE, 4, MPI_UINT32_T, 0, comm));
	print_class("negative count sent", MPI_Allgather(in, -1, MPI_INT, out, 1, MPI_INT, comm));
	print_class("sizes differ", MPI_Alltoall(in, 2, MPI_INT, out, 1, MPI_INT, comm));
	print_class("scattered in place",
		    MPI_Reduce_scatter_block(in, MPI_IN_PLACE, 1, MPI_INT, MPI_SUM, comm));
	print_class("no error", MPI_Allreduce(in, out, 4, MPI_UINT32_T, MPI_SUM, comm));
	MPI_Type_free(&raw);
	MPI_Errhandler_free(&handler);
	MPI_Comm_free(&comm);
}

/* ---- threads, other worlds ---- */

static void *thread_main(void *arg)
{
	MPI_Comm comm = *(MPI_Comm *)arg;

	for (int i = 0; i < 100; i++) {
		allreduce_words(comm, 1 + i * 37 % 1000, i % 2);
		reduce_scatter_words(comm, 1 + i % 50, i % 2);
	}
	return NULL;
}

static void threads(void)
{
	MPI_Comm comm[2];
	pthread_t other;

	for (int i = 0; i < 2; i++) {
		MPI_Comm_dup(MPI_COMM_WORLD, &comm[i]);
	}
	pthread_create(&other, NULL, thread_main, &comm[1]);
	thread_main(&comm[0]);
	pthread_join(other, NULL);
	for (int i = 0; i < 2; i++) {
		MPI_Comm_free(&comm[i]);
	}
}

/* The ranks begin as many more; then each has a communicator with one of those. */
static void spawn(char **argv)
{
	MPI_Comm parent, inter, all, pair;
	char *arguments[] = { "spawn", NULL };

	MPI_Comm_get_parent(&parent);
	inter = parent;
	if (parent == MPI_COMM_NULL) {
		MPI_Comm_spawn(argv[0], arguments, world_size, MPI_INFO_NULL, 0, MPI_COMM_WORLD,
			       &inter, MPI_ERRCODES_IGNORE);
	}
	MPI_Intercomm_merge(inter, parent != MPI_COMM_NULL, &all);
	MPI_Comm_split(all, world_rank, 0, &pair);
	allreduce_words(all, 1000, false);
	allreduce_words(pair, 1000, false);
	allreduce_words(MPI_COMM_WORLD, 1000, false);
	MPI_Comm_free(&pair);
	MPI_Comm_free(&all);
	MPI_Comm_disconnect(&inter);
}

/* ---- ---- */

static void one(const char *kind)
{
	struct copying c = { .comm = MPI_COMM_WORLD, .rank = world_rank, .size = world_size,
			     .words = 1024 / world_size, .in = &shapes[0], .out = &shapes[0] };

	if (strcmp(kind, "allreduce") == 0) {
		allreduce_words(MPI_COMM_WORLD, 1024, false);
	} else if (strcmp(kind, "allgather") == 0) {
		allgather(&c);
	} else if (strcmp(kind, "reduce-scatter") == 0) {
		reduce_scatter_words(MPI_COMM_WORLD, c.words, false);
	} else if (strcmp(kind, "all-to-all") == 0) {
		alltoall(&c);
	} else {
		c.words = 1024;
		broadcast(&c, 0);
	}
}

static void floats(void)
{
	uint64_t hash = 0;
	float in[1000], out[1000];

	for (int k = 0; k < 20; k++) {
		for (int i = 0; i < 1000; i++) {
			in[i] = (float)value(world_rank, k, i) /
				(1 + value(i, k, world_rank) % 1000);
		}
		count_call(ALLREDUCE, MPI_COMM_WORLD, true);
		MPI_Allreduce(in, out, 1000, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
		for (int i = 0; i < 1000; i++) {
			uint32_t bits;

			memcpy(&bits, &out[i], 4);
			hash = hash * 31 + bits;
		}
	}
	for (int r = 0; r < world_size; r++) {
		uint64_t theirs = hash;

		PMPI_Bcast(&theirs, 1, MPI_UINT64_T, r, MPI_COMM_WORLD);
		if (world_rank == 0) {
			printf("rank %d: %016llx\n", r, (unsigned long long)theirs);
		}
	}
}

static void print_results(void)
{
	uint64_t all[1 + 2 * KINDS], mine[1 + 2 * KINDS];

	mine[0] = wrong;
	memcpy(mine + 1, calls, sizeof(calls));
	memcpy(mine + 1 + KINDS, fit, sizeof(fit));
	MPI_Reduce(mine, all, 1 + 2 * KINDS, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
	if (world_rank == 0) {
		printf("wrong %llu\n", (unsigned long long)all[0]);
		for (int k = 0; k < KINDS; k++) {
			printf("calls %s %llu fit %llu\n", names[k], (unsigned long long)all[1 + k],
			       (unsigned long long)all[1 + KINDS + k]);
		}
	}
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	int provided;

	if (strcmp(mode, "threads") == 0) {
		MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
	} else {
		MPI_Init(&argc, &argv);
	}
	MPI_Comm_size(MPI_COMM_WORLD, &world_size);
	MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
	make_types();
	if (strcmp(mode, "check") == 0 && argc > 3) {
		communicators(atol(argv[3]));
		intercommunicator();
		sizes(MPI_COMM_WORLD, strtoul(argv[2], NULL, 10));
	} else if (strcmp(mode, "mesh") == 0) {
		mesh();
	} else if (strcmp(mode, "errors") == 0) {
		errors();
	} else if (strcmp(mode, "threads") == 0) {
		threads();
	} else if (strcmp(mode, "spawn") == 0) {
		spawn(argv);
	} else if (strcmp(mode, "one") == 0 && argc > 2) {
		one(argv[2]);
	} else if (strcmp(mode, "floats") == 0) {
		floats();
	} else if (world_rank == 0) {
		fprintf(stderr,
			"usage: mpi_program check MAX N|mesh|errors|threads|spawn|floats|"
			"one KIND\n");
	}
	free_types();
	print_results();
	MPI_Finalize();
	return 0;
}
