/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Execution plans from JSON. Only what weft writes is read: a key that could
 * change the meaning of another is refused, not ignored, and errors name their
 * place. Tests read what weft wrote, and prove that again.
 */
#ifndef WEFT_TESTS_UNIT_MSCCLPP_MSCCLPP_READ_H
#define WEFT_TESTS_UNIT_MSCCLPP_MSCCLPP_READ_H

#include <jansson.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collective/schedule/schedule.h"
#include "runtime/mscclpp/mscclpp.h"
#include "lib/base/alloc.h"

/* Where in the file, for errors. */
struct place {
	int rank, tb, op;	/* or -1 */
};

static int refuse(const struct place *at, struct err *err, const char *key,
		  const char *what)
{
	char where[96] = "";

	if (at->op >= 0) {
		snprintf(where, sizeof(where),
			 "gpus[%d].threadblocks[%d].ops[%d].", at->rank,
			 at->tb, at->op);
	} else if (at->tb >= 0) {
		snprintf(where, sizeof(where), "gpus[%d].threadblocks[%d].",
			 at->rank, at->tb);
	} else if (at->rank >= 0) {
		snprintf(where, sizeof(where), "gpus[%d].", at->rank);
	}
	return err_set(err, WEFT_EINVAL, "%s%.64s: %s", where, key, what);
}

/* All keys of obj are in the NULL-terminated list. */
static int only_keys(const struct place *at, const json_t *obj,
		     const char *const *keys, struct err *err)
{
	const char *key;
	json_t *value;

	if (!json_is_object(obj)) {
		return refuse(at, err, "?", "expected an object");
	}
	json_object_foreach ((json_t *)obj, key, value) {
		int i = 0;

		while (keys[i] && strcmp(keys[i], key) != 0) {
			i++;
		}
		if (!keys[i]) {
			return refuse(at, err, key,
				      "not among the keys that weft reads");
		}
	}
	return 0;
}

static int get_int(const struct place *at, const json_t *obj, const char *key,
		   int64_t min, int64_t max, int64_t *out, struct err *err)
{
	const json_t *v = json_object_get(obj, key);

	if (!json_is_integer(v) || json_integer_value(v) < min ||
	    json_integer_value(v) > max) {
		return refuse(at, err, key, v ? "not a whole number in range"
					      : "is missing");
	}
	*out = json_integer_value(v);
	return 0;
}

static int get_int32(const struct place *at, const json_t *obj,
		     const char *key, int64_t min, int64_t max, int32_t *out,
		     struct err *err)
{
	int64_t v = 0;
	int rc = get_int(at, obj, key, min, max, &v, err);

	*out = (int32_t)v;
	return rc;
}

/* The key has just this value. */
static int expect(const struct place *at, const json_t *obj, const char *key,
		  const char *value, struct err *err)
{
	const char *text = json_string_value(json_object_get(obj, key));

	if (!text || strcmp(text, value) != 0) {
		char what[96];

		snprintf(what, sizeof(what), "weft reads \"%s\" only", value);
		return refuse(at, err, key, what);
	}
	return 0;
}

/* An array; a missing one is empty when it may be. */
static int get_array(const struct place *at, const json_t *obj,
		     const char *key, bool may_miss, const json_t **out,
		     struct err *err)
{
	*out = json_object_get(obj, key);
	return json_is_array(*out) || (!*out && may_miss)
		       ? 0 : refuse(at, err, key, "expected an array");
}

static int get_buffer(const struct place *at, const json_t *obj, uint8_t *buf,
		      struct err *err)
{
	const char *text = json_string_value(json_object_get(obj, "type"));
	const char *all = "ios", *found = NULL;

	if (text && strlen(text) == 1) {
		found = strchr(all, text[0]);
	}
	if (!found) {
		return refuse(at, err, "type", "is not i, o or s");
	}
	*buf = (uint8_t)(found - all);
	return 0;
}

