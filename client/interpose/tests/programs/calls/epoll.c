/* epoll. */
#include "cases.h"

#include <sys/signalfd.h>

static char bytes[256];
static struct epoll_event events[16];

static int add(int epoll, int descriptor, uint32_t wanted, uint64_t data)
{
	struct epoll_event event = { .events = wanted, .data.u64 = data };

	return epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event);
}

static int change(int epoll, int descriptor, uint32_t wanted, uint64_t data)
{
	struct epoll_event event = { .events = wanted, .data.u64 = data };

	return epoll_ctl(epoll, EPOLL_CTL_MOD, descriptor, &event);
}

/* What there is now. */
static int look(int epoll)
{
	int found = (int)GOT(epoll_wait(epoll, events, 16, 0));

	say_found(events, found);
	return found;
}

static int waited(int epoll, int most, int wait_ms)
{
	int found = epoll_wait(epoll, events, most, wait_ms);

	say_result("epoll_wait", found, errno);
	say_found(events, found);
	return found;
}

static int connected(int listener, int number)
{
	int made = client(listener, number);

	set_nonblocking(made);
	return made;
}

CASE(epoll, a_listener_is_ready)
{
	int listener = listening(SOCK_NONBLOCK), epoll = epoll_create1(0);

	GOT(add(epoll, listener, EPOLLIN, 1));
	look(epoll);
	ask("connect 1 0; connect 2 0");
	look(epoll);
	GOT(accept(listener, NULL, NULL) >= 0);
	look(epoll);
	GOT(accept(listener, NULL, NULL) >= 0);
	look(epoll);
	tell("connect 3 0");
	waited(epoll, 16, -1);
}

CASE(epoll, level_is_told_again)
{
	int made = connected(listening(0), 1), epoll = epoll_create1(0);

	GOT(add(epoll, made, EPOLLIN | EPOLLOUT, 7));
	look(epoll);
	ask("send 1 hello");
	look(epoll);
	look(epoll);
	read(made, bytes, 2);
	look(epoll);
	read(made, bytes, 10);
	look(epoll);
}

CASE(epoll, level_of_all_kinds)
{
	int made = connected(listening(0), 1), epoll = epoll_create1(0);
	uint32_t all = EPOLLIN | EPOLLOUT | EPOLLPRI | EPOLLRDHUP | EPOLLRDNORM | EPOLLWRNORM | EPOLLRDBAND |
		       EPOLLWRBAND;

	GOT(add(epoll, made, all, 7));
	look(epoll);
	ask("send 1 hello");
	look(epoll);
	ask("end 1");
	look(epoll);
	read(made, bytes, 10);
	look(epoll);
	GOT(shutdown(made, SHUT_WR));
	look(epoll);
}

CASE(epoll, an_end_without_being_asked)
{
	int listener = listening(0), first = connected(listener, 1), second = connected(listener, 2),
	    third = connected(listener, 3), epoll = epoll_create1(0);

	GOT(add(epoll, first, 0, 1));
	GOT(add(epoll, second, EPOLLIN, 2));
	GOT(add(epoll, third, EPOLLRDHUP, 3));
	look(epoll);
	ask("end 1; end 2; end 3");
	look(epoll);
	GOT(shutdown(first, SHUT_WR));
	look(epoll);
}

CASE(epoll, a_reset_is_told)
{
	int listener = listening(0), first = connected(listener, 1), second = connected(listener, 2),
	    epoll = epoll_create1(0);

	GOT(add(epoll, first, EPOLLIN | EPOLLOUT | EPOLLRDHUP, 1));
	GOT(add(epoll, second, 0, 2));
	look(epoll);
	ask("reset 1");
	look(epoll);
	ask("reset 2");
	look(epoll);
	GOT(read(first, bytes, 10));
	look(epoll);
}

CASE(epoll, own_shutdowns)
{
	int made = connected(listening(0), 1), epoll = epoll_create1(0);

	GOT(add(epoll, made, EPOLLIN | EPOLLOUT | EPOLLRDHUP, 1));
	GOT(shutdown(made, SHUT_RD));
	look(epoll);
	GOT(shutdown(made, SHUT_WR));
	look(epoll);
}

CASE(epoll, edges_are_told_once)
{
	int made = connected(listening(0), 1), epoll = epoll_create1(0);

	GOT(add(epoll, made, EPOLLIN | EPOLLET, 1));
	look(epoll);
	ask("send 1 hello");
	look(epoll);
	look(epoll);
	read(made, bytes, 2);
	look(epoll);
	ask("send 1 more");
	look(epoll);
	look(epoll);
	ask("end 1");
	look(epoll);
	look(epoll);
	read(made, bytes, 20);
	look(epoll);
	read(made, bytes, 20);
	look(epoll);
}

