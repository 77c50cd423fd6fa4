/* Writing to the kernel's own descriptors, where threads serve one at a time: whoever finds no room
 * lets others go on. What is longer than a pipe takes for sure goes in pieces. */
#include "interpose.h"

#include <limits.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

static ssize_t real_write(int descriptor, const struct iovec *parts, int count)
{
	if (count == 1)
		return QW_REAL(write)(descriptor, parts->iov_base, parts->iov_len);
	return QW_REAL(writev)(descriptor, parts, count);
}

static mode_t kind_of(int descriptor)
{
	struct stat found;

	return fstat(descriptor, &found) ? 0 : found.st_mode & S_IFMT;
}

static size_t at_most(size_t bytes)
{
	return bytes < PIPE_BUF ? bytes : PIPE_BUF;
}

static ssize_t write_pipe(int pipe, const struct iovec *parts, int count)
{
	size_t done = 0;

	for (int part = 0; part < count; part++) {
		const uint8_t *bytes = parts[part].iov_base;
		size_t left = parts[part].iov_len;

		while (left > 0) {
			ssize_t wrote = -1;

			if (qw_await_descriptor(pipe, POLLOUT))
				wrote = QW_REAL(write)(pipe, bytes, at_most(left));
			if (wrote < 0)
				return done ? (ssize_t)done : -1;
			bytes += wrote;
			left -= (size_t)wrote;
			done += (size_t)wrote;
		}
	}
	return (ssize_t)done;
}

ssize_t qw_write_plain(int descriptor, const struct iovec *parts, int count)
{
	struct msghdr message = { .msg_iov = (struct iovec *)(uintptr_t)parts, .msg_iovlen = (size_t)count };

	if (count >= 0 && count <= QW_PARTS_MAX && qw_bytes_of(parts, count) > PIPE_BUF && qw_may_wait(descriptor)) {
		switch (kind_of(descriptor)) {
		case S_IFSOCK:
			return qw_send_plain(descriptor, &message, 0);
		case S_IFIFO:
			return write_pipe(descriptor, parts, count);
		}
	}
	if (!qw_await_descriptor(descriptor, POLLOUT))
		return -1;
	return real_write(descriptor, parts, count);
}

/* What is left of a message of which so much is sent. What stands beside it has gone with the first
 * byte. */
static void go_on(struct msghdr *message, size_t sent)
{
	message->msg_control = NULL;
	message->msg_controllen = 0;
	while (message->msg_iovlen > 0 && sent >= message->msg_iov->iov_len) {
		sent -= message->msg_iov->iov_len;
		message->msg_iov++;
		message->msg_iovlen--;
	}
	if (message->msg_iovlen > 0) {
		message->msg_iov->iov_base = (uint8_t *)message->msg_iov->iov_base + sent;
		message->msg_iov->iov_len -= sent;
	}
}

/* As much as there is room for, but something. */
static ssize_t send_some(int descriptor, const struct msghdr *message, int flags)
{
	ssize_t sent;

	if (!qw_await_descriptor(descriptor, POLLOUT))
		return -1;
	sent = QW_REAL(sendmsg)(descriptor, message, flags | MSG_DONTWAIT);
	if (sent >= 0 || errno != EAGAIN)
		return sent;
	return QW_OUTSIDE(QW_REAL(sendmsg)(descriptor, message, flags)); /* poll() knows nothing of it */
}

static ssize_t send_in_pieces(int descriptor, const struct msghdr *message, int flags)
{
	struct iovec parts[QW_PARTS_MAX];
	struct msghdr left = *message;
	size_t done = 0;

	memcpy(parts, left.msg_iov, left.msg_iovlen * sizeof(*parts));
	left.msg_iov = parts;
	do {
		ssize_t sent = send_some(descriptor, &left, flags);

		if (sent < 0)
			return done ? (ssize_t)done : -1;
		done += (size_t)sent;
		go_on(&left, (size_t)sent);
	} while (left.msg_iovlen > 0);
	return (ssize_t)done;
}

ssize_t qw_send_plain(int descriptor, const struct msghdr *message, int flags)
{
	if (flags & MSG_DONTWAIT || !qw_may_wait(descriptor) || message->msg_iovlen > QW_PARTS_MAX)
		return QW_REAL(sendmsg)(descriptor, message, flags);
	return send_in_pieces(descriptor, message, flags);
}

ssize_t qw_send_file_plain(int descriptor, int file, off_t *at, size_t count)
{
	size_t done = 0;

	if (!qw_may_wait(descriptor))
		return QW_REAL(sendfile)(descriptor, file, at, count);
	do {
		ssize_t sent = -1;

		if (qw_await_descriptor(descriptor, POLLOUT))
			sent = QW_REAL(sendfile)(descriptor, file, at, at_most(count - done));
		if (sent <= 0)
			return done ? (ssize_t)done : sent;
		done += (size_t)sent;
	} while (done < count);
	return (ssize_t)done;
}
