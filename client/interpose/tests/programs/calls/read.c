/* What clients have sent. */
#include "cases.h"

ssize_t __read_chk(int, void *, size_t, size_t);
ssize_t __recv_chk(int, void *, size_t, size_t, int);
ssize_t __recvfrom_chk(int, void *, size_t, size_t, int, struct sockaddr *, socklen_t *);

static char bytes[1 << 17];

/* With a client that has sent this. */
static int sent(int flags, const char *text)
{
	int listener = listening(0), made = client(listener, 1);

	if (flags & SOCK_NONBLOCK)
		set_nonblocking(made);
	if (*text)
		ask("send 1 %s", text);
	return made;
}

CASE(read, read_in_parts)
{
	int made = sent(SOCK_NONBLOCK, "hello");

	GOT_BYTES(read(made, bytes, 3), bytes);
	GOT_BYTES(read(made, bytes, 3), bytes);
	GOT_BYTES(read(made, bytes, 3), bytes);
	ask("send 1 again; send 1 more");
	GOT_BYTES(read(made, bytes, 100), bytes);
}

CASE(read, read_waits)
{
	int made = sent(0, "");

	tell("send 1 hello");
	GOT_BYTES(read(made, bytes, 100), bytes);
	tell("end 1");
	GOT(read(made, bytes, 100));
	GOT(read(made, bytes, 100));
}

CASE(read, read_of_much)
{
	int made = sent(0, "");

	ask("fill 1 100000");
	GOT_BYTES(recv(made, bytes, 100000, MSG_WAITALL), bytes);
	set_nonblocking(made);
	GOT(read(made, bytes, 1));
}

CASE(read, nothing_is_read_into_no_room)
{
	int made = sent(SOCK_NONBLOCK, "");
	struct iovec none = { bytes, 0 };
	struct msghdr message = { .msg_iov = &none, .msg_iovlen = 1 };

	for (int i = 0; i < 3; i++) {
		GOT(read(made, bytes, 0));
		GOT(readv(made, &none, 1));
		GOT(readv(made, NULL, 0));
		GOT(recv(made, bytes, 0, 0));
		GOT(recv(made, bytes, 0, MSG_PEEK));
		GOT(recvfrom(made, bytes, 0, 0, NULL, NULL));
		GOT(recvmsg(made, &message, 0));
		if (i == 0)
			ask("send 1 x");
		if (i == 1)
			ask("end 1");
	}
	GOT(read(made, bytes, 10));
	GOT(recv(made, bytes, 0, 0));
}

CASE(read, recv_only_looks)
{
	int made = sent(SOCK_NONBLOCK, "hello");

	GOT_BYTES(recv(made, bytes, 3, MSG_PEEK), bytes);
	GOT_BYTES(recv(made, bytes, 100, MSG_PEEK), bytes);
	GOT_BYTES(recv(made, bytes, 2, 0), bytes);
	GOT_BYTES(recv(made, bytes, 100, MSG_PEEK | MSG_DONTWAIT), bytes);
	GOT_BYTES(recv(made, bytes, 100, 0), bytes);
	GOT(recv(made, bytes, 100, MSG_PEEK));
	ask("end 1");
	GOT(recv(made, bytes, 100, MSG_PEEK));
}

CASE(read, recv_does_not_wait)
{
	int made = sent(0, "");

	GOT(recv(made, bytes, 100, MSG_DONTWAIT));
	ask("send 1 hello");
	GOT_BYTES(recv(made, bytes, 100, MSG_DONTWAIT), bytes);
	GOT(recv(made, bytes, 100, MSG_DONTWAIT));
}

CASE(read, recv_waits_for_all)
{
	int made = sent(0, "hel");

	tell("send 1 lo");
	GOT_BYTES(recv(made, bytes, 5, MSG_WAITALL), bytes);
	ask("send 1 world; end 1");
	GOT_BYTES(recv(made, bytes, 100, MSG_WAITALL), bytes);
	GOT(recv(made, bytes, 100, MSG_WAITALL));
}

