/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The device side of `sonic-ocs`: as much of a shell as a session needs, and
 * the `show ocs` and `config ocs` commands. Tables and options are those of
 * SONiC's high level design; `succeeded` and `existing cross-connect` are
 * words of its tests. Reconstructed: all other words, exit statuses, and that
 * a range of ports and `powered_off` are not needed here.
 *
 * In the form `yang` the commands are those that sonic-cli-gen makes of
 * sonic-ocs.yang: `show ocs-port`, `config ocs-cross-connect`. Such a command
 * checks the schema alone: it takes circuits of ports that failed (`disabled`), and
 * a second one of a port (`invalid` until it is deleted). Its words are those of
 * sonic-utilities' templates; that the second stays invalid is reconstructed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/emulators/core/emulator.h"
#include "drivers/sonic/sonic.h"
#include "lib/base/alloc.h"
#include "lib/base/clock.h"
#include "lib/base/vec.h"

#define MAX_COMMAND (256 << 10)
#define MAX_WORDS 8
#define FAILED 1
#define NO_COMMAND 2
#define NOT_FOUND 127
#define BOOT_ID "cat /proc/sys/kernel/random/boot_id"

/* What an interactive bash prints around commands: the title of a terminal's
 * window, a prompt in colours, bracketed paste. Its mark of a session is 1 when
 * echo and prompt were turned off. */
#define PROMPT "\x1b]0;admin@sonic: ~\x07\x1b[01;32madmin@sonic\x1b[00m:\x1b[01;34m~\x1b[00m$ "
#define PASTE_ON "\x1b[?2004h"
#define PASTE_OFF "\x1b[?2004l\r"
#define PROMPT_COLUMNS 15
#define SCREEN_COLUMNS 80

/* A circuit that is in one of the two tables only. */
struct odd_circuit {
	struct optics_xc xc;
	int64_t until_ns;	/* that the fault `complete` holds it; 0: until it is made again */
};

typedef VEC(struct odd_circuit) odd_circuits;

/* The switch behind the shell. `fate` and `client` are of the line being
 * run. */
struct sonic_device {
	struct emu *e;
	odd_circuits stale;		/* in the hardware only */
	odd_circuits invalid;		/* configured, and another has a port of it */
	int64_t *made_ns;	/* [in], by command; 0: never */
	enum emu_fate fate;
	struct emu_client *client;	/* who is being answered */
	int status;			/* of the last command */
	bool *blocked;			/* [flat port] by command */
};

/* A port without light through it: by command (`force_blocked`) or by a
 * fault. */
static bool is_blocked(const struct sonic_device *d, int flat)
{
	return d->blocked[flat] || faults_hold_port(&d->e->faults, FAULT_PORT_DISABLED, flat);
}

static bool is_yang(const struct sonic_device *d)
{
	return emu_form_is(d->e, "yang");
}

/* Takes a circuit off; whether it was there. */
static bool forget(odd_circuits *list, struct optics_xc xc)
{
	for (size_t i = 0; i < list->n; i++) {
		if (optics_xc_cmp(&list->v[i].xc, &xc) == 0) {
			list->v[i] = list->v[--list->n];
			return true;
		}
	}
	return false;
}

/* The table of the hardware follows late where a CLI is made from YANG. */
static void forget_late(struct sonic_device *d)
{
	int64_t ms, until_ns = faults_hold(&d->e->faults, FAULT_COMPLETE, &ms) ?
		clk_now_ns() : INT64_MAX;

	for (size_t i = d->stale.n; i-- > 0;) {
		if (d->stale.v[i].until_ns && d->stale.v[i].until_ns <= until_ns) {
			d->stale.v[i] = d->stale.v[--d->stale.n];
		}
	}
}

/* ---- show ---------------------------------------------------------------- */

static int show_version(struct sonic_device *d, struct buf *out)
{
	buf_printf(out, "\nSONiC Software Version: SONiC.202511.1\n"
		   "Platform: x86_64-emulated_ocs-r0\nHwSKU: OCS-%d\n"
		   "ASIC Count: 0\nSerial Number: %s\n"
		   "Uptime: 09:30:00 up 1 day, 1 user\n\n",
		   d->e->mem.n_in, d->e->conf.name);
	return 0;
}

