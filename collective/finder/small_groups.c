/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small groups that do not commute, by generators: all of an order where these are at most 200, as
 * far as they act on few points, else a sample. What random matrices and permutations find of them
 * is a part.
 *
 * The text, small_groups.txt, is made by tests/tools/small_groups.g and put into the program by the
 * assembler: a line an order, with a ~ behind it where it is a sample, after which stands a word a
 * group, its generators with commas between them. A generator is the images of points 0, 1, .. in
 * turn, a character each, without fixed points at the end.
 */
#include <stdlib.h>
#include <string.h>

#include "collective/finder/private.h"

#define MAX_GENERATORS 12

extern const char small_groups_text[], small_groups_end[];

__asm__(".pushsection .rodata\n"
	"small_groups_text:\n"
	".incbin \"collective/finder/small_groups.txt\"\n"
	"small_groups_end:\n"
	".popsection\n");

static int point_of(char c)
{
	static const char points[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				     "abcdefghijklmnopqrstuvwxyz-_!#$%&'()*+./:;<=>?@[]^{|}";

	return (int)(strchr(points, c) - points);
}

/* The group of a word that ends before `end`. */
static void add_word(int n, const char *word, const char *end, struct finder_groups *out)
{
	struct topo_permutation p[MAX_GENERATORS];
	struct finder_group g = { .score = 0 };
	int count = 0, points = 0;

	while (word < end && count < MAX_GENERATORS) {
		int at = 0;

		for (; word < end && *word != ','; word++) {
			p[count].image[at++] = (uint8_t)point_of(*word);
		}
		points = at > points ? at : points;
		for (; at < TOPO_CAYLEY_MAX_POINTS; at++) {
			p[count].image[at] = (uint8_t)at;
		}
		count++;
		word += word < end;
	}
	if (topo_cayley_generate(&g.g, points, p, count) == 0 && topo_cayley_order(&g.g) == n) {
		vec_push(out, g);
	}
}

bool finder_add_small(int n, struct finder_groups *out)
{
	const char *line = small_groups_text, *end = line;
	bool all;

	for (; line < small_groups_end; line = end + 1) {
		end = memchr(line, '\n', (size_t)(small_groups_end - line));
		if (atoi(line) < n) {
			continue;
		}
		if (atoi(line) > n) {
			return false;
		}
		all = line[strspn(line, "0123456789")] != '~';
		while ((line = memchr(line, ' ', (size_t)(end - line)))) {
			const char *next;

			line++;
			next = memchr(line, ' ', (size_t)(end - line));
			add_word(n, line, next ? next : end, out);
		}
		return all;
	}
	return false;
}
