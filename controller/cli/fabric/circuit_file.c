/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Circuits in files. A line is "A B" or "A B one-way", below "group NAME" where there is more than
 * one group; '#' begins a comment. The entries of a fabric file's `circuits` are taken as well, as
 * a list or with that key: a text whose first character is one of YAML's.
 */
#include <stdlib.h>
#include <string.h>

#include "controller/cli/fabric/circuit_file.h"
#include "controller/model/model.h"
#include "lib/base/alloc.h"
#include "lib/base/file.h"
#include "lib/conf/conf.h"

#define MAX_FILE (4u << 20)

void circuit_group_fini(struct circuit_group *g)
{
	for (size_t i = 0; i < g->v.n; i++) {
		free(g->v.v[i].from);
		free(g->v.v[i].to);
	}
	vec_fini(&g->v);
	free(g->name);
}

void circuit_file_fini(struct circuit_file *f)
{
	for (size_t i = 0; i < f->groups.n; i++) {
		circuit_group_fini(&f->groups.v[i]);
	}
	vec_fini(&f->groups);
}

/* One name, or those of "dut.p[0-3]"; a label may hold anything but brackets. */
static int expand(const char *text, char ***names, int *n, struct err *err)
{
	if (strchr(text, '[')) {
		return model_expand(text, MODEL_MAX_SIDE, names, n, err);
	}
	*names = x_new(2, sizeof(**names));
	(*names)[0] = x_dup(text);
	*n = 1;
	return 0;
}

int circuit_group_add(struct circuit_group *g, const char *from, const char *to, bool simplex,
		      struct err *err)
{
	char **a = NULL, **b = NULL;
	int n = 0, m = 0, r = expand(from, &a, &n, err);

	if (r == 0) {
		r = expand(to, &b, &m, err);
	}
	if (r == 0 && n != m) {
		r = err_set(err, WEFT_EINVAL, "%s are %d ports, and %s %d", from, n, to, m);
	}
	for (int i = 0; i < n && r == 0; i++) {
		Weft__V1__CircuitEnds c = WEFT__V1__CIRCUIT_ENDS__INIT;

		c.from = x_dup(a[i]);
		c.to = x_dup(b[i]);
		c.simplex = simplex;
		vec_push(&g->v, c);
	}
	model_names_free(a);
	model_names_free(b);
	return r;
}

/* The group of this name, a new one at the end if there is none; NULL: of no name. */
static struct circuit_group *group_of(struct circuit_file *f, const char *name)
{
	for (size_t i = 0; i < f->groups.n; i++) {
		const char *other = f->groups.v[i].name;

		if (name && other ? strcmp(other, name) == 0 : name == other) {
			return &f->groups.v[i];
		}
	}
	vec_push(&f->groups, (struct circuit_group){ .name = name ? x_dup(name) : NULL });
	return &f->groups.v[f->groups.n - 1];
}

/* ---- lines --------------------------------------------------------------- */

/* Nothing is a line, too. *group: the name that the lines from here on belong to, owned. */
static int read_line(struct circuit_file *f, char *line, char **group, struct err *err)
{
	char *word[4] = { NULL }, *rest = line;
	int n = 0;

	line[strcspn(line, "#")] = '\0';
	while (n < 4 && (word[n] = strsep(&rest, " \t\r")) != NULL) {
		n += word[n][0] != '\0';
	}
	if (n == 0) {
		return 0;
	}
	if (n == 2 && strcmp(word[0], "group") == 0) {
		free(*group);
		*group = x_dup(word[1]);
		return 0;
	}
	if (n < 2 || n > 3 || (n == 3 && strcmp(word[2], "one-way") != 0)) {
		return err_set(err, WEFT_EINVAL, "expected two ports, and perhaps one-way");
	}
	return circuit_group_add(group_of(f, *group), word[0], word[1], n == 3, err);
}

static int read_lines(struct circuit_file *f, const char *path, char *text, struct err *err)
{
	char *line, *group = NULL;
	int at = 0, r = 0;

	while (r == 0 && (line = strsep(&text, "\n")) != NULL) {
		at++;
		r = read_line(f, line, &group, err);
		if (r) {
			err_at(err, path, at, 1);
		}
	}
	free(group);
	return r;
}

/* ---- YAML ---------------------------------------------------------------- */

