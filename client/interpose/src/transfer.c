/* Bytes of clients, and bytes for them. */
#include "interpose.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* --- reading */

/* Copies out of `from` into the parts; how much. */
static size_t scatter(const uint8_t *from, size_t bytes, const struct iovec *parts, int count)
{
	size_t done = 0;

	for (int part = 0; part < count && done < bytes; part++) {
		size_t some = bytes - done < parts[part].iov_len ? bytes - done : parts[part].iov_len;

		memcpy(parts[part].iov_base, from + done, some);
		done += some;
	}
	return done;
}

size_t qw_bytes_of(const struct iovec *parts, int count)
{
	size_t bytes = 0;

	for (int part = 0; part < count; part++)
		bytes += parts[part].iov_len;
	return bytes;
}

static ssize_t fail(int error)
{
	errno = error;
	return -1;
}

static void forget(struct qw_object *object, size_t bytes)
{
	object->at += bytes;
	qw_count_unread(-(int64_t)bytes);
}

/* False: with `result`. */
static bool may_read(struct qw_object *object, int flags, size_t wanted, ssize_t *result)
{
	size_t there = object->end - object->at;

	size_t least = object->least > 1 && object->least < wanted ? object->least : 1;

	if (there >= wanted || (there >= least && !(flags & MSG_WAITALL)))
		return true;
	if (there > 0 && (object->ended || object->shut_read || object->reset))
		return true;
	if (!object->ended && object->reset && !object->reported_reset) {
		*result = fail(qw_take_error(object));
		return false;
	}
	*result = object->ended || object->shut_read || object->reset ? 0 : fail(EAGAIN);
	return false;
}

int qw_take_error(struct qw_object *object)
{
	if (!object->reset || object->reported_reset)
		return 0;
	object->reported_reset = true;
	return object->ended ? EPIPE : ECONNRESET;
}

static ssize_t read_stream(int descriptor, struct qw_object *object, const struct iovec *parts, int count,
			   int flags)
{
	size_t wanted = qw_bytes_of(parts, count), done;
	struct qw_patience patience = { 0 };
	ssize_t result = 0;

	qw_enter();
	if (flags & (MSG_OOB | MSG_ERRQUEUE))
		return fail(flags & MSG_OOB ? EINVAL : EAGAIN);
	while (!may_read(object, flags, wanted ? wanted : 1, &result)) {
		if (result == 0 || errno != EAGAIN)
			return result;
		if (qw_look_again(descriptor, object, !(flags & MSG_DONTWAIT), &patience))
			continue;
		if (object->at == object->end)
			return -1;
		break; /* not all, but what is there */
	}
	done = object->end - object->at;
	if (flags & MSG_TRUNC && done > wanted)
		done = wanted;
	else if (!(flags & MSG_TRUNC))
		done = scatter(object->bytes + object->at, done, parts, count);
	if (!(flags & MSG_PEEK))
		forget(object, done);
	return (ssize_t)done;
}

static ssize_t read_timer(int descriptor, struct qw_object *timer, const struct iovec *parts, int count)
{
	struct qw_patience patience = { 0 };
	uint64_t expired;

	qw_enter();
	if (qw_bytes_of(parts, count) < sizeof(expired))
		return fail(EINVAL);
	while (!timer->expired) {
		if (!qw_look_again(descriptor, timer, true, &patience))
			return -1;
	}
	expired = timer->expired;
	timer->expired = 0;
	return (ssize_t)scatter((const uint8_t *)&expired, sizeof(expired), parts, count);
}

