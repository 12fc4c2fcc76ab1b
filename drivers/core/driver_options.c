/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options of drivers, and what every configuration must hold.
 *
 * A class lists its options in a table with a default text for each; what is
 * not in the table is refused, and a default goes through the same checks as
 * what a user gave. So a driver's init never sees an option that is missing.
 */
#include "drivers/core/driver_base.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct drv_option *find_option(const struct drv_config *cfg, const char *key)
{
	for (int i = 0; i < cfg->n_options; i++) {
		if (strcmp(cfg->options[i].key, key) == 0) {
			return &cfg->options[i];
		}
	}
	return NULL;
}

static const struct drv_option_spec *find_spec(const struct drv_class *cls, const char *key)
{
	const struct drv_option_spec *s = cls->options;

	while (s && s->key && strcmp(s->key, key) != 0) {
		s++;
	}
	return s && s->key ? s : NULL;
}

static int unknown_option(const struct drv_class *cls, const char *key, struct err *err)
{
	char known[ERR_FILE_MAX] = "";
	size_t len = 0;

	for (const struct drv_option_spec *s = cls->options;
	     s && s->key && len < sizeof(known); s++) {
		len += snprintf(known + len, sizeof(known) - len, "%s%s", len ? ", " : "", s->key);
	}
	err_set(err, WEFT_EINVAL, "driver %s has no option '%s'", cls->name, key);
	err_hint(err, "options: %s", known[0] ? known : "none");
	return WEFT_EINVAL;
}

static int check_options(const struct drv_class *cls, const struct drv_config *cfg, struct err *err)
{
	for (int i = 0; i < cfg->n_options; i++) {
		const char *key = cfg->options[i].key;

		if (!find_spec(cls, key)) {
			return unknown_option(cls, key, err);
		}
		if (find_option(cfg, key) != &cfg->options[i]) {
			return err_set(err, WEFT_EINVAL, "option '%s' is given twice", key);
		}
	}
	return 0;
}

const char *base_option(const struct drv_class *cls, const struct drv_config *cfg, const char *key)
{
	const struct drv_option *o = find_option(cfg, key);
	const struct drv_option_spec *spec = o ? NULL : find_spec(cls, key);

	if (o) {
		return o->value;
	}
	return spec ? spec->def : NULL;
}

int base_option_int(const struct drv_class *cls, const struct drv_config *cfg, const char *key,
		    int64_t min, int64_t max, int64_t *out, struct err *err)
{
	const char *text = base_option(cls, cfg, key);
	char *end;

	errno = 0;
	*out = strtoll(text, &end, 10);
	if (errno || end == text || *end || *out < min || *out > max) {
		return err_set(err, WEFT_EINVAL,
			       "option %s=%s: expected a whole number from "
			       "%lld to %lld", key, text, (long long)min,
			       (long long)max);
	}
	return 0;
}

int base_option_ints(const struct drv_class *cls, const struct drv_config *cfg,
		     const struct base_number *numbers, size_t n, struct err *err)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < n; i++) {
		const struct base_number *x = &numbers[i];

		if (find_spec(cls, x->key)) {
			rc = base_option_int(cls, cfg, x->key, x->min, x->max, x->out, err);
		}
	}
	return rc;
}

int base_option_choice(const struct drv_class *cls, const struct drv_config *cfg, const char *key,
		       const char *first, const char *second, bool *is_first, struct err *err)
{
	const char *text = base_option(cls, cfg, key);

	*is_first = strcmp(text, first) == 0;
	if (!*is_first && strcmp(text, second) != 0) {
		return err_set(err, WEFT_EINVAL,
			       "option %s=%s: expected %s or %s", key, text,
			       first, second[0] ? second : "nothing");
	}
	return 0;
}

int base_option_path(const struct drv_class *cls, const struct drv_config *cfg, const char *key,
		     char path[SECRET_PATH_MAX], struct err *err)
{
	const char *text = base_option(cls, cfg, key);

	if ((text[0] && text[0] != '/') || strlen(text) >= SECRET_PATH_MAX) {
		/* Which is not shown: it may be the secret itself. */
		return err_set(err, WEFT_EINVAL, "option %s: expected an absolute path of at "
			       "most %d characters", key, SECRET_PATH_MAX - 1);
	}
	memcpy(path, text, strlen(text) + 1);
	return 0;
}

static int only_with_ssh(const struct drv_config *cfg, struct err *err)
{
	static const char *const keys[] = { "user", "key", "password_file", "known_hosts" };

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		if (find_option(cfg, keys[i])) {
			return err_set(err, WEFT_EINVAL, "option '%s' needs ssh=yes", keys[i]);
		}
	}
	return 0;
}

