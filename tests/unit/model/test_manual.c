/* SPDX-License-Identifier: Apache-2.0 */
/* The documentation against the tables that drive the parser: every key has
 * its item in weft.yaml(5), which says if it is required and names its
 * default; every example in the documentation is accepted. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/model/model.h"
#include "lib/base/file.h"
#include "controller/model/private.h"

#define MANUAL "docs/man/weft.yaml.5"
#define GUIDE "docs/fabric.md"
#define DEVICES "Every device"

static char *manual, *guide;

static int read_texts(void **state)
{
	size_t len;

	(void)state;
	return file_read(MANUAL, 1 << 20, &manual, &len, NULL) ||
	       file_read(GUIDE, 1 << 20, &guide, &len, NULL);
}

static int free_texts(void **state)
{
	(void)state;
	free(manual);
	free(guide);
	return 0;
}

/* A copy of what stands between `start` and the first of the line starts
 * `end` or `end2`, NULL when there is no start. */
static char *between(const char *text, const char *start, const char *end,
		     const char *end2)
{
	const char *from = strstr(text, start), *to, *to2;

	if (!from) {
		return NULL;
	}
	from += strlen(start);
	to = strstr(from, end);
	to2 = strstr(from, end2);
	to = !to || (to2 && to2 < to) ? to2 : to;
	return to ? strndup(from, (size_t)(to - from)) : strdup(from);
}

static char *find_item(const char *heading, const char *key)
{
	char start[128];
	char *sub, *item;

	snprintf(start, sizeof(start), "\n.Ss %s\n", heading);
	sub = between(manual, start, "\n.Ss ", "\n.Sh ");
	if (!sub) {
		return NULL;
	}
	snprintf(start, sizeof(start), "\n.It Ic %s\n", key);
	item = between(sub, start, "\n.It ", "\n.El");
	free(sub);
	return item;
}

/* Subsection of a section: the key that holds it. */
static const char *heading_of(const struct conf_section *s)
{
	for (const struct conf_section *const *p = schema_sections; *p; p++) {
		for (int i = 0; i < (*p)->n_keys; i++) {
			if ((*p)->keys[i].section == s) {
				return (*p)->keys[i].name;
			}
		}
	}
	return "fabric";
}

static bool is_documented(const struct conf_section *s, const struct conf_key *key)
{
	/* Keys that sections share are described once. */
	const char *headings[] = { heading_of(s), "switches", DEVICES };
	char said[64];
	bool ok;
	char *item = NULL;

	for (int i = 0; i < 3 && !item; i++) {
		item = find_item(headings[i], key->name);
	}
	if (!item) {
		print_error("%s: no key '%s' under %s\n", MANUAL, key->name,
			    headings[0]);
		return false;
	}
	snprintf(said, sizeof(said), "Default:\n.Ql %s",
		 key->def ? key->def : "");
	ok = !key->def == !strstr(item, "Default:") &&
	     (!key->def || strstr(item, said)) &&
	     key->required == (strstr(item, "Required.") != NULL);
	if (!ok) {
		print_error("%s: key '%s' under %s: wrong default or "
			    "requirement\n", MANUAL, key->name, headings[0]);
	}
	free(item);
	return ok;
}

static void every_key_is_in_the_manual(void **state)
{
	int bad = 0;

	(void)state;
	for (const struct conf_section *const *s = schema_sections; *s; s++) {
		assert_true((*s)->n_keys <= CONF_MAX_KEYS);
		for (int i = 0; i < (*s)->n_keys; i++) {
			assert_non_null((*s)->keys[i].name);
			assert_non_null((*s)->keys[i].help);
			bad += !is_documented(*s, &(*s)->keys[i]);
		}
	}
	assert_int_equal(bad, 0);
}

static bool is_key(const char *name, size_t len)
{
	for (const struct conf_section *const *s = schema_sections; *s; s++) {
		for (int i = 0; i < (*s)->n_keys; i++) {
			const char *key = (*s)->keys[i].name;

			if (strlen(key) == len &&
			    strncmp(key, name, len) == 0) {
				return true;
			}
		}
	}
	return false;
}

static void the_manual_has_no_other_keys(void **state)
{
	const char *start = "\n.It Ic ";

	(void)state;
	for (const char *p = manual; (p = strstr(p, start));) {
		p += strlen(start);
		if (!is_key(p, strcspn(p, "\n"))) {
			fail_msg("%s: '%.*s' is no key", MANUAL,
				 (int)strcspn(p, "\n"), p);
		}
	}
}

/* Defaults are read by the same code as a user's text. */
static void defaults_are_valid(void **state)
{
	struct conf_node map = { .kind = CONF_NODE_MAP, .text = "" };

	(void)state;
	for (const struct conf_section *const *s = schema_sections; *s; s++) {
		struct conf_value v[CONF_MAX_KEYS];
		struct err_list errs = { 0 };
		struct conf_arena keep = { 0 };
		struct conf_reader r;
		int required = 0;

		conf_reader_init(&r, "defaults", "fabric", &keep, &errs);
		conf_read_section(&r, *s, "x", &map, v);
		for (int i = 0; i < (*s)->n_keys; i++) {
			required += (*s)->keys[i].required;
			assert_int_equal(v[i].ok, (*s)->keys[i].def != NULL);
		}
		assert_int_equal(r.n_errors, required);
		conf_reader_fini(&r);
		conf_arena_fini(&keep);
		err_list_fini(&errs);
	}
}

static void accept_example(const char *where, char *text)
{
	struct err_list errs = { 0 };
	struct model_fabric *f = NULL;

	assert_non_null(text);
	if (model_parse(where, text, strlen(text), &f, &errs)) {
		fail_msg("%s: example, line %d: %s", where, errs.v[0].line,
			 errs.v[0].msg);
	}
	assert_true(f->n_jobs > 0);
	model_free(f);
	err_list_fini(&errs);
	free(text);
}

static void examples_are_accepted(void **state)
{
	(void)state;
	accept_example(MANUAL, between(manual,
				       "\n.Bd -literal -offset indent\n",
				       ".Ed\n", ".Ed\n"));
	accept_example(GUIDE, between(guide, "\n```yaml\n", "```\n", "```\n"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_key_is_in_the_manual),
		cmocka_unit_test(the_manual_has_no_other_keys),
		cmocka_unit_test(defaults_are_valid),
		cmocka_unit_test(examples_are_accepted),
	};

	return cmocka_run_group_tests_name("model/manual", tests, read_texts,
					   free_texts);
}