CASE(read, recv_of_all_that_would_wait)
{
	int made = sent(SOCK_NONBLOCK, "hello");

	GOT_BYTES(recv(made, bytes, 100, MSG_WAITALL), bytes);
	GOT(recv(made, bytes, 100, MSG_WAITALL));
	ask("send 1 hello");
	GOT_BYTES(recv(made, bytes, 100, MSG_WAITALL | MSG_DONTWAIT), bytes);
	ask("send 1 hello");
	GOT_BYTES(recv(made, bytes, 100, MSG_WAITALL | MSG_PEEK), bytes);
}

CASE(read, recv_throws_away)
{
	int made = sent(SOCK_NONBLOCK, "hello-world");

	memset(bytes, '.', 6);
	GOT_BYTES(recv(made, bytes, 6, MSG_TRUNC), bytes);
	GOT_BYTES(recv(made, bytes, 100, MSG_TRUNC | MSG_PEEK) >= 0 ? (ssize_t)6 : (ssize_t)-1, bytes);
	GOT_BYTES(recv(made, bytes, 100, 0), bytes);
	GOT(recv(made, bytes, 100, MSG_TRUNC));
}

CASE(read, recv_of_what_is_not_there)
{
	int made = sent(SOCK_NONBLOCK, "hello");

	GOT(recv(made, bytes, 100, MSG_OOB));
	GOT(recv(made, bytes, 100, MSG_ERRQUEUE));
	GOT_BYTES(recv(made, bytes, 100, MSG_NOSIGNAL | MSG_CMSG_CLOEXEC), bytes);
}

CASE(read, recvfrom_says_no_address)
{
	int made = sent(SOCK_NONBLOCK, "hello");
	struct sockaddr_in from = { 0 };
	socklen_t length = sizeof(from);

	GOT_BYTES(recvfrom(made, bytes, 3, 0, (struct sockaddr *)&from, &length), bytes);
	say("length %u, family %d\n", length, from.sin_family);
	GOT_BYTES(recvfrom(made, bytes, 3, 0, NULL, NULL), bytes);
	length = 7;
	GOT(recvfrom(made, bytes, 3, 0, (struct sockaddr *)&from, &length));
	say("length %u\n", length);
}

CASE(read, recvmsg_into_parts)
{
	int made = sent(SOCK_NONBLOCK, "hello-world");
	char name[32], control[64];
	struct iovec parts[3] = { { bytes, 2 }, { bytes + 10, 0 }, { bytes + 20, 4 } };
	struct msghdr message = { .msg_name = name,	  .msg_namelen = sizeof(name),
				  .msg_iov = parts,	  .msg_iovlen = 3,
				  .msg_control = control, .msg_controllen = sizeof(control),
				  .msg_flags = 77 };

	GOT(recvmsg(made, &message, 0));
	say_bytes(bytes, 2);
	say_bytes(bytes + 20, 4);
	say("name %u, control %zu, flags %d\n", message.msg_namelen, message.msg_controllen, message.msg_flags);
	message.msg_namelen = sizeof(name);
	message.msg_controllen = sizeof(control);
	GOT(recvmsg(made, &message, MSG_PEEK | MSG_CMSG_CLOEXEC));
	say("name %u, control %zu, flags %d\n", message.msg_namelen, message.msg_controllen,
	    message.msg_flags & ~MSG_CMSG_CLOEXEC);
	GOT(recvmsg(made, &message, MSG_TRUNC));
	message.msg_namelen = sizeof(name);
	message.msg_controllen = sizeof(control);
	GOT(recvmsg(made, &message, 0));
	say("name %u, control %zu\n", message.msg_namelen, message.msg_controllen);
	message.msg_iovlen = 1025;
	GOT(recvmsg(made, &message, 0));
}

