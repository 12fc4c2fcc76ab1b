/* SPDX-License-Identifier: Apache-2.0 */
/* Where memory ends the process does (lib/base/alloc.h), in libraries of this room as well. */
#include "lib/base/alloc.h"
#include "lib/rpc/private.h"

#include <stdlib.h>

static void *mem_malloc(size_t size, void *user)
{
	(void)user;
	return x_malloc(size);
}

static void *mem_calloc(size_t n, size_t size, void *user)
{
	(void)user;
	return x_new(n, size);
}

static void *mem_realloc(void *p, size_t size, void *user)
{
	(void)user;
	return x_realloc(p, size);
}

static void mem_free(void *p, void *user)
{
	(void)user;
	free(p);
}

nghttp2_mem rpc_mem = { NULL, mem_malloc, mem_free, mem_calloc, mem_realloc };

void rpc_set_allocators(void)
{
	rpc_tls_set_allocators();
}
