/* Datagrams. */
#include "cases.h"

#include <netinet/udp.h>

static char bytes[1 << 16];

static void say_from(const struct sockaddr_in *from, socklen_t length)
{
	say("length %u ", length);
	say_address("from", from);
}

static ssize_t received(int made, size_t room, int flags)
{
	struct sockaddr_in from = { 0 };
	socklen_t length = sizeof(from);
	ssize_t got = recvfrom(made, bytes, room, flags, (struct sockaddr *)&from, &length);

	say_result("recvfrom", got, errno);
	if (got >= 0) {
		say_bytes(bytes, got < (ssize_t)room ? got : (ssize_t)room);
		say_from(&from, length);
	}
	return got;
}

CASE(datagrams, one_by_one)
{
	int made = bound_datagrams(SOCK_NONBLOCK);

	received(made, 100, 0);
	ask("datagram 1 0 hello");
	ask("datagram 2 0 world; datagram 1 0");
	received(made, 100, 0);
	received(made, 100, 0);
	received(made, 100, 0);
	received(made, 100, 0);
}

CASE(datagrams, they_are_waited_for)
{
	int made = bound_datagrams(0);
	struct timeval wait = { .tv_usec = 20000 };

	tell("datagram 1 0 hello");
	received(made, 100, 0);
	received(made, 100, MSG_DONTWAIT);
	GOT(setsockopt(made, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait)));
	received(made, 100, 0);
}

CASE(datagrams, they_are_cut)
{
	int made = bound_datagrams(SOCK_NONBLOCK);

	for (int i = 0; i < 5; i++)
		ask("datagram 1 0 hello");
	received(made, 3, 0);
	received(made, 3, MSG_TRUNC);
	received(made, 3, MSG_PEEK);
	received(made, 3, MSG_PEEK | MSG_TRUNC);
	received(made, 0, 0);
	received(made, 0, MSG_TRUNC);
	GOT(read(made, bytes, 0));
	received(made, 100, 0);
}

CASE(datagrams, other_calls_that_receive)
{
	int made = bound_datagrams(SOCK_NONBLOCK), waiting;
	struct iovec parts[2] = { { bytes, 2 }, { bytes + 2, 100 } };

	ask("datagram 1 0 one; datagram 1 0 two-two; datagram 2 0 three; datagram 2 0 four");
	GOT(ioctl(made, FIONREAD, &waiting));
	say("%d\n", waiting);
	GOT_BYTES(read(made, bytes, 100), bytes);
	GOT(ioctl(made, FIONREAD, &waiting));
	say("%d\n", waiting);
	GOT_BYTES(readv(made, parts, 2), bytes);
	GOT_BYTES(recv(made, bytes, 100, 0), bytes);
	GOT_BYTES(recv(made, bytes, 100, MSG_WAITALL), bytes);
	GOT(recv(made, bytes, 100, 0));
	GOT(ioctl(made, FIONREAD, &waiting));
	say("%d\n", waiting);
	GOT(recv(made, bytes, 100, MSG_OOB));
	GOT(recv(made, bytes, 100, MSG_ERRQUEUE));
}

/* What a control message says; `yes` asks for it. */
static void say_control(struct msghdr *message)
{
	say("control %zu flags %d\n", message->msg_controllen, message->msg_flags);
	for (struct cmsghdr *each = CMSG_FIRSTHDR(message); each; each = CMSG_NXTHDR(message, each)) {
		struct in_pktinfo info;

		say("\tlevel %d type %d length %zu\n", each->cmsg_level, each->cmsg_type, (size_t)each->cmsg_len);
		if (each->cmsg_level == IPPROTO_IP && each->cmsg_type != IP_PKTINFO)
			say("\t%d\n", *CMSG_DATA(each));
		if (each->cmsg_level == IPPROTO_IP && each->cmsg_type == IP_PKTINFO) {
			memcpy(&info, CMSG_DATA(each), sizeof(info));
			say("\tinterface %d, %s", info.ipi_ifindex, inet_ntoa(info.ipi_spec_dst));
			say(", %s\n", inet_ntoa(info.ipi_addr));
		}
	}
}

static void received_message(int made, size_t room, size_t control_room, int flags)
{
	static char control[256];
	struct sockaddr_in from = { 0 };
	struct iovec part = { bytes, room };
	struct msghdr message = { .msg_name = &from,	.msg_namelen = sizeof(from),
				  .msg_iov = &part,	.msg_iovlen = 1,
				  .msg_control = control, .msg_controllen = control_room };
	ssize_t got = recvmsg(made, &message, flags);

	say_result("recvmsg", got, errno);
	if (got >= 0) {
		say_from(&from, message.msg_namelen);
		say_control(&message);
	}
}

