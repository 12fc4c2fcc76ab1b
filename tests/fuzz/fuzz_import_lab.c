/* SPDX-License-Identifier: Apache-2.0 */
/* Labs in files of others, whatever their bytes: refused with mistakes that have text, or a text
 * that is a fabric. Parts apart by a line of '=': devices, l1_links, links and testbeds of
 * sonic-mgmt; one part: NetBox's. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "controller/import/import.h"
#include "controller/model/model.h"

#define MAX_BYTES 16384

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int good)
{
	if (!good) {
		abort();
	}
}

static void check_report(int r, struct import_report *report)
{
	check((r != 0) == (report->errs.n > 0));
	for (int i = 0; i < report->errs.n; i++) {
		check(report->errs.v[i].msg[0] != '\0');
	}
	err_list_fini(&report->errs);
	err_list_fini(&report->notes);
}

/* What weft writes it reads, but for limits, and labels and addresses that are another's. */
static void check_fabric(const struct buf *out)
{
	struct err_list errs = { 0 };
	struct model_fabric *f = NULL;

	if (model_parse("out", buf_cstr(out), out->len, &f, &errs)) {
		for (int i = 0; i < errs.n; i++) {
			check(errs.v[i].code == WEFT_ELIMIT || strstr(errs.v[i].msg, "label") ||
			      strstr(errs.v[i].msg, "address: ") ||
			      strstr(errs.v[i].msg, "cannot be its name"));
		}
	}
	model_free(f);
	err_list_fini(&errs);
}

/* The next part, NULL and empty behind the last. */
static struct import_text next_part(const char **at)
{
	struct import_text t = { "fuzz", *at, *at ? strlen(*at) : 0 };
	const char *mark = *at ? strstr(*at, "\n=\n") : NULL;

	t.len = mark ? (size_t)(mark - t.text) : t.len;
	*at = mark ? mark + 3 : NULL;
	return t;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct import_defaults d = { "fuzz", "sim", 1000 };
	struct import_report report = { 0 };
	struct buf out = { 0 };
	char *text = strndup((const char *)data, size < MAX_BYTES ? size : MAX_BYTES);
	const char *at = text;
	struct import_text part = next_part(&at);
	struct import_sonic in = { .devices = part, .group = "lab" };
	int r;

	if (at) {
		in.l1_links = next_part(&at);
		in.links = next_part(&at);
		in.testbeds = next_part(&at);
		r = import_sonic_mgmt(&in, &d, &out, &report);
	} else {
		r = import_netbox(&part, size % 2 ? "ocs" : NULL, &d, &out, &report);
	}
	check_report(r, &report);
	if (r == 0 && !in.testbeds.text) {
		check_fabric(&out);
	}
	buf_fini(&out);
	free(text);
	return 0;
}
