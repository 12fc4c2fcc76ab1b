/* SPDX-License-Identifier: Apache-2.0 */
/* Without the page. */
#include <string.h>

#include "controller/daemon/views/private.h"

int webui_new(const struct views *views, const char *host, int port,
	      struct webui **out, struct err *err)
{
	*out = NULL;
	return host ? build_lacks("--page", err) : 0;
}

void webui_get(struct webui *w, struct rpc_call *call)
{
	webui_answer_text(call, 404, "the page: not in this build\n");
}

void webui_answer_text(struct rpc_call *call, int status, const char *text)
{
	static const struct rpc_header headers[] = {
		{ "content-type", "text/plain; charset=utf-8" }, { NULL, NULL },
	};

	rpc_answer(call, status, headers, text, strlen(text));
}

void webui_free(struct webui *w)
{
}

void webui_changed(struct webui *w)
{
}

void webui_begin_change(struct webui *w, const char *who, const char *comment)
{
}

void webui_progress(struct webui *w, const struct apply_event *ev)
{
}

void webui_end_change(struct webui *w, const char *verdict, const struct err *err)
{
}

int webui_port(const struct webui *w)
{
	return 0;
}
