/* SPDX-License-Identifier: Apache-2.0 */
/* Whole command lines that need no weftd: output, messages, exit codes. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "controller/cli/core/cli.h"
#include "controller/proto_convert/report.h"

#define MAX_WORDS 32
#define MAX_OUTPUT (1 << 20)

struct fixture {
	char dir[64];
	int code;
	char *out, *err;	/* what the last command said */
};

static void save_stream(FILE *stream, const char *dir, const char *name,
			int *saved)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0600);
	assert_true(fd >= 0);
	fflush(stream);
	*saved = dup(fileno(stream));
	dup2(fd, fileno(stream));
	close(fd);
}

static char *restore_stream(FILE *stream, const char *dir, const char *name,
			    int saved)
{
	char path[128], *text = calloc(1, MAX_OUTPUT);
	FILE *f;

	fflush(stream);
	dup2(saved, fileno(stream));
	close(saved);
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "r");
	assert_non_null(f);
	text[fread(text, 1, MAX_OUTPUT - 1, f)] = '\0';
	fclose(f);
	return text;
}

/* Runs a line of words apart by blanks; "@" stands for the scratch folder. */
static int weft(struct fixture *f, const char *line)
{
	char text[1024], *argv[MAX_WORDS], *to = text;
	int argc = 0, saved_out, saved_err;

	for (const char *s = line; *s; s++) {
		to += *s == '@' ? sprintf(to, "%s", f->dir)
				: sprintf(to, "%c", *s);
	}
	*to = '\0';
	for (char *s = strtok(text, " "); s; s = strtok(NULL, " ")) {
		argv[argc++] = s;
	}
	argv[argc] = NULL;
	free(f->out);
	free(f->err);
	save_stream(stdout, f->dir, "out", &saved_out);
	save_stream(stderr, f->dir, "err", &saved_err);
	f->code = cli_main(argc, argv);
	f->out = restore_stream(stdout, f->dir, "out", saved_out);
	f->err = restore_stream(stderr, f->dir, "err", saved_err);
	return f->code;
}

static json_t *parsed(const struct fixture *f)
{
	json_error_t e;
	json_t *j = json_loads(f->out, 0, &e);

	if (!j) {
		fail_msg("%s: %s", e.text, f->out);
	}
	return j;
}

static json_int_t number(const struct fixture *f, const char *key)
{
	json_t *j = parsed(f), *v = json_object_get(j, key);
	json_int_t n = json_integer_value(v);

	if (!json_is_integer(v)) {
		fail_msg("no number \"%s\" in %s", key, f->out);
	}
	json_decref(j);
	return n;
}

static void expect_text(const struct fixture *f, const char *key,
			const char *want)
{
	json_t *j = parsed(f);
	const char *s = json_string_value(json_object_get(j, key));

	assert_non_null(s);
	assert_string_equal(s, want);
	json_decref(j);
}

static bool truth(const struct fixture *f, const char *key)
{
	json_t *j = parsed(f), *v = json_object_get(j, key);
	bool b = json_is_true(v);

	assert_true(json_is_boolean(v));
	json_decref(j);
	return b;
}

static void write_file(const struct fixture *f, const char *name,
		       const char *text)
{
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", f->dir, name);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	strcpy(f->dir, "/tmp/weft-cli-XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	setenv("WEFT_SOCKET", "/nonexistent/weftd.sock", 1);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	char command[128];
	int r;

	snprintf(command, sizeof(command), "rm -rf %s", f->dir);
	r = system(command);
	free(f->out);
	free(f->err);
	free(f);
	return r;
}

static const char fabric[] =
	"weft: 1\n"
	"fabric: small\n"
	"hosts:\n"
	"  - { name: \"gpu[0-3]\", ports: \"p[0-1]\", rate: 100Gbps }\n"
	"switches:\n"
	"  - { name: ocs0, size: 8x8, driver: sim, loss: 1dB }\n"
	"fibres:\n"
	"  - { from: \"gpu[0-3].p[0-1]\", to: \"ocs0.[1-8]\" }\n"
	"jobs:\n"
	"  - name: reduce\n"
	"    nodes: gpu[0-3]\n"
	"    collective: allreduce\n"
	"    size: 1MiB\n"
	"    topology: \"Ring(4)\"\n"
	"    alpha: 10us\n";

