/* What clients are sent, and how connections end. */
#include "cases.h"

#include <sys/sendfile.h>

static char bytes[1 << 17];

static int connected(int flags)
{
	int made = client(listening(0), 1);

	if (flags & SOCK_NONBLOCK)
		set_nonblocking(made);
	return made;
}

/* A file with letters in it. */
static int file(size_t count)
{
	char name[] = "/tmp/quorumwire-calls-XXXXXX";
	int made = mkstemp(name);

	unlink(name);
	for (size_t i = 0; i < count; i++)
		bytes[i] = (char)('a' + i % 26);
	if (write(made, bytes, count) != (ssize_t)count)
		abort();
	lseek(made, 0, SEEK_SET);
	return made;
}

CASE(write, every_call_sends)
{
	int made = connected(0);
	struct iovec parts[3] = { { (char *)"one-", 4 }, { NULL, 0 }, { (char *)"two-", 4 } };
	struct msghdr message = { .msg_iov = parts, .msg_iovlen = 3 };
	struct mmsghdr messages[2] = { { .msg_hdr = message }, { .msg_hdr = message } };

	GOT(write(made, "write-", 6));
	GOT(send(made, "send-", 5, 0));
	GOT(send(made, "send-", 5, MSG_NOSIGNAL | MSG_DONTWAIT | MSG_MORE));
	GOT(sendto(made, "sendto-", 7, 0, NULL, 0));
	GOT(sendmsg(made, &message, 0));
	GOT(writev(made, parts, 3));
	GOT(sendmmsg(made, messages, 2, 0));
	say("%u and %u\n", messages[0].msg_len, messages[1].msg_len);
	GOT(pwritev2(made, parts, 3, -1, 0));
	ask("take 1 62");
}

CASE(write, nothing_is_sent)
{
	int made = connected(0);
	struct iovec none = { bytes, 0 };
	struct msghdr message = { .msg_iov = &none, .msg_iovlen = 1 };

	GOT(write(made, bytes, 0));
	GOT(send(made, bytes, 0, 0));
	GOT(writev(made, &none, 1));
	GOT(writev(made, NULL, 0));
	GOT(writev(made, &none, unseen(-1)));
	GOT(writev(made, &none, unseen(1025)));
	GOT(sendmsg(made, &message, 0));
	message.msg_iovlen = 1025;
	GOT(sendmsg(made, &message, 0));
	GOT(sendmmsg(made, NULL, 0, 0));
	GOT(send(made, "x", 1, 0));
	ask("take 1 1");
}

CASE(write, much_is_sent)
{
	int made = connected(0);

	for (int i = 0; i < 8; i++) {
		memset(bytes, 'a' + i, sizeof(bytes));
		GOT(write(made, bytes, sizeof(bytes)));
		ask("take 1 %zu", sizeof(bytes));
	}
}

CASE(write, a_client_that_does_not_read)
{
	int made = connected(SOCK_NONBLOCK);
	ssize_t sent = 0;

	for (int i = 0; i < 256 && sent >= 0; i++)
		sent = send(made, bytes, sizeof(bytes), 0);
	say_result("send", sent, errno);
}

CASE(write, an_address_of_a_connection_is_ignored)
{
	int made = connected(0);
	struct sockaddr_in elsewhere = address_at(5);

	GOT(sendto(made, "hello", 5, 0, (struct sockaddr *)&elsewhere, sizeof(elsewhere)));
	ask("take 1 5");
}

CASE(write, writing_after_the_clients_end)
{
	int made = connected(0);

	ask("end 1");
	GOT(write(made, "hello", 5));
	GOT(shutdown(made, SHUT_WR));
	ask("ended 1");
}

static void broken(int made)
{
	handle(SIGPIPE, 0);
	GOT(send(made, "x", 1, MSG_NOSIGNAL));
	say("%d signals\n", (int)signals);
	GOT(write(made, "x", 1));
	say("%d signals\n", (int)signals);
	GOT(write(made, "x", 0));
	say("%d signals\n", (int)signals);
	GOT(send(made, "x", 1, MSG_NOSIGNAL));
	say("%d signals\n", (int)signals);
}

CASE(write, writing_after_a_reset)
{
	int made = connected(0);

	ask("reset 1");
	broken(made);
	GOT(read(made, bytes, 10));
}

CASE(write, writing_after_a_reset_that_was_read)
{
	int made = connected(0);

	ask("reset 1");
	GOT(read(made, bytes, 10));
	broken(made);
}

CASE(write, writing_after_an_end_and_a_reset)
{
	int made = connected(0);

	ask("end 1");
	ask("reset 1");
	broken(made);
	GOT(read(made, bytes, 10));
}

CASE(write, writing_after_the_own_end)
{
	int made = connected(0);

	GOT(write(made, "hello", 5));
	GOT(shutdown(made, SHUT_WR));
	broken(made);
	ask("ended 1");
}

CASE(write, a_signal_of_a_broken_pipe_ends_a_program)
{
	int made = connected(0);

	GOT(shutdown(made, SHUT_WR));
	say("done\n");
	GOT(write(made, "x", 1));
}

