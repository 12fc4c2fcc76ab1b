/* SPDX-License-Identifier: Apache-2.0 */
/* lib/base/file: bounded reading, atomic writing under failures, locks. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/file.h"

static char dir[64];

static const char *in_dir(const char *name)
{
	static char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static int entries(void)
{
	DIR *d = opendir(dir);
	int n = 0;

	assert_non_null(d);
	for (struct dirent *e; (e = readdir(d));) {
		n += e->d_name[0] != '.';
	}
	closedir(d);
	return n;
}

static int setup(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/weft-test-XXXXXX");
	return mkdtemp(dir) && chmod(dir, 0755) == 0 ? 0 : -1;
}

static int teardown(void **state)
{
	DIR *d = opendir(dir);

	(void)state;
	for (struct dirent *e; d && (e = readdir(d));) {
		if (e->d_name[0] != '.') {
			unlinkat(dirfd(d), e->d_name, 0);
		}
	}
	closedir(d);
	return rmdir(dir);
}

static void check_content(const char *path, const char *want)
{
	char *data;
	size_t len;

	assert_int_equal(file_read(path, 1 << 20, &data, &len, NULL), 0);
	assert_int_equal(len, strlen(want));
	assert_string_equal(data, want);
	free(data);
}

static void write_then_read(void **state)
{
	const char *path = in_dir("f");
	const char bytes[] = "a\0b\n";
	struct stat st;
	char *data;
	size_t len;

	(void)state;
	assert_int_equal(file_write_atomic(path, bytes, 4, 0640, NULL), 0);
	assert_int_equal(file_read(path, 4, &data, &len, NULL), 0);
	assert_int_equal(len, 4);
	assert_memory_equal(data, bytes, 5);
	free(data);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0640);
	assert_int_equal(file_write_atomic(path, "new", 3, FILE_PRIVATE,
					   NULL), 0);
	check_content(path, "new");
	assert_int_equal(file_write_atomic(path, "", 0, FILE_PRIVATE, NULL), 0);
	check_content(path, "");
	assert_int_equal(entries(), 1);
}

/* Who has the old file open keeps reading the old bytes. */
static void replaces_instead_of_rewriting(void **state)
{
	const char *path = in_dir("f");
	char byte = 0;
	int fd;

	(void)state;
	assert_int_equal(file_write_atomic(path, "old", 3, FILE_PRIVATE,
					   NULL), 0);
	fd = open(path, O_RDONLY);
	assert_int_equal(file_write_atomic(path, "new", 3, FILE_PRIVATE,
					   NULL), 0);
	assert_int_equal(read(fd, &byte, 1), 1);
	assert_int_equal(byte, 'o');
	close(fd);
}

static void reading_is_bounded(void **state)
{
	const char *path = in_dir("f");
	struct err err;
	char *data, pipe_path[32];
	size_t len;
	int fds[2];

	(void)state;
	assert_int_equal(file_write_atomic(path, "12345", 5, FILE_PRIVATE,
					   NULL), 0);
	assert_int_equal(file_read(path, 5, &data, &len, NULL), 0);
	free(data);
	assert_int_equal(file_read(path, 4, &data, &len, &err), WEFT_ELIMIT);
	assert_non_null(strstr(err.msg, "4 bytes"));
	assert_int_equal(file_read("/dev/zero", 1 << 20, &data, &len, NULL),
			 WEFT_ELIMIT);
	assert_int_equal(file_read(in_dir("none"), 9, &data, &len, &err),
			 WEFT_ENOTFOUND);
	assert_non_null(strstr(err.msg, "none"));
	assert_int_equal(file_read(dir, 9, &data, &len, NULL), WEFT_EIO);
	assert_int_equal(pipe(fds), 0);
	assert_int_equal(write(fds[1], "piped", 5), 5);
	close(fds[1]);
	snprintf(pipe_path, sizeof(pipe_path), "/dev/fd/%d", fds[0]);
	check_content(pipe_path, "piped");
	close(fds[0]);
}

/* Runs `body` in a child, without privileges when we are root, and returns the code
 * with which it ended (an error code, negated). */
static int in_child(int (*body)(void), bool drop)
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		if (drop && geteuid() == 0 && (setgid(65534) ||
					       setuid(65534))) {
			_exit(99);
		}
		_exit(-body());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return -WEXITSTATUS(status);
}

