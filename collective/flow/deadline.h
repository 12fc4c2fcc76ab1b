/* When the phases of an all-to-all end early: at a deadline, on a signal, or
 * when the caller says so. */
#ifndef WEFT_COLLECTIVE_FLOW_DEADLINE_H
#define WEFT_COLLECTIVE_FLOW_DEADLINE_H

#include "collective/flow/mcf.h"

/* The zero limit never ends anything. */
struct flow_limit {
	int64_t deadline_ns;	/* of clk_now_ns, 0: none */
	const volatile bool *cancel;	/* NULL, or stop when true */
	bool (*is_over)(void *arg);	/* NULL, or asked from one thread */
	void *arg;
};

/* The limit of the options, whose time begins now; `share` of it. */
struct flow_limit flow_limit_of(const struct mcf_options *opt, double share);
/* Whether it may ever end anything. */
bool flow_limit_is_set(const struct flow_limit *limit);
/* MCF_REACHED: go on. */
enum mcf_stop flow_limit_stop(const struct flow_limit *limit);
bool flow_limit_over(const struct flow_limit *limit);
/* For options that take seconds: what is left, positive; 0 when there is no
 * deadline. */
double flow_limit_left_s(const struct flow_limit *limit);

#endif
