/* A port of a TL1 switch is enabled or disabled; see tl1_switch.h. */
#include <string.h>

#include "drivers/tl1/tl1_private.h"

/* By what the device lists of its ports now. */
static void judge_port(struct tl1_switch *s)
{
	const struct drv_snapshot *snap = &s->h.snap;
	bool enabled = true, failed = false, as_asked;

	for (int i = 0; i < snap->n_ports; i++) {
		const struct drv_port *p = &snap->ports[i];

		if (p->is_out == s->h.port.is_out &&
		    p->index == s->h.port.index) {
			enabled = p->enabled;
			failed = p->failed;
		}
	}
	as_asked = !failed && enabled == s->h.enable;
	base_mark(&s->h, 0, 1, as_asked ? DRV_DONE : DRV_REFUSED,
		  DRV_READ_BACK, as_asked ? DRV_ERR_NONE : DRV_ERR_STATE,
		  NULL, as_asked ? NULL : failed ? "the port has failed" :
					    "the port is as it was");
	base_end(&s->h, 0, NULL);
}

static void on_set(struct tl1_switch *s, const struct tl1_message *m)
{
	char text[DRV_TEXT_MAX];

	/* Done already is done. */
	if (m->denied && strcmp(m->code, "SROU") != 0) {
		tl1_denied_text(m, text, sizeof(text));
		base_mark(&s->h, 0, 1, DRV_REFUSED, DRV_ACKED,
			  tl1_code_class(m->code), m->code, text);
		base_end(&s->h, 0, NULL);
		return;
	}
	s->gone_too_far = s->port_was_set = true;
	tl1_start_reads(s, judge_port);
}

static void set_port(struct tl1_switch *s)
{
	struct tl1_command c;

	s->dialect->port_command(s, s->h.port, s->h.enable, &c);
	base_mark(&s->h, 0, 1, DRV_UNKNOWN, DRV_SENT, DRV_ERR_TRANSPORT,
		  NULL, "sent and not answered");
	tl1_ask(s, &c, on_set);
}

void tl1_port_set(struct driver_base *h)
{
	struct tl1_switch *s = (struct tl1_switch *)h;

	s->gone_too_far = s->port_was_set = false;
	tl1_start_reads(s, set_port);
}
