#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# libweft_mpi.so: a program of MPI that knows nothing of it runs its collectives by schedules of a
# table. No element is wrong, what is taken is what the table is for, and whatever is wrong with a
# table, the program runs as without it.
cd "$(dirname "$0")" || exit 1
. ../lib.sh
cd "$T" || exit 1
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export PMIX_MCA_gds=hash OMPI_MCA_orte_tmpdir_base=$T OMPI_MCA_btl_tcp_if_include=lo OMPI_MCA_oob_tcp_if_include=lo
unset LD_PRELOAD WEFT_MPI_TABLE WEFT_MPI_SCHEDULES WEFT_MPI_REPORT WEFT_MPI_STRICT
LIB=$BIN/libweft_mpi.so
# With sanitizers, these come first, and what MPI does not free is not ours.
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0
SANITIZER=$(ldd "$LIB" | awk '/libasan/ { print $3 }')
COST="--alpha 500ns --hop 400ns --link-bandwidth 400Gbps"
KINDS="allreduce allgather reduce-scatter all-to-all broadcast"

expect 0 "an MPI program is built" \
	mpicc -O1 -Wall -o program "$TOP/tests/integration/mpi_program.c" -lpthread

# mpi RANKS COMMAND...: on this machine, ended after a while.
mpi() {
	timeout 100 mpirun --oversubscribe --mca pml ob1 --mca btl "${BTL:-self,vader,tcp}" -np "$@"
}

# weft_mpi RANKS [NAME=VALUE...] COMMAND...: with the library; its report is in `report`.
weft_mpi() {
	local ranks=$1
	shift
	rm -f report
	mpi "$ranks" env LD_PRELOAD="$SANITIZER $LIB $NAP" WEFT_MPI_REPORT="$T/report" "$@"
}

# make_schedules TOPOLOGY NAME: one of each collective.
make_schedules() {
	local kind
	for kind in $KINDS; do
		weft schedule make -t "$1" -c "$kind" -o "$2-$kind.json" >/dev/null || return 1
	done
}

# list NAME: the short form of a table with all of them.
list() {
	local kind all=
	for kind in $KINDS; do
		all+=:$1-$kind.json
	done
	echo "${all:1}"
}

# right WHAT: the program in $T/out found no wrong element, and the report has all its calls,
# those that fit as taken.
right() {
	local bad=0 kind calls fits
	grep -qx 'wrong 0' "$T/out" || bad=1
	while read -r _ kind calls _ fits; do
		awk -v kind="weft: $kind" -v calls="$calls" -v fits="$fits" -F: '
			$1 ":" $2 == kind { split($3, n, " "); ok = n[1] == fits && n[1] + n[3] == calls }
			END { exit !ok }' report || { echo "# $kind: $calls calls, $fits fit" && bad=1; }
	done < <(grep '^calls' "$T/out")
	((bad)) && sed 's/^/# /' "$T/out" "$T/err" report
	tap "$1" $bad
}

# taken KIND N HANDED WHAT: so many calls were taken, and the rest was handed on.
taken() {
	grep -qE "^weft: $1: $2 taken, $3" report || { sed 's/^/# /' report && false; }
	tap "$4"
}

# ---- without it, and what it is ---------------------------------------------

expect 0 "the program runs without the library" mpi 2 ./program check 4096 2
has out "and finds nothing wrong" '^wrong 0$'
nm -D --defined-only "$LIB" | awk '$3 !~ /^(MPI_[A-Z][a-z_]*|mpi_[a-z_]*_|ompi_[a-z_]*_f)$/' >others
[[ ! -s others ]]
tap "the library shows names of MPI only"
ldd "$LIB" | grep -E 'lpsolve|nghttp2|sqlite|systemd|libuv|microhttpd|nauty|libssl' && false
[[ $? == 1 ]]
tap "and needs little"

# ---- all collectives, 2 to 8 ranks ------------------------------------------

while read -r ranks topology max more; do
	make_schedules "$topology" "s$ranks" || tap "schedules on $topology" 1
	expect 0 "$ranks ranks, $topology, up to $max bytes" \
		weft_mpi "$ranks" WEFT_MPI_SCHEDULES="$(list "s$ranks")" ./program check "$max" "${more:-2}"
	right "nothing is wrong, all that fits is taken"
