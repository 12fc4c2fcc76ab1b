/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Descriptors: those from FIRST_FD on stand for objects of this kernel, the others are real
 * ones, of files, and go on to libc. All processes share the numbers; each number has an owner,
 * with which it is closed.
 */
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "tests/sim/kernel/kernel.h"

static struct object *objects[FD_LIMIT];
static struct sim_process *owners[FD_LIMIT];
static int n_fds = FIRST_FD;	/* above it none is in use */

struct object *sim_object(int fd)
{
	return fd >= FIRST_FD && fd < n_fds ? objects[fd] : NULL;
}

struct object *sim_new_object(enum object_kind kind, bool nonblocking)
{
	struct object *o = calloc(1, sizeof(*o));

	o->kind = kind;
	o->nonblocking = nonblocking;
	o->owner = sim_self();
	o->machine = sim_current ? sim_current->machine : NULL;
	o->peer_gone_at = NEVER;
	o->last = &o->first;
	return o;
}

int sim_put(struct object *o)
{
	for (int fd = FIRST_FD; fd < FD_LIMIT; fd++) {
		if (!objects[fd]) {
			objects[fd] = o;
			owners[fd] = sim_self();
			o->refs++;
			n_fds = fd >= n_fds ? fd + 1 : n_fds;
			return fd;
		}
	}
	errno = EMFILE;
	return -1;
}

static void close_object(int fd, bool silently)
{
	struct object *o = objects[fd];

	objects[fd] = NULL;
	owners[fd] = NULL;
	sim_epoll_forget(fd);
	sim_drop(o, silently);
}

int close(int fd)
{
	if (fd < FIRST_FD) {
		if (fd >= 0) {
			owners[fd] = NULL;
		}
		return LIBC(close)(fd);
	}
	if (!sim_object(fd)) {
		errno = EBADF;
		return -1;
	}
	close_object(fd, false);
	return 0;
}

void sim_close_all(struct sim_process *p, bool silently)
{
	for (int fd = 3; fd < n_fds; fd++) {
		if (owners[fd] != p) {
			continue;
		}
		if (fd < FIRST_FD) {
			close(fd);
		} else {
			close_object(fd, silently);
		}
	}
}

int sim_open_count(const struct sim_process *p)
{
	int n = p->ended ? p->left_open : 0;

	for (int fd = FIRST_FD; fd < n_fds; fd++) {
		n += objects[fd] && owners[fd] == p;
	}
	return n;
}

/* ---- real files: whose they are ---- */

static int note_file(int fd)
{
	if (fd >= 3 && fd < FIRST_FD) {
		owners[fd] = sim_self();
	}
	return fd;
}

#define OPEN(name) \
	int name(const char *path, int flags, ...) \
	{ \
		va_list ap; \
		int mode; \
		va_start(ap, flags); \
		mode = va_arg(ap, int); \
		va_end(ap); \
		return note_file(LIBC(name)(path, flags, mode)); \
	}
OPEN(open)
OPEN(open64)

/* ---- bytes ---- */

static ssize_t fail(int error)
{
	errno = error;
	return -1;
}

static bool is_writable(struct sim_process *p, void *arg)
{
	return sim_mask(p, arg) & (EPOLLOUT | EPOLLERR | EPOLLHUP);
}

static bool is_readable(struct sim_process *p, void *arg)
{
	return sim_mask(p, arg) & (EPOLLIN | EPOLLERR | EPOLLHUP);
}

static ssize_t put_stream(struct object *o, const void *bytes, size_t n)
{
	size_t room;

	if (o->reset) {
		return fail(ECONNRESET);
	}
	if (o->kind != PIPE_OUT && (!o->connected || o->sent_end || o->error)) {
		return fail(EPIPE);
	}
	if (o->silent) {	/* its machine is away: no word of it */
		if (!o->peer_machine->off) {
			o->reset = true;
			sim_ask_again(o->owner, sim_time);
		}
		return (ssize_t)n;
	}
	if (!o->peer) {
		return sim_due(NULL, o->peer_gone_at) ? fail(EPIPE) : (ssize_t)n;
	}
	if (!sim_due(NULL, o->connected_at)) {
		return fail(EAGAIN);
	}
	room = o->peer->bytes < BUFFER_BYTES ? BUFFER_BYTES - o->peer->bytes : 0;
	if (room == 0) {
		return fail(EAGAIN);
	}
	n = n < room ? n : room;
	sim_deliver(o->peer, o, bytes, n, false);
	return (ssize_t)n;
}

