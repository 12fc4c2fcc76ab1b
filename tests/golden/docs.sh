#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What README and docs tell users to type and to write: every verb exists and
# has the options that it is shown with, every file that is named is there,
# the commands that need nothing but weft run as they stand on the page, and
# the examples of files are taken by what reads them.
source "$(dirname "$0")/../lib.sh"
docs() { python3 "$TOP/tests/golden/docs.py" "$@"; }
cd "$TOP" || exit 1
pages=(README.md CONTRIBUTING.md docs/*.md docs/examples/README.md)
docs verbs "$BIN/weft" "${pages[@]}"
tap "every command that is shown has its verb and options"
docs files "${pages[@]}"
tap "every file that is named is there"

# ---- commands ----

# Files by the names that the pages give them.
cp tests/data/rwa/NSF.net "$T/nsfnet.net"
cp tests/data/rwa/NSF.1.trf "$T/jobs.trf"
cat >"$T/fabric.yaml" <<'END'
nodes: 4
links:
- {from: 0, to: 1}
- {from: 1, to: 2}
- {from: 2, to: 3}
- {from: 3, to: 0}
demands: all
END
sed 's/demands: all/demands: [{from: 0, to: 2, count: 2}]/' \
	"$T/fabric.yaml" >"$T/new.yaml"

cat >"$T/polska.txt" <<'END'
?SNDlib native format; type: network; version: 1.0
NODES (
  Gdansk ( 18.60 54.20 )
  Warsaw ( 21.00 52.20 )
  Krakow ( 19.80 50.00 )
)
LINKS (
  L1 ( Gdansk Warsaw ) 0.00 0.00 0.00 156.00 ( 155.00 156.00 )
  L2 ( Warsaw Krakow ) 0.00 0.00 0.00 158.00 ( 155.00 158.00 )
)
DEMANDS (
  D1 ( Gdansk Krakow ) 1 195.00 UNLIMITED
)
ADMISSIBLE_PATHS (
)
END

# Those of the list below need devices, a daemon or namespaces (other tests
# have these, configs/demo/run those of README), or minutes.
needs_more="^weft (emulate|plan|apply|status|verify|testbed|bringup|circuit|import|job)|--job|--hosts|run reduce|n 2-2000"
cd "$T" || exit 1
ran=0
while IFS= read -r command; do
	[[ $command =~ $needs_more ]] && continue
	[[ $command == *configs/* ]] && cd "$TOP"
	# As a shell reads it.
	expect 0 "$command" bash -c "$command"
	cd "$T" || exit 1
	ran=$((ran + 1))
done < <(cd "$TOP" && docs blocks README.md docs/*.md)
((ran >= 10))
tap "commands were found"
[[ -s $T/light.json && -s $T/light.svg && -s $T/new.json ]]
tap "and wrote what they say"

# ---- pictures ----

mkdir "$T/pictures"
expect 0 "the pictures are drawn" "$TOP/docs/pictures/make" "$BIN/weft" "$T/pictures"
for picture in "$TOP"/docs/pictures/*.svg "$T"/pictures/*.svg; do
	name=$(basename "$picture")
	cmp -s "$TOP/docs/pictures/$name" "$T/pictures/$name" && grep -q "pictures/$name)" "$TOP/README.md" "$TOP"/docs/*.md
	tap "docs/pictures/$name is of now (make docs), and shown"
done

# ---- examples of files ----

example() { # PAGE START FILE
	docs example "$TOP/docs/$1" "$2" >"$T/$3"
	tap "docs/$1 has an example that begins with '$2'"
}
example ../README.md 'weft: 1' lab.yaml
expect 0 "the least fabric" weft check lab.yaml
expect 2 "has a plan" weft plan --offline -f lab.yaml
has out "... with light for its job" '^\+ '
example rwa.md 'nodes:' instance.yaml
expect 0 "an instance" weft rwa solve instance.yaml
example topologies.md 'nodes 8' edges.txt
expect 0 "an edge list" weft topology info edges.txt
example testbed.md 'weft: 1' lab.yaml
expect 0 "a fabric of namespaces" weft check lab.yaml
diff -B <(grep -v "^#" "$TOP/configs/fabrics/testbed.yaml") lab.yaml
tap "is the one that the page names"
example fabric.md 'weft: 1' lab.yaml
expect 0 "a fabric" weft check lab.yaml
finish
