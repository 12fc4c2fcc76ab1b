/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An MSCCL file as the runtimes hold it in memory after they have read it
 * (msccl_parser.cc of Azure/msccl-executor-nccl and of ROCm/rccl): nops become
 * dependencies of what follows, neighbouring `re` into one place become one
 * transmission, and each transmission has the number that its flag will carry.
 * It shares no code with the room. Include after cmocka.h.
 */
#ifndef WEFT_TESTS_UNIT_MSCCL_KERNEL_FILE_H
#define WEFT_TESTS_UNIT_MSCCL_KERNEL_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/vec.h"

#define KERN_MAX_COUNT 72	/* a count is below it */
#define KERN_MAX_STEPS 64	/* so is the number of a step */
#define KERN_MAX_FUSED 16	/* `re` of one transmission */

enum kern_buf { KERN_IN, KERN_OUT, KERN_SCRATCH };

/* What a type of step does. */
struct kern_kind {
	const char *name;
	bool takes, sends;	/* from and to the peers */
	bool reads, writes;	/* src, dst */
};

static const struct kern_kind kern_kinds[] = {
	{ "s", false, true, true, false },   { "r", true, false, false, true },
	{ "rcs", true, true, false, true },  { "rrs", true, true, true, false },
	{ "rrc", true, false, true, true },  { "rrcs", true, true, true, true },
	{ "cpy", false, false, true, true }, { "re", false, false, true, true },
};

struct kern_dep {
	int tb;		/* of all */
	int step;	/* its flag has to say so, or more */
	int setter;	/* the transmission of tb whose flag does, or -1 */
};

/* A transmission. */
struct kern_trans {
	const struct kern_kind *kind;
	int src_buf, dst_buf, src, dst, cnt;
	int s;			/* its number in the file */
	int step;		/* what its flag carries */
	bool flag;		/* it has one */
	int deps, n_deps;	/* of the threadblock's */
	int srcs, n_srcs;	/* `re`: of the threadblock's, chunks of src_buf */
};

struct kern_tb {
	int rank, id, send, recv, chan;
	int to, from;		/* threadblocks at the other ends, or -1 */
	VEC(struct kern_trans) trans;
	VEC(struct kern_dep) deps;
	VEC(int) srcs;
};

struct kern_rank {
	int chunks[3];		/* of each enum kern_buf */
	int first, n;		/* its threadblocks */
};

struct kern_file {
	char coll[32], proto[16];
	int ranks, loop, channels;	/* loop: chunks of the whole vector */
	bool inplace, outofplace;
	long long min_bytes, max_bytes;
	struct kern_rank *rank;
	VEC(struct kern_tb) tbs;
	int max_count;		/* of any transmission */
	char why[256];		/* why it is refused */
};

static inline bool kern_is(const struct kern_file *f, const char *coll)
{
	return strcmp(f->coll, coll) == 0;
}

/* ---- elements ---- */

/* The text between < and > of an element. */
struct kern_element {
	const char *at;
	size_t len;
};

/* True at the next element that opens; *text moves behind it. */
static inline bool kern_next(const char **text, struct kern_element *e)
{
	for (const char *p = *text; (p = strchr(p, '<')); p++) {
		if (p[1] != '/' && p[1] != '!') {
			e->at = p + 1;
			e->len = strcspn(p, ">");
			*text = p + e->len;
			return true;
		}
	}
	return false;
}

static inline bool kern_named(const struct kern_element *e, const char *name)
{
	size_t n = strlen(name);

	return e->len > n && memcmp(e->at, name, n) == 0 && strchr(" />", e->at[n]);
}

/* The value of an attribute; empty when there is none. */
static inline const char *kern_attr(const struct kern_element *e, const char *key)
{
	static char value[256];
	size_t n = strlen(key);

	value[0] = '\0';
	for (const char *p = e->at; p + n + 2 < e->at + e->len; p++) {
		if (p[0] == ' ' && memcmp(p + 1, key, n) == 0 && p[n + 1] == '=') {
			snprintf(value, sizeof(value), "%.*s",
				 (int)strcspn(p + n + 3, "\""), p + n + 3);
			break;
		}
	}
	return value;
}

static inline int kern_int(const struct kern_element *e, const char *key)
{
	return atoi(kern_attr(e, key));
}

static inline bool kern_refuse(struct kern_file *f, const char *what, int rank, int tb, int s)
{
	snprintf(f->why, sizeof(f->why), "rank %d, threadblock %d, step %d: %s", rank, tb, s, what);
	return false;
}

/* ---- what it becomes ---- */