/* Numbers of an array, each from 0 to max, at most `most` of them. */
static int get_numbers(const struct place *at, const json_t *list,
		       const char *key, int64_t max, int most, int32_t *out,
		       int *n, struct err *err)
{
	*n = 0;
	if (json_array_size(list) > (size_t)most) {
		return refuse(at, err, key, "too many for MSCCL++");
	}
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *v = json_array_get(list, i);

		if (!json_is_integer(v) || json_integer_value(v) < 0 ||
		    json_integer_value(v) > max) {
			return refuse(at, err, key,
				      "not a whole number in range");
		}
		out[(*n)++] = (int32_t)json_integer_value(v);
	}
	return 0;
}

/* ---- operations ---- */

static int read_ref(const struct place *at, const json_t *v,
		    struct mscclpp_ref *x, struct err *err)
{
	static const char *const keys[] = { "type", "buffer_id", "index",
					    "size", NULL };
	int32_t id = 0;
	int rc = only_keys(at, v, keys, err);

	x->remote = json_object_get(v, "buffer_id") != NULL;
	if (!rc && x->remote && json_object_get(v, "type")) {
		rc = refuse(at, err, "type", "a local and a remote buffer");
	}
	if (!rc && x->remote) {
		rc = get_int32(at, v, "buffer_id", 0,
			       MSCCLPP_MAX_CHANNELS - 1, &id, err);
		x->buf = (uint8_t)id;
	} else if (!rc) {
		rc = get_buffer(at, v, &x->buf, err);
	}
	if (rc || (rc = get_int32(at, v, "index", 0, INT32_MAX, &x->index, err))) {
		return rc;
	}
	return get_int32(at, v, "size", 1, INT32_MAX, &x->size, err);
}

static int read_refs(const struct place *at, const json_t *obj,
		     const char *key, struct mscclpp_ref *out, uint8_t *n,
		     struct err *err)
{
	const json_t *list;
	int rc = get_array(at, obj, key, true, &list, err);

	if (!rc && json_array_size(list) > MSCCLPP_MAX_REFS) {
		rc = refuse(at, err, key, "more than 10 buffers");
	}
	for (size_t i = 0; i < json_array_size(list) && !rc; i++) {
		rc = read_ref(at, json_array_get(list, i), &out[(*n)++], err);
	}
	return rc;
}

static int read_ids(const struct place *at, const json_t *obj,
		    struct mscclpp_op *op, struct err *err)
{
	bool sems = op->name == MSCCLPP_ACQUIRE || op->name == MSCCLPP_RELEASE;
	const char *key = sems ? "semaphore_ids" : "channel_ids";
	int most = sems ? MSCCLPP_MAX_SEMS : MSCCLPP_MAX_IDS, n = 0;
	int32_t ids[MSCCLPP_MAX_SEMS];
	const json_t *list;
	int rc;

	if ((rc = get_array(at, obj, key, true, &list, err)) ||
	    (rc = get_numbers(at, list, key, INT16_MAX, most, ids, &n, err))) {
		return rc;
	}
	for (int i = 0; i < n; i++) {
		op->ids[i] = (int16_t)ids[i];
	}
	op->n_ids = (uint8_t)n;
	if (sems || n == 0) {
		return 0;
	}
	return expect(at, obj, "channel_type", "port", err);
}

static int read_op(const struct place *at, const json_t *v,
		   struct mscclpp_op *op, struct err *err)
{
	static const char *const channels[] = {
		"name", "src_buff", "dst_buff", "channel_ids", "channel_type",
		NULL };
	static const char *const sums[] = { "name", "src_buff", "dst_buff",
					    "reduce_op", NULL };
	static const char *const sems[] = { "name", "semaphore_ids", NULL };
	const char *const *keys = channels;
	const char *text = json_string_value(json_object_get(v, "name"));
	int name = 0, rc;

