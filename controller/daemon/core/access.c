/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who may do what. Each method needs a role; a caller has the highest role
 * that the access file grants to its user, its groups or its certificate.
 * Asked before a request is read; every refusal is logged.
 */
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

#include "controller/daemon/core/core.h"
#include "lib/base/alloc.h"
#include "lib/base/file.h"
#include "lib/base/log.h"
#include "lib/base/vec.h"

#define MAX_FILE (1 << 20)

enum who { USER, GROUP, CERTIFICATE };

/* A line of the access file. */
struct grant {
	enum access_role role;
	enum who who;
	uint32_t id;		/* of a user or a group */
	bool any;		/* "*" */
	char *name;		/* of a certificate */
};

struct access {
	uid_t owner;		/* of weftd: an operator, like root */
	bool has_file;		/* false: local users may look */
	VEC(struct grant) grants;
};

static const char *const role_names[] = {
	[ACCESS_NONE] = "none", [ACCESS_VIEWER] = "viewer",
	[ACCESS_ORCHESTRATOR] = "orchestrator", [ACCESS_OPERATOR] = "operator",
};

static const char *const who_names[] = {
	[USER] = "user", [GROUP] = "group", [CERTIFICATE] = "certificate",
};

/* What is not listed is for operators. A name that ends in a dot is all of a
 * package. */
static const struct {
	const char *name;
	enum access_role role;
} methods[] = {
	{ "/grpc.health.v1.", ACCESS_NONE },
	{ "/grpc.reflection.", ACCESS_NONE },
	{ "/weft.v1.FabricService/Plan", ACCESS_VIEWER },
	{ "/weft.v1.FabricService/Status", ACCESS_VIEWER },
	{ "/weft.v1.FabricService/Diff", ACCESS_VIEWER },
	{ "/weft.v1.FabricService/Verify", ACCESS_VIEWER },
	{ "/weft.v1.FabricService/History", ACCESS_VIEWER },
	{ "/weft.v1.FabricService/Audit", ACCESS_VIEWER },
	{ "/weft.v1.FabricService/ExternalChanges", ACCESS_VIEWER },
	{ "/weft.v1.FabricService/Watch", ACCESS_VIEWER },
	{ "/weft.v1.FabricService/GetSchedule", ACCESS_VIEWER },
	{ "/weft.v1.FabricService/GetPicture", ACCESS_VIEWER },
	{ "/weft.v1.JobsService/RequestJob", ACCESS_ORCHESTRATOR },
	{ "/weft.v1.JobsService/ReleaseJob", ACCESS_ORCHESTRATOR },
	{ "/weft.v1.JobsService/RenewJob", ACCESS_ORCHESTRATOR },
	{ "/weft.v1.JobsService/SetLight", ACCESS_ORCHESTRATOR },
	{ "/weft.v1.JobsService/ListJobs", ACCESS_VIEWER },
};

/* ---- the file ------------------------------------------------------------ */

void access_free(struct access *a)
{
	if (!a) {
		return;
	}
	for (size_t i = 0; i < a->grants.n; i++) {
		free(a->grants.v[i].name);
	}
	vec_fini(&a->grants);
	free(a);
}

static int find_word(const char *const *names, int n, const char *word)
{
	for (int i = 0; i < n; i++) {
		if (strcmp(names[i], word) == 0) {
			return i;
		}
	}
	return -1;
}

/* A number, or a name that the system knows. */
static int find_id(enum who who, const char *name, uint32_t *id, struct err *err)
{
	char *end;
	unsigned long v;
	const struct passwd *user;
	const struct group *group;

	errno = 0;
	v = strtoul(name, &end, 10);
	if (*end == '\0' && errno == 0 && v < UINT32_MAX && name[0] != '-') {
		*id = (uint32_t)v;
		return 0;
	}
	if (who == USER && (user = getpwnam(name)) != NULL) {
		*id = user->pw_uid;
		return 0;
	}
	if (who == GROUP && (group = getgrnam(name)) != NULL) {
		*id = group->gr_gid;
		return 0;
	}
	return err_set(err, WEFT_EINVAL, "there is no %s \"%s\"", who_names[who], name);
}

/* Cuts the first word off; "" when there is none. */
static const char *next_word(char **rest)
{
	char *word = *rest;
	size_t len = strcspn(word, " \t");
	char *after = word + len;

	if (*after) {
		*after++ = '\0';
	}
	*rest = after + strspn(after, " \t");
	return word;
}

/* "ROLE WHO NAME"; g->name is owned by the caller on success. */
static int read_grant(char *line, struct grant *g, struct err *err)
{
	char *rest = line;
	const char *role = next_word(&rest);
	const char *who = next_word(&rest);
	int r, w;

	r = find_word(role_names, ACCESS_OPERATOR + 1, role);
	if (r <= ACCESS_NONE) {
		return err_set(err, WEFT_EINVAL, "\"%s\" is not viewer, "
			       "orchestrator or operator", role);
	}
	w = find_word(who_names, CERTIFICATE + 1, who);
	if (w < 0) {
		return err_set(err, WEFT_EINVAL, "\"%s\" is not user, group "
			       "or certificate", who);
	}
	if (!*rest) {
		return err_set(err, WEFT_EINVAL, "which %s?", who);
	}
	*g = (struct grant){ .role = (enum access_role)r, .who = (enum who)w,
			     .any = strcmp(rest, "*") == 0 };
	if (w != CERTIFICATE && !g->any) {
		return find_id(g->who, rest, &g->id, err);
	}
	g->name = x_dup(rest);
	return 0;
}

