/* poll() and select(). */
#include "cases.h"

#include <sys/resource.h>

int __poll_chk(struct pollfd *, nfds_t, int, size_t);
int __ppoll_chk(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *, size_t);
long __fdelt_chk(long);

static char bytes[256];

#define ALL (POLLIN | POLLOUT | POLLPRI | POLLRDHUP | POLLRDNORM | POLLWRNORM | POLLRDBAND | POLLWRBAND)

static int connected(int listener, int number)
{
	int made = client(listener, number);

	set_nonblocking(made);
	return made;
}

static void polled(int descriptor, short events, int wait_ms)
{
	struct pollfd wanted = { .fd = descriptor, .events = events, .revents = 77 };
	int found = poll(&wanted, 1, wait_ms);

	say_result("poll", found, errno);
	say_polled(&wanted, 1, found);
}

static volatile int allocations;

void *__libc_malloc(size_t bytes);

void *malloc(size_t bytes)
{
	allocations++;
	return __libc_malloc(bytes);
}

CASE(poll, poll_of_a_connection)
{
	int listener = listening(0), made;

	polled(listener, ALL, 0);
	ask("connect 1 0");
	polled(listener, ALL, 0);
	made = accept(listener, NULL, NULL);
	polled(made, ALL, 0);
	polled(made, POLLIN, 0);
	ask("send 1 hello");
	polled(made, ALL, 0);
	polled(made, 0, 0);
	ask("end 1");
	polled(made, ALL, 0);
	polled(made, POLLIN, 0);
	read(made, bytes, 10);
	polled(made, ALL, 0);
	shutdown(made, SHUT_WR);
	polled(made, ALL, 0);
	polled(made, 0, 0);
}

CASE(poll, poll_after_a_reset)
{
	int made = connected(listening(0), 1);

	ask("send 1 hello");
	ask("reset 1");
	polled(made, ALL, 0);
	polled(made, 0, 0);
	read(made, bytes, 10);
	read(made, bytes, 10);
	polled(made, ALL, 0);
}

CASE(poll, poll_after_own_shutdowns)
{
	int made = connected(listening(0), 1);

	shutdown(made, SHUT_RD);
	polled(made, ALL, 0);
	shutdown(made, SHUT_WR);
	polled(made, ALL, 0);
}

CASE(poll, poll_of_what_is_not_connected)
{
	int made = socket(AF_INET, SOCK_STREAM, 0), ends[2];
	struct sockaddr_in at = address_at(1);

	pipe(ends);
	polled(made, ALL, 0);
	bind(made, (struct sockaddr *)&at, sizeof(at));
	polled(made, ALL, 0);
	polled(bound_datagrams(0), ALL, 0);
	polled(99, ALL, 0);
	polled(-1, ALL, 0);
	polled(ends[1], ALL, 0);
}

CASE(poll, poll_waits)
{
	int made = connected(listening(0), 1);

	tell("send 1 hello");
	polled(made, POLLIN, -1);
	read(made, bytes, 10);
	polled(made, POLLIN, 30);
	tell("end 1");
	polled(made, POLLIN | POLLRDHUP, 10000);
}

CASE(poll, poll_of_several)
{
	int listener = listening(0), first = connected(listener, 1), second = connected(listener, 2), ends[2];
	struct pollfd wanted[6] = { { .fd = listener, .events = POLLIN }, { .fd = -1, .events = POLLIN, .revents = 9 },
				    { .fd = first, .events = POLLIN },	  { .fd = second, .events = POLLOUT },
				    { .fd = 99, .events = POLLIN },	  { .events = POLLIN } };
	int found;

	pipe(ends);
	wanted[5].fd = ends[0];
	write(ends[1], "x", 1);
	ask("send 1 hello; connect 3 0");
	found = (int)GOT(poll(wanted, 6, -1));
	say_polled(wanted, 6, found);
	wanted[3].events = 0;
	wanted[4].fd = -1;
	read(first, bytes, 10);
	found = (int)GOT(poll(wanted, 6, -1));
	say_polled(wanted, 6, found);
	read(ends[0], bytes, 1);
	accept(listener, NULL, NULL);
	found = (int)GOT(poll(wanted, 6, 0));
	say_polled(wanted, 6, found);
}

CASE(poll, poll_of_pipes_beside)
{
	int made = connected(listening(0), 1), ends[2], event = eventfd(0, 0);
	struct pollfd wanted[3] = { { .fd = made, .events = POLLIN }, { .events = POLLIN }, { .fd = event, .events = POLLIN } };
	uint64_t one = 1;

	pipe(ends);
	wanted[1].fd = ends[0];
	write(event, &one, 8);
	say_polled(wanted, 3, (int)GOT(poll(wanted, 3, -1)));
	read(event, &one, 8);
	close(ends[1]);
	say_polled(wanted, 3, (int)GOT(poll(wanted, 3, 5000)));
	close(ends[0]);
	wanted[1].fd = -1;
	tell("send 1 hello");
	say_polled(wanted, 3, (int)GOT(poll(wanted, 3, 5000)));
}