	while (text && name < MSCCLPP_NAMES &&
	       strcmp(mscclpp_op_name(name), text) != 0) {
		name++;
	}
	if (!text || name == MSCCLPP_NAMES) {
		return refuse(at, err, "name", "not among the operations that "
			      "weft reads");
	}
	*op = (struct mscclpp_op){ .name = (uint8_t)name };
	if (name == MSCCLPP_REDUCE) {
		keys = sums;
	} else if (name >= MSCCLPP_ACQUIRE) {
		keys = sems;
	}
	if ((rc = only_keys(at, v, keys, err)) ||
	    (rc = read_refs(at, v, "src_buff", op->src, &op->n_src, err)) ||
	    (rc = read_refs(at, v, "dst_buff", op->dst, &op->n_dst, err)) ||
	    (rc = read_ids(at, v, op, err)) || name != MSCCLPP_REDUCE) {
		return rc;
	}
	return expect(at, v, "reduce_op", "sum", err);
}

/* ---- a rank ---- */

/* One entry {type_key: "port", ids_key: [...]}, or none. */
static int read_uses(const struct place *at, const json_t *tb,
		     const char *key, const char *type_key,
		     const char *ids_key, int32_t *out, int *n,
		     struct err *err)
{
	const char *const keys[] = { type_key, ids_key, NULL };
	const json_t *list, *ids, *use;
	int rc = get_array(at, tb, key, false, &list, err);

	if (rc || json_array_size(list) == 0) {
		return rc;
	}
	use = json_array_get(list, 0);
	if (json_array_size(list) > 1) {
		return refuse(at, err, key, "weft reads one entry");
	}
	if ((rc = only_keys(at, use, keys, err)) ||
	    (rc = expect(at, use, type_key, "port", err)) ||
	    (rc = get_array(at, use, ids_key, false, &ids, err))) {
		return rc;
	}
	return get_numbers(at, ids, ids_key, INT32_MAX, MSCCLPP_MAX_CHANNELS,
			   out, n, err);
}

static int read_tb(struct place *at, const json_t *v, struct mscclpp_tb *tb,
		   struct err *err)
{
	static const char *const keys[] = { "id", "ops", "channels",
					    "remote_buffer_refs", NULL };
	const json_t *ops = NULL;
	int32_t id;
	int rc;

	if ((rc = only_keys(at, v, keys, err)) ||
	    (rc = get_int32(at, v, "id", at->tb, at->tb, &id, err)) ||
	    (rc = read_uses(at, v, "channels", "channel_type", "channel_ids",
			    tb->chans, &tb->n_chans, err)) ||
	    (rc = read_uses(at, v, "remote_buffer_refs",
			    "access_channel_type", "remote_buffer_ids",
			    tb->remotes, &tb->n_remotes, err)) ||
	    (rc = get_array(at, v, "ops", false, &ops, err))) {
		return rc;
	}
	for (size_t i = 0; i < json_array_size(ops) && !rc; i++) {
		struct mscclpp_op op;

		at->op = (int)i;
		rc = read_op(at, json_array_get(ops, i), &op, err);
		if (!rc) {
			vec_push(&tb->ops, op);
		}
	}
	at->op = -1;
	return rc;
}

static int read_channels(const struct place *at, const json_t *v,
			 struct mscclpp_gpu *g, struct err *err)
{
	static const char *const keys[] = { "channel_type", "connected_to",
					    NULL };
	const json_t *list, *to = NULL;
	int rc = get_array(at, v, "channels", false, &list, err);

	for (size_t i = 0; i < json_array_size(list) && !rc; i++) {
		const json_t *c = json_array_get(list, i);

		if ((rc = only_keys(at, c, keys, err)) ||
		    (rc = expect(at, c, "channel_type", "port", err)) ||
		    (rc = get_array(at, c, "connected_to", false, &to, err))) {
			return rc;
		}
		for (size_t k = 0; k < json_array_size(to) && !rc; k++) {
			int32_t peer;
			int n;

			json_t *one = x_have(json_pack("[O]", json_array_get(to, k)));

			rc = get_numbers(at, one, "connected_to", INT32_MAX, 1, &peer, &n, err);
			json_decref(one);
			if (!rc) {
				vec_push(&g->chans, peer);
			}
		}
	}
	return rc;
}

