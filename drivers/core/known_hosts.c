/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys of hosts, by libssh2's reading of OpenSSH's files.
 *
 * libssh2 finds a name among plain and hashed ones, but cannot list the keys that a
 * name has. What types of key it has is found by asking about a key that no
 * host has: a type that is there says "another key", one that is not says "not
 * found".
 */
#include "drivers/core/known_hosts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <openssl/evp.h>

#include "lib/base/alloc.h"
#include "lib/base/buf.h"

#define LIST_MAX 256
#define SHA256_BYTES 32
#define REVOKED "revoked"	/* the name of all keys that are */
#define BASE64 "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
#define HASH_CHARS 28		/* of SHA-1, in base64 */
#define FINGERPRINT_MAX 48	/* 44 characters of base64 */

/* The types that are asked for, in this order where the file does not say. DSA,
 * and certificates, are not among them. */
static const struct key_type {
	int type, known;	/* LIBSSH2_HOSTKEY_TYPE_, LIBSSH2_KNOWNHOST_KEY_ */
	const char *name, *keyscan;
} types[] = {
	{ LIBSSH2_HOSTKEY_TYPE_ED25519, LIBSSH2_KNOWNHOST_KEY_ED25519, "ssh-ed25519", "ed25519" },
	{ LIBSSH2_HOSTKEY_TYPE_ECDSA_256, LIBSSH2_KNOWNHOST_KEY_ECDSA_256,
	  "ecdsa-sha2-nistp256", "ecdsa" },
	{ LIBSSH2_HOSTKEY_TYPE_ECDSA_384, LIBSSH2_KNOWNHOST_KEY_ECDSA_384,
	  "ecdsa-sha2-nistp384", "ecdsa" },
	{ LIBSSH2_HOSTKEY_TYPE_ECDSA_521, LIBSSH2_KNOWNHOST_KEY_ECDSA_521,
	  "ecdsa-sha2-nistp521", "ecdsa" },
	{ LIBSSH2_HOSTKEY_TYPE_RSA, LIBSSH2_KNOWNHOST_KEY_SSHRSA, "ssh-rsa", "rsa" },
};

#define N_TYPES (sizeof(types) / sizeof(types[0]))

struct known_hosts {
	LIBSSH2_KNOWNHOSTS *known, *revoked;
};

/* ---- the file ------------------------------------------------------------ */

static bool take_word(const char **at, const char *word)
{
	size_t n = strlen(word);

	if (strncmp(*at, word, n) != 0 || !strchr(" \t", (*at)[n])) {
		return false;
	}
	*at += n;
	*at += strspn(*at, " \t");
	return true;
}

/* Whether a name is plain, or hashed by SHA-1 as it should be: |1|SALT|HASH. libssh2 does not
 * free what it looks another length up with. */
static bool is_name(const char *name, size_t n)
{
	const char *hash;

	if (n < 3 || strncmp(name, "|1|", 3) != 0) {
		return true;
	}
	hash = name + 3 + strcspn(name + 3, "| \t") + 1;
	return (size_t)(hash - name) + HASH_CHARS == n && hash[-1] == '|' &&
	       strspn(hash, BASE64) == HASH_CHARS - 1 && hash[HASH_CHARS - 1] == '=';
}

/* A line, terminated. A key that is revoked is so whoever shows it. libssh2 takes a
 * name of one or two letters for a hashed one, unless it is one of several. */
static void take_line(struct known_hosts *k, const char *line)
{
	struct buf b = { 0 };
	bool revoked;
	size_t n;

	line += strspn(line, " \t");
	revoked = take_word(&line, "@revoked");
	n = strcspn(line, " \t");
	if (line[0] == '@' || line[0] == '#' || n == 0 || !is_name(line, n)) {
		return;
	}
	if (revoked) {
		buf_str(&b, REVOKED);
	} else {
		buf_add(&b, line, n);
		if (n < 3) {
			buf_char(&b, ',');
			buf_add(&b, line, n);
		}
	}
	buf_add(&b, line + n, strcspn(line + n, "\r"));
	libssh2_knownhost_readline(revoked ? k->revoked : k->known, b.data, b.len,
				   LIBSSH2_KNOWNHOST_FILE_OPENSSH);
	buf_fini(&b);
}

struct known_hosts *known_hosts_parse(LIBSSH2_SESSION *session, char *text)
{
	struct known_hosts *k = x_new(1, sizeof(*k));
	char *rest;

	k->known = x_have(libssh2_knownhost_init(session));
	k->revoked = x_have(libssh2_knownhost_init(session));
	for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		take_line(k, line);
	}
	return k;
}

void known_hosts_free(struct known_hosts *k)
{
	if (k) {
		libssh2_knownhost_free(k->known);
		libssh2_knownhost_free(k->revoked);
	}
	free(k);
}

/* ---- names and types ----------------------------------------------------- */

