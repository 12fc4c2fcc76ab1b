/* SPDX-License-Identifier: Apache-2.0 */
/* The rule "two truths" over the keys of the model of etcd, see etcd_model.h. */
#ifndef WEFT_TESTS_SIM_ETCD_RULE_H
#define WEFT_TESTS_SIM_ETCD_RULE_H

/* Judges all changes from now on. */
void etcd_rule_begin(void);

#endif
