/* poll() and select() over virtual descriptors and the kernel's. */
#include "interpose.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Descriptors that have room on the stack. poll() may be called by a signal's handler, which must
 * not touch the heap. */
#define PLAIN_MAX 1024

static bool has_virtual(const struct pollfd *wanted, nfds_t count)
{
	for (nfds_t i = 0; i < count; i++) {
		if (qw_object_of(wanted[i].fd))
			return true;
	}
	return false;
}

static bool is_plain(int descriptor)
{
	const struct qw_object *object = descriptor < 0 ? NULL : qw_object_of(descriptor);

	return descriptor >= 0 && (!object || object->kind == QW_EPOLL);
}

/* What virtual descriptors have. */
static int look(struct pollfd *wanted, nfds_t count)
{
	int found = 0;

	for (nfds_t i = 0; i < count; i++) {
		struct qw_object *object = qw_object_of(wanted[i].fd);

		if (!object)
			continue;
		wanted[i].revents = (short)((int)qw_events_of(object) & (wanted[i].events | POLLERR | POLLHUP));
		found += wanted[i].revents != 0;
	}
	return found;
}

struct poll_ask {
	struct pollfd *wanted;
	nfds_t count;
	int found;
};

/* How many of these have something; the doorbell, which stands behind them, does not count. */
static int ask_plain(struct pollfd *plain, nfds_t count, int wait_ms)
{
	struct timespec none = { 0 };
	uint64_t rung;
	int found;

	if (count == 0 && wait_ms == 0 && !qw_mask)
		return 0;
	found = QW_REAL(ppoll)(plain, count + 1, wait_ms < 0 ? NULL : &none, qw_mask);
	if (found <= 0 || !plain[count].revents)
		return found;
	if (syscall(SYS_read, qw.door, &rung, sizeof(rung)) < 0 && errno != EAGAIN)
		return -1;
	/* It may be in an epoll instance of these, too. */
	return QW_REAL(poll)(plain, count, 0);
}

/* The kernel's of them, and the doorbell. */
static int ask_poll(void *what, int wait_ms)
{
	struct poll_ask *ask = what;
	struct pollfd few[PLAIN_MAX + 1], *plain = few;
	nfds_t plain_count = 0, at = 0;

	if (ask->count > PLAIN_MAX)
		plain = qw_pages((ask->count + 1) * sizeof(*plain));
	if (!plain)
		return ask->found = -1;
	for (nfds_t i = 0; i < ask->count; i++) {
		if (is_plain(ask->wanted[i].fd))
			plain[plain_count++] = ask->wanted[i];
	}
	plain[plain_count] = (struct pollfd){ .fd = qw.door, .events = POLLIN };
	ask->found = ask_plain(plain, plain_count, wait_ms);
	for (nfds_t i = 0; i < ask->count && ask->found > 0; i++) {
		if (is_plain(ask->wanted[i].fd))
			ask->wanted[i].revents = (short)(ask->wanted[i].revents | plain[at++].revents);
	}
	if (plain != few)
		munmap(plain, (ask->count + 1) * sizeof(*plain));
	return ask->found;
}

/* All that is there. */
static int look_at_all(struct poll_ask *ask)
{
	int found = 0;

	if (look(ask->wanted, ask->count))
		qw_mask = NULL; /* where something is there, no signal is let in */
	if (ask_poll(ask, 0) < 0)
		return -1;
	for (nfds_t i = 0; i < ask->count; i++)
		found += ask->wanted[i].revents != 0;
	return found;
}

/* Whether look() would find something. */
static bool has_events(const void *what)
{
	const struct poll_ask *ask = what;

	for (nfds_t i = 0; i < ask->count; i++) {
		const struct qw_object *object = qw_object_of(ask->wanted[i].fd);

		if (object && (int)qw_events_of(object) & (ask->wanted[i].events | POLLERR | POLLHUP))
			return true;
	}
	return false;
}

static nfds_t plain_ones(const void *what, struct pollfd *to, nfds_t room)
{
	const struct poll_ask *ask = what;
	nfds_t found = 0;

	for (nfds_t i = 0; i < ask->count; i++) {
		if (!is_plain(ask->wanted[i].fd))
			continue;
		if (found < room)
			to[found] = (struct pollfd){ .fd = ask->wanted[i].fd, .events = ask->wanted[i].events };
		found++;
	}
	return found;
}

static int wait_for(struct pollfd *wanted, nfds_t count, int64_t wait_ns)
{
	struct poll_ask ask = { .wanted = wanted, .count = count };
	struct qw_wait wait = {
		.what = &ask, .kernel = ask_poll, .has = has_events, .descriptors = plain_ones
	};
	int found;

	qw_enter();
	wait.deadline_ns = wait_ns < 0 ? QW_NEVER : qw.now_ns + (uint64_t)wait_ns;
	for (nfds_t i = 0; i < count; i++)
		wanted[i].revents = 0;
	for (;;) {
		if (look(wanted, count))
			return look_at_all(&ask);
		if (wait_ns == 0) {
			if (qw_may_look())
				return ask_poll(&ask, 0);
			wait_ns = -1;
			wait.deadline_ns = qw_idle_deadline();
		}
		switch (qw_wait_for(&wait)) {
		case QW_WOKEN_TURN:
			found = look_at_all(&ask);
			break;
		case QW_WOKEN_LATE:
			return look_at_all(&ask);
		case QW_WOKEN_KERNEL:
			return ask.found;
		case QW_WOKEN_SIGNAL:
			found = look(wanted, count);
			return found ? found : -1;
		}
		if (found)
			return found;
	}
}