static void test_check(void **state)
{
	struct fixture *f = *state;

	write_file(f, "f.yaml", fabric);
	assert_int_equal(weft(f, "weft check @/f.yaml --format json"), 0);
	assert_true(truth(f, "valid"));
	assert_int_equal(number(f, "hosts"), 4);
	assert_int_equal(weft(f, "weft check @/none.yaml"), 65);
	assert_string_equal(f->out, "");
}

static void test_check_names_every_mistake(void **state)
{
	struct fixture *f = *state;
	const char *first, *second;

	write_file(f, "f.yaml",
		   "weft: 1\nfabric: x\nhosts:\n"
		   "  - { name: a, prots: p0 }\n"
		   "  - { name: b, ports: p0, rate: 100GB }\n");
	assert_int_equal(weft(f, "weft check @/f.yaml"), 65);
	first = strstr(f->err, "f.yaml:4:");
	second = strstr(f->err, "f.yaml:5:");
	assert_non_null(first);
	assert_non_null(second);
	assert_true(first < second);
	assert_int_equal(strncmp(f->err, "weft: ", 6), 0);
}

static void test_check_knows_drivers(void **state)
{
	struct fixture *f = *state;
	char text[1024];
	char *at;

	strcpy(text, fabric);
	at = strstr(text, "sim");
	memcpy(at, "sym", 3);
	write_file(f, "f.yaml", text);
	assert_int_equal(weft(f, "weft check @/f.yaml"), 65);
	assert_non_null(strstr(f->err, "f.yaml:6:"));
	assert_non_null(strstr(f->err, "driver \"sym\""));
	assert_non_null(strstr(f->err, "hint: "));
}

/* Whatever their kind, by each command that reads a file. */
static void test_all_mistakes_in_one_run(void **state)
{
	static const char *const commands[] = {
		"weft check @/f.yaml", "weft plan --offline -f @/f.yaml",
	};
	struct fixture *f = *state;

	for (int i = 0; i < 2; i++) {
		write_file(f, "f.yaml", "weft: 1\nfabric: x\n"
			   "hosts: [ { name: a, prots: p0 } ]\nswitches:\n"
			   "  - { name: s, size: 4x4, driver: sym }\n"
			   "  - { name: t, size: 4x4, driver: sim, options: { colour: red } }\n"
			   "  - { name: u, size: 4x4, driver: sim, address: 'x:1' }\n"
			   "  - { name: v, size: 4x4, driver: sim, address: 'x:1' }\n");
		assert_int_equal(weft(f, commands[i]), 65);
		assert_non_null(strstr(f->err, "'prots'"));
		assert_non_null(strstr(f->err, "f.yaml:5:13: s: driver \"sym\""));
		assert_non_null(strstr(f->err, "f.yaml:6:13: t: option \"colour\""));
		assert_non_null(strstr(f->err, "f.yaml:8:49: v: address: x:1 is that of u"));
		write_file(f, "f.yaml", "weft: 1\nfabric: x\nhosts: [ { name: a, ports: p0 } ]\n"
			   "switches:\n  - { name: t, size: 4x4, driver: sim, "
			   "options: { x: y } }\n");
		assert_int_equal(weft(f, commands[i]), 65);
		assert_non_null(strstr(f->err, "option \"x\" does not exist"));
	}
}

