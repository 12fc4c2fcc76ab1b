/* SPDX-License-Identifier: Apache-2.0 */
/* Plan files come from people: any bytes must be read or refused. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "controller/plan/plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct plan_file file;
	struct err err = { 0 };

	(void)plan_file_is(data, size);
	if (plan_file_read(data, size, &file, &err) == 0) {
		if (strlen(file.digest) != 64 || strlen(file.config.text) != file.config.len) {
			__builtin_trap();
		}
		plan_file_fini(&file);
	} else if (err.code == 0 || err.msg[0] == '\0') {
		__builtin_trap();
	}
	return 0;
}
