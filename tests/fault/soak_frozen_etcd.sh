#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# For longer than frozen_etcd.sh.
FROZEN=10 exec "$(dirname "$0")/frozen_etcd.sh"
