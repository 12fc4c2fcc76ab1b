#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# checklist 15: a divided fabric, with one of four weftd killed at moments all over its changes.
ROUNDS=${ROUNDS:-150} exec "$(dirname "$0")/divided.sh"
