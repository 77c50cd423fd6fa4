/* Descriptors, names and options. */
#include "cases.h"

#include <linux/close_range.h>
#include <sys/stat.h>

static char bytes[256];

static int connected(int flags)
{
	int made = client(listening(0), 1);

	if (flags & SOCK_NONBLOCK)
		set_nonblocking(made);
	return made;
}

CASE(descriptors, dup_shares_all)
{
	int made = connected(0), other;

	other = (int)GOT(dup(made));
	GOT(set_nonblocking(other));
	GOT(fcntl(made, F_GETFL) & O_NONBLOCK);
	ask("send 1 hello");
	GOT_BYTES(read(made, bytes, 2), bytes);
	GOT_BYTES(read(other, bytes, 2), bytes);
	GOT(close(made));
	GOT_BYTES(read(other, bytes, 2), bytes);
	GOT(read(made, bytes, 2));
	GOT(write(other, "answer", 6));
	ask("take 1 6");
	GOT(close(other));
	ask("ended 1");
}

CASE(descriptors, dup2_takes_a_place)
{
	int made = connected(SOCK_NONBLOCK), ends[2];

	GOT(pipe(ends));
	GOT(dup2(made, ends[0]));
	ask("send 1 hello");
	GOT_BYTES(read(ends[0], bytes, 10), bytes);
	GOT(dup2(made, made));
	GOT(dup2(ends[1], made));
	GOT(read(made, bytes, 10));
	GOT(write(ends[0], "answer", 6));
	ask("take 1 6");
	GOT(dup2(ends[1], ends[0]));
	ask("ended 1");
}

CASE(descriptors, dup2_of_nothing_takes_no_place)
{
	int made = connected(SOCK_NONBLOCK);

	GOT(dup2(99, made));
	GOT(dup3(99, made, 0));
	GOT(dup3(made, made, 0));
	GOT(dup3(0, made, 1));
	GOT(dup2(made, -1));
	GOT(dup2(made, 1 << 30));
	ask("send 1 hello");
	GOT_BYTES(read(made, bytes, 10), bytes);
}

CASE(descriptors, dup3_sets_flags)
{
	int made = connected(SOCK_NONBLOCK), other;

	other = (int)GOT(dup3(made, 50, O_CLOEXEC));
	GOT(fcntl(other, F_GETFD));
	GOT(fcntl(made, F_GETFD));
	ask("send 1 hello");
	GOT_BYTES(read(other, bytes, 10), bytes);
}

CASE(descriptors, fcntl_duplicates)
{
	int made = connected(SOCK_NONBLOCK), one, other;

	one = (int)GOT(fcntl(made, F_DUPFD, 20));
	other = (int)GOT(fcntl(made, F_DUPFD_CLOEXEC, 20));
	GOT(fcntl(one, F_GETFD));
	GOT(fcntl(other, F_GETFD));
	GOT(fcntl(made, F_DUPFD, -1));
	ask("send 1 hello");
	GOT_BYTES(read(one, bytes, 2), bytes);
	GOT_BYTES(read(other, bytes, 2), bytes);
}

CASE(descriptors, fcntl_of_flags)
{
	int made = connected(0);

	GOT(fcntl(made, F_GETFL));
	GOT(fcntl(made, F_SETFL, O_NONBLOCK));
	GOT(fcntl(made, F_GETFL));
	GOT(read(made, bytes, 1));
	GOT(fcntl(made, F_SETFL, 0));
	GOT(fcntl(made, F_GETFD));
	GOT(fcntl(made, F_SETFD, FD_CLOEXEC));
	GOT(fcntl(made, F_GETFD));
	tell("send 1 hello");
	GOT_BYTES(read(made, bytes, 10), bytes);
	GOT(fcntl(made, 9999));
	GOT(fcntl(99, F_GETFL));
}

CASE(descriptors, duplicates_of_a_listener)
{
	int listener = listening(SOCK_NONBLOCK), other = dup(listener), made;

	ask("connect 1 0");
	GOT(close(listener));
	made = (int)GOT(accept(other, NULL, NULL));
	GOT(close(other));
	ask("send 1 hello");
	GOT_BYTES(read(made, bytes, 10), bytes);
}

