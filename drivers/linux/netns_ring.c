/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A network namespace as a ring of resonators: netdevs, rules between them, and
 * a file for the programs.
 *
 * What each resonator should do follows from the programs' present steps
 * (`modes`); what it does is read from the kernel's rules (`cells`). A change
 * is the difference of the two, applied in two halves: first rules that are not
 * wanted go and receivers go down, so that light that ends is gone before other
 * light comes; then netns_ring_activate() sets what is wanted. The file is
 * written before the first half: after a crash in between, the next session
 * finds rules that differ from the programs, counts them as not locked, and a
 * reload repairs them.
 */
#include "drivers/linux/netns_ring.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "drivers/core/driver.h"
#include "lib/base/alloc.h"
#include "lib/base/buf.h"
#include "lib/base/file.h"

#define PATH_SIZE (sizeof(NETNS_RING_DIR) + HOST_NETNS_MAX + 8)
#define MAX_STATE (256u << 20)
#define MAGIC "weft ring 1"

/* Where all that a netdev receives goes. */
enum target { TO_NONE, TO_OUT, TO_RECEIVER, TO_OTHER };

/* A resonator, as the kernel has it. */
struct cell {
	int t, r, i, o;		/* ifindex, 0: there is none */
	bool receives;		/* r is up */
	enum target from_t, from_i;
};

struct netns_ring {
	char netns[HOST_NETNS_MAX], epoch[DRV_NAME_MAX];
	struct ring_geometry g;
	int lock;
	struct host_net *net;
	struct ring_programs programs;
	uint32_t *steps;	/* [programs.n] */
	size_t n;
	struct cell *cells;	/* [n] */
	uint8_t *modes;		/* [n] wanted */
	bool *used;		/* [n / nodes] a channel of a fibre */
};

/* ---- places ---- */

size_t netns_ring_count(const struct ring_geometry *g)
{
	return (size_t)2 * g->fibres * g->channels * g->nodes;
}

struct ring_setting netns_ring_at(const struct ring_geometry *g, size_t place)
{
	size_t row = place / g->nodes, fibre = row / g->channels;

	return (struct ring_setting){
		.node = (uint16_t)(place % g->nodes),
		.channel = (uint16_t)(row % g->channels),
		.fibre = (uint8_t)(fibre % g->fibres),
		.dir = (uint8_t)(fibre / g->fibres),
	};
}

void netns_ring_name(char buf[HOST_IFNAME_MAX + 8], const char *what, const struct ring_setting *at)
{
	snprintf(buf, HOST_IFNAME_MAX + 8, "%s%u%c%u.%u", what, at->node,
		 at->dir == OPTICS_CW ? '+' : '-', at->fibre, at->channel);
}

size_t netns_ring_next(const struct ring_geometry *g, size_t place)
{
	size_t node = place % g->nodes;
	bool clockwise = place < netns_ring_count(g) / 2;

	return place - node +
	       (node + (clockwise ? 1 : g->nodes - 1u)) % g->nodes;
}

int64_t netns_ring_follow(const struct ring_geometry *g, const uint8_t *modes, size_t place)
{
	size_t at = place;

	do {
		at = netns_ring_next(g, at);
	} while (at != place && modes[at] == 0);
	return modes[at] & RESONATOR_DROP ? (int64_t)at : -1;
}

/* ---- building ---- */

int netns_ring_wire(struct host_net *net, const struct ring_geometry *g, struct err *err)
{
	size_t n = netns_ring_count(g);
	int rc = 0;

	for (size_t k = 0; rc == 0 && k < n; k++) {
		struct ring_setting from = netns_ring_at(g, k);
		struct ring_setting to = netns_ring_at(g, netns_ring_next(g, k));
		char out[HOST_IFNAME_MAX + 8], in[HOST_IFNAME_MAX + 8];

		netns_ring_name(out, "o", &from);
		netns_ring_name(in, "i", &to);
		rc = host_veth_add(net, out, NULL, net, in, NULL, err);
	}
	return rc;
}

