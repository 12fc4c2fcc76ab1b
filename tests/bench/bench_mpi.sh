#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What libweft_mpi.so costs a program of two ranks on this machine: a loop that calls MPI alone and
# by the library in turn, with a table that fits no call, and with one that takes every call:
# small sums in one step, large ones in two, which add up half as much. On a machine that is not idle,
# what takes longer than a time slice is interrupted, and then counts for more.
set -u
cd "$(dirname "$0")/../.." || exit 1
JSON=/dev/null
[[ ${1:-} == --json ]] && JSON=$2
B=$(realpath "${B:-build/release}")
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_orte_tmpdir_base=$T
unset LD_PRELOAD WEFT_MPI_TABLE WEFT_MPI_SCHEDULES WEFT_MPI_REPORT WEFT_MPI_STRICT

mpicc -O2 -o "$T/loop" tests/bench/mpi_loop.c || exit 1
printf 'schedules:\n' >"$T/all.yaml"
# make NAME KIND SIZES [OPTION...]
make_schedule() {
	local name=$1 kind=$2 sizes=$3
	shift 3
	"$B/weft" schedule make -t 'K(2)' -c "$kind" "$@" -o "$T/$name.json" >/dev/null || exit 1
	printf '  - { file: %s.json%s }\n' "$name" "$sizes" >>"$T/all.yaml"
}
make_schedule small allreduce ', max-bytes: 4KiB' -a one-shot
make_schedule large allreduce '' -a bfb
for kind in allgather reduce-scatter all-to-all broadcast; do
	make_schedule "$kind" "$kind" ''
done
sed '/small/d; s/ }/, max-bytes: 1B }/' "$T/all.yaml" >"$T/none.yaml"

# loop OUT [NAME=VALUE...]
loop() {
	local out=$1
	shift
	timeout 120 mpirun -np 2 --oversubscribe --mca btl self,vader env "$@" "$T/loop" \
		>"$out" </dev/null
}
loop "$T/handed" LD_PRELOAD="$B/libweft_mpi.so" WEFT_MPI_TABLE="$T/none.yaml" &&
	loop "$T/taken" LD_PRELOAD="$B/libweft_mpi.so" WEFT_MPI_TABLE="$T/all.yaml" \
		WEFT_MPI_REPORT="$T/report" || exit 1
grep -q '^weft: allreduce: [1-9][0-9]* taken, 0 handed' "$T/report" || exit 1

echo "us a call, two ranks         MPI alone   left to MPI     by weft  by weft / MPI"
paste -d ' ' "$T/handed" "$T/taken" | awk -v json="$JSON" '{
	printf "%-16s %9d B %11.2f %13.2f %11.2f %14.2f\n", $1, $2, $7 / 1e3, $4 / 1e3, $8 / 1e3,
		$8 / $7
	printf "{\"bench\": \"mpi\", \"collective\": \"%s\", \"bytes\": %d, ", $1, $2 >>json
	printf "\"mpi_ns\": %d, \"handed_ns\": %d, \"taken_ns\": %d}\n", $7, $4, $8 >>json
}'