CASE(epoll, edges_of_what_was_there)
{
	int made = connected(listening(0), 1), epoll = epoll_create1(0);

	ask("send 1 hello");
	GOT(add(epoll, made, EPOLLIN | EPOLLOUT | EPOLLET | EPOLLRDHUP, 1));
	look(epoll);
	look(epoll);
	GOT(change(epoll, made, EPOLLIN | EPOLLET, 2));
	look(epoll);
	look(epoll);
	GOT(change(epoll, made, EPOLLOUT | EPOLLET, 3));
	look(epoll);
	look(epoll);
}

CASE(epoll, edges_of_writing_are_no_readers)
{
	int made = connected(listening(0), 1), epoll = epoll_create1(0);

	GOT(add(epoll, made, EPOLLOUT | EPOLLET, 1));
	look(epoll);
	ask("send 1 hello");
	look(epoll);
	GOT(write(made, "hello", 5));
	ask("take 1 5");
	look(epoll);
}

CASE(epoll, edges_of_a_listener)
{
	int listener = listening(SOCK_NONBLOCK), epoll = epoll_create1(0);

	GOT(add(epoll, listener, EPOLLIN | EPOLLET, 1));
	ask("connect 1 0");
	ask("connect 2 0");
	look(epoll);
	look(epoll);
	GOT(accept(listener, NULL, NULL) >= 0);
	look(epoll);
	ask("connect 3 0");
	look(epoll);
}

CASE(epoll, once_and_again)
{
	int made = connected(listening(0), 1), epoll = epoll_create1(0);

	GOT(add(epoll, made, EPOLLIN | EPOLLONESHOT, 1));
	ask("send 1 hello");
	look(epoll);
	look(epoll);
	ask("send 1 more");
	look(epoll);
	GOT(change(epoll, made, EPOLLIN | EPOLLONESHOT, 2));
	look(epoll);
	ask("end 1");
	look(epoll);
	GOT(change(epoll, made, EPOLLIN | EPOLLRDHUP | EPOLLONESHOT, 3));
	look(epoll);
	ask("reset 1");
	look(epoll);
	GOT(change(epoll, made, EPOLLONESHOT, 4));
	look(epoll);
}

CASE(epoll, once_by_edges)
{
	int made = connected(listening(0), 1), epoll = epoll_create1(0);

	GOT(add(epoll, made, EPOLLIN | EPOLLONESHOT | EPOLLET, 1));
	ask("send 1 hello");
	look(epoll);
	ask("send 1 hello");
	look(epoll);
	GOT(change(epoll, made, EPOLLIN | EPOLLONESHOT | EPOLLET, 2));
	look(epoll);
	look(epoll);
}

CASE(epoll, exclusive_ones)
{
	int listener = listening(SOCK_NONBLOCK), epoll = epoll_create1(0);

	GOT(add(epoll, listener, EPOLLIN | EPOLLEXCLUSIVE, 1));
	GOT(change(epoll, listener, EPOLLIN | EPOLLEXCLUSIVE, 1));
	GOT(change(epoll, listener, EPOLLIN, 1));
	ask("connect 1 0");
	look(epoll);
	look(epoll);
	GOT(epoll_ctl(epoll, EPOLL_CTL_DEL, listener, NULL));
	GOT(add(epoll, listener, EPOLLIN | EPOLLEXCLUSIVE | EPOLLONESHOT, 1));
	GOT(add(epoll, listener, EPOLLIN | EPOLLEXCLUSIVE | EPOLLRDHUP, 1));
	GOT(add(epoll, listener, EPOLLIN | EPOLLEXCLUSIVE | EPOLLET, 2));
	look(epoll);
	look(epoll);
}