static void test_plan_offline(void **state)
{
	struct fixture *f = *state;

	write_file(f, "f.yaml", fabric);
	assert_int_equal(weft(f, "weft plan -f @/f.yaml --format json"), 2);
	assert_non_null(strstr(f->err, "dark"));
	assert_int_equal(number(f, "add"), 8);
	assert_false(truth(f, "nothing_to_do"));
	assert_int_equal(weft(f, "weft plan @/f.yaml --color never"), 2);
	assert_non_null(strstr(f->err, "planning against dark devices"));
	assert_non_null(strstr(f->out, "+ ocs0  in 1 -> out "));
	assert_non_null(strstr(f->out, "gpu0.p0 -> "));
	assert_non_null(strstr(f->out, "8 to add, 0 to delete, 0 kept, 0 "
				       "programs to load\n"));
	assert_null(strstr(f->out, "\033"));
	assert_int_equal(weft(f, "weft plan @/f.yaml --color always"), 2);
	assert_non_null(strstr(f->out, "\033[32m+\033[0m ocs0"));
	assert_int_equal(weft(f, "weft plan -f @/f.yaml -o @/p"), 2);
	assert_int_equal(weft(f, "weft apply @/p"), 69);
	assert_int_equal(weft(f, "weft plan"), 69);
}

static void test_schedule_round_trip(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(weft(f, "weft schedule make -t Torus(3,3) -c "
				 "allreduce -o @/s.pb --format json"), 0);
	assert_int_equal(number(f, "nodes"), 9);
	assert_true(truth(f, "bandwidth_optimal"));
	assert_int_equal(weft(f, "weft schedule verify @/s.pb --format json"),
			 0);
	assert_true(truth(f, "valid"));
	expect_text(f, "bandwidth_factor", "16/9");
	assert_int_equal(weft(f, "weft schedule export @/s.pb --to json -o "
				 "@/s.json"), 0);
	assert_string_equal(f->out, "");
	assert_int_equal(weft(f, "weft schedule verify @/s.json"), 0);
	assert_int_equal(weft(f, "weft schedule show @/s.json --step 1 "
				 "--format json"), 0);
	assert_int_equal(weft(f, "weft schedule show @/s.json --step 99"), 64);
	assert_int_equal(weft(f, "weft schedule export @/s.pb"), 0);
	assert_int_equal(f->out[0], '{');
	assert_int_equal(weft(f, "weft schedule export @/s.pb --to msccl-xml"),
			 0);
	assert_int_equal(strncmp(f->out, "<algo ", 6), 0);
	assert_int_equal(weft(f, "weft schedule export @/s.pb --to rccl-xml "
				 "-o @/s.xml"), 0);
	assert_string_equal(f->out, "");
	assert_int_equal(weft(f, "weft schedule export @/s.pb --to "
				 "mscclpp-json"), 0);
	assert_non_null(strstr(f->out, "\"inplace\": true"));
	assert_int_equal(weft(f, "weft schedule export @/s.pb --to "
				 "mscclpp-json --out-of-place"), 0);
	assert_non_null(strstr(f->out, "\"inplace\": false"));
	/* Routes are those of an all-to-all. */
	assert_int_not_equal(weft(f, "weft schedule export @/s.pb --to "
				     "routes-json"), 0);
	assert_int_equal(weft(f, "weft schedule make --topology K(4) "
				 "--collective all-to-all -o @/a.pb"), 0);
	assert_int_equal(weft(f, "weft schedule export @/a.pb --to "
				 "routes-proto -o @/a.routes"), 0);
	assert_string_equal(f->out, "");
	assert_int_equal(weft(f, "weft schedule export @/a.pb --to "
				 "routes-json"), 0);
	assert_int_equal(strncmp(f->out, "{\"weft_routes\":1,", 17), 0);
}

/* By construction, by BFB, the better of them; and in batches. */
static void test_schedule_algorithms(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(weft(f, "weft schedule make -t L(Pow(K(2),2)) -c "
				 "allreduce -a expand --format json"), 0);
	expect_text(f, "algorithm", "expand");
	expect_text(f, "bandwidth_factor", "2");
	assert_int_equal(number(f, "steps"), 6);
	assert_int_equal(weft(f, "weft schedule make -t L(Pow(K(2),2)) -c "
				 "allreduce -a bfb --format json"), 0);
	expect_text(f, "algorithm", "bfb");
	assert_int_equal(weft(f, "weft schedule make -t Mesh(4,4) -c "
				 "allreduce -a bfb --format json --batches 16"), 0);
	expect_text(f, "bandwidth_factor", "231/64");
	assert_int_equal(number(f, "steps"), 27);
	assert_int_equal(number(f, "batches"), 16);
	assert_int_equal(weft(f, "weft schedule make -t Torus(4,4) -c "
				 "allreduce --batches 0"), 64);
	assert_int_equal(weft(f, "weft schedule make -t K(4) -c allreduce "
				 "-a expand"), 65);
}