static inline int kern_buf_of(const char *name)
{
	return name[0] == 'i' ? KERN_IN : name[0] == 'o' ? KERN_OUT : KERN_SCRATCH;
}

/* `re` goes on from the transmission before it: the same place, nothing to
 * wait for, and no flag in between. */
static inline bool kern_goes_on(const struct kern_tb *tb, const struct kern_trans *x, bool waits)
{
	const struct kern_trans *last = tb->trans.n ? &tb->trans.v[tb->trans.n - 1] : NULL;

	return last && last->kind == x->kind && strcmp(x->kind->name, "re") == 0 && !waits &&
	       !last->flag && last->dst_buf == x->dst_buf && last->dst == x->dst &&
	       last->src_buf == x->src_buf && tb->srcs.n != KERN_MAX_FUSED;
}

static inline bool kern_fits(const struct kern_rank *r, int buf, int off, int cnt)
{
	return off >= 0 && off + cnt <= r->chunks[buf];
}

/* All that a step needs is there. */
static inline bool kern_step_ok(struct kern_file *f, const struct kern_tb *tb,
				const struct kern_trans *x, bool waits)
{
	const struct kern_rank *r = &f->rank[tb->rank];
	const char *bad = NULL;

	if (x->cnt < 0 || x->cnt >= KERN_MAX_COUNT || x->s >= KERN_MAX_STEPS) {
		bad = "count or number of the step";
	} else if ((x->kind->sends && tb->send < 0) || (x->kind->takes && tb->recv < 0)) {
		bad = "no peer";
	} else if ((x->kind->reads && !kern_fits(r, x->src_buf, x->src, x->cnt)) ||
		   (x->kind->writes && !kern_fits(r, x->dst_buf, x->dst, x->cnt))) {
		bad = "outside the buffer";
	} else if (x->n_deps > 0 && !waits) {
		bad = "nops are followed by a step that waits for nothing";
	}
	return !bad || kern_refuse(f, bad, tb->rank, tb->id, x->s);
}

/* Adds a step to the last threadblock. pending: dependencies of nops before
 * it; number: what the kernel has counted to. */
static inline bool kern_step(struct kern_file *f, const struct kern_element *e, int *pending,
			     int *number)
{
	struct kern_tb *tb = &f->tbs.v[f->tbs.n - 1];
	char type[8];
	struct kern_trans x = {
		.src_buf = kern_buf_of(kern_attr(e, "srcbuf")), .src = kern_int(e, "srcoff"),
		.dst_buf = kern_buf_of(kern_attr(e, "dstbuf")), .dst = kern_int(e, "dstoff"),
		.cnt = kern_int(e, "cnt"), .s = kern_int(e, "s"),
		.flag = kern_int(e, "hasdep"),
	};
	struct kern_dep dep = { kern_int(e, "depid"), kern_int(e, "deps"), -1 };
	bool waits = dep.tb >= 0;

	snprintf(type, sizeof(type), "%s", kern_attr(e, "type"));
	dep.tb += f->rank[tb->rank].first;
	if (waits) {
		vec_push(&tb->deps, dep);
	}
	*pending += waits;
	for (size_t k = 0; k < sizeof(kern_kinds) / sizeof(kern_kinds[0]); k++) {
		if (strcmp(type, kern_kinds[k].name) == 0) {
			x.kind = &kern_kinds[k];
		}
	}
	if (!x.kind) {
		return strcmp(type, "nop") == 0 ||
		       kern_refuse(f, "no such type", tb->rank, tb->id, x.s);
	}
	x.n_deps = *pending;
	x.deps = (int)tb->deps.n - x.n_deps;
	x.srcs = (int)tb->srcs.n;
	x.n_srcs = strcmp(type, "re") == 0;
	if (!kern_step_ok(f, tb, &x, waits)) {
		return false;
	}
	if (x.n_srcs) {
		vec_push(&tb->srcs, x.src);
	}
	f->max_count = x.cnt > f->max_count ? x.cnt : f->max_count;
	if (kern_goes_on(tb, &x, waits)) {
		struct kern_trans *last = &tb->trans.v[tb->trans.n - 1];

		last->cnt = x.cnt;
		last->flag = x.flag;
		last->step = (*number)++;
		last->n_srcs++;
		return true;
	}
	*number += *pending > 0 ? *pending - 1 : 0;
	x.step = (*number)++;
	*pending = 0;
	vec_push(&tb->trans, x);
	return true;
}

