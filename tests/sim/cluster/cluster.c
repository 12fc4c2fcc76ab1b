/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Machines, service managers, and what they start. A manager is a process of its machine that
 * starts its program again when it has ended: weftd as configs/systemd/weftd.service says
 * (on-failure, after 500 ms), a device always. The programs are those that ship, by their main
 * functions with a command line each.
 *
 * Whoever is away with its machine comes back by its manager, which the machine starts when it
 * has power again.
 */
#include "tests/sim/cluster/cluster.h"

#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "controller/daemon/daemon.h"
#include "drivers/emulators/core/emulator.h"
#include "lib/base/alloc.h"
#include "lib/base/err.h"
#include "tests/sim/disk/disk.h"
#include "tests/sim/etcd/etcd_model.h"
#include "tests/sim/cluster/fabrics.h"
#include "tests/sim/cluster/history.h"

#define RESTART_NS (500 * SIM_MS)	/* RestartSec */
#define STOP_NS (120 * SIM_S)		/* TimeoutStopSec */
#define BOOT_NS SIM_S			/* of a device, at least */
#define STAGGER_NS (100 * SIM_MS)
#define CONTROL_MS 5000
#define CONTROL_BYTES (1 << 17)		/* the light of a ring's program */
#define MAX_ARGS 48

/* A program with its manager. */
struct unit {
	struct sim_process *program, *manager;	/* NULL: never was */
	int starts, last_status;
	bool told_to_stop;
	bool again;		/* told to start while it was still stopping */
	int64_t away_ns;	/* of a device: how long it is away when it ends now */
};

static struct {
	struct scenario scenario;
	struct unit weftds[CLUSTER_WEFTDS], devices[CLUSTER_DEVICES];
	bool off[CLUSTER_WEFTDS + CLUSTER_DEVICES + CLUSTER_ETCDS];
} cluster;

const struct scenario *cluster_scenario(void)
{
	return &cluster.scenario;
}

/* ---- command lines ---- */

struct args {
	const char *v[MAX_ARGS + 1];
	int n;
};

static void add(struct args *a, const char *first, const char *second)
{
	if (a->n + 2 <= MAX_ARGS) {
		a->v[a->n++] = first;
		if (second) {
			a->v[a->n++] = second;
		}
	}
}

static void weftd_args(int i, struct args *a)
{
	static const char *const rows[] = { "row0", "row1", "row2", "row3", "row4", "row5" };
	static char lease[16], poll[16];
	const struct scenario *s = &cluster.scenario;

	snprintf(lease, sizeof(lease), "%d", s->lease_s);
	snprintf(poll, sizeof(poll), "%d", s->poll_s);
	add(a, "weftd", NULL);
	add(a, "--socket", cluster_socket(i));
	add(a, "--state-dir", cluster_state(i));
	add(a, "--poll", poll);
	if (s->turns == CLUSTER_ETCD) {
		add(a, "--etcd", etcd_model_urls());
	} else if (s->turns == CLUSTER_SHARED) {
		add(a, "--standby", NULL);
	}
	if (s->turns != CLUSTER_ALONE) {
		add(a, "--lease", lease);
	}
	if (s->domains > 0) {
		add(a, "--domains", rows[cluster_domain_of(i)]);
	}
	for (int k = 0; k < 4 && s->weftd_options[k]; k++) {
		add(a, s->weftd_options[k], NULL);
	}
}

