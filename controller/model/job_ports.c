/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which job has which port.
 *
 * Circuits have theirs when they are read. Then come jobs that name ports, then
 * those that want a number of them, then those that take what is left of their
 * hosts: so the order of the file makes no difference. Jobs that want a number
 * choose in the order of their names. Those that were requested come after all of
 * the text, so that no request moves a job of the text; behind the number that they want
 * they have the ports that are theirs, and keep these when others end.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/model/private.h"

static bool is_free(const struct model_port *p)
{
	return p->tx_job < 0 && p->rx_job < 0;
}

static void take(struct model_build *b, const struct job_entry *e, int port)
{
	b->ports.v[port].tx_job = b->ports.v[port].rx_job = e->index;
}

static struct conf_place place_of(const struct job_entry *e, int key)
{
	return e->v[key].node ? e->v[key].node->at : e->node->at;
}

/* ---- named ---- */

/* The port of this name of a host, and how many lanes it has; -1: none. */
static int find_port(const struct model_build *b, int host, const char *name, int *lanes)
{
	const struct host_class *c = &b->classes.v[b->class_of.v[host]];
	int port = build_find(&c->ports, name), laned = build_find(&c->laned, name);

	*lanes = port < 0 && laned >= 0 ? c->lanes : 1;
	port = port < 0 ? laned : port;
	return port < 0 ? -1 : b->hosts.v[host].first_port + port;
}

/* A port that is not there, or another's, is reported with how many more there are. */
struct port_faults {
	int missing, taken;		/* how many */
	int host, port;			/* the first missing one's, the first taken */
	const struct name *name;	/* missing */
};

static void report_faults(struct model_build *b, const struct job_entry *e,
			  const struct port_faults *x)
{
	char more[MORE_MAX], line[LINE_TEXT_MAX];

	if (x->missing > 0) {
		conf_error(b->r, x->name->at, WEFT_EINVAL, "%s: ports: host %s has no port "
			   "'%.64s'%s", e->object, b->hosts.v[x->host].name, x->name->text,
			   tally_more(x->missing, more));
	}
	if (x->taken > 0) {
		const struct model_port *p = &b->ports.v[x->port];
		const struct model_job *other = &b->jobs.v[p->tx_job < 0 ? p->rx_job : p->tx_job];

		conf_error(b->r, place_of(e, JOB_PORTS), WEFT_EINVAL, "%s: ports: %s is already "
			   "a port of %s%s%s", e->object, p->name, other->name,
			   build_line("from", other->place, line), tally_more(x->taken, more));
	}
}

/* A slice has all ports of its cubes. */
static bool take_cubes(struct model_build *b, const struct job_entry *e)
{
	struct port_faults x = { 0 };

	for (int i = 0; i < e->job.n_hosts; i++) {
		const struct model_host *h = &b->hosts.v[e->job.hosts[i]];

		for (int p = h->first_port; p < h->first_port + h->n_ports; p++) {
			if (is_free(&b->ports.v[p])) {
				take(b, e, p);
			} else if (x.taken++ == 0) {
				x.port = p;
			}
		}
	}
	report_faults(b, e, &x);
	return x.taken == 0;
}

/* All ports that the job names, of each of its hosts. */
static bool take_named(struct model_build *b, const struct job_entry *e)
{
	struct port_faults x = { 0 };

	for (int i = 0; i < e->job.n_hosts; i++) {
		int host = e->job.hosts[i];
		bool unsure = b->classes.v[b->class_of.v[host]].unsure;

		for (int k = 0; k < e->ports->n; k++) {
			int lanes, port = find_port(b, host, e->ports->v[k].text, &lanes);

			if (port < 0 && !unsure && x.missing++ == 0) {
				x.host = host;
				x.name = &e->ports->v[k];
			}
			for (int l = 0; port >= 0 && l < lanes; l++) {
				if (is_free(&b->ports.v[port + l])) {
					take(b, e, port + l);
				} else if (x.taken++ == 0) {
					x.port = port + l;
				}
			}
		}
	}
	report_faults(b, e, &x);
	return x.missing == 0 && x.taken == 0;
}

/* ---- a number ---- */

/* A port that may be the job's: with fibres both ways, and not known to be dead. */
static bool is_fit(const struct model_build *b, const struct job_entry *e, int port)
{
	const struct model_port *p = &b->ports.v[port];

	return (is_free(p) || p->tx_job == e->index) && p->tx_device >= 0 && p->rx_device >= 0 &&
	       !build_is_dead(b, port, true) && !build_is_dead(b, port, false);
}

