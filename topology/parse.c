/* Expressions such as "C(16,{3,4})"; see topo_parse() in topology.h. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/buf.h"
#include "topology/topology_private.h"

/* Far above every limit, far below overflow. */
#define MAX_NUMBER 1000000000
#define MAX_EXPRESSION 4096
#define MAX_NAME 32

struct parser {
	const char *text, *at;
	struct err *err;
};

int topo_err_at(struct err *err, int col, const char *fmt, ...)
{
	char what[ERR_MSG_MAX / 2];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	return err_set(err, WEFT_EINVAL, "column %d: %s", col, what);
}

static int column(const struct parser *p)
{
	return (int)(p->at - p->text) + 1;
}

static void skip_blanks(struct parser *p)
{
	p->at += strspn(p->at, " \t\r\n");
}

/* "column 7: expected X, found 'y'". */
static int expected(struct parser *p, const char *what)
{
	unsigned char c = (unsigned char)*p->at;

	if (c == '\0') {
		return topo_err_at(p->err, column(p),
				   "expected %s, found the end", what);
	}
	if (c < 0x20 || c > 0x7e) {
		return topo_err_at(p->err, column(p),
				   "expected %s, found byte 0x%02x", what, c);
	}
	return topo_err_at(p->err, column(p), "expected %s, found '%c'", what,
			   c);
}

static bool accept(struct parser *p, char c)
{
	skip_blanks(p);
	if (*p->at != c) {
		return false;
	}
	p->at++;
	skip_blanks(p);
	return true;
}

static int parse_number(struct parser *p, const char *what,
			struct topo_arg *arg)
{
	skip_blanks(p);
	if (*p->at < '0' || *p->at > '9') {
		return expected(p, what);
	}
	*arg = (struct topo_arg){ .col = column(p) };
	for (; *p->at >= '0' && *p->at <= '9'; p->at++) {
		arg->value = arg->value * 10 + (*p->at - '0');
		if (arg->value > MAX_NUMBER) {
			return topo_err_at(p->err, arg->col,
					   "the number is too large");
		}
	}
	return 0;
}

/* Numbers separated by commas, up to `close`, which is taken. Stops before a
 * '{' when a set may follow. */
static int parse_numbers(struct parser *p, struct topo_arg *v, int *n,
			 char close, bool set_may_follow)
{
	const char *first = set_may_follow && *n > 0 ? "a number or '{'"
						     : "a number";

	for (;;) {
		int rc;

		skip_blanks(p);
		if (set_may_follow && *n > 0 && *p->at == '{') {
			return 0;
		}
		if (*n == TOPO_MAX_ARGS) {
			return topo_err_at(p->err, column(p),
					   "more than %d numbers",
					   TOPO_MAX_ARGS);
		}
		rc = parse_number(p, first, &v[*n]);
		if (rc) {
			return rc;
		}
		(*n)++;
		if (accept(p, close)) {
			return 0;
		}
		if (!accept(p, ',')) {
			return expected(p, close == '}' ? "',' or '}'"
							: "',' or ')'");
		}
		first = set_may_follow ? "a number or '{'" : "a number";
	}
}

static int compare_args(const void *a, const void *b)
{
	const struct topo_arg *x = a, *y = b;

	if (x->value != y->value) {
		return x->value < y->value ? -1 : 1;
	}
	return x->col - y->col;
}

static int parse_args(struct parser *p, struct topo_args *args)
{
	int rc;

	if (!accept(p, '(')) {
		return expected(p, "'('");
	}
	rc = parse_numbers(p, args->number, &args->numbers, ')', true);
	if (rc) {
		return rc;
	}
	if (accept(p, '{')) {
		args->has_set = true;
		rc = parse_numbers(p, args->set, &args->members, '}', false);
		if (rc) {
			return rc;
		}
		if (!accept(p, ')')) {
			return expected(p, "')'");
		}
		qsort(args->set, (size_t)args->members, sizeof(args->set[0]),
		      compare_args);
	}
	skip_blanks(p);
	return *p->at ? expected(p, "the end") : 0;
}