static ssize_t read_datagram(int descriptor, struct qw_object *object, struct msghdr *message, int flags)
{
	struct qw_patience patience = { 0 };
	struct qw_packet packet;
	size_t done;

	qw_enter();
	if (flags & MSG_ERRQUEUE)
		return fail(EAGAIN);
	while (object->at == object->end) {
		if (!qw_look_again(descriptor, object, !(flags & MSG_DONTWAIT), &patience))
			return -1;
	}
	memcpy(&packet, object->bytes + object->at, sizeof(packet));
	done = scatter(object->bytes + object->at + sizeof(packet), packet.bytes, message->msg_iov,
		       (int)message->msg_iovlen);
	message->msg_flags = done < packet.bytes ? MSG_TRUNC : 0;
	if (message->msg_name)
		qw_put_address(&packet.peer, message->msg_name, &message->msg_namelen);
	qw_put_controls(object, message, &packet);
	if (!(flags & MSG_PEEK))
		forget(object, sizeof(packet) + packet.bytes);
	return flags & MSG_TRUNC ? (ssize_t)packet.bytes : (ssize_t)done;
}

static ssize_t read_parts(int descriptor, struct qw_object *object, const struct iovec *parts, int count,
			  int flags)
{
	struct msghdr message = { .msg_iov = (struct iovec *)(uintptr_t)parts, .msg_iovlen = (size_t)count };

	switch (object->kind) {
	case QW_STREAM:
		return read_stream(descriptor, object, parts, count, flags);
	case QW_DATAGRAMS:
		return read_datagram(descriptor, object, &message, flags);
	case QW_TIMER:
		return read_timer(descriptor, object, parts, count);
	case QW_RANDOM:
		for (int part = 0; part < count; part++)
			qw_chance(parts[part].iov_base, parts[part].iov_len);
		return (ssize_t)qw_bytes_of(parts, count);
	case QW_EPOLL:
		return fail(EINVAL);
	case QW_BOUND:
	case QW_LISTENER:
	}
	return fail(ENOTCONN);
}

/* False: a signal has come. */
static bool await_input(int descriptor, int flags)
{
	return flags & MSG_DONTWAIT || qw_await_descriptor(descriptor, POLLIN);
}

QW_CALL ssize_t read(int descriptor, void *bytes, size_t count)
{
	struct qw_object *object = qw_object_of(descriptor);
	struct iovec part = { bytes, count };

	if (!object) {
		if (!qw_await_descriptor(descriptor, POLLIN))
			return -1;
		return QW_REAL(read)(descriptor, bytes, count);
	}
	if (count == 0 && qw_is_socket(object))
		return 0;
	return read_parts(descriptor, object, &part, 1, 0);
}

QW_CALL ssize_t readv(int descriptor, const struct iovec *parts, int count)
{
	struct qw_object *object = qw_object_of(descriptor);

	if (!object) {
		if (!qw_await_descriptor(descriptor, POLLIN))
			return -1;
		return QW_REAL(readv)(descriptor, parts, count);
	}
	if (count < 0 || count > QW_PARTS_MAX)
		return fail(EINVAL);
	if (qw_bytes_of(parts, count) == 0 && qw_is_socket(object))
		return 0;
	return read_parts(descriptor, object, parts, count, 0);
}

/* At no offset it is readv(). */
QW_CALL ssize_t preadv2(int descriptor, const struct iovec *parts, int count, off_t at, int flags)
{
	if (at == -1 && qw_object_of(descriptor))
		return readv(descriptor, parts, count);
	return QW_REAL(preadv2)(descriptor, parts, count, at, flags);
}

QW_CALL ssize_t preadv64v2(int descriptor, const struct iovec *parts, int count, off64_t at, int flags)
{
	return preadv2(descriptor, parts, count, at, flags);
}

QW_CALL ssize_t recv(int descriptor, void *bytes, size_t count, int flags)
{
	struct qw_object *object = qw_object_of(descriptor);
	struct iovec part = { bytes, count };

	if (!qw_is_socket(object)) {
		if (!await_input(descriptor, flags))
			return -1;
		return QW_REAL(recv)(descriptor, bytes, count, flags);
	}
	return read_parts(descriptor, object, &part, 1, flags);
}

