/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The device side of the Polatis SCPI dialect. Command forms and replies are
 * those of the vendor's switches. Reconstructed, since never seen in the
 * open: the error numbers and texts (the standard SCPI ones), the second
 * number of `size?` on an any-to-any switch, several replies of one chain
 * joined by `;` (as SCPI has it), and the capacity of the error queue.
 */
#include "drivers/emulators/scpi/scpi_device.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/emulators/core/fibre_plant.h"
#include "drivers/scpi/scpi.h"
#include "lib/base/alloc.h"
#include "lib/base/clock.h"
#include "lib/base/vec.h"

#define QUEUE_MAX 16
#define POWERS_A_QUERY 256

struct scpi_error {
	int code;
	const char *text;
};

/* The error queue is one for all sessions, as in the vendor's switches: a
 * driver may read the error of another session, or have its own read away. */
struct scpi_device {
	struct emu *e;
	bool *disabled;		/* by command, per flat port */
	struct scpi_error queue[QUEUE_MAX];
	int n_queue;
	int64_t last_ns;
	char *args;		/* of the command being carried out */
	struct buf *out;	/* its reply */
};

static const struct scpi_error undefined = { -113, "Undefined header" };
static const struct scpi_error bad_list = { -220, "Parameter error" };
static const struct scpi_error range = { -222, "Data out of range" };
static const struct scpi_error failed = { -200, "Execution error" };
static const struct scpi_error not_usable = { -241, "Hardware missing" };
static const struct scpi_error overflow = { -350, "Queue overflow" };

/* A full queue keeps its oldest errors, and the last one becomes "Queue
 * overflow", as SCPI has it. */
static void push_error(struct scpi_device *d, struct scpi_error error)
{
	if (d->n_queue == QUEUE_MAX) {
		d->queue[QUEUE_MAX - 1] = overflow;
	} else {
		d->queue[d->n_queue++] = error;
	}
}

static void put_error(struct buf *out, struct scpi_error error)
{
	buf_printf(out, "%d, \"%s\"", error.code, error.text);
}

/* ---- ports --------------------------------------------------------------- */

/* E(nabled), D(isabled) or F(ailed), as `port:state?` prints it. */
static char port_state(struct scpi_device *d, int flat)
{
	struct faults *f = &d->e->faults;

	if (faults_hold_port(f, FAULT_PORT_FAILED, flat)) {
		return 'F';
	}
	return d->disabled[flat] || faults_hold_port(f, FAULT_PORT_DISABLED, flat) ? 'D' : 'E';
}

/* Ports by the device's numbers, in the order of the list. */
typedef VEC(int32_t) port_list;

/* `(@1,2,3)`; the list is cut off *s. False after pushing an error. */
static bool take_ports(struct scpi_device *d, char **s, port_list *ports)
{
	char *p = *s + strspn(*s, " ");

	if (strncmp(p, "(@", 2) != 0) {
		push_error(d, bad_list);
		return false;
	}
	for (p += 2; *p && *p != ')';) {
		long n = isdigit((unsigned char)*p) ? strtol(p, &p, 10) : -1;

		if (n < 1 || n > d->e->mem.n_ports || ports->n >= SCPI_MAX_PORT) {
			push_error(d, n < 0 ? bad_list : range);
			return false;
		}
		vec_push(ports, (int32_t)n);
		p += *p == ',';
	}
	if (*p != ')') {
		push_error(d, bad_list);
		return false;
	}
	*s = p + 1;
	return true;
}

/* One list and nothing behind it. False after pushing an error. */
static bool only_ports(struct scpi_device *d, char *args, port_list *ports)
{
	if (!take_ports(d, &args, ports)) {
		return false;
	}
	if (args[strspn(args, " ")]) {
		push_error(d, bad_list);
		return false;
	}
	return true;
}

/* Two lists. The second may be empty if `short_form`. */
static bool take_pairs(struct scpi_device *d, char *args, bool short_form,
		       port_list *in, port_list *out)
{
	if (!take_ports(d, &args, in)) {
		return false;
	}
	args += strspn(args, " ");
	if (*args != ',') {
		push_error(d, bad_list);
		return false;
	}
	args++;
	if (!only_ports(d, args, out)) {
		return false;
	}
	if (in->n != out->n && !(short_form && out->n == 0)) {
		push_error(d, bad_list);
		return false;
	}
	return true;
}

