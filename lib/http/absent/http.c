/* SPDX-License-Identifier: Apache-2.0 */
/* Without HTTP/1.1: no page and no metrics. */
#include "lib/http/http.h"

int http_server_new(uv_loop_t *loop, const struct http_config *cfg,
		    struct http_server **out, struct err *err)
{
	return build_lacks(cfg->option, err);
}

void http_server_free(struct http_server *s)
{
}

/* The others are of a server that was made. */
int http_server_port(const struct http_server *s)
{
	return 0;
}

const char *http_path(const struct http_request *q)
{
	return "";
}

void http_answer(struct http_request *q, int status, const struct http_header *headers,
		 const void *body, size_t len)
{
}
