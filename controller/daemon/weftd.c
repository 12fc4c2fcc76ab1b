/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program weftd: options, signals, the service manager.
 *
 * Options are rows of one table, from which the parser and --help are made. Then, in
 * this order: root becomes the user that it was told to, before any file of others is
 * read; the loop is made; as one of several that share a state, it stands by until it
 * leads; it serves until SIGTERM or SIGINT, lets what is under way end, and leaves the
 * circuits as they are. SIGHUP reads access and certificates again. weftd never goes
 * into the background: that is the service manager's affair.
 */
#include <getopt.h>
#include <jansson.h>
#include <limits.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include "controller/daemon/core/core.h"
#include "controller/daemon/core/plan_process.h"
#include "controller/daemon/joint/joint.h"
#include "controller/daemon/daemon.h"
#include "controller/dry_run/dry_run.h"
#include "controller/store/store.h"
#include "lib/base/alloc.h"
#include "lib/base/file.h"
#include "lib/base/log.h"
#include "lib/base/version.h"
#include "lib/rpc/rpc.h"

#define POLL_S 60
#define POLL_MAX_S 86400
#define LEASE_S 10
#define LEASE_MAX_S 3600
#define ETCD_LEASE_MIN_S 2
#define ETCD_PREFIX "/weft/"
#define PLAN_MEMORY_MIB 2048
#define PLAN_MEMORY_MAX_MIB (1 << 24)
#define PLAN_TIME_S 300
#define PLAN_TIME_MAX_S 86400
#define FIRST_OPTION 1000	/* of getopt_long, apart from letters */

struct tcp_address {
	char host[64];		/* "": not given */
	int port;
};

/* What the command line says; the addresses go into cfg when all is parsed. */
struct options {
	struct daemon_config cfg;
	bool help, version, json, standby, foreground, netlink;
	const char *user, *levels;
	struct tcp_address listen, metrics, page;
};

/* ---- values -------------------------------------------------------------- */

/* Each stores the text of an option's value at `at`. WEFT_EUSAGE. */
typedef int (*parse_fn)(const char *option, const char *text, void *at, struct err *err);

static int parse_text(const char *option, const char *text, void *at, struct err *err)
{
	(void)option;
	(void)err;
	*(const char **)at = text;
	return 0;
}

static int parse_flag(const char *option, const char *text, void *at, struct err *err)
{
	(void)option;
	(void)text;
	(void)err;
	*(bool *)at = true;
	return 0;
}

static int parse_levels(const char *option, const char *text, void *at, struct err *err)
{
	struct err cause = { 0 };

	(void)at;
	if (log_set_levels(text, &cause)) {
		err_set(err, WEFT_EUSAGE, "--%s: %s", option, cause.msg);
		if (cause.hint[0]) {
			err_hint(err, "%s", cause.hint);
		}
		return err->code;
	}
	return 0;
}

static int parse_number(const char *option, const char *text, const char *what, int min, int max,
			int64_t *out, struct err *err)
{
	char *end;
	long v = strtol(text, &end, 10);

	if (*text < '0' || *text > '9' || *end || v < min || v > max) {
		return err_set(err, WEFT_EUSAGE, "--%s: \"%s\" is not a "
			       "number of %s from %d to %d", option, text, what,
			       min, max);
	}
	*out = v;
	return 0;
}

static int parse_seconds(const char *option, const char *text, int min, int max,
			 int64_t *ms, struct err *err)
{
	int r = parse_number(option, text, "seconds", min, max, ms, err);

	*ms *= r ? 1 : 1000;
	return r;
}

static int parse_plan_memory(const char *option, const char *text, void *at, struct err *err)
{
	return parse_number(option, text, "MiB", 0, PLAN_MEMORY_MAX_MIB, at, err);
}

static int parse_plan_time(const char *option, const char *text, void *at, struct err *err)
{
	return parse_number(option, text, "seconds", 1, PLAN_TIME_MAX_S, at, err);
}