static int masked(struct pollfd *wanted, nfds_t count, int64_t wait_ns, const sigset_t *mask)
{
	int found;

	qw_mask = mask;
	found = wait_for(wanted, count, wait_ns);
	qw_mask = NULL;
	return found;
}

QW_CALL int poll(struct pollfd *wanted, nfds_t count, int wait_ms)
{
	if (qw.on != 1 || !qw_takes_part(has_virtual(wanted, count)))
		return qw_slept(QW_REAL(poll)(wanted, count, wait_ms), wait_ms * QW_MILLISECOND_NS);
	return masked(wanted, count, wait_ms * QW_MILLISECOND_NS, NULL);
}

QW_CALL int __poll_chk(struct pollfd *wanted, nfds_t count, int wait_ms, size_t bytes)
{
	if (bytes / sizeof(*wanted) < count)
		abort();
	return poll(wanted, count, wait_ms);
}

QW_CALL int ppoll(struct pollfd *wanted, nfds_t count, const struct timespec *wait, const sigset_t *mask)
{
	if (qw.on != 1 || !qw_takes_part(has_virtual(wanted, count)))
		return qw_slept(QW_REAL(ppoll)(wanted, count, wait, mask), qw_wait_ns(wait));
	if (wait && !qw_is_time(wait)) {
		errno = EINVAL;
		return -1;
	}
	return masked(wanted, count, qw_wait_ns(wait), mask);
}

QW_CALL int __ppoll_chk(struct pollfd *wanted, nfds_t count, const struct timespec *wait, const sigset_t *mask,
			size_t bytes)
{
	if (bytes / sizeof(*wanted) < count)
		abort();
	return ppoll(wanted, count, wait, mask);
}

/* --- select() is poll() in another form */

static short wanted_by_sets(int descriptor, const fd_set *in, const fd_set *out, const fd_set *except)
{
	int events = 0;

	events |= in && FD_ISSET(descriptor, in) ? POLLIN : 0;
	events |= out && FD_ISSET(descriptor, out) ? POLLOUT : 0;
	events |= except && FD_ISSET(descriptor, except) ? POLLPRI : 0;
	return (short)events;
}

static bool sets_have_virtual(int limit, const fd_set *in, const fd_set *out, const fd_set *except)
{
	for (int descriptor = 0; descriptor < limit; descriptor++) {
		if (wanted_by_sets(descriptor, in, out, except) && qw_object_of(descriptor))
			return true;
	}
	return false;
}

static int select_by_poll(int limit, fd_set *in, fd_set *out, fd_set *except, int64_t wait_ns,
			  const sigset_t *mask)
{
	struct pollfd wanted[FD_SETSIZE];
	nfds_t count = 0;
	int found, bits = 0;

	for (int descriptor = 0; descriptor < limit && descriptor < FD_SETSIZE; descriptor++) {
		short events = wanted_by_sets(descriptor, in, out, except);

		if (events)
			wanted[count++] = (struct pollfd){ .fd = descriptor, .events = events };
	}
	found = masked(wanted, count, wait_ns, mask);
	if (found < 0)
		return found;
	for (nfds_t i = 0; i < count; i++) {
		int has = wanted[i].revents, descriptor = wanted[i].fd;

		if (has & POLLNVAL) {
			errno = EBADF;
			return -1;
		}
		if (wanted[i].events & POLLIN && !(has & (POLLIN | POLLHUP | POLLERR)))
			FD_CLR(descriptor, in);
		else
			bits += (wanted[i].events & POLLIN) != 0;
		if (wanted[i].events & POLLOUT && !(has & (POLLOUT | POLLERR)))
			FD_CLR(descriptor, out);
		else
			bits += (wanted[i].events & POLLOUT) != 0;
		if (wanted[i].events & POLLPRI && !(has & POLLPRI))
			FD_CLR(descriptor, except);
		else
			bits += (wanted[i].events & POLLPRI) != 0;
	}
	return bits;
}

/* What is left of a wait, as the kernel says it. */
static void set_left(struct timeval *wait, uint64_t until_ns)
{
	uint64_t left_us = until_ns > qw.now_ns ? (until_ns - qw.now_ns) / 1000 : 0;

	wait->tv_sec = (time_t)(left_us / 1000000);
	wait->tv_usec = (suseconds_t)(left_us % 1000000);
}

QW_CALL int select(int limit, fd_set *in, fd_set *out, fd_set *except, struct timeval *wait)
{
	int64_t wait_ns = wait ? (int64_t)wait->tv_sec * 1000000000 + (int64_t)wait->tv_usec * 1000 : -1;
	uint64_t until_ns = qw.now_ns + (uint64_t)wait_ns;
	int found;

	if (qw.on != 1 || !qw_takes_part(sets_have_virtual(limit, in, out, except)))
		return qw_slept(QW_REAL(select)(limit, in, out, except, wait), wait_ns);
	if (wait && (wait->tv_sec < 0 || wait->tv_usec < 0)) {
		errno = EINVAL;
		return -1;
	}
	found = select_by_poll(limit, in, out, except, wait_ns, NULL);
	if (wait)
		set_left(wait, until_ns);
	return found;
}

QW_CALL int pselect(int limit, fd_set *in, fd_set *out, fd_set *except, const struct timespec *wait,
		    const sigset_t *mask)
{
	if (qw.on != 1 || !qw_takes_part(sets_have_virtual(limit, in, out, except)))
		return qw_slept(QW_REAL(pselect)(limit, in, out, except, wait, mask), qw_wait_ns(wait));
	if (wait && !qw_is_time(wait)) {
		errno = EINVAL;
		return -1;
	}
	return select_by_poll(limit, in, out, except, qw_wait_ns(wait), mask);
}
