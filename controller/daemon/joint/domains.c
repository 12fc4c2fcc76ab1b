/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of failure domains, as weftd is given them. */
#include <stdio.h>
#include <string.h>

#include "controller/daemon/joint/joint.h"

#define MAX_DOMAINS 64

/* The next of the list: its length, *at after it. 0: there is none, or it is empty. */
static size_t next_domain(const char **at, const char **name)
{
	size_t n = strcspn(*at, ",");

	*name = *at;
	*at += n + ((*at)[n] == ',');
	return n;
}

bool joint_has_domain(const char *domains, const char *domain)
{
	const char *name;
	size_t n;

	while (*domains) {
		n = next_domain(&domains, &name);
		if (n == strlen(domain) && memcmp(name, domain, n) == 0) {
			return true;
		}
	}
	return false;
}

int joint_name(const char *domains, char name[JOINT_NAME_MAX], struct err *err)
{
	const char *at = domains, *one;
	char text[JOINT_NAME_MAX];
	size_t n;

	name[0] = '\0';
	do {
		n = next_domain(&at, &one);
		if (n == 0 || n >= sizeof(text) || strcspn(one, "/ \t") < n) {
			return err_set(err, WEFT_EUSAGE, "--domains: \"%s\" is no list of failure "
				       "domains", domains);
		}
		snprintf(text, sizeof(text), "%.*s", (int)n, one);
		if (joint_has_domain(at, text)) {
			return err_set(err, WEFT_EUSAGE, "--domains: %s is there twice", text);
		}
		if (!name[0]) {
			memcpy(name, text, n + 1);
		}
	} while (*at || at[-1] == ',');
	return strlen(domains) < JOINT_DOMAINS_MAX ? 0 :
	       err_set(err, WEFT_EUSAGE, "--domains: longer than %d bytes", JOINT_DOMAINS_MAX - 1);
}

int joint_lead_domains(struct apply *apply, const char *domains, struct err *err)
{
	char text[JOINT_DOMAINS_MAX], *rest = text;
	const char *v[MAX_DOMAINS];
	int n = 0;

	snprintf(text, sizeof(text), "%s", domains);
	while (rest && n < MAX_DOMAINS) {
		v[n++] = strsep(&rest, ",");
	}
	if (rest) {
		return err_set(err, WEFT_EUSAGE, "--domains: more than %d", MAX_DOMAINS);
	}
	apply_lead_domains(apply, v, n);
	return 0;
}