static int parse_poll(const char *option, const char *text, void *at, struct err *err)
{
	return parse_seconds(option, text, 0, POLL_MAX_S, at, err);
}

static int parse_lease(const char *option, const char *text, void *at, struct err *err)
{
	return parse_seconds(option, text, 1, LEASE_MAX_S, at, err);
}

static int parse_log_format(const char *option, const char *text, void *at, struct err *err)
{
	bool *json = at;

	*json = strcmp(text, "json") == 0;
	if (!*json && strcmp(text, "text") != 0) {
		return err_set(err, WEFT_EUSAGE, "--%s: \"%s\" is not text "
			       "or json", option, text);
	}
	return 0;
}

static int parse_mode(const char *option, const char *text, void *at, struct err *err)
{
	char *end;
	long v = strtol(text, &end, 8);

	if (end == text || *end || v < 0 || v > 0777) {
		return err_set(err, WEFT_EUSAGE, "--%s: \"%s\" is not an octal mode", option, text);
	}
	*(int *)at = (int)v;
	return 0;
}

/* HOST:PORT, [V6]:PORT. */
static int parse_host_port(const char *option, const char *text, void *at, struct err *err)
{
	struct tcp_address *out = at;
	const char *colon = strrchr(text, ':');
	bool v6 = text[0] == '[' && colon && colon > text && colon[-1] == ']';
	const char *host = v6 ? text + 1 : text;
	size_t len = colon ? (size_t)(colon - host) - v6 : 0;
	char *end;
	long port = colon ? strtol(colon + 1, &end, 10) : -1;

	if (!colon || len == 0 || len >= sizeof(out->host) || !colon[1] ||
	    *end || port < 0 || port > 65535) {
		return err_set(err, WEFT_EUSAGE, "--%s: \"%s\" is not HOST:PORT", option, text);
	}
	memcpy(out->host, host, len);
	out->host[len] = '\0';
	out->port = (int)port;
	return 0;
}

/* ---- options ------------------------------------------------------------- */

#define AT(field) offsetof(struct options, field)

