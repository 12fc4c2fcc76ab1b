#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A lab's cabling in files of others: the example of sonic-mgmt's page on optical switches gives 24 pairs, each
# mistake is told with file and line, and NetBox's three forms are one fabric.
source "$(dirname "$0")/../lib.sh"
emulator ocs-2 sonic-ocs 64x64 || exit 1
mkdir "$T/files"

# csv WHAT LINE...: a file of the group "lab".
csv() { printf '%s\n' "${@:2}" >"$T/files/sonic_lab_$1.csv"; }

# lanes A: a port's four fibres from A on.
lanes() { echo "$1|$(($1 + 1))|$(($1 + 2))|$(($1 + 3))"; }

lab() {
	local i cables=() links=()
	for ((i = 0; i < 6; i++)); do
		cables+=("tg-1,Card$((i / 3 + 1))/Port$((i % 3 + 1)),ocs-2,$(lanes $((4 * i + 1)))"
			"switch-t0-$((3 - i / 3)),Ethernet$((i % 3 * 4)),ocs-2,$(lanes $((4 * i + 29)))")
		links+=("switch-t0-$((3 - i / 3)),Ethernet$((i % 3 * 4)),tg-1,Card$((i / 3 + 1))/Port$((i % 3 + 1)),100000,,Access,")
	done
	csv devices Hostname,ManagementIp,HwSku,Type,Protocol tg-1,10.0.0.200/24,IXIA-tester,DevIxiaChassis, \
		switch-t0-2,10.0.0.101/24,SKU,DevSonic, switch-t0-3,10.0.0.102/24,SKU,DevSonic, \
		"ocs-1,10.0.0.201/24,OCS,FanoutL1Sonic," "ocs-2,fc00::2/64,Coherent-DLXA64B64-OCS,FanoutL1Sonic,"
	csv l1_links StartDevice,StartPort,EndDevice,EndPort "${cables[@]}"
	csv links StartDevice,StartPort,EndDevice,EndPort,BandWidth,VlanID,VlanMode,AutoNeg "${links[@]}"
	cat >"$T/testbed.yaml" <<-END
	---
	- { conf-name: all, inv_name: lab, dut: [switch-t0-2, switch-t0-3], tgs: [tg-1], l1s: [ocs-2], vm_base: }
	- { name: one, inv_name: lab, duts: [switch-t0-2], tgs: [tg-1], l1s: [ocs-2], test_tags: [] }
	- { name: glass, inv_name: lab, dut: [switch-t0-2] }
	- { name: other, inv_name: elsewhere, duts: [x], l1s: [y] }
	END
}
sonic() { weft import sonic-mgmt --files "$T/files" --group lab "$@"; }

# ---- the example ----

