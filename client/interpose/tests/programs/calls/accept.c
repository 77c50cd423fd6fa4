/* Who comes to a port, and in which order. */
#include "cases.h"

static int accepted(int descriptor)
{
	struct sockaddr_in from = { 0 };
	socklen_t length = sizeof(from);
	int made = (int)GOT(accept(descriptor, (struct sockaddr *)&from, &length));

	if (made >= 0) {
		say("length %u ", length);
		say_address("from", &from);
	}
	return made;
}

CASE(accept, accept_says_who_has_come)
{
	int listener = listening(0);

	ask("connect 1 0");
	accepted(listener);
}

CASE(accept, accept_waits)
{
	int listener = listening(0);

	tell("connect 1 0");
	accepted(listener);
}

CASE(accept, accept_of_nobody_would_wait)
{
	int listener = listening(SOCK_NONBLOCK);

	accepted(listener);
	ask("connect 1 0");
	accepted(listener);
	accepted(listener);
}

CASE(accept, accept_keeps_the_order)
{
	int listener = listening(SOCK_NONBLOCK);

	ask("connect 3 0");
	ask("connect 1 0; connect 2 0");
	for (int i = 0; i < 4; i++)
		accepted(listener);
}

CASE(accept, accept_of_two_ports)
{
	int first = listening_at(0, SOCK_NONBLOCK), second = listening_at(1, SOCK_NONBLOCK);

	ask("connect 1 1; connect 2 0");
	accepted(first);
	accepted(second);
	accepted(first);
}

CASE(accept, accept4_sets_flags)
{
	int listener = listening(0), flags[] = { 0, SOCK_NONBLOCK, SOCK_CLOEXEC, SOCK_NONBLOCK | SOCK_CLOEXEC };

	ask("connect 1 0; connect 2 0; connect 3 0; connect 4 0");
	for (int i = 0; i < 4; i++) {
		int made = (int)GOT(accept4(listener, NULL, NULL, flags[i]));

		GOT(fcntl(made, F_GETFL) & (O_NONBLOCK | O_ACCMODE));
		GOT(fcntl(made, F_GETFD));
	}
}

CASE(accept, accept4_knows_no_other_flags)
{
	int listener = listening(SOCK_NONBLOCK);

	GOT(accept4(listener, NULL, NULL, 1));
	ask("connect 1 0");
	GOT(accept4(listener, NULL, NULL, 1 << 20));
	GOT(accept4(listener, NULL, NULL, 0));
}

CASE(accept, accept_does_not_inherit_flags)
{
	int listener = listening(SOCK_NONBLOCK | SOCK_CLOEXEC), made;

	ask("connect 1 0");
	made = accepted(listener);
	GOT(fcntl(made, F_GETFL) & (O_NONBLOCK | O_ACCMODE));
	GOT(fcntl(made, F_GETFD));
}

CASE(accept, accept_cuts_the_address)
{
	struct sockaddr_in from;
	int listener = listening(0);

	ask("connect 1 0; connect 2 0; connect 3 0");
	for (socklen_t room = 0; room < 12; room += 5) {
		socklen_t length = room;

		memset(&from, 'x', sizeof(from));
		GOT(accept(listener, (struct sockaddr *)&from, &length));
		say("%u of %u: ", length, room);
		say_bytes((char *)&from + room, 3);
		say("\n");
	}
}

CASE(accept, accept_of_what_does_not_listen)
{
	int listener = listening(SOCK_NONBLOCK), datagrams = bound_datagrams(SOCK_NONBLOCK), made;
	int fresh = socket(AF_INET, SOCK_STREAM, 0), bound = socket(AF_INET, SOCK_STREAM, 0);
	struct sockaddr_in at = address_at(1);

	made = client(listener, 1);
	GOT(bind(bound, (struct sockaddr *)&at, sizeof(at)));
	GOT(accept(made, NULL, NULL));
	GOT(accept(datagrams, NULL, NULL));
	GOT(accept(fresh, NULL, NULL));
	GOT(accept(bound, NULL, NULL));
	GOT(accept(-1, NULL, NULL));
	GOT(accept(0x7fff, NULL, NULL));
}

