/* When light that somebody else took away is brought back. Pure. */
#include "controller/daemon/change/auto_restore.h"

static bool is_restorable(const struct store_foreign *f)
{
	return f->outcome == STORE_FOREIGN_OPEN &&
	       (f->kind == STORE_FOREIGN_GONE ||
		f->kind == STORE_FOREIGN_PROGRAM);
}

/* base, doubled n - 1 times, within bounds. */
static int64_t back_off(int64_t base, int n)
{
	while (--n > 0 && base < RESTORE_MOST_NS) {
		base *= 2;
	}
	return base < RESTORE_MOST_NS ? base : RESTORE_MOST_NS;
}

/* Since an operator's change last put something right. */
static int64_t operator_ns(const struct store_foreign *v, int n)
{
	int64_t at = 0;

	for (int i = 0; i < n; i++) {
		if ((v[i].outcome == STORE_FOREIGN_REPAIRED ||
		     v[i].outcome == STORE_FOREIGN_ACCEPTED) &&
		    v[i].resolved_ns > at) {
			at = v[i].resolved_ns;
		}
	}
	return at;
}

/* The restores that count, each a change that may have several records. */
static int count_restores(const struct store_foreign *v, int n,
			  int64_t since_ns, int64_t *last_ns)
{
	int count = 0;

	*last_ns = 0;
	for (int i = 0; i < n; i++) {
		bool seen = v[i].outcome != STORE_FOREIGN_RESTORED ||
			    v[i].resolved_ns <= since_ns;

		for (int k = 0; k < i && !seen; k++) {
			seen = v[k].outcome == STORE_FOREIGN_RESTORED &&
			       v[k].change == v[i].change;
		}
		if (!seen) {
			count++;
			*last_ns = v[i].resolved_ns > *last_ns
					   ? v[i].resolved_ns : *last_ns;
		}
	}
	return count;
}

enum restore_verdict restore_decide(const struct store_foreign *v, int n,
				    int64_t after_ns, int tries,
				    int64_t last_try_ns, int64_t now_ns,
				    int64_t *at_ns)
{
	int64_t first_ns = INT64_MAX, since_ns, last_ns;
	int restores;

	for (int i = 0; i < n; i++) {
		if (v[i].outcome == STORE_FOREIGN_OPEN && v[i].given_up) {
			return RESTORE_NOTHING;
		}
		if (is_restorable(&v[i]) && v[i].noticed_ns < first_ns) {
			first_ns = v[i].noticed_ns;
		}
	}
	if (first_ns == INT64_MAX) {
		return RESTORE_NOTHING;
	}
	since_ns = operator_ns(v, n);
	since_ns = since_ns > now_ns - RESTORE_WINDOW_NS
			   ? since_ns : now_ns - RESTORE_WINDOW_NS;
	restores = count_restores(v, n, since_ns, &last_ns);
	if (restores >= RESTORE_FIGHT) {
		return RESTORE_FIGHT_ON;
	}
	*at_ns = first_ns + after_ns;
	if (restores && last_ns + back_off(10 * after_ns, restores) > *at_ns) {
		*at_ns = last_ns + back_off(10 * after_ns, restores);
	}
	if (tries && last_try_ns + back_off(10 * after_ns, tries) > *at_ns) {
		*at_ns = last_try_ns + back_off(10 * after_ns, tries);
	}
	return *at_ns <= now_ns ? RESTORE_NOW : RESTORE_WAIT;
}
