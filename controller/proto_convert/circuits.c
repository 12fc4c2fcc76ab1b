/* One device with all its circuits, and what they lose. */
#include "controller/proto_convert/report.h"

/* A table says "-" of what is not known, JSON null. */
static void out_db(struct out *o, enum out_format format, const char *column,
		   const char *key, const Weft__V1__Number *mdb)
{
	if (format != OUT_TABLE && mdb) {
		out_real(o, key, (double)mdb->value / 1e3);
	} else if (format != OUT_TABLE) {
		out_null(o, key);
	} else if (mdb) {
		out_fmt(o, column, "%.2f dB", (double)mdb->value / 1e3);
	} else {
		out_str(o, column, "-");
	}
}

static void out_light(struct out *o, enum out_format format,
		      const Weft__V1__Signal *l)
{
	char text[32];
	Weft__V1__Number limit = WEFT__V1__NUMBER__INIT;

	limit.value = l->limit_mdb;
	out_str(o, "state", l->state);
	out_db(o, format, "loss", "loss_db", l->loss_mdb);
	out_db(o, format, "limit", "limit_db", limit.value ? &limit : NULL);
	out_db(o, format, "was", "good_loss_db", l->baseline_loss_mdb);
	out_db(o, format, "factory", "factory_loss_db", l->factory_loss_mdb);
	if (format == OUT_TABLE) {
		out_str(o, "note", l->over_limit ? "OVER" : l->degraded ? "WORSE" : "");
	} else {
		out_str(o, "proof", wire_enum(&weft__v1__proof__descriptor,
					      (int)l->proof, text,
					      sizeof(text)));
		out_bool(o, "over", l->over_limit);
		out_bool(o, "worse", l->degraded);
	}
}

void wire_out_timing(struct out *o, const char *name,
		     const Weft__V1__Timing *t)
{
	out_object(o, name);
	out_int(o, "count", t->count);
	out_int(o, "median_ns", t->median_ns);
	out_int(o, "most_ns", t->max_ns);
	out_end(o);
}

void wire_out_device(struct out *o, enum out_format format,
		     const Weft__V1__DeviceState *d)
{
	char text[64];

	out_str(o, "name", d->name);
	out_str(o, "driver", d->driver);
	out_str(o, "address", d->address);
	out_str(o, "identity", d->identity);
	out_bool(o, "reachable", d->reachable);
	wire_out_time(o, "read_at", d->read_at_ns);
	out_str(o, "proof", wire_enum(&weft__v1__proof__descriptor,
				      (int)d->proof, text, sizeof(text)));
	out_str(o, "problem", d->problem);
	out_int(o, "lossy", d->lossy);
	wire_out_strings(o, "unusable", d->unusable, d->n_unusable);
	out_int(o, "unusable_count", d->unusable_count);
	if (d->switching) {
		wire_out_timing(o, "switching", d->switching);
	}
	out_str(o, "power_loss", d->power_loss[0] ? d->power_loss : "unknown");
	out_str(o, "foreign_policy", d->auto_restore ? "restore" : "report");
	wire_out_foreign(o, format, "foreign", d->external_changes, d->n_external_changes);
	out_array(o, "read");
	for (size_t i = 0; i < d->n_read; i++) {
		const Weft__V1__Circuit *x = d->read[i];

		out_object(o, NULL);
		out_int(o, "in", x->in);
		out_int(o, "out", x->out);
		out_str(o, "from", x->from);
		out_str(o, "to", x->to);
		out_str(o, "owner", x->owner);
		if (x->signal) {
			out_light(o, format, x->signal);
		}
		out_end(o);
	}
	out_end(o);
}