static ssize_t put_bytes(struct object *o, const void *bytes, size_t n, bool wait)
{
	uint64_t more;
	ssize_t done;

	sim_call();
	if (o->kind == EVENTS) {
		memcpy(&more, bytes, sizeof(more));
		o->count += more;
		o->edges++;
		sim_ask_again(o->owner, sim_time);
		return sizeof(more);
	}
	if (o->kind == DATAGRAM) {
		return (ssize_t)n;	/* lost */
	}
	done = put_stream(o, bytes, n);
	if (done < 0 && errno == EAGAIN && wait && !o->nonblocking) {
		sim_wait_for(is_writable, o, NEVER, "write");
		done = put_stream(o, bytes, n);
	}
	return done;
}

static ssize_t take_stream(struct object *o, void *bytes, size_t n, bool peek)
{
	struct segment *s = o->first;

	sim_count_arrivals(o);
	if (o->reset || o->error) {
		return fail(o->error ? o->error : ECONNRESET);
	}
	if (!s || !sim_due(NULL, s->at)) {
		return !s && sim_due(NULL, o->peer_gone_at) ? 0 : fail(EAGAIN);
	}
	if (s->end) {
		return 0;
	}
	n = s->len - s->taken < n ? s->len - s->taken : n;
	memcpy(bytes, s->bytes + s->taken, n);
	if (peek) {
		return (ssize_t)n;
	}
	s->taken += n;
	if (o->bytes >= BUFFER_BYTES && o->peer) {	/* there is room again */
		o->peer->edges++;
		sim_ask_again(o->peer->owner, sim_time);
	}
	o->bytes -= n;
	if (s->taken == s->len) {
		o->first = s->next;
		o->last = o->first ? o->last : &o->first;
		free(s);
	}
	return (ssize_t)n;
}

static ssize_t take_count(struct object *o, void *bytes)
{
	if (o->count == 0) {
		return fail(EAGAIN);
	}
	memcpy(bytes, &o->count, sizeof(o->count));
	o->count = 0;
	return sizeof(o->count);
}

static ssize_t take_bytes(struct object *o, void *bytes, size_t n, int flags)
{
	ssize_t done;

	sim_call();
	if (o->kind == EVENTS) {
		return take_count(o, bytes);
	}
	if (o->kind != SOCKET && o->kind != PIPE_IN) {
		return fail(EAGAIN);
	}
	done = take_stream(o, bytes, n, flags & MSG_PEEK);
	if (done < 0 && errno == EAGAIN && !o->nonblocking && !(flags & MSG_DONTWAIT)) {
		sim_wait_for(is_readable, o, NEVER, "read");
		done = take_stream(o, bytes, n, flags & MSG_PEEK);
	}
	return done;
}

ssize_t read(int fd, void *bytes, size_t n)
{
	struct object *o = sim_object(fd);

	return o ? take_bytes(o, bytes, n, 0) : LIBC(read)(fd, bytes, n);
}

ssize_t write(int fd, const void *bytes, size_t n)
{
	struct object *o = sim_object(fd);

	return o ? put_bytes(o, bytes, n, true) : LIBC(write)(fd, bytes, n);
}

ssize_t recv(int fd, void *bytes, size_t n, int flags)
{
	struct object *o = sim_object(fd);

	return o ? take_bytes(o, bytes, n, flags) : LIBC(recv)(fd, bytes, n, flags);
}

ssize_t send(int fd, const void *bytes, size_t n, int flags)
{
	struct object *o = sim_object(fd);

	return o ? put_bytes(o, bytes, n, !(flags & MSG_DONTWAIT)) :
		   LIBC(send)(fd, bytes, n, flags);
}

/* Of several buffers, as far as one call takes or has them. */
static ssize_t each_buffer(struct object *o, const struct iovec *v, int n, bool out)
{
	ssize_t all = 0, done;

	for (int i = 0; i < n; i++) {
		done = out ? put_bytes(o, v[i].iov_base, v[i].iov_len, all == 0) :
			     take_bytes(o, v[i].iov_base, v[i].iov_len,
					all > 0 ? MSG_DONTWAIT : 0);
		if (done < 0) {
			return all > 0 ? all : done;
		}
		all += done;
		if ((size_t)done < v[i].iov_len) {
			break;
		}
	}
	return all;
}

ssize_t writev(int fd, const struct iovec *v, int n)
{
	struct object *o = sim_object(fd);

	return o ? each_buffer(o, v, n, true) : LIBC(writev)(fd, v, n);
}

ssize_t readv(int fd, const struct iovec *v, int n)
{
	struct object *o = sim_object(fd);

	return o ? each_buffer(o, v, n, false) : LIBC(readv)(fd, v, n);
}

ssize_t sendmsg(int fd, const struct msghdr *m, int flags)
{
	struct object *o = sim_object(fd);

	return o ? each_buffer(o, m->msg_iov, (int)m->msg_iovlen, true) :
		   LIBC(sendmsg)(fd, m, flags);
}

ssize_t recvmsg(int fd, struct msghdr *m, int flags)
{
	struct object *o = sim_object(fd);

	if (!o) {
		return LIBC(recvmsg)(fd, m, flags);
	}
	m->msg_controllen = 0;
	m->msg_flags = 0;
	return each_buffer(o, m->msg_iov, (int)m->msg_iovlen, false);
}