lab
expect 0 "files of sonic-mgmt" sonic -o "$T/fabric.yaml"
expect 0 "are a fabric" weft check "$T/fabric.yaml"
has "out" "  of 48 ports" 'ports +48$'
grep -q 'name: ocs-2, size: 64x64, driver: sonic-ocs, address: "\[fc00::2\]:22"' "$T/fabric.yaml"
tap "  and a switch of its size at its address"
sed -i "s/\"\[fc00::2\]:22\"/\"${ADDR[ocs-2]}\", options: { gap_ms: 0, settle_ms: 1 }/" "$T/fabric.yaml"
daemon || exit 1
expect 0 "  that is applied" weft apply -f "$T/fabric.yaml"
expect 0 "a testbed of it" sonic --testbed "$T/testbed.yaml" one -o "$T/one"
expect 0 "  is a group" weft circuit set one "$T/one"
[[ $(map ocs-2 | wc -l) == 24 ]]
tap "  of 24 cross-connects"
weft circuit remove one >/dev/null
expect 0 "the other testbed" sonic --testbed "$T/testbed.yaml" all -o "$T/all"
expect 0 "  is one, too" weft circuit import "$T/all"
for p in 13-41 17-45 21-49 1-29 5-33 9-37; do
	for i in 0 1 2 3; do
		a=$((${p%-*} + i - 1)) b=$((${p#*-} + i - 1))
		printf '%s\n' $a,$b $b,$a
	done
done | sort >"$T/wanted"
map ocs-2 | diff "$T/wanted" - && [[ $(wc -l <"$T/wanted") == 48 ]]
tap "  of the 24 pairs, 48 cross-connects"
expect 2 "a label finds a port" weft circuit find tg-1.Card2/Port3
expect 0 "both testbeds" sonic --testbed "$T/testbed.yaml"
[[ $(grep -c '^group' "$T/out") == 2 ]]
tap "  are two groups, and those without switches or of others none"

# ---- mistakes ----

# wrong WHAT FILE LINE MESSAGE [OPTION...]: after a line of a file was changed by the caller.
wrong() {
	expect 65 "$1" sonic "${@:5}"
	has err "  is told with its place" "$2:$3: .*$4"
	lab
}
change() { sed -i "$2" "$T/files/sonic_lab_$1.csv"; }
T1=(--testbed "$T/testbed.yaml")
change links '3s/Port2/Port1/'
wrong "a tester's port in two links" sonic_lab_links.csv 3 'testbed all: tg-1 Card1/Port1 is in the link of line 2 already' "${T1[@]}"
change l1_links '2s/|3|4//'
wrong "2 lanes against 4" sonic_lab_links.csv 2 'switch-t0-3 Ethernet0 has 4 fibres, tg-1 Card1/Port1 2'
change l1_links '2s/|.*//'
wrong "1 lane against 4" sonic_lab_links.csv 2 'switch-t0-3 Ethernet0 has 4 fibres, tg-1 Card1/Port1 1'
change l1_links '2s/ocs-2/ocs-1/'
wrong "ends on two switches" sonic_lab_links.csv 2 'Ethernet0 is on ocs-2 and tg-1 Card1/Port1 on ocs-1, and no fibre joins these'
change l1_links '3s/Ethernet0,//'
wrong "a row of three columns" sonic_lab_l1_links.csv 3 'column EndPort is missing: the row has 3 of 4 values'
change l1_links '4s/5|/4|/'
wrong "a switch's port twice" sonic_lab_l1_links.csv 4 'port 4 of ocs-2 is already joined to tg-1 Card1/Port1 on line 2'
change l1_links '4s/.*/tg-1,Card1_Port1,ocs-2,60/'
wrong "two names that fall together" sonic_lab_l1_links.csv 4 'tg-1 Card1_Port1 would have the name of the port on line 2'
change l1_links '4s/8$/65/'
wrong "a port beyond the switch" sonic_lab_l1_links.csv 4 "'65' is no port of ocs-2, 1 to 64"
change devices '3s/switch-t0-2/tg-1/'
wrong "a device twice" sonic_lab_devices.csv 3 'tg-1 is already on line 2'
change devices '6s/FanoutL1Sonic/DevSonic/'
wrong "cables to what is no switch" sonic_lab_l1_links.csv 2 'EndDevice ocs-2 is of another type'
change links '2s/100000/fast/'
wrong "a rate in words" sonic_lab_links.csv 2 "BandWidth: 'fast'"
change links '1s/EndPort/endport/'
wrong "a column that is not there" sonic_lab_links.csv 1 'there is no column EndPort'
change links '2s/^/"/'
wrong "an open quote" sonic_lab_links.csv 2 'a quote is not closed'
sed -i 's/ocs-2\], vm_base/ocs-1], vm_base/' "$T/testbed.yaml"
wrong "a link over another switch" sonic_lab_links.csv 2 'testbed all: the link is over ocs-2, which is none of its l1s' "${T1[@]}"
sed -i '2s/tg-1/tg-7/' "$T/testbed.yaml"
wrong "a testbed of what is not there" testbed.yaml 2 "there is no device 'tg-7'" "${T1[@]}"
expect 65 "a testbed that is not there" sonic "${T1[@]}" none
change l1_links '2d'
expect 0 "a port on no switch" sonic
has err "  is passed over" 'sonic_lab_links.csv:2: passed over: tg-1 Card1/Port1 is on no optical switch'
lab
change l1_links '2,3s/ocs-2,/ocs-1,/'
sed -i '3s/.*/switch-t0-3,Ethernet0,ocs-2,29|30|31|32\nocs-1,5|6|7|8,ocs-2,60|61|62|63/' "$T/files/sonic_lab_l1_links.csv"
expect 0 "ends on two switches with fibres between them" sonic -o "$T/trunks.yaml"
expect 0 "  are a fabric" weft check "$T/trunks.yaml"
grep -q 'from: "ocs-1.8", to: "ocs-2.63"' "$T/trunks.yaml"
tap "  with these"

# ---- NetBox ----

cat >"$T/list.csv" <<'END'
ID,Label,Termination A,Termination B,Device A,Device B,Status
1,,p0,Port 1,h 0,ocs,Connected
2,,"Port 5,Port 3","p/1",ocs,h 0,Connected
3,,eth0,eth1,h 0,h1,Connected
4,,p9,Port 9,h 0,ocs,Planned
5,,,Port 7,,ocs,Connected
END
cat >"$T/form.csv" <<'END'
side_a_device,side_a_type,side_a_name,side_b_device,side_b_type,side_b_name
h 0,dcim.interface,p0,ocs,dcim.frontport,Port 1
ocs,dcim.rearport,"Port 3,Port 5",h 0,dcim.interface,p/1
END
cat >"$T/api.json" <<'END'
{"count": 2, "next": null, "results": [
 {"id": 1, "status": {"value": "connected", "label": "Connected"},
  "a_terminations": [{"object_type": "dcim.interface", "object": {"device": {"name": "h 0"}, "name": "p0"}}],
  "b_terminations": [{"object_type": "dcim.frontport", "object": {"device": {"name": "ocs"}, "name": "Port 1"}}]},
 {"id": 2, "a_terminations": [
   {"object_type": "dcim.rearport", "object": {"device": {"name": "ocs"}, "name": "Port 3"}},
   {"object_type": "dcim.rearport", "object": {"device": {"name": "ocs"}, "name": "Port 5"}}],
  "b_terminations": [{"object_type": "dcim.interface", "object": {"device": {"name": "h 0"}, "name": "p\/1"}}]}]}
END
expect 65 "a list names no switches" weft import netbox "$T/list.csv"
has err "  which are asked for" 'name the switches by --switches'
expect 0 "NetBox's list" weft import netbox "$T/list.csv" --switches ocs -o "$T/list.yaml"
for said in 'list.csv:4: passed over: neither h 0 nor h1' 'list.csv:5: passed over: the cable is Planned' \
	'list.csv:6: passed over: the cable has no device and port at one'; do
	has err "  says so" "$said"
done
expect 0 "  is a fabric" weft check "$T/list.yaml"
expect 0 "rows of its form" weft import netbox "$T/form.csv"
diff "$T/out" "$T/list.yaml"
tap "  are the same"
expect 0 "JSON of its API" weft import netbox "$T/api.json"
diff "$T/out" "$T/list.yaml"
tap "  is the same"
grep -q 'from: "h_0.p_1-2", to: "ocs.5"' "$T/list.yaml"
tap "  two fibres of a port by number"
sed -i 's/"next": null/"next": "page 2"/' "$T/api.json"
expect 65 "one page of several" weft import netbox "$T/api.json"
sed -i 's/Port 1$/Port/' "$T/form.csv"
expect 65 "a port without a number" weft import netbox "$T/form.csv"
has err "  is told" 'form.csv:2: the name of a port of ocs ends with no number'
finish
