/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Expressions such as "L3(C(16,{3,4}))".
 *
 * A recursive descent into a tree of calls; nesting is bounded before it begins.
 * The form of a call is chosen by name and arguments (K(n) and K(a,b) are two
 * families of one name). Then the tree is measured from the leaves up, which
 * refuses what is too large before memory is spent on arcs, and built. Errors
 * name the column. The tree, written back, is the canonical name.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/base/order.h"
#include "topology/private.h"

/* Far above every limit, far below overflow. */
#define MAX_NUMBER 1000000000
#define MAX_EXPRESSION 4096
#define MAX_NAME 32
#define MAX_DEPTH 32
#define DIGITS "0123456789"
#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

int topo_err_at(struct err *err, int col, const char *fmt, ...)
{
	char what[ERR_MSG_MAX / 2];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	return err_set(err, WEFT_EINVAL, "column %d: %s", col, what);
}

void topo_refuse(struct topo_make *mk, int col, const char *fmt, ...)
{
	char what[ERR_MSG_MAX / 2];
	va_list ap;

	if (mk->rc) {
		return;
	}
	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	mk->rc = topo_err_at(mk->err, col, "%s", what);
}

int topo_column(const struct topo_parser *p)
{
	return (int)(p->at - p->text) + 1;
}

static void skip_blanks(struct topo_parser *p)
{
	p->at += strspn(p->at, " \t\r\n");
}

int topo_expected(struct topo_parser *p, const char *what)
{
	unsigned char c = (unsigned char)*p->at;

	if (c == '\0') {
		return topo_err_at(p->err, topo_column(p), "expected %s, found the end", what);
	}
	if (c < 0x20 || c > 0x7e) {
		return topo_err_at(p->err, topo_column(p), "expected %s, found byte 0x%02x", what,
				   c);
	}
	return topo_err_at(p->err, topo_column(p), "expected %s, found '%c'", what, c);
}

bool topo_accept(struct topo_parser *p, char c)
{
	skip_blanks(p);
	if (*p->at != c) {
		return false;
	}
	p->at++;
	skip_blanks(p);
	return true;
}

static bool at_digit(const struct topo_parser *p)
{
	return *p->at >= '0' && *p->at <= '9';
}

int topo_read_number(struct topo_parser *p, const char *what, struct topo_arg *arg)
{
	skip_blanks(p);
	if (!at_digit(p)) {
		return topo_expected(p, what);
	}
	*arg = (struct topo_arg){ .col = topo_column(p) };
	for (; at_digit(p); p->at++) {
		arg->value = arg->value * 10 + (*p->at - '0');
		if (arg->value > MAX_NUMBER) {
			return topo_err_at(p->err, arg->col, "the number is too large");
		}
	}
	return 0;
}

/* Numbers separated by commas, up to `close`, which is taken. Stops before a
 * character of `stop` that follows a comma: "{" of a set, a letter of a word. */
static int parse_numbers(struct topo_parser *p, struct topo_arg *v, int *n,
			 char close, const char *stop)
{
	const char *next = *stop == '{' ? "a number or '{'"
			   : *stop ? "a number or a word" : "a number";
	const char *what = *n > 0 ? next : "a number";

	for (;;) {
		int rc;

		skip_blanks(p);
		if (*n > 0 && *p->at && strchr(stop, *p->at)) {
			return 0;
		}
		if (*n == TOPO_MAX_ARGS) {
			return topo_err_at(p->err, topo_column(p),
					   "more than %d numbers",
					   TOPO_MAX_ARGS);
		}
		rc = topo_read_number(p, what, &v[*n]);
		if (rc) {
			return rc;
		}
		(*n)++;
		if (topo_accept(p, close)) {
			return 0;
		}
		if (!topo_accept(p, ',')) {
			return topo_expected(p, close == '}' ? "',' or '}'" : "',' or ')'");
		}
		what = next;
	}
}

ORDER_BY(compare_args, struct topo_arg, value, col)

/* A word, and the ')' after it. */
static int parse_word(struct topo_parser *p, struct topo_call *call)
{
	size_t len;

	skip_blanks(p);
	len = strspn(p->at, LETTERS);
	if (len == 0) {
		return topo_expected(p, "a word");
	}
	call->word_col = topo_column(p);
	snprintf(call->word, sizeof(call->word), "%.*s", (int)len, p->at);
	p->at += len;
	return topo_accept(p, ')') ? 0 : topo_expected(p, "')'");
}

