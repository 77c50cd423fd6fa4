/* Sockets at which clients connect, and their connections. */
#include "interpose.h"

#include <fcntl.h>
#include <limits.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <linux/close_range.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* --- addresses */

bool qw_endpoint_of(const struct sockaddr *address, socklen_t length, struct qw_endpoint *endpoint)
{
	memset(endpoint, 0, sizeof(*endpoint));
	if (address->sa_family == AF_INET && length >= sizeof(struct sockaddr_in)) {
		const struct sockaddr_in *from = (const struct sockaddr_in *)address;

		endpoint->ip[10] = endpoint->ip[11] = 0xff;
		memcpy(endpoint->ip + 12, &from->sin_addr, 4);
		endpoint->port = ntohs(from->sin_port);
		return endpoint->port != 0;
	}
	if (address->sa_family == AF_INET6 && length >= sizeof(struct sockaddr_in6)) {
		const struct sockaddr_in6 *from = (const struct sockaddr_in6 *)address;

		memcpy(endpoint->ip, &from->sin6_addr, 16);
		endpoint->port = ntohs(from->sin6_port);
		endpoint->is_ipv6 = 1;
		return endpoint->port != 0;
	}
	return false;
}

/* Cut to the room there is, as the kernel's; `length` becomes what it is. */
void qw_put_address(const struct qw_endpoint *from, struct sockaddr *address, socklen_t *length)
{
	struct sockaddr_in v4 = { .sin_family = AF_INET };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };
	const void *whole = from->is_ipv6 ? (const void *)&v6 : (const void *)&v4;
	socklen_t bytes = from->is_ipv6 ? sizeof(v6) : sizeof(v4);

	if (!address || !length)
		return;
	memcpy(&v4.sin_addr, from->ip + 12, 4);
	v4.sin_port = htons(from->port);
	memcpy(&v6.sin6_addr, from->ip, 16);
	v6.sin6_port = htons(from->port);
	memcpy(address, whole, *length < bytes ? *length : bytes);
	*length = bytes;
}

/* IPv4 is told to a socket of IPv6 as a part of that, and the other way round. */
void qw_of_family(struct qw_endpoint *endpoint, bool is_ipv6)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	if (!memcmp(endpoint->ip, mapped, sizeof(mapped)))
		endpoint->is_ipv6 = is_ipv6;
}

static int type_of(int descriptor)
{
	int type = 0;
	socklen_t length = sizeof(type);

	if (QW_REAL(getsockopt)(descriptor, SOL_SOCKET, SO_TYPE, &type, &length))
		return -1;
	return type;
}

/* --- ports */

bool qw_is_socket(const struct qw_object *object)
{
	return object && object->kind != QW_TIMER && object->kind != QW_RANDOM && object->kind != QW_EPOLL;
}

bool qw_has_option(int descriptor, int level, int option)
{
	int value = 0;
	socklen_t length = sizeof(value);

	return !QW_REAL(getsockopt)(descriptor, level, option, &value, &length) && value;
}

/* What a connection inherits of its listener, if it is set: all else has no effect on it. */
static const struct {
	int level, option;
} inherited[] = {
	{ SOL_SOCKET, SO_KEEPALIVE },	{ SOL_SOCKET, SO_LINGER },     { SOL_SOCKET, SO_RCVTIMEO },
	{ SOL_SOCKET, SO_SNDTIMEO },	{ SOL_SOCKET, SO_OOBINLINE },  { IPPROTO_TCP, TCP_NODELAY },
	{ IPPROTO_TCP, TCP_KEEPIDLE },	{ IPPROTO_TCP, TCP_KEEPINTVL }, { IPPROTO_TCP, TCP_KEEPCNT },
	{ IPPROTO_TCP, TCP_USER_TIMEOUT },
};
#define INHERITED_COUNT (sizeof(inherited) / sizeof(*inherited))
/* The longest of them. */
#define OPTION_BYTES sizeof(struct timeval)

