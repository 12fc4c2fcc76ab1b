/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ring programs as they are loaded: bytes packed against eight bytes a
 * setting, and the time to pack and to open. The programs are opened again
 * and compared, so a row is also a proof.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/vec.h"
#include "optree/optree.h"
#include "tests/ring_settings.h"
#include "topology/topology.h"

struct figures {
	size_t settings, bytes;
	uint32_t steps;
	int64_t pack_ns, open_ns;
};

static int settings_of(const struct coll_sched *s, struct ring_settings *out,
		       struct err *err)
{
	VEC(struct ring_setting) tunes = { 0 };
	const struct coll_light *lights;
	int64_t n;

	lights = coll_lights(s, &n);
	vec_reserve(&tunes, 2 * (size_t)n);
	for (int64_t i = 0; i < 2 * n; i++) {
		const struct coll_light *l = &lights[i / 2];
		const struct topo_arc *a = topo_arc(coll_topo(s), l->arc);

		tunes.v[tunes.n++] = (struct ring_setting){
			(uint16_t)l->step,
			(uint16_t)(i % 2 ? a->dst : a->src), l->channel,
			l->dir, l->fibre, i % 2 ? RESONATOR_DROP : RESONATOR_ADD };
	}
	*out = (struct ring_settings){ (uint32_t)coll_steps(s), tunes.n,
				       tunes.v };
	return ring_settings_normalise(out, err);
}

static int pack_and_open(int n, int w, const struct ring_settings *p,
			 struct figures *f, struct err *err)
{
	const struct ring_geometry g = { (uint16_t)n, (uint16_t)w, 1 };
	const struct ring_window all = whole_ring(&g);
	struct ring_settings back = { 0 };
	struct ring_program pack = { 0 };
	int64_t start = clk_now_ns();
	int rc = ring_program_pack(&pack, "bench", &all, &g, p, err);

	f->pack_ns = clk_now_ns() - start;
	start = clk_now_ns();
	if (!rc) {
		rc = ring_program_unpack(&pack, &back, err);
	}
	f->open_ns = clk_now_ns() - start;
	if (rc == 0 && !same_program(p, &back)) {
		rc = err_set(err, WEFT_EVERIFY, "another program came back");
	}
	f->settings = p->n;
	f->steps = p->steps;
	f->bytes = pack.len;
	ring_settings_fini(&back);
	ring_program_fini(&pack);
	return rc;
}

static int measure(int n, int w, enum optree_algorithm how, int64_t size,
		   struct figures *f, struct err *err)
{
	const struct optree_params params = {
		.n = n, .channels = w, .fibres = 1,
		.shard_bytes = (size + n - 1) / n,
		.channel_bps = 40000000000, .alpha_ns = 25000 };
	struct optree_plan plan = { 0 };
	struct ring_settings p = { 0 };
	int rc = optree_collective(&params, COLL_ALLGATHER, 0, how, &plan, err);

	if (!rc && !(rc = optree_plan_expand(&params, &plan, err)) &&
	    !(rc = settings_of(plan.sched, &p, err))) {
		rc = pack_and_open(n, w, &p, f, err);
	}
	ring_settings_fini(&p);
	optree_plan_fini(&plan);
	return rc;
}

static void report(int n, int w, enum optree_algorithm how, int mib,
		   const struct figures *f, FILE *json)
{
	const char *name = optree_algorithm_name(how);

	printf("%5d %3d %-9s %4d %5u %9zu %10zu %8zu %9.1f %7.1f %7.1f\n", n,
	       w, name, mib, f->steps, f->settings, 8 * f->settings, f->bytes,
	       8.0 * (double)f->settings / (double)f->bytes,
	       (double)f->pack_ns / 1e6, (double)f->open_ns / 1e6);
	if (json) {
		fprintf(json, "{\"bench\":\"ring_program\",\"nodes\":%d,"
			"\"channels\":%d,\"algorithm\":\"%s\",\"mib\":%d,"
			"\"steps\":%u,\"settings\":%zu,\"bytes\":%zu,"
			"\"pack_ns\":%lld,\"open_ns\":%lld}\n", n, w, name, mib,
			f->steps, f->settings, f->bytes,
			(long long)f->pack_ns, (long long)f->open_ns);
	}
}

int main(int argc, char **argv)
{
	static const struct {
		int n, w;
		enum optree_algorithm how;
		int mib;
	} rows[] = {
		{ 64, 16, OPTREE_TREE, 4 }, { 64, 16, OPTREE_COMPOSED, 4 },
		{ 1000, 64, OPTREE_COMPOSED, 4 },
		{ 1024, 64, OPTREE_TREE, 4 }, { 1024, 64, OPTREE_COMPOSED, 4 },
		{ 1024, 64, OPTREE_COMPOSED, 128 },
	};
	FILE *json = argc == 3 && strcmp(argv[1], "--json") == 0 ?
		     fopen(argv[2], "a") : NULL;

	printf("nodes   w schedule   MiB steps  settings    8 B each   packed "
	       "    ratio pack ms open ms\n");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct figures f = { 0 };
		struct err err = { 0 };

		if (measure(rows[i].n, rows[i].w, rows[i].how,
			    (int64_t)rows[i].mib << 20, &f, &err)) {
			fprintf(stderr, "%d nodes: %s\n", rows[i].n, err.msg);
			return 1;
		}
		report(rows[i].n, rows[i].w, rows[i].how, rows[i].mib, &f,
		       json);
	}
	if (json) {
		fclose(json);
	}
	return 0;
}