static inline bool kern_algo(struct kern_file *f, const struct kern_element *e)
{
	snprintf(f->coll, sizeof(f->coll), "%s", kern_attr(e, "coll"));
	snprintf(f->proto, sizeof(f->proto), "%s", kern_attr(e, "proto"));
	f->loop = kern_int(e, "nchunksperloop");
	f->ranks = kern_int(e, "ngpus");
	f->channels = kern_int(e, "nchannels");
	f->inplace = kern_int(e, "inplace");
	f->outofplace = kern_int(e, "outofplace");
	f->min_bytes = atoll(kern_attr(e, "minBytes"));
	f->max_bytes = atoll(kern_attr(e, "maxBytes"));
	f->rank = calloc((size_t)f->ranks + 1, sizeof(*f->rank));
	return f->rank != NULL;
}

/* ---- both ends of connections and of dependencies ---- */

static inline bool kern_connect(struct kern_file *f)
{
	for (size_t a = 0; a < f->tbs.n; a++) {
		struct kern_tb *t = &f->tbs.v[a];
		const struct kern_rank *r = t->send >= 0 ? &f->rank[t->send] : NULL;

		for (int b = 0; r && b < r->n; b++) {
			struct kern_tb *u = &f->tbs.v[r->first + b];

			if (u->recv == t->rank && u->chan == t->chan) {
				if (t->to >= 0 || u->from >= 0) {
					return kern_refuse(f, "its connection has others", t->rank,
							   t->id, -1);
				}
				t->to = r->first + b;
				u->from = (int)a;
			}
		}
	}
	return true;
}

/* Which transmission's flag lets a dependency pass. */
static inline void kern_find_setter(const struct kern_file *f, struct kern_dep *d)
{
	const struct kern_tb *t = &f->tbs.v[d->tb];

	for (size_t i = 0; i < t->trans.n && d->setter < 0; i++) {
		if (t->trans.v[i].flag && t->trans.v[i].step >= d->step) {
			d->setter = (int)i;
		}
	}
}

static inline bool kern_depend(struct kern_file *f)
{
	for (size_t i = 0; i < f->tbs.n; i++) {
		struct kern_tb *t = &f->tbs.v[i];
		const struct kern_rank *r = &f->rank[t->rank];

		for (size_t k = 0; k < t->deps.n; k++) {
			if (t->deps.v[k].tb >= r->first + r->n) {
				return kern_refuse(f, "waits for no threadblock", t->rank, t->id,
						   -1);
			}
			kern_find_setter(f, &t->deps.v[k]);
		}
	}
	return true;
}

static inline void kern_free(struct kern_file *f)
{
	for (size_t i = 0; i < f->tbs.n; i++) {
		vec_fini(&f->tbs.v[i].trans);
		vec_fini(&f->tbs.v[i].deps);
		vec_fini(&f->tbs.v[i].srcs);
	}
	vec_fini(&f->tbs);
	free(f->rank);
}

static inline bool kern_add_tb(struct kern_file *f, const struct kern_element *e, int rank)
{
	struct kern_tb tb = { .rank = rank, .id = kern_int(e, "id"), .send = kern_int(e, "send"),
			      .recv = kern_int(e, "recv"), .chan = kern_int(e, "chan"),
			      .to = -1, .from = -1 };

	if (tb.id != f->rank[rank].n++ || tb.send >= f->ranks || tb.recv >= f->ranks ||
	    tb.send == rank || tb.recv == rank || tb.chan >= f->channels) {
		return kern_refuse(f, "number, peer or channel", rank, tb.id, -1);
	}
	vec_push(&f->tbs, tb);
	return true;
}

/* The file of a text, which weft wrote; ranks in order. False with f->why;
 * kern_free either way. */
static inline bool kern_read(const char *text, struct kern_file *f)
{
	struct kern_element e;
	int rank = -1, pending = 0, number = 0;
	bool ok = true;

	memset(f, 0, sizeof(*f));
	while (ok && kern_next(&text, &e)) {
		if (kern_named(&e, "algo")) {
			ok = kern_algo(f, &e);
		} else if (kern_named(&e, "gpu")) {
			ok = ++rank == kern_int(&e, "id") && rank < f->ranks;
			f->rank[rank] = (struct kern_rank){
				{ kern_int(&e, "i_chunks"), kern_int(&e, "o_chunks"),
				  kern_int(&e, "s_chunks") }, (int)f->tbs.n, 0 };
		} else if (kern_named(&e, "tb")) {
			ok = kern_add_tb(f, &e, rank);
			pending = number = 0;
		} else if (kern_named(&e, "step")) {
			ok = kern_step(f, &e, &pending, &number);
		}
	}
	return ok && kern_connect(f) && kern_depend(f);
}

#endif