QW_CALL ssize_t recvmsg(int descriptor, struct msghdr *message, int flags)
{
	struct qw_object *object = qw_object_of(descriptor);
	ssize_t result;

	if (!qw_is_socket(object)) {
		if (!await_input(descriptor, flags))
			return -1;
		return QW_REAL(recvmsg)(descriptor, message, flags);
	}
	if (message->msg_iovlen > QW_PARTS_MAX)
		return fail(EMSGSIZE);
	if (object->kind == QW_DATAGRAMS)
		return read_datagram(descriptor, object, message, flags);
	result = read_parts(descriptor, object, message->msg_iov, (int)message->msg_iovlen, flags);
	if (result >= 0) {
		message->msg_namelen = 0;
		message->msg_controllen = 0;
		message->msg_flags = flags & MSG_CMSG_CLOEXEC;
	}
	return result;
}

/* The time-out is looked at between messages only, as the kernel does. */
QW_CALL int recvmmsg(int descriptor, struct mmsghdr *messages, unsigned int count, int flags,
		     struct timespec *wait)
{
	unsigned int done = 0;

	if (!qw_is_socket(qw_object_of(descriptor)) && (flags & MSG_DONTWAIT || !qw_may_wait(descriptor)))
		return QW_REAL(recvmmsg)(descriptor, messages, count, flags, wait);
	while (done < count) {
		ssize_t got = recvmsg(descriptor, &messages[done].msg_hdr, flags & ~MSG_WAITFORONE);

		if (got < 0)
			return done ? (int)done : -1;
		messages[done++].msg_len = (unsigned int)got;
		if (flags & MSG_WAITFORONE)
			flags |= MSG_DONTWAIT;
		if (wait && wait->tv_sec == 0 && wait->tv_nsec == 0)
			break;
	}
	return (int)done;
}

QW_CALL ssize_t recvfrom(int descriptor, void *bytes, size_t count, int flags, struct sockaddr *address,
			 socklen_t *length)
{
	struct qw_object *object = qw_object_of(descriptor);
	struct iovec part = { bytes, count };
	struct msghdr message = { .msg_name = address, .msg_iov = &part, .msg_iovlen = 1 };
	ssize_t result;

	if (!qw_is_socket(object)) {
		if (!await_input(descriptor, flags))
			return -1;
		return QW_REAL(recvfrom)(descriptor, bytes, count, flags, address, length);
	}
	message.msg_namelen = address && length ? *length : 0;
	result = recvmsg(descriptor, &message, flags);
	if (result >= 0 && address && length)
		*length = message.msg_namelen;
	return result;
}

QW_CALL ssize_t __read_chk(int descriptor, void *bytes, size_t count, size_t room)
{
	if (count > room)
		abort();
	return read(descriptor, bytes, count);
}

QW_CALL ssize_t __recv_chk(int descriptor, void *bytes, size_t count, size_t room, int flags)
{
	if (count > room)
		abort();
	return recv(descriptor, bytes, count, flags);
}

QW_CALL ssize_t __recvfrom_chk(int descriptor, void *bytes, size_t count, size_t room, int flags,
			       struct sockaddr *address, socklen_t *length)
{
	if (count > room)
		abort();
	return recvfrom(descriptor, bytes, count, flags, address, length);
}

/* --- writing: everything is taken; only a full ring makes the program wait */

static ssize_t fail_broken(int error, int flags)
{
	if ((!error || error == EPIPE) && !(flags & MSG_NOSIGNAL))
		raise(SIGPIPE);
	return fail(error ? error : EPIPE);
}

static ssize_t write_stream(struct qw_object *object, const struct iovec *parts, int count, int flags)
{
	size_t done = 0;

	qw_enter();
	if (object->reset || object->shut_write)
		return fail_broken(qw_take_error(object), flags);
	for (int part = 0; part < count; part++) {
		const uint8_t *from = parts[part].iov_base;
		size_t left = parts[part].iov_len;

		while (left > 0) {
			size_t some = left < QW_RECORD_BYTES_MAX ? left : QW_RECORD_BYTES_MAX;

			qw_say(QW_SAID_DATA, object->connection, from, some);
			from += some;
			left -= some;
			done += some;
		}
	}
	return (ssize_t)done;
}

