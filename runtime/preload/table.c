/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table's text. What the schedules themselves say is looked at in check.c: a table can be
 * read where its files are not.
 */
#include "runtime/preload/table.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "lib/conf/conf.h"

enum { KEY_FILE, KEY_MIN, KEY_MAX, KEY_COLLECTIVE, KEY_RANKS, KEY_ROOT, KEY_MEMBERS,
       KEYS };

/* As in taken_kinds. */
static const char *const taken_names[] = { "allreduce", "allgather", "reduce-scatter",
					   "all-to-all", "broadcast", NULL };
static const enum coll_kind taken_kinds[] = { COLL_ALLREDUCE, COLL_ALLGATHER, COLL_REDUCE_SCATTER,
					      COLL_ALLTOALL, COLL_BROADCAST };

static const struct conf_key entry_keys[KEYS] = {
	[KEY_FILE] = { "file", CONF_TEXT, .required = true,
		       .help = "a schedule, or with %r the parts of all ranks" },
	[KEY_MIN] = { "min-bytes", CONF_QUANTITY, .unit = UNIT_BYTES, .max = INT64_MAX, .def = "0B",
		      .help = "least size of the vector, such as 64KiB" },
	[KEY_MAX] = { "max-bytes", CONF_QUANTITY, .unit = UNIT_BYTES, .max = INT64_MAX,
		      .help = "largest size of the vector, such as 64MiB" },
	[KEY_COLLECTIVE] = { "collective", CONF_CHOICE, .choices = taken_names,
			     .help = "what the schedule is of" },
	[KEY_RANKS] = { "ranks", CONF_INT, .min = 2, .max = INT_MAX,
			.help = "how many ranks it is for" },
	[KEY_ROOT] = { "root", CONF_INT, .max = INT_MAX, .help = "of a broadcast" },
	[KEY_MEMBERS] = { "members", CONF_TEXT,
			  .help = "all ranks as a mesh, such as 4 x [8] for groups of 8" },
};

static const struct conf_section entry_section = { "schedule", entry_keys, KEYS };

static const struct conf_key table_keys[] = {
	{ "schedules", CONF_ENTRIES, .required = true, .section = &entry_section,
	  .help = "the schedules to run" },
};

static const struct conf_section table_section = { "table", table_keys, 1 };

bool preload_takes(enum coll_kind kind)
{
	for (size_t i = 0; i < sizeof(taken_kinds) / sizeof(*taken_kinds); i++) {
		if (taken_kinds[i] == kind) {
			return true;
		}
	}
	return false;
}

/* ---- members ---- */

/* "4 x [8] x 2". False: it is none, or no group of it has two ranks. */
static bool read_members(const char *text, struct preload_entry *e)
{
	int64_t all = 1, group = 1;

	for (const char *p = text;; p += 3) {
		bool along = *p == '[';
		char *end;
		long n = strtol(p + along, &end, 10);

		if (p[along] < '0' || p[along] > '9' || n < 1 || n > INT_MAX / all ||
		    e->n_axes == PRELOAD_MAX_AXES || (along && *end++ != ']')) {
			return false;
		}
		e->axes[e->n_axes++] = along ? -(int32_t)n : (int32_t)n;
		all *= n;
		group *= along ? n : 1;
		p = end;
		if (!*p) {
			return group > 1;
		}
		if (strncmp(p, " x ", 3) != 0) {
			return false;
		}
	}
}

static int ranks_of_group(const struct preload_entry *e)
{
	int n = 1;

	for (int i = 0; i < e->n_axes; i++) {
		n *= e->axes[i] < 0 ? -e->axes[i] : 1;
	}
	return n;
}

bool preload_is_member(const struct preload_entry *e, int size, const int *world)
{
	int stride = 1, first = world[0];

	for (int i = e->n_axes; i-- > 0; stride *= abs(e->axes[i])) {
		first -= e->axes[i] < 0 ? first / stride % -e->axes[i] * stride : 0;
	}
	for (int r = 0; r < e->ranks && e->n_axes; r++) {
		int left = r, rank = first;

		stride = 1;
		for (int i = e->n_axes; i-- > 0; stride *= abs(e->axes[i])) {
			if (e->axes[i] < 0) {
				rank += left % -e->axes[i] * stride;
				left /= -e->axes[i];
			}
		}
		if (world[r] != rank) {
			return false;
		}
	}
	return !e->n_axes || stride == size;
}

