/* SPDX-License-Identifier: Apache-2.0 */
/* The command parser of the polatis-scpi emulator: lines of commands on an
 * 8x8 switch, or with an odd first byte on an any-to-any one. However the
 * map was changed, both ends of a connection must agree on it. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/emulators/scpi/scpi_device.h"
#include "lib/base/alloc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static enum emu_fate do_it(void *arg)
{
	(void)arg;
	return EMU_DO;
}

static void check_map(const struct xc_map *m)
{
	for (int i = 0; i < m->n_ports; i++) {
		assert(m->peer[i] >= -1 && m->peer[i] < m->n_ports);
		assert(m->peer[i] < 0 || m->peer[m->peer[i]] == i);
	}
}

static void run_lines(struct emu *e, char *text)
{
	struct scpi_device *d = scpi_device_new(e);
	char *save = NULL;

	e->device = d;
	for (char *line = strtok_r(text, "\r\n", &save); line;
	     line = strtok_r(NULL, "\r\n", &save)) {
		struct buf out = { 0 };

		scpi_device_line(d, line, &out, do_it, NULL);
		assert(!out.data || strlen(out.data) == out.len);
		buf_fini(&out);
		check_map(&e->mem);
	}
	scpi_device_free(d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct emu e = { .conf = { .name = "fuzz", .listen = "nowhere" },
			 .dialect = &emu_scpi };
	char *text;

	if (size == 0) {
		return 0;
	}
	text = x_ndup((const char *)data + 1, size - 1);
	e.faults.mem = &e.mem;
	xc_map_init(&e.mem, DRV_SPACE, 8, 8, data[0] & 1);
	run_lines(&e, text);
	xc_map_fini(&e.mem);
	free(text);
	return 0;
}