done <<-END
	2 K(2) 4194304
	3 UniRing(1,3) 65536
	4 Ring(4) 262144 200
	5 C(5,{1,2}) 65536
	6 GenKautz(2,6) 65536
	7 GenKautz(3,7) 4096
	8 Hypercube(3) 65536
END
cp "$TOP/tests/fuzz/corpus/schedule_json/chains.json" s5-allreduce.json
expect 0 "sums are forwarded along a ring" \
	weft_mpi 5 WEFT_MPI_SCHEDULES="$(list s5)" ./program check 65536 2
right "nothing is wrong"
# Swing and its relatives, an all-reduce by another one for each band of sizes, embedded where
# partners are no neighbours.
while read -r ranks topology levels; do
	at="t$ranks"
	printf 'schedules:\n' >"$at.yaml"
	from=0
	for how in "swing" "swing-latency" "mixed-radix --levels $levels --rounds 0" \
		"mixed-radix --levels $levels" "recursive-doubling" "rabenseifner" \
		"auto $COST --size 64B" "auto $COST --size 4KiB" "auto $COST --size 1MiB"; do
		# shellcheck disable=SC2086
		weft schedule make -t "$topology" -c allreduce -a $how -o "$at-$from.json" >/dev/null
		tap "$ranks ranks on $topology: $how"
		to=$((from * 3 + 9))
		echo "  - { file: $at-$from.json, min-bytes: ${from}B, max-bytes: ${to}B }" >>"$at.yaml"
		from=$((to + 1))
	done
	for kind in reduce-scatter allgather broadcast all-to-all; do
		how=swing
		[[ $kind == all-to-all ]] && how=auto
		weft schedule make -t "$topology" -c $kind -a $how -o "$at-$kind.json" >/dev/null
		echo "  - { file: $at-$kind.json }" >>"$at.yaml"
	done
	expect 0 "run" weft_mpi "$ranks" WEFT_MPI_TABLE="$at.yaml" ./program check 65536 2
	right "nothing is wrong, all that fits is taken"
done <<-END
	4 Torus(4) 4c
	6 Torus(6) 6c
	7 Torus(7) 7c
	8 Torus(4,2) 4c,2
END
BTL=self,tcp expect 0 "over sockets" \
	weft_mpi 4 WEFT_MPI_SCHEDULES="$(list s4)" ./program check 65536 2
right "nothing is wrong"

expect 0 "two communicators in two threads" \
	weft_mpi 3 WEFT_MPI_SCHEDULES="$(list s3)" ./program threads
right "nothing is wrong"

# Fortran calls other functions.
cp "$TOP/tests/integration/mpi_fortran.f90" mpi.f90
sed 's/use mpi$/use mpi_f08/' mpi.f90 >mpi_f08.f90
for module in mpi mpi_f08; do
	expect 0 "Fortran, with the module $module" mpif90 -o "f_$module" "$module.f90"
	expect 0 "runs" weft_mpi 4 WEFT_MPI_SCHEDULES="$(list s4)" "./f_$module"
	has out "nothing is wrong" '^wrong 0$'
	for kind in allreduce reduce-scatter allgather all-to-all broadcast; do
		n=8
		[[ $kind == broadcast ]] && n=4
		taken "$kind" $n "0 handed" "$kind was taken"
	done
done

# The same sums in the same order, in every run, on every rank.
for i in 1 2; do
	weft_mpi 4 WEFT_MPI_SCHEDULES="$(list s4)" ./program floats >"floats$i" 2>"$T/err"
done
[[ -s floats1 ]] && cmp floats1 floats2 &&
	[[ $(grep -c '^rank' floats1) == 4 && $(grep '^rank' floats1 | cut -d: -f2 | sort -u | wc -l) == 1 ]]
tap "sums of floats have the same bits in every run, on every rank"

# ---- errors of the program ---------------------------------------------------

mpi 2 ./program errors >plain 2>"$T/err"
expect 0 "a program with wrong calls runs" \
	weft_mpi 2 WEFT_MPI_SCHEDULES="$(list s2)" ./program errors
[[ $(grep -c class plain) == 12 ]] && diff <(grep class plain) <(grep class "$T/out")
tap "and is told what MPI tells it"
taken allreduce 2 "10 handed to MPI .10 wrong arguments" "wrong arguments are left to MPI"

# ---- tables -----------------------------------------------------------------