CASE(epoll, adding_changing_and_deleting)
{
	int made = connected(listening(0), 1), epoll = epoll_create1(0), file = open("/dev/null", O_RDONLY);

	GOT(change(epoll, made, EPOLLIN, 1));
	GOT(epoll_ctl(epoll, EPOLL_CTL_DEL, made, NULL));
	GOT(add(epoll, made, EPOLLIN, 1));
	GOT(add(epoll, made, EPOLLIN, 2));
	ask("send 1 hello");
	GOT(change(epoll, made, EPOLLOUT, 3));
	look(epoll);
	GOT(change(epoll, made, 0, 4));
	look(epoll);
	GOT(epoll_ctl(epoll, EPOLL_CTL_DEL, made, NULL));
	look(epoll);
	GOT(epoll_ctl(epoll, EPOLL_CTL_DEL, made, NULL));
	GOT(epoll_ctl(epoll, 99, made, events));
	GOT(add(epoll, made, EPOLLIN, 5));
	GOT(epoll_ctl(epoll, 99, made, events));
	look(epoll);
	GOT(add(made, made, EPOLLIN, 1));
	GOT(add(file, made, EPOLLIN, 1));
	GOT(add(99, made, EPOLLIN, 1));
	GOT(add(epoll, 99, EPOLLIN, 1));
	GOT(add(epoll, file, EPOLLIN, 1));
	GOT(add(epoll, epoll, EPOLLIN, 1));
	GOT(epoll_wait(made, events, 1, 0));
	GOT(epoll_wait(99, events, 1, 0));
	GOT(epoll_wait(epoll, events, 0, 0));
	GOT(epoll_wait(epoll, events, unseen(-1), 0));
}

CASE(epoll, two_instances)
{
	int made = connected(listening(0), 1), first = epoll_create1(0), second = epoll_create1(0);

	GOT(add(first, made, EPOLLIN, 1));
	GOT(add(second, made, EPOLLIN | EPOLLET, 2));
	ask("send 1 hello");
	look(first);
	look(second);
	look(first);
	look(second);
	read(made, bytes, 10);
	look(first);
	look(second);
	GOT(close(first));
	ask("send 1 more");
	look(second);
}

CASE(epoll, an_instance_in_another)
{
	int made = connected(listening(0), 1), outer = epoll_create1(0), inner = epoll_create1(0);

	GOT(add(inner, made, EPOLLIN, 1));
	GOT(add(outer, inner, EPOLLIN, 2));
	look(outer);
	tell("send 1 hello");
	waited(outer, 16, -1);
	look(inner);
	read(made, bytes, 10);
	look(outer);
	look(inner);
}

CASE(epoll, an_instance_that_was_in_another_before)
{
	int made = connected(listening(0), 1), outer = epoll_create1(0), inner = epoll_create1(0);

	GOT(add(outer, inner, EPOLLIN, 2));
	GOT(add(inner, made, EPOLLIN, 1));
	tell("send 1 hello");
	waited(outer, 16, -1);
	look(inner);
}

CASE(epoll, an_instance_is_polled)
{
	int made = connected(listening(0), 1), epoll = epoll_create1(0);
	struct pollfd wanted = { .fd = epoll, .events = POLLIN };

	GOT(add(epoll, made, EPOLLIN, 1));
	GOT(poll(&wanted, 1, 0));
	tell("send 1 hello");
	GOT(poll(&wanted, 1, -1));
	say_polled(&wanted, 1, 1);
	look(epoll);
}

CASE(epoll, an_instance_of_which_there_are_two_descriptors)
{
	int made = connected(listening(0), 1), epoll = epoll_create1(0), other = dup(epoll);

	GOT(add(epoll, made, EPOLLIN, 1));
	ask("send 1 hello");
	look(other);
	GOT(close(epoll));
	look(other);
	GOT(change(other, made, EPOLLOUT, 2));
	look(other);
}

CASE(epoll, closed_descriptors_are_forgotten)
{
	int listener = listening(0), first = connected(listener, 1), second = connected(listener, 2),
	    epoll = epoll_create1(0), third;

	GOT(add(epoll, first, EPOLLIN, 1));
	GOT(add(epoll, second, EPOLLIN, 2));
	ask("send 1 hello; send 2 hello");
	GOT(close(first));
	look(epoll);
	third = connected(listener, 3);
	GOT(third == first);
	look(epoll);
	GOT(add(epoll, third, EPOLLIN, 3));
	ask("send 3 hello");
	look(epoll);
}

CASE(epoll, closed_descriptors_that_have_another)
{
	int made = connected(listening(0), 1), epoll = epoll_create1(0), other = dup(made);

	GOT(add(epoll, made, EPOLLIN, 1));
	GOT(add(epoll, other, EPOLLOUT, 2));
	ask("send 1 hello");
	look(epoll);
	GOT(close(made));
	look(epoll);
	GOT(epoll_ctl(epoll, EPOLL_CTL_DEL, made, NULL));
	GOT(close(other));
	look(epoll);
}

CASE(epoll, the_order_in_which_it_came)
{
	int listener = listening(0), epoll = epoll_create1(0), made[5];

	for (int i = 0; i < 5; i++) {
		made[i] = connected(listener, i + 1);
		add(epoll, made[i], EPOLLIN, (uint64_t)i + 1);
	}
	ask("send 4 x; send 2 x; send 5 x");
	look(epoll);
	ask("send 1 x; send 2 x");
	look(epoll);
	read(made[1], bytes, 1);
	read(made[3], bytes, 10);
	look(epoll);
	ask("send 4 x");
	look(epoll);
}