enum { FROM, TO, DIRECTION, NAME, GROUP, KEYS };

static const char *const directions[] = { "both", "one-way", NULL };
static const struct conf_key keys[] = {
	[FROM] = { "from", CONF_TEXT, .required = true, .help = "ports, such as dut.p[0-15]" },
	[TO] = { "to", CONF_TEXT, .required = true, .help = "as many ports" },
	[DIRECTION] = { "direction", CONF_CHOICE, .choices = directions, .def = "both",
			.help = "both, or one-way: from sends, to receives" },
	[NAME] = { "name", CONF_NAME, .help = "of one circuit, and its group's without another" },
	[GROUP] = { "group", CONF_NAME, .help = "what is made and released together" },
};
static const struct conf_section circuit = { "circuit", keys, KEYS };
static const struct conf_key root_keys[] = {
	{ "circuits", CONF_ENTRIES, .required = true, .section = &circuit, .help = "circuits" },
	{ .name = "*", .type = CONF_ANY },
};
static const struct conf_section root_section = { "file", root_keys, 2 };

static void read_entry(struct conf_reader *r, struct circuit_file *f, const struct conf_node *node,
		       int nth)
{
	char object[CONF_MAX_OBJECT];
	struct conf_value v[KEYS];
	struct err err = { 0 };
	const char *name;

	conf_object_name(&circuit, node, nth, object);
	if (!conf_read_section(r, &circuit, object, node, v)) {
		return;
	}
	name = v[GROUP].node ? v[GROUP].text : v[NAME].node ? v[NAME].text : NULL;
	if (circuit_group_add(group_of(f, name), v[FROM].text, v[TO].text, v[DIRECTION].num == 1,
			      &err)) {
		conf_error(r, v[FROM].node->at, WEFT_EINVAL, "%s: %s", object, err.msg);
	}
}

static void read_entries(struct conf_reader *r, struct circuit_file *f,
			 const struct conf_node *root)
{
	struct conf_value v[2];
	int nth = 0;

	if (root->kind == CONF_NODE_MAP) {
		if (!conf_read_section(r, &root_section, "file", root, v)) {
			return;
		}
		root = v[0].node;
	}
	for (const struct conf_node *n = root->first; n; n = n->next) {
		read_entry(r, f, n, ++nth);
	}
}

static int read_yaml(struct circuit_file *f, const char *path, const char *text, size_t len,
		     struct err *err)
{
	struct conf_arena keep = { 0 };
	struct err_list errs = { 0 };
	struct conf_reader r;
	const struct conf_node *root;
	int rc = 0;

	conf_reader_init(&r, path, "circuits", &keep, &errs);
	root = conf_read_yaml(&r, text, len);
	if (root) {
		read_entries(&r, f, root);
	}
	if (r.n_errors > 0) {
		err_list_sort(&errs);
		*err = errs.n > 0 ? errs.v[0] : r.unkept;
		rc = err->code;
	}
	conf_reader_fini(&r);
	conf_arena_fini(&keep);
	err_list_fini(&errs);
	return rc;
}

/* ---- files --------------------------------------------------------------- */

/* No line of ports begins so. */
static bool is_yaml(const char *text)
{
	const char *first = text + strspn(text, " \t\r\n");

	while (*first == '#') {
		first += strcspn(first, "\n");
		first += strspn(first, " \t\r\n");
	}
	return (*first && strchr("-[{", *first)) || first[strcspn(first, " \n#:")] == ':';
}

int circuit_file_read(const char *path, struct circuit_file *out, struct err *err)
{
	char *text = NULL;
	size_t len;
	int r = file_read(path, MAX_FILE, &text, &len, err);

	if (r) {
		return r;
	}
	r = is_yaml(text) ? read_yaml(out, path, text, len, err)
			  : read_lines(out, path, text, err);
	free(text);
	return r == 0 && out->groups.n == 0
	       ? err_set(err, WEFT_EINVAL, "%s: there are no circuits", path) : r;
}

void circuit_file_put(const Weft__V1__Job *j, struct buf *out)
{
	buf_printf(out, "group %s\n", j->name);
	for (size_t i = 0; i < j->n_circuits; i++) {
		const Weft__V1__CircuitState *c = j->circuits[i];

		buf_printf(out, "%s %s%s\n", c->from, c->to, c->simplex ? " one-way" : "");
	}
}
