#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Collectives on random rings, whole and cut open, with and without loss, replayed by a program
# that knows the file's format only. ring_sweep.py takes any other range.
source "$(dirname "$0")/../lib.sh"
expect 0 "plans are what they say" python3 "$(dirname "$0")/ring_sweep.py" 0 300
has out "all that light reaches" '^(29[0-9]|300) replayed'
finish