CASE(descriptors, ioctl_counts_bytes)
{
	int made = connected(SOCK_NONBLOCK), waiting = -1;

	GOT(ioctl(made, FIONREAD, &waiting));
	say("%d\n", waiting);
	ask("send 1 hello");
	GOT(ioctl(made, FIONREAD, &waiting));
	say("%d\n", waiting);
	read(made, bytes, 2);
	ask("send 1 more; end 1");
	GOT(ioctl(made, FIONREAD, &waiting));
	say("%d\n", waiting);
	read(made, bytes, 100);
	GOT(ioctl(made, FIONREAD, &waiting));
	say("%d\n", waiting);
}

CASE(descriptors, ioctl_of_blocking)
{
	int made = connected(0), yes = 1, no = 0, waiting = -1;

	GOT(ioctl(made, FIONBIO, &yes));
	GOT(fcntl(made, F_GETFL) & O_NONBLOCK);
	GOT(read(made, bytes, 1));
	GOT(ioctl(made, FIONBIO, &no));
	GOT(fcntl(made, F_GETFL) & O_NONBLOCK);
	tell("send 1 hello");
	GOT_BYTES(read(made, bytes, 10), bytes);
	GOT(ioctl(made, FIOCLEX));
	GOT(fcntl(made, F_GETFD));
	GOT(ioctl(made, TIOCOUTQ, &waiting));
	say("%d\n", waiting);
	GOT(ioctl(made, SIOCATMARK, &waiting));
	say("%d\n", waiting);
	GOT(ioctl(made, TCGETS, bytes));
	GOT(isatty(made));
}

CASE(descriptors, names_of_both_ends)
{
	int listener = listening(0), made = client(listener, 1);
	struct sockaddr_in at;
	socklen_t length = sizeof(at);

	GOT(getsockname(listener, (struct sockaddr *)&at, &length));
	say_address("listens", &at);
	GOT(getpeername(listener, (struct sockaddr *)&at, &length));
	length = 100;
	GOT(getsockname(made, (struct sockaddr *)&at, &length));
	say_address("own", &at);
	say("length %u\n", length);
	length = sizeof(at);
	GOT(getpeername(made, (struct sockaddr *)&at, &length));
	say_address("peer", &at);
	GOT(getpeername(-1, (struct sockaddr *)&at, &length));
	GOT(getsockname(0, (struct sockaddr *)&at, &length));
}

CASE(descriptors, names_are_cut)
{
	int made = connected(0);
	char name[17];

	for (socklen_t room = 0; room <= 16; room += 4) {
		socklen_t length = room;

		memset(name, 'x', sizeof(name));
		GOT(getpeername(made, (struct sockaddr *)name, &length));
		say("%u of %u %s\n", length, room, name[room] == 'x' ? "kept" : "overwritten");
		length = room;
		GOT(getsockname(made, (struct sockaddr *)name, &length));
		say("%u of %u\n", length, room);
	}
	GOT(getpeername(made, (struct sockaddr *)name, &(socklen_t){ (socklen_t)unseen(-1) }));
	GOT(getsockname(made, (struct sockaddr *)name, &(socklen_t){ (socklen_t)unseen(-1) }));
}

CASE(descriptors, names_when_all_is_over)
{
	int made = connected(SOCK_NONBLOCK);
	struct sockaddr_in at = { 0 };
	socklen_t length = sizeof(at);

	ask("end 1");
	GOT(getpeername(made, (struct sockaddr *)&at, &length));
	ask("reset 1");
	GOT(getpeername(made, (struct sockaddr *)&at, &length));
	GOT(getsockname(made, (struct sockaddr *)&at, &length));
	say_address("own", &at);
}

CASE(descriptors, a_listener_for_all_addresses)
{
	struct sockaddr_in at = address_at(0);
	int listener = socket(AF_INET, SOCK_STREAM, 0), made, yes = 1;
	socklen_t length = sizeof(at);

	at.sin_addr.s_addr = 0;
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	GOT(bind(listener, (struct sockaddr *)&at, sizeof(at)));
	GOT(listen(listener, 5));
	made = client(listener, 1);
	GOT(getsockname(listener, (struct sockaddr *)&at, &length));
	say_address("listens", &at);
	GOT(getsockname(made, (struct sockaddr *)&at, &length));
	say_address("own", &at);
}

