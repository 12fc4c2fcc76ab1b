/* weft schedule make --collective all-to-all. */
#include <stdlib.h>
#include <string.h>

#include "controller/cli/private.h"

/* "0.001" or "0.1%". */
static int read_share(const struct cli *c, const char *name, double *value,
		      struct err *err)
{
	const char *text = cli_opt(c, name);
	char *end;
	double v;

	if (!text) {
		return 0;
	}
	v = strtod(text, &end);
	if (end != text && strcmp(end, "%") == 0) {
		v /= 100;
		end++;
	}
	if (end == text || *end || !(v >= 0 && v < 1)) {
		return err_set(err, WEFT_EUSAGE, "--%s %s: expected a share "
			       "such as 0.001 or 0.1%%, below 1", name, text);
	}
	*value = v;
	return 0;
}

int cli_make_all_to_all(const struct cli *c, const char *algorithm,
			struct topo *t, struct coll_sched **out,
			struct mcf_sched_info *info, struct err *err)
{
	struct mcf_sched_options opt = {
		.flow = { .gap = MCF_DEFAULT_GAP, .cancel = &cli_interrupted },
		.loss = MCF_SCHED_LOSS,
		.max_chunks = strcmp(algorithm, "single-path") == 0 ? 1 : 0,
	};
	int64_t limit_ns = 0;
	int r;

	if ((r = read_share(c, "gap", &opt.flow.gap, err)) ||
	    (r = read_share(c, "loss", &opt.loss, err)) ||
	    (r = cli_opt_unit(c, "time-limit", UNIT_NS, &limit_ns, err))) {
		topo_free(t);
		return r;
	}
	opt.flow.time_limit_s = (double)limit_ns / 1e9;
	cli_catch_signals();
	r = mcf_schedule(t, &opt, out, info, err);
	topo_free(t);
	if (r == 0 && info->flow.stop != MCF_REACHED) {
		cli_say(c, CLI_NORMAL, "%s: the best flow so far is within "
			"%.3g %% of the best possible",
			info->flow.stop == MCF_TIME ? "time limit" :
			info->flow.stop == MCF_CANCELED ? "interrupted" :
			"no more passes", info->flow.gap * 100);
	}
	return r;
}

void cli_out_flow(const struct cli *c, struct out *o,
		  const struct mcf_sched_info *info)
{
	double best = info->flow.congestion;

	out_real(o, "flow_rate", 1 / best);
	out_real(o, "flow_rate_bound", 1 / info->flow.bound);
	cli_out_gap(c, o, "flow_gap", info->flow.gap);
	out_int(o, "paths", info->paths);
	cli_out_gap(c, o, "loss_to_chunks", 1 - best / info->chunked);
	cli_out_gap(c, o, "loss_to_steps",
		    1 - info->chunked / info->stepped);
}
