/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When the store's copy is made: at the start, so that it has the fence before any device does
 * (of several by an etcd, that has it), and a second after a change has ended, so that many changes
 * are one copy. What became of the store at its opening, and a copy that cannot be made, is a
 * problem until the next one is.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/apply/apply.h"
#include "controller/daemon/core/core.h"
#include "lib/base/alloc.h"
#include "lib/base/log.h"

#define AFTER_MS 1000
#define AGAIN_MS 60000		/* after one that failed */

struct store_copier {
	struct daemon_env *env;
	struct part_timer *timer;
	bool set, running;	/* one is to be made; is being made */
	bool more;		/* a change has ended meanwhile */
	char problem[ERR_MSG_MAX + ERR_FILE_MAX + 128];
};

/* As an event too, when it is another one. */
static void tell(struct store_copier *c, const char *text)
{
	const struct daemon_event ev = { .kind = EVENT_KIND(STORE) };

	if (strcmp(c->problem, text) == 0) {
		return;
	}
	snprintf(c->problem, sizeof(c->problem), "%s", text);
	if (text[0]) {
		log_error("weftd", "%s", text);
	}
	event_emit(c->env->events, &ev, "%s", text[0] ? text : "the store has its copy");
	env_changed(c->env);
}

static void tell_failure(struct store_copier *c, const struct err *err)
{
	char text[sizeof(c->problem)];

	snprintf(text, sizeof(text), "no copy of the store is made: %s", err->msg);
	tell(c, text);
}

static void set_timer(struct store_copier *c, int64_t ms)
{
	c->set = true;
	part_timer_start(c->timer, ms);
}

static void on_copied(int rc, const struct err *err, void *arg)
{
	struct store_copier *c = arg;

	c->running = false;
	if (rc) {
		tell_failure(c, err);
		set_timer(c, AGAIN_MS);
	} else {
		tell(c, "");
		if (c->more) {
			set_timer(c, AFTER_MS);
		}
	}
	c->more = false;
}

static void on_timer(void *arg)
{
	struct store_copier *c = arg;

	c->set = false;
	if (!c->env->draining) {
		c->running = true;
		apply_copy_store(c->env->apply, on_copied, c);
	}
}

void store_copier_note(struct store_copier *c)
{
	c->more = c->running;
	if (!c->set && !c->running) {
		set_timer(c, AFTER_MS);
	}
}

const char *store_copier_problem(const struct store_copier *c)
{
	return c ? c->problem : "";
}

/* What a start found. */
static void tell_taken(struct store_copier *c, const struct store_taken *t)
{
	char text[sizeof(c->problem)];

	if (t->refused[0]) {
		snprintf(text, sizeof(text), "%s, and that is of no use: %s", t->why, t->refused);
	} else {
		snprintf(text, sizeof(text), "%s: its copy is used, and what was recorded after "
			 "the last change is lost%s%s", t->why,
			 t->kept[0] ? "; it is kept as " : "", t->kept);
	}
	tell(c, text);
}

struct store_copier *store_copier_new(struct daemon_env *env, const struct store_taken *taken,
				      bool at_once)
{
	struct store_copier *c = x_new(1, sizeof(*c));
	struct err err = { 0 };

	c->env = env;
	c->timer = part_timer_new(env, on_timer, c);
	if (taken->why[0]) {
		tell_taken(c, taken);
	}
	if (!at_once) {
		set_timer(c, 0);
	} else if (store_copy(env->store, &err)) {
		tell_failure(c, &err);
		set_timer(c, AGAIN_MS);
	}
	return c;
}

void store_copier_free(struct store_copier *c)
{
	if (c) {
		part_timer_free(c->timer);
		free(c);
	}
}
