/* SPDX-License-Identifier: Apache-2.0 */
/* Networks, demands and YAML instances: whatever the text, a model that the
 * solver and the checks can use, or an error that says something. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "rwa/mesh/mesh.h"
#include "rwa/reconfigure/reconfigure.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MAX_LIGHTPATHS 200	/* of what is solved */
#define MAX_SIZE 40

static void check(int good)
{
	if (!good) {
		abort();
	}
}

static void solve(const struct rwa_mesh *m)
{
	struct rwa_mesh_options opt = { .deadline = deadline_in(200000000, NULL), .seed = 1 };
	struct rwa_mesh_result res;
	struct err err = { 0 };

	if (m->lightpaths > MAX_LIGHTPATHS || m->nodes.n > MAX_SIZE ||
	    m->arcs.n > 2 * MAX_SIZE || m->blocks.n > MAX_SIZE) {
		return;
	}
	if (rwa_mesh_solve(m, &opt, &res, &err)) {
		check(err.code == WEFT_EINFEASIBLE || err.code == WEFT_ELIMIT);
		return;
	}
	check(res.channels >= res.bound);
	rwa_mesh_result_fini(&res);
}

/* Lightpaths of a triangle, and the change from nothing to them. */
static void read_lightpaths(const char *text, size_t size)
{
	struct rwa_change_options opt = { .by_domain = true };
	struct rwa_assignment none = { 0 }, light;
	struct rwa_mesh *m = NULL;
	struct rwa_change change;
	struct rwa_ids ids = { 0 };
	int64_t dark;
	struct err_list errs = { 0 };
	struct err err = { 0 };

	check(rwa_mesh_read_net("net", "3 6\n0 1\n1 0\n1 2\n2 1\n2 0\n0 2\n",
				&m, &errs) == 0);
	if (rwa_mesh_read_lightpaths(m, "light", text, size, true, &light,
				     &ids, &dark, &err)) {
		check(err.code != 0 && err.msg[0]);
		rwa_mesh_free(m);
		return;
	}
	check((int64_t)light.paths.n == m->lightpaths);
	check(ids.v.n == light.paths.n);
	for (size_t h = 0; h < light.hops.n; h++) {
		if (light.hops.v[h].channel >= opt.channels) {
			opt.channels = light.hops.v[h].channel + 1;
		}
	}
	/* Lightpaths that clash are refused. */
	if (rwa_change_plan(m, &none, &light, &opt, &change, &err) == 0) {
		check(change.added == m->lightpaths);
		rwa_change_fini(&change);
	}
	rwa_ids_fini(&ids);
	rwa_assignment_fini(&light);
	rwa_mesh_free(m);
}

/* By the first byte; a NUL parts a network from its demands. */
static int read_instance(char reader, const char *text, size_t size, struct rwa_mesh **m,
			 struct err_list *errs)
{
	int rc;

	if (reader == 's' || reader == 'u') {
		return rwa_mesh_read_sndlib("sndlib", text, reader == 's' ? 0 : 2.5, m, errs);
	}
	if (reader != 'n') {
		return rwa_mesh_read_yaml("yaml", text, size, m, errs);
	}
	rc = rwa_mesh_read_net("net", text, m, errs);
	return rc ? rc : rwa_mesh_read_trf(*m, "trf", text + strlen(text) + 1, errs);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = calloc(size + 2, 1);
	struct rwa_mesh *m = NULL;
	struct err_list errs = { 0 };

	check(text != NULL);
	if (size > 1) {
		memcpy(text, data + 1, size - 1);
	}
	if (size && data[0] == 'l') {
		read_lightpaths(text, size - 1);
		free(text);
		return 0;
	}
	if (read_instance(size ? (char)data[0] : 'y', text, size ? size - 1 : 0, &m, &errs)) {
		check(errs.n > 0 && errs.v[0].code != 0 && errs.v[0].msg[0]);
	} else {
		check(errs.n == 0);
		solve(m);
	}
	err_list_fini(&errs);
	rwa_mesh_free(m);
	free(text);
	return 0;
}