/* Another boot id after each restart, as the kernel's. */
static int show_boot(struct sonic_device *d, struct buf *out)
{
	buf_printf(out, "%08llx-0000-4000-8000-%012llx\n", (unsigned long long)d->e->mem.boots,
		   (unsigned long long)d->e->conf.seed);
	return 0;
}

/* Ports are 1A and 1B, or with small letters and the other side first. */
static void put_pair(const struct sonic_device *d, struct optics_xc xc, struct buf *out)
{
	int a = xc.in + 1, b = xc.out + 1;

	if (emu_form_is(d->e, "mgmt")) {
		buf_printf(out, "%db-%da  %da  %db", b, a, a, b);
	} else {
		buf_printf(out, "%dA-%dB  %dA  %dB", a, b, a, b);
	}
}

static int show_config(struct sonic_device *d, struct buf *out)
{
	struct optics_xc xc;

	if (emu_form_is(d->e, "mgmt")) {
		buf_str(out, "Warning: the startup configuration was migrated\n");
	}
	buf_str(out, is_yang(d) ? "CROSS CONNECT ID    A SIDE    B SIDE\n" :
		"id       a_side    b_side\n");
	buf_str(out, "-------  --------  --------\n");
	for (int i = 0; i < d->e->mem.n_in; i++) {
		if (xc_map_of(&d->e->mem, i, &xc)) {
			put_pair(d, xc, out);
			buf_char(out, '\n');
		}
	}
	for (size_t i = 0; i < d->invalid.n; i++) {
		put_pair(d, d->invalid.v[i].xc, out);
		buf_char(out, '\n');
	}
	return 0;
}

/* A circuit is configured at once, and its mirrors take their time. */
static bool is_in_progress(const struct sonic_device *d, struct optics_xc xc)
{
	int64_t ms;

	return faults_hold(&d->e->faults, FAULT_COMPLETE, &ms) &&
	       d->made_ns[xc.in] &&
	       clk_now_ns() < d->made_ns[xc.in] + ms * 1000000;
}

/* The state of a circuit by its ports, the worst first. */
static enum drv_state state_of(const struct sonic_device *d, struct optics_xc xc)
{
	if (emu_holds_xc(d->e, FAULT_CONN_FAILED, xc) ||
	    emu_holds_xc(d->e, FAULT_PORT_FAILED, xc)) {
		return DRV_FAILED;
	}
	if (is_blocked(d, xc.in) || is_blocked(d, xc_map_flat_out(&d->e->mem, xc.out))) {
		return DRV_BLOCKED;
	}
	if (emu_holds_xc(d->e, FAULT_TUNING, xc) || is_in_progress(d, xc)) {
		return DRV_TUNING;
	}
	return DRV_TUNED;
}

static void put_status(const struct sonic_device *d, struct optics_xc xc, struct buf *out)
{
	const enum drv_state state = state_of(d, xc);
	const char *word = drv_state_name(state);

	if (is_yang(d)) {
		buf_printf(out, "%dA-%dB  %s  %dA, panel IN %d, panel OUT %d, %dB\n", xc.in + 1,
			   xc.out + 1, state == DRV_TUNED ? "enabled" : "disabled", xc.in + 1,
			   xc.in + 1, xc.out + 1, xc.out + 1);
		return;
	}
	put_pair(d, xc, out);
	buf_printf(out, "  %s  %s\n", word, word);
}

/* The hardware's table: circuits of the configuration, and those that are
 * stale. */
static int show_status(struct sonic_device *d, struct buf *out)
{
	const struct xc_map *m = &d->e->mem;
	struct optics_xc xc;

	forget_late(d);
	buf_str(out, is_yang(d) ? "CROSS CONNECT ID    STATUS    PHYSICAL PATH\n" :
		"id  a_side  b_side  a_side_status  b_side_status\n");
	buf_str(out, "--  ------  ------  -------------  -------------\n");
	for (int i = 0; i < m->n_in; i++) {
		if (xc_map_of(m, i, &xc) && !(is_yang(d) && is_in_progress(d, xc))) {
			put_status(d, xc, out);
		}
	}
	for (size_t i = 0; i < d->stale.n; i++) {
		put_status(d, d->stale.v[i].xc, out);
	}
	for (size_t i = 0; i < d->invalid.n; i++) {
		const struct optics_xc bad = d->invalid.v[i].xc;

		buf_printf(out, "%dA-%dB  invalid\n", bad.in + 1, bad.out + 1);
	}
	return 0;
}