mkdir tables
cat >tables/sizes.yaml <<-END
	schedules:
	  - { file: ../s2-allreduce.json, max-bytes: 1KiB }
	  - { file: ../s2-allreduce.json, min-bytes: 4KiB, max-bytes: 4KiB, ranks: 2, collective: allreduce }
	  - { file: ../s2-broadcast.json, min-bytes: 4097B, root: 0 }
	  - { file: ../s8-allreduce.json }
	  - { file: ../absent.json, ranks: 3 }
END
for kind in $KINDS; do
	expect 0 "a table by size: $kind" \
		weft_mpi 2 WEFT_MPI_TABLE=tables/sizes.yaml ./program one "$kind"
	case $kind in
	allreduce) taken "$kind" 2 "0 handed" "4 KiB are taken" ;;
	broadcast) taken "$kind" 0 ".*2 no schedule for so many bytes" "4 KiB are too few" ;;
	*) taken "$kind" 0 ".*2 no schedule of it for so many ranks" "it has none" ;;
	esac
done

# Rank 0's table counts, whatever the others have.
cat >tables/other.yaml <<-END
	schedules:
	  - { file: ../s2-allgather.json }
END
differing() {
	rm -f report
	timeout 60 mpirun --oversubscribe --mca pml ob1 --mca btl self,vader,tcp \
		-np 1 env LD_PRELOAD="$SANITIZER $LIB $NAP" WEFT_MPI_REPORT="$T/report" WEFT_MPI_TABLE="$1" ./program one "$3" : \
		-np 1 env LD_PRELOAD="$SANITIZER $LIB $NAP" ${2:+WEFT_MPI_TABLE="$2"} ./program one "$3"
}
expect 0 "tables that differ" differing tables/sizes.yaml tables/other.yaml allreduce
right "rank 0's counts"
expect 0 "and the other way round" differing tables/other.yaml tables/sizes.yaml allgather
right "rank 0's counts"
expect 0 "no table elsewhere" differing tables/other.yaml "" allgather
right "rank 0's counts"

expect 0 "ranks of two MPI_COMM_WORLD" weft_mpi 2 WEFT_MPI_SCHEDULES="$(list s2)" ./program spawn
has out "nothing is wrong" '^wrong 0$'
taken allreduce 2 ".*2 ranks of several MPI_COMM_WORLD" "what they have in common is left to MPI"

# ---- tables with mistakes -----------------------------------------------------

# broken WHAT PATTERN SETTING: one line says so, the program runs, and strictly it ends.
broken() {
	expect 0 "$1: the program runs" weft_mpi 2 "$3" ./program one allreduce
	has err "and it is said" "$2"
	[[ $(grep -c '^weft:' "$T/err") == 1 ]]
	tap "once"
	grep -qx 'wrong 0' "$T/out"
	tap "nothing is wrong"
	taken allreduce 0 "2 handed" "all is left to MPI"
	! weft_mpi 2 WEFT_MPI_STRICT=1 "$3" ./program one allreduce >"$T/out" 2>"$T/err"
	tap "strictly it ends"
	has err "and says why" "$2"
}

printf 'schedules:\n  - { file: s2-allreduce.json, size: 4 }\n' >tables/key.yaml
broken "an unknown key" "^weft: tables/key.yaml:2:32: .*size.*; all calls are left to MPI" \
	WEFT_MPI_TABLE=tables/key.yaml
printf 'schedules:\n  - { file: ../s2-allreduce.json }\n  - { file: ../none.json }\n  - { file: ../s2-allreduce.json, ranks: 2, collective: allgather }\n' >tables/files.yaml
broken "files that are not there, or something else" \
	"^weft: tables/files.yaml:3:5: tables/../none.json: .*and 1 more" WEFT_MPI_TABLE=tables/files.yaml
jq '.transfers |= .[1:]' s2-allreduce.json >wrong.json
broken "a schedule that is wrong" "^weft: WEFT_MPI_SCHEDULES:1:1: wrong.json: " \
	WEFT_MPI_SCHEDULES=wrong.json
broken "no table" "^weft: absent.yaml: No such file" WEFT_MPI_TABLE=absent.yaml
python3 "$TOP/tests/golden/docs.py" example "$TOP/docs/mpi.md" schedules: >tables/docs.yaml
broken "the example in docs/mpi.md, whose files are not there" \
	"^weft: tables/docs.yaml:2:5: tables/small.json: .*and 1 more" WEFT_MPI_TABLE=tables/docs.yaml
expect 0 "both settings: the program runs" \
	weft_mpi 2 WEFT_MPI_TABLE=tables/other.yaml WEFT_MPI_SCHEDULES=s2-allreduce.json \
	./program one allreduce
