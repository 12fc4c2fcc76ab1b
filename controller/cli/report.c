/* What the command line says: data on stdout, the rest on stderr. */
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "controller/cli/private.h"
#include "lib/base/clk.h"
#include "lib/base/units.h"

void cli_report(const struct err *err)
{
	char text[ERR_MSG_MAX + ERR_FILE_MAX + 32];

	fprintf(stderr, "weft: %s\n", err_str(err, text, sizeof(text)));
	if (err->hint[0]) {
		fprintf(stderr, "hint: %s\n", err->hint);
	}
}

void cli_report_list(struct err_list *errs, struct err *last)
{
	for (int i = 0; i + 1 < errs->n; i++) {
		cli_report(&errs->v[i]);
	}
	if (errs->n > 0 && last) {
		*last = errs->v[errs->n - 1];
	}
	if (errs->n > 0 && errs->dropped > 0) {
		err_hint(last, "and %d more", errs->dropped);
	}
}

void cli_say(const struct cli *c, enum cli_talk talk, const char *fmt, ...)
{
	va_list ap;

	if (c->talk < talk) {
		return;
	}
	va_start(ap, fmt);
	fputs("weft: ", stderr);
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
	va_end(ap);
}

bool cli_colour(const struct cli *c, int fd)
{
	const char *no = getenv("NO_COLOR"), *term = getenv("TERM");

	if (strcmp(c->colour, "auto") != 0) {
		return strcmp(c->colour, "always") == 0;
	}
	return isatty(fd) && !(no && *no) && term && strcmp(term, "dumb");
}

int cli_print_bytes(const char *data, size_t len, struct err *err)
{
	if (fwrite(data, 1, len, stdout) != len || fflush(stdout) != 0) {
		return err_errno(err, WEFT_EIO, errno, "standard output");
	}
	return 0;
}

int cli_print(struct out *o, struct err *err)
{
	struct buf b = { 0 };
	int r = o ? out_render(o, &b) : WEFT_ENOMEM;

	if (r) {
		r = err_nomem(err);
	} else {
		r = cli_print_bytes(buf_cstr(&b), b.len, err);
	}
	buf_fini(&b);
	out_free(o);
	return r;
}

const char *cli_enum(const ProtobufCEnumDescriptor *type, int value, char *buf,
		     int size)
{
	const ProtobufCEnumValue *v =
		protobuf_c_enum_descriptor_get_value(type, value);
	const char *name;
	size_t skip;

	if (!v) {
		snprintf(buf, (size_t)size, "%d", value);
		return buf;
	}
	/* Values repeat their type: DEVICE_KIND_RING of DeviceKind. */
	skip = 0;
	for (const char *s = type->short_name; *s; s++) {
		skip += 1 + (s != type->short_name && isupper(*s));
	}
	name = v->name + skip + 1;
	snprintf(buf, (size_t)size, "%s", name);
	for (char *s = buf; *s; s++) {
		*s = *s == '_' ? '-' : (char)tolower((unsigned char)*s);
	}
	return buf;
}

void cli_out_circuits(struct out *o, const char *key,
		      Weft__V1__Circuit *const *v, size_t n)
{
	out_array(o, key);
	for (size_t i = 0; i < n; i++) {
		out_object(o, NULL);
		out_int(o, "in", v[i]->in);
		out_int(o, "out", v[i]->out);
		out_str(o, "from", v[i]->from);
		out_str(o, "to", v[i]->to);
		if (v[i]->owner[0]) {
			out_str(o, "owner", v[i]->owner);
		}
		out_end(o);
	}
	out_end(o);
}

void cli_out_time(struct out *o, const char *key, int64_t wall_ns)
{
	char text[32];

	out_str(o, key, wall_ns ? clk_iso(wall_ns, text, sizeof(text)) : NULL);
}

void cli_out_ns(const struct cli *c, struct out *o, const char *key,
		int64_t ns)
{
	char text[64];

	if (c->format == OUT_TABLE) {
		out_str(o, key,
			unit_human(UNIT_NS, (double)ns, text, sizeof(text)));
		return;
	}
	snprintf(text, sizeof(text), "%s_ns", key);
	out_int(o, text, ns);
}

void cli_out_gap(const struct cli *c, struct out *o, const char *key,
		 double gap)
{
	if (c->format == OUT_TABLE) {
		out_fmt(o, key, "%.1f %%", gap * 100);
	} else {
		out_real(o, key, gap);
	}
}