int netns_ring_start(struct host_net *net, struct err *err)
{
	struct host_link *v;
	int n, rc = host_links(net, &v, &n, err);

	for (int i = 0; rc == 0 && i < n; i++) {
		char what = v[i].name[0];

		if (what == 'i' || what == 't') {
			rc = host_ingress_add(net, v[i].ifindex, err);
		}
		if (rc == 0 && (what == 'i' || what == 't' || what == 'o')) {
			rc = host_link_set(net, v[i].ifindex, true, err);
		}
	}
	free(v);
	return rc;
}

/* ---- the file ---- */

static void path_of(const char *netns, const char *end, char path[PATH_SIZE])
{
	snprintf(path, PATH_SIZE, NETNS_RING_DIR "/%s%s", netns, end);
}

static int save(const struct netns_ring *r, struct err *err)
{
	struct buf b = { 0 };
	char path[PATH_SIZE];
	uint8_t *bytes = NULL;
	size_t len = 0;
	int rc;

	ring_programs_save(&r->programs, &bytes, &len);
	buf_printf(&b, MAGIC "\n%s\n", r->epoch);
	for (int i = 0; i < r->programs.n; i++) {
		buf_printf(&b, "%" PRIu32 " ", r->steps[i]);
	}
	buf_char(&b, '\n');
	buf_add(&b, bytes, len);
	path_of(r->netns, NETNS_RING_STATE, path);
	rc = file_write_atomic(path, b.data, b.len, FILE_PUBLIC, err);
	buf_fini(&b);
	free(bytes);
	return rc;
}

/* The text up to the end of a line; *at goes behind it. NULL: there is no
 * end. */
static char *line_of(char *data, size_t len, size_t *at)
{
	char *line = data + *at, *end = memchr(line, '\n', len - *at);

	if (!end) {
		return NULL;
	}
	*end = '\0';
	*at = (size_t)(end - data) + 1;
	return line;
}

static int take_steps(struct netns_ring *r, char *text, struct err *err)
{
	r->steps = x_new((size_t)r->programs.n + 1, sizeof(*r->steps));
	for (int i = 0; i < r->programs.n; i++) {
		char *end;
		unsigned long step = strtoul(text, &end, 10);

		if (end == text || step >= r->programs.v[i].steps) {
			return err_set(err, WEFT_EINVAL,
				       "program %s is at no step of it",
				       r->programs.v[i].name);
		}
		r->steps[i] = (uint32_t)step;
		text = end;
	}
	return 0;
}

static int take_state(struct netns_ring *r, char *data, size_t len, struct err *err)
{
	size_t at = 0;
	char *magic = line_of(data, len, &at);
	char *epoch = magic ? line_of(data, len, &at) : NULL;
	char *steps = epoch ? line_of(data, len, &at) : NULL;
	int rc = 0;

	if (!steps || strcmp(magic, MAGIC) != 0) {
		return err_set(err, WEFT_EINVAL, "these are no programs");
	}
	/* Those of an earlier namespace went with its rules. */
	if (strcmp(epoch, r->epoch) == 0) {
		rc = ring_programs_load(&r->programs, (uint8_t *)data + at, len - at, err);
	}
	if (rc == 0) {
		rc = ring_programs_check(&r->programs, &r->g, err);
	}
	if (rc) {
		return rc;
	}
	return take_steps(r, steps, err);
}

static int load(struct netns_ring *r, struct err *err)
{
	char path[PATH_SIZE], *data = NULL;
	size_t len;
	int rc;

	path_of(r->netns, NETNS_RING_STATE, path);
	if (access(path, F_OK) != 0) {
		return take_steps(r, NULL, err);
	}
	rc = file_read(path, MAX_STATE, &data, &len, err);
	if (rc == 0) {
		rc = take_state(r, data, len, err);
		if (rc) {
			err_wrap(err, "%s", path);
		}
	}
	free(data);
	return rc;
}

int netns_ring_forget(const char *prefix, struct err *err)
{
	DIR *dir = opendir(NETNS_RING_DIR);
	char path[sizeof(NETNS_RING_DIR) + NAME_MAX + 2];
	struct dirent *e;
	int rc = 0;

	while (dir && rc == 0 && (e = readdir(dir))) {
		if (strncmp(e->d_name, prefix, strlen(prefix)) != 0) {
			continue;
		}
		snprintf(path, sizeof(path), NETNS_RING_DIR "/%s", e->d_name);
		if (unlink(path) != 0 && errno != ENOENT) {
			rc = err_errno(err, WEFT_EIO, errno, "%s", path);
		}
	}
	if (dir) {
		closedir(dir);
		rmdir(NETNS_RING_DIR);	/* while others have files, it stays */
	}
	return rc;
}

