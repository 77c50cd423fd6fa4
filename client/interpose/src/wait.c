/* How the program waits: it is given one turn after the other. Time-outs end by the log's time. The
 * kernel's own events, such as signals, pipes and other sockets, are looked at where no client has
 * anything, and move no turn. */
#include "interpose.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool has_turn(void)
{
	return __atomic_load_n(&qw.control->given_head, __ATOMIC_SEQ_CST) != qw.given_at;
}

static void relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#endif
}

uint32_t qw_events_of(const struct qw_object *object)
{
	uint32_t events = 0;

	switch (object->kind) {
	case QW_LISTENER:
		return object->first_waiting ? EPOLLIN | EPOLLRDNORM : 0;
	case QW_STREAM:
		if (object->reset && !object->reported_reset)
			events |= EPOLLERR;
		if (object->reset)
			return events | EPOLLIN | EPOLLRDNORM | EPOLLOUT | EPOLLWRNORM | EPOLLHUP | EPOLLRDHUP;
		events = EPOLLOUT | EPOLLWRNORM;
		if (object->end - object->at >= (object->least ? object->least : 1) || object->ended ||
		    object->shut_read)
			events |= EPOLLIN | EPOLLRDNORM;
		if (object->ended || object->shut_read)
			events |= EPOLLRDHUP;
		if ((object->ended || object->shut_read) && object->shut_write)
			events |= EPOLLHUP;
		return events;
	case QW_DATAGRAMS:
		events = EPOLLOUT | EPOLLWRNORM | EPOLLWRBAND;
		return object->at < object->end ? events | EPOLLIN | EPOLLRDNORM : events;
	case QW_TIMER:
		return object->expired ? EPOLLIN : 0;
	case QW_RANDOM:
		return EPOLLIN | EPOLLRDNORM | EPOLLOUT | EPOLLWRNORM;
	case QW_EPOLL:
		return qw_has_ready(object->epoll) ? EPOLLIN | EPOLLRDNORM : 0;
	case QW_BOUND:
		return EPOLLOUT | EPOLLWRNORM | EPOLLHUP;
	}
	return 0;
}

/* The log's time at which the program is to go on, also without a client. */
static void say_deadline(uint64_t deadline_ns)
{
	uint64_t timer = qw_next_timer(), signal = qw_next_alarm();

	if (timer < deadline_ns)
		deadline_ns = timer;
	if (signal < deadline_ns)
		deadline_ns = signal;
	__atomic_store_n(&qw.control->deadline_ns, deadline_ns, __ATOMIC_RELAXED);
	__atomic_store_n(&qw.control->turn_done, qw.turn, __ATOMIC_SEQ_CST);
}

static bool take_turn(void)
{
	if (!qw_take_turn())
		return false;
	qw.idle_waits = 0;
	qw_look_at_timers();
	qw_look_at_alarms();
	return true;
}

static enum qw_woken woken_by_turn(uint64_t deadline_ns)
{
	if (qw.interrupted) {
		errno = EINTR;
		return QW_WOKEN_SIGNAL;
	}
	return qw.now_ns >= deadline_ns ? QW_WOKEN_LATE : QW_WOKEN_TURN;
}

/* As qw_wait(); what the kernel has meanwhile is asked of `kernel`: whether there is something, or
 * a signal has come. */
enum qw_woken qw_wait_beside(uint64_t deadline_ns, int (*kernel)(void *, int wait_ms), void *what)
{
	qw.interrupted = qw.restarts = false;
	say_deadline(deadline_ns);
	if (qw.now_ns >= deadline_ns)
		return QW_WOKEN_LATE;
	for (;;) {
		int found;

		for (int spin = 0; spin < QW_SPINS_MAX; spin++) {
			if (take_turn())
				return woken_by_turn(deadline_ns);
			relax();
		}
		__atomic_store_n(&qw.control->program_sleeps, 1, __ATOMIC_SEQ_CST);
		if (has_turn()) {
			__atomic_store_n(&qw.control->program_sleeps, 0, __ATOMIC_SEQ_CST);
			continue;
		}
		qw_ring_replica();
		found = kernel(what, -1);
		__atomic_store_n(&qw.control->program_sleeps, 0, __ATOMIC_SEQ_CST);
		if (found == 0)
			continue;
		/* It waits no longer. */
		__atomic_store_n(&qw.control->deadline_ns, QW_NEVER, __ATOMIC_RELAXED);
		return found < 0 ? QW_WOKEN_SIGNAL : QW_WOKEN_KERNEL;
	}
}

static int only_door(void *unused, int wait_ms)
{
	struct pollfd door = { .fd = qw.door, .events = POLLIN };
	uint64_t count;

	(void)unused;
	if (QW_REAL(poll)(&door, 1, wait_ms) < 0)
		return -1;
	if (door.revents && syscall(SYS_read, qw.door, &count, sizeof(count)) < 0 && errno != EAGAIN)
		return -1;
	return 0;
}

enum qw_woken qw_wait(uint64_t deadline_ns)
{
	return qw_wait_beside(deadline_ns, only_door, NULL);
}

/* By how much the log's time may go on while a program asks again and again. */
#define IDLE_NS 1000000

static uint64_t deadline_of(int descriptor)
{
	struct timeval wait = { 0 };
	socklen_t length = sizeof(wait);

	if (QW_REAL(getsockopt)(descriptor, SOL_SOCKET, SO_RCVTIMEO, &wait, &length) ||
	    (wait.tv_sec == 0 && wait.tv_usec == 0))
		return QW_NEVER;
	return qw.now_ns + (uint64_t)wait.tv_sec * 1000000000 + (uint64_t)wait.tv_usec * 1000;
}

/* A program that never waits is given turns all the same, everywhere after as many looks. */
static bool looks_too_often(struct qw_object *object)
{
	if (object->looked_in != qw.turn)
		object->looks = 0;
	object->looked_in = qw.turn;
	if (++object->looks < QW_IDLE_WAITS_MAX)
		return false;
	object->looks = 0;
	qw_wait(qw.now_ns + IDLE_NS);
	return true;
}

/* A signal from outside has run some handler. Whether a call goes on after any of them. */
static bool handlers_restart(void)
{
	for (int number = 1; number < NSIG; number++) {
		struct sigaction action;

		if (!sigaction(number, NULL, &action) && action.sa_handler != SIG_DFL &&
		    action.sa_handler != SIG_IGN && !(action.sa_flags & SA_RESTART))
			return false;
	}
	return true;
}

bool qw_look_again(int descriptor, struct qw_object *object, bool may_wait, struct qw_patience *patience)
{
	bool again = true;

	if (patience->over) {
		errno = patience->over;
		return false;
	}
	if (!may_wait || !qw_does_block(descriptor)) {
		again = looks_too_often(object);
		errno = EAGAIN;
		return again;
	}
	if (!patience->deadline_ns)
		patience->deadline_ns = deadline_of(descriptor);
	switch (qw_wait(patience->deadline_ns)) {
	case QW_WOKEN_LATE:
		patience->over = EAGAIN;
		break;
	case QW_WOKEN_SIGNAL:
		if (!(qw.interrupted ? qw.restarts : handlers_restart()) || patience->deadline_ns != QW_NEVER)
			patience->over = EINTR;
		break;
	case QW_WOKEN_TURN:
	case QW_WOKEN_KERNEL:
		break;
	}
	return true;
}
