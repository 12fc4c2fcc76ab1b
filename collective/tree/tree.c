/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives with a root, and their reverses. */
#include "collective/tree/private.h"

static int check(const struct topo *t, const struct coll_tree_options *opt, struct err *err)
{
	if (!coll_has_root(opt->kind)) {
		return err_set(err, WEFT_EINVAL, "%s has no root", coll_kind_name(opt->kind));
	}
	if (opt->batches < 0 || opt->batches > COLL_TREE_MAX_BATCHES) {
		return err_set(err, WEFT_EINVAL, "%d batches: expected 1 to %d", opt->batches,
			       COLL_TREE_MAX_BATCHES);
	}
	return topo_check_plain(t, coll_kind_name(opt->kind), err);
}

/* One rank has all there is. */
static int make_nothing(const struct topo *t, enum coll_kind kind, struct coll_sched **out,
			struct err *err)
{
	struct topo *copy = NULL;
	int rc = topo_copy(t, &copy, err);

	(void)(rc || (rc = coll_new(kind, copy, 1, 0, 0, out, err)) ||
	       (rc = coll_finish(*out, err)) || (rc = coll_prove(*out, NULL, err)));
	return rc;
}

/* Each rank gets every other's shard by a transfer of its own at least. */
static int check_size(const struct tree_net *net, enum coll_kind kind, struct err *err)
{
	int64_t least = (int64_t)net->ranks * (net->ranks - 1);

	return (kind != COLL_BROADCAST && kind != COLL_REDUCE) || least <= COLL_MAX_XFERS
		       ? 0 : err_set(err, WEFT_ELIMIT, "%s of %d ranks: %lld transfers at least, "
				     "more than %d", coll_kind_name(kind), net->ranks,
				     (long long)least, COLL_MAX_XFERS);
}

/* Broadcast or scatter, whose reverse is what is wanted when `towards`. */
static int make(const struct topo *t, const struct coll_tree_options *opt, bool towards,
		struct coll_sched **out, struct coll_tree_info *info, struct err *err)
{
	struct coll_sched *s = NULL;
	struct tree_net net = { 0 };
	int rc = tree_net_init(&net, t, opt->root, err);

	if (rc == 0) {
		rc = check_size(&net, opt->kind, err);
	}
	if (rc == 0 && net.ranks == 1) {
		rc = make_nothing(t, opt->kind, out, err);
	} else if (rc == 0) {
		rc = opt->kind == COLL_BROADCAST || opt->kind == COLL_REDUCE
			     ? tree_broadcast(t, &net, opt, &s, info, err)
			     : tree_scatter(t, &net, opt, &s, err);
	}
	tree_net_fini(&net);
	if (rc || !towards || !s) {
		*out = towards || !s ? *out : s;
		return rc;
	}
	(void)((rc = coll_reverse(s, out, err)) || (rc = coll_prove(*out, NULL, err)));
	coll_free(s);
	return rc;
}

int coll_tree_make(const struct topo *t, const struct coll_tree_options *opt,
		   struct coll_sched **out, struct coll_tree_info *info, struct err *err)
{
	bool towards = opt->kind == COLL_REDUCE || opt->kind == COLL_GATHER;
	struct topo *back = NULL;
	int rc = check(t, opt, err);

	*out = NULL;
	*info = (struct coll_tree_info){ 0 };
	if (rc || (towards && (rc = topo_transpose(t, &back, NULL, err)))) {
		return rc;
	}
	rc = make(towards ? back : t, opt, towards, out, info, err);
	topo_free(back);
	if (rc) {
		coll_free(*out);
		*out = NULL;
	}
	return rc;
}

int coll_tree_figures(const struct topo *t, const struct coll_tree_options *opt,
		      struct coll_tree_info *info, struct err *err)
{
	struct tree_net net = { 0 };
	struct topo *back = NULL;
	int rc = check(t, opt, err);

	*info = (struct coll_tree_info){ 0 };
	if (rc == 0 && opt->kind != COLL_BROADCAST && opt->kind != COLL_REDUCE) {
		rc = err_set(err, WEFT_EINVAL, "%s has no trees", coll_kind_name(opt->kind));
	}
	if (rc || (opt->kind == COLL_REDUCE && (rc = topo_transpose(t, &back, NULL, err)))) {
		return rc;
	}
	rc = tree_net_init(&net, back ? back : t, opt->root, err);
	if (rc == 0 && net.ranks > 1) {
		rc = tree_broadcast(back ? back : t, &net, opt, NULL, info, err);
	}
	tree_net_fini(&net);
	topo_free(back);
	return rc;
}