int base_option_ssh(const struct drv_class *cls, const struct drv_config *cfg,
		    struct ssh_conf *ssh, bool *use, struct err *err)
{
	const char *user;
	int rc;

	*use = false;
	if (!find_spec(cls, "ssh")) {
		return 0;
	}
	rc = base_option_choice(cls, cfg, "ssh", "yes", "no", use, err);
	if (rc || !*use) {
		return rc ? rc : only_with_ssh(cfg, err);
	}
	user = base_option(cls, cfg, "user");
	if (!user[0] || strlen(user) >= SSH_USER_MAX) {
		return err_set(err, WEFT_EINVAL, "option user='%s': ssh=yes needs whom to log in "
			       "as, 1 to %d characters", user, SSH_USER_MAX - 1);
	}
	memcpy(ssh->user, user, strlen(user) + 1);
	if ((rc = base_option_path(cls, cfg, "key", ssh->key, err)) ||
	    (rc = base_option_path(cls, cfg, "password_file", ssh->password_file, err)) ||
	    (rc = base_option_path(cls, cfg, "known_hosts", ssh->known_hosts, err))) {
		return rc;
	}
	if (!ssh->key[0] && !ssh->password_file[0]) {
		return err_set(err, WEFT_EINVAL, "ssh=yes needs one of the options key and "
			       "password_file");
	}
	return 0;
}

int base_two_sides(const struct drv_class *cls, const struct drv_config *cfg,
		   const char *why, struct err *err)
{
	if (!cfg->any_to_any) {
		return 0;
	}
	return err_set(err, WEFT_EUNSUPPORTED, "%s knows no any-to-any "
		       "devices%s%s", cls->name, why[0] ? ": " : "", why);
}

static int check_sizes(const struct drv_class *cls, const struct drv_config *cfg, struct err *err)
{
	bool ring = cls->kind == DRV_RING;
	int max = ring ? UINT16_MAX : DRV_MAX_PORTS;
	int min_out = cfg->any_to_any ? 0 : 1;

	if (cfg->n_in < 1 || cfg->n_in > max || cfg->n_out < min_out || cfg->n_out > max) {
		return err_set(err, WEFT_EINVAL,
			       "size %dx%d: %s must be from 1 to %d",
			       cfg->n_in, cfg->n_out,
			       ring ? "nodes and channels" : "ports a side",
			       max);
	}
	if (ring && (cfg->ring_fibres < 1 || cfg->ring_fibres > 255)) {
		return err_set(err, WEFT_EINVAL,
			       "%d fibres per direction: must be from 1 to 255",
			       cfg->ring_fibres);
	}
	if (cfg->any_to_any && cfg->n_out && cfg->n_out != cfg->n_in) {
		return err_set(err, WEFT_EINVAL,
			       "size %dx%d: an any-to-any switch has one side",
			       cfg->n_in, cfg->n_out);
	}
	return 0;
}

int base_check(const struct drv_class *cls, const struct drv_config *cfg, struct err *err)
{
	int rc = check_options(cls, cfg, err);

	if (rc == 0) {
		rc = check_sizes(cls, cfg, err);
	}
	if (rc) {
		return rc;
	}
	if (strlen(cfg->name) >= DRV_NAME_MAX) {
		return err_set(err, WEFT_EINVAL,
			       "device name is over %d characters",
			       DRV_NAME_MAX - 1);
	}
	if (cfg->address && strlen(cfg->address) >= DRV_ADDRESS_MAX) {
		return err_set(err, WEFT_EINVAL,
			       "address is over %d characters",
			       DRV_ADDRESS_MAX - 1);
	}
	if (cfg->timeout_ms < 0 || cfg->timeout_ms > 3600 * 1000) {
		return err_set(err, WEFT_EINVAL, "time-out must be from 0 to one hour");
	}
	return 0;
}

int base_netns(const struct drv_class *cls, const struct drv_config *cfg,
	       char *buf, size_t size, struct err *err)
{
	const char *fabric = base_option(cls, cfg, "fabric");
	const char *netns = base_option(cls, cfg, "netns");
	int n;

	if (!fabric[0] == !netns[0]) {
		return err_set(err, WEFT_EINVAL, "options: give either fabric "
			       "or netns, which name the namespace");
	}
	n = netns[0] ? snprintf(buf, size, "%s", netns) :
	    snprintf(buf, size, "weft.%s.%s", fabric, cfg->name);
	if (n >= (int)size || strchr(buf, '/')) {
		return err_set(err, WEFT_EINVAL, "option %s: no name of a "
			       "network namespace",
			       netns[0] ? "netns" : "fabric");
	}
	return 0;
}