/* With a root: what is printed, and again from the file. */
static void test_schedule_root(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(weft(f, "weft schedule make -t Mesh(4,4) -c broadcast --batches 5 "
				 "-o @/b.pb --format json"), 0);
	expect_text(f, "algorithm", "trees");
	assert_int_equal(number(f, "root"), 0);
	assert_int_equal(number(f, "batches"), 5);
	assert_int_equal(number(f, "trees"), 2);
	assert_int_equal(number(f, "tree_depth"), 6);
	assert_int_equal(number(f, "steps"), 10);
	assert_int_equal(number(f, "rate"), 2);
	assert_int_equal(number(f, "rate_bound"), 2);
	expect_text(f, "bandwidth_factor", "4");
	expect_text(f, "bandwidth_bound", "2");
	assert_int_equal(weft(f, "weft schedule verify @/b.pb --format json"), 0);
	expect_text(f, "bandwidth_bound", "2");
	assert_false(truth(f, "bandwidth_optimal"));
	assert_int_equal(weft(f, "weft schedule make -t Torus(4,4) -c gather --root 5 -o @/g.json "
				 "--format json --alpha 1us --bandwidth 100Gbps --size 1MB"), 0);
	expect_text(f, "algorithm", "paths");
	assert_int_equal(number(f, "root"), 5);
	expect_text(f, "bandwidth_factor", "15/16");
	assert_true(truth(f, "bandwidth_optimal"));
	assert_int_equal(number(f, "time_ns"), number(f, "bound_ns"));
	assert_int_equal(weft(f, "weft schedule cost @/g.json --format json --alpha 1us "
				 "--bandwidth 100Gbps --size 1MB"), 0);
	assert_int_equal(number(f, "time_ns"), number(f, "bound_ns"));
}

/* Through a switch, whose links are what the choice goes by: no number of
 * batches is faster. */
static void test_schedule_root_switch(void **state)
{
	struct fixture *f = *state;
	char line[256];
	int64_t best;

	assert_int_equal(weft(f, "weft schedule make -t Star(8) -c broadcast --format json "
				 "--alpha 10us --bandwidth 100Gbps --size 1MB"), 0);
	best = number(f, "time_ns");
	assert_true(best >= number(f, "bound_ns"));
	for (int batches = 1; batches <= 8; batches++) {
		snprintf(line, sizeof(line), "weft schedule make -t Star(8) -c broadcast --format "
			 "json --alpha 10us --bandwidth 100Gbps --size 1MB --batches %d", batches);
		assert_int_equal(weft(f, line), 0);
		assert_true(best <= number(f, "time_ns"));
	}
}

/* (6 steps) * 10 us + 15/8 * 1 MB / 100 Gbps, and with links of a quarter */
static void test_schedule_cost(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(weft(f, "weft schedule make -t C(16,{1,4}) -c "
				 "allreduce -o @/s.pb"), 0);
	assert_int_equal(weft(f, "weft schedule cost @/s.pb --alpha 10us "
				 "--bandwidth 100Gbps --size 1MB --format "
				 "json"), 0);
	assert_int_equal(number(f, "time_ns"),
			 number(f, "steps") * 10000 + 150000);
	assert_int_equal(weft(f, "weft schedule cost @/s.pb --alpha 10us "
				 "--link-bandwidth 25Gbps --size 1MB --format "
				 "json"), 0);
	assert_int_equal(number(f, "time_ns"),
			 number(f, "steps") * 10000 + 150000);
	assert_int_equal(weft(f, "weft schedule cost @/s.pb --alpha 10us "
				 "--size 1MB"), 64);
	assert_int_equal(weft(f, "weft schedule cost @/s.pb --alpha 10us "
				 "--size 1MB --bandwidth 100GB"), 64);
}