/* Texts are good until the next call. */
static void device_args(int i, struct args *a)
{
	static char listen[32], size[32], control[32], state[32], seed[16];
	const struct cluster_device *d = &cluster.scenario.devices[i];
	const char *name = cluster_device_name(i);

	snprintf(listen, sizeof(listen), "127.0.0.1:%d", fabrics_port(i));
	fabrics_size(i, size, sizeof(size));
	snprintf(control, sizeof(control), "%s.ctl", name);
	snprintf(state, sizeof(state), "%s/map", name);
	snprintf(seed, sizeof(seed), "%d", i + 1);
	add(a, "weft-emulator", NULL);
	add(a, "--driver", d->dialect);
	add(a, "--listen", listen);
	add(a, "--size", size);
	add(a, "--name", name);
	add(a, "--control", control);
	add(a, "--seed", seed);
	if (!d->forgets) {
		add(a, "--state", state);
	}
	if (fabrics_is_robot(d->dialect)) {
		add(a, "--fault", "move=300");
	}
	/* One of the two CLIs that such switches have. */
	if (strcmp(d->dialect, "sonic-ocs") == 0 && i % 2) {
		add(a, "--form", "yang");
	}
	if (d->option) {
		add(a, d->option, NULL);
	}
	for (int k = 0; k < 4 && d->faults[k]; k++) {
		add(a, "--fault", d->faults[k]);
	}
}

/* getopt's place in the arguments is the whole program's. */
static int weftd_main(int argc, char **argv)
{
	optind = 0;
	return daemon_main(argc, argv);
}

static int device_main(int argc, char **argv)
{
	optind = 0;
	return emulator_main(argc, argv);
}

/* ---- managers ---- */

static void start_program(struct unit *u, const char *machine, sim_main main, const struct args *a)
{
	u->starts++;
	u->program = sim_start(machine, main, a->v);
}

/* "manager WEFTD": as Restart=on-failure. */
static int manage_weftd(int argc, char **argv)
{
	int i = atoi(argv[argc - 1]);
	struct unit *u = &cluster.weftds[i];

	while (!u->told_to_stop) {
		struct args a = { 0 };

		weftd_args(i, &a);
		start_program(u, cluster_machine(i), weftd_main, &a);
		u->last_status = sim_wait(u->program);
		sim_tell("weftd ended with %d", u->last_status);
		if (u->last_status == 0 && !u->again) {
			break;
		}
		u->again = false;
		sim_sleep(RESTART_NS);
	}
	return 0;
}

/* "manager DEVICE": whatever ended it, it boots. */
static int manage_device(int argc, char **argv)
{
	int i = atoi(argv[argc - 1]);
	struct unit *u = &cluster.devices[i];

	while (!u->told_to_stop) {
		struct args a = { 0 };

		device_args(i, &a);
		u->away_ns = BOOT_NS;
		start_program(u, cluster_device_name(i), device_main, &a);
		u->last_status = sim_wait(u->program);
		sim_sleep(u->away_ns);
	}
	return 0;
}

static bool runs(const struct sim_process *p)
{
	return p && !sim_ended(p, NULL);
}

static void start_manager(struct unit *u, const char *machine, sim_main main, int i)
{
	char number[16];

	snprintf(number, sizeof(number), "%d", i);
	if (!runs(u->manager)) {
		u->manager = sim_start(machine, main, (const char *const[]){ "manager", number,
									     NULL });
	}
}

/* ---- weftd ---- */

const char *cluster_machine(int weftd)
{
	static const char *const names[CLUSTER_WEFTDS] = { "a", "b", "c", "d", "e", "f" };

	return names[weftd];
}

const char *cluster_socket(int weftd)
{
	static const char *const names[CLUSTER_WEFTDS] = {
		"a.sock", "b.sock", "c.sock", "d.sock", "e.sock", "f.sock",
	};

	return names[weftd];
}

const char *cluster_state(int weftd)
{
	static const char *const names[CLUSTER_WEFTDS] = {
		"a/state", "b/state", "c/state", "d/state", "e/state", "f/state",
	};

	return cluster.scenario.turns == CLUSTER_SHARED ? "shared/state" : names[weftd];
}

int cluster_domains(void)
{
	return cluster.scenario.domains > 0 ? cluster.scenario.domains : 1;
}

int cluster_domain_of(int weftd)
{
	return weftd % cluster_domains();
}

struct sim_process *cluster_weftd(int weftd)
{
	struct sim_process *p = cluster.weftds[weftd].program;

