/* SPDX-License-Identifier: Apache-2.0 */
/* A store in a folder of its own, and journals to put into it. */
#ifndef WEFT_TESTS_UNIT_STORE_COMMON_H
#define WEFT_TESTS_UNIT_STORE_COMMON_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "controller/store/store.h"
#include "tests/unit/packed.h"

struct place {
	char dir[64];
	char path[96];
};

static inline void place_make(struct place *p)
{
	/* In memory where there is some: a run syncs thousands of times. */
	strcpy(p->dir, "/dev/shm/weft-store-XXXXXX");
	if (!mkdtemp(p->dir)) {
		strcpy(p->dir, "/tmp/weft-store-XXXXXX");
		assert_non_null(mkdtemp(p->dir));
	}
	snprintf(p->path, sizeof(p->path), "%s/state", p->dir);
}

static inline void place_remove(struct place *p)
{
	DIR *d = opendir(p->dir);
	struct dirent *e;
	char path[384];

	assert_non_null(d);
	while ((e = readdir(d)) != NULL) {
		snprintf(path, sizeof(path), "%s/%s", p->dir, e->d_name);
		unlink(path);
	}
	closedir(d);
	assert_int_equal(rmdir(p->dir), 0);
}

static inline struct store *must_open(const struct place *p)
{
	struct store *s = NULL;
	struct err err = { 0 };

	if (store_open(p->path, &s, &err)) {
		fail_msg("%s", err.msg);
	}
	return s;
}

static struct store_work space_work(const char *device, int n_del, int n_add,
				    int n_keep)
{
	struct store_work w = { .device = strdup(device),
				.n_steps = n_del + n_add + n_keep };

	w.steps = calloc(w.n_steps + 1, sizeof(*w.steps));
	for (int i = 0; i < w.n_steps; i++) {
		w.steps[i].op = i < n_del ? STORE_DEL :
				i < n_del + n_add ? STORE_ADD : STORE_KEEP;
		w.steps[i].xc = (struct optics_xc){ i, 2 * i + 1 };
	}
	return w;
}

static struct ring_programs program_of(int steps, uint16_t channel)
{
	struct ring_settings p = { .steps = (uint32_t)steps,
				   .n = (size_t)steps };
	struct ring_programs r;

	p.v = calloc(steps, sizeof(*p.v));
	for (int i = 0; i < steps; i++) {
		p.v[i] = (struct ring_setting){ .step = (uint16_t)i, .node = 3,
					      .channel = channel,
					      .mode = RESONATOR_ADD };
	}
	r = packed(8, 16, 1, &p);
	ring_settings_fini(&p);
	return r;
}

static struct store_work ring_work(const char *device, int old_channel,
				   int new_channel)
{
	struct store_work w = { .device = strdup(device), .is_ring = true,
				.n_steps = 1, .has_old = old_channel >= 0,
				.has_new = true };

	w.steps = calloc(1, sizeof(*w.steps));
	w.steps[0].op = STORE_LOAD;
	if (w.has_old) {
		w.old_programs = program_of(4, (uint16_t)old_channel);
	}
	w.new_programs = program_of(4, (uint16_t)new_channel);
	return w;
}

/* A change on switch "sw" (one del, n_add adds, one keep) and ring "ring". */
static inline struct store_journal journal_of(int n_add, int old_channel,
				       int new_channel)
{
	struct store_journal j = { .n_works = 2 };

	j.change.order.who = strdup("alice");
	j.change.order.comment = strdup("why");
	j.works = calloc(2, sizeof(*j.works));
	j.works[0] = space_work("sw", 1, n_add, 1);
	j.works[1] = ring_work("ring", old_channel, new_channel);
	return j;
}

static inline int begin(struct store *s, struct store_journal *j, const char *text,
		 struct err *err)
{
	struct model_config c = { .name = (char *)"fabric.yaml", .text = (char *)text,
				  .len = strlen(text) };

	return store_begin(s, j, &c, err);
}

#endif