CASE(poll, poll_of_many)
{
	static struct pollfd wanted[3000];
	int made = connected(listening(0), 1), event = eventfd(1, 0), found = 0;
	struct rlimit limit;

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = 3000;
	GOT(setrlimit(RLIMIT_NOFILE, &limit));
	for (int i = 0; i < 3000; i++)
		wanted[i] = (struct pollfd){ .fd = i % 1000 ? event : made, .events = POLLIN };
	ask("send 1 hello");
	GOT(poll(wanted, 3000, -1));
	for (int i = 0; i < 3000; i++)
		found += wanted[i].revents == POLLIN;
	GOT(found);
}

/* A signal's handler may call it, and must not touch the heap. */
CASE(poll, poll_of_many_takes_nothing_of_the_heap)
{
	static struct pollfd wanted[3000];
	int made = connected(listening(0), 1), before, after;
	struct rlimit limit;

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = 3000;
	setrlimit(RLIMIT_NOFILE, &limit);
	for (int i = 0; i < 3000; i++)
		wanted[i] = (struct pollfd){ .fd = made, .events = POLLIN };
	ask("send 1 hello");
	before = allocations;
	poll(wanted, 3000, -1);
	after = allocations;
	GOT(after - before);
}

CASE(poll, poll_of_no_less_than)
{
	int made = connected(listening(0), 1), least = 4;

	GOT(setsockopt(made, SOL_SOCKET, SO_RCVLOWAT, &least, sizeof(least)));
	ask("send 1 abc");
	polled(made, POLLIN, 0);
	GOT(recv(made, bytes, 10, 0));
	GOT(recv(made, bytes, 2, MSG_PEEK));
	ask("send 1 de");
	polled(made, POLLIN, 0);
	GOT(recv(made, bytes, 3, 0));
	polled(made, POLLIN, 0);
	least = 2;
	GOT(setsockopt(made, SOL_SOCKET, SO_RCVLOWAT, &least, sizeof(least)));
	polled(made, POLLIN, 0);
	least = 5;
	GOT(setsockopt(made, SOL_SOCKET, SO_RCVLOWAT, &least, sizeof(least)));
	ask("end 1");
	polled(made, POLLIN, 0);
	GOT(recv(made, bytes, 10, 0));
}

CASE(poll, other_calls_that_poll)
{
	int made = connected(listening(0), 1);
	struct timespec wait = { .tv_nsec = 20000000 }, wrong = { .tv_nsec = 2000000000 };
	struct pollfd wanted = { .fd = made, .events = POLLIN };

	GOT(ppoll(&wanted, 1, &wait, NULL));
	GOT(wait.tv_nsec);
	GOT(ppoll(&wanted, 1, &wrong, NULL));
	GOT(__poll_chk(&wanted, 1, 0, sizeof(wanted)));
	GOT(__ppoll_chk(&wanted, 1, &wait, NULL, sizeof(wanted)));
	tell("send 1 hello");
	GOT(ppoll(&wanted, 1, NULL, NULL));
	GOT(__poll_chk(&wanted, 1, -1, sizeof(wanted)));
	GOT(__ppoll_chk(&wanted, 1, NULL, NULL, sizeof(wanted)));
	say_polled(&wanted, 1, 1);
	GOT(__fdelt_chk(100));
}

CASE(poll, poll_is_interrupted)
{
	int made = connected(listening(0), 1);
	struct pollfd wanted = { .fd = made, .events = POLLIN };

	handle(SIGUSR1, SA_RESTART);
	tell("signal %d", SIGUSR1);
	GOT(poll(&wanted, 1, -1));
	tell("signal %d", SIGUSR1);
	GOT(poll(&wanted, 1, 10000));
	say("%d signals\n", (int)signals);
}

CASE(poll, ppoll_lets_a_signal_in)
{
	int made = connected(listening(0), 1);
	struct pollfd wanted = { .fd = made, .events = POLLIN };
	struct timespec wait = { .tv_sec = 5 };
	sigset_t none, some;
	fd_set in;

	sigemptyset(&none);
	sigemptyset(&some);
	sigaddset(&some, SIGUSR1);
	sigprocmask(SIG_BLOCK, &some, NULL);
	handle(SIGUSR1, 0);
	kill(getpid(), SIGUSR1);
	GOT(ppoll(&wanted, 1, NULL, &none));
	say("%d signals\n", (int)signals);
	tell("signal %d", SIGUSR1);
	GOT(ppoll(&wanted, 1, &wait, &none));
	say("%d signals\n", (int)signals);
	kill(getpid(), SIGUSR1);
	FD_ZERO(&in);
	FD_SET(made, &in);
	GOT(pselect(made + 1, &in, NULL, NULL, &wait, &none));
	say("%d signals\n", (int)signals);
	GOT(FD_ISSET(made, &in) != 0);
}