#define DATAGRAM_PARTS_MAX 64
/* What the kernel takes: 65,535 without the headers. */
#define DATAGRAM_BYTES_MAX_IPV4 65507
#define DATAGRAM_BYTES_MAX_IPV6 65527

_Static_assert(DATAGRAM_BYTES_MAX_IPV6 + sizeof(struct qw_accept) <= QW_RECORD_BYTES_MAX,
	       "a record holds any datagram");

static ssize_t write_datagram(struct qw_object *object, const struct msghdr *message)
{
	struct qw_accept ends = { .own = object->own };
	struct iovec parts[DATAGRAM_PARTS_MAX + 1] = { { &ends, sizeof(ends) } };
	size_t bytes = qw_bytes_of(message->msg_iov, (int)message->msg_iovlen);

	qw_enter();
	if (!message->msg_name && !object->has_peer)
		return fail(EDESTADDRREQ);
	if (!message->msg_name)
		ends.peer = object->peer;
	else if (!qw_endpoint_of(message->msg_name, message->msg_namelen, &ends.peer))
		return fail(EINVAL);
	qw_take_source(message, &ends.own);
	qw_of_family(&ends.peer, object->own.is_ipv6);
	if (bytes > (ends.own.is_ipv6 ? DATAGRAM_BYTES_MAX_IPV6 : DATAGRAM_BYTES_MAX_IPV4) ||
	    message->msg_iovlen > DATAGRAM_PARTS_MAX)
		return fail(EMSGSIZE);
	for (size_t part = 0; part < message->msg_iovlen; part++)
		parts[part + 1] = message->msg_iov[part];
	qw_say_in_parts(QW_SAID_DATAGRAM, 0, parts, (int)message->msg_iovlen + 1);
	return (ssize_t)bytes;
}

static ssize_t write_message(struct qw_object *object, const struct msghdr *message, int flags)
{
	switch (object->kind) {
	case QW_STREAM:
		return write_stream(object, message->msg_iov, (int)message->msg_iovlen, flags);
	case QW_DATAGRAMS:
		return write_datagram(object, message);
	case QW_RANDOM:
		return (ssize_t)qw_bytes_of(message->msg_iov, (int)message->msg_iovlen);
	case QW_TIMER:
	case QW_EPOLL:
		return fail(EINVAL);
	case QW_BOUND:
	case QW_LISTENER:
	}
	return fail_broken(0, flags);
}

/* Another process cannot have a virtual descriptor. */
static void refuse_to_hand_over(const struct msghdr *message)
{
	struct msghdr *whole = (struct msghdr *)(uintptr_t)message;

	for (struct cmsghdr *each = CMSG_FIRSTHDR(message); each; each = CMSG_NXTHDR(whole, each)) {
		if (each->cmsg_level != SOL_SOCKET || each->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t at = CMSG_LEN(0); at + sizeof(int) <= each->cmsg_len; at += sizeof(int)) {
			int handed;

			memcpy(&handed, (const uint8_t *)each + at, sizeof(handed));
			if (qw_is_socket(qw_object_of(handed)))
				qw_refuse(QW_WHY_CALL, SYS_sendmsg);
		}
	}
}

QW_CALL ssize_t sendmsg(int descriptor, const struct msghdr *message, int flags)
{
	struct qw_object *object = qw_object_of(descriptor);

	if (!object && message && qw_is_elsewhere(message->msg_name, message->msg_namelen))
		return -1;
	if (!object && message)
		refuse_to_hand_over(message);
	if (!qw_is_socket(object))
		return qw_send_plain(descriptor, message, flags);
	if (message->msg_iovlen > QW_PARTS_MAX)
		return fail(EMSGSIZE);
	if (message->msg_controllen && object->kind == QW_STREAM)
		qw_refuse(QW_WHY_CALL, SYS_sendmsg); /* such as a descriptor that is handed over */
	return write_message(object, message, flags);
}

