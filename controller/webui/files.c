/* SPDX-License-Identifier: Apache-2.0 */
/* The files of the page, by path. */
#include <string.h>

#include "controller/webui/webui.h"

const struct page_file *page_find(const char *path)
{
	const struct page_file *f = page_files;

	if (strcmp(path, "/") == 0) {
		path = "/index.html";
	}
	while (f->path && strcmp(f->path, path) != 0) {
		f++;
	}
	return f->path ? f : NULL;
}