static int read_remotes(const struct place *at, const json_t *v,
			struct mscclpp_gpu *g, struct err *err)
{
	static const char *const keys[] = { "rank", "type",
					    "access_channel_types", NULL };
	const json_t *list;
	int rc = get_array(at, v, "remote_buffers", false, &list, err);

	for (size_t i = 0; i < json_array_size(list) && !rc; i++) {
		const json_t *b = json_array_get(list, i);
		const json_t *by = json_object_get(b, "access_channel_types");
		const char *type = json_string_value(json_array_get(by, 0));
		struct mscclpp_remote r = { 0 };

		if ((rc = only_keys(at, b, keys, err)) ||
		    (rc = get_int32(at, b, "rank", 0, INT32_MAX, &r.rank, err)) ||
		    (rc = get_buffer(at, b, &r.buf, err))) {
			return rc;
		}
		if (json_array_size(by) != 1 || !type ||
		    strcmp(type, "port") != 0) {
			return refuse(at, err, "access_channel_types",
				      "weft reads [\"port\"] only");
		}
		vec_push(&g->remotes, r);
	}
	return rc;
}

static int read_sems(const struct place *at, const json_t *v,
		     struct mscclpp_gpu *g, struct err *err)
{
	static const char *const keys[] = { "init_value", NULL };
	const json_t *list;
	int rc = get_array(at, v, "semaphores", true, &list, err);

	for (size_t i = 0; i < json_array_size(list) && !rc; i++) {
		const json_t *s = json_array_get(list, i);
		int32_t first;

		if ((rc = only_keys(at, s, keys, err)) ||
		    (rc = get_int32(at, s, "init_value", 0, INT16_MAX, &first,
				    err))) {
			return rc;
		}
		vec_push(&g->sems, first);
	}
	return rc;
}

static int read_gpu(int rank, const json_t *v, struct mscclpp_gpu *g,
		    struct err *err)
{
	static const char *const keys[] = {
		"id", "input_chunks", "output_chunks", "scratch_chunks",
		"threadblocks", "channels", "remote_buffers", "semaphores",
		NULL };
	static const char *const sizes[] = { "input_chunks", "output_chunks",
					     "scratch_chunks" };
	struct place at = { rank, -1, -1 };
	const json_t *tbs = NULL;
	int32_t id;
	int rc;

	if ((rc = only_keys(&at, v, keys, err)) ||
	    (rc = get_int32(&at, v, "id", rank, rank, &id, err))) {
		return rc;
	}
	for (int i = 0; i < 3 && !rc; i++) {
		/* The executor divides by the first two. */
		rc = get_int32(&at, v, sizes[i], i < 2, INT32_MAX / 2,
			       &g->chunks[i], err);
	}
	if (rc || (rc = read_channels(&at, v, g, err)) ||
	    (rc = read_remotes(&at, v, g, err)) ||
	    (rc = read_sems(&at, v, g, err)) ||
	    (rc = get_array(&at, v, "threadblocks", false, &tbs, err))) {
		return rc;
	}
	for (size_t i = 0; i < json_array_size(tbs) && !rc; i++) {
		vec_push(&g->tbs, (struct mscclpp_tb){ .n_chans = 0 });
		at.tb = (int)i;
		rc = read_tb(&at, json_array_get(tbs, i), &g->tbs.v[i], err);
	}
	return rc;
}

/* ---- the head ---- */

static int read_kind(const struct place *at, const json_t *root,
		     struct mscclpp *out, struct err *err)
{
	const char *text = json_string_value(json_object_get(root,
							     "collective"));

	for (int k = COLL_ALLGATHER; text && k <= COLL_BROADCAST; k++) {
		if (strcmp(text, lower_kind_name(k)) == 0) {
			out->kind = (enum coll_kind)k;
			return out->kind == COLL_BROADCAST
				? get_int32(at, root, "root", 0,
					    out->ranks - 1, &out->root, err)
				: 0;
		}
	}
	return refuse(at, err, "collective", "not one that weft reads");
}

