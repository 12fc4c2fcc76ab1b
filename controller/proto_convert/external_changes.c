/* Changes of light that weft did not make, as table, JSON and YAML. */
#include <stdio.h>
#include <string.h>

#include "controller/proto_convert/report.h"
#include "lib/base/clock.h"

#define SHOWN 20	/* of a device in a table, unless full */

static void what(const Weft__V1__ExternalChange *f, char *buf, size_t size)
{
	if (f->in && f->out) {
		snprintf(buf, size, "%s: in %d -> out %d", f->kind, f->in,
			 f->out);
	} else if (f->in || f->out) {
		snprintf(buf, size, "%s: %s %d", f->kind, f->in ? "in" : "out",
			 f->in + f->out);
	} else {
		snprintf(buf, size, "%s", f->kind);
	}
}

/* When it happened, as far as readings tell. */
static void window(const Weft__V1__ExternalChange *f, char *buf, size_t size)
{
	char from[32], to[32];

	snprintf(buf, size, "%.19s to %.19s", f->last_good_at_ns
			 ? clk_iso(f->last_good_at_ns, from, sizeof(from))
			 : "?", clk_iso(f->detected_at_ns, to, sizeof(to)));
}

static void out_row(struct out *o, const Weft__V1__ExternalChange *f)
{
	char text[80];

	out_object(o, NULL);
	out_str(o, "device", f->device);
	what(f, text, sizeof(text));
	out_str(o, "change", text);
	window(f, text, sizeof(text));
	out_str(o, "happened", text);
	out_str(o, "noticed by", f->detected_by);
	out_str(o, "by whom", f->who);
	if (f->change) {
		out_fmt(o, "now", "%s by change %lld", f->outcome,
			(long long)f->change);
	} else {
		out_str(o, "now", f->given_up ? "open, given up" : f->outcome);
	}
	out_end(o);
}

static void out_one(struct out *o, const Weft__V1__ExternalChange *f)
{
	out_object(o, NULL);
	out_int(o, "id", f->id);
	out_str(o, "device", f->device);
	out_str(o, "kind", f->kind);
	out_int(o, "in", f->in);
	out_int(o, "out", f->out);
	wire_out_time(o, "right_at", f->last_good_at_ns);
	wire_out_time(o, "noticed_at", f->detected_at_ns);
	out_str(o, "how", f->detected_by);
	out_str(o, "who", f->who);
	out_str(o, "outcome", f->outcome);
	wire_out_time(o, "resolved_at", f->resolved_at_ns);
	out_int(o, "change", f->change);
	out_bool(o, "given_up", f->given_up);
	out_end(o);
}

void wire_out_foreign(struct out *o, enum out_format format, const char *key,
		      Weft__V1__ExternalChange *const *v, size_t n)
{
	out_array(o, key);
	for (size_t i = 0; i < n; i++) {
		if (format == OUT_TABLE) {
			out_row(o, v[i]);
		} else {
			out_one(o, v[i]);
		}
	}
	out_end(o);
}

const char *wire_power_loss(const char *power_loss)
{
	if (strcmp(power_loss, "dark") == 0) {
		return "forgets its map when it loses power";
	}
	return strcmp(power_loss, "saved map") == 0
		       ? "goes back to a map that was saved when it loses power"
		       : NULL;
}

void wire_note_power_loss(struct out *o, Weft__V1__DeviceState *const *v,
			  size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const char *text = wire_power_loss(v[i]->power_loss);

		if (text && v[i]->circuits > 0) {
			out_note(o, "%s %s: %s", v[i]->name, text,
				 v[i]->auto_restore ? "weftd brings it back"
						: "\"weft apply\" brings it "
						  "back");
		}
	}
}

void wire_note_foreign(struct out *o, Weft__V1__DeviceState *const *v, size_t n,
		       bool full)
{
	size_t count = 0;

	for (size_t i = 0; i < n; i++) {
		count += v[i]->n_external_changes;
	}
	if (count == 0) {
		return;
	}
	out_array(o, "not changed by weft");
	for (size_t i = 0; i < n; i++) {
		for (size_t k = 0; k < v[i]->n_external_changes &&
				   (full || k < SHOWN); k++) {
			out_row(o, v[i]->external_changes[k]);
		}
	}
	out_end(o);
}
