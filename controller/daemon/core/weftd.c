/* The program weftd: options, signals, the service manager. */
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "controller/daemon/core/private.h"
#include "lib/base/log.h"

#define POLL_S 60
#define POLL_MAX_S 86400
#define LEASE_S 10
#define LEASE_MAX_S 3600

static const char usage[] =
"usage: weftd [option...]\n"
"\n"
"Looks after the devices of one optical fabric; see weftd(8).\n"
"\n"
"  --socket PATH      where it listens (" DAEMON_SOCKET ")\n"
"  --socket-mode MODE octal mode of the socket file (0660)\n"
"  --listen HOST:PORT also over TCP, with certificates on both sides\n"
"  --metrics HOST:PORT  Prometheus metrics, on a loopback address\n"
"  --page HOST:PORT   a page to look at, on a loopback address\n"
"  --tls-cert FILE    own certificate and its chain, PEM\n"
"  --tls-key FILE     its key\n"
"  --tls-ca FILE      authorities that vouch for clients\n"
"  --tls-crl FILE     revoked certificates\n"
"  --access FILE      who may look, have jobs, change the fabric\n"
"  --state-dir DIR    where it remembers (" DAEMON_STATE_DIR ")\n"
"  --standby          share the state with another weftd: one leads, the other\n"
"                     takes over\n"
"  --lease SECONDS    how long a leader that is silent stays one (10)\n"
"  --fabric FILE      shown and planned while nothing was ever applied\n"
"  --poll SECONDS     between readings that nobody asked for; 0: none (60)\n"
"  --log-level LEVELS error, warn, info or debug (info); drivers=debug,...\n"
"  --log-format FORMAT text, or json: one object a line (text)\n"
"  --user NAME        root becomes this user before anything else\n"
"  --netlink          and keeps what network namespaces need\n"
"  --foreground       accepted; weftd never leaves the foreground\n"
"  --version\n"
"  --help\n";

struct options {
	struct daemon_config cfg;
	bool help, version, json, standby;
	const char *user;
	bool netlink;
	char host[64];		/* of --listen */
	char metrics_host[64], page_host[64];
};

static int parse_levels(const char *text, struct err *err)
{
	struct err cause = { 0 };

	if (log_set_levels(text, &cause)) {
		err_set(err, WEFT_EUSAGE, "--log-level: %s", cause.msg);
		if (cause.hint[0]) {
			err_hint(err, "%s", cause.hint);
		}
		return err->code;
	}
	return 0;
}

static int parse_poll(const char *text, int64_t *ms, struct err *err)
{
	char *end;
	long v = strtol(text, &end, 10);

	if (*text < '0' || *text > '9' || *end || v > POLL_MAX_S) {
		return err_set(err, WEFT_EUSAGE, "--poll: \"%s\" is not a "
			       "number of seconds up to %d", text, POLL_MAX_S);
	}
	*ms = (int64_t)v * 1000;
	return 0;
}

static int parse_lease(const char *text, int64_t *ms, struct err *err)
{
	char *end;
	long v = strtol(text, &end, 10);

	if (*text < '0' || *text > '9' || *end || v < 1 || v > LEASE_MAX_S) {
		return err_set(err, WEFT_EUSAGE, "--lease: \"%s\" is not a "
			       "number of seconds from 1 to %d", text,
			       LEASE_MAX_S);
	}
	*ms = (int64_t)v * 1000;
	return 0;
}

static int parse_log_format(const char *text, bool *json, struct err *err)
{
	*json = strcmp(text, "json") == 0;
	if (!*json && strcmp(text, "text") != 0) {
		return err_set(err, WEFT_EUSAGE, "--log-format: \"%s\" is not "
			       "text or json", text);
	}
	return 0;
}

static int parse_mode(const char *text, int *mode, struct err *err)
{
	char *end;
	long v = strtol(text, &end, 8);

	if (end == text || *end || v < 0 || v > 0777) {
		return err_set(err, WEFT_EUSAGE,
			       "--socket-mode: \"%s\" is not an octal mode",
			       text);
	}
	*mode = (int)v;
	return 0;
}

/* HOST:PORT, [V6]:PORT. */
static int parse_listen(const char *option, const char *text, char host_buf[64],
			int *number, struct err *err)
{
	const char *colon = strrchr(text, ':');
	bool v6 = text[0] == '[' && colon && colon > text && colon[-1] == ']';
	const char *host = v6 ? text + 1 : text;
	size_t len = colon ? (size_t)(colon - host) - v6 : 0;
	char *end;
	long port = colon ? strtol(colon + 1, &end, 10) : -1;

	if (!colon || len == 0 || len >= 64 || !colon[1] ||
	    *end || port < 0 || port > 65535) {
		return err_set(err, WEFT_EUSAGE,
			       "%s: \"%s\" is not HOST:PORT", option, text);
	}
	memcpy(host_buf, host, len);
	host_buf[len] = '\0';
	*number = (int)port;
	return 0;
}