/* Numbers, and a set or, where a family takes one, a word after them. */
static int parse_plain_args(struct topo_parser *p, const char *shape, struct topo_call *call)
{
	bool word = strchr(shape, 'w') != NULL;
	int rc = parse_numbers(p, call->number, &call->numbers, ')', word ? LETTERS : "{");

	if (rc == 0 && word && p->at[-1] != ')') {
		return parse_word(p, call);
	}
	if (rc || !topo_accept(p, '{')) {
		return rc;
	}
	call->has_set = true;
	rc = parse_numbers(p, call->set, &call->members, '}', "");
	if (rc) {
		return rc;
	}
	if (!topo_accept(p, ')')) {
		return topo_expected(p, "')'");
	}
	qsort(call->set, (size_t)call->members, sizeof(call->set[0]), compare_args);
	return 0;
}

/* ---- which family ---- */

static bool fits(const struct topo_family *f, const struct topo_call *call)
{
	int parts = (int)strspn(f->shape, "x");
	const char *rest = f->shape + parts;
	bool more_parts = parts > 0 && *rest == '+';
	int least;

	rest += more_parts;
	least = (int)strspn(rest, "n");
	rest += least;
	least += *rest == 'k';
	if (call->has_set != (*rest == 's') || (call->word[0] != '\0') != (*rest == 'w') ||
	    call->parts < parts || (call->parts > parts && !more_parts)) {
		return false;
	}
	return call->numbers == least || (*rest == '+' && call->numbers > least);
}

static bool same_name(const struct topo_family *f, const char *name)
{
	return strcmp(f->name, name) == 0;
}

static const struct topo_family *next_family(const struct topo_family *f, int *list)
{
	f = f ? f + 1 : topo_family_lists[0];
	while (f && !f->name) {
		f = topo_family_lists[++*list];
	}
	return f;
}

const char *topo_family_help(int i, const char **help)
{
	const struct topo_family *f = NULL;
	int list = 0;

	for (f = next_family(f, &list); f && i > 0; i--) {
		f = next_family(f, &list);
	}
	if (!f) {
		return NULL;
	}
	*help = f->help;
	return f->usage;
}

/* The first family of that name. */
static const struct topo_family *named(const char *name)
{
	const struct topo_family *f = NULL;
	int list = 0;

	while ((f = next_family(f, &list)) && !same_name(f, name)) {
		continue;
	}
	return f;
}

static int unknown_family(const struct topo_parser *p, const char *name)
{
	const struct topo_family *f = NULL;
	struct nearest near;
	int list = 0;

	topo_err_at(p->err, topo_column(p), "no family '%s'", name);
	nearest_init(&near, name);
	while ((f = next_family(f, &list))) {
		nearest_try(&near, f->name);
	}
	if (p->err && !nearest_hint(&near, p->err)) {
		err_hint(p->err, "\"weft topology info\" lists the families");
	}
	return WEFT_EINVAL;
}

static int other_arguments(const struct topo_parser *p, const char *name, int col)
{
	const struct topo_family *f = NULL;
	struct buf forms = { 0 };
	int list = 0, rc;

	while ((f = next_family(f, &list))) {
		if (same_name(f, name)) {
			buf_printf(&forms, "%s%s", forms.len ? ", " : "", f->usage);
		}
	}
	rc = topo_err_at(p->err, col, "%s takes other arguments: expected %s",
			 name, buf_cstr(&forms));
	buf_fini(&forms);
	return rc;
}

/* The family of that name that takes these arguments. */
static int choose_form(const struct topo_parser *p, const char *name, struct topo_call *call)
{
	const struct topo_family *f = NULL;
	int list = 0, col = call->col;

	while ((f = next_family(f, &list))) {
		if (same_name(f, name) && fits(f, call)) {
			call->family = f;
			return 0;
		}
	}
	if (call->numbers > 0) {
		col = call->number[0].col;
	}
	return other_arguments(p, name, col);
}

/* Digits belong to the name where a family is called so (DgxA100), else they
 * are the number of L3(X). */
static int parse_name(struct topo_parser *p, char *name)
{
	size_t len, letters;

	skip_blanks(p);
	letters = strspn(p->at, LETTERS);
	if (letters == 0) {
		return topo_expected(p, "the name of a family");
	}
	len = strspn(p->at, LETTERS DIGITS);
	snprintf(name, MAX_NAME, "%.*s", (int)len, p->at);
	if (!named(name)) {
		char whole[MAX_NAME];

		memcpy(whole, name, sizeof(whole));
		len = letters < MAX_NAME ? letters : MAX_NAME - 1;
		name[len] = '\0';
		if (!named(name)) {
			return unknown_family(p, whole);
		}
	}
	p->at += len;
	return 0;
}

/* ---- the tree ---- */

static void call_free(struct topo_call *call)
{
	for (int i = 0; call && i < call->parts; i++) {
		call_free(call->part[i]);
	}
	if (call) {
		free(call->cayley);
	}
	free(call);
}

