/* SPDX-License-Identifier: Apache-2.0 */
/* What YAML and sections share about nodes. */
#ifndef WEFT_LIB_CONF_PRIVATE_H
#define WEFT_LIB_CONF_PRIVATE_H

#include "lib/conf/conf.h"

/* No value at all: "key:", "~" or "null". */
bool conf_node_is_empty(const struct conf_node *n);

/* "a list", for messages. */
const char *conf_node_what(const struct conf_node *n);

#endif