/* In the order of --help. */
static const struct option_row {
	const char *name;
	const char *value;	/* what stands for it in --help, NULL: none */
	size_t at;		/* in struct options */
	parse_fn parse;
	const char *help;
} option_rows[] = {
	{ "socket", "PATH", AT(cfg.socket), parse_text,
	  "where it listens (" DAEMON_SOCKET ")" },
	{ "socket-mode", "MODE", AT(cfg.socket_mode), parse_mode,
	  "octal mode of the socket file (0660)" },
	{ "listen", "HOST:PORT", AT(listen), parse_host_port,
	  "also over TCP, with certificates on both sides" },
	{ "metrics", "HOST:PORT", AT(metrics), parse_host_port,
	  "Prometheus metrics, on a loopback address" },
	{ "page", "HOST:PORT", AT(page), parse_host_port,
	  "a web page that shows the fabric, on a loopback address" },
	{ "tls-cert", "FILE", AT(cfg.tls.cert), parse_text,
	  "own certificate and its chain, PEM" },
	{ "tls-key", "FILE", AT(cfg.tls.key), parse_text, "its key" },
	{ "tls-ca", "FILE", AT(cfg.tls.ca), parse_text,
	  "authorities that sign the certificates of clients" },
	{ "tls-crl", "FILE", AT(cfg.tls.crl), parse_text,
	  "revoked certificates" },
	{ "access", "FILE", AT(cfg.access), parse_text,
	  "who may look, have jobs, change the fabric" },
	{ "state-dir", "DIR", AT(cfg.state_dir), parse_text,
	  "folder of its database (" DAEMON_STATE_DIR ")" },
	{ "standby", NULL, AT(standby), parse_flag,
	  "share the state with another weftd: one leads, the\n"
	  "other takes over" },
	{ "etcd", "URLS", AT(cfg.etcd), parse_text,
	  "https://HOST:PORT,...: one of several weftd leads, by an\n"
	  "etcd that keeps their states alike" },
	{ "etcd-prefix", "KEY", AT(cfg.etcd_prefix), parse_text,
	  "with which its keys begin (" ETCD_PREFIX ")" },
	{ "domains", "NAMES", AT(cfg.domains), parse_text,
	  "leads the devices of these failure domains, and others the\n"
	  "rest of the fabric: row1,row2" },
	{ "etcd-cert", "FILE", AT(cfg.etcd_tls.cert), parse_text,
	  "own certificate for etcd, PEM" },
	{ "etcd-key", "FILE", AT(cfg.etcd_tls.key), parse_text, "its key" },
	{ "etcd-ca", "FILE", AT(cfg.etcd_tls.ca), parse_text,
	  "authorities that sign etcd's certificates" },
	{ "lease", "SECONDS", AT(cfg.lease_ms), parse_lease,
	  "how long a silent leader stays the leader (10)" },
	{ "fabric", "FILE", AT(cfg.fabric), parse_text,
	  "shown and planned until a configuration is applied" },
	{ "plan-memory", "MIB", AT(cfg.plan_memory_mib), parse_plan_memory,
	  "that planning may take, a process; 0: any (2048)" },
	{ "plan-time", "SECONDS", AT(cfg.plan_time_s), parse_plan_time,
	  "that it may take (300)" },
	{ "poll", "SECONDS", AT(cfg.poll_ms), parse_poll,
	  "between regular readings of the devices; 0: none (60)" },
	{ "log-level", "LEVELS", AT(levels), parse_levels,
	  "error, warn, info or debug (info); drivers=debug,..." },
	{ "log-format", "FORMAT", AT(json), parse_log_format,
	  "text, or json: one object a line (text)" },
	{ "user", "NAME", AT(user), parse_text,
	  "root becomes this user before anything else" },
	{ "netlink", NULL, AT(netlink), parse_flag,
	  "and keeps what network namespaces need" },
	{ "foreground", NULL, AT(foreground), parse_flag,
	  "accepted; weftd never leaves the foreground" },
	{ "version", NULL, AT(version), parse_flag, NULL },
	{ "help", NULL, AT(help), parse_flag, NULL },
};

#undef AT
#define N_OPTIONS ((int)(sizeof(option_rows) / sizeof(*option_rows)))
#define HELP_COLUMN 24

/* A help text may have several lines, which are aligned. */
static void print_help(void)
{
	printf("usage: weftd [option...]\n\n"
	       "Looks after the devices of one optical fabric; see weftd(8)."
	       "\n\n");
	for (int i = 0; i < N_OPTIONS; i++) {
		const struct option_row *o = &option_rows[i];
		const char *help = o->help ? o->help : "";
		int n = printf("  --%s%s%s", o->name, o->value ? " " : "",
			       o->value ? o->value : "");

		while (*help) {
			int len = (int)strcspn(help, "\n");

			printf("%*s%.*s", HELP_COLUMN - n, "", len, help);
			help += len;
			if (*help) {
				help++;
				putchar('\n');
				n = 0;
			}
		}
		putchar('\n');
	}
}

/* Over TCP no client is known without certificates and a list. */
static int check_remote(const struct daemon_config *cfg, struct err *err)
{
	bool tls = cfg->tls.cert || cfg->tls.key || cfg->tls.ca || cfg->tls.crl;

	if (cfg->listen_host && !(cfg->tls.cert && cfg->tls.key && cfg->tls.ca && cfg->access)) {
		return err_set(err, WEFT_EUSAGE, "--listen needs --tls-cert, "
			       "--tls-key, --tls-ca and --access");
	}
	if (tls && !cfg->listen_host) {
		return err_set(err, WEFT_EUSAGE, "--tls-... without --listen has no effect");
	}
	return 0;
}