/* Settings with which weft's understanding of a plan holds. */
static int read_settings(const struct place *at, const json_t *root,
			 struct mscclpp *out, struct err *err)
{
	static const char *const off[] = { "reuse_resources",
					   "use_double_scratch_buffer" };
	const json_t *inplace = json_object_get(root, "inplace");
	int64_t v = 0;
	int rc = expect(at, root, "protocol", "Simple", err);

	for (int i = 0; i < 2 && !rc; i++) {
		if (!json_is_false(json_object_get(root, off[i]))) {
			rc = refuse(at, err, off[i], "weft reads false only");
		}
	}
	if (rc || (rc = get_int(at, root, "buffer_alignment", 16, 16, &v, err)) ||
	    (rc = get_int(at, root, "num_threads_per_block", 32, 1024, &v, err)) ||
	    (rc = get_int(at, root, "min_message_size", 0, INT64_MAX, &v, err)) ||
	    (rc = get_int(at, root, "max_message_size", 0, INT64_MAX, &v, err))) {
		return rc;
	}
	out->max_bytes = (uint64_t)v;
	if (!json_is_boolean(inplace)) {
		return refuse(at, err, "inplace", "expected true or false");
	}
	out->inplace = json_is_true(inplace);
	return 0;
}

static int read_name(const struct place *at, const json_t *root,
		     struct mscclpp *out, struct err *err)
{
	const char *name = json_string_value(json_object_get(root, "name"));

	/* Written back without quoting. */
	if (!name || strlen(name) >= sizeof(out->name) ||
	    strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
			 "0123456789-_.") != strlen(name)) {
		return refuse(at, err, "name", "not up to 63 letters, digits, "
			      "-, _ and .");
	}
	strcpy(out->name, name);
	return 0;
}

static int read_root(const json_t *root, struct mscclpp *out, struct err *err)
{
	static const char *const keys[] = {
		"name", "collective", "protocol", "inplace", "root",
		"reuse_resources", "use_double_scratch_buffer",
		"buffer_alignment", "num_threads_per_block",
		"min_message_size", "max_message_size", "gpus", NULL };
	struct place at = { -1, -1, -1 };
	const json_t *gpus = NULL;
	int rc;

	if ((rc = only_keys(&at, root, keys, err)) ||
	    (rc = get_array(&at, root, "gpus", false, &gpus, err))) {
		return rc;
	}
	if (json_array_size(gpus) < 1 ||
	    json_array_size(gpus) > MSCCLPP_MAX_RANKS) {
		return refuse(&at, err, "gpus", "none, or too many");
	}
	out->ranks = (int)json_array_size(gpus);
	out->gpus = x_new((size_t)out->ranks, sizeof(*out->gpus));
	if ((rc = read_name(&at, root, out, err)) ||
	    (rc = read_kind(&at, root, out, err)) ||
	    (rc = read_settings(&at, root, out, err))) {
		return rc;
	}
	for (int r = 0; r < out->ranks && !rc; r++) {
		rc = read_gpu(r, json_array_get(gpus, (size_t)r),
			      &out->gpus[r], err);
	}
	if (!rc) {
		out->loop = out->gpus[0].chunks[out->kind == COLL_ALLGATHER
							? LOWER_OUT
							: LOWER_IN];
	}
	return rc;
}

/* The plan of a text; mscclpp_fini. It does not check what mscclpp_check
 * does. */
static int mscclpp_read(const char *text, size_t len, struct mscclpp *out,
			struct err *err)
{
	json_t *root = coll_json_root(text, len, err);
	int rc;

	*out = (struct mscclpp){ 0 };
	if (!root) {
		return WEFT_EINVAL;
	}
	rc = read_root(root, out, err);
	json_decref(root);
	if (rc) {
		mscclpp_fini(out);
		err_wrap(err, "plan");
	}
	return rc;
}

#endif
