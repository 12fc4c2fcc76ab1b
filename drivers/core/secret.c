/* SPDX-License-Identifier: Apache-2.0 */
/* Keys and passwords in files of their own. */
#include "drivers/core/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/alloc.h"

#define SECRET_MAX (16 << 10)
#define SECRET_BYTES (SECRET_MAX + 2)	/* of each: one more shows that it is too long */

int secret_unusable(const char *path, const char *why, struct err *err)
{
	return err_set(err, WEFT_EDENIED, "%s: %s", path, why);
}

void secret_free(char *text)
{
	if (text) {
		explicit_bzero(text, SECRET_BYTES);
		free(text);
	}
}

/* What is wrong with the file behind fd, or NULL; its bytes into text. */
static const char *read_private(int fd, char *text, size_t *len)
{
	struct stat st;
	ssize_t n;

	if (fstat(fd, &st)) {
		return strerror(errno);
	}
	if (st.st_mode & (S_IRWXG | S_IRWXO)) {
		return "others may read it: chmod 600";
	}
	n = S_ISREG(st.st_mode) ? read(fd, text, SECRET_MAX + 1) : -1;
	*len = (size_t)n;
	return n > 0 && n <= SECRET_MAX ? NULL : "expected a file of 1 byte to 16 KiB";
}

int secret_read(const char *path, char **text, size_t *len, struct err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	const char *why;
	size_t n;

	*text = NULL;
	if (fd < 0) {
		return secret_unusable(path, strerror(errno), err);
	}
	*text = x_new(1, SECRET_BYTES);
	why = read_private(fd, *text, len ? len : &n);
	close(fd);
	if (why) {
		secret_free(*text);
		*text = NULL;
		return secret_unusable(path, why, err);
	}
	return 0;
}

void secret_hide(char *text, const char *secret)
{
	size_t len = strlen(secret);
	char *end;

	for (char *at = strstr(text, secret); at; at = strstr(at, secret)) {
		end = at + len;
		*at++ = '*';
		memmove(at, end, strlen(end) + 1);
	}
}

int secret_read_line(const char *path, char **line, struct err *err)
{
	int rc = secret_read(path, line, NULL, err);

	if (rc) {
		return rc;
	}
	(*line)[strcspn(*line, "\r\n")] = '\0';
	if (!(*line)[0]) {
		secret_free(*line);
		*line = NULL;
		return secret_unusable(path, "its first line is empty", err);
	}
	return 0;
}