/* How it takes turns with others. */
static int check_turns(struct options *o, struct err *err)
{
	struct daemon_config *cfg = &o->cfg;
	const struct rpc_tls_files *tls = &cfg->etcd_tls;
	char name[JOINT_NAME_MAX];
	int r;

	if (cfg->etcd && o->standby) {
		return err_set(err, WEFT_EUSAGE, "--standby and --etcd do not go together: with "
			       "--etcd each weftd has a state folder of its own");
	}
	if (!cfg->etcd && (tls->cert || tls->key || tls->ca || cfg->etcd_prefix)) {
		return err_set(err, WEFT_EUSAGE, "--etcd-... without --etcd has no effect");
	}
	if (cfg->domains && !cfg->etcd) {
		return err_set(err, WEFT_EUSAGE, "--domains needs --etcd, by which those who lead "
			       "the fabric agree");
	}
	if (cfg->domains && (r = joint_name(cfg->domains, name, err))) {
		return r;
	}
	if (cfg->etcd_prefix && !cfg->etcd_prefix[0]) {
		return err_set(err, WEFT_EUSAGE, "--etcd-prefix: a key cannot be empty");
	}
	if (cfg->lease_ms && !o->standby && !cfg->etcd) {
		return err_set(err, WEFT_EUSAGE,
			       "--lease without --standby or --etcd has no effect");
	}
	if (cfg->etcd && cfg->lease_ms && cfg->lease_ms < ETCD_LEASE_MIN_S * 1000) {
		return err_set(err, WEFT_EUSAGE, "--lease: etcd has none shorter than %d seconds",
			       ETCD_LEASE_MIN_S);
	}
	if ((o->standby || cfg->etcd) && !cfg->lease_ms) {
		cfg->lease_ms = LEASE_S * 1000;
	}
	if (!cfg->etcd_prefix) {
		cfg->etcd_prefix = ETCD_PREFIX;
	}
	return 0;
}

/* What only the options together say. WEFT_EUSAGE. */
static int check_options(struct options *o, struct err *err)
{
	struct daemon_config *cfg = &o->cfg;
	int r;

	cfg->listen_host = o->listen.host[0] ? o->listen.host : NULL;
	cfg->listen_port = o->listen.port;
	cfg->metrics_host = o->metrics.host[0] ? o->metrics.host : NULL;
	cfg->metrics_port = o->metrics.port;
	cfg->page_host = o->page.host[0] ? o->page.host : NULL;
	cfg->page_port = o->page.port;
	r = check_remote(cfg, err);
	if (r) {
		return r;
	}
	return check_turns(o, err);
}

/* row: in option_rows; negative: word is none, or lacks its value. */
static int take_option(struct options *o, int row, const char *word, struct err *err)
{
	const struct option_row *r = option_rows + (row > 0 ? row : 0);

	if (row < 0) {
		err_set(err, WEFT_EUSAGE, "%s: no such option, or its value "
					  "is missing", word);
		err_hint(err, "\"weftd --help\" lists the options");
		return err->code;
	}
	return r->parse(r->name, optarg, (char *)o + r->at, err);
}

/* The strings of o are those of argv, or its own. */
static int parse_options(int argc, char **argv, struct options *o, struct err *err)
{
	struct option table[N_OPTIONS + 1] = { { NULL, 0, NULL, 0 } };
	const char *socket = getenv("WEFT_SOCKET");
	int option, r;

	*o = (struct options){
		.cfg = { .socket = socket && *socket ? socket : DAEMON_SOCKET,
			 .socket_mode = DAEMON_SOCKET_MODE,
			 .state_dir = DAEMON_STATE_DIR,
			 .plan_memory_mib = PLAN_MEMORY_MIB, .plan_time_s = PLAN_TIME_S,
			 .poll_ms = POLL_S * 1000 },
	};
	for (int i = 0; i < N_OPTIONS; i++) {
		table[i].name = option_rows[i].name;
		table[i].has_arg = option_rows[i].value ? required_argument
							: no_argument;
		table[i].val = FIRST_OPTION + i;
	}
	log_set_level(LOG_INFO);
	opterr = 0;
	while ((option = getopt_long(argc, argv, "h", table, NULL)) != -1) {
		option = option == 'h' ? N_OPTIONS - 1 : option - FIRST_OPTION;
		r = take_option(o, option, argv[optind - 1], err);
		if (r) {
			return r;
		}
	}
	r = check_options(o, err);
	if (r == 0 && optind < argc) {
		r = err_set(err, WEFT_EUSAGE, "%s: no argument expected", argv[optind]);
	}
	return r;
}