/* Two of the device's port numbers as a circuit, in that order; false when the
 * switch cannot have it. */
static bool to_xc(const struct xc_map *m, int32_t a, int32_t b, struct optics_xc *xc)
{
	*xc = (struct optics_xc){ a - 1, b - 1 - (m->any_to_any ? 0 : m->n_in) };
	return xc_map_check(m, *xc, NULL) == 0;
}

/* ---- commands ------------------------------------------------------------ */

static void identity(struct scpi_device *d)
{
	const struct xc_map *m = &d->e->mem;

	buf_printf(d->out, "Polatis,N-OST-%dx", m->n_in);
	if (m->any_to_any) {
		buf_str(d->out, "CC");
	} else {
		buf_printf(d->out, "%d", m->n_out);
	}
	buf_printf(d->out, "-LU1-DMHNV,%s,6.7.3.9", d->e->conf.name);
}

static void size(struct scpi_device *d)
{
	buf_printf(d->out, emu_form_is(d->e, "none") ? "\"%d,%d\"" : "%d,%d", d->e->mem.n_in,
		   d->e->mem.n_out);
}

/* `(@1,2)`, or with blanks behind the commas. */
static void put_list(struct scpi_device *d, const port_list *ports)
{
	if (!emu_form_is(d->e, "telnet")) {
		scpi_put_list(d->out, ports->v, (int)ports->n);
		return;
	}
	buf_str(d->out, "(@");
	for (size_t i = 0; i < ports->n; i++) {
		buf_printf(d->out, i ? ", %d" : "%d", (int)ports->v[i]);
	}
	buf_char(d->out, ')');
}

/* Two lists of one length: inputs, and the outputs that they are connected
 * to. */
static void map(struct scpi_device *d)
{
	const struct xc_map *m = &d->e->mem;
	struct optics_xc *v;
	port_list in = { 0 }, to = { 0 };
	int n;

	xc_map_xcs(m, &v, &n);
	for (int i = 0; i < n; i++) {
		vec_push(&in, xc_map_flat_in(m, v[i].in) + 1);
		vec_push(&to, xc_map_flat_out(m, v[i].out) + 1);
	}
	if (to.n == 0 && emu_form_is(d->e, "none")) {
		buf_str(d->out, "<none>");
	} else {
		put_list(d, &in);
		buf_char(d->out, ',');
		put_list(d, &to);
	}
	vec_fini(&in);
	vec_fini(&to);
	free(v);
}

/* The peer in quotes, empty when there is none. */
static void peer(struct scpi_device *d)
{
	const struct xc_map *m = &d->e->mem;
	char *end;
	long n = strtol(d->args, &end, 10);

	if (end == d->args || n < 1 || n > m->n_ports) {
		push_error(d, range);
	} else if (m->peer[n - 1] < 0) {
		buf_str(d->out, "\"\"");
	} else {
		buf_printf(d->out, "\"%d\"", (int)m->peer[n - 1] + 1);
	}
}

/* Connects one pair as the faults allow. Each list is one command, but a pair
 * that fails does not stop the others: the errors show only how many. */
static void connect_pair(struct scpi_device *d, struct optics_xc xc)
{
	struct xc_map *m = &d->e->mem;
	struct faults *f = &d->e->faults;
	int ends[] = { xc_map_flat_in(m, xc.in), xc_map_flat_out(m, xc.out) };

	for (int i = 0; i < 2; i++) {
		if (port_state(d, ends[i]) != 'E') {
			push_error(d, not_usable);
			return;
		}
		if (faults_hold_port(f, FAULT_REFUSE_PORT, ends[i]) ||
		    faults_hold_port(f, FAULT_BUSY, ends[i])) {
			push_error(d, failed);
			return;
		}
		if (faults_hold_port(f, FAULT_IGNORE_PORT, ends[i])) {
			return;
		}
	}
	xc_map_connect(m, xc);
}

/* All pairs are checked before the first is connected. */
static bool pairs_exist(struct scpi_device *d, const port_list *in, const port_list *out)
{
	struct optics_xc xc;

	for (size_t i = 0; i < out->n; i++) {
		if (!to_xc(&d->e->mem, in->v[i], out->v[i], &xc)) {
			push_error(d, range);
			return false;
		}
	}
	return true;
}