/* The simulation of what shares nothing takes the planned time; its picture. */
static void test_simulate(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(weft(f, "weft schedule make -t C(16,{1,4}) -c allreduce -o @/s.pb"), 0);
	assert_int_equal(weft(f, "weft schedule simulate @/s.pb --alpha 10us --bandwidth 100Gbps "
				 "--size 1MB --hop 1us --svg @/s.svg --format json"), 0);
	expect_text(f, "mode", "lockstep");
	assert_int_equal(number(f, "time_ns"), number(f, "steps") * 11000 + 150000);
	assert_int_equal(number(f, "planned_ns"), number(f, "time_ns"));
	assert_int_equal(weft(f, "weft schedule simulate @/s.pb --alpha 10us --bandwidth 100Gbps "
				 "--size 1MB --asynchronous --full --format json"), 0);
	expect_text(f, "mode", "asynchronous");
	assert_true(number(f, "time_ns") <= number(f, "planned_ns"));
	assert_int_equal(weft(f, "weft schedule simulate @/s.pb --alpha 10us --size 1MB"), 64);
	assert_int_equal(weft(f, "weft schedule simulate @/s.pb --alpha 10us --bandwidth 100Gbps "
				 "--size 1MB --svg @/none/s.svg"), 1);
}

static void test_broken_schedule(void **state)
{
	struct fixture *f = *state;
	char *at;

	assert_int_equal(weft(f, "weft schedule make -t Ring(3) -c allgather "
				 "-o @/s.json"), 0);
	assert_int_equal(weft(f, "weft schedule export @/s.json"), 0);
	write_file(f, "cut.json", "{}");
	assert_int_equal(weft(f, "weft schedule verify @/cut.json"), 65);
	assert_int_equal(weft(f, "weft schedule export @/s.json"), 0);
	at = strstr(f->out, "allgather");
	assert_non_null(at);
	memcpy(at, "allreduce", 9);
	write_file(f, "wrong.json", f->out);
	assert_int_equal(weft(f, "weft schedule verify @/wrong.json --format "
				 "json"), 1);
	assert_false(truth(f, "valid"));
	assert_int_equal(strncmp(f->err, "weft: ", 6), 0);
	assert_int_equal(weft(f, "weft schedule export @/wrong.json"), 1);
	assert_string_equal(f->out, "");
}

static void test_not_supported(void **state)
{
	static const char *const lines[] = {
		"weft schedule make -t K(4) -c allgather -a mcf",
		"weft schedule make -t K(4) -c broadcast -a bfb",
		"weft ring plan -n 7 -w 2 --size 1MB -a ne",
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		assert_int_equal(weft(f, lines[i]), 65);
		assert_string_equal(f->out, "");
	}
	assert_int_equal(weft(f, "weft schedule make -t Ring(3) -c allgather "
				 "-o @/s.pb"), 0);
	assert_int_equal(weft(f, "weft schedule export @/s.pb --to tea"), 64);
}

static void test_topology(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(weft(f, "weft topology info K(3,3) --format json"),
			 0);
	assert_int_equal(number(f, "nodes"), 6);
	assert_int_equal(number(f, "arcs"), 18);
	assert_int_equal(number(f, "diameter"), 2);
	assert_true(truth(f, "symmetric"));
	assert_int_equal(weft(f, "weft topology build UniRing(1,5) -o "
				 "@/t.json"), 0);
	assert_int_equal(weft(f, "weft topology info @/t.json --format json"),
			 0);
	expect_text(f, "topology", "UniRing(1,5)");
	assert_int_equal(number(f, "diameter"), 4);
	assert_int_equal(weft(f, "weft topology info"), 0);
	assert_non_null(strstr(f->out, "Hypercube(k)"));
	assert_int_equal(weft(f, "weft topology info Torsu(3)"), 65);
}