CASE(write, other_calls_after_the_own_end)
{
	int made = connected(0), from = file(10);
	struct iovec part = { (char *)"x", 1 };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
	struct mmsghdr messages = { .msg_hdr = message };

	signal(SIGPIPE, SIG_IGN);
	GOT(shutdown(made, SHUT_WR));
	GOT(writev(made, &part, 1));
	GOT(sendmsg(made, &message, 0));
	GOT(sendmmsg(made, &messages, 1, 0));
	GOT(sendfile(made, from, NULL, 10));
}

CASE(write, files_are_sent)
{
	int made = connected(0), from = file(100000);
	off_t at = 5;

	GOT(sendfile(made, from, NULL, 3));
	GOT(lseek(from, 0, SEEK_CUR));
	GOT(sendfile(made, from, &at, 10));
	say("at %ld\n", (long)at);
	GOT(lseek(from, 0, SEEK_CUR));
	ask("take 1 13");
	tell("take 1 90010");
	at = 9990;
	while (at < 100000 && sendfile(made, from, &at, 100000) > 0)
		;
	say("at %ld\n", (long)at);
	ask("take 1 0");
	GOT(sendfile(made, from, &at, 10));
	GOT(sendfile(made, from, NULL, 0));
	at = -1;
	GOT(sendfile(made, from, &at, 10));
	GOT(sendfile(made, -1, NULL, 10));
	GOT(sendfile(made, made, NULL, 10));
	GOT(sendfile(from, made, NULL, 10));
}

CASE(write, pipes_are_spliced)
{
	int made = connected(SOCK_NONBLOCK), ends[2], from = file(10);

	GOT(pipe(ends));
	GOT(write(ends[1], "hello", 5));
	GOT(splice(ends[0], NULL, made, NULL, 3, 0));
	GOT(splice(ends[0], NULL, made, NULL, 100, SPLICE_F_MORE));
	GOT(splice(ends[0], NULL, made, NULL, 100, SPLICE_F_NONBLOCK));
	GOT(splice(from, NULL, made, NULL, 5, 0));
	ask("take 1 5");
	GOT(splice(made, NULL, ends[1], NULL, 100, 0));
	ask("send 1 answer");
	GOT(splice(made, NULL, ends[1], NULL, 3, 0));
	GOT(splice(made, NULL, ends[1], NULL, 100, SPLICE_F_MOVE));
	GOT_BYTES(read(ends[0], bytes, 100), bytes);
	GOT(splice(made, NULL, made, NULL, 5, 0));
	ask("end 1");
	GOT(splice(made, NULL, ends[1], NULL, 100, 0));
	close(ends[1]);
	GOT(splice(ends[0], NULL, made, NULL, 100, 0));
	signal(SIGPIPE, SIG_IGN);
	GOT(shutdown(made, SHUT_WR));
}

CASE(write, splice_waits)
{
	int made = connected(0), ends[2];

	GOT(pipe(ends));
	tell("send 1 hello");
	GOT(splice(made, NULL, ends[1], NULL, 100, 0));
	GOT_BYTES(read(ends[0], bytes, 100), bytes);
}

CASE(write, closing_with_unread_bytes)
{
	int made = connected(0);

	ask("send 1 unread");
	GOT(write(made, "hello", 5));
	ask("take 1 5");
	GOT(close(made));
	ask("ended 1");
	GOT(close(made));
	GOT(read(made, bytes, 10));
}

CASE(write, closing_says_all_before)
{
	int made = connected(0);

	GOT(write(made, "hello", 5));
	GOT(close(made));
	ask("ended 1");
}

CASE(write, shutdown_of_each_direction)
{
	int made = connected(SOCK_NONBLOCK);

	GOT(shutdown(made, 3));
	GOT(shutdown(made, -1));
	GOT(shutdown(made, SHUT_RD));
	GOT(shutdown(made, SHUT_RD));
	GOT(write(made, "hello", 5));
	GOT(shutdown(made, SHUT_WR));
	ask("ended 1");
	GOT(shutdown(made, SHUT_WR));
	GOT(read(made, bytes, 10));
}

CASE(write, shutdown_of_both)
{
	int made = connected(SOCK_NONBLOCK);

	GOT(write(made, "hello", 5));
	GOT(shutdown(made, SHUT_RDWR));
	ask("ended 1");
	GOT(read(made, bytes, 10));
	GOT(send(made, "x", 1, MSG_NOSIGNAL));
}

CASE(write, shutdown_when_all_is_over)
{
	int made = connected(SOCK_NONBLOCK), fresh = socket(AF_INET, SOCK_STREAM, 0);

	ask("reset 1");
	GOT(shutdown(made, SHUT_WR));
	GOT(shutdown(fresh, SHUT_WR));
	GOT(shutdown(-1, SHUT_WR));
	GOT(shutdown(0, SHUT_WR));
}

CASE(write, writing_to_who_is_gone)
{
	int made = connected(0);

	ask("gone 1");
	GOT(read(made, bytes, 10));
	GOT(send(made, "x", 1, MSG_NOSIGNAL));
}
