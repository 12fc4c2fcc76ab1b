/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SSH by libssh2, which is given bytes by calls of ours instead of a socket.
 *
 * Opening is a list of steps. Each asks libssh2 to go on with the same call until
 * that stops saying EAGAIN, so steps() is run again whenever bytes have come.
 * Sending never waits, as what goes out is kept by the connection's owner.
 *
 * A key is tried before a password, and a password in the one form that the device
 * names first: some devices lock a user out after few failures.
 */
#include "drivers/core/ssh.h"

#include <errno.h>
#include <libssh2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/core/known_hosts.h"
#include "drivers/core/secret.h"
#include "lib/base/alloc.h"
#include "lib/base/file.h"

#define KNOWN_HOSTS_MAX (4 << 20)
#define METHODS_MAX 128
#define CHUNK_BYTES (16 << 10)
/* A terminal wraps what is longer, and the devices' tables are not. */
#define PTY_TYPE "vt100"
#define PTY_COLUMNS 511
#define PTY_LINES 24
/* How a key of OpenSSH's own format begins that no passphrase protects: its magic
 * word and the cipher "none", in base64. */
#define OPENSSH_HEAD "-----BEGIN OPENSSH PRIVATE KEY-----\n"
#define OPENSSH_PLAIN OPENSSH_HEAD "b3BlbnNzaC1rZXktdjEAAAAABG5vbmU"

/* What is no longer safe is not offered. */
static const struct {
	int method;
	const char *names;
} preferences[] = {
	{ LIBSSH2_METHOD_KEX, "curve25519-sha256,curve25519-sha256@libssh.org,"
	  "ecdh-sha2-nistp256,ecdh-sha2-nistp384,ecdh-sha2-nistp521,"
	  "diffie-hellman-group-exchange-sha256,diffie-hellman-group16-sha512,"
	  "diffie-hellman-group18-sha512,diffie-hellman-group14-sha256,"
	  "diffie-hellman-group14-sha1" },
	{ LIBSSH2_METHOD_CRYPT_CS, "aes128-ctr,aes192-ctr,aes256-ctr" },
	{ LIBSSH2_METHOD_CRYPT_SC, "aes128-ctr,aes192-ctr,aes256-ctr" },
	{ LIBSSH2_METHOD_MAC_CS, "hmac-sha2-256,hmac-sha2-512,hmac-sha1" },
	{ LIBSSH2_METHOD_MAC_SC, "hmac-sha2-256,hmac-sha2-512,hmac-sha1" },
};

struct ssh {
	const struct ssh_conf *conf;
	char host[KNOWN_HOSTS_NAME_MAX];
	int port, fd;
	ssh_send_fn send;
	void *send_arg;
	LIBSSH2_SESSION *session;
	LIBSSH2_CHANNEL *channel;	/* the session's */
	struct known_hosts *known;
	char *key, *password;		/* until logged in; or NULL */
	size_t key_len;
	bool refused_key;
	bool prompted;			/* the password was given */
	char methods[METHODS_MAX];	/* of logging in, as the device lists them */
	int at_step;
	const char *in;			/* from the connection, and not taken */
	size_t n_in;
	bool over;			/* the connection is used no more */
	struct buf out;			/* for the shell, and not yet taken */
};

/* ---- libssh2's calls ----------------------------------------------------- */

static LIBSSH2_RECV_FUNC(on_recv)
{
	struct ssh *s = *abstract;
	size_t n = length < s->n_in ? length : s->n_in;

	(void)socket;
	(void)flags;
	if (n == 0) {
		return s->over ? -ECONNRESET : -EAGAIN;
	}
	memcpy(buffer, s->in, n);
	s->in += n;
	s->n_in -= n;
	return (ssize_t)n;
}

static LIBSSH2_SEND_FUNC(on_send)
{
	struct ssh *s = *abstract;

	(void)socket;
	(void)flags;
	return s->over || s->send(buffer, length, s->send_arg) ? -EPIPE : (ssize_t)length;
}