CASE(epoll, few_at_a_time)
{
	int listener = listening(0), epoll = epoll_create1(0);

	for (int i = 0; i < 5; i++)
		add(epoll, connected(listener, i + 1), EPOLLIN, (uint64_t)i + 1);
	ask("send 1 x; send 2 x; send 3 x; send 4 x; send 5 x");
	for (int i = 0; i < 4; i++)
		waited(epoll, 2, 0);
	ask("end 3");
	for (int i = 0; i < 4; i++)
		waited(epoll, 3, 0);
}

CASE(epoll, edges_few_at_a_time)
{
	int listener = listening(0), epoll = epoll_create1(0);

	for (int i = 0; i < 5; i++)
		add(epoll, connected(listener, i + 1), EPOLLIN | EPOLLET, (uint64_t)i + 1);
	ask("send 1 x; send 2 x; send 3 x; send 4 x; send 5 x");
	waited(epoll, 2, 0);
	ask("send 1 x");
	waited(epoll, 2, 0);
	waited(epoll, 2, 0);
	waited(epoll, 2, 0);
}

CASE(epoll, waits_end_in_time)
{
	int made = connected(listening(0), 1), epoll = epoll_create1(0);
	struct timespec wait = { .tv_nsec = 30000000 }, none = { 0 }, wrong = { .tv_nsec = -1 };

	GOT(add(epoll, made, EPOLLIN, 1));
	GOT(epoll_wait(epoll, events, 16, 30));
	GOT(epoll_pwait(epoll, events, 16, 30, NULL));
	GOT(epoll_pwait2(epoll, events, 16, &wait, NULL));
	GOT(epoll_pwait2(epoll, events, 16, &none, NULL));
	GOT(epoll_pwait2(epoll, events, 16, &wrong, NULL));
	tell("send 1 hello");
	GOT(epoll_pwait2(epoll, events, 16, NULL, NULL));
	say_found(events, 1);
	GOT(epoll_wait(epoll, events, 16, 1000));
	GOT(epoll_pwait(epoll, events, 16, -5, NULL));
}

CASE(epoll, waits_are_interrupted)
{
	int made = connected(listening(0), 1), epoll = epoll_create1(0);

	GOT(add(epoll, made, EPOLLIN, 1));
	handle(SIGUSR1, SA_RESTART);
	tell("signal %d", SIGUSR1);
	GOT(epoll_wait(epoll, events, 16, -1));
	tell("signal %d", SIGUSR1);
	GOT(epoll_wait(epoll, events, 16, 10000));
	say("%d signals\n", (int)signals);
	ask("send 1 hello");
	ask("signal %d", SIGUSR1);
	GOT(epoll_wait(epoll, events, 16, -1));
}

CASE(epoll, a_signal_that_is_let_in_by_a_wait)
{
	int made = connected(listening(0), 1), epoll = epoll_create1(0);
	struct timespec wait = { .tv_sec = 5 };
	sigset_t none, some;

	sigemptyset(&none);
	sigemptyset(&some);
	sigaddset(&some, SIGUSR1);
	GOT(sigprocmask(SIG_BLOCK, &some, NULL));
	GOT(add(epoll, made, EPOLLIN, 1));
	handle(SIGUSR1, 0);
	ask("signal %d", SIGUSR1);
	say("%d signals\n", (int)signals);
	GOT(epoll_wait(epoll, events, 16, 0));
	say("%d signals\n", (int)signals);
	GOT(epoll_pwait(epoll, events, 16, -1, &none));
	say("%d signals\n", (int)signals);
	tell("signal %d", SIGUSR1);
	GOT(epoll_pwait2(epoll, events, 16, &wait, &none));
	say("%d signals\n", (int)signals);
	kill(getpid(), SIGUSR1);
	GOT(epoll_pwait(epoll, events, 16, 5000, &none));
	say("%d signals\n", (int)signals);
	kill(getpid(), SIGUSR1);
	ask("send 1 hello");
	GOT(epoll_pwait(epoll, events, 16, 5000, &none));
	say("%d signals\n", (int)signals);
	GOT(sigprocmask(SIG_BLOCK, NULL, &some));
	GOT(sigismember(&some, SIGUSR1));
}

