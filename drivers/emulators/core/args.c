/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line of weft-emulator: what device to be, where to listen, and
 * the faults that hold from the start. Tests and testbeds are its users, so a
 * wrong word is an error at once (exit status 64) and never a default.
 * docs/drivers.md describes each option. What depends on the device, such as
 * the ports that a fault names, is checked when the device has its size.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/emulators/core/emulator.h"
#include "lib/base/alloc.h"

#define MAX_SLOTS 64		/* of mrr-reg */

void emu_usage(FILE *to)
{
	struct buf help = { 0 };

	faults_help(&help);
	fprintf(to,
"usage: weft-emulator --driver NAME --listen HOST:PORT --size NxM [option...]\n"
"\n"
"Speaks the device's side of a driver's dialect. Prints 'listening ADDRESS'\n"
"when ready; port 0 takes a free one.\n"
"\n"
"  --driver NAME         polatis-scpi, polatis-tl1,\n"
"                        polatis-restconf, mrr-reg, glimmerglass-tl1,\n"
"                        calient-tl1, sonic-ocs, rome-cli,\n"
"                        telescent-cli\n"
"  --listen HOST:PORT    also [IPV6]:PORT\n"
"  --size NxM            ports a side; rings: nodes x channels\n"
"  --any-to-any          one side of N ports (also --size NxCC)\n"
"  --fibres F            rings: fibres per direction (1)\n"
"  --memory BYTES        rings: room for packed programs (8388608)\n"
"  --slots N             rings: programs at a time, at most 64 (16)\n"
"  --overlap             rings: retune channels while others carry data\n"
"  --name NAME           serial number (emulator)\n"
"  --state FILE          keep map and start counter over restarts\n"
"  --control PATH        unix socket: fault, clear, map, set, unset,\n"
"                        restart, form, stats, help, quit; rings: slots,\n"
"                        light, step, tunings, flip\n"
"  --address-file PATH   also write the address there\n"
"  --form NAME           how it answers, where its like differ\n"
"  --plant DIR           light shared with other switches: DIR/wiring\n"
"  --seed N              of everything random (1)\n"
"  --fault SPEC          NAME[=VALUE][~PERMILLE], may be repeated\n"
"  --version             print it and end\n"
"\nfaults:\n%s", buf_cstr(&help));
	buf_fini(&help);
}

/* "16x16", or "16xCC": sixteen ports that may all be connected with each
 * other. Sizes that a driver cannot have are refused later, by the dialect.
 * WEFT_EUSAGE. */
static int parse_size(struct emu_conf *c, const char *text, struct err *err)
{
	char tail[8] = "";
	int n = sscanf(text, "%7dx%7s", &c->n_in, tail);
	char *end = tail;

	if (n == 2 && strcmp(tail, "CC") == 0) {
		c->any_to_any = true;
		c->n_out = c->n_in;
	} else if (n == 2) {
		c->n_out = (int)strtol(tail, &end, 10);
	}
	if (n != 2 || c->n_in < 1 || c->n_out < 1 || (!c->any_to_any && *end)) {
		return err_set(err, WEFT_EUSAGE, "size '%s': expected NxM or NxCC", text);
	}
	return 0;
}

/* Digits only: strtoull() would take a sign and blanks as well. WEFT_EUSAGE. */
static int read_number(const char *option, const char *text, uint64_t max,
			uint64_t *out, struct err *err)
{
	char *end;

	*out = strtoull(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || *out > max) {
		return err_set(err, WEFT_EUSAGE, "--%s %s: expected a number", option, text);
	}
	return 0;
}

enum flag { O_DRIVER = 256, O_LISTEN, O_SIZE, O_ANY, O_FIBRES, O_NAME,
	      O_MEMORY, O_SLOTS, O_OVERLAP, O_STATE, O_CONTROL, O_ADDRESS_FILE,
	      O_PLANT, O_FORM, O_SEED, O_FAULT, O_HELP, O_VERSION };