/* ---- names of files ---- */

/* Why a name is refused, or NULL; *per_rank: it has %r. */
static const char *name_fault(const char *file, size_t len, int32_t *per_rank)
{
	const char *p = memchr(file, '%', len);

	*per_rank = p != NULL;
	if (!len) {
		return "the name of a file is empty";
	}
	if (!p) {
		return NULL;
	}
	if (p + 1 == file + len || p[1] != 'r') {
		return "'%' in a name is followed by r, for the rank";
	}
	return memchr(p + 2, '%', (size_t)(file + len - p) - 2) ? "a name has one % at most" : NULL;
}

/* Puts the folder of the table before a relative name. */
static int put_name(struct preload_entry *e, const char *table, const char *file, size_t len)
{
	const char *slash = strrchr(table, '/');
	size_t folder = slash && file[0] != '/' ? (size_t)(slash - table) + 1 : 0;

	if (folder + len >= sizeof(e->file)) {
		return WEFT_ELIMIT;
	}
	memcpy(e->file, table, folder);
	memcpy(e->file + folder, file, len);
	return 0;
}

/* ---- YAML ---- */

static bool check_entry(struct conf_reader *r, const char *object, const struct conf_value *v,
			struct preload_entry *e)
{
	const char *file = v[KEY_FILE].text;
	const char *fault = name_fault(file, strlen(file), &e->per_rank);

	if (fault) {
		conf_error(r, v[KEY_FILE].node->at, WEFT_EINVAL, "%s: file: %s", object, fault);
		return false;
	}
	if (put_name(e, r->file, file, strlen(file))) {
		conf_error(r, v[KEY_FILE].node->at, WEFT_ELIMIT,
			   "%s: file: the name is longer than %d bytes", object,
			   PRELOAD_MAX_FILE - 1);
		return false;
	}
	if (e->min_bytes > e->max_bytes) {
		conf_error(r, v[KEY_MAX].node->at, WEFT_EINVAL,
			   "%s: max-bytes: less than min-bytes", object);
		return false;
	}
	if (v[KEY_MEMBERS].node && !read_members(v[KEY_MEMBERS].text, e)) {
		conf_error(r, v[KEY_MEMBERS].node->at, WEFT_EINVAL, "%s: members: sizes of at most "
			   "%d axes stand here, those of a group in brackets: 4 x [8]", object,
			   PRELOAD_MAX_AXES);
		return false;
	}
	if (v[KEY_MEMBERS].node && e->ranks >= 0 && e->ranks != ranks_of_group(e)) {
		conf_error(r, v[KEY_RANKS].node->at, WEFT_EINVAL, "%s: ranks: %d, and its members "
			   "are groups of %d", object, e->ranks, ranks_of_group(e));
		return false;
	}
	e->ranks = v[KEY_MEMBERS].node ? ranks_of_group(e) : e->ranks;
	if (v[KEY_ROOT].node && e->kind >= 0 && !coll_has_root((enum coll_kind)e->kind)) {
		conf_error(r, v[KEY_ROOT].node->at, WEFT_EINVAL, "%s: root: %s has none", object,
			   taken_names[v[KEY_COLLECTIVE].num]);
		return false;
	}
	return true;
}

/* Values that YAML refused are reported, and not there. */
static bool all_ok(const struct conf_value *v, int n)
{
	for (int i = 0; i < n; i++) {
		if (v[i].node && !v[i].ok) {
			return false;
		}
	}
	return true;
}

static void add_entry(struct conf_reader *r, const struct conf_node *node, int nth,
		      struct preload_table *t)
{
	struct conf_value v[CONF_MAX_KEYS];
	char object[CONF_MAX_OBJECT];
	struct preload_entry e = { .line = node->at.line, .col = node->at.col };