CASE(accept, accept_of_who_has_sent_and_gone)
{
	int listener = listening(0), made;
	char bytes[16];

	ask("connect 1 0; send 1 hello; end 1");
	made = accepted(listener);
	GOT_BYTES(read(made, bytes, sizeof(bytes)), bytes);
	GOT(read(made, bytes, sizeof(bytes)));
}

CASE(accept, accept_of_who_has_reset)
{
	int listener = listening(0), made;
	char bytes[16];

	ask("connect 1 0");
	ask("reset 1");
	made = accepted(listener);
	GOT(read(made, bytes, sizeof(bytes)));
	GOT(read(made, bytes, sizeof(bytes)));
}

CASE(accept, accept_has_room_for_so_many_descriptors)
{
	int listener = listening(SOCK_NONBLOCK), last, made;

	last = dup(0);
	while ((made = dup(0)) >= 0 && made < 0x7fff)
		last = made;
	ask("connect 1 0");
	GOT(accept(listener, NULL, NULL) >= 0);
	close(last);
	GOT(accept(listener, NULL, NULL) == last);
}

CASE(accept, accept_of_nobody_without_a_descriptor)
{
	int listener = listening(SOCK_NONBLOCK), made;

	while ((made = dup(0)) >= 0 && made < 0x7fff)
		;
	GOT(accept(listener, NULL, NULL));
}

CASE(accept, accept_is_interrupted)
{
	int listener = listening(0);

	handle(SIGUSR1, 0);
	tell("signal %d", SIGUSR1);
	GOT(accept(listener, NULL, NULL));
	say("%d signals\n", (int)signals);
}

CASE(accept, accept_goes_on_after_a_signal_that_restarts)
{
	int listener = listening(0);

	handle(SIGUSR1, SA_RESTART);
	tell("signal %d", SIGUSR1);
	tell("connect 1 0");
	accepted(listener);
	say("%d signals\n", (int)signals);
}

CASE(accept, accept_ends_in_time)
{
	int listener = listening(0);
	struct timeval wait = { .tv_usec = 30000 };

	GOT(setsockopt(listener, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait)));
	GOT(accept(listener, NULL, NULL));
}

CASE(accept, listen_again)
{
	int listener = listening(SOCK_NONBLOCK), made;

	made = client(listener, 1);
	GOT(listen(listener, 1));
	GOT(listen(made, 1));
	ask("connect 2 0");
	accepted(listener);
}

CASE(accept, bind_to_what_is_taken)
{
	int listener = listening(0), other = socket(AF_INET, SOCK_STREAM, 0), yes = 1;
	struct sockaddr_in at = address_at(0), next = address_at(1);

	(void)listener;
	GOT(bind(other, (struct sockaddr *)&at, sizeof(at)));
	GOT(setsockopt(other, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)));
	GOT(bind(other, (struct sockaddr *)&at, sizeof(at)));
	GOT(bind(other, (struct sockaddr *)&next, sizeof(next)));
	GOT(bind(other, (struct sockaddr *)&next, sizeof(next)));
	GOT(listen(other, 1));
}

CASE(accept, bind_to_what_is_bound)
{
	int first = socket(AF_INET, SOCK_STREAM, 0), other = socket(AF_INET, SOCK_STREAM, 0), yes = 1;
	struct sockaddr_in at = address_at(0);

	GOT(setsockopt(first, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)));
	GOT(bind(first, (struct sockaddr *)&at, sizeof(at)));
	GOT(bind(other, (struct sockaddr *)&at, sizeof(at)));
	GOT(setsockopt(other, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)));
	GOT(bind(other, (struct sockaddr *)&at, sizeof(at)));
	GOT(listen(first, 1));
	GOT(listen(other, 1));
	GOT(close(first));
	GOT(listen(other, 1));
}