static int parse_call(struct topo_parser *p, struct topo_call **out);

/* Expressions first, then numbers, up to the ')' that is taken. */
static int parse_parts(struct topo_parser *p, struct topo_call *call)
{
	do {
		int rc;

		skip_blanks(p);
		if (call->parts > 0 && at_digit(p)) {
			return parse_numbers(p, call->number, &call->numbers, ')', "");
		}
		if (call->parts == TOPO_MAX_PARTS) {
			return topo_err_at(p->err, topo_column(p), "more than %d "
					   "parts", TOPO_MAX_PARTS);
		}
		rc = parse_call(p, &call->part[call->parts]);
		if (rc) {
			return rc;
		}
		call->parts++;
	} while (topo_accept(p, ','));
	return topo_accept(p, ')') ? 0 : topo_expected(p, "',' or ')'");
}

/* The 3 of L3(X), or the 1 that L(X) stands for. */
static int parse_repeat(struct topo_parser *p, struct topo_arg *repeat)
{
	*repeat = (struct topo_arg){ .value = 1, .col = topo_column(p) };
	return at_digit(p) ? topo_read_number(p, "a number", repeat) : 0;
}

static int parse_args(struct topo_parser *p, const char *name, struct topo_call *call)
{
	const char *shape = named(name)->shape;
	bool repeats = strchr(shape, 'k') != NULL;
	struct topo_arg repeat;
	int rc = repeats ? parse_repeat(p, &repeat) : 0;

	if (rc) {
		return rc;
	}
	if (*shape == '\0') {
		call->family = named(name);
		return 0;
	}
	if (!topo_accept(p, '(')) {
		return topo_expected(p, "'('");
	}
	if (*shape == 'c') {
		call->family = named(name);
		return topo_read_cayley(p, call);
	}
	rc = *shape == 'x' ? parse_parts(p, call) : parse_plain_args(p, shape, call);
	if (rc == 0 && repeats && call->numbers < TOPO_MAX_ARGS) {
		call->number[call->numbers++] = repeat;
	}
	if (rc) {
		return rc;
	}
	return choose_form(p, name, call);
}

static int parse_call(struct topo_parser *p, struct topo_call **out)
{
	struct topo_call *call = x_new(1, sizeof(*call));
	char name[MAX_NAME];
	int rc;

	skip_blanks(p);
	call->col = topo_column(p);
	if ((rc = parse_name(p, name)) || (rc = parse_args(p, name, call))) {
		call_free(call);
		return rc;
	}
	*out = call;
	return 0;
}

/* One look at the brackets: the parser need not fear for its stack. */
static int check_depth(struct topo_parser *p)
{
	int depth = 0;

	for (const char *c = p->text; *c; c++) {
		depth += (*c == '(') - (*c == ')');
		if (depth > MAX_DEPTH) {
			return err_set(p->err, WEFT_ELIMIT, "column %d: nested "
				       "deeper than %d",
				       (int)(c - p->text) + 1, MAX_DEPTH);
		}
	}
	return strlen(p->text) <= MAX_EXPRESSION ? 0
		: err_set(p->err, WEFT_EINVAL, "longer than %d characters", MAX_EXPRESSION);
}

static int parse_all(struct topo_parser *p, struct topo_call **out)
{
	int rc = check_depth(p);

	if (rc || (rc = parse_call(p, out))) {
		return rc;
	}
	skip_blanks(p);
	if (*p->at) {
		call_free(*out);
		*out = NULL;
		return topo_expected(p, "the end");
	}
	return 0;
}

/* ---- sizes, graphs, names ---- */

/* Operators make their nodes of arcs, pairs or copies of nodes: what a switch or
 * memory becomes there is not said. */
static void check_kinds(struct topo_make *mk)
{
	for (int i = 0; i < mk->call->parts && !mk->keeps_kinds && !mk->rc; i++) {
		if (!topo_is_plain(mk->parts[i])) {
			topo_refuse(mk, mk->call->part[i]->col, "%s takes digraphs of terminals "
				    "only, %s has switches", mk->call->family->name,
				    mk->call->part[i]->family->name);
		}
	}
}

