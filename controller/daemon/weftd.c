/* The program weftd: options, signals, the service manager. */
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "controller/daemon/private.h"
#include "lib/base/log.h"

static const char usage[] =
"usage: weftd [option...]\n"
"\n"
"Looks after the devices of one optical fabric; see weftd(8).\n"
"\n"
"  --socket PATH      where it listens (" DAEMON_SOCKET ")\n"
"  --socket-mode MODE octal mode of the socket file (0660)\n"
"  --state-dir DIR    where it remembers (" DAEMON_STATE_DIR ")\n"
"  --fabric FILE      shown and planned while nothing was ever applied\n"
"  --log-level LEVEL  error, warn, info or debug (info)\n"
"  --foreground       accepted; weftd never leaves the foreground\n"
"  --version\n"
"  --help\n";

struct options {
	struct daemon_config cfg;
	enum log_level level;
	bool help, version;
};

static int parse_level(const char *text, enum log_level *level,
		       struct err *err)
{
	static const char *const names[] = {
		[LOG_ERROR] = "error", [LOG_WARN] = "warn",
		[LOG_INFO] = "info", [LOG_DEBUG] = "debug",
	};

	for (int i = 0; i <= LOG_DEBUG; i++) {
		if (strcmp(text, names[i]) == 0) {
			*level = (enum log_level)i;
			return 0;
		}
	}
	return err_set(err, WEFT_EUSAGE,
		       "--log-level: \"%s\" is not error, warn, info or debug",
		       text);
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

static int take_option(struct options *o, int option, const char *word,
		       struct err *err)
{
	switch (option) {
	case 's':
		o->cfg.socket = optarg;
		return 0;
	case 'm':
		return parse_mode(optarg, &o->cfg.socket_mode, err);
	case 'd':
		o->cfg.state_dir = optarg;
		return 0;
	case 'f':
		o->cfg.fabric = optarg;
		return 0;
	case 'l':
		return parse_level(optarg, &o->level, err);
	case 'F':
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

static int parse_options(int argc, char **argv, struct options *o,
			 struct err *err)
{
	static const struct option table[] = {
		{ "socket", required_argument, NULL, 's' },
		{ "socket-mode", required_argument, NULL, 'm' },
		{ "state-dir", required_argument, NULL, 'd' },
		{ "fabric", required_argument, NULL, 'f' },
		{ "log-level", required_argument, NULL, 'l' },
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
			 .state_dir = DAEMON_STATE_DIR, .owner = geteuid() },
		.level = LOG_INFO,
	};
	opterr = 0;
	while (r == 0 &&
	       (option = getopt_long(argc, argv, "h", table, NULL)) != -1) {
		r = take_option(o, option, argv[optind - 1], err);
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
	bool stopping;
};

static void on_stopped(void *arg)
{
	struct program *p = arg;

	uv_close((uv_handle_t *)&p->term, NULL);
	uv_close((uv_handle_t *)&p->intr, NULL);
	uv_close((uv_handle_t *)&p->hup, NULL);
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

/* Configuration comes with apply; there is nothing to read again. */
static void on_hangup(uv_signal_t *handle, int number)
{
	(void)handle, (void)number;
	log_info("weftd", "SIGHUP: nothing to do; weft apply brings a "
			  "configuration");
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
	uv_loop_t loop;
	int r = uv_loop_init(&loop);

	if (r) {
		return err_set(err, WEFT_EIO, "event loop: %s",
			       uv_strerror(r));
	}
	r = daemon_new(&loop, &o->cfg, &p.daemon, err);
	if (r == 0) {
		watch(&loop, &p.term, &p, on_stop_signal, SIGTERM);
		watch(&loop, &p.intr, &p, on_stop_signal, SIGINT);
		watch(&loop, &p.hup, &p, on_hangup, SIGHUP);
		daemon_notify("READY=1");
		log_info("weftd", "listening on %s", o->cfg.socket);
		uv_run(&loop, UV_RUN_DEFAULT);
	}
	uv_loop_close(&loop);
	return r;
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
	log_set_level(o.level);
	return run(&o, &err) ? report(&err) : 0;
}
