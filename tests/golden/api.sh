#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The public interface only grows: what tests/golden/api.txt says of it is
# still so. No message contains itself, as protobuf-c decodes without limit.
#
#   --update  write api.txt again, after something was added
cd "$(dirname "$0")" || exit 1
. ../lib.sh

# shellcheck disable=SC2046
protoc -I "$TOP/proto" --include_imports --include_source_info --descriptor_set_out="$T/set.pb" \
	$(cd "$TOP/proto" && echo weft/v1/*.proto)
tap "protoc reads the interface"
/usr/bin/python3 api.py "$T/set.pb" >"$T/api" 2>"$T/loops"
tap "its names and numbers"
if [[ ${1:-} == --update ]]; then
	LC_ALL=C sort "$T/api" >api.txt
	exit
fi
LC_ALL=C sort "$T/api" >"$T/now"
LC_ALL=C comm -23 api.txt "$T/now" | sed 's/^/# gone or changed: /' | tee "$T/gone"
[[ ! -s $T/gone ]]
tap "nothing is gone or has another number, name or type"
sed 's/^/# /' "$T/loops"
[[ ! -s $T/loops ]]
tap "no message contains itself"
mkdir "$T/reference"
"$TOP/docs/api/generate" "$T/set.pb" "$T/reference" 2>"$T/missing"
tap "every method, field and value has a comment"
sed 's/^/# /' "$T/missing"
diff -r -x generate "$T/reference" "$TOP/docs/api" | head -20 | sed 's/^/# /' | tee "$T/diff"
[[ ! -s $T/diff ]]
tap "docs/api is of now (make docs-api)"
dup=$(sed -nE 's/^(field [^ ]+ [0-9]+) .*/\1/p' "$T/now" | uniq -d)
[[ -z $dup ]]
tap "no number twice $dup"
finish