	return runs(p) ? p : NULL;
}

int cluster_starts(int weftd)
{
	return cluster.weftds[weftd].starts;
}

int cluster_last_status(int weftd)
{
	return cluster.weftds[weftd].last_status;
}

void cluster_kill(int weftd)
{
	struct sim_process *p = cluster_weftd(weftd);

	if (p) {
		sim_tell("weftd of %s is killed", cluster_machine(weftd));
		sim_signal(p, SIGKILL);
	}
}

bool cluster_stop(int weftd)
{
	struct sim_process *p = cluster_weftd(weftd);

	cluster.weftds[weftd].told_to_stop = true;
	if (p) {
		sim_tell("weftd of %s is told to stop", cluster_machine(weftd));
		sim_signal(p, SIGTERM);
	}
	return p != NULL;
}

int cluster_wait_stopped(int weftd)
{
	struct unit *u = &cluster.weftds[weftd];
	int64_t late = sim_now() + STOP_NS;

	while (runs(u->program) && sim_now() < late) {
		sim_sleep(10 * SIM_MS);
	}
	if (runs(u->program)) {
		sim_fail("stop", "weftd of %s still runs two minutes after SIGTERM",
			 cluster_machine(weftd));
		sim_signal(u->program, SIGKILL);
	}
	if (runs(u->manager)) {
		sim_wait(u->manager);
	}
	return u->last_status;
}

void cluster_start(int weftd)
{
	struct unit *u = &cluster.weftds[weftd];

	u->again = u->told_to_stop && runs(u->program);
	u->told_to_stop = false;
	if (!cluster.off[weftd]) {
		start_manager(u, cluster_machine(weftd), manage_weftd, weftd);
	}
}

/* ---- devices ---- */

const char *cluster_device_name(int device)
{
	return fabrics_device_name(device);
}

int cluster_device_of(const char *name)
{
	for (int i = 0; i < cluster.scenario.n_devices; i++) {
		if (strcmp(cluster_device_name(i), name) == 0) {
			return i;
		}
	}
	return -1;
}

struct sim_process *cluster_device(int device)
{
	struct sim_process *p = cluster.devices[device].program;

	return runs(p) ? p : NULL;
}

void cluster_reboot(int device, int64_t away_ns)
{
	struct unit *u = &cluster.devices[device];

	if (runs(u->program)) {
		sim_tell("%s boots, which takes %.1f s", cluster_device_name(device),
			 (double)away_ns / SIM_S);
		history_others_lost(device);
		u->away_ns = away_ns;
		sim_signal(u->program, SIGKILL);
	}
}

/* ---- power ---- */

/* Where a machine's word whether it is off is; -1: no such machine. */
static int find_machine(const char *name)
{
	const struct scenario *s = &cluster.scenario;

	for (int i = 0; i < s->n_weftds; i++) {
		if (strcmp(cluster_machine(i), name) == 0) {
			return i;
		}
	}
	for (int i = 0; i < s->etcd_members; i++) {
		if (strcmp(etcd_model_machine(i), name) == 0) {
			return CLUSTER_WEFTDS + CLUSTER_DEVICES + i;
		}
	}
	return cluster_device_of(name) < 0 ? -1 : CLUSTER_WEFTDS + cluster_device_of(name);
}

bool cluster_is_on(const char *machine)
{
	int i = find_machine(machine);

	return i >= 0 && !cluster.off[i];
}

void cluster_power_off(const char *machine)
{
	int i = find_machine(machine);

	if (i >= 0 && !cluster.off[i]) {
		sim_tell("%s has no power", machine);
		cluster.off[i] = true;
		sim_power_off(machine);
		disk_power_loss(machine);
		if (cluster_device_of(machine) >= 0) {
			history_others_lost(cluster_device_of(machine));
		}
	}
}