	conf_object_name(&entry_section, node, nth, object);
	if (!conf_read_section(r, &entry_section, object, node, v) || !all_ok(v, KEYS)) {
		return;
	}
	e.min_bytes = v[KEY_MIN].num;
	e.max_bytes = v[KEY_MAX].node ? v[KEY_MAX].num : INT64_MAX;
	e.kind = v[KEY_COLLECTIVE].node ? (int32_t)taken_kinds[v[KEY_COLLECTIVE].num] : -1;
	e.ranks = v[KEY_RANKS].node ? (int32_t)v[KEY_RANKS].num : -1;
	e.root = v[KEY_ROOT].node ? (int32_t)v[KEY_ROOT].num : -1;
	if (check_entry(r, object, v, &e)) {
		vec_push(&t->entries, e);
	}
}

static void read_table(struct conf_reader *r, const struct conf_node *root,
		       struct preload_table *t)
{
	struct conf_value v[CONF_MAX_KEYS];
	const struct conf_node *list;
	int nth = 0;

	if (!conf_read_section(r, &table_section, "table", root, v) || !all_ok(v, 1)) {
		return;
	}
	list = v[0].node;
	if (list->n == 0 || list->n > PRELOAD_MAX_ENTRIES) {
		conf_error(r, list->at, list->n ? WEFT_ELIMIT : WEFT_EINVAL,
			   "table: schedules: %d entries, not 1 to %d", list->n,
			   PRELOAD_MAX_ENTRIES);
		return;
	}
	for (const struct conf_node *n = list->first; n && !r->stop; n = n->next) {
		add_entry(r, n, ++nth, t);
	}
}

/* What both forms end with: the first error's code, and then no entries. */
static int end(struct preload_table *t, struct err_list *errs, int code)
{
	if (code) {
		err_list_sort(errs);
		preload_table_fini(t);
		return errs->n > 0 ? errs->v[0].code : code;
	}
	return 0;
}

int preload_table_parse(const char *name, const char *text, size_t len, struct preload_table *out,
			struct err_list *errs)
{
	const struct conf_node *root;
	struct conf_reader r;
	int code;

	memset(out, 0, sizeof(*out));
	conf_reader_init(&r, name, "table of schedules", NULL, errs);
	if (len > PRELOAD_MAX_TEXT) {
		conf_error(&r, (struct conf_place){ 0, 0 }, WEFT_ELIMIT,
			   "text: %zu bytes, at most %u are read", len, PRELOAD_MAX_TEXT);
	} else if ((root = conf_read_yaml(&r, text, len))) {
		read_table(&r, root, out);
	}
	code = r.n_errors > 0 ? r.unkept.code : 0;
	conf_reader_fini(&r);
	return end(out, errs, code);
}

/* ---- the short form ---- */

static int add_listed(const char *file, size_t len, int col, struct preload_table *t,
		      struct err *err)
{
	struct preload_entry e = { .max_bytes = INT64_MAX, .kind = -1, .ranks = -1, .root = -1,
				   .line = 1, .col = col };
	const char *fault = name_fault(file, len, &e.per_rank);

	if (fault) {
		return err_set(err, WEFT_EINVAL, "%s", fault);
	}
	if (t->entries.n == PRELOAD_MAX_ENTRIES) {
		return err_set(err, WEFT_ELIMIT, "more than %d files", PRELOAD_MAX_ENTRIES);
	}
	if (put_name(&e, "", file, len)) {
		return err_set(err, WEFT_ELIMIT, "a name is longer than %d bytes",
			       PRELOAD_MAX_FILE - 1);
	}
	vec_push(&t->entries, e);
	return 0;
}

int preload_table_from_list(const char *name, const char *list, struct preload_table *out,
			    struct err_list *errs)
{
	struct err err;
	int rc = 0;

	memset(out, 0, sizeof(*out));
	for (const char *p = list;; p++) {
		size_t len = strcspn(p, ":");
		int col = (int)(p - list) + 1;

		if ((rc = add_listed(p, len, col, out, &err))) {
			err_at(&err, name, 1, col);
			err_list_add(errs, &err);
			break;
		}
		p += len;
		if (!*p) {
			break;
		}
	}
	return end(out, errs, rc);
}

void preload_table_fini(struct preload_table *t)
{
	vec_fini(&t->entries);
}