/* Cuts the comment and the blanks around. */
static char *trim(char *line)
{
	char *comment = strchr(line, '#'), *end;

	if (comment) {
		*comment = '\0';
	}
	line += strspn(line, " \t\r");
	end = line + strlen(line);
	while (end > line && strchr(" \t\r", end[-1])) {
		*--end = '\0';
	}
	return line;
}

/* One grant a line; text is cut up. */
static int parse(struct access *a, const char *file, char *text, struct err *err)
{
	int number = 0, r = 0;
	char *line;

	while (r == 0 && (line = strsep(&text, "\n")) != NULL) {
		struct grant g;

		number++;
		line = trim(line);
		if (!*line) {
			continue;
		}
		r = read_grant(line, &g, err);
		if (r) {
			err_at(err, file, number, 1);
		} else {
			vec_push(&a->grants, g);
		}
	}
	return r;
}

int access_parse(const char *file, const char *text, size_t len, uid_t owner,
		 struct access **out, struct err *err)
{
	struct access *a = x_new(1, sizeof(*a));
	char *copy = x_ndup(text, len);
	int r;

	*out = NULL;
	if (strlen(copy) != len) {
		r = err_set(err, WEFT_EINVAL, "%s: holds a zero byte", file);
	} else {
		a->owner = owner;
		a->has_file = true;
		r = parse(a, file, copy, err);
	}
	free(copy);
	if (r) {
		access_free(a);
		return r;
	}
	*out = a;
	return 0;
}

int access_new(const char *file, uid_t owner, struct access **out, struct err *err)
{
	char *text = NULL;
	size_t len;
	int r;

	*out = NULL;
	if (!file) {
		*out = x_new(1, sizeof(**out));
		(*out)->owner = owner;
		return 0;
	}
	r = file_read(file, MAX_FILE, &text, &len, err);
	if (r == 0) {
		r = access_parse(file, text, len, owner, out, err);
	}
	free(text);
	return r;
}

/* ---- decisions ----------------------------------------------------------- */

static bool in_group(const struct rpc_peer *peer, gid_t gid)
{
	for (int i = 0; i < peer->n_groups; i++) {
		if (peer->groups[i] == gid) {
			return true;
		}
	}
	return peer->gid == gid;
}

/* Whether a grant is the peer's: users and groups are of callers by the socket,
 * certificates of those by TCP. */
static bool is_for(const struct grant *g, const struct rpc_peer *peer)
{
	if (peer->remote != (g->who == CERTIFICATE)) {
		return false;
	}
	switch (g->who) {
	case USER:
		return g->any || peer->uid == g->id;
	case GROUP:
		return g->any || in_group(peer, g->id);
	default:
		return g->any || strcmp(peer->name, g->name) == 0;
	}
}

/* The highest role that is granted to the peer. */
static enum access_role role_of(const struct access *a, const struct rpc_peer *peer)
{
	enum access_role best = ACCESS_NONE;

	if (!peer->remote && (peer->uid == 0 || peer->uid == a->owner)) {
		return ACCESS_OPERATOR;
	}
	/* Without a file the mode of the socket's file says who may look. */
	if (!peer->remote && !a->has_file) {
		return ACCESS_VIEWER;
	}
	for (size_t i = 0; i < a->grants.n; i++) {
		const struct grant *g = &a->grants.v[i];

		if (g->role > best && is_for(g, peer)) {
			best = g->role;
		}
	}
	return best;
}

/* What is not in the table is for operators, so that a new method is closed. */
static enum access_role needed_for(const char *path)
{
	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
		const char *name = methods[i].name;
		size_t len = strlen(name);

		if (name[len - 1] == '.' ? strncmp(path, name, len) == 0
					 : strcmp(path, name) == 0) {
			return methods[i].role;
		}
	}
	return ACCESS_OPERATOR;
}

int access_need(const struct access *a, const struct rpc_peer *peer,
		enum access_role needs, const char *what, struct err *err)
{
	enum access_role has = role_of(a, peer);
	char who[RPC_PEER_TEXT_MAX];

	if (has >= needs) {
		return 0;
	}
	rpc_peer_text(peer, who, sizeof(who));
	log_warn("access", "%s refused to %s: has the role %s, needs %s", what,
		 who, role_names[has], role_names[needs]);
	err_set(err, WEFT_EDENIED, "%s has the role %s; this needs %s", who,
		role_names[has], role_names[needs]);
	err_hint(err, a->has_file ? "weftd's access file grants roles"
				  : "root and the user of weftd are operators; "
				    "weftd --access names others");
	return err->code;
}

bool access_is_operator(const struct access *a, const struct rpc_peer *peer)
{
	return role_of(a, peer) >= ACCESS_OPERATOR;
}

int access_permit(const struct access *a, const struct rpc_peer *peer,
		  const char *path, struct err *err)
{
	return access_need(a, peer, needed_for(path), path, err);
}