CASE(descriptors, a_listener_of_ipv6)
{
	struct sockaddr_in6 at = { .sin6_family = AF_INET6, .sin6_port = address_at(0).sin_port };
	int listener = socket(AF_INET6, SOCK_STREAM, 0), made, yes = 1, no = 0;
	socklen_t length = sizeof(at);
	char text[64];

	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	GOT(setsockopt(listener, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no)));
	GOT(bind(listener, (struct sockaddr *)&at, sizeof(at)));
	GOT(listen(listener, 5));
	ask("connect 1 0");
	made = (int)GOT(accept(listener, (struct sockaddr *)&at, &length));
	say("length %u family %d from %s\n", length, at.sin6_family,
	    inet_ntop(AF_INET6, &at.sin6_addr, text, sizeof(text)));
	GOT(getsockname(made, (struct sockaddr *)&at, &length));
	say("length %u family %d at %s:%d\n", length, at.sin6_family,
	    inet_ntop(AF_INET6, &at.sin6_addr, text, sizeof(text)), ntohs(at.sin6_port));
	GOT(getpeername(made, (struct sockaddr *)&at, &length));
	say("length %u family %d\n", length, at.sin6_family);
}

static void option(const char *name, int descriptor, int level, int number)
{
	int value = 77;
	socklen_t length = sizeof(value);
	int result = getsockopt(descriptor, level, number, &value, &length);

	say_result(name, result, errno);
	if (!result)
		say("\t%d, length %u\n", value, length);
}
#define OPTION(descriptor, level, number) option(#descriptor " " #number, descriptor, level, number)

CASE(descriptors, options_that_are_asked)
{
	int listener = listening(0), made = client(listener, 1);

	OPTION(listener, SOL_SOCKET, SO_ACCEPTCONN);
	OPTION(listener, SOL_SOCKET, SO_TYPE);
	OPTION(listener, SOL_SOCKET, SO_REUSEADDR);
	OPTION(listener, SOL_SOCKET, SO_ERROR);
	OPTION(made, SOL_SOCKET, SO_ACCEPTCONN);
	OPTION(made, SOL_SOCKET, SO_TYPE);
	OPTION(made, SOL_SOCKET, SO_DOMAIN);
	OPTION(made, SOL_SOCKET, SO_PROTOCOL);
	OPTION(made, SOL_SOCKET, SO_ERROR);
	OPTION(made, SOL_SOCKET, SO_KEEPALIVE);
	OPTION(made, SOL_SOCKET, SO_BROADCAST);
	OPTION(made, SOL_SOCKET, SO_OOBINLINE);
	OPTION(made, IPPROTO_TCP, TCP_NODELAY);
	OPTION(made, IPPROTO_TCP, TCP_CORK);
	OPTION(made, IPPROTO_TCP, TCP_KEEPIDLE);
	OPTION(made, SOL_SOCKET, 9999);
	OPTION(made, 9999, 1);
	OPTION(99, SOL_SOCKET, SO_ERROR);
	OPTION(0, SOL_SOCKET, SO_ERROR);
}

CASE(descriptors, options_that_are_set)
{
	int made = connected(0), yes = 1, much = 120;
	struct linger linger = { .l_onoff = 1, .l_linger = 5 };
	socklen_t length = sizeof(linger);

	GOT(setsockopt(made, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes)));
	OPTION(made, IPPROTO_TCP, TCP_NODELAY);
	GOT(setsockopt(made, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof(yes)));
	OPTION(made, SOL_SOCKET, SO_KEEPALIVE);
	GOT(setsockopt(made, IPPROTO_TCP, TCP_KEEPIDLE, &much, sizeof(much)));
	OPTION(made, IPPROTO_TCP, TCP_KEEPIDLE);
	GOT(setsockopt(made, IPPROTO_TCP, TCP_KEEPINTVL, &much, sizeof(much)));
	GOT(setsockopt(made, IPPROTO_TCP, TCP_KEEPCNT, &yes, sizeof(yes)));
	GOT(setsockopt(made, IPPROTO_TCP, TCP_USER_TIMEOUT, &much, sizeof(much)));
	GOT(setsockopt(made, IPPROTO_TCP, TCP_QUICKACK, &yes, sizeof(yes)));
	GOT(setsockopt(made, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)));
	linger.l_linger = 0;
	GOT(getsockopt(made, SOL_SOCKET, SO_LINGER, &linger, &length));
	say("%d %d\n", linger.l_onoff, linger.l_linger);
	GOT(setsockopt(made, SOL_SOCKET, SO_SNDBUF, &much, 1));
	GOT(setsockopt(made, SOL_SOCKET, 9999, &yes, sizeof(yes)));
	GOT(setsockopt(made, IPPROTO_IP, IP_TOS, &(int){ 16 }, sizeof(int)));
	OPTION(made, IPPROTO_IP, IP_TOS);
}