/* ---- what the programs want ---- */

static int add_modes(struct netns_ring *r, int program, struct err *err)
{
	const struct ring_program *p = &r->programs.v[program];
	struct ring_program_reader reader;
	int rc = ring_program_reader_init(&reader, p->bytes, p->len, err);

	for (uint32_t k = 0; rc == 0 && k <= r->steps[program]; k++) {
		rc = ring_program_reader_next(&reader, err);
	}
	for (size_t i = 0; rc == 0 && i < reader.cells.n; i++) {
		const struct ring_cell *c = &reader.cells.v[i];

		r->modes[c->at] = c->mode;
		r->used[c->at / r->g.nodes] = true;
	}
	ring_program_reader_fini(&reader);
	return rc < 0 ? rc : 0;
}

static int find_modes(struct netns_ring *r, struct err *err)
{
	int rc = 0;

	memset(r->modes, 0, r->n);
	memset(r->used, 0, r->n / r->g.nodes);
	for (int i = 0; rc == 0 && i < r->programs.n; i++) {
		rc = add_modes(r, i, err);
	}
	return rc;
}

static enum target want_t(const struct netns_ring *r, size_t place)
{
	return r->modes[place] & RESONATOR_ADD ? TO_OUT : TO_NONE;
}

static enum target want_i(const struct netns_ring *r, size_t place)
{
	if (!r->used[place / r->g.nodes]) {
		return TO_NONE;
	}
	if (r->modes[place] & RESONATOR_DROP) {
		return TO_RECEIVER;
	}
	return r->modes[place] ? TO_NONE : TO_OUT;
}

static bool wants_receiver(const struct netns_ring *r, size_t place)
{
	return r->modes[place] & RESONATOR_DROP;
}

/* ---- what the kernel has ---- */

/* Place of "3+0.5", or -1. */
static int64_t place_of(const struct ring_geometry *g, const char *name)
{
	unsigned int node, fibre, channel;
	char dir, rest;

	if (sscanf(name, "%u%c%u.%u%c", &node, &dir, &fibre, &channel,
		   &rest) != 4 || (dir != '+' && dir != '-') ||
	    node >= g->nodes || fibre >= g->fibres || channel >= g->channels) {
		return -1;
	}
	return (((int64_t)(dir == '-') * g->fibres + fibre) * g->channels +
		channel) * g->nodes + node;
}

static int take_link(struct netns_ring *r, const struct host_link *l, struct err *err)
{
	int64_t place;

	if (!strchr("trio", l->name[0])) {
		return 0;
	}
	place = place_of(&r->g, l->name + 1);
	if (place < 0) {
		return err_set(err, WEFT_EVERIFY, "%s: netdev %s is of no ring "
			       "of %d nodes, %d fibres and %d channels",
			       r->netns, l->name, r->g.nodes, r->g.fibres,
			       r->g.channels);
	}
	switch (l->name[0]) {
	case 't':
		r->cells[place].t = l->ifindex;
		break;
	case 'i':
		r->cells[place].i = l->ifindex;
		break;
	case 'o':
		r->cells[place].o = l->ifindex;
		break;
	default:
		r->cells[place].r = l->ifindex;
		r->cells[place].receives = l->up;
	}
	return 0;
}

static int read_links(struct netns_ring *r, struct err *err)
{
	struct host_link *v;
	int n, rc = host_links(r->net, &v, &n, err);
	size_t missing = 0;

	if (rc) {
		return rc;
	}
	for (int i = 0; rc == 0 && i < n; i++) {
		rc = take_link(r, &v[i], err);
	}
	free(v);
	for (size_t k = 0; rc == 0 && k < r->n; k++) {
		const struct cell *c = &r->cells[k];

		missing += !c->i || !c->o;
	}
	return rc || !missing ? rc :
	       err_set(err, WEFT_EVERIFY, "%s: %zu of %zu resonators have no "
		       "netdevs", r->netns, missing, r->n);
}

static int read_redirect(struct netns_ring *r, int from, const struct cell *c,
		    enum target *target, struct err *err)
{
	struct host_redirect *v;
	int n, rc;