static int show_port_config(struct sonic_device *d, struct buf *out)
{
	const struct xc_map *m = &d->e->mem;

	buf_str(out, is_yang(d) ? "SIMPLEX PORT ID    LABEL     CONFIG STATUS\n" :
		"id    label     state\n");
	buf_str(out, "----  --------  -------\n");
	for (int i = 0; i < m->n_ports; i++) {
		bool b = i >= m->n_in;

		buf_printf(out, "%d%c  %s  %s\n",
			   b ? i - m->n_in + 1 : i + 1, b ? 'B' : 'A',
			   emu_form_is(d->e, "mgmt") ? "Link to str 7050 lab-3 Ethernet0 RX" : "",
			   is_blocked(d, i) ? "force_blocked" : "normal");
	}
	return 0;
}

static int show_port_status(struct sonic_device *d, struct buf *out)
{
	const struct xc_map *m = &d->e->mem;

	buf_str(out, is_yang(d) ? "SIMPLEX PORT ID    CONNECTOR TYPE    CONNECTOR PIN    "
		"TARGET SIMPLEX PORT ID    OPER STATUS\n" : "id    connector_type    "
		"connector_pin    target_simplex_port_id    status\n");
	buf_str(out, "----  ----  ----  ----  ----\n");
	for (int i = 0; i < m->n_ports; i++) {
		bool b = i >= m->n_in, connected = m->peer[i] >= 0;
		bool bad = faults_hold_port(&d->e->faults, FAULT_PORT_FAILED, i);

		buf_printf(out, "%d%c  LC UPC  %d  ", b ? i - m->n_in + 1 :
			   i + 1, b ? 'B' : 'A', b ? 1 : 2);
		if (connected) {
			buf_printf(out, "%d%c  ", b ? m->peer[i] + 1 :
				   m->peer[i] - m->n_in + 1, b ? 'A' : 'B');
		}
		buf_printf(out, "%s\n", bad ? "failed" : !connected ? "blocked" :
			   is_yang(d) ? "connected" : "tuned");
	}
	return 0;
}

/* Between 1.50 and 1.99 dB, by the seed. */
static int show_losses(struct sonic_device *d, struct buf *out)
{
	const struct xc_map *m = &d->e->mem;

	buf_str(out, "id  frequency_THz  temperature_C  loss_dB  "
		"accuracy_dB\n--  --  --  --  --\n");
	for (int i = 0; i < m->n_in; i++) {
		for (int o = 0; o < m->n_out; o++) {
			buf_printf(out, "%dA-%dB  228.85  28  1.%02d  0.1\n",
				   i + 1, o + 1, 50 + (int)(rng_mix(
				   d->e->conf.seed + (uint64_t)i * 4096 +
				   (uint64_t)o) % 50));
		}
	}
	return 0;
}

/* ---- config -------------------------------------------------------------- */

/* What `add` does with circuits in its way: refuses (safe), ends those that
 * share a port (update, the default), or ends all others (overwrite). */
enum mode { SAFE, UPDATE, OVERWRITE };

/* Why a circuit cannot be; as text on out. */
static bool is_refused(struct sonic_device *d, struct optics_xc xc, enum mode mode, struct buf *out)
{
	struct optics_xc other;

	if (xc_map_check(&d->e->mem, xc, NULL)) {
		buf_printf(out, "Error: invalid cross-connect %dA-%dB\n", xc.in + 1, xc.out + 1);
	} else if (emu_holds_xc(d->e, FAULT_PORT_FAILED, xc) ||
		   emu_holds_xc(d->e, FAULT_REFUSE_PORT, xc)) {
		buf_printf(out, "Error: %dA-%dB: the port has failed\n", xc.in + 1, xc.out + 1);
	} else if (emu_holds_xc(d->e, FAULT_BUSY, xc)) {
		buf_printf(out, "Error: existing cross-connect at %dA-%dB\n",
			   xc.in + 1, xc.out + 1);
	} else if (mode == SAFE && xc_map_conflict(&d->e->mem, xc, &other)) {
		buf_printf(out, "Error: existing cross-connect %dA-%dB\n",
			   other.in + 1, other.out + 1);
	} else {
		return false;
	}
	return true;
}