ssize_t recvfrom(int fd, void *bytes, size_t n, int flags, struct sockaddr *restrict a,
		 socklen_t *restrict len)
{
	struct object *o = sim_object(fd);

	return o ? take_bytes(o, bytes, n, flags) : LIBC(recvfrom)(fd, bytes, n, flags, a, len);
}

ssize_t sendto(int fd, const void *bytes, size_t n, int flags, const struct sockaddr *a,
	       socklen_t len)
{
	struct object *o = sim_object(fd);

	return o ? put_bytes(o, bytes, n, true) : LIBC(sendto)(fd, bytes, n, flags, a, len);
}

/* As libraries that are built with checks of their buffers call them. */
ssize_t __read_chk(int fd, void *bytes, size_t n, size_t room);
ssize_t __recv_chk(int fd, void *bytes, size_t n, size_t room, int flags);
ssize_t __recvfrom_chk(int fd, void *bytes, size_t n, size_t room, int flags,
		       struct sockaddr *a, socklen_t *len);

ssize_t __read_chk(int fd, void *bytes, size_t n, size_t room)
{
	return read(fd, bytes, n < room ? n : room);
}

ssize_t __recv_chk(int fd, void *bytes, size_t n, size_t room, int flags)
{
	return recv(fd, bytes, n < room ? n : room, flags);
}

ssize_t __recvfrom_chk(int fd, void *bytes, size_t n, size_t room, int flags,
		       struct sockaddr *a, socklen_t *len)
{
	return recvfrom(fd, bytes, n < room ? n : room, flags, a, len);
}

/* ---- making, and asking about them ---- */

int pipe2(int out[2], int flags)
{
	struct object *in = sim_new_object(PIPE_IN, flags & O_NONBLOCK);
	struct object *to = sim_new_object(PIPE_OUT, flags & O_NONBLOCK);

	in->peer = to;
	to->peer = in;
	out[0] = sim_put(in);
	out[1] = sim_put(to);
	return out[1] < 0 ? -1 : 0;
}

int pipe(int out[2])
{
	return pipe2(out, 0);
}

int eventfd(unsigned int count, int flags)
{
	struct object *o = sim_new_object(EVENTS, flags & EFD_NONBLOCK);

	o->count = count;
	return sim_put(o);
}

static int control(struct object *o, int command, long arg)
{
	switch (command) {
	case F_GETFL:
		return O_RDWR | (o->nonblocking ? O_NONBLOCK : 0);
	case F_SETFL:
		o->nonblocking = arg & O_NONBLOCK;
		return 0;
	case F_DUPFD:
	case F_DUPFD_CLOEXEC:
		return sim_put(o);
	default:
		return 0;
	}
}

#define FCNTL(name) \
	int name(int fd, int command, ...) \
	{ \
		struct object *o = sim_object(fd); \
		va_list ap; \
		long arg; \
		int got; \
		va_start(ap, command); \
		arg = va_arg(ap, long); \
		va_end(ap); \
		if (o) { \
			return control(o, command, arg); \
		} \
		got = LIBC(name)(fd, command, arg); \
		return command == F_DUPFD || command == F_DUPFD_CLOEXEC ? note_file(got) : got; \
	}
FCNTL(fcntl)
FCNTL(fcntl64)

int ioctl(int fd, unsigned long what, ...)
{
	struct object *o = sim_object(fd);
	va_list ap;
	void *arg;

	va_start(ap, what);
	arg = va_arg(ap, void *);
	va_end(ap);
	if (!o) {
		return LIBC(ioctl)(fd, what, arg);
	}
	if (what == FIONBIO) {
		o->nonblocking = *(int *)arg;
	}
	return 0;
}

#define FSTAT(name, type) \
	int name(int fd, struct type *st) \
	{ \
		if (!sim_object(fd)) { \
			return LIBC(name)(fd, st); \
		} \
		memset(st, 0, sizeof(*st)); \
		st->st_mode = (sim_object(fd)->kind == SOCKET ? S_IFSOCK : S_IFIFO) | 0777; \
		return 0; \
	}
FSTAT(fstat, stat)
FSTAT(fstat64, stat64)

int isatty(int fd)
{
	return sim_object(fd) || sim_current ? 0 : LIBC(isatty)(fd);
}

/* libuv closes descriptors by this one. */
long syscall(long number, ...)
{
	long a[6];
	va_list ap;

	va_start(ap, number);
	for (int i = 0; i < 6; i++) {
		a[i] = va_arg(ap, long);
	}
	va_end(ap);
	if (number == SYS_close) {
		return close((int)a[0]);
	}
	if (number == SYS_getrandom) {
		return getentropy((void *)a[0], (size_t)a[1]) ? -1 : a[1];
	}
	return LIBC(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