CASE(descriptors, sending_without_a_copy)
{
	int made = connected(0), yes = 1;

	GOT(setsockopt(made, SOL_SOCKET, SO_ZEROCOPY, &yes, sizeof(yes)));
}

CASE(descriptors, options_are_inherited)
{
	int listener = listening(0), made, yes = 1;
	struct timeval wait = { .tv_sec = 2 };
	socklen_t length = sizeof(wait);

	GOT(setsockopt(listener, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes)));
	GOT(setsockopt(listener, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof(yes)));
	GOT(setsockopt(listener, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait)));
	made = client(listener, 1);
	OPTION(made, IPPROTO_TCP, TCP_NODELAY);
	OPTION(made, SOL_SOCKET, SO_KEEPALIVE);
	GOT(getsockopt(made, SOL_SOCKET, SO_RCVTIMEO, &wait, &length));
	say("%ld s\n", (long)wait.tv_sec);
}

CASE(descriptors, errors_are_told_once)
{
	int made = connected(SOCK_NONBLOCK);

	ask("reset 1");
	OPTION(made, SOL_SOCKET, SO_ERROR);
	OPTION(made, SOL_SOCKET, SO_ERROR);
	GOT(read(made, bytes, 10));
}

CASE(descriptors, errors_after_an_end)
{
	int made = connected(SOCK_NONBLOCK);

	ask("end 1");
	OPTION(made, SOL_SOCKET, SO_ERROR);
	ask("reset 1");
	OPTION(made, SOL_SOCKET, SO_ERROR);
	OPTION(made, SOL_SOCKET, SO_ERROR);
}

CASE(descriptors, options_are_cut)
{
	int made = connected(0), value;

	for (socklen_t room = 0; room <= 8; room += 2) {
		socklen_t length = room;

		value = 0x77777777;
		GOT(getsockopt(made, SOL_SOCKET, SO_ERROR, &value, &length));
		say("%x, length %u\n", (unsigned int)value, length);
		length = room;
		value = 0x77777777;
		GOT(getsockopt(made, SOL_SOCKET, SO_ACCEPTCONN, &value, &length));
		say("%x, length %u\n", (unsigned int)value, length);
	}
}

CASE(descriptors, the_state_of_a_connection)
{
	int made = connected(0);
	struct tcp_info info = { 0 };
	socklen_t length = sizeof(info);

	GOT(getsockopt(made, IPPROTO_TCP, TCP_INFO, &info, &length));
	say("state %d\n", info.tcpi_state);
	ask("end 1");
	GOT(getsockopt(made, IPPROTO_TCP, TCP_INFO, &info, &length));
	say("state %d\n", info.tcpi_state);
}

CASE(descriptors, files_are_told_apart)
{
	int made = connected(0);
	struct stat found;

	GOT(fstat(made, &found));
	GOT(S_ISSOCK(found.st_mode));
}

CASE(descriptors, ranges_are_closed)
{
	int made = connected(0), other = dup(made);

	GOT(close_range(50, 40, 0));
	GOT(close_range((unsigned int)made, (unsigned int)made, CLOSE_RANGE_CLOEXEC));
	GOT(fcntl(made, F_GETFD));
	GOT(close_range((unsigned int)made, (unsigned int)other, 0));
	ask("ended 1");
	GOT(read(made, bytes, 10));
	GOT(open("/dev/null", O_RDONLY) == made);
	GOT(read(made, bytes, 10));
}

CASE(descriptors, a_program_closes_what_it_did_not_open)
{
	int made = connected(0);

	for (int each = made + 1; each < 1024; each++) {
		if (each != 200 && each != 201)
			close(each);
	}
	tell("send 1 hello");
	GOT_BYTES(read(made, bytes, 10), bytes);
	GOT(dup2(0, 1000));
	GOT(dup2(0, 1001));
	GOT(close(1000));
	tell("send 1 again");
	GOT_BYTES(read(made, bytes, 10), bytes);
}

CASE(descriptors, sockets_of_the_own)
{
	int pair[2], made = connected(0);

	(void)made;
	GOT(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	GOT(write(pair[0], "hello", 5));
	GOT_BYTES(recv(pair[1], bytes, 10, MSG_DONTWAIT), bytes);
	GOT(recv(pair[1], bytes, 10, MSG_DONTWAIT));
	GOT(shutdown(pair[0], SHUT_WR));
	GOT(recv(pair[1], bytes, 10, 0));
	OPTION(pair[1], SOL_SOCKET, SO_TYPE);
}