/* A socket of the kernel's that is connected to nobody, so that options can be set and asked. */
static int placeholder(const struct qw_object *object, int flags)
{
	int family = object->own.is_ipv6 ? AF_INET6 : AF_INET;

	return QW_REAL(socket)(family, SOCK_STREAM | (flags & (SOCK_CLOEXEC | SOCK_NONBLOCK)), 0);
}

/* Finds out which of them differ from those of a new socket. */
static void look_at_options(int descriptor, struct qw_object *listener)
{
	int fresh = placeholder(listener, SOCK_CLOEXEC);

	listener->inherited = 0;
	for (size_t i = 0; fresh >= 0 && i < INHERITED_COUNT; i++) {
		uint8_t set[OPTION_BYTES] = { 0 }, unset[OPTION_BYTES] = { 0 };
		socklen_t length = sizeof(set), same = sizeof(unset);

		if (!QW_REAL(getsockopt)(descriptor, inherited[i].level, inherited[i].option, set, &length) &&
		    !QW_REAL(getsockopt)(fresh, inherited[i].level, inherited[i].option, unset, &same) &&
		    memcmp(set, unset, sizeof(set)))
			listener->inherited |= 1U << i;
	}
	if (fresh >= 0)
		QW_REAL(close)(fresh);
}

static void inherit_options(int from, const struct qw_object *listener, int to)
{
	for (size_t i = 0; listener->inherited && i < INHERITED_COUNT; i++) {
		uint8_t value[OPTION_BYTES];
		socklen_t length = sizeof(value);

		if (listener->inherited & 1U << i &&
		    !QW_REAL(getsockopt)(from, inherited[i].level, inherited[i].option, value, &length))
			QW_REAL(setsockopt)(to, inherited[i].level, inherited[i].option, value, length);
	}
}

QW_CALL int setsockopt(int descriptor, int level, int option, const void *value, socklen_t length)
{
	struct qw_object *object = qw_object_of(descriptor);
	int result;

	if (qw_is_socket(object) && level == SOL_SOCKET && option == SO_ZEROCOPY) {
		errno = ENOPROTOOPT; /* nobody would say when the bytes are sent */
		return -1;
	}
	result = QW_REAL(setsockopt)(descriptor, level, option, value, length);
	if (!result && object && object->kind == QW_DATAGRAMS)
		qw_look_at_controls(descriptor, object);
	if (!result && object && object->kind == QW_LISTENER)
		look_at_options(descriptor, object);
	if (!result && object && object->kind == QW_STREAM && level == SOL_SOCKET && option == SO_RCVLOWAT) {
		memcpy(&object->least, value, sizeof(object->least));
		qw_has_news_of(object, QW_READ_EVENTS);
	}
	return result;
}

QW_CALL int bind(int descriptor, const struct sockaddr *address, socklen_t length)
{
	struct qw_endpoint own;
	struct qw_object *object;
	int type;

	type = type_of(descriptor);
	if (!qw_is_on() || !address || !qw_endpoint_of(address, length, &own) ||
	    (type != SOCK_STREAM && type != SOCK_DGRAM))
		return QW_REAL(bind)(descriptor, address, length);
	if (qw_object_of(descriptor)) {
		errno = EINVAL;
		return -1;
	}
	object = qw_new_object(type == SOCK_DGRAM ? QW_DATAGRAMS : QW_BOUND);
	object->own = own;
	object->shares_port = qw_has_option(descriptor, SOL_SOCKET, SO_REUSEPORT);
	object->may_share = object->shares_port || qw_has_option(descriptor, SOL_SOCKET, SO_REUSEADDR);
	object->is_v6only = own.is_ipv6 && qw_has_option(descriptor, IPPROTO_IPV6, IPV6_V6ONLY);
	if (qw_is_taken(object)) {
		free(object);
		errno = EADDRINUSE;
		return -1;
	}
	qw_set_object(descriptor, object);
	qw_add_port(object);
	if (type == SOCK_DGRAM) {
		qw_look_at_controls(descriptor, object);
		qw_say_listen(object, QW_SAID_LISTEN);
	}
	return 0;
}