/* ---- the process --------------------------------------------------------- */

struct weftd_process {
	struct daemon *daemon;	/* frees itself when it has stopped */
	uv_signal_t term, intr, hup;
	uv_timer_t watchdog;
	bool stopping;		/* further signals are ignored */
	bool watched;		/* the watchdog's timer runs */
};

static void close_signals(struct weftd_process *p)
{
	if (!uv_is_closing((uv_handle_t *)&p->term)) {
		uv_close((uv_handle_t *)&p->term, NULL);
		uv_close((uv_handle_t *)&p->intr, NULL);
		uv_close((uv_handle_t *)&p->hup, NULL);
	}
}

static void on_stopped(void *arg)
{
	close_signals(arg);
}

static void on_stop_signal(uv_signal_t *handle, int number)
{
	struct weftd_process *p = handle->data;

	(void)number;
	if (p->stopping) {
		return;
	}
	p->stopping = true;
	if (p->daemon) {
		notify_send("STOPPING=1");
		daemon_stop(p->daemon, on_stopped, p);
	}
}

/* The fabric's configuration comes with apply; what else there is in files is
 * read again. */
static void on_hangup(uv_signal_t *handle, int number)
{
	struct weftd_process *p = handle->data;

	(void)number;
	if (!p->stopping && p->daemon) {
		daemon_reload(p->daemon);
	}
}

static void watch(uv_loop_t *loop, uv_signal_t *handle, struct weftd_process *p,
		  uv_signal_cb cb, int number)
{
	uv_signal_init(loop, handle);
	handle->data = p;
	uv_signal_start(handle, cb, number);
	uv_unref((uv_handle_t *)handle);
}

static void log_addresses(const struct daemon_config *cfg, const struct daemon *d)
{
	log_info("weftd", "listening on %s", cfg->socket);
	if (cfg->listen_host) {
		log_info("weftd", "listening on %s port %d", cfg->listen_host, daemon_port(d));
	}
	if (cfg->metrics_host) {
		log_info("weftd", "metrics on %s port %d", cfg->metrics_host,
			 daemon_metrics_port(d));
	}
	if (cfg->page_host) {
		log_info("weftd", "page on http://%s:%d/", cfg->page_host, daemon_page_port(d));
	}
}

static void end_loop(struct weftd_process *p, uv_loop_t *loop)
{
	if (p->watched) {
		uv_close((uv_handle_t *)&p->watchdog, NULL);
	}
	close_signals(p);
	uv_run(loop, UV_RUN_DEFAULT);
	uv_loop_close(loop);
}

/* From the loop to its end; 0 also when it was stopped while standing by. The
 * service manager is told of a standby too. */
/* ---- workers ---- */

#define WORKERS 4		/* of libuv, unless UV_THREADPOOL_SIZE says another number */

static void wait_at(void *arg)
{
	uv_barrier_wait(arg);
}

static void on_nothing(uv_work_t *work)
{
	(void)work;
}

/* libuv starts its workers when they are first needed, and aborts where it cannot. They begin
 * here, after as many threads as it wants were there at once: else memory ends. */