/* All that a machine starts when it has power, also what was told to stop before. */
static void start_machine(int i)
{
	if (i < CLUSTER_WEFTDS) {
		cluster_start(i);
	} else if (i < CLUSTER_WEFTDS + CLUSTER_DEVICES) {
		i -= CLUSTER_WEFTDS;
		start_manager(&cluster.devices[i], cluster_device_name(i), manage_device, i);
	} else {
		etcd_model_start(i - CLUSTER_WEFTDS - CLUSTER_DEVICES);
	}
}

void cluster_power_on(const char *machine)
{
	int i = find_machine(machine);

	if (i >= 0 && cluster.off[i]) {
		sim_tell("%s has power again", machine);
		cluster.off[i] = false;
		sim_power_on(machine);
		start_machine(i);
	}
}

/* ---- the beginning ---- */

/* One after the other, as machines are. */
static int start_all(int argc, char **argv)
{
	const struct scenario *s = &cluster.scenario;

	(void)argc, (void)argv;
	for (int i = 0; i < s->etcd_members; i++) {
		start_machine(CLUSTER_WEFTDS + CLUSTER_DEVICES + i);
	}
	for (int i = 0; i < s->n_devices; i++) {
		start_machine(CLUSTER_WEFTDS + i);
	}
	for (int i = 0; i < s->n_weftds; i++) {
		sim_sleep(STAGGER_NS);
		start_machine(i);
	}
	return 0;
}

void cluster_begin(const struct scenario *s)
{
	memset(&cluster, 0, sizeof(cluster));
	cluster.scenario = *s;
	for (int i = 0; i < CLUSTER_WEFTDS; i++) {
		cluster.weftds[i].last_status = -1;
	}
	for (int i = 0; i < s->n_weftds; i++) {
		mkdir(cluster_machine(i), 0700);
	}
	mkdir("shared", 0700);
	for (int i = 0; i < s->n_devices; i++) {
		mkdir(cluster_device_name(i), 0700);
	}
	fabrics_write();
	if (s->etcd_members > 0) {
		etcd_model_begin(s->etcd_members);
	}
	sim_start("room", start_all, (const char *const[]){ "start", NULL });
}

/* ---- control sockets ---- */

static int control_connect(const char *name, struct err *err)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(to.sun_path, sizeof(to.sun_path), "%s.ctl", name);
	if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof(to))) {
		err_errno(err, WEFT_EUNAVAIL, errno, "%s", to.sun_path);
		if (fd >= 0) {
			close(fd);
		}
		return err->code;
	}
	return fd;
}

/* Until its last line, "ok" or "error WHY"; how much. */
static size_t control_read(int fd, char *text, size_t size)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	size_t len = 0;
	ssize_t n = 1;

	text[0] = '\0';
	while (n > 0 && len + 1 < size && !strstr(text, "ok\n") && !strstr(text, "error ")) {
		n = poll(&p, 1, CONTROL_MS) > 0 ? recv(fd, text + len, size - 1 - len, 0) : 0;
		len += n > 0 ? (size_t)n : 0;
		text[len] = '\0';
	}
	return len;
}

int cluster_control(int device, const char *line, char *answer, size_t size)
{
	struct err err = { 0 };
	char *text;
	int fd = control_connect(cluster_device_name(device), &err), rc = 0;
	size_t len;

	if (fd < 0) {
		return fd;
	}
	text = x_alloc(1, CONTROL_BYTES);
	snprintf(text, CONTROL_BYTES, "%s\n", line);
	len = send(fd, text, strlen(text), MSG_NOSIGNAL) > 0 ? control_read(fd, text, CONTROL_BYTES)
							     : 0;
	close(fd);
	if (len < 3 || strcmp(text + len - 3, "ok\n") != 0) {
		rc = len == 0 ? WEFT_EUNAVAIL : WEFT_EDEVICE;
	} else if (answer) {
		snprintf(answer, size, "%.*s", (int)len - 3, text);
	}
	free(text);
	return rc;
}
