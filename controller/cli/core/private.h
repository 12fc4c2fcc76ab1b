/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the files of the command line: what core/ gives to the commands,
 * what the commands of fabric/ and schedules/ share with one another, and the
 * cmd_ functions that commands.c enters into the tree.
 *
 * Conventions: a function that can fail returns 0 or a negative enum weft_err
 * with err filled, which main prints at the end. Data goes to stdout through
 * cli_print() as --format asks, everything else to stderr through cli_say()
 * and cli_report(). Functions named cli_out_... write fields into an open
 * object of a writer; durations are key_ns in whole ns for programs and a
 * figure with its unit under key in tables. Keys are a contract with scripts.
 */
#ifndef WEFT_CLI_CORE_PRIVATE_H
#define WEFT_CLI_CORE_PRIVATE_H

#include <stdbool.h>
#include <stdint.h>

#include "collective/flow/flow.h"
#include "collective/make/make.h"
#include "collective/schedule/schedule.h"
#include "controller/cli/core/command_tree.h"
#include "controller/model/model.h"
#include "controller/proto_convert/proto_convert.h"
#include "controller/proto_convert/report.h"
#include "lib/base/buf.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/vec.h"
#include "lib/output/writer.h"
#include "lib/rpc/rpc.h"
#include "rwa/mesh/mesh.h"
#include "weft/v1/jobs.pb-c.h"
#include "weft/v1/weft.pb-c.h"

#define CLI_AS_IT_WAS 1		/* exit code: it failed, and nothing has changed */
#define CLI_PENDING 2		/* exit code: differences or changes pending */
#define CLI_NOT_REVERTABLE 78
/* Bytes of a schedule, from a file or from weftd; longer ones are refused. */
#define CLI_MAX_SCHEDULE ((size_t)1 << 30)

/* ---- exit.c ---- */

/* A row of the table of exit codes: number, name, meaning, what to do
 * then. */
struct cli_exit {
	int code;
	const char *name, *meaning, *advice;
};

/* The exit codes of the contract; name NULL ends the table. */
extern const struct cli_exit cli_exits[];

/* Exit code of what a command returned (see struct cli_command). */
int cli_exit_code(int rc);
/* Exit code of a finished change; rc: the error that came with it, or 0. */
int cli_exit_verdict(Weft__V1__Verdict verdict, int rc);

/* ---- print.c ---- */

/* Prints "weft: place: fact" and the hint on stderr. */
void cli_report(const struct err *err);
/* Prints all errors of a file but the last, which is left in *last for the
 * edge to print. */
