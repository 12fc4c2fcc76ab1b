/* SPDX-License-Identifier: Apache-2.0 */
/* Chakra traces, whatever their bytes: refused with mistakes that have text, or keys that a job
 * takes. The first byte has the number of ranks, 2 to 5; each part before the last, the first of
 * which are the groups, begins with two bytes of its length. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "controller/import/import.h"
#include "controller/model/model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int good)
{
	if (!good) {
		abort();
	}
}

/* A copy with a zero behind it, as files have. */
static struct import_text take_part(const uint8_t **data, size_t *size, int last)
{
	struct import_text t = { .name = "fuzz" };
	const size_t head = last ? 0 : 2;
	char *text;

	if (*size < head) {
		*size = 0;
	} else if (*size > 0) {
		t.len = last ? *size : (size_t)((*data)[0] << 8 | (*data)[1]);
		t.len = t.len < *size - head ? t.len : *size - head;
		*data += head;
		*size -= head;
	}
	text = calloc(1, t.len + 1);
	check(text != NULL);
	memcpy(text, *data, t.len);
	t.text = text;
	*data += t.len;
	*size -= t.len;
	return t;
}

static void check_job(struct buf *keys, int ranks)
{
	struct buf text = { 0 };
	struct err_list errs = { 0 };
	struct model_fabric *f = NULL;

	buf_printf(&text, "weft: 1\nfabric: fuzz\nhosts:\n"
		   "  - { name: \"h[0-%d]\", ports: \"p[0-7]\", rate: 1Gbps }\n"
		   "switches:\n  - { name: s, size: 64x64, driver: sim }\nfibres:\n"
		   "  - { from: \"h[0-%d].p[0-7]\", to: \"s.[1-%d]\" }\njobs:\n  - name: train\n"
		   "    nodes: \"h[0-%d]\"\n", ranks - 1, ranks - 1, 8 * ranks, ranks - 1);
	for (const char *p = buf_cstr(keys); *p; ) {
		const size_t len = strcspn(p, "\n") + 1;

		buf_printf(&text, "    %.*s", (int)len, p);
		p += len;
	}
	if (model_parse("job", buf_cstr(&text), text.len, &f, &errs)) {
		for (int i = 0; i < errs.n; i++) {
			check(errs.v[i].code == WEFT_ELIMIT);
		}
	}
	model_free(f);
	err_list_fini(&errs);
	buf_fini(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const int ranks = size > 0 ? 2 + data[0] % 4 : 2;
	struct import_report report = { 0 };
	struct import_text groups, files[5];
	struct buf out = { 0 };
	int r;

	data += size > 0;
	size -= size > 0;
	groups = take_part(&data, &size, 0);
	for (int i = 0; i < ranks; i++) {
		files[i] = take_part(&data, &size, i == ranks - 1);
	}
	r = import_chakra(files, ranks, &groups, &out, &report);
	check((r != 0) == (report.errs.n > 0));
	for (int i = 0; i < report.errs.n; i++) {
		check(report.errs.v[i].msg[0] != '\0');
	}
	if (r == 0) {
		check_job(&out, ranks);
	}
	for (int i = 0; i < ranks; i++) {
		free((char *)files[i].text);
	}
	free((char *)groups.text);
	err_list_fini(&report.errs);
	err_list_fini(&report.notes);
	buf_fini(&out);
	return 0;
}
