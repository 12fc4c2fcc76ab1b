#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# weft schedule run: schedules of all collectives on two to eight processes of Open MPI, every
# element as MPI's own collective has it, and what the schedule says was sent; what is
# refused; and that nothing is left running.
source "$(dirname "$0")/../lib.sh"
cd "$T" || exit 1
# Of a rank that ends by a signal, where it was.
export OMPI_MCA_opal_stacktrace_output=file:$T/stack

# run FILE SIZE [OPTION...]: correct, with result in run.json.
run() {
	timeout 120 weft schedule run "$1" --size "$2" --repeat 1 "${@:3}" --format json \
		>run.json 2>run.err </dev/null
	local got=$?
	if [[ $got != 0 ]] || ! jq -e '.correct and .wrong_elements == 0' run.json >/dev/null; then
		echo "# run $*: exit $got"
		sed 's/^/#   /' run.err run.json | cut -c1-300 | head -n 20
		find . -name 'stack.*' -exec sed 's/^/#   /' {} +
		return 1
	fi
}

# One that is compact, and all that it stands for.
weft schedule make -t 'C(8,{1,3})' -c allreduce -o compact.pb >/dev/null
weft schedule export compact.pb --flat --to json -o flat.json

# ---- all collectives ----

topologies=('K(2)' 'UniRing(2,4)' 'Ring(5)' 'Torus(2,3)' 'Hypercube(3)' 'C(8,{1,3})')
sizes=(1B 4B 7B 4096B 1000B 100003B 131072B 12kB)
# Every second pair: each collective on three of the topologies, each of these with four.
k=0
pair=0
for topology in "${topologies[@]}"; do
	((pair++))
	for collective in allgather reduce-scatter allreduce all-to-all broadcast reduce gather \
			scatter; do
		((pair++ % 2)) && mine || continue
		options=()
		[[ $collective =~ ^(broadcast|reduce|gather|scatter)$ ]] && options=(--root 1)
		weft schedule make -t "$topology" -c "$collective" "${options[@]}" -o s.pb >/dev/null &&
			run s.pb "${sizes[k++ % 8]}" &&
			{ ((k % 2)) || run s.pb "${sizes[k++ % 8]}" --barriers; }
		tap "$collective on $topology"
	done
done

# ---- forms of schedules ----

# Compact and written out: the same messages.
if mine; then
	jq -e '.symmetry == null' flat.json >/dev/null && run compact.pb 1MiB &&
		jq '[.messages, .bytes, .rank_bytes]' run.json >compact.counts &&
		run flat.json 1MiB && jq '[.messages, .bytes, .rank_bytes]' run.json | diff - compact.counts
	tap "compact and flat schedules send the same"
fi
if mine; then
	weft schedule make -t 'K(4)' -c allreduce --on 'Ring(4)' -o s.pb >/dev/null &&
		run s.pb 40004B && run s.pb 9B
	tap "a schedule embedded in another topology"