/* The job's port of this name, "HOST.PORT", -1: it has no such host or port. */
static int find_kept(const struct model_build *b, const bool *is_host, const char *word, size_t len)
{
	const size_t n = strcspn(word, ".");
	char host[CONF_MAX_NAME + 1], name[2 * CONF_MAX_NAME];
	int at, lanes;

	if (n >= len || n >= sizeof(host) || len - n > sizeof(name)) {
		return -1;
	}
	snprintf(host, sizeof(host), "%.*s", (int)n, word);
	snprintf(name, sizeof(name), "%.*s", (int)(len - n - 1), word + n + 1);
	at = build_find(&b->f->hosts, host);
	return at >= 0 && is_host[at] ? find_port(b, at, name, &lanes) : -1;
}

/* The ports that a requested job has had are its own again, where they are as fit as then. */
static void take_kept(struct model_build *b, const struct job_entry *e)
{
	bool *is_host = conf_arena_alloc(&b->r->work, b->hosts.n + 1, sizeof(*is_host));
	const char *word = e->request ? e->request->ports : "";

	for (int i = 0; i < e->job.n_hosts; i++) {
		is_host[e->job.hosts[i]] = true;
	}
	for (word += build_number_len(word); *word;) {
		const size_t len = strcspn(++word, " ");
		const int port = find_kept(b, is_host, word, len);

		if (port >= 0 && is_fit(b, e, port)) {
			take(b, e, port);
		}
		word += len;
	}
}

/* Writes these behind the number. */
static void write_kept(const struct model_build *b, const struct job_entry *e)
{
	struct buf text = { 0 };

	buf_printf(&text, "%d", e->n_ports);
	for (int i = 0; i < e->job.n_hosts; i++) {
		const struct model_host *h = &b->hosts.v[e->job.hosts[i]];

		for (int p = h->first_port; p < h->first_port + h->n_ports; p++) {
			if (b->ports.v[p].tx_job == e->index) {
				buf_printf(&text, " %s", b->ports.v[p].name);
			}
		}
	}
	free(e->request->ports);
	e->request->ports = buf_steal(&text);
}

/* The device that such a port is on with both sides, -1: not one. */
static int only_device(const struct model_build *b, const struct job_entry *e, int port)
{
	const struct model_port *p = &b->ports.v[port];

	return is_fit(b, e, port) && p->rx_device == p->tx_device ? p->tx_device : -1;
}

/* The device at which all hosts of the job may have as many ports as it wants, of several the
 * first with most of those that it has; -1: none. O(ports + devices). */
static int common_device(const struct model_build *b, const struct job_entry *e)
{
	int *n = conf_arena_alloc(&b->r->work, b->devices.n + 1, sizeof(*n));
	int *hosts = conf_arena_alloc(&b->r->work, b->devices.n + 1, sizeof(*hosts));
	int *kept = conf_arena_alloc(&b->r->work, b->devices.n + 1, sizeof(*kept)), best = -1;

	for (int i = 0; i < e->job.n_hosts; i++) {
		const struct model_host *h = &b->hosts.v[e->job.hosts[i]];

		for (int p = h->first_port; p < h->first_port + h->n_ports; p++) {
			int d = only_device(b, e, p);

			if (d >= 0 && ++n[d] == e->n_ports) {
				hosts[d]++;
			}
			kept[d < 0 ? (int)b->devices.n : d] += !is_free(&b->ports.v[p]);
		}
		for (int p = h->first_port; p < h->first_port + h->n_ports; p++) {
			int d = only_device(b, e, p);

			n[d < 0 ? (int)b->devices.n : d] = 0;
		}
	}
	for (int d = 0; d < (int)b->devices.n; d++) {
		if (hosts[d] == e->job.n_hosts && (best < 0 || kept[d] > kept[best])) {
			best = d;
		}
	}
	return best;
}

/* How many ports of the host are the job's; all that are not at the device (-1: any), or too
 * many, are given back. */
static int keep_ports(struct model_build *b, const struct job_entry *e, const struct model_host *h,
		      int device)
{
	int n = 0;

	for (int p = h->first_port; p < h->first_port + h->n_ports; p++) {
		struct model_port *port = &b->ports.v[p];

		if (port->tx_job != e->index) {
			continue;
		}
		if (n < e->n_ports && (device < 0 || only_device(b, e, p) == device)) {
			n++;
		} else {
			port->tx_job = port->rx_job = -1;
		}
	}
	return n;
}