static void test_broken_topology_files(void **state)
{
	static const char *const texts[] = {
		"{", "[]", "{\"nodes\": 0, \"arcs\": []}",
		"{\"nodes\": 2, \"arcs\": [[0]]}",
		"{\"nodes\": 2, \"arcs\": [[0, 2]]}",
		"{\"nodes\": 2, \"arcs\": [[0, -1]]}",
		"{\"nodes\": 2, \"arcs\": [[0, 1, 0]]}",
		"{\"nodes\": 2, \"arcs\": [[0, 1.5]]}",
		"{\"nodes\": 2, \"nodes\": 3, \"arcs\": []}",
		"{\"nodes\": 99999999, \"arcs\": []}",
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		write_file(f, "t.json", texts[i]);
		if (weft(f, "weft topology info @/t.json") != 65) {
			fail_msg("%s: exit %d", texts[i], f->code);
		}
		assert_non_null(strstr(f->err, "t.json"));
	}
}

static void test_rwa_files(void **state)
{
	struct fixture *f = *state;

	write_file(f, "a.net", "3 4\n0 1\n1 0\n1 2\n2 1\n");
	write_file(f, "a.trf", "3\n0 2\n0 2\n2 1\n");
	assert_int_equal(weft(f, "weft rwa solve @/a.net --demands @/a.trf "
				 "--svg @/a.svg -o @/a.json --format json"), 0);
	assert_int_equal(number(f, "channels"), 2);
	assert_int_equal(number(f, "bound"), 2);
	assert_int_equal(number(f, "demands"), 3);
	assert_int_equal(weft(f, "weft rwa solve @/a.net --demands @/a.trf "
				 "--channels 1 --format json"), 0);
	assert_int_equal(number(f, "served"), 2);
	assert_int_equal(weft(f, "weft rwa solve @/a.net"), 64);
	assert_int_equal(weft(f, "weft rwa solve @/a.trf"), 65);
}

static void test_rwa_changes(void **state)
{
	struct fixture *f = *state;

	write_file(f, "a.yaml", "nodes: [a, b, c]\nlinks:\n"
		   "- {from: a, to: b, loss: 1dB, domain: north}\n"
		   "- {from: b, to: c, loss: 1dB, domain: south}\n"
		   "demands: [{from: a, to: c}, {from: b, to: c}]\n");
	write_file(f, "old.yaml", "lightpaths:\n"
		   "- {from: a, to: c, hops: [{to: b, channel: 0}, "
		   "{to: c, channel: 0}]}\n"
		   "- {from: c, to: a, hops: [{to: b, channel: 0}, "
		   "{to: a, channel: 0}]}\n");
	assert_int_equal(weft(f, "weft rwa solve @/a.yaml --previous "
				 "@/old.yaml -o @/new.json --format json"), 0);
	assert_int_equal(number(f, "channels"), 2);
	assert_int_equal(number(f, "moved"), 0);
	assert_int_equal(weft(f, "weft rwa change @/a.yaml @/old.yaml "
				 "@/new.json --by-domain --format json"), 0);
	assert_int_equal(number(f, "kept"), 1);
	assert_int_equal(number(f, "added"), 1);
	assert_int_equal(number(f, "dropped"), 1);
	assert_non_null(strstr(f->out, "south"));
	assert_int_equal(weft(f, "weft rwa solve @/a.yaml --objective "
				 "min-max-loss --format json"), 0);
	assert_non_null(strstr(f->out, "\"longest_loss_db\": 2.0"));
	/* The two of @/old.yaml change channels; none is spare. */
	write_file(f, "swap.yaml", "lightpaths:\n"
		   "- {from: a, to: c, hops: [{to: b, channel: 1}, "
		   "{to: c, channel: 1}]}\n"
		   "- {from: b, to: c, hops: [{to: c, channel: 0}]}\n");
	write_file(f, "swop.yaml", "lightpaths:\n"
		   "- {from: a, to: c, hops: [{to: b, channel: 0}, "
		   "{to: c, channel: 0}]}\n"
		   "- {from: b, to: c, hops: [{to: c, channel: 1}]}\n");
	assert_int_equal(weft(f, "weft rwa change @/a.yaml @/swap.yaml "
				 "@/swop.yaml --switch-time 5ms --format json"),
			 0);
	assert_int_equal(number(f, "interrupted"), 1);
	assert_non_null(strstr(f->out, "\"time_ns\": 10000000"));
	assert_int_equal(weft(f, "weft rwa change @/a.yaml @/swap.yaml "
				 "@/swop.yaml --channels 3 --format json"), 0);
	assert_int_equal(number(f, "interrupted"), 0);
	assert_int_equal(number(f, "rerouted"), 1);
}