CASE(datagrams, messages_without_control)
{
	int made = bound_datagrams(SOCK_NONBLOCK);

	ask("datagram 1 0 hello; datagram 1 0 hello");
	received_message(made, 100, 256, 0);
	received_message(made, 3, 256, MSG_TRUNC);
	received_message(made, 100, 256, 0);
}

CASE(datagrams, messages_say_where_they_came_to)
{
	int made = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0), yes = 1;
	struct sockaddr_in at = address_at(0);

	at.sin_addr.s_addr = 0;
	GOT(bind(made, (struct sockaddr *)&at, sizeof(at)));
	GOT(setsockopt(made, IPPROTO_IP, IP_PKTINFO, &yes, sizeof(yes)));
	ask("datagram 1 0 hello; datagram 1 0 hello; datagram 1 0 hello; datagram 1 0 hello");
	received_message(made, 100, 256, MSG_PEEK);
	received_message(made, 100, 256, 0);
	received_message(made, 100, CMSG_SPACE(sizeof(struct in_pktinfo)), 0);
	received_message(made, 100, 20, 0);
	received_message(made, 100, 0, 0);
}

CASE(datagrams, messages_say_more)
{
	static const struct {
		int level, option;
	} asked[] = { { IPPROTO_IP, IP_RECVTTL },     { IPPROTO_IP, IP_RECVTOS },	{ IPPROTO_IP, IP_PKTINFO },
		      { SOL_SOCKET, SO_TIMESTAMP }, { SOL_SOCKET, SO_TIMESTAMPNS } };
	int made = bound_datagrams(SOCK_NONBLOCK), yes = 1, no = 0;

	for (size_t i = 0; i < sizeof(asked) / sizeof(*asked); i++) {
		GOT(setsockopt(made, asked[i].level, asked[i].option, &yes, sizeof(yes)));
		ask("datagram 1 0 hello");
		received_message(made, 100, 256, 0);
	}
	GOT(setsockopt(made, IPPROTO_IP, IP_PKTINFO, &no, sizeof(no)));
	ask("datagram 1 0 hello");
	received_message(made, 100, 256, 0);
}

CASE(datagrams, messages_leave_from_where_they_came_to)
{
	int made = socket(AF_INET, SOCK_DGRAM, 0), yes = 1;
	struct sockaddr_in at = address_at(0), to;
	struct iovec part = { (char *)"answer", 6 };
	socklen_t length = sizeof(to);
	union {
		char room[CMSG_SPACE(sizeof(struct in_pktinfo))];
		struct cmsghdr head;
	} control = { .head = { .cmsg_level = IPPROTO_IP, .cmsg_type = IP_PKTINFO,
				.cmsg_len = CMSG_LEN(sizeof(struct in_pktinfo)) } };
	struct in_pktinfo info = { .ipi_spec_dst.s_addr = host };
	struct msghdr message = { .msg_name = &to,	   .msg_namelen = sizeof(to),
				  .msg_iov = &part,	   .msg_iovlen = 1,
				  .msg_control = &control, .msg_controllen = sizeof(control) };

	memcpy(CMSG_DATA(&control.head), &info, sizeof(info));
	at.sin_addr.s_addr = 0;
	GOT(bind(made, (struct sockaddr *)&at, sizeof(at)));
	GOT(setsockopt(made, IPPROTO_IP, IP_PKTINFO, &yes, sizeof(yes)));
	ask("datagram 1 0 hello");
	GOT_BYTES(recvfrom(made, bytes, 100, 0, (struct sockaddr *)&to, &length), bytes);
	GOT(sendmsg(made, &message, 0));
	ask("take-datagram 1");
}

CASE(datagrams, answers_of_who_listens_everywhere)
{
	int made = socket(AF_INET, SOCK_DGRAM, 0);
	struct sockaddr_in at = address_at(0), to;
	socklen_t length = sizeof(to);

	at.sin_addr.s_addr = 0;
	GOT(bind(made, (struct sockaddr *)&at, sizeof(at)));
	ask("datagram 1 0 hello");
	GOT_BYTES(recvfrom(made, bytes, 100, 0, (struct sockaddr *)&to, &length), bytes);
	say_from(&to, length);
	GOT(getsockname(made, (struct sockaddr *)&at, &length));
	say_address("own", &at);
}