CASE(read, recvmmsg_of_a_connection)
{
	int made = sent(SOCK_NONBLOCK, "hello");
	struct iovec parts[2] = { { bytes, 3 }, { bytes + 10, 3 } };
	struct mmsghdr messages[2] = { { .msg_hdr = { .msg_iov = parts, .msg_iovlen = 1 } },
				       { .msg_hdr = { .msg_iov = parts + 1, .msg_iovlen = 1 } } };

	GOT(recvmmsg(made, messages, 2, 0, NULL));
	say("%u and %u\n", messages[0].msg_len, messages[1].msg_len);
	say_bytes(bytes, 3);
	say_bytes(bytes + 10, 2);
	GOT(recvmmsg(made, messages, 2, 0, NULL));
	ask("send 1 hello");
	GOT(recvmmsg(made, messages, 1, MSG_DONTWAIT, NULL));
	set_nonblocking(made);
	GOT(recvmmsg(made, messages, 2, MSG_WAITFORONE, NULL));
}

CASE(read, readv_into_parts)
{
	int made = sent(SOCK_NONBLOCK, "hello-world");
	struct iovec parts[2] = { { bytes, 2 }, { bytes + 2, 4 } };

	GOT_BYTES(readv(made, parts, 2), bytes);
	GOT_BYTES(readv(made, parts, 1), bytes);
	GOT(readv(made, parts, unseen(-1)));
	GOT(readv(made, parts, unseen(1025)));
	GOT_BYTES(readv(made, parts, 2), bytes);
	GOT(readv(made, parts, 2));
	ask("end 1");
	GOT(readv(made, parts, 2));
}

CASE(read, calls_that_are_checked)
{
	int made = sent(SOCK_NONBLOCK, "hello-world");

	GOT_BYTES(__read_chk(made, bytes, 3, 100), bytes);
	GOT_BYTES(__recv_chk(made, bytes, 3, 100, MSG_PEEK), bytes);
	GOT_BYTES(__recvfrom_chk(made, bytes, 3, 3, 0, NULL, NULL), bytes);
}

CASE(read, calls_that_are_checked_stop_a_program)
{
	int made = sent(SOCK_NONBLOCK, "hello-world");

	freopen("/dev/null", "w", stderr);
	handle(SIGABRT, SA_RESETHAND);
	say("done\n");
	GOT(__read_chk(made, bytes, 4, 3));
}

CASE(read, calls_with_an_offset_are_for_files)
{
	int made = sent(SOCK_NONBLOCK, "hello-world");
	struct iovec part = { bytes, 4 };

	GOT(pread(made, bytes, 3, 0));
	GOT(preadv(made, &part, 1, 0));
	GOT(pwrite(made, bytes, 3, 0));
	GOT(lseek(made, 0, SEEK_CUR));
	GOT_BYTES(preadv2(made, &part, 1, -1, 0), bytes);
	GOT(ftruncate(made, 0));
	GOT(fsync(made));
}

CASE(read, reading_to_the_end)
{
	int made = sent(SOCK_NONBLOCK, "hello");

	ask("end 1");
	GOT_BYTES(read(made, bytes, 100), bytes);
	GOT(read(made, bytes, 100));
	GOT(recv(made, bytes, 100, 0));
	GOT(write(made, "still here", 10));
}

CASE(read, reading_after_a_reset)
{
	int made = sent(SOCK_NONBLOCK, "hello");

	ask("reset 1");
	GOT_BYTES(read(made, bytes, 100), bytes);
	GOT(read(made, bytes, 100));
	GOT(read(made, bytes, 100));
	GOT(recv(made, bytes, 100, MSG_PEEK));
}

CASE(read, a_look_takes_the_error_of_a_reset)
{
	int made = sent(SOCK_NONBLOCK, "");

	ask("reset 1");
	GOT(recv(made, bytes, 100, MSG_PEEK));
	GOT(recv(made, bytes, 100, 0));
}

CASE(read, reading_after_an_end_and_a_reset)
{
	int made = sent(SOCK_NONBLOCK, "hello");

	ask("end 1");
	ask("reset 1");
	GOT_BYTES(read(made, bytes, 100), bytes);
	GOT(read(made, bytes, 100));
	GOT(read(made, bytes, 100));
}

CASE(read, a_reset_wakes_who_waits)
{
	int made = sent(0, "");

	tell("reset 1");
	GOT(read(made, bytes, 100));
	GOT(read(made, bytes, 100));
}