static void start_workers(uv_loop_t *loop, uv_work_t *first)
{
	const char *set = getenv("UV_THREADPOOL_SIZE");
	int n = set ? atoi(set) : WORKERS;
	uv_thread_t thread[64];
	uv_barrier_t all;

	n = n < 1 ? 1 : n > 64 ? 64 : n;
	uv_barrier_init(&all, (unsigned)n + 1);
	for (int i = 0; i < n; i++) {
		if (uv_thread_create(&thread[i], wait_at, &all)) {
			alloc_end(0);
		}
	}
	uv_barrier_wait(&all);
	for (int i = 0; i < n; i++) {
		uv_thread_join(&thread[i]);
	}
	uv_barrier_destroy(&all);
	uv_queue_work(loop, first, on_nothing, NULL);
}

static int run(const struct options *o, struct err *err)
{
	struct weftd_process p = { .daemon = NULL };
	struct daemon_config cfg = o->cfg;
	uv_work_t first;
	uv_loop_t loop;
	int r = uv_loop_init(&loop);

	if (r) {
		return err_set(err, WEFT_EIO, "event loop: %s", uv_strerror(r));
	}
	start_workers(&loop, &first);
	p.watched = notify_watchdog_start(&loop, &p.watchdog);
	/* From here on: a signal that comes while a standby becomes the leader is not lost. */
	watch(&loop, &p.term, &p, on_stop_signal, SIGTERM);
	watch(&loop, &p.intr, &p, on_stop_signal, SIGINT);
	watch(&loop, &p.hup, &p, on_hangup, SIGHUP);
	if (((o->standby || cfg.etcd) && (r = daemon_standby(&loop, &cfg, err))) ||
	    p.stopping || (r = daemon_new(&loop, &cfg, &p.daemon, err))) {
		if (r == 0) {
			daemon_give_up(&cfg);
		}
		end_loop(&p, &loop);
		return r == WEFT_ECANCELED ? 0 : r;	/* standing by */
	}
	notify_send("READY=1");
	log_addresses(&cfg, p.daemon);
	uv_run(&loop, UV_RUN_DEFAULT);
	end_loop(&p, &loop);
	return 0;
}

static int report(const struct err *err)
{
	char text[ERR_MSG_MAX + ERR_FILE_MAX + 32];

	fprintf(stderr, "weftd: %s\n", err_str(err, text, sizeof(text)));
	if (err->hint[0]) {
		fprintf(stderr, "hint: %s\n", err->hint);
	}
	return err_exit_code(err->code);
}

/* Started again at once, it goes on from the store: weftd.service. */
#define EXIT_NO_MEMORY 75	/* EX_TEMPFAIL */

/* Where memory ends, weftd does, in libraries as well. Before they are used. */
static void set_allocators(void)
{
	alloc_on_end("weftd", EXIT_NO_MEMORY, log_sinks_last);
	uv_replace_allocator(x_malloc, x_realloc, x_new, free);
	json_set_alloc_funcs(x_malloc, free);
	rpc_set_allocators();
	store_set_allocators();
}

int daemon_main(int argc, char **argv)
{
	static char path[PATH_MAX];
	struct err err = { 0 };
	struct options o;

	set_allocators();
	model_check_devices_by(dry_run_check);
	if (argc > 1 && strcmp(argv[1], PLAN_PROCESS_MODE) == 0) {
		return plan_process_main(argc, argv);
	}
	if (parse_options(argc, argv, &o, &err)) {
		return report(&err);
	}
	if (o.help) {
		print_help();
		return 0;
	}
	if (o.version) {
		version_print("weftd");
		return 0;
	}
	log_sinks_init(o.json);
	if (inherited_socket(&o.cfg.socket_fd, path, sizeof(path), &err)) {
		return report(&err);
	}
	if (o.cfg.socket_fd) {
		o.cfg.socket = path;
	}
	if (o.user && privileges_drop(o.user, o.netlink, o.cfg.state_dir, o.cfg.socket, &err)) {
		return report(&err);
	}
	o.cfg.owner = geteuid();
	return run(&o, &err) ? report(&err) : 0;
}

int daemon_process_main(int argc, char **argv)
{
	if (file_open_standard()) {
		return EXIT_FAILURE;
	}
	inherited_close_others();
	return daemon_main(argc, argv);
}