	*target = TO_NONE;
	if (!from) {
		return 0;
	}
	rc = host_redirects(r->net, from, &v, &n, err);
	if (rc == 0 && n) {
		*target = n > 1 ? TO_OTHER : v->to == c->o ? TO_OUT :
		       v->to == c->r ? TO_RECEIVER : TO_OTHER;
	}
	free(v);
	return rc;
}

static int read_rules(struct netns_ring *r, struct err *err)
{
	int rc = read_links(r, err);

	for (size_t k = 0; rc == 0 && k < r->n; k++) {
		struct cell *c = &r->cells[k];

		rc = read_redirect(r, c->t, c, &c->from_t, err);
		if (rc == 0) {
			rc = read_redirect(r, c->i, c, &c->from_i, err);
		}
	}
	return rc;
}

static bool is_right(const struct netns_ring *r, size_t k)
{
	const struct cell *c = &r->cells[k];

	return c->from_t == want_t(r, k) && c->from_i == want_i(r, k) &&
	       c->receives == wants_receiver(r, k);
}

int netns_ring_wrong(const struct netns_ring *r, char *text, size_t size)
{
	int wrong = 0;

	text[0] = '\0';
	for (size_t k = 0; k < r->n; k++) {
		struct ring_setting at = netns_ring_at(&r->g, k);

		if (is_right(r, k)) {
			continue;
		}
		if (wrong++ == 0) {
			snprintf(text, size, "node %u %s fibre %u channel %u: "
				 "its rules are not those of its step",
				 at.node, at.dir ? "ccw" : "cw", at.fibre,
				 at.channel);
		}
	}
	return wrong;
}

/* ---- a session ---- */

static int open_all(struct netns_ring *r, const char *netns, struct err *err)
{
	char path[PATH_SIZE];
	int rc = host_netns_epoch(netns, r->epoch, sizeof(r->epoch), err);

	if (rc) {
		return rc;
	}
	snprintf(r->netns, sizeof(r->netns), "%s", netns);
	if (mkdir(NETNS_RING_DIR, 0755) != 0 && errno != EEXIST) {
		return err_errno(err, WEFT_EIO, errno, NETNS_RING_DIR);
	}
	path_of(netns, NETNS_RING_LOCK, path);
	rc = file_lock(path, &r->lock, err);
	if (rc == 0) {
		rc = host_open(netns, &r->net, err);
	}
	if (rc == 0) {
		rc = load(r, err);
	}
	if (rc == 0) {
		rc = find_modes(r, err);
	}
	if (rc) {
		return rc;
	}
	return read_rules(r, err);
}

int netns_ring_open(const char *netns, const struct ring_geometry *g,
		    struct netns_ring **out, struct err *err)
{
	struct netns_ring *r = x_new(1, sizeof(*r));
	int rc;

	*out = NULL;
	r->g = *g;
	r->lock = -1;
	r->n = netns_ring_count(g);
	r->cells = x_new(r->n, sizeof(*r->cells));
	r->modes = x_new(r->n, sizeof(*r->modes));
	r->used = x_new(r->n / g->nodes, sizeof(*r->used));
	rc = open_all(r, netns, err);
	if (rc) {
		netns_ring_close(r);
		return rc;
	}
	*out = r;
	return 0;
}

void netns_ring_close(struct netns_ring *r)
{
	if (!r) {
		return;
	}
	host_close(r->net);
	if (r->lock >= 0) {
		close(r->lock);
	}
	ring_programs_fini(&r->programs);
	free(r->steps);
	free(r->cells);
	free(r->modes);
	free(r->used);
	free(r);
}

const char *netns_ring_epoch(const struct netns_ring *r)
{
	return r->epoch;
}

const struct ring_programs *netns_ring_programs(const struct netns_ring *r)
{
	return &r->programs;
}

uint32_t netns_ring_step(const struct netns_ring *r, int program)
{
	return r->steps[program];
}

const uint8_t *netns_ring_modes(const struct netns_ring *r)
{
	return r->modes;
}

/* ---- changing ---- */