static void say_sets(int found, const int *descriptors, int count, fd_set *in, fd_set *out, fd_set *except)
{
	for (int i = 0; i < count && found >= 0; i++)
		say("\t%d:%s%s%s\n", i, FD_ISSET(descriptors[i], in) ? " in" : "",
		    FD_ISSET(descriptors[i], out) ? " out" : "", FD_ISSET(descriptors[i], except) ? " except" : "");
}

static void selected(const int *descriptors, int count, long wait_us)
{
	struct timeval wait = { .tv_sec = wait_us / 1000000, .tv_usec = wait_us % 1000000 };
	fd_set in, out, except;
	int found, limit = 0;

	FD_ZERO(&in);
	FD_ZERO(&out);
	FD_ZERO(&except);
	for (int i = 0; i < count; i++) {
		FD_SET(descriptors[i], &in);
		if (i % 2)
			FD_SET(descriptors[i], &out);
		FD_SET(descriptors[i], &except);
		limit = descriptors[i] >= limit ? descriptors[i] + 1 : limit;
	}
	found = select(limit, &in, &out, &except, wait_us < 0 ? NULL : &wait);
	say_result("select", found, errno);
	say_sets(found, descriptors, count, &in, &out, &except);
	if (wait_us >= 0)
		say("time left: %s\n", wait.tv_sec || wait.tv_usec ? "some" : "none");
}

CASE(poll, select_of_several)
{
	int listener = listening(0), wanted[4], ends[2];

	pipe(ends);
	wanted[0] = listener;
	wanted[1] = connected(listener, 1);
	wanted[2] = connected(listener, 2);
	wanted[3] = ends[1];
	selected(wanted, 1, 0);
	selected(wanted, 4, 0);
	selected(wanted, 4, -1);
	ask("send 1 hello; end 2; connect 3 0");
	selected(wanted, 4, 0);
	selected(wanted, 4, 5000000);
	ask("reset 1");
	read(wanted[1], bytes, 10);
	selected(wanted, 2, -1);
	close(ends[1]);
	selected(wanted, 4, 0);
}

CASE(poll, select_waits)
{
	int listener = listening(0), made = connected(listener, 1);

	selected(&made, 1, 30000);
	tell("send 1 hello");
	selected(&made, 1, -1);
	read(made, bytes, 10);
	tell("send 1 hello");
	selected(&made, 1, 9000000);
}

CASE(poll, select_of_pipes_beside)
{
	int listener = listening(0), made = connected(listener, 1), ends[2];
	int wanted[2] = { made, -1 };

	pipe(ends);
	wanted[1] = ends[0];
	write(ends[1], "x", 1);
	selected(wanted, 1, 0);
	selected(wanted + 1, 1, -1);
	ask("send 1 hello");
	selected(wanted, 2, -1);
}

CASE(poll, select_of_wrong_numbers)
{
	int listener = listening(0);
	struct timeval wrong = { .tv_sec = -1 }, more = { .tv_usec = 1500000 };
	struct timespec wait = { .tv_nsec = -1 };
	fd_set in;

	FD_ZERO(&in);
	FD_SET(listener, &in);
	GOT(select(unseen(-1), &in, NULL, NULL, NULL));
	GOT(select(listener + 1, &in, NULL, NULL, &wrong));
	GOT(pselect(listener + 1, &in, NULL, NULL, &wait, NULL));
	ask("connect 1 0");
	GOT(select(listener + 1, &in, NULL, NULL, &more));
	GOT(select(listener, &in, NULL, NULL, &(struct timeval){ 0 }));
}

CASE(poll, select_is_interrupted)
{
	int listener = listening(0);
	fd_set in;

	handle(SIGUSR1, SA_RESTART);
	FD_ZERO(&in);
	FD_SET(listener, &in);
	tell("signal %d", SIGUSR1);
	GOT(select(listener + 1, &in, NULL, NULL, NULL));
	GOT(FD_ISSET(listener, &in) != 0);
	say("%d signals\n", (int)signals);
}

/* A program that only wants to sleep. */
CASE(poll, waits_for_nothing_take_their_time)
{
	struct timespec before, after;
	struct timeval wait = { .tv_usec = 20000 };
	struct timespec same = { .tv_nsec = 20000000 };
	int epoll = epoll_create1(0);
	struct epoll_event event;

	for (int way = 0; way < 5; way++) {
		clock_gettime(CLOCK_MONOTONIC, &before);
		switch (way) {
		case 0:
			GOT(poll(NULL, 0, 20));
			break;
		case 1:
			GOT(select(0, NULL, NULL, NULL, &wait));
			break;
		case 2:
			GOT(pselect(0, NULL, NULL, NULL, &same, NULL));
			break;
		case 3:
			GOT(ppoll(NULL, 0, &same, NULL));
			break;
		default:
			GOT(epoll_wait(epoll, &event, 1, 20));
		}
		clock_gettime(CLOCK_MONOTONIC, &after);
		GOT((after.tv_sec - before.tv_sec) * 1000 + (after.tv_nsec - before.tv_nsec) / 1000000 >= 19);
	}
}