/* All circuits of a list are checked before the first is made. */
static int add(struct sonic_device *d, const struct optics_xc *v, size_t n,
	       enum mode mode, struct buf *out)
{
	for (size_t i = 0; i < n; i++) {
		if (!is_yang(d) && is_refused(d, v[i], mode, out)) {
			return FAILED;
		}
	}
	if (mode == OVERWRITE) {
		xc_map_clear(&d->e->mem);
	}
	for (size_t i = 0; i < n; i++) {
		if (!emu_holds_xc(d->e, FAULT_IGNORE_PORT, v[i])) {
			forget(&d->stale, v[i]);
			if (!xc_map_has(&d->e->mem, v[i])) {
				d->made_ns[v[i].in] = clk_now_ns();
			}
			xc_map_connect(&d->e->mem, v[i]);
		}
	}
	return 0;
}

/* With the fault `stale` the circuits leave the configuration, not the
 * hardware. A circuit that is not there fails the list before anything ends. */
static int del(struct sonic_device *d, const struct optics_xc *v, size_t n, struct buf *out)
{
	bool stays = faults_strike(&d->e->faults, FAULT_STALE, NULL);

	for (size_t i = 0; i < n; i++) {
		if (xc_map_check(&d->e->mem, v[i], NULL) || !xc_map_has(&d->e->mem, v[i])) {
			buf_printf(out, "Error: no such cross-connect "
				   "%dA-%dB\n", v[i].in + 1, v[i].out + 1);
			return FAILED;
		}
	}
	for (size_t i = 0; i < n; i++) {
		xc_map_release(&d->e->mem, v[i].in);
		if (stays) {
			vec_push(&d->stale, (struct odd_circuit){ .xc = v[i] });
		}
	}
	return 0;
}

/* `1A-2B,3A-4B`. */
static bool parse_list(char *text, struct optics_xc *v, size_t *n)
{
	char *rest = NULL;

	*n = 0;
	for (char *p = strtok_r(text, ",", &rest); p; p = strtok_r(NULL, ",", &rest)) {
		if (!sonic_parse_pair(p, &v[(*n)++])) {
			return false;
		}
	}
	return *n > 0;
}

static bool parse_mode(const char *word, enum mode *mode)
{
	static const char *const names[] = { "safe", "update", "overwrite" };

	*mode = UPDATE;
	for (int i = 0; i < 3 && word; i++) {
		if (strcmp(word, names[i]) == 0) {
			*mode = (enum mode)i;
			return true;
		}
	}
	return !word;
}

/* What a CLI made from YANG does with one circuit. */
static int set_one(struct sonic_device *d, struct optics_xc xc, bool adds, struct buf *out)
{
	struct xc_map *m = &d->e->mem;
	bool good = xc_map_check(m, xc, NULL) == 0, there = good && xc_map_has(m, xc);
	struct odd_circuit late = { .xc = xc };
	struct optics_xc other;
	int64_t ms;

	if (!adds && forget(&d->invalid, xc)) {
		return 0;
	}
	if (!good || emu_holds_xc(d->e, FAULT_REFUSE_PORT, xc) ||
	    emu_holds_xc(d->e, FAULT_BUSY, xc)) {
		buf_str(out, "Error: Failed to validate configuration: Data Loading Failed\n");
	} else if (there == adds) {
		buf_printf(out, "Error: %dA-%dB %s\n", xc.in + 1, xc.out + 1,
			   adds ? "already exists" : "does not exist");
	} else if (adds && xc_map_conflict(m, xc, &other)) {
		forget(&d->invalid, xc);
		vec_push(&d->invalid, late);
		return 0;
	} else if (adds) {
		return add(d, &xc, 1, UPDATE, out);
	} else {
		if (faults_hold(&d->e->faults, FAULT_COMPLETE, &ms)) {
			late.until_ns = clk_now_ns() + ms * 1000000;
			vec_push(&d->stale, late);
		}
		return del(d, &xc, 1, out);
	}
	buf_str(out, "Aborted!\n");
	return FAILED;
}