static int overwrite(void)
{
	return file_write_atomic(in_dir("f"), "new", 3, FILE_PUBLIC, NULL);
}

static void read_only_directory(void **state)
{
	(void)state;
	assert_int_equal(file_write_atomic(in_dir("f"), "old", 3, FILE_PUBLIC,
					   NULL), 0);
	assert_int_equal(chmod(dir, 0555), 0);
	assert_int_equal(in_child(overwrite, true), WEFT_EIO);
	assert_int_equal(chmod(dir, 0755), 0);
	check_content(in_dir("f"), "old");
	assert_int_equal(entries(), 1);
}

/* A file system that takes some bytes and then no more. */
static int overwrite_when_full(void)
{
	static char big[100000];
	struct rlimit limit = { 4096, 4096 };
	struct err err;
	int rc;

	signal(SIGXFSZ, SIG_IGN);
	if (setrlimit(RLIMIT_FSIZE, &limit)) {
		return -99;
	}
	rc = file_write_atomic(in_dir("f"), big, sizeof(big), FILE_PUBLIC, &err);
	return rc && strstr(err.msg, "/f: ") ? rc : -98;
}

static void full_directory(void **state)
{
	(void)state;
	assert_int_equal(file_write_atomic(in_dir("f"), "old", 3, FILE_PUBLIC,
					   NULL), 0);
	assert_int_equal(in_child(overwrite_when_full, false), WEFT_EIO);
	check_content(in_dir("f"), "old");
	assert_int_equal(entries(), 1);
}

static void other_write_errors(void **state)
{
	char path[PATH_MAX + 10];
	struct err err;

	(void)state;
	assert_int_equal(file_write_atomic("/dev/null", "x", 1, FILE_PRIVATE,
					   NULL),
			 0);
	assert_int_equal(file_write_atomic("/dev/full", "x", 1, FILE_PRIVATE,
					   &err),
			 WEFT_EIO);
	assert_non_null(strstr(err.msg, "No space left"));
	assert_int_equal(file_write_atomic(dir, "x", 1, FILE_PRIVATE, NULL),
			 WEFT_EIO);
	assert_int_equal(file_write_atomic(in_dir("no/such"), "x", 1,
					   FILE_PRIVATE, NULL), WEFT_EIO);
	memset(path, 'x', sizeof(path));
	path[sizeof(path) - 1] = '\0';
	assert_int_equal(file_write_atomic(path, "x", 1, FILE_PRIVATE, NULL),
			 WEFT_EINVAL);
	assert_int_equal(entries(), 0);
}

static int take_lock(void)
{
	int fd;

	return file_lock(in_dir("lock"), &fd, NULL);
}

static void locks_exclude(void **state)
{
	char want[64];
	struct err err;
	int fd, other;

	(void)state;
	assert_int_equal(file_lock(in_dir("lock"), &fd, NULL), 0);
	snprintf(want, sizeof(want), "%d\n", (int)getpid());
	check_content(in_dir("lock"), want);
	assert_int_equal(in_child(take_lock, false), WEFT_ESTALE);
	assert_int_equal(file_lock(in_dir("lock"), &other, &err),
			 WEFT_ESTALE);
	snprintf(want, sizeof(want), "held by process %d", (int)getpid());
	assert_non_null(strstr(err.msg, want));
	close(fd);
	assert_int_equal(in_child(take_lock, false), 0);
	assert_int_equal(file_lock(in_dir("lock"), &fd, NULL), 0);
	snprintf(want, sizeof(want), "%d\n", (int)getpid());
	check_content(in_dir("lock"), want);
	close(fd);
	assert_int_equal(file_lock(in_dir("no/lock"), &fd, NULL), WEFT_EIO);
}

static int mode_of(const char *name)
{
	struct stat st;

	assert_int_equal(lstat(in_dir(name), &st), 0);
	return st.st_mode & 0777;
}

static void put(const char *name, int ceiling)
{
	assert_int_equal(file_write_atomic(in_dir(name), "new", 3, ceiling,
					   NULL), 0);
	check_content(in_dir(name), "new");
}

/* The umask and the ceiling say what a new file's mode is, its own mode and
 * the ceiling what an old one's. */
