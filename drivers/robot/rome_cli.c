/*
 * `rome-cli`: ROME robotic patch panels over their command line; see robot.h.
 * An East port is an input, a West port an output.
 */
#include <stdio.h>
#include <string.h>

#include "drivers/core/drivers.h"
#include "drivers/robot/robot.h"
#include "drivers/robot/rome.h"
#include "drivers/sonic/sonic.h"

static const struct drv_option_spec options[] = {
	{ "gap_ms", "least time between two commands", "100" },
	{ "queue", "most moves in the robot's queue at a time", "8" },
	{ "poll_ms", "time between two looks at the queue", "3000" },
	{ "move_ms", "longest time a move may take", "120000" },
	{ "wear_limit", "moves after which a port is moved no more; 0: none",
	  "0" },
	{ NULL, NULL, NULL },
};

static void identity(char *text, char *identity, size_t size)
{
	char *line;

	while ((line = sonic_line(&text))) {
		if (strstr(line, "ROME TYPE") || strstr(line, "S/N(")) {
			size_t n = strlen(identity);

			line += strspn(line, " ");
			snprintf(identity + n, size - n, "%s%s", n ? "," : "",
				 line);
		}
	}
	if (!identity[0]) {
		snprintf(identity, size, "ROME");
	}
}

/* Every circuit is in the table twice; the East side counts. */
static int table(struct robot *r, char *text, struct err *err)
{
	struct robot_port row;
	char *line;
	int rc = 0;

	while (rc == 0 && (line = sonic_line(&text))) {
		if (rome_parse_row(line, &row)) {
			row.connected = row.connected && !row.is_out;
			rc = robot_take_port(r, &row, err);
		}
	}
	return rc;
}

static bool command(const struct robot_move *m, int k, char *text, size_t size)
{
	snprintf(text, size, "connection %s E%d %s W%d",
		 m->connect ? "create" : "disconnect", m->xc.in + 1,
		 m->connect ? "to" : "from", m->xc.out + 1);
	return k == 0;
}

static const char *refusal(const struct robot_move *m, const char *text)
{
	const char *ok = strstr(text, "OK - ");
	const char *bad = strstr(text, "ERROR");

	(void)m;
	return ok && !(bad && bad < ok) ? NULL : bad ? bad : text;
}

static bool idle(struct robot *r, char *text)
{
	(void)r;
	return rome_is_idle(text);
}

static const char *obstacle(const char *text)
{
	return strstr(text, "homing run") ? "it asks for a homing run" :
	       strstr(text, "status: disabled") ? "its moves are disabled" :
						  NULL;
}

static int said(const char *line, const struct robot_move *m)
{
	return rome_said(line, m->xc);
}

static const struct robot_dialect dialect = {
	.cls = &drv_rome_cli,
	.in_letter = "E",
	.out_letter = "W",
	.first_port = 1,
	.prompt = rome_prompt,
	.ask_identity = "show board",
	.identity = identity,
	.ask_table = "port show",
	.table = table,
	.command = command,
	.refusal = refusal,
	.ask_pending = "connection show pending",
	.idle = idle,
	.obstacle = obstacle,
	.homing = "homing run",
	.homed = "RECOVERY FINISHED SUCCESSFULLY",
	.enable = "connection set command-execution enable",
	.said = said,
	.news = rome_news,
};

static int rome_open(uv_loop_t *loop, const struct drv_config *cfg,
		     struct drv **out, struct err *err)
{
	return robot_open(loop, &dialect, cfg, out, err);
}

const struct drv_class drv_rome_cli = {
	.name = "rome-cli",
	.summary = "ROME robotic patch panels, command line over TCP",
	.abi = DRV_ABI,
	.kind = DRV_SPACE,
	.options = options,
	.open = rome_open,
	.close = base_close,
	.snapshot = base_snapshot,
	.submit = base_submit,
	.explain = robot_explain,
	.recoveries = DRV_HOMING,
	.recover = base_recover,
	.cancel = base_cancel_submit,
};