QW_CALL int sendmmsg(int descriptor, struct mmsghdr *messages, unsigned int count, int flags)
{
	unsigned int done = 0;

	while (done < count) {
		ssize_t sent = sendmsg(descriptor, &messages[done].msg_hdr, flags);

		if (sent < 0)
			return done ? (int)done : -1;
		messages[done++].msg_len = (unsigned int)sent;
	}
	return (int)done;
}

QW_CALL ssize_t writev(int descriptor, const struct iovec *parts, int count)
{
	struct qw_object *object = qw_object_of(descriptor);
	struct msghdr message = { .msg_iov = (struct iovec *)(uintptr_t)parts, .msg_iovlen = (size_t)count };

	if (!object)
		return qw_write_plain(descriptor, parts, count);
	if (count < 0 || count > QW_PARTS_MAX)
		return fail(EINVAL);
	return write_message(object, &message, 0);
}

QW_CALL ssize_t pwritev2(int descriptor, const struct iovec *parts, int count, off_t at, int flags)
{
	if (at == -1 && qw_object_of(descriptor))
		return writev(descriptor, parts, count);
	return QW_REAL(pwritev2)(descriptor, parts, count, at, flags);
}

QW_CALL ssize_t pwritev64v2(int descriptor, const struct iovec *parts, int count, off64_t at, int flags)
{
	return pwritev2(descriptor, parts, count, at, flags);
}

QW_CALL ssize_t sendto(int descriptor, const void *bytes, size_t count, int flags, const struct sockaddr *address,
		       socklen_t length)
{
	struct qw_object *object = qw_object_of(descriptor);
	struct iovec part = { (void *)(uintptr_t)bytes, count };
	struct msghdr message = {
		.msg_name = (void *)(uintptr_t)address, .msg_namelen = length, .msg_iov = &part, .msg_iovlen = 1
	};

	if (!object && qw_is_elsewhere(address, length))
		return -1;
	if (!qw_is_socket(object))
		return qw_send_plain(descriptor, &message, flags);
	return write_message(object, &message, flags);
}

QW_CALL ssize_t send(int descriptor, const void *bytes, size_t count, int flags)
{
	return sendto(descriptor, bytes, count, flags, NULL, 0);
}

QW_CALL ssize_t write(int descriptor, const void *bytes, size_t count)
{
	struct iovec part = { (void *)(uintptr_t)bytes, count };

	return writev(descriptor, &part, 1);
}

/* A file is read here, since what is to be sent leaves by the ring. */
static ssize_t send_file(struct qw_object *object, int file, off_t *at, size_t count)
{
	static uint8_t bytes[QW_RECORD_BYTES_MAX];
	size_t done = 0;

	while (done < count) {
		size_t some = count - done < sizeof(bytes) ? count - done : sizeof(bytes);
		ssize_t got = at ? pread(file, bytes, some, *at) : QW_REAL(read)(file, bytes, some);
		struct iovec part = { bytes, got > 0 ? (size_t)got : 0 };

		if (got < 0)
			return done ? (ssize_t)done : -1;
		if (got == 0)
			break;
		if (write_stream(object, &part, 1, 0) < 0)
			return done ? (ssize_t)done : -1;
		if (at)
			*at += got;
		done += (size_t)got;
	}
	return (ssize_t)done;
}

QW_CALL ssize_t sendfile(int descriptor, int file, off_t *at, size_t count)
{
	struct qw_object *object = qw_object_of(descriptor);

	if (!object)
		return qw_send_file_plain(descriptor, file, at, count);
	if (object->kind != QW_STREAM || qw_is_socket(qw_object_of(file)) || (at && *at < 0))
		return fail(EINVAL);
	return send_file(object, file, at, count);
}

QW_CALL ssize_t sendfile64(int descriptor, int file, off64_t *at, size_t count)
{
	return sendfile(descriptor, file, (off_t *)at, count);
}