static int bound6(int is_v6only)
{
	struct sockaddr_in6 at = { .sin6_family = AF_INET6, .sin6_port = address_at(0).sin_port };
	int made = socket(AF_INET6, SOCK_STREAM, 0);

	GOT(setsockopt(made, IPPROTO_IPV6, IPV6_V6ONLY, &is_v6only, sizeof(is_v6only)));
	GOT(bind(made, (struct sockaddr *)&at, sizeof(at)));
	return made;
}

CASE(accept, bind_in_both_families)
{
	struct sockaddr_in at = address_at(0);
	int made = socket(AF_INET, SOCK_STREAM, 0);

	at.sin_addr.s_addr = 0;
	GOT(bind(made, (struct sockaddr *)&at, sizeof(at)));
	GOT(listen(made, 5));
	GOT(listen(bound6(1), 5));
	bound6(0);
}

CASE(accept, bind_takes_only_whole_addresses)
{
	int made = socket(AF_INET, SOCK_STREAM, 0);
	struct sockaddr_in at = address_at(0);

	GOT(bind(made, (struct sockaddr *)&at, sizeof(at) - 1));
	GOT(bind(made, (struct sockaddr *)&at, 1));
	GOT(bind(-1, (struct sockaddr *)&at, sizeof(at)));
	GOT(bind(0, (struct sockaddr *)&at, sizeof(at)));
}

CASE(accept, bind_to_an_address_of_another_machine)
{
	int made = socket(AF_INET, SOCK_STREAM, 0);
	struct sockaddr_in at = address_at(0);

	at.sin_addr.s_addr = htonl(0x0a636363); /* of nobody here */
	GOT(bind(made, (struct sockaddr *)&at, sizeof(at)));
}

CASE(accept, a_listener_that_is_shut_listens_no_more)
{
	int listener = listening(SOCK_NONBLOCK);

	GOT(shutdown(listener, SHUT_WR));
	ask("connect 1 0");
	accepted(listener);
	GOT(shutdown(listener, SHUT_RD));
	GOT(accept(listener, NULL, NULL));
	GOT(listen(listener, 1));
	ask("connect 2 0");
	accepted(listener);
}

CASE(accept, closing_a_port_sends_away_who_waits)
{
	int listener = listening(0);

	ask("connect 1 0; connect 2 0");
	GOT(accept(listener, NULL, NULL) >= 0);
	GOT(close(listener));
	ask("ended 2");
	GOT(accept(listener, NULL, NULL));
	listener = listening(SOCK_NONBLOCK);
	GOT(accept(listener, NULL, NULL));
	ask("connect 3 0");
	accepted(listener);
}

CASE(accept, reading_and_writing_at_a_port)
{
	int listener = listening(SOCK_NONBLOCK), waiting;
	char bytes[4];

	GOT(read(listener, bytes, sizeof(bytes)));
	GOT(recv(listener, bytes, sizeof(bytes), 0));
	GOT(send(listener, bytes, sizeof(bytes), MSG_NOSIGNAL));
	GOT(ioctl(listener, FIONREAD, &waiting));
	handle(SIGPIPE, 0);
	GOT(write(listener, bytes, sizeof(bytes)));
	say("%d signals\n", (int)signals);
}

static int shut_by_signal;

static void shut(int number)
{
	count_signal(number);
	shutdown(shut_by_signal, SHUT_RDWR);
}

CASE(accept, accept_ends_when_the_port_is_shut)
{
	int flags[] = { SA_RESTART, 0 };

	for (int i = 0; i < 2; i++) {
		struct sigaction action = { .sa_handler = shut, .sa_flags = flags[i] };

		shut_by_signal = listening_at(i, 0);
		sigaction(SIGUSR1, &action, NULL);
		tell("signal %d", SIGUSR1);
		GOT(accept(shut_by_signal, NULL, NULL));
		GOT(accept(shut_by_signal, NULL, NULL));
	}
	say("%d signals\n", (int)signals);
}