has err "and it is said" "both set"

# ---- a file for each rank ------------------------------------------------------

# parts NAME SCHEDULE
parts() {
	local r
	for r in 0 1 2 3; do
		weft schedule export "$2" --to json --rank $r -o "$1-$r.json" >/dev/null || return 1
	done
}
parts sum s4-allreduce.json && parts gather s4-allgather.json
cat >parts.yaml <<-END
	schedules:
	  - { file: sum-%r.json, collective: allreduce, ranks: 4 }
	  - { file: gather-%r.json }
END
expect 0 "parts of schedules" weft_mpi 4 WEFT_MPI_TABLE=parts.yaml ./program floats
right "nothing is wrong, all that fits is taken"
expect 0 "all-gather by parts" weft_mpi 4 WEFT_MPI_TABLE=parts.yaml ./program one allgather
right "nothing is wrong, all that fits is taken"
for kind in reduce-scatter all-to-all broadcast; do
	parts "$kind" "s4-$kind.json"
	expect 0 "$kind by parts" weft_mpi 4 WEFT_MPI_SCHEDULES="$kind-%r.json" ./program one "$kind"
	right "nothing is wrong, all that fits is taken"
done

# refused WHAT PATTERN: rank 0 found nothing wrong; where it shows, all ranks leave it to MPI.
refused() {
	expect 0 "$1: the program runs" weft_mpi 4 WEFT_MPI_TABLE=parts.yaml ./program one allreduce
	has err "and it is said" "$2"
	[[ $(grep -c '^weft:' "$T/err") == 1 ]]
	tap "once"
	grep -qx 'wrong 0' "$T/out"
	tap "nothing is wrong"
	taken allreduce 0 "4 handed to MPI .4 schedule could not be used" "all is left to MPI"
	! weft_mpi 4 WEFT_MPI_STRICT=1 WEFT_MPI_TABLE=parts.yaml ./program one allreduce >"$T/out" 2>"$T/err"
	tap "strictly it ends"
}
mv sum-2.json kept
refused "a part that is missing" "^weft: .*sum-2.json: No such file.*; allreduce on 4 ranks is left to MPI"
expect 0 "on many communicators" weft_mpi 4 WEFT_MPI_TABLE=parts.yaml ./program check 64 20
[[ $(grep -c '; allreduce on 4 ranks is left to MPI' "$T/err") == 1 ]]
tap "it is said once as well"
cp sum-3.json sum-2.json
refused "the part of another rank" "^weft: .*: for rank 2, the part of rank 3; "
weft schedule make -t 'Ring(4)' -c allreduce --chunks 4 -o other.json >/dev/null &&
	weft schedule export other.json --to json --rank 2 -o sum-2.json >/dev/null
refused "a part of another schedule" "^weft: .*the parts are not of one schedule"

# ---- groups of a mesh ---------------------------------------------------------

weft schedule make -t 'K(2)' -c allreduce -o pair.json >/dev/null
# members TEXT...: a table for groups of these meshes.
members() {
	echo "schedules:"
	printf '  - { file: pair.json, members: "%s" }\n' "$@"
} >mesh.yaml
members "2 x 2 x [2]" "2 x [2] x 2" "[2] x 2 x 2"
expect 0 "groups along all axes" weft_mpi 8 WEFT_MPI_TABLE=mesh.yaml ./program mesh
has out "nothing is wrong" "^wrong 0$"
taken allreduce 120 "0 handed" "every axis has its schedule"
for axis in "2 x 2 x [2]" "2 x [2] x 2" "[2] x 2 x 2"; do
	members "$axis"
	expect 0 "groups along one" weft_mpi 8 WEFT_MPI_TABLE=mesh.yaml ./program mesh
	has out "nothing is wrong" "^wrong 0$"
	taken allreduce 40 "80 handed to MPI .80 no schedule of it for so many ranks" "$axis: the others are left to MPI"
done
members "2 x [2] x 4"
expect 0 "a mesh of other ranks" weft_mpi 8 WEFT_MPI_TABLE=mesh.yaml ./program mesh
taken allreduce 0 "120 handed" "has no groups here"
members "2 x [4]"
expect 0 "a schedule of another size" weft_mpi 8 WEFT_MPI_TABLE=mesh.yaml ./program mesh
has err "is said" "pair.json: the schedule is for 2 ranks, not for 4"
finish
