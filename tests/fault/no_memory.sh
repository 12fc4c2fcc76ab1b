#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# No memory: weft and weftd end with one line and their exit code, and weftd goes on from its
# store when it is started again.
source "$(dirname "$0")/../lib.sh"

# ended CODE PROGRAM FILE WHAT: the exit code of the last command, and the one line in FILE.
ended() {
	local code=$?
	[[ $code == "$1" ]]
	tap "$4: exit $1" || sed 's/^/# /' "$3"
	[[ $(grep -c 'out of memory' "$3") == 1 && $(grep -c . "$3") == 1 ]] ||
		{ sed 's/^/# /' "$3"; false; }
	tap "$4: one line"
	grep -q "$2.*out of memory" "$3"
	tap "$4: which says who and what"
}

# least PROGRAM: KiB of address space in which it starts, and little more.
least() {
	local kib
	for ((kib = 16000; kib < 400000; kib += 1000)); do
		(ulimit -v $kib; exec "$1" --version) >/dev/null 2>&1 && break
	done
	echo $((kib + 2000))
}
for_weft=$(least weft)
for_weftd=$(least weftd)

(ulimit -v "$for_weft"; exec weft schedule make -t 'GenKautz(4,1500)' -c allgather -o /dev/null) >/dev/null 2>"$T/weft.err"
ended 71 weft "$T/weft.err" "weft without memory"
expect 0 "the exit code is explained" weft explain 71
has out "by what to do" 'no memory'

(ulimit -v "$for_weftd"; exec weftd --socket "$T/none.sock" --state-dir "$T/none") 2>"$T/weftd.err"
ended 75 weftd "$T/weftd.err" "weftd without memory"
(ulimit -v "$for_weftd"; exec weftd --log-format json --socket "$T/none.sock" --state-dir "$T/none") 2>"$T/weftd.err"
[[ $? == 75 ]] && jq -e '.level == "error" and (.message | test("out of memory"))' "$T/weftd.err" >/dev/null
tap "or as JSON, where the log is"

# In the middle of its work: what it may have is taken away while it serves.
emulators || exit 1
fabric "$T/small.yaml" 'C(4,{1})'
daemon || exit 1
expect 0 "a change" weft apply -f "$T/small.yaml"
expect 0 "and a drain" weft drain h3
what() {
	weft status --format json | jq -S '{generation, holds, devices: [.devices[] | {name, missing, unexpected, circuits}],
		jobs: [.jobs[] | {name, health, circuits, lightpaths, time_ns}]}'
}
what >"$T/before"
cp "$T/weftd.log" "$T/log.before"
"$TOP/tests/large_fabric.sh" 8 256 8 600 127.0.0.1:9 >"$T/large.yaml"
pages=$(cut -d' ' -f1 "/proc/${PID[weftd]}/statm")
prlimit --pid "${PID[weftd]}" --as=$((pages * $(getconf PAGESIZE)))
for _ in 1 2 3 4 5 6 7 8; do
	weft plan -f "$T/large.yaml" >/dev/null 2>&1 </dev/null &
	asked+=($!)
done
wait "${asked[@]}"
wait "${PID[weftd]}"
code=$?
unset "PID[weftd]"
[[ $code == 75 ]]
tap "weftd ends with 75 where memory ends ($code)"
tail -n +$(($(wc -l <"$T/log.before") + 1)) "$T/weftd.log" >"$T/log.after"
[[ $(grep -c 'out of memory' "$T/log.after") == 1 ]] || { sed 's/^/# /' "$T/log.after"; false; }
tap "and one line"
daemon || exit 1
# Its jobs are shown once they have been planned again.
shown() { weft status --format json | jq -e '.jobs | length == 2'; }
wait_for 20 shown
what >"$T/after"
cmp "$T/before" "$T/after" || { diff "$T/before" "$T/after" | sed 's/^/# /' | head -n 20; false; }
tap "started again, all is as it was"
expect 0 "nothing is to be done" weft plan -f "$T/small.yaml"
finish