static const struct option long_options[] = {
	{ "driver", required_argument, NULL, O_DRIVER },
	{ "listen", required_argument, NULL, O_LISTEN },
	{ "size", required_argument, NULL, O_SIZE },
	{ "any-to-any", no_argument, NULL, O_ANY },
	{ "fibres", required_argument, NULL, O_FIBRES },
	{ "memory", required_argument, NULL, O_MEMORY },
	{ "slots", required_argument, NULL, O_SLOTS },
	{ "overlap", no_argument, NULL, O_OVERLAP },
	{ "name", required_argument, NULL, O_NAME },
	{ "state", required_argument, NULL, O_STATE },
	{ "control", required_argument, NULL, O_CONTROL },
	{ "address-file", required_argument, NULL, O_ADDRESS_FILE },
	{ "plant", required_argument, NULL, O_PLANT },
	{ "form", required_argument, NULL, O_FORM },
	{ "seed", required_argument, NULL, O_SEED },
	{ "fault", required_argument, NULL, O_FAULT },
	{ "help", no_argument, NULL, O_HELP },
	{ "version", no_argument, NULL, O_VERSION },
	{ NULL, 0, NULL, 0 },
};

/* Faults are only gathered; there is room for one an argument. */
static int take_option(struct emu_args *args, int option, struct err *err)
{
	struct emu_conf *c = &args->conf;
	uint64_t n;
	int rc = 0;

	switch (option) {
	case O_DRIVER: c->driver = optarg; break;
	case O_LISTEN: c->listen = optarg; break;
	case O_ANY: c->any_to_any = true; break;
	case O_OVERLAP: c->overlap = true; break;
	case O_NAME: c->name = optarg; break;
	case O_STATE: c->state = optarg; break;
	case O_CONTROL: c->control = optarg; break;
	case O_ADDRESS_FILE: c->address_file = optarg; break;
	case O_PLANT: c->plant = optarg; break;
	case O_FORM: c->form = optarg; break;
	case O_HELP: args->help = true; break;
	case O_VERSION: args->version = true; break;
	case O_SIZE: rc = parse_size(c, optarg, err); break;
	case O_SEED:
		rc = read_number("seed", optarg, UINT64_MAX, &c->seed, err);
		break;
	case O_FIBRES:
		rc = read_number("fibres", optarg, 255, &n, err);
		c->fibres = rc ? 0 : (int)n;
		break;
	case O_MEMORY:
		rc = read_number("memory", optarg, INT32_MAX, &n, err);
		c->memory = rc ? 0 : (int64_t)n;
		break;
	case O_SLOTS:
		rc = read_number("slots", optarg, MAX_SLOTS, &n, err);
		c->slots = rc ? 0 : (int)n;
		break;
	case O_FAULT:
		args->faults[args->n_faults++] = optarg;
		break;
	default:
		rc = err_set(err, WEFT_EUSAGE, "wrong command line");
	}
	return rc;
}

/* optind 0 resets getopt_long(), whatever the process has parsed before. */
int emu_args_parse(struct emu_args *args, int argc, char **argv, struct err *err)
{
	int option, rc = 0;

	args->conf = (struct emu_conf){ .name = "emulator", .fibres = 1,
				      .seed = 1, .memory = 8 << 20,
				      .slots = 16 };
	args->faults = x_new((size_t)argc, sizeof(*args->faults));
	optind = 0;
	while (rc == 0 && (option = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
		rc = take_option(args, option, err);
	}
	if (rc || args->help || args->version) {
		return rc;
	}
	if (optind < argc) {
		return err_set(err, WEFT_EUSAGE, "unexpected '%s'", argv[optind]);
	}
	if (!args->conf.driver || !args->conf.listen || !args->conf.n_in) {
		return err_set(err, WEFT_EUSAGE, "--driver, --listen and --size are needed");
	}
	return 0;
}