/* words: add ID --a-side A --b-side B, delete ID. */
static int run_yang(struct sonic_device *d, char **words, int n, struct buf *out)
{
	bool adds = n == 6 && strcmp(words[0], "add") == 0 && strcmp(words[2], "--a-side") == 0 &&
		    strcmp(words[4], "--b-side") == 0;
	struct optics_xc xc, sides;
	char pair[32] = "";
	int status = FAILED;

	if (adds) {
		snprintf(pair, sizeof(pair), "%s-%s", words[3], words[5]);
	}
	if (!(adds ? sonic_parse_pair(pair, &sides) : n == 2 && strcmp(words[0], "delete") == 0) ||
	    !sonic_parse_pair(words[1], &xc) || (adds && optics_xc_cmp(&xc, &sides) != 0)) {
		buf_str(out, "Usage: config ocs-cross-connect [OPTIONS] COMMAND [ARGS]...\n");
		return NO_COMMAND;
	}
	d->fate = emu_set_command(d->client);
	if (d->fate != EMU_EAT) {
		status = set_one(d, xc, adds, out);
		emu_changed(d->e);
	}
	return status;
}

/* words: add|delete LIST [MODE]. With the fault `half` a list is cut short and
 * the command fails, as when the switch's own software stops in the middle. */
static int run_config(struct sonic_device *d, char **words, int n, struct buf *out)
{
	struct optics_xc *v = x_new(MAX_COMMAND, 1);
	bool adds = n > 0 && strcmp(words[0], "add") == 0;
	enum mode mode;
	size_t n_xcs;
	int64_t half;
	int status = FAILED;

	if (n < 2 || !(adds || strcmp(words[0], "delete") == 0) ||
	    !parse_mode(n > 2 ? words[2] : NULL, &mode) ||
	    !parse_list(words[1], v, &n_xcs)) {
		buf_str(out, "Error: invalid arguments\n");
		free(v);
		return FAILED;
	}
	d->fate = emu_set_command(d->client);
	if (d->fate != EMU_EAT) {
		bool cut = faults_hold(&d->e->faults, FAULT_HALF, &half) && (size_t)half < n_xcs;

		n_xcs = cut ? (size_t)half : n_xcs;
		status = adds ? add(d, v, n_xcs, mode, out) : del(d, v, n_xcs, out);
		emu_changed(d->e);
		if (status == 0 && cut) {
			buf_str(out, "Error: stopped in the middle\n");
			status = FAILED;
		} else if (status == 0) {
			buf_printf(out, "%s cross-connect succeeded\n", adds ? "Add" : "Delete");
		}
	}
	free(v);
	return status;
}

/* ---- the shell ----------------------------------------------------------- */

static const struct {
	const char *command, *yang;	/* "": it has none */
	int (*run)(struct sonic_device *d, struct buf *out);
} shows[] = {
	{ "show version", "show version", show_version },
	{ BOOT_ID, BOOT_ID, show_boot },
	{ "show ocs cross-connect config", "show ocs-cross-connect", show_config },
	{ "show ocs cross-connect status", "show ocs-cross-connect-table", show_status },
	{ "show ocs port config", "show ocs-port", show_port_config },
	{ "show ocs port status", "show ocs-port-table", show_port_status },
	{ "show ocs factory-insertion-loss", "", show_losses },
};

static int run_words(struct sonic_device *d, char *command, struct buf *out)
{
	char *words[MAX_WORDS], *rest = NULL;
	int n = 0;

	for (char *w = strtok_r(command, " ", &rest); w && n < MAX_WORDS;
	     w = strtok_r(NULL, " ", &rest)) {
		words[n++] = w;
	}
	return is_yang(d) ? run_yang(d, words, n, out) : run_config(d, words, n, out);
}