CASE(datagrams, clients_of_ipv4_at_a_port_of_ipv6)
{
	struct sockaddr_in6 at = { .sin6_family = AF_INET6, .sin6_port = address_at(0).sin_port }, from = { 0 };
	int made = socket(AF_INET6, SOCK_DGRAM, 0), yes = 1, no = 0;
	char control[256], text[64];
	struct iovec part = { bytes, 100 };
	struct msghdr message = { .msg_name = &from,	  .msg_namelen = sizeof(from),
				  .msg_iov = &part,	  .msg_iovlen = 1,
				  .msg_control = control, .msg_controllen = sizeof(control) };
	struct in6_pktinfo info;

	GOT(setsockopt(made, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no)));
	GOT(setsockopt(made, IPPROTO_IPV6, IPV6_RECVPKTINFO, &yes, sizeof(yes)));
	GOT(bind(made, (struct sockaddr *)&at, sizeof(at)));
	ask("datagram 1 0 hello");
	GOT_BYTES(recvmsg(made, &message, 0), bytes);
	say("length %u from %s, control %zu\n", message.msg_namelen,
	    inet_ntop(AF_INET6, &from.sin6_addr, text, sizeof(text)), message.msg_controllen);
	memcpy(&info, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(info));
	say("interface %u, to %s\n", info.ipi6_ifindex, inet_ntop(AF_INET6, &info.ipi6_addr, text, sizeof(text)));
	part.iov_len = 5;
	GOT(sendmsg(made, &message, 0));
	ask("take-datagram 1");
}

CASE(datagrams, several_messages)
{
	int made = bound_datagrams(SOCK_NONBLOCK);
	struct sockaddr_in from[3] = { 0 };
	struct iovec parts[3] = { { bytes, 10 }, { bytes + 10, 2 }, { bytes + 20, 10 } };
	struct mmsghdr messages[3] = { 0 };

	for (int i = 0; i < 3; i++)
		messages[i].msg_hdr = (struct msghdr){ .msg_name = from + i, .msg_namelen = sizeof(*from),
						       .msg_iov = parts + i, .msg_iovlen = 1 };
	GOT(recvmmsg(made, messages, 3, 0, NULL));
	ask("datagram 1 0 hello; datagram 2 0 world");
	GOT(recvmmsg(made, messages, 3, 0, NULL));
	for (int i = 0; i < 2; i++) {
		say("%u flags %d ", messages[i].msg_len, messages[i].msg_hdr.msg_flags);
		say_from(from + i, messages[i].msg_hdr.msg_namelen);
	}
	parts[0].iov_len = 5;
	GOT(sendmmsg(made, messages, 2, 0));
	ask("take-datagram 1; take-datagram 2");
	say("%u %u\n", messages[0].msg_len, messages[1].msg_len);
}

CASE(datagrams, answers)
{
	int made = bound_datagrams(0);
	struct sockaddr_in to;
	socklen_t length = sizeof(to);

	ask("datagram 3 0 hello");
	GOT_BYTES(recvfrom(made, bytes, 100, 0, (struct sockaddr *)&to, &length), bytes);
	GOT(sendto(made, "answer", 6, 0, (struct sockaddr *)&to, length));
	ask("take-datagram 3");
}

CASE(datagrams, answers_without_bytes)
{
	int made = bound_datagrams(0);
	struct sockaddr_in to;
	socklen_t length = sizeof(to);

	ask("datagram 3 0");
	GOT(recvfrom(made, bytes, 100, 0, (struct sockaddr *)&to, &length));
	GOT(sendto(made, bytes, 0, MSG_DONTWAIT, (struct sockaddr *)&to, length));
	ask("take-datagram 3");
}

CASE(datagrams, to_nobody)
{
	int made = bound_datagrams(0);
	struct iovec part = { bytes, 5 };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
	struct sockaddr_in to = address_at(3);

	GOT(send(made, bytes, 5, 0));
	GOT(write(made, bytes, 5));
	GOT(sendmsg(made, &message, 0));
	GOT(sendto(made, bytes, 5, 0, (struct sockaddr *)&to, 3));
	to.sin_port = 0;
	GOT(sendto(made, bytes, 5, 0, (struct sockaddr *)&to, sizeof(to)));
	to = address_at(3);
	GOT(sendto(made, bytes, 65508, 0, (struct sockaddr *)&to, sizeof(to)));
}

