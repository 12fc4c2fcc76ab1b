/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Topologies in files of their own. weftd reads no file of those who ask it: their arcs stand in
 * the text that it gets.
 */
#include <stdlib.h>
#include <string.h>

#include "controller/model/private.h"
#include "lib/base/alloc.h"
#include "lib/base/file.h"
#include "topology/topology.h"

bool model_is_file(const char *topology)
{
	return strpbrk(topology, "/.") && !strpbrk(topology, " (");
}

static int read_edges(const char *path, struct topo **out, struct err *err)
{
	char *text = NULL;
	size_t len;
	int rc = file_read(path, MODEL_MAX_TEXT, &text, &len, err);

	if (rc) {
		return rc;
	}
	rc = topo_from_edges(text, len, out, err);
	if (rc && err->line) {
		err_at(err, path, err->line, 0);
	} else if (rc) {
		err_wrap(err, "%s", path);
	}
	free(text);
	return rc;
}

int model_edge_list(const char *path, struct buf *out, struct err *err)
{
	struct topo *t = NULL;
	int rc = read_edges(path, &t, err);

	if (rc == 0 && ((rc = build_check_arcs(t, err)) ||
			(rc = topo_check_plain(t, "its nodes are the job's hosts", err)))) {
		err_wrap(err, "%s", path);
	}
	if (rc == 0) {
		buf_printf(out, "nodes %d", topo_n(t));
		for (int a = 0; a < topo_m(t); a++) {
			buf_printf(out, ", %d %d", topo_arc(t, a)->src, topo_arc(t, a)->dst);
		}
	}
	topo_free(t);
	return rc;
}

/* What goes wrong in a file, apart from a text that is no YAML. */
struct splicing {
	const char *path;	/* of the fabric */
	int rc;
};

static int splice(const char *value, struct buf *out, void *arg, struct err *err)
{
	struct splicing *s = arg;
	const char *slash = strrchr(s->path, '/');
	struct buf name = { 0 };

	if (!model_is_file(value)) {
		return 1;
	}
	if (value[0] != '/' && slash) {
		buf_add(&name, s->path, (size_t)(slash + 1 - s->path));
	}
	buf_str(&name, value);
	s->rc = model_edge_list(buf_cstr(&name), out, err);
	if (s->rc && !err->line) {
		err_wrap(err, "topology");
	}
	buf_fini(&name);
	return s->rc;
}

int model_splice(const char *path, char **text, size_t *len, struct err *err)
{
	struct splicing s = { .path = path };
	struct buf out = { 0 };
	struct err own = { 0 };
	int n;

	if (!memmem(*text, *len, "topology", strlen("topology"))) {
		return 0;
	}
	n = conf_rename(*text, *len, "topology", "topology", splice, &s, &out, &own);
	if (n > 0) {
		free(*text);
		*len = out.len;
		*text = buf_steal(&out);
	}
	buf_fini(&out);
	if (s.rc) {
		*err = own;
		err_at(err, own.file[0] ? own.file : path, own.line, own.col);
	}
	return s.rc;
}
