/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A job's schedule run by Open MPI on the hosts of a testbed, over the light of the job.
 *
 * mpirun is started in the namespace of the management network, and on each host by a script
 * instead of ssh, which enters the host's namespace. What starts and ends ranks goes over that
 * network; only what ranks send each other goes over the light: by the addresses of the
 * hosts, of which there are as many as parallel arcs, so that Open MPI sends over each of them.
 * Every host has a folder for temporary files of its own: Open MPI's daemons
 * of one machine would remove each other's.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <ftw.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "controller/testbed/testbed.h"
#include "lib/base/alloc.h"
#include "lib/base/buf.h"
#include "lib/base/file.h"
#include "runtime/launch/launch.h"

#define FOLDER "/tmp/weft-run.XXXXXX"
#define FOLDER_SIZE sizeof(FOLDER)
#define PAUSE_NS 20000000	/* what a barrier leaves in the queues of others is gone then */
#define MCA_MAX 32

/*
 * Open MPI asks the receiver of longer messages first, and that answer waits behind what the
 * receiver itself is sending. It keeps buffers of this size, so it is not for any size.
 */
#define EAGER_MIN 65536
#define EAGER_MAX (4 << 20)
#define EAGER_HEADER 4096

struct testbed_run_state {
	struct testbed *t;
	const struct plan_job *job;
	const struct testbed_run_options *o;
	char folder[FOLDER_SIZE];
	struct buf hosts, agent, nets;	/* texts for mpirun */
	char eager[32], concurrent[32];
	bool shared;			/* ranks have a host in common */
	const char *mca[2 * MCA_MAX + 1];
};

/* ---- files for mpirun ---- */

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	return remove(path) != 0 && errno != ENOENT;
}