/* Guard channels, and a pair that is solved for, read back and moved. */
static void test_rwa_changes_pairs(void **state)
{
	struct fixture *f = *state;

	write_file(f, "a.yaml", "nodes: [a, b, c]\nlinks:\n"
		   "- {from: a, to: b}\n- {from: b, to: c}\n"
		   "- {from: a, to: c}\nguard: {between: 1, above: 1}\n"
		   "demands: [{from: a, to: c, protect: true}]\n");
	write_file(f, "old.yaml", "lightpaths:\n"
		   "- {from: a, to: c, role: working, hops: "
		   "[{to: b, channel: 2}, {to: c, channel: 2}]}\n"
		   "- {from: a, to: c, role: backup, hops: "
		   "[{to: c, channel: 2}]}\n");
	assert_int_equal(weft(f, "weft rwa solve @/a.yaml -o @/new.json "
				 "--format json"), 0);
	assert_int_equal(number(f, "channels"), 2);
	assert_int_equal(weft(f, "weft rwa change @/a.yaml @/old.yaml "
				 "@/new.json --format json"), 0);
	assert_int_equal(number(f, "moved"), 2);
	assert_int_equal(number(f, "interrupted"), 0);
	assert_int_equal(weft(f, "weft rwa change @/a.yaml @/old.yaml "
				 "@/old.yaml --channels 3"), 64);
	write_file(f, "shared.yaml", "nodes: [a, b, c]\nlinks:\n"
		   "- {from: a, to: b}\n- {from: b, to: c}\n- {from: a, to: c}\n"
		   "demands: [{from: a, to: c, protect: shared}]\n");
	assert_int_equal(weft(f, "weft rwa change @/shared.yaml @/old.yaml @/new.json"), 65);
	assert_non_null(strstr(f->err, "demand a -> c: changes of shared backups are not "
				       "supported"));
}

static void test_rwa_changes_refuse(void **state)
{
	static const char *const texts[] = {
		"", "lightpaths: 3\n", "channels: 3\n",
		"lightpaths:\n- {from: a, to: b}\n",
		"lightpaths:\n- {from: a, to: b, hops: []}\n",
		"lightpaths:\n- {from: a, to: c, hops: [{to: c, channel: 0}]}\n",
		"lightpaths:\n- {from: a, to: b, hops: [{to: b}]}\n",
		"lightpaths:\n- {from: a, to: b, hops: [{to: b, fibre: 1, "
		"channel: 0}]}\n",
		"lightpaths:\n- {from: a, to: d, hops: [{to: b, channel: 0}]}\n",
		"lightpaths:\n- {from: a, to: b, hops: [{to: b, channel: 0}",
		"lightpaths:\n- {from: a, to: b, role: spare, hops: "
		"[{to: b, channel: 0}]}\n",
		"lightpaths:\n- {from: a, to: b, role: backup, hops: "
		"[{to: b, channel: 0}]}\n",
		"lightpaths:\n- {from: a, to: b, role: working, hops: "
		"[{to: b, channel: 0}]}\n",
	};
	struct fixture *f = *state;

	write_file(f, "a.yaml", "nodes: [a, b, c]\nlinks:\n"
		   "- {from: a, to: b}\n- {from: b, to: c}\ndemands: all\n");
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		write_file(f, "t.yaml", texts[i]);
		if (weft(f, "weft rwa change @/a.yaml @/t.yaml @/t.yaml") !=
		    65) {
			fail_msg("%s: exit %d", texts[i], f->code);
		}
		assert_non_null(strstr(f->err, "t.yaml"));
	}
	assert_int_equal(weft(f, "weft rwa solve @/a.yaml --objective "
				 "min-moved"), 64);
	assert_int_equal(weft(f, "weft rwa solve @/a.yaml --objective x"), 64);
}