CASE(datagrams, long_ones)
{
	int made = bound_datagrams(0);
	struct sockaddr_in to;
	socklen_t length = sizeof(to);

	ask("datagram-of 1 0 60000");
	GOT_BYTES(recvfrom(made, bytes, sizeof(bytes), 0, (struct sockaddr *)&to, &length), bytes);
	GOT(sendto(made, bytes, 60000, 0, (struct sockaddr *)&to, length));
	ask("take-datagram 1");
}

CASE(datagrams, a_client_is_connected_to)
{
	int made = bound_datagrams(SOCK_NONBLOCK);
	struct sockaddr_in to, at = { 0 };
	struct sockaddr none = { .sa_family = AF_UNSPEC };
	socklen_t length = sizeof(to);

	ask("datagram 1 0 hello");
	GOT(recvfrom(made, bytes, 100, 0, (struct sockaddr *)&to, &length));
	GOT(getpeername(made, (struct sockaddr *)&at, &length));
	GOT(connect(made, (struct sockaddr *)&to, sizeof(to)));
	GOT(getpeername(made, (struct sockaddr *)&at, &length));
	say_address("peer", &at);
	GOT(send(made, "answer", 6, 0));
	ask("take-datagram 1");
	ask("datagram 2 0 other; datagram 1 0 more");
	GOT_BYTES(recv(made, bytes, 100, 0), bytes);
	GOT(recv(made, bytes, 100, 0));
	GOT(connect(made, &none, sizeof(none)));
	GOT(getpeername(made, (struct sockaddr *)&at, &length));
	ask("datagram 2 0 other");
	GOT_BYTES(recv(made, bytes, 100, 0), bytes);
}

CASE(datagrams, names_and_options)
{
	int made = bound_datagrams(0), value = 77;
	struct sockaddr_in at = { 0 };
	socklen_t length = sizeof(at);

	GOT(getsockname(made, (struct sockaddr *)&at, &length));
	say_address("own", &at);
	length = sizeof(value);
	GOT(getsockopt(made, SOL_SOCKET, SO_TYPE, &value, &length));
	say("%d\n", value);
	GOT(getsockopt(made, SOL_SOCKET, SO_ACCEPTCONN, &value, &length));
	say("%d\n", value);
	GOT(getsockopt(made, SOL_SOCKET, SO_ERROR, &value, &length));
	say("%d\n", value);
	GOT(listen(made, 5));
	GOT(accept(made, NULL, NULL));
	GOT(shutdown(made, SHUT_RD));
	GOT(bind(made, (struct sockaddr *)&at, sizeof(at)));
}

CASE(datagrams, ports_that_are_taken)
{
	int made = socket(AF_INET, SOCK_DGRAM, 0), other = socket(AF_INET, SOCK_DGRAM, 0);
	struct sockaddr_in at = address_at(0);
	int listener = listening(0);

	(void)listener;
	GOT(bind(made, (struct sockaddr *)&at, sizeof(at)));
	GOT(bind(other, (struct sockaddr *)&at, sizeof(at)));
	GOT(close(made));
	GOT(bind(other, (struct sockaddr *)&at, sizeof(at)));
}

CASE(datagrams, readiness)
{
	int made = bound_datagrams(SOCK_NONBLOCK), epoll = epoll_create1(0);
	struct epoll_event event = { .events = EPOLLIN | EPOLLOUT, .data.u64 = 1 }, found[4];

	GOT(epoll_ctl(epoll, EPOLL_CTL_ADD, made, &event));
	say_found(found, (int)GOT(epoll_wait(epoll, found, 4, 0)));
	ask("datagram 1 0 hello; datagram 1 0 more");
	say_found(found, (int)GOT(epoll_wait(epoll, found, 4, 0)));
	recv(made, bytes, 100, 0);
	say_found(found, (int)GOT(epoll_wait(epoll, found, 4, 0)));
	recv(made, bytes, 100, 0);
	say_found(found, (int)GOT(epoll_wait(epoll, found, 4, 0)));
	event.events = EPOLLIN | EPOLLET;
	GOT(epoll_ctl(epoll, EPOLL_CTL_MOD, made, &event));
	tell("datagram 1 0 hello");
	say_found(found, (int)GOT(epoll_wait(epoll, found, 4, -1)));
	GOT(epoll_wait(epoll, found, 4, 0));
	ask("datagram 1 0 hello");
	GOT(epoll_wait(epoll, found, 4, 0));
}