CASE(epoll, descriptors_of_the_kernels_beside)
{
	int made = connected(listening(0), 1), epoll = epoll_create1(0), event = eventfd(0, EFD_NONBLOCK), ends[2];
	uint64_t one = 1;

	GOT(pipe(ends));
	GOT(add(epoll, made, EPOLLIN, 1));
	GOT(add(epoll, event, EPOLLIN, 2));
	GOT(add(epoll, ends[0], EPOLLIN, 3));
	look(epoll);
	write(event, &one, 8);
	waited(epoll, 16, -1);
	read(event, &one, 8);
	write(ends[1], "x", 1);
	waited(epoll, 16, 10000);
	read(ends[0], bytes, 1);
	tell("send 1 hello");
	waited(epoll, 16, -1);
	read(made, bytes, 10);
	look(epoll);
	close(ends[1]);
	look(epoll);
}

CASE(epoll, descriptors_of_the_kernels_are_not_forgotten)
{
	int made = connected(listening(0), 1), epoll = epoll_create1(0), event = eventfd(1, EFD_NONBLOCK), count = 0;

	GOT(add(epoll, made, EPOLLOUT, 1));
	GOT(add(epoll, event, EPOLLIN, 2));
	for (int i = 0; i < 40; i++) {
		int found = epoll_wait(epoll, events, 16, -1);

		for (int each = 0; each < found; each++)
			count += events[each].data.u64 == 2;
	}
	GOT(count > 0);
}

CASE(epoll, kernels_and_others_at_once)
{
	int made = connected(listening(0), 1), epoll = epoll_create1(0), event = eventfd(1, EFD_NONBLOCK);

	GOT(add(epoll, made, EPOLLIN, 1));
	GOT(add(epoll, event, EPOLLIN, 2));
	ask("send 1 hello");
	GOT(epoll_wait(epoll, events, 16, -1));
}

CASE(epoll, only_the_kernels)
{
	int epoll = epoll_create1(0), event = eventfd(0, EFD_NONBLOCK);
	uint64_t one = 1;

	GOT(add(epoll, event, EPOLLIN, 2));
	GOT(epoll_wait(epoll, events, 16, 20));
	write(event, &one, 8);
	waited(epoll, 16, -1);
}

CASE(epoll, signals_as_descriptors)
{
	int made = connected(listening(0), 1), epoll = epoll_create1(0), signals_at;
	struct signalfd_siginfo info;
	sigset_t some;

	sigemptyset(&some);
	sigaddset(&some, SIGUSR1);
	sigprocmask(SIG_BLOCK, &some, NULL);
	signals_at = signalfd(-1, &some, SFD_NONBLOCK);
	GOT(add(epoll, made, EPOLLIN, 1));
	GOT(add(epoll, signals_at, EPOLLIN, 2));
	look(epoll);
	tell("signal %d", SIGUSR1);
	waited(epoll, 16, -1);
	GOT(read(signals_at, &info, sizeof(info)));
	GOT(info.ssi_signo);
	look(epoll);
}

CASE(epoll, a_program_that_looks_again_and_again)
{
	int made = connected(listening(0), 1), epoll = epoll_create1(0);

	GOT(add(epoll, made, EPOLLIN, 1));
	tell("send 1 hello");
	while (epoll_wait(epoll, events, 16, 0) == 0)
		;
	say_found(events, 1);
}

/* Level, and edge. */
CASE(epoll, a_port_that_is_shut)
{
	int listener = listening(0), level = epoll_create1(0), edge = epoll_create1(0);

	GOT(add(level, listener, EPOLLIN, 1));
	GOT(add(edge, listener, EPOLLIN | EPOLLET, 2));
	look(level);
	look(edge);
	GOT(shutdown(listener, SHUT_RD));
	look(level);
	look(edge);
	look(level);
	look(edge);
	GOT(listen(listener, 1));
	look(level);
}

CASE(epoll, clients_leave_a_place_for_what_the_kernel_has)
{
	int listener = listening(0), event = eventfd(1, EFD_NONBLOCK), epoll = epoll_create1(0);

	for (int i = 1; i <= 2; i++)
		add(epoll, connected(listener, i), EPOLLIN, (uint64_t)i);
	add(epoll, event, EPOLLIN, 3);
	ask("send 1 hello; send 2 hello");
	for (int most = 1; most <= 2; most++) {
		int seen[4] = { 0 };

		for (int i = 0; i < 40; i++) {
			int found = epoll_wait(epoll, events, most, i % 2 ? -1 : 0);

			for (int each = 0; each < found; each++)
				seen[events[each].data.u64]++;
		}
		say("of %d:%s%s%s\n", most, seen[1] ? " 1" : "", seen[2] ? " 2" : "", seen[3] ? " event" : "");
	}
}