fi
if mine; then
	# Partners that are no neighbours; sums along chains; a rank folded in.
	for how in "Torus(4,2) swing" "Torus(6) swing-latency" \
		"Torus(4,2) mixed-radix --levels 4c,2 --rounds 0" "Torus(7) recursive-doubling"; do
		# shellcheck disable=SC2086
		weft schedule make -t "${how%% *}" -c allreduce -a ${how#* } -o s.pb >/dev/null &&
			run s.pb 100003B || break
	done
	tap "algorithms on coordinates"
fi
if mine; then
	# Sums that go on along a ring, of five and of six ranks.
	for s in chains chains-compact; do
		cp "$TOP/tests/fuzz/corpus/schedule_json/$s.json" . && run $s.json 100003B &&
			run $s.json 3B && run $s.json 1MiB --barriers || break
	done
	tap "forwarded sums"
fi
if mine; then
	# What cannot be held back is held back: all messages wait for their receivers.
	OMPI_MCA_btl_vader_eager_limit=64 run compact.pb 1MiB &&
		OMPI_MCA_btl=self,tcp OMPI_MCA_btl_tcp_if_include=lo \
			OMPI_MCA_btl_tcp_eager_limit=128 run compact.pb 1MiB
	tap "without eager messages, and by TCP"
	echo 'localhost slots=8' >hosts
	run compact.pb 4096B --hosts hosts
	tap "on the hosts of a file"
	# A name service that takes questions and says nothing.
	printf 'no-such-host\n' >hosts
	server=$(awk '$1 == "nameserver" { print $2; exit }' /etc/resolv.conf)
	if [[ -n $server ]] && unshare --net true 2>/dev/null; then
		expect 69 "a name service that is silent is not waited for" unshare --net bash -c "
			ip link set lo up; ip addr add $server dev lo; nc -lu $server 53 & sleep 0.2
			weft schedule run compact.pb --size 4096B --hosts hosts; code=\$?; kill %1; exit \$code"
		has err "and the host is named" 'host no-such-host: the name service did not answer'
	fi
fi
if mine; then
	# A report would count its calls.
	LD_PRELOAD=$BIN/libweft_mpi.so WEFT_MPI_SCHEDULES=$T/compact.pb \
		WEFT_MPI_REPORT=$T/calls run compact.pb 4096B && [[ ! -e calls ]]
	tap "MPI's own collective is compared with, also where libweft_mpi.so is preloaded"
fi

# ---- what is printed ----

if mine; then
	run compact.pb 64KiB --alpha 10us --link-bandwidth 100Gbps
	jq -e '.ranks == 8 and .size_bytes == 65536 and .time_ns > 0 and .min_time_ns > 0 and
		.mpi_time_ns > 0 and (.steps | length) == 4 and .steps[3].step == 4 and
		([.steps[] | .planned_ns > 10000 and .median_ns >= 0 and .worst_ns >= .median_ns and
		.worst_rank < 8] | all)' run.json >/dev/null &&
		[[ $(jq '.steps | map(.planned_ns) | add' run.json) -ge $(($(jq .planned_ns run.json) - 4)) ]] &&
		[[ $(jq .planned_ns run.json) == $(weft schedule cost compact.pb --alpha 10us \
			--link-bandwidth 100Gbps --size 64KiB --format json | jq .time_ns) ]]
	tap "times of steps beside the plan"
	# Every byte of the schedule: chunk hops times the size of a chunk.
	hops=$(weft schedule verify compact.pb --format json | jq '.chunk_hops * 65536 / .nodes / .chunks')
	[[ $(jq .bytes run.json) == "$hops" ]]
	tap "as many bytes as the schedule has"
	expect 0 "a table" weft schedule run compact.pb --size 1kB --repeat 2
	has out "... with steps" '^ *STEP +MEDIAN +WORST +WORST RANK'
	has out "... and a verdict" '^correct: 8 ranks, 0 wrong elements; '
fi

# ---- what is refused ----

if mine; then
	jq -c '.transfers[0][0] += 1' flat.json >damaged.json
	expect 1 "a schedule that was changed" weft schedule run damaged.json --size 1kB
	has err "... is named" 'step [0-9]+'
	weft ring plan -n 8 -w 2 --size 1MB -a optree -o light.pb >/dev/null
	expect 65 "light that changes between steps" weft schedule run light.pb --size 1MB
	has err "... with the step" 'needs other light|light.*step'
	expect 65 "too many ranks" weft schedule run compact.pb --size 1kB --ranks 4
	has err "... names both" 'has 8 ranks, and --ranks allows 4'
	expect 65 "too many bytes" weft schedule run compact.pb --size 4000000TB
	has err "... names how many can be" 'more than 2147483647 elements'
	weft schedule export compact.pb --rank 1 --to json -o part.json
	expect 1 "a part" weft schedule run part.json --size 1kB
	mkdir -p none
	ln -sf "$(command -v weft)" none/weft
	PATH=$T/none expect 69 "no Open MPI" weft schedule run compact.pb --size 1kB
	has err "... names the package" 'openmpi-bin'
fi

# ---- what goes wrong ----

# fake LINE EXIT: an mpirun that says this.
fake() {
	mkdir -p fake
	printf '#!/bin/sh\ncat >/dev/null\n%s\nexit %s\n' "$1" "$2" >fake/mpirun
	chmod +x fake/mpirun
}
if mine; then
	step='{"median_ns":1,"worst_ns":2,"worst_rank":0}'
	steps="[$step,$step,$step,$step],\"time_ns\":4"
	fake "echo '{\"wrong_elements\":3,\"bytes\":5,\"steps\":$steps}'" 0
	PATH=$T/fake:$PATH expect 1 "wrong elements" weft schedule run compact.pb --size 1kB --format json
	has err "... are counted" '3 elements differ'
	has out "... also for programs" '"correct": false'
	fake "echo '{\"wrong_elements\":0,\"bytes\":5,\"planned_bytes\":6,\"steps\":$steps}'" 0
	PATH=$T/fake:$PATH expect 1 "wrong bytes" weft schedule run compact.pb --size 1kB
	has err "... are named" 'sent 5 bytes, and the schedule has 6'
	fake "echo '{\"error\":\"ELIMIT\",\"message\":\"rank 3: too much\"}'" 0
	PATH=$T/fake:$PATH expect 65 "an error of a rank" weft schedule run compact.pb --size 1kB
	has err "... has its number" '^weft: rank 3: too much'
	fake "echo nothing" 0
	PATH=$T/fake:$PATH expect 1 "no result" weft schedule run compact.pb --size 1kB
	fake "echo '-------------------------------------'; echo no slots >&2" 7
	PATH=$T/fake:$PATH expect 1 "a failing mpirun" weft schedule run compact.pb --size 1kB
	has err "... is quoted" 'mpirun ended with 7: no slots$'
fi

# left SEED: processes of such a run. ranks SEED: its ranks, when all run: they have filled
# their buffers. One that dies while it starts is not always noticed by mpirun.
left() { pgrep -f -- "weft-mpi-run.*--seed $1 "; }
ranks() {
	local pids pid
	mapfile -t pids < <(pgrep -f -- "^[^ ]*/weft-mpi-run .*--seed $1 ")
	((${#pids[@]} == 8)) || return 1
	for pid in "${pids[@]}"; do
		(($(awk '/VmRSS/ { print $2 }' "/proc/$pid/status") > 70000)) || return 1
	done
	echo "${pids[@]}"
}

# long SEED...: becomes a run that takes long.
long() { exec weft schedule run compact.pb --size 32MB --repeat 10000 --seed "$@"; }

if mine; then
	expect 124 "a time limit" weft schedule run compact.pb --size 32MB --repeat 10000 \
		--seed $$1 --time-limit 1s
	! left $$1
	tap "... ends all ranks"
	long $$2 >out 2>err </dev/null &
	PID[run]=$!
	wait_for 60 ranks $$2
	kill -INT "${PID[run]}"
	wait "${PID[run]}"
	[[ $? == 1 ]] && ! left $$2
	tap "Ctrl-C ends all ranks"
	long $$3 --time-limit 60s >out 2>err </dev/null &
	PID[run]=$!
	wait_for 60 ranks $$3
	read -r -a pids < <(ranks $$3)
	kill -KILL "${pids[3]}"
	wait "${PID[run]}"
	[[ $? == 1 ]] && grep -q 'signal 9' err && ! left $$3 || { sed 's/^/# /' err; false; }
	tap "a rank that is killed is an error, and ends the others"
	unset 'PID[run]'
fi
finish
