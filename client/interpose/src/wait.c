/* What the program waits for: it is given one turn after the other. Time-outs end by the log's
 * time. Which thread waits how is said in alone/ and in serial/. */
#include "interpose.h"

#include <sys/syscall.h>
#include <unistd.h>

bool qw_has_turn(void)
{
	return __atomic_load_n(&qw.control->given_head, __ATOMIC_SEQ_CST) != qw.given_at;
}

int qw_plain_poll(struct pollfd *wanted, nfds_t count, const struct timespec *wait, const sigset_t *mask)
{
	struct timespec left = wait ? *wait : (struct timespec){ 0 }; /* the kernel writes into it */

	return (int)syscall(SYS_ppoll, wanted, count, wait ? &left : NULL, mask, _NSIG / 8);
}

void qw_relax(void)
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
void qw_say_deadline(uint64_t deadline_ns)
{
	uint64_t timer = qw_next_timer(), signal = qw_next_alarm();

	if (timer < deadline_ns)
		deadline_ns = timer;
	if (signal < deadline_ns)
		deadline_ns = signal;
	__atomic_store_n(&qw.control->deadline_ns, deadline_ns, __ATOMIC_RELAXED);
	__atomic_store_n(&qw.control->turn_done, qw.turn, __ATOMIC_SEQ_CST);
}

/* Takes the next turn; false: there is none. */
bool qw_go_to_turn(void)
{
	if (!qw_take_turn())
		return false;
	qw.idle_waits = 0;
	qw_look_at_timers();
	qw_look_at_alarms();
	return true;
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
	return qw.now_ns + (uint64_t)wait.tv_sec * QW_SECOND_NS + (uint64_t)wait.tv_usec * 1000;
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
	qw_wait(object, qw.now_ns + IDLE_NS);
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
	switch (qw_wait(object, patience->deadline_ns)) {
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
