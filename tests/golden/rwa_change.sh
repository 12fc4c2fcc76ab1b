#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What "weft rwa change" prints, in every format: an add, a drop, a move, a
# temporary route and an interruption, with the ids of both files. And whether a
# deadline was met, of rwa solve.
source "$(dirname "$0")/../lib.sh"
cd "$T" || exit 1
cat >net.yaml <<'END'
nodes: [a, b, c]
links:
- {from: a, to: b, fibres: 2, domain: north}
- {from: b, to: c, domain: south}
END
cat >old.yaml <<'END'
lightpaths:
- {id: red, from: a, to: c, hops: [{to: b, channel: 0}, {to: c, channel: 0}]}
- {id: blue, from: b, to: c, hops: [{to: c, channel: 1}]}
- {id: grey, from: c, to: a, hops: [{to: b, channel: 0}, {to: a, channel: 0}]}
- {id: home, from: b, to: a, hops: [{to: a, fibre: 1, channel: 1}]}
END
# Without ids: positions.
cat >new.yaml <<'END'
lightpaths:
- {from: b, to: c, hops: [{to: c, channel: 0}]}
- {from: a, to: c, hops: [{to: b, fibre: 1, channel: 1}, {to: c, channel: 1}]}
- {from: a, to: b, hops: [{to: b, channel: 0}]}
- {from: b, to: a, hops: [{to: a, fibre: 1, channel: 1}]}
END

# same WHAT: standard input is what the last command wrote.
same() {
	diff - "$T/out" | sed 's/^/# /'
	[[ ${PIPESTATUS[0]} == 0 ]]
	tap "$1"
}

expect 0 "with a spare channel" weft rwa change net.yaml old.yaml new.yaml --channels 3
same "each step as a line" <<'END'
kept           1
moved          2
added          1
dropped        1
rerouted       1
interrupted    0
phases         0
channels       3
dark before    0
interruptions  -

steps:
  STEP  DO       OLD ID  NEW ID  FROM  TO  OLD ROUTE    NEW ROUTE
     0  drop     grey    -       c     a   b/0:0 a/0:0  dark
     1  reroute  red     1       a     c   b/0:0 c/0:0  b/0:2 c/0:2
     2  move     blue    0       b     c   c/0:1        c/0:0
     3  move     red     1       a     c   b/0:2 c/0:2  b/1:1 c/0:1
     4  add      -       2       a     b   dark         b/0:0

renamed:
  OLD ID  NEW ID  FROM  TO
  home    3       b     a
END

expect 0 "without one" weft rwa change net.yaml old.yaml new.yaml --by-domain \
	--switch-time 5ms --format yaml
same "every route with its hops" <<'END'
kept: 1
moved: 2
added: 1
dropped: 1
rerouted: 0
interrupted: 1
phases: 4
channels: 2
dark_before: 0
interruptions:
  - old_id: red
    new_id: "1"
    from: a
    to: c
    after_step: 1
    steps: 3
    time_ns: 15000000
steps:
  - step: 0
    domain: south
    do: drop
    old_id: grey
    new_id: null
    from: c
    to: a
    old_route:
      - to: b
        fibre: 0
        channel: 0
      - to: a
        fibre: 0
        channel: 0
    new_route: []
  - step: 1
    domain: north
    do: cut
    old_id: red
    new_id: "1"
    from: a
    to: c
    old_route:
      - to: b
        fibre: 0
        channel: 0
      - to: c
        fibre: 0
        channel: 0
    new_route: []
  - step: 2
    domain: north
    do: add
    old_id: null
    new_id: "2"
    from: a
    to: b
    old_route: []
    new_route:
      - to: b
        fibre: 0
        channel: 0
  - step: 3
    domain: south
    do: move
    old_id: blue
    new_id: "0"
    from: b
    to: c
    old_route:
      - to: c
        fibre: 0
        channel: 1
    new_route:
      - to: c
        fibre: 0
        channel: 0
  - step: 4
    domain: north
    do: add
    old_id: red
    new_id: "1"
    from: a
    to: c
    old_route: []
    new_route:
      - to: b
        fibre: 1
        channel: 1
      - to: c
        fibre: 0
        channel: 1
renamed:
  - old_id: home
    new_id: "3"
    from: b
    to: a
END

expect 0 "as JSON" weft rwa change net.yaml old.yaml new.yaml --format json
[[ $(jq -c '.steps[] | [.do, .old_id, .new_id, (.old_route | length), (.new_route | length)]' \
	"$T/out") == "$(cat <<'END'
["drop","grey",null,2,0]
["cut","red","1",2,0]
["move","blue","0",1,1]
["add","red","1",0,2]
["add",null,"2",0,1]
END
)" ]]
tap "null where a lightpath is in one file only"

# ---- ids ----

sed 's/id: blue/id: red/' old.yaml >twice.yaml
expect 65 "the same id twice" weft rwa change net.yaml twice.yaml new.yaml
has err "says where" "twice.yaml:3:.*the id 'red' is another lightpath's"
sed 's/id: blue, //; s/id: red/id: 1/' old.yaml >mixed.yaml
expect 65 "an id that is the position of another" weft rwa change net.yaml mixed.yaml new.yaml
has err "says where" "mixed.yaml:3:.*the id '1' is another lightpath's"

# ---- a fibre is cut, and comes back ----

cat >ring.yaml <<'END'
nodes: [a, b, c, d]
links:
- {from: a, to: b}
- {from: b, to: c}
- {from: c, to: d}
- {from: d, to: a}
demands:
- {from: a, to: b}
- {from: b, to: c}
- {from: c, to: d}
channels: 3
END
expect 0 "before" weft rwa solve ring.yaml -o whole.json
sed 3d ring.yaml >gone.yaml
sed 's/^demands:/in_use:\n- {from: a, to: b}\n- {from: b, to: a}\n&/' ring.yaml >used.yaml
for cut in gone used; do
	expect 0 "$cut: only what was hit is given another route" weft rwa solve $cut.yaml --previous whole.json \
		-o $cut.json
	has err "says how many" "whole.json: lightpaths over fibres that are cut: 1"
	expect 0 "$cut: the way there" weft rwa change $cut.yaml whole.json $cut.json --format json
	[[ $(jq -c '[.kept, .moved, .added, .dark_before]' "$T/out") == "[2,0,1,1]" ]]
	tap "$cut: the one hit is lit again, the others stay"
	expect 0 "$cut: the way back" weft rwa change ring.yaml $cut.json whole.json --format json
	[[ $(jq -c '[.kept, .moved, .interrupted, .dark_before]' "$T/out") == "[2,1,0,0]" ]]
	tap "$cut: the way back is a change like others"
done
expect 65 "what is new is not dark" weft rwa change gone.yaml whole.json whole.json
has err "says where" "whole.json:.*no such fibre leads there"

solved() { # WHAT MET OPTION...
	local what=$1 met=$2
	shift 2
	weft rwa solve "$TOP/configs/networks/cities.txt" --demands all --format json "$@" >"$T/out"
	[[ $(jq .deadline_met "$T/out") == "$met" ]]
	tap "$what"
}
solved "nothing is said of deadlines without one" null
solved "a deadline that was met is told" true --time-limit 1us
finish
