/* SPDX-License-Identifier: Apache-2.0 */
/* Without routes and wavelengths on meshes: no light for jobs over trunks. */
#include "controller/plan/private.h"

int plan_trunk_light(struct plan_ctx *ctx, struct err *err)
{
	return ctx->trunk_jobs.n ? build_lacks("circuits over trunks", err) : 0;
}
