#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Programs of MSCCL by protocol, in instances, and several by the size of calls.
source "$(dirname "$0")/../lib.sh"

weft schedule make -t 'Ring(8)' -c allreduce -a bfb -o "$T/s.pb" >"$T/out" 2>"$T/err"

attribute() { # FILE NAME: of its first line
	sed -n "1s/.* $2=\"\([^\"]*\)\".*/\1/p" "$1"
}

is() { # NAME WANT HAVE
	[[ $2 == "$3" ]]
	tap "$1: $2" || echo "# not $3"
}

expect 0 "one file" weft schedule export "$T/s.pb" --to msccl-xml -o "$T/one.xml"
has err "says what it is" \
	'^weft: Simple, for calls of any size in multiples of 16 elements: 1 instance, 2 channels, 4'
is "serves all sizes" 0 "$(attribute "$T/one.xml" maxBytes)"
expect 0 "another protocol" weft schedule export "$T/s.pb" --to msccl-xml \
	--protocol ll128 --instances 3 -o "$T/one.xml"
is "protocol" LL128 "$(attribute "$T/one.xml" proto)"
is "a chunk is in three" 48 "$(attribute "$T/one.xml" nchunksperloop)"
is "on three channels" 3 "$(attribute "$T/one.xml" nchannels)"
expect 0 "as many as AMD's own ring file" weft schedule export "$T/s.pb" --to rccl-xml \
	--instances 24 -o "$T/one.xml"
is "on as many channels" 24 "$(attribute "$T/one.xml" nchannels)"
is "for all sizes" 0 "$(attribute "$T/one.xml" maxBytes)"
expect 0 "at most so many threadblocks" weft schedule export "$T/s.pb" --to rccl-xml \
	--threadblocks 2 -o "$T/one.xml"
is "two" 16 "$(grep -c '<tb ' "$T/one.xml")"
expect 65 "fewer than it needs" weft schedule export "$T/s.pb" --to msccl-xml --threadblocks 1

expect 0 "a folder" weft schedule export "$T/s.pb" --to msccl-xml -o "$T/by-size/" --format json
is "files" "allreduce-0-ll.xml allreduce-1-simple.xml" "$(cd "$T/by-size" && echo *)"
small=$T/by-size/allreduce-0-ll.xml large=$T/by-size/allreduce-1-simple.xml
is "from" 0 "$(attribute "$small" minBytes)"
is "without a gap" "$(($(attribute "$small" maxBytes) + 1))" "$(attribute "$large" minBytes)"
is "without an end" 0 "$(attribute "$large" maxBytes)"
is "what is printed" "LL $(attribute "$small" maxBytes) 1" \
	"$(jq -r '.programs[0] | "\(.protocol) \(.max_bytes) \(.instances)"' "$T/out")"
is "and why" "4 channels at a time for links of 400 Gbit/s, at 160 each" \
	"$(jq -r '.programs[1].why' "$T/out")"
expect 65 "other files there" weft schedule export "$T/s.pb" --to msccl-xml \
	--protocol ll,ll128,simple -o "$T/by-size"
has err "names one" 'allreduce-1-simple.xml: from an earlier export; it would serve the same calls'
rm -r "$T/by-size"
expect 0 "three protocols" weft schedule export "$T/s.pb" --to rccl-xml \
	--protocol ll,ll128,simple --link-bandwidth 100Gbps -o "$T/by-size/"
is "files" "allreduce-0-ll.xml allreduce-1-ll128.xml allreduce-2-simple.xml" \
	"$(cd "$T/by-size" && echo *)"
is "one channel of two lanes is enough" 2 \
	"$(attribute "$T/by-size/allreduce-2-simple.xml" nchannels)"

# Exchanges of sums have LL for what is short, too: its threshold is where Simple is faster.
expect 0 "recursive doubling" weft schedule make -t 'Torus(4,4)' -c allreduce \
	-a recursive-doubling -o "$T/exchange.pb"
expect 0 "a folder of it" weft schedule export "$T/exchange.pb" --to rccl-xml \
	--link-bandwidth 400Gbps -o "$T/exchange/"
is "files" "allreduce-0-ll.xml allreduce-1-simple.xml" "$(cd "$T/exchange" && echo *)"
is "LL ends where Simple begins" "$(attribute "$T/exchange/allreduce-1-simple.xml" minBytes)" \
	"$(($(attribute "$T/exchange/allreduce-0-ll.xml" maxBytes) + 1))"

expect 64 "one file of several protocols" weft schedule export "$T/s.pb" --to msccl-xml \
	--protocol ll,simple -o "$T/one.xml"
expect 64 "no protocol" weft schedule export "$T/s.pb" --to msccl-xml --protocol fast
has err "says which there are" 'expected simple, ll or ll128'
expect 64 "no instances" weft schedule export "$T/s.pb" --to msccl-xml --instances 0
expect 64 "not of JSON" weft schedule export "$T/s.pb" --to json --instances 2
has err "says of what" '[-][-]instances is for --to msccl-xml and rccl-xml'
finish