static int remove_rules(struct netns_ring *r, int from, enum target *target, struct err *err)
{
	struct host_redirect *v;
	int n, rc = host_redirects(r->net, from, &v, &n, err);

	for (int i = 0; rc == 0 && i < n; i++) {
		rc = host_redirect_del(r->net, from, &v[i], err);
		rc = rc == WEFT_ENOTFOUND ? 0 : rc;
	}
	free(v);
	*target = rc ? *target : TO_NONE;
	return rc;
}

static int set_receiver(struct netns_ring *r, struct cell *c, bool up, struct err *err)
{
	int rc = host_link_set(r->net, c->r, up, err);

	if (rc == 0) {
		c->receives = up;
	}
	return rc;
}

/* Ends what shall not be: first what is added, then what is passed or
 * dropped. Meanwhile light finds no way round the ring. */
static int darken(struct netns_ring *r, struct err *err)
{
	int rc = 0;

	for (size_t k = 0; rc == 0 && k < r->n; k++) {
		struct cell *c = &r->cells[k];

		if (c->from_t != TO_NONE && c->from_t != want_t(r, k)) {
			rc = remove_rules(r, c->t, &c->from_t, err);
		}
	}
	for (size_t k = 0; rc == 0 && k < r->n; k++) {
		struct cell *c = &r->cells[k];

		if (c->receives && !wants_receiver(r, k)) {
			rc = set_receiver(r, c, false, err);
		}
		if (rc == 0 && c->from_i != TO_NONE && c->from_i != want_i(r, k)) {
			rc = remove_rules(r, c->i, &c->from_i, err);
		}
	}
	return rc;
}

static int set_redirect(struct netns_ring *r, int from, struct cell *c,
		   enum target want, enum target *target, struct err *err)
{
	int rc;

	if (*target == want) {
		return 0;
	}
	rc = host_redirect_set(r->net, from, want == TO_OUT ? c->o : c->r, true, err);
	*target = rc ? *target : want;
	return rc;
}

int netns_ring_activate(struct netns_ring *r, struct err *err)
{
	int rc = 0;

	for (size_t k = 0; rc == 0 && k < r->n; k++) {
		struct cell *c = &r->cells[k];

		if ((wants_receiver(r, k) && !c->r) || (want_t(r, k) != TO_NONE && !c->t)) {
			struct ring_setting at = netns_ring_at(&r->g, k);

			return err_set(err, WEFT_EDEVICE, "node %u has no "
				       "transceiver there", at.node);
		}
		rc = set_redirect(r, c->i, c, want_i(r, k), &c->from_i, err);
		if (rc == 0 && c->receives != wants_receiver(r, k)) {
			rc = set_receiver(r, c, true, err);
		}
	}
	for (size_t k = 0; rc == 0 && k < r->n; k++) {
		struct cell *c = &r->cells[k];

		rc = set_redirect(r, c->t, c, want_t(r, k), &c->from_t, err);
	}
	return rc;
}

/* Keeps the programs and steps, then ends what is not theirs. */
static int change(struct netns_ring *r, struct err *err)
{
	int rc = save(r, err);

	if (rc == 0) {
		rc = find_modes(r, err);
	}
	if (rc) {
		return rc;
	}
	return darken(r, err);
}

int netns_ring_load(struct netns_ring *r, const struct ring_programs *programs, struct err *err)
{
	struct ring_programs copy = { 0 };
	uint32_t *steps;
	int rc = ring_programs_check(programs, &r->g, err);

	if (rc) {
		return rc;
	}
	ring_programs_copy(&copy, programs);
	steps = x_new((size_t)copy.n + 1, sizeof(*steps));
	for (int i = 0; i < r->programs.n; i++) {
		const struct ring_program *now = ring_programs_find(&copy, r->programs.v[i].name);

		if (now && ring_program_equal(now, &r->programs.v[i])) {
			steps[now - copy.v] = r->steps[i];
		}
	}
	ring_programs_fini(&r->programs);
	free(r->steps);
	r->programs = copy;
	r->steps = steps;
	return change(r, err);
}

int netns_ring_go(struct netns_ring *r, int program, uint32_t step, struct err *err)
{
	const struct ring_program *p = &r->programs.v[program];

	if (step >= p->steps) {
		return err_set(err, WEFT_EINVAL, "%s has steps 0 to %" PRIu32,
			       p->name, p->steps - 1);
	}
	r->steps[program] = step;
	return change(r, err);
}
