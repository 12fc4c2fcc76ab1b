#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A training step on a testbed: the example's program exchanges in rows and sums in columns by weft's
# schedules, first over light that stays still, then over light that the job itself changes between
# the two: of vectors so large that it pays also where a busy machine changes light slowly. Times are
# told, not judged.
source "$(dirname "$0")/../lib.sh"
F=ts$$
testbed_of "$T/still.yaml"

# fabric FILE LIGHT
step() {
	cat >"$1" <<-END
	weft: 1
	fabric: $F
	hosts:
	  - { name: "h[00-11]", ports: "p[0-1]", rate: 20Mbps, reactivation: 10ms }
	switches:
	  - { name: ocs0, size: 24x24, driver: linux-tc, options: { fabric: $F, switch_ms: 20 }, switch-time: 20ms }
	fibres:
	  - { from: "h[00-11].p[0-1]", to: "ocs0.[1-24]" }
	jobs:
	  - name: train
	    nodes: "h[00-11]"
	    mesh: { row: 3, column: 4 }
	    collectives:
	      - { name: exchange, collective: all-to-all, size: 3MiB, over: column }
	      - { name: sum, collective: allreduce, size: 2304KiB, over: row }
	    light: $2
	    alpha: 10us
	END
}
step "$T/still.yaml" still
step "$T/moving.yaml" by-collective
weft testbed up "$T/still.yaml" >"$T/out" 2>"$T/err"
status=$?
if [[ $status == 77 ]]; then
	echo "ok 1 - testbed # SKIP $(head -n 1 "$T/err")"
	echo "1..1"
	exit 0
elif [[ $status != 0 ]]; then
	cat "$T/err"
	tap "testbed up" 1
	finish
fi
(cd "$T" && mpicc -O1 -Wall -o two_phases "$TOP/docs/examples/steps/two_phases.c" \
	$(pkg-config --cflags --libs pmix)) >"$T/cc" 2>&1
tap "the example is compiled"
daemon || exit 1
cat >"$T/light" <<-END
	#!/bin/sh
	weft job light train "\$1" && weft testbed route $T/moving.yaml
END
chmod +x "$T/light"

# run FILE WHAT [ARGUMENT...]: the program by the schedules of the step.
run() {
	expect 0 "$2: applied" weft apply -f "$1"
	expect 0 "schedules" weft schedule export --job train -o "$T/train/"
	expect 0 "checked" weft schedule verify "$T/train/"
	expect 0 "$2: the program runs" timeout 300 weft testbed run "$1" --format json -- env \
		WAIT_US=1000 LD_PRELOAD="$BIN/libweft_mpi.so $NAP" WEFT_MPI_TABLE="$T/train/table.yaml" \
		WEFT_MPI_REPORT="$T/report" "$T/two_phases" 3 4 3145728 2359296 "${@:3}"
	jq -r '"# \(.output)"' "$T/out"
	jq -e '(.output | endswith("right\n")) and .dropped_frames == 0' "$T/out" >"$T/ok"
	tap "$2: results are right, and no frame is lost"
	[[ $(grep -cE '(all-to-all|allreduce): 48 taken, 0 handed' "$T/report") == 2 ]]
	tap "$2: all calls go by weft's schedules"
}
run "$T/still.yaml" "still light"
expect 65 "without a program a step is not run" weft testbed run "$T/still.yaml"
has err "and that is said" "job train is a step of several collectives: a program runs it"
run "$T/moving.yaml" "light by collective" "$T/light"
[[ $(weft history --format json | jq '[.changes[] | select(.comment | startswith("light of job train"))] | length') == 8 ]]
tap "the job has changed its light eight times"
weft history >"$T/out"; ! grep -q "never paid back" "$T/out"
tap "which history does not judge as what a plan would gain"
finish
