/* Deadlines of all-to-all; see deadline.h. */
#include "collective/flow/deadline.h"

#include <math.h>

#include "lib/base/clock.h"

#define LEAST_S 1e-9
#define MOST_S 1e9

struct flow_limit flow_limit_of(const struct mcf_options *opt, double share)
{
	struct flow_limit limit = {
		.cancel = opt->cancel, .is_over = opt->is_over,
		.arg = opt->arg,
	};

	if (opt->time_limit_s > 0) {
		limit.deadline_ns = clk_now_ns() +
			(int64_t)(fmin(opt->time_limit_s, MOST_S) * share *
				  1e9);
	}
	return limit;
}

bool flow_limit_is_set(const struct flow_limit *limit)
{
	return limit->deadline_ns || limit->cancel || limit->is_over;
}

enum mcf_stop flow_limit_stop(const struct flow_limit *limit)
{
	if (limit->cancel && *limit->cancel) {
		return MCF_CANCELED;
	}
	if ((limit->is_over && limit->is_over(limit->arg)) ||
	    (limit->deadline_ns && clk_now_ns() >= limit->deadline_ns)) {
		return MCF_TIME;
	}
	return MCF_REACHED;
}

bool flow_limit_over(const struct flow_limit *limit)
{
	return flow_limit_stop(limit) != MCF_REACHED;
}

double flow_limit_left_s(const struct flow_limit *limit)
{
	return limit->deadline_ns
		? fmax(LEAST_S, (double)(limit->deadline_ns - clk_now_ns()) /
				1e9) : 0;
}
