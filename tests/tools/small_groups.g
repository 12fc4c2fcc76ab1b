# SPDX-License-Identifier: Apache-2.0
# Writes collective/finder/small_groups.txt: generators of the groups that do not commute, of all
# orders below 1024 with at most 200 groups, as far as GAP's library has them and they act on at
# most 40 points, or on 80 where an order has at most 20 and the finder's forms do not make one; of an order with more a sample, spread evenly over GAP's numbers, of those that three
# elements generate. Needs gap-core and gap-smallgrp.
#
#   FROM=1 TO=1023 gap -q tests/tools/small_groups.g </dev/null >collective/finder/small_groups.txt
#
# A line an order: the order, with a ~ behind it where it is a sample, then a word a group, which is its generators with commas between
# them; a generator is the images of the points in turn, a character each, without fixed points at
# the end.

SetPrintFormattingStatus("*stdout*", false);
letters := "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_!#$%&'()*+./:;<=>?@[]^{|}";

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

# Whether it is Z_n^j : Z_k or Z_n : (Z_k x Z_l), extensions that do not split among them.
Made := function(G)
	return ForAny(NormalSubgroups(G), N -> Size(N) > 1 and IsAbelian(N) and
		Length(Set(AbelianInvariants(N))) = 1 and IsCyclic(G / N) or
		Size(N) > 1 and IsCyclic(N) and IsAbelian(G / N) and
		Length(MinimalGeneratingSet(G / N)) <= 2);
end;

# The word of a group; "" for one that commutes, or acts on too many points.
Word := function(G)
	local by, gens;
	if IsAbelian(G) then
		return "";
	fi;
	by := Compact(G);
	if NrMovedPoints(Image(by)) > 80 or NrMovedPoints(Image(by)) > 40 and
	   (NumberSmallGroups(Size(G)) > 20 or Made(G)) then
		return "";
	fi;
	if IsSolvableGroup(G) then
		gens := List(MinimalGeneratingSet(G), x -> Image(by, x));
	else
		gens := SmallGeneratingSet(Image(by));
	fi;
	return JoinStringsWithSeparator(List(gens, Written), ",");
end;

most := 30;
for n in [Int(GAPInfo.SystemEnvironment.FROM) .. Int(GAPInfo.SystemEnvironment.TO)] do
	words := [];
	count := 0;
	if SmallGroupsAvailable(n) then
		count := NumberSmallGroups(n);
	fi;
	if count <= 200 then
		words := Filtered(List([1 .. count], i -> Word(SmallGroup(n, i))), w -> w <> "");
	fi;
	# Three tries a word.
	for k in [0 .. 3 * most - 1] do
		if count > 200 and Length(words) < most then
			G := SmallGroup(n, 1 + QuoInt((k * 37 mod (3 * most)) * count, 3 * most));
			if IsSolvableGroup(G) and Length(MinimalGeneratingSet(G)) <= 3 then
				word := Word(G);
				if word <> "" then
					Add(words, word);
				fi;
			fi;
		fi;
	od;
	if Length(words) > 0 then
		mark := "";
		if count > 200 then
			mark := "~";
		fi;
		Print(n, mark, " ", JoinStringsWithSeparator(words, " "), "\n");
	fi;
od;