/* `1A force_blocked`, `update 1A --config-status force_blocked`. */
static int set_port_state(struct sonic_device *d, const char *words, struct buf *out)
{
	const struct xc_map *m = &d->e->mem;
	char side, state[16], rest;
	int n = 0, flat;

	if (sscanf(words, is_yang(d) ? "update %d%c --config-status %15s%c" : "%d%c %15s%c", &n,
		   &side, state, &rest) != 3 || n < 1 || (side != 'A' && side != 'B') ||
	    n > (side == 'A' ? m->n_in : m->n_out) ||
	    (strcmp(state, "normal") != 0 &&
	     strcmp(state, "force_blocked") != 0)) {
		buf_str(out, "Error: invalid arguments\n");
		return FAILED;
	}
	flat = side == 'A' ? n - 1 : m->n_in + n - 1;
	d->fate = emu_set_command(d->client);
	if (d->fate != EMU_EAT && !faults_hold_port(&d->e->faults, FAULT_IGNORE_PORT, flat)) {
		d->blocked[flat] = state[0] == 'f';
	}
	buf_str(out, is_yang(d) ? "" : "Port state succeeded\n");
	return 0;
}

/* Runs one command and returns its exit status, as a shell does; settings of
 * the shell itself succeed without an output. */
static int run_command(struct sonic_device *d, char *c, struct buf *out)
{
	static const char *const quiet[] = { "stty ", "PS1=", "PROMPT_COMMAND=", "LC_ALL=",
					     "export " };
	const bool yang = is_yang(d);
	const char *circuit = yang ? "config ocs-cross-connect " : "config ocs cross-connect ";
	const char *port = yang ? "config ocs-port " : "config ocs port state ";

	d->e->n_commands++;
	if (strncmp(c, "sudo ", 5) == 0) {
		c += 5;
	}
	for (size_t i = 0; i < sizeof(shows) / sizeof(shows[0]); i++) {
		if (strcmp(c, yang ? shows[i].yang : shows[i].command) == 0) {
			return shows[i].run(d, out);
		}
	}
	if (strncmp(c, circuit, strlen(circuit)) == 0) {
		return run_words(d, c + strlen(circuit), out);
	}
	if (strncmp(c, port, strlen(port)) == 0) {
		return set_port_state(d, c + strlen(port), out);
	}
	for (size_t i = 0; i < sizeof(quiet) / sizeof(quiet[0]); i++) {
		if (strncmp(c, quiet[i], strlen(quiet[i])) == 0) {
			return 0;
		}
	}
	if (strncmp(c, "show ", 5) == 0 || strncmp(c, "config ", 7) == 0) {
		buf_printf(out, "Usage: show [OPTIONS] COMMAND [ARGS]...\n\n"
			   "Error: No such command \"%.40s\".\n", c);
		return NO_COMMAND;
	}
	buf_printf(out, "-bash: %.40s: command not found\n", c);
	return NOT_FOUND;
}

/* Cuts the next part off, up to a mark; blanks around it go. */
static char *next_part(char **rest, const char *mark)
{
	char *part = *rest, *end;

	if (!part) {
		return NULL;
	}
	end = strstr(part, mark);
	*rest = end ? end + strlen(mark) : NULL;
	end = end ? end : part + strlen(part);
	while (end > part && end[-1] == ' ') {
		end--;
	}
	*end = '\0';
	return part + strspn(part, " ");
}

/* One line: `{ A && B; C; } 2>&1; echo weft-end:7:$?`. */
static void run_line(struct sonic_device *d, char *line, struct buf *out)
{
	char *rest = line, *part;

	d->fate = EMU_DO;
	while (d->fate == EMU_DO && (part = next_part(&rest, ";"))) {
		char *all = part + 2 * (strncmp(part, "{ ", 2) == 0), *command;

		if (!part[0] || strncmp(part, "} 2>&1", 6) == 0) {
			continue;
		}
		if (strncmp(part, "echo ", 5) == 0) {
			buf_printf(out, "%.*s%d\n", (int)strcspn(part + 5, "$"),
				   part + 5, d->status);
			continue;
		}
		d->status = 0;
		while (d->fate == EMU_DO && d->status == 0 && (command = next_part(&all, "&&"))) {
			d->status = run_command(d, command, out);
		}
	}
	if (d->fate == EMU_DO_SILENTLY) {
		buf_reset(out);
	}
}

