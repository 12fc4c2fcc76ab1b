/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs of MSCCL for schedule export: one file, or a folder of files by the
 * size of calls. A runtime reads all files of its folder and takes the first
 * whose sizes match, so no file of an earlier export may stay beside.
 */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "controller/cli/schedules/programs.h"
#include "lib/base/file.h"

#define LINK_BPS 400000000000LL	/* --link-bandwidth by default */
#define MAX_INSTANCES 32
#define MAX_PATH 4096

/* ---- options ---- */

static const char *const protocols[] = {
	[MSCCL_SIMPLE] = "simple", [MSCCL_LL] = "ll", [MSCCL_LL128] = "ll128",
};

/* "ll,simple" */
static int read_protocols(const char *text, bool *on, struct err *err)
{
	while (*text) {
		size_t n = strcspn(text, ",");
		int k = 0;

		while (k < MSCCL_PROTOS &&
		       (strlen(protocols[k]) != n || strncmp(text, protocols[k], n) != 0)) {
			k++;
		}
		if (k == MSCCL_PROTOS) {
			return err_set(err, WEFT_EUSAGE, "--protocol %s: expected simple, ll or "
				       "ll128, or for a folder several with commas", text);
		}
		on[k] = true;
		text += n + (text[n] == ',');
	}
	return 0;
}

static int count_on(const bool *on)
{
	return on[0] + on[1] + on[2];
}

int cli_programs_read(const struct cli *c, const char *path, enum msccl_dialect dialect,
		      struct cli_programs *out, struct err *err)
{
	const char *names = cli_opt(c, "protocol"), *instances = cli_opt(c, "instances");
	int64_t copies = 0, tbs = 0;
	int rc;

	*out = (struct cli_programs){ .folder = cli_is_folder(path) };
	names = names ? names : out->folder ? "ll,simple" : "simple";
	instances = instances ? instances : out->folder ? "auto" : "1";
	out->request = (struct msccl_request){ .dialect = dialect, .link_bps = LINK_BPS };
	rc = read_protocols(names, out->request.protos, err);
	if (!rc && cli_has(c, "instances") && strcmp(instances, "auto") != 0) {
		rc = cli_opt_int(c, "instances", 1, MAX_INSTANCES, &copies, err);
	} else if (!rc && strcmp(instances, "1") == 0) {
		copies = 1;
	}
	if (!rc) {
		rc = cli_opt_int(c, "threadblocks", 1, msccl_limits(dialect)->tbs, &tbs, err);
	}
	if (!rc) {
		rc = cli_opt_unit(c, "link-bandwidth", UNIT_BPS, &out->request.link_bps, err);
	}
	if (!rc && (count_on(out->request.protos) == 0 ||
		    (!out->folder && count_on(out->request.protos) > 1))) {
		rc = err_set(err, WEFT_EUSAGE, "--protocol %s: a file has one protocol; for "
			     "several, -o names a folder", names);
	}
	if (!rc && out->request.link_bps < 1) {
		rc = err_set(err, WEFT_EUSAGE, "--link-bandwidth: less than 1 bit/s");
	}
	out->request.instances = (int)copies;
	out->request.tbs = (int)tbs;
	return rc;
}

int cli_programs_make(struct cli_programs *p, const struct coll_sched *s, struct err *err)
{
	msccl_choices_fini(&p->made);
	return msccl_choose(s, &p->request, &p->made, err);
}

/* ---- what was chosen ---- */

static void say_choice(const struct cli *c, const struct msccl_choice *x)
{
	struct msccl_extent e = msccl_extent(&x->p);
	char most[64] = "of any size";

	if (x->p.max_bytes > 0) {
		snprintf(most, sizeof(most), "up to %lld bytes", (long long)x->p.max_bytes);
	}
	cli_say(c, CLI_NORMAL, "%s, for calls %s in multiples of %d elements: %d instance%s, %d "
		"channel%s, %d threadblocks of up to %d steps (%s)", msccl_proto_name(x->p.proto),
		most, x->p.loop, x->instances, x->instances == 1 ? "" : "s", x->p.channels,
		x->p.channels == 1 ? "" : "s", e.tbs, e.steps, x->why);
}