static int take_option(struct options *o, int option, const char *word,
		       struct err *err)
{
	switch (option) {
	case 's':
		o->cfg.socket = optarg;
		return 0;
	case 'm':
		return parse_mode(optarg, &o->cfg.socket_mode, err);
	case 'L':
		o->cfg.listen_host = o->host;
		return parse_listen("--listen", optarg, o->host,
				    &o->cfg.listen_port, err);
	case 'M':
		o->cfg.metrics_host = o->metrics_host;
		return parse_listen("--metrics", optarg, o->metrics_host,
				    &o->cfg.metrics_port, err);
	case 'P':
		o->cfg.page_host = o->page_host;
		return parse_listen("--page", optarg, o->page_host,
				    &o->cfg.page_port, err);
	case 'c':
		o->cfg.tls.cert = optarg;
		return 0;
	case 'k':
		o->cfg.tls.key = optarg;
		return 0;
	case 'a':
		o->cfg.tls.ca = optarg;
		return 0;
	case 'r':
		o->cfg.tls.crl = optarg;
		return 0;
	case 'A':
		o->cfg.access = optarg;
		return 0;
	case 'd':
		o->cfg.state_dir = optarg;
		return 0;
	case 'f':
		o->cfg.fabric = optarg;
		return 0;
	case 'B':
		o->standby = true;
		return 0;
	case 'E':
		return parse_lease(optarg, &o->cfg.lease_ms, err);
	case 'p':
		return parse_poll(optarg, &o->cfg.poll_ms, err);
	case 'l':
		return parse_levels(optarg, err);
	case 'J':
		return parse_log_format(optarg, &o->json, err);
	case 'F':
		return 0;
	case 'u':
		o->user = optarg;
		return 0;
	case 'N':
		o->netlink = true;
		return 0;
	case 'V':
		o->version = true;
		return 0;
	case 'h':
		o->help = true;
		return 0;
	default:
		err_set(err, WEFT_EUSAGE, "%s: no such option, or its value "
					  "is missing", word);
		err_hint(err, "\"weftd --help\" lists the options");
		return err->code;
	}
}

/* Over TCP nobody is known without certificates and a list. */
static int check_remote(const struct daemon_config *cfg, struct err *err)
{
	bool tls = cfg->tls.cert || cfg->tls.key || cfg->tls.ca || cfg->tls.crl;

	if (cfg->listen_host && !(cfg->tls.cert && cfg->tls.key &&
				  cfg->tls.ca && cfg->access)) {
		return err_set(err, WEFT_EUSAGE, "--listen needs --tls-cert, "
			       "--tls-key, --tls-ca and --access");
	}
	if (tls && !cfg->listen_host) {
		return err_set(err, WEFT_EUSAGE,
			       "--tls-... without --listen has no effect");
	}
	return 0;
}

