/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where log lines go, and which of them: sinks, and levels at run time. Lines are
 * written by the loop and by workers, so a sink keeps no state and writes a line at
 * once. Levels change by the call Log, for one room or for all, until weftd ends.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "controller/daemon/core/core.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/output/writer.h"

#define MAX_FIELDS 8		/* of a line in the journal; more are dropped */
#define FIELD_SIZE 512		/* bytes; a longer one is cut */
#define MAX_ROOMS 32		/* in an answer to Log */

/* One object a line; written at once, as workers log too. */
static void log_json(enum log_level level, const char *room, const char *line,
		     const struct log_field *fields, int n)
{
	struct buf b = { 0 };
	char when[32];

	buf_printf(&b, "{\"time\":\"%s\",\"level\":\"%s\",\"room\":\"%s\","
		   "\"message\":", clk_iso(clk_wall_ns(), when, sizeof(when)),
		   log_level_name(level), room);
	out_json_quote(&b, line);
	for (int i = 0; i < n; i++) {
		buf_printf(&b, ",\"%s\":", fields[i].name);
		out_json_quote(&b, fields[i].value);
	}
	buf_str(&b, "}\n");
	fwrite(b.data, 1, b.len, stderr);
	buf_fini(&b);
}

/* WEFT_NAME=value, as the journal wants names. */
static char *journal_field(char text[FIELD_SIZE], const char *name, const char *value)
{
	int n = snprintf(text, FIELD_SIZE, "WEFT_%s=%s", name, value);

	for (char *p = text; *p != '=' && p < text + n; p++) {
		*p = (char)(*p >= 'a' && *p <= 'z' ? *p - 'a' + 'A' : *p);
	}
	return text;
}

/* Called by workers as well, like log_json. */
static void log_journal(enum log_level level, const char *room, const char *line,
			const struct log_field *fields, int n)
{
	/* As syslog(3) counts; events are of note to people. */
	static const int priority[] = {
		[LOG_ERROR] = 3, [LOG_WARN] = 4, [LOG_INFO] = 5, [LOG_DEBUG] = 7,
	};
	char text[MAX_FIELDS + 1][FIELD_SIZE], message[1100], number[16];
	char *v[MAX_FIELDS + 3] = { number, message };
	int k = 2;

	snprintf(number, sizeof(number), "PRIORITY=%d", priority[level]);
	snprintf(message, sizeof(message), "MESSAGE=%s", line);
	v[k++] = journal_field(text[0], "room", room);
	for (int i = 0; i < n && i < MAX_FIELDS; i++) {
		v[k++] = journal_field(text[i + 1], fields[i].name, fields[i].value);
	}
	journald_send(v, k);
}

/* The service manager says which socket standard error is, if it is one of the
 * journal's: it may have been redirected to a file since. */
static bool is_journal(int fd)
{
	const char *text = getenv("JOURNAL_STREAM");
	unsigned long long dev, ino;
	struct stat st;

	return text && sscanf(text, "%llu:%llu", &dev, &ino) == 2 &&
	       fstat(fd, &st) == 0 && st.st_dev == dev && st.st_ino == ino;
}

static enum { SINK_LINES, SINK_JSON, SINK_JOURNAL } chosen;

void log_sinks_init(bool json)
{
	if (json) {
		chosen = SINK_JSON;
		log_set_sink(log_json);
	} else if (is_journal(2)) {
		chosen = SINK_JOURNAL;
		log_set_sink(log_journal);
	}
}

/* The journal reads standard error too, where a number in angles is the priority. */
void log_sinks_last(const char *line)
{
	static const char *const forms[] = {
		[SINK_LINES] = "%s error weftd: %s\n",
		[SINK_JSON] = ("{\"time\":\"%s\",\"level\":\"error\",\"room\":\"weftd\","
			       "\"message\":\"%s\"}\n"),
		[SINK_JOURNAL] = "<3>%.0sweftd: %s\n",
	};
	char when[32], text[256];
	int n = snprintf(text, sizeof(text), forms[chosen],
			 clk_iso(clk_wall_ns(), when, sizeof(when)), line);

	(void)!write(STDERR_FILENO, text, (size_t)n);
}

/* ---- the call ------------------------------------------------------------ */

/* All rooms with their levels. */
static int answer(struct rpc_call *call, struct err *err)
{
	Weft__V1__LogResponse res = WEFT__V1__LOG_RESPONSE__INIT;
	Weft__V1__LogLevel rows[MAX_ROOMS], *list[MAX_ROOMS];
	enum log_level level;
	const char *name;

	for (int i = 0; i < MAX_ROOMS && (name = log_room(i, &level)); i++) {
		weft__v1__log_level__init(&rows[i]);
		rows[i].room = (char *)name;
		rows[i].level = (char *)log_level_name(level);
		list[res.n_levels++] = &rows[i];
	}
	res.levels = list;
	return rpc_send(call, &res.base, err);
}

void handle_log(struct rpc_call *call, const ProtobufCMessage *msg, void *arg)
{
	const char *spec = ((const Weft__V1__LogRequest *)msg)->levels;
	char who[RPC_PEER_TEXT_MAX];
	struct err err = { 0 };
	int r = *spec ? log_set_levels(spec, &err) : 0;

	(void)arg;
	if (r == 0 && *spec) {
		/* Logged at any level but "error". */
		log_warn("weftd", "log levels: %.200s (%s)", spec,
			 rpc_peer_text(rpc_call_peer(call), who, sizeof(who)));
	}
	call_end(call, r ? r : answer(call, &err), &err);
}