/* ---- as a dialect -------------------------------------------------------- */

static void sonic_open(struct emu *e)
{
	struct sonic_device *d = x_new(1, sizeof(*d));

	d->blocked = x_new((size_t)e->mem.n_ports, sizeof(bool));
	d->made_ns = x_new((size_t)e->mem.n_in, sizeof(*d->made_ns));
	d->e = e;
	e->device = d;
}

static void sonic_close(struct emu *e)
{
	struct sonic_device *d = e->device;

	vec_fini(&d->stale);
	vec_fini(&d->invalid);
	free(d->made_ns);
	free(d->blocked);
	free(d);
}

/* What readline prints of a line that is typed: in the last column of the
 * screen it goes on with a blank and a CR. */
static void put_typed(const char *line, struct buf *out)
{
	size_t column = PROMPT_COLUMNS;

	for (; *line; line++) {
		buf_char(out, *line);
		if (++column == SCREEN_COLUMNS) {
			buf_str(out, " \r");
			column = 0;
		}
	}
	buf_str(out, "\r\n");
}

/* The output as an interactive bash on a terminal has it. */
static void put_screen(int64_t *quiet, const char *typed, const char *output, struct buf *out)
{
	if (!*quiet) {
		put_typed(typed, out);
	}
	buf_str(out, PASTE_OFF);
	for (; *output; output++) {
		buf_str(out, *output == '\n' ? "\r\n" : "");
		if (*output != '\n') {
			buf_char(out, *output);
		}
	}
	*quiet = *quiet || strstr(typed, "stty -echo; PS1=;");
	buf_str(out, *quiet ? PASTE_ON : PASTE_ON PROMPT);
}

static void run_input(struct emu_client *c, char *line)
{
	struct sonic_device *d = emu_of(c)->device;
	bool screen = emu_form_is(d->e, "bash");
	char *typed = screen ? x_dup(line) : NULL;
	struct buf out = { 0 }, shown = { 0 };

	d->client = c;
	run_line(d, line, &out);
	if (typed && out.len) {
		put_screen(emu_client_mark(c), typed, buf_cstr(&out), &shown);
	}
	emu_finish_command(c, d->fate, screen ? &shown : &out);
	if (screen) {
		buf_fini(&out);
	}
	free(typed);
}

static int64_t sonic_input(struct emu_client *c, const uint8_t *data, size_t len)
{
	return emu_take_command(c, data, len, "\n", run_input);
}

static void sonic_refresh(struct emu *e, enum emu_map_event event)
{
	struct sonic_device *d = e->device;

	if (event == EMU_RESTARTED) {
		d->stale.n = d->invalid.n = 0;
		memset(d->blocked, 0, (size_t)e->mem.n_ports * sizeof(bool));
	}
}

static bool sonic_dark(struct emu *e, struct optics_xc xc)
{
	enum drv_state state = state_of(e->device, xc);

	return state == DRV_FAILED || state == DRV_BLOCKED;
}

static bool sonic_stale(const struct emu *e, size_t i, struct optics_xc *xc)
{
	const struct sonic_device *d = e->device;

	if (i >= d->stale.n) {
		return false;
	}
	*xc = d->stale.v[i].xc;
	return true;
}

static const struct emu_form forms[] = {
	{ .name = "exec" },
	{ .name = "bash", .greeting = "Debian GNU/Linux 12 sonic ttyS0\r\n\r\n" PASTE_ON PROMPT },
	{ .name = "mgmt" },
	{ .name = "yang" },
	{ 0 },
};

const struct emu_dialect emu_sonic = {
	.name = "sonic-ocs",
	.forms = forms,
	.kind = DRV_SPACE,
	.max_input = MAX_COMMAND,
	.completes = true,
	.open = sonic_open,
	.close = sonic_close,
	.input = sonic_input,
	.refresh = sonic_refresh,
	.dark = sonic_dark,
	.stale = sonic_stale,
};
