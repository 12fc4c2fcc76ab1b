# SPDX-License-Identifier: Apache-2.0
# Writes collective/finder/small_groups.txt: generators of the groups that do not commute, of all
# orders below 1024 with at most 200 groups, as far as GAP's library has them and they act on at
# most 40 points. Needs gap-core and gap-smallgrp.
#
#   FROM=1 TO=1023 gap -q tests/tools/small_groups.g </dev/null >collective/finder/small_groups.txt
#
# A line an order: the order, then a word a group, which is its generators with commas between
# them; a generator is the images of the points in turn, a character each, without fixed points at
# the end.

SetPrintFormattingStatus("*stdout*", false);
letters := "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_";

Written := function(p)
	return List([1 .. LargestMovedPoint(p)], x -> letters[x ^ p]);
end;

# A faithful action on few points, on 1, 2, ..
Compact := function(G)
	local iso, small, by;
	iso := IsomorphismPermGroup(G);
	small := SmallerDegreePermutationRepresentation(Image(iso));
	by := ActionHomomorphism(Image(small), MovedPoints(Image(small)));
	return iso * small * by;
end;

by := fail;
for n in [Int(GAPInfo.SystemEnvironment.FROM) .. Int(GAPInfo.SystemEnvironment.TO)] do
	words := [];
	if SmallGroupsAvailable(n) and NumberSmallGroups(n) <= 200 then
		for i in [1 .. NumberSmallGroups(n)] do
			G := SmallGroup(n, i);
			if IsAbelian(G) then
				continue;
			fi;
			by := Compact(G);
			if NrMovedPoints(Image(by)) > 40 then
				continue;
			fi;
			if IsSolvableGroup(G) then
				gens := List(MinimalGeneratingSet(G), x -> Image(by, x));
			else
				gens := SmallGeneratingSet(Image(by));
			fi;
			Add(words, JoinStringsWithSeparator(List(gens, Written), ","));
		od;
	fi;
	if Length(words) > 0 then
		Print(n, " ", JoinStringsWithSeparator(words, " "), "\n");
	fi;
od;