/* How many pairs of a list are really done. */
static size_t how_many(struct scpi_device *d, size_t n)
{
	int64_t half;

	if (faults_hold(&d->e->faults, FAULT_HALF, &half) && (size_t)half < n) {
		return (size_t)half;
	}
	return n;
}

/* `add`, or with `only` the whole map: all other circuits end first. */
static void connect_list(struct scpi_device *d, bool only)
{
	port_list in = { 0 }, out = { 0 };
	struct optics_xc xc;

	if (take_pairs(d, d->args, false, &in, &out) && pairs_exist(d, &in, &out)) {
		if (only) {
			xc_map_clear(&d->e->mem);
		}
		for (size_t i = 0; i < how_many(d, in.n); i++) {
			to_xc(&d->e->mem, in.v[i], out.v[i], &xc);
			connect_pair(d, xc);
		}
		emu_changed(d->e);
	}
	vec_fini(&in);
	vec_fini(&out);
}

static void add(struct scpi_device *d)
{
	connect_list(d, false);
}

static void only(struct scpi_device *d)
{
	connect_list(d, true);
}

/* Ends circuits. With an empty second list each named port loses its circuit,
 * whichever it is; else a pair that is not connected is an error. */
static void sub(struct scpi_device *d)
{
	port_list in = { 0 }, to = { 0 };
	struct xc_map *m = &d->e->mem;

	if (take_pairs(d, d->args, true, &in, &to)) {
		for (size_t i = 0; i < how_many(d, in.n); i++) {
			int flat = in.v[i] - 1;

			if (to.n == 0 || m->peer[flat] == to.v[i] - 1) {
				xc_map_release(m, flat);
			} else {
				push_error(d, failed);
			}
		}
		emu_changed(d->e);
	}
	vec_fini(&in);
	vec_fini(&to);
}

static void disconnect_all(struct scpi_device *d)
{
	xc_map_clear(&d->e->mem);
	emu_changed(d->e);
}

/* A disabled port loses its circuit, and enabling does not bring it back. */
static void set_disabled(struct scpi_device *d, bool disabled)
{
	port_list ports = { 0 };

	if (only_ports(d, d->args, &ports)) {
		for (size_t i = 0; i < ports.n; i++) {
			d->disabled[ports.v[i] - 1] = disabled;
			if (disabled) {
				xc_map_release(&d->e->mem, ports.v[i] - 1);
			}
		}
		emu_changed(d->e);
	}
	vec_fini(&ports);
}

static void disable(struct scpi_device *d)
{
	set_disabled(d, true);
}

static void enable(struct scpi_device *d)
{
	set_disabled(d, false);
}

static void states(struct scpi_device *d)
{
	port_list ports = { 0 };

	if (only_ports(d, d->args, &ports)) {
		for (size_t i = 0; i < ports.n; i++) {
			buf_char(d->out, i ? ',' : '(');
			buf_char(d->out, port_state(d, ports.v[i] - 1));
		}
		buf_str(d->out, ports.n ? ")" : "()");
	}
	vec_fini(&ports);
}

/* dBm of at most 256 ports. A switch without monitors does not know the
 * question. */
static void powers(struct scpi_device *d)
{
	port_list ports = { 0 };

	if (faults_hold(&d->e->faults, FAULT_NO_MONITORS, NULL)) {
		push_error(d, undefined);
		return;
	}
	if (only_ports(d, d->args, &ports) && ports.n <= POWERS_A_QUERY) {
		for (size_t i = 0; i < ports.n; i++) {
			buf_printf(d->out, "%s%.2f", i ? "," : "(",
				   plant_port_mdbm(d->e, ports.v[i] - 1) /
				   1000.0);
		}
		buf_str(d->out, ports.n ? ")" : "()");
	} else if (ports.n > POWERS_A_QUERY) {
		push_error(d, range);
	}
	vec_fini(&ports);
}

/* Whether circuits survive a power cycle. */
static void boot_mode(struct scpi_device *d)
{
	buf_str(d->out, d->e->conf.state ? "AUTosave" : "DARK");
}

static void next_error(struct scpi_device *d)
{
	static const struct scpi_error none = { 0, "No error" };

	if (!d->n_queue && emu_form_is(d->e, "none")) {
		buf_char(d->out, '+');
	}
	put_error(d->out, d->n_queue ? d->queue[0] : none);
	if (d->n_queue) {
		memmove(d->queue, d->queue + 1, (size_t)--d->n_queue * sizeof(d->queue[0]));
	}
}