/* Whether a job has as many ports of each host as it wants. */
static bool has_number(const struct model_build *b, const struct job_entry *e)
{
	bool all = true;

	for (int i = 0; i < e->job.n_hosts && all; i++) {
		const struct model_host *h = &b->hosts.v[e->job.hosts[i]];
		int n = 0;

		for (int p = h->first_port; p < h->first_port + h->n_ports; p++) {
			n += b->ports.v[p].tx_job == e->index;
		}
		all = n == e->n_ports;
	}
	return all;
}

/* Those that the job has, and else the lowest ports of each host that are left, at one device
 * where that can be. */
static bool take_number(struct model_build *b, const struct job_entry *e)
{
	int device = has_number(b, e) ? -1 : common_device(b, e), first = -1, left = 0, n_short = 0;
	char more[MORE_MAX];

	for (int i = 0; i < e->job.n_hosts; i++) {
		const struct model_host *h = &b->hosts.v[e->job.hosts[i]];
		int n = keep_ports(b, e, h, device);

		for (int p = h->first_port; p < h->first_port + h->n_ports && n < e->n_ports; p++) {
			if (is_free(&b->ports.v[p]) && is_fit(b, e, p) &&
			    (device < 0 || only_device(b, e, p) == device)) {
				take(b, e, p);
				n++;
			}
		}
		if (n < e->n_ports && n_short++ == 0) {
			first = e->job.hosts[i];
			left = n;
		}
	}
	if (n_short > 0) {
		conf_error(b->r, place_of(e, JOB_PORTS), WEFT_EINVAL, "%s: ports: %d of each host, "
			   "and of %s there are %d left%s", e->object, e->n_ports,
			   b->hosts.v[first].name, left, tally_more(n_short, more));
	} else if (e->request) {
		write_kept(b, e);
	}
	return n_short == 0;
}

/* ---- what is left ---- */

/* What is left of a host becomes this job's. Nothing is: returns a job that has some of it,
 * else -1. */
static int take_left(struct model_build *b, const struct job_entry *e, int host)
{
	const struct model_host *h = &b->hosts.v[host];
	int other = -1, n = 0;

	for (int p = h->first_port; p < h->first_port + h->n_ports; p++) {
		const struct model_port *port = &b->ports.v[p];

		if (is_free(port)) {
			take(b, e, p);
			n++;
		} else {
			other = port->tx_job < 0 ? port->rx_job : port->tx_job;
		}
	}
	return n > 0 ? -1 : other;
}

/* Whether at least one fibre leaves the host by a port of the job (-1: any) and one
 * arrives. */
static bool has_light(const struct model_build *b, int host, int job)
{
	const struct model_host *h = &b->hosts.v[host];
	bool tx = false, rx = false;

	for (int p = h->first_port; p < h->first_port + h->n_ports; p++) {
		const struct model_port *port = &b->ports.v[p];

		tx |= port->tx_device >= 0 && (job < 0 || port->tx_job == job);
		rx |= port->rx_device >= 0 && (job < 0 || port->rx_job == job);
	}
	return tx && rx;
}

/* A report about the first of n hosts that something is wrong with. */
static void report_hosts(struct model_build *b, const struct job_entry *e, int first,
			 int n, const char *fact)
{
	char more[MORE_MAX];

	conf_error(b->r, place_of(e, JOB_NODES), WEFT_EINVAL, "%s: nodes: host %s %s%s", e->object,
		   b->hosts.v[first].name, fact, tally_more(n, more));
}

/* Hosts of a job on switches need a fibre each way. Not judged while fibres could not be
 * read in full. */
static void check_fibred(struct model_build *b, const struct job_entry *e, int job)
{
	int first = -1, n = 0;

	for (int i = 0; i < e->job.n_hosts && !b->fibres_unsure; i++) {
		if (!has_light(b, e->job.hosts[i], job)) {
			first = n++ ? first : e->job.hosts[i];
		}
	}
	if (n > 0) {
		report_hosts(b, e, first, n, job < 0 || !e->v[JOB_PORTS].node ?
			     "has no fibres to and from a device" :
			     "has no fibres to and from a device at these ports");
	}
}

/* A job without the key has all that its hosts have left. False when one has none. */
static bool take_rest(struct model_build *b, const struct job_entry *e)
{
	int first = -1, n = 0, of_first = -1;
	char fact[160], line[LINE_TEXT_MAX];

	for (int i = 0; i < e->job.n_hosts; i++) {
		int other = take_left(b, e, e->job.hosts[i]);

		if (other >= 0) {
			of_first = n ? of_first : other;
			first = n++ ? first : e->job.hosts[i];
		}
	}
	if (n > 0) {
		const struct model_job *other = &b->jobs.v[of_first];

		check_fibred(b, e, -1);
		snprintf(fact, sizeof(fact), "already gives its ports to job %s%s", other->name,
			 build_line("from", other->place, line));
		report_hosts(b, e, first, n, fact);
	}
	return n == 0;
}