void known_hosts_name(const char *host, int port, char *name)
{
	snprintf(name, KNOWN_HOSTS_NAME_MAX, port == 22 ? "%s" : "[%s]:%d", host, port);
}

/* One of LIBSSH2_KNOWNHOST_CHECK_; key in base64. */
static int look_up(LIBSSH2_KNOWNHOSTS *list, const char *name, const char *key, int known_type)
{
	return libssh2_knownhost_check(list, name, key, strlen(key),
				       LIBSSH2_KNOWNHOST_TYPE_PLAIN |
				       LIBSSH2_KNOWNHOST_KEYENC_BASE64 | known_type, NULL);
}

static bool has_type(const struct known_hosts *k, const char *name, const struct key_type *t)
{
	return look_up(k->known, name, "none", t->known) == LIBSSH2_KNOWNHOST_CHECK_MISMATCH;
}

int known_hosts_prefer(struct known_hosts *k, LIBSSH2_SESSION *session, const char *name,
		       struct err *err)
{
	char list[LIST_MAX] = "", *text = "";
	int n = 0;

	for (int known = 1; known >= 0; known--) {
		for (size_t i = 0; i < N_TYPES; i++) {
			if (has_type(k, name, &types[i]) == known) {
				n += snprintf(list + n, sizeof(list) - (size_t)n, "%s%s",
					      n ? "," : "", types[i].name);
			}
		}
	}
	if (libssh2_session_method_pref(session, LIBSSH2_METHOD_HOSTKEY, list) == 0) {
		return 0;
	}
	libssh2_session_last_error(session, &text, NULL, 0);
	return err_set(err, WEFT_EUNAVAIL, "SSH, choosing types of host keys: %s", text);
}

/* ---- the key that was shown ---------------------------------------------- */

static const struct key_type *find_type(int type)
{
	for (size_t i = 0; i < N_TYPES; i++) {
		if (types[i].type == type) {
			return &types[i];
		}
	}
	return NULL;
}

/* As `ssh-keygen -l` prints it. */
static void make_fingerprint(LIBSSH2_SESSION *session, char text[FINGERPRINT_MAX])
{
	const char *hash = libssh2_hostkey_hash(session, LIBSSH2_HOSTKEY_HASH_SHA256);

	text[0] = '\0';
	if (hash) {
		EVP_EncodeBlock((unsigned char *)text, (const unsigned char *)hash, SHA256_BYTES);
		text[strcspn(text, "=")] = '\0';
	}
}

static int refuse(struct known_hosts *k, LIBSSH2_SESSION *session, const struct key_type *t,
		  const char *host, int port, const char *path, struct err *err)
{
	char name[KNOWN_HOSTS_NAME_MAX], print[FINGERPRINT_MAX];
	bool named = false;

	known_hosts_name(host, port, name);
	make_fingerprint(session, print);
	for (size_t i = 0; i < N_TYPES; i++) {
		named = named || has_type(k, name, &types[i]);
	}
	if (named) {
		return err_set(err, WEFT_EDENIED, "THE HOST KEY HAS CHANGED: %s now shows %s "
			       "SHA256:%s and %s has another: another machine may be "
			       "answering. Nothing was sent to it. If the change is right: "
			       "ssh-keygen -f %s -R '%s', then add the new key",
			       name, t->name, print, path, path, name);
	}
	return err_set(err, WEFT_EDENIED, "the host key of %s is not known: %s SHA256:%s is not "
		       "in %s. Compare it with the device's own, then: "
		       "ssh-keyscan -p %d -t %s %s >> %s",
		       name, t->name, print, path, port, t->keyscan, host, path);
}

int known_hosts_check(struct known_hosts *k, LIBSSH2_SESSION *session, const char *host,
		      int port, const char *path, struct err *err)
{
	char name[KNOWN_HOSTS_NAME_MAX], *base64;
	size_t len;
	int type, rc = 0;
	const char *key = libssh2_session_hostkey(session, &len, &type);
	const struct key_type *t = key ? find_type(type) : NULL;

	if (!t) {
		return err_set(err, WEFT_EDENIED, "%s shows no host key that is understood", host);
	}
	base64 = x_alloc(4 * (len / 3 + 1) + 1, 1);
	EVP_EncodeBlock((unsigned char *)base64, (const unsigned char *)key, (int)len);
	known_hosts_name(host, port, name);
	if (look_up(k->revoked, REVOKED, base64, t->known) == LIBSSH2_KNOWNHOST_CHECK_MATCH) {
		rc = err_set(err, WEFT_EDENIED, "the host key of %s is revoked in %s", name, path);
	} else if (look_up(k->known, name, base64, t->known) != LIBSSH2_KNOWNHOST_CHECK_MATCH) {
		rc = refuse(k, session, t, host, port, path, err);
	}
	free(base64);
	return rc;
}
