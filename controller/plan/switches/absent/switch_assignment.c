/* SPDX-License-Identifier: Apache-2.0 */
/* Without linear programs: arcs that giving one switch after the other its own may not spread over
 * three and more switches at best are refused. */
#include "controller/plan/private.h"

int plan_assignment_exact(const struct plan_assignment *s, bool given, int *give, int *most,
			  struct err *err)
{
	return build_lacks("arcs over three and more switches, so that as many circuits stay as "
			   "can be", err);
}

bool plan_assignment_direct(const struct plan_assignment *s, int *give)
{
	return false;
}
