/* What hosts of weftd's machine say of the light that they receive. */
#include "controller/proto_convert/report.h"

static void out_port(struct out *o, enum out_format format,
		     const Weft__V1__PortState *p)
{
	out_object(o, NULL);
	out_str(o, "port", p->name);
	out_bool(o, "link", p->link);
	out_str(o, "layer", p->layer);
	out_str(o, "from", p->from[0] ? p->from : NULL);
	out_str(o, "heard", p->neighbour[0] ? p->neighbour : NULL);
	if (format != OUT_TABLE) {
		out_str(o, "instead", p->next_layer_error[0] ? p->next_layer_error : NULL);
		out_str(o, "reason", p->reason[0] ? p->reason : NULL);
		if (p->has_power) {
			out_real(o, "rx_dbm", p->rx_mdbm / 1000.0);
			out_real(o, "tx_dbm", p->tx_mdbm / 1000.0);
		}
		if (p->reactivation) {
			wire_out_timing(o, "reactivation", p->reactivation);
		}
		out_int(o, "carrier_ups", p->carrier_ups);
		out_int(o, "carrier_downs", p->carrier_downs);
	}
	out_int(o, "carrier_changes", p->carrier_changes);
	out_int(o, "rx_errors", (int64_t)p->rx_errors);
	out_int(o, "tx_errors", (int64_t)p->tx_errors);
	out_str(o, "problem", p->problem[0] ? p->problem : NULL);
	out_end(o);
}

/* In a table without --full only ports that are not as intended. */
static void out_ports(struct out *o, enum out_format format,
		     const Weft__V1__HostsState *h, bool full)
{
	size_t wrong = 0;

	for (size_t i = 0; i < h->n_ports; i++) {
		wrong += h->ports[i]->problem[0] != '\0';
	}
	full = full || format != OUT_TABLE;
	if (!full && wrong == 0) {
		return;
	}
	out_array(o, "ports");
	for (size_t i = 0; i < h->n_ports; i++) {
		if (full || h->ports[i]->problem[0]) {
			out_port(o, format, h->ports[i]);
		}
	}
	out_end(o);
}

static void out_silent(struct out *o, enum out_format format,
		     const Weft__V1__HostsState *h)
{
	size_t n = 0;

	for (size_t i = 0; i < h->n_hosts; i++) {
		n += h->hosts[i]->problem[0] != '\0';
	}
	if (format == OUT_TABLE && n == 0) {
		return;
	}
	out_array(o, "hosts");
	for (size_t i = 0; i < h->n_hosts; i++) {
		const Weft__V1__HostState *s = h->hosts[i];

		if (format == OUT_TABLE && !s->problem[0]) {
			continue;
		}
		out_object(o, NULL);
		out_str(o, "host", s->name);
		out_str(o, "netns", s->netns);
		out_int(o, "ways", s->routes);
		out_str(o, "problem", s->problem[0] ? s->problem : NULL);
		out_end(o);
	}
	out_end(o);
}

void wire_out_hosts(struct out *o, enum out_format format,
		    const Weft__V1__HostsState *h, bool full)
{
	if (!h) {
		return;
	}
	out_object(o, "received");
	out_str(o, "layer", h->layer);
	out_int(o, "lit", h->expected);
	out_int(o, "good", h->good);
	if (format == OUT_TABLE) {
		wire_out_age(o, "looked", h->probed_at_ns);
	} else {
		wire_out_time(o, "looked_at", h->probed_at_ns);
	}
	out_silent(o, format, h);
	out_ports(o, format, h, full);
	out_end(o);
}