static bool fits(const struct topo_family *f, const struct topo_args *args)
{
	int least = (int)strspn(f->shape, "n");
	const char *rest = f->shape + least;

	if (args->has_set != (*rest == 's')) {
		return false;
	}
	return args->numbers == least || (*rest == '+' &&
					  args->numbers > least);
}

/* Names all families, or the forms of those called `name`. */
static void list_forms(const char *name, struct buf *b)
{
	for (int i = 0; i < topo_n_families; i++) {
		const struct topo_family *f = &topo_family_list[i];

		if (!name || strcmp(name, f->name) == 0) {
			buf_printf(b, "%s%s", b->len ? ", " : "", f->usage);
		}
	}
}

static int find_family(struct parser *p, const char *name,
		       const struct topo_args *args,
		       const struct topo_family **family)
{
	struct buf forms = { 0 };
	bool known = false;

	for (int i = 0; i < topo_n_families; i++) {
		const struct topo_family *f = &topo_family_list[i];

		if (strcmp(name, f->name) != 0) {
			continue;
		}
		known = true;
		if (args && fits(f, args)) {
			*family = f;
			return 0;
		}
	}
	if (known && !args) {
		return 0;
	}
	list_forms(known ? name : NULL, &forms);
	topo_err_at(p->err, known ? args->number[0].col : column(p),
		    known ? "%s takes other arguments: expected %s"
			  : "no family '%s': expected one of %s",
		    name, buf_cstr(&forms));
	buf_fini(&forms);
	return WEFT_EINVAL;
}

static int parse_name(struct parser *p, char *name)
{
	size_t len;

	skip_blanks(p);
	len = strspn(p->at, "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
			    "abcdefghijklmnopqrstuvwxyz");
	if (len == 0) {
		return expected(p, "the name of a family");
	}
	if (len >= MAX_NAME) {
		len = MAX_NAME - 1;
	}
	memcpy(name, p->at, len);
	name[len] = '\0';
	return 0;
}

static char *canonical(const struct topo_family *f,
		       const struct topo_args *args)
{
	struct buf b = { 0 };

	buf_printf(&b, "%s(", f->name);
	for (int i = 0; i < args->numbers; i++) {
		buf_printf(&b, "%s%" PRId64, i ? "," : "",
			   args->number[i].value);
	}
	if (args->has_set) {
		buf_str(&b, ",{");
		for (int i = 0; i < args->members; i++) {
			buf_printf(&b, "%s%" PRId64, i ? "," : "",
				   args->set[i].value);
		}
		buf_char(&b, '}');
	}
	buf_char(&b, ')');
	return buf_steal(&b);
}

static int build(const struct topo_family *f, const struct topo_args *args,
		 struct topo **out, char **name, struct err *err)
{
	struct topo *t = NULL;
	char *text = NULL;
	int rc = f->build(args, &t, err);

	rc = rc ? rc : topo_freeze(t, err);
	if (rc == 0 && name && !(text = canonical(f, args))) {
		rc = err_nomem(err);
	}
	if (rc) {
		topo_free(t);
		return rc;
	}
	*out = t;
	if (name) {
		*name = text;
	}
	return 0;
}

static int parse(struct parser *p, struct topo **out, char **name)
{
	struct topo_args args = { 0 };
	const struct topo_family *family = NULL;
	char word[MAX_NAME];
	int rc;

	if (strlen(p->text) > MAX_EXPRESSION) {
		return err_set(p->err, WEFT_EINVAL,
			       "longer than %d characters", MAX_EXPRESSION);
	}
	rc = parse_name(p, word);
	rc = rc ? rc : find_family(p, word, NULL, NULL);
	if (rc) {
		return rc;
	}
	p->at += strlen(word);
	rc = parse_args(p, &args);
	rc = rc ? rc : find_family(p, word, &args, &family);
	return rc ? rc : build(family, &args, out, name, p->err);
}

int topo_parse(const char *expr, struct topo **out, char **name,
	       struct err *err)
{
	struct parser p = { .text = expr, .at = expr, .err = err };
	int rc = parse(&p, out, name);

	if (rc && err) {
		err_wrap(err, "topology '%.60s'", expr);
	}
	return rc;
}
