/* A server in many small cases. Each makes calls and says what came of them, into a file that the
 * test compares: once the kernel has answered, once the preloaded library. What clients do is asked
 * of the test, over a connection of its own. */
#ifndef CASES_H
#define CASES_H

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

struct one_case {
	const char *group, *name;
	void (*run)(void);
	struct one_case *next;
};

void add_case(struct one_case *added);

#define CASE(group_, name_) \
	static void name_(void); \
	__attribute__((constructor)) static void add_##name_(void) \
	{ \
		static struct one_case it = { .group = #group_, .name = #name_, .run = name_ }; \
		add_case(&it); \
	} \
	static void name_(void)

/* The address at which everything listens, and the case's first port. */
extern in_addr_t host;
extern uint16_t first_port;

/* A line of the print-out, or a part of one. */
__attribute__((format(printf, 1, 2))) void say(const char *format, ...);
void say_result(const char *what, long result, int error);
void say_bytes(const void *bytes, ssize_t count);
void say_events(uint32_t events);
void say_address(const char *what, const struct sockaddr_in *address);

/* Makes a call, and says what it returned. */
#define GOT(call) \
	({ \
		errno = 0; \
		long result_ = (long)(call); \
		int error_ = errno; \
		say_result(#call, result_, error_); \
		errno = error_; \
		result_; \
	})

/* The same of a call that fills `bytes`. */
#define GOT_BYTES(call, bytes) \
	({ \
		ssize_t count_ = GOT(call); \
		say_bytes(bytes, count_); \
		count_; \
	})

/* What clients do, `;` between: one turn. Returns when it has come here. */
__attribute__((format(printf, 1, 2))) void ask(const char *format, ...);
/* The same, without waiting for it: the next call that waits sees it. */
__attribute__((format(printf, 1, 2))) void tell(const char *format, ...);

struct sockaddr_in address_at(int port_offset);
/* Of `SOCK_STREAM`, or `SOCK_DGRAM`; the first port is of the offset 0. */
int listening(int flags);
int listening_at(int port_offset, int flags);
int bound_datagrams(int flags);
/* Client `number` connects, and is accepted. */
int client(int listener, int number);
/* The same number, of which the compiler does not know that it is wrong. */
int unseen(int number);
int set_nonblocking(int descriptor);
/* Says what epoll or poll has found. */
void say_found(const struct epoll_event *events, int count);
void say_polled(const struct pollfd *wanted, int count, int result);
/* Counts signals, and says so. */
void count_signal(int number);
extern volatile sig_atomic_t signals;
void handle(int number, int flags);

#endif