static int parse_options(int argc, char **argv, struct options *o,
			 struct err *err)
{
	static const struct option table[] = {
		{ "socket", required_argument, NULL, 's' },
		{ "socket-mode", required_argument, NULL, 'm' },
		{ "listen", required_argument, NULL, 'L' },
		{ "metrics", required_argument, NULL, 'M' },
		{ "page", required_argument, NULL, 'P' },
		{ "tls-cert", required_argument, NULL, 'c' },
		{ "tls-key", required_argument, NULL, 'k' },
		{ "tls-ca", required_argument, NULL, 'a' },
		{ "tls-crl", required_argument, NULL, 'r' },
		{ "access", required_argument, NULL, 'A' },
		{ "state-dir", required_argument, NULL, 'd' },
		{ "fabric", required_argument, NULL, 'f' },
		{ "standby", no_argument, NULL, 'B' },
		{ "lease", required_argument, NULL, 'E' },
		{ "poll", required_argument, NULL, 'p' },
		{ "log-level", required_argument, NULL, 'l' },
		{ "log-format", required_argument, NULL, 'J' },
		{ "user", required_argument, NULL, 'u' },
		{ "netlink", no_argument, NULL, 'N' },
		{ "foreground", no_argument, NULL, 'F' },
		{ "version", no_argument, NULL, 'V' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	const char *socket = getenv("WEFT_SOCKET");
	int option, r = 0;

	*o = (struct options){
		.cfg = { .socket = socket && *socket ? socket : DAEMON_SOCKET,
			 .socket_mode = DAEMON_SOCKET_MODE,
			 .state_dir = DAEMON_STATE_DIR,
			 .poll_ms = POLL_S * 1000 },
	};
	log_set_level(LOG_INFO);
	opterr = 0;
	while (r == 0 &&
	       (option = getopt_long(argc, argv, "h", table, NULL)) != -1) {
		r = take_option(o, option, argv[optind - 1], err);
	}
	if (r == 0) {
		r = check_remote(&o->cfg, err);
	}
	if (r == 0 && o->cfg.lease_ms && !o->standby) {
		r = err_set(err, WEFT_EUSAGE,
			    "--lease without --standby has no effect");
	}
	if (o->standby && !o->cfg.lease_ms) {
		o->cfg.lease_ms = LEASE_S * 1000;
	}
	if (r == 0 && optind < argc) {
		r = err_set(err, WEFT_EUSAGE, "%s: no argument expected",
			    argv[optind]);
	}
	return r;
}

struct program {
	struct daemon *daemon;
	uv_signal_t term, intr, hup;
	uv_timer_t watchdog;
	bool stopping, watched;
};

static void on_stopped(void *arg)
{
	struct program *p = arg;

	uv_close((uv_handle_t *)&p->term, NULL);
	uv_close((uv_handle_t *)&p->intr, NULL);
	uv_close((uv_handle_t *)&p->hup, NULL);
	if (p->watched) {
		uv_close((uv_handle_t *)&p->watchdog, NULL);
	}
}

static void on_stop_signal(uv_signal_t *handle, int number)
{
	struct program *p = handle->data;

	(void)number;
	if (p->stopping) {
		return;
	}
	p->stopping = true;
	daemon_notify("STOPPING=1");
	daemon_stop(p->daemon, on_stopped, p);
}

/* The fabric's configuration comes with apply; what else there is in files is
 * read again. */
static void on_hangup(uv_signal_t *handle, int number)
{
	struct program *p = handle->data;

	(void)number;
	if (!p->stopping) {
		daemon_reload(p->daemon);
	}
}

static void watch(uv_loop_t *loop, uv_signal_t *handle, struct program *p,
		  uv_signal_cb cb, int number)
{
	uv_signal_init(loop, handle);
	handle->data = p;
	uv_signal_start(handle, cb, number);
}

static int run(const struct options *o, struct err *err)
{
	struct program p = { .daemon = NULL };
	struct daemon_config cfg = o->cfg;
	uv_loop_t loop;
	int r = uv_loop_init(&loop);

	if (r) {
		return err_set(err, WEFT_EIO, "event loop: %s",
			       uv_strerror(r));
	}
	if (o->standby) {
		r = standby_run(&loop, &cfg, &cfg.led, err);
	}
	r = r ? r : daemon_new(&loop, &cfg, &p.daemon, err);
	if (r == 0) {
		watch(&loop, &p.term, &p, on_stop_signal, SIGTERM);
		watch(&loop, &p.intr, &p, on_stop_signal, SIGINT);
		watch(&loop, &p.hup, &p, on_hangup, SIGHUP);
		p.watched = daemon_watchdog_start(&loop, &p.watchdog);
		daemon_notify("READY=1");
		log_info("weftd", "listening on %s", o->cfg.socket);
		if (o->cfg.listen_host) {
			log_info("weftd", "listening on %s port %d",
				 o->cfg.listen_host, daemon_port(p.daemon));
		}
		if (o->cfg.metrics_host) {
			log_info("weftd", "metrics on %s port %d",
				 o->cfg.metrics_host,
				 daemon_metrics_port(p.daemon));
		}
		if (o->cfg.page_host) {
			log_info("weftd", "page on http://%s:%d/",
				 o->cfg.page_host, daemon_page_port(p.daemon));
		}
		uv_run(&loop, UV_RUN_DEFAULT);
	}
	uv_loop_close(&loop);
	return r == WEFT_ECANCELED ? 0 : r;	/* while standing by */
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

int daemon_main(int argc, char **argv)
{
	struct err err = { 0 };
	struct options o;

	if (parse_options(argc, argv, &o, &err)) {
		return report(&err);
	}
	if (o.help || o.version) {
		fputs(o.help ? usage : "weftd " DAEMON_VERSION "\n", stdout);
		return 0;
	}
	daemon_log_init(o.json);
	if (o.user && daemon_become(&o.cfg, o.user, o.netlink, &err)) {
		return report(&err);
	}
	o.cfg.owner = geteuid();
	return run(&o, &err) ? report(&err) : 0;
}