/* The queue is emptied by reading it, oldest first; "No error" when it was
 * empty. */
static void all_errors(struct scpi_device *d)
{
	do {
		next_error(d);
	} while (d->n_queue && (buf_str(d->out, ", "), true));
}

static void clear_errors(struct scpi_device *d)
{
	d->n_queue = 0;
}

static void status_byte(struct scpi_device *d)
{
	buf_str(d->out, d->n_queue ? "4" : "0");
}

static void network(struct scpi_device *d)
{
	buf_printf(d->out, "\"%s\"", d->e->conf.listen);
}

static const struct {
	const char *header;	/* upper case is the short form */
	bool set;
	void (*run)(struct scpi_device *d);
} commands[] = {
	{ "*IDN?", false, identity },
	{ "*CLS", false, clear_errors },
	{ "*RST", true, disconnect_all },
	{ "*STB?", false, status_byte },
	{ "OXC:SWITch:SIZE?", false, size },
	{ "OXC:SWITch:CONNect:STATe?", false, map },
	{ "OXC:SWITch:CONNect:PORT?", false, peer },
	{ "OXC:SWITch:CONNect:ADD", true, add },
	{ "OXC:SWITch:CONNect:SUBtract", true, sub },
	{ "OXC:SWITch:CONNect:ONLY", true, only },
	{ "OXC:SWITch:DISConnect:ALL", true, disconnect_all },
	{ "OXC:SWITch:PORT:DISable", true, disable },
	{ "OXC:SWITch:PORT:ENABle", true, enable },
	{ "OXC:SWITch:PORT:STATe?", false, states },
	{ "OXC:BOOT:MODE?", false, boot_mode },
	{ "PMON:POWer?", false, powers },
	{ "SYSTem:ERRor?", false, next_error },
	{ "SYSTem:ERRor:NEXT?", false, next_error },
	{ "SYSTem:ERRor:ALL?", false, all_errors },
	{ "SYSTem:COMMunicate:NETWork:ADDRess?", false, network },
};

/* Whether a word of the input is the short or the long form of a mnemonic,
 * and how far either reaches. */
static bool word_matches(const char **form, const char **input)
{
	const char *f = *form, *s = *input;
	size_t all = strcspn(f, ":?"), typed = strcspn(s, ":? "), small = 0;

	while (small < all && !islower((unsigned char)f[small])) {
		small++;
	}
	if ((typed != all && typed != small) || strncasecmp(f, s, typed) != 0) {
		return false;
	}
	*form = f + all;
	*input = s + typed;
	return true;
}

/* SCPI headers: each word in its short or long form, in any case; a colon in
 * front is allowed. What follows is the end, or a blank and the arguments. */
static bool header_matches(const char *form, const char *input)
{
	input += *input == ':';
	while (word_matches(&form, &input)) {
		if (*form != *input && !(*form == '\0' && *input == ' ')) {
			return false;
		}
		if (*form != ':') {
			/* `?` or the end. */
			return *form == '\0' || input[1] == '\0' || input[1] == ' ';
		}
		form++;
		input++;
	}
	return false;
}

/* ---- lines --------------------------------------------------------------- */

static void fill_queue(struct scpi_device *d)
{
	while (d->n_queue < QUEUE_MAX) {
		push_error(d, failed);
	}
}

/* The queue is shared: what other sessions leave there before a set command. */
static void other_sessions(struct scpi_device *d)
{
	if (faults_strike(&d->e->faults, FAULT_QUEUE_FULL, NULL)) {
		fill_queue(d);
	}
	if (faults_strike(&d->e->faults, FAULT_OTHERS_ERROR, NULL)) {
		push_error(d, undefined);
	}
}

static enum emu_fate run_command(struct scpi_device *d, char *command, struct buf *out,
				 enum emu_fate (*set)(void *arg), void *arg)
{
	char *args = command + strcspn(command, " ");
	enum emu_fate fate = EMU_DO;

	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (!header_matches(commands[i].header, command)) {
			continue;
		}
		if (commands[i].set) {
			fate = set(arg);
			other_sessions(d);
		}
		if (fate != EMU_EAT) {
			d->args = args + strspn(args, " ");
			d->out = out;
			commands[i].run(d);
		}
		if (commands[i].set && d->n_queue &&
		    faults_strike(&d->e->faults, FAULT_TAKEN_ERROR, NULL)) {
			d->n_queue = 0;
		}
		return fate;
	}
	push_error(d, undefined);
	return EMU_DO;
}

