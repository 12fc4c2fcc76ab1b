#!/bin/bash
# Exact rates of all-to-all as fractions, from the command line.
source "$(dirname "$0")/../lib.sh"
BIN=$BUILD/asan
PATH=$BIN:$PATH

exact() { # TOPOLOGY RATE
	local got
	got=$(weft schedule make -t "$1" -c all-to-all --exact --gap 1% \
		--loss 50% --format json 2>"$T/err" |
		jq -r .flow_rate_exact)
	[[ $got == "$2" ]]
	tap "$1: F = $2, found $got"
}
exact 'K(4,4)' 2/5
exact 'Hypercube(4)' 1/8
exact 'Torus(5,5)' 1/15
exact 'GenKautz(4,16)' 7/53
exact 'GenKautz(4,36)' 8/187
finish
