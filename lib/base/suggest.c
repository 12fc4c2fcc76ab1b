/* What a misspelt word may have meant; see suggest.h. */
#include <ctype.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/suggest.h"

#define NEAREST_MAX 63

static int min3(int a, int b, int c)
{
	int m = a < b ? a : b;

	return m < c ? m : c;
}

/* Edits (insert, delete, replace, swap neighbours) from a to b. */
static int edit_distance(const char *a, const char *b)
{
	int rows[3][NEAREST_MAX + 1];
	int *before = rows[0], *last = rows[1], *row = rows[2];
	int n = (int)strlen(b);

	for (int j = 0; j <= n; j++) {
		last[j] = j;
	}
	for (int i = 1; a[i - 1]; i++) {
		int *spare = before;

		row[0] = i;
		for (int j = 1; j <= n; j++) {
			row[j] = min3(last[j] + 1, row[j - 1] + 1,
				      last[j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] &&
			    a[i - 2] == b[j - 1]) {
				row[j] = min3(row[j], before[j - 2] + 1,
					      INT_MAX);
			}
		}
		before = last;
		last = row;
		row = spare;
	}
	return last[n];
}

/* "gpu07" and "gpu70", but also "gpu7" and "gpu70". */
static bool differ_in_digits_only(const char *a, const char *b)
{
	for (;;) {
		while (isdigit((unsigned char)*a)) {
			a++;
		}
		while (isdigit((unsigned char)*b)) {
			b++;
		}
		if (*a != *b) {
			return false;
		}
		if (!*a) {
			return true;
		}
		a++;
		b++;
	}
}

void nearest_init(struct nearest *n, const char *word)
{
	size_t len = strlen(word);

	*n = (struct nearest){ .word = word };
	/* At most a third of the letters may be wrong, and never all. */
	n->distance = len < 3 || len > NEAREST_MAX ? 0
		      : len < 6			   ? 2
						   : (int)len / 3 + 1;
}

void nearest_try(struct nearest *n, const char *candidate)
{
	int len = (int)strnlen(candidate, NEAREST_MAX + 1);
	int own = (int)strnlen(n->word, NEAREST_MAX + 1);
	int d;

	if (len > NEAREST_MAX || own > NEAREST_MAX ||
	    differ_in_digits_only(n->word, candidate)) {
		return;
	}
	if (own >= 3 && strncmp(n->word, candidate, (size_t)own) == 0) {
		/* "pass" for "pass-by" is one mistake, however long it is. */
		d = 1;
	} else if (abs(len - own) < n->distance) {
		d = edit_distance(n->word, candidate);
	} else {
		return;
	}
	if (d < n->distance) {
		n->distance = d;
		n->best = candidate;
	}
}

bool nearest_hint(const struct nearest *n, struct err *e)
{
	if (n->best) {
		err_hint(e, "did you mean '%s'?", n->best);
	}
	return n->best != NULL;
}