/* What libssh2 said last, as an error. */
static int failed(struct ssh *s, const char *doing, struct err *err)
{
	char *text = "";

	libssh2_session_last_error(s->session, &text, NULL, 0);
	return err_set(err, WEFT_EUNAVAIL, "SSH, %s: %s", doing, text);
}

/* ---- steps: 1 done, 0 wait for bytes, negative an error ------------------- */

/* The same, from what libssh2 returned. */
static int judge(struct ssh *s, int rc, struct err *err)
{
	return rc == 0 ? 1 : rc == LIBSSH2_ERROR_EAGAIN ? 0 : failed(s, ssh_stage(s), err);
}

static int step_handshake(struct ssh *s, struct err *err)
{
	int rc = judge(s, libssh2_session_handshake(s->session, s->fd), err);

	if (rc <= 0) {
		return rc;
	}
	rc = known_hosts_check(s->known, s->session, s->host, s->port, s->conf->known_hosts, err);
	return rc ? rc : 1;
}

static int step_methods(struct ssh *s, struct err *err)
{
	const char *list = libssh2_userauth_list(s->session, s->conf->user,
						 (unsigned)strlen(s->conf->user));

	if (list) {
		snprintf(s->methods, sizeof(s->methods), "%s", list);
	}
	return list || libssh2_userauth_authenticated(s->session) ? 1 :
	       judge(s, libssh2_session_last_errno(s->session), err);
}

static int step_key(struct ssh *s, struct err *err)
{
	int rc;

	if (!s->key || libssh2_userauth_authenticated(s->session) ||
	    !strstr(s->methods, "publickey")) {
		return 1;
	}
	rc = libssh2_userauth_publickey_frommemory(s->session, s->conf->user,
						   strlen(s->conf->user), NULL, 0,
						   s->key, s->key_len, NULL);
	switch (rc) {
	case LIBSSH2_ERROR_AUTHENTICATION_FAILED:
	case LIBSSH2_ERROR_PUBLICKEY_UNVERIFIED:
		s->refused_key = true;
		return 1;
	case LIBSSH2_ERROR_FILE:
	case LIBSSH2_ERROR_METHOD_NONE:
	case LIBSSH2_ERROR_METHOD_NOT_SUPPORTED:
		return err_set(err, WEFT_EDENIED, "key %s is none that can be read: "
			       "make one by ssh-keygen -t ed25519", s->conf->key);
	default:
		return judge(s, rc, err);
	}
}

static int denied(const struct ssh *s, const char *what, struct err *err)
{
	return err_set(err, WEFT_EDENIED,
		       "SSH: user '%s' is not let in, the device takes %s: %s%s%s%s",
		       s->conf->user, s->methods, s->refused_key ? "the key " : "",
		       s->refused_key ? s->conf->key : "",
		       s->refused_key ? " was refused (of RSA keys the SHA-1 may be: use Ed25519); "
			       : "",
		       what);
}

/* The same password for each question that is not echoed, once. */
static LIBSSH2_USERAUTH_KBDINT_RESPONSE_FUNC(on_questions)
{
	struct ssh *s = *abstract;

	(void)name;
	(void)name_len;
	(void)instruction;
	(void)instruction_len;
	for (int i = 0; i < num_prompts; i++) {
		bool give = !prompts[i].echo && !s->prompted;

		responses[i].text = x_dup(give ? s->password : "");
		responses[i].length = (unsigned)strlen(responses[i].text);
	}
	s->prompted = s->prompted || num_prompts > 0;
}