static void modes(void **state)
{
	static const struct { int mask, old, ceiling, want; } cases[] = {
		{ 022, 0, FILE_PUBLIC, 0644 }, { 077, 0, FILE_PUBLIC, 0600 },
		{ 0, 0, FILE_PUBLIC, 0666 }, { 0, 0, FILE_PRIVATE, 0600 },
		{ 022, 0, 0640, 0640 }, { 027, 0, 0644, 0640 },
		{ 022, 0600, FILE_PUBLIC, 0600 },
		{ 077, 0664, FILE_PUBLIC, 0664 },
		{ 022, 0755, FILE_PUBLIC, 0755 },
		{ 022, 0644, FILE_PRIVATE, 0600 },
		{ 022, 0644, 0640, 0640 }, { 022, 0600, 0644, 0600 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		mode_t mask;

		unlink(in_dir("f"));
		if (cases[i].old) {
			put("f", FILE_PRIVATE);
			assert_int_equal(chmod(in_dir("f"),
					       (mode_t)cases[i].old), 0);
		}
		mask = umask((mode_t)cases[i].mask);
		put("f", cases[i].ceiling);
		umask(mask);
		assert_int_equal(mode_of("f"), cases[i].want);
	}
	assert_int_equal(entries(), 1);
}

/* Of a group that is not ours, the group's bits say nothing of our group. */
static void ceilings(void **state)
{
	const char *path = in_dir("f");

	(void)state;
	assert_int_equal(file_ceiling(path), FILE_PRIVATE);
	assert_int_equal(file_ceiling("/dev/null"), FILE_PRIVATE);
	put("f", FILE_PUBLIC);
	assert_int_equal(chmod(path, 0640), 0);
	assert_int_equal(file_ceiling(path), 0640);
	if (geteuid() == 0) {
		assert_int_equal(chown(path, 0, 65534), 0);
		assert_int_equal(file_ceiling(path), 0600);
		assert_int_equal(chmod(path, 0664), 0);
		assert_int_equal(file_ceiling(path), 0644);
		/* The file keeps its group, of which the ceiling knows
		 * nothing. */
		put("f", 0640);
		assert_int_equal(mode_of("f"), 0600);
		put("f", FILE_PUBLIC);
		assert_int_equal(chmod(path, 0660), 0);
		put("f", FILE_PUBLIC);
		assert_int_equal(mode_of("f"), 0660);
	}
}

static void links_are_followed(void **state)
{
	char target[PATH_MAX], loop[PATH_MAX];

	(void)state;
	snprintf(target, sizeof(target), "%s/target", dir);
	put("target", FILE_PRIVATE);
	assert_int_equal(symlink(target, in_dir("absolute")), 0);
	assert_int_equal(symlink("absolute", in_dir("relative")), 0);
	assert_int_equal(symlink("not yet", in_dir("dangling")), 0);
	put("relative", FILE_PUBLIC);
	assert_int_equal(mode_of("target"), 0600);
	check_content(target, "new");
	put("dangling", FILE_PUBLIC);
	check_content(in_dir("not yet"), "new");
	assert_int_equal(readlink(in_dir("relative"), loop, sizeof(loop)), 8);
	assert_int_equal(readlink(in_dir("absolute"), loop, sizeof(loop)),
			 strlen(target));
	assert_int_equal(readlink(in_dir("dangling"), loop, sizeof(loop)), 7);
	assert_int_equal(entries(), 5);
	assert_int_equal(symlink("loop", in_dir("loop")), 0);
	assert_int_equal(file_write_atomic(in_dir("loop"), "x", 1, FILE_PUBLIC,
					   NULL), WEFT_EIO);
}

#define MALLORY 4001
#define BOB 4002

/* A link of this owner to `secret`, in a folder of that owner and mode: what writing through it
 * as `as` gives. */
static int write_over_link(uid_t owner, uid_t folder_owner, mode_t mode, uid_t as)
{
	char folder[PATH_MAX], link[PATH_MAX + 8], target[PATH_MAX];
	struct err err = { 0 };
	int rc;

	snprintf(folder, sizeof(folder), "%s/public", dir);
	snprintf(link, sizeof(link), "%s/link", folder);
	snprintf(target, sizeof(target), "%s/secret", dir);
	assert_int_equal(file_write_atomic(target, "old", 3, FILE_PUBLIC, &err), 0);
	assert_int_equal(chown(target, as, (gid_t)-1), 0);
	assert_int_equal(mkdir(folder, 0700), 0);
	assert_int_equal(chmod(folder, mode), 0);
	assert_int_equal(chown(folder, folder_owner, (gid_t)-1), 0);
	assert_int_equal(symlink(target, link), 0);
	assert_int_equal(lchown(link, owner, (gid_t)-1), 0);
	assert_int_equal(seteuid(as), 0);
	rc = file_write_atomic(link, "new", 3, FILE_PUBLIC, &err);
	assert_int_equal(seteuid(0), 0);
	check_content(target, rc ? "old" : "new");
	if (rc) {
		assert_non_null(strstr(err.msg, "a link that another user has made"));
	}
	/* Nor what is not there yet. */
	assert_int_equal(unlink(target), 0);
	assert_int_equal(seteuid(as), 0);
	assert_int_equal(file_write_atomic(link, "new", 3, FILE_PUBLIC, &err), rc);
	assert_int_equal(seteuid(0), 0);
	assert_int_equal(access(target, F_OK), rc ? -1 : 0);
	unlink(target);
	assert_int_equal(unlink(link), 0);
	assert_int_equal(rmdir(folder), 0);
	return rc;
}

/* As fs.protected_symlinks has it, also where the kernel does not. */
static void links_of_others_are_not(void **state)
{
	static const struct {
		uid_t owner, folder_owner;
		mode_t mode;
		uid_t as;
		int rc;
	} cases[] = {
		{ MALLORY, 0, 01777, 0, WEFT_EDENIED }, { MALLORY, 0, 01777, BOB, WEFT_EDENIED },
		{ MALLORY, BOB, 01777, 0, WEFT_EDENIED }, { 0, BOB, 01777, 0, 0 },
		{ BOB, 0, 01777, BOB, 0 }, { MALLORY, MALLORY, 01777, 0, 0 },
		{ MALLORY, 0, 0777, 0, 0 }, { MALLORY, 0, 01755, 0, 0 },
	};

	(void)state;
	if (geteuid() != 0) {
		print_message("links of others need root\n");
		return;
	}
	assert_int_equal(chmod(dir, 0777), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(write_over_link(cases[i].owner, cases[i].folder_owner,
						 cases[i].mode, cases[i].as), cases[i].rc);
	}
}

/* What the kernel leads to without a name is written to: an end of a pipe, an open file. */
static void open_files_are_written_to(void **state)
{
	char path[64], text[8] = "";
	int fds[2];

	(void)state;
	assert_int_equal(pipe(fds), 0);
	snprintf(path, sizeof(path), "/dev/fd/%d", fds[1]);
	assert_int_equal(file_write_atomic(path, "new", 3, FILE_PRIVATE, NULL), 0);
	assert_int_equal(read(fds[0], text, sizeof(text)), 3);
	assert_string_equal(text, "new");
	close(fds[0]);
	close(fds[1]);
	put("f", FILE_PUBLIC);
	fds[0] = open(in_dir("f"), O_WRONLY);
	assert_true(fds[0] >= 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fds[0]);
	assert_int_equal(file_write_atomic(path, "er", 2, FILE_PRIVATE, NULL), 0);
	check_content(in_dir("f"), "newer");
	close(fds[0]);
}

#define in_fresh_dir(test) \
	cmocka_unit_test_setup_teardown(test, setup, teardown)

/* In a child, as the test speaks on standard output. */
static void closed_standard_files(void **state)
{
	int status;
	pid_t pid = fork();

	(void)state;
	if (pid == 0) {
		char c = 0;
		int fd;

		close(STDIN_FILENO);
		close(STDERR_FILENO);
		if (file_open_standard() || file_open_standard()) {
			_exit(1);
		}
		fd = open("/dev/null", O_RDWR);
		_exit(fd <= STDERR_FILENO ? 2
		      : read(STDIN_FILENO, &c, 1) >= 0 ? 3
		      : write(STDERR_FILENO, &c, 1) >= 0 ? 4 : 0);
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		in_fresh_dir(write_then_read),
		in_fresh_dir(replaces_instead_of_rewriting),
		in_fresh_dir(reading_is_bounded),
		in_fresh_dir(read_only_directory),
		in_fresh_dir(full_directory),
		in_fresh_dir(other_write_errors),
		in_fresh_dir(modes),
		in_fresh_dir(ceilings),
		in_fresh_dir(links_are_followed),
		in_fresh_dir(locks_exclude),
		in_fresh_dir(links_of_others_are_not),
		in_fresh_dir(open_files_are_written_to),
		cmocka_unit_test(closed_standard_files),
	};

	return cmocka_run_group_tests_name("base/file", tests, NULL, NULL);
}