CASE(read, reading_after_a_shutdown)
{
	int made = sent(SOCK_NONBLOCK, "hello");

	GOT(shutdown(made, SHUT_RD));
	GOT_BYTES(read(made, bytes, 3), bytes);
	ask("send 1 more");
	GOT_BYTES(read(made, bytes, 100), bytes);
	GOT(read(made, bytes, 100));
	GOT(shutdown(made, SHUT_RD));
	GOT(read(made, bytes, 100));
	GOT(write(made, "x", 1));
}

CASE(read, reading_goes_on_after_the_own_end)
{
	int made = sent(SOCK_NONBLOCK, "");

	GOT(shutdown(made, SHUT_WR));
	ask("ended 1; send 1 hello");
	GOT_BYTES(read(made, bytes, 100), bytes);
	GOT(read(made, bytes, 100));
	ask("end 1");
	GOT(read(made, bytes, 100));
}

CASE(read, read_is_interrupted)
{
	int made = sent(0, "");

	handle(SIGUSR1, 0);
	tell("signal %d", SIGUSR1);
	GOT(read(made, bytes, 100));
	tell("signal %d", SIGUSR1);
	GOT(recv(made, bytes, 100, 0));
	say("%d signals\n", (int)signals);
}

CASE(read, read_is_interrupted_from_outside)
{
	int made = sent(0, "");

	handle(SIGUSR1, 0);
	tell("kill %d", SIGUSR1);
	GOT(read(made, bytes, 100));
	say("%d signals\n", (int)signals);
}

CASE(read, read_goes_on_after_a_signal_from_outside_that_restarts)
{
	int made = sent(0, "");

	handle(SIGUSR1, SA_RESTART);
	tell("kill %d", SIGUSR1);
	tell("send 1 hello");
	GOT_BYTES(read(made, bytes, 100), bytes);
	say("%d signals\n", (int)signals);
}

CASE(read, what_is_there_is_given_in_spite_of_a_signal)
{
	int made = sent(0, "hel");

	handle(SIGUSR1, 0);
	tell("signal %d", SIGUSR1);
	GOT_BYTES(recv(made, bytes, 5, MSG_WAITALL), bytes);
}

CASE(read, read_goes_on_after_a_signal_that_restarts)
{
	int made = sent(0, "");

	handle(SIGUSR1, SA_RESTART);
	tell("signal %d", SIGUSR1);
	tell("send 1 hello");
	GOT_BYTES(read(made, bytes, 100), bytes);
	say("%d signals\n", (int)signals);
}

CASE(read, read_goes_on_after_a_signal_that_is_ignored)
{
	int made = sent(0, "");

	signal(SIGUSR1, SIG_IGN);
	tell("signal %d", SIGUSR1);
	tell("send 1 hello");
	GOT_BYTES(read(made, bytes, 100), bytes);
}

CASE(read, read_ends_in_time)
{
	int made = sent(0, "");
	struct timeval wait = { .tv_usec = 30000 };

	GOT(setsockopt(made, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait)));
	GOT(read(made, bytes, 100));
	ask("send 1 hel");
	GOT_BYTES(recv(made, bytes, 5, MSG_WAITALL), bytes);
}

CASE(read, a_program_that_asks_again_and_again)
{
	int made = sent(SOCK_NONBLOCK, "");
	ssize_t got;

	tell("send 1 hello");
	do
		got = read(made, bytes, 100);
	while (got < 0 && errno == EAGAIN);
	say_bytes(bytes, got);
}

CASE(read, streams_of_the_c_library)
{
	int made = sent(0, "one");
	FILE *stream = (FILE *)fdopen(made, "r+");
	char line[64];

	ask("send 1 -line; fill 1 3");
	setvbuf(stream, NULL, _IONBF, 0);
	GOT(fread(line, 1, 5, stream));
	say_bytes(line, 5);
	GOT(fileno(stream) == made);
	GOT(fprintf(stream, "%s %d\n", "hello", 5));
	GOT(dprintf(made, "%s %d\n", "again", 6));
	GOT(fclose(stream));
	ask("ended 1");
}
