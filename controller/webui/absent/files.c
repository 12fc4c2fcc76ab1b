/* SPDX-License-Identifier: Apache-2.0 */
/* Without the page: no files, no pictures. */
#include "controller/webui/webui.h"

const struct page_file *page_find(const char *path)
{
	return NULL;
}

int page_picture(const struct model_fabric *f, const struct plan *plan,
		 struct buf *out, struct err *err)
{
	return build_lacks("pictures", err);
}

int page_steps(const struct plan *plan, struct buf *out, struct err *err)
{
	return build_lacks("pictures", err);
}