static void out_choice(struct out *o, const char *file, const struct msccl_choice *x)
{
	struct msccl_extent e = msccl_extent(&x->p);

	out_object(o, NULL);
	out_str(o, "file", file);
	out_str(o, "protocol", msccl_proto_name(x->p.proto));
	out_int(o, "min_bytes", x->p.min_bytes);
	out_int(o, "max_bytes", x->p.max_bytes);
	out_int(o, "multiple", x->p.loop);
	out_int(o, "instances", x->instances);
	out_int(o, "channels", x->p.channels);
	out_int(o, "threadblocks", e.tbs);
	out_int(o, "steps", e.steps);
	out_str(o, "why", x->why);
	out_end(o);
}

/* ---- files ---- */

static int file_name(const struct cli_programs *p, int i, enum msccl_proto proto, const char *path,
		     char *out, size_t size)
{
	size_t n = strlen(path);
	int len = snprintf(out, size, "%s%s%s-%d-%s.xml", path,
			   n > 0 && path[n - 1] == '/' ? "" : "/",
			   lower_kind_name(p->made.v[0].p.kind), i, protocols[proto]);

	return len < 0 || (size_t)len >= size ? WEFT_EINVAL : 0;
}

/* Files that another export of the collective left, and this would not replace. */
static int check_folder(const struct cli_programs *p, const char *path, struct err *err)
{
	char name[MAX_PATH];
	struct stat st;

	for (int i = 0; i < MSCCL_PROTOS; i++) {
		for (int k = 0; k < MSCCL_PROTOS; k++) {
			if (i < p->made.n && (int)p->made.v[i].p.proto == k) {
				continue;
			}
			if (file_name(p, i, (enum msccl_proto)k, path, name, sizeof(name))) {
				return err_set(err, WEFT_EINVAL, "%s: too long a name", path);
			}
			if (lstat(name, &st) == 0) {
				err_set(err, WEFT_EINVAL, "%s: from an earlier export; it would "
					"serve the same calls", name);
				err_hint(err, "remove it, or name another folder");
				return WEFT_EINVAL;
			}
		}
	}
	return 0;
}

static int write_one(const struct msccl *p, const char *path, struct err *err)
{
	struct buf b = { 0 };
	int rc;

	msccl_write(p, &b);
	rc = cli_write_data(path, &b, err);
	buf_fini(&b);
	return rc;
}

static int write_folder(const struct cli *c, const struct cli_programs *p, const char *path,
			struct err *err)
{
	struct out *o;
	char name[MAX_PATH];
	int rc;

	if (mkdir(path, FILE_PUBLIC) && errno != EEXIST) {
		return err_set(err, WEFT_EIO, "%s: %s", path, strerror(errno));
	}
	rc = check_folder(p, path, err);
	o = rc ? NULL : out_new(c->format);
	if (o) {
		out_array(o, "programs");
	}
	for (int i = 0; i < p->made.n && !rc; i++) {
		(void)file_name(p, i, p->made.v[i].p.proto, path, name, sizeof(name));
		rc = write_one(&p->made.v[i].p, name, err);
		if (!rc && o) {
			out_choice(o, name, &p->made.v[i]);
		}
	}
	if (o) {
		out_end(o);
	}
	if (o && p->made.left_out[0]) {
		out_str(o, "left_out", p->made.left_out);
	}
	return cli_print_unless(rc, o, err);
}

int cli_programs_write(const struct cli *c, const struct cli_programs *p, const char *path,
		       struct err *err)
{
	int rc;

	if (p->folder) {
		return write_folder(c, p, path, err);
	}
	rc = write_one(&p->made.v[0].p, path, err);
	if (!rc) {
		say_choice(c, &p->made.v[0]);
	}
	return rc;
}