/* Whether the line came sooner behind the last one than the device can take
 * it: it is lost. */
static bool too_quick(struct scpi_device *d)
{
	int64_t now = clk_now_ns(), gap = now - d->last_ns, min_ms;

	d->last_ns = now;
	return faults_hold(&d->e->faults, FAULT_OVERRATE, &min_ms) && gap < min_ms * 1000000;
}

enum emu_fate scpi_device_line(struct scpi_device *d, char *line, struct buf *out,
			       enum emu_fate (*set)(void *arg), void *arg)
{
	bool chained = strchr(line, ';') != NULL;
	bool stop = chained && faults_strike(&d->e->faults, FAULT_CHAIN_STOP, NULL);
	enum emu_fate fate = EMU_DO;
	char *next = line;

	if (too_quick(d)) {
		return EMU_EAT;
	}
	while (next && fate == EMU_DO) {
		char *command = next;
		struct buf reply = { 0 };

		next = strchr(command, ';');
		if (next) {
			*next++ = '\0';
		}
		command += strspn(command, " \t");
		if (*command) {
			d->e->n_commands++;
			fate = run_command(d, command, &reply, set, arg);
		}
		if (reply.len && out->len) {
			buf_char(out, ';');
		}
		buf_str(out, buf_cstr(&reply));
		buf_fini(&reply);
		if (stop) {
			break;
		}
	}
	return fate;
}

struct scpi_device *scpi_device_new(struct emu *e)
{
	struct scpi_device *d = x_new(1, sizeof(*d));

	d->e = e;
	d->last_ns = INT64_MIN / 2;
	d->disabled = x_new((size_t)e->mem.n_ports, sizeof(bool));
	return d;
}

void scpi_device_free(struct scpi_device *d)
{
	if (d) {
		free(d->disabled);
		free(d);
	}
}

/* ---- as a dialect -------------------------------------------------------- */

static void emu_scpi_open(struct emu *e)
{
	e->device = scpi_device_new(e);
}

static void emu_scpi_close(struct emu *e)
{
	scpi_device_free(e->device);
}

static enum emu_fate count_set(void *arg)
{
	return emu_set_command(arg);
}

static void answer_line(struct emu_client *c, char *line)
{
	struct buf out = { 0 };
	enum emu_fate fate = scpi_device_line(emu_of(c)->device, line, &out, count_set, c);

	if (out.len) {
		buf_str(&out, "\r\n");
	}
	emu_finish_command(c, fate, &out);
}

static int64_t emu_scpi_input(struct emu_client *c, const uint8_t *data, size_t len)
{
	return emu_take_command(c, data, len, "\r\n", answer_line);
}

static void emu_scpi_refresh(struct emu *e, enum emu_map_event event)
{
	struct scpi_device *d = e->device;

	if (event == EMU_RESTARTED) {
		d->n_queue = 0;
		memset(d->disabled, 0, (size_t)e->mem.n_ports * sizeof(bool));
	}
}

/* Light stops at a disabled port whatever the map shows. */
static bool is_dark(struct emu *e, struct optics_xc xc)
{
	return port_state(e->device, xc_map_flat_in(&e->mem, xc.in)) == 'D' ||
	       port_state(e->device, xc_map_flat_out(&e->mem, xc.out)) == 'D';
}

static const struct emu_form forms[] = {
	{ .name = "lists" },
	{ .name = "none" },
	{ .name = "telnet", .greeting = "\xff\xfb\x01\xff\xfb\x03\xff\xfd\x18",
	  .telnet = true, .echo = true },
	{ 0 },
};

const struct emu_dialect emu_scpi = {
	.name = "polatis-scpi",
	.forms = forms,
	.kind = DRV_SPACE,
	.max_input = SCPI_MAX_LINE,
	.open = emu_scpi_open,
	.close = emu_scpi_close,
	.input = emu_scpi_input,
	.refresh = emu_scpi_refresh,
	.dark = is_dark,
};
