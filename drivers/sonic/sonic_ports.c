/* `sonic-ocs`: a port is enabled or disabled; see sonic_ocs.h. */
#include <stdio.h>
#include <string.h>

#include "drivers/sonic/sonic_ocs.h"

/* By the table of ports, which was read anew. The device forces a port's
 * light off; its circuit stays configured. */
static void judge_port(struct sonic *s)
{
	const struct drv_snapshot *snap = &s->h.snap;
	bool enabled = true;
	char code[16];

	for (int i = 0; i < snap->n_ports; i++) {
		const struct drv_port *p = &snap->ports[i];

		if (p->is_out == s->h.port.is_out &&
		    p->index == s->h.port.index) {
			enabled = p->enabled;
		}
	}
	if (enabled == s->h.enable) {
		base_mark(&s->h, 0, 1, DRV_DONE, DRV_READ_BACK, DRV_ERR_NONE,
			  NULL, NULL);
	} else {
		snprintf(code, sizeof(code), "%s", s->code);
		base_mark(&s->h, 0, 1, DRV_REFUSED, DRV_READ_BACK,
			  DRV_ERR_STATE, code,
			  s->text[0] ? s->text : "the port is as it was");
	}
	base_end(&s->h, 0, NULL);
}

static void on_set(struct sonic *s, char *text, int status)
{
	if (status) {
		snprintf(s->code, sizeof(s->code), "status %d", status);
		sonic_first_words(text, s->text, sizeof(s->text));
	}
	drv_snapshot_fini(&s->h.snap);
	sonic_start_reads(s, SONIC_READ_ALL, judge_port);
}

static void set_port(struct sonic *s)
{
	char line[96];

	base_mark(&s->h, 0, 1, DRV_UNKNOWN, DRV_SENT, DRV_ERR_TRANSPORT,
		  NULL, "sent and not answered");
	snprintf(line, sizeof(line), "%s%sconfig ocs port state %d%c %s",
		 s->sudo, s->sudo[0] ? " " : "", s->h.port.index + 1,
		 s->h.port.is_out ? 'B' : 'A',
		 s->h.enable ? "normal" : "force_blocked");
	sonic_ask(s, line, on_set);
}

/* The size of the device is checked first, as before a batch. */
void sonic_port_set(struct driver_base *h)
{
	struct sonic *s = (struct sonic *)h;

	s->code[0] = s->text[0] = '\0';
	sonic_start_reads(s, SONIC_READ_ALL, set_port);
}
