/* SPDX-License-Identifier: Apache-2.0 */
/* The device side of the SCPI dialect, line by line, without sockets. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/emulators/scpi/scpi_device.h"

struct bench {
	struct emu e;
	struct scpi_device *d;
	int n_sets;
};

static enum emu_fate count(void *arg)
{
	((struct bench *)arg)->n_sets++;
	return EMU_DO;
}

static void set_up(struct bench *b, bool any_to_any)
{
	memset(b, 0, sizeof(*b));
	b->e.conf.name = "ocs0";
	b->e.conf.listen = "127.0.0.1:5025";
	b->e.faults.mem = &b->e.mem;
	xc_map_init(&b->e.mem, DRV_SPACE, 16, 16, any_to_any);
	b->d = scpi_device_new(&b->e);
}

static void tear_down(struct bench *b)
{
	scpi_device_free(b->d);
	xc_map_fini(&b->e.mem);
	faults_fini(&b->e.faults);
}

static void says(struct bench *b, const char *line, const char *want)
{
	char *copy = strdup(line);
	struct buf out = { 0 };

	assert_non_null(copy);
	scpi_device_line(b->d, copy, &out, count, b);
	assert_string_equal(buf_cstr(&out), want);
	buf_fini(&out);
	free(copy);
}

static void answers_as_the_vendor_writes(void **state)
{
	struct bench b;

	(void)state;
	set_up(&b, false);
	says(&b, "*idn?", "Polatis,N-OST-16x16-LU1-DMHNV,ocs0,6.7.3.9");
	says(&b, ":oxc:swit:size?", "16,16");
	says(&b, ":oxc:swit:conn:stat?", "(@),(@)");
	says(&b, ":oxc:swit:conn:add (@1,2,3),(@19,18,22)", "");
	says(&b, ":oxc:swit:conn:stat?", "(@1,2,3),(@19,18,22)");
	says(&b, ":oxc:swit:conn:port? 2", "\"18\"");
	says(&b, ":oxc:swit:conn:port? 5", "\"\"");
	says(&b, ":oxc:swit:conn:sub (@1,2),(@)", "");
	says(&b, ":oxc:swit:conn:stat?", "(@3),(@22)");
	says(&b, ":oxc:swit:conn:only (@1),(@17)", "");
	says(&b, ":oxc:swit:conn:stat?", "(@1),(@17)");
	says(&b, ":oxc:swit:disc:all;:oxc:swit:conn:stat?", "(@),(@)");
	says(&b, ":oxc:boot:mode?", "DARK");
	assert_int_equal(b.n_sets, 4);
	tear_down(&b);
}

static void takes_short_and_long_words(void **state)
{
	struct bench b;

	(void)state;
	set_up(&b, false);
	says(&b, "OXC:SWITCH:CONNECT:ADD (@1),(@17)", "");
	says(&b, ":Oxc:Swit:Connect:State?", "(@1),(@17)");
	says(&b, ":system:error?", "0, \"No error\"");
	says(&b, ":oxc:switc:conn:stat?", "");
	says(&b, ":oxc:swit:conn:stat", "");
	says(&b, ":oxc:swit:conn:stat?x", "");
	says(&b, ":oxc:swit:conn", "");
	says(&b, ":syst:err:all?",
	     "-113, \"Undefined header\", -113, \"Undefined header\", "
	     "-113, \"Undefined header\", -113, \"Undefined header\"");
	tear_down(&b);
}

static void errors_wait_in_the_queue(void **state)
{
	struct bench b;

	(void)state;
	set_up(&b, false);
	says(&b, ":oxc:swit:conn:add (@1),(@99)", "");
	says(&b, ":oxc:swit:conn:add (@1,2),(@17);:syst:err?",
	     "-222, \"Data out of range\"");
	says(&b, "*STB?", "4");
	says(&b, ":syst:err?;:syst:err?",
	     "-220, \"Parameter error\";0, \"No error\"");
	/* An ingress cannot be connected to an ingress. */
	says(&b, ":oxc:swit:conn:add (@1),(@2);:syst:err?",
	     "-222, \"Data out of range\"");
	for (int i = 0; i < 40; i++) {
		says(&b, ":nonsense", "");
	}
	for (int i = 0; i < 15; i++) {
		says(&b, ":syst:err?", "-113, \"Undefined header\"");
	}
	says(&b, ":syst:err?", "-350, \"Queue overflow\"");
	says(&b, ":syst:err?", "0, \"No error\"");
	tear_down(&b);
}

static void an_add_takes_over_without_a_word(void **state)
{
	struct bench b;

	(void)state;
	set_up(&b, false);
	says(&b, ":oxc:swit:conn:add (@1,2),(@17,18)", "");
	says(&b, ":oxc:swit:conn:add (@1),(@18);:syst:err?",
	     "0, \"No error\"");
	says(&b, ":oxc:swit:conn:stat?", "(@1),(@18)");
	tear_down(&b);
}

static void disabled_ports_do_not_connect(void **state)
{
	struct bench b;

	(void)state;
	set_up(&b, false);
	says(&b, ":oxc:swit:port:dis (@2,18)", "");
	says(&b, ":oxc:swit:port:stat? (@1,2,18)", "(E,D,D)");
	says(&b, ":oxc:swit:conn:add (@2),(@17);:syst:err?",
	     "-241, \"Hardware missing\"");
	says(&b, ":oxc:swit:port:enab (@2)", "");
	says(&b, ":oxc:swit:conn:add (@2),(@17);:syst:err?",
	     "0, \"No error\"");
	tear_down(&b);
}

static void any_to_any_has_one_side(void **state)
{
	struct bench b;

	(void)state;
	set_up(&b, true);
	says(&b, "*idn?", "Polatis,N-OST-16xCC-LU1-DMHNV,ocs0,6.7.3.9");
	says(&b, ":oxc:swit:conn:add (@1,3),(@2,16)", "");
	says(&b, ":oxc:swit:conn:stat?", "(@1,3),(@2,16)");
	says(&b, ":oxc:swit:conn:add (@5),(@4);:syst:err?",
	     "-222, \"Data out of range\"");
	says(&b, ":oxc:swit:conn:add (@4),(@17);:syst:err?",
	     "-222, \"Data out of range\"");
	tear_down(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answers_as_the_vendor_writes),
		cmocka_unit_test(takes_short_and_long_words),
		cmocka_unit_test(errors_wait_in_the_queue),
		cmocka_unit_test(an_add_takes_over_without_a_word),
		cmocka_unit_test(disabled_ports_do_not_connect),
		cmocka_unit_test(any_to_any_has_one_side),
	};

	return cmocka_run_group_tests_name("emulators/scpi_device", tests, NULL,
					   NULL);
}