QW_CALL int listen(int descriptor, int backlog)
{
	struct qw_object *object = qw_object_of(descriptor);

	if (!qw_is_socket(object))
		return QW_REAL(listen)(descriptor, backlog);
	if (object->kind == QW_LISTENER)
		return 0;
	if (object->kind != QW_BOUND) {
		errno = object->kind == QW_DATAGRAMS ? EOPNOTSUPP : EINVAL;
		return -1;
	}
	if (qw_somebody_listens(object)) {
		errno = EADDRINUSE;
		return -1;
	}
	object->kind = QW_LISTENER;
	look_at_options(descriptor, object);
	qw_say_listen(object, QW_SAID_LISTEN);
	return 0;
}

static int accept_virtual(int descriptor, struct qw_object *listener, struct sockaddr *address,
			  socklen_t *length, int flags)
{
	struct qw_patience patience = { 0 };
	struct qw_object *object;
	int made;

	if (listener->kind != QW_LISTENER || flags & ~(SOCK_CLOEXEC | SOCK_NONBLOCK)) {
		errno = listener->kind == QW_DATAGRAMS ? EOPNOTSUPP : EINVAL;
		return -1;
	}
	qw_enter();
	while (!listener->first_waiting) {
		if (listener->kind != QW_LISTENER && !patience.over) { /* it was shut meanwhile */
			errno = EINVAL;
			return -1;
		}
		if (!qw_look_again(descriptor, listener, true, &patience))
			return -1;
	}
	object = listener->first_waiting;
	made = placeholder(object, flags);
	if (made < 0)
		return -1; /* for want of a descriptor, as the kernel says: it waits on */
	listener->first_waiting = object->next_waiting;
	if (!listener->first_waiting)
		listener->last_waiting = NULL;
	object->next_waiting = NULL;
	inherit_options(descriptor, listener, made);
	qw_set_object(made, object);
	qw_put_address(&object->peer, address, length);
	return made;
}

QW_CALL int accept4(int descriptor, struct sockaddr *address, socklen_t *length, int flags)
{
	struct qw_object *listener = qw_object_of(descriptor);

	if (!qw_is_socket(listener)) {
		if (!qw_await_descriptor(descriptor, POLLIN))
			return -1;
		return QW_REAL(accept4)(descriptor, address, length, flags);
	}
	return accept_virtual(descriptor, listener, address, length, flags);
}

QW_CALL int accept(int descriptor, struct sockaddr *address, socklen_t *length)
{
	struct qw_object *listener = qw_object_of(descriptor);

	if (!qw_is_socket(listener)) {
		if (!qw_await_descriptor(descriptor, POLLIN))
			return -1;
		return QW_REAL(accept)(descriptor, address, length);
	}
	return accept_virtual(descriptor, listener, address, length, 0);
}

void qw_tell_outbound(uint32_t port)
{
	__atomic_store_n(&qw.control->outbound_port, port, __ATOMIC_RELAXED);
	__atomic_add_fetch(&qw.control->outbound, 1, __ATOMIC_SEQ_CST);
}

bool qw_may_leave(void)
{
	return qw.control->outbound_passes;
}

/* What another server answers is not in the log, and when it does so differs from replica to
 * replica. So nobody listens anywhere, unless that is wanted, and the replica is told of it. */
bool qw_is_elsewhere(const struct sockaddr *address, socklen_t length)
{
	struct qw_endpoint to;

	if (!qw_is_on() || qw_may_leave() || !address || length < sizeof(address->sa_family) ||
	    (address->sa_family != AF_INET && address->sa_family != AF_INET6))
		return false;
	qw_endpoint_of(address, length, &to);
	qw_tell_outbound(to.port);
	errno = ECONNREFUSED;
	return true;
}

/* A socket for datagrams that has a name speaks with one client only, or with all again. */
static int connect_datagrams(struct qw_object *object, const struct sockaddr *address, socklen_t length)
{
	if (length >= sizeof(address->sa_family) && address->sa_family == AF_UNSPEC) {
		object->has_peer = false;
		return 0;
	}
	if (!qw_endpoint_of(address, length, &object->peer)) {
		errno = EINVAL;
		return -1;
	}
	object->has_peer = true;
	return 0;
}