static void remove_folder(const char *path)
{
	nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static int write_file(const struct testbed_run_state *s, const char *name, struct buf *text,
		      struct err *err)
{
	char path[FOLDER_SIZE + 16];

	snprintf(path, sizeof(path), "%s/%s", s->folder, name);
	return file_write_atomic(path, text->data, text->len, 0700, err);
}

/* The hosts in the order of ranks. mpirun fills one after the other. */
static int write_hosts(struct testbed_run_state *s, struct err *err)
{
	const struct coll_placement *p = coll_placement(s->job->sched);
	struct buf text = { 0 };
	int n = coll_ranks(s->job->sched), rc = 0;

	for (int first = 0, end; p && first < n; first = end) {
		for (end = first + 1; end < n && strcmp(p->hosts[end], p->hosts[first]) ==
		     0; end++) {
			s->shared = true;
		}
		for (int r = end; r < n && !rc; r++) {
			if (strcmp(p->hosts[r], p->hosts[first]) == 0) {
				rc = err_set(err, WEFT_EUNSUPPORTED,
					     "ranks %d and %d are on %s, and "
					     "others between them are not", first, r,
					     p->hosts[first]);
			}
		}
		buf_printf(&text, "%s slots=%d\n", p->hosts[first], end - first);
	}
	if (!p) {
		rc = err_set(err, WEFT_EINVAL, "the schedule has no hosts");
	}
	if (rc == 0) {
		rc = write_file(s, "hosts", &text, err);
	}
	buf_fini(&text);
	return rc;
}

/* Called with a host and a command for its shell. */
static int write_agent(const struct testbed_run_state *s, struct err *err)
{
	struct buf text = { 0 };
	int rc;

	buf_printf(&text,
		   "host=$1\nshift\nTMPDIR=%s/tmp.$host\nexport TMPDIR\nmkdir -p \"$TMPDIR\"\n"
		   "exec nsenter --net=\"" HOST_NETNS_DIR "/weft.%s.$host\" sh -c \"$*\"\n",
		   s->folder, s->t->fabric->name);
	rc = write_file(s, "agent", &text, err);
	buf_fini(&text);
	return rc;
}

static void add_mca(struct testbed_run_state *s, int *n, const char *name, const char *value)
{
	s->mca[2 * *n] = name;
	s->mca[2 * *n + 1] = value;
	(*n)++;
}

/* The networks of the addresses, for Open MPI to use no other. */
static void list_networks(struct testbed_run_state *s, int addresses)
{
	for (int i = 0; i < addresses; i++) {
		struct in_addr a = { plan_host_address(0, i) & htonl(0xffff0000) };
		char text[INET_ADDRSTRLEN];

		inet_ntop(AF_INET, &a, text, sizeof(text));
		buf_printf(&s->nets, "%s%s/16", i > 0 ? "," : "", text);
	}
}

static void set_parameters(struct testbed_run_state *s)
{
	int64_t eager = s->o->size_bytes;
	int n = 0;

	eager = (eager < EAGER_MIN ? EAGER_MIN : eager > EAGER_MAX ? EAGER_MAX : eager) +
		EAGER_HEADER;
	snprintf(s->eager, sizeof(s->eager), "%lld", (long long)eager);
	snprintf(s->concurrent, sizeof(s->concurrent), "%d", s->t->fabric->n_hosts);
	add_mca(s, &n, "plm_rsh_no_tree_spawn", "1");
	add_mca(s, &n, "plm_rsh_num_concurrent", s->concurrent);
	/* All of it stays in the session of mpirun, and ends with it. */
	add_mca(s, &n, "orte_leave_session_attached", "1");
	add_mca(s, &n, "oob_tcp_if_include", "10.118.0.0/16");
	add_mca(s, &n, "pml", "ob1");
	add_mca(s, &n, "btl", s->shared ? "self,vader,tcp" : "self,tcp");
	add_mca(s, &n, "btl_tcp_if_include", buf_cstr(&s->nets));
	add_mca(s, &n, "btl_tcp_eager_limit", s->eager);
	add_mca(s, &n, "btl_tcp_rndv_eager_limit", s->eager);
	add_mca(s, &n, "btl_tcp_max_send_size", s->eager);
}

static int prepare(struct testbed_run_state *s, int addresses, struct err *err)
{
	int rc;

	if (!mkdtemp(s->folder)) {
		return err_errno(err, WEFT_EIO, errno, "%s", s->folder);
	}
	if ((rc = write_hosts(s, err)) || (rc = write_agent(s, err))) {
		return rc;
	}
	buf_printf(&s->hosts, "%s/hosts", s->folder);
	buf_printf(&s->agent, "/bin/sh %s/agent", s->folder);
	list_networks(s, addresses);
	set_parameters(s);
	return 0;
}

/* ---- the run ---- */

/* Within the management network, and with temporary files in our folder. */
static int launch_there(struct testbed_run_state *s, const struct launch_options *o,
			struct json_t **result, struct err *err)
{
	const char *old = getenv("TMPDIR");
	char *before = old ? x_dup(old) : NULL, name[HOST_NETNS_MAX];
	struct host_net *net;
	int back, rc = host_open(testbed_netns(s->t->fabric, TESTBED_MANAGEMENT, name), &net, err);

	if (rc == 0) {
		rc = host_enter(net, &back, err);
	}
	if (rc == 0) {
		setenv("TMPDIR", s->folder, 1);
		rc = launch_run(o, result, err);
		if (before) {
			setenv("TMPDIR", before, 1);
		} else {
			unsetenv("TMPDIR");
		}
		host_leave(back);
	}
	host_close(net);
	free(before);
	return rc;
}

static int count_drops(struct testbed *t, uint64_t *drops, struct err *err)
{
	int rc = 0;

	*drops = 0;
	for (int i = 0; rc == 0 && i < t->fabric->n_hosts; i++) {
		uint64_t n;

		rc = host_queue_drops(t->hosts[i], &n, err);
		*drops += n;
	}
	return rc;
}

/* Bytes that left by each port since these links were read. */
static int count_bytes(struct testbed *t, const struct host_link *before,
		       struct testbed_run *out, struct err *err)
{
	int rc = testbed_links(t, err);

	for (int i = 0; rc == 0 && i < out->n_arcs; i++) {
		int port = out->arcs[i].tx_port;

		out->arcs[i].bytes = t->tx[port].tx_bytes - before[port].tx_bytes;
	}
	return rc;
}

/* The arcs of the job alone. */
static void list_arcs(const struct plan_job *job, struct testbed_run *out)
{
	struct plan one = { .n_jobs = 1, .jobs = (struct plan_job *)job };
	struct plan_arc *arcs;

	plan_arcs(&one, &arcs, &out->n_arcs);
	out->arcs = x_new((size_t)out->n_arcs + 1, sizeof(*out->arcs));
	for (int i = 0; i < out->n_arcs; i++) {
		out->arcs[i] = (struct testbed_run_arc){ arcs[i].tx_port, arcs[i].rx_port, 0 };
	}
	free(arcs);
}

/* Once with what the ports carry counted; what is asked for of MPI itself afterwards. */
static int measure(struct testbed_run_state *s, struct launch_options *o, struct testbed_run *out,
		   struct err *err)
{
	struct host_link *before;
	uint64_t drops = 0;
	int rc;

	if ((rc = count_drops(s->t, &drops, err)) || (rc = testbed_links(s->t, err))) {
		return rc;
	}
	before = x_new((size_t)s->t->n_ends + 1, sizeof(*before));
	memcpy(before, s->t->tx, (size_t)s->t->n_ends * sizeof(*before));
	if ((rc = launch_there(s, o, &out->result, err)) == 0) {
		rc = count_bytes(s->t, before, out, err);
	}
	free(before);
	if (rc == 0 && s->o->compare) {
		o->own = true;
		rc = launch_there(s, o, &out->compared, err);
	}
	if (rc == 0) {
		rc = count_drops(s->t, &out->drops, err);
		out->drops -= drops;
	}
	return rc;
}

/* What light does not reach is reached over the management network while a program runs: ranks
 * in groups without light between them are one MPI_COMM_WORLD all the same. All addresses of hosts
 * are of 10.0.0.0/8. */
static int set_detour(struct testbed *t, bool on, struct err *err)
{
	int rc = 0;

	for (int h = 0; h < t->fabric->n_hosts && rc == 0; h++) {
		struct host_link *v;
		int n;

		rc = host_links(t->hosts[h], &v, &n, err);
		for (int i = 0; rc == 0 && i < n; i++) {
			if (strcmp(v[i].name, TESTBED_MANAGEMENT_DEV) == 0) {
				rc = host_link_route(t->hosts[h], v[i].ifindex, htonl(10u << 24), 8,
						     on, err);
			}
		}
		free(v);
	}
	return rc;
}

static int run_job(struct testbed_run_state *s, const struct plan_arc *arcs, int n_arcs,
		   struct testbed_run *out, struct err *err)
{
	struct launch_options o = {
		.ranks = coll_ranks(s->job->sched), .steps = coll_steps(s->job->sched),
		.size_bytes = s->o->size_bytes,
		.repeat = s->o->repeat, .barriers = s->o->barriers, .pause_ns = PAUSE_NS,
		.share_cores = true, .limit_ns = s->o->limit_ns, .stop = s->o->stop,
		.program = s->o->program,
	};
	struct buf schedule = { 0 };
	int rc;

	if ((rc = prepare(s, plan_host_addresses(s->t->fabric, arcs, n_arcs), err))) {
		goto out;
	}
	if (!o.program) {
		coll_to_proto(s->job->sched, &schedule);
	}
	o.schedule = schedule.data;
	o.schedule_len = schedule.len;
	o.hosts = buf_cstr(&s->hosts);
	o.agent = buf_cstr(&s->agent);
	o.mca = s->mca;
	rc = measure(s, &o, out, err);
out:
	buf_fini(&schedule);
	return rc;
}

/* That the job can be run so. */
static int check_job(const struct model_fabric *f, const struct plan_job *pj,
		     const struct testbed_run_options *o, struct err *err)
{
	const char *name = f->jobs[pj->job].name;

	if (pj->is_ring) {
		err_set(err, WEFT_EUNSUPPORTED, "job %s: the light of a ring changes from step to "
			"step, and no host waits for it", name);
		err_hint(err, "weft testbed step %s %s --all", f->config.name, name);
		return WEFT_EUNSUPPORTED;
	}
	if (!testbed_has_management(f)) {
		return err_set(err, WEFT_EUNSUPPORTED, "testbeds of more than 1000 hosts have no "
			       "management network, over which ranks are started");
	}
	if (pj->step && !o->program) {
		return err_set(err, WEFT_EUNSUPPORTED, "job %s is a step of several collectives: "
			       "a program runs it", name);
	}
	return coll_refuse_light_changes(pj->sched, "a run", err);
}

#define PROBE_MS 40	/* of frames, one each 10 */
#define PATIENCE_MS 100

static bool was_heard(const struct testbed_probe *p, const struct testbed_run_arc *a)
{
	for (int i = 0; i < p->n_heard; i++) {
		const struct testbed_heard *h = &p->heard[i];

		if (h->from == a->tx_port && h->to == a->rx_port && !h->at_tx) {
			return true;
		}
	}
	return false;
}

/* A rank would wait for ever for what is sent into the dark. */
static int check_light(const struct testbed_run_state *s, const struct testbed_run *r,
		       struct err *err)
{
	const struct model_fabric *f = s->t->fabric;
	const struct testbed_run_arc *first = NULL;
	struct testbed_prober *prober;
	struct testbed_probe probe;
	int rc = testbed_prober_new(s->t, &prober, err), dark = 0;

	if (rc) {
		return rc;
	}
	testbed_probe(prober, PROBE_MS, 10, PATIENCE_MS, s->o->stop, &probe);
	for (int i = 0; i < r->n_arcs; i++) {
		if (!was_heard(&probe, &r->arcs[i])) {
			first = first ? first : &r->arcs[i];
			dark++;
		}
	}
	if (first) {
		rc = err_set(err, WEFT_EUNAVAIL, "job %s: %d of %d arcs are dark: %s hears nothing "
			     "of %s", f->jobs[s->job->job].name, dark, r->n_arcs,
			     f->ports[first->rx_port].name, f->ports[first->tx_port].name);
	}
	testbed_probe_fini(&probe);
	testbed_prober_free(prober);
	return rc;
}

int testbed_run(struct testbed *t, const struct plan *p, const struct plan_job *job,
		const struct testbed_run_options *o, struct testbed_run *out, struct err *err)
{
	struct testbed_run_state s = { .t = t, .job = job, .o = o, .folder = FOLDER };
	struct plan_arc *arcs = NULL;
	int n = 0, routes, rc;

	*out = (struct testbed_run){ 0 };
	if ((rc = check_job(t->fabric, job, o, err))) {
		goto out;
	}
	list_arcs(job, out);
	plan_arcs(p, &arcs, &n);
	if ((rc = check_light(&s, out, err)) || (rc = testbed_route(t, arcs, n, &routes, err))) {
		goto out;
	}
	if (!o->program || (rc = set_detour(t, true, err)) == 0) {
		rc = run_job(&s, arcs, n, out, err);
	}
	if (o->program) {
		set_detour(t, false, rc ? NULL : err);
	}
	if (strcmp(s.folder, FOLDER) != 0) {
		remove_folder(s.folder);
	}
out:
	buf_fini(&s.hosts);
	buf_fini(&s.agent);
	buf_fini(&s.nets);
	free(arcs);
	return rc;
}

void testbed_run_fini(struct testbed_run *r)
{
	json_decref(r->result);
	json_decref(r->compared);
	free(r->arcs);
	*r = (struct testbed_run){ 0 };
}