static int step_password(struct ssh *s, struct err *err)
{
	const char *user = s->conf->user;
	unsigned n = (unsigned)strlen(user);
	int rc;

	if (libssh2_userauth_authenticated(s->session)) {
		return 1;
	}
	if (!s->password) {
		return denied(s, "there is no password_file", err);
	}
	if (strstr(s->methods, "password")) {
		rc = libssh2_userauth_password_ex(s->session, user, n, s->password,
						  (unsigned)strlen(s->password), NULL);
	} else if (strstr(s->methods, "keyboard-interactive")) {
		rc = libssh2_userauth_keyboard_interactive_ex(s->session, user, n, on_questions);
	} else {
		return denied(s, "it takes no password", err);
	}
	if (rc == LIBSSH2_ERROR_AUTHENTICATION_FAILED || rc == LIBSSH2_ERROR_PASSWORD_EXPIRED) {
		return denied(s, rc == LIBSSH2_ERROR_PASSWORD_EXPIRED ? "the password has expired" :
			      "the password was refused", err);
	}
	return judge(s, rc, err);
}

static void forget_secrets(struct ssh *s)
{
	secret_free(s->key);
	secret_free(s->password);
	s->key = s->password = NULL;
}

static int step_channel(struct ssh *s, struct err *err)
{
	forget_secrets(s);
	s->channel = libssh2_channel_open_session(s->session);
	return s->channel ? 1 : judge(s, libssh2_session_last_errno(s->session), err);
}

static int step_terminal(struct ssh *s, struct err *err)
{
	return judge(s, libssh2_channel_request_pty_ex(s->channel, PTY_TYPE,
						       (unsigned)strlen(PTY_TYPE), NULL, 0,
						       PTY_COLUMNS, PTY_LINES, 0, 0),
		     err);
}

static int step_shell(struct ssh *s, struct err *err)
{
	return judge(s, libssh2_channel_shell(s->channel), err);
}

static const struct ssh_step {
	const char *name;
	int (*run)(struct ssh *s, struct err *err);
} steps[] = {
	{ "exchanging keys", step_handshake },
	{ "asking how to log in", step_methods },
	{ "logging in by key", step_key },
	{ "logging in by password", step_password },
	{ "opening a channel", step_channel },
	{ "asking for a terminal", step_terminal },
	{ "starting the shell", step_shell },
};

#define N_STEPS ((int)(sizeof(steps) / sizeof(steps[0])))

const char *ssh_stage(const struct ssh *s)
{
	return ssh_is_open(s) ? "waiting for its prompt" : steps[s->at_step].name;
}

bool ssh_is_open(const struct ssh *s)
{
	return s->at_step == N_STEPS;
}

/* ---- bytes --------------------------------------------------------------- */

/* Gives the channel what waits for it, as far as the device lets it. */
static int flush(struct ssh *s, struct err *err)
{
	while (s->out.len > 0) {
		ssize_t n = libssh2_channel_write(s->channel, s->out.data, s->out.len);

		if (n == 0 || n == LIBSSH2_ERROR_EAGAIN) {
			return 0;
		}
		if (n < 0) {
			return failed(s, "sending", err);
		}
		buf_consume(&s->out, (size_t)n);
	}
	return 0;
}

static int read_shell(struct ssh *s, struct buf *text, struct err *err)
{
	char bytes[CHUNK_BYTES];
	ssize_t n;

	while ((n = libssh2_channel_read(s->channel, bytes, sizeof(bytes))) > 0) {
		buf_add(text, bytes, (size_t)n);
	}
	if (n < 0 && n != LIBSSH2_ERROR_EAGAIN) {
		return failed(s, "reading", err);
	}
	return n == 0 && libssh2_channel_eof(s->channel) ?
	       err_set(err, WEFT_EUNAVAIL, "the device ended the shell") : 0;
}

int ssh_take(struct ssh *s, const void *bytes, size_t len, struct buf *text, struct err *err)
{
	int rc = 1;

	s->in = bytes;
	s->n_in = len;
	while (rc > 0 && !ssh_is_open(s)) {
		rc = steps[s->at_step].run(s, err);
		s->at_step += rc > 0;
	}
	if (rc <= 0) {
		return rc;
	}
	rc = read_shell(s, text, err);
	return rc ? rc : flush(s, err);
}