/* ---- all ---- */

static int by_job_name(const void *a, const void *b)
{
	const struct job_entry *const *x = a, *const *y = b;

	return strcmp((*x)->job.name, (*y)->job.name);
}

/* Ports that are a job's bound the sum of all graphs. */
static void settle(struct model_build *b, struct job_entry *e, bool has_ports)
{
	if (has_ports) {
		check_fibred(b, e, e->index);
		if (e->job.shape[0]) {
			build_slice_fibres(b, e);
		} else {
			build_topology(b, e);
		}
	}
}

void build_ports(struct model_build *b)
{
	struct job_entry **v = b->entries.v + b->n_settled;
	size_t n = b->entries.n - b->n_settled, counted = 0;
	struct job_entry **numbers = conf_arena_alloc(&b->r->tree, n, sizeof(*numbers));

	for (size_t i = 0; i < n; i++) {
		if (v[i]->job.shape[0]) {
			settle(b, v[i], take_cubes(b, v[i]));
		} else if (v[i]->ports) {
			settle(b, v[i], take_named(b, v[i]));
		} else if (v[i]->n_ports > 0) {
			numbers[counted++] = v[i];
		}
	}
	if (counted > 0) {
		qsort(numbers, counted, sizeof(struct job_entry *), by_job_name);
	}
	for (size_t i = 0; i < counted; i++) {
		take_kept(b, numbers[i]);
		conf_arena_fini(&b->r->work);
	}
	for (size_t i = 0; i < counted; i++) {
		settle(b, numbers[i], take_number(b, numbers[i]));
		conf_arena_fini(&b->r->work);
	}
	for (size_t i = 0; i < n; i++) {
		if (!v[i]->ports && v[i]->n_ports == 0 && !v[i]->job.shape[0]) {
			settle(b, v[i], take_rest(b, v[i]));
		}
	}
	b->n_settled = b->entries.n;
}

/* ---- lists ---- */

/* The jobs that either side of a port is of: one, two or none. */
static int jobs_of_port(const struct model_port *p, int jobs[2])
{
	int n = 0;

	if (p->tx_job >= 0) {
		jobs[n++] = p->tx_job;
	}
	if (p->rx_job >= 0 && p->rx_job != p->tx_job) {
		jobs[n++] = p->rx_job;
	}
	return n;
}

/* Hosts of a job of circuits: those of its ports. */
static void list_hosts(struct model_build *b, struct model_job *job)
{
	job->hosts = conf_arena_alloc(b->r->keep, (size_t)job->n_ports, sizeof(int));
	for (int i = 0; i < job->n_ports; i++) {
		int host = b->ports.v[job->ports[i]].host;

		if (job->n_hosts == 0 || job->hosts[job->n_hosts - 1] != host) {
			job->hosts[job->n_hosts++] = host;
		}
	}
}

void build_port_lists(struct model_build *b)
{
	int jobs[2];

	for (size_t p = 0; p < b->ports.n; p++) {
		for (int n = jobs_of_port(&b->ports.v[p], jobs); n > 0; n--) {
			b->jobs.v[jobs[n - 1]].n_ports++;
		}
	}
	for (size_t i = 0; i < b->links.n; i++) {
		b->jobs.v[b->links.v[i].job].n_links++;
	}
	for (size_t j = 0; j < b->jobs.n; j++) {
		struct model_job *job = &b->jobs.v[j];

		job->ports = conf_arena_alloc(b->r->keep, (size_t)job->n_ports, sizeof(int));
		job->links = conf_arena_alloc(b->r->keep, (size_t)job->n_links,
					      sizeof(*job->links));
		job->n_ports = job->n_links = 0;
	}
	for (size_t p = 0; p < b->ports.n; p++) {
		for (int n = jobs_of_port(&b->ports.v[p], jobs); n > 0; n--) {
			struct model_job *job = &b->jobs.v[jobs[n - 1]];

			job->ports[job->n_ports++] = (int)p;
		}
	}
	for (size_t i = 0; i < b->links.n; i++) {
		struct model_job *job = &b->jobs.v[b->links.v[i].job];

		job->links[job->n_links++] = b->links.v[i].link;
	}
	for (size_t j = 0; j < b->jobs.n; j++) {
		if (b->jobs.v[j].kind == MODEL_CIRCUITS) {
			list_hosts(b, &b->jobs.v[j]);
		}
	}
}
