/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weft's log in etcd is written once. A position is final when the head has reached it: parts
 * that a leader left behind its head may be dropped and written again. Keys are those of
 * controller/daemon/ha/replica.c: PREFIX "head" names log and position, PREFIX "log/POSITION/PART"
 * has what happened. A log of another name begins at the beginning. An etcd that was restored to
 * an older state has lost what came after it: that is no more known here either.
 */
#include "tests/sim/etcd/etcd_rule.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "tests/sim/etcd/etcd_keys.h"
#include "tests/sim/kernel/sim.h"

#define MAX_LOGS 64
#define MAX_PREFIX 128

/* A part of a position, as it was written. */
struct log_part {
	int64_t position;
	char *key;
	uint64_t digest;
};

/* One for each prefix and name. */
struct judged_log {
	char prefix[MAX_PREFIX], name[64];
	int64_t reached;
	struct log_part *parts;
	int n_parts;
};

static struct judged_log logs[MAX_LOGS];
static int n_logs;

/* FNV-1a */
static uint64_t digest_of(const char *bytes, size_t len)
{
	uint64_t digest = 0xcbf29ce484222325u;

	for (size_t i = 0; i < len; i++) {
		digest = (digest ^ (unsigned char)bytes[i]) * 0x100000001b3u;
	}
	return digest;
}

/* NULL: a log that is not named yet, or too many. */
static struct judged_log *find_log(const char *key, size_t prefix_len, const char *name, bool make)
{
	for (int i = n_logs - 1; i >= 0; i--) {
		if (strlen(logs[i].prefix) == prefix_len &&
		    strncmp(logs[i].prefix, key, prefix_len) == 0 &&
		    strcmp(logs[i].name, name) == 0) {
			return &logs[i];
		}
	}
	if (!make || n_logs == MAX_LOGS) {
		return NULL;
	}
	logs[n_logs] = (struct judged_log){ .reached = -1 };
	snprintf(logs[n_logs].prefix, MAX_PREFIX, "%.*s", (int)prefix_len, key);
	snprintf(logs[n_logs].name, sizeof(logs[n_logs].name), "%s", name);
	return &logs[n_logs++];
}

/* *name: of the log that the head of these keys names now. */
static bool parse_head(const char *value, char name[64], int64_t *position)
{
	return sscanf(value, "log %63s position %" SCNd64, name, position) == 2;
}

static void judge_head(const char *key, size_t prefix_len, const char *value)
{
	struct judged_log *log;
	char name[64];
	int64_t position;

	if (!parse_head(value, name, &position)) {
		return;
	}
	log = find_log(key, prefix_len, name, true);
	if (log && position < log->reached) {
		sim_fail("two truths", "%s goes back from position %" PRId64 " to %" PRId64, key,
			 log->reached, position);
	} else if (log) {
		log->reached = position;
	}
}

static struct log_part *find_part(struct judged_log *log, const char *key)
{
	for (int i = log->n_parts - 1; i >= 0; i--) {
		if (strcmp(log->parts[i].key, key) == 0) {
			return &log->parts[i];
		}
	}
	return NULL;
}

static void judge_part(struct judged_log *log, int64_t position, const char *key,
		       uint64_t digest)
{
	struct log_part *part = find_part(log, key);

	if (position <= log->reached && (!part || part->digest != digest)) {
		sim_fail("two truths", "position %" PRId64 " of the log is written again, and "
			 "otherwise: %s, and the head is at %" PRId64, position, key, log->reached);
	}
	if (!part) {
		log->parts = x_grow(log->parts, (size_t)log->n_parts + 1, sizeof(*log->parts));
		part = &log->parts[log->n_parts++];
		*part = (struct log_part){ .position = position, .key = x_dup(key) };
	}
	part->digest = digest;
}

static void on_change(const char *key, const char *value, size_t len)
{
	const char *end = strrchr(key, '/'), *part = strstr(key, "/log/");
	char head[MAX_PREFIX + 8], name[64];
	struct judged_log *log;
	int64_t position;

	if (!value || !end) {
		return;
	}
	if (strcmp(end, "/head") == 0) {
		judge_head(key, (size_t)(end + 1 - key), value);
	} else if (part && part + 4 < end) {
		snprintf(head, sizeof(head), "%.*s/head", (int)(part - key), key);
		value = etcd_keys_get(head, NULL) ? value : NULL;
		if (value && parse_head(etcd_keys_get(head, NULL), name, &position)) {
			log = find_log(key, (size_t)(part + 1 - key), name, true);
			position = (int64_t)strtoull(part + 5, NULL, 16);
			if (log) {
				judge_part(log, position, key, digest_of(value, len));
			}
		}
	}
}

static void forget(void)
{
	for (int i = 0; i < n_logs; i++) {
		for (int k = 0; k < logs[i].n_parts; k++) {
			free(logs[i].parts[k].key);
		}
		free(logs[i].parts);
	}
	n_logs = 0;
}

void etcd_rule_begin(void)
{
	forget();
	etcd_keys_on_change(on_change);
	etcd_keys_on_restore(forget);
}