QW_CALL int connect(int descriptor, const struct sockaddr *address, socklen_t length)
{
	struct qw_object *object = qw_object_of(descriptor);

	if (address && object && object->kind == QW_DATAGRAMS)
		return connect_datagrams(object, address, length);
	if (qw_is_socket(object) && object->kind != QW_BOUND) {
		errno = EISCONN;
		return -1;
	}
	if (type_of(descriptor) < 0)
		return QW_REAL(connect)(descriptor, address, length);
	return qw_is_elsewhere(address, length) ? -1 : QW_REAL(connect)(descriptor, address, length);
}

QW_CALL int getpeername(int descriptor, struct sockaddr *address, socklen_t *length)
{
	struct qw_object *object = qw_object_of(descriptor);

	if (!qw_is_socket(object))
		return QW_REAL(getpeername)(descriptor, address, length);
	if (*length > INT_MAX) {
		errno = EINVAL;
		return -1;
	}
	if (object->kind == QW_DATAGRAMS ? !object->has_peer : object->kind != QW_STREAM || object->reset) {
		errno = ENOTCONN;
		return -1;
	}
	qw_put_address(&object->peer, address, length);
	return 0;
}

QW_CALL int getsockname(int descriptor, struct sockaddr *address, socklen_t *length)
{
	struct qw_object *object = qw_object_of(descriptor);

	if (!qw_is_socket(object))
		return QW_REAL(getsockname)(descriptor, address, length);
	if (*length > INT_MAX) {
		errno = EINVAL;
		return -1;
	}
	qw_put_address(&object->own, address, length);
	return 0;
}

/* As the kernel gives a number: cut to the room there is. */
static int put_option(int number, void *value, socklen_t *length)
{
	if (*length > INT_MAX) {
		errno = EINVAL;
		return -1;
	}
	if (*length > sizeof(number))
		*length = sizeof(number);
	memcpy(value, &number, *length);
	return 0;
}

/* In the numbers of TCP_INFO. */
static uint8_t state_of(const struct qw_object *object)
{
	if (object->kind == QW_LISTENER)
		return TCP_LISTEN;
	if (object->kind != QW_STREAM || object->reset || (object->ended && object->shut_write))
		return TCP_CLOSE;
	if (object->ended)
		return TCP_CLOSE_WAIT;
	return object->shut_write ? TCP_FIN_WAIT2 : TCP_ESTABLISHED;
}

QW_CALL int getsockopt(int descriptor, int level, int option, void *value, socklen_t *length)
{
	struct qw_object *object = qw_object_of(descriptor);
	int result;

	if (qw_is_socket(object) && level == SOL_SOCKET && option == SO_ERROR)
		return put_option(qw_take_error(object), value, length);
	if (qw_is_socket(object) && level == SOL_SOCKET && option == SO_ACCEPTCONN)
		return put_option(object->kind == QW_LISTENER, value, length);
	result = QW_REAL(getsockopt)(descriptor, level, option, value, length);
	if (!result && qw_is_socket(object) && level == IPPROTO_TCP && option == TCP_INFO && *length > 0)
		*(uint8_t *)value = state_of(object);
	return result;
}

QW_CALL int shutdown(int descriptor, int how)
{
	struct qw_object *object = qw_object_of(descriptor);

	if (!qw_is_socket(object))
		return QW_REAL(shutdown)(descriptor, how);
	if (how < SHUT_RD || how > SHUT_RDWR) {
		errno = EINVAL;
		return -1;
	}
	if (object->kind == QW_LISTENER) {
		if (how != SHUT_WR) {
			qw_listen_no_more(object);
			qw_has_news(object);
		}
		return 0;
	}
	if (object->kind != QW_STREAM || object->reset) {
		errno = ENOTCONN;
		return -1;
	}
	qw_enter();
	if (how == SHUT_RD || how == SHUT_RDWR)
		object->shut_read = true;
	if ((how == SHUT_WR || how == SHUT_RDWR) && !object->shut_write) {
		object->shut_write = true;
		qw_say(QW_SAID_SHUT, object->connection, NULL, 0);
	}
	qw_has_news(object);
	return 0;
}

