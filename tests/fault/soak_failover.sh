#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Two weftd and an etcd of three members, 200 rounds of what failover_etcd.sh tries once each.
ROUNDS=200 LEASE=2 SEED=${SEED:-$$} exec "$(dirname "$0")/failover_etcd.sh"