static int build(const struct topo_call *call, struct topo **out, struct err *err)
{
	struct topo *parts[TOPO_MAX_PARTS] = { NULL };
	struct topo_make mk = { .call = call, .size = call->size, .err = err,
				.parts = (const struct topo *const *)parts };
	int rc = 0;

	for (int i = 0; i < call->parts && rc == 0; i++) {
		rc = build(call->part[i], &parts[i], err);
	}
	if (rc || (rc = topo_new((int)call->size.n, &mk.t, err))) {
		goto out;
	}
	mk.t->cayley = call->size.transitive;
	call->family->build(&mk);
	check_kinds(&mk);
	rc = mk.rc;
	if (rc) {
		goto out;
	}
	topo_freeze(mk.t);
	/* A product takes its parts over. */
	for (int i = 0; i < call->parts && mk.factor_times; i++) {
		vec_push(&mk.t->factors, parts[i]);
		parts[i] = NULL;
	}
	mk.t->factor_times = mk.factor_times;
	*out = mk.t;
	mk.t = NULL;
out:
	for (int i = 0; i < call->parts; i++) {
		topo_free(parts[i]);
	}
	topo_free(mk.t);
	return rc;
}

/* Arcs and degree of a graph that only building shows. */
static int learn_size(struct topo_call *call, struct err *err)
{
	struct topo *t;
	int rc = build(call, &t, err);

	if (rc == 0) {
		call->size.m = topo_m(t);
		call->size.degree = topo_regular_degree(t);
		topo_free(t);
	}
	return rc;
}

/* Sizes of a call and its parts, before any memory is spent on arcs. */
static int measure(struct topo_call *call, struct err *err)
{
	struct topo_make mk = { .call = call, .err = err };
	const struct topo_size *size = &call->size;

	for (int i = 0; i < call->parts; i++) {
		int rc = measure(call->part[i], err);

		if (rc) {
			return rc;
		}
	}
	call->family->measure(&mk);
	if (mk.rc) {
		return mk.rc;
	}
	call->size = mk.size;
	if (size->n > TOPO_MAX_NODES) {
		return topo_err_at(err, call->col, "%s has more than %d nodes", call->family->name,
				   TOPO_MAX_NODES);
	}
	if (size->m > TOPO_MAX_ARCS) {
		return err_set(err, WEFT_ELIMIT, "column %d: %s has %lld "
			       "arcs, more than %d", call->col,
			       call->family->name, (long long)size->m,
			       TOPO_MAX_ARCS);
	}
	return size->m == TOPO_ARCS_UNKNOWN ? learn_size(call, err) : 0;
}

static void write_numbers(struct buf *b, const struct topo_arg *v, int n, bool comma)
{
	for (int i = 0; i < n; i++) {
		buf_printf(b, "%s%" PRId64, i || comma ? "," : "", v[i].value);
	}
}

static void write_name(struct buf *b, const struct topo_call *call)
{
	bool repeats = strchr(call->family->shape, 'k') != NULL;
	int numbers = call->numbers - repeats;

	if (call->cayley) {
		topo_write_cayley(call, b);
		return;
	}
	buf_str(b, call->family->name);
	if (repeats && call->number[numbers].value != 1) {
		write_numbers(b, &call->number[numbers], 1, false);
	}
	if (call->family->shape[0] == '\0') {
		return;
	}
	buf_char(b, '(');
	for (int i = 0; i < call->parts; i++) {
		buf_str(b, i ? "," : "");
		write_name(b, call->part[i]);
	}
	write_numbers(b, call->number, numbers, call->parts > 0);
	if (call->has_set) {
		buf_str(b, ",{");
		write_numbers(b, call->set, call->members, false);
		buf_char(b, '}');
	}
	if (call->word[0]) {
		buf_printf(b, ",%s", call->word);
	}
	buf_char(b, ')');
}

static int parse(struct topo_parser *p, struct topo **out, char **name)
{
	struct topo_call *call = NULL;
	struct buf text = { 0 };
	struct topo *t = NULL;
	int rc = parse_all(p, &call);

	if (rc) {
		return rc;
	}
	if ((rc = measure(call, p->err)) || (rc = build(call, &t, p->err))) {
		goto out;
	}
	if (name) {
		write_name(&text, call);
		*name = buf_steal(&text);
	}
	*out = t;
out:
	call_free(call);
	return rc;
}

int topo_parse_size(const char *expr, int64_t *nodes, int64_t *arcs, struct err *err)
{
	struct topo_parser p = { .text = expr, .at = expr, .err = err };
	struct topo_call *call = NULL;
	int rc = parse_all(&p, &call);

	if (!rc && (rc = measure(call, err)) == 0) {
		*nodes = call->size.n;
		*arcs = call->size.m;
	}
	call_free(call);
	if (rc && err) {
		err_wrap(err, "topology '%.60s'", expr);
	}
	return rc;
}

int topo_parse(const char *expr, struct topo **out, char **name, struct err *err)
{
	struct topo_parser p = { .text = expr, .at = expr, .err = err };
	int rc = parse(&p, out, name);

	if (rc && err) {
		err_wrap(err, "topology '%.60s'", expr);
	}
	return rc;
}