/* --- descriptors */

QW_CALL int close(int descriptor)
{
	if (qw_is_kept(descriptor)) {
		errno = EBADF;
		return -1;
	}
	qw_drop_descriptor(descriptor);
	return QW_REAL(close)(descriptor);
}

/* The doorbells stay. */
QW_CALL int close_range(unsigned int first, unsigned int last, int flags)
{
	unsigned int limit = last < QW_DESCRIPTORS_MAX ? last : QW_DESCRIPTORS_MAX - 1;

	if (qw.on != 1 || first > last || flags & ~(int)CLOSE_RANGE_UNSHARE)
		return QW_REAL(close_range)(first, last, flags);
	for (unsigned int each = first; each <= limit; each++)
		close((int)each);
	return 0;
}

QW_CALL void closefrom(int first)
{
	close_range(first < 0 ? 0 : (unsigned int)first, ~0U, 0);
}

/* `made` stands for the same from now on. */
static int duplicate(int descriptor, int made)
{
	struct qw_object *object = qw_object_of(descriptor);

	if (made >= 0 && !object && qw.on == 1 && qw_epoll_of(descriptor, true))
		object = qw_object_of(descriptor);
	if (made >= 0 && object)
		qw_set_object(made, object);
	return made;
}

QW_CALL int dup(int descriptor)
{
	return duplicate(descriptor, QW_REAL(dup)(descriptor));
}

QW_CALL int dup3(int descriptor, int to, int flags)
{
	int made;

	qw_keep_away(to);
	made = QW_REAL(dup3)(descriptor, to, flags);
	if (made >= 0)
		qw_drop_descriptor(to);
	return duplicate(descriptor, made);
}

QW_CALL int dup2(int descriptor, int to)
{
	if (descriptor == to)
		return QW_REAL(dup2)(descriptor, to);
	return dup3(descriptor, to, 0);
}

/* No SIGIO comes of a virtual descriptor. */
static void refuse_signals(int descriptor, bool wants_signals)
{
	if (wants_signals && qw_is_socket(qw_object_of(descriptor)))
		qw_refuse(QW_WHY_CALL, SYS_fcntl);
}

#define FCNTL_CALL(name) \
	QW_CALL int name(int descriptor, int command, ...) \
	{ \
		va_list list; \
		void *argument; \
		int result; \
		va_start(list, command); \
		argument = va_arg(list, void *); \
		va_end(list); \
		if (command == F_SETFL) \
			refuse_signals(descriptor, (int)(intptr_t)argument & O_ASYNC); \
		result = QW_REAL(name)(descriptor, command, argument); \
		if (command == F_DUPFD || command == F_DUPFD_CLOEXEC) \
			return duplicate(descriptor, result); \
		return result; \
	}

FCNTL_CALL(fcntl)
FCNTL_CALL(fcntl64)

QW_CALL int ioctl(int descriptor, unsigned long command, ...)
{
	struct qw_object *object = qw_object_of(descriptor);
	va_list list;
	void *argument;

	va_start(list, command);
	argument = va_arg(list, void *);
	va_end(list);
	if (command == FIOASYNC)
		refuse_signals(descriptor, *(int *)argument);
	if (object && object->kind == QW_LISTENER && command == FIONREAD) {
		errno = EINVAL;
		return -1;
	}
	if (qw_is_socket(object) && command == FIONREAD) {
		size_t bytes = object->end - object->at;

		if (object->kind == QW_DATAGRAMS && bytes)
			bytes = ((struct qw_packet *)(object->bytes + object->at))->bytes;
		*(int *)argument = (int)bytes;
		return 0;
	}
	return QW_REAL(ioctl)(descriptor, command, argument);
}
