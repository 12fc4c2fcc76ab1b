/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a fuzz target over files and folders of files, once each, and prints
 * one TAP line: what `make check` uses in place of libFuzzer's main. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay_file(const char *path)
{
	char *data;
	size_t len;

	if (file_read(path, 16 << 20, &data, &len, NULL)) {
		return 0;
	}
	LLVMFuzzerTestOneInput((const uint8_t *)data, len);
	free(data);
	return 1;
}

static int replay(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *e;
	char child[4096];
	int n = 0;

	if (!dir) {
		return replay_file(path);
	}
	while ((e = readdir(dir))) {
		if (e->d_name[0] != '.') {
			snprintf(child, sizeof(child), "%s/%s", path,
				 e->d_name);
			n += replay_file(child);
		}
	}
	closedir(dir);
	return n;
}

int main(int argc, char **argv)
{
	const char *name = strrchr(argv[0], '/');
	int n = 0;

	for (int i = 1; i < argc; i++) {
		n += replay(argv[i]);
	}
	printf("%sok 1 - %s: %d inputs replayed\n", n > 0 ? "" : "not ",
	       name ? name + 1 : argv[0], n);
	return n > 0 ? 0 : 1;
}