static void test_ring_and_rwa(void **state)
{
	struct fixture *f = *state;
	json_int_t optree_ns;

	assert_int_equal(weft(f, "weft ring plan -n 16 -w 2 --size 1MB "
				 "-a optree --format json"), 0);
	assert_int_equal(number(f, "closed_form_steps"), 12);
	assert_true(number(f, "steps") <= 16);
	/* 1 MB at 40 Gbps is 200 us, and 25 us a step to retune */
	assert_int_equal(number(f, "time_ns"), number(f, "steps") * 225000);
	optree_ns = number(f, "time_ns");
	assert_int_equal(weft(f, "weft ring plan -n 16 -w 2 --size 1MB "
				 "--format json"), 0);
	assert_true(number(f, "time_ns") <= optree_ns);
	assert_true(number(f, "time_ns") >= number(f, "bound_ns"));
	assert_int_equal(weft(f, "weft rwa solve --ring 8 --format json"), 0);
	assert_int_equal(number(f, "channels"), 8);
	assert_int_equal(number(f, "bound"), 8);
	assert_int_equal(weft(f, "weft rwa solve"), 64);
	assert_int_equal(weft(f, "weft ring plan -n 1 -w 2 --size 1MB"), 64);
	assert_int_equal(weft(f, "weft ring plan -n 8 --size 1MB"), 64);
}

static void test_explain(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(weft(f, "weft explain 75 --format json"), 0);
	expect_text(f, "name", "stale");
	assert_int_equal(weft(f, "weft explain eunavail --format json"), 0);
	assert_int_equal(number(f, "exit"), 69);
	assert_int_equal(weft(f, "weft explain 5"), 65);
	for (unsigned k = 1; k < weft__v1__problem_kind__descriptor.n_values; k++) {
		char name[64], line[96];

		msg_enum(&weft__v1__problem_kind__descriptor,
			 weft__v1__problem_kind__descriptor.values[k].value, name, sizeof(name));
		snprintf(line, sizeof(line), "weft explain %s --format json", name);
		assert_int_equal(weft(f, line), 0);
		expect_text(f, "problem", name);
		assert_null(strstr(f->out, "null"));
	}
}

static void test_usage(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(weft(f, "weft"), 64);
	assert_int_equal(weft(f, "weft stauts"), 64);
	assert_non_null(strstr(f->err, "weft status"));
	assert_string_equal(f->out, "");
	assert_int_equal(weft(f, "weft --help"), 0);
	assert_non_null(strstr(f->out, "emulate"));
	assert_int_equal(weft(f, "weft schedule make --help"), 0);
	assert_non_null(strstr(f->out, "--collective NAME"));
	assert_int_equal(weft(f, "weft status"), 69);
	assert_non_null(strstr(f->err, "hint: "));
	assert_int_equal(weft(f, "weft complete sche"), 0);
	assert_string_equal(f->out, "schedule\n");
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_check),
		T(test_check_names_every_mistake),
		T(test_check_knows_drivers), T(test_all_mistakes_in_one_run),
		T(test_plan_offline),
		T(test_schedule_round_trip),
		T(test_schedule_algorithms),
		T(test_schedule_root),
		T(test_schedule_root_switch),
		T(test_schedule_cost),
		T(test_simulate),
		T(test_broken_schedule),
		T(test_not_supported),
		T(test_topology),
		T(test_broken_topology_files),
		T(test_ring_and_rwa),
		T(test_rwa_files),
		T(test_rwa_changes),
		T(test_rwa_changes_pairs),
		T(test_rwa_changes_refuse),
		T(test_explain),
		T(test_usage),
	};

	return cmocka_run_group_tests_name("cli/main", tests, NULL, NULL);
}
