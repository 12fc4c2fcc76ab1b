/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "lib/base/version.h"

/* From the Makefile. */
const char build_version[] = VERSION;
const char build_features[] = FEATURES;
const char build_without[] = WITHOUT;

void version_print(const char *program)
{
	printf("%s %s%s%s\n", program, build_version, build_without[0] ? " without " : "",
	       build_without);
}
