/* SPDX-License-Identifier: Apache-2.0 */
/* `sonic-ocs` against an interactive bash on a terminal, whose `show` prints a
 * switch's tables: echo, prompt, title, colours and bracketed paste are bash's own. */
#include "tests/unit/drivers/rig.h"

#include <netinet/in.h>
#include <poll.h>
#include <pty.h>

static const char shell[] =
	"PS1='\\[\\e]0;\\u@\\h: \\w\\a\\]\\[\\e[01;32m\\]admin@sonic\\[\\e[00m\\]:~$ '\n"
	"bind 'set enable-bracketed-paste on'\n"
	"show() { case \"$*\" in\n"
	"'version') echo 'HwSKU: OCS-2';;\n"
	"'ocs port config') printf '%s\\n' 'id  label  state' '1A  normal' '2A  normal'"
	" '1B  normal' '2B  force_blocked';;\n"
	"'ocs port status') echo 'id  status';;\n"
	"'ocs factory-insertion-loss') echo 'id  loss';;\n"
	"'ocs cross-connect config') printf '%s\\n' 'id  a_side  b_side' \"$made\";;\n"
	"'ocs cross-connect status') printf '%s\\n' 'id' \"${made:+$made tuned tuned}\";;\n"
	"esac; }\n"
	"sudo() { made='1A-2B  1A  2B'; echo 'Add cross-connect succeeded'; }\n"
	"cd /; echo 'Debian GNU/Linux 12'\n";

/* What the one sends the other gets, until either ends. */
static void relay(int a, int b)
{
	struct pollfd p[] = { { a, POLLIN, 0 }, { b, POLLIN, 0 } };
	char bytes[4096];

	for (;;) {
		poll(p, 2, -1);
		for (int i = 0; i < 2; i++) {
			ssize_t n = p[i].revents ? read(p[i].fd, bytes, sizeof(bytes)) : 1;

			if (n <= 0 || (p[i].revents && write(p[1 - i].fd, bytes, (size_t)n) != n)) {
				return;
			}
		}
	}
}

static void be_a_shell(int listening, const char *rcfile)
{
	char *argv[] = { "bash", "--noprofile", "--rcfile", (char *)rcfile, "-i", NULL };
	char *env[] = { "TERM=xterm-256color", "PATH=/usr/bin:/bin", "HOME=/", NULL };
	struct winsize size = { .ws_row = 24, .ws_col = 80 };
	int terminal, fd = accept(listening, NULL, NULL);
	pid_t bash = forkpty(&terminal, NULL, NULL, &size);

	if (bash == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execve("/bin/bash", argv, env);
		_exit(1);
	}
	relay(fd, terminal);
	kill(bash, SIGKILL);
	waitpid(bash, NULL, 0);
}

static void start_shell(struct rig *r)
{
	struct sockaddr_in addr = { .sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(addr);
	int listening = socket(AF_INET, SOCK_STREAM, 0);
	FILE *f = fopen(r->state, "w");

	assert_non_null(f);
	fputs(shell, f);
	fclose(f);
	assert_int_equal(bind(listening, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(getsockname(listening, (struct sockaddr *)&addr, &len), 0);
	assert_int_equal(listen(listening, 1), 0);
	snprintf(r->address, sizeof(r->address), "127.0.0.1:%d", ntohs(addr.sin_port));
	r->emulator = fork();
	assert_true(r->emulator >= 0);
	if (r->emulator == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		be_a_shell(listening, r->state);
		_exit(0);
	}
	close(listening);
}

static void an_interactive_bash_is_understood(void **state)
{
	static const struct drv_item add[] = { ADD(0, 1) };
	struct rig *r = test_calloc(1, sizeof(*r));
	int status;

	(void)state;
	rig_init(r, "sonic-ocs", 2, 2, false);
	rig_option(r, "settle_ms", "5");
	start_shell(r);
	rig_open(r);
	rig_expect_map(r, "");
	assert_non_null(strstr(r->snap.identity, "OCS-2"));
	assert_int_equal(r->snap.n_ports, 1);
	assert_false(r->snap.ports[0].enabled);
	assert_int_equal(rig_submit(r, DRV_SAFE, 1, add), 0);
	assert_int_equal(r->outcomes[0].evidence, DRV_READ_BACK);
	rig_expect_map(r, "0-1");
	/* The relay ends with the session. */
	rig_close(r);
	assert_int_equal(waitpid(r->emulator, &status, 0), r->emulator);
	assert_true(WIFEXITED(status));
	r->emulator = 0;
	rig_fini(r);
	test_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_interactive_bash_is_understood),
	};

	return cmocka_run_group_tests_name("drivers/sonic_bash", tests, NULL, NULL);
}