void cli_report_list(struct err_list *errs, struct err *last);
/* Says something on stderr if `talk` is at least that. */
void cli_say(const struct cli *c, enum cli_talk talk, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* True when this stream shall be coloured: --color, NO_COLOR, TERM, tty. */
bool cli_colour(const struct cli *c, int fd);

/* Prints on stdout: what out holds (and frees it), or plain bytes.
 * WEFT_EIO when stdout does not take it. */
int cli_print(struct out *o, struct err *err);
/* The same unless r, of what filled o, is an error, which it returns then; o may be NULL. */
int cli_print_unless(int r, struct out *o, struct err *err);
int cli_print_bytes(const char *data, size_t len, struct err *err);
/* Writes what is for programs: to the file of -o at once or not at all ("-": standard output), or
 * with path NULL to standard output, unless that is a terminal and b more than a person would read
 * (100 lines, 16 KiB of text): WEFT_EUSAGE with a hint. Else the errors of file_write_atomic. */
int cli_write_data(const char *path, const struct buf *b, struct err *err);
/* The same of a picture; WEFT_EUSAGE for a name that ends as those of other formats do (.png). */
int cli_write_svg(const char *path, const struct buf *svg, struct err *err);
/* That name alone, before anything is computed; NULL is fine. */
int cli_check_svg(const char *path, struct err *err);

/* A gap to a bound: the fraction for programs, percent for tables. */
void cli_out_gap(const struct cli *c, struct out *o, const char *key, double gap);
/* A duration: key_ns in whole ns for programs, key in three digits for tables. */
void cli_out_ns(const struct cli *c, struct out *o, const char *key, int64_t ns);

/* ---- load.c ---- */

/* Reads a fabric and opens its testbed. cli_close_testbed() both, also after an error. */
struct testbed;
int cli_open_testbed(const char *path, struct model_fabric **f, struct testbed **t,
		     struct err *err);
void cli_close_testbed(struct model_fabric *f, struct testbed *t);
/* Reads and checks a fabric file ("-": standard input); model_free() it. On
 * failure all errors but the last are printed, and the last is in err.
 * WEFT_EINVAL, WEFT_EIO, WEFT_ENOTFOUND. */
int cli_load_fabric(const char *path, struct model_fabric **out, struct err *err);
/* The same for a text that was read already: a plan file quotes its
 * fabric. */
int cli_parse_config(const struct model_config *config, struct model_fabric **out, struct err *err);
/* The schedule of the command's only argument, or of the job of --job by way
 * of weftd; WEFT_EUSAGE unless there is exactly one of them. coll_free() it.
 * It was read, not verified. */
int cli_load_schedule(struct cli *c, struct coll_sched **out, struct err *err);
/* JSON or protobuf, which coll_from_bytes() tells apart. Errors have the file and the place. */
int cli_load_schedule_file(const char *path, struct coll_sched **out, struct err *err);
/* The schedule of a job that weftd has applied; on what remains, with a
 * message, where the job is degraded. WEFT_ENOTFOUND, WEFT_EUNAVAIL. */
int cli_load_job_schedule(struct cli *c, const char *job, struct coll_sched **out, struct err *err);
/* Writes a schedule to a file at once or not at all: as JSON when path ends
 * in .json or is "-" (standard output), else as protobuf. */
int cli_write_schedule(const struct coll_sched *s, const char *path, struct err *err);
/* A value of --to that `weft schedule export` takes, or with routes one of `weft routes make`;
 * else WEFT_EUSAGE, with a hint at what was meant. */
int cli_check_format(const char *to, bool routes, struct err *err);
/* True for the values of --to that are route tables. */
bool cli_is_route_table(const char *to);
#define CLI_MAX_LAYERS 65536
/* The routes of s, verified, in at most max_layers (0: as many as it
 * takes). */
int cli_write_routes(const struct coll_sched *s, const char *to,
		     int max_layers, struct buf *b, struct err *err);
/* A topology from a file ("-": standard input; JSON of `weft topology build
 * -o` or an edge list) or from an expression. topo_free() and free() the two.
 * *name is the expression in its normal form, or what the file says.
 * WEFT_EINVAL with a place, WEFT_ENOTFOUND. */
int cli_load_topology(const char *text, struct topo **out, char **name, struct err *err);

/* ---- best_rate.c ---- */

/* weft schedule make with --rate, but for all-to-alls whose flow is all that is asked for; the
 * command. */
bool cli_wants_best_rate(const struct cli *c);
int cli_best_rate(struct cli *c, struct err *err);

/* ---- schedule.c ---- */

/* What every command prints of a schedule: collective, topology, nodes,
 * chunks, ports, root where there is one, steps. */
void cli_out_schedule(struct out *o, const struct coll_sched *s);
/* coll_verify(), with the best bound of an all-to-all (coll_raise_bound). */
int cli_replay(const struct coll_sched *s, struct coll_report *r, struct err *err);
/* What coll_verify() measured: transfers, chunk_hops, bandwidth_factor and
 * bandwidth_bound (T_B in units of M/B, as fractions "p/q"), uneven_loss where ranks or cuts have
 * less links than others, bandwidth_optimal. */
void cli_out_replay(const struct cli *c, struct out *o, const struct coll_sched *s,
		    const struct coll_report *r);
/* --collective; *kind stays without it. */
int cli_opt_kind(const struct cli *c, enum coll_kind *kind, struct err *err);
/* Whether --forward says that ranks pass on messages, or that they do not; neither without it.
 * WEFT_EUSAGE for another word, and for "no" beside --hop. */
int cli_opt_forward(const struct cli *c, bool *yes, bool *no, struct err *err);
/* --alpha, --hop and --forward into *given, the rest of which stays. */
int cli_read_latency(const struct cli *c, struct coll_cost *given, struct err *err);
/* The cost model of --alpha, --size and one of --bandwidth (of a node, B in
 * the papers: divided by the ports of s) and --link-bandwidth; --hop and
 * --message are 0 without. WEFT_EUSAGE also for --forward no where the messages of s go through
 * ranks. size: M where it is known otherwise, and then --size is refused; else
 * 0. All fields of *cost are set. WEFT_EUSAGE when one is missing or
 * the rate of a port is below 1 bit/s. */
int cli_read_cost(const struct cli *c, const struct coll_sched *s, int64_t size,
		  struct coll_cost *cost, struct err *err);
/* Time of a schedule in the alpha-beta model: alpha, hop, message, of changing light
 * light_changes and retune, link_bps, size_bytes, time, its two parts latency_time
 * (T_L = steps x alpha, and retuning) and bandwidth_time, the lower bound, and the gap to it. rep
 * is of coll_verify(). WEFT_ELIMIT when a time does not fit. */
int cli_out_cost(const struct cli *c, struct out *o, const struct coll_sched *s,
		 const struct coll_report *rep, const struct coll_cost *cost, struct err *err);

/* ---- physical.c ---- */

/* From --on and --routing; without --on the topology *t itself, when it has switches,
 * memories or shared limits: then *t and *name become what its terminals
 * see. Else topo stays NULL. cli_free_fabric() in any case. WEFT_EUSAGE, and what the files say. */
int cli_read_fabric(const struct cli *c, struct topo **t, char **name, struct coll_fabric *p,
		    struct err *err);
void cli_free_fabric(struct coll_fabric *p);

/* ---- pareto.c ---- */

/* Prints what coll_make_pareto() finds; with q->cost also times and the sizes from which each is
 * the fastest. Its errors. */
int cli_print_pareto(struct cli *c, const struct coll_make_query *q, const char *topology,
		     struct err *err);

/* ---- all_to_all.c ---- */

/* The flow behind an all-to-all: rate, bound and what was lost from flow to
 * paths, chunks and steps. */
struct cli_flow {
	struct coll_made_pairs made;
	char *exact;	/* --exact: the rate as "p/q", owned; else NULL */
};

/* "0.1%" or a plain number; *value stays when the option is absent. */
int cli_opt_share(const struct cli *c, const char *name, double *value, struct err *err);

/* --demands, for the ranks of t; out->n stays 0 without. flow_demands_fini. A mistake has its
 * file, row and column. */
int cli_read_demands(const struct cli *c, const struct topo *t, struct flow_demands *out,
		     struct err *err);
/* What --rate and --exact ask for beside a schedule: the flow alone, and the exact rate, which
 * leaves the rest at least half of the time. flow->exact: free(). */
int cli_solve_pairs(const struct cli *c, const struct coll_algorithm *algorithm,
		    const struct topo *t, const struct coll_make_pairs *p, struct cli_flow *flow,
		    struct err *err);
/* Says on stderr when the search ended early. */
void cli_say_flow(const struct cli *c, const struct cli_flow *flow);
/* flow_rate and flow_rate_bound (F = 1/U of the papers), their gap,
 * stopped_by where the search ended early, deadline_met, then the rate that paths, chunks
 * and steps left of it. */
void cli_out_flow(const struct cli *c, struct out *o, const struct cli_flow *flow);

/* ---- rwa.c ---- */

/* Reads a network of SNDlib, known by its first line (unit: what a lightpath
 * carries, 0: any demand), a .net file or a YAML instance, by the end of the
 * name; rwa_mesh_free() it. All mistakes but the last one are printed. */
int cli_read_network(const char *path, double unit, struct rwa_mesh **out, struct err *err);
/* Reads lightpaths of m as `weft rwa solve -o` writes them into *out, as
 * rwa_mesh_read_lightpaths() does: with add, their demands are added to m; dark
 * NULL: none may be. */
int cli_read_lightpaths(struct rwa_mesh *m, const char *path, bool add, struct rwa_assignment *out,
			struct rwa_ids *ids, int64_t *dark, struct err *err);
/* key: [{to, fibre, channel}], hop by hop. */
void cli_out_hops(struct out *o, const char *key, const struct rwa_mesh *m,
		  const struct rwa_hop *hops, int32_t n);

/* ---- plan_view.c: a plan told in parts ---- */

struct plan_view {
	bool full, commands;			/* how it is shown: no list is cut; what is sent */
	VEC(Weft__V1__PlanResponse *) parts;	/* owned; the rest points into them */
	Weft__V1__PlanSummary *summary;		/* NULL: none came yet */
	Weft__V1__PlanOutages *outages;		/* NULL: not asked for */
	VEC(Weft__V1__PlanDevice *) devices;
	VEC(Weft__V1__PlanJob *) jobs;
	VEC(Weft__V1__PlanBatch *) batches;
	VEC(Weft__V1__PlanLightpath *) lightpaths;
	struct buf file, picture;
};

/* Takes a copy of one part. WEFT_EINVAL for a second summary;
 * kinds that are not known are kept and not shown. */
int plan_view_add(struct plan_view *v, const Weft__V1__PlanResponse *part, struct err *err);
/* Frees all parts; a zeroed view is fine. */
void plan_view_fini(struct plan_view *v);
/* Prints as --format and the view ask. Tables: what changes by device ('+' add,
 * '-' delete, '~' replace, '!' warning), jobs, tuning, stages, summary, then
 * lightpaths and commands where asked for. Programs get the messages.
 * WEFT_EINVAL without a summary. */
int plan_view_print(struct cli *c, const struct plan_view *v, struct err *err);

/* ---- plan_commands.c: what a plan would send ---- */

/* The batches of a plan made without weftd, with handles that connect to
 * nothing. The errors of dry_run_open and dry_run_explain, and fn's. */
int plan_commands(const struct plan *p, msg_part_fn fn, void *arg, struct err *err);
/* For people: a heading a batch, its commands indented, and what is not known
 * about them. */
void plan_commands_draw(struct buf *b, const struct plan_view *v);

/* ---- plan_circuits.c: the light that a plan makes and takes away ---- */

/* True when it is to be asked for. */
bool plan_light_wanted(const struct cli *c);
/* New lightpaths with their power, interrupted links and downtime, as tables
 * after a blank line; nothing where there is none of them. Long lists are cut
 * unless `full`. */
void plan_light_draw(struct buf *b, const struct plan_view *v, bool full);

/* Columns that tables may have: those of COLUMNS, else of the terminal; 0: any,
 * as for pipes and files, and always after cli_any_width(). print.c */
int cli_width(void);
void cli_any_width(void);
/* cli_print() and cli_print_bytes() print nothing any more: -q, where tables are asked for. */
void cli_no_tables(void);

/* Value of --mode, MODE_SAFE without one. WEFT_EUSAGE. */
int cli_read_mode(const struct cli *c, Weft__V1__Mode *mode, struct err *err);

/* ---- remote.c: talking to weftd ---- */

/* Deadlines in ms: of a unary call that weftd answers from memory, and of
 * connecting. */
#define CLI_CALL_MS 30000
#define CLI_CONNECT_MS 2000

/* Runs a call that streams Jobs, each a line on stderr, and keeps the last; *last is the caller's
 * to free, and NULL if none came. there (may be NULL): it ran before it was asked for. */
int cli_follow_job(struct cli *c, const char *method, const ProtobufCMessage *req,
		   Weft__V1__Job **last, bool *there, struct err *err);

/* Connects to weftd: by TLS to --server, else to the socket.
 * rpc_client_close() it. A TRACEPARENT of the environment is passed on.
 * WEFT_EUNAVAIL, WEFT_EDENIED with a hint, WEFT_EUSAGE. */
int cli_connect(struct cli *c, struct rpc_client **out, struct err *err);
/* One unary call on a connection of its own, of at most timeout_ms (0: no
 * limit). *out, set on success only: rpc_free_message(). */
int cli_unary(struct cli *c, const char *method, const ProtobufCMessage *request,
	      const ProtobufCMessageDescriptor *response, int timeout_ms, ProtobufCMessage **out,
	      struct err *err);
/* Writes an answer into o as c->format asks. Called once by cli_call()
 * with an empty o; the answer lives during the call only, and it must not
 * print. */
typedef void (*cli_show_fn)(const struct cli *c, struct out *o, const void *answer);
/* One unary call on a connection of its own, whose answer is printed. */
int cli_call(struct cli *c, const char *method, const ProtobufCMessage *request,
	     const ProtobufCMessageDescriptor *response, int timeout_ms, cli_show_fn show,
	     struct err *err);
/* Set by Ctrl-C and SIGTERM once cli_catch_signals() was called. Calls and
 * solvers take it as their cancel flag; who handles it may clear it. */
extern volatile bool cli_interrupted;
void cli_catch_signals(void);
/* --time-limit from now on, for planning; never without it. */
int cli_opt_deadline(const struct cli *c, struct deadline *d, struct err *err);
/* "deadline_met": true where planning was ended by it, and cannot be repeated byte for byte. */
void cli_out_deadline(struct out *o);
/* The same for verbs that only compute: the first signal asks for the best so far, a second one
 * ends the program, as does the first when there is nothing after CLI_STOP_S seconds. Files are
 * written at once or not at all. */
#define CLI_STOP_S 10
void cli_stop_on_signals(void);
/* Path of a method of weft.v1.FabricService, e.g. CLI_METHOD("Plan"). */
#define CLI_METHOD(name) "/weft.v1.FabricService/" name

/* Appends a plan file of the configuration in force, made now, in at most timeout_ms (0: no
 * limit). */
int cli_fetch_plan(struct cli *c, Weft__V1__Mode mode, int timeout_ms, struct buf *out,
		   struct err *err);
/* weftd's plan, in v, which plan_view_fini() frees, also after an error. f: the configuration to
 * plan, NULL: that in force. plan_command.c */
int cli_plan(struct cli *c, const struct model_fabric *f, Weft__V1__PlanRequest *req,
	     struct plan_view *v, struct err *err);
/* Says what the plan warns of. plan_command.c */
void cli_warn_plan(const struct cli *c, const struct plan_view *v);
/* Applies a plan file as weft apply does. change.c */
int cli_apply_plan(struct cli *c, const struct buf *file, const char *comment, struct err *err);
/* The configuration in force, as a plan of it quotes it, in at most timeout_ms (0: no limit).
 * model_free() it. */
int cli_fetch_fabric(struct cli *c, int timeout_ms, struct model_fabric **out, struct err *err);
/* Fetches the serialized schedule of a job. */
int cli_fetch_schedule(struct cli *c, const char *job, struct buf *bytes, struct err *err);

/* ---- complete.c: words that only a fabric knows ---- */

/* Candidates of cli_complete(), with names in place of "@device", "@job", "@port" and "@part": of
 * the fabric file that the words name, else of weftd. Nothing where neither tells in a second;
 * errors are not told, as the shell is about to show the line that is being written. */
void cli_complete_names(struct cli *c, const char *candidates, struct buf *b);

/* ---- progress.c: the events of a change ---- */

/* The events of one change: what is drawn, and what came out. change,
 * generation, took_ns (ns), left (circuits to be repaired) and level are of the
 * result; problems counts the events that reported one. has_result is false
 * until the verdict is there. */
struct progress {
	const struct cli *c;
	bool bar;		/* stderr is a terminal: one line, redrawn */
	bool drawn;
	bool has_result;
	Weft__V1__Verdict verdict;
	int64_t change, generation, took_ns;
	Weft__V1__Proof level;
	int problems, left;
};

/* Zeroes p and chooses bar or lines. Not freed. */
void progress_init(struct progress *p, const struct cli *c);
/* Shows one event, and keeps the result when it carries one. */
void progress_event(struct progress *p, const Weft__V1__ChangeEvent *ev);
/* Ends the line of a bar. */
void progress_end(struct progress *p);
/* On a terminal, from a command's third second on, a line on stderr says for how long it has run,
 * until anything is printed, the command ends, or it is stopped for another program's output. */
void progress_clock_start(const struct cli *c);
void progress_clock_stop(void);

/* ---- commands ---- */

/* The commands, as struct cli_command's run: 0, an exit code of their own, or
 * a negative enum weft_err. What each prints is told in its file. */
int cmd_check(struct cli *c, struct err *err);
int cmd_plan(struct cli *c, struct err *err);
int cmd_apply(struct cli *c, struct err *err);
int cmd_rollback(struct cli *c, struct err *err);
int cmd_confirm(struct cli *c, struct err *err);
int cmd_circuit_add(struct cli *c, struct err *err);
int cmd_circuit_set(struct cli *c, struct err *err);
int cmd_circuit_export(struct cli *c, struct err *err);
int cmd_circuit_import(struct cli *c, struct err *err);
int cmd_circuit_remove(struct cli *c, struct err *err);
int cmd_circuit_list(struct cli *c, struct err *err);
int cmd_circuit_find(struct cli *c, struct err *err);
int cmd_job_renew(struct cli *c, struct err *err);
int cmd_ocs_shell(struct cli *c, struct err *err);
/* Name of the user of this process, "" where it has none. circuit.c */
const char *cli_own_name(void);
int cmd_job_request(struct cli *c, struct err *err);
int cmd_job_release(struct cli *c, struct err *err);
int cmd_job_list(struct cli *c, struct err *err);
int cmd_job_light(struct cli *c, struct err *err);
int cmd_export_slurm(struct cli *c, struct err *err);
int cmd_export_topograph(struct cli *c, struct err *err);
int cmd_cancel(struct cli *c, struct err *err);
/* A change of `who` was asked to stop: shows how it is taken back, on stderr. 0, or the exit
 * code of a change that could not be. */
int cli_follow_stopped(struct cli *c, const char *who, struct err *err);
int cmd_status(struct cli *c, struct err *err);
int cmd_diff(struct cli *c, struct err *err);
int cmd_verify(struct cli *c, struct err *err);
int cmd_history(struct cli *c, struct err *err);
int cmd_audit(struct cli *c, struct err *err);
int cmd_store_export(struct cli *c, struct err *err);
int cmd_store_import(struct cli *c, struct err *err);
int cmd_store_check(struct cli *c, struct err *err);
int cmd_external_changes(struct cli *c, struct err *err);
int cmd_drain(struct cli *c, struct err *err);
int cmd_undrain(struct cli *c, struct err *err);
int cmd_freeze(struct cli *c, struct err *err);
int cmd_log(struct cli *c, struct err *err);
int cmd_unfreeze(struct cli *c, struct err *err);
int cmd_watch(struct cli *c, struct err *err);
int cmd_wait(struct cli *c, struct err *err);
int cmd_schedule_make(struct cli *c, struct err *err);
int cmd_schedule_light(struct cli *c, struct err *err);
int cmd_schedule_verify(struct cli *c, struct err *err);
int cmd_schedule_cost(struct cli *c, struct err *err);
int cmd_schedule_simulate(struct cli *c, struct err *err);
int cmd_schedule_draw(struct cli *c, struct err *err);
int cmd_schedule_run(struct cli *c, struct err *err);
int cmd_schedule_export(struct cli *c, struct err *err);
int cmd_schedule_show(struct cli *c, struct err *err);
int cmd_routes_make(struct cli *c, struct err *err);
int cmd_routes_verify(struct cli *c, struct err *err);
int cmd_topology_info(struct cli *c, struct err *err);
int cmd_topology_build(struct cli *c, struct err *err);
int cmd_topology_draw(struct cli *c, struct err *err);
int cmd_topology_find(struct cli *c, struct err *err);
int cmd_ring_plan(struct cli *c, struct err *err);
int cmd_rwa_instance(struct cli *c, struct err *err);
int cmd_rwa_solve(struct cli *c, struct err *err);
int cmd_rwa_change(struct cli *c, struct err *err);
int cmd_emulate(struct cli *c, struct err *err);
int cmd_device_drivers(struct cli *c, struct err *err);
int cmd_device_list(struct cli *c, struct err *err);
int cmd_device_show(struct cli *c, struct err *err);
int cmd_device_port(struct cli *c, struct err *err);
int cmd_device_recover(struct cli *c, struct err *err);
int cmd_import_sonic_mgmt(struct cli *c, struct err *err);
int cmd_import_netbox(struct cli *c, struct err *err);
int cmd_import_chakra(struct cli *c, struct err *err);
int cmd_bringup(struct cli *c, struct err *err);
int cmd_testbed_up(struct cli *c, struct err *err);
int cmd_testbed_down(struct cli *c, struct err *err);
int cmd_testbed_status(struct cli *c, struct err *err);
int cmd_testbed_route(struct cli *c, struct err *err);
int cmd_testbed_run(struct cli *c, struct err *err);
int cmd_testbed_ping(struct cli *c, struct err *err);
int cmd_testbed_probe(struct cli *c, struct err *err);
int cmd_testbed_step(struct cli *c, struct err *err);
int cmd_explain(struct cli *c, struct err *err);
int cmd_version(struct cli *c, struct err *err);
int cmd_complete(struct cli *c, struct err *err);

#endif