int ssh_write(struct ssh *s, const void *bytes, size_t len, struct err *err)
{
	buf_add(&s->out, bytes, len);
	return flush(s, err);
}

/* ---- life ---------------------------------------------------------------- */

static bool is_encrypted(const char *key)
{
	return strstr(key, "ENCRYPTED") ||
	       (strncmp(key, OPENSSH_HEAD, strlen(OPENSSH_HEAD)) == 0 &&
		strncmp(key, OPENSSH_PLAIN, strlen(OPENSSH_PLAIN)) != 0);
}

static int read_secrets(struct ssh *s, struct err *err)
{
	const struct ssh_conf *conf = s->conf;
	int rc = conf->key[0] ? secret_read(conf->key, &s->key, &s->key_len, err) : 0;

	if (rc == 0 && s->key && is_encrypted(s->key)) {
		rc = secret_unusable(conf->key, "the key has a passphrase, and weft asks for "
				     "none: take it off with ssh-keygen -p", err);
	}
	if (rc == 0 && conf->password_file[0]) {
		rc = secret_read_line(conf->password_file, &s->password, err);
	}
	return rc ? err_wrap(err, "SSH") : 0;
}

/* A file that is not there knows no host. */
static int read_known_hosts(struct ssh *s, struct err *err)
{
	char name[KNOWN_HOSTS_NAME_MAX], none[] = "", *text = NULL;
	size_t len;
	int rc = file_read(s->conf->known_hosts, KNOWN_HOSTS_MAX, &text, &len, err);

	if (rc && rc != WEFT_ENOTFOUND) {
		return secret_unusable("SSH: known_hosts", err->msg, err);
	}
	s->known = known_hosts_parse(s->session, text ? text : none);
	free(text);
	known_hosts_name(s->host, s->port, name);
	return known_hosts_prefer(s->known, s->session, name, err);
}

static int start(struct ssh *s, struct err *err)
{
	int rc = read_secrets(s, err);

	if (rc) {
		return rc;
	}
	s->session = x_have(libssh2_session_init_ex(NULL, NULL, NULL, s));
	libssh2_session_set_blocking(s->session, 0);
	libssh2_session_callback_set(s->session, LIBSSH2_CALLBACK_RECV, on_recv);
	libssh2_session_callback_set(s->session, LIBSSH2_CALLBACK_SEND, on_send);
	for (size_t i = 0; i < sizeof(preferences) / sizeof(preferences[0]); i++) {
		if (libssh2_session_method_pref(s->session, preferences[i].method,
						preferences[i].names)) {
			return failed(s, "choosing methods", err);
		}
	}
	rc = read_known_hosts(s, err);
	return rc ? rc : ssh_take(s, NULL, 0, NULL, err);
}

int ssh_new(const struct ssh_conf *conf, const char *host, int port, int fd,
	    ssh_send_fn send, void *arg, struct ssh **out, struct err *err)
{
	struct ssh *s = x_new(1, sizeof(*s));
	int rc;

	*out = NULL;
	s->conf = conf;
	snprintf(s->host, sizeof(s->host), "%s", host);
	s->port = port;
	s->fd = fd;
	s->send = send;
	s->send_arg = arg;
	rc = start(s, err);
	if (rc) {
		ssh_free(s);
		return rc;
	}
	*out = s;
	return 0;
}

/* libssh2 would wait for the channel's end, were the connection not over. The known hosts
 * are freed through their session: before it. */
void ssh_free(struct ssh *s)
{
	if (!s) {
		return;
	}
	known_hosts_free(s->known);
	if (s->session) {
		s->n_in = 0;
		if (ssh_is_open(s)) {
			libssh2_session_disconnect(s->session, "session is over");
		}
		s->over = true;
		libssh2_session_free(s->session);
	}
	forget_secrets(s);
	buf_fini(&s->out);
	free(s);
}
