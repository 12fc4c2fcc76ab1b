/* SPDX-License-Identifier: Apache-2.0 */
/* Fabric files of a scenario, and where its devices are: what cluster.c starts by. */
#ifndef WEFT_TESTS_SIM_FABRICS_H
#define WEFT_TESTS_SIM_FABRICS_H

#include <stdbool.h>
#include <stddef.h>

/* Writes all variants into the run's folder and keeps their texts. Of cluster_scenario(). */
void fabrics_write(void);

const char *fabrics_device_name(int device);
int fabrics_port(int device);
/* "12x12" */
void fabrics_size(int device, char *buf, size_t size);
bool fabrics_is_robot(const char *dialect);

#endif
